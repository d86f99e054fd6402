//! A disk with an arm, a platter, a buffer and a bus, serving one request at a time; of several that a
//! drive with a command queue is sent together, the nearest first.
//!
//! Nothing runs between requests: what the drive did since the last one (read-ahead, writing back) is worked out at the
//! next, in closed form track by track. Rotation is a 64-bit phase that wraps, `time * 2^64 / period`, so that a
//! revolution is exact over any length of time and costs one multiplication.
//!
//! Invariants: `free` never runs backwards; a segment's blocks are contiguous and at most `segment_sectors`; the stream
//! of read-ahead ends where its segment ends.
//!
//! Model and sources: docs/concepts/disk-model.md. Plain reference model: `tests/` of this crate.

mod buffer;
mod platter;
mod positioning;
mod service;

use agewell_core::{
    BlockRequest, Operation, SECTOR_BYTES, Sector, SectorCount, SimDuration, SimTime,
};

use crate::command_queue::{Held, serve_nearest_first};
use crate::geometry::Geometry;
use crate::parameters::MechanicalParameters;
use crate::{Device, Moment, Service};

use buffer::Buffer;
use platter::{Platter, Position};
pub(crate) use positioning::Mechanics;

/// A mechanical disk and its state.
#[derive(Debug, Clone)]
pub struct Mechanical {
    parameters: MechanicalParameters,
    platter: Platter,
    buffer: Buffer,
    /// Where the heads were left, and when they are free.
    position: Position,
    /// Whether the request before was a write: 0 or 1, to index overheads.
    after: usize,
    /// First block of the run of early-reported writes under way.
    run_start: u64,
    /// End of the request before.
    finished: u64,
    /// Device sectors per 512-byte sector, or the other way round.
    scale: Scale,
    held: Held,
}

/// How addresses of 512 bytes map to device sectors.
#[derive(Debug, Clone, Copy)]
enum Scale {
    /// Device sectors are as small or smaller: this many to one.
    Finer(u64),
    /// Device sectors are larger: this many in one.
    Coarser(u64),
}

/// A request in device sectors.
#[derive(Debug, Clone, Copy)]
struct Blocks {
    first: u64,
    end: u64,
    write: bool,
    /// Whether a write covers part of a device sector, so that it must be read first.
    partial: bool,
}

impl Mechanical {
    /// A disk at rest: arm at cylinder 0, buffer empty, phase 0 at time 0.
    pub fn new(parameters: &MechanicalParameters) -> Self {
        Self::with_phase(parameters, 0)
    }

    /// A disk at rest whose platter stands at `phase` (2^-64 turns) at time 0.
    pub fn with_phase(parameters: &MechanicalParameters, phase: u64) -> Self {
        let bytes = u64::from(parameters.sector_bytes);
        let scale = if bytes <= SECTOR_BYTES {
            Scale::Finer(SECTOR_BYTES / bytes)
        } else {
            Scale::Coarser(bytes / SECTOR_BYTES)
        };
        Self {
            platter: Platter::new(parameters, phase),
            buffer: Buffer::new(&parameters.buffer),
            position: Position::default(),
            after: 0,
            run_start: 0,
            finished: 0,
            scale,
            held: Held::default(),
            parameters: parameters.clone(),
        }
    }

    /// The map of the disk.
    pub fn geometry(&self) -> &Geometry {
        &self.platter.geometry
    }

    /// The parameters.
    pub fn parameters(&self) -> &MechanicalParameters {
        &self.parameters
    }

    /// One revolution, ns, rounded down.
    pub fn rotation_period_ns(&self) -> u64 {
        self.parameters.rotation_period_ps / 1000
    }

    fn blocks(&self, request: &BlockRequest) -> Blocks {
        let (first, end) = (request.sector.0, request.sector.0 + request.sectors.0);
        let write = request.operation == Operation::Write;
        match self.scale {
            Scale::Finer(per) => {
                Blocks { first: first * per, end: end * per, write, partial: false }
            }
            Scale::Coarser(per) => Blocks {
                first: first / per,
                end: end.div_ceil(per),
                write,
                partial: write && !(first.is_multiple_of(per) && end.is_multiple_of(per)),
            },
        }
    }

    fn block_of(&self, sector: Sector) -> u64 {
        match self.scale {
            Scale::Finer(per) => sector.0 * per,
            Scale::Coarser(per) => sector.0 / per,
        }
    }
}

fn mechanics_of(moment: &Moment) -> &Mechanics {
    moment.mechanics.as_ref().expect("a moment of this device")
}

impl Device for Mechanical {
    fn capacity(&self) -> SectorCount {
        SectorCount(match self.scale {
            Scale::Finer(per) => self.parameters.capacity / per,
            Scale::Coarser(per) => self.parameters.capacity * per,
        })
    }

    fn cylinders(&self) -> u32 {
        self.parameters.geometry.cylinders
    }

    fn cylinder_of(&self, sector: Sector) -> u32 {
        self.platter.geometry.cylinder_of(self.block_of(sector))
    }

    fn current_cylinder(&self) -> u32 {
        self.position.cylinder
    }

    fn serve(&mut self, issue: SimTime, request: &BlockRequest) -> Service {
        assert!(request.sectors.0 > 0, "an empty request");
        let end = request.sector + request.sectors;
        assert!(end.0 <= self.capacity().0, "request beyond the end of the disk: {end:?}");
        assert!(issue.0 >= self.finished, "a request issued before the one before it finished");
        let service = match request.operation {
            Operation::Read => self.read(issue.0, self.blocks(request)),
            Operation::Write => self.write(issue.0, self.blocks(request)),
            Operation::Flush => self.flush(issue.0),
            // Nothing to do on a disk; the command still costs its overhead.
            Operation::Discard => self.command_only(issue.0),
        };
        self.finished = service.finish.0;
        service
    }

    fn queue_depth(&self) -> u32 {
        self.parameters.queue_depth
    }

    fn serve_together(
        &mut self,
        issue: SimTime,
        requests: &[BlockRequest],
        services: &mut Vec<Service>,
    ) {
        let mut held = std::mem::take(&mut self.held);
        let queue = (&mut held, self.parameters.queue_depth);
        // Reads and writes of one call do not touch the same places; the caller ensures that.
        serve_nearest_first(self, queue, issue, requests, services, |_| true);
        self.held = held;
    }

    fn moment(&self, issue: SimTime) -> Moment {
        let mechanics = self.mechanics(issue.0);
        Moment { issue, cylinder: mechanics.cylinder(), mechanics: Some(mechanics) }
    }

    fn positioning(&self, moment: &Moment, request: &BlockRequest) -> SimDuration {
        if !request.operation.transfers_data() {
            return SimDuration::ZERO;
        }
        SimDuration(self.positioned(moment.issue, mechanics_of(moment), request) - moment.issue.0)
    }

    fn positioning_at_least(&self, moment: &Moment, cylinders: u32) -> SimDuration {
        SimDuration(self.positioned_at_least(mechanics_of(moment), cylinders) - moment.issue.0)
    }

    fn buffered_cylinders(&self, moment: &Moment, visit: &mut dyn FnMut(u32)) {
        self.visit_buffered(mechanics_of(moment), visit);
    }
}
