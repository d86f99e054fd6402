//! What the Auspex-like load takes: the published facts of the trace, and one knob of our own.

use agewell_core::SimDuration;

use crate::workload::WorkloadError;
use crate::workload::error::require;

pub(super) const NAME: &str = "auspex-like";

/// The load's parameters; the defaults are what Matthews 1999, §5.2.1.2 says of the trace, in
/// blocks of 8 KB (8,192 bytes; GB is 10^9).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AuspexParameters {
    /// Clients; 236 by default.
    pub clients: u32,
    /// Length of the trace, which stands for a week; 7 days by default.
    pub duration: SimDuration,
    /// Blocks read; 4,000,000 by default.
    pub reads: u64,
    /// Blocks written; 1,000,000 by default.
    pub writes: u64,
    /// Files deleted; 40,000 by default.
    pub deletes: u64,
    /// Blocks live before; 324,707 by default: 2.66 GB.
    pub initial_blocks: u64,
    /// Blocks live at the end; 384,521 by default: 3.15 GB.
    pub final_blocks: u64,
    /// Blocks live at the end that were written during the trace; 146,484 by default: the 1.2 GB
    /// that the paper finds live at the end from an initially empty disk.
    pub written_live_blocks: u64,
    /// A client that has written since its last sync makes one at every multiple of this, 0 means
    /// never; 30 s by default.
    pub sync_interval: SimDuration,
    /// The knob, 0 to 1: how likely a rewrite is followed by the rewrite of the group of files that
    /// was written next the last time; else the next one starts again at a recent write. Not
    /// published; 0.6 by default (chosen by us; experiments/matthews-1999/figure-5-7/README.md).
    pub locality: f64,
}

impl Default for AuspexParameters {
    fn default() -> Self {
        Self {
            clients: 236,
            duration: SimDuration(7 * 86_400 * 1_000_000_000),
            reads: 4_000_000,
            writes: 1_000_000,
            deletes: 40_000,
            initial_blocks: 324_707,
            final_blocks: 384_521,
            written_live_blocks: 146_484,
            sync_interval: SimDuration(30_000_000_000),
            locality: 0.6,
        }
    }
}

/// No count may pass this, so that products of two of them and of times stay in range.
const COUNT_MAX: u64 = 1 << 31;

impl AuspexParameters {
    /// Blocks that must be live at the end and were not before, deletes of old files left out.
    pub(super) fn growth_blocks(&self) -> u64 {
        self.final_blocks - self.initial_blocks
    }

    /// Requests of the whole load that are no syncs.
    pub(super) fn accesses(&self) -> u64 {
        self.reads + self.writes + self.deletes
    }

    pub(super) fn validate(&self) -> Result<(), WorkloadError> {
        let Self { clients, duration, reads, writes, deletes, .. } = *self;
        let Self { initial_blocks, final_blocks, written_live_blocks, locality, .. } = *self;
        require(clients > 0, NAME, "clients", clients, "at least 1")?;
        let ns = format!("{} ns", duration.0);
        require(duration.0 < 1 << 62, NAME, "duration", ns, "below 2^62 ns (146 years)")?;
        for (key, count) in [("reads", reads), ("writes", writes), ("deletes", deletes)] {
            require(count < COUNT_MAX, NAME, key, count, "below 2^31")?;
        }
        require(final_blocks < COUNT_MAX, NAME, "final_blocks", final_blocks, "below 2^31")?;
        require(initial_blocks > 0, NAME, "initial_blocks", initial_blocks, "at least 1")?;
        let need = "at least initial_blocks";
        require(final_blocks >= initial_blocks, NAME, "final_blocks", final_blocks, need)?;
        let need = "at least initial_blocks: each of them is read";
        require(reads >= initial_blocks, NAME, "reads", reads, need)?;
        let need = "at least 1, and from final_blocks - initial_blocks to final_blocks";
        let growth = self.growth_blocks();
        let between = (growth.max(1)..=final_blocks).contains(&written_live_blocks);
        require(between, NAME, "written_live_blocks", written_live_blocks, need)?;
        let need = "at least written_live_blocks + deletes";
        require(writes >= written_live_blocks + deletes, NAME, "writes", writes, need)?;
        require((0.0..=1.0).contains(&locality), NAME, "locality", locality, "from 0 to 1")
    }
}
