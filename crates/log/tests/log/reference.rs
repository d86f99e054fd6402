//! The log against the plainest log of the testkit, on the same writes under the same rules.
//!
//! The rules are those of the SepBIT simulator: one segment is collected at a time while more than
//! 15 % of what is written is dead. The two differ in which of equally good victims they take.

use agewell_core::{RandomStreams, uniform_below};
use agewell_log::policy::placement::{CollectedSegment, Placement};
use agewell_log::{Log, LogSetting, LogShape, Trigger, Unpriced, Victim};
use agewell_testkit::{ReferenceLog, ReferencePolicy, ReferenceSegment, ReferenceVictim};

use crate::case::{AnyPlacement, DISK, PLACEMENTS, placement};

const BLOCKS: u32 = 1 << 15;
const SEGMENT_BLOCKS: u32 = 64;
const DEAD_SHARE: f64 = 0.15;

/// A placement behind the seam of the reference.
struct Bridge(AnyPlacement);

fn view(victim: &ReferenceSegment) -> CollectedSegment {
    CollectedSegment {
        log: victim.log,
        blocks: victim.blocks,
        filled: victim.blocks,
        live: victim.live,
        opened: victim.opened,
        sealed: victim.written,
    }
}

impl ReferencePolicy for Bridge {
    fn logs(&self) -> usize {
        self.0.logs()
    }
    fn place_new(&mut self, block: u32, overwrites: bool, clock: u64) -> u8 {
        self.0.place_new(block, overwrites, clock)
    }
    fn place_collected(&mut self, block: u32, victim: &ReferenceSegment, clock: u64) -> u8 {
        self.0.place_collected(block, &view(victim), clock)
    }
    fn collected(&mut self, victim: &ReferenceSegment, clock: u64) {
        self.0.collected(&view(victim), clock);
    }
    fn placed(&mut self, block: u32, segment: u32) {
        self.0.placed(block, segment);
    }
    fn died(&mut self, block: u32, segment: u32) {
        self.0.died(block, segment);
    }
    fn freed(&mut self, segment: u32) {
        self.0.freed(segment);
    }
    fn deleted(&mut self, block: u32, clock: u64) {
        self.0.deleted(block, clock);
    }
}

/// Every block once, then six times as many updates, most of them to few blocks: of two numbers
/// drawn the product counts.
fn writes() -> Vec<u32> {
    let mut stream = RandomStreams::new(1).stream("updates");
    let mut draw = |_| {
        let one = uniform_below(&mut stream, u64::from(BLOCKS));
        (one * uniform_below(&mut stream, u64::from(BLOCKS)) / u64::from(BLOCKS)) as u32
    };
    let updates: Vec<u32> = (0..6 * BLOCKS).map(&mut draw).collect();
    (0..BLOCKS).chain(updates).collect()
}

fn by_reference(kind: u32, victim: ReferenceVictim, writes: &[u32]) -> f64 {
    let bridge = Bridge(placement(kind, BLOCKS, SEGMENT_BLOCKS));
    let mut log = ReferenceLog::new(BLOCKS as usize, SEGMENT_BLOCKS, DEAD_SHARE, victim, bridge);
    for block in writes {
        log.write(*block);
    }
    log.verify();
    log.write_amplification()
}

fn by_log(kind: u32, victim: Victim, writes: &[u32]) -> f64 {
    let placement = placement(kind, BLOCKS, SEGMENT_BLOCKS);
    let logs = placement.logs() as u32;
    let full = f64::from(BLOCKS / SEGMENT_BLOCKS) / (1.0 - DEAD_SHARE);
    let setting = LogSetting {
        victim,
        trigger: Trigger::GarbageShare(DEAD_SHARE),
        batch_segments: 1,
        eligible_garbage: DEAD_SHARE,
        ..LogSetting::plain(
            LogShape::uniform(full as u32 + 4 * logs, SEGMENT_BLOCKS).unwrap(),
            BLOCKS,
            DISK,
        )
    };
    let mut log = Log::new(setting, placement).unwrap();
    for block in writes {
        log.write(*block, 0, &mut Unpriced).unwrap();
    }
    log.verify();
    log.counts().write_amplification().unwrap()
}

#[test]
fn the_log_writes_as_much_as_the_plainest_log() {
    let writes = writes();
    let victims = [
        (ReferenceVictim::Greedy, Victim::Greedy),
        (ReferenceVictim::CostBenefit, Victim::BenefitRootAge),
    ];
    // The last placement is an oracle with random deaths: not worth comparing.
    for kind in 0..PLACEMENTS - 1 {
        for (reference, victim) in victims {
            let (slow, fast) =
                (by_reference(kind, reference, &writes), by_log(kind, victim, &writes));
            assert!(
                (fast / slow - 1.0).abs() < 0.005,
                "placement {kind}, {victim:?}: {fast} for {slow}"
            );
        }
    }
}
