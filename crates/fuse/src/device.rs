//! The connection to the kernel: whole requests out of it, whole replies into it.

use std::io::IoSlice;
use std::os::fd::OwnedFd;

use rustix::io::{self, Errno};

use crate::protocol::{self, REPLY_HEADER};

/// Pieces of a reply beyond which a list of them is allocated.
const FEW_PIECES: usize = 8;

/// Pieces that one write takes (`UIO_MAXIOV` of the kernel, less the header).
pub(crate) const PIECES_MAX: usize = 1023;

/// `/dev/fuse`, open and mounted.
#[derive(Debug)]
pub(crate) struct Device(OwnedFd);

impl Device {
    pub(crate) fn new(file: OwnedFd) -> Self {
        Self(file)
    }

    /// The next request, or `None` when the mount is over.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> Result<Option<usize>, Errno> {
        loop {
            match io::read(&self.0, &mut *buffer) {
                Ok(size) => return Ok(Some(size)),
                // A request that was taken back before it was read; a signal.
                Err(Errno::NOENT | Errno::INTR | Errno::AGAIN) => {}
                Err(Errno::NODEV | Errno::CONNABORTED) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// A request that waits already, or `None` if none does. Nobody else may receive meanwhile.
    pub(crate) fn receive_at_hand(&self, buffer: &mut [u8]) -> Result<Option<usize>, Errno> {
        io::ioctl_fionbio(&self.0, true)?;
        let received = io::read(&self.0, buffer);
        io::ioctl_fionbio(&self.0, false)?;
        match received {
            Ok(size) => Ok(Some(size)),
            // The mount is over: whoever waits for the next request hears so.
            Err(Errno::NOENT | Errno::INTR | Errno::AGAIN | Errno::NODEV | Errno::CONNABORTED) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// A reply in pieces, which are not copied.
    pub(crate) fn send_pieces(&self, unique: u64, pieces: &[IoSlice<'_>]) {
        let size = REPLY_HEADER + pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let header = protocol::reply_header(size, 0, unique);
        let sent = if pieces.len() <= FEW_PIECES {
            let mut all = [IoSlice::new(&[]); FEW_PIECES + 1];
            all[0] = IoSlice::new(&header);
            all[1..=pieces.len()].copy_from_slice(pieces);
            write_all(|| io::writev(&self.0, &all[..=pieces.len()]))
        } else if pieces.len() <= PIECES_MAX {
            let mut all = Vec::with_capacity(pieces.len() + 1);
            all.push(IoSlice::new(&header));
            all.extend_from_slice(pieces);
            write_all(|| io::writev(&self.0, &all))
        } else {
            let mut whole = Vec::with_capacity(size);
            whole.extend_from_slice(&header);
            for piece in pieces {
                whole.extend_from_slice(piece);
            }
            write_all(|| io::write(&self.0, &whole))
        };
        if let Err(error) = sent {
            self.refused(unique, error);
        }
    }

    /// A reply without bytes: done, or failed.
    pub(crate) fn send_result(&self, unique: u64, result: Result<(), Errno>) {
        let error = result.err().map_or(0, Errno::raw_os_error);
        let header = protocol::reply_header(REPLY_HEADER, error, unique);
        // Whom it was for may be gone, and so may the mount.
        let _ = write_all(|| io::write(&self.0, &header));
    }

    /// The kernel did not take a reply. If whom it was for is gone, or the mount, nobody misses it;
    /// otherwise he must not wait for ever.
    fn refused(&self, unique: u64, error: Errno) {
        if !matches!(error, Errno::NOENT | Errno::NODEV | Errno::CONNABORTED) {
            self.send_result(unique, Err(Errno::IO));
        }
    }
}

/// The kernel takes a reply whole or not at all.
fn write_all(mut write: impl FnMut() -> Result<usize, Errno>) -> Result<(), Errno> {
    loop {
        match write() {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}
