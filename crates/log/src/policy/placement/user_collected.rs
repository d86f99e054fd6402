//! Separates user writes from collected blocks.
//!
//! A block that survived until its segment was collected is colder than one just written. The
//! oldest separation of all (Van Houdt 2014 studies it as separate write frontiers; "SepGC" in the
//! simulator of Wang et al., FAST 2022, which this agrees with). Two logs, no memory a block.

use super::{CollectedSegment, Placement};

/// Log 0 takes what the user writes, log 1 what is collected.
#[derive(Debug, Clone, Copy, Default)]
pub struct UserCollected;

impl Placement for UserCollected {
    fn logs(&self) -> usize {
        2
    }

    #[inline]
    fn place_new(&mut self, _block: u32, _overwrites: bool, _clock: u64) -> u8 {
        0
    }

    #[inline]
    fn place_collected(&mut self, _block: u32, _segment: &CollectedSegment, _clock: u64) -> u8 {
        1
    }
}
