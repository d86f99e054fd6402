//! Writes, where they are allowed: in the ways in which drives differ about when they report them.

use agewell_core::SimDuration;

use super::session::SMALL;
use crate::disk::{Extent, ProbeError, WritableArea};

/// Writes of each kind.
const WRITES: u64 = 48;

/// Time that a drive is left to bring what it has reported to the medium, ns; chosen by us.
const QUIET_NS: u64 = 120_000_000;

/// A shorter pause, in which a drive brings part of it there.
const PAUSE_NS: u64 = 15_000_000;

/// What was seen: times of writes of one kind, ns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WritesSeen {
    pub(crate) kinds_ns: [Vec<f64>; 6],
    /// Sectors of the area.
    pub(crate) sectors: u64,
}

impl WritesSeen {
    /// Single writes at random places, each after a pause: the first of the kinds.
    pub(crate) fn alone_ns(&self) -> &[f64] {
        &self.kinds_ns[0]
    }

    /// Writes of all kinds.
    pub(crate) fn count(&self) -> usize {
        self.kinds_ns.iter().map(Vec::len).sum()
    }
}

/// Writes in `area`, which is overwritten, at places that follow from `numbers`.
pub(crate) fn measure(
    area: &mut dyn WritableArea,
    numbers: &[u64],
) -> Result<WritesSeen, ProbeError> {
    let sectors = area.sectors() / SMALL * SMALL;
    let mut numbers = numbers.iter().copied().cycle();
    let mut below = |bound: u64| numbers.next().unwrap_or(0) % bound.max(1);
    let places = (sectors / SMALL).saturating_sub(2 * WRITES).max(1);
    let (here, there) = (below(places), below(places));
    // Of each kind: the place of each write, and the pause before it, ns.
    let mut kinds: [Vec<(u64, u64)>; 6] = Default::default();
    for number in 0..WRITES {
        kinds[0].push((below(places), QUIET_NS + below(20_000_000)));
        kinds[1].push((below(places), 0));
        kinds[2].push((here + number, 0));
        // Two streams side by side, the same place again and again, and a stream with pauses.
        kinds[3].push((if number % 2 == 0 { here } else { there } + number / 2, 0));
        kinds[4].push((there, 0));
        kinds[5].push((there + number, PAUSE_NS));
    }
    let mut seen = WritesSeen { kinds_ns: Default::default(), sectors };
    for (writes, times) in kinds.iter().zip(&mut seen.kinds_ns) {
        area.idle(SimDuration(QUIET_NS));
        for (place, pause_ns) in writes {
            if *pause_ns > 0 {
                area.idle(SimDuration(*pause_ns));
            }
            let place = (*place).min(sectors / SMALL - 1);
            let extent = Extent { first: place * SMALL, sectors: SMALL };
            times.push(area.write(extent)?.taken_ns());
        }
    }
    area.idle(SimDuration(QUIET_NS));
    Ok(seen)
}
