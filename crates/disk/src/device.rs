//! The seam between a queue and a device model.

use agewell_core::{BlockRequest, Sector, SectorCount, SimDuration, SimTime};

/// What serving one request cost, and where the time went.
///
/// The parts are the time that the request itself was held up by each cause; parts that a drive overlaps (bus and
/// media transfer) are counted once, under the slower of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Service {
    /// When the device reports completion to the host.
    pub finish: SimTime,
    /// Arm movement made for this request, in cylinders.
    pub seek_cylinders: u32,
    /// Controller, command and completion overhead.
    pub overhead: SimDuration,
    /// Arm movement, head switch and settling.
    pub seek: SimDuration,
    /// Waiting for the first sector to come round, and for missed turns.
    pub rotation: SimDuration,
    /// Moving the data: media and bus, without what they overlap.
    pub transfer: SimDuration,
    /// Whether all of it came from (or went to) the drive's buffer without waiting for the medium.
    pub buffer_hit: bool,
}

/// A block device that serves one request at a time and remembers where it left its arm, platter and buffer.
///
/// Implementations keep no clock of their own: every time is a parameter. They are deterministic: the same calls give
/// the same answers.
pub trait Device {
    /// Addressable size.
    fn capacity(&self) -> SectorCount;

    /// Number of cylinders; 1 for a device without an arm.
    fn cylinders(&self) -> u32;

    /// The cylinder that holds `sector`.
    ///
    /// # Panics
    /// If `sector` is beyond the capacity.
    fn cylinder_of(&self, sector: Sector) -> u32;

    /// The cylinder under the heads.
    fn current_cylinder(&self) -> u32;

    /// Serves `request`, issued to the device at `issue`, and returns when it completes.
    ///
    /// Requests are served in call order; `issue` must not be before the finish of the previous request.
    ///
    /// # Panics
    /// If the request reaches beyond the capacity, is empty, or is issued in the past: callers check these first.
    fn serve(&mut self, issue: SimTime, request: &BlockRequest) -> Service;

    /// Seek and rotation that `request` would wait for if issued at `now` (for SPTF); does not change the device.
    fn positioning(&self, now: SimTime, request: &BlockRequest) -> SimDuration;
}
