//! The host against a device whose times can be computed by hand.

use agewell_core::{RandomStreams, uniform_below};
use agewell_disk::{DeviceModel, DeviceParameters};

use super::*;

/// 10 ms a request, 1,000,000 bytes a second: a sector takes 512 us.
fn device() -> DeviceModel {
    let text = r#"
name = "by-hand"
title = "A device for tests"
kind = "simple"
capacity_sectors = 100000

[sources]
capacity_sectors = "chosen by us"
simple = "chosen by us"

[simple]
access_time_ms = 10.0
bandwidth = "1 MB/s"
"#;
    DeviceModel::new(&DeviceParameters::from_toml("by-hand", text).expect("a device"))
}

fn parameters() -> HostParameters {
    HostParameters {
        discipline: Discipline::CLook,
        queue_sectors_max: 64,
        transfer_sectors_max: 64,
        buffer_sectors: 16,
        buffers: 4,
        request_cpu: SimDuration(0),
        turnaround: SimDuration(0),
        copy_bytes_per_s: 0,
        read_ahead: true,
        update_interval: SimDuration(0),
    }
}

fn host(change: impl Fn(&mut HostParameters)) -> FileHost {
    let mut parameters = parameters();
    change(&mut parameters);
    FileHost::new(parameters, device())
}

const ACCESS: u64 = 10_000_000;
const SECTOR: u64 = 512_000;

#[test]
fn a_synchronous_write_holds_up_and_an_asynchronous_one_does_not() {
    let mut host = host(|_| ());
    host.write_synchronously(0, 2);
    assert_eq!(host.now().0, ACCESS + 2 * SECTOR);
    host.write_asynchronously(100, 10);
    host.write_asynchronously(150, 10);
    assert_eq!(host.now().0, ACCESS + 2 * SECTOR);
    // Behind both, as the driver does not know which request is waited for.
    host.write_synchronously(200, 1);
    assert_eq!(host.now().0, 4 * ACCESS + 23 * SECTOR);
    assert_eq!(host.accounts().writes, Spent { requests: 4, sectors: 23, busy_ns: host.now().0 });
}

#[test]
fn a_full_queue_holds_its_writer_up() {
    let mut host = host(|_| ());
    for place in 0..6 {
        host.write_asynchronously(place * 1000, 16);
    }
    assert_eq!(
        host.now().0,
        ACCESS + 16 * SECTOR,
        "one is served, four wait, the sixth waits for the first"
    );
    host.drain();
    assert_eq!(host.now().0, 6 * (ACCESS + 16 * SECTOR));
}

#[test]
fn the_update_daemon_is_due_once_an_interval() {
    let mut host = host(|parameters| parameters.update_interval = SimDuration(1000));
    assert!(!host.update_due());
    host.compute(SimDuration(2500));
    assert!(host.update_due() && !host.update_due());
    host.compute(SimDuration(999));
    assert!(!host.update_due());
    host.compute(SimDuration(1));
    assert!(host.update_due());
}

#[test]
fn large_requests_are_split() {
    let mut host = host(|_| ());
    host.write_synchronously(0, 150);
    assert_eq!(host.now().0, 3 * ACCESS + 150 * SECTOR);
    assert_eq!(host.accounts().writes.requests, 3);
}

#[test]
fn delayed_writes_of_a_buffer_go_out_once() {
    let mut host = host(|_| ());
    for _ in 0..100 {
        host.write_delayed(32, 2);
        host.write_delayed(36, 4);
    }
    assert_eq!(host.now().0, 0);
    host.flush();
    assert_eq!(host.accounts().writes.requests, 2);
    assert_eq!(host.accounts().writes.sectors, 6);
    host.flush();
    assert_eq!(host.accounts().writes.requests, 2, "nothing is dirty any more");
}

#[test]
fn what_is_evicted_dirty_is_written() {
    let mut host = host(|_| ());
    for buffer in 0..10 {
        host.write_delayed(buffer * 16, 16);
    }
    host.drain();
    assert_eq!(host.accounts().writes.requests, 6);
    host.flush();
    assert_eq!(host.accounts().writes.requests, 10);
}

#[test]
fn what_is_in_the_cache_is_not_read_again_and_parts_are_told_apart() {
    let mut host = host(|_| ());
    host.read(0, 8);
    host.read(2, 4);
    assert_eq!(host.accounts().reads.requests, 1);
    host.read(8, 8);
    assert_eq!(host.accounts().reads.requests, 2, "the other half of the buffer");
    host.read(0, 16);
    assert_eq!(host.accounts().reads.requests, 2);
    host.drop_cache();
    host.read(0, 1);
    assert_eq!(host.accounts().reads.requests, 3);
}

#[test]
fn read_ahead_hides_the_copying() {
    // Copying a cluster takes as long as reading it.
    let sequential = |read_ahead| {
        let mut host = host(|parameters| {
            parameters.read_ahead = read_ahead;
            parameters.copy_bytes_per_s = 16 * 512 * 1_000_000_000 / (ACCESS + 16 * SECTOR);
        });
        for cluster in 0..8 {
            host.read_next(cluster * 16, 16);
        }
        host.finish_reading();
        host.now().0 as f64 / (ACCESS + 16 * SECTOR) as f64
    };
    let (with, without) = (sequential(true), sequential(false));
    assert!((with - 9.0).abs() < 0.01, "reading, and copying the last: {with}");
    assert!((without - 16.0).abs() < 0.01, "both in turn: {without}");
}

#[test]
fn a_waiting_request_is_issued_after_the_turnaround() {
    let mut host = host(|parameters| parameters.turnaround = SimDuration(1_000_000));
    host.write_asynchronously(0, 1);
    host.write_asynchronously(10, 1);
    host.write_asynchronously(20, 1);
    host.drain();
    assert_eq!(host.now().0, 3 * (ACCESS + SECTOR) + 2 * 1_000_000);
}

/// Whatever is asked in whatever order: what is dirty is in the cache or was handed out, once, and
/// what the cache says it holds was put there and not evicted since.
#[test]
fn nothing_dirty_is_lost_and_nothing_is_made_up() {
    for seed in 0..300 {
        let mut stream = RandomStreams::new(seed).stream("buffers");
        // None at all, or at least the four that one request can touch.
        let capacity = if seed % 7 == 0 { 0 } else { 3 + (seed % 7) as usize };
        let mut buffers = Buffers::new(capacity, 200, 16);
        let mut dirty = vec![false; 2000];
        let mut known = vec![false; 2000];
        for _ in 0..300 {
            let sector = uniform_below(&mut stream, 1900) as usize;
            let sectors = 1 + uniform_below(&mut stream, 40) as usize;
            let (touched, size) = (sector..sector + sectors, (sector as u64, sectors as u64));
            let out = match uniform_below(&mut stream, 5) {
                0 => {
                    dirty[touched.clone()].fill(false);
                    known[touched].fill(true);
                    buffers.written(size.0, size.1)
                }
                1 => {
                    known[touched].fill(true);
                    buffers.filled(size.0, size.1)
                }
                2 => {
                    dirty[touched.clone()].fill(true);
                    known[touched].fill(true);
                    buffers.dirtied(size.0, size.1)
                }
                3 => {
                    let held = buffers.holds(size.0, size.1);
                    assert!(!held || known[touched].iter().all(|known| *known));
                    Vec::new()
                }
                _ => buffers.take_dirty(),
            };
            for (first, length) in out {
                let run = &mut dirty[first as usize..(first + length) as usize];
                assert!(run.iter().all(|dirty| *dirty), "written twice, or never dirty");
                run.fill(false);
            }
        }
        for (first, length) in buffers.take_dirty() {
            dirty[first as usize..(first + length) as usize].fill(false);
        }
        assert!(dirty.iter().all(|dirty| !dirty), "seed {seed}");
    }
}

#[test]
fn the_time_of_the_device_is_the_sum_over_its_requests() {
    let mut stream = RandomStreams::new(1).stream("file host");
    let mut host = host(|parameters| parameters.buffers = 3);
    for _ in 0..2000 {
        let sector = uniform_below(&mut stream, 90_000);
        let sectors = 1 + uniform_below(&mut stream, 40);
        match uniform_below(&mut stream, 5) {
            0 => host.write_synchronously(sector, sectors),
            1 => host.write_asynchronously(sector, sectors),
            2 => host.read(sector, sectors),
            3 => host.read_next(sector, sectors),
            _ => host.write_delayed(sector, sectors),
        }
    }
    host.flush();
    let accounts = *host.accounts();
    let (requests, sectors) = (
        accounts.reads.requests + accounts.writes.requests,
        accounts.reads.sectors + accounts.writes.sectors,
    );
    assert_eq!(accounts.busy_ns(), requests * ACCESS + sectors * SECTOR);
    assert!(accounts.busy_ns() <= host.now().0);
}
