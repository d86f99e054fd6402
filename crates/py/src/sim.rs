//! Running experiments from Python.

use std::path::{Path, PathBuf};

use agewell_age::experiment::Experiment;
use agewell_age::workload::short_lived::NfsLike;
use agewell_age::workload::smith_1996::{Kind, Smith1996Parameters};
use agewell_config::{Key, Keyed, TableOfKeys};
use agewell_disk::DeviceParameters;
use agewell_sim::{Places, Policies, RunError};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::policies::{Failure, Functions};
use crate::{age, error, interpreter};

/// Runs one experiment and returns its result document as JSON text.
///
/// `config` is the experiment as JSON text; relative paths in it start from `base_dir`. With
/// `out_dir` the result and its tables are also written there. `progress` is called now and then
/// with the number of requests read so far; a KeyboardInterrupt, or an exception it raises, stops
/// the run and nothing is written. The result names `build`, the software that it was made by. `policies`
/// are functions that decide in place of what the experiment names.
#[pyfunction]
#[pyo3(signature = (config, base_dir, catalogue_dir, build, out_dir=None, progress=None, policies=None))]
#[allow(clippy::too_many_arguments, reason = "each is an argument of the Python function")]
pub(crate) fn run_experiment(
    py: Python<'_>,
    config: &str,
    base_dir: PathBuf,
    catalogue_dir: PathBuf,
    build: &str,
    out_dir: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
    policies: Option<Functions>,
) -> PyResult<String> {
    let experiment = read_experiment(config)?;
    let (policies, failure) = policies.unwrap_or_default().into_policies();
    let places = Places { base: &base_dir, catalogue: &catalogue_dir };
    let work = |raised: &mut Option<PyErr>| {
        let mut tell = |done: u64| {
            interpreter::call(raised, |py| {
                failure.check()?;
                if let Some(progress) = &progress {
                    progress.call1(py, (done,))?;
                }
                Ok(())
            })
        };
        let policies = (&policies, &failure);
        run_and_write(&experiment, places, policies, build, out_dir.as_deref(), &mut tell)
    };
    interpreter::detached(py, work, |why| why)
}

/// The experiment with every default filled in, as JSON text; checks it without running it.
#[pyfunction]
pub(crate) fn resolve_experiment(config: &str) -> PyResult<String> {
    Ok(read_experiment(config)?.resolved().to_string())
}

/// What may stand in an experiment, as JSON text: a JSON Schema, and for each kind of experiment,
/// table and kind of table its keys as a table in Markdown; likewise for the tables of
/// device files and the parameters of workloads.
#[pyfunction]
pub(crate) fn configuration_reference() -> String {
    let mut documents = Map::new();
    let mut kinds = Vec::new();
    let mut document = |of: &str, tables: Vec<TableOfKeys>| {
        for table in tables {
            for each in table.kinds {
                let name = format!("{of} {} {}", table.name, each.name);
                documents.insert(name.trim_end().to_owned(), json!(Key::markdown(&each.keys)));
            }
        }
    };
    for (kind, tables) in Experiment::tables() {
        kinds.push(agewell_config::schema::of_tables(kind.name(), &tables));
        document(kind.name(), tables);
    }
    document("device-file", DeviceParameters::tables());
    let parameters = vec![
        TableOfKeys::plain("smith-1996", Smith1996Parameters::keys()),
        TableOfKeys::plain("kind", Kind::keys()),
        TableOfKeys::plain("nfs-like", NfsLike::keys()),
    ];
    document("workload", parameters);
    let schema = json!({
        "$schema": agewell_config::schema::DRAFT,
        "title": "an experiment of agewell",
        "anyOf": kinds,
    });
    json!({ "schema": schema, "tables": documents }).to_string()
}

fn read_experiment(config: &str) -> PyResult<Experiment> {
    let value: Value = serde_json::from_str(config)
        .map_err(|why| error::input(format!("the experiment is not JSON: {why}")))?;
    Experiment::from_value(value).map_err(error::input)
}

fn run_and_write(
    experiment: &Experiment,
    places: Places,
    (policies, failure): (&Policies, &Failure),
    build: &str,
    out_dir: Option<&Path>,
    tell: &mut dyn FnMut(u64) -> bool,
) -> PyResult<String> {
    match experiment {
        Experiment::Simulated(experiment) => {
            let outcome = agewell_sim::run_with(experiment, places, policies, tell);
            // What a policy did wrong comes before what came of it.
            failure.check()?;
            let mut outcome = outcome.map_err(to_python)?;
            outcome.document["agewell_build"] = build.into();
            if let Some(directory) = out_dir {
                outcome.write(directory).map_err(to_python)?;
            }
            Ok(outcome.document.to_string())
        }
        Experiment::FileSystem(_) if !policies.is_empty() => Err(error::input(
            "[policies]: a file system that ages asks no policies from outside; only an experiment of \
             requests with a table [layout] does",
        )),
        Experiment::FileSystem(experiment) => {
            let failed = |why| age::to_python(&why);
            let mut outcome =
                agewell_age::experiment::run(experiment, places, tell).map_err(failed)?;
            outcome.document["agewell_build"] = build.into();
            if let Some(directory) = out_dir {
                outcome.write(directory).map_err(failed)?;
            }
            Ok(outcome.document.to_string())
        }
    }
}

fn to_python(failure: RunError) -> PyErr {
    if failure.is_input() { error::input(failure) } else { error::run(failure) }
}
