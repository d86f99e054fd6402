//! The view that a policy of reorganisation has of a layout.

/// Where what is read lies, as far as the price of its steps goes: blocks, or files of several blocks.
pub trait StepView {
    /// The number of a slot.
    type Slot: Copy;

    /// The slot of `block`, if it is on disk; of a file, that of its first block.
    fn slot_of(&self, block: u32) -> Option<Self::Slot>;

    /// The slot in which a read of it ends; of a file, that of its last block.
    fn last_slot_of(&self, block: u32) -> Option<Self::Slot> {
        self.slot_of(block)
    }

    /// Slots that it takes.
    fn slots(&self, _block: u32) -> u32 {
        1
    }

    /// Blocks between `slot` and `next` on the disk; from -1 on down if that comes before it.
    fn step_blocks(&self, slot: Self::Slot, next: Self::Slot) -> i64;

    /// The block that lies right before `slot`, if there is one.
    fn block_before(&self, slot: Self::Slot) -> Option<u32>;

    /// The block that lies right behind `slot`, if there is one.
    fn block_after(&self, slot: Self::Slot) -> Option<u32>;

    /// Whether `from` and `to`, which lie so on the disk, are taken to have been read one after the
    /// other once though they never were: if they came into being one after the other, as blocks
    /// of a file do; chosen by us. What was written in sequence is likely to be read so, and moving
    /// part of it would make that dear.
    fn came_in_sequence(&self, from: u32, to: u32) -> bool {
        from + 1 == to
    }
}

/// Where blocks lie in a log, and what it costs to move them there.
pub trait PlaceView: StepView<Slot = u32> {
    /// Whether `next` lies right behind `slot` on the disk.
    fn follows(&self, slot: u32, next: u32) -> bool;

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
