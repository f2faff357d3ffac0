//! Stores the notifications, and for each source the state of its listener and the gaps in which nothing was received.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kai_words::{Said, said};
use rusqlite::{OptionalExtension, Transaction, params};
use serde::{Deserialize, Serialize};

use super::QUEUE;
use super::filter::{self, Rules};
use super::port::Heard;
use super::record::{LIFE, NotificationId, Post, Record, plausible};
use super::repeats::{self, RepeatsSms};
use super::view::PhoneNames;
use crate::access::Access;
use crate::db::{DbError, json};
use crate::pending::{self, Again, Origin, Waiting};
use crate::phones;
use crate::settings::{self, NOTIFICATIONS_ENABLED, NOTIFICATIONS_IGNORED, Values};
use crate::source::SourceId;
use crate::untrusted::Untrusted;

/// The most records kept per app of a source, so that a chatty app does not crowd out the rest.
pub const PER_APP: u32 = 50;
/// The most records kept per source.
pub const ALL: u32 = 2_000;
/// The most gaps kept per source. A phone at the edge of the Wi-Fi comes and goes.
pub const GAPS: u32 = 100;

/// The state of a source's listener.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sync {
    pub listening: bool,
    /// When the listener was last known to be connected. All times are epoch milliseconds.
    pub alive_at: Option<i64>,
    pub last_seen_id: Option<NotificationId>,
    pub last_sync_at: Option<i64>,
    pub last_attempt_at: Option<i64>,
    #[serde(with = "kai_words::stored")]
    pub last_error: Option<Said>,
    /// Since when the feature waits for the platform to grant access, after the user turned it on.
    pub waiting_since: Option<i64>,
    /// What the user has to do, if they turned the feature on and access is missing.
    #[serde(with = "kai_words::stored")]
    pub hint: Option<Said>,
}

/// A period in which nothing was received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    pub began: i64,
    /// `None` while it lasts.
    pub ended: Option<i64>,
    pub why: Said,
}

pub fn rules(values: &Values) -> Rules {
    let ignored = values.of(&NOTIFICATIONS_IGNORED);
    let ignored = ignored.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    Rules { on: values.on(&NOTIFICATIONS_ENABLED), ignored }
}

/// Whether Kai may read a source while the feature is on; `None` for a phone that is not paired.
pub(super) fn allowed(tx: &Transaction<'_>, source: SourceId) -> Result<Option<bool>, DbError> {
    if source.is_here() {
        return Ok(Some(true));
    }
    Ok(phones::store::get(tx, source)?.map(|phone| phone.switches.notifications))
}

/// Whether a source is to be listened to: the feature is on, and so is the switch of the phone if it is a paired one.
pub fn is_on(tx: &Transaction<'_>, source: SourceId) -> Result<bool, DbError> {
    Ok(settings::load(tx)?.on(&NOTIFICATIONS_ENABLED) && allowed(tx, source)? == Some(true))
}

/// The paired phones whose notifications Kai may read while the feature is on.
pub fn allowed_phones(tx: &Transaction<'_>) -> Result<BTreeSet<SourceId>, DbError> {
    let phones = phones::store::all(tx)?.into_iter();
    Ok(phones.filter(|phone| phone.switches.notifications).map(|phone| phone.source).collect())
}

/// What the phones are called, if notifications come from more than one source.
pub fn phone_names(tx: &Transaction<'_>) -> Result<PhoneNames, DbError> {
    let heard = syncs(tx)?.into_iter().filter(|(_, sync)| sync.last_attempt_at.is_some());
    let sources: BTreeSet<SourceId> = heard.map(|(source, _)| source).chain(allowed_phones(tx)?).collect();
    if sources.len() < 2 {
        return Ok(PhoneNames::default());
    }
    let phones = phones::store::all(tx)?.into_iter();
    Ok(PhoneNames(phones.map(|phone| (phone.source, Untrusted::new(phone.name))).collect()))
}

/// Stores a source's events in the given order, then trims its records to their limits. What comes from a phone that is
/// no longer paired is ignored.
pub fn hear<'a>(
    tx: &Transaction<'_>,
    source: SourceId,
    heard: impl IntoIterator<Item = (Timestamp, &'a Heard)>,
    repeats_sms: &RepeatsSms,
) -> Result<(), DbError> {
    let Some(allowed) = allowed(tx, source)? else { return Ok(()) };
    let rules = rules(&settings::load(tx)?);
    let rules = Rules { on: rules.on && allowed, ..rules };
    let is_wanted = |post: &Post| filter::dropped(post, &rules).is_none();
    let before = sync(tx, source)?;
    let mut sync = before.clone();
    let mut apps = BTreeSet::new();
    for (at, heard) in heard {
        match heard {
            Heard::Bound { standing } => {
                bound(tx, source, &mut sync, at)?;
                for post in standing.iter().filter(|post| is_wanted(post)) {
                    apps.extend(stand(tx, source, post, at)?);
                }
            }
            Heard::Standing(post) if is_wanted(post) => apps.extend(stand(tx, source, post, at)?),
            Heard::Posted(post) if is_wanted(post) => {
                apps.insert(keep(tx, source, post, at, repeats_sms)?);
                sync.last_seen_id = Some(post.id.of(source));
                sync.last_sync_at = Some(at.as_millisecond());
            }
            Heard::Standing(_) | Heard::Posted(_) => {}
            Heard::Closed(id) => close(tx, &id.of(source))?,
            Heard::Unbound(access) => unbound(tx, source, &mut sync, access, at)?,
        }
    }
    trim(tx, source, &apps)?;
    if sync == before { Ok(()) } else { set_sync(tx, source, &sync) }
}

/// Stores a notification that was posted just now, and queues it if it is new or changed, unless it only repeats an
/// SMS. Returns its package name.
fn keep(
    tx: &Transaction<'_>,
    source: SourceId,
    post: &Post,
    at: Timestamp,
    repeats_sms: &RepeatsSms,
) -> Result<String, DbError> {
    let new = made(source, post, at);
    let known = row(tx, &new.id)?;
    // A notification that was closed and is posted again is a new event, even with the same content.
    let changed = known.as_ref().is_none_or(|(known, closed)| *closed || !known.same_content(&new));
    let record = match known {
        Some((known, _)) if changed => Record { revision: known.revision.saturating_add(1), ..new },
        Some((known, _)) => return answerable(tx, known, new.reply_id),
        None => new,
    };
    put(tx, &record)?;
    if repeats_sms(tx, source, &record)? {
        put_away(tx, &record.id, true)?;
    } else {
        let origin = Origin { identity: record.id.as_str(), phone: source, source: app(&record) };
        pending::push(tx, QUEUE, origin, &record, Again::Renew)?;
    }
    Ok(record.package_name)
}

/// Stores a notification that was on the screen before Kai listened. It can be found but is not queued, because it is
/// not new. Returns its package name, or `None` if it is too old to keep.
fn stand(
    tx: &Transaction<'_>,
    source: SourceId,
    post: &Post,
    at: Timestamp,
) -> Result<Option<String>, DbError> {
    if post.posted_at.is_some_and(|posted| at.duration_since(posted) > LIFE) {
        return Ok(None);
    }
    let new = made(source, post, at);
    let record = match row(tx, &new.id)? {
        Some((known, false)) if known.same_content(&new) => {
            return answerable(tx, known, new.reply_id).map(Some);
        }
        Some((known, _)) => Record { revision: known.revision.saturating_add(1), ..new },
        None => new,
    };
    put(tx, &record)?;
    Ok(Some(record.package_name))
}

fn made(source: SourceId, post: &Post, at: Timestamp) -> Record {
    let posted_at = plausible(post.posted_at, at).as_millisecond();
    Record { posted_at, ..Record::of(source, post, at) }
}

/// Stores the newest way to answer a notification that is otherwise as it was. Returns its package name.
fn answerable(tx: &Transaction<'_>, known: Record, reply_id: Option<String>) -> Result<String, DbError> {
    if known.reply_id != reply_id {
        put(tx, &Record { reply_id, ..known.clone() })?;
    }
    Ok(known.package_name)
}

/// Takes the notifications that only repeat one of these SMS of the same phone, given by date and text, from the queue;
/// they stay stored. Belongs into the transaction that queues the SMS.
pub fn sms_came(
    tx: &Transaction<'_>,
    source: SourceId,
    came: &[(Timestamp, Untrusted)],
) -> Result<(), DbError> {
    let waiting: Vec<Waiting<Record>> = pending::waiting(tx, QUEUE)?;
    let repeats = |record: &Record| {
        let one =
            |(date, body): &(Timestamp, Untrusted)| repeats::repeats(record, date.as_millisecond(), body);
        record.id.source() == source && came.iter().any(one)
    };
    let repeating: Vec<&Waiting<Record>> = waiting.iter().filter(|it| repeats(&it.entry)).collect();
    repeating.iter().try_for_each(|it| put_away(tx, &it.entry.id, true))?;
    let seqs: Vec<i64> = repeating.iter().map(|it| it.seq).collect();
    pending::forget(tx, QUEUE, &seqs).map(drop)
}

/// The name under which the queue counts a drop.
fn app(record: &Record) -> &str {
    record.app_label.as_written()
}

fn row(tx: &Transaction<'_>, id: &NotificationId) -> Result<Option<(Record, bool)>, DbError> {
    let mut row = tx.prepare_cached("SELECT record, closed FROM notifications WHERE id = ?1")?;
    let found = row.query_row([id.as_str()], |row| Ok((row.get::<_, String>(0)?, row.get(1)?))).optional()?;
    Ok(found.and_then(|(json, closed)| Some((serde_json::from_str(&json).ok()?, closed))))
}

fn put(tx: &Transaction<'_>, record: &Record) -> Result<(), DbError> {
    let sql = "INSERT INTO notifications (id, source, package_name, posted_at, closed, record)
               VALUES (?1, ?2, ?3, ?4, 0, ?5)
               ON CONFLICT (id) DO UPDATE SET package_name = ?3, posted_at = ?4, closed = 0, record = ?5,
                   opened = opened AND json_extract(record, '$.revision') = json_extract(?5, '$.revision'),
                   put_away = put_away AND json_extract(record, '$.revision') = json_extract(?5, '$.revision')";
    let (id, source) = (record.id.as_str(), record.id.source());
    let values = params![id, source, record.package_name, record.posted_at, json(record)?];
    tx.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

fn close(tx: &Transaction<'_>, id: &NotificationId) -> Result<(), DbError> {
    tx.prepare_cached("UPDATE notifications SET closed = 1 WHERE id = ?1")?.execute([id.as_str()])?;
    Ok(())
}

/// Takes a notification out of the inbox, or puts it back. Out of it, it counts as opened.
pub(super) fn put_away(tx: &Transaction<'_>, id: &NotificationId, away: bool) -> Result<(), DbError> {
    tx.prepare_cached("UPDATE notifications SET put_away = ?2, opened = max(opened, ?2) WHERE id = ?1")?
        .execute(params![id.as_str(), away])?;
    Ok(())
}

/// Trims the records of a source in which those of these apps changed.
fn trim(tx: &Transaction<'_>, source: SourceId, apps: &BTreeSet<String>) -> Result<(), DbError> {
    let sql = "DELETE FROM notifications WHERE seq IN (SELECT seq FROM notifications
               WHERE source = ?1 AND package_name = ?2 ORDER BY posted_at DESC, seq DESC LIMIT -1 OFFSET ?3)";
    for app in apps {
        tx.prepare_cached(sql)?.execute(params![source, app, PER_APP])?;
    }
    if apps.is_empty() {
        return Ok(());
    }
    let sql = "DELETE FROM notifications WHERE seq IN (SELECT seq FROM notifications WHERE source = ?1
               ORDER BY posted_at DESC, seq DESC LIMIT -1 OFFSET ?2)";
    tx.prepare_cached(sql)?.execute(params![source, ALL])?;
    Ok(())
}

/// Deletes records and gaps older than a day, what no source has any more, and records dated more than a day ahead because the clock was wrong.
pub fn sweep(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    let (from, to) = alive(now);
    tx.prepare_cached("DELETE FROM notifications WHERE posted_at < ?1 OR posted_at > ?2")?
        .execute([from, to])?;
    tx.prepare_cached("DELETE FROM notification_gaps WHERE ended < ?1")?.execute([from])?;
    forget_unpaired(tx)
}

/// Deletes the state and the gaps of phones that are no longer paired. Their records, which the user may have wanted to
/// keep, get as old as any.
fn forget_unpaired(tx: &Transaction<'_>) -> Result<(), DbError> {
    let unpaired = "source <> ?1 AND source NOT IN (SELECT source FROM phones)";
    for table in ["notification_sync", "notification_gaps"] {
        tx.prepare_cached(&format!("DELETE FROM {table} WHERE {unpaired}"))?.execute([SourceId::HERE])?;
    }
    Ok(())
}

/// Prepares the state when the daemon starts, before it listens. Where the state still says "listening", the last daemon
/// was killed, so a gap is opened from when it was last known to listen.
pub fn begin(tx: &Transaction<'_>) -> Result<(), DbError> {
    for (source, sync) in syncs(tx)?.into_iter().filter(|(_, sync)| sync.listening) {
        if let Some(began) = last_alive(&sync) {
            open_gap(tx, source, began, &said::access_not_running())?;
        }
        set_sync(tx, source, &Sync { listening: false, ..sync })?;
    }
    Ok(())
}

fn last_alive(sync: &Sync) -> Option<i64> {
    sync.alive_at.map(|alive| alive.max(sync.last_sync_at.unwrap_or(alive)))
}

fn open_gap(tx: &Transaction<'_>, source: SourceId, began: i64, why: &Said) -> Result<(), DbError> {
    let sql = "INSERT INTO notification_gaps (source, began, why)
               SELECT ?1, ?2, ?3
               WHERE NOT EXISTS (SELECT 1 FROM notification_gaps WHERE source = ?1 AND ended IS NULL)";
    tx.execute(sql, params![source, began, why.stored()])?;
    let sql =
        "DELETE FROM notification_gaps WHERE rowid IN (SELECT rowid FROM notification_gaps WHERE source = ?1
               ORDER BY rowid DESC LIMIT -1 OFFSET ?2)";
    tx.execute(sql, params![source, GAPS])?;
    Ok(())
}

/// Ends the gap that lasts. If the clock went back, the gap gets shorter but never ends before it began.
fn end_gap(tx: &Transaction<'_>, source: SourceId, now: Timestamp) -> Result<(), DbError> {
    let sql = "UPDATE notification_gaps SET ended = max(began, ?2) WHERE source = ?1 AND ended IS NULL";
    tx.execute(sql, params![source, now.as_millisecond()])?;
    Ok(())
}

/// The daemon's tick: deletes old rows, and records which listeners are still connected.
pub fn tick(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    sweep(tx, now)?;
    for (source, sync) in syncs(tx)?.into_iter().filter(|(_, sync)| sync.listening) {
        set_sync(tx, source, &Sync { alive_at: Some(now.as_millisecond()), ..sync })?;
    }
    Ok(())
}

/// The range of post times, in epoch milliseconds, of the records that are shown.
pub(super) fn alive(now: Timestamp) -> (i64, i64) {
    let (now, life) = (now.as_millisecond(), LIFE.as_secs() * 1_000);
    (now.saturating_sub(life), now.saturating_add(life))
}

fn bound(tx: &Transaction<'_>, source: SourceId, sync: &mut Sync, at: Timestamp) -> Result<(), DbError> {
    sweep(tx, at)?;
    if !source.is_here() {
        forget_reply_ids(tx, source)?;
    }
    let now = at.as_millisecond();
    if let (true, Some(began)) = (sync.listening, last_alive(sync)) {
        // The previous listener was killed and could not report that it stopped.
        open_gap(tx, source, began, &said::access_not_running())?;
    }
    end_gap(tx, source, at)?;
    sync.listening = true;
    sync.alive_at = Some(now);
    sync.last_attempt_at = Some(now);
    sync.last_sync_at = Some(now);
    sync.last_error = None;
    Ok(())
}

/// Forgets by which ids a phone's notifications can be answered. A phone that gets an id that no longer works says
/// nothing. What it still shows after it connected, it tells with a new id, some of it late; so what is missing may still
/// be there, and is not closed.
fn forget_reply_ids(tx: &Transaction<'_>, source: SourceId) -> Result<(), DbError> {
    let sql = "UPDATE notifications SET record = json_remove(record, '$.reply_id')
               WHERE source = ?1 AND json_extract(record, '$.reply_id') IS NOT NULL";
    tx.prepare_cached(sql)?.execute([source])?;
    Ok(())
}

fn unbound(
    tx: &Transaction<'_>,
    source: SourceId,
    sync: &mut Sync,
    access: &Access,
    at: Timestamp,
) -> Result<(), DbError> {
    let why = match access {
        Access::Granted => said::access_not_running(),
        Access::Denied(what) | Access::Silent(what) => what.clone(),
    };
    sync.last_attempt_at = Some(at.as_millisecond());
    sync.listening = false;
    sync.last_error = (*access != Access::Granted).then(|| why.clone());
    open_gap(tx, source, at.as_millisecond(), &why)
}

/// Records that the user turned a source off: ends its open gap, since not listening is intended from now on.
pub fn turned_off(tx: &Transaction<'_>, source: SourceId, now: Timestamp) -> Result<(), DbError> {
    sweep(tx, now)?;
    end_gap(tx, source, now)?;
    let sync = sync(tx, source)?;
    set_sync(tx, source, &Sync { listening: false, alive_at: None, last_error: None, ..sync })
}

/// Records that the user turned the feature off, and with it every source.
pub fn all_turned_off(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    let sources = syncs(tx)?.into_keys().chain([SourceId::HERE]);
    sources.collect::<BTreeSet<_>>().into_iter().try_for_each(|source| turned_off(tx, source, now))
}

/// Deletes everything stored about notifications: the records, the queue, the drop counts, the gaps and the listeners'
/// states. Returns how many were stored and how many were queued. Call it only while the feature is off.
pub fn forget_all(tx: &Transaction<'_>) -> Result<(usize, usize), DbError> {
    let waited = pending::clear(tx, QUEUE)?;
    let kept = tx.execute("DELETE FROM notifications", [])?;
    tx.execute("DELETE FROM notification_gaps", [])?;
    tx.execute("DELETE FROM notification_sync", [])?;
    Ok((kept, waited))
}

/// Deletes everything stored about the notifications of one phone. Returns how many were stored and how many were
/// queued. Belongs into the transaction that unpairs the phone, so that nothing of it can come afterwards.
pub fn forget_phone(tx: &Transaction<'_>, source: SourceId) -> Result<(usize, usize), DbError> {
    let waited = pending::clear_phone(tx, QUEUE, source)?;
    let kept = tx.execute("DELETE FROM notifications WHERE source = ?1", [source])?;
    tx.execute("DELETE FROM notification_gaps WHERE source = ?1", [source])?;
    tx.execute("DELETE FROM notification_sync WHERE source = ?1", [source])?;
    Ok((kept, waited))
}

/// The state of a source's listener. A state that this version cannot read counts as empty.
pub fn sync(tx: &Transaction<'_>, source: SourceId) -> Result<Sync, DbError> {
    let mut row = tx.prepare_cached("SELECT state FROM notification_sync WHERE source = ?1")?;
    let json: Option<String> = row.query_row([source], |row| row.get(0)).optional()?;
    Ok(json.map(|json| understood(&json)).unwrap_or_default())
}

/// Whether a source's listener connected once and is not connected now, so that nobody knows what the source shows.
pub(super) fn is_away(tx: &Transaction<'_>, source: SourceId) -> Result<bool, DbError> {
    let sync = sync(tx, source)?;
    Ok(sync.last_attempt_at.is_some() && !sync.listening)
}

/// The states of all sources that have one.
pub fn syncs(tx: &Transaction<'_>) -> Result<BTreeMap<SourceId, Sync>, DbError> {
    let mut rows = tx.prepare_cached("SELECT source, state FROM notification_sync")?;
    let rows = rows.query_map([], |row| Ok((row.get(0)?, understood(&row.get::<_, String>(1)?))))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn understood(state: &str) -> Sync {
    serde_json::from_str(state).unwrap_or_default()
}

pub fn set_sync(tx: &Transaction<'_>, source: SourceId, sync: &Sync) -> Result<(), DbError> {
    let sql = "INSERT INTO notification_sync (source, state) VALUES (?1, ?2)
               ON CONFLICT (source) DO UPDATE SET state = ?2";
    tx.prepare_cached(sql)?.execute(params![source, json(sync)?])?;
    Ok(())
}

/// A source's gaps of the last day, oldest first.
pub fn gaps(tx: &Transaction<'_>, source: SourceId, now: Timestamp) -> Result<Vec<Gap>, DbError> {
    let sql = "SELECT began, ended, why FROM notification_gaps
               WHERE source = ?1 AND (ended IS NULL OR ended >= ?2) ORDER BY began, rowid";
    let mut rows = tx.prepare_cached(sql)?;
    let rows = rows.query_map(params![source, alive(now).0], |row| {
        let why = Said::from_stored(&row.get::<_, String>(2)?);
        Ok(Gap { began: row.get(0)?, ended: row.get(1)?, why })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The notification with that id: from the records, or from the queue if the record was already deleted.
pub fn find(tx: &Transaction<'_>, id: &NotificationId, now: Timestamp) -> Result<Option<Record>, DbError> {
    let (from, to) = alive(now);
    let kept = row(tx, id)?.map(|(record, _)| record);
    if let Some(record) = kept.filter(|record| (from..=to).contains(&record.posted_at)) {
        return Ok(Some(record));
    }
    Ok(pending::find(tx, QUEUE, id.as_str())?.map(|waiting| waiting.entry))
}

/// Whether the notification is stored but no longer on the screen.
pub fn is_closed(tx: &Transaction<'_>, id: &NotificationId) -> Result<bool, DbError> {
    Ok(row(tx, id)?.is_some_and(|(_, closed)| closed))
}

/// Whether the notification is stored and, as far as Kai knows, still on the screen.
pub fn is_shown(tx: &Transaction<'_>, id: &NotificationId) -> Result<bool, DbError> {
    Ok(row(tx, id)?.is_some_and(|(_, closed)| !closed))
}

/// The notification as it is stored, if it is still on the screen as far as Kai knows. Unlike [`find`], it does not take
/// the one in the queue, whose reply id may be an old one.
pub(super) fn on_screen(
    tx: &Transaction<'_>,
    id: &NotificationId,
    now: Timestamp,
) -> Result<Option<Record>, DbError> {
    let (from, to) = alive(now);
    let shown = row(tx, id)?.filter(|(_, closed)| !closed).map(|(record, _)| record);
    Ok(shown.filter(|record| (from..=to).contains(&record.posted_at)))
}

/// The records of the last day that `wanted` accepts, newest first, at most `limit`.
pub fn newest(
    tx: &Transaction<'_>,
    now: Timestamp,
    limit: usize,
    wanted: impl Fn(&Record) -> bool,
) -> Result<Vec<Record>, DbError> {
    let sql = "SELECT record FROM notifications WHERE posted_at BETWEEN ?1 AND ?2
               ORDER BY posted_at DESC, seq DESC";
    let mut rows = tx.prepare_cached(sql)?;
    let mut rows = rows.query(<[i64; 2]>::from(alive(now)))?;
    let mut found = vec![];
    while let Some(row) = rows.next()?
        && found.len() < limit
    {
        let record: Option<Record> = serde_json::from_str(row.get_ref(0)?.as_str().unwrap_or_default()).ok();
        found.extend(record.filter(&wanted));
    }
    Ok(found)
}

pub fn count(tx: &Transaction<'_>) -> Result<u32, DbError> {
    Ok(tx.query_row("SELECT count(*) FROM notifications", [], |row| row.get(0))?)
}

/// How many records each source has, for those that have any.
pub fn counts(tx: &Transaction<'_>) -> Result<BTreeMap<SourceId, u32>, DbError> {
    let mut rows = tx.prepare_cached("SELECT source, count(*) FROM notifications GROUP BY source")?;
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
