//! The `[device]` table: a drive of the catalogue, a disk without mechanics said in place, or the
//! whole table of a device file.

use agewell_config::{Form, Keyed, KindOfTable, TableOfKeys, keys, rate, sectors, text, time};
use agewell_core::SimDuration;
use agewell_disk::parameters::SimpleParameters;
use serde_json::{Value, json};

use super::{ConfigError, Table};

/// Which disk.
#[derive(Debug, Clone, PartialEq)]
pub enum DeviceChoice {
    /// A name of the catalogue, or the path of a device file.
    Model(String),
    /// Times said in place.
    Simple(SimpleTable),
    /// The table of a device file, in place.
    Inline(Value),
}

keys! {
    /// A drive of the catalogue.
    struct ModelTable {
        /// a name of `agewell devices`, or the path of a device file
        model: String = "model" text().required();
    }
}

keys! {
    /// The disk of Matthews 1999, ch. 5, said in place.
    pub struct SimpleTable {
        /// addressable size of a disk of block requests; the disk of a layout is as large as
        /// `utilization` asks
        capacity_bytes: Option<u64> = "capacity" sectors().optional();
        /// paid by every transfer
        access_time: Option<SimDuration> = "access_time" time().or_else("this, or the next two");
        /// of a layout: a transfer pays a seek and half a rotation; one more to the same segment
        /// half a rotation (1999, section 5.4.1)
        seek_time: Option<SimDuration> = "seek_time" time().optional();
        /// of a layout: one turn
        rotation_time: Option<SimDuration> = "rotation_time" time().optional();
        /// transfer rate
        bandwidth_bytes_per_s: u64 = "bandwidth" rate().required();
        /// of a layout: that of writes, if it is another
        write_bandwidth_bytes_per_s: Option<u64> = "write_bandwidth" rate().or_else("`bandwidth`");
    }
}

impl SimpleTable {
    /// As a disk of block requests: its size in bytes, and what a transfer takes.
    ///
    /// # Errors
    /// If the size is not said, or the table says more than a disk without mechanics has.
    pub fn as_device(&self) -> Result<(u64, SimpleParameters), ConfigError> {
        let bytes = self
            .capacity_bytes
            .ok_or_else(|| ConfigError("[device]: 'capacity' is missing".to_owned()))?;
        let (Some(access_time), None) = (self.access_time, self.write_bandwidth_bytes_per_s) else {
            return Err(ConfigError(
                "[device]: seek_time, rotation_time and write_bandwidth are those of the disk of a \
                 layout; say access_time and bandwidth, or take a model"
                    .to_owned(),
            ));
        };
        let bandwidth_bytes_per_s = self.bandwidth_bytes_per_s;
        Ok((bytes, SimpleParameters { access_time_ns: access_time.0, bandwidth_bytes_per_s }))
    }
}

impl DeviceChoice {
    /// Reads `[device]`.
    ///
    /// # Errors
    /// If a key is not known or its value does not do.
    pub fn read(value: Value) -> Result<Self, ConfigError> {
        let mut table = Table::new("[device]", value.clone())?;
        let kind = table.key("kind", &text().optional())?;
        match kind.as_deref() {
            None => {
                let model = ModelTable::read(&mut table)?.model;
                table.finish()?;
                Ok(Self::Model(model))
            }
            // A device file has its own checks; a simple disk said in place is shorter.
            Some("simple") if value.get("simple").is_none() => {
                if table.has("model") {
                    return Err(table.invalid("model", "does not go with kind = \"simple\""));
                }
                let simple = SimpleTable::read(&mut table)?;
                table.finish()?;
                let has_parts = (simple.seek_time.is_some(), simple.rotation_time.is_some());
                match (simple.access_time.is_some(), has_parts) {
                    (true, (false, false)) | (false, (true, true)) => Ok(Self::Simple(simple)),
                    (false, (false, false)) => {
                        Err(ConfigError("[device]: 'access_time' is missing".to_owned()))
                    }
                    _ => Err(ConfigError(
                        "[device]: access_time: say either access_time, or both seek_time and \
                         rotation_time"
                            .to_owned(),
                    )),
                }
            }
            Some(_) => Ok(Self::Inline(value)),
        }
    }

    /// Whether block requests can go to it.
    ///
    /// # Errors
    /// If a disk said in place has no size, or says more than a disk without mechanics has.
    pub fn check_takes_requests(&self) -> Result<(), ConfigError> {
        match self {
            Self::Simple(simple) => simple.as_device().map(drop),
            Self::Model(_) | Self::Inline(_) => Ok(()),
        }
    }

    /// The choice as it could be written in an experiment.
    #[must_use]
    pub fn resolved(&self) -> Value {
        match self {
            Self::Model(name) => json!({ "model": name }),
            Self::Simple(simple) => {
                let mut table = SimpleTable::resolved(simple);
                table["kind"] = json!("simple");
                table
            }
            Self::Inline(table) => table.clone(),
        }
    }

    /// The name in the catalogue, or the path, if it is one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Model(name) => Some(name),
            Self::Simple(_) | Self::Inline(_) => None,
        }
    }
}

/// The table, for the documentation and for editors: the reader of device files checks the tables
/// that are said in place.
#[must_use]
pub fn table() -> TableOfKeys {
    let mut kinds = vec![
        KindOfTable { name: "", keys: ModelTable::keys() },
        KindOfTable { name: "simple", keys: SimpleTable::keys() },
    ];
    let in_place = ["mechanical", "zoned", "flash"];
    kinds.extend(in_place.map(|name| KindOfTable { name, keys: Vec::new() }));
    TableOfKeys { name: "device", is_required: true, kinds, is_open: true }
}
