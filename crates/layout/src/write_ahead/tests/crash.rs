//! A full journal around the Fast File System, stopped after every disk write and within it.
//!
//! The disk of this test holds contents. Replaying what the ring holds over what the places hold must
//! give, at any time, what users had at the last commit: every block of it, read through the inodes
//! and indirect blocks that are found, in its version of then, and nothing else. Where the file
//! system transfers no metadata, the map is that of the last commit.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use agewell_core::{RandomStreams, Stream, uniform_below};
use proptest::prelude::*;

use super::spied::{BlockName, Content, Description, FileName, Heard, Spied, State, inode_place};
use crate::block_layout::{BlockLayout, FileBlock, Place};
use crate::ffs::{FastFileSystem, Parameters, Policies};
use crate::file_system_blocks::{ExaminedFileSystem, FileSystemBlocks, FileSystemBlocksSetting};
use crate::write_ahead::{JournalPlace, Journaled, WriteAhead, WriteAheadSetting};
use agewell_log::{BlockDevice, Purpose, Transfer};

/// Blocks of users' data that fit.
const CAPACITY: u32 = 160;
const BLOCK_BYTES: u64 = 8192;
/// Places of a block of the file system.
const UNITS: u32 = 8;

/// No block.
const NONE: u32 = u32::MAX;

/// A transaction that has been written, whatever has become of it since.
struct Transaction {
    position: u32,
    places: u32,
    records: Vec<(u32, Content)>,
    state: State,
}

/// A disk with a journal that can be looked at as after a crash.
struct CrashDisk {
    setting: WriteAheadSetting,
    has_metadata: bool,
    /// Where each inode is.
    inode_places: Vec<u32>,
    heard: Rc<RefCell<Heard>>,
    /// What everything held at the beginning.
    initial: Rc<Description>,
    places: Vec<Option<Content>>,
    /// The transaction at each place of the ring.
    ring: Vec<Option<usize>>,
    /// Where the first place of the ring says that the journal begins, and the number of the
    /// transaction there.
    start: (u32, usize),
    transactions: Vec<Transaction>,
    /// Those that are completely on the disk.
    completed: usize,
    /// What the journal has had last for each place.
    committed: BTreeMap<u32, Content>,
    /// Batches that are open, and what has been issued in them.
    brackets: u32,
    together: Vec<Vec<(u32, Content)>>,
    /// Whether what is issued goes on in the background, what is still to be done of that, and the
    /// transactions that there were when it began.
    is_behind: bool,
    behind: VecDeque<Vec<(u32, Content)>>,
    behind_from: usize,
    crashes: u32,
    checkpoints: u32,
    /// Transactions written while something went on in the background, and how often it was
    /// drained.
    overtaking: u32,
    waited: u32,
    /// Nothing is done in the background until it is waited for.
    is_slow: bool,
}

impl CrashDisk {
    fn new(setting: WriteAheadSetting, has_metadata: bool, spied: &Spied) -> Self {
        let system = spied.inner.system();
        let inodes = system.usage().inodes;
        Self {
            setting,
            has_metadata,
            inode_places: (0..inodes).map(|number| inode_place(system, number)).collect(),
            initial: spied.heard.borrow().description(),
            heard: Rc::clone(&spied.heard),
            places: vec![None; setting.inner_places as usize],
            ring: vec![None; setting.journal_places as usize],
            start: (1, 0),
            transactions: Vec::new(),
            completed: 0,
            committed: BTreeMap::new(),
            brackets: 0,
            together: Vec::new(),
            is_behind: false,
            behind: VecDeque::new(),
            behind_from: 0,
            crashes: 0,
            checkpoints: 0,
            overtaking: 0,
            waited: 0,
            is_slow: false,
        }
    }

    fn ring_first(&self) -> u32 {
        match self.setting.place {
            JournalPlace::Start => 0,
            JournalPlace::Middle => self.setting.inner_places / 2,
            JournalPlace::OwnDisk => self.setting.inner_places,
        }
    }

    /// The layout's place of one of the disk.
    fn inner_place(&self, place: u32) -> u32 {
        let (first, places) = (self.ring_first(), self.setting.journal_places);
        assert!(place < first || place >= first + places, "{place} is of the journal");
        if place < first { place } else { place - places }
    }

    /// What was committed last, with places as replaying the ring leaves them.
    fn replay(&self) -> (usize, BTreeMap<u32, &Content>) {
        let (mut position, mut number) = self.start;
        let mut replayed = BTreeMap::new();
        while let Some(transaction) = self.transactions.get(number) {
            let (at, end) = (transaction.position, transaction.position + transaction.places);
            let is_whole = (at..end).all(|position| self.ring[position as usize] == Some(number));
            if !is_whole {
                break;
            }
            assert!(at == position || at == 1, "transaction {number} cannot be found");
            replayed.extend(transaction.records.iter().map(|(place, content)| (*place, content)));
            (position, number) = (end, number + 1);
        }
        (number, replayed)
    }

    /// A crash now finds all that was committed.
    fn crash(&mut self) {
        self.crashes += 1;
        let (number, replayed) = self.replay();
        assert_eq!(number, self.completed, "committed transactions are found");
        let nothing = State::default();
        let last = number.checked_sub(1).map(|last| &self.transactions[last]);
        let state = last.map_or(&nothing, |last| &last.state);
        let at = |place: u32| {
            let replayed = replayed.get(&place).copied();
            replayed.or(self.places[place as usize].as_ref())
        };
        if self.has_metadata {
            self.check_described(state, at);
        } else {
            for (name, (version, places)) in &state.placed {
                assert_eq!(places.len() as u32, self.setting.block_places, "{name:?}");
                for place in places {
                    check_place(*name, *version, *place, at);
                }
            }
        }
    }

    /// Every block is found through inodes and indirect blocks.
    fn check_described<'a>(&'a self, state: &State, at: impl Fn(u32) -> Option<&'a Content>) {
        let description_at = |place: u32| match at(place) {
            Some(Content::Metadata(description)) => description,
            Some(Content::Data(name, _)) => panic!("{name:?} where metadata is, at {place}"),
            None => &self.initial,
        };
        let mut found = 0;
        let pieces = self.setting.block_places / UNITS;
        let mut check = |file: FileName, block: u32, place: u32| {
            let name = (file, block / pieces);
            if let Some(version) = state.versions.get(&name) {
                for unit in place..place + UNITS {
                    check_place(name, *version, unit, &at);
                }
                found += 1;
            } else {
                assert!(state.holes.contains(&name), "{name:?} has been deleted");
            }
        };
        for (number, place) in (0..).zip(&self.inode_places) {
            let Some(inode) = description_at(*place).inodes.get(&number) else { continue };
            for (block, place) in &inode.direct {
                check(inode.file, *block, *place);
            }
            let Some(indirect) = inode.indirect else { continue };
            let named = description_at(indirect).indirect.get(&indirect);
            for unit in indirect..indirect + UNITS {
                let unit_says = description_at(unit).indirect.get(&indirect);
                assert_eq!(unit_says, named, "an indirect block in two versions");
            }
            for (block, place) in named.expect("what an inode names is an indirect block") {
                check(inode.file, *block, *place);
            }
        }
        assert_eq!(found, state.versions.len() as u32 * pieces, "blocks are lost");
    }

    fn write_transaction(&mut self, transfer: &Transfer, contents: &[u32]) {
        let header = u64::from(transfer.header_bytes).div_ceil(self.setting.place_bytes) as u32;
        let position = transfer.slot - self.ring_first();
        let places = transfer.blocks + header;
        assert!(position + places <= self.setting.journal_places, "beyond the ring's end");
        let heard = Rc::clone(&self.heard);
        let mut heard = heard.borrow_mut();
        let records = heard.take_sent(transfer.blocks);
        for ((place, content), block) in records.iter().zip(contents) {
            let is_data = matches!(content, Content::Data(..));
            assert_eq!(is_data, *block != NONE, "what was sent to {place}");
        }
        assert!(!heard.has_sent(), "a group is one transaction");
        let number = self.transactions.len();
        let state = heard.state();
        self.transactions.push(Transaction { position, places, records, state });
        for place in 0..places {
            if place == places / 2 {
                self.crash();
            }
            self.ring[(position + place) as usize] = Some(number);
        }
        self.completed += 1;
        let records = &self.transactions[number].records;
        self.committed.extend(records.iter().map(|(place, content)| (*place, content.clone())));
    }

    /// The places of a propagation and what goes there.
    fn propagated(&self, transfer: &Transfer) -> Vec<(u32, Content)> {
        let content_at = |place| self.committed.get(&place).expect("the journal has had it");
        (transfer.slot..transfer.slot + transfer.blocks)
            .map(|place| self.inner_place(place))
            .map(|place| (place, content_at(place).clone()))
            .collect()
    }

    fn propagate(&mut self, contents: Vec<(u32, Content)>) {
        let half = contents.len() / 2;
        for (unit, (place, content)) in contents.into_iter().enumerate() {
            if unit == half {
                self.crash();
            }
            self.places[place as usize] = Some(content);
        }
        self.crash();
    }

    /// Does some of what goes on in the background, from either end: it was issued as a batch.
    fn go_on(&mut self, transfers: usize) {
        for number in 0..transfers {
            let is_last = (self.transactions.len() + number).is_multiple_of(2);
            let next = if is_last { self.behind.pop_back() } else { self.behind.pop_front() };
            if let Some(next) = next {
                self.propagate(next);
            }
        }
    }

    /// Versions of what the last commit found, and whether they are where blocks were sent last.
    fn versions(&self) -> BTreeMap<BlockName, u64> {
        let Some(last) = self.transactions.last() else { return BTreeMap::new() };
        if self.has_metadata {
            return last.state.versions.clone();
        }
        last.state.placed.iter().map(|(name, (version, _))| (*name, *version)).collect()
    }
}

fn check_place<'a>(
    name: BlockName,
    version: u64,
    place: u32,
    at: impl Fn(u32) -> Option<&'a Content>,
) {
    match at(place) {
        Some(Content::Data(found, of)) if (*found, *of) == (name, version) => {}
        Some(Content::Data(found, of)) => {
            panic!("{found:?} in version {of}, not {name:?} in version {version}, at {place}")
        }
        Some(Content::Metadata(_)) => panic!("metadata, not {name:?}, at {place}"),
        None => panic!("{name:?} is named at {place} and has never been there"),
    }
}

impl BlockDevice for CrashDisk {
    fn transfer(&mut self, transfer: &Transfer, contents: &[u32]) {
        match transfer.purpose {
            Purpose::Propagate => {
                let contents = self.propagated(transfer);
                if self.is_behind {
                    self.behind.push_back(contents);
                } else {
                    assert!(self.brackets > 0, "a checkpoint issues its writes together");
                    self.together.push(contents);
                }
                return;
            }
            Purpose::Journal => {
                assert_eq!(self.brackets, 0, "a commit goes by itself");
                if transfer.slot == self.ring_first() {
                    let last = &self.transactions[self.behind_from - 1];
                    self.start = (last.position + last.places, self.behind_from);
                    self.checkpoints += 1;
                } else {
                    self.overtaking += u32::from(!self.behind.is_empty());
                    self.write_transaction(transfer, contents);
                    // From nothing to more than there is.
                    self.go_on(if self.is_slow { 0 } else { self.transactions.len() % 5 });
                }
            }
            purpose => {
                assert!(!purpose.writes(), "{purpose:?} goes past the journal");
                return;
            }
        }
        self.crash();
    }

    fn begin_batch(&mut self) {
        self.brackets += 1;
    }

    /// A batch is done in another order than it was issued.
    fn end_batch(&mut self) {
        self.brackets -= 1;
        if self.brackets == 0 {
            for contents in std::mem::take(&mut self.together).into_iter().rev() {
                self.propagate(contents);
            }
        }
    }

    /// The ring has a disk of its own, or nothing goes on in the background.
    fn begin_background(&mut self) {
        assert!(self.behind.is_empty(), "one checkpoint at a time");
        self.is_behind = self.setting.place == JournalPlace::OwnDisk;
        self.behind_from = self.transactions.len();
    }

    fn end_background(&mut self) {
        self.is_behind = false;
    }

    fn is_drained(&self) -> bool {
        self.behind.is_empty()
    }

    fn drain(&mut self) {
        self.waited += u32::from(!self.behind.is_empty());
        self.go_on(self.behind.len());
    }
}

/// What is done.
#[derive(Debug, Clone)]
struct Case {
    realloc: bool,
    /// Blocks of the file system in one of the layout.
    pieces: u32,
    has_metadata: bool,
    place: JournalPlace,
    checkpoint_commits: u32,
    group_places: u32,
    clients: u32,
    buffer_blocks: u32,
    files: u32,
    /// Blocks aimed at, of a hundred that fit.
    fill_pct: u32,
    /// Deletions of a hundred operations.
    deletions: u32,
    steps: u32,
    /// What is in the background is done only when it is waited for.
    is_slow: bool,
    seed: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    let places = vec![JournalPlace::Start, JournalPlace::Middle, JournalPlace::OwnDisk];
    let journal = (prop::sample::select(places), 0_u32..4, 4_u32..300);
    let sizes = (1_u32..4, prop_oneof![1_u32..14, 14_u32..80], 1_u32..8, 20_u32..130);
    let load = (0_u32..40, 20_u32..200, any::<bool>(), any::<u64>());
    let system = (any::<bool>(), 1_u32..3, any::<bool>());
    (system, journal, sizes, load).prop_map(
        |((realloc, pieces, has_metadata), journal, sizes, load)| Case {
            realloc,
            pieces,
            has_metadata,
            place: journal.0,
            checkpoint_commits: journal.1,
            group_places: journal.2,
            clients: sizes.0,
            buffer_blocks: sizes.1,
            files: sizes.2,
            fill_pct: sizes.3,
            deletions: load.0,
            steps: load.1,
            is_slow: load.2,
            seed: load.3,
        },
    )
}

/// A file system of groups of some thirty blocks.
fn file_system(case: &Case) -> FastFileSystem {
    let policies = if case.realloc { Policies::REALLOC } else { Policies::PLAIN };
    let block_bytes = BLOCK_BYTES as u32 / case.pieces;
    let parameters = Parameters {
        block_bytes,
        fragment_bytes: block_bytes / UNITS,
        sectors_per_track: 32,
        heads: 2,
        cylinders_per_group: 12,
        minfree_pct: 0,
        bytes_per_inode: 16_384,
        ..Parameters::smith_1996(policies)
    };
    let parameters = parameters.with_data_bytes(u64::from(CAPACITY) * BLOCK_BYTES).unwrap();
    FastFileSystem::new(&parameters).unwrap()
}

struct Run {
    layout: WriteAhead<Spied>,
    disk: CrashDisk,
    stream: Stream,
    /// The block of the layout that is each block of a file.
    blocks: BTreeMap<FileBlock, u32>,
    free: Vec<u32>,
}

impl Run {
    fn new(case: &Case) -> Self {
        let system = file_system(case);
        let inner_places = (system.total_sectors() / u64::from(system.unit_sectors())) as u32;
        let setting = FileSystemBlocksSetting {
            block_bytes: BLOCK_BYTES,
            clients: case.clients,
            buffer_blocks: case.buffer_blocks,
            metadata: case.has_metadata,
            metadata_cache_blocks: 4,
            transfer_bytes_max: 56 << 10,
        };
        let heard = Rc::new(RefCell::new(Heard::new(case.pieces)));
        let spied = Spied { inner: FileSystemBlocks::new(setting, system), heard };
        // Twice what one operation adds fits in one transaction; where there is nothing but data,
        // what all clients have waiting, too.
        let data_alone = if case.has_metadata { 0 } else { case.clients * case.buffer_blocks };
        let block_places = UNITS * case.pieces;
        let group = 400 * case.pieces + data_alone * block_places;
        let setting = WriteAheadSetting {
            journaled: Journaled::Full,
            place: case.place,
            inner_places,
            place_bytes: BLOCK_BYTES / u64::from(block_places),
            block_places,
            journal_places: 4 * group,
            group_places: case.group_places,
            checkpoint_commits: case.checkpoint_commits,
        };
        let mut disk = CrashDisk::new(setting, case.has_metadata, &spied);
        disk.is_slow = case.is_slow;
        let mut layout = WriteAhead::new(setting, spied);
        layout.ensure_blocks(4 * CAPACITY);
        Self {
            layout,
            disk,
            stream: RandomStreams::new(case.seed).stream("operations"),
            blocks: BTreeMap::new(),
            free: (0..4 * CAPACITY).rev().collect(),
        }
    }

    fn draw(&mut self, below: u32) -> u32 {
        uniform_below(&mut self.stream, u64::from(below.max(1))) as u32
    }

    fn step(&mut self, case: &Case) {
        let kind = self.draw(100);
        let (client, file) = (self.draw(case.clients), self.draw(case.files));
        if kind < case.deletions {
            self.delete(file);
        } else if kind < 85 {
            self.write_some(case, file, client);
        } else if kind < 90 {
            let blocks: Vec<u32> = self.of_file(file).map(|(_, block)| block).collect();
            self.layout.read(&blocks, Purpose::Read, &mut self.disk);
        } else if kind < 95 {
            self.layout.sync(client, &mut self.disk).unwrap();
            assert!(!self.disk.heard.borrow().waits_for(client), "what was synced waits");
            self.check_synced();
        } else if kind < 97 {
            self.layout.sync_all(&mut self.disk).unwrap();
            self.check_synced();
            // Without metadata there may be nothing to commit for a deletion.
            let heard = self.disk.heard.borrow();
            let is_same = self.disk.versions() == heard.versions_sent();
            assert!(is_same || !case.has_metadata, "what was deleted is there");
        } else {
            self.layout.work_ahead(0, &mut self.disk).unwrap();
        }
    }

    /// What no client waits for is committed.
    fn check_synced(&self) {
        let versions = self.disk.versions();
        for (name, version) in self.disk.heard.borrow().versions_sent() {
            assert_eq!(versions.get(&name), Some(&version), "{name:?} is synced");
        }
    }

    fn of_file(&self, file: u32) -> impl Iterator<Item = (FileBlock, u32)> + '_ {
        let names = FileBlock { file, block: 0 }..FileBlock { file: file + 1, block: 0 };
        self.blocks.range(names).map(|(name, block)| (*name, *block))
    }

    fn write_some(&mut self, case: &Case, file: u32, client: u32) {
        let file_blocks = (CAPACITY * case.fill_pct / 100 / case.files).max(1);
        let first = self.draw(file_blocks);
        let blocks = 1 + self.draw(12);
        for block in first..(first + blocks).min(file_blocks) {
            let name = FileBlock { file, block };
            let known = self.blocks.get(&name).copied();
            let number = known.or_else(|| self.free.pop()).expect("there are numbers enough");
            let done = self.layout.write(number, name, client, &mut self.disk);
            if done.is_ok() {
                self.blocks.insert(name, number);
            } else if self.layout.place_of(number) == Place::Nowhere {
                assert!(known.is_none(), "an update has lost {name:?}");
                self.free.push(number);
                return;
            }
        }
    }

    /// The end of a file, all of it, or a block within.
    fn delete(&mut self, file: u32) {
        let blocks: Vec<_> = self.of_file(file).collect();
        let count = blocks.len() as u32;
        let chosen = match self.draw(3) {
            0 => 0..count,
            1 => self.draw(count)..count,
            _ => {
                let at = self.draw(count);
                at..(at + 1).min(count)
            }
        };
        for (name, block) in &blocks[chosen.start as usize..chosen.end as usize] {
            self.layout.delete(*block, &mut self.disk);
            self.blocks.remove(name);
            self.free.push(*block);
        }
        if self.of_file(file).next().is_none() && self.draw(2) == 0 {
            self.layout.remove(file, &mut self.disk);
        }
    }
}

/// Crashes tried, checkpoints, blocks moved, and commits while a checkpoint went on.
fn run(case: &Case) -> (u32, u32, u64, u32) {
    let mut run = Run::new(case);
    for step in 0..case.steps {
        run.step(case);
        if step % 16 == 0 {
            run.layout.verify();
        }
    }
    run.layout.verify();
    run.disk.drain();
    (run.disk.crashes, run.disk.checkpoints, run.layout.counts().moved_blocks, run.disk.overtaking)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_crash_at_any_time_leaves_what_was_committed(case in cases()) {
        run(&case);
    }
}

/// The property above is about something: the journal goes round, and blocks are moved that had been
/// committed elsewhere.
#[test]
fn a_long_run_with_moves_survives_every_crash() {
    let places = [JournalPlace::Start, JournalPlace::OwnDisk];
    for (has_metadata, place) in places.iter().flat_map(|place| [(false, *place), (true, *place)]) {
        let case = Case {
            realloc: true,
            pieces: 1,
            has_metadata,
            place,
            checkpoint_commits: 0,
            group_places: 60,
            clients: 2,
            buffer_blocks: 3,
            files: 5,
            fill_pct: 95,
            deletions: 12,
            steps: 600,
            is_slow: false,
            seed: 1,
        };
        let (crashes, checkpoints, moved, overtaking) = run(&case);
        // A journal on a disk of its own goes on while what it held is propagated.
        assert_eq!(overtaking > 20, place == JournalPlace::OwnDisk, "{overtaking}");
        assert!(
            crashes > 2000 && checkpoints > 5 && moved > 100,
            "{crashes} {checkpoints} {moved}"
        );
    }
}

/// A ring that comes round to records of a checkpoint under way waits for it.
#[test]
fn no_record_is_written_over_before_its_place_is_written() {
    let case = Case {
        realloc: false,
        pieces: 1,
        has_metadata: false,
        place: JournalPlace::OwnDisk,
        checkpoint_commits: 0,
        group_places: 1000,
        clients: 1,
        buffer_blocks: 24,
        files: 5,
        fill_pct: 95,
        deletions: 2,
        steps: 2000,
        is_slow: true,
        seed: 1,
    };
    let mut run = Run::new(&case);
    (0..case.steps).for_each(|_| run.step(&case));
    // Every checkpoint is waited for by the next one at the latest; some must have been earlier.
    assert!(run.disk.waited > 20, "{}", run.disk.waited);
}
