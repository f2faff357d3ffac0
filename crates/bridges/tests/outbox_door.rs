//! The door against a phone that fails in every way: messages that left are exactly the winning taps whose message the
//! phone let go, and no draft is lost.

#![cfg(feature = "sms")]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::MIGRATIONS;
use kai_assistant::clock::ManualClock;
use kai_assistant::db::{Db, DbError};
use kai_assistant::drafts::CheckDrafts;
use kai_assistant::gate::RunKind;
use kai_assistant::ledger::{self, Record};
use kai_assistant::outbox::door::{self, Act, Door, Refused, Senders, Tap};
use kai_assistant::outbox::edit::{Edit, MailEdit};
use kai_assistant::outbox::store::{self, CAPACITY, QUOTED, StageError};
use kai_assistant::outbox::{Channel, Draft, DraftId, NewDraft, ReplyTo, Status, discarded};
use kai_assistant::settings::Values;
use kai_assistant::sms::poll::Poller;
use kai_assistant::sms::{DraftingPhones, Inbox, Received, ReplySms};
use kai_assistant::source::SourceId;
use kai_assistant::tool::{Run, execute};
use kai_assistant::untrusted::Untrusted;
use kai_bridges::simulated::{Fate, Phone};
use proptest::prelude::*;

struct World {
    clock: Arc<ManualClock>,
    phone: Arc<Phone>,
    door: Door,
}

fn world() -> World {
    let clock = Arc::new(ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
    let phone = Arc::new(Phone::new(clock.clone()));
    let db = Db::in_memory(MIGRATIONS).unwrap();
    let senders = Arc::new(Senders::default());
    senders.register(SourceId::HERE, phone.clone());
    let door = Door {
        db,
        clock: clock.clone(),
        senders,
        mailer: None,
        answerable: |_, _, _| Ok(None),
        under_way: Arc::default(),
    };
    World { clock, phone, door }
}

fn new(body: &str) -> NewDraft {
    NewDraft {
        channel: Channel::Sms,
        phone: SourceId::HERE,
        to: "+15550100".to_owned(),
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

fn tap_on(draft: &Draft) -> Option<Tap> {
    let act = Act::fitting(&draft.status)?;
    Some(Tap { draft: draft.id, act, shown: draft.digest(), attempts: draft.attempts })
}

impl World {
    async fn stage(&self, body: &str) -> Result<Draft, StageError> {
        let (new, now) = (new(body), kai_assistant::clock::Clock::now(self.clock.as_ref()));
        self.door.db.write(move |tx| store::stage(tx, &new, now)).await
    }

    async fn drafts(&self) -> Vec<Draft> {
        let now = kai_assistant::clock::Clock::now(self.clock.as_ref());
        self.door.db.write(move |tx| door::drafts(tx, now)).await.map_err(|e: DbError| e).unwrap()
    }

    async fn draft(&self, id: DraftId) -> Option<Draft> {
        self.drafts().await.into_iter().find(|draft| draft.id == id)
    }

    /// The process that sent is gone: its leases are those of a dead one.
    async fn die(&self) {
        let dead =
            self.door.db.write(|tx| Ok::<_, DbError>(tx.execute("UPDATE leases SET pid = 999999999", [])?));
        dead.await.unwrap();
    }

    /// Taps and waits for the outcome; `None` if the phone hangs.
    async fn tap(&self, tap: Tap) -> Option<Result<Draft, Refused>> {
        let before = self.phone.hung_count();
        let door = self.door.clone();
        let mut tapping = tokio::spawn(async move { door.tap(tap).await });
        loop {
            tokio::select! {
                outcome = &mut tapping => return Some(outcome.unwrap()),
                () = tokio::time::sleep(Duration::from_millis(1)) => {}
            }
            if self.phone.hung_count() > before && !tapping.is_finished() {
                return None;
            }
        }
    }

    fn phones(&self) -> Arc<DraftingPhones> {
        let Door { db, senders, .. } = &self.door;
        Arc::new(DraftingPhones::new(db.clone(), self.clock.clone(), Arc::clone(senders)))
    }

    async fn taps_in_ledger(&self) -> usize {
        let records = self.door.db.read(ledger::all).await.unwrap();
        records.iter().filter(|record| matches!(record, Record::Tap { .. })).count()
    }
}

#[tokio::test]
async fn nothing_leaves_before_the_tap_and_one_message_after_it() {
    let world = world();
    let draft = world.stage("Hi").await.unwrap();
    assert_eq!((world.phone.sent_count(), &draft.status), (0, &Status::Pending));
    assert!(draft.first_contact);
    let sent = world.door.tap(tap_on(&draft).unwrap()).await.unwrap();
    assert_eq!(sent.status, Status::Sent(kai_words::Said::default()));
    let left = world.phone.sent();
    assert_eq!((left.len(), left[0].to.as_str(), left[0].body.as_str()), (1, "+15550100", "Hi"));
    assert!(matches!(world.door.tap(tap_on(&draft).unwrap()).await, Err(Refused::Sent)));
    assert_eq!(world.phone.sent_count(), 1);
    assert!(!world.stage("Hi again").await.unwrap().first_contact, "by now the number is known");
}

#[tokio::test]
async fn of_many_taps_at_once_one_wins() {
    let world = world();
    let draft = world.stage("Hi").await.unwrap();
    let taps = (0..20).map(|_| world.door.tap(tap_on(&draft).unwrap()));
    let outcomes = futures_util::future::join_all(taps).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert_eq!((world.phone.sent_count(), world.taps_in_ledger().await), (1, 1));
}

#[tokio::test]
async fn a_tap_on_something_else_is_refused() {
    let world = world();
    let draft = world.stage("Hi").await.unwrap();
    let tap = tap_on(&draft).unwrap();
    let stale = [
        Tap { shown: "0".repeat(64), ..tap.clone() },
        Tap { shown: String::new(), ..tap.clone() },
        Tap { attempts: 1, ..tap.clone() },
        Tap { act: Act::Retry, ..tap.clone() },
        Tap { act: Act::SendAgain, ..tap.clone() },
        Tap { draft: DraftId(99), ..tap.clone() },
    ];
    for tap in stale {
        assert!(world.door.tap(tap.clone()).await.is_err(), "{tap:?}");
    }
    let other = Draft { body: "Hi, you owe me 100".to_owned(), ..draft.clone() };
    assert!(matches!(world.door.tap(tap_on(&other).unwrap()).await, Err(Refused::Changed)));
    assert_eq!((world.phone.sent_count(), world.taps_in_ledger().await), (0, 0));
    assert_eq!(world.draft(draft.id).await.unwrap().status, Status::Pending);
}

#[tokio::test]
async fn a_failure_is_kept_and_retried_by_another_tap_only() {
    let world = world();
    let draft = world.stage("Hi").await.unwrap();
    world.phone.next_send(Fate::Fails("No network.".to_owned()));
    let failed = world.door.tap(tap_on(&draft).unwrap()).await.unwrap();
    assert_eq!(failed.status, Status::Failed("No network.".into()));
    assert!(world.door.tap(tap_on(&draft).unwrap()).await.is_err(), "the first sight is stale now");
    assert_eq!(world.door.settle().await.unwrap(), 0);
    assert_eq!(world.phone.sent_count(), 0, "nothing is tried again by itself");
    let sent = world.door.tap(tap_on(&failed).unwrap()).await.unwrap();
    assert_eq!((sent.status.state().as_str(), sent.attempts, world.phone.sent_count()), ("SENT", 2, 1));
    assert_eq!(world.door.discard(sent.id).await.unwrap().id, sent.id);
    assert!(world.drafts().await.is_empty());
}

#[tokio::test]
async fn a_denied_permission_is_learned() {
    let world = world();
    let draft = world.stage("Hi").await.unwrap();
    world.phone.deny_sending();
    let failed = world.door.tap(tap_on(&draft).unwrap()).await.unwrap();
    assert!(matches!(failed.status, Status::Failed(_)), "{failed:?}");
    assert!(matches!(
        world.door.senders.access(SourceId::HERE).unwrap().last(),
        Some(kai_assistant::access::Access::Denied(_))
    ));
}

#[tokio::test]
async fn dying_while_sending_leaves_a_question_and_never_a_second_message() {
    for (fate, sent_box, expected) in [
        (Fate::SentThenHangs, true, "SENT"),
        (Fate::SentThenHangs, false, "UNKNOWN"),
        (Fate::Hangs, true, "UNKNOWN"),
        (Fate::Hangs, false, "UNKNOWN"),
        (Fate::UnsureButSent("No answer.".to_owned()), true, "SENT"),
        (Fate::UnsureAndNotSent("No answer.".to_owned()), true, "UNKNOWN"),
    ] {
        let world = world();
        if !sent_box {
            world.phone.close_sent_box();
        }
        let left = usize::from(matches!(fate, Fate::SentThenHangs | Fate::UnsureButSent(_)));
        let draft = world.stage("Hi").await.unwrap();
        world.phone.next_send(fate.clone());
        if world.tap(tap_on(&draft).unwrap()).await.is_none() {
            assert_eq!(world.draft(draft.id).await.unwrap().status, Status::Sending, "{fate:?}");
            let discarded = world.door.discard(draft.id).await;
            assert!(matches!(discarded, Err(Refused::Sending)), "{fate:?}");
        }
        world.die().await;
        let unknown = world.draft(draft.id).await.unwrap();
        assert_eq!(unknown.status.state().as_str(), "UNKNOWN", "{fate:?}");
        world.door.settle().await.unwrap();
        let settled = world.draft(draft.id).await.unwrap();
        assert_eq!(settled.status.state().as_str(), expected, "{fate:?}, sent box {sent_box}");
        assert_eq!(world.phone.sent_count(), left, "{fate:?}: nothing is sent again by itself");
    }
}

#[tokio::test]
async fn an_earlier_message_of_the_same_words_settles_nothing() {
    let world = world();
    let first = world.stage("Hi").await.unwrap();
    world.door.tap(tap_on(&first).unwrap()).await.unwrap();
    // In the same second, so that only counting tells them apart.
    let second = world.stage("Hi").await.unwrap();
    world.phone.next_send(Fate::UnsureAndNotSent("No answer.".to_owned()));
    let unsure = world.door.tap(tap_on(&second).unwrap()).await.unwrap();
    assert_eq!(unsure.status.state().as_str(), "UNKNOWN");
    assert_eq!(world.door.settle().await.unwrap(), 0);
    let again = world.door.tap(tap_on(&unsure).unwrap()).await.unwrap();
    assert_eq!(
        (again.status.state().as_str(), world.phone.sent_count()),
        ("SENT", 2),
        "the person may send it again"
    );
}

/// The same words to the same person, as answers to two messages; and other words, which take nothing from each other.
#[tokio::test]
async fn what_another_draft_put_into_the_sent_box_settles_nothing() {
    let world = world();
    let now = kai_assistant::clock::Clock::now(world.clock.as_ref());
    let stage = |to: &str, body: &str, answers| {
        let new = NewDraft { to: to.to_owned(), in_reply_to: Some(ReplyTo::Sms(answers)), ..new(body) };
        world.door.db.write(move |tx| store::stage(tx, &new, now))
    };
    let first = stage("+491715550100", "Yes", 41).await.unwrap();
    let second = stage("01715550100", "Yes", 42).await.unwrap();
    let other = stage("+491715550100", "No", 43).await.unwrap();
    world.phone.next_send(Fate::UnsureAndNotSent("No answer.".to_owned()));
    world.door.tap(tap_on(&second).unwrap()).await.unwrap();
    world.door.tap(tap_on(&first).unwrap()).await.unwrap();
    world.phone.next_send(Fate::UnsureButSent("No answer.".to_owned()));
    world.door.tap(tap_on(&other).unwrap()).await.unwrap();
    assert_eq!(world.door.settle().await.unwrap(), 1);
    assert_eq!(world.draft(second.id).await.unwrap().status.state().as_str(), "UNKNOWN", "it never left");
    assert_eq!(world.draft(other.id).await.unwrap().status.state().as_str(), "SENT");
}

/// What the store says of itself would have the person send it again.
#[tokio::test]
async fn who_cannot_write_down_that_it_left_says_so() {
    for (fate, word) in [
        (None, "Kai handed the message over but could not record it"),
        (
            Some(Fate::UnsureButSent("No answer.".to_owned())),
            "Kai handed the message over but could not record it",
        ),
        (Some(Fate::Fails("No signal.".to_owned())), "The store reported an error"),
    ] {
        let world = world();
        let draft = world.stage("Hi").await.unwrap();
        let refuse = "CREATE TRIGGER full BEFORE UPDATE OF outcome ON attempts
                      BEGIN SELECT RAISE(ABORT, 'the disk is full'); END";
        world.door.db.write(move |tx| Ok::<_, DbError>(tx.execute_batch(refuse)?)).await.unwrap();
        if let Some(fate) = fate {
            world.phone.next_send(fate);
        }
        let said = world.door.tap(tap_on(&draft).unwrap()).await.unwrap_err().to_string();
        assert!(said.contains(word), "{said}");
        assert_eq!(
            world.draft(draft.id).await.unwrap().status.state().as_str(),
            "UNKNOWN",
            "nobody sends it any more"
        );
    }
}

/// Phones give the id of a deleted message away again.
#[tokio::test]
async fn an_answer_goes_to_the_one_who_was_shown() {
    let world = world();
    let (db, clock) = (world.door.db.clone(), world.clock.clone());
    let now = kai_assistant::clock::Clock::now(clock.as_ref());
    let inbox = Arc::new(Inbox::new(world.phone.clone(), clock.clone()));
    let poller = Poller { db: db.clone(), clock: clock.clone(), inbox: inbox.clone() };
    poller.turn_on().await.unwrap();
    let shown = world.phone.receive("+15550100", "Where is the key?", now);
    poller.poll().await.unwrap();
    let received = Received::new(db.clone(), Some(inbox));
    let reply = ReplySms { db, clock, received, phones: world.phones() };
    let arguments = serde_json::json!({"sms_id": shown.0, "body": "Under the mat."}).to_string();
    let values = Values::default();
    let answer = || execute(Ok(&reply), &values, &arguments, &Run::BY_HAND);
    assert!(world.phone.delete(shown));
    assert_eq!(world.phone.receive("+15559999", "Hello!", now), shown, "the same number for another");
    let refused = answer().await;
    assert!(!refused.success && refused.text.contains("someone else"), "{}", refused.text);
    assert!(world.phone.delete(shown));
    assert_eq!(world.phone.receive("+15550100", "And now?", now), shown);
    assert!(answer().await.success, "the same person, whatever they wrote since");
    assert_eq!(world.drafts().await[0].to, "+15550100");
}

#[tokio::test]
async fn what_the_person_writes_hours_later_settles_nothing() {
    let world = world();
    let lost = world.stage("Yes").await.unwrap();
    world.phone.next_send(Fate::UnsureAndNotSent("No answer.".to_owned()));
    world.door.tap(tap_on(&lost).unwrap()).await.unwrap();
    world.clock.advance(SignedDuration::from_mins(3));
    // The same words to the same number, by another way.
    let other = world.stage("Yes").await.unwrap();
    world.door.tap(tap_on(&other).unwrap()).await.unwrap();
    assert_eq!(world.door.settle().await.unwrap(), 0);
    assert_eq!(world.draft(lost.id).await.unwrap().status.state().as_str(), "UNKNOWN");
}

#[tokio::test]
async fn a_run_that_is_run_again_drafts_once() {
    let world = world();
    let now = kai_assistant::clock::Clock::now(world.clock.as_ref());
    let stage = |origin, body: &str| {
        let new = NewDraft { origin, ..new(body) };
        world.door.db.write(move |tx| store::stage(tx, &new, now))
    };
    let first = stage(RunKind::Heartbeat, "Yes").await.unwrap();
    assert_eq!(stage(RunKind::Heartbeat, "Yes").await.unwrap().id, first.id);
    assert_ne!(stage(RunKind::Heartbeat, "No").await.unwrap().id, first.id, "another text is another draft");
    assert_ne!(stage(RunKind::Chat, "Yes").await.unwrap().id, first.id, "a person may want it twice");
    world.phone.next_send(Fate::UnsureAndNotSent("No answer.".to_owned()));
    world.door.tap(tap_on(&first).unwrap()).await.unwrap();
    let next = stage(RunKind::Heartbeat, "Yes").await.unwrap();
    assert_eq!((next.id == first.id, next.status), (false, Status::Pending), "that one waits no more");
}

/// The person sees what is answered; the model, the ledger and the tap do not carry it.
#[tokio::test]
async fn what_is_answered_stands_beside_the_draft_and_nowhere_else() {
    let world = world();
    let (db, clock) = (world.door.db.clone(), world.clock.clone());
    let words = format!("Code 482913.\r\nComing?{}", " x".repeat(QUOTED));
    let now = kai_assistant::clock::Clock::now(clock.as_ref());
    let sms_id = world.phone.receive("+15550100", &words, now).0;
    let inbox = Some(Arc::new(Inbox::new(world.phone.clone(), clock.clone())));
    let received = Received::new(db.clone(), inbox);
    let reply = ReplySms { db: db.clone(), clock: clock.clone(), received, phones: world.phones() };
    let arguments = serde_json::json!({"sms_id": sms_id, "body": "Yes"}).to_string();
    let mut told = execute(Ok(&reply), &Values::default(), &arguments, &Run::BY_HAND).await.text;
    let draft = world.drafts().await.remove(0);
    let quoted = draft.quoted.clone().unwrap();
    assert!(quoted.as_written().starts_with("Code 482913.\nComing? x"), "{}", quoted.as_written());
    assert!(quoted.as_written().ends_with('…'));
    assert_eq!(quoted.as_written().chars().count(), QUOTED + 1);
    assert!(matches!(world.tap(tap_on(&draft).unwrap()).await, Some(Ok(_))));
    assert_eq!(world.draft(draft.id).await.unwrap().quoted, Some(quoted), "as long as the draft is there");

    told += &execute(Ok(&CheckDrafts { db: db.clone(), clock }), &Values::default(), "{}", &Run::BY_HAND)
        .await
        .text;
    let ledger: Vec<Record> = db.read(ledger::all).await.unwrap();
    told += &serde_json::to_string(&ledger).unwrap();
    assert!(told.contains("in_reply_to") && told.contains("SENT"), "{told}");
    assert!(!told.contains("482913") && !told.contains("Coming"), "{told}");

    world.door.discard(draft.id).await.unwrap();
    let kept = db.read(|tx| {
        let sql = "SELECT count(*) FROM drafts WHERE quoted IS NOT NULL";
        Ok::<_, DbError>(tx.query_row(sql, [], |row| row.get::<_, u32>(0))?)
    });
    assert_eq!(kept.await.unwrap(), 0, "it goes with its draft");
}

#[tokio::test]
async fn a_message_without_words_is_not_quoted() {
    let world = world();
    let now = kai_assistant::clock::Clock::now(world.clock.as_ref());
    let blank = NewDraft { quoted: Some(Untrusted::new(" \n ")), ..new("Hi") };
    let staged = world.door.db.write(move |tx| store::stage(tx, &blank, now)).await.unwrap();
    assert_eq!(staged.quoted, None);
}

#[tokio::test]
async fn a_full_box_refuses_and_loses_no_draft() {
    let world = world();
    for n in 0..CAPACITY {
        world.stage(&n.to_string()).await.unwrap();
    }
    assert!(matches!(world.stage("one too many").await, Err(StageError::Full)));
    let drafts = world.drafts().await;
    assert_eq!(drafts.len(), usize::try_from(CAPACITY).unwrap());
    world.phone.next_send(Fate::Fails("No.".to_owned()));
    for draft in &drafts[5..7] {
        world.door.tap(tap_on(draft).unwrap()).await.unwrap();
    }
    world.stage("room made by the sent one").await.unwrap();
    assert!(world.draft(drafts[6].id).await.is_none(), "the sent one goes first");
    world.stage("room made by the failed one").await.unwrap();
    assert!(world.draft(drafts[5].id).await.is_none());
    assert!(matches!(world.stage("no more").await, Err(StageError::Full)));
}

#[tokio::test]
async fn without_a_phone_a_tap_changes_nothing() {
    let world = world();
    let draft = world.stage("Hi").await.unwrap();
    let door = Door { senders: Arc::default(), ..world.door.clone() };
    assert!(matches!(door.tap(tap_on(&draft).unwrap()).await, Err(Refused::NoPhone)));
    assert_eq!(world.draft(draft.id).await.unwrap().status, Status::Pending);
}

/// What a model, a person and a phone may do.
#[derive(Debug, Clone)]
enum Happens {
    Stage,
    Tap(u8),
    DoubleTap(u8),
    /// On a sight that is some steps old.
    StaleTap(u8),
    Edit(u8),
    Discard(u8),
    /// Takes back what was discarded a moment ago.
    Undo,
    Settle,
    Restart,
    Next(Fate),
    Wait(u16),
}

fn happens() -> impl Strategy<Value = Happens> {
    let why = || "no".to_owned();
    let fate = prop_oneof![
        Just(Fate::Fails(why())),
        Just(Fate::UnsureButSent(why())),
        Just(Fate::UnsureAndNotSent(why())),
        Just(Fate::SentThenHangs),
        Just(Fate::Hangs),
    ];
    prop_oneof![
        5 => Just(Happens::Stage),
        5 => any::<u8>().prop_map(Happens::Tap),
        2 => any::<u8>().prop_map(Happens::DoubleTap),
        2 => any::<u8>().prop_map(Happens::StaleTap),
        2 => any::<u8>().prop_map(Happens::Edit),
        1 => any::<u8>().prop_map(Happens::Discard),
        1 => Just(Happens::Undo),
        1 => Just(Happens::Settle),
        1 => Just(Happens::Restart),
        2 => fate.prop_map(Happens::Next),
        1 => (0..300_u16).prop_map(Happens::Wait),
    ]
}

#[derive(Default)]
struct Accounts {
    staged: usize,
    discarded: usize,
    edited: usize,
    /// Every draft as it was once seen.
    seen: Vec<Draft>,
    fates: std::collections::VecDeque<Fate>,
    /// Winning taps, and those of them whose message left.
    taps: usize,
    left: usize,
}

impl Accounts {
    /// A tap won: the phone was called once, and did what was in store for it.
    fn won(&mut self) {
        self.taps += 1;
        let leaves = match self.fates.pop_front() {
            None | Some(Fate::UnsureButSent(_) | Fate::SentThenHangs) => true,
            Some(Fate::Fails(_) | Fate::UnsureAndNotSent(_) | Fate::Hangs) => false,
        };
        self.left += usize::from(leaves);
    }
}

/// Taps; one that hangs has won too.
async fn tap(world: &World, draft: &Draft) -> bool {
    let Some(tap) = tap_on(draft) else { return false };
    !matches!(world.tap(tap).await, Some(Err(_)))
}

/// Two taps at once; returns how many won.
async fn tap_twice(world: &World, draft: &Draft) -> usize {
    let Some(tap) = tap_on(draft) else { return 0 };
    let before = world.phone.hung_count();
    let begin = || {
        let (door, tap) = (world.door.clone(), tap.clone());
        tokio::spawn(async move { door.tap(tap).await.is_ok() })
    };
    let mut taps = vec![begin(), begin()];
    let mut won = 0;
    while !taps.is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let (ended, running): (Vec<_>, Vec<_>) =
            taps.into_iter().partition(tokio::task::JoinHandle::is_finished);
        for tap in ended {
            won += usize::from(tap.await.unwrap());
        }
        // The last one that runs hangs: it has won.
        if running.len() == 1 && world.phone.hung_count() > before {
            return won + 1;
        }
        taps = running;
    }
    won
}

fn pick<T>(all: &[T], which: u8) -> Option<&T> {
    all.get(usize::from(which) % all.len().max(1))
}

async fn edit(world: &World, accounts: &mut Accounts, draft: &Draft) {
    accounts.edited += 1;
    let body = Some(format!("edited {}", accounts.edited));
    let edit = Edit { draft: draft.id, seen: draft.digest(), to: None, body, mail: MailEdit::default() };
    let edited = world.door.edit(edit, false).await.is_ok();
    assert_eq!(edited, matches!(draft.status, Status::Pending | Status::Failed(_)), "{draft:?}");
}

async fn take_back(world: &World, accounts: &mut Accounts) {
    let now = kai_assistant::clock::Clock::now(world.clock.as_ref());
    let recent = world.door.db.read(move |tx| discarded::recent(tx, now)).await.unwrap();
    let ids: Vec<DraftId> = recent.iter().flat_map(|it| &it.drafts).map(|draft| draft.id).collect();
    let back = world.door.restore(ids.clone()).await.unwrap();
    assert_eq!(back.len(), ids.len(), "what is offered can be taken back");
    accounts.discarded -= back.len();
}

async fn play(world: &World, accounts: &mut Accounts, event: Happens) {
    let drafts = world.drafts().await;
    accounts.seen.extend(drafts.iter().cloned());
    match event {
        Happens::Stage => {
            let body = accounts.staged.to_string();
            match world.stage(&body).await {
                Ok(_) => accounts.staged += 1,
                Err(StageError::Full) => {
                    let waiting = |d: &Draft| !matches!(d.status, Status::Sent(_) | Status::Failed(_));
                    assert!(drafts.iter().all(waiting), "only a box full of waiting drafts refuses");
                }
                Err(error) => panic!("{error}"),
            }
        }
        Happens::Tap(which) => {
            if let Some(draft) = pick(&drafts, which)
                && tap(world, draft).await
            {
                accounts.won();
            }
        }
        Happens::DoubleTap(which) => {
            let Some(draft) = pick(&drafts, which) else { return };
            let won = tap_twice(world, draft).await;
            assert!(won <= 1, "both taps won");
            if won == 1 {
                accounts.won();
            }
        }
        Happens::StaleTap(which) => {
            let Some(sight) = pick(&accounts.seen, which).cloned() else { return };
            let fresh = drafts.contains(&sight);
            if tap(world, &sight).await {
                assert!(fresh, "a tap on an old sight won: {sight:?}");
                accounts.won();
            }
        }
        Happens::Edit(which) => {
            if let Some(draft) = pick(&drafts, which) {
                edit(world, accounts, draft).await;
            }
        }
        Happens::Undo => take_back(world, accounts).await,
        Happens::Discard(which) => {
            if let Some(draft) = pick(&drafts, which) {
                let gone = world.door.discard(draft.id).await.is_ok();
                assert_eq!(gone, draft.status != Status::Sending);
                accounts.discarded += usize::from(gone);
            }
        }
        Happens::Settle => drop(world.door.settle().await.unwrap()),
        Happens::Restart => world.die().await,
        Happens::Next(fate) => {
            world.phone.next_send(fate.clone());
            accounts.fates.push_back(fate);
        }
        Happens::Wait(seconds) => world.clock.advance(SignedDuration::from_secs(i64::from(seconds))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn what_leaves_is_what_was_tapped(events in proptest::collection::vec(happens(), 1..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = world();
            let mut accounts = Accounts::default();
            for event in events {
                play(&world, &mut accounts, event).await;
                assert_eq!(world.phone.sent_count(), accounts.left);
            }
            assert_eq!(world.taps_in_ledger().await, accounts.taps);
            let now: BTreeMap<DraftId, Draft> = world.drafts().await.into_iter().map(|d| (d.id, d)).collect();
            let made_room = accounts.staged - accounts.discarded - now.len();
            // Only finished ones make room: whoever was last seen waiting is there, or was discarded.
            let last: BTreeMap<DraftId, &Draft> = accounts.seen.iter().map(|d| (d.id, d)).collect();
            let finished = last.values().filter(|d| !now.contains_key(&d.id)).count();
            assert!(made_room <= finished, "{made_room} drafts are gone, {finished} could be");
        });
    }
}
