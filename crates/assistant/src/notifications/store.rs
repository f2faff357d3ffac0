//! Stores the notifications, the state of the listener, and the gaps in which nothing was received.

use std::collections::BTreeSet;

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Transaction, params};
use serde::{Deserialize, Serialize};

use super::QUEUE;
use super::filter::{self, Rules};
use super::port::Heard;
use super::record::{LIFE, NotificationId, Post, Record, plausible};
use crate::access::Access;
use crate::db::{DbError, json};
use crate::pending::{self, Again, Origin};
use crate::settings::{self, NOTIFICATIONS_ENABLED, NOTIFICATIONS_IGNORED, Values};
use crate::source::SourceId;

/// The most records kept per app, so that a chatty app does not crowd out the rest.
pub const PER_APP: u32 = 50;
/// The most records kept in total.
pub const ALL: u32 = 2_000;

/// The state of the listener.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sync {
    pub listening: bool,
    /// When the listener was last known to be connected. All times are epoch milliseconds.
    pub alive_at: Option<i64>,
    pub last_seen_id: Option<NotificationId>,
    pub last_sync_at: Option<i64>,
    pub last_attempt_at: Option<i64>,
    pub last_error: Option<String>,
    /// Since when the feature waits for the platform to grant access, after the user turned it on.
    pub waiting_since: Option<i64>,
    /// What the user has to do, if they turned the feature on and access is missing.
    pub hint: Option<String>,
}

/// A period in which nothing was received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    pub began: i64,
    /// `None` while it lasts.
    pub ended: Option<i64>,
    pub why: String,
}

/// The reason for a gap in which Kai was not running.
const WAS_AWAY: &str = "Kai was not running";

pub fn rules(values: &Values) -> Rules {
    let ignored = values.of(&NOTIFICATIONS_IGNORED);
    let ignored = ignored.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    Rules { on: values.on(&NOTIFICATIONS_ENABLED), ignored }
}

/// Stores events in the given order, then trims the records to their limits.
pub fn hear<'a>(
    tx: &Transaction<'_>,
    heard: impl IntoIterator<Item = (Timestamp, &'a Heard)>,
) -> Result<(), DbError> {
    let rules = rules(&settings::load(tx)?);
    let before = sync(tx)?;
    let mut sync = before.clone();
    let mut apps = BTreeSet::new();
    for (at, heard) in heard {
        match heard {
            Heard::Bound { standing } => {
                bound(tx, &mut sync, at)?;
                for post in standing.iter().filter(|post| filter::dropped(post, &rules).is_none()) {
                    apps.extend(stand(tx, post, at)?);
                }
            }
            Heard::Posted(post) if filter::dropped(post, &rules).is_none() => {
                apps.insert(keep(tx, post, at)?);
                sync.last_seen_id = Some(post.id.clone());
                sync.last_sync_at = Some(at.as_millisecond());
            }
            Heard::Posted(_) => {}
            Heard::Closed(id) => close(tx, id)?,
            Heard::Unbound(access) => unbound(tx, &mut sync, access, at)?,
        }
    }
    for app in &apps {
        trim_app(tx, app)?;
    }
    if !apps.is_empty() {
        trim_all(tx)?;
    }
    if sync == before { Ok(()) } else { set_sync(tx, &sync) }
}

/// Stores a notification that was posted just now, and queues it if it is new or changed. Returns its package name.
fn keep(tx: &Transaction<'_>, post: &Post, at: Timestamp) -> Result<String, DbError> {
    let new = Record { posted_at: plausible(post.posted_at, at).as_millisecond(), ..Record::of(post, at) };
    let before = row(tx, &new.id)?;
    let reply_id = before.as_ref().and_then(|(known, _)| known.reply_id.clone());
    let (record, changed) = match before {
        // A notification that was closed and is posted again is a new event, even with the same content.
        Some((known, closed)) => {
            let changed = closed || !known.same_content(&new);
            let revision = if changed { known.revision.saturating_add(1) } else { known.revision };
            let posted_at = if changed { new.posted_at } else { known.posted_at };
            (Record { revision, posted_at, ..new }, changed)
        }
        None => (new, true),
    };
    if changed || record.reply_id != reply_id {
        put(tx, &record)?;
    }
    if changed {
        let origin = Origin { identity: record.id.as_str(), phone: SourceId::HERE, source: source(&record) };
        pending::push(tx, QUEUE, origin, &record, Again::Renew)?;
    }
    Ok(record.package_name)
}

/// Stores a notification that was on the screen before Kai listened. It can be found but is not queued, because it is
/// not new. Returns its package name, or `None` if it is too old to keep.
fn stand(tx: &Transaction<'_>, post: &Post, at: Timestamp) -> Result<Option<String>, DbError> {
    if post.posted_at.is_some_and(|posted| at.duration_since(posted) > LIFE) {
        return Ok(None);
    }
    let new = Record { posted_at: plausible(post.posted_at, at).as_millisecond(), ..Record::of(post, at) };
    match row(tx, &new.id)? {
        // The content is not new, but only its last reply id is sure to work.
        Some((known, false)) if known.same_content(&new) => {
            put(tx, &Record { reply_id: new.reply_id.clone(), ..known })?;
        }
        Some((known, _)) => put(tx, &Record { revision: known.revision.saturating_add(1), ..new.clone() })?,
        None => put(tx, &new)?,
    }
    Ok(Some(new.package_name))
}

/// The name under which the queue counts a drop.
fn source(record: &Record) -> &str {
    record.app_label.as_written()
}

fn row(tx: &Transaction<'_>, id: &NotificationId) -> Result<Option<(Record, bool)>, DbError> {
    let mut row = tx.prepare_cached("SELECT record, closed FROM notifications WHERE id = ?1")?;
    let found = row.query_row([id.as_str()], |row| Ok((row.get::<_, String>(0)?, row.get(1)?))).optional()?;
    Ok(found.and_then(|(json, closed)| Some((serde_json::from_str(&json).ok()?, closed))))
}

fn put(tx: &Transaction<'_>, record: &Record) -> Result<(), DbError> {
    let sql =
        "INSERT INTO notifications (id, package_name, posted_at, closed, record) VALUES (?1, ?2, ?3, 0, ?4)
               ON CONFLICT (id) DO UPDATE SET package_name = ?2, posted_at = ?3, closed = 0, record = ?4";
    let values = params![record.id.as_str(), record.package_name, record.posted_at, json(record)?];
    tx.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

fn close(tx: &Transaction<'_>, id: &NotificationId) -> Result<(), DbError> {
    tx.prepare_cached("UPDATE notifications SET closed = 1 WHERE id = ?1")?.execute([id.as_str()])?;
    Ok(())
}

fn trim_app(tx: &Transaction<'_>, app: &str) -> Result<(), DbError> {
    let sql = "DELETE FROM notifications WHERE seq IN (SELECT seq FROM notifications WHERE package_name = ?1
               ORDER BY posted_at DESC, seq DESC LIMIT -1 OFFSET ?2)";
    tx.prepare_cached(sql)?.execute(params![app, PER_APP])?;
    Ok(())
}

fn trim_all(tx: &Transaction<'_>) -> Result<(), DbError> {
    let sql = "DELETE FROM notifications WHERE seq IN (SELECT seq FROM notifications
               ORDER BY posted_at DESC, seq DESC LIMIT -1 OFFSET ?1)";
    tx.prepare_cached(sql)?.execute([ALL])?;
    Ok(())
}

/// Deletes records and gaps older than a day, and records dated more than a day ahead because the clock was wrong.
pub fn sweep(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    let (from, to) = alive(now);
    tx.prepare_cached("DELETE FROM notifications WHERE posted_at < ?1 OR posted_at > ?2")?
        .execute([from, to])?;
    tx.prepare_cached("DELETE FROM notification_gaps WHERE ended < ?1")?.execute([from])?;
    Ok(())
}

/// Prepares the state when the daemon starts, before it listens. If the state still says "listening", the last daemon
/// was killed, so a gap is opened from when it was last known to listen.
pub fn begin(tx: &Transaction<'_>) -> Result<(), DbError> {
    let sync = sync(tx)?;
    if !sync.listening {
        return Ok(());
    }
    if let Some(began) = last_alive(&sync) {
        open_gap(tx, began, WAS_AWAY)?;
    }
    set_sync(tx, &Sync { listening: false, ..sync })
}

fn last_alive(sync: &Sync) -> Option<i64> {
    sync.alive_at.map(|alive| alive.max(sync.last_sync_at.unwrap_or(alive)))
}

fn open_gap(tx: &Transaction<'_>, began: i64, why: &str) -> Result<(), DbError> {
    let sql = "INSERT INTO notification_gaps (began, why)
               SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM notification_gaps WHERE ended IS NULL)";
    tx.execute(sql, params![began, why])?;
    Ok(())
}

/// The daemon's tick: deletes old rows, and records that the listener is still connected.
pub fn tick(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    sweep(tx, now)?;
    let sync = sync(tx)?;
    if sync.listening {
        set_sync(tx, &Sync { alive_at: Some(now.as_millisecond()), ..sync })?;
    }
    Ok(())
}

/// The range of post times, in epoch milliseconds, of the records that are shown.
fn alive(now: Timestamp) -> (i64, i64) {
    let (now, life) = (now.as_millisecond(), LIFE.as_secs() * 1_000);
    (now.saturating_sub(life), now.saturating_add(life))
}

fn bound(tx: &Transaction<'_>, sync: &mut Sync, at: Timestamp) -> Result<(), DbError> {
    sweep(tx, at)?;
    let now = at.as_millisecond();
    if let (true, Some(began)) = (sync.listening, last_alive(sync)) {
        // The previous listener was killed and could not report that it stopped.
        open_gap(tx, began, WAS_AWAY)?;
    }
    // If the clock went back, the gap gets shorter but never ends before it began.
    tx.execute("UPDATE notification_gaps SET ended = max(began, ?1) WHERE ended IS NULL", [now])?;
    sync.listening = true;
    sync.alive_at = Some(now);
    sync.last_attempt_at = Some(now);
    sync.last_sync_at = Some(now);
    sync.last_error = None;
    Ok(())
}

fn unbound(tx: &Transaction<'_>, sync: &mut Sync, access: &Access, at: Timestamp) -> Result<(), DbError> {
    let why = match access {
        Access::Granted => WAS_AWAY.to_owned(),
        Access::Denied(what) | Access::Silent(what) => what.clone(),
    };
    sync.last_attempt_at = Some(at.as_millisecond());
    sync.listening = false;
    sync.last_error = (*access != Access::Granted).then(|| why.clone());
    open_gap(tx, at.as_millisecond(), &why)
}

/// Records that the user turned the feature off: ends any open gap, since not listening is intended from now on.
pub fn turned_off(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    sweep(tx, now)?;
    let ended = now.as_millisecond();
    tx.execute("UPDATE notification_gaps SET ended = max(began, ?1) WHERE ended IS NULL", [ended])?;
    let sync = sync(tx)?;
    set_sync(tx, &Sync { listening: false, alive_at: None, last_error: None, ..sync })
}

/// Deletes everything stored about notifications: the records, the queue, the drop counts, the gaps and the listener's
/// state. Returns how many were stored and how many were queued. Call it only while the feature is off.
pub fn forget_all(tx: &Transaction<'_>) -> Result<(usize, usize), DbError> {
    let waited = pending::clear(tx, QUEUE)?;
    let kept = tx.execute("DELETE FROM notifications", [])?;
    tx.execute("DELETE FROM notification_gaps", [])?;
    tx.execute("DELETE FROM notification_sync", [])?;
    Ok((kept, waited))
}

/// The state of the listener. A state that this version cannot read counts as empty.
pub fn sync(tx: &Transaction<'_>) -> Result<Sync, DbError> {
    let mut row = tx.prepare_cached("SELECT state FROM notification_sync")?;
    let json: Option<String> = row.query_row([], |row| row.get(0)).optional()?;
    Ok(json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
}

pub fn set_sync(tx: &Transaction<'_>, sync: &Sync) -> Result<(), DbError> {
    let sql = "INSERT INTO notification_sync (one, state) VALUES (1, ?1)
               ON CONFLICT (one) DO UPDATE SET state = ?1";
    tx.prepare_cached(sql)?.execute([json(sync)?])?;
    Ok(())
}

/// The gaps of the last day, oldest first.
pub fn gaps(tx: &Transaction<'_>, now: Timestamp) -> Result<Vec<Gap>, DbError> {
    let sql = "SELECT began, ended, why FROM notification_gaps
               WHERE ended IS NULL OR ended >= ?1 ORDER BY began, rowid";
    let mut rows = tx.prepare_cached(sql)?;
    let rows = rows.query_map([alive(now).0], |row| {
        Ok(Gap { began: row.get(0)?, ended: row.get(1)?, why: row.get(2)? })
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
