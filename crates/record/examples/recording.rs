//! Records what is asked of a disk for three seconds. For root, on Linux.
//!
//!     cargo run -p agewell-record --example recording -- PATH TRACE.parquet
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use agewell_record::{RecordOptions, record};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [target, output] = words.as_slice() else {
        println!("recording PATH TRACE.parquet: a block device or a path on one, and the trace");
        return Ok(());
    };
    let options = RecordOptions {
        target: target.clone(),
        output: output.clone(),
        time_ns: Some(3_000_000_000),
        size_bytes: None,
        buffer_bytes: None,
        files: false,
        anonymous: true,
        group_ns: None,
        notes: BTreeMap::new(),
    };
    let recording = record(&options, &mut |_| Ok(true))?;
    println!(
        "{}: {} requests in {:.1} s, {} events lost",
        recording.device, recording.requests, recording.seconds, recording.lost_events
    );
    Ok(())
}
