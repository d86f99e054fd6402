//! The entries of one directory, with their ranks.
//!
//! Cost: a `getdents64` for every [`LIST_BYTES`] of entries and two sorts; no allocation an entry.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::Arc;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, RawDir};
use rustix::io::Result;

use super::found::Place;
use super::status::Status;
use crate::FileKind;

/// Bytes of entries read at a time; chosen by us: thousands of entries a call, and it fits in the
/// second-level cache.
pub(super) const LIST_BYTES: usize = 1 << 17;

/// One entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// As the directory has it.
    inode: u64,
    name_start: usize,
    /// Without the zero behind it.
    name_bytes: u32,
    readdir_rank: u32,
    name_rank: u32,
    is_directory: bool,
    /// Whether the directory says that it is a regular file; else it is to be asked first.
    is_regular: bool,
}

/// A file of a listing.
pub(super) struct ListedFile<'a> {
    pub(super) name: &'a CStr,
    /// As the directory has it.
    pub(super) inode: u64,
    pub(super) place: Place,
    /// Whether the directory says that it is a regular file, so that it may be opened.
    pub(super) is_regular: bool,
}

/// A directory and its entries, those that are directories first, each part ascending by inode: the
/// order in which most file systems keep inodes, so that a cold disk is read forwards.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) directory: Arc<OwnedFd>,
    pub(super) inode: u64,
    /// Inode change time before it was listed.
    pub(super) change_ns: i64,
    /// The names, each with a zero behind it.
    names: Vec<u8>,
    entries: Vec<Entry>,
    directories: usize,
}

impl Listing {
    /// Lists `directory`, which `status` describes.
    pub(super) fn read(
        directory: Arc<OwnedFd>,
        status: &Status,
        buffer: &mut [MaybeUninit<u8>],
    ) -> Result<Self> {
        let mut listing = Self {
            inode: status.inode,
            change_ns: status.change_ns,
            names: Vec::new(),
            entries: Vec::new(),
            directories: 0,
            directory,
        };
        listing.read_entries(buffer)?;
        listing.rank_by_name();
        listing
            .entries
            .sort_unstable_by_key(|entry| (!entry.is_directory, entry.inode, entry.readdir_rank));
        listing.directories = listing.entries.partition_point(|entry| entry.is_directory);
        Ok(listing)
    }

    fn read_entries(&mut self, buffer: &mut [MaybeUninit<u8>]) -> Result<()> {
        let mut raw = RawDir::new(self.directory.as_fd(), buffer);
        while let Some(entry) = raw.next() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let is_directory = match entry.file_type() {
                FileType::Directory => true,
                FileType::Unknown => Status::of_entry(&*self.directory, name)
                    .is_ok_and(|status| status.kind == FileKind::Directory),
                _ => false,
            };
            self.entries.push(Entry {
                inode: entry.ino(),
                name_start: self.names.len(),
                name_bytes: name.count_bytes() as u32,
                readdir_rank: self.entries.len() as u32,
                name_rank: 0,
                is_directory,
                is_regular: entry.file_type() == FileType::RegularFile,
            });
            self.names.extend_from_slice(name.to_bytes_with_nul());
        }
        Ok(())
    }

    fn rank_by_name(&mut self) {
        let mut order: Vec<u32> = (0..self.entries.len() as u32).collect();
        order.sort_unstable_by_key(|&entry| {
            let entry = &self.entries[entry as usize];
            &self.names[entry.name_start..entry.name_start + entry.name_bytes as usize]
        });
        for (rank, entry) in order.into_iter().enumerate() {
            self.entries[entry as usize].name_rank = rank as u32;
        }
    }

    /// The entries that are directories.
    pub(super) fn directories(&self) -> impl Iterator<Item = ListedFile<'_>> {
        self.entries[..self.directories].iter().map(|entry| self.told(entry))
    }

    /// How many entries are no directories.
    pub(super) fn file_count(&self) -> usize {
        self.entries.len() - self.directories
    }

    /// Of the entries that are no directories, those from `start`, at most `count`.
    pub(super) fn files(&self, start: usize, count: usize) -> impl Iterator<Item = ListedFile<'_>> {
        let files = &self.entries[self.directories..];
        let end = files.len().min(start + count);
        files[start..end].iter().map(|entry| self.told(entry))
    }

    fn told(&self, entry: &Entry) -> ListedFile<'_> {
        let end = entry.name_start + entry.name_bytes as usize;
        let name = CStr::from_bytes_with_nul(&self.names[entry.name_start..=end])
            .expect("each name was stored with its zero behind it");
        let place = Place {
            directory: self.inode,
            readdir_rank: entry.readdir_rank,
            name_rank: entry.name_rank,
        };
        ListedFile { name, inode: entry.inode, place, is_regular: entry.is_regular }
    }
}
