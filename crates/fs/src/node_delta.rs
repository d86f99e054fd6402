//! What has changed in a node of the tree, item by item, and how a node becomes the changed one.
//!
//! `docs/internals/file-system-format.md` has the bytes.

use std::ops::Range;

use twox_hash::XxHash3_64;

use crate::node::{HEADER_BYTES, Key, Node, NodeMut, SLOT_BYTES, u32_at};

/// An item is there no more.
const REMOVED: u8 = 0;
/// Nor are those behind it.
const REMOVED_WITH_ALL_BEHIND: u8 = 1;
/// A part of a value is another, or all of it.
const VALUE: u8 = 2;
/// A child is another.
const CHILD: u8 = 3;

/// Bytes of what and which.
const CHANGE_BYTES: usize = 17;

fn u16_at(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + 2)?;
    Some(usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
}

/// A number that nodes with other items do not have, but by a chance of one in 2^64.
pub(crate) fn digest(node: Node<'_>) -> u64 {
    let mut items = Vec::with_capacity(node.used() + HEADER_BYTES);
    items.push(node.level());
    for number in 0..node.count() {
        items.extend(node.key(number).to_le_bytes());
        if node.is_leaf() {
            let value = node.value(number);
            items.extend((value.len() as u16).to_le_bytes());
            items.extend(value);
        } else {
            items.extend(node.child(number).to_le_bytes());
        }
    }
    XxHash3_64::oneshot(&items)
}

fn put_change(into: &mut Vec<u8>, what: u8, key: Key) {
    into.push(what);
    into.extend(key.to_le_bytes());
}

/// The value of the item `key` was `before` and is `after`: what lies between what they begin and end with alike.
fn put_value(into: &mut Vec<u8>, key: Key, before: &[u8], after: &[u8]) {
    let alike = |(one, other): &(&u8, &u8)| one == other;
    let begins = before.iter().zip(after).take_while(alike).count();
    let rest = before[begins..].iter().rev().zip(after[begins..].iter().rev());
    let ends = rest.take_while(alike).count();
    let between = &after[begins..after.len() - ends];
    put_change(into, VALUE, key);
    for length in [begins, ends, between.len()] {
        into.extend((length as u16).to_le_bytes());
    }
    into.extend(between);
}

/// Puts behind `into` what makes of `before` a node with the items of `after`; false, with nothing put, if that takes
/// more than `bytes_max` or they are not of the same level.
pub(crate) fn encode(
    before: Node<'_>,
    after: Node<'_>,
    bytes_max: usize,
    into: &mut Vec<u8>,
) -> bool {
    let begin = into.len();
    let (mut old, mut new) = (0, 0);
    let is_same_level = before.level() == after.level();
    while is_same_level && into.len() - begin <= bytes_max {
        let gone = (old < before.count()).then(|| before.key(old));
        let come = (new < after.count()).then(|| after.key(new));
        match (gone, come) {
            (None, None) => return true,
            (Some(key), None) if old + 1 < before.count() => {
                put_change(into, REMOVED_WITH_ALL_BEHIND, key);
                old = before.count();
            }
            (Some(key), come) if come.is_none_or(|come| key < come) => {
                put_change(into, REMOVED, key);
                old += 1;
            }
            (_, None) => unreachable!("what is gone was seen"),
            (gone, Some(key)) => {
                let is_there = gone == Some(key);
                if after.is_leaf() {
                    let value = if is_there { before.value(old) } else { &[] };
                    if !is_there || value != after.value(new) {
                        put_value(into, key, value, after.value(new));
                    }
                } else if !is_there || before.child(old) != after.child(new) {
                    put_change(into, CHILD, key);
                    into.extend(after.child(new).to_le_bytes());
                }
                old += usize::from(is_there);
                new += 1;
            }
        }
    }
    into.truncate(begin);
    false
}

/// A change as it was read.
enum Change<'a> {
    Removed,
    RemovedWithAllBehind,
    /// Bytes that the value begins and ends with as before, and what lies between.
    Value(usize, usize, &'a [u8]),
    Child(u32),
}

/// The changes in `bytes`, and which items they are about; none if there are others than there may be, or they are in
/// no order.
fn decode(mut bytes: &[u8]) -> Option<Vec<(Key, Change<'_>)>> {
    let mut changes: Vec<(Key, Change<'_>)> = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_at_checked(CHANGE_BYTES)?;
        let key = Key::from_le_bytes(head[1..].try_into().expect("16 bytes"));
        if changes.last().is_some_and(|(last, _)| *last >= key) {
            return None;
        }
        let (change, length) = match head[0] {
            REMOVED => (Change::Removed, 0),
            REMOVED_WITH_ALL_BEHIND => (Change::RemovedWithAllBehind, 0),
            VALUE => {
                let length = u16_at(rest, 4)?;
                let between = rest.get(6..6 + length)?;
                (Change::Value(u16_at(rest, 0)?, u16_at(rest, 2)?, between), 6 + length)
            }
            CHILD => (Change::Child(u32_at(rest.get(..4)?, 0)), 4),
            _ => return None,
        };
        changes.push((key, change));
        bytes = &rest[length..];
    }
    Some(changes)
}

/// Makes of the node in `block` the one that `changes` lead to; false if they do not fit it, and then nobody knows
/// what is in `block`.
pub(crate) fn apply(block: &mut [u8], changes: &[u8]) -> bool {
    let Some(changes) = decode(changes) else { return false };
    let before = block.to_vec();
    let before = Node(&before);
    let mut after = NodeMut(block);
    after.clear(before.level());
    let mut next = 0;
    let mut end = before.count();
    for (key, change) in changes {
        let (at, is_there) = before.search(key);
        if at < next || at > end || !copy(&mut after, before, next..at) {
            return false;
        }
        next = at + usize::from(is_there);
        let count = after.node().count();
        let is_done = match change {
            Change::Removed => is_there,
            Change::RemovedWithAllBehind => {
                end = next;
                is_there
            }
            Change::Value(begins, ends, between) if before.is_leaf() => {
                let value = if is_there { before.value(at) } else { &[] };
                begins.checked_add(ends).is_some_and(|alike| alike <= value.len()) && {
                    let (begin, end) = (&value[..begins], &value[value.len() - ends..]);
                    after.insert(count, key, &[begin, between, end].concat())
                }
            }
            Change::Child(child) if !before.is_leaf() => after.insert_child(count, key, child),
            Change::Value(..) | Change::Child(_) => false,
        };
        if !is_done {
            return false;
        }
    }
    copy(&mut after, before, next..end)
}

/// Puts the items `range` of `before` behind those of `after`; false if there is no room.
fn copy(after: &mut NodeMut<'_>, before: Node<'_>, range: Range<usize>) -> bool {
    let bytes =
        if before.is_leaf() { range.clone().map(|at| before.value(at).len()).sum() } else { 0 };
    let fits = after.node().used() + range.len() * SLOT_BYTES + bytes <= after.node().usable();
    if fits {
        after.append(before, range);
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const BLOCK_BYTES: usize = 2048;

    /// A leaf with `items`, as many as there is room for.
    fn leaf(items: &BTreeMap<u8, Vec<u8>>) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK_BYTES];
        let mut node = NodeMut(&mut bytes);
        node.clear(0);
        for (key, value) in items {
            let at = node.node().count();
            if !node.insert(at, Key::from(*key), value) {
                break;
            }
        }
        bytes
    }

    fn inner(items: &BTreeMap<u8, u32>, level: u8) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK_BYTES];
        let mut node = NodeMut(&mut bytes);
        node.clear(level);
        for (key, child) in items {
            let at = node.node().count();
            assert!(node.insert_child(at, Key::from(*key), *child));
        }
        bytes
    }

    /// `before` with what makes `after` of it, and how many bytes that takes.
    fn changed(before: &[u8], after: &[u8]) -> (Vec<u8>, usize) {
        let mut changes = vec![7];
        assert!(encode(Node(before), Node(after), 1 << 20, &mut changes));
        let mut made = before.to_vec();
        assert!(apply(&mut made, &changes[1..]));
        (made, changes.len() - 1)
    }

    fn items() -> impl Strategy<Value = BTreeMap<u8, Vec<u8>>> {
        let value = (any::<u8>(), 0..200usize).prop_map(|(fill, length)| vec![fill; length]);
        prop::collection::btree_map(any::<u8>(), value, 0..40)
    }

    proptest! {
        #[test]
        fn a_node_becomes_the_changed_one(before in items(), after in items(), kept in any::<u64>()) {
            // Half of the items are as they were.
            let mut mixed = after;
            let stays = |(key, _): &(&u8, &Vec<u8>)| kept >> (**key % 64) & 1 == 1;
            let stayed = before.iter().filter(stays);
            mixed.extend(stayed.map(|(key, value)| (*key, value.clone())));
            let (before, after) = (leaf(&before), leaf(&mixed));
            let (made, _) = changed(&before, &after);
            prop_assert_eq!(Node(&made).fault(), None);
            prop_assert_eq!(digest(Node(&made)), digest(Node(&after)));
            let items = |bytes: &[u8]| -> Vec<(Key, Vec<u8>)> {
                let node = Node(bytes);
                (0..node.count()).map(|at| (node.key(at), node.value(at).to_vec())).collect()
            };
            prop_assert_eq!(items(&made), items(&after));
        }

        #[test]
        fn so_does_one_above_leaves(
            before in prop::collection::btree_map(any::<u8>(), 2..50u32, 1..90),
            after in prop::collection::btree_map(any::<u8>(), 2..50u32, 1..90),
        ) {
            let (before, after) = (inner(&before, 3), inner(&after, 3));
            let (made, _) = changed(&before, &after);
            prop_assert_eq!(made, after);
        }

        /// Whatever there is instead of changes: it says no, or makes a node.
        #[test]
        fn nonsense_is_refused(
            before in items(),
            mut changes in prop::collection::vec(any::<u8>(), 0..300),
            after in items(),
            flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            is_real in any::<bool>(),
        ) {
            let before = leaf(&before);
            if is_real {
                changes.clear();
                assert!(encode(Node(&before), Node(&leaf(&after)), 1 << 20, &mut changes));
            }
            let flips = if changes.is_empty() { &[][..] } else { &flips };
            for (at, byte) in flips {
                let at = at.index(changes.len());
                changes[at] = *byte;
            }
            let mut made = before.clone();
            if apply(&mut made, &changes) {
                prop_assert!(Node(&made).count() * SLOT_BYTES <= BLOCK_BYTES);
            }
        }
    }

    #[test]
    fn what_is_alike_is_not_said_again() {
        let long: Vec<u8> = (0..200).collect();
        let before =
            BTreeMap::from([(1, long.clone()), (2, vec![5; 9]), (3, vec![1]), (4, vec![1])]);
        let mut after = before.clone();
        let mut other = long;
        other[100] ^= 1;
        other.insert(101, 77);
        after.insert(1, other);
        let (before, after) = (leaf(&before), leaf(&after));
        assert_eq!(changed(&before, &after).1, CHANGE_BYTES + 6 + 2);
        // All behind an item.
        let cut = leaf(&BTreeMap::from([(1, (0..200).collect())]));
        assert_eq!(changed(&before, &cut).1, CHANGE_BYTES);
        assert_eq!(changed(&before, &before).1, 0);
    }

    #[test]
    fn what_is_not_short_is_not_said() {
        let before = leaf(&BTreeMap::from([(1, vec![1; 100])]));
        let after = leaf(&BTreeMap::from([(1, vec![2; 100])]));
        let mut changes = vec![7];
        let bytes = CHANGE_BYTES + 6 + 100;
        assert!(!encode(Node(&before), Node(&after), bytes - 1, &mut changes));
        assert_eq!(changes, [7]);
        assert!(encode(Node(&before), Node(&after), bytes, &mut changes));
        let other = inner(&BTreeMap::from([(1, 2)]), 1);
        assert!(!encode(Node(&before), Node(&other), 1 << 20, &mut changes));
    }
}
