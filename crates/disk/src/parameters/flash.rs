//! Parameters of a flash drive: the table `[flash]` of a device file.

use agewell_config::{
    ConfigError, Form, Keyed, Table, count, keys, milliseconds, number, rate, size,
};
use agewell_core::SECTOR_BYTES;

use super::names::{name_of, one_of};
use super::page_times::{PageTimes, page_times};
use super::simple::SimpleParameters;

/// Which die a page goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// To the die after that of the page written before it: pages written one after another are
    /// read in parallel, whatever their addresses (Jun et al., FAST 2024: what drives do).
    #[default]
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
        name_of(&Self::ALL, self)
    }
}

/// Channels, dies and what they take. A page is what a die senses or programs at once, all its
/// planes together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
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
    /// Times to sense a page.
    pub read: PageTimes,
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
    /// From a command's arrival to its first page access; requests of a batch overlap it, ns.
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

/// The slowest channel or link: below it a request of the longest kind would take centuries.
const RATE_MIN_BYTES_PER_S: u64 = 1_000_000;

/// The largest page; chosen by us, far above any.
const PAGE_BYTES_MAX: u64 = 1 << 30;

keys! {
    /// The table `[flash]` of a device file.
    pub(super) struct FlashTable for FlashParameters, ..FlashParameters::default(), {
        /// buses between controller and dies
        channels = "channels" count().to(256).required();
        /// dies on each of them
        dies_per_channel = "dies_per_channel" count().to(256).required();
        /// sensed or programmed at once: all planes of a die together
        page_bytes = "page" size().from(SECTOR_BYTES).to(PAGE_BYTES_MAX).required();
        /// what the translation layer maps, and therefore writes without reading first
        mapping_bytes = "mapping" size().from(SECTOR_BYTES).to(PAGE_BYTES_MAX).or(0) => "`page`";
        /// pages that are erased together
        pages_per_block = "pages_per_block" count().from(2).to(1 << 16).required();
        /// space beyond the capacity, as a share of it
        over_provisioning = "over_provisioning" number(0.001, 100.0).required();
        /// which die a page goes to: the next; the one that its address names; what is read together to
        /// different ones
        placement = "placement" one_of(&Placement::ALL).required();
        /// to sense a page; of cells with several bits, each page of a block in turn
        read = "read_ms" page_times().required();
        /// to program a page
        program_ns = "program_ms" milliseconds().required();
        /// to erase a block
        erase_ns = "erase_ms" milliseconds().required();
        /// of one channel
        channel_bytes_per_s = "channel_rate" rate().from(RATE_MIN_BYTES_PER_S).required();
        /// to the host
        link_bytes_per_s = "link_rate" rate().from(RATE_MIN_BYTES_PER_S).required();
        /// host and command, one request after another
        request_overhead_ns = "request_overhead_ms" milliseconds().or(0);
        /// until the first page access; requests issued together share it
        command_ns = "command_ms" milliseconds().or(0);
        /// the same for what reads nothing
        write_command_ns = "write_command_ms" milliseconds().or(0) => "`command_ms`";
        /// requests worked on at once
        queue_depth = "queue_depth" count().to(65_536).required();
        /// reported as written early; 0: when they are programmed
        write_buffer_bytes = "write_buffer" size().to(1 << 36).or(0);
    }
}

impl FlashParameters {
    /// Reads the table `[flash]` of a drive of `capacity_sectors`.
    pub(super) fn read(drive: &mut Table, capacity_sectors: u64) -> Result<Self, ConfigError> {
        let mut table = drive.table("flash")?.ok_or_else(|| drive.missing("flash"))?;
        let mut parameters = Self { capacity_sectors, ..FlashTable::read(&mut table)? };
        if !table.has("mapping") {
            parameters.mapping_bytes = parameters.page_bytes;
        }
        if !table.has("write_command_ms") {
            parameters.write_command_ns = parameters.command_ns;
        }
        parameters.check(&table)?;
        table.finish()?;
        Ok(parameters)
    }

    fn check(&self, table: &Table) -> Result<(), ConfigError> {
        let (page, mapping, buffer) =
            (self.page_bytes, self.mapping_bytes, self.write_buffer_bytes);
        if !mapping.is_multiple_of(SECTOR_BYTES) {
            let why = format!("is {mapping} bytes, not a number of {SECTOR_BYTES}-byte sectors");
            return Err(table.invalid("mapping", why));
        }
        if !page.is_multiple_of(mapping) {
            let why = format!("is {mapping} bytes, which does not divide a page of {page}");
            return Err(table.invalid("mapping", why));
        }
        if self.units_per_page() > 1024 {
            return Err(table.invalid("page", "holds more than 1024 mapping units"));
        }
        if buffer > 0 && buffer < page {
            let why =
                format!("is {buffer} bytes, less than a page of {page}; 0 is a drive without one");
            return Err(table.invalid("write_buffer", why));
        }
        let physical = self.physical_units();
        if physical > UNITS_MAX {
            let why = format!("makes {physical} units, more than {UNITS_MAX}: take larger ones");
            return Err(table.invalid("mapping", why));
        }
        let (units, needed) = (self.units_per_die(), self.units_per_block());
        let spare = self.data_blocks_per_die() * needed - units;
        if spare < needed {
            let why = format!(
                "leaves a die {spare} units of {units} to spare; it needs an erase block of {needed}"
            );
            return Err(table.invalid("over_provisioning", why));
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
        self.streaming_bytes_per_s(self.read.mean_ns())
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
            access_time_ns: self.request_overhead_ns + self.command_ns + self.read.mean_ns(),
            bandwidth_bytes_per_s: self.read_bytes_per_s().max(1),
        }
    }
}
