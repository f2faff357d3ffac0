//! Conversations that the user has just deleted on the command line. They are in no list and nothing reads them, but the
//! user can take the deletion back for a moment. They are in the store, because the command that deletes one has ended
//! when the user thinks again; the page keeps what it deletes in memory.

use jiff::{SignedDuration, Timestamp};
use kai_codes::KnownCodes;
use rusqlite::{OptionalExtension, Transaction, params};
use serde::{Deserialize, Serialize};

use super::conversation::Whole;
use super::unseen::Codes;
use crate::attachments::{Attachment, Prepared, base64};
use crate::db::{self, DbError, Migration};

pub(crate) const MIGRATION: Migration = Migration {
    name: "conversations/deleted",
    sql: include_str!("../../migrations/conversations_deleted.sql"),
};

/// How long a deletion can be taken back.
pub const KEPT: SignedDuration = SignedDuration::from_mins(1);

/// A deleted conversation, with everything that is needed to restore it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleted {
    pub whole: Whole,
    /// What was queued in it, with its files.
    pub queued: Vec<(String, Vec<Prepared>)>,
}

/// How a deleted conversation is stored. The export of a [`Whole`] leaves out what is only valid in its own home; here
/// it stays there.
#[derive(Serialize, Deserialize)]
struct Content {
    whole: Whole,
    codes: Codes,
    unseen: bool,
    shown: Vec<String>,
    queued: Vec<(String, Vec<File>)>,
}

#[derive(Serialize, Deserialize)]
struct File {
    file: Attachment,
    #[serde(with = "base64")]
    bytes: Vec<u8>,
}

/// Keeps a deleted conversation for a moment.
pub fn keep(tx: &Transaction<'_>, deleted: &Deleted, now: Timestamp) -> Result<(), DbError> {
    sweep(tx, now)?;
    let Deleted { whole, queued } = deleted;
    let file = |one: &Prepared| File { file: one.file.clone(), bytes: one.bytes.clone() };
    let content = Content {
        codes: whole.codes,
        unseen: whole.unseen,
        shown: whole.shown.iter().map(str::to_owned).collect(),
        whole: whole.clone(),
        queued: queued.iter().map(|(text, files)| (text.clone(), files.iter().map(file).collect())).collect(),
    };
    let content = db::json(&content)?;
    let sql = "INSERT INTO conversations_deleted (deleted_at, content) VALUES (?1, ?2)";
    tx.execute(sql, params![now.as_millisecond(), content])?;
    Ok(())
}

/// Takes out the conversation that was deleted last; `None` if it is too late, or there is none.
pub fn take_newest(tx: &Transaction<'_>, now: Timestamp) -> Result<Option<Deleted>, DbError> {
    sweep(tx, now)?;
    let sql = "DELETE FROM conversations_deleted
               WHERE number = (SELECT max(number) FROM conversations_deleted) RETURNING content";
    let content: Option<String> = tx.query_row(sql, [], |row| row.get(0)).optional()?;
    let Some(content) = content else { return Ok(None) };
    let Content { mut whole, codes, unseen, shown, queued } =
        serde_json::from_str(&content).map_err(|_| DbError::Damaged)?;
    (whole.codes, whole.unseen, whole.shown) = (codes, unseen, KnownCodes::from_stored(shown));
    let file = |File { file, bytes }| Prepared { file, bytes };
    let queued =
        queued.into_iter().map(|(text, files)| (text, files.into_iter().map(file).collect())).collect();
    Ok(Some(Deleted { whole, queued }))
}

/// Deletes for good what can no longer be taken back. One from the future is from before the clock was set back.
pub fn sweep(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    let before = now.saturating_sub(KEPT).unwrap_or(now).as_millisecond();
    let sql = "DELETE FROM conversations_deleted WHERE deleted_at <= ?1 OR deleted_at > ?2";
    tx.execute(sql, params![before, now.as_millisecond()])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::conversation::{self, Which};
    use crate::db::Db;

    #[tokio::test]
    async fn a_deletion_can_be_taken_back_once_and_for_a_minute() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let at = |seconds: i64| Timestamp::from_second(1_800_000_000 + seconds).unwrap();
        let whole = db
            .write(move |tx| {
                let id = conversation::find_or_begin(tx, Which::New, at(0))?.ok_or(DbError::Stopping)?;
                conversation::set_codes(tx, id, Codes::HiddenAgain)?;
                conversation::whole(tx, id)?.ok_or(DbError::Stopping)
            })
            .await
            .unwrap();
        let picture = Prepared {
            file: Attachment {
                hash: "h".to_owned(),
                name: "a.txt".to_owned(),
                kind: crate::attachments::FileKind::Text,
                size: 2,
            },
            bytes: vec![104, 105],
        };
        let deleted = Deleted { whole, queued: vec![("and this".to_owned(), vec![picture])] };
        let kept = deleted.clone();
        db.write(move |tx| keep(tx, &kept, at(0))).await.unwrap();
        let take = async |seconds| db.write(move |tx| take_newest(tx, at(seconds))).await.unwrap();
        assert_eq!(take(59).await, Some(deleted.clone()), "with what no export contains");
        assert_eq!(take(59).await, None, "once");
        let kept = deleted.clone();
        db.write(move |tx| keep(tx, &kept, at(100))).await.unwrap();
        assert_eq!(take(160).await, None, "a minute has passed");
        db.write(move |tx| keep(tx, &deleted, at(200))).await.unwrap();
        assert_eq!(take(100).await, None, "the clock was set back");
    }
}
