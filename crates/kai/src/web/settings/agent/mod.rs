//! The Agent page: cards for SMS, email, notifications, the heartbeat, memory, tasks and alarms.

mod ago;
mod alarms;
mod email;
mod heartbeat;
mod memory;
#[cfg_attr(not(feature = "foss"), path = "no_messages.rs")]
mod messages;
mod tasks;

use axum::Router;
use kai_assistant::settings::CODE_REDACTION_ENABLED;
use maud::Markup;

use super::context::PageContext;
use super::parts::{Region, Switch, switch};
use crate::failure::Failure;
use crate::web::state::Web;

/// The cards of the page. A feature that this edition or this machine does not support has none.
pub(super) async fn regions(ctx: &PageContext<'_>) -> Result<Vec<Region>, Failure> {
    let mut cards = reading(ctx).await?;
    cards.push(heartbeat::card(ctx).await?);
    cards.push(memory::card(ctx).await?);
    cards.push(tasks::card(ctx).await?);
    cards.push(alarms::card(ctx).await?);
    Ok(cards)
}

/// The cards of what Kai may read.
pub(super) async fn reading(ctx: &PageContext<'_>) -> Result<Vec<Region>, Failure> {
    let mut cards = messages::cards(ctx).await?;
    cards.extend(email::card(ctx).await?);
    Ok(cards)
}

pub(super) fn routes() -> Router<Web> {
    let routes = messages::routes();
    routes
        .merge(email::routes())
        .merge(heartbeat::routes())
        .merge(memory::routes())
        .merge(tasks::routes())
        .merge(alarms::routes())
}

/// The switch for hiding one-time codes. It applies to all kinds of messages, and is in the last card of them.
fn code_redaction(ctx: &PageContext<'_>, card: &str) -> Markup {
    let code_redaction = Switch {
        setting: &CODE_REDACTION_ENABLED,
        label: ctx.lang.agent_codes(),
        help: ctx.lang.agent_codes_help(),
        testid: "code-redaction-toggle",
    };
    switch(ctx, card, &code_redaction)
}
