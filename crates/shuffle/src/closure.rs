//! Link closure: the run of quanta that is placed as a unit with a hot one.
//!
//! Rules of Ruemmler & Wilkes 1991, §5.6, for a quantum P reached from Q: P must point to Q; P has
//! at least half the accesses of Q, or the two already lie side by side; there is still space; P is
//! not yet placed. What the report leaves open, and our reading:
//!
//! * *Which pointer.* P reached by the forward pointer of Q must have Q as its backward pointer,
//!   and the reverse: both ends of figure 13's link agree.
//! * *Who is Q.* The quantum that P was reached from, not the one the closure began with: chains of
//!   1863 quanta, as the report found, cannot all point to one seed.
//! * *Order.* The closure keeps the order of the links: what was accessed first lies lowest, on
//!   either side of the pipe, so that following the chain runs forward over the tracks.
//! * *Side.* The whole closure goes to the side whose next free slot is nearer the centre; a
//!   closure is never split across the centre, which is what it is for.
//! * *Interleave.* With a factor f, successive members lie f slots apart (the next free slot from
//!   there on); the slots between are filled by what is placed later.

use crate::ShuffleView;
use crate::paged::Paged;
use crate::placement::Arrangement;

/// Places quanta outward from the centre, one unit of linked quanta after the other.
pub(crate) struct UnitPlacer<'a> {
    arrangement: Arrangement<'a>,
    center: u32,
    interleave: u32,
    /// Next free slot at or above the centre; the number of slots if there is none.
    above: u32,
    /// One past the next free slot below the centre; zero if there is none.
    below: u32,
    free_above: u32,
    free_below: u32,
    slot_count: u32,
}

impl<'a> UnitPlacer<'a> {
    pub(crate) fn new(view: &ShuffleView<'a>, center: u32, interleave: u32) -> Self {
        let slot_count = view.table.grid().slots();
        Self {
            arrangement: Arrangement::new(view.table),
            center,
            interleave: interleave.max(1),
            above: center,
            below: center,
            free_above: slot_count - center,
            free_below: center,
            slot_count,
        }
    }

    pub(crate) fn is_placed(&self, quantum: u32) -> bool {
        self.arrangement.is_placed(quantum)
    }

    /// The largest unit for which there is still space.
    pub(crate) fn space(&self) -> u32 {
        self.free_above.max(self.free_below)
    }

    /// Places `unit`, in order, on the nearer side that holds it.
    pub(crate) fn place(&mut self, unit: &[u32], positions: &mut Vec<u32>) {
        let size = unit.len() as u32;
        assert!(size <= self.space(), "a unit of {size} quanta in {} slots", self.space());
        let above_distance = self.above - self.center;
        let below_distance = self.center - self.below + 1;
        let prefer_above = above_distance <= below_distance;
        let goes_above =
            if prefer_above { self.free_above >= size } else { self.free_below < size };
        positions.clear();
        if goes_above {
            self.positions_above(size, positions);
            self.free_above -= size;
        } else {
            self.positions_below(size, positions);
            self.free_below -= size;
        }
        // Interleaving may take a later member nearer the centre; the order on the platter is what
        // matters.
        positions.sort_unstable();
        for (quantum, slot) in unit.iter().zip(positions.iter()) {
            self.arrangement.assign(*quantum, *slot);
        }
        self.advance();
    }

    fn positions_above(&mut self, size: u32, positions: &mut Vec<u32>) {
        let mut wanted = self.above;
        for _ in 0..size {
            let free = |slot: &u32| !self.arrangement.is_taken(*slot);
            let slot = (wanted..self.slot_count)
                .find(free)
                .or_else(|| (self.above..self.slot_count).find(free))
                .expect("the caller counted the free slots above the centre");
            self.arrangement.reserve(slot);
            positions.push(slot);
            wanted = slot.saturating_add(self.interleave);
        }
    }

    fn positions_below(&mut self, size: u32, positions: &mut Vec<u32>) {
        let mut wanted_end = self.below;
        for _ in 0..size {
            let free = |slot: &u32| !self.arrangement.is_taken(*slot);
            let slot = (0..wanted_end)
                .rev()
                .find(free)
                .or_else(|| (0..self.below).rev().find(free))
                .expect("the caller counted the free slots below the centre");
            self.arrangement.reserve(slot);
            positions.push(slot);
            wanted_end = (slot + 1).saturating_sub(self.interleave);
        }
    }

    fn advance(&mut self) {
        while self.above < self.slot_count && self.arrangement.is_taken(self.above) {
            self.above += 1;
        }
        while self.below > 0 && self.arrangement.is_taken(self.below - 1) {
            self.below -= 1;
        }
    }

    pub(crate) fn finish(self) -> Arrangement<'a> {
        self.arrangement
    }
}

/// Collects closures; keeps its working memory between them.
pub(crate) struct ClosureFinder {
    /// Which closure a quantum was last taken into, so that a ring of links ends.
    member_of: Paged<u32>,
    closure: u32,
    before: Vec<u32>,
}

impl ClosureFinder {
    pub(crate) fn new(quanta: u32) -> Self {
        Self { member_of: Paged::new(quanta), closure: 0, before: Vec::new() }
    }

    /// Fills `unit` with the closure of `seed`, in link order, at most `space` quanta.
    pub(crate) fn collect(
        &mut self,
        seed: u32,
        view: &ShuffleView<'_>,
        placer: &UnitPlacer<'_>,
        unit: &mut Vec<u32>,
    ) {
        let seen = view.seen;
        self.closure += 1;
        self.member_of.set(seed, self.closure);
        let space = placer.space() as usize;
        unit.clear();
        unit.push(seed);
        let mut last = seed;
        while unit.len() < space {
            let candidate = seen.forward(last).filter(|p| seen.backward(*p) == Some(last));
            let Some(next) = candidate.filter(|p| self.joins(*p, last, view, placer)) else {
                break;
            };
            self.member_of.set(next, self.closure);
            unit.push(next);
            last = next;
        }
        self.before.clear();
        let mut first = seed;
        while unit.len() + self.before.len() < space {
            let candidate = seen.backward(first).filter(|p| seen.forward(*p) == Some(first));
            let Some(next) = candidate.filter(|p| self.joins(*p, first, view, placer)) else {
                break;
            };
            self.member_of.set(next, self.closure);
            self.before.push(next);
            first = next;
        }
        unit.splice(0..0, self.before.iter().rev().copied());
    }

    fn joins(&self, p: u32, q: u32, view: &ShuffleView<'_>, placer: &UnitPlacer<'_>) -> bool {
        let busy_enough = 2 * view.seen.aged(p) >= view.seen.aged(q);
        let side_by_side = view.table.slot_of(p).abs_diff(view.table.slot_of(q)) == 1;
        (busy_enough || side_by_side)
            && !placer.is_placed(p)
            && self.member_of.get(p) != self.closure
    }
}
