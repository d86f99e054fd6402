//! Blocks that were put together, so that the rest of a group is read ahead when its reading begins.

use std::sync::Arc;

use agewell_store::Store;
use agewell_store::device::Disk;

use crate::blocks::NumberMap;
use crate::observed::CallRead;

/// Blocks that are known to have been put together, at most; chosen by us: they take a megabyte and a half.
const BLOCKS_MAX: usize = 1 << 16;

/// Groups of blocks, each in the order in which it lies.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// The group of a block, and where in it the block is.
    of: NumberMap<u32, (Arc<[u32]>, u32)>,
}

impl Groups {
    /// `blocks` lie one behind the other. Numbers that came to name something else are read in vain, and
    /// no worse.
    pub(crate) fn add(&mut self, blocks: Vec<u32>) {
        if self.of.len() + blocks.len() > BLOCKS_MAX {
            self.of.clear();
        }
        let group: Arc<[u32]> = blocks.into();
        for (at, block) in (0..).zip(&*group) {
            self.of.insert(*block, (Arc::clone(&group), at));
        }
    }

    /// Before `count` blocks are read from `first` on: reads the rest of their group ahead, if that has not
    /// been done.
    pub(crate) fn read_ahead<D: Disk>(&self, store: &Store<D>, first: u32, count: u32) -> CallRead {
        let mut call = CallRead::default();
        if self.of.is_empty() {
            return call;
        }
        call.is_foreseen = store.is_read_ahead(first, count);
        if let Some((group, at)) = self.of.get(&first).filter(|_| !call.is_foreseen) {
            let read = store.read_ahead(&group[*at as usize..], &[], 0);
            call.ahead_blocks = read.saturating_sub(count);
        }
        call
    }
}
