//! Who looks at what strangers wrote, and what is kept from them.

use super::Run;
use crate::settings::{CODE_REDACTION_ENABLED, Values};
use crate::untrusted::Untrusted;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eyes {
    /// The person it was written to, and a model for which the person wants nothing hidden.
    All,
    /// One-time codes are hidden.
    NoCodes,
}

impl Eyes {
    /// A model's, as the settings want it.
    pub fn of_model(values: &Values) -> Self {
        if values.on(&CODE_REDACTION_ENABLED) { Self::NoCodes } else { Self::All }
    }

    /// Those of the model behind a run: the person may have clicked *Show codes to the assistant* in its conversation.
    pub fn in_run(values: &Values, run: &Run) -> Self {
        if run.codes_shown { Self::All } else { Self::of_model(values) }
    }

    pub fn see(self, text: &Untrusted) -> Untrusted {
        match self {
            Self::All => text.clone(),
            Self::NoCodes => text.map(kai_codes::redact),
        }
    }
}
