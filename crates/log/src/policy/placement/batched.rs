//! Placements that are decided for many blocks at once: the seam for policies from outside.
//!
//! A log says which blocks it is about to place, those of a write buffer or of a segment that is
//! collected; a [`PlacementPolicy`] is shown them, a column a property, and names a log for each. What is
//! asked for by itself (writes without a buffer, preloading block by block) is a batch of one.
//!
//! Cost: 4 bytes a block, some 10 ns a placed block, and what the policy takes.

use std::fmt::Debug;

use super::{CollectedSegment, Placement};

/// The age of a block that was not there before.
pub const NEW_BLOCK_AGE: i64 = -1;

/// Blocks that are placed together, one entry a block in every column.
#[derive(Debug, Clone, Default)]
pub struct BlocksToPlace {
    /// Number of the first user block write, of collected blocks that of the last one before.
    pub clock: u64,
    /// Their numbers.
    pub block: Vec<i64>,
    /// User block writes since they were written last; [`NEW_BLOCK_AGE`] for what was not there.
    pub age: Vec<i64>,
    /// The segment that they move out of; none for what the user writes.
    pub from: Option<CollectedSegment>,
}

impl BlocksToPlace {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.block.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.block.is_empty()
    }

    fn begin(&mut self, clock: u64, from: Option<CollectedSegment>) {
        (self.clock, self.from) = (clock, from);
        self.block.clear();
        self.age.clear();
    }
}

/// Names an open log for each of many blocks.
pub trait PlacementPolicy: Debug + Send + Sync {
    /// What it is called in results.
    fn name(&self) -> String;

    /// Puts the log of each of `blocks`, from 0 to `last`, into `chosen`, which holds as many zeros.
    fn place(&mut self, blocks: &mut BlocksToPlace, last: u8, chosen: &mut [u8]);

    /// One that goes on from what this one has learnt: for copies of the log that look ahead.
    fn copied(&self) -> Box<dyn PlacementPolicy>;
}

/// A placement by a policy that decides about many blocks at once.
#[derive(Debug)]
pub struct Batched {
    policy: Box<dyn PlacementPolicy>,
    logs: usize,
    /// Low 32 bits of the clock of each block's last write.
    last_write: Vec<u32>,
    blocks: BlocksToPlace,
    chosen: Vec<u8>,
    /// How many of those have been asked for.
    taken: usize,
}

impl Clone for Batched {
    fn clone(&self) -> Self {
        Self {
            policy: self.policy.copied(),
            logs: self.logs,
            last_write: self.last_write.clone(),
            blocks: self.blocks.clone(),
            chosen: self.chosen.clone(),
            taken: self.taken,
        }
    }
}

impl Batched {
    /// For `blocks` blocks and `logs` logs.
    ///
    /// # Panics
    /// If `logs` is zero or above 256.
    #[must_use]
    pub fn new(policy: Box<dyn PlacementPolicy>, blocks: usize, logs: usize) -> Self {
        assert!((1..=256).contains(&logs), "between 1 and 256 logs");
        Self {
            policy,
            logs,
            last_write: vec![0; blocks],
            blocks: BlocksToPlace::default(),
            chosen: Vec::new(),
            taken: 0,
        }
    }

    fn age(&self, block: u32, clock: u64) -> i64 {
        i64::from((clock as u32).wrapping_sub(self.last_write[block as usize]))
    }

    /// Asks about the blocks that have been collected.
    fn decide(&mut self) {
        self.chosen.clear();
        self.chosen.resize(self.blocks.len(), 0);
        self.taken = 0;
        if self.blocks.is_empty() {
            return;
        }
        let last = (self.logs - 1) as u8;
        self.policy.place(&mut self.blocks, last, &mut self.chosen);
        assert!(self.chosen.iter().all(|log| *log <= last), "a placement names logs up to {last}");
    }

    /// The log of `block`, if it is the next of those that were decided about.
    fn next_chosen(&mut self, block: u32) -> Option<u8> {
        let is_next = self.blocks.block.get(self.taken) == Some(&i64::from(block));
        let chosen = self.chosen.get(self.taken).copied().filter(|_| is_next)?;
        self.taken += 1;
        Some(chosen)
    }
}

impl Placement for Batched {
    fn logs(&self) -> usize {
        self.logs
    }

    fn ensure_blocks(&mut self, blocks: usize) {
        if blocks > self.last_write.len() {
            self.last_write.resize(blocks, 0);
        }
    }

    fn will_write(&mut self, blocks: &mut dyn Iterator<Item = (u32, bool)>, clock: u64) {
        self.blocks.begin(clock, None);
        for ((block, overwrites), clock) in blocks.zip(clock..) {
            let age = if overwrites { self.age(block, clock) } else { NEW_BLOCK_AGE };
            self.blocks.block.push(i64::from(block));
            self.blocks.age.push(age);
        }
        self.decide();
    }

    fn will_collect(
        &mut self,
        blocks: &mut dyn Iterator<Item = u32>,
        segment: &CollectedSegment,
        clock: u64,
    ) {
        self.blocks.begin(clock, Some(*segment));
        for block in blocks {
            self.blocks.block.push(i64::from(block));
            self.blocks.age.push(self.age(block, clock));
        }
        self.decide();
    }

    fn place_new(&mut self, block: u32, overwrites: bool, clock: u64) -> u8 {
        let is_decided = self.blocks.from.is_none()
            && self.blocks.clock + self.taken as u64 == clock
            && self.blocks.block.get(self.taken) == Some(&i64::from(block));
        if !is_decided {
            self.will_write(&mut std::iter::once((block, overwrites)), clock);
        }
        self.last_write[block as usize] = clock as u32;
        self.next_chosen(block).expect("it has been decided about")
    }

    fn place_collected(&mut self, block: u32, segment: &CollectedSegment, clock: u64) -> u8 {
        let is_decided = self.blocks.from.as_ref() == Some(segment) && self.blocks.clock == clock;
        if let Some(chosen) = is_decided.then(|| self.next_chosen(block)).flatten() {
            return chosen;
        }
        self.will_collect(&mut std::iter::once(block), segment, clock);
        self.next_chosen(block).expect("it has been decided about")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Odd blocks to log 1; notes the ages of what it was asked about.
    #[derive(Debug, Clone, Default)]
    struct Odd(std::sync::Arc<std::sync::Mutex<Vec<Vec<i64>>>>);

    impl PlacementPolicy for Odd {
        fn name(&self) -> String {
            "odd".to_owned()
        }

        fn place(&mut self, blocks: &mut BlocksToPlace, _last: u8, chosen: &mut [u8]) {
            self.0.lock().unwrap().push(blocks.age.clone());
            for (chosen, block) in chosen.iter_mut().zip(&blocks.block) {
                *chosen = (*block % 2) as u8;
            }
        }

        fn copied(&self) -> Box<dyn PlacementPolicy> {
            Box::new(self.clone())
        }
    }

    #[test]
    fn blocks_that_were_said_are_asked_about_once_and_others_by_themselves() {
        let odd = Odd::default();
        let mut placement = Batched::new(odd.copied(), 10, 2);
        placement.will_write(&mut [(3, false), (4, false), (5, false)].into_iter(), 1);
        let placed: Vec<u8> = (3..6)
            .zip(1..)
            .map(|(block, clock)| placement.place_new(block, false, clock))
            .collect();
        assert_eq!(placed, [1, 0, 1]);
        assert_eq!(placement.place_new(7, false, 4), 1);
        assert_eq!(placement.place_new(3, true, 5), 1);
        let segment =
            CollectedSegment { log: 0, blocks: 4, filled: 4, live: 2, opened: 1, sealed: 2 };
        placement.will_collect(&mut [3, 4].into_iter(), &segment, 9);
        assert_eq!(placement.place_collected(3, &segment, 9), 1);
        // Another one than was said: what is left of the batch is not for it.
        assert_eq!(placement.place_collected(7, &segment, 9), 1);
        let asked = odd.0.lock().unwrap().clone();
        let wanted = [vec![-1, -1, -1], vec![-1], vec![4], vec![4, 7], vec![5]];
        assert_eq!(asked, wanted);
    }
}
