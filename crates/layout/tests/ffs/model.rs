//! A slow model of files: their sizes, and which of their blocks are no holes.

use std::collections::{BTreeMap, BTreeSet};

use agewell_layout::ffs::{FastFileSystem, Parameters};
use agewell_layout::file_system::FileSystem;

/// A file.
#[derive(Debug, Clone, Default)]
struct ModelFile {
    size_bytes: u64,
    /// Blocks that are no holes.
    blocks: BTreeSet<u64>,
}

impl ModelFile {
    fn write(&mut self, at: u64, size: u64, block_bytes: u64) {
        self.size_bytes = self.size_bytes.max(at + size);
        self.blocks.extend(at / block_bytes..=(at + size - 1) / block_bytes);
    }
}

/// All files.
#[derive(Debug)]
pub(crate) struct Model {
    block_bytes: u64,
    fragment_bytes: u64,
    files: BTreeMap<u32, ModelFile>,
}

impl Model {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        Self {
            block_bytes: parameters.block_bytes.into(),
            fragment_bytes: parameters.fragment_bytes.into(),
            files: BTreeMap::new(),
        }
    }

    pub(crate) fn create(&mut self, file: u32) {
        assert!(self.files.insert(file, ModelFile::default()).is_none());
    }

    pub(crate) fn remove(&mut self, file: u32) {
        self.files.remove(&file);
    }

    pub(crate) fn write(&mut self, file: u32, at: u64, size: u64) {
        let block_bytes = self.block_bytes;
        self.file(file).write(at, size, block_bytes);
    }

    /// A write that did not fit: as many whole blocks of it are there as the file system says. Says
    /// whether it is any.
    pub(crate) fn write_part(
        &mut self,
        system: &FastFileSystem,
        file: u32,
        at: u64,
        size: u64,
    ) -> bool {
        let block_bytes = self.block_bytes;
        let before = self.file(file).clone();
        let there = self.blocks_of(system, file);
        let ends = (at / block_bytes..(at + size).div_ceil(block_bytes)).map(|block| {
            let end = block * block_bytes;
            end.saturating_sub(at)
        });
        let fits = |part: &u64| {
            let mut after = before.clone();
            if *part > 0 {
                after.write(at, *part, block_bytes);
            }
            after.blocks == there && after.size_bytes == system.size_bytes(file)
        };
        let part = ends.clone().find(fits);
        let part =
            part.unwrap_or_else(|| panic!("file {file} is no beginning of what was written"));
        if part > 0 {
            self.file(file).write(at, part, block_bytes);
        }
        part > 0
    }

    pub(crate) fn size_bytes(&self, file: u32) -> u64 {
        self.files[&file].size_bytes
    }

    /// The first byte from `at` on, of `size`, that has no room in `file`.
    pub(crate) fn first_missing(&self, file: u32, at: u64, size: u64) -> u64 {
        let blocks = (at / self.block_bytes)..(at + size).div_ceil(self.block_bytes);
        let has_room = |block: &u64| self.files[&file].blocks.contains(block);
        let missing = blocks.into_iter().find(|block| !has_room(block));
        missing.map_or(at, |block| at.max(block * self.block_bytes))
    }

    /// What `file` is given before the byte `at` has room: blocks for maps, at most, and fragments
    /// that make its last block whole.
    pub(crate) fn needs_before(&self, file: u32, at: u64) -> (u32, u32) {
        let file = &self.files[&file];
        let block = at / self.block_bytes;
        let addresses = self.block_bytes / 4;
        let names_any =
            |from: u64, count: u64| file.blocks.range(from..from + count).next().is_some();
        let mut maps = 0;
        if let Some(behind) = block.checked_sub(12) {
            let first = 12 + behind / addresses * addresses;
            maps += u32::from(!names_any(first, addresses));
            let is_double = behind >= addresses;
            maps += u32::from(is_double && !names_any(12 + addresses, addresses * addresses));
        }
        let last = file.size_bytes / self.block_bytes;
        let is_short = last < 12.min(block) && file.blocks.contains(&last);
        let tail_bytes = if is_short { file.size_bytes % self.block_bytes } else { 0 };
        let missing_bytes = tail_bytes.next_multiple_of(self.block_bytes) - tail_bytes;
        (maps, (missing_bytes / self.fragment_bytes) as u32)
    }

    pub(crate) fn truncate(&mut self, file: u32, size: u64) {
        let block_bytes = self.block_bytes;
        let file = self.file(file);
        if size > file.size_bytes {
            file.blocks.insert((size - 1) / block_bytes);
        } else {
            file.blocks.retain(|block| block * block_bytes < size);
        }
        file.size_bytes = size;
    }

    fn file(&mut self, file: u32) -> &mut ModelFile {
        self.files.get_mut(&file).expect("it has been made")
    }

    fn blocks_of(&self, system: &FastFileSystem, file: u32) -> BTreeSet<u64> {
        let extents = system.extents(file);
        let blocks = extents.iter().flat_map(|extent| {
            let end = extent.offset_bytes + extent.bytes;
            extent.offset_bytes / self.block_bytes..end.div_ceil(self.block_bytes)
        });
        blocks.collect()
    }

    /// Whole blocks of `file` that lie behind another one, and those that lie right behind it.
    fn score(&self, system: &FastFileSystem, file: u32) -> (u64, u64) {
        let mut sectors = Vec::new();
        for extent in system.extents(file) {
            for at in (0..extent.bytes).step_by(self.block_bytes as usize) {
                if extent.bytes - at >= self.block_bytes {
                    sectors.push(extent.sector + at / 512);
                }
            }
        }
        let pairs = sectors.windows(2);
        let next = self.block_bytes / 512;
        let optimal = pairs.filter(|pair| pair[0] + next == pair[1]).count() as u64;
        (optimal, sectors.len().saturating_sub(1) as u64)
    }

    /// Whether every file of `system` has the blocks that it has here, and fragments for no more
    /// than its last block needs.
    pub(crate) fn check(&self, system: &FastFileSystem) {
        let scores: Vec<(u64, u64)> =
            self.files.keys().map(|file| self.score(system, *file)).collect();
        let optimal = scores.iter().map(|score| score.0).sum();
        let counted = scores.iter().map(|score| score.1).sum();
        assert_eq!(system.layout_counts(), (optimal, counted));
        for (number, file) in &self.files {
            assert_eq!(system.size_bytes(*number), file.size_bytes, "file {number}");
            assert_eq!(self.blocks_of(system, *number), file.blocks, "file {number}");
            let last = file.size_bytes / self.block_bytes;
            let whole = self.block_bytes;
            let tail = (file.size_bytes % whole).next_multiple_of(self.fragment_bytes);
            // Behind the twelve direct blocks there are no fragments.
            let bytes = |block: &u64| if *block == last && last < 12 { tail } else { whole };
            let expected: u64 = file.blocks.iter().map(bytes).sum();
            let extents = system.extents(*number);
            let allocated: u64 = extents.iter().map(|extent| extent.bytes).sum();
            assert_eq!(allocated, expected, "file {number}");
        }
    }
}
