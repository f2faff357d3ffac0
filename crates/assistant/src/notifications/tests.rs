//! Tests of the store, the writer and the tools together, with failing stores and a manual clock.

use crate::lock::lock;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp};
use kai_words::{Said, said};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::capture::{Capture, Captures};
use super::port::{Dismissing, Ear, Heard};
use super::record::{ChatMessage, Post};
use super::store::{ALL, Gap, PER_APP, Sync};
use super::toggle::Toggle;
use super::{
    CheckNotifications, DismissNotification, Listener, NotificationId, NotificationTools, QUEUE,
    ReadNotification, Record, SearchNotifications, Source, Sources, repeats, store, toggle,
};
use crate::MIGRATIONS;
use crate::access::Access;
use crate::clock::{Clock, ManualClock};
use crate::db::{Db, DbError};
use crate::gate::Level;
use crate::pending;
use crate::phones;
use crate::settings::{self, NOTIFICATIONS_ENABLED, NOTIFICATIONS_IGNORED, Values};
use crate::source::SourceId;
use crate::tool::{AnyTool, Run, Tool, execute};
use crate::untrusted::Untrusted;

/// A platform that a test controls.
pub(super) struct Puppet {
    access: Mutex<Access>,
    /// If set, the user turns the feature off in this database while the platform is asked for access.
    turned_off: Mutex<Option<Db>>,
    dismissed: Mutex<Vec<NotificationId>>,
    /// Events reported as soon as Kai listens.
    script: Vec<Heard>,
}

impl Puppet {
    pub(super) fn with(access: Access, script: Vec<Heard>) -> Self {
        let access = Mutex::new(access);
        Self { access, turned_off: Mutex::default(), dismissed: Mutex::default(), script }
    }
}

impl Listener for Puppet {
    fn name(&self) -> &'static str {
        "puppet"
    }

    fn access(&self) -> Pin<Box<dyn Future<Output = Access> + Send + '_>> {
        if let Some(db) = lock(&self.turned_off).take() {
            db.write_now(|tx| toggle::turn_off(tx, START.parse().unwrap())).unwrap();
        }
        Box::pin(async { lock(&self.access).clone() })
    }

    fn listen(&self, ear: Ear) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            for heard in self.script.clone() {
                ear.tell(heard).await;
            }
            std::future::pending::<()>().await;
        })
    }

    fn dismiss<'a>(&'a self, id: &'a NotificationId) -> Dismissing<'a> {
        Box::pin(async {
            lock(&self.dismissed).push(id.clone());
            Ok(())
        })
    }
}

struct House {
    db: Db,
    clock: Arc<ManualClock>,
    puppet: Arc<Puppet>,
    source: Arc<Source>,
    sources: Arc<Sources>,
}

const START: &str = "2026-03-09T12:00:00Z";

impl House {
    async fn with(access: Access, script: Vec<Heard>) -> Self {
        let db = Db::in_memory(MIGRATIONS).unwrap();
        let clock = Arc::new(ManualClock::at(START.parse().unwrap()));
        let puppet = Arc::new(Puppet::with(access, script));
        let source = Arc::new(Source::new(puppet.clone()));
        let sources = Arc::new(Sources::new(Some(source.clone())));
        let house = Self { db, clock, puppet, source, sources };
        house.set(&NOTIFICATIONS_ENABLED.key, "true").await;
        house
    }

    async fn new() -> Self {
        Self::with(Access::Granted, vec![]).await
    }

    async fn set(&self, key: &str, value: &str) {
        let (key, value) = (key.to_owned(), value.to_owned());
        let set = self.db.write(move |tx| settings::store(tx, &key, &value)).await;
        set.unwrap_or_else(|e: DbError| panic!("{e}"));
    }

    async fn hear(&self, heard: Vec<Heard>) {
        self.hear_from(SourceId::HERE, heard).await;
    }

    async fn hear_from(&self, source: SourceId, heard: Vec<Heard>) {
        let now = self.clock.now();
        let hear = self.db.write(move |tx| {
            store::hear(tx, source, heard.iter().map(|heard| (now, heard)), &repeats::never)
        });
        hear.await.unwrap();
    }

    /// Pairs a phone of that name, whose notifications may be read.
    async fn pair(&self, name: &str) -> SourceId {
        let new = phones::store::NewPhone {
            device: name.to_owned(),
            name: name.to_owned(),
            certificate: vec![1],
            protocol: 8,
        };
        let now = self.clock.now();
        let paired = self.db.write(move |tx| Ok::<_, DbError>(phones::store::pair(tx, &new, now)?.source));
        let phone = paired.await.unwrap();
        assert!(toggle::turn_phone(&self.db, self.clock.as_ref(), &self.sources, phone, true).await.unwrap());
        phone
    }

    /// Adds the listener of a phone.
    fn add(&self, phone: SourceId, access: Access, script: Vec<Heard>) -> Arc<Puppet> {
        let puppet = Arc::new(Puppet::with(access, script));
        self.sources.add(Arc::new(Source::of(phone, puppet.clone())));
        puppet
    }

    async fn post(&self, id: &str, title: &str, text: &str) {
        self.hear(vec![posted(post(id, "org.app", title, text))]).await;
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<T, DbError> + Send + 'static,
    ) -> T {
        self.db.read(read).await.unwrap()
    }

    /// The queued notifications, as (id, revision, text).
    async fn queue(&self) -> Vec<(String, u32, String)> {
        let waiting: Vec<pending::Waiting<Record>> = self.read(|tx| pending::waiting(tx, QUEUE)).await;
        let told = |record: Record| {
            (record.id.as_str().to_owned(), record.revision, record.text.as_written().to_owned())
        };
        waiting.into_iter().map(|waiting| told(waiting.entry)).collect()
    }

    async fn kept(&self) -> Vec<Record> {
        let now = self.clock.now();
        self.read(move |tx| store::newest(tx, now, usize::MAX, |_| true)).await
    }

    async fn sync(&self) -> Sync {
        self.sync_of(SourceId::HERE).await
    }

    async fn sync_of(&self, source: SourceId) -> Sync {
        self.read(move |tx| store::sync(tx, source)).await
    }

    async fn gaps(&self) -> Vec<Gap> {
        self.gaps_of(SourceId::HERE).await
    }

    async fn gaps_of(&self, source: SourceId) -> Vec<Gap> {
        let now = self.clock.now();
        self.read(move |tx| store::gaps(tx, source, now)).await
    }

    fn shelf(&self) -> NotificationTools {
        NotificationTools { db: self.db.clone(), clock: self.clock.clone(), sources: self.sources.clone() }
    }

    fn capture(&self) -> Capture {
        Capture {
            db: self.db.clone(),
            clock: self.clock.clone(),
            source: self.source.clone(),
            repeats_sms: Arc::new(repeats::never),
        }
    }

    fn captures(&self) -> Captures {
        Captures {
            db: self.db.clone(),
            clock: self.clock.clone(),
            sources: self.sources.clone(),
            repeats_sms: Arc::new(repeats::never),
        }
    }

    async fn call(&self, tool: impl Tool, arguments: Value) -> Value {
        let result = execute(Ok(&tool), &Values::default(), &arguments.to_string(), &Run::BY_HAND).await;
        serde_json::from_str(&result.text).unwrap_or_else(|e| panic!("{e}: {}", result.text))
    }
}

fn post(id: &str, package: &str, title: &str, text: &str) -> Post {
    Post::new(NotificationId::new(id), package, title, text)
}

fn posted(post: Post) -> Heard {
    Heard::Posted(Box::new(post))
}

fn row(id: &str, revision: u32, text: &str) -> (String, u32, String) {
    (id.to_owned(), revision, text.to_owned())
}

#[tokio::test]
async fn the_same_key_is_one_record_and_the_same_content_no_news() {
    let house = House::new().await;
    house.post("1", "Alice", "Hi").await;
    house.post("2", "Bob", "Yo").await;
    house.post("1", "Alice", "Hi").await;
    assert_eq!(house.queue().await, [row("1", 1, "Hi"), row("2", 1, "Yo")]);
    house.clock.advance(SignedDuration::from_secs(5));
    house.post("1", "Alice", "Hi again").await;
    assert_eq!(house.queue().await, [row("2", 1, "Yo"), row("1", 2, "Hi again")]);
    let kept = house.kept().await;
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert_eq!((kept[0].revision, kept[0].text.as_written()), (2, "Hi again"));
    house.hear(vec![Heard::Closed(NotificationId::new("1"))]).await;
    assert_eq!(house.kept().await.len(), 2, "what was closed can still be found");
    house.post("1", "Alice", "Hi again").await;
    assert_eq!(house.queue().await.last(), Some(&row("1", 3, "Hi again")), "it came again");
    let sync = house.sync().await;
    assert_eq!(sync.last_seen_id, Some(NotificationId::new("1")));
    assert_eq!(sync.last_sync_at, Some(house.clock.now().as_millisecond()));
}

#[tokio::test]
async fn what_was_updated_while_it_was_shown_stays() {
    let house = House::new().await;
    house.post("1", "Alice", "Hi").await;
    house.post("2", "Bob", "Yo").await;
    let shown: Vec<i64> = house
        .read(|tx| pending::waiting::<Record>(tx, QUEUE))
        .await
        .into_iter()
        .map(|waiting| waiting.seq)
        .collect();
    house.post("1", "Alice", "Are you there?").await;
    let forgotten = house.db.write(move |tx| pending::forget(tx, QUEUE, &shown)).await;
    assert_eq!(forgotten.map_err(|e: DbError| e.to_string()), Ok(1));
    assert_eq!(house.queue().await, [row("1", 2, "Are you there?")]);
}

#[tokio::test]
async fn records_are_bounded_by_age_app_and_number() {
    let house = House::new().await;
    let burst = |app: &str, n: u32| {
        let app = app.to_owned();
        (0..n).map(move |k| posted(post(&format!("{app}{k}"), &app, "t", &k.to_string())))
    };
    house.hear(burst("a", 70).chain(burst("b", 30)).collect()).await;
    let kept = house.kept().await;
    let of = |app: &str| kept.iter().filter(|record| record.package_name == app).count();
    assert_eq!((of("a"), of("b")), (PER_APP as usize, 30));
    assert_eq!(kept.last().unwrap().id.as_str(), "a20", "the oldest gave way");
    assert_eq!(house.queue().await.len(), 100);
    for n in 0..60 {
        house.hear(burst(&format!("app{n:02}."), 50).collect()).await;
    }
    assert_eq!(house.kept().await.len(), ALL as usize);
    assert_eq!(house.queue().await.len(), 100);
    let dropped = house.read(|tx| pending::dropped(tx, QUEUE)).await;
    assert_eq!(dropped.iter().map(|(_, count)| count).sum::<u32>(), 3_000);
    assert!(dropped.contains(&("app07.".to_owned(), 50)), "{dropped:?}");

    house.clock.advance(SignedDuration::from_hours(25));
    assert_eq!(house.kept().await.len(), 0, "whoever reads looks at the age");
    assert_eq!(house.read(store::count).await, ALL);
    let now = house.clock.now();
    house.db.write(move |tx| store::tick(tx, now)).await.unwrap_or_else(|e: DbError| panic!("{e}"));
    assert_eq!(house.read(store::count).await, 0, "the tick sweeps");
    let id = house.queue().await[0].0.clone();
    let now = house.clock.now();
    let found = house.read(move |tx| store::find(tx, &NotificationId::new(&id), now)).await;
    assert!(found.is_some(), "what waits can be read");
}

#[tokio::test]
async fn a_clock_that_was_wrong_leaves_nothing_for_ever() {
    let house = House::new().await;
    house.clock.set("2030-01-01T00:00:00Z".parse().unwrap());
    house.post("1", "from", "the future").await;
    house.clock.set(START.parse().unwrap());
    assert_eq!(house.kept().await.len(), 0);
    house.hear(vec![Heard::Bound { standing: vec![] }]).await;
    assert_eq!(house.read(store::count).await, 0);
}

#[tokio::test]
async fn what_stood_there_before_can_be_found_and_is_no_news() {
    let house = House::new().await;
    let now = house.clock.now();
    let ago = |hours| Some(now.checked_sub(SignedDuration::from_hours(hours)).unwrap());
    let standing = vec![
        Post { posted_at: ago(2), ..post("1", "org.app", "Alice", "Hi") },
        Post { posted_at: ago(30), ..post("2", "org.app", "Bob", "old") },
        Post { posted_at: None, ongoing: Some(true), ..post("3", "org.player", "Song", "plays") },
        post("4", "org.app", "no time", "told"),
    ];
    house.hear(vec![Heard::Bound { standing: standing.clone() }]).await;
    let ids: Vec<String> = house.kept().await.iter().map(|r| r.id.as_str().to_owned()).collect();
    assert_eq!(ids, ["4", "1"]);
    assert_eq!(house.queue().await, []);
    house.hear(vec![posted(standing[0].clone())]).await;
    assert_eq!(house.queue().await, [], "it says the same");
    house.hear(vec![posted(post("1", "org.app", "Alice", "Hi again"))]).await;
    assert_eq!(house.queue().await, [row("1", 2, "Hi again")]);
    house.hear(vec![Heard::Bound { standing }]).await;
    assert_eq!(house.kept().await.len(), 2);
}

#[tokio::test]
async fn nothing_is_kept_while_it_is_off_or_ignored() {
    let house = House::new().await;
    house.set(&NOTIFICATIONS_IGNORED.key, "org.noisy,org.loud").await;
    house.hear(vec![posted(post("1", "org.loud", "a", "b"))]).await;
    house.set(&NOTIFICATIONS_ENABLED.key, "false").await;
    house.hear(vec![posted(post("2", "org.app", "a", "b"))]).await;
    assert_eq!((house.kept().await.len(), house.queue().await.len()), (0, 0));
    assert_eq!(house.sync().await.last_seen_id, None);
}

#[tokio::test]
async fn gaps_are_remembered() {
    let house = House::new().await;
    let at = |minutes: i64| {
        let start: Timestamp = START.parse().unwrap();
        start.checked_add(SignedDuration::from_mins(minutes)).unwrap()
    };
    let denied = || Heard::Unbound(Access::Denied("Allow it.".into()));
    for (minute, heard) in [
        (0, Heard::Bound { standing: vec![] }),
        (10, denied()),
        (11, denied()),
        (20, Heard::Bound { standing: vec![] }),
        // A requested stop, and later a kill at minute 45 that nothing reports.
        (30, Heard::Unbound(Access::Granted)),
        (40, Heard::Bound { standing: vec![] }),
    ] {
        house.clock.set(at(minute));
        house.hear(vec![heard]).await;
    }
    assert!(house.sync().await.listening);
    let tick = at(45);
    house.db.write(move |tx| store::tick(tx, tick)).await.unwrap_or_else(|e: DbError| panic!("{e}"));
    house.clock.set(at(60));
    house.hear(vec![Heard::Bound { standing: vec![] }]).await;
    house.clock.set(at(70));
    house.hear(vec![Heard::Unbound(Access::Silent("The bus is gone.".into()))]).await;
    assert_eq!(house.sync().await.last_error, Some("The bus is gone.".into()));
    let gap = |began, ended: Option<i64>, why: Said| Gap {
        began: at(began).as_millisecond(),
        ended: ended.map(|minute| at(minute).as_millisecond()),
        why,
    };
    let expected = [
        gap(10, Some(20), "Allow it.".into()),
        gap(30, Some(40), said::access_not_running()),
        gap(45, Some(60), said::access_not_running()),
        gap(70, None, "The bus is gone.".into()),
    ];
    assert_eq!(house.gaps().await, expected);
    house.clock.set(at(80));
    let off = house.clock.now();
    house.db.write(move |tx| toggle::turn_off(tx, off)).await.unwrap();
    assert_eq!(house.gaps().await[3].ended, Some(at(80).as_millisecond()), "off is no gap");
    assert!(!house.sync().await.listening);
}

/// After a restart the tick runs before the new listener is bound, and must not count as a sign of life of the old one.
#[tokio::test]
async fn the_gap_after_a_crash_is_as_long_as_it_was_whatever_the_clock_says() {
    for (name, away, expected) in [("four hours", 240, 240), ("the clock went back", -30, 0)] {
        let house = House::new().await;
        let start: Timestamp = START.parse().unwrap();
        let write = |work: fn(&rusqlite::Transaction<'_>, Timestamp) -> Result<(), DbError>| {
            let now = house.clock.now();
            let db = house.db.clone();
            async move { db.write(move |tx| work(tx, now)).await.unwrap() }
        };
        house.hear(vec![Heard::Bound { standing: vec![] }]).await;
        house.clock.advance(SignedDuration::from_mins(1));
        write(store::tick).await;
        let died = house.clock.now();
        house.clock.set(died + SignedDuration::from_mins(away));
        write(|tx, _| store::begin(tx)).await;
        write(store::tick).await;
        assert!(!house.sync().await.listening, "{name}: nobody listens yet");
        house.hear(vec![Heard::Bound { standing: vec![] }]).await;
        write(store::tick).await;
        let gaps = house.gaps().await;
        let [gap] = gaps.as_slice() else { panic!("{name}: {gaps:?} since {start}") };
        assert_eq!(gap.began, died.as_millisecond(), "{name}");
        assert_eq!(gap.ended.unwrap() - gap.began, expected * 60_000, "{name}");
    }
}

#[tokio::test]
async fn turning_it_on_waits_for_access_and_comes_back_with_or_without() {
    let denied = || Access::Denied("Allow it in the settings.".into());
    let house = House::with(denied(), vec![]).await;
    house.set(&NOTIFICATIONS_ENABLED.key, "false").await;
    let (db, clock, source) = (&house.db, house.clock.as_ref(), house.source.as_ref());
    let on = async || house.read(settings::load).await.on(&NOTIFICATIONS_ENABLED);
    let state = async || {
        let sync = house.sync().await;
        (on().await, sync.waiting_since.is_some(), sync.hint.is_some())
    };
    let waits = toggle::turn_on(db, clock, &house.sources).await.unwrap();
    assert!(
        matches!(waits, Toggle::Waiting { ref todo, .. } if todo.to_string().starts_with("Allow")),
        "{waits:?}"
    );
    assert_eq!(state().await, (false, true, true));
    toggle::look_while_waiting(db, clock, source).await.unwrap();
    assert_eq!(state().await, (false, true, true), "the person is still away");
    toggle::come_back(db, clock, source).await.unwrap();
    assert_eq!(state().await, (false, false, true), "off, with a hint");
    toggle::turn_on(db, clock, &house.sources).await.unwrap();
    *house.puppet.access.lock().unwrap() = Access::Granted;
    toggle::look_while_waiting(db, clock, source).await.unwrap();
    assert_eq!(state().await, (false, true, true), "asked no more than once a minute");
    house.clock.advance(SignedDuration::from_secs(61));
    toggle::look_while_waiting(db, clock, source).await.unwrap();
    assert_eq!(state().await, (true, false, false), "on, and no hint left");
    *house.puppet.access.lock().unwrap() = denied();
    house.clock.advance(SignedDuration::from_mins(10));
    toggle::look_while_waiting(db, clock, source).await.unwrap();
    toggle::come_back(db, clock, source).await.unwrap();
    assert_eq!(state().await, (true, false, false), "what is revoked later stays on");
}

/// The platform takes seconds to answer; meanwhile the user turns the feature off again.
#[tokio::test]
async fn who_turns_it_off_while_it_is_looked_at_has_the_last_word() {
    for answer in [Access::Granted, Access::Denied("Allow it.".into())] {
        let house = House::with(Access::Denied("Allow it.".into()), vec![]).await;
        let (db, clock, source) = (&house.db, house.clock.as_ref(), house.source.as_ref());
        toggle::turn_on(db, clock, &house.sources).await.unwrap();
        house.clock.advance(SignedDuration::from_secs(61));
        *house.puppet.access.lock().unwrap() = answer;
        *house.puppet.turned_off.lock().unwrap() = Some(db.clone());
        toggle::look_while_waiting(db, clock, source).await.unwrap();
        assert!(!house.read(settings::load).await.on(&NOTIFICATIONS_ENABLED));
        assert_eq!(house.sync().await.waiting_since, None);
    }
}

#[tokio::test]
async fn the_capture_follows_the_switch_and_tells_when_it_stops() {
    let script = vec![Heard::Bound { standing: vec![] }, posted(post("1", "org.app", "a", "b"))];
    let house = House::with(Access::Granted, script).await;
    house.set(&NOTIFICATIONS_ENABLED.key, "false").await;
    let capture = house.capture();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(async move {
        capture.run(async { drop(stopped.await) }).await;
    });
    tokio::task::yield_now().await;
    assert_eq!(house.sync().await, Sync::default(), "nobody listens while it is off");
    toggle::turn_on(&house.db, house.clock.as_ref(), &house.sources).await.unwrap();
    while house.queue().await.is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(house.sync().await.listening);
    assert_eq!(house.source.known(), Some(Access::Granted));
    stop.send(()).unwrap();
    running.await.unwrap();
    assert!(!house.sync().await.listening);
    assert_eq!(house.gaps().await.len(), 1, "from now on nothing is heard");
}

/// A result names exactly the notifications that it holds; without any it does not raise the level.
#[tokio::test]
async fn a_result_says_which_notifications_it_holds() {
    let house = House::new().await;
    let meaning = async |tool: &dyn AnyTool, arguments: &str| {
        let result = execute(Ok(tool), &Values::default(), arguments, &Run::BY_HAND).await;
        (result.meaning.taint, result.meaning.mentions)
    };
    let nothing = (Level::Nothing, vec![]);
    let held = |ids: &[&str]| (Level::People, ids.iter().map(|id| format!("notification {id}")).collect());
    let (check, read) = (CheckNotifications(house.shelf()), ReadNotification(house.shelf()));
    let search = SearchNotifications(house.shelf());
    assert_eq!(meaning(&check, "{}").await, nothing);
    house.hear(vec![posted(post("1", "org.a", "A", "one")), posted(post("2", "org.b", "B", "two"))]).await;
    assert_eq!(meaning(&check, "{}").await, held(&["1", "2"]));
    assert_eq!(meaning(&read, r#"{"id": "1"}"#).await, held(&["1"]));
    assert_eq!(meaning(&read, r#"{"id": "3"}"#).await, nothing);
    assert_eq!(meaning(&search, r#"{"query": "two"}"#).await, held(&["2"]));
    assert_eq!(meaning(&search, r#"{"query": "three"}"#).await, nothing);
    assert_eq!(meaning(&DismissNotification(house.shelf()), r#"{"id": "1"}"#).await, nothing);
}

#[tokio::test]
async fn a_model_looks_reads_and_searches() {
    let house = House::new().await;
    let said = |sender: &str, text: &str| ChatMessage {
        sender: Untrusted::new(sender),
        text: Untrusted::new(text),
        time: Some(1),
    };
    let chat = Post {
        app_label: Some(Untrusted::new("WhatsApp")),
        messages: vec![said("Bob", "one"), said("Alice", "two")],
        category: Some("msg".to_owned()),
        ..post("0|com.whatsapp|1", "com.whatsapp", "Club", "2 new messages")
    };
    house.hear(vec![posted(chat), posted(post("2", "org.bank", "Bank", "hello"))]).await;
    let check = house.call(CheckNotifications(house.shelf()), json!({})).await;
    let expected = json!({
        "id": "0|com.whatsapp|1", "package_name": "com.whatsapp", "app_label": "WhatsApp", "title": "Club",
        "posted_at": 1_773_057_600_000_i64, "posted_at_local": "2026-03-09T12:00:00+00:00",
        "preview": "Alice: two", "sensitive": false,
    });
    assert_eq!(
        (&check["success"], &check["count"], &check["untrusted"]),
        (&json!(true), &json!(2), &json!(true))
    );
    assert_eq!(check["notifications"][0], expected);
    let read = house.call(ReadNotification(house.shelf()), json!({"id": " 0|com.whatsapp|1 "})).await;
    assert_eq!(read["text"], "2 new messages");
    assert_eq!(read["messages"][1], json!({"sender": "Alice", "text": "two", "time": 1}));
    assert_eq!(
        (&read["category"], &read["is_ongoing"], &read["subtext"]),
        (&json!("msg"), &Value::Null, &Value::Null)
    );
    assert_eq!(read["untrusted"], true);
    let plain = house.call(ReadNotification(house.shelf()), json!({"id": "2"})).await;
    assert_eq!(plain.get("messages"), None);
    for (arguments, expected) in [
        (json!({"query": "CLUB"}), vec!["0|com.whatsapp|1"]),
        (json!({"query": "one"}), vec!["0|com.whatsapp|1"]),
        (json!({"query": "hello", "package_name": ""}), vec!["2"]),
        (json!({"query": "hello", "package_name": "com.whatsapp"}), vec![]),
    ] {
        let found = house.call(SearchNotifications(house.shelf()), arguments.clone()).await;
        let ids: Vec<&str> =
            found["notifications"].as_array().unwrap().iter().map(|n| n["id"].as_str().unwrap()).collect();
        assert_eq!(ids, expected, "{arguments}");
    }
    let blank = house.call(SearchNotifications(house.shelf()), json!({"query": " "})).await;
    assert_eq!(blank["success"], false);
    let unknown = house.call(ReadNotification(house.shelf()), json!({"id": "9"})).await;
    assert!(unknown["error"].as_str().unwrap().contains("no notification with the id 9"), "{unknown}");
}

#[tokio::test]
async fn a_search_brings_twenty_and_a_list_what_fits() {
    let house = House::new().await;
    let long = "x".repeat(500);
    for n in 0..90 {
        house.clock.advance(SignedDuration::from_secs(1));
        house
            .hear(vec![posted(post(&n.to_string(), &format!("app{}", n % 9), "t", &format!("{n} {long}")))])
            .await;
    }
    let found = house.call(SearchNotifications(house.shelf()), json!({"query": "xxx"})).await;
    assert_eq!(found["notifications"][0]["id"], "89", "newest first");
    let shown = found["notifications"].as_array().unwrap().len() as u64;
    assert_eq!(shown + found["more"].as_u64().unwrap_or_default(), 20);
    let check = house.call(CheckNotifications(house.shelf()), json!({})).await;
    let shown = check["notifications"].as_array().unwrap().len() as u64;
    assert!(shown > 10 && shown + check["more"].as_u64().unwrap() == 90, "{shown} {}", check["more"]);
    assert_eq!((&check["notifications"][0]["id"], &check["untrusted"]), (&json!("89"), &json!(true)));
    assert_eq!((&check["count"], &check["total"]), (&json!(shown), &json!(90)));
    // Page by page, each notification is listed once.
    let mut listed: Vec<u64> = vec![];
    let mut arguments = json!({});
    loop {
        let page = house.call(CheckNotifications(house.shelf()), arguments).await;
        let ids = page["notifications"].as_array().unwrap().iter();
        listed.extend(ids.map(|n| n["id"].as_str().unwrap().parse::<u64>().unwrap()));
        if page.get("more").is_none() {
            break;
        }
        arguments = json!({"before": listed.last().unwrap().to_string()});
    }
    assert_eq!(listed, (0..90).rev().collect::<Vec<u64>>());
    let gone = house.call(CheckNotifications(house.shelf()), json!({"before": "4711"})).await;
    assert!(gone["error"].as_str().unwrap().contains("4711"), "{gone}");
}

#[tokio::test]
async fn twenty_hits_are_twenty_in_every_script() {
    for word in ["hello", "привет", "你好嗎"] {
        let house = House::new().await;
        let text: String = word.chars().chain([' ']).cycle().take(300).collect();
        for n in 0..20 {
            house.clock.advance(SignedDuration::from_secs(1));
            house.hear(vec![posted(post(&n.to_string(), "app", "t", &format!("{n} {text}")))]).await;
        }
        let found = house.call(SearchNotifications(house.shelf()), json!({"query": word})).await;
        assert_eq!((&found["count"], found.get("more")), (&json!(20), None), "{word}");
    }
}

#[tokio::test]
async fn one_time_codes_are_hidden_from_a_model_unless_the_person_wants_otherwise() {
    let house = House::new().await;
    house.post("1", "Bank", "Your verification code is 482913. Do not share it.").await;
    let seen = async |arguments: Value| house.call(SearchNotifications(house.shelf()), arguments).await;
    let check = house.call(CheckNotifications(house.shelf()), json!({})).await;
    let preview = check["notifications"][0]["preview"].as_str().unwrap();
    assert!(preview.contains("[code]") && !preview.contains("482913"), "{preview}");
    let read = house.call(ReadNotification(house.shelf()), json!({"id": "1"})).await;
    assert!(!read.to_string().contains("482913"), "{read}");
    assert_eq!(seen(json!({"query": "482913"})).await["count"], 0, "or a search would tell it");
    assert_eq!(seen(json!({"query": "verification"})).await["count"], 1);
    house.set("code_redaction_enabled", "false").await;
    assert_eq!(seen(json!({"query": "482913"})).await["count"], 1);
}

#[tokio::test]
async fn only_what_is_there_is_dismissed() {
    let house = House::new().await;
    house.post("1", "a", "b").await;
    let gone = house.call(DismissNotification(house.shelf()), json!({"id": "7"})).await;
    assert_eq!(gone["success"], false);
    let done = house.call(DismissNotification(house.shelf()), json!({"id": "1"})).await;
    assert_eq!(done["success"], true, "{done}");
    house.hear(vec![Heard::Closed(NotificationId::new("1"))]).await;
    let again = house.call(DismissNotification(house.shelf()), json!({"id": "1"})).await;
    assert_eq!(again["message"], "It was gone already.");
    assert_eq!(*house.puppet.dismissed.lock().unwrap(), [NotificationId::new("1")]);
}

#[tokio::test]
async fn without_access_the_tools_are_not_offered() {
    let house = House::with(Access::Denied("Allow it.".into()), vec![]).await;
    let tool = CheckNotifications(house.shelf());
    assert_eq!(Tool::lacks(&tool), None, "nobody has asked yet");
    Tool::probe_access(&tool).await;
    assert_eq!(Tool::lacks(&tool), Some(said::lacks_notifications("Allow it.").into()));
    let nowhere =
        CheckNotifications(NotificationTools { sources: Arc::new(Sources::new(None)), ..house.shelf() });
    assert_eq!(Tool::lacks(&nowhere), Some(said::lacks_source().into()));
}

/// Makes the store fail for texts that begin with "fragile" while `broken` has rows: as with a full disk, after part of
/// the work.
const FAILING: &str = "CREATE TEMP TABLE broken (n INTEGER);
    CREATE TEMP TRIGGER fail BEFORE INSERT ON main.notifications
    WHEN (SELECT count(*) FROM broken) > 0 AND NEW.record LIKE '%\"fragile%'
    BEGIN SELECT RAISE(ABORT, 'the disk is full'); END;";

/// One step of a random test of the writer.
#[derive(Debug, Clone)]
enum Act {
    Post {
        key: u8,
        fragile: bool,
    },
    Close {
        key: u8,
    },
    /// From now on the store rejects fragile texts (`true`), or accepts them again (`false`).
    Break(bool),
    /// The writer dies between two steps and loses whatever it has not written.
    Crash,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        6 => (0_u8..8, any::<bool>()).prop_map(|(key, fragile)| Act::Post { key, fragile }),
        1 => (0_u8..8).prop_map(|key| Act::Close { key }),
        1 => any::<bool>().prop_map(Act::Break),
        1 => Just(Act::Crash),
    ];
    proptest::collection::vec(act, 1..60)
}

/// Plays the acts against one store. Returns what was acknowledged and what is stored, each as (key, number of the
/// act).
async fn play(acts: Vec<Act>) -> (Vec<(u8, usize)>, Vec<(u8, usize)>) {
    let house = House::new().await;
    house.db.write_now(|tx| tx.execute_batch(FAILING).map_err(DbError::from)).unwrap();
    let start = || {
        let (ear, told) = Ear::new(house.source.clone(), house.clock.clone());
        let capture = house.capture();
        (ear, tokio::spawn(async move { capture.write(told).await }))
    };
    let (mut ear, mut writer) = start();
    let (mut receipts, mut sent) = (vec![], vec![]);
    for (n, act) in acts.into_iter().enumerate() {
        match act {
            Act::Post { key, fragile } => {
                let text = format!("{} {n}", if fragile { "fragile" } else { "sound" });
                let heard = posted(post(&key.to_string(), "org.app", "t", &text));
                sent.push((key, n));
                receipts.push(((key, n), ear.tell(heard).await));
            }
            Act::Close { key } => drop(ear.tell(Heard::Closed(NotificationId::new(&key.to_string()))).await),
            Act::Break(broken) => {
                let sql = if broken { "INSERT INTO broken VALUES (1)" } else { "DELETE FROM broken" };
                house.db.write_now(|tx| tx.execute(sql, []).map_err(DbError::from)).unwrap();
            }
            Act::Crash => {
                writer.abort();
                drop(writer.await);
                (ear, writer) = start();
            }
        }
        if n % 3 == 0 {
            tokio::task::yield_now().await;
        }
    }
    house.db.write_now(|tx| tx.execute("DELETE FROM broken", []).map_err(DbError::from)).unwrap();
    drop(ear);
    writer.await.unwrap();
    let mut acknowledged = vec![];
    for (what, receipt) in receipts {
        if receipt.durable().await {
            acknowledged.push(what);
        }
    }
    let number = |record: Record| {
        let n = record.text.as_written().rsplit(' ').next().unwrap().parse().unwrap();
        (record.id.as_str().parse().unwrap(), n)
    };
    (acknowledged, house.kept().await.into_iter().map(number).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever fails or crashes, an acknowledged post is stored, unless a later one with its key replaced it.
    #[test]
    fn what_was_acknowledged_is_never_lost(acts in acts()) {
        // One blocking thread: work that a dead writer began ends before its successor's begins, as with two processes.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let (acknowledged, kept) = runtime.block_on(play(acts));
        for (key, n) in acknowledged {
            let there = kept.iter().any(|(other, later)| *other == key && *later >= n);
            prop_assert!(there, "{key} of act {n} was acknowledged and is gone: {kept:?}");
        }
    }
}

#[tokio::test]
async fn forgetting_all_leaves_nothing_of_any_notification() {
    let house = House::new().await;
    house.hear(vec![Heard::Unbound(Access::Granted)]).await;
    for n in 0..120 {
        house.post(&n.to_string(), "title", "text").await;
    }
    assert_ne!(house.sync().await, Sync::default());
    assert_eq!(house.gaps().await.len(), 1);
    let gone = house.db.write(store::forget_all).await.unwrap();
    assert_eq!(gone, (50, 100), "as many of one app as are kept, and as many as may wait");
    assert!(house.queue().await.is_empty() && house.kept().await.is_empty());
    assert_eq!(house.read(|tx| pending::dropped(tx, QUEUE)).await, []);
    assert_eq!(house.sync().await, Sync::default());
    assert_eq!(house.gaps().await, []);
}

mod many;
