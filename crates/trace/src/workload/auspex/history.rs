//! Which groups were used in what order, and which of them is used again.
//!
//! The d-th last use is drawn with probability about 1/d, up to a reach of 2^n - 1 uses; what has
//! sunk below is not drawn again. Cost: 4 bytes for each use within reach; O(1) a use or draw.

use agewell_core::{Stream, uniform_below};

/// Uses of groups, the last ones in a ring.
#[derive(Debug, Clone)]
pub(super) struct History {
    ring: Vec<u32>,
    doublings: u64,
    uses: u64,
}

impl History {
    /// Nothing has been used; draws will reach 2^`doublings` - 1 uses back.
    pub(super) fn reaching(doublings: u64) -> Self {
        Self { ring: vec![0; 1 << doublings], doublings, uses: 0 }
    }

    /// `group` is used.
    pub(super) fn push(&mut self, group: u32) {
        let slot = self.slot(self.uses);
        self.ring[slot] = group;
        self.uses += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.uses == 0
    }

    /// The place of a use; there must be one.
    pub(super) fn recent(&self, stream: &mut Stream) -> u64 {
        let doubling = uniform_below(stream, self.doublings);
        let distance = (1 << doubling) + uniform_below(stream, 1 << doubling);
        // Before the history is that long, what it has.
        let distance = (distance - 1) % self.uses + 1;
        self.uses - distance
    }

    /// The place behind `place`, if it is within reach and there is one.
    pub(super) fn following(&self, place: u64) -> Option<u64> {
        let following = place + 1;
        let within = following < self.uses && self.uses - following < self.ring.len() as u64;
        within.then_some(following)
    }

    /// The group used at a place within reach.
    pub(super) fn at(&self, place: u64) -> u32 {
        self.ring[self.slot(place)]
    }

    fn slot(&self, place: u64) -> usize {
        (place % self.ring.len() as u64) as usize
    }
}
