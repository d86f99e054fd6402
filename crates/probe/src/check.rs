//! How far the device file is from the disk: fresh reads, the same on both.

use agewell_disk::DeviceParameters;

use crate::disk::{Extent, ProbeError, ProbedDisk};
use crate::estimate::statistics::mean;
use crate::measure::session::Session;
use crate::modelled::{Disturbance, ModelledDisk};

pub use agewell_disk::parameters::Uncertainty;

/// Random small reads that are compared.
const RANDOM: usize = 500;

/// Long reads that follow each other, in as many runs at places of their own.
const SEQUENTIAL: usize = 64;
const RUNS: usize = 4;

/// Sectors of a long read: 64 KiB.
const LONG: u64 = 128;

/// The times of the same reads on the disk and on its model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Mean on the disk, ms. The slowest fiftieth is left out.
    pub disk_ms: f64,
    /// Mean on the model, ms.
    pub model_ms: f64,
    /// Reads.
    pub reads: usize,
}

impl Difference {
    /// The model's error, %.
    #[must_use]
    pub fn error_pct(&self) -> f64 {
        if self.disk_ms > 0.0 { 100.0 * (self.model_ms / self.disk_ms - 1.0) } else { 0.0 }
    }
}

/// Fresh reads: random ones and sequential ones, on the disk and on what was made of it.
pub(crate) fn check(
    session: &mut Session<'_>,
    parameters: &DeviceParameters,
) -> Result<[Difference; 2], ProbeError> {
    session.step("disk and model compared")?;
    let random = session.small_extents(RANDOM);
    let mut sequential = Vec::new();
    for _ in 0..RUNS {
        let place = session.place();
        let run = session.within(place, LONG * (SEQUENTIAL / RUNS) as u64);
        let reads = (0..(SEQUENTIAL / RUNS) as u64).map(|number| run.first + number * LONG);
        sequential.push(reads.map(|first| session.within(first, LONG)).collect::<Vec<Extent>>());
    }
    let mut model = ModelledDisk::new(parameters, Disturbance::default());
    let all = [vec![random], sequential];
    let mut found = Vec::new();
    for runs in &all {
        let (mut on_disk, mut on_model) = (Vec::new(), Vec::new());
        for run in runs {
            for extent in run {
                on_disk.push(session.read(extent.first, extent.sectors)?.taken_ns());
                on_model.push(model.read(*extent)?.taken_ns());
            }
        }
        found.push(Difference {
            disk_ms: robust_mean(&on_disk) / 1e6,
            model_ms: robust_mean(&on_model) / 1e6,
            reads: on_disk.len(),
        });
    }
    Ok([found[0], found[1]])
}

/// The share of reads that is left out, the slowest: on a busy machine they show the host, not the disk.
const SLOWEST: f64 = 0.02;

/// The mean of `times` without the slowest.
fn robust_mean(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.truncate(times.len() - (SLOWEST * times.len() as f64).round() as usize);
    mean(&sorted)
}
