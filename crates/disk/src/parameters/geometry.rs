//! Geometry of a mechanical disk: surfaces, cylinders, zones and sparing.

use agewell_config::{
    ConfigError, Form, Keyed, Table, count, keys, list, natural, number, pair, whole,
};

use super::names::{name_of, one_of};

/// How tracks follow each other. Head-first orders take every surface of a cylinder before the arm
/// moves; seek-first orders take a group of neighbouring tracks of one surface before the next
/// surface, as drives since about 2005 do, where switching heads takes longer than moving to the next
/// track (Wong, Discovering hard disk physical geometry through microbenchmarking, 2019, whose terms
/// these are).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrackOrder {
    /// Every cylinder from its first head to its last (DiskSim mapping scheme 0).
    #[default]
    Ascending,
    /// Every other cylinder backwards, so that no head switch goes with a cylinder switch; each zone starts ascending
    /// (scheme 1).
    Serpentine,
    /// As `Serpentine`, odd cylinder numbers backwards whatever the zone (scheme 2).
    SerpentineByCylinder,
    /// Group by group: every surface from the outside to the inside, surfaces always in the same order
    /// (hybrid serpentine).
    SeekForwardSurfacesForward,
    /// The same, surfaces of every other group in reverse.
    SeekForwardSurfacesAlternating,
    /// Group by group: every other surface from the inside to the outside, surfaces always in the same
    /// order (surface serpentine).
    SeekAlternatingSurfacesForward,
    /// The same, surfaces of every other group in reverse.
    SeekAlternatingSurfacesAlternating,
}

/// What turns round in a seek-first order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeekFirst {
    /// The direction of seeks, on every other surface.
    seeks: bool,
    /// The order of surfaces, in every other group.
    surfaces: bool,
}

impl SeekFirst {
    /// Which track of its group, from the outside, and which head the `step`-th track of the
    /// `surface`-th surface of a group is, where a group has `tracks` tracks on each of `surfaces`.
    #[inline]
    pub(crate) fn of(
        self,
        step: u64,
        surface: u64,
        group: u64,
        (tracks, surfaces): (u64, u64),
    ) -> (u64, u64) {
        let turns_back = self.seeks && !surface.is_multiple_of(2);
        let from_last = self.surfaces && !group.is_multiple_of(2);
        let step = if turns_back { tracks - 1 - step } else { step };
        (step, if from_last { surfaces - 1 - surface } else { surface })
    }
}

/// Where spare space lies and how slipped defects use it (DiskSim `layout_g1.modspec`, schemes 0 to 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sparing {
    /// No spares (0).
    #[default]
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
    pub fn name(self) -> &'static str {
        name_of(&Self::ALL, self)
    }
}

impl TrackOrder {
    /// Every order with its name in device files, in the order of DiskSim's mapping schemes.
    pub const ALL: [(TrackOrder, &'static str); 7] = [
        (TrackOrder::Ascending, "ascending"),
        (TrackOrder::Serpentine, "serpentine"),
        (TrackOrder::SerpentineByCylinder, "serpentine-by-cylinder"),
        (TrackOrder::SeekForwardSurfacesForward, "seek-first-forward-forward"),
        (TrackOrder::SeekForwardSurfacesAlternating, "seek-first-forward-alternating"),
        (TrackOrder::SeekAlternatingSurfacesForward, "seek-first-alternating-forward"),
        (TrackOrder::SeekAlternatingSurfacesAlternating, "seek-first-alternating-alternating"),
    ];

    /// The order's name in device files.
    pub fn name(self) -> &'static str {
        name_of(&Self::ALL, self)
    }

    /// What turns round, if the order is seek-first.
    #[inline]
    pub(crate) fn seek_first(self) -> Option<SeekFirst> {
        let (seeks, surfaces) = match self {
            Self::Ascending | Self::Serpentine | Self::SerpentineByCylinder => return None,
            Self::SeekForwardSurfacesForward => (false, false),
            Self::SeekForwardSurfacesAlternating => (false, true),
            Self::SeekAlternatingSurfacesForward => (true, false),
            Self::SeekAlternatingSurfacesAlternating => (true, true),
        };
        Some(SeekFirst { seeks, surfaces })
    }
}

/// Surfaces, cylinders and zones.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GeometryParameters {
    /// Data surfaces.
    pub surfaces: u32,
    /// Cylinders, including those that no zone holds.
    pub cylinders: u32,
    /// Order of tracks.
    pub track_order: TrackOrder,
    /// Tracks of a surface before another follows; only seek-first orders look at it.
    pub group_cylinders: u32,
    /// Sparing scheme.
    pub sparing: Sparing,
    /// Cylinders per spare range; only [`Sparing::SectorsPerRange`] looks at it.
    pub spare_range_cylinders: u32,
    /// Zones in address order.
    pub zones: Vec<ZoneParameters>,
}

/// Tracks of a surface in a group unless a file says otherwise; chosen by us: real ones have hundreds
/// to thousands (Wong 2019).
pub const GROUP_CYLINDERS: u32 = 500;

/// The largest number that device files count to: what fits a float.
const COUNTED_MAX: u64 = 1 << 53;

keys! {
    /// Cylinders with the same number of sectors per track: a table `[[zone]]` of a device file, in
    /// address order. Cylinders that no zone holds are not addressable.
    pub struct ZoneParameters {
        /// first cylinder
        first_cylinder: u32 = "first_cylinder" natural().required();
        /// last cylinder, included
        last_cylinder: u32 = "last_cylinder" natural().required();
        /// sectors of a track, spares and slips included
        sectors_per_track: u32 = "sectors_per_track" count().to(1_000_000).required();
        /// rotational position of the first sector of the first track, in sectors of this zone
        first_sector_offset: f64 = "first_sector_offset" number(-1e6, 1e6).or(0.0);
        /// rotation between the starts of consecutive tracks where the head changes, in sectors; in
        /// seek-first orders also where the group does
        track_skew: f64 = "track_skew" number(0.0, 1e6).or(0.0);
        /// rotation between the starts of consecutive tracks where the arm moves to the next cylinder,
        /// in sectors
        cylinder_skew: f64 = "cylinder_skew" number(0.0, 1e6).or(0.0);
        /// sectors at the zone's front that no address maps to
        reserved_sectors: u64 = "reserved_sectors" whole().to(1 << 40).or(0);
        /// spare sectors (tracks, with `sparing = "tracks"`) per unit of the scheme
        spares: u64 = "spares" whole().to(1 << 32).or(0);
        /// skipped sectors (tracks), numbered from the zone's start, ascending
        slips: Vec<u64> = "slips" list(whole().to(COUNTED_MAX)).or(Vec::new());
        /// remapped sectors (tracks) and their replacements, numbered from the zone's start
        defects: Vec<(u64, u64)> = "defects"
            list(pair(whole().to(COUNTED_MAX), whole().to(COUNTED_MAX))).or(Vec::new());
    }
}

keys! {
    /// The table `[geometry]` of a device file.
    pub(super) struct GeometryTable for GeometryParameters, ..GeometryParameters::default(), {
        /// data surfaces
        surfaces = "surfaces" count().to(1024).required();
        /// cylinders, those that no zone holds included
        cylinders = "cylinders" count().to(100_000_000).required();
        /// how tracks follow each other: surface by surface on each cylinder (the first three), or
        /// group by group of tracks of a surface (seek-first: the direction of seeks from one surface
        /// to the next, then the order of surfaces from one group to the next)
        track_order = "track_order" one_of(&TrackOrder::ALL).or(TrackOrder::Ascending);
        /// tracks of a surface before another surface follows, in a seek-first `track_order`; real
        /// ones have hundreds to thousands (Wong 2019)
        group_cylinders = "group_cylinders" count().to(100_000_000).or(GROUP_CYLINDERS);
        /// where spare space lies and how slipped defects use it
        sparing = "sparing" one_of(&Sparing::ALL).or(Sparing::None);
        /// cylinders of a spare range, with `sparing = "sectors-per-range"`
        spare_range_cylinders = "spare_range_cylinders" count().to(1_000_000).or(1);
    }
}

impl ZoneParameters {
    /// Number of cylinders.
    pub fn cylinders(&self) -> u32 {
        self.last_cylinder - self.first_cylinder + 1
    }
}

impl GeometryParameters {
    pub(super) fn read(drive: &mut Table) -> Result<Self, ConfigError> {
        let mut geometry = drive.whole_table::<GeometryTable>("geometry")?;
        for mut table in drive.tables("zone")? {
            let zone = ZoneParameters::read(&mut table)?;
            check_zone(&table, &zone, geometry.cylinders, geometry.zones.last())?;
            geometry.zones.push(zone);
            table.finish()?;
        }
        let by_cylinder = !matches!(
            geometry.sparing,
            Sparing::None
                | Sparing::Tracks
                | Sparing::SectorsPerTrack
                | Sparing::SectorsAtDiskEnd
                | Sparing::SectorsPerZone
                | Sparing::SectorsPerZoneSlipToEnd
        );
        if geometry.track_order.seek_first().is_some() && by_cylinder {
            let why = format!(
                "is '{}', by cylinders, which do not follow one another in track_order = '{}'; \
                 sparing by track, zone or disk end goes with it",
                geometry.sparing.name(),
                geometry.track_order.name()
            );
            return Err(drive.invalid("geometry.sparing", why));
        }
        if geometry.zones.is_empty() {
            return Err(drive.invalid("zone", "is missing: a disk has at least one zone"));
        }
        Ok(geometry)
    }
}

fn check_zone(
    table: &Table,
    zone: &ZoneParameters,
    cylinders: u32,
    before: Option<&ZoneParameters>,
) -> Result<(), ConfigError> {
    let ZoneParameters { first_cylinder, last_cylinder, sectors_per_track, .. } = *zone;
    if last_cylinder < first_cylinder {
        let why = format!("is {last_cylinder}, before first_cylinder {first_cylinder}");
        return Err(table.invalid("last_cylinder", why));
    }
    if last_cylinder >= cylinders {
        let why = format!("is {last_cylinder}, but the disk has {cylinders} cylinders");
        return Err(table.invalid("last_cylinder", why));
    }
    if let Some(before) = before.filter(|before| first_cylinder <= before.last_cylinder) {
        let why = format!(
            "is {first_cylinder}, but the zone before it reaches to cylinder {}: zones overlap",
            before.last_cylinder
        );
        return Err(table.invalid("first_cylinder", why));
    }
    for (key, skew) in [("track_skew", zone.track_skew), ("cylinder_skew", zone.cylinder_skew)] {
        if skew > f64::from(sectors_per_track) {
            let why = format!("is {skew} sectors, more than the {sectors_per_track} of a track");
            return Err(table.invalid(key, why));
        }
    }
    let mut neighbours = zone.slips.iter().zip(zone.slips.iter().skip(1));
    match neighbours.find(|(one, next)| one >= next) {
        None => Ok(()),
        Some((one, next)) => {
            let why = format!("{one} does not come before {next}: slips must ascend");
            Err(table.invalid("slips", why))
        }
    }
}
