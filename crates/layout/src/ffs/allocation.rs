//! The mechanism of allocation: room for what is wanted, as near as there is any.
//!
//! A group is searched first; if it has nothing, others by quadratic rehash, then all of them. In a
//! group a block is the one asked for, else one in the same cylinder at the next rotational
//! position, else the next one in the map. Fragments come from a run of just their number, else
//! from a longer one, else from a broken block. A cluster is the first run of free blocks behind the
//! preferred one that is long enough.
//!
//! Source: 4.4BSD's `ffs_alloc`, `ffs_realloccg`, `ffs_hashalloc`, `ffs_alloccg`,
//! `ffs_alloccgblk`, `ffs_mapsearch`, `ffs_fragextend`, `ffs_clusteralloc`, `ffs_blkfree`.

use super::FastFileSystem;
use super::parameters::{FragmentPlacement, Optimization};
use crate::file_system::FileSystemError;

/// Where a file's last block was and has to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Growth {
    /// Where the fragments are.
    pub(crate) address: u32,
    /// Where they should go if they cannot stay; 0 for anywhere.
    pub(crate) preferred: u32,
    /// How many they are.
    pub(crate) from: u32,
    /// How many they have to be.
    pub(crate) to: u32,
}

impl FastFileSystem {
    /// Tries `group`, then groups at distances of 1, 2, 4, ... from one another, then every group.
    /// The closure's argument says whether the group is the first.
    pub(crate) fn in_groups(
        &mut self,
        group: u32,
        mut attempt: impl FnMut(&mut Self, u32, bool) -> Option<u32>,
    ) -> Option<u32> {
        if let Some(found) = attempt(self, group, true) {
            return Some(found);
        }
        let groups = self.geometry.groups;
        let (mut at, mut step) = (group, 1);
        while step < groups {
            at = (at + step) % groups;
            if let Some(found) = attempt(self, at, false) {
                return Some(found);
            }
            step *= 2;
        }
        // The group itself and the next one have been tried.
        (2..groups).find_map(|distance| attempt(self, (group + distance) % groups, false))
    }

    /// Whether an ordinary user may have more.
    fn reserve_is_reached(&self) -> bool {
        let blocks =
            u64::from(self.space.free_blocks) * u64::from(self.geometry.fragments_per_block);
        blocks + u64::from(self.space.free_fragments) <= u64::from(self.geometry.reserve_fragments)
    }

    /// Allocates `fragments` that share a block, or a whole block, near `preferred` (0: anywhere in
    /// the inode's group).
    pub(crate) fn allocate(
        &mut self,
        inode_group: u32,
        preferred: u32,
        fragments: u32,
    ) -> Result<u32, FileSystemError> {
        if self.reserve_is_reached() {
            return Err(FileSystemError::NoSpace);
        }
        let preferred = if preferred >= self.geometry.fragments { 0 } else { preferred };
        let group = if preferred == 0 { inode_group } else { self.geometry.group_of(preferred) };
        self.allocate_anywhere(group, preferred, fragments).ok_or(FileSystemError::NoSpace)
    }

    /// Begins in `group`, which need not be that of `preferred`.
    fn allocate_anywhere(&mut self, group: u32, preferred: u32, fragments: u32) -> Option<u32> {
        let whole = fragments == self.geometry.fragments_per_block;
        if whole && self.space.free_blocks == 0 {
            return None;
        }
        self.in_groups(group, |system, group, first| {
            let preferred = if first { preferred } else { 0 };
            if whole {
                system.allocate_block(group, preferred)
            } else {
                system.allocate_fragments(group, preferred, fragments)
            }
        })
    }

    fn allocate_block(&mut self, group: u32, preferred: u32) -> Option<u32> {
        if self.space.groups[group as usize].free_blocks == 0 {
            return None;
        }
        let block = self.choose_block(group, preferred)?;
        self.space.set_block(&self.geometry, group, block, 0);
        Some(self.address_of(group, block))
    }

    #[inline]
    fn address_of(&self, group: u32, block: u32) -> u32 {
        self.geometry.group_start(group) + block * self.geometry.fragments_per_block
    }

    /// Block and group of `address`.
    #[inline]
    fn place_of(&self, address: u32) -> (u32, u32) {
        let group = self.geometry.group_of(address);
        let within = address - self.geometry.group_start(group);
        (group, within / self.geometry.fragments_per_block)
    }

    /// A free block of `group`, which has one.
    fn choose_block(&mut self, group: u32, preferred: u32) -> Option<u32> {
        let from = if preferred == 0 || self.geometry.group_of(preferred) != group {
            // Nothing is preferred here: on from where the last such search ended.
            self.space.groups[group as usize].block_rotor
        } else {
            let (_, block) = self.place_of(preferred);
            if self.space.is_free(group, block) {
                return Some(block);
            }
            if self.geometry.positions > 1
                && let Some(block) = self.space.rotationally_next(&self.geometry, group, block)
            {
                return Some(block);
            }
            block * self.geometry.fragments_per_block
        };
        let start = self.search_start(group, from);
        let found = self.space.next_free(group, start);
        let block = found.or_else(|| self.space.next_free(group, 0))?;
        let ended = self.byte_of(block);
        let summary = &mut self.space.groups[group as usize];
        summary.block_rotor = block * self.geometry.fragments_per_block;
        summary.fragment_rotor = ended;
        Some(block)
    }

    /// The block where a search of the map begins: that of the first fragment of the byte, in a map
    /// of one bit a fragment, that `from` (fragments within the group) is in. Without a preference
    /// it goes on from where the last search ended.
    fn search_start(&self, group: u32, from: u32) -> u32 {
        let from = if from == 0 { self.space.groups[group as usize].fragment_rotor } else { from };
        from / 8 * 8 / self.geometry.fragments_per_block
    }

    /// The first fragment of the byte of the map that `block` is in.
    fn byte_of(&self, block: u32) -> u32 {
        block * self.geometry.fragments_per_block / 8 * 8
    }

    fn allocate_fragments(&mut self, group: u32, preferred: u32, count: u32) -> Option<u32> {
        if self.policies.fragments == FragmentPlacement::NearPrevious && preferred != 0 {
            let (preferred_group, block) = self.place_of(preferred);
            if preferred_group == group && self.space.is_free(group, block) {
                return Some(self.take_fragments(group, block, 0, count));
            }
        }
        let block_fragments = self.geometry.fragments_per_block;
        let summary = &self.space.groups[group as usize];
        let lengths = count..block_fragments;
        let Some(length) = lengths.into_iter().find(|length| summary.runs[*length as usize] > 0)
        else {
            if summary.free_blocks == 0 {
                return None;
            }
            let block = self.choose_block(group, preferred)?;
            return Some(self.take_fragments(group, block, 0, count));
        };
        // A preference for another group stands for the same place in this one.
        let from = preferred % self.geometry.fragments_per_group;
        let start = self.search_start(group, from);
        let blocks = self.geometry.blocks_per_group;
        let found = self.space.next_run(&self.geometry, group, (start, blocks), length);
        let (block, at) =
            found.or_else(|| self.space.next_run(&self.geometry, group, (0, blocks), length))?;
        self.space.groups[group as usize].fragment_rotor = self.byte_of(block);
        Some(self.take_fragments(group, block, at, count))
    }

    fn take_fragments(&mut self, group: u32, block: u32, at: u32, count: u32) -> u32 {
        let free = self.space.block(&self.geometry, group, block);
        let taken = (((1_u32 << count) - 1) << at) as u8;
        assert_eq!(free & taken, taken, "fragments are free before they are taken");
        self.space.set_block(&self.geometry, group, block, free & !taken);
        self.address_of(group, block) + at
    }

    /// Gives back `count` fragments of one block.
    pub(crate) fn release(&mut self, address: u32, count: u32) {
        let (group, block) = self.place_of(address);
        let at = address % self.geometry.fragments_per_block;
        let given = (((1_u32 << count) - 1) << at) as u8;
        let free = self.space.block(&self.geometry, group, block);
        assert_eq!(free & given, 0, "fragments are in use before they are freed");
        self.space.set_block(&self.geometry, group, block, free | given);
        self.unsent.clear(address, count);
    }

    /// Makes the fragments at a file's end more: where they are, else elsewhere. Says where they
    /// are now.
    pub(crate) fn grow(&mut self, growth: Growth) -> Result<u32, FileSystemError> {
        if self.reserve_is_reached() {
            return Err(FileSystemError::NoSpace);
        }
        if self.extend_in_place(growth) {
            return Ok(growth.address);
        }
        let whole = self.geometry.fragments_per_block;
        let request = self.growth_request(growth.to);
        let group_here = self.geometry.group_of(growth.address);
        let preferred =
            if growth.preferred >= self.geometry.fragments { 0 } else { growth.preferred };
        let found = self.allocate_anywhere(group_here, preferred, request);
        let address = found.ok_or(FileSystemError::NoSpace)?;
        self.unsent.transfer(growth.address, address, growth.from);
        self.release(growth.address, growth.from);
        if request == whole && growth.to < whole {
            self.release(address + growth.to, whole - growth.to);
        }
        Ok(address)
    }

    /// How much a growing file is given, and whether the file system changes between saving time
    /// and saving space: with more than half of `minfree` lying in fragments it saves space no
    /// longer than that, and with all but 2 % of it lying there it saves no time.
    fn growth_request(&mut self, fragments: u32) -> u32 {
        let free = u64::from(self.space.free_fragments);
        let (all, minfree) =
            (u64::from(self.geometry.data_fragments), u64::from(self.geometry.minfree_pct));
        match self.optimization {
            Optimization::Space => {
                if minfree >= 5 && free <= all * minfree / 200 {
                    self.optimization = Optimization::Time;
                }
                fragments
            }
            Optimization::Time => {
                if free >= all * minfree.saturating_sub(2) / 100 {
                    self.optimization = Optimization::Space;
                }
                self.geometry.fragments_per_block
            }
        }
    }

    fn extend_in_place(&mut self, growth: Growth) -> bool {
        let (group, block) = self.place_of(growth.address);
        let at = growth.address % self.geometry.fragments_per_block;
        let more = growth.to - growth.from;
        if at + growth.to > self.geometry.fragments_per_block {
            return false;
        }
        let free = self.space.block(&self.geometry, group, block);
        let taken = (((1_u32 << more) - 1) << (at + growth.from)) as u8;
        if free & taken != taken {
            return false;
        }
        self.space.set_block(&self.geometry, group, block, free & !taken);
        true
    }

    /// Allocates `length` blocks side by side near `preferred`, in its group if it has them.
    pub(crate) fn allocate_cluster(&mut self, preferred: u32, length: u32) -> Option<u32> {
        let group = self.geometry.group_of(preferred);
        self.in_groups(group, |system, group, first| {
            let summary = &system.space.groups[group as usize];
            if summary.cluster_longest() < length {
                return None;
            }
            // Not before the preference: the arm would have to come back for it.
            let from = if first { system.place_of(preferred).1 } else { 0 };
            let start = system.space.next_cluster(group, from, length)?;
            for block in start..start + length {
                system.space.set_block(&system.geometry, group, block, 0);
            }
            Some(system.address_of(group, start))
        })
    }
}
