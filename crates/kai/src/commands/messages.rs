//! What the other features ask about messages, notifications, drafts, paired phones and the demo.

use kai_assistant::agent::Ready;
use kai_assistant::db::DbError;
use kai_assistant::outbox::Draft;
use kai_assistant::outbox::store as drafts;
use kai_assistant::settings::{self, Setting};
use kai_assistant::untrusted::Untrusted;
use kai_bridges::simulated;
use kai_words::Lang;
use rusqlite::Transaction;

use super::{notifications, phones, sms};
use crate::app::App;
use crate::call::messages::{NotificationsPart, PhonesPart, SmsPart};
use crate::failure::Failure;

pub(crate) async fn sms_part(app: &App) -> Result<SmsPart, DbError> {
    Ok(SmsPart { sms: sms::status(app).await? })
}

pub(crate) async fn notifications_part(app: &App) -> Result<NotificationsPart, DbError> {
    Ok(NotificationsPart { notifications: notifications::status(app).await? })
}

pub(crate) async fn phones_part(app: &App) -> Result<PhonesPart, DbError> {
    Ok(PhonesPart { phones: phones::status(app).await? })
}

/// Applies a setting that is more than a value: the platform must agree before it can be turned on. Returns whether the
/// value has been stored by that.
pub(crate) async fn set(app: &App, setting: &Setting, value: &str) -> Result<bool, Failure> {
    if setting.key == settings::NOTIFICATIONS_ENABLED.key {
        notifications::switch(app, value == "true").await?;
        return Ok(true);
    }
    allow(app, setting, value).await.map(|()| false)
}

/// Checks settings that need the platform's permission before they can be turned on.
async fn allow(app: &App, setting: &Setting, value: &str) -> Result<(), Failure> {
    if value != "true" || app.values().await?.on(setting) {
        return Ok(());
    }
    match setting.key.as_ref() {
        key if key == settings::SMS_ENABLED.key => phones::turn_reading_on(app).await,
        key if key == settings::SMS_SEND_ENABLED.key => phones::can_turn_sending_on(app).await,
        _ => Ok(()),
    }
}

/// The characters of a draft's text in a notification.
const PREVIEW: usize = 240;
/// The characters of a recipient's name there.
const RECIPIENT: usize = 80;

/// Title and text of a notification about drafts that were not announced yet; marks them as announced.
pub(crate) fn new_drafts(tx: &Transaction<'_>) -> Result<Option<(String, String)>, DbError> {
    Ok(describe(&drafts::take_unannounced(tx)?))
}

fn describe(waiting: &[Draft]) -> Option<(String, String)> {
    let (first, others) = waiting.split_first()?;
    Some(if others.is_empty() {
        let body = Untrusted::new(first.body.as_str()).line(PREVIEW);
        ("A draft is waiting for you".to_owned(), format!("To {}: {body}", to(first)))
    } else {
        let mut all: Vec<String> = waiting.iter().map(to).collect();
        all.dedup();
        (format!("{} drafts are waiting for you", waiting.len()), format!("To {}", all.join(", ")))
    })
}

/// The recipient in one line. Others chose the name of a conversation.
fn to(draft: &Draft) -> String {
    Untrusted::new(draft.recipient()).line(RECIPIENT)
}

/// The path to the first pending draft on the page.
pub(crate) fn pending_draft_path(tx: &Transaction<'_>) -> Result<Option<String>, DbError> {
    Ok(drafts::unwatched(tx)?.first().map(|draft| format!("/#draft-{}", draft.id.0)))
}

/// The model of the demo, which plays a script; `None` outside the demo.
pub(crate) fn demo_model(app: &App) -> Option<Ready> {
    let label = Lang::ENGLISH.demo_model().to_owned();
    app.home.is_demo().then(|| Ready { label, local: true, model: Box::new(simulated::Script) })
}
