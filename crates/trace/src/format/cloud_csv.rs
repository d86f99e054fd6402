//! The block traces of two clouds, opposite in nearly everything.
//!
//! Alibaba 2020 (github.com/alibaba/block-traces): `device_id,opcode,offset,length,timestamp`:
//! letters R and W, bytes, microseconds since 1970. Tencent CBS 2018 (SNIA IOTTA):
//! `Timestamp,Offset,Size,IOType,VolumeID`: **0 is read** and 1 is write, sectors of 512 bytes,
//! whole seconds since 1970. Both interleave many volumes and step back now and then.

use agewell_core::Operation;

use super::LineFormat;
use super::msr::UNALIGNED;
use crate::error::Problem;
use crate::fields::{Fields, covering, integer, integer32, need, times};
use crate::record::BlockRow;
use crate::reorder_window::ReorderWindow;

pub(crate) struct Alibaba;

impl LineFormat for Alibaba {
    fn is_header(&mut self, line: &[u8]) -> bool {
        line.trim_ascii_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case(b"device"))
    }

    fn parse(&mut self, line: &[u8], reorder_window: &mut ReorderWindow) -> Result<(), Problem> {
        let mut fields = Fields::new(line);
        let volume = integer32(need(fields.comma(), "device_id")?, "device_id")?;
        let operation = match need(fields.comma(), "opcode")? {
            b"R" | b"r" => Operation::Read,
            b"W" | b"w" => Operation::Write,
            b"" => return Err(Problem::new("the opcode column is blank; it must be R or W")),
            other => return Err(Problem::field("opcode must be R or W, not", other)),
        };
        let offset = integer(need(fields.comma(), "offset")?, "offset in bytes")?;
        let bytes = integer(need(fields.comma(), "length")?, "length in bytes")?;
        let time_us = integer(need(fields.comma(), "timestamp")?, "timestamp in us")?;
        if fields.comma().is_some() {
            return Err(Problem::new("more than five columns"));
        }
        let enqueue_ns = times(time_us, 1000, "timestamp in us")?;
        let (sector, sectors, aligned) = covering(offset, bytes)?;
        push(reorder_window, volume, operation, enqueue_ns, sector, sectors)?;
        if !aligned {
            reorder_window.metadata.warn(UNALIGNED);
        }
        Ok(())
    }
}

pub(crate) struct Tencent;

impl LineFormat for Tencent {
    fn is_header(&mut self, line: &[u8]) -> bool {
        line.trim_ascii_start().get(..9).is_some_and(|word| word.eq_ignore_ascii_case(b"timestamp"))
    }

    fn parse(&mut self, line: &[u8], reorder_window: &mut ReorderWindow) -> Result<(), Problem> {
        let mut fields = Fields::new(line);
        let time_s = integer(need(fields.comma(), "timestamp")?, "timestamp in s")?;
        let sector = integer(need(fields.comma(), "offset")?, "offset in sectors")?;
        let sectors = integer32(need(fields.comma(), "size")?, "size in sectors")?;
        let operation = match need(fields.comma(), "IO type")? {
            b"0" => Operation::Read,
            b"1" => Operation::Write,
            b"" => return Err(Problem::new("the IO type column is blank; it must be 0 or 1")),
            other => {
                return Err(Problem::field("IO type must be 0 (read) or 1 (write), not", other));
            }
        };
        let volume = integer32(need(fields.comma(), "volume")?, "volume")?;
        if fields.comma().is_some() {
            return Err(Problem::new("more than five columns"));
        }
        let enqueue_ns = times(time_s, 1_000_000_000, "timestamp in s")?;
        push(reorder_window, volume, operation, enqueue_ns, sector, sectors)
    }
}

fn push(
    reorder_window: &mut ReorderWindow,
    volume: u32,
    operation: Operation,
    enqueue_ns: u64,
    sector: u64,
    sectors: u32,
) -> Result<(), Problem> {
    let device = reorder_window.devices.numbered(volume, &mut reorder_window.metadata)?;
    reorder_window.push_bare(BlockRow {
        enqueue_ns,
        device,
        sector,
        sectors,
        operation: operation as u8,
        ..BlockRow::default()
    })
}
