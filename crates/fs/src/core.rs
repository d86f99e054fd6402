//! The state of a file system, which one thread at a time has, and how operations on it begin and end.

use std::sync::Arc;

use agewell_store::Store;
use agewell_store::device::Disk;
use rustix::io::Errno;

use crate::blocks::{Blocks, NumberMap, NumberSet};
use crate::files_ahead::FilesAhead;
use crate::format::{SUPERBLOCK, Superblock, SystemKind, offset_of, system_key};
use crate::scattered::Scattered;
use crate::seeded::{SeededFault, is_seeded};
use crate::{FsError, files, journal, tree};

/// Numbers of inodes that a directory takes at once for what is made in it, so that their items lie side by
/// side; chosen by us: a few nodes of inodes with their entries.
const INODES_A_DIRECTORY: u64 = 64;

/// Directories of which it is remembered which numbers they have; chosen by us. When there are more, all
/// take new ones.
const DIRECTORIES_MAX: usize = 4096;

/// Numbers of inodes by which the superblock runs ahead, so that it seldom changes; chosen by us.
const INODES_AHEAD: u64 = 1 << 16;

/// See the module.
#[derive(Debug)]
pub(crate) struct Core<D> {
    pub(crate) blocks: Blocks<D>,
    /// The seed of the hashes of names.
    pub(crate) seed: u64,
    /// The next number of an inode that no directory has, and the first that the superblock does not
    /// cover.
    next_inode: u64,
    inodes_end: u64,
    /// Numbers that directories have taken: the next, and the end.
    taken: NumberMap<u64, (u64, u64)>,
    /// Files without a name.
    pub(crate) orphans: NumberSet<u64>,
    /// Files without a name that nobody has open, to be removed.
    pub(crate) left: Vec<u64>,
    /// Files with blocks beyond their ends, which are to be freed before these can grow again.
    pub(crate) shrinking: NumberSet<u64>,
    /// Small files that are read one after another.
    pub(crate) files_ahead: FilesAhead,
    /// Files that are read in a row and lie scattered.
    pub(crate) scattered: Scattered,
    /// Nothing is done any more.
    pub(crate) is_shut: bool,
}

impl<D: Disk> Core<D> {
    /// Of what is in `store`.
    pub(crate) fn open(store: Arc<Store<D>>, cache_bytes: u64) -> Result<Self, FsError> {
        let block = Superblock::read(&store)?;
        let superblock = Superblock::decode(&block)?;
        if superblock.reserved > u64::from(store.geometry().blocks) {
            let what = "more blocks are promised than there are";
            return Err(FsError::Structure { number: SUPERBLOCK, what });
        }
        let found = journal::replay(&store, &superblock.journal)?;
        if let Some((number, what)) = found.lost {
            return Err(FsError::Structure { number, what });
        }
        if !found.blocks.is_empty() {
            found.write(&store)?;
        }
        let mut blocks = Blocks::new(store, cache_bytes, superblock.journal.clone());
        // It is in memory when it is to be changed.
        blocks.found_node(SUPERBLOCK, block);
        blocks.found_reserved(superblock.reserved);
        let mut core = Self {
            blocks,
            seed: superblock.seed,
            next_inode: superblock.inodes_end,
            inodes_end: superblock.inodes_end,
            taken: NumberMap::default(),
            orphans: NumberSet::default(),
            left: Vec::new(),
            shrinking: NumberSet::default(),
            files_ahead: FilesAhead::default(),
            scattered: Scattered::default(),
            is_shut: false,
        };
        let (first, last) =
            (system_key(SystemKind::Orphan, 0), system_key(SystemKind::Orphan, u64::MAX));
        let mut found = Vec::new();
        tree::each(&mut core.blocks, first, last, |key, _| {
            found.push(offset_of(key));
            true
        })?;
        core.orphans.extend(&found);
        core.left = found;
        core.find_shrinking()?;
        let mut numbers = core.orphans.iter().chain(&core.shrinking);
        if numbers.any(|number| *number >= core.inodes_end) {
            let what = "a file of a list is none";
            return Err(FsError::Structure { number: tree::ROOT, what });
        }
        Ok(core)
    }

    /// Files that are to become shorter, from before a crash.
    fn find_shrinking(&mut self) -> Result<(), FsError> {
        let (first, last) =
            (system_key(SystemKind::Shrinking, 0), system_key(SystemKind::Shrinking, u64::MAX));
        let found = &mut self.shrinking;
        tree::each(&mut self.blocks, first, last, |key, _| {
            found.insert(offset_of(key));
            true
        })
    }

    /// Carries `operation` out on the file `inode`, which it may make longer: what lies beyond its end from
    /// before is freed first.
    pub(crate) fn change_file<R>(
        &mut self,
        inode: u64,
        operation: impl FnMut(&mut Self) -> Result<R, FsError>,
    ) -> Result<R, FsError> {
        while self.shrink(inode)? {}
        self.change(operation)
    }

    /// Frees some of what lies beyond the end of a file that has become shorter; whether more is left.
    pub(crate) fn shrink(&mut self, inode: u64) -> Result<bool, FsError> {
        if !self.shrinking.contains(&inode) {
            return Ok(false);
        }
        let is_left = self.change(|core| files::shrink(core, inode))?;
        if !is_left {
            self.shrinking.remove(&inode);
        }
        Ok(is_left)
    }

    pub(crate) fn block_bytes(&self) -> u64 {
        self.blocks.block_bytes() as u64
    }

    /// A number for an inode that is made in `parent`.
    pub(crate) fn take_inode(&mut self, parent: u64) -> Result<u64, FsError> {
        if let Some((next, end)) = self.taken.get_mut(&parent)
            && next < end
        {
            *next += 1;
            return Ok(*next - 1);
        }
        if self.next_inode + INODES_A_DIRECTORY > self.inodes_end {
            let end = self.inodes_end + INODES_AHEAD;
            let said =
                if is_seeded(SeededFault::NumbersGivenAgain) { self.inodes_end } else { end };
            let block = self.blocks.node_mut(SUPERBLOCK)?;
            let at = Superblock::INODES_END_AT;
            block[at..at + 8].copy_from_slice(&said.to_le_bytes());
            self.inodes_end = end;
        }
        let first = self.next_inode;
        self.next_inode += INODES_A_DIRECTORY;
        if self.taken.len() >= DIRECTORIES_MAX {
            self.taken.clear();
        }
        self.taken.insert(parent, (first + 1, first + INODES_A_DIRECTORY));
        Ok(first)
    }

    /// Blocks that are promised to files from now on.
    pub(crate) fn set_reserved(&mut self, blocks: u64) -> Result<(), FsError> {
        let at = Superblock::RESERVED_AT;
        let block = self.blocks.node_mut(SUPERBLOCK)?;
        block[at..at + 8].copy_from_slice(&blocks.to_le_bytes());
        self.blocks.set_reserved(blocks);
        Ok(())
    }

    /// What waits and `data_blocks` more of data fit into a transaction; to be asked before the first of
    /// them is put, as these are not taken back.
    pub(crate) fn require(&mut self, data_blocks: usize) -> Result<(), FsError> {
        if self.blocks.fits(data_blocks) { Ok(()) } else { Err(FsError::Large) }
    }

    /// Carries `operation` out, all of it or nothing.
    pub(crate) fn change<R>(
        &mut self,
        mut operation: impl FnMut(&mut Self) -> Result<R, FsError>,
    ) -> Result<R, FsError> {
        if self.is_shut {
            return Err(FsError::Errno(Errno::IO));
        }
        loop {
            self.blocks.begin();
            let ends = (self.next_inode, self.inodes_end);
            let done = operation(self).and_then(|done| self.require(0).map(|()| done));
            let error = match done {
                Ok(done) => {
                    if self.blocks.is_much() {
                        // What fails here is tried again, and told by the next `sync`.
                        let _ = self.blocks.commit();
                    }
                    return Ok(done);
                }
                Err(error) => error,
            };
            self.blocks.undo();
            if ends.1 != self.inodes_end {
                // The superblock does not say so any more.
                (self.next_inode, self.inodes_end) = ends;
                self.taken.clear();
            }
            match error {
                FsError::Large if !self.blocks.is_clean() => self.blocks.commit()?,
                error => return Err(error),
            }
        }
    }
}
