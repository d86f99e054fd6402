//! Mending what has one right answer, by transactions like those of operations.

use std::sync::Arc;

use agewell_store::Store;
use agewell_store::device::Disk;
use rustix::fs::FileType;

use super::{CheckOptions, Checked, Found, Problem, look};
use crate::core::Core;
use crate::directory::{self, FIRST_ENTRY};
use crate::format::{Entry, HAS_ATTRIBUTES, Inode, Kind, SystemKind, key, system_key};
use crate::journal::{self, Placement};
use crate::{FsError, ROOT_INODE, inodes, sharing, tree};

/// Rounds of looking and mending: what is mended may show something else, such as blocks that are nobody's
/// then; chosen by us.
const ROUNDS_MAX: usize = 8;

/// Blocks that one step frees, and items that it takes out; chosen by us: less than a transaction.
const BLOCKS_A_STEP: usize = 256;
const ITEMS_A_STEP: usize = 8;

/// Where files without a name go.
const LOST_AND_FOUND: &[u8] = b"lost+found";

/// Bytes of nodes that are kept in memory meanwhile; chosen by us.
const CACHE_BYTES: u64 = 64 << 20;

/// What was mended, and what could not be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Problems that are no more.
    pub mended: u64,
    /// What is left.
    pub left: Checked,
}

/// Mends what has one right answer in the file system in `store`.
///
/// # Errors
/// If the store fails, or the superblock cannot be used.
pub fn repair<D: Disk>(store: &Arc<Store<D>>) -> Result<Repaired, FsError> {
    let mut mended = 0;
    let mut before = None;
    for _ in 0..ROUNDS_MAX {
        let found = look(store, CheckOptions::default())?;
        let to_do: Vec<(Option<u64>, Problem)> = found
            .checked
            .findings
            .iter()
            .filter(|finding| finding.problem.mend().is_some())
            .map(|finding| (finding.inode, finding.problem))
            .collect();
        if to_do.is_empty() || before.as_ref() == Some(&to_do) {
            break;
        }
        drop_last_of_journal(store, &found)?;
        let mut core = Core::open(Arc::clone(store), CACHE_BYTES)?;
        for (inode, problem) in &to_do {
            match mend(&mut core, &found, inode.unwrap_or(0), problem) {
                Ok(()) => mended += 1,
                // What lies in a node that cannot be read stays as it is.
                Err(FsError::Store(error)) => return Err(FsError::Store(error)),
                Err(_) => {}
            }
        }
        core.blocks.commit()?;
        core.blocks.checkpoint(Placement::Anywhere)?;
        store.sync()?;
        before = Some(to_do);
    }
    let left = look(store, CheckOptions::default())?.checked;
    Ok(Repaired { mended, left })
}

/// If what the journal said last may be lost, the nodes become what it said before.
fn drop_last_of_journal<D: Disk>(store: &Store<D>, found: &Found) -> Result<(), FsError> {
    let Some(superblock) = &found.superblock else { return Ok(()) };
    let replayed = journal::replay(store, &superblock.journal)?;
    if replayed.lost.is_none() {
        return Ok(());
    }
    replayed.write(store)
}

/// Changes an inode.
fn set<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    mut change: impl FnMut(&mut Inode),
) -> Result<(), FsError> {
    core.change(|core| {
        let mut inode = inodes::get(core, number)?;
        change(&mut inode);
        inodes::set(core, number, &inode)
    })
}

fn mend<D: Disk>(
    core: &mut Core<D>,
    found: &Found,
    number: u64,
    problem: &Problem,
) -> Result<(), FsError> {
    match *problem {
        Problem::NoInode => remove_items(core, number),
        Problem::Links { found, .. } => set(core, number, |inode| inode.links = found),
        Problem::Entries { found, .. } => set(core, number, |inode| inode.size = found),
        Problem::Blocks { found, .. } => set(core, number, |inode| inode.blocks = found),
        Problem::Parent { found, .. } => set(core, number, |inode| inode.parent = found),
        Problem::NextEntry { last } => set(core, number, |inode| inode.next_entry = last + 1),
        Problem::AttributesFlag { .. } => set(core, number, |inode| inode.flags |= HAS_ATTRIBUTES),
        Problem::BeyondEnd => {
            // What a crash in the midst of it would leave, too.
            core.change(|core| {
                let item = system_key(SystemKind::Shrinking, number);
                tree::set(&mut core.blocks, item, &[])
            })?;
            core.shrinking.insert(number);
            while core.shrink(number)? {}
            Ok(())
        }
        Problem::Sharers { block, count, found } => {
            core.change(|core| sharing::count_anew(core, (block, count), found))
        }
        Problem::Reserved { found, .. } => core.change(|core| core.set_reserved(found)),
        Problem::NotOrphan => {
            let names = found.known.get(&number).map_or(0, |known| known.names);
            if names == 0 && number != ROOT_INODE {
                return set(core, number, |inode| inode.links = 0);
            }
            forget(core, number, SystemKind::Orphan)
        }
        Problem::ListedNotThere { .. } => {
            forget(core, number, SystemKind::Orphan)?;
            forget(core, number, SystemKind::Shrinking)
        }
        Problem::Lost => rescue(core, number),
        Problem::Dangling { entry } => remove_entry(core, number, entry),
        Problem::SeveralParents { entry, directory } => remove_entry(core, directory, entry),
        Problem::EntryType { entry } => core.change(|core| {
            let (inode, _, name) = entry_of(core, number, entry)?;
            let value = Entry::encode(inode, inodes::get(core, inode)?.file_type(), &name);
            tree::set(&mut core.blocks, key(number, Kind::Entry, entry), &value)
        }),
        Problem::Unnamed { entry } => core.change(|core| {
            let (_, _, name) = entry_of(core, number, entry)?;
            directory::enter_name(core, number, &name, entry)
        }),
        Problem::NameWithoutEntry { offset } => core.change(|core| {
            tree::remove(&mut core.blocks, key(number, Kind::Name, offset)).map(|_| ())
        }),
        Problem::Leaked { block, count } => {
            let numbers: Vec<u32> = (block..block + count).collect();
            for some in numbers.chunks(BLOCKS_A_STEP) {
                core.change(|core| {
                    let some = some.iter().filter(|number| core.blocks.is_used(**number));
                    let some: Vec<u32> = some.copied().collect();
                    for number in some {
                        core.blocks.give(number);
                    }
                    Ok(())
                })?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn forget<D: Disk>(core: &mut Core<D>, number: u64, list: SystemKind) -> Result<(), FsError> {
    core.change(|core| tree::remove(&mut core.blocks, system_key(list, number)).map(|_| ()))
}

/// Takes all items of a file out.
fn remove_items<D: Disk>(core: &mut Core<D>, number: u64) -> Result<(), FsError> {
    let (first, last) = (key(number, Kind::Inode, 0), key(number + 1, Kind::Inode, 0) - 1);
    loop {
        let is_over = core.change(|core| {
            let mut keys = Vec::new();
            tree::each(&mut core.blocks, first, last, |key, _| {
                keys.push(key);
                keys.len() < ITEMS_A_STEP
            })?;
            for key in &keys {
                tree::remove(&mut core.blocks, *key)?;
            }
            Ok(keys.is_empty())
        })?;
        if is_over {
            return Ok(());
        }
    }
}

/// What an entry leads to, its type and its name.
fn entry_of<D: Disk>(
    core: &mut Core<D>,
    directory: u64,
    entry: u64,
) -> Result<(u64, FileType, Vec<u8>), FsError> {
    let read = tree::get(&mut core.blocks, key(directory, Kind::Entry, entry), |value| {
        Entry::view(value).map(|(inode, file_type, name)| (inode, file_type, name.to_vec()))
    })?;
    read.flatten().ok_or(FsError::File { inode: directory, what: "the entry is none" })
}

fn remove_entry<D: Disk>(core: &mut Core<D>, directory: u64, entry: u64) -> Result<(), FsError> {
    core.change(|core| {
        let (_, _, name) = entry_of(core, directory, entry)?;
        let named = directory::find(core, directory, &name)?.filter(|found| found.entry == entry);
        let Some(named) = named else {
            let entry = key(directory, Kind::Entry, entry);
            return tree::remove(&mut core.blocks, entry).map(|_| ());
        };
        let mut of = inodes::directory(core, directory)?;
        directory::remove(core, directory, &mut of, &named)?;
        inodes::set(core, directory, &of)
    })
}

/// Gives a file a name in /lost+found, or lets it be removed if it had none.
fn rescue<D: Disk>(core: &mut Core<D>, number: u64) -> Result<(), FsError> {
    let inode = inodes::get(core, number)?;
    if inode.links == 0 {
        return core.change(|core| {
            tree::set(&mut core.blocks, system_key(SystemKind::Orphan, number), &[])
        });
    }
    core.change(|core| {
        let mut root = inodes::directory(core, ROOT_INODE)?;
        let place = if let Some(found) = directory::find(core, ROOT_INODE, LOST_AND_FOUND)? {
            found.inode
        } else {
            let made = core.take_inode(ROOT_INODE)?;
            let mode = FileType::Directory.as_raw_mode() | 0o700;
            let next_entry = FIRST_ENTRY;
            let new = Inode { mode, links: 2, size: 0, blocks: 0, flags: 0, next_entry, ..root };
            inodes::set(core, made, &Inode { parent: ROOT_INODE, ..new })?;
            let entry = (LOST_AND_FOUND, made, FileType::Directory);
            directory::add(core, ROOT_INODE, &mut root, entry)?;
            root.links += 1;
            inodes::set(core, ROOT_INODE, &root)?;
            made
        };
        let mut of = inodes::directory(core, place)?;
        let name = format!("#{number}");
        let inode = inodes::get(core, number)?;
        let entry = (name.as_bytes(), number, inode.file_type());
        // What it and the directory count is counted in the next round.
        directory::add(core, place, &mut of, entry)?;
        inodes::set(core, place, &of)
    })
}
