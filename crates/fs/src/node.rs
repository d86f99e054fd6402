//! A node of the tree: a block of items in the order of their keys.
//!
//! After a header come slots, a key each; in a leaf they say where in the block its value is, and values
//! are put from the end of the block downwards; in other nodes they name the child that has the keys from
//! this one on. `docs/internals/file-system-format.md` has the bytes.

use std::ops::Range;

/// Object, kind and offset; see [`crate::format`].
pub(crate) type Key = u128;

pub(crate) const HEADER_BYTES: usize = 16;
pub(crate) const SLOT_BYTES: usize = 20;
const MAGIC: &[u8; 4] = b"AWFN";

/// No node is farther from the leaves: with two children each, 2^32 blocks are described by 32 levels.
const LEVEL_MAX: u8 = 32;

/// The first block that may be a child: the superblock and the root are none's.
const FIRST_CHILD: u32 = 2;

const LEVEL_AT: usize = 4;
const COUNT_AT: usize = 6;
const VALUES_AT: usize = 8;
const UNUSED_AT: usize = 12;

/// Bytes of a value at most: so that whatever is in a leaf and one value more always fit into two.
pub(crate) fn value_bytes_max(block_bytes: usize) -> usize {
    (block_bytes - HEADER_BYTES) / 2 - SLOT_BYTES
}

/// A node that can be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<'a>(pub(crate) &'a [u8]);

/// A node that can be changed.
#[derive(Debug)]
pub(crate) struct NodeMut<'a>(pub(crate) &'a mut [u8]);

fn u16_at(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

impl<'a> Node<'a> {
    /// How far it is from the leaves.
    pub(crate) fn level(self) -> u8 {
        self.0[LEVEL_AT]
    }

    pub(crate) fn is_leaf(self) -> bool {
        self.level() == 0
    }

    /// Items.
    pub(crate) fn count(self) -> usize {
        u16_at(self.0, COUNT_AT)
    }

    /// Where the values begin.
    fn values(self) -> usize {
        u32_at(self.0, VALUES_AT) as usize
    }

    /// Bytes between the values that none of them uses.
    fn unused(self) -> usize {
        u32_at(self.0, UNUSED_AT) as usize
    }

    pub(crate) fn key(self, number: usize) -> Key {
        let at = HEADER_BYTES + number * SLOT_BYTES;
        Key::from_le_bytes(self.0[at..at + 16].try_into().expect("16 bytes"))
    }

    fn place(self, number: usize) -> Range<usize> {
        let at = HEADER_BYTES + number * SLOT_BYTES + 16;
        let (from, bytes) = (u16_at(self.0, at), u16_at(self.0, at + 2));
        from..from + bytes
    }

    /// The value of an item of a leaf.
    pub(crate) fn value(self, number: usize) -> &'a [u8] {
        &self.0[self.place(number)]
    }

    /// The child of an item of another node.
    pub(crate) fn child(self, number: usize) -> u32 {
        u32_at(self.0, HEADER_BYTES + number * SLOT_BYTES + 16)
    }

    /// The first item whose key is not below `key`, and whether it is that key.
    pub(crate) fn search(self, key: Key) -> (usize, bool) {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low.midpoint(high);
            let found = self.key(middle);
            if found == key {
                return (middle, true);
            }
            if found < key { low = middle + 1 } else { high = middle }
        }
        (low, false)
    }

    /// The item of the child in which `key` is, if it is anywhere.
    pub(crate) fn search_child(self, key: Key) -> usize {
        match self.search(key) {
            (number, true) => number,
            (number, false) => number.saturating_sub(1),
        }
    }

    /// Bytes that items take.
    pub(crate) fn used(self) -> usize {
        let values = if self.is_leaf() { self.0.len() - self.values() - self.unused() } else { 0 };
        self.count() * SLOT_BYTES + values
    }

    /// Bytes that items may take.
    pub(crate) fn usable(self) -> usize {
        self.0.len() - HEADER_BYTES
    }

    /// Bytes that an item takes.
    fn item_bytes(self, number: usize) -> usize {
        SLOT_BYTES + if self.is_leaf() { self.place(number).len() } else { 0 }
    }

    /// Why it is no node that may be used, if it is none.
    pub(crate) fn fault(self) -> Option<&'static str> {
        if &self.0[..4] != MAGIC {
            return Some("it is no node");
        }
        if self.level() > LEVEL_MAX {
            return Some("it is farther from the leaves than any can be");
        }
        let slots_end = HEADER_BYTES + self.count() * SLOT_BYTES;
        if slots_end > self.0.len() {
            return Some("its items do not fit into it");
        }
        if (1..self.count()).any(|number| self.key(number - 1) >= self.key(number)) {
            return Some("its keys are in no order");
        }
        if !self.is_leaf() {
            if self.count() == 0 {
                return Some("it has no children");
            }
            let leads_up = (0..self.count()).any(|number| self.child(number) < FIRST_CHILD);
            return leads_up.then_some("a child of it is above it");
        }
        if self.values() < slots_end || self.values() > self.0.len() {
            return Some("its values begin where they cannot");
        }
        let mut bytes = 0;
        for number in 0..self.count() {
            let place = self.place(number);
            let begins_within = place.start >= self.values() || place.is_empty();
            if !begins_within || place.end > self.0.len() {
                return Some("a value does not lie within it");
            }
            if place.len() > value_bytes_max(self.0.len()) {
                return Some("a value is longer than any may be");
            }
            bytes += place.len();
        }
        let unused = self.0.len() - self.values();
        (unused.checked_sub(bytes) != Some(self.unused())).then_some("its values overlap")
    }
}

impl NodeMut<'_> {
    pub(crate) fn node(&self) -> Node<'_> {
        Node(self.0)
    }

    /// Makes it one without items.
    pub(crate) fn clear(&mut self, level: u8) {
        self.0.fill(0);
        self.0[..4].copy_from_slice(MAGIC);
        self.0[LEVEL_AT] = level;
        self.put_u32(VALUES_AT, self.0.len() as u32);
    }

    fn put_u32(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn set_count(&mut self, count: usize) {
        self.0[COUNT_AT..COUNT_AT + 2].copy_from_slice(&(count as u16).to_le_bytes());
    }

    fn set_place(&mut self, number: usize, from: usize, bytes: usize) {
        let at = HEADER_BYTES + number * SLOT_BYTES + 16;
        self.0[at..at + 2].copy_from_slice(&(from as u16).to_le_bytes());
        self.0[at + 2..at + 4].copy_from_slice(&(bytes as u16).to_le_bytes());
    }

    /// Makes room for a slot at `number` with `key`.
    fn open_slot(&mut self, number: usize, key: Key) {
        let count = self.node().count();
        let at = HEADER_BYTES + number * SLOT_BYTES;
        let end = HEADER_BYTES + count * SLOT_BYTES;
        self.0.copy_within(at..end, at + SLOT_BYTES);
        self.0[at..at + 16].copy_from_slice(&key.to_le_bytes());
        self.set_count(count + 1);
    }

    /// Puts an item into a leaf at `number`; false if there is no room, with nothing changed.
    pub(crate) fn insert(&mut self, number: usize, key: Key, value: &[u8]) -> bool {
        let node = self.node();
        if node.used() + SLOT_BYTES + value.len() > node.usable() {
            return false;
        }
        let slots_end = HEADER_BYTES + (node.count() + 1) * SLOT_BYTES;
        if node.values() < slots_end + value.len() {
            self.compact();
        }
        self.open_slot(number, key);
        let from = self.node().values() - value.len();
        self.put_u32(VALUES_AT, from as u32);
        self.set_place(number, from, value.len());
        self.0[from..from + value.len()].copy_from_slice(value);
        true
    }

    /// Gives an item of a leaf another value; false if there is no room, with nothing changed.
    pub(crate) fn replace(&mut self, number: usize, value: &[u8]) -> bool {
        let node = self.node();
        let place = node.place(number);
        if value.len() <= place.len() {
            let spare = place.len() - value.len();
            self.0[place.start..place.start + value.len()].copy_from_slice(value);
            self.set_place(number, place.start, value.len());
            self.put_u32(UNUSED_AT, (self.node().unused() + spare) as u32);
            return true;
        }
        if node.used() - place.len() + value.len() > node.usable() {
            return false;
        }
        let key = node.key(number);
        self.remove(number);
        let is_in = self.insert(number, key, value);
        assert!(is_in, "there is room for it");
        true
    }

    /// Puts a child into a node at `number`; false if there is no room.
    pub(crate) fn insert_child(&mut self, number: usize, key: Key, child: u32) -> bool {
        if self.node().used() + SLOT_BYTES > self.node().usable() {
            return false;
        }
        self.open_slot(number, key);
        self.put_u32(HEADER_BYTES + number * SLOT_BYTES + 16, child);
        true
    }

    /// Gives the item `number` another key, which is still between those beside it.
    pub(crate) fn set_key(&mut self, number: usize, key: Key) {
        let at = HEADER_BYTES + number * SLOT_BYTES;
        self.0[at..at + 16].copy_from_slice(&key.to_le_bytes());
    }

    /// Takes an item out.
    pub(crate) fn remove(&mut self, number: usize) {
        let node = self.node();
        let count = node.count();
        if node.is_leaf() {
            let unused = node.unused() + node.place(number).len();
            self.put_u32(UNUSED_AT, unused as u32);
        }
        let at = HEADER_BYTES + number * SLOT_BYTES;
        let end = HEADER_BYTES + count * SLOT_BYTES;
        self.0.copy_within(at + SLOT_BYTES..end, at);
        self.0[end - SLOT_BYTES..end].fill(0);
        self.set_count(count - 1);
    }

    /// Puts the values together, so that what is free lies between them and the slots.
    fn compact(&mut self) {
        let old = self.0.to_vec();
        let node = Node(&old);
        let mut from = self.0.len();
        for number in 0..node.count() {
            let value = node.value(number);
            from -= value.len();
            self.0[from..from + value.len()].copy_from_slice(value);
            self.set_place(number, from, value.len());
        }
        self.put_u32(VALUES_AT, from as u32);
        self.put_u32(UNUSED_AT, 0);
        let slots_end = HEADER_BYTES + self.node().count() * SLOT_BYTES;
        self.0[slots_end..from].fill(0);
    }

    /// Puts the items `range` of `from` behind its own.
    ///
    /// # Panics
    /// If there is no room for them.
    pub(crate) fn append(&mut self, from: Node<'_>, range: Range<usize>) {
        self.take_in(self.node().count(), from, range);
    }

    /// Puts the items `range` of `from` before its own item `at`.
    ///
    /// # Panics
    /// If there is no room for them.
    pub(crate) fn take_in(&mut self, at: usize, from: Node<'_>, range: Range<usize>) {
        for (at, number) in (at..).zip(range) {
            let key = from.key(number);
            let is_in = if from.is_leaf() {
                self.insert(at, key, from.value(number))
            } else {
                self.insert_child(at, key, from.child(number))
            };
            assert!(is_in, "there is room for what is moved");
        }
    }

    /// Takes the first `items` out.
    pub(crate) fn drop_first(&mut self, items: usize) {
        for number in (0..items).rev() {
            self.remove(number);
        }
    }

    /// Takes the items from `from` on out.
    pub(crate) fn truncate(&mut self, from: usize) {
        while self.node().count() > from {
            self.remove(self.node().count() - 1);
        }
    }
}

/// Where a full node is cut in two, so that an item of `bytes` may come to `number`: how many items stay, and
/// whether the new one comes to these. What comes at the end leaves the node as full as it is, so that what
/// is written in order fills nodes.
pub(crate) fn cut(node: Node<'_>, number: usize, bytes: usize) -> (usize, bool) {
    let count = node.count();
    if number == count {
        return (count, false);
    }
    let items = (0..count).map(|at| node.item_bytes(at));
    halves(items, node.usable(), number, bytes).expect("an item is at most half a node")
}

/// How the items of two nodes are shared between them, so that another of `bytes` may come to `number`, the items of
/// `right` counted behind those of `left`: as in [`cut`]; nothing if they do not fit.
pub(crate) fn shares(
    left: Node<'_>,
    right: Node<'_>,
    number: usize,
    bytes: usize,
) -> Option<(usize, bool)> {
    let items = [left, right].map(|node| (0..node.count()).map(move |at| node.item_bytes(at)));
    halves(items.into_iter().flatten(), left.usable(), number, bytes)
}

/// Where a row of items, another of `bytes` at `number` among them, is cut into two parts of about the same size that
/// fit into `usable` bytes each: how many are left of the cut, and whether the new one is there as well.
fn halves(
    items: impl Iterator<Item = usize> + Clone,
    usable: usize,
    number: usize,
    bytes: usize,
) -> Option<(usize, bool)> {
    let total = items.clone().sum::<usize>() + bytes;
    let mut best = None;
    let mut left = 0;
    // Cuts before each item and at the end, the new one among them.
    let before = items.clone().take(number);
    let row = before.chain([bytes]).chain(items.skip(number)).chain([0]);
    for (at, item) in row.enumerate() {
        let fits = left <= usable && total - left <= usable;
        let apart = left.abs_diff(total - left);
        if fits && best.is_none_or(|(least, _)| apart < least) {
            best = Some((apart, at));
        }
        left += item;
    }
    best.map(|(_, at)| (at - usize::from(at > number), at > number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// The level above it could not be said.
    #[test]
    fn a_node_is_not_endlessly_far_from_the_leaves() {
        let mut bytes = vec![0; 2048];
        let mut node = NodeMut(&mut bytes);
        for (level, is_sound) in
            [(1, true), (LEVEL_MAX, true), (LEVEL_MAX + 1, false), (255, false)]
        {
            node.clear(level);
            assert!(node.insert_child(0, 0, 2));
            assert_eq!(node.node().fault().is_none(), is_sound);
        }
    }

    proptest! {
        #[test]
        fn a_leaf_is_a_map(
            steps in prop::collection::vec((0..40u8, 0..4u8, 0..300usize, any::<u8>()), 0..300),
        ) {
            let mut bytes = vec![0; 2048];
            let mut leaf = NodeMut(&mut bytes);
            leaf.clear(0);
            let mut model: BTreeMap<Key, Vec<u8>> = BTreeMap::new();
            for (key, what, length, fill) in steps {
                let key = Key::from(key);
                let (number, is_there) = leaf.node().search(key);
                prop_assert_eq!(is_there, model.contains_key(&key));
                let value = vec![fill; length];
                let used: usize = model.values().map(|value| value.len() + SLOT_BYTES).sum();
                if what == 0 && is_there {
                    leaf.remove(number);
                    model.remove(&key);
                } else if is_there {
                    let fits = used - model[&key].len() + length <= 2048 - HEADER_BYTES;
                    prop_assert_eq!(leaf.replace(number, &value), fits);
                    if fits { model.insert(key, value); }
                } else {
                    let fits = used + length + SLOT_BYTES <= 2048 - HEADER_BYTES;
                    prop_assert_eq!(leaf.insert(number, key, &value), fits);
                    if fits { model.insert(key, value); }
                }
                prop_assert_eq!(leaf.node().fault(), None);
                let items: Vec<_> = (0..leaf.node().count())
                    .map(|at| (leaf.node().key(at), leaf.node().value(at).to_vec()))
                    .collect();
                let expected: Vec<_> = model.clone().into_iter().collect();
                prop_assert_eq!(items, expected);
            }
        }
    }
}
