//! What the medium knows of blocks beside where they lie: the short sums of their data.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::grown::Grown;
use crate::locks::{Mutex, lock};

fn part(sums: Vec<u32>) -> Vec<AtomicU32> {
    // In place: both have the same size.
    sums.into_iter().map(AtomicU32::new).collect()
}

/// The short sums of all blocks. Whoever reads looks at them without waiting; only the medium changes them.
#[derive(Debug)]
pub(crate) struct Sums {
    /// Of the blocks that there were from the beginning, and of those that came each time that the store grew.
    sums: Grown<Vec<AtomicU32>>,
    /// Blocks whose data is known to be damaged.
    damaged: Mutex<BTreeSet<u32>>,
}

impl Sums {
    pub(crate) fn new(sums: Vec<u32>, damaged: BTreeSet<u32>) -> Self {
        Self { sums: Grown::new(part(sums)), damaged: Mutex::new(damaged) }
    }

    /// There may be as many as `blocks` blocks from here on.
    pub(crate) fn grow(&self, blocks: u32) {
        let before: usize = self.sums.parts().map(Vec::len).sum();
        if blocks as usize > before {
            self.sums.add(part(vec![0; blocks as usize - before]));
        }
    }

    fn of(&self, block: u32) -> Option<&AtomicU32> {
        let mut at = block as usize;
        for part in self.sums.parts() {
            if let Some(sum) = part.get(at) {
                return Some(sum);
            }
            at -= part.len();
        }
        None
    }

    /// The sum of `block`, 0 where there is none. It may be that of its next version already, which does
    /// no harm: what is read then does not match, and is read again.
    pub(crate) fn get(&self, block: u32) -> u32 {
        self.of(block).map_or(0, |sum| sum.load(Ordering::Relaxed))
    }

    pub(crate) fn set(&self, block: u32, sum: u32) {
        let place = self.of(block).expect("there may be the block");
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
