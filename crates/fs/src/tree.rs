//! The tree in which everything but the data of large files is: items with a key of 128 bits and a short
//! value, in nodes of a block each. Its root stays where it is.

use std::ops::Range;
use std::sync::Arc;

use agewell_store::device::Disk;

use crate::FsError;
use crate::blocks::Blocks;
use crate::node::{Key, Node, NodeMut, SLOT_BYTES, cut, shares, value_bytes_max};

/// The block of the root.
pub(crate) const ROOT: u32 = 1;

/// Two nodes share what is in them as long as both are no fuller than so many eighths; chosen by us.
const SHARED_EIGHTHS: usize = 7;

/// The way from the root to a leaf: nodes, and which child was taken.
type Way = Vec<(u32, usize)>;

/// The node `number`, which must be one level below `above`, if that is said. So every way ends.
fn below<D: Disk>(
    blocks: &mut Blocks<D>,
    above: Option<u8>,
    number: u32,
) -> Result<Node<'_>, FsError> {
    let node = Node(blocks.node(number)?);
    if above.is_some_and(|above| node.level().checked_add(1) != Some(above)) {
        let what = "it is not below the node that names it";
        return Err(FsError::Structure { number, what });
    }
    Ok(node)
}

/// The leaf in which `key` is if it is anywhere; `passed` is called with each node above it, and which of its
/// children was taken.
fn find_leaf<D: Disk>(
    blocks: &mut Blocks<D>,
    key: Key,
    mut passed: impl FnMut(u32, usize),
) -> Result<u32, FsError> {
    let mut number = ROOT;
    let mut above = None;
    let mut way = None;
    loop {
        let node = below(blocks, above, number)?;
        if node.is_leaf() {
            return Ok(number);
        }
        above = Some(node.level());
        let at = node.search_child(key);
        let child = node.child(at);
        passed(number, at);
        if !blocks.has_node(child) {
            blocks.foresee(way, number, at);
        }
        way = Some((number, at));
        number = child;
    }
}

/// The same, with the way to it.
fn descend<D: Disk>(blocks: &mut Blocks<D>, key: Key, way: &mut Way) -> Result<u32, FsError> {
    way.clear();
    find_leaf(blocks, key, |number, at| way.push((number, at)))
}

/// The leaf in which `key` is if it is anywhere, which is not read for that; nothing if one of the nodes above it is not
/// in memory.
pub(crate) fn leaf_in_memory_above<D: Disk>(
    blocks: &mut Blocks<D>,
    key: Key,
) -> Result<Option<u32>, FsError> {
    let (mut number, mut above) = (ROOT, u8::MAX);
    loop {
        let Some(bytes) = blocks.bytes_in_memory(number)? else { return Ok(None) };
        let node = Node(&bytes);
        if node.level() >= above {
            return Ok(None);
        }
        above = node.level();
        match above {
            0 => return Ok(Some(number)),
            1 => return Ok(Some(node.child(node.search_child(key)))),
            _ => number = node.child(node.search_child(key)),
        }
    }
}

/// What `read` makes of the value of `key`; none if there is no such item.
pub(crate) fn get<D: Disk, R>(
    blocks: &mut Blocks<D>,
    key: Key,
    read: impl FnOnce(&[u8]) -> R,
) -> Result<Option<R>, FsError> {
    let leaf = find_leaf(blocks, key, |_, _| ())?;
    let node = Node(blocks.node(leaf)?);
    let (number, is_there) = node.search(key);
    Ok(is_there.then(|| read(node.value(number))))
}

/// The first item from `from` to `to`, both included, as `read` sees it.
pub(crate) fn first<D: Disk, R>(
    blocks: &mut Blocks<D>,
    from: Key,
    to: Key,
    read: impl FnOnce(Key, &[u8]) -> R,
) -> Result<Option<R>, FsError> {
    let mut read = Some(read);
    let mut found = None;
    each(blocks, from, to, |key, value| {
        found = read.take().map(|read| read(key, value));
        false
    })?;
    Ok(found)
}

/// Hands the items from `from` to `to`, both included, to `see` in their order, until it says false.
pub(crate) fn each<D: Disk>(
    blocks: &mut Blocks<D>,
    mut from: Key,
    to: Key,
    mut see: impl FnMut(Key, &[u8]) -> bool,
) -> Result<(), FsError> {
    let mut way = Way::new();
    loop {
        let leaf = descend(blocks, from, &mut way)?;
        let node = Node(blocks.node(leaf)?);
        for number in node.search(from).0..node.count() {
            let key = node.key(number);
            if key > to || !see(key, node.value(number)) {
                return Ok(());
            }
        }
        let Some(next) = key_behind(blocks, &way)? else { return Ok(()) };
        if next > to {
            return Ok(());
        }
        from = next;
    }
}

/// The least key of what is behind the leaf to which `way` leads.
fn key_behind<D: Disk>(blocks: &mut Blocks<D>, way: &Way) -> Result<Option<Key>, FsError> {
    for (number, at) in way.iter().rev() {
        let node = Node(blocks.node(*number)?);
        if at + 1 < node.count() {
            return Ok(Some(node.key(at + 1)));
        }
    }
    Ok(None)
}

/// The last item from `from` to `to`, both included, as `read` sees it.
pub(crate) fn last<D: Disk, R>(
    blocks: &mut Blocks<D>,
    from: Key,
    to: Key,
    read: impl FnOnce(Key, &[u8]) -> R,
) -> Result<Option<R>, FsError> {
    let mut way = Way::new();
    let mut key = to;
    loop {
        let leaf = descend(blocks, key, &mut way)?;
        let node = Node(blocks.node(leaf)?);
        let (number, is_there) = node.search(key);
        let behind = number + usize::from(is_there);
        if behind > 0 {
            let found = node.key(behind - 1);
            return Ok((found >= from).then(|| read(found, node.value(behind - 1))));
        }
        // All of this leaf is above; what is before it is below the key that leads to it.
        let mut before = None;
        for (number, at) in way.iter().rev() {
            if *at > 0 {
                before = Some(Node(blocks.node(*number)?).key(*at) - 1);
                break;
            }
        }
        match before {
            Some(before) if before >= from => key = before,
            _ => return Ok(None),
        }
    }
}

/// Puts `value` under `key`, in the place of what is there.
///
/// # Panics
/// If the value is longer than [`value_bytes_max`].
pub(crate) fn set<D: Disk>(blocks: &mut Blocks<D>, key: Key, value: &[u8]) -> Result<(), FsError> {
    assert!(value.len() <= value_bytes_max(blocks.block_bytes()), "a value is at most half a node");
    let mut way = Way::new();
    let leaf = descend(blocks, key, &mut way)?;
    let (number, is_there) = Node(blocks.node(leaf)?).search(key);
    let mut node = NodeMut(blocks.node_mut(leaf)?);
    if is_there {
        if node.replace(number, value) {
            return Ok(());
        }
        node.remove(number);
    }
    if node.insert(number, key, value) {
        return Ok(());
    }
    let item = NewItem { number, key, bytes: SLOT_BYTES + value.len() };
    let (into, at) = split(blocks, leaf, &way, &item)?;
    let is_in = NodeMut(blocks.node_mut(into)?).insert(at, key, value);
    assert!(is_in, "a node that was split has room");
    Ok(())
}

/// An item for which there is no room yet.
struct NewItem {
    /// Where in the node it comes.
    number: usize,
    key: Key,
    /// What it takes.
    bytes: usize,
}

impl NewItem {
    /// The key that leads to what is right of a cut.
    fn lead(&self, node: Node<'_>, (cut, is_left): (usize, bool)) -> Key {
        if self.number == cut && !is_left { self.key } else { node.key(cut) }
    }

    /// Which of two nodes it comes into, and where there.
    fn place(&self, (cut, is_left): (usize, bool), left: u32, right: u32) -> (u32, usize) {
        if is_left { (left, self.number) } else { (right, self.number - cut) }
    }
}

/// A new node with the items `range` of `from`.
fn part<D: Disk>(
    blocks: &mut Blocks<D>,
    from: Node<'_>,
    range: Range<usize>,
) -> Result<u32, FsError> {
    let made = blocks.take_node()?;
    let mut node = NodeMut(blocks.node_mut(made)?);
    node.clear(from.level());
    node.append(from, range);
    Ok(made)
}

/// Splits a full node, to which `way` leads, so that `item` may come into it; in which node it comes, and
/// where there.
fn split<D: Disk>(
    blocks: &mut Blocks<D>,
    full: u32,
    way: &[(u32, usize)],
    item: &NewItem,
) -> Result<(u32, usize), FsError> {
    if let Some(place) = share(blocks, full, way, item)? {
        return Ok(place);
    }
    let before = Arc::clone(blocks.node(full)?);
    let node = Node(&before);
    let cut = cut(node, item.number, item.bytes);
    let lead = item.lead(node, cut);
    let kept = cut.0;
    let right = part(blocks, node, kept..node.count())?;
    let Some(((parent, at), above)) = way.split_last() else {
        // The root stays where it is, and both parts are new.
        let left = part(blocks, node, 0..kept)?;
        let mut root = NodeMut(blocks.node_mut(full)?);
        root.clear(node.level() + 1);
        root.insert_child(0, 0, left);
        root.insert_child(1, lead, right);
        return Ok(item.place(cut, left, right));
    };
    NodeMut(blocks.node_mut(full)?).truncate(kept);
    let (parent, at) = (*parent, at + 1);
    if !NodeMut(blocks.node_mut(parent)?).insert_child(at, lead, right) {
        let lead = NewItem { number: at, key: lead, bytes: SLOT_BYTES };
        let (parent, at) = split(blocks, parent, above, &lead)?;
        let is_in = NodeMut(blocks.node_mut(parent)?).insert_child(at, lead.key, right);
        assert!(is_in, "a node that was split has room");
    }
    Ok(item.place(cut, full, right))
}

/// Shares what is in a full node, to which `way` leads, with one beside it that is in memory and has room for
/// more, so that `item` may come into one of them; in which, and where there. Nodes are fuller than if each
/// were split by itself (Knuth 1998, §6.2.4), and a node less is written.
fn share<D: Disk>(
    blocks: &mut Blocks<D>,
    full: u32,
    way: &[(u32, usize)],
    item: &NewItem,
) -> Result<Option<(u32, usize)>, FsError> {
    let Some((parent, at)) = way.last().copied() else { return Ok(None) };
    let node = Arc::clone(blocks.node(full)?);
    let node = Node(&node);
    let is_last = item.number == node.count();
    let pairs = beside(Node(blocks.node(parent)?), at, full);
    for (at, left, right) in pairs.into_iter().flatten() {
        let is_left = left == full;
        // What comes in order fills a node of its own.
        if is_left && is_last {
            continue;
        }
        let number = if is_left { right } else { left };
        let Some(other) = blocks.bytes_in_memory(number)? else { continue };
        let other = Node(&other);
        is_like(other, number, node.level(), left == right)?;
        if other.used() + node.used() + item.bytes > node.usable() * 2 / 8 * SHARED_EIGHTHS {
            continue;
        }
        let (first, second) = if is_left { (node, other) } else { (other, node) };
        let number = item.number + if is_left { 0 } else { first.count() };
        let Some((cut, is_before)) = shares(first, second, number, item.bytes) else { continue };
        let count = first.count();
        if cut < count {
            NodeMut(blocks.node_mut(right)?).take_in(0, first, cut..count);
            NodeMut(blocks.node_mut(left)?).truncate(cut);
        } else {
            NodeMut(blocks.node_mut(left)?).append(second, 0..cut - count);
            NodeMut(blocks.node_mut(right)?).drop_first(cut - count);
        }
        let lead = if number == cut && !is_before {
            item.key
        } else if cut < count {
            first.key(cut)
        } else {
            second.key(cut - count)
        };
        NodeMut(blocks.node_mut(parent)?).set_key(at + 1, lead);
        return Ok(Some(if is_before { (left, number) } else { (right, number - cut) }));
    }
    Ok(None)
}

/// The child `number` of `above`, which is its child `at`, with the one before it and with the one behind it: where
/// the left one is, and both.
fn beside(above: Node<'_>, at: usize, number: u32) -> [Option<(usize, u32, u32)>; 2] {
    let left = at.checked_sub(1).map(|at| (at, above.child(at), number));
    let right = (at + 1 < above.count()).then(|| (at, number, above.child(at + 1)));
    [left, right]
}

/// The node `number` beside one of `level` is of that level, too, and another, or the tree is damaged.
fn is_like(node: Node<'_>, number: u32, level: u8, is_same: bool) -> Result<(), FsError> {
    if node.level() != level || is_same {
        let what = "it is not like the node beside it";
        return Err(FsError::Structure { number, what });
    }
    Ok(())
}

/// Takes the item `key` out; false if there is none.
pub(crate) fn remove<D: Disk>(blocks: &mut Blocks<D>, key: Key) -> Result<bool, FsError> {
    let mut way = Way::new();
    let leaf = descend(blocks, key, &mut way)?;
    let (number, is_there) = Node(blocks.node(leaf)?).search(key);
    if is_there {
        NodeMut(blocks.node_mut(leaf)?).remove(number);
        join(blocks, leaf, &way)?;
    }
    Ok(is_there)
}

/// Puts a node that has become small together with one beside it, if they fit well into one.
fn join<D: Disk>(blocks: &mut Blocks<D>, small: u32, way: &[(u32, usize)]) -> Result<(), FsError> {
    let node = Node(blocks.node(small)?);
    let Some(((parent, at), above)) = way.split_last() else {
        if !node.is_leaf() && node.count() == 1 {
            // The only child takes the place of the root.
            let (child, level) = (node.child(0), node.level());
            below(blocks, Some(level), child)?;
            let bytes = Arc::clone(blocks.node(child)?);
            blocks.node_mut(small)?.copy_from_slice(&bytes);
            blocks.give(child);
        }
        return Ok(());
    };
    let (used, usable, level) = (node.used(), node.usable(), node.level());
    if used > usable / 4 {
        return Ok(());
    }
    let pairs = beside(Node(blocks.node(*parent)?), *at, small);
    for (at, left, right) in pairs.into_iter().flatten() {
        let number = if left == small { right } else { left };
        let other = Node(blocks.node(number)?);
        is_like(other, number, level, left == right)?;
        if other.used() + used > usable / 4 * 3 {
            continue;
        }
        let from = Arc::clone(blocks.node(right)?);
        let from = Node(&from);
        NodeMut(blocks.node_mut(left)?).append(from, 0..from.count());
        blocks.give(right);
        NodeMut(blocks.node_mut(*parent)?).remove(at + 1);
        return join(blocks, *parent, above);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
