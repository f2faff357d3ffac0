//! Editing and discarding drafts: what leaves is what the user saw last, and nothing is lost that they want back.

#![cfg(feature = "sms")]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::MIGRATIONS;
use kai_assistant::clock::{Clock, ManualClock};
use kai_assistant::db::{Db, DbError};
use kai_assistant::gate::RunKind;
use kai_assistant::ledger::{self, Record};
use kai_assistant::outbox::door::{self, Act, Door, NotEdited, Refused, Senders, Tap};
use kai_assistant::outbox::edit::{Edit, MailEdit, Unfit};
use kai_assistant::outbox::store::{self, CAPACITY, StageError};
use kai_assistant::outbox::{Channel, Draft, DraftId, NewDraft, Status, discarded};
use kai_assistant::source::SourceId;
use kai_bridges::simulated::{Fate, Phone};

const ALICE: &str = "+15550100";
const BOB: &str = "+15550199";

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
        to: ALICE.to_owned(),
        app: None,
        body: body.to_owned(),
        mail: None,
        in_reply_to: None,
        quoted: None,
        known_contact: true,
        origin: RunKind::Heartbeat,
        guest: None,
        conversation: 0,
    }
}

fn tap_on(draft: &Draft) -> Tap {
    let act = Act::fitting(&draft.status).unwrap();
    Tap { draft: draft.id, act, shown: draft.digest(), attempts: draft.attempts }
}

fn typed(draft: &Draft, to: Option<&str>, body: Option<&str>) -> Edit {
    let (to, body) = (to.map(str::to_owned), body.map(str::to_owned));
    Edit { draft: draft.id, seen: draft.digest(), to, body, mail: MailEdit::default() }
}

impl World {
    async fn stage(&self, new: NewDraft) -> Result<Draft, StageError> {
        let now = self.clock.now();
        self.door.db.write(move |tx| store::stage(tx, &new, now)).await
    }

    async fn drafts(&self) -> Vec<Draft> {
        let now = self.clock.now();
        self.door.db.read(move |tx| door::drafts(tx, now)).await.unwrap()
    }

    async fn recent(&self) -> Vec<Vec<DraftId>> {
        let now = self.clock.now();
        let recent = self.door.db.read(move |tx| discarded::recent(tx, now)).await.unwrap();
        recent.iter().map(|it| it.drafts.iter().map(|draft| draft.id).collect()).collect()
    }

    async fn rows(&self) -> u32 {
        let count = "SELECT count(*) FROM drafts";
        self.door
            .db
            .read(move |tx| Ok::<u32, DbError>(tx.query_row(count, [], |row| row.get(0))?))
            .await
            .unwrap()
    }

    fn left(&self) -> Vec<(String, String)> {
        self.phone.sent().into_iter().map(|sent| (sent.to, sent.body)).collect()
    }
}

#[tokio::test]
async fn what_is_sent_is_what_was_edited_and_a_tap_on_the_old_text_is_refused() {
    let world = world();
    let before = world.stage(new("Hi")).await.unwrap();
    let edited = world.door.edit(typed(&before, Some(BOB), Some(" Hello\r\nBob ")), false).await.unwrap();
    assert_eq!((edited.id, edited.to.as_str(), edited.body.as_str()), (before.id, BOB, "Hello\nBob"));
    assert_eq!(world.drafts().await, std::slice::from_ref(&edited), "as it is stored");
    assert!(matches!(world.door.tap(tap_on(&before)).await, Err(Refused::Changed)));
    assert_eq!(world.left(), []);
    world.door.tap(tap_on(&edited)).await.unwrap();
    assert_eq!(world.left(), [(BOB.to_owned(), "Hello\nBob".to_owned())]);
    let ledger = world.door.db.read(ledger::all).await.unwrap();
    let expected = Record::Edited {
        draft: before.id.0,
        to: BOB.to_owned(),
        before: before.digest(),
        digest: edited.digest(),
    };
    assert!(ledger.contains(&expected), "{ledger:?}");
    assert!(!serde_json::to_string(&ledger).unwrap().contains("Hello"), "the ledger holds no text");
}

#[tokio::test]
async fn of_two_pages_that_edit_at_once_one_is_refused() {
    let world = world();
    let before = world.stage(new("Hi")).await.unwrap();
    let edits = (0..20).map(|n| world.door.edit(typed(&before, None, Some(&format!("Text {n}"))), false));
    let outcomes = futures_util::future::join_all(edits).await;
    let won: Vec<&Draft> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
    assert_eq!(won.len(), 1);
    assert_eq!(world.drafts().await[0].body, won[0].body);
    let changed =
        |outcome: &&Result<Draft, NotEdited>| matches!(outcome, Err(NotEdited::Unfit(Unfit::Changed)));
    assert_eq!(outcomes.iter().filter(changed).count(), 19);
}

/// Whichever comes first: nothing leaves that was not on the screen of who tapped.
#[tokio::test]
async fn an_edit_and_a_tap_at_once_send_what_was_tapped_or_nothing() {
    for n in 0..20 {
        let world = world();
        let before = world.stage(new("Hi")).await.unwrap();
        let tap = world.door.tap(tap_on(&before));
        let edit = world.door.edit(typed(&before, None, Some("Hello")), false);
        let (tapped, edited) = if n % 2 == 0 {
            tokio::join!(tap, edit)
        } else {
            let (edited, tapped) = tokio::join!(edit, tap);
            (tapped, edited)
        };
        assert_ne!(tapped.is_ok(), edited.is_ok(), "one of them");
        let expected = if tapped.is_ok() { vec![(ALICE.to_owned(), "Hi".to_owned())] } else { vec![] };
        assert_eq!(world.left(), expected);
    }
}

#[tokio::test]
async fn nothing_changes_if_nothing_was_typed_or_the_store_fails() {
    let world = world();
    let before = world.stage(new("Hi")).await.unwrap();
    assert_eq!(
        world.door.edit(typed(&before, Some("+1 555 0100"), Some("Hi ")), true).await.unwrap(),
        before
    );
    let records = world.door.db.read(ledger::all).await.unwrap().len();
    assert_eq!(records, 1, "only that it was drafted");
    let refuse =
        "CREATE TRIGGER full BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'the disk is full'); END";
    world.door.db.write(move |tx| Ok::<_, DbError>(tx.execute_batch(refuse)?)).await.unwrap();
    let refused = world.door.edit(typed(&before, None, Some("Hello")), true).await;
    assert!(matches!(refused, Err(NotEdited::Store(_))), "{refused:?}");
    assert!(world.door.discard(before.id).await.is_err());
    assert_eq!(world.drafts().await, [before], "no edit without its record");
}

#[tokio::test]
async fn a_stranger_is_a_stranger_after_an_edit_too() {
    let world = world();
    let known = world.stage(new("Hi")).await.unwrap();
    assert!(!known.first_contact);
    for (name, to, wrote_before, stranger) in [
        ("who never wrote", BOB, false, true),
        ("the same one in another spelling", "+1 555 01 99", false, true),
        ("who wrote before", "+15550177", true, false),
        ("a stranger again", BOB, false, true),
        ("the one it was drafted to", ALICE, true, false),
    ] {
        let before = world.drafts().await.remove(0);
        let after = world.door.edit(typed(&before, Some(to), None), wrote_before).await.unwrap();
        assert_eq!(after.first_contact, stranger, "{name}");
        assert_eq!(world.drafts().await, [after], "{name}");
    }
    world.door.tap(tap_on(&world.drafts().await[0])).await.unwrap();
    let other = world.stage(NewDraft { to: BOB.to_owned(), ..new("Hi") }).await.unwrap();
    let after = world.door.edit(typed(&other, Some(ALICE), None), false).await.unwrap();
    assert!(!after.first_contact, "a message to this number was sent before");
}

#[tokio::test]
async fn what_failed_waits_again_once_it_was_edited() {
    let world = world();
    let draft = world.stage(new("Hi")).await.unwrap();
    world.phone.next_send(Fate::Fails("No network.".to_owned()));
    let failed = world.door.tap(tap_on(&draft)).await.unwrap();
    let edited = world.door.edit(typed(&failed, None, Some("Hello")), true).await.unwrap();
    assert_eq!((&edited.status, edited.attempts), (&Status::Pending, 1));
    assert!(world.door.tap(tap_on(&failed)).await.is_err(), "Retry was for the old text");
    let stale = Tap { attempts: 0, ..tap_on(&edited) };
    assert!(matches!(world.door.tap(stale).await, Err(Refused::Changed)));
    world.door.tap(tap_on(&edited)).await.unwrap();
    assert_eq!(world.left(), [(ALICE.to_owned(), "Hello".to_owned())]);
}

/// A run that failed is repeated; what the user made of its draft stays the only one.
#[tokio::test]
async fn a_repeated_run_does_not_stage_again_what_was_edited() {
    let world = world();
    let first = world.stage(new("Hi")).await.unwrap();
    let once = world.door.edit(typed(&first, Some(BOB), Some("Hello")), true).await.unwrap();
    let twice = world.door.edit(typed(&once, None, Some("Good evening")), true).await.unwrap();
    let told = world.stage(new("Hi")).await.unwrap();
    assert_eq!((told.id, told.to.as_str(), told.body.as_str()), (first.id, ALICE, "Hi"), "its own words");
    assert_eq!(world.drafts().await, std::slice::from_ref(&twice));
    let other = world.stage(new("Hi again")).await.unwrap();
    assert_ne!(other.id, first.id);
    world.door.tap(tap_on(&twice)).await.unwrap();
    assert_ne!(world.stage(new("Hi")).await.unwrap().id, first.id, "that one waits no more");
}

/// What left with the old text must not settle another draft of that text.
#[tokio::test]
async fn an_attempt_with_the_old_text_still_counts() {
    let world = world();
    let first = world.stage(new("Hi")).await.unwrap();
    world.phone.next_send(Fate::UnsureButSent("No answer.".to_owned()));
    let unsure = world.door.tap(tap_on(&first)).await.unwrap();
    world.phone.next_send(Fate::Fails("No network.".to_owned()));
    let failed = world.door.tap(tap_on(&unsure)).await.unwrap();
    world.door.edit(typed(&failed, None, Some("Something else")), true).await.unwrap();
    let second = world.stage(NewDraft { origin: RunKind::Chat, ..new("Hi") }).await.unwrap();
    world.phone.next_send(Fate::UnsureAndNotSent("No answer.".to_owned()));
    world.door.tap(tap_on(&second)).await.unwrap();
    assert_eq!(world.door.settle().await.unwrap(), 0, "the message in the sent box is the first one's");
}

#[tokio::test]
async fn what_was_discarded_can_be_taken_back_for_a_moment() {
    let world = world();
    let draft = world.stage(new("Hi")).await.unwrap();
    world.phone.next_send(Fate::Fails("No network.".to_owned()));
    let failed = world.door.tap(tap_on(&draft)).await.unwrap();
    for (after, offered, possible) in
        [(0, true, true), (9, true, true), (14, false, true), (15, false, false)]
    {
        world.door.discard(draft.id).await.unwrap();
        assert_eq!(world.drafts().await, []);
        assert!(matches!(world.door.tap(tap_on(&failed)).await, Err(Refused::Unknown(_))), "nobody sends it");
        let edit = world.door.edit(typed(&failed, None, Some("x")), true).await;
        assert!(matches!(edit, Err(NotEdited::Unknown(_))), "nor edits it");
        assert!(matches!(world.door.discard(draft.id).await, Err(Refused::Unknown(_))));
        world.clock.advance(SignedDuration::from_secs(after));
        assert_eq!(!world.recent().await.is_empty(), offered, "{after} s");
        let back = world.door.restore(vec![draft.id]).await.unwrap();
        let expected = if possible { vec![failed.clone()] } else { vec![] };
        assert_eq!((back, world.drafts().await), (expected.clone(), expected), "{after} s: as it was");
    }
    assert_eq!(world.rows().await, 0, "and then it is gone for good");
    assert_eq!(world.left(), []);
    let ledger = world.door.db.read(ledger::all).await.unwrap();
    let count = |wanted: &Record| ledger.iter().filter(|record| *record == wanted).count();
    let discarded = Record::Discarded { draft: draft.id.0, status: "FAILED".to_owned() };
    assert_eq!((count(&discarded), count(&Record::Undiscarded { draft: draft.id.0 })), (4, 3));
}

#[tokio::test]
async fn a_tick_deletes_what_nobody_took_back() {
    let world = world();
    for seconds in [15, -3600] {
        let draft = world.stage(new("Hi")).await.unwrap();
        world.door.discard(draft.id).await.unwrap();
        world.door.settle().await.unwrap();
        assert_eq!(world.rows().await, 1);
        world.clock.advance(SignedDuration::from_secs(seconds));
        world.door.settle().await.unwrap();
        assert_eq!(world.rows().await, 0, "{seconds}: also when the clock was set back");
    }
}

#[tokio::test]
async fn discarding_all_spares_what_was_sent_and_can_be_taken_back_as_one() {
    let world = world();
    let mut all = vec![];
    for n in 0..5 {
        all.push(world.stage(new(&n.to_string())).await.unwrap());
    }
    world.door.tap(tap_on(&all[0])).await.unwrap();
    world.phone.next_send(Fate::UnsureAndNotSent("No answer.".to_owned()));
    world.door.tap(tap_on(&all[1])).await.unwrap();
    let ids: Vec<DraftId> = all.iter().map(|draft| draft.id).collect();
    let before = world.drafts().await;
    world.door.discard(ids[4]).await.unwrap();
    world.clock.advance(SignedDuration::from_secs(1));
    let named = [&ids[..4], &[DraftId(99)]].concat();
    let gone = world.door.discard_all(named).await.unwrap();
    assert_eq!(gone.iter().map(|draft| draft.id).collect::<Vec<_>>(), ids[1..4]);
    assert_eq!(world.drafts().await, before[..1], "what was sent stays until it is dismissed");
    assert_eq!(world.recent().await, [ids[1..4].to_vec(), vec![ids[4]]], "each discard by itself");
    world.door.restore(ids[1..4].to_vec()).await.unwrap();
    assert_eq!(world.drafts().await, before[..4]);
    assert_eq!(world.recent().await, [vec![ids[4]]]);
    world.door.discard(ids[0]).await.unwrap();
    assert_eq!(world.recent().await, [vec![ids[4]]], "a sent one is only dismissed");
}

#[tokio::test]
async fn discarded_drafts_take_no_room_and_come_back_to_a_full_box() {
    let world = world();
    for n in 0..CAPACITY {
        world.stage(new(&n.to_string())).await.unwrap();
    }
    let first = world.drafts().await[0].id;
    world.door.discard(first).await.unwrap();
    world.stage(new("another")).await.unwrap();
    assert!(matches!(world.stage(new("one too many")).await, Err(StageError::Full)));
    assert_eq!(world.door.restore(vec![first]).await.unwrap().len(), 1);
    assert_eq!(world.drafts().await.len(), usize::try_from(CAPACITY).unwrap() + 1, "none is lost");
    assert!(matches!(world.stage(new("nor now")).await, Err(StageError::Full)));
}

/// Nobody is notified of what they have just discarded.
#[tokio::test]
async fn what_was_discarded_is_not_announced() {
    let world = world();
    let draft = world.stage(new("Hi")).await.unwrap();
    world.door.discard(draft.id).await.unwrap();
    assert_eq!(world.door.db.write(store::take_unannounced).await.unwrap(), []);
    world.door.restore(vec![draft.id]).await.unwrap();
    assert_eq!(world.door.db.write(store::take_unannounced).await.unwrap().len(), 1);
}
