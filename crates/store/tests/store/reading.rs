//! Many blocks read at once, held against the same read one by one.

use std::io;
use std::sync::Mutex;

use agewell_core::{RandomStreams, Stream, uniform_below};
use agewell_store::device::{Disk, MemoryDisk, Piece, ReadPiece};
use agewell_store::{FormatOptions, OpenOptions, Store, StoreError, Transaction};
use proptest::prelude::*;

use super::load::{AnyStore, Load, fill, open_store, write};

/// Holds `numbers`, read at once, against each of them; `is_run` if they follow one another.
fn hold<D: Disk>(store: &Store<D>, numbers: &[u32], is_run: bool) {
    let bytes = store.geometry().block_bytes as usize;
    let mut into = vec![0xA5; numbers.len() * bytes];
    let absent = if is_run {
        store.read_run(numbers[0], &mut into)
    } else {
        store.read_listed(numbers, &mut into)
    };
    let (mut one, mut gone, mut first_error) = (vec![0; bytes], Vec::new(), None);
    for (block, found) in numbers.iter().zip(into.chunks_exact(bytes)) {
        match store.read(*block, &mut one) {
            Ok(true) => {}
            Ok(false) => {
                gone.push(*block);
                one.fill(0);
            }
            Err(error) => {
                first_error.get_or_insert(error.to_string());
                one.fill(0);
            }
        }
        assert!(found == one, "block {block}");
    }
    match (absent, first_error) {
        (Ok(absent), None) => assert_eq!(absent, gone),
        (Err(error), Some(first)) => assert_eq!(error.to_string(), first),
        (absent, first) => panic!("{absent:?}, but one by one {first:?}"),
    }
}

/// The same for numbers drawn at random, up to some that there cannot be.
fn hold_some<D: Disk>(store: &Store<D>, random: &mut Stream) {
    let bound = u64::from(store.geometry().blocks) + 9;
    let mut draw = |bound: u64| uniform_below(random, bound) as u32;
    let (first, blocks) = (draw(bound), 1 + draw(70));
    hold(store, &(first..first + blocks).collect::<Vec<_>>(), true);
    let listed: Vec<u32> = (0..40).map(|_| draw(bound)).collect();
    hold(store, &listed, false);
}

fn hold_held<D: Disk>(store: &Store<D>) {
    let held = store.held_blocks();
    let blocks = store.geometry().blocks;
    let is_held = |block: u32| held[(block / 64) as usize] >> (block % 64) & 1 == 1;
    assert!((0..blocks).all(|block| is_held(block) == store.holds(block)));
    let ones: u32 = held.iter().map(|word| word.count_ones()).sum();
    assert_eq!(u64::from(ones), store.live_blocks());
    assert_eq!(held.len(), blocks.div_ceil(64) as usize);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever waits in the buffer, is planned, has been moved, freed or damaged.
    #[test]
    fn blocks_read_at_once_are_those_read_one_by_one(seed in 0..u64::MAX, flips in 0..4_usize) {
        let load = Load { full: 0.9, ..Load::tiny(seed) };
        let disk = MemoryDisk::new(load.device_bytes);
        let (store, mut driver) = fill(&disk, &load).unwrap();
        let mut random = RandomStreams::new(seed).stream("reads");
        for step in 0..80 {
            let changes = driver.transaction(&load);
            write(&store, &changes).unwrap();
            driver.apply(&changes);
            if driver.is_sync_due(&load) {
                store.sync().unwrap();
            }
            if flips == 0 {
                // What is read ahead is as good as before, whatever becomes of it meanwhile.
                let first = uniform_below(&mut random, 300) as u32;
                store.read_ahead(&[first, first + 3], &(first..first + 40).collect::<Vec<_>>(), 64);
            }
            hold_some(&store, &mut random);
            if step == 40 {
                let (image, mut data) = (disk.image(), vec![0; load.block_bytes as usize]);
                for block in (0..driver.versions.len() as u32).step_by(9).take(flips) {
                    store.read(block, &mut data).unwrap();
                    let at = image.chunks(data.len()).position(|chunk| chunk == data);
                    data[7] ^= 16;
                    if let Some(at) = at.filter(|at| *at > 0) {
                        let offset = (at * data.len()) as u64;
                        disk.write(&[Piece { offset, data: &data }]).unwrap();
                    }
                }
            }
        }
        hold_held(&store);
    }
}

/// Counts what is asked of it.
struct Counting {
    disk: MemoryDisk,
    /// Bytes of the pieces of each call that reads several.
    reads: Mutex<Vec<Vec<usize>>>,
}

impl Disk for Counting {
    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.disk.read(offset, into)
    }

    fn read_pieces(&self, pieces: &mut [ReadPiece<'_>]) -> io::Result<()> {
        let lengths = pieces.iter().map(|piece| piece.into.len()).collect();
        self.reads.lock().unwrap().push(lengths);
        self.disk.read_pieces(pieces)
    }

    fn write(&self, pieces: &[Piece<'_>]) -> io::Result<()> {
        self.disk.write(pieces)
    }

    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.disk.discard(offset, bytes)
    }

    fn flush(&self) -> io::Result<()> {
        self.disk.flush()
    }
}

/// A store of blocks of 512 bytes, and transactions on it, each of which begins with a record of one block.
fn with_transactions<'a>(disk: &'a Counting, transactions: &[&[u32]]) -> AnyStore<'a> {
    let options =
        FormatOptions { block_bytes: 512, segment_blocks: 64, ..FormatOptions::new([3; 16]) };
    Store::format(disk, &options).unwrap();
    let store = open_store(disk, &OpenOptions::default()).unwrap();
    for blocks in transactions {
        let data = [9; 512];
        let writes = blocks.iter().map(|block| (*block, &data[..])).collect();
        store.write(&Transaction { writes, frees: Vec::new() }).unwrap();
        store.sync().unwrap();
    }
    store
}

#[test]
fn what_lies_side_by_side_is_read_by_one_request() {
    let disk = Counting { disk: MemoryDisk::new(4 << 20), reads: Mutex::default() };
    let first: Vec<u32> = (100..130).collect();
    let store = with_transactions(&disk, &[&first, &[130, 131, 140]]);
    let mut into = vec![0; 41 * 512];
    assert_eq!(store.read_run(100, &mut into).unwrap(), (132..140).collect::<Vec<_>>());
    // The record between them as well, so that it is one.
    assert_eq!(*disk.reads.lock().unwrap(), [[30 * 512, 512, 2 * 512, 512]]);
}

#[test]
fn what_lies_before_the_block_that_is_read_next_is_read_with_the_last() {
    let disk = Counting { disk: MemoryDisk::new(4 << 20), reads: Mutex::default() };
    let store = with_transactions(&disk, &[&[1, 2, 3], &[9, 8, 7]]);
    let mut into = vec![0; 2 * 512];
    store.read_run_before(2, 9, &mut into).unwrap();
    // Behind the record and two blocks more.
    store.read_run_before(2, 7, &mut into).unwrap();
    // It follows, lies before or is not there.
    for next in [3, 1, 600] {
        store.read_run_before(1, next, &mut into).unwrap();
    }
    let reads = std::mem::take(&mut *disk.reads.lock().unwrap());
    assert_eq!(reads[..2], [[2 * 512, 512], [2 * 512, 3 * 512]]);
    assert_eq!(reads[2..], [[2 * 512], [2 * 512], [2 * 512]]);
}

#[test]
fn what_lies_near_what_is_read_ahead_is_read_with_it() {
    let disk = Counting { disk: MemoryDisk::new(4 << 20), reads: Mutex::default() };
    let store = with_transactions(&disk, &[&[1, 2, 3, 4, 5, 6]]);
    assert_eq!(store.read_ahead(&[3], &[], 0), 0, "it is read by whoever wants it");
    // One request, with what lies between.
    assert_eq!(store.read_ahead(&[3], &[6, 600], 64), 2);
    assert!(store.is_read_ahead(3, 1) && store.is_read_ahead(4, 3) && !store.is_read_ahead(2, 1));
    assert_eq!(store.read_ahead(&[3], &[6], 64), 0, "it is there");
    assert_eq!(*disk.reads.lock().unwrap(), [[4 * 512]]);
}

#[test]
fn a_damaged_block_takes_no_others_with_it() {
    let load = Load { full: 0.9, ..Load::tiny(0) };
    let disk = MemoryDisk::new(load.device_bytes);
    let (store, _) = fill(&disk, &load).unwrap();
    store.sync().unwrap();
    let bytes = load.block_bytes as usize;
    let mut whole = vec![0; 30 * bytes];
    assert!(store.read_run(0, &mut whole).unwrap().is_empty());
    let image = disk.image();
    for block in [11, 4] {
        let wanted = &whole[block * bytes..][..bytes];
        let at = image.chunks(bytes).position(|chunk| chunk == wanted).unwrap() * bytes;
        disk.write(&[Piece { offset: at as u64, data: &vec![1; bytes] }]).unwrap();
        whole[block * bytes..][..bytes].fill(0);
    }
    let mut into = vec![7; 30 * bytes];
    let error = store.read_run(0, &mut into).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { block: 4, .. }), "{error}");
    assert!(into == whole);
}
