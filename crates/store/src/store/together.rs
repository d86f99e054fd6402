//! Blocks put together on the disk because they are read together.

use super::{Newest, Store, Transaction, lock};
use crate::StoreError;
use crate::aligned::AlignedBytes;
use crate::device::{Disk, ReadPiece};
use crate::engine::Extent;

/// Cleanings for blocks that find no room; chosen by us: what frees a segment where one in eight blocks is dead.
const CLEANINGS_MAX: u32 = 8;

/// A block, and where its newest data lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Placed {
    block: u32,
    slot: u32,
    sum: u32,
}

impl<D: Disk> Store<D> {
    /// Writes `blocks`, which are distinct, one behind the other to another place on the disk; how many
    /// were. Those that there are not, are in memory only, or are written meanwhile stay as they are. They
    /// are read before, in the order in which they lie, while others read and write. Room is not made for
    /// them: it ends where writers would have to wait for room. What is in them does not change, so that
    /// there is nothing to be synced.
    ///
    /// # Errors
    /// If the disk fails. Damaged blocks stay where they are.
    pub fn put_together(&self, blocks: &[u32]) -> Result<u32, StoreError> {
        self.put_together_of(blocks, |some| self.read_placed(some))
    }

    /// The same of blocks whose data the caller has: none of them is read. What is not what the store has is
    /// left where it is.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn put_together_from_memory(&self, blocks: &[(u32, &[u8])]) -> Result<u32, StoreError> {
        self.put_together_of(blocks, |some| self.copy_placed(some))
    }

    fn put_together_of<B>(
        &self,
        blocks: &[B],
        data_of: impl Fn(&[B]) -> (Vec<Placed>, AlignedBytes),
    ) -> Result<u32, StoreError> {
        let mut moved = 0;
        for some in blocks.chunks(self.transaction_blocks_max() as usize) {
            self.carry_out_much()?;
            let (placed, data) = data_of(some);
            let planned = self.plan_together(placed, data)?;
            if planned > 0 {
                self.carry_out_some()?;
            }
            moved += planned;
            if (planned as usize) < some.len() && !self.has_room_together(some.len() as u32) {
                break;
            }
        }
        Ok(moved)
    }

    /// Takes new data of blocks that there are in, as a transaction by itself: written one behind the other if there is
    /// room for that without room being made, and as [`write`](Self::write) does otherwise.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Panics
    /// If the log has less room than it said, which is a bug.
    pub fn write_together(&self, writes: Vec<(u32, &[u8])>) -> Result<(), StoreError> {
        let transaction = Transaction { writes, frees: Vec::new() };
        self.check(&transaction)?;
        let blocks: Vec<u32> = transaction.writes.iter().map(|write| write.0).collect();
        self.carry_out_much()?;
        let mut guard = lock(&self.front);
        let front = &mut *guard;
        // What waits has its group first.
        front.plan_changes()?;
        let are_there = blocks.iter().all(|block| front.engine.log().holds(*block));
        if !are_there || !front.engine.has_room_together(blocks.len() as u32) {
            drop(guard);
            return self.write(&transaction);
        }
        let bytes = self.geometry().block_bytes as usize;
        let mut data = AlignedBytes::zeroed(blocks.len() * bytes);
        for (into, (_, from)) in data.chunks_exact_mut(bytes).zip(&transaction.writes) {
            into.copy_from_slice(from);
        }
        let planned = front.plan_together(&blocks, data);
        assert_eq!(planned as usize, blocks.len(), "there was room for all of them");
        front.taken += 1;
        drop(guard);
        self.carry_out_some()
    }

    /// Whether there is room to put `blocks` blocks together without room being made.
    #[must_use]
    pub fn has_room_together(&self, blocks: u32) -> bool {
        lock(&self.front).engine.has_room_together(blocks)
    }

    /// Cleans until there is room to put `blocks` blocks together, not too often and only as long as it `goes_on`;
    /// whether there is.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn make_room_together(
        &self,
        blocks: u32,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool, StoreError> {
        for _ in 0..CLEANINGS_MAX {
            if self.has_room_together(blocks) {
                return Ok(true);
            }
            if !goes_on() {
                return Ok(false);
            }
            self.clean_for_together()?;
        }
        Ok(self.has_room_together(blocks))
    }

    /// Cleans once, so that there may be room to put blocks together: new data that goes into holes
    /// leaves none for whole segments. Whether it has gained any.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn clean_for_together(&self) -> Result<bool, StoreError> {
        let mut medium = lock(&self.medium);
        let free = || lock(&self.front).engine.log().free_segments().len();
        let before = free();
        self.collect_once(&mut medium, Extent::Cleaned)?;
        Ok(free() > before)
    }

    /// Where each of `blocks` lies that lies somewhere.
    fn placed(&self, blocks: &[u32]) -> Vec<Placed> {
        let mut scratch = vec![0; self.geometry().block_bytes as usize];
        let front = lock(&self.front);
        let place = |block: &u32| match front.newest(*block, &mut scratch) {
            Newest::InSlot(slot) => {
                Some(Placed { block: *block, slot, sum: self.sums.get(*block) })
            }
            Newest::Here | Newest::Nowhere => None,
        };
        blocks.iter().filter_map(place).collect()
    }

    /// The data of those of `blocks` that can be read.
    fn read_placed(&self, blocks: &[u32]) -> (Vec<Placed>, AlignedBytes) {
        let bytes = self.geometry().block_bytes as usize;
        let mut placed = self.placed(blocks);
        let mut data = AlignedBytes::zeroed(placed.len() * bytes);
        let mut pieces: Vec<ReadPiece<'_>> = placed
            .iter()
            .zip(data.chunks_exact_mut(bytes))
            .map(|(one, into)| ReadPiece { offset: self.geometry().slot_offset(one.slot), into })
            .collect();
        pieces.sort_unstable_by_key(|piece| piece.offset);
        if self.disk.read_pieces(&mut pieces).is_err() {
            placed.clear();
        }
        self.retain_good(placed, data)
    }

    /// Those of `blocks`, with their data, that lie somewhere.
    fn copy_placed(&self, blocks: &[(u32, &[u8])]) -> (Vec<Placed>, AlignedBytes) {
        let bytes = self.geometry().block_bytes as usize;
        let numbers: Vec<u32> = blocks.iter().map(|block| block.0).collect();
        let placed = self.placed(&numbers);
        let mut data = AlignedBytes::zeroed(placed.len() * bytes);
        let mut from = blocks.iter();
        for (one, into) in placed.iter().zip(data.chunks_exact_mut(bytes)) {
            let (_, found) =
                from.find(|(number, _)| *number == one.block).expect("they are in the same order");
            into.copy_from_slice(found);
        }
        self.retain_good(placed, data)
    }

    /// Without those whose data is not what was written.
    fn retain_good(
        &self,
        mut placed: Vec<Placed>,
        mut data: AlignedBytes,
    ) -> (Vec<Placed>, AlignedBytes) {
        let bytes = self.geometry().block_bytes as usize;
        let mut kept = 0;
        for index in 0..placed.len() {
            let Placed { block, slot, sum } = placed[index];
            if self.is_good(block, slot, sum, &data[index * bytes..(index + 1) * bytes]) {
                data.copy_within(index * bytes..(index + 1) * bytes, kept * bytes);
                placed[kept] = placed[index];
                kept += 1;
            }
        }
        placed.truncate(kept);
        (placed, data)
    }

    /// Plans to write those of `placed` that still lie there; how many.
    fn plan_together(
        &self,
        placed: Vec<Placed>,
        mut data: AlignedBytes,
    ) -> Result<u32, StoreError> {
        let bytes = self.geometry().block_bytes as usize;
        let mut scratch = vec![0; bytes];
        let mut guard = lock(&self.front);
        let front = &mut *guard;
        // What waits has its group first.
        front.plan_changes()?;
        let mut blocks = Vec::with_capacity(placed.len());
        for (index, one) in placed.into_iter().enumerate() {
            let lies_there = matches!(
                front.newest(one.block, &mut scratch),
                Newest::InSlot(slot) if slot == one.slot
            );
            if lies_there && self.sums.get(one.block) == one.sum {
                let to = blocks.len() * bytes;
                data.copy_within(index * bytes..(index + 1) * bytes, to);
                blocks.push(one.block);
            }
        }
        if blocks.is_empty() || !front.engine.has_room_together(blocks.len() as u32) {
            return Ok(0);
        }
        Ok(front.plan_together(&blocks, data))
    }
}
