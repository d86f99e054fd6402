//! Device parameters and their TOML form.
//!
//! One device a file. Each key is declared beside the code that uses it, in `keys!`: its purpose,
//! its values, its default. The reader, its hints and the tables of `docs/reference/devices.md`
//! ([`DeviceParameters::tables`]) follow from that. Times are milliseconds (`_ms`), addresses and
//! lengths are in the device's own sectors (`sector_bytes`: 256, 512 or 4096) unless the key says
//! otherwise. Unknown keys are refused.
//!
//! Source of the vocabulary: the parameters of DiskSim 4.0 (`disk.modspec`, `layout_g1_zone.modspec`,
//! `mech_g1.modspec`) and of Ruemmler & Wilkes 1994.

mod buffer;
mod capacity;
mod flash;
pub(crate) mod geometry;
mod mechanical;
mod medium;
mod names;
mod page_times;
mod simple;
mod sources;
mod uncertainty;
mod writer;
mod zoned;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agewell_config::{
    ConfigError, Form, Key, Keyed, KindOfTable, Table, TableOfKeys, choice, keys, text,
};
use agewell_core::SECTOR_BYTES;
use serde_json::Value;

use crate::DeviceError;
use buffer::BufferTable;
use capacity::CapacityTable;
use flash::FlashTable;
use geometry::GeometryTable;
use mechanical::{BusRates, BusTable, DriveTable, OverheadTable, SeekTable};
use zoned::{WriteZonesTable, ZonedTable};

pub use buffer::{BufferParameters, FastWrite, KeepRequested, ReadAhead};
pub use flash::{FlashParameters, Placement};
pub use geometry::{GROUP_CYLINDERS, GeometryParameters, Sparing, TrackOrder, ZoneParameters};
pub use mechanical::{
    BusParameters, ExtraDisconnect, MechanicalParameters, OverheadParameters, SeekCurve,
};
pub use medium::Medium;
pub use page_times::PageTimes;
pub use simple::SimpleParameters;
pub use sources::missing_sources;
pub use uncertainty::Uncertainty;
pub use zoned::{Management, ZonedDrive, ZonedParameters};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Simple,
    Mechanical,
    Zoned,
    Flash,
}

const KINDS: &[(&str, Kind)] = &[
    ("simple", Kind::Simple),
    ("mechanical", Kind::Mechanical),
    ("zoned", Kind::Zoned),
    ("flash", Kind::Flash),
];

keys! {
    /// What every device file says.
    struct FileTable {
        /// what `model = "..."` finds: lower case, digits and hyphens
        name: String = "name" text().required();
        /// what people call it
        title: Option<String> = "title" text().or_else("`name`");
    }
}

/// Everything a device file says.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceParameters {
    /// The catalogue's name: lower case, digits and hyphens.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// Addressable size, in sectors of 512 bytes.
    pub capacity_sectors: u64,
    /// The model and its numbers.
    pub kind: DeviceKind,
    /// Where each number comes from, by key path (`rpm`, `overhead.read_miss_after_read_ms`, `zone`).
    pub sources: BTreeMap<String, String>,
    /// How far it is from the disk that it was measured on, if it was.
    pub uncertainty: Option<Uncertainty>,
}

/// Which model a device file describes.
#[derive(Debug, Clone, PartialEq)]
pub enum DeviceKind {
    /// Access time and bandwidth (Matthews 1999, ch. 5).
    Simple(SimpleParameters),
    /// Arm, platter, buffer and bus.
    Mechanical(Box<MechanicalParameters>),
    /// A drive that is written zone by zone.
    Zoned(Box<ZonedParameters>),
    /// Dies behind channels and a translation layer.
    Flash(FlashParameters),
}

impl DeviceKind {
    /// What the data lie on: the drive below zones; access time and bandwidth for flash.
    #[must_use]
    pub fn medium(&self) -> Medium<'_> {
        match self {
            DeviceKind::Simple(simple) => Medium::Simple(*simple),
            DeviceKind::Mechanical(mechanical) => Medium::Mechanical(mechanical),
            DeviceKind::Zoned(zoned) => zoned.medium(),
            DeviceKind::Flash(flash) => Medium::Simple(flash.as_simple()),
        }
    }
}

impl DeviceParameters {
    /// Reads the device file at `path`.
    ///
    /// # Errors
    /// If the file cannot be read, is not TOML, has a wrong, missing or unknown key, or contradicts itself.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, DeviceError> {
        let path = path.as_ref();
        let text = agewell_core::read_text(path)
            .map_err(|source| DeviceError::Read { path: path.to_owned(), source })?;
        Self::from_toml(&path.display().to_string(), &text)
    }

    /// Parses `text`, calling it `file` in messages.
    ///
    /// # Errors
    /// As [`DeviceParameters::load`], without reading.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, DeviceError> {
        let value = toml::from_str(text).map_err(|error| DeviceError::Syntax {
            file: file.to_owned(),
            message: one_line(&error.to_string()),
        })?;
        Self::from_value(file, value)
    }

    /// Reads `value`, a device file as JSON, calling it `file` in messages.
    ///
    /// # Errors
    /// As [`DeviceParameters::load`], without reading.
    pub fn from_value(file: &str, value: Value) -> Result<Self, DeviceError> {
        Self::read(value)
            .map_err(|why| DeviceError::Key { file: file.to_owned(), message: why.to_string() })
    }

    fn read(value: Value) -> Result<Self, ConfigError> {
        let mut table = Table::new("device", value)?;
        let FileTable { name, title } = FileTable::read(&mut table)?;
        let sources = sources::read(&mut table)?;
        let (capacity_sectors, kind) = match table.key("kind", &choice(KINDS).required())? {
            Kind::Simple => {
                let capacity = CapacityTable::read(&mut table)?.capacity_sectors;
                (capacity, DeviceKind::Simple(table.whole_table::<SimpleParameters>("simple")?))
            }
            Kind::Mechanical => {
                let mechanical = MechanicalParameters::read(&mut table)?;
                let capacity =
                    mechanical.capacity * u64::from(mechanical.sector_bytes) / SECTOR_BYTES;
                (capacity, DeviceKind::Mechanical(Box::new(mechanical)))
            }
            Kind::Zoned => {
                let zoned = ZonedParameters::read(&mut table)?;
                (zoned.capacity_sectors(), DeviceKind::Zoned(Box::new(zoned)))
            }
            Kind::Flash => {
                let capacity = CapacityTable::read(&mut table)?.capacity_sectors;
                (capacity, DeviceKind::Flash(FlashParameters::read(&mut table, capacity)?))
            }
        };
        let uncertainty = if table.has("uncertainty") {
            Some(table.whole_table::<Uncertainty>("uncertainty")?)
        } else {
            None
        };
        table.finish()?;
        Ok(Self {
            title: title.unwrap_or_else(|| name.clone()),
            name,
            capacity_sectors,
            kind,
            sources,
            uncertainty,
        })
    }

    /// The tables of a device file, for the documentation.
    #[must_use]
    pub fn tables() -> Vec<TableOfKeys> {
        let kind = |name, keys: Vec<Key>| KindOfTable { name, keys };
        let file = |keys: Vec<Key>| [FileTable::keys(), keys].concat();
        let zoned = [ZonedTable::keys(), CapacityTable::keys()].concat();
        let kinds = vec![
            kind("simple", file(CapacityTable::keys())),
            kind("mechanical", file(DriveTable::keys())),
            kind("zoned", file(zoned)),
            kind("flash", file(CapacityTable::keys())),
        ];
        vec![
            TableOfKeys { name: "device", is_required: true, kinds, is_open: true },
            TableOfKeys::plain("simple", SimpleParameters::keys()),
            TableOfKeys::plain("geometry", GeometryTable::keys()),
            TableOfKeys::plain("zone", ZoneParameters::keys()),
            TableOfKeys::plain("seek", SeekTable::keys()),
            TableOfKeys::plain("overhead", OverheadTable::keys()),
            TableOfKeys::plain("overhead.extra_write_disconnect", ExtraDisconnect::keys()),
            TableOfKeys::plain("bus", [BusRates::keys(), BusTable::keys()].concat()),
            TableOfKeys::plain("buffer", BufferTable::keys()),
            TableOfKeys::plain("write_zones", WriteZonesTable::keys()),
            TableOfKeys::plain("flash", FlashTable::keys()),
            TableOfKeys::plain("uncertainty", Uncertainty::keys()),
        ]
    }

    /// The device called `name_or_path`: a path if it ends in `.toml` or holds a separator, else `NAME.toml` in
    /// `catalogue`.
    ///
    /// # Errors
    /// If there is no such device, and as [`DeviceParameters::load`].
    pub fn find(name_or_path: &str, catalogue: &Path) -> Result<Self, DeviceError> {
        if Path::new(name_or_path).extension().is_some_and(|extension| extension == "toml")
            || name_or_path.contains(['/', '\\'])
        {
            return Self::load(name_or_path);
        }
        let path = catalogue.join(format!("{name_or_path}.toml"));
        if path.is_file() {
            return Self::load(path);
        }
        let names = catalogue_names(catalogue)?;
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let hint = match agewell_core::nearest(name_or_path, &known) {
            Some(near) => format!("did you mean '{near}'?"),
            None if known.is_empty() => "the catalogue is empty".to_owned(),
            None => format!("known devices are {}", known.join(", ")),
        };
        Err(DeviceError::Unknown {
            name: name_or_path.to_owned(),
            catalogue: catalogue.display().to_string(),
            hint,
        })
    }

    /// The device file that [`DeviceParameters::from_toml`] reads back as this value.
    pub fn to_toml(&self) -> String {
        writer::write(self)
    }
}

/// The names of the devices in `catalogue`, sorted.
///
/// # Errors
/// If the directory cannot be read.
pub fn catalogue_names(catalogue: &Path) -> Result<Vec<String>, DeviceError> {
    let failed = |source| DeviceError::Read { path: PathBuf::from(catalogue), source };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(catalogue).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
