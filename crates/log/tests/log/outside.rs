//! Policies from outside that decide as those of the log give the same transfers.

use agewell_core::{RandomStreams, uniform_below};
use agewell_log::policy::mechanism::{Collect, Mechanism, PlugCandidate};
use agewell_log::policy::placement::{
    Batched, BlocksToPlace, NEW_BLOCK_AGE, Placement, PlacementPolicy, Regrouping, UserCollected,
};
use agewell_log::policy::victim_policy::{CollectableSegments, OutsideVictim, VictimPolicy};
use agewell_log::{
    AdaptiveLog, BlockDevice, Call, LogSetting, LogShape, Transfer, Unpriced, Victim, Zone,
};
use proptest::prelude::*;

use crate::case::DISK;

const BLOCKS: u32 = 4_000;

/// A hash of all transfers, in their order, and of what they carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Digest(u64);

impl BlockDevice for Digest {
    fn transfer(&mut self, transfer: &Transfer, contents: &[u32]) {
        let head = [transfer.purpose as u32, transfer.slot, transfer.blocks, transfer.header_bytes];
        for word in head.iter().chain(contents) {
            self.0 = agewell_core::mix(self.0 ^ u64::from(*word));
        }
    }
}

/// What `victim` does, out of what is shown.
#[derive(Debug, Clone)]
struct Counterpart(Victim);

impl VictimPolicy for Counterpart {
    fn name(&self) -> String {
        format!("twin of {}", self.0.name())
    }

    fn choose(&mut self, segments: &mut CollectableSegments) -> Option<usize> {
        let worth = |place: usize| {
            let (live, blocks) = (segments.live[place] as u32, segments.blocks[place] as u32);
            self.0.worth(live, blocks, segments.age[place] as u64, segments.cached[place])
        };
        match self.0 {
            Victim::CostAge | Victim::CostAgeCache | Victim::BenefitRootAge => {
                let scores: Vec<f64> = (0..segments.len()).map(worth).collect();
                segments.highest(&scores)
            }
            Victim::Fifo => (0..segments.len()).min_by_key(|place| segments.sealing[*place]),
            Victim::RandomGreedy { choices } => {
                let drawn: Vec<usize> =
                    (0..choices.max(1)).map(|_| segments.draw(segments.len())).collect();
                let share =
                    |place: &usize| segments.live[*place] as f64 / segments.blocks[*place] as f64;
                let least = drawn.iter().min_by(|one, other| share(one).total_cmp(&share(other)));
                // Of full ones it leaves the choice to the log, which has drawn as many.
                least.copied().filter(|place| share(place) < 1.0).or_else(|| greedy(segments))
            }
            Victim::WindowedGreedy { window } => {
                let mut oldest: Vec<usize> = (0..segments.len()).collect();
                oldest.sort_unstable_by_key(|place| segments.sealing[*place]);
                oldest.truncate(window.max(1) as usize);
                let share =
                    |place: &usize| segments.live[*place] as f64 / segments.blocks[*place] as f64;
                oldest.into_iter().min_by(|one, other| share(one).total_cmp(&share(other)))
            }
            Victim::Greedy => greedy(segments),
            // None leaves the choice to the log.
            Victim::Renewal => None,
        }
    }

    fn copied(&self) -> Box<dyn VictimPolicy> {
        Box::new(self.clone())
    }
}

/// The emptiest segment of each zone, of the first sixteen the one opened first; of those the emptiest.
fn greedy(segments: &CollectableSegments) -> Option<usize> {
    let last = *segments.zone.last()?;
    let of_zone = |zone: i64| {
        let places = (0..segments.len()).filter(move |place| segments.zone[*place] == zone);
        let least = places.clone().map(|place| segments.live[place]).min()?;
        let equals = places.filter(|place| segments.live[*place] == least).take(16);
        equals.min_by_key(|place| segments.opened[*place])
    };
    let share = |place: &usize| segments.live[*place] as f64 / segments.blocks[*place] as f64;
    (0..=last).filter_map(of_zone).min_by(|one, other| share(one).total_cmp(&share(other)))
}

#[derive(Debug, Clone)]
struct Load {
    victim: Victim,
    collect: Option<Collect>,
    zones: bool,
    buffer_blocks: u32,
    garbage: f64,
    seed: u64,
}

impl Load {
    /// What `log` sends for writes, deletions and syncs, most of them to a tenth of the blocks.
    fn digest<P: Placement + Clone>(
        &self,
        placement: impl Fn(u32) -> P,
        outside: Option<Counterpart>,
    ) -> Digest {
        let segments = BLOCKS / 16 * 10 / 8 + 16;
        let zone = |segments, segment_blocks| Zone { segments, segment_blocks };
        let zones = if self.zones {
            vec![zone(segments / 2, 16), zone(segments / 4, 32)]
        } else {
            vec![zone(segments, 16)]
        };
        let setting = LogSetting {
            buffer_blocks: self.buffer_blocks,
            victim: self.victim,
            collect: self.collect.unwrap_or(Collect::Always(Mechanism::Clean)),
            reserve_segments: 6,
            eligible_garbage: self.garbage,
            tracks_cache: true,
            stream: RandomStreams::new(self.seed).stream("victims"),
            victim_policy: outside.map(|twin| Box::new(OutsideVictim::new(Box::new(twin)))),
            ..LogSetting::plain(LogShape::zoned(&zones).unwrap(), BLOCKS, DISK)
        };
        let mut log = match self.collect {
            Some(_) => AdaptiveLog::fixed(setting, placement(BLOCKS)),
            None => AdaptiveLog::among(&Mechanism::ALL, setting, placement),
        }
        .unwrap();
        let (mut stream, mut digest) =
            (RandomStreams::new(self.seed).stream("load"), Digest(self.seed));
        log.preload_run(0, BLOCKS).unwrap();
        for turn in 0..5 * BLOCKS {
            let bound = if turn % 3 > 0 { BLOCKS / 10 } else { BLOCKS };
            let block = uniform_below(&mut stream, u64::from(bound)) as u32;
            match turn % 16 {
                5 => log.carry_out(Call::Delete(block), &mut digest).unwrap(),
                7 => log
                    .carry_out(Call::SetResident { block, resident: turn % 3 > 0 }, &mut Unpriced)
                    .unwrap(),
                11 => log.carry_out(Call::Sync { client: 0 }, &mut digest).unwrap(),
                _ => log.carry_out(Call::Write { block, client: 0 }, &mut digest).unwrap(),
            }
        }
        log.verify();
        digest
    }
}

fn loads() -> impl Strategy<Value = Load> {
    let victims = prop_oneof![
        2 => Just(Victim::Greedy),
        2 => Just(Victim::CostAge),
        2 => Just(Victim::CostAgeCache),
        1 => Just(Victim::BenefitRootAge),
        1 => Just(Victim::Renewal),
        1 => Just(Victim::Fifo),
        1 => (1_u32..6).prop_map(|choices| Victim::RandomGreedy { choices }),
        1 => (1_u32..9).prop_map(|window| Victim::WindowedGreedy { window }),
    ];
    let rules = prop::sample::select(vec![
        Some(Collect::Always(Mechanism::Clean)),
        Some(Collect::Always(Mechanism::Plug)),
        Some(Collect::Matthews1999(PlugCandidate::Policy)),
        None,
    ]);
    let buffers = prop::sample::select(vec![1_u32, 16]);
    let garbage = prop::sample::select(vec![0.0, 0.1]);
    (victims, rules, any::<bool>(), buffers, garbage, any::<u64>()).prop_map(
        |(victim, collect, zones, buffer_blocks, garbage, seed)| Load {
            victim,
            collect,
            zones,
            buffer_blocks,
            garbage,
            seed,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_victim_policy_from_outside_decides_as_its_twin(load in loads()) {
        let own = load.digest(|_| UserCollected, None);
        prop_assert_eq!(load.digest(|_| UserCollected, Some(Counterpart(load.victim))), own);
    }

    #[test]
    fn a_placement_from_outside_decides_as_its_twin(load in loads()) {
        let outside =
            |blocks: u32| Batched::new(Box::new(Apart), blocks as usize, 2);
        prop_assert_eq!(load.digest(outside, None), load.digest(|_| UserCollected, None));
    }

    #[test]
    fn and_within_one_that_regroups(load in loads()) {
        let outside = |blocks: u32| {
            Regrouping::new(Batched::new(Box::new(Apart), blocks as usize, 2), blocks).unwrap()
        };
        let own = |blocks| Regrouping::new(UserCollected, blocks).unwrap();
        prop_assert_eq!(load.digest(outside, None), load.digest(own, None));
    }
}

/// What [`UserCollected`] does.
#[derive(Debug, Clone)]
struct Apart;

impl PlacementPolicy for Apart {
    fn name(&self) -> String {
        "apart".to_owned()
    }

    fn place(&mut self, blocks: &mut BlocksToPlace, last: u8, chosen: &mut [u8]) {
        assert!(last == 1 && !blocks.is_empty() && blocks.len() == chosen.len());
        assert!(
            blocks
                .age
                .iter()
                .all(|age| *age > 0 || (*age == NEW_BLOCK_AGE) || blocks.from.is_some())
        );
        chosen.fill(u8::from(blocks.from.is_some()));
    }

    fn copied(&self) -> Box<dyn PlacementPolicy> {
        Box::new(self.clone())
    }
}
