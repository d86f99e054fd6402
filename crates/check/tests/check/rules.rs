//! Rules of the format, one by one.

use agewell_check::{CheckError, CheckOptions, Severity, check};

use crate::damaged::example;
use crate::histories::state;
use crate::writer::{Change, Lies, Shape, Writer, reseal};
use crate::{checked, lines};

fn write(blocks: impl IntoIterator<Item = u32>, fill: u8) -> Vec<Change> {
    blocks.into_iter().map(|block| Change::Write(block, fill)).collect()
}

fn zero(writer: &mut Writer, address: u64) {
    let at = address as usize * writer.shape.block_bytes;
    writer.image[at..at + writer.shape.block_bytes].fill(0);
}

#[test]
fn what_was_dropped_does_not_come_back() {
    let mut writer = Writer::format(Shape::SMALL);
    writer.open();
    writer.inline_group(&write(0..4, 1));
    // Its first part is missing: it is dropped, and lies in the ring for as long as the map is not written.
    writer.unfinished_group(&write(2..6, 2), false);
    let read = checked(&writer.image).expect("it is a store");
    assert_eq!((read.sequence, read.dropped_groups), (1, 1));
    assert_eq!(lines(&read), Vec::<String>::new());
    writer.open();
    for fill in 3..6 {
        writer.inline_group(&write([1], fill));
        writer.checkpoint();
    }
    let read = checked(&writer.image).expect("it is a store");
    assert_eq!(read.sequence, 4);
    assert_eq!(state(&read), *writer.state());
    assert_eq!(read.map.get(5), None);
}

#[test]
fn a_group_that_was_flushed_and_is_not_whole_is_damage_and_its_blocks_are_named() {
    let mut writer = Writer::format(Shape::SMALL);
    writer.open();
    writer.inline_group(&write(0..4, 1));
    let before = writer.state().clone();
    let record = writer.segments_start() + 5;
    writer.inline_group(&write(2..6, 2));
    writer.ring_group(&write(8..10, 3));
    let at = record as usize * writer.shape.block_bytes;
    assert!(writer.image[at..].starts_with(b"AWIN"));
    zero(&mut writer, record);
    let read = checked(&writer.image).expect("it is a store");
    assert_eq!((state(&read), read.sequence), (before, 1));
    // The record of group 3 says that group 2 had been flushed; of its own flush nothing is known.
    let expected = "group 2: groups up to 2 were flushed, but no record of it is there; it and all behind it \
                    are left out, and which blocks 1 of them had is not known";
    assert_eq!(lines(&read), [expected]);
}

#[test]
fn a_group_whose_data_did_not_come_is_left_out() {
    let mut writer = Writer::format(Shape::SMALL);
    writer.open();
    writer.inline_group(&write(0..4, 1));
    let before = writer.state().clone();
    writer.inline_group(&write(2..6, 2));
    let data = writer.segments_start() + u64::from(writer.state()[&4].slot);
    zero(&mut writer, data);
    let read = checked(&writer.image).expect("it is a store");
    assert_eq!((state(&read), read.sequence, read.dropped_groups), (before, 1, 1));
    assert_eq!(lines(&read), Vec::<String>::new());
}

#[test]
fn a_later_record_of_the_ring_shows_that_one_before_it_is_lost() {
    let mut writer = Writer::format(Shape::SMALL);
    writer.open();
    writer.inline_group(&write(0..4, 1));
    let lost = writer.ring_start() + 1;
    writer.ring_group(&write(4..6, 2));
    writer.ring_group(&write(6..8, 3));
    zero(&mut writer, lost);
    let read = checked(&writer.image).expect("it is a store");
    assert_eq!(read.sequence, 1);
    let expected = [
        "note: ring record 2: it is missing, though ring record 3 is there",
        "group 2: groups up to 2 were flushed, but no record of it is there; it and all behind it are left \
         out, and which blocks 1 of them had is not known",
    ];
    assert_eq!(lines(&read), expected);
}

#[test]
fn one_copy_that_is_damaged_costs_nothing_and_is_named() {
    for closed in [true, false] {
        for copy in [0, 1] {
            let mut writer = example(closed);
            let address = writer.root_address(copy);
            zero(&mut writer, address);
            let read = checked(&writer.image).expect("it is a store");
            assert_eq!(state(&read), *writer.state());
            let found: Vec<_> = read.findings.iter().map(|one| one.severity).collect();
            // A root that is being written may be torn.
            assert_eq!(found, [Severity::Note], "{:?}", lines(&read));
            assert_eq!(read.findings[0].address, Some(address));
        }
    }
    let last = example(true).image.len() / Shape::SMALL.block_bytes - 1;
    for lost in [[0, 1], [0, last], [1, last]] {
        let mut writer = example(true);
        for address in lost {
            zero(&mut writer, address as u64);
        }
        let read = checked(&writer.image).expect("it is a store");
        assert_eq!((state(&read), read.findings.len()), (writer.state().clone(), 2));
        assert!(!read.is_clean());
    }
    for place in [0, 1] {
        let mut writer = example(true);
        let address = writer.map_start() + place;
        zero(&mut writer, address);
        let read = checked(&writer.image).expect("it is a store");
        assert_eq!(state(&read), *writer.state());
        assert_eq!((read.findings.len(), read.affected().count()), (1, 0), "{:?}", lines(&read));
        // The place that the root names was flushed before the root; the other may not have been reached.
        assert_eq!(read.is_clean(), place == 0, "{:?}", lines(&read));
    }
}

#[test]
fn a_map_page_that_is_lost_takes_its_blocks_along() {
    let mut writer = example(true);
    for place in [0, 1] {
        let address = writer.map_start() + place;
        zero(&mut writer, address);
    }
    let read = checked(&writer.image).expect("it is a store");
    assert_eq!(read.affected().ranges(), [(0, 59)]);
    let left = writer.state().range(60..).map(|(&block, &lies)| (block, lies)).collect();
    assert_eq!(state(&read), left);
}

#[test]
fn what_a_writer_must_not_do_is_found() {
    let lies = |slot| Lies { slot, short_sum: 1, damaged: false };
    let spoilt = |changes: &[(u32, Lies)]| {
        let mut writer = Writer::format(Shape::SMALL);
        writer.inline_group(&write(0..4, 1));
        writer.history.last_mut().unwrap().extend(changes.iter().copied());
        writer.close();
        let read = check(&writer.image, CheckOptions::default(), &mut |_, _| true).unwrap();
        lines(&read)
    };
    assert_eq!(spoilt(&[]), Vec::<String>::new());
    assert_eq!(
        spoilt(&[(7, lies(2)), (9, lies(2))]),
        ["segment 0 at address 52: 3 blocks lie in slot 2; affects blocks 1, 7, 9"]
    );
    assert_eq!(spoilt(&[(7, lies(192))]), ["block 7: it is said to lie in slot 192 of 192"]);
}

#[test]
fn data_is_looked_at_when_that_is_asked_for() {
    let mut writer = example(true);
    let slot = writer.state()[&17].slot;
    let address = writer.segments_start() + u64::from(slot);
    zero(&mut writer, address);
    let fast = check(&writer.image, CheckOptions::default(), &mut |_, _| true).unwrap();
    assert!(fast.is_clean());
    let read = checked(&writer.image).unwrap();
    let problem = "its data does not match its short sum";
    assert_eq!(lines(&read), [format!("block 17 at address {address}: {problem}")]);
}

#[test]
fn what_is_no_store_of_this_version_is_refused() {
    assert!(matches!(checked(&Vec::new()), Err(CheckError::NotAStore)));
    assert!(matches!(checked(&vec![0; 100_000]), Err(CheckError::NotAStore)));
    let last = example(true).image.len() / Shape::SMALL.block_bytes - 1;
    let with = |at: usize, value: u8| {
        let mut writer = example(true);
        for address in [0, 1, last] {
            writer.image[address * writer.shape.block_bytes + at] = value;
            reseal(&mut writer.image, Shape::SMALL.block_bytes, address as u64, 1, 40);
        }
        checked(&writer.image)
    };
    let refusal = |at, value| with(at, value).map(|_| ()).unwrap_err().to_string();
    assert_eq!(refusal(8, 2), "has version 2.0 of the format; this is a reader of version 1");
    assert_eq!(refusal(12, 8), "needs features that are not known here: 0x8");
    // What only a writer must know does not keep anyone from reading.
    assert!(with(16, 4).is_ok());
    assert!(with(10, 1).is_ok());
    let Err(CheckError::NoSuperblock(findings)) = with(60, 0) else { panic!("no segments") };
    assert_eq!(findings.len(), 3);
}

#[test]
fn parts_that_lie_beyond_any_device_are_refused() {
    let last = example(true).image.len() / Shape::SMALL.block_bytes - 1;
    // Where the roots, the ring, the map and the segments begin, and where all ends.
    for field in [88, 96, 104, 112, 120] {
        for start in [u64::MAX, u64::MAX - 100, u64::MAX / 512, 1 << 60] {
            let mut writer = example(true);
            for address in [0, 1, last] {
                let at = address * writer.shape.block_bytes + field;
                writer.image[at..at + 8].copy_from_slice(&start.to_le_bytes());
                reseal(&mut writer.image, Shape::SMALL.block_bytes, address as u64, 1, 40);
            }
            let refused = match checked(&writer.image) {
                Err(CheckError::NoSuperblock(_)) => true,
                // So far a device may go; this one does not.
                Ok(read) => field == 120 && start == u64::MAX / 512 && !read.is_clean(),
                Err(_) => false,
            };
            assert!(refused, "{field} {start}");
        }
    }
}

#[test]
fn a_device_that_ends_too_early_is_read_as_far_as_it_goes() {
    let writer = example(true);
    let blocks = writer.image.len() / writer.shape.block_bytes;
    for kept in 2..blocks {
        let image = writer.image[..kept * writer.shape.block_bytes].to_vec();
        let read = checked(&image).expect("the first superblock is there");
        assert!(!read.is_clean(), "{kept}");
        if kept as u64 > writer.segments_start() {
            let lost = writer
                .state()
                .values()
                .filter(|lies| writer.segments_start() + u64::from(lies.slot) >= kept as u64);
            assert_eq!(read.affected().count(), lost.count() as u64, "{kept}: {:?}", lines(&read));
        }
    }
}

#[test]
fn a_check_stops_when_it_is_asked_to() {
    let writer = example(true);
    let stopped = check(&writer.image, CheckOptions { data: true }, &mut |_, _| false);
    assert!(matches!(stopped, Err(CheckError::Stopped)));
}
