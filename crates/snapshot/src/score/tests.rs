//! Tests of the layout metrics: the rules one by one, and everything against a model that looks at
//! every block by itself.

mod model;
mod reading;
mod rules;

use crate::{
    Extent, ExtentFlags, FileKind, FileSystemFacts, FreeExtent, NO_TIME, Snapshot, SnapshotFile,
};

/// Bytes of a block in these tests.
pub(super) const BLOCK: u64 = 4096;

/// An extent in blocks: where in the file, where on the device, how long.
pub(super) fn extent(logical: u64, physical: u64, blocks: u64) -> Extent {
    Extent {
        logical_bytes: logical * BLOCK,
        physical_bytes: physical * BLOCK,
        length_bytes: blocks * BLOCK,
        flags: ExtentFlags::default(),
    }
}

/// An [`extent`] with something special about it.
pub(super) fn special(logical: u64, physical: u64, blocks: u64, flags: ExtentFlags) -> Extent {
    Extent { flags, ..extent(logical, physical, blocks) }
}

/// Makes snapshots of regular files in directories.
pub(super) struct Maker {
    pub(super) snapshot: Snapshot,
}

impl Maker {
    /// An empty file system of this number of blocks; inode 2 is its root.
    pub(super) fn new(blocks: u64) -> Self {
        let facts = FileSystemFacts {
            kind: "test".to_owned(),
            block_bytes: BLOCK as u32,
            fragment_bytes: BLOCK as u32,
            total_bytes: blocks * BLOCK,
            taken_ns: NO_TIME,
            free_map: true,
            ..FileSystemFacts::default()
        };
        let mut maker = Self { snapshot: Snapshot { facts, ..Snapshot::default() } };
        maker.add(2, FileKind::Directory, 0, &[]);
        maker
    }

    /// The next inode, in `directory`, with these extents.
    pub(super) fn add(
        &mut self,
        directory: u64,
        kind: FileKind,
        size_bytes: u64,
        extents: &[Extent],
    ) -> &mut SnapshotFile {
        let place = self.snapshot.files.len() as u64;
        self.snapshot.files.push(SnapshotFile {
            inode: place + 2,
            kind,
            links: 1,
            size_bytes,
            birth_ns: NO_TIME,
            change_ns: NO_TIME,
            modify_ns: NO_TIME,
            directory,
            readdir_rank: place as u32,
            name_rank: place as u32,
            first_extent: self.snapshot.extents.len() as u32,
            extents: extents.len() as u32,
        });
        self.snapshot.extents.extend_from_slice(extents);
        self.snapshot.files.last_mut().expect("one was just added")
    }

    /// A regular file in the root that ends with its last extent.
    pub(super) fn file(&mut self, extents: &[Extent]) -> &mut SnapshotFile {
        let end = extents.iter().map(|extent| extent.logical_bytes + extent.length_bytes).max();
        self.add(2, FileKind::Regular, end.unwrap_or(0), extents)
    }

    /// Free space in blocks.
    pub(super) fn free(&mut self, physical: u64, blocks: u64) {
        self.snapshot
            .free
            .push(FreeExtent { physical_bytes: physical * BLOCK, length_bytes: blocks * BLOCK });
        self.snapshot.facts.free_bytes += blocks * BLOCK;
    }
}
