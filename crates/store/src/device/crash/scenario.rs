//! What a loss of power may leave of an epoch, numbered.
//!
//! A disk that was asked for `n` pieces since its last flush may have carried out any of them, and
//! parts of those that it was at. Those of one sector come in order: what was reported later lies on
//! top. The numbers go through
//! * every prefix, for each way in which discarded sectors may read;
//! * every subset of up to ten pieces; of more those of up to two, all but up to two, and 64 drawn ones;
//! * the last write and a drawn one torn at every sector: the beginning alone, the beginning with
//!   garbage behind it, the end alone, all but the sector before the cut; and all but each page;
//! * 64 drawn subsets of the pages, or of the sectors, of all writes, if there are more of those than pieces.
//!
//! All but the prefixes have discarded sectors read in a drawn way.

use std::fmt;
use std::ops::Range;

use agewell_core::{RandomStreams, Stream, mix, uniform_below};

use super::recording::{Epoch, Item};
use super::{Discarded, SECTOR_BYTES};

/// Every subset of as many pieces is looked at; chosen by us, as is common: 1,024 states.
const EVERY_SUBSET_ITEMS: usize = 10;
/// Drawn subsets of more pieces, and of pages.
const DRAWN: u64 = 64;
/// Sectors that are lost together on drives with large ones.
const PAGE_SECTORS: u64 = 8;
/// How a write is torn at a cut.
const TEARS: u64 = 4;

/// Which pieces were carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kept {
    First(usize),
    /// Bit `i` is piece `i`.
    Subset(u64),
    Only(Vec<usize>),
    Without(Vec<usize>),
    /// Half of them, drawn by this number.
    Drawn(u64),
    /// Pages or sectors of writes, drawn by this number, and all discards.
    Pages(u64),
    /// The pieces before that one, and of it what the tear leaves; those behind it too if `and_rest`.
    Torn {
        item: usize,
        tear: Tear,
        and_rest: bool,
    },
}

/// What is left of a write of which only a part arrived, in sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tear {
    Beginning(u64),
    BeginningThenGarbage(u64),
    End(u64),
    AllBut { first: u64, end: u64 },
}

/// What a loss of power has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scenario {
    pub(super) kept: Kept,
    pub(super) discarded: Discarded,
}

/// The scenarios of an epoch.
#[derive(Debug)]
pub(super) struct Scenarios {
    seed: u64,
    items: usize,
    /// Ways in which discarded sectors may read that make a difference.
    ways: u64,
    /// Writes that are torn, and their sectors.
    torn: Vec<(usize, u64)>,
    has_many_sectors: bool,
}

impl Scenarios {
    /// The scenarios of `epoch`, the one with that number of a recording with that seed.
    pub(super) fn new(epoch: &Epoch, seed: u64, number: usize) -> Self {
        let seed = mix(seed ^ mix(number as u64));
        let has_discards = epoch.bases.len() > 1 || epoch.items.iter().any(|item| !item.is_write());
        let writes: Vec<usize> =
            (0..epoch.items.len()).filter(|item| epoch.items[*item].is_write()).collect();
        let sectors = |item: usize| epoch.items[item].bytes() / SECTOR_BYTES;
        let mut torn = Vec::new();
        if let Some((last, others)) = writes.split_last() {
            torn.push((*last, sectors(*last)));
            if !others.is_empty() {
                let mut random = RandomStreams::new(seed).stream("torn write");
                let other = others[uniform_below(&mut random, others.len() as u64) as usize];
                torn.push((other, sectors(other)));
            }
        }
        let all_sectors: u64 = writes.iter().map(|item| sectors(*item)).sum();
        Self {
            seed,
            items: epoch.items.len(),
            ways: if has_discards { Discarded::ALL.len() as u64 } else { 1 },
            torn,
            has_many_sectors: all_sectors > writes.len() as u64,
        }
    }

    fn prefixes(&self) -> u64 {
        (self.items as u64 + 1) * self.ways
    }

    /// Subsets of up to two of more pieces than every subset is looked at of.
    fn small_subsets(&self) -> u64 {
        let items = self.items as u64;
        1 + items + items * (items - 1) / 2
    }

    fn subsets(&self) -> u64 {
        if self.items <= EVERY_SUBSET_ITEMS {
            1 << self.items
        } else {
            2 * self.small_subsets() + DRAWN
        }
    }

    fn tears(sectors: u64) -> u64 {
        TEARS * (sectors - 1) + sectors.div_ceil(PAGE_SECTORS)
    }

    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        let torn: u64 = self.torn.iter().map(|(_, sectors)| Self::tears(*sectors)).sum();
        let pages = if self.has_many_sectors { DRAWN } else { 0 };
        self.prefixes() + self.subsets() + torn + pages
    }

    /// Scenario `number`.
    pub(super) fn get(&self, number: u64) -> Scenario {
        assert!(number < self.len(), "state {number} of {}", self.len());
        if number < self.prefixes() {
            return Scenario {
                kept: Kept::First((number / self.ways) as usize),
                discarded: Discarded::ALL[(number % self.ways) as usize],
            };
        }
        let draw = mix(self.seed ^ mix(number));
        let discarded = Discarded::ALL[(draw % self.ways) as usize];
        let mut number = number - self.prefixes();
        if number < self.subsets() {
            return Scenario { kept: self.subset(number, draw), discarded };
        }
        number -= self.subsets();
        for (which, (item, sectors)) in self.torn.iter().enumerate() {
            if number < Self::tears(*sectors) {
                let tear = tear(number, *sectors);
                return Scenario {
                    kept: Kept::Torn { item: *item, tear, and_rest: which > 0 },
                    discarded,
                };
            }
            number -= Self::tears(*sectors);
        }
        Scenario { kept: Kept::Pages(draw), discarded }
    }

    fn subset(&self, number: u64, draw: u64) -> Kept {
        if self.items <= EVERY_SUBSET_ITEMS {
            return Kept::Subset(number);
        }
        match number.checked_sub(self.small_subsets()) {
            None => Kept::Only(self.small_subset(number)),
            Some(rest) if rest < self.small_subsets() => Kept::Without(self.small_subset(rest)),
            Some(_) => Kept::Drawn(draw),
        }
    }

    /// Subset `number` of none, one or two pieces.
    fn small_subset(&self, number: u64) -> Vec<usize> {
        let Some(number) = number.checked_sub(1) else { return Vec::new() };
        let Some(mut pair) = number.checked_sub(self.items as u64) else {
            return vec![number as usize];
        };
        let mut first = 0;
        while pair >= (self.items - 1 - first) as u64 {
            pair -= (self.items - 1 - first) as u64;
            first += 1;
        }
        vec![first, first + 1 + pair as usize]
    }
}

/// Tear `number` of a write of `sectors`.
fn tear(number: u64, sectors: u64) -> Tear {
    let cut = number / TEARS + 1;
    if cut >= sectors {
        let first = (number - TEARS * (sectors - 1)) * PAGE_SECTORS;
        return Tear::AllBut { first, end: (first + PAGE_SECTORS).min(sectors) };
    }
    match number % TEARS {
        0 => Tear::Beginning(cut),
        1 => Tear::BeginningThenGarbage(cut),
        2 => Tear::End(cut),
        _ => Tear::AllBut { first: cut - 1, end: cut },
    }
}

impl Scenario {
    /// Calls `enter` with what was carried out of `items`, in order: the piece, which of its sectors, and
    /// whether they hold garbage instead.
    pub(super) fn each(&self, items: &[Item], mut enter: impl FnMut(usize, Range<u64>, bool)) {
        let sectors = |item: usize| items[item].bytes() / SECTOR_BYTES;
        let whole = |item: usize| enter(item, 0..sectors(item), false);
        match &self.kept {
            Kept::First(end) => (0..*end).for_each(whole),
            Kept::Subset(subset) => {
                (0..items.len()).filter(|item| subset >> item & 1 == 1).for_each(whole);
            }
            Kept::Only(only) => only.iter().copied().for_each(whole),
            Kept::Without(without) => {
                (0..items.len()).filter(|item| !without.contains(item)).for_each(whole);
            }
            Kept::Drawn(draw) => {
                let mut random = drawn(*draw);
                (0..items.len()).filter(|_| uniform_below(&mut random, 2) == 1).for_each(whole);
            }
            Kept::Pages(draw) => {
                let mut random = drawn(*draw);
                // From nearly nothing to nearly all.
                let eighths = 1 + uniform_below(&mut random, 7);
                let unit = [1, PAGE_SECTORS][uniform_below(&mut random, 2) as usize];
                for (item, asked) in items.iter().enumerate() {
                    let all = sectors(item);
                    if !asked.is_write() {
                        enter(item, 0..all, false);
                        continue;
                    }
                    for first in (0..all).step_by(unit as usize) {
                        if uniform_below(&mut random, 8) < eighths {
                            enter(item, first..(first + unit).min(all), false);
                        }
                    }
                }
            }
            Kept::Torn { item, tear, and_rest } => {
                (0..*item).for_each(whole);
                let all = sectors(*item);
                match *tear {
                    Tear::Beginning(cut) => enter(*item, 0..cut, false),
                    Tear::BeginningThenGarbage(cut) => {
                        enter(*item, 0..cut, false);
                        enter(*item, cut..all, true);
                    }
                    Tear::End(cut) => enter(*item, cut..all, false),
                    Tear::AllBut { first, end } => {
                        enter(*item, 0..all, false);
                        enter(*item, first..end, true);
                    }
                }
                if *and_rest {
                    (*item + 1..items.len()).for_each(|item| enter(item, 0..sectors(item), false));
                }
            }
        }
    }
}

fn drawn(draw: u64) -> Stream {
    RandomStreams::new(draw).stream("kept")
}

impl fmt::Display for Scenario {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kept {
            Kept::First(end) => write!(out, "the first {end} pieces")?,
            Kept::Subset(subset) => write!(out, "the pieces of {subset:#b}")?,
            Kept::Only(only) => write!(out, "only the pieces {only:?}")?,
            Kept::Without(without) => write!(out, "all but the pieces {without:?}")?,
            Kept::Drawn(_) => write!(out, "drawn pieces")?,
            Kept::Pages(_) => write!(out, "drawn pages or sectors")?,
            Kept::Torn { item, tear, and_rest } => {
                let rest = if *and_rest { " and those behind it" } else { "" };
                write!(out, "the pieces before {item}{rest}, and of it ")?;
                match tear {
                    Tear::Beginning(cut) => write!(out, "the first {cut} sectors")?,
                    Tear::BeginningThenGarbage(cut) => {
                        write!(out, "the first {cut} sectors, then garbage")?;
                    }
                    Tear::End(cut) => write!(out, "all behind the first {cut} sectors")?,
                    Tear::AllBut { first, end } => {
                        write!(out, "all but the sectors {first} to {end}, garbage")?;
                    }
                }
            }
        }
        let discarded = match self.discarded {
            Discarded::Untouched => "as it was",
            Discarded::Zeros => "zeros",
            Discarded::Garbage => "garbage",
        };
        write!(out, "; what is discarded is {discarded}")
    }
}
