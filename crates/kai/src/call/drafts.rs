//! Calls about drafts, and the rows they return.

use kai_assistant::outbox::door::Act;
use kai_assistant::outbox::{Channel, DraftId, DraftOrigin, DraftState, ReplyTo};
use kai_assistant::source::SourceId;
use kai_assistant::untrusted::Untrusted;
use kai_words::Said;
use serde::{Deserialize, Serialize};

/// A call about drafts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DraftsCall {
    List,
    Show {
        id: DraftId,
    },
    Tap(TapCall),
    Edit(EditCall),
    Discard {
        id: DraftId,
    },
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
    /// Only mails have these.
    #[serde(default)]
    pub(crate) cc: Option<String>,
    #[serde(default)]
    pub(crate) bcc: Option<String>,
    #[serde(default)]
    pub(crate) subject: Option<String>,
    /// Leaves out what it quotes.
    #[serde(default)]
    pub(crate) without_quote: bool,
}

/// A row of `kai drafts list`: everything needed to show the draft in full.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DraftRow {
    pub(crate) id: DraftId,
    pub(crate) channel: Channel,
    /// The number, the conversation as the answered notification names it, or the addresses of a mail.
    pub(crate) to: String,
    /// What a mail has besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mail: Option<MailRow>,
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
    /// A number for an SMS, a text for a notification or a mail.
    pub(crate) in_reply_to: Option<ReplyTo>,
    /// The beginning of the message being answered, as it was written.
    pub(crate) quoted: Option<Untrusted>,
    /// How many SMS it takes; `None` if it is not sent as SMS.
    pub(crate) segments: Option<usize>,
    /// Warnings to read before a tap.
    pub(crate) remarks: Vec<Said>,
    /// As far as Kai knows, the user never exchanged messages with this number or one of these addresses.
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

/// The headers of a mail, as the user sees them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MailRow {
    /// The address that it leaves by.
    pub(crate) from: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) cc: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) bcc: Vec<String>,
    pub(crate) subject: String,
    /// The answered mail, quoted, which is sent below the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) quote: Option<String>,
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
