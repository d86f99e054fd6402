//! What every fuzz target promises: a typed one-line error or a whole result, never a panic, a hang
//! or unbounded memory.

use std::io::{Cursor, Write as _};

use agewell_trace::{
    BlockBatch, BlockRow, BlockTrace, Filter, FilterPipe, Format, ReadOptions, TIME_MISSING,
    TraceError, TraceMetadata, open_block_trace, read_block_trace,
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
