//! Drafts of paired phones, of both kinds: what leaves, by which phone, and what becomes of a draft when the phone
//! vanishes, answers late or never, or is unpaired, and when Kai dies in between.

#![cfg(all(feature = "sms", feature = "notifications"))]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use kai_assistant::MIGRATIONS;
use kai_assistant::access::Access;
use kai_assistant::clock::{Clock, ManualClock};
use kai_assistant::db::{Db, DbError};
use kai_assistant::drafts::CheckDrafts;
use kai_assistant::gate::{Level, RunKind};
use kai_assistant::ledger::{self, Record};
use kai_assistant::notifications::port::Heard;
use kai_assistant::notifications::record::Post;
use kai_assistant::notifications::{NotificationId, ReplyNotification, repeats, replying, store as shown};
use kai_assistant::outbox::door::{
    self, Act, Approved, ApprovedReply, Door, Looking, Refused, SendError, Sender, Senders, Sending,
    SentMessage, Tap,
};
use kai_assistant::outbox::store;
use kai_assistant::outbox::{Channel, Draft, DraftId, NewDraft, ReplyTo, Status, exits};
use kai_assistant::pending;
use kai_assistant::phones::store::{self as phones, NewPhone};
use kai_assistant::phones::{SourceId, Switch};
use kai_assistant::settings::{self, Values};
use kai_assistant::sms::{DraftingPhones, Received, SendSms};
use kai_assistant::tool::{Run, Tool, ToolResult, execute};
use kai_assistant::untrusted::Untrusted;
use kai_words::{Said, said};
use serde_json::json;
use tokio::sync::Notify;

/// What a phone did, in the order in which it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Did {
    Send(String, String),
    Compose(String, String),
    Reply(String, String),
}

/// What the next thing that a phone is told leads to.
enum Fate {
    /// It is done, the list shows it, and the phone says so.
    Ok,
    /// The phone is gone before it gets anything.
    Vanishes,
    Fails,
    /// No answer; the list shows it (or not).
    Unsure {
        listed: bool,
    },
    /// It is done only when the test lets it go on.
    Waits(Arc<Notify>),
    /// The phone is gone when the test lets it go on.
    VanishesLater(Arc<Notify>),
    Hangs,
}

/// A paired phone in memory. Its clock may be off.
struct Handset {
    clock: Arc<ManualClock>,
    state: Mutex<State>,
    /// Whenever it was told something.
    told: Notify,
}

#[derive(Default)]
struct State {
    did: Vec<Did>,
    list: Vec<SentMessage>,
    fates: VecDeque<Fate>,
    behind: SignedDuration,
    list_hangs: bool,
}

impl Handset {
    fn new(clock: &Arc<ManualClock>) -> Arc<Self> {
        Arc::new(Self { clock: Arc::clone(clock), state: Mutex::default(), told: Notify::new() })
    }

    fn did(&self) -> Vec<Did> {
        self.state.lock().unwrap().did.clone()
    }

    fn next(&self, fate: Fate) {
        self.state.lock().unwrap().fates.push_back(fate);
    }

    fn is_behind(&self, span: SignedDuration) {
        self.state.lock().unwrap().behind = span;
    }

    fn list(&self, to: &str, body: &str) {
        let mut state = self.state.lock().unwrap();
        let at = self.clock.now().checked_sub(state.behind).unwrap();
        state.list.push(SentMessage { to: to.to_owned(), body: body.to_owned(), at });
    }

    async fn told(&self, did: Did, message: Option<(String, String)>) -> Result<(), SendError> {
        let fate = self.state.lock().unwrap().fates.pop_front().unwrap_or(Fate::Ok);
        if matches!(fate, Fate::Vanishes) {
            return Err(SendError::NotConnected);
        }
        if matches!(fate, Fate::Fails) {
            return Err(SendError::NotSent("No signal.".into()));
        }
        self.state.lock().unwrap().did.push(did);
        self.told.notify_one();
        match &fate {
            Fate::Waits(go_on) => go_on.notified().await,
            Fate::VanishesLater(go_on) => {
                go_on.notified().await;
                return Err(SendError::NotConnected);
            }
            Fate::Hangs => std::future::pending().await,
            _ => {}
        }
        if let (Some((to, body)), false) = (&message, matches!(fate, Fate::Unsure { listed: false })) {
            self.list(to, body);
        }
        match fate {
            Fate::Unsure { .. } => Err(SendError::Unsure("The phone did not show it.".into())),
            _ => Ok(()),
        }
    }
}

impl Sender for Handset {
    fn send(&self, approved: Approved) -> Sending<'_> {
        let (to, body) = (approved.to().to_owned(), approved.body().to_owned());
        Box::pin(self.told(Did::Send(to.clone(), body.clone()), Some((to, body))))
    }

    fn sent_since(&self, at: Timestamp) -> Looking<'_> {
        Box::pin(async move {
            let (hangs, list) = {
                let state = self.state.lock().unwrap();
                (state.list_hangs, state.list.clone())
            };
            if hangs {
                std::future::pending::<()>().await;
            }
            Some(list.into_iter().filter(|sent| sent.at >= at).collect())
        })
    }

    fn compose(&self, approved: Approved) -> Sending<'_> {
        let did = Did::Compose(approved.to().to_owned(), approved.body().to_owned());
        Box::pin(self.told(did, None))
    }

    fn reply(&self, approved: ApprovedReply) -> Sending<'_> {
        let did = Did::Reply(approved.reply_id().to_owned(), approved.body().to_owned());
        Box::pin(self.told(did, None))
    }
}

const PIXEL: SourceId = SourceId(2);
const WORK: SourceId = SourceId(3);
const TO: &str = "+15550100";

struct World {
    clock: Arc<ManualClock>,
    db: Db,
    door: Door,
    pixel: Arc<Handset>,
    work: Arc<Handset>,
}

/// Two paired phones, both connected, with every switch on.
async fn world() -> World {
    let clock = Arc::new(ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
    let db = Db::in_memory(MIGRATIONS).unwrap();
    let now = clock.now();
    let paired = move |tx: &rusqlite::Transaction<'_>| {
        for (device, name) in [("a", "Pixel"), ("b", "Work")] {
            let new = NewPhone {
                device: device.to_owned(),
                name: name.to_owned(),
                certificate: vec![1],
                protocol: 8,
            };
            let phone = phones::pair(tx, &new, now)?;
            for switch in Switch::ALL {
                phones::set(tx, phone.source, switch, true)?;
            }
        }
        settings::store(tx, &settings::NOTIFICATIONS_ENABLED.key, "true")
    };
    db.write(paired).await.unwrap();
    let (pixel, work, senders) = (Handset::new(&clock), Handset::new(&clock), Arc::new(Senders::default()));
    senders.register(PIXEL, pixel.clone());
    senders.register(WORK, work.clone());
    let door = Door {
        mailer: None,
        db: db.clone(),
        clock: clock.clone(),
        senders,
        answerable: replying::answerable,
        under_way: Arc::default(),
    };
    World { clock, db, door, pixel, work }
}

fn new(phone: SourceId, body: &str) -> NewDraft {
    NewDraft {
        channel: Channel::Sms,
        phone,
        to: TO.to_owned(),
        app: None,
        body: body.to_owned(),
        mail: None,
        in_reply_to: None,
        quoted: None,
        known_contact: false,
        origin: RunKind::Chat,
        guest: None,
        conversation: 0,
    }
}

fn tap(draft: &Draft, act: Act) -> Tap {
    Tap { draft: draft.id, act, shown: draft.digest(), attempts: draft.attempts }
}

fn send(draft: &Draft) -> Tap {
    tap(draft, Act::fitting(&draft.status).unwrap())
}

impl World {
    async fn stage(&self, new: NewDraft) -> Draft {
        let now = self.clock.now();
        self.db.write(move |tx| store::stage(tx, &new, now)).await.unwrap()
    }

    async fn draft(&self, id: DraftId) -> Draft {
        let now = self.clock.now();
        let all = self.db.read(move |tx| door::drafts(tx, now)).await.map_err(|e: DbError| e).unwrap();
        all.into_iter().find(|draft| draft.id == id).unwrap()
    }

    async fn state(&self, id: DraftId) -> &'static str {
        self.draft(id).await.status.state().as_str()
    }

    async fn write(&self, sql: &'static str) {
        self.db.write(move |tx| Ok::<_, DbError>(tx.execute_batch(sql)?)).await.unwrap();
    }

    /// The process that sent is gone: its leases are those of a dead one.
    async fn die(&self) {
        self.write("UPDATE leases SET pid = 999999999").await;
    }

    async fn set(&self, phone: SourceId, switch: Switch, on: bool) {
        assert!(self.db.write(move |tx| phones::set(tx, phone, switch, on)).await.unwrap());
    }

    /// Begins a tap and waits until the phone was told.
    async fn begin(&self, phone: &Handset, tap: Tap) -> tokio::task::JoinHandle<Result<Draft, Refused>> {
        let door = self.door.clone();
        let tapping = tokio::spawn(async move { door.tap(tap).await });
        phone.told.notified().await;
        tapping
    }

    /// Something happens to a notification, on the phone that its id names.
    async fn hear(&self, heard: Heard) {
        let now = self.clock.now();
        let (source, heard) = told(heard);
        self.db.write(move |tx| shown::hear(tx, source, [(now, &heard)], &repeats::never)).await.unwrap();
    }

    async fn show(&self, title: &str, text: &str, reply_id: Option<&str>) {
        self.hear(Heard::Posted(Box::new(chat(title, text, reply_id)))).await;
    }

    async fn reply(&self, id: &str, body: &str) -> ToolResult {
        let tool = ReplyNotification::new(self.db.clone(), self.clock.clone());
        let arguments = json!({"id": id, "body": body}).to_string();
        execute(Ok(&tool), &Values::default(), &arguments, &Run::BY_HAND).await
    }

    /// A draft that answers the chat.
    async fn drafted(&self, body: &str) -> Draft {
        let staged = self.reply(CHAT, body).await;
        assert!(staged.success, "{}", staged.text);
        let staged: serde_json::Value = serde_json::from_str(&staged.text).unwrap();
        self.draft(DraftId(staged["draft_id"].as_i64().unwrap())).await
    }

    async fn check_drafts(&self) -> ToolResult {
        let tool = CheckDrafts { db: self.db.clone(), clock: self.clock.clone() };
        execute(Ok(&tool), &Values::default(), "{}", &Run::BY_HAND).await
    }

    async fn records(&self) -> Vec<Record> {
        self.db.read(ledger::all).await.unwrap()
    }
}

const CHAT: &str = "p2:0|org.signal|7|null|10123";

/// The source that the ids name, and the event as its bridge tells it: with keys of its own.
fn told(heard: Heard) -> (SourceId, Heard) {
    let bare = |post: Post| Post { id: post.id.key(), ..post };
    match heard {
        Heard::Posted(post) => (post.id.source(), Heard::Posted(Box::new(bare(*post)))),
        Heard::Standing(post) => (post.id.source(), Heard::Standing(Box::new(bare(*post)))),
        Heard::Closed(id) => (id.source(), Heard::Closed(id.key())),
        Heard::Bound { standing } => {
            (PIXEL, Heard::Bound { standing: standing.into_iter().map(bare).collect() })
        }
        other @ Heard::Unbound(_) => (PIXEL, other),
    }
}

fn chat(title: &str, text: &str, reply_id: Option<&str>) -> Post {
    Post {
        app_label: Some(Untrusted::new("Signal")),
        reply_id: reply_id.map(str::to_owned),
        ..Post::new(NotificationId::new(CHAT), "org.signal", title, text)
    }
}

#[tokio::test]
async fn a_draft_leaves_by_its_own_phone() {
    let world = world().await;
    let (by_pixel, by_work) = (world.stage(new(PIXEL, "Hi")).await, world.stage(new(WORK, "Hi")).await);
    assert_ne!(by_pixel.digest(), by_work.digest(), "who sees one has not seen the other");
    assert_eq!(world.door.tap(send(&by_work)).await.unwrap().status, Status::Sent(Said::default()));
    assert_eq!(world.work.did(), [Did::Send(TO.to_owned(), "Hi".to_owned())]);
    assert_eq!(world.pixel.did(), []);
    let drafted = |record: &Record| matches!(record, Record::Draft { phone, .. } if *phone == WORK);
    assert_eq!(world.records().await.iter().filter(|record| drafted(record)).count(), 1);
}

#[tokio::test]
async fn a_tap_for_a_phone_that_is_away_changes_nothing() {
    let world = world().await;
    let draft = world.stage(new(PIXEL, "Hi")).await;
    let pixel = world.pixel.clone() as Arc<dyn Sender>;
    world.door.senders.remove(PIXEL, &pixel);
    let refused = world.door.tap(send(&draft)).await.unwrap_err().to_string();
    assert_eq!(refused, "Your phone \"Pixel\" is not connected, so nothing was sent.");
    assert_eq!(world.draft(draft.id).await, draft);
    world.door.senders.register(PIXEL, pixel);
    assert_eq!(world.door.tap(send(&draft)).await.unwrap().status, Status::Sent(Said::default()));
}

/// The same, but the phone goes between the tap and the sending.
#[tokio::test]
async fn a_phone_that_vanishes_during_the_tap_leaves_the_draft_as_it_was() {
    for (first, expected) in
        [(None, "PENDING"), (Some(Fate::Fails), "FAILED"), (Some(Fate::Unsure { listed: false }), "UNKNOWN")]
    {
        let world = world().await;
        let mut draft = world.stage(new(PIXEL, "Hi")).await;
        let before = usize::from(matches!(first, Some(Fate::Unsure { .. })));
        if let Some(fate) = first {
            world.pixel.next(fate);
            draft = world.door.tap(send(&draft)).await.unwrap();
        }
        world.pixel.next(Fate::Vanishes);
        assert!(matches!(world.door.tap(send(&draft)).await, Err(Refused::NotConnected(_))));
        let after = world.draft(draft.id).await;
        assert_eq!(after.status, draft.status, "as it was: {expected}");
        assert_eq!((after.status.state().as_str(), world.pixel.did().len()), (expected, before));
        assert_eq!(after.attempts, draft.attempts + 1, "older sights of it are stale");
        assert!(matches!(world.door.tap(send(&draft)).await, Err(Refused::Changed)));
        assert_eq!(world.door.tap(send(&after)).await.unwrap().status, Status::Sent(Said::default()));
    }
}

/// A message that may have been sent is still looked for after a tap that reached nobody.
#[tokio::test]
async fn a_tap_that_reached_nobody_does_not_end_the_search() {
    let world = world().await;
    let draft = world.stage(new(PIXEL, "Hi")).await;
    world.pixel.next(Fate::Unsure { listed: false });
    let unsure = world.door.tap(send(&draft)).await.unwrap();
    world.pixel.next(Fate::Vanishes);
    assert!(world.door.tap(send(&unsure)).await.is_err());
    world.pixel.list(TO, "Hi");
    assert_eq!(world.door.settle().await.unwrap(), 1);
    assert_eq!(world.state(draft.id).await, "SENT");
}

#[tokio::test]
async fn a_draft_of_an_unpaired_phone_can_only_be_discarded() {
    let world = world().await;
    let draft = world.stage(new(PIXEL, "Hi")).await;
    world.db.write(|tx| phones::remove(tx, PIXEL)).await.unwrap();
    for act in [Act::Send, Act::Compose] {
        let refused = world.door.tap(tap(&draft, act)).await;
        assert!(matches!(refused, Err(Refused::Unpaired)), "{refused:?}");
    }
    assert_eq!((world.pixel.did(), world.draft(draft.id).await.status), (vec![], Status::Pending));
    assert_eq!(world.door.discard(draft.id).await.unwrap().id, draft.id);
}

#[tokio::test]
async fn a_switch_that_is_off_refuses_the_tap() {
    let world = world().await;
    let sms = world.stage(new(PIXEL, "Hi")).await;
    world.show("Alice", "Dinner?", Some("r1")).await;
    let reply = world.drafted("Yes").await;
    for (draft, act, switch, says) in [
        (&sms, Act::Send, Switch::SendSms, said::drafts_refused_sending_off("Pixel")),
        (&sms, Act::Compose, Switch::Composer, said::drafts_refused_composer_off("Pixel")),
        (&reply, Act::Send, Switch::Notifications, said::drafts_refused_notifications_off("Pixel")),
    ] {
        world.set(PIXEL, switch, false).await;
        let refused = world.door.tap(tap(draft, act)).await;
        assert!(matches!(refused, Err(Refused::SwitchedOff(why)) if why == says), "{act:?}");
        world.set(PIXEL, switch, true).await;
    }
    let nothing = world.door.tap(tap(&reply, Act::Compose)).await;
    assert!(matches!(nothing, Err(Refused::NothingToOpen)));
    assert_eq!(world.pixel.did(), []);
}

/// Of a tap on the page and one on the command line, whatever they are, one wins.
#[tokio::test]
async fn of_two_taps_at_once_one_wins() {
    for acts in [[Act::Send, Act::Send], [Act::Send, Act::Compose], [Act::Compose, Act::Compose]] {
        let world = world().await;
        let draft = world.stage(new(PIXEL, "Hi")).await;
        let (one, other) =
            tokio::join!(world.door.tap(tap(&draft, acts[0])), world.door.tap(tap(&draft, acts[1])));
        assert_eq!(usize::from(one.is_ok()) + usize::from(other.is_ok()), 1, "{acts:?}");
        assert_eq!(world.pixel.did().len(), 1, "{acts:?}");
    }
}

#[tokio::test]
async fn a_new_connection_does_not_disturb_a_message_that_waits_on_the_old_one() {
    let world = world().await;
    let draft = world.stage(new(PIXEL, "Hi")).await;
    let go_on = Arc::new(Notify::new());
    world.pixel.next(Fate::Waits(Arc::clone(&go_on)));
    let tapping = world.begin(&world.pixel, send(&draft)).await;
    let again = Handset::new(&world.clock);
    world.door.senders.register(PIXEL, again.clone());
    // The end of the old connection is noticed after the new one has begun.
    world.door.senders.remove(PIXEL, &(world.pixel.clone() as Arc<dyn Sender>));
    assert!(world.door.senders.has(PIXEL));
    assert!(matches!(world.door.tap(send(&draft)).await, Err(Refused::Sending)));
    go_on.notify_one();
    assert_eq!(tapping.await.unwrap().unwrap().status, Status::Sent(Said::default()));
    assert_eq!((world.pixel.did().len(), again.did().len()), (1, 0));
    let next = world.stage(new(PIXEL, "Bye")).await;
    world.door.tap(send(&next)).await.unwrap();
    assert_eq!(again.did().len(), 1, "the next one goes by the new connection");
}

#[tokio::test]
async fn a_phone_that_answers_late_is_believed_and_its_message_is_not_sent_again() {
    for (behind, expected) in [(0, "SENT"), (90, "SENT"), (180, "UNKNOWN")] {
        let world = world().await;
        world.pixel.is_behind(SignedDuration::from_secs(behind));
        let draft = world.stage(new(PIXEL, "Hi")).await;
        world.pixel.next(Fate::Unsure { listed: true });
        let unsure = world.door.tap(send(&draft)).await.unwrap();
        assert_eq!(unsure.status.state().as_str(), "UNKNOWN");
        world.clock.advance(SignedDuration::from_hours(2));
        world.door.settle().await.unwrap();
        assert_eq!(world.state(draft.id).await, expected, "its clock is {behind} s behind");
        assert_eq!(world.pixel.did().len(), 1);
    }
}

/// What the person wrote themselves a minute before must not pass for the draft.
#[tokio::test]
async fn what_was_listed_before_the_tap_settles_nothing() {
    for (listed, expected) in [(false, "UNKNOWN"), (true, "SENT")] {
        let world = world().await;
        world.pixel.list(TO, "Hi");
        world.clock.advance(SignedDuration::from_secs(60));
        let draft = world.stage(new(PIXEL, "Hi")).await;
        world.pixel.next(Fate::Unsure { listed });
        world.door.tap(send(&draft)).await.unwrap();
        world.door.settle().await.unwrap();
        assert_eq!(world.state(draft.id).await, expected);
    }
}

/// Another draft with the same words, sent, unclear or by another phone, takes nothing and gives nothing.
#[tokio::test]
async fn the_messages_of_other_drafts_are_theirs() {
    for (name, by, first, second_listed, expected) in [
        ("sent before, and this one too", PIXEL, Fate::Ok, true, "SENT"),
        ("sent before, and this one not", PIXEL, Fate::Ok, false, "UNKNOWN"),
        ("unclear before, and this one not", PIXEL, Fate::Unsure { listed: true }, false, "UNKNOWN"),
        ("by another phone, and this one too", WORK, Fate::Unsure { listed: true }, true, "SENT"),
        ("by another phone, and this one not", WORK, Fate::Unsure { listed: true }, false, "UNKNOWN"),
    ] {
        let world = world().await;
        let other = world.stage(new(by, "Hi")).await;
        if by == PIXEL {
            world.pixel.next(first);
        } else {
            world.work.next(first);
        }
        world.door.tap(send(&other)).await.unwrap();
        let draft = world.stage(new(PIXEL, "Hi")).await;
        world.pixel.next(Fate::Unsure { listed: second_listed });
        world.door.tap(send(&draft)).await.unwrap();
        for _ in 0..2 {
            world.door.settle().await.unwrap();
        }
        assert_eq!(world.state(draft.id).await, expected, "{name}");
    }
}

#[tokio::test]
async fn dying_at_any_point_leaves_a_question_and_never_a_second_message() {
    let world = world().await;
    let draft = world.stage(new(PIXEL, "Hi")).await;
    world.pixel.next(Fate::Hangs);
    let tapping = world.begin(&world.pixel, send(&draft)).await;
    assert_eq!(world.state(draft.id).await, "SENDING");
    tapping.abort();
    world.die().await;
    assert_eq!(world.state(draft.id).await, "UNKNOWN");
    world.door.settle().await.unwrap();
    assert_eq!((world.state(draft.id).await, world.pixel.did().len()), ("UNKNOWN", 1));
    world.pixel.list(TO, "Hi");
    assert_eq!(world.door.settle().await.unwrap(), 1, "it turned up after the restart");
    assert_eq!((world.state(draft.id).await, world.pixel.did().len()), ("SENT", 1));
}

/// Killed after the attempt was stored and before the phone was asked what it has sent: only its later messages count.
#[tokio::test]
async fn dying_before_the_phone_was_told_settles_only_by_what_is_dated_after_the_tap() {
    for (behind, expected) in [(0, "SENT"), (30, "UNKNOWN")] {
        let world = world().await;
        world.pixel.is_behind(SignedDuration::from_secs(behind));
        let draft = world.stage(new(PIXEL, "Hi")).await;
        world.pixel.next(Fate::Unsure { listed: true });
        world.door.tap(send(&draft)).await.unwrap();
        world.write("UPDATE attempts SET foreign_before = NULL, outcome = NULL").await;
        world.write("UPDATE drafts SET status = 'SENDING'").await;
        world.die().await;
        world.door.settle().await.unwrap();
        assert_eq!(world.state(draft.id).await, expected, "{behind} s behind");
    }
}

#[tokio::test(start_paused = true)]
async fn a_phone_whose_list_hangs_holds_up_no_other() {
    let world = world().await;
    for (phone, by) in [(&world.pixel, PIXEL), (&world.work, WORK)] {
        let draft = world.stage(new(by, "Hi")).await;
        phone.next(Fate::Unsure { listed: true });
        world.door.tap(send(&draft)).await.unwrap();
    }
    world.pixel.state.lock().unwrap().list_hangs = true;
    assert_eq!(world.door.settle().await.unwrap(), 1);
    assert_eq!((world.state(DraftId(1)).await, world.state(DraftId(2)).await), ("UNKNOWN", "SENT"));
    let next = world.stage(new(PIXEL, "Bye")).await;
    let sent = world.door.tap(send(&next)).await.unwrap();
    assert_eq!(sent.status, Status::Sent(Said::default()), "it is sent without a look at the list");
}

#[tokio::test]
async fn opened_on_the_phone_it_waits_until_the_phone_lists_it() {
    for (name, sends, after, expected) in [
        ("never sent there", None, 1, "PENDING"),
        ("sent as it is", Some("Hi"), 1, "SENT"),
        ("sent in the evening", Some("Hi"), 9, "SENT"),
        ("sent a day later", Some("Hi"), 25, "PENDING"),
        ("with other words", Some("Hello"), 1, "PENDING"),
    ] {
        let world = world().await;
        let draft = world.stage(new(PIXEL, "Hi")).await;
        let opened = world.door.tap(tap(&draft, Act::Compose)).await.unwrap();
        assert_eq!((&opened.status, opened.composed_at), (&Status::Pending, Some(world.clock.now())));
        assert_eq!(world.pixel.did(), [Did::Compose(TO.to_owned(), "Hi".to_owned())]);
        assert!(
            world.records().await.iter().any(|record| matches!(record, Record::Tap { on_phone: true, .. }))
        );
        world.clock.advance(SignedDuration::from_hours(after));
        if let Some(body) = sends {
            world.pixel.list(TO, body);
        }
        world.door.settle().await.unwrap();
        let after = world.draft(draft.id).await;
        assert_eq!(after.status.state().as_str(), expected, "{name}");
        assert_eq!(after.composed_at.is_some(), expected == "PENDING", "{name}");
    }
}

/// The person has sent it on the phone, Kai has not noticed yet, and they tap Send here.
#[tokio::test]
async fn what_was_sent_on_the_phone_is_not_sent_again_from_here() {
    for act in [Act::Send, Act::Compose] {
        let world = world().await;
        let draft = world.stage(new(PIXEL, "Hi")).await;
        let opened = world.door.tap(tap(&draft, Act::Compose)).await.unwrap();
        world.clock.advance(SignedDuration::from_secs(20));
        world.pixel.list(TO, "Hi");
        assert!(matches!(world.door.tap(tap(&opened, act)).await, Err(Refused::Sent)), "{act:?}");
        assert_eq!((world.state(draft.id).await, world.pixel.did().len()), ("SENT", 1));
    }
}

#[tokio::test]
async fn opened_on_the_phone_it_can_still_be_sent_from_here_or_opened_again() {
    let world = world().await;
    let draft = world.stage(new(PIXEL, "Hi")).await;
    let opened = world.door.tap(tap(&draft, Act::Compose)).await.unwrap();
    world.clock.advance(SignedDuration::from_mins(5));
    let again = world.door.tap(tap(&opened, Act::Compose)).await.unwrap();
    assert_eq!(again.composed_at, Some(world.clock.now()));
    assert!(matches!(world.door.tap(send(&opened)).await, Err(Refused::Changed)), "an old sight");
    world.pixel.next(Fate::Unsure { listed: true });
    let unsure = world.door.tap(send(&again)).await.unwrap();
    assert_eq!((unsure.status.state().as_str(), unsure.composed_at), ("UNKNOWN", None));
    assert_eq!(world.door.settle().await.unwrap(), 1, "what is listed is this draft, whoever sent it");
}

#[tokio::test]
async fn what_could_not_be_opened_is_as_it_was_and_in_doubt_it_was_opened() {
    for (fate, word, opened) in [
        (Fate::Vanishes, "is not connected", false),
        (Fate::Fails, "was not opened on the phone: No signal.", false),
        (Fate::Unsure { listed: false }, "", true),
    ] {
        let world = world().await;
        let draft = world.stage(new(PIXEL, "Hi")).await;
        world.pixel.next(fate);
        let tapped = world.door.tap(tap(&draft, Act::Compose)).await;
        assert_eq!(tapped.is_ok(), opened);
        let said = tapped.map_or_else(|refused| refused.to_string(), |_| String::new());
        assert!(said.contains(word), "{said}");
        let after = world.draft(draft.id).await;
        assert_eq!((&after.status, after.composed_at.is_some()), (&Status::Pending, opened));
        assert!(world.door.tap(send(&after)).await.is_ok());
    }
}

/// The phone's list shows the message while it is still being opened, and then the connection breaks.
#[tokio::test]
async fn what_was_found_meanwhile_is_not_taken_back() {
    let world = world().await;
    let draft = world.stage(new(PIXEL, "Hi")).await;
    let go_on = Arc::new(Notify::new());
    world.pixel.next(Fate::VanishesLater(Arc::clone(&go_on)));
    let tapping = world.begin(&world.pixel, tap(&draft, Act::Compose)).await;
    world.pixel.list(TO, "Hi");
    assert_eq!(world.door.settle().await.unwrap(), 1);
    go_on.notify_one();
    assert!(matches!(tapping.await.unwrap(), Err(Refused::NotConnected(_))));
    assert_eq!(world.state(draft.id).await, "SENT");
}

/// Kai dies after the tap was stored: the phone may show the composer, so the draft says so, and nothing is stuck.
#[tokio::test]
async fn dying_while_it_is_opened_leaves_a_draft_that_waits() {
    let world = world().await;
    let draft = world.stage(new(PIXEL, "Hi")).await;
    world.pixel.next(Fate::Hangs);
    let tapping = world.begin(&world.pixel, tap(&draft, Act::Compose)).await;
    tapping.abort();
    world.die().await;
    let after = world.draft(draft.id).await;
    assert_eq!((&after.status, after.composed_at.is_some()), (&Status::Pending, true));
    world.pixel.list(TO, "Hi");
    assert_eq!(world.door.settle().await.unwrap(), 1);
    assert_eq!(world.state(draft.id).await, "SENT");
}

#[tokio::test]
async fn a_failed_draft_can_be_opened_on_the_phone_and_one_in_doubt_cannot() {
    for (fate, allowed) in [(Fate::Fails, true), (Fate::Unsure { listed: false }, false)] {
        let world = world().await;
        let draft = world.stage(new(PIXEL, "Hi")).await;
        world.pixel.next(fate);
        let tried = world.door.tap(send(&draft)).await.unwrap();
        let opened = world.door.tap(tap(&tried, Act::Compose)).await;
        assert_eq!(opened.is_ok_and(|draft| draft.status == Status::Pending), allowed);
    }
}

#[tokio::test]
async fn a_reply_leaves_by_the_phone_and_the_id_of_its_notification() {
    let world = world().await;
    world.show("Alice", "Dinner?", Some("r1")).await;
    let staged = world.reply(CHAT, " Yes ").await;
    assert_eq!(staged.meaning.taint, Level::People);
    assert_eq!(staged.meaning.mentions, [format!("notification {CHAT}")]);
    assert!(!staged.text.contains("r1"), "{}", staged.text);
    let draft = world.draft(DraftId(1)).await;
    assert_eq!((draft.channel, draft.phone), (Channel::Notification, PIXEL));
    assert_eq!(
        (draft.to.as_str(), draft.app.as_deref(), draft.body.as_str()),
        ("Alice", Some("Signal"), "Yes")
    );
    assert_eq!(draft.in_reply_to, Some(ReplyTo::Notification(CHAT.to_owned())));
    assert_eq!(draft.quoted.as_ref().map(Untrusted::as_written), Some("Dinner?"));
    assert_eq!((world.pixel.did(), draft.first_contact), (vec![], false));
    assert_eq!(world.door.tap(send(&draft)).await.unwrap().status, Status::Sent(Said::default()));
    assert_eq!(world.pixel.did(), [Did::Reply("r1".to_owned(), "Yes".to_owned())]);
}

/// Each update brings another id; the content need not change for that, and then nothing is queued.
#[tokio::test]
async fn a_reply_uses_the_newest_id_of_its_conversation() {
    let world = world().await;
    world.show("Alice", "Dinner?", Some("r1")).await;
    let draft = world.drafted("Yes").await;
    world.show("Alice", "Dinner?", Some("r2")).await;
    let queued = world.db.read(|tx| pending::count(tx, kai_assistant::notifications::QUEUE)).await.unwrap();
    assert_eq!(queued, 1, "the same content is no news");
    world.hear(Heard::Bound { standing: vec![chat("Alice", "Dinner?", Some("r3"))] }).await;
    world.door.tap(send(&draft)).await.unwrap();
    assert_eq!(world.pixel.did(), [Did::Reply("r3".to_owned(), "Yes".to_owned())]);
}

#[tokio::test]
async fn a_reply_that_would_reach_nobody_or_someone_else_fails_with_the_reason() {
    for (name, heard, word) in [
        ("dismissed", Heard::Closed(NotificationId::new(CHAT)), "no longer on the phone"),
        ("no reply", Heard::Posted(Box::new(chat("Alice", "Hm.", None))), "no longer offers a reply"),
        ("someone else", Heard::Posted(Box::new(chat("Bob", "Hi", Some("r2")))), "another conversation"),
    ] {
        let world = world().await;
        world.show("Alice", "Dinner?", Some("r1")).await;
        let draft = world.drafted("Yes").await;
        world.hear(heard).await;
        let failed = world.door.tap(send(&draft)).await.unwrap();
        assert!(
            matches!(&failed.status, Status::Failed(why) if why.to_string().contains(word)),
            "{name}: {failed:?}"
        );
        assert_eq!(world.pixel.did(), [], "{name}");
        world.show("Alice", "Are you there?", Some("r3")).await;
        world.door.tap(send(&failed)).await.unwrap();
        assert_eq!(world.pixel.did(), [Did::Reply("r3".to_owned(), "Yes".to_owned())], "{name}, and again");
    }
}

/// The phone was away, and the user may have cleared the chat there. It drops what comes with an old id and says nothing.
#[tokio::test]
async fn a_reply_to_what_the_phone_may_no_longer_show_fails_until_the_phone_tells_of_it_again() {
    let lost = || Heard::Unbound(Access::Silent("The phone is away.".into()));
    let bound = |standing: Vec<Post>| Heard::Bound { standing };
    let again = || chat("Alice", "Dinner?", Some("r2"));
    let late = || Heard::Standing(Box::new(again()));
    for (name, away, back) in [
        ("cleared there", vec![lost(), bound(vec![])], vec![bound(vec![again()])]),
        ("told late", vec![lost(), bound(vec![])], vec![late()]),
        ("the old connection was replaced", vec![bound(vec![])], vec![late()]),
        ("it has not told yet what it shows", vec![lost()], vec![bound(vec![again()])]),
    ] {
        let world = world().await;
        world.hear(bound(vec![])).await;
        world.show("Alice", "Dinner?", Some("r1")).await;
        let draft = world.drafted("Yes").await;
        for heard in away {
            world.hear(heard).await;
        }
        let failed = world.door.tap(send(&draft)).await.unwrap();
        assert!(
            matches!(&failed.status, Status::Failed(why) if why.to_string().contains("no longer on the phone")),
            "{name}: {failed:?}"
        );
        assert_eq!(world.pixel.did(), [], "{name}");
        for heard in back {
            world.hear(heard).await;
        }
        let sent = world.door.tap(send(&failed)).await.unwrap();
        assert_eq!(sent.status, Status::Sent(Said::default()), "{name}");
        assert_eq!(world.pixel.did(), [Did::Reply("r2".to_owned(), "Yes".to_owned())], "{name}");
    }
}

/// The heartbeat has not told of it yet, so the queue has it as it came.
#[tokio::test]
async fn an_old_reply_id_is_not_taken_from_the_queue() {
    let world = world().await;
    world.hear(Heard::Bound { standing: vec![] }).await;
    world.show("Alice", "Dinner?", Some("r1")).await;
    let draft = world.drafted("Yes").await;
    world.clock.advance(SignedDuration::from_hours(23));
    world.hear(Heard::Bound { standing: vec![] }).await;
    world.clock.advance(SignedDuration::from_hours(2));
    let failed = world.door.tap(send(&draft)).await.unwrap();
    assert_eq!((failed.status.state().as_str(), world.pixel.did()), ("FAILED", vec![]));
}

/// The phone takes each id once and says nothing about a second time.
#[tokio::test]
async fn an_id_that_was_used_is_not_used_for_another_draft() {
    let world = world().await;
    world.show("Alice", "Dinner?", Some("r1")).await;
    let (first, second) = (world.drafted("Yes").await, world.drafted("At 8").await);
    world.pixel.next(Fate::Unsure { listed: false });
    let unsure = world.door.tap(send(&first)).await.unwrap();
    assert_eq!(world.door.settle().await.unwrap(), 0, "no list shows replies");
    let failed = world.door.tap(send(&second)).await.unwrap();
    assert!(
        matches!(&failed.status, Status::Failed(why) if why.to_string().contains("already answered")),
        "{failed:?}"
    );
    world.door.tap(send(&unsure)).await.unwrap();
    assert_eq!(
        world.pixel.did(),
        vec![Did::Reply("r1".to_owned(), "Yes".to_owned()); 2],
        "the phone takes one"
    );
}

#[tokio::test]
async fn only_what_a_paired_phone_shows_and_offers_can_be_answered() {
    let world = world().await;
    let post =
        |id: &str, reply_id: Option<&str>| Post { id: NotificationId::new(id), ..chat("A", "b", reply_id) };
    for post in [
        post("here", Some("r1")),
        post("p1:x", Some("r1")),
        post("p2:mute", None),
        post("p2:gone", Some("r")),
    ] {
        world.hear(Heard::Posted(Box::new(post))).await;
    }
    world.hear(Heard::Closed(NotificationId::new("p2:gone"))).await;
    for id in ["here", "p1:x", "p2:mute", "p2:gone", "p2:unknown", ""] {
        let refused = world.reply(id, "Yes").await;
        assert!(!refused.success && refused.text.contains("no such notification"), "{id}: {}", refused.text);
    }
    assert!(!world.reply("p2:mute", " ").await.success);
}

#[tokio::test]
async fn replying_needs_a_paired_phone_whose_notifications_are_read() {
    let world = world().await;
    let tool = ReplyNotification::new(world.db.clone(), world.clock.clone());
    assert!(Tool::lacks(&tool).is_some(), "nobody has looked yet");
    let look = || world.db.read_now(|tx| Tool::look(&tool, tx)).unwrap();
    look();
    assert_eq!(Tool::lacks(&tool), None);
    world.set(PIXEL, Switch::Notifications, false).await;
    world.set(WORK, Switch::Notifications, false).await;
    look();
    assert_eq!(Tool::lacks(&tool), Some(said::lacks_answerable().into()));
}

/// A sent reply to a conversation that calls itself a number makes no contact of that number.
#[tokio::test]
async fn a_conversation_that_imitates_a_number_is_no_known_number() {
    let world = world().await;
    world.show(TO, "Hi", Some("r1")).await;
    let reply = world.drafted("Yes").await;
    world.door.tap(send(&reply)).await.unwrap();
    assert!(world.stage(new(PIXEL, "Hi")).await.first_contact);
}

#[tokio::test]
async fn a_list_of_drafts_is_at_the_level_of_the_words_in_it() {
    let world = world().await;
    let draft = world.stage(new(PIXEL, "Hi")).await;
    assert_eq!(world.check_drafts().await.meaning.taint, Level::Nothing);
    world.pixel.next(Fate::Fails);
    world.door.tap(send(&draft)).await.unwrap();
    let failed = world.check_drafts().await;
    assert_eq!(failed.meaning.taint, Level::People, "the phone's words: {}", failed.text);
    world.door.discard(draft.id).await.unwrap();
    assert_eq!(world.check_drafts().await.meaning.taint, Level::Nothing);
    world.show("Your code 482913", "Dinner?", Some("r1")).await;
    world.drafted("Yes").await;
    let listed = world.check_drafts().await;
    assert_eq!((listed.meaning.taint, listed.meaning.mentions.len()), (Level::People, 1));
    assert!(listed.text.contains("Signal") && !listed.text.contains("482913"), "{}", listed.text);
}

#[tokio::test]
async fn an_sms_is_drafted_for_the_phone_that_is_meant() {
    let world = world().await;
    let senders = Arc::clone(&world.door.senders);
    let phones = Arc::new(DraftingPhones::new(world.db.clone(), world.clock.clone(), senders));
    let received = Received::new(world.db.clone(), None);
    let tool = SendSms { db: world.db.clone(), clock: world.clock.clone(), received, phones };
    let draft = async |arguments: serde_json::Value| {
        execute(Ok(&tool), &Values::default(), &arguments.to_string(), &Run::BY_HAND).await
    };
    let refused = draft(json!({"to": TO, "body": "Hi"})).await;
    assert!(!refused.success && refused.text.contains("Pixel, Work"), "{}", refused.text);
    let named = draft(json!({"to": TO, "body": "Hi", "phone": "work"})).await;
    assert!(named.success && named.text.contains("\"phone\":\"Work\""), "{}", named.text);
    world.db.write(|tx| kai_assistant::phones::store::send_by_default(tx, PIXEL)).await.unwrap();
    // It need not be connected for that.
    world.door.senders.remove(PIXEL, &(world.pixel.clone() as Arc<dyn Sender>));
    assert!(draft(json!({"to": TO, "body": "Hi"})).await.success);
    assert_eq!((world.draft(DraftId(1)).await.phone, world.draft(DraftId(2)).await.phone), (WORK, PIXEL));
    world.set(WORK, Switch::SendSms, false).await;
    world.set(WORK, Switch::Composer, false).await;
    let only = draft(json!({"to": TO, "body": "Bye"})).await;
    assert!(only.success && !only.text.contains("phone\":"), "one phone needs no name: {}", only.text);
}

/// A home from before there were several phones.
#[tokio::test]
async fn drafts_from_before_keep_their_hash_and_what_they_answer() {
    // The second goes on from what the first made.
    let (later, before): (Vec<_>, Vec<_>) = MIGRATIONS
        .iter()
        .copied()
        .partition(|migration| ["outbox/kinds", "outbox/mail"].contains(&migration.name));
    let db = Db::in_memory(&before).unwrap();
    let migrated = move |tx: &rusqlite::Transaction<'_>| {
        tx.execute_batch(
            "INSERT INTO drafts (channel, recipient, body, in_reply_to, first_contact, origin, conversation, created_at,
                                 status)
             VALUES ('sms', '+15550100', 'Hi', NULL, 0, 'chat', 0, 1, 'PENDING'),
                    ('sms', '+15550100', 'Hi', 4711, 0, 'chat', 0, 1, 'UNKNOWN');
             INSERT INTO attempts (draft, recipient, digest, at) VALUES (2, '+15550100', 'd', 1);",
        )?;
        later.iter().try_for_each(|migration| tx.execute_batch(migration.sql))?;
        store::all(tx)
    };
    let drafts = db.write(migrated).await.unwrap();
    let answered: Vec<Option<ReplyTo>> = drafts.iter().map(|draft| draft.in_reply_to.clone()).collect();
    assert_eq!(answered, [None, Some(ReplyTo::Sms(4711))]);
    assert!(drafts.iter().all(|draft| draft.phone == SourceId::HERE && draft.channel == Channel::Sms));
    let recorded = "c57cf2671dc16df2934f3e2ce78cfd08761f81c08cc25d78aa47698b7454e88c";
    assert_eq!(drafts[1].digest(), recorded, "as it was shown before");
}

#[tokio::test]
async fn a_phone_that_is_no_longer_paired_is_no_way_out() {
    let world = world().await;
    let exits = async || {
        let exits =
            world.db.read(|tx| exits::exits(tx, false)).await.map_err(|error: DbError| error).unwrap();
        exits.into_iter().map(|exit| exit.source).collect::<Vec<_>>()
    };
    assert_eq!(exits().await, [PIXEL, WORK]);
    // Its messages and its switches are kept.
    world.db.write(|tx| phones::end_pairing(tx, PIXEL)).await.unwrap();
    assert_eq!(exits().await, [WORK]);
}
