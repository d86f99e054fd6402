//! What a walk reads beside data: the blocks of directories and of inodes, each once.
//!
//! Where inodes lie is known of file systems that say how many a group has: in a table at the
//! front of the group, the tables of a flexible group one behind the other (ext2 to ext4, FFS).
//! Elsewhere (XFS, btrfs, logs) they are taken to lie at the first data of their directory, which
//! costs a return to it. Tables are taken to begin where their group does: the few blocks before
//! them are left out, and so are indirect blocks and directories that hold no regular file.
//!
//! Source: 4.4BSD, McKusick et al. 1984, §3.1 (inodes in each cylinder group); Linux
//! `Documentation/filesystems/ext4` (inode tables, flexible block groups). Cost: a comparison for
//! most files, a look into a sorted set for each block of inodes.

use std::collections::BTreeSet;

use crate::{FileKind, Snapshot, SnapshotFile};

/// Bytes of an inode where the file system does not say: what `mkfs.ext4` and FreeBSD's `newfs`
/// make, and XFS's are twice as long.
const INODE_BYTES: u64 = 256;
/// Bytes of an inode of the first UFS (4.4BSD).
const UFS1_INODE_BYTES: u64 = 128;

/// The inodes of a snapshot and which of their blocks were read.
#[derive(Debug)]
pub(super) struct MetadataReads {
    block_bytes: u64,
    inode_bytes: u64,
    table: Option<Table>,
    latest: Option<u64>,
    read: BTreeSet<u64>,
}

/// Where inodes lie.
#[derive(Debug, Clone, Copy)]
struct Table {
    /// Number of the first inode.
    first_inode: u64,
    inodes_per_group: u64,
    group_bytes: u64,
    first_group_bytes: u64,
    /// Groups whose tables lie together in the first of them.
    groups_together: u64,
}

impl Table {
    /// The block of `inode`, bytes.
    fn place(&self, inode: u64, inode_bytes: u64, block_bytes: u64) -> u64 {
        let index = inode.saturating_sub(self.first_inode);
        let group = index / self.inodes_per_group;
        let first_group = group - group % self.groups_together;
        let before = index - first_group * self.inodes_per_group;
        let offset = before.saturating_mul(inode_bytes) / block_bytes * block_bytes;
        let start = first_group.saturating_mul(self.group_bytes);
        self.first_group_bytes.saturating_add(start).saturating_add(offset)
    }
}

impl MetadataReads {
    /// Nothing of `snapshot` is read yet.
    pub(super) fn new(snapshot: &Snapshot) -> Self {
        let facts = &snapshot.facts;
        let told = |name: &str| {
            let value = facts.parameters.get(name)?.parse::<u64>().ok()?;
            (value > 0).then_some(value)
        };
        let is_ext = facts.kind.starts_with("ext");
        let usual = if facts.kind == "ufs1" { UFS1_INODE_BYTES } else { INODE_BYTES };
        let table = told("inodes_per_group").filter(|_| facts.group_bytes > 0);
        Self {
            block_bytes: u64::from(facts.block_bytes).max(1),
            inode_bytes: told("inode_bytes").unwrap_or(usual),
            table: table.map(|inodes_per_group| Table {
                first_inode: u64::from(is_ext),
                inodes_per_group,
                group_bytes: facts.group_bytes,
                first_group_bytes: facts.first_group_bytes,
                groups_together: told("flex_group_groups").unwrap_or(1),
            }),
            latest: None,
            read: BTreeSet::new(),
        }
    }

    /// Bytes of a read of inodes.
    pub(super) fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Where the block of `inode` lies; `beside` is where it is taken to lie if that is not known.
    pub(super) fn place(&self, inode: u64, beside: u64) -> u64 {
        let known = self.table.map(|table| table.place(inode, self.inode_bytes, self.block_bytes));
        known.unwrap_or(beside)
    }

    /// Whether the block of `inode` must be read, because it was not before.
    pub(super) fn must_read(&mut self, inode: u64) -> bool {
        let first = self.table.map_or(0, |table| table.first_inode);
        let block = inode.saturating_sub(first).saturating_mul(self.inode_bytes) / self.block_bytes;
        if self.latest == Some(block) {
            return false;
        }
        self.latest = Some(block);
        self.read.insert(block)
    }
}

/// The directory `inode`, if it is listed.
pub(super) fn directory(snapshot: &Snapshot, inode: u64) -> Option<&SnapshotFile> {
    let place = snapshot.files.binary_search_by_key(&inode, |file| file.inode).ok()?;
    Some(&snapshot.files[place]).filter(|file| file.kind == FileKind::Directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileSystemFacts;

    fn reads(kind: &str, parameters: &[(&str, &str)]) -> MetadataReads {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let facts = FileSystemFacts {
            kind: kind.to_owned(),
            block_bytes: 4096,
            group_bytes: 128 << 20,
            parameters: parameters.iter().map(owned).collect(),
            ..FileSystemFacts::default()
        };
        MetadataReads::new(&Snapshot { facts, ..Snapshot::default() })
    }

    #[test]
    fn inodes_lie_in_the_tables_of_their_groups() {
        let ext = reads("ext4", &[("inodes_per_group", "8192"), ("inode_bytes", "256")]);
        assert_eq!(ext.place(1, 9), 0);
        assert_eq!(ext.place(17, 9), 4096);
        assert_eq!(ext.place(8193, 9), 128 << 20);
        let flexible = [("inodes_per_group", "8192"), ("flex_group_groups", "16")];
        let flexible = reads("ext4", &flexible);
        assert_eq!(flexible.place(8193, 9), 8192 * 256);
        assert_eq!(flexible.place(16 * 8192 + 1, 9), 16 * (128 << 20));
        let ufs = reads("ufs1", &[("inodes_per_group", "1024")]);
        assert_eq!((ufs.place(31, 9), ufs.place(32, 9)), (0, 4096));
        assert_eq!(reads("btrfs", &[]).place(77, 9), 9);
    }

    #[test]
    fn a_block_of_inodes_is_read_once() {
        let mut ext = reads("ext4", &[("inodes_per_group", "8192")]);
        let read: Vec<bool> = [12, 13, 17, 12, 18, 33].map(|inode| ext.must_read(inode)).into();
        assert_eq!(read, [true, false, true, false, false, true]);
    }

    #[test]
    fn absurd_numbers_are_no_harm() {
        let most = u64::MAX.to_string();
        let parameters = [
            ("inodes_per_group", most.as_str()),
            ("inode_bytes", most.as_str()),
            ("flex_group_groups", most.as_str()),
        ];
        let mut reads = reads("ext4", &parameters);
        assert!(reads.must_read(u64::MAX));
        reads.place(u64::MAX, 0);
    }
}
