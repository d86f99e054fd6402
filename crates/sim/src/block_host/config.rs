//! An experiment of file requests on a layout of blocks, read strictly, every default visible in
//! [`LayoutExperiment::resolved`].

mod host;
mod workload;

use agewell_config::{Form, Keyed, TableOfKeys, flag, keys, whole};
use agewell_core::SimDuration;
use agewell_log::policy::cost::CostModel;
use serde_json::{Value, json};

use crate::config::{ConfigError, DeviceChoice, SimpleTable, Tables, device, read_table};

pub use crate::config::layout::{
    Collecting, EarlyLayout, FastLayout, Layout, LogLayout, LogTrigger, MetadataTable,
    PlacementChoice, Reorganise, SequentialLayout, TwoSizes, WriteAheadLayout, WriteAnywhereLayout,
    ZoneSize,
};
pub use host::{BufferSize, Host, IdleCleaning};
pub use workload::{FileTraceTable, FileWorkloadKind, Preallocated, WorkloadTable};

/// File requests through a host into a layout of blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutExperiment {
    /// What is asked, and how full the disk is.
    pub workload: WorkloadTable,
    /// Caches and buffers.
    pub host: Host,
    /// Where blocks are put.
    pub layout: Layout,
    /// The disk.
    pub device: DeviceChoice,
    /// The run as a whole.
    pub run: LayoutRun,
}

keys! {
    /// Options of the run as a whole.
    pub struct LayoutRun {
        /// of every random stream
        seed: u64 = "seed" whole().or(1);
        /// keep the requests that the layout sent to the device, as a trace with times:
        /// `requests.parquet`
        record: bool = "record" flag().or(false);
        /// of a log: also give the same writes to a log that knows when each block dies, and is
        /// cleaned; takes the time of two runs more
        lower_bound: bool = "lower_bound" flag().or(false);
    }
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
    /// The disk that `table` describes, which has been read.
    #[must_use]
    pub fn of(table: &SimpleTable) -> Self {
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

impl LayoutExperiment {
    /// An experiment from `value` (the TOML file as JSON).
    ///
    /// # Errors
    /// Names the table and key: unknown tables and keys, missing ones, values of the wrong kind or
    /// range.
    pub fn from_value(value: Value) -> Result<Self, ConfigError> {
        let mut tables = Tables::of(value, &["workload", "host", "layout", "device", "run"])?;
        let workload =
            tables.needed("workload", "kind = \"random-update\" and utilization = 0.85")?;
        let layout = tables.needed("layout", "kind = \"lfs\"")?;
        let device = tables.needed(
            "device",
            "kind = \"simple\", access_time = \"15 ms\" and bandwidth = \"5 MB/s\"",
        )?;
        let workload = WorkloadTable::read(workload)?;
        let layout = Layout::read(layout)?;
        let host = Host::read(tables.take("host"), layout.block_bytes())?;
        let device = DeviceChoice::read(device)?;
        if let DeviceChoice::Simple(simple) = &device
            && simple.capacity_bytes.is_some()
        {
            return Err(ConfigError(
                "[device]: capacity: the disk of a layout is as large as [workload] utilization \
                 asks; leave it out"
                    .to_owned(),
            ));
        }
        let run = read_table::<LayoutRun>("[run]", tables.take("run"))?;
        Ok(Self { workload, host, layout, device, run })
    }

    /// The experiment with every default filled in; reading it again gives the same experiment.
    #[must_use]
    pub fn resolved(&self) -> Value {
        json!({
            "workload": self.workload.resolved(),
            "host": self.host.resolved(),
            "layout": self.layout.resolved(),
            "device": self.device.resolved(),
            "run": LayoutRun::resolved(&self.run),
        })
    }

    /// Its tables, for the documentation and for editors.
    #[must_use]
    pub fn tables() -> Vec<TableOfKeys> {
        vec![
            WorkloadTable::table(),
            TableOfKeys::plain("host", Host::keys()),
            Layout::table(),
            device::table(),
            TableOfKeys::plain("run", LayoutRun::keys()),
        ]
    }
}
