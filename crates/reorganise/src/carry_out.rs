//! Carries a plan out: batch after batch of moves, each into free space that is held for it.
//!
//! A file is moved only if it is what the plan saw: number, birth, change time, length and extents.
//! It may end after any move; what is done is done, and the next plan sees it.

use std::collections::VecDeque;
use std::ffi::CString;
use std::time::Duration;

use agewell_snapshot::source::live::{DataSpace, ExtentMap};
use agewell_snapshot::{Extent, ExtentFlags, SnapshotError};
use rustix::fd::OwnedFd;
use serde::Serialize;

use crate::arranger::{Arranger, Move, Piece, Purpose};
use crate::file_system::FileSystem;
use crate::kernel;
use crate::mechanism::{self, AHEAD_BYTES, Carried, Fault};
use crate::pace::{Clock, Pace, wait_part};
use crate::plan::Plan;
use crate::planned_file::{cut, first_of_file, within};
use crate::skip::{Skip, SkipCounts};
use crate::volume::Volume;

/// Times that a place taken by others is looked for elsewhere; chosen by us.
const RETRIES_MAX: u8 = 3;

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Bytes moved.
    pub moved_bytes: u64,
    /// Bytes to be moved in all, as planned.
    pub planned_bytes: u64,
    /// Files in place.
    pub files: u64,
    /// Since it began.
    pub elapsed: Duration,
}

/// Called before each move; an error ends the work between two moves and is handed on.
pub type Step<'a> = dyn FnMut(&Progress) -> Result<(), SnapshotError> + 'a;

/// What was done.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Done {
    /// Files in place that were moved.
    pub files: u64,
    /// Bytes moved, with what made room.
    pub moved_bytes: u64,
    /// Of them, to make room.
    pub evacuated_bytes: u64,
    /// Files left as they were, and their bytes, by reason.
    pub left: SkipCounts,
    /// Files for which there was no time or no room.
    pub remaining: u64,
    /// Whether the time was over.
    pub out_of_time: bool,
    /// How long it took, s.
    pub seconds: f64,
}

/// Moves the files of `plan`; `step` is told before each move and may end it.
///
/// # Errors
/// If the file system fails, or `step` does. What was moved until then stays moved.
pub fn carry_out(
    volume: &Volume,
    plan: &Plan,
    pace: Pace,
    step: &mut Step<'_>,
) -> Result<Done, SnapshotError> {
    // Where it cannot be had the work goes on all the same.
    let _ = kernel::be_last();
    let mut work = Work::new(volume, plan, pace);
    let mut mechanism = mechanism::of(volume.file_system());
    let result = work.run(&mut *mechanism, step);
    let released = mechanism.release(volume);
    result?;
    released?;
    volume.commit()?;
    Ok(work.told())
}

/// Files that are opened, and what is read of them, ahead of their moves: so that the disk always has
/// something to do. Chosen by us: some tenths of a second of small reads, or of one large one.
const AHEAD_FILES: usize = 128;

/// Of them, moves that the mechanism has begun: half, so that the disk has time to read the others.
const BEGUN_MOVES: usize = AHEAD_FILES / 2;
const BEGUN_BYTES: u64 = AHEAD_BYTES / 2;

/// A longer wait for the next move is a pause; chosen by us: longer than a commit mostly takes.
const PAUSE: Duration = Duration::from_millis(20);

/// The files of the moves that are next.
#[derive(Default)]
struct Ahead {
    /// One for each change of the file in the order of moves; the first is that of the move at hand.
    files: VecDeque<(u32, Result<OwnedFd, Skip>)>,
    /// Moves that have been looked at.
    moves: usize,
    /// Bytes being read for those that are not carried out yet.
    bytes: u64,
    /// Of the moves that have been looked at, those that the mechanism has begun.
    begun: usize,
    /// Bytes of those that are begun and not carried out yet.
    begun_bytes: u64,
    /// Which of `files` is that of the move begun last.
    begun_file: usize,
}

struct Work<'a> {
    volume: &'a Volume,
    plan: &'a Plan,
    arranger: Arranger,
    clock: Clock,
    done: Done,
    /// The first of the plan that is of the same file.
    first_of_file: Vec<u32>,
    laid: Vec<bool>,
    /// Parts of each file that are laid, by the first of them.
    laid_parts: Vec<u32>,
    laid_files: u64,
    /// By the first of each file.
    is_left: Vec<bool>,
    retries: Vec<u8>,
    map: ExtentMap,
    extents: Vec<Extent>,
    /// On btrfs: where its addresses are on the device.
    space: Option<DataSpace>,
}

impl<'a> Work<'a> {
    fn new(volume: &'a Volume, plan: &'a Plan, pace: Pace) -> Self {
        let stays: Vec<bool> = plan.files.iter().map(|file| file.stays).collect();
        let pieces = plan.files.iter().map(|file| file.pieces.clone()).collect();
        Self {
            volume,
            plan,
            arranger: Arranger::new(pieces, &stays, plan.limits, plan.block_bytes),
            clock: Clock::new(pace),
            done: Done::default(),
            first_of_file: first_of_file(&plan.files),
            laid: vec![false; stays.len()],
            laid_parts: vec![0; stays.len()],
            laid_files: 0,
            is_left: vec![false; stays.len()],
            retries: vec![0; stays.len()],
            map: ExtentMap::new(false),
            extents: Vec::new(),
            space: None,
        }
    }

    fn run(
        &mut self,
        mechanism: &mut dyn mechanism::Mechanism,
        step: &mut Step<'_>,
    ) -> Result<(), SnapshotError> {
        if self.plan.new_chunk_bytes > 0 && self.arranger.waiting_bytes() > 0 {
            self.wait(mechanism, step)?;
            let node_bytes = mechanism.make_chunks(self.volume, self.plan.new_chunk_bytes)?;
            self.done.moved_bytes += node_bytes;
            self.done.evacuated_bytes += node_bytes;
        }
        while self.arranger.waiting_bytes() > 0 {
            let (held, free) = mechanism.acquire(self.volume)?;
            if self.volume.file_system() == FileSystem::Btrfs {
                let space = self.volume.data_space()?;
                self.arranger.divide(space.regions());
                self.space = Some(space);
            }
            let (purpose, moves) = self.arranger.next_batch(&held, &free);
            if moves.is_empty() {
                return Ok(());
            }
            let mut moves = moves;
            if !self.plan.limits.makes_room && !self.plan.limits.one_run {
                // Inodes that share a block are changed one after another, so that it is written once,
                // and not again with every commit of the kernel's own.
                moves.sort_by_key(|step| self.plan.files[step.file as usize].identity.inode);
            }
            let moves = mechanism.prepare(self.volume, moves, purpose)?;
            let mut ahead = Ahead::default();
            let mut again = Vec::new();
            for (number, next) in moves.iter().enumerate() {
                if self.clock.is_over() {
                    self.done.out_of_time = true;
                    return Ok(());
                }
                self.wait(mechanism, step)?;
                self.look_ahead(mechanism, &moves, number, &mut ahead);
                self.carry(mechanism, next, purpose, &mut ahead, &mut again)?;
            }
            again.sort_unstable();
            again.dedup();
            for number in again.into_iter().rev() {
                let tries = &mut self.retries[number as usize];
                *tries += 1;
                if *tries > RETRIES_MAX {
                    self.leave(number, Skip::NoRoom);
                } else {
                    self.arranger.retry(number);
                    self.set_laid(number, false);
                }
            }
        }
        Ok(())
    }

    /// Tells how far it has come, and waits until the next move is due.
    fn wait(
        &mut self,
        mechanism: &mut dyn mechanism::Mechanism,
        step: &mut Step<'_>,
    ) -> Result<(), SnapshotError> {
        loop {
            step(&Progress {
                moved_bytes: self.done.moved_bytes,
                planned_bytes: self.plan.work.moved_bytes,
                files: self.laid_files,
                elapsed: self.clock.elapsed(),
            })?;
            let wait = self.clock.due_in(self.done.moved_bytes);
            if wait.is_zero() || self.clock.is_over() {
                return Ok(());
            }
            if wait >= PAUSE {
                mechanism.pause(self.volume)?;
            }
            wait_part(wait);
        }
    }

    /// Opens the files of the moves from `at` on, and has their data read; begins those that are next.
    fn look_ahead(
        &mut self,
        mechanism: &mut dyn mechanism::Mechanism,
        moves: &[Move],
        at: usize,
        ahead: &mut Ahead,
    ) {
        while let Some(next) = moves.get(ahead.moves) {
            let full = ahead.files.len() >= AHEAD_FILES || ahead.bytes >= AHEAD_BYTES;
            // The next one always, however long: it is read, or written, while this one is carried out.
            if full && ahead.moves > at + 1 {
                break;
            }
            if ahead.files.back().is_none_or(|(number, _)| *number != next.file) {
                let opened = self.open(next.file);
                ahead.files.push_back((next.file, opened));
            }
            if let Some((_, Ok(file))) = ahead.files.back() {
                let bytes = next.length_bytes.min(AHEAD_BYTES);
                mechanism::read_ahead(file, next.logical_bytes, bytes);
            }
            ahead.bytes += next.length_bytes;
            ahead.moves += 1;
        }
        while ahead.begun < ahead.moves {
            let next = &moves[ahead.begun];
            let full = ahead.begun >= at + BEGUN_MOVES
                || ahead.begun_bytes + next.length_bytes > BEGUN_BYTES;
            if full && ahead.begun > at + 1 {
                break;
            }
            if ahead.files[ahead.begun_file].0 != next.file {
                ahead.begun_file += 1;
            }
            if let (_, Ok(file)) = &ahead.files[ahead.begun_file] {
                let size_bytes = self.plan.files[next.file as usize].identity.size_bytes;
                mechanism.look_ahead(self.volume, file, next, size_bytes);
            }
            ahead.begun += 1;
            ahead.begun_bytes += next.length_bytes;
        }
    }

    fn carry(
        &mut self,
        mechanism: &mut dyn mechanism::Mechanism,
        next: &Move,
        purpose: Purpose,
        ahead: &mut Ahead,
        again: &mut Vec<u32>,
    ) -> Result<(), SnapshotError> {
        ahead.bytes -= next.length_bytes;
        ahead.begun_bytes -= next.length_bytes;
        while ahead.files.front().is_some_and(|(number, _)| *number != next.file) {
            ahead.files.pop_front();
            ahead.begun_file -= 1;
        }
        let file = match ahead.files.front() {
            Some((_, Ok(file))) => file,
            Some((_, Err(why))) => {
                let why = *why;
                self.leave(next.file, why);
                return Ok(());
            }
            None => unreachable!("the file of this move was opened before it"),
        };
        let size_bytes = self.plan.files[next.file as usize].identity.size_bytes;
        let carried = mechanism.carry(self.volume, file, next, size_bytes);
        let Carried { bytes, fault, places } = carried;
        for place in &places {
            self.arranger.moved(place);
        }
        if bytes > 0 {
            if places.is_empty() {
                self.arranger.moved(&Move { length_bytes: bytes, ..*next });
            }
            self.done.moved_bytes += bytes;
            self.done.evacuated_bytes += if purpose == Purpose::Evacuate { bytes } else { 0 };
        }
        match fault {
            None if purpose == Purpose::Lay && !self.is_left(next.file) => {
                self.set_laid(next.file, true);
            }
            Some(Fault::Leave(why)) => self.leave(next.file, why),
            Some(Fault::Taken) if purpose == Purpose::Lay => again.push(next.file),
            Some(Fault::Stop(why)) => return Err(why),
            None | Some(Fault::Taken) => {}
        }
        Ok(())
    }

    /// Opens a file if it is what the plan saw and lies where it is thought to.
    fn open(&mut self, number: u32) -> Result<OwnedFd, Skip> {
        let planned = &self.plan.files[number as usize];
        let path = CString::new(planned.path.clone()).map_err(|_| Skip::Vanished)?;
        let write = self.volume.file_system() == FileSystem::Ext4;
        let file = self.volume.open_file(&path, &planned.identity, write)?;
        self.extents.clear();
        self.map.read(&file, &mut self.extents).map_err(|_| Skip::Unreadable)?;
        if let Some(space) = &self.space
            && !space.place(&mut self.extents)
        {
            return Err(Skip::Changed);
        }
        let special = ExtentFlags::ALL.0 & !ExtentFlags::UNWRITTEN.0;
        let size_bytes = planned.identity.size_bytes;
        let all = within(None, size_bytes, self.plan.block_bytes);
        let range = within(planned.range, size_bytes, self.plan.block_bytes);
        let found: Vec<Piece> =
            self.extents.iter().filter_map(|extent| cut(extent, range)).collect();
        let plain = self
            .extents
            .iter()
            .filter(|extent| extent.logical_bytes < all.to_bytes)
            .all(|extent| !extent.flags.any(ExtentFlags(special)));
        if !plain || crate::arranger::joined(&found) != self.arranger.pieces(number) {
            return Err(Skip::Changed);
        }
        Ok(file)
    }

    /// The file, or part of one, stays as it is; files are counted once.
    fn leave(&mut self, number: u32, why: Skip) {
        self.arranger.leave(number);
        self.set_laid(number, false);
        let file = self.first_of_file[number as usize] as usize;
        if !std::mem::replace(&mut self.is_left[file], true) {
            let count = self.done.left.entry(why).or_default();
            *count = (count.0 + 1, count.1 + self.plan.files[file].identity.size_bytes);
        }
    }

    fn is_left(&self, number: u32) -> bool {
        self.is_left[self.first_of_file[number as usize] as usize]
    }

    /// Whether `number` is laid from now on. A file in parts counts as laid if one of them is.
    fn set_laid(&mut self, number: u32, laid: bool) {
        let before = std::mem::replace(&mut self.laid[number as usize], laid);
        let parts = &mut self.laid_parts[self.first_of_file[number as usize] as usize];
        match (before, laid) {
            (false, true) => {
                *parts += 1;
                self.laid_files += u64::from(*parts == 1);
            }
            (true, false) => {
                *parts -= 1;
                self.laid_files -= u64::from(*parts == 0);
            }
            _ => {}
        }
    }

    fn told(mut self) -> Done {
        self.done.files = self.laid_files;
        self.done.remaining = self.arranger.waiting_files();
        self.done.seconds = self.clock.elapsed().as_secs_f64();
        self.done
    }
}
