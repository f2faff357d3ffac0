//! The store edition's twin of `messages`: the page has no cards for SMS and notifications.

use axum::Router;

use crate::failure::Failure;
use crate::web::settings::context::PageContext;
use crate::web::settings::parts::Region;
use crate::web::state::Web;

#[expect(clippy::unused_async, reason = "the foss edition asks the phone")]
pub(super) async fn cards(_: &PageContext<'_>) -> Result<Vec<Region>, Failure> {
    Ok(vec![])
}

pub(super) fn routes() -> Router<Web> {
    Router::new()
}
