//! Prices learnt from the device: what they say of a load is what the device then takes for it, and the
//! choice that follows from them is the cheapest on that device.

use std::path::Path;

use agewell_disk::DeviceParameters;
use agewell_log::policy::cost::CostModel;
use agewell_log::policy::mechanism::{Collect, Mechanism};
use agewell_log::policy::placement::NoSeparation;
use agewell_log::{CostMeter, Log, LogSetting, LogShape, Spread, TransferTimes};
use agewell_store::device::{Disk, MemoryDisk, ModelledDisk};
use agewell_store::{FormatOptions, Geometry, Means, OpenOptions, Store, SyncGap, Transaction};

use crate::simulation::{Updates, transactions};

const BLOCK_BYTES: u32 = 4096;
const SEGMENT_BLOCKS: u32 = 64;
const SEGMENTS: u32 = 160;
const DISK: &str = "seagate-st2000dm006";
const FLASH: &str = "flash-sata-tlc";
const SHINGLED: &str = "seagate-st8000as0002";

fn modelled(name: &str) -> ModelledDisk {
    let catalogue = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices");
    ModelledDisk::new(&DeviceParameters::find(name, &catalogue).unwrap())
}

fn format() -> FormatOptions {
    FormatOptions {
        block_bytes: BLOCK_BYTES,
        segment_blocks: SEGMENT_BLOCKS,
        ..FormatOptions::new([1; 16])
    }
}

fn data() -> Vec<u8> {
    vec![0x5a; BLOCK_BYTES as usize]
}

fn write<D: Disk>(store: &Store<D>, blocks: &[u32]) {
    let data = data();
    let writes = blocks.iter().map(|block| (*block, &data[..])).collect();
    store.write(&Transaction { writes, frees: Vec::new() }).unwrap();
    store.sync().unwrap();
}

fn blocks(full: f64) -> u32 {
    (f64::from(SEGMENTS * SEGMENT_BLOCKS) * full) as u32
}

/// A store on `disk`, filled in order.
fn filled<D: Disk>(disk: D, means: Means, full: f64) -> Store<D> {
    Store::format(&disk, &format()).unwrap();
    let store = Store::open(disk, &OpenOptions { means, ..OpenOptions::default() }).unwrap();
    let all: Vec<u32> = (0..blocks(full)).collect();
    all.chunks(SEGMENT_BLOCKS as usize - 1).for_each(|chunk| write(&store, chunk));
    store
}

fn on(name: &str, means: Means, full: f64) -> Store<ModelledDisk> {
    let bytes = Geometry::device_bytes(&format(), SEGMENTS).unwrap();
    filled(modelled(name).with_size(bytes), means, full)
}

/// What `load` takes on the device, ns.
fn taken(store: &Store<ModelledDisk>, load: &[Vec<u32>]) -> u64 {
    let before = store.disk().now();
    for blocks in load {
        write(store, blocks);
    }
    store.disk().now().0 - before.0
}

/// What `times` say that `load` takes, from its second half on; a rehearsal of all of it, as the choice of
/// a mechanism makes them.
fn priced(
    times: &TransferTimes,
    gap: SyncGap,
    mechanism: Mechanism,
    full: f64,
    load: &[Vec<u32>],
) -> u64 {
    let disk = CostModel { block_bytes: u64::from(BLOCK_BYTES), ..OpenOptions::default().prices };
    let shape = LogShape::uniform(SEGMENTS, SEGMENT_BLOCKS).unwrap();
    let setting = LogSetting {
        collect: Collect::Always(mechanism),
        buffer_blocks: SEGMENT_BLOCKS,
        reserve_segments: 2,
        record_slots: 1,
        threads_ahead: 24,
        ..LogSetting::plain(shape, blocks(full), disk)
    };
    let mut log = Log::new(setting, NoSeparation).unwrap();
    log.space_threads(gap.spacing_blocks, 0);
    let mut meter = CostMeter::learnt(disk, Some(times), Spread::NONE);
    let all: Vec<u32> = (0..blocks(full)).collect();
    let fill = all.chunks(SEGMENT_BLOCKS as usize - 1).map(<[u32]>::to_vec);
    let (first, second) = load.split_at(load.len() / 2);
    let mut before_ns = 0;
    for (number, blocks) in
        fill.chain(first.iter().cloned()).chain(second.iter().cloned()).enumerate()
    {
        if number == all.len().div_ceil(SEGMENT_BLOCKS as usize - 1) + first.len() {
            before_ns = meter.total_ns();
        }
        for block in blocks {
            meter.begin_call();
            log.write(block, 0, &mut meter).unwrap();
        }
        meter.begin_call();
        if mechanism == Mechanism::Thread {
            log.leave_gap(gap.gap_blocks);
        }
        log.sync(0, &mut meter).unwrap();
    }
    meter.total_ns() - before_ns
}

#[test]
fn learnt_prices_are_those_of_the_device() {
    let full = 0.85;
    let load = transactions(Updates::Random, blocks(full), blocks(full));
    for name in [DISK, FLASH] {
        for mechanism in Mechanism::ALL {
            let store = on(name, Means::Fixed(Collect::Always(mechanism)), full);
            let (first, second) = load.split_at(load.len() / 2);
            taken(&store, first);
            let times = store.transfer_times().unwrap();
            let did_ns = taken(&store, second);
            let said_ns = priced(&times, store.sync_gap(), mechanism, full, &load);
            let ratio = said_ns as f64 / did_ns as f64;
            println!("{name} {mechanism:?}: {did_ns} ns, priced {said_ns}: {ratio:.3}");
            assert!((0.8..=1.2).contains(&ratio), "{name}, {mechanism:?}: {ratio}");
        }
    }
}

#[test]
fn each_device_gets_the_mechanism_that_is_cheapest_there() {
    for name in [DISK, SHINGLED, FLASH] {
        let full = 0.8;
        let load = transactions(Updates::Random, blocks(full), blocks(full));
        let single = Mechanism::ALL.map(|mechanism| {
            taken(&on(name, Means::Fixed(Collect::Always(mechanism)), full), &load)
        });
        let store = on(name, Means::Adaptive, full);
        let ours = taken(&store, &load);
        let best = *single.iter().min().unwrap();
        println!("{name}: {single:?} ns, adaptive {ours} by {:?}", store.collect_rule());
        assert!(ours as f64 <= 1.05 * best as f64, "{name}: {ours} ns, {single:?}");
    }
}

#[test]
fn small_syncs_wait_for_no_turns_once_the_delay_is_learnt() {
    let load: Vec<Vec<u32>> = (0..1_000).map(|number| vec![number * 7 % blocks(0.5)]).collect();
    let by = |rotational_delay_ns| {
        let disk = on(DISK, Means::Adaptive, 0.5).close().unwrap();
        let options = OpenOptions { rotational_delay_ns, ..OpenOptions::default() };
        let store = Store::open(disk, &options).unwrap();
        (taken(&store, &load), store.sync_gap().gap_blocks)
    };
    let ((without, none), (ours, gap)) = (by(Some(0)), by(None));
    println!("{without} ns without gaps, {ours} with {gap} blocks");
    assert!(none == 0 && (5..40).contains(&gap), "{none}, {gap}");
    assert!(without > 1_000 * 8_000_000 && 3 * ours < without, "{without}, {ours} ns");
}

/// Nothing is known of threading, and what single writes take that are scattered says that it is dear.
#[test]
fn a_mechanism_is_tried_before_it_is_given_up() {
    let full = 0.8;
    let load = transactions(Updates::Random, blocks(full), blocks(full));
    let clean = Means::Fixed(Collect::Always(Mechanism::Clean));
    let disk = on(DISK, clean, full).close().unwrap();
    let store = Store::open(disk, &OpenOptions::default()).unwrap();
    assert_eq!(store.collect_rule(), Collect::Always(Mechanism::Clean), "it goes on as it did");
    let ours = taken(&store, &load);
    let cleaning = taken(&on(DISK, clean, full), &load);
    println!("{cleaning} ns, adaptive {ours}");
    assert_eq!(store.collect_rule(), Collect::Always(Mechanism::Thread));
    assert!(2 * ours < cleaning, "{ours}, {cleaning} ns");
}

#[test]
fn without_a_clock_the_choice_goes_by_the_options() {
    let bytes = Geometry::device_bytes(&format(), SEGMENTS).unwrap();
    let load = transactions(Updates::Random, blocks(0.8), 1000);
    let images = [0, 1].map(|_| {
        let store = filled(MemoryDisk::new(bytes), Means::Adaptive, 0.8);
        for blocks in &load {
            write(&store, blocks);
        }
        assert!(store.transfer_times().is_none());
        store.close().unwrap().image()
    });
    assert!(images[0] == images[1], "the same calls give the same bytes");
}
