//! The workloads of CrashMonkey (Mohan, Martinez, Ponnapalli, Raju, Chidambaram 2018, Finding crash-
//! consistency bugs with bounded black-box crash testing): short sequences of operations that have shown bugs
//! in other file systems, every crash of each looked at.

use std::path::Path;

use agewell_fs::{Allocation, ROOT_INODE, Rename};
use agewell_testkit::caught;
use rayon::prelude::*;

use super::explorer::{Extent, Tally, explore_one};
use super::load::{Operation, Shape};
use super::model::{Maker, Model, New};

/// All sequences of one operation, a workload a paragraph, where they are.
pub(crate) fn workloads() -> Option<Vec<Vec<String>>> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let file = beside.join("crash/seq1.txt.zst");
    let text = zstd::decode_all(std::fs::File::open(file).ok()?).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines = |paragraph: &str| paragraph.lines().map(str::to_owned).collect();
    Some(text.split("\n\n").filter(|text| !text.trim().is_empty()).map(lines).collect())
}

/// The directory and the name that a word stands for: capital letters are directories.
fn place(model: &Model, word: &str) -> (u64, Vec<u8>) {
    if word == "test" {
        return (ROOT_INODE, b".".to_vec());
    }
    let mut parts: Vec<String> = Vec::new();
    for letter in word.chars() {
        match parts.last_mut() {
            Some(last) if letter.is_lowercase() && last.chars().all(char::is_lowercase) => {
                last.push(letter);
            }
            _ => parts.push(letter.to_string()),
        }
    }
    let name = parts.pop().expect("a word");
    let directory = parts
        .iter()
        .fold(ROOT_INODE, |at, part| model.entries(at).expect("a directory")[part.as_bytes()]);
    (directory, name.into_bytes())
}

/// What a line says; nothing if that changes nothing here.
fn operation(model: &Model, line: &str, number: usize) -> Option<Operation> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let place_of = |at: usize| place(model, words[at]);
    let file = |at: usize| {
        let (directory, name) = place_of(at);
        model.entries(directory).expect("a directory")[&name]
    };
    let long = |at: usize| words[at].parse::<u64>().expect("a number");
    let by = Maker { uid: 0, gid: 0, mask: 0 };
    let make = |mode: u32| {
        let (parent, name) = place_of(1);
        let new = New { mode, device: 0, target: Vec::new() };
        Operation::Make { parent, name, new, by }
    };
    Some(match words[0] {
        "open" | "creat" => {
            let (parent, name) = place_of(1);
            if model.entries(parent).expect("a directory").contains_key(&name) {
                return None;
            }
            make(0o100_777)
        }
        "mkdir" => make(0o040_777),
        "opendir" | "close" => return None,
        "fsync" | "fdatasync" | "sync" | "checkpoint" => Operation::Sync,
        "write" | "dwrite" | "mmapwrite" => {
            let data = (0..long(3)).map(|at| (at / 5) as u8 ^ number as u8 | 1).collect();
            Operation::Write { number: file(1), offset: long(2), data, drops: false }
        }
        "falloc" => {
            let extends = !words[2].contains("KEEP_SIZE");
            let what = if words[2].contains("PUNCH") {
                Allocation::Punch
            } else if words[2].contains("ZERO") {
                Allocation::Zero { extends }
            } else {
                Allocation::Allocate { extends }
            };
            Operation::Allocate { number: file(1), range: (long(3), long(4)), what, drops: false }
        }
        "rename" => Operation::Rename { from: place_of(1), to: place_of(2), how: Rename::Replaces },
        "link" => {
            let (parent, name) = place_of(2);
            Operation::Link { number: file(1), parent, name }
        }
        "unlink" | "remove" => {
            let (parent, name) = place_of(1);
            Operation::Unlink { parent, name }
        }
        "truncate" => Operation::SetSize { number: file(1), size: long(2), drops: false },
        "fsetxattr" | "setxattr" => Operation::SetAttribute {
            number: file(1),
            name: b"user.xattr1".to_vec(),
            value: b"val1".to_vec(),
            must: (false, false),
        },
        "removexattr" => {
            Operation::RemoveAttribute { number: file(1), name: b"user.xattr1".to_vec() }
        }
        other => panic!("there is no operation {other:?}"),
    })
}

/// Looks at the crashes of a workload; `commits`: each operation is handed over by itself.
pub(crate) fn explore_workload(
    lines: &[String],
    (seed, commits): (u64, bool),
    extent: Extent,
) -> Result<Tally, String> {
    let mut lines = lines.iter().enumerate();
    let mut has_changed = false;
    let mut next = move |model: &Model, _: usize| {
        if std::mem::take(&mut has_changed) {
            return Some(Operation::Commit);
        }
        let found = lines.find_map(|(at, line)| operation(model, line, at))?;
        has_changed = commits && found != Operation::Sync;
        Some(found)
    };
    let shape = Shape::small(4);
    caught(|| explore_one(shape, seed, &[], extent, &mut next))
}

/// All of them.
pub(crate) fn explore_workloads(
    workloads: &[Vec<String>],
    extent: Extent,
) -> Result<Tally, String> {
    (0..workloads.len() * 2)
        .into_par_iter()
        .map(|number| {
            let lines = &workloads[number / 2];
            explore_workload(lines, (number as u64, number % 2 == 1), extent)
                .map_err(|what| format!("workload {}: {what}\n{lines:?}", number / 2))
        })
        .try_reduce(Tally::default, |one, other| Ok(one.and(other)))
}
