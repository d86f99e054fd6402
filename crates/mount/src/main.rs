//! Makes, mounts and checks file systems; the command line of `agewell` is its face.

use std::io::Write as _;

use agewell_mount::commands;

fn main() {
    if let Err(error) = commands::run(std::env::args_os().skip(1)) {
        // Nobody need be there to read it.
        let _ = writeln!(std::io::stderr(), "agewell-fs: error: {error}");
        std::process::exit(error.code);
    }
}
