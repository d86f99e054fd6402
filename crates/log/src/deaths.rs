//! Blocks that die: how the counts of their segments and the index of victims follow.
//!
//! A death is a bit and a count of the segment that the block lay in. It is reported to the index
//! before the next choice, and only for segments whose count the index needs exactly
//! (`reported_below`). That is up to every fifth death, in no order, so nothing here branches on it: a
//! processor would predict it wrongly.
//!
//! A segment that loses its last live block is free at once.
//!
//! Cost: some 60 instructions a death, of which many go on at a time; the bit and the count are looked
//! up at random, in tables that fit the first cache for logs of up to 2^18 blocks.

use super::buffers::Waiting;
use super::log::Log;
use super::policy::placement::Placement;
use super::segment_table::{NONE, SegmentTable, State};

/// The counts that a death touches, each where a loop finds it at once.
struct Counted<'a> {
    live: &'a mut [u32],
    state: &'a mut [State],
    changed: &'a mut [u32],
    changed_count: usize,
    reported_below: u32,
}

impl Counted<'_> {
    /// A block of `segment` is dead; the live blocks that are left there.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call costs as much as the death")]
    fn die(&mut self, segment: u32) -> u32 {
        let live = &mut self.live[segment as usize];
        *live -= 1;
        let left = *live;
        let state = &mut self.state[segment as usize];
        // From 1 to below the limit.
        let is_reported = left.wrapping_sub(1) < self.reported_below.wrapping_sub(1);
        let has_changed = (*state == State::SEALED) & is_reported;
        *state = state.or_changed(has_changed);
        self.changed[self.changed_count] = segment;
        self.changed_count += usize::from(has_changed);
        left
    }
}

impl<P: Placement> Log<P> {
    /// Slots that are dead in full segments.
    pub(super) fn dead_sealed(&self) -> u64 {
        let open = self.open.iter().filter(|open| open.segment != NONE);
        let dead_open = open.map(|open| {
            let (first, _) = self.table.bounds(open.segment);
            u64::from(open.next - first - self.table.live[open.segment as usize])
        });
        self.written_slots - self.table.live_slots - dead_open.sum::<u64>()
    }

    /// The data in `slot` is not needed any more.
    #[inline]
    pub(crate) fn kill(&mut self, slot: u32) {
        let segment = self.table.shape.segment_of(slot);
        self.table.clear_bit(slot);
        let (mut counted, _) = self.counted(1);
        let left = counted.die(segment);
        self.changed.count = counted.changed_count;
        self.table.live_slots -= 1;
        if left == 0 {
            self.lost_its_last(segment);
        }
    }

    /// The counts, with room for `deaths` deaths, and the list of segments that lose their last
    /// block. The caller stores the number of changed segments afterwards.
    #[inline]
    fn counted(&mut self, deaths: usize) -> (Counted<'_>, &mut Vec<u32>) {
        let Self { table, changed, reported_below, emptied, .. } = self;
        changed.reserve(deaths);
        let SegmentTable { live, state, .. } = table;
        let changed_count = changed.count;
        let changed = &mut changed.segments;
        (Counted { live, state, changed, changed_count, reported_below: *reported_below }, emptied)
    }

    /// Blocks that waited as `entries`, which are all there, lie in the slots from `first` on now,
    /// and their old places are dead. Three times through the entries, because a loop over all that
    /// this touches has more to keep than a processor has registers.
    pub(super) fn settle_run(&mut self, entries: std::ops::Range<usize>, first: u32) {
        let mut segments = std::mem::take(&mut self.left_segments);
        segments.clear();
        let waiting = &mut self.buffers.entries[entries];
        point_to(&mut self.map, waiting, first);
        self.table.segments_left(waiting, &mut segments);
        for waiting in &mut *waiting {
            waiting.block = NONE;
        }
        let (mut counted, emptied) = self.counted(segments.len());
        for segment in &segments {
            if counted.die(*segment) == 0 {
                note(emptied, *segment);
            }
        }
        self.changed.count = counted.changed_count;
        self.table.live_slots -= segments.len() as u64;
        self.left_segments = segments;
        let mut emptied = std::mem::take(&mut self.emptied);
        emptied.drain(..).for_each(|segment| self.lost_its_last(segment));
        self.emptied = emptied;
    }

    /// `segment` has no live block any more.
    #[cold]
    #[inline(never)]
    fn lost_its_last(&mut self, segment: u32) {
        match self.table.state[segment as usize] {
            State::SEALED | State::CHANGED => {
                let zone = self.table.shape.zone_of(segment);
                self.index.remove(segment, zone);
                self.counts.segments_emptied += 1;
                self.release(segment);
            }
            State::COLLECTING => self.release(segment),
            State::OPEN => {}
            _ => unreachable!("a block died in a free segment"),
        }
    }

    pub(crate) fn release(&mut self, segment: u32) {
        self.written_slots -= u64::from(self.table.shape.segment_blocks(segment));
        self.table.state[segment as usize] = State::FREE;
        self.pending_discards.died(segment);
        self.placement.freed(segment);
        self.free[self.table.shape.zone_of(segment)].push_back(segment);
    }
}

/// Apart, so that a loop in which it hardly ever happens stays short.
#[cold]
#[inline(never)]
fn note(emptied: &mut Vec<u32>, segment: u32) {
    emptied.push(segment);
}

/// Notes in `map` that what waited lies in the slots from `first` on.
#[inline(never)]
fn point_to(map: &mut [u32], waiting: &[Waiting], first: u32) {
    let mut slot = first;
    for Waiting { block, .. } in waiting {
        map[*block as usize] = slot;
        slot = slot.wrapping_add(1);
    }
}
