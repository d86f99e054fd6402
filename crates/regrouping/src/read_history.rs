//! What was read, after what and how often.
//!
//! Its members are files, or pieces of them: the access graph and its partitions ([`RelatedBlocks`]), the times of steps
//! ([`ReadTimes`]) and how far expectations came true ([`Trust`]) are those by which a simulated log
//! puts blocks together, with files in place of blocks (Matthews 1999, §6.4 and §7.2.1).
//!
//! A *visit* of a file is a row of reads of it with none of another file in between. Memory is bounded:
//! of more files than the limit those that were not read for longest are forgotten. A function of the
//! requests alone: no clock is read, and nothing depends on the order of a hash.

use std::collections::BTreeMap;

use agewell_log::policy::cost::CostModel;

use crate::member_places::{MemberPlaces, place_sum, run_slots};
use crate::{ReadTimes, RelatedBlocks, Trust};

/// Pieces of a file that are remembered of where it lay before it was moved; the rest is taken to have
/// lain where it lies. Chosen by us.
const HOME_PIECES_MAX: usize = 64;

/// A file, or a piece of one: numbers may be used again, but not with the time of birth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberKey {
    /// Its number.
    pub number: u64,
    /// When it came into being, ns since 1970.
    pub birth_ns: i64,
}

/// A part of a request that is of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The file.
    pub file: MemberKey,
    /// Where in the file it begins, slots.
    pub offset: u64,
    /// How many, slots.
    pub slots: u64,
}

/// A request that the disk carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Whether it is a read.
    pub is_read: bool,
    /// Where, in slots from the start of the file system.
    pub slot: u64,
    /// How many, slots.
    pub slots: u64,
    /// For which the disk was busy with it, ns.
    pub time_ns: u64,
    /// Of which files, in the order in which they lie; none where that is not known.
    pub parts: Vec<Part>,
}

/// Slots of a file that lie side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Where in the file they begin, slots.
    pub offset: u64,
    /// Where on the disk, slots.
    pub slot: u64,
    /// How many, slots.
    pub slots: u64,
}

/// What is known of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Which it is.
    pub key: MemberKey,
    /// Visits since it was last written.
    pub visits: u32,
    /// Steps of the arm from one piece of it to the next, since it was last written or moved.
    pub breaks: u32,
    /// The visit, counted over all files, at which it was last read.
    pub last_visit: u64,
    /// Moves since it was last written.
    pub moves: u8,
    /// The trial in which it was moved; 0 if it was not, or lies elsewhere by now.
    pub trial: u8,
    /// Where it lay before, if it was moved.
    pub home: Vec<Run>,
    /// What tells where it lay when it had been moved.
    pub moved_to: u64,
}

/// Where the arm is, and where it would be if nothing had been moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Arm {
    end: u64,
    home_end: u64,
}

/// Declares the sums, and them as words, for a file.
macro_rules! totals {
    ($(#[$meta:meta])* pub struct Totals { $($(#[$of:meta])* pub $sum:ident: u64,)* }) => {
        $(#[$meta])*
        pub struct Totals {
            $($(#[$of])* pub $sum: u64,)*
        }

        impl Totals {
            const WORDS: usize = [$(stringify!($sum)),*].len();

            fn words(&self) -> [u64; Self::WORDS] {
                [$(self.$sum),*]
            }

            fn of([$($sum),*]: [u64; Self::WORDS]) -> Self {
                Self { $($sum),* }
            }
        }
    };
}

totals! {
    /// Sums over the history.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Totals {
        /// Reads.
        pub reads: u64,
        /// Slots that were read.
        pub read_slots: u64,
        /// Of those, slots of known files.
        pub named_slots: u64,
        /// Time of reads, ns.
        pub read_ns: u64,
        /// Visits.
        pub visits: u64,
        /// Cost of all moves, ns.
        pub moving_ns: u64,
        /// Bytes moved.
        pub moved_bytes: u64,
        /// Files moved.
        pub moved_files: u64,
        /// Bytes moved beyond those of the files that came to their place, to make room.
        pub room_bytes: u64,
    }
}

/// The history.
#[derive(Debug, Clone)]
pub struct ReadHistory {
    files_max: u32,
    row_slots: u32,
    related: RelatedBlocks,
    /// What steps take.
    pub times: ReadTimes,
    /// How far expectations came true.
    pub trust: Trust,
    /// By number; none where a number is not in use.
    files: Vec<Option<Known>>,
    free: Vec<u32>,
    numbers: BTreeMap<MemberKey, u32>,
    arm: Option<Arm>,
    /// The file being visited, and the slot of it behind what was read last.
    visited: Option<(u32, u64)>,
    written: Option<u32>,
    /// Time of reads since the last visit began, ns.
    visit_ns: u64,
    /// Sums over all of it.
    pub totals: Totals,
}

impl ReadHistory {
    /// Nothing is known; at most `files_max` files will be, laid in rows of at most `row_slots`, of a disk
    /// that `disk` is like until its own times are known; its blocks are the slots in which places and
    /// lengths are counted.
    #[must_use]
    pub fn new(files_max: u32, row_slots: u32, disk: CostModel) -> Self {
        Self {
            files_max: files_max.max(8),
            row_slots,
            related: RelatedBlocks::new(0, row_slots),
            times: ReadTimes::new(disk),
            trust: Trust::new(),
            files: Vec::new(),
            free: Vec::new(),
            numbers: BTreeMap::new(),
            arm: None,
            visited: None,
            written: None,
            visit_ns: 0,
            totals: Totals::default(),
        }
    }

    /// Slots that are laid in one row at most.
    #[must_use]
    pub fn row_slots(&self) -> u32 {
        self.row_slots
    }

    /// What is read together.
    #[must_use]
    pub fn related(&self) -> &RelatedBlocks {
        &self.related
    }

    /// The file with number `number`.
    #[must_use]
    pub fn file(&self, number: u32) -> Option<&Known> {
        self.files.get(number as usize)?.as_ref()
    }

    /// The number of a file.
    #[must_use]
    pub fn number(&self, key: MemberKey) -> Option<u32> {
        self.numbers.get(&key).copied()
    }

    /// Every file known, by number.
    pub fn known(&self) -> impl Iterator<Item = (u32, &Known)> {
        self.files.iter().zip(0..).filter_map(|(file, number)| Some((number, file.as_ref()?)))
    }

    /// Files known.
    #[must_use]
    pub fn count(&self) -> usize {
        self.numbers.len()
    }

    /// Bytes it takes, about: what grows with the files.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let homes = self.files.iter().flatten().map(|file| file.home.capacity());
        self.related.memory_bytes()
            + self.files.capacity() * size_of::<Option<Known>>()
            + homes.sum::<usize>() * size_of::<Run>()
            + self.numbers.len() * (size_of::<(MemberKey, u32)>() + 8)
    }

    /// A request was carried out.
    pub fn observe(&mut self, request: &Request) {
        if request.is_read { self.read(request) } else { self.write(request) }
    }

    /// A part of a file was asked for that had been read ahead from `slot` before: of it is learnt as if
    /// it had been read then, but for the time.
    pub fn foreseen(&mut self, part: &Part, slot: u64) {
        if let Some(arm) = &mut self.arm {
            arm.end = slot;
        }
        self.read_part(part, slot, Some(0));
    }

    /// Nothing is known of what the disk did meanwhile.
    pub fn interrupted(&mut self) {
        (self.arm, self.visited, self.written) = (None, None, None);
    }

    /// The arm was outside of the file system.
    pub fn elsewhere(&mut self) {
        self.arm = None;
    }

    fn write(&mut self, request: &Request) {
        self.arm = None;
        for part in &request.parts {
            let Some(number) = self.number(part.file) else { continue };
            if self.written.replace(number) == Some(number) {
                continue;
            }
            self.related.write(number);
            if let Some(file) = &mut self.files[number as usize] {
                (file.visits, file.breaks, file.moves) = (0, 0, 0);
            }
        }
    }

    fn read(&mut self, request: &Request) {
        self.written = None;
        let step = self.arm.map(|arm| between(arm.end, request.slot));
        let jumps = u32::from(step != Some(0));
        let slots = u32::try_from(request.slots).unwrap_or(u32::MAX);
        self.times.note(jumps, slots, request.time_ns, step, &[]);
        self.totals.reads += 1;
        self.totals.read_slots += request.slots;
        self.totals.read_ns += request.time_ns;
        self.visit_ns += request.time_ns;
        let mut at = request.slot;
        let end = request.slot + request.slots;
        for (place, part) in request.parts.iter().enumerate() {
            let slots = part.slots.min(end - at);
            let step = if place == 0 { step } else { Some(0) };
            self.read_part(&Part { slots, ..*part }, at, step);
            self.totals.named_slots += slots;
            at += slots;
        }
        if at < end {
            self.arm = Some(Arm { end, home_end: end });
        }
    }

    /// A part of a file was read from `slot`, `step` slots behind where the arm was.
    fn read_part(&mut self, part: &Part, slot: u64, step: Option<i64>) {
        let number = self.number_of(part.file);
        let jumped = step.is_none_or(|step| {
            // What is streamed over faster than sought was put together well enough.
            step < 0 || self.times.mean_step_ns(step) >= self.times.observed().access_ns as f64
        });
        match self.visited {
            Some((visited, offset)) if visited == number => {
                if let Some(file) = &mut self.files[number as usize]
                    && jumped
                    && offset == part.offset
                {
                    file.breaks = file.breaks.saturating_add(1);
                    // The piece was read after the other in each visit.
                    self.trust.step(file.visits > 1);
                }
            }
            _ => self.visit(number, jumped),
        }
        self.visited = Some((number, part.offset + part.slots));
        self.credit(number, part, slot, step);
    }

    /// A visit of a file begins.
    fn visit(&mut self, number: u32, jumped: bool) {
        self.totals.visits += 1;
        let visit_ns = std::mem::take(&mut self.visit_ns);
        let times = self.related.read(number);
        let Some(file) = &mut self.files[number as usize] else { return };
        let trial = if jumped { 0 } else { file.trial };
        let was_read = file.visits > 0;
        file.visits = file.visits.saturating_add(1);
        file.last_visit = self.totals.visits;
        if jumped {
            self.trust.step(if times > 0 { times > 1 } else { was_read });
        }
        self.trust.made(times);
        self.trust.read(trial, visit_ns);
    }

    /// What this read saved, or lost, because files were moved.
    fn credit(&mut self, number: u32, part: &Part, slot: u64, step: Option<i64>) {
        let homes = self.homes(number, part, slot);
        let (mut home_ns, mut at) = (0.0, self.arm.map(|arm| arm.home_end));
        for run in &homes {
            if let Some(end) = at {
                home_ns += self.times.step_ns(between(end, run.slot), false);
            }
            at = Some(run.slot + run.slots);
        }
        if let Some(step) = step.filter(|_| self.arm.is_some()) {
            self.trust.credit(home_ns - self.times.step_ns(step, false));
        }
        let end = slot + part.slots;
        self.arm = Some(Arm { end, home_end: at.unwrap_or(end) });
    }

    /// Where a part of a file, which was read from `slot`, would lie if nothing had been moved.
    fn homes(&self, number: u32, part: &Part, slot: u64) -> Vec<Run> {
        let here = |offset: u64, slots| Run { offset, slot: slot + (offset - part.offset), slots };
        let home = self.file(number).map_or(&[][..], |file| &file.home);
        let mut runs = Vec::new();
        let (mut at, end) = (part.offset, part.offset + part.slots);
        for run in home {
            let (from, to) = (run.offset.max(at), (run.offset + run.slots).min(end));
            if from >= to {
                continue;
            }
            if from > at {
                runs.push(here(at, from - at));
            }
            let within = from - run.offset;
            runs.push(Run { offset: from, slot: run.slot + within, slots: to - from });
            at = to;
        }
        if at < end {
            runs.push(here(at, end - at));
        }
        runs
    }

    /// The number of `key`, which it is given if it has none.
    fn number_of(&mut self, key: MemberKey) -> u32 {
        if let Some(number) = self.number(key) {
            return number;
        }
        if self.numbers.len() as u32 >= self.files_max {
            self.forget_oldest();
        }
        let number = self.free.pop().unwrap_or(self.files.len() as u32);
        if number as usize == self.files.len() {
            self.files.push(None);
            self.related.ensure_blocks(number + 1);
        }
        self.files[number as usize] = Some(Known {
            key,
            visits: 0,
            breaks: 0,
            last_visit: self.totals.visits,
            moves: 0,
            trial: 0,
            home: Vec::new(),
            moved_to: 0,
        });
        self.numbers.insert(key, number);
        self.related.set_size(number, 1);
        number
    }

    /// Forgets the eighth of the files that was not read for longest; an eighth so that it is not done
    /// for every single file, chosen by us.
    fn forget_oldest(&mut self) {
        let mut ages: Vec<(u64, u32)> =
            self.known().map(|(number, file)| (file.last_visit, number)).collect();
        ages.sort_unstable();
        ages.truncate((ages.len() / 8).max(1));
        let gone: Vec<u32> = ages.into_iter().map(|(_, number)| number).collect();
        self.forget(&gone);
    }

    /// Forgets the files with these numbers.
    pub fn forget(&mut self, gone: &[u32]) {
        if gone.is_empty() {
            return;
        }
        self.related.delete_all(gone);
        for number in gone {
            if let Some(file) = self.files[*number as usize].take() {
                self.numbers.remove(&file.key);
                self.free.push(*number);
            }
            if self.visited.is_some_and(|(visited, _)| visited == *number) {
                self.visited = None;
            }
            if self.written == Some(*number) {
                self.written = None;
            }
        }
    }

    /// The file has `slots` slots.
    pub fn set_slots(&mut self, number: u32, slots: u32) {
        self.related.set_size(number, slots.max(1));
    }

    /// Takes from where the files lie now which are gone, how long the others are, and which were written
    /// since they were moved.
    pub fn settle_places(&mut self, places: &MemberPlaces) {
        let (mut gone, mut sizes, mut left) = (Vec::new(), Vec::new(), Vec::new());
        for (number, file) in self.known() {
            let runs = places.runs(number);
            match run_slots(runs) {
                0 => gone.push(number),
                slots => sizes.push((number, slots)),
            }
            if file.moved_to != 0 && place_sum(runs) != file.moved_to {
                left.push(number);
            }
        }
        for (number, slots) in sizes {
            self.set_slots(number, slots);
        }
        for number in left {
            self.left_place(number);
        }
        self.forget(&gone);
    }

    /// The file lies elsewhere than we had it lie: it was written since.
    pub fn left_place(&mut self, number: u32) {
        if let Some(file) = self.files.get_mut(number as usize).and_then(Option::as_mut) {
            (file.home, file.trial, file.moved_to) = (Vec::new(), 0, 0);
        }
    }

    /// The file was to be moved.
    pub fn tried(&mut self, number: u32) {
        if let Some(file) = self.files.get_mut(number as usize).and_then(Option::as_mut) {
            file.moves = file.moves.saturating_add(1);
        }
    }

    /// The file was moved from `before` to the place that `moved_to` tells.
    pub fn moved(&mut self, number: u32, before: &[Run], moved_to: u64) {
        let trial = self.trust.current();
        if let Some(file) = self.files.get_mut(number as usize).and_then(Option::as_mut) {
            if file.home.is_empty() {
                file.home = before[..before.len().min(HOME_PIECES_MAX)].to_vec();
            }
            (file.breaks, file.trial, file.moved_to) = (0, trial, moved_to);
        }
        self.totals.moved_files += 1;
    }

    /// All of it as words, for a file.
    #[must_use]
    pub fn words(&self) -> Vec<u64> {
        let mut words = Vec::new();
        words.extend(self.totals.words());
        words.extend(self.times.words());
        words.extend(self.trust.words());
        words.push(self.visit_ns);
        words.push(self.files.len() as u64);
        for file in &self.files {
            let Some(file) = file else {
                words.push(0);
                continue;
            };
            words.push(1);
            words.extend([
                file.key.number,
                file.key.birth_ns as u64,
                file.last_visit,
                file.moved_to,
            ]);
            words.push(u64::from(file.visits) << 32 | u64::from(file.breaks));
            words.push(u64::from(file.moves) << 8 | u64::from(file.trial));
            words.push(file.home.len() as u64);
            for run in &file.home {
                words.extend([run.offset, run.slot, run.slots]);
            }
        }
        words.extend(self.free.iter().map(|number| u64::from(*number)));
        words.extend(self.related.words());
        words
    }

    /// What [`Self::words`] gave; `None` if these are others.
    pub fn from_words(
        files_max: u32,
        row_slots: u32,
        disk: CostModel,
        words: &mut impl Iterator<Item = u64>,
    ) -> Option<Self> {
        let mut history = Self::new(files_max, row_slots, disk);
        let mut totals = [0; Totals::WORDS];
        for total in &mut totals {
            *total = words.next()?;
        }
        history.totals = Totals::of(totals);
        history.times = ReadTimes::from_words(disk, words)?;
        history.trust = Trust::from_words(words)?;
        history.visit_ns = words.next()?;
        let count = u32::try_from(words.next()?).ok()?;
        let mut unused = 0;
        for number in 0..count {
            if words.next()? == 0 {
                history.files.push(None);
                unused += 1;
                continue;
            }
            let file = known(words).filter(|file| file.trial <= history.trust.current())?;
            if history.numbers.insert(file.key, number).is_some() {
                return None;
            }
            history.files.push(Some(file));
        }
        let mut is_used: Vec<bool> = history.files.iter().map(Option::is_some).collect();
        for _ in 0..unused {
            let number = u32::try_from(words.next()?).ok()?;
            if std::mem::replace(is_used.get_mut(number as usize)?, true) {
                return None;
            }
            history.free.push(number);
        }
        history.related = RelatedBlocks::from_words(row_slots, count, words)?;
        history.related.ensure_blocks(count);
        // A limit that was lowered since.
        while history.numbers.len() as u32 > history.files_max {
            history.forget_oldest();
        }
        Some(history)
    }
}

/// Slots from the end of a read to the next.
fn between(end: u64, slot: u64) -> i64 {
    slot.wrapping_sub(end).cast_signed()
}

/// A file of [`ReadHistory::words`].
fn known(words: &mut impl Iterator<Item = u64>) -> Option<Known> {
    let key = MemberKey { number: words.next()?, birth_ns: words.next()? as i64 };
    let (last_visit, moved_to) = (words.next()?, words.next()?);
    let (counts, moves) = (words.next()?, words.next()?);
    let runs = usize::try_from(words.next()?).ok().filter(|runs| *runs <= HOME_PIECES_MAX)?;
    let mut home = Vec::with_capacity(runs);
    for _ in 0..runs {
        let run = Run { offset: words.next()?, slot: words.next()?, slots: words.next()? };
        // No file system is larger.
        let is_place = |number: u64| number < 1 << 52;
        if ![run.offset, run.slot, run.slots].into_iter().all(is_place) {
            return None;
        }
        home.push(run);
    }
    Some(Known {
        key,
        visits: (counts >> 32) as u32,
        breaks: counts as u32,
        last_visit,
        moves: (moves >> 8) as u8,
        trial: moves as u8,
        home,
        moved_to,
    })
}
