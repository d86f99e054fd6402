//! What the medium knows of blocks beside where they lie: the short sums of their data.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::locks::{Mutex, lock};

/// Sums of the blocks that there were from the beginning, or since the store has grown; and of those since then.
#[derive(Debug)]
struct Part {
    sums: Vec<AtomicU32>,
    more: OnceLock<Box<Part>>,
}

impl Part {
    fn new(sums: Vec<u32>) -> Self {
        // In place: both have the same size.
        Self { sums: sums.into_iter().map(AtomicU32::new).collect(), more: OnceLock::new() }
    }

    fn of(&self, block: u32) -> Option<&AtomicU32> {
        let (mut part, mut at) = (self, block as usize);
        while at >= part.sums.len() {
            at -= part.sums.len();
            part = part.more.get()?;
        }
        part.sums.get(at)
    }

    /// Makes room for those of as many as `blocks` blocks, all of which are 0.
    fn grow(&self, blocks: usize) {
        let (mut part, mut before) = (self, self.sums.len());
        while let Some(more) = part.more.get() {
            part = more;
            before += part.sums.len();
        }
        if blocks > before {
            let more = Box::new(Self::new(vec![0; blocks - before]));
            part.more.set(more).expect("one thread at a time has a store grow");
        }
    }
}

/// The short sums of all blocks. Whoever reads looks at them without waiting; only the medium changes them.
#[derive(Debug)]
pub(crate) struct Sums {
    sums: Part,
    /// Blocks whose data is known to be damaged.
    damaged: Mutex<BTreeSet<u32>>,
}

impl Sums {
    pub(crate) fn new(sums: Vec<u32>, damaged: BTreeSet<u32>) -> Self {
        Self { sums: Part::new(sums), damaged: Mutex::new(damaged) }
    }

    /// There may be as many as `blocks` blocks from here on.
    pub(crate) fn grow(&self, blocks: u32) {
        self.sums.grow(blocks as usize);
    }

    /// The sum of `block`, 0 where there is none. It may be that of its next version already, which does
    /// no harm: what is read then does not match, and is read again.
    pub(crate) fn get(&self, block: u32) -> u32 {
        self.sums.of(block).map_or(0, |sum| sum.load(Ordering::Relaxed))
    }

    pub(crate) fn set(&self, block: u32, sum: u32) {
        let place = self.sums.of(block).expect("there may be the block");
        place.store(sum, Ordering::Relaxed);
    }

    pub(crate) fn is_damaged(&self, block: u32) -> bool {
        lock(&self.damaged).contains(&block)
    }

    /// Of blocks that were written or freed, whether they are damaged.
    pub(crate) fn set_damaged(&self, blocks: impl Iterator<Item = (u32, bool)>) {
        let mut damaged = lock(&self.damaged);
        for (block, is_damaged) in blocks {
            if is_damaged {
                damaged.insert(block);
            } else if !damaged.is_empty() {
                damaged.remove(&block);
            }
        }
    }
}
