//! The translation layer of a flash drive: where each unit of the address space lies, and which
//! erase block is collected next. Space only; no time.
//!
//! Every die has erase blocks of its own, one of them open. A unit that is written goes to the open
//! block of the die that the placement chooses; its old version is dead. A die that runs out of
//! empty blocks collects the closed block with the fewest live units, whose units stay on the die.
//!
//! Invariants:
//! * an address that was written has one place, and that place names it back (a bijection);
//! * `live` of a block and of a die count exactly the places so named;
//! * a die has an empty block whenever nothing is being moved, so that collection always ends: its
//!   live units are held below its spare space (write order passes over a die that is full).
//!
//! Sources: page-level mapping and greedy collection as analysed by Desnoyers 2012 (Analytic
//! modeling of SSD write performance). Difference: collection works die by die, in the foreground,
//! and knows neither wear nor temperature.
//!
//! Cost: two table accesses a unit; a scan over a die's blocks a collection. Tables are allocated by
//! what was written, not by capacity.

use crate::parameters::{FlashParameters, Placement};

/// Map entry of an address that was never written.
const NEVER_WRITTEN: u32 = 0;
/// Map entry of an address that was discarded.
const DISCARDED: u32 = 1;
/// The first place, as the map counts.
const FIRST_PLACE: u32 = 2;
/// Owner of a place that holds nothing: filled up when a page had to be programmed early.
const NOBODY: u32 = u32::MAX;
/// Key of a block that is not closed.
const NOT_CLOSED: u32 = u32::MAX;
/// A die with fewer empty blocks collects before it opens one: the last is there to move into.
const EMPTY_BLOCKS_MIN: usize = 2;
/// Addresses whose map entries are allocated together; chosen by us.
const CHUNK_UNITS: usize = 4096;

/// Where the newest version of an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere: it was never written.
    NeverWritten,
    /// Nowhere: it was discarded.
    Discarded,
    /// In this page of this die; pages are numbered through the drive.
    Page { die: u32, page: u64 },
}

/// Work of collecting one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Collected {
    pub(super) pages_read: u32,
    pub(super) units_moved: u32,
    pub(super) pages_programmed: u32,
}

/// Entries of the map, allocated in chunks as they are first set.
#[derive(Debug, Clone)]
struct Map(Vec<Option<Box<[u32]>>>);

impl Map {
    fn new(units: u64) -> Self {
        let chunks = usize::try_from(units.div_ceil(CHUNK_UNITS as u64))
            .expect("the reader of device files bounds the units");
        Self(vec![None; chunks])
    }

    fn get(&self, unit: u32) -> u32 {
        match &self.0[unit as usize / CHUNK_UNITS] {
            Some(chunk) => chunk[unit as usize % CHUNK_UNITS],
            None => NEVER_WRITTEN,
        }
    }

    fn set(&mut self, unit: u32, entry: u32) {
        let chunk = self.0[unit as usize / CHUNK_UNITS]
            .get_or_insert_with(|| vec![NEVER_WRITTEN; CHUNK_UNITS].into_boxed_slice());
        chunk[unit as usize % CHUNK_UNITS] = entry;
    }
}

/// The blocks of one die.
#[derive(Debug, Clone)]
struct Die {
    /// Empty blocks, used from the front so that all take turns.
    empty: std::collections::VecDeque<u32>,
    open: u32,
    /// Units written to the open block.
    filled: u32,
    live: u32,
}

#[derive(Debug, Clone)]
pub(super) struct Translation {
    placement: Placement,
    units_per_page: u32,
    units_per_block: u32,
    blocks_per_die: u32,
    /// Live units that a die takes at most.
    live_max: u32,
    map: Map,
    dies: Vec<Die>,
    /// The owner of each place of each block, up to what was written; blocks of a die side by side.
    owners: Vec<Vec<u32>>,
    live: Vec<u32>,
    /// Live units of a closed block, else `NOT_CLOSED`: what a collection scans.
    keys: Vec<u32>,
    /// The die that write order has come to.
    cursor: u32,
}

impl Translation {
    pub(super) fn new(parameters: &FlashParameters) -> Self {
        let units_per_block = parameters.units_per_block() as u32;
        let data_blocks = parameters.data_blocks_per_die() as u32;
        let blocks_per_die = data_blocks + EMPTY_BLOCKS_MIN as u32;
        let share = parameters.units_per_die() as u32;
        let spare = data_blocks * units_per_block - share;
        let dies = parameters.dies();
        let blocks = dies as usize * blocks_per_die as usize;
        let die = Die { empty: (1..blocks_per_die).collect(), open: 0, filled: 0, live: 0 };
        Self {
            placement: parameters.placement,
            units_per_page: parameters.units_per_page() as u32,
            units_per_block,
            blocks_per_die,
            // Half of the spare space takes up that dies fill unevenly; half is left to collect in.
            live_max: share + spare / 2,
            map: Map::new(parameters.logical_units()),
            dies: vec![die; dies as usize],
            owners: vec![Vec::new(); blocks],
            live: vec![0; blocks],
            keys: vec![NOT_CLOSED; blocks],
            cursor: 0,
        }
    }

    pub(super) fn units_per_page(&self) -> u32 {
        self.units_per_page
    }

    /// Where the newest version of `unit` is.
    #[inline]
    pub(super) fn place(&self, unit: u32) -> Place {
        match self.map.get(unit) {
            NEVER_WRITTEN => Place::NeverWritten,
            DISCARDED => Place::Discarded,
            entry => {
                let place = entry - FIRST_PLACE;
                let die = place / (self.units_per_block * self.blocks_per_die);
                Place::Page { die, page: u64::from(place / self.units_per_page) }
            }
        }
    }

    /// The die that holds `unit` if addresses are dealt to dies page by page.
    #[inline]
    pub(super) fn die_by_address(&self, unit: u32) -> u32 {
        unit / self.units_per_page % self.dies.len() as u32
    }

    /// The page that `die` is filling, and whether anything is in it.
    #[inline]
    pub(super) fn open_page(&self, die: u32) -> (u64, bool) {
        let state = &self.dies[die as usize];
        let first = (die * self.blocks_per_die + state.open) * self.units_per_block;
        let partial = !state.filled.is_multiple_of(self.units_per_page);
        (u64::from((first + state.filled) / self.units_per_page), partial)
    }

    /// Makes the old version of `unit` dead and chooses the die for the new one.
    pub(super) fn replace(&mut self, unit: u32) -> u32 {
        self.kill(unit);
        match self.placement {
            Placement::Static => self.die_by_address(unit),
            Placement::WriteOrder | Placement::CollisionFree => {
                // One die is below its share as long as anything is dead, and this unit is.
                while self.dies[self.cursor as usize].live >= self.live_max {
                    self.next_die();
                }
                self.cursor
            }
        }
    }

    /// Forgets `unit`.
    pub(super) fn discard(&mut self, unit: u32) {
        self.kill(unit);
        self.map.set(unit, DISCARDED);
    }

    fn kill(&mut self, unit: u32) {
        let entry = self.map.get(unit);
        if entry < FIRST_PLACE {
            return;
        }
        let block = ((entry - FIRST_PLACE) / self.units_per_block) as usize;
        self.live[block] -= 1;
        if self.keys[block] != NOT_CLOSED {
            self.keys[block] -= 1;
        }
        self.dies[block / self.blocks_per_die as usize].live -= 1;
        self.map.set(unit, DISCARDED);
    }

    fn next_die(&mut self) {
        self.cursor += 1;
        if self.cursor as usize == self.dies.len() {
            self.cursor = 0;
        }
    }

    /// Whether `die` must collect before it takes another unit.
    #[inline]
    pub(super) fn must_collect(&self, die: u32) -> bool {
        let state = &self.dies[die as usize];
        state.filled == self.units_per_block && state.empty.len() < EMPTY_BLOCKS_MIN
    }

    /// Writes `unit` to `die`, as [`Translation::replace`] chose; the page that is full with it.
    pub(super) fn append(&mut self, die: u32, unit: u32) -> Option<u64> {
        let completed = self.put(die, unit);
        if completed.is_some() && self.placement != Placement::Static && die == self.cursor {
            self.next_die();
        }
        completed
    }

    /// Fills up the page that `die` has begun, if it has, so that it can be programmed.
    pub(super) fn complete_page(&mut self, die: u32) -> Option<u64> {
        let (page, partial) = self.open_page(die);
        if !partial {
            return None;
        }
        while self.put(die, NOBODY).is_none() {}
        if self.placement != Placement::Static && die == self.cursor {
            self.next_die();
        }
        Some(page)
    }

    fn put(&mut self, die: u32, unit: u32) -> Option<u64> {
        let state = &mut self.dies[die as usize];
        if state.filled == self.units_per_block {
            state.open = state.empty.pop_front().expect("collection leaves an empty block");
            state.filled = 0;
        }
        let block = (die * self.blocks_per_die + state.open) as usize;
        let place = block as u32 * self.units_per_block + state.filled;
        state.filled += 1;
        let owners = &mut self.owners[block];
        if owners.capacity() == 0 {
            owners.reserve_exact(self.units_per_block as usize);
        }
        owners.push(unit);
        if unit != NOBODY {
            state.live += 1;
            self.live[block] += 1;
            self.map.set(unit, place + FIRST_PLACE);
        }
        if state.filled == self.units_per_block {
            self.keys[block] = self.live[block];
        }
        state
            .filled
            .is_multiple_of(self.units_per_page)
            .then(|| u64::from(place / self.units_per_page))
    }

    /// Empties the closed block of `die` with the fewest live units, the first among equals.
    pub(super) fn collect(&mut self, die: u32) -> Collected {
        let first = (die * self.blocks_per_die) as usize;
        let keys = &self.keys[first..first + self.blocks_per_die as usize];
        let (victim, fewest) = keys
            .iter()
            .enumerate()
            .min_by_key(|(index, key)| (**key, *index))
            .expect("a die has blocks");
        assert!(*fewest < self.units_per_block, "die {die} has nothing dead to collect");
        let block = first + victim;
        self.keys[block] = NOT_CLOSED;
        let mut owners = std::mem::take(&mut self.owners[block]);
        let mut collected = Collected::default();
        let mut page_read = usize::MAX;
        for (offset, &unit) in owners.iter().enumerate() {
            let place = block as u32 * self.units_per_block + offset as u32;
            if unit == NOBODY || self.map.get(unit) != place + FIRST_PLACE {
                continue;
            }
            let page = offset / self.units_per_page as usize;
            collected.pages_read += u32::from(page != page_read);
            page_read = page;
            self.live[block] -= 1;
            self.dies[die as usize].live -= 1;
            collected.units_moved += 1;
            collected.pages_programmed += u32::from(self.put(die, unit).is_some());
        }
        assert!(self.live[block] == 0, "a live unit was left in block {block}");
        owners.clear();
        self.owners[block] = owners;
        self.dies[die as usize].empty.push_back(victim as u32);
        collected
    }

    /// Live units of the drive.
    pub(super) fn live_units(&self) -> u64 {
        self.dies.iter().map(|die| u64::from(die.live)).sum()
    }

    /// Recounts everything that is kept as a count.
    ///
    /// # Panics
    /// If a count or the map is wrong.
    #[cfg(test)]
    pub(super) fn verify(&self, logical_units: u64) {
        let mut live = vec![0_u32; self.live.len()];
        for unit in 0..logical_units as u32 {
            let entry = self.map.get(unit);
            if entry < FIRST_PLACE {
                continue;
            }
            let place = entry - FIRST_PLACE;
            let block = (place / self.units_per_block) as usize;
            let offset = (place % self.units_per_block) as usize;
            assert_eq!(self.owners[block][offset], unit, "the place names its address back");
            live[block] += 1;
        }
        assert_eq!(live, self.live);
        for (number, die) in self.dies.iter().enumerate() {
            let first = number * self.blocks_per_die as usize;
            let blocks = first..first + self.blocks_per_die as usize;
            assert_eq!(die.live, live[blocks.clone()].iter().sum::<u32>());
            assert!(die.live <= self.live_max, "a die took more than it can collect");
            assert!(!die.empty.is_empty(), "a die without an empty block");
            for block in blocks {
                let local = (block - first) as u32;
                let closed = local != die.open && !die.empty.contains(&local)
                    || local == die.open && die.filled == self.units_per_block;
                let key = if closed { live[block] } else { NOT_CLOSED };
                assert_eq!(self.keys[block], key, "key of block {block}");
            }
        }
    }
}
