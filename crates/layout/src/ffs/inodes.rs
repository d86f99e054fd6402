//! Inodes: which are in use, and what they say.
//!
//! Cost: 120 bytes an inode, in one array.

use super::block_lists::List;
use super::free_space::FreeSpace;
use super::geometry::{DIRECT_BLOCKS, Geometry};
use crate::file_system::FileSystemError;

/// The kind of an inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Kind {
    /// Nothing.
    #[default]
    Free,
    /// Not used by any file system (inodes 0 and 1).
    Reserved,
    File,
    Directory,
}

/// An indirect block of addresses of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Indirect {
    /// Where it is.
    pub(crate) address: u32,
    /// What it holds.
    pub(crate) list: List,
}

/// A block of addresses of indirect blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DoubleIndirect {
    /// Where it is.
    pub(crate) address: u32,
    /// What it holds; shorter than a block where the rest are holes.
    pub(crate) children: Vec<Option<Indirect>>,
}

/// The open cluster: blocks that will go in one write (4.4BSD's `v_cstart`, `v_clen`, `v_lastw` and
/// `v_lasta`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Window {
    /// First block.
    pub(crate) start: u32,
    /// Blocks that may follow it; 0 if none is open.
    pub(crate) length: u32,
    /// The block written last.
    pub(crate) last: u32,
    /// Its address.
    pub(crate) last_address: u32,
}

/// One inode.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Record {
    /// Length of the file.
    pub(crate) size_bytes: u64,
    pub(crate) direct: [u32; DIRECT_BLOCKS as usize],
    pub(crate) single: Option<Indirect>,
    /// Number of its double indirect block, plus one; 0 for none.
    pub(crate) double: u32,
    /// The directory it is in.
    pub(crate) directory: u32,
    /// Which 512 bytes of the directory name it.
    pub(crate) chunk: u32,
    /// Number of its contents if it is a directory.
    pub(crate) contents: u32,
    pub(crate) window: Window,
    pub(crate) kind: Kind,
}

/// All inodes.
#[derive(Debug, Clone)]
pub(crate) struct Inodes {
    pub(crate) records: Vec<Record>,
    /// Which are in use, `words_per_group` words a group.
    used: Vec<u64>,
    words_per_group: u32,
    per_group: u32,
    pub(crate) doubles: Vec<DoubleIndirect>,
    doubles_free: Vec<u32>,
}

impl Inodes {
    pub(crate) fn new(geometry: &Geometry, space: &mut FreeSpace) -> Self {
        let words_per_group = geometry.inodes_per_group.div_ceil(64);
        let count = geometry.groups * geometry.inodes_per_group;
        let mut inodes = Self {
            records: vec![Record::default(); count as usize],
            used: vec![0; (geometry.groups * words_per_group) as usize],
            words_per_group,
            per_group: geometry.inodes_per_group,
            doubles: Vec::new(),
            doubles_free: Vec::new(),
        };
        for group in &mut space.groups {
            group.free_inodes = geometry.inodes_per_group;
        }
        space.free_inodes = count;
        for inode in 0..super::FastFileSystem::ROOT {
            inodes.take(inode, Kind::Reserved, space);
        }
        inodes
    }

    fn bit(&self, inode: u32) -> (usize, u64) {
        let (group, within) = (inode / self.per_group, inode % self.per_group);
        ((group * self.words_per_group + within / 64) as usize, 1 << (within % 64))
    }

    /// Whether `inode` is in use.
    pub(crate) fn is_used(&self, inode: u32) -> bool {
        let (word, bit) = self.bit(inode);
        self.used[word] & bit != 0
    }

    /// Puts `inode`, which is free, to use.
    pub(crate) fn take(&mut self, inode: u32, kind: Kind, space: &mut FreeSpace) {
        let (word, bit) = self.bit(inode);
        assert_eq!(self.used[word] & bit, 0, "an inode is free before it is used");
        self.used[word] |= bit;
        self.records[inode as usize] = Record { kind, ..Record::default() };
        let group = inode / self.per_group;
        let summary = &mut space.groups[group as usize];
        summary.free_inodes -= 1;
        summary.directories += u32::from(kind == Kind::Directory);
        space.free_inodes -= 1;
        space.touch(group);
    }

    /// Gives `inode`, whose blocks are free already, back.
    pub(crate) fn release(&mut self, inode: u32, space: &mut FreeSpace) {
        let (word, bit) = self.bit(inode);
        self.used[word] &= !bit;
        let group = inode / self.per_group;
        let summary = &mut space.groups[group as usize];
        let kind = std::mem::take(&mut self.records[inode as usize].kind);
        summary.free_inodes += 1;
        summary.directories -= u32::from(kind == Kind::Directory);
        summary.inode_rotor = summary.inode_rotor.min(inode % self.per_group);
        space.free_inodes += 1;
        space.touch(group);
    }

    /// A free inode of `group`: `wanted` (within the group) if it is free, else the first one from
    /// the rotor on, around. Searches begin at whole bytes of the map, as 4.4BSD's do.
    pub(crate) fn find(
        &self,
        group: u32,
        wanted: Option<u32>,
        space: &mut FreeSpace,
    ) -> Option<u32> {
        let summary = &mut space.groups[group as usize];
        if summary.free_inodes == 0 {
            return None;
        }
        let first = group * self.per_group;
        if let Some(wanted) = wanted.filter(|wanted| !self.is_used(first + wanted)) {
            return Some(first + wanted);
        }
        let start = summary.inode_rotor / 8 * 8;
        let found = self.next_free(group, start).or_else(|| self.next_free(group, 0))?;
        summary.inode_rotor = found;
        Some(first + found)
    }

    fn next_free(&self, group: u32, from: u32) -> Option<u32> {
        let first = (group * self.words_per_group) as usize;
        let words = &self.used[first..first + self.words_per_group as usize];
        let mut word = (from / 64) as usize;
        let mut bits = !*words.get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = !*words.get(word)?;
        }
        let found = word as u32 * 64 + bits.trailing_zeros();
        (found < self.per_group).then_some(found)
    }

    /// A new double indirect block at `address`: its number, plus one.
    pub(crate) fn add_double(&mut self, address: u32) -> u32 {
        let double = DoubleIndirect { address, children: Vec::new() };
        if let Some(number) = self.doubles_free.pop() {
            self.doubles[number as usize] = double;
            return number + 1;
        }
        self.doubles.push(double);
        self.doubles.len() as u32
    }

    /// Forgets the double indirect block `number` (plus one).
    pub(crate) fn remove_double(&mut self, number: u32) {
        self.doubles_free.push(number - 1);
    }
}

impl super::FastFileSystem {
    /// Allocates an inode near `group`.
    pub(crate) fn allocate_inode(
        &mut self,
        group: u32,
        kind: Kind,
    ) -> Result<u32, FileSystemError> {
        if self.space.free_inodes == 0 {
            return Err(FileSystemError::NoInodes);
        }
        // A directory asks for the first inode of its group; a file, for its directory's, which is
        // never free.
        let wanted = (kind == Kind::Directory).then_some(0);
        let found = self.in_groups(group, |system, group, first| {
            system.inodes.find(group, wanted.filter(|_| first), &mut system.space)
        });
        let inode = found.ok_or(FileSystemError::NoInodes)?;
        self.inodes.take(inode, kind, &mut self.space);
        Ok(inode)
    }
}
