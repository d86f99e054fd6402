//! Mangled input of every format: a typed error or a whole trace, never a panic, a hang, or
//! silently fewer records.
#![allow(clippy::format_push_string, reason = "samples are built for reading, not for speed")]

mod samples;

use std::io::Cursor;

use agewell_trace::{
    BlockBatch, Format, OutputFormat, ReadOptions, TraceError, TraceMetadata, convert,
    create_block_trace, open_block_trace, read_block_trace,
};

/// Requests, records left out on request, and what is left in warnings.
fn count(bytes: &[u8], format: Option<Format>, skip_bad: bool) -> Result<(usize, u64), TraceError> {
    let reader = Box::new(Cursor::new(bytes.to_vec()));
    let mut trace = read_block_trace("mangled", reader, &ReadOptions { format, skip_bad })?;
    let (mut batch, mut rows) = (BlockBatch::default(), 0);
    while trace.next_batch(&mut batch)? {
        batch.verify();
        rows += batch.len();
        assert!(rows <= 1000, "a small input gave {rows} requests: no end in sight");
    }
    Ok((rows, trace.metadata.skipped_records))
}

/// A small generator (Marsaglia 2003, xorshift64), so that every run mangles alike.
struct Noise(u64);

impl Noise {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

fn check_message(name: &str, error: &TraceError) {
    let text = error.to_string();
    assert!(!text.contains('\n'), "{name}: {text}");
    assert!(text.contains("mangled"), "{name}: the input is not named: {text}");
}

#[test]
fn a_record_cut_anywhere_is_an_error_or_counted() {
    for sample in samples::all() {
        for cut in 0..sample.bytes.len() {
            let bytes = &sample.bytes[..cut];
            match count(bytes, Some(sample.format), false) {
                Err(error) => check_message(sample.name, &error),
                // Text that ends with a whole line, or within a last number, cannot be distinguished from a
                // shorter trace.
                Ok((rows, _)) => assert!(rows <= sample.requests, "{} cut at {cut}", sample.name),
            }
            if !sample.is_text
                && let Ok((rows, skipped)) = count(bytes, Some(sample.format), true)
            {
                let whole = count(bytes, Some(sample.format), false).is_ok();
                assert!(whole || skipped > 0, "{} cut at {cut}: {rows} rows", sample.name);
            }
        }
    }
}

#[test]
fn binary_cuts_within_a_record_name_record_and_byte() {
    for (bytes, format, record_bytes, records) in [
        (samples::vscsi_v1(), Format::Vscsi, 32, 4),
        (samples::vscsi_v2(), Format::Vscsi, 40, 3),
        (samples::oracle_general(false), Format::OracleGeneral, 24, 4),
        (samples::oracle_general(true), Format::OracleGeneralOpNs, 27, 4),
        (samples::srt_v4(), Format::Srt, 56, 3),
        (samples::srt_v7(), Format::Srt, 88, 3),
    ] {
        let start = bytes.len() - record_bytes;
        for have in 1..record_bytes {
            let error = count(&bytes[..start + have], Some(format), false).expect_err("cut");
            let text = error.to_string();
            let place = format!("record {records}, byte {start}");
            assert!(text.contains(&place) && text.contains("truncated"), "{text}");
            assert_eq!(count(&bytes[..start + have], Some(format), true).expect("skipped").1, 1);
        }
    }
}

#[test]
fn changed_bytes_never_panic_and_never_lose_a_line_silently() {
    for sample in samples::all() {
        let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
        for _ in 0..600 {
            let mut bytes = sample.bytes.clone();
            for _ in 0..=noise.below(4) {
                let position = noise.below(bytes.len());
                match noise.below(4) {
                    0 => bytes[position] ^= 1 << noise.below(8),
                    1 => bytes[position] = noise.below(256) as u8,
                    2 => {
                        bytes.remove(position);
                    }
                    _ => bytes.insert(position, noise.below(256) as u8),
                }
            }
            for format in [None, Some(sample.format)] {
                for skip_bad in [false, true] {
                    if let Err(error) = count(&bytes, format, skip_bad) {
                        check_message(sample.name, &error);
                    }
                }
            }
        }
    }
}

/// Formats of one record a line, without pairing: any line that is not a record must be reported.
#[test]
fn a_broken_line_is_named_or_counted() {
    for sample in samples::all().into_iter().filter(|sample| sample.is_text) {
        let text = String::from_utf8(sample.bytes.clone()).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        let first = usize::from(sample.format == Format::FioIolog);
        for broken in first..lines.len() {
            let is_comment = lines[broken].starts_with('#') || lines[broken].is_empty();
            let is_summary = sample.format == Format::Blkparse && broken > 8;
            if is_comment || is_summary {
                continue;
            }
            let mut mangled: Vec<&str> = lines.clone();
            mangled[broken] = "!! not a record";
            let bytes = mangled.join("\n").into_bytes();
            let error = count(&bytes, Some(sample.format), false).expect_err("a broken line");
            let message = error.to_string();
            let line = format!("line {}", broken + 1);
            assert!(message.contains(&line), "{}: {message}", sample.name);
            let (_, skipped) = count(&bytes, Some(sample.format), true).expect("skipped");
            assert_eq!(skipped, 1, "{}", sample.name);
        }
    }
}

#[test]
fn every_format_read_as_every_other_fails_in_words() {
    for sample in samples::all() {
        for format in Format::ALL.into_iter().filter(|format| *format != Format::Parquet) {
            if let Err(error) = count(&sample.bytes, Some(format), false) {
                check_message(sample.name, &error);
            }
        }
    }
}

#[test]
fn a_read_error_is_never_the_end() {
    struct Failing(Cursor<Vec<u8>>);
    impl std::io::Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(std::io::Error::other("the disk is gone")),
                count => Ok(count),
            }
        }
    }
    for sample in samples::all() {
        let reader = Box::new(Failing(Cursor::new(sample.bytes.clone())));
        let options = ReadOptions { format: Some(sample.format), skip_bad: true };
        let mut batch = BlockBatch::default();
        let result = read_block_trace("mangled", reader, &options).and_then(|mut trace| {
            while trace.next_batch(&mut batch)? {}
            Ok(())
        });
        let message = result.expect_err(sample.name).to_string();
        assert!(message.contains("the disk is gone"), "{}: {message}", sample.name);
    }
}

fn parquet_sample(folder: &std::path::Path) -> std::path::PathBuf {
    let path = folder.join("sample.parquet");
    let reader = Box::new(Cursor::new(samples::MSR.as_bytes().to_vec()));
    let mut trace = read_block_trace("sample", reader, &ReadOptions::default()).expect("opens");
    let mut batch = BlockBatch::default();
    assert!(trace.next_batch(&mut batch).expect("reads"));
    let mut sink = create_block_trace(&path, OutputFormat::Parquet).expect("created");
    sink.write(&mut batch, &trace.metadata).expect("written");
    sink.finish(&trace.metadata).expect("finished");
    path
}

#[test]
fn a_mangled_parquet_file_is_an_error_or_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = parquet_sample(folder.path());
    let bytes = std::fs::read(&path).expect("read");
    let mangled_path = folder.path().join("mangled.parquet");
    let mut noise = Noise(0x1234_5678_9abc_def1);
    let attempt = |mangled: &[u8]| {
        // A new file: many file systems wait for the disk when one is cut to nothing and written again.
        let _ = std::fs::remove_file(&mangled_path);
        std::fs::write(&mangled_path, mangled).expect("written");
        let options = ReadOptions { format: Some(Format::Parquet), skip_bad: false };
        let mut rows = 0;
        let result = open_block_trace(&mangled_path, &options).and_then(|mut trace| {
            let mut batch = BlockBatch::default();
            while trace.next_batch(&mut batch)? {
                rows += batch.len();
            }
            Ok(())
        });
        match result {
            Ok(()) => assert_eq!(rows, 3, "fewer records and no error"),
            Err(error) => check_message("parquet", &error),
        }
    };
    for cut in 0..bytes.len() {
        attempt(&bytes[..cut]);
    }
    for _ in 0..1500 {
        let mut mangled = bytes.clone();
        let position = noise.below(mangled.len());
        mangled[position] ^= 1 << noise.below(8);
        attempt(&mangled);
    }
}

#[test]
fn nothing_is_left_of_a_conversion_that_failed() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("mangled.csv");
    // Enough good requests for the writer to have begun.
    let mut text = String::new();
    for row in 0..300_000_u64 {
        text.push_str(&format!("1,R,{},4096,{}\n", row * 4096, 1_577_808_000_000_000 + row));
    }
    text.push_str("1,R,oops\n");
    std::fs::write(&input, text).expect("written");
    for format in OutputFormat::ALL {
        let output = folder.path().join("output");
        let options = ReadOptions::default();
        let result =
            convert(std::slice::from_ref(&input), &output, format, &[], &options, &mut |_, _| {
                Ok(())
            });
        let message = result.expect_err("a broken line").to_string();
        assert!(message.contains("record 300001, line 300001"), "{message}");
        let left: Vec<_> = std::fs::read_dir(folder.path())
            .expect("listed")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        assert_eq!(left, ["mangled.csv"], "{}", format.name());
    }
    let metadata = TraceMetadata::default();
    assert!(metadata.devices.is_empty());
}
