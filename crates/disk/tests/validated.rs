//! The eight drives with measured traces, from their parameter files alone, against DiskSim 4.0 and against the figures
//! of docs/concepts/disk-model.md; and what those traces taught about reads, on a drive made for it.

// A skipped test says why.
#![allow(clippy::print_stdout)]

use std::path::{Path, PathBuf};

use agewell_core::{BlockRequest, Operation, Sector, SectorCount, SimTime};
use agewell_disk::validation::replay::Measured;
use agewell_disk::validation::{ValidationOptions, validate};
use agewell_disk::{Device, DeviceKind, DeviceParameters, Mechanical, Service, import};

fn shared(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(path)
}

/// A `.trace` of DiskSim: operation, buffer, block, blocks, response and think time in microseconds.
fn measured(path: &Path) -> Measured {
    let packed = std::fs::read(path).expect("a readable trace");
    let text = zstd::decode_all(packed.as_slice()).expect("a zstd file");
    let text = String::from_utf8(text).expect("a text");
    let mut trace = Measured::default();
    let mut now_ns = 0;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let ns = |field: &str| (field.parse::<f64>().expect("a time") * 1000.0).round() as u64;
        let operation = if fields[0] == "R" { Operation::Read } else { Operation::Write };
        trace.issue_ns.push(now_ns);
        trace.finish_ns.push(now_ns + ns(fields[4]));
        trace.sector.push(fields[2].parse().expect("a block"));
        trace.sectors.push(fields[3].parse().expect("a size"));
        trace.operation.push(operation as u8);
        now_ns += ns(fields[4]) + ns(fields[5]);
    }
    trace
}

struct Drive {
    trace: &'static str,
    specification: &'static str,
    /// DiskSim 4.0 on the same trace and file: demerit and paired RMS, ms.
    disksim: Option<(f64, f64)>,
    /// Ours, as in docs/concepts/disk-model.md.
    ours: (f64, f64),
}

const fn drive(
    trace: &'static str,
    specification: &'static str,
    disksim: Option<(f64, f64)>,
    ours: (f64, f64),
) -> Drive {
    Drive { trace, specification, disksim, ours }
}

#[allow(clippy::approx_constant)] // a demerit of 0.318 ms is no fraction of pi
const DRIVES: [Drive; 9] = [
    drive("hp_c2247a", "hp_c2247a", Some((0.090, 2.31)), (0.077, 2.156)),
    drive("hp_c3323a", "hp_c3323a", Some((0.306, 4.09)), (0.231, 4.041)),
    drive("hp_c3323a", "hp_c3323a_validate", Some((0.306, 4.09)), (0.239, 4.035)),
    drive("hp_c2490a", "hp_c2490a", Some((0.254, 3.02)), (0.121, 1.937)),
    drive("st41601n", "st41601n", None, (0.072, 1.565)),
    drive("cheetah4LP", "cheetah4LP", Some((0.318, 1.89)), (0.229, 1.863)),
    drive("barracuda", "barracuda", Some((0.348, 2.45)), (0.222, 2.378)),
    drive("atlas_III", "atlas_III", Some((0.378, 3.06)), (0.172, 2.719)),
    drive("ibm18es", "ibm18es", Some((0.136, 2.37)), (0.098, 2.308)),
];

#[test]
fn every_drive_is_nearer_than_disksim_and_as_near_as_the_documentation_says() {
    if !shared("validation").is_dir() {
        println!("skipped: the measured traces are not there");
        return;
    }
    for drive in &DRIVES {
        let file = shared(&format!("disk/{}.diskspecs", drive.specification));
        let imported = import::disksim(&file, None).expect("an importable specification");
        let trace = measured(&shared(&format!("validation/{}.trace.zst", drive.trace)));
        let options = ValidationOptions::default();
        let report =
            validate(&imported.parameters, &[trace], options, &mut || true).expect("a valid trace");
        let (demerit, paired) = (report.metrics["demerit_ms"], report.metrics["paired_rms_ms"]);
        let name = drive.specification;
        println!("{name}: demerit {demerit:.4}, paired RMS {paired:.4}");
        if let Some((disksim_demerit, disksim_paired)) = drive.disksim {
            assert!(demerit < disksim_demerit, "{name}: demerit {demerit}");
            assert!(paired < disksim_paired, "{name}: paired RMS {paired}");
        }
        assert!((demerit - drive.ours.0).abs() < 0.002, "{name}: demerit {demerit}");
        assert!((paired - drive.ours.1).abs() < 0.005, "{name}: paired RMS {paired}");
    }
}

/// 100 sectors a track, 6000 rpm, two surfaces, with the lines of `seek` and `buffer` as given.
fn made(seek: &str, buffer: &str) -> Mechanical {
    let text = format!(
        "name = \"d\"\ntitle = \"d\"\nkind = \"mechanical\"\nrpm = 6000\n\
         [geometry]\nsurfaces = 2\ncylinders = 100\n\
         [seek]\npoints_ms = [[1, 2.0], [99, 9.0]]\nhead_switch_ms = 0.5\n{seek}\n\
         [buffer]\n{buffer}\n\
         [[zone]]\nfirst_cylinder = 0\nlast_cylinder = 99\nsectors_per_track = 100\n"
    );
    let device = DeviceParameters::from_toml("d.toml", &text).expect("a device file");
    let DeviceKind::Mechanical(mechanical) = device.kind else { panic!("a mechanical drive") };
    Mechanical::new(&mechanical)
}

/// Reads eight sectors at each of `first`, 50 ms after the one before.
fn reads(mut drive: Mechanical, first: &[u64]) -> Vec<Service> {
    let mut now = 0;
    let mut read = |sector: &u64| {
        let request = BlockRequest {
            enqueue: SimTime(now),
            sector: Sector(*sector),
            sectors: SectorCount(8),
            operation: Operation::Read,
            synchronous: true,
        };
        let service = drive.serve(SimTime(now), &request);
        now = service.finish.0 + 50_000_000;
        service
    };
    first.iter().map(&mut read).collect()
}

fn hits(segment_sectors: u64, first: &[u64]) -> Vec<bool> {
    let buffer = format!(
        "segments = 6\nsegment_sectors = {segment_sectors}\nread_ahead = \"track-ahead\"\n\
         read_ahead_maximum_sectors = {segment_sectors}\nrequested_data = \"keep\""
    );
    reads(made("", &buffer), first).iter().map(|service| service.buffer_hit).collect()
}

#[test]
fn segments_smaller_than_a_track_are_for_readers_that_go_on() {
    // Quantum Atlas III: no read after a single one is a hit; every one near two in order is.
    assert_eq!(hits(64, &[1000, 1008, 1016, 1024, 1060]), [false, false, true, true, true]);
    assert_eq!(hits(64, &[1000, 1010, 1020]), [false, false, false]);
    assert_eq!(hits(64, &[1000, 1008, 1000, 1008]), [false, false, true, true]);
    // Far on: the stream had the room of all six segments, to the end of the next track.
    assert_eq!(hits(64, &[1000, 1008, 1150]), [false, false, true]);
    assert_eq!(hits(64, &[1000, 1008, 1300]), [false, false, false]);
    // A segment that holds a track is filled after the first read.
    assert_eq!(hits(200, &[1000, 1008, 1016]), [false, true, true]);
}

#[test]
fn a_read_on_the_cylinder_where_the_heads_rest_settles() {
    let buffer = "segments = 0";
    let seeks = |seek: &str| -> Vec<f64> {
        let served = reads(made(seek, buffer), &[1000, 1050, 1150, 9000]);
        served.iter().map(|service| service.seek.0 as f64 / 1e6).collect()
    };
    let (plain, settled) = (seeks(""), seeks("same_cylinder_ms = 1.2"));
    // The same track, the other head of the cylinder, another cylinder.
    assert_eq!(plain[1..3], [0.0, 0.5]);
    assert_eq!(settled[1..3], [1.2, 1.2]);
    assert_eq!(plain[3].to_bits(), settled[3].to_bits());
}
