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

use super::{Confidence, RecordFormat, Sample};
use crate::error::Problem;
use crate::record::{BlockRow, PlainRow};
use crate::reorder_window::ReorderWindow;

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

/// Without a magic number, only plausibility decides: times that rise, sizes above 0, next accesses in
/// the future.
pub(crate) fn fit(sample: &Sample<'_>, operation_and_space: bool) -> Confidence {
    if sample.is_text() {
        return Confidence::No;
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
        Confidence::No
    } else if total >= 4 {
        Confidence::Likely
    } else {
        Confidence::Possible
    }
}

impl RecordFormat for OracleGeneral {
    fn record_bytes(&self) -> usize {
        if self.operation_and_space { 27 } else { 24 }
    }

    fn parse(&mut self, record: &[u8], reorder_window: &mut ReorderWindow) -> Result<(), Problem> {
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
        let sectors = sectors_of(bytes);
        let sector = object & ((1 << SECTOR_BITS) - 1);
        let device = reorder_window.devices.numbered(0, &mut reorder_window.metadata)?;
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
        let pushed =
            if space == 0 { reorder_window.push_bare(row) } else { reorder_window.push(row) };
        pushed?;
        reorder_window.warn_again(OBJECT_NUMBERS, 1);
        if sector != object {
            reorder_window.metadata.warn(FOLDED);
        }
        Ok(())
    }

    fn parse_plain(&mut self, records: &[u8], reorder_window: &mut ReorderWindow) -> usize {
        // The first record names the device; the form with operations may say anything.
        if self.operation_and_space || reorder_window.rows() == 0 {
            return 0;
        }
        let Ok(device) = reorder_window.devices.numbered(0, &mut reorder_window.metadata) else {
            return 0;
        };
        let (records, _) = records.as_chunks::<24>();
        let rows = records.iter().map_while(|record| {
            let object = u64::from_le_bytes(bytes_at(record, 4));
            let next = i64::from_le_bytes(bytes_at(record, 16));
            let row = PlainRow {
                enqueue_ns: u64::from(u32::from_le_bytes(bytes_at(record, 0))) * 1_000_000_000,
                sector: object,
                sectors: sectors_of(u32::from_le_bytes(bytes_at(record, 12))),
            };
            (next >= -1 && object < 1 << SECTOR_BITS).then_some(row)
        });
        let pushed = reorder_window.push_plain(device, Operation::Read, rows);
        if pushed > 0 {
            reorder_window.warn_again(OBJECT_NUMBERS, pushed as u64);
        }
        pushed
    }
}

/// Sectors that `bytes` take.
#[inline]
fn sectors_of(bytes: u32) -> u32 {
    u64::from(bytes).div_ceil(512) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::{RecordReader, RowReader};
    use crate::metadata::TraceMetadata;
    use crate::record::{BATCH_ROWS, BlockBatch};
    use crate::reorder_window::{Order, Origin};
    use crate::source::Source;

    /// The format without its quick loop.
    struct OneByOne(OracleGeneral);

    impl RecordFormat for OneByOne {
        fn record_bytes(&self) -> usize {
            self.0.record_bytes()
        }

        fn parse(
            &mut self,
            record: &[u8],
            reorder_window: &mut ReorderWindow,
        ) -> Result<(), Problem> {
            self.0.parse(record, reorder_window)
        }
    }

    /// Everything that reading `bytes` gives: batches, what is known of the trace, and what is wrong.
    fn read(
        format: impl RecordFormat,
        bytes: &[u8],
        skip_bad: bool,
    ) -> (Vec<BlockBatch>, TraceMetadata, Option<String>) {
        let input = Box::new(std::io::Cursor::new(bytes.to_vec()));
        let mut source = Source::new("references".into(), input).expect("it is read");
        let metadata = TraceMetadata::default();
        let mut reorder_window =
            ReorderWindow::new(metadata, Order::Strict, Origin::FirstRecord, skip_bad);
        let mut reader = RecordReader::new(format);
        let (mut batches, mut wrong) = (Vec::new(), None);
        loop {
            let more = reader.fill(&mut source, &mut reorder_window);
            let mut batch = BlockBatch::default();
            reorder_window.take(&mut batch);
            batch.verify();
            batches.push(batch);
            match more {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    wrong = Some(error.to_string());
                    break;
                }
            }
        }
        (batches, reorder_window.metadata, wrong)
    }

    proptest! {
        #[test]
        fn records_read_many_at_a_time_are_those_read_one_by_one(
            // Seconds since the record before, object, bytes, next access; mostly nothing is odd.
            records in prop::collection::vec(
                (
                    prop::sample::select(vec![0_u32, 0, 0, 1, 7]),
                    0_u64..1000,
                    prop::sample::select(vec![512_u32, 4096, 4097, u32::MAX]),
                    prop::sample::select(vec![-1_i64, 5, i64::MAX]),
                ),
                1..400,
            ),
            odd in prop::collection::vec((0_usize..400, 0_u8..5), 0..4),
            copies in prop::sample::select(vec![1_usize, 1, 60]),
            cut in prop::sample::select(vec![0_usize, 0, 5]),
            skip_bad in any::<bool>(),
        ) {
            let (mut bytes, mut time_s) = (Vec::new(), 10_u32);
            for _ in 0..copies {
                for (number, (step, object, length, next)) in records.iter().enumerate() {
                    time_s += step;
                    let mut record = (time_s, *object, *length, *next);
                    for (_, kind) in odd.iter().filter(|(place, _)| *place == number) {
                        match kind {
                            0 => record.0 = 0,
                            1 => record.1 = u64::MAX - *object,
                            2 => record.2 = 0,
                            3 => record.3 = -2,
                            _ => record.1 = (1 << SECTOR_BITS) - 1,
                        }
                    }
                    bytes.extend_from_slice(&record.0.to_le_bytes());
                    bytes.extend_from_slice(&record.1.to_le_bytes());
                    bytes.extend_from_slice(&record.2.to_le_bytes());
                    bytes.extend_from_slice(&record.3.to_le_bytes());
                }
            }
            bytes.truncate(bytes.len() - cut);
            let many = read(OracleGeneral::new(false), &bytes, skip_bad);
            let one_by_one = read(OneByOne(OracleGeneral::new(false)), &bytes, skip_bad);
            let rows: usize = many.0.iter().map(BlockBatch::len).sum();
            prop_assert!(rows <= records.len() * copies);
            prop_assert!(many.0.iter().all(|batch| batch.len() <= BATCH_ROWS));
            prop_assert!(many == one_by_one);
        }
    }
}
