//! A disk that is not written to: what would be is kept in memory.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Disk, Piece, ReadPiece, check_pieces, check_range};

/// What is remembered at a time: a sector, of which all that is written to disks is a multiple.
const SECTOR_BYTES: u64 = 512;

/// Reads a disk, and keeps what is written in memory until it is dropped. A store on a disk that must not be
/// written to is opened so: opening brings to its end what a crash has left undone.
#[derive(Debug)]
pub struct OverlayDisk<D> {
    disk: D,
    written: Mutex<BTreeMap<u64, Box<[u8]>>>,
}

impl<D> OverlayDisk<D> {
    /// Over `disk`.
    pub fn over(disk: D) -> Self {
        Self { disk, written: Mutex::default() }
    }

    fn written(&self) -> MutexGuard<'_, BTreeMap<u64, Box<[u8]>>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts what was written in the place of what was read from `offset` on.
    fn lay_over(&self, offset: u64, into: &mut [u8]) {
        let end = offset + into.len() as u64;
        let first = offset / SECTOR_BYTES;
        for (sector, data) in self.written().range(first..end.div_ceil(SECTOR_BYTES)) {
            let begin = sector * SECTOR_BYTES;
            let (from, to) = (begin.max(offset), end.min(begin + SECTOR_BYTES));
            let within = (from - begin) as usize..(to - begin) as usize;
            into[(from - offset) as usize..(to - offset) as usize].copy_from_slice(&data[within]);
        }
    }
}

impl<D: Disk> Disk for OverlayDisk<D> {
    as_below!(self => self.disk);

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.disk.read(offset, into)?;
        self.lay_over(offset, into);
        Ok(())
    }

    fn read_pieces(&self, pieces: &mut [ReadPiece<'_>]) -> io::Result<()> {
        self.disk.read_pieces(pieces)?;
        for piece in pieces {
            self.lay_over(piece.offset, piece.into);
        }
        Ok(())
    }

    fn write(&self, pieces: &[Piece<'_>]) -> io::Result<()> {
        check_pieces(self.size_bytes(), pieces)?;
        let mut written = self.written();
        for piece in pieces {
            assert!(
                (piece.offset | piece.data.len() as u64).is_multiple_of(SECTOR_BYTES),
                "whole sectors are written"
            );
            let sectors = piece.data.chunks_exact(SECTOR_BYTES as usize);
            written.extend((piece.offset / SECTOR_BYTES..).zip(sectors.map(Box::from)));
        }
        Ok(())
    }

    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        check_range(self.size_bytes(), offset, bytes)
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}
