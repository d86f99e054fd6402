//! Where what is sent is all or nothing, no collection falls amid it, whatever the load and the mechanism.

use agewell_core::{RandomStreams, uniform_below};
use agewell_log::policy::mechanism::{Collect, Mechanism};
use agewell_log::policy::placement::NoSeparation;
use agewell_log::{BlockDevice, Call, Log, LogSetting, LogShape, Purpose, Transfer};
use proptest::prelude::*;

use crate::case::DISK;

const SEGMENT_BLOCKS: u32 = 16;

/// Notes what is collected, and whether that was amid a sync.
#[derive(Debug, Default)]
struct Watching {
    is_amid_sync: bool,
    collected: u32,
    collected_amid: u32,
}

impl BlockDevice for Watching {
    fn transfer(&mut self, transfer: &Transfer, _contents: &[u32]) {
        let collects = !matches!(transfer.purpose, Purpose::NewData | Purpose::Thread);
        self.collected += u32::from(collects);
        self.collected_amid += u32::from(collects && self.is_amid_sync);
    }
}

/// Fills a log so far, then updates it, `sync_blocks` blocks at a time at most.
fn run(
    setting: &LogSetting,
    full: f64,
    sync_blocks: u64,
    seed: u64,
) -> (Watching, Log<NoSeparation>) {
    let mut log = Log::new(setting.clone(), NoSeparation).unwrap();
    let mut device = Watching::default();
    let mut random = RandomStreams::new(seed).stream("updates");
    let spare = u64::from(setting.reserve_segments + 2) * u64::from(SEGMENT_BLOCKS);
    // Each send may lose a slot to its record.
    let records = if setting.record_slots == 0 { 0.0 } else { 0.3 };
    let usable = (setting.shape.capacity_blocks() - spare) as f64 * (1.0 - records);
    let blocks = ((usable * full) as u32).max(1);
    let mut left = 0;
    for step in 0..blocks * 4 {
        let block =
            if step < blocks { step } else { uniform_below(&mut random, u64::from(blocks)) as u32 };
        log.carry_out(Call::Write { block, client: 0 }, &mut device).unwrap();
        if left == 0 {
            device.is_amid_sync = true;
            log.sync(0, &mut device).unwrap();
            device.is_amid_sync = false;
            left = uniform_below(&mut random, sync_blocks);
        } else {
            left -= 1;
        }
    }
    log.verify();
    assert_eq!(log.live_blocks(), u64::from(blocks), "nothing is lost");
    (device, log)
}

fn setting(
    segments: u32,
    mechanism: Mechanism,
    record_slots: u32,
    whole_syncs: bool,
) -> LogSetting {
    let shape = LogShape::uniform(segments, SEGMENT_BLOCKS).unwrap();
    LogSetting {
        buffer_blocks: SEGMENT_BLOCKS,
        collect: Collect::Always(mechanism),
        record_slots,
        whole_syncs,
        ..LogSetting::plain(shape, segments * SEGMENT_BLOCKS, DISK)
    }
}

proptest! {
    #[test]
    fn no_collection_falls_amid_a_sync(
        segments in 8_u32..60,
        full in 0.3_f64..1.0,
        mechanism in prop::sample::select(Mechanism::ALL.to_vec()),
        record_slots in 0_u32..2,
        sync_blocks in 1_u64..15,
        seed in any::<u64>(),
    ) {
        let setting = setting(segments, mechanism, record_slots, true);
        let (device, _) = run(&setting, full, sync_blocks, seed);
        prop_assert_eq!(device.collected_amid, 0);
    }
}

#[test]
fn without_it_collections_fall_amid_syncs() {
    let amid = |whole_syncs| {
        let setting = setting(40, Mechanism::Clean, 1, whole_syncs);
        let (device, log) = run(&setting, 0.95, 12, 1);
        assert!(device.collected > 0 && log.counts().cleaned_blocks > 0, "it is full enough");
        device.collected_amid
    };
    assert!(amid(false) > 0);
    assert_eq!(amid(true), 0);
}
