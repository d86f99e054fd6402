//! One replay from end to end: from a workload file and a choice of target to the files that are
//! asked for and a record of what was done.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

#[cfg(target_os = "linux")]
use super::checkpoint_path;
use super::recipe::{Recipe, RecipeWorkload};
use super::{
    ReplayFiles, ReplayOptions, ReplayReport, Tell, WorkloadOperations, replay, write_series,
};
#[cfg(target_os = "linux")]
use crate::onto::DirectoryTarget;
use crate::onto::{DirectoryOptions, SimulatedTarget, Target};
use crate::path_text;
use crate::simulated_layout::LayoutSetup;
use crate::workload::{
    LiveSet, OperationSink, SourceFacts, WorkloadFacts, WorkloadReader, WorkloadWriter,
};
use crate::{AgeError, Operation};
use agewell_snapshot::columns;

/// What a workload is replayed onto.
#[derive(Debug, Clone, PartialEq)]
pub enum TargetChoice {
    /// A directory of a mounted file system.
    Directory {
        /// Where it is.
        path: PathBuf,
        /// How it is used.
        options: DirectoryOptions,
    },
    /// A simulated file system.
    Simulated(LayoutSetup),
}

/// Files that a replay leaves, each only if it is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Outputs {
    /// The operations asked of the target, as a workload.
    #[serde(deserialize_with = "path_text::read")]
    pub log: Option<PathBuf>,
    /// Fullness and score over time, Parquet.
    #[serde(deserialize_with = "path_text::read")]
    pub series: Option<PathBuf>,
    /// What the target holds in the end, and where.
    #[serde(deserialize_with = "path_text::read")]
    pub snapshot: Option<PathBuf>,
    /// What makes the same again.
    #[serde(deserialize_with = "path_text::read")]
    pub recipe: Option<PathBuf>,
}

/// A replay to be done.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The workload's file.
    pub workload: PathBuf,
    /// Its target.
    pub target: TargetChoice,
    /// What is done with it.
    pub options: ReplayOptions,
    /// Go on from the checkpoint that is there.
    pub resume: bool,
    /// Where checkpoints of a directory stand; beside it if not given.
    pub checkpoint: Option<PathBuf>,
    /// The sha256 that the workload must have, if it is known.
    pub expected_sha256: Option<String>,
    /// What it leaves.
    pub outputs: Outputs,
}

/// The sha256 of the file at `path`, in hexadecimal.
///
/// # Errors
/// If it cannot be read.
pub fn sha256_of(path: &Path) -> Result<String, AgeError> {
    let mut file = File::open(path).map_err(AgeError::io("open", path))?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let got = file.read(&mut buffer).map_err(AgeError::io("read", path))?;
        if got == 0 {
            break;
        }
        digest.update(&buffer[..got]);
    }
    let mut text = String::with_capacity(64);
    for byte in digest.finalize() {
        write!(text, "{byte:02x}").expect("a string takes whatever is written to it");
    }
    Ok(text)
}

/// The log of a replay, and what is counted for its facts.
struct LogFile {
    path: PathBuf,
    writer: WorkloadWriter,
    live_set: LiveSet,
}

impl LogFile {
    fn create(path: &Path) -> Result<Self, AgeError> {
        let writer = WorkloadWriter::create(path)?;
        Ok(Self { path: path.to_owned(), writer, live_set: LiveSet::default() })
    }

    fn take(&mut self, operations: &[Operation]) -> Result<(), AgeError> {
        for operation in operations {
            self.live_set.apply(operation).map_err(|rule| {
                AgeError::Run(format!(
                    "{}: operation {} of the log breaks a rule: {rule}",
                    self.path.display(),
                    self.live_set.operations() + 1
                ))
            })?;
            self.writer.push(operation)?;
        }
        Ok(())
    }
}

impl Job {
    /// Does it; the record of what was done.
    ///
    /// # Errors
    /// As [`replay`]; if a file cannot be read or written.
    pub fn run(&self, tell: &mut Tell<'_>) -> Result<Value, AgeError> {
        let reader = WorkloadReader::open(&self.workload)?;
        let facts = reader.facts().clone();
        let sha256 = sha256_of(&self.workload)?;
        if let Some(expected) = self.expected_sha256.as_ref().filter(|known| **known != sha256) {
            return Err(AgeError::Input(format!(
                "{}: not the workload of the recipe (its sha256 is {sha256}, not {expected}); name \
                 that workload with --workload",
                self.workload.display()
            )));
        }
        let files = ReplayFiles {
            workload_identity: sha256.clone(),
            target_identity: self.identity()?,
            workload_operations: Some(facts.operations),
            resume: self.resume,
            checkpoint: None,
        };
        let mut log = self.outputs.log.as_deref().map(LogFile::create).transpose()?;
        let workload = WorkloadOperations::new(reader);
        let (report, target) = match &self.target {
            TargetChoice::Directory { path, options } => {
                self.onto_directory(path, options, workload, files, &mut log, tell)?
            }
            TargetChoice::Simulated(setup) => {
                let mut target = SimulatedTarget::new(setup.build()?, setup.facts());
                let block_bytes = setup.block_bytes();
                let report =
                    self.replay(workload, &mut target, block_bytes, &files, &mut log, tell)?;
                if let Some(path) = &self.outputs.snapshot {
                    columns::write(&target.snapshot()?, path)?;
                }
                (report, json!({"kind": "simulated", "layout": setup.resolved()}))
            }
        };
        let workload = RecipeWorkload::new(&facts, sha256);
        let recipe = Recipe::new(target.clone(), workload.clone(), &self.options, &report);
        self.write_outputs(&report, &recipe, log)?;
        Ok(json!({
            "target": target,
            "workload": workload,
            "options": self.options,
            "report": report,
        }))
    }

    #[cfg(target_os = "linux")]
    fn onto_directory(
        &self,
        path: &Path,
        options: &DirectoryOptions,
        workload: WorkloadOperations,
        mut files: ReplayFiles,
        log: &mut Option<LogFile>,
        tell: &mut Tell<'_>,
    ) -> Result<(ReplayReport, Value), AgeError> {
        files.checkpoint = Some(self.checkpoint_beside(path)?);
        let mut target = self.open_directory(path, options, &files)?;
        let block_bytes = target.block_bytes()?;
        let report = self.replay(workload, &mut target, block_bytes, &files, log, tell)?;
        let described = self.finish_directory(&mut target)?;
        Ok((report, described))
    }

    #[cfg(not(target_os = "linux"))]
    fn onto_directory(
        &self,
        path: &Path,
        _: &DirectoryOptions,
        _: WorkloadOperations,
        _: ReplayFiles,
        _: &mut Option<LogFile>,
        _: &mut Tell<'_>,
    ) -> Result<(ReplayReport, Value), AgeError> {
        Err(AgeError::Input(format!(
            "{}: a real file system is aged on Linux, and this is {}; age a simulated one",
            path.display(),
            std::env::consts::OS
        )))
    }

    fn replay<T: Target>(
        &self,
        workload: WorkloadOperations,
        target: &mut T,
        block_bytes: u64,
        files: &ReplayFiles,
        log: &mut Option<LogFile>,
        tell: &mut Tell<'_>,
    ) -> Result<ReplayReport, AgeError> {
        let mut take = |operations: &[Operation]| match log {
            Some(log) => log.take(operations),
            None => Ok(()),
        };
        replay(workload, target, block_bytes, &self.options, files, Some(&mut take), tell)
    }

    /// What must be the same for a replay to be resumed. Threads may differ: the operations and
    /// their order for each file do not depend on them.
    fn identity(&self) -> Result<String, AgeError> {
        match &self.target {
            TargetChoice::Simulated(setup) => Ok(setup.resolved().to_string()),
            TargetChoice::Directory { path, options } => {
                let whole = std::fs::canonicalize(path).map_err(|why| {
                    AgeError::Input(format!(
                        "{}: {why}; make the directory, or mount the file system first",
                        path.display()
                    ))
                })?;
                Ok(json!({
                    "path": whole.to_string_lossy(),
                    "allocate": options.allocation,
                    "chunk_bytes": options.chunk_bytes,
                    "data": options.data,
                    "seed": options.seed,
                })
                .to_string())
            }
        }
    }

    #[cfg(target_os = "linux")]
    fn checkpoint_beside(&self, path: &Path) -> Result<PathBuf, AgeError> {
        let Some(checkpoint) = &self.checkpoint else { return checkpoint_path(path) };
        let below = |inner: &Path| -> std::io::Result<bool> {
            let parent = match inner.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            };
            Ok(std::fs::canonicalize(parent)?.starts_with(std::fs::canonicalize(path)?))
        };
        if below(checkpoint).map_err(AgeError::io("find", checkpoint))? {
            return Err(AgeError::Input(format!(
                "{}: the state must not stand below the target; name another place with --state",
                checkpoint.display()
            )));
        }
        Ok(checkpoint.clone())
    }

    #[cfg(target_os = "linux")]
    fn open_directory(
        &self,
        path: &Path,
        options: &DirectoryOptions,
        files: &ReplayFiles,
    ) -> Result<DirectoryTarget, AgeError> {
        if !self.resume {
            return DirectoryTarget::open(path, options.clone());
        }
        // A target that holds files, and no state that says how they came there, is not resumed.
        if let Some(checkpoint) = &files.checkpoint
            && !checkpoint.exists()
        {
            return Err(AgeError::Input(format!(
                "{}: there is no state to resume from; begin again without --resume",
                checkpoint.display()
            )));
        }
        DirectoryTarget::reopen(path, options.clone())
    }

    #[cfg(target_os = "linux")]
    fn finish_directory(&self, target: &mut DirectoryTarget) -> Result<Value, AgeError> {
        let options = target.options().clone();
        let block_bytes = target.block_bytes()?;
        let mut described = json!({
            "kind": "directory",
            "block_bytes": block_bytes,
            "total_bytes": target.usage()?.total_bytes,
            "allocate": options.allocation,
            "chunk_bytes": options.chunk_bytes,
            "data": options.data,
        });
        if let Some(path) = &self.outputs.snapshot {
            let snapshot = target.snapshot()?;
            columns::write(&snapshot, path)?;
            described["file_system"] = json!(snapshot.facts.kind);
        }
        Ok(described)
    }

    fn write_outputs(
        &self,
        report: &ReplayReport,
        recipe: &Recipe,
        log: Option<LogFile>,
    ) -> Result<(), AgeError> {
        let text = serde_json::to_string(recipe).expect("plain values become JSON");
        if let Some(path) = &self.outputs.series {
            write_series(path, &report.series, text.clone())?;
        }
        if let Some(log) = log {
            let source = SourceFacts {
                source: "replay".to_owned(),
                seed: self.options.seed,
                parameters: [
                    ("workload".to_owned(), json!(recipe.workload)),
                    ("options".to_owned(), json!(recipe.replay)),
                ]
                .into(),
                ..SourceFacts::default()
            };
            let facts = WorkloadFacts::new(source, &log.live_set);
            log.writer.finish(&facts)?;
            super::series::write_refused(&log.path, &report.no_space_at)?;
        }
        if let Some(path) = &self.outputs.recipe {
            recipe.write(path)?;
        }
        Ok(())
    }
}
