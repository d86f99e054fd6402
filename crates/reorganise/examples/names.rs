//! In which order the files of a tree are read by name, where they ought to lie one behind another. Linux.
//!
//!     cargo run -p agewell-reorganise --example names -- [DIRECTORY]
//!
//! Nothing is moved.
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use std::path::PathBuf;

use agewell_reorganise::{Order, read_order};
use agewell_snapshot::source::{TakeOptions, take};

fn main() {
    let path = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    let options = TakeOptions { names: true, ..TakeOptions::default() };
    let snapshot = match take(&path, &options, &mut |_| Ok(())) {
        Ok(snapshot) => snapshot,
        // Memory and overlays have no places.
        Err(why) => return println!("{why}"),
    };
    let order = read_order(&snapshot, Order::Names);
    let first_byte = |place: &u32| {
        let file = &snapshot.files[*place as usize];
        let extent = snapshot.extents.get(file.first_extent as usize);
        extent.filter(|_| file.extents > 0).map(|extent| extent.physical_bytes)
    };
    let places: Vec<u64> = order.iter().filter_map(first_byte).collect();
    let onwards = places.windows(2).filter(|pair| pair[1] > pair[0]).count();
    println!("{} files; {onwards} begin behind the one before", places.len());
}
