//! Tests of SMS in the inbox: an archive with two phones, and a phone that Kai runs on.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use kai_words::Said;

use super::*;
use crate::access::Access;
use crate::clock::{Clock, ManualClock};
use crate::db::Db;
use crate::inbox::Sources;
use crate::lock::lock;
use crate::phones::Switch;
use crate::phones::port::{Contact, Folder, MessageKind, PhoneMessage, ThreadId};
use crate::phones::store::{NewPhone, begin_reading, pair, set};
use crate::settings::SMS_ARCHIVE_DAYS;
use crate::sms::Inbox;
use crate::sms::archive::archive_now;
use crate::sms::port::{From, ReadError, Reading, SmsReader};
use crate::untrusted::Untrusted;

const NOW: i64 = 1_800_000_000_000;
const MINUTE: i64 = 60_000;

/// A phone whose messages stand in a list, newest first, and which counts how often it is asked.
#[derive(Default)]
struct Pocket {
    messages: Mutex<Vec<Sms>>,
    asked: Mutex<Vec<(usize, usize)>>,
    error: Mutex<Option<ReadError>>,
}

impl Pocket {
    fn rows(&self, rows: impl FnOnce(&[Sms]) -> Vec<Sms>) -> Reading<'_, Vec<Sms>> {
        let answer = lock(&self.error).clone().map_or_else(|| Ok(rows(&lock(&self.messages))), Err);
        Box::pin(std::future::ready(answer))
    }
}

impl SmsReader for Pocket {
    fn access(&self) -> Pin<Box<dyn Future<Output = Access> + Send + '_>> {
        Box::pin(std::future::ready(Access::Granted))
    }
    fn last(&self) -> Reading<'_, Option<Sms>> {
        Box::pin(std::future::ready(Ok(lock(&self.messages).iter().max_by_key(|sms| sms.id).cloned())))
    }
    fn from(&self, from: From, limit: usize) -> Reading<'_, Vec<Sms>> {
        let From::Id(id) = from else { return self.rows(|_| vec![]) };
        self.rows(|all| {
            let mut rows: Vec<Sms> = all.iter().filter(|sms| sms.id >= id).cloned().collect();
            rows.sort_by_key(|sms| sms.id);
            rows.truncate(limit);
            rows
        })
    }
    fn newest(&self, skip: usize, limit: usize) -> Reading<'_, Vec<Sms>> {
        lock(&self.asked).push((skip, limit));
        self.rows(|all| all.iter().skip(skip).take(limit).cloned().collect())
    }
    fn contacts(&self) -> Reading<'_, Vec<Contact>> {
        Box::pin(std::future::ready(Ok(vec![])))
    }
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap()
}

fn here(id: i64, date: i64, address: &str, body: &str) -> Sms {
    Sms {
        id: SmsId(id),
        address: Untrusted::new(address),
        date: at(date),
        body: Untrusted::new(body),
        read: false,
    }
}

struct House {
    db: Db,
    clock: Arc<ManualClock>,
    pocket: Arc<Pocket>,
    sources: Sources,
}

impl House {
    fn new() -> Self {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let clock = Arc::new(ManualClock::at(at(NOW)));
        let pocket = Arc::new(Pocket::default());
        let inbox = Arc::new(Inbox::new(pocket.clone(), clock.clone()));
        let shelf = Some(Shelf::new(inbox, clock.clone()));
        let sources = Sources::new(vec![Box::new(SmsSource { shelf, sends_here: false })]);
        let house = Self { db, clock, pocket, sources };
        house.write(|tx| {
            for (device, name) in [("a", "Pixel"), ("b", "Fairphone")] {
                let (device, name) = (device.to_owned(), name.to_owned());
                let phone =
                    pair(tx, &NewPhone { device, name, certificate: vec![1], protocol: 8 }, at(0))?.source;
                set(tx, phone, Switch::ReadSms, true)?;
                set(tx, phone, Switch::SendSms, true)?;
                begin_reading(tx, phone, at(NOW))?;
            }
            settings::store(tx, &SMS_ENABLED.key, "true")?;
            settings::store(tx, &SMS_SEND_ENABLED.key, "true")?;
            settings::store(tx, &SMS_ARCHIVE_DAYS.key, "365")
        });
        house
    }

    fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, DbError>) -> T {
        self.db.write_now(work).unwrap()
    }

    /// Archives messages of a paired phone: date, sender, text.
    fn archive(&self, phone: i64, messages: &[(i64, &str, &str)]) {
        let message = |(n, (date, address, body)): (usize, &(i64, &str, &str))| PhoneMessage {
            kind: MessageKind::Sms,
            native_id: i64::try_from(n).unwrap() + date,
            thread: ThreadId(1),
            folder: if *address == "me" { Folder::Sent } else { Folder::Inbox },
            read: false,
            date: at(*date),
            address: Untrusted::new(*address),
            body: Untrusted::new(*body),
        };
        let list: Vec<PhoneMessage> = messages.iter().enumerate().map(message).rev().collect();
        self.write(|tx| archive_now(tx, SourceId(phone), &list, at(NOW)));
    }

    /// Puts a message of the phone that Kai runs on into the queue.
    fn queue(&self, sms: &Sms) {
        let (id, address, preview, date) =
            (sms.id, sms.address.clone(), sms.body.clone(), sms.date.as_millisecond());
        let entry = Queued { id, source: SourceId::HERE, address, date, read: sms.read, preview };
        let identity = id.0.to_string();
        self.write(|tx| {
            let origin = pending::Origin { identity: &identity, phone: SourceId::HERE, source: "" };
            pending::push(tx, QUEUE, origin, &entry, pending::Again::Skip)
        });
    }

    fn wanted(&self) -> Wanted {
        Wanted::all(self.clock.now())
    }

    /// What a page lists, and whether more is being fetched. Drives what it began.
    async fn look(&self, wanted: &Wanted) -> (Vec<Item>, Fetched) {
        let need = Need::Page(wanted.clone());
        let read = self.db.read_now(|tx| {
            let fetching = self.sources.fetch(tx, &need)?;
            let fetched = self.sources.fetched(&need);
            Ok::<_, DbError>((self.sources.page(tx, wanted, 5)?.items, fetched, fetching))
        });
        let (items, fetched, fetching) = read.unwrap();
        for fetching in fetching {
            fetching.await;
        }
        (items, fetched)
    }

    /// The same, once everything is there.
    async fn see(&self, wanted: &Wanted) -> Vec<Item> {
        self.look(wanted).await;
        self.look(wanted).await.0
    }

    fn mark(&self, id: i64, mark: Mark) {
        let key = key(SmsId(id));
        self.write(|tx| self.sources.of(&key).unwrap().mark(tx, &key.id, mark));
    }

    fn message(&self, id: i64) -> Option<Message> {
        let key = key(SmsId(id));
        self.db.read_now(|tx| self.sources.of(&key).unwrap().message(tx, &key.id, at(NOW))).unwrap()
    }
}

fn texts(items: &[Item]) -> Vec<&str> {
    items.iter().map(|item| item.preview.as_written()).collect()
}

#[tokio::test]
async fn the_phones_are_one_list_and_what_is_here_does_not_wait_for_the_phone() {
    let house = House::new();
    house.archive(2, &[(NOW - 3 * MINUTE, "+15550100", "three"), (NOW - 9 * MINUTE, "me", "sent")]);
    house.archive(3, &[(NOW - MINUTE, "+15550101", "one")]);
    *lock(&house.pocket.messages) = vec![here(7, NOW - 2 * MINUTE, "+15550102", "two, with code 482913")];
    let (first, fetched) = house.look(&house.wanted()).await;
    assert_eq!((texts(&first), fetched), (vec!["one", "three"], Fetched::Loading));
    let (all, fetched) = house.look(&house.wanted()).await;
    assert_eq!((texts(&all), fetched), (vec!["one", "two, with code 482913", "three"], Fetched::All));
    let names: Vec<Option<&str>> = all.iter().map(|item| item.phone_name.as_deref()).collect();
    assert_eq!(names, [Some("Fairphone"), None, Some("Pixel")]);
    let only = Wanted { phone: Some(SourceId(3)), ..house.wanted() };
    assert_eq!(texts(&house.see(&only).await), ["one"]);
    assert_eq!(lock(&house.pocket.asked).len(), 1, "the phone is asked once, and not for another phone's");
    house.clock.advance(jiff::SignedDuration::from_secs(61));
    house.look(&house.wanted()).await;
    assert_eq!(lock(&house.pocket.asked).len(), 2, "what is old is read again");
}

#[tokio::test]
async fn pages_go_through_all_messages_of_all_phones_once() {
    let house = House::new();
    let date = |n: i64| NOW - (n / 3) * 1_000;
    let archived: Vec<(i64, String)> = (0..40).map(|n| (date(n), format!("a{n}"))).collect();
    let archived: Vec<(i64, &str, &str)> =
        archived.iter().map(|(date, body)| (*date, "+15550100", body.as_str())).collect();
    house.archive(2, &archived);
    let mut pocket: Vec<Sms> = (0..400).map(|n| here(n + 1, date(n), "DHL", &format!("h{n}"))).collect();
    pocket.sort_by_key(|sms| std::cmp::Reverse((sms.date, sms.id)));
    *lock(&house.pocket.messages) = pocket;
    let (mut wanted, mut all) = (house.wanted(), vec![]);
    loop {
        house.look(&wanted).await;
        let page = house.db.read_now(|tx| house.sources.page(tx, &wanted, PAGE)).unwrap();
        wanted.before = page.next();
        all.extend(page.items.iter().map(Item::cursor));
        if wanted.before.is_none() {
            break;
        }
    }
    assert_eq!(all.len(), 440);
    assert!(all.windows(2).all(|two| two[0] > two[1]), "newest first, none twice");
    let asked = lock(&house.pocket.asked).clone();
    assert!(asked.last().unwrap().0 > 200, "later pages do not begin at the top: {asked:?}");
}

#[tokio::test]
async fn search_finds_words_codes_and_numbers_on_every_phone() {
    let house = House::new();
    house.archive(
        2,
        &[(NOW - 3, "+49 171 5550100", "Großer ÄRGER"), (NOW - 4, "Bank", "Your code is 482913")],
    );
    *lock(&house.pocket.messages) =
        vec![here(7, NOW - 2, "01715550100", "tea"), here(6, NOW - 9, "x", "ärger")];
    for (words, expected) in [
        ("ärger", vec!["Großer ÄRGER", "ärger"]),
        ("482913", vec!["Your code is 482913"]),
        ("0171 5550100", vec!["tea", "Großer ÄRGER"]),
        ("nothing", vec![]),
        ("\" OR *", vec![]),
    ] {
        let wanted = Wanted { words: words.to_owned(), ..house.wanted() };
        assert_eq!(texts(&house.see(&wanted).await), expected, "{words}");
    }
}

#[tokio::test]
async fn an_unread_message_of_this_phone_counts_once_also_after_the_heartbeat() {
    let house = House::new();
    let read = Sms { read: true, ..here(8, NOW + 1, "+15550102", "read on the phone") };
    *lock(&house.pocket.messages) = vec![read, here(7, NOW, "+15550102", "here")];
    house.queue(&here(7, NOW, "+15550102", "here"));
    let unread = || house.db.read_now(|tx| house.sources.unread(tx, at(NOW), 100)).unwrap();
    assert_eq!(unread(), 1, "as the queue knows it");
    assert_eq!(house.see(&house.wanted()).await.len(), 2);
    assert_eq!(unread(), 1, "in the queue and on the page");
    house.write(|tx| {
        let seqs: Vec<i64> = pending::waiting::<Queued>(tx, QUEUE)?.iter().map(|one| one.seq).collect();
        pending::forget(tx, QUEUE, &seqs)
    });
    assert_eq!(unread(), 1, "as the page lists it");
    house.mark(7, Mark::Opened);
    assert_eq!(unread(), 0);
}

#[tokio::test]
async fn marks_are_kept_for_each_message_and_dismissing_takes_it_from_the_queue() {
    let house = House::new();
    house.archive(2, &[(NOW + 1, "+15550100", "archived")]);
    *lock(&house.pocket.messages) = vec![here(7, NOW, "+15550102", "here")];
    house.queue(&here(7, NOW, "+15550102", "here"));
    let all = house.see(&house.wanted()).await;
    let archived: i64 = all[0].key.id.parse().unwrap();
    let marks = |items: &[Item]| items.iter().map(|it| (it.unread, it.waiting, it.away)).collect::<Vec<_>>();
    assert_eq!(marks(&all), [(true, true, false), (true, true, false)]);
    let shown = |show| Wanted { show, ..house.wanted() };
    let unread = || house.db.read_now(|tx| house.sources.unread(tx, at(NOW), 100)).unwrap();
    assert_eq!(unread(), 2);
    assert_eq!(texts(&house.see(&shown(Show::Waiting)).await), ["archived", "here"]);
    for id in [7, archived] {
        house.mark(id, Mark::Opened);
    }
    assert_eq!(unread(), 0);
    assert_eq!(marks(&house.see(&house.wanted()).await), [(false, true, false), (false, true, false)]);
    assert!(house.see(&shown(Show::Unread)).await.is_empty());
    for id in [7, archived] {
        house.mark(id, Mark::Away);
    }
    assert!(house.see(&house.wanted()).await.is_empty() && house.see(&shown(Show::Waiting)).await.is_empty());
    assert_eq!(house.db.read_now(|tx| pending::count(tx, QUEUE)).unwrap(), 0, "no heartbeat tells of it");
    house.clock.advance(jiff::SignedDuration::from_secs(61));
    assert_eq!(marks(&house.see(&shown(Show::Away)).await), [(false, false, true), (false, false, true)]);
    for id in [7, archived] {
        house.mark(id, Mark::Back);
    }
    assert_eq!(texts(&house.see(&house.wanted()).await), ["archived", "here"]);
    // Phones use ids again: what was done with the old message says nothing of the new one.
    *lock(&house.pocket.messages) = vec![here(7, NOW + MINUTE, "+15550102", "new")];
    house.clock.advance(jiff::SignedDuration::from_secs(61));
    assert_eq!(marks(&house.see(&shown(Show::Unread)).await), [(true, false, false)]);
}

/// A page may be read while a mark is on its way into the store: what was read without it does not count.
#[tokio::test]
async fn what_is_put_back_while_the_phone_is_read_is_listed() {
    let house = House::new();
    let sms = here(7, NOW, "+15550102", "here");
    *lock(&house.pocket.messages) = vec![sms.clone()];
    house.see(&house.wanted()).await;
    house.mark(7, Mark::Away);
    let need = Need::Page(house.wanted());
    let reading = house.db.read_now(|tx| house.sources.fetch(tx, &need)).unwrap();
    assert_eq!(reading.len(), 1, "the page is read again without it");
    house.write(|tx| handled::note(tx, &sms.identity(), Some(false)));
    for reading in reading {
        reading.await;
    }
    assert_eq!(texts(&house.see(&house.wanted()).await), ["here"]);
    assert_eq!(house.look(&house.wanted()).await.1, Fetched::All);
    let again = house.db.read_now(|tx| house.sources.fetch(tx, &need)).unwrap();
    assert!(again.is_empty(), "and not again and again");
}

#[tokio::test]
async fn a_phone_that_fails_hides_nothing_else() {
    let house = House::new();
    house.archive(2, &[(NOW, "+15550100", "archived")]);
    *lock(&house.pocket.error) = Some(ReadError::Failed(Said::from("no answer")));
    house.look(&house.wanted()).await;
    let (items, fetched) = house.look(&house.wanted()).await;
    assert_eq!((texts(&items), fetched), (vec!["archived"], Fetched::Failed("no answer".into())));
    house.write(|tx| settings::store(tx, &SMS_ENABLED.key, "false"));
    house.clock.advance(jiff::SignedDuration::from_secs(61));
    let asked = lock(&house.pocket.asked).len();
    house.look(&house.wanted()).await;
    assert_eq!(lock(&house.pocket.asked).len(), asked, "a phone that may not be read is not asked");
}

#[tokio::test]
async fn the_user_sees_codes_and_a_model_does_not() {
    let house = House::new();
    house.archive(2, &[(NOW, "Bank", "Your code is 482913")]);
    let id: i64 = house.look(&house.wanted()).await.0[0].key.id.parse().unwrap();
    assert_eq!(house.message(id).unwrap().text.as_written(), "Your code is 482913");
    let key = key(SmsId(id));
    let quote = |house: &House| {
        let source = house.sources.of(&key).unwrap();
        house.db.read_now(|tx| source.quote(tx, &key.id, at(NOW), &TimeZone::UTC)).unwrap().unwrap()
    };
    let quoted = quote(&house);
    assert!(quoted.json.contains("Your code is [code]") && quoted.json.contains("\"untrusted\":true"));
    assert_eq!(quoted.identity, format!("sms {id} {NOW} Bank"), "as the ledger knows it");
    assert_eq!((house.message(8), house.message(FIRST_ID.0 + 99)), (None, None));
}

#[tokio::test]
async fn an_answer_leaves_by_the_phone_that_received_the_message() {
    let house = House::new();
    house.archive(3, &[(NOW, "+15550100", "Dinner?"), (NOW - 1, "Bank", "Pay.")]);
    let items = house.look(&house.wanted()).await.0;
    let reply = |n: usize| {
        let key = &items[n].key;
        let source = house.sources.of(key).unwrap();
        let reply =
            house.db.read_now(|tx| Ok::<_, DbError>(source.reply(tx, &key.id, "Yes".to_owned(), at(NOW))));
        reply.unwrap().map(|new| (new.to, new.phone, new.in_reply_to)).map_err(|why| why.to_string())
    };
    let id: i64 = items[0].key.id.parse().unwrap();
    let answered = Some(outbox::ReplyTo::Sms(id));
    assert_eq!(reply(0), Ok(("+15550100".to_owned(), SourceId(3), answered)));
    assert_eq!(reply(1), Err(said::inbox_no_reply_number().to_string()));
    house.write(|tx| set(tx, SourceId(3), Switch::SendSms, false));
    assert_eq!(reply(0), Err(said::inbox_no_reply_phone().to_string()));
    house.write(|tx| settings::store(tx, &SMS_SEND_ENABLED.key, "false"));
    assert_eq!(reply(0), Err(said::inbox_no_reply_off().to_string()));
}

/// However many messages there are, a page is found by an index: nothing is sorted, and no other phone's are read.
#[test]
fn every_list_goes_by_an_index() {
    let house = House::new();
    let plans = house.db.read_now(|tx| {
        let mut plans = vec![];
        for show in [Show::All, Show::Unread, Show::Away] {
            let sql = format!("EXPLAIN QUERY PLAN {}", list::sql(show));
            let mut rows = tx.prepare(&sql)?;
            let rows = rows.query_map([2, NOW], |row| row.get::<_, String>(3))?;
            plans.extend(rows.collect::<rusqlite::Result<Vec<_>>>()?);
        }
        Ok::<_, DbError>(plans)
    });
    let plans = plans.unwrap();
    assert_eq!(plans.len(), 3, "one step each: {plans:?}");
    for (plan, index) in plans.iter().zip(["received", "unread", "put_away"]) {
        assert!(plan.contains(&format!("sms_archive_{index} (source=? AND rowid<?)")), "{plan}");
    }
}
