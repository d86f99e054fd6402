//! Who opens files that were moved since the last commit of ext4.
//!
//! The kernel notes an exchange of extents for `fsync`, but not always for `fdatasync` and `msync`:
//! those then find nothing to commit. What is written in place and made durable so behind an exchange
//! lies in the new place, and after a failure of power the file is in the old one: it is lost, until
//! the exchange is committed by something else (Linux 6.18; of files of two extents of a block each 10
//! of 10). So a file that others can write to is made durable right behind each exchange, and where
//! one that was moved is opened all moves are.

use agewell_snapshot::SnapshotError;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::fsync;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::{self, read};

use super::kernel;
use crate::volume::Volume;

/// Watches files until all moves are committed.
#[derive(Debug, Default)]
pub(super) struct Openers {
    /// None before the first file.
    events: Option<OwnedFd>,
}

impl Openers {
    /// From now on it is noticed who opens `file`; whether that can be, and no one has it open now.
    pub(super) fn watch(&mut self, volume: &Volume, file: &OwnedFd) -> Result<bool, SnapshotError> {
        let mut added = self.add(file);
        if added.is_err() && self.watch_any() {
            // There is a most that can be watched.
            self.commit(volume)?;
            added = self.add(file);
        }
        // In this order none comes in between.
        Ok(added.is_ok() && !kernel::has_others(file))
    }

    fn add(&mut self, file: &OwnedFd) -> io::Result<()> {
        let events = if let Some(events) = &self.events {
            events
        } else {
            let made = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
            self.events.insert(made)
        };
        // The file itself, whatever has its name by now.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        inotify::add_watch(events, path, WatchFlags::OPEN).map(|_| ())
    }

    /// Whether files are watched.
    pub(super) fn watch_any(&self) -> bool {
        self.events.is_some()
    }

    /// Makes an exchange of `file` durable if others may build on it, and all if one was opened.
    pub(super) fn settle(
        &mut self,
        volume: &Volume,
        file: &OwnedFd,
        alone: bool,
    ) -> Result<(), SnapshotError> {
        if self.were_seen() {
            self.commit(volume)
        } else if alone {
            Ok(())
        } else {
            fsync(file).map_err(volume.failed("sync a file of"))
        }
    }

    /// Whether a watched file was opened.
    fn were_seen(&self) -> bool {
        let mut event = [0; 4096];
        self.events.as_ref().is_some_and(|events| read(events, &mut event).is_ok_and(|got| got > 0))
    }

    /// Commits all moves; none of the files is watched any more.
    pub(super) fn commit(&mut self, volume: &Volume) -> Result<(), SnapshotError> {
        volume.commit()?;
        self.events = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::Openers;

    /// Only what is opened while it is watched is seen.
    #[test]
    fn who_opens_a_watched_file_is_seen() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        let file = File::create(&one)?.into();
        File::create(&other)?;
        let mut openers = Openers::default();
        assert!(!openers.watch_any() && !openers.were_seen());
        openers.add(&file)?;
        File::open(&other)?;
        assert!(openers.watch_any() && !openers.were_seen());
        // By another name as well.
        std::fs::hard_link(&one, folder.path().join("link"))?;
        File::open(folder.path().join("link"))?;
        assert!(openers.were_seen());
        Ok(())
    }
}
