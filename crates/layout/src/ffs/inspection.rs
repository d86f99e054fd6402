//! Queries on a file system.

use super::inodes::Kind;
use super::{FastFileSystem, InodeKind};
use crate::file_system::FileSystemError;

/// Fragments of a file that lie side by side on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FfsRun {
    /// Which of the file's fragments is the first.
    pub logical: u64,
    /// Where it is.
    pub address: u32,
    /// How many.
    pub fragments: u32,
}

/// The counts behind the layout score of all regular files (Smith & Seltzer 1996, §3.3).
///
/// A block is counted if there is one before it in the file; fragments at a file's end count as a
/// block. It is optimal if it lies right behind that block, holes between them left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LayoutTally {
    /// Blocks right behind their predecessor.
    pub optimal: u64,
    /// Blocks that have a predecessor.
    pub counted: u64,
}

/// How full a file system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpaceUsage {
    /// Fragments for data, directories and indirect blocks.
    pub total_fragments: u32,
    /// Fragments of those that are free, whether ordinary users may have them or not.
    pub free_fragments: u32,
    /// Fragments that ordinary users do not get (`minfree_pct`).
    pub reserved_fragments: u32,
    /// Inodes.
    pub inodes: u32,
    /// Inodes that are free.
    pub free_inodes: u32,
}

impl FastFileSystem {
    /// Bytes of a fragment.
    #[must_use]
    pub fn fragment_bytes(&self) -> u32 {
        self.geometry.fragment_bytes
    }

    /// Fragments of a block.
    #[must_use]
    pub fn fragments_per_block(&self) -> u32 {
        self.geometry.fragments_per_block
    }

    /// Fragments of the whole file system.
    #[must_use]
    pub fn fragments(&self) -> u32 {
        self.geometry.fragments
    }

    /// Cylinder groups.
    #[must_use]
    pub fn groups(&self) -> u32 {
        self.geometry.groups
    }

    /// Fragments of a cylinder group; the last one may have fewer.
    #[must_use]
    pub fn fragments_per_group(&self) -> u32 {
        self.geometry.fragments_per_group
    }

    /// The cylinder group of `inode`.
    #[must_use]
    pub fn group_of(&self, inode: u32) -> u32 {
        self.geometry.inode_group(inode)
    }

    /// How full it is.
    #[must_use]
    pub fn usage(&self) -> SpaceUsage {
        let blocks = self.space.free_blocks * self.geometry.fragments_per_block;
        SpaceUsage {
            total_fragments: self.geometry.data_fragments,
            free_fragments: blocks + self.space.free_fragments,
            reserved_fragments: self.geometry.reserve_fragments,
            inodes: self.geometry.groups * self.geometry.inodes_per_group,
            free_inodes: self.space.free_inodes,
        }
    }

    /// The counts behind the layout score of all regular files; kept up to date, costs nothing.
    #[must_use]
    pub fn layout_tally(&self) -> LayoutTally {
        self.tally
    }

    /// The same without the fragments at the ends of files: what Smith & Seltzer 1996 count, whose
    /// two-block files are those that "use two blocks (instead of one block and some number of
    /// fragments)" (§4). Costs nothing either.
    #[must_use]
    pub fn whole_block_tally(&self) -> LayoutTally {
        LayoutTally {
            optimal: self.tally.optimal - self.tails.optimal,
            counted: self.tally.counted - self.tails.counted,
        }
    }

    /// Files and directories, ascending, with the directory that each is in (the root in itself).
    pub fn inodes(&self) -> impl Iterator<Item = (u32, InodeKind, u32)> + '_ {
        self.inodes.records.iter().enumerate().filter_map(|(number, record)| {
            let kind = match record.kind {
                Kind::Free | Kind::Reserved => return None,
                Kind::File => InodeKind::File,
                Kind::Directory => InodeKind::Directory,
            };
            Some((number as u32, kind, record.directory))
        })
    }

    /// Where the data of a file or directory lies, ascending by its place in the file; what lies
    /// side by side is one extent. Indirect blocks are not part of it.
    ///
    /// # Errors
    /// If there is no such file or directory.
    pub fn runs(&self, inode: u32) -> Result<impl Iterator<Item = FfsRun> + '_, FileSystemError> {
        let number = self.file(inode).or_else(|_| self.directory(inode))?;
        let size = self.inodes.records[number as usize].size_bytes;
        let blocks = self.geometry.blocks_of(size);
        let mut block = 0;
        Ok(std::iter::from_fn(move || {
            while block < blocks && self.address(number, block) == 0 {
                block += 1;
            }
            if block == blocks {
                return None;
            }
            let address = self.address(number, block);
            let logical = u64::from(block) * u64::from(self.geometry.fragments_per_block);
            let mut fragments = self.block_fragments(size, block);
            block += 1;
            while block < blocks && self.address(number, block) == address + fragments {
                fragments += self.block_fragments(size, block);
                block += 1;
            }
            Some(FfsRun { logical, address, fragments })
        }))
    }

    /// The addresses of the indirect blocks of a file or directory.
    ///
    /// # Errors
    /// If there is no such file or directory.
    pub fn indirect_blocks(&self, inode: u32) -> Result<Vec<u32>, FileSystemError> {
        let number = self.file(inode).or_else(|_| self.directory(inode))?;
        let record = &self.inodes.records[number as usize];
        let mut addresses: Vec<u32> =
            record.single.iter().map(|indirect| indirect.address).collect();
        if let Some(double) = record.double.checked_sub(1) {
            let double = &self.inodes.doubles[double as usize];
            addresses.push(double.address);
            addresses.extend(double.children.iter().flatten().map(|child| child.address));
        }
        Ok(addresses)
    }

    /// Blocks of a regular file, and how many of them count and are optimal, by themselves.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn file_tally(&self, file: u32) -> Result<LayoutTally, FileSystemError> {
        let inode = self.file(file)?;
        let size = self.inodes.records[inode as usize].size_bytes;
        let (mut tally, mut before) = (LayoutTally::default(), None);
        let blocks = (0..self.geometry.blocks_of(size)).map(|block| self.address(inode, block));
        for address in blocks.filter(|address| *address != 0) {
            if let Some(before) = before.replace(address) {
                tally.counted += 1;
                let next: u32 = before + self.geometry.fragments_per_block;
                tally.optimal += u64::from(address == next);
            }
        }
        Ok(tally)
    }

    /// Runs of free fragments, ascending: the address of the first, and how many. Free space that
    /// lies side by side is one run, also across blocks and cylinder groups.
    pub fn free_runs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            at = self.next_fragment(at, true)?;
            let start = at;
            at = self.next_fragment(at, false).unwrap_or(self.geometry.fragments);
            Some((start, at - start))
        })
    }

    /// The first fragment from `from` on that is free, or that is not.
    fn next_fragment(&self, from: u32, free: bool) -> Option<u32> {
        let whole = self.geometry.fragments_per_block;
        let mut at = from;
        while at < self.geometry.fragments {
            let group = self.geometry.group_of(at);
            let block = (at - self.geometry.group_start(group)) / whole;
            let byte = self.space.block(&self.geometry, group, block);
            let bits = (if free { byte } else { !byte & self.space.all }) >> (at % whole);
            if bits != 0 {
                return Some(at + bits.trailing_zeros());
            }
            at = (at / whole + 1) * whole;
        }
        None
    }
}
