//! Measures what a paired phone with 100,000 messages costs: filling the archive, memory, searching, listing,
//! and a burst of news. The phone is a process of its own, and everything travels over a real connection on this machine. Prints one
//! figure a line; `scripts/bench` reads them. Run it with `--release`, and with a folder for the store.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::clock::{Clock, SystemClock};
use kai_assistant::db::{self, Db, DbError};
use kai_assistant::home::{Home, StoreKey};
use kai_assistant::inbox;
use kai_assistant::pending;
use kai_assistant::phones::store::{NewPhone, begin_reading, pair, set};
use kai_assistant::phones::{Switch, Switches};
use kai_assistant::settings;
use kai_assistant::sms::archive::View;
use kai_assistant::sms::queue::QUEUE;
use kai_assistant::sms::search::Wanted;
use kai_assistant::sms::{Gather, Received, SmsSource, phone_state};
use kai_assistant::source::SourceId;
use kai_assistant::tool::Eyes;
use kai_bridges::kdeconnect::{
    Capabilities, Credentials, DeviceId, DeviceKind, DeviceName, Endpoint, Event, Folder, Identity, Limits,
    OpenError, PairedPhone, PhoneLimits, Pin, Protocol, Reach, Setup, Strangers, Use,
};
use kai_bridges::simulated::{Handset, HandsetSetup};
use tokio::sync::mpsc;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const THREADS: i64 = 500;
const PER_THREAD: i64 = 200;
const MESSAGES: u64 = 100_000;
const BURST: u64 = 5_000;
const SEARCHES: usize = 200;
/// The most that a search returns.
const MOST: usize = 20;
/// How often it is looked how far it is. Each look counts what is unread, so more looks would be measured too.
const LOOK: Duration = Duration::from_millis(250);
/// How many pages of the inbox are read.
const PAGES: usize = 1_000;
const WORDS: &[&str] = &[
    "tonight", "train", "book", "dinner", "station", "later", "thanks", "meeting", "coffee", "birthday",
    "parcel", "garden", "weather", "ticket", "doctor", "school", "bicycle", "market", "holiday", "window",
];

fn main() -> Outcome<()> {
    let role = std::env::args().nth(1).ok_or("Say in which folder the store shall be.")?;
    let runtime = tokio::runtime::Runtime::new()?;
    if role == "phone" { runtime.block_on(be_the_phone()) } else { runtime.block_on(measure(&role)) }
}

/// The other process: a phone with many messages. Every line that it reads makes it receive a burst of new ones.
async fn be_the_phone() -> Outcome<()> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let setup = HandsetSetup::local("Pixel", Arc::clone(&clock)).map_err(|why| not_opened(&why))?;
    let handset =
        Handset::start(HandsetSetup { limits: quick(), ..setup }).await.map_err(|why| not_opened(&why))?;
    let newest = clock.now();
    for n in 1..=PER_THREAD {
        for thread in 0..THREADS {
            // A message a minute, round the conversations.
            let minutes = (PER_THREAD - n) * THREADS + (THREADS - 1 - thread) + 1;
            let date = newest.checked_sub(SignedDuration::from_mins(minutes))?;
            let folder = if n % 3 == 0 { Folder::Sent } else { Folder::Inbox };
            let number = format!("+1555{:07}", thread * 13);
            handset.file(folder, &[&number], &text(thread, n), date).await;
        }
    }
    let mut out = std::io::stdout();
    writeln!(out, "{}", handset.address().ok_or("it listens nowhere")?)?;
    for line in std::io::stdin().lock().lines() {
        line?;
        for n in 1..=i64::try_from(BURST)? {
            handset.receive("+15550000091", &text(7, PER_THREAD + n), clock.now()).await;
        }
    }
    Ok(())
}

fn text(thread: i64, n: i64) -> String {
    let word = |k: i64| WORDS[usize::try_from((n * 31 + thread * 17 + k * 7) % 20).unwrap_or_default()];
    let (number, [one, two, three, four]) = (n * THREADS + thread, [word(1), word(2), word(3), word(4)]);
    format!("Number {number}: {one} and {two} before the {three}, or call me when the {four} is late again.")
}

/// A phone in another process. It ends with this one.
struct Phone(Child);

impl Drop for Phone {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Phone {
    fn start() -> Outcome<(Self, SocketAddr)> {
        let mut phone = Command::new(std::env::current_exe()?);
        let child = phone.arg("phone").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut phone = Self(child);
        let mut line = String::new();
        BufReader::new(phone.0.stdout.as_mut().ok_or("no output")?).read_line(&mut line)?;
        Ok((phone, line.trim().parse()?))
    }

    fn receives_a_burst(&mut self) -> Outcome<()> {
        Ok(writeln!(self.0.stdin.as_mut().ok_or("no input")?)?)
    }
}

fn not_opened(why: &OpenError) -> String {
    format!("{why:?}")
}

/// Limits for two devices on one machine that connect once.
fn quick() -> Limits {
    Limits { between_connections: Duration::ZERO, ..Limits::default() }
}

async fn measure(folder: &str) -> Outcome<()> {
    let key = StoreKey::random()?;
    let db = db::open(&Home::at(folder.as_ref())?, &key, kai_assistant::MIGRATIONS, Timestamp::UNIX_EPOCH)?;
    let (mut phone, address) = Phone::start()?;
    let (endpoint, events, pin) = paired(address).await?;
    let source = kept(&db, &pin).await?;
    let (before, begun) = (memory()?, now());
    work_with(&db, source, pin.device, endpoint, events)?;
    let most = until(&db, source, MESSAGES).await?;
    say("fill_s", since(begun) / 1_000.0)?;
    say("memory_growth_mib", most - before)?;
    say("store_mib", size(&db).await?)?;
    search(&db, View::Model(Eyes::NoCodes), "search").await?;
    search(&db, View::Everything, "own_search").await?;
    list(&db).await?;
    let begun = now();
    phone.receives_a_burst()?;
    until(&db, source, MESSAGES + BURST).await?;
    say("burst_s", since(begun) / 1_000.0)?;
    let accounted = db.read(|tx| {
        let dropped: u32 = pending::dropped(tx, QUEUE)?.iter().map(|(_, count)| count).sum();
        Ok::<_, DbError>(pending::count(tx, QUEUE)? + dropped)
    });
    say("burst_accounted", f64::from(accounted.await?))
}

/// Pairs with the phone, as Kai does.
async fn paired(address: SocketAddr) -> Outcome<(Arc<Endpoint>, mpsc::Receiver<Event>, Pin)> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let id = DeviceId::from_random([7; 16]);
    let Capabilities { incoming, outgoing } = Capabilities::of_computer(&[Use::Sms]);
    let me = Identity {
        id: id.clone(),
        name: DeviceName::clean("Kai"),
        kind: DeviceKind::Desktop,
        protocol: Protocol::V8,
        incoming,
        outgoing,
    };
    let (endpoint, mut events) = Endpoint::open(Setup {
        me,
        credentials: Credentials::make(&id, clock.now()).map_err(|bad| bad.0)?,
        pins: vec![],
        strangers: Strangers::Welcome,
        reach: Reach { address: Ipv4Addr::LOCALHOST.into(), ports: 0..=0, announcements: None },
        limits: quick(),
        clock,
    })
    .await
    .map_err(|why| not_opened(&why))?;
    let device = endpoint.connect(address).await.map_err(|refused| format!("{refused:?}"))?;
    endpoint.request_pairing(&device.identity.id).map_err(|error| format!("{error:?}"))?;
    loop {
        if let Event::Paired(pin) = events.recv().await.ok_or("the endpoint closed")? {
            return Ok((Arc::new(endpoint), events, pin));
        }
    }
}

/// Keeps the phone in the store, with reading on.
async fn kept(db: &Db, pin: &Pin) -> Outcome<SourceId> {
    let (device, certificate) = (pin.device.to_string(), pin.certificate.clone());
    let new = NewPhone { device, name: "Pixel".to_owned(), certificate, protocol: 8 };
    let source = db.write(move |tx| {
        settings::store(tx, "sms_enabled", "true")?;
        let source = pair(tx, &new, now())?.source;
        set(tx, source, Switch::ReadSms, true)?;
        begin_reading(tx, source, now())?;
        Ok::<_, DbError>(source)
    });
    Ok(source.await?)
}

/// Gathers the phone's messages from here on, as the daemon does.
fn work_with(
    db: &Db,
    source: SourceId,
    device: DeviceId,
    endpoint: Arc<Endpoint>,
    mut events: mpsc::Receiver<Event>,
) -> Outcome<()> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let (phone, told) = PairedPhone::new(device, Arc::clone(&clock), PhoneLimits::default());
    let no_room = |_| "there is no room";
    phone.allow(Switches { read_sms: true, ..Switches::default() }).map_err(no_room)?;
    tokio::spawn(Gather::new(db.clone(), clock, source, Arc::clone(&phone) as _).run(told));
    phone.connected(endpoint).map_err(no_room)?;
    tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            if let Event::Packet(_, packet) = event
                && phone.packet(packet).is_err()
            {
                phone.lost();
            }
        }
    });
    Ok(())
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
        tokio::time::sleep(LOOK).await;
    }
}

async fn size(db: &Db) -> Outcome<f64> {
    let bytes = db.read(|tx| {
        let sql = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
        Ok::<i64, DbError>(tx.query_row(sql, [], |row| row.get(0))?)
    });
    Ok(i32::try_from(bytes.await? >> 10).map(f64::from)? / 1_024.0)
}

/// Searches as somebody does: a model, which finds no codes, or the user.
async fn search(db: &Db, view: View, name: &str) -> Outcome<()> {
    let received = Received::new(db.clone(), None);
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
        let wanted = Wanted::new(&query).ok_or("nothing to search for")?;
        let begun = now();
        let found = received.search(view, wanted, MOST).await;
        took.push(since(begun));
        found.map_err(|why| format!("{query}: {why:?}"))?;
    }
    took.sort_by(f64::total_cmp);
    say(&format!("{name}_median_ms"), took[SEARCHES / 2])?;
    say(&format!("{name}_p95_ms"), took[SEARCHES * 95 / 100])
}

/// The inbox page by page: the first one, and the slowest of very many.
async fn list(db: &Db) -> Outcome<()> {
    let sources = inbox::Sources::new(vec![Box::new(SmsSource { shelf: None, sends_here: false })]);
    let (mut wanted, mut took, before) = (inbox::Wanted::all(now()), vec![], memory()?);
    while took.len() < PAGES {
        let (sources, place, begun) = (sources.clone(), wanted.clone(), now());
        let page = db.read(move |tx| sources.page(tx, &place, inbox::PAGE)).await;
        took.push(since(begun));
        wanted.before = page.map_err(|error: DbError| error)?.next();
        if wanted.before.is_none() {
            return Err("The inbox has too few pages.".into());
        }
    }
    say("inbox_first_ms", took[0])?;
    say("inbox_slowest_ms", took.into_iter().fold(0.0, f64::max))?;
    say("inbox_memory_growth_mib", memory()? - before)
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
