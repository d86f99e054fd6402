//! How far a replay has come, in a small file that is replaced as a whole.
//!
//! It survives the death of the process at any moment, because it is written under another name and
//! renamed. It does not outlive a loss of power better than what the file system aged has on disk:
//! for that the workload is to sync.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Outcomes, Planned, ReplayFiles, ReplayOptions, SeriesRow, StopReason, UsageRecord};
use crate::AgeError;
use crate::onto::Refusals;

/// What such a file says it is.
pub(super) const KIND: &str = "agewell-checkpoint";

/// Bytes of the longest that is read, chosen by us: some 50 million operations without room.
const BYTES_MAX: u64 = 1 << 30;

/// The version that is written and read.
pub(super) const VERSION: u32 = 1;

/// The state of a replay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    pub(super) kind: String,
    pub(super) version: u32,
    /// Of which workload.
    pub(super) workload: String,
    /// On what target, with which of its options.
    pub(super) target: String,
    pub(super) options: ReplayOptions,
    pub(super) usage_before: UsageRecord,
    pub(super) planned: Planned,
    pub(super) outcomes: Outcomes,
    pub(super) no_space_at: Vec<u64>,
    pub(super) refusals: Refusals,
    pub(super) series: Vec<SeriesRow>,
    pub(super) utilization_max: f64,
    pub(super) sampled_at: u64,
    pub(super) finished: Option<StopReason>,
}

/// The error of a checkpoint that belongs to something else.
pub(super) fn does_not_fit(path: &Path, why: &str) -> AgeError {
    AgeError::Input(format!(
        "{}: this checkpoint is of another replay ({why}); resume with the same workload and \
         options, or empty the target and begin again",
        path.display()
    ))
}

impl Checkpoint {
    /// Reads the one at `path`.
    ///
    /// # Errors
    /// If there is none, or if it is not one.
    pub fn read(path: &Path) -> Result<Self, AgeError> {
        let text = match agewell_core::read_bounded(path, BYTES_MAX) {
            Ok(text) => text,
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => {
                return Err(AgeError::Input(format!(
                    "{}: there is no checkpoint to resume from; begin again without --resume",
                    path.display()
                )));
            }
            Err(why) => return Err(AgeError::io("read", path)(why)),
        };
        let unreadable = |why: &str| {
            AgeError::Input(format!(
                "{}: not a checkpoint that can be read ({why}); empty the target and begin again",
                path.display()
            ))
        };
        let value: serde_json::Value =
            serde_json::from_slice(&text).map_err(|why| unreadable(&why.to_string()))?;
        if value["kind"] != KIND || value["version"] != VERSION {
            return Err(unreadable("another kind or version"));
        }
        serde_json::from_value(value).map_err(|why| unreadable(&why.to_string()))
    }

    /// Writes it to `path`, whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn write(&self, path: &Path) -> Result<(), AgeError> {
        let text = serde_json::to_vec(self).expect("plain values become JSON");
        agewell_trace::write_whole_unsynced(path, &text).map_err(AgeError::io("write", path))
    }

    /// Whether it is of the replay that is to be resumed.
    pub(super) fn check(
        &self,
        path: &Path,
        files: &ReplayFiles,
        options: &ReplayOptions,
    ) -> Result<(), AgeError> {
        let differs = if self.workload != files.workload_identity {
            "another workload"
        } else if self.target != files.target_identity {
            "another target, or other options of it"
        } else if self.options != *options {
            "other options"
        } else {
            return Ok(());
        };
        Err(does_not_fit(path, differs))
    }
}
