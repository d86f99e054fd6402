//! Reads a block trace, of whatever format it is, and says what is asked of the disk.
//!
//!     cargo run -p agewell-trace --example requests -- [FILE]
//!
//! Without FILE three lines in the format of MSR Cambridge stand in.
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use std::io::Cursor;
use std::path::PathBuf;

use agewell_trace::{BlockBatch, Format, ReadOptions, open_block_trace, read_block_trace};

const LINES: &str = "128166372003061629,web,0,Read,1048576,4096,700
128166372003071629,web,0,Write,8192,16384,1500
128166372003091629,web,0,Read,1052672,4096,90
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut trace = match std::env::args_os().nth(1).map(PathBuf::from) {
        Some(path) => open_block_trace(&path, &ReadOptions::default())?,
        None => {
            let options = ReadOptions { format: Some(Format::Msr), skip_bad: false };
            read_block_trace("lines", Box::new(Cursor::new(LINES.as_bytes())), &options)?
        }
    };
    // Memory is that of one batch, whatever the length of the trace.
    let (mut batch, mut requests) = (BlockBatch::default(), 0);
    while trace.next_batch(&mut batch)? {
        requests += batch.len();
    }
    println!("{requests} requests");
    Ok(())
}
