//! A whole file system in memory: the least that a file system in user space can take.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agewell_fs::access_list;
use agewell_fuse::{
    Attributes, Caller, Command, Copy, DataReply, DirectorySink, Entry, Errno, FileSystem, Make,
    ROOT, Read, Reply, Seek, Sent, SetAttributes, SetTime, Space, Write,
};
use rustix::fs::{FallocateFlags, FileType, RenameFlags, XattrFlags};

use crate::contents::{Contents, PAGE};
use crate::tree::{Body, COOKIES_RESERVED, Inode, NAME_MAX, Tree, new_directory, now};

/// `FITRIM`: a range in and out, of which the length becomes what was trimmed.
const TRIM: u32 = 0xc018_5879;

/// `XFS_IOC_GOINGDOWN`, as it is called on other file systems as well.
const SHUT_DOWN: u32 = 0x8004_587d;

/// The longest value of an extended attribute, bytes, as the kernel has it.
const VALUE_MAX: usize = 65536;

/// How it behaves, for tests of the session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Behaviour {
    /// Bytes that fit.
    pub(crate) capacity: u64,
    /// How long it takes to be durable, at the end as well.
    pub(crate) sync_takes: Duration,
    /// Never answers when it is asked to be durable.
    pub(crate) loses_replies: bool,
}

/// What it was asked, for tests of the session.
#[derive(Debug, Default, Clone)]
#[allow(dead_code, reason = "the example does not look at them")]
pub(crate) struct Asked {
    /// Answered, of a file or a directory.
    pub(crate) syncs: u64,
    /// Answered, of everything.
    pub(crate) all_syncs: u64,
    /// The end of the mount, answered.
    pub(crate) ends: u64,
    pub(crate) longest_read: usize,
    pub(crate) longest_write: usize,
    /// Looked up or listed with attributes.
    pub(crate) lookups: u64,
    /// Values of extended attributes.
    pub(crate) attribute_reads: u64,
    /// That there are, the root among them.
    pub(crate) inodes: u64,
}

#[derive(Debug)]
struct State {
    tree: Tree,
    asked: Asked,
    is_shut_down: bool,
}

/// See above. One lock, and nothing that waits.
#[derive(Debug)]
pub(crate) struct InMemory {
    state: Arc<Mutex<State>>,
    behaviour: Behaviour,
}

impl InMemory {
    pub(crate) fn new(behaviour: Behaviour) -> Self {
        let tree = Tree::new();
        let state = State { tree, asked: Asked::default(), is_shut_down: false };
        Self { state: Arc::new(Mutex::new(state)), behaviour }
    }

    /// What it was asked so far.
    #[allow(dead_code, reason = "for the tests")]
    pub(crate) fn asked(&self) -> Asked {
        let state = lock(&self.state);
        Asked { inodes: state.tree.len(), ..state.asked.clone() }
    }

    fn state(&self) -> Result<MutexGuard<'_, State>, Errno> {
        let state = self.state.lock().map_err(|_| Errno::IO)?;
        if state.is_shut_down { Err(Errno::IO) } else { Ok(state) }
    }

    /// Answers from another thread, as a file system on a disk does, and counts it before.
    fn answer_later(&self, reply: Reply, count: fn(&mut Asked) -> &mut u64) {
        let Behaviour { sync_takes, loses_replies, .. } = self.behaviour;
        if loses_replies {
            return;
        }
        if sync_takes.is_zero() {
            *count(&mut lock(&self.state).asked) += 1;
            return reply.answer(Ok(()));
        }
        let state = Arc::clone(&self.state);
        std::thread::spawn(move || {
            std::thread::sleep(sync_takes);
            *count(&mut lock(&state).asked) += 1;
            reply.answer(Ok(()));
        });
    }

    fn has_room(&self, state: &State, pages: u64) -> Result<(), Errno> {
        let used = state.tree.pages_used + pages;
        if used * PAGE as u64 > self.behaviour.capacity { Err(Errno::NOSPC) } else { Ok(()) }
    }

    fn made(&self, make: impl FnOnce(&mut Tree) -> Result<u64, Errno>) -> Result<Entry, Errno> {
        let mut state = self.state()?;
        self.has_room(&state, 1)?;
        let number = make(&mut state.tree)?;
        state.tree.entry(number)
    }

    fn remove(&self, parent: u64, name: &[u8], is_directory: bool) -> Result<(), Errno> {
        let mut state = self.state()?;
        let number = found(&mut state.tree, parent, name)?;
        match &state.tree.inode(number)?.body {
            Body::Directory(_) if !is_directory => return Err(Errno::ISDIR),
            Body::Directory(directory) if !directory.is_empty() => return Err(Errno::NOTEMPTY),
            Body::Directory(_) => {}
            _ if is_directory => return Err(Errno::NOTDIR),
            _ => {}
        }
        state.tree.detach(parent, name)?;
        state.tree.release(number);
        Ok(())
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn found(tree: &mut Tree, parent: u64, name: &[u8]) -> Result<u64, Errno> {
    if name.len() > NAME_MAX {
        return Err(Errno::NAMETOOLONG);
    }
    tree.directory(parent)?.get(name).ok_or(Errno::NOENT)
}

/// Changes the contents of a file, and keeps count of the pages.
fn changed<T>(
    tree: &mut Tree,
    number: u64,
    change: impl FnOnce(&mut Inode) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let inode = tree.inode(number)?;
    let before = inode.file()?.pages();
    let result = change(inode);
    let after = inode.file()?.pages();
    tree.pages_used = tree.pages_used + after - before;
    result
}

impl FileSystem for InMemory {
    fn lookup(&self, _: &Caller, parent: u64, name: &[u8]) -> Result<Entry, Errno> {
        let mut state = self.state()?;
        state.asked.lookups += 1;
        let number = match name {
            b"." => parent,
            b".." => state.tree.directory(parent)?.parent,
            name => found(&mut state.tree, parent, name)?,
        };
        state.tree.entry(number)
    }

    fn forget(&self, inode: u64, count: u64) {
        let mut state = lock(&self.state);
        state.tree.forget(inode, count);
    }

    fn attributes(&self, _: &Caller, inode: u64) -> Result<Attributes, Errno> {
        let state = self.state()?;
        Ok(state.tree.shared(inode)?.attributes())
    }

    fn set_attributes(
        &self,
        _: &Caller,
        inode: u64,
        set: &SetAttributes,
    ) -> Result<Attributes, Errno> {
        let mut state = self.state()?;
        let now = now();
        if let Some(size) = set.size {
            changed(&mut state.tree, inode, |inode| {
                let before = inode.attributes.size;
                if size < before {
                    inode.file()?.punch(size, before);
                }
                inode.attributes.size = size;
                inode.attributes.modified = now;
                Ok(())
            })?;
        }
        let changed = state.tree.inode(inode)?;
        changed.attributes.changed = set.changed.unwrap_or(now);
        if set.user.is_some() || set.group.is_some() || set.kills_privileges {
            changed.clear_privileges();
        }
        if let Some(mode) = set.mode {
            changed.set_permissions(mode)?;
        }
        let time = |time| if let SetTime::To(time) = time { time } else { now };
        let attributes = &mut changed.attributes;
        attributes.user = set.user.unwrap_or(attributes.user);
        attributes.group = set.group.unwrap_or(attributes.group);
        attributes.accessed = set.accessed.map_or(attributes.accessed, time);
        attributes.modified = set.modified.map_or(attributes.modified, time);
        Ok(changed.attributes())
    }

    fn read_link(&self, _: &Caller, inode: u64, target: &mut Vec<u8>) -> Result<(), Errno> {
        match &self.state()?.tree.shared(inode)?.body {
            Body::Link(to) => target.extend_from_slice(to),
            _ => return Err(Errno::INVAL),
        }
        Ok(())
    }

    fn symbolic_link(
        &self,
        caller: &Caller,
        parent: u64,
        name: &[u8],
        target: &[u8],
    ) -> Result<Entry, Errno> {
        let modes = (FileType::Symlink.as_raw_mode() | 0o777, 0);
        let body = Body::Link(target.into());
        self.made(|tree| tree.make_named(caller, (parent, name), modes, 0, body))
    }

    fn make_node(&self, caller: &Caller, make: &Make<'_>, device: u32) -> Result<Entry, Errno> {
        let is_file = FileType::from_raw_mode(make.mode) == FileType::RegularFile;
        let body = if is_file { Body::File(Contents::default()) } else { Body::Node };
        let (name, modes) = ((make.parent, make.name), (make.mode, make.mask));
        self.made(|tree| tree.make_named(caller, name, modes, device, body))
    }

    fn make_directory(&self, caller: &Caller, make: &Make<'_>) -> Result<Entry, Errno> {
        let modes = (FileType::Directory.as_raw_mode() | make.mode & 0o7777, make.mask);
        let body = new_directory(make.parent);
        self.made(|tree| tree.make_named(caller, (make.parent, make.name), modes, 0, body))
    }

    fn create(&self, caller: &Caller, make: &Make<'_>) -> Result<Entry, Errno> {
        let modes = (FileType::RegularFile.as_raw_mode() | make.mode & 0o7777, make.mask);
        let body = Body::File(Contents::default());
        self.made(|tree| tree.make_named(caller, (make.parent, make.name), modes, 0, body))
    }

    fn create_unnamed(
        &self,
        caller: &Caller,
        parent: u64,
        mode: u32,
        mask: u32,
    ) -> Result<Entry, Errno> {
        let modes = (FileType::RegularFile.as_raw_mode() | mode & 0o7777, mask);
        let body = Body::File(Contents::default());
        self.made(|tree| tree.make(caller, parent, modes, 0, body))
    }

    fn unlink(&self, _: &Caller, parent: u64, name: &[u8]) -> Result<(), Errno> {
        self.remove(parent, name, false)
    }

    fn remove_directory(&self, _: &Caller, parent: u64, name: &[u8]) -> Result<(), Errno> {
        self.remove(parent, name, true)
    }

    fn rename(
        &self,
        caller: &Caller,
        from: (u64, &[u8]),
        to: (u64, &[u8]),
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        let known = RenameFlags::NOREPLACE | RenameFlags::EXCHANGE | RenameFlags::WHITEOUT;
        if !known.contains(flags) {
            return Err(Errno::INVAL);
        }
        let mut state = self.state()?;
        let tree = &mut state.tree;
        let moved = found(tree, from.0, from.1)?;
        if tree.inode(to.0)?.attributes.links == 0 {
            return Err(Errno::NOENT);
        }
        let replaced = match found(tree, to.0, to.1) {
            Err(Errno::NOENT) => None,
            found => Some(found?),
        };
        if flags.contains(RenameFlags::EXCHANGE) {
            let other = replaced.ok_or(Errno::NOENT)?;
            tree.detach(from.0, from.1)?;
            tree.detach(to.0, to.1)?;
            tree.attach(from.0, from.1, other)?;
            return tree.attach(to.0, to.1, moved);
        }
        if let Some(replaced) = replaced {
            if flags.contains(RenameFlags::NOREPLACE) {
                return Err(Errno::EXIST);
            }
            if replaced == moved {
                return Ok(());
            }
            let is_directory = matches!(tree.inode(moved)?.body, Body::Directory(_));
            match &tree.inode(replaced)?.body {
                Body::Directory(_) if !is_directory => return Err(Errno::ISDIR),
                Body::Directory(names) if !names.is_empty() => return Err(Errno::NOTEMPTY),
                Body::Directory(_) => {}
                _ if is_directory => return Err(Errno::NOTDIR),
                _ => {}
            }
            tree.detach(to.0, to.1)?;
            tree.release(replaced);
        }
        tree.detach(from.0, from.1)?;
        tree.attach(to.0, to.1, moved)?;
        if flags.contains(RenameFlags::WHITEOUT) {
            let modes = (FileType::CharacterDevice.as_raw_mode(), 0);
            tree.make_named(caller, from, modes, 0, Body::Node)?;
        }
        Ok(())
    }

    fn link(&self, _: &Caller, inode: u64, parent: u64, name: &[u8]) -> Result<Entry, Errno> {
        self.made(|tree| {
            tree.check_new_name(parent, name)?;
            tree.attach(parent, name, inode)?;
            Ok(inode)
        })
    }

    fn read(&self, _: &Caller, read: &Read, reply: DataReply<'_>) -> Result<Sent, Errno> {
        let mut state = self.state()?;
        state.asked.longest_read = state.asked.longest_read.max(read.size);
        let inode = state.tree.inode(read.inode)?;
        // As with `relatime`: once after each change is enough to see that it was read.
        if inode.attributes.accessed <= inode.attributes.modified {
            inode.attributes.accessed = now();
        }
        let left = inode.attributes.size.saturating_sub(read.offset);
        let size = left.min(read.size as u64) as usize;
        Ok(reply.send(&inode.file()?.pieces(read.offset, size)))
    }

    fn write(&self, _: &Caller, write: &Write<'_>) -> Result<usize, Errno> {
        let mut state = self.state()?;
        // More than it can need, which matters only where it is nearly full.
        self.has_room(&state, write.data.len() as u64 / PAGE as u64 + 2)?;
        state.asked.longest_write = state.asked.longest_write.max(write.data.len());
        changed(&mut state.tree, write.inode, |inode| {
            inode.file()?.write(write.offset, write.data);
            let end = write.offset + write.data.len() as u64;
            inode.attributes.size = inode.attributes.size.max(end);
            inode.modify(now());
            if write.kills_privileges {
                inode.clear_privileges();
            }
            Ok(write.data.len())
        })
    }

    fn space(&self, _: &Caller, _: u64) -> Result<Space, Errno> {
        let state = self.state()?;
        let blocks = self.behaviour.capacity / PAGE as u64;
        let free = blocks.saturating_sub(state.tree.pages_used);
        Ok(Space {
            block_size: PAGE as u32,
            blocks,
            free,
            available: free,
            files: u64::from(u32::MAX),
            files_free: u64::from(u32::MAX) - state.tree.len(),
            name_max: NAME_MAX as u32,
        })
    }

    fn sync_file(&self, _: &Caller, _: u64, _: bool, reply: Reply) {
        match self.state().map(drop) {
            Ok(()) => self.answer_later(reply, |asked| &mut asked.syncs),
            Err(error) => reply.answer(Err(error)),
        }
    }

    fn sync_directory(&self, caller: &Caller, inode: u64, data_only: bool, reply: Reply) {
        self.sync_file(caller, inode, data_only, reply);
    }

    fn sync_all(&self, reply: Reply) {
        match self.state().map(drop) {
            Ok(()) => self.answer_later(reply, |asked| &mut asked.all_syncs),
            Err(error) => reply.answer(Err(error)),
        }
    }

    fn destroy(&self, reply: Reply) {
        self.answer_later(reply, |asked| &mut asked.ends);
    }

    fn read_directory(
        &self,
        _: &Caller,
        inode: u64,
        cookie: u64,
        sink: &mut DirectorySink<'_>,
    ) -> Result<(), Errno> {
        let mut state = self.state()?;
        let directory = state.tree.directory(inode)?;
        let mut listed = Vec::new();
        for (number, name, to) in
            [(1, &b"."[..], inode), (COOKIES_RESERVED, b"..", directory.parent)]
        {
            if cookie < number && !sink.add(name, to, FileType::Directory, number) {
                return Ok(());
            }
        }
        let tree = &state.tree;
        let Body::Directory(directory) = &tree.shared(inode)?.body else {
            return Err(Errno::NOTDIR);
        };
        for (number, name, to) in directory.behind(cookie.max(COOKIES_RESERVED)) {
            let found = tree.shared(to)?;
            let attributes = found.attributes();
            if sink.wants_entries() {
                let entry = Entry { attributes, generation: found.generation };
                if !sink.add_entry(name, &entry, number) {
                    break;
                }
                listed.push(to);
            } else if !sink.add(name, to, attributes.kind(), number) {
                break;
            }
        }
        state.asked.lookups += listed.len() as u64;
        for number in listed {
            state.tree.entry(number)?;
        }
        Ok(())
    }

    fn extended_attribute(
        &self,
        _: &Caller,
        inode: u64,
        name: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        let mut state = self.state()?;
        state.asked.attribute_reads += 1;
        let found = state.tree.shared(inode)?.extended.get(name).ok_or(Errno::NODATA)?;
        value.extend_from_slice(found);
        Ok(())
    }

    fn extended_attributes(
        &self,
        _: &Caller,
        inode: u64,
        names: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        for name in self.state()?.tree.shared(inode)?.extended.keys() {
            names.extend_from_slice(name);
            names.push(0);
        }
        Ok(())
    }

    fn set_extended_attribute(
        &self,
        _: &Caller,
        inode: u64,
        name: &[u8],
        value: &[u8],
        flags: XattrFlags,
        kills_set_group: bool,
    ) -> Result<(), Errno> {
        if name.len() > NAME_MAX || value.len() > VALUE_MAX {
            return Err(Errno::RANGE);
        }
        let mut state = self.state()?;
        let inode = state.tree.inode(inode)?;
        match inode.extended.contains_key(name) {
            true if flags.contains(XattrFlags::CREATE) => return Err(Errno::EXIST),
            false if flags.contains(XattrFlags::REPLACE) => return Err(Errno::NODATA),
            _ => {}
        }
        inode.attributes.changed = now();
        if name == access_list::ACCESS_LIST {
            let list = access_list::AccessList::parse(value)?;
            let kept = if kills_set_group { !0o2777 } else { !0o777 };
            inode.attributes.mode = inode.attributes.mode & kept | list.permissions();
            if list.is_minimal() {
                inode.extended.remove(name);
                return Ok(());
            }
        }
        inode.extended.insert(name.into(), value.into());
        Ok(())
    }

    fn remove_extended_attribute(&self, _: &Caller, inode: u64, name: &[u8]) -> Result<(), Errno> {
        let mut state = self.state()?;
        let inode = state.tree.inode(inode)?;
        inode.extended.remove(name).ok_or(Errno::NODATA)?;
        inode.attributes.changed = now();
        Ok(())
    }

    fn allocate(
        &self,
        _: &Caller,
        inode: u64,
        offset: u64,
        size: u64,
        flags: FallocateFlags,
    ) -> Result<(), Errno> {
        let known =
            FallocateFlags::KEEP_SIZE | FallocateFlags::PUNCH_HOLE | FallocateFlags::ZERO_RANGE;
        if !known.contains(flags) {
            return Err(Errno::OPNOTSUPP);
        }
        let mut state = self.state()?;
        let makes_zero = flags.intersects(FallocateFlags::PUNCH_HOLE | FallocateFlags::ZERO_RANGE);
        // Nothing is set aside: there is room, or there is not.
        if !flags.contains(FallocateFlags::PUNCH_HOLE) {
            self.has_room(&state, size.div_ceil(PAGE as u64))?;
        }
        changed(&mut state.tree, inode, |inode| {
            let end = offset + size;
            if makes_zero {
                inode.file()?.punch(offset, end);
            }
            if !flags.contains(FallocateFlags::KEEP_SIZE) {
                inode.attributes.size = inode.attributes.size.max(end);
            }
            inode.modify(now());
            Ok(())
        })
    }

    fn seek(&self, _: &Caller, inode: u64, offset: u64, seek: Seek) -> Result<u64, Errno> {
        let mut state = self.state()?;
        let inode = state.tree.inode(inode)?;
        let size = inode.attributes.size;
        if offset >= size {
            return Err(Errno::NXIO);
        }
        let (first, pages) = (offset / PAGE as u64, size.div_ceil(PAGE as u64));
        let found = inode.file()?.next(first, pages, seek == Seek::Data);
        match (found, seek) {
            (Some(page), _) => Ok((page * PAGE as u64).max(offset)),
            (None, Seek::Data) => Err(Errno::NXIO),
            (None, Seek::Hole) => Ok(size),
        }
    }

    fn copy(&self, _: &Caller, copy: &Copy) -> Result<u64, Errno> {
        /// At a time, so that others are answered too.
        const STEP: u64 = 4 << 20;
        let mut state = self.state()?;
        let source = state.tree.inode(copy.from)?;
        let left = source.attributes.size.saturating_sub(copy.from_offset);
        let size = left.min(copy.size).min(STEP);
        let pieces = source.file()?.pieces(copy.from_offset, size as usize);
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
        self.has_room(&state, size / PAGE as u64 + 2)?;
        changed(&mut state.tree, copy.to, |inode| {
            inode.file()?.write(copy.to_offset, &bytes);
            inode.attributes.size = inode.attributes.size.max(copy.to_offset + size);
            inode.modify(now());
            Ok(size)
        })
    }

    fn command(
        &self,
        _: &Caller,
        command: &Command<'_>,
        output: &mut Vec<u8>,
    ) -> Result<i32, Errno> {
        match command.number {
            TRIM => {
                let range = command.input.first_chunk::<24>().ok_or(Errno::INVAL)?;
                output.extend_from_slice(range);
                let free = self.space(&Caller::default(), ROOT)?.free * PAGE as u64;
                output[8..16].copy_from_slice(&free.to_ne_bytes());
                Ok(0)
            }
            SHUT_DOWN => {
                self.state()?.is_shut_down = true;
                Ok(0)
            }
            _ => Err(Errno::NOTTY),
        }
    }
}
