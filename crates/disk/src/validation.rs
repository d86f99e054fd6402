//! Validation of a device model against measured response times.
//!
//! The trace is replayed on two time bases. *Closed*: each request is issued its measured think time after the one before
//! finished in the simulation, as DiskSim's `validate` does; figures compare with DiskSim's on this base. *Trace*: each
//! request is issued when it was; the platter's phase at time 0 and its exact period are then estimated from the first
//! half of the trace ([`estimate`]), and the errors of the second half are reported beside those of the whole.
//!
//! Nothing is fitted by default. The one thing that a device file may leave open, the time of a sector on the host's
//! bus, is measured on the first half and reported. [`ValidationOptions::fit`] adds three overheads, from the first half
//! as well.

pub mod demerit;
pub mod estimate;
pub mod replay;

use std::collections::BTreeMap;

use agewell_core::{Operation, SimTime};
use serde::{Deserialize, Serialize};

use crate::mechanical::Mechanical;
use crate::parameters::{DeviceKind, DeviceParameters, MechanicalParameters};
use crate::{Device, DeviceModel, Refused, WriteRule};
use estimate::Rotation;
use replay::{Measured, Stopped, TimeBase, replay};

/// A response within this fraction of the measured one counts as near (as in DiskSim comparisons).
const NEAR: f64 = 0.05;

/// Rounds of the overhead fit: each moves an overhead by the mean error that is left. Chosen by us; the second round
/// already moves them by less than a microsecond on the drives that we hold.
const FIT_ROUNDS: usize = 3;

/// How to validate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ValidationOptions {
    /// Fit a handful of overheads on the first half.
    pub fit: bool,
    /// The base that the metrics without a base in their name come from.
    pub primary: TimeBase,
}

impl Default for ValidationOptions {
    fn default() -> Self {
        Self { fit: false, primary: TimeBase::Closed }
    }
}

/// Errors of a set of requests. Times in ms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Errors {
    /// Requests in the set.
    pub requests: usize,
    /// Mean simulated response.
    pub mean_ms: f64,
    /// Mean measured response.
    pub measured_mean_ms: f64,
    /// Relative difference of the means, per cent.
    pub mean_error_pct: f64,
    /// Demerit as DiskSim computes it.
    pub demerit_ms: f64,
    /// Demerit from exact quantiles.
    pub demerit_exact_ms: f64,
    /// Demerit relative to the measured mean, per cent.
    pub demerit_pct: f64,
    /// RMS of simulated minus measured, request by request.
    pub paired_rms_ms: f64,
    /// Fraction of requests within 5 % of their measurement.
    pub within_5_pct: f64,
}

/// Errors of all requests, reads and writes; `None` for a kind that the set lacks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Split {
    /// All requests.
    pub all: Option<Errors>,
    /// Reads.
    pub reads: Option<Errors>,
    /// Writes.
    pub writes: Option<Errors>,
}

/// Errors on one time base.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BaseReport {
    /// The whole trace.
    pub whole: Split,
    /// Its second half, which nothing was estimated from.
    pub held_out: Split,
}

/// What was estimated from the first half.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimated {
    /// Requests of the first half.
    pub requests: usize,
    /// One sector on the host's bus, microseconds, if the device file leaves it open.
    pub bus_sector_us: Option<f64>,
    /// Rotation period against the nominal one, parts per million; only the trace base uses it.
    pub rotation_ppm: Option<f64>,
    /// How well the phases of the residuals agree, 0 to 1.
    pub rotation_coherence: Option<f64>,
    /// Whether that is enough to hold the phase; if not, the trace base knows nothing of rotation.
    pub rotation_locked: Option<bool>,
    /// With `fit`: what was added to each overhead, ms.
    pub fitted_ms: BTreeMap<String, f64>,
}

/// The outcome of a validation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ValidationReport {
    /// The device's name.
    pub device: String,
    /// Requests replayed.
    pub requests: usize,
    /// The base of the metrics that name none.
    pub primary: TimeBase,
    /// Flat figures under fixed names.
    pub metrics: BTreeMap<String, f64>,
    /// Errors on the closed base.
    pub closed: BaseReport,
    /// Errors on the trace's own clock.
    pub trace: BaseReport,
    /// The estimates from the first half.
    pub estimated: Estimated,
}

/// Why a validation could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValidationError {
    /// No request with a measured response.
    #[error("the trace holds no request with measured start and finish times: nothing to validate")]
    Empty,
    /// A request beyond the device.
    #[error(
        "request {index} (sectors {first} to {last}) lies beyond the device's {capacity} sectors: \
         is it the right device?"
    )]
    Beyond {
        /// Position in the trace, from 0.
        index: usize,
        /// First sector.
        first: u64,
        /// Last sector.
        last: u64,
        /// Sectors of the device.
        capacity: u64,
    },
    /// A request that finished before it was issued.
    #[error(
        "request {index} finished {by_ns} ns before it was issued: the measured times are not usable"
    )]
    Backwards {
        /// Position in the trace, from 0.
        index: usize,
        /// By how much.
        by_ns: u64,
    },
    /// A request that the device refuses where it comes in the trace.
    #[error("request {index}: the device refuses {refused}: is it the right device?")]
    Refused {
        /// Position in the trace, from 0.
        index: usize,
        /// Why.
        refused: Refused,
    },
    /// The caller wants no more.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Validates `parameters` against `drives`: one measured trace for each drive of that kind.
///
/// # Errors
/// If there is nothing measured, a request lies beyond the device, finishes before it is issued, or
/// is one that the device refuses, or if `go_on`, which is asked many times a second, says false.
pub fn validate(
    parameters: &DeviceParameters,
    drives: &[Measured],
    options: ValidationOptions,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<ValidationReport, ValidationError> {
    check(parameters, drives)?;
    let first_half = drives.first().map_or(0, |drive| drive.len() / 2);
    let mut estimated = Estimated {
        requests: first_half,
        bus_sector_us: None,
        rotation_ppm: None,
        rotation_coherence: None,
        rotation_locked: None,
        fitted_ms: BTreeMap::new(),
    };
    let mut runs: [Pooled; 2] = [Pooled::default(), Pooled::default()];
    if let DeviceKind::Mechanical(mechanical) = &parameters.kind {
        let mut mechanical = (**mechanical).clone();
        complete_bus(&mut mechanical, drives, &mut estimated, go_on)?;
        if options.fit {
            fit_overheads(&mut mechanical, drives, &mut estimated, go_on)?;
        }
        for drive in drives {
            let mut device = Mechanical::new(&mechanical);
            runs[0].add(drive, &replay(&mut device, drive, TimeBase::Closed, go_on)?);
            let mut device = spun(&mechanical, drive, &mut estimated, go_on)?;
            runs[1].add(drive, &replay(&mut device, drive, TimeBase::Trace, go_on)?);
        }
    } else {
        for drive in drives {
            for (run, base) in runs.iter_mut().zip([TimeBase::Closed, TimeBase::Trace]) {
                let mut device = DeviceModel::new(parameters);
                run.add(drive, &replay(&mut device, drive, base, go_on)?);
            }
        }
    }
    let [closed, trace] = runs;
    let (closed, trace) = (closed.report(go_on)?, trace.report(go_on)?);
    let metrics = metrics(&closed, &trace, options.primary);
    Ok(ValidationReport {
        device: parameters.name.clone(),
        requests: drives.iter().map(Measured::len).sum(),
        primary: options.primary,
        metrics,
        closed,
        trace,
        estimated,
    })
}

fn check(parameters: &DeviceParameters, drives: &[Measured]) -> Result<(), ValidationError> {
    if drives.iter().all(Measured::is_empty) {
        return Err(ValidationError::Empty);
    }
    let device = DeviceModel::new(parameters);
    let capacity = device.capacity().0;
    let has_rule = device.layout_advice().write_rule != WriteRule::Anywhere;
    for drive in drives {
        let mut rehearsal = has_rule.then(|| device.clone());
        let mut now = SimTime::ZERO;
        for index in 0..drive.len() {
            let (first, sectors) = (drive.sector[index], u64::from(drive.sectors[index]));
            if first + sectors > capacity || sectors == 0 {
                let last = (first + sectors).saturating_sub(1);
                return Err(ValidationError::Beyond { index, first, last, capacity });
            }
            if drive.finish_ns[index] < drive.issue_ns[index] {
                let by_ns = drive.issue_ns[index] - drive.finish_ns[index];
                return Err(ValidationError::Backwards { index, by_ns });
            }
            // Whether a request is refused depends on the writes before, but not on their times.
            let Some(device) = &mut rehearsal else { continue };
            let request = drive.request(index);
            let taken = device.check(&request);
            taken.map_err(|refused| ValidationError::Refused { index, refused })?;
            now = device.serve(now, &request).finish;
        }
    }
    Ok(())
}

/// Measures the time of a sector on the bus where the device file leaves it to the host.
fn complete_bus(
    parameters: &mut MechanicalParameters,
    drives: &[Measured],
    estimated: &mut Estimated,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(), Stopped> {
    let bus = &mut parameters.bus;
    if bus.read_sector_ps != 0 || bus.write_sector_ps != 0 {
        return Ok(());
    }
    let Some(drive) = drives.first() else { return Ok(()) };
    if let Some(sector_ps) = estimate::bus_sector_ps(parameters, drive, drive.len() / 2, go_on)? {
        parameters.bus.read_sector_ps = sector_ps;
        parameters.bus.write_sector_ps = sector_ps;
        estimated.bus_sector_us = Some(sector_ps as f64 / 1e6);
    }
    Ok(())
}

/// A drive with the rotation of its trace, as estimated from the first half.
fn spun(
    parameters: &MechanicalParameters,
    drive: &Measured,
    estimated: &mut Estimated,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Mechanical, Stopped> {
    let rotation: Option<Rotation> = estimate::rotation(parameters, drive, drive.len() / 2, go_on)?;
    if let Some(rotation) = rotation
        && estimated.rotation_ppm.is_none()
    {
        estimated.rotation_ppm = Some(rotation.period_ppm);
        estimated.rotation_coherence = Some(rotation.coherence);
        estimated.rotation_locked = Some(rotation.locked());
    }
    Ok(match rotation.filter(Rotation::locked) {
        Some(rotation) => {
            let mut tuned = parameters.clone();
            tuned.rotation_period_ps = rotation.period_ps;
            Mechanical::with_phase(&tuned, rotation.phase)
        }
        None => Mechanical::new(parameters),
    })
}

/// Adds to each overhead the mean error of its class of requests over the first half.
fn fit_overheads(
    parameters: &mut MechanicalParameters,
    drives: &[Measured],
    estimated: &mut Estimated,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(), Stopped> {
    let mut added = [0_i64; 3];
    for _ in 0..FIT_ROUNDS {
        let mut sums = [(0_i64, 0_i64); 3];
        for drive in drives {
            let half = drive.len() / 2;
            let mut device = Mechanical::new(parameters);
            let responses =
                replay::replay_classified(&mut device, drive, TimeBase::Closed, half, go_on)?;
            for (index, (response, hit)) in responses.into_iter().enumerate() {
                let class = match (drive.operation[index] == Operation::Read as u8, hit) {
                    (true, true) => 0,
                    (true, false) => 1,
                    (false, _) => 2,
                };
                sums[class].0 += drive.response_ns(index) as i64 - response as i64;
                sums[class].1 += 1;
            }
        }
        for (class, (sum, count)) in sums.into_iter().enumerate() {
            let change = sum / count.max(1);
            added[class] += change;
            add_overhead(parameters, class, change);
        }
    }
    for (name, ns) in ["read_hit_ms", "read_miss_ms", "write_ms"].iter().zip(added) {
        estimated.fitted_ms.insert((*name).to_owned(), ns as f64 / 1e6);
    }
    Ok(())
}

fn add_overhead(parameters: &mut MechanicalParameters, class: usize, change: i64) {
    let overhead = &mut parameters.overhead;
    let add = |times: &mut [u64]| {
        for time in times {
            *time = time.saturating_add_signed(change);
        }
    };
    match class {
        0 => add(&mut overhead.read_hit_ns),
        1 => add(&mut overhead.read_miss_ns),
        _ => {
            add(&mut overhead.write_hit_ns);
            add(&mut overhead.write_miss_ns);
            if let Some(extra) = &mut overhead.extra_write_disconnect {
                add(std::slice::from_mut(&mut extra.command_ns));
            }
        }
    }
}

/// Simulated and measured responses of every drive, one after another.
#[derive(Default)]
struct Pooled {
    simulated_ns: Vec<u64>,
    measured_ns: Vec<u64>,
    operation: Vec<u8>,
    second_half: Vec<bool>,
}

impl Pooled {
    fn add(&mut self, drive: &Measured, responses: &[u64]) {
        self.simulated_ns.extend_from_slice(responses);
        self.measured_ns.extend((0..drive.len()).map(|index| drive.response_ns(index)));
        self.operation.extend_from_slice(&drive.operation);
        self.second_half.extend((0..drive.len()).map(|index| index >= drive.len() / 2));
    }

    fn report(&self, go_on: &mut dyn FnMut() -> bool) -> Result<BaseReport, Stopped> {
        Ok(BaseReport { whole: self.split(false, go_on)?, held_out: self.split(true, go_on)? })
    }

    fn split(
        &self,
        second_half_only: bool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Split, Stopped> {
        let mut errors = |wanted: Option<Operation>| {
            if !go_on() {
                return Err(Stopped);
            }
            let (mut simulated, mut measured) = (Vec::new(), Vec::new());
            for index in 0..self.simulated_ns.len() {
                let kind = wanted.is_none_or(|kind| self.operation[index] == kind as u8);
                if kind && (!second_half_only || self.second_half[index]) {
                    simulated.push(self.simulated_ns[index]);
                    measured.push(self.measured_ns[index]);
                }
            }
            Ok(errors(&simulated, &measured))
        };
        Ok(Split {
            all: errors(None)?,
            reads: errors(Some(Operation::Read))?,
            writes: errors(Some(Operation::Write))?,
        })
    }
}

fn errors(simulated_ns: &[u64], measured_ns: &[u64]) -> Option<Errors> {
    let demerit_ms = demerit::binned(simulated_ns, measured_ns)?;
    let demerit_exact_ms = demerit::exact(simulated_ns, measured_ns)?;
    let count = simulated_ns.len() as f64;
    let mean = |samples: &[u64]| samples.iter().sum::<u64>() as f64 / count / 1e6;
    let (mean_ms, measured_mean_ms) = (mean(simulated_ns), mean(measured_ns));
    let pairs =
        || simulated_ns.iter().zip(measured_ns).map(|(one, other)| (*one as f64, *other as f64));
    let squares: f64 = pairs().map(|(one, other)| (one - other).powi(2)).sum();
    let near = pairs().filter(|(one, other)| (one - other).abs() <= NEAR * other).count();
    Some(Errors {
        requests: simulated_ns.len(),
        mean_ms,
        measured_mean_ms,
        mean_error_pct: 100.0 * (mean_ms / measured_mean_ms - 1.0),
        demerit_ms,
        demerit_exact_ms,
        demerit_pct: 100.0 * demerit_ms / measured_mean_ms,
        paired_rms_ms: (squares / count).sqrt() / 1e6,
        within_5_pct: near as f64 / count,
    })
}

fn metrics(closed: &BaseReport, trace: &BaseReport, primary: TimeBase) -> BTreeMap<String, f64> {
    let mut metrics = BTreeMap::new();
    let mut add = |infix: &str, split: &Split| {
        for (kind, errors) in [("", &split.all), ("_read", &split.reads), ("_write", &split.writes)]
        {
            let Some(errors) = errors else { continue };
            metrics.insert(format!("demerit{kind}{infix}_ms"), errors.demerit_ms);
            metrics.insert(format!("mean_error{kind}{infix}_pct"), errors.mean_error_pct);
            if kind.is_empty() {
                metrics.insert(format!("demerit{infix}_pct"), errors.demerit_pct);
                metrics.insert(format!("demerit_exact{infix}_ms"), errors.demerit_exact_ms);
                metrics.insert(format!("paired_rms{infix}_ms"), errors.paired_rms_ms);
                metrics.insert(format!("within_5_pct{infix}"), errors.within_5_pct);
                metrics.insert(format!("mean_service{infix}_ms"), errors.mean_ms);
                metrics.insert(format!("measured_mean_service{infix}_ms"), errors.measured_mean_ms);
            }
        }
    };
    let main = if primary == TimeBase::Closed { closed } else { trace };
    add("", &main.whole);
    add("_held_out", &main.held_out);
    add("_closed", &closed.whole);
    add("_trace", &trace.whole);
    add("_trace_held_out", &trace.held_out);
    metrics
}
