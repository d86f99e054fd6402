//! The file system that is reorganised: what it is, and whether it can be.

use std::ffi::CStr;
use std::path::{Path, PathBuf};

use agewell_snapshot::source::TakeOptions;
use agewell_snapshot::source::live::{self, DataSpace};
use agewell_snapshot::{FreeExtent, Snapshot, SnapshotError};
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags, StatxAttributes, StatxFlags,
    fstatvfs, openat, openat2, statx, syncfs,
};
use rustix::io::Errno;

use crate::file_system::{FileSystem, Identity};
use crate::kernel;
use crate::new_chunks::{ChunkSpace, chunk_bytes};
use crate::room::Room;
use crate::skip::Skip;

/// An open tree of a file system that can be reorganised.
#[derive(Debug)]
pub struct Volume {
    path: PathBuf,
    root: OwnedFd,
    file_system: FileSystem,
    block_bytes: u64,
}

impl Volume {
    /// Opens the tree at `path`, and takes a snapshot of it once what waits in memory is written.
    ///
    /// # Errors
    /// If it is no directory of a file system that can be reorganised, is mounted read-only, has
    /// others mounted below it, or this user may not.
    pub fn open(
        path: &Path,
        now_ns: i64,
        progress: &mut agewell_snapshot::source::Progress<'_>,
    ) -> Result<(Self, Snapshot), SnapshotError> {
        let shown = path.display();
        let input = |message: String| SnapshotError::Input(message);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, path, flags, Mode::empty()).map_err(|why| {
            input(format!(
                "{shown}: cannot be opened: {why}; give a directory of a mounted ext4, xfs or \
                 btrfs"
            ))
        })?;
        if let Some(below) = live::mounts_below(path).first() {
            return Err(input(format!(
                "{shown}: another file system is mounted below it, at {}; give a directory \
                 without, or unmount that",
                below.display()
            )));
        }
        if !kernel::is_root() {
            return Err(input(format!(
                "{shown}: only root can move the files of others; run it as root"
            )));
        }
        let told = fstatvfs(&root).map_err(|why| SnapshotError::io("look at", path)(why.into()))?;
        if told.f_flag.contains(StatVfsMountFlags::RDONLY) {
            return Err(input(format!(
                "{shown}: is mounted read-only; mount it for writing (mount -o remount,rw)"
            )));
        }
        let kind = live::kind_of(path)?;
        let Some(file_system) = FileSystem::named(&kind) else {
            return Err(input(format!(
                "{shown}: is on {kind}, whose files cannot be moved while it is mounted; ext4, xfs \
                 and btrfs can"
            )));
        };
        syncfs(&root).map_err(|why| SnapshotError::io("sync", path)(why.into()))?;
        let options = TakeOptions { names: true, now_ns, ..TakeOptions::default() };
        let snapshot = live::take(path, &options, progress)?;
        let volume = Self {
            path: path.to_owned(),
            root,
            file_system,
            block_bytes: u64::from(snapshot.facts.block_bytes),
        };
        volume.check_features(&snapshot)?;
        Ok((volume, snapshot))
    }

    fn check_features(&self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let shown = self.path.display();
        let refused = |why: &str| Err(SnapshotError::Input(format!("{shown}: {why}")));
        match self.file_system {
            FileSystem::Ext4 => {
                let features = snapshot.facts.parameters.get("features");
                let has = |name: &str| {
                    features.is_some_and(|all| all.split(',').any(|feature| feature == name))
                };
                if features.is_none() {
                    return refused("its superblock cannot be read; run it as root");
                }
                if !has("extent") {
                    return refused(
                        "an ext4 without extents, whose files the kernel cannot move; \
                         tune2fs -O extent, then copy the files",
                    );
                }
                if !has("has_journal") {
                    return refused(
                        "an ext4 without a journal, where a crash amid a move would lose data; \
                         tune2fs -j adds one",
                    );
                }
                if self.block_bytes < kernel::page_bytes() {
                    return refused(
                        "an ext4 whose blocks are smaller than a page of memory, which the kernel \
                         moves only to places as far from the start of a page",
                    );
                }
                if has("fast_commit") {
                    return refused(
                        "an ext4 with fast commits, which with moves lose data in a failure of power; \
                         umount it, tune2fs -O ^fast_commit",
                    );
                }
                if has("bigalloc") {
                    return refused(
                        "an ext4 with clusters (bigalloc), whose files the kernel cannot move",
                    );
                }
            }
            FileSystem::Xfs => {
                let shares = kernel::xfs_shares_blocks(&self.root).map_err(|why| {
                    SnapshotError::io("read the geometry of", &self.path)(why.into())
                })?;
                if !shares {
                    return refused(
                        "an xfs made without reflink, whose blocks cannot be handed from file to \
                         file; xfs_fsr can at least make single files whole",
                    );
                }
            }
            FileSystem::Btrfs => {
                if snapshot.facts.parameters.get("devices").is_none_or(|count| count != "1") {
                    return refused(
                        "a btrfs of several devices, where an address does not say which",
                    );
                }
                if self.data_space()?.mixed {
                    return refused(
                        "a btrfs that keeps data and metadata together (mkfs.btrfs --mixed), where \
                         held space would be wanting for metadata",
                    );
                }
            }
        }
        Ok(())
    }

    /// What it is.
    #[must_use]
    pub fn file_system(&self) -> FileSystem {
        self.file_system
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of a block.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// What of the device files can be moved to.
    ///
    /// # Errors
    /// If the file system does not tell.
    pub fn room(&self, snapshot: &Snapshot) -> Result<Room, SnapshotError> {
        if !snapshot.facts.free_map {
            return Err(SnapshotError::Input(format!(
                "{}: {} does not tell where its free space is",
                self.path.display(),
                self.file_system.name()
            )));
        }
        let run = |run: &FreeExtent| (run.physical_bytes, run.length_bytes);
        if self.file_system == FileSystem::Btrfs {
            let space = self.data_space()?;
            let free = space.free.iter().map(run).collect();
            return Ok(Room { free, reserve_bytes: 0, chunk_space: chunk_space(space) });
        }
        Ok(Room::new(snapshot.free.iter().map(run).collect()))
    }

    /// Bytes that are free for programs of any user.
    pub(crate) fn free_bytes(&self) -> Result<u64, SnapshotError> {
        let told = fstatvfs(&self.root).map_err(|why| self.failed("look at")(why))?;
        Ok(told.f_bavail.saturating_mul(told.f_frsize))
    }

    pub(crate) fn failed(&self, doing: &'static str) -> impl FnOnce(Errno) -> SnapshotError + '_ {
        move |why| SnapshotError::io(doing, &self.path)(why.into())
    }

    /// Everything that was changed is on the device from now on.
    pub(crate) fn commit(&self) -> Result<(), SnapshotError> {
        syncfs(&self.root).map_err(self.failed("sync"))
    }

    /// A file without a name in the tree: it ends with the last who has it open, also after a crash.
    pub(crate) fn nameless_file(&self) -> Result<OwnedFd, SnapshotError> {
        self.nameless().map_err(self.failed("make a file without a name on"))
    }

    /// The same.
    pub(crate) fn nameless(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        openat(&self.root, ".", flags, Mode::RUSR | Mode::WUSR)
    }

    /// Has btrfs move what is in its chunk of metadata at address `logical_bytes` to others and give the
    /// chunk up.
    pub(crate) fn empty_chunk(&self, logical_bytes: u64) -> Result<(), Errno> {
        kernel::balance_metadata_chunk(&self.root, logical_bytes)
    }

    /// Where on the device a btrfs keeps data, and what of it is free.
    pub(crate) fn data_space(&self) -> Result<DataSpace, SnapshotError> {
        DataSpace::of_btrfs(&self.root).map_err(self.failed("read the trees of"))
    }

    /// Opens the file at `relative` for moving, if it is still what `identity` says.
    pub(crate) fn open_file(
        &self,
        relative: &CStr,
        identity: &Identity,
        write: bool,
    ) -> Result<OwnedFd, Skip> {
        let access = if write { OFlags::RDWR } else { OFlags::RDONLY };
        // NONBLOCK: what was a regular file a moment ago may be a pipe that no one writes, and a
        // lease of another holds no one up.
        let flags = access
            | OFlags::NOFOLLOW
            | OFlags::NOATIME
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let opened = openat2(&self.root, relative, flags, Mode::empty(), within);
        let file = opened.map_err(|why| match why {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::NXIO => {
                Skip::Vanished
            }
            Errno::TXTBSY => Skip::Swap,
            Errno::PERM => Skip::Protected,
            _ => Skip::Unreadable,
        })?;
        let (found, attributes) = look_at(&file).map_err(|_| Skip::Unreadable)?;
        if found != *identity {
            return Err(Skip::Changed);
        }
        if let Some(why) = by_attributes(attributes) {
            return Err(why);
        }
        if self.file_system == FileSystem::Btrfs
            && kernel::attributes(&file).is_ok_and(|all| all & kernel::NO_COPY_ON_WRITE != 0)
        {
            return Err(Skip::InPlace);
        }
        Ok(file)
    }
}

/// Who a file is now, and its attributes.
pub(crate) fn look_at(
    file: impl rustix::fd::AsFd,
) -> rustix::io::Result<(Identity, StatxAttributes)> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let told = statx(file, c"", AtFlags::EMPTY_PATH, wanted)?;
    let ns = |seconds: i64, ns: u32| {
        seconds
            .checked_mul(1_000_000_000)
            .and_then(|whole| whole.checked_add(ns.into()))
            .unwrap_or(agewell_snapshot::NO_TIME)
    };
    let has_birth = told.stx_mask & StatxFlags::BTIME.bits() != 0;
    let identity = Identity {
        inode: told.stx_ino,
        birth_ns: if has_birth {
            ns(told.stx_btime.tv_sec, told.stx_btime.tv_nsec)
        } else {
            agewell_snapshot::NO_TIME
        },
        change_ns: ns(told.stx_ctime.tv_sec, told.stx_ctime.tv_nsec),
        size_bytes: told.stx_size,
    };
    Ok((identity, told.stx_attributes))
}

/// What chunks of data can be made of.
pub(crate) fn chunk_space(space: DataSpace) -> ChunkSpace {
    let unallocated = space.unallocated.iter().map(|run| (run.physical_bytes, run.length_bytes));
    ChunkSpace {
        unallocated: unallocated.collect(),
        metadata: space.metadata,
        chunk_bytes: chunk_bytes(space.device_bytes),
    }
}

fn by_attributes(attributes: StatxAttributes) -> Option<Skip> {
    let rules = [
        (StatxAttributes::IMMUTABLE.union(StatxAttributes::APPEND), Skip::Protected),
        (StatxAttributes::ENCRYPTED.union(StatxAttributes::COMPRESSED), Skip::Encoded),
        (StatxAttributes::VERITY, Skip::Sealed),
    ];
    rules.into_iter().find(|(set, _)| attributes.intersects(*set)).map(|(_, why)| why)
}
