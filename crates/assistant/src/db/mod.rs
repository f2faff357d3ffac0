//! The one encrypted database of a home.
//!
//! [`open()`] takes the care (key, damage, newer schema, migrations with a kept copy) and hands out a [`Db`].
//! Everything that belongs together happens inside one [`Db::write`]; stores are functions over a
//! [`rusqlite::Transaction`], so that two features can share one.

mod error;
mod migrate;
mod open;

use crate::lock::lock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use serde::Serialize;
use tokio::sync::watch;

pub use error::{DbError, OpenError};
pub use migrate::Migration;
pub use open::open;

/// A handle on the open database; clones share one connection.
#[derive(Clone)]
pub struct Db {
    conn: Arc<Mutex<Connection>>,
    changes: Arc<watch::Sender<u64>>,
    /// What `SQLite` last said about commits of other connections.
    others: Arc<AtomicI64>,
}

impl Db {
    fn new(conn: Connection) -> Self {
        Self { conn: Arc::new(Mutex::new(conn)), changes: Arc::default(), others: Arc::default() }
    }

    /// A database that lives in memory only, with the given tables.
    pub fn in_memory(migrations: &[Migration]) -> Result<Self, OpenError> {
        let mut conn = Connection::open_in_memory().map_err(|e| OpenError::Unexpected(DbError::from(e)))?;
        migrate::apply(&mut conn, migrations, || Ok(()))?;
        Ok(Self::new(conn))
    }

    /// Runs `work` in one transaction: all of it is durable afterwards, or none of it happened.
    pub async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
    {
        self.transact(TransactionBehavior::Immediate, work).await
    }

    /// Runs `work` on one consistent view of the data.
    pub async fn read<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
    {
        self.transact(TransactionBehavior::Deferred, work).await
    }

    /// [`Db::write`] for code that may block: never on an async thread.
    pub fn write_now<T, E>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, E>) -> Result<T, E>
    where
        E: From<DbError>,
    {
        self.now(TransactionBehavior::Immediate, work)
    }

    /// [`Db::read`] for code that may block: never on an async thread.
    pub fn read_now<T, E>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, E>) -> Result<T, E>
    where
        E: From<DbError>,
    {
        self.now(TransactionBehavior::Deferred, work)
    }

    async fn transact<T, E, F>(&self, behavior: TransactionBehavior, work: F) -> Result<T, E>
    where
        F: FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
    {
        let db = self.clone();
        match tokio::task::spawn_blocking(move || db.now(behavior, work)).await {
            Ok(outcome) => outcome,
            Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
            Err(_) => Err(E::from(DbError::Stopping)),
        }
    }

    fn now<T, E>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E>
    where
        E: From<DbError>,
    {
        // A panic in `work` rolls its transaction back, so the connection behind a poisoned lock is sound.
        let mut conn = lock(&self.conn);
        let before = conn.total_changes();
        let tx = conn.transaction_with_behavior(behavior).map_err(DbError::from)?;
        let value = work(&tx)?;
        tx.commit().map_err(DbError::from)?;
        if conn.total_changes() != before {
            self.changes.send_modify(|count| *count += 1);
        }
        if matches!(behavior, TransactionBehavior::Immediate) {
            // Counted by scripts/bench: each one waits for the disk.
            tracing::trace!("commit");
        }
        Ok(value)
    }

    /// Moves on whenever something was changed: through this handle and its clones at once, by other processes when
    /// [`Db::notice_others`] finds it out.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Asks whether another process has changed something. Cheap: `SQLite` keeps a number for it.
    pub async fn notice_others(&self) -> Result<(), DbError> {
        let version =
            self.read(|tx| Ok::<i64, DbError>(tx.query_row("PRAGMA data_version", [], |row| row.get(0))?));
        let version = version.await?;
        if self.others.swap(version, Ordering::Relaxed) != version {
            self.changes.send_modify(|count| *count += 1);
        }
        Ok(())
    }

    /// Reads every page: `None` if all is whole, else what is not.
    pub async fn damage(&self) -> Result<Option<String>, DbError> {
        self.read(|tx| {
            let forged = tx.query_row("PRAGMA cipher_integrity_check", [], |row| row.get(0)).optional()?;
            let structure: String = tx.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
            Ok(forged.or((structure != "ok").then_some(structure)))
        })
        .await
    }

    /// Folds the write-ahead log into the main file; called once on a clean stop.
    pub async fn checkpoint(&self) -> Result<(), DbError> {
        let conn = Arc::clone(&self.conn);
        let folded = tokio::task::spawn_blocking(move || {
            let conn = lock(&conn);
            conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        });
        folded.await.map_err(|_| DbError::Stopping)?.map_err(DbError::from)
    }
}

/// A value as it is kept in a column.
pub(crate) fn json(value: &impl Serialize) -> Result<String, DbError> {
    serde_json::to_string(value)
        .map_err(|e| DbError::Other(rusqlite::Error::ToSqlConversionFailure(Box::new(e))))
}
