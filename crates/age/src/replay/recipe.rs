//! What makes an aged state again: a small JSON file instead of an image.
//!
//! On a simulated target the same recipe gives the same layout; on a real one it asks for the same
//! operations, also where the file system is of another size: what held the utilization is kept as
//! bytes, and the end as a number of operations.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ReplayOptions, ReplayReport, StopReason, Until};
use crate::AgeError;
use crate::workload::WorkloadFacts;

/// What such a file says it is.
const KIND: &str = "agewell-recipe";

/// The version that is written and read.
const VERSION: u32 = 1;

/// A workload by where it comes from and what it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipeWorkload {
    /// Name of its source.
    pub source: String,
    /// Seed of its source.
    pub seed: u64,
    /// Parameters of its source, enough to make it again.
    pub parameters: BTreeMap<String, Value>,
    /// Operations in all.
    pub operations: u64,
    /// Of the bytes of its file.
    pub sha256: String,
}

impl RecipeWorkload {
    pub(super) fn new(facts: &WorkloadFacts, sha256: String) -> Self {
        Self {
            source: facts.source.clone(),
            seed: facts.seed,
            parameters: facts.parameters.clone(),
            operations: facts.operations,
            sha256,
        }
    }
}

/// What makes an aged state again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    kind: String,
    version: u32,
    /// The version of agewell that wrote it.
    pub agewell_version: String,
    /// The target: a simulated layout with all its parameters, or how a directory was used.
    pub target: Value,
    /// The workload.
    pub workload: RecipeWorkload,
    /// What was done with it.
    pub replay: ReplayOptions,
}

impl Recipe {
    pub(super) fn new(
        target: Value,
        workload: RecipeWorkload,
        options: &ReplayOptions,
        report: &ReplayReport,
    ) -> Self {
        let replay = ReplayOptions {
            live_limit: report.live_limit,
            until: same_end(report),
            ..options.clone()
        };
        Self {
            kind: KIND.to_owned(),
            version: VERSION,
            agewell_version: env!("CARGO_PKG_VERSION").to_owned(),
            target,
            workload,
            replay,
        }
    }

    /// Reads the one at `path`.
    ///
    /// # Errors
    /// If it cannot be read or is none.
    pub fn read(path: &Path) -> Result<Self, AgeError> {
        let text = agewell_core::read_text(path).map_err(AgeError::io("read", path))?;
        let wrong = |why: &str| {
            AgeError::Input(format!(
                "{}: not a recipe ({why}); make one with agewell age --save-recipe",
                path.display()
            ))
        };
        let value: Value = serde_json::from_str(&text).map_err(|why| wrong(&why.to_string()))?;
        if value["kind"] != KIND || value["version"] != VERSION {
            return Err(wrong("another kind or version"));
        }
        let recipe: Self = serde_json::from_value(value).map_err(|why| wrong(&why.to_string()))?;
        recipe.replay.check()?;
        Ok(recipe)
    }

    /// Writes it to `path`, whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    ///
    /// # Panics
    /// Never: plain values become JSON.
    pub fn write(&self, path: &Path) -> Result<(), AgeError> {
        let mut text = serde_json::to_string_pretty(self).expect("plain values become JSON");
        text.push('\n');
        agewell_trace::write_whole(path, text.as_bytes()).map_err(AgeError::io("write", path))
    }
}

/// The end that makes a replay of the same operations stop where this one did.
fn same_end(report: &ReplayReport) -> Vec<Until> {
    match report.stop {
        StopReason::WorkloadEnd => Vec::new(),
        StopReason::Reached(_) => vec![Until::Operations(report.planned.operations)],
    }
}
