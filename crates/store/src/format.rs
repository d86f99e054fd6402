//! The format as values: what is read is checked, what is written is as `docs/internals/format.md` says.

mod geometry;
mod map_page;
mod record;
mod root;

pub use geometry::{FormatOptions, Geometry};
pub(crate) use map_page::{MapEntry, MapPage};
pub(crate) use record::{
    ANNOUNCED_FREE_MAX, ANNOUNCED_THREADED_MAX, InlineRecord, Kind, Named, RING_RECORD_BLOCKS_MAX,
    RingRecord, Run, Runs,
};
pub(crate) use root::Root;

use std::hash::Hasher;

use twox_hash::XxHash3_64;

use crate::seeded::{SeededFault, is_seeded};

/// Nothing: no slot, no segment.
pub(crate) const NONE: u32 = u32::MAX;

/// Set in a slot whose data is known to be damaged.
pub(crate) const DAMAGED: u32 = 1 << 31;

/// Where the checksum of a structure is, but for the superblock's.
const CHECKSUM_AT: usize = 8;

/// What a structure begins with, which is also the kind in its checksum's seed.
pub(crate) type Magic = [u8; 4];

/// Where a structure belongs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) uuid: &'a [u8; 16],
    pub(crate) magic: Magic,
    /// Its address, blocks.
    pub(crate) address: u64,
}

impl Place<'_> {
    fn seed(&self) -> u64 {
        let mut bytes = [0; 28];
        bytes[..16].copy_from_slice(self.uuid);
        bytes[16..20].copy_from_slice(&self.magic);
        if !is_seeded(SeededFault::ChecksumWithoutAddress) {
            bytes[20..].copy_from_slice(&self.address.to_le_bytes());
        }
        XxHash3_64::oneshot(&bytes)
    }

    /// Puts the checksum into `bytes` at `at`, which is zero there.
    fn sign_at(&self, bytes: &mut [u8], at: usize) -> u64 {
        let sum = XxHash3_64::oneshot_with_seed(self.seed(), bytes);
        bytes[at..at + 8].copy_from_slice(&sum.to_le_bytes());
        sum
    }

    /// Puts magic number and checksum into `bytes`.
    pub(crate) fn sign(&self, bytes: &mut [u8]) -> u64 {
        bytes[..4].copy_from_slice(&self.magic);
        self.sign_at(bytes, CHECKSUM_AT)
    }

    /// The checksum of `bytes`, if that is what belongs here.
    fn check_at(&self, bytes: &[u8], at: usize) -> Option<u64> {
        let said = u64_at(bytes, at);
        // In three pieces, as a copy with zeros would be made of every page that is read.
        let mut hasher = XxHash3_64::with_seed(self.seed());
        hasher.write(&bytes[..at]);
        hasher.write(&[0; 8]);
        hasher.write(&bytes[at + 8..]);
        (hasher.finish() == said).then_some(said)
    }

    /// The same where magic number and checksum stand in their usual places.
    pub(crate) fn check(&self, bytes: &[u8]) -> Option<u64> {
        if bytes[..4] == self.magic { self.check_at(bytes, CHECKSUM_AT) } else { None }
    }
}

/// The short sum of a block's data.
pub(crate) fn short_sum(uuid: &[u8; 16], block: u32, slot: u32, data: &[u8]) -> u32 {
    let mut bytes = [0; 24];
    bytes[..16].copy_from_slice(uuid);
    bytes[16..20].copy_from_slice(&block.to_le_bytes());
    bytes[20..].copy_from_slice(&slot.to_le_bytes());
    XxHash3_64::oneshot_with_seed(XxHash3_64::oneshot(&bytes), data) as u32
}

/// Sequences, generations and numbers of ring records are below this: no store gets there, and one more is always a
/// number.
const NUMBERS_END: u64 = 1 << 63;

/// Whether a structure may say these; its incarnation is below 2^31.
pub(crate) fn are_possible(numbers: &[u64], incarnation: u32) -> bool {
    numbers.iter().all(|number| *number < NUMBERS_END) && incarnation < 1 << 31
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

pub(crate) fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}
