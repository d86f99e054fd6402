//! Device parameters and their TOML form.
//!
//! # Format
//!
//! One device a file. Times are milliseconds (`_ms`), addresses and lengths are in the device's own sectors
//! (`sector_bytes`: 256, 512 or 4096) unless the key says otherwise. Unknown keys are refused.
//!
//! ```toml
//! name = "hp-c2200a"                # what `model = "..."` finds
//! title = "HP C2200A, 335 MB, HP-IB"
//! kind = "mechanical"               # or "simple": see below
//! sector_bytes = 256
//! capacity_sectors = 1309896        # optional; refused if the geometry holds fewer
//! rpm = 4002                        # or rotation_period_ms, the same fact said exactly
//! queue_depth = 1                   # commands held at once and served nearest first; default 1: one after another
//!
//! [sources]                         # where each number comes from; a table's name covers all its keys
//! rpm = "Ruemmler & Wilkes 1991, table 3"
//! geometry = "SRT trace header"
//! "overhead.write_miss_after_read_ms" = "..."
//!
//! [geometry]
//! surfaces = 8
//! cylinders = 1449
//! track_order = "ascending"         # "serpentine" (each zone starts ascending) | "serpentine-by-cylinder"
//! sparing = "none"                  # see `Sparing`
//! spare_range_cylinders = 1         # only with sparing = "sectors-per-range"
//!
//! [[zone]]                          # in address order; cylinders that no zone holds are not addressable
//! first_cylinder = 0
//! last_cylinder = 1448
//! sectors_per_track = 113
//! first_sector_offset = 0           # where the zone's first track starts, in sectors of rotation
//! track_skew = 12                   # sectors
//! cylinder_skew = 12
//! reserved_sectors = 0              # at the zone's front, not addressable
//! spares = 0                        # sectors (or tracks) per unit of the sparing scheme
//! slips = []                        # skipped defective sectors (tracks, with sparing = "tracks"), from the zone's start
//! defects = []                      # [[defective, replacement], ...], from the zone's start
//!
//! [seek]                            # measured points, joined by straight lines ...
//! points_ms = [[1, 1.178], [2, 1.612]]
//! # ... or a formula: short distances 1, 2, ... as listed, then root up to the boundary, then line
//! # short_ms = [2.5]
//! # boundary_cylinders = 616
//! # root_ms = [3.45, 0.597]         # a + b sqrt(d), below the boundary
//! # line_ms = [10.84, 0.012]        # a + b d, from the boundary on
//! head_switch_ms = 1.0
//! write_settle_ms = 0.0             # added to a seek or head switch before a write; negative if the overhead
//!                                   # that goes with it was measured as part of a longer one
//!
//! [overhead]                        # all optional, default 0
//! per_request_ms = 0.0
//! read_hit_after_read_ms = 0.3      # and _after_write; likewise read_miss_, write_hit_, write_miss_
//! read_completion_ms = 0.2          # and write_completion_ms
//!
//! [bus]
//! read_rate = "1 MB/s"              # or read_sector_ms = 0.256: one sector over the bus, device to host
//! write_rate = "1.2 MB/s"           # or write_sector_ms
//! read_fence_bytes = 8192           # data gathered in the buffer before a read's bus transfer starts, in place of
//!                                   # buffer.read_water_mark; at most the request
//! read_on_crossing = false          # whether leaving a track opens the fence too
//! turnaround_ms = 0.0               # bus protocol and host before the data, after the fence or a write's command
//! write_reserve_sectors = 1         # sectors by which a write's bus transfer stays ahead of the medium
//!
//! [buffer]
//! segments = 1
//! segment_sectors = 64
//! read_ahead = "segment"            # "none" | "track" | "cylinder" | "segment" | "track-ahead"
//! ```
//!
//! A simple device has `kind = "simple"`, `capacity_sectors` and a table `[simple]` with `access_time_ms` and
//! `bandwidth` (`"5 MB/s"`).
//!
//! A drive that is written zone by zone has `kind = "zoned"`, `drive = "mechanical"` (or `"simple"`)
//! with all the tables of such a drive, and
//!
//! ```toml
//! [write_zones]
//! size = "256 MiB"                  # of a zone, or of a band that the drive manages
//! management = "host"               # the drive refuses what is out of order | "drive": it caches that
//! conventional_zones = 524          # with "host": zones at the front that are written anywhere
//! # cache = "20 GiB"                # with "drive": its cache on the medium, before sector 0
//! ```
//!
//! A flash drive has `kind = "flash"`, `capacity_sectors` (of 512 bytes) and
//!
//! ```toml
//! [flash]
//! channels = 8
//! dies_per_channel = 2
//! page = "32 KiB"                   # sensed or programmed at once: all planes of a die together
//! mapping = "4 KiB"                 # what the translation layer maps; by default a page
//! pages_per_block = 128             # erased together
//! over_provisioning = 0.07          # space beyond the capacity, as a share of it
//! placement = "write-order"         # a page goes to the next die | "static": to the die its address names |
//!                                   # "collision-free": what is read together is on different dies
//! read_ms = 0.036                   # to sense a page; likewise program_ms, and erase_ms for a block
//! program_ms = 0.185
//! erase_ms = 3.0
//! channel_rate = "800 MB/s"         # of one channel
//! link_rate = "3360 MB/s"           # to the host
//! request_overhead_ms = 0.01        # host and command, one request after another; default 0
//! command_ms = 0.02                 # until the first page access; requests issued together share it; default 0
//! write_command_ms = 0.004          # the same for what reads nothing; by default as command_ms
//! queue_depth = 64                  # requests worked on at once
//! write_buffer = "1 MiB"            # reported as written early; default 0: when they are programmed
//! ```
//!
//! Source of the vocabulary: the parameters of DiskSim 4.0 (`disk.modspec`, `layout_g1_zone.modspec`,
//! `mech_g1.modspec`) and of Ruemmler & Wilkes 1994.

mod buffer;
mod flash;
pub(crate) mod geometry;
mod mechanical;
mod reader;
mod sources;
mod writer;
mod zoned;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agewell_core::{SECTOR_BYTES, parse_bytes_per_second};
use toml::Table;

use crate::DeviceError;

pub use buffer::{BufferParameters, FastWrite, KeepRequested, ReadAhead};
pub use flash::{FlashParameters, Placement};
pub use geometry::{GeometryParameters, Sparing, TrackOrder, ZoneParameters};
pub use mechanical::{
    BusParameters, ExtraDisconnect, MechanicalParameters, OverheadParameters, SeekCurve,
};
pub(crate) use reader::TableReader;
pub use sources::missing_sources;
pub use zoned::{Management, ZonedDrive, ZonedParameters};

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

/// What the data lie on, for estimates that know neither zones nor dies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Medium<'a> {
    /// As good as access time and bandwidth.
    Simple(SimpleParameters),
    /// Arm, platter, buffer and bus.
    Mechanical(&'a MechanicalParameters),
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

/// Access time and bandwidth (Matthews 1999, ch. 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimpleParameters {
    /// Paid by every transfer, ns.
    pub access_time_ns: u64,
    /// Bytes per second.
    pub bandwidth_bytes_per_s: u64,
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
        let table: Table = text.parse().map_err(|error: toml::de::Error| DeviceError::Syntax {
            file: file.to_owned(),
            message: one_line(&error.to_string()),
        })?;
        Self::from_table(file, &table)
    }

    /// Reads `table`, calling it `file` in messages.
    ///
    /// # Errors
    /// As [`DeviceParameters::load`], without reading.
    pub fn from_table(file: &str, table: &Table) -> Result<Self, DeviceError> {
        let mut reader = TableReader::new(file, "device", table);
        let name = reader.text("name")?.to_owned();
        let title = reader.optional_text("title")?.unwrap_or(&name).to_owned();
        let sources = sources::read(&mut reader)?;
        let (capacity_sectors, kind) = match reader.text("kind")? {
            "simple" => {
                let capacity = reader.whole("capacity_sectors", 1, 1 << 50)?;
                (capacity, DeviceKind::Simple(read_simple(&mut reader)?))
            }
            "mechanical" => {
                let mechanical = MechanicalParameters::read(&mut reader)?;
                let capacity =
                    mechanical.capacity * u64::from(mechanical.sector_bytes) / SECTOR_BYTES;
                (capacity, DeviceKind::Mechanical(Box::new(mechanical)))
            }
            "zoned" => {
                let zoned = ZonedParameters::read(&mut reader)?;
                (zoned.capacity_sectors(), DeviceKind::Zoned(Box::new(zoned)))
            }
            "flash" => {
                let flash = FlashParameters::read(&mut reader)?;
                (flash.capacity_sectors, DeviceKind::Flash(flash))
            }
            other => {
                let known = "'simple', 'mechanical', 'zoned' or 'flash'";
                return Err(reader.error("kind", format!("is '{other}'; it must be {known}")));
            }
        };
        reader.finish()?;
        Ok(Self { name, title, capacity_sectors, kind, sources })
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

fn read_simple(reader: &mut TableReader<'_>) -> Result<SimpleParameters, DeviceError> {
    let mut simple = reader.table("simple")?;
    let access_time_ns = (simple.number("access_time_ms", 0.0, 1e6)? * 1e6).round() as u64;
    let bandwidth = simple.text("bandwidth")?;
    let bandwidth_bytes_per_s =
        parse_bytes_per_second(bandwidth).map_err(|error| simple.error("bandwidth", error))?;
    if bandwidth_bytes_per_s == 0 {
        return Err(simple.error("bandwidth", "is zero: nothing would ever finish"));
    }
    simple.finish()?;
    Ok(SimpleParameters { access_time_ns, bandwidth_bytes_per_s })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
