//! Which kind of experiment a configuration is: the one place that decides.
//!
//! What the workload is decides. Block requests go to a layout if there is a table `[layout]`, else
//! straight to a disk; file requests go to a layout; a workload of files, or `"none"`, ages a file
//! system.

use serde_json::Value;

use agewell_config::ConfigError;

use super::request_experiment::Workload;
use super::workload::WorkloadTable;

/// A kind of experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExperimentKind {
    /// Block requests on a disk, perhaps remapped.
    Requests,
    /// File requests through a host into a layout of blocks.
    Layout,
    /// A file system that ages, and is then measured.
    FileSystem,
}

/// Workloads that age a file system.
pub const AGING_WORKLOADS: [&str; 3] = ["none", "file", "smith-1996"];

impl ExperimentKind {
    /// Its name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Layout => "layout",
            Self::FileSystem => "file-system",
        }
    }

    /// The kind of the experiment that `value` describes.
    ///
    /// # Errors
    /// If there is no such workload.
    pub fn of(value: &Value) -> Result<Self, ConfigError> {
        let has_layout = value.get("layout").is_some();
        match value.pointer("/workload/kind").and_then(Value::as_str) {
            // The reader of the table reports what is missing or of the wrong kind.
            None if has_layout => Ok(Self::Layout),
            None => Ok(Self::Requests),
            Some(kind) if AGING_WORKLOADS.contains(&kind) => Ok(Self::FileSystem),
            Some(kind) if Workload::KINDS.contains(&kind) && !has_layout => Ok(Self::Requests),
            Some(kind) if WorkloadTable::KINDS.contains(&kind) => Ok(Self::Layout),
            Some(kind) => {
                let all = [&Workload::KINDS[..], WorkloadTable::KINDS, &AGING_WORKLOADS[..]];
                let names = all.concat();
                let hint = match agewell_core::nearest(kind, &names) {
                    Some(near) => format!("did you mean '{near}'?"),
                    None => format!("use one of {}", names.join(", ")),
                };
                Err(ConfigError(format!("[workload]: kind = '{kind}' is not known; {hint}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_workload_decides() {
        for (value, kind) in [
            (json!({"workload": {"kind": "trace"}}), ExperimentKind::Requests),
            (json!({"workload": {"kind": "trace"}, "layout": {}}), ExperimentKind::Layout),
            (json!({"workload": {"kind": "zipf"}, "layout": {}}), ExperimentKind::Layout),
            (json!({"workload": {"kind": "zipf"}}), ExperimentKind::Layout),
            (json!({"layout": {"kind": "lfs"}}), ExperimentKind::Layout),
            (json!({"workload": {"kind": "none"}}), ExperimentKind::FileSystem),
            (json!({"workload": {"kind": "smith-1996"}, "layout": {}}), ExperimentKind::FileSystem),
            (json!({"workload": {}}), ExperimentKind::Requests),
        ] {
            assert_eq!(ExperimentKind::of(&value), Ok(kind), "{value}");
        }
        let error = ExperimentKind::of(&json!({"workload": {"kind": "zipff"}})).unwrap_err();
        assert!(error.to_string().contains("did you mean 'zipf'?"), "{error}");
    }
}
