//! A mount that is served by this process, and taken away at the end of a test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use agewell_fuse::mount::{self, LoopDevice, MountError, MountKind, MountOptions};
use agewell_fuse::{Options, Session, SessionError};
use rustix::mount::{MountFlags, UnmountFlags};
use tempfile::TempDir;

use crate::in_memory::{Asked, Behaviour, InMemory};

pub(crate) const BEHAVIOUR: Behaviour =
    Behaviour { capacity: 1 << 30, sync_takes: Duration::ZERO, loses_replies: false };

/// A request that nobody answers would hang the test for ever, and with it whoever looks at its process,
/// since the kernel waits for this very process. Chosen by us: 30 times what the longest test takes.
const LONGEST: Duration = Duration::from_secs(60);

pub(crate) struct Place {
    file_system: Arc<InMemory>,
    served: Option<JoinHandle<Result<(), SessionError>>>,
    point: PathBuf,
    /// Dropped when the test is over.
    _is_alive: Sender<()>,
    /// Removed after the mount is gone.
    _folder: TempDir,
}

/// How a place is mounted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct With {
    pub(crate) behaviour: Behaviour,
    pub(crate) threads: usize,
    pub(crate) is_block: bool,
}

pub(crate) const PLAIN: With = With { behaviour: BEHAVIOUR, threads: 1, is_block: false };

impl Place {
    /// `None`, with the reason printed, where nothing can be mounted.
    pub(crate) fn new(with: With) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let point = folder.path().join("mount point");
        std::fs::create_dir(&point).unwrap();
        let connection = if with.is_block {
            let image = folder.path().join("image");
            File::create(&image).unwrap().set_len(1 << 20).unwrap();
            let attached = LoopDevice::attach(&image, false).map_err(skipped).ok()?;
            let kind = MountKind::Block { block_size: 4096 };
            mount::mount(&point, &options(attached.path(), kind))
        } else {
            mount::mount(&point, &options(Path::new("memory"), MountKind::Plain))
        };
        let connection = connection.map_err(skipped).ok()?;
        let file_system = Arc::new(InMemory::new(with.behaviour));
        let options = Options { threads: with.threads, ..Options::default() };
        let served = std::thread::spawn({
            let file_system = Arc::clone(&file_system);
            move || Session::new(connection, options).run(&*file_system)
        });
        let is_alive = end_after(LONGEST, point.clone());
        Some(Self {
            file_system,
            served: Some(served),
            point,
            _is_alive: is_alive,
            _folder: folder,
        })
    }

    pub(crate) fn plain() -> Option<Self> {
        Self::new(PLAIN)
    }

    pub(crate) fn point(&self) -> &Path {
        &self.point
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.point.join(name)
    }

    pub(crate) fn asked(&self) -> Asked {
        self.file_system.asked()
    }

    /// Unmounts, and says what was asked until `umount` was back, and how the session ended.
    pub(crate) fn unmounted(mut self) -> (Asked, Result<(), SessionError>) {
        self.unmount();
        let asked = self.asked();
        (asked, self.served.take().unwrap().join().unwrap())
    }

    /// A process that another test is just about to run has our files open until it runs.
    fn unmount(&self) {
        loop {
            match mount::unmount(&self.point, UnmountFlags::empty()) {
                Err(MountError::Busy(_)) => std::thread::yield_now(),
                unmounted => return unmounted.unwrap(),
            }
        }
    }

    /// Unmounts, and gives the file system when the session is over.
    pub(crate) fn unmounted_later(mut self) -> Arc<InMemory> {
        self.unmount();
        self.served.take().unwrap().join().unwrap().unwrap();
        Arc::clone(&self.file_system)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(served) = self.served.take() {
            let _ = mount::unmount(&self.point, UnmountFlags::DETACH);
            // A test that has failed must not wait for one that cannot end.
            if !std::thread::panicking() {
                served.join().unwrap().unwrap();
            }
        }
    }
}

/// Cuts the connection to the kernel unless what is given back is dropped before.
fn end_after(time: Duration, point: PathBuf) -> Sender<()> {
    let (is_alive, ended) = mpsc::channel();
    std::thread::spawn(move || {
        if ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
            println!("a test on {} takes too long; its mount ends", point.display());
            let _ = mount::unmount(&point, UnmountFlags::FORCE | UnmountFlags::DETACH);
        }
    });
    is_alive
}

pub(crate) fn options(source: &Path, kind: MountKind) -> MountOptions {
    MountOptions {
        source: source.into(),
        kind,
        read_only: false,
        allow_other: true,
        without: MountFlags::empty(),
    }
}

/// Says why, if it is that this user or this machine cannot; anything else is an error.
pub(crate) fn skipped(error: MountError) {
    match error {
        MountError::Device(_) | MountError::NotAllowed(_) | MountError::Program { .. } => {
            println!("skipped: {error}");
        }
        error => panic!("{error}"),
    }
}
