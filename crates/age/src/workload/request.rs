//! A workload asked for as one JSON document: what the command line and recipes say.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::profile::{self, ProfileParameters};
use super::smith_1996::{self, Smith1996Parameters};
use super::snapshots::{self, SnapshotsParameters};
use super::{HistoryParameters, OperationSink, WorkloadFacts, WorkloadWriter, git, oplist, trace};
use crate::path_text;
use crate::{AgeError, Operation};

/// Operations between two calls of a watcher: some milliseconds; chosen by us.
const WATCH_OPERATIONS: u64 = 1 << 16;

/// Which workload, from what. As JSON, `source` names the variant in kebab case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "kebab-case", deny_unknown_fields)]
pub enum WorkloadRequest {
    /// [`git::from_repository`].
    Git {
        /// A repository on disk.
        #[serde(deserialize_with = "path_text::read")]
        repository: PathBuf,
        /// Where the history ends.
        #[serde(default = "head")]
        revision: String,
        /// How it is played.
        #[serde(default)]
        history: HistoryParameters,
    },
    /// [`oplist::from_list`].
    Oplist {
        /// The list of operations.
        #[serde(deserialize_with = "path_text::read")]
        list: PathBuf,
        /// How it is played.
        #[serde(default)]
        history: HistoryParameters,
    },
    /// [`profile::from_profile`].
    Profile {
        /// A folder with the three distributions.
        #[serde(deserialize_with = "path_text::read")]
        profile: PathBuf,
        /// Seed of every draw.
        #[serde(default = "one")]
        seed: u64,
        /// What differs from the default.
        #[serde(default)]
        parameters: ProfileParameters,
    },
    /// [`snapshots::from_snapshots`].
    Snapshots {
        /// Snapshot files in the order of time.
        #[serde(deserialize_with = "path_text::read")]
        snapshots: Vec<PathBuf>,
        /// Seed of every draw.
        #[serde(default = "one")]
        seed: u64,
        /// What differs from the default.
        #[serde(default)]
        parameters: SnapshotsParameters,
    },
    /// [`trace::from_trace`].
    Trace {
        /// A trace of file operations.
        #[serde(deserialize_with = "path_text::read")]
        trace: PathBuf,
    },
    /// [`smith_1996::generate`].
    #[serde(rename = "smith-1996")]
    Smith1996 {
        /// Seed of every draw.
        #[serde(default = "one")]
        seed: u64,
        /// What differs from the default.
        #[serde(default)]
        parameters: Box<Smith1996Parameters>,
    },
}

fn head() -> String {
    "HEAD".to_owned()
}

fn one() -> u64 {
    1
}

impl WorkloadRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// If it is no JSON, or names something unknown.
    pub fn from_json(text: &str) -> Result<Self, AgeError> {
        serde_json::from_str(text)
            .map_err(|error| AgeError::Input(format!("workload: {error}; correct the request")))
    }

    /// Makes the workload into `sink`.
    ///
    /// # Errors
    /// As its source.
    pub fn make<S: OperationSink>(&self, sink: S) -> Result<(WorkloadFacts, S), AgeError> {
        match self {
            Self::Git { repository, revision, history } => {
                git::from_repository(repository, revision, history, sink)
            }
            Self::Oplist { list, history } => oplist::from_list(list, history, sink),
            Self::Profile { profile, seed, parameters } => {
                profile::from_profile(profile, parameters, *seed, sink)
            }
            Self::Snapshots { snapshots, seed, parameters } => {
                snapshots::from_snapshots(snapshots, parameters, *seed, sink)
            }
            Self::Trace { trace } => trace::from_trace(trace, sink),
            Self::Smith1996 { seed, parameters } => smith_1996::generate(parameters, *seed, sink),
        }
    }

    /// Makes the file `output` of the workload; returns its facts and its length in bytes.
    ///
    /// `watch` is called now and then with the operations made so far; its error stops the work,
    /// and nothing stands under `output` then.
    ///
    /// # Errors
    /// As its source, as `watch`, or if the file cannot be written.
    pub fn write(
        &self,
        output: &Path,
        watch: &mut dyn FnMut(u64) -> Result<(), AgeError>,
    ) -> Result<(WorkloadFacts, u64), AgeError> {
        let sink = Watched { sink: WorkloadWriter::create(output)?, watch, operations: 0 };
        let (facts, sink) = self.make(sink)?;
        let bytes = sink.sink.finish(&facts)?;
        Ok((facts, bytes))
    }
}

/// Calls a watcher between operations.
struct Watched<'a, S> {
    sink: S,
    watch: &'a mut dyn FnMut(u64) -> Result<(), AgeError>,
    operations: u64,
}

impl<S: OperationSink> OperationSink for Watched<'_, S> {
    #[inline]
    fn push(&mut self, operation: &Operation) -> Result<(), AgeError> {
        self.operations += 1;
        if self.operations.is_multiple_of(WATCH_OPERATIONS) {
            (self.watch)(self.operations)?;
        }
        self.sink.push(operation)
    }
}
