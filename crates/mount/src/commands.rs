//! What the program does, a module a command.

mod check;
mod make;
mod mount;
mod words;

use std::ffi::OsString;

pub use words::CommandError;
use words::Words;

/// What the program says when it is called wrongly.
pub const USAGE: &str = "usage: agewell-fs make|mount|unmount|check ...; `agewell mkfs --help` and \
                         `agewell mount --help` say more";

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
