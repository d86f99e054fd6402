//! Where the units of a history lie.

use std::collections::BTreeMap;

use agewell_fs::{FileSystem, Unit};
use agewell_regrouping::{MemberView, ReadHistory, Run, StepView};
use agewell_store::device::Disk;

/// Units that are looked up at once, while everybody else waits; chosen by us.
const LOOKED_UP_AT_ONCE: usize = 256;

/// What tells one place of a unit from another: FNV-1a of 64 bits.
pub(super) fn place_sum(runs: &[Run]) -> u64 {
    let words = runs.iter().flat_map(|run| [run.offset, run.slot, run.slots]);
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    words.flat_map(u64::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, step)
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct UnitView {
    slot_bytes: u64,
    /// By number in the history.
    keys: Vec<u64>,
    runs: Vec<Vec<Run>>,
    /// Units by the slot in which they begin, and by the one in which they end.
    begins: BTreeMap<u64, u32>,
    ends: BTreeMap<u64, u32>,
}

impl UnitView {
    /// Of all units that `history` knows.
    pub(super) fn new<D: Disk>(
        file_system: &FileSystem<D>,
        history: &ReadHistory,
        slot_bytes: u64,
    ) -> Self {
        let nodes = history.related().partitions().nodes() as usize;
        let (keys, runs) = (vec![u64::MAX; nodes], vec![Vec::new(); nodes]);
        let mut view = Self { slot_bytes, keys, runs, ..Self::default() };
        let all: Vec<u32> = history.known().map(|(number, _)| number).collect();
        view.look(file_system, history, &all);
        view
    }

    /// Looks where `numbers` lie now.
    pub(super) fn look<D: Disk>(
        &mut self,
        file_system: &FileSystem<D>,
        history: &ReadHistory,
        numbers: &[u32],
    ) {
        for some in numbers.chunks(LOOKED_UP_AT_ONCE) {
            let key = |number: &u32| history.file(*number).map_or(u64::MAX, |unit| unit.key.number);
            let keys: Vec<u64> = some.iter().map(key).collect();
            let units: Vec<Unit> = keys.iter().map(|key| Unit::of_number(*key)).collect();
            let found = file_system.unit_places(&units);
            for ((number, key), places) in some.iter().zip(keys).zip(found) {
                let mut runs: Vec<Run> = Vec::new();
                for (offset, (_, place)) in (0..).zip(places) {
                    let slot = place / self.slot_bytes;
                    match runs.last_mut() {
                        Some(last) if last.slot + last.slots == slot => last.slots += 1,
                        _ => runs.push(Run { offset, slot, slots: 1 }),
                    }
                }
                if let (Some(first), Some(last)) = (runs.first(), runs.last()) {
                    self.begins.insert(first.slot, *number);
                    self.ends.insert(last.slot + last.slots - 1, *number);
                }
                self.keys[*number as usize] = key;
                self.runs[*number as usize] = runs;
            }
        }
    }

    /// Where a unit lies.
    pub(super) fn runs_of(&self, number: u32) -> &[Run] {
        self.runs.get(number as usize).map_or(&[], |runs| runs)
    }

    /// The same, to be looked up again.
    pub(super) fn take_runs(&mut self, number: u32) -> Vec<Run> {
        self.runs.get_mut(number as usize).map(std::mem::take).unwrap_or_default()
    }
}

impl MemberView for UnitView {
    fn runs(&self, number: u32) -> &[Run] {
        self.runs_of(number)
    }
}

impl StepView for UnitView {
    type Slot = u64;

    fn slot_of(&self, unit: u32) -> Option<u64> {
        self.runs_of(unit).first().map(|run| run.slot)
    }

    fn last_slot_of(&self, unit: u32) -> Option<u64> {
        self.runs_of(unit).last().map(|run| run.slot + run.slots - 1)
    }

    fn slots(&self, unit: u32) -> u32 {
        self.runs_of(unit).iter().map(|run| run.slots as u32).sum()
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

    /// Pieces of a file that follow one another.
    fn came_in_sequence(&self, from: u32, to: u32) -> bool {
        self.keys[from as usize].wrapping_add(1) == self.keys[to as usize]
    }
}
