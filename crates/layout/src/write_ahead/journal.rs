//! The ring of transactions, what is queued for the next one, and what waits to be propagated.
//!
//! The first place of the ring says where it begins; transactions follow one another, each in
//! neighbouring places. One that would reach beyond the end begins at the front again. A transaction
//! takes a quarter of the ring at most and a checkpoint comes at half of it, so that with what is
//! left out at the end no record is written over before its places are.

use super::{JournalPlace, Journaled, WriteAheadSetting};
use agewell_log::free_places::FreePlaces;
use agewell_log::pending_discards::PendingDiscards;
use agewell_log::{BlockDevice, Purpose, Transfer};

/// No block, no entry.
const NONE: u32 = u32::MAX;

/// Bytes of a header for each record: the place, what it is, a number and a sum. Chosen by us.
const RECORD_BYTES: u64 = 16;

/// Bytes of the smallest header.
const SECTOR_BYTES: u64 = 512;

/// The journal. Places are those of the layout inside, unless they are called outer.
#[derive(Debug, Clone)]
pub(super) struct Journal {
    setting: WriteAheadSetting,
    /// First outer place of the ring.
    first: u32,
    /// Where the next transaction begins, and the oldest that is not known to be propagated; from
    /// `first` on.
    next: u32,
    oldest: u32,
    /// Places written or left out from there on.
    used: u32,
    commits: u32,
    /// A checkpoint that goes on while the journal does.
    under_way: Option<UnderWay>,
    /// Places and their blocks for the next transaction; `NONE` where a place was revoked.
    gathered: Vec<(u32, u32)>,
    /// Entry of each place in `gathered`.
    entry_of: Vec<u32>,
    /// Places that wait to be propagated, and the block of each.
    waiting: FreePlaces,
    /// Places that the layout inside has called dead since the last commit.
    pub(super) dead: PendingDiscards,
    block_at: Vec<u32>,
    /// Of each block, one of the places where it waits; of each such place, the next.
    waiting_at: Vec<u32>,
    next_of_block: Vec<u32>,
    /// Places whose blocks have been deleted: they need not be propagated from the next commit on,
    /// which says so.
    disowned: Vec<u32>,
    /// The transaction that each block was in last.
    transaction_of: Vec<u32>,
    transactions: u32,
    /// Data has been sent since the last commit.
    has_sent_data: bool,
    /// Places written beyond what the layout inside sent as new data.
    moved_places: u64,
    contents: Vec<u32>,
}

/// The places that a checkpoint propagates.
#[derive(Debug, Clone)]
struct UnderWay {
    /// Where the transaction behind it begins.
    next: u32,
    /// Places of the ring that it will free.
    used: u32,
    /// Places that it writes: first and end.
    runs: Vec<(u32, u32)>,
}

impl Journal {
    pub(super) fn new(setting: WriteAheadSetting) -> Self {
        let places = setting.inner_places;
        Self {
            first: match setting.place {
                JournalPlace::Start => 0,
                JournalPlace::Middle => places / 2,
                JournalPlace::OwnDisk => places,
            },
            next: 1,
            oldest: 1,
            used: 0,
            commits: 0,
            under_way: None,
            gathered: Vec::new(),
            entry_of: vec![NONE; places as usize],
            waiting: FreePlaces::none_free(places),
            dead: PendingDiscards::default(),
            block_at: vec![NONE; places as usize],
            waiting_at: Vec::new(),
            next_of_block: vec![NONE; places as usize],
            disowned: Vec::new(),
            transaction_of: Vec::new(),
            transactions: 0,
            has_sent_data: false,
            moved_places: 0,
            contents: Vec::new(),
            setting,
        }
    }

    pub(super) fn ensure_blocks(&mut self, blocks: u32) {
        if blocks as usize > self.waiting_at.len() {
            self.waiting_at.resize(blocks as usize, NONE);
            self.transaction_of.resize(blocks as usize, NONE);
        }
    }

    pub(super) fn takes_data(&self) -> bool {
        self.setting.journaled == Journaled::Full
    }

    /// First outer place of the journal's own disk.
    pub(super) fn second_disk_from(&self) -> Option<u32> {
        (self.setting.place == JournalPlace::OwnDisk).then_some(self.first)
    }

    /// Blocks written beside the new data.
    pub(super) fn moved_blocks(&self) -> u64 {
        self.moved_places / u64::from(self.setting.block_places.max(1))
    }

    /// The outer place of `place`.
    #[inline]
    pub(super) fn outer(&self, place: u32) -> u32 {
        if place < self.first { place } else { place + self.setting.journal_places }
    }

    /// Whether the newest version at `place` is not there yet.
    #[inline]
    pub(super) fn waits(&self, place: u32) -> bool {
        self.waiting.is_free(place)
            || self.entry_of.get(place as usize).is_some_and(|entry| *entry != NONE)
    }

    /// Passes a transfer on; the ring may lie in the middle of it.
    pub(super) fn pass(
        &self,
        transfer: &Transfer,
        contents: &[u32],
        device: &mut impl BlockDevice,
    ) {
        let Transfer { slot, blocks, .. } = *transfer;
        let before = self.first.saturating_sub(slot).min(blocks);
        if before == 0 || before == blocks {
            device.transfer(&Transfer { slot: self.outer(slot), ..*transfer }, contents);
            return;
        }
        let (one, other) = contents.split_at((before as usize).min(contents.len()));
        device.transfer(&Transfer { blocks: before, ..*transfer }, one);
        let rest =
            Transfer { slot: self.outer(slot + before), blocks: blocks - before, ..*transfer };
        device.transfer(&Transfer { header_bytes: 0, ..rest }, other);
    }

    /// Takes places into the next transaction: blocks, or metadata where there are no contents.
    pub(super) fn gather(&mut self, slot: u32, blocks: u32, contents: &[u32]) {
        self.has_sent_data |= !contents.is_empty();
        for (index, place) in (slot..slot + blocks).enumerate() {
            let block = contents.get(index).copied().unwrap_or(NONE);
            self.dead.used(place);
            let entry = self.entry_of[place as usize];
            if entry == NONE {
                self.entry_of[place as usize] = self.gathered.len() as u32;
                self.gathered.push((place, block));
            } else {
                self.gathered[entry as usize].1 = block;
            }
        }
    }

    /// Data has been written to these places directly: what waited for them is of no use.
    pub(super) fn revoke(&mut self, slot: u32, blocks: u32) {
        self.has_sent_data = true;
        for place in slot..slot + blocks {
            self.dead.used(place);
            let entry = std::mem::replace(&mut self.entry_of[place as usize], NONE);
            if entry != NONE {
                self.gathered[entry as usize].0 = NONE;
            }
            if self.waiting.is_free(place) {
                self.waiting.take(place);
            }
        }
    }

    /// Waiting versions of `block` need not be propagated: the transaction being written says where
    /// it is.
    fn forget_block(&mut self, block: u32) {
        self.disown_block(block);
        self.drop_disowned();
    }

    /// `block` has been deleted. A crash before the next commit finds it undeleted, so that until
    /// then what waits of it still belongs to its places.
    pub(super) fn disown_block(&mut self, block: u32) {
        let mut place = std::mem::replace(&mut self.waiting_at[block as usize], NONE);
        while place != NONE {
            // Another block may have come to wait for the place since.
            if self.block_at[place as usize] == block && self.waiting.is_free(place) {
                self.block_at[place as usize] = NONE;
                self.disowned.push(place);
            }
            place = self.next_of_block[place as usize];
        }
    }

    fn drop_disowned(&mut self) {
        for place in self.disowned.drain(..) {
            // A checkpoint may have come first.
            if self.waiting.is_free(place) {
                self.waiting.take(place);
            }
        }
    }

    /// Whether what is queued has to be committed.
    pub(super) fn is_due(&self, is_sync: bool) -> bool {
        self.has_sent_data
            || is_sync && !self.gathered.is_empty()
            || self.gathered.len() >= self.setting.group_places as usize
    }

    /// Whether what is queued and `unsettled` places beside it fill half of the largest
    /// transaction, so that with what one more operation adds they still go in one.
    pub(super) fn is_crowded(&self, unsettled: u64) -> bool {
        (self.gathered.len() as u64 + unsettled) * 2 > u64::from(self.records_max())
    }

    fn header_bytes(records: u32) -> u64 {
        (u64::from(records) * RECORD_BYTES).next_multiple_of(SECTOR_BYTES)
    }

    /// Places that a transaction of `records` takes in the ring.
    fn places_of(&self, records: u32) -> u32 {
        let header = Self::header_bytes(records).div_ceil(self.setting.place_bytes);
        records + header as u32
    }

    /// Commits what is queued, in as many transactions as it takes.
    pub(super) fn commit(&mut self, device: &mut impl BlockDevice) {
        let mut gathered = std::mem::take(&mut self.gathered);
        gathered.retain(|(place, _)| *place != NONE);
        self.drop_disowned();
        if self.has_sent_data {
            // Metadata must not name data that is not there yet.
            device.wait();
        }
        let mut rest = &gathered[..];
        while !rest.is_empty() {
            let (transaction, later) = rest.split_at(self.transaction_records(rest));
            if device.is_drained() || !self.has_room(transaction.len() as u32) {
                self.end_checkpoint(device);
            }
            self.write_transaction(transaction, device);
            device.commit();
            self.commits += 1;
            let commits = self.setting.checkpoint_commits;
            let is_half_full = self.used_since() >= self.setting.journal_places / 2;
            if is_half_full || (commits > 0 && self.commits >= commits) {
                self.checkpoint(device);
            }
            rest = later;
        }
        if gathered.is_empty() && self.has_sent_data {
            device.commit();
        }
        self.has_sent_data = false;
        gathered.clear();
        self.gathered = gathered;
        self.issue_discards(device);
    }

    pub(super) fn enable_discard(&mut self) {
        self.dead.begin(self.setting.inner_places);
    }

    /// Issues discards for dead places; the ring may lie between two of them.
    fn issue_discards(&mut self, device: &mut impl BlockDevice) {
        let (first, journal_places) = (self.first, self.setting.journal_places);
        self.dead.issue_as(device, |device, slot, places| {
            let before = first.saturating_sub(slot).min(places);
            if before > 0 {
                device.discard(slot, before);
            }
            if before < places {
                device.discard(slot + before + journal_places, places - before);
            }
        });
    }

    /// How many of `records` make the next transaction: no block is torn unless it is larger than a
    /// transaction can be.
    fn transaction_records(&self, records: &[(u32, u32)]) -> usize {
        let most = (self.records_max() as usize).min(records.len());
        let mut end = most;
        while end > 0
            && end < records.len()
            && records[end].1 != NONE
            && records[end].1 == records[end - 1].1
        {
            end -= 1;
        }
        if end == 0 { most } else { end }
    }

    /// Records of the largest transaction: a quarter of the ring with their header.
    fn records_max(&self) -> u32 {
        let quarter = (self.setting.journal_places - 1) / 4;
        let header = Self::header_bytes(quarter).div_ceil(self.setting.place_bytes) as u32;
        quarter.saturating_sub(header).max(1)
    }

    /// Places written or left out since the last checkpoint began.
    fn used_since(&self) -> u32 {
        self.used - self.under_way.as_ref().map_or(0, |under_way| under_way.used)
    }

    /// Whether a transaction of `records` writes over none that a crash needs.
    fn has_room(&self, records: u32) -> bool {
        let taken = self.places_of(records);
        let rest = self.setting.journal_places - self.next;
        let left_out = if taken > rest { rest } else { 0 };
        self.used + left_out + taken < self.setting.journal_places
    }

    fn write_transaction(&mut self, transaction: &[(u32, u32)], device: &mut impl BlockDevice) {
        let records = transaction.len() as u32;
        let taken = self.places_of(records);
        if self.next + taken > self.setting.journal_places {
            self.used += self.setting.journal_places - self.next;
            self.next = 1;
        }
        self.transactions += 1;
        self.contents.clear();
        for (place, block) in transaction {
            self.contents.push(*block);
            self.enter(*place, *block);
        }
        let transfer = Transfer {
            header_bytes: Self::header_bytes(records) as u32,
            ..Transfer::of_blocks(Purpose::Journal, self.first + self.next, records)
        };
        device.transfer(&transfer, &self.contents);
        self.next += taken;
        self.used += taken;
        assert!(self.used < self.setting.journal_places, "the journal has overflowed");
    }

    /// `place` of the transaction being written waits to be propagated.
    fn enter(&mut self, place: u32, block: u32) {
        if block == NONE {
            self.moved_places += 1;
        } else {
            let index = block as usize;
            if std::mem::replace(&mut self.transaction_of[index], self.transactions)
                != self.transactions
            {
                self.forget_block(block);
            }
            self.next_of_block[place as usize] = self.waiting_at[index];
            self.waiting_at[index] = place;
        }
        self.entry_of[place as usize] = NONE;
        self.block_at[place as usize] = block;
        if !self.waiting.is_free(place) {
            self.waiting.give_back(place);
        }
    }

    /// Propagates all waiting places; returns whether there were any. A journal on a disk of its
    /// own goes on meanwhile.
    pub(super) fn checkpoint(&mut self, device: &mut impl BlockDevice) -> bool {
        if self.used_since() == 0 {
            return false;
        }
        self.end_checkpoint(device);
        let mut contents = std::mem::take(&mut self.contents);
        let mut runs = Vec::new();
        let mut from = 0;
        device.begin_background();
        device.begin_batch();
        while let Some((slot, end)) = next_run(&self.waiting, from) {
            runs.push((slot, end));
            contents.clear();
            contents.extend_from_slice(&self.block_at[slot as usize..end as usize]);
            let run = Transfer::of_blocks(Purpose::Propagate, slot, end - slot);
            self.pass(&run, &contents, device);
            self.moved_places += u64::from(end - slot);
            from = end;
        }
        device.end_batch();
        device.end_background();
        self.contents = contents;
        while let Some(place) = self.waiting.at_or_after(0) {
            self.waiting.take(place);
        }
        self.under_way = Some(UnderWay { next: self.next, used: self.used, runs });
        self.commits = 0;
        if device.is_drained() {
            self.end_checkpoint(device);
        }
        true
    }

    /// The checkpoint that is under way ends: its records are dead once it is known that the journal
    /// begins behind them.
    fn end_checkpoint(&mut self, device: &mut impl BlockDevice) {
        let Some(UnderWay { next, used, .. }) = self.under_way.take() else { return };
        device.drain();
        device.commit();
        device.transfer(&Transfer::of_blocks(Purpose::Journal, self.first, 1), &[NONE]);
        device.commit();
        self.oldest = next;
        self.used -= used;
    }

    /// Reads the ring from the oldest transaction on and propagates what it holds; what a checkpoint
    /// was at is done again.
    pub(super) fn recover(&self, device: &mut impl BlockDevice) {
        let mut read = |from: u32, places: u32| {
            if places > 0 {
                let slot = self.first + from;
                device.transfer(&Transfer::of_blocks(Purpose::RecoveryRead, slot, places), &[]);
            }
        };
        read(0, 1);
        if self.used > 0 && self.next > self.oldest {
            read(self.oldest, self.next - self.oldest);
        } else if self.used > 0 {
            read(self.oldest, self.setting.journal_places - self.oldest);
            read(1, self.next - 1);
        }
        let mut waiting = self.waiting.clone();
        let under_way = self.under_way.iter().flat_map(|under_way| &under_way.runs);
        for place in under_way.flat_map(|(slot, end)| *slot..*end) {
            if !waiting.is_free(place) {
                waiting.give_back(place);
            }
        }
        let mut next = next_run(&waiting, 0);
        device.begin_batch();
        while let Some((slot, end)) = next {
            let run = Transfer::of_blocks(Purpose::RecoveryWrite, slot, end - slot);
            self.pass(&run, &[], device);
            next = next_run(&waiting, end);
        }
        device.end_batch();
    }

    /// # Panics
    /// If an invariant does not hold, which is a bug.
    pub(super) fn verify(&self) {
        self.waiting.verify();
        for (entry, (place, _)) in (0..).zip(&self.gathered) {
            assert!(*place == NONE || self.entry_of[*place as usize] == entry, "entry {entry}");
        }
        let entered = self.entry_of.iter().filter(|entry| **entry != NONE).count();
        let gathered = self.gathered.iter().filter(|(place, _)| *place != NONE).count();
        assert_eq!(entered, gathered, "count of gathered places");
        assert!(self.used < self.setting.journal_places && self.next >= 1, "the ring");
        assert!(self.used_since() > 0 || self.waiting.free() == 0, "what waits is in the ring");
    }
}

/// The next places of `waiting` side by side from `from` on.
fn next_run(waiting: &FreePlaces, from: u32) -> Option<(u32, u32)> {
    let slot = waiting.at_or_after(from)?;
    let mut end = slot + 1;
    while waiting.is_free(end) {
        end += 1;
    }
    Some((slot, end))
}
