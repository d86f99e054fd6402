//! Parameters of a drive that is written zone by zone: the table `[write_zones]` of a device file.
//!
//! Recording zones (`[[zone]]`: cylinders with as many sectors a track) are another thing.

use agewell_core::{SECTOR_BYTES, parse_bytes};

use super::{MechanicalParameters, Medium, SimpleParameters, TableReader, read_simple};
use crate::DeviceError;

/// Who sees to it that shingled tracks are written in order.
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
    /// Who keeps the order.
    pub management: Management,
}

impl ZonedParameters {
    /// Reads the mechanism and the table `[write_zones]`.
    pub(super) fn read(reader: &mut TableReader<'_>) -> Result<Self, DeviceError> {
        let drive = match reader.text("drive")? {
            "simple" => {
                let sectors = reader.whole("capacity_sectors", 1, 1 << 50)?;
                ZonedDrive::Simple(read_simple(reader)?, sectors)
            }
            "mechanical" => ZonedDrive::Mechanical(Box::new(MechanicalParameters::read(reader)?)),
            other => {
                let message = format!("is '{other}'; it must be 'simple' or 'mechanical'");
                return Err(reader.error("drive", message));
            }
        };
        let mut table = reader.table("write_zones")?;
        let zone_sectors = sectors(&mut table, "size")?;
        let management = match table.text("management")? {
            "host" => {
                let zones = table.small("conventional_zones", 0)?;
                Management::Host { conventional_zones: zones }
            }
            "drive" => Management::Drive { cache_sectors: sectors(&mut table, "cache")? },
            other => {
                let message = format!("is '{other}'; it must be 'host' or 'drive'");
                return Err(table.error("management", message));
            }
        };
        let parameters = Self { drive, zone_sectors, management };
        parameters.check(&table)?;
        table.finish()?;
        Ok(parameters)
    }

    fn check(&self, table: &TableReader<'_>) -> Result<(), DeviceError> {
        let sector_bytes = match &self.drive {
            ZonedDrive::Simple(..) => SECTOR_BYTES,
            ZonedDrive::Mechanical(mechanical) => u64::from(mechanical.sector_bytes),
        };
        if !(self.zone_sectors * SECTOR_BYTES).is_multiple_of(sector_bytes) {
            return Err(table.inconsistent(
                "size",
                format!("is not a number of the drive's {sector_bytes}-byte sectors"),
            ));
        }
        // A pointer a zone is kept.
        if self.drive_sectors() / self.zone_sectors > 1 << 26 {
            return Err(table.inconsistent("size", "makes more than 2^26 zones"));
        }
        let (whole, what) = match self.management {
            Management::Host { conventional_zones } => {
                (u64::from(conventional_zones) * self.zone_sectors, "conventional_zones")
            }
            Management::Drive { cache_sectors } => (cache_sectors, "cache"),
        };
        if whole >= self.drive_sectors() {
            return Err(table.inconsistent(
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
            return Err(table.inconsistent("cache", "is not a number of bands"));
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

/// A size of whole sectors that counts in 32 bits where it must.
fn sectors(table: &mut TableReader<'_>, key: &'static str) -> Result<u64, DeviceError> {
    let bytes = parse_bytes(table.text(key)?).map_err(|error| table.error(key, error))?;
    if bytes == 0 || !bytes.is_multiple_of(SECTOR_BYTES) {
        return Err(table.error(key, format!("is {bytes} bytes; it must be whole sectors of 512")));
    }
    if bytes > 1 << 40 {
        return Err(table.error(key, format!("is {bytes} bytes, more than 1 TiB")));
    }
    Ok(bytes / SECTOR_BYTES)
}
