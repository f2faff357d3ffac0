//! Decides whether a reader sees one-time codes in text that others wrote.

use super::Run;
use crate::gate::RunKind;
use crate::settings::{CODE_REDACTION_ENABLED, Values};
use crate::untrusted::Untrusted;

/// How a reader sees text that others wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eyes {
    /// Nothing is hidden: for the user, and for a model if the user allows it.
    All,
    /// One-time codes are redacted.
    NoCodes,
}

impl Eyes {
    /// What a model may see according to the settings.
    pub fn of_model(values: &Values) -> Self {
        if values.on(&CODE_REDACTION_ENABLED) { Self::NoCodes } else { Self::All }
    }

    /// What the model in a run may see: the user may have clicked *Show codes to the assistant* in its conversation.
    /// What they let Kai's own models see is not meant for guests.
    pub fn in_run(values: &Values, run: &Run) -> Self {
        match run.kind {
            RunKind::Guest => Self::NoCodes,
            _ if run.codes_shown => Self::All,
            RunKind::Chat | RunKind::Heartbeat | RunKind::Task => Self::of_model(values),
        }
    }

    /// The text as this reader may see it.
    pub fn see(self, text: &Untrusted) -> Untrusted {
        match self {
            Self::All => text.clone(),
            Self::NoCodes => text.map(kai_codes::redact),
        }
    }
}
