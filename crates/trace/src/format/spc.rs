//! SPC-1 trace file format 1.0.1 (`UMass` Financial and `WebSearch` traces):
//! `ASU,LBA,Size,Opcode,Timestamp[,...]`.
//!
//! The address is in sectors of 512 bytes **within its ASU** (application storage unit), so every
//! ASU is a device of its own; the size is in **bytes**; the time in seconds. Columns after the
//! fifth are optional extras and ignored.

use agewell_core::Operation;

use super::LineFormat;
use super::msr::UNALIGNED;
use crate::error::Problem;
use crate::fields::{Fields, covering, integer, integer32, need, scaled};
use crate::record::BlockRow;
use crate::reorder_window::ReorderWindow;

#[derive(Default)]
pub(crate) struct Spc;

impl LineFormat for Spc {
    fn is_header(&mut self, line: &[u8]) -> bool {
        line.trim_ascii_start().get(..3).is_some_and(|word| word.eq_ignore_ascii_case(b"asu"))
    }

    fn parse(&mut self, line: &[u8], reorder_window: &mut ReorderWindow) -> Result<(), Problem> {
        let mut fields = Fields::new(line);
        let unit = integer32(need(fields.comma(), "ASU")?, "ASU")?;
        let first = integer(need(fields.comma(), "LBA")?, "LBA")?;
        let bytes = integer(need(fields.comma(), "size")?, "size in bytes")?;
        let operation = match need(fields.comma(), "opcode")? {
            b"R" | b"r" => Operation::Read,
            b"W" | b"w" => Operation::Write,
            b"" => return Err(Problem::new("the opcode column is blank; it must be R or W")),
            other => return Err(Problem::field("opcode must be R or W, not", other)),
        };
        let enqueue_ns = scaled(need(fields.comma(), "timestamp")?, 9, "timestamp in s")?;
        let first_byte = first
            .checked_mul(512)
            .ok_or_else(|| Problem::new(format!("LBA {first} is beyond any device")))?;
        let (sector, sectors, aligned) = covering(first_byte, bytes)?;
        let device = reorder_window.devices.numbered(unit, &mut reorder_window.metadata)?;
        reorder_window.push(BlockRow {
            enqueue_ns,
            device,
            sector,
            sectors,
            operation: operation as u8,
            ..BlockRow::default()
        })?;
        if !aligned {
            reorder_window.metadata.warn(UNALIGNED);
        }
        Ok(())
    }
}
