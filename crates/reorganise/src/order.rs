//! In which order files are read, and so should lie.

mod access_graph;
mod parts;
mod recording;

pub use recording::{
    ChosenOrder, FileRead, FileReads, InParts, RecordedOrder, RecordedRead, by_recording,
};

use agewell_snapshot::{FileKind, Snapshot};
use serde::{Deserialize, Serialize};

/// An order of the files of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Directory by directory in a walk over the tree, the files of each by name.
    Names,
    /// Directory by directory, the files of each as the file system lists them: how `tar`, `cp -r`
    /// and `grep -r` read.
    Directory,
}

/// A range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteRange {
    /// Its first byte.
    pub from_bytes: u64,
    /// The byte behind its last.
    pub to_bytes: u64,
}

impl ByteRange {
    /// How long it is, bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.to_bytes - self.from_bytes
    }
}

/// What is laid in one place: a file, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Which file, as its place among those of the snapshot.
    pub file: u32,
    /// Which part, whole blocks or up to the file's end; none is all of it.
    pub range: Option<ByteRange>,
}

impl Part {
    /// All of `file`.
    #[must_use]
    pub fn whole(file: u32) -> Self {
        Self { file, range: None }
    }
}

/// The regular files of `snapshot`, as places among its files, in the order in which a walk reads
/// them: the files of a directory, then its directories one after another.
#[must_use]
pub fn read_order(snapshot: &Snapshot, order: Order) -> Vec<u32> {
    let rank = |place: u32| {
        let file = &snapshot.files[place as usize];
        match order {
            Order::Names => file.name_rank,
            Order::Directory => file.readdir_rank,
        }
    };
    // By directory and rank; the children of a directory are found by its number.
    let mut children: Vec<(u64, u32, u32)> = Vec::new();
    let mut roots = Vec::new();
    for (place, file) in snapshot.files.iter().enumerate() {
        let place = place as u32;
        let listed = file.directory != file.inode
            && snapshot.files.binary_search_by_key(&file.directory, |other| other.inode).is_ok();
        if listed {
            children.push((file.directory, rank(place), place));
        } else {
            roots.push(place);
        }
    }
    children.sort_unstable();
    let mut walk = Walk { snapshot, children: &children, order: Vec::new(), stack: roots };
    walk.stack.reverse();
    while let Some(place) = walk.stack.pop() {
        walk.enter(place);
    }
    walk.order
}

struct Walk<'a> {
    snapshot: &'a Snapshot,
    children: &'a [(u64, u32, u32)],
    order: Vec<u32>,
    stack: Vec<u32>,
}

impl Walk<'_> {
    /// Takes in the files of the directory at `place`; its directories wait their turn. A tree has no
    /// loops: every entry but a root is the child of one directory, and roots are no one's.
    fn enter(&mut self, place: u32) {
        let inode = self.snapshot.files[place as usize].inode;
        let first = self.children.partition_point(|child| child.0 < inode);
        let after = self.children.partition_point(|child| child.0 <= inode);
        let within = &self.children[first..after];
        let kind = |place: u32| self.snapshot.files[place as usize].kind;
        if kind(place) == FileKind::Regular {
            self.order.push(place);
        }
        let files = within.iter().map(|child| child.2);
        self.order.extend(files.clone().filter(|place| kind(*place) == FileKind::Regular));
        self.stack.extend(files.rev().filter(|place| kind(*place) == FileKind::Directory));
    }
}
