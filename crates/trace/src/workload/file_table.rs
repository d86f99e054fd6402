//! The files of a workload: their lengths and directories, in the order of their numbers.
//!
//! Invariants: numbers are dense; a file's directory never changes. Cost: 8 bytes a file.

use super::InitialFile;

/// Files by their numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct FileTable {
    blocks: Vec<u32>,
    directories: Vec<u32>,
}

impl FileTable {
    /// Adds a file of `blocks` in `directory`; its number.
    pub(super) fn add(&mut self, blocks: u32, directory: u32) -> u32 {
        let file = u32::try_from(self.blocks.len()).expect("files are numbered by u32");
        self.blocks.push(blocks);
        self.directories.push(directory);
        file
    }

    /// Blocks of `file` when it is complete.
    #[inline]
    pub(super) fn blocks(&self, file: u32) -> u32 {
        self.blocks[file as usize]
    }

    /// The directory of `file`; 0 for a file that there is not.
    pub(super) fn directory(&self, file: u32) -> u32 {
        self.directories.get(file as usize).copied().unwrap_or(0)
    }

    /// The files so far, as what is live before a stream.
    pub(super) fn as_initial(&self) -> Vec<InitialFile> {
        let files =
            (0..).zip(&self.blocks).map(|(file, blocks)| InitialFile { file, blocks: *blocks });
        files.filter(|file| file.blocks > 0).collect()
    }
}
