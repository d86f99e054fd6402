//! Blocks of the file system: nodes kept in memory, what was changed since the last transaction, which
//! numbers are free, and what an operation must take back when it fails.
//!
//! Everything that operations change waits here and becomes one transaction of the store, so that a crash
//! leaves whole operations, in their order. An operation is begun, and then kept or undone.

mod committing;
mod foreseeing;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::Arc;

use agewell_store::device::Disk;
use agewell_store::{KeptBlocks, Store, StoreError};

use crate::FsError;
use crate::journal::{Journal, Journaled};
use crate::leaves_ahead::LeavesAhead;
use crate::node::Node;
use crate::numbers::Numbers;
use crate::observed::CallRead;
use crate::observed::Observer;
use crate::seeded::{SeededFault, is_seeded};
use crate::together::Groups;
use crate::traced::{Asked, Traced};

/// Blocks that hold what describes files may take these, which data may not, so that files can always be
/// deleted, truncated and written over; chosen by us: more than the longest operation takes.
const KEPT_BLOCKS: u64 = 64;

/// Names that become longer, and what a file must be given to become shorter, may take them up to these:
/// the rest is for what nothing is removed without; chosen by us.
const KEPT_FOR_REMOVING_BLOCKS: u64 = 40;

/// And one more for each so many free ones, for what describes the data that may still come: with an item
/// for each of its blocks a node describes 126 of them.
const DESCRIBED_BLOCKS: u64 = 126;

/// Bytes of blocks that were written in part and are kept when the store has them; chosen by us: the ends of
/// two thousand files.
const RECENT_BYTES_MAX: usize = 8 << 20;

/// Numbers of blocks are no secret and come from ourselves: a multiplication spreads them well enough.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        // 2^64 over the golden ratio (Knuth, The Art of Computer Programming 3, 6.4); its high bits are
        // the good ones, and tables take the low ones.
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }
}

pub(crate) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;
pub(crate) type NumberSet<K> = HashSet<K, BuildHasherDefault<NumberHasher>>;

/// A node in memory.
#[derive(Debug)]
struct Cached {
    bytes: Arc<[u8]>,
    /// Whether it differs from what was handed over.
    is_changed: bool,
    /// What it was then, if it was there and differs.
    before: Option<Arc<[u8]>>,
    /// Whether it was used since the hand of the clock last came by.
    is_used: bool,
    /// Whether it was read with others and nobody has asked for it yet.
    is_foreseen: bool,
}

/// Which blocks may be taken for data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Those that are free.
    Free,
    /// Those that were promised to the file.
    Promised,
    /// Of those that are kept, too: a file becomes shorter.
    Kept,
}

/// A node in memory before an operation: its bytes, whether it differed from what was handed over, and what that was.
type Held = (Arc<[u8]>, bool, Option<Arc<[u8]>>);

/// What an operation has done, to be taken back.
#[derive(Debug)]
enum Step {
    Taken { number: u32, was_freed: bool },
    Given { number: u32, was_fresh: bool },
    Data { number: u32, before: Option<Box<[u8]>> },
    Node { number: u32, before: Option<Held> },
    Reserved { before: u64 },
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Blocks<D> {
    store: Arc<Store<D>>,
    block_bytes: usize,
    numbers: Numbers,
    /// Blocks that the store may have, and numbers of them.
    store_capacity: u64,
    numbers_end: u32,
    nodes: NumberMap<u32, Cached>,
    /// Numbers of all nodes in memory, round which the hand of the clock goes.
    clock: Vec<u32>,
    hand: usize,
    nodes_max: usize,
    changed_nodes: Vec<u32>,
    journal: Journal,
    /// Data that no transaction has had yet.
    data: NumberMap<u32, Box<[u8]>>,
    /// Of `data`, blocks that were written in part.
    partial: NumberSet<u32>,
    /// Such blocks that the store has: the ends of files, mostly. The kernel keeps pages that were written
    /// whole, and asks for the others when a file that was just written is read.
    recent: KeptBlocks<BuildHasherDefault<NumberHasher>>,
    /// Whether the store was asked for data.
    has_asked: Cell<bool>,
    /// Freed, and still in the store.
    freed: NumberSet<u32>,
    /// Taken, and not in the store yet.
    fresh: NumberSet<u32>,
    steps: Vec<Step>,
    /// Nodes whose state before the operation is in `steps`.
    noted: NumberSet<u32>,
    /// Buffers of data to be used again.
    spare: Vec<Box<[u8]>>,
    /// Where the next data goes.
    pub(crate) next_data: u32,
    /// Blocks that are promised to files and not written yet.
    reserved: u64,
    /// Leaves that are read in a row.
    leaves: LeavesAhead,
    /// What was put together.
    pub(crate) groups: Groups,
    /// What notes what is read.
    pub(crate) observer: Observer,
    /// Transactions handed over that no flush has covered.
    pub(crate) is_unsynced: bool,
    /// What is asked of the store, if somebody wants to know.
    pub(crate) traced: RefCell<Option<Traced>>,
}

impl<D: Disk> Blocks<D> {
    /// Of `store`, in which `held` are.
    ///
    /// The blocks of the journal are `journal`, and nothing is in them.
    pub(crate) fn new(store: Arc<Store<D>>, cache_bytes: u64, journal: Range<u32>) -> Self {
        let geometry = store.geometry();
        let mut numbers = Numbers::of(geometry.blocks, store.held_blocks());
        for number in journal.clone() {
            // Its room is never anybody else's.
            numbers.take(number);
        }
        let block_bytes = geometry.block_bytes as usize;
        Self {
            journal: Journal::new(journal, block_bytes),
            block_bytes,
            numbers,
            store_capacity: geometry.capacity_blocks(),
            numbers_end: geometry.blocks,
            nodes: NumberMap::default(),
            clock: Vec::new(),
            hand: 0,
            nodes_max: (cache_bytes / block_bytes as u64).max(256) as usize,
            changed_nodes: Vec::new(),
            data: NumberMap::default(),
            partial: NumberSet::default(),
            recent: KeptBlocks::new(RECENT_BYTES_MAX),
            has_asked: Cell::new(false),
            freed: NumberSet::default(),
            fresh: NumberSet::default(),
            steps: Vec::new(),
            noted: NumberSet::default(),
            spare: Vec::new(),
            next_data: 0,
            reserved: 0,
            leaves: LeavesAhead::default(),
            groups: Groups::default(),
            observer: Observer::default(),
            is_unsynced: false,
            traced: RefCell::default(),
            store,
        }
    }

    pub(crate) fn store(&self) -> &Arc<Store<D>> {
        &self.store
    }

    pub(crate) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Whether `number` is in use.
    pub(crate) fn is_used(&self, number: u32) -> bool {
        number < self.numbers_end && self.numbers.is_used(number)
    }

    /// Numbers in use.
    #[cfg(test)]
    pub(crate) fn used(&self) -> u64 {
        self.numbers.used()
    }

    /// Nodes in memory.
    #[cfg(test)]
    pub(crate) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Whether data of `number` waits for a transaction.
    pub(crate) fn has_data(&self, number: u32) -> bool {
        self.data.contains_key(&number)
    }

    /// Notes what is asked of the store.
    fn trace(&self, asked: Asked, blocks: impl IntoIterator<Item = u32>) {
        if let Some(traced) = &mut *self.traced.borrow_mut() {
            traced.note(asked, blocks);
        }
    }

    /// Takes in that the store has grown.
    pub(crate) fn grow(&mut self) {
        let geometry = self.store.geometry();
        let numbers = std::mem::replace(&mut self.numbers, Numbers::new(0));
        self.numbers = numbers.grown(geometry.blocks);
        (self.store_capacity, self.numbers_end) = (geometry.capacity_blocks(), geometry.blocks);
    }

    // --- room ---------------------------------------------------------------------------------------

    /// Blocks that are free, promised ones among them.
    fn free(&self) -> u64 {
        self.store_capacity.saturating_sub(self.numbers.used())
    }

    /// Blocks of data that may still be written.
    pub(crate) fn free_for_data(&self) -> u64 {
        let free = self.free().saturating_sub(self.reserved);
        let kept = KEPT_BLOCKS + free / (DESCRIBED_BLOCKS + 1);
        if is_seeded(SeededFault::NothingKept) { free } else { free.saturating_sub(kept) }
    }

    /// Blocks that may still be taken by what is not to fail when data finds no room any more.
    pub(crate) fn free_for_changes(&self) -> u64 {
        self.free().saturating_sub(KEPT_FOR_REMOVING_BLOCKS)
    }

    /// What is in the journal.
    pub(crate) fn journaled(&self) -> Journaled {
        self.journal.state()
    }

    /// Blocks of data that could be written if there were no files.
    pub(crate) fn capacity(&self) -> u64 {
        let all = self.store_capacity - self.journal.blocks();
        all.saturating_sub(KEPT_BLOCKS + all / (DESCRIBED_BLOCKS + 1))
    }

    pub(crate) fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Blocks that are promised from now on.
    pub(crate) fn set_reserved(&mut self, blocks: u64) {
        self.steps.push(Step::Reserved { before: self.reserved });
        self.reserved = blocks;
    }

    /// Promises are as they were read.
    pub(crate) fn found_reserved(&mut self, blocks: u64) {
        self.reserved = blocks;
    }

    // --- numbers ------------------------------------------------------------------------------------

    fn take(&mut self, number: u32) {
        self.numbers.take(number);
        let was_freed = self.freed.remove(&number);
        if !was_freed {
            self.fresh.insert(number);
        }
        self.steps.push(Step::Taken { number, was_freed });
    }

    /// Gives `number` back, and what is in it.
    pub(crate) fn give(&mut self, number: u32) {
        if let Some(before) = self.data.remove(&number) {
            self.steps.push(Step::Data { number, before: Some(before) });
        }
        if self.nodes.contains_key(&number) {
            self.note(number);
            self.forget_node(number);
        }
        self.recent.remove(number);
        self.numbers.give(number);
        let was_fresh = self.fresh.remove(&number);
        if !was_fresh {
            self.freed.insert(number);
        }
        self.steps.push(Step::Given { number, was_fresh });
    }

    /// Takes up to `most` numbers that follow one another for data, of `whose` blocks.
    pub(crate) fn take_for_data(&mut self, most: u32, whose: Whose) -> Result<(u32, u32), FsError> {
        let free = match whose {
            Whose::Free => self.free_for_data(),
            Whose::Promised => self.free(),
            Whose::Kept => self.free_for_changes(),
        };
        let most = most.min(free.min(u64::from(u32::MAX)) as u32);
        let first = self.numbers.next_free(self.next_data);
        let (Some(first), 1..) = (first, most) else { return Err(FsError::NO_ROOM) };
        let count = self.numbers.free_run(first, most);
        (first..first + count).for_each(|number| self.take(number));
        self.next_data = first + count;
        Ok((first, count))
    }

    /// Takes a number for a node, which is to be filled.
    pub(crate) fn take_node(&mut self) -> Result<u32, FsError> {
        let number = if self.free() == 0 { None } else { self.numbers.next_free(0) };
        let number = number.ok_or(FsError::NO_ROOM)?;
        self.take(number);
        self.steps.push(Step::Node { number, before: None });
        self.noted.insert(number);
        self.keep_node(number, (vec![0; self.block_bytes].into(), true, None));
        Ok(number)
    }

    // --- nodes --------------------------------------------------------------------------------------

    /// The node `number` was read, and is `bytes`.
    pub(crate) fn found_node(&mut self, number: u32, bytes: Vec<u8>) {
        self.keep_node(number, (bytes.into(), false, None));
    }

    fn keep_node(&mut self, number: u32, (bytes, is_changed, before): Held) {
        let cached = Cached { bytes, is_changed, before, is_used: true, is_foreseen: false };
        if self.nodes.insert(number, cached).is_none() {
            self.clock.push(number);
        }
        if is_changed {
            self.changed_nodes.push(number);
        }
    }

    fn forget_node(&mut self, number: u32) {
        self.nodes.remove(&number);
        // Its place on the clock goes when the hand comes by.
    }

    /// Drops nodes that were not used lately, if there are too many.
    pub(crate) fn drop_nodes(&mut self) {
        while self.clock.len() > self.nodes_max {
            let mut looked_at = 0;
            let before = self.clock.len();
            while looked_at < 2 * self.clock.len() && self.clock.len() == before {
                self.hand = if self.hand < self.clock.len() { self.hand } else { 0 };
                let number = self.clock[self.hand];
                match self.nodes.get_mut(&number) {
                    Some(node) if node.is_changed || node.is_used => {
                        node.is_used = false;
                        self.hand += 1;
                    }
                    found => {
                        if found.is_some() {
                            self.nodes.remove(&number);
                        }
                        self.clock.swap_remove(self.hand);
                    }
                }
                looked_at += 1;
            }
            if self.clock.len() == before {
                return;
            }
        }
    }

    /// The node `number`.
    pub(crate) fn node(&mut self, number: u32) -> Result<&Arc<[u8]>, FsError> {
        if !self.nodes.contains_key(&number)
            && let Some(bytes) = self.journal.node(number)
        {
            self.keep_node(number, (Arc::clone(bytes), false, None));
        }
        if !self.nodes.contains_key(&number) {
            let mut bytes = vec![0; self.block_bytes];
            let begin_ns = self.observed_ns();
            // With its group, or as one of leaves in a row.
            let is_foreseen = self.store.is_read_ahead(number, 1);
            let call = self.groups.read_ahead(&self.store, number, 1);
            self.trace(Asked::Read, [number]);
            if !self.is_used(number) || !self.store.read(number, &mut bytes)? {
                return Err(FsError::Structure { number, what: "it is not there" });
            }
            if number != crate::format::SUPERBLOCK
                && let Some(what) = Node(&bytes).fault()
            {
                return Err(FsError::Structure { number, what });
            }
            let took_ns = self.took_since(begin_ns);
            self.observer.read_node(number, CallRead { took_ns, is_foreseen, ..call });
            self.found_node(number, bytes);
        }
        let cached = self.nodes.get_mut(&number).expect("it was just put there");
        cached.is_used = true;
        if std::mem::take(&mut cached.is_foreseen) {
            let call = CallRead { took_ns: Some(0), is_foreseen: true, ..CallRead::default() };
            self.observer.read_node(number, call);
        }
        Ok(&cached.bytes)
    }

    /// Whether the node `number` is in memory.
    pub(crate) fn has_node(&self, number: u32) -> bool {
        self.nodes.contains_key(&number)
    }

    fn node_in_memory(&self, number: u32) -> Option<Node<'_>> {
        self.nodes.get(&number).map(|node| Node(&node.bytes))
    }

    /// The children of the node `number` that are in memory, in their order, if it is and has any.
    pub(crate) fn children_in_memory(&self, number: u32) -> Vec<u32> {
        let node = self.node_in_memory(number).filter(|node| !node.is_leaf());
        let children = node.map(|node| (0..node.count()).map(move |at| node.child(at)));
        children.into_iter().flatten().filter(|child| self.has_node(*child)).collect()
    }

    /// What the store has in the node `number`, if it is in memory and was not changed since.
    pub(crate) fn unchanged_node(&self, number: u32) -> Option<Arc<[u8]>> {
        let is_stored = |node: &&Cached| !node.is_changed && self.journal.node(number).is_none();
        let node = self.nodes.get(&number).filter(is_stored);
        node.map(|node| Arc::clone(&node.bytes))
    }

    /// Whether nothing has to be read for the node `number`.
    fn is_in_memory(&self, number: u32) -> bool {
        self.has_node(number) || self.journal.node(number).is_some()
    }

    /// The node `number`, if nothing has to be read for it.
    pub(crate) fn bytes_in_memory(&mut self, number: u32) -> Result<Option<Arc<[u8]>>, FsError> {
        if self.is_in_memory(number) { self.node(number).cloned().map(Some) } else { Ok(None) }
    }

    /// Keeps how `number` is before the operation changes it.
    fn note(&mut self, number: u32) {
        if self.noted.insert(number) {
            let before = self.nodes.get(&number);
            let before =
                before.map(|node| (Arc::clone(&node.bytes), node.is_changed, node.before.clone()));
            self.steps.push(Step::Node { number, before });
        }
    }

    /// The node `number`, to be changed.
    pub(crate) fn node_mut(&mut self, number: u32) -> Result<&mut [u8], FsError> {
        self.node(number)?;
        self.note(number);
        let cached = self.nodes.get_mut(&number).expect("it was just read");
        if !cached.is_changed {
            cached.is_changed = true;
            cached.before = Some(Arc::clone(&cached.bytes));
            self.changed_nodes.push(number);
        }
        Ok(Arc::make_mut(&mut cached.bytes))
    }

    /// The time of the device, if somebody wants to know what reads take.
    pub(crate) fn observed_ns(&self) -> Option<u64> {
        if self.observer.is_on { self.store.disk().now_ns() } else { None }
    }

    /// What has taken since `begin_ns`.
    pub(crate) fn took_since(&self, begin_ns: Option<u64>) -> Option<u64> {
        Some(self.store.disk().now_ns()?.saturating_sub(begin_ns?))
    }

    // --- data ---------------------------------------------------------------------------------------

    /// Fills `into` with the data of the blocks from `first` on; the block `next` is probably read next.
    pub(crate) fn read_data(
        &self,
        mut first: u32,
        next: u32,
        into: &mut [u8],
    ) -> Result<(), FsError> {
        let bytes = self.block_bytes;
        let mut rest = into;
        // What waits is taken from here; what lies between is read at once.
        while !rest.is_empty() {
            let blocks = rest.len() / bytes;
            let waits = |at: &usize| self.data_here(first + *at as u32).is_some();
            let stored = if self.data.is_empty() && self.recent.is_empty() {
                blocks
            } else {
                (0..blocks).find(waits).unwrap_or(blocks)
            };
            let (piece, behind) = rest.split_at_mut(stored * bytes);
            self.trace(Asked::Read, first..first + stored as u32);
            self.has_asked.set(self.has_asked.get() || stored > 0);
            if stored > 0
                && let Some(number) = self.store.read_run_before(first, next, piece)?.first()
            {
                return Err(FsError::Structure { number: *number, what: "it is not there" });
            }
            first += stored as u32;
            rest = behind;
            if !rest.is_empty() {
                let (piece, behind) = rest.split_at_mut(bytes);
                piece.copy_from_slice(self.data_here(first).expect("it was just seen"));
                first += 1;
                rest = behind;
            }
        }
        Ok(())
    }

    /// The data of `number`, if it is in memory.
    fn data_here(&self, number: u32) -> Option<&[u8]> {
        let waiting = self.data.get(&number).map(|data| &**data);
        waiting.or_else(|| self.recent.get(number))
    }

    /// Whether the store was asked for data since the last time.
    pub(crate) fn has_asked(&self) -> bool {
        self.has_asked.take()
    }

    /// Where the `count` blocks from `first` on lie on the device, bytes; none for what lies nowhere yet.
    pub(crate) fn places(&self, first: u32, count: u32) -> Vec<Option<u64>> {
        let mut places = self.store.places(first, count);
        for (number, place) in (first..).zip(&mut places) {
            if self.data.contains_key(&number) {
                *place = None;
            }
        }
        places
    }

    /// Data for the block `number`, to be filled by `fill`; `is_partial` if only part of it is new. An
    /// operation's last steps: they are not taken back.
    pub(crate) fn put_data(&mut self, number: u32, is_partial: bool, fill: impl FnOnce(&mut [u8])) {
        self.recent.remove(number);
        if is_partial {
            self.partial.insert(number);
        }
        let bytes = self.block_bytes;
        let spare = &mut self.spare;
        let data = self
            .data
            .entry(number)
            .or_insert_with(|| spare.pop().unwrap_or_else(|| vec![0; bytes].into_boxed_slice()));
        fill(data);
    }

    // --- operations ---------------------------------------------------------------------------------

    /// What follows can be undone up to here.
    pub(crate) fn begin(&mut self) {
        self.steps.clear();
        self.noted.clear();
        self.drop_nodes();
    }

    /// Takes back what was done since the beginning.
    pub(crate) fn undo(&mut self) {
        while let Some(step) = self.steps.pop() {
            match step {
                Step::Taken { number, was_freed } => {
                    self.numbers.give(number);
                    if was_freed {
                        self.freed.insert(number);
                    } else {
                        self.fresh.remove(&number);
                    }
                }
                Step::Given { number, .. } if is_seeded(SeededFault::GivenNotTakenBack) => {
                    self.data.remove(&number);
                }
                Step::Given { number, was_fresh } => {
                    self.numbers.take(number);
                    if was_fresh {
                        self.fresh.insert(number);
                    } else {
                        self.freed.remove(&number);
                    }
                }
                Step::Data { number, before } => {
                    self.data.remove(&number);
                    self.data.extend(before.map(|before| (number, before)));
                }
                Step::Node { before: Some(_), .. } if is_seeded(SeededFault::NodesNotTakenBack) => {
                }
                Step::Node { number, before: None } => self.forget_node(number),
                Step::Node { number, before: Some(held) } => self.keep_node(number, held),
                Step::Reserved { before } => self.reserved = before,
            }
        }
        self.noted.clear();
    }

    /// Blocks that wait for a transaction, if `more` come.
    fn waiting(&mut self, more: usize) -> (usize, usize) {
        // A node is in the list again if it was given back and read again.
        if self.changed_nodes.len() > 1024 {
            self.tidy_changed();
        }
        (self.changed_nodes.len() + self.data.len() + more, self.freed.len())
    }

    /// Every changed node once.
    fn tidy_changed(&mut self) {
        let nodes = &self.nodes;
        let is_changed = |number: &u32| nodes.get(number).is_some_and(|node| node.is_changed);
        self.changed_nodes.retain(is_changed);
        self.changed_nodes.sort_unstable();
        self.changed_nodes.dedup();
    }

    /// Whether what waits fits into one transaction of the store, if `more` blocks of data come.
    pub(crate) fn fits(&mut self, more: usize) -> bool {
        let (blocks_max, frees_max) =
            (self.transaction_blocks(), self.store.transaction_frees_max() as usize);
        let (blocks, freed) = self.waiting(more);
        if blocks <= blocks_max && freed <= frees_max {
            return true;
        }
        self.tidy_changed();
        let (blocks, freed) = self.waiting(more);
        blocks <= blocks_max && freed <= frees_max
    }

    /// Blocks that a transaction may have.
    pub(crate) fn transaction_blocks(&self) -> usize {
        self.store.transaction_blocks_max() as usize
    }

    /// Whether so much waits that it had better be handed over.
    pub(crate) fn is_much(&mut self) -> bool {
        let most = self.transaction_blocks() / 4 * 3;
        let frees = self.store.transaction_frees_max() as usize / 2;
        let (blocks, freed) = self.waiting(0);
        blocks > most || freed > frees
    }

    /// Whether nothing waits.
    pub(crate) fn is_clean(&mut self) -> bool {
        // What was taken back is in the list still.
        self.tidy_changed();
        self.changed_nodes.is_empty() && self.data.is_empty() && self.freed.is_empty()
    }
}

impl From<StoreError> for FsError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NoRoom { .. } => Self::NO_ROOM,
            error => Self::Store(error),
        }
    }
}
