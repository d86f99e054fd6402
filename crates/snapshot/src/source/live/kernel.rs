//! What the kernel reports of a mounted file system beyond the usual calls: extent maps, free-space
//! maps, geometry, trees.
//!
//! Each call fills a buffer of which only this module sets the size that the kernel is given, so that
//! callers cannot make it write elsewhere.
//!
//! Source: Linux `include/uapi/linux/{fiemap,fsmap,btrfs}.h` and `fs/xfs/libxfs/xfs_fs.h`.

#![allow(unsafe_code, reason = "ioctl takes a pointer; this module keeps its promises")]

use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Result;
use rustix::ioctl::Opcode;

use super::ioctl::{self, halves, pair};

/// `_IOWR('f', 11, struct fiemap)`.
const FIEMAP: Opcode = 0xC020_660B;
/// `_IOWR('X', 59, struct fsmap_head)`.
const GETFSMAP: Opcode = 0xC0C0_583B;
/// `_IOR('X', 124, struct xfs_fsop_geom_v4)`.
const XFS_GEOMETRY: Opcode = 0x8070_587C;
/// `_IOR('X', 31, struct fsxattr)`.
const GET_ATTRIBUTES: Opcode = 0x801C_581F;
/// `_IOR(0x94, 31, struct btrfs_ioctl_fs_info_args)`.
const BTRFS_INFO: Opcode = 0x8400_941F;
/// `_IOWR(0x94, 17, struct btrfs_ioctl_search_args_v2)`.
const BTRFS_TREE_SEARCH: Opcode = 0xC070_9411;

/// `struct fiemap` without its extents, in words.
const FIEMAP_HEAD_WORDS: usize = 4;
/// `struct fiemap_extent`.
const FIEMAP_EXTENT_WORDS: usize = 7;
/// Extents asked for at a time: 14 KB, which stay in the first-level cache; chosen by us.
const FIEMAP_EXTENTS: usize = 256;
/// `struct fsmap_head` with its two keys.
const FSMAP_HEAD_WORDS: usize = 24;
/// `struct fsmap`.
const FSMAP_RECORD_WORDS: usize = 8;
/// Records of free-space maps asked for at a time: 256 KB; chosen by us.
const FSMAP_RECORDS: usize = 4096;
/// `struct xfs_fsop_geom_v4`.
const XFS_GEOMETRY_WORDS: usize = 14;
/// `struct fsxattr`, 28 bytes, rounded up.
const ATTRIBUTES_WORDS: usize = 4;
/// `struct btrfs_ioctl_fs_info_args`, 1024 bytes.
const BTRFS_INFO_WORDS: usize = 128;
/// `struct btrfs_ioctl_search_args_v2` without its buffer.
const SEARCH_HEAD_WORDS: usize = 14;
/// Items of trees read at a time: 256 KB; chosen by us, at least a node of 64 KiB.
const SEARCH_BUFFER_WORDS: usize = 1 << 15;

fn exchange(file: BorrowedFd<'_>, opcode: Opcode, words: &mut [u64]) -> Result<()> {
    // SAFETY: every caller of this module gives an opcode with a buffer at least as large as the
    // structure it names plus the records that its head asks for.
    unsafe { ioctl::exchange(file, opcode, words) }
}

/// An extent as the kernel reports it.
#[derive(Debug, Clone, Copy)]
pub(super) struct MappedExtent {
    pub(super) logical_bytes: u64,
    pub(super) physical_bytes: u64,
    pub(super) length_bytes: u64,
    /// `FIEMAP_EXTENT_*`.
    pub(super) flags: u32,
}

/// Room for the extents of one call.
pub(super) struct ExtentBuffer {
    words: Vec<u64>,
}

impl ExtentBuffer {
    pub(super) fn new() -> Self {
        Self { words: vec![0; FIEMAP_HEAD_WORDS + FIEMAP_EXTENTS * FIEMAP_EXTENT_WORDS] }
    }

    /// The extents of `file` from byte `start`, as many as one call reports; data that waits in
    /// memory is written first if `sync`.
    pub(super) fn fill(
        &mut self,
        file: impl AsFd,
        start: u64,
        sync: bool,
    ) -> Result<impl Iterator<Item = MappedExtent> + '_> {
        self.words[0] = start;
        self.words[1] = u64::MAX - start;
        self.words[2] = pair(u32::from(sync), 0);
        self.words[3] = pair(FIEMAP_EXTENTS as u32, 0);
        exchange(file.as_fd(), FIEMAP, &mut self.words)?;
        let count = (halves(self.words[2]).1 as usize).min(FIEMAP_EXTENTS);
        let extents = self.words[FIEMAP_HEAD_WORDS..].chunks_exact(FIEMAP_EXTENT_WORDS);
        Ok(extents.take(count).map(|words| MappedExtent {
            logical_bytes: words[0],
            physical_bytes: words[1],
            length_bytes: words[2],
            flags: halves(words[5]).0,
        }))
    }
}

/// What occupies a stretch of a device, as `GETFSMAP` reports it.
#[derive(Debug, Clone, Copy)]
pub(super) struct MappedSpace {
    /// The device, as the kernel numbers it for programs.
    pub(super) device: u32,
    /// `FMR_OF_*`.
    pub(super) flags: u32,
    pub(super) physical_bytes: u64,
    /// An inode, or one of `FMR_OWN_*` with the flag `SPECIAL_OWNER`.
    pub(super) owner: u64,
    pub(super) length_bytes: u64,
}

/// A walk over everything that occupies the devices of a file system.
pub(super) struct SpaceWalk {
    words: Vec<u64>,
    records: usize,
}

impl SpaceWalk {
    pub(super) fn new() -> Self {
        let mut words = vec![0; FSMAP_HEAD_WORDS + FSMAP_RECORDS * FSMAP_RECORD_WORDS];
        // The keys: from everything zero to everything as large as it gets; a key has no length.
        words[FSMAP_HEAD_WORDS - FSMAP_RECORD_WORDS..][..4].fill(u64::MAX);
        Self { words, records: 0 }
    }

    /// Reads the next records; `false` if there are none.
    pub(super) fn next(&mut self, file: impl AsFd) -> Result<bool> {
        if self.records > 0 {
            // Go on behind the last record: the kernel adds its length itself.
            let last = FSMAP_HEAD_WORDS + (self.records - 1) * FSMAP_RECORD_WORDS;
            let low = FSMAP_HEAD_WORDS - 2 * FSMAP_RECORD_WORDS;
            self.words.copy_within(last..last + FSMAP_RECORD_WORDS, low);
        }
        self.words[0] = 0;
        self.words[1] = pair(FSMAP_RECORDS as u32, 0);
        exchange(file.as_fd(), GETFSMAP, &mut self.words)?;
        self.records = (halves(self.words[1]).1 as usize).min(FSMAP_RECORDS);
        Ok(self.records > 0)
    }

    /// Whether devices are numbered as the system numbers them (`FMH_OF_DEV_T`).
    pub(super) fn real_devices(&self) -> bool {
        halves(self.words[0]).1 & 1 != 0
    }

    /// What the last call reported.
    pub(super) fn records(&self) -> impl Iterator<Item = MappedSpace> + '_ {
        let records = self.words[FSMAP_HEAD_WORDS..].chunks_exact(FSMAP_RECORD_WORDS);
        records.take(self.records).map(|words| MappedSpace {
            device: halves(words[0]).0,
            flags: halves(words[0]).1,
            physical_bytes: words[1],
            owner: words[2],
            length_bytes: words[4],
        })
    }
}

/// The first fields of `struct xfs_fsop_geom`.
#[derive(Debug, Clone, Copy)]
pub(super) struct XfsGeometry {
    pub(super) block_bytes: u32,
    pub(super) group_blocks: u32,
    pub(super) groups: u32,
    pub(super) inode_bytes: u32,
    pub(super) data_blocks: u64,
    pub(super) realtime_blocks: u64,
    /// Block of the log, 0 if it is on another device.
    pub(super) log_start: u64,
    pub(super) log_blocks: u32,
}

impl XfsGeometry {
    pub(super) fn of(file: impl AsFd) -> Result<Self> {
        let mut words = [0; XFS_GEOMETRY_WORDS];
        exchange(file.as_fd(), XFS_GEOMETRY, &mut words)?;
        Ok(Self {
            block_bytes: halves(words[0]).0,
            group_blocks: halves(words[1]).0,
            groups: halves(words[1]).1,
            log_blocks: halves(words[2]).0,
            inode_bytes: halves(words[3]).0,
            data_blocks: words[4],
            realtime_blocks: words[5],
            log_start: words[7],
        })
    }
}

/// The `fsx_xflags` of `file` (`FS_XFLAG_*`).
pub(super) fn attributes(file: impl AsFd) -> Result<u32> {
    let mut words = [0; ATTRIBUTES_WORDS];
    exchange(file.as_fd(), GET_ATTRIBUTES, &mut words)?;
    Ok(halves(words[0]).0)
}

/// The first fields of `struct btrfs_ioctl_fs_info_args`.
#[derive(Debug, Clone, Copy)]
pub(super) struct BtrfsInfo {
    pub(super) devices: u64,
    pub(super) node_bytes: u32,
    pub(super) sector_bytes: u32,
}

impl BtrfsInfo {
    pub(super) fn of(file: impl AsFd) -> Result<Self> {
        let mut words = [0; BTRFS_INFO_WORDS];
        exchange(file.as_fd(), BTRFS_INFO, &mut words)?;
        let (node_bytes, sector_bytes) = halves(words[4]);
        Ok(Self { devices: words[1], node_bytes, sector_bytes })
    }
}

/// The key of an item of a btrfs tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TreeKey {
    pub(super) object: u64,
    pub(super) kind: u8,
    pub(super) offset: u64,
}

impl TreeKey {
    pub(super) const FIRST: Self = Self { object: 0, kind: 0, offset: 0 };

    /// The key behind this one, if there is one.
    fn next(self) -> Option<Self> {
        if let Some(offset) = self.offset.checked_add(1) {
            return Some(Self { offset, ..self });
        }
        if let Some(kind) = self.kind.checked_add(1) {
            return Some(Self { kind, offset: 0, ..self });
        }
        let object = self.object.checked_add(1)?;
        Some(Self { object, kind: 0, offset: 0 })
    }
}

/// A walk over the items of a btrfs tree, ascending by key.
pub(super) struct TreeWalk {
    words: Vec<u64>,
    tree: u64,
    next: Option<TreeKey>,
    items: usize,
}

impl TreeWalk {
    /// Of every item of `tree`.
    pub(super) fn new(tree: u64) -> Self {
        Self {
            words: vec![0; SEARCH_HEAD_WORDS + SEARCH_BUFFER_WORDS],
            tree,
            next: Some(TreeKey::FIRST),
            items: 0,
        }
    }

    /// Reads the next items and hands each to `take`; `false` if there are none.
    pub(super) fn next(
        &mut self,
        file: impl AsFd,
        mut take: impl FnMut(TreeKey, &[u8]),
    ) -> Result<bool> {
        let Some(from) = self.next else { return Ok(false) };
        self.words[..SEARCH_HEAD_WORDS].copy_from_slice(&[
            self.tree,
            from.object,
            u64::MAX,
            from.offset,
            u64::MAX,
            0,
            u64::MAX,
            pair(u32::from(from.kind), u32::from(u8::MAX)),
            pair(u32::MAX, 0),
            0,
            0,
            0,
            0,
            (SEARCH_BUFFER_WORDS * size_of::<u64>()) as u64,
        ]);
        exchange(file.as_fd(), BTRFS_TREE_SEARCH, &mut self.words)?;
        self.items = halves(self.words[8]).0 as usize;
        let last = self.hand_out(&mut take);
        self.next = last.and_then(TreeKey::next);
        Ok(last.is_some())
    }

    /// Hands out what the last call reported; returns the last key.
    fn hand_out(&self, take: &mut impl FnMut(TreeKey, &[u8])) -> Option<TreeKey> {
        /// `struct btrfs_ioctl_search_header`.
        const HEADER_BYTES: usize = 32;
        let bytes: &[u8] = {
            let words = &self.words[SEARCH_HEAD_WORDS..];
            // SAFETY: initialised words are initialised bytes, and bytes need no alignment.
            unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
        };
        let mut rest = bytes;
        let mut last = None;
        for _ in 0..self.items {
            let (header, behind) = rest.split_at_checked(HEADER_BYTES)?;
            let word =
                |at: usize| u64::from_ne_bytes(header[at..at + 8].try_into().expect("eight bytes"));
            let (kind, length) = halves(word(24));
            let (data, behind) = behind.split_at_checked(length as usize)?;
            let key = TreeKey { object: word(8), kind: kind as u8, offset: word(16) };
            take(key, data);
            last = Some(key);
            rest = behind;
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::{TreeKey, halves, pair};

    /// Two fields of 32 bits come out of a word as they went in.
    #[test]
    fn halves_of_a_pair() {
        assert_eq!(halves(pair(7, u32::MAX - 1)), (7, u32::MAX - 1));
    }

    /// The key behind a key carries from offset to kind to object, and ends at the last one.
    #[test]
    fn keys_follow_each_other() {
        let key = |object, kind, offset| TreeKey { object, kind, offset };
        assert_eq!(key(5, 1, 9).next(), Some(key(5, 1, 10)));
        assert_eq!(key(5, 1, u64::MAX).next(), Some(key(5, 2, 0)));
        assert_eq!(key(5, u8::MAX, u64::MAX).next(), Some(key(6, 0, 0)));
        assert_eq!(key(u64::MAX, u8::MAX, u64::MAX).next(), None);
    }
}
