//! One test a format, each with the trap that the format sets: units, codes, origin of time, order
//! of columns.
#![allow(clippy::format_push_string, reason = "samples are built for reading, not for speed")]

mod samples;

use std::io::Cursor;

use agewell_trace::record::flag;
use agewell_trace::{
    BlockBatch, BlockTrace, Confidence, Format, ReadOptions, TIME_MISSING, TraceError,
    open_block_trace, read_block_trace,
};

const READ: u8 = 0;
const WRITE: u8 = 1;
const DISCARD: u8 = 2;
const FLUSH: u8 = 3;

fn drain(mut trace: BlockTrace) -> Result<(BlockTrace, BlockBatch), TraceError> {
    let (mut batch, mut all) = (BlockBatch::default(), BlockBatch::default());
    while trace.next_batch(&mut batch)? {
        all.extend_from(&batch, 0..batch.len());
    }
    all.verify();
    Ok((trace, all))
}

fn open(bytes: &[u8], format: Option<Format>, skip_bad: bool) -> Result<BlockTrace, TraceError> {
    let reader = Box::new(Cursor::new(bytes.to_vec()));
    read_block_trace("sample", reader, &ReadOptions { format, skip_bad })
}

fn read(bytes: &[u8]) -> (BlockTrace, BlockBatch) {
    drain(open(bytes, None, false).expect("opens")).expect("reads")
}

fn error_of(bytes: &[u8], format: Option<Format>) -> String {
    match open(bytes, format, false).and_then(drain) {
        Ok((_, all)) => panic!("read {} requests", all.len()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_sample_is_detected_and_read_whole() {
    for sample in samples::all() {
        let (trace, all) = read(&sample.bytes);
        assert_eq!(trace.detected().format, sample.format, "{}", sample.name);
        assert!(trace.detected().sureness >= Confidence::Possible, "{}", sample.name);
        assert_eq!(all.len(), sample.requests, "{}", sample.name);
        assert!(all.enqueue_ns.is_sorted(), "{}", sample.name);
        let fresh = !matches!(sample.name, "srt-v4" | "fio-v3");
        assert!(!fresh || all.enqueue_ns[0] == 0, "{}: time begins at the start", sample.name);
    }
}

#[test]
fn line_endings_and_a_missing_last_one_make_no_difference() {
    for sample in samples::all().into_iter().filter(|sample| sample.is_text) {
        let text = String::from_utf8(sample.bytes.clone()).expect("text");
        let (_, expected) = read(text.as_bytes());
        for variant in
            [text.replace('\n', "\r\n"), text.trim_end().to_owned(), format!("{text}\n\n")]
        {
            let (_, all) = read(variant.as_bytes());
            assert_eq!(all, expected, "{}", sample.name);
        }
    }
}

#[test]
fn srt_sectors_are_of_256_bytes_and_times_count_from_enqueue() {
    let (trace, all) = read(&samples::srt_v4());
    // 1810 and 1811 of 256 bytes; the second is odd, so it and its end are rounded outward.
    assert_eq!(all.sector, [905, 905, 2000]);
    assert_eq!(all.sectors, [2, 2, 16]);
    assert_eq!(trace.metadata.warnings.len(), 1, "{:?}", trace.metadata.warnings);
    assert_eq!(trace.metadata.warnings.values().next(), Some(&1));
    assert_eq!(all.enqueue_ns[0], 1_000_005_000, "seconds and microseconds from the trace date");
    assert_eq!(all.start_ns[0] - all.enqueue_ns[0], 100_000);
    assert_eq!(all.finish_ns[0] - all.enqueue_ns[0], 2_100_000);
    assert_eq!(all.operation, [READ, WRITE, READ]);
    assert_eq!(all.flags, [flag::SYNCHRONOUS, flag::ASYNCHRONOUS, flag::SYNCHRONOUS]);
    assert_eq!(all.device, [1, 1, 1], "the disk is in bits 8 to 15");
    let sections: Vec<_> = trace.metadata.devices[0]
        .partitions
        .iter()
        .map(|part| (part.number, part.records))
        .collect();
    assert_eq!(sections, [(8, 2), (7, 1)]);
}

#[test]
fn srt_7_has_byte_addresses_of_64_bits_and_dates_since_1970() {
    let (trace, all) = read(&samples::srt_v7());
    assert_eq!(all.sector, [8, (4_u64 << 32 | 512) / 512, 16]);
    assert_eq!(all.sectors, [8, 8, 8]);
    assert_eq!(all.enqueue_ns, [0, 10_000, 20_000]);
    assert_eq!(all.operation, [READ, WRITE, READ]);
    assert_eq!(trace.metadata.start_wall_zone.as_deref(), Some("-07:00"));
    assert_eq!(trace.metadata.clock_start_ns, 1_053_281_044_000_010_000);
}

#[test]
fn disksim_bit_0_of_the_hexadecimal_flags_means_read() {
    let (trace, all) = read(samples::DISKSIM.as_bytes());
    assert_eq!(all.operation, [WRITE, READ, READ]);
    assert_eq!(all.enqueue_ns, [0, 390_000, 32_137_001]);
    assert_eq!(trace.metadata.clock_start_ns, 5_265_313_000, "a start that is not zero is kept");
    let (_, all) = read(b"0.5 0 1 8 a\n0.6 0 1 8 B\n");
    assert_eq!(all.operation, [WRITE, READ]);
    let text = error_of(b"1.5 0 1 8 0\n1.4 0 1 8 0\n", None);
    assert!(text.contains("record 2, line 2, byte 12") && text.contains("goes back"), "{text}");
}

#[test]
fn validation_think_time_lies_between_finish_and_next_issue() {
    let (_, all) = read(samples::VALIDATE.as_bytes());
    assert_eq!(all.operation, [READ, READ, WRITE]);
    assert_eq!(all.start_ns, all.enqueue_ns);
    assert_eq!(all.finish_ns[0], 14_095_370);
    assert_eq!(all.enqueue_ns[1] - all.finish_ns[0], 13_876_270);
    assert_eq!(all.enqueue_ns[2] - all.finish_ns[1], 18_746_770);
}

#[test]
fn msr_times_are_filetime_and_a_response_of_0_is_unknown() {
    let (trace, all) = read(samples::MSR.as_bytes());
    // The third request was logged after the second but came 5.5 us before it.
    assert_eq!(all.enqueue_ns, [0, 1_332_047_100, 1_332_052_600]);
    assert_eq!(all.sector, [749_016, 0, 607_390]);
    assert_eq!(all.sectors, [64, 1, 8]);
    assert_eq!(all.operation, [READ, READ, WRITE]);
    assert_eq!(all.finish_ns, [41_300, 1_332_147_100, TIME_MISSING]);
    assert_eq!(trace.metadata.device_name(0), "hm_1");
    assert_eq!(all.device, [0, 1, 0]);
    // 2007-02-22 17:00 UTC, the first hour of the published traces.
    assert_eq!(
        agewell_trace::civil_text(trace.metadata.start_wall_ns.expect("a date")),
        "2007-02-22 17:00:00.306"
    );
    assert_eq!(trace.metadata.warnings.values().sum::<u64>(), 2, "{:?}", trace.metadata.warnings);
    let header =
        format!("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n{}", samples::MSR);
    assert_eq!(read(header.as_bytes()).1, all);
    let unix = "1172163600,hm,1,Read,383496192,32768,413\n";
    let text = error_of(unix.as_bytes(), Some(Format::Msr));
    assert!(text.contains("FILETIME"), "{text}");
    let blank = samples::MSR.replace("Write", "");
    let text = error_of(blank.as_bytes(), None);
    assert!(text.contains("record 2, line 2, byte 49") && text.contains("blank"), "{text}");
}

#[test]
fn spc_addresses_are_sectors_per_asu_but_sizes_are_bytes() {
    let (_, all) = read(samples::SPC.as_bytes());
    assert_eq!(all.sector, [20_941_264, 20_939_840, 3_436_288]);
    assert_eq!(all.sectors, [16, 16, 31]);
    assert_eq!(all.device, [0, 0, 1], "an ASU is a device of its own");
    assert_eq!(all.operation, [WRITE, WRITE, READ]);
    assert_eq!(all.enqueue_ns, [0, 2_335_000, 460_026_000]);
    let extras = samples::SPC.replace('\n', ",x,7\n");
    assert_eq!(read(extras.as_bytes()).1, all);
}

#[test]
fn the_two_clouds_are_opposite_in_columns_units_and_codes() {
    let (_, all) = read(samples::ALIBABA.as_bytes());
    assert_eq!(all.sector, [8_792_731_648 / 512, 59_110_326_272 / 512, 350_868_463_616 / 512]);
    assert_eq!(all.sectors, [32, 8, 16]);
    assert_eq!(all.device, [419, 725, 12]);
    assert_eq!(all.operation, [WRITE, READ, WRITE]);
    assert_eq!(all.enqueue_ns, [0, 46_000, 85_000]);
    let (_, all) = read(samples::TENCENT.as_bytes());
    assert_eq!(all.sector, [12_910_952, 6_338_688, 1_904_106_400]);
    assert_eq!(all.sectors, [128, 8, 384]);
    assert_eq!(all.device, [1063, 1627, 1360]);
    assert_eq!(all.operation, [READ, WRITE, READ], "0 is read here");
    assert_eq!(all.enqueue_ns, [0, 0, 1_000_000_000]);
}

#[test]
fn mqsim_0_is_write_and_times_are_nanoseconds() {
    let (trace, all) = read(samples::MQSIM.as_bytes());
    assert_eq!(all.operation, [WRITE, WRITE, READ], "0 is write here");
    assert_eq!(all.enqueue_ns, [0, 315_000, 136_488_000]);
    assert_eq!(all.device, [4, 3, 3]);
    assert_eq!(trace.metadata.clock_start_ns, 938_513_000);
}

#[test]
fn vscsi_reads_and_writes_are_told_by_the_opcode_alone() {
    let (trace, all) = read(&samples::vscsi_v1());
    assert_eq!(all.operation, [WRITE, READ, WRITE]);
    assert_eq!(all.sectors, [1, 8, 128]);
    assert_eq!(all.enqueue_ns, [0, 198_000, 200_000]);
    assert_eq!(trace.metadata.warnings.values().sum::<u64>(), 1, "one TEST UNIT READY");
    let (_, all) = read(&samples::vscsi_v2());
    assert_eq!(all.operation, [WRITE, READ, READ]);
    assert_eq!(all.finish_ns, [300_000, TIME_MISSING, 677_000]);
}

#[test]
fn oracle_general_has_object_numbers_and_no_operation() {
    let (trace, all) = read(&samples::oracle_general(false));
    assert_eq!(all.operation, [READ; 4]);
    assert_eq!(all.sectors, [8, 1, 2, 1]);
    assert_eq!(all.sector[0], all.sector[2]);
    assert_eq!(all.enqueue_ns, [0, 0, 1_000_000_000, 5_000_000_000]);
    assert_eq!(trace.metadata.warnings.len(), 2, "{:?}", trace.metadata.warnings);
    let (_, all) = read(&samples::oracle_general(true));
    assert_eq!(all.operation, [READ, WRITE, DISCARD, READ]);
    assert_eq!(all.client, [5; 4]);
}

#[test]
fn blktrace_events_of_both_byte_orders_become_requests() {
    for big_endian in [false, true] {
        let (trace, all) = read(&samples::blktrace(big_endian));
        assert_eq!(all.sector, [100, 500, 700]);
        assert_eq!(all.sectors, [16, 1, 1], "two queued pieces became one request");
        assert_eq!(all.operation, [WRITE, READ, WRITE]);
        assert_eq!(all.enqueue_ns, [0, 3_000, 8_900]);
        assert_eq!(all.start_ns, [2_000, 4_000, TIME_MISSING]);
        assert_eq!(all.finish_ns, [8_500, 8_000, TIME_MISSING]);
        assert_eq!(all.flags[0], flag::SYNCHRONOUS);
        assert_eq!(trace.metadata.device_name(0), "8,1");
        assert_eq!(trace.metadata.start_wall_ns, Some(1_700_000_000_000_000_500));
        assert_eq!(trace.metadata.warnings.values().sum::<u64>(), 1, "one without completion");
    }
}

#[test]
fn blktrace_files_of_several_cpus_are_one_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    // Queued on CPU 0, issued on CPU 1, completed on CPU 0; CPU 2 traced nothing.
    let read_bit = 1 << 16;
    let zero = [
        samples::blktrace_record(false, 100, 8, 512, read_bit | 1, &[1, 2, 3]),
        samples::blktrace_record(false, 900, 8, 512, read_bit | 8, &[]),
    ];
    let one = [samples::blktrace_record(false, 400, 8, 512, read_bit | 7, &[])];
    std::fs::write(folder.path().join("sda.blktrace.0"), zero.concat()).expect("written");
    std::fs::write(folder.path().join("sda.blktrace.1"), one.concat()).expect("written");
    std::fs::write(folder.path().join("sda.blktrace.2"), b"").expect("written");
    for name in ["sda", "sda.blktrace", "sda.blktrace.0", "sda.blktrace.1"] {
        let trace = open_block_trace(&folder.path().join(name), &ReadOptions::default());
        let (_, all) = drain(trace.expect(name)).expect("reads");
        assert_eq!((all.enqueue_ns[0], all.start_ns[0], all.finish_ns[0]), (0, 300, 800), "{name}");
        assert_eq!(all.len(), 1, "{name}");
    }
}

#[test]
fn blkparse_events_become_requests_and_pass_through_is_counted() {
    let (trace, all) = read(samples::BLKPARSE.as_bytes());
    assert_eq!(all.sector, [100, 540_544, 16_384]);
    assert_eq!(all.sectors, [16, 8, 8]);
    assert_eq!(all.enqueue_ns, [0, 599_000, 799_000]);
    assert_eq!(all.start_ns, [9_000, 699_000, 799_000]);
    assert_eq!(all.finish_ns, [499_000, TIME_MISSING, TIME_MISSING]);
    assert_eq!(all.client, [3922, 7, 7], "the process that asked, not the worker that issued");
    assert_eq!(all.flags[1], flag::ASYNCHRONOUS | flag::READ_AHEAD);
    let warned: Vec<u64> = trace.metadata.warnings.values().copied().collect();
    assert_eq!(warned, [1, 2], "{:?}", trace.metadata.warnings);
}

#[test]
fn tracepoint_flushes_complete_at_the_last_sector_there_can_be() {
    let (trace, all) = read(samples::TRACEPOINT.as_bytes());
    assert_eq!(all.operation, [READ, FLUSH, WRITE]);
    assert_eq!(all.sectors, [8, 0, 8]);
    assert_eq!(all.enqueue_ns, [0, 472_289_000, 5_784_464_000]);
    assert_eq!(all.start_ns, [18_000, 472_299_000, 5_784_692_000]);
    assert_eq!(all.finish_ns, [4_401_000, 472_407_000, 5_784_757_000]);
    assert_eq!(all.client, [6578, 6580, 6435]);
    assert_eq!(all.flags[0], flag::SYNCHRONOUS | flag::METADATA);
    assert_eq!(trace.metadata.header["kernel"], "Linux 6.18");
    assert_eq!(trace.metadata.warnings.values().copied().collect::<Vec<_>>(), [3], "lost events");
}

#[test]
fn a_partition_and_its_disk_are_one_device() {
    let text = "\
  cp-1 [000] ..... 10.000001: block_bio_remap: 8,0 R 2148 + 8 <- (8,1) 100
  cp-1 [000] ..... 10.000002: block_bio_queue: 8,1 R 2148 + 8 [cp]
  cp-1 [000] ..... 10.000003: block_rq_issue: 8,0 R 4096 () 2148 + 8 [cp]
  cp-1 [000] ..... 10.000009: block_rq_complete: 8,0 R () 2148 + 8 [0]
";
    let (_, all) = read(text.as_bytes());
    assert_eq!((all.len(), all.start_ns[0], all.finish_ns[0]), (1, 1_000, 7_000));
}

#[test]
fn a_bio_that_the_device_gets_in_two_parts_is_two_requests() {
    let text = "\
  8,0 0 1 0.000001000 5 Q W 100 + 16 [x]
  8,0 0 2 0.000002000 5 D W 100 + 8 [x]
  8,0 0 3 0.000003000 5 D W 108 + 8 [x]
  8,0 0 4 0.000004000 0 C W 108 + 8 [0]
  8,0 0 5 0.000005000 0 C W 100 + 4 [0]
  8,0 0 6 0.000006000 0 C W 104 + 4 [0]
";
    let (_, all) = read(text.as_bytes());
    assert_eq!(all.sector, [108, 100], "same enqueue time, in order of completion");
    assert_eq!(all.enqueue_ns, [0, 0]);
    assert_eq!(all.finish_ns, [3_000, 5_000], "a partial completion is not the end");
}

#[test]
fn a_device_without_issue_events_has_requests_from_queue_to_completion() {
    let text = "\
  253,0 0 1 0.000001000 5 Q R 100 + 8 [x]
  253,0 0 2 0.000009000 0 C R 100 + 8 [0]
";
    let (_, all) = read(text.as_bytes());
    assert_eq!((all.start_ns[0], all.finish_ns[0]), (TIME_MISSING, 8_000));
}

#[test]
fn fio_2_tells_time_by_waits_and_3_by_times_from_its_first_line() {
    let (trace, all) = read(samples::FIO_V2.as_bytes());
    assert_eq!(all.enqueue_ns, [0, 1_000_000, 1_500_000, 1_500_000]);
    assert_eq!(all.operation, [READ, WRITE, FLUSH, DISCARD]);
    assert_eq!(all.sectors, [8, 1, 0, 128]);
    assert_eq!(trace.metadata.device_name(0), "/dev/sda");
    let (_, all) = read(samples::FIO_V3.as_bytes());
    assert_eq!(all.enqueue_ns, [100_000, 1_100_000, 1_600_000]);
    assert_eq!(all.operation, [READ, WRITE, FLUSH]);
}

#[test]
fn a_clock_that_goes_back_too_far_is_an_error_that_names_the_record() {
    let late = format!("{}128166362016382155,hm,1,Write,310983680,4096,7\n", samples::MSR);
    let text = error_of(late.as_bytes(), None);
    assert!(text.contains("record 4, line 4") && text.contains("goes back by 1000 s"), "{text}");
    let back = samples::SPC.replace("1.011732", "0.5");
    assert!(error_of(back.as_bytes(), None).contains("record 3, line 3"));
    // Behind a line that says when the trace starts and is no request.
    let back = b"fio version 3 iolog\n7 /dev/sda add\n6 /dev/sda read 4096 512\n";
    let text = error_of(back, None);
    assert!(text.contains("line 3") && text.contains("goes back by 1000 ns"), "{text}");
}

#[test]
fn more_events_are_lost_than_can_be_counted() {
    let lost = "# entries-in-buffer/entries-written: 0/18446744073709551615   #P:2\n";
    let text = format!("# tracer: nop\n{lost}{lost}{}", samples::TRACEPOINT);
    let (trace, _) = read(text.as_bytes());
    assert!(trace.metadata.warnings.values().any(|count| *count == u64::MAX));
}

#[test]
fn out_of_order_requests_within_the_window_are_sorted_and_counted() {
    let mut text = String::new();
    // Neighbours swapped throughout, over more rows than the window holds.
    for pair in 0..100_000_u64 {
        for time_us in [pair * 2 + 1, pair * 2] {
            text.push_str(&format!(
                "1,R,{},4096,{}\n",
                time_us * 4096,
                1_577_808_000_000_000 + time_us
            ));
        }
    }
    let (trace, all) = read(text.as_bytes());
    assert_eq!(all.len(), 200_000);
    assert!((0..200_000).all(|row| all.enqueue_ns[row] == row as u64 * 1000));
    assert!((0..200_000).all(|row| all.sector[row] == row as u64 * 8));
    assert_eq!(trace.metadata.warnings.values().sum::<u64>(), 100_000);
}

#[test]
fn an_input_that_fits_two_formats_is_not_guessed() {
    // Whole numbers fit MQSim exactly and DiskSim as well; MQSim's times are always whole.
    let (trace, _) = read(b"10 0 1 8 0\n20 0 1 8 1\n");
    assert_eq!(trace.detected().format, Format::Mqsim);
    let text = error_of(b"hello\nworld\n", None);
    assert!(text.contains("not a trace of a known format") && text.contains("--format"), "{text}");
    assert!(error_of(b"", None).contains("the file is empty"));
    let header = &samples::srt_v4()[..samples::srt_v4().len() - 3 * 56];
    assert!(error_of(header, None).contains("no record in it"));
    let error = Format::from_name("msrr").expect_err("unknown").to_string();
    assert!(error.contains("did you mean 'msr'"), "{error}");
}

#[test]
fn compressed_streams_are_told_by_magic_joined_and_never_cut_short() {
    use std::io::Write as _;
    let text = samples::MSR.to_owned();
    let (first, second) = text.split_at(49);
    let gzip = |part: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(part.as_bytes()).expect("in memory");
        encoder.finish().expect("in memory")
    };
    let bzip2 = |part: &str| {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
        encoder.write_all(part.as_bytes()).expect("in memory");
        encoder.finish().expect("in memory")
    };
    let xz = |part: &str| {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
        encoder.write_all(part.as_bytes()).expect("in memory");
        encoder.finish().expect("in memory")
    };
    let zstd = |part: &str| zstd::encode_all(part.as_bytes(), 1).expect("in memory");
    let (_, expected) = read(text.as_bytes());
    let streams: [(&str, Vec<u8>); 4] = [
        ("gz", [gzip(first), gzip(second)].concat()),
        ("bz2", [bzip2(first), bzip2(second)].concat()),
        ("xz", [xz(first), xz(second)].concat()),
        ("zst", [zstd(first), zstd(second)].concat()),
    ];
    for (name, stream) in streams {
        let (trace, all) = read(&stream);
        assert_eq!(all, expected, "{name}");
        assert_eq!(trace.metadata.compression.as_deref(), Some(name));
        for cut in 9..stream.len() {
            let result = open(&stream[..cut], Some(Format::Msr), false).and_then(drain);
            let Err(error) = result else {
                // The one cut that leaves a whole first member.
                let (_, all) = result.expect("just matched");
                assert_eq!(all.len(), 1, "{name} cut at {cut}");
                continue;
            };
            let message = error.to_string();
            assert!(
                message.contains("decompressed stream") || message.contains("empty"),
                "{message}"
            );
            // Leaving bad records out does not make a damaged stream whole.
            assert!(open(&stream[..cut], Some(Format::Msr), true).and_then(drain).is_err());
        }
        let mut noisy = stream.clone();
        noisy.extend(b"garbage after the end");
        assert!(open(&noisy, Some(Format::Msr), false).and_then(drain).is_err(), "{name}");
    }
}
