//! What other programs say of a file system, read from their text.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::mounted::output;

/// An extent as `filefrag` prints it: logical, physical, length in bytes; flags.
pub(crate) type PrintedExtent = (u64, u64, u64, String);

fn numbers(text: &str) -> Vec<u64> {
    let digits = text.split(|letter: char| !letter.is_ascii_digit());
    digits
        .filter(|number| !number.is_empty())
        .map(|number| number.parse().expect("digits"))
        .collect()
}

/// The extents of every regular file below `top`, by path.
pub(crate) fn filefrag(top: &Path) -> Option<BTreeMap<PathBuf, Vec<PrintedExtent>>> {
    let mut all = BTreeMap::new();
    for path in files_below(top) {
        let done = Command::new("filefrag")
            .args(["-e", "-b1", "-v"])
            .arg(&path)
            .stderr(Stdio::null())
            .output()
            .ok()?;
        if !done.status.success() {
            return None;
        }
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let rows = text
            .lines()
            .filter(|line| line.trim_start().starts_with(|letter: char| letter.is_ascii_digit()));
        let extents = rows.map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let logical = numbers(fields[1])[0];
            let physical = numbers(fields[2])[0];
            let length = numbers(fields[3])[0];
            let flags = fields.last().expect("a line has fields").trim().to_owned();
            (logical, physical, length, flags)
        });
        all.insert(path, extents.collect());
    }
    Some(all)
}

/// Every regular file below `top`, links not followed.
pub(crate) fn files_below(top: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).expect("a directory") {
            let entry = entry.expect("an entry");
            let kind = entry.file_type().expect("a type");
            if kind.is_dir() {
                waiting.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    files
}

fn after<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim().strip_prefix(label))
}

/// Free extents and free blocks as `e2freefrag` counts them in its histogram.
pub(crate) fn e2freefrag(device: &str) -> Option<(u64, u64)> {
    let text = output("e2freefrag", &[device.as_ref()])?;
    let (_, histogram) = text.split_once("Percent")?;
    let rows = histogram.lines().filter_map(|line| line.rsplit_once("-  :"));
    let rows: Vec<Vec<u64>> = rows.map(|(_, counts)| numbers(counts)).collect();
    Some(rows.iter().fold((0, 0), |sum, row| (sum.0 + row[0], sum.1 + row[1])))
}

/// Free extents and free blocks as `xfs_spaceman` counts them.
pub(crate) fn xfs_spaceman(top: &Path) -> Option<(u64, u64)> {
    let arguments = ["-c".as_ref(), "freesp -s".as_ref(), top.as_os_str()];
    let text = output("xfs_spaceman", &arguments)?;
    let number = |label| after(&text, label)?.trim().parse::<u64>().ok();
    Some((number("total free extents")?, number("total free blocks")?))
}

/// The chunks and the extents of a btrfs, from the trees as `btrfs inspect-internal` prints them.
pub(crate) struct BtrfsTrees {
    /// Logical start, length, device addresses of the copies.
    pub(crate) chunks: Vec<(u64, u64, Vec<u64>)>,
    /// Logical start and length of everything in use.
    pub(crate) used: Vec<(u64, u64)>,
}

/// What `mkfs.btrfs` makes of metadata by default.
const NODE_BYTES: u64 = 16_384;

impl BtrfsTrees {
    pub(crate) fn print(device: &str) -> Option<Self> {
        let dump = |tree: &str| {
            let arguments = ["inspect-internal", "dump-tree", "-t", tree, device];
            output("btrfs", &arguments.map(OsStr::new))
        };
        let mut chunks: Vec<(u64, u64, Vec<u64>)> = Vec::new();
        for line in dump("chunk")?.lines().map(str::trim) {
            if let Some((_, start)) = line.split_once("CHUNK_ITEM ") {
                chunks.push((numbers(start)[0], 0, Vec::new()));
            } else if let Some(length) = line.strip_prefix("length ") {
                chunks.last_mut()?.1 = numbers(length)[0];
            } else if line.starts_with("stripe ") {
                chunks.last_mut()?.2.push(*numbers(line).last()?);
            }
        }
        let used = dump("extent")?;
        let used = used.lines().filter_map(|line| {
            let (start, length) = line
                .split_once(" EXTENT_ITEM ")
                .map(|(start, rest)| (start, numbers(rest)[0]))
                .or_else(|| Some((line.split_once(" METADATA_ITEM ")?.0, NODE_BYTES)))?;
            Some((*numbers(start).last()?, length))
        });
        let used = used.collect();
        Some(Self { chunks, used })
    }

    /// The device address of a logical one, in the first copy.
    pub(crate) fn on_device(&self, logical: u64) -> Option<u64> {
        let found = self
            .chunks
            .iter()
            .find(|(from, length, _)| logical >= *from && logical < from + length);
        found.map(|(from, _, copies)| copies[0] + (logical - from))
    }
}
