//! A disk without mechanics, as a cost model.

use agewell_core::SimDuration;
use agewell_log::policy::cost::CostModel;

use crate::config::SimpleTable;

/// The disk of Matthews 1999, §5.2.2 and §5.4.1, of any capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SimpleDisk {
    /// Paid by a transfer that follows one elsewhere.
    pub(crate) access_time: SimDuration,
    /// Paid by a further transfer to the same segment.
    pub(crate) further_time: SimDuration,
    /// Transfer rate.
    pub(crate) bandwidth_bytes_per_s: u64,
    /// Transfer rate of writes, if it is another one.
    pub(crate) write_bandwidth_bytes_per_s: u64,
}

impl SimpleDisk {
    /// The disk that `table` describes, which has been read.
    pub(crate) fn of(table: &SimpleTable) -> Self {
        let half_rotation = SimDuration(table.rotation_time.unwrap_or_default().0 / 2);
        let (access_time, further_time) = match (table.access_time, table.seek_time) {
            (Some(access), _) => (access, access),
            (None, seek) => {
                (SimDuration(seek.unwrap_or_default().0 + half_rotation.0), half_rotation)
            }
        };
        Self {
            access_time,
            further_time,
            bandwidth_bytes_per_s: table.bandwidth_bytes_per_s,
            write_bandwidth_bytes_per_s: table
                .write_bandwidth_bytes_per_s
                .unwrap_or(table.bandwidth_bytes_per_s),
        }
    }

    /// What reading costs, if a block is `block_bytes`.
    pub(crate) fn reading(&self, block_bytes: u64) -> CostModel {
        CostModel {
            access_ns: self.access_time.0,
            further_ns: self.further_time.0,
            bandwidth_bytes_per_s: self.bandwidth_bytes_per_s,
            block_bytes,
        }
    }

    /// What writing costs.
    pub(crate) fn writing(&self, block_bytes: u64) -> CostModel {
        let bandwidth_bytes_per_s = self.write_bandwidth_bytes_per_s;
        CostModel { bandwidth_bytes_per_s, ..self.reading(block_bytes) }
    }
}
