//! What the kernel says of bytes, files and processes.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{major, minor};

/// Bytes that this process has sent to devices. What goes through the page cache counts when it is
/// changed there, once; journals of file systems are not in it.
pub fn process_bytes() -> Option<u64> {
    let counts = fs::read_to_string("/proc/self/io").ok()?;
    counts.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.parse().ok())
}

/// Bytes that went to the device on which `path` lies, whoever wrote them; none in memory.
pub fn device_bytes(path: &Path) -> Option<u64> {
    let device = fs::metadata(path).ok()?.dev();
    let counts = format!("/sys/dev/block/{}:{}/stat", major(device), minor(device));
    let counts = fs::read_to_string(counts).ok()?;
    // Sectors written, always of 512 bytes; Documentation/block/stat.rst of Linux.
    let sectors: u64 = counts.split_whitespace().nth(6)?.parse().ok()?;
    Some(sectors * 512)
}

/// Bytes that the files below `folder` take.
pub fn allocated_bytes(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        bytes += match entry.metadata() {
            Ok(facts) if facts.is_dir() => allocated_bytes(&entry.path())?,
            Ok(facts) => facts.blocks() * 512,
            // Stores delete files while they work.
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
    }
    Ok(bytes)
}

/// The most memory that this process has had.
pub fn memory_bytes_max() -> u64 {
    let facts = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = facts.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = found.and_then(|text| text.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// The type of the file system of `folder` and what it is mounted from.
pub fn mount_of(folder: &Path) -> String {
    let Ok(device) = fs::metadata(folder).map(|facts| facts.dev()) else { return String::new() };
    let number = format!("{}:{}", major(device), minor(device));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let found = mounts.lines().find(|line| line.split(' ').nth(2) == Some(&number));
    let kind = found.and_then(|line| line.split_once(" - ")).map(|(_, rest)| rest);
    kind.map_or_else(String::new, |rest| rest.split(' ').take(2).collect::<Vec<_>>().join(" on "))
}

/// The kernel's version and the number of processors.
pub fn describe() -> (String, usize) {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    (kernel.trim().to_owned(), std::thread::available_parallelism().map_or(1, usize::from))
}
