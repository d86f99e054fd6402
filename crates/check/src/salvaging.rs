//! Copies out of a store whatever is intact.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::NONE;
use crate::candidates::{Version, versions, vouched_geometry};
use crate::checking::{CheckError, CheckOptions, Checked, check_from};
use crate::data::{self, Lying, Read};
use crate::findings::{Blocks, Finding, Structure};
use crate::geometry::Geometry;
use crate::image::Image;
use crate::superblock;

/// Why nothing is salvaged, or no more.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    /// Nothing says where anything lies, or the caller says to stop.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// What is salvaged cannot be written.
    #[error("{}: {why}", path.display())]
    Write {
        /// To where.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
}

/// What has become of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockStatus {
    /// It is what the store would give.
    Intact,
    /// It is the newest version that is recorded anywhere; what says which one is current is lost.
    Newest,
    /// It is an older version, or may be one: a newer one is damaged.
    Older,
    /// It is recorded, and no version of it is intact.
    Lost,
}

impl BlockStatus {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Intact, Self::Newest, Self::Older, Self::Lost];

    /// As tables have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Intact => "intact",
            Self::Newest => "newest found",
            Self::Older => "older version",
            Self::Lost => "lost",
        }
    }
}

/// A block that was salvaged, or was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SalvagedBlock {
    /// Its number.
    pub block: u32,
    /// Where it was read from, or should have been.
    pub slot: u32,
    /// What has become of it.
    pub status: BlockStatus,
}

/// What was salvaged.
#[derive(Debug)]
pub struct Salvaged {
    /// Where the parts of the store lie.
    pub geometry: Geometry,
    /// Every block that is recorded, in order.
    pub blocks: Vec<SalvagedBlock>,
    /// Blocks of which nothing says whether there are any.
    pub unknown: Blocks,
    /// All that is wrong with the store but the data of its blocks.
    pub findings: Vec<Finding>,
}

impl Salvaged {
    /// How many blocks have a status.
    pub fn count(&self, status: BlockStatus) -> u64 {
        self.blocks.iter().filter(|one| one.status == status).count() as u64
    }

    /// Which blocks have a status.
    pub fn blocks_with(&self, status: BlockStatus) -> Blocks {
        let of_status = self.blocks.iter().filter(|one| one.status == status);
        Blocks::of(of_status.map(|one| one.block))
    }

    /// Everything is as the store would give it, and nothing is wrong with that.
    pub fn is_whole(&self) -> bool {
        self.unknown.is_empty()
            && self.blocks.iter().all(|one| one.status == BlockStatus::Intact)
            && self.findings.iter().all(|one| one.severity == crate::Severity::Note)
    }
}

/// What is given the number of a block that is intact, and its data.
type Keep<'a> = dyn FnMut(u32, &[u8]) -> Result<(), SalvageError> + 'a;

/// How far it has come, from 0 to 1. Whether to go on.
type Share<'a> = dyn FnMut(f64) -> bool + 'a;

/// Gives `keep` every block that is intact, in no order, with its number; says what is lost.
///
/// A superblock or root that is damaged is done without as far as anything else says what it said. Where
/// no root is left, or a map page is lost, every record in the store is looked for, and the newest version of a
/// block is taken.
///
/// # Errors
///
/// Nothing says where anything lies, `keep` fails, or `progress` says to stop.
pub fn salvage<I: Image + ?Sized>(
    image: &I,
    keep: &mut Keep<'_>,
    progress: &mut Share<'_>,
) -> Result<Salvaged, SalvageError> {
    let checked = checked_somehow(image)?;
    let geometry = &checked.geometry;
    let affected = checked.affected();
    let mut blocks = Vec::new();
    let mut wanted = affected.clone();
    let mut lost = Vec::new();
    if checked.has_root {
        let sorted = checked.lying();
        let certain: Vec<Lying> =
            sorted.into_iter().filter(|one| !affected.contains(one.block)).collect();
        let of = certain.len().max(1) as f64;
        let copy = |one: &Lying, read: Read<'_>| {
            if let Read::Intact(data) = read {
                keep(one.block, data)?;
                blocks.push(salvaged(one.block, one.slot, BlockStatus::Intact));
            } else {
                lost.push(*one);
            }
            Ok::<(), SalvageError>(())
        };
        // The search for other versions, where one is needed, takes about as long again.
        let go_on = |done: u64| progress(0.5 * done as f64 / of);
        if !data::read_each(image, geometry, &certain, copy, go_on)? {
            return Err(CheckError::Stopped.into());
        }
        wanted.extend(&Blocks::of(lost.iter().map(|one| one.block)));
        wanted.settle();
    }
    let mut known = Blocks::default();
    if !wanted.is_empty() {
        let found = versions(image, geometry, |block| wanted.contains(block), &mut |share| {
            progress(0.5 + 0.4 * share)
        });
        let found = found.ok_or(CheckError::Stopped)?;
        let (of, mut done) = (found.len().max(1) as f64, 0);
        for versions in found.chunk_by(|one, next| one.block == next.block) {
            known.add(versions[0].block, versions[0].block);
            blocks.extend(newest_intact(image, geometry, versions, keep)?);
            done += versions.len();
            if !progress(0.9 + 0.1 * done as f64 / of) {
                return Err(CheckError::Stopped.into());
            }
        }
    }
    // What only the map names, and no record or page on its own.
    known.extend(&Blocks::of(blocks.iter().map(|one| one.block)));
    known.settle();
    let unrecorded = lost.iter().filter(|one| !known.contains(one.block));
    let unrecorded: Vec<_> =
        unrecorded.map(|one| salvaged(one.block, one.slot, BlockStatus::Lost)).collect();
    known.extend(&Blocks::of(unrecorded.iter().map(|one| one.block)));
    known.settle();
    blocks.extend(unrecorded);
    blocks.sort_unstable();
    let mut unknown = Blocks::default();
    for &(first, last) in wanted.ranges() {
        unknown_in(first, last, &known, &mut unknown);
    }
    let Checked { geometry, findings, .. } = checked;
    Ok(Salvaged { geometry, blocks, unknown, findings })
}

/// Adds those from `first` to `last` that are not among `known` to `unknown`.
fn unknown_in(first: u32, last: u32, known: &Blocks, unknown: &mut Blocks) {
    let mut from = Some(first);
    let begin = known.ranges().partition_point(|range| range.1 < first);
    for &(known_first, known_last) in &known.ranges()[begin..] {
        let Some(start) = from.filter(|_| known_first <= last) else { break };
        if known_first > start {
            unknown.add(start, known_first - 1);
        }
        from = known_last.checked_add(1);
    }
    if let Some(start) = from.filter(|&start| start <= last) {
        unknown.add(start, last);
    }
}

fn salvaged(block: u32, slot: u32, status: BlockStatus) -> SalvagedBlock {
    SalvagedBlock { block, slot, status }
}

/// The first of the versions of a block that is intact; `None` if it was freed.
fn newest_intact<I: Image + ?Sized>(
    image: &I,
    geometry: &Geometry,
    versions: &[Version],
    keep: &mut Keep<'_>,
) -> Result<Option<SalvagedBlock>, SalvageError> {
    let (mut tried, mut status) = (None, BlockStatus::Newest);
    for version in versions {
        let (block, slot) = (version.block, version.slot);
        if slot == NONE {
            // What is older was overwritten by nothing.
            break;
        }
        tried = tried.or(Some(salvaged(block, slot, BlockStatus::Lost)));
        let lying = Lying { slot, block, short_sum: version.short_sum };
        let mut outcome = Ok(false);
        if !version.damaged {
            data::read_window(image, geometry, &[lying], |_, read| {
                if let Read::Intact(data) = read {
                    outcome = keep(block, data).map(|()| true);
                }
            });
        }
        if outcome? {
            return Ok(Some(salvaged(block, slot, status)));
        }
        status = BlockStatus::Older;
    }
    Ok(tried)
}

/// The store as far as it can be read, by a damaged superblock if need be.
fn checked_somehow<I: Image + ?Sized>(image: &I) -> Result<Checked, CheckError> {
    let mut findings = Vec::new();
    let copies = superblock::read_copies(image);
    let geometry = match superblock::choose(&copies, &mut findings) {
        Err(CheckError::NoSuperblock(found)) => {
            let Some(geometry) = vouched_geometry(image, &copies) else {
                return Err(CheckError::NoSuperblock(found));
            };
            findings = found;
            let problem = "no superblock is whole; what one says fits with the rest";
            findings.push(Finding::damage(Structure::Store, None, problem));
            geometry
        }
        other => other?,
    };
    check_from(image, geometry, findings, CheckOptions::default(), &mut |_, _| true)
}

/// Salvages into two files that are not there yet: the blocks, each at its number times the length of a
/// block, with holes for what is not there; and a table of them, `block,slot,sequence,status`.
///
/// # Errors
///
/// As [`salvage`]; or a file cannot be written.
pub fn salvage_to_files<I: Image + ?Sized>(
    image: &I,
    blocks: &Path,
    table: &Path,
    progress: &mut Share<'_>,
) -> Result<Salvaged, SalvageError> {
    let (unfinished, unfinished_table) = (partial(blocks), partial(table));
    let done = write_both(image, &unfinished, &unfinished_table, progress);
    let finished = done.and_then(|salvaged| {
        rename(&unfinished, blocks)?;
        rename(&unfinished_table, table)?;
        Ok(salvaged)
    });
    if finished.is_err() {
        // What is left of them is of no use; whether they can be removed changes nothing.
        let _ = fs::remove_file(&unfinished);
        let _ = fs::remove_file(&unfinished_table);
    }
    finished
}

fn partial(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".partial");
    name.into()
}

fn rename(from: &Path, to: &Path) -> Result<(), SalvageError> {
    fs::rename(from, to).map_err(failed(to))
}

fn failed(path: &Path) -> impl Fn(io::Error) -> SalvageError + '_ {
    move |why| SalvageError::Write { path: path.to_owned(), why }
}

fn write_both<I: Image + ?Sized>(
    image: &I,
    blocks: &Path,
    table: &Path,
    progress: &mut Share<'_>,
) -> Result<Salvaged, SalvageError> {
    let file = File::create(blocks).map_err(failed(blocks))?;
    let mut rows = BufWriter::new(File::create(table).map_err(failed(table))?);
    let mut keep = |block: u32, data: &[u8]| {
        // Zeros need no room in a file with holes.
        if data.iter().all(|&byte| byte == 0) {
            return Ok(());
        }
        let offset = u64::from(block) * data.len() as u64;
        file.write_all_at(data, offset).map_err(failed(blocks))
    };
    let salvaged = salvage(image, &mut keep, progress)?;
    let kept = salvaged.blocks.iter().rev().find(|one| one.status != BlockStatus::Lost);
    let length = kept.map_or(0, |last| u64::from(last.block) + 1);
    file.set_len(length * u64::from(salvaged.geometry.block_bytes)).map_err(failed(blocks))?;
    file.sync_all().map_err(failed(blocks))?;
    let write_rows = || {
        writeln!(rows, "block,slot,status")?;
        for one in &salvaged.blocks {
            let SalvagedBlock { block, slot, status } = one;
            writeln!(rows, "{block},{slot},{}", status.name())?;
        }
        rows.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    };
    write_rows().map_err(failed(table))?;
    Ok(salvaged)
}
