//! The directories below the target: where each number is, and descriptors to reach it by.
//!
//! Every path starts at a descriptor of the target's own directory and goes down one component at
//! a time without following links, so nothing outside can be reached whatever someone else puts
//! there meanwhile. At most [`OPEN_MAX`] descriptors are kept, those in use among them.

use std::collections::VecDeque;
use std::fmt::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::AgeError;

/// Directories that are kept open, chosen by us: with the open files of the lanes well below the
/// 1,024 descriptors that a process usually may have.
const OPEN_MAX: usize = 384;

/// The directory that is always there.
const ROOT: u32 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    Absent,
    Live,
    /// The workload made it, but there was no room.
    Refused,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    parent: u32,
    presence: Presence,
    /// The segment of operations that needs its descriptor.
    pinned: u32,
}

/// The directories of a target.
#[derive(Debug)]
pub(super) struct Places {
    root_path: PathBuf,
    root: OwnedFd,
    known: Vec<Place>,
    open: Vec<Option<OwnedFd>>,
    /// Open ones in the order of their opening; those closed meanwhile may still be named.
    opened: VecDeque<u32>,
    segment: u32,
    /// How many the segment needs.
    pub(super) pinned: usize,
}

/// The name of file `file` in its directory.
pub(crate) fn file_name(file: u32, name: &mut String) {
    name.clear();
    write!(name, "f{file:08x}").expect("a string takes whatever is written to it");
}

/// The name of directory `directory` in its parent.
pub(crate) fn directory_name(directory: u32) -> String {
    format!("d{directory:08x}")
}

/// The number in `name` if it is one that [`file_name`] or [`directory_name`] gives, `first` its
/// first letter.
pub(super) fn number_of(name: &[u8], first: u8) -> Option<u32> {
    let digits = name.strip_prefix(&[first])?;
    let lower = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != 8 || !digits.iter().all(lower) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Whether `name` is such as files and directories are given.
pub(super) fn is_ours(name: &[u8]) -> bool {
    number_of(name, b'f').or_else(|| number_of(name, b'd')).is_some()
}

impl Places {
    pub(super) fn new(root_path: PathBuf, root: OwnedFd) -> Self {
        let root_place = Place { parent: ROOT, presence: Presence::Live, pinned: 0 };
        Self {
            root_path,
            root,
            known: vec![root_place],
            open: vec![None],
            opened: VecDeque::new(),
            segment: 0,
            pinned: 0,
        }
    }

    /// The target's own directory.
    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Frees what the segment before needed.
    pub(super) fn begin_segment(&mut self) {
        self.segment += 1;
        self.pinned = 0;
    }

    /// Whether `directory` is there as far as is known.
    pub(super) fn presence(&self, directory: u32) -> Presence {
        self.known.get(directory as usize).map_or(Presence::Absent, |place| place.presence)
    }

    /// Takes note that `directory` is in `parent`, or would be.
    pub(super) fn set(&mut self, directory: u32, parent: u32, presence: Presence) {
        let index = directory as usize;
        if index >= self.known.len() {
            let absent = Place { parent: ROOT, presence: Presence::Absent, pinned: 0 };
            self.known.resize(index + 1, absent);
            self.open.resize_with(index + 1, || None);
        }
        self.known[index].parent = parent;
        self.known[index].presence = presence;
        self.open[index] = None;
    }

    /// One more than the highest number known.
    pub(super) fn count(&self) -> u32 {
        self.known.len() as u32
    }

    pub(super) fn parent(&self, directory: u32) -> u32 {
        self.known[directory as usize].parent
    }

    /// Those that were refused, ascending.
    pub(super) fn refused(&self) -> Vec<u32> {
        let numbered = (0_u32..).zip(&self.known);
        numbered
            .filter(|(_, place)| place.presence == Presence::Refused)
            .map(|(number, _)| number)
            .collect()
    }

    /// The descriptor of `directory` if it was asked for by [`Places::pin`] and is there.
    pub(super) fn descriptor(&self, directory: u32) -> Option<BorrowedFd<'_>> {
        if directory == ROOT {
            return Some(self.root.as_fd());
        }
        self.open.get(directory as usize)?.as_ref().map(AsFd::as_fd)
    }

    /// Opens `directory` for the segment, or finds it open. One that is not there stays closed:
    /// false.
    ///
    /// # Errors
    /// If it cannot be opened for another reason than not being there.
    pub(super) fn pin(&mut self, directory: u32) -> Result<bool, AgeError> {
        if directory == ROOT {
            return Ok(true);
        }
        if self.presence(directory) != Presence::Live {
            return Ok(false);
        }
        // Up to one that is open: it must stay so until the one below it is.
        let mut steps = Vec::new();
        let mut at = directory;
        while at != ROOT {
            steps.push(at);
            if self.open[at as usize].is_some() {
                break;
            }
            at = self.known[at as usize].parent;
        }
        for &step in steps.iter().rev() {
            if self.known[step as usize].pinned != self.segment {
                self.known[step as usize].pinned = self.segment;
                self.pinned += 1;
            }
            if self.open[step as usize].is_none() && !self.open_one(step)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn open_one(&mut self, directory: u32) -> Result<bool, AgeError> {
        self.make_room();
        let parent = self.known[directory as usize].parent;
        let Some(parent) = self.descriptor(parent) else { return Ok(false) };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(parent, directory_name(directory), flags, Mode::empty()) {
            Ok(descriptor) => {
                self.open[directory as usize] = Some(descriptor);
                self.opened.push_back(directory);
                Ok(true)
            }
            Err(Errno::NOENT) => Ok(false),
            Err(why) => Err(AgeError::io("open", &self.path(directory))(why.into())),
        }
    }

    /// Closes the one opened first that the segment does not need, if too many are open.
    fn make_room(&mut self) {
        for _ in 0..self.opened.len() {
            if self.opened.len() < OPEN_MAX {
                return;
            }
            let Some(oldest) = self.opened.pop_front() else { return };
            if self.open[oldest as usize].is_none() {
                continue;
            }
            if self.known[oldest as usize].pinned == self.segment {
                self.opened.push_back(oldest);
            } else {
                self.open[oldest as usize] = None;
            }
        }
    }

    /// Makes `directory` in `parent`, which is pinned.
    pub(super) fn make(&mut self, directory: u32, parent: u32) -> Result<(), Errno> {
        let parent = self.descriptor(parent).ok_or(Errno::NOENT)?;
        rustix::fs::mkdirat(parent, directory_name(directory), Mode::from_raw_mode(0o755))
    }

    /// Removes `directory`, whose parent is pinned.
    pub(super) fn remove(&mut self, directory: u32) -> Result<(), Errno> {
        let parent = self.descriptor(self.parent(directory)).ok_or(Errno::NOENT)?;
        let name = directory_name(directory);
        rustix::fs::unlinkat(parent, name, rustix::fs::AtFlags::REMOVEDIR)
    }

    /// Where `directory` is, for messages.
    pub(super) fn path(&self, directory: u32) -> PathBuf {
        let mut names = Vec::new();
        let mut at = directory;
        while at != ROOT && names.len() <= self.known.len() {
            names.push(directory_name(at));
            at = self.known.get(at as usize).map_or(ROOT, |place| place.parent);
        }
        let mut path = self.root_path.clone();
        path.extend(names.iter().rev());
        path
    }

    /// Where `file` of `directory` is, for messages.
    pub(super) fn file_path(&self, directory: u32, file: u32) -> PathBuf {
        let mut name = String::new();
        file_name(file, &mut name);
        self.path(directory).join(name)
    }
}
