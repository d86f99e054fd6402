//! The journal: what has changed in nodes since the store has them.
//!
//! A small operation changes a few items in each of several nodes. Who syncs after each would have all of these
//! nodes written, somewhere else each time. Instead the changes go to a few blocks of their own, many to a block, and
//! the nodes are written when the journal is full (a checkpoint), or at the end of a mount. The blocks of the journal
//! and all else that an operation has changed are of one transaction, so nothing is said here of whether it counts:
//! what is there, counts.
//!
//! Of a node that cannot be read it is known which files it is about; of a block of the journal it is not. So each has
//! two places, written in turn: what a block has said before the last transaction can be read if one of them is damaged,
//! and what a full block says is in both. Where a transaction has more than changes in the journal and new data, which
//! would not go with the nodes as they were before, both are written. `docs/internals/file-system-format.md` has the bytes.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use agewell_store::device::Disk;
use agewell_store::{Store, StoreError, Transaction};

use crate::FsError;
use crate::blocks::NumberMap;
use crate::format::{SUPERBLOCK, u64_at};
use crate::node::{Node, u32_at};
use crate::node_delta;
use crate::seeded::{SeededFault, is_seeded};

/// Blocks of a journal at most, both places of each; chosen by us: 4 MiB of blocks of 4 KiB, what a mail server changes in
/// some four thousand syncs. (mke2fs gives a file system of 512 MiB 16 MiB.)
pub(crate) const BLOCKS_MAX: u32 = 1024;

/// And at least.
const BLOCKS_MIN: u64 = 4;

/// Places of each block: the second half of the journal has the same as the first.
const COPIES: u32 = 2;

/// Of so many blocks of a file system, one may be the journal's; chosen by us.
const BLOCKS_SHARE: u64 = 125;

/// Nodes of which there are changes at most, so that memory, a checkpoint and mounting after a crash are bounded; chosen
/// by us: 8 MiB of blocks of 4 KiB.
pub(crate) const NODES_MAX: usize = 2048;

/// A node's changes take at most this part of a block, or it is written whole; chosen by us.
const CHANGES_SHARE: usize = 4;

/// Nodes that are to be forgotten at once at most, so that these take two blocks at most; chosen by us.
const FORGOTTEN_MAX: usize = 16;

const MAGIC: &[u8; 4] = b"AWFJ";
const HEADER_BYTES: usize = 16;
const INDEX_AT: usize = 4;
const USED_AT: usize = 8;

/// Bytes of an entry before its changes.
const ENTRY_BYTES: usize = 22;

/// Instead of the bytes of changes: what was said of the node before is forgotten.
const FORGOTTEN: u16 = u16::MAX;

/// The blocks of a journal in a new file system from `first` on: none if there is no room for one.
pub(crate) fn blocks_in<D: Disk>(store: &Store<D>, first: u32) -> Range<u32> {
    let share = store.geometry().capacity_blocks() / BLOCKS_SHARE;
    // They are freed at once.
    let most = BLOCKS_MAX.min(store.transaction_frees_max());
    let blocks = (share.max(BLOCKS_MIN).min(u64::from(most)) as u32) / COPIES * COPIES;
    first..first + blocks
}

/// Nodes for which room is made, and that are read, at once; chosen by us: as many as a group that is read together has
/// at most.
pub(crate) const AT_ONCE: usize = 512;

/// Where the nodes of a checkpoint go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Where new data goes.
    Anywhere,
    /// One behind the other; room is made for them.
    Together,
}

/// Blocks of half of the journal in `range`.
fn half(range: &Range<u32>) -> u32 {
    range.len() as u32 / COPIES
}

/// The place `copy` of the block `index` of the journal in `range`.
fn place(range: &Range<u32>, copy: u32, index: u32) -> u32 {
    range.start + copy * half(range) + index
}

/// A node of which there are changes in the journal, as they leave it.
#[derive(Debug)]
struct Changed {
    bytes: Arc<[u8]>,
    digest: u64,
}

/// What a transaction puts into the journal.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Entries.
    bytes: Vec<u8>,
    /// Where in `bytes` each ends.
    ends: Vec<usize>,
    changed: Vec<(u32, Changed)>,
    forgotten: Vec<u32>,
}

impl Batch {
    /// Nodes of which there are changes.
    pub(crate) fn nodes(&self) -> impl ExactSizeIterator<Item = u32> {
        self.changed.iter().map(|(number, _)| *number)
    }
}

/// Where a batch comes.
#[derive(Debug)]
pub(crate) struct Placed {
    /// Blocks to be written.
    pub(crate) blocks: Vec<(u32, Vec<u8>)>,
    index: u32,
    last: Vec<u8>,
    copy: u32,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    range: Range<u32>,
    block_bytes: usize,
    /// The block with the last entries, from the beginning of `range`, and what is in it: nothing if there are none.
    index: u32,
    last: Vec<u8>,
    /// In which of its places it was written last.
    copy: u32,
    nodes: NumberMap<u32, Changed>,
    checkpoints: u64,
}

/// What is in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Journaled {
    /// Nodes of which it has changes.
    pub nodes: u64,
    /// Its blocks that are in use, both places of each.
    pub blocks: u64,
    /// Its blocks.
    pub blocks_max: u64,
    /// Times that the nodes were written since it was mounted.
    pub checkpoints: u64,
}

impl Journal {
    /// Of the blocks `range`, with nothing in it.
    pub(crate) fn new(range: Range<u32>, block_bytes: usize) -> Self {
        Self { range, block_bytes, ..Self::default() }
    }

    /// Whether there is one.
    pub(crate) fn is_there(&self) -> bool {
        !self.range.is_empty()
    }

    /// Blocks that are kept for it.
    pub(crate) fn blocks(&self) -> u64 {
        self.range.len() as u64
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    /// The node `number`, if the store does not have it as it is.
    pub(crate) fn node(&self, number: u32) -> Option<&Arc<[u8]>> {
        self.nodes.get(&number).map(|node| &node.bytes)
    }

    /// The bytes of changes to one node at most.
    fn changes_max(&self) -> usize {
        self.block_bytes / CHANGES_SHARE
    }

    /// Puts into `batch` what makes of the node `number`, which was `before`, the one that it is now; false if that is
    /// not less than the node.
    pub(crate) fn change(
        &self,
        batch: &mut Batch,
        number: u32,
        before: &[u8],
        after: &Arc<[u8]>,
    ) -> bool {
        let begin = batch.bytes.len();
        batch.bytes.resize(begin + ENTRY_BYTES, 0);
        let most = self.changes_max();
        if !node_delta::encode(Node(before), Node(after), most, &mut batch.bytes) {
            batch.bytes.truncate(begin);
            return false;
        }
        let known = self.nodes.get(&number);
        let was = known.map_or_else(|| node_delta::digest(Node(before)), |known| known.digest);
        let digest = node_delta::digest(Node(after));
        let length = (batch.bytes.len() - begin - ENTRY_BYTES) as u16;
        batch.put_head(begin, number, length, [was, digest]);
        batch.changed.push((number, Changed { bytes: Arc::clone(after), digest }));
        true
    }

    /// Puts into `batch` that what the journal says of the node `number` is of no use, if it says something.
    pub(crate) fn forget(&self, batch: &mut Batch, number: u32) {
        if !self.nodes.contains_key(&number) {
            return;
        }
        batch.forgotten.push(number);
        if !is_seeded(SeededFault::JournalNotForgotten) {
            let begin = batch.bytes.len();
            batch.bytes.resize(begin + ENTRY_BYTES, 0);
            batch.put_head(begin, number, FORGOTTEN, [0, 0]);
        }
    }

    /// Where `batch` comes, to both places if that must not be lost with one of them; none if there is no room for it in
    /// the journal.
    pub(crate) fn place(&self, batch: &Batch, twice: bool) -> Option<Placed> {
        let nodes = self.nodes.len() + batch.changed.len();
        if batch.forgotten.len() > FORGOTTEN_MAX || nodes > NODES_MAX {
            return None;
        }
        let (index, copy) = (self.index, self.copy);
        let mut placed = Placed { blocks: Vec::new(), index, last: self.last.clone(), copy };
        if self.last.is_empty() {
            placed.begin(0);
        } else if self.last.len() + batch.bytes.len() > self.block_bytes {
            // The other place has what was said before the last transaction.
            placed.put(self, 1 - copy);
            placed.begin(index + 1);
        } else {
            placed.copy = 1 - copy;
        }
        let mut begin = 0;
        for end in &batch.ends {
            if placed.last.len() + end - begin > self.block_bytes {
                (0..COPIES).for_each(|copy| placed.put(self, copy));
                placed.begin(placed.index + 1);
            }
            placed.last.extend(&batch.bytes[begin..*end]);
            begin = *end;
        }
        if twice {
            placed.put(self, 1 - placed.copy);
        }
        placed.put(self, placed.copy);
        (placed.index < half(&self.range)).then_some(placed)
    }

    /// Whether `batch` is better written as whole nodes than where it was `placed`, and may be: as long as there is
    /// nothing in the journal. From then on each transaction writes it, so that what was said before the last one is
    /// always there twice.
    pub(crate) fn is_dear(&self, batch: &Batch, placed: &Placed) -> bool {
        self.is_empty() && placed.blocks.len() >= batch.changed.len()
    }

    /// `batch` is where it was placed.
    pub(crate) fn took(&mut self, batch: Batch, placed: Placed) {
        (self.index, self.last, self.copy) = (placed.index, placed.last, placed.copy);
        for number in batch.forgotten {
            self.nodes.remove(&number);
        }
        self.nodes.extend(batch.changed);
    }

    /// The blocks that the store may have of it.
    pub(crate) fn used(&self) -> Vec<u32> {
        let blocks = if self.is_empty() { 0 } else { self.index + 1 };
        let of = |copy| (0..blocks).map(move |index| (copy, index));
        (0..COPIES).flat_map(of).map(|(copy, index)| place(&self.range, copy, index)).collect()
    }

    /// What is in it.
    pub(crate) fn state(&self) -> Journaled {
        Journaled {
            nodes: self.nodes.len() as u64,
            blocks: self.used().len() as u64,
            blocks_max: self.blocks(),
            checkpoints: self.checkpoints,
        }
    }

    /// Nodes that the store does not have as they are.
    pub(crate) fn nodes(&self) -> Vec<(u32, Arc<[u8]>)> {
        self.nodes.iter().map(|(number, node)| (*number, Arc::clone(&node.bytes))).collect()
    }

    /// The store has all nodes as they are, and its blocks no more.
    pub(crate) fn clear(&mut self) {
        self.checkpoints += 1;
        self.index = 0;
        self.last.clear();
        self.nodes.clear();
    }
}

impl Batch {
    /// The entry that begins at `begin` is whole but for this.
    fn put_head(&mut self, begin: usize, number: u32, length: u16, digests: [u64; 2]) {
        let head = &mut self.bytes[begin..begin + ENTRY_BYTES];
        head[..4].copy_from_slice(&number.to_le_bytes());
        head[4..6].copy_from_slice(&length.to_le_bytes());
        head[6..14].copy_from_slice(&digests[0].to_le_bytes());
        head[14..22].copy_from_slice(&digests[1].to_le_bytes());
        self.ends.push(self.bytes.len());
    }
}

impl Placed {
    /// The block `index` is the last from here on, and has nothing yet.
    fn begin(&mut self, index: u32) {
        (self.index, self.copy) = (index, 0);
        self.last.clear();
        self.last.extend(MAGIC);
        self.last.extend(index.to_le_bytes());
        self.last.resize(HEADER_BYTES, 0);
    }

    /// The last block is to be written as it is, to its place `copy`.
    fn put(&mut self, journal: &Journal, copy: u32) {
        let used = self.last.len() as u32;
        self.last[USED_AT..USED_AT + 4].copy_from_slice(&used.to_le_bytes());
        let mut block = self.last.clone();
        block.resize(journal.block_bytes, 0);
        let number = place(&journal.range, copy, self.index);
        self.blocks.push((number, block));
    }
}

/// What a journal that was found makes of nodes.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    /// Nodes that the store has otherwise.
    pub(crate) nodes: BTreeMap<u32, Vec<u8>>,
    /// Blocks of the journal that the store has.
    pub(crate) blocks: Vec<u32>,
    /// What it said last may be lost: a block that is damaged, and why.
    pub(crate) lost: Option<(u32, &'static str)>,
    /// Nodes that it is about and that are damaged.
    pub(crate) damaged: Vec<u32>,
    /// Nodes that it is about and that it does not fit, and why.
    pub(crate) unfit: BTreeMap<u32, &'static str>,
}

impl Replayed {
    /// Has the store have the nodes, and the journal no more; those that are damaged as none that can be used, as they
    /// are not what they were before either.
    ///
    /// # Errors
    /// If the journal does not fit a node, with nothing changed; if the store fails.
    pub(crate) fn write<D: Disk>(self, store: &Store<D>) -> Result<(), FsError> {
        if let Some((number, what)) = self.unfit.into_iter().next() {
            return Err(damaged(number, what));
        }
        let nothing = vec![0; store.geometry().block_bytes as usize];
        let gone = self.damaged.into_iter().map(|number| (number, nothing.clone()));
        let mut nodes: Vec<_> = self.nodes.into_iter().chain(gone).collect();
        Ok(write_nodes(store, &mut nodes, self.blocks, Placement::Anywhere)?)
    }
}

/// An entry about a node: what it was, what it becomes, by digests, and the changes.
struct Change {
    before: u64,
    after: u64,
    block: usize,
    bytes: Range<usize>,
}

fn damaged(number: u32, what: &'static str) -> FsError {
    FsError::Structure { number, what }
}

/// What the journal in the blocks `range` makes of nodes.
///
/// # Errors
/// If it is damaged, or a node that it is about.
pub(crate) fn replay<D: Disk>(store: &Store<D>, range: &Range<u32>) -> Result<Replayed, FsError> {
    let blocks_end = store.geometry().blocks;
    if range.end > blocks_end {
        return Err(damaged(SUPERBLOCK, "the journal is beyond the end of the store"));
    }
    let held: Vec<u32> = range.clone().filter(|number| store.holds(*number)).collect();
    let is_there = |index: &u32| (0..COPIES).any(|copy| held.contains(&place(range, copy, *index)));
    let count = (0..half(range)).take_while(is_there).count() as u32;
    if let Some(behind) = (count..half(range)).find(is_there) {
        let behind = place(range, 0, behind);
        return Err(damaged(behind, "blocks of the journal before it are not there"));
    }
    let mut lost = None;
    let mut blocks = Vec::with_capacity(count as usize);
    let mut changes: BTreeMap<u32, Vec<Change>> = BTreeMap::new();
    for index in 0..count {
        if (index as usize).is_multiple_of(AT_ONCE / COPIES as usize) {
            let some = index..count.min(index + AT_ONCE as u32 / COPIES);
            let some =
                some.flat_map(|index| (0..COPIES).map(move |copy| place(range, copy, index)));
            store.read_ahead(
                &some.filter(|number| held.contains(number)).collect::<Vec<_>>(),
                &[],
                0,
            );
        }
        let mut newest: Option<Vec<u8>> = None;
        let mut fault = None;
        let copies = if is_seeded(SeededFault::JournalOnce) { 1 } else { COPIES };
        for number in (0..copies).map(|copy| place(range, copy, index)) {
            if !held.contains(&number) {
                continue;
            }
            match read(store, number, index)? {
                Ok(block) => {
                    // What was said later is longer.
                    let is_newer = newest.as_ref().is_none_or(|newest| used(newest) < used(&block));
                    newest = if is_newer { Some(block) } else { newest };
                }
                Err(what) => fault = Some((number, what)),
            }
        }
        let is_last = index + 1 == count;
        // In one that is full both places say the same.
        lost = fault.filter(|_| is_last);
        let Some(block) = newest else {
            let (number, what) = fault.unwrap_or((place(range, 0, index), "it is not there"));
            if is_last {
                break;
            }
            return Err(damaged(number, what));
        };
        let (number, end) = (place(range, 0, index), used(&block));
        let mut at = HEADER_BYTES;
        while at < end {
            let head = block.get(at..at + ENTRY_BYTES).filter(|_| at + ENTRY_BYTES <= end);
            let head = head.ok_or(damaged(number, "an entry of the journal is cut off"))?;
            let node = u32_at(head, 0);
            let length = u16::from_le_bytes([head[4], head[5]]);
            let (before, after) = (u64_at(head, 6), u64_at(head, 14));
            at += ENTRY_BYTES;
            if length == FORGOTTEN {
                changes.remove(&node);
                continue;
            }
            let bytes = at..at + usize::from(length);
            at = bytes.end;
            if at > end {
                return Err(damaged(number, "an entry of the journal is cut off"));
            }
            let block = index as usize;
            changes.entry(node).or_default().push(Change { before, after, block, bytes });
            if changes.len() > NODES_MAX {
                return Err(damaged(number, "the journal is about more nodes than it may be"));
            }
        }
        blocks.push(block);
    }
    if is_seeded(SeededFault::JournalNotReplayed) {
        changes.clear();
    }
    let mut replayed = Replayed { blocks: held, lost, ..Replayed::default() };
    replay_nodes(store, changes, &blocks, &mut replayed)?;
    Ok(replayed)
}

/// Bytes of a block of the journal that say something.
fn used(block: &[u8]) -> usize {
    u32_at(block, USED_AT) as usize
}

/// The block `number` of the store, which is to be the block `index` of the journal; why it cannot be read, if it
/// cannot.
fn read<D: Disk>(
    store: &Store<D>,
    number: u32,
    index: u32,
) -> Result<Result<Vec<u8>, &'static str>, FsError> {
    let mut block = vec![0; store.geometry().block_bytes as usize];
    match store.read(number, &mut block) {
        Ok(_) => {}
        Err(StoreError::Damaged { .. }) => return Ok(Err("it is not what was written")),
        Err(StoreError::Device { .. }) => return Ok(Err("it cannot be read")),
        Err(error) => return Err(error.into()),
    }
    let is_one = &block[..4] == MAGIC
        && u32_at(&block, INDEX_AT) == index
        && (HEADER_BYTES..=block.len()).contains(&used(&block));
    // It may be somebody else's, if the superblock is not right.
    if is_one { Ok(Ok(block)) } else { Err(damaged(number, "it is no block of the journal")) }
}

/// The nodes that `changes` in `blocks` are about, as they leave them.
fn replay_nodes<D: Disk>(
    store: &Store<D>,
    changes: BTreeMap<u32, Vec<Change>>,
    blocks: &[Vec<u8>],
    into: &mut Replayed,
) -> Result<(), FsError> {
    let blocks_end = store.geometry().blocks;
    if let Some((beyond, _)) = changes.last_key_value().filter(|last| *last.0 >= blocks_end) {
        return Err(damaged(*beyond, "the journal is about it, and it is none"));
    }
    // Read as they lie on the device.
    let places = store.places_of(changes.keys().copied());
    let mut in_order: Vec<_> = places.into_iter().zip(changes).collect();
    in_order.sort_by_key(|(place, _)| *place);
    for (at, (_, (number, changes))) in in_order.iter().enumerate() {
        if at.is_multiple_of(AT_ONCE) {
            let some = &in_order[at..(at + AT_ONCE).min(in_order.len())];
            let some: Vec<u32> = some.iter().map(|(_, (number, _))| *number).collect();
            store.read_ahead(&some, &[], 0);
        }
        let number = *number;
        let mut bytes = vec![0; store.geometry().block_bytes as usize];
        match store.read(number, &mut bytes) {
            Ok(_) => {}
            Err(StoreError::Damaged { .. }) => {
                into.damaged.push(number);
                continue;
            }
            // Later it may be read, and then it would be as it was before.
            Err(error) => return Err(error.into()),
        }
        match replayed_node(&mut bytes, changes, blocks) {
            Ok(()) => drop(into.nodes.insert(number, bytes)),
            Err(what) => drop(into.unfit.insert(number, what)),
        }
    }
    Ok(())
}

/// Makes of the node in `bytes` the one that `changes` in `blocks` lead to.
fn replayed_node(
    bytes: &mut [u8],
    changes: &[Change],
    blocks: &[Vec<u8>],
) -> Result<(), &'static str> {
    if Node(bytes).fault().is_some() {
        return Err("the journal is about it, and it is no node");
    }
    let mut is_now = node_delta::digest(Node(bytes));
    for change in changes {
        // A checkpoint that was cut short has written it as it is after one of them.
        if change.before != is_now {
            continue;
        }
        let is_sound = node_delta::apply(bytes, &blocks[change.block][change.bytes.clone()])
            && Node(bytes).fault().is_none();
        is_now = if is_sound { node_delta::digest(Node(bytes)) } else { !change.after };
        if is_now != change.after {
            return Err("what the journal says of it does not fit it");
        }
    }
    match changes.last() {
        Some(last) if last.after != is_now => Err("what the journal says of it is of another time"),
        _ => Ok(()),
    }
}

/// Has the store have `nodes`, and the `blocks` of the journal no more. The journal is as good until the last of them
/// is there: what it says is of each either as it is, or as it was.
pub(crate) fn write_nodes<D: Disk>(
    store: &Store<D>,
    nodes: &mut [(u32, impl AsRef<[u8]>)],
    blocks: Vec<u32>,
    placement: Placement,
) -> Result<(), StoreError> {
    // In the order of the tree, level by level, so that siblings come to lie together.
    nodes.sort_by_cached_key(|(number, bytes)| {
        let node = Node(bytes.as_ref());
        let first = if node.count() > 0 { node.key(0) } else { 0 };
        (Reverse(node.level()), first, *number)
    });
    let free = Transaction { writes: Vec::new(), frees: blocks };
    if is_seeded(SeededFault::JournalFreedFirst) {
        store.write(&free)?;
    }
    let most = store.transaction_blocks_max() as usize;
    for some in nodes.chunks(AT_ONCE) {
        if placement == Placement::Together {
            // Where there is none they go elsewhere.
            store.make_room_together(some.len() as u32, &mut || true)?;
        }
        for piece in some.chunks(most) {
            let writes = piece.iter().map(|(number, bytes)| (*number, bytes.as_ref())).collect();
            match placement {
                Placement::Together => store.write_together(writes)?,
                Placement::Anywhere => store.write(&Transaction { writes, frees: Vec::new() })?,
            }
        }
    }
    if is_seeded(SeededFault::JournalFreedFirst) {
        return Ok(());
    }
    store.write(&free)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BLOCK_BYTES: usize = 1024;

    /// A batch of entries of `lengths` bytes, about nodes that were not there before.
    fn batch(lengths: &[usize], next: &mut u32) -> Batch {
        let mut batch = Batch::default();
        for length in lengths {
            *next += 1;
            let begin = batch.bytes.len();
            batch.bytes.resize(begin + ENTRY_BYTES + length, *next as u8);
            batch.put_head(begin, *next, *length as u16, [0, u64::from(*next)]);
        }
        batch
    }

    /// The entries in `blocks`, without the block `lost`.
    fn entries(range: &Range<u32>, blocks: &BTreeMap<u32, Vec<u8>>, lost: Option<u32>) -> Vec<u8> {
        let mut entries = Vec::new();
        for index in 0..half(range) {
            let places = (0..COPIES).map(|copy| place(range, copy, index));
            let found = places.filter(|at| Some(*at) != lost).filter_map(|at| blocks.get(&at));
            let Some(block) = found.max_by_key(|block| used(block)) else { break };
            entries.extend(&block[HEADER_BYTES..used(block)]);
        }
        entries
    }

    proptest! {
        /// Whichever block is lost, all but the last batch is there; and all of it if none is.
        #[test]
        fn what_was_said_before_the_last_time_is_there_twice(
            batches in prop::collection::vec(
                (prop::collection::vec(0..BLOCK_BYTES / CHANGES_SHARE, 0..9), any::<bool>()),
                1..40,
            ),
        ) {
            let range = 7..47;
            let mut journal = Journal::new(range.clone(), BLOCK_BYTES);
            let (mut blocks, mut said, mut next) = (BTreeMap::new(), Vec::new(), 0);
            for (lengths, twice) in batches {
                let batch = batch(&lengths, &mut next);
                let Some(placed) = journal.place(&batch, twice) else {
                    prop_assert!(journal.used().len() > range.len() / 2);
                    blocks.clear();
                    said.clear();
                    journal.clear();
                    continue;
                };
                let before = said.clone();
                said.extend(&batch.bytes);
                for (number, block) in &placed.blocks {
                    prop_assert_eq!(block.len(), BLOCK_BYTES);
                    blocks.insert(*number, block.clone());
                }
                journal.took(batch, placed);
                let all = journal.used();
                prop_assert!(blocks.keys().all(|number| all.contains(number)));
                prop_assert_eq!(&entries(&range, &blocks, None), &said);
                for lost in blocks.keys() {
                    let left = entries(&range, &blocks, Some(*lost));
                    let least = if twice { &said } else { &before };
                    prop_assert!(left.starts_with(least), "block {}", lost);
                }
            }
        }
    }
}
