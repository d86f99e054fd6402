//! Programs of others, and what they need.

#![allow(clippy::print_stderr, reason = "a test that is skipped says why")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use agewell_snapshot::source::image::take_image;
use agewell_snapshot::{Snapshot, SnapshotError};

/// Where system administration programs lie when the path does not name them.
const PLACES: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// How often, and after which pause, an image that is busy is unmounted again: ten seconds in all.
const UNMOUNT_ATTEMPTS: u32 = 100;
const UNMOUNT_PAUSE: Duration = Duration::from_millis(100);

/// The program called `name`, if it is installed; says what is skipped without it.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let found = PLACES.iter().map(|place| Path::new(place).join(name)).find(|path| path.exists());
    if found.is_none() {
        eprintln!("skipped: {name} is not installed");
    }
    found
}

/// Whether all `names` are installed.
pub(crate) fn have(names: &[&str]) -> bool {
    names.iter().all(|name| program(name).is_some())
}

/// Runs the program `name`; what it printed.
pub(crate) fn run<S: AsRef<std::ffi::OsStr>>(name: &str, arguments: &[S]) -> String {
    let path = program(name).expect("the test asked for it before");
    let output = Command::new(path)
        .args(arguments)
        .env("LC_ALL", "C")
        .env("DEBUGFS_PAGER", "__none__")
        .output()
        .expect("an installed program starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The snapshot of the image at `path`, with names.
pub(crate) fn take(path: &Path) -> Result<Snapshot, SnapshotError> {
    take_image(path, true, &mut |_| Ok(()))
}

/// An image mounted through a loop device, until it is dropped.
pub(crate) struct Mounted {
    at: tempfile::TempDir,
}

impl Mounted {
    /// Mounts the image at `path`; says why where that is not possible (it needs root).
    pub(crate) fn new(path: &Path, options: &str) -> Option<Self> {
        let at = tempfile::tempdir().expect("a folder");
        let output = Command::new("mount")
            .args(["-o", &format!("loop,{options}")])
            .args([path, at.path()])
            .output()
            .expect("mount starts");
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            eprintln!("skipped: cannot mount an image here: {}", why.trim());
            return None;
        }
        Some(Self { at })
    }

    /// The directory it is mounted on.
    pub(crate) fn path(&self) -> &Path {
        self.at.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // The loop device goes with the mount (`mount -o loop` sets its autoclear flag). Something
        // that walks over all file systems may hold it for a moment.
        for _ in 0..UNMOUNT_ATTEMPTS {
            let output = Command::new("umount").arg(self.at.path()).output();
            if output.is_ok_and(|output| output.status.success()) {
                return;
            }
            std::thread::sleep(UNMOUNT_PAUSE);
        }
        eprintln!("{} stays busy; it is detached when it no longer is", self.at.path().display());
        let _ = Command::new("umount").arg("-l").arg(self.at.path()).status();
    }
}
