//! Which block of the layout is which block of a file.
//!
//! Blocks of the layout are numbered densely; a number is used again after its block was deleted.

use agewell_layout::block_layout::FileBlock;
use agewell_trace::workload::InitialFile;

const NONE: u32 = u32::MAX;

/// Files and their blocks.
#[derive(Debug, Default)]
pub(crate) struct FileBlocks {
    files: Vec<Vec<u32>>,
    /// Which files the layout has been told of.
    created: Vec<bool>,
    free: Vec<u32>,
    numbered: u32,
    /// The names by number, if they are kept.
    names: Option<Vec<Option<FileBlock>>>,
}

impl FileBlocks {
    /// Names can be asked for by number from here on.
    pub(crate) fn keep_names(&mut self) {
        self.names = Some(Vec::new());
    }

    /// What `number`, which names have been kept of, is in its file.
    pub(crate) fn name_of(&self, number: u32) -> Option<FileBlock> {
        self.names.as_ref()?.get(number as usize).copied().flatten()
    }

    /// The block of the layout behind `block` of `file`, if it exists.
    pub(crate) fn find(&self, file: u32, block: u32) -> Option<u32> {
        let number = *self.files.get(file as usize)?.get(block as usize)?;
        (number != NONE).then_some(number)
    }

    /// The same, made if it does not exist.
    pub(crate) fn make(&mut self, file: u32, block: u32) -> u32 {
        let name = FileBlock { file, block };
        let (file, block) = (file as usize, block as usize);
        if file >= self.files.len() {
            self.files.resize(file + 1, Vec::new());
        }
        let blocks = &mut self.files[file];
        if block >= blocks.len() {
            blocks.resize(block + 1, NONE);
        }
        if blocks[block] == NONE {
            blocks[block] = self.free.pop().unwrap_or_else(|| {
                self.numbered += 1;
                self.numbered - 1
            });
            if let Some(names) = &mut self.names {
                let number = blocks[block] as usize;
                names.resize(names.len().max(number + 1), None);
                names[number] = Some(name);
            }
        }
        blocks[block]
    }

    /// Whether the layout has to be told that `file` comes into being; it has been, from now on.
    pub(crate) fn is_created_by(&mut self, file: u32) -> bool {
        let file = file as usize;
        if file >= self.created.len() {
            self.created.resize(file + 1, false);
        }
        !std::mem::replace(&mut self.created[file], true)
    }

    /// Whether the layout has to be told that `file` is gone; it has been, from now on.
    pub(crate) fn is_removed_by(&mut self, file: u32) -> bool {
        self.created.get_mut(file as usize).is_some_and(std::mem::take)
    }

    /// Numbers for `blocks` blocks that are in no file, one behind the other.
    pub(crate) fn number_apart(&mut self, blocks: u32) -> u32 {
        let first = self.numbered;
        self.numbered += blocks;
        first
    }

    /// All blocks of a file that lies on the disk before the first request.
    pub(crate) fn lay_out(
        &mut self,
        initial: &InitialFile,
    ) -> impl Iterator<Item = (u32, FileBlock)> + '_ {
        let InitialFile { file, blocks } = *initial;
        (0..blocks).map(move |block| (self.make(file, block), FileBlock { file, block }))
    }

    /// Takes away the blocks of `file` from `kept` on and gives each to `gone`.
    pub(crate) fn cut(&mut self, file: u32, kept: u32, mut gone: impl FnMut(u32)) {
        let Some(blocks) = self.files.get_mut(file as usize) else { return };
        if (kept as usize) < blocks.len() {
            for number in blocks.drain(kept as usize..).filter(|number| *number != NONE) {
                gone(number);
                self.free.push(number);
            }
        }
        if kept == 0 {
            // A file that is gone keeps no memory.
            *blocks = Vec::new();
        }
    }

    /// Numbers in use or used before.
    pub(crate) fn numbered(&self) -> u32 {
        self.numbered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_dense_and_used_again() {
        let mut files = FileBlocks::default();
        let laid: Vec<u32> = {
            let laid = files.lay_out(&InitialFile { file: 3, blocks: 4 });
            laid.map(|(number, _)| number).collect()
        };
        assert_eq!(laid, [0, 1, 2, 3]);
        assert_eq!((files.find(3, 2), files.find(3, 4), files.find(0, 0)), (Some(2), None, None));
        assert_eq!(files.make(0, 7), 4);
        assert_eq!(files.find(0, 6), None);
        assert!(files.is_created_by(3) && !files.is_created_by(3));
        assert!(files.is_removed_by(3) && !files.is_removed_by(3) && files.is_created_by(3));
        let mut gone = Vec::new();
        files.cut(3, 1, |number| gone.push(number));
        assert_eq!(gone, [1, 2, 3]);
        assert_eq!(files.make(5, 0), 3);
        assert_eq!((files.find(3, 0), files.find(3, 1), files.numbered()), (Some(0), None, 5));
    }

    #[test]
    fn a_number_has_the_name_it_was_given_last() {
        let mut files = FileBlocks::default();
        files.make(9, 9);
        assert_eq!(files.name_of(0), None);
        files.keep_names();
        assert_eq!(files.number_apart(1), 1);
        assert_eq!((files.make(2, 1), files.make(4, 0)), (2, 3));
        files.cut(4, 0, |_| {});
        assert_eq!(files.make(7, 3), 3);
        let names = [1, 2, 3].map(|number| files.name_of(number));
        let (first, last) = (FileBlock { file: 2, block: 1 }, FileBlock { file: 7, block: 3 });
        assert_eq!(names, [None, Some(first), Some(last)]);
    }
}
