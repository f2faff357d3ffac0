//! Calls about SMS and drafts, and the rows they return.

use kai_assistant::access::AccessState;
use kai_assistant::outbox::door::Act;
use kai_assistant::outbox::{Channel, DraftId, DraftOrigin, DraftState, ReplyTo};
use kai_assistant::sms::SmsId;
use kai_assistant::source::SourceId;
use kai_assistant::untrusted::Untrusted;
use kai_words::Said;
use serde::{Deserialize, Serialize};

/// A call about SMS or drafts.
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
    Drafts,
    Draft {
        id: DraftId,
    },
    Tap(TapCall),
    Discard {
        id: DraftId,
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

/// A row of `kai drafts list`: everything needed to show the draft in full.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DraftRow {
    pub(crate) id: DraftId,
    pub(crate) channel: Channel,
    /// The number, or the conversation as the answered notification names it.
    pub(crate) to: String,
    /// The names of the contacts that have this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The app whose notification is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) app: Option<String>,
    /// The phone that it leaves by, if there is more than one to choose from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) phone: Option<DraftPhone>,
    pub(crate) body: String,
    /// The text with invisible characters spelled out.
    pub(crate) body_shown: String,
    pub(crate) status: DraftState,
    pub(crate) reason: Option<Said>,
    pub(crate) origin: DraftOrigin,
    /// The name that the program which drafted it claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) guest: Option<String>,
    /// The user changed what somebody else drafted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) edited: bool,
    /// Epoch milliseconds.
    pub(crate) created_at: i64,
    pub(crate) created_local: String,
    /// A number for an SMS, a text for a notification.
    pub(crate) in_reply_to: Option<ReplyTo>,
    /// The beginning of the message being answered, as it was written.
    pub(crate) quoted: Option<Untrusted>,
    /// How many SMS it takes; `None` if it is not sent as SMS.
    pub(crate) segments: Option<usize>,
    /// Warnings to read before a tap.
    pub(crate) remarks: Vec<Said>,
    /// As far as Kai knows, the user never exchanged messages with this number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) unknown_recipient: bool,
    /// The digest of what is shown, which a tap must carry.
    pub(crate) digest: String,
    pub(crate) attempts: u32,
    /// What the phone may do with it besides sending it.
    #[serde(flatten)]
    pub(crate) on_phone: OnPhone,
}

impl DraftRow {
    /// Whether the user can edit it.
    pub(crate) fn is_editable(&self) -> bool {
        matches!(self.status, DraftState::Pending | DraftState::Failed)
    }

    /// Whether it is discarded with all others: it was not sent, and is not being sent.
    pub(crate) fn is_discardable(&self) -> bool {
        matches!(self.status, DraftState::Pending | DraftState::Failed | DraftState::Unknown)
    }
}

/// The phone that a draft leaves by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DraftPhone {
    pub(crate) source: SourceId,
    /// `None` for the phone that Kai runs on, or one that is no longer paired.
    pub(crate) name: Option<String>,
}

/// A draft in the phone's own SMS app.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OnPhone {
    /// The user may have it opened there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) can_open: bool,
    /// The phone may not send it without being opened.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) only_open: bool,
    /// When it was opened there, in epoch milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) opened_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) opened_local: Option<String>,
}

/// The tapped button, as commands and forms spell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Button {
    Send,
    Retry,
    SendAgain,
    /// Opens it in the phone's own SMS app.
    OnPhone,
}

impl From<Button> for Act {
    fn from(button: Button) -> Self {
        match button {
            Button::Send => Self::Send,
            Button::Retry => Self::Retry,
            Button::SendAgain => Self::SendAgain,
            Button::OnPhone => Self::Compose,
        }
    }
}

/// A tap as a command or a form sends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TapCall {
    pub(crate) id: DraftId,
    pub(crate) button: Button,
    /// The digest of what the user saw.
    pub(crate) shown: String,
    pub(crate) attempts: u32,
}
