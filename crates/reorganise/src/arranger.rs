//! Where files go: which of them next, and into which of what is free. Plain functions of values.
//!
//! Files are laid one behind another in a given order, in *stretches*: what fits into one run of
//! free space. The longest run is filled first. What a file leaves is free from the next batch on,
//! so that runs grow as the work goes on. Where even the longest run is too short to be worth a
//! stretch, a window of the device is *evacuated*: what is left of files there goes into holes
//! elsewhere, and the window becomes a run. Files that were evacuated are moved again in their turn,
//! so it costs bytes; it is done only where nothing else is left to do.
//!
//! Invariants: a target is free when its batch is made, no two targets of a batch overlap, and what a
//! batch frees is not a target of the same batch. So the moves of a batch may be carried out in any
//! order, and if the machine stops none has been written over what another still needs.
//!
//! Cost: logarithmic for each move; an evacuation sorts all pieces.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::runs::Runs;

/// Bytes of a file that lie side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Where in the file, bytes.
    pub logical_bytes: u64,
    /// Where on the device, bytes.
    pub physical_bytes: u64,
    /// How much, whole blocks.
    pub length_bytes: u64,
}

impl Piece {
    pub(crate) fn end_bytes(&self) -> u64 {
        self.physical_bytes + self.length_bytes
    }
}

/// A part of a file and where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// Which file, by its number in the arranger.
    pub file: u32,
    /// From where in the file, bytes.
    pub logical_bytes: u64,
    /// How much, bytes.
    pub length_bytes: u64,
    /// To where on the device, bytes.
    pub physical_bytes: u64,
}

/// A stretch so long is read as well as any: a disk of today moves 150 to 200 MB a second and takes 12 ms
/// to a place nearby, so that of the time of reading a break so often costs a tenth. Chosen by us.
pub(crate) const LONG_STRETCH_BYTES: u64 = 16 << 20;

/// What the arranger goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Room is first made for stretches of this length, bytes.
    pub longest_bytes: u64,
    /// A file is divided between stretches only if it is twice as long, bytes.
    pub divided_bytes: u64,
    /// Shorter stretches are not worth moving files to, bytes.
    pub shortest_bytes: u64,
    /// Bytes moved between two commits.
    pub batch_bytes: u64,
    /// Whether a batch of files that come to their place goes to one run only of each region.
    #[serde(default)]
    pub one_run: bool,
    /// Whether room is made. Else files go to what is free as it is, and those for which no run is
    /// long enough stay.
    #[serde(default = "made")]
    pub makes_room: bool,
}

/// Plans of earlier versions made room.
fn made() -> bool {
    true
}

impl Default for Limits {
    /// Of the time of reading ([`LONG_STRETCH_BYTES`]), a break every 4 MiB costs a third, and one every
    /// 256 KiB, where nothing better can be had, is still a fifth of one for each small file. 64 MiB
    /// between commits are a third of a second of such a disk. Chosen by us.
    fn default() -> Self {
        Self {
            longest_bytes: LONG_STRETCH_BYTES,
            divided_bytes: 4 << 20,
            shortest_bytes: 256 << 10,
            batch_bytes: 64 << 20,
            one_run: false,
            makes_room: true,
        }
    }
}

impl Limits {
    /// Lengths of stretches that are tried, the longest first. The longest run is always filled
    /// first, so that where no room is made it is enough to know when to end.
    fn levels(self) -> impl Iterator<Item = u64> {
        let first = match (self.makes_room, self.one_run) {
            (true, _) => self.longest_bytes,
            // Each run is a batch of its own, with a commit.
            (false, true) => self.shortest_bytes,
            (false, false) => AS_IS_BYTES,
        };
        let last = self.shortest_bytes.min(first);
        let shorter = move |level: &u64| (*level > last).then_some(level / 4);
        std::iter::successors(Some(first), shorter).map(move |level| level.max(last))
    }
}

/// The shortest run that is filled where no room is made, bytes: of four files of a block each three
/// are spared a way; chosen by us.
const AS_IS_BYTES: u64 = 16 << 10;

/// What a batch is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Files come to their place.
    Lay,
    /// Room is made.
    Evacuate,
}

#[derive(Debug, Clone)]
struct File {
    pieces: Vec<Piece>,
    /// Bytes from the front that are in place.
    placed_bytes: u64,
    /// Whether it waits to be laid; else it stays.
    waits: bool,
}

impl File {
    fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.length_bytes).sum()
    }
}

/// Chooses places for files.
#[derive(Debug, Clone)]
pub struct Arranger {
    files: Vec<File>,
    queue: VecDeque<u32>,
    limits: Limits,
    block_bytes: u64,
    /// Bytes of all files that wait, without what is in place.
    waiting_bytes: u64,
    /// Lengths of the stretches for which room was made since a file was last laid.
    evacuated: Vec<u64>,
    /// Where regions of the device begin, ascending; without any all of it is one.
    regions: Vec<u64>,
}

impl Arranger {
    /// For files in the order in which they are to lie, each by its pieces; those of `stays` are
    /// not moved.
    ///
    /// # Panics
    /// If pieces are not whole blocks.
    #[must_use]
    pub fn new(files: Vec<Vec<Piece>>, stays: &[bool], limits: Limits, block_bytes: u64) -> Self {
        let whole = |piece: &Piece| piece.length_bytes.is_multiple_of(block_bytes);
        assert!(files.iter().flatten().all(whole), "pieces are whole blocks");
        let files: Vec<File> = files
            .into_iter()
            .zip(stays)
            .map(|(pieces, stays)| {
                let waits = !stays && !pieces.is_empty();
                File { pieces, placed_bytes: 0, waits }
            })
            .collect();
        let queue = (0..files.len() as u32).filter(|file| files[*file as usize].waits).collect();
        let waiting_bytes = files.iter().filter(|file| file.waits).map(File::bytes).sum();
        Self {
            files,
            queue,
            limits,
            block_bytes,
            waiting_bytes,
            evacuated: Vec::new(),
            regions: Vec::new(),
        }
    }

    /// From now on the device has regions that begin at `starts`, ascending.
    pub fn divide(&mut self, starts: Vec<u64>) {
        self.regions = starts;
    }

    /// Bytes that are not in place yet.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Where file `file` lies now.
    #[must_use]
    pub fn pieces(&self, file: u32) -> &[Piece] {
        &self.files[file as usize].pieces
    }

    /// The next moves into what is `held`, of all that is `free`; none if nothing more can be done.
    pub fn next_batch(&mut self, held: &Runs, free: &Runs) -> (Purpose, Vec<Move>) {
        self.queue.retain(|file| self.files[*file as usize].waits);
        let longest = held.longest().map_or(0, |run| run.1);
        let segments = if self.queue.is_empty() { Vec::new() } else { self.segments(free) };
        for level in self.limits.levels() {
            if self.queue.is_empty() {
                break;
            }
            if longest >= level.min(self.waiting_bytes) {
                let moves = self.lay(&mut held.clone(), level);
                if !moves.is_empty() {
                    self.evacuated.clear();
                    return (Purpose::Lay, moves);
                }
            }
            let made = self.evacuated.iter().filter(|made| **made == level).count();
            if !self.limits.makes_room || made >= EVACUATIONS_MAX {
                continue;
            }
            let moves = self.evacuate(&segments, &mut held.clone(), level);
            if !moves.is_empty() {
                self.evacuated.push(level);
                return (Purpose::Evacuate, moves);
            }
        }
        (Purpose::Lay, Vec::new())
    }

    /// Fills the longest runs, those of `level` bytes or more, with the files that are next.
    fn lay(&mut self, held: &mut Runs, level: u64) -> Vec<Move> {
        let mut moves = Vec::new();
        let mut bytes = 0;
        // Less than that is left for the next batch, so that no file is divided for a commit.
        let least = level.min(self.limits.divided_bytes).min(self.limits.batch_bytes);
        while bytes + least <= self.limits.batch_bytes {
            let Some((start, length)) = held.longest() else { break };
            if self.queue.is_empty() || length < level.min(self.waiting_bytes) {
                break;
            }
            let room = length.min(self.limits.batch_bytes - bytes);
            let used = self.fill(start, room, &mut moves);
            if used == 0 {
                break;
            }
            held.take(start, used);
            bytes += used;
            if self.limits.one_run {
                let (from, to) = self.region_of(start);
                held.take_within(from, to);
            }
        }
        moves
    }

    /// From where to where the region goes that `place` is in.
    fn region_of(&self, place: u64) -> (u64, u64) {
        let next = self.regions.partition_point(|start| *start <= place);
        let from = next.checked_sub(1).map_or(0, |region| self.regions[region]);
        (from, self.regions.get(next).copied().unwrap_or(u64::MAX))
    }

    /// Lays files from `start` on in `room` bytes; how many it took.
    fn fill(&mut self, start: u64, room: u64, moves: &mut Vec<Move>) -> u64 {
        let mut used = 0;
        while let Some(&number) = self.queue.front() {
            let file = &self.files[number as usize];
            let rest = file.bytes() - file.placed_bytes;
            let left = room - used;
            // What has the run for itself and does not fit is divided, as is what is long.
            let divides = left >= self.limits.divided_bytes
                && rest >= self.limits.divided_bytes.saturating_mul(2);
            let take = if rest <= left {
                rest
            } else if !self.limits.makes_room && !divides && used == 0 {
                // No run is longer: it waits for room to the end.
                self.queue.pop_front();
                continue;
            } else if divides || used == 0 {
                left / self.block_bytes * self.block_bytes
            } else {
                break;
            };
            if take == 0 {
                break;
            }
            push_moves(file, number, take, start + used, moves);
            used += take;
            self.files[number as usize].placed_bytes += take;
            self.waiting_bytes -= take;
            if take == rest {
                self.queue.pop_front();
                self.files[number as usize].waits = false;
            }
        }
        used
    }

    /// Moves the files out of the windows of `level` bytes that are emptiest.
    fn evacuate(&mut self, segments: &[Segment], held: &mut Runs, level: u64) -> Vec<Move> {
        let mut moves = Vec::new();
        let mut bytes = 0;
        let mut windows: Vec<(u64, u64)> = Vec::new();
        for (from, to) in emptiest_windows(segments, level) {
            if windows.iter().any(|(start, end)| from < *end && *start < to) {
                continue;
            }
            windows.push((from, to));
            let outside = |at: u64| !windows.iter().any(|(start, end)| *start <= at && at < *end);
            let mut taken: Vec<Move> = Vec::new();
            let first = segments.partition_point(|segment| segment.start < from);
            let within = segments[first..].iter().take_while(|segment| segment.start < to);
            let mut rest: Vec<(u32, Piece)> = within.filter_map(|segment| segment.piece).collect();
            while let Some((file, mut piece)) = rest.pop() {
                let fits = held.best_fit(piece.length_bytes, outside);
                let Some((start, length)) = fits.or_else(|| held.longest_of(outside)) else {
                    break;
                };
                let length = length.min(piece.length_bytes);
                held.take(start, length);
                taken.push(Move {
                    file,
                    logical_bytes: piece.logical_bytes,
                    length_bytes: length,
                    physical_bytes: start,
                });
                piece.logical_bytes += length;
                piece.physical_bytes += length;
                piece.length_bytes -= length;
                if piece.length_bytes > 0 {
                    rest.push((file, piece));
                }
            }
            if !rest.is_empty() {
                // There is no room for all of it, so that nothing would come of it.
                for step in &taken {
                    held.add(step.physical_bytes, step.length_bytes);
                }
                windows.pop();
                break;
            }
            bytes += taken.iter().map(|step| step.length_bytes).sum::<u64>();
            moves.append(&mut taken);
            if bytes >= self.limits.batch_bytes / 2 {
                break;
            }
        }
        moves
    }

    /// What is free or can be moved, ascending by place.
    fn segments(&self, free: &Runs) -> Vec<Segment> {
        let mut segments: Vec<Segment> =
            free.iter().map(|(start, length)| Segment { start, length, piece: None }).collect();
        for number in &self.queue {
            let file = &self.files[*number as usize];
            if file.placed_bytes > 0 {
                continue;
            }
            segments.extend(file.pieces.iter().map(|piece| Segment {
                start: piece.physical_bytes,
                length: piece.length_bytes,
                piece: Some((*number, *piece)),
            }));
        }
        segments.sort_unstable_by_key(|segment| segment.start);
        segments
    }

    /// `done` was carried out: the file lies there now. Gives what it left, place and length.
    pub fn moved(&mut self, done: &Move) -> Vec<(u64, u64)> {
        let file = &mut self.files[done.file as usize];
        let mut left = Vec::new();
        let (from, to) = (done.logical_bytes, done.logical_bytes + done.length_bytes);
        let mut pieces = Vec::with_capacity(file.pieces.len() + 2);
        for piece in &file.pieces {
            let (start, end) = (piece.logical_bytes, piece.logical_bytes + piece.length_bytes);
            let (cut, stop) = (from.clamp(start, end), to.clamp(start, end));
            if cut >= stop {
                pieces.push(*piece);
                continue;
            }
            let part = |first: u64, last: u64, physical_bytes: u64| Piece {
                logical_bytes: first,
                physical_bytes,
                length_bytes: last - first,
            };
            let at = piece.physical_bytes;
            pieces.push(part(start, cut, at));
            pieces.push(part(cut, stop, done.physical_bytes + (cut - from)));
            pieces.push(part(stop, end, at + (stop - start)));
            left.push((at + (cut - start), stop - cut));
        }
        pieces.retain(|piece| piece.length_bytes > 0);
        file.pieces = joined(&pieces);
        left
    }

    /// File `number` could not be moved: it stays as it lies. Gives whether it waited.
    pub fn leave(&mut self, number: u32) -> bool {
        let file = &mut self.files[number as usize];
        let waited = std::mem::replace(&mut file.waits, false);
        if waited {
            self.waiting_bytes -= file.bytes() - file.placed_bytes;
        }
        waited
    }

    /// Files that wait to be laid.
    #[must_use]
    pub fn waiting_files(&self) -> u64 {
        self.files.iter().filter(|file| file.waits).count() as u64
    }

    /// File `number` was laid in this batch, but its place was taken meanwhile: it waits again,
    /// before all others.
    pub fn retry(&mut self, number: u32) {
        let file = &mut self.files[number as usize];
        let bytes = file.bytes();
        self.waiting_bytes += if file.waits { file.placed_bytes } else { bytes };
        file.placed_bytes = 0;
        if !file.waits {
            file.waits = true;
            self.queue.push_front(number);
        }
    }
}

/// Evacuations in a row for the same stretch after which nothing is expected of another; chosen by us.
const EVACUATIONS_MAX: usize = 2;

/// The moves that bring `take` bytes of `file`, behind what is in place, to `physical_bytes`.
fn push_moves(file: &File, number: u32, take: u64, physical_bytes: u64, moves: &mut Vec<Move>) {
    let (mut skip, mut take, mut to) = (file.placed_bytes, take, physical_bytes);
    for piece in &file.pieces {
        let over = skip.min(piece.length_bytes);
        skip -= over;
        let length = (piece.length_bytes - over).min(take);
        if length > 0 {
            let logical_bytes = piece.logical_bytes + over;
            match moves.last_mut() {
                Some(last)
                    if last.file == number
                        && last.logical_bytes + last.length_bytes == logical_bytes
                        && last.physical_bytes + last.length_bytes == to =>
                {
                    last.length_bytes += length;
                }
                _ => moves.push(Move {
                    file: number,
                    logical_bytes,
                    length_bytes: length,
                    physical_bytes: to,
                }),
            }
            to += length;
            take -= length;
        }
    }
}

/// Pieces that go on in the file and on the device alike, as one.
pub(crate) fn joined(pieces: &[Piece]) -> Vec<Piece> {
    let mut whole: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match whole.last_mut() {
            Some(last)
                if last.logical_bytes + last.length_bytes == piece.logical_bytes
                    && last.end_bytes() == piece.physical_bytes =>
            {
                last.length_bytes += piece.length_bytes;
            }
            _ => whole.push(*piece),
        }
    }
    whole
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    start: u64,
    length: u64,
    /// Which file's; free space has none.
    piece: Option<(u32, Piece)>,
}

impl Segment {
    fn live_bytes(&self) -> u64 {
        if self.piece.is_some() { self.length } else { 0 }
    }
}

/// Windows of at least `window_bytes` in which nothing stays, those with the least to move first.
/// Full ones are left out: moving what is there would only move the want of room.
fn emptiest_windows(segments: &[Segment], window_bytes: u64) -> Vec<(u64, u64)> {
    // Share to move in thousandths, start and end.
    let mut found: Vec<(u64, u64, u64)> = Vec::new();
    let (mut first, mut live) = (0, 0);
    for last in 0..segments.len() {
        let segment = &segments[last];
        if last > first && segments[last - 1].start + segments[last - 1].length != segment.start {
            (first, live) = (last, 0);
        }
        live += segment.live_bytes();
        let end = segment.start + segment.length;
        while first <= last && end - segments[first].start >= window_bytes {
            let bytes = end - segments[first].start;
            if 0 < live && live < bytes {
                found.push((live * 1000 / bytes, segments[first].start, end));
            }
            live -= segments[first].live_bytes();
            first += 1;
        }
    }
    found.sort_unstable();
    found.into_iter().map(|(_, start, end)| (start, end)).collect()
}

#[cfg(test)]
mod tests;
