//! Writes, where they are allowed: when they are reported, and what they take beyond a read.

use super::session::SMALL;
use crate::disk::{Extent, ProbeError, WritableArea};
use agewell_core::SimDuration;

/// Writes of each kind.
const WRITES: u64 = 48;

/// Time that a drive is left to bring what it has reported to the medium, ns; chosen by us.
const QUIET_NS: u64 = 120_000_000;

/// What was seen.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct WritesSeen {
    /// Times of single writes at random places, each after a pause, ns.
    pub(crate) alone_ns: Vec<f64>,
    /// Times of writes at random places, one after another, ns.
    pub(crate) random_ns: Vec<f64>,
    /// Times of writes that follow each other, ns.
    pub(crate) sequential_ns: Vec<f64>,
    /// Sectors of the area.
    pub(crate) sectors: u64,
}

/// Writes in `area`, which is overwritten, at places that follow from `numbers`.
pub(crate) fn measure(
    area: &mut dyn WritableArea,
    numbers: &[u64],
) -> Result<WritesSeen, ProbeError> {
    let sectors = area.sectors() / SMALL * SMALL;
    let mut seen = WritesSeen { sectors, ..WritesSeen::default() };
    let mut numbers = numbers.iter().copied().cycle();
    let mut below = |bound: u64| numbers.next().unwrap_or(0) % bound.max(1);
    let small = |first: u64| Extent { first: first * SMALL, sectors: SMALL };
    let places = (sectors / SMALL).saturating_sub(2 * WRITES).max(1);
    for _ in 0..WRITES / 2 {
        area.idle(SimDuration(QUIET_NS + below(20_000_000)));
        seen.alone_ns.push(area.write(small(below(places)))?.taken_ns());
    }
    area.idle(SimDuration(QUIET_NS));
    for _ in 0..WRITES {
        seen.random_ns.push(area.write(small(below(places)))?.taken_ns());
    }
    area.idle(SimDuration(QUIET_NS));
    let first = below(places);
    for number in 0..WRITES.min(sectors / SMALL) {
        seen.sequential_ns.push(area.write(small(first + number))?.taken_ns());
    }
    area.idle(SimDuration(QUIET_NS));
    Ok(seen)
}
