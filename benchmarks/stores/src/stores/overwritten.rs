//! A file in which blocks are overwritten where they lie. A crash leaves some of a transaction, and none
//! of it is found out: it has no checksums.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use agewell_store::device::{Disk, FileDisk, FileOptions, Piece};

use super::{Failure, Store};
use crate::load::BLOCK_BYTES;

struct Overwritten(FileDisk);

/// A file of `bytes`, all of which are written, so that no write later has anything to allocate.
pub(super) fn written_file(path: &Path, bytes: u64) -> Result<File, Failure> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    let piece = vec![0; 1 << 20];
    for offset in (0..bytes).step_by(piece.len()) {
        let length = piece.len().min((bytes - offset) as usize);
        file.write_all_at(&piece[..length], offset)?;
    }
    file.sync_all()?;
    Ok(file)
}

pub(super) fn create(path: &Path, blocks: u32) -> Result<Box<dyn Store>, Failure> {
    written_file(path, u64::from(blocks) * BLOCK_BYTES as u64)?;
    Ok(Box::new(Overwritten(FileDisk::open(path, FileOptions::default())?)))
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
