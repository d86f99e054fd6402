//! A table of configuration whose keys are declared once: read strictly, and described.
//!
//!     cargo run -p agewell-config --example table
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use agewell_config::{Form, Key, Keyed, keys, read_table, size, whole};
use serde_json::json;

keys! {
    /// A cache.
    struct Cache {
        /// how much it holds
        bytes: u64 = "size" size().required();
        /// parts that are locked apart
        parts: u64 = "parts" whole().or(1);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cache = read_table::<Cache>("[cache]", json!({"size": "4 MiB"}))?;
    println!("{} bytes in {} part", cache.bytes, cache.parts);
    let wrong = read_table::<Cache>("[cache]", json!({"size": "4 MiB", "part": 2}));
    println!("{}", wrong.expect_err("no such key"));
    println!("{}", Key::markdown(&Cache::keys()));
    Ok(())
}
