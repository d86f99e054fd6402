//! Facts about one spindle and its host that no parameter file holds, estimated from the first half of a trace.
//!
//! Two things: the time of one sector on the host's bus, where the device file leaves it to the host; and the platter's
//! phase and exact rotation period, without which a replay on the trace's own clock knows nothing of rotation.
//! Nothing here looks at the second half, on which the errors are reported beside those of the whole trace.

use crate::mechanical::Mechanical;
use crate::parameters::MechanicalParameters;
use crate::validation::replay::{Measured, Stopped, TimeBase, replay_classified};
use agewell_core::Operation;

/// How far the true period may be from the nominal one. Chosen by us: spindles of the time were held to 0.5 % or better
/// (their data sheets), and the drives that we hold measurements of are within 0.04 %.
const PERIOD_RANGE_PPM: f64 = 1500.0;

/// Least coherence of the residuals' phases that counts as locked. Chosen by us: the largest of some 5000 independent
/// frequencies stays below sqrt(ln(5000)/n) = 0.05 for n = 3000 requests of random phase.
const LOCKED_COHERENCE: f64 = 0.3;

/// Longest first half over which a phase is looked for, ns. Chosen by us: half an hour; beyond it, drift of the host's
/// clock and of the spindle leave nothing to find.
const SPAN_NS_MAX: f64 = 1.8e12;

/// The rotation of one spindle against the clock of its trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rotation {
    /// Phase at time 0, 2^-64 turns.
    pub phase: u64,
    /// Period, ps.
    pub period_ps: u64,
    /// How far the period is from the nominal one, parts per million.
    pub period_ppm: f64,
    /// Mean resultant length of the residuals' phases, 0 (random) to 1 (locked).
    pub coherence: f64,
}

impl Rotation {
    /// Whether the residuals agree on a phase well enough for it to mean something.
    pub fn locked(&self) -> bool {
        self.coherence >= LOCKED_COHERENCE
    }
}

/// One sector on the bus, ps, from reads of the first `half` requests that the buffer served: the slope of their median
/// response against their size (Theil-Sen). `None` if fewer than three sizes have three such reads.
///
/// # Errors
/// If `go_on`, which is asked now and then, answers false.
pub fn bus_sector_ps(
    parameters: &MechanicalParameters,
    measured: &Measured,
    half: usize,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Option<u64>, Stopped> {
    let mut by_size: Vec<(u32, Vec<u64>)> = Vec::new();
    let mut device = Mechanical::new(parameters);
    let responses = replay_classified(&mut device, measured, TimeBase::Closed, half, go_on)?;
    for (index, (_, hit)) in responses.into_iter().enumerate() {
        if hit && measured.operation[index] == Operation::Read as u8 {
            let size = measured.sectors[index];
            let at = by_size.partition_point(|(known, _)| *known < size);
            if by_size.get(at).is_none_or(|(known, _)| *known != size) {
                by_size.insert(at, (size, Vec::new()));
            }
            by_size[at].1.push(measured.response_ns(index));
        }
    }
    let medians: Vec<(f64, f64)> = by_size
        .iter_mut()
        .filter(|(_, samples)| samples.len() >= 3)
        .map(|(size, samples)| (f64::from(*size), median(samples)))
        .collect();
    let mut slopes: Vec<f64> = Vec::new();
    for (index, one) in medians.iter().enumerate() {
        for other in &medians[index + 1..] {
            // Neighbouring sizes say little about the slope and would outvote the others.
            if other.0 - one.0 >= 4.0 {
                slopes.push((other.1 - one.1) / (other.0 - one.0));
            }
        }
    }
    if medians.len() < 3 || slopes.is_empty() {
        return Ok(None);
    }
    slopes.sort_by(f64::total_cmp);
    let slope = slopes[slopes.len() / 2];
    Ok((slope > 0.0).then_some((slope * 1000.0).round() as u64))
}

fn median(samples: &mut [u64]) -> f64 {
    samples.sort_unstable();
    samples[samples.len() / 2] as f64
}

/// Phase and period from the first `half` requests.
///
/// On the trace's clock, a request that ends at the medium ends when its last sector has passed: measured minus
/// simulated finish, as a fraction of a turn, is the platter's phase error at that moment. The period is where these
/// phases, turned back at its rate, agree best (a spectral search); two passes, because the first may have missed turns.
/// `None` if there are no requests, or they span too long a time for a phase to be held.
///
/// # Errors
/// If `go_on`, which is asked now and then, answers false.
pub fn rotation(
    parameters: &MechanicalParameters,
    measured: &Measured,
    half: usize,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Option<Rotation>, Stopped> {
    let nominal_ns = parameters.rotation_period_ps as f64 / 1000.0;
    let mut found = Rotation {
        phase: 0,
        period_ps: parameters.rotation_period_ps,
        period_ppm: 0.0,
        coherence: 0.0,
    };
    let mut range_ppm = PERIOD_RANGE_PPM;
    let (Some(first), Some(last)) = (measured.issue_ns.first(), measured.finish_ns[..half].last())
    else {
        return Ok(None);
    };
    if (last - first) as f64 > SPAN_NS_MAX {
        return Ok(None);
    }
    for _ in 0..2 {
        let mut tuned = parameters.clone();
        tuned.rotation_period_ps = found.period_ps;
        let period_ns = found.period_ps as f64 / 1000.0;
        let mut device = Mechanical::with_phase(&tuned, found.phase);
        let mut samples: Vec<(f64, f64)> = Vec::new();
        let responses = replay_classified(&mut device, measured, TimeBase::Trace, half, go_on)?;
        for (index, (response, hit)) in responses.into_iter().enumerate() {
            if !hit {
                let late = measured.response_ns(index) as f64 - response as f64;
                samples.push((measured.finish_ns[index] as f64, late / period_ns));
            }
        }
        let range = range_ppm * 1e-6 / nominal_ns;
        let (turns_per_ns, coherence, turns) = search(&samples, range, go_on)?;
        // Lateness grows by `turns_per_ns`: the platter turns that much slower.
        let rate = 1.0 / period_ns - turns_per_ns;
        let period_ps = (1000.0 / rate).round();
        let phase = (-turns - (-turns).floor()) * 18_446_744_073_709_551_616.0;
        found = Rotation {
            phase: found.phase.wrapping_add(phase as u64),
            period_ps: period_ps as u64,
            period_ppm: (period_ps / parameters.rotation_period_ps as f64 - 1.0) * 1e6,
            coherence,
        };
        range_ppm = 20.0;
    }
    Ok(Some(found))
}

/// The rate (turns per ns, within `range`) at which the phases of `samples` (time ns, turns) agree best, how well, and
/// their common phase at time 0.
fn search(
    samples: &[(f64, f64)],
    range: f64,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(f64, f64, f64), Stopped> {
    let Some(last) = samples.last().map(|sample| sample.0) else { return Ok((0.0, 0.0, 0.0)) };
    let score = |rate: f64| {
        let (mut sine, mut cosine) = (0.0, 0.0);
        for (time, turns) in samples {
            let angle = std::f64::consts::TAU * (turns - rate * time);
            let (of_sine, of_cosine) = libm::sincos(angle);
            sine += of_sine;
            cosine += of_cosine;
        }
        let length = (sine * sine + cosine * cosine).sqrt() / samples.len() as f64;
        (length, libm::atan2(sine, cosine) / std::f64::consts::TAU)
    };
    // Four points to the width of a peak, then ever finer around the best.
    let mut step = 0.25 / last.max(1.0);
    let mut best = (0.0, 0.0);
    let count = (range / step).ceil() as i64;
    for index in -count..=count {
        if !go_on() {
            return Err(Stopped);
        }
        let rate = index as f64 * step;
        let (length, _) = score(rate);
        if length > best.1 {
            best = (rate, length);
        }
    }
    for _ in 0..12 {
        step /= 2.0;
        if !go_on() {
            return Err(Stopped);
        }
        for rate in [best.0 - step, best.0 + step] {
            let (length, _) = score(rate);
            if length > best.1 {
                best = (rate, length);
            }
        }
    }
    let (length, turns) = score(best.0);
    Ok((best.0, length, turns))
}
