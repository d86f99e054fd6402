//! The tables of an experiment, read strictly, every default visible in what it resolves to.

use agewell_core::{SimDuration, parse_bytes, unknown_key_message};
use agewell_sim::block_host::BlockExperiment;
use agewell_sim::config::{ConfigError, DeviceChoice, Table};
use agewell_sim::file_host::HostSetup;
use serde_json::{Map, Value, json};

use crate::benchmark::{FILE_SIZES_KIB, SEQUENTIAL_BYTES};
use crate::simulated_layout::LayoutSetup;
use crate::workload::smith_1996::Smith1996Parameters;

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

/// What is measured on the aged file system beside its layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// Sizes of file of the sequential benchmark, bytes.
    pub sequential: Vec<u64>,
    /// Bytes written and read for each size.
    pub sequential_bytes: u64,
    /// Files of a directory.
    pub files_per_directory: u32,
    /// Whether each file is synced once written.
    pub sync_each: bool,
    /// Files modified so shortly before the end are read and overwritten.
    pub hot: Option<SimDuration>,
    /// Whether the device itself is read and written.
    pub raw: bool,
    /// Times that each benchmark is run.
    pub repetitions: u32,
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

impl AgingExperiment {
    /// Whether `value` describes an experiment of this kind.
    #[must_use]
    pub fn is_asked_for(value: &Value) -> bool {
        let kind = |place: &str| value.pointer(place).and_then(Value::as_str).unwrap_or_default();
        // A layout of blocks may be one of these file systems, too.
        let is_of_blocks = BlockExperiment::is_workload(kind("/workload/kind"));
        value.get("measure").is_some()
            || LayoutSetup::is_only_here(kind("/layout/kind")) && !is_of_blocks
    }

    /// Reads an experiment (the TOML file as JSON).
    ///
    /// # Errors
    /// Names the table and key.
    pub fn from_value(value: Value) -> Result<Self, ConfigError> {
        let Value::Object(mut tables) = value else {
            return Err(ConfigError("an experiment is a set of tables".to_owned()));
        };
        let mut take =
            |name: &str| tables.remove(name).unwrap_or_else(|| Value::Object(Map::new()));
        let (run, layout, host) = (take("run"), take("layout"), take("host"));
        let (workload, measure, device) = (take("workload"), take("measure"), take("device"));
        if let Some(stranger) = tables.keys().next() {
            let known = ["workload", "layout", "device", "host", "measure", "run"];
            return Err(ConfigError(unknown_key_message("experiment", stranger, &known)));
        }
        let (seed, days) = read_run(run)?;
        let layout = LayoutSetup::read(layout)?;
        let host = HostSetup::read(host, layout.block_bytes())?;
        let measure = Measure::read(measure)?;
        let has_device = device.as_object().is_some_and(|table| !table.is_empty());
        let device = if has_device { Some(DeviceChoice::read(device)?) } else { None };
        if device.is_none() && measure.needs_device() {
            return Err(ConfigError(
                "[device]: 'model' is missing; [measure] runs benchmarks on it".to_owned(),
            ));
        }
        let workload = read_workload(workload)?;
        Ok(Self { workload, layout, device, host, measure, seed, days })
    }

    /// The experiment with every default filled in.
    #[must_use]
    pub fn resolved(&self) -> Value {
        let mut tables = json!({
            "workload": match &self.workload {
                WorkloadChoice::None => json!({"kind": "none"}),
                WorkloadChoice::File(path) => json!({"kind": "file", "path": path}),
                WorkloadChoice::Smith1996(smith) => json!({"kind": "smith-1996", "parameters": smith}),
            },
            "layout": self.layout.resolved(),
            "host": self.host.resolved(),
            "measure": self.measure.resolved(),
            "run": {"seed": self.seed},
        });
        if let Some(device) = &self.device {
            tables["device"] = device.resolved();
        }
        if let Some(days) = self.days {
            tables["run"]["days"] = json!(days);
        }
        tables
    }
}

fn read_run(value: Value) -> Result<(u64, Option<u64>), ConfigError> {
    let mut table = Table::new("[run]", value)?;
    let seed = table.whole("seed")?.unwrap_or(1);
    let days = table.whole("days")?;
    if days == Some(0) {
        return Err(table.invalid("days", "must be at least 1"));
    }
    table.finish()?;
    Ok((seed, days))
}

fn read_workload(value: Value) -> Result<WorkloadChoice, ConfigError> {
    let mut table = Table::new("[workload]", value)?;
    let kinds = [("none", 0), ("file", 1), ("smith-1996", 2)];
    match table.choice("kind", &kinds, Some(0))? {
        0 => {
            table.finish()?;
            Ok(WorkloadChoice::None)
        }
        1 => {
            let path = table.string("path")?.ok_or_else(|| table.missing("path"))?;
            table.finish()?;
            Ok(WorkloadChoice::File(path))
        }
        _ => {
            let parameters = table.value("parameters").unwrap_or_else(|| Value::Object(Map::new()));
            let smith: Smith1996Parameters = serde_json::from_value(parameters)
                .map_err(|why| table.invalid("parameters", why))?;
            table.finish()?;
            smith.check().map_err(|why| ConfigError(format!("[workload]: {why}")))?;
            Ok(WorkloadChoice::Smith1996(Box::new(smith)))
        }
    }
}

impl Measure {
    fn read(value: Value) -> Result<Self, ConfigError> {
        let mut table = Table::new("[measure]", value)?;
        let sequential = match table.value("sequential") {
            None => Vec::new(),
            Some(Value::String(text)) if text == "default" => {
                FILE_SIZES_KIB.iter().map(|kib| kib << 10).collect()
            }
            Some(Value::Array(sizes)) => sizes
                .iter()
                .map(|size| {
                    let text = size.as_str().unwrap_or_default();
                    parse_bytes(text).ok().filter(|bytes| *bytes > 0)
                })
                .collect::<Option<Vec<u64>>>()
                .ok_or_else(|| {
                    table.invalid("sequential", "must be sizes with units, such as [\"16 KiB\"]")
                })?,
            Some(_) => {
                let why = "must be \"default\" or a list of sizes, such as [\"16 KiB\"]";
                return Err(table.invalid("sequential", why));
            }
        };
        let sequential_bytes = table.bytes("sequential_size")?.unwrap_or(SEQUENTIAL_BYTES);
        let files_per_directory = table.whole("files_per_directory")?.unwrap_or(25);
        let repetitions = table.whole("repetitions")?.unwrap_or(1);
        let measure = Self {
            sequential,
            sequential_bytes,
            files_per_directory: u32::try_from(files_per_directory).unwrap_or(u32::MAX),
            sync_each: table.boolean("sync_each")?.unwrap_or(false),
            hot: table.duration("hot")?,
            raw: table.boolean("raw")?.unwrap_or(false),
            repetitions: u32::try_from(repetitions).unwrap_or(u32::MAX),
        };
        if files_per_directory == 0 {
            return Err(table.invalid("files_per_directory", "must be at least 1"));
        }
        if !(1..=1000).contains(&repetitions) {
            return Err(table.invalid("repetitions", "must be from 1 to 1000"));
        }
        if measure.sequential.iter().any(|size| sequential_bytes / size > 1_000_000) {
            return Err(table.invalid("sequential", "makes more than a million files"));
        }
        table.finish()?;
        Ok(measure)
    }

    fn needs_device(&self) -> bool {
        !self.sequential.is_empty() || self.hot.is_some() || self.raw
    }

    fn resolved(&self) -> Value {
        let sizes: Vec<String> = self.sequential.iter().map(|size| format!("{size} B")).collect();
        let mut table = json!({
            "sequential": sizes,
            "sequential_size": format!("{} B", self.sequential_bytes),
            "files_per_directory": self.files_per_directory,
            "sync_each": self.sync_each,
            "raw": self.raw,
            "repetitions": self.repetitions,
        });
        if let Some(hot) = self.hot {
            table["hot"] = json!(format!("{} ns", hot.0));
        }
        table
    }
}
