//! The encrypted database of a home.
//!
//! [`open()`] does the careful part (key, damage, newer schema, migrations with a copy of the old store) and returns a
//! [`Db`]. Changes that belong together are made in one [`Db::write`]. Stores are functions over a
//! [`rusqlite::Transaction`], so that two features can share one.

mod error;
mod in_memory;
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

/// A handle to the open database. Clones share one connection.
#[derive(Clone)]
pub struct Db {
    conn: Arc<Mutex<Connection>>,
    changes: Arc<watch::Sender<u64>>,
    /// The last `data_version` that was read, which `SQLite` changes when another connection commits.
    others: Arc<AtomicI64>,
}

impl Db {
    fn new(conn: Connection) -> Self {
        Self { conn: Arc::new(Mutex::new(conn)), changes: Arc::default(), others: Arc::default() }
    }

    /// A database in memory, with the tables of the given migrations.
    pub fn in_memory(migrations: &[Migration]) -> Result<Self, OpenError> {
        in_memory::open(migrations).map(Self::new)
    }

    /// Runs `work` in one write transaction. Afterwards all of its changes are durable, or none were made.
    pub fn write<T, E, F>(&self, work: F) -> impl Future<Output = Result<T, E>> + Send + use<T, E, F>
    where
        F: FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
    {
        self.transact(TransactionBehavior::Immediate, work)
    }

    /// Runs `work` on one consistent snapshot of the data.
    pub fn read<T, E, F>(&self, work: F) -> impl Future<Output = Result<T, E>> + Send + use<T, E, F>
    where
        F: FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
    {
        self.transact(TransactionBehavior::Deferred, work)
    }

    /// [`Db::write`] for code that may block. Must not be called on an async thread.
    pub fn write_now<T, E>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, E>) -> Result<T, E>
    where
        E: From<DbError>,
    {
        self.now(TransactionBehavior::Immediate, work)
    }

    /// [`Db::read`] for code that may block. Must not be called on an async thread.
    pub fn read_now<T, E>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, E>) -> Result<T, E>
    where
        E: From<DbError>,
    {
        self.now(TransactionBehavior::Deferred, work)
    }

    /// The generic part is short on purpose, here and in [`Db::now`]: it is compiled for every call of it, and there are
    /// hundreds.
    fn transact<T, E, F>(
        &self,
        behavior: TransactionBehavior,
        work: F,
    ) -> impl Future<Output = Result<T, E>> + Send + use<T, E, F>
    where
        F: FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
    {
        let (db, outcome) = (self.clone(), Arc::new(Mutex::new(None)));
        let kept = Arc::clone(&outcome);
        async move {
            blocking(Box::new(move || *lock(&kept) = Some(db.now(behavior, work)))).await?;
            let outcome = lock(&outcome).take();
            outcome.unwrap_or_else(|| Err(E::from(DbError::Stopping)))
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
        let (mut work, mut outcome) = (Some(work), None);
        self.run(behavior, &mut |tx| {
            outcome = work.take().map(|work| work(tx));
            matches!(outcome, Some(Ok(_)))
        })?;
        outcome.unwrap_or_else(|| Err(E::from(DbError::Stopping)))
    }

    /// Runs `work` once in a transaction, which is committed if it returns true.
    fn run(
        &self,
        behavior: TransactionBehavior,
        work: &mut dyn FnMut(&Transaction<'_>) -> bool,
    ) -> Result<(), DbError> {
        // A panic in `work` rolls its transaction back, so the connection behind a poisoned lock is still valid.
        let mut conn = lock(&self.conn);
        let before = conn.total_changes();
        let tx = conn.transaction_with_behavior(behavior)?;
        if !work(&tx) {
            return Ok(());
        }
        tx.commit()?;
        if conn.total_changes() != before {
            self.changes.send_modify(|count| *count += 1);
        }
        if matches!(behavior, TransactionBehavior::Immediate) {
            // scripts/bench counts these events: each commit waits for the disk.
            tracing::trace!("commit");
        }
        Ok(())
    }

    /// A counter that increases whenever the data changes: at once for changes through this handle and its clones, and
    /// for changes by other processes when [`Db::poll_external_changes`] detects them.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Checks whether another process has changed something. This is cheap, because `SQLite` keeps a counter for it.
    pub async fn poll_external_changes(&self) -> Result<(), DbError> {
        let version =
            self.read(|tx| Ok::<i64, DbError>(tx.query_row("PRAGMA data_version", [], |row| row.get(0))?));
        let version = version.await?;
        if self.others.swap(version, Ordering::Relaxed) != version {
            self.changes.send_modify(|count| *count += 1);
        }
        Ok(())
    }

    /// Checks every page of the database. Returns `None` if it is intact, else a description of the damage.
    pub async fn damage(&self) -> Result<Option<String>, DbError> {
        self.read(|tx| {
            let forged = tx.query_row("PRAGMA cipher_integrity_check", [], |row| row.get(0)).optional()?;
            let structure: String = tx.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
            Ok(forged.or((structure != "ok").then_some(structure)))
        })
        .await
    }

    /// Moves the write-ahead log into the main file; called once on a clean shutdown.
    pub async fn checkpoint(&self) -> Result<(), DbError> {
        let conn = Arc::clone(&self.conn);
        let folded = tokio::task::spawn_blocking(move || {
            let conn = lock(&conn);
            conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        });
        folded.await.map_err(|_| DbError::Stopping)?.map_err(DbError::from)
    }
}

/// Runs a job on a thread that may block. If it panics, so does the caller.
async fn blocking(job: Box<dyn FnOnce() + Send>) -> Result<(), DbError> {
    match tokio::task::spawn_blocking(job).await {
        Ok(()) => Ok(()),
        Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
        Err(_) => Err(DbError::Stopping),
    }
}

/// Serializes a value as JSON for a column.
pub(crate) fn json(value: &impl Serialize) -> Result<String, DbError> {
    serde_json::to_string(value).map_err(not_json)
}

/// The error of a value that has no JSON.
pub(crate) fn not_json(error: serde_json::Error) -> DbError {
    DbError::Other(rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}
