//! The remap stage as the event loop sees it: identity, or a shuffler with its moves.

use agewell_core::{BlockRequest, Sector, SectorCount, SimDuration, SimTime};
use agewell_shuffle::{RemapKind, ShuffleConfig, Shuffler};
use serde_json::{Value, json};

use crate::config::{ConfigError, Table};
use crate::result::RemapSummary;

/// Quiet time after the last request before a move begins; chosen by us: long against a burst of
/// requests (hplajw's median gap is 23 ms), short against the idle minutes that follow one.
const IDLE_WAIT_DEFAULT: SimDuration = SimDuration(100_000_000);

/// The `[remap]` table.
#[derive(Debug, Clone, PartialEq)]
pub struct RemapSetup {
    /// What is observed, placed and moved.
    pub shuffle: ShuffleConfig,
    /// With `moves = "idle"`: quiet time before a move begins.
    pub idle_wait: SimDuration,
}

impl RemapSetup {
    /// Reads the table.
    ///
    /// # Errors
    /// If a key is unknown or a value does not do.
    pub fn read(value: &Value) -> Result<Self, ConfigError> {
        let mut table = Table::new("[remap]", value.clone())?;
        let mut known = serde_json::Map::new();
        for key in ShuffleConfig::KEYS {
            if let Some(value) = table.value(key) {
                known.insert(key.to_owned(), value);
            }
        }
        let idle_wait = table.duration("idle_wait")?.unwrap_or(IDLE_WAIT_DEFAULT);
        table.finish()?;
        let shuffle = serde_json::from_value(Value::Object(known)).map_err(|error| {
            let text = error.to_string();
            // The crate's own errors name the table; those of the deserializer (a number for a
            // string) do not.
            let place = if text.starts_with("[remap]") { "" } else { "[remap]: " };
            ConfigError(format!("{place}{text}"))
        })?;
        Ok(Self { shuffle, idle_wait })
    }

    /// Nothing moves.
    #[must_use]
    pub fn identity() -> Self {
        Self { shuffle: ShuffleConfig::default(), idle_wait: IDLE_WAIT_DEFAULT }
    }

    /// Whether anything can move at all.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.shuffle.kind == RemapKind::None
    }

    /// The table with every default filled in.
    #[must_use]
    pub fn resolved(&self) -> Value {
        if self.is_identity() {
            return json!({ "kind": "none" });
        }
        let mut value = json!(self.shuffle);
        value["idle_wait"] = json!(format!("{} ns", self.idle_wait.0));
        value
    }

    /// When the first rearrangement comes, if any does.
    #[must_use]
    pub fn first_rearrangement(&self) -> Option<SimTime> {
        (!self.is_identity()).then(|| SimTime::ZERO + self.shuffle.first_after)
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
        /// What has been done.
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

    /// What was done so far, or `None` for the identity.
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
