//! Logs of every kind, small enough to be checked as a whole after each step.

use agewell_core::{RandomStreams, Stream, uniform_below};
use agewell_log::policy::cost::CostModel;
use agewell_log::policy::mechanism::{Collect, Mechanism, PlugCandidate};
use agewell_log::policy::placement::{
    CollectedSegment, Dac, Fadac, LifeTable, MultiLog, NewTogether, NoSeparation, Oracle,
    Placement, Regrouping, SepBit, Sfs, UserCollected,
};
use agewell_log::{
    AdaptiveLog, Ages, Call, CollectedOrder, Header, LogError, LogSetting, LogShape, SegmentAge,
    Trigger, Unpriced, Victim, Zone, ZoneUse,
};
use proptest::prelude::*;

use agewell_testkit::CrashDisk;

/// A disk of the nineties (Matthews 1999, §5.4.1) with blocks of 8 KB.
pub(crate) const DISK: CostModel = CostModel {
    access_ns: 15_000_000,
    further_ns: 5_500_000,
    bandwidth_bytes_per_s: 5_000_000,
    block_bytes: 8192,
};

/// One where a further block costs as much as a block anywhere, so that no mechanism is the best
/// throughout (Matthews 1999, §5.2.2).
pub(crate) const EVEN_DISK: CostModel = CostModel { further_ns: DISK.access_ns, ..DISK };

/// A placement that can be copied without knowing which it is.
trait CopiedPlacement: Placement {
    fn copied(&self) -> Box<dyn CopiedPlacement>;
}

impl<P: Placement + Clone + 'static> CopiedPlacement for P {
    fn copied(&self) -> Box<dyn CopiedPlacement> {
        Box::new(self.clone())
    }
}

/// Any placement.
pub(crate) struct AnyPlacement(Box<dyn CopiedPlacement>);

impl Clone for AnyPlacement {
    fn clone(&self) -> Self {
        Self(self.0.copied())
    }
}

impl Placement for AnyPlacement {
    fn logs(&self) -> usize {
        self.0.logs()
    }
    fn place_new(&mut self, block: u32, overwrites: bool, clock: u64) -> u8 {
        self.0.place_new(block, overwrites, clock)
    }
    fn place_collected(&mut self, block: u32, segment: &CollectedSegment, clock: u64) -> u8 {
        self.0.place_collected(block, segment, clock)
    }
    fn collected(&mut self, segment: &CollectedSegment, clock: u64) {
        self.0.collected(segment, clock);
    }
    fn deleted(&mut self, block: u32, clock: u64) {
        self.0.deleted(block, clock);
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
    fn regroups_to(&self) -> Option<u8> {
        self.0.regroups_to()
    }
    fn keeps_place(&self, block: u32, log: u8) -> bool {
        self.0.keeps_place(block, log)
    }
}

/// Refused operations after which a run ends: what comes later is refused as well.
const REFUSALS: u32 = 10;

/// Placements by number.
pub(crate) const PLACEMENTS: u32 = 10;

pub(crate) fn placement(kind: u32, blocks: u32, segment_blocks: u32) -> AnyPlacement {
    let (streams, count) = (RandomStreams::new(1), blocks as usize);
    AnyPlacement(match kind {
        0 => Box::new(NoSeparation),
        1 => Box::new(UserCollected),
        2 => Box::new(MultiLog::new(count, 4, &streams)),
        3 => Box::new(Dac::new(count, 3)),
        4 => Box::new(Sfs::new(count, segment_blocks, 4)),
        5 => Box::new(Fadac::new(count, 5)),
        6 => Box::new(SepBit::new(count, 6)),
        7 => Box::new(LifeTable::new(count, 5)),
        9 => Box::new(NewTogether::new(LifeTable::new(count, 4))),
        _ => {
            // The log must be right whatever its placement says, even an oracle that errs.
            let mut stream = streams.stream("deaths");
            let deaths = (1..20_000).map(|clock| clock + uniform_below(&mut stream, 600) as u32);
            Box::new(Oracle::new(deaths.collect(), count, segment_blocks, 8))
        }
    })
}

/// The same with a reorganisation log, which keeps two of three blocks from the beginning.
pub(crate) fn reorganising(kind: u32, blocks: u32, segment_blocks: u32) -> AnyPlacement {
    let within = placement(kind, blocks, segment_blocks);
    let mut placement = Regrouping::new(within, blocks).expect("there are few logs");
    (0..blocks).filter(|block| block % 3 > 0).for_each(|block| placement.set_kept(block, true));
    AnyPlacement(Box::new(placement))
}

/// The mechanism that makes room.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Means {
    Fixed(Collect),
    Adaptive,
}

/// Segments that are kept for collections.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Reserve {
    /// One for each log, and these.
    OneEach { more: u32 },
    /// One that the logs share, and these.
    Shared { more: u32 },
}

/// A log and what is done to it.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) segment_blocks: u32,
    /// Segments beyond those that the setting keeps.
    pub(crate) segments: u32,
    /// A second zone, if its segments have blocks.
    pub(crate) second_blocks: u32,
    pub(crate) victim: Victim,
    pub(crate) means: Means,
    pub(crate) placement: u32,
    pub(crate) ages: Ages,
    pub(crate) header: Header,
    pub(crate) join_holes: bool,
    /// Slots left before new data.
    pub(crate) record_slots: u32,
    pub(crate) zone_use: ZoneUse,
    pub(crate) trigger: Trigger,
    pub(crate) batch_segments: u32,
    pub(crate) reserve: Reserve,
    pub(crate) eligible_garbage: f64,
    pub(crate) tracks_cache: bool,
    /// Segments kept beside the reserve: one where room is made before what is sent as one.
    pub(crate) beside: u32,
    /// Whether blocks are written together now and then.
    pub(crate) reorganises: bool,
    pub(crate) clients: u32,
    pub(crate) buffer_blocks: u32,
    /// Blocks over those that fit.
    pub(crate) fill: f64,
    /// Share of the blocks that are there from the beginning.
    pub(crate) preloaded: f64,
    /// One in this number of operations is a deletion; 0 for none.
    pub(crate) deletions: u32,
    /// Most writes go to one in this number of blocks.
    pub(crate) hot: u32,
    pub(crate) steps: u32,
    pub(crate) seed: u64,
}

impl Case {
    pub(crate) fn setting(&self) -> LogSetting {
        let logs = self.placed(1, 1).logs() as u32;
        let reserve_segments = match self.reserve {
            Reserve::OneEach { more } => logs + more,
            Reserve::Shared { more } => 1 + more,
        };
        let segments = self.segments + reserve_segments + logs + self.beside;
        let mut zones = vec![Zone { segments, segment_blocks: self.segment_blocks }];
        if self.second_blocks > 0 {
            zones.push(Zone { segments, segment_blocks: self.second_blocks });
        }
        let shape = LogShape::zoned(&zones).expect("there are segments");
        let largest = u64::from(shape.segment_blocks_max());
        let spare = u64::from(reserve_segments + logs + self.beside) * largest;
        let usable = shape.capacity_blocks().saturating_sub(spare);
        LogSetting {
            blocks: ((usable as f64 * self.fill) as u32).max(1),
            shape,
            clients: self.clients,
            buffer_blocks: self.buffer_blocks,
            victim: self.victim,
            collect: match self.means {
                Means::Fixed(collect) => collect,
                Means::Adaptive => Collect::Always(Mechanism::Clean),
            },
            trigger: self.trigger,
            batch_segments: self.batch_segments,
            reserve_segments,
            eligible_garbage: self.eligible_garbage,
            header: self.header,
            ages: self.ages,
            join_holes: self.join_holes,
            record_slots: self.record_slots,
            threads_ahead: 0,
            whole_syncs: self.beside > 0,
            lost_turn_ns: 0,
            zone_use: self.zone_use,
            tracks_cache: self.tracks_cache,
            disk: DISK,
            stream: RandomStreams::new(self.seed).stream("victims"),
            victim_policy: None,
        }
    }

    fn placed(&self, blocks: u32, segment_blocks: u32) -> AnyPlacement {
        let make = if self.reorganises { reorganising } else { placement };
        make(self.placement, blocks, segment_blocks)
    }

    pub(crate) fn log(&self) -> AdaptiveLog<AnyPlacement> {
        let setting = self.setting();
        let segment_blocks = self.segment_blocks;
        let blocks = setting.blocks;
        match self.means {
            Means::Fixed(_) => AdaptiveLog::fixed(setting, self.placed(blocks, segment_blocks)),
            Means::Adaptive => AdaptiveLog::among(&Mechanism::ALL, setting, |blocks| {
                self.placed(blocks, segment_blocks)
            }),
        }
        .expect("it has room to work with")
    }

    /// Whether the setting promises that this log never fills up: everything fits, and no segment is
    /// kept from collection.
    pub(crate) fn must_fit(&self) -> bool {
        let setting = self.setting();
        let logs = self.placed(1, 1).logs();
        let waiting = if setting.buffer_blocks > 1 { setting.buffer_blocks } else { 0 };
        let held = u64::from(setting.blocks) + u64::from(waiting) * u64::from(setting.clients);
        // Whole syncs are of one log, and of segments as large as what waits.
        let is_one_log = logs == 1 && self.second_blocks == 0 && self.clients == 1;
        let sends_wholly = is_one_log && self.buffer_blocks <= self.segment_blocks;
        self.record_slots == 0
            && (self.beside == 0 || sends_wholly)
            && self.eligible_garbage == 0.0
            && setting.check_fits(held, logs).is_ok()
    }

    /// Runs it, checking the log against the recorder, and again whenever it is full, from which it
    /// goes on; the first time that it was full.
    pub(crate) fn run(&self, check_every: u32, thorough: bool) -> Result<(), LogError> {
        let mut run = Run::new(self, thorough);
        let mut outcome = Ok(());
        let mut refused = 0;
        for step in 0..run.blocks + self.steps {
            let filling = step < run.blocks;
            let done = if step < run.preloaded {
                run.preload(step)
            } else if filling {
                run.write(step)
            } else {
                run.step(self)
            };
            if done.is_err() || (!filling && step % check_every == 0) {
                run.check();
            }
            refused += u32::from(done.is_err());
            outcome = outcome.and(done);
            if refused == REFUSALS {
                break;
            }
        }
        run.recorder.allow(run.transfers_max);
        let synced = run.log.sync_all(&mut run.recorder);
        run.check();
        for block in 0..run.blocks {
            let (newest, durable) = (run.recorder.newest(block), run.recorder.durable(block));
            let is_durable = newest == durable.map(|durable| durable.number);
            assert!(is_durable || synced.is_err(), "block {block} after a sync of all");
        }
        outcome.and(synced)
    }
}

/// A run of a case.
pub(crate) struct Run {
    pub(crate) log: AdaptiveLog<AnyPlacement>,
    pub(crate) recorder: CrashDisk,
    blocks: u32,
    preloaded: u32,
    clients: u32,
    random: Stream,
    transfers_max: u64,
}

impl Run {
    pub(crate) fn new(case: &Case, thorough: bool) -> Self {
        let setting = case.setting();
        let shape = &setting.shape;
        // Every segment read and every block written by itself, several times over.
        let transfers_max = (shape.capacity_blocks() + 2 * u64::from(shape.segments()) + 64).pow(2);
        Self {
            log: case.log(),
            recorder: CrashDisk::new(shape, setting.blocks, case.tracks_cache, thorough),
            blocks: setting.blocks,
            preloaded: (f64::from(setting.blocks) * case.preloaded) as u32,
            clients: setting.clients,
            random: RandomStreams::new(case.seed).stream("operations"),
            transfers_max,
        }
    }

    fn draw(&mut self, bound: u32) -> u32 {
        uniform_below(&mut self.random, u64::from(bound)) as u32
    }

    fn preload(&mut self, block: u32) -> Result<(), LogError> {
        self.recorder.allow(self.transfers_max);
        self.recorder.writes(block);
        let written = self.log.carry_out(Call::Preload(block), &mut self.recorder);
        if written.is_err() {
            self.recorder.withdraw(block, None);
        }
        written
    }

    fn write(&mut self, block: u32) -> Result<(), LogError> {
        let client = self.draw(self.clients);
        self.recorder.allow(self.transfers_max);
        let before = self.recorder.newest(block);
        self.recorder.writes(block);
        let written = self.log.carry_out(Call::Write { block, client }, &mut self.recorder);
        let waits = self.log.log().holds(block) && self.log.log().slot_of(block).is_none();
        let durable = self.recorder.durable(block).map(|durable| durable.number);
        if written.is_err() && !waits && durable != self.recorder.newest(block) {
            // A write that was refused leaves what was there.
            self.recorder.withdraw(block, before);
        }
        written
    }

    fn step(&mut self, case: &Case) -> Result<(), LogError> {
        let hot = (self.blocks / case.hot).max(1);
        let range = if self.draw(10) < 9 { hot } else { self.blocks };
        let block = self.draw(range);
        self.recorder.allow(self.transfers_max);
        if case.deletions > 0 && self.draw(case.deletions) == 0 {
            if self.recorder.newest(block).is_some() {
                self.recorder.deletes(block);
            }
            self.log.carry_out(Call::Delete(block), &mut self.recorder).unwrap();
            return Ok(());
        }
        match self.draw(40) {
            0 => {
                let client = self.draw(self.clients);
                self.log.carry_out(Call::Sync { client }, &mut self.recorder)
            }
            1 => self.log.sync_all(&mut self.recorder),
            2 => {
                let wanted = self.draw(4);
                self.log.log_mut().collect_ahead(wanted, &mut self.recorder).map(|_| ())
            }
            3..8 if case.tracks_cache => {
                let resident = self.draw(4) > 0;
                for block in block..self.blocks.min(block + case.segment_blocks) {
                    self.log
                        .carry_out(Call::SetResident { block, resident }, &mut Unpriced)
                        .unwrap();
                }
                Ok(())
            }
            8..12 if case.reorganises => self.regroup(block, case),
            _ => self.write(block),
        }
    }

    /// Writes blocks from `block` on together, every one or every other, forwards or backwards;
    /// they must be there afterwards, side by side.
    fn regroup(&mut self, block: u32, case: &Case) -> Result<(), LogError> {
        let (step, count) = (self.draw(3) + 1, self.draw(2 * case.segment_blocks + 2));
        let last = self.blocks.min(block.saturating_add(step * count));
        let mut group: Vec<u32> = (block..last).step_by(step as usize).collect();
        if self.draw(2) == 0 {
            group.reverse();
        }
        let aim = (self.draw(2) == 0).then(|| self.draw(case.segments));
        let cached = |block: u32| case.tracks_cache && block.is_multiple_of(2);
        let before = *self.log.log().counts();
        let regrouped = self.log.log_mut().regroup(&group, cached, aim, &mut self.recorder)?;
        let counts = self.log.log().counts().since(&before);
        let log = self.log.log();
        group.retain(|block| log.slot_of(*block).is_some());
        assert_eq!(regrouped as usize, group.len());
        let breaks = group.windows(2).filter(|pair| {
            let slots = [pair[0], pair[1]].map(|block| log.slot_of(block));
            let segments = slots.map(|slot| slot.map(|slot| log.shape().segment_of(slot)));
            segments[0] == segments[1] && slots[0].map(|slot| slot + 1) != slots[1]
        });
        // The victims may have held the beginning of the group.
        let collected = counts.cleaned_blocks + counts.plugged_blocks > 0;
        assert!(collected || breaks.count() == 0, "blocks of a group lie apart in a segment");
        Ok(())
    }

    /// The log agrees with the recorder, and with itself.
    pub(crate) fn check(&self) {
        self.log.verify();
        self.recorder.check_crash();
        let log = self.log.log();
        assert_eq!(log.live_blocks(), self.recorder.live_blocks());
        for block in 0..self.blocks {
            let (newest, durable) = (self.recorder.newest(block), self.recorder.durable(block));
            assert_eq!(log.holds(block), newest.is_some(), "block {block}");
            assert!(newest.is_some() || durable.is_none(), "block {block} is deleted");
            if let Some(slot) = log.slot_of(block) {
                let durable = durable.expect("what has a slot is on disk");
                assert_eq!((durable.slot, Some(durable.number)), (slot, newest));
            }
        }
    }
}

fn victims() -> impl Strategy<Value = Victim> {
    prop_oneof![
        3 => Just(Victim::Greedy),
        1 => Just(Victim::CostAge),
        1 => Just(Victim::CostAgeCache),
        1 => Just(Victim::BenefitRootAge),
        1 => Just(Victim::Renewal),
        1 => Just(Victim::Fifo),
        1 => (1_u32..6).prop_map(|choices| Victim::RandomGreedy { choices }),
        1 => (1_u32..9).prop_map(|window| Victim::WindowedGreedy { window }),
    ]
}

fn ages() -> impl Strategy<Value = Ages> {
    let segment = prop::sample::select(vec![
        SegmentAge::Data,
        SegmentAge::Data,
        SegmentAge::Block,
        SegmentAge::Segment,
    ]);
    let order = prop::sample::select(vec![CollectedOrder::Found, CollectedOrder::Age]);
    (segment, order).prop_map(|(segment, order)| Ages { segment, order })
}

fn means() -> impl Strategy<Value = Means> {
    prop_oneof![
        2 => Just(Means::Fixed(Collect::Always(Mechanism::Clean))),
        1 => Just(Means::Fixed(Collect::Always(Mechanism::Plug))),
        1 => Just(Means::Fixed(Collect::Always(Mechanism::Thread))),
        1 => prop::sample::select(vec![PlugCandidate::LeastUtilized, PlugCandidate::Policy])
            .prop_map(|candidate| Means::Fixed(Collect::Matthews1999(candidate))),
        1 => Just(Means::Adaptive),
    ]
}

/// Any log, with its operations.
pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let shape = (
        prop::sample::select(vec![1_u32, 3, 7, 32, 64, 65]),
        2_u32..24,
        prop::sample::select(vec![0_u32, 0, 0, 1, 5, 32, 64]),
        prop::sample::select(vec![ZoneUse::Any, ZoneUse::NewFirstCollectedLast]),
    );
    let policy = (victims(), means(), 0..PLACEMENTS, any::<bool>(), prop::bool::weighted(0.4));
    let transfers = (
        prop::sample::select(vec![Header::Free, Header::Block, Header::Segment]),
        any::<bool>(),
        1_u32..4,
        prop::sample::select(vec![1_u32, 1, 2, 5, 32, 65]),
        ages(),
    );
    let room = (
        prop_oneof![
            3 => Just(Trigger::NoFreeSegment),
            1 => (0.1_f64..0.5).prop_map(Trigger::GarbageShare),
            1 => (0.1_f64..0.95).prop_map(Trigger::FreeShare),
        ],
        prop::sample::select(vec![0_u32, 1, 2, 3, 9]),
        prop::sample::select(vec![0_u32, 1, 2, 6]),
        prop::sample::select(vec![0.0, 0.0, 0.0, 0.15]),
    );
    let load = (
        prop_oneof![2 => 0.2_f64..1.0, 1 => 0.95_f64..1.0, 1 => 1.0_f64..1.6],
        prop::sample::select(vec![0.0, 0.0, 0.7]),
        prop::sample::select(vec![0_u32, 5, 30]),
        prop::sample::select(vec![1_u32, 10]),
        0_u32..600,
        any::<u64>(),
    );
    (shape, policy, transfers, room, load).prop_map(|(shape, policy, transfers, room, load)| Case {
        segment_blocks: shape.0,
        segments: shape.1,
        second_blocks: shape.2,
        zone_use: shape.3,
        victim: policy.0,
        means: policy.1,
        placement: policy.2,
        tracks_cache: policy.3,
        beside: u32::from(load.5 % 5 == 2),
        reorganises: policy.4,
        header: transfers.0,
        join_holes: transfers.1,
        // One of three logs keeps records, where a segment holds more than one.
        record_slots: u32::from(load.5 % 3 == 0 && shape.0 > 1 && shape.2 != 1),
        clients: transfers.2,
        buffer_blocks: transfers.3,
        ages: transfers.4,
        trigger: room.0,
        batch_segments: room.1,
        // Blocks that are kept together need a segment of their own.
        reserve: if load.5 % 4 == 1 && !policy.4 {
            Reserve::Shared { more: room.2 }
        } else {
            Reserve::OneEach { more: room.2 }
        },
        eligible_garbage: room.3,
        fill: load.0,
        preloaded: load.1,
        deletions: load.2,
        hot: load.3,
        steps: load.4,
        seed: load.5,
    })
}
