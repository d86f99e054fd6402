//! A modelled device on a virtual clock, with contents.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use agewell_core::{
    BlockRequest, Operation, SECTOR_BYTES, Sector, SectorCount, SimDuration, SimTime,
};
use agewell_disk::{Device, DeviceModel, DeviceParameters, LayoutAdvice, Service, WriteRule};

use super::{Disk, MemoryDisk, Piece, ReadPiece, WriteZones, check_pieces, check_range};

/// What requests of one operation have cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Requests; each piece of a write is one.
    pub requests: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Time for which the device was busy with them: of requests that overlap, that of all together.
    pub time: SimDuration,
}

impl Spent {
    fn add(&mut self, requests: u64, bytes: u64, time: SimDuration) {
        self.requests += requests;
        self.bytes += bytes;
        self.time = SimDuration(self.time.0 + time.0);
    }
}

/// What a device was asked, and how long it took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpentByOperation {
    /// Reads.
    pub reads: Spent,
    /// Writes.
    pub writes: Spent,
    /// Discards that the device was given.
    pub discards: Spent,
    /// Flushes that had something to flush.
    pub flushes: Spent,
}

impl SpentByOperation {
    /// Time of all of them.
    #[must_use]
    pub fn time(&self) -> SimDuration {
        let all = [self.reads, self.writes, self.discards, self.flushes];
        SimDuration(all.iter().map(|spent| spent.time.0).sum())
    }
}

#[derive(Debug)]
struct Modelled {
    device: DeviceModel,
    now: SimTime,
    spent: SpentByOperation,
    /// Whether anything was written since the last flush.
    has_unflushed: bool,
    requests: Vec<BlockRequest>,
    services: Vec<Service>,
}

/// Any device of the catalogue, on a clock of its own that stands still but for requests and
/// [`ModelledDisk::idle`]. What is written is kept in memory, sparsely, or on another disk, whose own times
/// then count for nothing.
///
/// The pieces of a write are issued together; a device with a queue serves them as it likes, one
/// without in their order. Zones that the host must write in order are written piece by piece, and a
/// write or discard that breaks their rule is refused.
#[derive(Debug)]
pub struct ModelledDisk<C = MemoryDisk> {
    /// Bytes of the device, or the first of them that are used.
    capacity_bytes: u64,
    advice: LayoutAdvice,
    contents: C,
    modelled: Mutex<Modelled>,
}

impl ModelledDisk {
    /// The device that `parameters` describe, at rest, empty, at time 0.
    #[must_use]
    pub fn new(parameters: &DeviceParameters) -> Self {
        let size_bytes = DeviceModel::new(parameters).capacity().0 * SECTOR_BYTES;
        Self::over(parameters, MemoryDisk::new(size_bytes))
    }
}

impl<C: Disk> ModelledDisk<C> {
    /// The same, with what is on `contents`: as large as the smaller of the two.
    #[must_use]
    pub fn over(parameters: &DeviceParameters, contents: C) -> Self {
        let device = DeviceModel::new(parameters);
        Self {
            capacity_bytes: device.capacity().0 * SECTOR_BYTES,
            advice: device.layout_advice(),
            contents,
            modelled: Mutex::new(Modelled {
                device,
                now: SimTime::ZERO,
                spent: SpentByOperation::default(),
                has_unflushed: false,
                requests: Vec::new(),
                services: Vec::new(),
            }),
        }
    }

    /// The same device, of which only the first `size_bytes` are used.
    #[must_use]
    pub fn with_size(mut self, size_bytes: u64) -> Self {
        self.capacity_bytes = self.capacity_bytes.min(size_bytes);
        self
    }

    /// What the device would have a layout know; its rule for writes among it.
    #[must_use]
    pub fn advice(&self) -> LayoutAdvice {
        self.advice
    }

    /// The device's time: when it had done what it was asked last.
    #[must_use]
    pub fn now(&self) -> SimTime {
        self.modelled().now
    }

    /// Nothing is asked of the device for so long.
    pub fn idle(&self, time: SimDuration) {
        let modelled = &mut *self.modelled();
        modelled.now = SimTime(modelled.now.0 + time.0);
    }

    /// What has been asked of it so far, and how long that took.
    #[must_use]
    pub fn spent(&self) -> SpentByOperation {
        self.modelled().spent
    }

    /// The device as it stands.
    pub fn device<R>(&self, look: impl FnOnce(&DeviceModel) -> R) -> R {
        look(&self.modelled().device)
    }

    fn modelled(&self) -> MutexGuard<'_, Modelled> {
        self.modelled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the host must write zones in order.
    fn has_zones(&self) -> bool {
        self.advice.write_rule != WriteRule::Anywhere
    }
}

/// Refuses a range that does not consist of whole sectors, which no drive can be asked for.
fn check_sectors(offset: u64, bytes: u64) -> io::Result<()> {
    if offset.is_multiple_of(SECTOR_BYTES) && bytes.is_multiple_of(SECTOR_BYTES) {
        return Ok(());
    }
    let message = format!("{bytes} bytes at byte {offset} are not whole sectors of 512 bytes");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

impl Modelled {
    fn request(&self, operation: Operation, offset: u64, bytes: u64) -> BlockRequest {
        BlockRequest {
            enqueue: self.now,
            sector: Sector(offset / SECTOR_BYTES),
            sectors: SectorCount(bytes / SECTOR_BYTES),
            operation,
            synchronous: true,
        }
    }

    /// Has the device serve one request; how long it takes.
    fn serve(&mut self, operation: Operation, offset: u64, bytes: u64) -> io::Result<SimDuration> {
        let request = self.request(operation, offset, bytes);
        self.device.check(&request).map_err(io::Error::other)?;
        let begin = self.now;
        self.now = self.device.serve(begin, &request).finish;
        Ok(SimDuration(self.now.0 - begin.0))
    }

    /// Has the device serve requests for `ranges` (first byte and bytes), issued together; how long they
    /// take.
    fn serve_together(
        &mut self,
        operation: Operation,
        ranges: impl Iterator<Item = (u64, u64)>,
    ) -> SimDuration {
        let mut requests = std::mem::take(&mut self.requests);
        requests.extend(ranges.map(|(offset, bytes)| self.request(operation, offset, bytes)));
        self.services.clear();
        self.device.serve_together(self.now, &requests, &mut self.services);
        requests.clear();
        self.requests = requests;
        let begin = self.now;
        let finishes = self.services.iter().map(|service| service.finish);
        self.now = finishes.fold(begin, SimTime::max);
        SimDuration(self.now.0 - begin.0)
    }
}

impl<C: Disk> Disk for ModelledDisk<C> {
    fn size_bytes(&self) -> u64 {
        self.capacity_bytes.min(self.contents.size_bytes())
    }

    fn measure(&self) -> io::Result<u64> {
        Ok(self.capacity_bytes.min(self.contents.measure()?))
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let bytes = into.len() as u64;
        check_range(self.size_bytes(), offset, bytes)?;
        check_sectors(offset, bytes)?;
        if bytes > 0 {
            let modelled = &mut *self.modelled();
            let time = modelled.serve(Operation::Read, offset, bytes)?;
            modelled.spent.reads.add(1, bytes, time);
        }
        self.contents.read(offset, into)
    }

    fn read_pieces(&self, pieces: &mut [ReadPiece<'_>]) -> io::Result<()> {
        for piece in pieces.iter() {
            let bytes = piece.into.len() as u64;
            check_range(self.size_bytes(), piece.offset, bytes)?;
            check_sectors(piece.offset, bytes)?;
        }
        let filled = pieces.iter().filter(|piece| !piece.into.is_empty());
        let ranges: Vec<_> = filled.map(|piece| (piece.offset, piece.into.len() as u64)).collect();
        if !ranges.is_empty() {
            let modelled = &mut *self.modelled();
            let bytes = ranges.iter().map(|range| range.1).sum();
            let time = modelled.serve_together(Operation::Read, ranges.iter().copied());
            modelled.spent.reads.add(ranges.len() as u64, bytes, time);
        }
        self.contents.read_pieces(pieces)
    }

    fn write(&self, pieces: &[Piece<'_>]) -> io::Result<()> {
        check_pieces(self.size_bytes(), pieces)?;
        for piece in pieces {
            check_sectors(piece.offset, piece.data.len() as u64)?;
        }
        let filled = || pieces.iter().filter(|piece| !piece.data.is_empty());
        let (count, bytes) =
            (filled().count() as u64, filled().map(|piece| piece.data.len() as u64));
        if count == 0 {
            return Ok(());
        }
        let modelled = &mut *self.modelled();
        modelled.has_unflushed = true;
        if self.has_zones() {
            for piece in filled() {
                let bytes = piece.data.len() as u64;
                let time = modelled.serve(Operation::Write, piece.offset, bytes)?;
                modelled.spent.writes.add(1, bytes, time);
                self.contents.write(&[*piece])?;
            }
            return Ok(());
        }
        let ranges = filled().map(|piece| (piece.offset, piece.data.len() as u64));
        let time = modelled.serve_together(Operation::Write, ranges);
        modelled.spent.writes.add(count, bytes.sum(), time);
        self.contents.write(pieces)
    }

    /// A drive that has no use for discards is not asked for one; nor is it in the simulator.
    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        check_range(self.size_bytes(), offset, bytes)?;
        check_sectors(offset, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        if self.advice.wants_discards || self.has_zones() {
            let modelled = &mut *self.modelled();
            let time = modelled.serve(Operation::Discard, offset, bytes)?;
            modelled.spent.discards.add(1, bytes, time);
        }
        self.contents.discard(offset, bytes)
    }

    /// A device that nothing was written to since its last flush is left alone, as in the simulator.
    fn flush(&self) -> io::Result<()> {
        let modelled = &mut *self.modelled();
        if std::mem::take(&mut modelled.has_unflushed) {
            // A flush names no sectors; one is asked for only because requests must not be empty.
            let time = modelled.serve(Operation::Flush, 0, SECTOR_BYTES)?;
            modelled.spent.flushes.add(1, 0, time);
        }
        self.contents.flush()
    }

    fn release(&self) {
        self.contents.release();
    }

    fn now_ns(&self) -> Option<u64> {
        Some(self.now().0)
    }

    fn write_zones(&self) -> Option<WriteZones> {
        match self.advice.write_rule {
            WriteRule::Anywhere => None,
            WriteRule::SequentialInZones { first_sequential, zone_sectors } => Some(WriteZones {
                first_byte: first_sequential.0 * SECTOR_BYTES,
                zone_bytes: zone_sectors.0 * SECTOR_BYTES,
            }),
        }
    }
}
