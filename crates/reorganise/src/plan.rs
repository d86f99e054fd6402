//! What would be moved, what that costs, and what it saves. A function of a snapshot.

use std::collections::HashSet;

use agewell_disk::DeviceParameters;
use agewell_snapshot::score::{NOTICED_PCT, PAYS_PCT, reorganising};
use agewell_snapshot::{FileKind, Snapshot, SnapshotError};
use serde::{Deserialize, Serialize};

use crate::arranger::{Arranger, Limits, Piece, Purpose};
use crate::budget::{Candidate, Costs, choose};
use crate::file_system::{FileSystem, Identity};
use crate::gain::{moved_for_nothing, stretches};
use crate::new_chunks::NewChunks;
use crate::order::Part;
use crate::parted::{PartedFiles, parted_files};
use crate::planned_file::{PlannedFile, first_of_file, pieces_of};
use crate::read_time::{ColdReader, ReadTime, sequential_byte_seconds};
use crate::room::Room;
use crate::runs::Runs;
use crate::skip::{self, SkipCounts};

/// How a plan is made.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PlanOptions {
    /// What the arranger goes by.
    pub limits: Limits,
    /// No more bytes than these are moved: what saves most for its bytes comes first.
    pub budget_bytes: Option<u64>,
    /// Whether the order is that of a walk over the tree, which also reads directories and inodes.
    pub walk: bool,
}

/// What carrying a plan out takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Work {
    /// Files that are moved to their place, or parts of which are.
    pub files: u64,
    /// Their bytes, of parts those.
    pub file_bytes: u64,
    /// Bytes moved in all, with what makes room.
    pub moved_bytes: u64,
    /// On btrfs: of them nodes of trees, from chunks of metadata to others, so that data can have those.
    #[serde(default)]
    pub node_bytes: u64,
    /// Pieces in which the files lie in their order, before.
    pub stretches_before: u64,
    /// The same afterwards.
    pub stretches_after: u64,
    /// Files that stay because they lie well, or are beyond the budget.
    pub stay: u64,
    /// Files for which there is no room.
    pub no_room: u64,
}

/// What a plan saves on a disk. An estimate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saving {
    /// The device's name.
    pub device: String,
    /// What people call it.
    pub title: String,
    /// Time of a cold read of all files in the plan's order as they lie, with metadata, s.
    pub before_seconds: f64,
    /// The same afterwards, s.
    pub after_seconds: f64,
    /// Of both, for directories and inodes, s.
    pub metadata_seconds: f64,
    /// Time saved, per cent.
    pub gain_pct: f64,
    /// How far the times may be off, per cent either way.
    pub uncertainty_pct: f64,
    /// Whether it is likely to pay: at least [`PAYS_PCT`].
    pub pays: bool,
    /// Whether it is at least noticed: [`NOTICED_PCT`].
    pub noticed: bool,
}

/// How far a modelled time may be from the drive's, per cent: what replays of recorded requests on a
/// probed drive differ from the drive at worst, but one load (docs/concepts/accuracy.md).
const UNCERTAINTY_PCT: f64 = 15.0;

/// What would be moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Of what file system.
    pub file_system: FileSystem,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bytes of the file system.
    pub total_bytes: u64,
    /// What the arranger goes by.
    pub limits: Limits,
    /// The files in their order, those that stay among them.
    pub files: Vec<PlannedFile>,
    /// Those left out, by reason.
    pub skipped: SkipCounts,
    /// What it takes.
    pub work: Work,
    /// On btrfs: bytes of chunks of data that are made first.
    #[serde(default)]
    pub new_chunk_bytes: u64,
    /// Files that are laid in parts; none if all are whole.
    #[serde(default)]
    pub parted: Option<PartedFiles>,
    /// What it saves, if a disk was named.
    pub saving: Option<Saving>,
}

/// Plans to lay what `order` names of the files of `snapshot` into `room`; `device` is the disk for
/// which the saving is estimated.
///
/// # Errors
/// If the snapshot contradicts itself, or has no names.
pub fn plan(
    snapshot: &Snapshot,
    file_system: FileSystem,
    order: &[Part],
    room: &Room,
    device: Option<&DeviceParameters>,
    options: &PlanOptions,
) -> Result<Plan, SnapshotError> {
    let block_bytes = u64::from(snapshot.facts.block_bytes);
    let paths = Paths::new(snapshot)?;
    let mut skipped = SkipCounts::new();
    let mut files = Vec::with_capacity(order.len());
    let mut counted = HashSet::new();
    for part in order {
        let file = &snapshot.files[part.file as usize];
        if file.kind != FileKind::Regular || file.size_bytes == 0 {
            continue;
        }
        if let Some(why) = skip::by_extents(snapshot, file, file_system) {
            if counted.insert(part.file) {
                let count = skipped.entry(why).or_default();
                *count = (count.0 + 1, count.1 + file.size_bytes);
            }
            continue;
        }
        let pieces = pieces_of(snapshot, file, block_bytes, part.range);
        if pieces.is_empty() {
            continue;
        }
        files.push(PlannedFile {
            path: paths.of(part.file as usize),
            identity: Identity {
                inode: file.inode,
                birth_ns: file.birth_ns,
                change_ns: file.change_ns,
                size_bytes: file.size_bytes,
            },
            range: part.range,
            pieces,
            stays: false,
        });
    }
    leave_out_contradictions(&mut files, &room.free, &mut skipped);
    // What is written on btrfs goes to the place that is let free, so there is one at a time.
    let limits = if file_system == FileSystem::Btrfs {
        let batch_bytes = options.limits.batch_bytes.max(BTRFS_BATCH_BYTES);
        Limits { one_run: true, batch_bytes, ..options.limits }
    } else {
        options.limits
    };
    // What is recorded is little, and read again and again: moving it pays where for a tree it would
    // not.
    let well_bytes = if options.walk { limits.shortest_bytes } else { limits.longest_bytes };
    keep_what_lies_well(&mut files, well_bytes);
    if options.budget_bytes.is_none() {
        keep_what_gains_nothing(&mut files, room, &limits, block_bytes);
    }
    let total_bytes = snapshot.facts.total_bytes;
    let ground = Ground { room, block_bytes, total_bytes, device };
    let before = ground.read(files.iter().map(|file| &file.pieces[..]));
    let Foreseen { work, limits, new_chunk_bytes, after, places } = match options.budget_bytes {
        None => ground.foresee(&files, room, &limits, None),
        Some(budget_bytes) => ground.within_budget(&mut files, &limits, &before, budget_bytes),
    };
    let saving = match device {
        None => None,
        Some(device) => {
            let metadata_seconds =
                if options.walk { reorganising(snapshot, device)?.metadata_seconds } else { 0.0 };
            Some(saving_of(device, before.told, after, metadata_seconds))
        }
    };
    let parted = parted_files(snapshot, &files, &places);
    Ok(Plan {
        file_system,
        block_bytes,
        total_bytes,
        limits,
        files,
        skipped,
        work,
        new_chunk_bytes,
        parted,
        saving,
    })
}

/// Bytes between two commits on btrfs, of which each writes all nodes of trees that were touched to new
/// places; chosen by us: a second or two of a disk of today.
const BTRFS_BATCH_BYTES: u64 = 256 << 20;

fn saving_of(
    device: &DeviceParameters,
    before: ReadTime,
    after: ReadTime,
    metadata_seconds: f64,
) -> Saving {
    let before_seconds = before.seconds + metadata_seconds;
    let after_seconds = after.seconds + metadata_seconds;
    let gain_pct = if before_seconds > 0.0 {
        100.0 * (before_seconds - after_seconds) / before_seconds
    } else {
        0.0
    };
    Saving {
        device: device.name.clone(),
        title: device.title.clone(),
        before_seconds,
        after_seconds,
        metadata_seconds,
        gain_pct,
        uncertainty_pct: UNCERTAINTY_PCT,
        pays: gain_pct >= PAYS_PCT,
        noticed: gain_pct >= NOTICED_PCT,
    }
}

/// A snapshot of a file system in use is not of one moment: what a file has left may be listed as
/// free, or as another's, as well. Files that have bytes twice in it are left out: so what the others
/// leave is not free before they leave it.
fn leave_out_contradictions(files: &mut Vec<PlannedFile>, free: &Runs, skipped: &mut SkipCounts) {
    let mut pieces: Vec<(u64, u64, usize)> = Vec::new();
    for (number, file) in files.iter().enumerate() {
        let places = file.pieces.iter().map(|p| (p.physical_bytes, p.length_bytes, number));
        pieces.extend(places);
    }
    pieces.sort_unstable();
    let mut twice = vec![false; files.len()];
    let (mut end, mut last) = (0, 0);
    for (start, length, number) in pieces {
        if start < end {
            (twice[last], twice[number]) = (true, true);
        }
        twice[number] |= free.overlaps(start, length);
        if start + length > end {
            (end, last) = (start + length, number);
        }
    }
    // With a part of a file go all others.
    let first = first_of_file(files);
    for number in 0..files.len() {
        twice[first[number] as usize] |= twice[number];
    }
    for (number, _) in twice
        .iter()
        .enumerate()
        .filter(|(number, twice)| **twice && first[*number] as usize == *number)
    {
        let count = skipped.entry(skip::Skip::Changed).or_default();
        *count = (count.0 + 1, count.1 + files[number].identity.size_bytes);
    }
    let mut first = first.into_iter();
    files.retain(|_| first.next().is_none_or(|first| !twice[first as usize]));
}

/// Files that already lie one behind the other over a stretch, or over all there is, stay.
fn keep_what_lies_well(files: &mut [PlannedFile], stretch_bytes: u64) {
    let all_bytes: u64 = files.iter().flat_map(|file| &file.pieces).map(|p| p.length_bytes).sum();
    let enough_bytes = stretch_bytes.min(all_bytes);
    let whole = |file: &PlannedFile| {
        file.pieces.len() == 1
            || file.pieces.iter().all(|piece| piece.length_bytes >= stretch_bytes)
            || file
                .pieces
                .windows(2)
                .all(|pair| pair[0].physical_bytes + pair[0].length_bytes == pair[1].physical_bytes)
    };
    let mut first = 0;
    while first < files.len() {
        let mut last = first;
        while last + 1 < files.len()
            && whole(&files[last])
            && whole(&files[last + 1])
            && follows(&files[last], &files[last + 1])
        {
            last += 1;
        }
        let bytes: u64 =
            files[first..=last].iter().flat_map(|file| &file.pieces).map(|p| p.length_bytes).sum();
        if whole(&files[last]) && bytes >= enough_bytes {
            files[first..=last].iter_mut().for_each(|file| file.stays = true);
        }
        first = last + 1;
    }
}

/// Times that a plan is made again without what it would move for nothing; chosen by us: what else is moved
/// changes little with it.
const GAIN_ROUNDS_MAX: usize = 4;

/// Files that would be moved and lie no better afterwards stay.
fn keep_what_gains_nothing(
    files: &mut [PlannedFile],
    room: &Room,
    limits: &Limits,
    block_bytes: u64,
) {
    for _ in 0..GAIN_ROUNDS_MAX {
        let (_, after) = foresee(files, room, limits, block_bytes);
        let before: Vec<&[Piece]> = files.iter().map(|file| &file.pieces[..]).collect();
        let stays: Vec<bool> = files.iter().map(|file| file.stays).collect();
        let nothing = moved_for_nothing(&before, &after, &stays);
        if !nothing.contains(&true) {
            return;
        }
        for (file, nothing) in files.iter_mut().zip(nothing) {
            file.stays |= nothing;
        }
    }
}

fn follows(before: &PlannedFile, next: &PlannedFile) -> bool {
    let end = before.pieces.last().map(|piece| piece.physical_bytes + piece.length_bytes);
    end == next.pieces.first().map(|piece| piece.physical_bytes)
}

/// What a plan stands on.
#[derive(Debug)]
struct Ground<'a> {
    room: &'a Room,
    block_bytes: u64,
    total_bytes: u64,
    device: Option<&'a DeviceParameters>,
}

/// A cold read, file by file.
#[derive(Debug)]
struct Read {
    told: ReadTime,
    /// Of each file, s.
    file_seconds: Vec<f64>,
}

/// What comes of carrying a choice of files out.
#[derive(Debug)]
struct Foreseen {
    work: Work,
    limits: Limits,
    new_chunk_bytes: u64,
    /// The cold read afterwards.
    after: ReadTime,
    /// Where each file, or part of one, lies then.
    places: Vec<Vec<Piece>>,
}

impl Ground<'_> {
    /// A cold read of `files` on the device; without one, a break takes a second.
    fn read<'a>(&self, files: impl Iterator<Item = &'a [Piece]>) -> Read {
        let Some(device) = self.device else {
            let mut told = ReadTime { seconds: 0.0, breaks: 0, bytes: 0 };
            let mut end = None;
            let mut file_seconds = Vec::new();
            for file in files {
                let before = told.breaks;
                for piece in file {
                    told.breaks += u64::from(end != Some(piece.physical_bytes));
                    told.bytes += piece.length_bytes;
                    end = Some(piece.end_bytes());
                }
                file_seconds.push((told.breaks - before) as f64);
            }
            return Read { told: ReadTime { seconds: told.breaks as f64, ..told }, file_seconds };
        };
        let mut reader = ColdReader::new(device, self.total_bytes);
        let file_seconds = files.map(|file| reader.read(file)).collect();
        Read { told: reader.told(), file_seconds }
    }

    /// What carrying it out in `room` takes, of which `chunks` are made, and how the files are read then.
    fn foresee(
        &self,
        files: &[PlannedFile],
        room: &Room,
        limits: &Limits,
        chunks: Option<&NewChunks>,
    ) -> Foreseen {
        let (mut work, places) = foresee(files, room, limits, self.block_bytes);
        let after = self.read(places.iter().map(|pieces| &pieces[..])).told;
        work.node_bytes = chunks.map_or(0, NewChunks::node_bytes);
        work.moved_bytes += work.node_bytes;
        let new_chunk_bytes = chunks.map_or(0, NewChunks::bytes);
        Foreseen { work, limits: *limits, new_chunk_bytes, after, places }
    }

    /// Chooses the files that are moved within `budget_bytes`, those that make room for them counted;
    /// the others stay. `before` is the cold read of them as they lie.
    ///
    /// Which choice is best depends on the room for it, and what room is made depends on the choice.
    /// So a few are carried out on paper: with files in whatever runs are free, with room made
    /// first, and on btrfs with chunks of data made first. Where that moves more than the budget, or
    /// files find no room, less is chosen.
    fn within_budget(
        &self,
        files: &mut [PlannedFile],
        limits: &Limits,
        before: &Read,
        budget_bytes: u64,
    ) -> Foreseen {
        let chunks = self.room.chunk_space.new_chunks(budget_bytes);
        let with_chunks = chunks.as_ref().map(|chunks| {
            let mut room = self.room.clone();
            for (start, length) in &chunks.runs {
                room.free.add_absent(*start, *length);
            }
            (room, chunks)
        });
        let batch_bytes = limits.batch_bytes.max(AS_IS_BATCH_BYTES);
        let as_is = Limits { makes_room: false, batch_bytes, ..*limits };
        let mut best: Option<(Foreseen, Vec<bool>)> = None;
        let well: Vec<bool> = files.iter().map(|file| file.stays).collect();
        let mut ways = vec![(self.room, as_is, None), (self.room, *limits, None)];
        ways.extend(with_chunks.as_ref().map(|(room, chunks)| (room, as_is, Some(*chunks))));
        for (room, limits, chunks) in ways {
            let held = room.held();
            let node_bytes = chunks.map_or(0, NewChunks::node_bytes);
            let mut target_bytes = budget_bytes.saturating_sub(node_bytes);
            for _ in 0..CHOICES_MAX {
                let costs = self.costs(before, &held, &limits, target_bytes);
                let candidates = candidates(files, &well, before);
                let chosen = choose(&candidates, &costs, target_bytes);
                for (number, file) in files.iter_mut().enumerate() {
                    file.stays = !chosen[number];
                }
                let found = self.foresee(files, room, &limits, chunks);
                let (moved_bytes, unlaid) = (found.work.moved_bytes, found.work.no_room > 0);
                let laid_bytes = found.work.file_bytes;
                // By time alone chance would say for few files: how the disk happens to stand.
                let gains = found.after.breaks < before.told.breaks;
                let fits = gains && moved_bytes <= budget_bytes;
                let better = |(best, _): &(Foreseen, _)| found.after.seconds < best.after.seconds;
                if fits && best.as_ref().is_none_or(better) {
                    best = Some((found, chosen));
                }
                let next_bytes = if moved_bytes > budget_bytes {
                    target_bytes.saturating_sub(moved_bytes - budget_bytes).min(laid_bytes)
                } else if unlaid {
                    laid_bytes
                } else {
                    break;
                };
                if next_bytes >= target_bytes {
                    break;
                }
                target_bytes = next_bytes;
            }
        }
        let chosen = best.as_ref().map_or_else(|| vec![false; files.len()], |best| best.1.clone());
        for (file, chosen) in files.iter_mut().zip(chosen) {
            file.stays = !chosen;
        }
        best.map_or_else(|| self.foresee(files, self.room, limits, None), |best| best.0)
    }

    /// What reading costs, on average of `before`, once `target_bytes` lie in what is `held`.
    fn costs(&self, before: &Read, held: &Runs, limits: &Limits, target_bytes: u64) -> Costs {
        let byte_seconds =
            self.device.map_or(0.0, |device| sequential_byte_seconds(device, self.total_bytes));
        let told = &before.told;
        let ways_seconds = told.seconds - told.bytes as f64 * byte_seconds;
        let stretch_bytes = if limits.makes_room {
            limits.longest_bytes
        } else {
            held.mean_of_longest(target_bytes.max(1)).max(self.block_bytes)
        };
        Costs {
            break_seconds: ways_seconds.max(0.0) / told.breaks.max(1) as f64,
            byte_seconds,
            stretch_bytes,
        }
    }
}

/// Bytes between two commits where files go to what is free as it is, so that there is little use for what
/// they leave; chosen by us: an eighth of what is held at most. With 64 MiB the inodes of small files
/// are written again so often that in all an eighth more is written.
const AS_IS_BATCH_BYTES: u64 = 1 << 30;

/// Choices that are carried out on paper for a budget, with room made and without each; chosen by us:
/// from the third on they differ by little.
const CHOICES_MAX: usize = 4;

/// What each file takes to read where it lies; those that lie `well` cannot be moved.
fn candidates(files: &[PlannedFile], well: &[bool], before: &Read) -> Vec<Candidate> {
    let mut all = Vec::with_capacity(files.len());
    for (number, file) in files.iter().enumerate() {
        all.push(Candidate {
            bytes: file.pieces.iter().map(|piece| piece.length_bytes).sum(),
            seconds: before.file_seconds[number],
            follows: number > 0 && follows(&files[number - 1], file),
            movable: !well[number],
        });
    }
    all
}

/// What carrying it out takes, and where the files lie then.
fn foresee(
    files: &[PlannedFile],
    room: &Room,
    limits: &Limits,
    block_bytes: u64,
) -> (Work, Vec<Vec<Piece>>) {
    let stays: Vec<bool> = files.iter().map(|file| file.stays).collect();
    let pieces: Vec<Vec<Piece>> = files.iter().map(|file| file.pieces.clone()).collect();
    let mut arranger = Arranger::new(pieces, &stays, *limits, block_bytes);
    let mut room = room.clone();
    let mut work = Work {
        stretches_before: stretches(files.iter().map(|file| &file.pieces[..])),
        ..Work::default()
    };
    let mut laid = vec![false; files.len()];
    loop {
        let (purpose, moves) = arranger.next_batch(&room.held(), &room.free);
        if moves.is_empty() {
            break;
        }
        let mut left = Vec::new();
        for step in &moves {
            room.free.take(step.physical_bytes, step.length_bytes);
            left.extend(arranger.moved(step));
            work.moved_bytes += step.length_bytes;
            laid[step.file as usize] |= purpose == Purpose::Lay;
        }
        for (start, length) in left {
            room.free.add(start, length);
        }
    }
    let bytes = |file: &PlannedFile| file.pieces.iter().map(|p| p.length_bytes).sum::<u64>();
    // Of a file in parts: whether one is laid, and whether one had no room.
    let first = first_of_file(files);
    let mut of_file = vec![(false, false); files.len()];
    for (number, file) in files.iter().enumerate() {
        let (any_laid, any_unlaid) = &mut of_file[first[number] as usize];
        *any_laid |= laid[number];
        *any_unlaid |= !laid[number] && !file.stays;
        work.file_bytes += if laid[number] { bytes(file) } else { 0 };
    }
    for (number, (any_laid, any_unlaid)) in of_file.into_iter().enumerate() {
        if first[number] as usize == number {
            work.files += u64::from(any_laid);
            work.no_room += u64::from(any_unlaid && !any_laid);
            work.stay += u64::from(!any_laid && !any_unlaid);
        }
    }
    let after: Vec<Vec<Piece>> =
        (0..files.len() as u32).map(|file| arranger.pieces(file).to_vec()).collect();
    work.stretches_after = stretches(after.iter().map(|pieces| &pieces[..]));
    (work, after)
}

/// Paths of the files of a snapshot.
struct Paths<'a> {
    snapshot: &'a Snapshot,
    names: &'a [Vec<u8>],
}

/// No path has more components: `PATH_MAX` of Linux is 4096 bytes.
const DEPTH_MAX: usize = 4096;

impl<'a> Paths<'a> {
    fn new(snapshot: &'a Snapshot) -> Result<Self, SnapshotError> {
        let names = snapshot.names.as_deref().ok_or_else(|| {
            SnapshotError::Input(
                "the snapshot has no names, without which no file can be opened; take it with \
                 --names"
                    .to_owned(),
            )
        })?;
        Ok(Self { snapshot, names })
    }

    /// From the root of the tree.
    fn of(&self, place: usize) -> Vec<u8> {
        let mut parts: Vec<&[u8]> = Vec::new();
        let mut at = place;
        while parts.len() <= DEPTH_MAX {
            let file = &self.snapshot.files[at];
            if file.directory == file.inode {
                break;
            }
            let parent = file.directory;
            let found = self.snapshot.files.binary_search_by_key(&parent, |other| other.inode);
            parts.push(&self.names[at]);
            let Ok(found) = found else { break };
            at = found;
        }
        parts.reverse();
        parts.join(&b'/')
    }
}

#[cfg(test)]
mod tests {
    use agewell_snapshot::source::live::MetadataChunk;

    use super::{Ground, Limits, Piece, PlannedFile, Room, leave_out_contradictions};
    use crate::file_system::Identity;
    use crate::new_chunks::ChunkSpace;
    use crate::runs::Runs;
    use crate::skip::{Skip, SkipCounts};

    /// A file of one piece, named by its number.
    fn file(inode: u64, physical_bytes: u64, length_bytes: u64) -> PlannedFile {
        PlannedFile {
            path: vec![b'a'],
            identity: Identity { inode, birth_ns: 0, change_ns: 0, size_bytes: length_bytes },
            range: None,
            pieces: vec![Piece { logical_bytes: 0, physical_bytes, length_bytes }],
            stays: false,
        }
    }

    #[test]
    fn files_of_which_bytes_are_listed_twice_are_left_out() {
        let free: Runs = [(40_960, 8192)].into_iter().collect();
        let mut files = vec![
            file(1, 0, 8192),
            file(2, 8192, 16_384),
            file(3, 12_288, 4096),
            file(4, 20_480, 8192),
            file(5, 36_864, 8192),
            file(6, 49_152, 4096),
        ];
        let mut skipped = SkipCounts::new();
        leave_out_contradictions(&mut files, &free, &mut skipped);
        let left: Vec<u64> = files.iter().map(|file| file.identity.inode).collect();
        assert_eq!(left, [1, 6]);
        assert_eq!(skipped[&Skip::Changed], (4, 8192 + 16_384 + 4096 + 8192));
    }

    const BLOCK: u64 = 4096;

    /// Files of one block each, far apart, with every free run four blocks long: the budget is spent
    /// all the same, on files that are neighbours, and no more than the budget.
    #[test]
    fn a_budget_is_spent_where_free_space_is_scattered() {
        let mut files: Vec<PlannedFile> = (0..2000)
            .map(|number| file(number, (number * 7919 % 2000) * 8 * BLOCK, BLOCK))
            .collect();
        let free: Runs = (0..2000).map(|run| ((run * 8 + 4) * BLOCK, 4 * BLOCK)).collect();
        let room = Room { free, reserve_bytes: 0, chunk_space: ChunkSpace::default() };
        let ground = Ground { room: &room, block_bytes: BLOCK, total_bytes: 1 << 26, device: None };
        let before = ground.read(files.iter().map(|file| &file.pieces[..]));
        let budget = 1000 * BLOCK;
        let found = ground.within_budget(&mut files, &Limits::default(), &before, budget);
        assert!(found.work.moved_bytes <= budget);
        assert!(found.work.moved_bytes >= budget * 99 / 100, "{:?}", found.work);
        assert_eq!(found.work.files * BLOCK, found.work.moved_bytes);
        // Of four blocks in a run three follow another.
        assert!(found.after.breaks <= before.told.breaks - 740, "{:?}", found.after);
        assert_eq!(files.iter().filter(|file| !file.stays).count() as u64, found.work.files);
    }

    /// No run is free that is worth it, but a chunk of metadata is little used: chunks of data are made, and
    /// its nodes count. Where they leave nothing of the budget, none are.
    #[test]
    fn chunks_are_made_where_no_run_is_free() {
        let chunk = |logical_bytes: u64, used_bytes: u64| MetadataChunk {
            logical_bytes,
            length_bytes: 32 << 20,
            used_bytes,
            copies: vec![logical_bytes, logical_bytes + (32 << 20)],
        };
        let (full, empty) = (chunk(128 << 20, 8 << 20), chunk(192 << 20, 1 << 20));
        let mut files: Vec<PlannedFile> = (0..4000)
            .map(|number| file(number, (number * 7919 % 4000) * 8 * BLOCK, 4 * BLOCK))
            .collect();
        let mut room =
            Room { free: Runs::default(), reserve_bytes: 0, chunk_space: ChunkSpace::default() };
        room.chunk_space.metadata = vec![full, empty];
        room.chunk_space.chunk_bytes = 64 << 20;
        let ground = Ground { room: &room, block_bytes: BLOCK, total_bytes: 1 << 28, device: None };
        let before = ground.read(files.iter().map(|file| &file.pieces[..]));
        let budget = 2000 * 4 * BLOCK;
        let limits = Limits { one_run: true, ..Limits::default() };
        let found = ground.within_budget(&mut files, &limits, &before, budget);
        assert_eq!((found.work.node_bytes, found.new_chunk_bytes), (2 << 20, 64 << 20));
        assert!(found.work.moved_bytes <= budget);
        assert_eq!(found.work.files * 4 * BLOCK + (2 << 20), found.work.moved_bytes);
        assert!(
            found.after.breaks < before.told.breaks - found.work.files * 9 / 10,
            "{:?}",
            found.after
        );
        for file in &mut files {
            file.stays = false;
        }
        let found = ground.within_budget(&mut files, &limits, &before, 2 << 20);
        assert_eq!((found.work.moved_bytes, found.new_chunk_bytes), (0, 0));
    }

    /// What room must be made for counts: with none free but a little, moves of those that make room
    /// and of those laid come to no more than the budget.
    #[test]
    fn what_makes_room_is_within_the_budget() {
        // Files of 128 KiB, each followed by a hole of one block.
        let mut files: Vec<PlannedFile> = (0..512)
            .map(|number| file(number, (number * 5 % 512) * 33 * BLOCK, 32 * BLOCK))
            .collect();
        let free: Runs = (0..512).map(|run| ((run * 33 + 32) * BLOCK, BLOCK)).collect();
        let room = Room { free, reserve_bytes: 0, chunk_space: ChunkSpace::default() };
        let ground = Ground { room: &room, block_bytes: BLOCK, total_bytes: 1 << 27, device: None };
        let before = ground.read(files.iter().map(|file| &file.pieces[..]));
        for share in [1, 2, 4] {
            let budget = 512 * 32 * BLOCK / share;
            let mut files = files.clone();
            let found = ground.within_budget(&mut files, &Limits::default(), &before, budget);
            assert!(found.work.moved_bytes <= budget, "{:?}", found.work);
            assert!(found.after.breaks <= before.told.breaks, "{:?}", found.after);
        }
        let all = ground.foresee(&files, &room, &Limits::default(), None);
        assert!(all.work.moved_bytes > 0 && all.after.breaks < before.told.breaks);
        let budget = all.work.moved_bytes;
        let found = ground.within_budget(&mut files, &Limits::default(), &before, budget);
        assert!(found.after.breaks <= all.after.breaks, "{found:?} and {all:?}");
    }
}
