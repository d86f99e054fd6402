//! Parameters of a drive that is written zone by zone: the table `[write_zones]` of a device file.
//!
//! Recording zones (`[[zone]]`: cylinders with as many sectors a track) are another thing.

use agewell_config::{ConfigError, Form, Keyed, Table, choice, keys, natural, sectors};
use agewell_core::SECTOR_BYTES;

use super::capacity::CapacityTable;
use super::mechanical::MechanicalParameters;
use super::medium::Medium;
use super::simple::SimpleParameters;

/// The side that ensures that shingled tracks are written in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Management {
    /// The host: the drive refuses what is out of order.
    Host {
        /// Zones at the front that may be written anywhere.
        conventional_zones: u32,
    },
    /// The drive: what is out of order goes to a cache on the medium first.
    Drive {
        /// Size of that cache, before the first addressable sector, in sectors of 512 bytes.
        cache_sectors: u64,
    },
}

/// The mechanism below the zones.
#[derive(Debug, Clone, PartialEq)]
pub enum ZonedDrive {
    /// Access time and bandwidth, and a size in sectors of 512 bytes.
    Simple(SimpleParameters, u64),
    /// Arm, platter, buffer and bus.
    Mechanical(Box<MechanicalParameters>),
}

/// A drive and the zones it is written by.
#[derive(Debug, Clone, PartialEq)]
pub struct ZonedParameters {
    /// The mechanism.
    pub drive: ZonedDrive,
    /// Size of a zone, or of a band that the drive manages, in sectors of 512 bytes.
    pub zone_sectors: u64,
    /// The side that keeps the order.
    pub management: Management,
}

/// The largest zone, and the largest cache; chosen by us.
const ZONE_BYTES_MAX: u64 = 1 << 40;

keys! {
    /// What the file of a drive in zones says outside tables.
    pub(super) struct ZonedTable {
        /// the mechanism below the zones, with all keys and tables of such a drive
        is_mechanical: bool = "drive" choice(&[("simple", false), ("mechanical", true)]).required();
    }
}

keys! {
    /// The table `[write_zones]` of a device file.
    pub(super) struct WriteZonesTable {
        /// of a zone, or of a band that the drive manages
        zone_bytes: u64 = "size" sectors().to(ZONE_BYTES_MAX).required();
        /// `"host"`: the drive refuses what is out of order; `"drive"`: it caches that
        is_host_managed: bool = "management" choice(&[("host", true), ("drive", false)]).required();
        /// with `"host"`: zones at the front that are written anywhere
        conventional_zones: Option<u32> = "conventional_zones" natural().or_else("`0`");
        /// with `"drive"`: its cache on the medium, before sector 0
        cache_bytes: Option<u64> = "cache" sectors().to(ZONE_BYTES_MAX)
            .or_else("required with `\"drive\"`");
    }
}

impl ZonedParameters {
    /// Reads the mechanism and the table `[write_zones]`.
    pub(super) fn read(file: &mut Table) -> Result<Self, ConfigError> {
        let drive = if ZonedTable::read(file)?.is_mechanical {
            ZonedDrive::Mechanical(Box::new(MechanicalParameters::read(file)?))
        } else {
            let capacity = CapacityTable::read(file)?.capacity_sectors;
            ZonedDrive::Simple(file.whole_table::<SimpleParameters>("simple")?, capacity)
        };
        let mut table = file.table("write_zones")?.ok_or_else(|| file.missing("write_zones"))?;
        let keys = WriteZonesTable::read(&mut table)?;
        let management = match (keys.is_host_managed, keys.conventional_zones, keys.cache_bytes) {
            (true, conventional_zones, None) => {
                Management::Host { conventional_zones: conventional_zones.unwrap_or(0) }
            }
            (false, None, Some(bytes)) => Management::Drive { cache_sectors: bytes / SECTOR_BYTES },
            (true, _, Some(_)) => {
                return Err(table.invalid("cache", "is for management = \"drive\""));
            }
            (false, Some(_), _) => {
                return Err(table.invalid("conventional_zones", "is for management = \"host\""));
            }
            (false, None, None) => return Err(table.missing("cache")),
        };
        let parameters = Self { drive, zone_sectors: keys.zone_bytes / SECTOR_BYTES, management };
        parameters.check(&table)?;
        table.finish()?;
        Ok(parameters)
    }

    fn check(&self, table: &Table) -> Result<(), ConfigError> {
        let sector_bytes = match &self.drive {
            ZonedDrive::Simple(..) => SECTOR_BYTES,
            ZonedDrive::Mechanical(mechanical) => u64::from(mechanical.sector_bytes),
        };
        if !(self.zone_sectors * SECTOR_BYTES).is_multiple_of(sector_bytes) {
            return Err(table.invalid(
                "size",
                format!("is not a number of the drive's {sector_bytes}-byte sectors"),
            ));
        }
        // A pointer a zone is kept.
        if self.drive_sectors() / self.zone_sectors > 1 << 26 {
            return Err(table.invalid("size", "makes more than 2^26 zones"));
        }
        let (whole, what) = match self.management {
            Management::Host { conventional_zones } => {
                (u64::from(conventional_zones) * self.zone_sectors, "conventional_zones")
            }
            Management::Drive { cache_sectors } => (cache_sectors, "cache"),
        };
        if whole >= self.drive_sectors() {
            return Err(table.invalid(
                what,
                format!(
                    "takes {whole} sectors of 512 bytes, and the drive has only {}",
                    self.drive_sectors()
                ),
            ));
        }
        if let Management::Drive { cache_sectors } = self.management
            && !cache_sectors.is_multiple_of(self.zone_sectors)
        {
            return Err(table.invalid("cache", "is not a number of bands"));
        }
        Ok(())
    }

    fn drive_sectors(&self) -> u64 {
        match &self.drive {
            ZonedDrive::Simple(_, sectors) => *sectors,
            ZonedDrive::Mechanical(mechanical) => {
                mechanical.capacity * u64::from(mechanical.sector_bytes) / SECTOR_BYTES
            }
        }
    }

    /// Addressable size, in sectors of 512 bytes.
    #[must_use]
    pub fn capacity_sectors(&self) -> u64 {
        match self.management {
            Management::Host { .. } => self.drive_sectors(),
            Management::Drive { cache_sectors } => self.drive_sectors() - cache_sectors,
        }
    }

    /// The mechanism, for estimates that know no zones.
    #[must_use]
    pub fn medium(&self) -> Medium<'_> {
        match &self.drive {
            ZonedDrive::Simple(simple, _) => Medium::Simple(*simple),
            ZonedDrive::Mechanical(mechanical) => Medium::Mechanical(mechanical),
        }
    }
}
