//! Opens the store. A file that cannot be opened is left unchanged.
//!
//! The order matters: check the folder, connect, prove the key by reading, reject a newer schema, and only then write
//! anything.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::fs::{Access, access};
use zeroize::Zeroizing;

use super::{Db, DbError, Migration, OpenError, migrate};
use crate::home::{Home, StoreKey};

/// How long a process waits for another one that has the store locked.
const BUSY: Duration = Duration::from_secs(5);
/// How many copies from before upgrades are kept.
const COPIES: usize = 3;
/// How many statements stay prepared. A round of tools uses about fifty, and preparing one costs more than running it.
const STATEMENTS: usize = 128;
/// What every page is sealed with. Most processors of computers and phones have instructions for this hash, and few have
/// some for that of `SQLCipher`'s own choice.
const SEAL: &str = "HMAC_SHA256";
/// The seal of stores from before that. They keep it.
const OLD_SEAL: &str = "HMAC_SHA512";
/// With fewer free bytes than this, a failed write means a full disk.
const LITTLE_SPACE: u64 = 256 * 1024;

/// Opens the home's store, creates it in a new home, and upgrades an older one.
pub fn open(home: &Home, key: &StoreKey, migrations: &[Migration], now: Timestamp) -> Result<Db, OpenError> {
    let file = home.store();
    writable(&home.dir, &home.dir)?;
    if exists(&file)? {
        let length = fs::metadata(&file).map_err(|cause| at(&file, cause))?.len();
        if length == 0 {
            return Err(OpenError::Damaged(file));
        }
        writable(&file, &home.dir)?;
        clear_awaits_store(home)?;
    } else {
        create(home, key, migrations)?;
    }
    let mut conn = connect(&file, key)?;
    if migrate::pending(&conn, migrations)? {
        upgrade(home, &mut conn, migrations, now)?;
    }
    prepare(&conn).map_err(|e| classify(&file, e))?;
    Ok(Db::new(conn))
}

/// Whether the store file exists. A folder, or a symlink to a disk that is not mounted, is an error: it is not a store,
/// and none can be created in its place.
fn exists(file: &Path) -> Result<bool, OpenError> {
    match (fs::symlink_metadata(file), fs::metadata(file)) {
        (Ok(_), Ok(there)) if there.is_file() => Ok(true),
        (Ok(_), _) => Err(OpenError::NotAFile(file.to_owned())),
        (Err(cause), _) if cause.kind() == std::io::ErrorKind::NotFound => Ok(false),
        (Err(cause), _) => Err(at(file, cause)),
    }
}

fn writable(path: &Path, home: &Path) -> Result<(), OpenError> {
    access(path, Access::WRITE_OK | Access::READ_OK).map_err(|_| OpenError::ReadOnly(home.to_owned()))
}

/// Creates a new store in a temporary file and renames it, so that a crash leaves no half-written store.
fn create(home: &Home, key: &StoreKey, migrations: &[Migration]) -> Result<(), OpenError> {
    let _setup = home.lock_setup().map_err(|cause| at(&home.dir, cause))?;
    let (file, fresh) = (home.store(), home.dir.join("kai.db.new"));
    if exists(&file)? {
        return Ok(());
    }
    if home.read_key_file().map_err(OpenError::Key)?.is_some_and(|key| !key.awaits_store) {
        return Err(OpenError::Gone(file));
    }
    for leftover in ["kai.db.new", "kai.db.new-journal", "kai.db.new-wal", "kai.db.new-shm"] {
        drop(fs::remove_file(home.dir.join(leftover)));
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh).map_err(|c| at(&fresh, c))?;
    let mut conn = raw(&fresh, key, SEAL).map_err(|e| classify(&fresh, e))?;
    migrate::apply(&mut conn, migrations, || Ok(())).map_err(|e| full_disk(&home.dir, e))?;
    conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(|e| classify(&fresh, e))?;
    conn.close().map_err(|(_, e)| classify(&fresh, e))?;
    File::open(&fresh).and_then(|f| f.sync_all()).map_err(|c| at(&fresh, c))?;
    fs::rename(&fresh, &file).map_err(|c| at(&file, c))?;
    home.sync().map_err(|cause| at(&home.dir, cause))?;
    home.mark_store_created().map_err(OpenError::Key)
}

/// Clears the mark of a new key if it is still set: a crash may have come after the store was created and before the
/// key file was updated.
fn clear_awaits_store(home: &Home) -> Result<(), OpenError> {
    if home.read_key_file().map_err(OpenError::Key)?.is_none_or(|key| !key.awaits_store) {
        return Ok(());
    }
    let _setup = home.lock_setup().map_err(|cause| at(&home.dir, cause))?;
    home.mark_store_created().map_err(OpenError::Key)
}

/// Connects and checks that the key is right, without changing a byte.
fn connect(file: &Path, key: &StoreKey) -> Result<Connection, OpenError> {
    match connect_sealed(file, key, SEAL) {
        Err(OpenError::WrongKeyOrDamaged(_)) => connect_sealed(file, key, OLD_SEAL),
        connected => connected,
    }
}

fn connect_sealed(file: &Path, key: &StoreKey, seal: &str) -> Result<Connection, OpenError> {
    let conn = raw(file, key, seal).map_err(|e| classify(file, e))?;
    // After a crash there may be a write-ahead log. It must not be checkpointed before the key has proven right.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(|e| classify(file, e))?;
    conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).map_err(|e| classify(file, e))?;
    Ok(conn)
}

fn raw(file: &Path, key: &StoreKey, seal: &str) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(file, flags)?;
    conn.busy_timeout(BUSY)?;
    // SQLCipher would log a wrong key to stderr, before our own message.
    conn.execute_batch("PRAGMA cipher_log_level = NONE")?;
    // A raw key skips SQLCipher's own key derivation, which exists for passphrases and takes 225 ms.
    conn.execute_batch(&Zeroizing::new(format!("PRAGMA key = \"x'{}'\"", *key.hex())))?;
    conn.execute_batch(&format!("PRAGMA cipher_hmac_algorithm = {seal}"))?;
    Ok(conn)
}

fn prepare(conn: &Connection) -> rusqlite::Result<()> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    conn.execute_batch(
        "PRAGMA synchronous = FULL;
         PRAGMA foreign_keys = ON;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -4096;
         PRAGMA journal_size_limit = 4194304;",
    )
}

fn upgrade(
    home: &Home,
    conn: &mut Connection,
    migrations: &[Migration],
    now: Timestamp,
) -> Result<(), OpenError> {
    let _setup = home.lock_setup().map_err(|cause| at(&home.dir, cause))?;
    let file = home.store();
    // Only the main file is copied, so it must contain everything first.
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(|e| classify(&file, e))?;
    migrate::apply(conn, migrations, || keep_copy(home, now)).map_err(|e| full_disk(&home.dir, e))
}

fn keep_copy(home: &Home, now: Timestamp) -> Result<(), OpenError> {
    let file = home.store();
    let log = home.dir.join("kai.db-wal");
    if fs::metadata(&log).is_ok_and(|m| m.len() > 0) {
        return Err(OpenError::Busy(file));
    }
    let copies = home.copies();
    fs::create_dir_all(&copies).map_err(|c| at(&copies, c))?;
    let (partial, whole) =
        (copies.join("partial"), copies.join(format!("kai-{}.db", now.strftime("%Y%m%dT%H%M%S%3fZ"))));
    let written = fs::copy(&file, &partial).and_then(|_| File::open(&partial)?.sync_all());
    if let Err(cause) = written.and_then(|()| fs::rename(&partial, &whole)) {
        drop(fs::remove_file(&partial));
        return Err(full_disk(&home.dir, at(&whole, cause)));
    }
    prune_copies(&copies, &whole).map_err(|c| at(&copies, c))
}

/// Deletes the oldest copies. The one just made always stays, even if the clock was ahead when the others were made.
fn prune_copies(copies: &Path, newest: &Path) -> std::io::Result<()> {
    let mut kept: Vec<PathBuf> =
        fs::read_dir(copies)?.map(|e| Ok(e?.path())).collect::<std::io::Result<_>>()?;
    kept.retain(|path| path.extension().is_some_and(|e| e == "db") && path != newest);
    kept.sort();
    let surplus = (kept.len() + 1).saturating_sub(COPIES);
    kept.iter().take(surplus).try_for_each(fs::remove_file)
}

fn at(path: &Path, cause: std::io::Error) -> OpenError {
    match cause.kind() {
        std::io::ErrorKind::StorageFull => OpenError::Full(path.to_owned()),
        std::io::ErrorKind::ReadOnlyFilesystem => OpenError::ReadOnly(path.to_owned()),
        _ => OpenError::File { path: path.to_owned(), cause },
    }
}

/// Recognizes a full disk by its free space, because `SQLite` reports one with several different errors.
fn full_disk(home: &Path, error: OpenError) -> OpenError {
    let suspicious = matches!(error, OpenError::Unexpected(_) | OpenError::Migration { .. });
    if suspicious && little_space(home) { OpenError::Full(home.to_owned()) } else { error }
}

fn little_space(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < LITTLE_SPACE)
}

fn classify(file: &Path, error: rusqlite::Error) -> OpenError {
    let home = file.parent().unwrap_or(file);
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::WrongKeyOrDamaged(file.to_owned()),
        Some(ErrorCode::DatabaseCorrupt) => OpenError::Damaged(file.to_owned()),
        Some(ErrorCode::DiskFull) => OpenError::Full(home.to_owned()),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::Busy(file.to_owned()),
        Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure) if little_space(home) => {
            OpenError::Full(home.to_owned())
        }
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen) => OpenError::ReadOnly(home.to_owned()),
        _ => OpenError::Unexpected(DbError::from(error)),
    }
}
