//! Segments in the order of their live blocks, kept by counting.
//!
//! `order` holds segments sorted by live count and `starts[c]` the place of the first with `c` live
//! blocks or more, so that one block more or less moves a segment to the edge of its run and moves
//! the edge: two swaps, no search. Choosing the emptiest or the fullest is one look.
//!
//! A policy that only ever chooses the emptiest segment need not report deaths in fuller ones: all
//! segments with `exact_below` live blocks or more may stand in one run, whose order means nothing.
//! When no segment is left below the limit, the order is [rebuilt](UtilizationOrder::rebuild) with
//! a higher one, which a share of all segments is below: the rebuilding is paid for by the choices
//! that it allows.
//!
//! Invariants: `starts` does not fall; `order[starts[c]..starts[c + 1]]` are the segments with `c`
//! live; `place[order[i]] == i`; no count is above `exact_below`.
//!
//! Cost: O(1) for each block that dies below the limit; O(segment blocks) for a segment that comes
//! or goes, which is paid for by the blocks written into it.

const ABSENT: u32 = u32::MAX;

/// Segments by live blocks.
#[derive(Debug, Clone)]
pub(crate) struct UtilizationOrder {
    order: Vec<u32>,
    starts: Vec<u32>,
    first_segment: u32,
    place: Vec<u32>,
    /// Live blocks of each segment, or `exact_below` if it has more.
    live: Vec<u32>,
    segment_blocks: u32,
    exact_below: u32,
    only_emptiest: bool,
}

/// One in this number of segments is below the limit of exact counts after a rebuilding. Chosen by
/// us: with few segments below the limit few deaths need be reported, and a choice pays for 16
/// looks.
const SEGMENTS_FOR_ONE_BELOW: usize = 16;

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
            segment_blocks,
            exact_below: segment_blocks + 1,
            only_emptiest: false,
        }
    }

    /// Counts below this are exact if every death that leaves a segment below it is reported;
    /// fuller segments are not distinguished.
    pub(crate) fn exact_below(&self) -> u32 {
        self.exact_below
    }

    /// Whether only the emptiest segments are counted exactly.
    pub(crate) fn only_emptiest(&self) -> bool {
        self.only_emptiest
    }

    /// Whether no segment is below the limit of exact counts.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.emptiest().is_some_and(|(_, live)| live >= self.exact_below)
    }

    /// Counts all live blocks again, as `live` of each segment says, and keeps all of them exact
    /// from now on, or only those of the emptiest segments.
    pub(crate) fn rebuild(&mut self, only_emptiest: bool, live: impl Fn(u32) -> u32) {
        self.only_emptiest = only_emptiest;
        self.exact_below = self.segment_blocks + 1;
        if only_emptiest {
            let mut segments_with = vec![0_usize; self.exact_below as usize];
            self.order.iter().for_each(|segment| segments_with[live(*segment) as usize] += 1);
            let wanted = self.order.len() / SEGMENTS_FOR_ONE_BELOW + 1;
            let mut below = 0;
            let limit = segments_with.iter().position(|segments| {
                below += segments;
                below >= wanted
            });
            self.exact_below = limit.map_or(self.exact_below, |limit| limit as u32 + 1);
        }
        self.starts.clear();
        self.starts.resize(self.last_run() as usize + 2, 0);
        for segment in &self.order {
            let index = (segment - self.first_segment) as usize;
            self.live[index] = live(*segment).min(self.exact_below);
            self.starts[self.live[index] as usize + 1] += 1;
        }
        // Each run begins where the runs before it end. The limit's run is the last.
        let mut sum = 0;
        for start in &mut self.starts {
            sum += *start;
            *start = sum;
        }
        let mut next = self.starts.clone();
        let members = std::mem::take(&mut self.order);
        self.order = vec![ABSENT; members.len()];
        for segment in members {
            let index = self.index(segment);
            let place = &mut next[self.live[index] as usize];
            self.place[index] = *place;
            self.order[*place as usize] = segment;
            *place += 1;
        }
    }

    /// Segments in the order.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Blocks in each of its segments.
    pub(crate) fn segment_blocks(&self) -> u32 {
        self.segment_blocks
    }

    /// All segments, emptiest first as far as counts are exact.
    pub(crate) fn all(&self) -> &[u32] {
        &self.order
    }

    /// The segment at `place`, emptiest first.
    pub(crate) fn at(&self, place: usize) -> u32 {
        self.order[place]
    }

    /// The emptiest segment and its live blocks; if those are not below the limit of exact counts,
    /// nothing is known.
    pub(crate) fn emptiest(&self) -> Option<(u32, u32)> {
        self.order.first().map(|segment| (*segment, self.live[self.index(*segment)]))
    }

    /// All segments as empty as the emptiest.
    pub(crate) fn all_emptiest(&self) -> &[u32] {
        let live = self.emptiest().map_or(0, |(_, live)| live as usize);
        &self.order[self.starts[live] as usize..self.starts[live + 1] as usize]
    }

    /// The fullest segment that still has a hole.
    pub(crate) fn fullest_with_hole(&self) -> Option<u32> {
        debug_assert!(!self.only_emptiest, "full segments are not told apart");
        let full = self.starts[self.segment_blocks as usize] as usize;
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
        let last = self.last_run();
        self.place[index] = self.order.len() as u32;
        self.order.push(segment);
        self.starts[last as usize + 1] += 1;
        self.live[index] = last;
        self.fall(segment, live);
    }

    /// Takes `segment` out.
    pub(crate) fn remove(&mut self, segment: u32) {
        let last = self.last_run();
        self.rise(segment, last);
        let index = self.index(segment);
        let (place, end) = (self.place[index] as usize, self.order.len() - 1);
        self.swap(place, end);
        self.order.pop();
        self.starts[last as usize + 1] -= 1;
        self.place[index] = ABSENT;
    }

    /// Sets the live blocks of `segment` to `live`.
    #[inline]
    pub(crate) fn update(&mut self, segment: u32, live: u32) {
        let live = live.min(self.exact_below);
        if live < self.live[self.index(segment)] {
            self.fall(segment, live);
        } else {
            self.rise(segment, live);
        }
    }

    /// The highest count that a segment may have here.
    fn last_run(&self) -> u32 {
        self.exact_below.min(self.segment_blocks)
    }

    /// `segment` goes down to the run of `live`. It is written only where it ends up: on the way
    /// each run's first segment takes its place, and the run begins one later.
    #[inline]
    fn fall(&mut self, segment: u32, live: u32) {
        let index = self.index(segment);
        let (mut place, mut run) = (self.place[index], self.live[index]);
        while run > live {
            let edge = self.starts[run as usize];
            self.starts[run as usize] = edge + 1;
            if edge != place {
                self.put(self.order[edge as usize], place);
                place = edge;
            }
            run -= 1;
        }
        self.live[index] = run;
        self.put(segment, place);
    }

    /// The same, up.
    #[inline]
    fn rise(&mut self, segment: u32, live: u32) {
        let index = self.index(segment);
        let (mut place, mut run) = (self.place[index], self.live[index]);
        while run < live {
            run += 1;
            let edge = self.starts[run as usize] - 1;
            self.starts[run as usize] = edge;
            if edge != place {
                self.put(self.order[edge as usize], place);
                place = edge;
            }
        }
        self.live[index] = run;
        self.put(segment, place);
    }

    #[inline]
    fn put(&mut self, segment: u32, place: u32) {
        self.order[place as usize] = segment;
        let index = self.index(segment);
        self.place[index] = place;
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
            changes in prop::collection::vec((0_u32..12, 0_u32..6, 0_u32..20), 1..200),
        ) {
            let mut order = UtilizationOrder::new(3..15, 5);
            let mut slow: Vec<Option<u32>> = vec![None; 12];
            for (segment, live, action) in changes {
                let known = &mut slow[segment as usize];
                match (*known, action) {
                    (None, _) => {
                        order.insert(segment + 3, live);
                        *known = Some(live);
                    }
                    (Some(_), 0..6) => {
                        order.remove(segment + 3);
                        *known = None;
                    }
                    (Some(_), _) => {
                        // Deaths that leave it above the limit are not reported.
                        if live < order.exact_below() || order.live(segment + 3) < live {
                            order.update(segment + 3, live);
                        }
                        *known = Some(live);
                    }
                }
                let counts = |segment: u32| slow[segment as usize - 3].expect("it is there");
                match action {
                    18 => order.rebuild(true, counts),
                    19 => order.rebuild(false, counts),
                    _ if order.is_exhausted() => order.rebuild(true, counts),
                    _ => {}
                }
                order.verify();
                let least = slow.iter().flatten().min().copied();
                prop_assert_eq!(order.emptiest().map(|(_, live)| live), least);
                if !order.only_emptiest() {
                    let fullest = slow.iter().flatten().filter(|live| **live < 5).max().copied();
                    let found = order.fullest_with_hole();
                    prop_assert_eq!(found.map(|segment| order.live(segment)), fullest);
                }
                prop_assert_eq!(order.len(), slow.iter().flatten().count());
            }
        }
    }
}
