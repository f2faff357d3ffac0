//! The ledger: an append-only log of what was sent, what tools did and what the user approved. Each record's hash
//! covers the hash of the record before it.

mod chunks;
mod end;
mod hours;
mod read;
mod verify;

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Transaction, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::db::{self, DbError, Migration};
use crate::hex;
use crate::source::SourceId;

pub use end::{Standing, end, set_noted, standing, was_noted};
pub use read::{Extent, Piece, Reach, Wanted, extent, one, piece};
pub use verify::{Check, Reached, Verified, prune, verify};

pub(crate) const MIGRATION: Migration =
    Migration { name: "ledger/1", sql: include_str!("../../migrations/ledger.sql") };
pub(crate) const EDGES: Migration =
    Migration { name: "ledger/2", sql: include_str!("../../migrations/ledger2.sql") };
pub(crate) const DAYS: Migration =
    Migration { name: "ledger/3", sql: include_str!("../../migrations/ledger3.sql") };
pub(crate) const HOURS: Migration =
    Migration { name: "ledger/4", sql: include_str!("../../migrations/ledger4.sql") };
pub(crate) const NOTED: Migration =
    Migration { name: "ledger/noted", sql: include_str!("../../migrations/ledger_noted.sql") };

/// One event in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Record {
    /// A request was sent to a model. `chunks` are the hashes of its bytes, `seen` names the messages that it
    /// contained.
    Request {
        conversation: i64,
        model: String,
        bytes: usize,
        chunks: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        seen: Vec<String>,
        /// The attached files that it contained.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<SentFile>,
        /// The model runs on this machine, so the request stayed here.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        here: bool,
    },
    /// A model called a tool, or the user did by hand. Stored before the tool runs.
    ToolCall {
        conversation: i64,
        tool: String,
        arguments: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_hand: bool,
    },
    /// The outcome of a tool call: it ran, failed or was refused.
    ToolResult { conversation: i64, tool: String, success: bool, result_chars: usize },
    /// A tool of an MCP server was called. The arguments left Kai, so their hash and size are recorded. Stored before
    /// the tool runs.
    McpCall {
        conversation: i64,
        server: String,
        tool: String,
        /// SHA-256 of the arguments, in hexadecimal.
        arguments: String,
        bytes: usize,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_hand: bool,
    },
    /// The outcome of such a call.
    McpResult { conversation: i64, server: String, tool: String, success: bool, bytes: usize },
    /// A call needed the user's approval: they allowed or denied it, or nobody answered.
    Click {
        conversation: i64,
        tool: String,
        arguments: String,
        allowed: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unanswered: bool,
    },
    /// The user let the model see one-time codes in a conversation, or revoked that.
    Codes { conversation: i64, shown: bool },
    /// A message was drafted. The digest covers the channel, the recipient, the text, the message that it answers, and
    /// the phone and the app if they are recorded.
    Draft {
        draft: i64,
        channel: String,
        to: String,
        digest: String,
        conversation: i64,
        /// The phone that it is to leave by, unless it is the one that Kai runs on.
        #[serde(default, skip_serializing_if = "is_here")]
        phone: SourceId,
        /// The app whose notification it answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        app: Option<String>,
        /// The name that the guest who drafted it claims.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guest: Option<String>,
    },
    /// The user tapped Send, Retry or Send again on the draft with this digest, or had it opened on the phone.
    Tap {
        draft: i64,
        digest: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        on_phone: bool,
    },
    /// The outcome of an attempt to send a draft.
    Sent { draft: i64, outcome: String },
    /// The user edited a draft. It goes to `to` now; the digests are those before and after.
    Edited { draft: i64, to: String, before: String, digest: String },
    /// The user discarded a draft.
    Discarded { draft: i64, status: String },
    /// The user took a discarded draft back.
    Undiscarded { draft: i64 },
    /// The user accepted that the ledger ended at `last`, although `noted` was the last record that Kai had noted
    /// beside the key (0 if the note was gone or unreadable).
    Restored { last: i64, noted: i64 },
    /// Something happened with a paired phone.
    Phone { phone: i64, name: String, event: PhoneEvent },
    /// A guest called a tool. Stored before it gets the result; `seen` names the messages in that.
    GuestCall {
        /// The name that the guest claims.
        guest: String,
        tool: String,
        argument_chars: usize,
        success: bool,
        result_chars: usize,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        seen: Vec<String>,
    },
    /// The user decided something about a guest.
    Guest { guest: String, event: GuestEvent },
}

/// An attached file that was in a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentFile {
    /// SHA-256 of its bytes, in hexadecimal.
    pub hash: String,
    pub bytes: usize,
}

/// What the record of a request says besides its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// The names of messages.
    pub seen: Vec<String>,
    pub files: Vec<SentFile>,
    /// It stays on this machine.
    pub here: bool,
}

/// What happened with a paired phone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhoneEvent {
    Paired,
    /// The user unpaired it.
    Unpaired,
    UnpairedByPhone,
    /// A device with its id showed another certificate and was refused.
    WrongCertificate,
    /// It spoke an older version of the protocol than before and was refused.
    OlderProtocol,
}

impl PhoneEvent {
    /// The name in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Paired => "paired",
            Self::Unpaired => "unpaired",
            Self::UnpairedByPhone => "unpaired_by_phone",
            Self::WrongCertificate => "wrong_certificate",
            Self::OlderProtocol => "older_protocol",
        }
    }
}

/// What the user decided about a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestEvent {
    Allowed,
    Blocked,
    Forgotten,
    /// The user made a token for it, to come over HTTP.
    Token,
}

impl GuestEvent {
    /// The name in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Blocked => "blocked",
            Self::Forgotten => "forgotten",
            Self::Token => "token",
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks this way")]
fn is_here(phone: &SourceId) -> bool {
    phone.is_here()
}

/// Records a request that is about to be sent. Its bytes are stored in chunks, so that what requests have in common is
/// stored once.
pub fn request(
    tx: &Transaction<'_>,
    conversation: i64,
    model: &str,
    body: &[u8],
    held: Held,
    now: Timestamp,
) -> Result<(), DbError> {
    let mut insert =
        tx.prepare_cached("INSERT OR IGNORE INTO ledger_chunks (hash, bytes) VALUES (?1, ?2)")?;
    let mut names = Vec::new();
    for chunk in chunks::cut(body) {
        let hash: [u8; 32] = Sha256::digest(chunk).into();
        insert.execute(params![hash, chunk])?;
        names.push(hex::encode(&hash));
    }
    append(
        tx,
        &Record::Request {
            conversation,
            model: model.to_owned(),
            bytes: body.len(),
            chunks: names,
            seen: held.seen,
            files: held.files,
            here: held.here,
        },
        now,
    )
}

/// Appends a record and moves the stored head of the chain.
pub fn append(tx: &Transaction<'_>, record: &Record, now: Timestamp) -> Result<(), DbError> {
    let last: Option<Vec<u8>> =
        tx.prepare_cached("SELECT hash FROM ledger_head")?.query_row([], |row| row.get(0)).optional()?;
    let json = db::json(record)?;
    let hash = chained(&last.unwrap_or_default(), now, &json);
    tx.prepare_cached("INSERT INTO ledger (at, record, hash) VALUES (?1, ?2, ?3)")?.execute(params![
        now.as_millisecond(),
        json,
        hash
    ])?;
    let seq = tx.last_insert_rowid();
    tx.prepare_cached("INSERT OR REPLACE INTO ledger_head (one, seq, hash) VALUES (1, ?1, ?2)")?
        .execute(params![seq, hash])?;
    hours::note(tx, seq, now)
}

/// The hash of a record. It covers the record, its time and, through the previous hash, everything before it.
fn chained(before: &[u8], at: Timestamp, record: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(before);
    hash.update(at.as_millisecond().to_be_bytes());
    hash.update(record.as_bytes());
    hash.finalize().into()
}

/// Reassembles the bytes of a request from its chunks.
pub fn bytes_of(tx: &Transaction<'_>, chunks: &[String]) -> Result<Vec<u8>, DbError> {
    let mut find = tx.prepare_cached("SELECT bytes FROM ledger_chunks WHERE hash = ?1")?;
    let mut whole = Vec::new();
    for name in chunks {
        let bytes: Vec<u8> = find.query_row([hex::decode(name).unwrap_or_default()], |row| row.get(0))?;
        whole.extend(bytes);
    }
    Ok(whole)
}

/// A stored record with its number and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub seq: i64,
    pub at: Timestamp,
    pub record: Record,
}

/// All records, oldest first. Only for tests, whose ledgers are short.
pub fn all(tx: &Transaction<'_>) -> Result<Vec<Record>, DbError> {
    let mut all = vec![];
    read::each(tx, |kept| all.push(kept.record))?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;

    #[tokio::test]
    async fn a_growing_conversation_is_kept_once() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write(|tx| {
            let word = |n: usize| hex::encode(&Sha256::digest(n.to_string()));
            let turn = |n: usize| (0..20).map(|w| word(n * 100 + w)).collect::<Vec<_>>().join(" ");
            let mut said = String::new();
            let mut sent = 0;
            for n in 0..40 {
                said += &turn(n);
                let body = format!("{{\"messages\":[{said}],\"tools\":[]}}");
                sent += body.len();
                request(tx, 1, "m", body.as_bytes(), Held::default(), Timestamp::UNIX_EPOCH)?;
                let Some(Record::Request { chunks, .. }) = all(tx)?.pop() else { panic!("no record") };
                assert_eq!(bytes_of(tx, &chunks)?, body.as_bytes(), "exactly what left");
            }
            let kept: i64 =
                tx.query_row("SELECT sum(length(bytes)) FROM ledger_chunks", [], |row| row.get(0))?;
            assert!(usize::try_from(kept).unwrap() * 4 < sent, "{kept} bytes kept of {sent} sent");
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }

    #[test]
    fn a_call_by_hand_says_so_and_others_are_written_as_ever() {
        let old = r#"{"what":"tool_call","conversation":0,"tool":"t","arguments":"{}"}"#;
        let read: Record = serde_json::from_str(old).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), old);
        let Record::ToolCall { by_hand: false, conversation, tool, arguments } = read else {
            panic!("{read:?}")
        };
        let by_hand = Record::ToolCall { by_hand: true, conversation, tool, arguments };
        let written = serde_json::to_string(&by_hand).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&written).unwrap(), by_hand);
    }

    #[test]
    fn a_draft_by_this_phone_and_a_tap_on_send_are_written_as_ever() {
        let drafted = r#"{"what":"draft","draft":1,"channel":"sms","to":"+1","digest":"d","conversation":0}"#;
        let tapped = r#"{"what":"tap","draft":1,"digest":"d"}"#;
        for old in [drafted, tapped] {
            let read: Record = serde_json::from_str(old).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), old);
        }
        let elsewhere = Record::Draft {
            draft: 1,
            channel: "notification".to_owned(),
            to: "Alice".to_owned(),
            digest: "d".to_owned(),
            conversation: 0,
            phone: SourceId(2),
            app: Some("Signal".to_owned()),
            guest: Some("Zed".to_owned()),
        };
        let opened = Record::Tap { draft: 1, digest: "d".to_owned(), on_phone: true };
        for record in [elsewhere, opened] {
            let written = serde_json::to_string(&record).unwrap();
            assert_eq!(serde_json::from_str::<Record>(&written).unwrap(), record);
        }
    }

    #[tokio::test]
    async fn each_hash_covers_the_one_before() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let hashes: Vec<Vec<u8>> = db
            .write(|tx| {
                let click = Record::Click {
                    conversation: 1,
                    tool: "t".into(),
                    arguments: "{}".into(),
                    allowed: true,
                    unanswered: false,
                };
                for _ in 0..2 {
                    append(tx, &click, Timestamp::UNIX_EPOCH)?;
                }
                let mut rows = tx.prepare("SELECT hash FROM ledger ORDER BY seq")?;
                let hashes = rows.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
                Ok::<_, DbError>(hashes)
            })
            .await
            .unwrap();
        assert_ne!(hashes[0], hashes[1], "the same record at another place has another hash");
    }
}
