//! What is written reads back the same, and the same input gives the same bytes.

mod samples;

use std::path::{Path, PathBuf};

use agewell_trace::{
    BlockBatch, Format, OutputFormat, ReadOptions, TraceError, TraceMetadata, convert,
    open_block_trace,
};

fn read(path: &Path) -> (TraceMetadata, BlockBatch) {
    let mut trace = open_block_trace(path, &ReadOptions::default()).expect("opens");
    let (mut batch, mut all) = (BlockBatch::default(), BlockBatch::default());
    while trace.next_batch(&mut batch).expect("reads") {
        all.extend_from(&batch, 0..batch.len());
    }
    (trace.metadata, all)
}

fn converted(
    inputs: &[PathBuf],
    output: &Path,
    format: OutputFormat,
    filters: &[&str],
) -> Result<agewell_trace::Conversion, TraceError> {
    let filters: Vec<String> = filters.iter().map(|text| (*text).to_owned()).collect();
    convert(inputs, output, format, &filters, &ReadOptions::default(), &mut |_, _| Ok(()))
}

fn sample_file(folder: &Path, sample: &samples::Sample) -> PathBuf {
    let path = folder.join(sample.name);
    std::fs::write(&path, &sample.bytes).expect("written");
    path
}

#[test]
fn parquet_keeps_every_column_and_what_the_trace_says() {
    let folder = tempfile::tempdir().expect("a folder");
    for sample in samples::all() {
        let input = sample_file(folder.path(), &sample);
        let (metadata, expected) = read(&input);
        let outputs = ["one.parquet", "two.parquet"].map(|name| folder.path().join(name));
        for output in &outputs {
            let done = converted(std::slice::from_ref(&input), output, OutputFormat::Parquet, &[]);
            assert_eq!(done.expect("converted").requests_out, sample.requests as u64);
        }
        let (kept, all) = read(&outputs[0]);
        assert_eq!(all, expected, "{}", sample.name);
        assert_eq!(kept, metadata, "{}", sample.name);
        let bytes = outputs.map(|output| std::fs::read(output).expect("read"));
        assert!(bytes[0] == bytes[1], "{}: two runs, two files", sample.name);
    }
}

#[test]
fn disksim_ascii_is_exact_to_the_nanosecond_from_its_first_request() {
    let folder = tempfile::tempdir().expect("a folder");
    for sample in samples::all() {
        let input = sample_file(folder.path(), &sample);
        let (_, expected) = read(&input);
        let output = folder.path().join("out.trace");
        let done =
            converted(&[input], &output, OutputFormat::DisksimAscii, &[]).expect("converted");
        let kept: Vec<usize> =
            (0..expected.len()).filter(|&row| expected.operation[row] < 2).collect();
        assert_eq!(done.left_out as usize, expected.len() - kept.len(), "{}", sample.name);
        let (_, all) = read(&output);
        let first = expected.enqueue_ns[kept[0]];
        for (row, &from) in kept.iter().enumerate() {
            assert_eq!(all.enqueue_ns[row], expected.enqueue_ns[from] - first, "{}", sample.name);
            assert_eq!(all.sector[row], expected.sector[from], "{}", sample.name);
            assert_eq!(all.sectors[row], expected.sectors[from], "{}", sample.name);
            assert_eq!(all.operation[row], expected.operation[from], "{}", sample.name);
            assert_eq!(all.device[row], expected.device[from], "{}", sample.name);
        }
    }
}

#[test]
fn fio_logs_of_both_versions_keep_times_to_the_microsecond() {
    let folder = tempfile::tempdir().expect("a folder");
    for sample in samples::all() {
        let input = sample_file(folder.path(), &sample);
        let (_, expected) = read(&input);
        for format in [OutputFormat::FioIologV2, OutputFormat::FioIologV3] {
            let output = folder.path().join("out.iolog");
            converted(std::slice::from_ref(&input), &output, format, &[]).expect("converted");
            let (metadata, all) = read(&output);
            assert_eq!(metadata.format, Format::FioIolog.name());
            assert_eq!(all.operation, expected.operation, "{}", sample.name);
            for row in 0..all.len() {
                let name = sample.name;
                assert_eq!(all.enqueue_ns[row], expected.enqueue_ns[row] / 1000 * 1000, "{name}");
                if all.operation[row] != 3 {
                    assert_eq!(all.sector[row], expected.sector[row], "{name}");
                    assert_eq!(all.sectors[row], expected.sectors[row], "{name}");
                }
            }
        }
    }
}

#[test]
fn merging_places_traces_by_their_wall_clocks() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let early = write(
        "early.csv",
        "128166372003061629,hm,0,Read,512,512,7\n128166372023061629,hm,0,Read,0,512,7\n",
    );
    let late = write(
        "late.csv",
        "128166372013061629,hm,1,Write,1024,512,7\n128166372013061630,hm,0,Write,9216,512,7\n",
    );
    let output = folder.path().join("merged.parquet");
    let done = converted(&[late.clone(), early.clone()], &output, OutputFormat::Parquet, &[]);
    assert_eq!(done.expect("merged").input_format, "merged");
    let (metadata, all) = read(&output);
    assert_eq!(all.enqueue_ns, [0, 1_000_000_000, 1_000_000_100, 2_000_000_000]);
    assert_eq!(all.sector, [1, 2, 18, 0]);
    let names: Vec<String> = all.device.iter().map(|&id| metadata.device_name(id)).collect();
    assert_eq!(names, ["hm_0", "hm_1", "hm_0", "hm_0"], "one name is one device");
    assert!(metadata.warnings.is_empty());
    // Without a wall clock they start together, and that is said.
    let other = write("other.trace", "0.5 7 100 8 1\n2.5 7 108 8 1\n");
    converted(&[early, other], &output, OutputFormat::Parquet, &[]).expect("merged");
    let (metadata, all) = read(&output);
    assert_eq!(all.enqueue_ns, [0, 0, 2_000_000, 2_000_000_000]);
    assert_eq!(metadata.warnings.len(), 1);
}

#[test]
fn filters_are_applied_in_order_and_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let sample = samples::all().into_iter().find(|sample| sample.name == "msr").expect("msr");
    let input = sample_file(folder.path(), &sample);
    let output = folder.path().join("out.parquet");
    let filters = ["op=read", "split=8 KiB", "rebase=10"];
    let done = converted(std::slice::from_ref(&input), &output, OutputFormat::Parquet, &filters)
        .expect("done");
    assert_eq!((done.requests_in, done.requests_out, done.split_requests), (3, 5, 1));
    let (metadata, all) = read(&output);
    assert_eq!(all.sector, [749_026, 749_042, 749_058, 749_074, 10]);
    assert_eq!(metadata.header["filters"], "op=read; split=8 KiB; rebase=10");
    let nothing = folder.path().join("nothing.parquet");
    let error =
        converted(std::slice::from_ref(&input), &nothing, OutputFormat::Parquet, &["op=flush"]);
    let text = error.expect_err("nothing left").to_string();
    assert!(text.contains("none of the 3 requests") && !nothing.exists(), "{text}");
    let error = converted(std::slice::from_ref(&input), &input, OutputFormat::Parquet, &[]);
    assert!(error.expect_err("own input").to_string().contains("both input and output"));
}

#[test]
fn what_rebase_lets_through_every_reader_takes() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.trace");
    std::fs::write(&input, "0.5 0 100 8 1\n2.5 0 108 8 0\n").expect("written");
    let last = u64::MAX / 512 - (108 + 8);
    for (name, format) in [
        ("out.parquet", OutputFormat::Parquet),
        ("out.trace", OutputFormat::DisksimAscii),
        ("out.fio", OutputFormat::FioIologV2),
        ("out.fio3", OutputFormat::FioIologV3),
    ] {
        let output = folder.path().join(name);
        let inputs = std::slice::from_ref(&input);
        converted(inputs, &output, format, &[&format!("rebase={last}")]).expect("it fits");
        assert_eq!(read(&output).1.sector, [last + 100, last + 108], "{name}");
        let error = converted(inputs, &output, format, &[&format!("rebase={}", last + 1)]);
        assert!(
            error.expect_err("too far").to_string().contains("moves sector 108 off the device")
        );
    }
}

#[test]
fn a_flush_has_no_address_whatever_the_kernel_shows() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.txt");
    let lines = "  8,0    0  1  0.000000000  1  Q  FN 18446744073709551615 + 0 [x]\n\
                   8,0    0  2  0.000000100  1  D  FN 18446744073709551615 + 0 [x]\n\
                   8,0    0  3  0.000000200  0  C  FN 18446744073709551615 + 0 [0]\n\
                   8,0    0  4  0.000001000  1  Q  W 100 + 8 [x]\n\
                   8,0    0  5  0.000001100  1  D  W 100 + 8 [x]\n\
                   8,0    0  6  0.000001200  0  C  W 100 + 8 [0]\n";
    std::fs::write(&input, lines).expect("written");
    let (_, all) = read(&input);
    assert_eq!(all.sector, [0, 100]);
    let output = folder.path().join("out.fio");
    converted(std::slice::from_ref(&input), &output, OutputFormat::FioIologV3, &[]).expect("done");
    assert_eq!(read(&output).1.sector, [0, 100]);
}
