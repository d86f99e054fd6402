//! Loads: transactions drawn from a seed, and what the blocks must hold after each.

use std::cell::RefCell;

use agewell_core::{RandomStreams, Stream, uniform_below};
use agewell_log::policy::mechanism::{Collect, Mechanism, PlugCandidate};
use agewell_store::device::Disk;
use agewell_store::{FormatOptions, Means, OpenOptions, Placement, Store, StoreError, Transaction};

/// A small store and what is done to it.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(crate) seed: u64,
    pub(crate) block_bytes: u32,
    pub(crate) segment_blocks: u32,
    pub(crate) device_bytes: u64,
    pub(crate) means: Means,
    /// Share of what users may have that is in use.
    pub(crate) full: f64,
    /// Transactions after it was filled.
    pub(crate) transactions: u32,
    /// Most blocks of a transaction.
    pub(crate) blocks_max: u32,
    /// One in this number of transactions is followed by a sync.
    pub(crate) sync_every: u32,
    /// One in this number of blocks named is freed; 0 for none.
    pub(crate) free_every: u32,
    /// One in this number of transactions is followed by a step of collection; 0 for none.
    pub(crate) collect_every: u32,
    /// Each of which this number is a divisor frees many blocks, so that many segments come free at once; 0
    /// for none. And how many.
    pub(crate) wave_every: u32,
    pub(crate) wave_blocks: u32,
    /// The disk is twice as long as the store, which takes it in behind the transaction with this number.
    pub(crate) grows_at: Option<u32>,
}

/// A transaction, and what comes after it.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) changes: Vec<Change>,
    pub(crate) syncs: bool,
    pub(crate) collects: bool,
    /// The store takes in all of its disk behind it.
    pub(crate) grows: bool,
}

impl Step {
    /// Blocks that are put together after it: every fifth that it changed and others, in no order.
    pub(crate) fn together(&self, blocks: u32) -> Vec<u32> {
        let numbers = self.changes.iter().step_by(5).enumerate();
        let far = numbers.map(|(number, (block, _))| (block + 37 * number as u32) % blocks);
        let mut distinct = Vec::new();
        for block in far.flat_map(|block| [block, (block * 7 + 3) % blocks, block / 2]) {
            if !distinct.contains(&block) {
                distinct.push(block);
            }
        }
        distinct
    }

    /// Enters its changes.
    pub(crate) fn apply(&self, versions: &mut [u64]) {
        for (block, version) in &self.changes {
            versions[*block as usize] = *version;
        }
    }
}

/// Ways to make room by number.
pub(crate) fn means(number: u64) -> Means {
    match number % 7 {
        0 => Means::Fixed(Collect::Always(Mechanism::Clean)),
        1 | 4 => Means::Fixed(Collect::Always(Mechanism::Plug)),
        2 | 5 => Means::Fixed(Collect::Always(Mechanism::Thread)),
        3 => Means::Fixed(Collect::Matthews1999(PlugCandidate::LeastUtilized)),
        _ => Means::Adaptive,
    }
}

impl Load {
    /// A load so small that collections happen all the time.
    pub(crate) fn tiny(seed: u64) -> Self {
        let block_bytes = [512, 512, 1024, 512, 2048][(seed / 3 % 5) as usize];
        let segment_blocks = [8, 16, 23][(seed / 4 % 3) as usize];
        Self {
            seed,
            block_bytes,
            segment_blocks,
            device_bytes: u64::from(block_bytes) * [700, 520, 900][(seed / 12 % 3) as usize],
            means: means(seed),
            full: [0.9, 0.98, 0.8, 1.0][(seed / 36 % 4) as usize],
            transactions: 120,
            blocks_max: [7, segment_blocks - 1, 2][(seed / 11 % 3) as usize],
            sync_every: [1, 3, 8][(seed / 7 % 3) as usize],
            free_every: [0, 6, 3][(seed / 5 % 3) as usize],
            collect_every: [0, 5, 1][(seed / 13 % 3) as usize],
            wave_every: [0, 13, 0][(seed % 3) as usize],
            wave_blocks: 120,
            grows_at: (seed % 16 == 9).then_some(12),
        }
    }

    /// Few long segments, all of which are used again before the ring is full.
    pub(crate) fn long_segments(seed: u64) -> Self {
        let segment_blocks = 64;
        Self {
            seed,
            block_bytes: 512,
            segment_blocks,
            device_bytes: 512 * 64 * 26,
            means: means(seed % 4 / 3 * 6),
            full: [0.95, 0.8][(seed / 2 % 2) as usize],
            transactions: 160,
            blocks_max: 50,
            sync_every: 1 + (seed % 3) as u32,
            free_every: 0,
            collect_every: 0,
            wave_every: [25, 12][(seed / 4 % 2) as usize],
            wave_blocks: 320,
            grows_at: None,
        }
    }

    pub(crate) fn format_options(&self) -> FormatOptions {
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&self.seed.to_le_bytes());
        FormatOptions {
            block_bytes: self.block_bytes,
            segment_blocks: self.segment_blocks,
            ..FormatOptions::new(uuid)
        }
    }

    pub(crate) fn open_options(&self) -> OpenOptions {
        // A few blocks pass in that time, or none.
        let rotational_delay_ns = Some([0, 10_000][(self.seed / 2 % 2) as usize]);
        let placements = [Placement::SepBit, Placement::None, Placement::Lifetime];
        OpenOptions {
            means: self.means,
            placement: placements[(self.seed / 21 % 3) as usize],
            collected_logs: Some(3),
            rotational_delay_ns,
            ..OpenOptions::default()
        }
    }
}

/// The data of a version of a block, word by word: the version itself first.
fn words_of(block: u32, version: u64) -> impl Iterator<Item = u64> {
    let seed = agewell_core::mix(u64::from(block) << 40 ^ version);
    let behind = (1_u64..).map(move |index| seed.wrapping_mul(2 * index + 1));
    std::iter::once(version).chain(behind)
}

/// The data of a version of a block.
pub(crate) fn data_of(block: u32, version: u64, into: &mut [u8]) {
    for (word, chunk) in words_of(block, version).zip(into.chunks_exact_mut(8)) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
}

fn is_data_of(block: u32, version: u64, found: &[u8]) -> bool {
    let words = found.chunks_exact(8).map(|chunk| chunk.try_into().expect("eight bytes"));
    words.map(u64::from_le_bytes).zip(words_of(block, version)).all(|(one, other)| one == other)
}

thread_local! {
    /// What was read last: blocks are read by the ten millions.
    static FOUND: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The version of `block` that `store` has, 0 for none; an error if it has what was never written.
pub(crate) fn read_version<D: Disk>(store: &Store<D>, block: u32) -> Result<u64, String> {
    FOUND.with_borrow_mut(|found| {
        found.resize(store.geometry().block_bytes as usize, 0);
        if !store.read(block, found).map_err(|error| error.to_string())? {
            return Ok(0);
        }
        let version = u64::from_le_bytes(found[..8].try_into().expect("eight bytes"));
        if version == 0 || !is_data_of(block, version, found) {
            return Err(format!("block {block} holds what was never written"));
        }
        Ok(version)
    })
}

/// A store on a disk of any kind. The compiler makes all of a store for each type that it lies on, a dozen of them
/// took most of the time in which these tests were made.
pub(crate) type AnyStore<'a> = Store<Box<dyn Disk + 'a>>;

pub(crate) fn open_store<'a>(
    disk: impl Disk + 'a,
    options: &OpenOptions,
) -> Result<AnyStore<'a>, StoreError> {
    Store::open(Box::new(disk), options)
}

/// A new store on `disk`, with as many blocks as `load` says.
pub(crate) fn fill<'a>(
    disk: impl Disk + 'a,
    load: &Load,
) -> Result<(AnyStore<'a>, Driver), StoreError> {
    let geometry = Store::format(&disk, &load.format_options())?;
    let store = open_store(disk, &load.open_options())?;
    let blocks = (geometry.capacity_blocks() as f64 * load.full) as u32;
    let mut driver = Driver::new(load, blocks);
    for chunk in driver.fill(blocks).chunks(load.blocks_max as usize) {
        write(&store, chunk)?;
        driver.apply(chunk);
    }
    Ok((store, driver))
}

/// What the blocks hold: versions, 0 for none.
pub(crate) type Versions = Vec<u64>;

/// A change of one block.
pub(crate) type Change = (u32, u64);

/// Draws transactions and remembers what they leave.
pub(crate) struct Driver {
    random: Stream,
    pub(crate) versions: Versions,
    next_version: u64,
    hot: u32,
    transactions: u32,
}

impl Driver {
    pub(crate) fn new(load: &Load, blocks: u32) -> Self {
        Self {
            random: RandomStreams::new(load.seed).stream("operations"),
            versions: vec![0; blocks as usize],
            next_version: 1,
            hot: (blocks / 5).max(1),
            transactions: 0,
        }
    }

    fn draw(&mut self, bound: u32) -> u32 {
        uniform_below(&mut self.random, u64::from(bound.max(1))) as u32
    }

    /// The next transaction: the changes it makes.
    pub(crate) fn transaction(&mut self, load: &Load) -> Vec<Change> {
        self.transactions += 1;
        if load.wave_every > 0 && self.transactions.is_multiple_of(load.wave_every) {
            let blocks = self.versions.len() as u32;
            let first = self.draw(blocks / 4);
            let freed = (blocks * 3 / 4).min(load.wave_blocks);
            return (first..first + freed).map(|block| (block, 0)).collect();
        }
        let count = self.draw(load.blocks_max) + 1;
        let mut changes: Vec<Change> = Vec::new();
        for _ in 0..count {
            let range = if self.draw(3) == 0 { self.versions.len() as u32 } else { self.hot };
            let block = self.draw(range);
            if changes.iter().any(|change| change.0 == block) {
                continue;
            }
            let frees = load.free_every > 0 && self.draw(load.free_every) == 0;
            if frees {
                changes.push((block, 0));
            } else {
                changes.push((block, self.next_version));
                self.next_version += 1;
            }
        }
        changes
    }

    pub(crate) fn apply(&mut self, changes: &[Change]) {
        for (block, version) in changes {
            self.versions[*block as usize] = *version;
        }
    }

    /// The next transaction, and whether a sync and a collection follow.
    pub(crate) fn step(&mut self, load: &Load) -> Step {
        let changes = self.transaction(load);
        let syncs = self.is_sync_due(load);
        let collects = load.collect_every > 0 && self.draw(load.collect_every) == 0;
        Step { changes, syncs, collects, grows: false }
    }

    pub(crate) fn is_sync_due(&mut self, load: &Load) -> bool {
        self.draw(load.sync_every) == 0
    }

    /// The changes that fill the store, one a block.
    pub(crate) fn fill(&mut self, blocks: u32) -> Vec<Change> {
        (0..blocks)
            .map(|block| {
                self.next_version += 1;
                (block, self.next_version - 1)
            })
            .collect()
    }
}

/// Carries `changes` out as one transaction.
pub(crate) fn write<D: Disk>(store: &Store<D>, changes: &[Change]) -> Result<(), StoreError> {
    let bytes = store.geometry().block_bytes as usize;
    let mut data = vec![0; changes.len() * bytes];
    for ((block, version), into) in changes.iter().zip(data.chunks_exact_mut(bytes)) {
        data_of(*block, *version, into);
    }
    let mut transaction = Transaction::default();
    for ((block, version), data) in changes.iter().zip(data.chunks_exact(bytes)) {
        if *version == 0 {
            transaction.frees.push(*block);
        } else {
            transaction.writes.push((*block, data));
        }
    }
    store.write(&transaction)
}

/// Holds every block of `store` against `versions`.
pub(crate) fn compare<D: Disk>(store: &Store<D>, versions: &[u64]) -> Result<(), String> {
    for (block, version) in (0..).zip(versions) {
        let found = read_version(store, block)?;
        if found != *version {
            return Err(format!("block {block} has version {found}, not {version}"));
        }
    }
    Ok(())
}
