//! The tables of an experiment, read strictly, every default visible in what it resolves to.

use agewell_config::{
    Form, Keyed, KindOfTable, TableOfKeys, choice, count, flag, keys, list, size, table_of, text,
    time, whole,
};
use agewell_core::SimDuration;
use agewell_sim::Experiment as Simulated;
use agewell_sim::config::LayoutExperiment;
use agewell_sim::config::{
    ConfigError, DeviceChoice, ExperimentKind, RequestExperiment, Table, Tables, device, read_table,
};
use agewell_sim::file_host::HostSetup;
use serde_json::{Map, Value, json};

use crate::benchmark::{FILE_SIZES_KIB, SEQUENTIAL_BYTES};
use crate::simulated_layout::LayoutSetup;
use crate::workload::smith_1996::Smith1996Parameters;

/// Any experiment that `agewell run` runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Experiment {
    /// Requests on a disk, or through a layout.
    Simulated(Simulated),
    /// A file system that ages, and is then measured.
    FileSystem(Box<AgingExperiment>),
}

impl Experiment {
    /// Reads an experiment (the TOML file as JSON).
    ///
    /// # Errors
    /// Names the table and key.
    pub fn from_value(value: Value) -> Result<Self, ConfigError> {
        match ExperimentKind::of(&value)? {
            ExperimentKind::FileSystem => {
                AgingExperiment::from_value(value).map(Box::new).map(Self::FileSystem)
            }
            ExperimentKind::Requests | ExperimentKind::Layout => {
                Simulated::from_value(value).map(Self::Simulated)
            }
        }
    }

    /// Which kind it is.
    #[must_use]
    pub fn kind(&self) -> ExperimentKind {
        match self {
            Self::Simulated(experiment) => experiment.kind(),
            Self::FileSystem(_) => ExperimentKind::FileSystem,
        }
    }

    /// The experiment with every default filled in; reading it again gives the same experiment.
    #[must_use]
    pub fn resolved(&self) -> Value {
        match self {
            Self::Simulated(experiment) => experiment.resolved(),
            Self::FileSystem(experiment) => experiment.resolved(),
        }
    }

    /// The tables of every kind of experiment.
    #[must_use]
    pub fn tables() -> [(ExperimentKind, Vec<TableOfKeys>); 3] {
        [
            (ExperimentKind::Requests, RequestExperiment::tables()),
            (ExperimentKind::Layout, LayoutExperiment::tables()),
            (ExperimentKind::FileSystem, AgingExperiment::tables()),
        ]
    }
}

/// What a file system is aged by.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkloadChoice {
    /// Nothing: it stays empty.
    None,
    /// A workload file, relative to the experiment's own folder.
    File(String),
    /// The generator of the workload of Smith & Seltzer 1996.
    Smith1996(Box<Smith1996Parameters>),
}

/// The sizes of the sequential benchmark as a key has them.
#[derive(Debug, Clone, Copy)]
struct SizesForm;

impl Form for SizesForm {
    type Value = Vec<u64>;

    fn read(&self, given: &Value) -> Result<Vec<u64>, String> {
        if given == "default" {
            return Ok(FILE_SIZES_KIB.iter().map(|kib| kib << 10).collect());
        }
        list(size()).read(given).ok().filter(|sizes| !sizes.contains(&0)).ok_or_else(|| {
            ": must be \"default\" or a list of sizes with units, such as [\"16 KiB\"]".to_owned()
        })
    }

    fn write(&self, value: &Vec<u64>) -> Value {
        list(size()).write(value)
    }

    fn describe(&self) -> String {
        "list of sizes, or `\"default\"`: 30 from 1 KiB to 32 MiB".to_owned()
    }

    fn schema(&self) -> Value {
        json!({"anyOf": [list(size()).schema(), {"const": "default"}]})
    }
}

keys! {
    /// What is measured on the aged file system beside its layout.
    pub struct Measure {
        /// sizes of file to be created, read and overwritten
        sequential: Vec<u64> = "sequential" SizesForm.or(Vec::new());
        /// bytes of all files of one size
        sequential_bytes: u64 = "sequential_size" size().or(SEQUENTIAL_BYTES);
        /// files of a directory
        files_per_directory: u32 = "files_per_directory" count().or(25);
        /// sync each file once it is written
        sync_each: bool = "sync_each" flag().or(false);
        /// read and overwrite the files modified so shortly before the end of the last day that was
        /// replayed: `"30 d"`
        hot: Option<SimDuration> = "hot" time().optional();
        /// read and write the device itself
        raw: bool = "raw" flag().or(false);
        /// of each; they differ in where the platter stands
        repetitions: u32 = "repetitions" count().to(1000).or(1);
    }
}

/// An experiment on a file system that ages.
#[derive(Debug, Clone, PartialEq)]
pub struct AgingExperiment {
    /// What it is aged by.
    pub workload: WorkloadChoice,
    /// The file system.
    pub layout: LayoutSetup,
    /// The disk that benchmarks run on.
    pub device: Option<DeviceChoice>,
    /// The host they run on.
    pub host: HostSetup,
    /// What is measured.
    pub measure: Measure,
    /// Seed of the workload and of benchmarks.
    pub seed: u64,
    /// Days of the workload that are replayed, if not all.
    pub days: Option<u64>,
}

keys! {
    /// Options of the run as a whole.
    struct AgingRun {
        /// of the workload and of benchmarks
        seed: u64 = "seed" whole().or(1);
        /// days of the workload that are replayed
        days: Option<u64> = "days" whole().from(1).or_else("all");
    }
}

impl AgingExperiment {
    /// Reads an experiment (the TOML file as JSON).
    ///
    /// # Errors
    /// Names the table and key.
    pub fn from_value(value: Value) -> Result<Self, ConfigError> {
        let known = ["workload", "layout", "device", "host", "measure", "run"];
        let mut tables = Tables::of(value, &known)?;
        let AgingRun { seed, days } = read_table::<AgingRun>("[run]", tables.take("run"))?;
        let layout = LayoutSetup::read(tables.take("layout"))?;
        let host = HostSetup::read(tables.take("host"), layout.block_bytes())?;
        let measure = read_measure(tables.take("measure"))?;
        let device = tables.take("device");
        let has_device = device.as_object().is_some_and(|table| !table.is_empty());
        let device = if has_device { Some(DeviceChoice::read(device)?) } else { None };
        if device.is_none() && measure.needs_device() {
            return Err(ConfigError(
                "[device]: 'model' is missing; [measure] runs benchmarks on it".to_owned(),
            ));
        }
        device.iter().try_for_each(DeviceChoice::check_takes_requests)?;
        let workload = WorkloadChoice::read(tables.needed("workload", "kind = \"none\"")?)?;
        Ok(Self { workload, layout, device, host, measure, seed, days })
    }

    /// The experiment with every default filled in.
    #[must_use]
    pub fn resolved(&self) -> Value {
        let mut tables = json!({
            "workload": self.workload.resolved(),
            "layout": self.layout.resolved(),
            "host": self.host.resolved(),
            "measure": Measure::resolved(&self.measure),
            "run": AgingRun::resolved(&AgingRun { seed: self.seed, days: self.days }),
        });
        if let Some(device) = &self.device {
            tables["device"] = device.resolved();
        }
        tables
    }

    /// Its tables, for the documentation and for editors.
    #[must_use]
    pub fn tables() -> Vec<TableOfKeys> {
        let kind = |name, keys| KindOfTable { name, keys };
        let workload = TableOfKeys {
            name: "workload",
            is_required: true,
            kinds: vec![
                kind("none", Vec::new()),
                kind("file", FileKeys::keys()),
                kind("smith-1996", Smith1996Keys::keys()),
            ],
            is_open: false,
        };
        vec![
            workload,
            LayoutSetup::table(),
            TableOfKeys::plain("host", HostSetup::keys()),
            TableOfKeys { is_required: false, ..device::table() },
            TableOfKeys::plain("measure", Measure::keys()),
            TableOfKeys::plain("run", AgingRun::keys()),
        ]
    }
}

keys! {
    /// A workload that there is.
    struct FileKeys {
        /// a workload that [`agewell workload`](aging-workloads.md) made
        path: String = "path" text().required();
    }
}

keys! {
    /// The generated ten months.
    struct Smith1996Keys {
        /// what differs from [the defaults](aging-workloads.md#ten-months-of-1996-smith-1996)
        parameters: Smith1996Parameters = "parameters"
            table_of::<Smith1996Parameters>().or(Smith1996Parameters::default())
            => "`{}`";
    }
}

impl WorkloadChoice {
    fn read(value: Value) -> Result<Self, ConfigError> {
        let mut table = Table::new("[workload]", value)?;
        let kinds = [("none", 0), ("file", 1), ("smith-1996", 2)];
        let workload = match table.key("kind", &choice(&kinds).required())? {
            0 => Self::None,
            1 => Self::File(FileKeys::read(&mut table)?.path),
            _ => {
                let smith = Smith1996Keys::read(&mut table)?.parameters;
                smith.check().map_err(|why| ConfigError(format!("[workload]: {why}")))?;
                Self::Smith1996(Box::new(smith))
            }
        };
        table.finish()?;
        Ok(workload)
    }

    fn resolved(&self) -> Value {
        let mut table = Map::new();
        match self {
            Self::None => {
                table.insert("kind".to_owned(), json!("none"));
            }
            Self::File(path) => {
                table.insert("kind".to_owned(), json!("file"));
                FileKeys::resolve(&FileKeys { path: path.clone() }, &mut table);
            }
            Self::Smith1996(smith) => {
                table.insert("kind".to_owned(), json!("smith-1996"));
                let parameters = (**smith).clone();
                Smith1996Keys::resolve(&Smith1996Keys { parameters }, &mut table);
            }
        }
        Value::Object(table)
    }
}

fn read_measure(value: Value) -> Result<Measure, ConfigError> {
    let mut table = Table::new("[measure]", value)?;
    let measure = Measure::read(&mut table)?;
    if measure.sequential.iter().any(|size| measure.sequential_bytes / size > 1_000_000) {
        return Err(table.invalid("sequential", "makes more than a million files"));
    }
    table.finish()?;
    Ok(measure)
}

impl Measure {
    fn needs_device(&self) -> bool {
        !self.sequential.is_empty() || self.hot.is_some() || self.raw
    }
}
