//! btrfs: a copy in a file without a name, which the kernel compares with the file and then has the
//! file share (`FIDEDUPERANGE`); then that file is dropped.
//!
//! Where a new extent comes to lie cannot be asked for. So all free space is held, by
//! preallocation, and only the places that files are to go to are let free, one run of each block
//! group: there the kernel puts what is written, one after another, block group after block group by
//! address. (Of two runs of one block group it would take the longer each time, and so go to and fro.)
//! What a run has left when it is full is held again, or a later file that is small would go there.
//! What was freed by moves is free only after a commit, so that nothing else comes free meanwhile.
//! Each commit writes every node of a tree that was touched to a new place, so there are few: what is held stays
//! held from batch to batch, and only what came free is added. Where a copy came to lie is read before it is shared; what lies
//! elsewhere, because others took the place, is dropped and the file stays.
//!
//! An extent of btrfs lasts until nothing refers to any part of it. So every part that is moved has
//! an extent, and a file without a name, of its own: removing one file frees all that it had.
//!
//! Others find in the meantime only the places that were let free, and what no chunk has yet. Of that, and
//! of chunks of metadata that are mostly empty, chunks of data are made where the plan says so.
//!
//! Source: Linux `fs/btrfs/extent-tree.c` (`find_free_extent`), `fs/btrfs/reflink.c`; manual page
//! ioctl_fideduperange(2).

use std::thread;
use std::time::Duration;

use agewell_snapshot::source::live::{DataSpace, ExtentMap};
use agewell_snapshot::{Extent, ExtentFlags, SnapshotError};
use rustix::fd::OwnedFd;
use rustix::fs::{FallocateFlags, fallocate, ftruncate};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use super::copier::{Copier, Job, Written};
use super::copying::{self, Copied};
use super::{Carried, Fault, Mechanism};
use crate::arranger::{LONG_STRETCH_BYTES, Move, Piece, Purpose, joined};
use crate::new_chunks::{CHUNK_BYTES_MIN, node_bytes};
use crate::runs::Runs;
use crate::skip::Skip;
use crate::volume::{Volume, chunk_space};

/// Space is held in extents of no more than this many bytes: what btrfs gives to one
/// (`BTRFS_MAX_EXTENT_SIZE`).
const EXTENT_BYTES_MAX: u64 = 128 << 20;

/// Files that hold space; each acquisition adds one for what came free, and beyond that many all is
/// given up and held again. Chosen by us: each is an open file.
const HOLDERS_MAX: usize = 64;

/// After each failed try to empty a chunk of metadata; chosen by us: some times as long as a commit takes.
const EMPTYING_WAITS: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(800),
    Duration::ZERO,
];

pub(super) struct Btrfs {
    holders: Vec<Holder>,
    /// Where data is kept, as of the last acquisition.
    space: DataSpace,
    /// Chunks of data that the next acquisition has made.
    new_chunks: usize,
    /// Runs that are let free for the moves of this batch.
    target: Option<Target>,
    /// Copies that are being written, in the order of their moves.
    copies: Copier,
    /// Files without a name and without contents, for the next copies.
    spare: Vec<OwnedFd>,
    /// Holds what is left over of the runs of this batch, so that no later file is put there.
    filler: Option<OwnedFd>,
    map: ExtentMap,
    extents: Vec<Extent>,
}

/// A file that holds free space.
#[derive(Debug)]
struct Holder {
    file: OwnedFd,
    /// Ascending by place on the device.
    held: Vec<Extent>,
}

/// Where the moves of a batch go.
#[derive(Debug)]
struct Target {
    purpose: Purpose,
    /// Start and length, ascending.
    runs: Vec<(u64, u64)>,
    /// Where the copy before ends, if there was one, whether it was shared or not.
    end: Option<u64>,
}

impl Default for Btrfs {
    fn default() -> Self {
        Self {
            holders: Vec::new(),
            space: DataSpace::default(),
            new_chunks: 0,
            target: None,
            copies: Copier::default(),
            spare: Vec::new(),
            filler: None,
            map: ExtentMap::new(true),
            extents: Vec::new(),
        }
    }
}

impl Mechanism for Btrfs {
    fn acquire(&mut self, volume: &Volume) -> Result<(Runs, Runs), SnapshotError> {
        self.target = None;
        self.filler = None;
        // What is left of a batch that ended early.
        self.copies.clear();
        self.holders.retain(|holder| !holder.held.is_empty());
        if self.holders.len() >= HOLDERS_MAX {
            self.give_up(volume)?;
        }
        volume.commit()?;
        // What is held stays held: only what came free since the last time is added.
        let new_chunks = std::mem::take(&mut self.new_chunks);
        let (holder, space) = Holder::holding_free_space(volume, new_chunks)?;
        // A balance moves what is held as it moves any file.
        if !space.has_chunks_of(&self.space) {
            for holder in &mut self.holders {
                holder.held = Holder::places_of(volume, &holder.file, &space)?;
            }
        }
        self.space = space;
        self.holders.extend(holder);
        let held: Runs = self.held().collect();
        let mut free = held.clone();
        for run in &self.space.free {
            free.add_absent(run.physical_bytes, run.length_bytes);
        }
        Ok((held, free))
    }

    fn make_chunks(&mut self, volume: &Volume, bytes: u64) -> Result<u64, SnapshotError> {
        let before = chunk_space(volume.data_space()?);
        let Some(chunks) = before.new_chunks(bytes) else { return Ok(0) };
        let mut moved_bytes = 0;
        for chunk in &chunks.emptied {
            if !empty_chunk(volume, chunk.logical_bytes)? {
                break;
            }
            moved_bytes += node_bytes(chunk);
        }
        // What an emptied chunk had is free from the next commit on.
        volume.commit()?;
        let after = chunk_space(volume.data_space()?);
        self.new_chunks = after.runs(&after.unallocated, before.left_bytes(), bytes).len();
        Ok(moved_bytes)
    }

    fn prepare(
        &mut self,
        volume: &Volume,
        mut moves: Vec<Move>,
        purpose: Purpose,
    ) -> Result<Vec<Move>, SnapshotError> {
        match purpose {
            // The kernel fills the longest run first: what is long comes before what is short.
            Purpose::Evacuate => moves.sort_by_key(|step| std::cmp::Reverse(step.length_bytes)),
            // It goes through its block groups by address, in each of which there is one run.
            Purpose::Lay => moves.sort_by_key(|step| self.space.address(step.physical_bytes)),
        }
        let moves: Vec<Move> = moves.into_iter().flat_map(parts).collect();
        let all: Runs = self.held().collect();
        let runs = runs_of(&all, &moves);
        for holder in &mut self.holders {
            holder.let_free(volume, &runs)?;
        }
        volume.commit()?;
        self.filler = None;
        self.target = Some(Target { purpose, runs, end: None });
        Ok(moves)
    }

    fn look_ahead(&mut self, volume: &Volume, file: &OwnedFd, step: &Move, size_bytes: u64) {
        let data_bytes = step.length_bytes.min(size_bytes.saturating_sub(step.logical_bytes));
        // Only what is sure to lie well is worth it, so what fails is not told.
        let _ = self.fill_up(volume, step);
        let job = self.job(volume, file, step.logical_bytes, data_bytes);
        self.copies.begin(*step, job);
    }

    fn carry(&mut self, volume: &Volume, file: &OwnedFd, step: &Move, size_bytes: u64) -> Carried {
        let Some(written) = self.copies.take(step) else {
            return Carried::stopped(0, Fault::Taken);
        };
        let data_bytes = step.length_bytes.min(size_bytes.saturating_sub(step.logical_bytes));
        let shared = self.share(volume, file, step, &written, data_bytes);
        if let Ok(Some(donor)) = written {
            // Emptied it serves again, which costs less than another.
            if ftruncate(&donor, 0).is_ok() {
                self.spare.push(donor);
            }
        }
        match shared {
            Ok(places) => Carried { places, ..Carried::all(step) },
            Err(fault) => Carried::stopped(0, fault),
        }
    }

    fn release(&mut self, volume: &Volume) -> Result<(), SnapshotError> {
        self.copies.clear();
        self.spare.clear();
        self.filler = None;
        self.target = None;
        self.give_up(volume)
    }
}

impl Btrfs {
    /// The runs that are held, place and length.
    fn held(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.holders.iter().flat_map(|holder| places(&holder.held))
    }

    fn give_up(&mut self, volume: &Volume) -> Result<(), SnapshotError> {
        for holder in self.holders.drain(..) {
            ftruncate(&holder.file, 0).map_err(volume.failed("give up space on"))?;
        }
        Ok(())
    }

    /// Where `step` is the first that goes to its run: takes what is left over of the run before, if
    /// that was filled as it should be.
    fn fill_up(&mut self, volume: &Volume, step: &Move) -> Result<(), Errno> {
        let Some(target) = &self.target else { return Ok(()) };
        let run_of = |at: u64| {
            target.runs.iter().find(|(start, length)| (*start..start + length).contains(&at))
        };
        let Some(before) = self.copies.last_step() else { return Ok(()) };
        let run = run_of(before.physical_bytes);
        if target.purpose != Purpose::Lay || run == run_of(step.physical_bytes) {
            return Ok(());
        }
        let Some(Ok(Some(donor))) = self.copies.last() else { return Ok(()) };
        self.extents.clear();
        self.map.read(donor, &mut self.extents)?;
        if !self.space.place(&mut self.extents) {
            return Ok(());
        }
        let end = self.extents.last().map(|extent| extent.physical_bytes + extent.length_bytes);
        let (Some(end), Some((start, length))) = (end, run) else { return Ok(()) };
        let rest = (start + length).saturating_sub(end);
        if end <= *start || rest == 0 {
            return Ok(());
        }
        if self.filler.is_none() {
            self.filler = Some(volume.nameless()?);
        }
        if let Some(filler) = &self.filler {
            fallocate(filler, FallocateFlags::KEEP_SIZE, *start, rest)?;
        }
        Ok(())
    }

    /// To copy `bytes` of `file` from `from` on to a file without a name, behind a block that is not
    /// there: what begins a file and is short would go amid metadata.
    fn job(
        &mut self,
        volume: &Volume,
        file: &OwnedFd,
        from: u64,
        bytes: u64,
    ) -> Result<Job, Errno> {
        let donor = self.spare.pop().map_or_else(|| volume.nameless(), Ok)?;
        Ok(Job {
            file: fcntl_dupfd_cloexec(file, 0)?,
            from,
            bytes,
            donor,
            offset: volume.block_bytes(),
        })
    }

    /// Has `file` share its copy if that lies well; where it lies then.
    fn share(
        &mut self,
        volume: &Volume,
        file: &OwnedFd,
        step: &Move,
        written: &Written,
        data_bytes: u64,
    ) -> Result<Vec<Move>, Fault> {
        let donor = match written {
            Ok(Some(donor)) => donor,
            Ok(None) => return Err(Fault::Leave(Skip::Changed)),
            Err(Errno::NOSPC | Errno::DQUOT) => return Err(Fault::Taken),
            Err(why) => return Err(copying::fault(volume, *why)),
        };
        let target = self.target.as_mut().expect("a batch is prepared before files are moved");
        let extents = &mut self.extents;
        extents.clear();
        self.map.read(donor, extents).map_err(|why| copying::fault(volume, why))?;
        let special = ExtentFlags::ALL.0;
        if extents.iter().any(|extent| extent.flags.any(ExtentFlags(special))) {
            // Written compressed, as the file system is mounted, or not where it can be told.
            return Err(Fault::Leave(Skip::Refused));
        }
        if !self.space.place(extents) {
            return Err(Fault::Taken);
        }
        let block_bytes = volume.block_bytes();
        let landed: Vec<Piece> = extents
            .iter()
            .map(|extent| Piece {
                logical_bytes: step.logical_bytes + extent.logical_bytes - block_bytes,
                physical_bytes: extent.physical_bytes,
                length_bytes: extent.length_bytes,
            })
            .collect();
        let landed = joined(&landed);
        let bytes: u64 = landed.iter().map(|piece| piece.length_bytes).sum();
        if bytes != step.length_bytes {
            return Err(Fault::Leave(Skip::Refused));
        }
        let before = target.end;
        target.end = landed.last().map(|piece| piece.physical_bytes + piece.length_bytes);
        if target.purpose == Purpose::Lay && !lies_well(&landed, &target.runs, before) {
            return Err(Fault::Taken);
        }
        let from = step.logical_bytes;
        match copying::exchange(file, from, donor, block_bytes, data_bytes) {
            Ok(Copied::Shared) => {
                let place = |piece: &Piece| Move {
                    file: step.file,
                    logical_bytes: piece.logical_bytes,
                    length_bytes: piece.length_bytes,
                    physical_bytes: piece.physical_bytes,
                };
                Ok(landed.iter().map(place).collect())
            }
            Ok(Copied::Not(why)) => Err(Fault::Leave(why)),
            Err(why) => Err(copying::fault(volume, why)),
        }
    }
}

/// Empties the chunk of metadata at `logical_bytes`; whether that was possible.
///
/// What others have changed and not committed yet, be it only when files were read last, has many times
/// as much metadata reserved as it needs, and a chunk is emptied only into what is not reserved. So there is a
/// commit before each try.
fn empty_chunk(volume: &Volume, logical_bytes: u64) -> Result<bool, SnapshotError> {
    for wait in EMPTYING_WAITS {
        volume.commit()?;
        match volume.empty_chunk(logical_bytes) {
            Ok(()) => return Ok(true),
            Err(why @ (Errno::IO | Errno::ROFS)) => {
                return Err(volume.failed("balance metadata of")(why));
            }
            // There is no room by now, or another balance goes on.
            Err(Errno::NOSPC | Errno::INPROGRESS) => thread::sleep(wait),
            // It was ended by someone.
            Err(_) => break,
        }
    }
    Ok(false)
}

impl Holder {
    /// Holds what is free of the chunks of data, then of `new_chunks` that are made for it. `None` if
    /// nothing is free.
    fn holding_free_space(
        volume: &Volume,
        new_chunks: usize,
    ) -> Result<(Option<Self>, DataSpace), SnapshotError> {
        let mut space = volume.data_space()?;
        if space.free.is_empty() && new_chunks == 0 {
            return Ok((None, space));
        }
        let file = match volume.nameless() {
            Ok(file) => file,
            // So full that there is no room for an inode: nothing can be moved.
            Err(Errno::NOSPC | Errno::DQUOT) => return Ok((None, space)),
            Err(why) => return Err(volume.failed("make a file without a name on")(why)),
        };
        let mut at = hold_all(volume, &file, 0, &space)?;
        for _ in 0..new_chunks {
            // For what fits nowhere a chunk is made, of which more is free from the next commit on.
            match fallocate(&file, FallocateFlags::empty(), at, CHUNK_BYTES_MIN) {
                Ok(()) => at += CHUNK_BYTES_MIN,
                Err(Errno::INTR | Errno::NOSPC | Errno::DQUOT) => break,
                Err(why) => return Err(volume.failed("allocate space on")(why)),
            }
            volume.commit()?;
            space = volume.data_space()?;
            at = hold_all(volume, &file, at, &space)?;
        }
        // A chunk may have been made for what was there: block groups keep to extents of a class of lengths.
        let space = volume.data_space()?;
        let held = Self::places_of(volume, &file, &space)?;
        Ok(((!held.is_empty()).then_some(Self { file, held }), space))
    }

    /// What `file` holds, as `space` has it: ascending by place on the device.
    fn places_of(
        volume: &Volume,
        file: &OwnedFd,
        space: &DataSpace,
    ) -> Result<Vec<Extent>, SnapshotError> {
        let mut held = Vec::new();
        ExtentMap::new(true).read(file, &mut held).map_err(volume.failed("map a file of"))?;
        held.retain_mut(|extent| space.place(std::slice::from_mut(extent)));
        held.sort_unstable_by_key(|extent| extent.physical_bytes);
        Ok(held)
    }

    /// Gives up what it holds of `runs`, which is free from the next commit on.
    fn let_free(&mut self, volume: &Volume, runs: &[(u64, u64)]) -> Result<(), SnapshotError> {
        let punch = FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);
        for &(start, length) in runs {
            let first = self.held.partition_point(|extent| extent.physical_bytes < start);
            let behind = self.held.partition_point(|held| held.physical_bytes < start + length);
            for extent in &self.held[first..behind] {
                fallocate(&self.file, punch, extent.logical_bytes, extent.length_bytes)
                    .map_err(volume.failed("give up space on"))?;
            }
            self.held.drain(first..behind);
        }
        Ok(())
    }
}

/// Has `file` hold what is free in `space` from its byte `at` on, the longest runs first: each is asked for
/// as long as it is, so that no chunk is made for it. Gives where it ends.
fn hold_all(
    volume: &Volume,
    file: &OwnedFd,
    mut at: u64,
    space: &DataSpace,
) -> Result<u64, SnapshotError> {
    let block_bytes = volume.block_bytes();
    let mut lengths: Vec<u64> = space.free.iter().map(|run| run.length_bytes).collect();
    lengths.sort_unstable_by(|one, other| other.cmp(one));
    let mut left = volume.free_bytes()?;
    for length in lengths {
        let mut rest = length.min(left) / block_bytes * block_bytes;
        while rest > 0 {
            let part = rest.min(EXTENT_BYTES_MAX);
            match fallocate(file, FallocateFlags::empty(), at, part) {
                Ok(()) => {
                    at += part;
                    left -= part;
                    rest -= part;
                }
                Err(Errno::INTR) => {}
                // Others took some of it.
                Err(Errno::NOSPC | Errno::DQUOT) if part > block_bytes => break,
                Err(Errno::NOSPC | Errno::DQUOT) => return Ok(at),
                Err(why) => return Err(volume.failed("allocate space on")(why)),
            }
        }
    }
    Ok(at)
}

fn places(held: &[Extent]) -> impl Iterator<Item = (u64, u64)> + '_ {
    held.iter().map(|extent| (extent.physical_bytes, extent.length_bytes))
}

/// A move in parts that are copied, written and compared in turns.
fn parts(step: Move) -> impl Iterator<Item = Move> {
    (0..step.length_bytes).step_by(copying::PIECE_BYTES as usize).map(move |from| Move {
        logical_bytes: step.logical_bytes + from,
        length_bytes: (step.length_bytes - from).min(copying::PIECE_BYTES),
        physical_bytes: step.physical_bytes + from,
        ..step
    })
}

/// The runs of `all` that `moves` go to, ascending.
fn runs_of(all: &Runs, moves: &[Move]) -> Vec<(u64, u64)> {
    let mut starts: Vec<u64> = moves.iter().map(|step| step.physical_bytes).collect();
    starts.sort_unstable();
    let mut runs = Vec::new();
    let mut starts = starts.into_iter().peekable();
    for (start, length) in all.iter() {
        let mut wanted = false;
        while starts.next_if(|at| *at < start + length).is_some() {
            wanted = true;
        }
        if wanted {
            runs.push((start, length));
        }
    }
    runs
}

/// Whether what came to lie as `landed` is of one piece and within one of `runs`, or else goes on
/// where the copy before ended, or is the first: the kernel prefers block groups whose extents are
/// about as long, and makes a chunk rather than mix them, so that a batch may go elsewhere as a whole.
/// What begins a place elsewhere is not taken, but what follows it there is: one of many is lost. What is
/// as long as a stretch need be lies well anywhere.
fn lies_well(landed: &[Piece], runs: &[(u64, u64)], end: Option<u64>) -> bool {
    let [piece] = landed else { return false };
    piece.length_bytes >= LONG_STRETCH_BYTES
        || end.is_none_or(|end| end == piece.physical_bytes)
        || runs.iter().any(|&(start, length)| {
            start <= piece.physical_bytes
                && piece.physical_bytes + piece.length_bytes <= start + length
        })
}

#[cfg(test)]
mod tests {
    use super::{Move, Piece, Runs, lies_well, parts, runs_of};

    fn piece(physical_bytes: u64, length_bytes: u64) -> Piece {
        Piece { logical_bytes: 0, physical_bytes, length_bytes }
    }

    /// One piece, all of it in what was let free.
    #[test]
    fn what_lies_well() {
        let runs = [(100, 50), (300, 50)];
        assert!(lies_well(&[piece(100, 50)], &runs, Some(7)));
        assert!(lies_well(&[piece(310, 40)], &runs, Some(7)));
        assert!(!lies_well(&[piece(310, 41)], &runs, Some(7)));
        assert!(!lies_well(&[piece(200, 10)], &runs, Some(7)));
        assert!(!lies_well(&[piece(100, 10), piece(300, 10)], &runs, Some(7)));
        assert!(!lies_well(&[], &runs, Some(7)));
        // The first, and what goes on from it; not what lies anywhere else.
        assert!(lies_well(&[piece(200, 10)], &runs, None));
        assert!(lies_well(&[piece(210, 10)], &runs, Some(210)));
        assert!(!lies_well(&[piece(220, 10)], &runs, Some(210)));
        assert!(lies_well(&[piece(220, super::LONG_STRETCH_BYTES)], &runs, Some(210)));
    }

    /// All of a move, in order, in parts that the kernel compares at once.
    #[test]
    fn a_long_move_is_made_in_parts() {
        let step =
            Move { file: 3, logical_bytes: 4096, length_bytes: 40 << 20, physical_bytes: 1 << 30 };
        let parts: Vec<Move> = parts(step).collect();
        assert_eq!(
            parts.iter().map(|part| part.length_bytes >> 20).collect::<Vec<_>>(),
            [16, 16, 8]
        );
        let (mut logical_bytes, mut physical_bytes) = (step.logical_bytes, step.physical_bytes);
        for part in parts {
            assert_eq!(part, Move { logical_bytes, physical_bytes, ..part });
            logical_bytes += part.length_bytes;
            physical_bytes += part.length_bytes;
        }
    }

    /// Each run once, and only those that something goes to.
    #[test]
    fn runs_that_are_let_free() {
        let all: Runs = [(0, 100), (200, 100), (400, 100)].into_iter().collect();
        let to =
            |physical_bytes| Move { file: 0, logical_bytes: 0, length_bytes: 10, physical_bytes };
        assert_eq!(runs_of(&all, &[to(490), to(10), to(0)]), [(0, 100), (400, 100)]);
        assert_eq!(runs_of(&all, &[]), []);
    }
}
