//! The drive's buffer: what a hit costs, how far it reads ahead, how many places it holds, and how reads
//! go that follow each other.

use super::session::{SMALL, Session};
use super::tracks::Tracks;
use crate::disk::{Extent, ProbeError};
use crate::estimate::statistics::{median, quantile};

/// Repeats of each kind of hit.
const HITS: usize = 12;

/// Sectors of the two sizes of hits that the bus rate follows from: 4 and 32 KiB.
pub(crate) const HIT_SECTORS: [u64; 2] = [SMALL, 64];

/// Times of hits scatter by less than this, p75 - p25 over a turn; those of waits for a sector scatter by
/// a half.
const EVEN: f64 = 0.12;

/// What the buffer does, as seen.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct BufferSeen {
    /// Times of hits of [`HIT_SECTORS`], ns; empty if there are none.
    pub(crate) hits_ns: [Vec<f64>; 2],
    /// Sectors that the drive reads on after a read.
    pub(crate) ahead_sectors: u64,
    /// Places that it keeps data of.
    pub(crate) segments: u32,
    /// How its hits were found.
    way: Option<Way>,
}

impl BufferSeen {
    /// Whether there is one.
    pub(crate) fn is_there(&self) -> bool {
        !self.hits_ns[0].is_empty()
    }

    /// What a small hit takes, at its quickest but for a few: later ones were held up by the host.
    pub(crate) fn hit_ns(&self) -> f64 {
        quantile(&self.hits_ns[0], 0.1)
    }
}

/// What is read before a hit is looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Way {
    /// Small reads that follow each other.
    reads: u64,
    /// Whether the hit is the same read again, and not the one that follows.
    again: bool,
}

/// The ways that are tried, in this order: most drives read ahead at once, some when a reader is seen to go
/// on, some keep only what was read.
const WAYS: [Way; 3] =
    [Way { reads: 1, again: false }, Way { reads: 4, again: false }, Way { reads: 1, again: true }];

impl Way {
    /// Makes the reads from `place` on, `sectors` being the length of the hit; where that is.
    fn prepare(
        self,
        session: &mut Session<'_>,
        place: u64,
        sectors: u64,
    ) -> Result<u64, ProbeError> {
        if self.again {
            session.read(place, sectors)?;
            return Ok(place);
        }
        for number in 0..self.reads {
            session.read_small(place + number * SMALL)?;
        }
        Ok(place + self.reads * SMALL)
    }
}

/// Measures it.
pub(crate) fn measure(
    session: &mut Session<'_>,
    tracks: &Tracks,
    period_ns: f64,
) -> Result<BufferSeen, ProbeError> {
    session.step("buffer")?;
    let mut seen = BufferSeen::default();
    for way in WAYS {
        for (number, sectors) in HIT_SECTORS.into_iter().enumerate() {
            let mut times = Vec::new();
            for _ in 0..HITS {
                let place = session.place();
                let place = session.within(place, 4096).first;
                let target = way.prepare(session, place, sectors)?;
                wait(session, period_ns, 4.0);
                times.push(session.read(target, sectors)?.taken_ns());
            }
            if quantile(&times, 0.75) - quantile(&times, 0.25) < EVEN * period_ns {
                seen.hits_ns[number] = times;
            }
        }
        if !seen.is_there() {
            continue;
        }
        seen.way = Some(way);
        if !way.again {
            seen.ahead_sectors = ahead(session, tracks, period_ns, seen.hit_ns(), way)?;
        }
        seen.segments = segments(session, period_ns, seen.hit_ns(), way)?;
        break;
    }
    Ok(seen)
}

/// Waits for some turns and a random part of one, so that no angle repeats.
fn wait(session: &mut Session<'_>, period_ns: f64, turns: f64) {
    let part = session.share();
    session.idle_ns((turns + part) * period_ns);
}

fn is_hit(taken_ns: f64, hit_ns: f64, period_ns: f64) -> bool {
    taken_ns < hit_ns + 0.06 * period_ns
}

/// The verdict of most of three tries.
fn mostly(
    session: &mut Session<'_>,
    mut once: impl FnMut(&mut Session<'_>) -> Result<bool, ProbeError>,
) -> Result<bool, ProbeError> {
    let (first, second) = (once(session)?, once(session)?);
    if first == second { Ok(first) } else { once(session) }
}

/// Sectors behind a small read that are in the buffer some time later.
fn ahead(
    session: &mut Session<'_>,
    tracks: &Tracks,
    period_ns: f64,
    hit_ns: f64,
    way: Way,
) -> Result<u64, ProbeError> {
    let far = |session: &mut Session<'_>, beyond: u64| {
        mostly(session, |session| {
            let place = session.place();
            let place = session.within(place, beyond + 8 * SMALL).first;
            let target = way.prepare(session, place, SMALL)?;
            let turns = 4.0 + 1.6 * beyond as f64 / tracks.sectors_at(place);
            wait(session, period_ns, turns);
            let taken = session.read_small(target + beyond - SMALL)?.taken_ns();
            Ok(is_hit(taken, hit_ns, period_ns))
        })
    };
    let most = (session.sectors() / 4).min(1 << 16);
    let mut low = SMALL;
    let mut high = 2 * SMALL;
    while high < most && far(session, high)? {
        low = high;
        high *= 2;
    }
    while high - low > SMALL.max(low / 48) {
        let middle = u64::midpoint(low, high) / SMALL * SMALL;
        if middle <= low || middle >= high {
            break;
        }
        if far(session, middle)? { low = middle } else { high = middle }
    }
    Ok(low)
}

/// Looks again how far the drive reads ahead, as it was found in `seen`; `None` if it does not.
pub(crate) fn ahead_again(
    session: &mut Session<'_>,
    tracks: &Tracks,
    period_ns: f64,
    seen: &BufferSeen,
) -> Result<Option<u64>, ProbeError> {
    match seen.way {
        Some(way) if !way.again => Ok(Some(ahead(session, tracks, period_ns, seen.hit_ns(), way)?)),
        _ => Ok(None),
    }
}

/// Places that can be read before the data behind the first of them are gone.
fn segments(
    session: &mut Session<'_>,
    period_ns: f64,
    hit_ns: f64,
    way: Way,
) -> Result<u32, ProbeError> {
    let holds = |session: &mut Session<'_>, count: u32| {
        mostly(session, |session| {
            let first = session.place();
            let first = session.within(first, 4096).first;
            let target = way.prepare(session, first, SMALL)?;
            wait(session, period_ns, 1.0);
            for _ in 1..count {
                let place = session.place();
                session.read_small(place)?;
            }
            wait(session, period_ns, 1.0);
            let taken = session.read_small(target)?.taken_ns();
            Ok(is_hit(taken, hit_ns, period_ns))
        })
    };
    let (mut low, mut high) = (1, 2);
    while high <= 64 && holds(session, high)? {
        low = high;
        high *= 2;
    }
    while high - low > 1 {
        let middle = u32::midpoint(low, high);
        if holds(session, middle)? { low = middle } else { high = middle }
    }
    Ok(low)
}

/// A way of reading whose time says what the drive does between reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pattern {
    /// What it is called in reports of differences.
    pub(crate) name: &'static str,
    /// Sectors of each read.
    pub(crate) sectors: u64,
    /// From the first sector of one to that of the next; negative downwards.
    pub(crate) stride: i64,
    /// Reads.
    pub(crate) count: u64,
    /// Time between them, turns.
    pub(crate) think_turns: f64,
}

const fn pattern(
    name: &'static str,
    sectors: u64,
    stride: i64,
    count: u64,
    think_turns: f64,
) -> Pattern {
    Pattern { name, sectors, stride, count, think_turns }
}

/// The ways that are tried; chosen by us: what files that lie in one piece, in pieces and backwards are
/// read by.
pub(crate) const PATTERNS: [Pattern; 10] = [
    pattern("4 KiB after 4 KiB", 8, 8, 24, 0.0),
    pattern("16 KiB after 16 KiB", 32, 32, 20, 0.0),
    pattern("64 KiB after 64 KiB", 128, 128, 16, 0.0),
    pattern("512 KiB after 512 KiB", 1024, 1024, 5, 0.0),
    pattern("4 KiB after 4 KiB with pauses", 8, 8, 16, 0.37),
    pattern("16 KiB after 16 KiB with pauses", 32, 32, 12, 0.23),
    pattern("every other 4 KiB", 8, 16, 24, 0.0),
    pattern("4 KiB of every 32 KiB", 8, 64, 20, 0.0),
    pattern("4 KiB of every 256 KiB", 8, 512, 14, 0.0),
    pattern("4 KiB, backwards", 8, -8, 14, 0.0),
];

/// Places at which each is tried.
pub(crate) const PATTERN_PLACES: usize = 4;

/// Where one pattern began, and what its reads took together, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PatternSeen {
    pub(crate) pattern: Pattern,
    pub(crate) place: u64,
    pub(crate) taken_ns: f64,
}

/// Reads by `pattern` from `place` on; the time of all reads but the first, pauses not counted, ns.
pub(crate) fn follow(
    session: &mut Session<'_>,
    pattern: &Pattern,
    place: u64,
    period_ns: f64,
) -> Result<f64, ProbeError> {
    let mut taken = Vec::new();
    for number in 0..pattern.count {
        let first = place.saturating_add_signed(pattern.stride * number as i64);
        let answer = session.read(first, pattern.sectors)?;
        if number > 0 {
            taken.push(answer.taken_ns());
        }
        session.idle_ns(pattern.think_turns * period_ns);
    }
    // A read that was late by many turns says nothing of the drive.
    let limit = median(&taken) + 3.0 * period_ns + quantile(&taken, 0.75);
    Ok(taken.iter().map(|one| one.min(limit)).sum())
}

/// Tries every pattern at random places.
pub(crate) fn patterns(
    session: &mut Session<'_>,
    period_ns: f64,
) -> Result<Vec<PatternSeen>, ProbeError> {
    session.step("reads that follow each other")?;
    let mut seen = Vec::new();
    for pattern in PATTERNS {
        for _ in 0..PATTERN_PLACES {
            let length = pattern.stride.unsigned_abs() * pattern.count + pattern.sectors;
            let place = session.place();
            let mut place = session.within(place, length).first;
            if pattern.stride < 0 {
                place += length - pattern.sectors;
            }
            let taken_ns = follow(session, &pattern, place, period_ns)?;
            seen.push(PatternSeen { pattern, place, taken_ns });
        }
    }
    Ok(seen)
}

/// Random small reads, all at once and one by one: the time of each way, ns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueueSeen {
    pub(crate) batches: Vec<(Vec<u64>, f64)>,
}

/// Reads handed over together.
pub(crate) const TOGETHER: usize = 64;

/// Commands that a host may have outstanding: what SATA drives hold.
pub(crate) const DEPTH: usize = 32;

pub(crate) fn queue(session: &mut Session<'_>) -> Result<QueueSeen, ProbeError> {
    session.step("reads at the same time")?;
    let mut batches = Vec::new();
    for _ in 0..3 {
        let places: Vec<u64> = (0..TOGETHER).map(|_| session.place()).collect();
        let taken = together(session, &places)?;
        batches.push((places, taken));
    }
    Ok(QueueSeen { batches })
}

/// Reads `places` together; the time until the last answer, ns.
pub(crate) fn together(session: &mut Session<'_>, places: &[u64]) -> Result<f64, ProbeError> {
    let extents: Vec<Extent> = places.iter().map(|place| session.within(*place, SMALL)).collect();
    let answers = session.read_together(&extents, DEPTH)?;
    let begin = answers.iter().map(|answer| answer.begin.0).min().unwrap_or(0);
    // The last few may have been held up by the host.
    let ends: Vec<f64> = answers.iter().map(|answer| (answer.end.0 - begin) as f64).collect();
    Ok(quantile(&ends, 0.97))
}
