//! The `[device]` table: a disk without mechanics said in place, or one of the catalogue.

use agewell_core::SimDuration;
use agewell_log::policy::cost::CostModel;
use serde_json::{Value, json};

use crate::config::{ConfigError, Table};

/// The disk.
#[derive(Debug, Clone, PartialEq)]
pub enum DiskChoice {
    /// A name of the catalogue, or the path of a device file.
    Model(String),
    /// Times said in place.
    Simple(SimpleDisk),
}

/// The disk of Matthews 1999, §5.2.2 and §5.4.1, of any capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimpleDisk {
    /// Paid by a transfer that follows one elsewhere.
    pub access_time: SimDuration,
    /// Paid by a further transfer to the same segment.
    pub further_time: SimDuration,
    /// Transfer rate.
    pub bandwidth_bytes_per_s: u64,
    /// Transfer rate of writes, if it is another one.
    pub write_bandwidth_bytes_per_s: u64,
}

impl SimpleDisk {
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

impl DiskChoice {
    pub(super) fn read(value: Value) -> Result<Self, ConfigError> {
        let mut table = Table::new("[device]", value)?;
        let kind = table.string("kind")?;
        let model = table.string("model")?;
        match (kind.as_deref(), model) {
            (None, Some(model)) => {
                table.finish()?;
                Ok(DiskChoice::Model(model))
            }
            (Some("simple"), None) => Self::read_simple(table),
            (Some("simple"), Some(_)) => {
                Err(table.invalid("model", "does not go with kind = \"simple\""))
            }
            (Some(_), _) => Err(table.invalid(
                "kind",
                "a log runs on kind = \"simple\" or on model = a name of the catalogue",
            )),
            (None, None) => Err(table.missing("model")),
        }
    }

    fn read_simple(mut table: Table) -> Result<Self, ConfigError> {
        let access = table.duration("access_time")?;
        let seek = table.duration("seek_time")?;
        let rotation = table.duration("rotation_time")?;
        // A catalogue's simple disk says its size; a log's disk is as large as the workload and the
        // utilization make it.
        let (access_time, further_time) = match (access, seek, rotation) {
            (Some(access), None, None) => (access, access),
            (None, Some(seek), Some(rotation)) => {
                let half_rotation = SimDuration(rotation.0 / 2);
                (SimDuration(seek.0 + half_rotation.0), half_rotation)
            }
            (None, None, None) => return Err(table.missing("access_time")),
            _ => {
                return Err(table.invalid(
                    "access_time",
                    "say either access_time, or both seek_time and rotation_time",
                ));
            }
        };
        let bandwidth = table.bytes_per_second("bandwidth")?;
        let bandwidth = bandwidth.ok_or_else(|| table.missing("bandwidth"))?;
        let write_bandwidth = table.bytes_per_second("write_bandwidth")?.unwrap_or(bandwidth);
        if bandwidth == 0 || write_bandwidth == 0 {
            return Err(table.invalid("bandwidth", "must be more than nothing"));
        }
        table.finish()?;
        Ok(DiskChoice::Simple(SimpleDisk {
            access_time,
            further_time,
            bandwidth_bytes_per_s: bandwidth,
            write_bandwidth_bytes_per_s: write_bandwidth,
        }))
    }

    pub(super) fn resolved(&self) -> Value {
        match self {
            DiskChoice::Model(name) => json!({ "model": name }),
            DiskChoice::Simple(simple) => {
                let bandwidth = format!("{} B/s", simple.bandwidth_bytes_per_s);
                let write_bandwidth = format!("{} B/s", simple.write_bandwidth_bytes_per_s);
                let mut table = if simple.access_time == simple.further_time {
                    json!({ "access_time": format!("{} ns", simple.access_time.0) })
                } else {
                    json!({
                        "seek_time": format!("{} ns", simple.access_time.0 - simple.further_time.0),
                        "rotation_time": format!("{} ns", 2 * simple.further_time.0),
                    })
                };
                table["kind"] = json!("simple");
                table["bandwidth"] = json!(bandwidth);
                table["write_bandwidth"] = json!(write_bandwidth);
                table
            }
        }
    }
}
