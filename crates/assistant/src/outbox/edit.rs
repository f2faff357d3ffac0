//! What becomes of a draft that the user edits. Pure.
//!
//! The user can change the text and, of an SMS, the number, as long as it was certainly not sent. It keeps its id and
//! gets another digest, so that a tap on what was shown before is refused.

use kai_words::{Said, said};

use super::body::{self, Unsendable};
use super::{Channel, Draft, DraftId, Status, number};

/// What the user typed over a draft. `None` leaves a part as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub draft: DraftId,
    /// [`Draft::digest`] of what they saw when they began.
    pub seen: String,
    pub to: Option<String>,
    pub body: Option<String>,
}

/// Why a draft cannot be edited like this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.said())]
pub enum Unfit {
    /// It was edited elsewhere in the meantime.
    Changed,
    Sending,
    Sent,
    MayHaveBeenSent,
    /// The reply to a notification goes to whom that came from.
    FixedRecipient,
    NoNumber,
    Empty,
    /// It has this many characters.
    TooLong(usize),
}

impl Unfit {
    pub fn said(self) -> Said {
        match self {
            Self::Changed => said::drafts_edit_changed(),
            Self::Sending => said::drafts_refused_sending(),
            Self::Sent => said::drafts_refused_sent(),
            Self::MayHaveBeenSent => said::drafts_edit_may_be_sent(),
            Self::FixedRecipient => said::drafts_edit_fixed(),
            Self::NoNumber => said::drafts_edit_no_number(),
            Self::Empty => said::drafts_edit_empty(),
            Self::TooLong(length) => said::drafts_edit_too_long(length, body::LONGEST),
        }
    }
}

impl From<Unsendable> for Unfit {
    fn from(why: Unsendable) -> Self {
        match why {
            Unsendable::Empty => Self::Empty,
            Unsendable::TooLong(length) => Self::TooLong(length),
        }
    }
}

/// Only what was certainly not sent can be edited.
fn may_edit(status: &Status) -> Result<(), Unfit> {
    match status {
        Status::Pending | Status::Failed(_) => Ok(()),
        Status::Sending => Err(Unfit::Sending),
        Status::Sent(_) => Err(Unfit::Sent),
        Status::Unknown(_) => Err(Unfit::MayHaveBeenSent),
    }
}

/// The number that was typed, as it will be dialled.
pub fn number(typed: &str) -> Result<String, Unfit> {
    number::recipient(typed).map_err(|_| Unfit::NoNumber)
}

/// Whether the message would go to somebody else, so that what is known about the recipient no longer holds.
pub(super) fn goes_elsewhere(before: &Draft, after: &Draft) -> bool {
    before.to != after.to && !number::same(&before.to, &after.to)
}

/// The draft as it is after the edit: it waits for a tap, whatever became of an earlier one. To another number it is no
/// answer any more.
pub(super) fn edited(before: &Draft, edit: &Edit) -> Result<Draft, Unfit> {
    may_edit(&before.status)?;
    if before.digest() != edit.seen {
        return Err(Unfit::Changed);
    }
    let to = match (before.channel, &edit.to) {
        (Channel::Sms, Some(typed)) => number(typed)?,
        (Channel::Notification, Some(typed)) if *typed != before.to => return Err(Unfit::FixedRecipient),
        (_, None) | (Channel::Notification, Some(_)) => before.to.clone(),
    };
    let body = match &edit.body {
        Some(typed) => body::sendable(typed)?,
        None => before.body.clone(),
    };
    let after =
        Draft { to, body, edited: true, status: Status::Pending, composed_at: None, ..before.clone() };
    if goes_elsewhere(before, &after) {
        return Ok(Draft { in_reply_to: None, quoted: None, ..after });
    }
    Ok(after)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::gate::RunKind;
    use crate::outbox::ReplyTo;
    use crate::source::SourceId;
    use crate::untrusted::Untrusted;

    fn draft() -> Draft {
        Draft {
            id: DraftId(1),
            channel: Channel::Sms,
            phone: SourceId::HERE,
            to: "+491715550100".to_owned(),
            app: None,
            body: "Hi".to_owned(),
            in_reply_to: Some(ReplyTo::Sms(42)),
            quoted: Some(Untrusted::new("Dinner?")),
            first_contact: false,
            origin: RunKind::Heartbeat,
            guest: None,
            conversation: 0,
            own: false,
            edited: false,
            created_at: Timestamp::UNIX_EPOCH,
            status: Status::Pending,
            attempts: 0,
            composed_at: None,
        }
    }

    fn typed(before: &Draft, to: Option<&str>, body: Option<&str>) -> Edit {
        let (to, body) = (to.map(str::to_owned), body.map(str::to_owned));
        Edit { draft: before.id, seen: before.digest(), to, body }
    }

    #[test]
    fn what_is_typed_is_what_waits() {
        let before = draft();
        for (name, to, body, expected) in [
            ("nothing", None, None, ("+491715550100", "Hi", true)),
            ("a text", None, Some(" Yes,\r\nat 8 "), ("+491715550100", "Yes,\nat 8", true)),
            ("another spelling", Some("0171 5550100"), None, ("01715550100", "Hi", true)),
            ("another number", Some("+1 555 0199"), None, ("+15550199", "Hi", false)),
        ] {
            let after = edited(&before, &typed(&before, to, body)).unwrap();
            assert_eq!((after.to.as_str(), after.body.as_str()), (expected.0, expected.1), "{name}");
            assert_eq!(after.in_reply_to.is_some(), expected.2, "{name}: is it an answer?");
            assert_eq!(after.quoted.is_some(), expected.2, "{name}: is what it answers shown?");
            let same = (to, body) == (None, None);
            assert_eq!(after.digest() == before.digest(), same, "{name}: a tap on the old one");
        }
        let opened = Draft {
            status: Status::Failed("No network.".into()),
            composed_at: Some(Timestamp::UNIX_EPOCH),
            attempts: 1,
            ..draft()
        };
        let after = edited(&opened, &typed(&opened, None, Some("Yes"))).unwrap();
        assert_eq!((after.status, after.composed_at, after.attempts), (Status::Pending, None, 1));
    }

    #[test]
    fn what_cannot_be_sent_or_is_gone_is_not_edited() {
        let reply = Draft { channel: Channel::Notification, to: "Alice".to_owned(), ..draft() };
        let with = |status| Draft { status, ..draft() };
        let long = "x".repeat(10_001);
        for (name, before, to, body, expected) in [
            ("no number", draft(), Some("Mom"), None, Unfit::NoNumber),
            ("nothing", draft(), Some(""), None, Unfit::NoNumber),
            ("no text", draft(), None, Some(" \n "), Unfit::Empty),
            ("too long", draft(), None, Some(long.as_str()), Unfit::TooLong(10_001)),
            ("somebody else in a chat", reply, Some("Bob"), None, Unfit::FixedRecipient),
            ("being sent", with(Status::Sending), None, Some("x"), Unfit::Sending),
            ("sent", with(Status::Sent(Said::default())), None, Some("x"), Unfit::Sent),
            ("maybe sent", with(Status::Unknown("?".into())), None, Some("x"), Unfit::MayHaveBeenSent),
        ] {
            assert_eq!(edited(&before, &typed(&before, to, body)), Err(expected), "{name}");
        }
        let stale = Edit { seen: "0".repeat(64), ..typed(&draft(), None, Some("x")) };
        assert_eq!(edited(&draft(), &stale), Err(Unfit::Changed));
    }

    #[test]
    fn a_reply_to_a_notification_keeps_its_recipient() {
        let reply = Draft { channel: Channel::Notification, to: "Alice".to_owned(), ..draft() };
        for to in [None, Some("Alice")] {
            let after = edited(&reply, &typed(&reply, to, Some("Yes"))).unwrap();
            assert_eq!((after.to.as_str(), after.body.as_str()), ("Alice", "Yes"));
            assert!(after.in_reply_to.is_some());
        }
    }
}
