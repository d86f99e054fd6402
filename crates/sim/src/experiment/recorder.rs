//! What reaches the disk, recorded for an oracle.

use agewell_log::policy::placement::{CollectedSegment, Placement};

/// Set in an event that is a deletion.
pub(super) const DELETION: u32 = 1 << 31;

/// A placement of one log that records what reaches the disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recorder {
    pub(crate) events: Vec<u32>,
}

impl Placement for Recorder {
    fn logs(&self) -> usize {
        1
    }

    fn place_new(&mut self, block: u32, _overwrites: bool, _clock: u64) -> u8 {
        self.events.push(block);
        0
    }

    fn place_collected(&mut self, _block: u32, _segment: &CollectedSegment, _clock: u64) -> u8 {
        0
    }

    fn deleted(&mut self, block: u32, _clock: u64) {
        self.events.push(block | DELETION);
    }
}
