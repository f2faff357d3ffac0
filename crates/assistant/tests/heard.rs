//! `kill -9` while notifications pour in: every one whose receipt was given is there afterwards, kept and queued alike.
//!
//! The one who listens is this very test program, started again.

#![cfg(feature = "notifications")]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::io::{BufRead, BufReader, Read, Write};
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kai_assistant::access::Access;
use kai_assistant::clock::{Clock, SystemClock};
use kai_assistant::db::{self, Db, DbError};
use kai_assistant::home::{Home, StoreKey};
use kai_assistant::notifications::capture::Capture;
use kai_assistant::notifications::port::{Dismissing, Ear, Heard, Listener, Source};
use kai_assistant::notifications::record::{NotificationId, Post, Record};
use kai_assistant::notifications::{QUEUE, repeats, store};
use kai_assistant::pending::{self, Waiting};
use kai_assistant::settings;

const ROUNDS: u64 = 60;
const LISTENER: &str = "KAI_TEST_IS_LISTENER";

fn open(home: &Home, key: &StoreKey) -> Db {
    db::open(home, key, kai_assistant::MIGRATIONS, Timestamp::UNIX_EPOCH).unwrap()
}

struct Nobody;

impl Listener for Nobody {
    fn name(&self) -> &'static str {
        "nobody"
    }
    fn access(&self) -> Pin<Box<dyn Future<Output = Access> + Send + '_>> {
        Box::pin(async { Access::Granted })
    }
    fn listen(&self, _: Ear) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }
    fn dismiss<'a>(&'a self, _: &'a NotificationId) -> Dismissing<'a> {
        Box::pin(async { Ok(()) })
    }
}

/// Not a test of its own: the one who listens, when started by the test below, which says so in the environment.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test talks to its own child this way")]
fn listener() {
    if std::env::var_os(LISTENER).is_none() {
        return;
    }
    let mut told = String::new();
    std::io::stdin().read_line(&mut told).unwrap();
    let words: Vec<&str> = told.split_whitespace().collect();
    let [key, round, folder] = words[..] else { return };
    let db = open(&Home::at(folder.as_ref()).unwrap(), &StoreKey::from_hex(key).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(pour(db, round));
}

/// Posts without end, in bursts of ten, and says which of them are durable.
async fn pour(db: Db, round: &str) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let source = Arc::new(Source::new(Arc::new(Nobody)));
    let (ear, told) = Ear::new(Arc::clone(&source), Arc::clone(&clock));
    let capture = Capture { db, clock, source, repeats_sms: Arc::new(repeats::never) };
    tokio::spawn(async move { capture.write(told).await });
    for n in 0_u64.. {
        let mut receipts = vec![];
        for k in 0..10 {
            // Two keys each: every second post is an update of the one before.
            let id = NotificationId::new(&format!("{round}-{}", k / 2));
            let post = Post::new(id, &format!("app{k}"), round, &format!("{}", n * 10 + k));
            receipts.push((n * 10 + k, ear.tell(Heard::Posted(Box::new(post))).await));
        }
        for (number, receipt) in receipts {
            assert!(receipt.durable().await);
            let mut say = std::io::stdout();
            writeln!(say, "durable {number}").unwrap();
            say.flush().unwrap();
        }
    }
}

/// One life of the listener. Returns the last post that it knew to be durable.
fn live_and_die(folder: &str, key: &StoreKey, round: u64) -> Option<u64> {
    let mut listener = Command::new(std::env::current_exe().unwrap())
        .args(["listener", "--exact", "--nocapture", "--quiet"])
        .env(LISTENER, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(listener.stdin.take().unwrap(), "{} {round} {folder}", *key.hex()).unwrap();
    let mut heard = BufReader::new(listener.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("durable") {
        line.clear();
        assert!(heard.read_line(&mut line).unwrap() > 0, "the listener ended by itself");
    }
    std::thread::sleep(Duration::from_micros((round * 7919) % 20_000));
    listener.kill().unwrap();
    listener.wait().unwrap();
    let mut rest = String::new();
    heard.read_to_string(&mut rest).unwrap();
    let heard = line + &rest;
    // The last line may be cut off by the kill; only whole ones count.
    let whole = heard.rsplit_once('\n').map(|(whole, _)| whole).unwrap_or_default();
    whole.lines().filter_map(|line| line.strip_prefix("durable ")?.parse().ok()).max()
}

#[tokio::test]
async fn every_receipt_holds_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path()).unwrap();
    let key = StoreKey::random().unwrap();
    open(&home, &key).write_now(|tx| settings::store(tx, "notifications_enabled", "true")).unwrap();
    for round in 0..ROUNDS {
        let last = live_and_die(folder.path().to_str().unwrap(), &key, round).unwrap();
        let now = SystemClock.now();
        let read = open(&home, &key);
        let (kept, queued) = read
            .read(move |tx| {
                let of_round = |record: &Record| record.title.as_written() == round.to_string();
                let kept = store::newest(tx, now, usize::MAX, of_round)?;
                let waiting: Vec<Waiting<Record>> = pending::waiting(tx, QUEUE)?;
                Ok::<_, DbError>((
                    kept,
                    waiting.into_iter().map(|w| w.entry).filter(of_round).collect::<Vec<_>>(),
                ))
            })
            .await
            .unwrap();
        for records in [&kept, &queued] {
            let newest = records.iter().filter_map(|r| r.text.as_written().parse::<u64>().ok()).max();
            assert!(newest >= Some(last), "round {round}: post {last} was durable, the newest is {newest:?}");
        }
        let text = |records: &[Record]| {
            let mut texts: Vec<(String, u32)> =
                records.iter().map(|r| (r.text.as_written().to_owned(), r.revision)).collect();
            texts.sort();
            texts
        };
        assert_eq!(text(&kept), text(&queued), "round {round}: kept and queued belong together");
    }
}
