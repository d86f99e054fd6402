//! The placement policies: from what was observed to where everything should lie.
//!
//! [`choose`] is a plain function of a read-only view. Sources: organ pipe, coverage and links,
//! Ruemmler & Wilkes 1991, §2, §5.5, §5.6; block copying, [`crate::ReservedRegion`]. Choices that
//! the report leaves open:
//!
//! * Quanta of equal count share their slots so that as few as possible move, and the ones that
//!   move keep their order.
//! * A quantum that is not arranged (never accessed, or outside the coverage) stays where it is. If
//!   its slot is needed it goes to one that an arranged quantum left; several keep their order. The
//!   plain algorithm, which arranges the unaccessed quanta as well, in address order, is there as
//!   `arrange_unaccessed`.
//! * Coverage takes the most accessed quanta until together they hold at least that share of the
//!   aged counts.
//!
//! Arranging is `O(active log active)` in time and memory; only the random placement and
//! `arrange_unaccessed` look at every quantum ([`PolicyConfig::places_everything`]).

use agewell_core::Stream;
use rand_core::Rng;

use crate::closure::{ClosureFinder, UnitPlacer};
use crate::placement::{Arrangement, Move};
use crate::{Observation, OrganPipeSlots, Placement, RemapKind, RemapTable, ReservedRegion};

/// What a policy may look at.
#[derive(Debug, Clone, Copy)]
pub struct ShuffleView<'a> {
    /// Aged access counts, and links if they were counted.
    pub seen: &'a Observation,
    /// Where everything lies now.
    pub table: &'a RemapTable,
}

/// What a policy may be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyConfig {
    /// Which policy.
    pub kind: RemapKind,
    /// Share of the accesses that the arranged quanta must cover, in parts per million.
    pub coverage_ppm: u32,
    /// Place link closures as units.
    pub links: bool,
    /// Distance in slots between successive quanta of a closure; 1 is contiguous.
    pub interleave: u32,
    /// Arrange quanta that were never accessed as well.
    pub arrange_unaccessed: bool,
    /// The slot for the most accessed quantum.
    pub center: u32,
    /// The region for block copying.
    pub reserved: Option<ReservedRegion>,
}

impl PolicyConfig {
    /// Whether every quantum is placed, accessed or not, so that memory grows with the device.
    #[must_use]
    pub fn places_everything(&self) -> bool {
        match self.kind {
            RemapKind::Random => true,
            RemapKind::Shuffle => self.arrange_unaccessed,
            RemapKind::None | RemapKind::ReservedCopy | RemapKind::ReservedExchange => false,
        }
    }
}

/// The placement that `config` asks for, given `view`; `stream` is drawn from by the random policy
/// only.
///
/// # Panics
/// If a reserved policy comes without its region, which the configuration excludes.
#[must_use]
pub fn choose(view: &ShuffleView<'_>, config: &PolicyConfig, stream: &mut Stream) -> Placement {
    match config.kind {
        RemapKind::None => Placement::default(),
        RemapKind::Random => random(view, stream),
        RemapKind::Shuffle => shuffle(view, config),
        RemapKind::ReservedCopy | RemapKind::ReservedExchange => {
            let region = config.reserved.expect("a reserved policy has a region");
            region.choose(view, config.coverage_ppm)
        }
    }
}

fn random(view: &ShuffleView<'_>, stream: &mut Stream) -> Placement {
    let table = view.table;
    let mut slots: Vec<u32> = (0..table.grid().quanta()).map(|q| table.slot_of(q)).collect();
    // Fisher and Yates; the multiplication picks below `bound` with a bias under 2^-32, far below
    // what a run can show.
    for index in (1..slots.len()).rev() {
        let bound = index as u128 + 1;
        let other = (u128::from(stream.next_u64()) * bound) >> 64;
        slots.swap(index, other as usize);
    }
    let places = slots.into_iter().enumerate();
    Placement::new(table, places.map(|(quantum, slot)| Move { quantum: quantum as u32, slot }))
}

fn shuffle(view: &ShuffleView<'_>, config: &PolicyConfig) -> Placement {
    let chosen = if config.arrange_unaccessed {
        every_quantum_by_count(view)
    } else {
        most_accessed(view, config.coverage_ppm)
    };
    if config.links && view.seen.keeps_links() {
        linked_organ_pipe(view, config, &chosen)
    } else if config.arrange_unaccessed {
        plain_organ_pipe(view, config, &chosen)
    } else {
        organ_pipe(view, config, chosen)
    }
}

/// The accessed quanta by falling count, then by where they lie, until they cover `coverage_ppm` of
/// the accesses.
pub(crate) fn most_accessed(view: &ShuffleView<'_>, coverage_ppm: u32) -> Vec<u32> {
    let mut accessed: Vec<(u32, u64)> = view.seen.active().collect();
    accessed.sort_unstable_by_key(|(quantum, count)| {
        (std::cmp::Reverse(*count), view.table.slot_of(*quantum))
    });
    let total: u128 = accessed.iter().map(|(_, count)| u128::from(*count)).sum();
    let wanted = total * u128::from(coverage_ppm);
    let mut covered = 0;
    let enough = accessed.iter().position(|(_, count)| {
        covered += u128::from(*count) * 1_000_000;
        covered >= wanted
    });
    if let Some(last) = enough {
        accessed.truncate(last + 1);
    }
    accessed.into_iter().map(|(quantum, _)| quantum).collect()
}

fn every_quantum_by_count(view: &ShuffleView<'_>) -> Vec<u32> {
    let mut quanta: Vec<u32> = (0..view.table.grid().quanta()).collect();
    quanta.sort_by_key(|quantum| std::cmp::Reverse(view.seen.aged(*quantum)));
    quanta
}

fn plain_organ_pipe(view: &ShuffleView<'_>, config: &PolicyConfig, ranked: &[u32]) -> Placement {
    let mut arrangement = Arrangement::new(view.table);
    let slots = OrganPipeSlots::new(config.center, view.table.grid().slots());
    for (quantum, slot) in ranked.iter().zip(slots) {
        arrangement.place(*quantum, slot);
    }
    arrangement.settle_the_rest()
}

fn organ_pipe(view: &ShuffleView<'_>, config: &PolicyConfig, mut ranked: Vec<u32>) -> Placement {
    let mut arrangement = Arrangement::new(view.table);
    let slots = OrganPipeSlots::new(config.center, view.table.grid().slots());
    arrange_ranked(&mut arrangement, view, &mut ranked, slots);
    arrangement.settle_the_rest()
}

/// Places `ranked` quanta into `slots`, rank by rank, quanta of equal count sharing theirs.
pub(crate) fn arrange_ranked(
    arrangement: &mut Arrangement<'_>,
    view: &ShuffleView<'_>,
    ranked: &mut [u32],
    mut slots: impl Iterator<Item = u32>,
) {
    let mut equals_slots = Vec::new();
    let count = |quantum: &u32| view.seen.aged(*quantum);
    for equals in ranked.chunk_by_mut(|a, b| count(a) == count(b)) {
        equals_slots.clear();
        equals_slots.extend(slots.by_ref().take(equals.len()));
        arrangement.place_equals(equals, &mut equals_slots);
    }
}

fn linked_organ_pipe(view: &ShuffleView<'_>, config: &PolicyConfig, ranked: &[u32]) -> Placement {
    let mut placer = UnitPlacer::new(view, config.center, config.interleave);
    let mut finder = ClosureFinder::new(view.table.grid().quanta());
    let mut unit = Vec::new();
    let mut positions = Vec::new();
    for seed in ranked {
        if placer.is_placed(*seed) {
            continue;
        }
        finder.collect(*seed, view, &placer, &mut unit);
        placer.place(&unit, &mut positions);
    }
    placer.finish().settle_the_rest()
}
