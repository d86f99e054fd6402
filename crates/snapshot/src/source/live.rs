//! Snapshots of mounted trees: any file system with FIEMAP.
//!
//! A walk lists every directory and asks for the extents of every file ([`walk`]); then the file
//! system is asked what is free and what it is. Nothing is written: files and directories are
//! opened for reading only, and delayed data stays where it is unless `sync` asks for its place.
//!
//! What a file system does not report is left out and said so in the facts, never made up: without
//! root there is no free map on most systems (`free_map` is false) and, on ext4, no group size (0).
//!
//! Source: the method of the layout score on mounted systems is Smith & Seltzer 1996, section 3.3;
//! they read the block addresses from the inodes of the raw device.

mod btrfs;
mod checkpoint;
mod ext;
mod extent_attribute;
mod extent_map;
mod found;
mod free_map;
pub mod ioctl;
mod kernel;
mod listing;
mod mount;
mod settled_inodes;
mod status;
mod walk;

use std::path::Path;
use std::sync::Arc;

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, StatFs, fstatfs, openat};
use rustix::io::Errno;

pub use self::btrfs::{DataSpace, MetadataChunk};
use self::checkpoint::{Finished, Identity};
pub use self::extent_map::{ExtentMap, is_unsupported};
use self::kernel::XfsGeometry;
use self::mount::Mount;
pub use self::mount::mounts_below;
use self::settled_inodes::SettledInodes;
use self::status::Status;
use self::walk::{Walk, settled_ns};
use super::{Progress, TakeOptions};
use crate::{FileSystemFacts, FreeExtent, Snapshot, SnapshotError};

/// Takes a snapshot of the mounted tree at `path`.
///
/// # Errors
/// If `path` is no directory, its file system does not report where files lie, `progress` asks to
/// stop, or the checkpoint cannot be used. Single files that cannot be read are counted instead.
pub fn take(
    path: &Path,
    options: &TakeOptions,
    progress: &mut Progress<'_>,
) -> Result<Snapshot, SnapshotError> {
    let tree = Tree::open(path)?;
    let mut facts = tree.facts()?;
    let identity = Identity {
        kind: facts.kind.clone(),
        total_bytes: facts.total_bytes,
        inode: tree.status.inode,
        birth_ns: tree.status.birth_ns,
        names: options.names,
        sync: options.sync,
    };
    let opened = options.checkpoint.as_ref();
    let opened = opened.map(|at| checkpoint::open(at, &identity, options.now_ns)).transpose()?;
    let none = Finished::new();
    let settled = (!options.calls_only)
        .then(|| SettledInodes::open(path, &tree.status, &tree.mount, settled_ns()));
    let settled = settled.flatten();
    let walk = Walk {
        path,
        kind: &facts.kind,
        names: options.names,
        sync: options.sync,
        threads: options.threads.unwrap_or_else(processors),
        block_bytes: facts.block_bytes.into(),
        realtime: facts.parameters.contains_key("realtime_bytes"),
        files_in_all: tree.files_in_all(),
        settled: settled.as_ref(),
        finished: opened.as_ref().map_or(&none, |opened| &opened.finished),
        record: opened.as_ref().map(|opened| &opened.record),
    };
    let parts = walk.run(&tree.root, &tree.status, progress)?;
    let mut snapshot = found::assemble(&parts, options.names)?;
    drop(parts);
    facts.taken_ns = opened.as_ref().map_or(options.now_ns, |opened| opened.now_ns);
    if opened.is_some_and(|opened| opened.resumed) {
        facts.parameters.insert("resumed".to_owned(), "true".to_owned());
    }
    tree.describe_free(&mut facts, &mut snapshot)?;
    facts.vanished = snapshot.facts.vanished;
    facts.changed = snapshot.facts.changed;
    facts.unreadable = snapshot.facts.unreadable;
    facts.parameters.append(&mut snapshot.facts.parameters);
    snapshot.facts = facts;
    Ok(snapshot)
}

/// The kind of the file system that the directory `path` is on, as `/proc/filesystems` names it.
///
/// # Errors
/// If `path` is no directory that can be opened.
pub fn kind_of(path: &Path) -> Result<String, SnapshotError> {
    Tree::open(path).map(|tree| tree.mount.kind)
}

/// What is free of the file system that the directory `path` is on, by `GETFSMAP`; `None` if it does
/// not report that.
///
/// # Errors
/// If `path` is no directory that can be opened, or the map cannot be read.
pub fn free_space(path: &Path) -> Result<Option<Vec<FreeExtent>>, SnapshotError> {
    let tree = Tree::open(path)?;
    free_map::read(&*tree.root, tree.mount.device())
        .map_err(|why| SnapshotError::io("read the free-space map of", path)(why.into()))
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// An open tree and what is known of the file system below it.
struct Tree<'a> {
    path: &'a Path,
    root: Arc<OwnedFd>,
    status: Status,
    mount: Mount,
    told: StatFs,
}

impl<'a> Tree<'a> {
    fn open(path: &'a Path) -> Result<Self, SnapshotError> {
        let input = |why: Errno| {
            SnapshotError::Input(format!(
                "{}: cannot be opened: {why}; give a directory that you may read",
                path.display()
            ))
        };
        // Links are followed here and nowhere else: it is what the user named.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = match openat(CWD, path, flags | OFlags::NOATIME, Mode::empty()) {
            Err(Errno::PERM) => openat(CWD, path, flags, Mode::empty()),
            result => result,
        }
        .map_err(input)?;
        let status = Status::of_open(&root).map_err(input)?;
        let told = fstatfs(&root).map_err(input)?;
        let mount = Mount::of(&status).ok_or_else(|| {
            SnapshotError::Run(format!(
                "{}: /proc/self/mountinfo does not name its file system; mount /proc",
                path.display()
            ))
        })?;
        if mount.kind == "overlay" {
            return Err(SnapshotError::Input(format!(
                "{}: an overlay has no place of its own; give the trees that it lies over",
                path.display()
            )));
        }
        Ok(Self { path, root: Arc::new(root), status, mount, told })
    }

    /// How many inodes are in use, if the whole file system is walked and says so.
    fn files_in_all(&self) -> Option<u64> {
        let used = self.told.f_files.checked_sub(self.told.f_ffree).filter(|&used| used > 0);
        used.filter(|_| self.mount.is_whole(self.path))
    }

    /// What is known before the walk.
    fn facts(&self) -> Result<FileSystemFacts, SnapshotError> {
        let number = |value: i64| u64::try_from(value).unwrap_or(0);
        let unit = number(self.told.f_frsize).max(1);
        let block_bytes = u32::try_from(self.told.f_bsize).ok().filter(|&bytes| bytes > 0);
        let block_bytes = block_bytes.ok_or_else(|| {
            SnapshotError::Input(format!(
                "{}: {} says that its blocks have {} bytes; give a tree on another file system",
                self.path.display(),
                self.mount.kind,
                self.told.f_bsize
            ))
        })?;
        let mut facts = FileSystemFacts {
            kind: self.mount.kind.clone(),
            block_bytes,
            fragment_bytes: block_bytes,
            total_bytes: self.told.f_blocks.saturating_mul(unit),
            free_bytes: self.told.f_bfree.saturating_mul(unit),
            ..FileSystemFacts::default()
        };
        if !self.mount.is_whole(self.path) {
            let inode = self.status.inode.to_string();
            facts.parameters.insert("subtree".to_owned(), format!("inode {inode}"));
        }
        match facts.kind.as_str() {
            "ext2" | "ext3" | "ext4" => {
                let device = self.mount.open_device();
                let told = device.and_then(|device| ext::describe(&device, &mut facts));
                if told.is_none() {
                    let note = "not told: the superblock can be read by root only";
                    facts.parameters.insert("group_size".to_owned(), note.to_owned());
                }
            }
            "xfs" => self.describe_xfs(&mut facts)?,
            _ => {}
        }
        Ok(facts)
    }

    fn describe_xfs(&self, facts: &mut FileSystemFacts) -> Result<(), SnapshotError> {
        let told = XfsGeometry::of(&*self.root)
            .map_err(|why| SnapshotError::io("read the geometry of", self.path)(why.into()))?;
        let block_bytes = u64::from(told.block_bytes);
        facts.block_bytes = told.block_bytes;
        facts.fragment_bytes = told.block_bytes;
        facts.total_bytes = told.data_blocks.saturating_mul(block_bytes);
        facts.group_bytes = u64::from(told.group_blocks) * block_bytes;
        let mut set = |name: &str, value: u64| {
            facts.parameters.insert(name.to_owned(), value.to_string());
        };
        set("allocation_groups", told.groups.into());
        set("inode_bytes", told.inode_bytes.into());
        if told.log_start > 0 {
            set("log_bytes", u64::from(told.log_blocks) * block_bytes);
        }
        if told.realtime_blocks > 0 {
            set("realtime_bytes", told.realtime_blocks.saturating_mul(block_bytes));
        }
        Ok(())
    }

    /// Adds what is free, and all that changes addresses.
    fn describe_free(
        &self,
        facts: &mut FileSystemFacts,
        snapshot: &mut Snapshot,
    ) -> Result<(), SnapshotError> {
        if facts.kind == "btrfs" {
            return btrfs::describe(&*self.root, facts, snapshot)
                .map_err(|why| SnapshotError::io("read the trees of", self.path)(why.into()));
        }
        let free = free_map::read(&*self.root, self.mount.device()).map_err(|why| {
            SnapshotError::io("read the free-space map of", self.path)(why.into())
        })?;
        facts.free_map = free.is_some();
        snapshot.free = free.unwrap_or_default();
        Ok(())
    }
}
