//! The configuration for reaching a model, and the checks that reject what cannot work.

use std::fmt;

use reqwest::Url;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::detail::{Detail, Hint};
use crate::format::Format;
use crate::wire::Wire;
use crate::{ModelError, Place};

/// How to reach one model.
#[derive(Debug, Clone)]
pub struct Config {
    pub format: Format,
    pub base_url: String,
    pub model: String,
    pub key: Option<Key>,
    /// Size of the context window in tokens.
    pub window: usize,
    /// Request a streamed answer.
    pub stream: bool,
}

impl Config {
    /// The model's server and its name there.
    pub fn place(&self) -> Place {
        Place { base_url: self.base_url.trim().to_owned(), model: self.model.trim().to_owned() }
    }
}

/// An API key. It is zeroed when dropped, and its `Debug` output hides it.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Key(String);

impl Key {
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// The key itself, for storing it. Never log it or show it on a page.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Rejects a key that cannot be right, such as one pasted with a line break or a space.
pub(crate) fn check_key(key: &str) -> Result<(), ModelError> {
    let what = match () {
        () if key.is_empty() => Detail::KeyEmpty,
        () if key.contains(['\n', '\r']) => Detail::KeyLineBreak,
        () if !key.bytes().all(|byte| byte.is_ascii_graphic()) => Detail::KeyUnusual,
        () => return Ok(()),
    };
    Err(bad_setup(what, Hint::CopyKey))
}

/// The URL that requests are sent to.
pub(crate) fn endpoint(wire: &dyn Wire, config: &Config) -> Result<Url, ModelError> {
    let mut url = base(wire, config)?;
    let (path, query) = wire.path(config.model.trim(), config.stream);
    url.set_path(&format!("{}{path}", url.path().trim_end_matches('/')));
    url.set_query(query);
    Ok(url)
}

/// Parses and checks the base URL, with its path in the form that the wire format extends.
pub(crate) fn base(wire: &dyn Wire, config: &Config) -> Result<Url, ModelError> {
    let written = config.base_url.trim();
    let bad = |what: Detail| bad_setup(what, Hint::WriteAddress);
    let mut url = Url::parse(written).map_err(|_| bad(Detail::NoAddress))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(bad(Detail::OtherScheme));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad_setup(Detail::HasPassword, Hint::SetKey));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad(Detail::HasQuery));
    }
    let path = wire.base_path(url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

pub(crate) fn bad_setup(what: Detail, hint: Hint) -> ModelError {
    ModelError::BadSetup { what, hint }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::wire;

    fn config(format: Format, base_url: &str) -> Config {
        Config { format, base_url: base_url.into(), model: "m".into(), key: None, window: 8192, stream: true }
    }

    #[test]
    fn base_urls_are_taken_as_people_write_them() {
        let gemini = "https://h/v1beta/models/m:streamGenerateContent?alt=sse";
        for (format, base, expected) in [
            (Format::OpenAi, "https://h/v1", "https://h/v1/chat/completions"),
            (Format::OpenAi, " https://h/v1/ ", "https://h/v1/chat/completions"),
            (Format::OpenAi, "https://h/v1/chat/completions", "https://h/v1/chat/completions"),
            (Format::OpenAi, "http://127.0.0.1:8080", "http://127.0.0.1:8080/chat/completions"),
            (Format::Anthropic, "https://h", "https://h/v1/messages"),
            (Format::Anthropic, "https://h/v1/", "https://h/v1/messages"),
            (Format::Anthropic, "https://h/v1/messages", "https://h/v1/messages"),
            (Format::Gemini, "https://h", gemini),
            (Format::Gemini, "https://h/v1beta", gemini),
        ] {
            let url = endpoint(wire(format), &config(format, base)).unwrap();
            assert_eq!(url.as_str(), expected, "{base}");
        }
        let odd = Config { model: "a b?c#d".into(), ..config(Format::Gemini, "https://h") };
        let url = endpoint(wire(Format::Gemini), &odd).unwrap();
        assert_eq!(url.as_str(), gemini.replace("/m:", "/a%20b%3Fc%23d:"));
    }

    #[test]
    fn what_cannot_work_is_refused_before_anything_is_sent() {
        for (base, word) in [
            ("example.org/v1", "not a web address"),
            ("ftp://example.org", "http://"),
            ("", "not a web address"),
            ("https://me:secret@example.org/v1", "user name"),
            ("https://example.org/v1?key=x", "? or #"),
        ] {
            let error =
                endpoint(wire(Format::OpenAi), &config(Format::OpenAi, base)).unwrap_err().to_string();
            assert!(error.contains(word) && !error.contains("secret"), "{base}: {error}");
        }
        for (key, word) in
            [("sk-1\n", "line break"), ("", "empty"), ("sk 1", "space"), ("schlüssel", "unusual")]
        {
            let error = check_key(key).unwrap_err().to_string();
            assert!(error.contains(word) && !error.contains("sk"), "{key}: {error}");
        }
        assert_eq!(format!("{:?}", Key::new("sk-1")), "Key(…)");
    }
}
