//! The door: the only place that sends drafts, and only when the user taps.
//!
//! Each tap makes one attempt: in one transaction the draft is compared with what the user saw, becomes SENDING, and
//! gets an attempt record. Only then is the phone called, with an [`Approved`] that no other module can make:
//!
//! ```compile_fail
//! use kai_assistant::outbox::door::Approved;
//! let forged = Approved { to: "+15550100".to_owned(), body: "Hi".to_owned(), tapped_at: Default::default() };
//! ```
//!
//! Other code can read one that it is given:
//!
//! ```
//! use kai_assistant::outbox::door::Approved;
//! fn length(approved: &Approved) -> usize { approved.to().len() + approved.body().len() }
//! ```
//!
//! Every draft leaves by its own phone, whose sender is in [`Senders`] while the phone is there, or by its own mail
//! account, which the [`Mailer`] knows.

mod discard;
mod edit;
mod open;
#[cfg_attr(not(feature = "sms"), path = "no_phones.rs")]
mod phones;
mod senders;
mod settle;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_words::{Said, said};
use rusqlite::Transaction;

use self::open::{Opened, UnderWay, open};
use self::senders::Entry;
use super::mail::Mail;
use super::store::{self, Attempt};
use super::{Channel, Draft, DraftId, DraftState, Status, copies, number};
use crate::access::Access;
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::lease;
use crate::ledger::{self, Record};
use crate::source::SourceId;

pub use self::edit::NotEdited;
pub use self::senders::Senders;

/// The user's approval to send one SMS once, or to open it once in the phone's own app. Only this module can make one,
/// and a sender takes it by value.
#[derive(Debug)]
pub struct Approved {
    to: String,
    body: String,
    tapped_at: Timestamp,
}

impl Approved {
    pub fn to(&self) -> &str {
        &self.to
    }

    pub fn body(&self) -> &str {
        &self.body
    }

    /// Whether the phone's own list shows the message: the same number and text, dated after the tap. The clock of a
    /// phone may be two minutes behind, so a message that was listed before must not be asked about.
    pub fn is_listed_as(&self, sent: &SentMessage) -> bool {
        let since = self.tapped_at.saturating_sub(CLOCKS_DIFFER).unwrap_or(self.tapped_at);
        sent.at >= since && is_same(sent, &self.to, &self.body)
    }
}

/// The user's approval to answer one notification once.
#[derive(Debug)]
pub struct ApprovedReply {
    reply_id: String,
    body: String,
}

impl ApprovedReply {
    /// What the phone calls this reply. It takes each only once.
    pub fn reply_id(&self) -> &str {
        &self.reply_id
    }

    pub fn body(&self) -> &str {
        &self.body
    }
}

/// The user's approval to send one mail once.
#[derive(Debug)]
pub struct ApprovedMail(Mail);

impl ApprovedMail {
    pub fn mail(&self) -> &Mail {
        &self.0
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
    /// The phone went away before it got anything, so it was certainly not sent. The draft goes on waiting.
    #[error("The phone is not connected any more.")]
    NotConnected,
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

/// How long a phone that gives no answer has to list a message before it is unclear whether it was sent.
pub const LISTED_WITHIN: Duration = Duration::from_mins(1);

/// A phone that can send messages.
pub trait Sender: Send + Sync {
    /// Sends the message. `Ok` means that the phone accepted it. A phone that gives no answer is watched until its own
    /// list shows the message ([`Approved::is_listed_as`]), for [`LISTED_WITHIN`].
    fn send(&self, approved: Approved) -> Sending<'_>;
    /// The messages sent at that time or later. It settles attempts whose outcome is unknown.
    fn sent_since(&self, at: Timestamp) -> Looking<'_>;
    /// Opens the phone's own SMS app with the message filled in. `Ok` means that the phone was told.
    fn compose(&self, _: Approved) -> Sending<'_> {
        cannot("This phone cannot open its SMS app for Kai.")
    }
    /// Answers a notification. `Ok` means that the phone was told.
    fn reply(&self, _: ApprovedReply) -> Sending<'_> {
        cannot("This phone cannot answer notifications.")
    }
}

/// The mail accounts that mails can leave by.
pub trait Mailer: Send + Sync {
    /// Sends the mail by this account. `Ok` means that the account's server took it over.
    fn send(&self, account: SourceId, approved: ApprovedMail) -> Sending<'_>;
}

fn cannot(why: &'static str) -> Sending<'static> {
    Box::pin(std::future::ready(Err(SendError::NotSent(why.into()))))
}

/// How a notification can be answered now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answerable {
    /// What the phone calls the reply.
    pub reply_id: String,
    pub app: String,
    pub conversation: String,
}

/// Finds out how the notification with that id can be answered; `None` if it is gone or offers no reply.
pub type FindAnswerable = fn(&Transaction<'_>, &str, Timestamp) -> Result<Option<Answerable>, DbError>;

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
    /// Opens a draft that was certainly not sent in the phone's own SMS app, where the user sends it.
    Compose,
}

impl Act {
    /// The button that sends a draft with this status.
    pub fn fitting(status: &Status) -> Option<Self> {
        match status {
            Status::Pending => Some(Self::Send),
            Status::Failed(_) => Some(Self::Retry),
            Status::Unknown(_) => Some(Self::SendAgain),
            Status::Sending | Status::Sent(_) => None,
        }
    }

    fn fits(self, status: &Status) -> bool {
        match self {
            Self::Compose => matches!(status, Status::Pending | Status::Failed(_)),
            Self::Send | Self::Retry | Self::SendAgain => Self::fitting(status) == Some(self),
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
    #[error("Your phone \"{0}\" is not connected, so nothing was sent.")]
    NotConnected(String),
    #[error(
        "Nothing was sent, because the phone of this draft is no longer paired. Discard the draft, or pair the phone \
         again and ask for a new one."
    )]
    Unpaired,
    /// The phone is not allowed to. The sentence says what to turn on.
    #[error("{0}")]
    SwitchedOff(Said),
    #[error("The draft was not opened on the phone: {0}")]
    NotOpened(Said),
    #[error("There is no draft number {}. See: kai drafts list", .0.0)]
    Unknown(DraftId),
    #[error("Nothing was sent, because the draft changed after you saw it. Check it again.")]
    Changed,
    #[error("The draft is being sent right now and cannot be stopped.")]
    Sending,
    #[error("The draft was already sent.")]
    Sent,
    #[error(
        "Kai handed the message over but could not record it; the disk may be full. Check whether it arrived before you \
         send it again."
    )]
    OutcomeNotStored,
    #[error("The draft is {0}, so that is not possible.")]
    NotNow(&'static str),
    #[error("Only an SMS of a paired phone can be opened on the phone.")]
    NothingToOpen,
    #[error("Nothing was sent, because this Kai does not send mail.")]
    NoMail,
    #[error(transparent)]
    Store(#[from] DbError),
}

/// How long an attempt holds its lease. A phone answers long before this, or not at all.
const LEASE: SignedDuration = SignedDuration::from_mins(3);
/// How far the clock of a paired phone may be from ours.
const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_mins(2);

/// Sends drafts when the user taps, and in no other case.
#[derive(Clone)]
pub struct Door {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
    pub senders: Arc<Senders>,
    /// `None` in a Kai without mail.
    pub mailer: Option<Arc<dyn Mailer>>,
    pub answerable: FindAnswerable,
    /// How many messages are being sent right now.
    pub under_way: Arc<AtomicUsize>,
}

impl Door {
    /// Does what the user tapped on a draft. The attempt runs to its end even if the caller is dropped.
    pub async fn tap(&self, tap: Tap) -> Result<Draft, Refused> {
        let door = self.clone();
        self.under_way.fetch_add(1, Ordering::SeqCst);
        let sent = tokio::spawn(async move {
            let _until_over = InFlightGuard(Arc::clone(&door.under_way));
            door.attempt(tap).await
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

    async fn attempt(&self, tap: Tap) -> Result<Draft, Refused> {
        // If the user has sent it on the phone meanwhile, it must not leave again.
        self.settle_composed(tap.draft).await?;
        let (now, door) = (self.clock.now(), self.clone());
        let opened = self.db.write(move |tx| open(tx, &tap, &door, now)).await?;
        match opened {
            Opened::Over(draft) => Ok(*draft),
            Opened::Send(approved, entry, under_way) => {
                self.note_foreign(&under_way, &entry).await;
                let outcome = entry.sender.send(approved).await;
                self.learn(&entry, &outcome);
                self.close(*under_way, outcome).await
            }
            Opened::Reply(approved, entry, under_way) => {
                let outcome = entry.sender.reply(approved).await;
                self.learn(&entry, &outcome);
                self.close(*under_way, outcome).await
            }
            Opened::Compose(approved, entry, under_way) => {
                self.note_foreign(&under_way, &entry).await;
                let outcome = entry.sender.compose(approved).await;
                self.close_composed(*under_way, outcome).await
            }
            Opened::Mail(approved, mailer, under_way) => {
                let outcome = mailer.send(under_way.before.phone, approved).await;
                self.close(*under_way, outcome).await
            }
        }
    }

    /// Stores what became of an attempt to send.
    async fn close(&self, under_way: UnderWay, outcome: Result<(), SendError>) -> Result<Draft, Refused> {
        let status = match outcome {
            Ok(()) => Status::Sent(Said::default()),
            Err(SendError::NotConnected) => return self.take_back(under_way).await,
            Err(SendError::NotPermitted(why) | SendError::NotSent(why)) => Status::Failed(why),
            Err(SendError::Unsure(why)) => Status::Unknown(why),
        };
        let may_have_left = !matches!(status, Status::Failed(_));
        let (attempt, now) = (under_way.attempt, self.clock.now());
        let closed = move |tx: &Transaction<'_>| {
            if matches!(status, Status::Sent(_)) {
                keep_copy(tx, &under_way.before, attempt)?;
            }
            close(tx, attempt, &status, now)
        };
        let closed = self.db.write(closed).await;
        // The store's error would say that nothing was changed, and the user might send the message again.
        closed.map_err(|error| if may_have_left { Refused::OutcomeNotStored } else { error })
    }

    /// Stores whether a draft was opened on the phone. In doubt it counts as opened.
    async fn close_composed(
        &self,
        under_way: UnderWay,
        outcome: Result<(), SendError>,
    ) -> Result<Draft, Refused> {
        let why = match outcome {
            Ok(()) | Err(SendError::Unsure(_)) => {
                let id = under_way.before.id;
                return self.db.read(move |tx| store::get(tx, id)?.ok_or(Refused::Unknown(id))).await;
            }
            Err(SendError::NotConnected) => return self.take_back(under_way).await,
            Err(SendError::NotPermitted(why) | SendError::NotSent(why)) => why,
        };
        self.put_back(under_way).await?;
        Err(Refused::NotOpened(why))
    }

    /// The phone went away before it got anything: the draft is as it was, and the tap is refused.
    async fn take_back(&self, under_way: UnderWay) -> Result<Draft, Refused> {
        let refused = match &under_way.name {
            Some(name) => Refused::NotConnected(name.clone()),
            None => Refused::NoPhone,
        };
        self.put_back(under_way).await?;
        Err(refused)
    }

    async fn put_back(&self, under_way: UnderWay) -> Result<(), DbError> {
        let now = self.clock.now();
        let undone = move |tx: &Transaction<'_>| {
            store::take_back(tx, under_way.attempt, &under_way.before)?;
            lease::end(tx, &lease_of(under_way.before.id))?;
            let outcome = DraftState::Failed.as_str().to_owned();
            ledger::append(tx, &Record::Sent { draft: under_way.before.id.0, outcome }, now)
        };
        self.db.write(undone).await
    }

    fn learn(&self, entry: &Entry, outcome: &Result<(), SendError>) {
        let access = match outcome {
            Ok(()) => Access::Granted,
            Err(SendError::NotPermitted(what_to_do)) => Access::Denied(what_to_do.clone()),
            Err(SendError::NotConnected | SendError::NotSent(_) | SendError::Unsure(_)) => return,
        };
        entry.access.learn(access, self.clock.now());
    }
}

/// Decrements the counter of running sends when it is dropped, even during a panic.
struct InFlightGuard(Arc<AtomicUsize>);

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn close(tx: &Transaction<'_>, attempt: Attempt, status: &Status, now: Timestamp) -> Result<Draft, Refused> {
    record(tx, attempt, status, now)?;
    lease::end(tx, &lease_of(attempt.draft))?;
    store::get(tx, attempt.draft)?.ok_or(Refused::Unknown(attempt.draft))
}

/// Keeps a copy of a mail that was sent, for the Sent folder.
fn keep_copy(tx: &Transaction<'_>, draft: &Draft, attempt: Attempt) -> Result<(), DbError> {
    match mail_of(draft, attempt.at) {
        Some(mail) => copies::keep(tx, draft.phone, &mail, attempt.at),
        None => Ok(()),
    }
}

/// The mail that is made of a draft; `None` if it is none.
fn mail_of(draft: &Draft, tapped_at: Timestamp) -> Option<Mail> {
    let envelope = draft.mail.clone().filter(|_| draft.channel == Channel::Email)?;
    let to = draft.to.split(", ").filter(|one| !one.is_empty()).map(str::to_owned).collect();
    let quote = envelope.quote.as_ref().map(|quote| format!("\n\n{quote}"));
    let text = draft.body.clone() + &quote.unwrap_or_default();
    Some(Mail { to, envelope, text, date: tapped_at.as_millisecond() })
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
            Some(attempt) => record(tx, attempt, &died(draft.channel), now)?,
            None => store::set_status(tx, draft.id, &died(draft.channel))?,
        }
    }
    Ok(())
}

/// All drafts. One whose sending was interrupted is returned as unknown. This only reads; the next action on a draft
/// stores that status.
pub fn drafts(tx: &Transaction<'_>, now: Timestamp) -> Result<Vec<Draft>, DbError> {
    let mut all = store::all(tx)?;
    for draft in all.iter_mut().filter(|draft| draft.status == Status::Sending) {
        if !lease::held(tx, &lease_of(draft.id), now)? {
            draft.status = died(draft.channel);
        }
    }
    Ok(all)
}

fn died(channel: Channel) -> Status {
    Status::Unknown(match channel {
        Channel::Sms | Channel::Notification => said::draft_reason_died(),
        Channel::Email => said::draft_reason_died_mail(),
    })
}

/// Whether a sent message has this number and text. Phones trim the text and format numbers in their own way.
fn is_same(sent: &SentMessage, to: &str, body: &str) -> bool {
    number::same(&sent.to, to) && sent.body.trim() == body.trim()
}
