//! Whether reorganising is likely to pay: the expected time to read all regular files on a device.
//!
//! Two ways to read: in a walk over the tree by names, and each file alone, the heads coming from
//! anywhere. Three layouts: as the files lie; as if each were in one piece where it begins, if that
//! saves time (what a defragmenter does); as if all lay one behind the other in the order of the
//! walk (what copying them again does, for the walk only). Data are taken to move at the rate of
//! where they lie now in all three, so that only positioning differs. Reads are split where the file
//! does not go on right behind, and nowhere else; what positioning costs stands in `read_costs`.
//!
//! A walk also reads directories and inodes (`metadata_reads`), each block once, and the heads
//! return from there to the data. That costs the same in every layout, because reorganising files
//! does not spare it: nothing saves more than the positioning between data. Hence no saving is
//! below zero.
//!
//! It is an estimate: it knows no other load, no request size of the system, no angles over long
//! ways, and of caches only that metadata stay in them. Tests hold it against the mechanical model
//! of the same device.
//!
//! Cost: one pass over the extents.

use agewell_disk::DeviceParameters;
use serde::Serialize;

use crate::{Snapshot, SnapshotError};

use super::measure::{FileMeasure, Measures};
use super::metadata_reads::{MetadataReads, directory};
use super::pieces::{Join, Pieces};
use super::read_costs::ReadCosts;
use super::tree::{Group, Tree};

/// From so much saved time on reorganising is said to pay, per cent; chosen by us: the largest
/// slow-down that Smith saw from fragmentation was 15 %, and 30 % on one file system of news ("The
/// effects of age and fragmentation on file system performance"); rewriting everything for less than
/// a fifth is rarely worth the risk.
pub const PAYS_PCT: f64 = 20.0;

/// Below so much saved time reorganising is said not to pay, per cent; chosen by us: two runs of the
/// same benchmark often differ by as much.
pub const NOTICED_PCT: f64 = 5.0;

/// What reorganising is likely to bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// [`PAYS_PCT`] or more of the time.
    LikelyToPay,
    /// Something between.
    Little,
    /// Less than [`NOTICED_PCT`].
    NotWorthIt,
}

/// The expected time to read all regular files, as they lie and reorganised. It is an estimate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reorganising {
    /// The device's name.
    pub device: String,
    /// What people call it.
    pub title: String,
    /// Whether the file system is larger than the device, so that distances were scaled.
    pub scaled: bool,
    /// Files with data on the device.
    pub files: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Time in which data move, the same in every layout, s.
    pub transfer_seconds: f64,
    /// Reads of directories and inodes in a walk.
    pub metadata_reads: u64,
    /// Time for them in a walk, with the way there and back, the same in every layout, s.
    pub metadata_seconds: f64,
    /// All files in a walk by names.
    pub walk: Walk,
    /// Each file alone.
    pub alone: Alone,
    /// Verdict on making each file one piece, for the walk.
    pub defragmenting_verdict: Verdict,
    /// Verdict on writing all files again in the order of the walk.
    pub rewriting_verdict: Verdict,
    /// [`PAYS_PCT`].
    pub pays_pct: f64,
    /// [`NOTICED_PCT`].
    pub noticed_pct: f64,
    /// Time to write all files again: reading them as they lie and writing as much, s.
    pub rewriting_seconds: f64,
    /// Walks after which writing again has paid for itself; `None` if it saves nothing.
    pub walks_to_pay: Option<f64>,
}

/// Reading all files in a walk by names.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Walk {
    /// Places that are not right behind the read before, as they lie.
    pub breaks: u64,
    /// As they lie, s.
    pub as_they_lie_seconds: f64,
    /// Each file in one piece where it begins, s.
    pub defragmented_seconds: f64,
    /// All in the order of the walk, s.
    pub rewritten_seconds: f64,
    /// Time saved by making each file one piece, per cent.
    pub defragmenting_gain_pct: f64,
    /// Time saved by writing all in order, per cent.
    pub rewriting_gain_pct: f64,
}

/// Reading each file alone, the heads coming from anywhere.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alone {
    /// As they lie, all files together, s.
    pub as_they_lie_seconds: f64,
    /// Each file in one piece, s.
    pub defragmented_seconds: f64,
    /// Time saved, per cent.
    pub gain_pct: f64,
    /// A file as it lies, ms; `None` without files.
    pub mean_file_ms: Option<f64>,
}

/// What reorganising the files of `snapshot` is likely to bring on `device`.
///
/// # Errors
/// If the snapshot contradicts itself, as a damaged one may.
pub fn reorganising(
    snapshot: &Snapshot,
    device: &DeviceParameters,
) -> Result<Reorganising, SnapshotError> {
    super::check::check(snapshot)?;
    let costs = ReadCosts::new(device, snapshot.facts.total_bytes);
    let measures = Measures::new(snapshot, false);
    let tree = Tree::new(snapshot);
    let times = Times::new(snapshot, &measures, &tree, &costs);
    Ok(times.told(device, &costs))
}

/// Times of all layouts, ns.
#[derive(Debug, Default)]
struct Times {
    files: u64,
    bytes: u64,
    transfer_ns: u128,
    /// Positioning between the pieces of files.
    within_ns: u128,
    /// Positioning from the end of a file, as it lies, to the start of the next.
    between_ns: u128,
    /// What a defragmenter saves of both.
    saved_whole_ns: u128,
    breaks: u64,
    metadata_reads: u64,
    /// Getting to directories and inodes, reading them, and returning to data.
    metadata_ns: u128,
    /// For each file alone: its inode, and from there to its data.
    inodes_ns: u128,
    mean_positioning_ns: u64,
}

/// The file read before.
#[derive(Clone, Copy)]
struct Before<'a> {
    measure: &'a FileMeasure,
    bytes: u64,
    /// Positioning between its pieces.
    within_ns: u64,
}

impl Times {
    fn new(snapshot: &Snapshot, measures: &Measures, tree: &Tree, costs: &ReadCosts) -> Self {
        let block_bytes = u64::from(snapshot.facts.block_bytes);
        let mut times = Self {
            mean_positioning_ns: costs.mean_positioning_ns(snapshot.facts.total_bytes),
            ..Self::default()
        };
        let mut metadata = MetadataReads::new(snapshot);
        let mut before: Option<Before<'_>> = None;
        for group in &tree.groups {
            let members = in_name_order(snapshot, tree, *group);
            let placed = |place: &&u32| measures.files[**place as usize].has_place();
            let Some(first) = members.iter().find(placed) else { continue };
            let anchor = measures.files[*first as usize].first_bytes;
            let mut heads = before.map(|before| before.measure.end_bytes);
            let mut away = false;
            let inode = snapshot.files[*first as usize].directory;
            if metadata.must_read(inode) {
                let at = metadata.place(inode, anchor);
                times.read_metadata(&mut heads, at, metadata.block_bytes(), costs);
                away = true;
            }
            for piece in directory(snapshot, inode)
                .into_iter()
                .flat_map(|directory| Pieces::new(snapshot, directory, false))
            {
                times.read_metadata(&mut heads, piece.physical_bytes, piece.length_bytes, costs);
                away = true;
            }
            for place in members {
                let measure = &measures.files[place as usize];
                if !measure.has_place() {
                    continue;
                }
                let inode = snapshot.files[place as usize].inode;
                let at = metadata.place(inode, anchor);
                if metadata.must_read(inode) {
                    times.read_metadata(&mut heads, at, metadata.block_bytes(), costs);
                    away = true;
                }
                times.inodes_ns += u128::from(costs.transfer_ns(at, metadata.block_bytes()))
                    + u128::from(costs.positioning_ns(
                        at.saturating_add(metadata.block_bytes()),
                        measure.first_bytes,
                    ));
                if let Some(before) = before {
                    times.go_on(before, measure, block_bytes, away, costs);
                }
                if let Some(heads) = heads.filter(|_| away) {
                    times.metadata_ns +=
                        u128::from(costs.positioning_ns(heads, measure.first_bytes));
                }
                let (bytes, within_ns) = times.read_pieces(snapshot, place, costs);
                before = Some(Before { measure, bytes, within_ns });
                heads = Some(measure.end_bytes);
                away = false;
                times.files += 1;
                times.bytes += bytes;
            }
        }
        if let Some(last) = before {
            times.saved_whole_ns += u128::from(last.within_ns);
        }
        times
    }

    /// Reads `length_bytes` of metadata at `at`, the heads coming from `heads`, from anywhere if
    /// nothing was read before.
    fn read_metadata(
        &mut self,
        heads: &mut Option<u64>,
        at: u64,
        length_bytes: u64,
        costs: &ReadCosts,
    ) {
        let way_ns = match *heads {
            Some(heads) if heads == at => 0,
            Some(heads) => costs.positioning_ns(heads, at),
            // It is the start of the walk, which is counted.
            None => 0,
        };
        self.metadata_reads += 1;
        self.metadata_ns += u128::from(way_ns) + u128::from(costs.transfer_ns(at, length_bytes));
        *heads = Some(at.saturating_add(length_bytes));
    }

    /// Goes from one file to the start of the next, in both layouts. If the heads are `away`, at
    /// metadata, the way from there is counted with them.
    fn go_on(
        &mut self,
        before: Before<'_>,
        next: &FileMeasure,
        block_bytes: u64,
        away: bool,
        costs: &ReadCosts,
    ) {
        let Before { measure, bytes, within_ns } = before;
        let follows = measure.is_followed_by(next, block_bytes);
        self.breaks += u64::from(!follows);
        if away {
            self.saved_whole_ns += u128::from(within_ns);
            return;
        }
        let lies_ns =
            if follows { 0 } else { costs.positioning_ns(measure.end_bytes, next.first_bytes) };
        let whole_ns = if measure.fragments > 1 {
            let end_bytes = measure.first_bytes + bytes.next_multiple_of(block_bytes);
            if end_bytes == next.first_bytes {
                0
            } else {
                costs.positioning_ns(end_bytes, next.first_bytes)
            }
        } else {
            lies_ns
        };
        self.between_ns += u128::from(lies_ns);
        // What would take longer in one piece stays as it lies.
        let saved_ns = within_ns.saturating_add(lies_ns).saturating_sub(whole_ns);
        self.saved_whole_ns += u128::from(saved_ns);
    }

    /// Reads the pieces of a file; gives their bytes, and the time of positioning between them.
    fn read_pieces(&mut self, snapshot: &Snapshot, place: u32, costs: &ReadCosts) -> (u64, u64) {
        let mut at = None;
        let (mut bytes, mut within_ns) = (0, 0_u64);
        for piece in Pieces::new(snapshot, &snapshot.files[place as usize], false) {
            if let Some(at) = at
                && piece.join != Join::Behind
            {
                self.breaks += 1;
                let way_ns = costs.positioning_ns(at, piece.physical_bytes);
                within_ns = within_ns.saturating_add(way_ns);
            }
            let transfer_ns = costs.transfer_ns(piece.physical_bytes, piece.length_bytes);
            self.transfer_ns += u128::from(transfer_ns);
            bytes += piece.length_bytes;
            at = Some(piece.end_bytes());
        }
        self.within_ns += u128::from(within_ns);
        (bytes, within_ns)
    }

    fn told(&self, device: &DeviceParameters, costs: &ReadCosts) -> Reorganising {
        let start_ns = match self.files {
            0 => 0,
            _ => u128::from(self.mean_positioning_ns),
        };
        let starts_ns =
            u128::from(self.mean_positioning_ns) * u128::from(self.files) + self.inodes_ns;
        let rewritten_ns = start_ns + self.transfer_ns + self.metadata_ns;
        let lies_ns = rewritten_ns + self.within_ns + self.between_ns;
        let defragmented_ns = lies_ns - self.saved_whole_ns;
        let alone_ns = starts_ns + self.transfer_ns + self.within_ns;
        let alone_whole_ns = starts_ns + self.transfer_ns;
        let defragmenting_gain_pct = gain_pct(lies_ns, defragmented_ns);
        let rewriting_gain_pct = gain_pct(lies_ns, rewritten_ns);
        let rewriting_ns = lies_ns + rewritten_ns;
        let saved_ns = lies_ns.saturating_sub(rewritten_ns);
        Reorganising {
            device: device.name.clone(),
            title: device.title.clone(),
            scaled: costs.is_scaled(),
            files: self.files,
            bytes: self.bytes,
            transfer_seconds: seconds(self.transfer_ns),
            metadata_reads: self.metadata_reads,
            metadata_seconds: seconds(self.metadata_ns),
            walk: Walk {
                breaks: self.breaks,
                as_they_lie_seconds: seconds(lies_ns),
                defragmented_seconds: seconds(defragmented_ns),
                rewritten_seconds: seconds(rewritten_ns),
                defragmenting_gain_pct,
                rewriting_gain_pct,
            },
            alone: Alone {
                as_they_lie_seconds: seconds(alone_ns),
                defragmented_seconds: seconds(alone_whole_ns),
                gain_pct: gain_pct(alone_ns, alone_whole_ns),
                mean_file_ms: (self.files > 0).then(|| seconds(alone_ns) * 1e3 / self.files as f64),
            },
            defragmenting_verdict: verdict(defragmenting_gain_pct),
            rewriting_verdict: verdict(rewriting_gain_pct),
            pays_pct: PAYS_PCT,
            noticed_pct: NOTICED_PCT,
            rewriting_seconds: seconds(rewriting_ns),
            walks_to_pay: (saved_ns > 0).then(|| rewriting_ns as f64 / saved_ns as f64),
        }
    }
}

/// The regular files of a directory by name.
fn in_name_order(snapshot: &Snapshot, tree: &Tree, group: Group) -> Vec<u32> {
    let mut members = tree.members(group).to_vec();
    members.sort_unstable_by_key(|place| (snapshot.files[*place as usize].name_rank, *place));
    members
}

fn verdict(gain_pct: f64) -> Verdict {
    if gain_pct >= PAYS_PCT {
        Verdict::LikelyToPay
    } else if gain_pct >= NOTICED_PCT {
        Verdict::Little
    } else {
        Verdict::NotWorthIt
    }
}

/// Time saved, per cent of `before_ns`; 0 of nothing.
fn gain_pct(before_ns: u128, after_ns: u128) -> f64 {
    match before_ns {
        0 => 0.0,
        _ => 100.0 * (before_ns as f64 - after_ns as f64) / before_ns as f64,
    }
}

fn seconds(ns: u128) -> f64 {
    ns as f64 / 1e9
}
