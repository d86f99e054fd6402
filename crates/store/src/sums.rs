//! What the medium knows of blocks beside where they lie: the short sums of their data.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::locks::{Mutex, lock};

/// The short sums of all blocks. Whoever reads looks at them without waiting; only the medium changes them.
#[derive(Debug)]
pub(crate) struct Sums {
    sums: Vec<AtomicU32>,
    /// Blocks whose data is known to be damaged.
    damaged: Mutex<BTreeSet<u32>>,
}

impl Sums {
    pub(crate) fn new(sums: Vec<u32>, damaged: BTreeSet<u32>) -> Self {
        // In place: both have the same size.
        let sums = sums.into_iter().map(AtomicU32::new).collect();
        Self { sums, damaged: Mutex::new(damaged) }
    }

    /// The sum of `block`, 0 where there is none. It may be that of its next version already, which does
    /// no harm: what is read then does not match, and is read again.
    pub(crate) fn get(&self, block: u32) -> u32 {
        self.sums.get(block as usize).map_or(0, |sum| sum.load(Ordering::Relaxed))
    }

    pub(crate) fn set(&self, block: u32, sum: u32) {
        self.sums[block as usize].store(sum, Ordering::Relaxed);
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
