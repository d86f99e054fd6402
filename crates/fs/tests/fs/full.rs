//! File systems filled to the last block: what must work then works, and deleting gives everything back.

use agewell_core::mix;
use agewell_fs::{Caller, Changes, FileSystem, New, ROOT_INODE, Rename, Time};
use agewell_store::device::{Disk, MemoryDisk};
use rustix::io::Errno;

use super::compare::is_clean;
use super::load::{Shape, close};

const NOW: Time = Time { seconds: 1, nanoseconds: 0 };

/// Refusals one after another that say that it is full; chosen by us.
const REFUSALS: u32 = 60;

/// Makes files, directories, links, data and attributes until there is no room for any of them; the names in
/// the root, and which of them are files with blocks.
fn fill<D: Disk>(fs: &FileSystem<D>, seed: u64) -> Result<Vec<(Vec<u8>, u64)>, String> {
    let caller = Caller { now: NOW, ..Caller::default() };
    let mut names: Vec<(Vec<u8>, u64)> = Vec::new();
    let (mut refused, mut number) = (0, 0);
    while refused < REFUSALS {
        number += 1;
        let draw = mix(seed << 20 | number);
        let long = if draw.is_multiple_of(5) { "x".repeat(200) } else { String::new() };
        let name = format!("{number}{long}").into_bytes();
        let of = |mode| New { mode, device: 0, target: b"" };
        let any = names.get((draw >> 8) as usize % names.len().max(1)).map(|named| named.1);
        let done = match (draw % 10, any) {
            (0..=3, _) | (_, None) => {
                let made = fs.make_file(ROOT_INODE, &name, &of(0o100_644), &caller);
                made.map(|made| names.push((name, made.inode)))
            }
            (4, _) => {
                let mode = 0o040_755;
                let made = fs.make_file(ROOT_INODE, &name, &of(mode), &caller);
                made.map(|made| names.push((name, made.inode)))
            }
            (5, Some(any)) => {
                let value = vec![1; (draw >> 40) as usize % 3000];
                fs.set_extended_attribute(any, (b"user.x", &value), (false, false), NOW)
            }
            (6, Some(any)) => match fs.link(any, ROOT_INODE, &name, NOW) {
                Err(error) if error.errno() == Errno::PERM => Ok(()),
                made => made.map(|made| names.push((name, made.inode))),
            },
            (7, Some(any)) if seed % 2 == 1 => {
                let from = names[(draw >> 32) as usize % names.len()].1;
                // Blocks that two have; of directories there is no data.
                match fs.copy((from, 0), (any, 0), 1 << 20, false, NOW) {
                    Err(error) if [Errno::ISDIR, Errno::INVAL].contains(&error.errno()) => Ok(()),
                    copied => copied.map(|_| ()),
                }
            }
            (_, Some(any)) => {
                let bytes = (draw >> 40) as usize % 30_000 + 1;
                match fs.write(any, (draw >> 20) % 40_000, &vec![9; bytes], false, NOW) {
                    Err(error) if error.errno() == Errno::ISDIR => Ok(()),
                    written => written.map(|_| ()),
                }
            }
        };
        match done {
            Ok(()) => refused = 0,
            Err(error) if error.errno() == Errno::NOSPC => refused += 1,
            Err(error) => return Err(format!("filling: {error}")),
        }
    }
    Ok(names)
}

/// Fills a file system, works on it, empties it, and looks at what is left.
pub(crate) fn fill_and_empty(seed: u64) -> Result<(), String> {
    let shape = Shape { blocks: 3000, block_bytes: 1024, ..Shape::of(seed * 5) };
    let told = |what: &str, error: agewell_fs::FsError| format!("{what}: {error}");
    let fs = shape.make(MemoryDisk::new(shape.device_bytes())).map_err(|e| told("make", e))?;
    let before = fs.space();
    let names = fill(&fs, seed)?;
    let is_file =
        |inode: u64| fs.attributes(inode).is_ok_and(|of| of.mode & 0o170_000 == 0o100_000);
    // Blocks that there are are written over.
    let files: Vec<u64> =
        names.iter().map(|named| named.1).filter(|inode| is_file(*inode)).collect();
    for (number, inode) in files.iter().enumerate().take(256) {
        let of = fs.attributes(*inode).map_err(|error| told("attributes", error))?;
        let bytes = of.size.min(100);
        let mut data = vec![number as u8; bytes as usize];
        let at = agewell_fs::SeekTo::Data;
        let Ok(from) = fs.seek(*inode, 0, at) else { continue };
        data.truncate((of.size - from) as usize);
        match fs.write(*inode, from, &data, false, NOW) {
            Ok(written) if written == data.len() => {}
            Ok(_) => return Err("fewer bytes were written over than there are".to_owned()),
            // Another has the block too, and each is to have its own.
            Err(error) if error.errno() == Errno::NOSPC && seed % 2 == 1 => {}
            Err(error) => return Err(told("writing over", error)),
        }
    }
    let caller = Caller { now: NOW, ..Caller::default() };
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_unstable_by_key(|at| mix(seed ^ *at as u64));
    for at in order {
        let (name, inode) = &names[at];
        let draw = mix(seed << 30 | at as u64);
        // Some get another name of the same length, become shorter, or other permissions first.
        let mut name = name.clone();
        if draw.is_multiple_of(4) {
            let mut other = name.clone();
            other[0] = b'r';
            let renamed =
                fs.rename((ROOT_INODE, &name), (ROOT_INODE, &other), Rename::Keeps, &caller);
            match renamed {
                Ok(_) => name = other,
                Err(error) if error.errno() == Errno::EXIST => {}
                Err(error) => return Err(told("rename", error)),
            }
        }
        let directory = fs.attributes(*inode).map_err(|error| told("attributes", error))?.mode
            & 0o170_000
            == 0o040_000;
        if draw % 4 == 1 && !directory {
            let changes = Changes { size: Some(draw >> 50), ..Changes::default() };
            fs.set_attributes(*inode, &changes, NOW).map_err(|error| told("truncate", error))?;
        }
        if draw % 4 == 2 {
            let changes = Changes { mode: Some(0o600), ..Changes::default() };
            fs.set_attributes(*inode, &changes, NOW).map_err(|error| told("chmod", error))?;
        }
        let gone = if directory {
            fs.remove_directory(ROOT_INODE, &name, NOW).map(Some)
        } else {
            fs.unlink(ROOT_INODE, &name, NOW)
        };
        if let Some(gone) = gone.map_err(|error| told("removing", error))? {
            fs.let_go(gone);
        }
        if draw % 32 == 3 {
            fs.sync().map_err(|error| told("sync", error))?;
        }
    }
    while fs.work().map_err(|error| told("work", error))? {}
    is_clean(&fs)?;
    let after = fs.space();
    if after != before {
        return Err(format!("there is {after:?} when all is gone, not {before:?}"));
    }
    let fs = shape.open(close(fs).map_err(|error| told("close", error))?);
    is_clean(&fs.map_err(|error| told("open", error))?)
}
