//! What a drive that is written zone by zone asks of a layout: only a log whose segments are its
//! zones, cleaned and never filled hole by hole, writes as such a drive can be written.

use agewell_core::SECTOR_BYTES;
use agewell_disk::WriteRule;
use agewell_log::policy::mechanism::{Collect, Mechanism};

use crate::config::layout::{Collecting, Layout, LogLayout};
use crate::error::RunError;

/// Where a layout begins on a drive, and the zones it must empty before it writes them again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Zones {
    /// First sector of the layout.
    pub(crate) base_sector: u64,
    /// Sectors of a zone; 0 where writes may go anywhere.
    pub(crate) zone_sectors: u64,
}

impl Zones {
    /// The zones of a drive with `rule` under `layout`.
    ///
    /// # Errors
    /// If the layout cannot keep to the rule.
    pub(crate) fn of(rule: WriteRule, layout: &Layout) -> Result<Self, RunError> {
        let WriteRule::SequentialInZones { first_sequential, zone_sectors } = rule else {
            return Ok(Self::default());
        };
        let zone_bytes = zone_sectors.0 * SECTOR_BYTES;
        let keeps = matches!(layout, Layout::Log(log) if keeps_order(log, zone_bytes));
        if !keeps {
            return Err(RunError::Input(format!(
                "[layout]: the drive is written in order, zone by zone, which only a log of whole \
                 zones can do that is cleaned and never filled hole by hole; say kind = \"lfs\", \
                 segment_size = \"{zone_bytes} B\" and collect = \"clean\", or choose another drive"
            )));
        }
        Ok(Self { base_sector: first_sequential.0, zone_sectors: zone_sectors.0 })
    }
}

fn keeps_order(log: &LogLayout, zone_bytes: u64) -> bool {
    let cleans = match &log.collect {
        Collecting::Fixed(collect) => *collect == Collect::Always(Mechanism::Clean),
        Collecting::Adaptive(mechanisms) => mechanisms == &[Mechanism::Clean],
    };
    cleans
        && log.keys.segment_bytes == zone_bytes
        && log.two_sizes.is_none()
        && log.keys.zones.is_empty()
}
