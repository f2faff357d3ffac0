//! Checks the text of a message that a tool or the user wants to send. Pure.

/// The most characters in a text: more than any phone can send as one message in parts.
pub(super) const LONGEST: usize = 10_000;

/// Why a text cannot be sent. `Display` says it to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unsendable {
    #[error("\"body\" must not be empty. Say what to send.")]
    Empty,
    #[error("The text has {0} characters; a message takes at most {LONGEST}.")]
    TooLong(usize),
}

/// The text as it will be sent.
pub(crate) fn sendable(body: &str) -> Result<String, Unsendable> {
    // Many programs treat NUL as the end of a text, so it could hide the rest.
    let body = body.replace("\r\n", "\n").replace('\0', "");
    if body.trim().is_empty() {
        return Err(Unsendable::Empty);
    }
    let length = body.chars().count();
    if length > LONGEST {
        return Err(Unsendable::TooLong(length));
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
    }
}
