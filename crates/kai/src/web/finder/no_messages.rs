//! The store edition's twin of `messages.rs`: it has no other parts.

use super::settings::Card;
use crate::app::App;
use crate::failure::Failure;

#[expect(clippy::unused_async, reason = "the foss edition reads the store")]
pub(super) async fn cards(_: &App) -> Result<Vec<Card>, Failure> {
    Ok(vec![])
}
