//! Stores conversations, complete and provider-neutral, so that any model can continue one after a restart.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kai_codes::KnownCodes;
use kai_llm::{Message, Usage};
use kai_words::{Said, said};
use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use super::unseen::Codes;
use super::unseen::{self, Kept};
use crate::attachments::{self, Attachment, FileKind, base64};
use crate::db::{DbError, Migration};
use crate::gate::Level;
use crate::hex;
use crate::models::trouble::Fault;
use crate::settings::{CODE_REDACTION_ENABLED, Values};
use crate::tool::Provenance;
use crate::untrusted::Attached;

pub(crate) const MIGRATION: Migration =
    Migration { name: "conversations/1", sql: include_str!("../../migrations/conversations.sql") };
pub(crate) const TAINT: Migration =
    Migration { name: "conversations/2", sql: include_str!("../../migrations/conversations2.sql") };
pub(crate) const CODES_AND_STOPS: Migration =
    Migration { name: "conversations/3", sql: include_str!("../../migrations/conversations3.sql") };
pub(crate) const SHOWN_CODES: Migration = Migration {
    name: "conversations/shown-codes",
    sql: include_str!("../../migrations/conversations_shown_codes.sql"),
};
pub(crate) const LEVELS: Migration = Migration {
    name: "conversations/levels",
    sql: include_str!("../../migrations/conversations_levels.sql"),
};

pub(crate) const MEANINGS: Migration = Migration {
    name: "conversations/meanings",
    sql: include_str!("../../migrations/conversations_meanings.sql"),
};

pub(crate) const ANSWERS: Migration = Migration {
    name: "conversations/answers",
    sql: include_str!("../../migrations/conversations_answers.sql"),
};

pub(crate) const TERMS: Migration =
    Migration { name: "conversations/terms", sql: include_str!("../../migrations/conversations_terms.sql") };

pub(crate) const INSTEAD: Migration = Migration {
    name: "conversations/instead",
    sql: include_str!("../../migrations/conversations_instead.sql"),
};

pub(crate) const LIST: Migration =
    Migration { name: "conversations/list", sql: include_str!("../../migrations/conversations_list.sql") };

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConversationId(pub i64);

impl ConversationId {
    /// The name of the lease that a turn holds while it answers this conversation.
    pub fn lease(self) -> String {
        format!("turn/{}", self.0)
    }
}

/// Selects a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    New,
    /// A new chat for one question of a command line. The page lists it apart until it is continued.
    Question,
    /// The chat with the newest message, or a new one if there is no chat.
    Newest,
    Id(ConversationId),
}

impl Which {
    /// The id of [`Which::Id`]; 0 for the other variants.
    pub fn id(self) -> ConversationId {
        if let Self::Id(id) = self { id } else { ConversationId(0) }
    }
}

/// What a conversation is for: chatting, or reports from unattended runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "&'static str")]
pub enum Kind {
    Chat,
    /// Collects the reports of heartbeats and tasks.
    Heartbeat,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Heartbeat => "heartbeat",
        }
    }

    /// Reads a stored kind. An import file may contain anything, so an unknown kind counts as a chat.
    pub(super) fn from_stored(stored: &str) -> Self {
        if stored == Self::Heartbeat.as_str() { Self::Heartbeat } else { Self::Chat }
    }
}

impl From<String> for Kind {
    fn from(stored: String) -> Self {
        Self::from_stored(&stored)
    }
}

impl From<Kind> for &'static str {
    fn from(kind: Kind) -> Self {
        kind.as_str()
    }
}

/// A summary of a conversation, for lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    pub id: ConversationId,
    /// The beginning of the user's first message.
    pub title: String,
    /// What the user called it instead.
    #[serde(default)]
    pub name: Option<String>,
    pub kind: Kind,
    /// Epoch milliseconds.
    pub updated_at: i64,
    pub entries: u32,
    #[serde(default)]
    pub pinned: bool,
    /// It is one question of a command line.
    #[serde(default)]
    pub asked: bool,
}

impl Conversation {
    /// What the user calls it: the name that they gave it, or its title.
    pub fn called(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.title)
    }
}

/// A stored message, with the model that wrote it if a model did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub message: Message,
    pub answered_by: Option<String>,
    pub usage: Option<Usage>,
    /// Epoch milliseconds.
    pub at: i64,
    /// How long the model took for it, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took: Option<u64>,
    /// The user stopped the model before it finished this message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// This is a report from an unattended run; it belongs to no turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub report: bool,
    /// The meaning of a tool result, or of a message in which the user quotes another; `None` for other messages, and
    /// for results stored without one. It is never exported or serialised.
    #[serde(skip)]
    pub meaning: Option<Provenance>,
    /// The files that the user attached to this message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Attachment>,
    /// The model that was to write this, if another one did. Never exported: its name means nothing elsewhere.
    #[serde(skip)]
    pub instead: Option<Instead>,
}

/// A model that could not answer, so that another one was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instead {
    /// The user's name for it.
    pub of: String,
    /// Why it could not.
    #[serde(with = "kai_words::stored")]
    pub why: Option<Said>,
    /// What of its setup the user should look at.
    #[serde(default)]
    pub fault: Option<Fault>,
}

impl Entry {
    /// Whether this is a finished answer of a model: not stopped, without tool calls, and not blank.
    pub fn is_answer(&self) -> bool {
        let Message::Assistant { text, calls, .. } = &self.message else { return false };
        !self.stopped && calls.is_empty() && !text.trim().is_empty()
    }

    /// Whether this is the beginning of an answer that the user stopped.
    pub fn is_stopped(&self) -> bool {
        matches!(&self.message, Message::Assistant { text, .. } if self.stopped && !text.trim().is_empty())
    }

    /// The message, with its meaning if that is known.
    pub(crate) fn with_meaning(&self) -> (&Message, Option<&Provenance>) {
        (&self.message, self.meaning.as_ref())
    }
}

/// A complete conversation, for export, and for undoing a deletion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whole {
    pub title: String,
    pub kind: Kind,
    pub created_at: i64,
    pub updated_at: i64,
    pub entries: Vec<Entry>,
    /// What the user called it, in place of its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// It is one question of a command line.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// The highest level of any request in this conversation. Older files call it `tainted`.
    #[serde(default, alias = "tainted", skip_serializing_if = "Level::is_nothing")]
    pub level: Level,
    /// The name of the model that the user chose for this conversation; `None` for the usual order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Never exported: the user gave this permission in this home only.
    #[serde(skip)]
    pub codes: Codes,
    /// The conversation has a report that the user has not seen. Never exported either.
    #[serde(skip)]
    pub unseen: bool,
    /// The one-time codes that were shown to the model. Never exported.
    #[serde(skip)]
    pub shown: KnownCodes,
    /// The bytes of the attached files, by hash. Empty unless [`with_contents`] has read them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub contents: BTreeMap<String, FileContent>,
}

/// The bytes of an attached file. In an export file, text is legible and a picture is base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileContent {
    Text(String),
    Base64(#[serde(with = "base64")] Vec<u8>),
}

impl FileContent {
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Base64(bytes) => bytes,
        }
    }
}

impl Whole {
    /// The creation time and title, which identify this conversation in another home, where its id differs.
    pub fn identity(&self) -> (i64, String) {
        (self.created_at, self.title.clone())
    }

    /// What the user calls it: the name that they gave it, or its title.
    pub fn called(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.title)
    }

    /// Which codes must be hidden from a model or an export file.
    pub(crate) fn kept(&self, values: &Values) -> Kept {
        Kept {
            codes: self.codes,
            hiding: values.on(&CODE_REDACTION_ENABLED),
            reports: self.kind == Kind::Heartbeat,
        }
    }
}

/// The title of a conversation before its first message.
const UNTITLED: &str = "New chat";
const TITLE_LENGTH: usize = 60;
/// How many characters the name that a user gives a chat may have.
pub const NAME_LENGTH: usize = 100;

pub fn create(tx: &Transaction<'_>, now: Timestamp) -> Result<ConversationId, DbError> {
    tx.execute(
        "INSERT INTO conversations (kind, title, created_at, updated_at) VALUES ('chat', ?1, ?2, ?2)",
        params![UNTITLED, now.as_millisecond()],
    )?;
    Ok(ConversationId(tx.last_insert_rowid()))
}

/// The conversation that collects the reports of unattended runs, if it exists yet.
pub fn heartbeat(tx: &Transaction<'_>) -> Result<Option<ConversationId>, DbError> {
    let there = "SELECT id FROM conversations WHERE kind = 'heartbeat' ORDER BY id LIMIT 1";
    Ok(tx.query_row(there, [], |row| row.get(0)).optional()?.map(ConversationId))
}

/// Raises the conversation to `level`, unless it is there or higher already. It never goes down again, even if the tool
/// that raised it is disabled later.
pub fn raise(tx: &Transaction<'_>, id: ConversationId, level: Level) -> Result<(), DbError> {
    let sql = "UPDATE conversations SET level = ?2 WHERE id = ?1 AND level < ?2";
    tx.prepare_cached(sql)?.execute(params![id.0, level.stored()])?;
    Ok(())
}

/// The level that the conversation has reached. The heartbeat's conversation is always [`Level::People`], because its
/// reports repeat what people wrote.
pub fn level(tx: &Transaction<'_>, id: ConversationId) -> Result<Level, DbError> {
    let sql = "SELECT level, kind = 'heartbeat' FROM conversations WHERE id = ?1";
    let row = |row: &Row<'_>| Ok(if row.get(1)? { Level::People } else { Level::of_stored(row.get(0)?) });
    Ok(tx.prepare_cached(sql)?.query_row([id.0], row).optional()?.unwrap_or_default())
}

/// Sets whether the model may see one-time codes in this conversation; returns false if it does not exist. When codes
/// are hidden again, every code that was shown is stored, so that it can be hidden from then on.
pub fn set_codes(tx: &Transaction<'_>, id: ConversationId, codes: Codes) -> Result<bool, DbError> {
    let there =
        tx.execute("UPDATE conversations SET codes = ?2 WHERE id = ?1", params![id.0, codes as i64])?;
    if there > 0 && codes == Codes::HiddenAgain {
        let said = entries(tx, id)?;
        remember_shown(tx, id, &unseen::shown_by(said.iter().map(Entry::with_meaning), codes))?;
    }
    Ok(there > 0)
}

pub fn codes(tx: &Transaction<'_>, id: ConversationId) -> Result<Codes, DbError> {
    let sql = "SELECT codes FROM conversations WHERE id = ?1";
    let stored = tx.prepare_cached(sql)?.query_row([id.0], |row| row.get(0)).optional()?;
    Ok(stored.map_or(Codes::Hidden, Codes::of))
}

fn remember_shown(tx: &Transaction<'_>, id: ConversationId, shown: &KnownCodes) -> Result<(), DbError> {
    let sql = "INSERT OR IGNORE INTO shown_codes (conversation, code) VALUES (?1, ?2)";
    let mut insert = tx.prepare_cached(sql)?;
    shown.iter().try_for_each(|code| insert.execute(params![id.0, code]).map(drop))?;
    Ok(())
}

/// The name of the model that the user chose for this conversation; `None` for the usual order.
pub fn model(tx: &Transaction<'_>, id: ConversationId) -> Result<Option<String>, DbError> {
    let sql = "SELECT model FROM conversations WHERE id = ?1";
    Ok(tx.prepare_cached(sql)?.query_row([id.0], |row| row.get(0)).optional()?.flatten())
}

/// Chooses the model that answers in this conversation; returns false if it does not exist.
pub fn set_model(tx: &Transaction<'_>, id: ConversationId, model: Option<&str>) -> Result<bool, DbError> {
    Ok(tx.execute("UPDATE conversations SET model = ?2 WHERE id = ?1", params![id.0, model])? > 0)
}

/// The stored codes that were shown to the model of this conversation.
pub fn shown_codes(tx: &Transaction<'_>, id: ConversationId) -> Result<KnownCodes, DbError> {
    let mut rows = tx.prepare_cached("SELECT code FROM shown_codes WHERE conversation = ?1")?;
    let codes = rows.query_map([id.0], |row| row.get(0))?;
    Ok(KnownCodes::from_stored(codes.collect::<rusqlite::Result<Vec<String>>>()?))
}

/// Which codes must be hidden from the model of this conversation.
pub(super) fn kept(tx: &Transaction<'_>, id: ConversationId, values: &Values) -> Result<Kept, DbError> {
    Ok(Kept {
        codes: codes(tx, id)?,
        hiding: values.on(&CODE_REDACTION_ENABLED),
        reports: is_heartbeat(tx, id)?,
    })
}

/// Whether this is the conversation of unattended runs. Its content derives from text that other people wrote.
pub fn is_heartbeat(tx: &Transaction<'_>, id: ConversationId) -> Result<bool, DbError> {
    let sql = "SELECT 1 FROM conversations WHERE id = ?1 AND kind = 'heartbeat'";
    Ok(tx.prepare_cached(sql)?.exists([id.0])?)
}

/// Finds or creates the conversation that `which` selects; `None` if the id does not exist.
pub fn find_or_begin(
    tx: &Transaction<'_>,
    which: Which,
    now: Timestamp,
) -> Result<Option<ConversationId>, DbError> {
    match which {
        Which::New => create(tx, now).map(Some),
        Which::Question => {
            let id = create(tx, now)?;
            tx.execute("UPDATE conversations SET asked = 1 WHERE id = ?1", [id.0])?;
            Ok(Some(id))
        }
        Which::Newest => match newest(tx)? {
            Some(newest) => Ok(Some(newest)),
            None => create(tx, now).map(Some),
        },
        Which::Id(id) => Ok(exists(tx, id)?.then_some(id)),
    }
}

pub fn exists(tx: &Transaction<'_>, id: ConversationId) -> Result<bool, DbError> {
    Ok(tx.prepare_cached("SELECT 1 FROM conversations WHERE id = ?1")?.exists([id.0])?)
}

/// The chat with the newest message.
pub fn newest(tx: &Transaction<'_>) -> Result<Option<ConversationId>, DbError> {
    // Ordered by entry id rather than by time, because the clock may have been set back; and from the newest back until
    // one is of a chat, because there may be very many.
    let sql = "SELECT coalesce(
                   (SELECT c.id FROM entries e CROSS JOIN conversations c ON c.id = e.conversation
                    WHERE c.kind = 'chat' ORDER BY e.id DESC LIMIT 1),
                   (SELECT max(id) FROM conversations WHERE kind = 'chat'))";
    Ok(tx.prepare_cached(sql)?.query_row([], |row| row.get::<_, Option<i64>>(0))?.map(ConversationId))
}

/// Appends messages. `spoken` is the model's label and the token usage, for messages that a model wrote.
pub fn append(
    tx: &Transaction<'_>,
    id: ConversationId,
    messages: &[Message],
    spoken: Option<(&str, Usage)>,
    now: Timestamp,
) -> Result<(), DbError> {
    messages.iter().try_for_each(|message| insert(tx, id, message, None, spoken, now))?;
    after_insert(tx, id, messages, now)
}

/// Appends a message in which the user quotes one that others sent them, and raises the conversation to the level of
/// that.
fn append_quoting(
    tx: &Transaction<'_>,
    id: ConversationId,
    text: String,
    mentions: Vec<String>,
    now: Timestamp,
) -> Result<(), DbError> {
    let meaning = Provenance { taint: Level::People, mentions };
    raise(tx, id, meaning.taint)?;
    append_result(tx, id, &Message::user(text), &meaning, now)
}

/// Appends a message with its meaning: a tool result, or one of the user's that quotes another.
pub fn append_result(
    tx: &Transaction<'_>,
    id: ConversationId,
    result: &Message,
    meaning: &Provenance,
    now: Timestamp,
) -> Result<(), DbError> {
    insert(tx, id, result, Some(meaning), None, now)?;
    after_insert(tx, id, std::slice::from_ref(result), now)
}

fn insert(
    tx: &Transaction<'_>,
    id: ConversationId,
    message: &Message,
    meaning: Option<&Provenance>,
    spoken: Option<(&str, Usage)>,
    now: Timestamp,
) -> Result<(), DbError> {
    let sql =
        "INSERT INTO entries (conversation, message, answered_by, tokens_in, tokens_out, at, taint, mentions)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let (label, usage) = spoken.map_or((None, None), |(label, usage)| (Some(label), Some(usage)));
    let tokens = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let (input, output) = (usage.map(|u| tokens(u.input)), usage.map(|u| tokens(u.output)));
    let taint = meaning.map(|meaning| meaning.taint.stored());
    let mentions = meaning.map(|meaning| json(&meaning.mentions)).transpose()?;
    let at = now.as_millisecond();
    let row = params![id.0, json(&without_pictures(message))?, label, input, output, at, taint, mentions];
    tx.prepare_cached(sql)?.execute(row)?;
    index(tx, message)?;
    set_title(tx, id, message)?;
    list_if_continued(tx, id, message)
}

/// Pictures are stored as files of the entry and never inside a message, wherever that came from.
fn without_pictures(message: &Message) -> Message {
    match message {
        Message::User { text, .. } => Message::user(text.as_str()),
        Message::Assistant { .. } | Message::Tool { .. } => message.clone(),
    }
}

/// Appends a message of the user with its files and quotes, and raises the conversation to the level of those: somebody
/// else may have written what is in them.
pub(super) fn append_said(
    tx: &Transaction<'_>,
    id: ConversationId,
    text: String,
    quotes: Vec<String>,
    files: &[Attachment],
    now: Timestamp,
) -> Result<(), DbError> {
    if quotes.is_empty() {
        append(tx, id, &[Message::user(text)], None, now)?;
    } else {
        append_quoting(tx, id, text, quotes, now)?;
    }
    attach(tx, id, files)?;
    if let Some(first) = files.first() {
        // Words come first; a message without any is named after its file.
        let sql = "UPDATE conversations SET title = ?2 WHERE id = ?1 AND title = ?3";
        tx.prepare_cached(sql)?.execute(params![id.0, first.name, UNTITLED])?;
        raise(tx, id, Level::Web)?;
    }
    Ok(())
}

/// Ties files to the newest message.
fn attach(tx: &Transaction<'_>, id: ConversationId, files: &[Attachment]) -> Result<(), DbError> {
    if files.is_empty() {
        return Ok(());
    }
    attachments::store::attach(tx, last_entry(tx, id)?, files)
}

/// Updates what depends on new messages: the stored codes that were shown, and the time of the last message.
fn after_insert(
    tx: &Transaction<'_>,
    id: ConversationId,
    messages: &[Message],
    now: Timestamp,
) -> Result<(), DbError> {
    if codes(tx, id)? == Codes::Shown {
        // In the same transaction, so that every code that a request can contain is stored before the request is sent.
        // The meaning of a result does not matter here: while codes are shown, every result counts.
        let said = messages.iter().map(|message| (message, None));
        remember_shown(tx, id, &unseen::shown_by(said, Codes::Shown))?;
    }
    if messages.iter().any(has_words) {
        let sql = "UPDATE conversations SET updated_at = ?2 WHERE id = ?1";
        tx.prepare_cached(sql)?.execute(params![id.0, now.as_millisecond()])?;
    }
    Ok(())
}

/// Whether somebody said something: the rounds of tools in between do not count as the last message.
fn has_words(message: &Message) -> bool {
    match message {
        Message::User { .. } => true,
        Message::Assistant { text, .. } => !text.trim().is_empty(),
        Message::Tool { .. } => false,
    }
}

/// Stores the partial answer of a model that the user stopped, unless the conversation was deleted.
pub fn append_stopped(
    tx: &Transaction<'_>,
    id: ConversationId,
    said: &str,
    answered_by: &str,
    at: Timestamp,
) -> Result<(), DbError> {
    if !exists(tx, id)? {
        return Ok(());
    }
    let message = Message::Assistant { text: said.to_owned(), calls: vec![], signature: None };
    append(tx, id, &[message], Some((answered_by, Usage::default())), at)?;
    mark_stopped(tx, id)
}

/// Marks the newest message as stopped before its end.
fn mark_stopped(tx: &Transaction<'_>, id: ConversationId) -> Result<(), DbError> {
    let sql =
        "UPDATE entries SET stopped = 1 WHERE id = (SELECT max(id) FROM entries WHERE conversation = ?1)";
    tx.execute(sql, [id.0])?;
    Ok(())
}

/// Keeps how long the model took for the newest message.
pub(super) fn mark_took(tx: &Transaction<'_>, id: ConversationId, took: u64) -> Result<(), DbError> {
    let sql = "UPDATE entries SET took = ?2 WHERE id = (SELECT max(id) FROM entries WHERE conversation = ?1)";
    tx.prepare_cached(sql)?.execute(params![id.0, i64::try_from(took).unwrap_or(i64::MAX)])?;
    Ok(())
}

/// Keeps which model the newest message was to come from, and why it did not.
pub(super) fn mark_instead(
    tx: &Transaction<'_>,
    id: ConversationId,
    instead: &Instead,
) -> Result<(), DbError> {
    let sql =
        "UPDATE entries SET instead = ?2 WHERE id = (SELECT max(id) FROM entries WHERE conversation = ?1)";
    tx.prepare_cached(sql)?.execute(params![id.0, json(instead)?])?;
    Ok(())
}

/// Marks the newest message as a report.
pub(super) fn mark_report(tx: &Transaction<'_>, id: ConversationId) -> Result<(), DbError> {
    let sql =
        "UPDATE entries SET report = 1 WHERE id = (SELECT max(id) FROM entries WHERE conversation = ?1)";
    tx.prepare_cached(sql)?.execute([id.0])?;
    Ok(())
}

fn json(value: &impl Serialize) -> Result<String, DbError> {
    let to_sql_error = |error| rusqlite::Error::ToSqlConversionFailure(Box::new(error));
    serde_json::to_string(value).map_err(|error| DbError::Other(to_sql_error(error)))
}

/// Adds the text of the entry just inserted to the search index.
fn index(tx: &Transaction<'_>, message: &Message) -> Result<(), DbError> {
    let words = match message {
        Message::User { text, .. } | Message::Assistant { text, .. } if !text.trim().is_empty() => text,
        Message::User { .. } | Message::Assistant { .. } | Message::Tool { .. } => return Ok(()),
    };
    let entry = tx.last_insert_rowid();
    tx.prepare_cached("INSERT INTO entries_text (rowid, text) VALUES (?1, ?2)")?
        .execute(params![entry, words])?;
    Ok(())
}

/// Makes the user's first message the title.
fn set_title(tx: &Transaction<'_>, id: ConversationId, message: &Message) -> Result<(), DbError> {
    let Message::User { text, .. } = message else { return Ok(()) };
    let title = title_of(text);
    let sql = "UPDATE conversations SET title = ?2 WHERE id = ?1 AND title = ?3";
    tx.prepare_cached(sql)?.execute(params![id.0, title, UNTITLED])?;
    Ok(())
}

/// The title that a conversation has which begins with this message.
fn title_of(message: &str) -> String {
    let said = Attached::find(message);
    title(if said.words.is_empty() { said.attachment.unwrap_or_default() } else { said.words })
}

/// A question of a command line that the user continues is a chat like any other.
fn list_if_continued(tx: &Transaction<'_>, id: ConversationId, message: &Message) -> Result<(), DbError> {
    let Message::User { .. } = message else { return Ok(()) };
    let sql = "UPDATE conversations SET asked = 0 WHERE id = ?1 AND asked <> 0
               AND (SELECT count(*) FROM entries WHERE conversation = ?1) > 1";
    tx.prepare_cached(sql)?.execute([id.0])?;
    Ok(())
}

/// Shortens text to one line of at most [`TITLE_LENGTH`] characters, cut between words if possible.
fn title(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((end, _)) = line.char_indices().nth(TITLE_LENGTH) else {
        return if line.is_empty() { UNTITLED.to_owned() } else { line };
    };
    let head = &line[..end];
    let whole = head.rfind(' ').filter(|at| *at > end / 2).map_or(head, |at| &head[..at]);
    format!("{whole}…")
}

/// What the user typed as a name, in one line; `None` if they typed nothing, and an error if it is too long.
pub fn name(typed: &str) -> Result<Option<String>, Said> {
    let name = typed.split_whitespace().collect::<Vec<_>>().join(" ");
    if name.chars().count() > NAME_LENGTH {
        return Err(said::list_name_long(NAME_LENGTH));
    }
    Ok(Some(name).filter(|name| !name.is_empty()))
}

/// All entries of a conversation, oldest first.
pub fn entries(tx: &Transaction<'_>, id: ConversationId) -> Result<Vec<Entry>, DbError> {
    let mut rows = tx.prepare_cached(
        "SELECT message, answered_by, tokens_in, tokens_out, at, stopped, report, taint, mentions, took, id, instead
         FROM entries WHERE conversation = ?1 ORDER BY id",
    )?;
    let mut files = attachments::store::of_conversation(tx, id.0)?;
    let with_files =
        |row: &Row<'_>| Ok(Entry { files: files.remove(&row.get(10)?).unwrap_or_default(), ..entry(row)? });
    let entries = rows.query_map([id.0], with_files)?;
    Ok(entries.collect::<rusqlite::Result<_>>()?)
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let message = from_json(0, &row.get::<_, String>(0)?)?;
    let tokens = |column| row.get::<_, Option<i64>>(column).map(|n| n.and_then(|n| u64::try_from(n).ok()));
    let usage = tokens(2)?.zip(tokens(3)?).map(|(input, output)| Usage { input, output });
    let (answered_by, at, stopped, report) = (row.get(1)?, row.get(4)?, row.get(5)?, row.get(6)?);
    let (took, files) = (tokens(9)?, vec![]);
    let instead: Option<String> = row.get(11)?;
    let instead = instead.map(|json| from_json(11, &json)).transpose()?;
    let meaning = meaning(row)?;
    Ok(Entry { message, answered_by, usage, at, took, stopped, report, meaning, files, instead })
}

fn meaning(row: &Row<'_>) -> rusqlite::Result<Option<Provenance>> {
    let (taint, mentions): (Option<i64>, Option<String>) = (row.get(7)?, row.get(8)?);
    let Some((taint, mentions)) = taint.zip(mentions) else { return Ok(None) };
    Ok(Some(Provenance { taint: Level::of_stored(taint), mentions: from_json(8, &mentions)? }))
}

fn from_json<T: DeserializeOwned>(column: usize, json: &str) -> rusqlite::Result<T> {
    let unreadable = |error| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
    };
    serde_json::from_str(json).map_err(unreadable)
}

/// All conversations with their entries, oldest first.
pub fn load_all(tx: &Transaction<'_>) -> Result<Vec<Whole>, DbError> {
    let mut rows = tx.prepare_cached(
        "SELECT id, title, kind, created_at, updated_at, level, codes, unseen, name, pinned, asked, model
         FROM conversations ORDER BY id",
    )?;
    let heads = rows.query_map([], head)?;
    let heads: Vec<(ConversationId, Whole)> = heads.collect::<rusqlite::Result<_>>()?;
    heads.into_iter().map(|(id, head)| with_entries(tx, id, head)).collect()
}

/// The oldest conversation after this one.
pub fn after(tx: &Transaction<'_>, id: Option<i64>) -> Result<Option<ConversationId>, DbError> {
    let sql = "SELECT id FROM conversations WHERE id > ?1 ORDER BY id LIMIT 1";
    let found = tx.prepare_cached(sql)?.query_row([id.unwrap_or(i64::MIN)], |row| row.get(0));
    Ok(found.optional()?.map(ConversationId))
}

/// A conversation with its entries; `None` if it does not exist.
pub fn whole(tx: &Transaction<'_>, id: ConversationId) -> Result<Option<Whole>, DbError> {
    let sql =
        "SELECT id, title, kind, created_at, updated_at, level, codes, unseen, name, pinned, asked, model
               FROM conversations WHERE id = ?1";
    let found = tx.prepare_cached(sql)?.query_row([id.0], head).optional()?;
    found.map(|(id, head)| with_entries(tx, id, head)).transpose()
}

/// The conversation with the bytes of its files, for an export, or before it is deleted.
pub fn with_contents(tx: &Transaction<'_>, mut whole: Whole) -> Result<Whole, DbError> {
    for file in whole.entries.iter().flat_map(|entry| &entry.files) {
        let Some(bytes) = attachments::store::bytes(tx, &file.hash)? else { continue };
        let content = match file.kind {
            FileKind::Text => FileContent::Text(String::from_utf8_lossy(&bytes).into_owned()),
            FileKind::Picture { .. } => FileContent::Base64(bytes),
        };
        whole.contents.insert(file.hash.clone(), content);
    }
    Ok(whole)
}

fn with_entries(tx: &Transaction<'_>, id: ConversationId, head: Whole) -> Result<Whole, DbError> {
    Ok(Whole { entries: entries(tx, id)?, shown: shown_codes(tx, id)?, ..head })
}

fn head(row: &Row<'_>) -> rusqlite::Result<(ConversationId, Whole)> {
    let whole = Whole {
        title: row.get(1)?,
        kind: Kind::from_stored(&row.get::<_, String>(2)?),
        created_at: row.get(3)?,
        updated_at: row.get(4)?,
        level: Level::of_stored(row.get(5)?),
        codes: Codes::of(row.get(6)?),
        unseen: row.get(7)?,
        name: row.get(8)?,
        pinned: row.get(9)?,
        asked: row.get(10)?,
        model: row.get(11)?,
        entries: vec![],
        shown: KnownCodes::default(),
        contents: BTreeMap::new(),
    };
    Ok((ConversationId(row.get(0)?), whole))
}

/// A fingerprint of a conversation's state: it differs whenever messages were added or removed, or the level or the
/// handling of codes changed. Cheaper than reading the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Revision {
    newest: i64,
    count: i64,
    level: Level,
    codes: Codes,
}

pub fn reached(tx: &Transaction<'_>, id: ConversationId) -> Result<Revision, DbError> {
    let sql = "SELECT coalesce(max(e.id), 0), count(e.id), c.level, c.codes
               FROM conversations c LEFT JOIN entries e ON e.conversation = c.id WHERE c.id = ?1 GROUP BY c.id";
    let row = |row: &Row<'_>| {
        let (level, codes) = (Level::of_stored(row.get(2)?), Codes::of(row.get(3)?));
        Ok(Revision { newest: row.get(0)?, count: row.get(1)?, level, codes })
    };
    Ok(tx.prepare_cached(sql)?.query_row([id.0], row).optional()?.unwrap_or_default())
}

/// Removes the answer to the user's last message, so that it can be answered again; returns false if there is no such
/// message. A finished answer is removed together with its tool calls and results. If the turn broke off, the tool
/// results are kept, so that the tools do not run twice. Reports are always kept.
pub fn reopen(tx: &Transaction<'_>, id: ConversationId) -> Result<bool, DbError> {
    let said = entries(tx, id)?;
    let Some(asked) = said.iter().rposition(|entry| matches!(entry.message, Message::User { .. })) else {
        return Ok(false);
    };
    let own: Vec<usize> = (asked..said.len()).filter(|at| !said[*at].report).collect();
    let finished = own.last().is_some_and(|last| said[*last].is_answer());
    let brought = own.iter().rposition(|at| matches!(said[*at].message, Message::Tool { .. }));
    let kept = if finished { 1 } else { brought.map_or(1, |brought| brought + 1) };
    let is_reported = own.len() < said.len() - asked;
    // If reports arrived since the question, they stay where they are, and the question is appended again after them.
    let stays = if is_reported { asked } else { asked + kept };
    let last = last_entry(tx, id)?;
    // Appended before the old ones are deleted, with which their files would go.
    if is_reported {
        own[..kept].iter().try_for_each(|at| put(tx, id, &said[*at]))?;
    }
    delete_after(tx, id, stays, last)?;
    Ok(true)
}

/// Names the user's last message, so that another page, which shows an older one, cannot replace it.
pub fn mark_of_last(entries: &[Entry]) -> Option<String> {
    let (at, text) = entries.iter().enumerate().rev().find_map(|(at, entry)| match &entry.message {
        Message::User { text, .. } => Some((at, text)),
        Message::Assistant { .. } | Message::Tool { .. } => None,
    })?;
    Some(format!("{at}-{}", hex::encode(&Sha256::digest(text.as_bytes())[..8])))
}

/// Replaces the user's own words in their last message, and removes what followed it; returns false if that message is
/// not the one that was seen. What they attached or quoted stays, and so do reports, and the level.
pub(super) fn rewrite(
    tx: &Transaction<'_>,
    id: ConversationId,
    seen: &str,
    words: &str,
    now: Timestamp,
) -> Result<bool, DbError> {
    let said = entries(tx, id)?;
    let is_user = |entry: &Entry| matches!(entry.message, Message::User { .. });
    let (Some(asked), Some(mark)) = (said.iter().rposition(is_user), mark_of_last(&said)) else {
        return Ok(false);
    };
    let Message::User { text: before, .. } = &said[asked].message else { return Ok(false) };
    if mark != seen {
        return Ok(false);
    }
    if said.iter().position(is_user) == Some(asked) {
        let sql = "UPDATE conversations SET title = ?3 WHERE id = ?1 AND title = ?2";
        tx.execute(sql, params![id.0, title_of(before), UNTITLED])?;
    }
    let (message, last) = (Message::user(Attached::reworded(before, words)), last_entry(tx, id)?);
    match &said[asked].meaning {
        Some(meaning) => append_result(tx, id, &message, meaning, now)?,
        None => append(tx, id, &[message], None, now)?,
    }
    attach(tx, id, &said[asked].files)?;
    delete_after(tx, id, asked, last)?;
    Ok(true)
}

/// The number of the newest entry.
fn last_entry(tx: &Transaction<'_>, id: ConversationId) -> Result<i64, DbError> {
    let newest = "SELECT max(id) FROM entries WHERE conversation = ?1";
    Ok(tx.query_row(newest, [id.0], |row| row.get(0))?)
}

/// Deletes all entries up to `last` but the first `kept` and the reports. What is put in their place is appended before,
/// since their files go with them.
fn delete_after(tx: &Transaction<'_>, id: ConversationId, kept: usize, last: i64) -> Result<(), DbError> {
    let surplus = "DELETE FROM entries WHERE conversation = ?1 AND report = 0 AND id <= ?3 AND id NOT IN
                       (SELECT id FROM entries WHERE conversation = ?1 ORDER BY id LIMIT ?2)";
    tx.execute(surplus, params![id.0, i64::try_from(kept).unwrap_or(i64::MAX), last])?;
    Ok(())
}

/// Appends an entry unchanged, with its time and marks.
fn put(tx: &Transaction<'_>, id: ConversationId, entry: &Entry) -> Result<(), DbError> {
    let at = Timestamp::from_millisecond(entry.at).unwrap_or_default();
    let spoken = entry.answered_by.as_deref().map(|who| (who, entry.usage.unwrap_or_default()));
    match &entry.meaning {
        Some(meaning) => append_result(tx, id, &entry.message, meaning, at)?,
        None => append(tx, id, std::slice::from_ref(&entry.message), spoken, at)?,
    }
    if let Some(took) = entry.took {
        mark_took(tx, id, took)?;
    }
    if let Some(instead) = &entry.instead {
        mark_instead(tx, id, instead)?;
    }
    attach(tx, id, &entry.files)?;
    if entry.stopped {
        mark_stopped(tx, id)?;
    }
    if entry.report {
        mark_report(tx, id)?;
    }
    Ok(())
}

/// Restores a conversation unchanged, under a new id.
pub fn restore(tx: &Transaction<'_>, whole: &Whole) -> Result<ConversationId, DbError> {
    tx.execute(
        "INSERT INTO conversations (kind, title, created_at, updated_at, level, codes) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![whole.kind.as_str(), whole.title, whole.created_at, whole.updated_at, whole.level.stored(), whole.codes as i64],
    )?;
    let id = ConversationId(tx.last_insert_rowid());
    for entry in &whole.entries {
        let files = stored_files(tx, entry, &whole.contents)?;
        put(tx, id, &Entry { files, ..entry.clone() })?;
    }
    if whole.entries.iter().any(|entry| !entry.files.is_empty()) {
        raise(tx, id, Level::Web)?;
    }
    remember_shown(tx, id, &whole.shown)?;
    let sql = "UPDATE conversations
               SET title = ?2, updated_at = ?3, unseen = ?4, name = ?5, pinned = ?6, asked = ?7, model = ?8
               WHERE id = ?1";
    let Whole { title, updated_at, unseen, pinned, asked, model, .. } = whole;
    // An import file may contain anything, so a name that nobody could have typed is dropped.
    let name = whole.name.as_deref().and_then(|typed| name(typed).ok().flatten());
    tx.execute(sql, params![id.0, title, updated_at, unseen, name, pinned, asked, model])?;
    Ok(id)
}

/// Stores the files of an entry and returns them, without those whose bytes are missing or were altered.
fn stored_files(
    tx: &Transaction<'_>,
    entry: &Entry,
    contents: &BTreeMap<String, FileContent>,
) -> Result<Vec<Attachment>, DbError> {
    let is_said = matches!(entry.message, Message::User { .. });
    let mut files = vec![];
    for file in entry.files.iter().take(attachments::MOST).filter(|_| is_said) {
        let Some(bytes) = contents.get(&file.hash).map(FileContent::as_bytes) else { continue };
        if !attachments::fits(file, bytes) {
            continue;
        }
        attachments::store::keep(tx, &file.hash, bytes)?;
        files.push(Attachment { name: attachments::name::harmless(&file.name), ..file.clone() });
    }
    Ok(files)
}

pub fn delete_all(tx: &Transaction<'_>) -> Result<(), DbError> {
    tx.execute("DELETE FROM conversations", [])?;
    Ok(())
}

/// Deletes a conversation with all its entries; returns false if it does not exist.
pub fn delete(tx: &Transaction<'_>, id: ConversationId) -> Result<bool, DbError> {
    Ok(tx.execute("DELETE FROM conversations WHERE id = ?1", [id.0])? > 0)
}

#[cfg(test)]
mod tests {
    use kai_llm::{CallId, ToolCall};

    /// A conversation that was deleted and restored keeps its level, because it still contains what others wrote.
    #[tokio::test]
    async fn what_comes_back_is_at_the_level_it_was() {
        let db = crate::db::Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write(|tx| {
            let id = create(tx, Timestamp::UNIX_EPOCH)?;
            raise(tx, id, Level::People)?;
            raise(tx, id, Level::Web)?;
            set_codes(tx, id, Codes::HiddenAgain)?;
            let kept = whole(tx, id)?.ok_or(DbError::Stopping)?;
            delete(tx, id)?;
            let back = restore(tx, &kept)?;
            let clean = create(tx, Timestamp::UNIX_EPOCH)?;
            Ok::<_, DbError>((level(tx, back)?, level(tx, clean)?, codes(tx, back)?))
        });
        assert_eq!(checked.await.unwrap(), (Level::People, Level::Nothing, Codes::HiddenAgain));
    }

    /// Codes that were shown stay known after their messages are deleted, and after the conversation was deleted and
    /// restored.
    #[tokio::test]
    async fn codes_that_were_shown_are_remembered() {
        let db = crate::db::Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write(|tx| {
            let id = create(tx, NOW)?;
            let read = |body: &str| Message::Tool {
                call: CallId("1".to_owned()),
                tool: "t".to_owned(),
                result: serde_json::json!({ "body": body }).to_string(),
            };
            append(tx, id, &[user("hm"), read("Your login code is 111222.")], None, NOW)?;
            assert!(shown_codes(tx, id)?.is_empty(), "nobody clicked");
            set_codes(tx, id, Codes::Shown)?;
            append(tx, id, &[user("read it"), read("Your login code is 482913.")], None, NOW)?;
            append(tx, id, &[assistant("It is 482913.")], None, NOW)?;
            reopen(tx, id)?;
            tx.execute("DELETE FROM entries WHERE message LIKE '%482913%'", [])?;
            set_codes(tx, id, Codes::HiddenAgain)?;
            let kept = whole(tx, id)?.ok_or(DbError::Stopping)?;
            delete(tx, id)?;
            let back = restore(tx, &kept)?;
            let left: i64 = tx.query_row("SELECT count(*) FROM shown_codes", [], |row| row.get(0))?;
            Ok::<_, DbError>((shown_codes(tx, back)?, left))
        });
        let (shown, left) = checked.await.unwrap();
        assert_eq!(shown.iter().collect::<Vec<_>>(), ["111222", "482913"]);
        assert_eq!(left, 2, "those of the deleted conversation went with it");
    }

    use super::*;
    use crate::db::Db;

    fn user(text: &str) -> Message {
        Message::user(text.to_owned())
    }

    fn assistant(text: &str) -> Message {
        let call = ToolCall {
            id: CallId("c1".to_owned()),
            name: "t".to_owned(),
            arguments: "{ \"a\": 1 }".to_owned(),
            signature: Some("sig".to_owned()),
        };
        Message::Assistant {
            text: text.to_owned(),
            calls: vec![call],
            signature: Some("text sig".to_owned()),
        }
    }

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[tokio::test]
    async fn what_was_said_comes_back_whole() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let result =
            Message::Tool { call: CallId("c1".to_owned()), tool: "t".to_owned(), result: "ok".to_owned() };
        let said = vec![user("hello"), assistant("hm"), result];
        let kept = said.clone();
        let usage = Usage { input: 7, output: 9 };
        let entries = db
            .write(move |tx| {
                let id = create(tx, NOW)?;
                append(tx, id, &kept[..1], None, NOW)?;
                append(tx, id, &kept[1..2], Some(("gpt", usage)), NOW)?;
                append(tx, id, &kept[2..], None, NOW)?;
                entries(tx, id)
            })
            .await
            .unwrap_or_else(|e: DbError| panic!("{e}"));
        assert_eq!(entries.iter().map(|e| e.message.clone()).collect::<Vec<_>>(), said);
        assert_eq!(entries[1].answered_by.as_deref(), Some("gpt"));
        assert_eq!(entries[1].usage, Some(usage));
        assert_eq!(entries[0].usage, None);
    }

    /// A result keeps its meaning when the conversation is deleted and restored, and a result without one (from an
    /// older home) stays without one.
    #[tokio::test]
    async fn what_a_result_means_comes_back_with_it() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let result = |result: &str| Message::Tool {
            call: CallId("c1".to_owned()),
            tool: "t".to_owned(),
            result: result.to_owned(),
        };
        let meant = [
            Some(Provenance { taint: Level::People, mentions: vec!["sms 1 2 \"+1\"".to_owned()] }),
            Some(Provenance::default()),
            None,
        ];
        let expected = meant.clone();
        let checked = db.write(move |tx| {
            let id = create(tx, NOW)?;
            for meaning in &meant {
                match meaning {
                    Some(meaning) => append_result(tx, id, &result("ok"), meaning, NOW)?,
                    None => append(tx, id, &[result("ok")], None, NOW)?,
                }
            }
            let kept = whole(tx, id)?.ok_or(DbError::Stopping)?;
            delete(tx, id)?;
            let back = restore(tx, &kept)?;
            let meanings =
                |entries: Vec<Entry>| entries.into_iter().map(|entry| entry.meaning).collect::<Vec<_>>();
            Ok::<_, DbError>((meanings(kept.entries), meanings(entries(tx, back)?)))
        });
        assert_eq!(checked.await.unwrap(), (expected.to_vec(), expected.to_vec()));
    }

    #[tokio::test]
    async fn another_answer_takes_the_place_of_the_old_one_and_tools_that_ran_stay() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let call = assistant("");
        let result =
            Message::Tool { call: CallId("c1".to_owned()), tool: "t".to_owned(), result: "ok".to_owned() };
        let answer = Message::Assistant { text: "Yes.".to_owned(), calls: vec![], signature: None };
        for (name, said, left) in [
            ("nothing was said", vec![&answer], None),
            ("not answered", vec![&user("a")], Some(1)),
            ("answered", vec![&user("a"), &answer], Some(1)),
            ("answered with a tool", vec![&user("a"), &call, &result, &answer], Some(1)),
            ("broke off while a tool ran", vec![&user("a"), &call], Some(1)),
            ("broke off after a tool", vec![&user("a"), &call, &result], Some(3)),
            ("broke off in the second", vec![&user("a"), &call, &result, &call], Some(3)),
            ("the second question", vec![&user("a"), &answer, &user("b"), &answer], Some(3)),
        ] {
            let said: Vec<Message> = said.into_iter().cloned().collect();
            let checked = db.write(move |tx| {
                let id = create(tx, NOW)?;
                append(tx, id, &said, None, NOW)?;
                let before = reached(tx, id)?;
                assert_eq!(reopen(tx, id)?, left.is_some(), "{name}");
                assert_eq!(entries(tx, id)?.len(), left.unwrap_or(said.len()), "{name}");
                let moved = left.is_some_and(|left| left != said.len());
                assert_eq!(reached(tx, id)? != before, moved, "{name}");
                Ok::<_, DbError>(())
            });
            checked.await.unwrap();
        }
    }

    #[test]
    fn a_name_is_one_line_or_refused() {
        let long = "ä".repeat(NAME_LENGTH);
        for (typed, expected) in [
            ("Tea", Some("Tea".to_owned())),
            ("  two\n lines\t", Some("two lines".to_owned())),
            (" ", None),
            (&long, Some(long.clone())),
        ] {
            assert_eq!(name(typed).unwrap(), expected, "{typed}");
        }
        assert!(name(&format!("{long}ä")).is_err());
    }

    #[test]
    fn a_title_is_one_short_line() {
        for (said, expected) in [
            ("hello", "hello".to_owned()),
            ("  two\nlines ", "two lines".to_owned()),
            ("", UNTITLED.to_owned()),
            (&"ä".repeat(80), format!("{}…", "ä".repeat(60))),
            (&"word ".repeat(20), format!("{}…", "word ".repeat(12).trim())),
        ] {
            assert_eq!(title(said), expected);
        }
    }

    #[test]
    fn a_chat_is_as_new_as_what_was_said_last_in_it() {
        let (id, name, arguments) = (CallId("1".to_owned()), "t".to_owned(), "{}".to_owned());
        let called = ToolCall { id, name, arguments, signature: None };
        let round = [
            Message::Assistant { text: String::new(), calls: vec![called], signature: None },
            Message::Tool { call: CallId("1".to_owned()), tool: "t".to_owned(), result: "r".to_owned() },
        ];
        let db = crate::db::Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write_now(|tx| {
            let id = create(tx, Timestamp::UNIX_EPOCH)?;
            let updated = |messages: &[Message], second| {
                append(tx, id, messages, None, Timestamp::from_second(second).unwrap())?;
                Ok::<_, DbError>(whole(tx, id)?.unwrap().updated_at)
            };
            assert_eq!(updated(&[user("hm")], 1)?, 1_000);
            assert_eq!(updated(&round, 2)?, 1_000, "nobody said anything");
            assert_eq!(updated(&[assistant("It is.")], 3)?, 3_000);
            Ok::<_, DbError>(())
        });
        checked.unwrap();
    }

    #[test]
    fn the_newest_chat_is_the_one_with_the_newest_message() {
        let db = crate::db::Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write_now(|tx| {
            assert_eq!(newest(tx)?, None);
            let (later, earlier) = (Timestamp::from_second(9).unwrap(), Timestamp::UNIX_EPOCH);
            let (first, second) = (create(tx, later)?, create(tx, later)?);
            assert_eq!(newest(tx)?, Some(second), "nobody has said anything yet");
            append(tx, second, &[Message::user("one")], None, later)?;
            append(tx, first, &[Message::user("two")], None, earlier)?;
            assert_eq!(newest(tx)?, Some(first), "the clock was set back");
            let heartbeat = create(tx, later)?;
            tx.execute("UPDATE conversations SET kind = 'heartbeat' WHERE id = ?1", [heartbeat.0])?;
            append(tx, heartbeat, &[Message::user("three")], None, later)?;
            create(tx, later)?;
            assert_eq!(newest(tx)?, Some(first), "neither a heartbeat nor an empty chat");
            Ok::<_, DbError>(())
        });
        checked.unwrap();
    }
}
