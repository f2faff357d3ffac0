//! The heartbeat: at regular intervals, Kai checks what has arrived, and reports only if something needs attention.
//!
//! On a tick, [`due`] (pure) decides whether to run. [`brief`] gathers what is new; if nothing is, no model is asked.
//! [`prompt`] (pure) renders it, and [`beat`] asks a model with the tools of an unattended run. One transaction then
//! stores the report and the timestamps ([`store`]) and removes exactly what was shown from the queues.
//!
//! A small model is asked otherwise (`ranked`): [`triage`] (pure) ranks each message singly, with the model's margin as
//! one of several signals; then the model words why the top ones matter, without tools, and [`digest`] (pure) composes
//! the report. If models of both sizes are set up, `order` (pure) says which are asked together.

pub mod arrivals;
pub mod beat;
pub mod brief;
pub mod digest;
pub mod due;
pub mod email;
#[cfg_attr(not(feature = "notifications"), path = "no_notifications.rs")]
mod notifications;
mod order;
pub mod prompt;
mod ranked;
#[cfg_attr(not(feature = "sms"), path = "no_sms.rs")]
mod sms;
pub mod store;
pub mod triage;

use kai_words::Said;
use serde::{Deserialize, Serialize};

use crate::db::Migration;

pub use beat::{Beat, BeatResult, Next, NextRequests, Why};

pub(crate) const MIGRATION: Migration =
    Migration { name: "heartbeat/1", sql: include_str!("../../migrations/heartbeat.sql") };
pub(crate) const BANNER: Migration =
    Migration { name: "heartbeat/banner", sql: include_str!("../../migrations/heartbeat-banner.sql") };

pub(crate) const ESTIMATES: Migration =
    Migration { name: "heartbeat/2", sql: include_str!("../../migrations/heartbeat2.sql") };

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The model reported something.
    Report(String),
    /// The model found nothing that needs attention.
    Ok,
    /// Nothing was new, so no model was asked.
    NothingNew,
    /// The run failed for this reason. The queues are unchanged.
    Failed(Said),
}

/// An [`Outcome`] without its text.
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

    /// Parses a stored kind. Only values of [`Self::as_str`] are ever stored; anything else counts as failed.
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

    /// Interprets a model's answer. `HEARTBEAT_OK` counts only if it is the whole answer; whitespace, Markdown
    /// emphasis, quotes and final punctuation around it are ignored.
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
