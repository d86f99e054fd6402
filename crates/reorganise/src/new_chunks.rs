//! Room for data beyond the chunks of data that a btrfs has: what of the device no chunk has, and chunks
//! of metadata that are mostly empty, whose nodes go to the others (a balance of those chunks). A
//! function of values.
//!
//! btrfs gives space to data and to metadata in chunks. What was given to metadata while there was much
//! of it stays so, however little of it is in use, and no file can go there.

use agewell_snapshot::source::live::MetadataChunk;

use crate::runs::Runs;

/// What chunks of data can be made of.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChunkSpace {
    /// What of the device no chunk has.
    pub unallocated: Runs,
    /// Chunks of metadata.
    pub metadata: Vec<MetadataChunk>,
    /// Bytes of a chunk of data that the kernel makes where there is room.
    pub chunk_bytes: u64,
}

/// Chunks of data that can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewChunks {
    /// Where on the device they are expected, start and length, bytes.
    pub runs: Vec<(u64, u64)>,
    /// Which chunks of metadata are emptied for them.
    pub emptied: Vec<MetadataChunk>,
}

impl NewChunks {
    /// Room in them, bytes.
    pub(crate) fn bytes(&self) -> u64 {
        bytes_of(&self.runs)
    }

    /// Bytes of nodes that move for them.
    pub(crate) fn node_bytes(&self) -> u64 {
        self.emptied.iter().map(node_bytes).sum()
    }
}

fn bytes_of(runs: &[(u64, u64)]) -> u64 {
    runs.iter().map(|run| run.1).sum()
}

/// Bytes of nodes in `chunk`, all copies.
pub(crate) fn node_bytes(chunk: &MetadataChunk) -> u64 {
    chunk.used_bytes.saturating_mul(chunk.copies.len() as u64)
}

/// Bytes of a chunk of data that the kernel makes on a device of `device_bytes` where there is room: a tenth
/// of it, at most 1 GiB.
///
/// Source: Linux `fs/btrfs/volumes.c` (`init_alloc_chunk_ctl_policy_regular`, `decide_stripe_size_regular`).
pub(crate) fn chunk_bytes(device_bytes: u64) -> u64 {
    (device_bytes / 10).next_multiple_of(16 << 20).min(1 << 30)
}

/// Shorter stretches of the device are not made chunks of; chosen by us, as `mkfs.btrfs` makes none below
/// 8 MiB.
pub(crate) const CHUNK_BYTES_MIN: u64 = 16 << 20;

impl ChunkSpace {
    /// Chunks of data with room for `wanted_bytes`, or for as much as can be had; `None` if for nothing.
    ///
    /// Half of what no chunk has is left for what others write. Metadata keeps half as much again as it
    /// has in use: with less it would soon ask for a chunk that it could not have. Only chunks of which
    /// at most half is in use are emptied, those first in which least is. All chosen by us.
    pub(crate) fn new_chunks(&self, wanted_bytes: u64) -> Option<NewChunks> {
        let left_bytes = self.left_bytes();
        let mut room = self.unallocated.clone();
        let used_bytes: u64 = self.metadata.iter().map(|chunk| chunk.used_bytes).sum();
        let mut kept_bytes: u64 = self.metadata.iter().map(|chunk| chunk.length_bytes).sum();
        let mut by_use: Vec<&MetadataChunk> = self.metadata.iter().collect();
        by_use.sort_by_key(|chunk| {
            (chunk.used_bytes.saturating_mul(1000) / chunk.length_bytes.max(1), chunk.logical_bytes)
        });
        let mut found =
            NewChunks { runs: self.runs(&room, left_bytes, wanted_bytes), emptied: Vec::new() };
        for chunk in by_use {
            if found.bytes() >= wanted_bytes || chunk.used_bytes > chunk.length_bytes / 2 {
                break;
            }
            let rest_bytes = kept_bytes - chunk.length_bytes;
            if rest_bytes < used_bytes + used_bytes / 2
                || chunk.copies.iter().any(|at| room.overlaps(*at, chunk.length_bytes))
            {
                continue;
            }
            let mut more = room.clone();
            for at in &chunk.copies {
                more.add(*at, chunk.length_bytes);
            }
            let runs = self.runs(&more, left_bytes, wanted_bytes);
            if bytes_of(&runs) > found.bytes() {
                (room, kept_bytes) = (more, rest_bytes);
                found.runs = runs;
                found.emptied.push(chunk.clone());
            }
        }
        (!found.runs.is_empty()).then_some(found)
    }

    /// What is left of what no chunk has, bytes.
    pub(crate) fn left_bytes(&self) -> u64 {
        self.unallocated.bytes() / 2
    }

    /// Where in `room` chunks for `wanted_bytes` are made so that `left_bytes` are left: each as long as the
    /// kernel makes it.
    pub(crate) fn runs(&self, room: &Runs, left_bytes: u64, wanted_bytes: u64) -> Vec<(u64, u64)> {
        let mut room = room.clone();
        let (mut runs, mut bytes) = (Vec::new(), 0);
        while bytes < wanted_bytes {
            let Some((start, length)) = room.longest() else { break };
            let length = length.min(self.chunk_bytes);
            if length < CHUNK_BYTES_MIN || room.bytes() - length < left_bytes {
                break;
            }
            room.take(start, length);
            runs.push((start, length));
            bytes += length;
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{CHUNK_BYTES_MIN, ChunkSpace, MetadataChunk, NewChunks, chunk_bytes};

    const MIB: u64 = 1 << 20;

    fn chunk(logical_mib: u64, length_mib: u64, used_mib: u64) -> MetadataChunk {
        MetadataChunk {
            logical_bytes: logical_mib * MIB,
            length_bytes: length_mib * MIB,
            used_bytes: used_mib * MIB,
            copies: vec![logical_mib * 2 * MIB, (logical_mib * 2 + length_mib) * MIB],
        }
    }

    /// Of two chunks that are little used the one of which less is; both would leave too little.
    #[test]
    fn the_emptiest_chunk_is_emptied() {
        let space = ChunkSpace {
            unallocated: [(900 * MIB, MIB)].into_iter().collect(),
            metadata: vec![chunk(0, 208, 64), chunk(300, 102, 39)],
            chunk_bytes: 208 * MIB,
        };
        // Of 310 MiB 103 are in use; 154 are kept at least, and the other has but 102.
        let found = space.new_chunks(240 * MIB).expect("there is room");
        assert_eq!(
            (found.emptied.as_slice(), found.node_bytes()),
            (&space.metadata[1..], 78 * MIB)
        );
        assert_eq!(found.runs, [(600 * MIB, 204 * MIB)]);
    }

    /// What no chunk has is enough: none is emptied, and half is left, however long a chunk is.
    #[test]
    fn what_no_chunk_has_comes_first() {
        let space = ChunkSpace {
            unallocated: [(0, 4000 * MIB)].into_iter().collect(),
            metadata: vec![chunk(4096, 1024, 1)],
            chunk_bytes: 800 * MIB,
        };
        let runs = |wanted: u64| {
            let found = space.new_chunks(wanted * MIB);
            found.map(|NewChunks { runs, emptied }| (runs, emptied.len()))
        };
        assert_eq!(runs(237), Some((vec![(0, 800 * MIB)], 0)));
        assert_eq!(runs(0), None);
        // The only chunk of metadata stays.
        assert_eq!(runs(9000), Some((vec![(0, 800 * MIB), (800 * MIB, 800 * MIB)], 0)));
        let less = ChunkSpace { unallocated: [(0, 1590 * MIB)].into_iter().collect(), ..space };
        assert_eq!(less.new_chunks(MIB), None);
    }

    #[test]
    fn chunks_are_a_tenth_of_the_device() {
        // As mkfs and the kernel made them on a device of 2 GiB.
        assert_eq!(chunk_bytes(2 << 30), 218_103_808);
        assert_eq!(chunk_bytes(1 << 40), 1 << 30);
    }

    proptest! {
        /// Metadata keeps what it needs, what is made is on the device and no more than is wanted, and
        /// half of what no chunk had stays so.
        #[test]
        fn what_is_promised_is_kept(
            chunks in prop::collection::vec((1_u64..300, 0_u64..=100, 0_u64..64), 0..6),
            unallocated in 0_u64..400, wanted in 0_u64..600, of_chunk in 16_u64..200,
        ) {
            let mut metadata = Vec::new();
            let mut at = 0;
            for (length, pct, gap) in chunks {
                metadata.push(chunk(at, length, length * pct / 100));
                at += length + gap;
            }
            let unallocated = [(2 * at * MIB, unallocated * MIB)].into_iter().collect();
            let space = ChunkSpace { unallocated, metadata, chunk_bytes: of_chunk * MIB };
            let all: u64 = space.metadata.iter().map(|chunk| chunk.length_bytes).sum();
            let used: u64 = space.metadata.iter().map(|chunk| chunk.used_bytes).sum();
            let Some(found) = space.new_chunks(wanted * MIB) else { return Ok(()) };
            let emptied: u64 = found.emptied.iter().map(|chunk| chunk.length_bytes).sum();
            if !found.emptied.is_empty() {
                prop_assert!(all - emptied >= used + used / 2);
            }
            // No more than one chunk more than is wanted.
            prop_assert!(found.bytes() < (wanted + of_chunk) * MIB);
            prop_assert!(found.runs.iter().all(|run| run.1 >= CHUNK_BYTES_MIN));
            let mut room = space.unallocated.clone();
            for chunk in &found.emptied {
                chunk.copies.iter().for_each(|copy| room.add(*copy, chunk.length_bytes));
            }
            for (start, length) in &found.runs {
                room.take(*start, *length);
            }
            prop_assert!(room.bytes() >= space.unallocated.bytes() / 2);
        }
    }
}
