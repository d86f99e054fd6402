//! Loads: transactions drawn from a seed, and what the blocks must hold after each.

use agewell_core::{RandomStreams, Stream, uniform_below};
use agewell_log::policy::mechanism::{Collect, Mechanism, PlugCandidate};
use agewell_store::device::Disk;
use agewell_store::{FormatOptions, OpenOptions, Store, StoreError, Transaction};

/// A small store and what is done to it.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(crate) seed: u64,
    pub(crate) block_bytes: u32,
    pub(crate) segment_blocks: u32,
    pub(crate) device_bytes: u64,
    pub(crate) collect: Collect,
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
}

/// Mechanisms by number.
pub(crate) fn mechanism(number: u64) -> Collect {
    match number % 4 {
        0 => Collect::Always(Mechanism::Clean),
        1 => Collect::Always(Mechanism::Plug),
        2 => Collect::Always(Mechanism::Thread),
        _ => Collect::Matthews1999(PlugCandidate::LeastUtilized),
    }
}

impl Load {
    /// A load so small that collections happen all the time.
    pub(crate) fn tiny(seed: u64) -> Self {
        Self {
            seed,
            block_bytes: 512,
            segment_blocks: [8, 16, 23][(seed / 4 % 3) as usize],
            device_bytes: 512 * [700, 520, 900][(seed / 12 % 3) as usize],
            collect: mechanism(seed),
            full: [0.9, 0.98, 0.6, 1.0][(seed / 36 % 4) as usize],
            transactions: 120,
            blocks_max: 7,
            sync_every: [1, 3, 8][(seed / 7 % 3) as usize],
            free_every: [0, 6, 3][(seed / 5 % 3) as usize],
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
        OpenOptions { collect: self.collect }
    }
}

/// The data of a version of a block.
pub(crate) fn data_of(block: u32, version: u64, into: &mut [u8]) {
    for (index, chunk) in into.chunks_exact_mut(8).enumerate() {
        let word = agewell_core::mix(u64::from(block) << 40 ^ version << 8 ^ index as u64);
        chunk.copy_from_slice(&word.to_le_bytes());
    }
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
}

impl Driver {
    pub(crate) fn new(load: &Load, blocks: u32) -> Self {
        Self {
            random: RandomStreams::new(load.seed).stream("operations"),
            versions: vec![0; blocks as usize],
            next_version: 1,
            hot: (blocks / 5).max(1),
        }
    }

    fn draw(&mut self, bound: u32) -> u32 {
        uniform_below(&mut self.random, u64::from(bound.max(1))) as u32
    }

    /// The next transaction: the changes it makes.
    pub(crate) fn transaction(&mut self, load: &Load) -> Vec<Change> {
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
pub(crate) fn write<D: Disk>(store: &mut Store<D>, changes: &[Change]) -> Result<(), StoreError> {
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
    let bytes = store.geometry().block_bytes as usize;
    let (mut found, mut expected) = (vec![0; bytes], vec![0; bytes]);
    for (block, version) in (0..).zip(versions) {
        let there = store.read(block, &mut found).map_err(|error| error.to_string())?;
        if there != (*version > 0) {
            return Err(format!("block {block}: there {there}, version {version}"));
        }
        if there {
            data_of(block, *version, &mut expected);
            if found != expected {
                return Err(format!("block {block} is not of version {version}"));
            }
        }
    }
    Ok(())
}
