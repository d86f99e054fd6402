//! A modelled device on a virtual clock, disturbed as real machines disturb a measurement.

use agewell_core::{
    BlockRequest, Operation, RandomStreams, SECTOR_BYTES, Sector, SectorCount, SimDuration,
    SimTime, Stream, uniform_below,
};
use agewell_disk::parameters::FastWrite;
use agewell_disk::{Device, DeviceKind, DeviceModel, DeviceParameters, Medium};

use crate::disk::{Answer, DiskFacts, Extent, ProbeError, ProbedDisk, WritableArea};

/// Shares of requests and the time by which they are answered later than the device was done, ns: 4 KiB
/// reads of a virtual machine's disk, measured (minimum, p10, p50, p90, p99, maximum). The point at
/// 99.9 % is chosen by us, so that the mean is the measured one, 0.2 ms.
const LATENESS_NS: [(f64, f64); 7] = [
    (0.0, 32e3),
    (0.10, 54e3),
    (0.50, 62e3),
    (0.90, 87e3),
    (0.99, 381e3),
    (0.999, 12e6),
    (1.0, 337e6),
];

/// Times in which the speed of a spindle swings, s; chosen by us: from the time that one track takes to
/// measure up to that of a whole probe.
const SWINGS_S: [f64; 4] = [2.3, 13.0, 61.0, 211.0];

/// What stands between a device and those who measure it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Disturbance {
    /// Whether answers come late, by as much as in a virtual machine.
    pub late_answers: bool,
    /// Most by which the spindle's speed is off, as a share of it.
    pub wander: f64,
    /// Of its random numbers.
    pub seed: u64,
}

/// A modelled device that can be probed.
#[derive(Debug)]
pub struct ModelledDisk {
    facts: DiskFacts,
    device: DeviceModel,
    disturbance: Disturbance,
    random: Stream,
    /// The device's own time, ns.
    now: u64,
    swing_phases: [f64; SWINGS_S.len()],
    area: Option<Extent>,
}

impl ModelledDisk {
    /// The device that `parameters` describe, at rest and full of data.
    #[must_use]
    pub fn new(parameters: &DeviceParameters, disturbance: Disturbance) -> Self {
        let mut device = DeviceModel::new(parameters);
        let sectors = device.capacity().0;
        let mut random = RandomStreams::new(disturbance.seed).stream("disturbance");
        let swing_phases = SWINGS_S.map(|_| {
            uniform_below(&mut random, 1 << 20) as f64 / f64::from(1 << 20) * std::f64::consts::TAU
        });
        let (sector_bytes, write_cache) = match parameters.kind.medium() {
            Medium::Mechanical(drive) => {
                (drive.sector_bytes.max(512), Some(drive.buffer.fast_write != FastWrite::Never))
            }
            Medium::Simple(_) => (SECTOR_BYTES as u32, None),
        };
        if matches!(parameters.kind, DeviceKind::Zoned(_)) {
            device.prefill(Sector(0), SectorCount(sectors));
        }
        let facts = DiskFacts {
            name: parameters.name.clone(),
            sectors,
            sector_bytes,
            write_cache,
            is_modelled: true,
        };
        Self { facts, device, disturbance, random, now: 0, swing_phases, area: None }
    }

    /// The same, which may be written in `area`.
    #[must_use]
    pub fn with_write_area(mut self, area: Extent) -> Self {
        self.area = Some(area);
        self
    }

    /// The device, as it stands.
    #[must_use]
    pub fn device(&self) -> &DeviceModel {
        &self.device
    }

    /// What the host's clock says when the device's says `ns`: the host's runs evenly.
    fn host_time(&self, ns: u64) -> SimTime {
        if self.disturbance.wander == 0.0 {
            return SimTime(ns);
        }
        // Each swing holds an equal part of the amplitude, so that the sum of speeds stays within it.
        let part = self.disturbance.wander / SWINGS_S.len() as f64;
        let offset: f64 = SWINGS_S
            .iter()
            .zip(&self.swing_phases)
            .map(|(period_s, phase)| {
                let angular = std::f64::consts::TAU / (period_s * 1e9);
                part / angular * (libm::sin(angular * ns as f64 + phase) + 1.0)
            })
            .sum();
        SimTime((ns as f64 + offset) as u64)
    }

    fn lateness_ns(&mut self) -> u64 {
        if !self.disturbance.late_answers {
            return 0;
        }
        let share = uniform_below(&mut self.random, 1 << 30) as f64 / f64::from(1 << 30);
        let above = LATENESS_NS.partition_point(|(at, _)| *at <= share).clamp(1, 6);
        let (from, to) = (LATENESS_NS[above - 1], LATENESS_NS[above]);
        let along = (share - from.0) / (to.0 - from.0);
        libm::exp(libm::log(from.1) * (1.0 - along) + libm::log(to.1) * along) as u64
    }

    fn request(&self, operation: Operation, extent: Extent) -> BlockRequest {
        BlockRequest {
            enqueue: SimTime(self.now),
            sector: Sector(extent.first),
            sectors: SectorCount(extent.sectors),
            operation,
            synchronous: true,
        }
    }

    fn serve(&mut self, operation: Operation, extent: Extent) -> Result<Answer, ProbeError> {
        self.in_range(extent)?;
        let request = self.request(operation, extent);
        if let Err(refused) = self.device.check(&request) {
            return Err(ProbeError::Request {
                name: self.facts.name.clone(),
                byte: extent.bytes_before(),
                done: "written",
                source: std::io::Error::other(refused),
            });
        }
        let begin = self.host_time(self.now);
        let service = self.device.serve(SimTime(self.now), &request);
        self.now = service.finish.0 + self.lateness_ns();
        Ok(Answer { begin, end: self.host_time(self.now) })
    }

    fn in_range(&self, extent: Extent) -> Result<(), ProbeError> {
        let end = extent.first.checked_add(extent.sectors);
        if extent.sectors > 0 && end.is_some_and(|end| end <= self.facts.sectors) {
            return Ok(());
        }
        Err(ProbeError::Request {
            name: self.facts.name.clone(),
            byte: extent.bytes_before(),
            done: "read",
            source: std::io::ErrorKind::UnexpectedEof.into(),
        })
    }
}

impl ProbedDisk for ModelledDisk {
    fn facts(&self) -> &DiskFacts {
        &self.facts
    }

    fn read(&mut self, extent: Extent) -> Result<Answer, ProbeError> {
        self.serve(Operation::Read, extent)
    }

    fn read_together(
        &mut self,
        extents: &[Extent],
        depth: usize,
        answers: &mut Vec<Answer>,
    ) -> Result<(), ProbeError> {
        let mut services = Vec::new();
        for wave in extents.chunks(depth.max(1)) {
            for extent in wave {
                self.in_range(*extent)?;
            }
            let requests: Vec<BlockRequest> =
                wave.iter().map(|extent| self.request(Operation::Read, *extent)).collect();
            let begin = self.host_time(self.now);
            services.clear();
            self.device.serve_together(SimTime(self.now), &requests, &mut services);
            let mut latest = self.now;
            for service in &services {
                let at = service.finish.0 + self.lateness_ns();
                latest = latest.max(at);
                answers.push(Answer { begin, end: self.host_time(at) });
            }
            self.now = latest;
        }
        Ok(())
    }

    fn idle(&mut self, time: SimDuration) {
        self.now += time.0;
    }

    fn now(&self) -> SimTime {
        self.host_time(self.now)
    }

    fn writable(&mut self) -> Option<&mut dyn WritableArea> {
        self.area.is_some().then_some(self as &mut dyn WritableArea)
    }
}

impl WritableArea for ModelledDisk {
    fn sectors(&self) -> u64 {
        self.area.map_or(0, |area| area.sectors)
    }

    fn write(&mut self, extent: Extent) -> Result<Answer, ProbeError> {
        let from = self.area.map_or(0, |area| area.first);
        self.serve(Operation::Write, Extent { first: from + extent.first, ..extent })
    }

    fn idle(&mut self, time: SimDuration) {
        ProbedDisk::idle(self, time);
    }
}
