//! Calls about SMS, and the rows they return.

use kai_assistant::access::AccessState;
use kai_assistant::sms::SmsId;
use kai_assistant::source::SourceId;
use kai_words::Said;
use serde::{Deserialize, Serialize};

/// A call about SMS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SmsCall {
    Poll,
    List,
    /// The status without asking the phone.
    Known,
    Read {
        id: SmsId,
    },
    Search {
        text: String,
    },
    /// Deletes what is stored of the phone's messages.
    Forget,
}

/// A row of `kai sms list` and `kai sms search`, the same as the tools return.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SmsRow {
    pub(crate) id: SmsId,
    pub(crate) from: String,
    /// The names of the contacts that have this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The phone that has it, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) phone: Option<String>,
    /// Epoch milliseconds.
    pub(crate) date: i64,
    pub(crate) date_local: String,
    pub(crate) preview: String,
    pub(crate) is_read: bool,
}

/// One message in full.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SmsWhole {
    pub(crate) id: SmsId,
    pub(crate) from: String,
    /// The names of the contacts that have this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The phone that has it, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) phone: Option<String>,
    /// Epoch milliseconds.
    pub(crate) date: i64,
    pub(crate) date_local: String,
    pub(crate) body: String,
    pub(crate) is_read: bool,
}

/// What `kai sms poll` did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SmsPolled {
    pub(crate) fresh: usize,
    pub(crate) more: bool,
    pub(crate) seeded: bool,
    pub(crate) queued: u32,
    /// How many paired phones were asked. What is new on them arrives by itself.
    pub(crate) phones_asked: usize,
}

/// The object `sms` of `kai status --json`. The names of the sync fields come from the seed specification. It speaks of
/// the phone that Kai runs on, otherwise of the default paired phone; `queued` and `dropped` are those of all sources.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SmsStatus {
    pub(crate) supported: bool,
    pub(crate) enabled: bool,
    pub(crate) send_enabled: bool,
    pub(crate) access: AccessState,
    pub(crate) queued: u32,
    pub(crate) dropped: u32,
    pub(crate) bridge: Option<String>,
    #[serde(rename = "lastSeenId")]
    pub(crate) last_seen_id: Option<SmsId>,
    #[serde(rename = "lastSyncEpochMs")]
    pub(crate) last_sync: Option<i64>,
    #[serde(rename = "lastAttemptEpochMs")]
    pub(crate) last_attempt: Option<i64>,
    #[serde(rename = "unreadCount")]
    pub(crate) unread: u32,
    #[serde(rename = "lastError")]
    pub(crate) last_error: Option<Said>,
    /// "Last successful poll 5m ago", or when it failed.
    pub(crate) last_poll: String,
    /// The same, with the error.
    pub(crate) says: String,
    /// The phone that Kai runs on, if it does, and every phone that is or was paired.
    #[serde(default)]
    pub(crate) sources: Vec<SmsSource>,
}

/// How it stands with the messages of one phone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SmsSource {
    pub(crate) source: SourceId,
    /// The name of a paired phone.
    pub(crate) name: Option<String>,
    /// `None` for a phone that is no longer paired, or that Kai no longer runs on.
    pub(crate) bridge: Option<String>,
    pub(crate) enabled: bool,
    pub(crate) connected: bool,
    pub(crate) access: AccessState,
    pub(crate) queued: u32,
    pub(crate) dropped: u32,
    /// How many messages are copied here; only those of paired phones are.
    pub(crate) messages: u64,
    /// How far they are copied, in thousandths; `None` before the phone was asked.
    pub(crate) progress: Option<u16>,
    #[serde(rename = "lastSyncEpochMs")]
    pub(crate) last_sync: Option<i64>,
    #[serde(rename = "lastError")]
    pub(crate) last_error: Option<Said>,
}

impl SmsStatus {
    /// The phones that are paired, each with its name.
    pub(crate) fn phones(&self) -> impl Iterator<Item = (&str, &SmsSource)> {
        let paired = self.sources.iter().filter(|source| source.bridge.is_some());
        paired.filter_map(|source| Some((source.name.as_deref()?, source)))
    }

    /// Whether Kai runs on a phone, or with the simulated one.
    pub(crate) fn has_own(&self) -> bool {
        self.sources.iter().any(|source| source.source.is_here() && source.bridge.is_some())
    }

    /// How many messages of paired phones are copied here.
    pub(crate) fn copied(&self) -> u64 {
        self.sources.iter().map(|source| source.messages).sum()
    }

    /// Whether anything about the phones' messages is stored.
    pub(crate) fn keeps(&self) -> bool {
        let polled = self.last_seen_id.is_some() || self.last_sync.is_some() || self.last_attempt.is_some();
        let heard = |source: &SmsSource| source.messages > 0 || source.last_sync.is_some();
        self.queued > 0 || self.dropped > 0 || polled || self.sources.iter().any(heard)
    }
}
