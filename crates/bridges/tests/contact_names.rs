//! Contact names of the phone that Kai runs on: when they are read, what is kept of them, and what tools do with them.

#![cfg(feature = "sms")]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::pin::Pin;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::MIGRATIONS;
use kai_assistant::access::Access;
use kai_assistant::clock::{Clock, ManualClock};
use kai_assistant::db::{Db, DbError};
use kai_assistant::gate::Level;
use kai_assistant::outbox::door::Senders;
use kai_assistant::outbox::{Draft, store};
use kai_assistant::phones::port::Contact;
use kai_assistant::settings::{self, CONTACT_NAMES_ENABLED, SMS_ENABLED, Values};
use kai_assistant::sms::names::{self, LastRead};
use kai_assistant::sms::port::{From, Reading, SmsReader};
use kai_assistant::sms::{ContactBook, DraftingPhones, Inbox, Received, SearchSms, SendSms, Sms};
use kai_assistant::source::SourceId;
use kai_assistant::tool::{AnyTool, Run, ToolResult, execute};
use kai_assistant::untrusted::Untrusted;
use kai_bridges::simulated::Phone;
use serde_json::{Value, json};

struct World {
    db: Db,
    clock: Arc<ManualClock>,
    phone: Arc<Phone>,
    inbox: Arc<Inbox>,
    book: ContactBook,
}

fn world() -> World {
    let clock = Arc::new(ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
    let (phone, db) = (Arc::new(Phone::new(clock.clone())), Db::in_memory(MIGRATIONS).unwrap());
    let inbox = Arc::new(Inbox::new(phone.clone(), clock.clone()));
    let book = ContactBook::new(db.clone(), clock.clone(), inbox.clone());
    World { db, clock, phone, inbox, book }
}

fn turn(db: &Db, on: bool) {
    let value = if on { "true" } else { "false" };
    db.write_now(|tx| settings::store(tx, &CONTACT_NAMES_ENABLED.key, value))
        .map_err(|e: DbError| e)
        .unwrap();
}

fn name(db: &Db, number: &str) -> Option<String> {
    let name = db.read_now(|tx| names::beside(tx, number)).unwrap();
    name.map(|name| name.as_written().to_owned())
}

impl World {
    /// A world with these contacts, and names on.
    async fn with(contacts: &[(&str, &str)]) -> Self {
        let world = world();
        for (name, number) in contacts {
            world.phone.save_contact(name, number);
        }
        turn(&world.db, true);
        world.book.read_if_due().await.unwrap();
        world
    }

    fn error(&self) -> Option<String> {
        let last: Option<LastRead> = self.db.read_now(|tx| names::last_read(tx, SourceId::HERE)).unwrap();
        last.and_then(|last| last.error).map(|error| error.to_string())
    }

    fn later(&self, minutes: i64) {
        self.clock.advance(SignedDuration::from_mins(minutes));
    }

    fn received(&self) -> Received {
        Received::new(self.db.clone(), Some(self.inbox.clone()))
    }

    async fn send(&self, to: &str) -> (ToolResult, Value) {
        let senders = Arc::new(Senders::default());
        senders.register(SourceId::HERE, self.phone.clone());
        let phones = Arc::new(DraftingPhones::new(self.db.clone(), self.clock.clone(), senders));
        let (db, clock) = (self.db.clone(), self.clock.clone());
        run(&SendSms { db, clock, received: self.received(), phones }, &json!({"to": to, "body": "Hi"})).await
    }

    fn drafts(&self) -> Vec<Draft> {
        self.db.read_now(store::all).unwrap()
    }
}

async fn run(tool: &dyn AnyTool, arguments: &Value) -> (ToolResult, Value) {
    let result = execute(Ok(tool), &Values::default(), &arguments.to_string(), &Run::BY_HAND).await;
    let parsed = serde_json::from_str(&result.text).unwrap_or_default();
    (result, parsed)
}

const LENA: &str = "+15550100101";

#[tokio::test]
async fn contacts_are_read_when_names_are_turned_on_and_then_once_an_hour() {
    let world = world();
    world.phone.save_contact("Lena", LENA);
    world.book.read_if_due().await.unwrap();
    assert_eq!(name(&world.db, LENA), None, "names are off");
    turn(&world.db, true);
    world.book.read_if_due().await.unwrap();
    assert_eq!(name(&world.db, LENA).as_deref(), Some("Lena"));
    world.phone.save_contact("Tom", "+15550100102");
    world.later(59);
    world.book.read_if_due().await.unwrap();
    assert_eq!(name(&world.db, "+15550100102"), None, "not yet");
    world.later(1);
    world.book.read_if_due().await.unwrap();
    assert_eq!(name(&world.db, "+15550100102").as_deref(), Some("Tom"));
    turn(&world.db, false);
    assert_eq!(name(&world.db, LENA), None, "they go at once");
    turn(&world.db, true);
    world.book.read_if_due().await.unwrap();
    assert_eq!(name(&world.db, LENA).as_deref(), Some("Lena"), "and come back at once");
}

#[tokio::test]
async fn a_failure_is_noted_and_costs_no_name() {
    let world = World::with(&[("Lena", LENA)]).await;
    world.phone.fail_contacts("The app is gone.");
    world.later(60);
    world.book.read_if_due().await.unwrap();
    assert_eq!(
        (name(&world.db, LENA).as_deref(), world.error().as_deref()),
        (Some("Lena"), Some("The app is gone."))
    );
    assert_eq!(world.inbox.lacks(), None, "messages have a permission of their own");
    world.phone.open_contacts();
    world.later(60);
    world.book.read_if_due().await.unwrap();
    assert_eq!(world.error(), None);
}

/// A phone on which names are turned off while it lists its contacts.
struct TurnedOff(Db);

impl SmsReader for TurnedOff {
    fn access(&self) -> Pin<Box<dyn Future<Output = Access> + Send + '_>> {
        Box::pin(async { Access::Granted })
    }

    fn last(&self) -> Reading<'_, Option<Sms>> {
        Box::pin(async { Ok(None) })
    }

    fn from(&self, _: From, _: usize) -> Reading<'_, Vec<Sms>> {
        Box::pin(async { Ok(vec![]) })
    }

    fn newest(&self, _: usize, _: usize) -> Reading<'_, Vec<Sms>> {
        Box::pin(async { Ok(vec![]) })
    }

    fn contacts(&self) -> Reading<'_, Vec<Contact>> {
        Box::pin(async {
            turn(&self.0, false);
            let numbers = vec![Untrusted::new(LENA)];
            Ok(vec![Contact { uid: "1".to_owned(), name: Untrusted::new("Lena"), numbers }])
        })
    }
}

#[tokio::test]
async fn names_that_were_turned_off_meanwhile_are_not_kept() {
    let World { db, clock, .. } = world();
    let inbox = Arc::new(Inbox::new(Arc::new(TurnedOff(db.clone())), clock.clone()));
    turn(&db, true);
    ContactBook::new(db.clone(), clock, inbox).read_if_due().await.unwrap();
    assert_eq!(name(&db, LENA), None);
    assert_eq!(db.read_now(|tx| names::last_read(tx, SourceId::HERE)).unwrap(), None);
}

#[tokio::test]
async fn a_name_that_one_number_has_is_drafted_to_that_number() {
    let world = World::with(&[("Lena", "+1 555 010 0101"), ("Lena Work", "+15550100102")]).await;
    let (result, staged) = world.send(" lena").await;
    assert_eq!((&staged["to"], &staged["status"]), (&json!(LENA), &json!("PENDING")), "{}", result.text);
    assert_eq!(world.drafts()[0].to, LENA);
    assert_eq!(result.meaning.taint, Level::Nothing, "nothing that others chose is in it: {}", result.text);
    let (number, _) = world.send("+15550100199").await;
    assert!(number.success, "numbers work as before: {}", number.text);
}

#[tokio::test]
async fn a_name_that_means_nobody_or_several_drafts_nothing() {
    let toms: Vec<(String, String)> =
        (0..7).map(|n| (format!("Tom {n}"), format!("+155501002{n:02}"))).collect();
    let mut contacts: Vec<(&str, &str)> =
        toms.iter().map(|(name, number)| (name.as_str(), number.as_str())).collect();
    contacts.extend([("Lena", LENA), ("Lena", "+15550100102")]);
    let world = World::with(&contacts).await;
    let candidates = |result: &Value| result["candidates"].as_array().unwrap().len();
    let (result, unclear) = world.send("Lena").await;
    assert_eq!(
        unclear["candidates"],
        json!(["Lena · +15550100101", "Lena · +15550100102"]),
        "{}",
        result.text
    );
    assert_eq!((result.meaning.taint, &unclear["untrusted"]), (Level::People, &json!(true)));
    let (result, unclear) = world.send("tom").await;
    assert_eq!((candidates(&unclear), result.meaning.taint), (5, Level::People));
    let (result, unclear) = world.send("Nobody").await;
    assert_eq!((candidates(&unclear), result.meaning.taint), (0, Level::Nothing), "there is no name in it");
    assert!(unclear["message"].as_str().unwrap().contains("no contact has this name"));
    assert_eq!(world.drafts(), []);
}

#[tokio::test]
async fn without_names_only_numbers_are_taken() {
    let world = World::with(&[("Lena", LENA)]).await;
    turn(&world.db, false);
    let (result, _) = world.send("Lena").await;
    assert!(!result.success && result.text.contains("phone number"), "{}", result.text);
    assert_eq!(world.drafts(), []);
}

#[tokio::test]
async fn messages_are_found_by_the_name_of_who_wrote_them() {
    let world = World::with(&[("Lena", "+1 555 010 0101"), ("Tom", "+15550100102")]).await;
    world.db.write_now(|tx| settings::store(tx, &SMS_ENABLED.key, "true")).map_err(|e: DbError| e).unwrap();
    world.phone.receive(LENA, "Dinner?", world.clock.now());
    world.phone.receive("+15550100102", "The report", world.clock.now());
    let clock: Arc<dyn Clock> = world.clock.clone();
    let search = SearchSms { received: world.received(), clock };
    let (result, found) = run(&search, &json!({"query": "lena"})).await;
    assert_eq!(
        (&found["count"], &found["messages"][0]["name"]),
        (&json!(1), &json!("Lena")),
        "{}",
        result.text
    );
    assert_eq!(found["messages"][0]["from"], LENA, "beside the number");
    assert_eq!(result.meaning.taint, Level::People);
    turn(&world.db, false);
    let (_, found) = run(&search, &json!({"query": "lena"})).await;
    assert_eq!(found["count"], 0);
}
