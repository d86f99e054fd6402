//! From events to requests: the Linux block layer logs several events of one request, and this
//! pairs them.
//!
//! `queue` (Q, `block_bio_queue`) gives the enqueue time, `issue` (D) the start, `complete` (C) the
//! finish. Requests are those the device was given: what several queued pieces were merged into, or
//! one was split into, found by sector.
//!
//! * A piece without a queue event is enqueued when inserted, or when issued.
//! * A device without issue events (device mapper, md) has requests that run from queue to
//!   complete.
//! * An empty flush waits for the next flush that the device is given; flushes complete in the
//!   order of issue.
//! * What never completes is kept, with the times it has; after [`OPEN_MAX`] requests or
//!   [`OPEN_ROWS_MAX`] rows it is dropped, so that memory stays bounded on traces that lack
//!   completions.
//!
//! Rows are pushed as they complete; the reorder_window's window puts them in order of enqueue time.

use std::collections::{BTreeMap, BTreeSet};

use agewell_core::Operation;

use crate::error::Problem;
use crate::record::{BlockRow, TIME_MISSING, flag};
use crate::reorder_window::{ReorderWindow, WINDOW_ROWS};

/// More than any host keeps queued; chosen by us.
const OPEN_MAX: usize = 16_384;
/// An open request is dropped after this many others completed: the reorder_window's window must still be
/// able to place it.
const OPEN_ROWS_MAX: u64 = WINDOW_ROWS as u64 / 2;
/// And after this time: what takes longer is lost, and the reorder window repairs no step back beyond 600 s.
const OPEN_NS_MAX: u64 = 300_000_000_000;
/// Flushes a device can have at once; beyond it the trace lacks their completions.
const FLUSHES_MAX: usize = 64;

pub(crate) const NO_COMPLETION: &str = "requests have no completion in the trace";
const NO_REQUEST: &str = "completions belong to requests from before the trace";
const UNORDERED: &str = "events of a request were out of order; its times were clamped";
const LOST_FLUSHES: &str = "flushes asked of the host never reached the device";

/// What happened; in the order in which the events of a request come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// The block layer was handed a piece of a request (`block_bio_queue`).
    Queue,
    /// A request went to the scheduler.
    Insert,
    /// The device was given a request.
    Issue,
    /// The device gave it back and is given it again later.
    Requeue,
    /// The device has completed a request, or a part of it.
    Complete,
    /// Completion of a queued piece on a device without issue events; silent if nothing waits.
    PieceComplete,
}

/// The letters that the kernel writes for a request, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Letters {
    /// `None`: a command that moves no data (`N`).
    pub operation: Option<Operation>,
    /// Bits of [`flag`].
    pub flags: u16,
    /// A flush, by itself or before the data.
    pub flush: bool,
}

/// One event of a block request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// When, ns on the clock of the trace.
    pub time_ns: u64,
    /// To which device, numbered by the trace's metadata.
    pub device: u32,
    /// First sector, 512 bytes.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// Operation and flags.
    pub letters: Letters,
    /// In which process.
    pub client: u32,
}

/// Decodes letters such as `WS`, `RAM`, `FWFSM`, `FF`, `D` (kernel `blk_fill_rwbs`): an `F` before
/// the operation is a flush before it, an `F` after it forced unit access; `A` read-ahead, `S`
/// synchronous, `M` metadata.
#[must_use]
pub fn letters(text: &[u8]) -> Option<Letters> {
    let mut rest = text;
    let mut flush = false;
    // A leading F is the operation itself unless another operation letter follows.
    if let [b'F', b'R' | b'W' | b'D' | b'N' | b'F' | b'Z', ..] = rest {
        flush = true;
        rest = &rest[1..];
    }
    let (&first, mut rest) = rest.split_first()?;
    let operation = match first {
        b'R' => Some(Operation::Read),
        b'W' => Some(Operation::Write),
        b'D' => {
            // DE is a secure erase: the addressed sectors hold nothing any more either.
            rest = rest.strip_prefix(b"E").unwrap_or(rest);
            Some(Operation::Discard)
        }
        b'F' => {
            flush = true;
            Some(Operation::Flush)
        }
        b'N' => None,
        b'Z' => {
            rest = rest.get(1..)?;
            None
        }
        _ => return None,
    };
    let (mut synchronous, mut ahead, mut metadata) = (false, false, false);
    for &letter in rest {
        match letter {
            b'S' => synchronous = true,
            b'A' => ahead = true,
            b'M' => metadata = true,
            b'F' | b'U' | b'B' => {}
            _ => return None,
        }
    }
    Some(Letters { operation, flags: flags(operation, synchronous, ahead, metadata), flush })
}

/// Flags of a request; a read is waited for unless it runs ahead (kernel `op_is_sync`).
pub(crate) fn flags(
    operation: Option<Operation>,
    synchronous: bool,
    ahead: bool,
    metadata: bool,
) -> u16 {
    let waits = synchronous || operation == Some(Operation::Read);
    let mut flags = if waits && !ahead { flag::SYNCHRONOUS } else { flag::ASYNCHRONOUS };
    if ahead {
        flags |= flag::READ_AHEAD;
    }
    if metadata {
        flags |= flag::METADATA;
    }
    flags
}

#[derive(Debug, Clone, Copy)]
struct Open {
    row: BlockRow,
    /// Sectors not yet completed begin here.
    next: u64,
    end: u64,
    issued: bool,
    rows_at: u64,
}

#[derive(Debug, Default)]
struct Flushes {
    /// Time and client of the first empty flush that waits, and how many wait.
    waiting: Option<(u64, u32, u64)>,
    /// Enqueue, issue, client, flags.
    issued: Vec<(u64, u64, u32, u16)>,
}

/// Pairs the events of a trace.
#[derive(Debug, Default)]
pub(crate) struct Pairing {
    /// By order of first event.
    open: BTreeMap<u64, Open>,
    /// Device, first sector, key in `open`.
    queued: BTreeSet<(u32, u64, u64)>,
    issued: BTreeSet<(u32, u64, u64)>,
    flushes: BTreeMap<u32, Flushes>,
    sequence: u64,
    rows: u64,
    saw_queue: bool,
    swept_ns: u64,
    /// Events up to this time were lost: an older request that is open may have completed unseen.
    lost_until_ns: u64,
}

impl Pairing {
    /// Takes one event and pushes the requests that it completes.
    pub(crate) fn event(
        &mut self,
        event: Event,
        reorder_window: &mut ReorderWindow,
    ) -> Result<(), Problem> {
        self.let_go(event.time_ns, reorder_window)?;
        if event.sectors == 0 {
            return self.empty_event(event, reorder_window);
        }
        let Some(operation) = event.letters.operation else { return Ok(()) };
        let end = event
            .sector
            .checked_add(event.sectors)
            .ok_or_else(|| Problem::new(format!("sector {} is beyond any device", event.sector)))?;
        if event.sectors > u64::from(u32::MAX) {
            return Err(Problem::new(format!("{} sectors in one request", event.sectors)));
        }
        match event.kind {
            EventKind::Queue => {
                self.saw_queue = true;
                self.enqueue(&event, operation);
            }
            EventKind::Insert => {
                if self.queued_within(event.device, event.sector, end).is_empty() {
                    self.enqueue(&event, operation);
                }
            }
            EventKind::Issue => self.issue(&event, operation, end, reorder_window)?,
            EventKind::Complete | EventKind::PieceComplete => {
                self.complete(&event, end, reorder_window)?;
            }
            EventKind::Requeue => self.requeue(&event),
        }
        Ok(())
    }

    fn row(event: &Event, operation: Operation) -> BlockRow {
        BlockRow {
            enqueue_ns: event.time_ns,
            device: event.device,
            sector: event.sector,
            sectors: event.sectors as u32,
            operation: operation as u8,
            flags: event.letters.flags,
            client: event.client,
            ..BlockRow::default()
        }
    }

    fn add(&mut self, row: BlockRow, issued: bool, rows_at: u64) {
        self.sequence += 1;
        self.add_as(self.sequence, row, issued, rows_at);
    }

    fn add_as(&mut self, key: u64, row: BlockRow, issued: bool, rows_at: u64) {
        let end = row.sector + u64::from(row.sectors);
        let open = Open { row, next: row.sector, end, issued, rows_at };
        self.open.insert(key, open);
        let set = if issued { &mut self.issued } else { &mut self.queued };
        set.insert((row.device, row.sector, key));
    }

    fn enqueue(&mut self, event: &Event, operation: Operation) {
        self.add(Self::row(event, operation), false, self.rows);
    }

    /// Keys of queued pieces that overlap a range, first the one that begins before it.
    fn queued_within(&self, device: u32, from: u64, to: u64) -> Vec<(u64, u64)> {
        let before = self
            .queued
            .range((device, 0, 0)..(device, from, 0))
            .next_back()
            .filter(|(_, _, key)| self.open.get(key).is_some_and(|open| open.end > from))
            .map(|&(_, sector, key)| (sector, key));
        let within = self
            .queued
            .range((device, from, 0)..(device, to, 0))
            .map(|&(_, sector, key)| (sector, key));
        before.into_iter().chain(within).collect()
    }

    fn issue(
        &mut self,
        event: &Event,
        operation: Operation,
        end: u64,
        reorder_window: &mut ReorderWindow,
    ) -> Result<(), Problem> {
        self.drop_doubtful(event, reorder_window)?;
        let pieces = self.queued_within(event.device, event.sector, end);
        let mut row = Self::row(event, operation);
        let mut rows_at = self.rows;
        if pieces.is_empty() && self.saw_queue && self.issue_again(event, end) {
            return Ok(());
        }
        for (sector, key) in pieces {
            self.queued.remove(&(event.device, sector, key));
            let Some(piece) = self.open.remove(&key) else { continue };
            if piece.row.enqueue_ns < row.enqueue_ns {
                row.enqueue_ns = piece.row.enqueue_ns;
                row.client = piece.row.client;
            }
            row.flags |= piece.row.flags & (flag::METADATA | flag::READ_AHEAD);
            rows_at = rows_at.min(piece.rows_at);
            // What lies outside the issued range stays queued, in its old place if it can.
            let mut place = Some(key);
            for (from, to) in [(piece.row.sector, event.sector), (end, piece.end)] {
                if from < to && from >= piece.row.sector && to <= piece.end {
                    let mut rest = piece.row;
                    rest.sector = from;
                    rest.sectors = (to - from) as u32;
                    match place.take() {
                        Some(key) => self.add_as(key, rest, false, piece.rows_at),
                        None => self.add(rest, false, piece.rows_at),
                    }
                }
            }
        }
        row.start_ns = event.time_ns;
        if row.start_ns < row.enqueue_ns {
            reorder_window.metadata.warn(UNORDERED);
            row.start_ns = row.enqueue_ns;
        }
        self.add(row, true, rows_at);
        Ok(())
    }

    /// Gives up a request at the place of a new one if its completion may be among what was lost: the
    /// completion of the new one would pass for it, and that of each later one for the one before.
    fn drop_doubtful(
        &mut self,
        event: &Event,
        reorder_window: &mut ReorderWindow,
    ) -> Result<(), Problem> {
        if self.lost_until_ns == 0 {
            return Ok(());
        }
        let range = (event.device, event.sector, 0)..=(event.device, event.sector, u64::MAX);
        let Some((_, _, key)) = self.issued.range(range).next().copied() else { return Ok(()) };
        let is_doubtful = |open: &Open| open.row.start_ns <= self.lost_until_ns;
        if self.open.get(&key).is_some_and(is_doubtful) {
            return self.give_up(key, reorder_window);
        }
        Ok(())
    }

    /// Whether the same request was issued before and not completed: then it is issued again.
    fn issue_again(&mut self, event: &Event, end: u64) -> bool {
        let range = (event.device, event.sector, 0)..=(event.device, event.sector, u64::MAX);
        let found = self.issued.range(range).next().map(|&(_, _, key)| key);
        let Some(open) = found.and_then(|key| self.open.get_mut(&key)) else { return false };
        if open.end != end {
            return false;
        }
        open.row.start_ns = event.time_ns.max(open.row.enqueue_ns);
        true
    }

    fn complete(
        &mut self,
        event: &Event,
        end: u64,
        reorder_window: &mut ReorderWindow,
    ) -> Result<(), Problem> {
        let range = (event.device, event.sector, 0)..=(event.device, event.sector, u64::MAX);
        let found = self.issued.range(range).next().copied();
        if let Some(position) = found {
            self.issued.remove(&position);
            let Some(open) = self.open.get_mut(&position.2) else { return Ok(()) };
            if end < open.end {
                // A part of it: the rest completes later.
                open.next = end;
                self.issued.insert((event.device, end, position.2));
                return Ok(());
            }
            let row = open.row;
            self.open.remove(&position.2);
            return self.finish_row(row, event.time_ns, reorder_window);
        }
        let pieces = self.queued_within(event.device, event.sector, end);
        if pieces.is_empty() {
            if event.kind == EventKind::Complete {
                reorder_window.metadata.warn(NO_REQUEST);
            }
            return Ok(());
        }
        for (sector, key) in pieces {
            // A piece that reaches beyond the range is not complete yet.
            if self.open.get(&key).is_none_or(|piece| sector < event.sector || piece.end > end) {
                continue;
            }
            self.queued.remove(&(event.device, sector, key));
            if let Some(piece) = self.open.remove(&key) {
                self.finish_row(piece.row, event.time_ns, reorder_window)?;
            }
        }
        Ok(())
    }

    fn finish_row(
        &mut self,
        mut row: BlockRow,
        finish_ns: u64,
        reorder_window: &mut ReorderWindow,
    ) -> Result<(), Problem> {
        let earliest = if row.start_ns == TIME_MISSING { row.enqueue_ns } else { row.start_ns };
        if finish_ns < earliest {
            reorder_window.metadata.warn(UNORDERED);
        }
        row.finish_ns = finish_ns.max(earliest);
        self.rows += 1;
        reorder_window.push(row)
    }

    fn requeue(&mut self, event: &Event) {
        let range = (event.device, event.sector, 0)..=(event.device, event.sector, u64::MAX);
        let Some(position) = self.issued.range(range).next().copied() else { return };
        self.issued.remove(&position);
        if let Some(open) = self.open.get_mut(&position.2) {
            open.issued = false;
            open.row.start_ns = TIME_MISSING;
            self.queued.insert((event.device, open.row.sector, position.2));
        }
    }

    /// Flushes and commands without sectors.
    fn empty_event(
        &mut self,
        event: Event,
        reorder_window: &mut ReorderWindow,
    ) -> Result<(), Problem> {
        if !event.letters.flush {
            // The completion of a flush as its asker sees it, or a command that moves no data.
            return Ok(());
        }
        let flushes = self.flushes.entry(event.device).or_default();
        match event.kind {
            EventKind::Queue => {
                let waiting = flushes.waiting.get_or_insert((event.time_ns, event.client, 0));
                waiting.2 += 1;
                Ok(())
            }
            EventKind::Issue => {
                let (enqueue_ns, client) = flushes
                    .waiting
                    .take()
                    .map_or((event.time_ns, event.client), |(time, client, _)| (time, client));
                let enqueue_ns = enqueue_ns.min(event.time_ns);
                let synchronous = flag::SYNCHRONOUS;
                flushes.issued.push((enqueue_ns, event.time_ns, client, synchronous));
                if flushes.issued.len() <= FLUSHES_MAX {
                    return Ok(());
                }
                let oldest = flushes.issued.remove(0);
                reorder_window.metadata.warn(NO_COMPLETION);
                reorder_window.push(flush_row(event.device, oldest, TIME_MISSING))
            }
            EventKind::Complete if !flushes.issued.is_empty() => {
                let oldest = flushes.issued.remove(0);
                self.rows += 1;
                reorder_window.push(flush_row(event.device, oldest, event.time_ns.max(oldest.1)))
            }
            _ => Ok(()),
        }
    }

    /// Drops requests that have been open for too long.
    fn let_go(&mut self, now_ns: u64, reorder_window: &mut ReorderWindow) -> Result<(), Problem> {
        while let Some((&key, open)) = self.open.first_key_value() {
            let stale = self.rows.saturating_sub(open.rows_at) > OPEN_ROWS_MAX
                || now_ns.saturating_sub(open.row.enqueue_ns) > OPEN_NS_MAX;
            if self.open.len() <= OPEN_MAX && !stale {
                break;
            }
            self.give_up(key, reorder_window)?;
        }
        // Flushes are few; a look once a minute of trace time is enough.
        if now_ns.saturating_sub(self.swept_ns) > OPEN_NS_MAX / 5 {
            self.swept_ns = now_ns;
            for (&device, flushes) in &mut self.flushes {
                let is_stale = |time_ns: u64| now_ns.saturating_sub(time_ns) > OPEN_NS_MAX;
                while flushes.issued.first().is_some_and(|oldest| is_stale(oldest.0)) {
                    let oldest = flushes.issued.remove(0);
                    reorder_window.metadata.warn(NO_COMPLETION);
                    reorder_window.push(flush_row(device, oldest, TIME_MISSING))?;
                }
                if let Some((_, _, count)) = flushes.waiting.take_if(|waiting| is_stale(waiting.0))
                {
                    reorder_window.metadata.warn_many(LOST_FLUSHES, count);
                }
            }
        }
        Ok(())
    }

    fn give_up(&mut self, key: u64, reorder_window: &mut ReorderWindow) -> Result<(), Problem> {
        let Some(open) = self.open.remove(&key) else { return Ok(()) };
        if open.issued {
            self.issued.remove(&(open.row.device, open.next, key));
        } else {
            self.queued.remove(&(open.row.device, open.row.sector, key));
        }
        self.rows += 1;
        reorder_window.metadata.warn(NO_COMPLETION);
        reorder_window.push(open.row)
    }

    /// Events were lost, the last of them before `until_ns`.
    pub(crate) fn lost(&mut self, until_ns: u64) {
        self.lost_until_ns = self.lost_until_ns.max(until_ns);
    }

    /// No request that completes from now on was enqueued before this; `now_ns` if none is open.
    pub(crate) fn earliest_open_ns(&self, now_ns: u64) -> u64 {
        let open = self.open.values().map(|open| open.row.enqueue_ns);
        let flushes = self.flushes.values().flat_map(|flushes| {
            let waiting = flushes.waiting.iter().map(|waiting| waiting.0);
            waiting.chain(flushes.issued.iter().map(|issued| issued.0))
        });
        open.chain(flushes).fold(now_ns, u64::min)
    }

    /// Ends the trace: what is still open is pushed with the times it has.
    pub(crate) fn finish(&mut self, reorder_window: &mut ReorderWindow) -> Result<(), Problem> {
        while let Some((&key, _)) = self.open.first_key_value() {
            self.give_up(key, reorder_window)?;
        }
        for (device, flushes) in std::mem::take(&mut self.flushes) {
            if let Some((_, _, count)) = flushes.waiting {
                reorder_window.metadata.warn_many(LOST_FLUSHES, count);
            }
            for issued in flushes.issued {
                reorder_window.metadata.warn(NO_COMPLETION);
                reorder_window.push(flush_row(device, issued, TIME_MISSING))?;
            }
        }
        Ok(())
    }
}

fn flush_row(device: u32, issued: (u64, u64, u32, u16), finish_ns: u64) -> BlockRow {
    let (enqueue_ns, start_ns, client, flags) = issued;
    BlockRow {
        enqueue_ns,
        start_ns,
        finish_ns,
        device,
        sector: 0,
        sectors: 0,
        operation: Operation::Flush as u8,
        flags,
        client,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_as_the_kernel_writes_them() {
        let decoded = |text: &[u8]| letters(text).expect("letters");
        assert_eq!(decoded(b"WS").operation, Some(Operation::Write));
        assert_eq!(decoded(b"WS").flags, flag::SYNCHRONOUS);
        assert_eq!(decoded(b"W").flags, flag::ASYNCHRONOUS);
        assert_eq!(decoded(b"R").flags, flag::SYNCHRONOUS);
        assert_eq!(decoded(b"RA").flags, flag::ASYNCHRONOUS | flag::READ_AHEAD);
        assert_eq!(decoded(b"RM").flags, flag::SYNCHRONOUS | flag::METADATA);
        assert!(decoded(b"FWFSM").flush);
        assert_eq!(decoded(b"FWFSM").operation, Some(Operation::Write));
        assert_eq!(decoded(b"FF").operation, Some(Operation::Flush));
        assert_eq!(decoded(b"F").operation, Some(Operation::Flush));
        assert!(!decoded(b"WFS").flush);
        assert_eq!(decoded(b"DE").operation, Some(Operation::Discard));
        assert_eq!(decoded(b"N").operation, None);
        assert_eq!(letters(b"X"), None);
        assert_eq!(letters(b""), None);
        assert_eq!(letters(b"W8"), None);
    }
}
