//! No separation: everything goes to one log.
//!
//! The baseline. A collected block joins whatever the user writes at the moment, so that hot and
//! cold blocks share every segment. No memory, no cost.

use super::{CollectedSegment, Placement};

/// Everything in one log.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSeparation;

impl Placement for NoSeparation {
    fn logs(&self) -> usize {
        1
    }

    fn is_indifferent(&self) -> bool {
        true
    }

    #[inline]
    fn place_new(&mut self, _block: u32, _overwrites: bool, _clock: u64) -> u8 {
        0
    }

    #[inline]
    fn place_collected(&mut self, _block: u32, _segment: &CollectedSegment, _clock: u64) -> u8 {
        0
    }
}
