//! From a block number to the slot that holds it.
//!
//! Two forms that answer alike. *Dense*: an array with one slot number a key; one read a look-up, 4
//! bytes a key whatever the cache holds. *Hashed*: open addressing in a power-of-two table with
//! linear probing, at most half full; 16 to 32 bytes an entry whatever the bound of the keys. The
//! hash multiplies by 2^64 over the golden ratio and keeps the top bits (Knuth 1998, section 6.4),
//! which spreads runs of neighbouring block numbers evenly; it has no seed, so it is the same in
//! every run.
//!
//! Invariants: in a hashed index no empty entry lies between an entry's home and its place, since a
//! removal moves later entries back instead of leaving a mark (Knuth 1998, section 6.4, algorithm
//! R); the table is at most half full.
//!
//! Cost: a look-up touches one line of memory (dense), or one to two (hashed), plus a
//! multiplication.

/// The slot of a key that has none. No slot has this number, because sentinels come first.
const ABSENT: u32 = 0;

/// Bytes that a dense index may take for each byte of a full hashed one before the hashed one is
/// preferred: a dense look-up is the shorter one. Chosen by us.
const DENSE_TO_HASHED_BYTES_MAX: usize = 2;

/// Bytes an entry of a full hashed index takes at worst: 8, just after doubling at half full.
const HASHED_ENTRY_BYTES_MAX: usize = 8 * 4;

const DENSE_KEY_BYTES: usize = 4;

/// 2^64 divided by the golden ratio, made odd (Knuth 1998, section 6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Length of a new hashed table. Chosen by us: small, as there may be a cache for every client.
const HASHED_LENGTH_MIN: usize = 16;

/// How a cache finds its blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexKind {
    /// An array over all keys.
    Dense,
    /// A hash table of the blocks that are held or remembered.
    Hashed,
}

impl IndexKind {
    /// The form for a cache that knows up to `entries_max` blocks (resident and remembered) out of
    /// `keys`: hashed where a dense one would take more than twice the memory of a full hashed one,
    /// that is for more than 16 keys an entry.
    #[must_use]
    pub fn suited(entries_max: usize, keys: usize) -> Self {
        let hashed_bytes = entries_max.saturating_mul(HASHED_ENTRY_BYTES_MAX);
        let dense_bytes = keys.saturating_mul(DENSE_KEY_BYTES);
        if dense_bytes > hashed_bytes.saturating_mul(DENSE_TO_HASHED_BYTES_MAX) {
            IndexKind::Hashed
        } else {
            IndexKind::Dense
        }
    }
}

/// Slot numbers by key, in one of the two forms.
#[derive(Debug, Clone)]
pub(super) enum KeyIndex {
    Dense(Vec<u32>),
    Hashed(Hashed),
}

impl KeyIndex {
    /// An empty index for keys below `keys`.
    pub(super) fn new(kind: IndexKind, keys: usize) -> Self {
        match kind {
            IndexKind::Dense => KeyIndex::Dense(vec![ABSENT; keys]),
            IndexKind::Hashed => KeyIndex::Hashed(Hashed::new()),
        }
    }

    pub(super) fn kind(&self) -> IndexKind {
        match self {
            KeyIndex::Dense(_) => IndexKind::Dense,
            KeyIndex::Hashed(_) => IndexKind::Hashed,
        }
    }

    /// Raises the bound of keys; `keys` is not below it.
    pub(super) fn ensure_keys(&mut self, keys: usize) {
        if let KeyIndex::Dense(slots) = self {
            slots.resize(keys, ABSENT);
        }
    }

    /// The same entries, hashed.
    pub(super) fn into_hashed(self) -> Self {
        let KeyIndex::Dense(slots) = self else { return self };
        let mut hashed = Hashed::new();
        for (key, slot) in slots.into_iter().enumerate() {
            if slot != ABSENT {
                hashed.insert(u32::try_from(key).expect("the bound of keys is a u32"), slot);
            }
        }
        KeyIndex::Hashed(hashed)
    }

    /// The slot of `key`.
    #[inline]
    pub(super) fn get(&self, key: u32) -> Option<u32> {
        let slot = self.slot_or_first(key);
        (slot != ABSENT).then_some(slot)
    }

    /// The same, the first slot of all for a key that has none.
    #[inline]
    pub(super) fn slot_or_first(&self, key: u32) -> u32 {
        match self {
            KeyIndex::Dense(slots) => slots[key as usize],
            KeyIndex::Hashed(hashed) => hashed.get(key),
        }
    }

    /// The same for many keys, some of which may be above the bound.
    pub(super) fn slots_or_first(&self, keys: &[u32], found: &mut [u32]) {
        match self {
            KeyIndex::Dense(slots) => {
                for (key, found) in keys.iter().zip(found) {
                    *found = slots.get(*key as usize).copied().unwrap_or(ABSENT);
                }
            }
            KeyIndex::Hashed(hashed) => {
                for (key, found) in keys.iter().zip(found) {
                    *found = hashed.get(*key);
                }
            }
        }
    }

    /// Notes that `key`, which has no slot, is in `slot`.
    #[inline]
    pub(super) fn insert(&mut self, key: u32, slot: u32) {
        assert!(slot != ABSENT, "block {key} goes to a slot");
        match self {
            KeyIndex::Dense(slots) => {
                let entry = &mut slots[key as usize];
                assert!(*entry == ABSENT, "block {key} had no slot");
                *entry = slot;
            }
            KeyIndex::Hashed(hashed) => hashed.insert(key, slot),
        }
    }

    /// Forgets `key`, which has a slot.
    #[inline]
    pub(super) fn remove(&mut self, key: u32) {
        match self {
            KeyIndex::Dense(slots) => slots[key as usize] = ABSENT,
            KeyIndex::Hashed(hashed) => hashed.remove(key),
        }
    }

    /// Checks the invariants of the module and returns the number of entries.
    pub(super) fn verify(&self) -> usize {
        match self {
            KeyIndex::Dense(slots) => slots.iter().filter(|slot| **slot != ABSENT).count(),
            KeyIndex::Hashed(hashed) => hashed.verify(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    key: u32,
    slot: u32,
}

const EMPTY: Entry = Entry { key: 0, slot: ABSENT };

/// The table of a hashed index.
#[derive(Debug, Clone)]
pub(super) struct Hashed {
    /// A power of two of them.
    entries: Vec<Entry>,
    length: usize,
}

impl Hashed {
    fn new() -> Self {
        Self { entries: vec![EMPTY; HASHED_LENGTH_MIN], length: 0 }
    }

    #[inline]
    fn mask(&self) -> usize {
        self.entries.len() - 1
    }

    /// Where the search for `key` begins.
    #[inline]
    fn home(&self, key: u32) -> usize {
        let bits = self.entries.len().trailing_zeros();
        (u64::from(key).wrapping_mul(GOLDEN) >> (u64::BITS - bits)) as usize
    }

    /// The place of `key`, or of the empty entry that ends its search.
    #[inline]
    fn place(&self, key: u32) -> usize {
        let mut place = self.home(key);
        loop {
            let entry = self.entries[place];
            if entry.slot == ABSENT || entry.key == key {
                return place;
            }
            place = (place + 1) & self.mask();
        }
    }

    #[inline]
    fn get(&self, key: u32) -> u32 {
        self.entries[self.place(key)].slot
    }

    #[inline]
    fn insert(&mut self, key: u32, slot: u32) {
        if 2 * (self.length + 1) > self.entries.len() {
            self.double();
        }
        let place = self.place(key);
        assert!(self.entries[place].slot == ABSENT, "block {key} had no slot");
        self.entries[place] = Entry { key, slot };
        self.length += 1;
    }

    #[cold]
    fn double(&mut self) {
        let doubled = vec![EMPTY; 2 * self.entries.len()];
        for entry in std::mem::replace(&mut self.entries, doubled) {
            if entry.slot != ABSENT {
                let place = self.place(entry.key);
                self.entries[place] = entry;
            }
        }
    }

    #[inline]
    fn remove(&mut self, key: u32) {
        let mut hole = self.place(key);
        assert!(self.entries[hole].slot != ABSENT, "block {key} had a slot");
        let mask = self.mask();
        let mut place = hole;
        loop {
            place = (place + 1) & mask;
            let entry = self.entries[place];
            if entry.slot == ABSENT {
                break;
            }
            // An entry may fill the hole unless its home lies behind the hole.
            let from_home = place.wrapping_sub(self.home(entry.key)) & mask;
            let from_hole = place.wrapping_sub(hole) & mask;
            if from_home >= from_hole {
                self.entries[hole] = entry;
                hole = place;
            }
        }
        self.entries[hole] = EMPTY;
        self.length -= 1;
    }

    fn verify(&self) -> usize {
        assert!(self.entries.len().is_power_of_two());
        assert!(2 * self.length <= self.entries.len(), "at most half full");
        let mut entries = 0;
        for (place, entry) in self.entries.iter().enumerate() {
            if entry.slot != ABSENT {
                entries += 1;
                assert_eq!(self.place(entry.key), place, "block {} is found", entry.key);
            }
        }
        assert_eq!(entries, self.length, "as many entries as were counted");
        entries
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_dense_index_is_chosen_up_to_sixteen_keys_an_entry() {
        assert_eq!(IndexKind::suited(1000, 16_000), IndexKind::Dense);
        assert_eq!(IndexKind::suited(1000, 16_001), IndexKind::Hashed);
        assert_eq!(IndexKind::suited(usize::MAX, 400_000), IndexKind::Dense);
        // The 236 client caches of 2048 blocks over one space of keys that need it small.
        assert_eq!(IndexKind::suited(2048, 400_000), IndexKind::Hashed);
    }

    #[test]
    fn runs_and_strides_of_block_numbers_stay_near_their_home() {
        for stride in [1u32, 2, 3, 64, 4096, 65_536] {
            let mut hashed = Hashed::new();
            let keys: Vec<u32> = (0..4096).map(|step| step * stride).collect();
            for (slot, key) in keys.iter().enumerate() {
                hashed.insert(*key, slot as u32 + 1);
            }
            let mask = hashed.mask();
            let probes: usize = keys
                .iter()
                .map(|key| (hashed.place(*key).wrapping_sub(hashed.home(*key)) & mask) + 1)
                .sum();
            // Random keys at half load take 1.5 probes (Knuth 1998, section 6.4).
            assert!(probes < 2 * keys.len(), "{probes} probes for stride {stride}");
        }
    }

    proptest! {
        #[test]
        fn both_forms_agree_with_an_ordered_map(
            steps in proptest::collection::vec((0u32..600, 1u32..1000), 1..2000),
        ) {
            let mut model = BTreeMap::new();
            let mut dense = KeyIndex::new(IndexKind::Dense, 600);
            let mut hashed = KeyIndex::new(IndexKind::Hashed, 600);
            for (key, slot) in steps {
                let held = model.get(&key).copied();
                prop_assert_eq!(dense.get(key), held);
                prop_assert_eq!(hashed.get(key), held);
                if held.is_some() {
                    model.remove(&key);
                    dense.remove(key);
                    hashed.remove(key);
                } else {
                    model.insert(key, slot);
                    dense.insert(key, slot);
                    hashed.insert(key, slot);
                }
            }
            prop_assert_eq!(dense.verify(), model.len());
            prop_assert_eq!(hashed.verify(), model.len());
            let converted = dense.into_hashed();
            prop_assert_eq!(converted.verify(), model.len());
            for key in 0..600 {
                prop_assert_eq!(hashed.get(key), model.get(&key).copied());
                prop_assert_eq!(converted.get(key), model.get(&key).copied());
            }
        }
    }
}
