//! What Kai does by itself: a card for each source it looks at, its heartbeat, its memory, its tasks.

mod alarms;
mod heartbeat;
mod memory;
#[cfg(feature = "notifications")]
mod notifications;
#[cfg(feature = "sms")]
mod sms;
mod tasks;

use axum::Router;
#[cfg(any(feature = "sms", feature = "notifications"))]
use kai_assistant::settings::CODE_REDACTION_ENABLED;
#[cfg(any(feature = "sms", feature = "notifications"))]
use maud::Markup;

use super::Look;
use super::parts::Region;
#[cfg(any(feature = "sms", feature = "notifications"))]
use super::parts::{Switch, switch};
use crate::failure::Failure;
use crate::web::Web;

/// What this edition cannot do on this machine has no card.
pub(super) async fn regions(look: &Look<'_>) -> Result<Vec<Region>, Failure> {
    let mut cards = vec![];
    #[cfg(feature = "sms")]
    cards.extend(sms::card(look).await?);
    #[cfg(feature = "notifications")]
    cards.extend(notifications::card(look).await?);
    cards.push(heartbeat::card(look).await?);
    cards.push(memory::card(look).await?);
    cards.push(tasks::card(look).await?);
    cards.push(alarms::card(look).await?);
    Ok(cards)
}

pub(super) fn routes() -> Router<Web> {
    let routes = Router::new();
    #[cfg(feature = "sms")]
    let routes = routes.merge(sms::routes());
    #[cfg(feature = "notifications")]
    let routes = routes.merge(notifications::routes());
    routes.merge(heartbeat::routes()).merge(memory::routes()).merge(tasks::routes()).merge(alarms::routes())
}

/// One setting for messages of all kinds; it stands in the last card that has any.
#[cfg(any(feature = "sms", feature = "notifications"))]
fn code_redaction(look: &Look<'_>, card: &str) -> Markup {
    let code_redaction = Switch {
        setting: &CODE_REDACTION_ENABLED,
        label: "Keep one-time codes from the model",
        help: "It reads [code] instead, in SMS and notifications.",
        testid: "code-redaction-toggle",
    };
    switch(look, card, &code_redaction)
}
