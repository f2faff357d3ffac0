//! What the other features ask about messages, notifications, paired phones and the demo.

use std::time::Duration;

use kai_assistant::agent::Ready;
use kai_assistant::db::DbError;
use kai_assistant::models::BUILT_IN;
use kai_assistant::models::vision::Vision;
use kai_assistant::settings::{self, Setting};
use kai_bridges::simulated;
use kai_words::Lang;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{contacts, notifications, phones, sms};
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
    if setting.key == settings::CONTACT_NAMES_ENABLED.key {
        contacts::switch(app, value == "true").await?;
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

/// Something that waits for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    Report,
    Drafts(usize),
}

impl Waits {
    /// A notification with the same key replaces the one before.
    fn key(self) -> &'static str {
        match self {
            Self::Report => "kai-heartbeat",
            Self::Drafts(_) => "kai-drafts",
        }
    }

    /// Says that something waits, and nothing of what it is: whoever sees the phone reads it.
    fn text(self, lang: Lang) -> String {
        match self {
            Self::Report => lang.telling_report().to_owned(),
            Self::Drafts(count) => lang.telling_drafts(count),
        }
    }
}

/// Whether some paired phone is there on which the user wants to be told.
pub(crate) fn can_tell(app: &App) -> bool {
    !app.messages.network.told_phones().is_empty()
}

/// Shows on every paired phone on which the user wants that, that something waits, and returns whether one did. One that takes
/// long holds up no other.
pub(crate) async fn tell_phones(app: &App, waits: Waits) -> Result<bool, DbError> {
    let mut is_told = false;
    let text = waits.text(App::lang(&app.values().await?, &app.env));
    let mut telling = JoinSet::new();
    for phone in app.messages.network.told_phones() {
        let text = text.clone();
        telling.spawn(async move { timeout(TELLING, phone.tell(waits.key(), NAME, &text)).await });
    }
    while let Some(told) = telling.join_next().await {
        if matches!(told, Ok(Ok(Ok(())))) {
            is_told = true;
        } else {
            tracing::warn!(?told, "a phone could not be told that something waits");
        }
    }
    Ok(is_told)
}

/// The title of what phones show.
const NAME: &str = "Kai";
/// How long a phone may take.
const TELLING: Duration = Duration::from_secs(10);

/// The models of the demo, which play a script, each with what it stands for: one for any model, and one for a model
/// that runs inside Kai. `None` outside the demo.
pub(crate) fn demo_models(app: &App) -> Option<Vec<(Ready, &'static str)>> {
    let english = Lang::ENGLISH;
    let scripted = |(label, preset): (&str, &'static str)| {
        let (label, vision) = (label.to_owned(), Vision::Unknown);
        (Ready { label, local: true, vision, model: Box::new(simulated::Script) }, preset)
    };
    let both = [(english.demo_model(), "demo"), (english.demo_local_model(), BUILT_IN)];
    app.home.is_demo().then(|| both.into_iter().map(scripted).collect())
}
