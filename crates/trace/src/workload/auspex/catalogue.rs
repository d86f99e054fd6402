//! The files of the Auspex-like load and the groups they are used in.
//!
//! A group stands for a directory or project: files of one client that are read, written and
//! deleted together and lie side by side on the disk. Its files have consecutive numbers.
//! Cost: 4 bytes a file, 16 a group.

use agewell_core::{Stream, uniform_below};

use super::file_sizes::FileSizes;

/// Mean number of files in a group; geometric, chosen by us.
const GROUP_FILES_MEAN: u64 = 4;

/// Files that belong together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    pub(super) first_file: u32,
    pub(super) files: u32,
    pub(super) blocks: u32,
    pub(super) client: u32,
}

/// All files and groups so far.
#[derive(Debug, Clone)]
pub(super) struct Catalogue {
    sizes: FileSizes,
    stream: Stream,
    clients: u32,
    file_blocks: Vec<u32>,
    groups: Vec<Group>,
}

impl Catalogue {
    pub(super) fn new(stream: Stream, clients: u32) -> Self {
        Self {
            sizes: FileSizes::new(),
            stream,
            clients,
            file_blocks: Vec::new(),
            groups: Vec::new(),
        }
    }

    /// Length of a file in blocks.
    pub(super) fn blocks_of(&self, file: u32) -> u32 {
        self.file_blocks[file as usize]
    }

    pub(super) fn group(&self, group: u32) -> Group {
        self.groups[group as usize]
    }

    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The group that `file` is in; temporary files are in none.
    pub(super) fn group_of(&self, file: u32) -> Option<u32> {
        let after = self.groups.partition_point(|group| group.first_file <= file);
        let group = after.checked_sub(1)?;
        let Group { first_file, files, .. } = self.groups[group];
        (file < first_file + files).then_some(group as u32)
    }

    /// Lengths of all files, by number.
    pub(super) fn file_blocks(&self) -> &[u32] {
        &self.file_blocks
    }

    /// A client, each equally likely.
    pub(super) fn any_client(&mut self) -> u32 {
        uniform_below(&mut self.stream, u64::from(self.clients)) as u32
    }

    /// A new file of at most `blocks_max` >= 1 blocks; its number.
    pub(super) fn add_file(&mut self, blocks_max: u64) -> u32 {
        let file = self.file_blocks.len() as u32;
        let blocks = self.sizes.draw(&mut self.stream);
        self.file_blocks.push(u64::from(blocks).min(blocks_max) as u32);
        file
    }

    /// A new group of `client` of at most `blocks_max` >= 1 blocks; its number.
    pub(super) fn add_group(&mut self, client: u32, blocks_max: u64) -> u32 {
        let first_file = self.file_blocks.len() as u32;
        let (mut files, mut blocks) = (0, 0);
        loop {
            let file = self.add_file(blocks_max - blocks);
            files += 1;
            blocks += u64::from(self.blocks_of(file));
            let last = uniform_below(&mut self.stream, GROUP_FILES_MEAN) == 0;
            if last || blocks == blocks_max {
                break;
            }
        }
        self.groups.push(Group { first_file, files, blocks: blocks as u32, client });
        self.groups.len() as u32 - 1
    }
}
