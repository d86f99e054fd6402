//! The remap stage as the event loop sees it: identity, or a shuffler with its moves.

use agewell_core::{BlockRequest, Sector, SectorCount, SimDuration, SimTime};
use agewell_shuffle::Shuffler;

/// Counters of remapping, over all disks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemapSummary {
    /// Rearrangements carried out.
    pub rearrangements: u64,
    /// Quanta that a rearrangement moved, summed over rearrangements.
    pub moved_quanta: u64,
    /// Quanta that a rearrangement could have moved, summed over rearrangements.
    pub movable_quanta: u64,
    /// Moves dropped because the next rearrangement came first.
    pub dropped_steps: u64,
    /// Moves decided on but not yet carried out when the trace ended.
    pub moves_left: u64,
    /// Disk I/Os done for moves.
    pub move_ios: u64,
    /// Sectors read or written for moves.
    pub move_sectors: u64,
    /// Disk time that moves took, ns.
    pub move_ns: u128,
}

impl RemapSummary {
    /// Both together, as of two disks.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            rearrangements: self.rearrangements + other.rearrangements,
            moved_quanta: self.moved_quanta + other.moved_quanta,
            movable_quanta: self.movable_quanta + other.movable_quanta,
            dropped_steps: self.dropped_steps + other.dropped_steps,
            moves_left: self.moves_left + other.moves_left,
            move_ios: self.move_ios + other.move_ios,
            move_sectors: self.move_sectors + other.move_sectors,
            move_ns: self.move_ns + other.move_ns,
        }
    }
}

/// Where requests go.
#[derive(Debug)]
pub enum Remapper {
    /// To the sectors they name.
    Identity,
    /// To where their data was moved.
    Shuffle {
        /// Observation, policy and table.
        shuffler: Box<Shuffler>,
        /// Quiet time before a move begins.
        idle_wait: SimDuration,
        /// The counters so far.
        summary: RemapSummary,
    },
}

impl Remapper {
    /// A remapper that does what `shuffler` says.
    #[must_use]
    pub fn shuffling(shuffler: Shuffler, idle_wait: SimDuration) -> Self {
        let summary = RemapSummary::default();
        Remapper::Shuffle { shuffler: Box::new(shuffler), idle_wait, summary }
    }

    /// When the next rearrangement is due.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Option<SimTime> {
        match self {
            Remapper::Identity => None,
            Remapper::Shuffle { shuffler, .. } => shuffler.next_at(),
        }
    }

    /// Rearranges; call when due.
    pub fn rearrange(&mut self) {
        let Remapper::Shuffle { shuffler, summary, .. } = self else { return };
        let done = shuffler.rearrange();
        summary.rearrangements += 1;
        summary.moved_quanta += u64::from(done.moved_quanta);
        summary.movable_quanta += u64::from(done.quanta);
        summary.dropped_steps += done.dropped_steps;
    }

    /// Counts a request where the host addressed it.
    #[inline]
    pub fn observe(&mut self, request: &BlockRequest) {
        if let Remapper::Shuffle { shuffler, .. } = self {
            let BlockRequest { enqueue, operation, sector, sectors, .. } = *request;
            shuffler.observe(enqueue, operation, sector, sectors);
        }
    }

    /// Gives `visit` the pieces of a request where they lie.
    #[inline]
    pub fn map(
        &self,
        sector: Sector,
        sectors: SectorCount,
        mut visit: impl FnMut(Sector, SectorCount),
    ) {
        match self {
            Remapper::Identity => visit(sector, sectors),
            Remapper::Shuffle { shuffler, .. } => {
                for piece in shuffler.map(sector, sectors) {
                    visit(piece.sector, piece.sectors);
                }
            }
        }
    }

    /// Quiet time that must pass before the next move, if a move waits.
    #[inline]
    #[must_use]
    pub fn waits_to_move(&self) -> Option<SimDuration> {
        match self {
            Remapper::Shuffle { shuffler, idle_wait, .. } if shuffler.next_step().is_some() => {
                Some(*idle_wait)
            }
            _ => None,
        }
    }

    /// Carries out the next move: `serve` does each disk request at the time it is given and
    /// returns when it finished. Returns when the last finished.
    pub fn move_one(
        &mut self,
        start: SimTime,
        mut serve: impl FnMut(SimTime, &BlockRequest) -> SimTime,
    ) -> SimTime {
        let Remapper::Shuffle { shuffler, summary, .. } = self else { return start };
        let Some(step) = shuffler.next_step() else { return start };
        let mut now = start;
        for io in shuffler.requests_of(step) {
            let request = BlockRequest {
                enqueue: now,
                sector: io.sector,
                sectors: io.sectors,
                operation: io.operation,
                synchronous: false,
            };
            let finish = serve(now, &request);
            summary.move_ios += 1;
            summary.move_sectors += io.sectors.0;
            summary.move_ns += u128::from((finish - now).0);
            now = finish;
        }
        shuffler.complete_step();
        now
    }

    /// The counters so far, or `None` for the identity.
    #[must_use]
    pub fn summary(&self) -> Option<RemapSummary> {
        match self {
            Remapper::Identity => None,
            Remapper::Shuffle { shuffler, summary, .. } => {
                Some(RemapSummary { moves_left: shuffler.pending_steps() as u64, ..*summary })
            }
        }
    }
}
