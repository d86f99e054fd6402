//! `CloudPhysics` vscsi traces (libCacheSim `vscsi.h`), little-endian.
//!
//! Version 1, 32 bytes: u32 serial, length in bytes, scatter-gather entries; u16 SCSI command,
//! version; u64 block of 512 bytes, time in us. Version 2, 40 bytes: u16 command, version; u32
//! serial, length, entries; u64 block, time in us, response time in us (0: not measured). The high
//! byte of the version word is the version. Read or write follows **only from the SCSI opcode**.

use agewell_core::Operation;

use super::msr::UNALIGNED;
use super::{Confidence, RecordFormat, Sample};
use crate::error::Problem;
use crate::fields::{covering, times};
use crate::record::{BlockRow, TIME_MISSING};
use crate::reorder_window::ReorderWindow;

const OTHER_COMMANDS: &str = "SCSI commands that move no data were passed over";

pub(crate) struct Vscsi {
    version: u8,
}

impl Vscsi {
    pub(crate) fn new(version: u8) -> Self {
        Self { version }
    }
}

/// The version that the first records carry: 1, 2 or neither.
pub(crate) fn version_of(bytes: &[u8]) -> Option<u8> {
    [(1_u8, 32_usize, 14_usize), (2, 40, 2)].into_iter().find_map(|(version, size, position)| {
        let records = bytes.chunks_exact(size).take(16);
        let total = records.len();
        let fitting =
            records.filter(|record| u16_at(record, position) >> 8 == u16::from(version)).count();
        (total > 0 && fitting * 2 > total).then_some(version)
    })
}

pub(crate) fn fit(sample: &Sample<'_>) -> Confidence {
    match version_of(sample.bytes) {
        // One 16-bit field in every record: by chance once in 256^n.
        Some(_) if sample.bytes.len() >= 80 => Confidence::Likely,
        Some(_) => Confidence::Possible,
        None => Confidence::No,
    }
}

fn u16_at(bytes: &[u8], position: usize) -> u16 {
    u16::from_le_bytes([bytes[position], bytes[position + 1]])
}

fn u32_at(bytes: &[u8], position: usize) -> u32 {
    u32::from(u16_at(bytes, position)) | u32::from(u16_at(bytes, position + 2)) << 16
}

fn u64_at(bytes: &[u8], position: usize) -> u64 {
    u64::from(u32_at(bytes, position)) | u64::from(u32_at(bytes, position + 4)) << 32
}

/// What a SCSI opcode asks (SBC-3, table of commands); `None` for known commands that move no user
/// data.
fn operation(command: u16) -> Result<Option<Operation>, Problem> {
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Ok(Some(Operation::Read)),
        // WRITE 6, 10, 12, 16; WRITE AND VERIFY 10, 12, 16; WRITE SAME 10, 16; COMPARE AND WRITE
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e | 0x41 | 0x93 | 0x89 => {
            Ok(Some(Operation::Write))
        }
        0x42 => Ok(Some(Operation::Discard)),
        0x35 | 0x91 => Ok(Some(Operation::Flush)),
        // TEST UNIT READY, REQUEST SENSE, INQUIRY, MODE, START STOP, READ CAPACITY, VERIFY, LOG
        // SENSE, RESERVE, ...
        0x00 | 0x03 | 0x12 | 0x15 | 0x16 | 0x17 | 0x1a | 0x1b | 0x1d | 0x1e | 0x25 | 0x2b
        | 0x2f | 0x34 | 0x37 | 0x4c | 0x4d | 0x55 | 0x56 | 0x57 | 0x5a | 0x5e | 0x5f | 0x83
        | 0x84 | 0x8f | 0x90 | 0x9e | 0xa0 | 0xa3 | 0xa4 | 0xaf => Ok(None),
        _ => Err(Problem::new(format!("0x{command:02x} is no SCSI block command"))),
    }
}

impl RecordFormat for Vscsi {
    fn record_bytes(&self) -> usize {
        if self.version == 2 { 40 } else { 32 }
    }

    fn parse(&mut self, record: &[u8], reorder_window: &mut ReorderWindow) -> Result<(), Problem> {
        let (command, version, bytes, first, time_us, response_us) = if self.version == 2 {
            (
                u16_at(record, 0),
                u16_at(record, 2),
                u32_at(record, 8),
                u64_at(record, 16),
                u64_at(record, 24),
                u64_at(record, 32),
            )
        } else {
            (
                u16_at(record, 12),
                u16_at(record, 14),
                u32_at(record, 4),
                u64_at(record, 16),
                u64_at(record, 24),
                0,
            )
        };
        if version >> 8 != u16::from(self.version) {
            return Err(Problem::new(format!(
                "version word 0x{version:04x} in a trace of version {}",
                self.version
            )));
        }
        let Some(operation) = operation(command)? else {
            reorder_window.metadata.warn(OTHER_COMMANDS);
            return Ok(());
        };
        let enqueue_ns = times(time_us, 1000, "time in us")?;
        let finish_ns = if response_us == 0 {
            TIME_MISSING
        } else {
            enqueue_ns + times(response_us, 1000, "response time in us")?
        };
        let first_byte = first
            .checked_mul(512)
            .ok_or_else(|| Problem::new(format!("block {first} is beyond any device")))?;
        let is_flush = operation == Operation::Flush;
        let (sector, sectors, aligned) =
            if is_flush { (0, 0, true) } else { covering(first_byte, u64::from(bytes))? };
        let device = reorder_window.devices.numbered(0, &mut reorder_window.metadata)?;
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
        Ok(())
    }
}
