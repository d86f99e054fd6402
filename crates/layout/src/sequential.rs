//! The simple update-in-place layout of Matthews 1999, §6.2.2: a file is placed sequentially, and a
//! block stays where it was first put.
//!
//! It stands for read-optimized systems where there is one large file: "The FFS simulator simply
//! places the single large data file accessed by each microbenchmark sequentially on disk". A block
//! goes to the first free place behind the block before it in its file, around what lies there; a
//! file's first block behind the file placed last. No metadata is modelled. It does not keep a disk
//! atomic: an interrupted write may leave neither version.
//!
//! Left open by the source, and decided here: blocks that are sent together are sent in the order of
//! their places if asked so ([`Order`]), neighbours by one transfer.

use crate::block_layout::{BlockCounts, BlockLayout, FileBlock, LayoutError, Place, even_places};
use crate::write_buffers::WriteBuffers;
use agewell_log::free_places::FreePlaces;
use agewell_log::pending_discards::PendingDiscards;
use agewell_log::{BlockDevice, Purpose, Transfer};

/// No place.
const NONE: u32 = u32::MAX;

/// The order in which blocks that are sent together go to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they were written.
    Written,
    /// By their places on the disk, as every driver's queue would.
    Place,
}

/// Everything about the layout but its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequentialSetting {
    /// Places of the disk.
    pub capacity_blocks: u32,
    /// Clients, each with a write buffer.
    pub clients: u32,
    /// Blocks in a write buffer.
    pub buffer_blocks: u32,
    /// How a buffer is sent.
    pub order: Order,
}

/// Files placed sequentially, updated in place. See the module.
#[derive(Debug, Clone)]
pub struct Sequential {
    setting: SequentialSetting,
    free: FreePlaces,
    dead: PendingDiscards,
    /// Place of each block; it has one from its first write on, while it waits too.
    map: Vec<u32>,
    /// Place of the block put last, file by file.
    last_of_file: Vec<u32>,
    last_placed: u32,
    buffers: WriteBuffers,
    counts: BlockCounts,
    outgoing: Vec<u32>,
}

impl Sequential {
    /// An empty disk.
    #[must_use]
    pub fn new(setting: SequentialSetting) -> Self {
        Self {
            setting,
            free: FreePlaces::all_free(setting.capacity_blocks),
            dead: PendingDiscards::default(),
            map: Vec::new(),
            last_of_file: Vec::new(),
            last_placed: NONE,
            buffers: WriteBuffers::new(setting.clients, setting.buffer_blocks),
            counts: BlockCounts::default(),
            outgoing: Vec::new(),
        }
    }

    /// Gives `block` a place behind the block before it.
    fn place(&mut self, block: u32, name: FileBlock) -> Result<(), LayoutError> {
        let file = name.file as usize;
        if file >= self.last_of_file.len() {
            self.last_of_file.resize(file + 1, NONE);
        }
        let before = self.last_of_file[file];
        let before = if before == NONE { self.last_placed } else { before };
        let from = if before == NONE { 0 } else { before + 1 };
        let place = self.free.at_or_after(from).or_else(|| self.free.at_or_after(0));
        let Some(place) = place else {
            let capacity = u64::from(self.free.places());
            return Err(LayoutError::Full { live: self.live_blocks(), capacity });
        };
        self.free.take(place);
        self.dead.used(place);
        self.map[block as usize] = place;
        self.last_of_file[file] = place;
        self.last_placed = place;
        Ok(())
    }
}

impl BlockLayout for Sequential {
    fn ensure_blocks(&mut self, blocks: u32) {
        if blocks as usize > self.map.len() {
            self.map.resize(blocks as usize, NONE);
            self.buffers.ensure_blocks(blocks);
        }
    }

    fn preload(&mut self, block: u32, name: FileBlock) -> Result<(), LayoutError> {
        self.place(block, name)
    }

    fn fragment(&mut self, first: u32, blocks: u32, chunk_blocks: u32) -> Result<(), LayoutError> {
        let capacity = u64::from(self.free.places());
        let places = even_places(capacity, u64::from(blocks), chunk_blocks);
        for (block, place) in (first..).zip(places) {
            if place >= capacity || !self.free.is_free(place as u32) {
                return Err(LayoutError::Full { live: u64::from(blocks), capacity });
            }
            self.free.take(place as u32);
            self.map[block as usize] = place as u32;
        }
        Ok(())
    }

    fn write(
        &mut self,
        block: u32,
        name: FileBlock,
        client: u32,
        device: &mut impl BlockDevice,
    ) -> Result<(), LayoutError> {
        if self.map[block as usize] == NONE {
            self.place(block, name)?;
        }
        self.counts.user_blocks += 1;
        if !self.buffers.push(client, block) {
            self.counts.absorbed_blocks += 1;
        } else if self.buffers.is_full(client) {
            self.sync(client, device)?;
        }
        Ok(())
    }

    fn delete(&mut self, block: u32, _device: &mut impl BlockDevice) {
        let Some(place) = self.map.get_mut(block as usize).filter(|place| **place != NONE) else {
            return;
        };
        let place = std::mem::replace(place, NONE);
        self.free.give_back(place);
        self.dead.died(place);
        if self.buffers.forget(block) {
            self.counts.absorbed_blocks += 1;
        }
    }

    fn remove(&mut self, file: u32, _device: &mut impl BlockDevice) {
        if let Some(last) = self.last_of_file.get_mut(file as usize) {
            *last = NONE;
        }
    }

    fn sync(&mut self, client: u32, device: &mut impl BlockDevice) -> Result<(), LayoutError> {
        let mut outgoing = std::mem::take(&mut self.outgoing);
        self.buffers.take(client, &mut outgoing);
        self.counts.new_blocks += outgoing.len() as u64;
        let place_of = |block: &u32| self.map[*block as usize];
        if self.setting.order == Order::Place {
            outgoing.sort_unstable_by_key(place_of);
        }
        device.begin_batch();
        for run in outgoing.chunk_by(|one, next| place_of(one) + 1 == place_of(next)) {
            let transfer =
                Transfer::of_blocks(Purpose::NewData, place_of(&run[0]), run.len() as u32);
            device.transfer(&transfer, run);
        }
        device.end_batch();
        device.commit();
        self.dead.issue(device);
        self.outgoing = outgoing;
        Ok(())
    }

    fn sync_all(&mut self, device: &mut impl BlockDevice) -> Result<(), LayoutError> {
        (0..self.buffers.clients()).try_for_each(|client| self.sync(client, device))
    }

    fn place_of(&self, block: u32) -> Place {
        match self.map.get(block as usize) {
            None | Some(&NONE) => Place::Nowhere,
            Some(_) if self.buffers.is_waiting(block) => Place::Memory,
            Some(place) => Place::Disk(*place),
        }
    }

    fn enable_discard(&mut self) {
        self.dead.begin(self.free.places());
    }

    /// Without a journal nothing is known about the disk: all of it is read (Matthews 1999, §3.2).
    fn recover(&self, device: &mut impl BlockDevice) {
        let all = Transfer::of_blocks(Purpose::RecoveryRead, 0, self.free.places());
        device.transfer(&all, &[]);
    }

    fn counts(&self) -> BlockCounts {
        self.counts
    }

    fn live_blocks(&self) -> u64 {
        u64::from(self.free.places() - self.free.free())
    }

    fn verify(&self) {
        self.free.verify();
        let mut places: Vec<u32> =
            self.map.iter().copied().filter(|place| *place != NONE).collect();
        let live = places.len();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), live, "two blocks share a place");
        assert_eq!(live as u64, self.live_blocks(), "count of live blocks");
        assert!(places.iter().all(|place| !self.free.is_free(*place)), "a live place is free");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taken::Taken;

    fn layout(order: Order) -> Sequential {
        Sequential::new(SequentialSetting {
            capacity_blocks: 40,
            clients: 1,
            buffer_blocks: 4,
            order,
        })
    }

    #[test]
    fn a_file_goes_around_what_is_there_and_is_updated_in_place() {
        let mut layout = layout(Order::Place);
        layout.ensure_blocks(40);
        layout.fragment(20, 16, 8).unwrap();
        let mut device = Taken::default();
        let name = |block| FileBlock { file: 0, block };
        for block in 0..14 {
            layout.write(block, name(block), 0, &mut device).unwrap();
        }
        layout.sync_all(&mut device).unwrap();
        // Chunks lie at 0..8 and 20..28.
        let expected = [(8, 4), (12, 4), (16, 4), (28, 2)];
        assert_eq!(device.0, expected.map(|(first, length)| (Purpose::NewData, first, length)));
        device.0.clear();
        for block in [13, 3, 2] {
            layout.write(block, name(block), 0, &mut device).unwrap();
        }
        layout.sync(0, &mut device).unwrap();
        let expected = [(10, 2), (29, 1)];
        assert_eq!(device.0, expected.map(|(first, length)| (Purpose::NewData, first, length)));
        device.0.clear();
        layout.read(&(0..14).collect::<Vec<_>>(), Purpose::Read, &mut device);
        let expected = [(8, 12), (28, 2)];
        assert_eq!(device.0, expected.map(|(first, length)| (Purpose::Read, first, length)));
        layout.verify();
    }

    #[test]
    fn a_full_disk_refuses_and_goes_on_after_a_deletion() {
        let mut layout = layout(Order::Written);
        layout.ensure_blocks(41);
        for block in 0..40 {
            layout.write(block, FileBlock { file: 1, block }, 0, &mut Taken::default()).unwrap();
        }
        let name = FileBlock { file: 1, block: 40 };
        let refused = layout.write(40, name, 0, &mut Taken::default());
        assert_eq!(refused, Err(LayoutError::Full { live: 40, capacity: 40 }));
        layout.delete(7, &mut Taken::default());
        layout.write(40, name, 0, &mut Taken::default()).unwrap();
        layout.sync_all(&mut Taken::default()).unwrap();
        assert_eq!(layout.place_of(40), Place::Disk(7));
        layout.verify();
    }
}
