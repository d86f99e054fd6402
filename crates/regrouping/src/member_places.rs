//! Where the members of a history lie.

use std::collections::BTreeMap;

use crate::StepView;
use crate::read_history::Run;

/// The runs of members by number, and who begins and ends where.
#[derive(Debug, Clone, Default)]
pub struct MemberPlaces {
    runs: Vec<Vec<Run>>,
    /// Members by the slot in which they begin, and by the one in which they end.
    begins: BTreeMap<u64, u32>,
    ends: BTreeMap<u64, u32>,
}

impl MemberPlaces {
    /// Of a history with numbers below `nodes`; nothing is known of any yet.
    #[must_use]
    pub fn new(nodes: u32) -> Self {
        Self { runs: vec![Vec::new(); nodes as usize], ..Self::default() }
    }

    /// The data of `number` lie in `runs`. Of one that the history does not know it is only remembered
    /// where it begins and ends.
    pub fn set(&mut self, number: u32, runs: Vec<Run>) {
        if let (Some(first), Some(last)) = (runs.first(), runs.last()) {
            self.begins.insert(first.slot, number);
            self.ends.insert(last.slot + last.slots - 1, number);
        }
        if let Some(known) = self.runs.get_mut(number as usize) {
            *known = runs;
        }
    }

    /// Where the data of a known member lie.
    #[must_use]
    pub fn runs(&self, number: u32) -> &[Run] {
        self.runs.get(number as usize).map_or(&[], |runs| runs)
    }
}

/// How many slots runs have.
#[must_use]
pub fn run_slots(runs: &[Run]) -> u32 {
    let slots: u64 = runs.iter().map(|run| run.slots).sum();
    u32::try_from(slots).unwrap_or(u32::MAX)
}

/// What tells one place of a member from another: FNV-1a of 64 bits.
#[must_use]
pub fn place_sum(runs: &[Run]) -> u64 {
    let words = runs.iter().flat_map(|run| [run.offset, run.slot, run.slots]);
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    words.flat_map(u64::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, step)
}

/// The members of a history, as what is decided about them sees them.
pub trait MemberView {
    /// Where they lie.
    fn places(&self) -> &MemberPlaces;

    /// As [`StepView::came_in_sequence`].
    fn are_in_sequence(&self, from: u32, to: u32) -> bool;
}

impl<V: MemberView> StepView for V {
    type Slot = u64;

    fn slot_of(&self, member: u32) -> Option<u64> {
        self.places().runs(member).first().map(|run| run.slot)
    }

    fn last_slot_of(&self, member: u32) -> Option<u64> {
        self.places().runs(member).last().map(|run| run.slot + run.slots - 1)
    }

    fn slots(&self, member: u32) -> u32 {
        run_slots(self.places().runs(member))
    }

    fn step_blocks(&self, slot: u64, next: u64) -> i64 {
        next.wrapping_sub(slot).cast_signed() - 1
    }

    fn block_before(&self, slot: u64) -> Option<u32> {
        self.places().ends.get(&slot.checked_sub(1)?).copied()
    }

    fn block_after(&self, slot: u64) -> Option<u32> {
        self.places().begins.get(&slot.checked_add(1)?).copied()
    }

    fn came_in_sequence(&self, from: u32, to: u32) -> bool {
        self.are_in_sequence(from, to)
    }
}
