//! How well the files of a mounted tree or an image lie.
//!
//!     cargo run -p agewell-snapshot --example score -- [PATH]
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use std::path::PathBuf;

use agewell_snapshot::score::{ScoreOptions, score};
use agewell_snapshot::source::{TakeOptions, take};

fn main() {
    let path = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    // Not every file system says where its files lie: memory and overlays have no places.
    let report = take(&path, &TakeOptions::default(), &mut |_| Ok(()))
        .and_then(|snapshot| score(&snapshot, &ScoreOptions::default()));
    match report {
        Ok(report) => println!("{}: {:?}", path.display(), report.contents),
        Err(why) => println!("{why}"),
    }
}
