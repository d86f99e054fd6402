//! The states of an epoch: which there are, which are the same, and each as a disk.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use agewell_core::mix;
use twox_hash::XxHash3_64;

use super::super::{Disk, Piece, check_pieces, check_range};
use super::image::{Image, Source, garbage};
use super::overlay::{Overlay, Skip};
use super::recording::{Epoch, Item};
use super::scenario::{Scenario, Scenarios};
use super::{Discarded, SECTOR_BYTES};

/// Sectors of a piece as a state has them.
#[derive(Debug, Clone, Copy)]
struct Part {
    item: u32,
    first_sector: u64,
    is_garbage: bool,
}

impl Skip for Part {
    fn skip(&self, bytes: u64) -> Self {
        Self { first_sector: self.first_sector + bytes / SECTOR_BYTES, ..*self }
    }
}

/// What the sectors of each piece add to a state's fingerprint, added up from the first on: as they
/// were written (zeros, of a discard), and as garbage. A sector that is as it was adds nothing.
#[derive(Debug)]
struct Sums {
    new: Vec<Vec<u64>>,
    garbage: Vec<Vec<u64>>,
}

/// What a sector with these bytes adds.
fn share(sector: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes) ^ mix(sector)
}

impl Sums {
    fn new(epoch: &Epoch, base: &Image) -> Self {
        const ZEROS: [u8; SECTOR_BYTES as usize] = [0; SECTOR_BYTES as usize];
        let mut before = [0; SECTOR_BYTES as usize];
        let mut sums = Self { new: Vec::new(), garbage: Vec::new() };
        for item in &epoch.items {
            let sectors = item.bytes() / SECTOR_BYTES;
            let (mut new_sum, mut garbage_sum) = (0_u64, 0_u64);
            let mut new = Vec::with_capacity(sectors as usize + 1);
            let mut trash = Vec::with_capacity(sectors as usize + 1);
            for number in 0..sectors {
                new.push(new_sum);
                trash.push(garbage_sum);
                let offset = item.offset() + number * SECTOR_BYTES;
                base.read(offset, &mut before);
                let add = |sum: &mut u64, bytes: &[u8]| {
                    if bytes != before {
                        *sum = sum.wrapping_add(mix(share(offset / SECTOR_BYTES, bytes)));
                    }
                };
                let written = match item {
                    Item::Write { data, .. } => {
                        &data[(number * SECTOR_BYTES) as usize..][..SECTOR_BYTES as usize]
                    }
                    Item::Discard { .. } => &ZEROS,
                };
                add(&mut new_sum, written);
                let within = offset as usize % garbage().len();
                add(&mut garbage_sum, &garbage()[within..within + SECTOR_BYTES as usize]);
            }
            new.push(new_sum);
            trash.push(garbage_sum);
            sums.new.push(new);
            sums.garbage.push(trash);
        }
        sums
    }

    fn of(&self, part: Part, sectors: u64) -> u64 {
        let sums = if part.is_garbage { &self.garbage } else { &self.new };
        let sums = &sums[part.item as usize];
        let (from, to) = (part.first_sector as usize, (part.first_sector + sectors) as usize);
        sums[to].wrapping_sub(sums[from])
    }
}

/// The states in which a loss of power in one epoch may leave a disk, numbered from 0. The same number
/// of the same epoch is always the same state.
#[derive(Debug)]
pub struct CrashStates {
    epoch: Arc<Epoch>,
    scenarios: Scenarios,
    /// For each way in which discarded sectors may read, once it is asked for.
    sums: [OnceLock<Sums>; Discarded::ALL.len()],
}

impl CrashStates {
    pub(super) fn new(epoch: Arc<Epoch>, seed: u64, number: usize) -> Self {
        let scenarios = Scenarios::new(&epoch, seed, number);
        Self { epoch, scenarios, sums: [const { OnceLock::new() }; Discarded::ALL.len()] }
    }

    /// How many there are, some of them the same.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "nothing written is a state too")]
    pub fn len(&self) -> u64 {
        self.scenarios.len()
    }

    /// State `number`.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn state(&self, number: u64) -> CrashState {
        let scenario = self.scenarios.get(number);
        let parts = self.parts(&scenario);
        self.state_of(scenario.discarded, &parts)
    }

    /// What was lost in state `number`, for people.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn describe(&self, number: u64) -> String {
        self.scenarios.get(number).to_string()
    }

    /// Bytes that were written in the epoch and did not arrive in state `number`.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn missing_bytes(&self, number: u64) -> u64 {
        let written = self.epoch.items.iter().filter(|item| item.is_write()).map(Item::bytes);
        let (mut arrived, mut garbage) = (0, 0);
        self.scenarios.get(number).each(&self.epoch.items, |item, sectors, is_garbage| {
            let bytes = (sectors.end - sectors.start) * SECTOR_BYTES;
            if self.epoch.items[item].is_write() {
                *(if is_garbage { &mut garbage } else { &mut arrived }) += bytes;
            }
        });
        (written.sum::<u64>() + garbage).saturating_sub(arrived)
    }

    /// A number that states of this epoch have in common if their bytes are the same, and, but for one in
    /// 2^64, only then.
    ///
    /// # Panics
    /// If there are fewer states.
    #[must_use]
    pub fn fingerprint(&self, number: u64) -> u64 {
        let scenario = self.scenarios.get(number);
        self.fingerprint_of(scenario.discarded, &self.parts(&scenario))
    }

    /// The states in order, without those that are the same as one before: number and state.
    pub fn distinct(&self) -> impl Iterator<Item = (u64, CrashState)> + '_ {
        let mut seen = HashSet::new();
        (0..self.len()).filter_map(move |number| {
            let scenario = self.scenarios.get(number);
            let parts = self.parts(&scenario);
            let is_new = seen.insert(self.fingerprint_of(scenario.discarded, &parts));
            is_new.then(|| (number, self.state_of(scenario.discarded, &parts)))
        })
    }

    /// The image below states whose discarded sectors read in that way; its number among those that
    /// differ.
    fn base(&self, discarded: Discarded) -> (usize, &Image) {
        let number = (discarded as usize).min(self.epoch.bases.len() - 1);
        (number, &self.epoch.bases[number])
    }

    fn parts(&self, scenario: &Scenario) -> Overlay<Part> {
        let items = &self.epoch.items;
        let mut parts = Overlay::with_capacity(items.len());
        scenario.each(items, |item, sectors, is_garbage| {
            let is_garbage = match (&items[item], scenario.discarded) {
                (Item::Write { .. }, _) => is_garbage,
                (Item::Discard { .. }, Discarded::Untouched) => return,
                (Item::Discard { .. }, discarded) => discarded == Discarded::Garbage,
            };
            let offset = items[item].offset();
            let part = Part { item: item as u32, first_sector: sectors.start, is_garbage };
            let [start, end] =
                [sectors.start, sectors.end].map(|sector| offset + sector * SECTOR_BYTES);
            parts.insert(start, end, part);
        });
        parts
    }

    fn fingerprint_of(&self, discarded: Discarded, parts: &Overlay<Part>) -> u64 {
        let (number, base) = self.base(discarded);
        let sums = self.sums[number].get_or_init(|| Sums::new(&self.epoch, base));
        let extents = parts.extents().iter();
        extents.fold(number as u64, |sum, extent| {
            let sectors = (extent.end - extent.start) / SECTOR_BYTES;
            sum.wrapping_add(sums.of(extent.source, sectors))
        })
    }

    fn state_of(&self, discarded: Discarded, parts: &Overlay<Part>) -> CrashState {
        let mut overlay = Overlay::with_capacity(parts.extents().len() + 8);
        for extent in parts.extents() {
            let Part { item, first_sector, is_garbage } = extent.source;
            let source = match &self.epoch.items[item as usize] {
                _ if is_garbage => Source::Garbage,
                Item::Write { data, .. } => {
                    Source::Bytes(Arc::clone(data), (first_sector * SECTOR_BYTES) as usize)
                }
                Item::Discard { .. } => Source::Zeros,
            };
            overlay.insert(extent.start, extent.end, source);
        }
        let base = self.base(discarded).0;
        CrashState {
            epoch: Arc::clone(&self.epoch),
            base,
            discarded,
            overlay: RwLock::new(overlay),
        }
    }
}

/// What a loss of power has left, as a disk: it can be read, written and flushed, and what it was made
/// of stays as it was.
///
/// To crash again, what is written must be recorded: [`super::CrashDisk::over`].
#[derive(Debug)]
pub struct CrashState {
    epoch: Arc<Epoch>,
    /// Which of the epoch's images lies below.
    base: usize,
    discarded: Discarded,
    overlay: RwLock<Overlay<Source>>,
}

impl CrashState {
    fn image(&self) -> &Image {
        &self.epoch.bases[self.base]
    }

    pub(super) fn to_image(&self) -> Image {
        let mut image = self.image().clone();
        let overlay = self.overlay.read().unwrap_or_else(PoisonError::into_inner);
        for extent in overlay.extents() {
            image.enter(extent.start, extent.end - extent.start, &extent.source);
        }
        image
    }

    fn insert(&self, offset: u64, bytes: u64, source: Source) {
        let mut overlay = self.overlay.write().unwrap_or_else(PoisonError::into_inner);
        overlay.insert(offset, offset + bytes, source);
    }
}

impl Disk for CrashState {
    fn size_bytes(&self) -> u64 {
        self.image().size_bytes()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        check_range(self.size_bytes(), offset, into.len() as u64)?;
        let overlay = self.overlay.read().unwrap_or_else(PoisonError::into_inner);
        overlay.read(offset, into, |at, part| self.image().read(at, part));
        Ok(())
    }

    fn write(&self, pieces: &[Piece<'_>]) -> io::Result<()> {
        check_pieces(self.size_bytes(), pieces)?;
        for piece in pieces {
            let source = Source::Bytes(piece.data.into(), 0);
            self.insert(piece.offset, piece.data.len() as u64, source);
        }
        Ok(())
    }

    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        check_range(self.size_bytes(), offset, bytes)?;
        if let Some(source) = self.discarded.source() {
            self.insert(offset, bytes, source);
        }
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}
