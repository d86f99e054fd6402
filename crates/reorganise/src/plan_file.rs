//! A plan as a file: JSON, one object.

use std::path::Path;

use agewell_snapshot::SnapshotError;

use crate::plan::Plan;

/// Writes `plan` to `path`; nothing stands there unless all of it does.
///
/// # Errors
/// If it cannot be written.
///
/// # Panics
/// Never: a plan is plain data with text keys.
pub fn write_plan(plan: &Plan, path: &Path) -> Result<(), SnapshotError> {
    let mut text = serde_json::to_vec(plan).expect("plain data with text keys");
    text.push(b'\n');
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    let partial = Path::new(&name);
    std::fs::write(partial, text).map_err(SnapshotError::io("write", partial))?;
    std::fs::rename(partial, path).map_err(SnapshotError::io("write", path))
}

/// Reads a plan that [`write_plan`] wrote.
///
/// # Errors
/// If it cannot be read or is none.
pub fn read_plan(path: &Path) -> Result<Plan, SnapshotError> {
    let text = std::fs::read(path).map_err(SnapshotError::io("read", path))?;
    serde_json::from_slice(&text).map_err(|why| {
        SnapshotError::Input(format!(
            "{}: is no plan of agewell reorganise: {why}; make one with --dry-run --plan",
            path.display()
        ))
    })
}
