//! Where an address lies: block number to cylinder, head, sector and angle, and back.
//!
//! Each zone maps its blocks to *places* (physical sectors counted from the zone's start) in closed form, so that a
//! look-up costs a search among the zones and two divisions, and a device of any size needs no table of its tracks.
//! Places fall into *units* of the sparing scheme (track, cylinder, range, zone) that hold `unit_places` places of which
//! `unit_blocks` carry blocks; slipped places are stepped over; remapped ones are replaced last.
//!
//! Invariants, held by property tests against a walk over every place:
//! * block to place is one to one within a zone, and [`Geometry::block_at`] is its inverse;
//! * [`Location::run`] blocks from there lie side by side on one track.
//!
//! Semantics after DiskSim 4.0's layout model g1 (`layout_g1.c`, schemes 0 to 10, mappings 0 to 2). Differences: slips
//! that push blocks out of their cylinder (schemes 4, 6) move them to the next place that is not a spare, where DiskSim
//! may hand out the same place twice; angles have 64 bits instead of 32.

use crate::parameters::geometry::{GeometryParameters, Sparing, TrackOrder, ZoneParameters};

/// Rotational position as a fraction of a turn, in units of 2^-64: it wraps as the platter does.
pub type Angle = u64;

/// Where a block lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// Cylinder.
    pub cylinder: u32,
    /// Head (surface).
    pub head: u32,
    /// Physical sector on the track.
    pub sector: u32,
    /// Where the sector starts.
    pub angle: Angle,
    /// Rotation taken by one sector.
    pub width: Angle,
    /// Sectors on this track.
    pub sectors_per_track: u32,
    /// Blocks from this one on, itself included, that follow side by side on this track.
    pub run: u32,
}

/// How slips and spares work inside a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlipRule {
    /// A slip pushes blocks on within its unit, into the unit's spares.
    WithinUnit,
    /// A slip pushes every later block of the zone on.
    ToEnd,
    /// A slip in a unit with its spares in front pulls blocks forward within its unit.
    FrontOfUnit,
}

#[derive(Debug, Clone)]
struct Zone {
    first_block: u64,
    blocks: u64,
    first_cylinder: u32,
    cylinders: u64,
    sectors_per_track: u64,
    places: u64,
    reserved: u64,
    /// Sectors that slips and defects count in: 1, or a track.
    grain: u64,
    unit_places: u64,
    unit_blocks: u64,
    /// Spares in front of each unit.
    front: u64,
    rule: SlipRule,
    /// Whether slips push the skew of later tracks on: per cylinder or per track.
    slips_skew: Option<u64>,
    slips: Vec<u64>,
    /// For [`SlipRule::ToEnd`]: slips among the places that are not spares, counted without the spares.
    open_slips: Vec<u64>,
    defects: Vec<(u64, u64)>,
    first_angle: Angle,
    track_skew: Angle,
    cylinder_skew: Angle,
    width: Angle,
}

/// Where the tracks of a zone lie, numbered in the order of their blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Track {
    /// Counted from the zone's first.
    cylinder: u64,
    head: u64,
    /// Changes of the head, and of the group in seek-first orders, from the zone's first track to it.
    switches: u64,
}

/// The map of a disk.
#[derive(Debug, Clone)]
pub struct Geometry {
    surfaces: u32,
    track_order: TrackOrder,
    /// Tracks of a surface before another follows, in seek-first orders.
    group_cylinders: u64,
    zones: Vec<Zone>,
    /// First block of each zone, apart from the zones for a search that stays in cache.
    first_blocks: Vec<u64>,
    blocks: u64,
}

/// `sectors` of a track with `sectors_per_track` as an angle, whole turns dropped.
fn angle_of(sectors: f64, sectors_per_track: u64) -> Angle {
    let turns = sectors / sectors_per_track as f64;
    let width = width_of(sectors_per_track);
    if sectors.fract() == 0.0 {
        // Whole sectors land exactly on sector boundaries, so that a run of them never misses one by rounding.
        width.wrapping_mul(sectors as i64 as u64)
    } else {
        ((turns - turns.floor()) * 18_446_744_073_709_551_616.0) as u64
    }
}

fn width_of(sectors_per_track: u64) -> Angle {
    (u128::from(u64::MAX) / u128::from(sectors_per_track)) as u64
}

impl Zone {
    fn new(parameters: &GeometryParameters, zone: &ZoneParameters, first_block: u64) -> Self {
        let surfaces = u64::from(parameters.surfaces);
        let sectors_per_track = u64::from(zone.sectors_per_track);
        let cylinder = surfaces * sectors_per_track;
        let cylinders = u64::from(zone.cylinders());
        let places = cylinders * cylinder;
        let range = u64::from(parameters.spare_range_cylinders);
        let spares = zone.spares;
        let slips = zone.slips.len() as u64;
        let (grain, unit_places, unit_spares, rule) = match parameters.sparing {
            Sparing::None => (1, places, 0, SlipRule::WithinUnit),
            Sparing::Tracks => {
                (sectors_per_track, places / sectors_per_track, spares, SlipRule::WithinUnit)
            }
            Sparing::SectorsPerCylinder => (1, cylinder, spares, SlipRule::WithinUnit),
            Sparing::SectorsPerTrack => (1, sectors_per_track, spares, SlipRule::WithinUnit),
            Sparing::SectorsPerCylinderSlipToEnd | Sparing::SectorsAtCylinderFrontSlipToEnd => {
                (1, cylinder, spares, SlipRule::ToEnd)
            }
            Sparing::SectorsAtCylinderFront => (1, cylinder, spares, SlipRule::FrontOfUnit),
            Sparing::SectorsAtDiskEnd => (1, places, 0, SlipRule::ToEnd),
            Sparing::SectorsPerRange => (1, range * cylinder, spares, SlipRule::WithinUnit),
            Sparing::SectorsPerZone | Sparing::SectorsPerZoneSlipToEnd => {
                (1, places, spares, SlipRule::WithinUnit)
            }
        };
        let front = match parameters.sparing {
            Sparing::SectorsAtCylinderFront | Sparing::SectorsAtCylinderFrontSlipToEnd => spares,
            _ => 0,
        };
        let unit_blocks = unit_places.saturating_sub(unit_spares);
        let spare_sectors = match parameters.sparing {
            Sparing::None | Sparing::SectorsAtDiskEnd => 0,
            Sparing::Tracks => spares * sectors_per_track,
            Sparing::SectorsPerTrack => spares * cylinders * surfaces,
            Sparing::SectorsPerRange => spares * (cylinders / range),
            Sparing::SectorsPerZone | Sparing::SectorsPerZoneSlipToEnd => spares,
            _ => spares * cylinders,
        };
        let pushed = match parameters.sparing {
            Sparing::SectorsPerCylinderSlipToEnd
            | Sparing::SectorsAtCylinderFrontSlipToEnd
            | Sparing::SectorsAtDiskEnd
            | Sparing::SectorsPerZoneSlipToEnd => slips,
            _ => 0,
        };
        let slips_skew = match parameters.sparing {
            Sparing::SectorsPerCylinder
            | Sparing::SectorsPerCylinderSlipToEnd
            | Sparing::SectorsAtCylinderFront
            | Sparing::SectorsAtCylinderFrontSlipToEnd => Some(cylinder),
            Sparing::SectorsPerTrack => Some(sectors_per_track),
            _ => None,
        };
        let mut defects: Vec<(u64, u64)> =
            zone.defects.iter().copied().filter(|(from, to)| from != to).collect();
        defects.sort_unstable();
        let slips =
            if parameters.sparing == Sparing::None { Vec::new() } else { zone.slips.clone() };
        let open_slips = slips
            .iter()
            .filter(|slip| {
                unit_places > 0 && (front..front + unit_blocks).contains(&(*slip % unit_places))
            })
            .map(|slip| (slip / unit_places) * unit_blocks + slip % unit_places - front)
            .collect();
        Self {
            first_block,
            blocks: places.saturating_sub(zone.reserved_sectors + spare_sectors + pushed),
            first_cylinder: zone.first_cylinder,
            cylinders,
            sectors_per_track,
            places,
            reserved: zone.reserved_sectors,
            grain,
            unit_places,
            unit_blocks,
            front,
            rule,
            slips_skew,
            slips,
            open_slips,
            defects,
            first_angle: angle_of(zone.first_sector_offset, sectors_per_track),
            track_skew: angle_of(zone.track_skew, sectors_per_track),
            cylinder_skew: angle_of(zone.cylinder_skew, sectors_per_track),
            width: width_of(sectors_per_track),
        }
    }

    /// The place, in grains, that the `index`-th grain of blocks lies at before remapping.
    #[inline]
    fn grain_place(&self, index: u64) -> u64 {
        if self.slips.is_empty() && self.unit_blocks == self.unit_places {
            return index;
        }
        let unit = index / self.unit_blocks;
        let rest = index % self.unit_blocks;
        let start = unit * self.unit_places;
        if self.slips.is_empty() {
            return start + self.front + rest;
        }
        match self.rule {
            SlipRule::ToEnd => {
                let open = step_over(&self.open_slips, index);
                open / self.unit_blocks * self.unit_places + self.front + open % self.unit_blocks
            }
            SlipRule::WithinUnit => {
                let first = self.slips.partition_point(|slip| *slip < start);
                step_over(&self.slips[first..], start + self.front + rest)
            }
            SlipRule::FrontOfUnit => {
                // A slip among the spares in front takes a place from the blocks pulled forward, too.
                let first = self.slips.partition_point(|slip| *slip < start);
                let last = self.slips.partition_point(|slip| *slip < start + self.unit_places);
                let pulled = (last - first) as u64;
                step_over(&self.slips[first..last], start + self.front - pulled + rest)
            }
        }
    }

    /// The place of the zone's block `block` and how many blocks follow it side by side on its track.
    #[inline]
    fn place(&self, block: u64) -> (u64, u64) {
        let index = block + self.reserved;
        let mut place = if self.grain == 1 {
            self.grain_place(index)
        } else {
            self.grain_place(index / self.grain) * self.grain + index % self.grain
        };
        let mut run = self.sectors_per_track - place % self.sectors_per_track;
        if self.unit_blocks != self.unit_places && self.grain == 1 {
            run = run.min(match self.rule {
                SlipRule::ToEnd => self.front + self.unit_blocks - place % self.unit_places,
                SlipRule::WithinUnit | SlipRule::FrontOfUnit => {
                    self.unit_blocks - index % self.unit_blocks
                }
            });
        }
        if self.grain == 1 && !self.slips.is_empty() {
            let next = self.slips.partition_point(|slip| *slip <= place);
            if let Some(slip) = self.slips.get(next) {
                run = run.min(slip - place);
            }
        }
        if !self.defects.is_empty() {
            (place, run) = self.remap(place, run);
        }
        (place, run.min(self.blocks - block))
    }

    fn remap(&self, place: u64, run: u64) -> (u64, u64) {
        let at = self.defects.partition_point(|(from, _)| *from < place / self.grain);
        match self.defects.get(at) {
            Some((from, to)) if *from == place / self.grain => {
                (to * self.grain + place % self.grain, if self.grain == 1 { 1 } else { run })
            }
            Some((from, _)) if self.grain == 1 => (place, run.min(from - place)),
            _ => (place, run),
        }
    }

    /// Angle of the start of sector 0 of `track`, with `switches` changes of the head before it.
    #[inline]
    fn track_angle(&self, track: u64, switches: u64) -> Angle {
        let mut angle = self
            .first_angle
            .wrapping_add(self.track_skew.wrapping_mul(switches))
            .wrapping_add(self.cylinder_skew.wrapping_mul(track - switches));
        if let Some(step) = self.slips_skew
            && !self.slips.is_empty()
        {
            let start = track * self.sectors_per_track / step * step;
            let slipped = self.slips.partition_point(|slip| *slip < start) as u64;
            angle = angle.wrapping_add(self.width.wrapping_mul(slipped));
        }
        angle
    }
}

/// The `index`-th place that is not among `slips`, which ascend.
#[inline]
fn step_over(slips: &[u64], index: u64) -> u64 {
    // slip - position ascends weakly, so the number of slips before the place can be searched for.
    let (mut low, mut high) = (0, slips.len());
    while low < high {
        let middle = usize::midpoint(low, high);
        if slips[middle] - middle as u64 <= index {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    index + low as u64
}

impl Geometry {
    /// The map of `parameters`, which [`Geometry::check`] must have accepted.
    pub fn new(parameters: &GeometryParameters) -> Self {
        let mut zones: Vec<Zone> = Vec::with_capacity(parameters.zones.len());
        let mut first_block = 0;
        for zone in &parameters.zones {
            let zone = Zone::new(parameters, zone, first_block);
            first_block += zone.blocks;
            zones.push(zone);
        }
        Self {
            surfaces: parameters.surfaces,
            track_order: parameters.track_order,
            group_cylinders: u64::from(parameters.group_cylinders).max(1),
            first_blocks: zones.iter().map(|zone| zone.first_block).collect(),
            zones,
            blocks: first_block,
        }
    }

    /// The number of blocks that `parameters` hold, if they are consistent; else the key at fault and why.
    ///
    /// # Errors
    /// If spares, reserved space, slips or defects do not fit their zone or unit.
    pub fn check(parameters: &GeometryParameters) -> Result<u64, (String, String)> {
        let mut first_block = 0;
        for (number, zone) in parameters.zones.iter().enumerate() {
            let built = Zone::new(parameters, zone, first_block);
            check_zone(zone, &built).map_err(|(key, message)| {
                (format!("[[zone]] number {}: {key}", number + 1), message)
            })?;
            first_block += built.blocks;
        }
        Ok(first_block)
    }

    /// Removes slips that outnumber the spares of their unit, the last ones first; returns how many.
    ///
    /// DiskSim accepts such files and hands out some places twice.
    pub(crate) fn drop_unfitting_slips(parameters: &mut GeometryParameters) -> usize {
        let mut dropped = 0;
        for index in 0..parameters.zones.len() {
            let built = Zone::new(parameters, &parameters.zones[index], 0);
            if built.rule == SlipRule::ToEnd || built.unit_places == 0 {
                continue;
            }
            let spare = (built.unit_places - built.unit_blocks) as usize;
            let slips = &mut parameters.zones[index].slips;
            let before = slips.len();
            let (mut unit, mut kept) = (u64::MAX, 0);
            slips.retain(|slip| {
                if slip / built.unit_places != unit {
                    (unit, kept) = (slip / built.unit_places, 0);
                }
                kept += 1;
                kept <= spare
            });
            dropped += before - slips.len();
        }
        dropped
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Number of blocks of zone `zone`.
    ///
    /// # Panics
    /// If there is no such zone.
    pub fn zone_sectors(&self, zone: usize) -> u64 {
        self.zones[zone].blocks
    }

    #[inline]
    fn zone_of(&self, block: u64) -> &Zone {
        assert!(block < self.blocks, "block {block} of a disk with {} blocks", self.blocks);
        let after = self.first_blocks.partition_point(|first| *first <= block);
        &self.zones[after - 1]
    }

    /// The head that cylinder `cylinder` of `zone` begins its `head`-th track with, in head-first
    /// orders; its own inverse.
    #[inline]
    fn physical_head(&self, head: u64, cylinder: u64, zone: &Zone) -> u64 {
        let backwards = match self.track_order {
            TrackOrder::Serpentine => !cylinder.is_multiple_of(2),
            TrackOrder::SerpentineByCylinder => {
                !(cylinder + u64::from(zone.first_cylinder)).is_multiple_of(2)
            }
            _ => false,
        };
        if backwards { u64::from(self.surfaces) - 1 - head } else { head }
    }

    /// Where the `track`-th track of `zone` lies.
    #[inline]
    fn track(&self, zone: &Zone, track: u64) -> Track {
        let surfaces = u64::from(self.surfaces);
        let Some(turns) = self.track_order.seek_first() else {
            let cylinder = track / surfaces;
            let head = self.physical_head(track - cylinder * surfaces, cylinder, zone);
            return Track { cylinder, head, switches: track - cylinder };
        };
        let group = track / (surfaces * self.group_cylinders);
        let within = track - group * surfaces * self.group_cylinders;
        let tracks = self.group_tracks(zone, group);
        let surface = within / tracks;
        let (step, head) = turns.of(within - surface * tracks, surface, group, (tracks, surfaces));
        Track {
            cylinder: group * self.group_cylinders + step,
            head,
            switches: group * surfaces + surface,
        }
    }

    /// The number of the track of `zone` that lies on `cylinder`, counted from the zone's first,
    /// under `head`.
    fn track_at(&self, zone: &Zone, cylinder: u64, head: u64) -> u64 {
        let surfaces = u64::from(self.surfaces);
        let Some(turns) = self.track_order.seek_first() else {
            return cylinder * surfaces + self.physical_head(head, cylinder, zone);
        };
        let group = cylinder / self.group_cylinders;
        let tracks = self.group_tracks(zone, group);
        let (_, surface) = turns.of(0, 0, group, (tracks, surfaces));
        // Turning an order round is its own inverse.
        let surface = if surface == 0 { head } else { surfaces - 1 - head };
        let step = cylinder - group * self.group_cylinders;
        let (step, _) = turns.of(step, surface, group, (tracks, surfaces));
        group * surfaces * self.group_cylinders + surface * tracks + step
    }

    /// Tracks of each surface in the `group`-th group of `zone`: the last may be shorter.
    #[inline]
    fn group_tracks(&self, zone: &Zone, group: u64) -> u64 {
        self.group_cylinders.min(zone.cylinders - group * self.group_cylinders)
    }

    /// Where `block` lies.
    ///
    /// # Panics
    /// If `block` is beyond the end.
    #[inline]
    pub fn locate(&self, block: u64) -> Location {
        let zone = self.zone_of(block);
        let (place, run) = zone.place(block - zone.first_block);
        let track = place / zone.sectors_per_track;
        let sector = place - track * zone.sectors_per_track;
        let Track { cylinder, head, switches } = self.track(zone, track);
        Location {
            cylinder: zone.first_cylinder + cylinder as u32,
            head: head as u32,
            sector: sector as u32,
            angle: zone.track_angle(track, switches).wrapping_add(zone.width.wrapping_mul(sector)),
            width: zone.width,
            sectors_per_track: zone.sectors_per_track as u32,
            run: run as u32,
        }
    }

    /// The cylinder of `block`.
    ///
    /// # Panics
    /// If `block` is beyond the end.
    #[inline]
    pub fn cylinder_of(&self, block: u64) -> u32 {
        let zone = self.zone_of(block);
        let (place, _) = zone.place(block - zone.first_block);
        let cylinder = if self.track_order.seek_first().is_none() {
            place / (zone.sectors_per_track * u64::from(self.surfaces))
        } else {
            self.track(zone, place / zone.sectors_per_track).cylinder
        };
        zone.first_cylinder + cylinder as u32
    }

    /// The block at a physical sector, or `None` for a spare, slipped, reserved or unused one.
    pub fn block_at(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        let zone = self.zones.iter().find(|zone| {
            cylinder >= zone.first_cylinder
                && u64::from(cylinder - zone.first_cylinder) < zone.cylinders
        })?;
        if head >= self.surfaces || u64::from(sector) >= zone.sectors_per_track {
            return None;
        }
        let within = u64::from(cylinder - zone.first_cylinder);
        let track = self.track_at(zone, within, u64::from(head));
        let place = track * zone.sectors_per_track + u64::from(sector);
        // Remapped blocks are few: look among them first, then search the ascending rest.
        if let Some((from, _)) = zone.defects.iter().find(|(_, to)| *to == place / zone.grain) {
            return self.search(zone, from * zone.grain + place % zone.grain);
        }
        if zone.defects.iter().any(|(from, _)| *from == place / zone.grain) {
            return None;
        }
        self.search(zone, place)
    }

    /// The block of `zone` that lies at `place` before remapping.
    #[allow(clippy::unused_self)]
    fn search(&self, zone: &Zone, place: u64) -> Option<u64> {
        let before_remap = |block: u64| {
            let index = block + zone.reserved;
            zone.grain_place(index / zone.grain) * zone.grain + index % zone.grain
        };
        let (mut low, mut high) = (0, zone.blocks);
        while low < high {
            let middle = u64::midpoint(low, high);
            if before_remap(middle) < place {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low < zone.blocks && before_remap(low) == place).then_some(zone.first_block + low)
    }
}

fn check_zone(zone: &ZoneParameters, built: &Zone) -> Result<(), (String, String)> {
    let grains = built.places / built.grain;
    if built.unit_blocks == 0 {
        return Err((
            "spares".to_owned(),
            format!("{} leave nothing of a unit of {} places", zone.spares, built.unit_places),
        ));
    }
    if built.blocks == 0 || built.blocks > built.places {
        return Err((
            "reserved_sectors".to_owned(),
            format!(
                "{} with {} spares per unit and {} slips leave nothing of {} sectors",
                zone.reserved_sectors,
                zone.spares,
                zone.slips.len(),
                built.places
            ),
        ));
    }
    if let Some(slip) = built.slips.iter().find(|slip| **slip >= grains) {
        return Err(("slips".to_owned(), format!("{slip} lies beyond the zone's {grains}")));
    }
    for (from, to) in &built.defects {
        if *from >= grains || *to >= grains {
            return Err((
                "defects".to_owned(),
                format!("[{from}, {to}] lies beyond the zone's {grains}"),
            ));
        }
    }
    check_slips_fit(built)
}

/// Slips must not push blocks out of the unit that absorbs them.
fn check_slips_fit(built: &Zone) -> Result<(), (String, String)> {
    if built.rule != SlipRule::ToEnd && built.grain == 1 {
        for slip in &built.slips {
            let start = slip / built.unit_places * built.unit_places;
            let end = (start + built.unit_places).min(built.places);
            let slipped = built.slips.partition_point(|other| *other < end)
                - built.slips.partition_point(|other| *other < start);
            let spare = built.unit_places - built.unit_blocks;
            if slipped as u64 > spare {
                return Err((
                    "slips".to_owned(),
                    format!("{slipped} of them share a unit with {spare} spares (place {slip})"),
                ));
            }
        }
    }
    let last = built.place(built.blocks - 1).0;
    if last >= built.places {
        return Err((
            "slips".to_owned(),
            format!("push the last block to place {last} of {}", built.places),
        ));
    }
    Ok(())
}
