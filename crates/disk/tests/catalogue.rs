//! The device catalogue against its own rules and against published figures that its files do not hold.

mod documented;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use agewell_core::{BlockRequest, Operation, RandomStreams, Sector, SectorCount, SimTime};
use agewell_disk::parameters::{
    FlashParameters, MechanicalParameters, PageTimes, Placement, SimpleParameters, missing_sources,
};
use agewell_disk::queue::{Discipline, Queue, QueueEntry};
use agewell_disk::{
    Device, DeviceKind, DeviceParameters, Flash, Mechanical, Medium, Service, Simple,
    catalogue_names,
};
use documented::documented;
use rand_core::Rng;

/// The devices every release carries.
const PROMISED: [&str; 29] = [
    "dec-dsp3105",
    "flash-sata-tlc",
    "fujitsu-m2361a",
    "hgst-hsh721415ale6m0",
    "hgst-hus728t8tale6l4",
    "hp-7935h",
    "hp-7937h",
    "hp-97560",
    "hp-c2200a",
    "hp-c2204a",
    "hp-c2247a",
    "hp-c2249a",
    "hp-c3323a",
    "hp-sunos-1995",
    "matthews-baseline",
    "matthews-fast",
    "matthews-sprite",
    "patterson-1998",
    "samsung-970-pro",
    "seagate-st118202lw",
    "seagate-st15150n",
    "seagate-st2000dm006",
    "seagate-st32171w",
    "seagate-st32430n",
    "seagate-st34501n",
    "seagate-st3450857ss",
    "seagate-st41600n",
    "seagate-st41601n",
    "seagate-st8000as0002",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn catalogue() -> PathBuf {
    repository().join("devices")
}

fn load(name: &str) -> DeviceParameters {
    DeviceParameters::find(name, &catalogue()).expect("a catalogue file that loads")
}

fn mechanical(name: &str) -> MechanicalParameters {
    match load(name).kind {
        DeviceKind::Mechanical(parameters) => *parameters,
        _ => panic!("{name} is not mechanical"),
    }
}

fn simple(name: &str) -> SimpleParameters {
    match load(name).kind {
        DeviceKind::Simple(parameters) => parameters,
        _ => panic!("{name} is not simple"),
    }
}

/// Mean over all pairs of different cylinders.
fn average_seek_ms(parameters: &MechanicalParameters) -> f64 {
    let cylinders = parameters.geometry.cylinders;
    let mut sum = 0.0;
    for distance in 1..cylinders {
        sum += f64::from(2 * (cylinders - distance)) * parameters.seek.ms(distance);
    }
    sum / (f64::from(cylinders) * f64::from(cylinders - 1))
}

fn within(name: &str, got: f64, published: f64, tolerance: f64) {
    let error = got / published - 1.0;
    assert!(error.abs() <= tolerance, "{name}: {got} against {published}, {:+.2} %", 100.0 * error);
}

#[test]
fn every_promised_device_is_there_and_no_other() {
    assert_eq!(catalogue_names(&catalogue()).expect("the catalogue"), PROMISED);
}

#[test]
fn every_file_loads_under_its_own_name_and_every_number_has_a_source() {
    for name in PROMISED {
        let device = load(name);
        assert_eq!(device.name, name);
        let text = std::fs::read_to_string(catalogue().join(format!("{name}.toml")))
            .expect("a readable file");
        let table: toml::Table = text.parse().expect("TOML");
        assert_eq!(missing_sources(&table), Vec::<String>::new(), "{name}: numbers without source");
        for (key, source) in &device.sources {
            let top = key.split('.').next().unwrap_or_default();
            assert!(table.contains_key(top), "{name}: a source for '{key}', which is not there");
            assert!(source.len() > 10, "{name}: the source of {key} is only '{source}'");
        }
    }
}

#[test]
fn capacities_are_the_published_ones() {
    // MB (10^6). Ruemmler & Wilkes 1991, table 3 (HP); Seltzer et al. 1995 and Smith & Seltzer 1996, table 1;
    // DiskSim block counts; drive labels for the rest. A C2204A is two mechanisms of 1.3 GB together.
    let published = [
        ("hp-7935h", 404.0),
        ("hp-7937h", 571.0),
        ("hp-c2200a", 335.0),
        ("hp-c2204a", 1300.0 / 2.0),
        ("hp-97560", 1370.0),
        ("dec-dsp3105", 1050.0),
        ("seagate-st32430n", 2149.0),
        ("hp-c2247a", 1052.0),
        ("hp-c3323a", 1052.0),
        ("seagate-st34501n", 4550.0),
        ("seagate-st2000dm006", 2_000_399.0),
        ("seagate-st3450857ss", 450_000.0),
        ("hgst-hus728t8tale6l4", 8_001_563.0),
        ("hgst-hsh721415ale6m0", 15_000_173.0),
        ("seagate-st8000as0002", 8_001_563.0),
        ("samsung-970-pro", 512_110.0),
        ("flash-sata-tlc", 500_108.0),
    ];
    for (name, mb) in published {
        let bytes = SectorCount(load(name).capacity_sectors).bytes();
        within(name, bytes as f64 / 1e6, mb, if name == "hp-c2204a" { 0.035 } else { 0.005 });
    }
}

#[test]
fn a_longer_seek_never_takes_noticeably_less_time() {
    for name in PROMISED {
        let kind = load(name).kind;
        let Medium::Mechanical(parameters) = kind.medium() else { continue };
        let mut longest = 0.0_f64;
        for distance in 1..parameters.geometry.cylinders {
            let ms = parameters.seek.ms(distance);
            // Measured curves scatter; the largest dip is 0.235 ms (HP C3323A, 4 to 5 cylinders).
            assert!(ms > longest - 0.24, "{name}: {ms} ms at {distance} after {longest} ms");
            longest = longest.max(ms);
        }
    }
}

#[test]
fn average_seeks_are_near_the_published_ones() {
    // The averages of Ruemmler & Wilkes 1991, table 3, were measured; their formulas give 5.6 % less, 3.6 % more,
    // 7.5 % less and 1.2 % less on these drives. The C2200A's file holds the correction, found from its trace.
    let report = [
        ("hp-7935h", 24.0, 0.06),
        ("hp-7937h", 20.5, 0.04),
        ("hp-c2204a", 17.0, 0.08),
        ("hp-c2200a", 17.0, 0.002),
        ("hp-97560", 13.0, 0.015),
    ];
    // Data sheets and papers; the curves of these files are built to have the published average.
    let others = [
        ("dec-dsp3105", 9.5, 0.002),
        ("hp-sunos-1995", 11.5, 0.002),
        ("seagate-st32430n", 11.0, 0.002),
        ("seagate-st3450857ss", 3.4, 0.002),
    ];
    for (name, published, tolerance) in report.into_iter().chain(others) {
        within(name, average_seek_ms(&mechanical(name)), published, tolerance);
    }
}

#[test]
fn transfer_times_are_those_of_matthews_table_2_5() {
    // Name, 8 KB and 1 MB transfers in ms. The paper's kilobyte is 1024 bytes, its megabyte 2^20 (or 10^6 for the 1998
    // row, which is why that one is off by more); it rounds to three figures.
    let table = [
        ("fujitsu-m2361a", 28.3, 425.0, 0.06),
        ("seagate-st41600n", 18.9, 244.0, 0.1),
        ("seagate-st15150n", 13.1, 123.0, 0.1),
        ("seagate-st118202lw", 9.3, 43.5, 0.1),
    ];
    for (name, small_ms, large_ms, tolerance) in table {
        let disk = Simple::new(&simple(name), SectorCount(load(name).capacity_sectors));
        within(name, disk.transfer_time(8192).as_ms(), small_ms, 0.015);
        within(name, disk.transfer_time(1 << 20).as_ms(), large_ms, tolerance);
    }
}

/// Response times of `count` random reads of `sectors`, one after the other, in ms, sorted.
fn random_reads_ms(device: &mut Mechanical, count: usize, sectors: u64) -> Vec<f64> {
    let mut random = RandomStreams::new(1).stream("random reads");
    let places = device.capacity().0 / sectors;
    let mut now = SimTime::ZERO;
    let mut times: Vec<f64> = (0..count)
        .map(|_| {
            let request = BlockRequest {
                enqueue: now,
                sector: Sector(random.next_u64() % places * sectors),
                sectors: SectorCount(sectors),
                operation: Operation::Read,
                synchronous: true,
            };
            let finish = device.serve(now, &request).finish;
            let time = (finish - now).as_ms();
            now = finish;
            time
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    times
}

/// Rate of reading 64 MiB from sector `from` on in requests of `sectors`, in MB/s.
fn sequential_mb_per_s(device: &mut Mechanical, from: u64, sectors: u64) -> f64 {
    const TOTAL: u64 = 64 * 2048;
    let mut now = SimTime::ZERO;
    for index in 0..TOTAL / sectors {
        let request = BlockRequest {
            enqueue: now,
            sector: Sector(from + index * sectors),
            sectors: SectorCount(sectors),
            operation: Operation::Read,
            synchronous: true,
        };
        now = device.serve(now, &request).finish;
    }
    SectorCount(TOTAL).bytes() as f64 / 1e6 / now.saturating_since(SimTime::ZERO).as_seconds()
}

#[test]
fn the_desktop_drive_reads_as_a_measured_one_does() {
    // One real ST2000DM006 (ublk-disksim, docs/VALIDATION.md and bench/expect/barracuda-2t.tsv), random 4 KiB reads:
    // median 17.4 ms; and 143 MB/s sequential. The seek curve is built on the mean and the 99th percentile of those
    // reads, the zones on the data sheet; so the median and the sequential rate are what this test can fail on.
    let parameters = mechanical("seagate-st2000dm006");
    let times = random_reads_ms(&mut Mechanical::new(&parameters), 20_000, 8);
    within("median of random reads", times[times.len() / 2], 17.4, 0.05);
    let capacity = load("seagate-st2000dm006").capacity_sectors;
    let middle = sequential_mb_per_s(&mut Mechanical::new(&parameters), capacity / 2, 2048);
    within("sequential rate at half the capacity", middle, 143.0, 0.15);
}

#[test]
fn the_fast_drive_reads_as_its_manual_says() {
    // Cheetah 15K.7 manual: average seek 3.4 ms, latency 2.0 ms, sustained 122 to 204 MB/s.
    let parameters = mechanical("seagate-st3450857ss");
    let times = random_reads_ms(&mut Mechanical::new(&parameters), 20_000, 8);
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    within("mean random read", mean, 3.4 + 2.0 + 0.2, 0.03);
    // Measured by Wong (2019): 15,047.7 turns a minute, tracks of 1,800 to 1,028 sectors, 595,848 of them on 6 surfaces,
    // a skew of 1/15 - 0.0006 of a turn, at most 7.3 ms to get to a track.
    let turns_a_minute = 60e12 / parameters.rotation_period_ps as f64;
    within("turns a minute", turns_a_minute, 15_047.7, 0.001);
    let geometry = &parameters.geometry;
    let [first, .., last] = &geometry.zones[..] else { panic!("several zones") };
    within("outermost track", f64::from(first.sectors_per_track), 1800.0, 0.02);
    within("innermost track", f64::from(last.sectors_per_track), 1028.0, 0.02);
    within("tracks", f64::from(geometry.surfaces * geometry.cylinders), 595_848.0, 0.001);
    for zone in &geometry.zones {
        let skew = zone.cylinder_skew / f64::from(zone.sectors_per_track);
        assert!((skew - (1.0 / 15.0 - 0.0006)).abs() < 0.01, "skew of {skew} of a turn");
    }
    within("full stroke", parameters.seek.ms(geometry.cylinders - 1) + 0.2, 7.3, 0.05);
    let capacity = load("seagate-st3450857ss").capacity_sectors;
    let outer = sequential_mb_per_s(&mut Mechanical::new(&parameters), 0, 2048);
    within("outer sustained rate", outer, 204.0, 0.1);
    let inner = sequential_mb_per_s(&mut Mechanical::new(&parameters), capacity - 64 * 2048, 2048);
    within("inner sustained rate", inner, 122.0, 0.1);
}

#[test]
fn the_disks_of_matthews_chapter_6_have_the_figures_he_gives() {
    // Matthews 1999, §6.2: HP 97560 about 19 ms (a random seek and half a rotation) and 2.10 MB/s; HP C3323A about 14 ms
    // and 4.0 MB/s on average. His own runs gave these; they round, and use other seek averages than the pairs here.
    for (name, access_ms, mb_per_s) in [("hp-97560", 19.0, 2.10), ("hp-c3323a", 14.0, 4.0)] {
        let parameters = mechanical(name);
        let half_turn_ms = parameters.rotation_period_ps as f64 / 2e9;
        within("access time", average_seek_ms(&parameters) + half_turn_ms, access_ms, 0.09);
        let capacity = load(name).capacity_sectors;
        let rates = [0, 1, 2, 3].map(|quarter| {
            let from = quarter * (capacity - 64 * 2048) / 3;
            sequential_mb_per_s(&mut Mechanical::new(&parameters), from, 128)
        });
        within("bandwidth", rates.iter().sum::<f64>() / 4.0, mb_per_s, 0.06);
    }
}

#[test]
fn writes_reported_early_do_not_outrun_the_medium_for_long() {
    // 512 MB through a 128 KB buffer; a track of 72 sectors of 512 bytes passes in 14.993 ms.
    let mut device = Mechanical::new(&mechanical("hp-97560"));
    let mut now = SimTime::ZERO;
    for index in 0..4096 {
        let request = BlockRequest {
            enqueue: now,
            sector: Sector(index * 256),
            sectors: SectorCount(256),
            operation: Operation::Write,
            synchronous: true,
        };
        now = device.serve(now, &request).finish;
    }
    let rate =
        SectorCount(4096 * 256).bytes() as f64 / now.saturating_since(SimTime::ZERO).as_seconds();
    let medium = 72.0 * 512.0 / 14.993e-3;
    assert!((0.8 * medium..medium).contains(&rate), "{rate} B/s, the medium passes {medium}");
}

/// Completed random reads a second of `sectors` with `depth` always waiting.
fn queued_reads_per_s(device: &mut Mechanical, discipline: Discipline, depth: u64) -> f64 {
    const COUNT: u64 = 20_000;
    let mut random = RandomStreams::new(1).stream("queued reads");
    let places = device.capacity().0 / 8;
    let mut queue = Queue::new(discipline);
    let mut now = SimTime::ZERO;
    for sequence in 0..COUNT + depth {
        let sector = Sector(random.next_u64() % places * 8);
        let request = BlockRequest {
            enqueue: now,
            sector,
            sectors: SectorCount(8),
            operation: Operation::Read,
            synchronous: true,
        };
        queue.push(QueueEntry { sequence, cylinder: device.cylinder_of(sector), request });
        if sequence >= depth {
            let entry = queue.pop(now, device).expect("the queue is never empty");
            now = device.serve(now, &entry.request).finish;
        }
    }
    COUNT as f64 / now.saturating_since(SimTime::ZERO).as_seconds()
}

#[test]
fn the_large_drive_reads_as_its_specification_says() {
    // ublk-disksim, bench/expect/hgst-7k8.tsv. The curve is built on the 8.0 ms, the zones on the
    // 205 MB/s; how 32 waiting requests fare and what a write and a flush take is not in the file.
    let parameters = mechanical("hgst-hus728t8tale6l4");
    let times = random_reads_ms(&mut Mechanical::new(&parameters), 20_000, 8);
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    within("mean random read", mean, 12.2, 0.03);
    let outer = sequential_mb_per_s(&mut Mechanical::new(&parameters), 0, 2048);
    within("outer sustained rate", outer, 205.0, 0.1);
    // "Typical 7200 rpm SATA" with 32 waiting: 200 a second, to 15 per cent.
    let drive = || Mechanical::new(&parameters);
    let nearest = queued_reads_per_s(&mut drive(), Discipline::Sptf, 32);
    within("32 waiting, shortest positioning first", nearest, 200.0, 0.15);
    let in_order = queued_reads_per_s(&mut drive(), Discipline::Fcfs, 32);
    assert!(in_order < 0.5 * nearest, "{in_order} in order, {nearest} nearest first");
}

fn flash(name: &str) -> FlashParameters {
    match load(name).kind {
        DeviceKind::Flash(parameters) => parameters,
        _ => panic!("{name} is not flash"),
    }
}

/// Random reads of 4 KiB a second, `depth` of them always under way.
fn flash_reads_per_s(parameters: &FlashParameters, depth: u32) -> f64 {
    const COUNT: usize = 40_000;
    let mut device = Flash::new(&FlashParameters { queue_depth: depth, ..*parameters });
    let mut random = RandomStreams::new(1).stream("random reads");
    let places = device.capacity().0 / 8;
    let requests: Vec<BlockRequest> = (0..COUNT)
        .map(|_| BlockRequest {
            enqueue: SimTime::ZERO,
            sector: Sector(random.next_u64() % places * 8),
            sectors: SectorCount(8),
            operation: Operation::Read,
            synchronous: true,
        })
        .collect();
    let mut services = Vec::new();
    device.serve_together(SimTime::ZERO, &requests, &mut services);
    let finish = services.iter().map(|service| service.finish).max().expect("requests");
    COUNT as f64 / finish.saturating_since(SimTime::ZERO).as_seconds()
}

/// Rate of moving 256 MiB in requests of 128 KiB, in batches of `depth`, in MB/s.
fn flash_streaming_mb_per_s(parameters: &FlashParameters, operation: Operation, depth: u64) -> f64 {
    const SECTORS: u64 = 256;
    const TOTAL: u64 = 2048 * 256;
    let mut device = Flash::new(parameters);
    let mut now = SimTime::ZERO;
    let mut services = Vec::new();
    for first in (0..TOTAL / SECTORS).step_by(depth as usize) {
        let requests: Vec<BlockRequest> = (first..first + depth)
            .map(|number| BlockRequest {
                enqueue: now,
                sector: Sector(number * SECTORS),
                sectors: SectorCount(SECTORS),
                operation,
                synchronous: true,
            })
            .collect();
        services.clear();
        device.serve_together(now, &requests, &mut services);
        now = services.iter().map(|service| service.finish).max().expect("requests");
    }
    SectorCount(TOTAL).bytes() as f64 / 1e6 / now.saturating_since(SimTime::ZERO).as_seconds()
}

#[test]
fn flash_drives_do_about_what_such_drives_are_rated_at() {
    // Samsung 970 PRO 512 GB: 3500 and 2300 MB/s. Its parameters are those of NVMeVirt, which were
    // found by measuring one; nothing here was moved. Its predecessor 960 EVO is rated at 14,000
    // random reads a second, one at a time.
    let nvme = flash("samsung-970-pro");
    let sata = flash("flash-sata-tlc");
    within("970 PRO, one read at a time", flash_reads_per_s(&nvme, 1), 14_000.0, 0.1);
    // 370,000 with 128 under way, from four threads, whose requests do not wait for each other.
    let threads = FlashParameters { request_overhead_ns: nvme.request_overhead_ns / 4, ..nvme };
    within("970 PRO, 128 reads under way", flash_reads_per_s(&threads, 128), 370_000.0, 0.15);
    let reads = flash_streaming_mb_per_s(&nvme, Operation::Read, 32);
    within("970 PRO, long reads", reads, 3500.0, 0.15);
    let writes = flash_streaming_mb_per_s(&nvme, Operation::Write, 32);
    within("970 PRO, long writes", writes, 2300.0, 0.25);
    // Samsung 860 EVO: 550 and 520 MB/s, 98,000 random reads a second with 32 waiting. Only the link
    // and the 10,000 a second at depth 1 went into the file.
    within("SATA, one read at a time", flash_reads_per_s(&sata, 1), 10_000.0, 0.01);
    // The cost of a command on the link beside its data is not modelled: 37 % above.
    within("SATA, 32 reads under way", flash_reads_per_s(&sata, 32), 98_000.0, 0.4);
    let reads = flash_streaming_mb_per_s(&sata, Operation::Read, 32);
    within("SATA, long reads", reads, 550.0, 0.05);
    let writes = flash_streaming_mb_per_s(&sata, Operation::Write, 32);
    within("SATA, long writes", writes, 520.0, 0.1);
}

#[test]
fn splitting_alone_foretells_a_published_curve() {
    // FragPicker, README: reading a file in pieces on an Optane drive, which has no dies to collide:
    // 724 MB/s in pieces of 4 KB, 1396 of 32 KB, 1728 of 128 KB. The request overhead follows from
    // the first and the last (as in the flash drives of the catalogue), the link from the last; the
    // one between is what this can fail on.
    let window = 131_072.0;
    let (small_us, large_us) = (window / 724.0, window / 1728.0);
    let overhead_us = (small_us - large_us) / 31.0;
    let nvme = flash("samsung-970-pro");
    assert!((nvme.request_overhead_ns as f64 / 1e3 - overhead_us).abs() < 0.05, "{overhead_us}");
    let optane = FlashParameters {
        read: PageTimes::alike(0),
        command_ns: 0,
        channel_bytes_per_s: 1 << 40,
        link_bytes_per_s: (window / (large_us - overhead_us) * 1e6) as u64,
        placement: Placement::CollisionFree,
        ..nvme
    };
    for (piece_sectors, published, tolerance) in
        [(8, 724.0, 0.01), (64, 1396.0, 0.1), (256, 1728.0, 0.01)]
    {
        let mut device = Flash::new(&optane);
        let mut now = SimTime::ZERO;
        for piece in 0..4096 {
            let request = BlockRequest {
                enqueue: now,
                sector: Sector(piece * piece_sectors),
                sectors: SectorCount(piece_sectors),
                operation: Operation::Read,
                synchronous: true,
            };
            now = device.serve(now, &request).finish;
        }
        let bytes = SectorCount(4096 * piece_sectors).bytes() as f64;
        let rate = bytes / 1e6 / now.saturating_since(SimTime::ZERO).as_seconds();
        within("MB/s", rate, published, tolerance);
    }
}

/// Writes of others between two pieces of a file.
#[derive(Clone, Copy)]
enum Between {
    /// Nothing: the file is in one piece.
    Nothing,
    /// Up to 128 KiB, by chance.
    Chance,
    /// The rest of a page on every die, so that the next piece comes to the same die again.
    Stripe,
}

/// A file of 164 MB in 10,011 pieces of 16 KiB, about as Jun et al. 2024 fragmented an SQLite
/// database; the rate of reading it in requests of 128 KiB or a piece, in MB/s: those of 1 MiB
/// issued as a batch, or one after another.
fn fragmented_file_mb_per_s(parameters: &FlashParameters, between: Between, together: bool) -> f64 {
    const PIECES: u64 = 10_011;
    const PIECE_SECTORS: u64 = 32;
    const PIECES_TOGETHER: usize = 64;
    const PIECES_IN_REQUEST: usize = 8;
    let mut device = Flash::new(parameters);
    let mut random = RandomStreams::new(1).stream("what others write between");
    let mut now = SimTime::ZERO;
    let request = |operation, sector, sectors| BlockRequest {
        enqueue: SimTime::ZERO,
        sector: Sector(sector),
        sectors: SectorCount(sectors),
        operation,
        synchronous: true,
    };
    let stripe_sectors = u64::from(parameters.dies()) * parameters.page_bytes / 512;
    let mut places = Vec::new();
    let mut next = 0;
    for _ in 0..PIECES {
        places.push(next);
        let sectors = PIECE_SECTORS
            + match between {
                Between::Nothing => 0,
                Between::Chance => 8 * (1 + random.next_u64() % 32),
                Between::Stripe => stripe_sectors - PIECE_SECTORS,
            };
        now = device.serve(now, &request(Operation::Write, next, sectors)).finish;
        next += sectors;
    }
    now = device.serve(now, &request(Operation::Flush, 0, 0)).finish;
    let began = now;
    let mut services = Vec::new();
    for window in places.chunks(PIECES_TOGETHER) {
        let in_request = match between {
            Between::Nothing => PIECES_IN_REQUEST,
            _ => 1,
        };
        let requests: Vec<BlockRequest> = window
            .chunks(in_request)
            .map(|run| request(Operation::Read, run[0], PIECE_SECTORS * run.len() as u64))
            .collect();
        services.clear();
        if together {
            device.serve_together(now, &requests, &mut services);
        } else {
            for request in &requests {
                let issue = services.last().map_or(now, |before: &Service| before.finish);
                services.push(device.serve(issue, request));
            }
        }
        now = services.iter().map(|service| service.finish).max().expect("requests");
    }
    SectorCount(PIECES * PIECE_SECTORS).bytes() as f64
        / 1e6
        / now.saturating_since(began).as_seconds()
}

#[test]
fn both_explanations_of_fragmentation_can_be_told_apart() {
    let mut table = String::from(
        "| drive | what is modelled | one piece, together | up to 128 KiB between, together | all on \
         one die, together | one piece, one by one | up to 128 KiB between, one by one |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for name in ["samsung-970-pro", "flash-sata-tlc"] {
        let all = flash(name);
        let all_types = all.read.types().len();
        let no_splitting = FlashParameters { request_overhead_ns: 0, command_ns: 0, ..all };
        let no_collisions = FlashParameters { placement: Placement::CollisionFree, ..all };
        let neither = FlashParameters { placement: Placement::CollisionFree, ..no_splitting };
        let rates = |parameters: &FlashParameters| {
            [
                (Between::Nothing, true),
                (Between::Chance, true),
                (Between::Stripe, true),
                (Between::Nothing, false),
                (Between::Chance, false),
            ]
            .map(|(between, together)| fragmented_file_mb_per_s(parameters, between, together))
        };
        let [all, collisions, splitting, nothing] =
            [all, no_splitting, no_collisions, neither].map(|parameters| rates(&parameters));
        let rows = [("both", all), ("collisions only", collisions)]
            .into_iter()
            .chain([("splitting only", splitting), ("neither", nothing)]);
        for (what, rates) in rows {
            let name = if what == "both" { format!("`{name}`") } else { String::new() };
            let rates = rates.map(|rate| format!("{rate:.0}")).join(" | ");
            writeln!(table, "| {name} | {what} | {rates} |").expect("a string takes everything");
        }
        // Without either, a file in pieces reads like a whole one; where pages are of several types, a
        // batch that has more of the slow ones by chance ends a little later.
        let by_chance = if all_types == 1 { 0.005 } else { 0.02 };
        within(name, nothing[1], nothing[0], by_chance);
        within(name, nothing[2], nothing[0], by_chance);
        // Splitting alone does not care where the pieces lie; collisions alone do, and with them all
        // pieces on one die are read at about its rate, of half a page a sensing.
        within(name, splitting[2], splitting[1], 0.01);
        let one_die = 16_384.0 / no_splitting.read.mean_ns() as f64 * 1e3;
        within(name, collisions[2], one_die, 0.06);
        assert!(collisions[2] < 0.5 * nothing[2], "{collisions:?}");
        // Requests of a batch hide their overheads behind the link; one by one each counts.
        assert!(splitting[1] <= nothing[1], "{splitting:?}");
        let more_us = |rates: [f64; 5]| (1.0 / rates[4] - 1.0 / rates[3]) * 16_384.0 * 8.0;
        let overheads_us =
            (no_collisions.request_overhead_ns + no_collisions.command_ns) as f64 / 1e3;
        within(name, more_us(splitting) - more_us(nothing), 7.0 * overheads_us, 0.01);
        for pattern in 0..5 {
            assert!(all[pattern] <= splitting[pattern].min(collisions[pattern]) * 1.001);
        }
    }
    documented("docs/concepts/drives-of-today.md", "fragmentation", &table);
}

/// The catalogue as the table of docs/reference/devices.md.
fn documented_table() -> String {
    let mut text = String::from(
        "| name | device | capacity | rpm | cylinders x surfaces | sectors a track | seek: 1 cylinder, average, \
         full stroke | seek curve from |\n|---|---|---|---|---|---|---|---|\n",
    );
    let devices: BTreeMap<&str, DeviceParameters> =
        PROMISED.into_iter().map(|name| (name, load(name))).collect();
    for (name, device) in &devices {
        let capacity =
            format!("{:.0} MB", SectorCount(device.capacity_sectors).bytes() as f64 / 1e6);
        let dash = || "-".to_owned();
        if let DeviceKind::Flash(flash) = &device.kind {
            let seek = format!(
                "flash: {} dies on {} channels, {} us a page of {} KiB, {} MB/s",
                flash.dies(),
                flash.channels,
                flash.read.mean_ns() as f64 / 1e3,
                flash.page_bytes / 1024,
                flash.read_bytes_per_s() / 1_000_000
            );
            let title = &device.title;
            writeln!(text, "| `{name}` | {title} | {capacity} | - | - | - | {seek} | |")
                .expect("a string takes everything");
            continue;
        }
        let (rpm, cylinders, sectors, seek, source) = match device.kind.medium() {
            Medium::Simple(parameters) => {
                let access = parameters.access_time_ns as f64 / 1e6;
                let bandwidth = parameters.bandwidth_bytes_per_s as f64 / 1e6;
                let seek = format!("simple: {access} ms a transfer, {bandwidth} MB/s");
                let source =
                    device.sources.get("simple").or(device.sources.get("simple.access_time_ms"));
                (dash(), dash(), dash(), seek, source)
            }
            Medium::Mechanical(parameters) => {
                let geometry = &parameters.geometry;
                let zones = &geometry.zones;
                let (outer, inner) =
                    (zones[0].sectors_per_track, zones[zones.len() - 1].sectors_per_track);
                let sectors = if outer == inner {
                    format!("{outer} x {} B", parameters.sector_bytes)
                } else {
                    format!(
                        "{outer} to {inner} x {} B, {} zones",
                        parameters.sector_bytes,
                        zones.len()
                    )
                };
                let seek = format!(
                    "{:.2}, {:.2}, {:.2} ms",
                    parameters.seek.ms(1),
                    average_seek_ms(parameters),
                    parameters.seek.ms(geometry.cylinders - 1)
                );
                (
                    format!("{:.0}", 60e12 / parameters.rotation_period_ps as f64),
                    format!("{} x {}", geometry.cylinders, geometry.surfaces),
                    sectors,
                    seek,
                    device.sources.get("seek.points_ms").or(device.sources.get("seek")),
                )
            }
        };
        let source = source.map_or("", |source| source.split([';', ':', '(']).next().unwrap_or(""));
        let source = source.trim().trim_end_matches(',');
        writeln!(
            text,
            "| `{name}` | {} | {capacity} | {rpm} | {cylinders} | {sectors} | {seek} | {source} |",
            device.title
        )
        .expect("a string takes everything");
    }
    text
}

#[test]
fn the_documentation_lists_the_catalogue_as_it_is() {
    documented("docs/reference/devices.md", "catalogue", &documented_table());
}
