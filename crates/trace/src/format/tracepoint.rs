//! Linux block tracepoints as text: `/sys/kernel/tracing/trace`, `trace_pipe`, `trace-cmd report`,
//! `perf script`.
//!
//! A line is `task-pid [cpu] flags seconds.fraction: event: major,minor letters [bytes (command)]
//! sector + sectors ...`. The task may hold blanks and dashes; the flags may be absent.
//! `block_bio_queue`, `block_rq_insert`, `block_rq_issue`, `block_rq_complete`, `block_rq_requeue`
//! and `block_bio_complete` are paired into requests. A flush is issued with no sectors and
//! completes at sector 2^64 - 1. `block_bio_remap` says which partition belongs to which disk: a
//! queued piece names the partition, the issued request the disk.
//!
//! Comment lines `# agewell KEY: VALUE` become metadata. Lost events, which the kernel's header
//! reports, are counted.

use std::collections::BTreeMap;

use super::blkparse::{PASS_THROUGH, device, device_key};
use super::{Confidence, LineFormat, Sample};
use crate::error::Problem;
use crate::fields::{Fields, integer, need, scaled, try_integer};
use crate::pairing::{Event, EventKind, Pairing, letters};
use crate::reorder_window::ReorderWindow;

const LOST: &str = "events were lost by the kernel while it traced";
const OTHER_EVENTS: &str = "events that are not of the block layer were passed over";

#[derive(Default)]
pub(crate) struct Tracepoint {
    pairing: Pairing,
    /// Partition to disk, as `major,minor`.
    disk_of: BTreeMap<(u64, u64), (u64, u64)>,
}

pub(crate) fn fit(sample: &Sample<'_>) -> Confidence {
    let lines: Vec<&[u8]> =
        sample.lines().iter().copied().filter(|line| !line.starts_with(b"#")).collect();
    let events = lines.iter().filter(|line| find_event(line).is_some()).count();
    let others = lines.len() - events;
    let tracer = sample.bytes.starts_with(b"# tracer:") || sample.bytes.starts_with(b"# agewell ");
    if tracer && events > 0 {
        Confidence::Certain
    } else if events > others {
        Confidence::Likely
    } else {
        Confidence::No
    }
}

/// The event's name, what precedes it and what follows it.
struct Found<'a> {
    before: &'a [u8],
    name: &'a [u8],
    body: &'a [u8],
}

/// Finds `block_NAME: ` or `block:block_NAME: ` behind a time and a colon.
fn find_event(line: &[u8]) -> Option<Found<'_>> {
    memchr::memmem::find_iter(line, b"block_").find_map(|position| {
        let before = &line[..position];
        let before = before.strip_suffix(b"block:").unwrap_or(before).trim_ascii_end();
        let before = before.strip_suffix(b":")?;
        before.last().filter(|byte| byte.is_ascii_digit())?;
        let rest = &line[position..];
        let colon = rest.iter().position(|&byte| byte == b':')?;
        let name = &rest[..colon];
        name.iter().all(|&byte| byte.is_ascii_lowercase() || byte == b'_').then_some(())?;
        Some(Found { before, name, body: &rest[colon + 1..] })
    })
}

/// Process number in `task-pid [cpu]`, `task-pid (tgid) [cpu]` or perf's `task pid [cpu]`; 0 if
/// there is none.
fn process(before: &[u8]) -> u32 {
    let end = memchr::memrchr(b'[', before).unwrap_or(before.len());
    let mut task = before[..end].trim_ascii_end();
    if task.ends_with(b")")
        && let Some(open) = memchr::memrchr(b'(', task)
    {
        task = task[..open].trim_ascii_end();
    }
    let digits = task.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
    try_integer(&task[digits..]).and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0)
}

impl Tracepoint {
    fn comment(line: &[u8], reorder_window: &mut ReorderWindow) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_start_matches('#').trim();
        if let Some(pair) = text.strip_prefix("agewell ") {
            if let Some((key, value)) = pair.split_once(':') {
                reorder_window
                    .metadata
                    .header
                    .insert(key.trim().to_owned(), value.trim().to_owned());
            }
        } else if let Some(counts) = text.strip_prefix("entries-in-buffer/entries-written:") {
            let counts = counts.split_whitespace().next().unwrap_or_default();
            let numbers = counts
                .split_once('/')
                .and_then(|(kept, written)| kept.parse().ok().zip(written.parse().ok()));
            if let Some((kept, written)) = numbers
                && let Some(lost) = u64::checked_sub(written, kept).filter(|&lost| lost > 0)
            {
                reorder_window.metadata.warn_many(LOST, lost);
            }
        }
    }

    /// `8,0 W 2048 + 8 <- (8,1) 0`: of one major number, so a partition and its disk.
    fn remap(&mut self, body: &[u8]) -> Option<()> {
        let disk = device_key(Fields::new(body).word()?)?;
        let open = memchr::memchr(b'(', body)?;
        let close = memchr::memchr(b')', body).filter(|&close| close > open)?;
        let partition = device_key(&body[open + 1..close])?;
        if partition.0 == disk.0 && partition != disk && self.disk_of.len() < 4096 {
            self.disk_of.insert(partition, disk);
        }
        Some(())
    }
}

impl LineFormat for Tracepoint {
    fn parse(&mut self, line: &[u8], reorder_window: &mut ReorderWindow) -> Result<(), Problem> {
        if line.trim_ascii_start().starts_with(b"#") {
            Self::comment(line.trim_ascii(), reorder_window);
            return Ok(());
        }
        let Some(found) = find_event(line) else {
            return other_line(line, reorder_window);
        };
        let time_start =
            found.before.iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1);
        let time_ns = scaled(&found.before[time_start..], 9, "time in s")?;
        let kind = match found.name {
            b"block_bio_queue" => EventKind::Queue,
            b"block_rq_insert" => EventKind::Insert,
            b"block_rq_issue" => EventKind::Issue,
            b"block_rq_complete" => EventKind::Complete,
            b"block_bio_complete" => EventKind::PieceComplete,
            b"block_rq_requeue" => EventKind::Requeue,
            b"block_bio_remap" => {
                self.remap(found.body);
                return Ok(());
            }
            _ => return Ok(()),
        };
        let mut fields = Fields::new(found.body);
        let device_field = need(fields.word(), "device")?;
        let key = device_key(device_field)
            .ok_or_else(|| Problem::field("device must be major,minor, not", device_field))?;
        let key = self.disk_of.get(&key).copied().unwrap_or(key);
        let code = need(fields.word(), "letters")?;
        let letters =
            letters(code).ok_or_else(|| Problem::field("unknown operation letters", code))?;
        let (sector, sectors) = range(fields.rest())?;
        if sectors == 0 && !letters.flush {
            if kind == EventKind::Issue {
                reorder_window.metadata.warn(PASS_THROUGH);
            }
            return Ok(());
        }
        let device = device(reorder_window, key)?;
        let client = process(&found.before[..time_start]);
        self.pairing.event(
            Event { kind, time_ns, device, sector, sectors, letters, client },
            reorder_window,
        )
    }

    fn end(&mut self, reorder_window: &mut ReorderWindow) -> Result<(), Problem> {
        self.pairing.finish(reorder_window)
    }
}

/// `... SECTOR + SECTORS ...`; the command in brackets may hold anything but a lone plus.
fn range(body: &[u8]) -> Result<(u64, u64), Problem> {
    let mut fields = Fields::new(body);
    let mut last: Option<&[u8]> = None;
    while let Some(word) = fields.word() {
        if word == b"+" {
            let sector = integer(need(last, "sector")?, "sector")?;
            let sectors = integer(need(fields.word(), "sectors")?, "sectors")?;
            return Ok((sector, sectors));
        }
        last = Some(word);
    }
    Err(Problem::new("no 'SECTOR + SECTORS' in the event; the line is cut or of another kernel"))
}

/// A line without a block event: another subsystem's, or the kernel reporting loss; anything else
/// is broken.
fn other_line(line: &[u8], reorder_window: &mut ReorderWindow) -> Result<(), Problem> {
    if line.starts_with(b"CPU:")
        && let Some(lost) = memchr::memmem::find(line, b"[LOST ")
    {
        let count = Fields::new(&line[lost + 6..]).word().and_then(try_integer).unwrap_or(1);
        reorder_window.metadata.warn_many(LOST, count);
        return Ok(());
    }
    // `time: name: ...`
    let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let has_time = words.any(|word| {
        word.strip_suffix(b":").is_some_and(|time| {
            time.contains(&b'.') && time.iter().all(|&byte| byte.is_ascii_digit() || byte == b'.')
        })
    });
    let named = words.next().is_some_and(|word| word.len() > 1 && word.ends_with(b":"));
    // A cut block event must not pass for another subsystem's.
    if has_time && named && memchr::memmem::find(line, b"block_").is_none() {
        reorder_window.metadata.warn(OTHER_EVENTS);
        return Ok(());
    }
    Err(Problem::field("not a tracepoint line:", line.trim_ascii()))
}
