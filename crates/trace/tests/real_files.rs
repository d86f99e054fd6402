//! Known facts about real traces, published with them or measured by others. Skipped, saying so,
//! where they are absent.
#![allow(clippy::print_stdout, reason = "a skipped test says why")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use agewell_trace::{BlockBatch, BlockTrace, Format, ReadOptions, TIME_MISSING, open_block_trace};

fn shared(name: &str) -> Option<PathBuf> {
    let path =
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")).join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: {name} is not here");
    None
}

fn read_all(name: &str) -> Option<(BlockTrace, BlockBatch)> {
    let path = shared(name)?;
    let mut trace = open_block_trace(&path, &ReadOptions::default()).expect("it opens");
    let (mut batch, mut all) = (BlockBatch::default(), BlockBatch::default());
    while trace.next_batch(&mut batch).expect("it reads") {
        batch.verify();
        all.extend_from(&batch, 0..batch.len());
    }
    Some((trace, all))
}

fn mean_ms(pairs: impl Iterator<Item = (u64, u64)>) -> f64 {
    let (mut count, mut sum) = (0_u64, 0_u64);
    for (from, to) in pairs {
        count += 1;
        sum += to - from;
    }
    sum as f64 / count as f64 / 1e6
}

fn reads(batch: &BlockBatch) -> usize {
    (0..batch.len()).filter(|&row| batch.operation[row] == 0).count()
}

#[test]
fn hplajw_week_has_its_published_counts_and_times() {
    let Some((trace, all)) = read_all("block/hplajw_1week.srt.zst") else { return };
    assert_eq!(trace.detected().format, Format::Srt);
    assert_eq!(all.len(), 44_519);
    assert_eq!(reads(&all), 13_040);
    let service = |wanted: Option<u8>| {
        mean_ms((0..all.len()).filter_map(|row| {
            let fits = wanted.is_none_or(|code| all.operation[row] == code);
            fits.then(|| (all.start_ns[row], all.finish_ns[row]))
        }))
    };
    assert!((service(None) - 25.09).abs() < 0.005, "{}", service(None));
    assert!((service(Some(0)) - 27.38).abs() < 0.005);
    assert!((service(Some(1)) - 24.14).abs() < 0.005);
    let response = mean_ms(all.enqueue_ns.iter().copied().zip(all.finish_ns.iter().copied()));
    assert!((response - 116.70).abs() < 0.01, "{response}");
    let mut sizes = BTreeMap::new();
    for &sectors in &all.sectors {
        *sizes.entry(sectors).or_insert(0) += 1;
    }
    assert_eq!(sizes[&16], 26_790);
    assert_eq!(sizes[&4], 9_191);
    assert_eq!(sizes[&2], 5_071);
    let on_disk = |disk| all.device.iter().filter(|&&device| device == disk).count();
    assert_eq!((on_disk(0), on_disk(1)), (42_252, 2_267));
    // Mean seek in cylinders of 904 sectors of 256 bytes, disk 0 in arrival order.
    let cylinders: Vec<i64> = (0..all.len())
        .filter(|&row| all.device[row] == 0)
        .map(|row| (all.sector[row] * 2 / 904) as i64)
        .collect();
    let seeks: Vec<i64> = cylinders.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let mean = seeks.iter().sum::<i64>() as f64 / seeks.len() as f64;
    assert!((mean - 210.71).abs() < 0.005, "{mean}");
    let drive = trace.metadata.devices[0].drive.as_ref().expect("a drive in the header");
    assert_eq!(drive.model.as_deref(), Some("hp335h"));
    assert_eq!(
        (drive.cylinders, drive.heads, drive.sectors_per_track, drive.sector_bytes),
        (Some(1449), Some(8), Some(113), Some(256))
    );
    let root = &trace.metadata.devices[0].partitions[0];
    assert_eq!((root.number, root.name.as_str(), root.records), (8, "/", 40_295));
    assert_eq!(trace.metadata.start_wall_ns, Some(707_184_186_000_000_000));
    assert_eq!(all.enqueue_ns[0], 0);
    assert_eq!(all.enqueue_ns[all.len() - 1] / 1_000_000_000, 603_064);
    let asynchronous = all.flags.iter().filter(|&&flags| flags & 2 != 0).count();
    assert_eq!(asynchronous, 1_448 + 15_981);
}

#[test]
fn the_version_7_hour_is_one_hour_of_77_devices() {
    let Some((trace, all)) = read_all("block/hp_hourly_03126.srt.bz2") else { return };
    assert_eq!(all.len(), 43_000);
    assert_eq!(trace.metadata.devices.len(), 77);
    assert_eq!(reads(&all), 10_568);
    let last_s = all.enqueue_ns[all.len() - 1] / 1_000_000_000;
    assert_eq!(last_s, 3699);
    // 2003-05-18 11:04:04 in California, from the header's local date.
    assert_eq!(trace.metadata.start_wall_zone.as_deref(), Some("-07:00"));
    let start_s = trace.metadata.start_wall_ns.expect("a date") / 1_000_000_000;
    assert_eq!(start_s, 1_053_281_044 - 7 * 3600);
    assert!(all.sector.iter().all(|&sector| sector < 18_400_000_000 / 512 + 4_000_000));
}

#[test]
fn the_vscsi_sample_is_two_hours_of_scsi_commands() {
    let Some((trace, all)) = read_all("block/cloudphysics_sample.vscsi.zst") else { return };
    assert_eq!(trace.detected().format, Format::Vscsi);
    assert_eq!(all.len(), 113_872);
    assert_eq!(reads(&all), 46_974);
    assert_eq!(all.enqueue_ns[all.len() - 1], 7_200_089_885_000);
}

#[test]
fn mqsim_and_disksim_ascii_are_told_apart() {
    let Some((trace, all)) = read_all("block/mqsim_tpcc_small.trace.zst") else { return };
    assert_eq!(trace.detected().format, Format::Mqsim);
    assert_eq!(all.len(), 6_999);
    assert_eq!((all.operation[0], all.enqueue_ns[0]), (1, 0));
    assert_eq!(trace.metadata.clock_start_ns, 938_513_000);
    let Some((trace, all)) = read_all("block/ssd_iozone_100k.trace.zst") else { return };
    assert_eq!(trace.detected().format, Format::DisksimAscii);
    assert_eq!((all.len(), reads(&all)), (100_000, 0));
    assert_eq!(trace.metadata.clock_start_ns, 5_265_313_000);
}

#[test]
fn validation_traces_have_their_measured_means() {
    for (name, count, mean) in [
        ("barracuda", 10_000, 6.627),
        ("cheetah4LP", 10_000, 5.328),
        ("hp_c2247a", 9_999, 15.298),
        ("hp_c3323a", 9_074, 15.765),
        ("st41601n", 9_999, 14.617),
    ] {
        let Some((trace, all)) = read_all(&format!("validation/{name}.trace.zst")) else { return };
        assert_eq!(trace.detected().format, Format::DisksimValidate, "{name}");
        // The published counts leave the last request out on some drives.
        assert!(all.len().abs_diff(count) <= 1, "{name}: {}", all.len());
        let measured = mean_ms(all.start_ns.iter().copied().zip(all.finish_ns.iter().copied()));
        assert!((measured - mean).abs() < 0.01, "{name}: {measured}");
        assert!(all.finish_ns.iter().all(|&finish| finish != TIME_MISSING));
    }
}
