//! Small valid traces of every format, made by hand: each has three requests or more, and its
//! format's traps.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its share")]

use agewell_trace::Format;

/// A sample and how many requests it holds.
pub struct Sample {
    pub name: &'static str,
    pub format: Format,
    pub bytes: Vec<u8>,
    pub requests: usize,
    /// Whether every record is one line.
    pub is_text: bool,
}

fn big(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// SRT header 1.3 with a drive of 256-byte sectors, and three records.
pub fn srt_v4() -> Vec<u8> {
    let mut bytes =
        b"$$TR_IOREC-1.3 (by hand)\nversion = 1.3;\ntracedate = \"Sat May 30 00:03:06 1992\";\n\
        disks = { 1 -> { disktype = hp335h, nspt = 113, ntpc = 8, ncyl = 1449, rpm = 4002,\n\
        seekparms = {616, 3450, 597, 10840, 12, 2500}, sectorsize = 256,\n\
        sections = { 8 -> { \"/\", size = (904 231424) } } } };\n   3 \n\x0c"
            .to_vec();
    // size, version 4 type 1, s, us, start us, stop us, bytes, sector, device, driver, cylinder,
    // flags, info, queue
    bytes.extend(big(&[56, 0x4_0001, 1, 5, 100, 2100, 1024, 1810, 0x0800_0108, 4, 2, 0x1b, 0, 1]));
    bytes.extend(big(&[56, 0x4_0001, 2, 0, 0, 1500, 512, 1811, 0x0800_0108, 4, 2, 0x10a, 0, 1]));
    bytes.extend(big(&[56, 0x4_0001, 2, 7, 0, 0, 8192, 4000, 0x0800_0107, 4, 4, 0x1b, 0, 1]));
    bytes
}

/// SRT header 1.7 and three records of 22 words, times since 1970.
pub fn srt_v7() -> Vec<u8> {
    let mut bytes =
        b"$$TR_IOREC-1.7 : by hand\nversion = 1.7;\n# a comment\ntracedate = Sun May 18 11:04:05 2003\n\n\x0c"
            .to_vec();
    for (us, flags, high, low) in [(10, 0x1, 0, 4096), (20, 0x100, 4, 512), (30, 0x1, 0, 8192)] {
        let mut words = [0_u32; 22];
        words[..7].copy_from_slice(&[88, 0x7_0001, 1_053_281_044, us, 3, 7487, 4096]);
        words[8] = 0x1f01_6000;
        words[11] = flags;
        words[14] = 0x2c99;
        words[16] = high;
        words[17] = low;
        bytes.extend(big(&words));
    }
    bytes
}

/// One blktrace record.
pub fn blktrace_record(
    big_endian: bool,
    time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    pdu: &[u8],
) -> Vec<u8> {
    let mut record = Vec::new();
    let mut word = |value: u32| {
        record.extend(if big_endian { value.to_be_bytes() } else { value.to_le_bytes() });
    };
    let halves = |value: u64| {
        let (high, low) = ((value >> 32) as u32, value as u32);
        if big_endian { (high, low) } else { (low, high) }
    };
    word(0x6561_7407);
    word(1);
    let (first, second) = halves(time_ns);
    word(first);
    word(second);
    let (first, second) = halves(sector);
    word(first);
    word(second);
    word(bytes);
    word(action);
    word(4242);
    word(8 << 20 | 1);
    word(0);
    // error and pdu length are two 16-bit words
    record.extend([0, 0]);
    let length = pdu.len() as u16;
    record.extend(if big_endian { length.to_be_bytes() } else { length.to_le_bytes() });
    record.extend(pdu);
    record
}

const WRITE: u32 = 1 << 17;
const SYNC: u32 = 1 << 19;
const NOTIFY: u32 = 1 << 26;

/// A write queued in two pieces, merged and completed; a read; a write without completion.
pub fn blktrace(big_endian: bool) -> Vec<u8> {
    let wall: Vec<u8> = [1_700_000_000_u32, 500]
        .into_iter()
        .flat_map(|word| if big_endian { word.to_be_bytes() } else { word.to_le_bytes() })
        .collect();
    [
        blktrace_record(big_endian, 1_000, 0, 0, NOTIFY | 1, &wall),
        blktrace_record(big_endian, 1_000, 100, 4096, WRITE | SYNC | 1, &[]),
        blktrace_record(big_endian, 2_000, 108, 4096, WRITE | SYNC | 1, &[]),
        blktrace_record(big_endian, 3_000, 100, 8192, WRITE | SYNC | 7, &[]),
        blktrace_record(big_endian, 4_000, 500, 512, 1 << 16 | 1, &[]),
        blktrace_record(big_endian, 5_000, 500, 512, 1 << 16 | 7, &[]),
        blktrace_record(big_endian, 9_000, 500, 512, 1 << 16 | 8, &[]),
        blktrace_record(big_endian, 9_500, 100, 8192, WRITE | SYNC | 8, &[]),
        blktrace_record(big_endian, 9_900, 700, 512, WRITE | 1, &[]),
    ]
    .concat()
}

pub const BLKPARSE: &str = "\
  8,33   4        1     0.000000000  3922  D   N 0 (00 ..) [kworker/u65:0]
  8,33   4        2     0.000001000  3922  Q  WS 100 + 8 [postgres]
  8,33   4        3     0.000002000  3922  M  WS 108 + 8 [postgres]
  8,33   5        1     0.000003000  3922  Q  WS 108 + 8 [postgres]
  8,33   4        4     0.000010000    12  D  WS 100 + 16 [kworker/0:1H]
  8,33   4        5     0.000500000     0  C  WS 100 + 16 [0]
  8,33   4        6     0.000600000     7  Q  RA 540544 + 8 [systemd-udevd]
  8,33   4        7     0.000700000     7  D  RA 540544 + 8 [systemd-udevd]
  8,33   4        8     0.000800000     7  D   R 16384 + 8 [systemd-udevd]
CPU0 (8,33):
 Reads Queued:         677,     2708KiB\t Writes Queued:           0,        0KiB

Throughput (R/W): 0KiB/s / 0KiB/s
Events (8,33): 677 entries
Skips: 0 forward (0 -   0.0%)
";

pub const TRACEPOINT: &str = "\
# agewell kernel: Linux 6.18
# tracer: nop
#
# entries-in-buffer/entries-written: 12/15   #P:2
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
        postgres-6578    [001] .....  1867.076857: block_bio_queue: 7,1 RM 41112 + 8 [postgres]
        postgres-6578    [001] ...1.  1867.076869: block_rq_insert: 7,1 RM 4096 () 41112 + 8 be,0,4 [postgres]
     kworker/u8:1-32     [001] .....  1867.076875: block_rq_issue: 7,1 RM 4096 () 41112 + 8 be,0,4 [kworker/u8:1]
      lto cgu.01-6576    [001] ..s..  1867.081258: block_rq_complete: 7,1 RM () 41112 + 8 be,0,4 [0]
        postgres-6580    [001] .....  1867.549146: block_bio_queue: 7,1 FWS 0 + 0 [postgres]
    kworker/1:1H-54      [001] .....  1867.549156: block_rq_issue: 7,1 FF 0 () 0 + 0 none,0,0 [kworker/1:1H]
     ksoftirqd/1-22      [001] ..s..  1867.549264: block_rq_complete: 7,1 FF () 18446744073709551615 + 0 none,0,0 [0]
    jbd2/loop1-8-6435    [000] .....  1872.861321: block_bio_queue: 7,1 FWFSM 1064448 + 8 [jbd2/loop1-8]
    kworker/0:1H-44      [000] .....  1872.861549: block_rq_issue: 7,1 WSM 4096 () 1064448 + 8 be,0,3 [kworker/0:1H]
     ksoftirqd/1-22      [001] ..s..  1872.861614: block_rq_complete: 7,1 WSM () 1064448 + 8 be,0,3 [0]
     ksoftirqd/0-14      [000] d.s1.  1872.864059: block_rq_complete: 7,1 WSM () 1064448 + 0 be,0,3 [0]
";

pub const MSR: &str = "\
128166372003061629,hm,1,Read,383496192,32768,413
128166372016382155,hm,1,Write,310983680,4096,0
128166372016382100,hm,0,Read,0,512,1000
";

pub const SPC: &str = "\
0,20941264,8192,W,0.551706
0,20939840,8192,w,0.554041
1,3436288,15872,r,1.011732
";

pub const ALIBABA: &str = "\
419,W,8792731648,16384,1577808144360767
725,R,59110326272,4096,1577808144360813
12,W,350868463616,8192,1577808144360852
";

pub const TENCENT: &str = "\
1538323200,12910952,128,0,1063
1538323200,6338688,8,1,1627
1538323201,1904106400,384,0,1360
";

pub const MQSIM: &str = "\
938513000 4 264719034 16 0
938828000 3 197570570 16 0
1075001000 3 340107914 16 1
";

pub const DISKSIM: &str = "\
5265.313 0 6357144 8 0
5265.703 0 6307768 8 1
5297.450001 2 33701824 64 3
";

pub const VALIDATE: &str = "\
R Miss  564347     2     14095.370     13876.270
R Hit   564349     2      1414.270     18746.770
W Doub 1569160     3      6936.010     23126.390
";

pub const FIO_V2: &str = "\
fio version 2 iolog
/dev/sda add
/dev/sda open
/dev/sda read 0 4096
/dev/sda wait 1000 0
/dev/sda write 4096 512
/dev/sda wait 500 0
/dev/sda sync 0 0
/dev/sda trim 1048576 65536
/dev/sda close
";

pub const FIO_V3: &str = "\
fio version 3 iolog
7 /dev/sda add
7 /dev/sda open
107 /dev/sda read 0 4096
1107 /dev/sda write 4096 512
1607 /dev/sda datasync
1607 /dev/sda close
";

pub fn vscsi_v1() -> Vec<u8> {
    let mut bytes = Vec::new();
    for (serial, length, command, block, time_us) in [
        (244_u32, 512_u32, 0x2a_u16, 0x028f_1a09_u64, 5_633_898_368_802_u64),
        (97, 4096, 0x28, 42_933_770, 5_633_898_369_000),
        (1, 0, 0x00, 0, 5_633_898_369_001),
        (2, 65_536, 0x8a, 77, 5_633_898_369_002),
    ] {
        bytes.extend(serial.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend(command.to_le_bytes());
        bytes.extend(0x100_u16.to_le_bytes());
        bytes.extend(block.to_le_bytes());
        bytes.extend(time_us.to_le_bytes());
    }
    bytes
}

pub fn vscsi_v2() -> Vec<u8> {
    let mut bytes = Vec::new();
    for (command, length, block, time_us, response_us) in [
        (0x2a_u16, 512_u32, 0x28f_u64, 1_000_u64, 300_u64),
        (0x28, 4096, 42, 1_500, 0),
        (0x88, 8192, 99, 1_600, 77),
    ] {
        bytes.extend(command.to_le_bytes());
        bytes.extend(0x200_u16.to_le_bytes());
        bytes.extend(5_u32.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend(block.to_le_bytes());
        bytes.extend(time_us.to_le_bytes());
        bytes.extend(response_us.to_le_bytes());
    }
    bytes
}

pub fn oracle_general(with_operation: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, (time_s, object, size)) in
        [(100_u32, 7_u64, 4096_u32), (100, 1 << 60, 512), (101, 7, 1000), (105, 9, 1)]
            .into_iter()
            .enumerate()
    {
        bytes.extend(time_s.to_le_bytes());
        bytes.extend(object.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        if with_operation {
            bytes.push([1, 3, 9, 12][index]);
            bytes.extend(5_u16.to_le_bytes());
        }
        let next: i64 = if index == 0 { 2 } else { -1 };
        bytes.extend(next.to_le_bytes());
    }
    bytes
}

/// Every sample but Parquet, which needs a file.
pub fn all() -> Vec<Sample> {
    let text = |name, format, text: &str, requests| Sample {
        name,
        format,
        bytes: text.as_bytes().to_vec(),
        requests,
        is_text: true,
    };
    let binary =
        |name, format, bytes, requests| Sample { name, format, bytes, requests, is_text: false };
    vec![
        binary("srt-v4", Format::Srt, srt_v4(), 3),
        binary("srt-v7", Format::Srt, srt_v7(), 3),
        binary("blktrace-le", Format::Blktrace, blktrace(false), 3),
        binary("blktrace-be", Format::Blktrace, blktrace(true), 3),
        text("blkparse", Format::Blkparse, BLKPARSE, 3),
        text("tracepoint", Format::Tracepoint, TRACEPOINT, 3),
        text("msr", Format::Msr, MSR, 3),
        text("spc", Format::Spc, SPC, 3),
        text("alibaba", Format::Alibaba, ALIBABA, 3),
        text("tencent", Format::Tencent, TENCENT, 3),
        text("mqsim", Format::Mqsim, MQSIM, 3),
        text("disksim-ascii", Format::DisksimAscii, DISKSIM, 3),
        text("disksim-validate", Format::DisksimValidate, VALIDATE, 3),
        text("fio-v2", Format::FioIolog, FIO_V2, 4),
        text("fio-v3", Format::FioIolog, FIO_V3, 3),
        binary("vscsi-v1", Format::Vscsi, vscsi_v1(), 3),
        binary("vscsi-v2", Format::Vscsi, vscsi_v2(), 3),
        binary("oracle-general", Format::OracleGeneral, oracle_general(false), 4),
        binary("oracle-general-opns", Format::OracleGeneralOpNs, oracle_general(true), 4),
    ]
}
