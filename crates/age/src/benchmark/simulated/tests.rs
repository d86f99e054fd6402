//! Benchmarks on a device whose times can be computed by hand.

use agewell_core::RandomStreams;
use agewell_disk::DeviceParameters;
use agewell_disk::queue::Discipline;
use serde_json::json;

use super::*;
use crate::simulated_layout::{AnyFileSystem, LayoutSetup};

/// 10 ms a request, 1,000,000 bytes a second.
fn device() -> DeviceModel {
    let text = r#"
name = "by-hand"
title = "A device for tests"
kind = "simple"
capacity_sectors = 1000000

[sources]
capacity_sectors = "chosen by us"
simple = "chosen by us"

[simple]
access_time_ms = 10.0
bandwidth = "1 MB/s"
"#;
    DeviceModel::new(&DeviceParameters::from_toml("by-hand", text).expect("a device"))
}

fn host() -> HostParameters {
    HostParameters {
        discipline: Discipline::CLook,
        queue_sectors_max: 4096,
        transfer_sectors_max: 128,
        buffer_sectors: 16,
        buffers: 64,
        request_cpu: SimDuration(0),
        turnaround: SimDuration(0),
        copy_bytes_per_s: 0,
        read_ahead: true,
        update_interval: SimDuration(0),
    }
}

fn file_system() -> AnyFileSystem {
    let log =
        json!({"kind": "lfs", "size": "200 MiB", "segment_size": "1 MiB", "collect": "clean"});
    LayoutSetup::read(log).expect("a layout").build().expect("a file system")
}

fn seconds(requests: u64, bytes: u64) -> u64 {
    requests * 10_000_000 + bytes * 1000
}

#[test]
fn the_raw_device_pays_for_every_transfer() {
    let (device, file_system) = (device(), file_system());
    let cpu = OperationCpu::default();
    let bench = Bench { file_system: &file_system, device: &device, host: host(), cpu };
    let mut stream = RandomStreams::new(1).stream("bench");
    let (read, write) = bench.raw(1 << 20, &mut stream).expect("a device");
    assert_eq!(read.time_ns, seconds(16, 1 << 20));
    assert_eq!(write.time_ns, seconds(16, 1 << 20));
    assert!((read.mb_per_s() - f64::from(1 << 20) / read.time_ns as f64 * 1e3).abs() < 1e-9);
}

#[test]
fn a_log_writes_files_together_and_reads_them_one_by_one() {
    let (device, file_system) = (device(), file_system());
    let cpu = OperationCpu { file: SimDuration(1_000_000) };
    let bench = Bench { file_system: &file_system, device: &device, host: host(), cpu };
    let mut stream = RandomStreams::new(1).stream("bench");
    let plan = SequentialPlan::new(16 << 10, 1 << 20, 25, false);
    let found = bench.sequential(&plan, &mut stream).expect("room");
    // Two blocks a file; one file is in the making when half a megabyte is due to be written.
    assert_eq!(found.layout, LayoutCounts { optimal: 63, counted: 64 });
    assert_eq!(found.create.bytes, 1 << 20);
    // 128 blocks of data, and a few of inodes, directories and summaries, 64 KiB at a time.
    let writes = found.create.accounts.writes;
    assert!((128 * 16..160 * 16).contains(&writes.sectors), "{writes:?}");
    assert!((17..26).contains(&writes.requests), "{writes:?}");
    // Each file by itself, and the blocks of inodes.
    let reads = found.read.accounts.reads;
    assert!((64..72).contains(&reads.requests), "{reads:?}");
    assert_eq!(found.overwrite.bytes, 1 << 20);
    for phase in [found.create, found.read, found.overwrite] {
        assert!(phase.accounts.busy_ns() <= phase.time_ns);
        let (accounts, sum) = (phase.accounts, phase.accounts.busy_ns());
        let requests = accounts.reads.requests + accounts.writes.requests;
        let sectors = accounts.reads.sectors + accounts.writes.sectors;
        assert_eq!(sum, seconds(requests, sectors * 512));
    }
    // The one that was aged is as it was.
    assert_eq!(file_system.usage_bytes().0, file_system.clone().usage_bytes().0);
    assert_eq!(file_system.layout_counts(), (0, 0));
}

#[test]
fn syncing_each_file_costs_a_write_of_each() {
    let (device, file_system) = (device(), file_system());
    let cpu = OperationCpu::default();
    let bench = Bench { file_system: &file_system, device: &device, host: host(), cpu };
    let plan = SequentialPlan::new(16 << 10, 1 << 20, 25, true);
    let mut stream = RandomStreams::new(1).stream("bench");
    let found = bench.sequential(&plan, &mut stream).expect("room");
    assert!(found.create.accounts.writes.requests >= 64);
}

#[test]
fn files_that_do_not_fit_are_an_error() {
    let (device, file_system) = (device(), file_system());
    let cpu = OperationCpu::default();
    let bench = Bench { file_system: &file_system, device: &device, host: host(), cpu };
    let plan = SequentialPlan::new(1 << 20, 1 << 30, 25, false);
    let mut stream = RandomStreams::new(1).stream("bench");
    let refused = bench.sequential(&plan, &mut stream).expect_err("too large");
    assert_eq!(
        refused.to_string(),
        "the benchmark cannot write a file: no space left on the file system"
    );
}
