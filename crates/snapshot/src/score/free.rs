//! What is free, and in how large pieces.
//!
//! The free-space score is the layout score of free space taken as one file in the order of
//! addresses: the share of free blocks, the first left out, that follow another free block. It is
//! 1.00 where all free space is one extent and falls towards 0 as single blocks are scattered. Only
//! whole blocks count, aligned as the file system's are; free fragments of shared blocks (FFS) are
//! distinguished.
//!
//! Cost: one pass over the free extents and one sort of their lengths.

use serde::Serialize;

use crate::Snapshot;

use super::share;

/// What is free, as far as the snapshot has a map of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FreeSpace {
    /// Share of free blocks, without the first, that follow another free block.
    pub free_space_score: Option<f64>,
    /// Free blocks that follow another.
    pub following_blocks: u64,
    /// Free blocks, the first left out.
    pub counted_blocks: u64,
    /// Bytes of all free extents.
    pub bytes: u64,
    /// Bytes of them in no whole block.
    pub fragment_bytes: u64,
    /// Free extents.
    pub extents: u64,
    /// Their mean length, bytes.
    pub mean_extent_bytes: Option<f64>,
    /// The longest, bytes.
    pub largest_extent_bytes: u64,
    /// Half of what is free lies in extents at least so long, bytes.
    pub half_in_extents_of_bytes: u64,
    /// By length, powers of two.
    pub by_length: Vec<FreeBin>,
    /// How much of it lies in extents long enough for something.
    pub reach: Vec<FreeReach>,
}

/// Free extents of about one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FreeBin {
    /// The least length, bytes, included.
    pub bytes_min: u64,
    /// The next bin's least length, bytes.
    pub bytes_end: u64,
    /// Extents.
    pub extents: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Free space in extents of at least some length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FreeReach {
    /// The length, bytes.
    pub extent_bytes: u64,
    /// Bytes in extents at least so long.
    pub bytes: u64,
    /// Share of what is free.
    pub share: Option<f64>,
}

/// Lengths that something needs in one piece, bytes: a cluster of FFS (56 KB, Smith & Seltzer 1996,
/// table 1), 1 MiB (a read-ahead window or a RAID stripe; chosen by us), 64 MiB (a segment or a
/// large file in one piece; chosen by us).
const REACH_BYTES: [u64; 3] = [56 << 10, 1 << 20, 64 << 20];

impl FreeSpace {
    pub(super) fn new(snapshot: &Snapshot) -> Self {
        let block_bytes = u64::from(snapshot.facts.block_bytes);
        let mut bins = [(0_u64, 0_u64); 64];
        let mut reach = [0_u64; REACH_BYTES.len()];
        let (mut bytes, mut blocks, mut runs, mut largest) = (0, 0, 0, 0);
        for free in &snapshot.free {
            let length = free.length_bytes;
            bytes += length;
            largest = length.max(largest);
            let first = free.physical_bytes.div_ceil(block_bytes);
            let end = (free.physical_bytes + length) / block_bytes;
            if end > first {
                blocks += end - first;
                runs += 1;
            }
            let bin = &mut bins[length.ilog2() as usize];
            bin.0 += 1;
            bin.1 += length;
            for (at_least, sum) in REACH_BYTES.iter().zip(&mut reach) {
                *sum += if length >= *at_least { length } else { 0 };
            }
        }
        let (following_blocks, counted_blocks) = match blocks {
            0 => (0, 0),
            _ => (blocks - runs, blocks - 1),
        };
        Self {
            free_space_score: share(following_blocks, counted_blocks),
            following_blocks,
            counted_blocks,
            bytes,
            fragment_bytes: bytes - blocks * block_bytes,
            extents: snapshot.free.len() as u64,
            mean_extent_bytes: share(bytes, snapshot.free.len() as u64),
            largest_extent_bytes: largest,
            half_in_extents_of_bytes: half_in_extents_of(snapshot, bytes),
            by_length: bins
                .iter()
                .enumerate()
                .filter(|(_, bin)| bin.0 > 0)
                .map(|(power, (extents, bytes))| FreeBin {
                    bytes_min: 1 << power,
                    bytes_end: 2 << power,
                    extents: *extents,
                    bytes: *bytes,
                })
                .collect(),
            reach: REACH_BYTES
                .iter()
                .zip(reach)
                .map(|(extent_bytes, sum)| FreeReach {
                    extent_bytes: *extent_bytes,
                    bytes: sum,
                    share: share(sum, bytes),
                })
                .collect(),
        }
    }
}

fn half_in_extents_of(snapshot: &Snapshot, bytes: u64) -> u64 {
    let mut lengths: Vec<u64> = snapshot.free.iter().map(|free| free.length_bytes).collect();
    lengths.sort_unstable_by(|one, other| other.cmp(one));
    let mut sum = 0;
    for length in lengths {
        sum += length;
        if sum >= bytes.div_ceil(2) {
            return length;
        }
    }
    0
}
