//! Keeps JSON text exactly as it was written, or wraps it where a provider needs an object. Pure.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// The arguments of a call as a JSON object. Anything else is wrapped in a field whose name tells the model that its
/// arguments were invalid. Invalid JSON in the history would get this request and every later one rejected.
pub(crate) fn arguments(text: &str) -> Option<Box<RawValue>> {
    match object(text) {
        Some(object) => Some(object),
        None if matches!(text.trim(), "" | "null") => wrap(&Empty {}),
        None => wrap(&Invalid { invalid_arguments: text }),
    }
}

/// A tool's result as a JSON object.
pub(crate) fn result(text: &str) -> Option<Box<RawValue>> {
    object(text).or_else(|| wrap(&Plain { result: text }))
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct Invalid<'a> {
    invalid_arguments: &'a str,
}

#[derive(Serialize)]
struct Plain<'a> {
    result: &'a str,
}

fn object(text: &str) -> Option<Box<RawValue>> {
    let raw: &RawValue = serde_json::from_str(text).ok()?;
    raw.get().starts_with('{').then(|| raw.to_owned())
}

fn wrap(value: &impl Serialize) -> Option<Box<RawValue>> {
    to_raw_value(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stay_as_written_or_are_wrapped() {
        for (text, expected) in [
            (r#"{"b": 1, "a":12345678901234567890123}"#, r#"{"b": 1, "a":12345678901234567890123}"#),
            (" {} ", "{}"),
            ("", "{}"),
            ("null", "{}"),
            (r#"{"a":"#, r#"{"invalid_arguments":"{\"a\":"}"#),
            ("[1]", r#"{"invalid_arguments":"[1]"}"#),
        ] {
            assert_eq!(arguments(text).unwrap().get(), expected);
        }
        assert_eq!(result("sunny").unwrap().get(), r#"{"result":"sunny"}"#);
        assert_eq!(result(r#"{"success":true}"#).unwrap().get(), r#"{"success":true}"#);
    }
}
