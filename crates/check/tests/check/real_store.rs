//! The reader against the writer of the product: they share no code, and must agree on every image, also on those that a
//! loss of power leaves.

use std::collections::BTreeMap;
use std::io;

use agewell_check::{CheckOptions, Checked, Image, Severity, check, salvage};
use agewell_log::policy::mechanism::{Collect, Mechanism, PlugCandidate};
use agewell_store::device::{CrashDisk, Disk, MemoryDisk};
use agewell_store::{FormatOptions, Means, OpenOptions, Store, StoreError, Transaction};

use crate::lines;

const BLOCK_BYTES: usize = 512;

/// A store on a disk of any kind, of which the compiler makes one.
type AnyStore<'a> = Store<Box<dyn Disk + 'a>>;

fn open_store<'a>(disk: impl Disk + 'a, options: &OpenOptions) -> Result<AnyStore<'a>, StoreError> {
    Store::open(Box::new(disk), options)
}

/// A disk that is read as an image: in whole sectors, as disks are.
struct OfDisk<'a, D>(&'a D);

impl<D: Disk + Sync> Image for OfDisk<'_, D> {
    fn size_bytes(&self) -> u64 {
        self.0.size_bytes()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let begin = offset / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
        let skipped = (offset - begin) as usize;
        let mut whole = vec![0; (skipped + into.len()).next_multiple_of(BLOCK_BYTES)];
        self.0.read(begin, &mut whole)?;
        into.copy_from_slice(&whole[skipped..skipped + into.len()]);
        Ok(())
    }
}

/// Numbers that look random (Steele, Lea & Flood 2014: SplitMix64).
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % u64::from(end)) as u32
    }
}

type Model = BTreeMap<u32, Vec<u8>>;

/// A small store that is nearly full, and what is done to it.
struct Load {
    drawn: Drawn,
    model: Model,
    blocks: u32,
    collect: Collect,
    size_bytes: u64,
    format: FormatOptions,
}

impl Load {
    fn new(seed: u64) -> Self {
        let collect = match seed % 4 {
            0 => Collect::Always(Mechanism::Clean),
            1 => Collect::Always(Mechanism::Plug),
            2 => Collect::Always(Mechanism::Thread),
            _ => Collect::Matthews1999(PlugCandidate::LeastUtilized),
        };
        let format = FormatOptions {
            block_bytes: BLOCK_BYTES as u32,
            segment_blocks: [16, 9, 32][(seed / 4 % 3) as usize],
            ..FormatOptions::new([seed as u8 + 1; 16])
        };
        let size_bytes = BLOCK_BYTES as u64 * [520, 700, 900][(seed / 3 % 3) as usize];
        let (drawn, model) = (Drawn(seed), Model::new());
        Self { drawn, model, blocks: 0, collect, size_bytes, format }
    }

    fn options(&self) -> OpenOptions {
        OpenOptions { means: Means::Fixed(self.collect), ..OpenOptions::default() }
    }

    /// Formats the disk and opens it.
    fn begin<'a>(&mut self, disk: impl Disk + 'a) -> AnyStore<'a> {
        let geometry = Store::format(&disk, &self.format).expect("there is room");
        let full = [0.98, 0.9, 0.6][self.drawn.below(3) as usize];
        self.blocks = (geometry.capacity_blocks() as f64 * full) as u32;
        open_store(disk, &self.options()).expect("it was just made")
    }

    /// A transaction of a few blocks.
    fn step(&mut self, store: &AnyStore<'_>) {
        let mut changes: BTreeMap<u32, Option<Vec<u8>>> = BTreeMap::new();
        for _ in 0..=self.drawn.below(6) {
            let block = self.drawn.below(self.blocks);
            let fill = self.drawn.below(256) as u8;
            let data = (0..BLOCK_BYTES).map(|at| fill ^ (at as u8) ^ (block as u8)).collect();
            changes.insert(block, (self.drawn.below(8) > 0).then_some(data));
        }
        let writes = changes.iter().filter_map(|(block, data)| Some((*block, data.as_deref()?)));
        let freed = changes.iter().filter(|(_, data)| data.is_none()).map(|(block, _)| *block);
        let transaction = Transaction { writes: writes.collect(), frees: freed.collect() };
        store.write(&transaction).expect("there is room for all blocks");
        for (block, data) in changes {
            match data {
                Some(data) => self.model.insert(block, data),
                None => self.model.remove(&block),
            };
        }
    }
}

fn read<I: Image>(image: &I) -> Checked {
    check(image, CheckOptions { data: true }, &mut |_, _| true).expect("it is a store")
}

/// All blocks of a store that is whole.
fn salvaged<I: Image>(image: &I) -> Model {
    let mut given = Model::new();
    let mut keep = |block, data: &[u8]| {
        given.insert(block, data.to_vec());
        Ok(())
    };
    let salvaged = salvage(image, &mut keep, &mut |_| true).expect("it is a store");
    assert!(salvaged.is_whole());
    given
}

#[test]
fn what_the_store_writes_is_read_as_it_was_written() {
    let mut ring_records = 0;
    for seed in 0..48 {
        let mut load = Load::new(seed);
        let mut store = load.begin(MemoryDisk::new(load.size_bytes));
        for step in 0..400 {
            load.step(&store);
            if load.drawn.below(16) == 0 {
                store.collect().expect("memory does not fail");
            }
            if load.drawn.below(4) == 0 {
                store.sync().expect("memory does not fail");
                if load.drawn.below(8) == 0 {
                    let image = OfDisk(store.disk());
                    let found = read(&image);
                    assert_eq!(lines(&found), Vec::<String>::new(), "seed {seed} step {step}");
                    assert!(!found.closed_in_order);
                    ring_records += found.ring_records;
                    assert!(salvaged(&image) == load.model, "seed {seed} step {step}");
                }
            }
            if load.drawn.below(100) == 0 {
                let disk = store.close().expect("memory does not fail");
                let found = read(&OfDisk(&disk));
                assert_eq!(lines(&found), Vec::<String>::new(), "seed {seed} step {step}");
                assert!(found.closed_in_order);
                store = open_store(disk, &load.options()).expect("it was closed");
            }
        }
        let disk = store.close().expect("memory does not fail");
        let found = read(&OfDisk(&disk));
        assert_eq!(lines(&found), Vec::<String>::new(), "seed {seed}");
        assert!(found.closed_in_order);
        assert!(salvaged(&OfDisk(&disk)) == load.model, "seed {seed}");
    }
    assert!(ring_records > 1000, "{ring_records}");
}

#[test]
fn reader_and_store_agree_on_what_a_crash_leaves() {
    let mut states = 0;
    for seed in 0..8 {
        let mut load = Load::new(seed);
        let disk = CrashDisk::new(load.size_bytes, seed);
        let store = load.begin(&disk);
        for _ in 0..150 {
            load.step(&store);
            if load.drawn.below(3) == 0 {
                store.sync().expect("memory does not fail");
                // What is acknowledged: the last group that is on the medium by now.
                let found = read(&OfDisk(store.disk()));
                assert_eq!(lines(&found), Vec::<String>::new(), "seed {seed}");
                disk.mark(found.sequence);
            }
        }
        store.close().expect("memory does not fail");
        let recording = disk.recording();
        let mut acknowledged = 0;
        // Behind the first three flushes there is a store.
        for epoch in 3..recording.epochs() {
            let before = recording.marks(epoch - 1).iter().copied().max().unwrap_or(0);
            acknowledged = before.max(acknowledged);
            let of_epoch = recording.states(epoch);
            // Some of each epoch.
            let apart = of_epoch.len().div_ceil(20).max(1) as usize;
            for number in (seed % apart as u64..of_epoch.len()).step_by(apart) {
                let state = of_epoch.state(number);
                let what = || format!("seed {seed} epoch {epoch}: {}", of_epoch.describe(number));
                let found = read(&OfDisk(&state));
                let damage = |one: &agewell_check::Finding| one.severity == Severity::Damage;
                assert!(!found.findings.iter().any(damage), "{}: {:?}", what(), lines(&found));
                assert!(found.sequence >= acknowledged, "{}: {}", what(), found.sequence);
                let store = open_store(&state, &load.options());
                let store = store.unwrap_or_else(|why| panic!("{}: {why}", what()));
                let mut data = vec![0; BLOCK_BYTES];
                let mut lies = vec![0; BLOCK_BYTES];
                for block in 0..found.geometry.blocks {
                    let there = store.read(block, &mut data).expect("nothing is damaged");
                    let entry = found.map.get(block);
                    assert_eq!(there, entry.is_some(), "{}: block {block}", what());
                    if let Some(entry) = entry {
                        let address = found.geometry.slot_address(entry.slot);
                        state.read(address * BLOCK_BYTES as u64, &mut lies).expect("it is there");
                        assert!(data == lies, "{}: block {block}", what());
                    }
                }
                states += 1;
            }
        }
    }
    assert!(states > 5_000, "{states}");
}

/// What lies on a disk, of which some blocks have been changed.
fn left_by(seed: u64) -> (Vec<u8>, OpenOptions) {
    let mut load = Load::new(seed);
    let disk = MemoryDisk::new(load.size_bytes);
    let store = load.begin(&disk);
    for _ in 0..200 + load.drawn.below(60) {
        load.step(&store);
        store.sync().expect("memory does not fail");
    }
    (disk.image(), load.options())
}

/// Whatever is damaged in the ring and in inline records: both open, and find the same, or both refuse.
#[test]
fn reader_and_store_agree_on_records_that_are_damaged() {
    let (mut refused, mut made_good, mut older) = (0, 0, 0);
    for seed in 0..48 {
        let (image, options) = left_by(seed);
        let whole = read(&OfDisk(&MemoryDisk::from_image(&image)));
        assert_eq!(lines(&whole), Vec::<String>::new());
        let blocks = (0..).zip(image.chunks_exact(BLOCK_BYTES));
        let is_record = |bytes: &[u8]| [b"AWIN", b"AWRR"].iter().any(|kind| bytes[..4] == **kind);
        for (block, _) in blocks.filter(|(_, bytes)| is_record(bytes)) {
            let mut damaged = image.clone();
            damaged[block * BLOCK_BYTES + 100] ^= 4;
            let disk = MemoryDisk::from_image(&damaged);
            let found = read(&OfDisk(&disk));
            let what = || format!("seed {seed} block {block}: {:?}", lines(&found));
            let is_less = found.sequence < found.flushed;
            match open_store(disk, &options) {
                Err(_) => {
                    refused += 1;
                    let damage = |one: &agewell_check::Finding| one.severity == Severity::Damage;
                    assert!(found.findings.iter().any(damage), "{}", what());
                }
                Ok(store) => {
                    assert!(!is_less, "{}", what());
                    // But for the last group nothing is lost.
                    assert!(found.sequence + 2 >= whole.sequence, "{}", what());
                    older += usize::from(found.sequence < whole.sequence);
                    let copied = |line: &String| line.contains("a copy of it");
                    made_good += usize::from(lines(&found).iter().any(copied));
                    let mut data = vec![0; BLOCK_BYTES];
                    for number in 0..found.geometry.blocks {
                        let there = store.read(number, &mut data).unwrap_or(true);
                        assert_eq!(there, found.map.get(number).is_some(), "{}", what());
                    }
                }
            }
        }
    }
    assert!(refused > 100 && made_good > 100 && older > 10, "{refused} {made_good} {older}");
}
