//! Checks the text of a message that a tool wants to send. Pure.

/// The most characters in a text: more than any phone can send as one message in parts.
const LONGEST: usize = 10_000;

/// The text as it will be sent, or a sentence that says why it cannot be.
pub(crate) fn sendable(body: &str) -> Result<String, String> {
    let body = body.replace("\r\n", "\n");
    if body.trim().is_empty() {
        return Err("\"body\" must not be empty. Say what to send.".to_owned());
    }
    let length = body.chars().count();
    if length > LONGEST {
        return Err(format!("The text has {length} characters; a message takes at most {LONGEST}."));
    }
    // Phones trim the text, so trim it here: the draft then shows exactly what is sent. Many programs treat NUL as the
    // end of a text, so it could hide the rest.
    Ok(body.replace('\0', "").trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_what_the_phone_will_send_or_is_refused() {
        for (typed, expected) in [
            (" Hi\r\nthere \n", Some("Hi\nthere")),
            ("a\0b", Some("ab")),
            (" \n ", None),
            ("", None),
            (&"x".repeat(10_001), None),
        ] {
            assert_eq!(sendable(typed).ok().as_deref(), expected, "{typed:.20?}");
        }
    }
}
