//! The inbox: everything that the user received, of every kind, as one list that begins with the newest.
//!
//! Each kind of message is a [`MessageSource`], which its feature implements: SMS in `sms/listed`, notifications in
//! `notifications/listed`. A page of the list takes the newest messages of each source ([`Sources::page`]) and puts
//! together what belongs to one conversation or app ([`groups`]). Where a page ends, the next one goes on by date
//! ([`Cursor`]), so that no page costs more than the first, however many messages there are.
//!
//! What has to come from elsewhere, such as the messages of the phone that Kai runs on, is fetched beside the page
//! ([`MessageSource::fetch`]). Nothing here can send.

mod place;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kai_words::Said;
use rusqlite::Transaction;

use crate::db::DbError;
use crate::outbox::NewDraft;
use crate::source::SourceId;
use crate::untrusted::Untrusted;

pub use place::{Cursor, Key, Show, Wanted};

/// How many messages a page has at most.
pub const PAGE: usize = 60;

/// A message as the inbox lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub key: Key,
    /// The phone that received it.
    pub phone: SourceId,
    /// The phone's name, if there are several.
    pub phone_name: Option<String>,
    /// Names its conversation or app among those of the same kind and phone.
    pub group: String,
    /// Who sent it: a number, or an app.
    pub from: Untrusted,
    /// The names of the contacts that have this number.
    pub name: Option<Untrusted>,
    /// The heading above its text, if it has one.
    pub title: Option<Untrusted>,
    /// The beginning of its text, in one line.
    pub preview: Untrusted,
    /// When it was received, in epoch milliseconds.
    pub date: i64,
    pub unread: bool,
    /// It waits for the next heartbeat.
    pub waiting: bool,
    /// The user dismissed it.
    pub away: bool,
}

impl Item {
    /// Where a page goes on that ends with this message.
    pub fn cursor(&self) -> Cursor {
        Cursor { date: self.date, key: self.key.clone() }
    }
}

/// A message in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub item: Item,
    pub text: Untrusted,
    /// Only the beginning of the text is known: the rest is on the phone.
    pub is_beginning: bool,
    /// The messages of the conversation that it shows, oldest first.
    pub said: Vec<Line>,
    /// A line below the text, if it has one.
    pub below: Option<Untrusted>,
    /// The phone hides what it says.
    pub hidden: bool,
}

/// One message of a conversation that a notification shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Empty if the user wrote it.
    pub sender: Untrusted,
    pub text: Untrusted,
    /// Epoch milliseconds.
    pub at: Option<i64>,
}

/// A message as a model may read it: a JSON object, and the name under which the ledger records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quote {
    pub json: String,
    pub identity: String,
}

/// What the user does with a message in Kai. The phone does not hear of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// They opened it, so it is not unread any more.
    Opened,
    /// They dismissed it: it leaves the list and does not wait for a heartbeat any more.
    Away,
    /// They want a dismissed one back in the list.
    Back,
}

/// Why a message cannot be answered here.
#[derive(Debug, thiserror::Error)]
pub enum NoReply {
    /// There is no such message any more.
    #[error("There is no such message.")]
    Gone,
    /// The sentence says why, and what to do about it.
    #[error("{0}")]
    Impossible(Said),
    #[error(transparent)]
    Store(#[from] DbError),
}

/// What is shown, and so must be known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    Page(Wanted),
    Message(Key),
}

/// What has to happen before everything that is needed can be shown.
pub type Fetching = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Whether everything that is needed is there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Fetched {
    #[default]
    All,
    /// More is being fetched.
    Loading,
    /// Something could not be fetched; the sentence says why.
    Failed(Said),
}

/// Phones with their names.
pub type Phones = BTreeMap<SourceId, Option<String>>;

/// Takes a message off a phone's screen; otherwise a sentence says why not.
pub type Clearing = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// One kind of messages.
pub trait MessageSource: Send + Sync {
    /// The kind of its messages, with which their keys begin.
    fn kind(&self) -> &'static str;
    /// What the list calls its messages.
    fn title(&self) -> Said;
    /// The phones that it has messages of, with their names. This machine and the phone that Kai runs on have none.
    fn phones(&self, tx: &Transaction<'_>) -> Result<Phones, DbError>;
    /// The newest messages that are wanted, newest first, at most `most`.
    fn page(&self, tx: &Transaction<'_>, wanted: &Wanted, most: usize) -> Result<Vec<Item>, DbError>;
    /// How many messages nobody has read. Counts no further than `most`.
    fn unread(&self, tx: &Transaction<'_>, now: Timestamp, most: usize) -> Result<usize, DbError>;
    /// The message in full, with its codes: it is for the user.
    fn message(&self, tx: &Transaction<'_>, id: &str, now: Timestamp) -> Result<Option<Message>, DbError>;
    /// The message for a model, without codes unless the settings say otherwise.
    fn quote(
        &self,
        tx: &Transaction<'_>,
        id: &str,
        now: Timestamp,
        zone: &TimeZone,
    ) -> Result<Option<Quote>, DbError>;
    fn mark(&self, tx: &Transaction<'_>, id: &str, mark: Mark) -> Result<(), DbError>;
    /// The user's answer to the message, for the outbox.
    fn reply(
        &self,
        tx: &Transaction<'_>,
        id: &str,
        body: String,
        now: Timestamp,
    ) -> Result<NewDraft, NoReply>;

    /// Begins to fetch what is needed and neither there nor under way. The caller drives it.
    fn fetch(&self, _: &Transaction<'_>, _: &Need) -> Result<Option<Fetching>, DbError> {
        Ok(None)
    }

    /// Whether what is needed is there.
    fn fetched(&self, _: &Need) -> Fetched {
        Fetched::All
    }

    /// What takes the message off the phone's screen, if it is shown there.
    fn clear(&self, _: &Transaction<'_>, _: &str) -> Result<Option<Clearing>, DbError> {
        Ok(None)
    }
}

/// The sources of the inbox.
#[derive(Clone, Default)]
pub struct Sources(Arc<[Box<dyn MessageSource>]>);

/// A page of the inbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// Newest first.
    pub items: Vec<Item>,
    /// There are older ones.
    pub more: bool,
}

impl Page {
    /// Where the next page begins, if there is one.
    pub fn next(&self) -> Option<Cursor> {
        self.items.last().filter(|_| self.more).map(Item::cursor)
    }
}

impl Sources {
    pub fn new(sources: Vec<Box<dyn MessageSource>>) -> Self {
        Self(sources.into())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The kinds of messages there are, with what the list calls them.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, Said)> {
        self.0.iter().map(|source| (source.kind(), source.title()))
    }

    /// The source of a message, if there is one of its kind.
    pub fn of(&self, key: &Key) -> Option<&dyn MessageSource> {
        self.0.iter().map(AsRef::as_ref).find(|source| source.kind() == key.kind)
    }

    fn wanted<'a>(&'a self, kind: Option<&'a str>) -> impl Iterator<Item = &'a dyn MessageSource> {
        let is_wanted = move |source: &&dyn MessageSource| kind.is_none_or(|kind| source.kind() == kind);
        self.0.iter().map(AsRef::as_ref).filter(is_wanted)
    }

    /// A page of all sources together, with at most `most` messages.
    pub fn page(&self, tx: &Transaction<'_>, wanted: &Wanted, most: usize) -> Result<Page, DbError> {
        let mut items = vec![];
        for source in self.wanted(wanted.kind.as_deref()) {
            // One more than is shown tells whether there are older ones.
            items.extend(source.page(tx, wanted, most + 1)?);
        }
        Ok(merged(items, most))
    }

    /// How many messages nobody has read. Counts no further than `most`.
    pub fn unread(&self, tx: &Transaction<'_>, now: Timestamp, most: usize) -> Result<usize, DbError> {
        let mut count = 0;
        for source in self.wanted(None) {
            count = most.min(count + source.unread(tx, now, most - count)?);
        }
        Ok(count)
    }

    /// The phones that there are messages of.
    pub fn phones(&self, tx: &Transaction<'_>) -> Result<Phones, DbError> {
        let all = self.0.iter().map(|source| source.phones(tx)).collect::<Result<Vec<_>, _>>()?;
        Ok(all.into_iter().flatten().collect())
    }

    /// Begins to fetch what is needed and not there.
    pub fn fetch(&self, tx: &Transaction<'_>, need: &Need) -> Result<Vec<Fetching>, DbError> {
        let begun = self.needed(need).map(|source| source.fetch(tx, need)).collect::<Result<Vec<_>, _>>()?;
        Ok(begun.into_iter().flatten().collect())
    }

    /// Whether what is needed is there. Of several sources, the one that failed is told.
    pub fn fetched(&self, need: &Need) -> Fetched {
        let told = |known: Fetched, source: &dyn MessageSource| match (known, source.fetched(need)) {
            (Fetched::Failed(why), _) => Fetched::Failed(why),
            (known, Fetched::All) => known,
            (_, other) => other,
        };
        self.needed(need).fold(Fetched::All, told)
    }

    fn needed<'a>(&'a self, need: &'a Need) -> impl Iterator<Item = &'a dyn MessageSource> {
        self.wanted(match need {
            Need::Page(wanted) => wanted.kind.as_deref(),
            Need::Message(key) => Some(&key.kind),
        })
    }
}

/// The newest of what several sources have, newest first.
fn merged(mut items: Vec<Item>, most: usize) -> Page {
    items.sort_by_cached_key(|item| std::cmp::Reverse(item.cursor()));
    let more = items.len() > most;
    items.truncate(most);
    Page { items, more }
}

/// The messages of each conversation or app, in the order in which the newest of each is listed.
pub fn groups(items: &[Item]) -> Vec<Vec<&Item>> {
    let mut groups: Vec<Vec<&Item>> = vec![];
    for item in items {
        let is_same =
            |one: &&Item| one.group == item.group && one.phone == item.phone && one.key.kind == item.key.kind;
        match groups.iter_mut().find(|group| group.first().is_some_and(is_same)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

#[cfg(test)]
mod tests;
