//! The owner and the live bit of every slot, and the state of every segment.
//!
//! Invariants: a slot's live bit is set from when data is written to it until the map on disk names
//! another place for that data; `live[s]` counts the bits of segment `s`,
//! `live_slots` those of all; a free segment has none.

use std::panic::resume_unwind;

use super::LogShape;
use super::RestoreError;
use super::buffers::Waiting;

pub(crate) use super::shape::NONE;

/// The use of a segment.
///
/// A number rather than an enumeration, so that a death can go from [`State::SEALED`] to
/// [`State::CHANGED`] by an addition, or stay, without a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State(u8);

impl State {
    /// Holds nothing that anyone needs.
    pub(crate) const FREE: Self = Self(0);
    /// Takes blocks.
    pub(crate) const OPEN: Self = Self(1);
    /// Taken out of the index; free as soon as its last live block has moved.
    pub(crate) const COLLECTING: Self = Self(2);
    /// Full; the index of victims knows how many of its blocks are live, or that they are more than
    /// it needs to know.
    pub(crate) const SEALED: Self = Self(3);
    /// Full; its count has changed since the index looked, and is one that it needs to know.
    pub(crate) const CHANGED: Self = Self(4);

    /// The next state of a sealed segment, by `has_changed`.
    #[inline]
    pub(crate) fn or_changed(self, has_changed: bool) -> Self {
        debug_assert!(self == Self::SEALED || !has_changed, "only a sealed segment changes");
        Self(self.0.wrapping_add(u8::from(has_changed)))
    }

    /// Whether it is full and may be collected.
    pub(crate) fn is_full(self) -> bool {
        self == Self::SEALED || self == Self::CHANGED
    }
}

/// Slots and segments.
#[derive(Debug, Clone)]
pub(crate) struct SegmentTable {
    pub(crate) shape: LogShape,
    /// The block last written to each slot.
    pub(crate) owner: Vec<u32>,
    pub(super) live_bits: Vec<u64>,
    /// Live blocks of all segments.
    pub(super) live_slots: u64,
    /// Live blocks of each segment.
    pub(crate) live: Vec<u32>,
    /// State of each segment.
    pub(crate) state: Vec<State>,
    /// The log that wrote each segment.
    pub(crate) log: Vec<u8>,
    /// Clock when each segment's first block was written.
    pub(crate) opened: Vec<u64>,
    /// Clock when each segment was full.
    pub(crate) sealed: Vec<u64>,
    /// Clock when the youngest data of each segment was new.
    pub(crate) youngest: Vec<u64>,
    /// Slots of each segment that were left without a block as it was written. Of segments that were
    /// written before the log was opened none are known.
    pub(crate) left: Vec<u32>,
}

impl SegmentTable {
    pub(crate) fn new(shape: &LogShape) -> Self {
        Self::with(shape, vec![NONE; shape.slots() as usize])
    }

    /// With these owners, none of which is alive.
    fn with(shape: &LogShape, owner: Vec<u32>) -> Self {
        let (segments, slots) = (shape.segments() as usize, shape.slots() as usize);
        Self {
            shape: shape.clone(),
            owner,
            live_bits: vec![0; slots.div_ceil(64)],
            live_slots: 0,
            live: vec![0; segments],
            state: vec![State::FREE; segments],
            log: vec![0; segments],
            opened: vec![0; segments],
            sealed: vec![0; segments],
            youngest: vec![0; segments],
            left: vec![0; segments],
        }
    }

    /// Bytes that slots and segments take.
    pub(crate) fn memory_bytes(&self) -> usize {
        let slots = self.owner.capacity() * 4 + self.live_bits.capacity() * 8;
        // Live blocks, slots left, state, log and three clocks.
        slots + self.live.capacity() * (4 + 4 + 1 + 1 + 3 * 8)
    }

    /// Whether the block in `slot` is live.
    #[inline]
    pub(crate) fn is_live(&self, slot: u32) -> bool {
        self.live_bits[(slot / 64) as usize] >> (slot % 64) & 1 == 1
    }

    /// Puts `block` into `slot` of `segment`.
    #[inline]
    pub(crate) fn fill(&mut self, segment: u32, slot: u32, block: u32) {
        debug_assert!(!self.is_live(slot), "slot {slot} is live already");
        self.owner[slot as usize] = block;
        self.live_bits[(slot / 64) as usize] |= 1 << (slot % 64);
        self.live[segment as usize] += 1;
        self.live_slots += 1;
    }

    /// The table of a log whose blocks lie where `map` says, all segments of which are free yet but for
    /// their counts; and how many blocks there are.
    pub(crate) fn restore(shape: &LogShape, map: &[u32]) -> Result<(Self, u64), RestoreError> {
        // Memory that the kernel makes where it is touched first, by the thread that fills it.
        let mut table = Self::with(shape, vec![0; shape.slots() as usize]);
        // Slots in two halves at the border of a word of bits: neighbours in the map lie far from one
        // another, so it is memory that is waited for, and two threads wait half as long.
        let words = if map.len() < RESTORED_ALONE { 0 } else { table.live_bits.len() / 2 };
        let (low_bits, high_bits) = table.live_bits.split_at_mut(words);
        let (low, high) = table.owner.split_at_mut(words * 64);
        let restored = std::thread::scope(|scope| {
            let low = (words > 0).then(|| scope.spawn(|| restore_half(0, low, low_bits, map)));
            let high = restore_half(words as u32 * 64, high, high_bits, map);
            let low = low
                .map_or((0, 0, 0), |low| low.join().unwrap_or_else(|panic| resume_unwind(panic)));
            // Both have gone through all of the map.
            ((low.0 + high.0, low.1 + high.1), high.2)
        });
        let (restored, exist) = restored;
        if restored != (exist, exist) {
            return Err(table.contradiction(map));
        }
        table.live_slots = exist;
        for segment in 0..shape.segments() {
            let (first, end) = table.bounds(segment);
            table.live[segment as usize] = table.live_in(first, end);
        }
        Ok((table, exist))
    }

    /// What is wrong with `map`, of which a block lies outside or two lie in one slot.
    fn contradiction(&mut self, map: &[u32]) -> RestoreError {
        self.owner.fill(NONE);
        for (block, slot) in (0..).zip(map).filter(|(_, slot)| **slot != NONE) {
            let Some(owner) = self.owner.get_mut(*slot as usize) else {
                return RestoreError::Outside { block, slot: *slot };
            };
            let other = std::mem::replace(owner, block);
            if other != NONE {
                return RestoreError::Twice { block, other, slot: *slot };
            }
        }
        unreachable!("a block is outside, or two are in a slot");
    }

    /// Live blocks in the slots from `first` to before `end`.
    pub(crate) fn live_in(&self, first: u32, end: u32) -> u32 {
        let (mut slot, mut live) = (first, 0);
        while slot < end {
            let (bits, next) = self.live_word(slot, end);
            live += bits.count_ones();
            slot = next;
        }
        live
    }

    /// Puts `blocks` into the slots of `segment` from `first` on.
    #[inline]
    pub(crate) fn fill_run(
        &mut self,
        segment: u32,
        first: u32,
        blocks: impl ExactSizeIterator<Item = u32>,
    ) {
        let (count, end) = (blocks.len() as u32, first + blocks.len() as u32);
        for (owner, block) in self.owner[first as usize..end as usize].iter_mut().zip(blocks) {
            *owner = block;
        }
        let mut slot = first;
        while slot < end {
            // As many bits as there are of this word and of the run.
            let bits = (64 - slot % 64).min(end - slot);
            let mask = (u64::MAX >> (64 - bits)) << (slot % 64);
            debug_assert_eq!(self.live_bits[(slot / 64) as usize] & mask, 0, "live already");
            self.live_bits[(slot / 64) as usize] |= mask;
            slot += bits;
        }
        self.live[segment as usize] += count;
        self.live_slots += u64::from(count);
    }

    /// The block in `slot` is dead; its segment's count is the caller's to change.
    #[inline]
    pub(super) fn clear_bit(&mut self, slot: u32) {
        debug_assert!(self.is_live(slot), "slot {slot} is dead already");
        self.live_bits[(slot / 64) as usize] &= !(1 << (slot % 64));
    }

    /// The same for the places that `waiting` blocks have on disk, with the segment of each.
    #[inline(never)]
    pub(super) fn segments_left(&mut self, waiting: &[Waiting], segments: &mut Vec<u32>) {
        let (bits, segment_of) = (self.live_bits.as_mut_slice(), self.shape.segment_of_slots());
        let old = waiting.iter().map(|waiting| waiting.old).filter(|slot| *slot != NONE);
        for slot in old.clone() {
            bits[(slot / 64) as usize] &= !(1 << (slot % 64));
        }
        segments.extend(old.map(|slot| segment_of.of(slot)));
    }

    /// The slots whose bits in word `word` are set in `mask` are dead.
    #[inline]
    fn clear_word(&mut self, word: u32, mask: u64) {
        debug_assert_eq!(self.live_bits[word as usize] & mask, mask, "dead already");
        self.live_bits[word as usize] &= !mask;
    }

    /// The blocks in `slots`, which are distinct and all in `segment`, are dead; returns the live
    /// blocks that are left. Slots that follow one another in a word of bits are cleared at once.
    #[inline]
    pub(crate) fn clear_all(
        &mut self,
        segment: u32,
        slots: impl ExactSizeIterator<Item = u32>,
    ) -> u32 {
        let (count, mut word, mut mask) = (slots.len() as u32, 0, 0_u64);
        for slot in slots {
            if slot / 64 != word {
                self.clear_word(word, mask);
                (word, mask) = (slot / 64, 0);
            }
            mask |= 1 << (slot % 64);
        }
        self.clear_word(word, mask);
        self.live_slots -= u64::from(count);
        let live = &mut self.live[segment as usize];
        *live -= count;
        *live
    }

    /// All that is live from slot `first` to `last` of `segment`, which is `count` blocks, is dead;
    /// the live blocks that are left.
    pub(crate) fn clear_between(&mut self, segment: u32, first: u32, last: u32, count: u32) -> u32 {
        let mut cleared = 0;
        for word in first / 64..=last / 64 {
            let from = first.max(word * 64) % 64;
            let to = last.min(word * 64 + 63) % 64;
            let mask = (u64::MAX << from) & (u64::MAX >> (63 - to));
            let bits = &mut self.live_bits[word as usize];
            cleared += (*bits & mask).count_ones();
            *bits &= !mask;
        }
        assert_eq!(cleared, count, "live blocks of segment {segment} in slots {first} to {last}");
        self.live_slots -= u64::from(count);
        let live = &mut self.live[segment as usize];
        *live -= count;
        *live
    }

    /// The live bits of the slots from `slot` on that share its word and come before `end`, the
    /// lowest for `slot` itself; and the slot after those.
    #[inline]
    pub(crate) fn live_word(&self, slot: u32, end: u32) -> (u64, u32) {
        let count = (64 - slot % 64).min(end - slot);
        let bits = self.live_bits[(slot / 64) as usize] >> (slot % 64);
        (bits & (u64::MAX >> (64 - count)), slot + count)
    }

    /// The first live slot from `slot` on, before `end`.
    #[inline]
    pub(crate) fn next_live(&self, slot: u32, end: u32) -> Option<u32> {
        self.next_bit(slot, end, 0)
    }

    /// The first hole from `slot` on, before `end`.
    #[inline]
    pub(crate) fn next_hole(&self, slot: u32, end: u32) -> Option<u32> {
        self.next_bit(slot, end, u64::MAX)
    }

    #[inline]
    fn next_bit(&self, slot: u32, end: u32, flip: u64) -> Option<u32> {
        let mut word = slot / 64;
        let mut bits = match self.live_bits.get(word as usize) {
            Some(bits) => (bits ^ flip) & (u64::MAX << (slot % 64)),
            None => return None,
        };
        while bits == 0 {
            word += 1;
            if word * 64 >= end {
                return None;
            }
            bits = self.live_bits[word as usize] ^ flip;
        }
        let found = word * 64 + bits.trailing_zeros();
        (found < end).then_some(found)
    }

    /// First slot and the one after the last of `segment`.
    #[inline]
    pub(crate) fn bounds(&self, segment: u32) -> (u32, u32) {
        let first = self.shape.first_slot(segment);
        (first, first + self.shape.segment_blocks(segment))
    }

    /// Blocks that were put into a full segment: at least those that live, also where holes were filled.
    pub(crate) fn filled(&self, segment: u32) -> u32 {
        let filled = self.shape.segment_blocks(segment) - self.left[segment as usize];
        filled.max(self.live[segment as usize])
    }

    /// Dead blocks of a full segment.
    #[inline]
    pub(crate) fn dead(&self, segment: u32) -> u32 {
        self.shape.segment_blocks(segment) - self.live[segment as usize]
    }
}

/// Blocks that one thread puts into their slots as fast as two; chosen by us: some milliseconds.
const RESTORED_ALONE: usize = 1 << 18;

/// Puts the blocks of `map` that lie in the slots from `first` on into them, and sets the bits of slots that
/// have one: blocks that were put somewhere, slots that have one, and blocks of the map that exist.
fn restore_half(
    first: u32,
    owner: &mut [u32],
    live_bits: &mut [u64],
    map: &[u32],
) -> (u64, u64, u64) {
    owner.fill(NONE);
    let (mut put, mut exist, mut elsewhere) = (0_u32, 0_u32, NONE);
    for (block, slot) in (0..).zip(map) {
        let at = slot.wrapping_sub(first) as usize;
        let is_here = at < owner.len();
        // No branch: which half a block lies in nobody can foretell. There are fewer than 2^32 blocks.
        *if is_here { &mut owner[at] } else { &mut elsewhere } = block;
        put = put.wrapping_add(u32::from(is_here));
        exist = exist.wrapping_add(u32::from(*slot != NONE));
    }
    let mut live = 0_u64;
    for (bits, owners) in live_bits.iter_mut().zip(owner.chunks(64)) {
        let bit = |at: usize, owner: &u32| u64::from(*owner != NONE) << at;
        *bits = (0..).zip(owners).fold(0, |bits, (at, owner)| bits | bit(at, owner));
        live += u64::from(bits.count_ones());
    }
    (u64::from(put), live, u64::from(exist))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_are_as_a_list_of_them_says(
            segment_blocks in 1_u32..200,
            first in 0_u32..200,
            count in 0_u32..200,
            cleared in prop::collection::vec(0_u32..200, 0..300),
            from in 0_u32..200,
        ) {
            let mut table = SegmentTable::new(&LogShape::uniform(3, segment_blocks).unwrap());
            let (base, end) = table.bounds(1);
            let first = base + first % segment_blocks;
            let run = first..end.min(first + count);
            table.fill_run(1, first, run.clone());
            let mut live: Vec<u32> = run.collect();
            for slot in cleared {
                let slot = base + slot % segment_blocks;
                if live.contains(&slot) {
                    live.retain(|other| *other != slot);
                    prop_assert_eq!(table.clear_all(1, [slot].into_iter()) as usize, live.len());
                }
            }
            for slot in base..end {
                prop_assert_eq!(table.is_live(slot), live.contains(&slot));
            }
            let from = base + from % segment_blocks;
            let after = |slot: &u32| *slot >= from;
            prop_assert_eq!(table.next_live(from, end), live.iter().copied().find(after));
            let hole = (from..end).find(|slot| !live.contains(slot));
            prop_assert_eq!(table.next_hole(from, end), hole);
            let (mut found, mut slot) = (Vec::new(), from);
            while slot < end {
                let (bits, next) = table.live_word(slot, end);
                found.extend((0..64).filter(|bit| bits >> bit & 1 == 1).map(|bit| slot + bit));
                slot = next;
            }
            live.retain(after);
            prop_assert_eq!(found, live.clone());
            prop_assert!(live.iter().all(|slot| table.owner[*slot as usize] == *slot));
        }
    }
}
