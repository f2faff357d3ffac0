//! The store edition's twin of `messages.rs`: there are no messages, no drafts and no demo.

#![expect(
    clippy::unnecessary_wraps,
    clippy::unused_async,
    reason = "the foss edition waits here, and can fail"
)]

use kai_assistant::agent::Ready;
use kai_assistant::db::DbError;
use kai_assistant::settings::Setting;
use kai_words::Lang;
use rusqlite::Transaction;

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

pub(crate) struct NewDrafts {
    pub(crate) title: String,
    pub(crate) message: String,
    pub(crate) count: usize,
}

pub(crate) fn new_drafts(_: &Transaction<'_>, _: Lang) -> Result<Option<NewDrafts>, DbError> {
    Ok(None)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    Report,
    Drafts(usize),
}

pub(crate) fn can_tell(_: &App) -> bool {
    false
}

pub(crate) async fn tell_phones(_: &App, _: Waits) -> Result<(), DbError> {
    Ok(())
}

pub(crate) fn pending_draft_path(_: &Transaction<'_>) -> Result<Option<String>, DbError> {
    Ok(None)
}

pub(crate) fn demo_model(_: &App) -> Option<Ready> {
    None
}
