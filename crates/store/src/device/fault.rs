//! A disk that fails, as it is asked to.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agewell_core::{RandomStreams, SECTOR_BYTES, Stream, uniform_below};
use rustix::io::Errno;

use super::{Disk, Piece, check_pieces, check_range};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// A read fails with an I/O error.
    ReadError,
    /// A piece that is written fails with an I/O error: the beginning of it may be there, and any of
    /// the other pieces of the call.
    WriteError,
    /// A flush fails with an I/O error, and the disk below is not flushed.
    FlushError,
    /// Of a piece that is written only the beginning arrives, and nobody says so.
    TornWrite,
    /// A piece that is written does not arrive, and nobody says so.
    DroppedWrite,
    /// A piece that is written goes somewhere else, and nobody says so.
    MisdirectedWrite,
    /// A read returns what lies somewhere else.
    MisdirectedRead,
    /// A bit of what is read is another one; on the disk below too, unless the fault passes.
    FlippedBit,
    /// A flush reports success and does nothing.
    IgnoredFlush,
    /// A read, a write or a flush takes so much longer.
    Slow(Duration),
}

/// Which of the requests that a fault could meet it does meet, counted from 0: reads, pieces that are
/// written, flushes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// All of them.
    Always,
    /// Those with these numbers.
    At(Vec<u64>),
    /// That one and all behind it.
    From(u64),
    /// Each by chance, in the first number of cases out of the second.
    Chance(u32, u32),
}

/// How long an error lasts that a request has met. Of what reports no error only flipped bits last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasts {
    /// The same request succeeds next time, unless it is met again.
    Once,
    /// Its sectors fail until they are written; writes to them succeed.
    UntilWritten,
    /// Its sectors fail for good, whether they are read or written.
    ForGood,
}

/// Something that goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// To which requests.
    pub when: When,
    /// Only those that touch these bytes; flushes touch all.
    pub within: Range<u64>,
    /// How long.
    pub lasts: Lasts,
}

impl Fault {
    /// `kind`, wherever it is, and once at a time.
    #[must_use]
    pub fn new(kind: FaultKind, when: When) -> Self {
        Self { kind, when, within: 0..u64::MAX, lasts: Lasts::Once }
    }
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Read,
    Write,
    Flush,
}

impl FaultKind {
    fn meets(self, action: Action) -> bool {
        match self {
            Self::ReadError | Self::MisdirectedRead | Self::FlippedBit => action == Action::Read,
            Self::WriteError | Self::TornWrite | Self::DroppedWrite | Self::MisdirectedWrite => {
                action == Action::Write
            }
            Self::FlushError | Self::IgnoredFlush => action == Action::Flush,
            Self::Slow(_) => true,
        }
    }
}

/// A fault, and how often it might have struck and did.
#[derive(Debug)]
struct Armed {
    fault: Fault,
    random: Stream,
    requests: u64,
    struck: u64,
}

impl Armed {
    fn strikes(&mut self, action: Action, range: &Range<u64>) -> bool {
        let fault = &self.fault;
        let is_within = action == Action::Flush
            || range.start < fault.within.end && fault.within.start < range.end;
        if !fault.kind.meets(action) || !is_within {
            return false;
        }
        let number = self.requests;
        self.requests += 1;
        let strikes = match &fault.when {
            When::Always => true,
            When::At(numbers) => numbers.contains(&number),
            When::From(first) => number >= *first,
            When::Chance(cases, of) => {
                uniform_below(&mut self.random, u64::from(*of)) < u64::from(*cases)
            }
        };
        self.struck += u64::from(strikes);
        strikes
    }
}

/// Memory that a disk promises and has not.
#[derive(Debug)]
struct Room {
    bytes: u64,
    pages: HashSet<u64>,
}

/// The unit in which a disk that fills takes room; chosen by us: the block of most stores.
const PAGE_BYTES: u64 = 4096;

impl Room {
    /// Takes room for `range`; false, with nothing taken, if there is too little.
    fn take(&mut self, range: &Range<u64>) -> bool {
        let pages = range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES);
        let new: Vec<u64> = pages.filter(|page| !self.pages.contains(page)).collect();
        let fits = (self.pages.len() + new.len()) as u64 * PAGE_BYTES <= self.bytes;
        if fits {
            self.pages.extend(new);
        }
        fits
    }
}

#[derive(Debug)]
struct State {
    is_on: bool,
    faults: Vec<Armed>,
    random: Stream,
    /// Sectors that cannot be read, and whether they cannot be written either.
    bad: BTreeMap<u64, bool>,
    room: Option<Room>,
    refused_for_room: u64,
}

/// What is to be done with a request.
#[derive(Debug, Default)]
struct Fate {
    fails: bool,
    delay: Duration,
    struck: Vec<(FaultKind, Lasts)>,
}

impl Fate {
    fn has(&self, kind: FaultKind) -> bool {
        self.struck.iter().any(|(struck, _)| *struck == kind)
    }
}

impl State {
    /// What happens to a request; errors that last are noted.
    fn fate(&mut self, action: Action, range: &Range<u64>) -> Fate {
        let mut fate = Fate::default();
        let sectors = range.start / SECTOR_BYTES..range.end.div_ceil(SECTOR_BYTES);
        if !sectors.is_empty() {
            let mut bad = self.bad.range(sectors.clone());
            fate.fails = bad.any(|(_, is_for_good)| action == Action::Read || *is_for_good);
        }
        if !self.is_on {
            return fate;
        }
        let mut lasting = None;
        for armed in &mut self.faults {
            if !armed.strikes(action, range) {
                continue;
            }
            match armed.fault.kind {
                FaultKind::Slow(delay) => fate.delay += delay,
                FaultKind::ReadError | FaultKind::WriteError | FaultKind::FlushError => {
                    fate.fails = true;
                    match armed.fault.lasts {
                        Lasts::Once => {}
                        Lasts::UntilWritten => lasting = lasting.or(Some(false)),
                        Lasts::ForGood => lasting = Some(true),
                    }
                }
                kind => fate.struck.push((kind, armed.fault.lasts)),
            }
        }
        if let Some(is_for_good) = lasting {
            for sector in sectors {
                let known = self.bad.entry(sector).or_insert(is_for_good);
                *known |= is_for_good;
            }
        }
        fate
    }

    /// `range` was written: what only could not be read can be again.
    fn heal(&mut self, range: &Range<u64>) {
        let sectors = range.start / SECTOR_BYTES..range.end / SECTOR_BYTES;
        let healed: Vec<u64> = self
            .bad
            .range(sectors)
            .filter(|(_, is_for_good)| !**is_for_good)
            .map(|(sector, _)| *sector)
            .collect();
        for sector in healed {
            self.bad.remove(&sector);
        }
    }

    /// A place for `bytes` bytes other than `offset`, if there is one.
    fn elsewhere(&mut self, size_bytes: u64, offset: u64, bytes: u64) -> Option<u64> {
        let step = bytes.next_multiple_of(SECTOR_BYTES).clamp(SECTOR_BYTES, PAGE_BYTES);
        let places = size_bytes.checked_sub(bytes)? / step + 1;
        let place = uniform_below(&mut self.random, places) * step;
        if place != offset {
            return Some(place);
        }
        (places > 1).then(|| (place / step + 1) % places * step)
    }
}

/// A disk that does what another does, but for the faults that it is given. The same requests meet the
/// same faults: all that is drawn follows from a seed.
pub struct FaultDisk<D> {
    disk: D,
    state: Mutex<State>,
    wait: Box<dyn Fn(Duration) + Send + Sync>,
}

impl<D: fmt::Debug> fmt::Debug for FaultDisk<D> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = out.debug_struct("FaultDisk");
        fields.field("disk", &self.disk).field("state", &self.state).finish_non_exhaustive()
    }
}

impl<D: Disk> FaultDisk<D> {
    /// `disk` with `faults`.
    #[must_use]
    pub fn new(disk: D, faults: Vec<Fault>, seed: u64) -> Self {
        let streams = RandomStreams::new(seed);
        let armed = |(number, fault)| Armed {
            fault,
            random: streams.stream(&format!("fault {number}")),
            requests: 0,
            struck: 0,
        };
        let state = State {
            is_on: true,
            faults: faults.into_iter().enumerate().map(armed).collect(),
            random: streams.stream("faults"),
            bad: BTreeMap::new(),
            room: None,
            refused_for_room: 0,
        };
        Self { disk, state: Mutex::new(state), wait: Box::new(std::thread::sleep) }
    }

    /// The same disk, on which what is slow waits so, on a virtual clock for instance; else its thread
    /// sleeps.
    #[must_use]
    pub fn with_wait(self, wait: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        Self { wait: Box::new(wait), ..self }
    }

    /// The same disk, which has room for `bytes` bytes only, whatever it says: what is written to pages of
    /// 4 KiB that never were, or have been discarded, fails with "no space left" when it is full.
    #[must_use]
    pub fn with_room(self, bytes: u64) -> Self {
        self.state().room = Some(Room { bytes, pages: HashSet::new() });
        self
    }

    /// Whether anything goes wrong from here on. Sectors that are bad stay so, and room counts.
    pub fn set_on(&self, is_on: bool) {
        self.state().is_on = is_on;
    }

    /// How often each fault has struck, in the order in which they were given.
    #[must_use]
    pub fn struck(&self) -> Vec<u64> {
        self.state().faults.iter().map(|armed| armed.struck).collect()
    }

    /// Requests that each fault could have struck.
    #[must_use]
    pub fn requests(&self) -> Vec<u64> {
        self.state().faults.iter().map(|armed| armed.requests).collect()
    }

    /// How many pieces found no room.
    #[must_use]
    pub fn refused_for_room(&self) -> u64 {
        self.state().refused_for_room
    }

    /// The disk below.
    #[must_use]
    pub fn below(&self) -> &D {
        &self.disk
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, delay: Duration) {
        if !delay.is_zero() {
            (self.wait)(delay);
        }
    }

    /// Turns a bit of `into`, which was read from `offset`; on the disk too if that lasts.
    fn flip(&self, offset: u64, into: &mut [u8], lasts: Lasts) -> io::Result<()> {
        let bit = uniform_below(&mut self.state().random, into.len() as u64 * 8);
        into[(bit / 8) as usize] ^= 1 << (bit % 8);
        match lasts {
            Lasts::Once => Ok(()),
            Lasts::UntilWritten | Lasts::ForGood => {
                self.disk.write(&[Piece { offset, data: into }])
            }
        }
    }
}

impl<D: Disk> Disk for FaultDisk<D> {
    as_below!(self => self.disk);

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let (size_bytes, bytes) = (self.size_bytes(), into.len() as u64);
        check_range(size_bytes, offset, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let (fate, from) = {
            let mut state = self.state();
            let fate = state.fate(Action::Read, &(offset..offset + bytes));
            let is_misdirected = fate.has(FaultKind::MisdirectedRead);
            let from = is_misdirected.then(|| state.elsewhere(size_bytes, offset, bytes)).flatten();
            (fate, from.unwrap_or(offset))
        };
        self.wait(fate.delay);
        if fate.fails {
            return Err(Errno::IO.into());
        }
        self.disk.read(from, into)?;
        for (kind, lasts) in fate.struck {
            if kind == FaultKind::FlippedBit {
                self.flip(from, into, lasts)?;
            }
        }
        Ok(())
    }

    fn write(&self, pieces: &[Piece<'_>]) -> io::Result<()> {
        let size_bytes = self.size_bytes();
        check_pieces(size_bytes, pieces)?;
        let (mut sent, mut whole) = (Vec::new(), Vec::new());
        let (mut delay, mut error) = (Duration::ZERO, None);
        let mut state = self.state();
        for piece in pieces.iter().filter(|piece| !piece.data.is_empty()) {
            let (offset, bytes) = (piece.offset, piece.data.len() as u64);
            let range = offset..offset + bytes;
            let fate = state.fate(Action::Write, &range);
            delay += fate.delay;
            let beginning = |state: &mut State| {
                let sectors = uniform_below(&mut state.random, bytes.div_ceil(SECTOR_BYTES));
                Piece { offset, data: &piece.data[..(sectors * SECTOR_BYTES) as usize] }
            };
            if state.room.as_mut().is_some_and(|room| !room.take(&range)) {
                state.refused_for_room += 1;
                error = Some(Errno::NOSPC);
                continue;
            }
            if fate.fails {
                error = error.or(Some(Errno::IO));
                sent.push(beginning(&mut state));
            } else if fate.has(FaultKind::DroppedWrite) {
                // Nothing arrives.
            } else if fate.has(FaultKind::TornWrite) {
                sent.push(beginning(&mut state));
            } else if fate.has(FaultKind::MisdirectedWrite) {
                let elsewhere = state.elsewhere(size_bytes, offset, bytes);
                sent.extend(elsewhere.map(|offset| Piece { offset, data: piece.data }));
            } else {
                sent.push(*piece);
                whole.push(range);
            }
        }
        if error.is_some() {
            // Any of the other pieces may be there.
            let random = &mut state.random;
            sent.retain(|_| uniform_below(random, 2) == 1);
        } else {
            for range in &whole {
                state.heal(range);
            }
        }
        drop(state);
        self.wait(delay);
        self.disk.write(&sent)?;
        error.map_or(Ok(()), |errno| Err(errno.into()))
    }

    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        check_range(self.size_bytes(), offset, bytes)?;
        if let Some(room) = &mut self.state().room {
            let pages = offset.div_ceil(PAGE_BYTES)..(offset + bytes) / PAGE_BYTES;
            room.pages.retain(|page| !pages.contains(page));
        }
        self.disk.discard(offset, bytes)
    }

    fn flush(&self) -> io::Result<()> {
        let fate = self.state().fate(Action::Flush, &(0..0));
        self.wait(fate.delay);
        if fate.fails {
            return Err(Errno::IO.into());
        }
        if fate.has(FaultKind::IgnoredFlush) {
            return Ok(());
        }
        self.disk.flush()
    }
}
