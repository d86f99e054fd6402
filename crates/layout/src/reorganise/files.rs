//! Which block is which block of which file, as groups by file and by directory need it.
//!
//! Extents are the parts of a file of as many blocks as may be moved together. Bins are files of a
//! directory, in the order in which they came into being, as many as make such a part; a file that
//! comes when its directory's last bin is full begins another. A file larger than a part is grouped
//! by its extents.
//!
//! Invariants: `known[f].blocks[b]` is the block that is named `(f, b)`, and `names` is its inverse.

use agewell_log::NONE;

use crate::block_layout::FileBlock;

const NOBODY: FileBlock = FileBlock { file: NONE, block: NONE };

/// A part of a file, or of the files of a directory.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    /// Reads of its blocks, less their writes.
    reads: u64,
    mark: u64,
}

#[derive(Debug, Clone, Default)]
struct File {
    blocks: Vec<u32>,
    live: u32,
    extents: Vec<Part>,
    bin: Option<u32>,
}

#[derive(Debug, Clone, Default)]
struct Bin {
    files: Vec<u32>,
    part: Part,
}

/// All files.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    part_blocks: u32,
    names: Vec<FileBlock>,
    known: Vec<File>,
    bins: Vec<Bin>,
    /// The last bin of each directory.
    open: Vec<Option<u32>>,
}

impl Files {
    pub(crate) fn new(part_blocks: u32) -> Self {
        let part_blocks = part_blocks.max(1);
        Self {
            part_blocks,
            names: Vec::new(),
            known: Vec::new(),
            bins: Vec::new(),
            open: Vec::new(),
        }
    }

    /// A file comes into being.
    pub(crate) fn create(&mut self, file: u32, directory: u32) {
        let (number, directory) = (file as usize, directory as usize);
        if number >= self.known.len() {
            self.known.resize_with(number + 1, File::default);
        }
        if directory >= self.open.len() {
            self.open.resize(directory + 1, None);
        }
        if self.known[number].bin.is_some() {
            return;
        }
        let has_room = |bin: &u32| {
            let files = self.bins[*bin as usize].files.iter();
            let blocks: u32 = files.map(|file| self.known[*file as usize].live).sum();
            blocks < self.part_blocks
        };
        let bin = self.open[directory].filter(has_room).unwrap_or_else(|| {
            self.bins.push(Bin::default());
            self.bins.len() as u32 - 1
        });
        self.open[directory] = Some(bin);
        self.bins[bin as usize].files.push(file);
        self.known[number].bin = Some(bin);
    }

    /// A file is gone.
    pub(crate) fn remove(&mut self, file: u32) {
        let Some(known) = self.known.get_mut(file as usize) else { return };
        if let Some(bin) = known.bin.take() {
            self.bins[bin as usize].files.retain(|other| *other != file);
        }
    }

    /// `block` is called `name`.
    pub(crate) fn call(&mut self, block: u32, name: FileBlock) {
        if block as usize >= self.names.len() {
            self.names.resize(block as usize + 1, NOBODY);
        }
        if self.names[block as usize] == name {
            return;
        }
        self.forget(block);
        self.names[block as usize] = name;
        if self.known.get(name.file as usize).is_none_or(|file| file.bin.is_none()) {
            self.create(name.file, 0);
        }
        let part_blocks = self.part_blocks as usize;
        let file = &mut self.known[name.file as usize];
        let end = name.block as usize + 1;
        if end > file.blocks.len() {
            file.blocks.resize(end, NONE);
            file.extents.resize(end.div_ceil(part_blocks), Part::default());
        }
        file.blocks[name.block as usize] = block;
        file.live += 1;
    }

    /// `block` is deleted.
    pub(crate) fn forget(&mut self, block: u32) {
        let Some(name) = self.name(block) else { return };
        self.names[block as usize] = NOBODY;
        let file = &mut self.known[name.file as usize];
        file.blocks[name.block as usize] = NONE;
        file.live -= 1;
        if file.live == 0 {
            (file.blocks, file.extents) = (Vec::new(), Vec::new());
        }
    }

    /// The name of `block`.
    #[inline]
    pub(crate) fn name(&self, block: u32) -> Option<FileBlock> {
        self.names.get(block as usize).copied().filter(|name| *name != NOBODY)
    }

    /// Whether `next` follows `block` in its file.
    #[inline]
    pub(crate) fn follows(&self, block: u32, next: u32) -> bool {
        let follower = |name: FileBlock| FileBlock { file: name.file, block: name.block + 1 };
        self.name(block).is_some_and(|name| self.name(next) == Some(follower(name)))
    }

    /// Blocks of `file`.
    pub(crate) fn len(&self, file: u32) -> u32 {
        self.known.get(file as usize).map_or(0, |file| file.live)
    }

    /// Whether `file` is grouped by extents.
    #[inline]
    pub(crate) fn is_large(&self, file: u32) -> bool {
        self.len(file) > self.part_blocks
    }

    /// The extent of a block.
    #[inline]
    pub(crate) fn extent_of(&self, name: FileBlock) -> u32 {
        name.block / self.part_blocks
    }

    /// The bin of `file`.
    #[inline]
    pub(crate) fn bin_of(&self, file: u32) -> Option<u32> {
        self.known.get(file as usize)?.bin
    }

    /// Blocks of extent `extent` of `file`, in their order.
    pub(crate) fn extent(&self, file: u32, extent: u32) -> impl Iterator<Item = u32> + '_ {
        let blocks = self.known.get(file as usize).map_or(&[][..], |file| &file.blocks);
        let first = (extent * self.part_blocks) as usize;
        let blocks = blocks.iter().copied().skip(first).take(self.part_blocks as usize);
        blocks.filter(|block| *block != NONE)
    }

    /// Blocks of `file`, in their order.
    pub(crate) fn blocks(&self, file: u32) -> impl Iterator<Item = u32> + '_ {
        let blocks = self.known.get(file as usize).map_or(&[][..], |file| &file.blocks);
        blocks.iter().copied().filter(|block| *block != NONE)
    }

    /// Blocks of the files of `bin` that are not large.
    pub(crate) fn bin(&self, bin: u32) -> impl Iterator<Item = u32> + '_ {
        let files = self.bins[bin as usize].files.iter().filter(|file| !self.is_large(**file));
        files.flat_map(|file| self.blocks(*file))
    }

    /// The tally of an extent.
    pub(crate) fn extent_part(&mut self, file: u32, extent: u32) -> Option<(&mut u64, &mut u64)> {
        let part = self.known.get_mut(file as usize)?.extents.get_mut(extent as usize)?;
        Some((&mut part.reads, &mut part.mark))
    }

    /// The tally of a bin.
    pub(crate) fn bin_part(&mut self, bin: u32) -> Option<(&mut u64, &mut u64)> {
        let part = &mut self.bins.get_mut(bin as usize)?.part;
        Some((&mut part.reads, &mut part.mark))
    }

    /// Bytes it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let file = |file: &File| {
            file.blocks.capacity() * size_of::<u32>() + file.extents.capacity() * size_of::<Part>()
        };
        self.names.capacity() * size_of::<FileBlock>()
            + self.known.capacity() * size_of::<File>()
            + self.known.iter().map(file).sum::<usize>()
            + self.bins.iter().map(|bin| bin.files.capacity() * 4 + size_of::<Bin>()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(file: u32, block: u32) -> FileBlock {
        FileBlock { file, block }
    }

    #[test]
    fn names_and_blocks_are_each_others_inverse() {
        let mut files = Files::new(4);
        for block in 0..10 {
            files.call(block, name(2, 9 - block));
        }
        assert_eq!(files.name(3), Some(name(2, 6)));
        assert_eq!(files.blocks(2).collect::<Vec<_>>(), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(files.extent(2, 1).collect::<Vec<_>>(), [5, 4, 3, 2]);
        assert_eq!(files.extent(2, 2).collect::<Vec<_>>(), [1, 0]);
        assert!(files.follows(5, 4));
        assert!(!files.follows(4, 5));
        files.forget(4);
        assert!(!files.follows(5, 4));
        files.call(4, name(7, 0));
        assert_eq!((files.len(2), files.len(7)), (9, 1));
        assert_eq!(files.extent(2, 1).collect::<Vec<_>>(), [5, 3, 2]);
    }

    #[test]
    fn files_of_a_directory_share_bins_in_the_order_of_their_creation() {
        let mut files = Files::new(4);
        let mut block = 0;
        for (file, directory, blocks) in [(0, 1, 2), (1, 1, 2), (2, 1, 1), (3, 0, 2), (4, 1, 9)] {
            files.create(file, directory);
            for offset in 0..blocks {
                files.call(block, name(file, offset));
                block += 1;
            }
        }
        assert_eq!(files.bin_of(0), files.bin_of(1));
        assert_ne!(files.bin_of(1), files.bin_of(2));
        assert_ne!(files.bin_of(2), files.bin_of(3));
        assert!(files.is_large(4));
        // The large file is in the bin by name and not by its blocks.
        assert_eq!(files.bin_of(2), files.bin_of(4));
        let bin = files.bin_of(2).unwrap();
        assert_eq!(files.bin(bin).collect::<Vec<_>>(), [4]);
        files.remove(1);
        let bin = files.bin_of(0).unwrap();
        assert_eq!(files.bin(bin).collect::<Vec<_>>(), [0, 1]);
    }
}
