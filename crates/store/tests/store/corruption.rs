//! Damage to an image at rest: it is found and named, all else is read, nothing is wrong.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use agewell_core::mix;
use agewell_store::StoreError;
use agewell_store::device::{Disk, MemoryDisk, Piece};
use agewell_testkit::caught;
use rayon::prelude::*;

use super::explorer::prepare;
use super::load::{AnyStore, Driver, Load, Step, Versions, open_store, read_version, write};

/// An image at rest, and what may be found there.
pub(crate) struct AtRest {
    load: Load,
    image: Vec<u8>,
    /// Whether it was closed: then nothing but damaged data may be missing.
    is_closed: bool,
    /// What the blocks held before the last transactions, and those.
    before: Versions,
    since: Vec<Step>,
}

impl AtRest {
    fn load(seed: u64) -> Load {
        let device_bytes = 512 * 270;
        Load {
            block_bytes: 512,
            segment_blocks: [8, 16][(seed % 2) as usize],
            device_bytes,
            blocks_max: 5,
            full: 0.9,
            ..Load::tiny(seed)
        }
    }

    /// A small store that was closed.
    pub(crate) fn closed(seed: u64) -> Self {
        let load = Self::load(seed);
        let (prepared, _) = prepare(&load);
        let (image, before) = (prepared.image, prepared.versions);
        Self { load, image, is_closed: true, before, since: Vec::new() }
    }

    /// A small store that was in use, and synced after each transaction.
    pub(crate) fn crashed(seed: u64) -> Self {
        let load = Load { sync_every: 1, ..Self::load(seed) };
        let (prepared, steps) = prepare(&load);
        let disk = MemoryDisk::from_image(&prepared.image);
        let store = open_store(&disk, &load.open_options()).unwrap();
        let mut before = prepared.versions;
        let steps = &steps[..30];
        for step in steps {
            write(&store, &step.changes).unwrap();
            store.sync().unwrap();
        }
        drop(store);
        let (early, since) = steps.split_at(steps.len() - 20);
        for step in early {
            step.apply(&mut before);
        }
        Self { load, image: disk.image(), is_closed: false, before, since: since.to_vec() }
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.image.len() as u64 / u64::from(self.load.block_bytes)
    }

    /// Whether `damage` to `block` hits two copies of something, or what says where it is and it itself.
    fn hits_twice(&self, block: u64, damage: Damage) -> bool {
        // `segments_start` of the superblock.
        let start = u64::from_le_bytes(self.image[112..120].try_into().expect("eight bytes"));
        matches!(damage, Damage::Swap(other) if block < start && other < start)
    }

    fn is_record(&self, block: u64) -> bool {
        let at = block as usize * self.load.block_bytes as usize;
        [b"AWIN", b"AWRR"].iter().any(|magic| self.image[at..at + 4] == **magic)
    }

    /// Whether `damage` to `block` takes two records: the format promises that the loss of one is seen.
    fn takes_two_records(&self, block: u64, damage: Damage) -> bool {
        matches!(damage, Damage::Swap(other) if self.is_record(block) && self.is_record(other))
    }

    /// How many of the last transactions behind the first `done` change anything.
    fn changes_since(&self, done: usize) -> usize {
        let mut versions = self.before.clone();
        let changes = self.since.iter().map(|step| {
            let before = versions.clone();
            step.apply(&mut versions);
            versions != before
        });
        let changes: Vec<bool> = changes.collect();
        changes[done..].iter().filter(|changes| **changes).count()
    }

    /// How many of the last transactions there are, the most that it may be, and the versions after them.
    fn prefix(&self, there: &[(u32, u64)]) -> Result<(usize, Versions), String> {
        let mut versions = self.before.clone();
        let mut found = Err("no prefix is there".to_owned());
        for done in 0..=self.since.len() {
            if done > 0 {
                self.since[done - 1].apply(&mut versions);
            }
            if there.iter().all(|(block, version)| versions[*block as usize] == *version) {
                found = Ok((done, versions.clone()));
            }
        }
        found
    }
}

/// What happens to a block.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Damage {
    /// That bit is another.
    Flip(u64),
    Zeros,
    /// It lies where that other block was, and that one here.
    Swap(u64),
}

/// An image of which blocks have been replaced.
struct Altered<'a> {
    image: &'a [u8],
    block_bytes: usize,
    blocks: Mutex<BTreeMap<usize, Box<[u8]>>>,
}

impl Disk for Altered<'_> {
    fn size_bytes(&self) -> u64 {
        self.image.len() as u64
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let (first, end) = (offset as usize, offset as usize + into.len());
        let below = self.image.get(first..end).ok_or(io::ErrorKind::InvalidInput)?;
        into.copy_from_slice(below);
        let blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, bytes) in blocks.range(first / self.block_bytes..end.div_ceil(self.block_bytes)) {
            let at = at * self.block_bytes - first;
            into[at..at + self.block_bytes].copy_from_slice(bytes);
        }
        Ok(())
    }

    fn write(&self, pieces: &[Piece<'_>]) -> io::Result<()> {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in pieces {
            let first = piece.offset as usize / self.block_bytes;
            for (at, bytes) in (first..).zip(piece.data.chunks_exact(self.block_bytes)) {
                blocks.insert(at, bytes.into());
            }
        }
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

/// What came of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Found {
    pub(crate) injections: u64,
    /// Stores that were not opened.
    pub(crate) refused: u64,
    /// Blocks that were said to be damaged.
    pub(crate) damaged: u64,
    /// Where no record says that the last transactions were flushed, and they are gone.
    pub(crate) unfinished: u64,
}

impl Found {
    fn and(self, other: Self) -> Self {
        Self {
            injections: self.injections + other.injections,
            refused: self.refused + other.refused,
            damaged: self.damaged + other.damaged,
            unfinished: self.unfinished + other.unfinished,
        }
    }
}

fn inject(at_rest: &AtRest, block: u64, damage: Damage) -> Result<Found, String> {
    let block_bytes = at_rest.load.block_bytes as usize;
    let old = |block: u64| -> Box<[u8]> {
        at_rest.image[block as usize * block_bytes..][..block_bytes].into()
    };
    let mut bytes = old(block);
    let mut blocks = BTreeMap::new();
    match damage {
        Damage::Flip(bit) => bytes[(bit / 8) as usize] ^= 1 << (bit % 8),
        Damage::Zeros => bytes.fill(0),
        Damage::Swap(other) => {
            blocks.insert(other as usize, old(block));
            bytes = old(other);
        }
    }
    blocks.insert(block as usize, bytes);
    let disk = Altered { image: &at_rest.image, block_bytes, blocks: Mutex::new(blocks) };
    let mut found = Found { injections: 1, ..Found::default() };
    let mut store = match open_store(&disk, &at_rest.load.open_options()) {
        Ok(store) => store,
        Err(StoreError::Format { .. })
            if !at_rest.is_closed || at_rest.hits_twice(block, damage) =>
        {
            found.refused = 1;
            return Ok(found);
        }
        Err(error) => return Err(format!("is refused: {error}")),
    };
    // Blocks that are damaged; and of one transaction, the last that was synced, nothing behind it says so.
    let most = if matches!(damage, Damage::Swap(_)) { 2 } else { 1 };
    let made_good = store.opened().made_good > 0;
    if made_good {
        drop(store);
        let again = open_store(&disk, &at_rest.load.open_options());
        store = again.map_err(|error| format!("is refused the second time: {error}"))?;
        if store.opened().made_good > 0 {
            return Err("what a copy has made good is not good the second time".to_owned());
        }
    }
    let mut versions = at_rest.before.clone();
    at_rest.since.iter().for_each(|step| step.apply(&mut versions));
    let (mut there, mut damaged) = (Vec::new(), Vec::new());
    let mut is_older = false;
    for block in 0..versions.len() as u32 {
        match read_version(&store, block) {
            Ok(version) => {
                is_older |= version != versions[block as usize];
                there.push((block, version));
            }
            Err(what) if what.contains("never written") => return Err(what),
            Err(_) => damaged.push(block),
        }
    }
    if is_older {
        // Then it is as if the last had never been; where they have written over what was dead, that is
        // damaged.
        found.unfinished = 1;
        let (done, older) = at_rest.prefix(&there)?;
        versions = older;
        let gone = at_rest.changes_since(done);
        if gone > most && !at_rest.takes_two_records(block, damage) {
            return Err(format!("the last {gone} transactions are gone, and nothing says so"));
        }
    }
    if damaged.len() > most && !is_older {
        return Err(format!("blocks {damaged:?} are damaged"));
    }
    found.damaged = damaged.len() as u64;
    let draw = mix(block ^ damaged.len() as u64);
    if !damaged.is_empty() && draw.is_multiple_of(2) || draw.is_multiple_of(16) || made_good {
        goes_on(at_rest, (store, &disk), versions, &damaged, draw)?;
    } else if draw.is_multiple_of(31) {
        store.sync().map_err(|error| format!("does not sync: {error}"))?;
    }
    Ok(found)
}

/// The store goes on, moves what is damaged, is closed or left, and is opened again: what was damaged still
/// is, or was written.
fn goes_on(
    at_rest: &AtRest,
    (store, disk): (AnyStore<'_>, &Altered<'_>),
    mut versions: Versions,
    damaged: &[u32],
    draw: u64,
) -> Result<(), String> {
    let load = Load { seed: draw, ..at_rest.load.clone() };
    let mut driver = Driver::new(&load, versions.len() as u32);
    let mut may_be_damaged = damaged.to_vec();
    // Few, as the ring still has what was there before then; or enough that segments are used again.
    let steps = [40, 4, 8, 16][(draw >> 11 & 3) as usize];
    for _ in 0..steps {
        let mut step = driver.step(&load);
        step.changes
            .iter_mut()
            .filter(|change| change.1 > 0)
            .for_each(|change| change.1 += 1 << 33);
        write(&store, &step.changes).map_err(|error| format!("goes not on: {error}"))?;
        step.apply(&mut versions);
        may_be_damaged.retain(|block| step.changes.iter().all(|change| change.0 != *block));
    }
    if draw & 1024 == 0 {
        store.close().map_err(|error| format!("does not close: {error}"))?;
    } else {
        store.sync().map_err(|error| format!("does not sync: {error}"))?;
        drop(store);
    }
    let store = open_store(disk, &load.open_options())
        .map_err(|error| format!("does not open again: {error}"))?;
    store.verify();
    for (block, expected) in (0..).zip(&versions) {
        match read_version(&store, block) {
            Ok(version) if version == *expected && !may_be_damaged.contains(&block) => {}
            Err(_) if may_be_damaged.contains(&block) => {}
            other => return Err(format!("goes on: block {block} is {other:?}, not {expected}")),
        }
    }
    Ok(())
}

/// Damages every block of `at_rest` in turn: each with `flips` single bits, as zeros, and in the place of
/// `swaps` others.
pub(crate) fn damage_every_block(
    at_rest: &AtRest,
    flips: u64,
    swaps: u64,
) -> Result<Found, String> {
    let blocks = at_rest.blocks();
    let found: Vec<_> = (0..blocks)
        .into_par_iter()
        .map(|block| {
            let bits = u64::from(at_rest.load.block_bytes) * 8;
            let step = bits / flips.max(1);
            let flips =
                (0..flips).map(|number| Damage::Flip(number * step + mix(block ^ number) % step));
            let swaps = (0..swaps).map(|number| {
                Damage::Swap(
                    (block + 1 + (mix(block) + number * (blocks / swaps.max(1))) % (blocks - 1))
                        % blocks,
                )
            });
            let mut sum = Found::default();
            for damage in flips.chain([Damage::Zeros]).chain(swaps) {
                let found = caught(|| inject(at_rest, block, damage));
                sum = sum.and(found.map_err(|what| {
                    let closed = if at_rest.is_closed { "closed" } else { "crashed" };
                    format!(
                        "{closed} store of seed {}, block {block}, {damage:?}: {what}",
                        at_rest.load.seed
                    )
                })?);
            }
            Ok(sum)
        })
        .collect();
    found
        .into_iter()
        .try_fold(Found::default(), |sum, found: Result<_, String>| Ok(sum.and(found?)))
}

/// Records of `at_rest` in each other's places, pair by pair.
pub(crate) fn swap_records(at_rest: &AtRest) -> Result<Found, String> {
    let records: Vec<u64> =
        (0..at_rest.blocks()).filter(|block| at_rest.is_record(*block)).collect();
    let pairs = records.iter().flat_map(|one| records.iter().map(move |other| (*one, *other)));
    let pairs: Vec<_> = pairs.filter(|(one, other)| one < other).collect();
    let found: Vec<_> = pairs
        .into_par_iter()
        .map(|(one, other)| {
            let found = caught(|| inject(at_rest, one, Damage::Swap(other)));
            found.map_err(|what| format!("records {one} and {other} swapped: {what}"))
        })
        .collect();
    found.into_iter().try_fold(Found::default(), |sum, found| Ok(sum.and(found?)))
}
