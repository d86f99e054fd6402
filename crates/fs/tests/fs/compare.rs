//! What a file system shows, held against its model.

use std::collections::{BTreeMap, BTreeSet};

use agewell_fs::{Attributes, CheckOptions, FileSystem, FsError, SeekTo, check};
use agewell_store::device::Disk;
use rustix::io::Errno;

use super::model::{Data, File, Model, What};

/// Bytes that are read at once.
const READ_BYTES: u64 = 48 << 10;

/// Whose data may be as it was before an operation, or after it, byte by byte.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Between<'a> {
    pub(crate) number: u64,
    pub(crate) before: &'a Model,
}

impl File {
    /// Its data to look at, of which nothing is copied: each state is compared with all of the model.
    pub(crate) fn held(&self) -> Result<&Data, Errno> {
        match &self.what {
            What::File(data) => Ok(data),
            What::Directory { .. } => Err(Errno::ISDIR),
            _ => Err(Errno::INVAL),
        }
    }
}

fn told<T>(what: &str, result: Result<T, FsError>) -> Result<T, String> {
    result.map_err(|error| format!("{what}: {error}"))
}

/// What `stat` must show but for sectors.
fn attributes(number: u64, file: &File) -> Attributes {
    Attributes {
        inode: number,
        mode: file.mode,
        links: file.links,
        uid: file.uid,
        gid: file.gid,
        device: file.device,
        size: file.size,
        sectors: 0,
        accessed: file.times[0],
        modified: file.times[1],
        changed: file.times[2],
        created: file.times[3],
    }
}

/// Sectors that a file takes.
fn sectors(model: &Model, file: &File) -> Option<u64> {
    match &file.what {
        What::File(data) if !data.is_exact => None,
        What::File(data) if data.small.is_some() => Some(file.size.div_ceil(512)),
        What::File(data) => Some(data.blocks.len() as u64 * (model.block_bytes / 512)),
        _ => Some(0),
    }
}

/// Everything that both have.
pub(crate) fn compare<D: Disk>(
    fs: &FileSystem<D>,
    model: &Model,
    between: Option<Between<'_>>,
) -> Result<(), String> {
    // The cheapest first: most of what differs differs in its times.
    for (number, file) in &model.files {
        let loose = between.filter(|between| between.number == *number);
        stat(fs, model, *number, file, loose)?;
    }
    for (number, file) in &model.files {
        let loose = between.filter(|between| between.number == *number);
        let attributes = compare_attributes(fs, *number, file);
        if let Some(loose) = loose.filter(|_| attributes.is_err()) {
            compare_attributes(fs, *number, &loose.before.files[number])?;
        } else {
            attributes?;
        }
        match &file.what {
            What::File(data) => {
                if let Some(loose) = loose {
                    compare_loosely(fs, *number, model, loose.before)?;
                } else {
                    compare_data(fs, *number, model, file, data)?;
                }
            }
            What::Directory { entries, parent } => {
                compare_directory(fs, *number, *parent, entries)?;
            }
            What::Link(target) => {
                let found = told("link target", fs.link_target(*number))?;
                if found != *target {
                    return Err(format!("file {number} leads elsewhere"));
                }
            }
            What::Other => {}
        }
    }
    Ok(())
}

/// What `stat` shows.
fn stat<D: Disk>(
    fs: &FileSystem<D>,
    model: &Model,
    number: u64,
    file: &File,
    loose: Option<Between<'_>>,
) -> Result<(), String> {
    let found = told(&format!("file {number}"), fs.attributes(number))?;
    let mut wanted = attributes(number, file);
    wanted.sectors = sectors(model, file).unwrap_or(found.sectors);
    if let Some(loose) = loose {
        let before = &loose.before.files[&number];
        wanted.sectors = found.sectors;
        if [file.size, before.size].contains(&found.size) || {
            // A long write grows a file piece by piece.
            found.size > before.size && found.size < file.size
        } {
            wanted.size = found.size;
        }
        for (wanted, after, before, found) in [
            (&mut wanted.modified, file.times[1], before.times[1], found.modified),
            (&mut wanted.changed, file.times[2], before.times[2], found.changed),
        ] {
            *wanted = if found == before { before } else { after };
        }
        if found.mode == before.mode {
            wanted.mode = before.mode;
        }
    }
    if found == wanted { Ok(()) } else { Err(format!("there is {found:?}, not {wanted:?}")) }
}

fn compare_attributes<D: Disk>(fs: &FileSystem<D>, number: u64, file: &File) -> Result<(), String> {
    let names = told("attributes", fs.extended_attributes(number))?;
    let mut names: BTreeSet<Vec<u8>> = names.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
    names.remove(&b""[..]);
    let wanted: BTreeSet<Vec<u8>> = file.attributes.keys().cloned().collect();
    if names != wanted {
        return Err(format!("file {number} has attributes {names:?}, not {wanted:?}"));
    }
    for (name, value) in &file.attributes {
        let found = told("attribute", fs.extended_attribute(number, name))?;
        if found != **value {
            return Err(format!("attribute {name:?} of file {number} has another value"));
        }
    }
    Ok(())
}

fn read<D: Disk>(
    fs: &FileSystem<D>,
    number: u64,
    offset: u64,
    bytes: u64,
) -> Result<Vec<u8>, String> {
    let mut into = vec![0xEE; bytes as usize];
    let read = told("read", fs.read(number, offset, &mut into))?;
    into.truncate(read);
    Ok(into)
}

/// Where a file is looked at: wherever there is something, and beside it.
fn places(model: &Model, file: &File, data: &Data) -> Vec<u64> {
    if file.size <= 4 * READ_BYTES {
        return (0..file.size.div_ceil(READ_BYTES)).map(|at| at * READ_BYTES).collect();
    }
    let mut places: Vec<u64> = Vec::new();
    let ends = [0, file.size - 1, file.size / 2];
    let blocks = data.blocks.keys().flat_map(|block| {
        let at = block * model.block_bytes;
        [at.saturating_sub(1), at, at + model.block_bytes]
    });
    let mut wanted: Vec<u64> = blocks.chain(ends).filter(|at| *at < file.size).collect();
    wanted.sort_unstable();
    for at in wanted {
        if places.last().is_none_or(|last| last + READ_BYTES <= at) {
            places.push(at);
        }
    }
    places
}

fn compare_data<D: Disk>(
    fs: &FileSystem<D>,
    number: u64,
    model: &Model,
    file: &File,
    data: &Data,
) -> Result<(), String> {
    for offset in places(model, file, data) {
        let wanted = model.read(number, offset, READ_BYTES).unwrap();
        let found = read(fs, number, offset, READ_BYTES)?;
        if found != wanted {
            let at = found.iter().zip(&wanted).position(|(found, wanted)| found != wanted);
            let at = at.map(|at| (offset + at as u64, found[at], wanted[at]));
            let (length, wanted) = (found.len(), wanted.len());
            return Err(format!(
                "file {number} from {offset} on: {length} bytes of {wanted}, first {at:?}"
            ));
        }
    }
    if !data.is_exact {
        return Ok(());
    }
    for offset in [0, file.size / 3, model.block_bytes, file.size.saturating_sub(1)] {
        for to_data in [false, true] {
            let to = if to_data { SeekTo::Data } else { SeekTo::Hole };
            let found = fs.seek(number, offset, to).map_err(|error| error.errno());
            let wanted = model.seek(number, offset, to_data);
            if found != wanted {
                return Err(format!(
                    "{to:?} of file {number} from {offset}: {found:?}, {wanted:?}"
                ));
            }
        }
    }
    Ok(())
}

fn compare_loosely<D: Disk>(
    fs: &FileSystem<D>,
    number: u64,
    after: &Model,
    before: &Model,
) -> Result<(), String> {
    let file = &after.files[&number];
    let What::File(data) = &file.what else { return Ok(()) };
    for offset in places(after, file, data) {
        let found = read(fs, number, offset, READ_BYTES)?;
        let of = |model: &Model| {
            let mut bytes = model.read(number, offset, READ_BYTES).unwrap();
            bytes.resize(READ_BYTES as usize, 0);
            bytes
        };
        let (old, new) = (of(before), of(after));
        let both = old.iter().zip(&new);
        let differs =
            found.iter().zip(both).position(|(found, (old, new))| found != old && found != new);
        if let Some(at) = differs {
            return Err(format!("file {number} at {}: neither old nor new", offset + at as u64));
        }
    }
    Ok(())
}

fn compare_directory<D: Disk>(
    fs: &FileSystem<D>,
    number: u64,
    parent: u64,
    entries: &BTreeMap<Vec<u8>, u64>,
) -> Result<(), String> {
    let mut wanted = entries.clone();
    wanted.insert(b".".to_vec(), number);
    wanted.insert(b"..".to_vec(), parent);
    let mut found = BTreeMap::new();
    let mut twice = None;
    let listed = fs.read_directory(number, 0, |entry| {
        if found.insert(entry.name.to_vec(), entry.inode).is_some() {
            twice = Some(entry.name.to_vec());
        }
        true
    });
    told("directory", listed)?;
    if twice.is_some() || found != wanted {
        return Err(format!("directory {number} has {found:?}, not {wanted:?}; twice {twice:?}"));
    }
    for (name, inode) in entries {
        let found = told("lookup", fs.lookup(number, name))?.inode;
        if found != *inode {
            return Err(format!("{name:?} in {number} leads to {found}, not {inode}"));
        }
    }
    match fs.lookup(number, b"no such name").map_err(|error| error.errno()) {
        Err(Errno::NOENT) => Ok(()),
        found => Err(format!("what is not there is found: {found:?}")),
    }
}

/// Nothing is wrong with any of it.
pub(crate) fn is_clean<D: Disk>(fs: &FileSystem<D>) -> Result<(), String> {
    told("commit", fs.commit())?;
    let checked = told("check", check(fs.store(), &CheckOptions::default()))?;
    let findings: Vec<String> = checked.findings.iter().map(ToString::to_string).collect();
    if findings.is_empty() { Ok(()) } else { Err(findings.join("; ")) }
}
