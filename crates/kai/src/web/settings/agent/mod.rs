//! The Agent page: cards for SMS, notifications, the heartbeat, memory, tasks and alarms.

mod alarms;
mod heartbeat;
mod memory;
#[cfg_attr(not(feature = "foss"), path = "no_messages.rs")]
mod messages;
mod tasks;

use axum::Router;

use super::look::Look;
use super::parts::Region;
use crate::failure::Failure;
use crate::web::state::Web;

/// The cards of the page. A feature that this edition or this machine does not support has none.
pub(super) async fn regions(look: &Look<'_>) -> Result<Vec<Region>, Failure> {
    let mut cards = messages::cards(look).await?;
    cards.push(heartbeat::card(look).await?);
    cards.push(memory::card(look).await?);
    cards.push(tasks::card(look).await?);
    cards.push(alarms::card(look).await?);
    Ok(cards)
}

pub(super) fn routes() -> Router<Web> {
    let routes = messages::routes();
    routes.merge(heartbeat::routes()).merge(memory::routes()).merge(tasks::routes()).merge(alarms::routes())
}
