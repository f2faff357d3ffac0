//! Programs that may ask Kai over MCP: the switch, each program with what it did, and what to paste into one.

use axum::Router;
use axum::response::Response;
use axum::routing::post;
use kai_assistant::guests::{Did, GuestState};
use kai_assistant::legible::visible;
use kai_assistant::settings::MCP_SERVER_ENABLED;
use kai_words::{Said, said};
use maud::{Markup, html};

use super::context::PageContext;
use super::form::Form;
use super::parts::{Button, Region, Switch, TIME, button, link, naming, switch, timed};
use crate::call::Call;
use crate::call::guests::{DeedRow, GuestRow, GuestsCall};
use crate::commands::guests;
use crate::failure::Failure;
use crate::web::state::Web;

const CARD: &str = "guests";
/// The parts of the card that can be unfolded.
const PASTE: &str = "paste";
const DEEDS: &str = "deeds";

/// The card of the MCP page.
pub(super) async fn regions(ctx: &PageContext<'_>) -> Result<Vec<Region>, Failure> {
    Ok(vec![Region::card(CARD, ctx.lang.guests_label(), section(ctx).await?).testid("guests-card")])
}

/// The content of the card.
pub(super) async fn section(ctx: &PageContext<'_>) -> Result<Markup, Failure> {
    let lang = ctx.lang;
    let rows = guests::list(&ctx.web.app).await?;
    Ok(html! {
        (switch(ctx, CARD, &Switch {
            setting: &MCP_SERVER_ENABLED, label: lang.guests_switch(), help: lang.guests_switch_help(),
            testid: "guests-enabled",
        }))
        @if rows.is_empty() {
            p class="quiet" data-testid="guests-none" { (lang.guests_none()) }
        } @else {
            p class="quiet" { (lang.guests_claims()) }
        }
        @for row in &rows { (one(ctx, row)) }
        (pasting(ctx))
    })
}

fn one(ctx: &PageContext<'_>, row: &GuestRow) -> Markup {
    let (number, name) = (row.id.0.to_string(), visible(&row.name));
    html! {
        section class="part" id=(format!("guest-{number}")) data-testid="guest" data-guest=(number) aria-label=(name) {
            div class="between" { h3 { bdi { (name) } } (state(ctx, row.state)) }
            p class="quiet" data-testid="guest-seen" {
                @match row.last_seen {
                    Some(at) => (timed(ctx, &said::guests_here(TIME), at)),
                    None => (ctx.lang.guests_never_here()),
                }
                @if row.has_token { " · " (ctx.lang.guests_has_token()) }
            }
            (deeds(ctx, row, &number))
            div class="choices" {
                @if row.state != GuestState::Allowed { (act(ctx, row, "allow", ctx.lang.guests_allow(), "")) }
                @if row.state != GuestState::Blocked { (act(ctx, row, "block", ctx.lang.guests_block(), "")) }
                (act(ctx, row, "forget", ctx.lang.guests_forget(), "plain"))
            }
        }
    }
}

fn state(ctx: &PageContext<'_>, state: GuestState) -> Markup {
    html! {
        @match state {
            GuestState::Asked => span class="tag" data-testid="guest-state" { (ctx.lang.guests_asked()) },
            GuestState::Allowed => span class="tag good" data-testid="guest-state" { (ctx.lang.guests_allowed()) },
            GuestState::Blocked => span class="tag bad" data-testid="guest-state" { (ctx.lang.guests_blocked()) },
        }
    }
}

fn act(ctx: &PageContext<'_>, row: &GuestRow, act: &str, label: &str, class: &str) -> Markup {
    let testid = format!("guest-{act}");
    let fields = &[("name", row.name.as_str()), ("act", act)];
    button(ctx, CARD, "/settings/mcp/guest", &Button { label, testid: &testid, class, fields })
}

/// How many of the things that a program did are shown before they are unfolded.
const FIRST: usize = 3;

fn deeds(ctx: &PageContext<'_>, row: &GuestRow, number: &str) -> Markup {
    let open = ctx.place.open(DEEDS) == Some(number);
    let shown = if open { row.deeds.len() } else { FIRST };
    html! {
        @if !row.deeds.is_empty() {
            ul class="quiet" aria-label=(ctx.lang.guests_deeds()) {
                @for deed in row.deeds.iter().take(shown) {
                    li data-testid="guest-deed" { (naming(ctx, &did(ctx, deed))) " · " (ctx.times.moment(deed.at)) }
                }
            }
            @if row.deeds.len() > FIRST {
                @let (to, label) = if open { (None, ctx.lang.guests_less()) } else { (Some(number), ctx.lang.guests_more()) };
                (link(&ctx.place.opening(DEEDS, to), CARD, "guest-deeds-more", label))
            }
        }
    }
}

fn did(ctx: &PageContext<'_>, deed: &DeedRow) -> Said {
    let tool = ctx.lang.tool_name(&deed.tool);
    match deed.what {
        Did::Read(messages) => said::guests_deed_read(tool, usize::try_from(messages).unwrap_or_default()),
        Did::Drafted(draft) => said::guests_deed_drafted(tool, draft),
        Did::Failed => said::guests_deed_failed(tool),
    }
}

/// What to paste into other programs; has to be unfolded.
fn pasting(ctx: &PageContext<'_>) -> Markup {
    let app = &ctx.web.app;
    html! {
        section class="part" aria-label=(ctx.lang.guests_paste()) {
            (link(&ctx.place.turned(PASTE), CARD, "guests-paste", ctx.lang.guests_paste()))
            @if ctx.place.shows(PASTE) {
                p class="quiet" { (ctx.lang.guests_paste_help()) }
                @for paste in guests::pastes(&app.home, ctx.lang) {
                    h3 { (paste.place) }
                    pre tabindex="0" data-testid="guests-config" data-program=(paste.program) aria-label=(paste.place) {
                        (serde_json::to_string_pretty(&paste.json).unwrap_or_default())
                    }
                }
            }
        }
    }
}

pub(super) fn routes() -> Router<Web> {
    Router::new().route("/settings/mcp/guest", post(decide))
}

async fn decide(form: Form) -> Response {
    let name = form.field("name").to_owned();
    let call = match form.field("act") {
        "allow" => GuestsCall::Allow { name },
        "block" => GuestsCall::Block { name },
        "forget" => GuestsCall::Forget { name },
        _ => return form.refuse(Failure::usage(said::frame_misfilled())),
    };
    let done = form.call(Call::Guests(call)).await;
    form.answer(done)
}
