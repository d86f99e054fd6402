//! A placement: blocks that are written again soon go to one log, all others to another.

use agewell_log::policy::placement::{BlocksToPlace, NEW_BLOCK_AGE, PlacementPolicy};

const SOON: u8 = 0;
const LATER: u8 = 1;

/// A block that was written at most `soon` user block writes ago is taken to be written soon again.
#[derive(Debug, Clone)]
pub struct Recent {
    /// In user block writes.
    pub soon: i64,
}

impl PlacementPolicy for Recent {
    fn name(&self) -> String {
        format!("recent {}", self.soon)
    }

    fn place(&mut self, blocks: &mut BlocksToPlace, _last: u8, chosen: &mut [u8]) {
        let is_collected = blocks.from.is_some();
        for (chosen, age) in chosen.iter_mut().zip(&blocks.age) {
            let is_soon = !is_collected && *age != NEW_BLOCK_AGE && *age <= self.soon;
            *chosen = if is_soon { SOON } else { LATER };
        }
    }

    fn copied(&self) -> Box<dyn PlacementPolicy> {
        Box::new(self.clone())
    }
}
