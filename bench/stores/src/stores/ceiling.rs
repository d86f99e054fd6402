//! What no store can be faster than that writes a transaction once and flushes once: a record and 64
//! blocks by one request, where the last one ended.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use agewell_store::device::{Disk, FileDisk, FileOptions, Piece};

use super::{Failure, Store};
use crate::load::{AlignedBytes, BLOCK_BYTES, TRANSACTION_BLOCKS};

/// A record and the blocks.
const BYTES: usize = (TRANSACTION_BLOCKS + 1) * BLOCK_BYTES;

struct Ceiling {
    disk: FileDisk,
    data: AlignedBytes,
    next: AtomicU64,
}

pub(super) fn create(path: &Path, bytes: u64) -> Result<Box<dyn Store>, Failure> {
    let bytes = bytes.max(2 * BYTES as u64);
    let disk = FileDisk::create_filled(path, bytes, FileOptions::default())?;
    let data = AlignedBytes::random(BYTES);
    Ok(Box::new(Ceiling { disk, data, next: AtomicU64::new(0) }))
}

impl Store for Ceiling {
    fn write(&self, _writes: &[(u32, &[u8])]) -> Result<(), Failure> {
        let places = self.disk.size_bytes() / BYTES as u64;
        let offset = self.next.fetch_add(1, Ordering::Relaxed) % places * BYTES as u64;
        self.disk.write(&[Piece { offset, data: self.data.bytes() }])?;
        Ok(self.disk.flush()?)
    }

    fn read(&self, _block: u32, _into: &mut [u8]) -> Result<bool, Failure> {
        Ok(false)
    }

    fn keeps(&self) -> bool {
        false
    }
}
