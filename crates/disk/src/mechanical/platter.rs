//! Arm and platter: where the heads are, when a sector comes round, how long a run of blocks takes.

use crate::geometry::{Angle, Geometry, Location};
use crate::parameters::MechanicalParameters;

/// Rotation is known to a nanosecond or so; a sector missed by less than this is not missed. Chosen by us: larger than
/// every rounding, far smaller than any sector.
const SLACK_NS: u64 = 16;

/// Where the heads are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Position {
    pub(super) cylinder: u32,
    pub(super) head: u32,
    /// When they can start something else, ns.
    pub(super) free: u64,
}

/// One track's part of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    /// First block.
    pub(super) first: u64,
    /// Blocks in it.
    pub(super) blocks: u64,
    /// When the first starts to pass, ns.
    pub(super) start: u64,
    /// When the last has passed, ns.
    pub(super) end: u64,
    /// Rotation taken by one block.
    pub(super) width: Angle,
    /// The track it lies on.
    pub(super) cylinder: u32,
    pub(super) head: u32,
}

/// The first positioning of a transfer: how far the arm moved, and when, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Positioning {
    pub(super) seek_cylinders: u32,
    /// When the arm could start.
    pub(super) departs: u64,
    /// When the heads were on the track.
    pub(super) there: u64,
    /// When the first sector started to pass.
    pub(super) start: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Platter {
    pub(super) geometry: Geometry,
    seek_ns: Vec<u32>,
    /// The least time of a move over each distance or more; empty if that is `seek_ns` itself.
    least_seek_ns: Vec<u32>,
    head_switch_ns: u64,
    write_settle_ns: i64,
    same_cylinder_ns: u64,
    /// 2^64 / period in ns: phase gained per ns.
    phase_per_ns: u64,
    /// Period in ns, 32 bits of it behind the point.
    period_fixed: u64,
    phase: Angle,
    slack: Angle,
}

impl Platter {
    pub(super) fn new(parameters: &MechanicalParameters, phase: Angle) -> Self {
        let period_ps = u128::from(parameters.rotation_period_ps);
        let phase_per_ns = ((1000_u128 << 64) / period_ps) as u64;
        let seek_ns = parameters.seek.table_ns(parameters.geometry.cylinders);
        Self {
            geometry: Geometry::new(&parameters.geometry),
            least_seek_ns: least_from_each_on(&seek_ns, parameters.write_settle_ns),
            seek_ns,
            head_switch_ns: parameters.head_switch_ns,
            write_settle_ns: parameters.write_settle_ns,
            same_cylinder_ns: parameters.same_cylinder_ns,
            phase_per_ns,
            period_fixed: ((period_ps << 32) / 1000) as u64,
            phase,
            slack: phase_per_ns * SLACK_NS,
        }
    }

    /// Sectors of the track that holds `block`.
    pub(super) fn track_sectors(&self, block: u64) -> u64 {
        u64::from(self.geometry.locate(block).sectors_per_track)
    }

    /// How long the platter takes to turn by `angle`, ns.
    #[inline]
    pub(super) fn turn_ns(&self, angle: Angle) -> u64 {
        // angle / 2^64 * period, rounded to the nearest ns.
        let product = u128::from(angle) * u128::from(self.period_fixed);
        ((product + (1 << 95)) >> 96) as u64
    }

    /// How long from `now` until `angle` is under the heads, ns.
    #[inline]
    pub(super) fn wait_ns(&self, now: u64, angle: Angle) -> u64 {
        let here = now.wrapping_mul(self.phase_per_ns).wrapping_add(self.phase);
        let ahead = angle.wrapping_sub(here);
        if ahead > u64::MAX - self.slack { 0 } else { self.turn_ns(ahead) }
    }

    /// When the `count`-th block of `stretch` has passed, ns.
    #[inline]
    pub(super) fn passed(&self, stretch: &Stretch, count: u64) -> u64 {
        stretch.start + self.turn_ns(stretch.width.wrapping_mul(count))
    }

    /// How many blocks of `stretch` have passed by `now`.
    #[inline]
    pub(super) fn passed_by(&self, stretch: &Stretch, now: u64) -> u64 {
        if now >= stretch.end {
            return stretch.blocks;
        }
        let turned = (now.saturating_sub(stretch.start)).wrapping_mul(self.phase_per_ns);
        (turned / stretch.width).min(stretch.blocks)
    }

    /// Time to get the heads from `from` onto the track of `to`, ns.
    #[inline]
    pub(super) fn move_ns(&self, from: &Position, to: &Location, write: bool) -> u64 {
        let distance = from.cylinder.abs_diff(to.cylinder);
        let seek = u64::from(self.seek_ns[distance as usize]);
        let switch = if from.head == to.head { 0 } else { self.head_switch_ns };
        let time = seek.max(switch);
        if time != 0 && write { time.saturating_add_signed(self.write_settle_ns) } else { time }
    }

    /// Time of a read by heads at rest at `from` beyond [`Self::move_ns`] if `to` is on their
    /// cylinder, ns.
    #[inline]
    pub(super) fn settle_ns(&self, from: &Position, to: &Location) -> u64 {
        if from.cylinder == to.cylinder {
            self.same_cylinder_ns.saturating_sub(self.move_ns(from, to, false))
        } else {
            0
        }
    }

    /// The least time in which the heads get anywhere at least `distance` cylinders away, for any request; it does not
    /// fall with the distance, as measured seek curves do here and there.
    #[inline]
    pub(super) fn least_move_ns(&self, distance: u32) -> u64 {
        let times = if self.least_seek_ns.is_empty() { &self.seek_ns } else { &self.least_seek_ns };
        times.get(distance as usize).map_or(u64::MAX >> 1, |ns| u64::from(*ns))
    }

    /// The part of `block..end` that lies on the track of `block`, and how the heads get to it.
    /// They leave `position` when it is free. `ready` gives the earliest start of a stretch, by its
    /// number of blocks and the time of a sector, ns.
    ///
    /// Every transfer and every estimate of one goes through here.
    #[inline]
    pub(super) fn stretch(
        &self,
        position: &Position,
        block: u64,
        end: u64,
        write: bool,
        ready: impl Fn(u64, u64, u64) -> u64,
    ) -> (Stretch, Positioning) {
        let location = self.geometry.locate(block);
        let blocks = u64::from(location.run).min(end - block);
        let there = position.free + self.move_ns(position, &location, write);
        let from = there.max(ready(block, blocks, self.turn_ns(location.width)));
        let start = from + self.wait_ns(from, location.angle);
        let turned = self.turn_ns(location.width.wrapping_mul(blocks));
        let stretch = Stretch {
            first: block,
            blocks,
            start,
            end: start + turned.max(1),
            width: location.width,
            cylinder: location.cylinder,
            head: location.head,
        };
        let seek_cylinders = position.cylinder.abs_diff(location.cylinder);
        (stretch, Positioning { seek_cylinders, departs: position.free, there, start })
    }

    /// Passes blocks `first..end` under the heads in order, starting the arm when `position` is free.
    ///
    /// `ready` gives the earliest start of a stretch, by its number of blocks and the time of a
    /// sector, ns; `each` sees every stretch and says whether to go on. Returns where it ended and
    /// what the first positioning cost.
    #[inline]
    pub(super) fn sweep(
        &self,
        mut position: Position,
        first: u64,
        end: u64,
        write: bool,
        ready: impl Fn(u64, u64, u64) -> u64,
        mut each: impl FnMut(Stretch) -> bool,
    ) -> (Position, Positioning) {
        let mut cost = Positioning::default();
        let mut block = first;
        while block < end {
            let (stretch, positioning) = self.stretch(&position, block, end, write, &ready);
            if block == first {
                cost = positioning;
            }
            position =
                Position { cylinder: stretch.cylinder, head: stretch.head, free: stretch.end };
            if !each(stretch) {
                break;
            }
            block += stretch.blocks;
        }
        (position, cost)
    }
}

/// For each distance the least of `seek_ns` from there on, `settle_ns` taken off where it is negative; empty if that
/// changes nothing.
fn least_from_each_on(seek_ns: &[u32], settle_ns: i64) -> Vec<u32> {
    if settle_ns >= 0 && seek_ns.is_sorted() {
        return Vec::new();
    }
    let gained = u32::try_from(settle_ns.min(0).unsigned_abs()).unwrap_or(u32::MAX);
    let mut least: Vec<u32> = seek_ns.iter().map(|ns| ns.saturating_sub(gained)).collect();
    for distance in (1..least.len()).rev() {
        least[distance - 1] = least[distance - 1].min(least[distance]);
    }
    least
}
