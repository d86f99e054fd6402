//! fio I/O logs (fio HOWTO, "Trace file format v2" and "v3").
//!
//! Version 2: `file action [offset length]`; there are no times but `wait` lines, in us, each
//! relative to the one before, so a request's time is the sum of the waits before it. Version 3:
//! `time file action [offset length]`, the time in us (the HOWTO gives no unit; fio writes
//! microseconds since its start), counted from the first line's. Offsets and lengths are bytes. A
//! file is a device; `sync` and `datasync` are flushes, `trim` a discard.

use agewell_core::Operation;

use super::msr::UNALIGNED;
use super::{Confidence, LineFormat, Sample};
use crate::error::Problem;
use crate::fields::{Fields, covering, integer, need, times};
use crate::record::BlockRow;
use crate::reorder_window::ReorderWindow;

#[derive(Default)]
pub(crate) struct FioIolog {
    version: u8,
    clock_ns: u64,
    started: bool,
}

fn version_of(line: &[u8]) -> Option<u8> {
    match line.trim_ascii() {
        b"fio version 2 iolog" => Some(2),
        b"fio version 3 iolog" => Some(3),
        _ => None,
    }
}

pub(crate) fn fit(sample: &Sample<'_>) -> Confidence {
    match sample.lines().first() {
        Some(line) if version_of(line).is_some() => Confidence::Certain,
        _ => Confidence::No,
    }
}

impl LineFormat for FioIolog {
    fn is_header(&mut self, line: &[u8]) -> bool {
        let version = version_of(line);
        self.version = version.unwrap_or(0);
        version.is_some()
    }

    fn parse(&mut self, line: &[u8], reorder_window: &mut ReorderWindow) -> Result<(), Problem> {
        if self.version == 0 {
            return Err(Problem::new(
                "the first line must be 'fio version 2 iolog' or 'fio version 3 iolog'",
            ));
        }
        let mut fields = Fields::new(line);
        let mut clock_ns = self.clock_ns;
        if self.version == 3 {
            let time_us = integer(need(fields.word(), "time")?, "time in us")?;
            clock_ns = times(time_us, 1000, "time in us")?;
            if !self.started {
                reorder_window.start_at(clock_ns);
            }
        }
        self.started = true;
        let file = need(fields.word(), "file")?;
        let action = need(fields.word(), "action")?;
        let operation = match action {
            b"add" | b"open" | b"close" => {
                if !fields.rest().is_empty() {
                    return Err(Problem::field("nothing may follow the action:", fields.rest()));
                }
                if action == b"add" {
                    device(reorder_window, file)?;
                }
                self.clock_ns = clock_ns;
                return Ok(());
            }
            b"wait" => {
                let wait_us = integer(need(fields.word(), "wait")?, "wait in us")?;
                let wait_ns = times(wait_us, 1000, "wait in us")?;
                self.clock_ns = clock_ns
                    .checked_add(wait_ns)
                    .filter(|&ns| ns < u64::MAX / 2)
                    .ok_or_else(|| Problem::new("the waits add up beyond 292 years"))?;
                return Ok(());
            }
            b"read" => Operation::Read,
            b"write" => Operation::Write,
            b"trim" => Operation::Discard,
            b"sync" | b"datasync" => Operation::Flush,
            _ => return Err(Problem::field("unknown action", action)),
        };
        let (sector, sectors, aligned) = if operation == Operation::Flush {
            // An offset and a length may follow and mean nothing.
            (0, 0, true)
        } else {
            let offset = integer(need(fields.word(), "offset")?, "offset in bytes")?;
            let bytes = integer(need(fields.word(), "length")?, "length in bytes")?;
            if !fields.rest().is_empty() {
                return Err(Problem::field("nothing may follow the length:", fields.rest()));
            }
            covering(offset, bytes)?
        };
        let device = device(reorder_window, file)?;
        reorder_window.push(BlockRow {
            enqueue_ns: clock_ns,
            device,
            sector,
            sectors,
            operation: operation as u8,
            ..BlockRow::default()
        })?;
        self.clock_ns = clock_ns;
        if !aligned {
            reorder_window.metadata.warn(UNALIGNED);
        }
        Ok(())
    }
}

fn device(reorder_window: &mut ReorderWindow, file: &[u8]) -> Result<u32, Problem> {
    reorder_window
        .devices
        .named(file, &mut reorder_window.metadata, || String::from_utf8_lossy(file).into_owned())
}
