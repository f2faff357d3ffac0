//! What a person should know before they tap. Pure.

use super::Draft;
use super::segments::{Segments, segments};

/// Something remarkable about a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remark {
    /// Nothing was ever exchanged with this number, as far as Kai knows.
    FirstContact,
    /// A service, not a person.
    ShortNumber,
    /// It may cost extra.
    PremiumNumber,
    /// The text holds characters that cannot be seen, or that turn its direction around.
    Invisible,
    /// It leaves in several parts, and each is paid for.
    Parts(usize),
}

impl Remark {
    pub fn sentence(self) -> String {
        match self {
            Self::FirstContact => "You have not exchanged messages with this number before.".to_owned(),
            Self::ShortNumber => "This is a short number: a service, which may charge for it.".to_owned(),
            Self::PremiumNumber => "This looks like a premium number, which may cost extra.".to_owned(),
            Self::Invisible => {
                "The text holds characters that cannot be seen; they are spelled out below.".to_owned()
            }
            Self::Parts(count) => format!("It is long and leaves as {count} messages."),
        }
    }
}

pub fn remarks(draft: &Draft) -> Vec<Remark> {
    let Segments { count, .. } = segments(&draft.body);
    let all = [
        draft.first_contact.then_some(Remark::FirstContact),
        is_short(&draft.to).then_some(Remark::ShortNumber),
        is_premium(&draft.to).then_some(Remark::PremiumNumber),
        hides_something(&draft.body).then_some(Remark::Invisible),
        (count > 1).then_some(Remark::Parts(count)),
    ];
    all.into_iter().flatten().collect()
}

/// The text with everything that cannot be seen spelled out; line ends stay.
pub fn spelled_out(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (c, hidden) in looked_at(text) {
        if hidden {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

fn hides_something(text: &str) -> bool {
    looked_at(text).any(|(_, hidden)| hidden)
}

/// Every character, and whether it cannot be seen. Joiners and variation selectors beside a picture make another picture
/// of it, which can be seen; anywhere else they could spell out whole sentences that nobody reads.
fn looked_at(text: &str) -> impl Iterator<Item = (char, bool)> {
    let befores = std::iter::once(None).chain(text.chars().map(Some));
    text.chars().zip(befores).map(|(c, before)| {
        let of_picture = matches!(c, '\u{200d}' | '\u{fe0e}' | '\u{fe0f}') && before.is_some_and(is_picture);
        (c, is_invisible(c) && !of_picture)
    })
}

fn is_picture(c: char) -> bool {
    matches!(
        c,
        '\u{23}' | '\u{2a}' | '0'..='9' | '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
            | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{27bf}' | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}'
            | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}'
    )
}

/// Control, zero-width, direction-changing, tag and selector characters, with which text can be made to look like other
/// text or to say more than is seen.
fn is_invisible(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
                | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

fn is_short(number: &str) -> bool {
    !number.starts_with('+') && number.len() <= 6
}

/// Prefixes under which calls and messages cost extra, in a few countries. A hint, not a promise.
const PREMIUM: &[&str] =
    &["0900", "0190", "+49900", "+1900", "1900", "+4490", "+4498", "+43900", "+43930", "+41900", "+3389"];

fn is_premium(number: &str) -> bool {
    !is_short(number) && PREMIUM.iter().any(|prefix| number.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::{Channel, DraftId, Status};
    use super::*;
    use crate::gate::RunKind;

    fn draft(to: &str, body: &str) -> Draft {
        Draft {
            id: DraftId(1),
            channel: Channel::Sms,
            to: to.to_owned(),
            body: body.to_owned(),
            in_reply_to: None,
            quoted: None,
            first_contact: false,
            origin: RunKind::Chat,
            conversation: 0,
            created_at: Timestamp::UNIX_EPOCH,
            status: Status::Pending,
            attempts: 0,
        }
    }

    #[test]
    fn what_is_remarkable_is_said() {
        let stranger = Draft { first_contact: true, ..draft("+15550100", "Hi") };
        for (name, draft, expected) in [
            ("an ordinary one", draft("+15550100", "Hi, 7 pm?\nA."), vec![]),
            ("a stranger", stranger, vec![Remark::FirstContact]),
            ("a service", draft("12345", "STOP"), vec![Remark::ShortNumber]),
            ("a premium number", draft("+19005550100", "Hi"), vec![Remark::PremiumNumber]),
            ("a hidden turn", draft("+15550100", "pay \u{202e}001$"), vec![Remark::Invisible]),
            ("an emoji family", draft("+15550100", "👨\u{200d}👩\u{200d}👧"), vec![]),
            ("a long one", draft("+15550100", &"x".repeat(400)), vec![Remark::Parts(3)]),
        ] {
            assert_eq!(remarks(&draft), expected, "{name}");
        }
    }

    #[test]
    fn nothing_stays_hidden() {
        assert_eq!(spelled_out("a\u{202e}b\u{200b}\nc\u{7}"), "a\\u{202e}b\\u{200b}\nc\\u{7}");
        assert_eq!(spelled_out("grün 😀 ❤\u{fe0f} 1\u{fe0f}\u{20e3}"), "grün 😀 ❤\u{fe0f} 1\u{fe0f}\u{20e3}");
        let smuggled = "Yes\u{e0150}\u{fe05}a\u{200d}b\u{2800}";
        assert_eq!(spelled_out(smuggled), "Yes\\u{e0150}\\u{fe05}a\\u{200d}b\\u{2800}");
    }
}
