//! Bytes and requests a second of the readers and of the conversion to Parquet.
//!
//! Inputs are made in memory from a fixed seed, so that figures compare between machines; the work
//! is bound by the parsing of fields (text), by copying (binary) and by the encoder's thread
//! (Parquet).

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Cursor;

use agewell_trace::{BlockBatch, Format, OutputFormat, ReadOptions, convert, read_block_trace};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const REQUESTS: u64 = 200_000;

/// Marsaglia's xorshift64 (2003): enough for addresses.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn msr(requests: u64) -> String {
    let (mut text, mut state) = (String::new(), 0x9e37_79b9_7f4a_7c15);
    for row in 0..requests {
        let time = 128_166_372_003_061_629 + row * 20_000 + next(&mut state) % 10_000;
        let kind = if next(&mut state).is_multiple_of(3) { "Read" } else { "Write" };
        let offset = next(&mut state) % 60_000_000 * 512;
        let size = (1 + next(&mut state) % 16) * 4096;
        let response = next(&mut state) % 100_000;
        writeln!(text, "{time},prxy,1,{kind},{offset},{size},{response}").expect("in memory");
    }
    text
}

fn disksim(requests: u64) -> String {
    let (mut text, mut state) = (String::new(), 0x9e37_79b9_7f4a_7c15);
    for row in 0..requests {
        let sector = next(&mut state) % 60_000_000;
        let flags = next(&mut state) % 2;
        writeln!(text, "{}.{:03} 0 {sector} 16 {flags}", row * 2, row % 1000).expect("in memory");
    }
    text
}

fn vscsi(requests: u64) -> Vec<u8> {
    let (mut bytes, mut state) = (Vec::new(), 0x9e37_79b9_7f4a_7c15);
    for row in 0..requests {
        bytes.extend((row as u32).to_le_bytes());
        bytes.extend(4096_u32.to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend(
            (if next(&mut state).is_multiple_of(2) { 0x28_u16 } else { 0x2a }).to_le_bytes(),
        );
        bytes.extend(0x100_u16.to_le_bytes());
        bytes.extend((next(&mut state) % 60_000_000).to_le_bytes());
        bytes.extend((row * 100).to_le_bytes());
    }
    bytes
}

fn read_all(bytes: Vec<u8>, format: Format) -> usize {
    let options = ReadOptions { format: Some(format), skip_bad: false };
    let mut trace = read_block_trace("bench", Box::new(Cursor::new(bytes)), &options)
        .expect("a sample of our own");
    let (mut batch, mut rows) = (BlockBatch::default(), 0);
    while trace.next_batch(&mut batch).expect("a sample of our own") {
        rows += black_box(&batch).len();
    }
    rows
}

fn readers(criterion: &mut Criterion) {
    let inputs = [
        ("msr", Format::Msr, msr(REQUESTS).into_bytes()),
        ("disksim-ascii", Format::DisksimAscii, disksim(REQUESTS).into_bytes()),
        ("vscsi", Format::Vscsi, vscsi(REQUESTS)),
    ];
    for (unit, by_bytes) in [("bytes", true), ("requests", false)] {
        let mut group = criterion.benchmark_group(format!("read/{unit}"));
        for (name, format, bytes) in &inputs {
            group.throughput(if by_bytes {
                Throughput::Bytes(bytes.len() as u64)
            } else {
                Throughput::Elements(REQUESTS)
            });
            group.bench_function(*name, |bencher| {
                bencher.iter_batched(
                    || bytes.clone(),
                    |bytes| assert_eq!(read_all(bytes, *format) as u64, REQUESTS),
                    BatchSize::LargeInput,
                );
            });
        }
        group.finish();
    }
}

fn conversion(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder for the benchmark");
    let (input, output) = (folder.path().join("in.csv"), folder.path().join("out.parquet"));
    // Large enough that starting and finishing do not count.
    let text = msr(5 * REQUESTS);
    std::fs::write(&input, &text).expect("room for the benchmark");
    let mut group = criterion.benchmark_group("convert/csv-to-parquet");
    group.sample_size(10).throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("msr", |bencher| {
        bencher.iter(|| {
            let options = ReadOptions { format: Some(Format::Msr), skip_bad: false };
            let inputs = std::slice::from_ref(&input);
            convert(inputs, &output, OutputFormat::Parquet, &[], &options, &mut |_, _| Ok(()))
                .expect("a sample of our own")
        });
    });
    group.finish();
}

criterion_group!(benches, readers, conversion);
criterion_main!(benches);
