//! What is written into files: bytes that neither compress nor repeat.
//!
//! A file system that compresses or deduplicates must not shrink what it is given. One pool of
//! pseudo-random bytes is made before anything is timed. A write takes a stretch of it that begins
//! where file, place and time say, and at the front of each 4 KiB of it eight bytes are stamped
//! that depend on the same. So no two blocks are alike, files do not begin alike, and a write costs
//! one system call and a few stores.
//!
//! Invariant: what is written depends on seed, file, place and time alone, not on earlier writes;
//! stamps are taken back before the next.

use agewell_core::{RandomStreams, mix};
use rand_core::Rng;

use crate::onto::Data;

/// Bytes between two stamps: the smallest block of the file systems of today.
const STAMP_EVERY_BYTES: usize = 4096;

/// Where in the pool a write may begin, in bytes, so that a compressor with a window of
/// some hundred KiB seldom sees two stretches that overlap; chosen by us: each lane has the memory.
const STARTS_BYTES: usize = 8 << 20;

/// A pool of bytes to write from.
#[derive(Debug)]
pub(crate) struct Pool {
    bytes: Vec<u8>,
    longest: usize,
    /// Where stamps of the last write stand, and what was there.
    stamped: Vec<(usize, [u8; 8])>,
    random: bool,
}

impl Pool {
    /// Up to `longest_bytes` of `data` at a time; the same seed gives the same bytes.
    pub(crate) fn new(data: Data, longest_bytes: usize, seed: u64) -> Self {
        let mut bytes = vec![0; STARTS_BYTES + longest_bytes];
        if data == Data::Random {
            RandomStreams::new(seed).stream("file-data").fill_bytes(&mut bytes);
        }
        let random = data == Data::Random;
        Self { bytes, longest: longest_bytes, stamped: Vec::new(), random }
    }

    /// The bytes for up to `length_bytes` of `file` from `offset_bytes`, written at `time_ns`.
    pub(crate) fn bytes(
        &mut self,
        file: u32,
        offset_bytes: u64,
        time_ns: u64,
        length_bytes: u64,
    ) -> &[u8] {
        let length = self.longest.min(usize::try_from(length_bytes).unwrap_or(usize::MAX));
        if !self.random {
            return &self.bytes[..length];
        }
        for (at, before) in self.stamped.drain(..) {
            self.bytes[at..at + before.len()].copy_from_slice(&before);
        }
        let mut stamp = mix(mix(time_ns ^ (u64::from(file) << 32)) ^ offset_bytes);
        let start = stamp as usize % STARTS_BYTES;
        // A stretch shorter than a stamp is as its place in the pool makes it.
        for at in (start..(start + length).saturating_sub(7)).step_by(STAMP_EVERY_BYTES) {
            stamp = mix(stamp);
            let place = &mut self.bytes[at..at + 8];
            let before: [u8; 8] = (&*place).try_into().expect("eight bytes");
            self.stamped.push((at, before));
            place.copy_from_slice(&stamp.to_le_bytes());
        }
        &self.bytes[start..start + length]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// No two blocks of two files, two places or two times are alike, and the same ones are.
    #[test]
    fn blocks_differ_and_can_be_had_again() {
        let mut pool = Pool::new(Data::Random, 64 << 10, 7);
        let mut seen = BTreeSet::new();
        for file in 0..8 {
            for part in 0..4 {
                for time_ns in [0, 5] {
                    let bytes = pool.bytes(file, part * (64 << 10), time_ns, 64 << 10);
                    for block in bytes.chunks(4096) {
                        assert!(seen.insert(block.to_vec()), "file {file} part {part}");
                    }
                }
            }
        }
        let first = pool.bytes(3, 0, 0, 10_000).to_vec();
        pool.bytes(4, 0, 0, 10_000);
        assert_eq!(first, pool.bytes(3, 0, 0, 10_000));
        assert_eq!(pool.bytes(1, 0, 0, 3).len(), 3);
        assert_eq!(pool.bytes(1, 0, 0, 0).len(), 0);
    }

    /// What is written does not depend on what was written before.
    #[test]
    fn earlier_writes_leave_no_trace() {
        let mut fresh = Pool::new(Data::Random, 64 << 10, 7);
        let mut used = Pool::new(Data::Random, 64 << 10, 7);
        for file in 0..200 {
            used.bytes(file, 0, 0, 64 << 10);
        }
        for file in 0..50 {
            assert_eq!(used.bytes(file, 8192, 3, 20_000), fresh.bytes(file, 8192, 3, 20_000));
        }
    }

    #[test]
    fn zeros_are_zeros() {
        let mut pool = Pool::new(Data::Zeros, 8192, 7);
        assert!(pool.bytes(1, 0, 9, 8192).iter().all(|byte| *byte == 0));
    }
}
