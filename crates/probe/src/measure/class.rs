//! What kind of disk it is, by timing alone: what a disk says of itself may be wrong (a virtual disk
//! that answers in 62 us calls itself rotational).

use super::session::Session;
use crate::disk::ProbeError;
use crate::estimate::rotation::{Rotation, rotation};
use crate::estimate::statistics::quantile;

/// Places that are read again and again, in changing order; chosen by us: more than a drive's buffer
/// has segments.
const PLACES: usize = 64;

/// Times each is read.
const ROUNDS: usize = 5;

/// The same when the spindle is known and looked at again.
const ROUNDS_AGAIN: usize = 3;

/// Random reads that take less, in the middle, come from no arm, ns: the fastest spindle takes 2 ms for
/// half a turn.
const FLASH_BELOW_NS: f64 = 1e6;

/// Access times that are this even, p90 - p10 over the median, are those of two numbers.
const EVEN: f64 = 0.15;

/// Ends that lie at the same angle this well come from a spindle. Chosen by us: twice what the best of
/// all frequencies reaches for reads that end at any time.
const COHERENT: f64 = 0.5;

/// Reads of one place further apart say nothing of a spindle that wanders, ns.
const APART_MAX_NS: f64 = 1.6e9;

/// How a disk answers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Timing {
    /// Times of random small reads, ns.
    pub(crate) random_ns: Vec<f64>,
    /// The spindle, if one is seen.
    pub(crate) rotation: Option<Rotation>,
    /// Times between reads of one place, ns, from which that follows.
    pub(crate) between_ns: Vec<f64>,
}

/// A kind of disk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Seen {
    /// It answers in less than an arm can.
    Flash,
    /// All reads take the same.
    Even,
    /// A spindle.
    Armed(Rotation),
    /// Slow and uneven, but no spindle is seen.
    Unclear,
}

impl Timing {
    /// What these times are of.
    pub(crate) fn class(&self) -> Seen {
        let middle = quantile(&self.random_ns, 0.5);
        if middle < FLASH_BELOW_NS {
            return Seen::Flash;
        }
        let (low, high) = (quantile(&self.random_ns, 0.1), quantile(&self.random_ns, 0.9));
        if high - low < EVEN * middle {
            return Seen::Even;
        }
        match self.rotation {
            Some(rotation) if rotation.coherence > COHERENT => Seen::Armed(rotation),
            _ => Seen::Unclear,
        }
    }
}

/// Reads the same places again and again.
pub(crate) fn measure(session: &mut Session<'_>) -> Result<Timing, ProbeError> {
    session.step("what kind of disk it is")?;
    turns(session, ROUNDS)
}

/// The time of a turn as it is now, ns, where it was `period_ns` earlier: spindles wander.
pub(crate) fn period_now(
    session: &mut Session<'_>,
    period_ns: f64,
) -> Result<Option<f64>, ProbeError> {
    session.step("rotation")?;
    let found = turns(session, ROUNDS_AGAIN)?.rotation;
    Ok(found
        .filter(|found| (found.period_ns / period_ns - 1.0).abs() < 0.004)
        .map(|found| found.period_ns))
}

fn turns(session: &mut Session<'_>, rounds: usize) -> Result<Timing, ProbeError> {
    let mut order: Vec<(u64, Option<f64>)> = (0..PLACES).map(|_| (session.place(), None)).collect();
    let mut timing = Timing { random_ns: Vec::new(), rotation: None, between_ns: Vec::new() };
    for _ in 0..rounds {
        session.shuffle(&mut order);
        for (place, last) in &mut order {
            let answer = session.read_small(*place)?;
            let end = answer.end.0 as f64;
            timing.random_ns.push(answer.taken_ns());
            if let Some(before) = *last
                && end - before < APART_MAX_NS
            {
                timing.between_ns.push(end - before);
            }
            *last = Some(end);
        }
    }
    timing.rotation = rotation(&timing.between_ns);
    Ok(timing)
}
