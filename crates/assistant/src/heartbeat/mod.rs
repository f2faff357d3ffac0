//! The heartbeat: Kai looks by itself at what arrived, and says something only if there is something to say.
//!
//! The tick asks whether it is [`due`] (pure) → [`brief`] gathers what is new, and exactly what will be shown → nothing
//! new, no call → [`prompt`] (pure) renders it → [`beat`] asks a model with the tools of a run that nobody watches →
//! in one transaction the [`store`] keeps the report and the stamp, and forgets exactly what was shown.

pub mod beat;
pub mod brief;
pub mod due;
pub mod prompt;
pub mod store;

use serde::{Deserialize, Serialize};

use crate::db::Migration;

pub use beat::{Beat, Beaten, Next, Why};

pub(crate) const MIGRATION: Migration =
    Migration { name: "heartbeat/1", sql: include_str!("../../migrations/heartbeat.sql") };
pub(crate) const BANNER: Migration =
    Migration { name: "heartbeat/banner", sql: include_str!("../../migrations/heartbeat-banner.sql") };

pub(crate) const ESTIMATES: Migration =
    Migration { name: "heartbeat/2", sql: include_str!("../../migrations/heartbeat2.sql") };

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// There was something to say.
    Report(String),
    /// The model looked and saw nothing that needs attention.
    Ok,
    /// Nothing was new, so no model was asked.
    NothingNew,
    /// No answer; why. Nothing was forgotten.
    Failed(String),
}

/// An [`Outcome`] without what was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    Report,
    Ok,
    NothingNew,
    Failed,
}

impl OutcomeKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Ok => "ok",
            Self::NothingNew => "nothing_new",
            Self::Failed => "failed",
        }
    }

    /// Only what [`Self::as_str`] says was ever stored.
    pub(crate) fn from_stored(stored: &str) -> Self {
        match stored {
            "report" => Self::Report,
            "ok" => Self::Ok,
            "nothing_new" => Self::NothingNew,
            _ => Self::Failed,
        }
    }
}

impl Outcome {
    pub fn kind(&self) -> OutcomeKind {
        match self {
            Self::Report(_) => OutcomeKind::Report,
            Self::Ok => OutcomeKind::Ok,
            Self::NothingNew => OutcomeKind::NothingNew,
            Self::Failed(_) => OutcomeKind::Failed,
        }
    }

    /// What a model's answer means. `HEARTBEAT_OK` counts only as the whole answer; blanks, marks of emphasis and a
    /// final period are tolerated.
    pub fn of_answer(text: &str) -> Self {
        let bare = text.trim_matches(|c: char| c.is_whitespace() || "*_`#>~\"'.!".contains(c));
        if bare == "HEARTBEAT_OK" { Self::Ok } else { Self::Report(text.trim().to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_is_ok_only_alone() {
        for (text, ok) in [
            ("HEARTBEAT_OK", true),
            (" HEARTBEAT_OK.\n", true),
            ("**HEARTBEAT_OK**", true),
            ("`HEARTBEAT_OK`", true),
            ("_HEARTBEAT_OK_", true),
            ("HEARTBEAT_OK, but the bank wrote", false),
            ("Nothing to do. HEARTBEAT_OK", false),
            ("heartbeat_ok", false),
            ("HEARTBEAT OK", false),
            ("HEARTBEAT_OK HEARTBEAT_OK", false),
        ] {
            assert_eq!(Outcome::of_answer(text) == Outcome::Ok, ok, "{text:?}");
        }
        assert_eq!(Outcome::of_answer(" Two new. \n"), Outcome::Report("Two new.".to_owned()));
    }
}
