//! fjall: a batch a transaction, its journal flushed by `fdatasync`. Nothing is compressed, as nothing
//! here can be.

use std::path::Path;

use fjall::config::CompressionPolicy;
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode,
};

use super::{Failure, Store};

struct Fjall {
    database: Database,
    blocks: Keyspace,
}

/// If `separated`, values lie in files of their own.
pub(super) fn create(
    path: &Path,
    cache_bytes: u64,
    separated: bool,
) -> Result<Box<dyn Store>, Failure> {
    let builder = Database::builder(path).cache_size(cache_bytes);
    let database = builder.journal_compression(CompressionType::None).open()?;
    let apart = KvSeparationOptions::default().compression(CompressionType::None);
    let options = || {
        KeyspaceCreateOptions::default()
            .data_block_compression_policy(CompressionPolicy::disabled())
            .with_kv_separation(separated.then_some(apart))
    };
    let blocks = database.keyspace("blocks", options)?;
    Ok(Box::new(Fjall { database, blocks }))
}

impl Store for Fjall {
    fn write(&self, writes: &[(u32, &[u8])]) -> Result<(), Failure> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for (block, data) in writes {
            batch.insert(&self.blocks, block.to_be_bytes(), *data);
        }
        Ok(batch.commit()?)
    }

    fn read(&self, block: u32, into: &mut [u8]) -> Result<bool, Failure> {
        let found = self.blocks.get(block.to_be_bytes())?;
        if let Some(data) = &found {
            into.copy_from_slice(data);
        }
        Ok(found.is_some())
    }
}
