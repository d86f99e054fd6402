//! The layout score by size, by directory, of hot files; how files are broken; what is special.
//!
//! A file's size is the blocks it has on the device (holes and what lies beyond its end left out):
//! two-block files show the dip of Smith & Seltzer 1996, figure 3, thirteen-block files the drop
//! behind the twelve direct blocks.

use serde::Serialize;

use crate::{FileKind, LayoutCounts, Snapshot, SnapshotFile};

use super::histogram::{bin_up_to, bounds_up_to, mean, median};
use super::hot::HotPeriod;
use super::measure::{FileMeasure, Measures};
use super::special::Special;
use super::tree::{Tree, path_of};
use super::{Share, share};

/// Sizes up to this many blocks are also listed one by one: the two-block dip and the drop from
/// twelve to thirteen blocks lie within (Smith & Seltzer 1996, figure 3).
const EXACT_BLOCKS_MAX: usize = 16;

/// How many of the worst files are reported; chosen by us.
const WORST_FILES: usize = 10;

/// Bins by powers of two: a size in blocks has at most 63 bits.
const BINS: usize = 64;

/// How regular files lie.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Layout {
    /// Over all of them.
    #[serde(flatten)]
    pub all: Share,
    /// Files that have a score: two blocks or more.
    pub scored_files: u64,
    /// The mean of the scores of files, each weighing the same.
    pub mean_file_score: Option<f64>,
    /// By size, powers of two: 1, 2, 3 to 4, 5 to 8 blocks, ...
    pub by_size: Vec<SizeBin>,
    /// By size, every size up to 16 blocks.
    pub by_blocks: Vec<SizeBin>,
    /// Files modified shortly before the snapshot, if a period was given.
    pub hot: Option<HotFiles>,
    /// By directory right below the root, the most badly placed blocks first.
    pub by_directory: Vec<DirectoryLayout>,
    /// The files with the most badly placed blocks, up to ten.
    pub worst_files: Vec<FileLayout>,
    /// What is special, counted or left out.
    pub special: Special,
}

/// One regular file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileLayout {
    /// Its number.
    pub inode: u64,
    /// Where it is, from the root of what was measured; `None` without names.
    pub path: Option<String>,
    /// Its blocks on the device.
    pub blocks: u64,
    /// Its fragments.
    pub fragments: u32,
    /// Its layout.
    #[serde(flatten)]
    pub share: Share,
}

/// Files of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SizeBin {
    /// Blocks of the smallest that belong here.
    pub blocks_min: u64,
    /// Blocks of the largest that belong here.
    pub blocks_max: u64,
    /// Files.
    pub files: u64,
    /// Files in two fragments or more.
    pub split_files: u64,
    /// Their layout.
    #[serde(flatten)]
    pub share: Share,
}

/// Files modified shortly before the snapshot (Smith & Seltzer 1996, §5.2).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HotFiles {
    /// How long before, ns.
    pub period_ns: u64,
    /// Before when, nanoseconds since 1970: the time of the snapshot, or of the latest modification
    /// where that is not known.
    pub until_ns: Option<i64>,
    /// Files.
    pub files: u64,
    /// Files in two fragments or more.
    pub split_files: u64,
    /// Their layout.
    #[serde(flatten)]
    pub share: Share,
    /// Their layout by size, powers of two (figure 6).
    pub by_size: Vec<SizeBin>,
}

/// Regular files at any depth below one directory of the root.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectoryLayout {
    /// Its inode; the root's own for files that lie right in the root.
    pub inode: u64,
    /// Its name, if the snapshot has names.
    pub name: Option<String>,
    /// Files.
    pub files: u64,
    /// Files in two fragments or more.
    pub split_files: u64,
    /// Their layout.
    #[serde(flatten)]
    pub share: Share,
}

/// How regular files are broken.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fragmentation {
    /// Files with data on the device.
    pub files: u64,
    /// Files of two blocks or more, a tail as one: those that can be split.
    pub multi_block_files: u64,
    /// Files in two fragments or more.
    pub split_files: u64,
    /// Their share of those that can be.
    pub split_share: Option<f64>,
    /// Fragments of all files.
    pub fragments: u64,
    /// Fragments a file.
    pub fragments_per_file: Option<f64>,
    /// Files by fragments.
    pub by_fragments: Vec<FragmentsBin>,
    /// Breaks: fragments that follow another of their file.
    pub breaks: u64,
    /// Breaks where the next fragment lies before the end of the one before (van der Meer et al.
    /// 2019: out of order).
    pub out_of_order: u64,
    /// Files with such a break.
    pub out_of_order_files: u64,
    /// Mean length of the gap at a break, forward or backward, bytes.
    pub mean_gap_bytes: Option<f64>,
    /// Its median, bytes.
    pub median_gap_bytes: Option<u64>,
}

/// Files of this number of fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FragmentsBin {
    /// The fewest.
    pub fragments_min: u64,
    /// The most.
    pub fragments_max: u64,
    /// Files.
    pub files: u64,
}

impl Layout {
    pub(super) fn new(
        snapshot: &Snapshot,
        measures: &Measures,
        tree: &Tree,
        hot_period_ns: Option<u64>,
    ) -> Self {
        let mut total = Tally::default();
        let mut sizes = [Tally::default(); BINS];
        let mut exact = [Tally::default(); EXACT_BLOCKS_MAX + 1];
        let mut score_sum = 0.0;
        let mut scored_files = 0;
        let mut special = measures.special;
        for (_, measure) in regular(snapshot, measures) {
            special.files_without_blocks += u64::from(!measure.has_place());
            if !measure.has_place() {
                continue;
            }
            total.add(measure);
            sizes[bin_up_to(measure.blocks.max(1))].add(measure);
            if let Some(tally) = exact.get_mut(measure.blocks.max(1) as usize) {
                tally.add(measure);
            }
            if let Some(score) = measure.counts.score() {
                score_sum += score;
                scored_files += 1;
            }
        }
        Self {
            all: total.counts.into(),
            scored_files,
            mean_file_score: (scored_files > 0).then(|| score_sum / scored_files as f64),
            by_size: size_bins(&sizes),
            by_blocks: exact
                .iter()
                .enumerate()
                .filter(|(_, tally)| tally.files > 0)
                .map(|(blocks, tally)| tally.bin(blocks as u64, blocks as u64))
                .collect(),
            hot: hot_period_ns.map(|period| HotFiles::new(snapshot, measures, period)),
            by_directory: by_directory(snapshot, measures, tree),
            worst_files: worst_files(snapshot, measures),
            special,
        }
    }
}

/// Regular files with their measures.
fn regular<'a>(
    snapshot: &'a Snapshot,
    measures: &'a Measures,
) -> impl Iterator<Item = (&'a SnapshotFile, &'a FileMeasure)> {
    snapshot.files.iter().zip(&measures.files).filter(|(file, _)| file.kind == FileKind::Regular)
}

/// Files of one sort, counted.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    files: u64,
    split_files: u64,
    counts: LayoutCounts,
}

impl Tally {
    fn add(&mut self, measure: &FileMeasure) {
        self.files += 1;
        self.split_files += u64::from(measure.fragments > 1);
        self.counts.optimal += measure.counts.optimal;
        self.counts.counted += measure.counts.counted;
    }

    fn bin(&self, blocks_min: u64, blocks_max: u64) -> SizeBin {
        SizeBin {
            blocks_min,
            blocks_max,
            files: self.files,
            split_files: self.split_files,
            share: self.counts.into(),
        }
    }
}

fn size_bins(tallies: &[Tally; BINS]) -> Vec<SizeBin> {
    tallies
        .iter()
        .enumerate()
        .filter(|(_, tally)| tally.files > 0)
        .map(|(number, tally)| {
            let (min, max) = bounds_up_to(number);
            tally.bin(min, max)
        })
        .collect()
}

impl HotFiles {
    fn new(snapshot: &Snapshot, measures: &Measures, period_ns: u64) -> Self {
        let period = HotPeriod::before(snapshot, period_ns);
        let mut total = Tally::default();
        let mut sizes = [Tally::default(); BINS];
        for (file, measure) in regular(snapshot, measures) {
            if period.holds(file) && measure.has_place() {
                total.add(measure);
                sizes[bin_up_to(measure.blocks.max(1))].add(measure);
            }
        }
        Self {
            period_ns,
            until_ns: period.until_ns,
            files: total.files,
            split_files: total.split_files,
            share: total.counts.into(),
            by_size: size_bins(&sizes),
        }
    }
}

fn by_directory(snapshot: &Snapshot, measures: &Measures, tree: &Tree) -> Vec<DirectoryLayout> {
    let mut tallies = vec![Tally::default(); tree.tops.len()];
    for (group, top) in tree.groups.iter().zip(&tree.group_tops) {
        for file in tree.members(*group) {
            let measure = &measures.files[*file as usize];
            if measure.has_place() {
                tallies[*top as usize].add(measure);
            }
        }
    }
    let mut directories: Vec<DirectoryLayout> = tree
        .tops
        .iter()
        .zip(&tallies)
        .filter(|(_, tally)| tally.files > 0)
        .map(|(top, tally)| DirectoryLayout {
            inode: top.inode,
            name: top.name(snapshot),
            files: tally.files,
            split_files: tally.split_files,
            share: tally.counts.into(),
        })
        .collect();
    directories.sort_by_key(|directory| {
        let bad = directory.share.counted_blocks - directory.share.optimal_blocks;
        (std::cmp::Reverse(bad), directory.inode)
    });
    directories
}

fn worst_files(snapshot: &Snapshot, measures: &Measures) -> Vec<FileLayout> {
    let bad = |counts: LayoutCounts| counts.counted - counts.optimal;
    let mut broken: Vec<(std::cmp::Reverse<u64>, u32)> = measures
        .files
        .iter()
        .zip(&snapshot.files)
        .enumerate()
        .filter(|(_, (measure, file))| file.kind == FileKind::Regular && bad(measure.counts) > 0)
        .map(|(place, (measure, _))| (std::cmp::Reverse(bad(measure.counts)), place as u32))
        .collect();
    if broken.len() > WORST_FILES {
        broken.select_nth_unstable(WORST_FILES);
        broken.truncate(WORST_FILES);
    }
    broken.sort_unstable();
    let told = |place: usize| {
        let measure = &measures.files[place];
        FileLayout {
            inode: snapshot.files[place].inode,
            path: path_of(snapshot, place),
            blocks: measure.blocks,
            fragments: measure.fragments,
            share: measure.counts.into(),
        }
    };
    broken.into_iter().map(|(_, place)| told(place as usize)).collect()
}

impl Fragmentation {
    pub(super) fn new(snapshot: &Snapshot, measures: &Measures) -> Self {
        let mut bins = [0_u64; BINS];
        let (mut files, mut multi_block_files, mut split_files) = (0, 0, 0);
        let (mut fragments, mut out_of_order, mut out_of_order_files) = (0, 0, 0);
        for (_, measure) in regular(snapshot, measures).filter(|(_, file)| file.has_place()) {
            files += 1;
            multi_block_files += u64::from(measure.blocks_and_tails > 1);
            split_files += u64::from(measure.fragments > 1);
            fragments += u64::from(measure.fragments);
            out_of_order += u64::from(measure.backward);
            out_of_order_files += u64::from(measure.backward > 0);
            bins[bin_up_to(u64::from(measure.fragments))] += 1;
        }
        let mut gaps_bytes = measures.gaps_bytes.clone();
        Self {
            files,
            multi_block_files,
            split_files,
            split_share: share(split_files, multi_block_files),
            fragments,
            fragments_per_file: share(fragments, files),
            by_fragments: bins
                .iter()
                .enumerate()
                .filter(|(_, files)| **files > 0)
                .map(|(number, files)| {
                    let (fragments_min, fragments_max) = bounds_up_to(number);
                    FragmentsBin { fragments_min, fragments_max, files: *files }
                })
                .collect(),
            breaks: gaps_bytes.len() as u64,
            out_of_order,
            out_of_order_files,
            mean_gap_bytes: mean(&gaps_bytes),
            median_gap_bytes: median(&mut gaps_bytes),
        }
    }
}
