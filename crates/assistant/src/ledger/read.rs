//! Reads the ledger piece by piece. It may span years, so it is never held in memory as a whole.

use std::ops::Range;

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::{Kept, Record, hours};
use crate::db::DbError;
use crate::untrusted::folded;

/// A filter for records. Empty fields match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The kind of record, as [`Record::kind`] names it.
    pub kind: String,
    /// The exact name of a tool or a model.
    pub name: String,
    pub conversation: Option<i64>,
    /// The time of the record, in epoch milliseconds.
    pub within: Option<Range<i64>>,
    /// Text that occurs in any of the record's text fields; case is ignored.
    pub text: String,
    /// The id of an SMS or a notification: matches the requests that contained it.
    pub seen: String,
}

impl Wanted {
    /// Whether a record matches the filter.
    pub fn is(&self, kept: &Kept) -> bool {
        let Kept { at, record, .. } = kept;
        let any = |given: &str, holds: &dyn Fn() -> bool| given.is_empty() || holds();
        self.within.as_ref().is_none_or(|span| span.contains(&at.as_millisecond()))
            && self.conversation.is_none_or(|wanted| record.conversation() == Some(wanted))
            && any(&self.kind, &|| record.kind() == self.kind)
            && any(&self.name, &|| record.name() == Some(self.name.as_str()))
            && any(&self.seen, &|| record.held(&self.seen))
            && any(&self.text, &|| record.says(&self.text))
    }
}

impl Record {
    /// The kind of record, as it is stored.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Request { .. } => "request",
            Self::ToolCall { .. } => "tool_call",
            Self::ToolResult { .. } => "tool_result",
            Self::McpCall { .. } => "mcp_call",
            Self::McpResult { .. } => "mcp_result",
            Self::Click { .. } => "click",
            Self::Codes { .. } => "codes",
            Self::Draft { .. } => "draft",
            Self::Tap { .. } => "tap",
            Self::Sent { .. } => "sent",
            Self::Edited { .. } => "edited",
            Self::Discarded { .. } => "discarded",
            Self::Undiscarded { .. } => "undiscarded",
            Self::Restored { .. } => "restored",
            Self::Phone { .. } => "phone",
            Self::GuestCall { .. } => "guest_call",
            Self::Guest { .. } => "guest",
        }
    }

    /// The conversation that it belongs to, if any.
    pub fn conversation(&self) -> Option<i64> {
        match self {
            Self::Request { conversation, .. }
            | Self::ToolCall { conversation, .. }
            | Self::ToolResult { conversation, .. }
            | Self::McpCall { conversation, .. }
            | Self::McpResult { conversation, .. }
            | Self::Click { conversation, .. }
            | Self::Codes { conversation, .. }
            | Self::Draft { conversation, .. } => Some(*conversation).filter(|id| *id != 0),
            Self::Tap { .. }
            | Self::Sent { .. }
            | Self::Edited { .. }
            | Self::Discarded { .. }
            | Self::Undiscarded { .. }
            | Self::Restored { .. }
            | Self::Phone { .. }
            | Self::GuestCall { .. }
            | Self::Guest { .. } => None,
        }
    }

    /// The name of the tool or model that it is about, if any.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Request { model, .. } => Some(model),
            Self::ToolCall { tool, .. }
            | Self::ToolResult { tool, .. }
            | Self::McpCall { tool, .. }
            | Self::McpResult { tool, .. }
            | Self::Click { tool, .. }
            | Self::GuestCall { tool, .. } => Some(tool),
            Self::Codes { .. }
            | Self::Draft { .. }
            | Self::Tap { .. }
            | Self::Sent { .. }
            | Self::Edited { .. }
            | Self::Discarded { .. }
            | Self::Undiscarded { .. }
            | Self::Restored { .. }
            | Self::Phone { .. }
            | Self::Guest { .. } => None,
        }
    }

    /// Whether this is a request to a model, or a result for a guest, that contained the message with that id. The name
    /// of an SMS has its date and sender after the id.
    fn held(&self, id: &str) -> bool {
        let (sms, others) =
            (format!("sms {id} "), ["notification", "email"].map(|kind| format!("{kind} {id}")));
        let names = |name: &String| name.starts_with(&sms) || others.contains(name);
        let holds = |seen: &[String]| seen.iter().any(names);
        matches!(self, Self::Request { seen, .. } | Self::GuestCall { seen, .. } if holds(seen))
    }

    /// Whether any text field contains `text`, ignoring case.
    fn says(&self, text: &str) -> bool {
        let fields: Vec<&str> = match self {
            Self::Request { model, seen, files, .. } => {
                let hashes = files.iter().map(|file| file.hash.as_str());
                seen.iter().map(String::as_str).chain(hashes).chain([model.as_str()]).collect()
            }
            Self::ToolCall { tool, arguments, .. } | Self::Click { tool, arguments, .. } => {
                vec![tool, arguments]
            }
            Self::ToolResult { tool, .. } => vec![tool],
            Self::McpCall { server, tool, arguments, .. } => vec![server, tool, arguments],
            Self::McpResult { server, tool, .. } => vec![server, tool],
            Self::Draft { channel, to, digest, guest, .. } => {
                [channel, to, digest].into_iter().chain(guest).map(String::as_str).collect()
            }
            Self::Codes { .. } | Self::Undiscarded { .. } | Self::Restored { .. } => vec![],
            Self::Tap { digest, .. } => vec![digest],
            Self::Sent { outcome, .. } => vec![outcome],
            Self::Edited { to, before, digest, .. } => vec![to, before, digest],
            Self::Discarded { status, .. } => vec![status],
            Self::Phone { name, event, .. } => vec![name, event.as_str()],
            Self::GuestCall { guest, tool, seen, .. } => {
                seen.iter().chain([guest, tool]).map(String::as_str).collect()
            }
            Self::Guest { guest, event } => vec![guest, event.as_str()],
        };
        let text = folded(text);
        fields.iter().any(|field| folded(field).contains(&text))
    }
}

/// One page of records, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Piece {
    pub kept: Vec<Kept>,
    /// The `before` for the next page of older records; `None` if there are none left.
    pub further: Option<i64>,
}

/// How far one call of [`piece`] searches.
#[derive(Debug, Clone, Copy)]
pub struct Reach {
    /// The call ends when this many records match,
    pub found: usize,
    /// or when this many were examined: a search for a rare word must not block the store for others.
    pub looked: usize,
}

/// Searches the records older than `before` for those that match `wanted`, newest first.
pub fn piece(
    tx: &Transaction<'_>,
    wanted: &Wanted,
    before: Option<i64>,
    reach: Reach,
) -> Result<Piece, DbError> {
    let (first, last) = match &wanted.within {
        Some(span) => hours::edges(tx, span)?,
        None => (0, i64::MAX),
    };
    let before = before.unwrap_or(i64::MAX).min(last.saturating_add(1));
    let mut rows = tx.prepare_cached(
        "SELECT seq, at, record FROM ledger WHERE seq < ?1 AND seq >= ?2 ORDER BY seq DESC",
    )?;
    let mut piece = Piece::default();
    let mut at = before;
    for (looked, kept) in rows.query_map(params![before, first], read)?.enumerate() {
        if piece.kept.len() == reach.found || looked == reach.looked {
            piece.further = Some(at);
            break;
        }
        let kept = kept?;
        at = kept.seq;
        if wanted.is(&kept) {
            piece.kept.push(kept);
        }
    }
    Ok(piece)
}

pub fn one(tx: &Transaction<'_>, seq: i64) -> Result<Option<Kept>, DbError> {
    let mut row = tx.prepare_cached("SELECT seq, at, record FROM ledger WHERE seq = ?1")?;
    Ok(row.query_row([seq], read).optional()?)
}

/// Calls `see` with every record, oldest first, one at a time.
pub(super) fn each(tx: &Transaction<'_>, mut see: impl FnMut(Kept)) -> Result<(), DbError> {
    let mut rows = tx.prepare_cached("SELECT seq, at, record FROM ledger ORDER BY seq")?;
    for kept in rows.query_map([], read)? {
        see(kept?);
    }
    Ok(())
}

/// The size of the ledger, and where it begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extent {
    pub records: i64,
    /// The time of the oldest record, in epoch milliseconds.
    pub since: Option<i64>,
    /// The number of the last record that was pruned, if any was.
    pub checkpoint: Option<i64>,
}

pub fn extent(tx: &Transaction<'_>) -> Result<Extent, DbError> {
    let checkpoint = edge(tx, "ledger_checkpoint")?.map(|(seq, _)| seq);
    let sql = "SELECT count(*), (SELECT at FROM ledger ORDER BY seq LIMIT 1) FROM ledger";
    let (records, since) = tx.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(Extent { records, since, checkpoint })
}

/// The number and hash of the record before the chain (`ledger_checkpoint`) or of its last record (`ledger_head`),
/// which are stored apart from the chain.
pub(super) fn edge(tx: &Transaction<'_>, table: &str) -> Result<Option<(i64, Vec<u8>)>, DbError> {
    let sql = format!("SELECT seq, hash FROM {table}");
    Ok(tx.query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Kept> {
    let json: String = row.get(2)?;
    let unreadable = |e: serde_json::Error| {
        rusqlite::Error::FromSqlConversionFailure(2, rusqlite::types::Type::Text, Box::new(e))
    };
    let record = serde_json::from_str(&json).map_err(unreadable)?;
    let at = Timestamp::from_millisecond(row.get(1)?).unwrap_or_default();
    Ok(Kept { seq: row.get(0)?, at, record })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;
    use crate::ledger::{append, prune};

    fn call(tool: &str, conversation: i64) -> Record {
        let arguments = r#"{"text":"Grüße"}"#.to_owned();
        Record::ToolCall { conversation, tool: tool.to_owned(), arguments, by_hand: false }
    }

    fn request(model: &str, seen: &[&str]) -> Record {
        let seen = seen.iter().map(|&id| id.to_owned()).collect();
        Record::Request {
            conversation: 7,
            model: model.to_owned(),
            bytes: 2,
            chunks: vec![],
            seen,
            files: vec![],
            here: false,
        }
    }

    fn sample() -> Vec<Record> {
        vec![
            call("web_search", 7),
            request("mine", &["sms 4 99 +15550100", "notification n4", "email 1.7.4"]),
            call("open_url", 8),
            request("other", &["sms 44 99 +15550100"]),
            Record::Tap { draft: 1, digest: "d".to_owned(), on_phone: false },
        ]
    }

    async fn filled() -> Db {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let written = db.write(|tx| {
            for (n, record) in sample().iter().enumerate() {
                append(tx, record, Timestamp::from_second(i64::try_from(n).unwrap() * 100).unwrap())?;
            }
            Ok::<_, DbError>(())
        });
        written.await.unwrap();
        db
    }

    const ALL: Reach = Reach { found: 100, looked: 100 };

    #[tokio::test]
    async fn each_filter_lets_through_what_it_names() {
        let db = filled().await;
        let any = Wanted::default;
        for (name, wanted, expected) in [
            ("all, newest first", any(), vec![5, 4, 3, 2, 1]),
            ("a kind", Wanted { kind: "request".into(), ..any() }, vec![4, 2]),
            ("a model", Wanted { name: "mine".into(), ..any() }, vec![2]),
            ("a tool", Wanted { name: "open_url".into(), ..any() }, vec![3]),
            ("part of a tool's name", Wanted { name: "open".into(), ..any() }, vec![]),
            ("a conversation", Wanted { conversation: Some(8), ..any() }, vec![3]),
            ("a time", Wanted { within: Some(100_000..300_000), ..any() }, vec![3, 2]),
            ("an empty time", Wanted { within: Some(900_000..901_000), ..any() }, vec![]),
            ("two spellings", Wanted { text: "GRÜSSE".into(), ..any() }, vec![3, 1]),
            ("text, whatever its case", Wanted { text: "gRÜßE".into(), ..any() }, vec![3, 1]),
            ("an SMS and not one whose number begins like it", Wanted { seen: "4".into(), ..any() }, vec![2]),
            ("a notification", Wanted { seen: "n4".into(), ..any() }, vec![2]),
            ("a mail", Wanted { seen: "1.7.4".into(), ..any() }, vec![2]),
            ("part of a mail's id", Wanted { seen: "1.7".into(), ..any() }, vec![]),
            ("two at once", Wanted { kind: "tap".into(), conversation: Some(7), ..any() }, vec![]),
        ] {
            let found = db.read(move |tx| piece(tx, &wanted, None, ALL)).await.unwrap();
            assert_eq!(found.kept.iter().map(|kept| kept.seq).collect::<Vec<_>>(), expected, "{name}");
            assert_eq!(found.further, None, "{name}");
        }
    }

    #[tokio::test]
    async fn pieces_put_together_are_the_whole_however_small_they_are() {
        let db = filled().await;
        let requests = Wanted { kind: "request".into(), ..Wanted::default() };
        for reach in [Reach { found: 1, looked: 100 }, Reach { found: 100, looked: 1 }, ALL] {
            let (mut all, mut before) = (vec![], None);
            loop {
                let wanted = requests.clone();
                let found = db.read(move |tx| piece(tx, &wanted, before, reach)).await.unwrap();
                all.extend(found.kept.iter().map(|kept| kept.seq));
                before = found.further;
                if before.is_none() {
                    break;
                }
            }
            assert_eq!(all, [4, 2], "{reach:?}");
        }
    }

    #[tokio::test]
    async fn the_extent_says_where_it_begins() {
        let db = filled().await;
        let whole = db.read(extent).await.unwrap();
        assert_eq!(whole, Extent { records: 5, since: Some(0), checkpoint: None });
        let now = Timestamp::from_second(86_400 + 150).unwrap();
        db.write(move |tx| prune(tx, 1, now)).await.unwrap();
        let rest = db.read(extent).await.unwrap();
        assert_eq!(rest, Extent { records: 3, since: Some(200_000), checkpoint: Some(2) });
        assert_eq!(db.read(|tx| one(tx, 1)).await.unwrap(), None);
    }
}
