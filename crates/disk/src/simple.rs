//! A disk without mechanics: every transfer pays an access time, then moves at a fixed bandwidth.
//!
//! The model of Matthews 1999, chapter 5 (§5.3): the time of a transfer is the access time plus its bytes over the
//! bandwidth, however far from the one before it lies, so that a layout is judged by the number and the size of its
//! transfers alone. [`Simple::transfer_time`] is that cost as a function, for cost models that serve no requests.
//!
//! Difference from the source: §5.4.1 lets further single-block writes into the segment of the one before skip the
//! seek and pay half a rotation each. A segment is the layout's notion, not the device's; a layout that prices blocks
//! that way uses [`Simple::further_block_time`] with the half rotation of its disk.
//!
//! Invariants: `serve` never looks at addresses; requests do not overlap; a flush or discard moves nothing and is free.

use agewell_core::{BlockRequest, Sector, SectorCount, SimDuration, SimTime};

use crate::parameters::SimpleParameters;
use crate::{Device, Moment, Service};

/// Access time plus bandwidth.
#[derive(Debug, Clone)]
pub struct Simple {
    capacity: SectorCount,
    parameters: SimpleParameters,
    finished: SimTime,
}

impl Simple {
    /// A device of `capacity` with these parameters.
    ///
    /// # Panics
    /// If the bandwidth is zero; the device file's reader refuses that.
    #[must_use]
    pub fn new(parameters: &SimpleParameters, capacity: SectorCount) -> Self {
        assert!(parameters.bandwidth_bytes_per_s > 0, "a device of no bandwidth");
        Self { capacity, parameters: *parameters, finished: SimTime::ZERO }
    }

    /// Time for one transfer of `bytes`, wherever it lies: access time + bytes / bandwidth.
    #[must_use]
    pub fn transfer_time(&self, bytes: u64) -> SimDuration {
        self.access_time() + self.streaming_time(bytes)
    }

    /// Time for a further block of `bytes` near the one before it: half a rotation + bytes / bandwidth
    /// (Matthews 1999, §5.4.1).
    #[must_use]
    pub fn further_block_time(&self, half_rotation: SimDuration, bytes: u64) -> SimDuration {
        half_rotation + self.streaming_time(bytes)
    }

    /// What every transfer pays before its first byte.
    #[must_use]
    pub fn access_time(&self) -> SimDuration {
        SimDuration(self.parameters.access_time_ns)
    }

    /// Time for `bytes` at full bandwidth, rounded up to a nanosecond; 584 years if it would take longer.
    #[must_use]
    pub fn streaming_time(&self, bytes: u64) -> SimDuration {
        let ns = (u128::from(bytes) * 1_000_000_000)
            .div_ceil(u128::from(self.parameters.bandwidth_bytes_per_s));
        SimDuration(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

impl Device for Simple {
    fn capacity(&self) -> SectorCount {
        self.capacity
    }

    fn cylinders(&self) -> u32 {
        1
    }

    fn cylinder_of(&self, sector: Sector) -> u32 {
        assert!(sector.0 < self.capacity.0, "sector {} is beyond the end", sector.0);
        0
    }

    fn current_cylinder(&self) -> u32 {
        0
    }

    fn serve(&mut self, issue: SimTime, request: &BlockRequest) -> Service {
        assert!(issue >= self.finished, "a request issued before the one before it finished");
        if !request.operation.transfers_data() {
            self.finished = issue;
            return Service { finish: issue, buffer_hit: true, ..Service::default() };
        }
        assert!(request.sectors.0 > 0, "an empty request");
        let end = request.sector + request.sectors;
        assert!(end.0 <= self.capacity.0, "request beyond the end of the device: {end:?}");
        let access = self.access_time();
        let transfer = self.streaming_time(request.sectors.bytes());
        self.finished = issue + access + transfer;
        // The access time is not divided further; all of it counts as moving the arm.
        Service { finish: self.finished, seek: access, transfer, ..Service::default() }
    }

    fn positioning(&self, _moment: &Moment, request: &BlockRequest) -> SimDuration {
        if request.operation.transfers_data() { self.access_time() } else { SimDuration::ZERO }
    }

    fn positioning_at_least(&self, _moment: &Moment, _cylinders: u32) -> SimDuration {
        self.access_time()
    }
}

#[cfg(test)]
mod tests {
    use agewell_core::{BlockRequest, Operation, Sector, SectorCount, SimDuration, SimTime};

    use super::Simple;
    use crate::Device;
    use crate::parameters::SimpleParameters;

    fn baseline() -> Simple {
        // Matthews 1999, §5.3: the typical disk, 15 ms and 5 MB/s.
        let parameters =
            SimpleParameters { access_time_ns: 15_000_000, bandwidth_bytes_per_s: 5_000_000 };
        Simple::new(&parameters, SectorCount(1 << 20))
    }

    fn request(operation: Operation, sector: u64, sectors: u64) -> BlockRequest {
        BlockRequest {
            enqueue: SimTime::ZERO,
            sector: Sector(sector),
            sectors: SectorCount(sectors),
            operation,
            synchronous: true,
        }
    }

    #[test]
    fn a_segment_costs_what_equation_3_says() {
        // Transfer inefficiency of a 256 KiB segment: (15 ms + 262144 / 5e6 s) / (262144 / 5e6 s) = 1.286.
        let disk = baseline();
        let actual = disk.transfer_time(262_144).as_seconds();
        let ideal = disk.streaming_time(262_144).as_seconds();
        assert!((actual / ideal - 1.2861).abs() < 1e-4, "{}", actual / ideal);
    }

    #[test]
    fn every_transfer_pays_the_access_time_even_a_sequential_one() {
        let mut disk = baseline();
        let first = disk.serve(SimTime::ZERO, &request(Operation::Write, 0, 10));
        let second = disk.serve(first.finish, &request(Operation::Read, 10, 10));
        assert_eq!(first.finish.0, 15_000_000 + 5120 * 200);
        assert_eq!(second.finish.0, 2 * first.finish.0);
        assert_eq!(second.seek, SimDuration(15_000_000));
        let moment = disk.moment(second.finish);
        assert_eq!(disk.positioning(&moment, &request(Operation::Read, 0, 1)).0, 15_000_000);
    }

    #[test]
    fn a_flush_is_free_and_a_further_block_pays_half_a_rotation() {
        let mut disk = baseline();
        let flush = disk.serve(SimTime(7), &request(Operation::Flush, 0, 0));
        assert_eq!(flush.finish, SimTime(7));
        assert_eq!(disk.further_block_time(SimDuration(5_560_000), 8192).0, 5_560_000 + 1_638_400);
    }

    #[test]
    #[should_panic(expected = "beyond the end")]
    fn an_address_beyond_the_end_is_our_bug() {
        baseline().serve(SimTime::ZERO, &request(Operation::Read, (1 << 20) - 1, 2));
    }
}
