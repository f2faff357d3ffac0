//! Calls about notifications, and the rows they return.

use kai_assistant::access::AccessState;
use kai_assistant::notifications::NotificationId;
use kai_assistant::notifications::store::Gap;
use kai_assistant::source::SourceId;
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

/// The status of reading notifications; the object `notifications` of `kai status --json`. It speaks of this machine's
/// own source, or of the first phone that is read if there is none; the numbers are those of all sources together.
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
    /// Each source by itself.
    #[serde(default)]
    pub(crate) sources: Vec<SourceStatus>,
}

/// The status of reading the notifications of one source: this machine or a paired phone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SourceStatus {
    pub(crate) source: SourceId,
    /// The name of a paired phone.
    pub(crate) name: Option<String>,
    /// `None` while nothing connects it.
    pub(crate) bridge: Option<String>,
    pub(crate) enabled: bool,
    pub(crate) state: ListenerState,
    pub(crate) access: AccessState,
    pub(crate) queued: u32,
    pub(crate) dropped: u32,
    pub(crate) kept: u32,
    #[serde(rename = "lastSeenId")]
    pub(crate) last_seen_id: Option<NotificationId>,
    #[serde(rename = "lastSyncEpochMs")]
    pub(crate) last_sync: Option<i64>,
    #[serde(rename = "lastAttemptEpochMs")]
    pub(crate) last_attempt: Option<i64>,
    #[serde(rename = "lastError")]
    pub(crate) last_error: Option<Said>,
    pub(crate) gaps: Vec<GapRow>,
}

impl SourceStatus {
    fn was_heard(&self) -> bool {
        self.last_attempt.is_some() || !self.gaps.is_empty()
    }
}

impl NotificationsStatus {
    /// The paired phones among the sources, each with its name.
    pub(crate) fn phones(&self) -> impl Iterator<Item = (&str, &SourceStatus)> {
        self.sources.iter().filter_map(|source| Some((source.name.as_deref()?, source)))
    }

    /// Whether this machine itself reports notifications.
    pub(crate) fn has_own(&self) -> bool {
        self.sources.iter().any(|source| source.source.is_here())
    }

    /// Whether anything about notifications is stored.
    pub(crate) fn keeps(&self) -> bool {
        let heard = self.last_seen_id.is_some() || self.last_sync.is_some() || self.last_attempt.is_some();
        let heard = heard || self.sources.iter().any(SourceStatus::was_heard);
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
