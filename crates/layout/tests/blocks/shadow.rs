//! A disk that remembers which version of which block lies in each place, and which versions a crash
//! must not lose.
//!
//! It knows a layout only by its transfers and commits. A block that a user wrote gets a new version;
//! that version leaves the memory with the first transfer of new data that names the block, and what
//! moves it later (collection, regrouping, propagation) moves that version. *Committed* is the
//! version that has been sent before the last commit. A layout that is atomic never writes over the
//! last copy of a committed version, not even with a newer one: the write may be interrupted.
//!
//! A batch may be done in any order, so that within it, and between two waits, no place is touched
//! twice unless both only read it, and a copy made there is no copy to rely on.

use std::collections::{BTreeMap, BTreeSet};

use agewell_log::{BlockDevice, Purpose, Transfer};

/// A block and its version.
pub(crate) type Version = (u32, u64);

/// A transfer as it is compared between runs.
pub(crate) type Taken = (Transfer, Vec<u32>);

/// The disk.
#[derive(Debug)]
pub(crate) struct Shadow {
    places: Vec<Option<Version>>,
    /// Places that hold what is no block.
    other: Vec<bool>,
    copies: BTreeMap<Version, u32>,
    /// The version that the user wrote last, that was sent last, that was committed last; 0 if none.
    newest: Vec<u64>,
    sent: Vec<u64>,
    committed: Vec<u64>,
    uncommitted: Vec<u32>,
    versions: u64,
    is_atomic: bool,
    /// All transfers, to be compared.
    pub(crate) taken: Vec<Taken>,
    /// Versions that reads for users have found.
    pub(crate) found: Vec<Version>,
    transfers_left: u64,
    /// Places with dead data that the layout has said are dead.
    pub(crate) discarded: u64,
    together: Together,
}

/// Transfers that are under way at once.
#[derive(Debug, Default)]
struct Together {
    brackets: u32,
    read: BTreeSet<u32>,
    written: BTreeSet<u32>,
    /// Copies that lie in places of `written`.
    copies: BTreeMap<Version, u32>,
    /// Transfers issued in a batch with others so far.
    transfers: u64,
}

impl Together {
    fn settle(&mut self) {
        self.read.clear();
        self.written.clear();
        self.copies.clear();
    }

    fn add(&mut self, transfer: &Transfer) {
        if self.brackets == 0 {
            return;
        }
        self.transfers += u64::from(!(self.read.is_empty() && self.written.is_empty()));
        for place in transfer.slot..transfer.slot + transfer.blocks {
            let is_written = self.written.contains(&place);
            assert!(!is_written, "place {place} is touched together with a write of it");
            if transfer.purpose.writes() {
                let is_read = self.read.contains(&place);
                assert!(!is_read, "place {place} is written together with a read of it");
                self.written.insert(place);
            } else {
                self.read.insert(place);
            }
        }
    }
}

impl Shadow {
    pub(crate) fn new(blocks: u32, is_atomic: bool) -> Self {
        let blocks = blocks as usize;
        Self {
            places: Vec::new(),
            other: Vec::new(),
            copies: BTreeMap::new(),
            newest: vec![0; blocks],
            sent: vec![0; blocks],
            committed: vec![0; blocks],
            uncommitted: Vec::new(),
            versions: 0,
            is_atomic,
            taken: Vec::new(),
            found: Vec::new(),
            transfers_left: 0,
            discarded: 0,
            together: Together::default(),
        }
    }

    /// Between two calls nothing is under way.
    pub(crate) fn check_settled(&self) {
        assert_eq!(self.together.brackets, 0, "a bracket was left open");
    }

    /// Transfers that were issued in a batch with others.
    pub(crate) fn transfers_together(&self) -> u64 {
        self.together.transfers
    }

    /// A call may make this many transfers; more is taken for a loop without end.
    pub(crate) fn allow(&mut self, transfers: u64) {
        self.transfers_left = transfers;
    }

    /// The user is about to write `block`; returns the version before.
    pub(crate) fn writes(&mut self, block: u32) -> u64 {
        self.versions += 1;
        std::mem::replace(&mut self.newest[block as usize], self.versions)
    }

    /// The write of the user was refused.
    pub(crate) fn withdraw(&mut self, block: u32, before: u64) {
        self.newest[block as usize] = before;
    }

    /// The user has deleted `block`.
    pub(crate) fn deleted(&mut self, block: u32) {
        let block = block as usize;
        (self.newest[block], self.sent[block], self.committed[block]) = (0, 0, 0);
    }

    /// `block` was there before the first request, in `units` places from `place` on.
    pub(crate) fn laid_out(&mut self, block: u32, place: u32, units: u32) {
        self.writes(block);
        let number = self.newest[block as usize];
        (self.sent[block as usize], self.committed[block as usize]) = (number, number);
        for place in place..place + units {
            assert!(self.at(place).is_none(), "place {place} is laid out twice");
            self.put(place, Some((block, number)));
        }
    }

    pub(crate) fn exists(&self, block: u32) -> bool {
        self.newest[block as usize] > 0
    }

    /// The version of `block` that a read must find.
    pub(crate) fn newest(&self, block: u32) -> Version {
        (block, self.newest[block as usize])
    }

    pub(crate) fn live_blocks(&self) -> u64 {
        self.newest.iter().filter(|number| **number > 0).count() as u64
    }

    pub(crate) fn at(&self, place: u32) -> Option<Version> {
        self.places.get(place as usize).copied().flatten()
    }

    /// The same as [`Self::check_crash`], for layouts that promise it.
    pub(crate) fn check_crash_if(&self, is_atomic: bool) {
        if is_atomic {
            self.check_crash();
        }
    }

    /// Whether a disk that crashed now has every committed version somewhere.
    fn check_crash(&self) {
        for (block, number) in (0..).zip(&self.committed) {
            let version = (block, *number);
            assert!(*number == 0 || self.copies.contains_key(&version), "{version:?} is lost");
        }
    }

    fn grow(&mut self, places: u32) {
        if places as usize > self.places.len() {
            self.places.resize(places as usize, None);
            self.other.resize(places as usize, false);
        }
    }

    fn put(&mut self, place: u32, version: Option<Version>) {
        self.grow(place + 1);
        let old = std::mem::replace(&mut self.places[place as usize], version);
        if let Some(version) = version {
            *self.copies.entry(version).or_default() += 1;
            if self.together.brackets > 0 {
                *self.together.copies.entry(version).or_default() += 1;
            }
        }
        if let Some(old) = old {
            let left = self.copies.get_mut(&old).expect("what lies there is counted");
            *left -= 1;
            if *left == 0 {
                self.copies.remove(&old);
            }
            // Where a block has several units the others go in the same transfer.
            let is_committed = self.committed[old.0 as usize] == old.1;
            let left = self.copies.get(&old).copied().unwrap_or(0);
            let is_lost = left == self.together.copies.get(&old).copied().unwrap_or(0);
            assert!(
                !(self.is_atomic && is_committed && is_lost && version != Some(old)),
                "the last copy of {old:?}, which is committed, is written over at {place}"
            );
        }
        self.other[place as usize] = version.is_none();
    }

    fn write(&mut self, transfer: &Transfer, contents: &[u32]) {
        let Transfer { purpose, slot, blocks, .. } = *transfer;
        if purpose == Purpose::RecoveryWrite {
            // What would be done after a crash; there has been none.
            return;
        }
        if contents.is_empty() {
            assert!(!carries_data(purpose), "{purpose:?} without contents");
            (slot..slot + blocks).for_each(|place| self.put(place, None));
            return;
        }
        assert_eq!(contents.len(), blocks as usize, "one block a place");
        for (place, block) in (slot..).zip(contents) {
            if *block == u32::MAX {
                self.put(place, None);
                continue;
            }
            let index = *block as usize;
            if matches!(purpose, Purpose::NewData | Purpose::Thread | Purpose::Journal) {
                self.sent[index] = self.newest[index];
            }
            let number = self.sent[index];
            assert!(number > 0, "{purpose:?} writes block {block}, which does not exist");
            self.put(place, Some((*block, number)));
            self.uncommitted.push(*block);
        }
    }
}

/// Whether transfers of `purpose` always say which blocks they move.
fn carries_data(purpose: Purpose) -> bool {
    !matches!(
        purpose,
        Purpose::HeaderWrite
            | Purpose::MetadataWrite
            | Purpose::Journal
            | Purpose::Propagate
            | Purpose::RecoveryWrite
    )
}

impl BlockDevice for Shadow {
    fn transfer(&mut self, transfer: &Transfer, contents: &[u32]) {
        assert!(self.transfers_left > 0, "no end of transfers");
        self.transfers_left -= 1;
        assert!(transfer.blocks > 0, "a transfer of nothing: {transfer:?}");
        self.taken.push((*transfer, contents.to_vec()));
        // Transfers of a recovery are not carried out.
        if !matches!(transfer.purpose, Purpose::RecoveryRead | Purpose::RecoveryWrite) {
            self.together.add(transfer);
        }
        if transfer.purpose.writes() {
            self.write(transfer, contents);
            return;
        }
        assert!(contents.is_empty(), "a read has no contents");
        let is_of_data =
            matches!(transfer.purpose, Purpose::Read | Purpose::Prefetch | Purpose::RegroupRead);
        if is_of_data {
            for place in transfer.slot..transfer.slot + transfer.blocks {
                let found = self.at(place);
                assert!(found.is_some(), "place {place} is read and was never written");
                if transfer.purpose == Purpose::Read {
                    self.found.extend(found);
                }
            }
        }
    }

    fn discard(&mut self, slot: u32, blocks: u32) {
        assert!(blocks > 0, "nothing is discarded");
        self.together.settle();
        self.grow(slot + blocks);
        for place in slot..slot + blocks {
            let Some(version) = self.places[place as usize].take() else { continue };
            self.discarded += 1;
            let left = self.copies.get_mut(&version).expect("what lies there is counted");
            *left -= 1;
            if *left > 0 {
                continue;
            }
            self.copies.remove(&version);
            let (block, number) = (version.0 as usize, version.1);
            // In a layout in place a newer version may wait to come to another place.
            let is_needed = if self.is_atomic {
                self.committed[block] == number
            } else {
                self.newest[block] == number
            };
            assert!(!is_needed, "{version:?} is discarded at {place}");
        }
    }

    fn begin_batch(&mut self) {
        self.together.brackets += 1;
    }

    fn end_batch(&mut self) {
        assert!(self.together.brackets > 0, "a bracket is closed that is not open");
        self.together.brackets -= 1;
        if self.together.brackets == 0 {
            self.together.settle();
        }
    }

    fn wait(&mut self) {
        self.together.settle();
    }

    fn commit(&mut self) {
        self.together.settle();
        for block in std::mem::take(&mut self.uncommitted) {
            self.committed[block as usize] = self.sent[block as usize];
        }
    }
}
