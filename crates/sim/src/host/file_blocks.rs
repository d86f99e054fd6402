//! Which block of the layout is which block of a file.
//!
//! Blocks of the layout are numbered densely; a number is used again after its block was deleted.
//!
//! A file whose blocks were numbered one behind the other, as all are that lay on the disk before the
//! first request, is kept as the number of its first block: then finding a block is an addition, not
//! a look into a table as large as the file. Where it ceases to be so it becomes a table.

use agewell_layout::block_layout::FileBlock;
use agewell_trace::workload::InitialFile;

const NONE: u32 = u32::MAX;

/// Files and their blocks.
#[derive(Debug, Default)]
pub(crate) struct FileBlocks {
    files: Vec<Numbers>,
    /// Which files the layout knows.
    created: Vec<bool>,
    free: Vec<u32>,
    numbered: u32,
    /// The names by number, if they are kept.
    names: Option<Vec<Option<FileBlock>>>,
}

/// The numbers of the blocks of one file.
#[derive(Debug, Clone)]
enum Numbers {
    /// Of `blocks` blocks, from `first` on.
    Run { first: u32, blocks: u32 },
    /// One a block; [`NONE`] for those that are not there.
    Table(Vec<u32>),
}

impl Default for Numbers {
    fn default() -> Self {
        Numbers::Run { first: 0, blocks: 0 }
    }
}

impl Numbers {
    #[inline]
    fn get(&self, block: u32) -> Option<u32> {
        match self {
            Numbers::Run { first, blocks } => (block < *blocks).then(|| first + block),
            Numbers::Table(numbers) => {
                numbers.get(block as usize).copied().filter(|number| *number != NONE)
            }
        }
    }

    /// `block`, which is not there, has `number` from now on.
    fn set(&mut self, block: u32, number: u32) {
        if let Numbers::Run { first, blocks } = self {
            if *blocks == 0 && block == 0 {
                *first = number;
            }
            if block == *blocks && *first + *blocks == number {
                *blocks += 1;
                return;
            }
            *self = Numbers::Table((*first..*first + *blocks).collect());
        }
        let Numbers::Table(numbers) = self else { return };
        let block = block as usize;
        if block >= numbers.len() {
            numbers.resize(block + 1, NONE);
        }
        numbers[block] = number;
    }
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
    #[inline]
    pub(crate) fn find(&self, file: u32, block: u32) -> Option<u32> {
        self.files.get(file as usize)?.get(block)
    }

    /// Of a file whose blocks are numbered one behind the other: the number of the first, and how
    /// many there are.
    pub(crate) fn run_of(&self, file: u32) -> Option<(u32, u32)> {
        match self.files.get(file as usize)? {
            Numbers::Run { first, blocks } => Some((*first, *blocks)),
            Numbers::Table(_) => None,
        }
    }

    /// Whether the layout knows `file`.
    pub(crate) fn is_created(&self, file: u32) -> bool {
        self.created.get(file as usize).is_some_and(|created| *created)
    }

    /// The block of the layout behind `block` of `file`, made if it does not exist.
    #[inline]
    pub(crate) fn make(&mut self, file: u32, block: u32) -> u32 {
        self.find(file, block).unwrap_or_else(|| self.add(file, block))
    }

    /// Numbers a block that does not exist.
    #[inline(never)]
    fn add(&mut self, file: u32, block: u32) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.numbered += 1;
            self.numbered - 1
        });
        if file as usize >= self.files.len() {
            self.files.resize(file as usize + 1, Numbers::default());
        }
        self.files[file as usize].set(block, number);
        if let Some(names) = &mut self.names {
            names.resize(names.len().max(number as usize + 1), None);
            names[number as usize] = Some(FileBlock { file, block });
        }
        number
    }

    /// Whether the layout has yet to hear that `file` comes into being; it has, from now on.
    #[inline]
    pub(crate) fn is_created_by(&mut self, file: u32) -> bool {
        let file = file as usize;
        if file >= self.created.len() {
            self.created.resize(file + 1, false);
        }
        !std::mem::replace(&mut self.created[file], true)
    }

    /// Whether the layout has yet to hear that `file` is gone; it has, from now on.
    pub(crate) fn is_removed_by(&mut self, file: u32) -> bool {
        self.created.get_mut(file as usize).is_some_and(std::mem::take)
    }

    /// Numbers for `blocks` blocks that are in no file, one behind the other.
    pub(crate) fn number_apart(&mut self, blocks: u32) -> u32 {
        let first = self.numbered;
        self.numbered += blocks;
        first
    }

    /// Numbers all blocks of a file that lies on the disk before the first request, one behind the
    /// other, and gives the first number; none if other numbers are to be used first or the file has
    /// blocks.
    pub(crate) fn lay_out_run(&mut self, initial: InitialFile) -> Option<u32> {
        let InitialFile { file, blocks } = initial;
        let is_empty = |numbers: &Numbers| matches!(numbers, Numbers::Run { blocks: 0, .. });
        if !self.free.is_empty() || !self.files.get(file as usize).is_none_or(is_empty) {
            return None;
        }
        let first = self.number_apart(blocks);
        if file as usize >= self.files.len() {
            self.files.resize(file as usize + 1, Numbers::default());
        }
        self.files[file as usize] = Numbers::Run { first, blocks };
        if let Some(names) = &mut self.names {
            names.resize(names.len().max(first as usize), None);
            names.extend((0..blocks).map(|block| Some(FileBlock { file, block })));
        }
        Some(first)
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
        let Some(numbers) = self.files.get_mut(file as usize) else { return };
        match numbers {
            Numbers::Run { first, blocks } => {
                for number in *first + kept.min(*blocks)..*first + *blocks {
                    gone(number);
                    self.free.push(number);
                }
                *blocks = kept.min(*blocks);
            }
            Numbers::Table(numbers) => {
                let kept = (kept as usize).min(numbers.len());
                for number in numbers.drain(kept..).filter(|number| *number != NONE) {
                    gone(number);
                    self.free.push(number);
                }
            }
        }
        if kept == 0 {
            // A file that is gone keeps no memory.
            *numbers = Numbers::default();
        }
    }

    /// Numbers in use or used before.
    #[inline]
    pub(crate) fn numbered(&self) -> u32 {
        self.numbered
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn numbers_are_those_of_a_table(
            actions in prop::collection::vec((0_u32..3, 0_u32..12, 0_u32..6), 1..120),
        ) {
            let mut files = FileBlocks::default();
            let (mut slow, mut free) = (BTreeMap::new(), Vec::new());
            let mut numbered = 0;
            for (file, block, action) in actions {
                if action == 0 {
                    let mut gone = Vec::new();
                    files.cut(file, block, |number| gone.push(number));
                    let cut = slow.range((file, block)..(file + 1, 0));
                    let cut: Vec<_> = cut.map(|(name, number)| (*name, *number)).collect();
                    prop_assert_eq!(gone, cut.iter().map(|cut| cut.1).collect::<Vec<u32>>());
                    for (name, number) in cut {
                        slow.remove(&name);
                        free.push(number);
                    }
                } else {
                    // Mostly in order, so that runs come and go.
                    let next = slow.range((file, 0)..(file + 1, 0)).count() as u32;
                    let block = if action < 5 { next } else { block };
                    let number = *slow.entry((file, block)).or_insert_with(|| {
                        free.pop().unwrap_or_else(|| {
                            numbered += 1;
                            numbered - 1
                        })
                    });
                    prop_assert_eq!(files.make(file, block), number);
                }
                for (file, block) in (0..3).flat_map(|file| (0..14).map(move |block| (file, block))) {
                    prop_assert_eq!(files.find(file, block), slow.get(&(file, block)).copied());
                }
                prop_assert_eq!(files.numbered(), numbered);
            }
        }
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
