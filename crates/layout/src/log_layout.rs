//! The log behind the seam of all layouts.

use agewell_log::policy::placement::Placement;
use agewell_log::{
    AdaptiveLog, BlockDevice, Call, Log, Purpose, Transfer, TransferTimes, Unpriced,
};

use crate::block_layout::{BlockCounts, BlockLayout, FileBlock, LayoutError, Place};

/// Bytes of a block's address and of a segment's usage in a checkpoint (Rosenblum & Ousterhout 1992,
/// table 1 and §4.1: the inode map and the segment usage table).
const CHECKPOINT_ENTRY_BYTES: u64 = 4;

/// Where `block` is.
#[inline]
pub(crate) fn place_of<P: Placement>(log: &Log<P>, block: u32) -> Place {
    match (log.slot_of(block), log.holds(block)) {
        (Some(slot), _) => Place::Disk(slot),
        (None, true) => Place::Memory,
        (None, false) => Place::Nowhere,
    }
}

/// What a crash makes necessary: the checkpoint is read, and what was written since, which is in
/// the open segments (Rosenblum & Ousterhout 1992, §4.2: roll-forward).
pub(crate) fn recover<P: Placement>(log: &Log<P>, device: &mut impl BlockDevice) {
    let shape = log.shape();
    let entries = u64::from(log.blocks()) + u64::from(shape.segments());
    let bytes = entries * CHECKPOINT_ENTRY_BYTES;
    let blocks = bytes.div_ceil(log.setting().disk.block_bytes).max(1);
    let blocks = blocks.min(shape.capacity_blocks()) as u32;
    let first = shape.first_slot(0);
    device.transfer(&Transfer::of_blocks(Purpose::RecoveryRead, first, blocks.max(1)), &[]);
    for (first, blocks) in log.open_parts() {
        device.transfer(&Transfer::of_blocks(Purpose::RecoveryRead, first, blocks), &[]);
    }
}

/// What a log has done, as any layout says it.
pub(crate) fn counts_of<P: Placement>(log: &Log<P>) -> BlockCounts {
    let counts = log.counts();
    BlockCounts {
        user_blocks: counts.user_blocks,
        absorbed_blocks: counts.absorbed_blocks,
        new_blocks: counts.new_blocks,
        moved_blocks: counts.moved_blocks(),
    }
}

impl<P: Placement + Clone> BlockLayout for AdaptiveLog<P> {
    fn ensure_blocks(&mut self, blocks: u32) {
        let grown = self.carry_out(Call::EnsureBlocks(blocks), &mut Unpriced);
        grown.expect("a number takes no room");
    }

    fn preload(&mut self, block: u32, _name: FileBlock) -> Result<(), LayoutError> {
        Ok(self.carry_out(Call::Preload(block), &mut Unpriced)?)
    }

    fn preload_run(
        &mut self,
        first: u32,
        blocks: u32,
        _name: FileBlock,
    ) -> Result<(), LayoutError> {
        Ok(AdaptiveLog::preload_run(self, first, blocks)?)
    }

    fn fragment(&mut self, first: u32, blocks: u32, chunk_blocks: u32) -> Result<(), LayoutError> {
        let blocks: Vec<u32> = (first..first + blocks).collect();
        Ok(self.carry_out(Call::Fragment { blocks: &blocks, chunk_blocks }, &mut Unpriced)?)
    }

    #[inline]
    fn write(
        &mut self,
        block: u32,
        _name: FileBlock,
        client: u32,
        device: &mut impl BlockDevice,
    ) -> Result<(), LayoutError> {
        let written = self.carry_out(Call::Write { block, client }, device);
        self.log_mut().issue_discards(device);
        Ok(written?)
    }

    #[inline]
    fn is_decision_due(&self) -> bool {
        AdaptiveLog::is_decision_due(self)
    }

    fn sends_before_deciding(&self) -> bool {
        self.log().setting().whole_syncs
    }

    fn decide(&mut self, times: Option<&TransferTimes>) {
        AdaptiveLog::decide(self, times);
    }

    fn only_reads_in_runs(&self) -> bool {
        true
    }

    fn takes_many_writes(&self) -> bool {
        self.log().takes_many_writes()
    }

    fn write_to_buffer(&mut self, blocks: &[u32], client: u32) -> usize {
        AdaptiveLog::write_to_buffer(self, blocks, client)
    }

    #[inline]
    fn look_up(&self, block: u32) -> u32 {
        self.log().look_up(block)
    }

    fn delete(&mut self, block: u32, device: &mut impl BlockDevice) {
        self.carry_out(Call::Delete(block), device).expect("a deletion takes no room");
        self.log_mut().issue_discards(device);
    }

    fn sync(&mut self, client: u32, device: &mut impl BlockDevice) -> Result<(), LayoutError> {
        let synced = self.carry_out(Call::Sync { client }, device);
        self.log_mut().issue_discards(device);
        Ok(synced?)
    }

    fn sync_all(&mut self, device: &mut impl BlockDevice) -> Result<(), LayoutError> {
        let synced = AdaptiveLog::sync_all(self, device);
        self.log_mut().issue_discards(device);
        Ok(synced?)
    }

    fn place_of(&self, block: u32) -> Place {
        place_of(self.log(), block)
    }

    fn set_resident(&mut self, block: u32, resident: bool) {
        let noted = self.carry_out(Call::SetResident { block, resident }, &mut Unpriced);
        noted.expect("what a cache holds takes no room");
    }

    fn work_ahead(
        &mut self,
        free_wanted: u32,
        device: &mut impl BlockDevice,
    ) -> Result<bool, LayoutError> {
        let collected = self.log_mut().collect_ahead(free_wanted, device);
        self.log_mut().issue_discards(device);
        Ok(collected?)
    }

    fn enable_discard(&mut self) {
        self.log_mut().enable_discard();
    }

    fn recover(&self, device: &mut impl BlockDevice) {
        recover(self.log(), device);
    }

    fn counts(&self) -> BlockCounts {
        counts_of(self.log())
    }

    fn live_blocks(&self) -> u64 {
        self.log().live_blocks()
    }

    fn verify(&self) {
        AdaptiveLog::verify(self);
    }
}
