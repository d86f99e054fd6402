//! A file system in memory: a file is made, written, read, and is there when it is opened again.
//!
//!     cargo run -p agewell-fs --example files
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use std::sync::Arc;

use agewell_fs::{Caller, FileSystem, MakeOptions, MountOptions, New, ROOT_INODE, Time};
use agewell_store::device::MemoryDisk;
use agewell_store::{FormatOptions, OpenOptions, Store};

const NOW: Time = Time { seconds: 1, nanoseconds: 0 };

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let disk = MemoryDisk::new(64 << 20);
    Store::format(&disk, &FormatOptions::new([1; 16]))?;
    let store = Store::open(disk, &OpenOptions::default())?;
    FileSystem::make(&store, &MakeOptions::default())?;
    let system = FileSystem::open(Arc::new(store), &MountOptions::default())?;
    let new = New { mode: 0o100_644, device: 0, target: b"" };
    let made = system.make_file(ROOT_INODE, b"greeting", &new, &Caller::default())?;
    system.write(made.inode, 0, b"good morning", true, NOW)?;
    system.sync()?;
    let found = system.lookup(ROOT_INODE, b"greeting")?;
    let mut read = [0; 12];
    system.read(found.inode, 0, &mut read)?;
    println!("{}", String::from_utf8_lossy(&read));
    Ok(())
}
