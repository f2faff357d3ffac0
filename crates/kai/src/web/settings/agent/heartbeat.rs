//! The heartbeat: whether, how often, at which hours, with which model and words, and what came of it.

use axum::Router;
use axum::response::Response;
use axum::routing::post;
use kai_assistant::heartbeat::Why;
use kai_assistant::settings::{HEARTBEAT_ENABLED, HEARTBEAT_INTERVAL, HEARTBEAT_PROMPT};
use maud::html;

use crate::failure::Failure;
use crate::heartbeat;
use crate::web::Web;
use crate::web::settings::form::Form;
use crate::web::settings::parts::{Button, Editor, Region, Slider, Switch, button, editor, slider, switch};
use crate::web::settings::{Asking, Look};

const CARD: &str = "heartbeat";
const INTERVALS: &[&str] = &["5m", "10m", "15m", "30m", "45m", "1h", "2h", "4h"];

pub(super) async fn card(look: &Look<'_>) -> Result<Region, Failure> {
    let status = heartbeat::status(&look.web.app).await?;
    let _ = (
        look.asking == Asking::Phone,
        look.place.shows("x"),
        look.place.open("x"),
        look.place.turned("x"),
        look.place.opening("x", None),
    );
    let content = html! {
        (switch(look, CARD, &Switch {
            setting: &HEARTBEAT_ENABLED,
            label: "Heartbeat",
            help: "Kai looks by itself at what arrived, and tells you what needs you.",
            testid: "heartbeat-toggle",
        }))
        p class="quiet" { (status.due) }
        (slider(look, CARD, &Slider {
            setting: &HEARTBEAT_INTERVAL,
            label: "Every",
            stops: INTERVALS,
            testid: "heartbeat-interval",
        }))
        (editor(look, CARD, &Editor {
            setting: &HEARTBEAT_PROMPT,
            label: "Prompt",
            help: "What a heartbeat is told to do, in your own words.",
            own: "",
            testid: "heartbeat-prompt",
        }))
        (button(look, CARD, "/settings/agent/heartbeat/run", &Button {
            label: "Run now", testid: "heartbeat-run", class: "", fields: &[],
        }))
    };
    Ok(Region::card(CARD, "Heartbeat", content).testid("heartbeat-card"))
}

pub(super) fn routes() -> Router<Web> {
    Router::new().route("/settings/agent/heartbeat/run", post(run))
}

async fn run(form: Form) -> Response {
    let app = std::sync::Arc::clone(&form.web.app);
    let done = form.start(async move { heartbeat::run(&app, &app.around, Why::Asked).await.map(drop) }).await;
    form.answer(done.map(|()| "")).await
}
