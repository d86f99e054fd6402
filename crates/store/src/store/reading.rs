//! Many blocks read at once, and which there are.

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::read_ahead::AHEAD_BYTES_MAX;
use super::{Newest, Store, gaps, lock};
use crate::StoreError;
use crate::device::{Disk, ReadPiece};
use crate::format::NONE;

/// Bytes of gaps that are read with what is read ahead, at most; chosen by us: a part of what is kept of it.
const AHEAD_GAP_BYTES_MAX: usize = AHEAD_BYTES_MAX / 4;

/// A block that lies on the disk.
#[derive(Debug, Clone, Copy)]
struct Lying {
    /// Which of those asked for it is.
    index: usize,
    block: u32,
    slot: u32,
    sum: u32,
}

impl<D: Disk> Store<D> {
    /// Fills `into` with the blocks from `first` on; gives those that there are not, in order, which are
    /// zeros. All are looked up at one moment, and what lies side by side is read by one request of the
    /// disk, all requests together. What is written meanwhile may be read as it was or as it is then, block
    /// by block.
    ///
    /// # Errors
    /// That of the first block that is not what was written or cannot be read. All that can be has been
    /// read all the same, and what cannot is zeros.
    ///
    /// # Panics
    /// If `into` is not whole blocks.
    pub fn read_run(&self, first: u32, into: &mut [u8]) -> Result<Vec<u32>, StoreError> {
        self.read_run_before(first, u32::MAX, into)
    }

    /// The same, where the block `next` will probably be read next: if it lies a little further on, what lies
    /// between is read now, so that a disk has not passed it by then.
    ///
    /// # Errors
    /// As those of [`read_run`](Self::read_run).
    ///
    /// # Panics
    /// As it does.
    pub fn read_run_before(
        &self,
        first: u32,
        next: u32,
        into: &mut [u8],
    ) -> Result<Vec<u32>, StoreError> {
        let blocks = into.len() / self.geometry().block_bytes as usize;
        // Behind the last number there is nothing, whatever it is called.
        self.read_numbered((0..blocks as u64).map(|at| u64::from(first) + at), next, into)
    }

    /// Where the `count` blocks from `first` on lie on the disk, bytes; none for those that there are not, or
    /// that are in memory only.
    #[must_use]
    pub fn places(&self, first: u32, count: u32) -> Vec<Option<u64>> {
        self.places_of(first..first.saturating_add(count))
    }

    /// The same of the `blocks` that are listed.
    #[must_use]
    pub fn places_of(&self, blocks: impl Iterator<Item = u32>) -> Vec<Option<u64>> {
        let mut scratch = vec![0; self.geometry().block_bytes as usize];
        let front = lock(&self.front);
        let place = |block: u32| match front.newest(block, &mut scratch) {
            Newest::InSlot(slot) => Some(self.geometry().slot_offset(slot)),
            Newest::Here | Newest::Nowhere => None,
        };
        blocks.map(place).collect()
    }

    /// Blocks of the longest gap that is read with what lies before and behind it; 0 if none is worth it.
    #[must_use]
    pub fn longest_gap(&self) -> u32 {
        self.gaps.longest()
    }

    /// Whether it is known that a read elsewhere takes so long that an arm must be moved for it.
    #[must_use]
    pub fn has_arm(&self) -> bool {
        self.gaps.has_arm()
    }

    /// The same as far as it is expected.
    #[must_use]
    pub fn may_have_arm(&self) -> bool {
        self.gaps.may_have_arm()
    }

    /// What a read of one block elsewhere takes, by and by, and what each block takes that is read or written
    /// behind another, ns.
    #[must_use]
    pub fn read_times_ns(&self) -> (u64, u64) {
        self.gaps.times_ns()
    }

    /// What one of many requests takes that are sent together, without the time of its blocks, by and by, ns.
    #[must_use]
    pub fn queued_read_ns(&self) -> u64 {
        self.gaps.queued_read_ns()
    }

    /// Reads `blocks`, in any order, so that reading them from now on finds them in memory, once; and those of
    /// `others` that lie where reading them takes hardly longer, at most `near_slots` from one of `blocks`. What
    /// cannot be read is left to who reads it, and one by itself as well; how many were read.
    pub fn read_ahead(&self, blocks: &[u32], others: &[u32], near_slots: u32) -> u32 {
        let bytes = self.geometry().block_bytes as usize;
        let longest = self.gaps.longest();
        let mut scratch = vec![0; bytes];
        let front = lock(&self.front);
        let mut slots_of = |blocks: &[u32]| {
            let mut slots: Vec<u32> = Vec::with_capacity(blocks.len());
            for block in blocks {
                // What is there already would make two requests of one where no gaps are read.
                if let Newest::InSlot(slot) = front.newest(*block, &mut scratch)
                    && (longest == 0 || !self.ahead.holds(slot))
                {
                    slots.push(slot);
                }
            }
            slots.sort_unstable();
            slots
        };
        let (mut slots, others) = (slots_of(blocks), slots_of(others));
        drop(front);
        gaps::add_near(&mut slots, &others, longest, near_slots);
        slots.truncate(AHEAD_BYTES_MAX / bytes);
        if slots.len() < 2 {
            return 0;
        }
        let gaps = gaps::between(slots.iter().copied(), longest, AHEAD_GAP_BYTES_MAX / bytes);
        let between: Vec<u32> = gaps.into_iter().flatten().collect();
        let mut all = [&between[..], &slots[..]].concat();
        all.sort_unstable();
        let mut data = vec![0; all.len() * bytes];
        let runs = all.chunk_by(|one, next| one + 1 == *next);
        if !self.read_runs(runs.map(|run| run[0]..run[run.len() - 1] + 1), &mut data) {
            return 0;
        }
        // Whether it is what was written is looked at by who takes it. What was asked for comes last, and so goes
        // last; in what lies between there may be leaves that are read next.
        let read = all.iter().copied().zip(data.chunks_exact(bytes));
        let (wanted, passed): (Vec<_>, Vec<_>) =
            read.partition(|(slot, _)| slots.binary_search(slot).is_ok());
        self.ahead.keep(passed.into_iter().chain(wanted));
        slots.len() as u32
    }

    /// Fills `into` with `runs` of slots, one behind the other, by requests that are sent together; whether all could be
    /// read. If not, nothing is read any more that nobody asked for: a disk tries for seconds.
    pub(super) fn read_runs(
        &self,
        runs: impl Iterator<Item = Range<u32>>,
        mut into: &mut [u8],
    ) -> bool {
        let bytes = self.geometry().block_bytes as usize;
        let mut pieces = Vec::new();
        for run in runs {
            let (piece, behind) = std::mem::take(&mut into).split_at_mut(run.len() * bytes);
            pieces.push(ReadPiece { offset: self.geometry().slot_offset(run.start), into: piece });
            into = behind;
        }
        let are_read = self.disk.read_pieces(&mut pieces).is_ok();
        if !are_read {
            self.gaps.give_up();
        }
        are_read
    }

    /// Whether all of the `count` blocks from `first` on that lie on the disk were read ahead.
    #[must_use]
    pub fn is_read_ahead(&self, first: u32, count: u32) -> bool {
        if self.ahead.is_empty() {
            return false;
        }
        let mut scratch = vec![0; self.geometry().block_bytes as usize];
        let front = lock(&self.front);
        (first..first.saturating_add(count)).all(|block| match front.newest(block, &mut scratch) {
            Newest::InSlot(slot) => self.ahead.holds(slot),
            Newest::Here | Newest::Nowhere => true,
        })
    }

    /// The same for `blocks`, in any order.
    ///
    /// # Errors
    /// As those of [`read_run`](Self::read_run).
    ///
    /// # Panics
    /// If `into` is not as long as they are together.
    pub fn read_listed(&self, blocks: &[u32], into: &mut [u8]) -> Result<Vec<u32>, StoreError> {
        let bytes = self.geometry().block_bytes as usize;
        assert_eq!(into.len(), blocks.len() * bytes, "a block is read whole");
        self.read_numbered(blocks.iter().map(|block| u64::from(*block)), u32::MAX, into)
    }

    /// Fills `into` with the blocks `numbers`; `next` is what will probably be read next.
    fn read_numbered(
        &self,
        numbers: impl Iterator<Item = u64>,
        next: u32,
        into: &mut [u8],
    ) -> Result<Vec<u32>, StoreError> {
        let bytes = self.geometry().block_bytes as usize;
        assert!(into.len().is_multiple_of(bytes), "a block is read whole");
        let numbers = numbers.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        let (mut lying, mut absent) = (Vec::with_capacity(into.len() / bytes), Vec::new());
        let front = lock(&self.front);
        for (index, (block, into)) in numbers.zip(into.chunks_exact_mut(bytes)).enumerate() {
            match front.newest(block, into) {
                Newest::Nowhere => absent.push((index, block)),
                Newest::Here => {}
                Newest::InSlot(slot) => {
                    lying.push(Lying { index, block, slot, sum: self.sums.get(block) });
                }
            }
        }
        let next = front.engine.log().look_up(next);
        drop(front);
        let is_ahead =
            |one: &Lying| self.ahead.take(one.slot, &mut into[one.index * bytes..][..bytes]);
        let (ahead, asked): (Vec<Lying>, Vec<Lying>) = lying.into_iter().partition(is_ahead);
        let are_read = asked.is_empty() || self.read_asked(&asked, next, into);
        let mut error = None;
        let read = asked.into_iter().map(|one| (one, are_read));
        for (one, is_read) in ahead.into_iter().map(|one| (one, true)).chain(read) {
            let Lying { index, block, slot, sum } = one;
            let into = &mut into[index * bytes..(index + 1) * bytes];
            if is_read && self.is_good(block, slot, sum, into) {
                continue;
            }
            // It may have been moved, or cannot be read with the others.
            match self.read(block, into) {
                Ok(true) => {}
                Ok(false) => absent.push((index, block)),
                Err(found) => {
                    into.fill(0);
                    error.get_or_insert(found);
                }
            }
        }
        absent.sort_unstable();
        for (index, _) in &absent {
            into[index * bytes..(index + 1) * bytes].fill(0);
        }
        match error {
            Some(error) => Err(error),
            None => Ok(absent.into_iter().map(|(_, block)| block).collect()),
        }
    }

    /// Fills `into` with the blocks `asked`, and reads what lies between them and before the slot `next` where
    /// that is worth it; whether all could be read.
    fn read_asked(&self, asked: &[Lying], next: u32, into: &mut [u8]) -> bool {
        let longest = self.gaps.longest();
        // No more that nobody asked for than what was asked for.
        let mut gaps = gaps::between(asked.iter().map(|one| one.slot), longest, asked.len());
        if let Some(last) = asked.last().filter(|_| next != NONE) {
            gaps.extend(gaps::before_slot(last.slot, next, longest));
        }
        let bytes = self.geometry().block_bytes as usize;
        let slots: usize = gaps.iter().map(Range::len).sum();
        let mut between = vec![0; slots * bytes];
        let (mut pieces, mut rest) = (self.pieces(asked, into), &mut between[..]);
        for gap in &gaps {
            let (into, behind) = rest.split_at_mut(gap.len() * bytes);
            pieces.push(ReadPiece { offset: self.geometry().slot_offset(gap.start), into });
            rest = behind;
        }
        if !gaps.is_empty() {
            // What is side by side becomes one request if it is asked for in a row.
            pieces.sort_unstable_by_key(|piece| piece.offset);
        }
        let end = |piece: &ReadPiece<'_>| piece.offset + piece.into.len() as u64;
        let follows = |one: &ReadPiece<'_>, next: &ReadPiece<'_>| end(one) == next.offset;
        let requests = pieces.chunk_by(follows).count();
        let are_read = self
            .timed(asked.len() + slots, requests, || self.disk.read_pieces(&mut pieces))
            .is_ok();
        if !are_read && !gaps.is_empty() {
            self.gaps.give_up();
        }
        are_read
    }

    /// Notes how long `read` of `blocks` blocks by `requests` requests takes, if that is learnt.
    pub(super) fn timed<R>(&self, blocks: usize, requests: usize, read: impl FnOnce() -> R) -> R {
        let now_ns = || if self.gaps.is_learning() { self.disk.now_ns() } else { None };
        self.has_moved.store(true, Ordering::Relaxed);
        let begin_ns = now_ns();
        let done = read();
        if let (Some(begin_ns), Some(end_ns)) = (begin_ns, now_ns()) {
            self.gaps.took(blocks as u64, requests as u64, end_ns.saturating_sub(begin_ns));
        }
        done
    }

    /// Where `lying` go to in `into`, those that are side by side in both together.
    fn pieces<'a>(&self, lying: &[Lying], mut into: &'a mut [u8]) -> Vec<ReadPiece<'a>> {
        let bytes = self.geometry().block_bytes as usize;
        let mut behind = 0;
        let follows =
            |one: &Lying, next: &Lying| one.index + 1 == next.index && one.slot + 1 == next.slot;
        let runs = lying.chunk_by(follows).map(|run| {
            let rest = std::mem::take(&mut into);
            let (_, rest) = rest.split_at_mut((run[0].index - behind) * bytes);
            let (data, rest) = rest.split_at_mut(run.len() * bytes);
            (into, behind) = (rest, run[0].index + run.len());
            ReadPiece { offset: self.geometry().slot_offset(run[0].slot), into: data }
        });
        runs.collect()
    }

    /// Which blocks there are, at one moment: bit `block % 64` of word `block / 64`. All later ones are not.
    #[must_use]
    pub fn held_blocks(&self) -> Vec<u64> {
        lock(&self.front).engine.log().held_blocks()
    }
}
