//! The report's method on a real week of the report's own machine, without disk or queue: only
//! cylinder distances.
//!
//! Oracle: measured outside this project on disk 0 of the trace `hplajw_1week.srt` (1992-05-30, the
//! machine of trace E), in arrival order: mean distance of consecutive requests 210.71 cylinders
//! with 31.6 % zero; shuffling whole cylinders daily with aged(0.8) brings the mean near 94, and
//! the mean seek by the header's curve from 8.2 to 5.8 ms.

// A test says on the terminal why it was skipped, and what it measured.
#![allow(clippy::print_stderr)]

use std::path::Path;

use agewell_core::{Operation, RandomStreams, Sector, SectorCount, SimDuration, SimTime};
use agewell_shuffle::{QuantumGrid, RemapKind, ShuffleConfig, Shuffler};

const TRACE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/block/hplajw_1week.srt.zst");
const CYLINDERS: u64 = 1449;
/// 8 heads of 113 sectors of 256 bytes.
const CYLINDER_SECTORS: u64 = 8 * 113 / 2;
const RECORD_BYTES: usize = 56;

/// Enqueue time and cylinder of every request to disk 0; `None` where the trace is not at hand.
fn requests() -> Option<Vec<(SimTime, u64)>> {
    if !Path::new(TRACE).exists() {
        eprintln!("skipped: {TRACE} is not there");
        return None;
    }
    let packed = std::fs::read(TRACE).expect("the trace is readable");
    let bytes = zstd::decode_all(packed.as_slice()).expect("the trace is intact");
    let header = bytes.iter().position(|byte| *byte == b'\x0c').expect("a header ends in FF");
    let mut requests = Vec::new();
    for record in bytes[header + 1..].chunks_exact(RECORD_BYTES) {
        let word = |index: usize| {
            let bytes = record[4 * index..4 * index + 4].try_into().expect("four bytes");
            u64::from(u32::from_be_bytes(bytes))
        };
        let (seconds, microseconds, sector, device) = (word(2), word(3), word(7), word(8));
        if (device >> 8).trailing_zeros() >= 8 {
            requests.push((SimTime((seconds * 1_000_000 + microseconds) * 1000), sector / 904));
        }
    }
    Some(requests)
}

/// The header's curve: `seekparms = {616, 3450, 597, 10840, 12, 2500}`.
fn seek_ms(distance: u64) -> f64 {
    match distance {
        0 => 0.0,
        1 => 2.5,
        2..616 => 3.45 + 0.597 * (distance as f64).sqrt(),
        _ => 10.84 + 0.012 * distance as f64,
    }
}

#[derive(Debug)]
struct Arm {
    mean_cylinders: f64,
    zero_fraction: f64,
    mean_seek_ms: f64,
}

fn replay(requests: &[(SimTime, u64)], config: &ShuffleConfig) -> Arm {
    let all = SectorCount(CYLINDERS * CYLINDER_SECTORS);
    let grid = QuantumGrid::new(all, all, Sector(0), SectorCount(CYLINDER_SECTORS))
        .expect("the disk has cylinders");
    let streams = RandomStreams::new(1);
    let mut shuffler =
        Shuffler::on_grid(config, grid, SimDuration::ZERO, &streams).expect("it fits");
    let mut arm: Option<u64> = None;
    let (mut distance_sum, mut zeros, mut seek_sum) = (0, 0_u64, 0.0);
    for (now, cylinder) in requests {
        while shuffler.due(*now) {
            shuffler.rearrange();
        }
        let sector = Sector(cylinder * CYLINDER_SECTORS);
        shuffler.observe(*now, Operation::Read, sector, SectorCount(1));
        let piece = shuffler.map(sector, SectorCount(1)).next().expect("one sector");
        let place = piece.sector.0 / CYLINDER_SECTORS;
        if let Some(arm) = arm {
            let distance = arm.abs_diff(place);
            distance_sum += distance;
            zeros += u64::from(distance == 0);
            seek_sum += seek_ms(distance);
        }
        arm = Some(place);
    }
    let seeks = (requests.len() - 1) as f64;
    Arm {
        mean_cylinders: distance_sum as f64 / seeks,
        zero_fraction: zeros as f64 / seeks,
        mean_seek_ms: seek_sum / seeks,
    }
}

#[test]
fn daily_cylinder_shuffling_brings_the_arm_where_the_oracle_says() {
    let Some(requests) = requests() else { return };
    let unshuffled = replay(&requests, &ShuffleConfig::default());
    assert!((unshuffled.mean_cylinders - 210.71).abs() < 0.01, "{unshuffled:?}");
    assert!((unshuffled.zero_fraction - 0.316).abs() < 0.0005, "{unshuffled:?}");
    assert!((unshuffled.mean_seek_ms - 8.2).abs() < 0.05, "{unshuffled:?}");

    // The plain algorithm arranges unaccessed cylinders as well, like the oracle; ties differ.
    let plain = ShuffleConfig {
        kind: RemapKind::Shuffle,
        arrange_unaccessed: true,
        ..ShuffleConfig::default()
    };
    let shuffled = replay(&requests, &plain);
    assert!((shuffled.mean_cylinders - 94.0).abs() < 3.0, "{shuffled:?}");
    assert!((shuffled.mean_seek_ms - 5.8).abs() < 0.1, "{shuffled:?}");
    // Whole cylinders move, so the same requests stay on their cylinder, but for the ones that span
    // a rearrangement.
    let zeros_differ = (shuffled.zero_fraction - unshuffled.zero_fraction) * requests.len() as f64;
    assert!(zeros_differ.abs() < 6.5, "{shuffled:?}");

    // Leaving the unaccessed ones alone keeps neighbours together, and does better.
    let ours = replay(&requests, &ShuffleConfig { kind: RemapKind::Shuffle, ..Default::default() });
    assert!(ours.mean_cylinders < shuffled.mean_cylinders, "{ours:?}");

    let random = ShuffleConfig { kind: RemapKind::Random, interval: None, ..Default::default() };
    let random = replay(&requests, &random);
    assert!(random.mean_cylinders > unshuffled.mean_cylinders, "{random:?}");
    eprintln!("unshuffled {unshuffled:?}\nplain {shuffled:?}\nours {ours:?}\nrandom {random:?}");
}
