//! What the program does, a module a command.

mod check;
mod make;
mod mount;
mod words;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use agewell_store::device::{Disk, FileDisk, FileOptions, OverlayDisk};

pub use words::CommandError;
use words::Words;

/// What the program says when it is called wrongly.
pub const USAGE: &str = "usage: agewell-fs make|mount|unmount|check ...; `agewell mkfs --help` and \
                         `agewell mount --help` say more";

/// The words of a command that a helper's name stands for: `mount` calls `mount.agewell`, and `umount`
/// `umount.agewell` or `umount.fuse.agewell`, which are links to this program.
#[must_use]
pub fn helper(program: &OsStr, words: &[OsString]) -> Option<Vec<OsString>> {
    let name = Path::new(program).file_name()?.to_str()?.strip_suffix(".agewell")?;
    let command = match name.split('.').next() {
        Some("mount") => "mount",
        Some("umount") => "unmount",
        _ => return None,
    };
    // In the place of `--fake`, which here would be the foreground.
    if command == "mount" && words.iter().any(|word| word == "-f") {
        return Some(Vec::new());
    }
    Some([command.into()].into_iter().chain(words.iter().cloned()).collect())
}

/// What lies at `path`; if that `is_protected`, nothing is written to it, and what would be is kept in memory.
fn opened(
    path: &Path,
    options: FileOptions,
    is_protected: bool,
) -> Result<Box<dyn Disk>, CommandError> {
    let options = FileOptions { is_read_only: is_protected, ..options };
    let file = FileDisk::open(path, options).map_err(CommandError::input)?;
    Ok(if is_protected { Box::new(OverlayDisk::over(file)) } else { Box::new(file) })
}

/// Carries out what `words`, the first of which is the name of a command, ask for.
///
/// # Errors
/// [`CommandError`], a line to be shown.
pub fn run(words: impl IntoIterator<Item = OsString>) -> Result<(), CommandError> {
    let mut words = Words::new(words);
    let command = words.command()?;
    match command.as_str() {
        "check" => check::run(words),
        "make" => make::run(words),
        "mount" => mount::run(words),
        "unmount" => mount::unmount(words),
        other => Err(CommandError::input(format!("there is no command {other}; {USAGE}"))),
    }
}
