//! Geometry of a mechanical disk: surfaces, cylinders, zones and sparing.

use super::TableReader;
use crate::DeviceError;

/// How tracks follow each other from one cylinder to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrackOrder {
    /// Every cylinder from its first head to its last (DiskSim mapping scheme 0).
    Ascending,
    /// Every other cylinder backwards, so that no head switch goes with a cylinder switch; each zone starts ascending
    /// (scheme 1).
    Serpentine,
    /// As `Serpentine`, odd cylinder numbers backwards whatever the zone (scheme 2).
    SerpentineByCylinder,
}

/// Where spare space lies and how slipped defects use it (DiskSim `layout_g1.modspec`, schemes 0 to 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sparing {
    /// No spares (0).
    None,
    /// Whole tracks at the end of each zone; slips and defects are track numbers (1).
    Tracks,
    /// Sectors at the end of each cylinder (2).
    SectorsPerCylinder,
    /// Sectors at the end of each track (3).
    SectorsPerTrack,
    /// Sectors at the end of each cylinder, not used by slips, which push everything behind them on (4).
    SectorsPerCylinderSlipToEnd,
    /// Sectors at the front of each cylinder (5).
    SectorsAtCylinderFront,
    /// Sectors at the front of each cylinder, not used by slips (6).
    SectorsAtCylinderFrontSlipToEnd,
    /// Sectors at the end of the disk: slips push everything behind them on (7).
    SectorsAtDiskEnd,
    /// Sectors at the end of each range of cylinders (8).
    SectorsPerRange,
    /// Sectors at the end of each zone (9).
    SectorsPerZone,
    /// Sectors at the end of each zone, not used by slips (10).
    SectorsPerZoneSlipToEnd,
}

impl Sparing {
    /// Every scheme with its name in device files, in the order of DiskSim's numbers.
    pub const ALL: [(Sparing, &'static str); 11] = [
        (Sparing::None, "none"),
        (Sparing::Tracks, "tracks"),
        (Sparing::SectorsPerCylinder, "sectors-per-cylinder"),
        (Sparing::SectorsPerTrack, "sectors-per-track"),
        (Sparing::SectorsPerCylinderSlipToEnd, "sectors-per-cylinder-slip-to-end"),
        (Sparing::SectorsAtCylinderFront, "sectors-at-cylinder-front"),
        (Sparing::SectorsAtCylinderFrontSlipToEnd, "sectors-at-cylinder-front-slip-to-end"),
        (Sparing::SectorsAtDiskEnd, "sectors-at-disk-end"),
        (Sparing::SectorsPerRange, "sectors-per-range"),
        (Sparing::SectorsPerZone, "sectors-per-zone"),
        (Sparing::SectorsPerZoneSlipToEnd, "sectors-per-zone-slip-to-end"),
    ];

    /// The scheme's name in device files.
    ///
    /// # Panics
    /// Never: every scheme is listed.
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(scheme, _)| *scheme == self)
            .map(|(_, name)| *name)
            .expect("every sparing scheme is in the list")
    }
}

impl TrackOrder {
    /// Every order with its name in device files, in the order of DiskSim's mapping schemes.
    pub const ALL: [(TrackOrder, &'static str); 3] = [
        (TrackOrder::Ascending, "ascending"),
        (TrackOrder::Serpentine, "serpentine"),
        (TrackOrder::SerpentineByCylinder, "serpentine-by-cylinder"),
    ];

    /// The order's name in device files.
    ///
    /// # Panics
    /// Never: every order is listed.
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(order, _)| *order == self)
            .map(|(_, name)| *name)
            .expect("every track order is in the list")
    }
}

/// Surfaces, cylinders and zones.
#[derive(Debug, Clone, PartialEq)]
pub struct GeometryParameters {
    /// Data surfaces.
    pub surfaces: u32,
    /// Cylinders, including those that no zone holds.
    pub cylinders: u32,
    /// Order of tracks.
    pub track_order: TrackOrder,
    /// Sparing scheme.
    pub sparing: Sparing,
    /// Cylinders per spare range; only [`Sparing::SectorsPerRange`] looks at it.
    pub spare_range_cylinders: u32,
    /// Zones in address order.
    pub zones: Vec<ZoneParameters>,
}

/// Cylinders with the same number of sectors per track.
#[derive(Debug, Clone, PartialEq)]
pub struct ZoneParameters {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Last cylinder, included.
    pub last_cylinder: u32,
    /// Sectors per track, spares and slips included.
    pub sectors_per_track: u32,
    /// Rotational position of the first sector of the first track, in sectors of this zone.
    pub first_sector_offset: f64,
    /// Rotation between the starts of consecutive tracks of a cylinder, in sectors.
    pub track_skew: f64,
    /// Rotation between the starts of the last track of a cylinder and the first of the next, in sectors.
    pub cylinder_skew: f64,
    /// Sectors at the zone's front that no address maps to.
    pub reserved_sectors: u64,
    /// Spare sectors (tracks, for [`Sparing::Tracks`]) per unit of the scheme.
    pub spares: u64,
    /// Skipped sectors (tracks), numbered from the zone's start, ascending.
    pub slips: Vec<u64>,
    /// Remapped sectors (tracks) and their replacements, numbered from the zone's start.
    pub defects: Vec<(u64, u64)>,
}

impl ZoneParameters {
    /// Number of cylinders.
    pub fn cylinders(&self) -> u32 {
        self.last_cylinder - self.first_cylinder + 1
    }
}

/// Reads the name of one of `known`.
pub(super) fn read_choice<T: Copy>(
    reader: &mut TableReader<'_>,
    key: &'static str,
    known: &[(T, &'static str)],
    default: T,
) -> Result<T, DeviceError> {
    let Some(text) = reader.optional_text(key)? else { return Ok(default) };
    known.iter().find(|(_, name)| *name == text).map(|(value, _)| *value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(_, name)| *name).collect();
        let hint = match agewell_core::nearest(text, &names) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("it must be one of {}", names.join(", ")),
        };
        reader.error(key, format!("is '{text}'; {hint}"))
    })
}

impl GeometryParameters {
    pub(super) fn read(reader: &mut TableReader<'_>) -> Result<Self, DeviceError> {
        let mut table = reader.table("geometry")?;
        let surfaces = table.whole("surfaces", 1, 1024)? as u32;
        let cylinders = table.whole("cylinders", 1, 100_000_000)? as u32;
        let track_order =
            read_choice(&mut table, "track_order", &TrackOrder::ALL, TrackOrder::Ascending)?;
        let sparing = read_choice(&mut table, "sparing", &Sparing::ALL, Sparing::None)?;
        let spare_range_cylinders =
            table.optional_whole("spare_range_cylinders", 1, 1_000_000)?.unwrap_or(1) as u32;
        table.finish()?;
        let mut zones = Vec::new();
        for mut zone in reader.tables("zone")? {
            zones.push(read_zone(&mut zone, cylinders, zones.last())?);
            zone.finish()?;
        }
        if zones.is_empty() {
            return Err(reader.error("zone", "is missing: a disk has at least one zone"));
        }
        Ok(Self { surfaces, cylinders, track_order, sparing, spare_range_cylinders, zones })
    }
}

fn read_zone(
    table: &mut TableReader<'_>,
    cylinders: u32,
    before: Option<&ZoneParameters>,
) -> Result<ZoneParameters, DeviceError> {
    let first_cylinder = table.whole("first_cylinder", 0, u64::from(u32::MAX))? as u32;
    let last_cylinder = table.whole("last_cylinder", 0, u64::from(u32::MAX))? as u32;
    if last_cylinder < first_cylinder {
        return Err(table.inconsistent(
            "last_cylinder",
            format!("is {last_cylinder}, before first_cylinder {first_cylinder}"),
        ));
    }
    if last_cylinder >= cylinders {
        return Err(table.inconsistent(
            "last_cylinder",
            format!("is {last_cylinder}, but the disk has {cylinders} cylinders"),
        ));
    }
    if let Some(before) = before
        && first_cylinder <= before.last_cylinder
    {
        return Err(table.inconsistent(
            "first_cylinder",
            format!(
                "is {first_cylinder}, but the zone before it reaches to cylinder {}: zones overlap",
                before.last_cylinder
            ),
        ));
    }
    let sectors_per_track = table.whole("sectors_per_track", 1, 1_000_000)? as u32;
    let skew_limit = 1e6;
    let first_sector_offset =
        table.optional_number("first_sector_offset", -skew_limit, skew_limit)?.unwrap_or(0.0);
    let track_skew = table.optional_number("track_skew", 0.0, skew_limit)?.unwrap_or(0.0);
    let cylinder_skew = table.optional_number("cylinder_skew", 0.0, skew_limit)?.unwrap_or(0.0);
    for (key, skew) in [("track_skew", track_skew), ("cylinder_skew", cylinder_skew)] {
        if skew > f64::from(sectors_per_track) {
            return Err(table.inconsistent(
                key,
                format!("is {skew} sectors, more than the {sectors_per_track} of a track"),
            ));
        }
    }
    let reserved_sectors = table.optional_whole("reserved_sectors", 0, 1 << 40)?.unwrap_or(0);
    let spares = table.optional_whole("spares", 0, 1 << 32)?.unwrap_or(0);
    let slips = table.wholes("slips")?;
    let unordered = slips.iter().zip(slips.iter().skip(1)).find(|(one, next)| one >= next);
    if let Some((one, next)) = unordered {
        return Err(table.inconsistent(
            "slips",
            format!("{one} does not come before {next}: slips must ascend"),
        ));
    }
    let mut defects = Vec::new();
    for (defective, replacement) in table.pairs("defects")? {
        let whole = |value: f64| value >= 0.0 && value.fract() == 0.0;
        if !whole(defective) || !whole(replacement) {
            return Err(table.error("defects", "must hold pairs of whole numbers"));
        }
        defects.push((defective as u64, replacement as u64));
    }
    Ok(ZoneParameters {
        first_cylinder,
        last_cylinder,
        sectors_per_track,
        first_sector_offset,
        track_skew,
        cylinder_skew,
        reserved_sectors,
        spares,
        slips,
        defects,
    })
}
