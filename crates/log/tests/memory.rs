//! Memory of a log, as the operating system counts it; alone in its process for that.

#![allow(clippy::print_stdout, reason = "it says what it measured, or why it could not")]

use agewell_core::{RandomStreams, uniform_below};
use agewell_log::policy::cost::CostModel;
use agewell_log::policy::placement::{LifeTable, Placement};
use agewell_log::{Log, LogSetting, LogShape, Unpriced, Victim};

const BLOCKS: u32 = 1 << 21;
const SEGMENT_BLOCKS: u32 = 512;
const LOGS: usize = 12;

/// Bytes of this process that are in memory, where the system reports them.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Bytes a live block of a log at 85 % that has been updated as often as it has blocks.
fn bytes_per_block<P: Placement>(
    placement: impl FnOnce(usize) -> P,
    victim: Victim,
) -> Option<f64> {
    let before = resident_bytes()?;
    let segments = (f64::from(BLOCKS / SEGMENT_BLOCKS) / 0.85).ceil() as u32;
    let setting = LogSetting {
        victim,
        reserve_segments: LOGS as u32,
        ..LogSetting::plain(
            LogShape::uniform(segments, SEGMENT_BLOCKS).unwrap(),
            BLOCKS,
            CostModel {
                access_ns: 15_000_000,
                further_ns: 15_000_000,
                bandwidth_bytes_per_s: 5_000_000,
                block_bytes: 4096,
            },
        )
    };
    let mut log = Log::new(setting, placement(BLOCKS as usize)).unwrap();
    let mut stream = RandomStreams::new(1).stream("updates");
    for block in 0..BLOCKS {
        log.write(block, 0, &mut Unpriced).unwrap();
    }
    for _ in 0..BLOCKS {
        let block = uniform_below(&mut stream, u64::from(BLOCKS)) as u32;
        log.write(block, 0, &mut Unpriced).unwrap();
    }
    let after = resident_bytes()?;
    assert_eq!(log.live_blocks(), u64::from(BLOCKS));
    Some((after - before) as f64 / f64::from(BLOCKS))
}

/// At most 16 bytes a live block and a bit a slot, the placement included: the one that keeps the
/// most for each block. One log only, because memory that is given back need not leave the process.
#[test]
fn a_live_block_takes_16_bytes_at_most() {
    let Some(bytes) = bytes_per_block(|blocks| LifeTable::new(blocks, LOGS), Victim::Renewal)
    else {
        println!("skipped: this system does not tell a process's memory");
        return;
    };
    println!("{bytes:.2} bytes a live block");
    // No less than the map, the owners and what the placement keeps, or it has not been seen.
    assert!(bytes > 4.0 + 4.0 / 0.85 + 6.0, "{bytes} bytes a live block");
    assert!(bytes < 16.0 + 1.0 / 8.0 / 0.85, "{bytes} bytes a live block");
}
