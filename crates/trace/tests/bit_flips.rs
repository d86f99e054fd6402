//! One flipped bit anywhere in a trace that agewell wrote: an error or the same data, never other
//! data.

use std::path::Path;

use agewell_testkit::set_byte;
use agewell_trace::{
    BlockBatch, BlockRow, FileOperationBatch, FileOperationTrace, FileOperationWriter,
    OutputFormat, ReadOptions, TIME_MISSING, TraceMetadata, VALUE_MISSING, check_parquet,
    create_block_trace, open_block_trace,
};

/// Flips two bits of each byte of the file `path` in turn and lets `read` look at it.
fn each_flip(path: &Path, mut read: impl FnMut(&str)) -> u64 {
    let sound = std::fs::read(path).expect("it was written");
    let mut flips = 0;
    for (at, &byte) in sound.iter().enumerate() {
        for bit in [at % 8, (at + 3) % 8] {
            set_byte(path, at, byte ^ 1 << bit);
            assert!(check_parquet(path).is_err(), "bit {bit} of byte {at} is not missed");
            read(&format!("bit {bit} of byte {at} of {}", sound.len()));
            flips += 1;
        }
        set_byte(path, at, byte);
    }
    assert_eq!(check_parquet(path), Ok(true));
    flips
}

type Read = (TraceMetadata, Vec<BlockRow>);

fn rows(path: &Path) -> Result<Read, String> {
    let mut trace =
        open_block_trace(path, &ReadOptions::default()).map_err(|why| why.to_string())?;
    let mut rows = Vec::new();
    let mut batch = BlockBatch::default();
    while trace.next_batch(&mut batch).map_err(|why| why.to_string())? {
        rows.extend((0..batch.len()).map(|index| batch.row(index)));
    }
    Ok((trace.metadata.clone(), rows))
}

#[test]
fn in_a_block_trace() {
    let folder = tempfile::tempdir().expect("a place for files");
    let path = folder.path().join("trace.parquet");
    let metadata = TraceMetadata { start_wall_ns: Some(1_000_000), ..TraceMetadata::default() };
    let mut sink = create_block_trace(&path, OutputFormat::Parquet).expect("a place for files");
    let mut batch = BlockBatch::default();
    for number in 0..40_u64 {
        batch.push(BlockRow {
            enqueue_ns: number * 1000,
            start_ns: if number % 3 == 0 { TIME_MISSING } else { number * 1000 + 7 },
            finish_ns: TIME_MISSING,
            device: 0,
            sector: number * 7919 % 1000,
            sectors: 8 + number as u32 % 3,
            operation: (number % 2) as u8,
            flags: 0,
            client: number as u32 % 2,
        });
    }
    sink.write(&mut batch, &metadata).expect("room");
    sink.finish(&metadata).expect("room");
    let sound = rows(&path).expect("it was written by us");
    assert_eq!(sound.1.len(), 40);
    let flips = each_flip(&path, |place| {
        if let Ok(read) = rows(&path) {
            assert_eq!(read, sound, "{place}");
        }
    });
    assert!(flips > 2000, "{flips} flips");
}

#[test]
fn in_a_trace_of_file_operations() {
    let folder = tempfile::tempdir().expect("a place for files");
    let path = folder.path().join("operations.parquet");
    let mut writer = FileOperationWriter::create(&path).expect("a place for files");
    let count = 12;
    let batch = FileOperationBatch {
        time_ns: (0..count).map(|number| number * 500).collect(),
        finish_ns: vec![VALUE_MISSING; count as usize],
        client: vec![1; count as usize],
        operation: vec![0; count as usize],
        file: (0..count as u32).map(|number| number / 3).collect(),
        directory: vec![0; count as usize],
        offset: vec![0; count as usize],
        length: (0..count).collect(),
        path: (0..count).map(|number| format!("/a/f{}", number / 3)).collect(),
        new_path: vec![None; count as usize],
    };
    writer.write(&batch).expect("room");
    writer.finish(&TraceMetadata::default()).expect("room");
    let read = || -> Result<Vec<FileOperationBatch>, String> {
        let mut trace = FileOperationTrace::open(&path).map_err(|why| why.to_string())?;
        let mut batches = Vec::new();
        let mut batch = FileOperationBatch::default();
        while trace.next_batch(&mut batch).map_err(|why| why.to_string())? {
            batches.push(batch.clone());
        }
        Ok(batches)
    };
    let sound = read().expect("it was written by us");
    each_flip(&path, |place| {
        if let Ok(read) = read() {
            assert_eq!(read, sound, "{place}");
        }
    });
}
