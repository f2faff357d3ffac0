//! The Agent page: cards for SMS, notifications, the heartbeat, memory, tasks and alarms.

mod alarms;
mod heartbeat;
mod memory;
#[cfg(feature = "foss")]
mod notifications;
#[cfg(feature = "foss")]
mod sms;
mod tasks;

use axum::Router;
#[cfg(feature = "foss")]
use kai_assistant::settings::CODE_REDACTION_ENABLED;
#[cfg(feature = "foss")]
use maud::Markup;

use super::look::Look;
use super::parts::Region;
#[cfg(feature = "foss")]
use super::parts::{Switch, switch};
use crate::failure::Failure;
use crate::web::state::Web;

/// The cards of the page. A feature that this edition or this machine does not support has none.
pub(super) async fn regions(look: &Look<'_>) -> Result<Vec<Region>, Failure> {
    let mut cards = vec![];
    #[cfg(feature = "foss")]
    cards.extend(sms::card(look).await?);
    #[cfg(feature = "foss")]
    cards.extend(notifications::card(look).await?);
    cards.push(heartbeat::card(look).await?);
    cards.push(memory::card(look).await?);
    cards.push(tasks::card(look).await?);
    cards.push(alarms::card(look).await?);
    Ok(cards)
}

pub(super) fn routes() -> Router<Web> {
    let routes = Router::new();
    #[cfg(feature = "foss")]
    let routes = routes.merge(sms::routes());
    #[cfg(feature = "foss")]
    let routes = routes.merge(notifications::routes());
    routes.merge(heartbeat::routes()).merge(memory::routes()).merge(tasks::routes()).merge(alarms::routes())
}

/// The switch for hiding one-time codes. It applies to SMS and notifications, and is in the last card of the two.
#[cfg(feature = "foss")]
fn code_redaction(look: &Look<'_>, card: &str) -> Markup {
    let code_redaction = Switch {
        setting: &CODE_REDACTION_ENABLED,
        label: "Keep one-time codes from the model",
        help: "It reads [code] instead, in SMS and notifications.",
        testid: "code-redaction-toggle",
    };
    switch(look, card, &code_redaction)
}
