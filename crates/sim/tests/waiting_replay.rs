//! Recordings replayed on modelled devices: what waits for what, and what the drive's cache does.

use std::path::{Path, PathBuf};

use agewell_core::Operation::{self, Flush, Read, Write};
use agewell_disk::DeviceParameters;
use agewell_sim::waiting_replay::{ReplayOptions, Replayed, replay};
use agewell_trace::record::flag;
use agewell_trace::{BlockBatch, BlockRow, TIME_MISSING, write_requests};
use proptest::prelude::*;
use serde_json::json;

const SECTORS: u64 = 1 << 20;

/// A request: when it was made and done, what, and where.
type Asked = (u64, u64, Operation, u64, u32);

fn recording(folder: &Path, asked: &[Asked]) -> PathBuf {
    let mut batch = BlockBatch::default();
    for (enqueue_ns, finish_ns, operation, sector, sectors) in asked {
        batch.push(BlockRow {
            enqueue_ns: *enqueue_ns,
            start_ns: *enqueue_ns,
            finish_ns: *finish_ns,
            device: 0,
            sector: *sector,
            sectors: *sectors,
            operation: *operation as u8,
            flags: flag::SYNCHRONOUS,
            client: 0,
        });
    }
    let path = folder.join("recording.parquet");
    write_requests(&path, &mut batch).expect("it can be written");
    path
}

fn catalogue() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices"))
}

fn on(parameters: &DeviceParameters, asked: &[Asked], write_cache_bytes: u64) -> Replayed {
    let folder = tempfile::tempdir().unwrap();
    let options = ReplayOptions { first_sector: 0, sectors: SECTORS, write_cache_bytes };
    replay(&recording(folder.path(), asked), parameters, &options, &mut |_| true).unwrap()
}

fn disk() -> DeviceParameters {
    DeviceParameters::find("seagate-st2000dm006", &catalogue()).unwrap()
}

/// A disk on which every request takes 1 ms and what its bytes take at 512 MB/s.
fn simple() -> DeviceParameters {
    let value = json!({
        "name": "simple", "title": "simple", "kind": "simple", "capacity_sectors": SECTORS,
        "simple": { "access_time_ms": 1.0, "bandwidth": "512 MB/s" },
        "sources": {},
    });
    DeviceParameters::from_value("[device]", value).unwrap_or_else(|why| panic!("{why}"))
}

/// Reads at scattered places, each made when the one before it was done, or all at once.
fn reads(count: u64, at_once: bool) -> Vec<Asked> {
    (0..count)
        .map(|number| {
            let begin = if at_once { 0 } else { number * 10 };
            (begin, begin + 5 + number, Read, number * 7919 * 8 % SECTORS, 8)
        })
        .collect()
}

#[test]
fn each_request_costs_what_the_device_says() {
    let asked = [(0, 10, Read, 0, 1000), (20, 30, Write, 5000, 1000), (40, 50, Flush, 0, 0)];
    let done = on(&simple(), &asked, 0);
    assert_eq!([done.reads.time.0, done.writes.time.0], [2_000_000; 2]);
    assert_eq!(done.time().0, 4_000_000 + done.flushes.time.0);
    assert_eq!([done.reads.sectors, done.writes.command_sectors], [1000; 2]);
}

#[test]
fn what_was_made_together_is_served_together() {
    let one_by_one = on(&disk(), &reads(64, false), 0).time().0;
    let together = on(&disk(), &reads(64, true), 0).time().0;
    assert!(together * 10 < one_by_one * 7, "{together} of {one_by_one}");
}

#[test]
fn how_fast_the_recorded_device_was_does_not_matter() {
    let slower: Vec<Asked> = reads(32, false)
        .into_iter()
        .map(|(begin, end, operation, sector, sectors)| {
            (begin * 100, end * 100, operation, sector, sectors)
        })
        .collect();
    assert_eq!(on(&disk(), &reads(32, false), 0), on(&disk(), &slower, 0));
}

/// Rounds of a write of one block to the same place, a flush behind each if that is wanted.
fn rewrites(rounds: u64, flushed: bool) -> Vec<Asked> {
    let mut asked = Vec::new();
    for round in 0..rounds {
        asked.push((round * 20, round * 20 + 5, Write, 4096, 8));
        if flushed {
            asked.push((round * 20 + 10, round * 20 + 15, Flush, 0, 0));
        }
    }
    asked
}

#[test]
fn a_flush_brings_to_the_medium_what_the_cache_would_have_written_once() {
    let cache = 1 << 20;
    let kept = on(&disk(), &rewrites(20, false), cache);
    assert_eq!((kept.writes.requests, kept.writes.commands), (20, 1));
    assert_eq!(kept.flushes.commands, 1, "at the end of the recording");
    let flushed = on(&disk(), &rewrites(20, true), cache);
    assert_eq!((flushed.writes.commands, flushed.flushes.requests), (20, 20));
    // The same place comes round once a turn of 8.3 ms.
    assert!(flushed.time().0 > 19 * 8_300_000, "{flushed:?}");
    assert!(kept.time().0 < 40_000_000, "{kept:?}");
}

#[test]
fn the_cache_joins_neighbours_and_holds_no_more_than_it_has_room_for() {
    let asked: Vec<Asked> =
        (0..64).rev().map(|block| (64 - block, 1000 + block, Write, block * 8, 8)).collect();
    let joined = on(&disk(), &asked, 1 << 20);
    assert_eq!((joined.writes.commands, joined.writes.command_sectors), (1, 512));
    // Sixteen blocks fit; with the seventeenth all of them are written.
    let full = on(&disk(), &asked, 16 * 4096);
    assert_eq!((full.writes.commands, full.writes.command_sectors), (4, 512));
}

#[test]
fn what_never_reached_the_device_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut batch = BlockBatch::default();
    let row = BlockRow {
        enqueue_ns: 0,
        start_ns: TIME_MISSING,
        finish_ns: TIME_MISSING,
        device: 0,
        sector: 0,
        sectors: 8,
        operation: Write as u8,
        flags: 0,
        client: 0,
    };
    batch.push(row);
    batch.push(BlockRow { start_ns: 1, finish_ns: 2, ..row });
    let path = folder.path().join("recording.parquet");
    write_requests(&path, &mut batch).unwrap();
    let options = ReplayOptions { first_sector: 0, sectors: SECTORS, write_cache_bytes: 0 };
    let done = replay(&path, &disk(), &options, &mut |_| true).unwrap();
    assert_eq!((done.never_made, done.writes.requests), (1, 1));
}

#[test]
fn what_cannot_be_replayed_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = recording(folder.path(), &[(0, 1, Read, 0, 8), (2, TIME_MISSING, Read, 0, 8)]);
    let said = |parameters: &DeviceParameters, options: ReplayOptions| {
        let said = replay(&path, parameters, &options, &mut |_| true).unwrap_err().to_string();
        assert!(!said.contains('\n'), "{said}");
        said
    };
    let options = ReplayOptions { first_sector: 0, sectors: SECTORS, write_cache_bytes: 0 };
    assert!(said(&disk(), options).contains("request 1 has no time"));
    assert!(said(&disk(), ReplayOptions { sectors: 4, ..options }).contains("beyond the end"));
    let far = ReplayOptions { first_sector: u64::MAX, ..options };
    assert!(said(&disk(), far).contains("does not fit"));
    let zoned = DeviceParameters::find("hgst-hsh721415ale6m0", &catalogue()).unwrap();
    assert!(said(&zoned, options).contains("zone by zone"));
    assert!(said(&simple(), ReplayOptions { first_sector: 1, ..options }).contains("does not fit"));
}

proptest! {
    /// Whatever the times, every request is done, and what is on the medium was written.
    #[test]
    fn every_request_is_done(
        drawn in prop::collection::vec((0_u64..500, 1_u64..200, 0_u8..4, 0_u64..4000, 1_u32..64), 1..80),
        cache in 0_u64..200_000,
    ) {
        let mut asked: Vec<Asked> = drawn
            .into_iter()
            .map(|(begin, length, code, sector, sectors)| {
                let operation = Operation::from_code(code).unwrap();
                let sectors = if operation == Flush { 0 } else { sectors };
                (begin, begin + length, operation, sector, sectors)
            })
            .collect();
        asked.sort_by_key(|request| request.0);
        let done = on(&disk(), &asked, cache);
        let count = |wanted: Operation| asked.iter().filter(|each| each.2 == wanted).count() as u64;
        prop_assert_eq!(
            [done.reads.requests, done.writes.requests, done.flushes.requests],
            [count(Read), count(Write), count(Flush)]
        );
        let written: u64 = asked.iter().filter(|each| each.2 == Write).map(|each| u64::from(each.4)).sum();
        prop_assert!(done.writes.command_sectors <= written);
        prop_assert_eq!(done.writes.command_sectors > 0, written > 0);
        prop_assert_eq!(done.flushes.commands > 0, written > 0);
    }
}
