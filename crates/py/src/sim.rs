//! Running experiments from Python.

use std::path::PathBuf;

use agewell_sim::{AnyExperiment, Outcome, Places, RunError};
use pyo3::prelude::*;
use serde_json::Value;

use crate::error;

/// Runs one experiment and returns its result document as JSON text.
///
/// `config` is the experiment as JSON text; relative paths in it start from `base_dir`. With
/// `out_dir` the result and its tables are also written there. `progress` is called now and then
/// with the number of requests read so far; a KeyboardInterrupt, or an exception it raises, stops
/// the run and nothing is written.
#[pyfunction]
#[pyo3(signature = (config, base_dir, catalogue_dir, out_dir=None, progress=None))]
pub(crate) fn run_experiment(
    py: Python<'_>,
    config: &str,
    base_dir: PathBuf,
    catalogue_dir: PathBuf,
    out_dir: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let experiment = read_experiment(config)?;
    let places = Places { base: &base_dir, catalogue: &catalogue_dir };
    let mut raised = None;
    let result = py.detach(|| run_and_write(&experiment, places, out_dir, progress, &mut raised));
    if let Some(exception) = raised {
        return Err(exception);
    }
    let outcome = result.map_err(to_python)?;
    Ok(outcome.document.to_string())
}

/// The experiment with every default filled in, as JSON text; checks it without running it.
#[pyfunction]
pub(crate) fn resolve_experiment(config: &str) -> PyResult<String> {
    Ok(read_experiment(config)?.resolved().to_string())
}

fn read_experiment(config: &str) -> PyResult<AnyExperiment> {
    let value: Value = serde_json::from_str(config)
        .map_err(|why| error::input(format!("the experiment is not JSON: {why}")))?;
    AnyExperiment::from_value(value).map_err(error::input)
}

fn run_and_write(
    experiment: &AnyExperiment,
    places: Places,
    out_dir: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
    raised: &mut Option<PyErr>,
) -> Result<Outcome, RunError> {
    let mut tell = |requests: u64| {
        // Signals reach Python only while it holds the interpreter: a batch is a few milliseconds.
        let told = Python::attach(|py| {
            py.check_signals()?;
            if let Some(progress) = &progress {
                progress.call1(py, (requests,))?;
            }
            Ok(())
        });
        match told {
            Ok(()) => true,
            Err(exception) => {
                *raised = Some(exception);
                false
            }
        }
    };
    let outcome = agewell_sim::run(experiment, places, &mut tell)?;
    if let Some(directory) = out_dir {
        outcome.write(&directory)?;
    }
    Ok(outcome)
}

fn to_python(failure: RunError) -> PyErr {
    if failure.is_input() { error::input(failure) } else { error::run(failure) }
}
