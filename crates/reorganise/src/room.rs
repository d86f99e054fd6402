//! What of the device files can be moved to.

use crate::new_chunks::ChunkSpace;
use crate::runs::Runs;

/// What of the device is free, and how much of it may be held.
#[derive(Debug, Clone)]
pub struct Room {
    /// Free runs that data may come to lie in.
    pub free: Runs,
    /// Of it is left to others, bytes.
    pub reserve_bytes: u64,
    /// On btrfs: what chunks of data can be made of.
    pub(crate) chunk_space: ChunkSpace,
}

impl Room {
    /// A part of what is free stays free for others: an eighth, at least 16 MiB, at most half; chosen
    /// by us, so that a program that writes in the meantime finds room for seconds of its work.
    #[must_use]
    pub fn new(free: Runs) -> Self {
        let reserve_bytes = reserve_bytes(free.bytes());
        Self { free, reserve_bytes, chunk_space: ChunkSpace::default() }
    }

    /// What is held: all but the shortest runs, which come to the reserve.
    pub(crate) fn held(&self) -> Runs {
        let mut lengths: Vec<(u64, u64)> =
            self.free.iter().map(|(start, length)| (length, start)).collect();
        lengths.sort_unstable();
        let mut left = self.reserve_bytes;
        let mut held = self.free.clone();
        for (length, start) in lengths {
            if left == 0 {
                break;
            }
            let bytes = length.min(left);
            held.take(start, bytes);
            left -= bytes;
        }
        held
    }
}

/// What of `free_bytes` stays free for others.
pub(crate) fn reserve_bytes(free_bytes: u64) -> u64 {
    (free_bytes / 8).max(16 << 20).min(free_bytes / 2)
}
