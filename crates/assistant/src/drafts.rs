//! The tool with which a model sees what became of the drafts.

use std::sync::Arc;

use rusqlite::Transaction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::gate::Level;
use crate::guests::{self, GuestId};
use crate::outbox::{Channel, Draft, ReplyTo, door};
use crate::settings;
use crate::tool::{Eyes, Provenance, Run, Tool, ToolError, ToolOutput};
use crate::untrusted::Untrusted;

/// See what became of the drafts: waiting, sent, failed.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct CheckDraftsInput {}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DraftSummary {
    id: i64,
    to: String,
    /// The app whose notification it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    app: Option<String>,
    /// The subject of a mail.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    status: &'static str,
    reason: Option<String>,
    /// The user sends it in the phone's own app.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    opened_on_phone: bool,
}

impl DraftSummary {
    /// As a model sees it: others chose the name of a conversation or the subject of an answered mail, which may hold a
    /// code.
    fn of(draft: Draft, eyes: Eyes) -> Self {
        let seen = |name: String| eyes.see(&Untrusted::new(name)).as_written().to_owned();
        Self {
            id: draft.id.0,
            status: draft.status.state().as_str(),
            reason: draft.status.reason().map(ToString::to_string),
            opened_on_phone: draft.composed_at.is_some(),
            subject: draft.mail.as_ref().map(|mail| seen(mail.subject.clone())),
            to: if draft.channel == Channel::Sms { draft.to } else { seen(draft.everybody()) },
            app: draft.app.map(seen),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckDraftsOutput {
    count: usize,
    drafts: Vec<DraftSummary>,
    /// Set if others chose some of the words.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    untrusted: bool,
}

pub struct CheckDrafts {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
}

impl Tool for CheckDrafts {
    const NAME: &'static str = "check_drafts";
    type Input = CheckDraftsInput;
    type Output = CheckDraftsOutput;

    async fn run(&self, _: CheckDraftsInput, run: &Run) -> Result<ToolOutput<CheckDraftsOutput>, ToolError> {
        let now = self.clock.now();
        let guest = run.guest;
        let read = self.db.read(move |tx| {
            Ok::<_, DbError>((visible_to(guest, door::drafts(tx, now)?, tx)?, settings::load(tx)?))
        });
        let (drafts, values) = read.await?;
        let eyes = Eyes::in_run(&values, run);
        let meaning = meaning(&drafts);
        let untrusted = !meaning.taint.is_nothing();
        let drafts: Vec<DraftSummary> =
            drafts.into_iter().map(|draft| DraftSummary::of(draft, eyes)).collect();
        Ok(ToolOutput { output: CheckDraftsOutput { count: drafts.len(), drafts, untrusted }, meaning })
    }
}

/// The drafts that a run may see: a guest sees its own only.
fn visible_to(
    guest: Option<GuestId>,
    mut drafts: Vec<Draft>,
    tx: &Transaction<'_>,
) -> Result<Vec<Draft>, DbError> {
    let Some(guest) = guest else { return Ok(drafts) };
    let name = guests::store::get(tx, guest)?.map(|guest| guest.name);
    drafts.retain(|draft| draft.guest.is_some() && draft.guest == name);
    Ok(drafts)
}

/// What a list of drafts holds of others: no text of the messages that they answer, but the name of a conversation, the
/// address and the subject of an answered mail, and what a phone or a server said about a failure.
fn meaning(drafts: &[Draft]) -> Provenance {
    let outside = drafts.iter().any(Draft::has_words_from_outside);
    let answered = drafts.iter().filter_map(|draft| match &draft.in_reply_to {
        Some(ReplyTo::Notification(id)) => Some(format!("notification {id}")),
        Some(ReplyTo::Email(id)) => Some(format!("email {id}")),
        Some(ReplyTo::Sms(_)) | None => None,
    });
    let taint = if outside { Level::People } else { Level::Nothing };
    Provenance { taint, mentions: answered.collect() }
}
