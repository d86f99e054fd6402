//! blktrace binary (kernel `include/uapi/linux/blktrace_api.h`): one file a CPU, `NAME.blktrace.N`,
//! merged by time.
//!
//! Records of 48 bytes in the byte order of the traced host, each followed by `pdu_len` bytes: u32
//! magic 0x65617400 with version 7, u32 sequence, u64 time in ns, u64 sector, u32 bytes, u32
//! action, u32 pid, u32 device, u32 cpu, u16 error, u16 pdu_len. The low 16 bits of the action say
//! what happened, the high 16 what kind of request. A notification carries the wall clock. Q, I, D,
//! C and requeue are paired into requests.

use std::path::{Path, PathBuf};

use agewell_core::Operation;

use super::{Confidence, RowReader, Sample, bad_record, blkparse, truncated};
use crate::error::{Problem, TraceError};
use crate::pairing::{Event, EventKind, Letters, Pairing, flags};
use crate::reorder_window::ReorderWindow;
use crate::source::Source;

const HEADER_BYTES: usize = 48;
/// BLK_IO_TRACE_MAGIC | BLK_IO_TRACE_VERSION
const MAGIC: u32 = 0x6561_7407;
/// __BLK_TA_CGROUP: the pdu begins with a cgroup number.
const ACTION_CGROUP: u32 = 1 << 8;
/// BLK_TC_* categories, in the high half of the action.
const CATEGORY_WRITE: u32 = 1 << 1;
const CATEGORY_FLUSH: u32 = 1 << 2;
const CATEGORY_SYNC: u32 = 1 << 3;
const CATEGORY_PASS_THROUGH: u32 = 1 << 9;
const CATEGORY_NOTIFY: u32 = 1 << 10;
const CATEGORY_AHEAD: u32 = 1 << 11;
const CATEGORY_METADATA: u32 = 1 << 12;
const CATEGORY_DISCARD: u32 = 1 << 13;
/// __BLK_TN_TIMESTAMP
const NOTIFY_TIMESTAMP: u32 = 1;
/// Bytes searched for the next magic when bad records are left out.
const RESYNC_BYTES: usize = 64 * 1024;

/// One record, decoded.
#[derive(Debug, Clone)]
struct Record {
    time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    pid: u32,
    device: u32,
    /// Seconds and nanoseconds of a timestamp notification.
    wall: Option<(u32, u32)>,
    /// Number and offset in its file, for messages.
    number: u64,
    byte: u64,
}

/// One file and its next record.
struct Stream {
    /// `None`: the source that the trace was opened with.
    source: Option<Source>,
    big_endian: Option<bool>,
    records: u64,
    next: Option<Record>,
    ended: bool,
}

pub(crate) struct Blktrace {
    streams: Vec<Stream>,
    pairing: Pairing,
    begun: bool,
}

pub(crate) fn fit(sample: &Sample<'_>) -> Confidence {
    match sample.bytes.get(..4).and_then(byte_order) {
        Some(_) => Confidence::Certain,
        None => Confidence::No,
    }
}

/// Whether the magic is big-endian, if it is the magic.
fn byte_order(start: &[u8]) -> Option<bool> {
    let start: [u8; 4] = start.get(..4)?.try_into().ok()?;
    if u32::from_le_bytes(start) == MAGIC {
        Some(false)
    } else if u32::from_be_bytes(start) == MAGIC {
        Some(true)
    } else {
        None
    }
}

/// `NAME.blktrace.N` taken apart.
fn set_and_cpu(path: &Path) -> Option<(String, u32)> {
    let name = path.file_name()?.to_str()?;
    let (base, cpu) = name.rsplit_once('.')?;
    let cpu = cpu.parse().ok()?;
    base.ends_with(".blktrace").then(|| (base.to_owned(), cpu))
}

/// The files of the set `base` beside `path`, by CPU.
fn files_of_set(path: &Path, base: &str) -> Vec<PathBuf> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let (other, cpu) = set_and_cpu(&entry.path())?;
            (other == base).then(|| (cpu, entry.path()))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// The first file of the set that `path` names without its `.blktrace.N` or `.N`, if `path` itself
/// is no file.
pub(crate) fn first_of_set(path: &Path) -> Option<PathBuf> {
    if path.exists() {
        return None;
    }
    let name = path.file_name()?.to_str()?;
    let base =
        if name.ends_with(".blktrace") { name.to_owned() } else { format!("{name}.blktrace") };
    files_of_set(path, &base).into_iter().next()
}

impl Blktrace {
    pub(crate) fn new(path: &Path) -> Result<Self, TraceError> {
        let stream =
            |source| Stream { source, big_endian: None, records: 0, next: None, ended: false };
        let mut streams = vec![stream(None)];
        if let Some((base, own)) = set_and_cpu(path) {
            for file in files_of_set(path, &base) {
                let is_own = set_and_cpu(&file).is_some_and(|(_, cpu)| cpu == own);
                // A CPU that traced nothing leaves an empty file.
                let empty = std::fs::metadata(&file).is_ok_and(|data| data.len() == 0);
                if !is_own && !empty {
                    streams.push(stream(Some(Source::open(&file)?)));
                }
            }
        }
        Ok(Self { streams, pairing: Pairing::default(), begun: false })
    }
}

impl RowReader for Blktrace {
    fn fill(
        &mut self,
        source: &mut Source,
        reorder_window: &mut ReorderWindow,
    ) -> Result<bool, TraceError> {
        if !self.begun {
            self.begun = true;
            let files = self.streams.len();
            reorder_window.metadata.header.insert("cpu_files".to_owned(), files.to_string());
            for stream in &mut self.streams {
                stream.advance(source, reorder_window)?;
            }
        }
        while !reorder_window.is_full() {
            let earliest = self
                .streams
                .iter()
                .enumerate()
                .filter_map(|(index, stream)| Some((stream.next.as_ref()?.time_ns, index)))
                .min();
            let Some((_, index)) = earliest else {
                if let Err(problem) = self.pairing.finish(reorder_window) {
                    let records = self.streams[0].records;
                    bad_record(source, reorder_window, records, None, source.offset(), problem)?;
                }
                return Ok(false);
            };
            let stream = &mut self.streams[index];
            if let Some(record) = stream.next.take()
                && let Err(problem) = pair(&mut self.pairing, &record, reorder_window)
            {
                let of = stream.source.as_ref().unwrap_or(source);
                bad_record(of, reorder_window, record.number, None, record.byte, problem)?;
            }
            stream.advance(source, reorder_window)?;
        }
        Ok(true)
    }
}

impl Stream {
    /// Reads the next record of this file.
    fn advance(
        &mut self,
        main: &mut Source,
        reorder_window: &mut ReorderWindow,
    ) -> Result<(), TraceError> {
        let source = self.source.as_mut().unwrap_or(main);
        while !self.ended {
            let byte = source.offset();
            let start = source.peek(HEADER_BYTES)?;
            if start.is_empty() {
                self.ended = true;
                return Ok(());
            }
            self.records += 1;
            let have = start.len();
            if self.big_endian.is_none() {
                self.big_endian = byte_order(start);
            }
            let big_endian = self.big_endian.unwrap_or(false);
            if byte_order(start) != Some(big_endian) && have >= 4 {
                let problem = Problem::new("no blktrace record of version 7 begins here");
                bad_record(source, reorder_window, self.records, None, byte, problem)?;
                resynchronize(source, big_endian)?;
                continue;
            }
            if have < HEADER_BYTES {
                source.consume(have);
                truncated(source, reorder_window, self.records, byte, have, HEADER_BYTES)?;
                continue;
            }
            let mut record = decode(start, big_endian, self.records, byte);
            let pdu_bytes = usize::from(u16_at(start, 46, big_endian));
            source.consume(HEADER_BYTES);
            let pdu = source.take(pdu_bytes)?.unwrap_or(&[]);
            if pdu.len() < pdu_bytes {
                let have = HEADER_BYTES + pdu.len();
                truncated(
                    source,
                    reorder_window,
                    self.records,
                    byte,
                    have,
                    HEADER_BYTES + pdu_bytes,
                )?;
                continue;
            }
            let notify = record.action >> 16 & CATEGORY_NOTIFY != 0;
            if notify && record.action & 0xffff == NOTIFY_TIMESTAMP && pdu_bytes >= 8 {
                record.wall = Some((u32_at(pdu, 0, big_endian), u32_at(pdu, 4, big_endian)));
            }
            self.next = Some(record);
            return Ok(());
        }
        Ok(())
    }
}

/// Passes over bytes up to the next magic.
fn resynchronize(source: &mut Source, big_endian: bool) -> Result<(), TraceError> {
    let magic = if big_endian { MAGIC.to_be_bytes() } else { MAGIC.to_le_bytes() };
    source.consume(1);
    loop {
        let shown = source.peek(RESYNC_BYTES)?;
        if let Some(position) = memchr::memmem::find(shown, &magic) {
            source.consume(position);
            return Ok(());
        }
        let passed = shown.len().saturating_sub(3);
        if passed == 0 || shown.len() < RESYNC_BYTES {
            let rest = shown.len();
            source.consume(rest);
            return Ok(());
        }
        source.consume(passed);
    }
}

fn u16_at(bytes: &[u8], position: usize, big_endian: bool) -> u16 {
    let word = [bytes[position], bytes[position + 1]];
    if big_endian { u16::from_be_bytes(word) } else { u16::from_le_bytes(word) }
}

fn u32_at(bytes: &[u8], position: usize, big_endian: bool) -> u32 {
    let first = u32::from(u16_at(bytes, position, big_endian));
    let second = u32::from(u16_at(bytes, position + 2, big_endian));
    if big_endian { first << 16 | second } else { second << 16 | first }
}

fn u64_at(bytes: &[u8], position: usize, big_endian: bool) -> u64 {
    let first = u64::from(u32_at(bytes, position, big_endian));
    let second = u64::from(u32_at(bytes, position + 4, big_endian));
    if big_endian { first << 32 | second } else { second << 32 | first }
}

fn decode(bytes: &[u8], big_endian: bool, number: u64, byte: u64) -> Record {
    Record {
        time_ns: u64_at(bytes, 8, big_endian),
        sector: u64_at(bytes, 16, big_endian),
        bytes: u32_at(bytes, 24, big_endian),
        action: u32_at(bytes, 28, big_endian),
        pid: u32_at(bytes, 32, big_endian),
        device: u32_at(bytes, 36, big_endian),
        wall: None,
        number,
        byte,
    }
}

fn pair(
    pairing: &mut Pairing,
    record: &Record,
    reorder_window: &mut ReorderWindow,
) -> Result<(), Problem> {
    let category = record.action >> 16;
    if category & CATEGORY_NOTIFY != 0 {
        if let Some((seconds, nanoseconds)) = record.wall {
            let wall = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
            reorder_window.wall_of_clock_zero_ns = Some(wall - i128::from(record.time_ns));
            reorder_window.metadata.start_wall_zone = Some("UTC".to_owned());
        }
        return Ok(());
    }
    let kind = match record.action & 0xffff & !ACTION_CGROUP {
        1 => EventKind::Queue,
        6 => EventKind::Requeue,
        7 => EventKind::Issue,
        8 => EventKind::Complete,
        12 => EventKind::Insert,
        // Merges, plugging, remapping and driver data say nothing that those do not.
        2..=5 | 9..=11 | 13..=17 => return Ok(()),
        other => return Err(Problem::new(format!("action {other} is none of blktrace's"))),
    };
    if record.time_ns > u64::MAX / 2 {
        return Err(Problem::new(format!("time {} ns is beyond 292 years", record.time_ns)));
    }
    if category & CATEGORY_PASS_THROUGH != 0 {
        if kind == EventKind::Issue {
            reorder_window.metadata.warn(blkparse::PASS_THROUGH);
        }
        return Ok(());
    }
    if !record.bytes.is_multiple_of(512) {
        return Err(Problem::new(format!("{} bytes are no whole sectors", record.bytes)));
    }
    let operation = if category & CATEGORY_DISCARD != 0 {
        Operation::Discard
    } else if category & CATEGORY_WRITE != 0 {
        Operation::Write
    } else if category & CATEGORY_FLUSH != 0 && record.bytes == 0 {
        Operation::Flush
    } else {
        Operation::Read
    };
    let flush = category & CATEGORY_FLUSH != 0;
    if record.bytes == 0 && !flush {
        return Ok(());
    }
    let has = |bit: u32| category & bit != 0;
    let flags =
        flags(Some(operation), has(CATEGORY_SYNC), has(CATEGORY_AHEAD), has(CATEGORY_METADATA));
    // MINORBITS of the kernel is 20.
    let key = (u64::from(record.device >> 20), u64::from(record.device & 0xf_ffff));
    let device = blkparse::device(reorder_window, key)?;
    pairing.event(
        Event {
            kind,
            time_ns: record.time_ns,
            device,
            sector: record.sector,
            sectors: u64::from(record.bytes / 512),
            letters: Letters { operation: Some(operation), flags, flush },
            client: record.pid,
        },
        reorder_window,
    )
}
