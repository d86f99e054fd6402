//! Reads other tools' device parameters.

mod disksim;
mod extracted;
mod libparam;
mod seek_file;

use std::path::Path;

use crate::{DeviceError, DeviceParameters};

/// A device read from another tool's files.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The device.
    pub parameters: DeviceParameters,
    /// What could not be taken over as it stood, one line each.
    pub notes: Vec<String>,
}

impl Imported {
    /// The device file, its notes as comments in front.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for note in &self.notes {
            text.push_str("# ");
            text.push_str(note);
            text.push('\n');
        }
        text + &self.parameters.to_toml()
    }
}

/// Reads the DiskSim disk specification at `path` (`.diskspecs`, or any file with a `disksim_disk` block), following
/// it to its model and seek files, which are looked for beside it. `name` replaces the name made from the file's.
///
/// # Errors
/// If a file cannot be read or understood, saying file and line, or the parameters contradict each other.
pub fn disksim(path: &Path, name: Option<&str>) -> Result<Imported, DeviceError> {
    disksim::import(path, name)
}
