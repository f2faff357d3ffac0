//! The store edition's twin of `messages.rs`: there are no phones and no demo.

#![expect(clippy::unused_async, reason = "the foss edition waits here, and can fail")]

use kai_assistant::agent::Ready;
use kai_assistant::db::DbError;
use kai_assistant::settings::Setting;

use crate::app::App;
use crate::call::messages::{NotificationsPart, PhonesPart, SmsPart};
use crate::failure::Failure;

pub(crate) async fn sms_part(_: &App) -> Result<SmsPart, DbError> {
    Ok(SmsPart {})
}

pub(crate) async fn notifications_part(_: &App) -> Result<NotificationsPart, DbError> {
    Ok(NotificationsPart {})
}

pub(crate) async fn phones_part(_: &App) -> Result<PhonesPart, DbError> {
    Ok(PhonesPart {})
}

pub(crate) async fn set(_: &App, _: &Setting, _: &str) -> Result<bool, Failure> {
    Ok(false)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    Report,
    Drafts(usize),
}

pub(crate) fn can_tell(_: &App) -> bool {
    false
}

pub(crate) async fn tell_phones(_: &App, _: Waits) -> Result<bool, DbError> {
    Ok(false)
}

pub(crate) fn demo_models(_: &App) -> Option<Vec<(Ready, &'static str)>> {
    None
}
