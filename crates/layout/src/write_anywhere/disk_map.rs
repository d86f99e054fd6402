//! The map of blocks on disk, and how it is found again after a crash.
//!
//! * `Scan`: every block carries a header that says which block it is and when it was written; after
//!   a crash the whole disk is read (Loge: English & Stepanov 1992). An old place is free as soon as
//!   the new one is written.
//! * `Checkpoint`: the same headers, and now and then the whole map is written to one of two regions
//!   at the front of the disk. After a crash the last one is read, and every place that it calls
//!   free is examined (Mime: Chao et al. 1992, after Matthews 1999, §3.6). That is right only if
//!   nothing has been written elsewhere since, so an old place is free from the next checkpoint on.
//! * `Snapshot`: no headers; the map is a tree, whose changed blocks are written to free places and
//!   at last its root, in its own place. After a crash the root is read, and requests that came
//!   since are repeated from memory that survives (WAFL: Hitz et al. 1995). An old place is free
//!   from the next snapshot on; one snapshot is kept.
//!
//! The tree of a snapshot is its leaves and the root: the inner nodes of a map of 2048 entries a
//! block are one in two thousand of it.

use super::NONE;
use agewell_log::free_places::FreePlaces;
use agewell_log::{BlockDevice, Purpose, Transfer};

/// Bytes of a block's entry in the map on disk: an address (also WAFL's entry a block in its block
/// map: Hitz et al. 1995, §3.2).
pub const MAP_ENTRY_BYTES: u64 = 4;

/// How the map of blocks is found again after a crash. See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashRecovery {
    /// The whole disk is read.
    Scan,
    /// The last checkpoint is read, and all that was free then.
    Checkpoint,
    /// The root of the last snapshot is read.
    Snapshot,
}

/// The map on disk.
#[derive(Debug, Clone)]
pub(super) struct DiskMap {
    recovery: CrashRecovery,
    /// Blocks of the whole map; 0 where there is none.
    map_blocks: u32,
    entries_per_block: u32,
    /// Which of the two regions was written last.
    region: u32,
    /// Places written since the map was.
    placed: Vec<u32>,
    /// Place of each block of a snapshot's map.
    map_places: Vec<u32>,
    changed: Vec<bool>,
}

impl DiskMap {
    pub(super) fn new(recovery: CrashRecovery, capacity: u32, block_bytes: u64) -> Self {
        let entries_per_block = (block_bytes / MAP_ENTRY_BYTES).max(1).min(u64::from(NONE)) as u32;
        let map_blocks =
            if recovery == CrashRecovery::Scan { 0 } else { capacity.div_ceil(entries_per_block) };
        Self {
            recovery,
            map_blocks,
            entries_per_block,
            region: 1,
            placed: Vec::new(),
            map_places: vec![NONE; map_blocks as usize],
            changed: vec![false; map_blocks as usize],
        }
    }

    /// Places at the front of the disk that nothing else may have.
    pub(super) fn fixed_places(&self) -> u32 {
        match self.recovery {
            CrashRecovery::Scan => 0,
            CrashRecovery::Checkpoint => 2 * self.map_blocks,
            CrashRecovery::Snapshot => 1,
        }
    }

    /// Free places that only the map may take.
    pub(super) fn spare_places(&self) -> u32 {
        if self.recovery == CrashRecovery::Snapshot { self.map_blocks } else { 0 }
    }

    /// Places that blocks can never have.
    pub(super) fn kept_places(&self) -> u64 {
        u64::from(self.fixed_places()) + 2 * u64::from(self.spare_places())
    }

    /// `block` was written to `place`.
    #[inline]
    pub(super) fn note_placed(&mut self, block: u32, place: u32) {
        if self.recovery != CrashRecovery::Scan {
            self.placed.push(place);
            self.note_changed(block);
        }
    }

    /// The place of `block` is another.
    #[inline]
    pub(super) fn note_changed(&mut self, block: u32) {
        if self.recovery == CrashRecovery::Snapshot {
            // Numbers beyond the places of the disk share the last block of the map.
            let map_block = (block / self.entries_per_block).min(self.map_blocks - 1);
            self.changed[map_block as usize] = true;
        }
    }

    /// Blocks written since the map was.
    pub(super) fn placed_blocks(&self) -> usize {
        self.placed.len()
    }

    /// First place of the region written last.
    pub(super) fn last_region(&self) -> u32 {
        self.region * self.map_blocks
    }

    /// Writes the whole map to the region that is older; returns its blocks.
    pub(super) fn checkpoint(&mut self, device: &mut impl BlockDevice) -> u32 {
        self.region = 1 - self.region;
        let map = Transfer::of_blocks(Purpose::MetadataWrite, self.last_region(), self.map_blocks);
        device.transfer(&map, &[]);
        self.placed.clear();
        self.map_blocks
    }

    /// The blocks of the map that have to be written.
    pub(super) fn take_changed(&mut self) -> Vec<u32> {
        let changed = self.changed.iter_mut().zip(0..);
        changed.filter_map(|(changed, block)| std::mem::take(changed).then_some(block)).collect()
    }

    /// A block of the map is at `place`; where it was before.
    pub(super) fn move_map_block(&mut self, map_block: u32, place: u32) -> Option<u32> {
        let old = std::mem::replace(&mut self.map_places[map_block as usize], place);
        (old != NONE).then_some(old)
    }

    /// The root has been written.
    pub(super) fn snapshot_done(&mut self) {
        self.placed.clear();
    }

    /// Places that the map has.
    pub(super) fn places(&self) -> impl Iterator<Item = u32> + '_ {
        let leaves = self.map_places.iter().copied().filter(|place| *place != NONE);
        (0..self.fixed_places()).chain(leaves)
    }

    /// Reads the checkpoint and what it calls free.
    pub(super) fn recover_checkpoint(&self, free: &FreePlaces, device: &mut impl BlockDevice) {
        let first = self.last_region();
        device.transfer(&Transfer::of_blocks(Purpose::RecoveryRead, first, self.map_blocks), &[]);
        let mut examined = self.placed.clone();
        let mut next = free.at_or_after(0);
        while let Some(place) = next {
            examined.push(place);
            next = free.at_or_after(place + 1);
        }
        examined.sort_unstable();
        // A place may have been written, freed by a deletion, and be held; it is examined once.
        examined.dedup();
        in_runs(&examined, Purpose::RecoveryRead, device);
    }

    /// Reads the root and writes again what was written since the snapshot.
    pub(super) fn recover_snapshot(&self, device: &mut impl BlockDevice) {
        device.transfer(&Transfer::of_blocks(Purpose::RecoveryRead, 0, 1), &[]);
        let mut repeated = self.placed.clone();
        repeated.sort_unstable();
        in_runs(&repeated, Purpose::RecoveryWrite, device);
    }
}

/// Transfers the ascending `places`, those side by side together.
fn in_runs(places: &[u32], purpose: Purpose, device: &mut impl BlockDevice) {
    device.begin_batch();
    for run in places.chunk_by(|one, next| one + 1 == *next) {
        device.transfer(&Transfer::of_blocks(purpose, run[0], run.len() as u32), &[]);
    }
    device.end_batch();
}
