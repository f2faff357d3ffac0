//! Polls the phone: fetches the messages newer than the mark, queues them and moves the mark, all or nothing.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kai_words::{Said, said};
use rusqlite::Transaction;

use super::due;
use super::inbox::Inbox;
use super::mark::{Mark, PER_POLL, Taken};
use super::port::ReadError;
use super::queue::preview;
use super::store;
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::lease::{self, Lease};
use crate::settings::{self, SMS_ENABLED, SMS_POLL_INTERVAL};

/// Polls one inbox.
#[derive(Clone)]
pub struct Poller {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
    pub inbox: Arc<Inbox>,
}

/// What a poll did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Polled {
    pub fresh: usize,
    /// The poll hit its limit, so the next tick polls again.
    pub more: bool,
    /// This was the first poll, which only marked the existing messages as seen.
    pub seeded: bool,
}

/// Why a poll failed.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.said())]
pub enum PollError {
    /// Reading SMS is disabled.
    Off,
    /// Another poll is running.
    Busy,
    Phone(#[from] ReadError),
    Store(#[from] DbError),
}

impl PollError {
    /// The error in the user's language.
    pub fn said(&self) -> Said {
        match self {
            Self::Off => said::access_poll_off(),
            Self::Busy => said::access_poll_busy(),
            Self::Phone(error) => error.said(),
            Self::Store(error) => error.said(),
        }
    }
}

const NAME: &str = "sms/poll";
/// How long a poll holds its lease. A poll queries the phone at most three times, and each query has its own timeout.
const LEASE: SignedDuration = SignedDuration::from_mins(2);

/// Whether a poll is running right now, in any process.
pub fn under_way(tx: &Transaction<'_>, now: Timestamp) -> Result<bool, DbError> {
    lease::held(tx, NAME, now)
}

impl Poller {
    /// Polls if a poll is due. Returns `None` if it is not due, SMS is disabled or another poll is running.
    pub async fn tick(&self) -> Result<Option<Polled>, PollError> {
        let now = self.clock.now();
        let due = self.db.read(move |tx| {
            let values = settings::load(tx)?;
            let due = due::is_due(&store::sync(tx)?, values.number(&SMS_POLL_INTERVAL), now);
            Ok::<_, DbError>(values.on(&SMS_ENABLED) && due)
        });
        if !due.await? {
            return Ok(None);
        }
        match self.poll().await {
            Err(PollError::Busy | PollError::Off) => Ok(None),
            polled => polled.map(Some),
        }
    }

    /// Polls now, whether or not a poll is due.
    pub async fn poll(&self) -> Result<Polled, PollError> {
        let now = self.clock.now();
        let begun = move |tx: &Transaction<'_>| {
            if !settings::load(tx)?.on(&SMS_ENABLED) {
                return Err(PollError::Off);
            }
            let lease = lease::take(tx, NAME, now, LEASE)?.ok_or(PollError::Busy)?;
            Ok((lease, store::sync(tx)?.mark))
        };
        let (lease, mark) = self.db.write(begun).await?;
        let answer = self.ask(&mark).await;
        self.settle(lease, mark.seeded, answer).await
    }

    async fn ask(&self, mark: &Mark) -> Result<Taken, ReadError> {
        if !mark.seeded {
            return Ok(Taken { fresh: vec![], mark: self.seed().await? });
        }
        let now = self.clock.now();
        let (from, limit) = mark.query_by_id();
        if mark.top.is_some() || mark.newest.is_none() {
            let rows = self.inbox.from(from, limit).await?;
            if let Some(taken) = mark.by_id(&rows, now) {
                return Ok(taken);
            }
        }
        // Read before the rows: a message that arrives in between has a higher id, so the new mark does not skip it.
        let last = self.inbox.last().await?;
        let (from, limit) = mark.query_by_date();
        let rows = self.inbox.from(from, limit).await?;
        Ok(mark.by_date(&rows, last.as_ref(), now))
    }

    async fn seed(&self) -> Result<Mark, ReadError> {
        let last = self.inbox.last().await?;
        let recent = self.inbox.newest(0, PER_POLL).await?;
        Ok(Mark::seed(last.as_ref(), &recent, self.clock.now()))
    }

    /// Stores the result, unless another poll took over the lease or the user disabled SMS in the meantime.
    async fn settle(
        &self,
        lease: Lease,
        seeded: bool,
        answer: Result<Taken, ReadError>,
    ) -> Result<Polled, PollError> {
        let now = self.clock.now();
        let settled = move |tx: &Transaction<'_>| {
            if !lease::ours(tx, &lease)? {
                return Err(PollError::Busy);
            }
            lease::give_back(tx, &lease)?;
            let values = settings::load(tx)?;
            if !values.on(&SMS_ENABLED) || store::sync(tx)?.mark.seeded != seeded {
                return Ok(Err(PollError::Off));
            }
            match answer {
                Ok(Taken { fresh, mark }) => {
                    store::polled(tx, &fresh, &mark, |body| preview(body, &values), now)?;
                    Ok(Ok(Polled { fresh: fresh.len(), more: mark.more, seeded: !seeded }))
                }
                // The inner error reaches the caller; the outer `Ok` commits the record of the failure.
                Err(error) => {
                    store::failed(tx, &error.said(), now)?;
                    Ok(Err(PollError::Phone(error)))
                }
            }
        };
        self.db.write(settled).await?
    }

    /// Enables reading SMS. It reads the inbox once and marks its messages as seen; if the phone refuses, SMS stays
    /// disabled.
    pub async fn turn_on(&self) -> Result<(), PollError> {
        let mark = self.seed().await?;
        let now = self.clock.now();
        let on = move |tx: &Transaction<'_>| {
            // If two calls race, the first one's mark stays, or messages that arrived in between would be lost.
            if settings::load(tx)?.on(&SMS_ENABLED) {
                return Ok(());
            }
            settings::store(tx, &SMS_ENABLED.key, "true")?;
            store::polled(tx, &[], &mark, Clone::clone, now)
        };
        Ok(self.db.write(on).await?)
    }
}
