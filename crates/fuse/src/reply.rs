//! Answers that a file system sends itself: data without a copy of it, and what takes its time.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use rustix::io::Errno;

use crate::device::Device;

/// An answer without data that may come later, from any thread. Where it is dropped without one, it is
/// `IO`, so that nobody waits for ever.
#[derive(Debug)]
pub struct Reply {
    request: Option<(Arc<Device>, u64)>,
    heard: Option<Sender<Result<(), Errno>>>,
    is_answered: bool,
}

impl Reply {
    pub(crate) fn to(device: &Arc<Device>, unique: u64) -> Self {
        Self { request: Some((Arc::clone(device), unique)), heard: None, is_answered: false }
    }

    /// The answer to a request of the kernel, if there is one, that is heard here as well.
    pub(crate) fn heard(
        request: Option<(Arc<Device>, u64)>,
    ) -> (Self, Receiver<Result<(), Errno>>) {
        let (heard, answers) = mpsc::channel();
        (Self { request, heard: Some(heard), is_answered: false }, answers)
    }

    /// One that belongs to no request, and where its answer comes out: for callers in this process.
    pub fn channel() -> (Self, Receiver<Result<(), Errno>>) {
        Self::heard(None)
    }

    /// Answers: it is done, or it failed.
    pub fn answer(mut self, result: Result<(), Errno>) {
        self.send(result);
    }

    fn send(&mut self, result: Result<(), Errno>) {
        self.is_answered = true;
        if let Some((device, unique)) = self.request.take() {
            device.send_result(unique, result);
        }
        if let Some(heard) = self.heard.take() {
            // Nobody need listen.
            let _ = heard.send(result);
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.is_answered {
            self.send(Err(Errno::IO));
        }
    }
}

/// Says that an answer was sent, or will be.
#[derive(Debug)]
#[must_use]
pub struct Sent(());

/// The answer to a read.
#[derive(Debug)]
pub struct DataReply<'a> {
    device: &'a Arc<Device>,
    unique: u64,
    /// As long as the read.
    buffer: &'a mut [u8],
}

impl<'a> DataReply<'a> {
    pub(crate) fn new(device: &'a Arc<Device>, unique: u64, buffer: &'a mut [u8]) -> Self {
        Self { device, unique, buffer }
    }

    /// Bytes that are asked for, and that may be sent.
    pub fn size(&self) -> usize {
        self.buffer.len()
    }

    /// Sends pieces, one behind another, that lie in the file system's own memory. They are read before
    /// this returns.
    ///
    /// # Panics
    ///
    /// Panics if they are more than was asked for.
    pub fn send(self, pieces: &[IoSlice<'_>]) -> Sent {
        assert_fits(pieces, self.buffer.len());
        self.device.send_pieces(self.unique, pieces);
        Sent(())
    }

    /// Sends what `fill` writes to the start of a buffer that begins at a page's start and is as long as
    /// the read; what was in it before is arbitrary. `fill` says how many bytes it wrote.
    ///
    /// # Errors
    ///
    /// Those of `fill`, and then nothing is sent.
    pub fn fill(self, fill: impl FnOnce(&mut [u8]) -> Result<usize, Errno>) -> Result<Sent, Errno> {
        let size = fill(self.buffer)?;
        self.device.send_pieces(self.unique, &[IoSlice::new(&self.buffer[..size])]);
        Ok(Sent(()))
    }

    /// For an answer that comes later, from any thread.
    pub fn later(self) -> (Sent, LaterData) {
        let data =
            LaterData { reply: Reply::to(self.device, self.unique), size: self.buffer.len() };
        (Sent(()), data)
    }
}

/// The answer to a read that comes later. Where it is dropped without one, it is `IO`.
#[derive(Debug)]
pub struct LaterData {
    reply: Reply,
    size: usize,
}

impl LaterData {
    /// Bytes that are asked for, and that may be sent.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Sends pieces, one behind another.
    ///
    /// # Panics
    ///
    /// Panics if they are more than was asked for.
    pub fn send(mut self, pieces: &[IoSlice<'_>]) {
        assert_fits(pieces, self.size);
        self.reply.is_answered = true;
        if let Some((device, unique)) = self.reply.request.take() {
            device.send_pieces(unique, pieces);
        }
    }

    /// Answers that it failed.
    pub fn fail(self, error: Errno) {
        self.reply.answer(Err(error));
    }
}

fn assert_fits(pieces: &[IoSlice<'_>], size: usize) {
    let sent: usize = pieces.iter().map(|piece| piece.len()).sum();
    assert!(sent <= size, "{sent} bytes for a read of {size}");
}
