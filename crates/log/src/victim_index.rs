//! Finds the segment that a victim policy wants without looking at all segments.
//!
//! Sealed segments stand in an order by live blocks, one a zone; age-aware policies also have an
//! order by age within every count, one a zone and apart for segments that are wholly cached;
//! policies by sealing have a list in that order. Deaths only mark a segment as changed; the orders
//! follow when a choice is made.

use agewell_core::{Stream, uniform_below};

use super::LogShape;
use super::age_order::AgeOrder;
use super::ages::SegmentAge;
use super::policy::placement::{CollectedSegment, Renewal};
pub use super::policy::victim::Victim;
use super::segment_table::{NONE, SegmentTable};
use super::utilization_order::UtilizationOrder;

/// Of up to this many equally empty segments the one opened first is taken, because its blocks are
/// the least likely to die soon. Chosen by us: a look at all of them could take long.
const EQUALS_MAX: usize = 16;

/// The index.
#[derive(Debug, Clone)]
pub(crate) struct VictimIndex {
    victim: Victim,
    segment_age: SegmentAge,
    /// By live blocks, one a zone.
    pub(crate) utilization: Vec<UtilizationOrder>,
    /// By age, zone by zone, cached ones last; nothing unless the policy looks at ages.
    ages: Vec<AgeOrder>,
    /// Which segments are in the cache as a whole.
    cached: Vec<bool>,
    /// Nothing unless the policy looks at the order in which segments were sealed.
    sealed: Option<SealOrder>,
    renewal: Renewal,
}

impl VictimIndex {
    /// Of segments of `shape`; `shows_sealings` says that somebody asks for the order of sealing although
    /// `victim` does not.
    pub(crate) fn new(
        victim: Victim,
        segment_age: SegmentAge,
        shows_sealings: bool,
        shape: &LogShape,
    ) -> Self {
        let zones = 0..shape.zones();
        let by_zone = |zone| {
            UtilizationOrder::new(shape.segments_of_zone(zone), shape.zone(zone).segment_blocks)
        };
        let age_orders = if victim.by_age() { 2 } else { 0 };
        let ages = (0..age_orders).flat_map(|_| {
            zones.clone().map(|z| AgeOrder::new(shape.segments(), shape.zone(z).segment_blocks))
        });
        Self {
            victim,
            segment_age,
            utilization: zones.clone().map(by_zone).collect(),
            ages: ages.collect(),
            cached: vec![false; shape.segments() as usize],
            sealed: (victim.by_seal_order() || shows_sealings).then(|| SealOrder::new(shape)),
            renewal: Renewal::new(),
        }
    }

    fn age_order(&self, zone: usize, cached: bool) -> usize {
        zone + if cached { self.utilization.len() } else { 0 }
    }

    /// `segment` of `zone` is full and may be collected from now on.
    pub(crate) fn insert(&mut self, segment: u32, zone: usize, live: u32, time: u64, cached: bool) {
        self.utilization[zone].insert(segment, live);
        self.cached[segment as usize] = cached;
        if !self.ages.is_empty() {
            let order = self.age_order(zone, cached);
            self.ages[order].insert(segment, live, time);
        }
        self.sealed.iter_mut().for_each(|sealed| sealed.push(segment, zone));
    }

    /// `segment` is not to be chosen any more.
    pub(crate) fn remove(&mut self, segment: u32, zone: usize) {
        self.utilization[zone].remove(segment);
        if !self.ages.is_empty() {
            let order = self.age_order(zone, self.cached[segment as usize]);
            self.ages[order].remove(segment);
        }
        self.sealed.iter_mut().for_each(|sealed| sealed.remove(segment));
    }

    /// `segment` has `live` blocks now.
    pub(crate) fn update(&mut self, segment: u32, zone: usize, live: u32) {
        self.utilization[zone].update(segment, live);
        if !self.ages.is_empty() {
            let order = self.age_order(zone, self.cached[segment as usize]);
            self.ages[order].update(segment, live);
        }
    }

    /// The data of `segment`, which may be collected, counts as written at `time` from now on.
    pub(crate) fn renew(&mut self, segment: u32, zone: usize, time: u64) {
        if !self.ages.is_empty() {
            let order = self.age_order(zone, self.cached[segment as usize]);
            self.ages[order].remove(segment);
            self.ages[order].insert(segment, self.utilization[zone].live(segment), time);
        }
    }

    /// The time of a segment's data, as the policy counts it.
    pub(crate) fn time_of(&self, opened: u64, sealed: u64, youngest: u64) -> u64 {
        match self.victim {
            Victim::Renewal => Renewal::written_at(opened, sealed),
            // The SepBIT simulator counts a segment's age from when it was full.
            Victim::BenefitRootAge => sealed,
            _ if self.segment_age == SegmentAge::Segment => sealed,
            _ => youngest,
        }
    }

    /// `segment` has been chosen and is collected at `clock`.
    pub(crate) fn collected(&mut self, segment: &CollectedSegment, clock: u64) {
        if self.victim == Victim::Renewal {
            self.renewal.collected(segment, clock);
        }
    }

    /// A block of `segment` has left the cache; `time` is the segment's age key.
    pub(crate) fn uncache(&mut self, segment: u32, zone: usize, time: u64) {
        if !self.cached[segment as usize] {
            return;
        }
        self.cached[segment as usize] = false;
        let (cached, plain) = (self.age_order(zone, true), self.age_order(zone, false));
        if !self.ages.is_empty() && self.ages[cached].contains(segment) {
            self.ages[cached].remove(segment);
            self.ages[plain].insert(segment, self.utilization[zone].live(segment), time);
        }
    }

    /// Whether every block of `segment` is in the cache.
    pub(crate) fn is_cached(&self, segment: u32) -> bool {
        self.cached[segment as usize]
    }

    /// Whether `victim` may choose a segment without a dead block.
    pub(crate) fn takes_full(victim: Victim) -> bool {
        victim.by_seal_order() || matches!(victim, Victim::RandomGreedy { .. })
    }

    /// All segments of `zone`, in the order in which they are held.
    pub(crate) fn segments_of(&self, zone: usize) -> &[u32] {
        self.utilization[zone].all()
    }

    /// The time of the data of `segment` of `zone` as it is kept, if it is kept.
    pub(crate) fn time_kept(&self, segment: u32, zone: usize) -> Option<u64> {
        let order = self.age_order(zone, self.cached[segment as usize]);
        self.ages.get(order).map(|ages| ages.time_of(segment))
    }

    /// Which of all sealings that of `segment` was, if the order of sealing is kept; else 0.
    pub(crate) fn sealing_of(&self, segment: u32) -> u64 {
        self.sealed.as_ref().map_or(0, |sealed| sealed.number[segment as usize])
    }

    /// The victim among segments of `zones` with at most `live_max` (of the zone) live blocks, if
    /// the policy finds one.
    pub(crate) fn choose(
        &self,
        zones: std::ops::Range<usize>,
        live_max: impl Fn(usize) -> u32,
        table: &SegmentTable,
        clock: u64,
        stream: &mut Stream,
    ) -> Option<u32> {
        let opened = |segment: u32| table.opened[segment as usize];
        match self.victim {
            Victim::Greedy => self.emptiest(zones, live_max, opened),
            Victim::CostAge | Victim::CostAgeCache | Victim::BenefitRootAge | Victim::Renewal => {
                self.best_by_age(zones, live_max, table, clock)
            }
            // The oldest is collected however full it is: that is the policy.
            Victim::Fifo => self.longest_sealed(zones).next(),
            Victim::RandomGreedy { choices } => self
                .emptiest_of_some(&zones, choices, stream)
                .or_else(|| self.emptiest(zones, live_max, opened)),
            Victim::WindowedGreedy { window } => self
                .longest_sealed(zones.clone())
                .take(window.max(1) as usize)
                .map(|segment| (segment, self.share_in(&zones, segment)))
                .min_by(|one, other| one.1.total_cmp(&other.1))
                .map(|found| found.0),
        }
    }

    /// The least utilized segment of `zones` with at most `live_max` live blocks; of several, the
    /// one that was opened first, if they are not many.
    pub(crate) fn emptiest(
        &self,
        zones: std::ops::Range<usize>,
        live_max: impl Fn(usize) -> u32,
        opened: impl Fn(u32) -> u64,
    ) -> Option<u32> {
        let found = zones.filter_map(|zone| {
            let (_, live) = self.utilization[zone].emptiest()?;
            let equals = self.utilization[zone].all_emptiest().iter().take(EQUALS_MAX);
            let segment = *equals.min_by_key(|segment| opened(**segment))?;
            (live <= live_max(zone)).then(|| (segment, self.share(zone, live)))
        });
        found.min_by(|one, other| one.1.total_cmp(&other.1)).map(|found| found.0)
    }

    /// The most utilized segment of `zones` that has a hole.
    pub(crate) fn fullest_with_hole(&self, zones: std::ops::Range<usize>) -> Option<u32> {
        let found = zones.filter_map(|zone| {
            let segment = self.utilization[zone].fullest_with_hole()?;
            Some((segment, self.share(zone, self.utilization[zone].live(segment))))
        });
        found.max_by(|one, other| one.1.total_cmp(&other.1)).map(|found| found.0)
    }

    fn best_by_age(
        &self,
        zones: std::ops::Range<usize>,
        live_max: impl Fn(usize) -> u32,
        table: &SegmentTable,
        clock: u64,
    ) -> Option<u32> {
        let (mut best, mut most) = (None, f64::NEG_INFINITY);
        for zone in zones {
            let blocks = self.utilization[zone].segment_blocks();
            for cached in [false, true] {
                for (segment, live, time) in
                    self.ages[self.age_order(zone, cached)].oldest(live_max(zone))
                {
                    let age = clock - time;
                    let worth = match self.victim {
                        Victim::Renewal => {
                            self.renewal.worth(live, table.filled(segment), blocks, age)
                        }
                        victim => victim.worth(live, blocks, age, cached),
                    };
                    if worth > most {
                        (best, most) = (Some(segment), worth);
                    }
                }
            }
        }
        best
    }

    fn emptiest_of_some(
        &self,
        zones: &std::ops::Range<usize>,
        choices: u32,
        stream: &mut Stream,
    ) -> Option<u32> {
        let total: usize = zones.clone().map(|zone| self.utilization[zone].len()).sum();
        if total == 0 {
            return None;
        }
        let draw = |_| {
            let mut place = uniform_below(stream, total as u64) as usize;
            let mut zone = zones.start;
            while place >= self.utilization[zone].len() {
                place -= self.utilization[zone].len();
                zone += 1;
            }
            let segment = self.utilization[zone].at(place);
            (segment, self.share(zone, self.utilization[zone].live(segment)))
        };
        let drawn = (0..choices.max(1)).map(draw);
        let least = drawn.min_by(|one, other| one.1.total_cmp(&other.1));
        // A full one frees nothing: then the least utilized of all is taken instead.
        least.filter(|found| found.1 < 1.0).map(|found| found.0)
    }

    fn share(&self, zone: usize, live: u32) -> f64 {
        f64::from(live) / f64::from(self.utilization[zone].segment_blocks())
    }

    /// Segments of `zones`, longest sealed first.
    fn longest_sealed(&self, zones: std::ops::Range<usize>) -> impl Iterator<Item = u32> + '_ {
        self.sealed.iter().flat_map(move |sealed| sealed.of_zones(zones.clone()))
    }

    fn share_in(&self, zones: &std::ops::Range<usize>, segment: u32) -> f64 {
        let zone = zones.clone().find(|zone| self.utilization[*zone].contains(segment));
        zone.map_or(1.0, |zone| self.share(zone, self.utilization[zone].live(segment)))
    }

    /// Checks the invariants of every order.
    pub(crate) fn verify(&self) {
        self.utilization.iter().for_each(UtilizationOrder::verify);
        self.ages.iter().for_each(AgeOrder::verify);
    }
}

/// The segments of each zone, longest sealed first.
///
/// Each zone has a ring of its own, so that a choice looks only at segments of the zones asked for;
/// sealings are numbered, so that rings can be merged.
#[derive(Debug, Clone)]
struct SealOrder {
    /// Neighbours of each segment, before and after; behind the segments the ends of the rings.
    links: Vec<[u32; 2]>,
    /// Number of each segment's sealing.
    number: Vec<u64>,
    sealings: u64,
}

const BEFORE: usize = 0;
const AFTER: usize = 1;

impl SealOrder {
    fn new(shape: &LogShape) -> Self {
        let segments = shape.segments();
        let mut links = vec![[NONE; 2]; segments as usize];
        links.extend((segments..).take(shape.zones()).map(|end| [end; 2]));
        Self { links, number: vec![0; segments as usize], sealings: 0 }
    }

    /// The end of the ring of `zone`.
    fn end(&self, zone: usize) -> u32 {
        (self.number.len() + zone) as u32
    }

    fn push(&mut self, segment: u32, zone: usize) {
        let end = self.end(zone);
        let last = self.links[end as usize][BEFORE];
        self.links[segment as usize] = [last, end];
        self.links[last as usize][AFTER] = segment;
        self.links[end as usize][BEFORE] = segment;
        self.number[segment as usize] = self.sealings;
        self.sealings += 1;
    }

    fn remove(&mut self, segment: u32) {
        let [before, after] = self.links[segment as usize];
        self.links[before as usize][AFTER] = after;
        self.links[after as usize][BEFORE] = before;
        self.links[segment as usize] = [NONE; 2];
    }

    fn of_zones(&self, zones: std::ops::Range<usize>) -> impl Iterator<Item = u32> + '_ {
        let after = |place: u32| self.links[place as usize][AFTER];
        let mut heads: Vec<u32> = zones.map(|zone| after(self.end(zone))).collect();
        std::iter::from_fn(move || {
            let number = |head: &&mut u32| self.number.get(**head as usize).copied();
            // An end has no number.
            let head = heads.iter_mut().filter(|head| number(head).is_some()).min_by_key(number)?;
            Some(std::mem::replace(head, self.links[*head as usize][AFTER]))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Zone;
    use super::*;

    proptest! {
        #[test]
        fn the_order_of_sealing_is_kept_zone_by_zone_and_merged(
            changes in prop::collection::vec(0_u32..12, 1..100),
            first in 0_usize..3,
            count in 0_usize..4,
        ) {
            let zone = |segments| Zone { segments, segment_blocks: segments };
            let shape = LogShape::zoned(&[zone(5), zone(1), zone(6)]).unwrap();
            let (mut order, mut slow) = (SealOrder::new(&shape), Vec::new());
            for segment in changes {
                if slow.contains(&segment) {
                    order.remove(segment);
                    slow.retain(|other| *other != segment);
                } else {
                    order.push(segment, shape.zone_of(segment));
                    slow.push(segment);
                }
            }
            let zones = first..3.min(first + count);
            slow.retain(|segment| zones.contains(&shape.zone_of(*segment)));
            prop_assert_eq!(order.of_zones(zones).collect::<Vec<_>>(), slow);
        }
    }
}
