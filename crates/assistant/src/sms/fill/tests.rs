//! Plays phones that answer late, repeat themselves and vanish, against the real archive.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use proptest::prelude::*;
use rusqlite::Transaction;

use super::{Fill, Kept, Pages, SECOND, Step, Trouble, Waits, horizon};
use crate::db::{Db, DbError};
use crate::pending;
use crate::phones::port::{Ask, Folder, MessageKind, MessageList, PhoneMessage, ThreadId, Unsent};
use crate::phones::store::{NewPhone, begin_reading, pair, set};
use crate::phones::{SourceId, Switch};
use crate::settings::{self, SMS_ARCHIVE_DAYS, SMS_ENABLED};
use crate::sms::archive::{self, Rules};
use crate::sms::queue::{QUEUE, Queued};
use crate::untrusted::Untrusted;

const PHONE: SourceId = SourceId(2);
/// Reading began then.
const SINCE: i64 = 1_800_000_000_000;
/// How long a phone is quiet when its list of conversations is over, in milliseconds.
const QUIET: i64 = 2_000;
const SMALL: Pages = Pages { few: 2, page: 4, wide: 16, most: 64 };

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap()
}

/// A message as the phone keeps it. Drafts are listed and counted like messages.
#[derive(Debug, Clone)]
pub(in crate::sms) struct Item {
    message: PhoneMessage,
    draft: bool,
}

/// Which of several messages of one moment a phone shows first: its database does not promise an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::sms) enum Ties {
    #[default]
    LastFirst,
    FirstFirst,
}

/// A phone as the KDE Connect app makes it.
#[derive(Debug, Default)]
pub(in crate::sms) struct Handset {
    items: Vec<Item>,
    pub(in crate::sms) now: i64,
    pub(in crate::sms) listening: bool,
    /// The newest date that it has told. Pushes begin there.
    told: i64,
    /// Whether it answers where there is nothing to show.
    pub(in crate::sms) sends_nothing: bool,
    pub(in crate::sms) ties: Ties,
    /// What is on its way.
    pub(in crate::sms) line: VecDeque<MessageList>,
}

impl Handset {
    pub(in crate::sms) fn add(&mut self, thread: i64, folder: Folder, draft: bool) {
        let native_id = self.items.iter().map(|item| item.message.native_id).max().unwrap_or(0) + 1;
        let message = PhoneMessage {
            kind: MessageKind::Sms,
            native_id,
            thread: ThreadId(thread),
            folder,
            read: false,
            date: at(self.now),
            address: Untrusted::new(format!("+1555010{thread:04}")),
            body: Untrusted::new(format!("message {native_id}")),
        };
        self.items.push(Item { message, draft });
    }

    /// Tells of everything since the newest date that it has told, as the app does whenever something changes.
    pub(in crate::sms) fn push(&mut self) {
        if self.listening {
            let told = self.told;
            let news: Vec<Item> = self.newest_first(|item| item.message.date >= at(told));
            self.tell(&news);
        }
    }

    fn newest_first(&self, which: impl Fn(&Item) -> bool) -> Vec<Item> {
        let mut items: Vec<Item> = self.items.iter().filter(|item| which(item)).cloned().collect();
        items.sort_by_key(|item| match self.ties {
            Ties::LastFirst => (Reverse(item.message.date), -item.message.native_id),
            Ties::FirstFirst => (Reverse(item.message.date), item.message.native_id),
        });
        items
    }

    fn tell(&mut self, items: &[Item]) {
        let newest = items.iter().map(|item| item.message.date.as_millisecond()).max();
        self.told = self.told.max(newest.unwrap_or(self.told));
        let (drafts, messages): (Vec<&Item>, Vec<&Item>) = items.iter().partition(|item| item.draft);
        let unsent = |item: &&Item| Unsent { thread: item.message.thread, date: item.message.date };
        let list = MessageList {
            messages: messages.iter().map(|item| item.message.clone()).collect(),
            unsent: drafts.iter().map(unsent).collect(),
        };
        if self.sends_nothing || !items.is_empty() {
            self.line.push_back(list);
        }
    }

    pub(in crate::sms) fn answer(&mut self, ask: &Ask) {
        self.listening = true;
        match ask {
            Ask::Threads => {
                let mut seen = BTreeSet::new();
                let all = self.newest_first(|_| true);
                for item in all.into_iter().filter(|item| seen.insert(item.message.thread)) {
                    self.tell(&[item]);
                }
            }
            Ask::Thread { thread, until, count } => {
                let mut page = self.newest_first(|item| {
                    item.message.thread == *thread && until.is_none_or(|until| item.message.date <= until)
                });
                page.truncate(usize::try_from(*count).unwrap());
                self.tell(&page);
            }
            Ask::ContactList | Ask::Contacts { .. } => unreachable!("it is about messages"),
        }
    }

    fn shown(&self) -> impl Iterator<Item = &PhoneMessage> {
        self.items.iter().filter(|item| !item.draft).map(|item| &item.message)
    }
}

/// The phone's number, the date, and the conversation, which has one address. The phone uses its numbers again.
type Identity = (i64, i64, i64);

fn identity(message: &PhoneMessage) -> Identity {
    (message.native_id, message.date.as_millisecond(), message.thread.0)
}

/// A phone, a store, and the fill between them.
struct World {
    db: Db,
    days: u32,
    phone: Handset,
    fill: Fill,
    /// How often each message was news.
    news: BTreeMap<Identity, u32>,
}

impl World {
    fn new(days: u32, sends_nothing: bool) -> Self {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        db.write_now(|tx| {
            let new =
                NewPhone { device: "d".to_owned(), name: "P".to_owned(), certificate: vec![], protocol: 8 };
            assert_eq!(pair(tx, &new, at(0))?.source, PHONE);
            set(tx, PHONE, Switch::ReadSms, true)?;
            settings::store(tx, &SMS_ENABLED.key, "true")?;
            settings::store(tx, &SMS_ARCHIVE_DAYS.key, &days.to_string())?;
            begin_reading(tx, PHONE, at(SINCE))
        })
        .unwrap();
        let phone = Handset { sends_nothing, now: SINCE - 100_000, ..Handset::default() };
        Self { db, days, phone, fill: Fill::default(), news: BTreeMap::new() }
    }

    fn now(&self) -> Timestamp {
        at(self.phone.now.max(SINCE))
    }

    fn connect(&mut self) {
        self.lose();
        let marks = self.db.read_now(|tx| archive::marks(tx, PHONE)).unwrap();
        let (fill, ask) = Fill::begin(marks, horizon(self.days, at(SINCE), self.now()));
        self.fill = Fill { pages: SMALL, ..fill };
        self.phone.answer(&ask);
    }

    fn lose(&mut self) {
        self.fill = Fill::default();
        self.phone.listening = false;
        self.phone.line.clear();
    }

    /// One packet arrives. Returns whether there was one.
    fn deliver(&mut self) -> bool {
        let Some(list) = self.phone.line.pop_front() else { return false };
        if !self.fill.is_away() {
            let step = self.fill.on_messages(&list, self.now());
            self.store(&list.messages, &step);
            self.follow(step);
        }
        true
    }

    fn follow(&mut self, step: Step) -> Option<Trouble> {
        if let Some(ask) = step.ask {
            self.phone.answer(&ask);
        }
        step.trouble
    }

    fn store(&mut self, list: &[PhoneMessage], step: &Step) {
        let now = self.now();
        let queued = self.db.write_now(|tx| {
            let rules = Rules::now(tx, PHONE, now)?.expect("it is read");
            archive::take(tx, &rules, list, step, now).map(drop)?;
            emptied_queue(tx)
        });
        for one in queued.unwrap() {
            *self.news.entry(one).or_default() += 1;
        }
        if self.days > 0 {
            self.check_marks();
        }
    }

    /// Everything that the phone shows between the two dates of a conversation is archived: of the last second only if it
    /// is settled.
    fn check_marks(&self) {
        let (marks, archived) = (self.marks(), self.archived());
        let horizon = horizon(self.days, at(SINCE), self.now());
        for message in self.phone.shown().filter(|message| message.date.as_millisecond() >= horizon) {
            let date = message.date.as_millisecond();
            let end = |kept: &Kept| match message.kind {
                _ if kept.settled => kept.to + 1,
                MessageKind::Sms => kept.to,
                MessageKind::Mms => kept.to - SECOND,
            };
            let inside = marks.get(&message.thread).is_some_and(|kept| kept.from < date && date < end(kept));
            assert!(!inside || archived.contains(&identity(message)), "{message:?} is missing");
        }
    }

    fn marks(&self) -> BTreeMap<ThreadId, Kept> {
        self.db.read_now(|tx| archive::marks(tx, PHONE)).unwrap()
    }

    fn archived(&self) -> BTreeSet<Identity> {
        let rows = self.db.read_now(|tx| {
            let mut rows =
                tx.prepare("SELECT native_id, date, thread FROM sms_archive WHERE body IS NOT NULL")?;
            let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            Ok::<_, DbError>(rows.collect::<rusqlite::Result<Vec<Identity>>>()?)
        });
        let rows = rows.unwrap();
        let distinct: BTreeSet<Identity> = rows.iter().copied().collect();
        assert_eq!(rows.len(), distinct.len(), "nothing is archived twice");
        distinct
    }

    /// The phone has been quiet for a moment.
    fn quiet(&mut self) -> Step {
        self.phone.now += QUIET;
        self.fill.on_quiet()
    }

    /// Lets everything arrive, and time pass, until nothing is waited for.
    fn settle(&mut self) -> Vec<Trouble> {
        let mut troubles = vec![];
        for _ in 0..100_000 {
            if self.deliver() {
                continue;
            }
            let step = match self.fill.waits() {
                Waits::Idle => return troubles,
                Waits::Quiet => self.quiet(),
                Waits::Answer(_) | Waits::Doubtful(_) => self.fill.on_silence(self.now()),
            };
            self.store(&[], &step);
            troubles.extend(self.follow(step));
        }
        panic!("it never ends: {:?}", self.fill);
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Arrive { thread, folder, after } => {
                self.phone.now += after;
                self.phone.add(thread, folder, false);
                self.phone.push();
            }
            Act::Draft { thread } => {
                // A draft has a moment of its own.
                self.phone.now += 1;
                self.phone.add(thread, Folder::Sent, true);
                self.phone.push();
            }
            Act::Touch => self.phone.push(),
            Act::Delete => {
                let items = &mut self.phone.items;
                let newest = items.iter().enumerate().max_by_key(|(_, item)| item.message.native_id);
                if let Some(at) = newest.map(|(at, _)| at) {
                    items.remove(at);
                }
                // A number is used again, but not for the same moment: nobody could tell the two apart.
                self.phone.now += 1;
                self.phone.push();
            }
            Act::Deliver(count) => (0..count).for_each(|_| {
                self.deliver();
            }),
            Act::Quiet => {
                let step = self.quiet();
                self.follow(step);
            }
            Act::ListAgain => {
                let ask = self.fill.list_again(horizon(self.days, at(SINCE), self.now()));
                self.follow(Step { ask, ..Step::default() });
            }
            Act::Connect => self.connect(),
            Act::Lose => self.lose(),
            Act::Sweep => {
                let now = self.now();
                self.db.write_now(|tx| archive::sweep(tx, now)).map(drop).unwrap();
            }
        }
    }
}

/// The messages that were queued; afterwards none is.
fn emptied_queue(tx: &Transaction<'_>) -> Result<Vec<Identity>, DbError> {
    let waiting = pending::waiting::<Queued>(tx, QUEUE)?;
    let mut native = tx.prepare("SELECT native_id, date, thread FROM sms_archive WHERE id = ?1")?;
    let queued = waiting
        .iter()
        .map(|one| native.query_row([one.entry.id.0], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))))
        .collect::<rusqlite::Result<Vec<Identity>>>()?;
    pending::forget(tx, QUEUE, &waiting.iter().map(|one| one.seq).collect::<Vec<_>>())?;
    Ok(queued)
}

/// Something that happens.
#[derive(Debug, Clone, Copy)]
enum Act {
    Arrive {
        thread: i64,
        folder: Folder,
        /// Milliseconds since the message before; 0 gives it the same date.
        after: i64,
    },
    Draft {
        thread: i64,
    },
    Touch,
    Delete,
    Deliver(u8),
    Quiet,
    ListAgain,
    Connect,
    Lose,
    Sweep,
}

fn arrival() -> impl Strategy<Value = Act> {
    let folder = prop_oneof![3 => Just(Folder::Inbox), 1 => Just(Folder::Sent)];
    let after = prop_oneof![2 => Just(0_i64), 5 => 1..5_000_i64, 1 => Just(90_000_000)];
    (1..4_i64, folder, after).prop_map(|(thread, folder, after)| Act::Arrive { thread, folder, after })
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        10 => arrival(),
        2 => (1..4_i64).prop_map(|thread| Act::Draft { thread }),
        3 => Just(Act::Touch),
        1 => Just(Act::Delete),
        12 => (1..6_u8).prop_map(Act::Deliver),
        4 => Just(Act::Quiet),
        1 => Just(Act::ListAgain),
        3 => Just(Act::Connect),
        1 => Just(Act::Lose),
        1 => Just(Act::Sweep),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Any order of pages, pushes, losses and kills: every message is archived once, and every one that arrived since
    /// reading began was news once.
    #[test]
    fn nothing_is_lost_and_nothing_is_doubled(
        before in prop::collection::vec(arrival(), 0..30),
        acts in prop::collection::vec(act(), 0..120),
        days in prop_oneof![Just(365_u32), Just(0)],
        sends_nothing in any::<bool>(),
        ties in prop_oneof![Just(Ties::LastFirst), Just(Ties::FirstFirst)],
        drafts in any::<bool>(),
    ) {
        let mut world = World::new(days, sends_nothing);
        world.phone.ties = ties;
        for arrived in before {
            world.act(arrived);
        }
        world.phone.now = world.phone.now.max(SINCE);
        for act in acts {
            world.act(act);
        }
        // A phone that has nothing at all does not answer.
        let drafts = drafts || world.phone.items.is_empty();
        for thread in (1..4).filter(|_| drafts) {
            world.act(Act::Draft { thread });
        }
        world.connect();
        world.settle();
        let archived = world.archived();
        for message in world.phone.shown() {
            if days > 0 {
                prop_assert!(archived.contains(&identity(message)), "lost: {:?}", message);
            }
            if message.folder == Folder::Inbox && message.date >= at(SINCE) {
                prop_assert_eq!(world.news.get(&identity(message)), Some(&1), "news: {:?}", message);
            }
        }
        prop_assert!(world.news.values().all(|times| *times == 1), "{:?}", world.news);
        prop_assert!(world.news.keys().all(|(_, date, _)| *date >= SINCE), "the first fill is not news");
        prop_assert!(days > 0 || archived.is_empty(), "only what is queued is kept");
        world.connect();
        prop_assert_eq!(world.settle(), [], "a second look finds nothing new");
        prop_assert_eq!(world.archived(), archived);
    }
}

fn filled(days: u32, per_thread: i64) -> World {
    let mut world = World::new(days, true);
    for n in 0..per_thread * 3 {
        world.phone.now += 10;
        world.phone.add(n % 3 + 1, Folder::Inbox, false);
    }
    world.connect();
    assert_eq!(world.settle(), []);
    world
}

#[test]
fn the_first_fill_goes_back_to_the_end_and_is_not_news() {
    let world = filled(365, 50);
    assert_eq!((world.archived().len(), world.news.len()), (150, 0));
    assert!(world.marks().values().all(|kept| kept.end));
}

/// The list of conversations shows only the newest item of each, and that can be a draft.
#[test]
fn a_conversation_that_ends_with_a_draft_is_archived_as_well() {
    let mut world = World::new(365, true);
    for _ in 0..50 {
        world.act(Act::Arrive { thread: 1, folder: Folder::Inbox, after: 10 });
    }
    world.phone.now += 10;
    world.act(Act::Draft { thread: 1 });
    world.connect();
    assert_eq!(world.settle(), []);
    assert_eq!((world.archived().len(), world.news.len()), (50, 0));
    world.phone.now = SINCE;
    world.act(Act::Arrive { thread: 1, folder: Folder::Inbox, after: 10 });
    assert_eq!(world.settle(), []);
    assert_eq!((world.archived().len(), world.news.len()), (51, 1));
}

#[test]
fn an_oldest_message_that_was_deleted_is_no_trouble() {
    let mut world = World::new(365, false);
    world.act(Act::Arrive { thread: 1, folder: Folder::Inbox, after: 1 });
    for act in [Act::Connect, Act::Deliver(1), Act::Quiet, Act::Delete, Act::Deliver(1)] {
        world.act(act);
    }
    world.act(Act::Arrive { thread: 1, folder: Folder::Sent, after: 1_000 });
    for _ in 0..2 {
        world.connect();
        assert_eq!(world.settle(), [], "the phone is silent about what is gone");
    }
}

#[test]
fn a_message_that_a_clock_dates_too_early_is_news_if_it_is_pushed() {
    let mut world = filled(365, 3);
    world.phone.now += 10;
    world.phone.add(1, Folder::Inbox, false);
    world.phone.push();
    world.settle();
    assert_eq!(world.news.len(), 1, "it came while everything was known");
    world.lose();
    world.phone.now += 10;
    world.phone.add(1, Folder::Inbox, false);
    world.connect();
    world.settle();
    assert_eq!(world.news.len(), 1, "this one may have lain there for years");
}

#[test]
fn more_messages_of_one_moment_than_a_page_holds() {
    let mut world = World::new(365, true);
    for moment in 0..3 {
        for _ in 0..40 {
            world.phone.add(1, Folder::Inbox, false);
        }
        world.phone.now += 10 + moment;
    }
    world.connect();
    world.settle();
    assert_eq!(world.archived().len(), 120);
    assert!(world.marks().values().all(|kept| kept.end));
}

/// The first message of a moment is archived, the connection is lost, and nothing newer ever arrives.
#[test]
fn the_rest_of_a_moment_that_was_cut_in_two_is_archived() {
    for (rest, ties) in [(1, Ties::FirstFirst), (2, Ties::LastFirst), (30, Ties::FirstFirst)] {
        let mut world = filled(365, 5);
        world.phone.ties = ties;
        world.phone.now = SINCE;
        world.act(Act::Arrive { thread: 1, folder: Folder::Inbox, after: 1 });
        world.act(Act::Deliver(1));
        assert_eq!(world.archived().len(), 16);
        for _ in 0..rest {
            world.act(Act::Arrive { thread: 1, folder: Folder::Inbox, after: 0 });
        }
        world.connect();
        assert_eq!(world.settle(), []);
        assert_eq!((world.archived().len(), world.news.len()), (16 + rest, 1 + rest), "{ties:?}");
        assert!(world.news.values().all(|times| *times == 1), "{:?}", world.news);
    }
}

/// With nothing to be archived, the horizon is the moment at which reading began. It does not move.
#[test]
fn a_page_that_ends_in_the_moment_of_the_horizon_is_not_the_last_one() {
    let mut world = World::new(0, true);
    world.phone.now = SINCE;
    for after in [0, 0, 0, 0, 0, 0, 1] {
        world.act(Act::Arrive { thread: 1, folder: Folder::Inbox, after });
    }
    for act in [Act::Connect, Act::Deliver(1), Act::Quiet, Act::Deliver(1), Act::Connect] {
        world.act(act);
    }
    assert_eq!(world.news.len(), 4, "that is a page");
    assert_eq!(world.settle(), []);
    assert_eq!(world.news.len(), 7);
}

/// An MMS is dated in whole seconds, so it can seem to be older than the SMS before it.
#[test]
fn an_mms_that_seems_older_than_what_came_before_it_is_archived() {
    let mut world = filled(365, 5);
    world.phone.now = SINCE;
    world.act(Act::Arrive { thread: 1, folder: Folder::Inbox, after: 900 });
    world.act(Act::Deliver(1));
    world.lose();
    world.phone.now = SINCE;
    world.phone.add(1, Folder::Inbox, false);
    world.phone.items.last_mut().unwrap().message.kind = MessageKind::Mms;
    world.phone.now += SECOND;
    world.connect();
    assert_eq!(world.settle(), []);
    assert_eq!((world.archived().len(), world.news.len()), (17, 2));
}

/// With hundreds of conversations, asking for each on every connection would be noticed.
#[test]
fn a_conversation_is_asked_for_again_only_once_after_a_push() {
    let mut world = filled(365, 5);
    let asked = |world: &mut World| {
        world.connect();
        while world.deliver() {}
        let step = world.quiet();
        let ask = step.ask.clone();
        world.follow(step);
        world.settle();
        ask
    };
    assert_eq!(asked(&mut world), None, "the first fill asked when everything was over");
    world.phone.now = SINCE;
    world.act(Act::Arrive { thread: 1, folder: Folder::Inbox, after: 1 });
    world.act(Act::Deliver(1));
    let few = Ask::Thread { thread: ThreadId(1), until: Some(at(SINCE + 1)), count: SMALL.few };
    assert_eq!(asked(&mut world), Some(few));
    assert_eq!(asked(&mut world), None, "now it is known");
}

#[test]
fn a_phone_that_is_silent_about_what_is_archived_is_no_trouble() {
    let mut world = filled(365, 5);
    world.phone.now = SINCE;
    world.act(Act::Arrive { thread: 1, folder: Folder::Inbox, after: 1 });
    world.act(Act::Deliver(1));
    world.phone.sends_nothing = false;
    world.phone.items.retain(|item| item.message.thread != ThreadId(1));
    world.act(Act::ListAgain);
    assert_eq!(world.settle(), []);
    assert_eq!(world.archived().len(), 16);
}

#[test]
fn what_is_older_than_the_horizon_stays_on_the_phone() {
    let mut world = World::new(1, true);
    let day = 24 * 60 * 60 * 1_000;
    world.phone.now = SINCE - 10 * day;
    for _ in 0..60 {
        world.phone.now += day / 4;
        world.phone.add(1, Folder::Inbox, false);
    }
    let horizon = |world: &World| world.now().as_millisecond() - day;
    let begun = horizon(&world);
    world.connect();
    world.settle();
    let oldest = horizon(&world);
    let expected = world.phone.shown().filter(|message| message.date.as_millisecond() >= oldest).count();
    assert_eq!(world.archived().len(), expected);
    let pages = world.marks().values().map(|kept| kept.from).collect::<Vec<_>>();
    assert_eq!(pages, [begun - 1], "everything from there on is archived");
}

#[test]
fn a_phone_that_does_not_answer_is_asked_twice() {
    let mut world = filled(365, 10);
    let (mut fill, ask) = Fill::begin(world.marks(), 0);
    assert_eq!(ask, Ask::Threads);
    assert_eq!(fill.on_silence(at(SINCE)).ask, Some(Ask::Threads));
    assert_eq!(fill.on_silence(at(SINCE)).trouble, Some(Trouble::Phone));
    assert_eq!(fill.waits(), Waits::Idle);

    world.phone.now += 10;
    world.phone.add(1, Folder::Inbox, false);
    world.connect();
    while world.deliver() {}
    let asked = world.fill.on_quiet().ask;
    assert!(matches!(asked, Some(Ask::Thread { thread: ThreadId(1), .. })), "{asked:?}");
    assert_eq!(world.fill.on_silence(at(SINCE)).ask, asked);
    let left = world.fill.on_silence(at(SINCE));
    assert_eq!((left.trouble, left.ask), (Some(Trouble::Thread), None), "the others need nothing");
}

#[test]
fn a_conversation_that_is_gone_from_the_phone_is_forgotten_quietly() {
    for sends_nothing in [true, false] {
        let mut world = filled(365, 10);
        world.phone.sends_nothing = sends_nothing;
        world.phone.items.retain(|item| item.message.thread != ThreadId(2));
        world.connect();
        assert_eq!(world.settle(), []);
        assert_eq!(world.archived().len(), 30, "what is archived stays");
        assert_eq!(world.marks().contains_key(&ThreadId(2)), !sends_nothing);
    }
}

#[test]
fn a_page_that_was_asked_for_earlier_does_not_close_a_gap() {
    let mut world = filled(365, 20);
    world.lose();
    for _ in 0..30 {
        world.phone.now += 10;
        world.phone.add(1, Folder::Inbox, false);
    }
    let old = world.phone.newest_first(|item| item.message.thread == ThreadId(1));
    world.connect();
    while world.deliver() {}
    let step = world.fill.on_quiet();
    let late: Vec<PhoneMessage> = old[40..44].iter().map(|item| item.message.clone()).collect();
    world.phone.line.push_back(MessageList { messages: late, unsent: vec![] });
    world.follow(step);
    world.settle();
    assert_eq!(world.archived().len(), 90);
}

#[test]
fn progress_goes_by_time() {
    for (from, to, end, expected) in [
        (900, 1_000, false, 100),
        (-1, 1_000, false, 1_000),
        (900, 1_000, true, 1_000),
        (1, 100_000, false, 999),
        (2_000, 1_000, false, 0),
    ] {
        let kept = Kept { from, to, end, settled: false };
        assert_eq!(kept.per_mille(0), expected, "{kept:?}");
    }
}
