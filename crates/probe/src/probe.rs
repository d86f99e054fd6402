//! The probe as a whole: which measurements are made of which kind of disk, and what is fallen back to.

use std::fmt::Write as _;

use agewell_core::SimDuration;
use agewell_disk::DeviceParameters;
use agewell_disk::parameters::Uncertainty;

use crate::check::{Difference, check};
use crate::disk::{ProbeError, ProbedDisk};
use crate::estimate::rotation::Rotation;
use crate::estimate::seek::least_time_ns;
use crate::estimate::statistics::{mean, spread};
use crate::fit::{self, armed, flash, plain, short};
use crate::measure::class::{self, Seen};
use crate::measure::session::Session;
use crate::measure::{buffer, seeks, tracks, writes};

/// Most of the requests that a disk served while it was probed that may have been others', %.
const OTHERS_LIMIT_PCT: f64 = 2.0;

/// Sectors below which there is too little to measure: 1 MiB.
const SECTORS_MIN: u64 = 2048;

/// Fewest and most tracks of a drive with an arm; chosen by us: the smallest drives of the catalogue have
/// ten thousand, the largest ten million.
const TRACKS_MIN: f64 = 64.0;
const TRACKS_MAX: f64 = 5e7;

/// What a probe is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeOptions {
    /// Time that it may take. What has been begun is finished, so that it may take a little more.
    pub time: SimDuration,
    /// Of the places that are read.
    pub seed: u64,
    /// Whether requests of others are put up with: the file then says how many there were.
    pub despite_others: bool,
}

impl Default for ProbeOptions {
    fn default() -> Self {
        Self { time: SimDuration(300_000_000_000), seed: 1, despite_others: false }
    }
}

/// A kind of disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Arm and platter.
    Armed,
    /// Flash, or whatever else answers in less than a millisecond.
    Flash,
    /// Access time and bandwidth.
    Simple,
}

impl Class {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Class::Armed => "armed",
            Class::Flash => "flash",
            Class::Simple => "simple",
        }
    }
}

/// What a probe found.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// The kind of disk, by timing.
    pub class: Class,
    /// The device file.
    pub parameters: DeviceParameters,
    /// Why it says less than it might; `None` if it says what it should.
    pub fallback: Option<String>,
    /// Random and sequential reads, on the disk and on the model.
    pub differences: [Difference; 2],
    /// Requests that were made.
    pub requests: u64,
    /// Time that it took on the disk's clock.
    pub spent: SimDuration,
    /// Requests of others that the disk served meanwhile, and all; `None` if nobody counts them.
    pub others: Option<(u64, u64)>,
}

/// Measures `disk`. `progress` is called with the share that is done and what is being done, and says
/// whether to go on.
///
/// # Errors
/// If a request fails, the disk is too small to say anything of, others use it, or `progress` says
/// to stop.
pub fn probe(
    disk: &mut dyn ProbedDisk,
    options: ProbeOptions,
    progress: &mut dyn FnMut(f64, &str) -> bool,
) -> Result<Probe, ProbeError> {
    let name = disk.facts().name.clone();
    if disk.facts().sectors < SECTORS_MIN {
        let why = format!("{} sectors are too few to measure a disk by", disk.facts().sectors);
        return Err(ProbeError::Unmeasurable { name, why });
    }
    let mut session = Session::new(disk, options.time, options.seed, progress);
    let timing = class::measure(&mut session)?;
    let seen = timing.class();
    let mut fallback = None;
    let (mut class, mut parameters) = match seen {
        Seen::Flash => (Class::Flash, Some(flash_of(&mut session)?)),
        Seen::Armed(rotation) => match armed_of(&mut session, rotation)? {
            Ok(parameters) => (Class::Armed, Some(parameters)),
            Err(why) => {
                fallback = Some(why);
                (Class::Simple, None)
            }
        },
        Seen::Even => (Class::Simple, None),
        Seen::Unclear => {
            fallback = Some(
                "its reads take as long as an arm's, but end at no particular angle of a platter"
                    .into(),
            );
            (Class::Simple, None)
        }
    };
    if let Some(why) = parameters.as_ref().and_then(fit::contradiction) {
        fallback = Some(format!("what was measured makes no device ({why})"));
        (class, parameters) = (Class::Simple, None);
    }
    let mut parameters = match parameters {
        Some(parameters) => parameters,
        None => plain_of(&mut session, timing.random_ns)?,
    };
    if let DeviceParameters { kind: agewell_disk::DeviceKind::Mechanical(_), .. } = &parameters {
        write_policy(&mut session, &mut parameters)?;
    }
    let differences = check(&mut session, &parameters)?;
    parameters.uncertainty = Some(Uncertainty {
        random_read_pct: tenths(differences[0].error_pct()),
        sequential_read_pct: tenths(differences[1].error_pct()),
    });
    parameters.sources.insert(
        "uncertainty".into(),
        format!(
            "measured: {} random and {} sequential reads, made after everything else, on disk and model",
            differences[0].reads, differences[1].reads
        ),
    );
    let (requests, spent) = (session.reads(), session.spent());
    let others = session.disk.requests_of_others();
    if options.despite_others {
        if let Some((others, all)) = others {
            let share_pct = 100.0 * others as f64 / all.max(1) as f64;
            let text = parameters.sources.entry("uncertainty".into()).or_default();
            let _ = write!(text, "; {share_pct:.1} % of the requests meanwhile were others'");
        }
    } else {
        refuse_if_busy(&name, others)?;
    }
    Ok(Probe { class, parameters, fallback, differences, requests, spent, others })
}

fn tenths(value: f64) -> f64 {
    ((value * 10.0).round() / 10.0).clamp(-100.0, 1e6)
}

fn refuse_if_busy(name: &str, others: Option<(u64, u64)>) -> Result<(), ProbeError> {
    let Some((others, all)) = others else { return Ok(()) };
    let share_pct = 100.0 * others as f64 / all.max(1) as f64;
    if share_pct <= OTHERS_LIMIT_PCT {
        return Ok(());
    }
    let name = name.to_owned();
    Err(ProbeError::Busy { name, others, all, share_pct, limit_pct: OTHERS_LIMIT_PCT })
}

fn plain_of(
    session: &mut Session<'_>,
    random_ns: Vec<f64>,
) -> Result<DeviceParameters, ProbeError> {
    let seen = plain::measure(session, random_ns)?;
    let (kind, sources) = plain::fit(&seen);
    Ok(fit::device(session.facts(), kind, sources))
}

fn flash_of(session: &mut Session<'_>) -> Result<DeviceParameters, ProbeError> {
    let seen = crate::measure::flash::measure(session)?;
    let (kind, sources) = flash::fit(session.facts(), &seen);
    Ok(fit::device(session.facts(), kind, sources))
}

/// Everything about an arm; or why that cannot be had.
fn armed_of(
    session: &mut Session<'_>,
    rotation: Rotation,
) -> Result<Result<DeviceParameters, String>, ProbeError> {
    let period_ns = rotation.period_ns;
    let Some(tracks) = tracks::measure(session, period_ns)? else {
        return Ok(Err("a spindle is seen, but no tracks: its addresses lie in no order".into()));
    };
    if !(TRACKS_MIN..TRACKS_MAX).contains(&tracks.count()) {
        return Ok(Err(format!("{:.0} tracks are none of an arm", tracks.count())));
    }
    // Where the spindle wanders, the time of a turn is the mean over all of the probe so far.
    let drifts: Vec<f64> = tracks.places.iter().map(|place| place.fit.drift).collect();
    let period_ns = period_ns * (1.0 - mean(&drifts));
    let buffer = buffer::measure(session, &tracks, period_ns)?;
    let same_track_ns = if buffer.is_there() {
        None
    } else {
        let bounds = seeks::same_track(session, &tracks, period_ns)?;
        let taken: Vec<f64> = bounds.iter().map(|bound| bound.taken_ns).collect();
        least_time_ns(&taken, period_ns)
    };
    let mut periods = vec![period_ns];
    periods.extend(class::period_now(session, period_ns)?);
    let seen_seeks = seeks::measure(session, &tracks, period_ns)?;
    periods.extend(class::period_now(session, period_ns)?);
    let patterns = buffer::patterns(session, period_ns)?;
    let queue = buffer::queue(session)?;
    periods.extend(class::period_now(session, period_ns)?);
    let period_source = format!(
        "measured: {} series of reads and {} looks at the spindle, spread {} ms",
        tracks.places.len(),
        periods.len(),
        short(spread(&drifts) * period_ns / 1e6)
    );
    let seen = armed::ArmedSeen {
        facts: session.facts().clone(),
        period_ns: mean(&periods),
        period_source,
        tracks,
        buffer,
        seeks: seen_seeks,
        same_track_ns,
        patterns,
        queue,
    };
    session.step("the model that answers as the disk did")?;
    Ok(Ok(armed::fit(&seen)))
}

/// Measures writes where they are allowed, and enters what they show.
fn write_policy(
    session: &mut Session<'_>,
    parameters: &mut DeviceParameters,
) -> Result<(), ProbeError> {
    let numbers: Vec<u64> = (0..512).map(|_| session.below(1 << 40)).collect();
    let Some(area) = session.disk.writable() else { return Ok(()) };
    let seen = writes::measure(area, &numbers)?;
    session.step("writes")?;
    armed::enter_writes(parameters, &seen, &numbers);
    Ok(())
}
