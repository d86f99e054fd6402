//! What is written into files: bytes that neither compress nor repeat.
//!
//! A file system that compresses or deduplicates must not shrink what it is given. One pool of
//! pseudo-random bytes is made before anything is timed; at the front of each 4 KiB of a write
//! eight bytes are stamped that depend on file, place and time, so that no two blocks are alike and
//! a write costs one system call and a few stores.

use agewell_core::{RandomStreams, mix};
use rand_core::Rng;

use super::Data;

/// Bytes between two stamps: the smallest block of the file systems of today.
const STAMP_EVERY_BYTES: usize = 4096;

/// A pool of bytes to write from.
#[derive(Debug)]
pub(crate) struct Pool {
    bytes: Vec<u8>,
    stamped: bool,
}

impl Pool {
    /// `length_bytes` of `data`; the same seed gives the same bytes.
    pub(crate) fn new(data: Data, length_bytes: usize, seed: u64) -> Self {
        let mut bytes = vec![0; length_bytes];
        if data == Data::Random {
            RandomStreams::new(seed).stream("file-data").fill_bytes(&mut bytes);
        }
        Self { bytes, stamped: data == Data::Random }
    }

    /// The bytes for up to `length_bytes` of `file` from `offset_bytes`, written at `time_ns`.
    pub(crate) fn bytes(
        &mut self,
        file: u32,
        offset_bytes: u64,
        time_ns: u64,
        length_bytes: u64,
    ) -> &[u8] {
        let length = self.bytes.len().min(usize::try_from(length_bytes).unwrap_or(usize::MAX));
        let bytes = &mut self.bytes[..length];
        if self.stamped {
            let mut stamp = mix(time_ns ^ (u64::from(file) << 32)) ^ offset_bytes;
            for block in bytes.chunks_mut(STAMP_EVERY_BYTES) {
                stamp = mix(stamp);
                let kept = block.len().min(8);
                block[..kept].copy_from_slice(&stamp.to_le_bytes()[..kept]);
            }
        }
        bytes
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

    #[test]
    fn zeros_are_zeros() {
        let mut pool = Pool::new(Data::Zeros, 8192, 7);
        assert!(pool.bytes(1, 0, 9, 8192).iter().all(|byte| *byte == 0));
    }
}
