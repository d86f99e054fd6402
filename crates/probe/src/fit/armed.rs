//! A drive with an arm, out of what was seen of it.

use agewell_disk::parameters::{
    BufferParameters, BusParameters, FastWrite, GROUP_CYLINDERS, GeometryParameters, KeepRequested,
    MechanicalParameters, OverheadParameters, ReadAhead, SeekCurve, Sparing, TrackOrder,
    ZoneParameters,
};
use agewell_disk::{DeviceKind, DeviceParameters};

use super::{Sources, contradiction, device, measured, on_model, short};
use crate::disk::{DiskFacts, Extent, ProbedDisk};
use crate::estimate::seek::{least_time_ns, rising};
use crate::estimate::statistics::{mean, median, median_angle, quantile, spread, wrap};
use crate::measure::buffer::{BufferSeen, PatternSeen, QueueSeen, ahead_again, follow, together};
use crate::measure::seeks::{self, DistanceSeen};
use crate::measure::tracks::Tracks;
use crate::measure::writes::{self, WritesSeen};
use crate::modelled::{Disturbance, ModelledDisk};

/// Everything that was seen of a drive with an arm.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArmedSeen {
    pub(crate) facts: DiskFacts,
    pub(crate) period_ns: f64,
    pub(crate) period_source: String,
    pub(crate) tracks: Tracks,
    pub(crate) buffer: BufferSeen,
    pub(crate) seeks: Vec<DistanceSeen>,
    /// Least time from one sector of a track to another, ns, where it can be seen.
    pub(crate) same_track_ns: Option<f64>,
    pub(crate) patterns: Vec<PatternSeen>,
    pub(crate) queue: QueueSeen,
}

/// A change of track must be done before the next track's first sector comes round, or every track costs
/// a turn more: it is taken to be at most this share of the skew. Chosen by us.
const WITHIN_SKEW: f64 = 0.95;

/// A policy is preferred to one that stands before it if it fits better by this much, as a logarithm: the
/// runs that judge it scatter by as much. Chosen by us.
const BETTER: f64 = 0.015;

/// Rounds in which the seek curve is corrected by what the model shows of itself.
const CORRECTIONS: usize = 3;

/// The drive's parameters.
pub(crate) fn fit(seen: &ArmedSeen) -> DeviceParameters {
    let mut sources = Sources::new();
    let mut drive = draft(seen, &mut sources);
    let times = least_times(&seen.seeks, seen.period_ns);
    set_seeks(seen, &mut drive, &times);
    let drafted = build(seen, &drive, Sources::new());
    if contradiction(&drafted).is_some() {
        // No model can be made of it, and none is asked; who called this finds the same.
        return drafted;
    }
    choose_buffer(seen, &mut drive);
    choose_bus(seen, &mut drive, &times);
    correct_seeks(seen, &mut drive, &times);
    choose_queue_depth(seen, &mut drive);
    name_sources(seen, &mut sources);
    build(seen, &drive, sources)
}

fn build(seen: &ArmedSeen, drive: &MechanicalParameters, sources: Sources) -> DeviceParameters {
    device(&seen.facts, DeviceKind::Mechanical(Box::new(drive.clone())), sources)
}

/// Least times by distance, ns.
fn least_times(seeks: &[DistanceSeen], period_ns: f64) -> Vec<(f64, f64)> {
    seeks
        .iter()
        .filter_map(|distance| {
            let taken: Vec<f64> = distance.bounds.iter().map(|bound| bound.taken_ns).collect();
            // Late answers bound nothing.
            let limit = quantile(&taken, 0.25) + 1.6 * period_ns;
            let kept: Vec<f64> = taken.into_iter().filter(|taken| *taken < limit).collect();
            least_time_ns(&kept, period_ns).map(|time| (distance.tracks, time))
        })
        .collect()
}

/// Geometry, rotation, overheads, bus: what is read off directly.
fn draft(seen: &ArmedSeen, sources: &mut Sources) -> MechanicalParameters {
    let bytes = seen.facts.sector_bytes.max(512);
    let per = f64::from(bytes) / 512.0;
    let (geometry, capacity) = geometry(seen, per, sources);
    let hit = &seen.buffer;
    let sector_ns = if hit.is_there() && !hit.hits_ns[1].is_empty() {
        let apart = quantile(&hit.hits_ns[1], 0.3) - quantile(&hit.hits_ns[0], 0.3);
        (apart / 56.0).max(0.0)
    } else {
        0.0
    };
    let bus = BusParameters {
        read_sector_ps: (sector_ns * per * 1000.0) as u64,
        write_sector_ps: (sector_ns * per * 1000.0) as u64,
        ..BusParameters::default()
    };
    let hit_ns = if hit.is_there() { (hit.hit_ns() - 8.0 * sector_ns).max(0.0) } else { 0.0 };
    let overhead = overhead(hit_ns, hit_ns);
    let fast_write = match seen.facts.write_cache {
        Some(true) => FastWrite::Always,
        _ => FastWrite::Never,
    };
    let buffer = BufferParameters {
        segments: seen.buffer.segments,
        segment_sectors: (seen.buffer.ahead_sectors as f64 / per) as u64,
        fast_write,
        read_ahead_maximum: 1 << 32,
        ..BufferParameters::default()
    };
    MechanicalParameters {
        sector_bytes: bytes,
        capacity,
        rotation_period_ps: (seen.period_ns * 1000.0).round() as u64,
        geometry,
        seek: SeekCurve::Points(vec![(1, 1_000_000)]),
        head_switch_ns: 0,
        write_settle_ns: 0,
        same_cylinder_ns: 0,
        overhead,
        bus,
        buffer,
        queue_depth: 1,
    }
}

fn overhead(hit_ns: f64, miss_ns: f64) -> OverheadParameters {
    let (hit, miss) = (hit_ns as u64, miss_ns as u64);
    OverheadParameters {
        read_hit_ns: [hit; 2],
        read_miss_ns: [miss; 2],
        write_hit_ns: [hit.max(1); 2],
        write_miss_ns: [miss; 2],
        ..OverheadParameters::default()
    }
}

/// A skew in [0, 1) turns; just below a whole turn is a little less than none.
fn skew_turns(skew: f64) -> f64 {
    wrap(skew - 0.45) + 0.45
}

/// Surfaces, cylinders and zones, and the device sectors that they hold.
fn geometry(seen: &ArmedSeen, per: f64, sources: &mut Sources) -> (GeometryParameters, u64) {
    let tracks = &seen.tracks;
    let capacity = (seen.facts.sectors as f64 / per) as u64;
    let surfaces = tracks.surfaces.surfaces.max(1);
    let (track_skew, cylinder_skew) = if surfaces > 1 {
        (tracks.surfaces.track_skew, tracks.surfaces.cylinder_skew)
    } else {
        let middle = median_angle(&tracks.skews, tracks.skews.first().copied().unwrap_or(0.0));
        // Where changes of head and of cylinder cannot be kept apart each track has their mean.
        let off: Vec<f64> =
            tracks.skews.iter().map(|skew| wrap(skew - middle).clamp(-0.2, 0.2)).collect();
        let skew = middle + mean(&off);
        (skew, skew)
    };
    let (track_skew, cylinder_skew) =
        (skew_turns(track_skew).max(0.0), skew_turns(cylinder_skew).max(0.0));
    let mut zones: Vec<ZoneParameters> = Vec::new();
    let (mut held, mut cylinder) = (0_u64, 0_u32);
    for (number, zone) in tracks.zones.iter().enumerate() {
        let is_last = number + 1 == tracks.zones.len();
        let end = if is_last {
            capacity
        } else {
            (tracks.zones[number + 1].first_sector as f64 / per) as u64
        };
        let track = (zone.track_sectors / per).round().clamp(1.0, 1e6) as u64;
        let wanted = end.saturating_sub(held);
        let cylinder_sectors = track * u64::from(surfaces);
        let cylinders = if is_last {
            wanted.div_ceil(cylinder_sectors)
        } else {
            (wanted + cylinder_sectors / 2) / cylinder_sectors
        };
        let cylinders = cylinders.min(capacity.saturating_sub(held).div_ceil(cylinder_sectors));
        if cylinders == 0 {
            continue;
        }
        zones.push(ZoneParameters {
            first_cylinder: cylinder,
            last_cylinder: cylinder + cylinders as u32 - 1,
            sectors_per_track: track as u32,
            first_sector_offset: 0.0,
            track_skew: track_skew * track as f64,
            cylinder_skew: cylinder_skew * track as f64,
            reserved_sectors: 0,
            spares: 0,
            slips: Vec::new(),
            defects: Vec::new(),
        });
        held += cylinders * cylinder_sectors;
        cylinder += cylinders as u32;
    }
    sources.insert(
        "zone".into(),
        format!(
            "measured: {} reads at {} places, spread {} of a turn",
            tracks.places.len() * 42,
            tracks.places.len(),
            short(median(
                &tracks.places.iter().map(|place| place.fit.spread).collect::<Vec<f64>>()
            )),
        ),
    );
    let geometry = GeometryParameters {
        surfaces,
        cylinders: cylinder,
        track_order: TrackOrder::Ascending,
        sparing: Sparing::None,
        group_cylinders: GROUP_CYLINDERS,
        spare_range_cylinders: 1,
        zones,
    };
    (geometry, capacity.min(held))
}

/// Cuts least times into overhead and seek, and keeps changes of track within their skews.
fn set_seeks(seen: &ArmedSeen, drive: &mut MechanicalParameters, times: &[(f64, f64)]) {
    let surfaces = f64::from(drive.geometry.surfaces);
    let Some(zone) = drive.geometry.zones.first() else { return };
    let track = f64::from(zone.sectors_per_track);
    let per = f64::from(drive.sector_bytes) / 512.0;
    // The slower of medium and bus carries a small read, the other its last sector.
    let (medium, bus) = (seen.period_ns / track, drive.bus.read_sector_ps as f64 / 1000.0);
    let transfer = (8.0 / per).max(1.0) * medium.max(bus) + medium.min(bus);
    let miss = match seen.same_track_ns {
        Some(time) if !seen.buffer.is_there() => (time - transfer).max(0.0),
        _ => drive.overhead.read_hit_ns[0] as f64,
    };
    let within = |skew: f64| WITHIN_SKEW * skew / track * seen.period_ns;
    let (track_skew, cylinder_skew) = (within(zone.track_skew), within(zone.cylinder_skew));
    let plain: Vec<(f64, f64)> =
        times.iter().map(|(tracks, time)| (*tracks, time - transfer)).collect();
    let head = plain.iter().find(|(tracks, _)| *tracks < surfaces).map(|(_, time)| *time);
    let one = plain.iter().find(|(tracks, _)| *tracks >= surfaces).map(|(_, time)| *time);
    // What a change of track takes beyond its skew is not the arm's: the drive takes it before.
    let mut overhead = miss;
    if let Some(time) = head.filter(|_| track_skew > 0.0) {
        overhead = overhead.max(time - track_skew);
    }
    if let Some(time) = one.filter(|_| cylinder_skew > 0.0) {
        overhead = overhead.max(time - cylinder_skew);
    }
    drive.overhead.read_miss_ns = [overhead.max(0.0) as u64; 2];
    drive.overhead.write_miss_ns = [overhead.max(0.0) as u64; 2];
    drive.head_switch_ns = head.map_or(0, |time| (time - overhead).max(0.0) as u64);
    let far: Vec<(f64, f64, f64)> = plain
        .iter()
        .filter(|(tracks, _)| *tracks >= surfaces)
        .map(|(tracks, time)| ((tracks / surfaces).round(), (time - overhead).max(1.0), 1.0))
        .collect();
    drive.seek = curve(&far, drive.geometry.cylinders);
}

/// Longest seek, ns; chosen by us: no arm takes a second.
const SEEK_MAX_NS: f64 = 1e9;

/// A rising curve through `points` (cylinders, ns, weight).
fn curve(points: &[(f64, f64, f64)], cylinders: u32) -> SeekCurve {
    let mut found: Vec<(u32, u64)> = Vec::new();
    for (distance, time) in rising(points) {
        let distance = distance as u32;
        if distance >= 1
            && distance < cylinders.max(2)
            && found.last().is_none_or(|(last, _)| *last < distance)
        {
            found.push((distance, time.clamp(1.0, SEEK_MAX_NS) as u64));
        }
    }
    if found.is_empty() {
        found.push((1, 1_000_000));
    }
    SeekCurve::Points(found)
}

/// Puts the measurement of seeks to the model, and moves the curve by what it shows too little or too much.
fn correct_seeks(seen: &ArmedSeen, drive: &mut MechanicalParameters, times: &[(f64, f64)]) {
    let mut wanted = times.to_vec();
    for _ in 0..CORRECTIONS {
        let parameters = build(seen, drive, Sources::new());
        let Some(own) =
            on_model(&parameters, |session| seeks::measure(session, &seen.tracks, seen.period_ns))
        else {
            return;
        };
        let own = least_times(&own, seen.period_ns);
        for ((wanted, target), (_, shown)) in wanted.iter_mut().zip(times).zip(&own) {
            // Half of the difference: what is seen of the model scatters as well.
            wanted.1 += 0.5 * (target.1 - shown);
        }
        set_seeks(seen, drive, &wanted);
    }
}

/// How badly the model's patterns fit the disk's: the mean of what they are off by, as a logarithm.
fn misfit(seen: &ArmedSeen, drive: &MechanicalParameters) -> f64 {
    let parameters = build(seen, drive, Sources::new());
    let off = on_model(&parameters, |session| {
        let mut off = Vec::new();
        for group in seen.patterns.chunk_by(|one, next| one.pattern.name == next.pattern.name) {
            let (mut on_disk, mut on_model) = (Vec::new(), Vec::new());
            for each in group {
                on_model.push(follow(session, &each.pattern, each.place, seen.period_ns)?);
                on_disk.push(each.taken_ns);
            }
            if !on_disk.is_empty() {
                off.push(libm::log(mean(&on_model).max(1.0) / median(&on_disk).max(1.0)).abs());
            }
        }
        // How far it reads ahead was seen by itself, and surely: it counts as much as two patterns.
        let ahead = ahead_again(session, &seen.tracks, seen.period_ns, &seen.buffer)?;
        if let Some(ahead) = ahead {
            let apart = libm::log(ahead as f64 / seen.buffer.ahead_sectors.max(1) as f64).abs();
            off.extend([apart; 2]);
        }
        Ok(off)
    });
    off.map_or(f64::MAX, |off| mean(&off))
}

/// What the drive reads ahead, and what it keeps, by which of the model's policies reads that follow each
/// other go as they went.
fn choose_buffer(seen: &ArmedSeen, drive: &mut MechanicalParameters) {
    if !seen.buffer.is_there() {
        drive.buffer.segments = 0;
        drive.buffer.segment_sectors = 0;
        return;
    }
    let per = f64::from(drive.sector_bytes) / 512.0;
    let ahead = ((seen.buffer.ahead_sectors as f64 / per) as u64).max(1);
    let track = drive.geometry.zones.first().map_or(1, |zone| u64::from(zone.sectors_per_track));
    let drafted = BufferParameters { almost_read_hits: true, ..drive.buffer.clone() };
    let mut kinds = Vec::new();
    for (read_ahead, sizes) in [
        (ReadAhead::Segment, [ahead, 2 * ahead]),
        (ReadAhead::Track, [2 * track, ahead.max(track)]),
        (ReadAhead::TrackAhead, [2 * track, ahead]),
        (ReadAhead::Cylinder, [ahead.max(track), 2 * ahead.max(track)]),
        (ReadAhead::None, [ahead, ahead.max(track / 2)]),
    ] {
        for segment_sectors in sizes {
            kinds.push(BufferParameters { segment_sectors, read_ahead, ..drafted.clone() });
        }
    }
    let mut best = take_best(seen, drive, f64::MAX, kinds);
    // One switch after another, as long as one of them helps.
    for _ in 0..2 {
        let before = best;
        let now = drive.buffer.clone();
        let other = match now.requested_data {
            KeepRequested::Keep => KeepRequested::Replace,
            _ => KeepRequested::Keep,
        };
        for candidate in [
            BufferParameters { almost_read_hits: !now.almost_read_hits, ..now.clone() },
            BufferParameters { requested_data: other, ..now.clone() },
            BufferParameters { read_ahead_on_idle_hit: !now.read_ahead_on_idle_hit, ..now.clone() },
        ] {
            best = take_best(seen, drive, best, vec![candidate]);
        }
        if best >= before {
            break;
        }
    }
}

/// Gives `drive` the first of `candidates` that fits best, if it fits better than `least`; how well the
/// drive's fits then.
fn take_best(
    seen: &ArmedSeen,
    drive: &mut MechanicalParameters,
    least: f64,
    candidates: Vec<BufferParameters>,
) -> f64 {
    let mut best = (least, drive.buffer.clone());
    for candidate in candidates {
        drive.buffer = candidate.clone();
        let off = misfit(seen, drive);
        if off < best.0 - BETTER {
            best = (off, candidate);
        }
    }
    drive.buffer = best.1;
    best.0
}

/// The rate of a bus that no hit shows, by how long long reads take.
fn choose_bus(seen: &ArmedSeen, drive: &mut MechanicalParameters, times: &[(f64, f64)]) {
    if seen.buffer.is_there() {
        return;
    }
    let Some(zone) = drive.geometry.zones.first() else { return };
    let sector_ps = seen.period_ns / f64::from(zone.sectors_per_track) * 1000.0;
    let mut best = (misfit(seen, drive), drive.clone());
    let mut ratio = 0.2;
    while ratio < 6.0 {
        let mut candidate = drive.clone();
        candidate.bus.read_sector_ps = (sector_ps * ratio) as u64;
        candidate.bus.write_sector_ps = candidate.bus.read_sector_ps;
        set_seeks(seen, &mut candidate, times);
        let off = misfit(seen, &candidate);
        if off < best.0 - 1e-3 {
            best = (off, candidate);
        }
        ratio *= 1.06;
    }
    *drive = best.1;
}

/// Commands that the drive holds, by what it gains from having many.
fn choose_queue_depth(seen: &ArmedSeen, drive: &mut MechanicalParameters) {
    let mut best: Option<(f64, u32)> = None;
    for depth in [1, 2, 4, 8, 16, 32] {
        drive.queue_depth = depth;
        let parameters = build(seen, drive, Sources::new());
        let off = on_model(&parameters, |session| {
            let mut off = Vec::new();
            for (places, taken) in &seen.queue.batches {
                off.push(libm::log(together(session, places)?.max(1.0) / taken.max(1.0)));
            }
            Ok(median(&off).abs())
        })
        .unwrap_or(f64::MAX);
        if best.is_none_or(|(least, _)| off < least - 0.02) {
            best = Some((off, depth));
        }
    }
    drive.queue_depth = best.map_or(1, |(_, depth)| depth);
}

fn name_sources(seen: &ArmedSeen, sources: &mut Sources) {
    let mut set = |key: &str, text: String| {
        sources.insert(key.to_owned(), text);
    };
    set("capacity_sectors", "the size that the system gives".into());
    set("sector_bytes", "what the system says of the disk's physical sectors".into());
    set("rotation_period_ms", seen.period_source.clone());
    set(
        "geometry",
        if seen.tracks.surfaces.surfaces > 1 {
            "measured: the pattern of skews, a read a track at 3 places".into()
        } else {
            "measured: no pattern in the skews of tracks; every track is taken for a cylinder, which \
             gives the same times"
                .into()
        },
    );
    let bounds: usize = seen.seeks.iter().map(|one| one.bounds.len()).sum();
    let spreads: Vec<f64> = seen.seeks.iter().map(|one| spread(&one.places_ns)).collect();
    set(
        "seek",
        format!("{}, at {} distances", measured(bounds, median(&spreads)), seen.seeks.len()),
    );
    let hits = &seen.buffer.hits_ns;
    let of_hits = if seen.buffer.is_there() {
        measured(hits[0].len() + hits[1].len(), spread(&hits[0]))
    } else {
        "measured: reads of one track, as an upper bound; the drive keeps no data".into()
    };
    set("overhead", format!("{of_hits}; writes are taken to cost the same"));
    set("bus", format!("{of_hits}; writes are taken to move as fast"));
    set(
        "buffer",
        format!(
            "measured: {} sectors read ahead, {} places kept; policies chosen by how {} runs of reads that \
             follow each other went",
            seen.buffer.ahead_sectors,
            seen.buffer.segments,
            seen.patterns.len()
        ),
    );
    set(
        "buffer.fast_write",
        match seen.facts.write_cache {
            Some(cache) => format!(
                "what the system says of the disk's write cache: {}",
                if cache { "write back" } else { "write through" }
            ),
            None => "chosen by us: never, since nothing is known of a write cache".into(),
        },
    );
    set(
        "queue_depth",
        format!("measured: {} reads at the same time", 64 * seen.queue.batches.len()),
    );
}

/// Enters when writes are reported and what single ones take: of the model's policies the one under which
/// the same writes take most nearly what they took.
pub(crate) fn enter_writes(parameters: &mut DeviceParameters, seen: &WritesSeen, numbers: &[u64]) {
    let DeviceKind::Mechanical(drive) = parameters.kind.clone() else { return };
    let sectors = seen.sectors.min(parameters.capacity_sectors / 8 * 8);
    let first = (parameters.capacity_sectors - sectors) / 16 * 8;
    let off = |drive: &MechanicalParameters| -> Option<f64> {
        let kind = DeviceKind::Mechanical(Box::new(drive.clone()));
        let model = DeviceParameters { kind, ..parameters.clone() };
        let mut model = ModelledDisk::new(&model, Disturbance::default())
            .with_write_area(Extent { first, sectors });
        let shown = writes::measure(model.writable()?, numbers).ok()?;
        let differ = |one: f64, other: f64| libm::log(one.max(1e3) / other.max(1e3)).abs();
        let kinds = shown.kinds_ns.iter().zip(&seen.kinds_ns);
        Some(
            kinds
                .map(|(one, other)| {
                    // The late answers of a busy machine are above nine tenths.
                    differ(median(one), median(other))
                        + differ(quantile(one, 0.8), quantile(other, 0.8))
                        + differ(quantile(one, 0.2), quantile(other, 0.2))
                })
                .sum(),
        )
    };
    let bus_ns = 8.0 * drive.bus.write_sector_ps as f64 / 1000.0;
    // What the shortest writes take: those that are reported before the medium has them, if any are.
    let shortest = seen.kinds_ns.iter().map(|times| quantile(times, 0.1)).fold(f64::MAX, f64::min);
    let quick = (shortest - bus_ns).clamp(0.0, SEEK_MAX_NS) as u64;
    let mut best: Option<(f64, MechanicalParameters)> = None;
    // What the system says stands first, so that it stays unless another policy fits better.
    let said = drive.buffer.fast_write;
    let others = FastWrite::ALL.iter().map(|(policy, _)| *policy).filter(|other| *other != said);
    for policy in std::iter::once(said).chain(others) {
        // Part of what a read takes may come behind its data, and does not hold up a write.
        let shares = [4, 3, 2, 1].map(|quarters| drive.overhead.write_miss_ns[0] / 4 * quarters);
        for command in shares.into_iter().chain([quick]).map(|ns| [ns; 2]) {
            let mut candidate = drive.clone();
            candidate.buffer.fast_write = policy;
            candidate.overhead.write_miss_ns = command;
            candidate.overhead.write_hit_ns = command;
            let Some(off) = off(&candidate) else { continue };
            if best.as_ref().is_none_or(|(least, _)| off < least - BETTER) {
                best = Some((off, *candidate));
            }
        }
    }
    let Some((_, drive)) = best else { return };
    parameters.kind = DeviceKind::Mechanical(Box::new(drive));
    let text = format!(
        "{}: the policy under which writes alone, scattered and in streams take what they took",
        measured(seen.count(), spread(seen.alone_ns())).replace("reads", "writes")
    );
    for key in [
        "overhead.write_hit_after_read_ms",
        "overhead.write_hit_after_write_ms",
        "overhead.write_miss_after_read_ms",
        "overhead.write_miss_after_write_ms",
    ] {
        parameters.sources.insert(key.into(), "as buffer.fast_write".into());
    }
    parameters.sources.insert("buffer.fast_write".into(), text);
}
