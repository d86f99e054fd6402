//! A slice of recorded requests, told to a history.

use std::collections::BTreeMap;
use std::path::Path;

use agewell_core::{Operation, SECTOR_BYTES};
use agewell_record::places::{Attribution, Places};
use agewell_regrouping::{MemberKey, Part, ReadHistory, Request};
use agewell_snapshot::{FileKind, Snapshot, SnapshotError};
use agewell_trace::{BlockBatch, ReadOptions, TIME_MISSING, open_block_trace};

use super::SLOT_BYTES;
use super::device_times::DiskTimes;
use super::tree_view::key_of;

/// Files as numbers, for as long as a slice is read.
#[derive(Default)]
struct Numbers {
    keys: Vec<MemberKey>,
    numbers: BTreeMap<MemberKey, u32>,
}

impl Numbers {
    fn places(&mut self, snapshot: &Snapshot, first_sector: u64) -> Places {
        Places::numbered(snapshot, first_sector, &mut |file| {
            let key = key_of(file);
            (file.kind == FileKind::Regular).then(|| {
                *self.numbers.entry(key).or_insert_with(|| {
                    self.keys.push(key);
                    self.keys.len() as u32 - 1
                })
            })
        })
    }
}

/// Where a slice was recorded.
pub(crate) struct Around<'a> {
    /// What lay where before it, and behind it.
    pub(crate) before: &'a Snapshot,
    pub(crate) behind: &'a Snapshot,
    /// Where on its disk the file system begins.
    pub(crate) first_sector: u64,
}

/// Tells `history` what the trace at `path` has; `step` is asked now and then whether to go on.
pub(crate) fn tell(
    path: &Path,
    around: &Around<'_>,
    times: &mut DiskTimes,
    history: &mut ReadHistory,
    step: &mut dyn FnMut() -> Result<(), SnapshotError>,
) -> Result<(), SnapshotError> {
    let mut numbers = Numbers::default();
    let before = numbers.places(around.before, around.first_sector);
    let behind = numbers.places(around.behind, around.first_sector);
    let mut attribution = Attribution::new(before, behind);
    let unreadable = |why: agewell_trace::TraceError| SnapshotError::Run(why.to_string());
    let mut trace = open_block_trace(path, &ReadOptions::default()).map_err(unreadable)?;
    let total_sectors = around.behind.facts.total_bytes / SECTOR_BYTES;
    let mut batch = BlockBatch::default();
    history.interrupted();
    while trace.next_batch(&mut batch).map_err(unreadable)? {
        step()?;
        for index in 0..batch.len() {
            let row = batch.row(index);
            let operation = Operation::from_code(row.operation);
            let Some(operation) = operation.filter(|found| found.transfers_data()) else {
                continue;
            };
            let within = row.sector.checked_sub(around.first_sector);
            let Some(sector) = within.filter(|sector| *sector < total_sectors) else {
                // Of another partition: the arm has been elsewhere.
                history.elsewhere();
                continue;
            };
            if row.finish_ns == TIME_MISSING {
                continue;
            }
            let time_ns = times.of(&row, sector, operation);
            let slot_sectors = SLOT_BYTES / SECTOR_BYTES;
            let end = (sector + u64::from(row.sectors)).div_ceil(slot_sectors);
            let slot = sector / slot_sectors;
            let parts = attribution.parts_of(&row).into_iter().map(|part| Part {
                file: numbers.keys[part.file as usize],
                offset: part.offset_bytes / SLOT_BYTES,
                slots: u64::from(part.sectors).div_ceil(slot_sectors),
            });
            history.observe(&Request {
                is_read: operation == Operation::Read,
                slot,
                slots: end - slot,
                time_ns,
                parts: parts.collect(),
            });
        }
    }
    Ok(())
}
