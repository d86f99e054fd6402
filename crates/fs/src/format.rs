//! What items there are, and their bytes. `docs/internals/file-system-format.md` says it in words.

use std::ops::Range;

use agewell_store::Store;
use agewell_store::device::Disk;
use rustix::fs::FileType;
use twox_hash::XxHash3_64;

use crate::FsError;
use crate::node::{Key, u32_at};

/// The block that says what this is.
pub(crate) const SUPERBLOCK: u32 = 0;

const MAGIC: &[u8; 8] = b"AGEWELLF";
const VERSION: u16 = 1;
const MINOR_VERSION: u16 = 1;

/// The feature that there is a journal, which file systems of version 1.0 have not.
const HAS_JOURNAL: u32 = 1;

/// Blocks that a journal may have: more than this program makes one of.
const JOURNAL_BLOCKS_MAX: u32 = 1 << 10;

/// The inode of the root, as the kernel wants it.
pub const ROOT_INODE: u64 = 1;

/// What is not about one file.
pub(crate) const NO_OBJECT: u64 = 0;

/// Bytes of a name at most (`NAME_MAX` of Linux).
pub const NAME_BYTES_MAX: usize = 255;

/// Bytes of a file at most: block numbers in it have 43 bits, so that sizes stay positive.
pub const FILE_BYTES_MAX: u64 = i64::MAX as u64 - 65_535;

/// Bits of the number of a block within a file: the largest file has 2^53 blocks of 1,024 bytes.
const BLOCK_BITS: u32 = 54;

/// No entry of a directory has this number or a greater one; chosen by us: never reached.
pub(crate) const ENTRIES_END: u64 = 1 << 62;

/// No inode has this number or a greater one: keys have 56 bits for it.
const INODES_END_MAX: u64 = 1 << 55;

/// Kinds of items about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Its inode.
    Inode = 1,
    /// A part of an extended attribute.
    Attribute = 2,
    /// An entry of a directory by the hash of its name: its number.
    Name = 3,
    /// An entry of a directory by its number: inode, type and name.
    Entry = 4,
    /// What is in a small file, or where a link leads.
    Content = 5,
    /// Blocks of a file.
    Extent = 6,
}

/// Kinds of items that are about no one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SystemKind {
    /// A file that has no name any more.
    Orphan = 1,
    /// A file whose blocks beyond its end are to be freed.
    Shrinking = 2,
    /// Blocks that several files have.
    Shared = 3,
}

fn join(object: u64, kind: u8, offset: u64) -> Key {
    Key::from(object) << 72 | Key::from(kind) << 64 | Key::from(offset)
}

/// The key of an item about `inode`.
pub(crate) fn key(inode: u64, kind: Kind, offset: u64) -> Key {
    join(inode, kind as u8, offset)
}

/// The key of an item about none.
pub(crate) fn system_key(kind: SystemKind, offset: u64) -> Key {
    join(NO_OBJECT, kind as u8, offset)
}

/// The offset of a key.
pub(crate) fn offset_of(key: Key) -> u64 {
    key as u64
}

/// A moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Seconds since 1970.
    pub seconds: i64,
    /// And nanoseconds.
    pub nanoseconds: u32,
}

/// An inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inode {
    pub(crate) mode: u32,
    pub(crate) links: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The number of a device.
    pub(crate) device: u32,
    pub(crate) flags: u32,
    /// Bytes; of a directory, its entries.
    pub(crate) size: u64,
    /// Blocks of data, promised ones among them.
    pub(crate) blocks: u64,
    pub(crate) accessed: Time,
    pub(crate) modified: Time,
    pub(crate) changed: Time,
    pub(crate) created: Time,
    /// Of a directory, where it is; of a file, where it was made.
    pub(crate) parent: u64,
    /// Of a directory, the number of the next entry.
    pub(crate) next_entry: u64,
}

pub(crate) const INODE_BYTES: usize = 104;

/// What the file has is in an item of its own.
pub(crate) const IS_SMALL: u32 = 1;
/// There are extended attributes.
pub(crate) const HAS_ATTRIBUTES: u32 = 2;

impl Inode {
    pub(crate) fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.file_type() == FileType::Directory
    }

    pub(crate) fn is_file(&self) -> bool {
        self.file_type() == FileType::RegularFile
    }

    pub(crate) fn is_small(&self) -> bool {
        self.flags & IS_SMALL != 0
    }

    pub(crate) fn encode(&self) -> [u8; INODE_BYTES] {
        let mut bytes = [0; INODE_BYTES];
        let words = [self.mode, self.links, self.uid, self.gid, self.device, self.flags];
        for (at, word) in words.into_iter().enumerate() {
            bytes[at * 4..at * 4 + 4].copy_from_slice(&word.to_le_bytes());
        }
        let times = [self.accessed, self.modified, self.changed, self.created];
        let longs = [
            self.size,
            self.blocks,
            times[0].seconds as u64,
            times[1].seconds as u64,
            times[2].seconds as u64,
            times[3].seconds as u64,
        ];
        for (at, long) in longs.into_iter().enumerate() {
            bytes[24 + at * 8..32 + at * 8].copy_from_slice(&long.to_le_bytes());
        }
        for (at, time) in times.into_iter().enumerate() {
            let nanoseconds = time.nanoseconds.to_le_bytes();
            bytes[72 + at * 4..76 + at * 4].copy_from_slice(&nanoseconds);
        }
        bytes[88..96].copy_from_slice(&self.parent.to_le_bytes());
        bytes[96..104].copy_from_slice(&self.next_entry.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; INODE_BYTES] = bytes.try_into().ok()?;
        let word = |at: usize| u32_at(bytes, at * 4);
        let time = |number: usize| Time {
            seconds: u64_at(bytes, 40 + number * 8) as i64,
            nanoseconds: u32_at(bytes, 72 + number * 4),
        };
        let inode = Self {
            mode: word(0),
            links: word(1),
            uid: word(2),
            gid: word(3),
            device: word(4),
            flags: word(5),
            size: u64_at(bytes, 24),
            blocks: u64_at(bytes, 32),
            accessed: time(0),
            modified: time(1),
            changed: time(2),
            created: time(3),
            parent: u64_at(bytes, 88),
            next_entry: u64_at(bytes, 96),
        };
        let is_known = inode.file_type() != FileType::Unknown;
        let nanoseconds = (0..4).map(|number| time(number).nanoseconds);
        let is_sound = is_known
            && nanoseconds.max() < Some(1_000_000_000)
            && inode.size <= FILE_BYTES_MAX
            && inode.blocks < 1 << BLOCK_BITS
            && inode.next_entry < ENTRIES_END;
        is_sound.then_some(inode)
    }
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// A number that is an item's whole value.
pub(crate) fn number_in(value: &[u8]) -> Option<u64> {
    value.try_into().ok().map(u64::from_le_bytes)
}

/// Blocks of a file that follow one another in it and by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The first block in the file.
    pub(crate) at: u64,
    /// Its number; nothing if it is promised and was not written yet.
    pub(crate) number: u32,
    pub(crate) count: u32,
    pub(crate) state: ExtentState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExtentState {
    /// The file's own.
    Own,
    /// Perhaps of other files as well.
    Shared,
    /// Promised: reads as zeros.
    Promised,
}

pub(crate) const EXTENT_BYTES: usize = 12;

impl Extent {
    /// The first block behind it in the file.
    pub(crate) fn end(&self) -> u64 {
        self.at + u64::from(self.count)
    }

    /// The part of it from `from` to before `to`, blocks of the file that are within it.
    pub(crate) fn part(&self, from: u64, to: u64) -> Self {
        let skipped = (from - self.at) as u32;
        let number = if self.state == ExtentState::Promised { 0 } else { self.number + skipped };
        Self { at: from, number, count: (to - from) as u32, state: self.state }
    }

    /// Whether `next` continues it.
    pub(crate) fn is_followed_by(&self, next: &Self) -> bool {
        let numbers_follow = self.state == ExtentState::Promised
            || self.number.checked_add(self.count) == Some(next.number);
        self.end() == next.at && self.state == next.state && numbers_follow
    }

    pub(crate) fn encode(&self) -> [u8; EXTENT_BYTES] {
        let mut bytes = [0; EXTENT_BYTES];
        bytes[..4].copy_from_slice(&self.number.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.count.to_le_bytes());
        bytes[8] = self.state as u8;
        bytes
    }

    pub(crate) fn decode(at: u64, bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; EXTENT_BYTES] = bytes.try_into().ok()?;
        let state = match bytes[8] {
            0 => ExtentState::Own,
            1 => ExtentState::Shared,
            2 => ExtentState::Promised,
            _ => return None,
        };
        let extent = Self { at, number: u32_at(bytes, 0), count: u32_at(bytes, 4), state };
        let is_sound = extent.count > 0
            && extent.number.checked_add(extent.count).is_some()
            && at.checked_add(u64::from(extent.count)).is_some_and(|end| end < 1 << BLOCK_BITS);
        is_sound.then_some(extent)
    }
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) inode: u64,
    pub(crate) file_type: FileType,
    pub(crate) name: Vec<u8>,
}

/// The type of a file as a byte, which is the one that `readdir` gives.
fn type_byte(file_type: FileType) -> u8 {
    (file_type.as_raw_mode() >> 12) as u8
}

impl Entry {
    pub(crate) fn encode(inode: u64, file_type: FileType, name: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(9 + name.len());
        bytes.extend(inode.to_le_bytes());
        bytes.push(type_byte(file_type));
        bytes.extend(name);
        bytes
    }

    /// The inode, type and name in `bytes`.
    pub(crate) fn view(bytes: &[u8]) -> Option<(u64, FileType, &[u8])> {
        let name = bytes.get(9..).filter(|name| is_name(name))?;
        let file_type = FileType::from_raw_mode(u32::from(bytes[8]) << 12);
        (file_type != FileType::Unknown).then(|| (u64_at(bytes, 0), file_type, name))
    }
}

/// Whether `name` can be an entry's.
pub(crate) fn is_name(name: &[u8]) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && !name.iter().any(|byte| matches!(byte, 0 | b'/'))
        && name != b"."
        && name != b".."
}

/// The hash of a name, with room for `bits` bits of a counter.
pub(crate) fn name_hash(seed: u64, name: &[u8], bits: u32) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, name) << bits
}

/// What the superblock says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Superblock {
    /// The seed of the hashes of names.
    pub(crate) seed: u64,
    /// No inode has this number or a greater one.
    pub(crate) inodes_end: u64,
    /// Blocks that are promised to files.
    pub(crate) reserved: u64,
    pub(crate) label: [u8; 32],
    /// Blocks of the journal; none if there is none.
    pub(crate) journal: Range<u32>,
}

impl Superblock {
    pub(crate) const INODES_END_AT: usize = 32;
    pub(crate) const RESERVED_AT: usize = 40;

    pub(crate) fn encode(&self, block: &mut [u8]) {
        block.fill(0);
        block[..8].copy_from_slice(MAGIC);
        block[8..10].copy_from_slice(&VERSION.to_le_bytes());
        let (minor, features) =
            if self.journal.is_empty() { (0, 0) } else { (MINOR_VERSION, HAS_JOURNAL) };
        block[10..12].copy_from_slice(&minor.to_le_bytes());
        block[12..16].copy_from_slice(&features.to_le_bytes());
        block[24..32].copy_from_slice(&self.seed.to_le_bytes());
        block[32..40].copy_from_slice(&self.inodes_end.to_le_bytes());
        block[40..48].copy_from_slice(&self.reserved.to_le_bytes());
        block[48..80].copy_from_slice(&self.label);
        if !self.journal.is_empty() {
            block[80..84].copy_from_slice(&self.journal.start.to_le_bytes());
            block[84..88].copy_from_slice(&(self.journal.len() as u32).to_le_bytes());
        }
    }

    /// The block that has that of the file system in `store`.
    pub(crate) fn read<D: Disk>(store: &Store<D>) -> Result<Vec<u8>, FsError> {
        let mut block = vec![0; store.geometry().block_bytes as usize];
        if !store.read(SUPERBLOCK, &mut block)? {
            return Err(FsError::Format(
                "the store holds no file system; `agewell mkfs` makes one".into(),
            ));
        }
        Ok(block)
    }

    pub(crate) fn decode(block: &[u8]) -> Result<Self, FsError> {
        let refuse = |what: &str| Err(FsError::Format(what.to_owned()));
        if &block[..8] != MAGIC {
            return refuse("the store holds no file system; `agewell mkfs` makes one");
        }
        let version = u16::from_le_bytes([block[8], block[9]]);
        if version != VERSION {
            return Err(FsError::Format(format!(
                "the file system is of version {version}; this program knows version {VERSION}"
            )));
        }
        let features = u32_at(block, 12);
        if features & !HAS_JOURNAL != 0 {
            return refuse("the file system has features that this program does not know");
        }
        let (first, blocks) = (u32_at(block, 80), u32_at(block, 84));
        let journal = match features & HAS_JOURNAL {
            0 => 0..0,
            _ => first..first.saturating_add(blocks),
        };
        let is_sound = journal.is_empty() || first >= 2 && blocks <= JOURNAL_BLOCKS_MAX;
        if !is_sound {
            return refuse("the superblock is damaged: there is no such journal");
        }
        let inodes_end = u64_at(block, Self::INODES_END_AT);
        if !(ROOT_INODE + 1..INODES_END_MAX).contains(&inodes_end) {
            return refuse("the superblock is damaged: there are more inodes than there can be");
        }
        Ok(Self {
            seed: u64_at(block, 24),
            inodes_end,
            reserved: u64_at(block, Self::RESERVED_AT),
            label: block[48..80].try_into().expect("32 bytes"),
            journal,
        })
    }
}
