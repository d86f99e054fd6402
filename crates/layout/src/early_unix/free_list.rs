//! The list of free blocks: last in, first out.
//!
//! Invariant: the superblock holds at least one number unless nothing is free.

use std::ops::Range;

/// Numbers of free blocks that the superblock, and each block of the list, holds (`NICFREE`).
const LISTED: u32 = 50;

/// All free blocks, and how many of them the superblock holds.
#[derive(Debug, Clone)]
pub(super) struct FreeList {
    /// The block that was freed last comes last.
    blocks: Vec<u32>,
    in_superblock: u32,
}

impl FreeList {
    /// `blocks`, such that they come back in order, or `interleave` apart and around.
    pub(super) fn new(blocks: Range<u32>, interleave: u32) -> Self {
        let mut order = Vec::with_capacity(blocks.len());
        for first in 0..interleave {
            order.extend(blocks.clone().skip(first as usize).step_by(interleave as usize));
        }
        order.reverse();
        let in_superblock = (order.len() as u32).min(LISTED);
        Self { blocks: order, in_superblock }
    }

    /// How many blocks are free.
    pub(super) fn count(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// The blocks, in no order that means anything on the disk.
    pub(super) fn blocks(&self) -> &[u32] {
        &self.blocks
    }

    /// The free blocks that hold the numbers of others: the oldest of those that the superblock
    /// holds, and from there on every fiftieth.
    pub(super) fn links(&self) -> impl Iterator<Item = u32> + '_ {
        let first = self.blocks.len().checked_sub(self.in_superblock as usize);
        let mut next = first.filter(|first| *first > 0);
        std::iter::from_fn(move || {
            let at = next?;
            next = at.checked_sub(LISTED as usize).filter(|at| *at > 0);
            Some(self.blocks[at])
        })
    }

    /// Takes the first block; and whether it held the numbers of more and has to be read for them.
    pub(super) fn take(&mut self) -> Option<(u32, bool)> {
        let block = self.blocks.pop()?;
        self.in_superblock -= 1;
        let refill = self.in_superblock == 0;
        if refill {
            self.in_superblock = self.count().min(LISTED);
        }
        Some((block, refill && self.in_superblock > 0))
    }

    /// Puts `block` in front; and whether the superblock's numbers have to be written to it.
    pub(super) fn give(&mut self, block: u32) -> bool {
        let full = self.in_superblock == LISTED;
        self.in_superblock = if full { 1 } else { self.in_superblock + 1 };
        self.blocks.push(block);
        full
    }
}
