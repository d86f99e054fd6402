//! What every fuzz target promises: a typed one-line error or a whole result, never a panic, a hang
//! or unbounded memory.

mod store;

pub use store::read_store;

use std::io::{Cursor, Write as _};
use std::path::Path;

use agewell_age::experiment::Experiment;
use agewell_age::replay::recipe::Recipe;
use agewell_age::workload::profile::Profile;
use agewell_age::workload::{HistoryParameters, WorkloadReader, oplist};
use agewell_core::{BlockRequest, Operation, Sector, SectorCount, SimTime};
use agewell_disk::{Device as _, DeviceModel, DeviceParameters};
use agewell_fuse::protocol as fuse;
use agewell_record::decode::{Decoded, Decoder};
use agewell_record::format::{EventFormat, Field};
use agewell_record::page::{PageLayout, read_page};
use agewell_trace::{
    BlockBatch, BlockRow, BlockTrace, EventKind, FileOperationBatch, FileOperationTrace, Filter, FilterPipe,
    Format, ReadOptions, StraceOptions, StraceTrace, TIME_MISSING, TraceError, TraceMetadata,
    open_block_trace, read_block_trace,
};

/// Reads to the end and holds every batch to the promises of the record.
fn drain(mut trace: BlockTrace) -> Result<u64, TraceError> {
    let (mut batch, mut rows, mut latest_ns) = (BlockBatch::default(), 0, 0);
    while trace.next_batch(&mut batch)? {
        batch.verify();
        for index in 0..batch.len() {
            let row = batch.row(index);
            assert!(row.enqueue_ns >= latest_ns, "requests leave in order of enqueue time");
            assert!(row.operation < 4, "operation {}", row.operation);
            assert!(row.finish_ns >= row.enqueue_ns, "finished before it was asked");
            assert!(row.sectors > 0 || row.operation == 3, "only a flush has no length");
            latest_ns = row.enqueue_ns;
        }
        rows += batch.len() as u64;
    }
    assert!(rows > 0, "a trace without a record is an error");
    Ok(rows)
}

fn check(result: Result<u64, TraceError>) -> Option<u64> {
    match result {
        Ok(rows) => Some(rows),
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "one line: {error}");
            None
        }
    }
}

fn read(bytes: &[u8], format: Option<Format>) {
    let attempt = |skip_bad| {
        let reader = Box::new(Cursor::new(bytes.to_vec()));
        let options = ReadOptions { format, skip_bad };
        check(read_block_trace("fuzz", reader, &options).and_then(drain))
    };
    if let Some(strict) = attempt(false) {
        // Where nothing is bad, leaving out bad records leaves out nothing.
        assert_eq!(attempt(true), Some(strict));
    } else {
        attempt(true);
    }
}

/// The reader of the format called `name`.
pub fn read_as(name: &str, bytes: &[u8]) {
    read(bytes, Some(Format::from_name(name).expect("a format of the table")));
}

/// Whichever reader detection chooses.
pub fn read_detected(bytes: &[u8]) {
    read(bytes, None);
}

/// The Parquet reader, which needs a file.
pub fn read_parquet(bytes: &[u8]) {
    let mut file = tempfile::Builder::new().suffix(".parquet").tempfile().expect("a file");
    file.write_all(bytes).expect("room for the input");
    let options = ReadOptions { format: Some(Format::Parquet), skip_bad: false };
    check(open_block_trace(file.path(), &options).and_then(drain));
}

/// A filter, applied to a small batch if it parses.
pub fn parse_filter(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(filter) = text.parse::<Filter>() else { return };
    let Ok(mut pipe) = FilterPipe::new(vec![filter]) else { return };
    let mut batch = BlockBatch::default();
    for index in 0..4_u64 {
        batch.push(BlockRow {
            enqueue_ns: index << 40,
            start_ns: TIME_MISSING,
            finish_ns: (index << 40) + 5,
            device: index as u32,
            sector: index << 30,
            sectors: 1 << (index * 3),
            operation: index as u8,
            flags: 0,
            client: 0,
        });
    }
    let _ = pipe.apply(&TraceMetadata::default(), &mut batch);
    batch.verify();
}

/// The importer of DiskSim parameters, which follows files by name.
pub fn import_diskspecs(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["fuzz.diskspecs", "fuzz.model", "fuzz.seek"] {
        std::fs::write(folder.path().join(name), bytes).expect("room for the input");
    }
    match agewell_disk::import::disksim(&folder.path().join("fuzz.diskspecs"), None) {
        Ok(imported) => assert!(!imported.to_toml().is_empty()),
        Err(error) => assert!(!error.to_string().contains('\n'), "one line: {error}"),
    }
}

/// An image whose bytes from `superblock_at` on are `bytes`, with `magic` at `magic_at`, and zeros
/// elsewhere; long enough for block groups.
fn read_image(bytes: &[u8], superblock_at: usize, magic_at: usize, magic: &[u8]) {
    let mut image = vec![0; superblock_at];
    image.extend_from_slice(bytes);
    image.resize(image.len().max(magic_at + magic.len()), 0);
    image[magic_at..magic_at + magic.len()].copy_from_slice(magic);
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(&image).expect("room for the input");
    file.as_file().set_len(IMAGE_BYTES.max(image.len() as u64)).expect("a longer file");
    match agewell_age::source::image::take_image(file.path(), true, &mut |_| Ok(())) {
        Ok(snapshot) => snapshot.check().expect("a snapshot keeps its promises"),
        Err(error) => assert!(!error.to_string().contains('\n'), "one line: {error}"),
    }
}

/// How long an image is made by zeros, bytes.
const IMAGE_BYTES: u64 = 1 << 20;

/// The reader of ext2, ext3 and ext4.
pub fn read_ext_image(bytes: &[u8]) {
    read_image(bytes, 1024, 1024 + 56, &[0x53, 0xEF]);
}

/// The reader of UFS1, in the byte order that the first byte says.
pub fn read_ufs_image(bytes: &[u8]) {
    let magic: u32 = 0x0001_1954;
    let big = bytes.first().is_some_and(|byte| byte & 1 == 1);
    let magic = if big { magic.to_be_bytes() } else { magic.to_le_bytes() };
    read_image(bytes.get(1..).unwrap_or(&[]), 8192, 8192 + 1372, &magic);
}

fn one_line(result: Result<(), impl std::fmt::Display>) {
    if let Err(error) = result {
        assert!(!error.to_string().contains('\n'), "one line: {error}");
    }
}

/// `bytes` as a file called `name` in a folder of its own.
fn in_a_file(name: &str, bytes: &[u8], read: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("room for the input");
    read(&path);
}

/// A device file; the device that it describes serves a few requests.
pub fn read_device_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    one_line(DeviceParameters::from_toml("fuzz.toml", text).map(|device| {
        let mut model = DeviceModel::new(&device);
        let last = device.capacity_sectors.saturating_sub(8);
        let mut now = SimTime::ZERO;
        for sector in [0, last, last / 2, 8] {
            let request = BlockRequest {
                enqueue: now,
                sector: Sector(sector),
                sectors: SectorCount(8.min(device.capacity_sectors)),
                operation: Operation::Read,
                synchronous: true,
            };
            now = model.serve(now, &request).finish;
        }
    }));
}

/// The configuration of an experiment, as JSON.
pub fn read_experiment(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(bytes) else { return };
    one_line(Experiment::from_value(value).map(|experiment| {
        let again = Experiment::from_value(experiment.resolved());
        assert_eq!(again.expect("it resolves to itself"), experiment);
    }));
}

/// The output of strace.
pub fn read_strace(bytes: &[u8]) {
    for skip_bad in [false, true] {
        let options = StraceOptions { skip_bad, ..StraceOptions::default() };
        let reader = Box::new(Cursor::new(bytes.to_vec()));
        one_line(StraceTrace::read("fuzz", reader, &options).and_then(|mut trace| {
            let mut batch = FileOperationBatch::default();
            while trace.next_batch(&mut batch)? {
                batch.verify();
            }
            Ok(())
        }));
    }
}

/// The recipe of a replay.
pub fn read_recipe(bytes: &[u8]) {
    in_a_file("fuzz.json", bytes, |path| one_line(Recipe::read(path).map(drop)));
}

/// A snapshot.
pub fn read_snapshot(bytes: &[u8]) {
    in_a_file("fuzz.parquet", bytes, |path| {
        one_line(agewell_snapshot::columns::read(path).map(|snapshot| {
            snapshot.check().expect("a snapshot keeps its promises");
        }));
    });
}

/// A workload.
pub fn read_workload(bytes: &[u8]) {
    in_a_file("fuzz.parquet", bytes, |path| {
        one_line(WorkloadReader::open(path).and_then(|mut reader| reader.read_all()).map(drop));
    });
}

/// A trace of file operations.
pub fn read_file_operations(bytes: &[u8]) {
    in_a_file("fuzz.parquet", bytes, |path| {
        one_line(FileOperationTrace::open(path).and_then(|mut trace| {
            let mut batch = FileOperationBatch::default();
            while trace.next_batch(&mut batch)? {
                batch.verify();
            }
            Ok(())
        }));
    });
}

/// A profile: the three files of one, the parts of the input between zero bytes.
pub fn read_profile(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let names = ["age_distribution.txt", "size_distribution.txt", "dir_distribution.txt"];
    let mut parts = bytes.split(|byte| *byte == 0);
    for name in names {
        let part = parts.next().unwrap_or_default();
        std::fs::write(folder.path().join(name), part).expect("room for the input");
    }
    one_line(Profile::read(folder.path()).map(drop));
}

/// A list of operations as a table of text.
pub fn read_operation_list(bytes: &[u8]) {
    in_a_file("fuzz.csv", bytes, |path| {
        let parameters = HistoryParameters::default();
        one_line(oplist::from_list(path, &parameters, Vec::new()).map(drop));
    });
}

/// The record of an event as short as one can be.
const SHORT_EVENT: &str = "ID: 7\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:2;\tsize:4;\tsigned:1;\n\
    \tfield:dev_t dev;\toffset:6;\tsize:4;\tsigned:0;\n\
    \tfield:sector_t sector;\toffset:10;\tsize:8;\tsigned:0;\n\
    \tfield:unsigned int nr_sector;\toffset:18;\tsize:4;\tsigned:0;\n\
    \tfield:char rwbs[10];\toffset:22;\tsize:10;\tsigned:0;\n";

/// A page of the kernel's trace buffer, of machines with longs of eight and of four bytes, and the
/// kernel's description of a record.
pub fn read_trace_page(bytes: &[u8]) {
    let format = EventFormat::parse(SHORT_EVENT).expect("a description");
    let decoder = Decoder::new(&[(EventKind::Issue, format)]).expect("what a request is made of");
    for commit_bytes in [8, 4] {
        let layout = PageLayout {
            commit: Field { offset: 8, bytes: commit_bytes },
            data: Field { offset: 8 + commit_bytes, bytes: 4088 - commit_bytes },
        };
        let (mut records, mut record_bytes) = (0, 0);
        let read = read_page(&layout, bytes, |time_ns, record| {
            records += 1;
            record_bytes += record.len();
            if let Decoded::Event(event, _) = decoder.decode(time_ns, record) {
                assert_eq!(event.time_ns, time_ns);
                assert!(event.sectors > 0 || event.letters.flush);
            }
        });
        assert!(record_bytes <= bytes.len(), "records lie within the page");
        match read {
            Ok(report) => assert_eq!(report.records, records),
            Err(why) => assert!(!why.to_string().contains('\n'), "one line: {why}"),
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = EventFormat::parse(text).map(|format| Decoder::new(&[(EventKind::Queue, format)]));
        let _ = PageLayout::parse(text);
    }
}

/// A request of the kernel as it is, and with the size that its header wants: refused, or within what was
/// sent.
pub fn read_fuse_request(bytes: &[u8]) {
    for setxattr_extended in [false, true] {
        let dialect = fuse::Dialect { setxattr_extended };
        let _ = fuse::parse(bytes, dialect);
        let mut message = bytes.to_vec();
        let Some(size) = message.first_chunk_mut() else { return };
        *size = (bytes.len() as u32).to_ne_bytes();
        match fuse::parse(&message, dialect) {
            Ok(request) => match request.operation {
                fuse::Operation::Write(write) => {
                    assert!(write.offset + write.data.len() as u64 <= i64::MAX as u64);
                }
                fuse::Operation::BatchForget(forget) => {
                    assert!(forget.pairs().count() * 16 + fuse::REQUEST_HEADER < message.len());
                }
                fuse::Operation::Lookup { name } => assert!(!name.is_empty() && !name.contains(&b'/')),
                _ => {}
            },
            Err(bad) => assert!(!bad.to_string().contains('\n')),
        }
    }
}
