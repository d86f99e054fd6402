//! blkparse text, in the default format `major,minor cpu sequence seconds.nanoseconds pid action
//! letters ...`.
//!
//! Sectors are of 512 bytes and absolute. Q, I, D, C and R are paired into requests; all other
//! actions say nothing about them that those do not. Pass-through commands carry no sectors. The
//! per-CPU summary at the end is passed over.

use super::LineFormat;
use crate::error::Problem;
use crate::fields::{Fields, integer, need, scaled, try_integer};
use crate::pairing::{Event, EventKind, Pairing, letters};
use crate::reorder_window::ReorderWindow;

pub(crate) const PASS_THROUGH: &str = "commands that move no data were passed over";

/// Beginnings of the lines of blkparse's summary and greeting.
const SUMMARY: [&[u8]; 13] = [
    b"CPU",
    b"Total",
    b"Reads ",
    b"Read ",
    b"Writes ",
    b"Write ",
    b"PC ",
    b"IO unplugs",
    b"Throughput",
    b"Events",
    b"Skips",
    b"Input file",
    b"Device:",
];

#[derive(Default)]
pub(crate) struct Blkparse {
    pairing: Pairing,
    events: u64,
}

/// `major,minor` as one key.
pub(crate) fn device_key(field: &[u8]) -> Option<(u64, u64)> {
    let comma = field.iter().position(|&byte| byte == b',')?;
    let major = try_integer(&field[..comma])?;
    let minor = try_integer(&field[comma + 1..])?;
    (major < 1 << 12 && minor < 1 << 20).then_some((major, minor))
}

/// The number of device `major,minor`.
pub(crate) fn device(
    reorder_window: &mut ReorderWindow,
    (major, minor): (u64, u64),
) -> Result<u32, Problem> {
    reorder_window
        .devices
        .keyed(major << 32 | minor, &mut reorder_window.metadata, || format!("{major},{minor}"))
}

impl LineFormat for Blkparse {
    fn parse(&mut self, line: &[u8], reorder_window: &mut ReorderWindow) -> Result<(), Problem> {
        let mut fields = Fields::new(line);
        let first = need(fields.word(), "device")?;
        let Some(key) = device_key(first) else {
            let trimmed = line.trim_ascii_start();
            let known = SUMMARY.iter().any(|beginning| trimmed.starts_with(beginning));
            // A greeting may stand before the first event, the summary only after it.
            if known && (self.events > 0 || trimmed.starts_with(b"Input file")) {
                return Ok(());
            }
            return Err(Problem::field("neither an event nor blkparse's summary:", line));
        };
        integer(need(fields.word(), "CPU")?, "CPU")?;
        integer(need(fields.word(), "sequence")?, "sequence")?;
        let time_ns = scaled(need(fields.word(), "time")?, 9, "time in s")?;
        let pid = integer(need(fields.word(), "process")?, "process")?;
        let action = need(fields.word(), "action")?;
        let kind = match action {
            b"Q" => EventKind::Queue,
            b"I" => EventKind::Insert,
            b"D" => EventKind::Issue,
            b"C" => EventKind::Complete,
            b"R" => EventKind::Requeue,
            b"M" | b"F" | b"G" | b"S" | b"P" | b"U" | b"UT" | b"T" | b"X" | b"B" | b"A" | b"m" => {
                self.events += 1;
                return Ok(());
            }
            _ => return Err(Problem::field("unknown action", action)),
        };
        let code = need(fields.word(), "letters")?;
        let letters =
            letters(code).ok_or_else(|| Problem::field("unknown operation letters", code))?;
        let sector_field = need(fields.word(), "sector")?;
        let sector = integer(sector_field, "sector")?;
        let sectors = match fields.word() {
            Some(b"+") => integer(need(fields.word(), "sectors")?, "sectors")?,
            // `0 (00 ..) [process]` or `[process]`: a command without sectors.
            _ if letters.operation.is_none() || letters.flush => 0,
            Some(other) if other.starts_with(b"(") => 0,
            // An issue or completion of no sectors shows the process or error at once.
            Some(other) if other.starts_with(b"[") => 0,
            Some(other) => return Err(Problem::field("'+' and a length must follow, not", other)),
            None => return Err(Problem::new("no length column; the line is too short")),
        };
        self.events += 1;
        if sectors == 0 && !letters.flush {
            if kind == EventKind::Issue {
                reorder_window.metadata.warn(PASS_THROUGH);
            }
            return Ok(());
        }
        let device = device(reorder_window, key)?;
        let client = pid as u32;
        self.pairing.event(
            Event { kind, time_ns, device, sector, sectors, letters, client },
            reorder_window,
        )
    }

    fn end(&mut self, reorder_window: &mut ReorderWindow) -> Result<(), Problem> {
        self.pairing.finish(reorder_window)
    }
}
