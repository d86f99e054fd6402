//! Requests as they are taken in: checked, and their disks numbered.

use agewell_core::{BlockRequest, Operation, Sector, SectorCount, SimTime};
use agewell_disk::{Device, DeviceModel};
use agewell_trace::record::{BlockBatch, TIME_MISSING, flag};

use crate::config::{BeyondCapacity, DISKS_MAX, RequestExperiment, Workload};
use crate::error::RunError;

/// One record of the source, checked.
pub(super) struct Record {
    pub(super) disk: usize,
    pub(super) request: BlockRequest,
    /// When the traced device completed it, if the trace says.
    pub(super) traced_finish: Option<SimTime>,
}

/// Checks records and numbers their disks.
pub(super) struct Intake {
    capacity: SectorCount,
    /// Whether discards go to the device, because they save it work.
    serves_discards: bool,
    beyond: BeyondCapacity,
    pub(super) disks: Vec<u32>,
    last_disk: (u32, usize),
    last_enqueue_ns: u64,
    pub(super) read: u64,
    left_out: u64,
    wrapped: u64,
    pub(super) without_transfer: u64,
    pub(super) without_completion: u64,
    out_of_order: u64,
}

impl Intake {
    pub(super) fn new(experiment: &RequestExperiment, device: &DeviceModel) -> Self {
        let beyond = match &experiment.workload {
            Workload::Trace(trace) => trace.replay.beyond_capacity,
            Workload::Poisson(_) => BeyondCapacity::Error,
        };
        Self {
            capacity: device.capacity(),
            // Where sectors are remapped, the trace does not say what an address holds.
            serves_discards: device.layout_advice().wants_discards
                && experiment.remap.is_identity(),
            beyond,
            disks: Vec::new(),
            last_disk: (u32::MAX, usize::MAX),
            last_enqueue_ns: 0,
            read: 0,
            left_out: 0,
            wrapped: 0,
            without_transfer: 0,
            without_completion: 0,
            out_of_order: 0,
        }
    }

    pub(super) fn take(
        &mut self,
        batch: &BlockBatch,
        row: usize,
    ) -> Result<Option<Record>, RunError> {
        self.read += 1;
        let operation = Operation::from_code(batch.operation[row])
            .expect("readers give canonical operation codes");
        let sectors = SectorCount(u64::from(batch.sectors[row]));
        let heard = operation == Operation::Discard && self.serves_discards;
        if sectors.0 == 0 || !(operation.transfers_data() || heard) {
            self.without_transfer += 1;
            return Ok(None);
        }
        let Some(sector) = self.place(batch.sector[row], sectors)? else { return Ok(None) };
        let enqueue_ns = batch.enqueue_ns[row];
        self.out_of_order += u64::from(enqueue_ns < self.last_enqueue_ns);
        self.last_enqueue_ns = enqueue_ns;
        let finish_ns = batch.finish_ns[row];
        self.without_completion += u64::from(finish_ns == TIME_MISSING);
        Ok(Some(Record {
            disk: self.disk(batch.device[row])?,
            request: BlockRequest {
                enqueue: SimTime(enqueue_ns),
                sector,
                sectors,
                operation,
                synchronous: batch.flags[row] & flag::SYNCHRONOUS != 0,
            },
            traced_finish: (finish_ns != TIME_MISSING).then_some(SimTime(finish_ns)),
        }))
    }

    fn place(&mut self, sector: u64, sectors: SectorCount) -> Result<Option<Sector>, RunError> {
        let fits =
            |sector: u64| sector.checked_add(sectors.0).is_some_and(|end| end <= self.capacity.0);
        if fits(sector) {
            return Ok(Some(Sector(sector)));
        }
        match self.beyond {
            BeyondCapacity::Error => Err(RunError::Input(format!(
                "[workload]: request {} reaches from sector {sector} over {} sectors, beyond the {} of \
                 the device; choose a larger device, a filter such as 'sector=0..{}', or \
                 beyond_capacity = \"skip\" or \"wrap\"",
                self.read, sectors.0, self.capacity.0, self.capacity.0
            ))),
            BeyondCapacity::Skip => {
                self.left_out += 1;
                Ok(None)
            }
            BeyondCapacity::Wrap if sectors > self.capacity => {
                self.left_out += 1;
                Ok(None)
            }
            BeyondCapacity::Wrap => {
                self.wrapped += 1;
                let wrapped = sector % self.capacity.0;
                // A request that would run over the end is moved back to end there.
                Ok(Some(Sector(wrapped.min(self.capacity.0 - sectors.0))))
            }
        }
    }

    fn disk(&mut self, device: u32) -> Result<usize, RunError> {
        if self.last_disk.0 == device && self.last_disk.1 != usize::MAX {
            return Ok(self.last_disk.1);
        }
        let index = match self.disks.iter().position(|known| *known == device) {
            Some(index) => index,
            None if self.disks.len() < DISKS_MAX as usize => {
                self.disks.push(device);
                self.disks.len() - 1
            }
            None => {
                return Err(RunError::Input(format!(
                    "[workload]: more than {DISKS_MAX} devices; choose some with a filter such as \
                     'device=0'"
                )));
            }
        };
        self.last_disk = (device, index);
        Ok(index)
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        [
            (self.left_out, "requests beyond the device left out"),
            (self.wrapped, "requests beyond the device wrapped to an address within it"),
            (
                self.without_transfer,
                "requests that move no data (discard, flush, empty) not served",
            ),
            (self.out_of_order, "requests enqueued before the one that precedes them in the trace"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
    }
}
