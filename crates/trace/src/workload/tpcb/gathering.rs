//! What is dirty in the buffer cache of 4.4BSD and goes to the log with the next segment write.
//!
//! Blocks of data queue until a number of buffers is dirty; then they are written, behind them the
//! blocks that hold their addresses, which their new places have made dirty (Seltzer 1995, §3).
//! Cleaning gives blocks new places, too: the blocks that hold those addresses become dirty at
//! once, count among the dirty buffers, and bring the next write forward (4.4BSD-Lite,
//! sys/ufs/lfs: `lfs_updatemeta` calls `VOP_BWRITE`, which raises `locked_queue_count`, which
//! `lfs_check` compares with its threshold).
//!
//! Invariant: `buffers` is the data written since the last write of a segment and the blocks of
//! metadata that moves have made dirty since. Cost: O(1) a block; a byte a block of metadata.

/// A block of metadata is dirty by what was written, or by what was moved.
const BY_WRITE: u8 = 1;
const BY_MOVE: u8 = 2;

/// The dirty buffers.
#[derive(Debug, Clone, Default)]
pub(super) struct Gathering {
    /// Why each block of the metadata file is dirty, if it is.
    why: Vec<u8>,
    buffers: u32,
}

impl Gathering {
    /// A block of data has been written.
    pub(super) fn data(&mut self) {
        self.buffers += 1;
    }

    /// `block` of metadata holds an address of what has been written.
    pub(super) fn holds_written(&mut self, block: u32) {
        *self.reason(block) |= BY_WRITE;
    }

    /// `block` of metadata holds the address of what the log has moved.
    pub(super) fn holds_moved(&mut self, block: u32) {
        let why = self.reason(block);
        if *why & BY_MOVE == 0 {
            *why |= BY_MOVE;
            self.buffers += 1;
        }
    }

    /// Dirty buffers.
    pub(super) fn buffers(&self) -> u32 {
        self.buffers
    }

    /// Everything is written: gives each dirty block of metadata to `write`, in order.
    pub(super) fn send(&mut self, mut write: impl FnMut(u32)) {
        self.buffers = 0;
        for (block, why) in (0..).zip(&mut self.why) {
            if std::mem::take(why) != 0 {
                write(block);
            }
        }
    }

    fn reason(&mut self, block: u32) -> &mut u8 {
        let block = block as usize;
        if block >= self.why.len() {
            self.why.resize(block + 1, 0);
        }
        &mut self.why[block]
    }
}
