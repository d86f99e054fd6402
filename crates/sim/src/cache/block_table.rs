//! The blocks a cache knows, each on one of a few lists ordered from newest to oldest.
//!
//! A known block has a slot: its key, its neighbours on its list, and a byte that its policy may
//! use. The lists are circular and run through a sentinel slot each, so that linking needs no
//! special case at an end; the sentinels are the first slots, and list `n` is the one through slot
//! `n`.
//!
//! Invariants: a slot that is no sentinel is on exactly one list or on the free list; a listed slot
//! is where the index says its key is; the index knows no other key.
//!
//! Cost: every operation is O(1) and touches the slot, its two neighbours and the index. Slots are
//! 12 bytes, to keep many in the processor's caches; the policy's bytes lie apart, so that a policy
//! that only marks a block it hits touches one line in five of what a list operation would.

use super::key_index::{IndexKind, KeyIndex};

#[derive(Debug, Clone, Copy)]
struct Slot {
    key: u32,
    /// The neighbour nearer to the newest end; for a sentinel, the oldest slot.
    newer: u32,
    /// The neighbour nearer to the oldest end; for a sentinel, the newest slot. Chains free slots.
    older: u32,
}

/// "No slot": ends the free list.
const NONE: u32 = u32::MAX;

/// Slots of known blocks, their lists, and the index from keys to slots.
#[derive(Debug, Clone)]
pub(super) struct BlockTable {
    slots: Vec<Slot>,
    /// One byte a slot, at the policy's disposal; zero for a block that has just entered.
    marks: Vec<u8>,
    free: u32,
    lists: u32,
    index: KeyIndex,
    entries_max: usize,
    /// Whether the form of the index follows the bound of keys.
    index_adapts: bool,
}

impl BlockTable {
    /// An empty table of `lists` lists for up to `entries_max` blocks, with the index asked for or
    /// else the one that suits.
    pub(super) fn new(
        lists: u32,
        entries_max: usize,
        keys: usize,
        index: Option<IndexKind>,
    ) -> Self {
        let sentinel = |list| Slot { key: 0, newer: list, older: list };
        let kind = index.unwrap_or_else(|| IndexKind::suited(entries_max, keys));
        Self {
            slots: (0..lists).map(sentinel).collect(),
            marks: vec![0; lists as usize],
            free: NONE,
            lists,
            index: KeyIndex::new(kind, keys),
            entries_max,
            index_adapts: index.is_none(),
        }
    }

    pub(super) fn index_kind(&self) -> IndexKind {
        self.index.kind()
    }

    /// Raises the bound of keys. A dense index that no longer suits becomes a hashed one.
    pub(super) fn ensure_keys(&mut self, keys: usize) {
        let suited = IndexKind::suited(self.entries_max, keys);
        if self.index_adapts && suited == IndexKind::Hashed {
            let dense = std::mem::replace(&mut self.index, KeyIndex::Dense(Vec::new()));
            self.index = dense.into_hashed();
        }
        self.index.ensure_keys(keys);
    }

    /// The slot of `key`.
    #[inline]
    pub(super) fn find(&self, key: u32) -> Option<u32> {
        self.index.get(key)
    }

    /// Notes in `slots` where `keys` are, the first sentinel for one that is not known, and looks
    /// at all that moving them to another place on their list will look at. Step by step for all of
    /// them, so that the processor waits for memory no more than three times, and without a branch
    /// that would depend on a load. The value returned means nothing.
    pub(super) fn look_up(&self, keys: &[u32], slots: &mut [u32]) -> u32 {
        self.index.slots_or_first(keys, slots);
        let mut seen = 0;
        for slot in &*slots {
            seen ^= self.slots[*slot as usize].key;
        }
        for slot in &*slots {
            let Slot { newer, older, .. } = self.slots[*slot as usize];
            seen ^= self.slots[newer as usize].key ^ self.slots[older as usize].key;
        }
        seen
    }

    #[inline]
    pub(super) fn key(&self, slot: u32) -> u32 {
        self.slots[slot as usize].key
    }

    #[inline]
    pub(super) fn mark(&self, slot: u32) -> u8 {
        self.marks[slot as usize]
    }

    #[inline]
    pub(super) fn set_mark(&mut self, slot: u32, mark: u8) {
        self.marks[slot as usize] = mark;
    }

    /// The oldest slot of `list`, which is not empty.
    #[inline]
    pub(super) fn oldest(&self, list: u32) -> u32 {
        let slot = self.slots[list as usize].newer;
        assert!(slot != list, "list {list} has a block");
        slot
    }

    /// The neighbour of `slot` towards the newest end; the list's own number beyond it.
    #[inline]
    pub(super) fn newer(&self, slot: u32) -> u32 {
        self.slots[slot as usize].newer
    }

    /// Enters `key`, which is not known, as the newest of `list`, with mark 0.
    #[inline]
    pub(super) fn enter(&mut self, key: u32, list: u32) -> u32 {
        let slot = self.acquire(key);
        self.index.insert(key, slot);
        self.link_newest(slot, list);
        slot
    }

    /// Forgets the block in `slot` and returns its key.
    #[inline]
    pub(super) fn leave(&mut self, slot: u32) -> u32 {
        let key = self.key(slot);
        self.unlink(slot);
        self.index.remove(key);
        self.slots[slot as usize].older = self.free;
        self.free = slot;
        key
    }

    /// As [`Self::leave`] of the oldest of `list` and [`Self::enter`] of `key`, which gets its slot;
    /// the key that left.
    #[inline]
    pub(super) fn replace_oldest(&mut self, key: u32, list: u32) -> u32 {
        let slot = self.oldest(list);
        let left = std::mem::replace(&mut self.slots[slot as usize].key, key);
        self.marks[slot as usize] = 0;
        self.index.remove(left);
        self.index.insert(key, slot);
        self.move_to_newest(slot, list);
        left
    }

    /// Makes `slot` the newest of `list`, whichever list it is on.
    #[inline]
    pub(super) fn move_to_newest(&mut self, slot: u32, list: u32) {
        if self.slots[list as usize].older != slot {
            self.unlink(slot);
            self.link_newest(slot, list);
        }
    }

    #[inline]
    fn acquire(&mut self, key: u32) -> u32 {
        let slot = self.free;
        if slot == NONE {
            return self.append(key);
        }
        self.free = self.slots[slot as usize].older;
        self.slots[slot as usize].key = key;
        self.marks[slot as usize] = 0;
        slot
    }

    #[cold]
    fn append(&mut self, key: u32) -> u32 {
        let slot = u32::try_from(self.slots.len()).expect("a slot a key, and few lists");
        assert!(slot != NONE, "more blocks than a table can number");
        self.slots.push(Slot { key, newer: slot, older: slot });
        self.marks.push(0);
        slot
    }

    #[inline]
    fn unlink(&mut self, slot: u32) {
        let Slot { newer, older, .. } = self.slots[slot as usize];
        self.slots[newer as usize].older = older;
        self.slots[older as usize].newer = newer;
    }

    #[inline]
    fn link_newest(&mut self, slot: u32, list: u32) {
        let second = self.slots[list as usize].older;
        self.slots[list as usize].older = slot;
        self.slots[second as usize].newer = slot;
        let linked = &mut self.slots[slot as usize];
        linked.newer = list;
        linked.older = second;
    }

    /// Checks the invariants of the module and returns the slots of each list, newest first.
    pub(super) fn verify(&self) -> Vec<Vec<u32>> {
        assert!(self.slots.len() == self.marks.len(), "a mark for each slot");
        let lists: Vec<Vec<u32>> = (0..self.lists).map(|list| self.walk(list)).collect();
        let listed: usize = lists.iter().map(Vec::len).sum();
        assert_eq!(self.index.verify(), listed, "the index knows what the lists hold");
        assert!(listed <= self.entries_max, "no more than {} blocks known", self.entries_max);
        let mut free_count = 0;
        let mut free = self.free;
        while free != NONE {
            free_count += 1;
            assert!(free_count <= self.slots.len(), "the free list ends");
            free = self.slots[free as usize].older;
        }
        let slots = self.slots.len() - self.lists as usize;
        assert_eq!(listed + free_count, slots, "each slot on one list");
        lists
    }

    fn walk(&self, list: u32) -> Vec<u32> {
        let mut walked = Vec::new();
        let mut slot = self.slots[list as usize].older;
        let mut newer = list;
        while slot != list {
            assert!(slot >= self.lists, "list {list} runs into list {slot}");
            assert_eq!(self.slots[slot as usize].newer, newer, "links of slot {slot} agree");
            assert_eq!(self.find(self.key(slot)), Some(slot), "slot {slot} is where it is found");
            walked.push(slot);
            assert!(walked.len() < self.slots.len(), "list {list} ends");
            newer = slot;
            slot = self.slots[slot as usize].older;
        }
        assert_eq!(self.slots[list as usize].newer, newer, "the oldest of list {list}");
        walked
    }
}
