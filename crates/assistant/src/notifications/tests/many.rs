//! Several sources at once: this machine and paired phones.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::*;

/// Waits until a condition holds, letting the other tasks run.
async fn until(mut holds: impl AsyncFnMut() -> bool) {
    while !holds().await {
        tokio::task::yield_now().await;
    }
}

impl House {
    /// Starts to capture every source; the capture ends when the sender is used or dropped.
    fn start(&self) -> (tokio::sync::oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let captures = self.captures();
        let running = tokio::spawn(async move { captures.run(async { drop(stopped.await) }).await });
        (stop, running)
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<T, DbError> + Send + 'static,
    ) -> T {
        self.db.write(work).await.unwrap()
    }

    async fn is_listening(&self, source: SourceId) -> bool {
        self.sync_of(source).await.listening
    }

    async fn turn_phone(&self, phone: SourceId, on: bool) -> bool {
        toggle::turn_phone(&self.db, self.clock.as_ref(), &self.sources, phone, on).await.unwrap()
    }

    async fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.kept().await.iter().map(|kept| kept.id.as_str().to_owned()).collect();
        ids.sort();
        ids
    }
}

fn bound() -> Heard {
    Heard::Bound { standing: vec![] }
}

fn lost(why: &str) -> Heard {
    Heard::Unbound(Access::Silent(why.into()))
}

#[tokio::test]
async fn what_was_stored_before_there_were_phones_is_this_machines() {
    let old: Vec<crate::db::Migration> =
        MIGRATIONS.iter().filter(|step| step.name != super::super::SOURCES.name).copied().collect();
    let db = Db::in_memory(&old).unwrap();
    let checked = db.write(|tx| {
        let post = post("1", "org.app", "Alice", "Hi");
        let record = Record::of(SourceId::HERE, &post, START.parse().unwrap());
        let sync = Sync { listening: true, alive_at: Some(7), ..Sync::default() };
        tx.execute(
            "INSERT INTO notifications (id, package_name, posted_at, closed, record) VALUES ('1', 'org.app', ?1, 0, ?2)",
            rusqlite::params![record.posted_at, crate::db::json(&record)?],
        )?;
        tx.execute("INSERT INTO notification_sync VALUES (1, ?1)", [crate::db::json(&sync)?])?;
        tx.execute("INSERT INTO notification_gaps VALUES (3, NULL, 'The bus is gone.')", [])?;
        tx.execute_batch(super::super::SOURCES.sql)?;
        let now = START.parse().unwrap();
        assert_eq!(store::find(tx, &NotificationId::new("1"), now)?, Some(record));
        assert_eq!(store::counts(tx)?, [(SourceId::HERE, 1)].into());
        assert_eq!(store::sync(tx, SourceId::HERE)?, sync);
        assert_eq!(store::gaps(tx, SourceId::HERE, now)?.len(), 1);
        assert_eq!(store::gaps(tx, SourceId(2), now)?, []);
        Ok::<_, DbError>(())
    });
    checked.await.unwrap();
}

#[tokio::test]
async fn the_same_key_on_two_phones_is_two_notifications() {
    let house = House::new().await;
    let (pixel, old) = (house.pair("Pixel").await, house.pair("Old").await);
    for source in [SourceId::HERE, pixel, old] {
        house
            .hear_from(source, vec![posted(post("1", "org.app", "Alice", &format!("to {}", source.0)))])
            .await;
    }
    assert_eq!(house.ids().await, ["1", "p2:1", "p3:1"]);
    house.hear_from(pixel, vec![Heard::Closed(NotificationId::new("1"))]).await;
    let closed = |id: &str| {
        let id = NotificationId::new(id);
        house.read(move |tx| store::is_closed(tx, &id))
    };
    assert_eq!((closed("1").await, closed("p2:1").await, closed("p3:1").await), (false, true, false));
    house.hear_from(old, vec![posted(post("1", "org.app", "Alice", "once more"))]).await;
    let queue = house.queue().await;
    assert_eq!(queue, [row("1", 1, "to 1"), row("p2:1", 1, "to 2"), row("p3:1", 2, "once more")]);
    assert_eq!(house.sync_of(old).await.last_seen_id, Some(NotificationId::new("p3:1")));
    let read = house.call(ReadNotification(house.shelf()), json!({"id": "p2:1"})).await;
    assert_eq!((&read["text"], &read["phone"]), (&json!("to 2"), &json!("Pixel")), "{read}");
}

#[tokio::test]
async fn each_source_has_limits_of_its_own() {
    let house = House::new().await;
    let pixel = house.pair("Pixel").await;
    let burst = |n: u32, apps: u32| {
        (0..n).map(move |k| posted(post(&k.to_string(), &format!("app{}", k % apps), "t", &k.to_string())))
    };
    house.hear(vec![posted(post("quiet", "app0", "t", "here"))]).await;
    house.hear_from(pixel, burst(70, 1).collect()).await;
    assert_eq!(
        house.read(store::counts).await,
        [(SourceId::HERE, 1), (pixel, PER_APP)].into(),
        "the same app, but not of the same source"
    );
    house.hear_from(pixel, burst(2_500, 60).collect()).await;
    assert_eq!(house.read(store::counts).await, [(SourceId::HERE, 1), (pixel, ALL)].into());
    let shares = house.read(|tx| pending::by_phone(tx, QUEUE)).await;
    let shares: Vec<(i64, u32)> = shares.iter().map(|share| (share.phone.0, share.waiting)).collect();
    assert_eq!(shares, [(1, 1), (2, 99)], "the phone with most waiting gave way");
    let dropped = house.read(|tx| pending::by_phone(tx, QUEUE)).await;
    assert!(dropped[0].dropped == 0 && dropped[1].dropped > 0, "{dropped:?}");
}

#[tokio::test]
async fn each_source_has_a_state_and_gaps_of_its_own() {
    let house = House::new().await;
    let pixel = house.pair("Pixel").await;
    house.hear(vec![bound()]).await;
    house.hear_from(pixel, vec![bound(), lost("The phone is away.")]).await;
    assert!(house.is_listening(SourceId::HERE).await && !house.is_listening(pixel).await);
    assert_eq!(house.sync_of(pixel).await.last_error, Some("The phone is away.".into()));
    assert_eq!((house.gaps().await.len(), house.gaps_of(pixel).await.len()), (0, 1));
    house.clock.advance(SignedDuration::from_mins(1));
    let now = house.clock.now();
    house.write(move |tx| store::tick(tx, now)).await;
    assert_eq!(house.sync().await.alive_at, Some(now.as_millisecond()));
    assert_ne!(house.sync_of(pixel).await.alive_at, Some(now.as_millisecond()), "nobody listens to it");
    house.hear_from(pixel, vec![bound()]).await;
    assert_eq!(house.gaps_of(pixel).await[0].ended, Some(now.as_millisecond()));
    house.clock.advance(SignedDuration::from_mins(5));
    house.write(store::begin).await;
    let began = |gaps: Vec<Gap>| gaps.last().map(|gap| (gap.began, gap.why.clone()));
    let killed = Some((now.as_millisecond(), said::access_not_running()));
    assert_eq!((began(house.gaps().await), began(house.gaps_of(pixel).await)), (killed.clone(), killed));
}

#[tokio::test]
async fn a_phone_at_the_edge_of_the_wifi_does_not_fill_the_store() {
    let house = House::new().await;
    let pixel = house.pair("Pixel").await;
    house.hear(vec![lost("The bus is gone.")]).await;
    for n in 0..150 {
        house.hear_from(pixel, vec![bound(), lost(&n.to_string())]).await;
    }
    let gaps = house.gaps_of(pixel).await;
    assert_eq!((gaps.len(), gaps.last().unwrap().why.to_string()), (store::GAPS as usize, "149".to_owned()));
    assert_eq!(house.gaps().await.len(), 1, "another's stay");
}

#[tokio::test]
async fn a_phones_switch_counts_below_the_features() {
    let house = House::new().await;
    house.set(&NOTIFICATIONS_ENABLED.key, "false").await;
    let pixel = house.pair("Pixel").await;
    let on = async || house.read(settings::load).await.on(&NOTIFICATIONS_ENABLED);
    assert!(on().await, "turning the phone on turned the feature on");
    let hear = async |id: &str| house.hear_from(pixel, vec![posted(post(id, "org.app", "a", "b"))]).await;
    hear("1").await;
    assert!(house.turn_phone(pixel, false).await);
    assert!(on().await, "this machine is still listened to");
    hear("2").await;
    assert!(house.turn_phone(pixel, true).await);
    let now = house.clock.now();
    house.write(move |tx| toggle::turn_off(tx, now)).await;
    hear("3").await;
    house.set(&NOTIFICATIONS_ENABLED.key, "true").await;
    hear("4").await;
    assert_eq!(house.ids().await, ["p2:1", "p2:4"]);
    assert!(!house.turn_phone(SourceId(9), true).await, "there is no such phone");
}

#[tokio::test]
async fn turning_off_is_no_gap_for_any_source() {
    let house = House::new().await;
    let (pixel, old) = (house.pair("Pixel").await, house.pair("Old").await);
    for source in [SourceId::HERE, pixel, old] {
        house.hear_from(source, vec![bound(), lost("Away.")]).await;
    }
    let lasting = async || {
        let mut lasting = vec![];
        for source in [SourceId::HERE, pixel, old] {
            lasting.push(house.gaps_of(source).await.iter().any(|gap| gap.ended.is_none()));
        }
        lasting
    };
    house.turn_phone(pixel, false).await;
    assert_eq!(lasting().await, [true, false, true]);
    let now = house.clock.now();
    house.write(move |tx| toggle::turn_off(tx, now)).await;
    assert_eq!(lasting().await, [false, false, false]);
}

#[tokio::test]
async fn a_phone_that_may_be_read_is_reason_enough_to_turn_on() {
    let denied = || Access::Denied("Allow it.".into());
    let house = House::with(denied(), vec![]).await;
    let turn_on = async || toggle::turn_on(&house.db, house.clock.as_ref(), &house.sources).await.unwrap();
    assert!(matches!(turn_on().await, Toggle::Waiting { .. }));
    let pixel = house.pair("Pixel").await;
    assert_eq!(house.sync().await.waiting_since, None, "nobody waits any more");
    assert_eq!(turn_on().await, Toggle::On);
    house.turn_phone(pixel, false).await;
    assert!(matches!(turn_on().await, Toggle::Waiting { .. }));
    let elsewhere = Sources::new(None);
    assert_eq!(toggle::turn_on(&house.db, house.clock.as_ref(), &elsewhere).await.unwrap(), Toggle::On);
}

#[tokio::test]
async fn what_is_forgotten_of_one_phone_leaves_the_others_and_nothing_comes_after() {
    let house = House::new().await;
    let (pixel, old) = (house.pair("Pixel").await, house.pair("Old").await);
    let all = vec![bound(), posted(post("1", "org.app", "a", "b")), lost("Away.")];
    for source in [SourceId::HERE, pixel, old] {
        house.hear_from(source, all.clone()).await;
    }
    let gone = house.write(move |tx| {
        phones::store::remove(tx, pixel)?;
        store::forget_phone(tx, pixel)
    });
    assert_eq!(gone.await, (1, 1));
    house.hear_from(pixel, all).await;
    assert_eq!(house.ids().await, ["1", "p3:1"]);
    assert_eq!(house.queue().await, [row("1", 1, "b"), row("p3:1", 1, "b")]);
    assert_eq!((house.sync_of(pixel).await, house.gaps_of(pixel).await), (Sync::default(), vec![]));
    assert!(house.sync_of(old).await.last_attempt_at.is_some() && house.gaps_of(old).await.len() == 1);
}

/// The user may unpair a phone and keep what it brought.
#[tokio::test]
async fn what_is_kept_of_an_unpaired_phone_gets_as_old_as_any() {
    let house = House::new().await;
    let (pixel, old) = (house.pair("Pixel").await, house.pair("Old").await);
    for source in [pixel, old] {
        house.hear_from(source, vec![bound(), posted(post("1", "org.app", "a", "b")), lost("Away.")]).await;
    }
    let now = house.clock.now();
    let unpaired = house.write(move |tx| {
        phones::store::remove(tx, pixel)?;
        store::tick(tx, now)
    });
    unpaired.await;
    assert_eq!(
        (house.ids().await, house.queue().await.len()),
        (vec!["p2:1".to_owned(), "p3:1".to_owned()], 2)
    );
    assert_eq!((house.sync_of(pixel).await, house.gaps_of(pixel).await), (Sync::default(), vec![]));
    assert!(house.gaps_of(old).await.len() == 1, "the other phone is still there");
    house.clock.advance(SignedDuration::from_hours(25));
    let later = house.clock.now();
    house.write(move |tx| store::tick(tx, later)).await;
    assert_eq!(house.read(store::count).await, 0);
}

#[tokio::test]
async fn what_stood_on_the_phone_is_found_and_is_no_news_however_it_is_told() {
    let house = House::new().await;
    let pixel = house.pair("Pixel").await;
    let standing = |id: &str| post(id, "org.app", "Alice", "Hi");
    let snapshot =
        vec![Heard::Bound { standing: vec![standing("1")] }, Heard::Standing(Box::new(standing("2")))];
    house.hear_from(pixel, snapshot.clone()).await;
    assert_eq!(house.ids().await, ["p2:1", "p2:2"]);
    house.hear_from(pixel, vec![lost("Away.")]).await;
    house.hear_from(pixel, snapshot).await;
    assert_eq!(house.queue().await, []);
    assert_eq!(house.sync_of(pixel).await.last_seen_id, None);
    house.hear_from(pixel, vec![posted(post("2", "org.app", "Alice", "Hi again"))]).await;
    assert_eq!(house.queue().await, [row("p2:2", 2, "Hi again")]);
    let off = Post { ongoing: Some(true), ..standing("3") };
    house.hear_from(pixel, vec![Heard::Standing(Box::new(off))]).await;
    assert_eq!(house.ids().await.len(), 2, "what is no event is not kept");
}

#[tokio::test]
async fn the_newest_reply_id_is_kept_and_is_no_news() {
    let house = House::new().await;
    let pixel = house.pair("Pixel").await;
    let with = |reply: Option<&str>| {
        Box::new(Post { reply_id: reply.map(str::to_owned), ..post("1", "org.app", "Alice", "Hi") })
    };
    let reply_id = async || house.kept().await[0].reply_id.clone();
    for (heard, expected) in [
        (Heard::Posted(with(Some("a"))), Some("a")),
        (Heard::Posted(with(Some("b"))), Some("b")),
        (Heard::Standing(with(Some("c"))), Some("c")),
        (Heard::Posted(with(None)), None),
    ] {
        house.hear_from(pixel, vec![heard.clone()]).await;
        assert_eq!(reply_id().await.as_deref(), expected, "{heard:?}");
    }
    assert_eq!(house.queue().await, [row("p2:1", 1, "Hi")]);
}

/// After each connection a phone tells what it shows with new ids, and some of it late.
#[tokio::test]
async fn a_new_connection_ends_the_old_reply_ids_of_that_phone_and_nothing_else() {
    let house = House::new().await;
    let (pixel, old) = (house.pair("Pixel").await, house.pair("Old").await);
    let with = |id: &str, reply: &str| Post {
        reply_id: Some(reply.to_owned()),
        ..post(id, "org.app", "Alice", "Hi")
    };
    for source in [SourceId::HERE, pixel, old] {
        house.hear_from(source, vec![bound(), posted(with("1", "a")), posted(with("2", "a"))]).await;
    }
    let queue = house.queue().await;
    house.hear(vec![bound()]).await;
    house.hear_from(pixel, vec![lost("Away."), Heard::Bound { standing: vec![with("2", "b")] }]).await;
    let reply_ids = async || {
        let kept = house.kept().await.into_iter();
        let mut ids: Vec<(String, Option<String>)> =
            kept.map(|kept| (kept.id.as_str().to_owned(), kept.reply_id)).collect();
        ids.sort();
        ids
    };
    let reply_id = |id: &str, reply: Option<&str>| (id.to_owned(), reply.map(str::to_owned));
    let mut expected = vec![
        reply_id("1", Some("a")),
        reply_id("2", Some("a")),
        reply_id("p2:1", None),
        reply_id("p2:2", Some("b")),
        reply_id("p3:1", Some("a")),
        reply_id("p3:2", Some("a")),
    ];
    assert_eq!(reply_ids().await, expected);
    let missing = NotificationId::new("p2:1");
    assert!(house.read(move |tx| store::is_shown(tx, &missing)).await, "it may only come late");
    house.hear_from(pixel, vec![Heard::Standing(Box::new(with("1", "c")))]).await;
    expected[2] = reply_id("p2:1", Some("c"));
    assert_eq!(reply_ids().await, expected);
    assert!(house.kept().await.iter().all(|kept| kept.revision == 1), "what stands there is as it was");
    assert_eq!(house.queue().await, queue, "and no news");
}

#[tokio::test]
async fn what_repeats_an_sms_is_stored_and_not_queued_whichever_came_first() {
    let house = House::new().await;
    let pixel = house.pair("Pixel").await;
    let now = house.clock.now();
    let (here, there) = (
        posted(post("1", "com.android.messaging", "Lena", "Dinner?")),
        posted(post("2", "com.android.messaging", "Lena", "Lunch?")),
    );
    let sms_first = house.write(move |tx| {
        let repeats_sms = move |_: &rusqlite::Transaction<'_>, source: SourceId, record: &Record| {
            let body = Untrusted::new("Dinner?");
            Ok(source == pixel && repeats::repeats(record, now.as_millisecond(), &body))
        };
        store::hear(tx, SourceId::HERE, [(now, &here)], &repeats_sms)?;
        store::hear(tx, pixel, [(now, &here), (now, &there)], &repeats_sms)
    });
    sms_first.await;
    assert_eq!(house.ids().await, ["1", "p2:1", "p2:2"]);
    assert_eq!(house.queue().await, [row("1", 1, "Dinner?"), row("p2:2", 1, "Lunch?")]);
    let came = async |source, text: &'static str| {
        house.write(move |tx| store::sms_came(tx, source, &[(now, Untrusted::new(text))])).await;
        house.queue().await.len()
    };
    assert_eq!(came(SourceId(3), "Lunch?").await, 2, "another phone's");
    assert_eq!(came(pixel, "Breakfast?").await, 2);
    assert_eq!(came(pixel, "Lunch?").await, 1);
    assert_eq!(house.queue().await, [row("1", 1, "Dinner?")]);
    assert_eq!(house.ids().await.len(), 3, "it can still be found");
}

#[tokio::test]
async fn a_dismissal_goes_to_the_phone_that_shows_it_by_its_own_key() {
    let house = House::new().await;
    let (pixel, old) = (house.pair("Pixel").await, house.pair("Old").await);
    let puppet = house.add(pixel, Access::Granted, vec![]);
    for source in [SourceId::HERE, pixel, old] {
        house.hear_from(source, vec![posted(post("0|org.app|7", "org.app", "a", "b"))]).await;
    }
    let dismiss = async |id: &str| house.call(DismissNotification(house.shelf()), json!({"id": id})).await;
    assert_eq!(dismiss("p2:0|org.app|7").await["success"], true);
    assert_eq!(*lock(&puppet.dismissed), [NotificationId::new("0|org.app|7")]);
    assert_eq!(*lock(&house.puppet.dismissed), []);
    let away = dismiss("p3:0|org.app|7").await;
    assert!(away["error"].as_str().unwrap().contains("not connected"), "{away}");
    house.turn_phone(pixel, false).await;
    let off = dismiss("p2:0|org.app|7").await;
    assert!(off["error"].as_str().unwrap().contains("may no longer read"), "{off}");
    assert_eq!(lock(&puppet.dismissed).len(), 1);
}

#[tokio::test]
async fn the_phone_is_named_only_if_there_is_more_than_one_source() {
    let house = House::new().await;
    let pixel = house.pair("Pixel").await;
    let heard = vec![bound(), posted(post("1", "org.app", "a", "b"))];
    house.hear_from(pixel, heard.clone()).await;
    let phones = async || {
        let check = house.call(CheckNotifications(house.shelf()), json!({})).await;
        let listed = check["notifications"].as_array().unwrap().clone();
        listed.iter().map(|item| item.get("phone").cloned()).collect::<Vec<_>>()
    };
    assert_eq!(phones().await, [None]);
    house.hear(heard).await;
    assert_eq!(phones().await, [Some(json!("Pixel")), None], "this machine's have no name");
}

#[tokio::test]
async fn the_tools_are_there_while_one_source_can_be_read() {
    let denied = |todo: &str| Access::Denied(todo.into());
    let house = House::with(denied("Allow it."), vec![]).await;
    let tool = CheckNotifications(house.shelf());
    let lacks = async || {
        house.clock.advance(SignedDuration::from_secs(61));
        house.db.read_now(|tx| Tool::look(&tool, tx)).unwrap();
        Tool::probe_access(&tool).await;
        Tool::lacks(&tool)
    };
    assert_eq!(lacks().await, Some(said::lacks_notifications("Allow it.").into()));
    let pixel = house.pair("Pixel").await;
    assert_eq!(lacks().await, None, "the phone is away, but what it brought can be found");
    let puppet = house.add(pixel, denied("Allow it on the phone."), vec![]);
    assert_eq!(lacks().await, Some(said::lacks_notifications("Allow it.").into()));
    *lock(&puppet.access) = Access::Granted;
    assert_eq!(lacks().await, None);
    house.turn_phone(pixel, false).await;
    assert_eq!(lacks().await, Some(said::lacks_notifications("Allow it.").into()));
    let nothing = NotificationTools { sources: Arc::new(Sources::new(None)), ..house.shelf() };
    let tool = CheckNotifications(nothing);
    Tool::probe_access(&tool).await;
    assert_eq!(Tool::lacks(&tool), Some(said::lacks_source().into()));
}

#[tokio::test]
async fn sources_are_listened_to_from_when_they_are_added_until_they_are_removed() {
    let house = House::with(Access::Granted, vec![bound()]).await;
    let (stop, running) = house.start();
    until(async || house.is_listening(SourceId::HERE).await).await;
    let pixel = house.pair("Pixel").await;
    let script = |text: &str| vec![bound(), posted(post("1", "org.app", "Alice", text))];
    house.add(pixel, Access::Granted, script("Hi"));
    until(async || house.queue().await == [row("p2:1", 1, "Hi")]).await;
    house.add(pixel, Access::Granted, script("Hi again"));
    until(async || house.queue().await == [row("p2:1", 2, "Hi again")]).await;
    assert!(house.is_listening(pixel).await, "the one that was replaced does not have the last word");
    house.sources.remove(pixel);
    until(async || !house.is_listening(pixel).await).await;
    house.add(pixel, Access::Granted, script("Once more"));
    until(async || house.is_listening(pixel).await).await;
    stop.send(()).unwrap();
    running.await.unwrap();
    assert!(!house.is_listening(SourceId::HERE).await && !house.is_listening(pixel).await);
}

#[tokio::test]
async fn a_capture_follows_the_switch_of_its_phone() {
    let house = House::with(Access::Granted, vec![bound()]).await;
    let pixel = house.pair("Pixel").await;
    house.turn_phone(pixel, false).await;
    house.add(pixel, Access::Granted, vec![bound()]);
    let (stop, running) = house.start();
    until(async || house.is_listening(SourceId::HERE).await).await;
    assert_eq!(house.sync_of(pixel).await.last_attempt_at, None, "nobody listens to it");
    house.turn_phone(pixel, true).await;
    until(async || house.is_listening(pixel).await).await;
    house.turn_phone(pixel, false).await;
    let source = house.sources.get(pixel).unwrap();
    until(async || !source.is_bound()).await;
    assert!(house.is_listening(SourceId::HERE).await && !house.is_listening(pixel).await);
    stop.send(()).unwrap();
    running.await.unwrap();
}

/// A phone that never answers anything, and counts how often it is called.
#[derive(Default)]
struct Hung {
    called: AtomicU32,
    breaks_down: bool,
}

impl Listener for Hung {
    fn name(&self) -> &'static str {
        "hung"
    }

    fn access(&self) -> Pin<Box<dyn Future<Output = Access> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    fn listen(&self, _: Ear) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.called.fetch_add(1, Ordering::Relaxed);
        assert!(!self.breaks_down, "a bridge has a defect");
        Box::pin(std::future::pending())
    }

    fn dismiss<'a>(&'a self, _: &'a NotificationId) -> Dismissing<'a> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_phone_that_hangs_or_breaks_down_holds_up_no_other() {
    for breaks_down in [false, true] {
        let house = House::with(Access::Granted, vec![bound()]).await;
        let (hung, pixel) = (house.pair("Hung").await, house.pair("Pixel").await);
        let listener = Arc::new(Hung { breaks_down, ..Hung::default() });
        house.sources.add(Arc::new(Source::of(hung, listener.clone())));
        let (stop, running) = house.start();
        until(async || listener.called.load(Ordering::Relaxed) == 1).await;
        house.add(pixel, Access::Granted, vec![bound(), posted(post("1", "org.app", "Alice", "Hi"))]);
        until(async || house.queue().await == [row("p3:1", 1, "Hi")]).await;
        house.sources.probe_access(&house.db, house.clock.now()).await.unwrap();
        assert_eq!(house.source.known(), Some(Access::Granted), "and whoever asks gets an answer");
        house.hear_from(hung, vec![posted(post("1", "org.app", "a", "b"))]).await;
        let dismissed = house.call(DismissNotification(house.shelf()), json!({"id": "p2:1"})).await;
        assert!(dismissed["error"].as_str().unwrap().contains("no answer"), "{dismissed}");
        stop.send(()).unwrap();
        running.await.unwrap();
    }
}

/// A listener that gives up at once, and counts how often it was asked.
#[derive(Default)]
struct Quitter(AtomicU32);

impl Listener for Quitter {
    fn name(&self) -> &'static str {
        "quitter"
    }
    fn access(&self) -> Pin<Box<dyn Future<Output = Access> + Send + '_>> {
        Box::pin(async { Access::Granted })
    }
    fn listen(&self, _: Ear) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {})
    }
    fn dismiss<'a>(&'a self, _: &'a NotificationId) -> Dismissing<'a> {
        Box::pin(async { Ok(()) })
    }
}

impl Quitter {
    async fn until_asked(&self, times: u32) {
        while self.0.load(Ordering::Relaxed) < times {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// A listener that gives up at once must not be asked without rest.
#[tokio::test(start_paused = true)]
async fn a_listener_that_gives_up_is_asked_again_after_a_pause() {
    let house = House::new().await;
    let pixel = house.pair("Pixel").await;
    let quitter = Arc::new(Quitter::default());
    house.sources.add(Arc::new(Source::of(pixel, quitter.clone())));
    let began = tokio::time::Instant::now();
    let (stop, running) = house.start();
    quitter.until_asked(3).await;
    assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
    stop.send(()).unwrap();
    running.await.unwrap();
}

/// A command that began before the daemon did writes to the store by itself, and tells nobody.
#[tokio::test(start_paused = true)]
async fn what_another_process_turns_on_at_the_start_is_noticed_soon() {
    let house = House::new().await;
    let pixel = house.pair("Pixel").await;
    let turn = |on| house.db.write(move |tx| toggle::switch_phone(tx, pixel, on, Timestamp::UNIX_EPOCH));
    turn(false).await.unwrap();
    let quitter = Arc::new(Quitter::default());
    house.sources.add(Arc::new(Source::of(pixel, quitter.clone())));
    let (stop, running) = house.start();
    // Time passes only when there is nothing left to do: it has looked.
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(quitter.0.load(Ordering::Relaxed), 0);
    turn(true).await.unwrap();
    let began = tokio::time::Instant::now();
    quitter.until_asked(1).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    stop.send(()).unwrap();
    running.await.unwrap();
}
