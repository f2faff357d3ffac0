//! Measures what archiving a paired phone's messages costs: filling, memory, searching, listing, and a burst of news.
//! Prints one figure a line; `scripts/bench` reads them.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kai_assistant::clock::{Clock, SystemClock};
use kai_assistant::db::{self, Db, DbError};
use kai_assistant::home::{Home, StoreKey};
use kai_assistant::inbox;
use kai_assistant::pending;
use kai_assistant::phones::Switch;
use kai_assistant::phones::port::{
    Ask, Folder, FromPhone, MessageKind, PhoneLink, PhoneMessage, Reaching, ThreadId,
};
use kai_assistant::phones::store::{NewPhone, begin_reading, pair, set};
use kai_assistant::settings::{self, Values};
use kai_assistant::sms::store::{QUEUE, Queued};
use kai_assistant::sms::{Gather, Received, SearchSms, SmsSource, phone_state};
use kai_assistant::source::SourceId;
use kai_assistant::tool::{Run, execute};
use kai_assistant::untrusted::Untrusted;
use tokio::sync::mpsc::{self, Sender};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const THREADS: i64 = 500;
const PER_THREAD: i64 = 200;
const BURST: i64 = 5_000;
const SEARCHES: usize = 200;
/// How many pages of the inbox are read.
const PAGES: usize = 1_000;
const WORDS: &[&str] = &[
    "tonight", "train", "book", "dinner", "station", "later", "thanks", "meeting", "coffee", "birthday",
    "parcel", "garden", "weather", "ticket", "doctor", "school", "bicycle", "market", "holiday", "window",
];

fn main() -> Outcome<()> {
    let folder = std::env::args().nth(1).ok_or("Say in which folder the store shall be.")?;
    let key = StoreKey::random()?;
    let db = db::open(&Home::at(folder.as_ref())?, &key, kai_assistant::MIGRATIONS, Timestamp::UNIX_EPOCH)?;
    let began = now();
    let source = db.write_now(|tx| {
        settings::store(tx, "sms_enabled", "true")?;
        let new = NewPhone { device: "d".to_owned(), name: "P".to_owned(), certificate: vec![], protocol: 8 };
        let source = pair(tx, &new, began)?.source;
        set(tx, source, Switch::ReadSms, true)?;
        begin_reading(tx, source, began)?;
        Ok::<_, DbError>(source)
    })?;
    tokio::runtime::Runtime::new()?.block_on(measure(&db, source, began))
}

async fn measure(db: &Db, source: SourceId, began: Timestamp) -> Outcome<()> {
    let (tells, told) = mpsc::channel(256);
    let phone = Arc::new(Phone { tells: tells.clone(), newest: began.as_millisecond() - 1_000 });
    let gather = Gather::new(db.clone(), Arc::new(SystemClock), source, phone.clone());
    tokio::spawn(gather.run(told));
    let (before, begun) = (memory()?, now());
    tells.send(FromPhone::Connected).await?;
    let most = until(db, source, u64::try_from(THREADS * PER_THREAD)?).await?;
    say("fill_s", since(begun) / 1_000.0)?;
    say("memory_growth_mib", most - before)?;
    say("store_mib", size(db).await?)?;
    search(db).await?;
    list(db).await?;
    burst(db, source, &phone).await
}

/// Waits until so many messages are archived. Returns the most memory that was used meanwhile.
async fn until(db: &Db, source: SourceId, messages: u64) -> Outcome<f64> {
    let mut most = memory()?;
    loop {
        let state = db.read(move |tx| phone_state(tx, source, now())).await;
        let state = state.map_err(|error: DbError| error)?;
        most = most.max(memory()?);
        if state.messages >= messages && state.done == state.threads {
            return Ok(most);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn size(db: &Db) -> Outcome<f64> {
    let bytes = db.read(|tx| {
        let sql = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
        Ok::<i64, DbError>(tx.query_row(sql, [], |row| row.get(0))?)
    });
    Ok(i32::try_from(bytes.await? >> 10).map(f64::from)? / 1_024.0)
}

async fn search(db: &Db) -> Outcome<()> {
    let tool = SearchSms { received: Received::new(db.clone(), None), clock: Arc::new(SystemClock) };
    let mut took = vec![];
    for n in 0..SEARCHES {
        let (one, other) = (WORDS[n % WORDS.len()], WORDS[n / WORDS.len() % WORDS.len()]);
        // Words, beginnings of words, numbers, and what nobody ever wrote.
        let query = match n % 5 {
            0 => one.to_owned(),
            1 => format!("{one} {other}"),
            2 => one.chars().take(1 + n % 3).collect(),
            3 => format!("0{:04}", n * 7),
            _ => format!("{one} heron"),
        };
        let arguments = serde_json::json!({ "query": query }).to_string();
        let begun = now();
        let result = execute(Ok(&tool), &Values::default(), &arguments, &Run::BY_HAND).await;
        took.push(since(begun));
        if !result.success {
            return Err(result.text.into());
        }
    }
    took.sort_by(f64::total_cmp);
    say("search_median_ms", took[SEARCHES / 2])?;
    say("search_p95_ms", took[SEARCHES * 95 / 100])
}

/// The inbox page by page: the first one, and the slowest of very many.
async fn list(db: &Db) -> Outcome<()> {
    let senders = Arc::default();
    let sources = inbox::Sources::new(vec![Box::new(SmsSource { shelf: None, senders })]);
    let (mut wanted, mut took, before) = (inbox::Wanted::all(now()), vec![], memory()?);
    while took.len() < PAGES {
        let (sources, place, begun) = (sources.clone(), wanted.clone(), now());
        let page = db.read(move |tx| sources.page(tx, &place, inbox::PAGE)).await.map_err(|error: DbError| error)?;
        took.push(since(begun));
        wanted.before = page.next();
        if wanted.before.is_none() {
            return Err("The inbox has too few pages.".into());
        }
    }
    say("inbox_first_ms", took[0])?;
    say("inbox_slowest_ms", took.into_iter().fold(0.0, f64::max))?;
    say("inbox_memory_growth_mib", memory()? - before)
}

/// News, each in a packet of its own that repeats the one before, as a phone sends them.
async fn burst(db: &Db, source: SourceId, phone: &Phone) -> Outcome<()> {
    let begun = now();
    for n in 1..=BURST {
        let list = vec![phone.message(7, PER_THREAD + n), phone.message(7, PER_THREAD + n - 1)];
        phone.tells.send(FromPhone::Messages(list)).await?;
    }
    until(db, source, u64::try_from(THREADS * PER_THREAD + BURST)?).await?;
    say("burst_s", since(begun) / 1_000.0)?;
    let accounts = db.read(|tx| {
        let dropped: u32 = pending::dropped(tx, QUEUE)?.iter().map(|(_, count)| count).sum();
        Ok::<_, DbError>((pending::count(tx, QUEUE)?, dropped, pending::waiting::<Queued>(tx, QUEUE)?.len()))
    });
    let (waiting, dropped, _) = accounts.await?;
    say("burst_accounted", f64::from(waiting + dropped))
}

/// A phone that makes its messages up as it is asked for them, so that it takes no memory.
struct Phone {
    tells: Sender<FromPhone>,
    /// Epoch milliseconds of the newest message of the last conversation.
    newest: i64,
}

impl Phone {
    /// Message `n` of a conversation, counted from 1.
    fn message(&self, thread: i64, n: i64) -> PhoneMessage {
        let word = |k: i64| WORDS[usize::try_from((n * 31 + thread * 17 + k * 7) % 20).unwrap_or_default()];
        let body = format!(
            "Number {}: {} and {} before the {}, or call me when the {} is late again.",
            n * THREADS + thread,
            word(1),
            word(2),
            word(3),
            word(4)
        );
        PhoneMessage {
            kind: MessageKind::Sms,
            native_id: n * THREADS + thread,
            thread: ThreadId(thread),
            folder: if n % 3 == 0 { Folder::Sent } else { Folder::Inbox },
            read: true,
            date: Timestamp::from_millisecond(self.date(thread, n)).unwrap_or_default(),
            address: Untrusted::new(format!("+1555{:07}", thread * 13)),
            body: Untrusted::new(body),
        }
    }

    /// A message a minute, round the conversations.
    fn date(&self, thread: i64, n: i64) -> i64 {
        self.newest - ((PER_THREAD - n) * THREADS + (THREADS - 1 - thread)) * 60_000
    }

    fn page(&self, thread: i64, until: Option<Timestamp>, count: u32) -> Vec<PhoneMessage> {
        let until = until.map_or(i64::MAX, Timestamp::as_millisecond);
        let older = (1..=PER_THREAD).rev().filter(|n| self.date(thread, *n) <= until);
        older.take(usize::try_from(count).unwrap_or(usize::MAX)).map(|n| self.message(thread, n)).collect()
    }
}

impl PhoneLink for Phone {
    fn is_connected(&self) -> bool {
        true
    }

    fn ask(&self, ask: Ask) -> Reaching<'_> {
        let tells = self.tells.clone();
        let answers: Vec<Vec<PhoneMessage>> = match ask {
            Ask::Threads => (0..THREADS).rev().map(|thread| self.page(thread, None, 1)).collect(),
            Ask::Thread { thread, until, count } => vec![self.page(thread.0, until, count)],
            Ask::ContactList | Ask::Contacts { .. } => vec![],
        };
        // The answers come on their own, as they do over a network.
        tokio::spawn(async move {
            for list in answers {
                drop(tells.send(FromPhone::Messages(list)).await);
            }
        });
        Box::pin(std::future::ready(Ok(())))
    }
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
