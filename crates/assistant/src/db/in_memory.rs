//! Databases in memory, for tests and for commands that only look.

use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::Mutex;

use rusqlite::Connection;
use rusqlite::backup::Backup;

use super::{DbError, Migration, OpenError, migrate};
use crate::lock::lock;

/// Empty databases by the names and texts of their migrations. Tests open thousands, and laying the tables of one takes
/// many times as long as copying it.
static EMPTY: Mutex<BTreeMap<Vec<(&str, &str)>, Connection>> = Mutex::new(BTreeMap::new());

/// A database in memory, with the tables of the given migrations.
pub(super) fn open(migrations: &[Migration]) -> Result<Connection, OpenError> {
    let named = migrations.iter().map(|migration| (migration.name, migration.sql)).collect();
    let mut all = lock(&EMPTY);
    let empty = match all.entry(named) {
        Entry::Occupied(there) => there.into_mut(),
        Entry::Vacant(place) => place.insert(laid(migrations)?),
    };
    copy(empty).map_err(unexpected)
}

fn laid(migrations: &[Migration]) -> Result<Connection, OpenError> {
    let mut conn = Connection::open_in_memory().map_err(unexpected)?;
    migrate::apply(&mut conn, migrations, || Ok(()))?;
    Ok(conn)
}

fn copy(of: &Connection) -> rusqlite::Result<Connection> {
    let mut conn = Connection::open_in_memory()?;
    Backup::new(of, &mut conn)?.step(-1)?;
    Ok(conn)
}

fn unexpected(error: rusqlite::Error) -> OpenError {
    OpenError::Unexpected(DbError::from(error))
}
