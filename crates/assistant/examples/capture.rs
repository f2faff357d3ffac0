//! Measures what listening to notifications costs: durable captures a second, memory after many, and a search.
//! Prints one figure a line; `scripts/bench` reads them.

use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;
use kai_assistant::access::Access;
use kai_assistant::clock::{Clock, SystemClock};
use kai_assistant::db::{self, Db, DbError};
use kai_assistant::home::{Home, StoreKey};
use kai_assistant::notifications::capture::Capture;
use kai_assistant::notifications::port::{Dismissing, Ear, Heard, Listener, Source};
use kai_assistant::notifications::record::{NotificationId, Post};
use kai_assistant::notifications::view::Wanted;
use kai_assistant::notifications::{repeats, store};
use kai_assistant::settings;
use kai_assistant::tool::Eyes;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// So many posts, by so many apps.
const POSTS: u32 = 100_000;
const APPS: u32 = 60;
const ALONE: u32 = 100;
const SEARCHES: u32 = 20;
const TEXT: &str =
    "Are we still on for tonight? I would be there at eight, at the usual place, and bring the book.";

fn main() -> Outcome<()> {
    let folder = std::env::args().nth(1).ok_or("Say in which folder the store shall be.")?;
    let key = StoreKey::random()?;
    let db = db::open(&Home::at(folder.as_ref())?, &key, kai_assistant::MIGRATIONS, Timestamp::UNIX_EPOCH)?;
    db.write_now(|tx| settings::store(tx, "notifications_enabled", "true"))?;
    tokio::runtime::Runtime::new()?.block_on(measure(&db))
}

async fn measure(db: &Db) -> Outcome<()> {
    let ear = listening(db);
    let (before, began) = (memory()?, now());
    for n in 0..POSTS {
        let app = format!("org.example.app{}", n % APPS);
        let receipt = ear.tell(post(&n.to_string(), &app, &format!("Person {}", n % 977))).await;
        if n + 1 == POSTS {
            // One writer writes in order: if the last is durable, all are.
            receipt.durable().await;
        }
    }
    say("captures_per_s", f64::from(POSTS) * 1_000.0 / since(began))?;
    say("captures_memory_growth_mib", memory()? - before)?;

    let began = now();
    for n in 0..ALONE {
        ear.tell(post(&format!("alone{n}"), "org.example.alone", "One")).await.durable().await;
    }
    say("one_capture_ms", since(began) / f64::from(ALONE))?;
    for (name, query) in [("search_found_ms", "person"), ("search_nothing_ms", "nowhere to be found")] {
        let began = now();
        for _ in 0..SEARCHES {
            search(db, query).await?;
        }
        say(name, since(began) / f64::from(SEARCHES))?;
    }
    Ok(())
}

/// An ear with a writer behind it.
fn listening(db: &Db) -> Ear {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let source = Arc::new(Source::new(Arc::new(Nobody)));
    let (ear, told) = Ear::new(Arc::clone(&source), Arc::clone(&clock));
    let capture = Capture { db: db.clone(), clock, source, repeats_sms: Arc::new(repeats::never) };
    tokio::spawn(async move { capture.write(told).await });
    ear
}

fn post(id: &str, app: &str, title: &str) -> Heard {
    Heard::Posted(Box::new(Post::new(NotificationId::new(id), app, title, TEXT)))
}

async fn search(db: &Db, query: &str) -> Outcome<()> {
    let (wanted, now) = (Wanted::new(query, None).ok_or("nothing to search for")?, now());
    let found = db.read(move |tx| store::newest(tx, now, 20, |record| wanted.is_in(record, Eyes::NoCodes)));
    found.await.map(drop).map_err(|error: DbError| error.into())
}

fn now() -> Timestamp {
    SystemClock.now()
}

/// Milliseconds since then.
fn since(began: Timestamp) -> f64 {
    now().duration_since(began).as_secs_f64() * 1_000.0
}

/// MiB of this process that are in memory now.
fn memory() -> Outcome<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib / 1_024.0)
}

fn say(name: &str, figure: f64) -> Outcome<()> {
    Ok(writeln!(std::io::stdout(), "{name} {figure:.3}")?)
}

/// Posts come from the measurement itself, so nobody need be listened to.
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
