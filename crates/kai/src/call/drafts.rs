//! Calls about drafts that send nothing: editing and discarding them, and taking that back.

use kai_assistant::outbox::DraftId;
use serde::{Deserialize, Serialize};

/// A call about drafts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DraftsCall {
    Edit(EditCall),
    DiscardAll {
        ids: Vec<DraftId>,
    },
    /// Takes back what was discarded a moment ago.
    Undo,
}

/// An edit as a command or a form sends it. `None` leaves a part as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EditCall {
    pub(crate) id: DraftId,
    /// The digest of what the user saw when they began.
    pub(crate) seen: String,
    pub(crate) to: Option<String>,
    pub(crate) body: Option<String>,
}
