//! Which file of the file system is which file of the host, and which block of the layout is which
//! block of a file.

use super::NONE;
use crate::block_layout::FileBlock;

/// Files, directories and names of blocks.
#[derive(Debug, Clone)]
pub(super) struct Files {
    /// By the host's number.
    entries: Vec<HostFile>,
    /// The file system's directory for each of the host's.
    directories: Vec<u32>,
    names: Vec<FileBlock>,
}

/// One file of the host.
#[derive(Debug, Clone)]
struct HostFile {
    /// Its number in the file system; `NONE` if it is not there.
    number: u32,
    /// Its blocks, the last of which exists.
    blocks: Vec<u32>,
}

const NOBODYS: FileBlock = FileBlock { file: NONE, block: NONE };

impl Files {
    /// No files; the host's directory 0 is `root`.
    pub(super) fn new(root: u32) -> Self {
        Self { entries: Vec::new(), directories: vec![root], names: Vec::new() }
    }

    pub(super) fn ensure_blocks(&mut self, blocks: u32) {
        self.names.resize(blocks as usize, NOBODYS);
    }

    /// The file system's number of `file`, if it has been made.
    pub(super) fn number(&self, file: u32) -> Option<u32> {
        let number = self.entries.get(file as usize)?.number;
        (number != NONE).then_some(number)
    }

    /// The same of a directory.
    pub(super) fn directory(&self, directory: u32) -> Option<u32> {
        let number = *self.directories.get(directory as usize)?;
        (number != NONE).then_some(number)
    }

    pub(super) fn enter_directory(&mut self, directory: u32, number: u32) {
        let directory = directory as usize;
        if directory >= self.directories.len() {
            self.directories.resize(directory + 1, NONE);
        }
        self.directories[directory] = number;
    }

    /// `file` has been made.
    pub(super) fn enter(&mut self, file: u32, number: u32) {
        let file = file as usize;
        if file >= self.entries.len() {
            self.entries.resize(file + 1, HostFile { number: NONE, blocks: Vec::new() });
        }
        self.entries[file].number = number;
    }

    /// `file` is gone, and its blocks with it; the number it had, if it was there.
    pub(super) fn forget(&mut self, file: u32) -> Option<u32> {
        let number = self.number(file)?;
        self.entries[file as usize].number = NONE;
        Some(number)
    }

    /// Blocks of `file` up to the last that exists.
    pub(super) fn length(&self, file: u32) -> u32 {
        self.entries.get(file as usize).map_or(0, |file| file.blocks.len() as u32)
    }

    /// The block of the layout that is `index` of `file`.
    pub(super) fn block(&self, file: u32, index: u32) -> Option<u32> {
        let block = *self.entries.get(file as usize)?.blocks.get(index as usize)?;
        (block != NONE).then_some(block)
    }

    /// `block` is `name`.
    pub(super) fn put(&mut self, name: FileBlock, block: u32) {
        let blocks = &mut self.entries[name.file as usize].blocks;
        let index = name.block as usize;
        if index >= blocks.len() {
            blocks.resize(index + 1, NONE);
        }
        blocks[index] = block;
        self.names[block as usize] = name;
    }

    /// The name of `block`, unless it belongs to no file.
    pub(super) fn name(&self, block: u32) -> Option<FileBlock> {
        let name = self.names[block as usize];
        (name != NOBODYS).then_some(name)
    }

    /// `block` is gone: its file, and how many blocks that has left if the last has gone.
    pub(super) fn take(&mut self, block: u32) -> Option<(u32, Option<u32>)> {
        let name = std::mem::replace(&mut self.names[block as usize], NOBODYS);
        if name == NOBODYS {
            return None;
        }
        let blocks = &mut self.entries[name.file as usize].blocks;
        blocks[name.block as usize] = NONE;
        let before = blocks.len();
        while blocks.last() == Some(&NONE) {
            blocks.pop();
        }
        let is_shorter = blocks.len() < before;
        Some((name.file, is_shorter.then_some(blocks.len() as u32)))
    }

    /// # Panics
    /// If names and blocks do not agree, which is a bug.
    pub(super) fn verify(&self) {
        for (file, entry) in (0..).zip(&self.entries) {
            for (index, block) in (0..).zip(&entry.blocks).filter(|(_, block)| **block != NONE) {
                let name = FileBlock { file, block: index };
                assert_eq!(self.names[*block as usize], name, "name of block {block}");
            }
            assert!(entry.number != NONE || entry.blocks.is_empty(), "blocks of no file");
        }
    }
}
