//! A store: blocks by number, written in transactions, on a disk.
//!
//! `write` takes a transaction in; `sync` returns when everything taken in is on the medium. A crash in
//! between leaves whole transactions, in their order. Any number of threads may call; there is no clock, so
//! the same calls by one thread on the same disk give the same bytes. [`crate::locks`] says who waits for
//! whom.

mod gaps;
mod growing;
mod read_ahead;
mod reading;
mod segments;
mod sweeping;
mod syncing;
mod together;

pub use segments::DevicePiece;
pub use sweeping::Sweep;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use agewell_log::policy::cost::CostModel;
use agewell_log::policy::mechanism::Collect;
use agewell_log::{CostMeter, Counts, Kept, TransferTimes};

use crate::StoreError;
use crate::commit::Commit;
use crate::device::{Disk, Piece};
use crate::engine::{Engine, Extent};
use crate::format::{FormatOptions, Geometry, Root, short_sum};
use crate::front::{Front, Newest};
use crate::grown::Grown;
use crate::learning::Learning;
use crate::locks::{Mutex, MutexGuard, lock};
use crate::medium::{Medium, MediumCounts, flush, read, write};
use crate::options::OpenOptions;
use crate::pacing::Pacing;
use crate::places::Places;
use crate::recovery;
use crate::rotational_delay::{RotationalDelay, SyncGap};
use crate::seeded::{SeededFault, is_seeded};
use crate::sums::Sums;

use self::gaps::Gaps;
use self::read_ahead::ReadAhead;

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
    /// Ring records that were damaged, and of which a copy was found.
    pub made_good: u64,
}

/// What became of collecting a victim before it is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// There is as much room as is wanted, or as can be had until more has been written.
    Enough,
    /// Blocks of room that were gained.
    Gained(u64),
    /// None yet: a part of a victim has been collected.
    Begun,
    /// None can be had.
    Nothing,
}

/// A store. See the module.
#[derive(Debug)]
pub struct Store<D> {
    disk: Arc<D>,
    /// How it was divided when it was opened, and each time that it has grown.
    divided: Grown<Geometry>,
    opened: Opened,
    commit: Commit,
    medium: Mutex<Medium<D>>,
    /// Threads that wait for the medium.
    waiting: AtomicU32,
    front: Mutex<Front>,
    sums: Arc<Sums>,
    ahead: ReadAhead,
    gaps: Gaps,
    /// Whether anything was read since the last sync.
    has_moved: AtomicBool,
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
        let kept = Kept { map: found.map, open: &open, times, clock };
        let mut engine = Engine::restore(
            &found.geometry,
            (kept, found.root.mechanism),
            found.sequence + 1,
            options,
            zones.is_some(),
        )?;
        let opened = Opened {
            was_closed: found.root.closed && found.ring.used == 0 && found.replayed == 0,
            replayed: found.replayed,
            dropped: found.dropped,
            made_good: found.copies.len() as u64,
        };
        let (disk, geometry) = (Arc::new(disk), found.geometry);
        let sums = Arc::new(Sums::new(found.sums, found.damaged));
        let mut medium = Medium::new(Arc::clone(&disk), geometry.clone(), Arc::clone(&sums));
        let entries = geometry.page_entries();
        found.changed.pages(entries).for_each(|page| medium.soil(page * entries));
        medium.incarnation = found.incarnation;
        if !is_seeded(SeededFault::IncarnationNotRaised) {
            medium.incarnation += 1;
        }
        medium.ring = found.ring;
        medium.root = found.root;
        medium.unchecked = found.unchecked;
        medium.unchecked_first = found.unchecked_first;
        medium.open = found.open;
        medium.places = Places::after(found.named);
        medium.announced = engine.announced();
        let prices = CostModel { block_bytes: u64::from(geometry.block_bytes), ..options.prices };
        // Zones have no gaps.
        let delay_ns = if zones.is_some() { Some(0) } else { options.rotational_delay_ns };
        let bytes_per_s = prices.bandwidth_bytes_per_s;
        medium.rotational_delay = RotationalDelay::new(bytes_per_s, geometry.block_bytes, delay_ns);
        let now_ns = disk.now_ns().filter(|_| options.learns_prices);
        medium.learning = now_ns.map(|now_ns| Learning::new(prices, now_ns));
        medium.written = found.sequence;
        // What was read may not be on the medium yet, if only a process has ended.
        medium.flush()?;
        // Growing may have been cut short. Zones are written once.
        if zones.is_none() && !is_seeded(SeededFault::StaleSuperblockLeft) {
            medium.write_superblocks(&found.stale_superblocks)?;
        }
        // One that is older names what is written over from here on.
        let stale_roots = found.stale_roots.into_iter();
        for copy in stale_roots.filter(|_| !is_seeded(SeededFault::RootsNotMadeAlike)) {
            medium.write_root(copy)?;
        }
        let copies = found.copies.iter();
        for (at, record) in copies.filter(|_| !is_seeded(SeededFault::CopyNotWrittenBack)) {
            let offset = medium.geometry.offset(medium.geometry.ring + u64::from(*at));
            let data = record.encode(&medium.geometry, *at);
            write(&*disk, &[Piece { offset, data: &data }])?;
            flush(&*disk)?;
        }
        engine.settled(medium.flushed, medium.covered);
        let (medium, front) = (Mutex::new(medium), Mutex::new(Front::new(engine)));
        let (commit, waiting) = (Commit::new(), AtomicU32::new(0));
        let ahead = ReadAhead::default();
        let gaps = Gaps::new(prices, now_ns.is_some());
        let has_moved = AtomicBool::new(false);
        let store = Self {
            disk,
            divided: Grown::new(geometry),
            opened,
            commit,
            medium,
            waiting,
            front,
            sums,
            ahead,
            gaps,
            has_moved,
        };
        let mut medium = lock(&store.medium);
        if medium.ring_has_room(0) {
            medium.checkpoint()?;
            if !is_seeded(SeededFault::OpeningNotFlushed) {
                medium.flush()?;
            }
        } else {
            store.write_map(&mut medium)?;
        }
        drop(medium);
        Ok(store)
    }

    /// What opening found.
    #[must_use]
    pub fn opened(&self) -> Opened {
        self.opened
    }

    /// How it is divided; until it [grows](Self::grow), when who has this keeps what was.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        self.divided.last()
    }

    /// What it lies on.
    #[must_use]
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// What the log has done since it was opened.
    #[must_use]
    pub fn log_counts(&self) -> Counts {
        *lock(&self.front).engine.log().counts()
    }

    /// What the log has had transferred since it was opened, at the prices in the options: the store's
    /// own records are not among it.
    #[must_use]
    pub fn log_transfers(&self) -> CostMeter {
        lock(&self.front).engine.meter().clone()
    }

    /// How room is made at the moment.
    #[must_use]
    pub fn collect_rule(&self) -> Collect {
        lock(&self.front).engine.collect_rule()
    }

    /// Logs that what is collected is divided among; 0 if it goes behind what is new.
    #[must_use]
    pub fn collected_logs(&self) -> usize {
        lock(&self.front).engine.log().placement().collected_logs()
    }

    /// What transfers have taken on its device, by which mechanisms are compared; none if the device has
    /// no clock.
    #[must_use]
    pub fn transfer_times(&self) -> Option<TransferTimes> {
        lock(&self.medium).learning.as_ref().map(|learning| learning.times().clone())
    }

    /// How far apart syncs are placed at the moment.
    #[must_use]
    pub fn sync_gap(&self) -> SyncGap {
        lock(&self.medium).rotational_delay.usual()
    }

    /// What the medium has done since it was opened.
    #[must_use]
    pub fn medium_counts(&self) -> MediumCounts {
        lock(&self.medium).counts
    }

    /// Blocks that there are.
    #[must_use]
    pub fn live_blocks(&self) -> u64 {
        lock(&self.front).engine.log().live_blocks()
    }

    /// Blocks that a transaction may write.
    #[must_use]
    pub fn transaction_blocks_max(&self) -> u32 {
        self.geometry().buffer_blocks() - 1
    }

    /// Blocks that a transaction may free.
    #[must_use]
    pub fn transaction_frees_max(&self) -> u32 {
        self.geometry().frees_max()
    }

    /// Whether there is `block`.
    #[must_use]
    pub fn holds(&self, block: u32) -> bool {
        lock(&self.front).engine.log().holds(block)
    }

    /// Takes `transaction` in. It is durable after the next [`sync`](Self::sync).
    ///
    /// # Errors
    /// If there is no room for blocks that are new, with nothing changed; if it cannot be as it is; if
    /// the disk fails while room is made.
    pub fn write(&self, transaction: &Transaction<'_>) -> Result<(), StoreError> {
        self.check(transaction)?;
        let (blocks, frees) = (transaction.writes.len() as u32, transaction.frees.len() as u32);
        loop {
            let mut guard = lock(&self.front);
            let front = &mut *guard;
            self.check_room(front, transaction)?;
            if front.is_choice_due_here() {
                drop(guard);
                self.decide()?;
                continue;
            }
            let is_much = front.is_much_waiting();
            let engine = &mut front.engine;
            let is_full = engine.waiting() + blocks > self.transaction_blocks_max()
                || engine.freed().len() as u32 + frees > self.transaction_frees_max();
            if is_full && is_much {
                drop(guard);
                self.carry_out_much()?;
            } else if is_full {
                front.plan_changes()?;
                let is_left = front.leave_to_carrier();
                drop(guard);
                if !is_left {
                    self.carry_out_some()?;
                }
            } else if engine.can_take(blocks) {
                transaction.frees.iter().for_each(|block| engine.free(*block));
                for (block, data) in &transaction.writes {
                    engine.write(*block, data)?;
                }
                front.taken += 1;
                let delay = front.delay(blocks);
                drop(guard);
                if !delay.is_zero() {
                    std::thread::sleep(delay);
                }
                return Ok(());
            } else {
                drop(guard);
                self.make_room(blocks)?;
            }
        }
    }

    /// Whether `transaction` is one.
    fn check(&self, transaction: &Transaction<'_>) -> Result<(), StoreError> {
        let geometry = self.geometry();
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
        Ok(())
    }

    /// Whether there is room for the blocks of `transaction` that are new.
    fn check_room(&self, front: &Front, transaction: &Transaction<'_>) -> Result<(), StoreError> {
        let log = front.engine.log();
        let new = transaction.writes.iter().filter(|write| !log.holds(write.0)).count() as u64;
        let gone = transaction.frees.iter().filter(|block| log.holds(**block)).count() as u64;
        let (live, capacity) = (log.live_blocks(), self.geometry().capacity_blocks());
        let is_full = new > gone && live + new - gone > capacity;
        if is_full && !is_seeded(SeededFault::RoomNotLookedAt) {
            return Err(StoreError::NoRoom { live, capacity, more: new - gone });
        }
        Ok(())
    }

    /// Decides on the mechanism, if it is time to, by what the medium's transfers have taken. Nobody
    /// waits while every one of them is rehearsed but who calls.
    pub(crate) fn decide(&self) -> Result<(), StoreError> {
        if !lock(&self.front).engine.is_choice_due() {
            return Ok(());
        }
        let mut medium = self.medium_at_once();
        let mut front = lock(&self.front);
        if !front.engine.is_choice_due() {
            return Ok(());
        }
        front.plan_changes()?;
        let times = medium.learning.as_ref().map(Learning::times);
        let outlook = front.engine.outlook(times);
        let generation = self.geometry().generation;
        drop(front);
        let drained = self.drain(&mut medium);
        drop(medium);
        if let Some(outlook) = outlook {
            let outlook = outlook.think_over();
            let mut front = lock(&self.front);
            if front.engine.waiting() > 0 {
                front.plan_changes()?;
            }
            // What was thought of a log that has grown since is of no use.
            if self.geometry().generation == generation {
                front.engine.adopt(outlook);
            }
        }
        drained
    }

    /// Sees to it that `blocks` more may be taken in.
    fn make_room(&self, blocks: u32) -> Result<(), StoreError> {
        let can_take = || lock(&self.front).engine.can_take(blocks);
        if !can_take() {
            let mut front = lock(&self.front);
            front.engine.begin_choosing();
            let is_due = front.is_choice_due_here();
            drop(front);
            if is_due {
                self.decide()?;
            }
        }
        let mut medium = self.medium_at_once();
        self.drain(&mut medium)?;
        let is_paced = lock(&self.front).pacing.is_some();
        let extent = if is_paced { Extent::Victim } else { Extent::Segment };
        // A round of all segments that frees nothing shows that nothing can be freed.
        for _ in 0..2 * self.geometry().segments + 2 {
            if can_take() {
                return Ok(());
            }
            if !self.collect_once(&mut medium, extent)? && !can_take() {
                self.collect_once(&mut medium, Extent::Cleaned)?;
            }
        }
        let (live, capacity) = (self.live_blocks(), self.geometry().capacity_blocks());
        panic!("{live} of {capacity} blocks are in use, and no room can be made for {blocks}");
    }

    /// Makes room once; false if the mechanism is one that makes none beforehand.
    fn collect_once(&self, medium: &mut Medium<D>, extent: Extent) -> Result<bool, StoreError> {
        let mut was_covered = false;
        loop {
            self.drain(medium)?;
            let mut front = lock(&self.front);
            // What was freed has its group first; it may have come while that was carried out.
            if front.engine.has_freed() {
                front.plan_changes()?;
                continue;
            }
            // Holes of what others have freed since then are left.
            if was_covered || !front.engine.waits_for_holes() {
                let made = front.plan_collection(extent);
                drop(front);
                self.drain(medium)?;
                return Ok(made?);
            }
            drop(front);
            medium.cover()?;
            self.settle(medium);
            was_covered = true;
        }
    }

    /// Makes room once in advance, if less than a quarter of what is kept from users is free; whether
    /// anything was done.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn collect(&self) -> Result<bool, StoreError> {
        let mut medium = lock(&self.medium);
        if lock(&self.front).room() >= self.room_ahead().0 {
            return Ok(false);
        }
        self.collect_once(&mut medium, Extent::Segment)
    }

    /// Room that a collector keeps ahead, and as much as it makes when nobody writes; blocks.
    pub(crate) fn room_ahead(&self) -> (u64, u64) {
        let Geometry { reserve_segments, segment_blocks, .. } = *self.geometry();
        let share = |parts: u32| u64::from(reserve_segments / parts) * u64::from(segment_blocks);
        (share(4), share(2))
    }

    /// Has writers slowed from now on, or not any more; false if they are already.
    pub(crate) fn pace(&self, pacing: Option<Pacing>) -> bool {
        let mut front = lock(&self.front);
        let is_new = front.pacing.is_none() || pacing.is_none();
        if is_new {
            front.pacing = pacing;
        }
        is_new
    }

    /// What it takes to make room for a block.
    pub(crate) fn set_pace(&self, block_ns: f64) {
        if let Some(pacing) = &mut lock(&self.front).pacing {
            pacing.block_ns = block_ns;
        }
    }

    /// Transactions that were taken in.
    pub(crate) fn taken(&self) -> u64 {
        lock(&self.front).taken
    }

    /// Has any write ring the bell, if there are still `taken`; whether that is so.
    pub(crate) fn rings_at_next_write(&self, taken: u64) -> bool {
        let mut front = lock(&self.front);
        let is_quiet = front.taken == taken;
        if let Some(pacing) = &mut front.pacing {
            pacing.is_asleep = is_quiet;
        }
        is_quiet
    }

    /// Collects one victim, or a part of it, if there is less room than `wanted`.
    pub(crate) fn collect_ahead(&self, wanted: u64) -> Result<Ahead, StoreError> {
        if lock(&self.front).is_resting() {
            return Ok(Ahead::Enough);
        }
        // Whoever waits for the medium comes first.
        while self.waiting.load(Ordering::Relaxed) > 0 {
            std::thread::yield_now();
        }
        let mut medium = lock(&self.medium);
        let front = lock(&self.front);
        let (before, plugged) = (front.room(), front.plugged_blocks());
        drop(front);
        if before >= wanted {
            return Ok(Ahead::Enough);
        }
        let made = self.collect_once(&mut medium, Extent::Part)?;
        let mut front = lock(&self.front);
        let gained = front.room().saturating_sub(before);
        if made && gained > 0 {
            return Ok(Ahead::Gained(gained));
        }
        if made && front.plugged_blocks() > plugged {
            return Ok(Ahead::Begun);
        }
        let rests_until = front.new_blocks() + u64::from(self.geometry().segment_blocks);
        if let Some(pacing) = &mut front.pacing {
            pacing.rests_until = rests_until;
        }
        Ok(Ahead::Nothing)
    }

    /// The medium, before those who do not hurry.
    fn medium_at_once(&self) -> MutexGuard<'_, Medium<D>> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let medium = lock(&self.medium);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        medium
    }

    /// Gives back to the device what is in segments that came free since the last time; how many bytes.
    /// None while other threads write.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn discard(&self) -> Result<u64, StoreError> {
        self.give_back(0..u64::MAX, 0, Engine::discards)
    }

    /// Gives back to the device what is free of bytes `range` of it, in pieces of `least_bytes` at least,
    /// also what was given back before or by nobody yet; how many bytes. The device may have been used by
    /// others, or for years without a discard. Nobody writes meanwhile. Of zones that are written in order it is what
    /// [`discard`](Self::discard) does.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn trim(&self, range: Range<u64>, least_bytes: u64) -> Result<u64, StoreError> {
        if self.disk.write_zones().is_some() {
            return self.discard();
        }
        self.give_back(range, least_bytes, |engine| engine.free_runs())
    }

    /// Discards of the slots that `dead` says what lies within bytes `range`.
    fn give_back(
        &self,
        range: Range<u64>,
        least_bytes: u64,
        dead: impl FnOnce(&mut Engine) -> Vec<(u32, u32)>,
    ) -> Result<u64, StoreError> {
        let mut medium = lock(&self.medium);
        self.commit_all(&mut medium)?;
        medium.cover()?;
        self.settle(&mut medium);
        let mut front = lock(&self.front);
        if !front.engine.is_covered() {
            return Ok(0);
        }
        let discards = dead(&mut front.engine);
        drop(front);
        let block_bytes = u64::from(self.geometry().block_bytes);
        let mut discarded = 0;
        for (slot, blocks) in discards {
            let begin = self.geometry().slot_offset(slot);
            let end = (begin + u64::from(blocks) * block_bytes).min(range.end);
            let first = range.start.checked_next_multiple_of(block_bytes);
            let offset = begin.max(first.unwrap_or(u64::MAX));
            let bytes = end.saturating_sub(offset) / block_bytes * block_bytes;
            if bytes == 0 || bytes < least_bytes {
                continue;
            }
            self.disk.discard(offset, bytes).map_err(|error| StoreError::Device {
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
    pub fn scrub(&self, blocks: Range<u32>) -> Result<Vec<u32>, StoreError> {
        let mut into = vec![0; self.geometry().block_bytes as usize];
        let mut damaged = Vec::new();
        for block in blocks.start..blocks.end.min(self.geometry().blocks) {
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
        assert_eq!(into.len(), self.geometry().block_bytes as usize, "a block is read whole");
        let (newest, sum) = self.newest(block, into);
        match newest {
            Newest::Nowhere => return Ok(false),
            Newest::Here => return Ok(true),
            Newest::InSlot(slot) => {
                if self.ahead.take(slot, into) && self.is_good(block, slot, sum, into) {
                    return Ok(true);
                }
                let offset = self.geometry().slot_offset(slot);
                let is_read = self.timed(1, 1, || read(&*self.disk, offset, into)).is_ok();
                if is_read && self.is_good(block, slot, sum, into) {
                    return Ok(true);
                }
            }
        }
        // It may have been moved meanwhile; while one has the medium nothing is.
        let medium = lock(&self.medium);
        let (newest, sum) = self.newest(block, into);
        let slot = match newest {
            Newest::Nowhere => return Ok(false),
            Newest::Here => return Ok(true),
            Newest::InSlot(slot) => slot,
        };
        medium.read(self.geometry().slot_offset(slot), into)?;
        if self.is_good(block, slot, sum, into) {
            return Ok(true);
        }
        into.fill(0);
        Err(StoreError::Damaged { block, slot })
    }

    /// Where the newest data of `block` is, and its sum if that is a slot.
    fn newest(&self, block: u32, into: &mut [u8]) -> (Newest, u32) {
        let front = lock(&self.front);
        (front.newest(block, into), self.sums.get(block))
    }

    /// Whether `data` is what was written to `slot` as `block`.
    fn is_good(&self, block: u32, slot: u32, sum: u32, data: &[u8]) -> bool {
        let is_same = short_sum(&self.geometry().uuid, block, slot, data) == sum
            || is_seeded(SeededFault::SumOfReadIgnored);
        is_same && !self.sums.is_damaged(block)
    }

    /// Checks everything that the log promises about its own state.
    ///
    /// # Panics
    /// If it does not hold, which is a bug.
    pub fn verify(&self) {
        lock(&self.front).engine.verify();
    }

    /// Brings everything to the medium and leaves it as one that was closed in order, until something is
    /// written.
    ///
    /// # Errors
    /// If the disk fails; then it is as after a crash.
    pub fn leave(&self) -> Result<(), StoreError> {
        let mut medium = lock(&self.medium);
        self.commit_all(&mut medium)?;
        self.write_map(&mut medium)?;
        medium.close()
    }

    /// Lets others have the disk, when it was left and nobody will write to it any more.
    pub fn release(&self) {
        self.disk.release();
    }

    /// Closes it in order and gives the disk back.
    ///
    /// # Errors
    /// If the disk fails; then it is as after a crash.
    ///
    /// # Panics
    /// If a thread that was in the store has panicked.
    pub fn close(self) -> Result<D, StoreError> {
        self.leave()?;
        Ok(self.into_disk())
    }

    /// The disk that it lay on.
    fn into_disk(self) -> D {
        let Self { disk, medium, .. } = self;
        drop(medium);
        Arc::into_inner(disk).expect("only the medium had it too")
    }
}
