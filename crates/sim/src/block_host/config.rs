//! An experiment of file requests on a layout of blocks, read strictly, every default visible in
//! [`BlockExperiment::resolved`].

mod device;
mod host;
mod layout;
mod log_layout;
mod reorganise;
mod workload;

use serde_json::{Value, json};

use crate::config::{ConfigError, Table};

pub use device::{DiskChoice, SimpleDisk};
pub use host::{BufferSize, Host, IdleCleaning};
pub use layout::{
    EarlyLayout, FastLayout, Layout, MetadataChoice, SequentialLayout, WriteAheadLayout,
    WriteAnywhereLayout,
};
pub use log_layout::{Collecting, LogLayout, LogTrigger, PlacementChoice, TwoSizes, ZoneSize};
pub use reorganise::Reorganise;
pub use workload::{FileWorkloadKind, Preallocated, WorkloadTable};

/// File requests through a host into a layout of blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockExperiment {
    /// What is asked, and how full the disk is.
    pub workload: WorkloadTable,
    /// Caches and buffers.
    pub host: Host,
    /// Where blocks are put.
    pub layout: Layout,
    /// The disk.
    pub device: DiskChoice,
    /// Seed of every random stream.
    pub seed: u64,
    /// Whether the same writes also go to a log that knows when each block dies.
    pub lower_bound: bool,
    /// Whether the block requests that the layout sends to the device are kept as a trace.
    pub record: bool,
}

impl BlockExperiment {
    /// Whether `value` asks for a layout of blocks.
    #[must_use]
    pub fn is_asked_for(value: &Value) -> bool {
        value.get("layout").is_some()
    }

    /// Whether `kind` names a workload of file requests.
    #[must_use]
    pub fn is_workload(kind: &str) -> bool {
        WorkloadTable::is_kind(kind)
    }

    /// An experiment from `value` (the TOML file as JSON).
    ///
    /// # Errors
    /// Names the table and key: unknown tables and keys, missing ones, values of the wrong kind or
    /// range.
    pub fn from_value(value: Value) -> Result<Self, ConfigError> {
        let mut root = Table::new("experiment", value)?;
        let mut needed = |name: &'static str, example: &str| {
            root.value(name).ok_or_else(|| {
                ConfigError(format!(
                    "experiment: table [{name}] is missing; say for example {example}"
                ))
            })
        };
        let workload = needed("workload", "kind = \"random-update\" and utilization = 0.85")?;
        let layout = needed("layout", "kind = \"lfs\"")?;
        let device = needed(
            "device",
            "kind = \"simple\", access_time = \"15 ms\" and bandwidth = \"5 MB/s\"",
        )?;
        let (host, run) = (root.value("host"), root.value("run"));
        root.finish()?;
        let workload = WorkloadTable::read(workload)?;
        let layout = Layout::read(layout)?;
        let host = Host::read(host.unwrap_or_else(|| json!({})), layout.block_bytes())?;
        let device = DiskChoice::read(device)?;
        let mut run = Table::new("[run]", run.unwrap_or_else(|| json!({})))?;
        let seed = run.whole("seed")?.unwrap_or(1);
        let lower_bound = run.boolean("lower_bound")?.unwrap_or(false);
        let record = run.boolean("record")?.unwrap_or(false);
        run.finish()?;
        Ok(Self { workload, host, layout, device, seed, lower_bound, record })
    }

    /// The experiment with every default filled in; reading it again gives the same experiment.
    #[must_use]
    pub fn resolved(&self) -> Value {
        json!({
            "workload": self.workload.resolved(),
            "host": self.host.resolved(),
            "layout": self.layout.resolved(),
            "device": self.device.resolved(),
            "run": { "seed": self.seed, "lower_bound": self.lower_bound, "record": self.record },
        })
    }
}

/// A whole number of 32 bits.
fn small(table: &mut Table, key: &'static str, default: u32) -> Result<u32, ConfigError> {
    let Some(value) = table.whole(key)? else { return Ok(default) };
    u32::try_from(value).map_err(|_| table.invalid(key, "must be below 2^32"))
}

/// The same, one or more.
fn positive(table: &mut Table, key: &'static str, default: u32) -> Result<u32, ConfigError> {
    match small(table, key, default)? {
        0 => Err(table.invalid(key, "must be at least 1")),
        value => Ok(value),
    }
}
