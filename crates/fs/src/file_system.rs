//! A file system: operations by inode, for any number of threads.

mod whole;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agewell_store::device::Disk;
use agewell_store::{Store, Transaction};
use rustix::io::Errno;

use crate::attributes::Must;
use crate::core::Core;
use crate::format::{Inode, ROOT_INODE, SUPERBLOCK, Superblock};
use crate::inodes::attributes_of;
use crate::journal;
use crate::node::NodeMut;
use crate::scattered::SweepDue;
use crate::{
    Allocation, Attributes, Caller, Changes, DirectoryEntry, FsError, Laid, New, Rename, SeekTo,
    Time, attributes, directory, files, inodes, layout, namespace, orphans, scrubbing, tree,
};

/// Bytes of nodes that are kept in memory, if nothing else is said; chosen by us: those of a quarter of a
/// million small files, of which the kernel remembers what is used.
const CACHE_BYTES: u64 = 64 << 20;

/// Bytes of files that lie scattered which are read ahead, if nothing else is said; chosen by us: more is not worth a
/// limit, for it is a part of the memory to spare.
const READ_AHEAD_BYTES: u64 = 1 << 30;

/// The least blocks of a transaction with which it works; chosen by us: more than the longest operation
/// changes.
const TRANSACTION_BLOCKS_MIN: u32 = 60;

/// Bytes that are copied at once where blocks cannot be shared; chosen by us.
const COPY_BYTES: u64 = 1 << 20;

/// Entries of a directory of which attributes are read at once; chosen by us: what the kernel's buffer of a
/// page has room for, nearly.
const LISTED_AT_ONCE: usize = 32;

/// What a file system is made with.
#[derive(Debug, Clone, Copy, Default)]
pub struct MakeOptions {
    /// Whose the root is.
    pub caller: Caller,
    /// The seed of the hashes of names, which nobody should know beforehand.
    pub seed: u64,
    /// What users call it; zeros behind it.
    pub label: [u8; 32],
}

/// How it is mounted.
#[derive(Debug, Clone, Copy)]
pub struct MountOptions {
    /// Bytes of nodes that are kept in memory.
    pub cache_bytes: u64,
    /// Bytes of files that lie scattered which are read ahead, at most, and of the memory that is to spare an eighth.
    pub read_ahead_bytes: u64,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self { cache_bytes: CACHE_BYTES, read_ahead_bytes: READ_AHEAD_BYTES }
    }
}

/// How much room there is, in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Blocks in all.
    pub blocks: u64,
    /// Blocks that can still be written.
    pub free: u64,
}

/// See the module.
#[derive(Debug)]
pub struct FileSystem<D> {
    store: Arc<Store<D>>,
    core: Mutex<Core<D>>,
    pub(crate) read_ahead_bytes: u64,
}

impl<D: Disk> FileSystem<D> {
    /// Makes an empty file system in an empty `store`.
    ///
    /// # Errors
    /// If the store is too small or not empty, or fails.
    pub fn make(store: &Store<D>, options: &MakeOptions) -> Result<(), FsError> {
        let block_bytes = store.geometry().block_bytes as usize;
        if !(1024..=32_768).contains(&block_bytes) {
            return Err(FsError::Format(format!(
                "blocks of a file system have 1,024 to 32,768 bytes, not {block_bytes}"
            )));
        }
        // The longest attribute has parts of half a node, one or two in each.
        let least = TRANSACTION_BLOCKS_MIN.max(24 + 2 * 65_536 / block_bytes as u32);
        if store.transaction_blocks_max() < least {
            return Err(FsError::Format(format!(
                "segments of a file system with blocks of {block_bytes} bytes have more than {least} \
                 blocks"
            )));
        }
        if store.live_blocks() > 0 {
            return Err(FsError::Format("the store is not empty".into()));
        }
        let mut superblock = vec![0; block_bytes];
        let says = Superblock {
            seed: options.seed,
            inodes_end: ROOT_INODE + 1,
            reserved: 0,
            label: options.label,
            journal: journal::blocks_in(store, tree::ROOT + 1),
        };
        says.encode(&mut superblock);
        let mut root = vec![0; block_bytes];
        let mut node = NodeMut(&mut root);
        node.clear(0);
        let now = options.caller.now;
        let inode = Inode {
            mode: rustix::fs::FileType::Directory.as_raw_mode() | 0o755,
            links: 2,
            uid: options.caller.uid,
            gid: options.caller.gid,
            device: 0,
            flags: 0,
            size: 0,
            blocks: 0,
            accessed: now,
            modified: now,
            changed: now,
            created: now,
            parent: ROOT_INODE,
            next_entry: directory::FIRST_ENTRY,
        };
        let key = crate::format::key(ROOT_INODE, crate::format::Kind::Inode, 0);
        node.insert(0, key, &inode.encode());
        let writes = vec![(SUPERBLOCK, &*superblock), (tree::ROOT, &*root)];
        store.write(&Transaction { writes, frees: Vec::new() })?;
        Ok(store.sync()?)
    }

    /// Opens the file system in `store`, and ends what a crash has left undone.
    ///
    /// # Errors
    /// If there is none, or what describes it is damaged.
    pub fn open(store: Arc<Store<D>>, options: &MountOptions) -> Result<Self, FsError> {
        let mut core = Core::open(Arc::clone(&store), options.cache_bytes)?;
        let mut shrinking: Vec<u64> = core.shrinking.difference(&core.orphans).copied().collect();
        shrinking.sort_unstable();
        for inode in shrinking {
            while core.shrink(inode)? {}
        }
        let read_ahead_bytes = options.read_ahead_bytes;
        Ok(Self { store, core: Mutex::new(core), read_ahead_bytes })
    }

    /// What it lies on.
    #[must_use]
    pub fn store(&self) -> &Arc<Store<D>> {
        &self.store
    }

    pub(crate) fn core(&self) -> MutexGuard<'_, Core<D>> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads something of it.
    pub(crate) fn look<R>(
        &self,
        operation: impl FnOnce(&mut Core<D>) -> Result<R, FsError>,
    ) -> Result<R, FsError> {
        let mut core = self.core();
        if core.is_shut {
            return Err(Errno::IO.into());
        }
        core.blocks.drop_nodes();
        operation(&mut core)
    }

    /// Frees what lies beyond the end of a file that has become shorter, bit by bit, so that others come to
    /// their turn.
    fn shrink(&self, inode: u64) -> Result<(), FsError> {
        while self.core().shrink(inode)? {}
        Ok(())
    }

    /// Changes it, all of the operation or nothing. If there is no room, files that nobody has any more go
    /// first.
    fn change<R>(
        &self,
        mut operation: impl FnMut(&mut Core<D>) -> Result<R, FsError>,
    ) -> Result<R, FsError> {
        change(&mut self.core(), |core| core.change(&mut operation))
    }

    /// The same of the file `inode`, which it may make longer.
    fn change_file<R>(
        &self,
        inode: u64,
        mut operation: impl FnMut(&mut Core<D>) -> Result<R, FsError>,
    ) -> Result<R, FsError> {
        change(&mut self.core(), |core| core.change_file(inode, &mut operation))
    }

    // --- names ----------------------------------------------------------------------------------------

    /// The file `name` in `parent`.
    ///
    /// # Errors
    /// `ENOENT` if there is none.
    pub fn lookup(&self, parent: u64, name: &[u8]) -> Result<Attributes, FsError> {
        self.look(|core| namespace::lookup(core, parent, name))
    }

    /// Makes a file `name` in `parent`.
    ///
    /// # Errors
    /// As `mknod`, `mkdir` and `symlink`.
    pub fn make_file(
        &self,
        parent: u64,
        name: &[u8],
        new: &New<'_>,
        caller: &Caller,
    ) -> Result<Attributes, FsError> {
        self.change(|core| namespace::make(core, parent, name, new, caller))
    }

    /// Makes a file without a name, which is gone when it is [let go](Self::let_go) unless it gets one.
    ///
    /// # Errors
    /// As `open` with `O_TMPFILE`.
    pub fn make_unnamed(
        &self,
        parent: u64,
        mode: u32,
        caller: &Caller,
    ) -> Result<Attributes, FsError> {
        let mut core = self.core();
        let made = change(&mut core, |core| {
            core.change(|core| namespace::make_unnamed(core, parent, mode, caller))
        })?;
        core.orphans.insert(made.inode);
        Ok(made)
    }

    /// Gives the file `inode` the name `name` in `parent` as well.
    ///
    /// # Errors
    /// As `link`.
    pub fn link(
        &self,
        inode: u64,
        parent: u64,
        name: &[u8],
        now: Time,
    ) -> Result<Attributes, FsError> {
        let mut core = self.core();
        let made = change(&mut core, |core| {
            core.change(|core| namespace::link(core, inode, parent, name, now))
        })?;
        core.orphans.remove(&inode);
        Ok(made)
    }

    /// Takes the name of anything but a directory away. What has no other is there until it is [let
    /// go](Self::let_go).
    ///
    /// # Errors
    /// As `unlink`.
    pub fn unlink(&self, parent: u64, name: &[u8], now: Time) -> Result<Option<u64>, FsError> {
        let mut core = self.core();
        let gone = change(&mut core, |core| {
            core.change(|core| namespace::unlink(core, parent, name, now))
        })?;
        core.orphans.extend(gone);
        Ok(gone)
    }

    /// Takes an empty directory away; it is there until it is [let go](Self::let_go).
    ///
    /// # Errors
    /// As `rmdir`.
    pub fn remove_directory(&self, parent: u64, name: &[u8], now: Time) -> Result<u64, FsError> {
        let mut core = self.core();
        let gone = change(&mut core, |core| {
            core.change(|core| namespace::remove_directory(core, parent, name, now))
        })?;
        core.orphans.insert(gone);
        Ok(gone)
    }

    /// Gives the file `from` the name `to`; each is a name in a directory. The file whose last name that
    /// was, if there is one.
    ///
    /// # Errors
    /// As `renameat2`.
    pub fn rename(
        &self,
        from: (u64, &[u8]),
        to: (u64, &[u8]),
        how: Rename,
        caller: &Caller,
    ) -> Result<Option<u64>, FsError> {
        let mut core = self.core();
        let gone = change(&mut core, |core| {
            core.change(|core| namespace::rename(core, from, to, how, caller))
        })?;
        core.orphans.extend(gone);
        Ok(gone)
    }

    /// Hands what is in a directory to `see` from `cookie` on (0: the beginning), until it says false.
    ///
    /// # Errors
    /// `ENOTDIR` if it is none.
    pub fn read_directory(
        &self,
        inode: u64,
        cookie: u64,
        see: impl FnMut(&DirectoryEntry<'_>) -> bool,
    ) -> Result<(), FsError> {
        self.look(|core| namespace::read_directory(core, inode, cookie, see))
    }

    /// As [`read_directory`](Self::read_directory), each with its attributes, if they are wanted.
    ///
    /// # Errors
    /// Likewise.
    pub fn list(
        &self,
        inode: u64,
        cookie: u64,
        with_attributes: bool,
        mut see: impl FnMut(&DirectoryEntry<'_>, Option<&Attributes>) -> bool,
    ) -> Result<(), FsError> {
        if !with_attributes {
            return self.read_directory(inode, cookie, |entry| see(entry, None));
        }
        self.look(|core| {
            let mut from = cookie;
            loop {
                // Their inodes are read when the entries are not looked at any more.
                let mut some = Vec::with_capacity(LISTED_AT_ONCE);
                namespace::read_directory(core, inode, from, |entry| {
                    some.push((entry.inode, entry.file_type, entry.name.to_vec(), entry.next));
                    some.len() < LISTED_AT_ONCE
                })?;
                let is_last = some.len() < LISTED_AT_ONCE;
                for (inode, file_type, name, next) in some {
                    let found = inodes::get(core, inode)?;
                    let found = attributes_of(core, inode, &found);
                    let entry = DirectoryEntry { inode, file_type, name: &name, next };
                    if !see(&entry, Some(&found)) {
                        return Ok(());
                    }
                    from = next;
                }
                if is_last {
                    return Ok(());
                }
            }
        })
    }

    /// Where a symbolic link leads.
    ///
    /// # Errors
    /// `EINVAL` if it is none.
    pub fn link_target(&self, inode: u64) -> Result<Vec<u8>, FsError> {
        self.look(|core| inodes::link_target(core, inode))
    }

    /// Nobody has `inode` any more: it is removed if it has no name. What is large goes bit by bit, as
    /// [`work`](Self::work) is called.
    pub fn let_go(&self, inode: u64) {
        let mut core = self.core();
        if core.orphans.contains(&inode) && !core.left.contains(&inode) && !core.is_shut {
            core.left.push(inode);
            // What is small goes at once; an error is met again by who works.
            let _ = remove_left(&mut core);
        }
    }

    /// Whether something that was let go is not removed yet.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.core().left.is_empty()
    }

    /// Goes on with what was let go; whether there is more to do.
    ///
    /// # Errors
    /// If the store fails.
    pub fn work(&self) -> Result<bool, FsError> {
        let mut core = self.core();
        if core.is_shut { Ok(false) } else { remove_left(&mut core) }
    }

    // --- attributes -----------------------------------------------------------------------------------

    /// What `stat` shows.
    ///
    /// # Errors
    /// `ENOENT` if there is no such file.
    pub fn attributes(&self, inode: u64) -> Result<Attributes, FsError> {
        self.look(|core| {
            let found = inodes::get(core, inode)?;
            Ok(attributes_of(core, inode, &found))
        })
    }

    /// Changes what is said in `changes`.
    ///
    /// # Errors
    /// As `chmod`, `chown`, `truncate` and `utimensat`.
    pub fn set_attributes(
        &self,
        inode: u64,
        changes: &Changes,
        now: Time,
    ) -> Result<Attributes, FsError> {
        if let Some(size) = changes.size {
            let drops = changes.drops_privileges;
            let mut core = self.core();
            let is_left = change(&mut core, |core| {
                core.change_file(inode, |core| files::set_size(core, inode, size, drops, now))
            })?;
            if is_left {
                core.shrinking.insert(inode);
            }
            drop(core);
            self.shrink(inode)?;
        }
        let is_size_only = *changes
            == Changes {
                size: changes.size,
                drops_privileges: changes.drops_privileges,
                ..Changes::default()
            };
        if changes.size.is_some() && is_size_only {
            return self.attributes(inode);
        }
        self.change(|core| inodes::change(core, inode, changes, now))
    }

    /// An extended attribute.
    ///
    /// # Errors
    /// `ENODATA` if there is none.
    pub fn extended_attribute(&self, inode: u64, name: &[u8]) -> Result<Vec<u8>, FsError> {
        self.look(|core| attributes::get(core, inode, name))
    }

    /// The names of all extended attributes, a zero behind each.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn extended_attributes(&self, inode: u64) -> Result<Vec<u8>, FsError> {
        self.look(|core| attributes::list(core, inode))
    }

    /// Sets an extended attribute, which must be new or be there, if that is said.
    ///
    /// # Errors
    /// As `setxattr`.
    pub fn set_extended_attribute(
        &self,
        inode: u64,
        attribute: (&[u8], &[u8]),
        (be_new, be_there): (bool, bool),
        now: Time,
    ) -> Result<(), FsError> {
        let must = Must { be_new, be_there };
        self.change(|core| attributes::set(core, inode, attribute, must, now))
    }

    /// Takes an extended attribute away.
    ///
    /// # Errors
    /// `ENODATA` if there is none.
    pub fn remove_extended_attribute(
        &self,
        inode: u64,
        name: &[u8],
        now: Time,
    ) -> Result<(), FsError> {
        self.change(|core| attributes::remove(core, inode, name, now))
    }

    // --- data -----------------------------------------------------------------------------------------

    /// Fills `into` with what `inode` has from `offset` on; how many bytes that are. If the file lies scattered, what is
    /// left of it may be read ahead.
    ///
    /// # Errors
    /// If it is no file, or is damaged there.
    pub fn read(&self, inode: u64, offset: u64, into: &mut [u8]) -> Result<usize, FsError> {
        let (bytes, due) = self.read_noting(inode, offset, into)?;
        if let Some(due) = due {
            // What cannot be read is left to who asks for it.
            let _ = self.sweep(due, || true);
        }
        Ok(bytes)
    }

    /// The same, without reading ahead: the [sweep](Self::sweep) that is due is the caller's, who must make it.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_noting(
        &self,
        inode: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<(usize, Option<SweepDue>), FsError> {
        self.look(|core| files::read(core, inode, offset, into))
    }

    /// Writes `data` from `offset` on; how many bytes were written: fewer if there is room for some only.
    ///
    /// # Errors
    /// As `pwrite`.
    pub fn write(
        &self,
        inode: u64,
        offset: u64,
        data: &[u8],
        drops_privileges: bool,
        now: Time,
    ) -> Result<usize, FsError> {
        let core = self.core();
        let block_bytes = core.blocks.block_bytes();
        let mut blocks_max = core.blocks.transaction_blocks() / 2;
        drop(core);
        let mut written = 0;
        while written < data.len() {
            let at = offset.saturating_add(written as u64);
            // Up to the end of a block.
            let within = (at % block_bytes as u64) as usize;
            let bytes = (blocks_max * block_bytes - within).min(data.len() - written);
            let piece = &data[written..written + bytes];
            let done = self.change_file(inode, |core| {
                files::write(core, inode, (at, piece), drops_privileges, now)
            });
            match done {
                Ok(()) => written += bytes,
                Err(FsError::Large | FsError::Errno(Errno::NOSPC)) if blocks_max > 1 => {
                    blocks_max /= 2;
                }
                Err(_) if written > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }

    /// Allocates, punches or zeroes `bytes` bytes of a file from `offset` on; with the rights that whoever
    /// does so does not keep.
    ///
    /// # Errors
    /// As `fallocate`.
    pub fn allocate(
        &self,
        inode: u64,
        (offset, bytes): (u64, u64),
        what: Allocation,
        drops_privileges: bool,
        now: Time,
    ) -> Result<(), FsError> {
        let end = offset.checked_add(bytes).filter(|end| *end <= crate::FILE_BYTES_MAX);
        let end = end.ok_or(FsError::Errno(Errno::FBIG))?;
        if bytes == 0 {
            return Err(Errno::INVAL.into());
        }
        let range = (offset, end);
        if what == Allocation::Punch {
            let zero =
                |core: &mut Core<D>| files::zero_small(core, inode, range, drops_privileges, now);
            if self.change(zero)? {
                return Ok(());
            }
        } else {
            self.change_file(inode, |core| files::check_promise(core, inode, range, what))?;
        }
        self.change(|core| files::spread(core, inode))?;
        let begin = |core: &mut Core<D>| {
            files::begin_allocation(core, inode, (range, what), drops_privileges, now)
        };
        let blocks = self.change(begin)?;
        if !matches!(what, Allocation::Allocate { .. }) {
            let (mut from, stay) = (blocks.0, what != Allocation::Punch);
            while from < blocks.1 {
                let rest = (from, blocks.1);
                from = self.change(|core| files::punch(core, inode, rest, stay))?;
            }
        }
        if what != Allocation::Punch {
            let mut from = blocks.0;
            while from < blocks.1 {
                from = self.change(|core| files::promise(core, inode, (from, blocks.1)))?;
            }
        }
        match what {
            Allocation::Allocate { extends: true } | Allocation::Zero { extends: true } => {
                self.change(|core| files::extend(core, inode, end))
            }
            _ => Ok(()),
        }
    }

    /// Where the next data or hole of a file is, from `offset` on.
    ///
    /// # Errors
    /// `ENXIO` if there is none.
    pub fn seek(&self, inode: u64, offset: u64, to: SeekTo) -> Result<u64, FsError> {
        self.look(|core| files::seek(core, inode, offset, to))
    }

    /// Copies up to `bytes` bytes of a file into another, or elsewhere into itself, whole blocks by sharing
    /// them; how many. With the rights that whoever copies does not keep.
    ///
    /// # Errors
    /// As `copy_file_range`.
    pub fn copy(
        &self,
        (from, from_offset): (u64, u64),
        (to, to_offset): (u64, u64),
        bytes: u64,
        drops_privileges: bool,
        now: Time,
    ) -> Result<u64, FsError> {
        let source = self.look(|core| {
            inodes::file(core, to)?;
            inodes::file(core, from)
        })?;
        let bytes = bytes.min(source.size.saturating_sub(from_offset));
        let end = to_offset.checked_add(bytes).filter(|end| *end <= crate::FILE_BYTES_MAX);
        end.ok_or(FsError::Errno(Errno::FBIG))?;
        let overlap =
            from == to && from_offset < to_offset + bytes && to_offset < from_offset + bytes;
        if overlap && bytes > 0 {
            return Err(Errno::INVAL.into());
        }
        let block_bytes = u64::from(self.store.geometry().block_bytes);
        let mut copied = 0;
        while copied < bytes {
            let (from_at, to_at) = (from_offset + copied, to_offset + copied);
            let blocks = (bytes - copied) / block_bytes;
            let can_share = from_at % block_bytes == 0 && to_at % block_bytes == 0 && blocks > 0;
            let shared = if can_share {
                let (source, target) = ((from, from_at / block_bytes), (to, to_at / block_bytes));
                let shared = self.change_file(to, |core| {
                    let shared =
                        files::share(core, source, target, (blocks, drops_privileges), now)?;
                    if shared > 0 {
                        files::extend(core, to, to_at + shared * block_bytes)?;
                    }
                    Ok(shared)
                });
                match shared {
                    Err(_) if copied > 0 => return Ok(copied),
                    shared => shared?,
                }
            } else {
                0
            };
            if shared > 0 {
                copied += shared * block_bytes;
                continue;
            }
            let mut data = vec![0; (bytes - copied).min(COPY_BYTES) as usize];
            let read = self.read(from, from_at, &mut data)?;
            match self.write(to, to_at, &data[..read], drops_privileges, now) {
                Ok(0) => return Ok(copied),
                Ok(written) => copied += written as u64,
                Err(_) if copied > 0 => return Ok(copied),
                Err(error) => return Err(error),
            }
        }
        Ok(copied)
    }

    /// Where the data of a file lies from the byte `from` on, at most `most` pieces.
    ///
    /// # Errors
    /// If it is no file, or is damaged.
    pub fn layout(&self, inode: u64, from: u64, most: usize) -> Result<Vec<Laid>, FsError> {
        self.look(|core| layout::of_file(core, inode, from, most))
    }

    /// Reads up to `count` blocks of all kinds from number `first` on against their checksums; the damaged
    /// ones, and where to go on, if there are more.
    ///
    /// # Errors
    /// If the store fails in a way that is no damage.
    pub fn scrub(&self, first: u32, count: u32) -> Result<(Vec<u32>, Option<u32>), FsError> {
        let blocks = self.store.geometry().blocks;
        let count = count.min(blocks.saturating_sub(first));
        let damaged = scrubbing::of_store(&self.store, first, count)?;
        Ok((damaged, Some(first + count).filter(|next| *next < blocks)))
    }

    /// The same for up to `most` blocks of a file from the byte `from` on; the bytes at which damaged ones
    /// begin.
    ///
    /// # Errors
    /// Likewise, and if it is no file.
    pub fn scrub_file(
        &self,
        inode: u64,
        from: u64,
        most: u64,
    ) -> Result<(Vec<u64>, Option<u64>), FsError> {
        self.look(|core| scrubbing::of_file(core, inode, from, most))
    }
}

/// Carries `operation` out. If there is no room, files that nobody has any more go first.
fn change<D: Disk, R>(
    core: &mut Core<D>,
    mut operation: impl FnMut(&mut Core<D>) -> Result<R, FsError>,
) -> Result<R, FsError> {
    match operation(core) {
        Err(FsError::Errno(Errno::NOSPC)) if !core.left.is_empty() => {
            while remove_left(core)? {}
            operation(core)
        }
        done => done,
    }
}

/// Removes some of what was let go; whether there is more.
fn remove_left<D: Disk>(core: &mut Core<D>) -> Result<bool, FsError> {
    let Some(inode) = core.left.last().copied() else { return Ok(false) };
    match core.change(|core| orphans::remove_some(core, inode)) {
        Ok(true) => {}
        Ok(false) => {
            core.left.pop();
            core.orphans.remove(&inode);
            core.shrinking.remove(&inode);
        }
        // What is damaged stays as it is, and the others go nevertheless; `fsck` finds it.
        Err(FsError::File { .. } | FsError::Structure { .. } | FsError::Errno(Errno::NOENT)) => {
            core.left.pop();
        }
        Err(error) => return Err(error),
    }
    Ok(!core.left.is_empty())
}
