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
        self.runs.iter().map(|run| run.1).sum()
    }

    /// Bytes of nodes that move for them.
    pub(crate) fn node_bytes(&self) -> u64 {
        self.emptied.iter().map(node_bytes).sum()
    }
}

/// Bytes of nodes in `chunk`, all copies.
pub(crate) fn node_bytes(chunk: &MetadataChunk) -> u64 {
    chunk.used_bytes.saturating_mul(chunk.copies.len() as u64)
}

/// Shorter stretches of the device are not made chunks of; chosen by us, as `mkfs.btrfs` makes none below
/// 8 MiB.
const CHUNK_BYTES_MIN: u64 = 16 << 20;

impl ChunkSpace {
    /// Chunks of data of `wanted_bytes`, or of as much as can be had; `None` if of nothing.
    ///
    /// Half of what no chunk has is left for what others write. Metadata keeps half as much again as it
    /// has in use: with less it would soon ask for a chunk that it could not have. Only chunks of which
    /// at most half is in use are emptied, those first in which least is. All chosen by us.
    pub(crate) fn new_chunks(&self, wanted_bytes: u64) -> Option<NewChunks> {
        let mut room = self.unallocated.clone();
        let left_bytes = room.bytes() / 2;
        let used_bytes: u64 = self.metadata.iter().map(|chunk| chunk.used_bytes).sum();
        let mut kept_bytes: u64 = self.metadata.iter().map(|chunk| chunk.length_bytes).sum();
        let mut by_use: Vec<&MetadataChunk> = self.metadata.iter().collect();
        by_use.sort_by_key(|chunk| {
            (chunk.used_bytes.saturating_mul(1000) / chunk.length_bytes.max(1), chunk.logical_bytes)
        });
        let mut emptied = Vec::new();
        for chunk in by_use {
            let rest_bytes = kept_bytes - chunk.length_bytes;
            let copies = &chunk.copies;
            if room.bytes() - left_bytes >= wanted_bytes
                || chunk.used_bytes > chunk.length_bytes / 2
            {
                break;
            }
            if rest_bytes < used_bytes + used_bytes / 2
                || copies.iter().any(|at| room.overlaps(*at, chunk.length_bytes))
            {
                continue;
            }
            kept_bytes = rest_bytes;
            for at in copies {
                room.add(*at, chunk.length_bytes);
            }
            emptied.push(chunk.clone());
        }
        let mut bytes = (room.bytes() - left_bytes).min(wanted_bytes);
        let mut runs = Vec::new();
        while bytes >= CHUNK_BYTES_MIN {
            let Some((start, length)) = room.longest() else { break };
            if length < CHUNK_BYTES_MIN {
                break;
            }
            let length = length.min(bytes);
            room.take(start, length);
            runs.push((start, length));
            bytes -= length;
        }
        (!runs.is_empty()).then_some(NewChunks { runs, emptied })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{CHUNK_BYTES_MIN, ChunkSpace, MetadataChunk, NewChunks};

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
        };
        // Of 310 MiB 103 are in use; 154 are kept at least, and the other has but 102.
        let found = space.new_chunks(240 * MIB).expect("there is room");
        assert_eq!(
            (found.emptied.as_slice(), found.node_bytes()),
            (&space.metadata[1..], 78 * MIB)
        );
        assert_eq!(found.runs, [(600 * MIB, 204 * MIB)]);
    }

    /// What no chunk has is enough: none is emptied, and half is left.
    #[test]
    fn what_no_chunk_has_comes_first() {
        let space = ChunkSpace {
            unallocated: [(0, 4096 * MIB)].into_iter().collect(),
            metadata: vec![chunk(4096, 1024, 1)],
        };
        let runs = |wanted: u64| {
            let found = space.new_chunks(wanted * MIB);
            found.map(|NewChunks { runs, emptied, .. }| (runs, emptied.len()))
        };
        assert_eq!(runs(237), Some((vec![(0, 237 * MIB)], 0)));
        assert_eq!(runs(2048), Some((vec![(0, 2048 * MIB)], 0)));
        assert_eq!(runs(15), None);
        // The only chunk of metadata stays.
        assert_eq!(runs(9000), Some((vec![(0, 2048 * MIB)], 0)));
    }

    proptest! {
        /// Metadata keeps what it needs, what is made is on the device and no more than is wanted, and
        /// half of what no chunk had stays so.
        #[test]
        fn what_is_promised_is_kept(
            chunks in prop::collection::vec((1_u64..300, 0_u64..=100, 0_u64..64), 0..6),
            unallocated in 0_u64..400, wanted in 0_u64..600,
        ) {
            let mut metadata = Vec::new();
            let mut at = 0;
            for (length, pct, gap) in chunks {
                metadata.push(chunk(at, length, length * pct / 100));
                at += length + gap;
            }
            let unallocated = [(2 * at * MIB, unallocated * MIB)].into_iter().collect();
            let space = ChunkSpace { unallocated, metadata };
            let all: u64 = space.metadata.iter().map(|chunk| chunk.length_bytes).sum();
            let used: u64 = space.metadata.iter().map(|chunk| chunk.used_bytes).sum();
            let Some(found) = space.new_chunks(wanted * MIB) else { return Ok(()) };
            let emptied: u64 = found.emptied.iter().map(|chunk| chunk.length_bytes).sum();
            if !found.emptied.is_empty() {
                prop_assert!(all - emptied >= used + used / 2);
            }
            prop_assert!(found.bytes() <= wanted * MIB);
            prop_assert!(found.bytes() <= space.unallocated.bytes().div_ceil(2) + 2 * emptied);
            prop_assert!(found.runs.iter().all(|run| run.1 >= CHUNK_BYTES_MIN));
            let mut room = space.unallocated.clone();
            for chunk in &found.emptied {
                chunk.copies.iter().for_each(|copy| room.add(*copy, chunk.length_bytes));
            }
            for (start, length) in &found.runs {
                room.take(*start, *length);
            }
        }
    }
}
