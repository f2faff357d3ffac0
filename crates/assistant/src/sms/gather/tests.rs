//! Plays whole connections with a phone in memory. Time is paused, so nothing here waits.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc::{self, Sender};

use super::*;
use crate::clock::ManualClock;
use crate::lock::lock;
use crate::pending;
use crate::phones::Switch;
use crate::phones::port::{Folder, NotReached, Reaching};
use crate::phones::store::{NewPhone, begin_reading, pair, set};
use crate::settings::CONTACT_NAMES_ENABLED;
use crate::sms::archive::{PhoneState, phone_state};
use crate::sms::fill::tests::{Handset, Ties};
use crate::sms::queue::{QUEUE, Queued};
use crate::untrusted::Untrusted;

const START: i64 = 1_800_000_000;

/// What the phone does with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Answers,
    Silent,
    /// It does not even take the question.
    Hangs,
}

/// A phone at the end of a connection.
struct Phone {
    handset: Mutex<Handset>,
    contacts: Mutex<Vec<(i64, Contact)>>,
    asked: Mutex<Vec<Ask>>,
    mood: Mutex<Mood>,
    connected: AtomicBool,
    tells: Sender<FromPhone>,
    /// Rings when the user wants to know what is new.
    wanted: Arc<Notify>,
}

impl PhoneLink for Phone {
    fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed)
    }

    fn ask(&self, ask: Ask) -> Reaching<'_> {
        Box::pin(async move {
            if *lock(&self.mood) == Mood::Hangs {
                std::future::pending::<()>().await;
            }
            if !self.is_connected() {
                return Err(NotReached::NotConnected);
            }
            lock(&self.asked).push(ask.clone());
            if *lock(&self.mood) == Mood::Answers {
                self.answer(&ask).await;
            }
            Ok(())
        })
    }
}

impl Phone {
    async fn answer(&self, ask: &Ask) {
        match ask {
            Ask::ContactList => {
                let stamp = |(changed, contact): &(i64, Contact)| ContactStamp {
                    uid: contact.uid.clone(),
                    changed: *changed,
                };
                let all = lock(&self.contacts).iter().map(stamp).collect();
                self.tell(FromPhone::ContactList(all)).await;
            }
            Ask::Contacts { uids } => {
                let all = lock(&self.contacts).clone().into_iter().map(|(_, contact)| contact);
                let some = all.filter(|contact| uids.contains(&contact.uid)).collect();
                self.tell(FromPhone::Contacts(some)).await;
            }
            Ask::Threads | Ask::Thread { .. } => {
                lock(&self.handset).answer(ask);
                self.flush().await;
            }
        }
    }

    /// Tells what is on its way.
    async fn flush(&self) {
        let line: Vec<_> = lock(&self.handset).line.drain(..).collect();
        for list in line {
            self.tell(FromPhone::Messages(list)).await;
        }
    }

    async fn tell(&self, told: FromPhone) {
        self.tells.send(told).await.unwrap();
    }

    async fn receive(&self, thread: i64) {
        {
            let mut handset = lock(&self.handset);
            handset.now += 1_000;
            handset.add(thread, Folder::Inbox, false);
            handset.push();
        }
        self.flush().await;
    }

    async fn connect(&self) {
        self.connected.store(true, Ordering::Relaxed);
        lock(&self.handset).listening = false;
        self.tell(FromPhone::Connected).await;
    }

    async fn lose(&self) {
        self.connected.store(false, Ordering::Relaxed);
        lock(&self.handset).listening = false;
        self.tell(FromPhone::Lost).await;
    }
}

/// A store with paired phones.
struct World {
    db: Db,
    clock: Arc<ManualClock>,
}

impl World {
    fn new() -> Self {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        for setting in [&SMS_ENABLED, &CONTACT_NAMES_ENABLED] {
            db.write_now(|tx| settings::store(tx, &setting.key, "true")).unwrap();
        }
        Self { db, clock: Arc::new(ManualClock::at(Timestamp::from_second(START).unwrap())) }
    }

    /// Pairs a phone that has 30 messages in each of 10 conversations, and lets it be read.
    fn pair(&self, device: &str, switches: &[Switch]) -> (SourceId, Arc<Phone>) {
        let now = self.clock.now();
        let (device, switches) = (device.to_owned(), switches.to_vec());
        let source = self.db.write_now(|tx| {
            let new = NewPhone { device, name: "Pixel".to_owned(), certificate: vec![], protocol: 8 };
            let source = pair(tx, &new, now)?.source;
            switches.iter().try_for_each(|switch| set(tx, source, *switch, true).map(drop))?;
            if switches.contains(&Switch::ReadSms) {
                begin_reading(tx, source, now)?;
            }
            Ok::<_, DbError>(source)
        });
        let source = source.unwrap();
        let (tells, told) = mpsc::channel(1_000);
        let mut handset = Handset::default();
        handset.now = (START - 1_000_000) * 1_000;
        for n in 0..300 {
            handset.now += 1_000;
            handset.add(n % 10, Folder::Inbox, false);
        }
        handset.now = (START + 1) * 1_000;
        let phone = Arc::new(Phone {
            handset: Mutex::new(handset),
            contacts: Mutex::default(),
            asked: Mutex::default(),
            mood: Mutex::new(Mood::Answers),
            connected: AtomicBool::new(false),
            tells,
            wanted: Arc::default(),
        });
        let gather = Gather::new(self.db.clone(), self.clock.clone(), source, phone.clone());
        tokio::spawn(gather.asked_by(phone.wanted.clone()).run(told));
        (source, phone)
    }

    async fn state(&self, source: SourceId) -> PhoneState {
        let now = self.clock.now();
        self.db.read(move |tx| phone_state(tx, source, now)).await.unwrap()
    }

    async fn queued(&self) -> usize {
        self.db.read(|tx| pending::waiting::<Queued>(tx, QUEUE)).await.unwrap().len()
    }

    async fn switch(&self, source: SourceId, switch: Switch, on: bool) {
        self.db.write(move |tx| set(tx, source, switch, on)).await.map(drop).unwrap();
    }
}

/// Lets time pass.
async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_phone_connects_fills_the_archive_and_then_tells_news() {
    let world = World::new();
    let (source, phone) = world.pair("a", &[Switch::ReadSms]);
    phone.connect().await;
    pass(10).await;
    let state = world.state(source).await;
    assert_eq!((state.messages, state.threads, state.done, state.per_mille), (300, 10, 10, 1_000));
    assert_eq!((state.last_error, world.queued().await), (None, 0), "the first fill is not news");
    for n in 0..500 {
        phone.receive(n % 12).await;
    }
    pass(10).await;
    assert_eq!(world.state(source).await.messages, 800);
    let share = world.db.read(|tx| pending::by_phone(tx, QUEUE)).await.unwrap();
    assert_eq!((share[0].phone, share[0].waiting, share[0].dropped), (source, 100, 400));
    phone.lose().await;
    phone.receive(3).await;
    pass(100).await;
    assert_eq!(world.state(source).await.messages, 800);
    phone.connect().await;
    pass(10).await;
    assert_eq!(world.state(source).await.messages, 801, "what came meanwhile");
}

/// The newest message of many phones is a bank's, alone in its conversation.
#[tokio::test(start_paused = true)]
async fn a_conversation_of_one_message_does_not_hold_up_the_fill() {
    let world = World::new();
    let (source, phone) = world.pair("a", &[Switch::ReadSms]);
    // As the app does: a page without messages is sent as well.
    lock(&phone.handset).sends_nothing = true;
    phone.receive(99).await;
    phone.connect().await;
    pass(10).await;
    let state = world.state(source).await;
    assert_eq!((state.messages, state.threads, state.done, state.per_mille), (301, 11, 11, 1_000));
}

/// Of two messages of one millisecond, the first arrives before the connection is lost, and the phone lists that one.
#[tokio::test(start_paused = true)]
async fn a_message_with_the_date_of_the_last_one_is_found_after_reconnecting() {
    let world = World::new();
    let (source, phone) = world.pair("a", &[Switch::ReadSms]);
    lock(&phone.handset).ties = Ties::FirstFirst;
    phone.connect().await;
    pass(10).await;
    world.clock.advance(SignedDuration::from_mins(1));
    phone.receive(3).await;
    phone.lose().await;
    lock(&phone.handset).add(3, Folder::Inbox, false);
    pass(10).await;
    assert_eq!(world.state(source).await.messages, 301);
    for (name, threads) in [("it was a push", 1), ("all of it is archived", 0)] {
        lock(&phone.asked).clear();
        phone.connect().await;
        pass(10).await;
        assert_eq!((world.state(source).await.messages, world.queued().await), (302, 2), "{name}");
        assert_eq!(lock(&phone.asked).len(), 1 + threads, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_push_that_was_missed_is_found_after_the_interval() {
    let world = World::new();
    let (source, phone) = world.pair("a", &[Switch::ReadSms]);
    phone.connect().await;
    pass(10).await;
    lock(&phone.handset).listening = false;
    phone.receive(3).await;
    phone.receive(3).await;
    pass(120).await;
    assert_eq!(world.state(source).await.messages, 300);
    world.clock.advance(SignedDuration::from_mins(15));
    pass(120).await;
    assert_eq!((world.state(source).await.messages, world.queued().await), (302, 2));
}

#[tokio::test(start_paused = true)]
async fn whoever_wants_to_know_now_need_not_wait_for_the_interval() {
    let world = World::new();
    let (source, phone) = world.pair("a", &[Switch::ReadSms]);
    phone.wanted.notify_one();
    pass(10).await;
    assert_eq!(*lock(&phone.asked), [], "nobody is there to be asked");
    phone.connect().await;
    pass(10).await;
    lock(&phone.handset).listening = false;
    phone.receive(3).await;
    phone.receive(3).await;
    phone.wanted.notify_one();
    pass(10).await;
    assert_eq!((world.state(source).await.messages, world.queued().await), (302, 2));
    // Who is asked while the archive is being filled goes on with that.
    phone.lose().await;
    phone.receive(4).await;
    phone.connect().await;
    phone.wanted.notify_one();
    pass(10).await;
    assert_eq!((world.state(source).await.messages, world.queued().await), (303, 3));
}

#[tokio::test(start_paused = true)]
async fn a_silent_phone_is_asked_twice_and_says_what_to_do() {
    let world = World::new();
    let (source, phone) = world.pair("a", &[Switch::ReadSms]);
    *lock(&phone.mood) = Mood::Silent;
    phone.connect().await;
    pass(50).await;
    assert_eq!(world.state(source).await.last_error, None, "it still has time");
    pass(20).await;
    assert_eq!(*lock(&phone.asked), [Ask::Threads, Ask::Threads]);
    assert_eq!(world.state(source).await.last_error, Some(said::access_paired_silent()));
    *lock(&phone.mood) = Mood::Answers;
    phone.connect().await;
    pass(10).await;
    let state = world.state(source).await;
    assert_eq!((state.messages, state.last_error), (300, None));
}

#[tokio::test(start_paused = true)]
async fn a_phone_that_hangs_holds_up_nobody() {
    let world = World::new();
    let (hanging, bad) = world.pair("a", &[Switch::ReadSms]);
    let (source, good) = world.pair("b", &[Switch::ReadSms]);
    *lock(&bad.mood) = Mood::Hangs;
    bad.connect().await;
    good.connect().await;
    pass(10).await;
    assert_eq!(world.state(source).await.messages, 300);
    pass(200).await;
    assert!(world.state(hanging).await.last_error.is_some());
    *lock(&bad.mood) = Mood::Answers;
    bad.connect().await;
    pass(10).await;
    assert_eq!(world.state(hanging).await.messages, 300);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_stored_of_a_phone_that_is_not_read() {
    let world = World::new();
    let (source, phone) = world.pair("a", &[]);
    phone.connect().await;
    phone.receive(1).await;
    pass(100).await;
    assert!(lock(&phone.asked).is_empty());
    assert_eq!(world.state(source).await, PhoneState::default());
    world.clock.advance(SignedDuration::from_mins(1));
    world.switch(source, Switch::ReadSms, true).await;
    pass(120).await;
    assert_eq!(world.state(source).await.messages, 301, "it is noticed by itself");
    world.switch(source, Switch::ReadSms, false).await;
    phone.receive(1).await;
    pass(10).await;
    assert_eq!(world.state(source).await.messages, 301);
    world.clock.advance(SignedDuration::from_hours(1));
    world.switch(source, Switch::ReadSms, true).await;
    phone.connect().await;
    pass(10).await;
    assert_eq!(
        (world.state(source).await.messages, world.queued().await),
        (302, 0),
        "what came meanwhile is no news"
    );
}

#[tokio::test(start_paused = true)]
async fn a_changed_setting_counts_at_once() {
    let world = World::new();
    let (source, phone) = world.pair("a", &[Switch::ReadSms]);
    let days = async |days: &'static str| {
        world.db.write(move |tx| settings::store(tx, "sms_archive_days", days)).await.unwrap();
    };
    days("0").await;
    phone.connect().await;
    pass(10).await;
    phone.receive(1).await;
    pass(10).await;
    assert_eq!((world.state(source).await.messages, world.queued().await), (1, 1), "only what is queued");
    days("365").await;
    pass(200).await;
    assert_eq!((world.state(source).await.messages, world.queued().await), (301, 1));
}

#[tokio::test(start_paused = true)]
async fn contacts_are_fetched_only_if_names_are_on_and_only_what_changed() {
    let world = World::new();
    let (source, phone) = world.pair("a", &[Switch::Names]);
    let contact = |n: u32, name: &str| Contact {
        uid: n.to_string(),
        name: Untrusted::new(name),
        numbers: vec![Untrusted::new(format!("+1555010{n:04}"))],
    };
    *lock(&phone.contacts) = (0..120).map(|n| (1, contact(n, &format!("Person {n}")))).collect();
    phone.connect().await;
    pass(10).await;
    assert_eq!(lock(&phone.asked).len(), 4, "the list, and three times 50");
    let name = async |number: &'static str| {
        let name = world.db.read(move |tx| names::beside(tx, number)).await.unwrap();
        name.map(|name| name.as_written().to_owned())
    };
    assert_eq!(name("+15550100119").await.as_deref(), Some("Person 119"));
    lock(&phone.contacts)[7] = (2, contact(7, "Lena"));
    lock(&phone.contacts).truncate(100);
    phone.connect().await;
    pass(10).await;
    assert_eq!(lock(&phone.asked)[4..], [Ask::ContactList, Ask::Contacts { uids: vec!["7".to_owned()] }]);
    assert_eq!(name("+15550100007").await.as_deref(), Some("Lena"));
    assert_eq!(name("+15550100119").await, None);
    world.switch(source, Switch::Names, false).await;
    phone.connect().await;
    pass(10).await;
    assert_eq!(name("+15550100007").await, None);
    assert_eq!(lock(&phone.asked).len(), 6, "nothing was asked for");
}

/// The setting deletes all names, and by whatever way it is turned on again, the phone is asked for them anew; likewise
/// when an hour has passed.
#[tokio::test(start_paused = true)]
async fn names_that_are_missing_or_old_are_asked_for_without_a_new_connection() {
    let world = World::new();
    let (_, phone) = world.pair("a", &[Switch::Names, Switch::ReadSms]);
    let lena = Contact {
        uid: "7".to_owned(),
        name: Untrusted::new("Lena"),
        numbers: vec![Untrusted::new("+15550100007")],
    };
    *lock(&phone.contacts) = vec![(1, lena.clone())];
    let setting = async |value: &'static str| {
        let written = world.db.write(move |tx| settings::store(tx, &CONTACT_NAMES_ENABLED.key, value));
        written.await.unwrap();
    };
    let name = async || world.db.read(|tx| names::beside(tx, "+15550100007")).await.unwrap();
    let lists = || lock(&phone.asked).iter().filter(|ask| **ask == Ask::ContactList).count();
    setting("false").await;
    phone.connect().await;
    pass(200).await;
    assert_eq!((name().await, lists()), (None, 0), "the phone's own switch is not enough");
    setting("true").await;
    pass(70).await;
    assert_eq!((name().await, lists()), (Some(Untrusted::new("Lena")), 1));
    pass(1_000).await;
    assert_eq!(lists(), 1, "once is enough for an hour");
    setting("false").await;
    setting("true").await;
    assert_eq!(name().await, None);
    pass(70).await;
    assert_eq!((name().await, lists()), (Some(Untrusted::new("Lena")), 2));
    *lock(&phone.contacts) = vec![(2, Contact { name: Untrusted::new("Lena M"), ..lena })];
    world.clock.advance(SignedDuration::from_mins(61));
    pass(70).await;
    assert_eq!((name().await, lists()), (Some(Untrusted::new("Lena M")), 3));
}
