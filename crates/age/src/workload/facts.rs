//! What a workload says about itself.

use std::collections::BTreeMap;

use agewell_core::DAY_NS;
use serde::{Deserialize, Serialize};

use super::LiveSet;
use crate::Action;

/// What its source knows of a workload; the rest is counted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SourceFacts {
    /// Name of the source: `git`, `smith-1996`, ...
    pub source: String,
    /// Seed of its random streams; 0 where nothing is drawn.
    pub seed: u64,
    /// Civil time of its start, seconds since 1970, where there is one.
    pub start_unix_s: Option<i64>,
    /// Directories 1 to `groups` stand for the cylinder groups 0 to `groups` - 1 of the file system
    /// it came from (Smith & Seltzer 1996, §3.2); `None` where directories are directories.
    pub groups: Option<u32>,
    /// Parameters by name, enough to make it again.
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// What was left out or changed on the way, each with its count.
    pub notes: BTreeMap<String, u64>,
}

/// Facts of a workload: what its source says and what was counted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkloadFacts {
    /// Name of the source: `git`, `smith-1996`, ...
    pub source: String,
    /// Seed of its random streams; 0 where nothing is drawn.
    pub seed: u64,
    /// Civil time of its start, seconds since 1970, where there is one.
    pub start_unix_s: Option<i64>,
    /// Directories 1 to `groups` stand for cylinder groups; `None` where directories are
    /// directories.
    pub groups: Option<u32>,
    /// Operations in all.
    pub operations: u64,
    /// Operations by name of their action.
    pub actions: BTreeMap<String, u64>,
    /// Days begun from the start to the last operation.
    pub days: u64,
    /// Time of the last operation, ns from the start.
    pub last_ns: u64,
    /// Bytes of all writes.
    pub written_bytes: u64,
    /// Bytes of the files that are left at the end.
    pub live_bytes: u64,
    /// The most bytes alive at once.
    pub peak_live_bytes: u64,
    /// Files left at the end.
    pub live_files: u64,
    /// The most files alive at once.
    pub peak_live_files: u64,
    /// Directories left at the end, with the root.
    pub live_directories: u64,
    /// Numbers of files used: a target's table of files needs as many rows.
    pub file_numbers: u32,
    /// Numbers of directories used, with the root's.
    pub directories: u32,
    /// Concurrent writers.
    pub streams: u32,
    /// Parameters by name, enough to make it again.
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// What was left out or changed on the way, each with its count.
    pub notes: BTreeMap<String, u64>,
}

impl WorkloadFacts {
    /// The facts of a workload that `source` made and `live_set` counted.
    #[must_use]
    pub fn new(source: SourceFacts, live_set: &LiveSet) -> Self {
        let counted = Action::ALL.iter().zip(live_set.counts);
        Self {
            source: source.source,
            seed: source.seed,
            start_unix_s: source.start_unix_s,
            groups: source.groups,
            operations: live_set.operations(),
            actions: counted
                .filter(|(_, count)| *count > 0)
                .map(|(action, count)| (action.name().to_owned(), count))
                .collect(),
            days: if live_set.operations() == 0 { 0 } else { live_set.latest_ns / DAY_NS + 1 },
            last_ns: live_set.latest_ns,
            written_bytes: live_set.written_bytes,
            live_bytes: live_set.live_bytes,
            peak_live_bytes: live_set.live_bytes_max,
            live_files: live_set.live_files,
            peak_live_files: live_set.live_files_max,
            live_directories: live_set.live_directories,
            file_numbers: live_set.file_numbers(),
            directories: live_set.directory_numbers(),
            streams: live_set.streams,
            parameters: source.parameters,
            notes: source.notes,
        }
    }
}
