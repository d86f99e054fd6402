//! Whether a group is worth being moved: projected gain against projected cost.
//!
//! Matthews 1999 moves every group whose value exceeds 2, and says what is missing (§6.5.1.1): "to
//! decide whether to reorganize a partition based on both the projected cost of reorganization and
//! a prediction of the number of times the partition will be read before being overwritten", from
//! "the number of times the data has already been read since it was last written". That is what is
//! here:
//!
//! * *gain*: the time that the reads on record would have saved if the group had lain in one piece
//!   ([`savings_ns`](crate::savings_ns)). What was read k times since it was written is expected to be
//!   read k times more, as often as not (what is known of nothing but its age lives as long again),
//!   so that what would have been saved is what will be; scaled by how such expectations were met
//!   before ([`Trust`]);
//! * *cost*: reading what is not in memory as it lies, writing the group, going back, and making
//!   room for it at what room costs now.
//!
//! All of it is in disk time by the policies' [`CostModel`]. Pure functions of plain values.

use crate::trust::Trust;
use agewell_log::policy::cost::CostModel;

/// A group whose value does not exceed this is not moved (Matthews 1999, §6.4.2).
pub const VALUE_MIN: u64 = 2;

/// State of a group when it is considered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Proposal {
    /// Blocks in it that would be moved.
    pub blocks: u32,
    /// Pieces in which they lie, read in the order in which they would be laid out.
    pub pieces: u32,
    /// Pieces in which they would lie if they were moved: more than one where a segment ends.
    pub pieces_moved: u32,
    /// Blocks that are not in memory.
    pub uncached_blocks: u32,
    /// Pieces in which those lie.
    pub uncached_pieces: u32,
    /// Disk time that the reads on record would have saved if it lay in one piece, ns; negative if
    /// they would have taken more.
    pub saved_ns: f64,
    /// Cost of making room for a block now, ns.
    pub room_ns: f64,
}

impl Proposal {
    /// Whether so few pieces are nothing to be gained (Matthews 1999, §6.4.2: "not already
    /// clustered together"; how near is near enough is chosen by us: one piece, and another for
    /// every eight blocks).
    #[must_use]
    pub fn is_clustered(&self) -> bool {
        self.pieces <= 1 + self.blocks / 8
    }

    /// Disk time that moving it takes, ns.
    #[must_use]
    pub fn cost_ns(&self, disk: &CostModel) -> f64 {
        let streaming =
            |blocks: u32| disk.streaming_ns(u64::from(blocks) * disk.block_bytes) as f64;
        let read = f64::from(self.uncached_pieces) * disk.access_ns as f64
            + streaming(self.uncached_blocks);
        // To where it is written, and back to where it was read.
        let accesses = f64::from(self.pieces_moved + 1);
        let write = accesses * disk.access_ns as f64 + streaming(self.blocks);
        read + write + f64::from(self.blocks) * self.room_ns
    }

    /// Whether what it is likely to save exceeds what it costs. `trust` is how far it may be
    /// expected to be read as often again as it was.
    #[must_use]
    pub fn pays(&self, disk: &CostModel, trust: f64) -> bool {
        let beyond_one = f64::from(self.pieces_moved - 1) / f64::from(self.blocks);
        self.saved_ns * trust * (1.0 - beyond_one) > self.cost_ns(disk)
    }
}

/// Whether a group is moved: if what it is likely to save exceeds what it costs and the balance allows
/// it, or, where that is not believed, on probation. `share` is how far its reads are expected to come
/// again, out of `trust`, and `moving_ns` the cost of moving so far. One rule for blocks of a simulated
/// log and for files of a mounted file system.
pub fn is_moved(
    proposal: &Proposal,
    disk: &CostModel,
    share: f64,
    moving_ns: f64,
    trust: &mut Trust,
) -> bool {
    let (cost_ns, at_stake_ns) = (proposal.cost_ns(disk), disk.access_ns as f64);
    (proposal.pays(disk, share) && trust.may_invest(cost_ns, moving_ns, at_stake_ns))
        || (proposal.pays(disk, 1.0) && trust.calibrate(cost_ns, moving_ns, at_stake_ns))
}

/// Whether a block that is written is worth being patched to its place among others. It was read
/// `reads` times since it was last written, and costs an access more in each pass if it leaves.
#[must_use]
pub fn patch_pays(reads: u16, disk: &CostModel) -> bool {
    let patch_ns = disk.access_ns + disk.streaming_ns(disk.block_bytes);
    u64::from(reads) * disk.access_ns > patch_ns
}

/// Work of a log to make room for blocks that it wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RoomMade {
    /// Blocks of segments that were read to be collected.
    pub read_blocks: u64,
    /// Live blocks moved in whole segments.
    pub cleaned_blocks: u64,
    /// Live blocks moved one by one into holes.
    pub plugged_blocks: u64,
    /// Live blocks of the segments collected.
    pub victim_live_blocks: u64,
    /// All their blocks.
    pub victim_blocks: u64,
    /// Blocks written that needed room.
    pub written_blocks: u64,
}

/// Expected cost of making room for a block of a group, ns, from its latest cost.
///
/// A block that is moved leaves a hole where it lay, so that the more is moved the emptier are the
/// segments that are collected for it. While all of the scattered data is moved the utilization u of
/// a victim falls from what it was lately to nothing. A block freed by cleaning costs
/// (1 + u) / (1 - u) of the time it takes to write one; its mean over that is
/// (-u - 2 ln(1 - u)) / u. A block freed by plugging costs a copy for each live block of the
/// victim, half as many on average. This holds where all will be moved; where only the share
/// `moved` of a load is worth it, the rest stays where it is.
#[must_use]
pub fn room_ns(disk: &CostModel, segment_blocks: u32, made: &RoomMade, moved: f64) -> f64 {
    if made.written_blocks == 0 || made.victim_blocks == 0 {
        return 0.0;
    }
    let block_ns = disk.blocks_ns(segment_blocks) as f64 / f64::from(segment_blocks);
    let whole = (made.read_blocks + made.cleaned_blocks) as f64 * block_ns;
    let single = made.plugged_blocks as f64 * disk.blocks_ns(1) as f64;
    let live = made.victim_live_blocks as f64 / made.victim_blocks as f64;
    let relieved = |relief: f64| 1.0 - moved * (1.0 - relief);
    let all_ns = whole * relieved(cleaning_relief(live)) + single * relieved(0.5);
    all_ns / made.written_blocks as f64
}

/// Mean cost of cleaning segments of utilizations from `live` down to nothing, over that of cleaning
/// at `live`.
fn cleaning_relief(live: f64) -> f64 {
    // Full segments free nothing; the limit of the ratio is zero, and an empty one has no other.
    if live <= 0.0 || live >= 1.0 {
        return if live <= 0.0 { 1.0 } else { 0.0 };
    }
    let mean = (-live - 2.0 * libm::log(1.0 - live)) / live;
    mean * (1.0 - live) / (1.0 + live)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A quarter of a segment of 32 blocks streams in 13.1 ms.
    const DISK: CostModel = CostModel {
        access_ns: 15_000_000,
        further_ns: 15_000_000,
        bandwidth_bytes_per_s: 5_000_000,
        block_bytes: 8192,
    };

    const SCATTERED: Proposal = Proposal {
        blocks: 32,
        pieces: 32,
        pieces_moved: 1,
        uncached_blocks: 0,
        uncached_pieces: 0,
        saved_ns: 930e6,
        room_ns: 0.0,
    };

    #[test]
    fn the_cost_is_as_by_hand() {
        // Two accesses of 15 ms, and 262,144 bytes at 5 MB/s.
        assert!((SCATTERED.cost_ns(&DISK) - 82_428_800.0).abs() < 1.0);
        let unread = Proposal { uncached_blocks: 8, uncached_pieces: 6, ..SCATTERED };
        assert!((unread.cost_ns(&DISK) - (82_428_800.0 + 90e6 + 13_107_200.0)).abs() < 1.0);
        let crowded = Proposal { room_ns: 1e6, ..SCATTERED };
        assert!((crowded.cost_ns(&DISK) - (82_428_800.0 + 32e6)).abs() < 1.0);
    }

    #[test]
    fn what_saves_more_than_it_costs_pays_as_far_as_it_is_trusted() {
        // Two passes over 32 pieces: 2 x 31 accesses.
        assert!(SCATTERED.pays(&DISK, 1.0));
        assert!(!Proposal { saved_ns: 0.0, ..SCATTERED }.pays(&DISK, 1.0));
        assert!(!Proposal { saved_ns: -1.0, ..SCATTERED }.pays(&DISK, 1.0));
        assert!(!SCATTERED.pays(&DISK, 0.05));
        assert!(!Proposal { room_ns: 1e9, ..SCATTERED }.pays(&DISK, 1.0));
    }

    #[test]
    fn clustered_is_one_piece_and_another_for_every_eight_blocks() {
        let of = |blocks, pieces| Proposal { blocks, pieces, ..SCATTERED }.is_clustered();
        assert!(of(2, 1));
        assert!(!of(2, 2));
        assert!(of(32, 5));
        assert!(!of(32, 6));
    }

    #[test]
    fn a_block_is_patched_if_it_is_read_oftener_than_written() {
        assert!(!patch_pays(0, &DISK));
        assert!(!patch_pays(1, &DISK));
        assert!(patch_pays(2, &DISK));
    }

    #[test]
    fn room_costs_what_collections_took_less_what_moving_empties() {
        let made = RoomMade {
            read_blocks: 64,
            cleaned_blocks: 32,
            victim_live_blocks: 32,
            victim_blocks: 64,
            written_blocks: 32,
            ..RoomMade::default()
        };
        // Three segments' times for 32 blocks at u = 1/2, where a block costs 3 and on the way down
        // to nothing (-1/2 + 2 ln 2) / (1/2) = 1.772589.
        let cost = room_ns(&DISK, 32, &made, 1.0);
        assert!((cost - 1.772_589 * 67_428_800.0 / 32.0).abs() < 10.0, "{cost}");
        assert!(room_ns(&DISK, 32, &RoomMade::default(), 1.0).abs() < 1e-9);
        let alone = room_ns(&DISK, 32, &made, 0.0);
        assert!((alone - 3.0 * 67_428_800.0 / 32.0).abs() < 10.0, "{alone}");
        let plugged = RoomMade { cleaned_blocks: 0, read_blocks: 0, plugged_blocks: 64, ..made };
        let cost = room_ns(&DISK, 32, &plugged, 1.0);
        assert!((cost - 16_638_400.0).abs() < 1.0, "{cost}");
    }

    #[test]
    fn the_relief_is_the_mean_over_all_utilizations_below() {
        for live in [0.1, 0.5, 0.8, 0.95] {
            let steps = 100_000;
            let at = |u: f64| (1.0 + u) / (1.0 - u);
            let sum: f64 =
                (0..steps).map(|step| at(live * (f64::from(step) + 0.5) / f64::from(steps))).sum();
            let mean = sum / f64::from(steps) / at(live);
            assert!((cleaning_relief(live) - mean).abs() < 1e-6);
        }
    }
}
