//! The Agent page: cards for SMS, notifications, the heartbeat, memory, tasks and alarms.

mod alarms;
mod heartbeat;
mod memory;
#[cfg_attr(not(feature = "foss"), path = "no_messages.rs")]
mod messages;
mod tasks;

use axum::Router;

use super::context::PageContext;
use super::parts::Region;
use crate::failure::Failure;
use crate::web::state::Web;

/// The cards of the page. A feature that this edition or this machine does not support has none.
pub(super) async fn regions(ctx: &PageContext<'_>) -> Result<Vec<Region>, Failure> {
    let mut cards = messages::cards(ctx).await?;
    cards.push(heartbeat::card(ctx).await?);
    cards.push(memory::card(ctx).await?);
    cards.push(tasks::card(ctx).await?);
    cards.push(alarms::card(ctx).await?);
    Ok(cards)
}

pub(super) fn routes() -> Router<Web> {
    let routes = messages::routes();
    routes.merge(heartbeat::routes()).merge(memory::routes()).merge(tasks::routes()).merge(alarms::routes())
}
