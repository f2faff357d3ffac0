//! Finds out what became of drafts: looks for their messages among those that the phone lists as sent.

use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use jiff::{SignedDuration, Timestamp};
use kai_words::said;
use rusqlite::Transaction;

use super::senders::Entry;
use super::{CLOCKS_DIFFER, Door, SentMessage, UnderWay, is_same, mark_orphans_unknown, record};
use crate::db::DbError;
use crate::outbox::store::{self, Attempt, Others, Way};
use crate::outbox::{Channel, Draft, DraftId, Status, discarded};

/// How soon after an attempt its message is in the sent box. The user wrote any later message themselves.
const ON_ITS_WAY: SignedDuration = SignedDuration::from_mins(2);
/// How long after an attempt the sent box is searched for its message, and how long the user may take to send what is
/// open on the phone.
const SETTLING: SignedDuration = SignedDuration::from_hours(24);
/// How long a paired phone may take to list what it sent. One that takes longer must not hold up the others.
const PATIENCE: Duration = Duration::from_secs(10);

impl Door {
    /// Looks in the phones' sent boxes for drafts whose outcome is unknown, and for those that are open on a phone.
    /// Returns how many were found and marked as sent.
    pub async fn settle(&self) -> Result<usize, DbError> {
        let now = self.clock.now();
        let open = self.db.write(move |tx| unsettled(tx, now)).await?;
        let mut phones: Vec<_> = open.iter().map(|(draft, _)| draft.phone).collect();
        phones.sort_unstable();
        phones.dedup();
        let of_phone = phones.into_iter().map(|phone| {
            let drafts = open.iter().filter(move |(draft, _)| draft.phone == phone);
            async move {
                let mut settled = 0;
                for (draft, attempt) in drafts {
                    settled += usize::from(self.look_for(draft, *attempt).await?);
                }
                Ok::<usize, DbError>(settled)
            }
        });
        Ok(try_join_all(of_phone).await?.into_iter().sum())
    }

    /// Looks whether a draft that was opened on the phone has been sent there.
    pub(super) async fn settle_composed(&self, id: DraftId) -> Result<(), DbError> {
        let now = self.clock.now();
        let open = self.db.read(move |tx| composed(tx, id, now)).await?;
        let looks = open.iter().map(|(draft, attempt)| self.look_for(draft, *attempt));
        join_all(looks).await.into_iter().collect::<Result<Vec<bool>, DbError>>().map(drop)
    }

    /// Looks for the message of one attempt. Returns whether it was found.
    async fn look_for(&self, draft: &Draft, attempt: Attempt) -> Result<bool, DbError> {
        let Some(entry) = self.senders.get(draft.phone) else { return Ok(false) };
        let span = Span::of(draft, attempt);
        let Some(found) = count(&entry, draft, span).await else { return Ok(false) };
        let (draft, now) = (draft.clone(), self.clock.now());
        let outcome = move |tx: &Transaction<'_>| {
            let foreign = attempt.foreign_before.unwrap_or_default() as usize;
            let others = store::others(tx, &draft, attempt, span.rivals(), Others::MayHaveBeenSent)?;
            if found <= foreign + others {
                return Ok(false);
            }
            record(tx, attempt, &Status::Sent(said::draft_reason_found()), now)?;
            Ok::<_, DbError>(true)
        };
        self.db.write(outcome).await
    }

    /// Notes how many messages such as this one a paired phone lists before it is asked to send it, besides those of
    /// earlier attempts. Its clock may be behind, so what was there before could otherwise pass for this one.
    pub(super) async fn note_foreign(&self, under_way: &UnderWay, entry: &Entry) {
        let (draft, attempt) = (under_way.before.clone(), under_way.attempt);
        if draft.phone.is_here() {
            return;
        }
        let span = Span::of(&draft, Attempt { foreign_before: Some(0), ..attempt });
        let Some(listed) = count(entry, &draft, span).await else { return };
        let noted = move |tx: &Transaction<'_>| {
            let ours = store::others(tx, &draft, attempt, span.rivals(), Others::WereSent)?;
            store::note_foreign(tx, attempt, u32::try_from(listed.saturating_sub(ours)).unwrap_or(u32::MAX))
        };
        // Without the note, only messages that the phone dates after the tap count.
        if let Err(error) = self.db.write(noted).await {
            tracing::warn!(%error, "what the phone had sent before could not be noted");
        }
    }
}

/// The time in which the phone may have dated the message of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    since: Timestamp,
    until: Timestamp,
    /// How far the phone's clock may be from ours.
    differ: SignedDuration,
}

impl Span {
    fn of(draft: &Draft, attempt: Attempt) -> Self {
        let long = if attempt.way == Way::Compose { SETTLING } else { ON_ITS_WAY };
        let differ = if draft.phone.is_here() { SignedDuration::ZERO } else { CLOCKS_DIFFER };
        let since = match attempt.foreign_before {
            Some(_) => before(attempt.at, differ),
            None => to_the_second(attempt.at),
        };
        Self { since, until: after(attempt.at, long), differ }
    }

    /// When other attempts may have been made whose messages are dated in this time.
    fn rivals(self) -> (Timestamp, Timestamp) {
        (before(self.since, ON_ITS_WAY), after(self.until, self.differ))
    }
}

/// Counts the messages such as this draft that the phone dates in that time; `None` if its sent box cannot be read.
async fn count(entry: &Entry, draft: &Draft, span: Span) -> Option<usize> {
    let looking = entry.sender.sent_since(span.since);
    let sent = if draft.phone.is_here() {
        looking.await
    } else {
        tokio::time::timeout(PATIENCE, looking).await.unwrap_or_default()
    };
    let same = |sent: &&SentMessage| {
        (span.since..=span.until).contains(&sent.at) && is_same(sent, &draft.to, &draft.body)
    };
    Some(sent?.iter().filter(same).count())
}

fn unsettled(tx: &Transaction<'_>, now: Timestamp) -> Result<Vec<(Draft, Attempt)>, DbError> {
    mark_orphans_unknown(tx, now)?;
    discarded::sweep(tx, now)?;
    let mut open = vec![];
    for draft in store::all(tx)? {
        open.extend(open_attempt(tx, draft, now)?);
    }
    Ok(open)
}

/// The draft, if it is open on the phone.
fn composed(tx: &Transaction<'_>, id: DraftId, now: Timestamp) -> Result<Option<(Draft, Attempt)>, DbError> {
    match store::get(tx, id)?.filter(|draft| draft.composed_at.is_some()) {
        Some(draft) => open_attempt(tx, draft, now),
        None => Ok(None),
    }
}

/// The attempt on a draft that a look into the sent box may settle. No box lists the answers to notifications.
fn open_attempt(
    tx: &Transaction<'_>,
    draft: Draft,
    now: Timestamp,
) -> Result<Option<(Draft, Attempt)>, DbError> {
    let unclear = match draft.status {
        Status::Unknown(_) => true,
        Status::Pending => draft.composed_at.is_some(),
        Status::Sending | Status::Sent(_) | Status::Failed(_) => false,
    };
    if !unclear || draft.channel != Channel::Sms {
        return Ok(None);
    }
    let recent = |attempt: &Attempt| now.duration_since(attempt.at) < SETTLING;
    let attempt = store::last_attempt(tx, draft.id)?.filter(recent);
    Ok(attempt.map(|attempt| (draft, attempt)))
}

fn before(at: Timestamp, span: SignedDuration) -> Timestamp {
    at.saturating_sub(span).unwrap_or(at)
}

fn after(at: Timestamp, span: SignedDuration) -> Timestamp {
    at.saturating_add(span).unwrap_or(at)
}

fn to_the_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
