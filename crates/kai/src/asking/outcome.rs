//! The arguments and the result of a tool call that succeeded, as a sentence repeats them. Pure.

use kai_words::Lang;
use serde_json::Value;

use super::fields::{Fields, brief};

/// The arguments of a call that succeeded, and its result.
pub(super) struct Done<'a> {
    pub(super) fields: Fields<'a>,
    pub(super) result: &'a Value,
}

impl Done<'_> {
    pub(super) fn lang(&self) -> Lang {
        self.fields.lang
    }

    /// A list of the result.
    pub(super) fn list(&self, name: &str) -> Option<&Vec<Value>> {
        self.result[name].as_array()
    }

    /// An argument as a sentence repeats it; `None` if it is missing.
    pub(super) fn argument(&self, name: &str) -> Option<String> {
        Some(self.fields.brief(name)).filter(|text| !text.is_empty())
    }

    /// A text of the result, as a sentence repeats it; `None` if there is none.
    pub(super) fn returned(&self, name: &str) -> Option<String> {
        let text = self.result[name].as_str().filter(|text| !text.trim().is_empty())?;
        Some(brief(text, self.lang()))
    }
}

/// How many names a sentence has.
const NAMED: usize = 3;

/// Whom these are from: the first field of each that has a text, each once.
pub(super) fn names(found: &[Value], fields: &[&str], lang: Lang) -> String {
    let mut all: Vec<&str> = vec![];
    for item in found {
        let texts = fields.iter().filter_map(|field| item[*field].as_str());
        let name = texts.map(str::trim).find(|name| !name.is_empty()).unwrap_or("?");
        if !all.contains(&name) {
            all.push(name);
        }
    }
    let shown: Vec<String> = all.iter().take(NAMED).map(|name| brief(name, lang)).collect();
    let shown = shown.join(", ");
    if all.len() > NAMED { lang.did_more(shown, all.len() - NAMED) } else { shown }
}
