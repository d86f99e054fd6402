//! HP SRT: the traces of HP Laboratories (cello, snake, hplajw), taken in the HP-UX disk driver.
//!
//! A text header ends with a form feed; big-endian records of 32-bit words follow. Record version 4
//! (header 1.3), 56 bytes: size, version and type, enqueue s and us **from the trace date**, start
//! and stop us **from enqueue**, bytes, sector, device, driver type, cylinder, flags, info, queue
//! length. Version 7 (header 1.7), 88 bytes: the first seven words alike but with the time since
//! 1970, device in word 8, flags in word 11, and a 64-bit **byte** address in words 16 and 17
//! (worked out from a real trace: every address is a whole number of sectors within 18 GB, 28 % of
//! requests continue the previous one on their device, and 2003-05-18 18:04:04 UTC is the header's
//! 11:04:05 in California).
//!
//! Sectors of version 4 are of the drive's own size (256 bytes on HP-IB drives) and physical: the
//! section offset is already in them. An odd one is rounded outward and counted. The device is the
//! disk, bits 8 to 15 of the device word; the section, bits 0 to 7, stays in the metadata.

use std::collections::BTreeMap;

use agewell_core::Operation;

use super::{Confidence, RowReader, Sample, bad_record, truncated};
use crate::civil::parse_ctime;
use crate::error::{Problem, TraceError};
use crate::fields::covering;
use crate::metadata::Partition;
use crate::record::{BlockRow, flag};
use crate::reorder_window::{Origin, ReorderWindow};
use crate::source::Source;

/// Longer than any header; beyond it there is no form feed to come.
const HEADER_BYTES_MAX: usize = 1 << 20;
/// B_READ of HP-UX `buf.h`: set for reads.
const FLAG_READ: u32 = 0x1;
/// B_ASYNC of HP-UX `buf.h`: no process waits.
const FLAG_ASYNC: u32 = 0x100;
/// Words of a short I/O record up to and including `info`.
const WORDS_MIN: usize = 13;
const WORDS_V7: usize = 22;
/// Larger than any record.
const RECORD_BYTES_MAX: usize = 1024;
/// Record types that describe a request: short I/O and short I/O with a suspicion word.
const TYPE_SHORT: u32 = 1;
const TYPE_SUSPECT: u32 = 4;
/// A time beyond 1985 counts from 1970; no trace is that long.
const SECONDS_SINCE_1970_MIN: u32 = 473_385_600;

const OTHER_RECORDS: &str = "records that describe no request were passed over";
const ODD_START: &str =
    "requests do not start or end on a 512-byte sector and were rounded outward";
const BEYOND_DRIVE: &str = "requests reach beyond the drive that the header describes";

pub(crate) fn fit(sample: &Sample<'_>) -> Confidence {
    if sample.bytes.starts_with(b"$$TR_IOREC") { Confidence::Certain } else { Confidence::No }
}

#[derive(Default)]
pub(crate) struct Srt {
    records: u64,
    record_bytes: usize,
    /// Sector size and number of 512-byte sectors by disk.
    drives: BTreeMap<u32, (u32, u64)>,
    trace_date_ns: Option<i64>,
    /// Records by disk and section.
    sections: BTreeMap<(u32, u32), u64>,
}

impl RowReader for Srt {
    fn begin(
        &mut self,
        source: &mut Source,
        reorder_window: &mut ReorderWindow,
    ) -> Result<(), TraceError> {
        let mut have = 4096;
        let length = loop {
            let shown = source.peek(have)?;
            if let Some(end) = memchr::memchr(0x0c, shown) {
                break end;
            }
            if shown.len() < have || have >= HEADER_BYTES_MAX {
                let problem = "no form feed ends the SRT header".to_owned();
                return Err(TraceError::Header {
                    place: source.place(0, None, 0),
                    problem,
                    advice: "get the whole file, or say another --format",
                });
            }
            have *= 2;
        };
        let text = String::from_utf8_lossy(source.peek(length)?).into_owned();
        source.consume(length + 1);
        let header = super::srt_header::parse(&text).map_err(|problem| TraceError::Header {
            place: source.place(0, None, 0),
            problem,
            advice: "the header is damaged; get the whole file",
        })?;
        for device in &header.devices {
            let Some(drive) = &device.drive else { continue };
            let sector_bytes = drive.sector_bytes.unwrap_or(512);
            let capacity = [drive.cylinders, drive.heads, drive.sectors_per_track]
                .iter()
                .try_fold(u64::from(sector_bytes), |product, factor| {
                    factor.and_then(|factor| product.checked_mul(u64::from(factor)))
                })
                .map_or(u64::MAX, |bytes| bytes / 512);
            self.drives.insert(device.id, (sector_bytes, capacity));
        }
        reorder_window.metadata.devices = header.devices;
        self.trace_date_ns = header.fields.get("tracedate").and_then(|date| parse_ctime(date));
        reorder_window.metadata.header = header.fields;
        Ok(())
    }

    fn fill(
        &mut self,
        source: &mut Source,
        reorder_window: &mut ReorderWindow,
    ) -> Result<bool, TraceError> {
        while !reorder_window.is_full() {
            let byte = source.offset();
            let start = source.peek(8)?;
            if start.is_empty() {
                self.name_sections(reorder_window);
                return Ok(false);
            }
            self.records += 1;
            if start.len() < 8 {
                let have = start.len();
                source.consume(have);
                truncated(
                    source,
                    reorder_window,
                    self.records,
                    byte,
                    have,
                    self.record_bytes.max(8),
                )?;
                continue;
            }
            let size = word(start, 0) as usize;
            let id = word(start, 1);
            let (version, kind) = (id >> 16, id & 0xffff);
            if !plausible(size, version, kind) {
                let problem = Problem::new(format!(
                    "size {size}, version {version}, type {kind} is no SRT record"
                ));
                bad_record(source, reorder_window, self.records, None, byte, problem)?;
                // Only the usual size can show where the next record begins.
                let step = if self.record_bytes == 0 { 56 } else { self.record_bytes };
                source.take(step)?;
                continue;
            }
            self.record_bytes = size;
            let record = source.take(size)?.unwrap_or(&[]);
            if record.len() < size {
                let have = record.len();
                truncated(source, reorder_window, self.records, byte, have, size)?;
                continue;
            }
            if kind != TYPE_SHORT && kind != TYPE_SUSPECT {
                reorder_window.metadata.warn(OTHER_RECORDS);
                continue;
            }
            let parsed = if version >= 7 {
                self.parse_v7(record, reorder_window)
            } else {
                self.parse_v4(record, reorder_window)
            };
            if let Err(problem) = parsed {
                bad_record(source, reorder_window, self.records, None, byte, problem)?;
            }
        }
        Ok(true)
    }
}

fn word(bytes: &[u8], index: usize) -> u32 {
    let start = index * 4;
    u32::from_be_bytes([bytes[start], bytes[start + 1], bytes[start + 2], bytes[start + 3]])
}

fn plausible(size: usize, version: u32, kind: u32) -> bool {
    let words_min = if version >= 7 { WORDS_V7 } else { WORDS_MIN };
    let known_kind = (1..=16).contains(&kind);
    let short = kind == TYPE_SHORT || kind == TYPE_SUSPECT;
    let words = if short { words_min } else { 2 };
    (1..=7).contains(&version)
        && version != 5
        && version != 6
        && known_kind
        && size.is_multiple_of(4)
        && size >= words * 4
        && size <= RECORD_BYTES_MAX
}

/// Enqueue, start and finish from words 2 to 5.
fn times(record: &[u8]) -> Result<(u64, u64, u64), Problem> {
    let (seconds, microseconds) = (word(record, 2), word(record, 3));
    if microseconds >= 1_000_000 {
        return Err(Problem::new(format!("{microseconds} us within a second")));
    }
    let enqueue_ns = u64::from(seconds) * 1_000_000_000 + u64::from(microseconds) * 1000;
    let start_ns = enqueue_ns + u64::from(word(record, 4)) * 1000;
    let finish_ns = enqueue_ns + u64::from(word(record, 5)) * 1000;
    Ok((enqueue_ns, start_ns, finish_ns))
}

fn operation_and_flags(flags: u32) -> (u8, u16) {
    let operation = if flags & FLAG_READ != 0 { Operation::Read } else { Operation::Write };
    // In HP-UX the process sleeps on the buffer unless B_ASYNC is set.
    let waits = if flags & FLAG_ASYNC != 0 { flag::ASYNCHRONOUS } else { flag::SYNCHRONOUS };
    (operation as u8, waits)
}

impl Srt {
    /// Fixes time zero by the first record: the header's date, or 1970.
    fn begin_time(&mut self, seconds: u32, reorder_window: &mut ReorderWindow) {
        if reorder_window.rows() > 0 {
            return;
        }
        if seconds < SECONDS_SINCE_1970_MIN {
            if let Some(date) = self.trace_date_ns {
                reorder_window.wall_of_clock_zero_ns = Some(i128::from(date));
                reorder_window.metadata.start_wall_zone = Some("local".to_owned());
            }
            return;
        }
        reorder_window.set_origin_rule(Origin::FirstRecord);
        // The header's date is local: its distance from UTC, to the quarter of an hour, is the
        // zone.
        let utc_ns = i64::from(seconds) * 1_000_000_000;
        let quarter_ns = 900_000_000_000;
        let quarters = self
            .trace_date_ns
            .map_or(0, |date| (date - utc_ns + quarter_ns / 2).div_euclid(quarter_ns));
        let within_a_day = quarters.abs() <= 14 * 4;
        let quarters = if within_a_day { quarters } else { 0 };
        reorder_window.wall_of_clock_zero_ns = Some(i128::from(quarters * quarter_ns));
        let sign = if quarters < 0 { '-' } else { '+' };
        let minutes = quarters.abs() * 15;
        reorder_window.metadata.start_wall_zone = Some(if quarters == 0 {
            "UTC".to_owned()
        } else {
            format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        });
    }

    fn parse_v4(
        &mut self,
        record: &[u8],
        reorder_window: &mut ReorderWindow,
    ) -> Result<(), Problem> {
        let (enqueue_ns, start_ns, finish_ns) = times(record)?;
        let device_word = word(record, 8);
        let (disk, section) = (device_word >> 8 & 0xff, device_word & 0xff);
        let (sector_bytes, capacity) = *self.drives.entry(disk).or_insert((512, u64::MAX));
        let first = u64::from(word(record, 7)) * u64::from(sector_bytes);
        let (sector, sectors, aligned) = covering(first, u64::from(word(record, 6)))?;
        let (operation, flags) = operation_and_flags(word(record, 11));
        self.begin_time(word(record, 2), reorder_window);
        let device = reorder_window.devices.numbered(disk, &mut reorder_window.metadata)?;
        let row = BlockRow {
            enqueue_ns,
            start_ns,
            finish_ns,
            device,
            sector,
            sectors,
            operation,
            flags,
            ..BlockRow::default()
        };
        reorder_window.push(row)?;
        *self.sections.entry((disk, section)).or_default() += 1;
        if !aligned {
            reorder_window.metadata.warn(ODD_START);
        }
        if sector + u64::from(sectors) > capacity {
            reorder_window.metadata.warn(BEYOND_DRIVE);
        }
        Ok(())
    }

    fn parse_v7(
        &mut self,
        record: &[u8],
        reorder_window: &mut ReorderWindow,
    ) -> Result<(), Problem> {
        let (enqueue_ns, start_ns, finish_ns) = times(record)?;
        let first = u64::from(word(record, 16)) << 32 | u64::from(word(record, 17));
        let (sector, sectors, aligned) = covering(first, u64::from(word(record, 6)))?;
        let (operation, flags) = operation_and_flags(word(record, 11));
        self.begin_time(word(record, 2), reorder_window);
        let device_word = word(record, 8);
        let device = reorder_window.devices.keyed(
            u64::from(device_word),
            &mut reorder_window.metadata,
            || format!("0x{device_word:08x}"),
        )?;
        let row = BlockRow {
            enqueue_ns,
            start_ns,
            finish_ns,
            device,
            sector,
            sectors,
            operation,
            flags,
            client: word(record, 14),
        };
        reorder_window.push(row)?;
        if !aligned {
            reorder_window.metadata.warn(ODD_START);
        }
        Ok(())
    }

    /// Writes the count of records by section into the metadata.
    fn name_sections(&mut self, reorder_window: &mut ReorderWindow) {
        for (&(disk, section), &records) in &self.sections {
            let Some(device) =
                reorder_window.metadata.devices.iter_mut().find(|device| device.id == disk)
            else {
                continue;
            };
            match device.partitions.iter_mut().find(|partition| partition.number == section) {
                Some(partition) => partition.records = records,
                None => device.partitions.push(Partition {
                    number: section,
                    records,
                    ..Partition::default()
                }),
            }
        }
        self.sections.clear();
    }
}
