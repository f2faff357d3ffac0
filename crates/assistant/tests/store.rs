//! The store on a real disk: encrypted everywhere, never overwritten when it cannot be opened, and upgraded
//! with a copy kept.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use kai_assistant::MIGRATIONS;
use kai_assistant::db::{self, Db, DbError, Migration, OpenError};
use kai_assistant::home::{Home, StoreKey};
use rusqlite::Connection;
use tempfile::TempDir;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
/// Long enough that finding it in an encrypted file by chance is out of the question.
const SECRET: &str = "the heron stands in the reeds at dusk";

fn fresh() -> (TempDir, Home, StoreKey) {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path()).unwrap();
    (folder, home, StoreKey::random().unwrap())
}

fn open(home: &Home, key: &StoreKey) -> Result<Db, OpenError> {
    db::open(home, key, MIGRATIONS, NOW)
}

async fn write_secret(db: &Db) {
    let statements = format!(
        "CREATE VIRTUAL TABLE notes USING fts5(body);
         INSERT INTO notes VALUES ('{SECRET}');
         INSERT INTO settings VALUES ('note', '{SECRET}');"
    );
    db.write(move |tx| Ok::<_, DbError>(tx.execute_batch(&statements)?)).await.unwrap();
}

/// Files of the folder, by name, with their bytes.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    found
}

/// A store from before pages were sealed with another hash.
fn with_the_old_seal(home: &Home, key: &StoreKey) {
    let conn = Connection::open(home.store()).unwrap();
    conn.execute_batch(&format!("PRAGMA key = \"x'{}'\"", *key.hex())).unwrap();
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; CREATE TABLE old (words); INSERT INTO old VALUES ('herons')",
    )
    .unwrap();
}

#[tokio::test]
async fn a_store_with_the_old_seal_goes_on_with_it() {
    let (_folder, home, key) = fresh();
    with_the_old_seal(&home, &key);
    let wrong = StoreKey::random().unwrap();
    assert!(matches!(open(&home, &wrong), Err(OpenError::WrongKeyOrDamaged(_))));
    write_secret(&open(&home, &key).unwrap()).await;
    look_for_plaintext(&home);
    let again = open(&home, &key).unwrap();
    let read = again.read(|tx| {
        let old = tx.query_row("SELECT words FROM old", [], |row| row.get(0))?;
        let new = tx.query_row("SELECT value FROM settings WHERE key = 'note'", [], |row| row.get(0))?;
        Ok::<[String; 2], DbError>([old, new])
    });
    assert_eq!(read.await.unwrap(), ["herons", SECRET]);
    assert_eq!(again.damage().await.unwrap(), None);
}

#[tokio::test]
async fn no_stored_text_is_readable_in_any_file() {
    let (_folder, home, key) = fresh();
    let db = open(&home, &key).unwrap();
    write_secret(&db).await;
    let words: i64 = db
        .read(|tx| {
            let sql = "SELECT count(*) FROM notes WHERE notes MATCH 'heron reeds'";
            Ok::<_, DbError>(tx.query_row(sql, [], |row| row.get(0))?)
        })
        .await
        .unwrap();
    assert_eq!(words, 1, "full-text search works on the encrypted store");
    let log = home.dir.join("kai.db-wal");
    assert!(fs::metadata(log).unwrap().len() > 0, "the text is in the write-ahead log now");
    look_for_plaintext(&home);

    drop(db);
    let later: Vec<Migration> =
        [MIGRATIONS, &[Migration { name: "later/1", sql: "CREATE TABLE later (x)" }]].concat();
    let db = db::open(&home, &key, &later, NOW).unwrap();
    write_note_after_upgrade(&db).await;
    assert_eq!(fs::read_dir(home.copies()).unwrap().count(), 1, "an upgrade keeps a copy");
    look_for_plaintext(&home);
}

async fn write_note_after_upgrade(db: &Db) {
    db.write(|tx| Ok::<_, DbError>(tx.execute("INSERT INTO notes VALUES (?1)", [SECRET])?)).await.unwrap();
}

fn look_for_plaintext(home: &Home) {
    for (name, bytes) in files(&home.dir) {
        for word in ["heron", "reeds", "CREATE TABLE", "SQLite format"] {
            let found = bytes.windows(word.len()).any(|window| window == word.as_bytes());
            assert!(!found, "{word:?} stands in the clear in {name}");
        }
    }
}

/// Opens a store made by `spoil` and returns the refusal; the files must be the same before and after.
async fn refusal(spoil: impl FnOnce(&Home), key_changes: bool) -> OpenError {
    let (_folder, home, key) = fresh();
    let db = open(&home, &key).unwrap();
    write_secret(&db).await;
    drop(db);
    spoil(&home);
    let before = fs::read(home.store()).unwrap();
    let key = if key_changes { StoreKey::random().unwrap() } else { key };
    let refused = open(&home, &key).err().unwrap();
    assert!(fs::read(home.store()).unwrap() == before, "the store was changed by a refused open");
    refused
}

fn cut_to(home: &Home, length: u64) {
    fs::OpenOptions::new().write(true).open(home.store()).unwrap().set_len(length).unwrap();
}

#[tokio::test]
async fn what_cannot_be_opened_stays_byte_identical() {
    let untouched = |_: &Home| {};
    assert!(matches!(refusal(untouched, true).await, OpenError::WrongKeyOrDamaged(_)));
    let noise = |home: &Home| fs::write(home.store(), vec![0x5a; 40_000]).unwrap();
    assert!(matches!(refusal(noise, false).await, OpenError::WrongKeyOrDamaged(_)));
    let plain = |home: &Home| fs::write(home.store(), b"SQLite format 3\0 and so on").unwrap();
    assert!(matches!(refusal(plain, false).await, OpenError::WrongKeyOrDamaged(_)));
    assert!(matches!(refusal(|home| cut_to(home, 3 * 4096), false).await, OpenError::Damaged(_)));
    assert!(matches!(refusal(|home| cut_to(home, 0), false).await, OpenError::Damaged(_)));
    let stump = refusal(|home| cut_to(home, 100), false).await;
    assert!(matches!(stump, OpenError::WrongKeyOrDamaged(_) | OpenError::Damaged(_)), "{stump}");
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let (_folder, home, key) = fresh();
    let newer: Vec<Migration> =
        [MIGRATIONS, &[Migration { name: "tomorrow/9", sql: "CREATE TABLE t (x)" }]].concat();
    drop(db::open(&home, &key, &newer, NOW).unwrap());
    let before = fs::read(home.store()).unwrap();
    let refused = open(&home, &key).err().unwrap();
    assert!(refused.to_string().contains("tomorrow/9"), "{refused}");
    assert!(fs::read(home.store()).unwrap() == before);
}

/// After a crash the write-ahead log holds data. Somebody with the wrong key must not fold it in.
#[tokio::test]
async fn a_wrong_key_does_not_touch_what_a_crash_left() {
    let (_folder, home, key) = fresh();
    let db = open(&home, &key).unwrap();
    write_secret(&db).await;
    // As a crash leaves it: the files as they are now, without a clean close.
    let crashed = tempfile::tempdir().unwrap();
    for name in ["kai.db", "kai.db-wal"] {
        fs::copy(home.dir.join(name), crashed.path().join(name)).unwrap();
    }
    let crashed = Home::at(crashed.path()).map(|home| (home, crashed)).unwrap();
    let before = (fs::read(crashed.0.store()).unwrap(), fs::read(crashed.0.dir.join("kai.db-wal")).unwrap());
    assert!(open(&crashed.0, &StoreKey::random().unwrap()).is_err());
    let after = (fs::read(crashed.0.store()).unwrap(), fs::read(crashed.0.dir.join("kai.db-wal")).unwrap());
    assert!(before == after, "a refused open changed the store or its log");
    let recovered = open(&crashed.0, &key).unwrap();
    let notes: i64 = recovered
        .read(|tx| Ok::<_, DbError>(tx.query_row("SELECT count(*) FROM notes", [], |row| row.get(0))?))
        .await
        .unwrap();
    assert_eq!(notes, 1, "the right key finds everything");
}

#[tokio::test]
async fn an_upgrade_that_fails_changes_nothing_and_keeps_the_copy() {
    let (_folder, home, key) = fresh();
    write_secret(&open(&home, &key).unwrap()).await;
    let broken: Vec<Migration> = [
        MIGRATIONS,
        &[Migration { name: "broken/1", sql: "CREATE TABLE half (x); CREATE TABLE settings (x);" }],
    ]
    .concat();
    let refused = db::open(&home, &key, &broken, NOW).err().unwrap();
    assert!(refused.to_string().contains("broken/1"), "{refused}");
    let db = open(&home, &key).unwrap();
    let halves: i64 = db
        .read(|tx| {
            let sql = "SELECT count(*) FROM sqlite_schema WHERE name = 'half'";
            Ok::<_, DbError>(tx.query_row(sql, [], |row| row.get(0))?)
        })
        .await
        .unwrap();
    assert_eq!(halves, 0);
}

#[test]
fn copies_do_not_pile_up() {
    let (_folder, home, key) = fresh();
    let mut steps = MIGRATIONS.to_vec();
    drop(db::open(&home, &key, &steps, NOW).unwrap());
    for (n, name) in ["u/1", "u/2", "u/3", "u/4", "u/5"].into_iter().enumerate() {
        steps.push(Migration { name, sql: "SELECT 1" });
        let now = Timestamp::from_second(1_800_000_000 + i64::try_from(n).unwrap()).unwrap();
        drop(db::open(&home, &key, &steps, now).unwrap());
    }
    let mut kept: Vec<String> =
        fs::read_dir(home.copies()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    kept.sort();
    assert_eq!(kept.len(), 3);
    assert!(kept.last().unwrap().contains("20270115T080004"), "the newest stays: {kept:?}");
}

#[test]
fn two_who_create_at_once_get_the_same_store() {
    let (_folder, home, key) = fresh();
    std::thread::scope(|threads| {
        let openers: Vec<_> = (0..8).map(|_| threads.spawn(|| open(&home, &key).map(drop))).collect();
        for opener in openers {
            opener.join().unwrap().unwrap();
        }
    });
    assert!(!home.dir.join("kai.db.new").exists());
}

#[tokio::test]
async fn what_another_process_writes_is_noticed() {
    let (_folder, home, key) = fresh();
    let (ours, theirs) = (open(&home, &key).unwrap(), open(&home, &key).unwrap());
    ours.poll_external_changes().await.unwrap();
    let mut changes = ours.changes();
    changes.mark_unchanged();
    let write = |db: &Db, value: &'static str| {
        let db = db.clone();
        async move {
            let sql = "INSERT OR REPLACE INTO settings VALUES ('note', ?1)";
            db.write(move |tx| Ok::<_, DbError>(tx.execute(sql, [value])?)).await.unwrap();
        }
    };
    write(&theirs, "a").await;
    assert!(!changes.has_changed().unwrap(), "nobody has looked");
    ours.poll_external_changes().await.unwrap();
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    ours.poll_external_changes().await.unwrap();
    assert!(!changes.has_changed().unwrap(), "nothing new");
    ours.write(|tx| Ok::<_, DbError>(tx.execute("DELETE FROM settings WHERE key = 'none'", [])?))
        .await
        .unwrap();
    assert!(!changes.has_changed().unwrap(), "a write that changed nothing is none");
    write(&ours, "b").await;
    assert!(changes.has_changed().unwrap());
}
