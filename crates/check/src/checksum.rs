//! Checksums that know their place.

use twox_hash::XxHash3_64;

use crate::bytes::u64_at;

/// Bytes of what seeds a checksum.
const PLACE_BYTES: usize = 28;

/// Bytes of a checksum.
const SUM_BYTES: usize = 8;

/// Of a structure of this kind (its magic number) at this address of this store; its checksum lies at
/// `at` and counts as zero. `structure` is as it was afterwards.
pub(crate) fn structure_sum(
    uuid: &[u8; 16],
    kind: u32,
    address: u64,
    structure: &mut [u8],
    at: usize,
) -> u64 {
    let mut place = [0; PLACE_BYTES];
    place[..16].copy_from_slice(uuid);
    place[16..20].copy_from_slice(&kind.to_le_bytes());
    place[20..].copy_from_slice(&address.to_le_bytes());
    let seed = XxHash3_64::oneshot_with_seed(0, &place);
    let kept = u64_at(structure, at);
    structure[at..at + SUM_BYTES].fill(0);
    let sum = XxHash3_64::oneshot_with_seed(seed, structure);
    structure[at..at + SUM_BYTES].copy_from_slice(&kept.to_le_bytes());
    sum
}

/// Of the data of a block in a slot.
pub(crate) fn short_sum(uuid: &[u8; 16], block: u32, slot: u32, data: &[u8]) -> u32 {
    let mut place = [0; 24];
    place[..16].copy_from_slice(uuid);
    place[16..20].copy_from_slice(&block.to_le_bytes());
    place[20..].copy_from_slice(&slot.to_le_bytes());
    let seed = XxHash3_64::oneshot_with_seed(0, &place);
    XxHash3_64::oneshot_with_seed(seed, data) as u32
}

/// The greatest number up to `most` whose low 32 bits are `low`; `None` if there is none.
pub(crate) fn extended(low: u32, most: u64) -> Option<u64> {
    most.checked_sub(u64::from((most as u32).wrapping_sub(low)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_extended_to_the_last_one_that_there_was() {
        assert_eq!(extended(7, 9), Some(7));
        assert_eq!(extended(9, 9), Some(9));
        assert_eq!(extended(10, 9), None);
        assert_eq!(extended(0xFFFF_FFFF, 0x1_0000_0003), Some(0xFFFF_FFFF));
        assert_eq!(extended(2, 0x1_0000_0003), Some(0x1_0000_0002));
    }

    #[test]
    fn sums_are_those_of_the_published_hash() {
        // Of XXH3_64bits in xxhsum 0.8.1, of nothing and of a letter.
        assert_eq!(XxHash3_64::oneshot(b""), 0x2D06_8005_38D3_94C2);
        assert_eq!(XxHash3_64::oneshot(b"a"), 0xE6C6_32B6_1E96_4E1F);
        assert_eq!(XxHash3_64::oneshot(b"abc"), 0x78AF_5F94_892F_3950);
    }
}
