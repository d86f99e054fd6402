//! An experiment of file requests on a layout of blocks, read strictly, every default visible in
//! [`LayoutExperiment::resolved`].

use agewell_config::{ConfigError, Form, Keyed, TableOfKeys, flag, keys, read_table, text, whole};
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
    /// Policies that are brought along.
    pub policies: PolicyNames,
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

keys! {
    /// Policies that are functions of whoever asks for the run: their names, which a result keeps. Such
    /// a run is made again only if they are given again.
    #[derive(Default)]
    pub struct PolicyNames {
        /// of a log: who chooses which segment is collected, among those that `victim` would choose among
        victim: Option<String> = "victim" text().optional();
        /// of a log: who chooses which of its `logs` open logs a block goes to
        placement: Option<String> = "placement" text().optional();
        /// of a write-anywhere layout: who chooses which free place is written next
        allocator: Option<String> = "allocator" text().optional();
    }
}

impl LayoutExperiment {
    /// An experiment from `value` (the TOML file as JSON).
    ///
    /// # Errors
    /// Names the table and key: unknown tables and keys, missing ones, values of the wrong kind or
    /// range.
    pub fn from_value(value: Value) -> Result<Self, ConfigError> {
        let names = ["workload", "host", "layout", "device", "run", "policies"];
        let mut tables = Tables::of(value, &names)?;
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
        let policies = read_table::<PolicyNames>("[policies]", tables.take("policies"))?;
        Ok(Self { workload, host, layout, device, run, policies })
    }

    /// The experiment with every default filled in; reading it again gives the same experiment.
    #[must_use]
    pub fn resolved(&self) -> Value {
        let mut tables = json!({
            "workload": self.workload.resolved(),
            "host": self.host.resolved(),
            "layout": self.layout.resolved(),
            "device": self.device.resolved(),
            "run": LayoutRun::resolved(&self.run),
        });
        // Most runs have none, and are what they were before there could be any.
        if self.policies != PolicyNames::default() {
            tables["policies"] = PolicyNames::resolved(&self.policies);
        }
        tables
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
            TableOfKeys::plain("policies", PolicyNames::keys()),
        ]
    }
}
