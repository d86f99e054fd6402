//! A whole experiment, as the command line runs it.

use std::path::Path;

use agewell_sim::{Experiment, Places, RunError, run};
use serde_json::Value;

/// The document that `config` gives with the catalogue of drives.
pub(crate) fn simulate(config: &Value) -> Result<Value, RunError> {
    let experiment = Experiment::from_value(config.clone())?;
    let again = Experiment::from_value(experiment.resolved())?;
    assert_eq!(again, experiment, "the resolved configuration is the experiment");
    let catalogue = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices");
    let places = Places { base: Path::new("."), catalogue: &catalogue };
    run(&experiment, places, &mut |_| true).map(|outcome| outcome.document)
}
