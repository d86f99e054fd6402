//! Access time and bandwidth: what is left when nothing more can be said.

use agewell_disk::DeviceKind;
use agewell_disk::parameters::SimpleParameters;

use super::{Sources, measured};
use crate::disk::ProbeError;
use crate::estimate::statistics::{mean, quantile, spread};
use crate::measure::session::{SMALL, Session};

/// Runs of long reads, reads of a run and their sectors (1 MiB).
const RUNS: u64 = 8;
const READS: u64 = 6;
const LONG: u64 = 2048;

/// Times of random small reads, and of long reads that follow each other, ns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlainSeen {
    pub(crate) random_ns: Vec<f64>,
    pub(crate) long_ns: Vec<f64>,
}

/// Adds long reads to the random ones that were made already.
pub(crate) fn measure(
    session: &mut Session<'_>,
    random_ns: Vec<f64>,
) -> Result<PlainSeen, ProbeError> {
    session.step("access time and bandwidth")?;
    let mut long_ns = Vec::new();
    let sectors = LONG.min(session.sectors() / 16).max(SMALL);
    for run in 0..RUNS {
        let place = session.sectors() / RUNS * run;
        let first = session.within(place, sectors * (READS + 1)).first;
        session.read_small(first)?;
        for number in 0..READS {
            let answer = session.read(first + SMALL + number * sectors, sectors)?;
            long_ns.push(answer.taken_ns() * LONG as f64 / sectors as f64);
        }
    }
    Ok(PlainSeen { random_ns, long_ns })
}

/// The two numbers.
pub(crate) fn fit(seen: &PlainSeen) -> (DeviceKind, Sources) {
    // Late answers are the host's; the middle of what is left is the disk.
    let limit = 4.0 * quantile(&seen.random_ns, 0.75);
    let kept: Vec<f64> = seen.random_ns.iter().copied().filter(|one| *one <= limit).collect();
    let long = quantile(&seen.long_ns, 0.5).max(1000.0);
    let bandwidth = LONG as f64 * 512.0 * 1e9 / long;
    let transfer = SMALL as f64 * 512.0 * 1e9 / bandwidth;
    let access = (mean(&kept) - transfer).max(1.0);
    let simple = SimpleParameters {
        access_time_ns: access as u64,
        bandwidth_bytes_per_s: (bandwidth as u64).max(1),
    };
    let sources = Sources::from([
        ("simple.access_time_ms".into(), measured(kept.len(), spread(&kept))),
        ("simple.bandwidth".into(), measured(seen.long_ns.len(), spread(&seen.long_ns))),
        ("capacity_sectors".into(), "the size that the system gives".into()),
    ]);
    (DeviceKind::Simple(simple), sources)
}
