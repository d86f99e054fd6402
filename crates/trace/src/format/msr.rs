//! MSR Cambridge CSV (SNIA IOTTA 387):
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! Times are Windows FILETIME, 100 ns since 1601-01-01 UTC; offset and size are bytes; the response
//! time is in 100 ns as well, and 0 means it was not measured. Records were written as requests
//! completed, so the clock steps back.

use agewell_core::Operation;

use super::LineFormat;
use crate::error::Problem;
use crate::fields::{Fields, covering, integer, integer32, need};
use crate::record::{BlockRow, TIME_MISSING};
use crate::reorder_window::ReorderWindow;

/// FILETIME of 1970-01-01: 11,644,473,600 s after 1601-01-01.
const FILETIME_OF_1970: u64 = 116_444_736_000_000_000;
/// FILETIME ticks are 100 ns.
const TICK_NS: u64 = 100;
/// FILETIME of 2100-01-01; a later one is another unit.
const FILETIME_OF_2100: u64 = 157_469_184_000_000_000;

pub(crate) const UNALIGNED: &str =
    "requests do not start or end on a 512-byte sector and were rounded outward";
const NO_RESPONSE: &str = "requests have a response time of 0, taken as not measured";

#[derive(Default)]
pub(crate) struct Msr;

impl LineFormat for Msr {
    fn is_header(&mut self, line: &[u8]) -> bool {
        line.trim_ascii_start().get(..9).is_some_and(|word| word.eq_ignore_ascii_case(b"timestamp"))
    }

    fn parse(&mut self, line: &[u8], reorder_window: &mut ReorderWindow) -> Result<(), Problem> {
        let mut fields = Fields::new(line);
        let filetime = integer(need(fields.comma(), "timestamp")?, "timestamp")?;
        if !(FILETIME_OF_1970..FILETIME_OF_2100).contains(&filetime) {
            return Err(Problem::new(format!(
                "timestamp {filetime} is no Windows FILETIME (100 ns since 1601) of 1970 to 2100"
            )));
        }
        let host = need(fields.comma(), "hostname")?;
        let disk_field = need(fields.comma(), "disk number")?;
        let disk = integer32(disk_field, "disk number")?;
        let operation = operation(need(fields.comma(), "type")?)?;
        let offset = integer(need(fields.comma(), "offset")?, "offset in bytes")?;
        let bytes = integer(need(fields.comma(), "size")?, "size in bytes")?;
        let response = integer(need(fields.comma(), "response time")?, "response time")?;
        if fields.comma().is_some_and(|rest| !rest.is_empty()) {
            return Err(Problem::new("more than seven columns"));
        }
        let enqueue_ns = (filetime - FILETIME_OF_1970) * TICK_NS;
        let finish_ns = if response == 0 {
            TIME_MISSING
        } else {
            response
                .checked_mul(TICK_NS)
                .and_then(|response_ns| enqueue_ns.checked_add(response_ns))
                .filter(|&ns| ns < TIME_MISSING)
                .ok_or_else(|| Problem::new(format!("response time {response} is too long")))?
        };
        let (sector, sectors, aligned) = covering(offset, bytes)?;
        let device = device(reorder_window, host, disk)?;
        reorder_window.push(BlockRow {
            enqueue_ns,
            finish_ns,
            device,
            sector,
            sectors,
            operation: operation as u8,
            ..BlockRow::default()
        })?;
        if !aligned {
            reorder_window.metadata.warn(UNALIGNED);
        }
        if response == 0 {
            reorder_window.metadata.warn(NO_RESPONSE);
        }
        Ok(())
    }
}

fn operation(field: &[u8]) -> Result<Operation, Problem> {
    match field {
        b"Read" => Ok(Operation::Read),
        b"Write" => Ok(Operation::Write),
        b"" => Err(Problem::new("the type column is blank; it must be Read or Write")),
        _ if field.eq_ignore_ascii_case(b"read") => Ok(Operation::Read),
        _ if field.eq_ignore_ascii_case(b"write") => Ok(Operation::Write),
        _ => Err(Problem::field("type must be Read or Write, not", field)),
    }
}

/// A device is a host's disk: `hm` and 1 become `hm_1`, as the trace files are called.
fn device(reorder_window: &mut ReorderWindow, host: &[u8], disk: u32) -> Result<u32, Problem> {
    let mut key = [0_u8; 64];
    let Some(room) = key.get_mut(..host.len() + 4) else {
        return Err(Problem::field("the hostname is longer than 60 bytes:", host));
    };
    let (name, number) = room.split_at_mut(host.len());
    name.copy_from_slice(host);
    number.copy_from_slice(&disk.to_le_bytes());
    reorder_window.devices.named(room, &mut reorder_window.metadata, || {
        format!("{}_{disk}", String::from_utf8_lossy(host))
    })
}
