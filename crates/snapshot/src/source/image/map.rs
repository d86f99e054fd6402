//! Free extents and the bound on work while they are collected.

use super::fault::Fault;
use crate::FreeExtent;

/// How many blocks of metadata may still be read.
///
/// In a sound file system each block of metadata belongs to one file, so that no more of them are
/// read than there are blocks. A mangled one may name the same block a thousand times, one level
/// over the other; this bound is what ends it.
#[derive(Debug)]
pub(super) struct Budget(u64);

impl Budget {
    /// As many as the file system has blocks.
    pub(super) fn of_blocks(blocks: u64) -> Self {
        Self(blocks)
    }

    /// Takes `blocks` of it.
    pub(super) fn spend(&mut self, blocks: u64) -> Result<(), Fault> {
        let left = self.0.checked_sub(blocks);
        self.0 = left.unwrap_or(0);
        left.map(drop).ok_or_else(|| {
            Fault::corrupt("the files have more blocks of metadata than the file system has blocks")
        })
    }
}

/// What is free, collected by ascending address.
#[derive(Debug, Default)]
pub(super) struct FreeMap {
    extents: Vec<FreeExtent>,
    free_bytes: u64,
}

impl FreeMap {
    /// Adds `length_bytes` from `physical_bytes` on, behind everything added before.
    pub(super) fn add(&mut self, physical_bytes: u64, length_bytes: u64) {
        if length_bytes == 0 {
            return;
        }
        self.free_bytes += length_bytes;
        if let Some(last) = self.extents.last_mut() {
            let end = last.physical_bytes + last.length_bytes;
            assert!(end <= physical_bytes, "free space is added by ascending address");
            if end == physical_bytes {
                last.length_bytes += length_bytes;
                return;
            }
        }
        self.extents.push(FreeExtent { physical_bytes, length_bytes });
    }

    /// The extents, and how many bytes they are.
    pub(super) fn finish(self) -> (Vec<FreeExtent>, u64) {
        (self.extents, self.free_bytes)
    }
}

/// Calls `found` with start and end of every run of bits that equal `value` among the first
/// `count` of `bitmap`, lowest bit of a byte first.
pub(super) fn runs_of(bitmap: &[u8], count: u64, value: bool, mut found: impl FnMut(u64, u64)) {
    let mut start = None;
    for (index, chunk) in bitmap.chunks(8).enumerate() {
        let base = index as u64 * 64;
        if base >= count {
            break;
        }
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        let word = u64::from_le_bytes(bytes) ^ if value { 0 } else { u64::MAX };
        let bits = (count - base).min(chunk.len() as u64 * 8) as u32;
        let mut position = 0;
        while position < bits {
            let rest = word >> position;
            if start.is_none() {
                position += rest.trailing_zeros().min(64 - position);
                if position < bits {
                    start = Some(base + u64::from(position));
                }
            } else {
                position += rest.trailing_ones().min(64 - position);
                if position < bits {
                    found(start.take().expect("a run began"), base + u64::from(position));
                }
            }
        }
    }
    if let Some(start) = start {
        found(start, count.min(bitmap.len() as u64 * 8));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bit by bit.
    fn slow_runs(bitmap: &[u8], count: u64, value: bool) -> Vec<(u64, u64)> {
        let count = count.min(bitmap.len() as u64 * 8);
        let is = |bit: u64| (bitmap[(bit / 8) as usize] >> (bit % 8) & 1 == 1) == value;
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for bit in (0..count).filter(|&bit| is(bit)) {
            match runs.last_mut() {
                Some(last) if last.1 == bit => last.1 += 1,
                _ => runs.push((bit, bit + 1)),
            }
        }
        runs
    }

    proptest! {
        /// Runs of a bitmap are those that a look at every bit finds.
        #[test]
        fn runs_equal_bit_by_bit(
            bytes in prop::collection::vec(
                prop_oneof![Just(0_u8), Just(255), any::<u8>()], 0..40),
            count in 0_u64..400,
            value: bool,
        ) {
            let mut runs = Vec::new();
            runs_of(&bytes, count, value, |start, end| runs.push((start, end)));
            prop_assert_eq!(runs, slow_runs(&bytes, count, value));
        }
    }
}
