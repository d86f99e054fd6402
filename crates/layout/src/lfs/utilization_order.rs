//! Segments in the order of their live blocks, kept by counting.
//!
//! `order` holds segments sorted by live count and `starts[c]` the place of the first with `c` live
//! blocks or more, so that one block more or less moves a segment to the edge of its run and moves
//! the edge: two swaps, no search. Choosing the emptiest or the fullest is one look.
//!
//! Invariants: `starts` does not fall; `order[starts[c]..starts[c + 1]]` are the segments with `c`
//! live; `place[order[i]] == i`.
//!
//! Cost: O(1) for each block that dies, O(segment blocks) for a segment that comes or goes, which
//! is paid for by the blocks written into it.

const ABSENT: u32 = u32::MAX;

/// Segments by live blocks.
#[derive(Debug, Clone)]
pub(crate) struct UtilizationOrder {
    order: Vec<u32>,
    starts: Vec<u32>,
    first_segment: u32,
    place: Vec<u32>,
    live: Vec<u32>,
}

impl UtilizationOrder {
    /// None of the segments of `range`, each of `segment_blocks`, is in the order yet.
    pub(crate) fn new(range: std::ops::Range<u32>, segment_blocks: u32) -> Self {
        let segments = (range.end - range.start) as usize;
        Self {
            order: Vec::with_capacity(segments),
            starts: vec![0; segment_blocks as usize + 2],
            first_segment: range.start,
            place: vec![ABSENT; segments],
            live: vec![0; segments],
        }
    }

    /// Segments in the order.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Blocks in each of its segments.
    pub(crate) fn segment_blocks(&self) -> u32 {
        self.starts.len() as u32 - 2
    }

    /// The segment at `place`, emptiest first.
    pub(crate) fn at(&self, place: usize) -> u32 {
        self.order[place]
    }

    /// The emptiest segment and its live blocks.
    pub(crate) fn emptiest(&self) -> Option<(u32, u32)> {
        self.order.first().map(|segment| (*segment, self.live[self.index(*segment)]))
    }

    /// The fullest segment that still has a hole.
    pub(crate) fn fullest_with_hole(&self) -> Option<u32> {
        let full = self.starts[self.starts.len() - 2] as usize;
        full.checked_sub(1).map(|place| self.order[place])
    }

    /// Whether `segment` is in the order.
    pub(crate) fn contains(&self, segment: u32) -> bool {
        let index = segment.wrapping_sub(self.first_segment) as usize;
        self.place.get(index).is_some_and(|place| *place != ABSENT)
    }

    /// Live blocks of `segment` as the order knows it.
    pub(crate) fn live(&self, segment: u32) -> u32 {
        self.live[self.index(segment)]
    }

    /// Adds `segment`.
    pub(crate) fn insert(&mut self, segment: u32, live: u32) {
        let index = self.index(segment);
        debug_assert_eq!(self.place[index], ABSENT, "segment {segment} is in the order already");
        // It comes in behind the fullest and walks down to its run.
        let last = self.starts.len() - 1;
        self.place[index] = self.order.len() as u32;
        self.order.push(segment);
        self.starts[last] += 1;
        self.live[index] = last as u32 - 1;
        self.fall(segment, live);
    }

    /// Takes `segment` out.
    pub(crate) fn remove(&mut self, segment: u32) {
        let last = self.starts.len() as u32 - 2;
        self.rise(segment, last);
        let index = self.index(segment);
        let (place, end) = (self.place[index] as usize, self.order.len() - 1);
        self.swap(place, end);
        self.order.pop();
        self.starts[last as usize + 1] -= 1;
        self.place[index] = ABSENT;
    }

    /// Tells that `segment` has `live` blocks now.
    #[inline]
    pub(crate) fn update(&mut self, segment: u32, live: u32) {
        if live < self.live[self.index(segment)] {
            self.fall(segment, live);
        } else {
            self.rise(segment, live);
        }
    }

    #[inline]
    fn fall(&mut self, segment: u32, live: u32) {
        let index = self.index(segment);
        while self.live[index] > live {
            let run = self.live[index] as usize;
            let edge = self.starts[run];
            self.swap(self.place[index] as usize, edge as usize);
            self.starts[run] = edge + 1;
            self.live[index] -= 1;
        }
    }

    #[inline]
    fn rise(&mut self, segment: u32, live: u32) {
        let index = self.index(segment);
        while self.live[index] < live {
            let run = self.live[index] as usize + 1;
            let edge = self.starts[run] - 1;
            self.swap(self.place[index] as usize, edge as usize);
            self.starts[run] = edge;
            self.live[index] += 1;
        }
    }

    #[inline]
    fn swap(&mut self, left: usize, right: usize) {
        let (one, other) = (self.order[left], self.order[right]);
        self.order[left] = other;
        self.order[right] = one;
        let (one, other) = (self.index(one), self.index(other));
        self.place[one] = right as u32;
        self.place[other] = left as u32;
    }

    #[inline]
    fn index(&self, segment: u32) -> usize {
        (segment - self.first_segment) as usize
    }

    /// Checks the invariants.
    pub(crate) fn verify(&self) {
        assert!(self.starts.is_sorted(), "edges out of order");
        assert_eq!(self.starts[self.starts.len() - 1] as usize, self.order.len());
        for (place, segment) in self.order.iter().enumerate() {
            let index = self.index(*segment);
            assert_eq!(self.place[index] as usize, place);
            let live = self.live[index] as usize;
            let run = self.starts[live] as usize..self.starts[live + 1] as usize;
            assert!(run.contains(&place), "segment {segment} of {live} live stands at {place}");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_a_sorted_list_that_follows_every_change(
            changes in prop::collection::vec((0_u32..12, 0_u32..6, any::<bool>()), 1..200),
        ) {
            let mut order = UtilizationOrder::new(3..15, 5);
            let mut slow: Vec<Option<u32>> = vec![None; 12];
            for (segment, live, leave) in changes {
                let known = &mut slow[segment as usize];
                match (*known, leave) {
                    (None, _) => {
                        order.insert(segment + 3, live);
                        *known = Some(live);
                    }
                    (Some(_), true) => {
                        order.remove(segment + 3);
                        *known = None;
                    }
                    (Some(_), false) => {
                        order.update(segment + 3, live);
                        *known = Some(live);
                    }
                }
                order.verify();
                let least = slow.iter().flatten().min().copied();
                prop_assert_eq!(order.emptiest().map(|(_, live)| live), least);
                let fullest = slow.iter().flatten().filter(|live| **live < 5).max().copied();
                let found = order.fullest_with_hole();
                prop_assert_eq!(found.map(|segment| order.live(segment)), fullest);
                prop_assert_eq!(order.len(), slow.iter().flatten().count());
            }
        }
    }
}
