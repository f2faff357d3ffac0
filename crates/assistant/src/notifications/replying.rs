//! The tool with which a model drafts the reply that a notification offers. Nothing here can send.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use kai_words::said;
use rusqlite::Transaction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::record::{NotificationId, Record};
use super::store;
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::inbox::NoReply;
use crate::outbox::door::Answerable;
use crate::outbox::store::StageError;
use crate::outbox::{self, Channel, Draft, NewDraft, ReplyTo};
use crate::phones;
use crate::settings::{self, NOTIFICATIONS_REPLY_ENABLED};
use crate::tool::{Eyes, Lack, Run, Tool, ToolError, ToolOutput};
use crate::untrusted::Untrusted;

/// Draft a reply to a notification that can be answered, such as a chat message. Nothing is sent until the user taps Send.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ReplyNotificationInput {
    /// Id of the notification to answer, as a check or a search lists it.
    pub id: String,
    /// The text to send.
    pub body: String,
}

/// A reply that waits for the user to send it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplyStaged {
    draft_id: i64,
    app: Untrusted,
    conversation: Untrusted,
    body: String,
    in_reply_to: NotificationId,
    status: &'static str,
    message: &'static str,
    untrusted: bool,
}

pub struct ReplyNotification {
    db: Db,
    clock: Arc<dyn Clock>,
    /// As of the last look, some paired phone shows its notifications to Kai.
    paired: AtomicBool,
}

impl ReplyNotification {
    pub fn new(db: Db, clock: Arc<dyn Clock>) -> Self {
        Self { db, clock, paired: AtomicBool::new(false) }
    }
}

impl Tool for ReplyNotification {
    const NAME: &'static str = "reply_notification";
    type Input = ReplyNotificationInput;
    type Output = ReplyStaged;

    fn lacks(&self) -> Option<Lack> {
        (!self.paired.load(Ordering::Relaxed)).then(|| said::lacks_answerable().into())
    }

    fn look(&self, tx: &Transaction<'_>) -> Result<(), DbError> {
        let phones = phones::store::all(tx)?;
        self.paired.store(phones.iter().any(|phone| phone.switches.notifications), Ordering::Relaxed);
        Ok(())
    }

    async fn run(
        &self,
        input: ReplyNotificationInput,
        run: &Run,
    ) -> Result<ToolOutput<ReplyStaged>, ToolError> {
        let body = outbox::body::sendable(&input.body).map_err(|why| ToolError(why.to_string()))?;
        let (id, now, run) = (NotificationId::new(input.id.trim()), self.clock.now(), *run);
        let staged = move |tx: &Transaction<'_>| {
            let Some(record) = shown(tx, &id, now)? else { return Ok(None) };
            let draft = outbox::store::stage(tx, &reply(&record, body, &run), now)?;
            Ok::<_, StageError>(Some((record, draft, Eyes::in_run(&settings::load(tx)?, &run))))
        };
        let staged = self.db.write(staged).await.map_err(|error| ToolError(error.to_string()))?;
        let (record, draft, eyes) = staged.ok_or_else(|| {
            ToolError(
                "There is no such notification on a phone, or it offers no reply. Those with \"can_reply\" do.".to_owned(),
            )
        })?;
        Ok(output(record, draft, eyes))
    }
}

fn output(record: Record, draft: Draft, eyes: Eyes) -> ToolOutput<ReplyStaged> {
    let identity = record.id.identity();
    let seen = |name: String| eyes.see(&Untrusted::new(name));
    let staged = ReplyStaged {
        draft_id: draft.id.0,
        status: draft.status.state().as_str(),
        app: seen(draft.app.unwrap_or_default()),
        conversation: seen(draft.to),
        body: draft.body,
        in_reply_to: record.id,
        message: "Nothing was sent. The draft is waiting for the user to tap Send.",
        untrusted: true,
    };
    ToolOutput::with_messages(staged, vec![identity])
}

/// The answer to a notification, in that run.
fn reply(record: &Record, body: String, run: &Run) -> NewDraft {
    let (app, to) = names(record);
    NewDraft {
        channel: Channel::Notification,
        phone: record.id.source(),
        to,
        app: Some(app),
        body,
        mail: None,
        in_reply_to: Some(ReplyTo::Notification(record.id.as_str().to_owned())),
        quoted: Some(record.gist()),
        known_contact: true,
        origin: run.kind,
        guest: run.guest,
        conversation: run.conversation,
    }
}

/// The names of the app and of the conversation, as a draft shows them.
fn names(record: &Record) -> (String, String) {
    let app = record.app_label.as_written().to_owned();
    let title = record.title.as_written();
    (app.clone(), if title.trim().is_empty() { app } else { title.to_owned() })
}

/// The notification, if it is still on a paired phone and offers a reply.
fn shown(tx: &Transaction<'_>, id: &NotificationId, now: Timestamp) -> Result<Option<Record>, DbError> {
    if id.source().is_here() {
        return Ok(None);
    }
    Ok(store::on_screen(tx, id, now)?.filter(|record| record.reply_id.is_some()))
}

/// The user's own answer to a notification.
pub(super) fn own(
    tx: &Transaction<'_>,
    id: &NotificationId,
    body: String,
    now: Timestamp,
) -> Result<NewDraft, NoReply> {
    if store::find(tx, id, now)?.is_none() {
        return Err(NoReply::Gone);
    }
    if !settings::load(tx)?.on(&NOTIFICATIONS_REPLY_ENABLED) {
        return Err(NoReply::Impossible(said::inbox_no_reply_notifications_off()));
    }
    let record = shown(tx, id, now)?.ok_or_else(|| NoReply::Impossible(said::inbox_no_reply_offered()))?;
    Ok(reply(&record, body, &Run::BY_HAND))
}

/// How the notification with that id can be answered now, for the outbox's door. A phone that has connected again takes
/// old ids and drops the answer, so until it has told what it shows, nothing on it can be answered.
pub fn answerable(tx: &Transaction<'_>, id: &str, now: Timestamp) -> Result<Option<Answerable>, DbError> {
    let id = NotificationId::new(id);
    if store::is_away(tx, id.source())? {
        return Ok(None);
    }
    let Some(record) = shown(tx, &id, now)? else { return Ok(None) };
    let (app, conversation) = names(&record);
    Ok(record.reply_id.map(|reply_id| Answerable { reply_id, app, conversation }))
}
