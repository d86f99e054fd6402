//! Blocks that were written in part and handed to the store: the ends of files, mostly. The kernel keeps
//! pages that were written whole, and asks for the others when a file that was just written is read.

use std::collections::VecDeque;

use crate::blocks::NumberMap;

/// Bytes that are kept at most; chosen by us: the ends of two thousand files.
const BYTES_MAX: usize = 8 << 20;

/// See the module.
#[derive(Debug)]
pub(crate) struct RecentBlocks {
    /// Each with when it came.
    blocks: NumberMap<u32, (u64, Box<[u8]>)>,
    /// What came first goes first. What is gone, or came again, may still stand here.
    order: VecDeque<(u32, u64)>,
    came: u64,
    blocks_max: usize,
}

impl RecentBlocks {
    pub(crate) fn new(block_bytes: usize) -> Self {
        let blocks_max = (BYTES_MAX / block_bytes).max(1);
        Self { blocks: NumberMap::default(), order: VecDeque::new(), came: 0, blocks_max }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// What is in `number`, if it is known.
    pub(crate) fn get(&self, number: u32) -> Option<&[u8]> {
        self.blocks.get(&number).map(|(_, data)| &**data)
    }

    /// `number` is changed, or no more.
    pub(crate) fn forget(&mut self, number: u32) {
        if !self.blocks.is_empty() {
            self.blocks.remove(&number);
        }
    }

    /// `data` is what the store has of `number`; gives a buffer that is not needed any more.
    pub(crate) fn keep(&mut self, number: u32, data: Box<[u8]>) -> Option<Box<[u8]>> {
        self.came += 1;
        let mut gone = self.blocks.insert(number, (self.came, data)).map(|before| before.1);
        self.order.push_back((number, self.came));
        let blocks = &self.blocks;
        let is_there =
            |(number, came): &(u32, u64)| blocks.get(number).is_some_and(|there| there.0 == *came);
        if self.order.len() > 2 * self.blocks_max {
            self.order.retain(is_there);
        }
        while self.blocks.len() > self.blocks_max {
            let Some((first, came)) = self.order.pop_front() else { break };
            if self.blocks.get(&first).is_some_and(|there| there.0 == came) {
                gone = self.blocks.remove(&first).map(|there| there.1);
            }
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_knows_what_came_last_and_does_not_grow() {
        let mut recent = RecentBlocks::new(4096);
        let most = recent.blocks_max as u32;
        let block = |number: u32| vec![number as u8; 4096].into_boxed_slice();
        for number in 0..most {
            assert!(recent.keep(number, block(number)).is_none());
        }
        assert!(recent.keep(most, block(most)).is_some());
        assert_eq!(recent.get(0), None);
        assert_eq!(recent.get(7).map(|data| data[0]), Some(7));
        recent.forget(7);
        assert_eq!(recent.get(7), None);
        // One that is written again and again.
        for round in 0..20 * most {
            recent.keep(9, block(round));
            recent.keep(most + 1 + round % 3, block(round));
        }
        assert!(recent.order.len() <= 2 * recent.blocks_max + 1);
        assert!(recent.blocks.len() <= recent.blocks_max);
        assert_eq!(recent.get(9), Some(&*block(20 * most - 1)));
    }
}
