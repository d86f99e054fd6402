//! An image or a device, opened for reading only.
//!
//! Blocks of metadata are read one at a time, at places that lie close together; so a read fetches
//! the aligned window around it, and a small direct-mapped cache keeps the last windows. The file
//! is read, not mapped: a mapped file that another program cuts short would kill us.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::Advice;

use super::fault::Fault;
use crate::SnapshotError;

/// What is fetched at once, bytes; as large as the largest block of any file system we read, so
/// that an aligned block lies within one window. Chosen by us.
const WINDOW_BYTES: usize = 64 * 1024;

/// Fewer bytes are fetched at once where blocks are small: a window costs a copy. Chosen by us.
const WINDOW_BYTES_MIN: usize = 16 * 1024;

/// Windows that are kept. Chosen by us.
const SLOTS: usize = 64;

#[derive(Debug, Default)]
struct Slot {
    /// Number of the window plus one; 0 is an empty slot.
    window: u64,
    bytes: Vec<u8>,
}

/// An image or a device.
#[derive(Debug)]
pub(super) struct Image {
    file: File,
    length_bytes: u64,
    window_bytes: usize,
    slots: Vec<Slot>,
    /// For a read across the border of two windows.
    spare: Vec<u8>,
}

impl Image {
    /// Opens the image at `path`, for reading only.
    ///
    /// # Errors
    /// If it cannot be opened, or has no length (a pipe, a terminal).
    pub(super) fn open(path: &Path) -> Result<Self, SnapshotError> {
        // Opening a pipe would wait for a writer.
        let kind = std::fs::metadata(path).map_err(SnapshotError::io("read", path))?.file_type();
        let is_device = std::os::unix::fs::FileTypeExt::is_block_device(&kind);
        if !kind.is_file() && !is_device {
            let path = path.display();
            return Err(SnapshotError::Input(format!(
                "{path}: neither an image nor a block device"
            )));
        }
        let file = File::open(path).map_err(SnapshotError::io("read", path))?;
        Self::of_file(file).map_err(SnapshotError::io("read", path))
    }

    /// The image or device that `file` is open on.
    pub(super) fn of_file(mut file: File) -> io::Result<Self> {
        let length_bytes = file.seek(SeekFrom::End(0))?;
        Ok(Self::new(file, length_bytes))
    }

    fn new(file: File, length_bytes: u64) -> Self {
        let slots = (0..SLOTS).map(|_| Slot::default()).collect();
        Self { file, length_bytes, window_bytes: WINDOW_BYTES, slots, spare: Vec::new() }
    }

    /// Has the system fetch `length_bytes` from `offset_bytes` on into its cache, if it likes.
    pub(super) fn fetch_ahead(&self, offset_bytes: u64, length_bytes: u64) {
        let length_bytes = NonZeroU64::new(length_bytes);
        // Whatever it says: what was not fetched is read later.
        let _ = rustix::fs::fadvise(&self.file, offset_bytes, length_bytes, Advice::WillNeed);
    }

    /// How long it is, bytes.
    pub(super) fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// Fits the cache to blocks of `block_bytes`.
    pub(super) fn set_block_bytes(&mut self, block_bytes: u32) {
        self.window_bytes = (block_bytes as usize).clamp(WINDOW_BYTES_MIN, WINDOW_BYTES);
        for slot in &mut self.slots {
            slot.window = 0;
        }
    }

    /// Fills `buffer` from `offset_bytes` on, past the cache.
    pub(super) fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), Fault> {
        let end = offset_bytes.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.length_bytes) {
            return Err(Fault::Beyond(self.length_bytes));
        }
        self.file.read_exact_at(buffer, offset_bytes).map_err(Fault::Io)
    }

    /// The `length` bytes from `offset_bytes` on, through the cache.
    pub(super) fn bytes(&mut self, offset_bytes: u64, length: usize) -> Result<&[u8], Fault> {
        let window_bytes = self.window_bytes as u64;
        let (window, within) = (offset_bytes / window_bytes, offset_bytes % window_bytes);
        let within = within as usize;
        if within + length > self.window_bytes {
            let mut spare = std::mem::take(&mut self.spare);
            spare.resize(length, 0);
            let result = self.read_at(offset_bytes, &mut spare);
            self.spare = spare;
            return result.map(|()| &self.spare[..]);
        }
        let index = (window % SLOTS as u64) as usize;
        if self.slots[index].window != window + 1 {
            self.fetch(index, window)?;
        }
        let bytes = &self.slots[index].bytes;
        bytes.get(within..within + length).ok_or(Fault::Beyond(self.length_bytes))
    }

    fn fetch(&mut self, index: usize, window: u64) -> Result<(), Fault> {
        let start = window * self.window_bytes as u64;
        let length = self.length_bytes.saturating_sub(start).min(self.window_bytes as u64);
        let mut bytes = std::mem::take(&mut self.slots[index].bytes);
        bytes.resize(length as usize, 0);
        let result = self.read_at(start, &mut bytes);
        let window = if result.is_ok() { window + 1 } else { 0 };
        self.slots[index] = Slot { window, bytes };
        result
    }
}
