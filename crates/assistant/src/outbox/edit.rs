//! What becomes of a draft that the user edits. Pure.
//!
//! The user can change the text, of an SMS the number, and of a mail its addresses and subject, as long as it was
//! certainly not sent. It keeps its id and gets another digest, so that a tap on what was shown before is refused.

use kai_words::{Said, said};

use super::body::{self, Unsendable};
use super::mail::Envelope;
use super::{Channel, Draft, DraftId, Status, address, number};

/// What the user typed over a draft. `None` leaves a part as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub draft: DraftId,
    /// [`Draft::digest`] of what they saw when they began.
    pub seen: String,
    pub to: Option<String>,
    pub body: Option<String>,
    /// Only mails have these.
    pub mail: MailEdit,
}

/// What the user typed over the headers of a mail.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MailEdit {
    pub cc: Option<String>,
    pub bcc: Option<String>,
    pub subject: Option<String>,
    /// Leaves out what it quotes.
    pub without_quote: bool,
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
    /// Something that was typed is no mail address.
    NoAddress,
    /// Nobody would receive the mail.
    Nobody,
    /// The subject is too long, or more than one line.
    Subject,
    Empty,
    TooLong {
        length: usize,
        most: usize,
    },
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
            Self::NoAddress => said::drafts_edit_no_address(),
            Self::Nobody => said::drafts_edit_nobody(),
            Self::Subject => said::drafts_edit_subject(),
            Self::Empty => said::drafts_edit_empty(),
            Self::TooLong { length, most } => said::drafts_edit_too_long(length, most),
        }
    }
}

impl From<Unsendable> for Unfit {
    fn from(why: Unsendable) -> Self {
        match why {
            Unsendable::Empty => Self::Empty,
            Unsendable::TooLong { length, most } => Self::TooLong { length, most },
            Unsendable::Subject => Self::Subject,
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
    match before.channel {
        Channel::Sms | Channel::Notification => before.to != after.to && !number::same(&before.to, &after.to),
        Channel::Email => {
            let (before, after) = (before.everybody(), after.everybody());
            !after.split(", ").all(|one| before.split(", ").any(|known| address::same(known, one)))
        }
    }
}

/// Whether it still goes to somebody who was to receive the answer.
fn still_answers(before: &Draft, after: &Draft) -> bool {
    match before.channel {
        Channel::Sms | Channel::Notification => !goes_elsewhere(before, after),
        Channel::Email => before.to.split(", ").any(|known| {
            let everybody = after.everybody();
            everybody.split(", ").any(|one| address::same(known, one))
        }),
    }
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
        (Channel::Email, Some(typed)) => addresses(typed)?.join(", "),
        (_, None) | (Channel::Notification, Some(_)) => before.to.clone(),
    };
    let body = match (&edit.body, before.channel) {
        (Some(typed), Channel::Email) => body::sendable_mail(typed)?,
        (Some(typed), Channel::Sms | Channel::Notification) => body::sendable(typed)?,
        (None, _) => before.body.clone(),
    };
    let mail = before.mail.as_ref().map(|mail| headers(mail, &edit.mail)).transpose()?;
    let (edited, status, composed_at) = (true, Status::Pending, None);
    let after = Draft { to, body, mail, edited, status, composed_at, ..before.clone() };
    if after.channel == Channel::Email && after.everybody().is_empty() {
        return Err(Unfit::Nobody);
    }
    Ok(if still_answers(before, &after) { after } else { no_answer(after) })
}

/// The draft as a message of its own. What somebody wrote to the user is not sent on to others.
fn no_answer(draft: Draft) -> Draft {
    let mail = draft.mail.map(|mail| Envelope { in_reply_to: None, references: vec![], quote: None, ..mail });
    Draft { in_reply_to: None, quoted: None, mail, ..draft }
}

/// The headers of a mail as they are after the edit.
fn headers(before: &Envelope, edit: &MailEdit) -> Result<Envelope, Unfit> {
    let list = |typed: &Option<String>, before: &[String]| match typed {
        Some(typed) => addresses(typed),
        None => Ok(before.to_vec()),
    };
    Ok(Envelope {
        cc: list(&edit.cc, &before.cc)?,
        bcc: list(&edit.bcc, &before.bcc)?,
        subject: match &edit.subject {
            Some(typed) => body::subject(typed)?,
            None => before.subject.clone(),
        },
        quote: before.quote.clone().filter(|_| !edit.without_quote),
        ..before.clone()
    })
}

/// The addresses that were typed.
pub fn addresses(typed: &str) -> Result<Vec<String>, Unfit> {
    address::list(typed).map_err(|_| Unfit::NoAddress)
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
            mail: None,
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
        Edit { draft: before.id, seen: before.digest(), to, body, mail: MailEdit::default() }
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
            ("too long", draft(), None, Some(long.as_str()), Unfit::TooLong { length: 10_001, most: 10_000 }),
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

    fn mail() -> Draft {
        let envelope = Envelope {
            from: "me@home.test".to_owned(),
            cc: vec!["bob@example.org".to_owned()],
            subject: "Re: Dinner".to_owned(),
            quote: Some("Alice wrote:\n> Dinner?".to_owned()),
            message_id: "1@home.test".to_owned(),
            in_reply_to: Some("0@example.org".to_owned()),
            references: vec!["0@example.org".to_owned()],
            ..Envelope::default()
        };
        let in_reply_to = Some(ReplyTo::Email("1.2.3".to_owned()));
        let to = "alice@example.org".to_owned();
        Draft { channel: Channel::Email, to, mail: Some(envelope), in_reply_to, ..draft() }
    }

    #[test]
    fn a_mail_is_an_answer_as_long_as_it_goes_to_whom_it_answers() {
        for (name, to, cc, is_answer, elsewhere) in [
            ("nothing", None, None, true, false),
            ("another spelling", Some("Alice <Alice@EXAMPLE.org>"), None, true, false),
            ("without a copy", None, Some(""), true, false),
            ("one more", Some("alice@example.org; carol@example.org"), None, true, true),
            ("somebody else", Some("carol@example.org"), Some(""), false, true),
            ("moved to Cc", Some("bob@example.org"), Some("alice@example.org"), true, false),
        ] {
            let before = mail();
            let headers = MailEdit { cc: cc.map(str::to_owned), ..MailEdit::default() };
            let edit = Edit { mail: headers, ..typed(&before, to, None) };
            let after = edited(&before, &edit).unwrap();
            assert_eq!(after.in_reply_to.is_some(), is_answer, "{name}");
            let envelope = after.mail.clone().unwrap();
            assert_eq!(
                envelope.in_reply_to.is_some() && !envelope.references.is_empty(),
                is_answer,
                "{name}"
            );
            assert_eq!(envelope.quote.is_some(), is_answer, "{name}: is what it answers sent with it?");
            assert_eq!(goes_elsewhere(&before, &after), elsewhere, "{name}");
            assert_eq!(envelope.message_id, "1@home.test", "{name}");
        }
    }

    #[test]
    fn the_headers_of_a_mail_are_checked_and_are_part_of_what_is_approved() {
        let before = mail();
        let headers = |cc: &str, bcc: &str, subject: &str| MailEdit {
            cc: Some(cc.to_owned()),
            bcc: Some(bcc.to_owned()),
            subject: Some(subject.to_owned()),
            without_quote: false,
        };
        let by =
            |mail: MailEdit, to: Option<&str>| edited(&before, &Edit { mail, ..typed(&before, to, None) });
        for (name, mail, to, expected) in [
            ("no address", headers("bob", "", ""), None, Unfit::NoAddress),
            ("no address in To", headers("", "", ""), Some("alice at home"), Unfit::NoAddress),
            ("a header in the subject", headers("", "", "a\r\nBcc: x@y.test"), None, Unfit::Subject),
            ("nobody", headers("", "", ""), Some(" "), Unfit::Nobody),
        ] {
            assert_eq!(by(mail, to), Err(expected), "{name}");
        }
        let changed = [
            headers("", "", "Re: Dinner"),
            headers("bob@example.org", "eve@example.org", "Re: Dinner"),
            headers("bob@example.org", "", "Re: Lunch"),
            headers("eve@example.org", "bob@example.org", "Re: Dinner"),
            MailEdit { without_quote: true, ..MailEdit::default() },
        ];
        let digests: std::collections::BTreeSet<String> = changed
            .into_iter()
            .map(|mail| by(mail, None).unwrap().digest())
            .chain([before.digest()])
            .collect();
        assert_eq!(digests.len(), 6);
        let hidden = headers("", "eve@example.org", "x");
        assert_eq!(by(hidden, Some("")).unwrap().everybody(), "eve@example.org");
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
