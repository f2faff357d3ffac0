//! The daemon's log: structured, on stderr, with everything that looks like a secret removed as the last step.

use std::io::{self, IsTerminal, Write};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::failure::Failure;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

/// What the user asked of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Such as `debug` or `warn,kai=debug`, from `--log`.
    pub(crate) level: Option<String>,
    pub(crate) format: Option<Format>,
}

/// Starts logging. `--log` sets the level, otherwise `KAI_LOG`.
pub(crate) fn start(wanted: &Wanted) -> Result<(), Failure> {
    let variable = std::env::var("KAI_LOG").ok();
    let named = match (&wanted.level, &variable) {
        (Some(_), _) => "--log",
        (None, _) => "KAI_LOG",
    };
    let level = level(wanted, variable.as_deref(), io::stderr().is_terminal());
    let levels: Targets = level.parse().map_err(|_| {
        Failure::usage(format!("{named} is set to \"{level}\". Use error, warn, info, debug or trace."))
    })?;
    let format = wanted.format.unwrap_or(Format::Text);
    // The SDK of MCP logs what servers say, and at some levels the codes of a sign-in.
    let levels = levels.with_target("rmcp", LevelFilter::OFF);
    let lines = tracing_subscriber::fmt::layer().with_writer(Redacted).with_ansi(false);
    match format {
        Format::Text => tracing_subscriber::registry().with(levels).with(lines.with_target(false)).init(),
        Format::Json => tracing_subscriber::registry().with(levels).with(lines.json()).init(),
    }
    Ok(())
}

/// The level of the log. A person at a terminal has not asked for a log unless they said so, and only sees errors; a
/// journal or a file gets what is needed to find out later what happened.
fn level<'a>(wanted: &'a Wanted, variable: Option<&'a str>, is_terminal: bool) -> &'a str {
    let asked = wanted.level.as_deref().or(variable);
    let usual = if is_terminal && wanted.format.is_none() { "error" } else { "info" };
    asked.unwrap_or(usual)
}

struct Redacted;

impl<'a> MakeWriter<'a> for Redacted {
    type Writer = Lines<io::Stderr>;

    fn make_writer(&'a self) -> Self::Writer {
        Lines { to: io::stderr() }
    }
}

/// Writes whole log events with their secrets removed.
struct Lines<W: Write> {
    to: W,
}

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.to.write_all(redact(&String::from_utf8_lossy(event)).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

const MASK: &str = "[secret]";
/// The value after a word with one of these endings is a secret, whatever it looks like: `api_key=…`, `"token":"…"`.
const ANNOUNCING: [&str; 8] =
    ["key", "token", "password", "passphrase", "secret", "bearer", "cookie", "authorization"];
/// A word of at least this length that contains letters and digits counts as a key or token, whatever precedes it.
const LONG: usize = 24;

fn redact(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_-+~.%".contains(c);
    let mut kept = String::with_capacity(text.len());
    let mut named = None;
    let mut rest = text;
    while !rest.is_empty() {
        let (between, tail) = rest.split_at(rest.find(is_word).unwrap_or(rest.len()));
        kept.push_str(between);
        let announced = named.take().is_some_and(|name: String| announces(&name, between));
        // An announced secret extends to the next whitespace, quote, comma, semicolon or ampersand, whatever it
        // contains.
        let ends = |c: char| if announced { c.is_whitespace() || "\"'&,;".contains(c) } else { !is_word(c) };
        let (word, tail) = tail.split_at(tail.find(ends).unwrap_or(tail.len()));
        let lower = word.to_ascii_lowercase();
        let scheme = announced && matches!(lower.as_str(), "bearer" | "basic" | "token");
        named = (scheme || ANNOUNCING.iter().any(|name| lower.ends_with(name))).then_some(lower);
        let secret = !word.is_empty() && !scheme && (announced || (named.is_none() && random(word)));
        kept.push_str(if secret { MASK } else { word });
        rest = tail;
    }
    kept
}

/// Whether a name and what follows it announce a secret: `key=…`, `"key":"…"`, `Bearer …`; but not "the key of this
/// home".
fn announces(name: &str, between: &str) -> bool {
    let only_joints = between.len() <= 4 && between.chars().all(|c| "=:\"' ".contains(c));
    only_joints && (matches!(name, "bearer" | "basic") || between.contains(['=', ':']))
}

/// Whether a word looks like a key or a token.
fn random(word: &str) -> bool {
    let has = |class: fn(&char) -> bool| word.chars().any(|c| class(&c));
    let famous = word.starts_with("sk-") || word.starts_with("AIza");
    (word.len() >= LONG && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic) && !timestamp(word))
        || (famous && word.len() > 10)
}

/// Whether a word is one of the log's own timestamps, which are long and mixed too but start with a date.
fn timestamp(word: &str) -> bool {
    word.len() < 36
        && word.get(..5).is_some_and(|s| s.ends_with('-') && s[..4].bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_shows_a_log_only_when_asked() {
        let asked = |level: Option<&str>, format| Wanted { level: level.map(str::to_owned), format };
        for (name, wanted, variable, is_terminal, expected) in [
            ("a terminal", asked(None, None), None, true, "error"),
            ("a journal or a file", asked(None, None), None, false, "info"),
            ("the flag", asked(Some("debug"), None), Some("warn"), true, "debug"),
            ("the variable", asked(None, None), Some("warn"), true, "warn"),
            ("a format is for a log", asked(None, Some(Format::Json)), None, true, "info"),
        ] {
            assert_eq!(level(&wanted, variable, is_terminal), expected, "{name}");
        }
    }

    #[test]
    fn secrets_are_taken_out_of_a_line_and_the_rest_stays() {
        for (line, expected) in [
            ("GET /login?token=abc HTTP/1.1", "GET /login?token=[secret] HTTP/1.1"),
            ("Authorization: Bearer xyz", "Authorization: Bearer [secret]"),
            (r#"{"api_key":"hunter2","model":"m"}"#, r#"{"api_key":"[secret]","model":"m"}"#),
            ("Authorization: Basic dXNlcjpw/YXNz==", "Authorization: Basic [secret]"),
            ("Bearer ab/cd=ef", "Bearer [secret]"),
            ("password=p@ss!word next", "password=[secret] next"),
            ("OPENAI_API_KEY=hunter2", "OPENAI_API_KEY=[secret]"),
            ("?access_token=x&page=2", "?access_token=[secret]&page=2"),
            ("x-api-key: abc, next", "x-api-key: [secret], next"),
            ("call with sk-abcdefgh1234", "call with [secret]"),
            ("opened 00112233445566778899aabbccddeeff", "opened [secret]"),
            ("2026-11-15T02:10:00.123456Z  INFO ready", "2026-11-15T02:10:00.123456Z  INFO ready"),
            ("a tick failed: The disk is full.", "a tick failed: The disk is full."),
            ("the key of this home", "the key of this home"),
        ] {
            assert_eq!(redact(line), expected);
        }
    }
}
