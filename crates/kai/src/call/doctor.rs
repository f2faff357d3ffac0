//! The checks that `kai doctor` returns.

use serde::{Deserialize, Serialize};

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) verdict: Verdict,
    pub(crate) says: String,
    /// What to do about it.
    pub(crate) next: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Fine,
    /// Works, but the user may want to know about it.
    Note,
    Broken,
}

impl Check {
    pub(crate) fn fine(name: &str, says: impl Into<String>) -> Self {
        Self { name: name.to_owned(), verdict: Verdict::Fine, says: says.into(), next: None }
    }

    pub(crate) fn note(name: &str, says: impl Into<String>, next: impl Into<String>) -> Self {
        Self { name: name.to_owned(), verdict: Verdict::Note, says: says.into(), next: Some(next.into()) }
    }

    pub(crate) fn broken(name: &str, says: impl Into<String>, next: Option<String>) -> Self {
        Self { name: name.to_owned(), verdict: Verdict::Broken, says: says.into(), next }
    }
}
