//! The arguments of a tool call as people read them. Pure.

use kai_assistant::legible::{folded_in, folded_line_in};
use kai_words::Lang;
use serde_json::{Map, Value};

use super::Quote;

/// The arguments of a call, and the language to speak of them in.
pub(super) struct Fields<'a> {
    pub(super) given: &'a Map<String, Value>,
    pub(super) lang: Lang,
}

impl Fields<'_> {
    fn text(&self, name: &str) -> Option<String> {
        match self.given.get(name)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// The argument on one line, for use inside our own sentence.
    pub(super) fn line(&self, name: &str) -> String {
        folded_line_in(&self.text(name).unwrap_or_default(), self.lang)
    }

    /// A whole number as the tools parse it: `7`, `"7"` and `7.0` are the same.
    pub(super) fn whole(&self, name: &str) -> Option<i64> {
        let written = self.line(name);
        let written = written.strip_suffix(".0").unwrap_or(&written);
        written.parse().ok()
    }

    /// The arguments that are present, each with its name.
    pub(super) fn list(&self, names: &[&str]) -> String {
        let given = names.iter().filter(|name| !self.line(name).is_empty());
        let given: Vec<String> = given.map(|name| format!("{name} {}", self.line(name))).collect();
        if given.is_empty() { self.lang.asking_no_time().to_owned() } else { given.join(", ") }
    }

    pub(super) fn quote(&self, name: &str) -> Option<Quote> {
        let text =
            self.given.get(name).map(|value| words(value, self.lang)).filter(|text| !text.is_empty())?;
        let known = self.lang.find(&format!("argument_{name}")).map(str::to_owned);
        let label = known.unwrap_or_else(|| folded_line_in(name, self.lang));
        Some(Quote { label, text: folded_in(&text, self.lang) })
    }

    /// A few words of the argument on one line.
    pub(super) fn brief(&self, name: &str) -> String {
        brief(&self.text(name).unwrap_or_default(), self.lang)
    }
}

/// How many characters of a value a sentence repeats.
const BRIEF: usize = 100;

/// A few words of a text that somebody else wrote, on one line.
pub(super) fn brief(text: &str, lang: Lang) -> String {
    let line = folded_line_in(text.trim(), lang);
    let shown: String = line.chars().take(BRIEF).collect();
    if shown.len() < line.len() { shown + "…" } else { shown }
}

/// A value without the signs of JSON. The parts of a list or of an object are a line each, so that none of them can be
/// taken for another.
fn words(value: &Value, lang: Lang) -> String {
    let part = |part: &Value| folded_line_in(&words(part, lang), lang);
    let lines =
        |parts: Vec<String>| parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
    match value {
        Value::Null => String::new(),
        Value::Bool(yes) => (if *yes { lang.asking_yes() } else { lang.asking_no() }).to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => lines(parts.iter().map(part).collect()),
        Value::Object(parts) => {
            lines(parts.iter().map(|(name, value)| format!("{name}: {}", part(value))).collect())
        }
    }
}

/// A number of seconds in words, such as "1 hour 5 minutes".
pub(crate) fn span(seconds: i64, lang: Lang) -> String {
    let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let parts = [
        (hours != 0).then(|| lang.asking_hours(hours)),
        (minutes != 0).then(|| lang.asking_minutes(minutes)),
        (rest != 0 || seconds == 0).then(|| lang.asking_seconds(rest)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}
