//! Writes copies in a thread of its own, one behind another, while those before are compared.
//!
//! Where a copy comes to lie is chosen when its writing begins, so their order is that of the moves.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::{copying, kernel};
use crate::arranger::Move;

/// A part of a file, and where in which file its copy goes.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) file: OwnedFd,
    pub(super) from: u64,
    pub(super) bytes: u64,
    pub(super) donor: OwnedFd,
    pub(super) offset: u64,
}

/// The file with the copy; `None` if the part cannot be read as long as it is planned.
pub(super) type Written = Result<Option<OwnedFd>, Errno>;

impl Job {
    fn write(self, buffer: &mut Vec<u8>) -> Written {
        if !copying::copy(&self.file, self.from, &self.donor, self.offset, self.bytes, buffer)? {
            return Ok(None);
        }
        // Its place is chosen now, by this call, before that of the next.
        kernel::start_writing(&self.donor)?;
        Ok(Some(self.donor))
    }
}

#[derive(Debug)]
struct Writer {
    jobs: Sender<Job>,
    written: Receiver<Written>,
    thread: JoinHandle<()>,
}

impl Writer {
    /// `None` where no thread can be had.
    fn start() -> Option<Self> {
        let (jobs, waiting) = channel::<Job>();
        let (done, written) = channel();
        let write_all = move || {
            // Where it cannot be had the work goes on all the same.
            let _ = kernel::be_last();
            let mut buffer = Vec::new();
            for job in waiting {
                if done.send(job.write(&mut buffer)).is_err() {
                    return;
                }
            }
        };
        let thread = Builder::new().spawn(write_all).ok()?;
        Some(Self { jobs, written, thread })
    }
}

/// Copies that were begun and not taken yet.
#[derive(Debug, Default)]
pub(super) struct Copier {
    writer: Option<Writer>,
    /// In the order of their moves; `None` as long as it may be being written.
    copies: VecDeque<(Move, Option<Written>)>,
}

impl Copier {
    /// Begins the copy for a move, if it can be.
    pub(super) fn begin(&mut self, step: Move, job: Result<Job, Errno>) {
        if self.writer.is_none() {
            self.writer = Writer::start();
        }
        let written = match (job, &self.writer) {
            (Err(why), _) => Some(Err(why)),
            (Ok(job), None) => Some(job.write(&mut Vec::new())),
            (Ok(job), Some(writer)) => {
                writer.jobs.send(job).expect("it is written as long as there are jobs");
                None
            }
        };
        self.copies.push_back((step, written));
    }

    /// For which move a copy was begun last.
    pub(super) fn last_step(&self) -> Option<Move> {
        self.copies.back().map(|(step, _)| *step)
    }

    /// What came of the copy that was begun last.
    pub(super) fn last(&mut self) -> Option<&Written> {
        self.wait_for(self.copies.len());
        self.copies.back().and_then(|(_, written)| written.as_ref())
    }

    /// What came of the copy for `step`; those begun before it are dropped.
    pub(super) fn take(&mut self, step: &Move) -> Option<Written> {
        loop {
            self.wait_for(1);
            let (found, written) = self.copies.pop_front()?;
            if found == *step {
                return written;
            }
        }
    }

    /// Waits until the first `count` are written.
    fn wait_for(&mut self, count: usize) {
        let Some(writer) = &self.writer else { return };
        for (_, written) in self.copies.iter_mut().take(count) {
            if written.is_none() {
                *written = Some(writer.written.recv().expect("what is begun is written"));
            }
        }
    }

    /// Drops what was not taken.
    pub(super) fn clear(&mut self) {
        self.wait_for(self.copies.len());
        self.copies.clear();
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        if let Some(Writer { jobs, written, thread }) = self.writer.take() {
            drop((jobs, written));
            // If it panicked it has said so.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek, Write};

    use rustix::fd::OwnedFd;
    use rustix::io::Errno;

    use super::{Copier, Job, Move};

    fn step(file: u32) -> Move {
        Move { file, logical_bytes: 0, length_bytes: 4096, physical_bytes: 0 }
    }

    fn file(contents: &[u8]) -> std::io::Result<OwnedFd> {
        let mut file = tempfile::tempfile()?;
        file.write_all(contents)?;
        Ok(file.into())
    }

    fn job(contents: &[u8], bytes: u64) -> std::io::Result<Job> {
        Ok(Job { file: file(contents)?, from: 1, bytes, donor: file(b"")?, offset: 3 })
    }

    fn contents(file: OwnedFd) -> std::io::Result<Vec<u8>> {
        let (mut file, mut found) = (File::from(file), Vec::new());
        file.rewind()?;
        file.read_to_end(&mut found)?;
        Ok(found)
    }

    /// Each move has its own copy, in whatever way those before it ended.
    #[test]
    fn copies_are_taken_by_their_moves() -> std::io::Result<()> {
        let mut copier = Copier::default();
        assert!(copier.last().is_none() && copier.take(&step(0)).is_none());
        copier.begin(step(0), Ok(job(b"abcdef", 4)?));
        copier.begin(step(1), Err(Errno::NOSPC));
        copier.begin(step(2), Ok(job(b"abc", 4)?));
        copier.begin(step(3), Ok(job(b"ghijk", 2)?));
        copier.begin(step(4), Ok(job(b"lmn", 2)?));
        assert_eq!(copier.last_step(), Some(step(4)));
        let first = copier.take(&step(0)).expect("it was begun").expect("it was written");
        assert_eq!(contents(first.expect("all of it"))?, b"\0\0\0bcde");
        assert!(matches!(copier.take(&step(1)), Some(Err(Errno::NOSPC))));
        assert!(matches!(copier.take(&step(2)), Some(Ok(None))), "it is too short");
        let last = copier.take(&step(4)).expect("it was begun").expect("it was written");
        assert_eq!(contents(last.expect("all of it"))?, b"\0\0\0mn");
        assert!(copier.take(&step(3)).is_none(), "it went with what came before");
        copier.begin(step(5), Ok(job(b"opq", 2)?));
        assert!(matches!(copier.last(), Some(Ok(Some(_)))));
        copier.clear();
        assert!(copier.last_step().is_none());
        Ok(())
    }
}
