//! How room is made: by cleaning, by hole-plugging or by threading, and the published rule that
//! chooses between the first two.

use super::cost::CostModel;

/// A way to make room for new data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mechanism {
    /// The live blocks of some segments are copied to the end of the log.
    Clean,
    /// The live blocks of a little-used segment are copied into holes of well-used ones (Wilkes et
    /// al. 1995; Matthews 1999, §5.4.1).
    Plug,
    /// New data goes straight into the holes of segments, and none is collected (threaded log).
    Thread,
}

impl Mechanism {
    /// Every mechanism.
    pub const ALL: [Mechanism; 3] = [Mechanism::Clean, Mechanism::Plug, Mechanism::Thread];

    /// The name in configurations.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Clean => "clean",
            Mechanism::Plug => "plug",
            Mechanism::Thread => "thread",
        }
    }
}

/// The rule that decides on the mechanism, at each opportunity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collect {
    /// Always the same.
    Always(Mechanism),
    /// Cleaning or plugging, whichever [`choose_matthews_1999`] estimates to be cheaper now.
    Matthews1999(PlugCandidate),
}

/// The segment that the rule of Matthews 1999 makes the estimate of plugging for, and plugs. The
/// paper says which it plugs by itself, the least utilized, and that the choice of mechanism is
/// orthogonal to the policy that chooses segments (§5.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PlugCandidate {
    /// The least utilized one, whatever the policy would clean. A young segment that is still
    /// emptying by itself then looks cheap.
    #[default]
    LeastUtilized,
    /// The one that the policy would clean: of one segment both estimates are made.
    Policy,
}

/// Segments that would be collected together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidates {
    /// How many.
    pub segments: u32,
    /// Blocks they can hold, together.
    pub blocks: u32,
    /// Live blocks among those.
    pub live: u32,
    /// Segments of them that need not be read.
    pub cached: u32,
}

impl Candidates {
    /// Time to collect them by cleaning over the bytes that frees, ns a byte: every candidate is
    /// read, the live blocks are written as whole segments (Matthews 1999, §5.4.2, eq. 7).
    #[must_use]
    pub fn cleaning_ns_per_byte(&self, disk: &CostModel) -> f64 {
        let segment_blocks = self.blocks / self.segments;
        let segment_ns = disk.blocks_ns(segment_blocks) as f64;
        let written = f64::from(self.live) / f64::from(segment_blocks);
        let read = f64::from(self.segments - self.cached);
        let freed = f64::from(self.blocks - self.live) * disk.block_bytes as f64;
        (read + written) * segment_ns / freed
    }

    /// Time to collect them by hole-plugging over the bytes that frees, ns a byte: every candidate
    /// is read, every live block written by itself with `header_bytes` beside it, and the whole of
    /// the candidates is freed (Matthews 1999, §5.4.2, eq. 8).
    #[must_use]
    pub fn plugging_ns_per_byte(&self, disk: &CostModel, header_bytes: u32) -> f64 {
        let segment_ns = disk.blocks_ns(self.blocks / self.segments) as f64;
        let block_ns = disk.transfer_ns(false, disk.block_bytes + u64::from(header_bytes)) as f64;
        let freed = f64::from(self.blocks) * disk.block_bytes as f64;
        (f64::from(self.segments - self.cached) * segment_ns + f64::from(self.live) * block_ns)
            / freed
    }
}

/// The rule of Matthews 1999, §5.4.2: whichever of cleaning `clean` and plugging with `plug` frees
/// space at the lower cost now.
#[must_use]
pub fn choose_matthews_1999(
    clean: &Candidates,
    plug: &Candidates,
    disk: &CostModel,
    header_bytes: u32,
) -> Mechanism {
    // A segment without garbage frees nothing: its cost is infinite, and the comparison holds.
    if clean.cleaning_ns_per_byte(disk) <= plug.plugging_ns_per_byte(disk, header_bytes) {
        Mechanism::Clean
    } else {
        Mechanism::Plug
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: CostModel = CostModel {
        access_ns: 15_000_000,
        further_ns: 15_000_000,
        bandwidth_bytes_per_s: 5_000_000,
        block_bytes: 8192,
    };

    fn one(live: u32) -> Candidates {
        Candidates { segments: 1, blocks: 32, live, cached: 0 }
    }

    #[test]
    fn the_estimates_are_equations_7_and_8() {
        // By hand: T(seg) = 67.4288 ms, T(block) = 16.6384 ms.
        let (segment_ms, block_ms, bytes) = (67.4288, 16.6384, 8192.0);
        let clean = one(24).cleaning_ns_per_byte(&DISK) / 1e6;
        assert!((clean - (1.0 + 0.75) * segment_ms / (8.0 * bytes)).abs() < 1e-9);
        let plug = one(24).plugging_ns_per_byte(&DISK, 0) / 1e6;
        assert!((plug - (segment_ms + 24.0 * block_ms) / (32.0 * bytes)).abs() < 1e-9);
    }

    #[test]
    fn emptier_segments_are_cleaned_and_fuller_ones_plugged() {
        let chosen = |live| choose_matthews_1999(&one(live), &one(live), &DISK, 0);
        assert_eq!(chosen(8), Mechanism::Clean);
        assert_eq!(chosen(31), Mechanism::Plug);
        assert_eq!(chosen(32), Mechanism::Plug);
        let switch = (1..32).find(|live| chosen(*live) == Mechanism::Plug).unwrap();
        assert!((1..switch).all(|live| chosen(live) == Mechanism::Clean));
        assert!((switch..33).all(|live| chosen(live) == Mechanism::Plug));
    }
}
