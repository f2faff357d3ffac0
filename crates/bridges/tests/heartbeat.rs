//! Heartbeats against a phone in memory and a model that does as it is told: whatever happens in between, every message
//! that was captured is shown, dropped and counted, cleared by the person, or still waits; and none is shown twice.

#![cfg(feature = "sms")]
#![expect(clippy::print_stdout, reason = "the measured week is to be seen")]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::collections::BTreeSet;
use std::future::pending as never;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::MIGRATIONS;
use kai_assistant::agent::{ApprovalRequest, Driver, Event, Face, Ready};
use kai_assistant::clock::{Clock, ManualClock};
use kai_assistant::db::{Db, DbError};
use kai_assistant::gate::{Level, RunKind};
use kai_assistant::heartbeat::due::Due;
use kai_assistant::heartbeat::{Beat, BeatResult, Outcome, Why, store};
use kai_assistant::pending;
use kai_assistant::settings::{self, SMS_ENABLED, Setting};
use kai_assistant::sms::queue::{QUEUE, Queued};
use kai_assistant::sms::{Inbox, Poller};
use kai_assistant::toolbox::Toolbox;
use kai_bridges::simulated::Phone;
use kai_llm::{Deltas, Message, Model, ModelError, Reply, Replying, Request, Usage};
use proptest::prelude::*;

/// What the model does with the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    SaysOk,
    Reports,
    SaysNothing,
    Fails,
    /// The process dies while the model thinks.
    Dies,
    /// Says OK, but not what it cost.
    KeepsItsPrice,
    /// Takes the request and never answers.
    Hangs,
}

struct Puppet {
    fate: Mutex<Fate>,
    /// What it was asked last.
    asked: Mutex<Vec<String>>,
    costs: Option<u64>,
    window: Mutex<usize>,
    /// Done while it thinks.
    meanwhile: Mutex<Option<Box<dyn Fn() + Send>>>,
}

impl Puppet {
    /// Told, unless a test is about something else.
    fn tokens(&self, request: &Request) -> u64 {
        self.costs.unwrap_or_else(|| kai_llm::request_tokens(request) as u64)
    }
}

impl Model for &'static Puppet {
    fn body(&self, request: &Request) -> Vec<u8> {
        serde_json::to_vec(request).unwrap()
    }

    fn reply<'a>(&'a self, request: &'a Request, _: Deltas<'a>) -> Replying<'a> {
        Box::pin(async move {
            let Some(Message::User { text, .. }) = request.messages.first() else {
                panic!("nothing was said")
            };
            self.asked.lock().unwrap().push(text.clone());
            if let Some(meanwhile) = self.meanwhile.lock().unwrap().as_ref() {
                meanwhile();
            }
            let fate = *self.fate.lock().unwrap();
            let says = |text: &str| {
                Ok(Reply {
                    text: text.to_owned(),
                    usage: Usage { input: self.tokens(request), output: 10 },
                    ..Reply::default()
                })
            };
            match fate {
                Fate::SaysOk => says("HEARTBEAT_OK"),
                Fate::Reports => says("Somebody wrote."),
                Fate::SaysNothing => says(" "),
                Fate::Fails => Err(ModelError::BadKey),
                Fate::Dies => never().await,
                Fate::KeepsItsPrice => {
                    says("HEARTBEAT_OK").map(|reply| Reply { usage: Usage::default(), ..reply })
                }
                Fate::Hangs => std::future::pending().await,
            }
        })
    }

    fn window(&self) -> usize {
        *self.window.lock().unwrap()
    }
}

struct Nobody;

impl Face for Nobody {
    fn shows(&self, _: Event) {}

    fn allows<'a>(
        &'a self,
        _: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Option<bool>> + Send + 'a>> {
        Box::pin(async { None })
    }
}

struct World {
    clock: Arc<ManualClock>,
    phone: Arc<Phone>,
    poller: Poller,
    toolbox: Toolbox,
    puppet: &'static Puppet,
    models: Vec<Ready>,
}

async fn world() -> World {
    world_where_a_call_costs(Some(100)).await
}

async fn world_where_a_call_costs(costs: Option<u64>) -> World {
    let clock = Arc::new(ManualClock::at("2026-03-09T12:00:00Z".parse().unwrap()));
    let phone = Arc::new(Phone::new(clock.clone()));
    let db = Db::in_memory(MIGRATIONS).unwrap();
    let inbox = Arc::new(Inbox::new(phone.clone(), clock.clone()));
    let poller = Poller { db, clock: clock.clone(), inbox };
    poller.turn_on().await.unwrap();
    let puppet: &'static Puppet = Box::leak(Box::new(Puppet {
        fate: Mutex::new(Fate::SaysOk),
        asked: Mutex::default(),
        costs,
        window: Mutex::new(128_000),
        meanwhile: Mutex::default(),
    }));
    let models = vec![Ready {
        label: "puppet".to_owned(),
        local: true,
        vision: kai_assistant::models::vision::Vision::Unknown,
        model: Box::new(puppet),
    }];
    World { clock, phone, poller, toolbox: Toolbox::new(vec![]), puppet, models }
}

impl World {
    async fn beat(&self, why: Why) -> BeatResult {
        self.try_to_beat(why).await.unwrap()
    }

    async fn try_to_beat(&self, why: Why) -> Result<BeatResult, DbError> {
        let db = &self.poller.db;
        let driver = Driver {
            db,
            clock: self.clock.as_ref(),
            toolbox: &self.toolbox,
            models: &self.models,
            face: &Nobody,
            kind: RunKind::Heartbeat,
            level: Level::Nothing,
            shown: &[],
            platform: "test",
        };
        Beat { db, clock: self.clock.as_ref(), lang: kai_words::Lang::ENGLISH }.run(why, Ok(driver)).await
    }

    fn asked(&self) -> usize {
        self.puppet.asked.lock().unwrap().len()
    }

    async fn until_asked(&self, times: usize) {
        while self.asked() < times {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn will(&self, fate: Fate) {
        *self.puppet.fate.lock().unwrap() = fate;
    }

    fn receive(&self, from: &str) {
        self.phone.receive(from, "text", self.clock.now());
    }

    fn later(&self, minutes: i64) {
        self.clock.advance(SignedDuration::from_mins(minutes));
    }

    async fn set(&self, setting: &'static Setting, value: &'static str) {
        let set = self.poller.db.write(move |tx| settings::store(tx, &setting.key, value));
        set.await.map_err(|e: DbError| e).unwrap();
    }

    async fn queue(&self) -> (Vec<String>, u32) {
        let read = self.poller.db.read(|tx| {
            let dropped = pending::dropped(tx, QUEUE)?.iter().map(|(_, n)| n).sum::<u32>();
            Ok::<_, DbError>((pending::waiting::<Queued>(tx, QUEUE)?, dropped))
        });
        let (waiting, dropped) = read.await.unwrap();
        (waiting.into_iter().map(|w| w.entry.address.as_written().to_owned()).collect(), dropped)
    }

    async fn outcomes(&self) -> Vec<String> {
        let log = self.poller.db.read(store::log).await.unwrap();
        log.into_iter().rev().map(|logged| logged.outcome.as_str().to_owned()).collect()
    }

    async fn die(&self) {
        let dead =
            self.poller.db.write(|tx| Ok::<_, DbError>(tx.execute("UPDATE leases SET pid = 999999999", [])?));
        dead.await.unwrap();
    }
}

/// A full disk at the end of a run must not keep the next ones away.
#[tokio::test]
async fn a_run_that_could_not_be_written_down_holds_up_nobody() {
    let world = world().await;
    let break_it = "CREATE TRIGGER full BEFORE INSERT ON heartbeat_log
                    BEGIN SELECT RAISE(ABORT, 'the disk is full'); END";
    let change =
        |sql: &'static str| world.poller.db.write(move |tx| Ok::<_, DbError>(tx.execute_batch(sql)?));
    change(break_it).await.unwrap();
    assert!(world.try_to_beat(Why::Forced).await.is_err());
    change("DROP TRIGGER full").await.unwrap();
    assert_eq!(world.beat(Why::Forced).await, BeatResult::Ran(Outcome::Ok));
}

/// Who stands in the list of a prompt.
fn listed(prompt: &str) -> Vec<String> {
    let (_, section) = prompt.split_once("## New SMS\n").unwrap_or_default();
    let lines = section.lines().filter_map(|line| line.strip_prefix("- **")?.split_once("**"));
    lines.map(|(who, _)| who.to_owned()).collect()
}

fn reported_drops(prompt: &str) -> u32 {
    let line = prompt.lines().find(|line| line.contains("older message"));
    line.map_or(0, |line| line.trim_start_matches('(').split(' ').next().unwrap().parse().unwrap())
}

#[tokio::test]
async fn nothing_new_no_call() {
    let world = world().await;
    assert_eq!(world.beat(Why::Tick).await, BeatResult::Ran(Outcome::NothingNew));
    assert_eq!(world.beat(Why::Tick).await, BeatResult::NotDue(Due::NotYet));
    assert_eq!(world.beat(Why::Asked).await, BeatResult::Ran(Outcome::NothingNew), "a person does not wait");
    assert_eq!(world.asked(), 0);
    assert_eq!(world.beat(Why::Forced).await, BeatResult::Ran(Outcome::Ok));
    assert_eq!(world.asked(), 1);
    world.receive("+15550100");
    world.poller.poll().await.unwrap();
    world.later(30);
    world.will(Fate::Reports);
    assert_eq!(world.beat(Why::Tick).await, BeatResult::Ran(Outcome::Report("Somebody wrote.".to_owned())));
    world.later(30);
    assert_eq!(world.beat(Why::Tick).await, BeatResult::Ran(Outcome::NothingNew), "it was shown");
    assert_eq!(world.asked(), 2);
    assert_eq!(world.outcomes().await, ["nothing_new", "nothing_new", "ok", "report", "nothing_new"]);
    let banner = world.poller.db.read(store::banner).await.unwrap();
    assert!(banner.is_some(), "the report waits to be looked at");
    let first = world.poller.db.write(store::take_unnotified).await.map_err(|e: DbError| e).unwrap();
    assert_eq!(first.as_deref(), Some("Somebody wrote."));
    let second = world.poller.db.write(store::take_unnotified).await.map_err(|e: DbError| e).unwrap();
    assert_eq!(second, None, "one notification");
}

#[tokio::test]
async fn what_failed_forgets_nothing_and_backs_off() {
    let world = world().await;
    world.receive("+15550100");
    world.poller.poll().await.unwrap();
    for (fate, wait) in [(Fate::SaysNothing, 1), (Fate::Fails, 2), (Fate::SaysNothing, 4)] {
        world.will(fate);
        assert!(matches!(world.beat(Why::Tick).await, BeatResult::Ran(Outcome::Failed(_))), "{fate:?}");
        assert_eq!(world.queue().await.0.len(), 1, "{fate:?}");
        assert_eq!(world.beat(Why::Tick).await, BeatResult::NotDue(Due::NotYet));
        world.later(wait);
    }
    let no_models = World { models: vec![], ..world };
    assert!(matches!(no_models.beat(Why::Tick).await, BeatResult::Ran(Outcome::Failed(_))));
    assert_eq!(no_models.queue().await.0.len(), 1);
}

#[tokio::test]
async fn what_comes_during_the_call_survives() {
    let world = world().await;
    world.receive("first");
    world.poller.poll().await.unwrap();
    let (poller, phone, clock) = (world.poller.clone(), world.phone.clone(), world.clock.clone());
    *world.puppet.meanwhile.lock().unwrap() = Some(Box::new(move || {
        phone.receive("second", "text", clock.now());
        let poller = poller.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(poller.poll()).unwrap();
        })
        .join()
        .unwrap();
    }));
    assert_eq!(world.beat(Why::Tick).await, BeatResult::Ran(Outcome::Ok));
    assert_eq!(world.queue().await.0, ["second"]);
}

#[tokio::test]
async fn turned_off_during_the_call_it_keeps_what_waits() {
    let world = world().await;
    world.receive("first");
    world.poller.poll().await.unwrap();
    let db = world.poller.db.clone();
    *world.puppet.meanwhile.lock().unwrap() = Some(Box::new(move || {
        let db = db.clone();
        let off = move || db.write_now(|tx| settings::store(tx, &SMS_ENABLED.key, "false"));
        std::thread::spawn(off).join().unwrap().map_err(|e: DbError| e).unwrap();
    }));
    assert_eq!(world.beat(Why::Tick).await, BeatResult::Ran(Outcome::Ok));
    assert_eq!(world.queue().await.0, ["first"]);
}

#[tokio::test]
async fn a_dry_run_is_the_next_prompt_to_the_byte_and_changes_nothing() {
    let world = world().await;
    world.receive("+15550100");
    world.poller.poll().await.unwrap();
    let beat = Beat { db: &world.poller.db, clock: world.clock.as_ref(), lang: kai_words::Lang::ENGLISH };
    let dry = beat.dry_run(world.models[0].model.window()).await.unwrap().text;
    assert_eq!(beat.dry_run(world.models[0].model.window()).await.unwrap().text, dry);
    assert!(world.outcomes().await.is_empty());
    assert_eq!(world.beat(Why::Tick).await, BeatResult::Ran(Outcome::Ok));
    assert_eq!(world.puppet.asked.lock().unwrap().last().unwrap(), &dry);
    assert_ne!(
        beat.dry_run(world.models[0].model.window()).await.unwrap().text,
        dry,
        "the mark of the next run is another"
    );
}

#[tokio::test]
async fn the_day_has_its_budget() {
    let world = world().await;
    world.set(&settings::HEARTBEAT_DAILY_TOKENS, "110").await;
    for n in 0..2 {
        world.receive(&n.to_string());
        world.poller.poll().await.unwrap();
        let expected =
            if n == 0 { BeatResult::Ran(Outcome::Ok) } else { BeatResult::NotDue(Due::OverBudget) };
        assert_eq!(world.beat(Why::Tick).await, expected);
        world.later(31);
    }
    assert_eq!(world.beat(Why::Asked).await, BeatResult::NotDue(Due::OverBudget));
    world.later(24 * 60);
    assert_eq!(world.beat(Why::Tick).await, BeatResult::Ran(Outcome::Ok), "another day");
}

#[tokio::test]
async fn a_run_whose_price_nobody_says_counts_by_estimate() {
    let world = world().await;
    world.receive("+15550100");
    world.poller.poll().await.unwrap();
    world.will(Fate::KeepsItsPrice);
    assert_eq!(world.beat(Why::Tick).await, BeatResult::Ran(Outcome::Ok));
    let logged = world.poller.db.read(store::log).await.unwrap().remove(0);
    assert!(logged.tokens > 100 && logged.estimated, "{logged:?}");
    world.set(&settings::HEARTBEAT_DAILY_TOKENS, "100").await;
    world.later(31);
    world.receive("+15550101");
    world.poller.poll().await.unwrap();
    assert_eq!(world.beat(Why::Tick).await, BeatResult::NotDue(Due::OverBudget));
    world.will(Fate::SaysOk);
    assert_eq!(world.beat(Why::Forced).await, BeatResult::Ran(Outcome::Ok));
    let logged = world.poller.db.read(store::log).await.unwrap().remove(0);
    assert_eq!((logged.tokens, logged.estimated), (110, false), "what the server says is no estimate");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_takes_too_long_has_its_price() {
    let world = world().await;
    world.receive("+15550100");
    world.poller.poll().await.unwrap();
    world.will(Fate::Hangs);
    assert!(matches!(world.beat(Why::Tick).await, BeatResult::Ran(Outcome::Failed(_))));
    let logged = world.poller.db.read(store::log).await.unwrap().remove(0);
    assert!(logged.tokens > 100 && logged.estimated, "{logged:?}");
    assert_eq!(world.queue().await.0, ["+15550100"], "and nothing is forgotten");
}

#[tokio::test]
async fn what_the_window_cannot_hold_waits_and_the_newest_people_come_first() {
    let world = world().await;
    for n in 0..100 {
        let from = if n % 2 == 0 { format!("+1555{n:07}") } else { "BANK".to_owned() };
        world.phone.receive(&from, &format!("{n} {}", "word ".repeat(60)), world.clock.now());
    }
    world.poller.poll().await.unwrap();
    world.poller.poll().await.unwrap();
    *world.puppet.window.lock().unwrap() = 8_192;
    let beat = Beat { db: &world.poller.db, clock: world.clock.as_ref(), lang: kai_words::Lang::ENGLISH };
    let dry = beat.dry_run(8_192).await.unwrap().text;
    assert_eq!(world.beat(Why::Tick).await, BeatResult::Ran(Outcome::Ok));
    let asked = world.puppet.asked.lock().unwrap().last().unwrap().clone();
    assert_eq!(asked, dry);
    let shown = listed(&asked);
    assert!(shown.len() > 15 && !asked.contains("**BANK**"), "people first: {shown:?}");
    assert!(asked.contains("**+15550000098**") && !asked.contains("**+15550000000**"), "the newest first");
    let (left, _) = world.queue().await;
    assert_eq!(left.len() + shown.len(), 100, "only what was shown is forgotten");
    assert!(asked.contains(&format!("(and {} more wait)", left.len())), "{asked}");
    *world.puppet.window.lock().unwrap() = 32_768;
    world.later(31);
    assert_eq!(world.beat(Why::Tick).await, BeatResult::Ran(Outcome::Ok));
    assert_eq!(world.queue().await.0, Vec::<String>::new(), "a larger window takes the rest at once");
}

#[tokio::test]
async fn two_at_once_are_one() {
    let world = world().await;
    world.receive("+15550100");
    world.poller.poll().await.unwrap();
    let (one, other) = tokio::join!(world.beat(Why::Asked), world.beat(Why::Asked));
    let ran = [&one, &other].iter().filter(|b| matches!(b, BeatResult::Ran(Outcome::Ok))).count();
    assert!(ran == 1 && world.asked() == 1, "{one:?} {other:?}");
}

/// What may happen.
#[derive(Debug, Clone)]
enum Happens {
    Arrive(u8),
    Poll,
    Beat(Fate),
    /// So many arrive while the model thinks, and are polled.
    BeatWhile(Fate, u8),
    Toggle,
    Clear,
    Wait(u8),
}

fn happens() -> impl Strategy<Value = Happens> {
    let fate = prop::sample::select(vec![
        Fate::SaysOk,
        Fate::SaysOk,
        Fate::Reports,
        Fate::SaysNothing,
        Fate::Fails,
        Fate::Dies,
    ]);
    prop_oneof![
        5 => (1..20_u8).prop_map(Happens::Arrive),
        1 => (50..200_u8).prop_map(Happens::Arrive),
        5 => Just(Happens::Poll),
        5 => fate.clone().prop_map(Happens::Beat),
        3 => (fate, 1..250_u8).prop_map(|(fate, many)| Happens::BeatWhile(fate, many)),
        1 => Just(Happens::Toggle),
        1 => Just(Happens::Clear),
        2 => (0..90_u8).prop_map(Happens::Wait),
    ]
}

#[derive(Default)]
struct Accounts {
    arrived: u32,
    captured: usize,
    /// By runs that were answered.
    shown: BTreeSet<String>,
    dropped: u32,
    cleared: u32,
    off: bool,
}

async fn play(world: &World, accounts: &mut Accounts, event: Happens) {
    match event {
        Happens::Arrive(many) => {
            for _ in 0..many {
                accounts.arrived += 1;
                world.receive(&accounts.arrived.to_string());
            }
        }
        Happens::Poll if !accounts.off => loop {
            let polled = world.poller.poll().await.unwrap();
            accounts.captured += polled.fresh;
            if !polled.more {
                break;
            }
        },
        Happens::Poll => {}
        Happens::Beat(fate) => beat(world, accounts, fate).await,
        Happens::BeatWhile(fate, many) => beat_while(world, accounts, fate, many).await,
        Happens::Toggle => {
            if accounts.off {
                world.poller.turn_on().await.unwrap();
            } else {
                world.set(&SMS_ENABLED, "false").await;
            }
            accounts.off = !accounts.off;
        }
        Happens::Clear => {
            accounts.cleared += world.queue().await.1;
            let cleared = world.poller.db.write(|tx| pending::clear(tx, QUEUE));
            accounts.cleared += u32::try_from(cleared.await.map_err(|e: DbError| e).unwrap()).unwrap();
        }
        Happens::Wait(minutes) => world.later(i64::from(minutes)),
    }
}

/// A beat during which messages come in: those that it shows may have to make room for them.
async fn beat_while(world: &World, accounts: &mut Accounts, fate: Fate, many: u8) {
    let (poller, phone, clock) = (world.poller.clone(), world.phone.clone(), world.clock.clone());
    let (from, off, captured) = (accounts.arrived, accounts.off, Arc::new(Mutex::new((0, 0))));
    let counted = Arc::clone(&captured);
    *world.puppet.meanwhile.lock().unwrap() = Some(Box::new(move || {
        let mut counted = counted.lock().unwrap();
        for _ in 0..many {
            counted.0 += 1;
            phone.receive(&(from + counted.0).to_string(), "text", clock.now());
        }
        let poller = poller.clone();
        let poll = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let mut fresh = 0;
            let mut more = !off;
            while more {
                let brought = runtime.block_on(poller.poll()).unwrap();
                (fresh, more) = (fresh + brought.fresh, brought.more);
            }
            fresh
        };
        counted.1 += std::thread::spawn(poll).join().unwrap();
    }));
    beat(world, accounts, fate).await;
    *world.puppet.meanwhile.lock().unwrap() = None;
    let (arrived, fresh) = *captured.lock().unwrap();
    accounts.arrived += arrived;
    accounts.captured += fresh;
}

async fn beat(world: &World, accounts: &mut Accounts, fate: Fate) {
    world.will(fate);
    let before = world.asked();
    if fate == Fate::Dies {
        // It dies while the model thinks, or ends before it has anything to ask.
        tokio::select! {
            _ = world.beat(Why::Asked) => {}
            () = world.until_asked(before + 1) => {}
        }
        world.die().await;
        return;
    }
    let beaten = world.beat(Why::Asked).await;
    let asked: Vec<String> = world.puppet.asked.lock().unwrap().iter().skip(before).cloned().collect();
    let BeatResult::Ran(Outcome::Ok | Outcome::Report(_)) = beaten else { return };
    let [prompt] = asked.as_slice() else { panic!("asked {} times", asked.len()) };
    for who in listed(prompt) {
        assert!(accounts.shown.insert(who.clone()), "{who} was shown twice");
    }
    accounts.dropped += reported_drops(prompt);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]

    #[test]
    fn captured_is_shown_dropped_cleared_or_waiting(events in proptest::collection::vec(happens(), 1..50)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = world().await;
            world.set(&settings::HEARTBEAT_DAILY_TOKENS, "0").await;
            let mut accounts = Accounts::default();
            for event in events {
                play(&world, &mut accounts, event).await;
                let (queue, dropped) = world.queue().await;
                let gone = accounts.shown.len() + usize::try_from(accounts.dropped + accounts.cleared + dropped).unwrap();
                assert_eq!(accounts.captured, gone + queue.len());
            }
        });
    }
}

/// A week on a phone: what it costs to look only when something is new.
#[tokio::test]
async fn a_week_costs_calls_only_where_something_arrived() {
    let world = world_where_a_call_costs(None).await;
    world.clock.set("2026-03-09T00:00:00Z".parse().unwrap());
    let mut arrivals: Vec<Timestamp> = week();
    arrivals.sort();
    let (mut calls, mut beats, mut empty_windows) = (0, 0, 0);
    let mut since_last = 0;
    let end: Timestamp = "2026-03-16T00:00:00Z".parse().unwrap();
    let mut next = arrivals.into_iter().peekable();
    while world.clock.now() < end {
        while next.peek().is_some_and(|at| *at <= world.clock.now()) {
            let at = next.next().unwrap();
            world.phone.receive("+15550100", "text", at);
            since_last += 1;
        }
        let _ = world.poller.tick().await.unwrap();
        let before = world.asked();
        if let BeatResult::Ran(outcome) = world.beat(Why::Tick).await {
            beats += 1;
            let asked = world.asked() - before;
            calls += asked;
            // What arrived after the last poll is seen by the next beat.
            let waited = world.queue().await.0.len();
            assert!(waited == 0, "everything polled was shown");
            if outcome == Outcome::NothingNew {
                empty_windows += 1;
                assert_eq!(asked, 0, "no call where nothing arrived");
            } else {
                since_last = 0;
            }
        }
        world.later(1);
    }
    let naive = 7 * 14 * 2;
    let log = world.poller.db.read(store::log).await.unwrap();
    let costs: Vec<u64> = log.iter().map(|logged| logged.tokens).filter(|tokens| *tokens > 0).collect();
    let average = costs.iter().sum::<u64>() / costs.len() as u64;
    println!(
        "a week: {calls} calls, about {} tokens; every 30 minutes from 8 to 22 would be {naive} calls, about {}; \
         {empty_windows} of {beats} looks found nothing ({since_last} arrived after the last)",
        calls as u64 * average,
        naive as u64 * average
    );
    assert!(calls * 3 < naive && calls > 20, "{calls}");
}

/// When people write to somebody: mornings, lunch, evenings, hardly at night, less on Sunday, some in bursts.
fn week() -> Vec<Timestamp> {
    let per_day = [
        vec![(7, 40), (8, 5), (12, 31), (12, 33), (12, 34), (18, 2), (19, 45), (21, 10)],
        vec![(8, 12), (13, 0), (17, 55), (17, 56), (20, 20)],
        vec![(6, 58), (9, 30), (12, 15), (18, 40), (18, 41), (18, 44), (22, 30)],
        vec![(8, 1), (11, 5), (16, 30), (19, 0)],
        vec![(7, 20), (12, 45), (15, 10), (18, 18), (20, 1), (20, 3), (20, 4), (20, 9), (23, 50)],
        vec![(10, 30), (14, 22), (14, 25), (19, 33)],
        vec![(11, 11), (18, 5)],
    ];
    let midnight: Timestamp = "2026-03-09T00:00:00Z".parse().unwrap();
    let at = |day: usize, hour: i64, minute: i64| {
        let day = i64::try_from(day).unwrap();
        midnight.checked_add(SignedDuration::from_mins(day * 1440 + hour * 60 + minute)).unwrap()
    };
    per_day
        .iter()
        .enumerate()
        .flat_map(|(day, times)| times.iter().map(move |(h, m)| at(day, *h, *m)))
        .collect()
}

/// What is a day old goes with the heartbeat itself: without a daemon there is no tick that would sweep.
#[cfg(feature = "notifications")]
#[tokio::test]
async fn a_heartbeat_sweeps_what_is_too_old() {
    use kai_assistant::notifications::NotificationId;
    use kai_assistant::notifications::port::Heard;
    use kai_assistant::notifications::record::Post;
    use kai_assistant::notifications::{repeats, store as notifications};
    use kai_assistant::source::SourceId;
    let world = world().await;
    let db = world.poller.db.clone();
    let now = world.clock.now();
    let heard = db.write(move |tx| {
        let post =
            |id: &str| Heard::Posted(Box::new(Post::new(NotificationId::new(id), "org.x", "title", "text")));
        let (old, young) = (post("old"), post("young"));
        let day = SignedDuration::from_hours(20);
        settings::store(tx, "notifications_enabled", "true")?;
        let heard = [(now, &old), (now.saturating_add(day).unwrap_or(now), &young)];
        notifications::hear(tx, SourceId::HERE, heard, &repeats::never)
    });
    heard.await.map_err(|e: DbError| e).unwrap();
    world.later(25 * 60);
    let kept = || db.read(notifications::count);
    assert_eq!(kept().await.map_err(|e: DbError| e).unwrap(), 2);
    assert_eq!(world.beat(Why::Forced).await, BeatResult::Ran(Outcome::Ok));
    assert_eq!(kept().await.map_err(|e: DbError| e).unwrap(), 1);
}
