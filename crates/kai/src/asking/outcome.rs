//! The arguments and the result of a tool call that succeeded, as a sentence repeats them. Pure.

use kai_words::Lang;
use serde_json::Value;

use super::fields::Fields;

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
}
