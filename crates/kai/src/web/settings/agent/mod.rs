//! What Kai does by itself: a card for each source it looks at, its heartbeat, its memory, its tasks.

mod heartbeat;

use axum::Router;

use super::Look;
use super::parts::Region;
use crate::failure::Failure;
use crate::web::Web;

pub(super) async fn regions(look: &Look<'_>) -> Result<Vec<Region>, Failure> {
    Ok(vec![heartbeat::card(look).await?])
}

pub(super) fn routes() -> Router<Web> {
    heartbeat::routes()
}
