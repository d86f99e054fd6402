//! Finished work of a walk, kept in a file until the snapshot is complete.
//!
//! The unit is a chunk of the files of one directory. A later run lists every directory again and
//! takes the files of a chunk from here if the directory has not changed since: its inode change
//! time moves whenever an entry comes, goes or is renamed, so that the same time means the same
//! chunks. Files that changed within are as they were when they were read, as in any snapshot that
//! takes its time.
//!
//! The file is a log: a header, then records that are only ever appended, each a zstd frame with a
//! checksum. A record that a kill cut short is found by its length or its checksum and dropped.
//!
//! ```text
//! header  magic (16 bytes)  frame length (u32)  frame: tree, options, time of the first run
//! record  frame length (u32)  frame: units
//! unit    directory u64  change_ns i64  chunk u32  vanished, changed, unreadable, elsewhere u64
//!         files u32, then each: inode u64  kind u8  links u32  size u64
//!         birth_ns, change_ns, modify_ns i64  readdir_rank, name_rank u32
//!         extents u32, then each: logical, physical, length u64  flags u16
//!         name length u16, name (length 65535: names are not kept)
//! ```
//!
//! All numbers are little-endian. Cost: some 100 bytes a file before compression.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::found::{Counts, Found};
use crate::source::Checkpoint;
use crate::{Extent, ExtentFlags, FileKind, SnapshotError, SnapshotFile};

const MAGIC: [u8; 16] = *b"agewell walk 1\r\n";
/// Fast enough to be lost in the walk's time; chosen by us.
const COMPRESSION_LEVEL: i32 = 1;
/// No record is larger before compression: what claims to be is damaged. Far above the few MB that
/// records have; chosen by us.
const RECORD_BYTES_MAX: usize = 1 << 30;
/// In place of a name's length: no name was kept. Names are at most 255 bytes (`NAME_MAX`).
const NO_NAME: u16 = u16::MAX;

/// What a unit is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UnitKey {
    pub(super) directory: u64,
    /// Inode change time of the directory.
    pub(super) change_ns: i64,
    pub(super) chunk: u32,
}

/// A unit within what a thread has found.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) key: UnitKey,
    pub(super) files: Range<usize>,
    pub(super) counts: Counts,
}

/// Units that an earlier run has finished.
pub(super) type Finished = BTreeMap<UnitKey, Found>;

/// Which walk a checkpoint belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) kind: String,
    pub(super) total_bytes: u64,
    /// Of the top of the tree.
    pub(super) inode: u64,
    pub(super) birth_ns: i64,
    pub(super) names: bool,
    pub(super) sync: bool,
}

/// A checkpoint that records are appended to.
pub(super) struct Record {
    path: PathBuf,
    header: Vec<u8>,
    interval_files: usize,
    file: Mutex<Option<File>>,
}

/// A checkpoint as it was found.
pub(super) struct Opened {
    pub(super) record: Record,
    pub(super) finished: Finished,
    /// When the first run began, nanoseconds since 1970.
    pub(super) now_ns: i64,
    /// Whether there was something to go on with.
    pub(super) resumed: bool,
}

/// Opens the checkpoint of a walk.
pub(super) fn open(
    checkpoint: &Checkpoint,
    identity: &Identity,
    now_ns: i64,
) -> Result<Opened, SnapshotError> {
    let path = &checkpoint.path;
    let record = |now_ns: i64, file: Option<File>| Record {
        path: path.clone(),
        header: header(identity, now_ns),
        interval_files: checkpoint.interval_files,
        file: Mutex::new(file),
    };
    let found = match OpenOptions::new().read(true).append(true).open(path) {
        Ok(file) => Some(file),
        Err(why) if why.kind() == io::ErrorKind::NotFound => None,
        Err(why) => return Err(SnapshotError::io("open", path)(why)),
    };
    match (found, checkpoint.resume) {
        (Some(_), false) => Err(SnapshotError::Input(format!(
            "{}: an earlier snapshot was interrupted; go on with --resume, or delete this file",
            path.display()
        ))),
        (None, true) => Err(SnapshotError::Input(format!(
            "{}: is not there, so there is nothing to go on with; leave --resume out",
            path.display()
        ))),
        (None, false) => Ok(Opened {
            record: record(now_ns, None),
            finished: Finished::new(),
            now_ns,
            resumed: false,
        }),
        (Some(mut file), true) => {
            let (finished, now_ns) = read(&mut file, path, identity)?;
            Ok(Opened { record: record(now_ns, Some(file)), finished, now_ns, resumed: true })
        }
    }
}

/// Reads the units of a checkpoint and cuts off a record that was not completed.
fn read(
    file: &mut File,
    path: &Path,
    identity: &Identity,
) -> Result<(Finished, i64), SnapshotError> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(SnapshotError::io("read", path))?;
    let refuse = |what: &str| {
        SnapshotError::Input(format!(
            "{}: {what}; delete it and take the snapshot without --resume",
            path.display()
        ))
    };
    let mut input = Input(
        bytes
            .strip_prefix(&MAGIC[..])
            .ok_or_else(|| refuse("is no interrupted snapshot of this version of agewell"))?,
    );
    let head = input.frame().ok_or_else(|| refuse("is damaged"))?;
    let mut head = Input(&head);
    let (theirs, now_ns) = head.identity().ok_or_else(|| refuse("is damaged"))?;
    if theirs != *identity {
        return Err(refuse("is of another tree, or was begun with other options"));
    }
    let mut finished = Finished::new();
    let mut whole = input.0.len();
    while let Some(record) = input.frame() {
        let mut record = Input(&record);
        while !record.0.is_empty() {
            let (key, found) = record.unit().ok_or_else(|| refuse("is damaged"))?;
            finished.insert(key, found);
        }
        whole = input.0.len();
    }
    let keep = (bytes.len() - whole) as u64;
    file.set_len(keep).map_err(SnapshotError::io("shorten", path))?;
    Ok((finished, now_ns))
}

impl Record {
    /// Whether anything stands in the file.
    pub(super) fn has_begun(&self) -> bool {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whether `files` that wait are enough for a record.
    pub(super) fn is_due(&self, files: usize) -> bool {
        files >= self.interval_files
    }

    /// Appends `units` of `found`.
    pub(super) fn append(&self, found: &Found, units: &[Unit]) -> Result<(), SnapshotError> {
        let mut output = Output(Vec::new());
        for unit in units {
            output.unit(found, unit);
        }
        let frame = frame(&output.0);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = SnapshotError::io("write", &self.path);
        if let Some(file) = &mut *file {
            return file.write_all(&frame).map_err(failed);
        }
        let begun = OpenOptions::new().append(true).create_new(true).open(&self.path);
        let begun = begun.and_then(|mut file| {
            file.write_all(&self.header)?;
            file.write_all(&frame)?;
            Ok(file)
        });
        *file = Some(begun.map_err(failed)?);
        Ok(())
    }
}

fn frame(bytes: &[u8]) -> Vec<u8> {
    let compress = || -> io::Result<Vec<u8>> {
        let mut encoder = zstd::Encoder::new(vec![0; size_of::<u32>()], COMPRESSION_LEVEL)?;
        encoder.include_checksum(true)?;
        encoder.write_all(bytes)?;
        encoder.finish()
    };
    let mut frame = compress().expect("memory can always be written to");
    let length = (frame.len() - size_of::<u32>()) as u32;
    frame[..size_of::<u32>()].copy_from_slice(&length.to_le_bytes());
    frame
}

fn header(identity: &Identity, now_ns: i64) -> Vec<u8> {
    let mut output = Output(Vec::new());
    output.bytes(&(identity.kind.len() as u32).to_le_bytes());
    output.bytes(identity.kind.as_bytes());
    output.bytes(&identity.total_bytes.to_le_bytes());
    output.bytes(&identity.inode.to_le_bytes());
    output.bytes(&identity.birth_ns.to_le_bytes());
    output.bytes(&[u8::from(identity.names), u8::from(identity.sync)]);
    output.bytes(&now_ns.to_le_bytes());
    [&MAGIC[..], &frame(&output.0)].concat()
}

struct Output(Vec<u8>);

impl Output {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn unit(&mut self, found: &Found, unit: &Unit) {
        let counts = unit.counts;
        self.bytes(&unit.key.directory.to_le_bytes());
        self.bytes(&unit.key.change_ns.to_le_bytes());
        self.bytes(&unit.key.chunk.to_le_bytes());
        for count in [counts.vanished, counts.changed, counts.unreadable, counts.elsewhere] {
            self.bytes(&count.to_le_bytes());
        }
        self.bytes(&(unit.files.len() as u32).to_le_bytes());
        for index in unit.files.clone() {
            self.file(found, index);
        }
    }

    fn file(&mut self, found: &Found, index: usize) {
        let file = &found.files[index];
        self.bytes(&file.inode.to_le_bytes());
        self.bytes(&[file.kind as u8]);
        self.bytes(&file.links.to_le_bytes());
        self.bytes(&file.size_bytes.to_le_bytes());
        for time_ns in [file.birth_ns, file.change_ns, file.modify_ns] {
            self.bytes(&time_ns.to_le_bytes());
        }
        self.bytes(&file.readdir_rank.to_le_bytes());
        self.bytes(&file.name_rank.to_le_bytes());
        self.bytes(&file.extents.to_le_bytes());
        for extent in found.extents_of(file) {
            self.bytes(&extent.logical_bytes.to_le_bytes());
            self.bytes(&extent.physical_bytes.to_le_bytes());
            self.bytes(&extent.length_bytes.to_le_bytes());
            self.bytes(&extent.flags.0.to_le_bytes());
        }
        if found.name_ends.is_empty() {
            self.bytes(&NO_NAME.to_le_bytes());
        } else {
            let name = found.name(index);
            self.bytes(&(name.len() as u16).to_le_bytes());
            self.bytes(name);
        }
    }
}

/// Bytes that are read from the front; `None` where there are too few.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn short(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn time(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    /// The next frame's content; `None` if it is not whole, and nothing is taken then.
    fn frame(&mut self) -> Option<Vec<u8>> {
        let mut ahead = Input(self.0);
        // A power cut may leave zeros where a record was to be.
        let length = ahead.short().filter(|&length| length > 0)? as usize;
        let compressed = ahead.bytes(length)?;
        let mut content = Vec::new();
        let mut decoder = zstd::Decoder::new(compressed).ok()?.single_frame();
        let limit = RECORD_BYTES_MAX as u64;
        decoder.by_ref().take(limit).read_to_end(&mut content).ok()?;
        self.0 = ahead.0;
        Some(content)
    }

    fn identity(&mut self) -> Option<(Identity, i64)> {
        let length = self.short()? as usize;
        let kind = String::from_utf8(self.bytes(length)?.to_vec()).ok()?;
        let total_bytes = self.long()?;
        let inode = self.long()?;
        let birth_ns = self.time()?;
        let [names, sync] = self.array()?.map(|byte: u8| byte != 0);
        let identity = Identity { kind, total_bytes, inode, birth_ns, names, sync };
        Some((identity, self.time()?))
    }

    fn unit(&mut self) -> Option<(UnitKey, Found)> {
        let directory = self.long()?;
        let key = UnitKey { directory, change_ns: self.time()?, chunk: self.short()? };
        let counts = Counts {
            vanished: self.long()?,
            changed: self.long()?,
            unreadable: self.long()?,
            elsewhere: self.long()?,
        };
        let mut found = Found { counts, ..Found::default() };
        for _ in 0..self.short()? {
            self.file(directory, &mut found)?;
        }
        Some((key, found))
    }

    fn file(&mut self, directory: u64, found: &mut Found) -> Option<()> {
        let inode = self.long()?;
        let [kind] = self.array()?;
        let kind = *FileKind::ALL.get(usize::from(kind))?;
        let links = self.short()?;
        let size_bytes = self.long()?;
        let [birth_ns, change_ns, modify_ns] = [self.time()?, self.time()?, self.time()?];
        let [readdir_rank, name_rank] = [self.short()?, self.short()?];
        let extents = self.short()?;
        let first_extent = found.extents.len() as u32;
        for _ in 0..extents {
            found.extents.push(Extent {
                logical_bytes: self.long()?,
                physical_bytes: self.long()?,
                length_bytes: self.long()?,
                flags: ExtentFlags(u16::from_le_bytes(self.array()?)),
            });
        }
        found.files.push(SnapshotFile {
            inode,
            kind,
            links,
            size_bytes,
            birth_ns,
            change_ns,
            modify_ns,
            directory,
            readdir_rank,
            name_rank,
            first_extent,
            extents,
        });
        let name_length = u16::from_le_bytes(self.array()?);
        if name_length != NO_NAME {
            found.name_bytes.extend_from_slice(self.bytes(name_length.into())?);
            found.name_ends.push(found.name_bytes.len());
        }
        Some(())
    }
}
