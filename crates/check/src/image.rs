//! What a store is read from.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Bytes that are read at any place.
pub trait Image: Sync {
    /// How many there are.
    fn size_bytes(&self) -> u64;

    /// Fills `into` with what lies from `offset` on.
    ///
    /// # Errors
    ///
    /// It cannot be read, or ends before.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
}

impl Image for [u8] {
    fn size_bytes(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let there = usize::try_from(offset)
            .ok()
            .and_then(|offset| Some(offset..offset.checked_add(into.len())?))
            .and_then(|range| self.get(range))
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(there);
        Ok(())
    }
}

impl Image for Vec<u8> {
    fn size_bytes(&self) -> u64 {
        self.as_slice().size_bytes()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.as_slice().read_at(offset, into)
    }
}

impl<I: Image + ?Sized> Image for &I {
    fn size_bytes(&self) -> u64 {
        (**self).size_bytes()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        (**self).read_at(offset, into)
    }
}

/// A file or a block device.
#[derive(Debug)]
pub struct FileImage {
    file: File,
    size_bytes: u64,
}

impl FileImage {
    /// Opens it for reading.
    ///
    /// # Errors
    ///
    /// It cannot be opened, or has no length.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        // The length that a block device's metadata gives is 0.
        let size_bytes = file.seek(SeekFrom::End(0))?;
        Ok(Self { file, size_bytes })
    }
}

impl Image for FileImage {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }
}
