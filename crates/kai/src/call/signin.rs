//! Sign-in links, and the answer to revoking them.

use serde::{Deserialize, Serialize};

/// A fresh sign-in link.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SignInLink {
    pub(crate) url: String,
    /// The same link as another device opens it, if the page can be reached from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) elsewhere: Option<String>,
    /// Epoch milliseconds.
    pub(crate) expires_at: i64,
    pub(crate) daemon_running: bool,
}

/// How many sessions and links were revoked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Revoked {
    pub(crate) sessions: usize,
    pub(crate) links: usize,
}
