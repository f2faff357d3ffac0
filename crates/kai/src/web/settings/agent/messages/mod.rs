//! The cards for SMS and notifications.

mod notifications;
mod sms;

use axum::Router;
use kai_words::Said;
use maud::{Markup, html};

use crate::failure::Failure;
use crate::web::settings::context::PageContext;
use crate::web::settings::parts::{Button, Region, button, link};
use crate::web::state::Web;

/// The cards of what this machine supports.
pub(super) async fn cards(ctx: &PageContext<'_>) -> Result<Vec<Region>, Failure> {
    Ok([sms::card(ctx).await?, notifications::card(ctx).await?].into_iter().flatten().collect())
}

pub(super) fn routes() -> Router<Web> {
    sms::routes().merge(notifications::routes())
}

/// Says what is still stored of a source that is off, and offers to erase it. The button has to be unfolded first, so
/// that a single tap cannot erase anything.
fn erasing(ctx: &PageContext<'_>, card: &str, kept: &Said, action: &str) -> Markup {
    let part = format!("erase-{card}");
    let here = ctx.place.turned(&part);
    html! {
        div class="part" data-testid=(format!("{card}-kept")) {
            p { (kept.to(ctx.lang)) }
            @if ctx.place.shows(&part) {
                p class="quiet" { (ctx.lang.agent_erase_help()) }
                div class="choices" {
                    (button(ctx, card, action, &Button {
                        label: ctx.lang.agent_erase(), testid: &format!("{card}-erase"), class: "danger", fields: &[],
                    }))
                    (link(&here, card, &format!("{card}-keep"), ctx.lang.agent_keep()))
                }
            } @else {
                (link(&here, card, &format!("{card}-erase-ask"), ctx.lang.agent_erase_ask()))
            }
        }
    }
}
