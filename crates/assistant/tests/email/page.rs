//! Mails on the inbox page.

use jiff::tz::TimeZone;
use kai_assistant::clock::Clock;
use kai_assistant::email::{EmailSource, Mailboxes};
use kai_assistant::inbox::{Fetched, Item, Key, Mark, MessageSource, Need, NoReply, Show, Wanted};
use kai_assistant::outbox::store::stage_own;
use kai_assistant::outbox::{DraftOrigin, NewDraft};
use kai_words::said;

use crate::servers::{Mood, letter, letter_from};
use crate::world::{HOME, WORK, World, tap};

fn source(world: &World) -> EmailSource {
    let mailboxes = Mailboxes::new(world.db.clone(), world.servers.clone());
    EmailSource::new(mailboxes, world.clock.clone())
}

fn page(world: &World, source: &EmailSource, wanted: &Wanted) -> Vec<Item> {
    world.db.read_now(|tx| source.page(tx, wanted, 10)).unwrap()
}

fn titles(items: &[Item]) -> Vec<&str> {
    items.iter().map(|item| item.title.as_ref().unwrap().as_written()).collect()
}

async fn fetch(world: &World, source: &EmailSource, id: &str) -> Fetched {
    let need = Need::Message(Key::new("email", id));
    if let Some(fetching) = world.db.read_now(|tx| source.fetch(tx, &need)).unwrap() {
        assert_eq!(source.fetched(&need), Fetched::Loading);
        fetching.await;
    }
    source.fetched(&need)
}

fn reply(world: &World, source: &EmailSource, id: &str) -> Result<NewDraft, NoReply> {
    let (body, now) = ("Yes.".to_owned(), world.clock.now());
    world.db.read_now(|tx| source.reply(tx, id, body, now))
}

#[tokio::test]
async fn mails_are_listed_opened_and_dismissed() {
    let (world, now) = (World::seeded().await, |world: &World| world.clock.now());
    world.servers.deliver(HOME, letter("Dinner", "Your verification code is 482913."));
    world.servers.deliver(HOME, letter_from("Bob", "Bob@X.test", "Lunch", "At noon?"));
    world.servers.deliver(WORK, letter_from("", "bob@x.test", "Report", "?"));
    world.poller.poll_all().await.unwrap();
    let (source, all) = (source(&world), Wanted::all(now(&world)));
    let items = page(&world, &source, &all);
    assert_eq!(titles(&items), ["Report", "Lunch", "Dinner"], "of one moment, the higher id comes first");
    assert!(items.iter().all(|item| item.unread && item.waiting));
    assert_eq!(items[0].phone_name.as_deref(), Some(WORK));
    assert_eq!(items[0].group, items[1].group, "one sender, however the address is written");
    assert!(items[2].preview.as_written().contains("482913"), "the user sees everything");
    for (name, wanted, expected) in [
        ("one account", Wanted { phone: Some(world.work.source), ..all.clone() }, vec!["Report"]),
        ("a phone", Wanted { phone: Some(kai_assistant::source::SourceId(2)), ..all.clone() }, vec![]),
        ("words", Wanted { words: "bob NOON".to_owned(), ..all.clone() }, vec!["Lunch"]),
        ("a code", Wanted { words: "482913".to_owned(), ..all.clone() }, vec!["Dinner"]),
        ("what follows", Wanted { before: Some(items[0].cursor()), ..all.clone() }, vec!["Lunch", "Dinner"]),
    ] {
        assert_eq!(titles(&page(&world, &source, &wanted)), expected, "{name}");
    }
    let mark = |id: &str, mark| world.db.write_now(|tx| source.mark(tx, id, mark)).unwrap();
    let unread = || world.db.read_now(|tx| source.unread(tx, now(&world), 99)).unwrap();
    assert_eq!(unread(), 3);
    mark("1.7.3", Mark::Opened);
    mark("1.7.4", Mark::Away);
    // Both accounts are polled at once, so which of them comes first in the queue is not said.
    let mut waiting = world.subjects();
    waiting.sort();
    assert_eq!((unread(), waiting), (1, vec!["Dinner".to_owned(), "Report".to_owned()]));
    let show = |show| page(&world, &source, &Wanted { show, ..all.clone() });
    assert_eq!(titles(&show(Show::All)), ["Report", "Dinner"]);
    assert_eq!(titles(&show(Show::Unread)), ["Report"]);
    assert_eq!(titles(&show(Show::Away)), ["Lunch"]);
    mark("1.7.4", Mark::Back);
    assert_eq!(titles(&show(Show::All)).len(), 3);
    assert_eq!(titles(&show(Show::Waiting)), ["Report", "Dinner"]);
    let phones = world.db.read_now(|tx| source.phones(tx)).unwrap();
    assert_eq!(phones.into_values().flatten().collect::<Vec<_>>(), [HOME, WORK]);
}

#[tokio::test]
async fn a_text_is_fetched_beside_the_page_and_then_answered() {
    let world = World::seeded().await;
    let long = format!("Dinner? {} Your verification code is 482913.", "Tea. ".repeat(100));
    world.servers.deliver(HOME, letter("Dinner", &long));
    world.poll().await.unwrap();
    let source = source(&world);
    let message =
        |id: &str| world.db.read_now(|tx| source.message(tx, id, world.clock.now())).unwrap().unwrap();
    let first = message("1.7.3");
    assert!(first.is_beginning && first.text.as_written().chars().count() <= 200);
    let early = reply(&world, &source, "1.7.3");
    assert!(matches!(early, Err(NoReply::Impossible(why)) if why == said::inbox_no_reply_loading()));
    world.servers.inbox(HOME, |inbox| inbox.mood = Mood::Fails(kai_assistant::email::port::Why::Silent));
    assert!(matches!(fetch(&world, &source, "1.7.3").await, Fetched::Failed(_)));
    assert!(message("1.7.3").is_beginning, "what is kept is shown all the same");
    world.servers.inbox(HOME, |inbox| inbox.mood = Mood::Fine);
    assert!(matches!(fetch(&world, &source, "1.7.3").await, Fetched::Failed(_)), "not again at once");
    world.minutes(2);
    assert_eq!(fetch(&world, &source, "1.7.3").await, Fetched::All);
    let whole = message("1.7.3");
    assert_eq!((whole.text.as_written(), whole.is_beginning), (long.as_str(), false));
    let quote = world.db.read_now(|tx| source.quote(tx, "1.7.3", world.clock.now(), &TimeZone::UTC));
    let quote = quote.unwrap().unwrap();
    assert!(quote.json.contains("Tea.") && !quote.json.contains("482913"), "{}", quote.json);
    assert_eq!(quote.identity, "email 1.7.3");
    let new = reply(&world, &source, "1.7.3").unwrap();
    assert!(new.known_contact && new.mail.as_ref().unwrap().quote.is_some());
    let draft = world.db.write_now(|tx| stage_own(tx, &new, world.clock.now())).unwrap();
    assert_eq!(draft.came_from(), DraftOrigin::User);
    world.door.tap(tap(&draft)).await.unwrap();
    assert_eq!(world.servers.sent().len(), 1);
    world.servers.inbox(HOME, |inbox| inbox.letters.clear());
    let other = self::source(&world);
    assert_eq!(fetch(&world, &other, "1.7.3").await, Fetched::Failed(said::email_gone()));
    for id in ["", "x", "9.9.9"] {
        assert_eq!(world.db.read_now(|tx| source.message(tx, id, world.clock.now())).unwrap(), None);
        assert!(matches!(reply(&world, &source, id), Err(NoReply::Gone)));
    }
}
