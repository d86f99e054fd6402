//! Where the files of an experiment are.

use std::path::{Path, PathBuf};

/// Where an experiment finds its files.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// Folder that relative paths of the experiment start from.
    pub base: &'a Path,
    /// Folder of the device catalogue.
    pub catalogue: &'a Path,
}

/// Where a path of the experiment points: relative ones are relative to `base`.
#[must_use]
pub fn resolve_path(base: &Path, given: &str) -> PathBuf {
    let path = Path::new(given);
    if path.is_absolute() || given == "-" { path.to_owned() } else { base.join(path) }
}
