//! Inodes and names: what of a file system in memory is not bytes of files.

use std::collections::{BTreeMap, HashMap};

use agewell_fs::access_list;
use agewell_fuse::{Attributes, Caller, Entry, Errno, ROOT, Time};
use rustix::fs::FileType;
use rustix::time::ClockId;

use crate::contents::Contents;

/// The longest name, bytes, as everywhere on Linux.
pub(crate) const NAME_MAX: usize = 255;

const SET_USER: u32 = 0o4000;
const SET_GROUP: u32 = 0o2000;

/// Names of a directory. Each has a cookie of its own, given once and in the order in which they come, so
/// that a listing neither misses nor repeats what stays.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    by_name: HashMap<Box<[u8]>, (u64, u64)>,
    by_cookie: BTreeMap<u64, (Box<[u8]>, u64)>,
    last_cookie: u64,
    pub(crate) parent: u64,
}

/// Cookies of `.` and `..`; those of names follow.
pub(crate) const COOKIES_RESERVED: u64 = 2;

impl Directory {
    fn new(parent: u64) -> Self {
        Self { parent, last_cookie: COOKIES_RESERVED, ..Self::default() }
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<u64> {
        self.by_name.get(name).map(|&(_, inode)| inode)
    }

    pub(crate) fn insert(&mut self, name: &[u8], inode: u64) {
        self.last_cookie += 1;
        self.by_cookie.insert(self.last_cookie, (name.into(), inode));
        self.by_name.insert(name.into(), (self.last_cookie, inode));
    }

    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<u64> {
        let (cookie, inode) = self.by_name.remove(name)?;
        self.by_cookie.remove(&cookie);
        Some(inode)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Names behind a cookie, with their own.
    pub(crate) fn behind(&self, cookie: u64) -> impl Iterator<Item = (u64, &[u8], u64)> {
        let names = self.by_cookie.range(cookie + 1..);
        names.map(|(&cookie, (name, inode))| (cookie, &**name, *inode))
    }
}

#[derive(Debug)]
pub(crate) enum Body {
    File(Contents),
    Directory(Directory),
    Link(Box<[u8]>),
    Node,
}

#[derive(Debug)]
pub(crate) struct Inode {
    /// But the number and the blocks, which `attributes` fills in.
    pub(crate) attributes: Attributes,
    pub(crate) generation: u64,
    pub(crate) lookups: u64,
    pub(crate) body: Body,
    pub(crate) extended: BTreeMap<Box<[u8]>, Box<[u8]>>,
}

impl Inode {
    pub(crate) fn attributes(&self) -> Attributes {
        let blocks = match &self.body {
            Body::File(contents) => contents.pages() * 8,
            _ => 0,
        };
        Attributes { blocks, ..self.attributes }
    }

    pub(crate) fn file(&mut self) -> Result<&mut Contents, Errno> {
        match &mut self.body {
            Body::File(contents) => Ok(contents),
            Body::Directory(_) => Err(Errno::ISDIR),
            _ => Err(Errno::INVAL),
        }
    }

    pub(crate) fn directory(&mut self) -> Result<&mut Directory, Errno> {
        match &mut self.body {
            Body::Directory(directory) => Ok(directory),
            _ => Err(Errno::NOTDIR),
        }
    }

    /// What a change of contents, owner or group does to the bits that lend its owner's rights.
    pub(crate) fn clear_privileges(&mut self) {
        let mode = &mut self.attributes.mode;
        if FileType::from_raw_mode(*mode) != FileType::Directory {
            *mode &= !SET_USER;
            if *mode & 0o010 != 0 {
                *mode &= !SET_GROUP;
            }
            self.extended.remove(&b"security.capability"[..]);
        }
    }

    /// Changes permissions, and the access control list with them.
    pub(crate) fn set_permissions(&mut self, mode: u32) -> Result<(), Errno> {
        self.attributes.mode = self.attributes.mode & !0o7777 | mode & 0o7777;
        if let Some(value) = self.extended.get_mut(access_list::ACCESS_LIST) {
            let mut list = access_list::AccessList::parse(value)?;
            list.set_permissions(mode);
            *value = list.to_bytes().into();
        }
        Ok(())
    }

    pub(crate) fn modify(&mut self, now: Time) {
        self.attributes.modified = now;
        self.attributes.changed = now;
    }
}

/// All inodes. A number is an index; a number that is free again comes back with another generation.
#[derive(Debug)]
pub(crate) struct Tree {
    inodes: Vec<Option<Inode>>,
    free: Vec<u64>,
    generation: u64,
    /// Of all files.
    pub(crate) pages_used: u64,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let mut tree = Self { inodes: vec![None], free: Vec::new(), generation: 0, pages_used: 0 };
        let root = Body::Directory(Directory::new(ROOT));
        let mode = FileType::Directory.as_raw_mode() | 0o755;
        let made = tree.add(&Caller::default(), mode, 0, root);
        assert_eq!(made, ROOT);
        tree.inode(ROOT).expect("just made").attributes.links = 2;
        tree
    }

    pub(crate) fn len(&self) -> u64 {
        (self.inodes.len() - 1 - self.free.len()) as u64
    }

    pub(crate) fn inode(&mut self, number: u64) -> Result<&mut Inode, Errno> {
        self.inodes.get_mut(number as usize).and_then(Option::as_mut).ok_or(Errno::STALE)
    }

    pub(crate) fn shared(&self, number: u64) -> Result<&Inode, Errno> {
        self.inodes.get(number as usize).and_then(Option::as_ref).ok_or(Errno::STALE)
    }

    pub(crate) fn directory(&mut self, number: u64) -> Result<&mut Directory, Errno> {
        self.inode(number)?.directory()
    }

    /// An inode, handed to the kernel once more.
    pub(crate) fn entry(&mut self, number: u64) -> Result<Entry, Errno> {
        let inode = self.inode(number)?;
        inode.lookups += 1;
        Ok(Entry { attributes: inode.attributes(), generation: inode.generation })
    }

    fn add(&mut self, caller: &Caller, mode: u32, device: u32, body: Body) -> u64 {
        self.generation += 1;
        let number = self.free.pop().unwrap_or(self.inodes.len() as u64);
        let now = now();
        let attributes = Attributes {
            inode: number,
            size: if let Body::Link(target) = &body { target.len() as u64 } else { 0 },
            blocks: 0,
            accessed: now,
            modified: now,
            changed: now,
            born: now,
            mode,
            links: 0,
            user: caller.user,
            group: caller.group,
            device,
            block_size: 4096,
        };
        let (generation, extended) = (self.generation, BTreeMap::new());
        let inode = Some(Inode { attributes, generation, lookups: 0, body, extended });
        match self.inodes.get_mut(number as usize) {
            Some(place) => *place = inode,
            None => self.inodes.push(inode),
        }
        number
    }

    /// Makes an inode without a name: what it takes from its directory, and the mask.
    pub(crate) fn make(
        &mut self,
        caller: &Caller,
        parent: u64,
        (mode, mask): (u32, u32),
        device: u32,
        body: Body,
    ) -> Result<u64, Errno> {
        let directory = self.shared(parent)?;
        let is_directory = matches!(body, Body::Directory(_));
        let mut caller = *caller;
        let mut mode = mode;
        if directory.attributes.mode & SET_GROUP != 0 {
            caller.group = directory.attributes.group;
            if is_directory {
                mode |= SET_GROUP;
            }
        }
        let default = directory.extended.get(access_list::DEFAULT_LIST).cloned();
        let default = default.filter(|_| !matches!(body, Body::Link(_)));
        let Some(value) = default else {
            return Ok(self.add(&caller, mode & !mask, device, body));
        };
        let list = access_list::AccessList::parse(&value)?.inherited(mode);
        let mode = mode & !0o777 | list.permissions();
        let number = self.add(&caller, mode, device, body);
        let inode = self.inode(number)?;
        if !list.is_minimal() {
            inode.extended.insert(access_list::ACCESS_LIST.into(), list.to_bytes().into());
        }
        if is_directory {
            inode.extended.insert(access_list::DEFAULT_LIST.into(), value);
        }
        Ok(number)
    }

    /// Makes an inode with a name.
    pub(crate) fn make_named(
        &mut self,
        caller: &Caller,
        (parent, name): (u64, &[u8]),
        modes: (u32, u32),
        device: u32,
        body: Body,
    ) -> Result<u64, Errno> {
        self.check_new_name(parent, name)?;
        let number = self.make(caller, parent, modes, device, body)?;
        self.attach(parent, name, number)?;
        Ok(number)
    }

    /// That a name is short enough and not there, in a directory that still is.
    pub(crate) fn check_new_name(&mut self, parent: u64, name: &[u8]) -> Result<(), Errno> {
        if name.len() > NAME_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        let inode = self.inode(parent)?;
        if inode.attributes.links == 0 {
            return Err(Errno::NOENT);
        }
        if inode.directory()?.get(name).is_some() { Err(Errno::EXIST) } else { Ok(()) }
    }

    /// Gives an inode a name.
    pub(crate) fn attach(&mut self, parent: u64, name: &[u8], number: u64) -> Result<(), Errno> {
        let now = now();
        let inode = self.inode(number)?;
        inode.attributes.changed = now;
        let is_directory = if let Body::Directory(directory) = &mut inode.body {
            directory.parent = parent;
            true
        } else {
            false
        };
        inode.attributes.links += if is_directory { 2 } else { 1 };
        let inode = self.inode(parent)?;
        inode.directory()?.insert(name, number);
        inode.attributes.links += u32::from(is_directory);
        inode.modify(now);
        Ok(())
    }

    /// Takes a name away, and gives the inode that had it.
    pub(crate) fn detach(&mut self, parent: u64, name: &[u8]) -> Result<u64, Errno> {
        let now = now();
        let number = self.directory(parent)?.remove(name).ok_or(Errno::NOENT)?;
        let inode = self.inode(number)?;
        inode.attributes.changed = now;
        let is_directory = matches!(inode.body, Body::Directory(_));
        inode.attributes.links -= if is_directory { 2 } else { 1 };
        let inode = self.inode(parent)?;
        inode.attributes.links -= u32::from(is_directory);
        inode.modify(now);
        Ok(number)
    }

    /// Frees an inode that nobody can reach any more.
    pub(crate) fn release(&mut self, number: u64) {
        let Ok(inode) = self.inode(number) else { return };
        if inode.attributes.links == 0 && inode.lookups == 0 && number != ROOT {
            if let Body::File(contents) = &inode.body {
                let pages = contents.pages();
                self.pages_used -= pages;
            }
            self.inodes[number as usize] = None;
            self.free.push(number);
        }
    }

    /// Takes lookups back.
    pub(crate) fn forget(&mut self, number: u64, count: u64) {
        if let Ok(inode) = self.inode(number) {
            inode.lookups = inode.lookups.saturating_sub(count);
            self.release(number);
        }
    }
}

/// An empty directory.
pub(crate) fn new_directory(parent: u64) -> Body {
    Body::Directory(Directory::new(parent))
}

/// The time of the last tick, as file systems of the kernel take it.
pub(crate) fn now() -> Time {
    let time = rustix::time::clock_gettime(ClockId::RealtimeCoarse);
    Time { seconds: time.tv_sec, nanoseconds: time.tv_nsec as u32 }
}
