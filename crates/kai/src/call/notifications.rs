//! Calls about notifications, and the rows they return.

use kai_assistant::access::AccessState;
use kai_assistant::notifications::NotificationId;
use kai_assistant::notifications::store::Gap;
use kai_words::Said;
use serde::{Deserialize, Serialize};

/// A call about notifications.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NotificationsCall {
    /// Those queued for the next heartbeat, or all stored ones.
    List {
        all: bool,
    },
    Read {
        id: String,
    },
    Search {
        text: String,
        package_name: Option<String>,
    },
    Clear,
    /// Deletes all stored notifications.
    Forget,
    Refresh,
    /// The status without asking the platform.
    Known,
}

/// The state of the notification listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ListenerState {
    Off,
    /// It was turned on and is waiting for access.
    Waiting,
    Listening,
    /// It is on but receives nothing.
    Inactive,
}

/// The status of reading notifications; the object `notifications` of `kai status --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NotificationsStatus {
    pub(crate) supported: bool,
    pub(crate) enabled: bool,
    pub(crate) state: ListenerState,
    pub(crate) access: AccessState,
    pub(crate) bridge: Option<String>,
    pub(crate) queued: u32,
    /// Dropped since the last heartbeat because too many arrived.
    pub(crate) dropped: u32,
    pub(crate) kept: u32,
    #[serde(rename = "lastSeenId")]
    pub(crate) last_seen_id: Option<NotificationId>,
    #[serde(rename = "lastSyncEpochMs")]
    pub(crate) last_sync: Option<i64>,
    #[serde(rename = "lastAttemptEpochMs")]
    pub(crate) last_attempt: Option<i64>,
    #[serde(rename = "unreadCount")]
    pub(crate) unread_count: u32,
    #[serde(rename = "lastError")]
    pub(crate) last_error: Option<Said>,
    /// Why it is not on, and what to do.
    pub(crate) hint: Option<Said>,
    pub(crate) gaps: Vec<GapRow>,
}

impl NotificationsStatus {
    /// Whether anything about notifications is stored.
    pub(crate) fn keeps(&self) -> bool {
        let heard = self.last_seen_id.is_some() || self.last_sync.is_some() || self.last_attempt.is_some();
        self.kept > 0 || self.queued > 0 || self.dropped > 0 || !self.gaps.is_empty() || heard
    }

    /// What is stored, as part of a sentence.
    pub(crate) fn kept(&self) -> String {
        match (self.kept, self.queued) {
            (0, 0) => "a note of when it last listened".to_owned(),
            (1, 0 | 1) | (0, 1) => "1 notification from the last day".to_owned(),
            (kept, queued) => format!("{} notifications from the last day", kept.max(queued)),
        }
    }
}

/// A period in which no notifications were received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GapRow {
    #[serde(flatten)]
    pub(crate) gap: Gap,
    pub(crate) began_local: String,
    pub(crate) ended_local: Option<String>,
}

/// What `kai notifications forget` deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Forgotten {
    pub(crate) records: usize,
    pub(crate) queued: usize,
}
