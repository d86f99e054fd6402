//! Files found in inode tables, and their places in the directories.
//!
//! A format first pushes every inode in use, by ascending number, then lets `place` walk the
//! directories from the root, breadth first and in the order in which the file system lists them.
//! A file with several links is listed at the name that comes first by directory and by name. What the
//! walk does not meet is dropped: nobody can open it.
//!
//! Cost: an inode is looked up by bisection once for each entry that names it; each directory is
//! sorted twice.

use super::super::Progress;
use super::super::extents::push_extent;
use super::fault::Fault;
use super::tell;
use crate::{Extent, FileKind, FileSystemFacts, FreeExtent, NO_TIME, Snapshot, SnapshotFile};

/// One entry of a directory, its name among those of [`Entries`].
#[derive(Debug, Clone, Copy)]
struct Entry {
    inode: u64,
    /// Entries are listed by ascending key, equal ones as they were added.
    order: u64,
    name_start: usize,
    name_bytes: u32,
    /// The first eight bytes of the name, the first one highest: most comparisons need no more.
    name_head: u64,
}

/// The entries of one directory, without `.` and `..`.
#[derive(Debug, Default)]
pub(super) struct Entries {
    list: Vec<Entry>,
    names: Vec<u8>,
}

impl Entries {
    /// Adds an entry that is listed at the place `order`.
    pub(super) fn push(&mut self, inode: u64, order: u64, name: &[u8]) {
        let mut head = [0; 8];
        let length = name.len().min(8);
        head[..length].copy_from_slice(&name[..length]);
        self.list.push(Entry {
            inode,
            order,
            name_start: self.names.len(),
            name_bytes: name.len() as u32,
            name_head: u64::from_be_bytes(head),
        });
        self.names.extend_from_slice(name);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    fn clear(&mut self) {
        self.list.clear();
        self.names.clear();
    }

    fn name(&self, entry: &Entry) -> &[u8] {
        &self.names[entry.name_start..entry.name_start + entry.name_bytes as usize]
    }

    /// Brings them into the order in which they are listed; their places by name.
    fn rank(&mut self) -> Vec<u32> {
        self.list.sort_by_key(|entry| entry.order);
        let mut by_name: Vec<u32> = (0..self.list.len() as u32).collect();
        by_name.sort_by(|&left, &right| {
            let (left, right) = (&self.list[left as usize], &self.list[right as usize]);
            let heads = left.name_head.cmp(&right.name_head);
            heads.then_with(|| self.name(left).cmp(self.name(right)))
        });
        let mut ranks = vec![0; by_name.len()];
        for (rank, &index) in by_name.iter().enumerate() {
            ranks[index as usize] = rank as u32;
        }
        ranks
    }
}

/// How a format lists a directory.
pub(super) trait Directories {
    /// Adds the entries of the directory `file`, whose extents are `extents`, to `entries`.
    ///
    /// What was added before a fault counts.
    fn list(
        &mut self,
        file: &SnapshotFile,
        extents: &[Extent],
        entries: &mut Entries,
    ) -> Result<(), Fault>;
}

/// What an inode says of its file, before its place is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) inode: u64,
    pub(super) kind: FileKind,
    pub(super) links: u32,
    pub(super) size_bytes: u64,
    pub(super) birth_ns: i64,
    pub(super) change_ns: i64,
    pub(super) modify_ns: i64,
}

/// The files of an image.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    files: Vec<SnapshotFile>,
    extents: Vec<Extent>,
    unreadable: u64,
    first_fault: Option<String>,
}

impl Catalogue {
    /// How many files were found.
    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// The extents of all files.
    pub(super) fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Adds a file whose extents `map` adds to those of all files, of which its own begin at the
    /// given index; if that finds something that cannot be, the file is left out, and counted as
    /// unreadable wherever a directory names it.
    pub(super) fn add(
        &mut self,
        found: &Found,
        map: impl FnOnce(&mut ExtentList<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if let Some(last) = self.files.last() {
            assert!(last.inode < found.inode, "inodes are found by ascending number");
        }
        let first = self.extents.len();
        match map(&mut ExtentList { extents: &mut self.extents, first }) {
            Ok(()) => {}
            Err(fault @ (Fault::Corrupt(_) | Fault::Beyond(_))) => {
                self.extents.truncate(first);
                self.remember(fault.within(format_args!("inode {}", found.inode)));
                return Ok(());
            }
            Err(fault) => return Err(fault),
        }
        let too_many = || Fault::corrupt("more than 4294967295 extents; they cannot be numbered");
        let first_extent = u32::try_from(first).map_err(|_| too_many())?;
        let extents = u32::try_from(self.extents.len() - first).map_err(|_| too_many())?;
        first_extent.checked_add(extents).ok_or_else(too_many)?;
        self.files.push(SnapshotFile {
            inode: found.inode,
            kind: found.kind,
            links: found.links,
            size_bytes: found.size_bytes,
            birth_ns: found.birth_ns,
            change_ns: found.change_ns,
            modify_ns: found.modify_ns,
            directory: 0,
            readdir_rank: 0,
            name_rank: 0,
            first_extent,
            extents,
        });
        Ok(())
    }

    fn remember(&mut self, fault: Fault) {
        if let Fault::Corrupt(what) = fault {
            self.first_fault.get_or_insert(what);
        }
    }

    fn position(&self, inode: u64) -> Option<usize> {
        self.files.binary_search_by_key(&inode, |file| file.inode).ok()
    }

    /// Walks the directories from `root` on, drops what they do not name, and gives the snapshot.
    pub(super) fn place(
        mut self,
        root: u64,
        with_names: bool,
        directories: &mut dyn Directories,
        progress: &mut Progress<'_>,
    ) -> Result<PlacedFiles, Fault> {
        let Some(root_index) =
            self.position(root).filter(|&index| self.files[index].kind == FileKind::Directory)
        else {
            let why = self.first_fault.unwrap_or_else(|| format!("inode {root} is no directory"));
            return Err(Fault::Corrupt(format!("it has no root: {why}")));
        };
        let mut names = with_names.then(|| vec![Vec::new(); self.files.len()]);
        let mut placed = vec![false; self.files.len()];
        placed[root_index] = true;
        self.files[root_index].directory = root;
        let mut queue = vec![root_index];
        let mut next = 0;
        let mut entries = Entries::default();
        while let Some(&index) = queue.get(next) {
            next += 1;
            entries.clear();
            let directory = self.files[index];
            let first = directory.first_extent as usize;
            let extents = &self.extents[first..first + directory.extents as usize];
            match directories.list(&directory, extents, &mut entries) {
                Ok(()) => {}
                Err(fault @ (Fault::Corrupt(_) | Fault::Beyond(_))) => {
                    self.unreadable += 1;
                    self.remember(fault.within(format_args!("directory {}", directory.inode)));
                }
                Err(fault) => return Err(fault),
            }
            let ranks = entries.rank();
            for (readdir_rank, (entry, name_rank)) in entries.list.iter().zip(ranks).enumerate() {
                let Some(found) = self.position(entry.inode) else {
                    self.unreadable += 1;
                    self.remember(Fault::Corrupt(format!(
                        "directory {}: names inode {}, which is not in use",
                        directory.inode, entry.inode
                    )));
                    continue;
                };
                let file = &mut self.files[found];
                let first = !std::mem::replace(&mut placed[found], true);
                let place = (directory.inode, name_rank, readdir_rank as u32);
                let earlier = place < (file.directory, file.name_rank, file.readdir_rank);
                if !first && (file.kind == FileKind::Directory || !earlier) {
                    continue;
                }
                (file.directory, file.name_rank, file.readdir_rank) = place;
                if let Some(names) = &mut names {
                    names[found] = entries.name(entry).to_vec();
                }
                if file.kind == FileKind::Directory {
                    queue.push(found);
                }
            }
            if next % 1024 == 0 {
                tell(progress, self.files.len())?;
            }
        }
        Ok(self.keep(&placed, names))
    }

    fn keep(self, placed: &[bool], names: Option<Vec<Vec<u8>>>) -> PlacedFiles {
        let mut kept = PlacedFiles {
            unreadable: self.unreadable,
            first_fault: self.first_fault,
            names: None,
            files: self.files,
            extents: self.extents,
        };
        let all = placed.iter().all(|&placed| placed);
        kept.names = names.map(|names| {
            let named = names.into_iter().zip(placed);
            named.filter_map(|(name, &placed)| placed.then_some(name)).collect()
        });
        if all {
            return kept;
        }
        let mut extents = Vec::with_capacity(kept.extents.len());
        let mut index = 0;
        kept.files.retain_mut(|file| {
            index += 1;
            if placed[index - 1] {
                let first = file.first_extent as usize;
                file.first_extent = extents.len() as u32;
                extents.extend_from_slice(&kept.extents[first..first + file.extents as usize]);
            }
            placed[index - 1]
        });
        kept.extents = extents;
        kept
    }
}

/// The extents of the file that is being added.
#[derive(Debug)]
pub(super) struct ExtentList<'a> {
    extents: &'a mut Vec<Extent>,
    first: usize,
}

impl ExtentList<'_> {
    /// Appends an extent, or lengthens the last one.
    pub(super) fn push(&mut self, extent: Extent) {
        push_extent(self.extents, self.first, extent);
    }
}

/// Files in their directories.
#[derive(Debug)]
pub(super) struct PlacedFiles {
    files: Vec<SnapshotFile>,
    extents: Vec<Extent>,
    names: Option<Vec<Vec<u8>>>,
    unreadable: u64,
    first_fault: Option<String>,
}

impl PlacedFiles {
    /// The snapshot of them in a file system of which `facts` and `free` are known.
    pub(super) fn into_snapshot(
        self,
        mut facts: FileSystemFacts,
        free: Vec<FreeExtent>,
    ) -> Snapshot {
        facts.taken_ns = NO_TIME;
        facts.free_map = true;
        facts.unreadable = self.unreadable;
        if let Some(fault) = self.first_fault {
            facts.parameters.insert("first_fault".to_owned(), fault);
        }
        let Self { files, extents, names, .. } = self;
        Snapshot { facts, files, names, extents, free }
    }
}
