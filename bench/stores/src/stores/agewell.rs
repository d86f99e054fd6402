//! agewell's own store on a file.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use agewell_log::policy::cost::CostModel;
use agewell_log::policy::mechanism::Mechanism;
use agewell_store::device::{Disk, FileDisk, FileOptions, Piece};
use agewell_store::{
    Collector, CollectorOptions, FormatOptions, Geometry, OpenOptions, Store, Transaction,
};
use serde_json::{Value, json};

use super::Failure;
use crate::load::{AlignedBytes, BLOCK_BYTES, Random, TRANSACTION_BLOCKS};

/// Writes of each kind that prices are taken from; chosen by us.
const PRICED_WRITES: usize = 40;

const UUID: [u8; 16] = *b"agewell's trials";

struct Agewell {
    store: Arc<Store<FileDisk>>,
    /// Makes room behind, if there is one.
    collector: Option<Collector>,
    blocks_max: usize,
    prices: CostModel,
}

/// Blocks that users may have on a file of `bytes`.
pub(super) fn capacity_blocks(bytes: u64) -> Result<u64, Failure> {
    Ok(Geometry::plan(bytes, &FormatOptions::new(UUID))?.capacity_blocks())
}

/// What writing takes on `disk`, of which nothing is kept: pieces of a megabyte, and as many scattered blocks
/// at once as a transaction has, each flushed. Of each the quickest of ten: who else is at work only adds.
fn measured_prices(disk: &FileDisk) -> Result<CostModel, Failure> {
    let data = AlignedBytes::random(1 << 20);
    let blocks = disk.size_bytes() / BLOCK_BYTES as u64;
    let mut random = Random::new(1);
    let mut timed = |bytes: usize, count: usize| -> Result<u128, Failure> {
        let mut times = Vec::new();
        for _ in 0..PRICED_WRITES {
            let last = blocks as u32 - (bytes / BLOCK_BYTES) as u32;
            let mut offset = || u64::from(random.below(last)) * BLOCK_BYTES as u64;
            let pieces: Vec<Piece<'_>> = (0..count)
                .map(|_| Piece { offset: offset(), data: &data.bytes()[..bytes] })
                .collect();
            let begun = Instant::now();
            disk.write(&pieces)?;
            times.push(begun.elapsed().as_nanos());
            disk.flush()?;
        }
        times.sort_unstable();
        Ok(times[times.len() / 10])
    };
    let whole = timed(1 << 20, 1)?.max(1);
    let scattered = timed(BLOCK_BYTES, TRANSACTION_BLOCKS)? / TRANSACTION_BLOCKS as u128;
    let transfer = (whole * BLOCK_BYTES as u128) >> 20;
    let access_ns = scattered.saturating_sub(transfer) as u64;
    Ok(CostModel {
        access_ns,
        further_ns: access_ns,
        bandwidth_bytes_per_s: ((1_u128 << 20) * 1_000_000_000 / whole) as u64,
        block_bytes: BLOCK_BYTES as u64,
    })
}

pub(super) fn create(
    path: &Path,
    bytes: u64,
    mechanism: Option<Mechanism>,
    is_behind: bool,
) -> Result<Box<dyn super::Store>, Failure> {
    let disk = FileDisk::create_filled(path, bytes, FileOptions::default())?;
    let options = match mechanism {
        Some(mechanism) => OpenOptions::fixed(mechanism),
        None => OpenOptions { prices: measured_prices(&disk)?, ..OpenOptions::default() },
    };
    let prices = options.prices;
    Store::format(&disk, &FormatOptions::new(UUID))?;
    let store = Arc::new(Store::open(disk, &options)?);
    let blocks_max = store.transaction_blocks_max() as usize;
    // A file that was filled is to stay so.
    let collect = || Collector::start(Arc::clone(&store), CollectorOptions { discards: false });
    let collector = is_behind.then(collect).transpose()?;
    Ok(Box::new(Agewell { store, collector, blocks_max, prices }))
}

impl super::Store for Agewell {
    fn write(&self, writes: &[(u32, &[u8])]) -> Result<(), Failure> {
        self.store.write(&Transaction { writes: writes.to_vec(), frees: Vec::new() })?;
        Ok(self.store.sync()?)
    }

    fn read(&self, block: u32, into: &mut [u8]) -> Result<bool, Failure> {
        Ok(self.store.read(block, into)?)
    }

    fn write_blocks_max(&self) -> usize {
        self.blocks_max
    }

    fn counts(&self) -> Value {
        let counts = self.store.medium_counts();
        json!({
            "new_blocks": counts.new_blocks,
            "moved_blocks": counts.moved_blocks,
            "inline_blocks": counts.inline_blocks,
            "ring_blocks": counts.ring_blocks,
            "map_blocks": counts.map_blocks,
            "flushes": counts.flushes,
            "checkpoints": counts.checkpoints,
            "groups": counts.groups,
            "access_ns": self.prices.access_ns,
            "bandwidth_bytes_per_s": self.prices.bandwidth_bytes_per_s,
            "is_direct": self.store.disk().is_direct(),
            "size_bytes": self.store.disk().size_bytes(),
        })
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        let Self { store, collector, .. } = *self;
        drop(collector);
        Arc::into_inner(store).expect("nobody else has it").close()?;
        Ok(())
    }
}
