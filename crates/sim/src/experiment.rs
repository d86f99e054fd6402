//! Experiments from their configuration to their result.
//!
//! Block requests go through the open loop ([`crate::open_loop`]); file requests go through the host
//! into a layout of blocks, whose transfers a drive prices or times.

mod disk_size;
mod in_place_setup;
mod lane;
mod layout_run;
mod log_run;
mod log_series;
mod log_setup;
mod metrics;
#[cfg(test)]
mod one_by_one;
mod oracle;
mod outcome;
mod placement;
mod policies;
mod prepared;
mod recorder;

use agewell_core::within_64_bits;
use serde_json::Value;

use crate::config::{ConfigError, ExperimentKind, LayoutExperiment, RequestExperiment};
use crate::error::RunError;
use crate::open_loop;
use crate::places::Places;
pub use outcome::Outcome;
use outcome::Tables;
pub use policies::Policies;

/// Runs `experiment`, whichever layers it has. `progress` receives the number of requests read so
/// far, now and then; if it returns false the run stops with [`RunError::Interrupted`].
///
/// # Errors
/// If a file is missing, damaged or inconsistent, a request does not fit the device, or a number
/// that the experiment leads to does not fit 64 bits.
pub fn run(
    experiment: &Experiment,
    places: Places,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Outcome, RunError> {
    run_with(experiment, places, &Policies::default(), progress)
}

/// The same with `policies` in place of those that the experiment names.
///
/// # Errors
/// As those of [`run`], and if the policies do not go with the experiment.
pub fn run_with(
    experiment: &Experiment,
    places: Places,
    policies: &Policies,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Outcome, RunError> {
    let run = || match experiment {
        Experiment::Requests(_) if !policies.is_empty() => Err(RunError::Input(
            "[policies]: block requests go straight to a disk; only an experiment with a table \
             [layout] asks policies from outside"
                .into(),
        )),
        Experiment::Requests(experiment) => {
            let run = open_loop::run(experiment, places, progress)?;
            let open_loop::Run { document, metrics, baseline } = run;
            Ok(Outcome { document, tables: Tables::Blocks { metrics, baseline } })
        }
        Experiment::Layout(experiment) => {
            let experiment = policies.named_in(experiment)?;
            layout_run::run(&experiment, places, policies, progress)
        }
    };
    within_64_bits(run).unwrap_or_else(|overflow| Err(RunError::Input(overflow.to_string())))
}

/// An experiment, by what its requests are.
#[derive(Debug, Clone, PartialEq)]
pub enum Experiment {
    /// Block requests through remapping and queue.
    Requests(Box<RequestExperiment>),
    /// File requests through the host into a layout.
    Layout(Box<LayoutExperiment>),
}

impl Experiment {
    /// An experiment from `value` (the TOML file as JSON).
    ///
    /// # Errors
    /// Names the table and key.
    pub fn from_value(value: Value) -> Result<Self, ConfigError> {
        match ExperimentKind::of(&value)? {
            ExperimentKind::Requests => {
                RequestExperiment::from_value(value).map(Box::new).map(Self::Requests)
            }
            ExperimentKind::Layout => {
                LayoutExperiment::from_value(value).map(Box::new).map(Self::Layout)
            }
            ExperimentKind::FileSystem => Err(ConfigError(
                "experiment: a file system that ages is run by `agewell run`, and by nobody here"
                    .to_owned(),
            )),
        }
    }

    /// The experiment with every default filled in.
    #[must_use]
    pub fn resolved(&self) -> Value {
        match self {
            Self::Requests(experiment) => experiment.resolved(),
            Self::Layout(experiment) => experiment.resolved(),
        }
    }

    /// Which kind it is.
    #[must_use]
    pub fn kind(&self) -> ExperimentKind {
        match self {
            Self::Requests(_) => ExperimentKind::Requests,
            Self::Layout(_) => ExperimentKind::Layout,
        }
    }
}
