//! Polls against a phone that behaves as Android does: whatever the person and the phone do in between, every message
//! is queued once, dropped and counted, or was deleted before anybody looked.

#![cfg(feature = "sms")]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::MIGRATIONS;
use kai_assistant::clock::{Clock, ManualClock};
use kai_assistant::db::{Db, DbError};
use kai_assistant::gate::Level;
use kai_assistant::pending;
use kai_assistant::settings::{self, SMS_ENABLED, Values};
use kai_assistant::sms::poll::PollError;
use kai_assistant::sms::queue::{QUEUE, Queued};
use kai_assistant::sms::store::{self, Sync};
use kai_assistant::sms::{CheckSms, Inbox, Poller, ReadSms, Received, SearchSms, SmsId};
use kai_assistant::tool::{AnyTool, Run, ToolResult, execute};
use kai_bridges::simulated::Phone;
use proptest::prelude::*;

struct World {
    clock: Arc<ManualClock>,
    phone: Arc<Phone>,
    poller: Poller,
}

fn world() -> World {
    let clock = Arc::new(ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
    let phone = Arc::new(Phone::new(clock.clone()));
    let db = Db::in_memory(MIGRATIONS).unwrap();
    let inbox = Arc::new(Inbox::new(phone.clone(), clock.clone()));
    World { poller: Poller { db, clock: clock.clone(), inbox }, clock, phone }
}

impl World {
    fn receive(&self, from: &str) -> SmsId {
        self.phone.receive(from, &format!("text of {from}"), self.clock.now())
    }

    fn later(&self, seconds: i64) {
        self.clock.advance(SignedDuration::from_secs(seconds));
    }

    /// The senders in the queue, oldest first, and how many were dropped.
    async fn queue(&self) -> (Vec<String>, u32) {
        let read = self.poller.db.read(|tx| {
            let dropped = pending::dropped(tx, QUEUE)?.iter().map(|(_, n)| n).sum::<u32>();
            Ok::<_, DbError>((pending::waiting::<Queued>(tx, QUEUE)?, dropped))
        });
        let (waiting, dropped) = read.await.unwrap();
        (waiting.into_iter().map(|w| w.entry.address.as_written().to_owned()).collect(), dropped)
    }

    async fn sync(&self) -> Sync {
        self.poller.db.read(store::sync).await.unwrap()
    }

    async fn turn(&self, on: bool) {
        if on {
            self.poller.turn_on().await.unwrap();
        } else {
            let off = self.poller.db.write(|tx| settings::store(tx, &SMS_ENABLED.key, "false"));
            off.await.map_err(|e: DbError| e).unwrap();
        }
    }

    /// A poll that dies while the phone is asked.
    async fn die_while_polling(&self) {
        self.phone.hang_next_read();
        let before = self.phone.hung_count();
        let poller = self.poller.clone();
        let polling = tokio::spawn(async move { poller.poll().await.map(drop) });
        while self.phone.hung_count() == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        polling.abort();
        assert!(polling.await.is_err(), "it is gone");
    }

    async fn drain(&self) {
        while self.poller.poll().await.unwrap().more {}
    }
}

#[tokio::test]
async fn what_lay_there_at_the_opt_in_is_seen_and_what_comes_then_is_new() {
    let world = world();
    assert!(matches!(world.poller.poll().await, Err(PollError::Off)));
    world.receive("old");
    world.turn(true).await;
    assert_eq!(world.sync().await.mark.top.unwrap().id, SmsId(1));
    assert_eq!(world.poller.poll().await.unwrap().fresh, 0);
    // In the same second as the one that was seen.
    world.receive("same second");
    world.later(5);
    world.receive("later");
    assert_eq!(world.poller.poll().await.unwrap().fresh, 2);
    assert_eq!(world.poller.poll().await.unwrap().fresh, 0, "once is enough");
    assert_eq!(world.queue().await, (vec!["same second".to_owned(), "later".to_owned()], 0));
    let sync = world.sync().await;
    assert_eq!((sync.unread, sync.last_error), (0, None));
}

#[tokio::test]
async fn a_clock_finer_than_the_store_makes_nothing_new() {
    let world = world();
    world.clock.advance(SignedDuration::from_nanos(123_456_789));
    world.receive("old");
    world.turn(true).await;
    world.receive("new");
    assert_eq!(world.poller.poll().await.unwrap().fresh, 1);
    assert_eq!(world.poller.poll().await.unwrap().fresh, 0);
    assert_eq!(world.queue().await.0, ["new"]);
}

#[tokio::test]
async fn the_first_sms_ever_is_not_swallowed() {
    let world = world();
    world.turn(true).await;
    world.receive("first ever");
    assert_eq!(world.poller.poll().await.unwrap().fresh, 1);
    assert_eq!(world.sync().await.unread, 1);
}

#[tokio::test]
async fn a_reused_id_is_another_message() {
    let world = world();
    world.receive("old");
    let newest = world.receive("deleted later");
    world.turn(true).await;
    world.phone.delete(newest);
    // The same second, the same id: only the sender tells them apart.
    assert_eq!(world.receive("new in the same second"), newest);
    assert_eq!(world.poller.poll().await.unwrap().fresh, 1);
    world.phone.delete(newest);
    world.later(60);
    assert_eq!(world.receive("new again"), newest);
    assert_eq!(world.poller.poll().await.unwrap().fresh, 1);
    assert_eq!(world.poller.poll().await.unwrap().fresh, 0);
}

#[tokio::test]
async fn a_wiped_or_restored_inbox_neither_stops_nor_floods() {
    let world = world();
    for n in 0..30 {
        world.receive(&format!("old {n}"));
        world.later(1);
    }
    world.turn(true).await;
    world.phone.wipe();
    assert_eq!(world.poller.poll().await.unwrap().fresh, 0);
    world.later(60);
    world.receive("after the wipe");
    // The backup comes back, with the old dates and more ids than before.
    let long_ago = Timestamp::from_second(1_700_000_000).unwrap();
    for n in 0..60 {
        world.phone.receive(&format!("restored {n}"), "x", long_ago);
    }
    world.drain().await;
    world.later(60);
    world.receive("after the restore");
    world.drain().await;
    assert_eq!(world.queue().await.0, ["after the wipe", "after the restore"]);
}

#[tokio::test]
async fn old_messages_with_high_ids_do_not_flood_at_the_opt_in() {
    let world = world();
    world.receive("fresh");
    let long_ago = Timestamp::from_second(1_700_000_000).unwrap();
    for n in 0..200 {
        world.phone.receive(&format!("restored {n}"), "x", long_ago);
    }
    world.turn(true).await;
    world.later(1);
    assert_eq!(world.poller.poll().await.unwrap().fresh, 0);
    world.phone.delete(SmsId(201));
    world.receive("new");
    world.drain().await;
    assert_eq!(world.queue().await.0, ["new"]);
}

#[tokio::test]
async fn a_backlog_drains_fifty_at_a_time_and_every_drop_is_counted() {
    let world = world();
    world.turn(true).await;
    for n in 0..5_000 {
        world.receive(&n.to_string());
    }
    let first = world.poller.poll().await.unwrap();
    assert_eq!((first.fresh, first.more), (50, true));
    assert!(world.poller.tick().await.unwrap().is_some(), "a full poll is followed up at the next tick");
    world.drain().await;
    let (queue, dropped) = world.queue().await;
    assert_eq!((queue.len(), dropped), (100, 4_900));
    assert_eq!(queue.last().unwrap(), "4999");
}

#[tokio::test]
async fn turning_it_off_and_on_does_not_dump_what_came_meanwhile() {
    let world = world();
    world.turn(true).await;
    world.turn(false).await;
    world.receive("while it was off");
    world.later(60);
    world.turn(true).await;
    world.receive("after");
    world.drain().await;
    assert_eq!(world.queue().await.0, ["after"]);
    // Any way of turning it on seeds again, not only ours.
    world.turn(false).await;
    world.receive("off again");
    let on = world.poller.db.write(|tx| settings::store(tx, &SMS_ENABLED.key, "true"));
    on.await.map_err(|e: DbError| e).unwrap();
    assert!(world.poller.poll().await.unwrap().seeded);
    assert_eq!(world.queue().await.0, ["after"]);
}

#[tokio::test]
async fn a_failure_moves_nothing_but_the_last_attempt() {
    let world = world();
    world.receive("old");
    world.turn(true).await;
    let before = world.sync().await;
    world.later(900);
    world.receive("new");
    world.phone.fail_next_read("The phone did not answer.");
    assert!(world.poller.poll().await.is_err());
    let failed = world.sync().await;
    assert_eq!(failed.last_error, Some("The phone did not answer.".into()));
    assert_eq!((failed.last_sync, &failed.mark), (before.last_sync, &before.mark));
    assert_eq!(failed.last_attempt, Some(world.clock.now()));
    assert!(world.poller.tick().await.unwrap().is_none(), "it backs off for an interval");
    world.later(900);
    assert_eq!(world.poller.tick().await.unwrap().unwrap().fresh, 1);
    assert_eq!(world.sync().await.last_error, None);

    world.phone.deny_reading();
    world.receive("while denied");
    assert!(world.poller.poll().await.is_err());
    assert_eq!(world.sync().await.last_error, Some(kai_words::said::access_not_granted()));
    assert!(world.poller.inbox.lacks().is_some(), "its tools are not offered any more");
    world.phone.grant_reading();
    assert_eq!(world.poller.poll().await.unwrap().fresh, 1, "a re-grant does not seed again");
}

#[tokio::test]
async fn a_refused_opt_in_stays_off() {
    let world = world();
    world.phone.deny_reading();
    assert!(world.poller.turn_on().await.is_err());
    assert!(matches!(world.poller.poll().await, Err(PollError::Off)));
}

#[tokio::test]
async fn a_clock_that_went_back_does_not_stop_polling() {
    let world = world();
    world.turn(true).await;
    world.clock.advance(SignedDuration::from_hours(-5));
    world.receive("sent by an earlier clock");
    assert_eq!(world.poller.tick().await.unwrap().unwrap().fresh, 1);
    assert!(world.poller.tick().await.unwrap().is_none());
}

#[tokio::test]
async fn two_polls_at_once_queue_each_message_once() {
    let world = world();
    world.turn(true).await;
    for n in 0..40 {
        world.receive(&n.to_string());
    }
    let polls = (0..8).map(|_| world.poller.poll());
    let outcomes = futures_util::future::join_all(polls).await;
    assert!(outcomes.iter().all(|o| matches!(o, Ok(_) | Err(PollError::Busy))), "{outcomes:?}");
    assert_eq!(world.queue().await.0.len(), 40);
}

#[tokio::test]
async fn a_poll_that_died_holds_up_nobody() {
    let world = world();
    world.turn(true).await;
    world.receive("new");
    world.die_while_polling().await;
    assert_eq!(world.poller.poll().await.unwrap().fresh, 1);
}

/// What can happen between two polls.
#[derive(Debug, Clone)]
enum Happens {
    Arrive(u8),
    Wait(u8),
    DeleteNewest,
    DeleteOne(u8),
    Wipe,
    Poll,
    Fail,
    DieWhilePolling,
    Shown(u8),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        6 => (1..6_u8).prop_map(Happens::Arrive),
        1 => (50..120_u8).prop_map(Happens::Arrive),
        4 => (0..3_u8).prop_map(Happens::Wait),
        3 => Just(Happens::DeleteNewest),
        2 => any::<u8>().prop_map(Happens::DeleteOne),
        1 => Just(Happens::Wipe),
        6 => Just(Happens::Poll),
        1 => Just(Happens::Fail),
        1 => Just(Happens::DieWhilePolling),
        1 => any::<u8>().prop_map(Happens::Shown),
    ]
}

/// The accounts that are kept beside the real thing.
#[derive(Default)]
struct Accounts {
    arrived: u32,
    /// On the phone now: id and sender.
    there: Vec<(SmsId, String)>,
    /// Arrived, there, and not polled yet.
    unseen: BTreeSet<String>,
    /// Polled, and not shown yet or dropped.
    polled: u32,
    shown: u32,
}

async fn play(world: &World, accounts: &mut Accounts, event: Happens) {
    match event {
        Happens::Arrive(many) => {
            for _ in 0..many {
                accounts.arrived += 1;
                let from = accounts.arrived.to_string();
                accounts.there.push((world.receive(&from), from.clone()));
                accounts.unseen.insert(from);
            }
        }
        Happens::Wait(seconds) => world.later(i64::from(seconds)),
        Happens::DeleteNewest => delete(world, accounts, usize::MAX),
        Happens::DeleteOne(which) => delete(world, accounts, usize::from(which)),
        Happens::Wipe => {
            world.phone.wipe();
            accounts.there.clear();
            accounts.unseen.clear();
        }
        Happens::Poll => {
            world.drain().await;
            accounts.polled += u32::try_from(std::mem::take(&mut accounts.unseen).len()).unwrap();
        }
        Happens::Fail => {
            world.phone.fail_next_read("no");
            assert!(world.poller.poll().await.is_err());
        }
        Happens::DieWhilePolling => world.die_while_polling().await,
        Happens::Shown(many) => {
            let shown = world.poller.db.write(move |tx| {
                let waiting = pending::waiting::<Queued>(tx, QUEUE)?;
                let seqs: Vec<i64> = waiting.iter().take(usize::from(many)).map(|w| w.seq).collect();
                pending::forget(tx, QUEUE, &seqs)
            });
            accounts.shown += u32::try_from(shown.await.map_err(|e: DbError| e).unwrap()).unwrap();
        }
    }
}

fn delete(world: &World, accounts: &mut Accounts, which: usize) {
    if accounts.there.is_empty() {
        return;
    }
    let at = which.min(accounts.there.len() - 1) % accounts.there.len();
    let (id, from) = accounts.there.remove(at);
    assert!(world.phone.delete(id));
    accounts.unseen.remove(&from);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn every_message_is_accounted_for(events in proptest::collection::vec(happens(), 1..60), before in 0..4_u8) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = world();
            let mut accounts = Accounts::default();
            play(&world, &mut accounts, Happens::Arrive(before)).await;
            accounts.unseen.clear();
            world.turn(true).await;
            for event in events {
                play(&world, &mut accounts, event).await;
            }
            play(&world, &mut accounts, Happens::Poll).await;
            let (queue, dropped) = world.queue().await;
            let waiting = u32::try_from(queue.len()).unwrap();
            assert_eq!(accounts.polled, accounts.shown + dropped + waiting);
            assert_eq!(queue.iter().collect::<BTreeSet<_>>().len(), queue.len(), "nothing twice");
        });
    }
}

#[tokio::test]
async fn what_a_model_gets_is_json_however_much_there_is() {
    let world = world();
    world.turn(true).await;
    for n in 0..100 {
        world.phone.receive(&format!("+1555{n:07}"), &"\"x\\\u{7}".repeat(100), world.clock.now());
    }
    let long = world.phone.receive("+15550100", &"ä\n\"".repeat(400_000), world.clock.now());
    world.drain().await;
    let (db, clock) = (world.poller.db.clone(), world.clock.clone() as Arc<dyn Clock>);
    let received = Received::new(db, Some(Arc::clone(&world.poller.inbox)));
    let check = CheckSms { received: received.clone(), clock: clock.clone() };
    let read = ReadSms { received: received.clone(), clock: clock.clone() };
    let search = SearchSms { received, clock };
    let read_json = |tool: &'static str, result: ToolResult| {
        assert!(result.success, "{tool}: {}", result.text);
        serde_json::from_str::<serde_json::Value>(&result.text).unwrap_or_else(|e| panic!("{tool}: {e}"))
    };
    let values = Values::default();
    let checked = read_json("check_sms", execute(Ok(&check), &values, "{}", &Run::BY_HAND).await);
    let (count, more) = (checked["count"].as_u64().unwrap(), checked["more"].as_u64().unwrap());
    assert!(count > 5 && count + more == 100, "{count} and {more}");
    assert_eq!(checked["total"], 100);
    let ids = |page: &serde_json::Value| -> Vec<i64> {
        page["messages"].as_array().unwrap().iter().map(|message| message["id"].as_i64().unwrap()).collect()
    };
    let first = ids(&checked);
    assert_eq!(first[0], long.0, "the newest first");
    assert!(first.is_sorted_by(|a, b| a > b));
    let arguments = format!("{{\"before\": {}}}", first.last().unwrap());
    let next = ids(&read_json("check_sms", execute(Ok(&check), &values, &arguments, &Run::BY_HAND).await));
    assert_eq!(next[0], first.last().unwrap() - 1, "it goes on where the list ended");
    let gone = execute(Ok(&check), &values, r#"{"before": 99999}"#, &Run::BY_HAND).await;
    assert!(!gone.success && gone.text.contains("99999"), "{}", gone.text);
    let arguments = format!("{{\"id\": {}}}", long.0);
    let whole = read_json("read_sms", execute(Ok(&read), &values, &arguments, &Run::BY_HAND).await);
    assert!(whole["note"].as_str().unwrap().contains("40000 characters"), "{}", whole["note"]);
    assert!(whole["body"].as_str().unwrap().chars().count() > 3_000);
    let found =
        read_json("search_sms", execute(Ok(&search), &values, r#"{"query": "x"}"#, &Run::BY_HAND).await);
    assert!(found["count"].as_u64().unwrap() > 5);
}

/// A result names exactly the messages that it holds; without any it raises nothing.
#[tokio::test]
async fn a_result_says_which_messages_it_holds() {
    let world = world();
    world.turn(true).await;
    let (db, clock) = (world.poller.db.clone(), world.clock.clone() as Arc<dyn Clock>);
    let received = Received::new(db, Some(Arc::clone(&world.poller.inbox)));
    let check = CheckSms { received: received.clone(), clock: clock.clone() };
    let read = ReadSms { received: received.clone(), clock: clock.clone() };
    let search = SearchSms { received, clock };
    let meaning = async |tool: &dyn AnyTool, arguments: &str| {
        let result = execute(Ok(tool), &Values::default(), arguments, &Run::BY_HAND).await;
        (result.meaning.taint, result.meaning.mentions)
    };
    let nothing = (Level::Nothing, vec![]);
    assert_eq!(meaning(&check, "{}").await, nothing, "the inbox is empty");
    let now = world.clock.now();
    let id = world.phone.receive("+15550100", "the zebra is back", now).0;
    world.drain().await;
    let held = (Level::People, vec![format!("sms {id} {} +15550100", now.as_millisecond())]);
    assert_eq!(meaning(&check, "{}").await, held);
    assert_eq!(meaning(&read, &format!("{{\"id\": {id}}}")).await, held);
    assert_eq!(meaning(&search, r#"{"query": "zebra"}"#).await, held);
    assert_eq!(meaning(&search, r#"{"query": "giraffe"}"#).await, nothing);
    assert_eq!(meaning(&read, r#"{"id": 99999}"#).await, nothing);
}

#[tokio::test]
async fn twenty_hits_are_twenty_in_every_script() {
    for word in ["hello", "привет", "你好嗎"] {
        let world = world();
        world.turn(true).await;
        let text: String = word.chars().chain([' ']).cycle().take(300).collect();
        for n in 0..25 {
            world.phone.receive(&format!("+1555{n:07}"), &text, world.clock.now());
        }
        let (db, clock) = (world.poller.db.clone(), world.clock.clone() as Arc<dyn Clock>);
        let received = Received::new(db, Some(Arc::clone(&world.poller.inbox)));
        let search = SearchSms { received, clock };
        let arguments = serde_json::json!({"query": word}).to_string();
        let found = execute(Ok(&search), &Values::default(), &arguments, &Run::BY_HAND).await;
        let found: serde_json::Value = serde_json::from_str(&found.text).unwrap();
        assert_eq!((&found["count"], found.get("more")), (&serde_json::json!(20), None), "{word}");
    }
}
