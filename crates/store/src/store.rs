//! A store: blocks by number, written in transactions, on a disk.
//!
//! One thread, no clock: the same calls on the same disk give the same bytes. `write` takes a
//! transaction in; `sync` returns when everything taken in is on the medium. A crash in between leaves
//! whole transactions, in their order.

use std::collections::{HashMap, VecDeque};

use agewell_log::policy::cost::CostModel;
use agewell_log::policy::mechanism::Collect;
use agewell_log::{CostMeter, Counts, Kept, TransferTimes};

use crate::StoreError;
use crate::device::{Disk, Piece};
use crate::engine::Engine;
use crate::format::{FormatOptions, Geometry, NONE, Root, short_sum};
use crate::group::Group;
use crate::learning::Learning;
use crate::medium::{Medium, MediumCounts, Sum, flush, write};
use crate::options::OpenOptions;
use crate::recovery;
use crate::seeded::{SeededFault, is_seeded};

/// Blocks that are written and freed together: all or none.
#[derive(Debug, Clone, Default)]
pub struct Transaction<'a> {
    /// Blocks, and their new data.
    pub writes: Vec<(u32, &'a [u8])>,
    /// Blocks that are no more; those that there are not are left.
    pub frees: Vec<u32>,
}

/// What opening has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// Whether it had been closed in order.
    pub was_closed: bool,
    /// Groups that were found behind the map.
    pub replayed: u64,
    /// Groups that had not become whole, and are gone.
    pub dropped: u64,
}

/// A store. See the module.
#[derive(Debug)]
pub struct Store<D> {
    engine: Engine,
    medium: Medium<D>,
    /// Groups that are not carried out yet.
    queue: VecDeque<Group>,
    opened: Opened,
}

impl<D: Disk> Store<D> {
    /// Makes an empty store on `disk`.
    ///
    /// # Errors
    /// If the disk is too small, the options are beyond the format's limits, or the disk fails.
    pub fn format(disk: &D, options: &FormatOptions) -> Result<Geometry, StoreError> {
        let size = disk.size_bytes();
        let zones = disk.write_zones();
        let geometry = Geometry::plan_in(size, options, zones)?;
        let root = Root {
            generation: 1,
            ring_number: 1,
            closed: true,
            pages: vec![0; geometry.map_pages as usize],
            ..Root::default()
        };
        let nothing = vec![0; geometry.block_bytes as usize];
        let ring = geometry.offset(geometry.ring);
        write(disk, &[Piece { offset: ring, data: &nothing }])?;
        for copy in 0..2 {
            let offset = geometry.offset(Root::address(&geometry, copy));
            write(disk, &[Piece { offset, data: &root.encode(&geometry, copy) }])?;
        }
        flush(disk)?;
        if let Some(zones) = zones {
            zones.fill_last(disk, geometry.block_bytes)?;
        }
        for address in Geometry::superblocks(size, geometry.block_bytes) {
            let data = geometry.encode(address);
            write(disk, &[Piece { offset: geometry.offset(address), data: &data }])?;
        }
        flush(disk)?;
        Ok(geometry)
    }

    /// Opens the store on `disk`, as a crash or a closing has left it.
    ///
    /// # Errors
    /// If there is none, it is damaged where nothing can take the place, or the disk fails.
    pub fn open(disk: D, options: &OpenOptions) -> Result<Self, StoreError> {
        let mut found = recovery::find(&disk)?;
        let zones = disk.write_zones();
        if let Some(zones) = zones {
            zones.check(&found.geometry)?;
            // How far it was written nobody knows.
            found.open = None;
        }
        let open: Vec<_> = found.open.into_iter().collect();
        let times = &found.root.segments;
        let clock = times.iter().map(|times| times.opened.max(times.sealed).max(times.youngest));
        let clock = clock.max().unwrap_or(0).max(found.sequence);
        let kept = Kept { map: &found.map, open: &open, times, clock };
        let mut engine =
            Engine::restore(&found.geometry, &kept, found.sequence + 1, options, zones.is_some())?;
        let opened = Opened {
            was_closed: found.root.closed && found.ring.used == 0 && found.replayed == 0,
            replayed: found.replayed,
            dropped: found.dropped,
        };
        let mut medium = Medium::new(disk, found.geometry.clone());
        found.changed.iter().for_each(|block| medium.soil(*block));
        medium.incarnation = found.incarnation;
        if !is_seeded(SeededFault::IncarnationNotRaised) {
            medium.incarnation += 1;
        }
        medium.ring = found.ring;
        medium.root = found.root;
        medium.root.pages.resize(medium.geometry.map_pages as usize, 0);
        medium.sums = found.sums;
        medium.damaged = found.damaged.into_iter().collect();
        medium.unchecked = found.unchecked;
        medium.unchecked_first = found.unchecked_first;
        medium.open = found.open;
        medium.free = engine.first_free();
        let prices =
            CostModel { block_bytes: u64::from(found.geometry.block_bytes), ..options.prices };
        let now_ns = medium.disk.now_ns().filter(|_| options.learns_prices);
        medium.learning = now_ns.map(|now_ns| Learning::new(prices, now_ns));
        medium.written = found.sequence;
        // What was read may not be on the medium yet, if only a process has ended.
        medium.flush()?;
        // One that is older names what is written over from here on.
        let stale_roots = found.stale_roots.into_iter();
        for copy in stale_roots.filter(|_| !is_seeded(SeededFault::RootsNotMadeAlike)) {
            medium.write_root(copy)?;
        }
        engine.covered(medium.covered);
        let mut store = Self { engine, medium, queue: VecDeque::new(), opened };
        if store.medium.ring_has_room(0) {
            store.medium.checkpoint()?;
            if !is_seeded(SeededFault::OpeningNotFlushed) {
                store.medium.flush()?;
            }
        } else {
            store.write_map(false)?;
        }
        Ok(store)
    }

    /// What opening found.
    #[must_use]
    pub fn opened(&self) -> Opened {
        self.opened
    }

    /// How it is divided.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.medium.geometry
    }

    /// What it lies on.
    #[must_use]
    pub fn disk(&self) -> &D {
        &self.medium.disk
    }

    /// What the log has done since it was opened.
    #[must_use]
    pub fn log_counts(&self) -> &Counts {
        self.engine.log().counts()
    }

    /// What the log has had transferred since it was opened, at the prices in the options: the store's
    /// own records are not among it.
    #[must_use]
    pub fn log_transfers(&self) -> &CostMeter {
        self.engine.meter()
    }

    /// How room is made at the moment.
    #[must_use]
    pub fn collect_rule(&self) -> Collect {
        self.engine.collect_rule()
    }

    /// What transfers have taken on its device, by which mechanisms are compared; none if the device has
    /// no clock.
    #[must_use]
    pub fn transfer_times(&self) -> Option<&TransferTimes> {
        self.medium.learning.as_ref().map(Learning::times)
    }

    /// What the medium has done since it was opened.
    #[must_use]
    pub fn medium_counts(&self) -> MediumCounts {
        self.medium.counts
    }

    /// Blocks that there are.
    #[must_use]
    pub fn live_blocks(&self) -> u64 {
        self.engine.log().live_blocks()
    }

    /// Blocks that a transaction may write.
    #[must_use]
    pub fn transaction_blocks_max(&self) -> u32 {
        self.medium.geometry.buffer_blocks() - 1
    }

    /// Blocks that a transaction may free.
    #[must_use]
    pub fn transaction_frees_max(&self) -> u32 {
        self.medium.geometry.frees_max()
    }

    /// Whether there is `block`.
    #[must_use]
    pub fn holds(&self, block: u32) -> bool {
        self.engine.log().holds(block)
    }

    /// Takes `transaction` in. It is durable after the next [`sync`](Self::sync).
    ///
    /// # Errors
    /// If there is no room for blocks that are new, with nothing changed; if it cannot be as it is; if
    /// the disk fails while room is made.
    pub fn write(&mut self, transaction: &Transaction<'_>) -> Result<(), StoreError> {
        self.check(transaction)?;
        let blocks = transaction.writes.len() as u32;
        let frees = (self.engine.freed().len() + transaction.frees.len()) as u32;
        if self.engine.waiting() + blocks > self.transaction_blocks_max()
            || frees > self.transaction_frees_max()
        {
            self.write_out()?;
        }
        self.decide()?;
        self.make_room(blocks)?;
        for block in &transaction.frees {
            self.engine.free(*block);
        }
        for (block, data) in &transaction.writes {
            self.engine.write(*block, data)?;
        }
        Ok(())
    }

    /// Whether `transaction` may be taken in.
    fn check(&self, transaction: &Transaction<'_>) -> Result<(), StoreError> {
        let geometry = &self.medium.geometry;
        let most = self.transaction_blocks_max();
        let refuse = |what: String| Err(StoreError::Transaction(what));
        if transaction.writes.len() > most as usize {
            let writes = transaction.writes.len();
            return refuse(format!("a transaction writes at most {most} blocks, not {writes}"));
        }
        let most = self.transaction_frees_max();
        if transaction.frees.len() > most as usize {
            let frees = transaction.frees.len();
            return refuse(format!("a transaction frees at most {most} blocks, not {frees}"));
        }
        let numbers = transaction.writes.iter().map(|write| write.0);
        let mut named: Vec<u32> = numbers.chain(transaction.frees.iter().copied()).collect();
        named.sort_unstable();
        if let Some([block, _]) = named.windows(2).find(|pair| pair[0] == pair[1]) {
            return refuse(format!("a transaction names block {block} twice"));
        }
        if let Some(block) = named.last().filter(|block| **block >= geometry.blocks) {
            let blocks = geometry.blocks;
            return refuse(format!("block {block} is beyond the {blocks} that there may be"));
        }
        let of_length = |write: &&(u32, &[u8])| write.1.len() != geometry.block_bytes as usize;
        if let Some((block, data)) = transaction.writes.iter().find(of_length) {
            let (length, bytes) = (data.len(), geometry.block_bytes);
            return refuse(format!("block {block} is given {length} bytes, not {bytes}"));
        }
        let new = transaction.writes.iter().filter(|write| !self.holds(write.0)).count() as u64;
        let gone = transaction.frees.iter().filter(|block| self.holds(**block)).count() as u64;
        let (live, capacity) = (self.live_blocks(), geometry.capacity_blocks());
        let is_full = new > gone && live + new - gone > capacity;
        if is_full && !is_seeded(SeededFault::RoomNotLookedAt) {
            return Err(StoreError::NoRoom { live, capacity, more: new - gone });
        }
        Ok(())
    }

    /// Everything taken in is on the medium when this returns.
    ///
    /// # Errors
    /// If the disk fails. Nothing is lost by that: what is not on the medium is tried again by the next.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.write_out()?;
        if self.medium.flushed < self.medium.written {
            if is_seeded(SeededFault::SyncWithoutFlush) {
                return Ok(());
            }
            self.medium.flush()?;
            self.engine.covered(self.medium.covered);
        }
        Ok(())
    }

    /// Writes what waits, without a flush.
    fn write_out(&mut self) -> Result<(), StoreError> {
        self.drain()?;
        let spare = self.medium.spare();
        let group = self.engine.group_of_changes(spare)?;
        self.queue.extend(group);
        self.drain()
    }

    /// Carries out what is planned.
    fn drain(&mut self) -> Result<(), StoreError> {
        if self.medium.may_have_forgotten() {
            // What is moved is read from the device.
            self.medium.flush()?;
            self.engine.covered(self.medium.covered);
        }
        if self.medium.root_is_due {
            self.write_map(false)?;
        }
        while let Some(group) = self.queue.front() {
            let runs_bytes = (group.moves.len() + group.freed.len()) * 20 + 12;
            if !self.medium.ring_has_room(runs_bytes) {
                self.write_map(false)?;
            }
            let group = self.queue.front_mut().expect("there is one");
            self.medium.carry_out(group)?;
            self.queue.pop_front();
            self.medium.relieve()?;
            self.engine.covered(self.medium.covered);
        }
        Ok(())
    }

    /// Writes the map as the medium has it.
    fn write_map(&mut self, closes: bool) -> Result<(), StoreError> {
        // What is planned has not been done: the last that is done comes first.
        let mut before: HashMap<u32, u32> = self.engine.freed().iter().copied().collect();
        let queue =
            if is_seeded(SeededFault::PlannedInMap) { &VecDeque::new() } else { &self.queue };
        for group in queue.iter().rev() {
            before.extend(group.freed.iter().copied());
            before.extend(group.moves.iter().map(|moved| (moved.block, moved.old)));
        }
        let Self { engine, medium, .. } = self;
        let slot_of = |block: u32| match before.get(&block) {
            Some(slot) => *slot,
            None => engine.slot_on_disk(block),
        };
        let segments = medium.geometry.segments;
        let times = || (0..segments).map(|segment| engine.log().segment_times(segment)).collect();
        medium.write_map(&slot_of, &times, closes)?;
        engine.covered(medium.covered);
        Ok(())
    }

    /// Decides on the mechanism, if it is time to.
    fn decide(&mut self) -> Result<(), StoreError> {
        if self.engine.is_choice_due() {
            self.write_out()?;
            self.engine.decide(self.medium.learning.as_ref().map(Learning::times));
        }
        Ok(())
    }

    /// Sees to it that `blocks` more may be taken in.
    fn make_room(&mut self, blocks: u32) -> Result<(), StoreError> {
        if self.engine.can_take(blocks) {
            return Ok(());
        }
        self.engine.begin_choosing();
        self.decide()?;
        // A round of all segments that frees nothing shows that nothing can be freed.
        for _ in 0..2 * self.medium.geometry.segments + 2 {
            if self.engine.can_take(blocks) {
                return Ok(());
            }
            if !self.collect_once(false)? && !self.engine.can_take(blocks) {
                self.collect_once(true)?;
            }
        }
        let (live, capacity) = (self.live_blocks(), self.medium.geometry.capacity_blocks());
        panic!("{live} of {capacity} blocks are in use, and no room can be made for {blocks}");
    }

    /// Makes room once, by cleaning if that is said; false if the mechanism is one that makes none
    /// beforehand.
    fn collect_once(&mut self, cleans: bool) -> Result<bool, StoreError> {
        if self.engine.has_freed() {
            self.write_out()?;
        }
        self.drain()?;
        if !self.engine.is_covered() && self.engine.fills_holes() {
            self.medium.cover()?;
            self.engine.covered(self.medium.covered);
        }
        let (groups, made) = self.engine.groups_of_collection(cleans);
        self.queue.extend(groups);
        self.drain()?;
        Ok(made?)
    }

    /// Makes room once in advance, if less than a quarter of what is kept from users is free; whether
    /// anything was done.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn collect(&mut self) -> Result<bool, StoreError> {
        let geometry = &self.medium.geometry;
        let wanted = u64::from(geometry.reserve_segments / 4 * geometry.segment_blocks);
        if self.engine.log().room_without_collection() >= wanted {
            return Ok(false);
        }
        self.collect_once(false)
    }

    /// Gives back to the device what is in segments that came free since the last time; how many bytes.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn discard(&mut self) -> Result<u64, StoreError> {
        self.sync()?;
        self.medium.cover()?;
        self.engine.covered(self.medium.covered);
        let block_bytes = u64::from(self.medium.geometry.block_bytes);
        let mut discarded = 0;
        for (slot, blocks) in self.engine.discards() {
            let (offset, bytes) =
                (self.medium.geometry.slot_offset(slot), u64::from(blocks) * block_bytes);
            self.medium.disk.discard(offset, bytes).map_err(|error| StoreError::Device {
                what: "discard",
                offset,
                bytes,
                error,
            })?;
            discarded += bytes;
        }
        Ok(discarded)
    }

    /// Reads the blocks among `blocks` that there are, and gives those that are damaged.
    ///
    /// # Errors
    /// If the store itself cannot be read.
    pub fn scrub(&self, blocks: std::ops::Range<u32>) -> Result<Vec<u32>, StoreError> {
        let mut into = vec![0; self.medium.geometry.block_bytes as usize];
        let mut damaged = Vec::new();
        for block in blocks.start..blocks.end.min(self.medium.geometry.blocks) {
            match self.read(block, &mut into) {
                Ok(_) => {}
                // A block that the device cannot read is as lost as one that is not what it was.
                Err(StoreError::Damaged { .. } | StoreError::Device { .. }) => damaged.push(block),
                Err(error) => return Err(error),
            }
        }
        Ok(damaged)
    }

    /// Reads `block`; false if there is none, and then `into` is left as it is.
    ///
    /// # Errors
    /// If what lies there is not what was written, or the disk fails.
    ///
    /// # Panics
    /// If `into` is not as long as a block.
    pub fn read(&self, block: u32, into: &mut [u8]) -> Result<bool, StoreError> {
        let geometry = &self.medium.geometry;
        assert_eq!(into.len(), geometry.block_bytes as usize, "a block is read whole");
        if let Some(data) = self.engine.waiting_data(block) {
            into.copy_from_slice(data);
            return Ok(true);
        }
        let mut slot = self.engine.log().look_up(block);
        if slot == NONE {
            return Ok(false);
        }
        // What is planned lies elsewhere still.
        for group in self.queue.iter().rev() {
            let of_slot =
                |run: &&crate::group::PlannedRun| (run.slot..run.slot + run.blocks).contains(&slot);
            let Some(run) = group.runs.iter().find(of_slot) else { continue };
            let source = group.moves_of(run)[(slot - run.slot) as usize].source;
            if run.origin.copies() {
                slot = source;
                continue;
            }
            let at = source as usize * into.len();
            into.copy_from_slice(&group.data[at..at + into.len()]);
            return Ok(true);
        }
        self.medium.read(geometry.slot_offset(slot), into)?;
        let Sum { sum, sequence } = self.medium.sums[block as usize];
        let is_good = short_sum(&geometry.uuid, block, slot, sequence, into) == sum
            || is_seeded(SeededFault::SumOfReadIgnored);
        if !is_good || self.medium.damaged.contains(&block) {
            into.fill(0);
            return Err(StoreError::Damaged { block, slot });
        }
        Ok(true)
    }

    /// Checks everything that the log promises about its own state.
    ///
    /// # Panics
    /// If it does not hold, which is a bug.
    pub fn verify(&self) {
        self.engine.verify();
    }

    /// Closes it in order and gives the disk back.
    ///
    /// # Errors
    /// If the disk fails; then it is as after a crash.
    pub fn close(mut self) -> Result<D, StoreError> {
        self.sync()?;
        self.write_map(true)?;
        self.medium.copy_pages()?;
        Ok(self.medium.disk)
    }
}
