//! What commands ask about SMS and drafts, and the rows that come back.

use kai_assistant::access::AccessState;
use kai_assistant::outbox::door::Act;
use kai_assistant::outbox::{Channel, DraftId, DraftOrigin, DraftState};
use kai_assistant::sms::SmsId;
use kai_assistant::untrusted::Untrusted;
use serde::{Deserialize, Serialize};

/// What commands ask about SMS and drafts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SmsCall {
    Poll,
    List,
    /// How it stands, without asking the phone.
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
    /// Erase what is kept of the phone's messages.
    Forget,
}

/// One line of `kai sms list` and `search`: the items of the tools.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SmsRow {
    pub(crate) id: SmsId,
    pub(crate) from: String,
    /// Epoch milliseconds.
    pub(crate) date: i64,
    pub(crate) date_local: String,
    pub(crate) preview: String,
    pub(crate) is_read: bool,
}

/// One message, whole.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SmsWhole {
    pub(crate) id: SmsId,
    pub(crate) from: String,
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
}

/// The object `sms` of `kai status --json`; the sync fields are named as the seed names them.
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
    pub(crate) last_error: Option<String>,
    /// "Last successful poll 5m ago", or when it failed.
    pub(crate) last_poll: String,
    /// The same, with what failed.
    pub(crate) says: String,
}

impl SmsStatus {
    /// Is anything kept of the phone's messages?
    pub(crate) fn keeps(&self) -> bool {
        let polled = self.last_seen_id.is_some() || self.last_sync.is_some() || self.last_attempt.is_some();
        self.queued > 0 || self.dropped > 0 || polled
    }

    /// What is kept, as a part of a sentence.
    pub(crate) fn kept(&self) -> String {
        let waiting = match self.queued {
            0 => String::new(),
            1 => "1 queued message and ".to_owned(),
            n => format!("{n} queued messages and "),
        };
        format!("{waiting}a note of the last message it saw")
    }
}

/// A row of `kai drafts list`: everything a face needs to show it whole.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DraftRow {
    pub(crate) id: DraftId,
    pub(crate) channel: Channel,
    pub(crate) to: String,
    pub(crate) body: String,
    /// The text with everything that cannot be seen spelled out.
    pub(crate) body_shown: String,
    pub(crate) status: DraftState,
    pub(crate) reason: Option<String>,
    pub(crate) origin: DraftOrigin,
    /// Epoch milliseconds.
    pub(crate) created_at: i64,
    pub(crate) created_local: String,
    pub(crate) in_reply_to: Option<i64>,
    /// The beginning of the message that is answered, as it was written.
    pub(crate) quoted: Option<Untrusted>,
    pub(crate) segments: usize,
    pub(crate) remarks: Vec<String>,
    /// What a tap on this sight carries.
    pub(crate) digest: String,
    pub(crate) attempts: u32,
}

/// Which button was tapped, as commands and forms spell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Button {
    Send,
    Retry,
    SendAgain,
}

impl From<Button> for Act {
    fn from(button: Button) -> Self {
        match button {
            Button::Send => Self::Send,
            Button::Retry => Self::Retry,
            Button::SendAgain => Self::SendAgain,
        }
    }
}

/// A tap as it reaches us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TapCall {
    pub(crate) id: DraftId,
    pub(crate) button: Button,
    /// The digest of what was shown.
    pub(crate) shown: String,
    pub(crate) attempts: u32,
}
