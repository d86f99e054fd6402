//! The view that a policy of reorganisation has of a layout.

/// Where blocks lie, as far as a reorganisation needs it.
pub trait PlaceView {
    /// The slot of `block`, if it is on disk.
    fn slot_of(&self, block: u32) -> Option<u32>;

    /// Whether `next` lies right behind `slot` on the disk.
    fn follows(&self, slot: u32, next: u32) -> bool;

    /// Blocks between `slot` and `next` on the disk; from -1 on down if that comes before it.
    fn step_blocks(&self, slot: u32, next: u32) -> i64;

    /// The block that lies right before `slot`, if there is one.
    fn block_before(&self, slot: u32) -> Option<u32>;

    /// The block that lies right behind `slot`, if there is one.
    fn block_after(&self, slot: u32) -> Option<u32>;

    /// Pieces in which `blocks` blocks will lie if they are moved now.
    fn pieces_moved(&self, blocks: u32) -> u32;

    /// Whether `slot` lies in the half of the disk that is farther from its middle.
    fn is_outer(&self, slot: u32) -> bool;

    /// Cost of making room for a block now, ns, if the share `moved` of all will be moved.
    fn room_ns(&self, moved: f64) -> f64;

    /// Where `block`, which lies in `slot`, would lie if nothing had been moved.
    fn home_of(&self, block: u32, slot: u32) -> u32;

    /// Cost of moving so far, ns: all disk time but that of reads, less the same of a log without
    /// moves.
    fn moving_ns(&self) -> f64;
}
