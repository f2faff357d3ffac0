//! SMS in the inbox: those of paired phones from the archive, those of the phone that Kai runs on from the [`Shelf`]
//! and, until that has them, from the queue.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kai_words::{Said, said};
use rusqlite::Transaction;
use serde_json::json;

use super::archive::list::{self, Slice};
use super::archive::{self, FIRST_ID, View, find};
use super::handled::{self, Handled};
use super::mark::Identity;
use super::queue::{PREVIEW, QUEUE, Queued};
use super::received::{Found, PhoneNames};
use super::search::{Wanted as Search, is_like_a_number};
use super::shelf::{Asked, Choice, KIND, Shelf};
use super::tools::answer;
use super::{Sms, SmsId, identity_name, names, store};
use crate::db::DbError;
use crate::inbox::{
    Fetched, Fetching, Item, Key, Mark, Message, MessageSource, Need, NoReply, PAGE, Phones, Quote, Show,
    Wanted,
};
use crate::moment::local;
use crate::outbox::number::digits;
use crate::outbox::{self, NewDraft};
use crate::pending::{self, Waiting};
use crate::phones;
use crate::settings::{self, SMS_ENABLED, SMS_SEND_ENABLED};
use crate::source::SourceId;
use crate::tool::{Eyes, Run, room};
use crate::untrusted::{escaped, folded};

/// The most messages of the phone that Kai runs on that one page takes: one more tells that there are others.
const MOST_HERE: usize = PAGE + 1;

/// SMS as a source of the inbox.
pub struct SmsSource {
    /// What was read of the phone that Kai runs on, if it runs on one.
    pub shelf: Option<Shelf>,
    /// Whether the phone that Kai runs on can send.
    pub sends_here: bool,
}

/// What of the store is needed to list messages.
struct Around {
    handled: Handled,
    waiting: Vec<Waiting<Queued>>,
    phones: PhoneNames,
}

impl Around {
    fn of(tx: &Transaction<'_>) -> Result<Self, DbError> {
        let waiting = pending::waiting(tx, QUEUE)?;
        Ok(Self { handled: Handled::load(tx)?, waiting, phones: PhoneNames::of(tx)? })
    }

    fn is_waiting(&self, found: &Found) -> bool {
        let id = |one: &Waiting<Queued>| (one.entry.source, one.entry.id, one.entry.date);
        let wanted = (found.source, found.sms.id, found.sms.date.as_millisecond());
        self.waiting.iter().any(|one| id(one) == wanted)
    }

    fn item(&self, tx: &Transaction<'_>, found: &Found, marks: Marks) -> Result<Item, DbError> {
        let Found { source, sms } = found;
        let address = sms.address.as_written();
        Ok(Item {
            key: key(sms.id),
            phone: *source,
            phone_name: self.phones.name(*source),
            group: group(address),
            from: sms.address.clone(),
            name: names::beside(tx, address)?,
            title: None,
            preview: sms.body.map(|_| sms.body.line(PREVIEW)),
            date: sms.date.as_millisecond(),
            unread: marks.unread,
            waiting: self.is_waiting(found),
            away: marks.away,
        })
    }

    /// The marks of a message of the phone that Kai runs on.
    fn marks_here(&self, sms: &Sms) -> Marks {
        Marks { unread: self.handled.is_unread(sms), away: self.handled.is_away(&sms.identity()) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Marks {
    unread: bool,
    away: bool,
}

fn key(id: SmsId) -> Key {
    Key::new(KIND, id.0)
}

/// Messages of one number belong together, however it is written.
fn group(address: &str) -> String {
    let number = digits(address);
    if is_like_a_number(address) && !number.is_empty() { number } else { folded(address.trim()) }
}

fn number_of(id: &str) -> Option<SmsId> {
    id.parse().ok().map(SmsId)
}

/// The search, with the numbers of contacts whose names match.
fn search(tx: &Transaction<'_>, words: &str) -> Result<Option<Search>, DbError> {
    let Some(wanted) = Search::new(words) else { return Ok(None) };
    let named = names::numbers_of(tx, wanted.text())?;
    Ok(Some(wanted.or_from(named)))
}

fn asked(wanted: &Wanted) -> Asked {
    let words = wanted.words.trim().to_owned();
    Asked::Page { words, show: wanted.show, before: wanted.before.clone() }
}

/// The message that a queue entry stands for, as far as the entry knows it.
fn queued(entry: &Queued) -> Sms {
    Sms {
        id: entry.id,
        address: entry.address.clone(),
        date: Timestamp::from_millisecond(entry.date).unwrap_or_default(),
        body: entry.preview.clone(),
        read: entry.read,
    }
}

impl SmsSource {
    fn archived(
        tx: &Transaction<'_>,
        wanted: &Wanted,
        search: Option<&Search>,
        most: usize,
        around: &Around,
    ) -> Result<Vec<Item>, DbError> {
        let slice = Slice { phone: wanted.phone, search, show: wanted.show, until: wanted.latest() };
        let admits = |stored: &archive::Stored| wanted.admits(stored.date.as_millisecond(), &key(stored.id));
        let listed = list::list(tx, slice, most, admits)?.into_iter().map(|listed| {
            let (source, marks) =
                (listed.stored.source, Marks { unread: !listed.stored.read, away: listed.away });
            around.item(tx, &Found { source, sms: listed.stored.into_sms() }, marks)
        });
        listed.collect()
    }

    /// What the shelf has, or else what is queued.
    fn here(&self, wanted: &Wanted, search: Option<&Search>, around: &Around) -> Vec<Sms> {
        let read = self.shelf.as_ref().filter(|_| wanted.show != Show::Waiting);
        if let Some(found) = read.and_then(|read| read.known(&asked(wanted)).found) {
            return found;
        }
        let here = around.waiting.iter().filter(|one| one.entry.source.is_here());
        let is_found = |sms: &Sms| {
            let in_parts = |search: &Search| {
                search.is_in(sms.address.as_written()) || search.is_in(sms.body.as_written())
            };
            search.is_none_or(in_parts)
        };
        here.map(|one| queued(&one.entry)).filter(is_found).collect()
    }

    fn listed_here(
        &self,
        tx: &Transaction<'_>,
        wanted: &Wanted,
        search: Option<&Search>,
        around: &Around,
    ) -> Result<Vec<Item>, DbError> {
        let is_shown = |marks: Marks| match wanted.show {
            Show::All | Show::Waiting => !marks.away,
            Show::Unread => marks.unread,
            Show::Away => marks.away,
        };
        let mut items = vec![];
        for sms in self.here(wanted, search, around) {
            let marks = around.marks_here(&sms);
            if wanted.admits(sms.date.as_millisecond(), &key(sms.id)) && is_shown(marks) {
                items.push(around.item(tx, &Found { source: SourceId::HERE, sms }, marks)?);
            }
        }
        Ok(items)
    }

    /// The message, its marks, and whether all of it is known.
    fn found(
        &self,
        tx: &Transaction<'_>,
        id: SmsId,
        around: &Around,
    ) -> Result<Option<(Found, Marks, bool)>, DbError> {
        if id >= FIRST_ID {
            let Some(stored) = find::message(tx, View::Inbox, id)? else { return Ok(None) };
            let marks = Marks { unread: !stored.read, away: list::is_away(tx, id)? };
            return Ok(Some((Found { source: stored.source, sms: stored.into_sms() }, marks, true)));
        }
        let read = self.shelf.as_ref().and_then(|shelf| shelf.message(id));
        let entry = || around.waiting.iter().find(|one| one.entry.source.is_here() && one.entry.id == id);
        let sms = read.clone().or_else(|| entry().map(|one| queued(&one.entry)));
        Ok(sms.map(|sms| {
            let marks = around.marks_here(&sms);
            (Found { source: SourceId::HERE, sms }, marks, read.is_some())
        }))
    }
}

impl MessageSource for SmsSource {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn title(&self) -> Said {
        said::inbox_kind_sms()
    }

    fn phones(&self, tx: &Transaction<'_>) -> Result<Phones, DbError> {
        let here = self.shelf.is_some() && settings::load(tx)?.on(&SMS_ENABLED);
        phones::store::named(tx, list::phones(tx)?.into_iter().chain(here.then_some(SourceId::HERE)))
    }

    fn page(&self, tx: &Transaction<'_>, wanted: &Wanted, most: usize) -> Result<Vec<Item>, DbError> {
        let (around, search) = (Around::of(tx)?, search(tx, &wanted.words)?);
        let mut items = Self::archived(tx, wanted, search.as_ref(), most, &around)?;
        if wanted.has_phone(SourceId::HERE) {
            items.extend(self.listed_here(tx, wanted, search.as_ref(), &around)?);
        }
        Ok(items)
    }

    fn unread(&self, tx: &Transaction<'_>, _: Timestamp, most: usize) -> Result<usize, DbError> {
        let waiting = pending::waiting::<Queued>(tx, QUEUE)?;
        let handled = Handled::load(tx)?;
        let entries = waiting.iter().map(|one| &one.entry).filter(|entry| entry.source.is_here());
        // What was read of the phone is newer than the queue.
        let read = self.shelf.iter().flat_map(Shelf::messages);
        let here: BTreeMap<Identity, Sms> =
            entries.map(queued).chain(read).map(|sms| (sms.identity(), sms)).collect();
        Ok(list::unread(tx, most)? + here.values().filter(|sms| handled.is_unread(sms)).count())
    }

    fn message(&self, tx: &Transaction<'_>, id: &str, _: Timestamp) -> Result<Option<Message>, DbError> {
        let around = Around::of(tx)?;
        let Some(id) = number_of(id) else { return Ok(None) };
        let Some((found, marks, is_whole)) = self.found(tx, id, &around)? else { return Ok(None) };
        let item = around.item(tx, &found, marks)?;
        let text = found.sms.body;
        Ok(Some(Message { item, text, is_beginning: !is_whole, said: vec![], below: None, hidden: false }))
    }

    fn quote(
        &self,
        tx: &Transaction<'_>,
        id: &str,
        _: Timestamp,
        zone: &TimeZone,
    ) -> Result<Option<Quote>, DbError> {
        let (around, values) = (Around::of(tx)?, settings::load(tx)?);
        let Some(id) = number_of(id) else { return Ok(None) };
        let Some((Found { source, sms }, ..)) = self.found(tx, id, &around)? else { return Ok(None) };
        let body = Eyes::of_model(&values).see(&sms.body);
        let (body, _) = room::beginning(body.as_written(), room::room(&values));
        let mut object = json!({
            "message": KIND, "id": sms.id, "from": sms.address, "date": sms.date.as_millisecond(),
            "date_local": local(sms.date, zone), "body": body, "untrusted": true,
        });
        for (field, value) in [
            ("name", names::beside(tx, sms.address.as_written())?.map(|name| json!(name))),
            ("phone", around.phones.name(source).map(|name| json!(name))),
        ] {
            if let Some(value) = value {
                object[field] = value;
            }
        }
        let identity = identity_name(sms.id.0, sms.date.as_millisecond(), sms.address.as_written());
        Ok(Some(Quote { json: escaped(&object.to_string()), identity }))
    }

    fn mark(&self, tx: &Transaction<'_>, id: &str, mark: Mark) -> Result<(), DbError> {
        let around = Around::of(tx)?;
        let Some(id) = number_of(id) else { return Ok(()) };
        let Some((found, ..)) = self.found(tx, id, &around)? else { return Ok(()) };
        if mark == Mark::Away {
            let is_it = |one: &&Waiting<Queued>| one.entry.id == id && one.entry.source == found.source;
            let seqs: Vec<i64> = around.waiting.iter().filter(is_it).map(|one| one.seq).collect();
            pending::forget(tx, QUEUE, &seqs)?;
        }
        let away = match mark {
            Mark::Opened => None,
            Mark::Away => Some(true),
            Mark::Back => Some(false),
        };
        match away {
            _ if found.source.is_here() => handled::note(tx, &found.sms.identity(), away),
            None => archive::open(tx, id),
            Some(away) => list::put_away(tx, id, away),
        }
    }

    fn reply(&self, tx: &Transaction<'_>, id: &str, body: String, _: Timestamp) -> Result<NewDraft, NoReply> {
        let found = match number_of(id) {
            Some(id) => self.found(tx, id, &Around::of(tx)?)?,
            None => None,
        };
        let (Found { source, sms }, ..) = found.ok_or(NoReply::Gone)?;
        if !settings::load(tx)?.on(&SMS_SEND_ENABLED) {
            return Err(NoReply::Impossible(said::inbox_no_reply_off()));
        }
        let exits = outbox::exits::exits(tx, self.sends_here)?;
        if exits.iter().all(|exit| exit.source != source) {
            return Err(NoReply::Impossible(said::inbox_no_reply_phone()));
        }
        let no_number = || NoReply::Impossible(said::inbox_no_reply_number());
        answer(sms, source, body, &Run::BY_HAND).ok_or_else(no_number)
    }

    fn fetch(&self, tx: &Transaction<'_>, need: &Need) -> Result<Option<Fetching>, DbError> {
        let Some(read) = &self.shelf else { return Ok(None) };
        let (Some(asked), true) = (needed(need), settings::load(tx)?.on(&SMS_ENABLED)) else {
            return Ok(None);
        };
        let search = match need {
            Need::Page(wanted) => search(tx, &wanted.words)?,
            Need::Message(_) => None,
        };
        let choice = Choice { search, handled: Handled::load(tx)?, most: MOST_HERE };
        Ok(read.ask(&asked, choice, store::sync(tx)?.last_sync))
    }

    fn fetched(&self, need: &Need) -> Fetched {
        let (Some(read), Some(asked)) = (&self.shelf, needed(need)) else { return Fetched::All };
        let known = read.known(&asked);
        match (known.found, known.error) {
            (_, Some(error)) => Fetched::Failed(error.said()),
            (None, None) if known.is_reading => Fetched::Loading,
            (_, None) => Fetched::All,
        }
    }
}

/// What the phone that Kai runs on has to be asked. Archived messages and what waits are in the store.
fn needed(need: &Need) -> Option<Asked> {
    match need {
        Need::Page(wanted) => {
            (wanted.has_phone(SourceId::HERE) && wanted.show != Show::Waiting).then(|| asked(wanted))
        }
        Need::Message(key) => number_of(&key.id).filter(|id| *id < FIRST_ID).map(Asked::One),
    }
}

#[cfg(test)]
mod tests;
