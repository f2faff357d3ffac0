//! The tools with which a model drafts SMS.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kai_words::said;
use rusqlite::Transaction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reading::meant;
use crate::access::Access;
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::gate::Level;
use crate::outbox::door::Senders;
use crate::outbox::route::{self, Exit};
use crate::outbox::store::StageError;
use crate::outbox::{self, Channel, Draft, NewDraft, ReplyTo, number};
use crate::sms::archive::View;
use crate::sms::names::Candidate;
use crate::sms::received::{Found, Received};
use crate::sms::{Sms, SmsId};
use crate::source::SourceId;
use crate::tool::{Lack, Provenance, Run, Tool, ToolError, ToolOutput};
use crate::untrusted::Untrusted;

/// The phones that could send what is drafted. A paired phone need not be connected for that.
pub struct DraftingPhones {
    db: Db,
    clock: Arc<dyn Clock>,
    senders: Arc<Senders>,
    /// As of the last look, some paired phone may send.
    paired: AtomicBool,
}

impl DraftingPhones {
    pub fn new(db: Db, clock: Arc<dyn Clock>, senders: Arc<Senders>) -> Self {
        Self { db, clock, senders, paired: AtomicBool::new(false) }
    }

    fn lacks(&self) -> Option<Lack> {
        if self.paired.load(Ordering::Relaxed) {
            return None;
        }
        let Some(known) = self.senders.access(SourceId::HERE) else {
            return Some(said::lacks_sending().into());
        };
        // The permission cannot be checked without sending, so it counts as granted until a send is refused. A refusal
        // counts for a minute only, or Kai would never notice that the user has since allowed it.
        match known.fresh(self.clock.now()) {
            Some(Access::Denied(what_to_do)) => Some(what_to_do.into()),
            _ => None,
        }
    }

    fn look(&self, tx: &Transaction<'_>) -> Result<(), DbError> {
        self.learn(&outbox::exits::exits(tx, self.senders.has(SourceId::HERE))?);
        Ok(())
    }

    fn learn(&self, exits: &[Exit]) {
        self.paired.store(exits.iter().any(|exit| !exit.source.is_here()), Ordering::Relaxed);
    }

    async fn exits(&self) -> Result<Vec<Exit>, DbError> {
        let here = self.senders.has(SourceId::HERE);
        let exits = self.db.read(move |tx| outbox::exits::exits(tx, here)).await?;
        self.learn(&exits);
        Ok(exits)
    }

    /// The phone for a new message, as the result names it.
    async fn for_new(&self, named: Option<&str>) -> Result<ChosenPhone, ToolError> {
        let exits = self.exits().await?;
        let exit = route::choose(&exits, named).map_err(ToolError)?;
        Ok(ChosenPhone::among(&exits, exit))
    }

    /// The phone that received a message, for the answer to it.
    async fn for_answer(&self, received_by: SourceId) -> Result<ChosenPhone, ToolError> {
        let exits = self.exits().await?;
        let exit = exits.iter().find(|exit| exit.source == received_by);
        let exit = exit.ok_or_else(|| {
            ToolError(
                "The phone that received this SMS is not allowed to send. The user can change that in Settings, under \
                 Phones."
                    .to_owned(),
            )
        })?;
        Ok(ChosenPhone::among(&exits, exit))
    }
}

/// The phone that a draft leaves by.
struct ChosenPhone {
    source: SourceId,
    /// Its name, if there is more than one phone.
    name: Option<String>,
}

impl ChosenPhone {
    fn among(exits: &[Exit], exit: &Exit) -> Self {
        Self { source: exit.source, name: (exits.len() > 1).then(|| exit.name.clone()) }
    }
}

/// A draft that waits for the user to send it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DraftStaged {
    draft_id: i64,
    to: String,
    body: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_reply_to: Option<SmsId>,
    /// The phone that sends it, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    phone: Option<String>,
    status: &'static str,
    message: &'static str,
}

const WAITS: &str = "Nothing was sent. The draft is waiting for the user to tap Send.";

impl DraftStaged {
    fn of(draft: Draft, phone: Option<String>) -> Self {
        let in_reply_to = match draft.in_reply_to {
            Some(ReplyTo::Sms(number)) => Some(SmsId(number)),
            Some(ReplyTo::Notification(_) | ReplyTo::Email(_)) | None => None,
        };
        Self {
            draft_id: draft.id.0,
            status: draft.status.state().as_str(),
            to: draft.to,
            body: draft.body,
            in_reply_to,
            phone,
            message: WAITS,
        }
    }
}

/// What `send_sms` did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Drafted {
    Staged(DraftStaged),
    /// Nothing: the name that it was given is not one number.
    Unclear(WhoIsMeant),
}

/// The contacts that a name may mean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WhoIsMeant {
    message: &'static str,
    /// Names with their numbers, at most five.
    candidates: Vec<Untrusted>,
    /// Set if there are any: others chose the names.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    untrusted: bool,
}

const NOBODY: &str = "Nothing was drafted: no contact has this name. Ask the user for the number.";
const SEVERAL: &str =
    "Nothing was drafted: the name does not mean one number. Ask the user who is meant, and use the number.";

/// Draft an SMS. Nothing is sent until the user taps Send.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SendSmsInput {
    /// The phone number to send to, or the name of a contact if the user lets Kai see names.
    pub to: String,
    /// The text to send.
    pub body: String,
    /// The name of the phone to send by. Only if the user has several phones and names one.
    pub phone: Option<String>,
}

pub struct SendSms {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
    /// Only used to look up names, and whether the number wrote before. Drafting works without any message.
    pub received: Received,
    pub phones: Arc<DraftingPhones>,
}

impl Tool for SendSms {
    const NAME: &'static str = "send_sms";
    type Input = SendSmsInput;
    type Output = Drafted;

    fn lacks(&self) -> Option<Lack> {
        self.phones.lacks()
    }

    fn look(&self, tx: &Transaction<'_>) -> Result<(), DbError> {
        self.phones.look(tx)
    }

    async fn run(&self, input: SendSmsInput, run: &Run) -> Result<ToolOutput<Drafted>, ToolError> {
        let to = match self.recipient(&input.to).await? {
            Ok(number) => number,
            Err(candidates) => return Ok(not_one(&candidates)),
        };
        let phone = self.phones.for_new(input.phone.as_deref()).await?;
        let known_contact = self.received.wrote_before(&to).await?;
        let new = NewDraft {
            channel: Channel::Sms,
            phone: phone.source,
            to,
            app: None,
            body: text(&input.body)?,
            mail: None,
            in_reply_to: None,
            quoted: None,
            known_contact,
            origin: run.kind,
            guest: run.guest,
            conversation: run.conversation,
        };
        let staged = stage(&self.db, self.clock.as_ref(), new, phone.name).await?;
        Ok(ToolOutput { output: Drafted::Staged(staged.output), meaning: staged.meaning })
    }
}

impl SendSms {
    /// The number that is meant: as it is given, or the only one that a contact of this name has; otherwise those who
    /// may be meant.
    async fn recipient(&self, to: &str) -> Result<Result<String, Vec<Candidate>>, ToolError> {
        match (number::recipient(to), self.received.number_named(to).await?) {
            (Ok(number), _) => Ok(Ok(number)),
            (Err(_), Some(named)) => Ok(named),
            (Err(why), None) => Err(ToolError(why)),
        }
    }
}

/// Says who may be meant by a name that several numbers have, or none. Anybody can send a contact, so the names are a
/// stranger's text.
fn not_one(candidates: &[Candidate]) -> ToolOutput<Drafted> {
    let (message, taint) =
        if candidates.is_empty() { (NOBODY, Level::Nothing) } else { (SEVERAL, Level::People) };
    let candidates = candidates.iter().map(|candidate| Untrusted::new(candidate.shown())).collect();
    let output = Drafted::Unclear(WhoIsMeant { message, candidates, untrusted: !taint.is_nothing() });
    ToolOutput { output, meaning: Provenance { taint, mentions: vec![] } }
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
    pub received: Received,
    pub phones: Arc<DraftingPhones>,
}

impl Tool for ReplySms {
    const NAME: &'static str = "reply_sms";
    type Input = ReplySmsInput;
    type Output = DraftStaged;

    fn lacks(&self) -> Option<Lack> {
        self.phones.lacks().or_else(|| self.received.lacks().map(Lack::from))
    }

    fn look(&self, tx: &Transaction<'_>) -> Result<(), DbError> {
        self.phones.look(tx)?;
        self.received.look(tx)
    }

    async fn probe_access(&self) {
        self.received.probe_access().await;
    }

    async fn run(&self, input: ReplySmsInput, run: &Run) -> Result<ToolOutput<DraftStaged>, ToolError> {
        let body = text(&input.body)?;
        let Found { source, sms } = meant(&self.received, View::Inbox, input.sms_id).await?;
        let phone = self.phones.for_answer(source).await?;
        let new = answer(sms, phone.source, body, run)
            .ok_or_else(|| ToolError("The sender of this SMS has no number to reply to.".to_owned()))?;
        stage(&self.db, self.clock.as_ref(), new, phone.name).await
    }
}

/// The answer to a received message, in that run. `None` if its sender has no number.
pub(in crate::sms) fn answer(sms: Sms, phone: SourceId, body: String, run: &Run) -> Option<NewDraft> {
    Some(NewDraft {
        channel: Channel::Sms,
        phone,
        to: number::recipient(sms.address.as_written()).ok()?,
        app: None,
        body,
        mail: None,
        in_reply_to: Some(ReplyTo::Sms(sms.id.0)),
        quoted: Some(sms.body),
        known_contact: true,
        origin: run.kind,
        guest: run.guest,
        conversation: run.conversation,
    })
}

fn text(body: &str) -> Result<String, ToolError> {
    outbox::body::sendable(body).map_err(|why| ToolError(why.to_string()))
}

async fn stage(
    db: &Db,
    clock: &dyn Clock,
    new: NewDraft,
    phone: Option<String>,
) -> Result<ToolOutput<DraftStaged>, ToolError> {
    let now = clock.now();
    let staged = db.write(move |tx: &Transaction<'_>| outbox::store::stage(tx, &new, now)).await;
    let draft = staged.map_err(|error: StageError| ToolError(error.to_string()))?;
    Ok(ToolOutput::own(DraftStaged::of(draft, phone)))
}
