//! SQLite with a write-ahead log; its checkpoints are within the transactions that make them.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::{Failure, Store};

const PAGE_BYTES: u32 = 4096;

struct Sqlite(Mutex<Connection>);

pub(super) fn create(path: &Path, cache_bytes: u64) -> Result<Box<dyn Store>, Failure> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.pragma_update(None, "locking_mode", "exclusive")?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    // Negative: KiB in place of pages.
    connection.pragma_update(None, "cache_size", -((cache_bytes >> 10) as i64))?;
    connection.execute_batch("CREATE TABLE blocks (number INTEGER PRIMARY KEY, data BLOB)")?;
    Ok(Box::new(Sqlite(Mutex::new(connection))))
}

impl Sqlite {
    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Sqlite {
    fn write(&self, writes: &[(u32, &[u8])]) -> Result<(), Failure> {
        let mut connection = self.lock();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut statement = transaction.prepare_cached(
            "INSERT INTO blocks VALUES (?1, ?2) ON CONFLICT (number) DO UPDATE SET data = ?2",
        )?;
        for write in writes {
            statement.execute(*write)?;
        }
        drop(statement);
        Ok(transaction.commit()?)
    }

    fn read(&self, block: u32, into: &mut [u8]) -> Result<bool, Failure> {
        let connection = self.lock();
        let mut statement =
            connection.prepare_cached("SELECT data FROM blocks WHERE number = ?1")?;
        let found = statement.query_row([block], |row| {
            into.copy_from_slice(row.get_ref(0)?.as_blob()?);
            Ok(())
        });
        Ok(found.optional()?.is_some())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        let connection = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        connection.close().map_err(|(_, error)| error.into())
    }
}
