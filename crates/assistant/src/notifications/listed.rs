//! Notifications in the inbox.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kai_words::{Said, said};
use rusqlite::{Row, Transaction, params};

use super::record::ChatMessage;
use super::replying;
use super::sources::Sources;
use super::view::{PhoneNames, Wanted as Search, Whole};
use super::{NotificationId, QUEUE, Record, store};
use crate::db::DbError;
use crate::inbox::NoReply;
use crate::inbox::{Clearing, Item, Key, Line, Mark, Message, MessageSource, Phones, Quote, Show, Wanted};
use crate::outbox::NewDraft;
use crate::pending::{self, Waiting};
use crate::phones;
use crate::settings;
use crate::tool::{Eyes, room};
use crate::untrusted::{Untrusted, escaped, folded};

const KIND: &str = "notification";

/// The most characters in a preview.
const PREVIEW: usize = 200;

/// Notifications as a source of the inbox.
pub struct NotificationSource {
    /// The platforms that show them, which can take one off the screen.
    pub platforms: Arc<Sources>,
}

/// A notification with what the user did with it.
struct Kept {
    record: Record,
    unread: bool,
    away: bool,
}

fn kept(row: &Row<'_>) -> rusqlite::Result<Option<Kept>> {
    let record = serde_json::from_str(row.get_ref(0)?.as_str().unwrap_or_default()).ok();
    let (closed, opened, away): (bool, bool, bool) = (row.get(1)?, row.get(2)?, row.get(3)?);
    // What is gone from the screen was dealt with there.
    Ok(record.map(|record| Kept { record, unread: !closed && !opened && !away, away }))
}

/// What of the store is needed to list notifications.
struct Around {
    waiting: BTreeSet<String>,
    phones: PhoneNames,
}

impl Around {
    fn of(tx: &Transaction<'_>) -> Result<Self, DbError> {
        let waiting: Vec<Waiting<Record>> = pending::waiting(tx, QUEUE)?;
        let waiting = waiting.into_iter().map(|one| one.entry.id.as_str().to_owned()).collect();
        Ok(Self { waiting, phones: store::phone_names(tx)? })
    }

    fn item(&self, kept: &Kept) -> Item {
        let record = &kept.record;
        let gist = record.gist();
        Item {
            key: key(record),
            phone: record.id.source(),
            phone_name: self.phones.of(&record.id).map(|name| name.as_written().to_owned()),
            group: folded(&record.package_name),
            from: record.app_label.clone(),
            name: None,
            title: Some(record.title.clone()).filter(|title| !title.is_blank()),
            preview: gist.map(|_| gist.line(PREVIEW)),
            date: record.posted_at,
            unread: kept.unread,
            waiting: self.waiting.contains(record.id.as_str()),
            away: kept.away,
        }
    }
}

fn key(record: &Record) -> Key {
    Key::new(KIND, record.id.as_str())
}

fn condition(show: Show) -> &'static str {
    match show {
        Show::All => "put_away = 0",
        Show::Unread => "put_away = 0 AND opened = 0 AND closed = 0",
        Show::Waiting => "id IN (SELECT identity FROM pending WHERE queue = 'notifications')",
        Show::Away => "put_away = 1",
    }
}

/// The newest ones that are wanted. Those of one millisecond come in the order of their keys.
fn newest(tx: &Transaction<'_>, wanted: &Wanted, most: usize) -> Result<Vec<Kept>, DbError> {
    let sql = format!(
        "SELECT record, closed, opened, put_away FROM notifications
         WHERE posted_at BETWEEN ?1 AND ?2 AND (?3 IS NULL OR source = ?3) AND {}
         ORDER BY posted_at DESC, length(CAST(id AS BLOB)) DESC, id DESC",
        condition(wanted.show)
    );
    let ((from, to), search) = (store::alive(wanted.now), Search::new(&wanted.words, None));
    let mut rows = tx.prepare_cached(&sql)?;
    let mut rows = rows.query(params![from, to.min(wanted.latest()), wanted.phone])?;
    let mut found = vec![];
    while found.len() < most
        && let Some(row) = rows.next()?
    {
        found.extend(kept(row)?.filter(|kept| is_wanted(&kept.record, wanted, search.as_ref())));
    }
    Ok(found)
}

fn is_wanted(record: &Record, wanted: &Wanted, search: Option<&Search>) -> bool {
    wanted.admits(record.posted_at, &key(record))
        && search.is_none_or(|search| search.is_in(record, Eyes::All))
}

/// Those that wait for a heartbeat and are too old to be kept, or had to make room.
fn only_queued(tx: &Transaction<'_>, wanted: &Wanted) -> Result<Vec<Kept>, DbError> {
    if matches!(wanted.show, Show::Unread | Show::Away) {
        return Ok(vec![]);
    }
    let (from, to) = store::alive(wanted.now);
    let sql = "SELECT entry FROM pending WHERE queue = 'notifications' AND NOT EXISTS (
                   SELECT 1 FROM notifications n WHERE n.id = identity AND n.posted_at BETWEEN ?1 AND ?2)";
    let mut rows = tx.prepare_cached(sql)?;
    let rows = rows.query_map([from, to], |row| row.get::<_, String>(0))?;
    let rows: Vec<String> = rows.collect::<rusqlite::Result<_>>()?;
    let search = Search::new(&wanted.words, None);
    let records = rows.iter().filter_map(|json| serde_json::from_str::<Record>(json).ok());
    let is_wanted =
        |record: &Record| wanted.has_phone(record.id.source()) && is_wanted(record, wanted, search.as_ref());
    Ok(records.filter(is_wanted).map(|record| Kept { record, unread: false, away: false }).collect())
}

fn find(tx: &Transaction<'_>, id: &str, now: Timestamp) -> Result<Option<Kept>, DbError> {
    let id = NotificationId::new(id);
    let Some(record) = store::find(tx, &id, now)? else { return Ok(None) };
    let mut row =
        tx.prepare_cached("SELECT record, closed, opened, put_away FROM notifications WHERE id = ?1")?;
    let mut rows = row.query([id.as_str()])?;
    let kept = match rows.next()? {
        Some(row) => kept(row)?.map(|kept| Kept { record: record.clone(), ..kept }),
        None => None,
    };
    Ok(Some(kept.unwrap_or(Kept { record, unread: false, away: false })))
}

fn line(message: &ChatMessage) -> Line {
    Line { sender: message.sender.clone(), text: message.text.clone(), at: message.time }
}

impl MessageSource for NotificationSource {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn title(&self) -> Said {
        said::inbox_kind_notification()
    }

    fn phones(&self, tx: &Transaction<'_>) -> Result<Phones, DbError> {
        phones::store::named(tx, store::counts(tx)?.into_keys())
    }

    fn page(&self, tx: &Transaction<'_>, wanted: &Wanted, most: usize) -> Result<Vec<Item>, DbError> {
        let around = Around::of(tx)?;
        let all = newest(tx, wanted, most)?.into_iter().chain(only_queued(tx, wanted)?);
        Ok(all.map(|kept| around.item(&kept)).collect())
    }

    fn unread(&self, tx: &Transaction<'_>, now: Timestamp, most: usize) -> Result<usize, DbError> {
        let sql = "SELECT count(*) FROM (
                       SELECT 1 FROM notifications WHERE posted_at BETWEEN ?1 AND ?2
                       AND put_away = 0 AND opened = 0 AND closed = 0 LIMIT ?3)";
        let ((from, to), most) = (store::alive(now), i64::try_from(most).unwrap_or(i64::MAX));
        let count: u32 = tx.prepare_cached(sql)?.query_row([from, to, most], |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    fn message(&self, tx: &Transaction<'_>, id: &str, now: Timestamp) -> Result<Option<Message>, DbError> {
        let around = Around::of(tx)?;
        let Some(kept) = find(tx, id, now)? else { return Ok(None) };
        let record = &kept.record;
        // The last message of a conversation is its text as well, as a rule.
        let last = record.messages.last().map(|last| &last.text);
        let text = if last == Some(&record.text) { Untrusted::default() } else { record.text.clone() };
        Ok(Some(Message {
            item: around.item(&kept),
            text,
            is_beginning: false,
            said: record.messages.iter().map(line).collect(),
            below: record.subtext.clone(),
            hidden: record.sensitive,
        }))
    }

    fn quote(
        &self,
        tx: &Transaction<'_>,
        id: &str,
        now: Timestamp,
        zone: &TimeZone,
    ) -> Result<Option<Quote>, DbError> {
        let (around, values) = (Around::of(tx)?, settings::load(tx)?);
        let Some(Kept { record, .. }) = find(tx, id, now)? else { return Ok(None) };
        let whole = Whole::of(&record, &around.phones, zone, Eyes::of_model(&values), room::room(&values));
        let mut object = serde_json::to_value(whole).unwrap_or_default();
        object["message"] = KIND.into();
        object["untrusted"] = true.into();
        Ok(Some(Quote { json: escaped(&object.to_string()), identity: record.id.identity() }))
    }

    fn mark(&self, tx: &Transaction<'_>, id: &str, mark: Mark) -> Result<(), DbError> {
        let id = NotificationId::new(id);
        match mark {
            Mark::Opened => {
                tx.execute("UPDATE notifications SET opened = 1 WHERE id = ?1", [id.as_str()])?;
                Ok(())
            }
            Mark::Away => {
                let waiting: Option<Waiting<Record>> = pending::find(tx, QUEUE, id.as_str())?;
                pending::forget(tx, QUEUE, &waiting.map(|one| one.seq).into_iter().collect::<Vec<_>>())?;
                store::put_away(tx, &id, true)
            }
            Mark::Back => store::put_away(tx, &id, false),
        }
    }

    fn reply(
        &self,
        tx: &Transaction<'_>,
        id: &str,
        body: String,
        now: Timestamp,
    ) -> Result<NewDraft, NoReply> {
        replying::own(tx, &NotificationId::new(id), body, now)
    }

    fn clear(&self, tx: &Transaction<'_>, id: &str) -> Result<Option<Clearing>, DbError> {
        let id = NotificationId::new(id);
        let is_shown = store::is_shown(tx, &id)?;
        let platform = self.platforms.get(id.source()).filter(|_| is_shown);
        Ok(platform.map(|platform| -> Clearing { Box::pin(async move { platform.dismiss(&id).await }) }))
    }
}

#[cfg(test)]
mod tests;
