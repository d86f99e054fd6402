//! Each problem that there can be, made, found and mended.

use std::sync::Arc;

use agewell_store::device::MemoryDisk;
use agewell_store::{FormatOptions, OpenOptions, Store};

use super::*;
use crate::core::Core;
use crate::format::{Entry, Kind, SystemKind, key, system_key};
use crate::{
    Caller, Changes, FileSystem, MakeOptions, MountOptions, New, Time, directory, extents, inodes,
    sharing, tree,
};

type Memory = Core<MemoryDisk>;

/// Inodes of the file system of these tests.
struct Numbers {
    folder: u64,
    file: u64,
    copy: u64,
    small: u64,
}

/// `/folder/file` with blocks that `/copy` has too, and `/folder/small`.
fn made() -> (Arc<Store<MemoryDisk>>, Numbers) {
    let disk = MemoryDisk::new(16 << 20);
    let options =
        FormatOptions { segment_blocks: 256, block_bytes: 1024, ..FormatOptions::new([7; 16]) };
    Store::format(&disk, &options).unwrap();
    let store = Store::open(disk, &OpenOptions::default()).unwrap();
    FileSystem::make(&store, &MakeOptions::default()).unwrap();
    let fs = FileSystem::open(Arc::new(store), &MountOptions::default()).unwrap();
    let caller = Caller::default();
    let make = |parent, name: &[u8], mode| {
        let new = New { mode, device: 0, target: b"" };
        fs.make_file(parent, name, &new, &caller).unwrap().inode
    };
    let folder = make(ROOT_INODE, b"folder", 0o040_755);
    let (file, small) = (make(folder, b"file", 0o100_644), make(folder, b"small", 0o100_644));
    let copy = make(ROOT_INODE, b"copy", 0o100_644);
    let now = Time::default();
    fs.write(file, 0, &[7; 9000], false, now).unwrap();
    fs.write(small, 0, b"small", false, now).unwrap();
    fs.set_extended_attribute(small, (b"user.x", b"1"), (false, false), now).unwrap();
    fs.set_attributes(copy, &Changes { size: Some(9000), ..Changes::default() }, now).unwrap();
    assert_eq!(fs.copy((file, 0), (copy, 0), 4096, false, now).unwrap(), 4096);
    (fs.close().unwrap(), Numbers { folder, file, copy, small })
}

/// Does `harm`; `wanted` must be told, of that path, and nothing be left when it is repaired.
fn harmed(
    path: Option<&str>,
    wanted: impl Fn(&Problem) -> bool,
    harm: impl Fn(&mut Memory, &Numbers) -> Result<(), FsError>,
) {
    let (store, numbers) = made();
    let mut core = Core::open(Arc::clone(&store), 0).unwrap();
    core.change(|core| harm(core, &numbers)).unwrap();
    core.blocks.commit().unwrap();
    drop(core);
    let checked = check(&store, &CheckOptions::default()).unwrap();
    let told = checked.findings.iter().find(|finding| wanted(&finding.problem));
    let told = told.unwrap_or_else(|| panic!("{:?}", checked.findings));
    assert_eq!(told.path.as_deref(), path.map(str::as_bytes), "{told}");
    let is_mended = told.problem.mend().is_some();
    let repaired = repair(&store).unwrap();
    assert_eq!(repaired.left.is_clean(), is_mended, "{:?}", repaired.left.findings);
}

fn change(core: &mut Memory, number: u64, change: impl FnOnce(&mut Inode)) -> Result<(), FsError> {
    let mut inode = inodes::get(core, number)?;
    change(&mut inode);
    inodes::set(core, number, &inode)
}

#[test]
fn what_inodes_count_is_counted() {
    let is = |problem: &Problem| *problem == Problem::Links { counted: 3, found: 1 };
    harmed(Some("/folder/file"), is, |core, of| change(core, of.file, |inode| inode.links = 3));
    let is = |problem: &Problem| *problem == Problem::Links { counted: 2, found: 3 };
    harmed(Some("/"), is, |core, _| change(core, ROOT_INODE, |inode| inode.links = 2));
    let is = |problem: &Problem| *problem == Problem::Entries { counted: 9, found: 2 };
    harmed(Some("/folder"), is, |core, of| change(core, of.folder, |inode| inode.size = 9));
    let is = |problem: &Problem| *problem == Problem::Blocks { counted: 1, found: 9 };
    harmed(Some("/folder/file"), is, |core, of| change(core, of.file, |inode| inode.blocks = 1));
    let is = |problem: &Problem| *problem == Problem::NextEntry { last: 3 };
    harmed(Some("/folder"), is, |core, of| change(core, of.folder, |inode| inode.next_entry = 3));
    let is = |problem: &Problem| matches!(problem, Problem::Parent { said: 99, .. });
    harmed(Some("/folder"), is, |core, of| change(core, of.folder, |inode| inode.parent = 99));
    let is = |problem: &Problem| *problem == Problem::AttributesFlag { are_there: true };
    harmed(Some("/folder/small"), is, |core, of| change(core, of.small, |inode| inode.flags = 1));
    let is = |problem: &Problem| *problem == Problem::BeyondEnd;
    harmed(Some("/folder/file"), is, |core, of| change(core, of.file, |inode| inode.size = 1025));
    let is = |problem: &Problem| *problem == Problem::Reserved { counted: 5, found: 0 };
    harmed(None, is, |core, _| core.set_reserved(5));
}

#[test]
fn names_and_entries_belong_together() {
    let found = |core: &mut Memory, of: &Numbers| {
        directory::find(core, of.folder, b"file").map(|found| found.unwrap())
    };
    let is = |problem: &Problem| *problem == Problem::Unnamed { entry: 2 };
    harmed(Some("/folder"), is, |core, of| {
        let hash = crate::format::name_hash(core.seed, b"file", 8);
        tree::remove(&mut core.blocks, key(of.folder, Kind::Name, hash)).map(|was| assert!(was))
    });
    let is = |problem: &Problem| matches!(problem, Problem::NameWithoutEntry { .. });
    harmed(Some("/folder"), is, |core, of| {
        tree::set(&mut core.blocks, key(of.folder, Kind::Name, 4 << 8), &77_u64.to_le_bytes())
    });
    harmed(Some("/folder"), is, |core, of| {
        // A second one for the same entry.
        let entry = found(core, of)?.entry;
        tree::set(&mut core.blocks, key(of.folder, Kind::Name, 4 << 8), &entry.to_le_bytes())
    });
    let is = |problem: &Problem| *problem == Problem::EntryType { entry: 2 };
    harmed(Some("/folder"), is, |core, of| {
        let value = Entry::encode(of.file, FileType::Fifo, b"file");
        tree::set(&mut core.blocks, key(of.folder, Kind::Entry, 2), &value)
    });
    let is = |problem: &Problem| *problem == Problem::Dangling { entry: 2 };
    harmed(Some("/folder"), is, |core, of| {
        let value = Entry::encode(5555, FileType::RegularFile, b"file");
        tree::set(&mut core.blocks, key(of.folder, Kind::Entry, 2), &value)
    });
    let is = |problem: &Problem| *problem == Problem::Dangling { entry: 2 };
    harmed(Some("/folder"), is, |core, of| {
        tree::remove(&mut core.blocks, key(of.file, Kind::Inode, 0)).map(|was| assert!(was))
    });
    let is = |problem: &Problem| *problem == Problem::NoInode;
    harmed(Some("/folder/file"), is, |core, of| {
        tree::remove(&mut core.blocks, key(of.file, Kind::Inode, 0)).map(|was| assert!(was))
    });
    let is = |problem: &Problem| matches!(problem, Problem::SeveralParents { .. });
    harmed(Some("/folder"), is, |core, of| {
        let mut folder = inodes::get(core, of.folder)?;
        let entry = (b"self".as_slice(), of.folder, FileType::Directory);
        directory::add(core, of.folder, &mut folder, entry)?;
        inodes::set(core, of.folder, &folder)
    });
    let is = |problem: &Problem| *problem == Problem::SameName { entry: 4 };
    harmed(Some("/folder"), is, |core, of| {
        let mut folder = inodes::get(core, of.folder)?;
        let entry = (b"small".as_slice(), of.small, FileType::RegularFile);
        directory::add(core, of.folder, &mut folder, entry)?;
        inodes::set(core, of.folder, &folder)
    });
}

#[test]
fn what_is_lost_is_found() {
    let is = |problem: &Problem| *problem == Problem::Lost;
    for directory in [false, true] {
        harmed(None, is, |core, of| {
            let (parent, name): (u64, &[u8]) =
                if directory { (ROOT_INODE, b"folder") } else { (of.folder, b"file") };
            let mut above = inodes::get(core, parent)?;
            let found = directory::find(core, parent, name)?.unwrap();
            directory::remove(core, parent, &mut above, &found)?;
            inodes::set(core, parent, &above)
        });
    }
    // One without names that is in no list is removed when the file system is opened.
    harmed(None, is, |core, of| {
        let mut above = inodes::get(core, of.folder)?;
        let found = directory::find(core, of.folder, b"file")?.unwrap();
        directory::remove(core, of.folder, &mut above, &found)?;
        inodes::set(core, of.folder, &above)?;
        change(core, of.file, |inode| inode.links = 0)
    });
    let is = |problem: &Problem| *problem == Problem::NotOrphan;
    harmed(Some("/copy"), is, |core, of| {
        tree::set(&mut core.blocks, system_key(SystemKind::Orphan, of.copy), &[])
    });
    for (list, is_orphan) in [(SystemKind::Orphan, true), (SystemKind::Shrinking, false)] {
        let is = |problem: &Problem| *problem == Problem::ListedNotThere { is_orphan };
        harmed(None, is, |core, _| tree::set(&mut core.blocks, system_key(list, 60), &[]));
    }
}

#[test]
fn a_lost_file_has_its_data_in_lost_and_found() {
    let (store, of) = made();
    let mut core = Core::open(Arc::clone(&store), 0).unwrap();
    core.change(|core| {
        let mut above = inodes::get(core, of.folder)?;
        let found = directory::find(core, of.folder, b"file")?.unwrap();
        directory::remove(core, of.folder, &mut above, &found)?;
        inodes::set(core, of.folder, &above)
    })
    .unwrap();
    core.blocks.commit().unwrap();
    drop(core);
    repair(&store).unwrap();
    let fs = FileSystem::open(store, &MountOptions::default()).unwrap();
    let place = fs.lookup(ROOT_INODE, b"lost+found").unwrap().inode;
    let found = fs.lookup(place, format!("#{}", of.file).as_bytes()).unwrap();
    assert_eq!((found.inode, found.size), (of.file, 9000));
    let mut data = [0; 9000];
    fs.read(of.file, 0, &mut data).unwrap();
    assert_eq!(data, [7; 9000]);
}

#[test]
fn blocks_are_held_against_who_has_them() {
    let extent_of = |core: &mut Memory, number| {
        Ok::<_, FsError>(extents::between(core, number, (0, 99), 9)?[0])
    };
    let is = |problem: &Problem| matches!(problem, Problem::Sharers { count: 4, found: 2, .. });
    harmed(None, is, |core, of| {
        let extent = extent_of(core, of.copy)?;
        sharing::count_anew(core, (extent.number, extent.count), 1)
    });
    harmed(None, is, |core, of| {
        let extent = extent_of(core, of.copy)?;
        sharing::count_anew(core, (extent.number, extent.count), 5)
    });
    let is = |problem: &Problem| matches!(problem, Problem::Leaked { count: 5, .. });
    harmed(None, is, |core, _| {
        let (first, count) = core.blocks.take_for_data(5, crate::blocks::Whose::Free)?;
        (first..first + count)
            .for_each(|number| core.blocks.put_data(number, false, |data| data.fill(1)));
        Ok(())
    });
    // What was there cannot be known.
    let is = |problem: &Problem| matches!(problem, Problem::Missing { count: 1, .. });
    harmed(Some("/folder/file"), is, |core, of| {
        let extent = extents::last(core, of.file)?.unwrap();
        core.blocks.give(extent.number + extent.count - 1);
        Ok(())
    });
    let is = |problem: &Problem| matches!(problem, Problem::Twice { .. });
    // It is told of the one that comes second.
    harmed(Some("/folder/file"), is, |core, of| {
        let extent = extents::last(core, of.file)?.unwrap();
        assert_eq!(extent.state, ExtentState::Own);
        let extent = Extent { at: 20, count: 1, ..extent };
        change(core, of.copy, |inode| inode.blocks += 1)?;
        extents::put(core, of.copy, &extent)
    });
}
