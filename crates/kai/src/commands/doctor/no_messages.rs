//! The store edition's twin of `messages.rs`: there is nothing to check.

#![expect(clippy::unused_async, reason = "the foss edition waits here, and can fail")]

use super::Check;
use crate::app::App;

pub(super) async fn checks(_: &App) -> Vec<Check> {
    vec![]
}
