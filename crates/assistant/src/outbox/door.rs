//! The door: nothing leaves but through here, and only for a person's tap.
//!
//! A tap opens it once: in one transaction the draft is compared with what the person saw, becomes SENDING, and gets
//! an attempt record. Only then is the phone called, with an [`Approved`] that nobody else can make:
//!
//! ```compile_fail
//! use kai_assistant::outbox::door::Approved;
//! let forged = Approved { to: "+15550100".to_owned(), body: "Hi".to_owned() };
//! ```
//!
//! Whoever holds one may read it, and has to be given it:
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
use rusqlite::Transaction;

use super::store::{self, Attempt};
use super::{Draft, DraftId, Status, number};
use crate::access::{Access, Known};
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::lease::{self, Lease};
use crate::ledger::{self, Record};

/// A person's approval of one message, for one attempt. Only the door can make one, and a sender takes it by value.
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

/// How a message that was handed over fared.
pub type Sending<'a> = Pin<Box<dyn Future<Output = Result<(), SendError>> + Send + 'a>>;

/// Why a message is not certainly on its way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The platform does not allow it; it certainly did not leave. What the person can do.
    #[error("{0}")]
    NotPermitted(String),
    /// It certainly did not leave. A sentence.
    #[error("{0}")]
    NotSent(String),
    /// It may have left. A sentence.
    #[error("{0}")]
    Unsure(String),
}

/// Something that was sent, as the phone keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentMessage {
    pub to: String,
    pub body: String,
    /// Bridges may know it to the second only.
    pub at: Timestamp,
}

/// What a look into the sent box brings; `None` where there is none to look into.
pub type Looking<'a> = Pin<Box<dyn Future<Output = Option<Vec<SentMessage>>> + Send + 'a>>;

/// A phone that can send.
pub trait Sender: Send + Sync {
    /// Hands the message over; `Ok` means that the phone took it.
    fn send(&self, approved: Approved) -> Sending<'_>;
    /// What was sent at that moment or later: settles an attempt nobody lived to see the end of.
    fn sent_since(&self, at: Timestamp) -> Looking<'_>;
}

/// What a person did, on which draft, and what they saw when they did it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tap {
    pub draft: DraftId,
    pub act: Act,
    /// [`Draft::digest`] of what was shown.
    pub shown: String,
    /// The attempts that had been made when it was shown: a tap on an older sight is stale.
    pub attempts: u32,
}

/// Which button.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// On a draft that waits.
    Send,
    /// On one that certainly did not leave.
    Retry,
    /// On one that may have left: the person knows it did not, or wants it twice.
    SendAgain,
}

impl Act {
    /// The button that a draft in this state has.
    pub fn fitting(status: &Status) -> Option<Self> {
        match status {
            Status::Pending => Some(Self::Send),
            Status::Failed(_) => Some(Self::Retry),
            Status::Unknown(_) => Some(Self::SendAgain),
            Status::Sending | Status::Sent(_) => None,
        }
    }
}

/// Why a tap did nothing.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error(
        "No phone that can send is connected, so nothing was sent. Run Kai in Termux on the phone: docs/sms.md"
    )]
    NoPhone,
    #[error("There is no draft number {}. See: kai drafts list", .0.0)]
    Unknown(DraftId),
    #[error("The draft is not what you saw any more, so nothing was sent. Look at it again.")]
    Changed,
    #[error("The draft is being sent right now; it cannot be stopped any more.")]
    Sending,
    #[error("The draft was sent already.")]
    Sent,
    #[error(
        "The phone was given the message, but that could not be written down (is the disk full?). It may have been sent: \
         look at the phone before you send it again."
    )]
    Unwritten,
    #[error("The draft is {0}; that cannot be done with it.")]
    NotNow(&'static str),
    #[error(transparent)]
    Store(#[from] DbError),
}

/// A phone answers long before this, or not at all.
const LEASE: SignedDuration = SignedDuration::from_mins(3);
/// What was handed over is in the sent box by then; what comes later the person wrote themselves.
const ON_ITS_WAY: SignedDuration = SignedDuration::from_mins(2);
/// The sent box is looked into for so long after an attempt.
const SETTLING: SignedDuration = SignedDuration::from_hours(24);

/// Opens for taps, and for nothing else.
#[derive(Clone)]
pub struct Door {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
    pub sender: Option<Arc<dyn Sender>>,
    /// What the last send learned about the permission to.
    pub access: Arc<Known>,
    /// Messages that are being handed over right now.
    pub under_way: Arc<AtomicUsize>,
}

impl Door {
    /// The person tapped. Carried to its end even when whoever asked goes away.
    pub async fn tap(&self, tap: Tap) -> Result<Draft, Refused> {
        let sender = self.sender.clone().ok_or(Refused::NoPhone)?;
        let door = self.clone();
        self.under_way.fetch_add(1, Ordering::SeqCst);
        let sent = tokio::spawn(async move {
            let _until_over = UnderWay(Arc::clone(&door.under_way));
            door.send(tap, sender.as_ref()).await
        });
        sent.await.unwrap_or(Err(Refused::Store(DbError::Stopping)))
    }

    /// Waits until nothing is being handed over, but not for ever. Whoever stops in the middle leaves a question.
    pub async fn rest(&self, longest: Duration) {
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
            Ok(()) => Status::Sent(String::new()),
            Err(SendError::NotPermitted(why) | SendError::NotSent(why)) => Status::Failed(why),
            Err(SendError::Unsure(why)) => Status::Unknown(why),
        };
        let may_have_left = !matches!(status, Status::Failed(_));
        let now = self.clock.now();
        let closed = self.db.write(move |tx| close(tx, attempt, &status, now)).await;
        // The store would say that nothing was changed, and somebody would send it again.
        closed.map_err(|error| if may_have_left { Refused::Unwritten } else { error })
    }

    fn learn(&self, outcome: &Result<(), SendError>) {
        let access = match outcome {
            Ok(()) => Access::Granted,
            Err(SendError::NotPermitted(what_to_do)) => Access::Denied(what_to_do.clone()),
            Err(SendError::NotSent(_) | SendError::Unsure(_)) => return,
        };
        self.access.learn(access, self.clock.now());
    }

    /// Takes a draft away without sending it; one that is being sent stays.
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

    /// Finds the attempts that nobody lived to see the end of, and looks into the phone's sent box for them. Returns
    /// how many were settled.
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
                let seen = Status::Sent("It was found among the phone's sent messages.".to_owned());
                record(tx, attempt, &seen, now)?;
                Ok::<_, DbError>(true)
            };
            settled += usize::from(self.db.write(outcome).await?);
        }
        Ok(settled)
    }
}

/// Counted until it is dropped, also by a panic.
struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Compares and sets: of two taps at once the second one finds the draft SENDING.
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
    // Only for `mark_orphans_unknown`: the row itself is what makes the second tap lose.
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

/// Marks drafts as unknown that nobody is sending any more: they may have been sent.
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

/// All drafts as they are now: one that died while being sent shows as unknown. Only looks; whoever acts writes it down.
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
    Status::Unknown("Kai was stopped while sending it. It may have been sent.".to_owned())
}

fn to_the_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// Phones trim what they send, and write numbers in their own way.
fn same_message(sent: &SentMessage, draft: &Draft) -> bool {
    number::same(&sent.to, &draft.to) && sent.body.trim() == draft.body.trim()
}
