//! What is intact is copied out, and what is lost is named.

use std::collections::BTreeMap;
use std::fs;

use agewell_check::{BlockStatus, CheckError, SalvageError, Salvaged, salvage, salvage_to_files};
use proptest::prelude::*;

use crate::damaged::example;
use crate::histories::{End, history, written};
use crate::writer::{Shape, Writer};

type Data = BTreeMap<u32, Vec<u8>>;

fn salvage_all(image: &Vec<u8>) -> Result<(Salvaged, Data), SalvageError> {
    let mut given = Data::new();
    let mut keep = |block, data: &[u8]| {
        assert!(given.insert(block, data.to_vec()).is_none(), "block {block} is given once");
        Ok(())
    };
    let salvaged = salvage(image, &mut keep, &mut |_| true)?;
    Ok((salvaged, given))
}

/// The data of every block, from the image before it was damaged.
fn data(writer: &Writer) -> Data {
    let (bytes, start) = (writer.shape.block_bytes, writer.segments_start() as usize);
    let whole = writer.state().iter().filter(|(_, lies)| !lies.damaged);
    let read = whole.map(|(&block, lies)| {
        let at = (start + lies.slot as usize) * bytes;
        (block, writer.image[at..at + bytes].to_vec())
    });
    read.collect()
}

fn injure(image: &mut [u8], address: u64) {
    image[address as usize * Shape::SMALL.block_bytes + 44] ^= 4;
}

#[test]
fn a_whole_store_is_salvaged_whole() {
    for closed in [true, false] {
        let writer = example(closed);
        let (salvaged, given) = salvage_all(&writer.image).unwrap();
        assert!(salvaged.is_whole());
        assert_eq!(given, data(&writer));
        assert_eq!(salvaged.count(BlockStatus::Intact), given.len() as u64);
    }
}

#[test]
fn without_roots_the_newest_versions_are_found() {
    for closed in [true, false] {
        let writer = example(closed);
        let mut image = writer.image.clone();
        for copy in [0, 1] {
            injure(&mut image, writer.root_address(copy));
        }
        let (salvaged, given) = salvage_all(&image).unwrap();
        assert!(!salvaged.is_whole());
        assert_eq!(given, data(&writer));
        assert_eq!(salvaged.count(BlockStatus::Newest), given.len() as u64);
    }
}

#[test]
fn superblocks_with_a_wrong_checksum_are_used_if_the_rest_fits() {
    let writer = example(true);
    let last = (writer.image.len() / writer.shape.block_bytes - 1) as u64;
    let mut image = writer.image.clone();
    for address in [0, 1, last] {
        injure(&mut image, address);
    }
    let (salvaged, given) = salvage_all(&image).unwrap();
    assert_eq!((given, salvaged.is_whole()), (data(&writer), false));
    // Nothing fits with another identity.
    for address in [0, 1, last] {
        image[address as usize * writer.shape.block_bytes + 30] ^= 1;
    }
    let refused = salvage_all(&image);
    assert!(matches!(refused, Err(SalvageError::Check(CheckError::NoSuperblock(_)))));
}

#[test]
fn a_block_that_is_damaged_has_an_older_version_or_is_lost() {
    let writer = example(true);
    let slot = |block: u32| writer.segments_start() + u64::from(writer.state()[&block].slot);
    let mut image = writer.image.clone();
    // Block 4 was overwritten and its old version lies there still; block 15 was written once.
    for block in [4, 15] {
        injure(&mut image, slot(block));
    }
    let (salvaged, mut given) = salvage_all(&image).unwrap();
    assert_eq!(salvaged.blocks_with(BlockStatus::Older).ranges(), [(4, 4)]);
    assert_eq!(salvaged.blocks_with(BlockStatus::Lost).ranges(), [(15, 15)]);
    assert_eq!(given.remove(&4), Some(writer.data(4, 1)));
    let mut expected = data(&writer);
    for block in [4, 15] {
        expected.remove(&block);
    }
    assert_eq!(given, expected);
}

#[test]
fn a_map_page_that_is_lost_is_made_again_from_records() {
    let writer = example(true);
    let mut image = writer.image.clone();
    for place in [0, 1] {
        injure(&mut image, writer.map_start() + place);
    }
    let (salvaged, given) = salvage_all(&image).unwrap();
    assert_eq!(given, data(&writer));
    let first_page = data(&writer).range(..60).count() as u64;
    assert_eq!(salvaged.count(BlockStatus::Newest), first_page);
    // Block 1 is known to be freed; nothing else of the page is unknown.
    assert!(salvaged.unknown.is_empty(), "{}", salvaged.unknown);
}

#[test]
fn files_have_each_block_at_its_number() {
    let writer = example(true);
    let folder = tempfile::tempdir().unwrap();
    let (blocks, table) = (folder.path().join("blocks.bin"), folder.path().join("blocks.csv"));
    salvage_to_files(&writer.image, &blocks, &table, &mut |_| true).unwrap();
    let (bytes, raw) = (writer.shape.block_bytes, fs::read(&blocks).unwrap());
    let data = data(&writer);
    assert_eq!(raw.len(), (*data.keys().last().unwrap() as usize + 1) * bytes);
    for (number, there) in (0..).zip(raw.chunks(bytes)) {
        assert_eq!(there, data.get(&number).unwrap_or(&vec![0; bytes]), "block {number}");
    }
    let rows = fs::read_to_string(&table).unwrap();
    let mut rows = rows.lines();
    assert_eq!(rows.next(), Some("block,slot,status"));
    let expected =
        writer.state().iter().map(|(block, lies)| format!("{block},{},intact", lies.slot));
    assert_eq!(rows.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
}

#[test]
fn nothing_is_left_of_what_was_stopped() {
    let writer = example(true);
    let folder = tempfile::tempdir().unwrap();
    let (blocks, table) = (folder.path().join("blocks.bin"), folder.path().join("blocks.csv"));
    let stopped = salvage_to_files(&writer.image, &blocks, &table, &mut |_| false);
    assert!(matches!(stopped, Err(SalvageError::Check(CheckError::Stopped))));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn all_that_a_history_left_is_salvaged_without_roots((steps, end) in history()) {
        let writer = written(&steps, &end);
        let (salvaged, given) = salvage_all(&writer.image).expect("it is a store");
        prop_assert_eq!(salvaged.count(BlockStatus::Intact), data(&writer).len() as u64);
        let lost = writer.state().values().any(|lies| lies.damaged);
        if !lost {
            prop_assert_eq!(&given, &data(&writer));
        }
        let mut image = writer.image.clone();
        for copy in [0, 1] {
            injure(&mut image, writer.root_address(copy));
        }
        let (_, given) = salvage_all(&image).expect("it is a store");
        // What was not acknowledged may be found as well.
        if !matches!(end, End::Unfinished(..)) {
            let given: Data = given.into_iter().filter(|(block, _)| {
                writer.state().get(block).is_none_or(|lies| !lies.damaged)
            }).collect();
            prop_assert_eq!(given, data(&writer));
        }
    }
}
