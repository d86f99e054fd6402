//! Where the files of a snapshot lie, as the rule of reorganisation sees them.

use std::collections::BTreeMap;

use agewell_regrouping::{MemberKey, MemberView, ReadHistory, Run, StepView};
use agewell_snapshot::{ExtentFlags, FileKind, Snapshot, SnapshotFile};

use super::SLOT_BYTES;
use super::state::checksum;

/// Who a file of a snapshot is.
pub(crate) fn key_of(file: &SnapshotFile) -> MemberKey {
    MemberKey { number: file.inode, birth_ns: file.birth_ns }
}

/// Where the data of `file` lie, up to its end.
pub(crate) fn runs_of(snapshot: &Snapshot, file: &SnapshotFile) -> Vec<Run> {
    let nowhere = ExtentFlags::INLINE.with(ExtentFlags::UNKNOWN);
    let end_bytes = file.size_bytes.next_multiple_of(SLOT_BYTES);
    let mut runs: Vec<Run> = Vec::new();
    for extent in snapshot.extents_of(file) {
        if extent.logical_bytes >= end_bytes || extent.flags.any(nowhere) {
            continue;
        }
        let bytes = extent.length_bytes.min(end_bytes - extent.logical_bytes);
        let first = extent.physical_bytes / SLOT_BYTES;
        let slots = (extent.physical_bytes + bytes.max(1) - 1) / SLOT_BYTES - first + 1;
        let offset = extent.logical_bytes / SLOT_BYTES;
        match runs.last_mut() {
            Some(last) if last.offset + last.slots == offset && last.slot + last.slots == first => {
                last.slots += slots;
            }
            _ => runs.push(Run { offset, slot: first, slots }),
        }
    }
    runs
}

/// How many slots runs have.
pub(crate) fn slots_of(runs: &[Run]) -> u32 {
    let slots: u64 = runs.iter().map(|run| run.slots).sum();
    u32::try_from(slots).unwrap_or(u32::MAX)
}

/// What tells one place of a file from another.
pub(crate) fn place_sum(runs: &[Run]) -> u64 {
    let bytes: Vec<u8> = runs
        .iter()
        .flat_map(|run| [run.offset, run.slot, run.slots])
        .flat_map(u64::to_le_bytes)
        .collect();
    checksum(&bytes)
}

/// The files of a snapshot by the numbers of a history. Files that it does not know have numbers above
/// all that it does.
pub(crate) struct TreeView<'a> {
    snapshot: &'a Snapshot,
    /// Where in the snapshot each known file is.
    places: Vec<Option<u32>>,
    runs: Vec<Vec<Run>>,
    /// Files by the slot in which they begin, and by the one in which they end.
    begins: BTreeMap<u64, u32>,
    ends: BTreeMap<u64, u32>,
}

impl<'a> TreeView<'a> {
    /// Of `snapshot`.
    pub(crate) fn new(snapshot: &'a Snapshot, history: &ReadHistory) -> Self {
        let nodes = history.related().partitions().nodes();
        let mut view = Self {
            snapshot,
            places: vec![None; nodes as usize],
            runs: vec![Vec::new(); nodes as usize],
            begins: BTreeMap::new(),
            ends: BTreeMap::new(),
        };
        for (place, file) in snapshot.files.iter().enumerate() {
            if file.kind != FileKind::Regular || file.size_bytes == 0 {
                continue;
            }
            let runs = runs_of(snapshot, file);
            let (Some(first), Some(last)) = (runs.first(), runs.last()) else { continue };
            let known = history.number(key_of(file)).filter(|number| *number < nodes);
            let number = known.unwrap_or(nodes + place as u32);
            view.begins.insert(first.slot, number);
            view.ends.insert(last.slot + last.slots - 1, number);
            if let Some(known) = known {
                view.places[known as usize] = Some(place as u32);
                view.runs[known as usize] = runs;
            }
        }
        view
    }

    /// Where in the snapshot a file is; none where it is not, or holds nothing.
    pub(crate) fn place(&self, number: u32) -> Option<u32> {
        match self.places.get(number as usize) {
            Some(place) => *place,
            None => Some(number - self.places.len() as u32),
        }
    }

    /// The file of the snapshot.
    pub(crate) fn file(&self, number: u32) -> Option<&'a SnapshotFile> {
        self.snapshot.files.get(self.place(number)? as usize)
    }
}

impl MemberView for TreeView<'_> {
    fn runs(&self, number: u32) -> &[Run] {
        self.runs.get(number as usize).map_or(&[], |runs| runs)
    }
}

impl StepView for TreeView<'_> {
    type Slot = u64;

    fn slot_of(&self, file: u32) -> Option<u64> {
        self.runs(file).first().map(|run| run.slot)
    }

    fn last_slot_of(&self, file: u32) -> Option<u64> {
        self.runs(file).last().map(|run| run.slot + run.slots - 1)
    }

    fn slots(&self, file: u32) -> u32 {
        slots_of(self.runs(file))
    }

    fn step_blocks(&self, slot: u64, next: u64) -> i64 {
        next.wrapping_sub(slot).cast_signed() - 1
    }

    fn block_before(&self, slot: u64) -> Option<u32> {
        self.ends.get(&slot.checked_sub(1)?).copied()
    }

    fn block_after(&self, slot: u64) -> Option<u32> {
        self.begins.get(&slot.checked_add(1)?).copied()
    }

    /// Files of a directory that lie side by side are likely to be read so; chosen by us.
    fn came_in_sequence(&self, from: u32, to: u32) -> bool {
        let directory = |number: u32| self.file(number).map(|file| file.directory);
        directory(from).is_some() && directory(from) == directory(to)
    }
}
