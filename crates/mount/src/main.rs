//! Makes, mounts and checks file systems; the command line of `agewell` is its face.

use std::io::Write as _;

#[cfg(target_os = "linux")]
use agewell_mount::commands;

#[cfg(not(target_os = "linux"))]
fn main() {
    let line = "agewell-fs: error: file systems of agewell are made and mounted on Linux only";
    // Nobody need be there to read it.
    let _ = writeln!(std::io::stderr(), "{line}");
    std::process::exit(1);
}

#[cfg(target_os = "linux")]
fn main() {
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_default();
    let words: Vec<_> = words.collect();
    let words = match commands::helper(&program, &words) {
        Some(words) if words.is_empty() => return,
        Some(words) => words,
        None => words,
    };
    if let Err(error) = commands::run(words) {
        // Nobody need be there to read it.
        let _ = writeln!(std::io::stderr(), "agewell-fs: error: {error}");
        std::process::exit(error.code);
    }
}
