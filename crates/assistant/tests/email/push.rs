//! What servers push, and the copies for the Sent folders.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use kai_assistant::clock::Clock;
use kai_assistant::email::port::Why;
use kai_assistant::email::{Copies, Push, store};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::servers::{Mood, letter};
use crate::world::{HOME, WORK, World, tap};

/// A running push, which stops with the test.
struct Running {
    push: Arc<Push>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

fn run(world: &World) -> Running {
    let (push, stop) = (Arc::new(Push::new(world.poller.clone())), CancellationToken::new());
    let task = tokio::spawn({
        let (push, stop) = (Arc::clone(&push), stop.clone());
        async move { push.run(stop).await }
    });
    Running { push, stop, task }
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..2_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}");
}

fn watched(world: &World, address: &str) -> usize {
    world.servers.inbox(address, |inbox| inbox.watched)
}

#[tokio::test(start_paused = true)]
async fn news_are_polled_at_once_and_connections_follow_the_settings() {
    let world = World::seeded().await;
    let Running { push, stop, task } = run(&world);
    until("both are watched", || watched(&world, HOME) == 1 && watched(&world, WORK) == 1).await;
    world.servers.deliver(HOME, letter("Dinner", "?"));
    until("the mail is here", || world.subjects() == ["Dinner"]).await;
    for (key, value) in [("email_enabled", "false"), ("email_poll_interval", "0")] {
        world.set(key, value);
        push.poke();
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.servers.deliver(HOME, letter("Unseen", "?"));
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(world.subjects(), ["Dinner"], "{key}");
        world.set(key, if value == "0" { "5" } else { "true" });
        push.poke();
        let before = watched(&world, HOME);
        until("it is watched again", || watched(&world, HOME) == before + 1).await;
        world.poll().await.unwrap();
        while world.subjects().len() > 1 {
            world.db.write_now(forget_last).unwrap();
        }
    }
    let home = world.home.source;
    world.db.write_now(|tx| store::remove(tx, home)).unwrap();
    let (before, of_work) = (watched(&world, HOME), watched(&world, WORK));
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(
        (watched(&world, HOME), watched(&world, WORK)),
        (before, of_work),
        "noticed without being told"
    );
    stop.cancel();
    task.await.unwrap();
}

fn forget_last(tx: &rusqlite::Transaction<'_>) -> Result<(), kai_assistant::db::DbError> {
    tx.execute("DELETE FROM pending WHERE seq = (SELECT max(seq) FROM pending)", [])?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_made_again_after_growing_pauses_and_not_where_nothing_can_be_pushed() {
    let world = World::seeded().await;
    world.servers.inbox(HOME, |inbox| inbox.mood = Mood::Fails(Why::Broken));
    world.servers.inbox(WORK, |inbox| inbox.mood = Mood::Fails(Why::NoPush));
    let Running { push, stop, task } = run(&world);
    // After 0, 5, 15, 35, 75, 155, 315 and 635 seconds.
    tokio::time::sleep(Duration::from_mins(6)).await;
    assert_eq!(watched(&world, HOME), 7);
    assert_eq!(watched(&world, WORK), 1);
    push.poke();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(watched(&world, WORK), 1, "nothing has changed");
    world.servers.inbox(HOME, |inbox| inbox.mood = Mood::Fine);
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(watched(&world, HOME), 8);
    world.servers.deliver(HOME, letter("Dinner", "?"));
    until("the mail is here", || world.subjects() == ["Dinner"]).await;
    stop.cancel();
    task.await.unwrap();
}

#[tokio::test]
async fn a_copy_is_put_into_the_sent_folder_once_also_after_a_failure() {
    let world = World::seeded().await;
    let copies = Copies { db: world.db.clone(), clock: world.clock.clone(), servers: world.servers.clone() };
    assert_eq!(copies.tick().await.unwrap(), 0);
    for account in [HOME, WORK] {
        let new = json!({"to": "bob@x.test", "subject": account, "body": "x", "account": account});
        world.call("compose_email", new).await;
        world.door.tap(tap(&world.draft())).await.unwrap();
    }
    world.servers.inbox(HOME, |inbox| inbox.mood = Mood::Fails(Why::Silent));
    assert_eq!(copies.tick().await.unwrap(), 1, "one that is away does not hold the other");
    assert_eq!(copies.tick().await.unwrap(), 0, "not again at once");
    world.servers.inbox(HOME, |inbox| inbox.mood = Mood::Fine);
    world.clock.advance(SignedDuration::from_mins(16));
    assert_eq!((copies.tick().await.unwrap(), copies.tick().await.unwrap()), (1, 0));
    let kept: Vec<(String, String)> = world
        .servers
        .state()
        .copies
        .iter()
        .map(|(by, mail)| (by.clone(), mail.envelope.subject.clone()))
        .collect();
    assert_eq!(kept, [WORK, HOME].map(|one| (one.to_owned(), one.to_owned())));
    let new = json!({"to": "bob@x.test", "subject": "last", "body": "x", "account": HOME});
    world.call("compose_email", new).await;
    world.door.tap(tap(&world.draft())).await.unwrap();
    let (home, now) = (world.home.source, world.clock.now());
    world.db.write_now(|tx| store::remove(tx, home)).unwrap();
    assert_eq!(copies.tick().await.unwrap(), 0);
    let left = world.db.write_now(|tx| kai_assistant::outbox::copies::due(tx, now)).unwrap();
    assert_eq!(left, []);
}
