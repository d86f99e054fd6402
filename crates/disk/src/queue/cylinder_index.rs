//! Waiting requests bucketed by cylinder, those of a cylinder in order of their sequence numbers, with the nearest
//! non-empty bucket in a few word operations.
//!
//! Entries live in a slab; each cylinder heads a doubly linked list through it. A bit per cylinder says whether its
//! list holds anything, a bit per word of those says whether the word is non-zero, and so on: with 64 bits a word three
//! levels cover 262,144 cylinders. Push, take and neighbour search touch one word a level, whatever the queue's length.
//!
//! Invariants: a cylinder's bit is set exactly when its list is not empty, a summary bit exactly when its word is not
//! zero; every slab slot is either on one list or on the free list.

use super::QueueEntry;

/// "No slot": ends lists.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Bucket {
    first: u32,
    last: u32,
}

const EMPTY: Bucket = Bucket { first: NONE, last: NONE };

#[derive(Debug, Clone, Copy)]
struct Slot {
    entry: QueueEntry,
    previous: u32,
    next: u32,
}

/// The slot of an entry; valid until that entry is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Handle(u32);

#[derive(Debug, Clone)]
pub(super) struct CylinderIndex {
    slots: Vec<Slot>,
    /// First free slot; free slots are chained through `next`.
    free: u32,
    length: usize,
    buckets: Vec<Bucket>,
    occupied: BitLevels,
}

impl Default for CylinderIndex {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: NONE,
            length: 0,
            buckets: Vec::new(),
            occupied: BitLevels::default(),
        }
    }
}

impl CylinderIndex {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn push(&mut self, entry: QueueEntry) {
        let cylinder = entry.cylinder as usize;
        if cylinder >= self.buckets.len() {
            self.buckets.resize(cylinder + 1, EMPTY);
            self.occupied.grow(cylinder + 1);
        }
        // Walks back from the end: entries that come in order are appended at once.
        let mut next = NONE;
        let mut previous = self.buckets[cylinder].last;
        while previous != NONE && self.slots[previous as usize].entry.sequence > entry.sequence {
            next = previous;
            previous = self.slots[previous as usize].previous;
        }
        let place = self.store(Slot { entry, previous, next });
        match previous {
            NONE => self.buckets[cylinder].first = place,
            slot => self.slots[slot as usize].next = place,
        }
        match next {
            NONE => self.buckets[cylinder].last = place,
            slot => self.slots[slot as usize].previous = place,
        }
        self.occupied.set(cylinder);
        self.length += 1;
    }

    fn store(&mut self, slot: Slot) -> u32 {
        if self.free == NONE {
            let place = u32::try_from(self.slots.len()).expect("fewer than 2^32 waiting requests");
            assert!(place != NONE, "the queue holds {place} requests");
            self.slots.push(slot);
            return place;
        }
        let place = self.free;
        self.free = self.slots[place as usize].next;
        self.slots[place as usize] = slot;
        place
    }

    /// The entry in a slot.
    pub(super) fn entry(&self, handle: Handle) -> &QueueEntry {
        &self.slots[handle.0 as usize].entry
    }

    /// Takes an entry out.
    pub(super) fn take(&mut self, handle: Handle) -> QueueEntry {
        let Slot { entry, previous, next } = self.slots[handle.0 as usize];
        let cylinder = entry.cylinder as usize;
        match previous {
            NONE => self.buckets[cylinder].first = next,
            slot => self.slots[slot as usize].next = next,
        }
        match next {
            NONE => self.buckets[cylinder].last = previous,
            slot => self.slots[slot as usize].previous = previous,
        }
        if self.buckets[cylinder].first == NONE {
            self.occupied.clear(cylinder);
        }
        self.slots[handle.0 as usize].next = self.free;
        self.free = handle.0;
        self.length -= 1;
        entry
    }

    /// First entry of the lowest occupied cylinder at or above `cylinder`.
    pub(super) fn at_or_above(&self, cylinder: u32) -> Option<Handle> {
        self.occupied.at_or_above(cylinder as usize).map(|found| self.first(found))
    }

    /// First entry of the highest occupied cylinder at or below `cylinder`.
    pub(super) fn at_or_below(&self, cylinder: u32) -> Option<Handle> {
        self.occupied.at_or_below(cylinder as usize).map(|found| self.first(found))
    }

    /// The entries of `cylinder`, in order of their sequence numbers.
    pub(super) fn on(&self, cylinder: u32) -> impl Iterator<Item = Handle> + '_ {
        let first = self.buckets.get(cylinder as usize).map_or(NONE, |bucket| bucket.first);
        let next = |handle: &Handle| self.slots[handle.0 as usize].next;
        let handle = |slot: u32| (slot != NONE).then_some(Handle(slot));
        std::iter::successors(handle(first), move |before| handle(next(before)))
    }

    fn first(&self, cylinder: usize) -> Handle {
        Handle(self.buckets[cylinder].first)
    }
}

/// A set of small integers as a pyramid of bit words.
#[derive(Debug, Clone, Default)]
struct BitLevels {
    /// `levels[0]` has a bit per member; a bit of `levels[n + 1]` says whether a word of `levels[n]` is non-zero.
    /// The last level is one word.
    levels: Vec<Vec<u64>>,
}

impl BitLevels {
    /// Makes room for members below `size`.
    fn grow(&mut self, size: usize) {
        let mut words = size.div_ceil(64);
        let mut level = 0;
        loop {
            if level == self.levels.len() {
                self.levels.push(Vec::new());
                // The level below had a single word until now; its summary starts from what that word says.
                let below_occupied = level > 0 && self.levels[level - 1][0] != 0;
                self.levels[level].push(u64::from(below_occupied));
            }
            if self.levels[level].len() < words {
                self.levels[level].resize(words, 0);
            }
            if words == 1 && level + 1 >= self.levels.len() {
                return;
            }
            words = words.div_ceil(64);
            level += 1;
        }
    }

    fn set(&mut self, mut member: usize) {
        for level in &mut self.levels {
            let word = &mut level[member / 64];
            let was = *word;
            *word |= 1 << (member % 64);
            if was != 0 {
                return;
            }
            member /= 64;
        }
    }

    fn clear(&mut self, mut member: usize) {
        for level in &mut self.levels {
            let word = &mut level[member / 64];
            *word &= !(1 << (member % 64));
            if *word != 0 {
                return;
            }
            member /= 64;
        }
    }

    fn at_or_above(&self, member: usize) -> Option<usize> {
        let mut from = member;
        for (depth, level) in self.levels.iter().enumerate() {
            let word = *level.get(from / 64)? & (u64::MAX << (from % 64));
            if word != 0 {
                let found = from / 64 * 64 + word.trailing_zeros() as usize;
                return Some(self.descend(depth, found, u64::trailing_zeros));
            }
            from = from / 64 + 1;
        }
        None
    }

    fn at_or_below(&self, member: usize) -> Option<usize> {
        let highest = self.levels.first()?.len() * 64 - 1;
        let mut from = member.min(highest);
        for (depth, level) in self.levels.iter().enumerate() {
            let word = level[from / 64] & (u64::MAX >> (63 - from % 64));
            if word != 0 {
                let found = from / 64 * 64 + last_bit(word) as usize;
                return Some(self.descend(depth, found, last_bit));
            }
            from = (from / 64).checked_sub(1)?;
        }
        None
    }

    /// From a member of level `depth` to the member of level 0 that `pick` leads to.
    fn descend(&self, depth: usize, mut member: usize, pick: fn(u64) -> u32) -> usize {
        for level in self.levels[..depth].iter().rev() {
            member = member * 64 + pick(level[member]) as usize;
        }
        member
    }
}

/// The highest set bit of a word that is not zero.
fn last_bit(word: u64) -> u32 {
    word.ilog2()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::BitLevels;

    proptest! {
        #[test]
        fn the_pyramid_agrees_with_a_sorted_set(
            steps in proptest::collection::vec((any::<bool>(), 0usize..300_000, 0usize..310_000), 1..200),
        ) {
            let mut pyramid = BitLevels::default();
            let mut reference = BTreeSet::new();
            let mut size = 0;
            for (insert, member, probe) in steps {
                if insert {
                    size = size.max(member + 1);
                    pyramid.grow(size);
                    pyramid.set(member);
                    reference.insert(member);
                } else if let Some(&found) = reference.range(member..).next() {
                    pyramid.clear(found);
                    reference.remove(&found);
                }
                prop_assert_eq!(
                    pyramid.at_or_above(probe),
                    reference.range(probe..).next().copied()
                );
                prop_assert_eq!(
                    pyramid.at_or_below(probe),
                    reference.range(..=probe).next_back().copied()
                );
            }
        }
    }
}
