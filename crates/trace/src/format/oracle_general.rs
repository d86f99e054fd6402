//! oracleGeneral (libCacheSim `oracleGeneralBin.h`), packed little-endian: u32 time in s, u64
//! object, u32 size in bytes, i64 next access (-1 or 2^63 - 1: none); the 27-byte form has u8
//! operation and u16 name space before the last.
//!
//! A cache format: there is **no address and no operation** in the 24-byte form. The object number
//! stands in for the sector, which is right for the block traces that libCacheSim converted by
//! block number and a mere label for others; every request is a read, except in the 27-byte form.
//! Numbers beyond 2^54 (hashes) are folded so that an address in bytes still fits 64 bits, and
//! counted. The name space becomes the client.

use agewell_core::Operation;

use super::{RecordFormat, Sample, Sureness};
use crate::error::Problem;
use crate::record::BlockRow;
use crate::scene::Scene;

const OBJECT_NUMBERS: &str =
    "requests have object numbers, taken as sectors; the format has no address";
const FOLDED: &str = "object numbers beyond 2^54 were folded";
/// Sectors below 2^55 have byte addresses below 2^64; one bit is left for the length.
const SECTOR_BITS: u32 = 54;

pub(crate) struct OracleGeneral {
    operation_and_space: bool,
}

impl OracleGeneral {
    pub(crate) fn new(operation_and_space: bool) -> Self {
        Self { operation_and_space }
    }
}

#[inline]
fn bytes_at<const N: usize>(record: &[u8], position: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&record[position..position + N]);
    bytes
}

/// The codes of libCacheSim `req_op_e`: get, gets, read are reads; delete is a discard; whatever
/// changes the object is a write.
fn operation(code: u8) -> Result<Operation, Problem> {
    match code {
        0..=2 | 12 => Ok(Operation::Read),
        3..=8 | 10 | 11 | 13 | 14 => Ok(Operation::Write),
        9 => Ok(Operation::Discard),
        _ => Err(Problem::new(format!("operation {code} is none of libCacheSim's 0 to 14"))),
    }
}

/// Without a magic number, only sense can tell: times that rise, sizes above 0, next accesses in
/// the future.
pub(crate) fn fit(sample: &Sample<'_>, operation_and_space: bool) -> Sureness {
    if sample.is_text() {
        return Sureness::No;
    }
    let size = if operation_and_space { 27 } else { 24 };
    let (mut total, mut fitting, mut last_s) = (0_usize, 0_usize, 0);
    for (index, record) in sample.bytes.chunks_exact(size).take(64).enumerate() {
        total += 1;
        let time_s = u32::from_le_bytes(bytes_at(record, 0));
        let bytes = u32::from_le_bytes(bytes_at(record, 12));
        let next = i64::from_le_bytes(bytes_at(record, size - 8));
        let has_code = !operation_and_space || operation(record[16]).is_ok();
        let sensible = (index == 0 || time_s >= last_s)
            && bytes > 0
            && (next == -1 || next > index as i64)
            && has_code;
        fitting += usize::from(sensible);
        last_s = time_s;
    }
    if total == 0 || fitting * 10 < total * 9 {
        Sureness::No
    } else if total >= 4 {
        Sureness::Likely
    } else {
        Sureness::Possible
    }
}

impl RecordFormat for OracleGeneral {
    fn record_bytes(&self) -> usize {
        if self.operation_and_space { 27 } else { 24 }
    }

    fn parse(&mut self, record: &[u8], scene: &mut Scene) -> Result<(), Problem> {
        // Of a known length, so that no field needs a check of its own.
        let head: &[u8; 16] = record.first_chunk().expect("a record is longer");
        let tail: &[u8; 8] = record.last_chunk().expect("a record is longer");
        let time_s = u32::from_le_bytes(bytes_at(head, 0));
        let object = u64::from_le_bytes(bytes_at(head, 4));
        let bytes = u32::from_le_bytes(bytes_at(head, 12));
        let next = i64::from_le_bytes(*tail);
        if next < -1 {
            return Err(Problem::new(format!("next access {next} is neither -1 nor an index")));
        }
        let (operation, space) = if self.operation_and_space {
            (operation(record[16])?, u16::from_le_bytes(bytes_at(record, 17)))
        } else {
            (Operation::Read, 0)
        };
        let sectors = u64::from(bytes).div_ceil(512) as u32;
        let sector = object & ((1 << SECTOR_BITS) - 1);
        let device = scene.devices.numbered(0, &mut scene.metadata)?;
        let enqueue_ns = u64::from(time_s) * 1_000_000_000;
        let row = BlockRow {
            enqueue_ns,
            device,
            sector,
            sectors,
            operation: operation as u8,
            client: u32::from(space),
            ..BlockRow::default()
        };
        let pushed = if space == 0 { scene.push_bare(row) } else { scene.push(row) };
        pushed?;
        scene.warn_again(OBJECT_NUMBERS);
        if sector != object {
            scene.metadata.warn(FOLDED);
        }
        Ok(())
    }
}
