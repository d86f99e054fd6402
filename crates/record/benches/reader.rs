//! Events a second from pages of the ring buffer to rows of the trace, all but its encoding.
//!
//! The pages were captured on Linux 6.18 from both processors of a virtual machine while fio read and
//! wrote 4 to 64 KiB at random places of a loop device, 64 requests at once; `formats.txt` holds the
//! kernel's own description of their records. The work is bound by the pairing: a dozen look-ups in
//! small ordered maps for each request.

use std::hint::black_box;
use std::io::Read as _;

use agewell_record::decode::{Decoded, Decoder, KERNEL_EVENTS};
use agewell_record::format::{EventFormat, Field};
use agewell_record::merge::Merge;
use agewell_record::page::{PageLayout, read_page};
use agewell_trace::{BlockBatch, Event, RequestStream, TraceMetadata};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const LAYOUT: PageLayout =
    PageLayout { commit: Field { offset: 8, bytes: 8 }, data: Field { offset: 16, bytes: 4080 } };
const PAGES: &[u8] = include_bytes!("captured/pages.raw.zst");
const FORMATS: &str = include_str!("captured/formats.txt");

/// The pages of each processor.
fn pages() -> Vec<Vec<Vec<u8>>> {
    let mut bytes = Vec::new();
    zstd::Decoder::new(PAGES).and_then(|mut zstd| zstd.read_to_end(&mut bytes)).expect("whole");
    let (mut rest, mut processors) = (bytes.as_slice(), Vec::new());
    while let Some((count, behind)) = rest.split_first_chunk::<4>() {
        let count = u32::from_le_bytes(*count) as usize;
        let (own, behind) = behind.split_at(count * LAYOUT.page_bytes());
        processors.push(own.chunks(LAYOUT.page_bytes()).map(<[u8]>::to_vec).collect());
        rest = behind;
    }
    processors
}

fn decoder() -> Decoder {
    let texts = FORMATS.split("name: ").skip(1);
    let formats = texts.map(|text| {
        let name = text.lines().next().expect("a name");
        let known = KERNEL_EVENTS.iter().find(|(known, _)| *known == name).expect("an event");
        (known.1, EventFormat::parse(text).expect("a description"))
    });
    Decoder::new(&formats.collect::<Vec<_>>()).expect("what requests are made of")
}

/// Reads the pages round by round, as a recording does; how many requests come out.
fn read(decoder: &Decoder, processors: &[Vec<Vec<u8>>]) -> usize {
    let mut stream = RequestStream::new(TraceMetadata::default(), 0);
    let (mut merge, mut batch, mut rows) = (Merge::default(), BlockBatch::default(), 0);
    let rounds = processors.iter().map(Vec::len).max().unwrap_or(0);
    for round in 0..rounds {
        let mut read_until_ns = u64::MAX;
        for page in processors.iter().filter_map(|pages| pages.get(round)) {
            let report = read_page(&LAYOUT, page, |time_ns, record| {
                if let Decoded::Event(event, _) = decoder.decode(time_ns, record) {
                    merge.push(Event { device: 0, ..event });
                }
            });
            read_until_ns = read_until_ns.min(report.expect("a page").last_ns);
        }
        merge.release(read_until_ns, |event| stream.event(event));
        stream.settle(read_until_ns);
        while stream.take(&mut batch) {
            rows += batch.len();
        }
    }
    merge.release(u64::MAX, |event| stream.event(event));
    stream.finish();
    while stream.take(&mut batch) {
        rows += batch.len();
    }
    rows
}

fn reader(criterion: &mut Criterion) {
    let (decoder, processors) = (decoder(), pages());
    let mut events = 0;
    for page in processors.iter().flatten() {
        let report = read_page(&LAYOUT, page, |_, _| ());
        events += report.expect("a page").records;
    }
    let mut group = criterion.benchmark_group("record");
    group.throughput(Throughput::Elements(events));
    group.bench_function("pages to events", |bencher| {
        bencher.iter(|| {
            let mut sectors = 0;
            for page in processors.iter().flatten() {
                let report = read_page(&LAYOUT, page, |time_ns, record| {
                    if let Decoded::Event(event, _) = decoder.decode(time_ns, record) {
                        sectors += event.sectors;
                    }
                });
                black_box(report.expect("a page"));
            }
            sectors
        });
    });
    group.bench_function("pages to requests", |bencher| {
        bencher.iter(|| read(&decoder, &processors));
    });
    group.finish();
}

criterion_group!(benches, reader);
criterion_main!(benches);
