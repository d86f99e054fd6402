//! Taking back what a killed replay did beyond its last checkpoint.
//!
//! A killed replay may have done any of the operations behind the checkpoint that it left. Were
//! they done again on top of that, a directory that was removed and made again would be removed with
//! the files that were moved into it since. So the names below the target are first made those of
//! the checkpoint: what came later is removed, what was moved goes back, directories that were
//! removed are made. Then the operations are done as for the first time.
//!
//! Two things are not taken back. Sizes and contents are left: each is set by an operation that is
//! done again, or only grew. A file that was removed cannot be had back; it is marked as missing,
//! operations leave it alone, and its removal, which must come, ends that ([`DirectoryTarget`]'s
//! `finish` says so if it does not).
//!
//! Invariant: a file lies at one place at any moment, because names are numbers and a move is one
//! system call; killed while taking back, one begins again. Cost: the tree is listed twice.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;

use super::lane::state;
use super::places::{Presence, directory_name, file_name, number_of};
use super::{DirectoryTarget, remove_below};
use crate::AgeError;

/// What one pass over the tree does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Removes files that the checkpoint does not know, which makes room for the rest.
    RemoveFiles,
    /// Moves files to where the checkpoint has them, and removes directories that it has not.
    PutBack,
}

impl DirectoryTarget {
    /// Makes the names below the target those of the operations that it was given to assume.
    pub(super) fn take_back(&mut self) -> Result<(), AgeError> {
        let mut found = vec![false; self.files.len()];
        self.pass(Pass::RemoveFiles, &mut found)?;
        for directory in 1..self.places.count() {
            self.make_again(directory)?;
        }
        self.pass(Pass::PutBack, &mut found)?;
        for (seen, found) in self.states.iter().zip(found) {
            let now = match seen.load(Ordering::Relaxed) {
                state::LIVE | state::SHORT if !found => state::MISSING,
                state::LEFTOVER if !found => state::ABSENT,
                _ => continue,
            };
            seen.store(now, Ordering::Relaxed);
        }
        Ok(())
    }

    fn pass(&mut self, pass: Pass, found: &mut [bool]) -> Result<(), AgeError> {
        let root = open_below(self.places.root(), ".").map_err(|why| self.cannot(why))?;
        self.pass_below(&root, Some(0), pass, found)
    }

    /// Goes over what is in `at`, which is `directory` of the checkpoint if it is one of its.
    fn pass_below(
        &mut self,
        at: &OwnedFd,
        directory: Option<u32>,
        pass: Pass,
        found: &mut [bool],
    ) -> Result<(), AgeError> {
        for name in names_in(at).map_err(|why| self.cannot(why))? {
            if let Some(file) = number_of(&name, b'f') {
                self.pass_file(at.as_fd(), directory, file, pass, found)?;
            } else if let Some(number) = number_of(&name, b'd') {
                let here = directory.filter(|parent| {
                    self.places.presence(number) == Presence::Live
                        && self.places.parent(number) == *parent
                });
                let name = directory_name(number);
                let below = open_below(at.as_fd(), &name).map_err(|why| self.cannot(why))?;
                self.pass_below(&below, here.map(|_| number), pass, found)?;
                if here.is_none() && pass == Pass::PutBack {
                    remove_below(below.as_fd()).map_err(|why| self.cannot(why))?;
                    rustix::fs::unlinkat(at, name.as_str(), AtFlags::REMOVEDIR)
                        .map_err(|why| self.cannot(why))?;
                }
            }
        }
        Ok(())
    }

    fn pass_file(
        &mut self,
        at: BorrowedFd<'_>,
        directory: Option<u32>,
        file: u32,
        pass: Pass,
        found: &mut [bool],
    ) -> Result<(), AgeError> {
        let mut name = String::new();
        file_name(file, &mut name);
        let seen = self.states.get(file as usize).map_or(state::ABSENT, |seen| {
            let seen = seen.load(Ordering::Relaxed);
            if seen == state::REFUSED { state::ABSENT } else { seen }
        });
        if seen == state::ABSENT {
            let removed = rustix::fs::unlinkat(at, name.as_str(), AtFlags::empty());
            return removed.map_err(|why| self.cannot(why));
        }
        if pass == Pass::RemoveFiles {
            return Ok(());
        }
        let home = self.files[file as usize].directory;
        if directory != Some(home) {
            self.places.begin_segment();
            self.places.pin(home)?;
            let moved = match self.places.descriptor(home) {
                Some(home) => rustix::fs::renameat(at, name.as_str(), home, name.as_str()),
                None => Err(Errno::NOSPC),
            };
            match moved {
                Ok(()) => {}
                // As when the workload moves it where there is no room.
                Err(Errno::NOSPC | Errno::DQUOT) => {
                    rustix::fs::unlinkat(at, name.as_str(), AtFlags::empty())
                        .map_err(|why| self.cannot(why))?;
                    self.states[file as usize].store(state::REFUSED, Ordering::Relaxed);
                    return Ok(());
                }
                Err(why) => return Err(self.cannot(why)),
            }
        }
        found[file as usize] = true;
        Ok(())
    }

    /// Makes `directory`, and first what it is in, where the checkpoint has it and it is gone.
    fn make_again(&mut self, directory: u32) -> Result<(), AgeError> {
        self.places.begin_segment();
        if self.places.presence(directory) != Presence::Live || self.places.pin(directory)? {
            return Ok(());
        }
        let parent = self.places.parent(directory);
        self.make_again(parent)?;
        self.places.begin_segment();
        self.places.pin(parent)?;
        match self.places.make(directory, parent) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            // What it is in could not be made either, or it has no room.
            Err(Errno::NOENT | Errno::NOSPC | Errno::DQUOT) => {
                self.places.set(directory, parent, Presence::Refused);
                Ok(())
            }
            Err(why) => Err(self.cannot(why)),
        }
    }

    fn cannot(&self, why: Errno) -> AgeError {
        AgeError::io("take back what was done since the checkpoint in", &self.path)(why.into())
    }
}

fn open_below(at: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

/// All names in `at`: they are read before anything there is changed.
fn names_in(at: &OwnedFd) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(at)? {
        names.push(entry?.file_name().to_bytes().to_owned());
    }
    Ok(names)
}
