//! An inode: what kind of file, how long, when, and how it is mapped.
//!
//! Source: Linux, `Documentation/filesystems/ext4/inodes.rst`.

use super::super::fields::Fields;
use super::super::tree::Found;
use super::superblock::{Features, INCOMPATIBLE_LARGEDIR};
use crate::{FileKind, NO_TIME};

/// The smallest inode, bytes.
pub(super) const INODE_BYTES_MIN: usize = 128;

/// Where the map stands, and how long it is, bytes.
pub(super) const MAP_AT: usize = 0x28;
pub(super) const MAP_BYTES: usize = 60;

const FLAG_ENCRYPTED: u32 = 0x800;
const FLAG_INDEX: u32 = 0x1000;
const FLAG_HUGE: u32 = 0x4_0000;
const FLAG_EXTENTS: u32 = 0x8_0000;
const FLAG_VERITY: u32 = 0x10_0000;
const FLAG_ATTRIBUTE: u32 = 0x20_0000;
const FLAG_INLINE: u32 = 0x1000_0000;
const FLAG_CASEFOLD: u32 = 0x4000_0000;

const NANOSECONDS: i64 = 1_000_000_000;

/// The bytes of an inode, at least [`INODE_BYTES_MIN`] of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inode<'a> {
    pub(super) bytes: &'a [u8],
}

impl<'a> Inode<'a> {
    fn fields(self) -> Fields<'a> {
        Fields::little(self.bytes)
    }

    fn flags(self) -> u32 {
        self.fields().u32(0x20)
    }

    /// Whether a file is here: it has a kind, and links.
    pub(super) fn is_used(self) -> bool {
        self.fields().u16(0x0) != 0 && self.fields().u16(0x1A) != 0
    }

    /// Whether its data stands in the inode itself.
    pub(super) fn is_inline(self) -> bool {
        self.flags() & FLAG_INLINE != 0
    }

    /// Whether it is mapped by extents.
    pub(super) fn has_extents(self) -> bool {
        self.flags() & FLAG_EXTENTS != 0
    }

    /// Whether its map is one of extents, of data as it is in the file, and its blocks are counted in
    /// the usual way.
    pub(super) fn is_plain(self) -> bool {
        let special = FLAG_ENCRYPTED | FLAG_HUGE | FLAG_VERITY | FLAG_ATTRIBUTE | FLAG_INLINE;
        self.flags() & (special | FLAG_EXTENTS) == FLAG_EXTENTS
    }

    /// Whether what is on the device is not what is in the file.
    pub(super) fn is_encrypted(self) -> bool {
        self.flags() & FLAG_ENCRYPTED != 0
    }

    /// Whether the directory has an index of hashes.
    pub(super) fn is_indexed(self) -> bool {
        self.flags() & FLAG_INDEX != 0
    }

    /// Whether names in the directory are the same in small and capital letters.
    pub(super) fn is_case_folded(self) -> bool {
        self.flags() & FLAG_CASEFOLD != 0
    }

    /// The 60 bytes that hold the map, or the first of the data.
    pub(super) fn map(self) -> &'a [u8] {
        self.fields().slice(MAP_AT, MAP_BYTES)
    }

    /// What stands behind the fixed fields: attributes, among them more inline data.
    pub(super) fn attributes(self) -> &'a [u8] {
        let extra = self.extra_bytes();
        let start = INODE_BYTES_MIN + extra;
        if extra == 0 { &[] } else { self.bytes.get(start..).unwrap_or(&[]) }
    }

    /// How many bytes of fixed fields stand behind the first 128.
    fn extra_bytes(self) -> usize {
        if self.bytes.len() <= INODE_BYTES_MIN + 4 {
            return 0;
        }
        usize::from(self.fields().u16(0x80)).min(self.bytes.len() - INODE_BYTES_MIN)
    }

    fn kind(self) -> FileKind {
        match self.fields().u16(0x0) & 0xF000 {
            0x8000 => FileKind::Regular,
            0x4000 => FileKind::Directory,
            0xA000 => FileKind::Link,
            _ => FileKind::Other,
        }
    }

    /// The time at `seconds`, whose nanoseconds and high bits stand at `extra` if that is there.
    fn time_ns(self, seconds: usize, extra: usize) -> i64 {
        let mut whole = i64::from(self.fields().i32(seconds));
        let mut nanoseconds = 0;
        if extra + 4 <= INODE_BYTES_MIN + self.extra_bytes() {
            let word = self.fields().u32(extra);
            whole += i64::from(word & 3) << 32;
            nanoseconds = i64::from(word >> 2).min(NANOSECONDS - 1);
        }
        whole.saturating_mul(NANOSECONDS).saturating_add(nanoseconds)
    }

    /// What it says of its file, numbered `inode`.
    pub(super) fn found(self, inode: u64, features: Features) -> Found {
        let fields = self.fields();
        let kind = self.kind();
        let long = kind == FileKind::Regular || features.has_incompatible(INCOMPATIBLE_LARGEDIR);
        let birth = INODE_BYTES_MIN + self.extra_bytes() >= 0x94;
        Found {
            inode,
            kind,
            links: u32::from(fields.u16(0x1A)),
            size_bytes: if long { fields.halves(0x4, 0x6C) } else { fields.u32(0x4).into() },
            birth_ns: if birth { self.time_ns(0x90, 0x94) } else { NO_TIME },
            change_ns: self.time_ns(0xC, 0x84),
            modify_ns: self.time_ns(0x10, 0x88),
        }
    }
}
