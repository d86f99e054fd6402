//! Device parameters out of what was seen; everything here is worked out, nothing is measured.
//!
//! Where a number cannot be read off directly, the model decides: the same requests are put to models that
//! differ in that number, and the one that answers most as the disk did is taken. The requests of a
//! measurement are thereby also the test of what was made of it.

pub(crate) mod armed;
pub(crate) mod flash;
pub(crate) mod plain;

use std::collections::BTreeMap;

use agewell_core::SimDuration;
use agewell_disk::{DeviceKind, DeviceParameters};

use crate::disk::{DiskFacts, ProbeError};
use crate::measure::session::Session;
use crate::modelled::{Disturbance, ModelledDisk};

/// Time that a measurement of a model may take; it is virtual.
const UNLIMITED: SimDuration = SimDuration(1 << 50);

/// A file's sources, by key.
pub(crate) type Sources = BTreeMap<String, String>;

/// A device file of `kind` for the disk with `facts`.
pub(crate) fn device(facts: &DiskFacts, kind: DeviceKind, sources: Sources) -> DeviceParameters {
    let capacity_sectors = match &kind {
        DeviceKind::Mechanical(drive) => drive.capacity * u64::from(drive.sector_bytes) / 512,
        _ => facts.sectors,
    };
    DeviceParameters {
        name: "probed".to_owned(),
        title: format!("{} as measured", facts.name),
        capacity_sectors,
        kind,
        sources,
        uncertainty: None,
    }
}

/// What is wrong with `parameters` by the rules of every device file.
pub(crate) fn contradiction(parameters: &DeviceParameters) -> Option<String> {
    let read = DeviceParameters::from_toml("the device file", &parameters.to_toml());
    read.err().map(|why| why.to_string())
}

/// What `measure` sees when it is put to the model of `parameters` instead of the disk.
pub(crate) fn on_model<T>(
    parameters: &DeviceParameters,
    measure: impl FnOnce(&mut Session<'_>) -> Result<T, ProbeError>,
) -> Option<T> {
    let mut model = ModelledDisk::new(parameters, Disturbance::default());
    let mut always = |_: f64, _: &str| true;
    let mut session = Session::new(&mut model, UNLIMITED, 1, &mut always);
    // A model answers everything within its capacity; the measurements stay within.
    measure(&mut session).ok()
}

/// "64 reads, spread 0.02 ms".
pub(crate) fn measured(reads: usize, spread_ns: f64) -> String {
    format!("measured: {reads} reads, spread {} ms", short(spread_ns / 1e6))
}

/// Three significant digits.
pub(crate) fn short(value: f64) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let digits = if value == 0.0 { 0 } else { libm::floor(libm::log10(value.abs())) as i32 };
    let decimals = (2 - digits).clamp(0, 6) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
