//! Fills an empty home with the data of a life, through the same doors as real data: a paired phone that answers from memory, a
//! mail server that does, and the stores of chats, memories and the ledger. `life HOME PERCENT` for `scripts/bench life`;
//! at 100 percent a million SMS, 200,000 mails, 100,000 chat messages, 1,000 memories and 50,000 records of the ledger.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::agent::conversation;
use kai_assistant::clock::{Clock, SystemClock};
use kai_assistant::db::{self, Db, DbError};
use kai_assistant::email::account::{Account, Credentials, Security, Server};
use kai_assistant::email::poll::Poller;
use kai_assistant::email::port::{
    Asking, Found, Header, Letter, Look, MailServers, Mailbox, Mark, Trouble, Which, Why,
};
use kai_assistant::email::store::{NewAccount, add};
use kai_assistant::home::{Home, Unlock};
use kai_assistant::ledger::{self, Held, Record};
use kai_assistant::memory::{Category, MemoryKey};
use kai_assistant::outbox::door::{ApprovedMail, SendError, Sending};
use kai_assistant::outbox::mail::Mail;
use kai_assistant::phones::Switch;
use kai_assistant::phones::port::{
    Ask, Folder, FromPhone, MessageKind, MessageList, PhoneLink, PhoneMessage, Reaching, ThreadId,
};
use kai_assistant::phones::store::{NewPhone, begin_reading, pair, set};
use kai_assistant::secret::Secret;
use kai_assistant::settings;
use kai_assistant::sms::{Gather, phone_state};
use kai_assistant::source::SourceId;
use kai_assistant::untrusted::Untrusted;
use kai_assistant::{memory, pending};
use kai_llm::{Message, Usage};
use tokio::sync::mpsc;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const SMS: i64 = 1_000_000;
const THREADS: i64 = 1_000;
const MAILS: u32 = 200_000;
const CHAT_MESSAGES: u32 = 100_000;
const PER_CHAT: u32 = 100;
const MEMORIES: u32 = 1_000;
const RECORDS: u32 = 50_000;
/// How many of what is written without a port are written in one transaction.
const AT_ONCE: u32 = 1_000;
/// The most frequent words, the most frequent first. Then come [`WORDS`], for which `scripts/bench` searches.
const FREQUENT: &[&str] = &[
    "the", "to", "and", "you", "it", "is", "for", "that", "have", "on", "at", "we", "are", "be", "with",
    "can", "not", "this", "will", "from",
];
/// How many different words there are.
const VOCABULARY: f64 = 5_000.0;
const WORDS: &[&str] = &[
    "tonight", "train", "book", "dinner", "station", "later", "thanks", "meeting", "coffee", "birthday",
    "parcel", "garden", "weather", "ticket", "doctor", "school", "bicycle", "market", "holiday", "window",
];

fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let (Some(home), Some(percent)) = (args.next(), args.next()) else {
        return Err("usage: life HOME PERCENT".into());
    };
    let percent: u32 = percent.parse()?;
    let home = Home::at(home.as_ref())?;
    let (_, key) = home.unlock(&Unlock { keyring: None, passphrase: &|| Ok(None) })?;
    let db = db::open(&home, &key, kai_assistant::MIGRATIONS, SystemClock.now())?;
    tokio::runtime::Runtime::new()?.block_on(fill(&db, percent))
}

async fn fill(db: &Db, percent: u32) -> Outcome<()> {
    messages(db, i64::from(percent)).await?;
    mails(db, MAILS / 100 * percent).await?;
    chats(db, CHAT_MESSAGES / 100 * percent)?;
    memories(db, MEMORIES / 100 * percent)?;
    records(db, RECORDS / 100 * percent)?;
    // As after a heartbeat: nothing waits.
    db.write_now(|tx| {
        pending::clear(tx, kai_assistant::sms::queue::QUEUE)?;
        pending::clear(tx, kai_assistant::email::queue::QUEUE).map(drop)
    })
    .map_err(|error: DbError| error)?;
    Ok(db.checkpoint().await?)
}

/// A sentence that differs from every other. Its words are as frequent as those of people: the second half as often as
/// the first, the third a third as often, and so on.
fn text(n: i64) -> String {
    let mut dice = n.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    let mut word = || {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        let share = f64::from(u32::try_from(dice >> 32).unwrap_or_default()) / f64::from(u32::MAX);
        of_rank(VOCABULARY.powf(share))
    };
    let words: Vec<String> = (0..12).map(|_| word()).collect();
    format!("Number {n}: {}.", words.join(" "))
}

/// The word of a rank, which begins with 1.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number of at least 1")]
fn of_rank(rank: f64) -> String {
    let rank = (rank as usize).saturating_sub(1);
    let real = FREQUENT.iter().chain(WORDS).nth(rank).map(|word| (*word).to_owned());
    real.unwrap_or_else(|| {
        let syllable = |n: usize| ["ka", "lo", "mi", "ru", "te", "no", "sa", "vi", "pe", "du"][n % 10];
        [syllable(rank), syllable(rank / 10), syllable(rank / 100), syllable(rank / 1_000)].concat()
    })
}

// SMS

/// A phone that answers from memory. Its conversations have equally many messages, and the dates of all of them lie evenly
/// in the last 300 days.
struct Phone {
    now: i64,
    per_thread: i64,
    tell: mpsc::Sender<FromPhone>,
}

impl Phone {
    /// The message of a conversation, counted from the newest.
    fn message(&self, thread: i64, n: i64) -> PhoneMessage {
        let place = n * THREADS + thread;
        let apart = 300 * 86_400_000 / (self.per_thread * THREADS);
        PhoneMessage {
            kind: MessageKind::Sms,
            native_id: place + 1,
            thread: ThreadId(thread),
            folder: if n % 3 == 1 { Folder::Sent } else { Folder::Inbox },
            read: true,
            date: Timestamp::from_millisecond(self.now - 60_000 - place * apart).unwrap_or_default(),
            address: Untrusted::new(format!("+1555{:07}", thread * 13)),
            body: Untrusted::new(text(place)),
        }
    }

    fn answer(&self, ask: &Ask) -> Vec<FromPhone> {
        let list = |messages| FromPhone::Messages(MessageList { messages, unsent: vec![] });
        match ask {
            Ask::Threads => (0..THREADS).map(|thread| list(vec![self.message(thread, 0)])).collect(),
            Ask::Thread { thread, until, count } => {
                let until = until.unwrap_or(Timestamp::MAX);
                let all = (0..self.per_thread).map(|n| self.message(thread.0, n));
                let asked =
                    all.filter(|message| message.date <= until).take(usize::try_from(*count).unwrap_or(0));
                vec![list(asked.collect())]
            }
            Ask::ContactList | Ask::Contacts { .. } => vec![],
        }
    }
}

impl PhoneLink for Phone {
    fn is_connected(&self) -> bool {
        true
    }

    fn ask(&self, ask: Ask) -> Reaching<'_> {
        Box::pin(async move {
            let (told, tell) = (self.answer(&ask), self.tell.clone());
            // On its own: whoever asks may be the one who has to take the answer.
            tokio::spawn(async move {
                for one in told {
                    let _ = tell.send(one).await;
                }
            });
            Ok(())
        })
    }
}

async fn messages(db: &Db, percent: i64) -> Outcome<()> {
    let (per_thread, now) = (SMS / THREADS * percent / 100, SystemClock.now());
    let source = db.write(move |tx| {
        settings::store(tx, "sms_enabled", "true")?;
        let new = NewPhone {
            device: "life".to_owned(),
            name: "Pixel".to_owned(),
            certificate: vec![1],
            protocol: 8,
        };
        let source = pair(tx, &new, now)?.source;
        set(tx, source, Switch::ReadSms, true)?;
        begin_reading(tx, source, now)?;
        Ok::<_, DbError>(source)
    });
    let source = source.await?;
    let (tell, told) = mpsc::channel(256);
    let phone = Arc::new(Phone { now: now.as_millisecond(), per_thread, tell: tell.clone() });
    let gathering = tokio::spawn(Gather::new(db.clone(), Arc::new(SystemClock), source, phone).run(told));
    tell.send(FromPhone::Connected).await?;
    let all = u64::try_from(per_thread * THREADS)?;
    while archived(db, source).await? < all {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    gathering.abort();
    Ok(())
}

async fn archived(db: &Db, source: SourceId) -> Outcome<u64> {
    let state = db.read(move |tx| phone_state(tx, source, SystemClock.now())).await;
    Ok(state.map_err(|error: DbError| error)?.messages)
}

// Mail

/// A mail server that answers from memory. Nothing that sends works here.
struct Post {
    now: i64,
    mails: u32,
}

impl Post {
    fn header(&self, uid: u32) -> Header {
        let (place, apart) = (i64::from(self.mails - uid), 80 * 86_400_000 / i64::from(self.mails));
        let who = uid % 4_000;
        Header {
            uid,
            from: Mailbox {
                name: Untrusted::new(format!("Person {who}")),
                address: Untrusted::new(format!("person{who}@post.test")),
            },
            subject: Untrusted::new(format!(
                "About the {}",
                WORDS[usize::try_from(uid % 20).unwrap_or_default()]
            )),
            received: Timestamp::from_millisecond(self.now - 30_000 - place * apart).unwrap_or_default(),
            beginning: Untrusted::new(text(i64::from(uid)).repeat(3)),
            bulk: uid.is_multiple_of(3),
            seen: true,
        }
    }
}

fn nothing<T: Send + 'static>(account: &Account) -> Asking<'_, T> {
    let host = account.imap.host.clone();
    Box::pin(async { Err(Trouble { which: Which::Imap, host, why: Why::Broken }) })
}

impl MailServers for Post {
    fn check<'a>(&'a self, account: &'a Account) -> Asking<'a, ()> {
        nothing(account)
    }

    fn newer<'a>(&'a self, _: &'a Account, mark: Option<Mark>, most: usize) -> Asking<'a, Look> {
        Box::pin(async move {
            let Some(mark) = mark else {
                return Ok(Look { mark: Mark { validity: 1, uid: 0 }, mails: vec![], more: false });
            };
            let mails: Vec<Header> =
                (mark.uid + 1..=self.mails).take(most).map(|uid| self.header(uid)).collect();
            let uid = mails.last().map_or(mark.uid, |last| last.uid);
            Ok(Look { mark: Mark { validity: 1, uid }, mails, more: uid < self.mails })
        })
    }

    fn read<'a>(&'a self, account: &'a Account, _: Mark) -> Asking<'a, Option<Letter>> {
        nothing(account)
    }

    fn search<'a>(&'a self, account: &'a Account, _: &'a str, _: usize) -> Asking<'a, Found> {
        nothing(account)
    }

    fn watch<'a>(&'a self, account: &'a Account, _: &'a (dyn Fn() + Send + Sync)) -> Asking<'a, ()> {
        nothing(account)
    }

    fn send<'a>(&'a self, _: &'a Account, _: ApprovedMail) -> Sending<'a> {
        Box::pin(async { Err(SendError::NotSent(kai_words::said::draft_reason_sending_off())) })
    }

    fn keep_copy<'a>(&'a self, account: &'a Account, _: &'a Mail) -> Asking<'a, ()> {
        nothing(account)
    }
}

async fn mails(db: &Db, mails: u32) -> Outcome<()> {
    let now = SystemClock.now();
    // Nobody listens there: the daemon that is measured finds the server away.
    let server = || Server { host: "127.0.0.1".to_owned(), port: 9, security: Security::Plain };
    let new = NewAccount {
        address: "alice@post.test".to_owned(),
        user: "alice".to_owned(),
        imap: server(),
        smtp: server(),
        credentials: Credentials::Password(Secret::new("secret")),
    };
    let account = db.write_now(|tx| add(tx, &new, now)).map_err(|why| why.to_string())?;
    let servers = Arc::new(Post { now: now.as_millisecond(), mails });
    let looker = Poller { db: db.clone(), clock: Arc::new(SystemClock), servers };
    loop {
        let polled = looker.poll(account.source).await.map_err(|why| why.said().to_string())?;
        if !polled.seeded && !polled.more {
            break;
        }
    }
    let mut took = vec![];
    for _ in 0..21 {
        let begun = SystemClock.now();
        looker.poll(account.source).await.map_err(|why| why.said().to_string())?;
        took.push(SystemClock.now().duration_since(begun));
    }
    took.sort_unstable();
    Ok(writeln!(std::io::stdout(), "poll_nothing_new_ms {:.3}", took[10].as_secs_f64() * 1_000.0)?)
}

// What has no port

/// Writes so many of something, some at once, each with its number and its time within the last 200 days.
fn write(
    db: &Db,
    count: u32,
    one: impl Fn(&rusqlite::Transaction<'_>, u32, Timestamp) -> Result<(), DbError>,
) -> Outcome<()> {
    let begin = SystemClock.now() - SignedDuration::from_hours(200 * 24);
    for first in (0..count).step_by(usize::try_from(AT_ONCE)?) {
        db.write_now(|tx| {
            (first..count.min(first + AT_ONCE)).try_for_each(|n| {
                let minutes = i64::from(n) * 200 * 24 * 60 / i64::from(count);
                one(tx, n, begin.checked_add(SignedDuration::from_mins(minutes)).unwrap_or(begin))
            })
        })
        .map_err(|error: DbError| error)?;
    }
    Ok(())
}

fn chats(db: &Db, messages: u32) -> Outcome<()> {
    write(db, messages / PER_CHAT, |tx, chat, at| {
        let id = conversation::create(tx, at)?;
        for n in (0..PER_CHAT).step_by(2).map(|n| i64::from(chat * PER_CHAT + n)) {
            conversation::append(tx, id, &[Message::user(text(n))], None, at)?;
            let answer = Message::Assistant { text: text(n + 1).repeat(4), calls: vec![], signature: None };
            conversation::append(tx, id, &[answer], Some(("model", Usage { input: 1_000, output: 80 })), at)?;
        }
        Ok(())
    })
}

fn memories(db: &Db, memories: u32) -> Outcome<()> {
    write(db, memories, |tx, n, at| {
        let Ok(key) = MemoryKey::new(&format!("thing-{n}")) else { return Ok(()) };
        memory::store::keep(
            tx,
            &key,
            &text(i64::from(n)),
            Category::General,
            memory::store::Standing::Confirmed,
            at,
        )
        .map(drop)
    })
}

/// One record in five is a request, whose bytes are kept too.
fn records(db: &Db, records: u32) -> Outcome<()> {
    write(db, records, |tx, n, at| {
        if n.is_multiple_of(5) {
            let body = (0..60).map(|line| text(i64::from(n + line))).collect::<Vec<_>>().join("\n");
            return ledger::request(tx, 1, "model", body.as_bytes(), Held::default(), at);
        }
        let tool = "search_sms".to_owned();
        let record = Record::ToolResult { conversation: 1, tool, success: true, result_chars: 400 };
        ledger::append(tx, &record, at)
    })
}
