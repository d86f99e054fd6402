//! Images of each version of the format that the store itself has written, and are kept: what was written
//! once is read for ever. `AGEWELL_ACCEPT_SNAPSHOTS=1` writes those of the current version again.

use std::fs::{self, File};
use std::path::PathBuf;

use agewell_core::{RandomStreams, uniform_below};
use agewell_log::policy::mechanism::Mechanism;
use agewell_store::device::MemoryDisk;
use agewell_store::{FormatOptions, OpenOptions, Store, Transaction};

/// Set to write them again.
const ACCEPT: &str = "AGEWELL_ACCEPT_SNAPSHOTS";

/// The version that a new store has.
const CURRENT: &str = "1.3";

/// All versions that there were, and the kinds of images of each.
const VERSIONS: [(&str, &[&str]); 4] = [
    ("1.0", &["closed", "left"]),
    ("1.1", &["closed", "left"]),
    ("1.2", &["closed", "left", "grown"]),
    (CURRENT, &["closed", "left", "grown", "threaded"]),
];

const BLOCK_BYTES: usize = 512;

/// What version `version` of `block` holds: the two numbers again and again.
fn data_of(block: u32, version: u32) -> Vec<u8> {
    let word = [block.to_le_bytes(), version.to_le_bytes()].concat();
    word.repeat(BLOCK_BYTES / word.len())
}

/// A store at work, and what its blocks hold: versions, 0 for none.
struct Work {
    store: Store<MemoryDisk>,
    versions: Vec<u32>,
    random: agewell_core::Stream,
}

impl Work {
    fn below(&mut self, end: usize) -> usize {
        uniform_below(&mut self.random, end as u64) as usize
    }

    /// Transactions of a few blocks, each synced, some of which are freed.
    fn go_on(&mut self, transactions: u32) {
        let newest = self.versions.iter().copied().max().unwrap_or(0);
        for version in newest + 1..=newest + transactions {
            let (mut writes, mut frees) = (Vec::new(), Vec::new());
            for _ in 0..=self.below(6) {
                let bound = if self.below(3) == 0 { 1 } else { 5 };
                let block = self.below(self.versions.len() / bound);
                if self.versions[block] == version || frees.contains(&(block as u32)) {
                    continue;
                }
                if self.below(8) == 0 {
                    self.versions[block] = 0;
                    frees.push(block as u32);
                } else {
                    self.versions[block] = version;
                    writes.push((block as u32, data_of(block as u32, version)));
                }
            }
            let writes = writes.iter().map(|(block, data)| (*block, &data[..])).collect();
            self.store.write(&Transaction { writes, frees }).unwrap();
            self.store.sync().unwrap();
        }
    }

    fn compare(&self) {
        let mut into = vec![0; BLOCK_BYTES];
        for (block, version) in (0..).zip(&self.versions) {
            assert_eq!(self.store.read(block, &mut into).unwrap(), *version > 0, "block {block}");
            assert!(*version == 0 || into == data_of(block, *version), "block {block}");
        }
        let live = self.versions.iter().filter(|version| **version > 0).count();
        assert_eq!(self.store.live_blocks(), live as u64);
    }
}

/// A store that has moved blocks and filled holes; closed in order, left after a sync, or grown and left.
fn example(kind: &str) -> (Vec<u8>, Vec<u32>) {
    let disk = MemoryDisk::new(360 * BLOCK_BYTES as u64);
    let options = FormatOptions {
        block_bytes: BLOCK_BYTES as u32,
        segment_blocks: 16,
        ..FormatOptions::new(*b"a golden store..")
    };
    let geometry = Store::format(&disk, &options).unwrap();
    let store = Store::open(disk, &OpenOptions::fixed(Mechanism::Clean)).unwrap();
    let blocks = geometry.capacity_blocks() as usize * 9 / 10;
    let random = RandomStreams::new(1999).stream("operations");
    let mut work = Work { store, versions: vec![0; blocks], random };
    work.go_on(300);
    assert!(work.store.log_counts().segments_cleaned > 0);
    for fills in [Mechanism::Plug, Mechanism::Thread] {
        let disk = work.store.close().unwrap();
        work.store = Store::open(disk, &OpenOptions::fixed(fills)).unwrap();
        work.go_on(40);
        let counts = work.store.log_counts();
        assert!(counts.plugged_blocks + counts.threaded_blocks > 0, "{counts:?}");
    }
    let disk = MemoryDisk::from_image(&work.store.disk().image());
    let options = match kind {
        "threaded" => OpenOptions::fixed(Mechanism::Thread),
        _ => OpenOptions::default(),
    };
    work.store = Store::open(disk, &options).unwrap();
    work.go_on(if kind == "threaded" { 40 } else { 12 });
    if kind == "grown" {
        let disk = MemoryDisk::from_image(&work.store.disk().image().repeat(2));
        work.store = Store::open(disk, &OpenOptions::default()).unwrap();
        work.store.grow().unwrap();
        work.versions.resize(work.store.geometry().blocks as usize * 4 / 5, 0);
        work.go_on(100);
    }
    let image = if kind == "closed" {
        work.store.close().unwrap().image()
    } else {
        work.store.disk().image()
    };
    (image, work.versions)
}

fn name(kind: &str, version: &str) -> String {
    format!("{kind}-{version}")
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/images")
}

/// The image that is kept under `name`, and what its blocks hold.
fn kept(name: &str) -> (Vec<u8>, Vec<u32>) {
    let image = File::open(folder().join(format!("{name}.img.zst"))).unwrap();
    let versions = fs::read_to_string(folder().join(format!("{name}.versions"))).unwrap();
    let versions = versions.lines().map(|version| version.parse().unwrap()).collect();
    (zstd::decode_all(image).unwrap(), versions)
}

/// Writes the images of the current version again if that is asked for.
fn accept() {
    if std::env::var_os(ACCEPT).is_none() {
        return;
    }
    for kind in VERSIONS[VERSIONS.len() - 1].1 {
        let (image, versions) = example(kind);
        let name = name(kind, CURRENT);
        let packed = zstd::encode_all(&image[..], 19).unwrap();
        fs::write(folder().join(format!("{name}.img.zst")), packed).unwrap();
        let lines: Vec<String> = versions.iter().map(ToString::to_string).collect();
        fs::write(folder().join(format!("{name}.versions")), lines.join("\n") + "\n").unwrap();
    }
}

#[test]
fn images_of_every_version_are_read_and_gone_on_with() {
    accept();
    for (version, kinds) in VERSIONS {
        for kind in kinds {
            let closed = *kind == "closed";
            let (image, versions) = kept(&name(kind, version));
            let disk = MemoryDisk::from_image(&image);
            let store = Store::open(disk, &OpenOptions::default()).unwrap();
            assert_eq!(store.opened().was_closed, closed);
            assert!(closed || store.opened().replayed > 0, "{:?}", store.opened());
            let random = RandomStreams::new(7).stream("operations");
            let mut work = Work { store, versions, random };
            work.compare();
            work.go_on(200);
            let left = MemoryDisk::from_image(&work.store.disk().image());
            let disk = work.store.close().unwrap();
            for disk in [disk, left] {
                work.store = Store::open(disk, &OpenOptions::default()).unwrap();
                work.store.verify();
                work.compare();
                // It grows, whatever version it is of.
                let disk = MemoryDisk::from_image(&work.store.disk().image().repeat(2));
                let store = Store::open(disk, &OpenOptions::default()).unwrap();
                store.grow().unwrap();
                let (versions, random) = (work.versions.clone(), work.random.clone());
                let mut grown = Work { store, versions, random };
                grown.compare();
                grown.go_on(50);
                grown.store.verify();
                grown.compare();
            }
        }
    }
}
