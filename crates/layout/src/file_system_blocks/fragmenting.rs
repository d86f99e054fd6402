//! Fragmenting the free space of a file system that places its own blocks.

use super::{ExaminedFileSystem, FileSystemBlocks};
use crate::block_layout::LayoutError;
use crate::file_system::FileSystemError;

/// Blocks of a file that is removed again: as many as an inode names itself, so that nothing but
/// data lies in between.
const FILLER_PIECES: u64 = 10;

/// One block in this number is left for the directory; chosen by us: an entry takes 24 bytes at
/// most, a file that is removed 10 blocks of 512 bytes at least.
const ENTRIES_SHARE: u64 = 100;

impl<F: ExaminedFileSystem> FileSystemBlocks<F> {
    /// Fills the empty file system with files of `chunk_blocks` that stay and, in between, files
    /// that go, so that what stays is `blocks` in all and lies evenly.
    pub(super) fn fragment_with_files(
        &mut self,
        first: u32,
        blocks: u32,
        chunk_blocks: u32,
    ) -> Result<(), LayoutError> {
        if blocks == 0 {
            return Ok(());
        }
        let chunk = chunk_blocks.max(1);
        let chunks = u64::from(blocks.div_ceil(chunk));
        let directory = self.system.make_directory(self.system.root(), &mut ())?;
        let before_bytes = self.system.usage_bytes().0;
        let mut fillers = Vec::new();
        let (mut gaps, mut block, end) = (0, first, first + blocks);
        for number in 0..chunks {
            let length = chunk.min(end - block);
            self.stay(directory, block, length)?;
            block += length;
            if number == 0 {
                gaps = self.gap_pieces(before_bytes, chunks);
            }
            let gap = (number + 1) * gaps / chunks - number * gaps / chunks;
            self.fill_gap(directory, gap, &mut fillers)?;
        }
        for file in fillers {
            self.system.remove(file, &mut ())?;
        }
        Ok(())
    }

    /// Blocks of the file system that are left between `chunks` files like the first, before which
    /// `before_bytes` were in use.
    fn gap_pieces(&self, before_bytes: u64, chunks: u64) -> u64 {
        let (used_bytes, total_bytes) = self.system.usage_bytes();
        let staying_bytes = before_bytes + (used_bytes - before_bytes) * chunks;
        let gaps_bytes = total_bytes.saturating_sub(staying_bytes);
        let entries_bytes = gaps_bytes / ENTRIES_SHARE;
        (gaps_bytes - entries_bytes) / self.system.block_bytes()
    }

    /// Makes a file of blocks `first..first + blocks` that is never used.
    fn stay(&mut self, directory: u32, first: u32, blocks: u32) -> Result<(), LayoutError> {
        let file = self.system.create(directory, &mut ())?;
        let bytes = u64::from(blocks) * self.setting.block_bytes;
        self.system.write(file, 0, bytes, &mut ())?;
        let piece_bytes = self.system.block_bytes();
        for block in first..first + blocks {
            let offset = u64::from(block - first) * self.setting.block_bytes;
            for piece in 0..self.pieces {
                let at = offset + u64::from(piece) * piece_bytes;
                let sector = self.system.sector_of(file, at).expect("it has been written");
                let unit = sector / u64::from(self.unit_sectors);
                self.homes[(block * self.pieces + piece) as usize] = unit as u32;
            }
            self.states[block as usize].exists = true;
            self.live_blocks += 1;
        }
        Ok(())
    }

    /// Makes files of `pieces` blocks of the file system in all, as far as they fit.
    fn fill_gap(
        &mut self,
        directory: u32,
        pieces: u64,
        fillers: &mut Vec<u32>,
    ) -> Result<(), LayoutError> {
        let mut left = pieces;
        while left > 0 {
            let size = left.min(FILLER_PIECES);
            left -= size;
            let made = self.system.create(directory, &mut ());
            let file = match made {
                Err(FileSystemError::NoSpace | FileSystemError::NoInodes) => return Ok(()),
                made => made?,
            };
            fillers.push(file);
            match self.system.write(file, 0, size * self.system.block_bytes(), &mut ()) {
                Err(FileSystemError::NoSpace) => return Ok(()),
                written => written?,
            }
        }
        Ok(())
    }
}
