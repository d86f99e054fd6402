//! Images of each version of the format that are kept: what was read once is read for ever.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::damaged::example;
use crate::histories::state;
use crate::{checked, lines};

/// Set to write them again from the writer of these tests.
const ACCEPT: &str = "AGEWELL_ACCEPT_SNAPSHOTS";

#[test]
fn images_that_are_kept_are_read_as_they_were_written() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/images");
    for (name, closed) in [("closed-1.0.img.gz", true), ("left-1.0.img.gz", false)] {
        let path = folder.join(name);
        let writer = example(closed);
        if std::env::var_os(ACCEPT).is_some() {
            let mut packed = GzEncoder::new(Vec::new(), Compression::best());
            packed.write_all(&writer.image).unwrap();
            fs::write(&path, packed.finish().unwrap()).unwrap();
        }
        let mut image = Vec::new();
        GzDecoder::new(File::open(&path).unwrap()).read_to_end(&mut image).unwrap();
        let read = checked(&image).expect("it is a store");
        assert_eq!(lines(&read), Vec::<String>::new());
        assert_eq!(state(&read), *writer.state());
        assert_eq!(read.closed_in_order, closed);
    }
}
