//! The probe as a whole: which measurements are made of which kind of disk, and what is fallen back to.

use agewell_core::SimDuration;
use agewell_disk::DeviceParameters;
use agewell_disk::parameters::{FastWrite, Uncertainty};

use crate::check::{Difference, check};
use crate::disk::{ProbeError, ProbedDisk};
use crate::estimate::rotation::Rotation;
use crate::estimate::seek::least_time_ns;
use crate::estimate::statistics::{mean, quantile, spread};
use crate::fit::{self, armed, flash, measured, plain, short};
use crate::measure::class::{self, Seen};
use crate::measure::session::Session;
use crate::measure::writes::WritesSeen;
use crate::measure::{buffer, seeks, tracks, writes};

/// Most of the requests that a disk served while it was probed that may have been others', %.
const OTHERS_LIMIT_PCT: f64 = 2.0;

/// Sectors below which there is too little to measure: 1 MiB.
const SECTORS_MIN: u64 = 2048;

/// What a probe is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeOptions {
    /// Time that it may take. What has been begun is finished, so that it may take a little more.
    pub time: SimDuration,
    /// Of the places that are read.
    pub seed: u64,
}

impl Default for ProbeOptions {
    fn default() -> Self {
        Self { time: SimDuration(300_000_000_000), seed: 1 }
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
                "its reads take as long as an arm's, but end at no particular angle of a platter".into(),
            );
            (Class::Simple, None)
        }
    };
    if let Some(why) = parameters.as_ref().and_then(contradiction) {
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
    refuse_if_busy(&name, others)?;
    Ok(Probe { class, parameters, fallback, differences, requests, spent, others })
}

fn tenths(value: f64) -> f64 {
    ((value * 10.0).round() / 10.0).clamp(-100.0, 1e6)
}

/// What is wrong with `parameters` by the rules of every device file.
fn contradiction(parameters: &DeviceParameters) -> Option<String> {
    let read = DeviceParameters::from_toml("the device file", &parameters.to_toml());
    read.err().map(|why| why.to_string())
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
    if tracks.count() < 64.0 {
        return Ok(Err(format!("{:.0} tracks are too few for an arm", tracks.count())));
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
    session.step("writes")?;
    let mut numbers: Vec<u64> = (0..512).map(|_| session.below(1 << 40)).collect();
    let Some(area) = session.disk.writable() else { return Ok(()) };
    let seen = writes::measure(area, |bound| numbers.pop().unwrap_or(0) % bound.max(1))?;
    let agewell_disk::DeviceKind::Mechanical(drive) = &mut parameters.kind else { return Ok(()) };
    let turn = drive.rotation_period_ps as f64 / 1000.0;
    let (policy, why) = policy_of(&seen, turn);
    drive.buffer.fast_write = policy;
    if policy == FastWrite::Always {
        let hit = quantile(&seen.alone_ns, 0.2) - 8.0 * drive.bus.write_sector_ps as f64 / 1000.0;
        drive.overhead.write_miss_ns = [hit.max(0.0) as u64; 2];
    }
    let count = seen.alone_ns.len() + seen.random_ns.len() + seen.sequential_ns.len();
    let text = format!("{}: {why}", measured(count, spread(&seen.alone_ns)));
    parameters.sources.insert("buffer.fast_write".into(), text.replace("reads", "writes"));
    Ok(())
}

/// When writes are reported, from their times and the time of a turn, ns.
fn policy_of(seen: &WritesSeen, turn_ns: f64) -> (FastWrite, &'static str) {
    let alone = quantile(&seen.alone_ns, 0.5);
    let sequential = quantile(&seen.sequential_ns, 0.5);
    if alone < 0.3 * turn_ns {
        (FastWrite::Always, "single writes are reported before the medium could have them")
    } else if sequential < 0.3 * turn_ns {
        (FastWrite::SequentialRun, "only writes that follow each other are reported early")
    } else {
        (FastWrite::Never, "every write waits for the medium")
    }
}
