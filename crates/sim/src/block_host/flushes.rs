//! Flushes: a drive that reports writes before they are on the medium is told to finish them whenever
//! the layout relies on it.
//!
//! That is at every commit (`BlockDevice::commit`): from there on the layout writes over what the map
//! on disk no longer names. A disk that nothing was written to since its last flush is left alone;
//! what goes on behind is flushed by the commit after it was caught up with.

use agewell_core::{BlockRequest, Operation, Sector, SectorCount, SimTime};
use agewell_disk::Device;
use agewell_log::{Purpose, Transfer};

use super::disk::{TimedDisk, Timing};

/// What has been written and not flushed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flushes {
    is_on: bool,
    /// Whether each of the two disks has something to flush.
    written: [bool; 2],
    /// Whether the first has from what goes on behind.
    written_behind: bool,
}

impl Flushes {
    /// Disk `number` has been written to, or is being, behind the host's back.
    pub(super) fn note(&mut self, number: usize, is_behind: bool) {
        if is_behind {
            self.written_behind = true;
        } else {
            self.written[number] = true;
        }
    }

    /// What went on behind is done.
    pub(super) fn caught_up(&mut self) {
        self.written[0] |= std::mem::take(&mut self.written_behind);
    }
}

impl TimedDisk {
    /// Flushes at every commit from here on; a disk without mechanics has nothing to flush.
    pub(crate) fn begin_flushing(&mut self) {
        self.flushes.is_on = true;
    }

    /// Flushes every disk that has been written to, if that is asked for.
    pub(super) fn flush_written(&mut self) {
        if !self.flushes.is_on {
            return;
        }
        for number in 0..2 {
            if std::mem::take(&mut self.flushes.written[number]) {
                self.flush(number);
            }
        }
    }

    fn flush(&mut self, number: usize) {
        if number == 0 {
            self.turn_to_first();
        }
        let issue_ns = self.now_ns();
        let Some(Timing::Mechanical(device)) = self.timing_of(number) else { return };
        // A flush names no sectors; one is asked for only because requests must not be empty.
        let request = BlockRequest {
            enqueue: SimTime(issue_ns),
            sector: Sector(0),
            sectors: SectorCount(1),
            operation: Operation::Flush,
            synchronous: true,
        };
        let finish_ns = device.serve(SimTime(issue_ns), &request).finish.0;
        self.took(&Transfer::of_blocks(Purpose::Flush, 0, 0), finish_ns - issue_ns);
        self.pass(finish_ns - issue_ns);
        let without_sectors = BlockRequest { sectors: SectorCount(0), ..request };
        self.record_transfer(number as u32, issue_ns, finish_ns, &without_sectors);
    }
}
