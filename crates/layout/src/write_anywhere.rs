//! Write-anywhere: each new version of a block goes to a free place that is easy to reach; its old
//! place is free once the map on disk no longer names it.
//!
//! Blocks wait in a write buffer and are sent in the order of writing; free places side by side are
//! filled by one transfer. Which free place is next is decided by a [`Search`]; the head is taken to
//! be where the last transfer of the layout, read or write, ended. When the old place may be written
//! again depends on how the layout recovers from a crash ([`CrashRecovery`]).
//!
//! Invariants: a place that the map on disk names is never written; a place is free, held (named by
//! the map on disk alone), of a block, or of the map; enough places stay free for one more version
//! of anything, so that what has been admitted can always be sent.
//!
//! Sources: Matthews 1999, §3.6 and §6.2.2, for the whole and the sweep (after Wang et al. 1999);
//! English & Stepanov 1992 (Loge), for the nearest place and its trap; Chao et al. 1992 (Mime), for
//! recovery from a checkpoint; Hitz et al. 1995 (WAFL), for stripes and snapshots.
//!
//! Left open by the sources, and decided here: sweeping downwards, a transfer still writes upwards;
//! a tie between two sides goes upwards. As in the thesis, nothing is modelled of the metadata of
//! files; the map of a checkpoint or a snapshot is.
//!
//! Cost: a write is one or two searches in a bitmap with summaries and a random access to the map of
//! blocks.

mod allocator;
mod disk_map;
mod search;
mod stripes;
#[cfg(test)]
mod tests;

use crate::block_layout::{
    BlockCounts, BlockLayout, FileBlock, LayoutError, Place, even_places, read_in_runs,
};
use crate::write_buffers::WriteBuffers;
use agewell_log::free_places::FreePlaces;
use agewell_log::pending_discards::PendingDiscards;
use agewell_log::{BlockDevice, Purpose, Transfer, pass_batches_on};
pub use allocator::Allocator;
use allocator::Outside;
use disk_map::DiskMap;
pub use disk_map::{CrashRecovery, MAP_ENTRY_BYTES};
pub use search::{Choice, Heading, Search, View};
pub use stripes::Stripes;

/// No place.
const NONE: u32 = u32::MAX;

/// Everything about the layout but its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteAnywhereSetting {
    /// Places of the disk.
    pub capacity_blocks: u32,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Clients, each with a write buffer.
    pub clients: u32,
    /// Blocks in a write buffer.
    pub buffer_blocks: u32,
    /// How the next free place is found.
    pub search: Search,
    /// How the map of blocks is found again after a crash.
    pub recovery: CrashRecovery,
    /// Blocks written between checkpoints or snapshots; one is taken earlier when no place is free.
    pub checkpoint_blocks: u32,
}

/// Every version of a block in a new place. See the module.
#[derive(Debug, Clone)]
pub struct WriteAnywhere {
    setting: WriteAnywhereSetting,
    /// Who searches in place of the setting.
    allocator: Outside,
    free: FreePlaces,
    dead: PendingDiscards,
    /// Free places by stripe, where the search asks for it.
    stripes: Option<Stripes>,
    /// Place of the newest version that was sent of each block.
    map: Vec<u32>,
    /// Places that nothing but the map on disk names.
    held: Vec<u32>,
    disk_map: DiskMap,
    head: u32,
    last_written: u32,
    heading: Heading,
    live_blocks: u64,
    buffers: WriteBuffers,
    counts: BlockCounts,
    outgoing: Vec<u32>,
}

/// Transfers within this distance of the head are near it, bytes; a segment of Matthews 1999,
/// §5.2.2.
const NEAR_BYTES: u64 = 256 << 10;

impl WriteAnywhere {
    /// An empty disk.
    ///
    /// # Errors
    /// If the disk has no room for anything beside the map.
    pub fn new(setting: WriteAnywhereSetting) -> Result<Self, LayoutError> {
        let capacity = setting.capacity_blocks;
        let disk_map = DiskMap::new(setting.recovery, capacity, setting.block_bytes);
        if disk_map.kept_places() + 1 >= u64::from(capacity) {
            return Err(LayoutError::Full { live: 0, capacity: capacity.into() });
        }
        let stripes = match setting.search {
            Search::Stripe { stripe_blocks } => Some(Stripes::all_free(capacity, stripe_blocks)),
            Search::Sweep | Search::Nearest => None,
        };
        let mut layout = Self {
            setting,
            allocator: Outside::default(),
            free: FreePlaces::all_free(capacity),
            dead: PendingDiscards::default(),
            stripes,
            map: Vec::new(),
            held: Vec::new(),
            head: disk_map.fixed_places(),
            last_written: disk_map.fixed_places(),
            disk_map,
            heading: Heading::Up,
            live_blocks: 0,
            buffers: WriteBuffers::new(setting.clients, setting.buffer_blocks),
            counts: BlockCounts::default(),
            outgoing: Vec::new(),
        };
        for place in 0..layout.disk_map.fixed_places() {
            layout.take(place);
        }
        Ok(layout)
    }

    /// From here on `allocator` chooses where blocks are written.
    pub fn allocate_by(&mut self, allocator: Box<dyn Allocator>) {
        self.allocator = Outside(Some(allocator));
    }

    /// Where the head is after the last transfer: the place behind it.
    #[must_use]
    pub fn head(&self) -> u32 {
        self.head
    }

    fn take(&mut self, place: u32) {
        self.free.take(place);
        self.dead.used(place);
        if let Some(stripes) = &mut self.stripes {
            stripes.take(place);
        }
    }

    fn give_back(&mut self, place: u32) {
        self.free.give_back(place);
        self.dead.died(place);
        if let Some(stripes) = &mut self.stripes {
            stripes.give_back(place);
        }
    }

    fn exists(&self, block: u32) -> bool {
        self.map.get(block as usize).is_some_and(|place| *place != NONE)
            || self.buffers.is_waiting(block)
    }

    /// Room for one more block, and for one more version of anything beside it.
    fn check_room(&self) -> Result<(), LayoutError> {
        let capacity = u64::from(self.setting.capacity_blocks);
        if self.live_blocks + self.disk_map.kept_places() + 2 > capacity {
            return Err(LayoutError::Full { live: self.live_blocks, capacity });
        }
        Ok(())
    }

    /// Takes the next free places side by side, `most` at most: the first of them, and how many.
    fn take_run(&mut self, most: u32) -> (u32, u32) {
        let view = View {
            free: &self.free,
            stripes: self.stripes.as_ref(),
            head: self.head,
            last_written: self.last_written,
            heading: self.heading,
        };
        let chosen = self.allocator.0.as_mut().and_then(|allocator| allocator.choose(view));
        let choice = chosen.or_else(|| self.setting.search.choose(view));
        let choice = choice.expect("a place was kept free");
        let (first, length) = choice.run(&self.free, most);
        self.heading = choice.heading;
        self.last_written = first + length - 1;
        for place in first..first + length {
            self.take(place);
        }
        (first, length)
    }

    /// Whether a transfer at `place` needs hardly any seek from the head.
    fn is_near(&self, place: u32) -> bool {
        u64::from(self.head.abs_diff(place)) * self.setting.block_bytes < NEAR_BYTES
    }

    /// Writes `blocks` to the next free places.
    fn write_blocks(&mut self, blocks: &[u32], device: &mut impl BlockDevice) {
        let (mut rest, mut further) = (blocks, false);
        while !rest.is_empty() {
            if self.free.free() <= self.disk_map.spare_places() {
                self.name_on_disk(device);
                further = false;
            }
            let room = self.free.free() - self.disk_map.spare_places();
            let (first, length) = self.take_run(room.min(rest.len() as u32));
            let (sent, later) = rest.split_at(length as usize);
            let near = further && self.is_near(first);
            let transfer = Transfer::of_blocks(Purpose::NewData, first, length);
            device.transfer(&Transfer { further: near, ..transfer }, sent);
            self.head = first + length;
            for (block, place) in sent.iter().zip(first..) {
                let old = std::mem::replace(&mut self.map[*block as usize], place);
                if old != NONE {
                    self.held.push(old);
                }
                self.disk_map.note_placed(*block, place);
            }
            further = true;
            rest = later;
        }
    }

    /// The map on disk comes to name what has been written, so that held places are free.
    fn name_on_disk(&mut self, device: &mut impl BlockDevice) {
        match self.setting.recovery {
            // Each block says what it is.
            CrashRecovery::Scan => device.commit(),
            CrashRecovery::Checkpoint => {
                // The map must not name what is not there yet.
                device.wait();
                let written = self.disk_map.checkpoint(device);
                self.counts.moved_blocks += u64::from(written);
                let region = self.disk_map.last_region();
                self.head = region + written;
                device.commit();
            }
            CrashRecovery::Snapshot => self.take_snapshot(device),
        }
        let mut held = std::mem::take(&mut self.held);
        for place in held.drain(..) {
            self.give_back(place);
        }
        self.held = held;
        self.dead.issue(device);
    }

    /// Writes the changed blocks of the map to free places and then the root, in its own place.
    fn take_snapshot(&mut self, device: &mut impl BlockDevice) {
        let changed = self.disk_map.take_changed();
        let mut rest = &changed[..];
        device.begin_batch();
        while !rest.is_empty() {
            let (first, length) = self.take_run(rest.len() as u32);
            let (sent, later) = rest.split_at(length as usize);
            let near = self.is_near(first);
            let transfer = Transfer::of_blocks(Purpose::MetadataWrite, first, length);
            device.transfer(&Transfer { further: near, ..transfer }, &[]);
            self.head = first + length;
            for (map_block, place) in sent.iter().zip(first..) {
                self.held.extend(self.disk_map.move_map_block(*map_block, place));
            }
            rest = later;
        }
        device.end_batch();
        // The root names what has just been written, and must not be there before it.
        device.wait();
        device.transfer(&Transfer::of_blocks(Purpose::MetadataWrite, 0, 1), &[]);
        self.head = 1;
        self.counts.moved_blocks += changed.len() as u64 + 1;
        self.disk_map.snapshot_done();
        device.commit();
    }
}

impl BlockLayout for WriteAnywhere {
    fn ensure_blocks(&mut self, blocks: u32) {
        if blocks as usize > self.map.len() {
            self.map.resize(blocks as usize, NONE);
            self.buffers.ensure_blocks(blocks);
        }
    }

    fn preload(&mut self, block: u32, _name: FileBlock) -> Result<(), LayoutError> {
        self.check_room()?;
        let (place, _) = self.take_run(1);
        self.head = place + 1;
        self.map[block as usize] = place;
        self.live_blocks += 1;
        Ok(())
    }

    fn fragment(&mut self, first: u32, blocks: u32, chunk_blocks: u32) -> Result<(), LayoutError> {
        let front = u64::from(self.disk_map.fixed_places());
        let capacity = u64::from(self.setting.capacity_blocks);
        let places = even_places(capacity - front, u64::from(blocks), chunk_blocks);
        for (block, place) in (first..).zip(places.map(|place| front + place)) {
            self.check_room()?;
            if place >= capacity || !self.free.is_free(place as u32) {
                return Err(LayoutError::Full { live: u64::from(blocks), capacity });
            }
            self.take(place as u32);
            self.map[block as usize] = place as u32;
            self.live_blocks += 1;
        }
        Ok(())
    }

    #[inline]
    fn write(
        &mut self,
        block: u32,
        _name: FileBlock,
        client: u32,
        device: &mut impl BlockDevice,
    ) -> Result<(), LayoutError> {
        if !self.exists(block) {
            self.check_room()?;
            self.live_blocks += 1;
        }
        self.counts.user_blocks += 1;
        if !self.buffers.push(client, block) {
            self.counts.absorbed_blocks += 1;
        } else if self.buffers.is_full(client) {
            self.sync(client, device)?;
        }
        Ok(())
    }

    fn read(&mut self, blocks: &[u32], purpose: Purpose, device: &mut impl BlockDevice) {
        let mut watched = WatchedHead { device, head: self.head };
        read_in_runs(blocks, purpose, |block| self.place_of(block), &mut watched);
        self.head = watched.head;
    }

    fn delete(&mut self, block: u32, _device: &mut impl BlockDevice) {
        if !self.exists(block) {
            return;
        }
        self.live_blocks -= 1;
        if self.buffers.forget(block) {
            self.counts.absorbed_blocks += 1;
        }
        let place = std::mem::replace(&mut self.map[block as usize], NONE);
        if place == NONE {
            return;
        }
        self.disk_map.note_changed(block);
        if self.setting.recovery == CrashRecovery::Scan {
            self.give_back(place);
        } else {
            self.held.push(place);
        }
    }

    fn sync(&mut self, client: u32, device: &mut impl BlockDevice) -> Result<(), LayoutError> {
        let mut outgoing = std::mem::take(&mut self.outgoing);
        self.buffers.take(client, &mut outgoing);
        if outgoing.is_empty() {
            self.outgoing = outgoing;
            return Ok(());
        }
        self.counts.new_blocks += outgoing.len() as u64;
        device.begin_batch();
        self.write_blocks(&outgoing, device);
        device.end_batch();
        // Blocks written carry their own headers, or are in memory that survives a crash.
        device.commit();
        if self.setting.recovery == CrashRecovery::Scan
            || self.disk_map.placed_blocks() >= self.setting.checkpoint_blocks as usize
        {
            self.name_on_disk(device);
        }
        self.outgoing = outgoing;
        Ok(())
    }

    fn sync_all(&mut self, device: &mut impl BlockDevice) -> Result<(), LayoutError> {
        (0..self.buffers.clients()).try_for_each(|client| self.sync(client, device))
    }

    fn place_of(&self, block: u32) -> Place {
        if self.buffers.is_waiting(block) {
            return Place::Memory;
        }
        match self.map.get(block as usize) {
            None | Some(&NONE) => Place::Nowhere,
            Some(place) => Place::Disk(*place),
        }
    }

    fn enable_discard(&mut self) {
        self.dead.begin(self.free.places());
    }

    fn recover(&self, device: &mut impl BlockDevice) {
        match self.setting.recovery {
            // Loge reads the whole disk, each block of which says what it is.
            CrashRecovery::Scan => {
                let all = self.setting.capacity_blocks;
                device.transfer(&Transfer::of_blocks(Purpose::RecoveryRead, 0, all), &[]);
            }
            CrashRecovery::Checkpoint => self.disk_map.recover_checkpoint(&self.free, device),
            CrashRecovery::Snapshot => self.disk_map.recover_snapshot(device),
        }
    }

    fn counts(&self) -> BlockCounts {
        self.counts
    }

    fn live_blocks(&self) -> u64 {
        self.live_blocks
    }

    fn verify(&self) {
        self.free.verify();
        if let Some(stripes) = &self.stripes {
            stripes.verify(&self.free);
        }
        let mut taken: Vec<u32> = self.map.iter().copied().filter(|place| *place != NONE).collect();
        let waiting_alone = (0..self.map.len() as u32)
            .filter(|block| self.map[*block as usize] == NONE && self.buffers.is_waiting(*block))
            .count();
        assert_eq!((taken.len() + waiting_alone) as u64, self.live_blocks, "count of live blocks");
        taken.extend(&self.held);
        taken.extend(self.disk_map.places());
        taken.sort_unstable();
        let named = taken.len();
        taken.dedup();
        assert_eq!(taken.len(), named, "two hold one place");
        assert_eq!(named as u32, self.free.places() - self.free.free(), "count of free places");
        assert!(taken.iter().all(|place| !self.free.is_free(*place)), "a place in use is free");
    }
}

/// Passes transfers on and notes where the head ends.
struct WatchedHead<'a, D> {
    device: &'a mut D,
    head: u32,
}

impl<D: BlockDevice> BlockDevice for WatchedHead<'_, D> {
    fn transfer(&mut self, transfer: &Transfer, contents: &[u32]) {
        self.device.transfer(transfer, contents);
        self.head = transfer.slot + transfer.blocks;
    }

    fn discard(&mut self, slot: u32, blocks: u32) {
        self.device.discard(slot, blocks);
    }

    pass_batches_on!();
}
