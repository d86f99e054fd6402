//! A file in which blocks are overwritten where they lie. A crash leaves some of a transaction, and none
//! of it is found out: it has no checksums.

use std::path::Path;

use agewell_store::device::{Disk, FileDisk, FileOptions, Piece};

use super::{Failure, Store};
use crate::load::BLOCK_BYTES;

struct Overwritten(FileDisk);

pub(super) fn create(path: &Path, blocks: u32) -> Result<Box<dyn Store>, Failure> {
    let bytes = u64::from(blocks) * BLOCK_BYTES as u64;
    Ok(Box::new(Overwritten(FileDisk::create_filled(path, bytes, FileOptions::default())?)))
}

impl Store for Overwritten {
    fn write(&self, writes: &[(u32, &[u8])]) -> Result<(), Failure> {
        let piece = |(block, data): &(u32, &'_ [u8])| u64::from(*block) * data.len() as u64;
        let pieces: Vec<Piece<'_>> =
            writes.iter().map(|write| Piece { offset: piece(write), data: write.1 }).collect();
        self.0.write(&pieces)?;
        Ok(self.0.flush()?)
    }

    fn read(&self, block: u32, into: &mut [u8]) -> Result<bool, Failure> {
        self.0.read(u64::from(block) * into.len() as u64, into)?;
        Ok(true)
    }
}
