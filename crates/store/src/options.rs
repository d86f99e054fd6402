//! How a store is opened.

use agewell_log::policy::cost::CostModel;
use agewell_log::policy::mechanism::{Collect, Mechanism};

/// Who decides how room is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Means {
    /// A rule.
    Fixed(Collect),
    /// The choice of the simulator: each mechanism is rehearsed on what has been written so far, and the
    /// cheapest is taken.
    Adaptive,
}

/// Where what is collected goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Behind what is new.
    None,
    /// To logs by how long it is expected to live, by death rates that are measured (`LifeTable`).
    Lifetime,
    /// By whether it came from new data, and its age since (`SepBit`, Wang et al., FAST 2022).
    SepBit,
}

/// Logs of collected blocks at most; chosen by us: each has an open segment.
pub const COLLECTED_LOGS_MAX: u32 = 16;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// How room is made.
    pub means: Means,
    /// Where what is collected goes.
    pub placement: Placement,
    /// Logs of collected blocks, [`COLLECTED_LOGS_MAX`] at most, and one for every two segments that are kept
    /// for collections; none: as many as pay.
    pub collected_logs: Option<u32>,
    /// By what an adaptive store begins that has not chosen yet; none: by threading, which does nothing
    /// beforehand.
    pub begins_by: Option<Mechanism>,
    /// What transfers take on its device, by which mechanisms are compared until more is known of it.
    /// Bytes of a block are the store's own.
    pub prices: CostModel,
    /// Whether prices are learnt from what its transfers take, if the device has a clock.
    pub learns_prices: bool,
    /// Time from the end of a sync to when the next may reach the medium, ns, for which room is left between them;
    /// none: learnt, if the device has a clock.
    pub rotational_delay_ns: Option<u64>,
    /// What a sync takes longer that goes on where the one before ended, ns, where the delay is said: a turn.
    pub lost_turn_ns: u64,
}

impl Default for OpenOptions {
    /// The adaptive choice, at the prices of a disk of today, which serves what is sent together nearest
    /// first: what one more transfer adds to a group that ends in a flush, elsewhere and in the same segment
    /// (2.07 and 0.39 ms on the ST2000DM006 of the catalogue, 1.02 and 0.38 ms on the HUS728T8TALE6L4), and
    /// bytes (136 and 151 MB a second). Half a turn for each would make filling holes ten times too dear.
    fn default() -> Self {
        Self {
            means: Means::Adaptive,
            placement: Placement::Lifetime,
            collected_logs: None,
            begins_by: None,
            prices: CostModel {
                access_ns: 2_000_000,
                further_ns: 400_000,
                bandwidth_bytes_per_s: 140_000_000,
                block_bytes: 4096,
            },
            learns_prices: true,
            rotational_delay_ns: None,
            lost_turn_ns: 0,
        }
    }
}

impl OpenOptions {
    /// With one mechanism throughout.
    #[must_use]
    pub fn fixed(mechanism: Mechanism) -> Self {
        Self { means: Means::Fixed(Collect::Always(mechanism)), ..Self::default() }
    }
}
