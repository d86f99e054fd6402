//! Damage is detected and named, or has no effect; whatever the bytes are, a check ends.

use std::collections::BTreeSet;

use agewell_check::{CheckError, Checked, Severity, salvage};
use proptest::prelude::*;

use crate::histories::{End, Step, history, state, written};
use crate::writer::{Change, Shape, State, Writer};
use crate::{checked, lines};

/// What is done to a block of an image.
#[derive(Debug, Clone, Copy)]
enum Injury {
    Flip { byte: usize, bit: u8 },
    Zero,
    Swap { with: usize },
}

impl Injury {
    fn inflict(self, image: &mut [u8], block_bytes: usize, block: usize) {
        let at = block * block_bytes;
        match self {
            Self::Flip { byte, bit } => image[at + byte % block_bytes] ^= 1 << (bit % 8),
            Self::Zero => image[at..at + block_bytes].fill(0),
            Self::Swap { with } => {
                for index in 0..block_bytes {
                    image.swap(at + index, with * block_bytes + index);
                }
            }
        }
    }
}

/// A store with every kind of record, blocks in holes, and free slots.
pub(crate) fn example(closed: bool) -> Writer {
    let mut writer = Writer::format(Shape::SMALL);
    let write = |blocks: std::ops::Range<u32>, fill: u8| -> Vec<Change> {
        blocks.map(|block| Change::Write(block, fill)).collect()
    };
    for first in (0..72).step_by(6) {
        writer.inline_group(&write(first..first + 6, 1));
    }
    writer.write_map();
    writer.open();
    writer.inline_group(&write(3..8, 2));
    writer.ring_group(&write(20..24, 3));
    writer.mixed_group(&write(60..63, 4), &[Change::Free(50), Change::Write(51, 5)]);
    writer.checkpoint();
    writer.inline_group(&[Change::Write(0, 6), Change::Free(1), Change::Write(50, 6)]);
    writer.ring_group(&write(30..33, 7));
    writer.inline_group(&write(10..12, 8));
    if closed {
        writer.close();
    }
    writer
}

/// Whether what is read is right: a state that the store was in, but for blocks that are named as affected.
fn is_right(read: &Checked, writer: &Writer) -> bool {
    let affected = read.affected();
    let found = state(read);
    let is = |state: &State| {
        let blocks: BTreeSet<u32> = state.keys().chain(found.keys()).copied().collect();
        let mut certain = blocks.into_iter().filter(|&block| !affected.contains(block));
        certain.all(|block| state.get(&block) == found.get(&block))
    };
    writer.history.get(read.sequence as usize).is_some_and(is)
}

/// Reads an injured image, and holds what is found against what was written.
fn examine(image: &Vec<u8>, writer: &Writer, what: &dyn std::fmt::Debug) {
    match checked(image) {
        Ok(read) => assert!(is_right(&read, writer), "{what:?}: {:?}", lines(&read)),
        Err(CheckError::NoSuperblock(findings)) => assert!(!findings.is_empty()),
        Err(CheckError::NotAStore | CheckError::Unsupported(_)) => {}
        Err(CheckError::Stopped) => panic!("nobody stops it"),
    }
}

#[test]
fn every_block_of_a_closed_store_is_missed_when_it_is_damaged() {
    let writer = example(true);
    let block_bytes = writer.shape.block_bytes;
    let blocks = writer.image.len() / block_bytes;
    let whole = checked(&writer.image).expect("it is a store");
    assert_eq!(lines(&whole), Vec::<String>::new());
    // What has a meaning: superblocks, roots, map pages and live blocks.
    let mut meaning: BTreeSet<u64> = (0..writer.ring_start()).collect();
    meaning.extend(writer.map_start()..writer.segments_start());
    meaning.insert(blocks as u64 - 1);
    let start = writer.segments_start();
    meaning.extend(writer.state().values().map(|lies| start + u64::from(lies.slot)));
    let mut injured = 0;
    for block in 0..blocks {
        let flips = (0..block_bytes).map(|byte| Injury::Flip { byte, bit: (byte ^ block) as u8 });
        let swaps = (0..block).map(|with| Injury::Swap { with });
        for injury in flips.chain(swaps).chain([Injury::Zero]) {
            let mut image = writer.image.clone();
            injury.inflict(&mut image, block_bytes, block);
            if image == writer.image {
                continue;
            }
            injured += 1;
            let read = checked(&image).expect("a superblock is left");
            let touched = match injury {
                Injury::Swap { with } => vec![block as u64, with as u64],
                _ => vec![block as u64],
            };
            let matters = touched.iter().any(|one| meaning.contains(one));
            assert_eq!(
                read.findings.is_empty(),
                !matters,
                "{block} {injury:?}: {:?}",
                lines(&read)
            );
            assert!(is_right(&read, &writer), "{block} {injury:?}: {:?}", lines(&read));
            // What is named lies where it was damaged.
            let named = read.findings.iter().filter_map(|finding| finding.address);
            let named: BTreeSet<u64> = named.collect();
            for one in touched.iter().filter(|one| meaning.contains(one)) {
                let is_root = (2..writer.ring_start()).contains(one);
                let copy = u32::from(*one >= writer.root_address(1));
                let begins = if is_root { writer.root_address(copy) } else { *one };
                assert!(named.contains(&begins), "{block} {injury:?}: {:?}", lines(&read));
            }
        }
    }
    assert!(injured >= 100_000, "{injured}");
}

#[test]
fn a_store_that_was_left_gives_a_state_that_it_was_in() {
    let writer = example(false);
    let block_bytes = writer.shape.block_bytes;
    let blocks = writer.image.len() / block_bytes;
    for block in 0..blocks {
        let flips = (0..block_bytes).step_by(41).map(|byte| Injury::Flip { byte, bit: byte as u8 });
        let swaps = (0..blocks).step_by(31).map(|with| Injury::Swap { with });
        for injury in flips.chain(swaps).chain([Injury::Zero]) {
            let mut image = writer.image.clone();
            injury.inflict(&mut image, block_bytes, block);
            examine(&image, &writer, &(block, injury));
        }
    }
}

#[test]
fn a_ring_record_that_is_lost_in_the_midst_is_missed() {
    let writer = example(false);
    let start = writer.ring_start() as usize * writer.shape.block_bytes;
    let marks = (start..start + 40 * writer.shape.block_bytes).step_by(writer.shape.block_bytes);
    let number = |at: usize| u64::from_le_bytes(writer.image[at + 16..at + 24].try_into().unwrap());
    // Those before are of no use any longer.
    let records: Vec<usize> = marks
        .filter(|&at| writer.image[at..].starts_with(b"AWRR"))
        .filter(|&at| number(at) >= writer.ring_begins.0)
        .collect();
    assert!(records.len() > 4);
    // The last one looks like one that was never written.
    for &at in &records[..records.len() - 1] {
        let mut image = writer.image.clone();
        image[at + 30] ^= 1;
        let read = checked(&image).expect("it is a store");
        assert_ne!(read.findings, [], "record at {at}");
        assert!(is_right(&read, &writer), "record at {at}: {:?}", lines(&read));
    }
}

#[test]
fn regression_numbers_that_no_store_gets_to_are_refused() {
    // A root that has every group up to the last number there is.
    let writer = written(&[Step::Inline(vec![(1, 7, false)])], &End::Left);
    let block_bytes = writer.shape.block_bytes;
    let root_blocks = (writer.root_address(1) - writer.root_address(0)) as usize;
    for field in [16, 24, 32] {
        let mut image = writer.image.clone();
        for copy in [0, 1] {
            let address = writer.root_address(copy);
            let at = address as usize * block_bytes + field;
            image[at..at + 8].fill(0xFF);
            crate::writer::reseal(&mut image, block_bytes, address, root_blocks, 8);
        }
        let read = checked(&image);
        let said = format!("{read:?}");
        assert!(said.contains("to which no store gets"), "{said}");
        let _ = salvage(&image, &mut |_, _| Ok(()), &mut |_| true);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes_are_no_store(bytes in prop::collection::vec(any::<u8>(), 0..20_000)) {
        prop_assert!(checked(&bytes).is_err());
    }

    #[test]
    fn injured_stores_are_read_right_or_missed(
        (steps, end) in history(),
        injuries in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..3, any::<u8>()), 1..4),
    ) {
        let writer = written(&steps, &end);
        let block_bytes = writer.shape.block_bytes;
        let blocks = writer.image.len() / block_bytes;
        let mut image = writer.image.clone();
        for &(block, other, kind, bit) in &injuries {
            let injury = match kind {
                0 => Injury::Flip { byte: other.index(block_bytes), bit },
                1 => Injury::Zero,
                _ => Injury::Swap { with: other.index(blocks) },
            };
            injury.inflict(&mut image, block_bytes, block.index(blocks));
        }
        match checked(&image) {
            Ok(read) => {
                prop_assert!(is_right(&read, &writer), "{:?}", lines(&read));
                // Of a closed store nothing is lost that is not said.
                if matches!(end, End::Closed) && state(&read) != *writer.state() {
                    let damage = |one: &agewell_check::Finding| one.severity == Severity::Damage;
                    prop_assert!(read.findings.iter().any(damage), "{:?}", lines(&read));
                }
            }
            Err(CheckError::NoSuperblock(findings)) => prop_assert!(!findings.is_empty()),
            Err(why) => prop_assert!(false, "{why}"),
        }
        // Salvage ends as well, and gives nothing that was never written.
        let mut given = Vec::new();
        let salvaged = salvage(&image, &mut |block, data: &[u8]| {
            given.push((block, data.to_vec()));
            Ok(())
        }, &mut |_| true);
        if salvaged.is_ok() {
            for (block, data) in given {
                let fill = data[0] ^ (block as u8);
                prop_assert_eq!(writer.data(block, fill), data, "block {}", block);
            }
        }
    }

    #[test]
    fn a_mangled_structure_with_a_right_checksum_ends(
        (steps, end) in history(),
        at in any::<prop::sample::Index>(),
        changes in prop::collection::vec((0_usize..512, any::<u8>()), 1..6),
    ) {
        let writer = written(&steps, &end);
        let block_bytes = writer.shape.block_bytes;
        let mut image = writer.image.clone();
        let blocks = (image.len() / block_bytes) as u64;
        let block = at.index(blocks as usize) as u64;
        let begins = block as usize * block_bytes;
        let (address, length, sum_at) = match &image[begins..begins + 4] {
            b"AGEW" => (block, 1, 40),
            b"AWRT" => (block, (writer.root_address(1) - writer.root_address(0)) as usize, 8),
            _ => (block, 1, 8),
        };
        for (byte, value) in changes {
            if byte >= 16 {
                image[begins + byte] = value;
            }
        }
        crate::writer::reseal(&mut image, block_bytes, address, length, sum_at);
        let _ = checked(&image);
        let _ = salvage(&image, &mut |_, _| Ok(()), &mut |_| true);
    }
}
