//! The received messages of every source: the inbox of the phone that Kai runs on, and the archive of paired phones.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kai_words::{Said, said};
use rusqlite::Transaction;

use super::archive::{self, View, find};
use super::inbox::Inbox;
use super::names::{self, Candidate};
use super::port::ReadError;
use super::search::Wanted;
use super::{Sms, SmsId, handled, store};
use crate::db::{Db, DbError};
use crate::outbox::number;
use crate::phones;
use crate::settings::{self, SMS_ENABLED};
use crate::source::SourceId;
use crate::tool::Eyes;

/// How many of the newest messages of an inbox are searched for a known sender.
const REMEMBERED: usize = 500;

/// Reads the messages of all sources as if they were one.
#[derive(Clone)]
pub struct Received {
    pub db: Db,
    /// The phone that Kai runs on, or the simulated one.
    pub inbox: Option<Arc<Inbox>>,
    /// Whether a paired phone may be read, as far as it is known.
    paired: Arc<AtomicBool>,
}

/// Why a message could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotRead {
    /// No phone can be read at all.
    NoPhone,
    /// There is no such message.
    Unknown(SmsId),
    Phone(ReadError),
    Store(String),
}

impl From<DbError> for NotRead {
    fn from(error: DbError) -> Self {
        Self::Store(error.to_string())
    }
}

/// A message, and the phone that received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub source: SourceId,
    pub sms: Sms,
}

/// Notes that the user opened a message, so that it no longer counts as unread.
pub fn open(tx: &Transaction<'_>, found: &Found) -> Result<(), DbError> {
    let Found { source, sms } = found;
    if source.is_here() { handled::note(tx, &sms.identity(), None) } else { archive::open(tx, sms.id) }
}

/// What a search found, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Search {
    pub found: Vec<Found>,
    /// Why one of several phones could not be searched.
    pub without: Option<ReadError>,
}

impl Received {
    pub fn new(db: Db, inbox: Option<Arc<Inbox>>) -> Self {
        Self { db, inbox, paired: Arc::default() }
    }

    /// Finds out whether a paired phone can be read.
    pub fn look(&self, tx: &Transaction<'_>) -> Result<(), DbError> {
        self.paired.store(is_one_paired(tx)?, Ordering::Relaxed);
        Ok(())
    }

    /// Asks the phone that Kai runs on whether it can be read, unless that was done just now.
    pub async fn probe_access(&self) {
        if let Some(inbox) = &self.inbox {
            inbox.probe_access().await;
        }
    }

    async fn learn_paired(&self) -> Result<bool, DbError> {
        let paired = self.db.read(is_one_paired).await?;
        self.paired.store(paired, Ordering::Relaxed);
        Ok(paired)
    }

    /// Why no message can be read, or `None` if some can.
    pub fn lacks(&self) -> Option<Said> {
        if self.paired.load(Ordering::Relaxed) {
            return None;
        }
        self.inbox.as_ref().map_or_else(|| Some(said::lacks_reading()), |inbox| inbox.lacks())
    }

    /// The received message with this number.
    pub async fn message(&self, view: View, id: SmsId) -> Result<Found, NotRead> {
        let archived = self.db.read(move |tx| find::message(tx, view, id)).await?;
        if let Some(stored) = archived {
            return Ok(Found { source: stored.source, sms: stored.into_sms() });
        }
        match &self.inbox {
            Some(inbox) if id < archive::FIRST_ID => {
                let sms = inbox.message(id).await.map_err(NotRead::Phone)?;
                sms.map(|sms| Found { source: SourceId::HERE, sms }).ok_or(NotRead::Unknown(id))
            }
            Some(_) => Err(NotRead::Unknown(id)),
            None if self.learn_paired().await? => Err(NotRead::Unknown(id)),
            None => Err(NotRead::NoPhone),
        }
    }

    /// The phone that received the message with this number; the phone that Kai runs on for numbers of its own.
    pub async fn phone_of(&self, id: SmsId) -> Result<SourceId, DbError> {
        let stored = self.db.read(move |tx| find::message(tx, View::Inbox, id)).await?;
        Ok(stored.map_or(SourceId::HERE, |stored| stored.source))
    }

    /// The newest messages that match, of all sources. A source that cannot be searched does not hide the others.
    pub async fn search(&self, view: View, wanted: Wanted, most: usize) -> Result<Search, NotRead> {
        let text = wanted.text().to_owned();
        let named = self.db.read(move |tx| names::numbers_of(tx, &text)).await?;
        let wanted = wanted.or_from(named);
        let in_archive = {
            let wanted = wanted.clone();
            self.db.read(move |tx| {
                let paired = is_one_paired(tx)?;
                Ok::<_, DbError>((paired, find::search(tx, view, &wanted, most)?))
            })
        };
        let ((paired, archived), inbox) = {
            let (archived, inbox) = tokio::join!(in_archive, self.search_inbox(view, wanted, most));
            (archived?, inbox)
        };
        let (mut found, without) = match inbox {
            Some(Ok(found)) => (found, None),
            Some(Err(error)) if paired || !archived.is_empty() => (vec![], Some(error)),
            Some(Err(error)) => return Err(NotRead::Phone(error)),
            None if paired || !archived.is_empty() => (vec![], None),
            None => return Err(NotRead::NoPhone),
        };
        found.extend(
            archived.into_iter().map(|stored| Found { source: stored.source, sms: stored.into_sms() }),
        );
        found.sort_by_key(|found| std::cmp::Reverse(found.sms.date));
        found.truncate(most);
        Ok(Search { found, without })
    }

    async fn search_inbox(
        &self,
        view: View,
        wanted: Wanted,
        most: usize,
    ) -> Option<Result<Vec<Found>, ReadError>> {
        let inbox = self.inbox.as_ref()?;
        // Search what is shown, or a model could guess a hidden code by searching for digits.
        let eyes = match view {
            View::Model(eyes) => eyes,
            View::Inbox | View::Everything => Eyes::All,
        };
        let shown = move |sms: &Sms| Sms { body: eyes.see(&sms.body), ..sms.clone() };
        let found = inbox.search(wanted, shown, most).await;
        Some(found.map(|all| all.into_iter().map(|sms| Found { source: SourceId::HERE, sms }).collect()))
    }

    /// Whether this number wrote to the user. Returns false if Kai may not read SMS.
    pub async fn wrote_before(&self, to: &str) -> Result<bool, DbError> {
        let number = to.to_owned();
        let archived = self.db.read(move |tx| {
            let on = settings::load(tx)?.on(&SMS_ENABLED);
            Ok::<_, DbError>((on, on && find::wrote_before(tx, &number)?))
        });
        let inbox = match archived.await? {
            (false, _) => return Ok(false),
            (true, true) => return Ok(true),
            (true, false) => self.inbox.as_ref(),
        };
        let Some(inbox) = inbox else { return Ok(false) };
        let recent = inbox.newest(0, REMEMBERED).await.unwrap_or_default();
        Ok(recent.iter().any(|sms| number::same(sms.address.as_written(), to)))
    }

    /// The number that is meant by a name: the only one, or those who may be meant. `None` if names are off.
    pub async fn number_named(&self, name: &str) -> Result<Option<Result<String, Vec<Candidate>>>, DbError> {
        let name = name.to_owned();
        self.db
            .read(
                move |tx| {
                    if names::are_on(tx)? { names::number_named(tx, &name).map(Some) } else { Ok(None) }
                },
            )
            .await
    }

    /// The names of the phones, if there is more than one to tell apart.
    pub async fn phone_names(&self) -> Result<PhoneNames, DbError> {
        self.db.read(PhoneNames::of).await
    }
}

/// Whether the messages of a paired phone may be read.
fn is_one_paired(tx: &Transaction<'_>) -> Result<bool, DbError> {
    Ok(!read_phones(tx)?.is_empty())
}

/// The paired phones whose messages may be read.
fn read_phones(tx: &Transaction<'_>) -> Result<Vec<phones::Phone>, DbError> {
    Ok(phones::store::all(tx)?.into_iter().filter(|phone| phone.switches.read_sms).collect())
}

/// What phones are called where there is more than one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PhoneNames(BTreeMap<SourceId, String>);

impl PhoneNames {
    pub fn of(tx: &Transaction<'_>) -> Result<Self, DbError> {
        let phones = phones::store::all(tx)?;
        let read = phones.iter().filter(|phone| phone.switches.read_sms).count();
        // The inbox of the phone that Kai runs on is marked once it is read.
        let several = read + usize::from(store::sync(tx)?.mark.seeded) > 1;
        let named = phones.into_iter().map(|phone| (phone.source, phone.name));
        Ok(Self(if several { named.collect() } else { BTreeMap::new() }))
    }

    /// The name, unless there is only one phone, or it is the one that Kai runs on.
    pub fn name(&self, source: SourceId) -> Option<String> {
        self.0.get(&source).cloned()
    }
}
