//! The tools with which a model drafts SMS, and sees what became of the drafts.

use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::Transaction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reading::{Reading, meant};
use crate::access::{Access, Known};
use crate::clock::Clock;
use crate::db::Db;
use crate::outbox::{self, Channel, Draft, NewDraft, door, number};
use crate::settings::{self, SMS_ENABLED};
use crate::sms::SmsId;
use crate::sms::inbox::Inbox;
use crate::tool::{Run, Tool, ToolError, ToolOutput};

/// A draft that waits for the user to send it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DraftStaged {
    draft_id: i64,
    to: String,
    body: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_reply_to: Option<SmsId>,
    status: &'static str,
    message: &'static str,
}

const WAITS: &str = "Nothing was sent. The draft is waiting for the user to tap Send.";

impl DraftStaged {
    fn of(draft: Draft) -> Self {
        Self {
            draft_id: draft.id.0,
            status: draft.status.state().as_str(),
            to: draft.to,
            body: draft.body,
            in_reply_to: draft.in_reply_to.map(SmsId),
            message: WAITS,
        }
    }
}

/// Draft an SMS. Nothing is sent until the user taps Send.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SendSmsInput {
    /// The phone number to send to. Names are not looked up.
    pub to: String,
    /// The text to send.
    pub body: String,
}

pub struct SendSms {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
    /// Only used to check whether the number wrote before. Drafting works without it.
    pub inbox: Option<Arc<Inbox>>,
    /// What is known about the permission to send; `None` if no phone that can send is connected.
    pub sending: Option<Arc<Known>>,
}

impl Tool for SendSms {
    const NAME: &'static str = "send_sms";
    type Input = SendSmsInput;
    type Output = DraftStaged;

    fn lacks(&self) -> Option<String> {
        cannot_send(self.sending.as_deref(), self.clock.now())
    }

    async fn run(&self, input: SendSmsInput, run: &Run) -> Result<ToolOutput<DraftStaged>, ToolError> {
        let to = number::recipient(&input.to).map_err(ToolError)?;
        let known_contact = self.wrote_before(&to).await?;
        let new = NewDraft {
            channel: Channel::Sms,
            to,
            body: text(&input.body)?,
            in_reply_to: None,
            quoted: None,
            known_contact,
            origin: run.kind,
            conversation: run.conversation,
        };
        stage(&self.db, self.clock.as_ref(), new).await
    }
}

/// How many of the newest messages are searched for a known sender.
const REMEMBERED: usize = 500;

impl SendSms {
    /// Whether this number wrote to the user recently. Returns false if Kai may not read SMS; unless Kai has sent to
    /// the number before, the draft then counts as a first contact.
    async fn wrote_before(&self, to: &str) -> Result<bool, ToolError> {
        let values = self.db.read(settings::load).await?;
        let Some(inbox) = self.inbox.as_ref().filter(|_| values.on(&SMS_ENABLED)) else { return Ok(false) };
        let recent = inbox.newest(0, REMEMBERED).await.unwrap_or_default();
        Ok(recent.iter().any(|sms| number::same(sms.address.as_written(), to)))
    }
}

/// Draft a reply to a received SMS. Nothing is sent until the user taps Send.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ReplySmsInput {
    /// Id of the message to answer, as listed by `check_sms` or `search_sms`.
    pub sms_id: SmsId,
    /// The text to send.
    pub body: String,
}

pub struct ReplySms {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
    pub inbox: Option<Arc<Inbox>>,
    pub sending: Option<Arc<Known>>,
}

impl Tool for ReplySms {
    const NAME: &'static str = "reply_sms";
    type Input = ReplySmsInput;
    type Output = DraftStaged;

    fn lacks(&self) -> Option<String> {
        cannot_send(self.sending.as_deref(), self.clock.now())
            .or_else(|| Reading { inbox: self.inbox.as_ref() }.lacks())
    }

    async fn probe_access(&self) {
        Reading { inbox: self.inbox.as_ref() }.probe_access().await;
    }

    async fn run(&self, input: ReplySmsInput, run: &Run) -> Result<ToolOutput<DraftStaged>, ToolError> {
        let inbox = Reading { inbox: self.inbox.as_ref() }.inbox()?;
        let body = text(&input.body)?;
        let sms = meant(&self.db, inbox, input.sms_id).await?;
        let to = number::recipient(sms.address.as_written())
            .map_err(|_| ToolError("The sender of this SMS has no number to reply to.".to_owned()))?;
        let new = NewDraft {
            channel: Channel::Sms,
            to,
            body,
            in_reply_to: Some(sms.id.0),
            quoted: Some(sms.body),
            known_contact: true,
            origin: run.kind,
            conversation: run.conversation,
        };
        stage(&self.db, self.clock.as_ref(), new).await
    }
}

fn cannot_send(sending: Option<&Known>, now: Timestamp) -> Option<String> {
    let Some(known) = sending else {
        return Some(
            "No phone that can send SMS is connected. The user can run Kai in Termux on the phone: docs/sms.md"
                .to_owned(),
        );
    };
    // The permission cannot be checked without sending, so it counts as granted until a send is refused. A refusal
    // counts for a minute only, or Kai would never notice that the user has since allowed it.
    match known.fresh(now) {
        Some(Access::Denied(what_to_do)) => Some(what_to_do),
        _ => None,
    }
}

/// The most characters in a text: more than any phone can send as one message in parts.
const LONGEST: usize = 10_000;

fn text(body: &str) -> Result<String, ToolError> {
    let body = body.replace("\r\n", "\n");
    if body.trim().is_empty() {
        return Err(ToolError("\"body\" must not be empty. Say what to send.".to_owned()));
    }
    let length = body.chars().count();
    if length > LONGEST {
        return Err(ToolError(format!("The text has {length} characters; an SMS takes at most {LONGEST}.")));
    }
    // Phones trim the text, so trim it here: the draft then shows exactly what is sent. Many programs treat NUL as the
    // end of a text, so it could hide the rest.
    Ok(body.replace('\0', "").trim().to_owned())
}

async fn stage(db: &Db, clock: &dyn Clock, new: NewDraft) -> Result<ToolOutput<DraftStaged>, ToolError> {
    let now = clock.now();
    let staged = db.write(move |tx: &Transaction<'_>| outbox::store::stage(tx, &new, now)).await;
    staged.map(DraftStaged::of).map(ToolOutput::own).map_err(|error| ToolError(error.to_string()))
}

/// See what became of the drafts: waiting, sent, failed.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct CheckDraftsInput {}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DraftSummary {
    id: i64,
    to: String,
    status: &'static str,
    reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckDraftsOutput {
    count: usize,
    drafts: Vec<DraftSummary>,
}

pub struct CheckDrafts {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
}

impl Tool for CheckDrafts {
    const NAME: &'static str = "check_drafts";
    type Input = CheckDraftsInput;
    type Output = CheckDraftsOutput;

    async fn run(&self, _: CheckDraftsInput, _: &Run) -> Result<ToolOutput<CheckDraftsOutput>, ToolError> {
        let now = self.clock.now();
        let drafts = self.db.read(move |tx| door::drafts(tx, now)).await?;
        let fate = |draft: Draft| DraftSummary {
            id: draft.id.0,
            status: draft.status.state().as_str(),
            reason: draft.status.reason().map(str::to_owned),
            to: draft.to,
        };
        let drafts: Vec<DraftSummary> = drafts.into_iter().map(fate).collect();
        // Only numbers and states: the result holds no text from the messages that the drafts answer.
        Ok(ToolOutput::own(CheckDraftsOutput { count: drafts.len(), drafts }))
    }
}
