//! `kill -9` while a writer writes: every row it was told is committed is there, and no half one.
//!
//! The writer is this very test program, started again.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use jiff::Timestamp;
use kai_assistant::db::{self, Db, DbError, Migration};
use kai_assistant::home::{Home, StoreKey};

const ROUNDS: u64 = 200;
const WRITER: &str = "KAI_TEST_IS_WRITER";
/// Two rows that belong together: a half write would leave one without the other.
const TABLES: &[Migration] = &[Migration {
    name: "kill/1",
    sql: "CREATE TABLE left_half (n INTEGER PRIMARY KEY, text TEXT NOT NULL);
          CREATE TABLE right_half (n INTEGER PRIMARY KEY, text TEXT NOT NULL);",
}];

fn open(home: &Home, key: &StoreKey) -> Db {
    db::open(home, key, TABLES, Timestamp::UNIX_EPOCH).unwrap()
}

/// Not a test of its own: the writer, when started by the test below, which says so in the environment.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test talks to its own child this way")]
fn writer() {
    if std::env::var_os(WRITER).is_none() {
        return;
    }
    let mut told = String::new();
    std::io::stdin().read_line(&mut told).unwrap();
    let Some((key, folder)) = told.trim_end().split_once(' ') else { return };
    let db = open(&Home::at(folder.as_ref()).unwrap(), &StoreKey::from_hex(key).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut say = std::io::stdout();
    loop {
        let n: i64 = runtime.block_on(db.write(write_pair)).unwrap();
        writeln!(say, "committed {n}").unwrap();
        say.flush().unwrap();
    }
}

fn write_pair(tx: &rusqlite::Transaction<'_>) -> Result<i64, DbError> {
    let sql = "INSERT INTO left_half (text) VALUES (hex(randomblob(300))) RETURNING n";
    let n: i64 = tx.query_row(sql, [], |row| row.get(0))?;
    tx.execute("INSERT INTO right_half SELECT n, text FROM left_half WHERE n = ?1", [n])?;
    Ok(n)
}

/// One life of the writer: killed `patience` after its first commit, or, if `early`, after its start, which may
/// fall into opening and recovering. Returns the last commit it told of.
fn live_and_die(folder: &str, key: &StoreKey, patience: Duration, early: bool) -> Option<i64> {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["writer", "--exact", "--nocapture", "--quiet"])
        .env(WRITER, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(writer.stdin.take().unwrap(), "{} {folder}", *key.hex()).unwrap();
    let mut heard = BufReader::new(writer.stdout.take().unwrap());
    let mut line = String::new();
    while !early && !line.starts_with("committed") {
        line.clear();
        assert!(heard.read_line(&mut line).unwrap() > 0, "the writer ended by itself");
    }
    std::thread::sleep(patience);
    writer.kill().unwrap();
    writer.wait().unwrap();
    let mut rest = String::new();
    heard.read_to_string(&mut rest).unwrap();
    // The last line may be cut off by the kill; only whole ones count.
    let heard = line + &rest;
    let whole = heard.rsplit_once('\n').map(|(whole, _)| whole).unwrap_or_default();
    whole.lines().filter_map(|line| line.strip_prefix("committed ")?.parse().ok()).max()
}

#[tokio::test]
async fn every_committed_row_survives_and_no_half_one() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path()).unwrap();
    let key = StoreKey::random().unwrap();
    drop(open(&home, &key));
    let mut last = 0;
    for round in 0..ROUNDS {
        // From at once to a few commits later, so that the kill falls on every part of a write.
        let patience = Duration::from_micros((round * 7919) % 20_000);
        let told = live_and_die(folder.path().to_str().unwrap(), &key, patience, round % 4 == 0);
        last = told.unwrap_or(last);
        let db = open(&home, &key);
        let (rows, highest, halves): (i64, i64, i64) = db.read(count).await.unwrap();
        assert!(highest >= last, "round {round}: row {last} was committed and is gone");
        assert_eq!(rows, highest, "round {round}: a row is missing in between");
        assert_eq!(halves, 0, "round {round}: half a pair");
        if round % 20 == 0 {
            assert_eq!(db.damage().await.unwrap(), None, "round {round}");
        }
    }
}

fn count(tx: &rusqlite::Transaction<'_>) -> Result<(i64, i64, i64), DbError> {
    let sql = "SELECT count(*), coalesce(max(l.n), 0), count(*) FILTER (WHERE r.text IS NOT l.text)
               FROM left_half l FULL JOIN right_half r USING (n)";
    Ok(tx.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?)
}
