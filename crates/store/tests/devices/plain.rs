//! The slow reference: bytes in a vector, and which of them are known.

use agewell_store::device::{Disk, Piece, ReadPiece};
use proptest::prelude::*;

/// Something that a disk is asked to do, in blocks.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Pieces: first block, blocks, and the byte that the data is made from.
    Write(Vec<(u64, u64, u8)>),
    Read(u64, u64),
    Discard(u64, u64),
    Flush,
}

/// Steps on a disk of `blocks` blocks, pieces of at most `longest` blocks.
pub(crate) fn steps(blocks: u64, longest: u64) -> impl Strategy<Value = Vec<Step>> {
    let extent = move || {
        (0..blocks, 1..=longest)
            .prop_map(move |(first, length)| (first, length.min(blocks - first)))
    };
    let piece = (extent(), any::<u8>()).prop_map(|((first, length), seed)| (first, length, seed));
    let step = prop_oneof![
        4 => prop::collection::vec(piece, 1..6).prop_map(Step::Write),
        4 => extent().prop_map(|(first, length)| Step::Read(first, length)),
        1 => extent().prop_map(|(first, length)| Step::Discard(first, length)),
        1 => Just(Step::Flush),
    ];
    prop::collection::vec(step, 1..40)
}

/// Words that differ from place to place and from write to write.
pub(crate) fn contents(first: u64, bytes: usize, seed: u8) -> Vec<u8> {
    let word = |at: u64| (first * 4096 + at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    // Word by word into their place: byte by byte it was most of what these tests take.
    let mut made = vec![0; bytes / 8 * 8];
    for (at, into) in (0..).zip(made.chunks_exact_mut(8)) {
        into.copy_from_slice(&(word(at) ^ u64::from(seed) << 24).to_le_bytes());
    }
    made
}

/// The unit in which it is remembered what is known.
const SECTOR_BYTES: u64 = 512;

/// What a disk must hold, but where it may hold anything.
pub(crate) struct Plain {
    bytes: Vec<u8>,
    is_known: Vec<bool>,
}

impl Plain {
    pub(crate) fn zeros(size_bytes: u64) -> Self {
        Self {
            bytes: vec![0; size_bytes as usize],
            is_known: vec![true; (size_bytes / SECTOR_BYTES) as usize],
        }
    }

    fn know(&mut self, offset: u64, bytes: u64, is_known: bool) {
        let sectors = (offset / SECTOR_BYTES) as usize..((offset + bytes) / SECTOR_BYTES) as usize;
        self.is_known[sectors].fill(is_known);
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        self.bytes[offset as usize..offset as usize + data.len()].copy_from_slice(data);
        self.know(offset, data.len() as u64, true);
    }

    pub(crate) fn discard(&mut self, offset: u64, bytes: u64) {
        self.know(offset, bytes, false);
    }

    /// The first sector that is not as it must be, counted from `offset`.
    pub(crate) fn difference(&self, offset: u64, read: &[u8]) -> Option<usize> {
        let first = (offset / SECTOR_BYTES) as usize;
        let expected = self.bytes[offset as usize..].chunks(SECTOR_BYTES as usize);
        let mut sectors =
            read.chunks(SECTOR_BYTES as usize).zip(expected).zip(&self.is_known[first..]);
        sectors.position(|((read, expected), is_known)| *is_known && read != expected)
    }
}

/// Carries out `steps` on `disk` and on a plain vector, and compares all that is read, at the end the
/// whole disk. Pieces of one call do not overlap: their order is the disk's.
pub(crate) fn hold_against_plain(
    disk: &dyn Disk,
    steps: &[Step],
    block_bytes: u64,
) -> Result<(), TestCaseError> {
    let mut plain = Plain::zeros(disk.size_bytes());
    for step in steps {
        match step {
            Step::Write(pieces) => {
                let mut apart: Vec<(u64, Vec<u8>)> = Vec::new();
                for &(first, length, seed) in pieces {
                    let data = contents(first, (length * block_bytes) as usize, seed);
                    let (offset, end) = (first * block_bytes, (first + length) * block_bytes);
                    if apart
                        .iter()
                        .all(|(at, other)| end <= *at || offset >= at + other.len() as u64)
                    {
                        apart.push((offset, data));
                    }
                }
                let pieces: Vec<Piece<'_>> =
                    apart.iter().map(|(offset, data)| Piece { offset: *offset, data }).collect();
                disk.write(&pieces).unwrap();
                for (offset, data) in &apart {
                    plain.write(*offset, data);
                }
            }
            Step::Read(first, length) => {
                let mut read = vec![0xA5; (length * block_bytes) as usize];
                disk.read(first * block_bytes, &mut read).unwrap();
                prop_assert_eq!(plain.difference(first * block_bytes, &read), None, "{:?}", step);
                // Block by block, all at once, the last first.
                read.fill(0xA5);
                let mut pieces: Vec<ReadPiece<'_>> = (*first..)
                    .map(|block| block * block_bytes)
                    .zip(read.chunks_exact_mut(block_bytes as usize))
                    .map(|(offset, into)| ReadPiece { offset, into })
                    .collect();
                pieces.reverse();
                disk.read_pieces(&mut pieces).unwrap();
                prop_assert_eq!(plain.difference(first * block_bytes, &read), None, "{:?}", step);
            }
            Step::Discard(first, length) => {
                disk.discard(first * block_bytes, length * block_bytes).unwrap();
                plain.discard(first * block_bytes, length * block_bytes);
            }
            Step::Flush => disk.flush().unwrap(),
        }
    }
    let mut read = vec![0xA5; disk.size_bytes() as usize];
    disk.read(0, &mut read).unwrap();
    prop_assert_eq!(plain.difference(0, &read), None, "at the end");
    Ok(())
}

/// What reaches beyond the end is refused, and nothing of it is done.
pub(crate) fn refuses_what_is_beyond_the_end(disk: &dyn Disk, block_bytes: u64) {
    use std::io::ErrorKind::InvalidInput;
    let (size, block) = (disk.size_bytes(), vec![7; block_bytes as usize]);
    let mut into = block.clone();
    assert_eq!(disk.read(size, &mut into).unwrap_err().kind(), InvalidInput);
    assert_eq!(disk.read(u64::MAX - block_bytes + 1, &mut into).unwrap_err().kind(), InvalidInput);
    let mut more = block.clone();
    let mut pieces = [(0, &mut into), (size, &mut more)]
        .map(|(offset, into)| ReadPiece { offset, into: &mut into[..] });
    assert_eq!(disk.read_pieces(&mut pieces).unwrap_err().kind(), InvalidInput);
    assert_eq!(disk.discard(size - block_bytes, 2 * block_bytes).unwrap_err().kind(), InvalidInput);
    let pieces = [Piece { offset: 0, data: &block }, Piece { offset: size, data: &block }];
    let refused = disk.write(&pieces).unwrap_err();
    assert_eq!(refused.kind(), InvalidInput);
    assert!(!refused.to_string().contains('\n'));
    disk.read(0, &mut into).unwrap();
    assert!(into.iter().all(|byte| *byte == 0), "the piece within the disk was written");
    disk.read(size - block_bytes, &mut into).unwrap();
}
