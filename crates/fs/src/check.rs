//! Looking at everything that a file system on a store consists of, whatever state it is in.
//!
//! All nodes that can be reached are walked, what they say is held against itself and against the blocks that
//! the store holds, and each thing that is not as it should be is told with the file that it is about.
//! Nothing is changed, nothing loops, and memory grows with the number of files and extents.

mod items;
mod repair;
mod salvage;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use agewell_store::device::Disk;
use agewell_store::{Store, StoreError};
use rustix::fs::FileType;

use crate::directory::FIRST_ENTRY;
use crate::format::{
    Extent, ExtentState, HAS_ATTRIBUTES, Inode, ROOT_INODE, SUPERBLOCK, Superblock,
};
use crate::sharing::Piece;
use crate::{FsError, journal};

pub use repair::{Repaired, repair};
pub use salvage::{Salvage, Salvaged, salvage};

/// Findings that are kept, so that memory is bounded; what there are more is counted.
const FINDINGS_MAX: usize = 10_000;

/// How thoroughly a file system is looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckOptions {
    /// All data is read and held against its checksums.
    pub reads_data: bool,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// There is no superblock that can be read.
    Superblock(&'static str),
    /// A node cannot be used, and what is below it is not known.
    Node {
        /// Its block.
        block: u32,
        /// What is wrong.
        what: &'static str,
    },
    /// The journal cannot be used, and what it says of nodes is not known.
    Journal {
        /// A block of it, or one that it is about.
        block: u32,
        /// What is wrong.
        what: &'static str,
    },
    /// What the journal said last may be lost: of the changes before a crash those of the last sync.
    LastOfJournal {
        /// A block of it.
        block: u32,
        /// What is wrong.
        what: &'static str,
    },
    /// An item cannot be read.
    Item {
        /// Its kind.
        kind: u8,
        /// Its offset.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// There are items of a file, but no inode.
    NoInode,
    /// An inode says something that cannot be.
    Inode(&'static str),
    /// A file has more or fewer names than it counts.
    Links {
        /// Those that it counts.
        counted: u32,
        /// Those that it has.
        found: u32,
    },
    /// A file has no name, and nobody knows that it is to be removed.
    Lost,
    /// A file is to be removed, and has names.
    NotOrphan,
    /// A list of files has one that there is not.
    ListedNotThere {
        /// Whether it is the list of those to be removed.
        is_orphan: bool,
    },
    /// A directory has more or fewer entries than it counts.
    Entries {
        /// Those that it counts.
        counted: u64,
        /// Those that it has.
        found: u64,
    },
    /// An entry leads to a file that there is not.
    Dangling {
        /// Its number.
        entry: u64,
    },
    /// An entry says another type than the file has.
    EntryType {
        /// Its number.
        entry: u64,
    },
    /// An entry is not found by its name.
    Unnamed {
        /// Its number.
        entry: u64,
    },
    /// A name leads to an entry that is not there, or has another name.
    NameWithoutEntry {
        /// The offset of its item.
        offset: u64,
    },
    /// Two entries of a directory have the same name.
    SameName {
        /// The number of the second.
        entry: u64,
    },
    /// A directory has another place than it says.
    Parent {
        /// What it says.
        said: u64,
        /// Where it is.
        found: u64,
    },
    /// A directory is in several places.
    SeveralParents {
        /// The number of the entry of a further one.
        entry: u64,
        /// In which directory that is.
        directory: u64,
    },
    /// The next entry of a directory would take the place of one that is there.
    NextEntry {
        /// The last that is there.
        last: u64,
    },
    /// Directories lie in one another.
    Cycle,
    /// A file has more or fewer blocks than it counts.
    Blocks {
        /// Those that it counts.
        counted: u64,
        /// Those that it has.
        found: u64,
    },
    /// A file has extents where it may have none.
    Extents(&'static str),
    /// A file has data beyond its end, which would come back when it grows.
    BeyondEnd,
    /// A block is in use twice.
    Twice {
        /// The block.
        block: u32,
    },
    /// Blocks that a file has are not there.
    Missing {
        /// The first.
        block: u32,
        /// How many, of one extent.
        count: u32,
    },
    /// Data of a file is not what was written, or cannot be read.
    Damaged {
        /// The block.
        block: u32,
        /// Where in the file, in bytes.
        offset: u64,
    },
    /// It is not right how many have blocks.
    Sharers {
        /// The first block.
        block: u32,
        /// How many blocks.
        count: u32,
        /// How many have them.
        found: u32,
    },
    /// More or fewer blocks are promised than is counted.
    Reserved {
        /// Those that are counted.
        counted: u64,
        /// Those that are promised.
        found: u64,
    },
    /// Whether there are extended attributes is not what the inode says.
    AttributesFlag {
        /// Whether there are.
        are_there: bool,
    },
    /// Blocks that the store holds are nobody's.
    Leaked {
        /// The first.
        block: u32,
        /// How many follow one another.
        count: u32,
    },
}

impl Problem {
    /// What becomes of it when the file system is repaired; none: nothing, as there is no one right answer.
    #[must_use]
    pub fn mend(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoInode => "what there is of it is removed",
            Self::LastOfJournal { .. } => "what was changed last may be as it was before",
            Self::Links { .. } | Self::Entries { .. } | Self::Blocks { .. } => {
                "it is counted again"
            }
            Self::Sharers { .. } | Self::Reserved { .. } => "they are counted again",
            Self::Lost => "it gets a name in /lost+found, or is removed if it had none",
            Self::NotOrphan | Self::ListedNotThere { .. } => "the list forgets it",
            Self::Dangling { .. } | Self::SeveralParents { .. } => "the entry is removed",
            Self::BeyondEnd => "its blocks beyond the end are freed",
            Self::EntryType { .. } => "the entry says what the file is",
            Self::Unnamed { .. } => "the name is entered",
            Self::NameWithoutEntry { .. } => "the name is removed",
            Self::Parent { .. } => "it says where it is",
            Self::NextEntry { .. } => "the next entry comes behind the last",
            Self::AttributesFlag { .. } => "the inode says so",
            Self::Leaked { .. } => "they are freed",
            _ => return None,
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Superblock(what) => write!(out, "the superblock: {what}"),
            Self::Node { block, what } => write!(out, "block {block}: {what}"),
            Self::Journal { block, what } => write!(out, "the journal: block {block}: {what}"),
            Self::LastOfJournal { block, what } => {
                write!(out, "the journal: block {block}, with what was changed last: {what}")
            }
            Self::Item { kind, offset, what } => {
                write!(out, "the item of kind {kind} at {offset}: {what}")
            }
            Self::NoInode => write!(out, "it has no inode"),
            Self::Inode(what) | Self::Extents(what) => write!(out, "{what}"),
            Self::Links { counted, found } => write!(out, "it has {found} names, not {counted}"),
            Self::Lost => write!(out, "it has no name"),
            Self::NotOrphan => write!(out, "it is to be removed, and has names"),
            Self::ListedNotThere { .. } => write!(out, "a list has it, and it is not there"),
            Self::Entries { counted, found } => {
                write!(out, "it has {found} entries, not {counted}")
            }
            Self::Dangling { entry } => write!(out, "entry {entry} leads to no file"),
            Self::EntryType { entry } => write!(out, "entry {entry} says another type"),
            Self::Unnamed { entry } => write!(out, "entry {entry} is not found by its name"),
            Self::NameWithoutEntry { offset } => {
                write!(out, "the name item {offset} leads to no entry of that name")
            }
            Self::SameName { entry } => write!(out, "entry {entry} has the name of another"),
            Self::Parent { said, found } => write!(out, "it is in {found}, and says {said}"),
            Self::SeveralParents { entry, directory } => {
                write!(out, "entry {entry} of directory {directory} leads to it as well")
            }
            Self::NextEntry { last } => write!(out, "entries after {last} are not free"),
            Self::Cycle => write!(out, "it lies within itself"),
            Self::Blocks { counted, found } => write!(out, "it has {found} blocks, not {counted}"),
            Self::BeyondEnd => write!(out, "it has data beyond its end"),
            Self::Twice { block } => write!(out, "block {block} is in use twice"),
            Self::Missing { block, count } => {
                write!(out, "{count} blocks from {block} on are not there")
            }
            Self::Damaged { block, offset } => {
                write!(out, "block {block} at byte {offset} of it is damaged")
            }
            Self::Sharers { block, count, found } => {
                write!(out, "{found} have the {count} blocks from {block} on, which is not said")
            }
            Self::Reserved { counted, found } => {
                write!(out, "{found} blocks are promised, not {counted}")
            }
            Self::AttributesFlag { are_there: true } => {
                write!(out, "it has extended attributes, and the inode does not say so")
            }
            Self::AttributesFlag { are_there: false } => {
                write!(out, "it has no extended attributes, and the inode says so")
            }
            Self::Leaked { block, count } => {
                write!(out, "{count} blocks from {block} on are nobody's")
            }
        }
    }
}

/// A problem, and the file that it is about, if it is about one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The inode.
    pub inode: Option<u64>,
    /// A path of the file, if it has one.
    pub path: Option<Vec<u8>>,
    /// What is wrong.
    pub problem: Problem,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.path, self.inode) {
            (Some(path), _) => write!(out, "{}: ", String::from_utf8_lossy(path))?,
            (None, Some(inode)) => write!(out, "file {inode}: ")?,
            (None, None) => {}
        }
        write!(out, "{}", self.problem)
    }
}

/// What was looked at, and what was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// What is not as it should be.
    pub findings: Vec<Finding>,
    /// Further ones, which are not kept.
    pub further: u64,
    /// Inodes.
    pub inodes: u64,
    /// Nodes of the tree.
    pub nodes: u64,
    /// Blocks of data.
    pub data_blocks: u64,
}

impl Checked {
    /// Whether everything is as it should be.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

/// What is known of a file.
#[derive(Debug, Clone, Default)]
struct Known {
    inode: Option<Inode>,
    names: u32,
    /// An entry that leads to it: directory, number, name.
    place: Option<(u64, u64, Vec<u8>)>,
    entries: u64,
    last_entry: u64,
    subdirectories: u32,
    blocks: u64,
    /// The first block of it behind those with data.
    data_end: u64,
    content_bytes: u64,
    has_attributes: bool,
    is_orphan: bool,
    is_shrinking: bool,
}

/// An extent, and whose it is.
#[derive(Debug, Clone, Copy)]
struct Owned {
    inode: u64,
    extent: Extent,
}

/// What a walk has found.
#[derive(Debug)]
struct Found {
    checked: Checked,
    /// Findings without paths.
    problems: Vec<(Option<u64>, Problem)>,
    known: BTreeMap<u64, Known>,
    /// Entries that lead to a file, of which the type is still to be compared: directory, entry, inode, type.
    entries: Vec<(u64, u64, u64, FileType)>,
    extents: Vec<Owned>,
    counted: Vec<Piece>,
    /// Blocks in use, a bit each.
    in_use: Vec<u64>,
    promised: u64,
    /// Not all nodes could be read.
    is_partial: bool,
    superblock: Option<Superblock>,
    /// Nodes as the journal leaves them.
    journaled: BTreeMap<u32, Vec<u8>>,
    /// Nodes that the journal does not fit, and why.
    unfit: BTreeMap<u32, &'static str>,
}

impl Found {
    /// Nothing yet.
    fn new<D: Disk>(store: &Store<D>) -> Self {
        let words = (store.geometry().blocks as usize).div_ceil(64);
        Self {
            checked: Checked::default(),
            problems: Vec::new(),
            known: BTreeMap::new(),
            entries: Vec::new(),
            extents: Vec::new(),
            counted: Vec::new(),
            in_use: vec![0; words],
            promised: 0,
            is_partial: false,
            superblock: None,
            journaled: BTreeMap::new(),
            unfit: BTreeMap::new(),
        }
    }

    fn tell(&mut self, inode: u64, problem: Problem) {
        self.tell_of((inode > 0).then_some(inode), problem);
    }

    fn tell_of(&mut self, inode: Option<u64>, problem: Problem) {
        if self.problems.len() < FINDINGS_MAX {
            self.problems.push((inode, problem));
        } else {
            self.checked.further += 1;
        }
    }

    /// Notes that `block` is in use; whether it was already.
    fn claim(&mut self, block: u32) -> bool {
        let (word, bit) = (block as usize / 64, 1 << (block % 64));
        let was = self.in_use[word] & bit != 0;
        self.in_use[word] |= bit;
        was
    }

    /// A path of a file: nothing if it has none.
    fn path(&self, inode: u64) -> Option<Vec<u8>> {
        if inode == ROOT_INODE {
            return Some(b"/".to_vec());
        }
        let mut parts = Vec::new();
        let mut at = inode;
        let mut bytes = 0;
        while at != ROOT_INODE {
            let (directory, _, name) = self.known.get(&at)?.place.as_ref()?;
            bytes += name.len() + 1;
            // Longer than any that can be opened: probably it never ends.
            if bytes > 1 << 16 {
                return None;
            }
            parts.push(name);
            at = *directory;
        }
        let path = parts.iter().rev().flat_map(|part| [b"/", part.as_slice()].concat());
        Some(path.collect())
    }
}

/// Looks at the file system in `store`, in which nothing that operations have done may wait still.
///
/// # Errors
/// If the store itself fails in a way that is no damage.
pub fn check<D: Disk>(store: &Store<D>, options: &CheckOptions) -> Result<Checked, FsError> {
    Ok(look(store, *options)?.checked)
}

/// The same, with all that was found.
fn look<D: Disk>(store: &Store<D>, options: CheckOptions) -> Result<Found, FsError> {
    let mut found = Found::new(store);
    found.claim(SUPERBLOCK);
    let mut block = vec![0; store.geometry().block_bytes as usize];
    match walk::read(store, SUPERBLOCK, &mut block)? {
        Some(what) => found.tell(0, Problem::Superblock(what)),
        None => match Superblock::decode(&block) {
            Ok(superblock) => found.superblock = Some(superblock),
            Err(_) => found.tell(0, Problem::Superblock("it is none that can be used")),
        },
    }
    find_journal(store, &mut found)?;
    let mut items = items::Items::new(store.geometry().block_bytes as usize);
    walk::walk(store, &mut found, |found, key, value| items.see(found, key, value))?;
    items.end(&mut found);
    compare_blocks(store, &mut found);
    compare_entries(&mut found);
    compare_files(&mut found, store.geometry().block_bytes.into());
    if options.reads_data {
        read_data(store, &mut found)?;
    }
    for (inode, problem) in std::mem::take(&mut found.problems) {
        let path = inode.and_then(|inode| found.path(inode));
        found.checked.findings.push(Finding { inode, path, problem });
    }
    Ok(found)
}

/// What the journal says that the nodes are.
fn find_journal<D: Disk>(store: &Store<D>, found: &mut Found) -> Result<(), FsError> {
    let Some(superblock) = &found.superblock else { return Ok(()) };
    let range = superblock.journal.clone();
    match journal::replay(store, &range) {
        Ok(replayed) => {
            found.journaled = replayed.nodes;
            found.unfit = replayed.unfit;
            if let Some((block, what)) = replayed.lost {
                found.tell(0, Problem::LastOfJournal { block, what });
            }
        }
        Err(FsError::Structure { number, what }) => {
            found.tell(0, Problem::Journal { block: number, what });
        }
        Err(FsError::Store(StoreError::Device { .. })) => {
            found.tell(0, Problem::Journal { block: range.start, what: "it cannot be read" });
        }
        Err(error) => return Err(error),
    }
    for block in range.start..range.end.min(store.geometry().blocks) {
        found.claim(block);
    }
    Ok(())
}

/// Who has which blocks, held against the counts and against what the store holds.
fn compare_blocks<D: Disk>(store: &Store<D>, found: &mut Found) {
    let blocks = store.geometry().blocks;
    let held = store.held_blocks();
    let is_held = |block: u32| held[block as usize / 64] >> (block % 64) & 1 == 1;
    // How many have shared blocks, by where that changes.
    let mut changes: BTreeMap<u32, i64> = BTreeMap::new();
    for at in 0..found.extents.len() {
        let Owned { inode, extent } = found.extents[at];
        found.checked.data_blocks += u64::from(extent.count);
        let numbers = extent.number..extent.number + extent.count;
        if numbers.end > blocks {
            found.tell(inode, Problem::Extents("it has blocks beyond the end of the store"));
            continue;
        }
        let missing = numbers.clone().filter(|block| !is_held(*block)).count() as u32;
        if missing > 0 {
            let first = numbers.clone().find(|block| !is_held(*block)).unwrap_or(numbers.start);
            found.tell(inode, Problem::Missing { block: first, count: missing });
        }
        if extent.state == ExtentState::Shared {
            *changes.entry(numbers.start).or_default() += 1;
            *changes.entry(numbers.end).or_default() -= 1;
            continue;
        }
        for block in numbers {
            if found.claim(block) {
                found.tell(inode, Problem::Twice { block });
                break;
            }
        }
    }
    compare_sharers(found, &changes, blocks);
    if let Some(counted) = found.superblock.as_ref().map(|superblock| superblock.reserved)
        && counted != found.promised
        && !found.is_partial
    {
        found.tell(0, Problem::Reserved { counted, found: found.promised });
    }
    if found.is_partial {
        // Blocks may be those of what could not be read.
        return;
    }
    let mut leaked: Option<(u32, u32)> = None;
    for block in 0..blocks {
        let is_used = found.in_use[block as usize / 64] >> (block % 64) & 1 == 1;
        if is_held(block) && !is_used {
            let (_, count) = leaked.get_or_insert((block, 0));
            *count += 1;
        } else if let Some((block, count)) = leaked.take() {
            found.tell(0, Problem::Leaked { block, count });
        }
    }
    if let Some((block, count)) = leaked {
        found.tell(0, Problem::Leaked { block, count });
    }
}

/// How many have blocks that may be shared: as many as is counted.
fn compare_sharers(found: &mut Found, changes: &BTreeMap<u32, i64>, blocks: u32) {
    let mut said: BTreeMap<u32, i64> = BTreeMap::new();
    let mut end = 0;
    for piece in std::mem::take(&mut found.counted) {
        if piece.number < end || u64::from(piece.number) + u64::from(piece.count) > blocks.into() {
            let what = "the count of sharers is of blocks that are none or counted twice";
            let offset = u64::from(piece.number);
            found.tell(0, Problem::Item { kind: 3, offset, what });
            continue;
        }
        end = piece.number + piece.count;
        *said.entry(piece.number).or_default() += i64::from(piece.sharers);
        *said.entry(end).or_default() -= i64::from(piece.sharers);
    }
    let places: BTreeSet<u32> = changes.keys().chain(said.keys()).copied().collect();
    let (mut have, mut count_of) = (0, 0);
    let mut places = places.into_iter().peekable();
    while let Some(from) = places.next() {
        have += changes.get(&from).copied().unwrap_or_default();
        count_of += said.get(&from).copied().unwrap_or_default();
        let Some(to) = places.peek().copied() else { break };
        if have > 0 {
            let twice = (from..to).find(|block| found.claim(*block));
            if let Some(block) = twice {
                found.tell(0, Problem::Twice { block });
            }
        }
        // One that is not counted has it alone.
        let is_right = if have <= 1 { count_of == 0 } else { count_of == have };
        if !is_right && !found.is_partial {
            let (count, sharers) = (to - from, have.try_into().unwrap_or(0));
            found.tell(0, Problem::Sharers { block: from, count, found: sharers });
        }
    }
}

/// What entries lead to.
fn compare_entries(found: &mut Found) {
    for (directory, entry, inode, file_type) in std::mem::take(&mut found.entries) {
        let of = found.known.get(&inode).and_then(|known| known.inode);
        let Some(of) = of else {
            if !found.is_partial {
                found.tell(directory, Problem::Dangling { entry });
            }
            continue;
        };
        if of.file_type() != file_type {
            found.tell(directory, Problem::EntryType { entry });
        }
        if of.is_directory() {
            let is_further = {
                let place = found.known.get(&inode).and_then(|known| known.place.as_ref());
                place.is_some_and(|place| (place.0, place.1) != (directory, entry))
            };
            if inode == ROOT_INODE || is_further {
                found.tell(inode, Problem::SeveralParents { entry, directory });
            } else if let Some(above) = found.known.get_mut(&directory) {
                above.subdirectories += 1;
            }
        }
    }
}

/// Directories that the root does not lead to and that are in some directory: they lie in one another.
fn in_cycles(found: &Found) -> Vec<u64> {
    let mut reached: BTreeMap<u64, bool> = BTreeMap::from([(ROOT_INODE, true)]);
    let mut cycles = Vec::new();
    for (number, known) in &found.known {
        if !known.inode.is_some_and(|inode| inode.is_directory()) {
            continue;
        }
        let (mut way, mut at) = (BTreeSet::new(), *number);
        let is_reached = loop {
            if let Some(known) = reached.get(&at) {
                break *known;
            }
            if !way.insert(at) {
                cycles.push(at);
                break false;
            }
            match found.known.get(&at).and_then(|known| known.place.as_ref()) {
                Some(place) => at = place.0,
                None => break false,
            }
        };
        reached.extend(way.into_iter().map(|at| (at, is_reached)));
    }
    cycles
}

/// What inodes say, held against what there is of their files.
fn compare_files(found: &mut Found, block_bytes: u64) {
    let mut problems: Vec<(u64, Problem)> = Vec::new();
    if !found
        .known
        .get(&ROOT_INODE)
        .is_some_and(|root| root.inode.is_some_and(|inode| inode.is_directory()))
    {
        problems.push((ROOT_INODE, Problem::Inode("there is no root")));
    }
    for (number, known) in &found.known {
        let Some(inode) = known.inode else {
            let is_listed = known.is_orphan || known.is_shrinking;
            let has_items = known.entries > 0
                || known.blocks > 0
                || known.content_bytes > 0
                || known.has_attributes;
            if has_items && !found.is_partial {
                problems.push((*number, Problem::NoInode));
            }
            if is_listed && !found.is_partial {
                let is_orphan = known.is_orphan;
                problems.push((*number, Problem::ListedNotThere { is_orphan }));
            }
            continue;
        };
        found.checked.inodes += 1;
        problems.extend(faults_of(*number, &inode, known, found.is_partial));
        let end = inode.size.div_ceil(block_bytes);
        let is_going = known.is_shrinking || known.is_orphan;
        if inode.is_file() && known.data_end > end && !is_going {
            problems.push((*number, Problem::BeyondEnd));
        }
    }
    problems.extend(in_cycles(found).into_iter().map(|number| (number, Problem::Cycle)));
    for (number, problem) in problems {
        found.tell(number, problem);
    }
}

/// What is wrong with a file, if not all of its items are there perhaps.
fn faults_of(number: u64, inode: &Inode, known: &Known, is_partial: bool) -> Vec<(u64, Problem)> {
    let mut faults = Vec::new();
    let mut tell = |problem| faults.push((number, problem));
    let is_root = number == ROOT_INODE;
    let has_name = known.names > 0 || is_root;
    if known.is_orphan {
        if has_name || inode.links > 0 {
            tell(Problem::NotOrphan);
        }
    } else if !has_name && !is_partial {
        tell(Problem::Lost);
    }
    if inode.is_directory() {
        if has_name && !is_partial && inode.links != known.subdirectories + 2 {
            let (counted, found) = (inode.links, known.subdirectories + 2);
            tell(Problem::Links { counted, found });
        }
        if known.entries != inode.size && !is_partial {
            tell(Problem::Entries { counted: inode.size, found: known.entries });
        }
        if let Some(place) = known.place.as_ref().filter(|place| place.0 != inode.parent) {
            tell(Problem::Parent { said: inode.parent, found: place.0 });
        }
        if inode.next_entry <= known.last_entry || inode.next_entry < FIRST_ENTRY {
            tell(Problem::NextEntry { last: known.last_entry.max(FIRST_ENTRY - 1) });
        }
    } else if has_name && !is_partial && inode.links != known.names {
        tell(Problem::Links { counted: inode.links, found: known.names });
    }
    if inode.blocks != known.blocks && !is_partial {
        tell(Problem::Blocks { counted: inode.blocks, found: known.blocks });
    }
    if !inode.is_file() && known.blocks > 0 {
        tell(Problem::Extents("it is no file with data, and has blocks"));
    }
    if inode.is_file() && inode.is_small() && known.blocks > 0 && !known.is_shrinking {
        tell(Problem::Extents("it is a small file, and has blocks"));
    }
    let is_link = inode.file_type() == FileType::Symlink;
    let is_long = if inode.is_file() && inode.is_small() {
        known.content_bytes > inode.size
    } else if is_link {
        known.content_bytes != inode.size && !is_partial && !known.is_orphan
    } else {
        known.content_bytes > 0
    };
    if is_long {
        tell(Problem::Inode("its content has another length than its size"));
    }
    let says = inode.flags & HAS_ATTRIBUTES != 0;
    // When the last is taken as a side effect, the inode goes on to say that there are some.
    if known.has_attributes && !says {
        tell(Problem::AttributesFlag { are_there: true });
    }
    faults
}

/// Reads everything, and names the files of what is damaged.
fn read_data<D: Disk>(store: &Store<D>, found: &mut Found) -> Result<(), FsError> {
    let block_bytes = u64::from(store.geometry().block_bytes);
    let damaged = store.scrub(0..store.geometry().blocks)?;
    if damaged.is_empty() {
        return Ok(());
    }
    for at in 0..found.extents.len() {
        let Owned { inode, extent } = found.extents[at];
        let end = extent.number + extent.count;
        let first = damaged.partition_point(|block| *block < extent.number);
        for block in damaged[first..].iter().take_while(|block| **block < end) {
            let offset = (extent.at + u64::from(block - extent.number)).saturating_mul(block_bytes);
            found.tell(inode, Problem::Damaged { block: *block, offset });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
