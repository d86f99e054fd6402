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

use agewell_core::{Sector, SectorCount};

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

/// Counts and links of one device.
#[derive(Debug, Clone)]
pub struct Observation {
    recent: Vec<u32>,
    aged: Vec<u64>,
    links: Option<LinkTable>,
    previous: Option<u32>,
}

impl Observation {
    /// Nothing seen yet, for `quanta` quanta; links are kept only if asked for.
    #[must_use]
    pub fn new(quanta: u32, links: bool) -> Self {
        Self {
            recent: vec![0; quanta as usize],
            aged: vec![0; quanta as usize],
            links: links.then(|| LinkTable::new(quanta)),
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
            self.access(quantum);
        }
    }

    #[inline]
    fn access(&mut self, quantum: u32) {
        let count = &mut self.recent[quantum as usize];
        *count = count.saturating_add(1);
        if let Some(links) = &mut self.links {
            if let Some(previous) = self.previous {
                links.traverse(previous, quantum);
            }
            self.previous = Some(quantum);
        }
    }

    /// Ends an interval: folds the recent counts into the aged ones and starts again from zero.
    pub fn end_interval(&mut self, aging: Aging) {
        for (aged, recent) in self.aged.iter_mut().zip(&mut self.recent) {
            *aged = aging.apply(*recent, *aged);
            *recent = 0;
        }
    }

    /// Aged counts a quantum, in units of 1 / [`AGED_ONE`].
    #[must_use]
    pub fn aged(&self) -> &[u64] {
        &self.aged
    }

    /// Accesses a quantum since the last interval ended.
    #[must_use]
    pub fn recent(&self) -> &[u32] {
        &self.recent
    }

    /// The links, if they are kept.
    #[must_use]
    pub fn links(&self) -> Option<&LinkTable> {
        self.links.as_ref()
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
        assert_eq!(observation.links().and_then(|links| links.forward(0)), Some(1));
        observation.observe(&grid(), Sector(0), SectorCount(2));
        observation.observe(&grid(), Sector(1), SectorCount(2));
        observation.observe(&grid(), Sector(81), SectorCount(3));
        observation.observe(&grid(), Sector(82), SectorCount(2));
        assert_eq!(observation.recent(), [2, 1, 0, 0, 0, 0, 0, 1]);
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
        assert_eq!(observation.recent()[0], 0);
        assert_eq!(observation.aged()[0], AGED_ONE / 2);
        observation.end_interval(Aging::new(0.5));
        assert_eq!(observation.aged()[0], AGED_ONE / 4);
    }
}
