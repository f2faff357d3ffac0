//! The cards for SMS and notifications.

mod notifications;
mod sms;

use axum::Router;
use kai_assistant::settings::CODE_REDACTION_ENABLED;
use kai_words::Said;
use maud::{Markup, html};

use crate::failure::Failure;
use crate::web::settings::look::Look;
use crate::web::settings::parts::{Button, Region, Switch, button, link, switch};
use crate::web::state::Web;

/// The cards of what this machine supports.
pub(super) async fn cards(look: &Look<'_>) -> Result<Vec<Region>, Failure> {
    Ok([sms::card(look).await?, notifications::card(look).await?].into_iter().flatten().collect())
}

pub(super) fn routes() -> Router<Web> {
    sms::routes().merge(notifications::routes())
}

/// The switch for hiding one-time codes. It applies to SMS and notifications, and is in the last card of the two.
fn code_redaction(look: &Look<'_>, card: &str) -> Markup {
    let code_redaction = Switch {
        setting: &CODE_REDACTION_ENABLED,
        label: look.lang.agent_codes(),
        help: look.lang.agent_codes_help(),
        testid: "code-redaction-toggle",
    };
    switch(look, card, &code_redaction)
}

/// Says what is still stored of a source that is off, and offers to erase it. The button has to be unfolded first, so
/// that a single tap cannot erase anything.
fn erasing(look: &Look<'_>, card: &str, kept: &Said, action: &str) -> Markup {
    let part = format!("erase-{card}");
    let here = look.place.turned(&part);
    html! {
        div class="part" data-testid=(format!("{card}-kept")) {
            p { (kept.to(look.lang)) }
            @if look.place.shows(&part) {
                p class="quiet" { (look.lang.agent_erase_help()) }
                div class="choices" {
                    (button(look, card, action, &Button {
                        label: look.lang.agent_erase(), testid: &format!("{card}-erase"), class: "danger", fields: &[],
                    }))
                    (link(&here, card, &format!("{card}-keep"), look.lang.agent_keep()))
                }
            } @else {
                (link(&here, card, &format!("{card}-erase-ask"), look.lang.agent_erase_ask()))
            }
        }
    }
}
