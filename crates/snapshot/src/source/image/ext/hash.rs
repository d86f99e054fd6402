//! The hash of a name, by which the kernel lists a directory.
//!
//! Source: Linux, `fs/ext4/hash.c`, for which seeds and rounds are; MD4 after RFC 1320 with half of
//! its rounds, TEA after Wheeler & Needham 1994, "TEA, a Tiny Encryption Algorithm". Held against
//! `debugfs -R dx_hash` by a test.

use super::superblock::HashSetting;

/// What MD4 begins with (RFC 1320, §3.3).
const MD4_START: [u32; 4] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476];
/// The square roots of 2 and 3, of rounds two and three (RFC 1320, §3.4).
const MD4_ROUND_2: u32 = 0x5A82_7999;
const MD4_ROUND_3: u32 = 0x6ED9_EBA1;
/// The golden ratio, TEA's step.
const TEA_DELTA: u32 = 0x9E37_79B9;
const TEA_ROUNDS: u32 = 16;

/// A way to hash a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Legacy,
    HalfMd4,
    Tea,
}

/// A hash function of names: its method, its seed, and whether letters beyond ASCII are negative.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameHash {
    method: Method,
    unsigned: bool,
    seed: [u32; 4],
}

impl NameHash {
    /// The function that `version` names (of an index, or the superblock's own); none where it
    /// needs a key or is not known.
    pub(super) fn new(setting: &HashSetting, version: u8) -> Option<Self> {
        let (method, told_unsigned) = match version {
            0 => (Method::Legacy, false),
            1 => (Method::HalfMd4, false),
            2 => (Method::Tea, false),
            3 => (Method::Legacy, true),
            4 => (Method::HalfMd4, true),
            5 => (Method::Tea, true),
            _ => return None,
        };
        let seeded = setting.seed != [0; 4];
        Some(Self {
            method,
            unsigned: told_unsigned || setting.unsigned,
            seed: if seeded { setting.seed } else { MD4_START },
        })
    }

    /// The place of `name` in its directory: the hash, then the minor hash that parts equals.
    pub(super) fn order(&self, name: &[u8]) -> u64 {
        let (hash, minor) = match self.method {
            Method::Legacy => (self.legacy(name), 0),
            Method::HalfMd4 => self.half_md4(name),
            Method::Tea => self.tea(name),
        };
        // The lowest bit marks collisions in an index, and the highest hash its end.
        let mut hash = hash & !1;
        if hash == 0xFFFF_FFFE {
            hash = 0xFFFF_FFFC;
        }
        u64::from(hash) << 32 | u64::from(minor)
    }

    fn letter(&self, byte: u8) -> u32 {
        if self.unsigned { u32::from(byte) } else { i32::from(byte.cast_signed()).cast_unsigned() }
    }

    fn legacy(&self, name: &[u8]) -> u32 {
        let (mut last, mut before) = (0x12A3_FE2D_u32, 0x37AB_E8F9_u32);
        for &byte in name {
            let mut hash = before.wrapping_add(last ^ self.letter(byte).wrapping_mul(7_152_373));
            if hash & 0x8000_0000 != 0 {
                hash = hash.wrapping_sub(0x7FFF_FFFF);
            }
            (before, last) = (last, hash);
        }
        last << 1
    }

    /// `words` of the text, four letters each, filled up with its length.
    fn words<const N: usize>(&self, text: &[u8]) -> [u32; N] {
        let length = text.len() as u32;
        let mut pad = length | length << 8;
        pad |= pad << 16;
        let mut words = [pad; N];
        for (word, letters) in words.iter_mut().zip(text.chunks(4)) {
            for &byte in letters {
                *word = self.letter(byte).wrapping_add(*word << 8);
            }
        }
        words
    }

    fn half_md4(&self, name: &[u8]) -> (u32, u32) {
        let mut state = self.seed;
        for start in (0..name.len()).step_by(32) {
            half_md4_block(&mut state, self.words(&name[start..]));
        }
        (state[1], state[2])
    }

    fn tea(&self, name: &[u8]) -> (u32, u32) {
        let mut state = self.seed;
        for start in (0..name.len()).step_by(16) {
            tea_block(&mut state, self.words(&name[start..]));
        }
        (state[0], state[1])
    }
}

fn half_md4_block(state: &mut [u32; 4], words: [u32; 8]) {
    let select = |x: u32, y: u32, z: u32| z ^ (x & (y ^ z));
    let majority = |x: u32, y: u32, z: u32| (x & y).wrapping_add((x ^ y) & z);
    let parity = |x: u32, y: u32, z: u32| x ^ y ^ z;
    let mut mixed = *state;
    let mut step = |mix: &dyn Fn(u32, u32, u32) -> u32, turn: usize, added: u32, shift: u32| {
        // The four words take turns at being changed: a, d, c, b.
        let at = |offset: usize| (8 - turn % 4 + offset) % 4;
        let value = mix(mixed[at(1)], mixed[at(2)], mixed[at(3)]);
        let sum = mixed[at(0)].wrapping_add(value).wrapping_add(added);
        mixed[at(0)] = sum.rotate_left(shift);
    };
    for (turn, index) in [0, 1, 2, 3, 4, 5, 6, 7].into_iter().enumerate() {
        step(&select, turn, words[index], [3, 7, 11, 19][turn % 4]);
    }
    for (turn, index) in [1, 3, 5, 7, 0, 2, 4, 6].into_iter().enumerate() {
        let added = words[index].wrapping_add(MD4_ROUND_2);
        step(&majority, turn, added, [3, 5, 9, 13][turn % 4]);
    }
    for (turn, index) in [3, 7, 2, 6, 1, 5, 0, 4].into_iter().enumerate() {
        let added = words[index].wrapping_add(MD4_ROUND_3);
        step(&parity, turn, added, [3, 9, 11, 15][turn % 4]);
    }
    for (value, mixed) in state.iter_mut().zip(mixed) {
        *value = value.wrapping_add(mixed);
    }
}

fn tea_block(state: &mut [u32; 4], key: [u32; 4]) {
    let (mut left, mut right, mut sum) = (state[0], state[1], 0_u32);
    let mix = |value: u32, sum: u32, low: u32, high: u32| {
        (value << 4).wrapping_add(low) ^ value.wrapping_add(sum) ^ (value >> 5).wrapping_add(high)
    };
    for _ in 0..TEA_ROUNDS {
        sum = sum.wrapping_add(TEA_DELTA);
        left = left.wrapping_add(mix(right, sum, key[0], key[1]));
        right = right.wrapping_add(mix(left, sum, key[2], key[3]));
    }
    state[0] = state[0].wrapping_add(left);
    state[1] = state[1].wrapping_add(right);
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = [
        "a",
        "file name 17",
        "\u{fc}n\u{ef}code",
        "a name that is longer than thirty-two bytes by some",
    ];

    /// The hashes are those that `debugfs -R "dx_hash -h METHOD -s SEED NAME"` prints (e2fsprogs
    /// 1.47.0), for the seed 01234567-89ab-cdef-0123-456789abcdef.
    #[test]
    fn hashes_equal_those_of_debugfs() {
        let seed = [0x6745_2301, 0xEFCD_AB89, 0x6745_2301, 0xEFCD_AB89];
        let hashes = |version, seed| {
            let setting = HashSetting { seed, version, unsigned: false };
            let hash = NameHash::new(&setting, version).expect("a known method");
            NAMES.map(|name| {
                let order = hash.order(name.as_bytes());
                ((order >> 32) as u32, order as u32)
            })
        };
        let legacy = [0xE74B_53E2, 0x95CA_1088, 0x0DD7_2FF6, 0xC810_5754];
        assert_eq!(hashes(0, seed), legacy.map(|hash| (hash, 0)));
        let half_md4 = [
            (0x35DC_0CC4, 0x3F1D_ACEF),
            (0x1891_6922, 0x679D_7168),
            (0x4F03_FDDE, 0x5E13_C8A9),
            (0xBA1D_6BDA, 0x96AA_E4AA),
        ];
        assert_eq!(hashes(1, seed), half_md4);
        let unseeded = [
            (0xD5FA_7D7A, 0xACB4_8187),
            (0x6E9B_7EF8, 0x78E0_875E),
            (0x5155_BBDA, 0x4CD0_30CC),
            (0x48A4_FF02, 0xF07B_94E7),
        ];
        assert_eq!(hashes(1, [0; 4]), unseeded);
        let tea = [
            (0x6D0E_A4C0, 0xC189_22DF),
            (0x95E9_8E20, 0x1C4A_929A),
            (0x33E9_2700, 0x7118_658A),
            (0xCF23_80C4, 0x286D_AB63),
        ];
        assert_eq!(hashes(2, seed), tea);
    }

    /// Methods 3 to 5 are 0 to 2 for letters that count from zero; others are not known.
    #[test]
    fn unsigned_methods_differ_beyond_ascii_only() {
        let setting = HashSetting { seed: [1, 2, 3, 4], version: 1, unsigned: false };
        for version in 0..3 {
            let signed = NameHash::new(&setting, version).expect("known");
            let unsigned = NameHash::new(&setting, version + 3).expect("known");
            assert_eq!(signed.order(b"plain"), unsigned.order(b"plain"));
            assert_ne!(signed.order(b"abc\xFC"), unsigned.order(b"abc\xFC"));
        }
        assert!(NameHash::new(&setting, 6).is_none());
    }
}
