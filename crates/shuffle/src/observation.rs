//! What was seen of the workload: access counts a quantum, aged from interval to interval, and
//! links.
//!
//! `aged(alpha)`: `C_new = alpha * C_recent + (1 - alpha) * C_old` (Ruemmler & Wilkes 1991, §5.3).
//! Counts are fixed point with 16 fractional bits and alpha is a multiple of 2^-16, so that a
//! placement depends on no platform's rounding; the product is truncated. An unaccessed quantum
//! with alpha 0.8 reaches zero after seven intervals for a last count of 1.
//!
//! A request counts once for every quantum that it touches, since that is how many requests it
//! becomes when the quanta lie apart; its pieces are linked in order.
//!
//! Cost: memory grows with the quanta that were ever accessed: 16 bytes each and 12 for links, and
//! 256 for each stretch of 64 quanta with an accessed one.

use agewell_core::{Sector, SectorCount};

use crate::paged::Paged;
use crate::{LinkTable, QuantumGrid};

/// One access in the fixed-point counts.
pub const AGED_ONE: u64 = 1 << 16;

/// The weight of the most recent interval, as a multiple of 2^-16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aging {
    alpha: u64,
}

impl Aging {
    /// The nearest representable weight; `alpha` is between 0 and 1.
    ///
    /// # Panics
    /// If `alpha` is not between 0 and 1.
    #[must_use]
    pub fn new(alpha: f64) -> Self {
        assert!((0.0..=1.0).contains(&alpha), "aging with alpha {alpha}");
        Self { alpha: (alpha * AGED_ONE as f64).round() as u64 }
    }

    /// The aged count after an interval with `recent` accesses.
    #[inline]
    #[must_use]
    pub fn apply(self, recent: u32, old: u64) -> u64 {
        // Both terms are below 2^48 times a weight, and the weights add up to 2^16: the sum fits 64
        // bits.
        let recent = u64::from(recent) << 16;
        (self.alpha * recent + (AGED_ONE - self.alpha) * old) >> 16
    }
}

/// What is kept of a quantum that was accessed.
#[derive(Debug, Clone, Copy)]
struct Seen {
    quantum: u32,
    /// Accesses since the last interval ended.
    recent: u32,
    aged: u64,
}

/// Counts and links of one device.
#[derive(Debug, Clone)]
pub struct Observation {
    /// The place in `seen` of every quantum plus one, or zero if it was never accessed.
    places: Paged<u32>,
    /// The quanta that were ever accessed, in the order of their first access.
    seen: Vec<Seen>,
    /// Between places in `seen`.
    links: Option<LinkTable>,
    /// The place in `seen` of the quantum that was accessed last.
    previous: Option<u32>,
}

impl Observation {
    /// Nothing seen yet, for `quanta` quanta; links are kept only if asked for.
    #[must_use]
    pub fn new(quanta: u32, links: bool) -> Self {
        Self {
            places: Paged::new(quanta),
            seen: Vec::new(),
            links: links.then(LinkTable::default),
            previous: None,
        }
    }

    /// Counts a request for `sectors` sectors at logical `sector`.
    #[inline]
    pub fn observe(&mut self, grid: &QuantumGrid, sector: Sector, sectors: SectorCount) {
        if sectors.0 == 0 {
            return;
        }
        let last = Sector(sector.0 + sectors.0 - 1);
        let before_grid = sector < grid.first_sector();
        if before_grid && last < grid.first_sector() {
            return;
        }
        let start = if before_grid { grid.first_sector() } else { sector };
        let Some((first, _)) = grid.locate(start) else { return };
        let last = grid.locate(last).map_or(grid.quanta() - 1, |(quantum, _)| quantum);
        for quantum in first..=last {
            let place = self.count(quantum);
            if let Some(links) = &mut self.links {
                if let Some(previous) = self.previous {
                    links.traverse(previous, place);
                }
                self.previous = Some(place);
            }
        }
    }

    /// Counts an access to `quantum`; returns its place in `seen`.
    #[inline]
    fn count(&mut self, quantum: u32) -> u32 {
        let place = self.place_of(quantum);
        let seen = &mut self.seen[place as usize];
        seen.recent = seen.recent.saturating_add(1);
        place
    }

    /// The place in `seen` of `quantum`, which gets one if it has none.
    #[inline]
    fn place_of(&mut self, quantum: u32) -> u32 {
        match self.places.get(quantum) {
            0 => self.add(quantum),
            place => place - 1,
        }
    }

    fn add(&mut self, quantum: u32) -> u32 {
        let place = self.seen.len() as u32;
        self.seen.push(Seen { quantum, recent: 0, aged: 0 });
        self.places.set(quantum, place + 1);
        place
    }

    /// Counts one access to `quantum`, without a link to the one before.
    pub fn access(&mut self, quantum: u32) {
        self.count(quantum);
    }

    /// Records, if links are kept, that `to` was accessed directly after `from`, without counting
    /// an access.
    pub fn traverse(&mut self, from: u32, to: u32) {
        let (from, to) = (self.place_of(from), self.place_of(to));
        if let Some(links) = &mut self.links {
            links.traverse(from, to);
        }
    }

    /// Ends an interval: folds the recent counts into the aged ones and starts again from zero.
    pub fn end_interval(&mut self, aging: Aging) {
        for seen in &mut self.seen {
            seen.aged = aging.apply(seen.recent, seen.aged);
            seen.recent = 0;
        }
    }

    fn seen(&self, quantum: u32) -> Option<&Seen> {
        let place = self.places.get(quantum).checked_sub(1)?;
        Some(&self.seen[place as usize])
    }

    /// Aged count of `quantum`, in units of 1 / [`AGED_ONE`].
    #[inline]
    #[must_use]
    pub fn aged(&self, quantum: u32) -> u64 {
        self.seen(quantum).map_or(0, |seen| seen.aged)
    }

    /// The quanta whose aged count is above zero, with that count, in no particular order.
    pub fn active(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.seen.iter().filter(|seen| seen.aged > 0).map(|seen| (seen.quantum, seen.aged))
    }

    /// Accesses to `quantum` since the last interval ended.
    #[must_use]
    pub fn recent(&self, quantum: u32) -> u32 {
        self.seen(quantum).map_or(0, |seen| seen.recent)
    }

    /// Whether links are kept.
    #[must_use]
    pub fn keeps_links(&self) -> bool {
        self.links.is_some()
    }

    /// The quantum that mostly follows `quantum`, if links are kept and it has one.
    #[must_use]
    pub fn forward(&self, quantum: u32) -> Option<u32> {
        let place = self.places.get(quantum).checked_sub(1)?;
        let next = self.links.as_ref()?.forward(place)?;
        Some(self.seen[next as usize].quantum)
    }

    /// The quantum that mostly precedes `quantum`, if links are kept and it has one.
    #[must_use]
    pub fn backward(&self, quantum: u32) -> Option<u32> {
        let place = self.places.get(quantum).checked_sub(1)?;
        let before = self.links.as_ref()?.backward(place)?;
        Some(self.seen[before as usize].quantum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> QuantumGrid {
        QuantumGrid::new(SectorCount(84), SectorCount(84), Sector(2), SectorCount(10))
            .expect("eight quanta fit")
    }

    #[test]
    fn a_request_counts_once_in_every_quantum_it_touches() {
        let mut observation = Observation::new(8, true);
        observation.observe(&grid(), Sector(11), SectorCount(2));
        assert_eq!(observation.forward(0), Some(1));
        observation.observe(&grid(), Sector(0), SectorCount(2));
        observation.observe(&grid(), Sector(1), SectorCount(2));
        observation.observe(&grid(), Sector(81), SectorCount(3));
        observation.observe(&grid(), Sector(82), SectorCount(2));
        let recent: Vec<u32> = (0..8).map(|quantum| observation.recent(quantum)).collect();
        assert_eq!(recent, [2, 1, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn aging_follows_the_formula_to_the_last_bit_kept() {
        let aging = Aging::new(0.8);
        let first = aging.apply(100, 0);
        // 0.8 is 52429 / 65536.
        assert_eq!(first, 52_429 * 100);
        assert_eq!(aging.apply(0, first), (13_107 * first) >> 16);
        assert_eq!(Aging::new(1.0).apply(7, 123_456), 7 * AGED_ONE);
    }

    #[test]
    fn the_largest_counts_do_not_overflow() {
        let largest = u64::from(u32::MAX) << 16;
        for alpha in [0.0, 0.2, 0.5, 0.8, 1.0] {
            let aged = Aging::new(alpha).apply(u32::MAX, largest);
            assert!(aged <= largest);
            assert!(aged >= largest - 1);
        }
    }

    #[test]
    fn an_interval_starts_from_zero_and_remembers_the_last_one() {
        let mut observation = Observation::new(8, false);
        observation.observe(&grid(), Sector(2), SectorCount(1));
        observation.end_interval(Aging::new(0.5));
        assert_eq!(observation.recent(0), 0);
        assert_eq!(observation.aged(0), AGED_ONE / 2);
        observation.end_interval(Aging::new(0.5));
        assert_eq!(observation.aged(0), AGED_ONE / 4);
    }
}
