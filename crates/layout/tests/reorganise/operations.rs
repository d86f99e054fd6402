//! Any reads, writes and deletions on a log that reorganises itself, in every way, against the
//! recorder.

use agewell_core::{RandomStreams, Stream, uniform_below};
use agewell_layout::block_layout::{BlockLayout, FileBlock, Place};
use agewell_layout::reorganise::{Decide, Related, ReorganiseSetting, When};
use agewell_layout::reorganising_log::ReorganisingLog;
use agewell_log::policy::cost::CostModel;
use agewell_log::policy::mechanism::{Collect, Mechanism, PlugCandidate};
use agewell_log::policy::placement::{NoSeparation, Placement, Regrouping, UserCollected};
use agewell_log::{AdaptiveLog, BlockDevice, Header, LogSetting, LogShape, Purpose, Transfer};
use proptest::prelude::*;

use agewell_testkit::CrashDisk;

/// Transfers of the disk, and blocks moved and patched.
type Ran = (Vec<(Transfer, Vec<u32>)>, (u64, u64));

#[derive(Debug, Clone)]
struct Case {
    setting: ReorganiseSetting,
    segment_blocks: u32,
    segments: u32,
    collect: Collect,
    separates: bool,
    header: Header,
    buffer_blocks: u32,
    fill: f64,
    steps: u32,
    seed: u64,
}

/// Records transfers beside what the recorder checks.
struct Both {
    recorder: CrashDisk,
    transfers: Vec<(Transfer, Vec<u32>)>,
}

impl BlockDevice for Both {
    fn transfer(&mut self, transfer: &Transfer, contents: &[u32]) {
        self.recorder.transfer(transfer, contents);
        self.transfers.push((*transfer, contents.to_vec()));
    }

    fn commit(&mut self) {
        self.recorder.commit();
    }
}

/// A disk of the nineties (Matthews 1999, §5.4.1) with blocks of 8 KB.
const DISK: CostModel = CostModel {
    access_ns: 15_000_000,
    further_ns: 5_500_000,
    bandwidth_bytes_per_s: 5_000_000,
    block_bytes: 8192,
};

const CLIENTS: u32 = 2;

fn log(case: &Case) -> ReorganisingLog<UserCollected> {
    build(case, UserCollected)
}

fn plain(case: &Case) -> ReorganisingLog<NoSeparation> {
    build(case, NoSeparation)
}

fn build<P: Placement + Clone>(case: &Case, within: P) -> ReorganisingLog<P> {
    let logs = within.logs() as u32 + 1;
    let segments = case.segments + 2 * logs + 1;
    let shape = LogShape::uniform(segments, case.segment_blocks).unwrap();
    let usable = case.segments * case.segment_blocks;
    let blocks = ((f64::from(usable) * case.fill) as u32).max(1);
    let setting = LogSetting {
        clients: CLIENTS,
        buffer_blocks: case.buffer_blocks,
        collect: case.collect,
        // Of which the reorganisation log needs none.
        reserve_segments: logs - 1,
        header: case.header,
        stream: RandomStreams::new(case.seed).stream("victims"),
        ..LogSetting::plain(shape, blocks, DISK)
    };
    let placement = Regrouping::new(within, blocks).unwrap();
    let log = AdaptiveLog::fixed(setting, placement).expect("it has room to work with");
    ReorganisingLog::new(log, case.setting)
}

/// Files of ten blocks each, but for one large one.
fn name(block: u32, blocks: u32) -> FileBlock {
    if block < blocks / 2 {
        FileBlock { file: 0, block }
    } else {
        FileBlock { file: 1 + block / 10, block: block % 10 }
    }
}

struct Run<P> {
    log: ReorganisingLog<P>,
    device: Both,
    blocks: u32,
    random: Stream,
}

impl<P: Placement + Clone> Run<P> {
    fn draw(&mut self, bound: u32) -> u32 {
        uniform_below(&mut self.random, u64::from(bound.max(1))) as u32
    }

    fn write(&mut self, block: u32) {
        let (client, before) = (self.draw(CLIENTS), self.device.recorder.newest(block));
        self.device.recorder.writes(block);
        let name = name(block, self.blocks);
        let written = self.log.write(block, name, client, &mut self.device);
        let waits = self.log.place_of(block) == Place::Memory;
        let durable = self.device.recorder.durable(block).map(|durable| durable.number);
        if written.is_err() && !waits && durable != self.device.recorder.newest(block) {
            self.device.recorder.withdraw(block, before);
        }
    }

    /// What is read is the version written last, wherever it was moved.
    fn read(&mut self, first: u32, blocks: u32) {
        let group: Vec<u32> = (first..self.blocks.min(first + blocks)).collect();
        for block in &group {
            let newest = self.device.recorder.newest(*block);
            match self.log.place_of(*block) {
                Place::Disk(slot) => {
                    let durable = self.device.recorder.durable(*block).expect("it is on disk");
                    assert_eq!((durable.slot, Some(durable.number)), (slot, newest));
                }
                Place::Memory => assert!(newest.is_some()),
                Place::Nowhere => assert_eq!(newest, None),
            }
        }
        self.log.read(&group, Purpose::Read, &mut self.device);
    }

    fn step(&mut self, segment_blocks: u32) {
        let hot = (self.blocks / 3).max(1);
        let range = if self.draw(4) > 0 { hot } else { self.blocks };
        let block = self.draw(range);
        match self.draw(32) {
            0 => {
                let client = self.draw(CLIENTS);
                let _ = self.log.sync(client, &mut self.device);
            }
            1..4 => {
                // A log that is full says so, and goes on.
                let free_wanted = self.draw(3);
                let _ = self.log.work_ahead(free_wanted, &mut self.device);
            }
            4 => {
                if self.device.recorder.newest(block).is_some() {
                    self.device.recorder.deletes(block);
                }
                self.log.delete(block, &mut self.device);
            }
            5..16 => self.write(block),
            // The same places again and again, so that there is something to learn.
            _ => self.read(block / 16 * 16, segment_blocks + 3),
        }
    }

    fn check(&self) {
        self.log.verify();
        self.device.recorder.check_crash();
        assert_eq!(self.log.live_blocks(), self.device.recorder.live_blocks());
    }
}

/// Runs a case; returns the transfers of the disk, and blocks moved and patched.
fn run<P: Placement + Clone>(log: ReorganisingLog<P>, case: &Case, thorough: bool) -> Ran {
    let blocks = log.log().blocks();
    let shape = log.log().shape().clone();
    let recorder = CrashDisk::new(&shape, blocks, true, thorough);
    let device = Both { recorder, transfers: Vec::new() };
    let random = RandomStreams::new(case.seed).stream("operations");
    let mut run = Run { log, device, blocks, random };
    let transfers_max = (shape.capacity_blocks() + 64).pow(2);
    for step in 0..blocks + case.steps {
        run.device.recorder.allow(transfers_max);
        if step < blocks {
            run.write(step);
        } else {
            run.step(case.segment_blocks);
        }
        if step % 16 == 0 {
            run.check();
        }
    }
    run.device.recorder.allow(transfers_max);
    let synced = run.log.sync_all(&mut run.device);
    run.check();
    assert!(synced.is_ok() || case.fill > 1.0, "a log with room is full");
    let counts = run.log.log_counts();
    (run.device.transfers, (counts.regrouped_blocks, counts.patched_blocks))
}

fn cases() -> impl Strategy<Value = Case> {
    let policy = (
        prop::sample::select(Related::ALL.to_vec()),
        prop::sample::select(Decide::ALL.to_vec()),
        prop::sample::select(When::ALL.to_vec()),
        prop::sample::select(vec![2_u32, 7, 40]),
        prop::sample::select(vec![1_u8, 4, 255]),
        prop::sample::select(vec![1_u32, 30, 200]),
        prop::sample::select(vec![0.3, f64::INFINITY]),
    );
    let collect = prop::sample::select(vec![
        Collect::Always(Mechanism::Clean),
        Collect::Always(Mechanism::Plug),
        Collect::Always(Mechanism::Thread),
        Collect::Matthews1999(PlugCandidate::LeastUtilized),
    ]);
    let log = (
        prop::sample::select(vec![4_u32, 7, 32]),
        2_u32..16,
        collect,
        any::<bool>(),
        prop::sample::select(vec![Header::Free, Header::Block, Header::Segment]),
        prop::sample::select(vec![1_u32, 5, 32]),
        0.3_f64..0.95,
        0_u32..500,
        any::<u64>(),
    );
    (policy, log).prop_map(|(policy, log)| Case {
        setting: ReorganiseSetting {
            related: policy.0,
            decide: policy.1,
            when: policy.2,
            partition_blocks: policy.3,
            moves_max: policy.4,
            memory_blocks: policy.5,
            budget: policy.6,
        },
        segment_blocks: log.0,
        segments: log.1,
        collect: log.2,
        separates: log.3,
        header: log.4,
        buffer_blocks: log.5,
        fill: log.6,
        steps: log.7,
        seed: log.8,
    })
}

fn run_any(case: &Case, thorough: bool) -> Ran {
    if case.separates { run(log(case), case, thorough) } else { run(plain(case), case, thorough) }
}

/// No block is moved oftener than it may be before it is written again.
fn check_moves(transfers: &[(Transfer, Vec<u32>)], moves_max: u8) {
    if moves_max == u8::MAX {
        return;
    }
    let mut moves = std::collections::BTreeMap::new();
    for (transfer, contents) in transfers {
        for block in contents {
            match transfer.purpose {
                Purpose::RegroupWrite => *moves.entry(*block).or_insert(0_u32) += 1,
                Purpose::NewData | Purpose::Thread => {
                    moves.insert(*block, 0);
                }
                _ => {}
            }
            let moved = moves.get(block).copied().unwrap_or_default();
            assert!(moved <= u32::from(moves_max), "block {block} was moved {moved} times");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 600,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Every block read is the version last written; a crash after any transfer loses nothing; the
    /// bounds on moves hold.
    #[test]
    fn what_is_reorganised_is_what_was_written(mut case in cases()) {
        let (transfers, (moved, _)) = run_any(&case, false);
        let reads = transfers.iter().filter(|(transfer, _)| transfer.purpose == Purpose::Read);
        let read: u64 = reads.map(|(transfer, _)| u64::from(transfer.blocks)).sum();
        let budget = case.setting.budget;
        prop_assert!(budget.is_infinite() || moved as f64 <= budget * read as f64);
        check_moves(&transfers, case.setting.moves_max);
        case.steps /= 3;
        run_any(&case, true);
    }

    /// The same operations make the same transfers.
    #[test]
    fn the_same_operations_make_the_same_transfers(case in cases()) {
        prop_assert_eq!(run_any(&case, false), run_any(&case, false));
    }
}

/// The property tests mean nothing if nothing is moved or patched in them.
#[test]
fn every_way_moves_blocks_and_patches_them() {
    for related in Related::ALL {
        let case = Case {
            setting: ReorganiseSetting { related, ..ReorganiseSetting::matthews_1999(8) },
            segment_blocks: 8,
            segments: 40,
            collect: Collect::Always(Mechanism::Clean),
            separates: false,
            header: Header::Free,
            buffer_blocks: 5,
            fill: 0.6,
            steps: 4000,
            seed: 3,
        };
        let (transfers, (moved, patched)) = run_any(&case, false);
        assert!(moved > 100 && patched > 20, "{related:?}: {moved} moved, {patched} patched");
        let sent = |purpose: Purpose| {
            let of = transfers.iter().filter(|(transfer, _)| transfer.purpose == purpose);
            of.map(|(transfer, _)| u64::from(transfer.blocks)).sum::<u64>()
        };
        assert_eq!((sent(Purpose::RegroupWrite), sent(Purpose::Patch)), (moved, patched));
    }
}

/// New data goes to the main log, and only then over its place in the reorganisation log
/// (Matthews 1999, §6.4.3): a stop between the two finds the new data in the main log.
#[test]
fn a_patch_follows_its_copy_in_the_main_log() {
    let case = Case {
        setting: ReorganiseSetting::matthews_1999(8),
        segment_blocks: 8,
        segments: 20,
        collect: Collect::Always(Mechanism::Clean),
        separates: false,
        header: Header::Free,
        buffer_blocks: 1,
        fill: 0.4,
        steps: 0,
        seed: 1,
    };
    let log = plain(&case);
    let blocks = log.log().blocks();
    let recorder = CrashDisk::new(log.log().shape(), blocks, true, true);
    let device = Both { recorder, transfers: Vec::new() };
    let random = RandomStreams::new(1).stream("operations");
    let mut run = Run { log, device, blocks, random };
    run.device.recorder.allow(10_000);
    // Every other block, then the rest: read in sequence they lie apart.
    (0..16).step_by(2).for_each(|block| run.write(block));
    (1..16).step_by(2).for_each(|block| run.write(block));
    for _ in 0..3 {
        (0..8).for_each(|block| run.read(block, 1));
    }
    let Place::Disk(home) = run.log.place_of(3) else { panic!("it is on disk") };
    assert_eq!(run.log.place_of(4), Place::Disk(home + 1), "they were put together");
    let before = run.device.transfers.len();
    run.write(3);
    let made: Vec<_> = run.device.transfers[before..].iter().map(|made| made.0).collect();
    assert_eq!(made.len(), 2);
    assert_eq!((made[0].purpose, made[1].purpose), (Purpose::NewData, Purpose::Patch));
    assert_ne!(made[0].slot, home);
    assert_eq!(made[1].slot, home);
    assert_eq!(run.log.place_of(3), Place::Disk(home));
    // Three writes sever what three readings tied; from then on it is written once.
    run.write(3);
    run.write(3);
    let before = run.device.transfers.len();
    run.write(3);
    let made: Vec<_> = run.device.transfers[before..].iter().map(|made| made.0.purpose).collect();
    assert_eq!(made, [Purpose::NewData]);
    assert_ne!(run.log.place_of(3), Place::Disk(home));
    run.check();
}
