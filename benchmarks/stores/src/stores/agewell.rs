//! agewell's own store on a file.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use agewell_log::policy::cost::CostModel;
use agewell_store::device::{Disk, FileDisk, FileOptions};
use agewell_store::{FormatOptions, Geometry, Means, OpenOptions, Store, Transaction};
use serde_json::{Value, json};

use super::Failure;

const UUID: [u8; 16] = *b"agewell's trials";

struct Agewell {
    store: Mutex<Option<Store<FileDisk>>>,
    blocks_max: usize,
}

/// Blocks that users may have on a file of `bytes`.
pub(super) fn capacity_blocks(bytes: u64) -> Result<u64, Failure> {
    Ok(Geometry::plan(bytes, &FormatOptions::new(UUID))?.capacity_blocks())
}

/// As it chooses, at prices of a solid-state drive: 0.1 ms a request, 1 GB/s; chosen by us.
pub(super) fn adaptive() -> OpenOptions {
    let prices = CostModel {
        access_ns: 100_000,
        further_ns: 100_000,
        bandwidth_bytes_per_s: 1_000_000_000,
        block_bytes: 4096,
    };
    OpenOptions { means: Means::Adaptive, prices }
}

pub(super) fn create(
    path: &Path,
    bytes: u64,
    options: OpenOptions,
) -> Result<Box<dyn super::Store>, Failure> {
    let disk = FileDisk::create(path, bytes, FileOptions::default())?;
    Store::format(&disk, &FormatOptions::new(UUID))?;
    let store = Store::open(disk, &options)?;
    let blocks_max = store.transaction_blocks_max() as usize;
    Ok(Box::new(Agewell { store: Mutex::new(Some(store)), blocks_max }))
}

impl Agewell {
    fn lock(&self) -> MutexGuard<'_, Option<Store<FileDisk>>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl super::Store for Agewell {
    fn write(&self, writes: &[(u32, &[u8])]) -> Result<(), Failure> {
        let mut store = self.lock();
        let store = store.as_mut().expect("it is open");
        store.write(&Transaction { writes: writes.to_vec(), frees: Vec::new() })?;
        Ok(store.sync()?)
    }

    fn read(&self, block: u32, into: &mut [u8]) -> Result<bool, Failure> {
        Ok(self.lock().as_ref().expect("it is open").read(block, into)?)
    }

    fn write_blocks_max(&self) -> usize {
        self.blocks_max
    }

    fn counts(&self) -> Value {
        let store = self.lock();
        let store = store.as_ref().expect("it is open");
        let counts = store.medium_counts();
        json!({
            "new_blocks": counts.new_blocks,
            "moved_blocks": counts.moved_blocks,
            "inline_blocks": counts.inline_blocks,
            "ring_blocks": counts.ring_blocks,
            "map_blocks": counts.map_blocks,
            "flushes": counts.flushes,
            "checkpoints": counts.checkpoints,
            "groups": counts.groups,
            "is_direct": store.disk().is_direct(),
            "size_bytes": store.disk().size_bytes(),
        })
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        let store = self.lock().take().expect("it is open");
        store.close()?;
        Ok(())
    }
}
