//! A poll: asks the phone what is newer than the mark, queues it and moves the mark, all or nothing.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rusqlite::Transaction;

use super::due;
use super::inbox::Inbox;
use super::mark::{Mark, PER_POLL, Taken};
use super::port::ReadError;
use super::store::{self, PREVIEW};
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::lease::{self, Lease};
use crate::settings::{self, SMS_ENABLED, SMS_POLL_INTERVAL, Values};
use crate::tool::Eyes;
use crate::untrusted::Untrusted;

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
    /// It was full: the next tick goes on.
    pub more: bool,
    /// It was the first one: what lay there counts as seen.
    pub seeded: bool,
}

/// Why a poll did not.
#[derive(Debug, thiserror::Error)]
pub enum PollError {
    #[error("Reading SMS is off. Turn it on: kai settings set sms_enabled true")]
    Off,
    #[error("Another poll is under way. Try again in a moment.")]
    Busy,
    #[error(transparent)]
    Phone(#[from] ReadError),
    #[error(transparent)]
    Store(#[from] DbError),
}

const NAME: &str = "sms/poll";
/// A poll asks the phone three times at most, and each time has its own end.
const LEASE: SignedDuration = SignedDuration::from_mins(2);

/// Does somebody poll right now?
pub fn under_way(tx: &Transaction<'_>, now: Timestamp) -> Result<bool, DbError> {
    lease::held(tx, NAME, now)
}

impl Poller {
    /// One poll if it is due; `None` if it is not.
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

    /// One poll now.
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
        let (from, limit) = mark.first_look();
        if mark.top.is_some() || mark.newest.is_none() {
            let rows = self.inbox.from(from, limit).await?;
            if let Some(taken) = mark.by_id(&rows, now) {
                return Ok(taken);
            }
        }
        // Asked before the rows: what comes in between has a higher id and is not skipped by the new mark.
        let last = self.inbox.last().await?;
        let (from, limit) = mark.second_look();
        let rows = self.inbox.from(from, limit).await?;
        Ok(mark.by_date(&rows, last.as_ref(), now))
    }

    async fn seed(&self) -> Result<Mark, ReadError> {
        let last = self.inbox.last().await?;
        let recent = self.inbox.newest(0, PER_POLL).await?;
        Ok(Mark::seed(last.as_ref(), &recent, self.clock.now()))
    }

    /// Writes down what came of it, unless meanwhile somebody else polls or the person turned reading off.
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
                // The failure is written down; only the caller gets it as one.
                Err(error) => {
                    store::failed(tx, &error.to_string(), now)?;
                    Ok(Err(PollError::Phone(error)))
                }
            }
        };
        self.db.write(settled).await?
    }

    /// The person turns reading on: the phone must let us, and what lies there now counts as seen. Refused, it stays off.
    pub async fn turn_on(&self) -> Result<(), PollError> {
        let mark = self.seed().await?;
        let now = self.clock.now();
        let on = move |tx: &Transaction<'_>| {
            // Two at once: the first one's mark stands, or what came in between would be lost.
            if settings::load(tx)?.on(&SMS_ENABLED) {
                return Ok(());
            }
            settings::store(tx, &SMS_ENABLED.key, "true")?;
            store::polled(tx, &[], &mark, Clone::clone, now)
        };
        Ok(self.db.write(on).await?)
    }
}

/// The line that waits in the queue. Codes go before the text is cut, or half of one could stay.
fn preview(body: &Untrusted, values: &Values) -> Untrusted {
    Untrusted::new(Eyes::of_model(values).see(body).line(PREVIEW))
}
