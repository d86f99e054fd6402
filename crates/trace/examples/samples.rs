//! Writes a small valid trace of every format to `FOLDER/FORMAT/NAME`, where a fuzz target of that
//! format looks for its first inputs.
//!
//!     cargo run -p agewell-trace --example samples -- FOLDER

use std::path::PathBuf;

#[path = "../tests/samples/mod.rs"]
mod samples;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return Err("which folder? samples FOLDER".into());
    };
    for sample in samples::all() {
        // Targets are named as Rust names things, formats as people do.
        let of_format = folder.join(sample.format.name().replace('-', "_"));
        let of_detection = folder.join("detect");
        for place in [of_format, of_detection] {
            std::fs::create_dir_all(&place)?;
            std::fs::write(place.join(sample.name), &sample.bytes)?;
        }
    }
    Ok(())
}
