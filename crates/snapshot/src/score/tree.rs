//! The directories of a snapshot in the order of a walk by names, with the files in each.
//!
//! The walk is that of `tar` and `grep -r` over sorted names: the files of a directory, then its
//! directories one after another. Invariants: every regular file is a member of exactly one group;
//! every directory is visited once, also where a damaged snapshot has loops or parents that are not
//! there (those begin walks of their own, in the order of their inodes).
//!
//! Cost: two sorts, of files and of directories by parent.

use crate::{FileKind, Snapshot};

/// Regular files of one directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group {
    start: u32,
    end: u32,
}

/// A directory right below the root, or the root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Top {
    /// Its number.
    pub(crate) inode: u64,
    /// Where it stands among the files of the snapshot, if it is listed.
    file: Option<u32>,
    root: bool,
}

impl Top {
    /// What it is called: `.` for the root, else its name, if the snapshot has names.
    pub(crate) fn name(&self, snapshot: &Snapshot) -> Option<String> {
        if self.root {
            return Some(".".to_owned());
        }
        let names = snapshot.names.as_ref()?;
        let name = names.get(self.file? as usize)?;
        Some(String::from_utf8_lossy(name).into_owned())
    }
}

/// Regular files by directory, directories in the order of a walk by names.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Places of regular files among those of the snapshot.
    files: Vec<u32>,
    /// Directories that hold regular files, in the order of the walk.
    pub(crate) groups: Vec<Group>,
    /// For each of them, which of [`Tree::tops`] it lies below.
    pub(crate) group_tops: Vec<u32>,
    /// Directories right below a root, and roots.
    pub(crate) tops: Vec<Top>,
}

impl Tree {
    /// The tree of `snapshot`, which has passed [`super::check`].
    pub(crate) fn new(snapshot: &Snapshot) -> Self {
        let (files, mut by_inode) = group_files(snapshot);
        let mut tree = Self { files, ..Self::default() };
        let walk = Walk::new(snapshot).run();
        tree.tops = walk.tops;
        for (inode, top) in walk.visits {
            if let Ok(place) = by_inode.binary_search_by_key(&inode, |entry| entry.0)
                && let Some(group) = by_inode[place].1.take()
            {
                tree.groups.push(group);
                tree.group_tops.push(top);
            }
        }
        for (inode, group) in by_inode {
            let Some(group) = group else { continue };
            tree.groups.push(group);
            tree.group_tops.push(tree.tops.len() as u32);
            tree.tops.push(Top { inode, file: None, root: false });
        }
        tree
    }

    /// Where the regular files of `group` stand among those of the snapshot.
    pub(crate) fn members(&self, group: Group) -> &[u32] {
        &self.files[group.start as usize..group.end as usize]
    }
}

/// No path has more components: `PATH_MAX` of Linux is 4096 bytes. A damaged snapshot may have loops.
const DEPTH_MAX: usize = 4096;

/// The path of a file from the root of the snapshot, without a leading slash; `None` without names
/// or where its directories are not listed up to a root.
pub(crate) fn path_of(snapshot: &Snapshot, place: usize) -> Option<String> {
    let names = snapshot.names.as_ref()?;
    let mut parts = Vec::new();
    let mut at = place;
    while parts.len() <= DEPTH_MAX {
        let file = &snapshot.files[at];
        if file.directory == file.inode {
            parts.reverse();
            return Some(parts.join("/"));
        }
        parts.push(String::from_utf8_lossy(&names[at]));
        at = snapshot.files.binary_search_by_key(&file.directory, |file| file.inode).ok()?;
    }
    None
}

/// A directory's inode and its files, until the walk has come by.
type Waiting = (u64, Option<Group>);

/// Regular files sorted by directory, and where each directory's are.
fn group_files(snapshot: &Snapshot) -> (Vec<u32>, Vec<Waiting>) {
    let mut keyed: Vec<(u64, u32)> = snapshot
        .files
        .iter()
        .enumerate()
        .filter(|(_, file)| file.kind == FileKind::Regular)
        .map(|(place, file)| (file.directory, place as u32))
        .collect();
    keyed.sort_unstable();
    let mut groups: Vec<Waiting> = Vec::new();
    for (at, (inode, _)) in keyed.iter().enumerate() {
        let at = at as u32;
        match groups.last_mut() {
            Some((last, Some(group))) if last == inode => group.end = at + 1,
            _ => groups.push((*inode, Some(Group { start: at, end: at + 1 }))),
        }
    }
    (keyed.into_iter().map(|(_, place)| place).collect(), groups)
}

/// The walk over directories.
struct Walk<'a> {
    snapshot: &'a Snapshot,
    /// Places of directories, ascending by inode as in the snapshot.
    directories: Vec<u32>,
    /// Parent's inode, rank of the name, position in `directories`; sorted. Roots are left out.
    children: Vec<(u64, u32, u32)>,
    visited: Vec<bool>,
    visits: Vec<(u64, u32)>,
    tops: Vec<Top>,
}

impl<'a> Walk<'a> {
    fn new(snapshot: &'a Snapshot) -> Self {
        let directories: Vec<u32> = snapshot
            .files
            .iter()
            .enumerate()
            .filter(|(_, file)| file.kind == FileKind::Directory)
            .map(|(place, _)| place as u32)
            .collect();
        let mut children: Vec<(u64, u32, u32)> = directories
            .iter()
            .enumerate()
            .map(|(position, place)| (&snapshot.files[*place as usize], position as u32))
            .filter(|(file, _)| file.directory != file.inode)
            .map(|(file, position)| (file.directory, file.name_rank, position))
            .collect();
        children.sort_unstable();
        Self {
            snapshot,
            visited: vec![false; directories.len()],
            visits: Vec::with_capacity(directories.len()),
            tops: Vec::new(),
            directories,
            children,
        }
    }

    fn run(mut self) -> Self {
        for position in 0..self.directories.len() {
            let place = self.directories[position] as usize;
            let file = &self.snapshot.files[place];
            let parent = file.directory;
            let listed = self
                .directories
                .binary_search_by_key(&parent, |other| self.snapshot.files[*other as usize].inode)
                .is_ok();
            if parent == file.inode || !listed {
                self.walk_from(position as u32, parent == file.inode);
            }
        }
        // What is left hangs on a loop.
        for position in 0..self.directories.len() {
            self.walk_from(position as u32, false);
        }
        self
    }

    fn walk_from(&mut self, start: u32, root: bool) {
        if self.visited[start as usize] {
            return;
        }
        let start_top = self.add_top(start, root);
        let mut stack = vec![(start, start_top)];
        while let Some((position, top)) = stack.pop() {
            if std::mem::replace(&mut self.visited[position as usize], true) {
                continue;
            }
            let place = self.directories[position as usize];
            let inode = self.snapshot.files[place as usize].inode;
            self.visits.push((inode, top));
            let first = self.children.partition_point(|child| child.0 < inode);
            let after = self.children.partition_point(|child| child.0 <= inode);
            for child in (first..after).rev() {
                let below = self.children[child].2;
                let splits = root && position == start && !self.visited[below as usize];
                let top = if splits { self.add_top(below, false) } else { top };
                stack.push((below, top));
            }
        }
    }

    fn add_top(&mut self, position: u32, root: bool) -> u32 {
        let place = self.directories[position as usize];
        let inode = self.snapshot.files[place as usize].inode;
        self.tops.push(Top { inode, file: Some(place), root });
        self.tops.len() as u32 - 1
    }
}
