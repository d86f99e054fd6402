//! The time to move over a distance: reads at that distance from each other, each aimed so that it halves
//! what is not known yet.

use super::session::{SMALL, Session};
use super::tracks::Tracks;
use crate::disk::ProbeError;
use crate::estimate::seek::{Bound, Interval};
use crate::estimate::statistics::fraction;

/// Reads that narrow one interval: each halves it, down to a 128th of a turn.
const STEPS: usize = 8;

/// Distances grow by this factor; chosen by us: a square root is followed to 2 % by lines between such
/// points.
const GROWTH: f64 = 1.5;

/// Places at which each distance is measured: more for short ones, which loads with locality
/// consist of. Chosen by us.
const PLACES_SHORT: usize = 7;
const PLACES_LONG: usize = 5;

/// Rounds that are made however little time is left, and the share of it after which there are no more.
const ROUNDS_MIN: usize = 2;
const SHARE_FOR_SEEKS: f64 = 0.7;

/// Up to this distance the arm goes on in one direction; beyond it goes to and fro between two places.
const CHAIN_TRACKS: f64 = 256.0;

/// Everything that was seen over one distance.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DistanceSeen {
    /// Tracks from one read to the next.
    pub(crate) tracks: f64,
    pub(crate) bounds: Vec<Bound>,
    /// The least time at each place, ns.
    pub(crate) places_ns: Vec<f64>,
}

/// Distances to measure: in tracks, multiples of a cylinder's, and one track.
pub(crate) fn distances(tracks: f64, surfaces: u32) -> Vec<f64> {
    let unit = f64::from(surfaces.max(1));
    let mut found = if surfaces > 1 { vec![1.0] } else { Vec::new() };
    let (mut cylinders, most) = (1.0_f64, 0.97 * tracks / unit);
    while cylinders < most {
        found.push(cylinders * unit);
        cylinders = (cylinders * GROWTH).floor().max(cylinders + 1.0);
    }
    if most > 1.0 {
        found.push((most * unit).floor());
    }
    found.dedup();
    found
}

/// Where reads of one region go on, downwards, and the angle there.
#[derive(Debug, Clone, Copy)]
struct Region {
    sector: u64,
    /// Turns at which a read of `sector` ended.
    turns: f64,
}

/// Measures all distances, one place each in turn, so that a probe that is short of time knows a little of
/// all of them.
pub(crate) fn measure(
    session: &mut Session<'_>,
    tracks: &Tracks,
    period_ns: f64,
) -> Result<Vec<DistanceSeen>, ProbeError> {
    session.step("seek times")?;
    let count = tracks.count();
    let mut seen: Vec<DistanceSeen> = distances(count, tracks.surfaces.surfaces)
        .into_iter()
        .map(|tracks| DistanceSeen { tracks, bounds: Vec::new(), places_ns: Vec::new() })
        .collect();
    for round in 0..PLACES_SHORT {
        if round >= ROUNDS_MIN && session.share_spent() > SHARE_FOR_SEEKS {
            break;
        }
        for all in &mut seen {
            let distance = all.tracks;
            let chained = distance <= CHAIN_TRACKS && distance * 3.0 * (STEPS as f64 + 2.0) < count;
            if !chained && round >= PLACES_LONG {
                continue;
            }
            let interval = if chained {
                chain(session, tracks, period_ns, distance, &mut all.bounds)?
            } else {
                to_and_fro(session, tracks, period_ns, distance, &mut all.bounds)?
            };
            all.places_ns.extend(interval.map(|found| found.middle_ns()));
        }
    }
    Ok(seen)
}

/// Goes down by `distance` again and again.
fn chain(
    session: &mut Session<'_>,
    tracks: &Tracks,
    period_ns: f64,
    distance: f64,
    bounds: &mut Vec<Bound>,
) -> Result<Option<Interval>, ProbeError> {
    let room = (STEPS as f64 + 2.0) * (distance + 1.0);
    let top = room + session.share() * (tracks.count() - room).max(1.0);
    let mut sector = session.within(tracks.sector_of(top), SMALL).first;
    let mut last_end = session.read_small(sector)?.end.0 as f64;
    // By how much the tracks in between are turned, as far as it is known.
    let mut turned = session.share();
    let mut interval: Option<Interval> = None;
    for _ in 0..=STEPS {
        let sectors = tracks.sectors_at(sector);
        let down = distance * sectors;
        let wanted_turns = match &interval {
            Some(interval) => interval.middle_ns() / period_ns,
            None => session.share(),
        };
        // Down by the distance, and by so much more or less that the angle is the one wanted.
        let plain = -down / sectors - turned;
        let shift = fraction(wanted_turns - plain + 0.5) - 0.5;
        let target = (sector as f64 - down + shift * sectors).max(0.0) as u64;
        let target = session.within(target, SMALL).first;
        if target >= sector {
            break;
        }
        let answer = session.read_small(target)?;
        let end = answer.end.0 as f64;
        let taken = end - last_end;
        let moved = (target as f64 - sector as f64) / sectors;
        turned = fraction(moved - taken / period_ns);
        note(&mut interval, taken, period_ns);
        bounds.push(Bound { tracks: distance, taken_ns: taken });
        (sector, last_end) = (target, end);
        if interval.is_some_and(|interval| interval.width_ns() < period_ns / 150.0) {
            break;
        }
    }
    Ok(interval)
}

/// Goes between two places `distance` apart.
fn to_and_fro(
    session: &mut Session<'_>,
    tracks: &Tracks,
    period_ns: f64,
    distance: f64,
    bounds: &mut Vec<Bound>,
) -> Result<Option<Interval>, ProbeError> {
    let count = tracks.count();
    // Each region is left downwards by a track a visit at most.
    let room = 2.0 * STEPS as f64 + 4.0;
    let low = room + session.share() * (count - distance - room).max(0.0);
    let mut regions = [low, (low + distance).min(count)]
        .map(|track| Region { sector: tracks.sector_of(track), turns: f64::NAN });
    let mut interval: Option<Interval> = None;
    let mut last_end = f64::NAN;
    for visit in 0..2 + 2 * STEPS {
        let region = regions[visit % 2];
        let sectors = tracks.sectors_at(region.sector);
        let down = match &interval {
            Some(interval) if region.turns.is_finite() => {
                let wanted = last_end / period_ns + interval.middle_ns() / period_ns;
                fraction(region.turns - wanted)
            }
            _ => session.share(),
        };
        let target = region.sector.saturating_sub((down * sectors) as u64 + SMALL);
        let target = session.within(target, SMALL).first;
        let answer = session.read_small(target)?;
        let end = answer.end.0 as f64;
        regions[visit % 2] = Region { sector: target, turns: end / period_ns };
        if last_end.is_finite() {
            let taken = end - last_end;
            // The first visit of each region comes from somewhere else, or at any angle.
            note(&mut interval, taken, period_ns);
            bounds.push(Bound { tracks: distance, taken_ns: taken });
        }
        last_end = end;
        if interval.is_some_and(|interval| interval.width_ns() < period_ns / 150.0) {
            break;
        }
    }
    Ok(interval)
}

/// Takes the time of one read into account, unless it was late by far.
fn note(interval: &mut Option<Interval>, taken_ns: f64, period_ns: f64) {
    match interval {
        None => *interval = Some(Interval::new(taken_ns, period_ns)),
        Some(interval) if taken_ns < interval.high_ns + 1.5 * period_ns => {
            interval.narrow(taken_ns);
        }
        Some(_) => {}
    }
}

/// The least time from one sector to another on the same track; only of use on a drive that keeps no data.
pub(crate) fn same_track(
    session: &mut Session<'_>,
    tracks: &Tracks,
    period_ns: f64,
) -> Result<Vec<Bound>, ProbeError> {
    let mut bounds = Vec::new();
    for _ in 0..PLACES_SHORT {
        let top = 2.0 + session.share() * (tracks.count() - 30.0).max(1.0);
        let mut sector = session.within(tracks.sector_of(top), SMALL).first;
        let mut last_end = session.read_small(sector)?.end.0 as f64;
        let mut interval: Option<Interval> = None;
        for _ in 0..=STEPS {
            let up = match &interval {
                Some(interval) => fraction(interval.middle_ns() / period_ns),
                None => 0.5 + 0.4 * session.share(),
            };
            // The shorter way to the angle, up or down, crosses to another track less often.
            let way = if up > 0.5 { up - 1.0 } else { up };
            let target = sector as f64 + way * tracks.sectors_at(sector) + SMALL as f64;
            let target = target.max(0.0) as u64;
            let target = session.within(target, SMALL).first;
            let end = session.read_small(target)?.end.0 as f64;
            let taken = end - last_end;
            note(&mut interval, taken, period_ns);
            bounds.push(Bound { tracks: 0.0, taken_ns: taken });
            (sector, last_end) = (target, end);
        }
    }
    Ok(bounds)
}
