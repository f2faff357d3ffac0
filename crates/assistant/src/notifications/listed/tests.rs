//! Tests of notifications in the inbox.

use jiff::SignedDuration;

use super::*;
use crate::MIGRATIONS;
use crate::db::Db;
use crate::notifications::port::Heard;
use crate::notifications::record::Post;
use crate::notifications::repeats;
use crate::settings::NOTIFICATIONS_ENABLED;
use crate::source::SourceId;

const START: &str = "2026-03-09T12:00:00Z";

fn now() -> Timestamp {
    START.parse().unwrap()
}

fn post(id: &str, title: &str, text: &str) -> Post {
    Post {
        app_label: Some(Untrusted::new("Chat")),
        ..Post::new(NotificationId::new(id), "org.chat", title, text)
    }
}

struct House {
    db: Db,
    source: NotificationSource,
}

impl House {
    fn new() -> Self {
        let db = Db::in_memory(MIGRATIONS).unwrap();
        let on = db.write_now(|tx| settings::store(tx, &NOTIFICATIONS_ENABLED.key, "true"));
        on.unwrap_or_else(|e: DbError| panic!("{e}"));
        Self { db, source: NotificationSource { platforms: Arc::new(Sources::new(None)) } }
    }

    /// Hears of these at that many seconds after the start.
    fn hear(&self, seconds: i64, heard: &[Heard]) {
        let at = now() + SignedDuration::from_secs(seconds);
        let all = heard.iter().map(|heard| (at, heard));
        self.db.write_now(|tx| store::hear(tx, SourceId::HERE, all, &repeats::never)).unwrap();
    }

    fn posted(&self, seconds: i64, id: &str, text: &str) {
        self.hear(seconds, &[Heard::Posted(Box::new(post(id, "Alice", text)))]);
    }

    fn page(&self, wanted: &Wanted) -> Vec<Item> {
        self.db.read_now(|tx| self.source.page(tx, wanted, 10)).unwrap()
    }

    fn show(&self, show: Show) -> Vec<(String, bool, bool)> {
        let items = self.page(&Wanted { show, ..Wanted::all(now()) });
        items.into_iter().map(|it| (it.preview.as_written().to_owned(), it.unread, it.waiting)).collect()
    }

    fn mark(&self, id: &str, mark: Mark) {
        self.db.write_now(|tx| self.source.mark(tx, id, mark)).unwrap();
    }

    fn unread(&self) -> usize {
        self.db.read_now(|tx| self.source.unread(tx, now(), 100)).unwrap()
    }
}

fn row(text: &str, unread: bool, waiting: bool) -> (String, bool, bool) {
    (text.to_owned(), unread, waiting)
}

#[test]
fn what_was_opened_closed_or_dismissed_is_not_unread_until_it_changes() {
    let house = House::new();
    for (seconds, id) in [(0, "a"), (1, "b"), (2, "c")] {
        house.posted(seconds, id, id);
    }
    assert_eq!(house.show(Show::All), [row("c", true, true), row("b", true, true), row("a", true, true)]);
    house.mark("a", Mark::Opened);
    house.hear(3, &[Heard::Closed(NotificationId::new("b"))]);
    house.mark("c", Mark::Away);
    assert_eq!(house.show(Show::All), [row("b", false, true), row("a", false, true)]);
    assert_eq!(house.show(Show::Away), [row("c", false, false)]);
    assert_eq!((house.show(Show::Unread), house.unread()), (vec![], 0));
    // The same again is no news; another text is.
    house.posted(4, "a", "a");
    house.posted(5, "c", "c");
    assert_eq!(house.unread(), 0);
    house.posted(6, "a", "again");
    house.posted(7, "c", "more");
    assert_eq!(house.show(Show::Unread), [row("more", true, true), row("again", true, true)]);
    house.mark("c", Mark::Away);
    house.mark("c", Mark::Back);
    assert_eq!(house.show(Show::Waiting), [row("again", true, true), row("b", false, true)]);
    assert_eq!(house.show(Show::All)[0], row("more", false, false), "it is back, and was seen");
}

#[test]
fn those_of_one_moment_are_paged_once_each() {
    let house = House::new();
    for id in ["a", "bb", "c", "0|z"] {
        house.posted(0, id, id);
    }
    let (mut wanted, mut all) = (Wanted::all(now()), vec![]);
    while let Some(item) = house.db.read_now(|tx| house.source.page(tx, &wanted, 1)).unwrap().first() {
        all.push(item.key.id.clone());
        wanted.before = Some(item.cursor());
    }
    assert_eq!(all, ["0|z", "bb", "c", "a"]);
    let found = Wanted { words: "CHAT bb".to_owned(), ..Wanted::all(now()) };
    assert_eq!(house.page(&found).len(), 1);
}

#[test]
fn what_only_the_queue_has_is_listed_as_long_as_it_waits() {
    let house = House::new();
    house.posted(0, "a", "old");
    let later = now() + SignedDuration::from_hours(30);
    house.db.write_now(|tx| store::sweep(tx, later)).unwrap();
    let items = house.page(&Wanted::all(later));
    assert_eq!((items.len(), items[0].waiting, items[0].unread), (1, true, false));
    assert!(house.db.read_now(|tx| house.source.message(tx, "a", later)).unwrap().is_some());
    house.mark("a", Mark::Away);
    assert!(house.page(&Wanted::all(later)).is_empty());
}

#[test]
fn a_repeated_sms_is_not_listed_twice() {
    let house = House::new();
    let heard = [Heard::Posted(Box::new(post("a", "Lena", "Dinner?")))];
    let hear = |repeats: &repeats::RepeatsSms| {
        let all = heard.iter().map(|heard| (now(), heard));
        house.db.write_now(|tx| store::hear(tx, SourceId::HERE, all, repeats)).unwrap();
    };
    hear(&|_, _, _| Ok(true));
    assert_eq!((house.show(Show::All), house.unread()), (vec![], 0));
    // The SMS comes second.
    let house = House::new();
    house.posted(0, "b", "Dinner?");
    let came = [(now(), Untrusted::new("Dinner?"))];
    house.db.write_now(|tx| store::sms_came(tx, SourceId::HERE, &came)).unwrap();
    assert_eq!((house.show(Show::All), house.unread()), (vec![], 0));
}

#[test]
fn the_user_sees_codes_and_a_model_does_not() {
    let house = House::new();
    house.hear(0, &[Heard::Posted(Box::new(post("a", "Your login code", "482913")))]);
    let whole = house.db.read_now(|tx| house.source.message(tx, "a", now())).unwrap().unwrap();
    assert_eq!(whole.text.as_written(), "482913");
    let quote = house.db.read_now(|tx| house.source.quote(tx, "a", now(), &TimeZone::UTC)).unwrap().unwrap();
    assert!(quote.json.contains("[code]") && !quote.json.contains("482913"), "{}", quote.json);
    assert!(quote.json.contains("\"untrusted\":true"));
    assert_eq!(quote.identity, "notification a");
}
