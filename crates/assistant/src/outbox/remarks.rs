//! Warnings about a draft that the user should see before they tap Send. Pure.

use super::segments::{Segments, segments};
use super::{Channel, Draft, address};
use crate::legible::hides_something;

/// A warning about a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remark {
    /// As far as Kai knows, no message was ever exchanged with this number, or with one of these addresses.
    FirstContact,
    /// The number is short, so it belongs to a service and not to a person.
    ShortNumber,
    /// The number looks like a premium number, which may cost extra.
    PremiumNumber,
    /// The text contains invisible characters, or characters that reverse its direction.
    Invisible,
    /// The name of the app or of the conversation contains such characters, so it may imitate another one.
    InvisibleName,
    /// It is sent in this many parts, and each part is charged.
    Parts(usize),
    /// The domain of an address has letters that can look like others.
    ForeignLetters,
    /// The mail has no subject.
    NoSubject,
    /// The subject contains invisible characters.
    InvisibleSubject,
}

pub fn remarks(draft: &Draft) -> Vec<Remark> {
    let of_channel = match draft.channel {
        Channel::Sms => of_sms(draft),
        Channel::Notification => of_conversation(draft),
        Channel::Email => of_mail(draft),
    };
    let invisible = hides_something(&draft.body).then_some(Remark::Invisible);
    of_channel.into_iter().chain(invisible).collect()
}

fn of_sms(draft: &Draft) -> Vec<Remark> {
    let Segments { count, .. } = segments(&draft.body);
    let all = [
        draft.first_contact.then_some(Remark::FirstContact),
        is_short(&draft.to).then_some(Remark::ShortNumber),
        is_premium(&draft.to).then_some(Remark::PremiumNumber),
        (count > 1).then_some(Remark::Parts(count)),
    ];
    all.into_iter().flatten().collect()
}

/// The app and whoever writes in the conversation chose its names. The number of a stranger is no warning here.
fn of_conversation(draft: &Draft) -> Vec<Remark> {
    let hides = hides_something(&draft.to) || draft.app.as_deref().is_some_and(hides_something);
    hides.then_some(Remark::InvisibleName).into_iter().collect()
}

fn of_mail(draft: &Draft) -> Vec<Remark> {
    let subject = draft.mail.as_ref().map(|mail| mail.subject.as_str()).unwrap_or_default();
    let spelled = draft.everybody().split(", ").any(|one| address::ascii(one) != one);
    let all = [
        draft.first_contact.then_some(Remark::FirstContact),
        spelled.then_some(Remark::ForeignLetters),
        subject.is_empty().then_some(Remark::NoSubject),
        hides_something(subject).then_some(Remark::InvisibleSubject),
    ];
    all.into_iter().flatten().collect()
}

fn is_short(number: &str) -> bool {
    !number.starts_with('+') && number.len() <= 6
}

/// Prefixes of premium numbers in a few countries. The list is incomplete, so it is only a hint.
const PREMIUM: &[&str] =
    &["0900", "0190", "+49900", "+1900", "1900", "+4490", "+4498", "+43900", "+43930", "+41900", "+3389"];

fn is_premium(number: &str) -> bool {
    !is_short(number) && PREMIUM.iter().any(|prefix| number.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::mail::Envelope;
    use super::super::{DraftId, Status};
    use super::*;
    use crate::gate::RunKind;
    use crate::source::SourceId;

    fn draft(to: &str, body: &str) -> Draft {
        Draft {
            id: DraftId(1),
            channel: Channel::Sms,
            phone: SourceId::HERE,
            to: to.to_owned(),
            app: None,
            body: body.to_owned(),
            mail: None,
            in_reply_to: None,
            quoted: None,
            first_contact: false,
            origin: RunKind::Chat,
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

    fn reply(to: &str, app: &str, body: &str) -> Draft {
        Draft { channel: Channel::Notification, app: Some(app.to_owned()), ..draft(to, body) }
    }

    fn mail(to: &str, subject: &str) -> Draft {
        let envelope = Envelope { subject: subject.to_owned(), ..Envelope::default() };
        Draft { channel: Channel::Email, mail: Some(envelope), ..draft(to, "Hi") }
    }

    #[test]
    fn what_is_remarkable_about_a_mail_is_said() {
        for (name, draft, expected) in [
            ("an ordinary one", mail("a@x.test, b@x.test", "Dinner"), vec![]),
            ("long", Draft { body: "x".repeat(4_000), ..mail("a@x.test", "Dinner") }, vec![]),
            (
                "a stranger",
                Draft { first_contact: true, ..mail("a@x.test", "Dinner") },
                vec![Remark::FirstContact],
            ),
            ("other letters", mail("a@x.test, a@раураl.test", "Dinner"), vec![Remark::ForeignLetters]),
            ("no subject", mail("a@x.test", ""), vec![Remark::NoSubject]),
            ("a hidden turn", mail("a@x.test", "001\u{202e}$"), vec![Remark::InvisibleSubject]),
        ] {
            assert_eq!(remarks(&draft), expected, "{name}");
        }
    }

    #[test]
    fn what_is_remarkable_is_said() {
        let stranger = Draft { first_contact: true, ..draft("+15550100", "Hi") };
        let turned = reply("Al\u{202e}ice", "Signal", "pay \u{202e}001$");
        for (name, draft, expected) in [
            ("an ordinary one", draft("+15550100", "Hi, 7 pm?\nA."), vec![]),
            ("a stranger", stranger, vec![Remark::FirstContact]),
            ("a service", draft("12345", "STOP"), vec![Remark::ShortNumber]),
            ("a premium number", draft("+19005550100", "Hi"), vec![Remark::PremiumNumber]),
            ("a hidden turn", draft("+15550100", "pay \u{202e}001$"), vec![Remark::Invisible]),
            ("an emoji family", draft("+15550100", "👨\u{200d}👩\u{200d}👧"), vec![]),
            ("a long one", draft("+15550100", &"x".repeat(400)), vec![Remark::Parts(3)]),
            ("a reply", reply("Alice", "Signal", "Hi"), vec![]),
            ("a reply to a number, of any length", reply("12345", "Mail", &"x".repeat(400)), vec![]),
            (
                "a name that hides something",
                reply("Al\u{200b}ice", "Signal", "Hi"),
                vec![Remark::InvisibleName],
            ),
            (
                "an app that hides something",
                reply("Alice", "Sig\u{200b}nal", "Hi"),
                vec![Remark::InvisibleName],
            ),
            ("both", turned, vec![Remark::InvisibleName, Remark::Invisible]),
        ] {
            assert_eq!(remarks(&draft), expected, "{name}");
        }
    }
}
