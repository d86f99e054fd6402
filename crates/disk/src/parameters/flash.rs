//! Parameters of a flash drive: the table `[flash]` of a device file.

use agewell_core::{SECTOR_BYTES, parse_bytes, parse_bytes_per_second};

use super::{SimpleParameters, TableReader};
use crate::DeviceError;

/// Which die a page goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// To the die after that of the page written before it: pages written one after another are
    /// read in parallel, whatever their addresses (Jun et al., FAST 2024: what drives do).
    WriteOrder,
    /// To the die that its address names, page by page: neighbouring addresses are always on
    /// neighbouring dies, in whatever order they were written.
    Static,
    /// As in write order, but whatever is read together is found on different dies, as far as there
    /// are dies: what hints from the file system could reach at best (Jun et al., FAST 2024), and
    /// the way to take die collisions out of a figure.
    CollisionFree,
}

impl Placement {
    /// Every choice with its name in device files.
    pub const ALL: [(Placement, &'static str); 3] = [
        (Placement::WriteOrder, "write-order"),
        (Placement::Static, "static"),
        (Placement::CollisionFree, "collision-free"),
    ];

    /// The name in device files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Placement::WriteOrder => "write-order",
            Placement::Static => "static",
            Placement::CollisionFree => "collision-free",
        }
    }
}

/// Channels, dies and what they take. A page is what a die senses or programs at once, all its
/// planes together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlashParameters {
    /// Addressable size, in sectors of 512 bytes.
    pub capacity_sectors: u64,
    /// Buses between controller and dies.
    pub channels: u32,
    /// Dies on each of them.
    pub dies_per_channel: u32,
    /// Size of a page.
    pub page_bytes: u64,
    /// What the translation layer maps, and therefore writes without reading first; divides a page.
    pub mapping_bytes: u64,
    /// Pages that are erased together.
    pub pages_per_block: u32,
    /// Space beyond the capacity, as a share of the capacity.
    pub over_provisioning: f64,
    /// Which die a page goes to.
    pub placement: Placement,
    /// Time to sense a page, ns.
    pub read_ns: u64,
    /// Time to program a page, ns.
    pub program_ns: u64,
    /// Time to erase a block, ns.
    pub erase_ns: u64,
    /// Of one channel.
    pub channel_bytes_per_s: u64,
    /// Of the link to the host.
    pub link_bytes_per_s: u64,
    /// Host, kernel and command handling, one request after another, ns.
    pub request_overhead_ns: u64,
    /// From a command's arrival to its first page access; requests issued together overlap it, ns.
    pub command_ns: u64,
    /// The same for a command that reads nothing, ns.
    pub write_command_ns: u64,
    /// Requests that the drive works on at once.
    pub queue_depth: u32,
    /// Data reported as written before they are programmed; 0 for a drive that reports when they
    /// are.
    pub write_buffer_bytes: u64,
}

/// Units and pages are counted in 32 bits; the translation layer keeps two numbers for itself.
const UNITS_MAX: u64 = u32::MAX as u64 - 2;

impl FlashParameters {
    /// Reads the capacity and the table `[flash]`.
    pub(super) fn read(reader: &mut TableReader<'_>) -> Result<Self, DeviceError> {
        let capacity_sectors = reader.whole("capacity_sectors", 1, 1 << 50)?;
        let mut table = reader.table("flash")?;
        let command_ns = table.time_ns("command_ms", 0)?;
        let parameters = Self {
            capacity_sectors,
            channels: table.whole("channels", 1, 256)? as u32,
            dies_per_channel: table.whole("dies_per_channel", 1, 256)? as u32,
            page_bytes: size(&mut table, "page")?,
            mapping_bytes: if table.has("mapping") {
                size(&mut table, "mapping")?
            } else {
                size(&mut table, "page")?
            },
            pages_per_block: table.whole("pages_per_block", 2, 1 << 16)? as u32,
            over_provisioning: table.number("over_provisioning", 0.001, 100.0)?,
            placement: placement(&mut table)?,
            read_ns: time_ns(&mut table, "read_ms")?,
            program_ns: time_ns(&mut table, "program_ms")?,
            erase_ns: time_ns(&mut table, "erase_ms")?,
            channel_bytes_per_s: rate(&mut table, "channel_rate")?,
            link_bytes_per_s: rate(&mut table, "link_rate")?,
            request_overhead_ns: table.time_ns("request_overhead_ms", 0)?,
            command_ns,
            write_command_ns: table.time_ns("write_command_ms", command_ns)?,
            queue_depth: table.whole("queue_depth", 1, 65_536)? as u32,
            write_buffer_bytes: match table.optional_text("write_buffer")? {
                None => 0,
                Some(text) => {
                    parse_bytes(text).map_err(|error| table.error("write_buffer", error))?
                }
            },
        };
        parameters.check(&table)?;
        table.finish()?;
        Ok(parameters)
    }

    fn check(&self, table: &TableReader<'_>) -> Result<(), DeviceError> {
        if !self.mapping_bytes.is_multiple_of(SECTOR_BYTES) {
            return Err(table.inconsistent(
                "mapping",
                format!(
                    "is {} bytes, not a number of {SECTOR_BYTES}-byte sectors",
                    self.mapping_bytes
                ),
            ));
        }
        if !self.page_bytes.is_multiple_of(self.mapping_bytes) {
            return Err(table.inconsistent(
                "mapping",
                format!(
                    "is {} bytes, which does not divide a page of {}",
                    self.mapping_bytes, self.page_bytes
                ),
            ));
        }
        if self.page_bytes / self.mapping_bytes > 1024 {
            return Err(table.inconsistent("page", "holds more than 1024 mapping units"));
        }
        if self.write_buffer_bytes > 1 << 36 {
            return Err(table.inconsistent("write_buffer", "is more than 64 GiB"));
        }
        if self.write_buffer_bytes > 0 && self.write_buffer_bytes < self.page_bytes {
            return Err(table.inconsistent(
                "write_buffer",
                format!(
                    "is {} bytes, less than a page of {}; 0 is a drive without one",
                    self.write_buffer_bytes, self.page_bytes
                ),
            ));
        }
        let physical = self.physical_units();
        if physical > UNITS_MAX {
            return Err(table.inconsistent(
                "mapping",
                format!("makes {physical} units, more than {UNITS_MAX}: take larger ones"),
            ));
        }
        let spare = self.data_blocks_per_die() * self.units_per_block() - self.units_per_die();
        if spare < self.units_per_block() {
            return Err(table.inconsistent(
                "over_provisioning",
                format!(
                    "leaves a die {spare} units of {} to spare; it needs an erase block of {}",
                    self.units_per_die(),
                    self.units_per_block()
                ),
            ));
        }
        Ok(())
    }

    /// Dies in all.
    #[must_use]
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Mapping units of a page.
    #[must_use]
    pub fn units_per_page(&self) -> u64 {
        self.page_bytes / self.mapping_bytes
    }

    /// Mapping units of an erase block.
    #[must_use]
    pub fn units_per_block(&self) -> u64 {
        self.units_per_page() * u64::from(self.pages_per_block)
    }

    /// Mapping units that are addressed, the last perhaps in part.
    #[must_use]
    pub fn logical_units(&self) -> u64 {
        (self.capacity_sectors * SECTOR_BYTES).div_ceil(self.mapping_bytes)
    }

    /// A die's share of the addressed units, in whole pages.
    #[must_use]
    pub fn units_per_die(&self) -> u64 {
        let pages = self.logical_units().div_ceil(self.units_per_page());
        pages.div_ceil(u64::from(self.dies())) * self.units_per_page()
    }

    /// Erase blocks of a die that hold data and its spare space, without the two that collection
    /// works with.
    #[must_use]
    pub fn data_blocks_per_die(&self) -> u64 {
        let units = self.units_per_die() as f64 * (1.0 + self.over_provisioning);
        (units.ceil() as u64).div_ceil(self.units_per_block())
    }

    fn physical_units(&self) -> u64 {
        (self.data_blocks_per_die() + 2)
            .saturating_mul(self.units_per_block())
            .saturating_mul(u64::from(self.dies()))
    }

    /// Rate of long reads without collisions: what link, channels and dies all keep up with.
    #[must_use]
    pub fn read_bytes_per_s(&self) -> u64 {
        self.streaming_bytes_per_s(self.read_ns)
    }

    /// Rate of long writes to a drive with nothing to collect.
    #[must_use]
    pub fn write_bytes_per_s(&self) -> u64 {
        self.streaming_bytes_per_s(self.program_ns)
    }

    fn streaming_bytes_per_s(&self, page_ns: u64) -> u64 {
        let channels = self.channel_bytes_per_s.saturating_mul(u64::from(self.channels));
        let dies = u128::from(self.dies()) * u128::from(self.page_bytes) * 1_000_000_000
            / u128::from(page_ns.max(1));
        self.link_bytes_per_s.min(channels).min(u64::try_from(dies).unwrap_or(u64::MAX))
    }

    /// The drive as one access time and one bandwidth, for estimates that know no dies: a request's
    /// overheads and one sensed page, and [`FlashParameters::read_bytes_per_s`].
    #[must_use]
    pub fn as_simple(&self) -> SimpleParameters {
        SimpleParameters {
            access_time_ns: self.request_overhead_ns + self.command_ns + self.read_ns,
            bandwidth_bytes_per_s: self.read_bytes_per_s().max(1),
        }
    }
}

fn size(table: &mut TableReader<'_>, key: &'static str) -> Result<u64, DeviceError> {
    let bytes = parse_bytes(table.text(key)?).map_err(|error| table.error(key, error))?;
    if (SECTOR_BYTES..=1 << 30).contains(&bytes) {
        Ok(bytes)
    } else {
        Err(table.error(key, format!("is {bytes} bytes; it must lie from 512 bytes to 1 GiB")))
    }
}

/// The slowest channel or link: below it a request of the longest kind would take centuries.
const RATE_MIN_BYTES_PER_S: u64 = 1_000_000;

fn rate(table: &mut TableReader<'_>, key: &'static str) -> Result<u64, DeviceError> {
    let rate = parse_bytes_per_second(table.text(key)?).map_err(|error| table.error(key, error))?;
    if rate >= RATE_MIN_BYTES_PER_S {
        Ok(rate)
    } else {
        Err(table.error(key, format!("is {rate} bytes per second; it must be at least 1 MB/s")))
    }
}

fn time_ns(table: &mut TableReader<'_>, key: &'static str) -> Result<u64, DeviceError> {
    Ok((table.number(key, 0.0, 1e6)? * 1e6).round() as u64)
}

fn placement(table: &mut TableReader<'_>) -> Result<Placement, DeviceError> {
    let text = table.text("placement")?;
    Placement::ALL.iter().find(|(_, name)| *name == text).map(|(choice, _)| *choice).ok_or_else(
        || {
            let known = "'write-order', 'static' or 'collision-free'";
            table.error("placement", format!("is '{text}'; it must be {known}"))
        },
    )
}
