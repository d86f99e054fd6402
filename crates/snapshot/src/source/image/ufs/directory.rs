//! Directories: chains of entries within blocks, listed as they lie on disk.
//!
//! Source: 4.4BSD, `sys/ufs/ufs/dir.h`. In the form of 4.2BSD the length of a name has two bytes,
//! in that of 4.4BSD a kind and one byte.

use super::super::fault::Fault;
use super::super::fields::Fields;
use super::super::map::Budget;
use super::super::reader::Image;
use super::super::tree::{Directories, Entries};
use super::superblock::Superblock;
use crate::{Extent, SnapshotFile};

/// An entry without its name, bytes.
const ENTRY_BYTES: usize = 8;
/// The longest name, bytes (`dir.h`: `MAXNAMLEN`).
const NAME_BYTES_MAX: usize = 255;
/// The kind of an entry that hides one of a lower layer (`dir.h`: `DT_WHT`).
const KIND_WHITEOUT: u8 = 14;

/// Reads directories.
#[derive(Debug)]
pub(super) struct DirectoryReader<'a> {
    image: &'a Image,
    superblock: &'a Superblock,
    budget: &'a mut Budget,
    buffer: Vec<u8>,
}

impl<'a> DirectoryReader<'a> {
    /// Reads the directories of a file system.
    pub(super) fn new(
        image: &'a Image,
        superblock: &'a Superblock,
        budget: &'a mut Budget,
    ) -> Self {
        Self { image, superblock, budget, buffer: Vec::new() }
    }
}

impl Directories for DirectoryReader<'_> {
    fn list(
        &mut self,
        file: &SnapshotFile,
        extents: &[Extent],
        entries: &mut Entries,
    ) -> Result<(), Fault> {
        let block_bytes = u64::from(self.superblock.block_bytes);
        for extent in extents {
            let length = file.size_bytes.saturating_sub(extent.logical_bytes);
            let length = length.min(extent.length_bytes);
            let mut done = 0;
            while done < length {
                let chunk = (length - done).min(block_bytes);
                let address = extent.physical_bytes + done;
                self.budget.spend(1)?;
                self.buffer.resize(chunk as usize, 0);
                self.image.read_at(address, &mut self.buffer)?;
                self.entries(entries).map_err(|fault| {
                    let fragment = address / self.superblock.fragment_bytes;
                    fault.within(format_args!("block at fragment {fragment}"))
                })?;
                done += chunk;
            }
        }
        Ok(())
    }
}

impl DirectoryReader<'_> {
    /// Adds the entries in the buffer.
    fn entries(&self, entries: &mut Entries) -> Result<(), Fault> {
        let block = &self.buffer[..];
        let mut at = 0;
        while at + ENTRY_BYTES <= block.len() {
            let fields = Fields::new(&block[at..], self.superblock.order);
            let length = usize::from(fields.u16(4));
            let (kind, name_bytes) = if self.superblock.old_directories {
                (0, usize::from(fields.u16(6)))
            } else {
                (fields.u8(6), usize::from(fields.u8(7)))
            };
            let whole = length >= ENTRY_BYTES + name_bytes && length.is_multiple_of(4);
            if !whole || length > block.len() - at || name_bytes > NAME_BYTES_MAX {
                return Err(Fault::corrupt(format!("an impossible entry at byte {at}")));
            }
            let inode = u64::from(fields.u32(0));
            let name = fields.slice(ENTRY_BYTES, name_bytes);
            at += length;
            if inode == 0 || kind == KIND_WHITEOUT || name == b"." || name == b".." {
                continue;
            }
            if name.is_empty() {
                return Err(Fault::corrupt("an entry without a name"));
            }
            entries.push(inode, entries.len() as u64, name);
        }
        Ok(())
    }
}
