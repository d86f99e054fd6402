//! Files that are read in a row and lie scattered: what is left of them is read in the order in which it lies.
//!
//! A file that was written over at random lies all over the disk, and who reads it in a row waits for the disk at
//! every block. One sweep reads all of it in a fraction of that time; but whether the reader wants all of it nobody
//! knows. So a sweep begins when the reader has waited for a certain part of what it takes: then one who goes on
//! waits hardly longer than if it had been known, and one who stops has lost no more than a multiple of what he had
//! waited for anyway (as with the rent of skis: Karlin et al. 1988). Sweeps that were made for nothing make the next
//! ones wait longer.

use std::ops::Range;

use agewell_store::Sweep;
use agewell_store::device::Disk;
use rustix::fs::FileType;

use crate::core::Core;
use crate::format::ExtentState;
use crate::{FileSystem, FsError, directory, extents, inodes, memory};

/// Files that are read in a row at the same time, of which it is remembered; chosen by us.
const ROWS: usize = 16;

/// How far from where a row ended it goes on, bytes; chosen by us: the kernel reads ahead, and threads overtake one
/// another.
const NEAR_BYTES: u64 = 1 << 20;

/// A sweep begins when as much as this part of what it takes has been waited for; chosen by us: who reads all of it
/// waits a sixteenth longer than he must.
const WAITED_SHARE: u64 = 16;

/// Requests of a file before a sweep is thought of, at least; chosen by us: as many as the kernel reads at first.
const LEAST_REQUESTS: u64 = 16;

/// Reads in a row before a sweep is thought of, at least; chosen by us: the kernel asks for two if somebody looks at
/// the beginning of a file.
const READS_MIN: u64 = 3;

/// A sweep is made if it takes this part of what it saves, at most; chosen by us: both are guesses.
const GAIN_MIN: u64 = 2;

/// Times that sweeps were made for nothing, at most: each makes the next wait twice as long; chosen by us.
const LOST_MAX: u32 = 6;

/// Extents that are looked up at once, so that others come to their turn; chosen by us.
const EXTENTS_AT_ONCE: usize = 4096;

/// Entries of a directory on either side of a file among which others are looked for that are probably read next, and how
/// many of these are read with it at most; chosen by us.
const NEAR_ENTRIES: u64 = 64;
const COMPANIONS_MAX: usize = 64;

/// Sweeps may take this part of the memory that the machine has to spare; chosen by us.
const SPARE_SHARE: u64 = 8;

/// A file that is read in a row.
#[derive(Debug, Clone, Default)]
struct Row {
    inode: u64,
    /// Where it goes on, bytes.
    next: u64,
    reads: u64,
    /// Requests of the disk that it has taken, without one for each read, and how many must be waited for until a
    /// sweep is thought of.
    requests: u64,
    due: u64,
    /// What the last sweep has read of it, bytes; nothing if there was none.
    swept: Range<u64>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Scattered {
    rows: [Row; ROWS],
    /// The one that is forgotten next.
    oldest: usize,
    lost: u32,
    /// Whether the last sweep was not for nothing: who reads one file to its end probably reads the next. A sweep
    /// that reads others with a file uses that up.
    is_trusted: bool,
}

/// A sweep to be thought of: of the file `inode`, which has `size` bytes, from the byte `from` on.
#[derive(Debug, Clone, Copy)]
pub struct SweepDue {
    inode: u64,
    size: u64,
    from: u64,
}

impl SweepDue {
    /// The file.
    #[must_use]
    pub fn inode(&self) -> u64 {
        self.inode
    }
}

/// Whether a row that has come to `next` has used what was `swept` for it: half of it.
fn is_used(swept: &Range<u64>, next: u64) -> bool {
    next.saturating_sub(swept.start) * 2 >= swept.end - swept.start
}

impl Scattered {
    /// Whether the file `inode` was read lately.
    fn has_row(&self, inode: u64) -> bool {
        self.rows.iter().any(|row| row.inode == inode && row.next > 0)
    }

    /// Forgets the row at `at`, and notes what came of its sweep.
    fn end(&mut self, at: usize) {
        let Row { next, swept, .. } = std::mem::take(&mut self.rows[at]);
        if swept.is_empty() {
            return;
        }
        let is_used = is_used(&swept, next);
        self.lost =
            if is_used { self.lost.saturating_sub(1) } else { (self.lost + 1).min(LOST_MAX) };
        self.is_trusted = is_used;
    }

    /// `read` was read of the file `inode`, which has `size` bytes, in `requests` of the disk; the sweep to be thought
    /// of. None is before `least` requests.
    fn was_read(
        &mut self,
        (inode, size): (u64, u64),
        read: &Range<u64>,
        requests: u64,
        least: u64,
    ) -> Option<SweepDue> {
        let at = self.rows.iter().position(|row| row.inode == inode && row.next > 0);
        let is_in_row = |row: &Row| read.start.abs_diff(row.next) <= NEAR_BYTES;
        let at = match at {
            Some(at) if is_in_row(&self.rows[at]) => at,
            Some(at) => {
                self.end(at);
                at
            }
            None => {
                let at = self.oldest;
                self.oldest = (at + 1) % ROWS;
                self.end(at);
                at
            }
        };
        let lost = self.lost;
        let row = &mut self.rows[at];
        if row.next == 0 {
            *row = Row { inode, due: least << lost, ..Row::default() };
        }
        row.next = row.next.max(read.end);
        row.reads += 1;
        row.requests += requests.saturating_sub(1);
        self.is_trusted |= !row.swept.is_empty() && is_used(&row.swept, row.next);
        let reads_min = if self.is_trusted { 1 } else { READS_MIN };
        if row.requests < row.due || row.reads < reads_min {
            return None;
        }
        // Nobody else thinks of it until this is done.
        row.due = u64::MAX;
        Some(SweepDue { inode, size, from: row.next })
    }

    /// A sweep of the file `inode` was thought of, which would read the bytes `covers`, for which `requests` are needed
    /// otherwise: whether it is to begin. It is not if it `is_worth_it` no more than reading one after another, or if
    /// fewer than `enough` requests were waited for.
    fn decide(
        &mut self,
        inode: u64,
        is_worth_it: bool,
        (requests, enough): (u64, u64),
        covers: Range<u64>,
    ) -> bool {
        let enough = enough << self.lost;
        let row = self.rows.iter_mut().find(|row| row.inode == inode && row.due == u64::MAX);
        let Some(row) = row else { return false };
        if !is_worth_it {
            // What lies behind may be worth it.
            row.due = row.requests + requests.max(LEAST_REQUESTS);
            return false;
        }
        if row.requests < enough {
            row.due = enough;
            return false;
        }
        (row.requests, row.due, row.swept) = (0, enough, covers);
        true
    }
}

/// `read` is being read of the file `inode`, which has `size` bytes, from `extents` extents by `requests` of the disk; the
/// sweep to be thought of.
pub(crate) fn was_read<D: Disk>(
    core: &mut Core<D>,
    (inode, size): (u64, u64),
    read: &Range<u64>,
    extents: u64,
    requests: u64,
) -> Option<SweepDue> {
    let store = core.blocks.store();
    let (request_ns, (_, block_ns)) = (store.queued_read_ns(), store.read_times_ns());
    // To find out what a sweep takes, what describes the file is read, and takes the longer the more extents it has:
    // half of what the rest takes where it lies in a row must have been waited for.
    let blocks = (read.end - read.start).div_ceil(core.block_bytes()).max(1);
    let left = size.saturating_sub(read.end).div_ceil(core.block_bytes()) * extents / blocks;
    let least = LEAST_REQUESTS + (left * block_ns / 2).div_ceil(request_ns.max(1));
    core.scattered.was_read((inode, size), read, requests, least)
}

/// Blocks of the file of a sweep that is due, from the byte `from` on; where the next begin, if there are more.
fn blocks<D: Disk>(
    core: &mut Core<D>,
    inode: u64,
    from: u64,
    blocks: &mut Vec<Range<u32>>,
) -> Result<Option<u64>, FsError> {
    let block_bytes = core.block_bytes();
    let end = inodes::file(core, inode)?.size.div_ceil(block_bytes);
    let found = extents::between(core, inode, (from / block_bytes, end), EXTENTS_AT_ONCE)?;
    let written = found.iter().filter(|extent| extent.state != ExtentState::Promised);
    blocks.extend(written.map(|extent| extent.number..extent.number.saturating_add(extent.count)));
    let next = found.last().filter(|_| found.len() == EXTENTS_AT_ONCE);
    Ok(next.map(|last| last.end() * block_bytes))
}

/// Other files beside `inode` in its directory that are in no row, those behind it first.
fn companions<D: Disk>(core: &mut Core<D>, inode: u64) -> Result<Vec<u64>, FsError> {
    let Some((directory, entry)) = core.files_ahead.entry_of(inode) else { return Ok(Vec::new()) };
    let (from, end) = (entry.saturating_sub(NEAR_ENTRIES), entry.saturating_add(NEAR_ENTRIES));
    let (mut before, mut found) = (Vec::new(), Vec::new());
    directory::each(core, directory, from, |at, inode, file_type, _| {
        let files = if at < entry { &mut before } else { &mut found };
        files.extend((file_type == FileType::RegularFile).then_some(inode));
        at < end
    })?;
    found.append(&mut before);
    found.retain(|one| !core.scattered.has_row(*one));
    found.truncate(COMPANIONS_MAX);
    Ok(found)
}

impl<D: Disk> FileSystem<D> {
    /// Makes the sweep that is `due`, if it is worth it, as long as `goes_on` says so; whether it did. Others come to
    /// their turn meanwhile. If the one before was not for nothing, files beside this one are read with it.
    ///
    /// # Errors
    /// If what says where the file lies is damaged. Data that cannot be read is left to who reads it.
    pub fn sweep(&self, due: SweepDue, goes_on: impl Fn() -> bool) -> Result<bool, FsError> {
        let bytes_max = self.read_ahead_bytes.min(memory::to_spare_bytes() / SPARE_SHARE);
        let mut wanted = Vec::new();
        self.add_blocks(due.inode, due.from, bytes_max, &mut wanted)?;
        let mut sweep = self.store().plan_sweep(&wanted, bytes_max);
        let (sweep_ns, is_worth_it) = self.judge(&sweep);
        let enough = sweep_ns / u128::from(WAITED_SHARE * self.store().queued_read_ns().max(1));
        let enough = u64::try_from(enough).unwrap_or(u64::MAX);
        let covers = due.from..due.from.saturating_add(bytes_max).min(due.size);
        let requests = (sweep.requests_one_by_one(), enough);
        let mut core = self.core();
        let begins = core.scattered.decide(due.inode, is_worth_it, requests, covers);
        let takes_more = begins && std::mem::take(&mut core.scattered.is_trusted);
        drop(core);
        if takes_more {
            for companion in self.look(|core| companions(core, due.inode))? {
                if self.bytes_of(&wanted) >= bytes_max {
                    break;
                }
                let mut of_it = Vec::new();
                // What is damaged is left to who reads it.
                let is_known = self.add_blocks(companion, 0, bytes_max, &mut of_it).is_ok();
                if is_known && self.judge(&self.store().plan_sweep(&of_it, bytes_max)).1 {
                    wanted.append(&mut of_it);
                }
            }
            sweep = self.store().plan_sweep(&wanted, bytes_max);
        }
        while begins && goes_on() && self.store().sweep_on(&mut sweep) {}
        Ok(begins)
    }

    /// Adds the blocks of the file `inode` from the byte `from` on to those that are `wanted`, as long as these are
    /// fewer than `bytes_max` bytes.
    fn add_blocks(
        &self,
        inode: u64,
        from: u64,
        bytes_max: u64,
        wanted: &mut Vec<Range<u32>>,
    ) -> Result<(), FsError> {
        let mut next = Some(from);
        while let Some(from) = next.filter(|_| self.bytes_of(wanted) < bytes_max) {
            next = self.look(|core| blocks(core, inode, from, wanted))?;
        }
        Ok(())
    }

    fn bytes_of(&self, blocks: &[Range<u32>]) -> u64 {
        let count: u64 = blocks.iter().map(|some| some.len() as u64).sum();
        count * u64::from(self.store().geometry().block_bytes)
    }

    /// How long `sweep` takes, ns, and whether it is worth that.
    fn judge(&self, sweep: &Sweep) -> (u128, bool) {
        let (request_ns, (_, block_ns)) =
            (self.store().queued_read_ns(), self.store().read_times_ns());
        let takes_ns = |requests: u64, blocks: u64| {
            u128::from(requests) * u128::from(request_ns)
                + u128::from(blocks) * u128::from(block_ns)
        };
        let sweep_ns = takes_ns(sweep.requests(), sweep.transferred_blocks());
        let saved_ns = takes_ns(sweep.requests_one_by_one(), sweep.wanted_blocks());
        (sweep_ns, saved_ns > 0 && sweep_ns * u128::from(GAIN_MIN) <= saved_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: u64 = 128 << 10;

    /// Reads pieces of `inode`, from the number `first` on, 32 requests each, until a sweep is due; how many.
    fn read_until_due(
        scattered: &mut Scattered,
        inode: u64,
        first: u64,
    ) -> Option<(u64, SweepDue)> {
        (first..first + 100).find_map(|at| {
            let read = at * PIECE..(at + 1) * PIECE;
            Some((at + 1 - first, scattered.was_read((inode, 1 << 30), &read, 33, 60)?))
        })
    }

    #[test]
    fn a_sweep_is_due_when_enough_was_waited_for() {
        let mut scattered = Scattered::default();
        // At first it is found out how long it would take, then waited for as long as that says.
        let (pieces, due) = read_until_due(&mut scattered, 7, 0).unwrap();
        assert_eq!((pieces, due.inode, due.from), (3, 7, 3 * PIECE));
        assert!(!scattered.decide(7, true, (0, 150), 0..0));
        let (pieces, due) = read_until_due(&mut scattered, 7, 3).unwrap();
        assert_eq!((pieces, due.from), (2, 5 * PIECE));
        assert!(scattered.decide(7, true, (0, 150), 5 * PIECE..40 * PIECE));
        // What is in memory is waited for no more; what was not read, or forgotten, is.
        for at in 5..40 {
            assert!(
                scattered.was_read((7, 1 << 30), &(at * PIECE..(at + 1) * PIECE), 0, 60).is_none()
            );
        }
        assert_eq!(read_until_due(&mut scattered, 7, 40).unwrap().0, 5);
        // What lies in a row by and large is left to its end.
        assert!(!scattered.decide(7, false, (320, 0), 0..0));
        assert_eq!(read_until_due(&mut scattered, 7, 45).unwrap().0, 10);
        assert!(!scattered.decide(7, false, (0, 0), 0..0));
        for at in 55..100 {
            let read = at * PIECE..(at + 1) * PIECE;
            assert!(scattered.was_read((7, 1 << 30), &read, 1, 60).is_none());
        }
    }

    #[test]
    fn who_jumps_about_is_left_alone() {
        let mut scattered = Scattered::default();
        for at in 0..1000_u64 {
            let from = at * 7_919 % 1000 * (4 << 20);
            assert!(scattered.was_read((3, 1 << 30), &(from..from + PIECE), 33, 60).is_none());
        }
        // Threads overtake one another.
        let dues = [0, 2, 1].map(|at| {
            scattered
                .was_read((4, 1 << 30), &(at * PIECE..(at + 1) * PIECE), 33, 96)
                .map(|due| due.from)
        });
        assert_eq!(dues, [None, None, Some(3 * PIECE)]);
    }

    #[test]
    fn sweeps_for_nothing_make_the_next_ones_wait_longer() {
        let mut scattered = Scattered::default();
        // Who reads one file to its end is trusted with the next.
        // Each reads until a sweep is made and so much of what it has read; then something else.
        let mut pieces_before = |used: u64| {
            let (pieces, due) = read_until_due(&mut scattered, 9, 0).unwrap();
            assert!(scattered.decide(9, true, (0, 0), due.from..due.from + 100 * PIECE));
            for at in pieces..pieces + used {
                scattered.was_read((9, 1 << 30), &(at * PIECE..(at + 1) * PIECE), 0, 60);
            }
            scattered.was_read((9, 1 << 30), &(1 << 40..(1 << 40) + 1), 0, u64::MAX >> 8);
            pieces
        };
        assert_eq!([1, 1, 90, 90, 1, 90].map(&mut pieces_before), [3, 4, 8, 4, 2, 4]);
    }
}
