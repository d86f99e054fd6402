//! What a trace says about itself, apart from its requests.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::Problem;

/// Version of the canonical schema; it changes when a column or its meaning does.
pub const SCHEMA_VERSION: u32 = 1;

/// More devices than any trace has; a corrupt device column must not fill the memory. Chosen by us.
const DEVICES_MAX: usize = 1 << 20;

/// A drive as the SRT header describes it. Units are in the names; a field the header lacks is
/// `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DriveDescription {
    /// The vendor's or driver's name of the drive, for instance `hp335h`.
    pub model: Option<String>,
    /// Cylinders.
    pub cylinders: Option<u32>,
    /// Tracks in a cylinder.
    pub heads: Option<u32>,
    /// Sectors on a track, each of `sector_bytes`.
    pub sectors_per_track: Option<u32>,
    /// Bytes in a sector of the drive: 256 on the HP-IB drives.
    pub sector_bytes: Option<u32>,
    /// Rotations a minute.
    pub rpm: Option<f64>,
    /// Controller overhead of a request.
    pub overhead_us: Option<f64>,
    /// Time to change heads.
    pub head_switch_us: Option<f64>,
    /// Skew between tracks.
    pub sector_skew: Option<u32>,
    /// When a read may begin, for instance `oncrossing`.
    pub read_characteristic: Option<String>,
    /// Seek curve: boundary in cylinders; then us and us per square root of a cylinder below it;
    /// then us and us per cylinder above it; then as the header has it.
    pub seek_parameters: Vec<f64>,
    /// Whether writes are reported done from the buffer.
    pub immediate_report: Option<bool>,
    /// Bus between host and drive.
    pub bus: Option<String>,
    /// Bus rate, 10^6 bytes a second.
    pub bus_mb_per_s: Option<f64>,
}

/// A partition (HP-UX: section) of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Its number on the device.
    pub number: u32,
    /// Mount point or purpose.
    pub name: String,
    /// First byte on the device.
    pub first_byte: u64,
    /// Length in bytes; 0 if unknown.
    pub bytes: u64,
    /// Records of the trace that name it.
    pub records: u64,
}

/// One device of a trace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceDescription {
    /// The number in the device column.
    pub id: u32,
    /// What the trace calls it.
    pub name: String,
    /// Its drive, where the trace says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive: Option<DriveDescription>,
    /// Its partitions, where the trace says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<Partition>,
}

/// What a trace says about itself. Complete only when the trace has been read to its end: devices
/// and warnings are found on the way.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceMetadata {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Format of origin; a conversion to Parquet keeps it.
    pub format: String,
    /// Compression the input came in.
    pub compression: Option<String>,
    /// Civil time of the trace's start in `start_wall_zone`, ns since 1970-01-01 00:00 of that
    /// zone.
    pub start_wall_ns: Option<i64>,
    /// `UTC`, an offset such as `-07:00`, or `local` where the trace does not say.
    pub start_wall_zone: Option<String>,
    /// What the format's own clock read, in ns, when the trace's time was zero.
    pub clock_start_ns: u64,
    /// Devices in the order of their number.
    pub devices: Vec<DeviceDescription>,
    /// Names of the processes in the client column, by their number, where the trace says.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub clients: BTreeMap<u32, String>,
    /// Other things the header says: host, kernel, options.
    pub header: BTreeMap<String, String>,
    /// Things that were changed or left out while reading, each with its count.
    pub warnings: BTreeMap<String, u64>,
    /// Bad records left out because the user asked for it.
    pub skipped_records: u64,
    /// What was wrong with the first of them.
    pub first_skipped: Option<String>,
}

impl TraceMetadata {
    /// The name of device `id`, or its number.
    #[must_use]
    pub fn device_name(&self, id: u32) -> String {
        self.devices
            .iter()
            .find(|device| device.id == id)
            .map_or_else(|| id.to_string(), |device| device.name.clone())
    }

    /// Counts one occurrence of something the user should know.
    pub(crate) fn warn(&mut self, text: &'static str) {
        self.warn_many(text, 1);
    }

    pub(crate) fn warn_many(&mut self, text: &'static str, count: u64) {
        if let Some(known) = self.warnings.get_mut(text) {
            // A file may say any number.
            *known = known.saturating_add(count);
        } else {
            self.warnings.insert(text.to_owned(), count);
        }
    }
}

/// Numbers the devices of a trace as they appear and writes them into its metadata.
#[derive(Debug, Default)]
pub(crate) struct DeviceTable {
    /// Key of the format (a device number, `major << 32 | minor`, ...) to the canonical number.
    by_key: BTreeMap<u64, u32>,
    by_name: BTreeMap<Box<[u8]>, u32>,
    last: Option<(u64, u32)>,
    last_name: Vec<u8>,
    last_name_id: u32,
}

impl DeviceTable {
    /// A device that the format numbers itself; its number is kept.
    #[inline]
    pub(crate) fn numbered(
        &mut self,
        id: u32,
        metadata: &mut TraceMetadata,
    ) -> Result<u32, Problem> {
        let key = u64::from(id);
        if self.last == Some((key, id)) {
            return Ok(id);
        }
        if self.by_key.contains_key(&key) {
            self.last = Some((key, id));
            return Ok(id);
        }
        self.add(key, id, id.to_string(), metadata)
    }

    /// A device with a key of more than 32 bits; numbered in the order of appearance.
    #[inline]
    pub(crate) fn keyed(
        &mut self,
        key: u64,
        metadata: &mut TraceMetadata,
        name: impl FnOnce() -> String,
    ) -> Result<u32, Problem> {
        if let Some((last, id)) = self.last
            && last == key
        {
            return Ok(id);
        }
        if let Some(&id) = self.by_key.get(&key) {
            self.last = Some((key, id));
            return Ok(id);
        }
        let id = self.by_key.len() as u32;
        self.add(key, id, name(), metadata)
    }

    /// A device known by some bytes; numbered in the order of appearance.
    #[inline]
    pub(crate) fn named(
        &mut self,
        name: &[u8],
        metadata: &mut TraceMetadata,
        display: impl FnOnce() -> String,
    ) -> Result<u32, Problem> {
        if !self.by_name.is_empty() && self.last_name == name {
            return Ok(self.last_name_id);
        }
        let id = if let Some(&id) = self.by_name.get(name) {
            id
        } else {
            let id = self.by_name.len() as u32;
            self.by_name.insert(name.into(), id);
            self.add(u64::from(id), id, display(), metadata)?
        };
        self.last_name.clear();
        self.last_name.extend_from_slice(name);
        self.last_name_id = id;
        Ok(id)
    }

    fn add(
        &mut self,
        key: u64,
        id: u32,
        name: String,
        metadata: &mut TraceMetadata,
    ) -> Result<u32, Problem> {
        if self.by_key.len() >= DEVICES_MAX {
            return Err(Problem::new(format!("more than {DEVICES_MAX} devices; not this format?")));
        }
        self.by_key.insert(key, id);
        self.last = Some((key, id));
        // A header may have described the device before its first request.
        let position = metadata.devices.partition_point(|device| device.id < id);
        if metadata.devices.get(position).is_none_or(|device| device.id != id) {
            let device = DeviceDescription { id, name, ..DeviceDescription::default() };
            metadata.devices.insert(position, device);
        }
        Ok(id)
    }
}
