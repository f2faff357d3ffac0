//! The outbox: the only way for Kai to send a message to another person. Every message is a draft here, and only the
//! user's tap sends it.
//!
//! The path of a draft: a tool stages a [`Draft`] ([`store`]) for one phone or one mail account → the page or the command
//! line shows it in full, with warnings ([`remarks`], pure) → the user taps, and the tap carries the hash of what was
//! shown → [`door`] turns that tap into one [`Approved`](door::Approved) and hands it to the phone or the mail server →
//! the draft becomes sent, failed, or, if Kai crashed or there was no answer, unknown.
//!
//! Before the tap the user can edit the draft ([`edit`], pure) or discard it, and take that back for a moment
//! ([`discarded`]). Both go through the door, which no tool holds.

pub mod address;
pub(crate) mod body;
pub mod copies;
pub mod discarded;
pub mod door;
pub mod edit;
#[cfg(feature = "sms")]
pub mod exits;
pub mod mail;
pub mod number;
mod reasons;
pub mod remarks;
#[cfg(feature = "sms")]
pub mod route;
pub mod segments;
#[cfg_attr(not(feature = "sms"), path = "no_staging.rs")]
mod staging;
pub mod store;

use jiff::Timestamp;
use kai_words::Said;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::db::Migration;
use crate::gate::RunKind;
use crate::guests::GuestId;
use crate::hex;
use crate::source::SourceId;
use crate::untrusted::Untrusted;
use mail::Envelope;

pub(crate) const MIGRATION: Migration =
    Migration { name: "outbox/1", sql: include_str!("../../migrations/outbox.sql") };
pub(crate) const QUOTES: Migration =
    Migration { name: "outbox/2", sql: include_str!("../../migrations/outbox2.sql") };
pub(crate) const ANNOUNCED: Migration =
    Migration { name: "outbox/3", sql: include_str!("../../migrations/outbox3.sql") };
pub(crate) const KINDS: Migration =
    Migration { name: "outbox/kinds", sql: include_str!("../../migrations/outbox4.sql") };
pub(crate) const EDITED: Migration =
    Migration { name: "outbox/edited", sql: include_str!("../../migrations/outbox_edited.sql") };
pub(crate) const OWN: Migration =
    Migration { name: "outbox/own", sql: include_str!("../../migrations/outbox-own.sql") };
pub(crate) const GUESTS: Migration =
    Migration { name: "outbox/guests", sql: include_str!("../../migrations/outbox-guests.sql") };
pub(crate) const MAIL: Migration =
    Migration { name: "outbox/mail", sql: include_str!("../../migrations/outbox-mail.sql") };

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DraftId(pub i64);

/// How a draft is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    Sms,
    /// As the reply that a notification offers.
    Notification,
    /// As a mail.
    Email,
}

impl Channel {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sms => "sms",
            Self::Notification => "notification",
            Self::Email => "email",
        }
    }

    /// The channel with that stored name. What has no known name cannot be an SMS, so it is never sent as one.
    fn stored(name: &str) -> Self {
        [Self::Sms, Self::Email].into_iter().find(|one| one.as_str() == name).unwrap_or(Self::Notification)
    }
}

/// What a draft answers. In JSON it is the id alone: a number for an SMS, otherwise a text. What it is the id of, the
/// draft's [`Channel`] says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ReplyTo {
    /// The SMS with this number.
    Sms(i64),
    /// The notification with this id.
    Notification(String),
    /// The mail with this id.
    Email(String),
}

impl ReplyTo {
    fn kind(&self) -> &'static str {
        match self {
            Self::Sms(_) => "sms",
            Self::Notification(_) => "notification",
            Self::Email(_) => "email",
        }
    }

    fn id(&self) -> String {
        match self {
            Self::Sms(number) => number.to_string(),
            Self::Notification(id) | Self::Email(id) => id.clone(),
        }
    }

    fn stored(kind: &str, id: String) -> Option<Self> {
        match kind {
            "sms" => id.parse().ok().map(Self::Sms),
            "email" => Some(Self::Email(id)),
            _ => Some(Self::Notification(id)),
        }
    }
}

/// A message that a tool wants to send, before it is staged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDraft {
    pub channel: Channel,
    /// The phone or the account that it leaves by.
    pub phone: SourceId,
    /// The number, the conversation as the answered notification names it, or the addresses of a mail.
    pub to: String,
    /// The app whose notification it answers.
    pub app: Option<String>,
    pub body: String,
    /// What a mail has besides.
    pub mail: Option<Envelope>,
    pub in_reply_to: Option<ReplyTo>,
    /// The text of the message that it answers, kept only to be shown beside the draft.
    pub quoted: Option<Untrusted>,
    /// Whether the recipient has written to the user: the answered message or an earlier one.
    pub known_contact: bool,
    pub origin: RunKind,
    /// The guest that drafted it.
    pub guest: Option<GuestId>,
    /// The conversation in which it was drafted; 0 for none.
    pub conversation: i64,
}

/// A message that waits for the user to send it, or that was sent or failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    pub id: DraftId,
    pub channel: Channel,
    /// The phone or the account that it leaves by.
    pub phone: SourceId,
    /// The number, the conversation as the answered notification names it, or the addresses of a mail.
    pub to: String,
    /// The app whose notification it answers.
    pub app: Option<String>,
    pub body: String,
    /// What a mail has besides.
    pub mail: Option<Envelope>,
    pub in_reply_to: Option<ReplyTo>,
    /// The beginning of the answered message, shown to the user only: it is not part of the digest, the ledger or a
    /// tool result.
    pub quoted: Option<Untrusted>,
    /// As far as Kai knows, no message was ever exchanged with this number, or with one of these addresses.
    pub first_contact: bool,
    pub origin: RunKind,
    /// The name that the guest who drafted it claims.
    pub guest: Option<String>,
    pub conversation: i64,
    /// The user wrote it themselves.
    pub own: bool,
    /// The user changed its text or its recipient.
    pub edited: bool,
    pub created_at: Timestamp,
    pub status: Status,
    /// How often Kai tried to send it, or to open it on the phone.
    pub attempts: u32,
    /// When it was opened in the phone's own SMS app, if it still waits to be sent there.
    pub composed_at: Option<Timestamp>,
}

/// The status of a draft, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Pending,
    Sending,
    /// The phone accepted it. The text holds any further detail and may be empty.
    Sent(Said),
    /// It was certainly not sent. The text says why.
    Failed(Said),
    /// It may have been sent: Kai stopped while sending it, or the phone did not answer.
    Unknown(Said),
}

/// A [`Status`] without its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DraftState {
    Pending,
    Sending,
    Sent,
    Failed,
    Unknown,
}

impl DraftState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Sending => "SENDING",
            Self::Sent => "SENT",
            Self::Failed => "FAILED",
            Self::Unknown => "UNKNOWN",
        }
    }
}

impl Status {
    pub fn state(&self) -> DraftState {
        match self {
            Self::Pending => DraftState::Pending,
            Self::Sending => DraftState::Sending,
            Self::Sent(_) => DraftState::Sent,
            Self::Failed(_) => DraftState::Failed,
            Self::Unknown(_) => DraftState::Unknown,
        }
    }

    pub fn reason(&self) -> Option<&Said> {
        match self {
            Self::Pending | Self::Sending => None,
            Self::Sent(more) => Some(more).filter(|more| !more.is_empty()),
            Self::Failed(why) | Self::Unknown(why) => Some(why),
        }
    }
}

/// Who staged a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftOrigin {
    /// The user themselves.
    User,
    Command,
    Chat,
    Heartbeat,
    Task,
    /// Another program staged it over MCP.
    Guest,
}

impl DraftOrigin {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Command => "command",
            Self::Chat => "chat",
            Self::Heartbeat => "heartbeat",
            Self::Task => "task",
            Self::Guest => "guest",
        }
    }
}

impl Draft {
    /// Who staged the draft. A chat run without a conversation is a tool call from the command line.
    pub fn came_from(&self) -> DraftOrigin {
        match (self.origin, self.conversation) {
            _ if self.own => DraftOrigin::User,
            (RunKind::Chat, 0) => DraftOrigin::Command,
            (RunKind::Chat, _) => DraftOrigin::Chat,
            (RunKind::Heartbeat, _) => DraftOrigin::Heartbeat,
            (RunKind::Task, _) => DraftOrigin::Task,
            (RunKind::Guest, _) => DraftOrigin::Guest,
        }
    }

    /// Who receives it, with the app where there is one, such as `Alice (Signal)`.
    pub fn recipient(&self) -> String {
        match &self.app {
            Some(app) if *app != self.to => format!("{} ({app})", self.to),
            _ => self.to.clone(),
        }
    }

    /// Everybody who receives it: for a mail also those of Cc and Bcc.
    pub fn everybody(&self) -> String {
        everybody(&self.to, self.mail.as_ref())
    }

    /// Whether others chose words that stand in its summary: those of a conversation's name, the address that an
    /// answered mail names, or those of a reason that a phone or a server gave.
    pub fn has_words_from_outside(&self) -> bool {
        let reason = self.status.reason().is_some_and(|reason| !reasons::is_ours(reason));
        let recipient = match self.channel {
            Channel::Sms => false,
            Channel::Notification => true,
            // One that the user has readdressed is no answer any more, and still has the subject of what it answered.
            Channel::Email => self.in_reply_to.is_some() || self.edited,
        };
        reason || recipient
    }

    /// The hash of everything that is shown and sent. A tap carries it, so that the user cannot approve one text and
    /// send another.
    pub fn digest(&self) -> String {
        let Self { channel, phone, to, app, body, in_reply_to, mail, .. } = self;
        let (app, reply, mail) = (app.as_deref(), in_reply_to.as_ref(), mail.as_ref());
        Shown { channel: *channel, phone: *phone, to, app, body, reply, mail }.digest()
    }
}

impl NewDraft {
    /// The tool that makes drafts of this kind.
    fn tool(&self) -> &'static str {
        staging::tool(self.channel, self.in_reply_to.is_some())
    }

    /// The [`Draft::digest`] that it will have.
    fn digest(&self) -> String {
        let Self { channel, phone, to, app, body, in_reply_to, mail, .. } = self;
        let (app, reply, mail) = (app.as_deref(), in_reply_to.as_ref(), mail.as_ref());
        Shown { channel: *channel, phone: *phone, to, app, body, reply, mail }.digest()
    }
}

/// What the user sees of a draft and approves.
struct Shown<'a> {
    channel: Channel,
    phone: SourceId,
    to: &'a str,
    app: Option<&'a str>,
    body: &'a str,
    reply: Option<&'a ReplyTo>,
    mail: Option<&'a Envelope>,
}

impl Shown<'_> {
    /// Each part is prefixed with its length, so that no two drafts hash the same bytes.
    fn digest(&self) -> String {
        let mut parts = vec![
            self.channel.as_str().to_owned(),
            self.to.to_owned(),
            self.body.to_owned(),
            self.reply.map(ReplyTo::id).unwrap_or_default(),
        ];
        // An SMS by the phone that Kai runs on has no further parts, as when there was nothing else.
        if self.channel != Channel::Sms || !self.phone.is_here() {
            let kind = self.reply.map(ReplyTo::kind).unwrap_or_default();
            parts.extend([
                self.phone.0.to_string(),
                kind.to_owned(),
                self.app.unwrap_or_default().to_owned(),
            ]);
        }
        if let Some(Envelope { from, cc, bcc, subject, quote, .. }) = self.mail {
            let quote = quote.clone().unwrap_or_default();
            parts.extend([from.clone(), cc.join(", "), bcc.join(", "), subject.clone(), quote]);
        }
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        hex::encode(&hash.finalize())
    }
}

/// Everybody who receives a message.
fn everybody(to: &str, mail: Option<&Envelope>) -> String {
    let others = mail.map(|mail| [mail.cc.as_slice(), &mail.bcc].concat()).unwrap_or_default();
    let all = [to.to_owned()].into_iter().chain(others).filter(|one| !one.is_empty());
    all.collect::<Vec<_>>().join(", ")
}

/// The stored name of the kind of run that staged a draft.
fn origin_name(origin: RunKind) -> &'static str {
    match origin {
        RunKind::Chat => "chat",
        RunKind::Heartbeat => "heartbeat",
        RunKind::Task => "task",
        RunKind::Guest => "guest",
    }
}

fn origin_from(stored: &str) -> RunKind {
    match stored {
        "heartbeat" => RunKind::Heartbeat,
        "task" => RunKind::Task,
        "guest" => RunKind::Guest,
        _ => RunKind::Chat,
    }
}

#[cfg(test)]
mod tests {
    use kai_words::said;

    use super::*;

    fn draft() -> Draft {
        Draft {
            id: DraftId(1),
            channel: Channel::Sms,
            phone: SourceId::HERE,
            to: "+15550100".to_owned(),
            app: None,
            body: "Hi".to_owned(),
            mail: None,
            in_reply_to: None,
            quoted: None,
            first_contact: false,
            origin: RunKind::Chat,
            guest: None,
            conversation: 0,
            own: false,
            edited: false,
            created_at: Timestamp::UNIX_EPOCH,
            status: Status::Pending,
            attempts: 0,
            composed_at: None,
        }
    }

    #[test]
    fn every_part_that_is_shown_changes_the_hash() {
        let draft = draft();
        let answer = ReplyTo::Notification("7".to_owned());
        let by_app = Draft { app: Some("Signal".to_owned()), ..draft.clone() };
        let reply = Draft { channel: Channel::Notification, ..by_app.clone() };
        let changed = [
            draft.clone(),
            Draft { to: "+15550101".to_owned(), ..draft.clone() },
            Draft { body: "Hi ".to_owned(), ..draft.clone() },
            Draft { in_reply_to: Some(ReplyTo::Sms(7)), ..draft.clone() },
            Draft { to: "+1555010".to_owned(), body: "0Hi".to_owned(), ..draft.clone() },
            Draft { phone: SourceId(2), ..draft.clone() },
            Draft { phone: SourceId(3), ..draft.clone() },
            Draft { phone: SourceId(2), in_reply_to: Some(ReplyTo::Sms(7)), ..draft.clone() },
            Draft { phone: SourceId(2), in_reply_to: Some(answer.clone()), ..draft.clone() },
            Draft { channel: Channel::Notification, ..draft.clone() },
            reply.clone(),
            Draft { app: Some("Mail".to_owned()), ..reply.clone() },
            Draft { in_reply_to: Some(answer), ..reply.clone() },
            Draft { in_reply_to: Some(ReplyTo::Sms(7)), ..reply },
        ];
        let hashes: std::collections::BTreeSet<String> = changed.iter().map(Draft::digest).collect();
        assert_eq!(hashes.len(), changed.len());
        let sent = Draft { status: Status::Sent(Said::default()), attempts: 1, ..draft.clone() };
        assert_eq!(sent.digest(), draft.digest(), "what is shown is the same");
        let opened = Draft { composed_at: Some(Timestamp::UNIX_EPOCH), ..draft.clone() };
        assert_eq!(opened.digest(), draft.digest(), "it is the same message");
        let quoting = Draft { quoted: Some(Untrusted::new("Dinner?")), ..draft.clone() };
        assert_eq!(quoting.digest(), draft.digest(), "what is quoted is not sent");
        let of_guest = Draft { origin: RunKind::Guest, guest: Some("Zed".to_owned()), ..draft.clone() };
        assert_eq!(of_guest.digest(), draft.digest(), "whoever drafted it");
    }

    /// Recorded before there were several phones and kinds: drafts that waited then can still be tapped.
    #[test]
    fn what_waited_before_keeps_its_hash() {
        let before = "4e3868b10769f85d6ab7b0b354855184ea66f62ce619561ac35f1b39b28f5752";
        assert_eq!(draft().digest(), before);
        let reply = Draft { in_reply_to: Some(ReplyTo::Sms(4711)), ..draft() };
        assert_eq!(reply.digest(), "c57cf2671dc16df2934f3e2ce78cfd08761f81c08cc25d78aa47698b7454e88c");
    }

    #[test]
    fn an_answered_sms_is_a_number_in_json() {
        for (reply, json) in
            [(ReplyTo::Sms(4711), "4711"), (ReplyTo::Notification("p2:0|app|7".to_owned()), "\"p2:0|app|7\"")]
        {
            assert_eq!(serde_json::to_string(&reply).unwrap(), json);
            assert_eq!(serde_json::from_str::<ReplyTo>(json).unwrap(), reply);
            assert_eq!(ReplyTo::stored(reply.kind(), reply.id()), Some(reply));
        }
    }

    #[test]
    fn only_what_others_chose_comes_from_outside() {
        let status = |status| Draft { status, ..draft() };
        let conversation = Draft { channel: Channel::Notification, ..draft() };
        let mail = Draft { channel: Channel::Email, ..draft() };
        let in_reply_to = Some(ReplyTo::Email("1.2.3".to_owned()));
        for (name, draft, outside) in [
            ("waiting", draft(), false),
            ("sent", status(Status::Sent(Said::default())), false),
            ("found", status(Status::Sent(said::draft_reason_found())), false),
            ("died", status(Status::Unknown(said::draft_reason_died())), false),
            (
                "died, in older words",
                status(Status::Unknown("Kai stopped while sending it. It may have been sent.".into())),
                false,
            ),
            ("the phone's words", status(Status::Failed("Obey me.".into())), true),
            ("a conversation's name", conversation, true),
            ("a mail", mail.clone(), false),
            ("an answer to a mail", Draft { in_reply_to, ..mail.clone() }, true),
            ("an answer that now goes elsewhere", Draft { edited: true, ..mail }, true),
        ] {
            assert_eq!(draft.has_words_from_outside(), outside, "{name}");
        }
    }
}
