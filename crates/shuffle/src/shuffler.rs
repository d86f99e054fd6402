//! One device's shuffling: observation, policy, moves and table, driven from outside.
//!
//! Still pure: the driver says what time it is. The order of calls for each request is: while
//! [`Shuffler::due`], call [`Shuffler::rearrange`]; [`Shuffler::observe`] the request as it was
//! issued; [`Shuffler::map`] it. With moves in idle periods, call [`Shuffler::next_step`] whenever
//! the device is idle, do its requests, and report it with [`Shuffler::complete_step`]; the table
//! follows step by step, so requests that arrive between two steps find their data where it is. A
//! step is to be done as a whole: a request that arrives during it waits.
//!
//! A rearrangement that comes due while moves of the last one are outstanding drops those not yet
//! begun; a cycle that is under way is finished first.

use std::collections::VecDeque;

use agewell_core::{
    DailyWindow, Operation, RandomStreams, Sector, SectorCount, SimDuration, SimTime, Stream,
};

use crate::paged::Paged;
use crate::remap::Relocation;
use crate::{
    Aging, DriveShape, MoveCost, MoveMode, MovePlan, MoveRequest, MoveStep, Observation, Pieces,
    Place, Placement, PolicyConfig, QuantumGrid, RemapKind, RemapTable, ReservedRegion,
    ShuffleConfig, ShuffleError, ShuffleView, choose, plan_moves,
};

/// Quanta that are placed at most where every one of them is, accessed or not: some 4 GB of tables
/// and plans; chosen by us.
const PLACED_QUANTA_MAX: u32 = 1 << 26;

/// What surrounds a shuffler: its device, and the time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShuffleSetting {
    /// The device.
    pub shape: DriveShape,
    /// Time since midnight at simulated time zero.
    pub start_of_day: SimDuration,
}

/// What a rearrangement did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rearrangement {
    /// When it was due.
    pub at: SimTime,
    /// Quanta with a count above zero.
    pub active_quanta: u32,
    /// Quanta whose place changes.
    pub moved_quanta: u32,
    /// Quanta of the device.
    pub quanta: u32,
    /// Disk requests and sectors that the moves take; charged only if the moves are done in idle
    /// periods.
    pub cost: MoveCost,
    /// Copies of the previous rearrangement that were dropped.
    pub dropped_steps: u64,
}

impl Rearrangement {
    /// Share of the device whose place changes.
    #[must_use]
    pub fn moved_fraction(&self) -> f64 {
        f64::from(self.moved_quanta) / f64::from(self.quanta)
    }
}

/// Shuffling of one device.
#[derive(Debug, Clone)]
pub struct Shuffler {
    config: ShuffleConfig,
    policy: PolicyConfig,
    start_of_day: SimDuration,
    observation: Observation,
    /// Quanta written since they were copied; used by block copying only.
    updated: Paged<bool>,
    table: RemapTable,
    next_at: Option<SimTime>,
    pending: VecDeque<MoveStep>,
    /// A cycle was begun and one of its quanta is held aside.
    cycle_open: bool,
    in_buffer: Option<u32>,
    stream: Stream,
}

impl Shuffler {
    /// A shuffler for the device of `setting`; with kind `none` it never moves anything.
    ///
    /// # Errors
    /// If the device cannot be divided as configured, or a reserved region does not fit.
    pub fn new(
        config: &ShuffleConfig,
        setting: &ShuffleSetting,
        streams: &RandomStreams,
    ) -> Result<Self, ShuffleError> {
        let capacity = setting.shape.capacity;
        let grid = QuantumGrid::new(
            capacity,
            config.logical_size.unwrap_or(capacity),
            Sector(config.offset.0),
            config.quantum.sectors(&setting.shape, config.block_size),
        )?;
        Self::on_grid(config, grid, setting.start_of_day, streams)
    }

    /// A shuffler on a grid that was made elsewhere, for a quantum of any size.
    ///
    /// # Errors
    /// If a reserved region does not fit.
    pub fn on_grid(
        config: &ShuffleConfig,
        grid: QuantumGrid,
        start_of_day: SimDuration,
        streams: &RandomStreams,
    ) -> Result<Self, ShuffleError> {
        let reserved = reserved_region(config, &grid)?;
        let table = match &reserved {
            Some(region) => RemapTable::around(grid, region),
            None => RemapTable::new(grid),
        };
        let policy = PolicyConfig {
            kind: config.kind,
            coverage_ppm: config.coverage_ppm(),
            links: config.links,
            interleave: config.interleave,
            arrange_unaccessed: config.arrange_unaccessed,
            // The middle of what the workload addresses, which is the middle of the disk if it
            // addresses all of it. Of two middle slots the lower, since the pipe goes up first: so
            // it stays balanced to its last slot.
            center: reserved.map_or((grid.quanta() - 1) / 2, |region| region.center()),
            reserved,
        };
        if policy.places_everything() && grid.quanta() > PLACED_QUANTA_MAX {
            return Err(ShuffleError::TooManyToPlace {
                quanta: grid.quanta(),
                limit: PLACED_QUANTA_MAX,
            });
        }
        Ok(Self {
            policy,
            start_of_day,
            observation: Observation::new(grid.quanta(), config.links),
            updated: Paged::new(grid.quanta()),
            table,
            next_at: (config.kind != RemapKind::None).then(|| SimTime::ZERO + config.first_after),
            pending: VecDeque::new(),
            cycle_open: false,
            in_buffer: None,
            stream: streams.stream("shuffle"),
            config: config.clone(),
        })
    }

    /// Counts a request at its logical address, as it was issued at `now`.
    #[inline]
    pub fn observe(
        &mut self,
        now: SimTime,
        operation: Operation,
        sector: Sector,
        sectors: SectorCount,
    ) {
        if self.next_at.is_none() || !operation.transfers_data() {
            return;
        }
        if operation == Operation::Write && self.policy.kind == RemapKind::ReservedCopy {
            self.mark_updated(sector, sectors);
        }
        let ignored = |window: &DailyWindow| window.contains(now, self.start_of_day.0);
        if !self.config.ignore_window.as_ref().is_some_and(ignored) {
            self.observation.observe(self.table.grid(), sector, sectors);
        }
    }

    fn mark_updated(&mut self, sector: Sector, sectors: SectorCount) {
        let grid = *self.table.grid();
        let end = sector.0 + sectors.0;
        let mut at = sector.0.max(grid.first_sector().0);
        while at < end {
            let Some((quantum, offset)) = grid.locate(Sector(at)) else { return };
            self.updated.set(quantum, true);
            at += grid.quantum_sectors().0 - offset;
        }
    }

    /// The pieces that a request becomes where its data lies now.
    #[inline]
    #[must_use]
    pub fn map(&self, sector: Sector, sectors: SectorCount) -> Pieces<'_> {
        self.table.map(sector, sectors)
    }

    /// Whether a rearrangement is due at `now`.
    #[inline]
    #[must_use]
    pub fn due(&self, now: SimTime) -> bool {
        self.next_at.is_some_and(|at| at <= now)
    }

    /// When the next rearrangement is due, if there is to be one.
    #[must_use]
    pub fn next_at(&self) -> Option<SimTime> {
        self.next_at
    }

    /// Rearranges: at once, or by queueing the moves for idle periods.
    ///
    /// # Panics
    /// If none is to come; ask [`Shuffler::due`] first.
    pub fn rearrange(&mut self) -> Rearrangement {
        let at = self.next_at.expect("rearrange is called when one is due");
        self.next_at = self.config.interval.map(|interval| at + interval);
        self.observation.end_interval(Aging::new(self.config.alpha));
        let dropped_steps = self.drop_moves_not_begun();
        let begun = self.settle_pending();
        let view = ShuffleView { seen: &self.observation, table: &self.table };
        let placement = choose(&view, &self.policy, &mut self.stream);
        placement.verify(&self.table);
        let still_at_home = |quantum, slot| self.still_at_home(quantum, slot);
        let plan = plan_moves(&self.table, &placement, self.policy.center, still_at_home);
        let report = Rearrangement {
            at,
            active_quanta: self.observation.active().count() as u32,
            moved_quanta: plan.moved_quanta,
            quanta: self.table.grid().quanta(),
            cost: plan.cost(self.table.grid()),
            dropped_steps,
        };
        for done in begun.into_iter().rev() {
            self.table.take_back(done);
        }
        match self.config.moves {
            MoveMode::Instant => self.adopt(&placement, &plan),
            MoveMode::Idle => self.pending.extend(plan.steps),
        }
        report
    }

    fn adopt(&mut self, placement: &Placement, plan: &MovePlan) {
        self.table.adopt(placement);
        for step in &plan.steps {
            self.copied(*step);
        }
    }

    /// A quantum that leaves its home is copied, and one that comes back is written back: either
    /// way both agree. A home that another quantum is put aside in holds no copy any more.
    fn copied(&mut self, step: MoveStep) {
        let Some(region) = self.policy.reserved.filter(|region| region.hidden) else { return };
        if let Place::Slot(slot) = step.to
            && let Some(evicted) = region.resident(slot)
            && evicted < self.table.grid().quanta()
        {
            self.updated.set(evicted, true);
        }
        let home = Place::Slot(region.home(step.quantum));
        if step.from == home || step.to == home {
            self.updated.set(step.quantum, false);
        }
    }

    /// Whether a copied block is still valid at home: it never moved out for good, and no update
    /// went to the copy.
    fn still_at_home(&self, quantum: u32, slot: u32) -> bool {
        let Some(region) = self.policy.reserved.filter(|region| region.hidden) else {
            return false;
        };
        region.home(quantum) == slot && !self.updated.get(quantum)
    }

    fn drop_moves_not_begun(&mut self) -> u64 {
        let all = self.pending.len();
        // Pending steps begin at a boundary unless a quantum is held aside; then they run to the
        // next boundary.
        let keep = if self.cycle_open {
            self.pending.iter().position(|step| step.completes).map_or(0, |last| last + 1)
        } else {
            0
        };
        self.pending.truncate(keep);
        (all - keep) as u64
    }

    /// Lets the table say where everything lies after the copies that wait; returns how to take
    /// that back, last one first.
    fn settle_pending(&mut self) -> Vec<Relocation> {
        let relocate = |step: &MoveStep| match step.to {
            Place::Slot(slot) => Some(self.table.relocate(step.quantum, slot)),
            Place::Buffer => None,
        };
        self.pending.iter().filter_map(relocate).collect()
    }

    /// The next copy to do while the device is idle, if there is one.
    #[must_use]
    pub fn next_step(&self) -> Option<MoveStep> {
        let step = *self.pending.front()?;
        // The copy at home may have been overtaken by an update since the moves were planned.
        let already_there = match step.to {
            Place::Slot(slot) => self.still_at_home(step.quantum, slot),
            Place::Buffer => false,
        };
        Some(MoveStep { already_there, ..step })
    }

    /// The quantum that lies in the buffer outside the device, in the middle of a cycle on a full
    /// disk.
    ///
    /// The table still names the slot it came from, whose content may be another's by now: a driver
    /// serves requests to this quantum from the buffer; charging them as if they went to the old
    /// slot errs on the slow side.
    #[must_use]
    pub fn held_in_buffer(&self) -> Option<u32> {
        self.in_buffer
    }

    /// The disk requests of `step`, read first.
    pub fn requests_of(&self, step: MoveStep) -> impl Iterator<Item = MoveRequest> + use<> {
        step.requests(self.table.grid())
    }

    /// Reports that the step from [`Shuffler::next_step`] was done; from now on its data lies at
    /// its destination.
    ///
    /// # Panics
    /// If there was no such step.
    pub fn complete_step(&mut self) {
        let step = self.pending.pop_front().expect("a step was handed out");
        self.copied(step);
        match step.to {
            Place::Slot(slot) => {
                self.table.relocate(step.quantum, slot);
            }
            Place::Buffer => self.in_buffer = Some(step.quantum),
        }
        if step.from == Place::Buffer {
            self.in_buffer = None;
        }
        self.cycle_open = !step.completes;
    }

    /// Copies that wait for an idle device.
    #[must_use]
    pub fn pending_steps(&self) -> usize {
        self.pending.len()
    }

    /// Where everything lies now.
    #[must_use]
    pub fn table(&self) -> &RemapTable {
        &self.table
    }

    /// What was observed so far.
    #[must_use]
    pub fn observation(&self) -> &Observation {
        &self.observation
    }
}

fn reserved_region(
    config: &ShuffleConfig,
    grid: &QuantumGrid,
) -> Result<Option<ReservedRegion>, ShuffleError> {
    let hidden = match config.kind {
        RemapKind::ReservedCopy => true,
        RemapKind::ReservedExchange => false,
        _ => return Ok(None),
    };
    let quanta = grid.quanta();
    let reserved = ((f64::from(quanta) * config.reserved).round() as u32).clamp(1, quanta);
    if hidden && grid.slots() - quanta < reserved {
        return Err(ShuffleError::NoRoomForReserve { reserved, quanta, slots: grid.slots() });
    }
    Ok(Some(ReservedRegion::centered(quanta, reserved, hidden)))
}
