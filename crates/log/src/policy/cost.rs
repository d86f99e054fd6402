//! Costs of transfers, as policies estimate them.

/// Times of a disk without mechanics (Matthews 1999, §5.2.2, §5.4.1), in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostModel {
    /// Paid by a transfer that follows one elsewhere: an average seek and half a rotation.
    pub access_ns: u64,
    /// Paid by a further transfer to the same segment: half a rotation; the access time again on a
    /// disk of which only that is known.
    pub further_ns: u64,
    /// Transfer rate.
    pub bandwidth_bytes_per_s: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
}

impl CostModel {
    /// Time for `bytes` at full bandwidth, rounded up.
    #[must_use]
    #[inline]
    pub fn streaming_ns(&self, bytes: u64) -> u64 {
        // Up to 18 GB the product fits; a division of twice the width costs several times as much.
        if let Some(ns) = bytes.checked_mul(1_000_000_000) {
            return ns.div_ceil(self.bandwidth_bytes_per_s);
        }
        let ns = u128::from(bytes) * 1_000_000_000;
        u64::try_from(ns.div_ceil(u128::from(self.bandwidth_bytes_per_s))).unwrap_or(u64::MAX)
    }

    /// Time for one transfer.
    #[must_use]
    #[inline]
    pub fn transfer_ns(&self, further: bool, bytes: u64) -> u64 {
        let positioning_ns = if further { self.further_ns } else { self.access_ns };
        positioning_ns + self.streaming_ns(bytes)
    }

    /// Time to read or write `blocks` in one piece.
    #[must_use]
    pub fn blocks_ns(&self, blocks: u32) -> u64 {
        self.transfer_ns(false, u64::from(blocks) * self.block_bytes)
    }

    /// How much slower a transfer of `bytes` is than at full bandwidth (Matthews 1999, §5.3, eq. 3).
    #[must_use]
    pub fn transfer_inefficiency(&self, bytes: u64) -> f64 {
        self.access_ns as f64 / 1e9 * self.bandwidth_bytes_per_s as f64 / bytes as f64 + 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transfer_inefficiency_is_equation_3() {
        let disk = CostModel {
            access_ns: 15_000_000,
            further_ns: 15_000_000,
            bandwidth_bytes_per_s: 5_000_000,
            block_bytes: 8192,
        };
        // By hand: 0.015 x 5e6 / 262144 + 1.
        assert!((disk.transfer_inefficiency(262_144) - 1.286_102).abs() < 1e-6);
        let segment_ns = disk.blocks_ns(32) as f64;
        let ideal_ns = disk.streaming_ns(262_144) as f64;
        assert!((segment_ns / ideal_ns - disk.transfer_inefficiency(262_144)).abs() < 1e-8);
    }
}
