//! Hot files: those modified last, sorted by directory (Smith & Seltzer 1996, §5.2).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agewell_core::DAY_NS;

use crate::onto::directory::{directory_name, file_name};
use crate::workload::WorkloadReader;
use crate::{Action, AgeError};

/// Paths below a target of the files that the workload at `log`, which was replayed onto it,
/// modified in its last `days` days and left there.
///
/// # Errors
/// If `log` cannot be read.
pub(super) fn of_log(log: &Path, days: u64) -> Result<Vec<PathBuf>, AgeError> {
    let mut reader = WorkloadReader::open(log)?;
    let mut parents = BTreeMap::new();
    // By number: directory, last change.
    let mut files: BTreeMap<u32, (u32, u64)> = BTreeMap::new();
    let (mut batch, mut last_ns) = (Vec::new(), 0);
    while reader.next_batch(&mut batch)? {
        for operation in &batch {
            last_ns = operation.time_ns;
            match operation.action {
                Action::MakeDirectory => {
                    parents.insert(operation.file, operation.directory);
                }
                Action::RemoveDirectory => {
                    parents.remove(&operation.file);
                }
                Action::Create => {
                    files.insert(operation.file, (operation.directory, operation.time_ns));
                }
                Action::Write | Action::Truncate => {
                    if let Some(file) = files.get_mut(&operation.file) {
                        file.1 = operation.time_ns;
                    }
                }
                Action::Rename => {
                    if let Some(file) = files.get_mut(&operation.file) {
                        file.0 = operation.directory;
                    }
                }
                Action::Delete => {
                    files.remove(&operation.file);
                }
                Action::Sync | Action::SyncFile | Action::Read => {}
            }
        }
    }
    let first_ns = last_ns.saturating_sub(days.saturating_mul(DAY_NS));
    let mut hot: Vec<(PathBuf, u32)> = files
        .iter()
        .filter(|(_, (_, changed_ns))| *changed_ns >= first_ns)
        .map(|(file, (directory, _))| (path_of(&parents, *directory), *file))
        .collect();
    hot.sort();
    let mut name = String::new();
    Ok(hot
        .into_iter()
        .map(|(directory, file)| {
            file_name(file, &mut name);
            directory.join(&name)
        })
        .collect())
}

fn path_of(parents: &BTreeMap<u32, u32>, directory: u32) -> PathBuf {
    let mut names = Vec::new();
    let mut at = directory;
    // A checked workload has no ring of directories; a bound costs nothing.
    while at != 0 && names.len() <= parents.len() {
        names.push(directory_name(at));
        at = parents.get(&at).copied().unwrap_or(0);
    }
    names.iter().rev().collect()
}

/// Paths below `root` of the files that were modified in the `days` days before the last
/// modification of any; links are not followed, other file systems not entered.
///
/// # Errors
/// If a directory cannot be read.
pub(super) fn of_tree(root: &Path, days: u64) -> Result<Vec<PathBuf>, AgeError> {
    use std::os::unix::fs::MetadataExt;
    let ask = |path: &Path| std::fs::symlink_metadata(path).map_err(AgeError::io("ask", path));
    let device = ask(root)?.dev();
    let mut found: Vec<(PathBuf, i64)> = Vec::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        let entries = std::fs::read_dir(&directory).map_err(AgeError::io("list", &directory))?;
        for entry in entries {
            let path = entry.map_err(AgeError::io("list", &directory))?.path();
            let facts = ask(&path)?;
            if facts.dev() != device {
                continue;
            }
            if facts.is_dir() {
                waiting.push(path);
            } else if facts.is_file() && facts.len() > 0 {
                found.push((path, facts.mtime()));
            }
        }
    }
    let last_s = found.iter().map(|(_, modified_s)| *modified_s).max().unwrap_or(0);
    let first_s = last_s.saturating_sub_unsigned(days.saturating_mul(DAY_NS / 1_000_000_000));
    let mut hot: Vec<PathBuf> = found
        .into_iter()
        .filter(|(_, modified_s)| *modified_s >= first_s)
        .filter_map(|(path, _)| path.strip_prefix(root).ok().map(Path::to_owned))
        .collect();
    hot.sort();
    Ok(hot)
}
