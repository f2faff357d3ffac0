//! The door: the only place that sends drafts, and only when the user taps.
//!
//! Each tap makes one attempt: in one transaction the draft is compared with what the user saw, becomes SENDING, and
//! gets an attempt record. Only then is the phone called, with an [`Approved`] that no other module can make:
//!
//! ```compile_fail
//! use kai_assistant::outbox::door::Approved;
//! let forged = Approved { to: "+15550100".to_owned(), body: "Hi".to_owned() };
//! ```
//!
//! Other code can read one that it is given:
//!
//! ```
//! use kai_assistant::outbox::door::Approved;
//! fn length(approved: &Approved) -> usize { approved.to().len() + approved.body().len() }
//! ```

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_words::{Said, said};
use rusqlite::Transaction;

use super::store::{self, Attempt};
use super::{Draft, DraftId, Status, number};
use crate::access::{Access, Known};
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::lease::{self, Lease};
use crate::ledger::{self, Record};

/// The user's approval to send one message once. Only this module can make one, and a sender takes it by value.
#[derive(Debug)]
pub struct Approved {
    to: String,
    body: String,
}

impl Approved {
    pub fn to(&self) -> &str {
        &self.to
    }

    pub fn body(&self) -> &str {
        &self.body
    }
}

/// The future that [`Sender::send`] returns.
pub type Sending<'a> = Pin<Box<dyn Future<Output = Result<(), SendError>> + Send + 'a>>;

/// Why it is not certain that a message was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The platform does not allow it, so it was certainly not sent. The text says what the user can do.
    #[error("{0}")]
    NotPermitted(Said),
    /// It was certainly not sent. The text is a sentence that says why.
    #[error("{0}")]
    NotSent(Said),
    /// It may have been sent. The text is a sentence that says why this is unclear.
    #[error("{0}")]
    Unsure(Said),
}

/// A message in the phone's sent box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentMessage {
    pub to: String,
    pub body: String,
    /// When it was sent. Some bridges only know it to the second.
    pub at: Timestamp,
}

/// The future that [`Sender::sent_since`] returns; `None` if the sent box cannot be read.
pub type Looking<'a> = Pin<Box<dyn Future<Output = Option<Vec<SentMessage>>> + Send + 'a>>;

/// A phone that can send messages.
pub trait Sender: Send + Sync {
    /// Sends the message. `Ok` means that the phone accepted it.
    fn send(&self, approved: Approved) -> Sending<'_>;
    /// The messages sent at that time or later. It settles attempts whose outcome is unknown.
    fn sent_since(&self, at: Timestamp) -> Looking<'_>;
}

/// The user's tap on a draft, with what they saw when they tapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tap {
    pub draft: DraftId,
    pub act: Act,
    /// [`Draft::digest`] of what was shown.
    pub shown: String,
    /// The number of attempts when the draft was shown. If there were more since, the tap is stale.
    pub attempts: u32,
}

/// The button that the user tapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Sends a draft that waits.
    Send,
    /// Sends a draft again that was certainly not sent.
    Retry,
    /// Sends a draft again that may have been sent: the user knows that it was not, or wants it sent twice.
    SendAgain,
}

impl Act {
    /// The button that is shown for a draft with this status.
    pub fn fitting(status: &Status) -> Option<Self> {
        match status {
            Status::Pending => Some(Self::Send),
            Status::Failed(_) => Some(Self::Retry),
            Status::Unknown(_) => Some(Self::SendAgain),
            Status::Sending | Status::Sent(_) => None,
        }
    }
}

/// Why a tap or a discard failed.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error(
        "Nothing was sent, because no phone that can send SMS is connected. Run Kai in Termux on the phone: docs/sms.md"
    )]
    NoPhone,
    #[error("There is no draft number {}. See: kai drafts list", .0.0)]
    Unknown(DraftId),
    #[error("Nothing was sent, because the draft changed after you saw it. Check it again.")]
    Changed,
    #[error("The draft is being sent right now and cannot be stopped.")]
    Sending,
    #[error("The draft was already sent.")]
    Sent,
    #[error(
        "Kai handed the message to the phone but could not record it; the disk may be full. Check the phone before you \
         send it again."
    )]
    OutcomeNotStored,
    #[error("The draft is {0}, so that is not possible.")]
    NotNow(&'static str),
    #[error(transparent)]
    Store(#[from] DbError),
}

/// How long an attempt holds its lease. A phone answers long before this, or not at all.
const LEASE: SignedDuration = SignedDuration::from_mins(3);
/// How soon after an attempt its message is in the sent box. The user wrote any later message themselves.
const ON_ITS_WAY: SignedDuration = SignedDuration::from_mins(2);
/// How long after an attempt the sent box is searched for its message.
const SETTLING: SignedDuration = SignedDuration::from_hours(24);

/// Sends drafts when the user taps, and in no other case.
#[derive(Clone)]
pub struct Door {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
    pub sender: Option<Arc<dyn Sender>>,
    /// What the last attempt showed about the permission to send.
    pub access: Arc<Known>,
    /// How many messages are being sent right now.
    pub under_way: Arc<AtomicUsize>,
}

impl Door {
    /// Sends the draft that the user tapped. The attempt runs to its end even if the caller is dropped.
    pub async fn tap(&self, tap: Tap) -> Result<Draft, Refused> {
        let sender = self.sender.clone().ok_or(Refused::NoPhone)?;
        let door = self.clone();
        self.under_way.fetch_add(1, Ordering::SeqCst);
        let sent = tokio::spawn(async move {
            let _until_over = InFlightGuard(Arc::clone(&door.under_way));
            door.send(tap, sender.as_ref()).await
        });
        sent.await.unwrap_or(Err(Refused::Store(DbError::Stopping)))
    }

    /// Waits until no message is being sent, for at most `longest`. A message whose sending is interrupted ends up
    /// unknown.
    pub async fn rest(&self, longest: Duration) {
        if self.under_way.load(Ordering::SeqCst) > 0 {
            tracing::debug!("waiting for a message that is being sent");
        }
        let over = async {
            while self.under_way.load(Ordering::SeqCst) > 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        drop(tokio::time::timeout(longest, over).await);
    }

    async fn send(&self, tap: Tap, sender: &dyn Sender) -> Result<Draft, Refused> {
        let now = self.clock.now();
        let (approved, attempt, _lease) = self.db.write(move |tx| open(tx, &tap, now)).await?;
        let outcome = sender.send(approved).await;
        self.learn(&outcome);
        let status = match outcome {
            Ok(()) => Status::Sent(Said::default()),
            Err(SendError::NotPermitted(why) | SendError::NotSent(why)) => Status::Failed(why),
            Err(SendError::Unsure(why)) => Status::Unknown(why),
        };
        let may_have_left = !matches!(status, Status::Failed(_));
        let now = self.clock.now();
        let closed = self.db.write(move |tx| close(tx, attempt, &status, now)).await;
        // The store's error would say that nothing was changed, and the user might send the message again.
        closed.map_err(|error| if may_have_left { Refused::OutcomeNotStored } else { error })
    }

    fn learn(&self, outcome: &Result<(), SendError>) {
        let access = match outcome {
            Ok(()) => Access::Granted,
            Err(SendError::NotPermitted(what_to_do)) => Access::Denied(what_to_do.clone()),
            Err(SendError::NotSent(_) | SendError::Unsure(_)) => return,
        };
        self.access.learn(access, self.clock.now());
    }

    /// Deletes a draft without sending it. Refuses if it is being sent.
    pub async fn discard(&self, id: DraftId) -> Result<Draft, Refused> {
        let now = self.clock.now();
        let discarded = move |tx: &Transaction<'_>| {
            mark_orphans_unknown(tx, now)?;
            let draft = store::get(tx, id)?.ok_or(Refused::Unknown(id))?;
            if draft.status == Status::Sending {
                return Err(Refused::Sending);
            }
            store::delete(tx, id)?;
            let status = draft.status.state().as_str().to_owned();
            ledger::append(tx, &Record::Discarded { draft: id.0, status }, now)?;
            Ok(draft)
        };
        self.db.write(discarded).await
    }

    /// Looks in the phone's sent box for drafts whose outcome is unknown. Returns how many were found and marked as
    /// sent.
    pub async fn settle(&self) -> Result<usize, DbError> {
        let now = self.clock.now();
        let open = self.db.write(move |tx| unsettled(tx, now)).await?;
        let Some(sender) = &self.sender else { return Ok(0) };
        let mut settled = 0;
        for (draft, attempt) in open {
            let since = to_the_second(attempt.at);
            let Some(sent) = sender.sent_since(since).await else { continue };
            let until = attempt.at.saturating_add(ON_ITS_WAY).unwrap_or(attempt.at);
            let same = |m: &&SentMessage| (since..=until).contains(&m.at) && same_message(m, &draft);
            let found = sent.iter().filter(same).count();
            let now = self.clock.now();
            let outcome = move |tx: &Transaction<'_>| {
                if found <= store::others(tx, &draft, attempt)? {
                    return Ok(false);
                }
                let seen = Status::Sent(said::draft_reason_found());
                record(tx, attempt, &seen, now)?;
                Ok::<_, DbError>(true)
            };
            settled += usize::from(self.db.write(outcome).await?);
        }
        Ok(settled)
    }
}

/// Decrements the counter of running sends when it is dropped, even during a panic.
struct InFlightGuard(Arc<AtomicUsize>);

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Begins an attempt: checks the tap against the draft and marks the draft as SENDING in the same transaction, so that
/// the second of two concurrent taps is refused.
fn open(tx: &Transaction<'_>, tap: &Tap, now: Timestamp) -> Result<(Approved, Attempt, Lease), Refused> {
    mark_orphans_unknown(tx, now)?;
    let draft = store::get(tx, tap.draft)?.ok_or(Refused::Unknown(tap.draft))?;
    match (&draft.status, tap.act) {
        (Status::Sending, _) => return Err(Refused::Sending),
        (Status::Sent(_), _) => return Err(Refused::Sent),
        (status, act) if Act::fitting(status) == Some(act) => {}
        (status, _) => return Err(Refused::NotNow(status.state().as_str())),
    }
    if draft.digest() != tap.shown || draft.attempts != tap.attempts {
        return Err(Refused::Changed);
    }
    // The lease is only for `mark_orphans_unknown`. The status in the row is what refuses the second tap.
    let lease = lease::take(tx, &lease_of(draft.id), now, LEASE)?.ok_or(Refused::Sending)?;
    ledger::append(tx, &Record::Tap { draft: draft.id.0, digest: draft.digest() }, now)?;
    let attempt = store::begin(tx, &draft, now)?;
    Ok((Approved { to: draft.to, body: draft.body }, attempt, lease))
}

fn close(tx: &Transaction<'_>, attempt: Attempt, status: &Status, now: Timestamp) -> Result<Draft, Refused> {
    record(tx, attempt, status, now)?;
    lease::end(tx, &lease_of(attempt.draft))?;
    store::get(tx, attempt.draft)?.ok_or(Refused::Unknown(attempt.draft))
}

fn record(tx: &Transaction<'_>, attempt: Attempt, status: &Status, now: Timestamp) -> Result<(), DbError> {
    store::end(tx, attempt, status)?;
    let outcome = status.state().as_str().to_owned();
    ledger::append(tx, &Record::Sent { draft: attempt.draft.0, outcome }, now)
}

fn lease_of(draft: DraftId) -> String {
    format!("draft/{}", draft.0)
}

/// Marks drafts as unknown if they are SENDING but no process is sending them any more: they may have been sent.
fn mark_orphans_unknown(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    for draft in store::all(tx)?.iter().filter(|draft| draft.status == Status::Sending) {
        if lease::held(tx, &lease_of(draft.id), now)? {
            continue;
        }
        match store::last_attempt(tx, draft.id)? {
            Some(attempt) => record(tx, attempt, &died(), now)?,
            None => store::set_status(tx, draft.id, &died())?,
        }
    }
    Ok(())
}

fn unsettled(tx: &Transaction<'_>, now: Timestamp) -> Result<Vec<(Draft, Attempt)>, DbError> {
    mark_orphans_unknown(tx, now)?;
    let unknown = store::all(tx)?.into_iter().filter(|draft| matches!(draft.status, Status::Unknown(_)));
    let mut open = vec![];
    for draft in unknown {
        let recent = |attempt: &Attempt| now.duration_since(attempt.at) < SETTLING;
        if let Some(attempt) = store::last_attempt(tx, draft.id)?.filter(recent) {
            open.push((draft, attempt));
        }
    }
    Ok(open)
}

/// All drafts. One whose sending was interrupted is returned as unknown. This only reads; the next action on a draft
/// stores that status.
pub fn drafts(tx: &Transaction<'_>, now: Timestamp) -> Result<Vec<Draft>, DbError> {
    let mut all = store::all(tx)?;
    for draft in all.iter_mut().filter(|draft| draft.status == Status::Sending) {
        if !lease::held(tx, &lease_of(draft.id), now)? {
            draft.status = died();
        }
    }
    Ok(all)
}

fn died() -> Status {
    Status::Unknown(said::draft_reason_died())
}

fn to_the_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// Whether a sent message is this draft. Phones trim the text and format numbers in their own way.
fn same_message(sent: &SentMessage, draft: &Draft) -> bool {
    number::same(&sent.to, &draft.to) && sent.body.trim() == draft.body.trim()
}
