//! An experiment of file requests on a layout of blocks, read strictly, every default visible in
//! [`LayoutExperiment::resolved`].

use agewell_config::{ConfigError, Form, Keyed, TableOfKeys, flag, keys, read_table, whole};
use serde_json::{Value, json};

use super::device::{self, DeviceChoice};
use super::host::Host;
use super::layout::Layout;
use super::tables::Tables;
use super::workload::WorkloadTable;

/// File requests through a host into a layout of blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutExperiment {
    /// The requests, and how full the disk is.
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
