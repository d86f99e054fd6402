//! Going through the nodes of a tree of which nothing is taken for granted.

use agewell_store::device::Disk;
use agewell_store::{Store, StoreError};

use super::{Found, Problem};
use crate::node::{Key, Node};
use crate::{FsError, tree};

/// Reads a block; why it cannot be used, if it cannot.
pub(super) fn read<D: Disk>(
    store: &Store<D>,
    block: u32,
    into: &mut [u8],
) -> Result<Option<&'static str>, FsError> {
    if block >= store.geometry().blocks {
        return Ok(Some("it is beyond the end of the store"));
    }
    match store.read(block, into) {
        Ok(true) => Ok(None),
        Ok(false) => Ok(Some("it is not there")),
        Err(StoreError::Damaged { .. }) => Ok(Some("it is not what was written")),
        Err(StoreError::Device { .. }) => Ok(Some("it cannot be read")),
        Err(error) => Err(error.into()),
    }
}

/// A node that is to be looked at: its block, its level if that is known, and the keys that it may have.
struct Task {
    block: u32,
    level: Option<u8>,
    from: Key,
    to: Option<Key>,
}

/// Looks at all nodes that can be reached; `see` is shown their items, in the order of their keys.
pub(super) fn walk<D: Disk>(
    store: &Store<D>,
    found: &mut Found,
    mut see: impl FnMut(&mut Found, Key, &[u8]),
) -> Result<(), FsError> {
    let mut bytes = vec![0; store.geometry().block_bytes as usize];
    let mut tasks = vec![Task { block: tree::ROOT, level: None, from: 0, to: None }];
    while let Some(task) = tasks.pop() {
        let lost = |found: &mut Found, what| {
            found.is_partial = true;
            found.tell(0, Problem::Node { block: task.block, what });
        };
        let fault = if let Some(node) = found.journaled.get(&task.block) {
            bytes.copy_from_slice(node);
            None
        } else {
            let fault = read(store, task.block, &mut bytes)?;
            fault.or_else(|| found.unfit.get(&task.block).copied())
        };
        if task.block < store.geometry().blocks && found.claim(task.block) {
            // Each is looked at once, so that this ends.
            lost(found, "two nodes name it");
            continue;
        }
        let node = Node(&bytes);
        if let Some(what) = fault.or_else(|| node.fault()) {
            lost(found, what);
            continue;
        }
        if task.level.is_some_and(|level| node.level() != level) {
            lost(found, "it is not below the node that names it");
            continue;
        }
        found.checked.nodes += 1;
        let keys = (node.count() > 0).then(|| (node.key(0), node.key(node.count() - 1)));
        let is_below = |key: Key| task.to.is_none_or(|to| key < to);
        // The first child has what is before its key too.
        let first_fits = keys.is_none_or(|keys| !node.is_leaf() || keys.0 >= task.from);
        if !first_fits || !keys.is_none_or(|keys| is_below(keys.1)) {
            lost(found, "it has keys that belong elsewhere");
            continue;
        }
        if node.is_leaf() {
            for number in 0..node.count() {
                see(found, node.key(number), node.value(number));
            }
            continue;
        }
        // The last first, as the last task is done next.
        for number in (0..node.count()).rev() {
            let from = if number == 0 { task.from } else { node.key(number) };
            let to = if number + 1 < node.count() { Some(node.key(number + 1)) } else { task.to };
            let level = Some(node.level() - 1);
            tasks.push(Task { block: node.child(number), level, from, to });
        }
    }
    Ok(())
}
