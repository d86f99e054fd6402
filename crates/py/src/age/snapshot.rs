//! Taking and checking snapshots from Python.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use agewell_age::source::{self, Checkpoint, TakeOptions};
use agewell_age::{AgeError, FileKind, Snapshot};
use agewell_snapshot::columns;
use pyo3::prelude::*;
use serde_json::{Value, json};

use super::{call_python, detached};

/// Where the finished work of an interrupted snapshot is kept: beside the output.
fn partial(output: &Path) -> PathBuf {
    let mut name = OsString::from(output);
    name.push(".partial");
    PathBuf::from(name)
}

/// What a snapshot holds, in numbers.
fn summary(snapshot: &Snapshot) -> Value {
    let files = FileKind::ALL.map(|kind| {
        let count = snapshot.files.iter().filter(|file| file.kind == kind).count();
        (kind.name(), count)
    });
    let free_bytes: u64 = snapshot.free.iter().map(|extent| extent.length_bytes).sum();
    json!({
        "facts": snapshot.facts,
        "names": snapshot.names.is_some(),
        "files": files.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
        "extents": snapshot.extents.len(),
        "free_extents": snapshot.free.len(),
        "free_extent_bytes": free_bytes,
    })
}

/// Takes a snapshot of the tree or image at `path` and writes it to `output`; returns what it holds
/// as JSON text.
///
/// `now_ns` is the time now, nanoseconds since 1970. `progress` is called several times a second
/// with the files seen so far and, if known, how many there are; an exception from it, or Ctrl-C,
/// stops the work: nothing stands under `output` then, and what is finished of a large tree stands
/// in `output.partial`, which `resume` goes on with.
#[pyfunction]
#[pyo3(signature = (path, output, now_ns, names=false, sync=false, resume=false, progress=None, checkpoint_files=None))]
#[expect(clippy::too_many_arguments, reason = "the parameters of one command")]
pub(crate) fn snapshot_take(
    py: Python<'_>,
    path: PathBuf,
    output: PathBuf,
    now_ns: i64,
    names: bool,
    sync: bool,
    resume: bool,
    progress: Option<Py<PyAny>>,
    checkpoint_files: Option<usize>,
) -> PyResult<String> {
    let document = detached(py, |raised| {
        if output.is_dir() {
            return Err(AgeError::Input(format!(
                "{}: is a directory; name an output file",
                output.display()
            )));
        }
        let checkpoint = Checkpoint {
            path: partial(&output),
            resume,
            interval_files: checkpoint_files.unwrap_or(Checkpoint::INTERVAL_FILES),
        };
        let options = TakeOptions {
            names,
            sync,
            calls_only: false,
            now_ns,
            threads: None,
            checkpoint: Some(checkpoint.clone()),
        };
        let snapshot = source::take(&path, &options, &mut |told| {
            call_python(raised, |py| {
                if let Some(progress) = &progress {
                    progress.call1(py, (told.files, told.files_in_all))?;
                }
                Ok(())
            })
        })?;
        let bytes = columns::write(&snapshot, &output)?;
        match std::fs::remove_file(&checkpoint.path) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
                return Err(AgeError::io("remove", &checkpoint.path)(why));
            }
            _ => {}
        }
        let mut document = summary(&snapshot);
        document["bytes"] = json!(bytes);
        Ok(document)
    })?;
    Ok(document.to_string())
}

/// Reads the snapshot file at `path`, checks all of it and returns what it holds as JSON text.
#[pyfunction]
pub(crate) fn snapshot_check(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    detached(py, |_| columns::read(&path).map(|snapshot| summary(&snapshot).to_string()))
}
