//! For how long a disk is busy with each request: as it was, or as a modelled disk would be.

use agewell_core::{BlockRequest, Operation, SECTOR_BYTES, Sector, SectorCount, SimTime};
use agewell_disk::{Device, DeviceModel, DeviceParameters};
use agewell_log::policy::cost::CostModel;
use agewell_trace::{BlockRow, TIME_MISSING};

use super::SLOT_BYTES;

/// Reads by which a disk is priced; chosen by us.
const PRICED_READS: u64 = 256;
/// Bytes that are read in sequence for its rate.
const PRICED_BYTES: u64 = 32 << 20;
/// Bytes of a request of those: the kernel's read-ahead.
const PRICED_REQUEST_BYTES: u64 = 128 << 10;

/// What a disk costs: reads of a slot all over it, and reads in sequence.
pub(crate) fn cost_model(parameters: &DeviceParameters) -> CostModel {
    let mut timed = ModelledDisk::new(parameters, 0);
    let slots = timed.capacity_sectors * SECTOR_BYTES / SLOT_BYTES;
    let slot_sectors = SLOT_BYTES / SECTOR_BYTES;
    // The golden section visits all of the disk evenly and never in order.
    let place = |number: u64| (number as f64 * 0.618_033_988_749_895).fract();
    let random_ns: u64 = (0..PRICED_READS)
        .map(|number| (place(number) * slots.saturating_sub(1) as f64) as u64)
        .map(|slot| timed.serve(0, slot * slot_sectors, slot_sectors, Operation::Read))
        .sum();
    let sectors = PRICED_REQUEST_BYTES / SECTOR_BYTES;
    let requests =
        (PRICED_BYTES / PRICED_REQUEST_BYTES).min(timed.capacity_sectors / sectors).max(1);
    let serve = |number| timed.serve(0, number * sectors, sectors, Operation::Read);
    let stream_ns: u64 = (0..requests).map(serve).sum();
    let rate = requests as f64 * PRICED_REQUEST_BYTES as f64 * 1e9 / stream_ns.max(1) as f64;
    let bandwidth_bytes_per_s = (rate as u64).max(1);
    let slot_ns = SLOT_BYTES * 1_000_000_000 / bandwidth_bytes_per_s;
    let access_ns = (random_ns / PRICED_READS).saturating_sub(slot_ns);
    CostModel { access_ns, further_ns: access_ns, bandwidth_bytes_per_s, block_bytes: SLOT_BYTES }
}

/// A modelled disk that carries out requests one after another.
pub(crate) struct ModelledDisk {
    device: DeviceModel,
    capacity_sectors: u64,
    total_sectors: u64,
    free_at: SimTime,
}

impl ModelledDisk {
    /// One for a file system of `total_bytes`; if that is larger than the disk, addresses are scaled so
    /// that it fills it.
    pub(crate) fn new(parameters: &DeviceParameters, total_bytes: u64) -> Self {
        let device = DeviceModel::new(parameters);
        let capacity_sectors = device.capacity().0;
        let total_sectors = total_bytes.div_ceil(SECTOR_BYTES).max(1);
        Self { device, capacity_sectors, total_sectors, free_at: SimTime(0) }
    }

    /// For how long it is busy with a request that comes at `at_ns`.
    pub(crate) fn serve(
        &mut self,
        at_ns: u64,
        sector: u64,
        sectors: u64,
        operation: Operation,
    ) -> u64 {
        let sectors = sectors.clamp(1, self.capacity_sectors);
        let sector = if self.total_sectors > self.capacity_sectors {
            let scaled = u128::from(sector) * u128::from(self.capacity_sectors);
            (scaled / u128::from(self.total_sectors)) as u64
        } else {
            sector
        };
        let sector = Sector(sector.min(self.capacity_sectors - sectors));
        let sectors = SectorCount(sectors);
        if operation == Operation::Read {
            // Flash answers at once for what was never written.
            self.device.prefill(sector, sectors);
        }
        let begin = self.free_at.max(SimTime(at_ns));
        let request =
            BlockRequest { enqueue: begin, sector, sectors, operation, synchronous: true };
        let finish = self.device.serve(begin, &request).finish;
        self.free_at = finish;
        finish.0 - begin.0
    }
}

/// Whose times count.
pub(crate) enum DiskTimes {
    /// The disk's own: of each request what it put off the end by.
    Observed {
        /// When the last request was done, ns.
        free_at_ns: u64,
    },
    /// A modelled disk's.
    Modelled(Box<ModelledDisk>),
}

impl DiskTimes {
    /// For how long the disk was busy with `row`, at `sector` of the file system.
    pub(crate) fn of(&mut self, row: &BlockRow, sector: u64, operation: Operation) -> u64 {
        match self {
            Self::Observed { free_at_ns } => {
                let issued_ns =
                    if row.start_ns == TIME_MISSING { row.enqueue_ns } else { row.start_ns };
                let begin_ns = issued_ns.max(*free_at_ns);
                *free_at_ns = row.finish_ns.max(*free_at_ns);
                row.finish_ns.saturating_sub(begin_ns)
            }
            Self::Modelled(disk) => {
                disk.serve(row.enqueue_ns, sector, u64::from(row.sectors), operation)
            }
        }
    }
}
