//! Where the units of a history lie.

use agewell_fs::{FileSystem, Unit};
use agewell_regrouping::{MemberPlaces, MemberView, ReadHistory, Run};
use agewell_store::device::Disk;

/// Units that are looked up at once, while everybody else waits; chosen by us.
const LOOKED_UP_AT_ONCE: usize = 256;

/// See the module.
#[derive(Debug)]
pub(super) struct UnitView {
    slot_bytes: u64,
    /// By number in the history.
    keys: Vec<u64>,
    places: MemberPlaces,
}

impl UnitView {
    /// Of all units that `history` knows.
    pub(super) fn new<D: Disk>(
        file_system: &FileSystem<D>,
        history: &ReadHistory,
        slot_bytes: u64,
    ) -> Self {
        let nodes = history.related().partitions().nodes();
        let (keys, places) = (vec![u64::MAX; nodes as usize], MemberPlaces::new(nodes));
        let mut view = Self { slot_bytes, keys, places };
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
                self.keys[*number as usize] = key;
                self.places.set(*number, runs);
            }
        }
    }
}

impl MemberView for UnitView {
    fn places(&self) -> &MemberPlaces {
        &self.places
    }

    /// Pieces of a file that follow one another.
    fn are_in_sequence(&self, from: u32, to: u32) -> bool {
        self.keys[from as usize].wrapping_add(1) == self.keys[to as usize]
    }
}
