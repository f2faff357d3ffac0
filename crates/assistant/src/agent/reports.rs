//! Stores the reports of unattended runs in one conversation, the heartbeat's, where the user can ask about them.
//!
//! While a turn is answering in that conversation, new reports wait in a table of their own. They are added by the
//! transaction that ends the turn or, if the turn died, by whatever comes first: the next turn, the next report or the
//! next tick. So a report never ends up between a question and its answer.

use jiff::Timestamp;
use kai_llm::{Message, Usage};
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::conversation::{self, ConversationId};
use crate::db::{DbError, Migration};
use crate::lease;

pub(crate) const MIGRATION: Migration =
    Migration { name: "reports/1", sql: include_str!("../../migrations/reports.sql") };

pub(crate) const RAISED: Migration =
    Migration { name: "reports/raised", sql: include_str!("../../migrations/reports_raised.sql") };

/// A report of an unattended run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub said: String,
    /// The model's label and the token usage, if a model wrote it.
    pub spoken: Option<(String, Usage)>,
    pub at: Timestamp,
    /// The user is alerted to it: by the banner, and by a notification while no page is open.
    pub raises: bool,
}

/// How many reports the conversation keeps. The chat between the user and the model there does not count.
const KEPT: u32 = 50;
const TITLE: &str = "Heartbeat";

/// Stores a report. It is added to the conversation at once unless a turn is answering there right now.
pub fn keep(tx: &Transaction<'_>, report: &Report) -> Result<(), DbError> {
    let (by, usage) = report.spoken.clone().unzip();
    let usage = usage.unwrap_or_default();
    let tokens = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    tx.prepare_cached(
        "INSERT INTO reports_waiting (said, answered_by, tokens_in, tokens_out, at, raises)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        report.said,
        by,
        tokens(usage.input),
        tokens(usage.output),
        report.at.as_millisecond(),
        report.raises
    ])?;
    land(tx, report.at)
}

/// Adds the waiting reports to the conversation, unless a turn is answering there.
pub fn land(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    let waiting = waiting(tx)?;
    if waiting.is_empty() {
        return Ok(());
    }
    let (id, before) = conversation(tx, now)?;
    if lease::held(tx, &id.lease(), now)? {
        return Ok(());
    }
    for Report { said, spoken, at, raises } in waiting {
        let message = Message::Assistant { text: said, calls: vec![], signature: None };
        let spoken = spoken.as_ref().map(|(by, usage)| (by.as_str(), *usage));
        conversation::append(tx, id, &[message], spoken, at)?;
        conversation::mark_report(tx, id)?;
        if raises {
            let sql = "UPDATE conversations SET unseen = 1, unnotified = newest, raised = newest
                       FROM (SELECT max(id) AS newest FROM entries WHERE conversation = ?1) WHERE conversations.id = ?1";
            tx.execute(sql, [id.0])?;
        }
    }
    tx.execute("DELETE FROM reports_waiting", [])?;
    // A report that waited may be older than the newest message, so the time of the last update must not go back.
    tx.execute(
        "UPDATE conversations SET updated_at = max(updated_at, ?2) WHERE id = ?1",
        params![id.0, before],
    )?;
    trim(tx, id)
}

fn waiting(tx: &Transaction<'_>) -> Result<Vec<Report>, DbError> {
    let sql = "SELECT said, answered_by, tokens_in, tokens_out, at, raises FROM reports_waiting ORDER BY id";
    let mut rows = tx.prepare_cached(sql)?;
    let row = |row: &Row<'_>| {
        let tokens = |column| row.get::<_, i64>(column).map(|n| u64::try_from(n).unwrap_or_default());
        let usage = Usage { input: tokens(2)?, output: tokens(3)? };
        Ok(Report {
            said: row.get(0)?,
            spoken: row.get::<_, Option<String>>(1)?.map(|by| (by, usage)),
            at: Timestamp::from_millisecond(row.get(4)?).unwrap_or_default(),
            raises: row.get(5)?,
        })
    };
    Ok(rows.query_map([], row)?.collect::<rusqlite::Result<_>>()?)
}

/// The conversation of reports, created if necessary, and when it was last updated (0 if it is new).
fn conversation(tx: &Transaction<'_>, now: Timestamp) -> Result<(ConversationId, i64), DbError> {
    let there = "SELECT id, updated_at FROM conversations WHERE kind = 'heartbeat' ORDER BY id LIMIT 1";
    if let Some((id, at)) = tx.query_row(there, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()? {
        return Ok((ConversationId(id), at));
    }
    tx.execute(
        "INSERT INTO conversations (kind, title, created_at, updated_at) VALUES ('heartbeat', ?1, ?2, ?2)",
        params![TITLE, now.as_millisecond()],
    )?;
    Ok((ConversationId(tx.last_insert_rowid()), 0))
}

/// Deletes the oldest reports beyond [`KEPT`]. The user's questions and their answers stay.
fn trim(tx: &Transaction<'_>, id: ConversationId) -> Result<(), DbError> {
    let old = "DELETE FROM entries WHERE conversation = ?1 AND report = 1 AND id NOT IN
                   (SELECT id FROM entries WHERE conversation = ?1 AND report = 1 ORDER BY id DESC LIMIT ?2)";
    tx.execute(old, params![id.0, KEPT])?;
    Ok(())
}

/// The conversation with a report that the user has not seen, if there is one.
pub fn banner(tx: &Transaction<'_>) -> Result<Option<ConversationId>, DbError> {
    let sql = "SELECT id FROM conversations WHERE unseen = 1 ORDER BY id LIMIT 1";
    Ok(tx.query_row(sql, [], |row| row.get(0)).optional()?.map(ConversationId))
}

/// The text of the report that raised the banner last, if it is still there.
pub fn raised(tx: &Transaction<'_>) -> Result<Option<String>, DbError> {
    let sql = "SELECT message FROM entries
               WHERE id = (SELECT raised FROM conversations WHERE unseen = 1 ORDER BY id LIMIT 1)";
    Ok(tx.query_row(sql, [], |row| row.get(0)).optional()?.and_then(|message: String| said(&message)))
}

/// Marks all reports as seen.
pub fn lower(tx: &Transaction<'_>) -> Result<(), DbError> {
    tx.execute(
        "UPDATE conversations SET unseen = 0, unnotified = 0 WHERE unseen = 1 OR unnotified <> 0",
        [],
    )?;
    Ok(())
}

/// Returns the newest report that still needs a notification, and marks all as notified.
pub fn take_unnotified(tx: &Transaction<'_>) -> Result<Option<String>, DbError> {
    let sql = "SELECT message FROM entries WHERE id = (SELECT max(unnotified) FROM conversations)";
    let message: Option<String> = tx.query_row(sql, [], |row| row.get(0)).optional()?;
    tx.execute("UPDATE conversations SET unnotified = 0 WHERE unnotified <> 0", [])?;
    Ok(message.and_then(|message| said(&message)))
}

/// The entry of the report that [`take_unnotified`] would return.
pub fn unnotified(tx: &Transaction<'_>) -> Result<Option<i64>, DbError> {
    let newest: Option<i64> =
        tx.query_row("SELECT max(unnotified) FROM conversations", [], |row| row.get(0))?;
    Ok(newest.filter(|entry| *entry != 0))
}

/// Marks a report again as one that needs a notification, because nobody could be told of it. Not if the user has seen
/// the reports meanwhile, nor if a newer one was raised, which has a mark of its own.
pub fn put_back_unnotified(tx: &Transaction<'_>, entry: i64) -> Result<(), DbError> {
    let sql = "UPDATE conversations SET unnotified = ?1 WHERE raised = ?1 AND unseen = 1 AND unnotified = 0";
    tx.execute(sql, [entry])?;
    Ok(())
}

/// What a stored message of a model says.
fn said(message: &str) -> Option<String> {
    match serde_json::from_str(message) {
        Ok(Message::Assistant { text, .. }) => Some(text),
        Ok(Message::User { .. } | Message::Tool { .. }) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;

    /// A report that raises no alert does not replace the one that did as the text of the notification.
    #[test]
    fn the_notification_tells_of_the_report_that_raised_it() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let told = db.write_now(|tx| {
            for (said, raises) in [("Alice asks.", true), ("A task was cut off.", false)] {
                keep(tx, &Report { said: said.to_owned(), spoken: None, at: Timestamp::UNIX_EPOCH, raises })?;
            }
            let banner = raised(tx)?;
            let told = (take_unnotified(tx)?, take_unnotified(tx)?, banner, raised(tx)?);
            lower(tx)?;
            assert_eq!(raised(tx)?, None, "it was seen");
            Ok::<_, DbError>(told)
        });
        let alice = Some("Alice asks.".to_owned());
        assert_eq!(told.unwrap(), (alice.clone(), None, alice.clone(), alice));
    }

    /// A report of which nobody could be told needs a notification again, unless something newer has happened to it.
    #[test]
    fn a_mark_comes_back_only_if_nothing_has_changed() {
        let raise = |tx: &Transaction<'_>, said: &str| {
            keep(tx, &Report { said: said.to_owned(), spoken: None, at: Timestamp::UNIX_EPOCH, raises: true })
        };
        let quiet = Report {
            said: "A task was cut off.".to_owned(),
            spoken: None,
            at: Timestamp::UNIX_EPOCH,
            raises: false,
        };
        for (name, expected) in [
            ("nothing", Some("Alice asks.")),
            ("quiet", Some("Alice asks.")),
            ("seen", None),
            ("newer", Some("Bob asks.")),
            ("newer, and told", None),
        ] {
            let db = Db::in_memory(crate::MIGRATIONS).unwrap();
            let again = db.write_now(|tx| {
                assert_eq!(unnotified(tx)?, None);
                raise(tx, "Alice asks.")?;
                let entry = unnotified(tx)?.unwrap();
                take_unnotified(tx)?;
                match name {
                    "nothing" => {}
                    "quiet" => keep(tx, &quiet)?,
                    "seen" => lower(tx)?,
                    _ => raise(tx, "Bob asks.")?,
                }
                if name == "newer, and told" {
                    take_unnotified(tx)?;
                }
                put_back_unnotified(tx, entry)?;
                let again = take_unnotified(tx)?;
                assert_eq!(take_unnotified(tx)?, None, "{name}");
                Ok::<_, DbError>(again)
            });
            assert_eq!(again.unwrap().as_deref(), expected, "{name}");
        }
    }

    /// In homes of older versions, the migration finds the reports by their position and carries the banner over.
    #[test]
    fn what_an_older_version_reported_is_known_as_a_report() {
        let new = |migration: &&Migration| ["reports/1", "heartbeat/banner"].contains(&migration.name);
        let old: Vec<Migration> = crate::MIGRATIONS.iter().filter(|step| !new(step)).copied().collect();
        let db = Db::in_memory(&old).unwrap();
        let checked = db.write_now(|tx| {
            tx.execute_batch(
                r#"INSERT INTO conversations (id, kind, title, created_at, updated_at)
                       VALUES (1, 'chat', 'Tea', 0, 0), (2, 'heartbeat', 'Heartbeat', 0, 0);
                   INSERT INTO entries (conversation, message, at) VALUES
                       (1, '{"role":"assistant","text":"in a chat"}', 0),
                       (2, '{"role":"assistant","text":"one"}', 0),
                       (2, '{"role":"assistant","text":"two"}', 0),
                       (2, '{"role":"user","text":"why?"}', 0),
                       (2, '{"role":"assistant","text":"","calls":[{"id":"c","name":"t","arguments":"{}"}]}', 0),
                       (2, '{"role":"tool","call":"c","tool":"t","result":"x"}', 0),
                       (2, '{"role":"assistant","text":"because"}', 0),
                       (2, '{"role":"assistant","text":"three"}', 0);
                   UPDATE heartbeat SET report = 2, unnotified = 1"#,
            )?;
            for step in crate::MIGRATIONS.iter().filter(new) {
                tx.execute_batch(step.sql)?;
            }
            let read = "SELECT json_extract(message, '$.text') FROM entries WHERE report = 1 ORDER BY id";
            let reports: Vec<String> =
                tx.prepare(read)?.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
            assert_eq!(reports, ["one", "two", "three"]);
            assert_eq!(banner(tx)?, Some(ConversationId(2)));
            assert_eq!(take_unnotified(tx)?.as_deref(), Some("three"));
            Ok::<_, DbError>(())
        });
        checked.unwrap();
    }
}
