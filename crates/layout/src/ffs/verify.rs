//! Checks of the whole state, for tests, and for long runs now and then.

use super::geometry::DIRECT_BLOCKS;
use super::inodes::Kind;
use super::{FastFileSystem, InodeKind, LayoutTally};

impl FastFileSystem {
    /// Checks every invariant, from the inodes up: no fragment is used twice or without an owner,
    /// none is both used and free, fragments do not cross blocks, and every count is what it
    /// counts.
    ///
    /// Cost: linear in the file system.
    ///
    /// # Panics
    /// If one does not hold.
    pub(crate) fn check(&self) {
        let mut used = vec![false; self.geometry.fragments as usize];
        for group in 0..self.geometry.groups {
            let start = self.geometry.group_start(group);
            for fragment in self.geometry.metadata(group) {
                used[(start + fragment) as usize] = true;
            }
        }
        let mut tally = LayoutTally::default();
        for number in 0..self.inodes.records.len() as u32 {
            self.verify_inode(number, &mut used, &mut tally);
        }
        let mut tails = LayoutTally::default();
        for (inode, kind, _) in self.inodes() {
            if kind == InodeKind::File {
                let tail = self.tail(inode);
                tails.optimal += tail.optimal;
                tails.counted += tail.counted;
            }
        }
        assert_eq!(tails, self.tails, "the tally of fragments is exact");
        self.verify_free(&used);
        self.verify_inode_counts();
        self.verify_directories();
        assert_eq!(tally, self.tally, "the tally of the layout score is exact");
    }

    fn verify_inode(&self, number: u32, used: &mut [bool], tally: &mut LayoutTally) {
        let record = &self.inodes.records[number as usize];
        assert_eq!(self.inodes.is_used(number), record.kind != Kind::Free, "inode {number}");
        if !matches!(record.kind, Kind::File | Kind::Directory) {
            return;
        }
        let mut take = |address: u32, count: u32| {
            let whole = self.geometry.fragments_per_block;
            assert!(count > 0, "inode {number} has a block of nothing");
            assert!(count <= whole, "inode {number} has a block that is too large");
            assert!(address % whole + count <= whole, "inode {number}: {address} crosses a block");
            for fragment in address..address + count {
                let seen = std::mem::replace(&mut used[fragment as usize], true);
                assert!(!seen, "inode {number}: fragment {fragment} is used twice");
            }
        };
        let blocks = self.geometry.blocks_of(record.size_bytes);
        for block in 0..blocks.max(DIRECT_BLOCKS) {
            let address = self.address(number, block);
            assert!(block < blocks || address == 0, "inode {number} has blocks behind its end");
            if address != 0 {
                take(address, self.block_fragments(record.size_bytes, block));
            }
        }
        let indirect = self.indirect_blocks(number).expect("it is a file or a directory");
        for address in indirect {
            take(address, self.geometry.fragments_per_block);
        }
        assert!(record.single.is_none() || blocks > DIRECT_BLOCKS, "inode {number}");
        assert!(
            record.double == 0 || blocks > DIRECT_BLOCKS + self.geometry.addresses_per_block,
            "inode {number}"
        );
        if record.kind == Kind::File {
            let own = self.file_tally(number).expect("it is a file");
            tally.optimal += own.optimal;
            tally.counted += own.counted;
        }
    }

    fn verify_free(&self, used: &[bool]) {
        let whole = self.geometry.fragments_per_block;
        for (fragment, used) in used.iter().enumerate() {
            let address = fragment as u32;
            let group = self.geometry.group_of(address);
            let block = (address - self.geometry.group_start(group)) / whole;
            let byte = self.space.block(&self.geometry, group, block);
            let free = byte >> (address % whole) & 1 == 1;
            assert!(free != *used, "fragment {address} is free: {free}, used: {used}");
        }
        assert!(self.space.agrees(&self.space.recount(&self.geometry)), "counts of free space");
        let total = used.iter().filter(|used| **used).count() as u32;
        let metadata = self.geometry.fragments - self.geometry.data_fragments;
        let usage = self.usage();
        assert_eq!(usage.free_fragments + total, usage.total_fragments + metadata);
    }

    fn verify_inode_counts(&self) {
        let per_group = self.geometry.inodes_per_group as usize;
        let mut free_inodes = 0;
        for (group, records) in self.inodes.records.chunks(per_group).enumerate() {
            let summary = &self.space.groups[group];
            let free = records.iter().filter(|record| record.kind == Kind::Free).count();
            let directories =
                records.iter().filter(|record| record.kind == Kind::Directory).count();
            assert_eq!(summary.free_inodes as usize, free, "free inodes of group {group}");
            assert_eq!(summary.directories as usize, directories, "directories of group {group}");
            free_inodes += free;
        }
        assert_eq!(self.space.free_inodes as usize, free_inodes, "free inodes");
    }

    fn verify_directories(&self) {
        let mut entries: Vec<Vec<u32>> = vec![Vec::new(); self.directories.len()];
        for (inode, _, directory) in self.inodes() {
            if inode != Self::ROOT {
                let parent = &self.inodes.records[directory as usize];
                assert_eq!(parent.kind, Kind::Directory, "inode {inode} is in no directory");
                let chunk = self.inodes.records[inode as usize].chunk;
                entries[parent.contents as usize].push(chunk);
            }
        }
        for record in &self.inodes.records {
            if record.kind == Kind::Directory {
                let contents = &self.directories[record.contents as usize];
                let chunks = &entries[record.contents as usize];
                assert!(contents.agrees(&self.geometry, chunks), "entries of a directory");
                let bytes = u64::from(contents.chunks()) * 512;
                assert_eq!(record.size_bytes, bytes, "a directory's size is that of its chunks");
            }
        }
    }
}
