//! Directories: the entries of their blocks, and the order in which the kernel lists them.
//!
//! An indexed directory hides its index in blocks that look like unused entries, so that every
//! directory is read linearly. With the feature `dir_index` the kernel lists an indexed directory,
//! one of a single block, and one within its inode by the hash of the names (Linux,
//! `fs/ext4/dir.c`: `is_dx_dir`), any other as it lies on disk; `Entries` are given that order.
//!
//! Source: Linux, `Documentation/filesystems/ext4/directory.rst` and `inlinedata.rst`.

use super::super::fault::Fault;
use super::super::fields::Fields;
use super::super::map::Budget;
use super::super::reader::Image;
use super::super::tree::{Directories, Entries};
use super::groups::Groups;
use super::hash::NameHash;
use super::inode::{Inode, MAP_AT, MAP_BYTES};
use super::superblock::{COMPATIBLE_DIR_INDEX, Superblock};
use crate::{Extent, SnapshotFile};

/// An entry without its name, bytes.
const ENTRY_BYTES: usize = 8;
/// The number of the parent, in front of the entries within an inode, bytes.
const PARENT_BYTES: usize = 4;
/// Where the index of a directory names its hash, in its first block, behind `.` and `..`.
const INDEX_HASH_AT: usize = 0x1C;
/// How much of a directory is read at once, bytes. Chosen by us.
const CHUNK_BYTES: u64 = 256 << 10;

/// What stands before attributes within an inode (Linux, `attributes.rst`).
const ATTRIBUTES_MAGIC: u32 = 0xEA02_0000;
const ATTRIBUTE_BYTES: usize = 16;
/// The attribute `system.data`: its prefix by number, and the rest of its name.
const INLINE_ATTRIBUTE: (u8, &[u8]) = (7, b"data");

/// Reads directories.
#[derive(Debug)]
pub(super) struct DirectoryReader<'a> {
    image: &'a mut Image,
    superblock: &'a Superblock,
    groups: &'a Groups,
    budget: &'a mut Budget,
    buffer: Vec<u8>,
    /// Directories that the kernel lists by a hash that cannot be computed here.
    pub(super) unhashed: u64,
}

impl<'a> DirectoryReader<'a> {
    /// Reads the directories of a file system.
    pub(super) fn new(
        image: &'a mut Image,
        superblock: &'a Superblock,
        groups: &'a Groups,
        budget: &'a mut Budget,
    ) -> Self {
        Self { image, superblock, groups, budget, buffer: Vec::new(), unhashed: 0 }
    }

    fn inode(&mut self, number: u64) -> Result<Vec<u8>, Fault> {
        let address = self.groups.inode_address(self.superblock, number);
        let address = address.expect("its inode was found in a table");
        Ok(self.image.bytes(address, self.superblock.inode_bytes as usize)?.to_vec())
    }

    /// The hash by which `file` is listed: `None` where it is listed as it lies on disk.
    fn hash(
        &mut self,
        file: &SnapshotFile,
        inode: Inode<'_>,
        index: Option<u8>,
    ) -> Option<NameHash> {
        let block_bytes = u64::from(self.superblock.block_bytes);
        let one_block = file.size_bytes / block_bytes == 1;
        let hashed = inode.is_indexed() || one_block || inode.is_inline();
        if !self.superblock.features.has_compatible(COMPATIBLE_DIR_INDEX) || !hashed {
            return None;
        }
        let setting = &self.superblock.hash;
        let version = index.filter(|_| inode.is_indexed()).unwrap_or(setting.version);
        let hash = NameHash::new(setting, version).filter(|_| !inode.is_case_folded());
        self.unhashed += u64::from(hash.is_none());
        hash
    }

    fn inline(
        &mut self,
        file: &SnapshotFile,
        inode: Inode<'_>,
        entries: &mut Entries,
    ) -> Result<(), Fault> {
        let hash = self.hash(file, inode, None);
        let parser = Parser { block_bytes: self.superblock.block_bytes, hash };
        parser.entries(&inode.bytes[MAP_AT + PARENT_BYTES..MAP_AT + MAP_BYTES], entries)?;
        if file.size_bytes > MAP_BYTES as u64 {
            let value = inline_attribute(inode.attributes());
            parser.entries(
                value.ok_or_else(|| Fault::corrupt("its second half is gone"))?,
                entries,
            )?;
        }
        Ok(())
    }
}

impl Directories for DirectoryReader<'_> {
    fn list(
        &mut self,
        file: &SnapshotFile,
        extents: &[Extent],
        entries: &mut Entries,
    ) -> Result<(), Fault> {
        let bytes = self.inode(file.inode)?;
        let inode = Inode { bytes: &bytes };
        if inode.is_inline() {
            return self.inline(file, inode, entries);
        }
        let block_bytes = self.superblock.block_bytes as usize;
        let mut parser = Parser { block_bytes: self.superblock.block_bytes, hash: None };
        for extent in extents {
            // Blocks beyond the end are not part of it.
            let length = file.size_bytes.saturating_sub(extent.logical_bytes);
            let mut length = length.min(extent.length_bytes);
            length -= length % block_bytes as u64;
            let mut done = 0;
            while done < length {
                let chunk = (length - done).min(CHUNK_BYTES);
                self.budget.spend(chunk / block_bytes as u64)?;
                self.buffer.resize(chunk as usize, 0);
                self.image.read_at(extent.physical_bytes + done, &mut self.buffer)?;
                let buffer = std::mem::take(&mut self.buffer);
                if extent.logical_bytes + done == 0 {
                    parser.hash = self.hash(file, inode, buffer.get(INDEX_HASH_AT).copied());
                }
                let mut result = Ok(());
                for (index, block) in buffer.chunks_exact(block_bytes).enumerate() {
                    result = parser.entries(block, entries).map_err(|fault| {
                        let address = extent.physical_bytes + done;
                        let number = address / block_bytes as u64 + index as u64;
                        fault.within(format_args!("block {number}"))
                    });
                    if result.is_err() {
                        break;
                    }
                }
                self.buffer = buffer;
                result?;
                done += chunk;
            }
        }
        Ok(())
    }
}

/// Takes blocks of entries apart.
struct Parser {
    block_bytes: u32,
    hash: Option<NameHash>,
}

impl Parser {
    fn entries(&self, block: &[u8], entries: &mut Entries) -> Result<(), Fault> {
        let mut at = 0;
        while at + ENTRY_BYTES <= block.len() {
            let fields = Fields::little(&block[at..]);
            let length = self.length(fields.u16(4));
            let name_bytes = usize::from(fields.u8(6));
            let whole = length >= ENTRY_BYTES + name_bytes && length.is_multiple_of(4);
            if !whole || length > block.len() - at {
                return Err(Fault::corrupt(format!("an impossible entry at byte {at}")));
            }
            let inode = u64::from(fields.u32(0));
            let name = fields.slice(ENTRY_BYTES, name_bytes);
            at += length;
            if inode == 0 || name == b"." || name == b".." {
                continue;
            }
            if name.is_empty() || entries.len() == u32::MAX as usize {
                return Err(Fault::corrupt("an entry without a name"));
            }
            let place = entries.len() as u64;
            let order = self.hash.as_ref().map_or(place, |hash| hash.order(name));
            entries.push(inode, order, name);
        }
        Ok(())
    }

    /// The length of an entry: in 64 KiB blocks it may be one that 16 bits do not hold (Linux,
    /// `fs/ext4/ext4.h`: `ext4_rec_len_from_disk`).
    fn length(&self, length: u16) -> usize {
        match length {
            0 | 0xFFFF if self.block_bytes >= 65536 => 65536,
            length => usize::from(length & 0xFFFC) | usize::from(length & 3) << 16,
        }
    }
}

/// The value of the attribute that holds what does not fit into the map, within `attributes`.
fn inline_attribute(attributes: &[u8]) -> Option<&[u8]> {
    let magic = attributes.get(..4)?;
    if Fields::little(magic).u32(0) != ATTRIBUTES_MAGIC {
        return None;
    }
    let list = &attributes[4..];
    let mut at = 0;
    loop {
        let entry = list.get(at..at + ATTRIBUTE_BYTES)?;
        let fields = Fields::little(entry);
        // The list ends with a zero word.
        if fields.u32(0) == 0 {
            return None;
        }
        let name_bytes = usize::from(fields.u8(0));
        let name = list.get(at + ATTRIBUTE_BYTES..at + ATTRIBUTE_BYTES + name_bytes)?;
        if (fields.u8(1), name) == INLINE_ATTRIBUTE {
            let start = usize::from(fields.u16(2));
            return list.get(start..start.checked_add(fields.u32(8) as usize)?);
        }
        at += (ATTRIBUTE_BYTES + name_bytes).next_multiple_of(4);
    }
}
