//! The store edition's twin of `messages.rs`: the daemon has nothing to do here.

#![expect(
    clippy::unnecessary_wraps,
    clippy::unused_async,
    reason = "the foss edition waits here, and can fail"
)]

use std::sync::Arc;

use jiff::Timestamp;
use kai_assistant::db::DbError;
use rusqlite::Transaction;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::failure::Failure;

pub(super) async fn begin(_: &App) -> Result<(), Failure> {
    Ok(())
}

pub(super) async fn listen(_: Arc<App>, _: CancellationToken) {}

pub(super) fn retire(_: &App) {}

/// This edition has no phones.
pub(super) async fn has_phone(_: &App) -> Result<Option<bool>, Failure> {
    Ok(None)
}

pub(super) async fn poll(_: &App) {}

pub(super) async fn read_contacts(_: &App) {}

pub(super) fn sweep(_: &Transaction<'_>, _: Timestamp) -> Result<(), DbError> {
    Ok(())
}

pub(super) fn tick(_: &Transaction<'_>, _: Timestamp) -> Result<(), DbError> {
    Ok(())
}
