//! Metadata of a file system on its way to and from the disk.
//!
//! What is written at once goes out as the file system says it; what is delayed is kept as a set of
//! units that go out in the order of the disk. Reads, and what was written, stay in a cache that
//! forgets what was used longest ago.

use std::collections::BTreeMap;

use crate::file_system::{Content, FileDevice, FileTransfer, Urgency};
use agewell_log::free_places::FreePlaces;
use agewell_log::pending_discards::PendingDiscards;
use agewell_log::{BlockDevice, Purpose, Transfer};

/// Metadata: what waits, and what is cached.
#[derive(Debug, Clone)]
pub(super) struct Metadata {
    is_transferred: bool,
    unit_sectors: u32,
    /// Units that have changed and wait.
    dirty: FreePlaces,
    /// Units of data that nothing is in any longer.
    pub(super) dead: PendingDiscards,
    cached: Recent,
    /// Metadata that is being read.
    wanted: Vec<FileTransfer>,
}

impl Metadata {
    /// Metadata that is transferred, or not, on a disk of `units`; `cached` blocks are kept.
    pub(super) fn new(is_transferred: bool, units: u32, unit_sectors: u32, cached: u32) -> Self {
        let units = if is_transferred { units } else { 0 };
        let dirty = FreePlaces::none_free(units);
        let cached = Recent::new(cached as usize);
        let (dead, wanted) = (PendingDiscards::default(), Vec::new());
        Self { is_transferred, unit_sectors, dirty, dead, cached, wanted }
    }

    fn units(&self, transfer: &FileTransfer) -> (u32, u32) {
        let unit = u64::from(self.unit_sectors);
        let first = transfer.sector / unit;
        let end = (transfer.sector + u64::from(transfer.sectors)).div_ceil(unit);
        (first as u32, (end - first) as u32)
    }

    fn write(&mut self, transfer: &FileTransfer, device: &mut impl BlockDevice) {
        let (first, units) = self.units(transfer);
        self.cached.use_now(first);
        if transfer.urgency == Urgency::Delayed {
            self.dead.used_run(first, units);
            for unit in first..first + units {
                if !self.dirty.is_free(unit) {
                    self.dirty.give_back(unit);
                }
            }
        } else {
            self.forget(first, units);
            // Its place in the order of all writes is what a check of the disk relies on.
            device.wait();
            device.transfer(&Transfer::of_blocks(Purpose::MetadataWrite, first, units), &[]);
            device.wait();
        }
    }

    /// Units that do not have to be written any longer because something else comes there.
    pub(super) fn forget(&mut self, first: u32, units: u32) {
        self.dead.used_run(first, units);
        for unit in first..first + units {
            if self.dirty.is_free(unit) {
                self.dirty.take(unit);
            }
        }
    }

    /// Sends everything that waits, in the order of the disk.
    pub(super) fn send(&mut self, device: &mut impl BlockDevice) {
        let mut next = self.dirty.at_or_after(0);
        let mut is_any = false;
        device.begin_batch();
        while let Some(first) = next {
            let mut units = 0;
            while self.dirty.is_free(first + units) {
                self.dirty.take(first + units);
                units += 1;
            }
            device.transfer(&Transfer::of_blocks(Purpose::MetadataWrite, first, units), &[]);
            is_any = true;
            next = self.dirty.at_or_after(first + units);
        }
        device.end_batch();
        if is_any {
            device.commit();
        }
    }

    /// Units that wait to be sent.
    pub(super) fn waiting_units(&self) -> u64 {
        u64::from(self.dirty.free())
    }

    /// Issues discards for dead units, once what described them is no longer on the disk.
    pub(super) fn issue_discards(&mut self, device: &mut impl BlockDevice) {
        assert!(self.dirty.free() == 0, "metadata that names the dead waits");
        self.dead.issue(device);
    }

    /// A device that collects what is read.
    pub(super) fn collect_reads(&mut self) -> WantedReads {
        let transfers = std::mem::take(&mut self.wanted);
        WantedReads { is_wanted: self.is_transferred, transfers }
    }

    /// Leaves in `wanted` what is not cached, which is from now on.
    pub(super) fn retain_missing(&mut self, wanted: &mut WantedReads) {
        wanted.transfers.retain(|transfer| self.is_missing(transfer));
    }

    /// Reads what is missing, one after another: an inode says where the block is that says where
    /// the data are.
    pub(super) fn read(&mut self, wanted: WantedReads, device: &mut impl BlockDevice) {
        let mut transfers = wanted.transfers;
        for transfer in transfers.drain(..) {
            let (first, units) = self.units(&transfer);
            device.transfer(&Transfer::of_blocks(Purpose::MetadataRead, first, units), &[]);
            device.wait();
        }
        self.wanted = transfers;
    }

    fn is_missing(&mut self, transfer: &FileTransfer) -> bool {
        let (first, _) = self.units(transfer);
        !self.cached.use_now(first) && !self.dirty.is_free(first)
    }

    fn read_one(&mut self, transfer: &FileTransfer, device: &mut impl BlockDevice) {
        if self.is_missing(transfer) {
            let (first, units) = self.units(transfer);
            device.transfer(&Transfer::of_blocks(Purpose::MetadataRead, first, units), &[]);
            device.wait();
        }
    }
}

/// Collects the metadata that a file system reads.
pub(super) struct WantedReads {
    is_wanted: bool,
    transfers: Vec<FileTransfer>,
}

impl WantedReads {
    pub(super) fn is_empty(&self) -> bool {
        self.transfers.is_empty()
    }
}

impl FileDevice for WantedReads {
    fn read(&mut self, transfer: FileTransfer) {
        if self.is_wanted && transfer.content != Content::Data {
            self.transfers.push(transfer);
        }
    }

    fn write(&mut self, _transfer: FileTransfer) {}
}

/// A device that passes the metadata of a file system on; the layout itself sends the data.
pub(super) struct Listener<'a, D> {
    metadata: &'a mut Metadata,
    device: &'a mut D,
}

impl<'a, D: BlockDevice> Listener<'a, D> {
    pub(super) fn new(metadata: &'a mut Metadata, device: &'a mut D) -> Self {
        Self { metadata, device }
    }
}

impl<D: BlockDevice> FileDevice for Listener<'_, D> {
    fn read(&mut self, transfer: FileTransfer) {
        if self.metadata.is_transferred && transfer.content != Content::Data {
            self.metadata.read_one(&transfer, self.device);
        }
    }

    fn write(&mut self, transfer: FileTransfer) {
        if self.metadata.is_transferred && transfer.content != Content::Data {
            self.metadata.write(&transfer, self.device);
        }
    }
}

/// The places used last.
#[derive(Debug, Clone)]
struct Recent {
    capacity: usize,
    uses: u64,
    used_at: BTreeMap<u32, u64>,
    by_use: BTreeMap<u64, u32>,
}

impl Recent {
    fn new(capacity: usize) -> Self {
        Self { capacity, uses: 0, used_at: BTreeMap::new(), by_use: BTreeMap::new() }
    }

    /// Uses `place`; returns whether it was there.
    fn use_now(&mut self, place: u32) -> bool {
        if self.capacity == 0 {
            return false;
        }
        self.uses += 1;
        let before = self.used_at.insert(place, self.uses);
        if let Some(before) = before {
            self.by_use.remove(&before);
        }
        self.by_use.insert(self.uses, place);
        if self.used_at.len() > self.capacity
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.used_at.remove(&oldest);
        }
        before.is_some()
    }
}
