//! Transfers a second whose times are recorded, and that are priced by the fit; fits a second.
//!
//! The transfers are those of a log that threads: a few holes of a segment, then another segment.
//! Bound by: recording searches an ordered map of the pairs of kinds seen, some thousands; pricing
//! loads two values of a table of 130 KB.

#![allow(clippy::print_stderr, reason = "a benchmark prints a hash of what it did")]

use std::hint::black_box;

use agewell_core::{RandomStreams, uniform_below};
use agewell_log::policy::cost::CostModel;
use agewell_log::{BlockDevice, Comes, CostMeter, Purpose, Spread, Transfer, TransferTimes};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const TRANSFERS: u32 = 1 << 16;

const DISK: CostModel = CostModel {
    access_ns: 15_000_000,
    further_ns: 5_500_000,
    bandwidth_bytes_per_s: 5_000_000,
    block_bytes: 4096,
};

/// Runs of one to four blocks in holes of segments of 256, a sixteenth of them in another one.
fn transfers() -> Vec<Transfer> {
    let mut stream = RandomStreams::new(1).stream("transfers");
    let mut below = |bound| uniform_below(&mut stream, bound) as u32;
    let mut slot = 0;
    let mut next = |_| {
        slot = if below(16) == 0 { below(1 << 10) << 8 } else { slot + below(24) };
        let transfer = Transfer::of_blocks(Purpose::Thread, slot, 1 + below(4));
        slot += transfer.blocks;
        transfer
    };
    (0..TRANSFERS).map(&mut next).collect()
}

/// Time of a transfer by its distance from the one before.
fn time_ns(number: usize) -> u64 {
    agewell_core::mix(number as u64) % 20_000_000
}

fn noted(transfers: &[Transfer]) -> TransferTimes {
    let mut times = TransferTimes::new(DISK);
    for (number, transfer) in transfers.iter().enumerate() {
        times.note(transfer, time_ns(number), Comes::Next);
    }
    times
}

fn learning(criterion: &mut Criterion) {
    let transfers = transfers();
    let times = noted(&transfers);
    let learnt = CostMeter::learnt(DISK, Some(&times), Spread::NONE);
    let priced = |mut meter: CostMeter| {
        for transfer in &transfers {
            meter.transfer(transfer, &[]);
        }
        meter.total_ns()
    };
    eprintln!("{TRANSFERS} transfers are priced at {} ns", priced(learnt.clone()));
    let mut group = criterion.benchmark_group("transfer_times");
    group.throughput(Throughput::Elements(u64::from(TRANSFERS)));
    group.bench_function("note", |bencher| bencher.iter(|| noted(black_box(&transfers))));
    group.bench_function("price", |bencher| bencher.iter(|| priced(black_box(learnt.clone()))));
    group.throughput(Throughput::Elements(1));
    group.bench_function("fit", |bencher| bencher.iter(|| black_box(&times).prices()));
    group.finish();
}

criterion_group!(benches, learning);
criterion_main!(benches);
