//! The file system as a whole, and its operations on names: create, remove, rename.
//!
//! What these write: creating a file writes its inode and the directory's block at once, one after
//! the other, so that no name ever stands for an inode that is not there; the maps and the
//! directory's inode follow later. Removing one writes the directory's block and the cleared inode
//! at once. Making a directory writes its inode, its parent's, its first block and the parent's
//! block at once (Seltzer et al. 1995, §1.1; 4.4BSD's `ufs_makeinode`, `ufs_mkdir`, `ufs_remove`,
//! `ufs_rename`).

use super::block_lists::BlockLists;
use super::directories::Contents;
use super::free_space::FreeSpace;
use super::geometry::{DIRECTORY_CHUNK_BYTES, Geometry};
use super::inodes::{Inodes, Kind};
use super::preference::{View, directory_group};
use super::unsent::Unsent;
use super::{LayoutTally, Optimization, ParameterError, Parameters, Policies};
use crate::file_system::{Content, FileDevice, FileSystemError, FileTransfer, Urgency};

/// The kind of an inode in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InodeKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
}

/// A Fast File System.
///
/// Every operation either is done or is refused with an [`FileSystemError`] that leaves the file system
/// consistent.
#[derive(Debug, Clone)]
pub struct FastFileSystem {
    pub(crate) geometry: Geometry,
    pub(crate) policies: Policies,
    /// The present aim of optimization.
    pub(crate) optimization: Optimization,
    pub(crate) space: FreeSpace,
    pub(crate) inodes: Inodes,
    pub(crate) lists: BlockLists,
    pub(crate) directories: Vec<Contents>,
    pub(crate) directories_free: Vec<u32>,
    pub(crate) tally: LayoutTally,
    /// The share of `tally` that fragments at the ends of files have.
    pub(crate) tails: LayoutTally,
    pub(crate) unsent: Unsent,
}

impl FastFileSystem {
    /// The root directory.
    pub const ROOT: u32 = 2;

    /// An empty file system: nothing but its root directory.
    ///
    /// # Errors
    /// If `parameters` do not go together.
    pub fn new(parameters: &Parameters) -> Result<Self, ParameterError> {
        let geometry = Geometry::new(parameters)?;
        let mut space = FreeSpace::new(&geometry);
        let mut system = Self {
            inodes: Inodes::new(&geometry, &mut space),
            unsent: Unsent::new(geometry.fragments),
            geometry,
            policies: parameters.policies,
            optimization: parameters.policies.optimization,
            space,
            lists: BlockLists::default(),
            directories: Vec::new(),
            directories_free: Vec::new(),
            tally: LayoutTally::default(),
            tails: LayoutTally::default(),
        };
        let root = Self::ROOT;
        system.inodes.take(root, Kind::Directory, &mut system.space);
        let made = system.begin_directory(root, root, &mut ());
        if made.is_err() {
            return Err(ParameterError::NoData { blocks: system.geometry.blocks_per_group });
        }
        system.finish(&mut ());
        Ok(system)
    }

    pub(crate) fn view(&self) -> View<'_> {
        View { geometry: &self.geometry, space: &self.space }
    }

    pub(crate) fn directory(&self, inode: u32) -> Result<u32, FileSystemError> {
        let record = self.inodes.records.get(inode as usize);
        match record {
            Some(record) if record.kind == Kind::Directory => Ok(inode),
            _ => Err(FileSystemError::NoFile(inode)),
        }
    }

    pub(crate) fn file(&self, inode: u32) -> Result<u32, FileSystemError> {
        let record = self.inodes.records.get(inode as usize);
        match record {
            Some(record) if record.kind == Kind::File => Ok(inode),
            _ => Err(FileSystemError::NoFile(inode)),
        }
    }

    /// Makes an empty file in `directory`: in its cylinder group, if that has a free inode.
    ///
    /// # Errors
    /// If no inode is left, no room for its name, or `directory` is none.
    pub(crate) fn create_file(
        &mut self,
        directory: u32,
        device: &mut impl FileDevice,
    ) -> Result<u32, FileSystemError> {
        let parent = self.directory(directory)?;
        let group = self.geometry.inode_group(parent);
        let inode = self.allocate_inode(group, Kind::File)?;
        self.write_inode(inode, Urgency::Synchronous, device);
        let entered = self.enter(parent, inode, device);
        if entered.is_err() {
            self.inodes.release(inode, &mut self.space);
        }
        self.finish(device);
        entered.map(|()| inode)
    }

    /// Makes an empty directory in `parent`: in the cylinder group that `dirpref` chooses.
    ///
    /// # Errors
    /// If no inode or no space is left, or `parent` is no directory.
    pub(crate) fn create_directory(
        &mut self,
        parent: u32,
        device: &mut impl FileDevice,
    ) -> Result<u32, FileSystemError> {
        let parent = self.directory(parent)?;
        let group = directory_group(self.view());
        let inode = self.allocate_inode(group, Kind::Directory)?;
        self.write_inode(inode, Urgency::Synchronous, device);
        self.write_inode(parent, Urgency::Synchronous, device);
        let mut made = self.begin_directory(inode, parent, device);
        if made.is_ok() {
            made = self.enter(parent, inode, device);
            if made.is_err() {
                self.end_directory(inode, device);
            }
        }
        if made.is_err() {
            self.inodes.release(inode, &mut self.space);
        }
        self.finish(device);
        made.map(|()| inode)
    }

    /// Removes `file` from `directory`.
    ///
    /// # Errors
    /// If it is not there.
    pub(crate) fn remove_file(
        &mut self,
        file: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let inode = self.file(file)?;
        let parent = self.inodes.records[inode as usize].directory;
        self.leave(inode, device);
        self.write_inode(parent, Urgency::Delayed, device);
        self.tally_tail(inode, false);
        self.cut(inode, 0, device);
        self.write_inode(inode, Urgency::Synchronous, device);
        self.inodes.release(inode, &mut self.space);
        self.write_inode(inode, Urgency::Delayed, device);
        self.finish(device);
        Ok(())
    }

    /// Removes the empty `directory`.
    ///
    /// # Errors
    /// If it is not there, not empty, or the root.
    pub(crate) fn remove_empty_directory(
        &mut self,
        directory: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let inode = self.directory(directory)?;
        let record = &self.inodes.records[inode as usize];
        let parent = record.directory;
        if inode == Self::ROOT || self.directories[record.contents as usize].entries > 0 {
            return Err(FileSystemError::NotEmpty(directory));
        }
        self.leave(inode, device);
        self.write_inode(parent, Urgency::Delayed, device);
        self.end_directory(inode, device);
        self.write_inode(inode, Urgency::Synchronous, device);
        self.inodes.release(inode, &mut self.space);
        self.write_inode(inode, Urgency::Delayed, device);
        self.finish(device);
        Ok(())
    }

    /// Moves `inode`, a file or a directory, into `to_directory`; it keeps its inode and its place
    /// on the disk.
    ///
    /// # Errors
    /// If one of them is not there, there is no room for the name, or a directory would end up
    /// below itself.
    pub(crate) fn move_to(
        &mut self,
        inode: u32,
        to_directory: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let to = self.directory(to_directory)?;
        let is_directory = self.directory(inode).is_ok();
        let moved = if is_directory { inode } else { self.file(inode)? };
        if is_directory && self.is_below(to, moved) {
            return Err(FileSystemError::Cycle(inode));
        }
        let (from, chunk) = {
            let record = &self.inodes.records[moved as usize];
            (record.directory, record.chunk)
        };
        // The link count goes up, the new name is written, the old one removed, in this order.
        self.write_inode(moved, Urgency::Synchronous, device);
        let entered = self.enter(to, moved, device);
        if entered.is_err() {
            self.finish(device);
            return entered;
        }
        if is_directory && from != to {
            // The entry for its parent changes.
            self.write_inode(to, Urgency::Synchronous, device);
            self.write_chunk(moved, 0, device);
        }
        self.leave_chunk(from, chunk, device);
        self.write_inode(from, Urgency::Delayed, device);
        self.write_inode(moved, Urgency::Delayed, device);
        self.finish(device);
        Ok(())
    }

    /// Whether `inode` is `above` or somewhere below it.
    fn is_below(&self, mut inode: u32, above: u32) -> bool {
        loop {
            if inode == above {
                return true;
            }
            if inode == Self::ROOT {
                return false;
            }
            inode = self.inodes.records[inode as usize].directory;
        }
    }

    /// Gives the new directory `inode` its first chunk.
    fn begin_directory(
        &mut self,
        inode: u32,
        parent: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        self.extend_directory(inode, DIRECTORY_CHUNK_BYTES.into(), device)?;
        let contents = Contents::new(&self.geometry);
        let number = if let Some(number) = self.directories_free.pop() {
            self.directories[number as usize] = contents;
            number
        } else {
            self.directories.push(contents);
            self.directories.len() as u32 - 1
        };
        let record = &mut self.inodes.records[inode as usize];
        (record.contents, record.directory) = (number, parent);
        self.write_chunk(inode, 0, device);
        Ok(())
    }

    /// Frees what the directory `inode` has.
    fn end_directory(&mut self, inode: u32, device: &mut impl FileDevice) {
        self.cut(inode, 0, device);
        self.directories_free.push(self.inodes.records[inode as usize].contents);
    }

    /// Enters `inode` in `directory`, which grows if it has no room.
    fn enter(
        &mut self,
        directory: u32,
        inode: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let record = &self.inodes.records[directory as usize];
        let (contents, size) = (record.contents as usize, record.size_bytes);
        let place = self.directories[contents].place(&self.geometry);
        let wanted = u64::from(place.chunks) * u64::from(DIRECTORY_CHUNK_BYTES);
        if wanted > size {
            self.extend_directory(directory, wanted, device)?;
            self.write_inode(directory, Urgency::Synchronous, device);
        }
        self.write_chunk(directory, place.chunk, device);
        if wanted < size {
            self.cut(directory, wanted, device);
            self.write_inode(directory, Urgency::Synchronous, device);
        } else if wanted == size {
            self.write_inode(directory, Urgency::Delayed, device);
        }
        self.directories[contents].insert(place);
        let record = &mut self.inodes.records[inode as usize];
        (record.directory, record.chunk) = (directory, place.chunk);
        Ok(())
    }

    /// Takes `inode` out of its directory.
    fn leave(&mut self, inode: u32, device: &mut impl FileDevice) {
        let record = &self.inodes.records[inode as usize];
        self.leave_chunk(record.directory, record.chunk, device);
    }

    fn leave_chunk(&mut self, directory: u32, chunk: u32, device: &mut impl FileDevice) {
        let contents = self.inodes.records[directory as usize].contents;
        self.directories[contents as usize].remove(chunk);
        self.write_chunk(directory, chunk, device);
    }

    /// Writes the block of `directory` that `chunk` is in.
    fn write_chunk(&self, directory: u32, chunk: u32, device: &mut impl FileDevice) {
        let at = u64::from(chunk) * u64::from(DIRECTORY_CHUNK_BYTES);
        let block = (at / u64::from(self.geometry.block_bytes)) as u32;
        let size = self.inodes.records[directory as usize].size_bytes;
        device.write(self.transfer(
            self.address(directory, block),
            self.block_fragments(size, block),
            Content::Directory,
            Urgency::Synchronous,
        ));
    }

    /// Writes the block of the inode table that `inode` is in.
    pub(crate) fn write_inode(&self, inode: u32, urgency: Urgency, device: &mut impl FileDevice) {
        device.write(self.transfer(
            self.geometry.inode_address(inode),
            self.geometry.fragments_per_block,
            Content::Inode,
            urgency,
        ));
    }

    /// Sectors of a transfer of `fragments` from `address` on.
    #[inline]
    pub(crate) fn transfer(
        &self,
        address: u32,
        fragments: u32,
        content: Content,
        urgency: Urgency,
    ) -> FileTransfer {
        let sectors = self.sectors_per_fragment();
        FileTransfer {
            sector: u64::from(address) * u64::from(sectors),
            sectors: fragments * sectors,
            content,
            urgency,
        }
    }

    /// Sectors of 512 bytes of a fragment.
    #[inline]
    pub(crate) fn sectors_per_fragment(&self) -> u32 {
        self.geometry.fragment_bytes / 512
    }

    /// Ends an operation: the maps that it has changed are to be written some time.
    pub(crate) fn finish(&mut self, device: &mut impl FileDevice) {
        while let Some(group) = self.space.next_changed() {
            device.write(self.transfer(
                self.geometry.map_address(group),
                self.geometry.map_fragments,
                Content::Map,
                Urgency::Delayed,
            ));
        }
    }

    /// Everything written so far is to be on the device: data that waits goes out (the host, which
    /// holds all delayed writes, has to write them), and the superblock.
    pub(crate) fn flush(&mut self, device: &mut impl FileDevice) {
        let blocks = self.geometry.transfer_blocks_max * self.geometry.fragments_per_block;
        self.unsent.send_all(blocks, self.sectors_per_fragment(), device);
        let (address, fragments) = self.geometry.superblock();
        device.write(self.transfer(address, fragments, Content::Map, Urgency::Delayed));
    }
}
