//! A listing of a directory, in the form in which it is sent.

use rustix::fs::FileType;

use crate::file_system::Entry;
use crate::protocol::{self, Validity};

/// Takes what lies in a directory, until it is full.
#[derive(Debug)]
pub struct DirectorySink<'a> {
    buffer: &'a mut [u8],
    used: usize,
    /// With the attributes of each, if they are asked for.
    entries: Option<Validity>,
}

impl<'a> DirectorySink<'a> {
    pub(crate) fn new(buffer: &'a mut [u8], entries: Option<Validity>) -> Self {
        Self { buffer, used: 0, entries }
    }

    /// Whether the attributes are asked for as well, for [`DirectorySink::add_entry`]. Who has them at hand
    /// gives them, for whoever lists a directory looks at its files next; [`DirectorySink::add`] may be
    /// called all the same.
    pub fn wants_entries(&self) -> bool {
        self.entries.is_some()
    }

    /// Adds a name, unless there is no room for it: then `false`, and the listing ends. `next` is the
    /// cookie behind it, not 0, which stays right whatever is made and removed.
    #[must_use]
    pub fn add(&mut self, name: &[u8], inode: u64, kind: FileType, next: u64) -> bool {
        let start = if self.entries.is_some() { protocol::ENTRY_SIZE } else { 0 };
        let Some(record) = self.record(start, name) else { return false };
        // An entry of inode 0 stands for none.
        record[..start].fill(0);
        protocol::write_directory_record(&mut record[start..], inode, next, kind, name);
        true
    }

    /// Adds a name with its attributes, which counts as a lookup of it, unless there is no room for it:
    /// then `false`, it is not counted, and the listing ends. Not for `.` and `..`.
    ///
    /// # Panics
    ///
    /// Panics if they are not asked for.
    #[must_use]
    pub fn add_entry(&mut self, name: &[u8], entry: &Entry, next: u64) -> bool {
        let validity = self.entries.expect("attributes are asked for");
        let Some(record) = self.record(protocol::ENTRY_SIZE, name) else { return false };
        let (head, behind) = record.split_at_mut(protocol::ENTRY_SIZE);
        head.copy_from_slice(&protocol::entry(entry, validity));
        let attributes = &entry.attributes;
        let kind = attributes.kind();
        protocol::write_directory_record(behind, attributes.inode, next, kind, name);
        true
    }

    /// Bytes that were added.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    fn record(&mut self, start: usize, name: &[u8]) -> Option<&mut [u8]> {
        let size = start + protocol::directory_record_size(name);
        let record = self.buffer.get_mut(self.used..self.used + size)?;
        self.used += size;
        Some(record)
    }
}
