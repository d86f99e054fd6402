//! Tracks: how many sectors they have where, and how they are turned against each other.

use super::session::{SMALL, Session};
use crate::disk::ProbeError;
use crate::estimate::statistics::{fraction, median};
use crate::estimate::surfaces::{Surfaces, surfaces};
use crate::estimate::track::{End, TrackFit, angle_of_gap, fit};

/// Reads of one series of the fine measurement, the passes in which its places are taken, and places a
/// track. A pass goes down by thirds of a track, and each starts one place below the one before it: what a
/// drive reads ahead until the next command is decoded, less than a sixth of a turn, is then not read later.
/// Chosen by us.
const PASSES: u64 = 3;
const PASS_READS: u64 = 12;
const PLACES_A_TRACK: u64 = 12;
const PASS_STRIDE: u64 = 4;

/// Places at which tracks are measured first, spread over the disk.
const PLACES: usize = 17;

/// Further places at most, where neighbours differ.
const FURTHER_PLACES: usize = 34;

/// Tracks whose sectors differ by less belong to one zone, as a share. Chosen by us: a few times
/// what the measurement scatters by.
const SAME: f64 = 0.006;

/// Share of the probe's time after which no further place is measured.
const SHARE_FOR_TRACKS: f64 = 0.35;

/// Series at a place at most, and the share of agreeing pairs that makes a further one needless: without
/// late answers all agree but those across a change of track, a third. Chosen by us.
const ATTEMPTS: usize = 3;
const CLEAR: f64 = 0.55;

/// Sectors above a place that earlier reads have left in the buffer, at least; chosen by us: 128 KiB.
const BUFFERED: u64 = 256;

/// Tracks that are looked at for surfaces, at each of as many places.
const ROW_TRACKS: u64 = 84;
const ROW_PLACES: usize = 3;

/// The tracks at one place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlaceTracks {
    /// First sector of the reads there, the highest.
    pub(crate) sector: u64,
    pub(crate) fit: TrackFit,
}

/// A part of the disk whose tracks are alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ZoneSeen {
    pub(crate) first_sector: u64,
    /// Sectors of 512 bytes of a track.
    pub(crate) track_sectors: f64,
}

/// The whole of a disk's tracks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tracks {
    /// Ascending, the first at sector 0.
    pub(crate) zones: Vec<ZoneSeen>,
    pub(crate) places: Vec<PlaceTracks>,
    pub(crate) skews: Vec<f64>,
    pub(crate) surfaces: Surfaces,
    /// Sectors of the disk.
    pub(crate) sectors: u64,
}

impl Tracks {
    /// The track that holds `sector`, counted from the disk's start, with its part before the sector.
    pub(crate) fn track_of(&self, sector: u64) -> f64 {
        let mut tracks = 0.0;
        for (number, zone) in self.zones.iter().enumerate() {
            let end = self.zones.get(number + 1).map_or(self.sectors, |next| next.first_sector);
            if sector < end || number + 1 == self.zones.len() {
                return tracks + (sector - zone.first_sector) as f64 / zone.track_sectors;
            }
            tracks += (end - zone.first_sector) as f64 / zone.track_sectors;
        }
        tracks
    }

    /// The sector at which `track` begins; the inverse of [`Tracks::track_of`].
    pub(crate) fn sector_of(&self, track: f64) -> u64 {
        let mut before = 0.0;
        for (number, zone) in self.zones.iter().enumerate() {
            let end = self.zones.get(number + 1).map_or(self.sectors, |next| next.first_sector);
            let here = (end - zone.first_sector) as f64 / zone.track_sectors;
            if track < before + here || number + 1 == self.zones.len() {
                let into = (track - before).max(0.0) * zone.track_sectors;
                return (zone.first_sector + into as u64).min(self.sectors);
            }
            before += here;
        }
        self.sectors
    }

    /// Tracks of the disk.
    pub(crate) fn count(&self) -> f64 {
        self.track_of(self.sectors)
    }

    /// Sectors of the track that holds `sector`.
    pub(crate) fn sectors_at(&self, sector: u64) -> f64 {
        let zone = self.zones.partition_point(|zone| zone.first_sector <= sector);
        self.zones[zone.saturating_sub(1)].track_sectors
    }
}

/// Measures the tracks of a disk whose platter turns in `period_ns`; `None` if no tracks are seen.
pub(crate) fn measure(
    session: &mut Session<'_>,
    period_ns: f64,
) -> Result<Option<Tracks>, ProbeError> {
    session.step("tracks and zones")?;
    let sectors = session.sectors();
    let mut places: Vec<PlaceTracks> = Vec::new();
    for number in 0..PLACES {
        let top = (sectors as f64 * (number as f64 + 0.5) / PLACES as f64) as u64;
        let top = if number == 0 { sectors / 200 } else { top };
        let near = places.last().map(|place| place.fit.sectors);
        if let Some(found) = at(session, top, period_ns, near)? {
            places.push(found);
        }
    }
    if places.len() < PLACES / 2 {
        return Ok(None);
    }
    // A series that is made again lies lower than the one before it.
    places.sort_by_key(|place| place.sector);
    for _ in 0..FURTHER_PLACES {
        if session.share_spent() > SHARE_FOR_TRACKS {
            break;
        }
        let Some((middle, near)) = widest_doubt(&places, sectors) else { break };
        match at(session, middle, period_ns, Some(near))? {
            Some(found) => {
                let index = places.partition_point(|place| place.sector < found.sector);
                places.insert(index, found);
            }
            None => break,
        }
    }
    look_again(session, &mut places, period_ns)?;
    places.sort_by_key(|place| place.sector);
    if places.is_empty() {
        return Ok(None);
    }
    let zones = zones_of(&places);
    let skews: Vec<f64> = places.iter().flat_map(|place| place.fit.skews.iter().copied()).collect();
    let mut tracks = Tracks {
        zones,
        places,
        surfaces: Surfaces { surfaces: 1, track_skew: 0.0, cylinder_skew: 0.0 },
        skews,
        sectors,
    };
    session.step("surfaces")?;
    let mut rows = Vec::new();
    for number in 0..ROW_PLACES {
        let top = (sectors as f64 * (number as f64 + 0.6) / ROW_PLACES as f64) as u64;
        rows.push(surfaces(&row(session, &tracks, top, period_ns)?));
    }
    rows.sort_by_key(|row| row.surfaces);
    let middle = rows[ROW_PLACES / 2];
    let agreeing = rows.iter().filter(|row| row.surfaces == middle.surfaces).count();
    if agreeing * 2 > ROW_PLACES {
        tracks.surfaces = middle;
    }
    Ok(Some(tracks))
}

/// Measures places again that differ from both neighbours in the same direction: a zone between two
/// others is seen again, a mistake is not.
fn look_again(
    session: &mut Session<'_>,
    places: &mut Vec<PlaceTracks>,
    period_ns: f64,
) -> Result<(), ProbeError> {
    let mut doubted = Vec::new();
    for number in 0..places.len() {
        let here = places[number].fit.sectors;
        let off = |other: Option<&PlaceTracks>| other.map(|other| here / other.fit.sectors - 1.0);
        let before = number.checked_sub(1).and_then(|before| off(places.get(before)));
        let after = off(places.get(number + 1));
        let is_odd = match (before, after) {
            (Some(before), Some(after)) => {
                before.abs().min(after.abs()) > SAME && before.signum() == after.signum()
            }
            (Some(one), None) | (None, Some(one)) => one > SAME,
            (None, None) => false,
        };
        if is_odd {
            doubted.push(number);
        }
    }
    for number in doubted.into_iter().rev() {
        let place = &places[number];
        let top = place.sector + 3 * place.fit.sectors as u64;
        let again = at(session, top, period_ns, Some(place.fit.sectors))?;
        match again {
            Some(again) if (again.fit.sectors / place.fit.sectors - 1.0).abs() < SAME => {}
            Some(again) if again.fit.agreeing > place.fit.agreeing => places[number] = again,
            // Two answers that contradict each other are none.
            _ => {
                places.remove(number);
            }
        }
    }
    Ok(())
}

/// The middle of the two neighbouring places that differ most for how far apart they are, with what is
/// expected there.
fn widest_doubt(places: &[PlaceTracks], sectors: u64) -> Option<(u64, f64)> {
    places
        .windows(2)
        .filter_map(|pair| {
            let (low, high) = (pair[0].fit.sectors, pair[1].fit.sectors);
            let differ = (high / low - 1.0).abs();
            let apart = (pair[1].sector - pair[0].sector) as f64 / sectors as f64;
            let doubt = differ.min(0.1) * apart;
            (differ > SAME && apart > 0.004).then_some((doubt, pair))
        })
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, pair)| {
            let middle = u64::midpoint(pair[0].sector, pair[1].sector);
            (middle, pair[0].fit.sectors)
        })
}

/// Zones out of places: neighbours that agree are one, boundaries lie half way between others.
fn zones_of(places: &[PlaceTracks]) -> Vec<ZoneSeen> {
    let mut groups: Vec<Vec<&PlaceTracks>> = Vec::new();
    for place in places {
        let joins = groups.last().is_some_and(|group| {
            let all: Vec<f64> = group.iter().map(|one| one.fit.sectors).collect();
            (place.fit.sectors / median(&all) - 1.0).abs() < SAME
        });
        match groups.last_mut() {
            Some(group) if joins => group.push(place),
            _ => groups.push(vec![place]),
        }
    }
    let mut zones = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let first_sector = if number == 0 {
            0
        } else {
            let before = groups[number - 1].last().map_or(0, |place| place.sector);
            u64::midpoint(before, group[0].sector) / SMALL * SMALL
        };
        let all: Vec<f64> = group.iter().map(|place| place.fit.sectors).collect();
        zones.push(ZoneSeen { first_sector, track_sectors: median(&all) });
    }
    zones
}

/// The tracks just below `top`.
fn at(
    session: &mut Session<'_>,
    top: u64,
    period_ns: f64,
    near: Option<f64>,
) -> Result<Option<PlaceTracks>, ProbeError> {
    let mut best: Option<PlaceTracks> = None;
    let mut top = top;
    for attempt in 0..ATTEMPTS {
        let expected = if attempt == 0 { near } else { None };
        let Some((sectors, from)) = coarse(session, top, period_ns, expected)? else { continue };
        let step = sectors / PLACES_A_TRACK as f64 / SMALL as f64;
        let step = step.round().max(1.0) as u64 * SMALL;
        // Below what was read already, which may still be in the buffer.
        let from = from.saturating_sub(BUFFERED);
        if from < PASS_READS * PASS_STRIDE * step {
            return Ok(best);
        }
        let mut ends = Vec::with_capacity((PASSES * PASS_READS) as usize);
        for pass in 0..PASSES {
            for number in 0..PASS_READS {
                let first = from - (number * PASS_STRIDE + pass) * step;
                ends.push(end_of(session, first)?);
            }
        }
        if let Some(found) = fit(&ends, period_ns, sectors)
            && found.agreeing > 0.4
            && best.as_ref().is_none_or(|other| found.agreeing > other.fit.agreeing)
        {
            best = Some(PlaceTracks { sector: from, fit: found });
        }
        if best.as_ref().is_some_and(|found| found.fit.agreeing > CLEAR) {
            break;
        }
        top = from.saturating_sub(PASS_READS * PASS_STRIDE * step + BUFFERED);
    }
    Ok(best)
}

fn end_of(session: &mut Session<'_>, first: u64) -> Result<End, ProbeError> {
    let extent = session.within(first, SMALL);
    let answer = session.read_small(extent.first)?;
    Ok(End { sector: extent.first as f64, at_ns: answer.end.0 as f64 })
}

/// About how many sectors a track has below `top`: the angle between reads, their gap doubled until they
/// are a good part of a turn apart. With the first sector below which nothing was read.
fn coarse(
    session: &mut Session<'_>,
    top: u64,
    period_ns: f64,
    near: Option<f64>,
) -> Result<Option<(f64, u64)>, ProbeError> {
    const CHAIN: u64 = 6;
    // What the track at another place has is within a factor of two of what it has here.
    let mut gap = match near {
        Some(sectors) => (sectors / 16.0 / SMALL as f64).floor().max(1.0) as u64 * SMALL,
        None => SMALL,
    };
    let mut expected = 0.0;
    let mut from = top;
    loop {
        if from < (CHAIN + 1) * gap {
            return Ok(None);
        }
        let mut ends = Vec::new();
        for number in 0..CHAIN {
            ends.push(end_of(session, from - number * gap)?);
        }
        from -= (CHAIN + 1) * gap;
        let Some(angle) = angle_of_gap(&ends, period_ns, expected) else { return Ok(None) };
        if angle >= 0.22 {
            return Ok(Some((gap as f64 / angle, from)));
        }
        if gap > 1 << 24 {
            return Ok(None);
        }
        expected = (2.0 * angle).max(0.0);
        gap *= 2;
    }
}

/// Skews of tracks that follow each other below `top`, in the order in which they are read.
fn row(
    session: &mut Session<'_>,
    tracks: &Tracks,
    top: u64,
    period_ns: f64,
) -> Result<Vec<f64>, ProbeError> {
    let sectors = tracks.sectors_at(top);
    let count = ROW_TRACKS.min((top as f64 / sectors) as u64);
    let mut ends = Vec::new();
    for number in 0..count {
        let first = top - (number as f64 * sectors).round() as u64;
        ends.push(end_of(session, first)?);
    }
    Ok(ends
        .windows(2)
        .map(|pair| {
            let turns = (pair[0].at_ns - pair[1].at_ns) / period_ns;
            fraction(turns - (pair[0].sector - pair[1].sector) / sectors)
        })
        .collect())
}
