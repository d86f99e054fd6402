//! redb, as it comes: one flush a commit, with checksums.

use std::path::Path;

use redb::{Builder, Database, ReadableDatabase, TableDefinition};

use super::{Failure, Store};

const BLOCKS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("blocks");

struct Redb(Database);

pub(super) fn create(path: &Path, cache_bytes: u64) -> Result<Box<dyn Store>, Failure> {
    Ok(Box::new(Redb(Builder::new().set_cache_size(cache_bytes as usize).create(path)?)))
}

impl Store for Redb {
    fn write(&self, writes: &[(u32, &[u8])]) -> Result<(), Failure> {
        let transaction = self.0.begin_write()?;
        let mut table = transaction.open_table(BLOCKS)?;
        for (block, data) in writes {
            table.insert(block, data)?;
        }
        drop(table);
        Ok(transaction.commit()?)
    }

    fn read(&self, block: u32, into: &mut [u8]) -> Result<bool, Failure> {
        let found = self.0.begin_read()?.open_table(BLOCKS)?.get(block)?;
        if let Some(data) = &found {
            into.copy_from_slice(data.value());
        }
        Ok(found.is_some())
    }
}
