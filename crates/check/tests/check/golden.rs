//! Images of each version of the format that are kept: what was read once is read for ever.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use agewell_check::salvage;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::damaged::example;
use crate::histories::state;
use crate::writer::{Shape, reseal};
use crate::{checked, lines};

/// Set to write them again from the writer of these tests.
const ACCEPT: &str = "AGEWELL_ACCEPT_SNAPSHOTS";

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/images")
}

/// Writes an image again if that is asked for, and gives what is kept.
fn kept(name: &str, image: &[u8]) -> Vec<u8> {
    let path = folder().join(name);
    if std::env::var_os(ACCEPT).is_some() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(image).unwrap();
        fs::write(&path, packed.finish().unwrap()).unwrap();
    }
    let mut kept = Vec::new();
    GzDecoder::new(File::open(&path).unwrap()).read_to_end(&mut kept).unwrap();
    kept
}

#[test]
fn a_later_version_is_refused() {
    let mut image = example(true).image;
    let last = image.len() / Shape::SMALL.block_bytes - 1;
    for address in [0, 1, last] {
        image[address * Shape::SMALL.block_bytes + 8] = 3;
        reseal(&mut image, Shape::SMALL.block_bytes, address as u64, 1, 40);
    }
    let refused = checked(&kept("version-3.0.img.gz", &image)).map(|_| ());
    let expected = "has version 3.0 of the format; this is a reader of version 1";
    assert_eq!(refused.unwrap_err().to_string(), expected);
}

#[test]
fn images_that_are_kept_are_read_as_they_were_written() {
    for (name, closed) in [("closed-1.0.img.gz", true), ("left-1.0.img.gz", false)] {
        let writer = example(closed);
        let read = checked(&kept(name, &writer.image)).expect("it is a store");
        assert_eq!(lines(&read), Vec::<String>::new());
        assert_eq!(state(&read), *writer.state());
        assert_eq!(read.closed_in_order, closed);
    }
}

/// Those that the store has written, and keeps with its own tests.
#[test]
fn images_that_the_store_wrote_are_read_as_they_were_written() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../store/tests/images");
    let mut images = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".img.zst") else { continue };
        let packed = File::open(folder.join(format!("{name}.img.zst"))).unwrap();
        let image = zstd::decode_all(packed).unwrap();
        let versions = fs::read_to_string(folder.join(format!("{name}.versions"))).unwrap();
        let versions: Vec<u32> = versions.lines().map(|line| line.parse().unwrap()).collect();
        let read = checked(&image).expect("it is a store");
        assert_eq!(lines(&read), Vec::<String>::new(), "{name}");
        assert_eq!(read.closed_in_order, name.starts_with("closed"), "{name}");
        assert!(read.geometry.packed_records != name.ends_with("1.0"), "{name}");
        let before = |version: &str| name.rsplit('-').next().unwrap() < version;
        assert_eq!(read.geometry.places_apart, !before("1.2"), "{name}");
        assert_eq!(read.geometry.scattered_records, !before("1.3"), "{name}");
        let has_grown = read.geometry.map_start > read.geometry.segments_start;
        assert_eq!(has_grown, name.starts_with("grown"), "{name}");
        let mut given: Vec<u32> = vec![0; versions.len()];
        let mut keep = |block: u32, data: &[u8]| {
            // The block's number and its version, again and again.
            let words: Vec<u32> = data
                .chunks_exact(4)
                .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
                .collect();
            assert!(
                words.chunks_exact(2).all(|pair| pair == [block, words[1]]),
                "{name}: block {block}"
            );
            given[block as usize] = words[1];
            Ok(())
        };
        assert!(salvage(&image, &mut keep, &mut |_| true).unwrap().is_whole(), "{name}");
        assert_eq!(given, versions, "{name}");
        images += 1;
    }
    assert!(images >= 7, "{images}");
}
