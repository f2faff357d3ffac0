//! The card for alarms that have not rung yet.

use axum::Router;
use axum::response::Response;
use axum::routing::post;
use kai_assistant::device::alarm::AlarmId;
use kai_words::said;
use maud::{Markup, html};

use crate::call::alarms::AlarmRow;
use crate::commands::alarms;
use crate::failure::Failure;
use crate::web::bin::Kept;
use crate::web::icons;
use crate::web::settings::context::PageContext;
use crate::web::settings::form::Form;
use crate::web::settings::parts::{Region, TIME, form, icon_button, timed};
use crate::web::state::Web;

const CARD: &str = "alarms";

pub(super) async fn card(ctx: &PageContext<'_>) -> Result<Region, Failure> {
    let alarms = alarms::list(&ctx.web.app).await?;
    let content = html! {
        @if alarms.is_empty() { p class="quiet" { (ctx.lang.alarms_none()) } }
        ul class="items" data-testid="alarms" { @for alarm in &alarms { (row(ctx, alarm)) } }
    };
    Ok(Region::card(CARD, ctx.lang.alarms_label(), content).testid("alarms-card"))
}

fn row(ctx: &PageContext<'_>, alarm: &AlarmRow) -> Markup {
    let name = if alarm.label.is_empty() { ctx.lang.alarm_title() } else { &alarm.label };
    let cancel = html! {
        input type="hidden" name="id" value=(alarm.id.0);
        (icon_button("alarm-cancel", &ctx.lang.alarms_cancel(name), &icons::bin()))
    };
    html! {
        li class="entry" data-testid="alarm" {
            div class="between" {
                span class="name" dir="auto" { (name) }
                (form(ctx, CARD, "/settings/agent/alarms/cancel", "", &cancel))
            }
            p class="quiet" { (timed(ctx, &said::alarms_rings(TIME), alarm.due_at)) }
        }
    }
}

pub(super) fn routes() -> Router<Web> {
    Router::new().route("/settings/agent/alarms/cancel", post(cancel))
}

async fn cancel(form: Form) -> Response {
    let done = put_away(&form).await;
    form.answer(done)
}

/// Cancels an alarm and puts it into the undo bin.
async fn put_away(form: &Form) -> Result<(), Failure> {
    let id = form.field("id");
    let id = id.parse().map_err(|_| Failure::usage(said::alarms_unknown(id)))?;
    let alarm = alarms::take_away(form.app(), AlarmId(id)).await?;
    form.web.bin.put(Kept::Alarm(alarm), form.app().clock.now());
    Ok(())
}
