//! Asking a policy from outside which segment is collected.

use super::log::Log;
use super::policy::placement::Placement;
use super::policy::victim_policy::{CollectableSegment, OutsideVictim};
use super::victim_index::VictimIndex;

impl<P: Placement> Log<P> {
    /// The segment that the policy from outside names; none without one, or if it names none.
    pub(super) fn ask_for_victim(&mut self) -> Option<u32> {
        let mut outside = self.setting.victim_policy.take()?;
        self.show_segments(&mut outside);
        let segments = &mut outside.segments;
        let asked = !segments.is_empty();
        let chosen = if asked { outside.policy.choose(segments) } else { None };
        self.setting.stream = segments.stream().clone();
        let victim = chosen.map(|place| segments.number[place] as u32);
        self.setting.victim_policy = Some(outside);
        victim
    }

    /// Fills the columns with what may be collected now.
    fn show_segments(&self, outside: &mut OutsideVictim) {
        let Self { table, index, clock, setting, .. } = self;
        let segments = &mut outside.segments;
        segments.begin(*clock, setting.stream.clone());
        for zone in self.victim_zones() {
            let blocks = table.shape.zone(zone).segment_blocks;
            let live_max = if VictimIndex::takes_full(setting.victim) {
                blocks
            } else {
                self.eligible_live(zone)
            };
            for number in index.segments_of(zone).iter().copied() {
                let at = number as usize;
                let live = table.live[at];
                if live > live_max {
                    continue;
                }
                let time = index.time_kept(number, zone).unwrap_or_else(|| self.time_of(number));
                segments.push(CollectableSegment {
                    number,
                    zone,
                    live,
                    blocks,
                    age: clock - time,
                    opened: table.opened[at],
                    sealed: table.sealed[at],
                    sealing: index.sealing_of(number),
                    log: table.log[at],
                    cached: index.is_cached(number),
                });
            }
        }
    }
}
