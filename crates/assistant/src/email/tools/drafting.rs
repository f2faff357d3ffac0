//! The tools with which a model drafts mails.

use std::sync::Arc;

use rusqlite::Transaction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::email::account::Account;
use crate::email::answer::{self, Answered, NoAnswer};
use crate::email::reply::To;
use crate::email::{EmailId, Mailboxes};
use crate::outbox::mail::Envelope;
use crate::outbox::store::StageError;
use crate::outbox::{self, NewDraft, address, body};
use crate::settings::{self, Values};
use crate::tool::{Eyes, Lack, Run, Tool, ToolError, ToolOutput, room};
use crate::untrusted::Untrusted;

/// A draft that waits for the user to send it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DraftStaged {
    draft_id: i64,
    /// The user's address that it is sent from.
    account: String,
    to: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cc: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bcc: Vec<String>,
    subject: Untrusted,
    /// Without what an answer quotes.
    body: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_reply_to: Option<EmailId>,
    status: &'static str,
    message: &'static str,
    /// Set for an answer: others chose the address and the subject.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    untrusted: bool,
}

const WAITS: &str = "Nothing was sent. The draft is waiting for the user to tap Send.";

impl DraftStaged {
    /// As much of it as fits into a result. If the result did not fit, its end would be cut off, and with it the mark
    /// that others chose some of its words.
    fn fitting(self, values: &Values) -> Self {
        let part = room::room(values) / 6;
        let beginning = |text: &str| room::beginning(text, part).0.to_owned();
        let around = Self {
            to: beginning(&self.to),
            cc: room::fitting(self.cc, part).0,
            bcc: room::fitting(self.bcc, part).0,
            subject: self.subject.map(beginning),
            body: String::new(),
            ..self
        };
        let body = room::beginning(&self.body, room::beside(&around, values)).0.to_owned();
        Self { body, ..around }
    }
}

/// Draft an email. Nothing is sent until the user taps Send.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ComposeEmailInput {
    /// The addresses to send to, separated by commas.
    pub to: String,
    pub subject: String,
    /// The text to send.
    pub body: String,
    /// Addresses that get a copy, separated by commas.
    pub cc: Option<String>,
    /// Addresses that get a copy without the others seeing them, separated by commas.
    pub bcc: Option<String>,
    /// The user's address to send from. Only if they have several accounts and name one.
    pub account: Option<String>,
}

pub struct ComposeEmail {
    pub mailboxes: Mailboxes,
    pub clock: Arc<dyn Clock>,
}

impl Tool for ComposeEmail {
    const NAME: &'static str = "compose_email";
    type Input = ComposeEmailInput;
    type Output = DraftStaged;

    fn lacks(&self) -> Option<Lack> {
        self.mailboxes.lacks().map(Lack::from)
    }

    fn look(&self, tx: &Transaction<'_>) -> Result<(), DbError> {
        self.mailboxes.look(tx)
    }

    async fn run(&self, input: ComposeEmailInput, run: &Run) -> Result<ToolOutput<DraftStaged>, ToolError> {
        let accounts = self.mailboxes.accounts().await?;
        let account = choose(&accounts, input.account.as_deref())?;
        let to = addresses(&input.to)?;
        let copies = |typed: Option<String>| addresses(typed.as_deref().unwrap_or_default());
        let envelope = Envelope {
            from: account.address.clone(),
            cc: copies(input.cc)?,
            bcc: copies(input.bcc)?,
            subject: body::subject(&input.subject).map_err(|why| ToolError(why.to_string()))?,
            message_id: answer::message_id(&account.address)?,
            ..Envelope::default()
        };
        let recipients = to.len() + envelope.cc.len() + envelope.bcc.len();
        if recipients == 0 || recipients > address::MOST {
            return Err(ToolError(format!(
                "An email goes to at least one and at most {} addresses.",
                address::MOST
            )));
        }
        let new = answer::draft(account, &to, text(&input.body)?, envelope, run);
        let known = |tx: &Transaction<'_>, new: &NewDraft| answer::all_known(tx, new, |_| false);
        let staged = stage(&self.mailboxes.db, self.clock.as_ref(), new, known).await?;
        let values = self.mailboxes.db.read(settings::load).await?;
        Ok(ToolOutput::own(staged.output(None).fitting(&values)))
    }
}

/// The account for a new mail: the one that is named, or the only one. The error is a sentence for a model.
fn choose<'a>(accounts: &'a [Account], named: Option<&str>) -> Result<&'a Account, ToolError> {
    let named = named.map(str::trim).filter(|name| !name.is_empty());
    let listed = || {
        let all: Vec<&str> = accounts.iter().map(|account| account.address.as_str()).collect();
        all.join(", ")
    };
    match (accounts, named) {
        ([], _) => Err(super::no_account()),
        (_, Some(name)) => {
            accounts.iter().find(|account| address::same(&account.address, name)).ok_or_else(|| {
                ToolError(format!("The user has no account with that address. These exist: {}.", listed()))
            })
        }
        ([only], None) => Ok(only),
        (_, None) => Err(ToolError(format!(
            "The user has several accounts. Say which one in \"account\": {}.",
            listed()
        ))),
    }
}

fn addresses(typed: &str) -> Result<Vec<String>, ToolError> {
    address::list(typed).map_err(|why| ToolError(why.to_string()))
}

fn text(typed: &str) -> Result<String, ToolError> {
    body::sendable_mail(typed).map_err(|why| ToolError(why.to_string()))
}

/// Draft a reply to a received email. It quotes the email. Nothing is sent until the user taps Send.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ReplyEmailInput {
    /// Id of the email to answer, as listed by `check_email` or `search_email`.
    pub email_id: EmailId,
    /// The text to send, without a quote.
    pub body: String,
    /// Whether the others who received the email get the reply too. Only if the user wants that.
    pub reply_all: Option<bool>,
}

pub struct ReplyEmail {
    pub mailboxes: Mailboxes,
    pub clock: Arc<dyn Clock>,
}

impl Tool for ReplyEmail {
    const NAME: &'static str = "reply_email";
    type Input = ReplyEmailInput;
    type Output = DraftStaged;

    fn lacks(&self) -> Option<Lack> {
        self.mailboxes.lacks().map(Lack::from)
    }

    fn look(&self, tx: &Transaction<'_>) -> Result<(), DbError> {
        self.mailboxes.look(tx)
    }

    async fn run(&self, input: ReplyEmailInput, run: &Run) -> Result<ToolOutput<DraftStaged>, ToolError> {
        let id = input.email_id;
        let (account, letter) = self.mailboxes.letter(id).await?;
        let own =
            self.mailboxes.accounts().await?.into_iter().map(|account| account.address).collect::<Vec<_>>();
        let values = self.mailboxes.db.read(settings::load).await?;
        let whom = if input.reply_all == Some(true) { To::All } else { To::Sender };
        let answered = Answered { id, letter: &letter, account: &account, own: &own };
        let new = answered.answer(&input.body, whom, &self.clock.zone(), run)?;
        let known = {
            let (letter, account, own) = (letter.clone(), account.clone(), own.clone());
            move |tx: &Transaction<'_>, new: &NewDraft| {
                Answered { id, letter: &letter, account: &account, own: &own }.is_known(tx, new)
            }
        };
        let staged = stage(&self.mailboxes.db, self.clock.as_ref(), new, known).await?;
        let mut output = staged.output(Some(id));
        output.subject = Eyes::in_run(&values, run).see(&output.subject);
        Ok(ToolOutput::with_messages(output.fitting(&values), vec![id.identity()]))
    }
}

impl From<NoAnswer> for ToolError {
    fn from(error: NoAnswer) -> Self {
        Self(error.to_string())
    }
}

/// A staged draft, as it was asked for. What the user has made of it since is theirs.
struct Staged {
    draft_id: i64,
    status: &'static str,
    new: NewDraft,
}

impl Staged {
    fn output(self, in_reply_to: Option<EmailId>) -> DraftStaged {
        let Envelope { from, cc, bcc, subject, .. } = self.new.mail.unwrap_or_default();
        DraftStaged {
            draft_id: self.draft_id,
            account: from,
            to: self.new.to,
            cc,
            bcc,
            subject: Untrusted::new(subject),
            body: self.new.body,
            untrusted: in_reply_to.is_some(),
            in_reply_to,
            status: self.status,
            message: WAITS,
        }
    }
}

async fn stage(
    db: &Db,
    clock: &dyn Clock,
    new: NewDraft,
    known: impl FnOnce(&Transaction<'_>, &NewDraft) -> Result<bool, DbError> + Send + 'static,
) -> Result<Staged, ToolError> {
    let now = clock.now();
    let staged = db.write(move |tx: &Transaction<'_>| {
        let new = NewDraft { known_contact: known(tx, &new)?, ..new };
        let draft = outbox::store::stage(tx, &new, now)?;
        Ok::<_, StageError>(Staged { draft_id: draft.id.0, status: draft.status.state().as_str(), new })
    });
    staged.await.map_err(|error| ToolError(error.to_string()))
}
