//! Free places counted by stripe, so that the stripe with the most is found in a few steps.
//!
//! Stripes of `stripe_blocks` neighbouring places; the last may be shorter. For each number of free
//! places there is the set of stripes that have it: about a bit a place in all.

use agewell_log::free_places::FreePlaces;

/// Free places by stripe.
#[derive(Debug, Clone)]
pub struct Stripes {
    stripe_blocks: u32,
    places: u32,
    free: Vec<u32>,
    /// Stripes by their number of free places.
    by_free: Vec<FreePlaces>,
    /// The most free places that a stripe has.
    most: u32,
}

impl Stripes {
    /// Stripes of `stripe_blocks`, all places of which are free.
    #[must_use]
    pub fn all_free(places: u32, stripe_blocks: u32) -> Self {
        let stripe_blocks = stripe_blocks.clamp(1, places.max(1));
        let stripes = places.div_ceil(stripe_blocks);
        let mut by_free = vec![FreePlaces::none_free(stripes); stripe_blocks as usize + 1];
        let free: Vec<u32> =
            (0..stripes).map(|stripe| stripe_blocks.min(places - stripe * stripe_blocks)).collect();
        for (stripe, free) in (0..).zip(&free) {
            by_free[*free as usize].give_back(stripe);
        }
        let most = free.iter().copied().max().unwrap_or(0);
        Self { stripe_blocks, places, free, by_free, most }
    }

    /// First place of `stripe`, and the one behind its last.
    #[must_use]
    pub fn bounds(&self, stripe: u32) -> (u32, u32) {
        let first = stripe * self.stripe_blocks;
        (first, first.saturating_add(self.stripe_blocks).min(self.places))
    }

    /// The stripe to fill: that of the place `last`, if it has holes, else the next with the most.
    #[must_use]
    pub fn next(&self, last: u32) -> Option<u32> {
        let current = last / self.stripe_blocks;
        if self.free.get(current as usize).is_some_and(|free| *free > 0) {
            return Some(current);
        }
        if self.most == 0 {
            return None;
        }
        let fullest = &self.by_free[self.most as usize];
        fullest.at_or_after(current + 1).or_else(|| fullest.at_or_after(0))
    }

    /// `place` is taken.
    pub(super) fn take(&mut self, place: u32) {
        let stripe = place / self.stripe_blocks;
        self.change(stripe, self.free[stripe as usize] - 1);
        while self.most > 0 && self.by_free[self.most as usize].free() == 0 {
            self.most -= 1;
        }
    }

    /// `place` is given back.
    pub(super) fn give_back(&mut self, place: u32) {
        let stripe = place / self.stripe_blocks;
        let free = self.free[stripe as usize] + 1;
        self.change(stripe, free);
        self.most = self.most.max(free);
    }

    fn change(&mut self, stripe: u32, free: u32) {
        let before = std::mem::replace(&mut self.free[stripe as usize], free);
        self.by_free[before as usize].take(stripe);
        self.by_free[free as usize].give_back(stripe);
    }

    /// Checks the counts against `free`.
    ///
    /// # Panics
    /// If one is wrong, which is a bug.
    pub fn verify(&self, free: &FreePlaces) {
        for (stripe, counted) in (0..).zip(&self.free) {
            let (first, end) = self.bounds(stripe);
            let places = (first..end).filter(|place| free.is_free(*place)).count();
            assert_eq!(places as u32, *counted, "free places of stripe {stripe}");
            assert!(self.by_free[*counted as usize].is_free(stripe), "stripe {stripe} by count");
        }
        let most = self.free.iter().copied().max().unwrap_or(0);
        assert_eq!(most, self.most, "the most free places of a stripe");
    }
}
