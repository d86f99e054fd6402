//! The seam between a queue and a device model.

use agewell_core::{BlockRequest, Sector, SectorCount, SimDuration, SimTime};

use crate::mechanical::Mechanics;

/// Cost of one served request, and its parts.
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
    /// Arm movement, head switch and settling; on flash, sensing a page.
    pub seek: SimDuration,
    /// Waiting for the first sector to come round, and for missed turns; on flash, for a busy die.
    pub rotation: SimDuration,
    /// Moving the data: media and bus, without what they overlap.
    pub transfer: SimDuration,
    /// Whether all of it came from (or went to) the drive's buffer without waiting for the medium.
    pub buffer_hit: bool,
}

/// Where a device accepts a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WriteRule {
    /// Anywhere.
    #[default]
    Anywhere,
    /// Before `first_sequential` anywhere; from there on in zones of `zone_sectors`, the last of
    /// which may be shorter. A write stays within its zone and begins where the one before it in
    /// that zone ended; discarding whole zones empties them.
    SequentialInZones {
        /// Start of the first zone that is written in order; a multiple of the zone.
        first_sequential: Sector,
        /// Size of a zone.
        zone_sectors: SectorCount,
    },
}

/// Advice to a layout on the device below it.
///
/// A layout knows no device: the code that joins the two copies these figures into its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayoutAdvice {
    /// Where writes may go: a condition, not a preference.
    pub write_rule: WriteRule,
    /// The best unit of writes and discards, aligned to its own size from sector 0 on: a zone or
    /// band, or one erase block of every die. `None` where the device does not care.
    pub unit: Option<SectorCount>,
    /// The smallest aligned piece that is written without being read first.
    pub write_sectors: SectorCount,
    /// Whether discards save the device work.
    pub wants_discards: bool,
}

impl Default for LayoutAdvice {
    fn default() -> Self {
        Self {
            write_rule: WriteRule::Anywhere,
            unit: None,
            write_sectors: SectorCount(1),
            wants_discards: false,
        }
    }
}

/// Why a device refuses a request that lies within its capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A write that does not begin where its zone's last one ended.
    #[error(
        "a write to sector {sector}, but zone {zone} is written in order and continues at sector \
         {pointer}"
    )]
    OutOfOrder {
        /// The write's first sector.
        sector: u64,
        /// Its zone, counted from 0.
        zone: u64,
        /// The zone's write pointer; its end, if the zone is full.
        pointer: u64,
    },
    /// A write over the end of a zone that is written in order.
    #[error(
        "a write of {sectors} sectors at sector {sector} runs over the end of zone {zone} at {end}"
    )]
    AcrossZones {
        /// The write's first sector.
        sector: u64,
        /// Its length.
        sectors: u64,
        /// The zone it begins in, counted from 0.
        zone: u64,
        /// That zone's end.
        end: u64,
    },
    /// A discard of part of a zone that is written in order.
    #[error(
        "a discard of {sectors} sectors at sector {sector} takes part of zone {zone}: only whole \
         zones can be emptied"
    )]
    PartOfZone {
        /// The discard's first sector.
        sector: u64,
        /// Its length.
        sectors: u64,
        /// The zone of which it takes a part, counted from 0.
        zone: u64,
    },
}

/// An instant at which a device would be issued its next request, and how it stands then: what the
/// positioning estimates of all requests that wait have in common ([`Device::moment`]).
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// When a request would be issued.
    pub issue: SimTime,
    /// The cylinder that distances are counted from.
    pub cylinder: u32,
    pub(crate) mechanics: Option<Mechanics>,
}

/// A block device that remembers where it left its arm, platter and buffer.
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
    /// If the request reaches beyond the capacity, is empty, is issued in the past, or is refused by
    /// [`Device::check`]: callers check these first.
    fn serve(&mut self, issue: SimTime, request: &BlockRequest) -> Service;

    /// Commands that it holds and works on at once; 1 for a device that takes one request after
    /// another. Only where it is more than 1 do batches make a difference.
    fn queue_depth(&self) -> u32 {
        1
    }

    /// Serves `requests`, all issued at `issue`, and pushes what each cost to `services`, in order.
    ///
    /// A device that takes one request at a time serves them one after another, as here; one with a
    /// queue and an arm serves the nearest first, one that is parallel inside overlaps them. Reads
    /// and writes do not overtake each other where that would change what is read. Nothing may be
    /// issued before the latest of the finish times.
    ///
    /// # Panics
    /// As [`Device::serve`].
    fn serve_together(
        &mut self,
        issue: SimTime,
        requests: &[BlockRequest],
        services: &mut Vec<Service>,
    ) {
        let mut now = issue;
        for request in requests {
            let service = self.serve(now, request);
            now = service.finish;
            services.push(service);
        }
    }

    /// Data lay in `sectors` sectors from `first` on before anything is served: a device that keeps
    /// track of its data enters it, in no time.
    ///
    /// # Panics
    /// If it reaches beyond the capacity.
    fn prefill(&mut self, _first: Sector, _sectors: SectorCount) {}

    /// Advice to a layout on this device, its rule for writes included.
    fn layout_advice(&self) -> LayoutAdvice {
        LayoutAdvice::default()
    }

    /// Whether the device would take `request`, which lies within its capacity, as it stands now.
    ///
    /// # Errors
    /// If it breaks the device's [`WriteRule`].
    fn check(&self, _request: &BlockRequest) -> Result<(), Refused> {
        Ok(())
    }

    /// The state that is common to the estimates of all requests issued at `issue`.
    fn moment(&self, issue: SimTime) -> Moment {
        Moment { issue, cylinder: self.current_cylinder(), mechanics: None }
    }

    /// How long after `moment` the device would be over the data of `request`, if issued then: its
    /// command taken, what is under way done, the arm moved, the platter turned, the die free. Nothing
    /// for what moves no data. It changes nothing, and is what service takes: `overhead`, `seek` and
    /// `rotation` of [`Device::serve`] together, except for a write that is reported early, where it
    /// is when the medium, and not the host's part, begins.
    ///
    /// # Panics
    /// If `moment` is not of this device as it stands, or the request reaches beyond the capacity.
    fn positioning(&self, moment: &Moment, request: &BlockRequest) -> SimDuration;

    /// No request whose first sector lies `cylinders` from that of `moment` or further is positioned
    /// for in less, except where [`Device::buffered_cylinders`] says; it does not fall as `cylinders`
    /// grows. By default nothing is known.
    fn positioning_at_least(&self, _moment: &Moment, _cylinders: u32) -> SimDuration {
        SimDuration::ZERO
    }

    /// Calls `visit` for the cylinders that have data in the device's buffer, some perhaps several times:
    /// requests there may be positioned for at once, however far the arm.
    fn buffered_cylinders(&self, _moment: &Moment, _visit: &mut dyn FnMut(u32)) {}
}
