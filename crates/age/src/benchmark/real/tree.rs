//! The files of one benchmark, below a directory of its own that goes away with it.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::AgeError;
use crate::benchmark::SequentialPlan;
use crate::onto::directory::remove_below;

/// The benchmark's own directory.
const NAME: &str = "agewell-bench";

/// Directories for the files of a plan.
#[derive(Debug)]
pub(super) struct Tree {
    path: PathBuf,
    root: OwnedFd,
    directories: Vec<OwnedFd>,
    files_per_directory: u32,
    removed: bool,
}

impl Tree {
    /// Makes the directories of `plan` below `root`, which is at `path`.
    pub(super) fn make(
        path: &Path,
        root: &OwnedFd,
        plan: &SequentialPlan,
    ) -> Result<Self, AgeError> {
        let place = path.join(NAME);
        let fail = |why: Errno| AgeError::io("make", &place)(why.into());
        match rustix::fs::mkdirat(root, NAME, Mode::from_raw_mode(0o755)) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                return Err(AgeError::Input(format!(
                    "{}: left by another benchmark, or one is running; remove it first",
                    place.display()
                )));
            }
            Err(why) => return Err(fail(why)),
        }
        let root = rustix::io::dup(root).map_err(fail)?;
        let mut tree = Self {
            path: place.clone(),
            root,
            directories: Vec::new(),
            files_per_directory: plan.files_per_directory,
            removed: false,
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let own = rustix::fs::openat(&tree.root, NAME, flags, Mode::empty()).map_err(fail)?;
        for number in 0..plan.directories() {
            let name = format!("d{number:05}");
            rustix::fs::mkdirat(&own, &name, Mode::from_raw_mode(0o755)).map_err(fail)?;
            if tree.directories.len() < DIRECTORIES_OPEN_MAX {
                let made = rustix::fs::openat(&own, &name, flags, Mode::empty()).map_err(fail)?;
                tree.directories.push(made);
            }
        }
        tree.directories.push(own);
        Ok(tree)
    }

    /// The descriptor and the name below it that lead to file `number`.
    fn place(&self, number: u32) -> (&OwnedFd, String) {
        let directory = (number / self.files_per_directory) as usize;
        let open = self.directories.len() - 1;
        if directory < open {
            (&self.directories[directory], format!("f{number:05}"))
        } else {
            (&self.directories[open], format!("d{directory:05}/f{number:05}"))
        }
    }

    pub(super) fn create(&self, number: u32) -> Result<OwnedFd, AgeError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        self.open(number, flags).map_err(|why| match why {
            AgeError::Io { why, .. } if why.kind() == std::io::ErrorKind::StorageFull => {
                AgeError::Run(format!(
                    "{}: no room for the files of the benchmark; use smaller --bytes, or make room",
                    self.path.display()
                ))
            }
            other => other,
        })
    }

    pub(super) fn open(&self, number: u32, flags: OFlags) -> Result<OwnedFd, AgeError> {
        let (directory, name) = self.place(number);
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::openat(directory, &name, flags, Mode::from_raw_mode(0o644))
            .map_err(|why| self.failed("open", number, why))
    }

    /// The error of file `number`.
    pub(super) fn failed(&self, doing: &'static str, number: u32, why: Errno) -> AgeError {
        let directory = number / self.files_per_directory;
        let path = self.path.join(format!("d{directory:05}/f{number:05}"));
        AgeError::io(doing, &path)(why.into())
    }

    /// Removes everything.
    pub(super) fn remove(mut self) -> Result<(), AgeError> {
        self.take_away().map_err(|why| AgeError::io("remove", &self.path)(why.into()))
    }

    fn take_away(&mut self) -> Result<(), Errno> {
        self.removed = true;
        let own = self.directories.last().ok_or(Errno::NOENT)?;
        remove_below(own.as_fd())?;
        rustix::fs::unlinkat(&self.root, NAME, rustix::fs::AtFlags::REMOVEDIR)
    }
}

/// Directories that are kept open, chosen by us: well below the 1,024 descriptors that a process
/// usually may have. A file in another is reached by one component more.
const DIRECTORIES_OPEN_MAX: usize = 512;

impl Drop for Tree {
    fn drop(&mut self) {
        if !self.removed {
            // The error that led here is the one to report.
            let _ = self.take_away();
        }
    }
}
