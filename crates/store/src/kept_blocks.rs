//! Blocks in memory, the last that came: what came first goes first.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

/// What is gone or came again may stand in the order this many times above twice what there is, before it
/// is taken out; chosen by us: rare, and 12 KiB.
const ORDER_SLACK: usize = 1024;

/// See the module. Blocks go by a number that the caller gives them.
#[derive(Debug)]
pub struct KeptBlocks<S = RandomState> {
    /// Each with when it came.
    blocks: HashMap<u32, (u64, Box<[u8]>), S>,
    /// What came first stands first. What is gone, or came again, may still stand here.
    order: VecDeque<(u32, u64)>,
    came: u64,
    bytes: usize,
    bytes_max: usize,
}

impl<S: BuildHasher + Default> KeptBlocks<S> {
    /// None yet; of at most `bytes_max` bytes together.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        let blocks = HashMap::default();
        Self { blocks, order: VecDeque::new(), came: 0, bytes: 0, bytes_max }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// What is in block `number`, if it is here.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&[u8]> {
        self.blocks.get(&number).map(|(_, data)| &**data)
    }

    /// Takes block `number` out.
    pub fn remove(&mut self, number: u32) -> Option<Box<[u8]>> {
        let (_, data) = self.blocks.remove(&number)?;
        self.bytes -= data.len();
        Some(data)
    }

    /// Keeps `data` as what is in block `number`; a buffer that is not needed any more, if one became so.
    pub fn keep(&mut self, number: u32, data: Box<[u8]>) -> Option<Box<[u8]>> {
        let mut gone = self.remove(number);
        self.came += 1;
        self.bytes += data.len();
        self.blocks.insert(number, (self.came, data));
        self.order.push_back((number, self.came));
        while self.bytes > self.bytes_max {
            let Some(first) = self.order.pop_front() else { break };
            if self.is_there(first) {
                gone = self.remove(first.0);
            }
        }
        if self.order.len() > 2 * self.blocks.len() + ORDER_SLACK {
            let blocks = &self.blocks;
            self.order
                .retain(|(number, came)| blocks.get(number).is_some_and(|there| there.0 == *came));
        }
        gone
    }

    fn is_there(&self, (number, came): (u32, u64)) -> bool {
        self.blocks.get(&number).is_some_and(|there| there.0 == came)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS_MAX: u32 = 16;

    fn block(number: u32) -> Box<[u8]> {
        vec![number as u8; 4096].into_boxed_slice()
    }

    fn none_yet() -> KeptBlocks {
        KeptBlocks::new(BLOCKS_MAX as usize * 4096)
    }

    #[test]
    fn what_came_first_goes_first_and_its_buffer_comes_back() {
        let mut kept = none_yet();
        assert!((0..BLOCKS_MAX).all(|number| kept.keep(number, block(number)).is_none()));
        assert_eq!(kept.keep(BLOCKS_MAX, block(0)), Some(block(0)));
        assert_eq!(kept.get(0), None);
        assert_eq!(kept.get(7), Some(&*block(7)));
        // One that comes again goes later, and its first data comes back.
        assert_eq!(kept.keep(1, block(99)), Some(block(1)));
        assert_eq!(kept.keep(BLOCKS_MAX + 1, block(0)), Some(block(2)));
        assert_eq!(kept.get(1), Some(&*block(99)));
        assert_eq!((kept.remove(7), kept.remove(7)), (Some(block(7)), None));
        // There is room for one.
        assert_eq!(kept.keep(BLOCKS_MAX + 2, block(0)), None);
        assert_eq!(kept.len(), BLOCKS_MAX as usize);
    }

    #[test]
    fn it_does_not_grow() {
        let mut kept = none_yet();
        for round in 0..20_000 {
            kept.keep(9, block(round));
            kept.keep(10 + round % 3, block(round));
            kept.keep(100 + round, block(round));
            kept.remove(100 + round);
            assert!(kept.order.len() <= 2 * kept.len() + ORDER_SLACK);
            assert_eq!(kept.bytes, kept.len() * 4096);
        }
        assert_eq!(kept.get(9), Some(&*block(19_999)));
    }
}
