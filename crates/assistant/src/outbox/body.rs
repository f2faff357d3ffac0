//! Checks the text of a message that a tool or the user wants to send. Pure.

/// The most characters in a text: more than any phone can send as one message in parts.
const LONGEST: usize = 10_000;
/// The most characters in a mail, with what it quotes.
const LONGEST_MAIL: usize = 100_000;
/// The most characters in a mail's subject.
const LONGEST_SUBJECT: usize = 500;

/// Why a text cannot be sent. `Display` says it to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unsendable {
    #[error("\"body\" must not be empty. Say what to send.")]
    Empty,
    #[error("The text has {length} characters; a message takes at most {most}.")]
    TooLong { length: usize, most: usize },
    #[error("\"subject\" must be one line of at most {LONGEST_SUBJECT} characters.")]
    Subject,
}

/// The text as it will be sent.
pub(crate) fn sendable(body: &str) -> Result<String, Unsendable> {
    checked(body, LONGEST)
}

/// The text of a mail as it will be sent.
pub(crate) fn sendable_mail(body: &str) -> Result<String, Unsendable> {
    checked(&body.replace("\r\n", "\n").replace('\r', "\n"), LONGEST_MAIL)
}

/// The subject of a mail as it will be sent; it may be empty.
pub(crate) fn subject(typed: &str) -> Result<String, Unsendable> {
    let typed = typed.trim();
    let is_line = !typed.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'));
    let fits = typed.chars().count() <= LONGEST_SUBJECT;
    if is_line && fits { Ok(typed.to_owned()) } else { Err(Unsendable::Subject) }
}

fn checked(body: &str, most: usize) -> Result<String, Unsendable> {
    // Many programs treat NUL as the end of a text, so it could hide the rest.
    let body = body.replace("\r\n", "\n").replace('\0', "");
    if body.trim().is_empty() {
        return Err(Unsendable::Empty);
    }
    let length = body.chars().count();
    if length > most {
        return Err(Unsendable::TooLong { length, most });
    }
    // Phones trim the text, so trim it here: the draft then shows exactly what is sent.
    Ok(body.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_what_the_phone_will_send_or_is_refused() {
        for (typed, expected) in [
            (" Hi\r\nthere \n", Some("Hi\nthere")),
            ("a\0b", Some("ab")),
            (" \0 ", None),
            (" \n ", None),
            ("", None),
            (&"x".repeat(10_001), None),
        ] {
            assert_eq!(sendable(typed).ok().as_deref(), expected, "{typed:.20?}");
        }
        assert_eq!(sendable_mail(&"x".repeat(10_001)).map(|text| text.len()), Ok(10_001));
        assert_eq!(sendable_mail(" a\r\nb\rc\0 ").as_deref(), Ok("a\nb\nc"));
        assert!(sendable_mail(&"x".repeat(100_001)).is_err());
    }

    #[test]
    fn a_subject_is_one_line() {
        assert_eq!(subject(" Dinner? ").as_deref(), Ok("Dinner?"));
        assert_eq!(subject("").as_deref(), Ok(""));
        for typed in ["a\r\nBcc: b@x.test", "a\nb", "a\0b", "a\u{2028}b", &"x".repeat(501)] {
            assert_eq!(subject(typed), Err(Unsendable::Subject), "{typed:.20?}");
        }
    }
}
