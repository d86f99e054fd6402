//! Reads, writes and syncs of one large file: carried out by a store, or in place.
//!
//! Every block that is written says which one it is, and which version of it; so what a replay has left
//! can be held against what was asked for.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use agewell_trace::{FileOperation, FileOperationBatch, FileOperationTrace, TraceError};

use crate::device::{Disk, Piece};
use crate::{Store, StoreError, Transaction};

/// Steps after which somebody is asked whether to go on; chosen by us: some milliseconds.
const STEPS_AT_ONCE: usize = 1024;

/// Something that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// This number of blocks from this one on are read.
    Read(u32, u32),
    /// They are written.
    Write(u32, u32),
    /// Everything written before must be durable.
    Sync,
}

/// Why a replay stopped.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The trace asks for what is not replayed.
    #[error("{0}")]
    Asked(String),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The device under what is written in place.
    #[error("the device fails: {0}")]
    Device(#[from] io::Error),
    /// What was read is not what was written.
    #[error("block {block} holds something else than version {version}")]
    Wrong {
        /// The block.
        block: u32,
        /// The version that it should be.
        version: u32,
    },
    /// Somebody said so.
    #[error("stopped")]
    Stopped,
}

/// What is asked for, in order.
#[derive(Debug, Default)]
pub struct Steps {
    /// All of it.
    pub steps: Vec<Step>,
    /// Steps before the mark: the first directory that is made.
    pub before_mark: usize,
    /// Blocks up to the furthest.
    pub blocks: u32,
}

impl Steps {
    /// Reads the trace of file operations at `path`, which are all of one file.
    ///
    /// # Errors
    /// If it cannot be read, names several files, or asks for more than reads, writes and syncs.
    ///
    /// # Panics
    /// If the reader of traces lets through an operation that there is not, which is a bug.
    pub fn read(path: &Path, block_bytes: u32) -> Result<Self, ReplayError> {
        let refuse = |what: String| ReplayError::Asked(format!("{}: {what}", path.display()));
        let mut trace = FileOperationTrace::open(path)?;
        let (mut records, mut found) = (FileOperationBatch::default(), Self::default());
        let (mut has_mark, mut file) = (false, None);
        while trace.next_batch(&mut records)? {
            for row in 0..records.len() {
                let operation = FileOperation::from_code(records.operation[row])
                    .expect("readers give canonical operation codes");
                if operation == FileOperation::MakeDirectory {
                    if !has_mark {
                        (has_mark, found.before_mark) = (true, found.steps.len());
                    }
                    continue;
                }
                if *file.get_or_insert(records.file[row]) != records.file[row] {
                    return Err(refuse("names several files; one is replayed".into()));
                }
                let range = || {
                    let (offset, length) = (records.offset[row], records.length[row]);
                    let end = offset.saturating_add(length).div_ceil(u64::from(block_bytes));
                    let first = offset / u64::from(block_bytes);
                    if length == 0 || end > u64::from(u32::MAX >> 1) {
                        let what = format!("{length} bytes at byte {offset} cannot be replayed");
                        return Err(refuse(what));
                    }
                    Ok((first as u32, (end - first) as u32))
                };
                let step = match operation {
                    FileOperation::Read => range().map(|(first, blocks)| Step::Read(first, blocks)),
                    FileOperation::Write => {
                        range().map(|(first, blocks)| Step::Write(first, blocks))
                    }
                    FileOperation::Sync => Ok(Step::Sync),
                    other => {
                        let name = other.name();
                        Err(refuse(format!(
                            "asks for {name}; reads, writes and syncs are replayed"
                        )))
                    }
                }?;
                if let Step::Read(first, blocks) | Step::Write(first, blocks) = step {
                    found.blocks = found.blocks.max(first + blocks);
                }
                found.steps.push(step);
            }
        }
        if !has_mark {
            found.before_mark = 0;
        }
        Ok(found)
    }
}

/// What every block should hold.
#[derive(Debug)]
pub struct Versions {
    versions: Vec<u32>,
    block_bytes: usize,
}

impl Versions {
    /// Of `blocks` blocks, none of which was written yet.
    #[must_use]
    pub fn new(blocks: u32, block_bytes: u32) -> Self {
        Self { versions: vec![0; blocks as usize], block_bytes: block_bytes as usize }
    }

    fn stamp(block: u32, version: u32) -> [u8; 8] {
        (u64::from(version) << 32 | u64::from(block)).to_le_bytes()
    }

    /// The next version of `blocks` blocks from `first` on, one behind another.
    fn next(&mut self, first: u32, blocks: u32, into: &mut Vec<u8>) {
        into.resize(blocks as usize * self.block_bytes, 0x5a);
        for (block, data) in (first..first + blocks).zip(into.chunks_exact_mut(self.block_bytes)) {
            self.versions[block as usize] += 1;
            data[..8].copy_from_slice(&Self::stamp(block, self.versions[block as usize]));
        }
    }

    fn check(&self, block: u32, data: &[u8]) -> Result<(), ReplayError> {
        let version = self.versions[block as usize];
        if data[..8] == Self::stamp(block, version) && data[8..].iter().all(|byte| *byte == 0x5a) {
            return Ok(());
        }
        Err(ReplayError::Wrong { block, version })
    }

    /// Blocks that were written.
    fn written(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.versions).filter(|(_, version)| **version > 0).map(|(block, _)| block)
    }

    /// Reads every block back.
    ///
    /// # Errors
    /// If one is not what it should be.
    pub fn check_store<D: Disk>(&self, store: &Store<D>) -> Result<(), ReplayError> {
        let mut data = vec![0; self.block_bytes];
        for block in self.written() {
            store.read(block, &mut data)?;
            self.check(block, &data)?;
        }
        Ok(())
    }

    /// Reads every block back from its place.
    ///
    /// # Errors
    /// If one is not what it should be.
    pub fn check_disk(&self, disk: &impl Disk) -> Result<(), ReplayError> {
        let mut data = vec![0; self.block_bytes];
        for block in self.written() {
            disk.read(u64::from(block) * self.block_bytes as u64, &mut data)?;
            self.check(block, &data)?;
        }
        Ok(())
    }
}

/// Asks `go_on`, now and then, whether to go on after `done` steps.
fn heed(done: usize, go_on: &mut dyn FnMut(u64) -> bool) -> Result<(), ReplayError> {
    if done.is_multiple_of(STEPS_AT_ONCE) && !go_on(done as u64) {
        return Err(ReplayError::Stopped);
    }
    Ok(())
}

/// Has `store` carry out `steps`: a transaction each write, or several for one that is longer than a
/// transaction may be. What was never written is not read.
///
/// # Errors
/// If the store fails, or `go_on`, which is given the steps done, says no.
pub fn through_store<D: Disk>(
    store: &Store<D>,
    steps: &[Step],
    versions: &mut Versions,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), ReplayError> {
    let (most, block_bytes) = (store.transaction_blocks_max(), versions.block_bytes);
    let mut data = Vec::new();
    for (done, step) in steps.iter().enumerate() {
        heed(done, go_on)?;
        match *step {
            Step::Read(first, blocks) => {
                data.resize(block_bytes, 0);
                for block in first..first + blocks {
                    store.read(block, &mut data)?;
                }
            }
            Step::Write(first, blocks) => {
                let mut at = first;
                while at < first + blocks {
                    let count = most.min(first + blocks - at);
                    versions.next(at, count, &mut data);
                    let writes = (at..).zip(data.chunks_exact(block_bytes)).collect();
                    store.write(&Transaction { writes, frees: Vec::new() })?;
                    at += count;
                }
            }
            Step::Sync => store.sync()?,
        }
    }
    Ok(())
}

/// Carries out `steps` on `disk`, each block at its number times its length. What is written between two
/// syncs is kept, as in a host's cache, and sent together in the order of its places, neighbours in one
/// piece.
///
/// # Errors
/// If the disk fails, or `go_on`, which is given the steps done, says no.
pub fn in_place(
    disk: &impl Disk,
    steps: &[Step],
    versions: &mut Versions,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), ReplayError> {
    let block_bytes = versions.block_bytes;
    let mut waiting: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let mut data = Vec::new();
    for (done, step) in steps.iter().enumerate() {
        heed(done, go_on)?;
        match *step {
            Step::Read(first, blocks) => {
                if (first..first + blocks).all(|block| waiting.contains_key(&block)) {
                    continue;
                }
                data.resize(blocks as usize * block_bytes, 0);
                disk.read(u64::from(first) * block_bytes as u64, &mut data)?;
            }
            Step::Write(first, blocks) => {
                versions.next(first, blocks, &mut data);
                let each = (first..).zip(data.chunks_exact(block_bytes));
                waiting.extend(each.map(|(block, data)| (block, data.to_vec())));
            }
            Step::Sync => {
                send(disk, &waiting, block_bytes)?;
                waiting.clear();
                disk.flush()?;
            }
        }
    }
    send(disk, &waiting, block_bytes)?;
    Ok(())
}

/// Writes blocks to their places, neighbours in one piece.
fn send(
    disk: &impl Disk,
    blocks: &BTreeMap<u32, Vec<u8>>,
    block_bytes: usize,
) -> Result<(), ReplayError> {
    let mut runs: Vec<(u32, Vec<u8>)> = Vec::new();
    for (block, data) in blocks {
        match runs.last_mut() {
            Some((first, run)) if *first as usize + run.len() / block_bytes == *block as usize => {
                run.extend_from_slice(data);
            }
            _ => runs.push((*block, data.clone())),
        }
    }
    let piece = |(first, data)| Piece { offset: u64::from(first) * block_bytes as u64, data };
    let pieces: Vec<Piece<'_>> =
        runs.iter().map(|(first, run)| piece((*first, &run[..]))).collect();
    Ok(disk.write(&pieces)?)
}
