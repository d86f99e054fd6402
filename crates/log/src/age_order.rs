//! For every count of live blocks, the oldest segment with that count.
//!
//! Every age-aware policy here prefers, of two equally full segments, the older one. So the best
//! segment of all is among the oldest of each count, and a choice looks at as many segments as a
//! segment has blocks, not at all segments. Each count has a binary heap by time.
//!
//! Invariants: no child is older than its parent; `place[heaps[c][i]] == i`, `live` is `c`.
//!
//! Cost: O(log segments) for a segment whose count changed, however many of its blocks died since
//! the last choice.

const ABSENT: u32 = u32::MAX;

/// Oldest segments by live count.
#[derive(Debug, Clone)]
pub(crate) struct AgeOrder {
    heaps: Vec<Vec<u32>>,
    place: Vec<u32>,
    live: Vec<u32>,
    time: Vec<u64>,
}

impl AgeOrder {
    /// No segment is in the order yet.
    pub(crate) fn new(segments: u32, segment_blocks: u32) -> Self {
        let segments = segments as usize;
        Self {
            heaps: vec![Vec::new(); segment_blocks as usize + 1],
            place: vec![ABSENT; segments],
            live: vec![0; segments],
            time: vec![0; segments],
        }
    }

    /// Of each live count up to `live_max` that some segment has: the oldest segment, the count and
    /// its time.
    pub(crate) fn oldest(&self, live_max: u32) -> impl Iterator<Item = (u32, u32, u64)> + '_ {
        let heaps = self.heaps.iter().take(live_max as usize + 1).enumerate();
        heaps.filter_map(|(live, heap)| {
            heap.first().map(|segment| (*segment, live as u32, self.time[*segment as usize]))
        })
    }

    /// The time of `segment`, which is in the order.
    pub(crate) fn time_of(&self, segment: u32) -> u64 {
        self.time[segment as usize]
    }

    /// Whether `segment` is in the order.
    pub(crate) fn contains(&self, segment: u32) -> bool {
        self.place[segment as usize] != ABSENT
    }

    /// Adds `segment`; the lower `time`, the older.
    pub(crate) fn insert(&mut self, segment: u32, live: u32, time: u64) {
        debug_assert!(!self.contains(segment), "segment {segment} is in the order already");
        self.live[segment as usize] = live;
        self.time[segment as usize] = time;
        let heap = &mut self.heaps[live as usize];
        self.place[segment as usize] = heap.len() as u32;
        heap.push(segment);
        self.ascend(live as usize, self.heaps[live as usize].len() - 1);
    }

    /// Takes `segment` out.
    pub(crate) fn remove(&mut self, segment: u32) {
        let (live, place) =
            (self.live[segment as usize] as usize, self.place[segment as usize] as usize);
        let heap = &mut self.heaps[live];
        heap.swap_remove(place);
        self.place[segment as usize] = ABSENT;
        if let Some(moved) = heap.get(place) {
            self.place[*moved as usize] = place as u32;
            self.ascend(live, place);
            self.descend(live, place);
        }
    }

    /// Sets the live blocks of `segment` to `live`.
    pub(crate) fn update(&mut self, segment: u32, live: u32) {
        if self.live[segment as usize] != live {
            let time = self.time[segment as usize];
            self.remove(segment);
            self.insert(segment, live, time);
        }
    }

    fn key(&self, live: usize, place: usize) -> (u64, u32) {
        let segment = self.heaps[live][place];
        (self.time[segment as usize], segment)
    }

    fn ascend(&mut self, live: usize, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.key(live, parent) <= self.key(live, place) {
                break;
            }
            self.swap(live, parent, place);
            place = parent;
        }
    }

    fn descend(&mut self, live: usize, mut place: usize) {
        loop {
            let children =
                (2 * place + 1..2 * place + 3).take_while(|c| *c < self.heaps[live].len());
            let Some(least) = children.min_by_key(|child| self.key(live, *child)) else { break };
            if self.key(live, place) <= self.key(live, least) {
                break;
            }
            self.swap(live, place, least);
            place = least;
        }
    }

    fn swap(&mut self, live: usize, one: usize, other: usize) {
        let heap = &mut self.heaps[live];
        heap.swap(one, other);
        self.place[heap[one] as usize] = one as u32;
        self.place[heap[other] as usize] = other as u32;
    }

    /// Checks the invariants.
    pub(crate) fn verify(&self) {
        for (live, heap) in self.heaps.iter().enumerate() {
            for (place, segment) in heap.iter().enumerate() {
                assert_eq!(self.place[*segment as usize] as usize, place);
                assert_eq!(self.live[*segment as usize] as usize, live);
                let parent = place.saturating_sub(1) / 2;
                assert!(self.key(live, parent) <= self.key(live, place), "heap {live} at {place}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn gives_the_oldest_of_every_count(
            changes in prop::collection::vec((0_u32..16, 0_u32..4, 0_u64..9, any::<bool>()), 1..200),
        ) {
            let mut order = AgeOrder::new(16, 3);
            let mut slow: Vec<Option<(u32, u64)>> = vec![None; 16];
            for (segment, live, time, leave) in changes {
                let known = &mut slow[segment as usize];
                match (*known, leave) {
                    (None, _) => {
                        order.insert(segment, live, time);
                        *known = Some((live, time));
                    }
                    (Some(_), true) => {
                        order.remove(segment);
                        *known = None;
                    }
                    (Some((_, time)), false) => {
                        order.update(segment, live);
                        *known = Some((live, time));
                    }
                }
                order.verify();
                for live in 0..4 {
                    let least = slow.iter().flatten().filter(|known| known.0 == live);
                    let least = least.map(|known| known.1).min();
                    let found = order.oldest(3).find(|(_, count, _)| *count == live);
                    prop_assert_eq!(found.map(|found| found.2), least);
                }
            }
        }
    }
}
