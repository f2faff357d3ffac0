//! The card for the heartbeat: its switch, interval, active hours, model, budget and prompt, and the log of its runs.

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::post;
use kai_assistant::heartbeat::prompt::OPENING;
use kai_assistant::heartbeat::{OutcomeKind, Why, beat};
use kai_assistant::settings::{
    HEARTBEAT_ACTIVE_END, HEARTBEAT_ACTIVE_START, HEARTBEAT_DAILY_TOKENS, HEARTBEAT_ENABLED,
    HEARTBEAT_INTERVAL, HEARTBEAT_LOCAL_FIRST, HEARTBEAT_MODEL, HEARTBEAT_PROMPT, Setting,
};
use kai_words::{Lang, said};
use maud::{Markup, html};

use crate::call::Call;
use crate::call::heartbeat::{HeartbeatStatus, LogRow, RunOutcome};
use crate::commands::heartbeat::{self, Lack};
use crate::commands::models;
use crate::failure::Failure;
use crate::web::messages::model_name;
use crate::web::remedy::{Remedy, Trouble};
use crate::web::settings::context::PageContext;
use crate::web::settings::form::Form;
use crate::web::settings::parts::{
    Button, Editor, Region, Slider, Switch, button, editor, form, link, range, set_button, slider, spinner,
    switch, told,
};
use crate::web::state::Web;

const CARD: &str = "heartbeat";
/// How many runs are shown before the user asks for all.
const FEW: usize = 5;

pub(super) async fn card(ctx: &PageContext<'_>) -> Result<Region, Failure> {
    let (app, now) = (&ctx.web.app, ctx.web.app.clock.now());
    let status = heartbeat::status(app).await?;
    let running = app.db.read(move |tx| beat::under_way(tx, now)).await?;
    let log = heartbeat::log(app).await?;
    let trouble = if status.enabled { lacks_model(ctx).await? } else { None };
    let dry_run = if ctx.place.shows("dry-run") { Some(dry_run(ctx).await?) } else { None };
    let prompt = Editor {
        setting: &HEARTBEAT_PROMPT,
        label: ctx.lang.heartbeat_prompt(),
        help: ctx.lang.heartbeat_prompt_help(),
        own: OPENING,
        testid: "heartbeat-prompt",
    };
    let next =
        if dry_run.is_some() { ctx.lang.heartbeat_hide_next() } else { ctx.lang.heartbeat_show_next() };
    let content = html! {
        div class="part" {
            (when(ctx, &status))
            @if let Some(trouble) = trouble { p class="trouble-text" data-testid="heartbeat-trouble" { (trouble.render(ctx.lang)) } }
            (model(ctx).await?) (local_first(ctx).await?) (budget(ctx))
        }
        div class="part" { (editor(ctx, CARD, &prompt)) }
        div class="part" {
            (run_now(ctx, running))
            (link(&ctx.place.turned("dry-run"), CARD, "heartbeat-dry-run", next))
            @if let Some(dry_run) = dry_run { (dry_run) }
            (history(ctx, &log))
        }
    };
    Ok(Region::card(CARD, ctx.lang.heartbeat_label(), content).testid("heartbeat-card"))
}

/// Why heartbeats have no model to ask, if they have none.
async fn lacks_model(ctx: &PageContext<'_>) -> Result<Option<Trouble>, Failure> {
    let rows = models::rows(&ctx.web.app, &ctx.web.app.env).await?;
    if !rows.iter().any(|row| row.ready) {
        return Ok(Some(Trouble::new(said::heartbeat_no_model(), Remedy::models())));
    }
    let lack = heartbeat::lacks(&ctx.values, &rows);
    Ok(lack.map(|lack| match lack {
        // The list to choose another one from is in the same card.
        Lack::Unknown { .. } => lack.said().into(),
        Lack::NoLocal | Lack::Unusable { .. } => Trouble::new(lack.said(), Remedy::models()),
    }))
}

fn when(ctx: &PageContext<'_>, status: &HeartbeatStatus) -> Markup {
    let enabled = Switch {
        setting: &HEARTBEAT_ENABLED,
        label: ctx.lang.heartbeat_enabled(),
        help: ctx.lang.heartbeat_enabled_help(),
        testid: "heartbeat-toggle",
    };
    let interval = Slider {
        setting: &HEARTBEAT_INTERVAL,
        label: ctx.lang.heartbeat_every(),
        stops: &stops(ctx.lang),
        testid: "heartbeat-interval",
    };
    html! {
        (switch(ctx, CARD, &enabled))
        @if status.enabled { (slider(ctx, CARD, &interval)) (hours(ctx, status)) }
    }
}

/// The names of the slider's stops: one for each value of the setting.
fn stops(lang: Lang) -> Vec<String> {
    let minutes = [5_u32, 10, 15, 30, 45].map(|minutes| lang.heartbeat_minutes_short(minutes));
    let hours = [1_u32, 2, 4].map(|hours| lang.heartbeat_hours_short(hours));
    minutes.into_iter().chain(hours).collect()
}

/// The active hours: two sliders over one day. The hours in between are highlighted, also across midnight.
fn hours(ctx: &PageContext<'_>, status: &HeartbeatStatus) -> Markup {
    let names: Vec<String> = (0..=24).map(|hour| format!("{hour}:00")).collect();
    let (start, end) = (status.active_start as usize, status.active_end as usize);
    let lit = |hour: usize| match start.cmp(&end) {
        std::cmp::Ordering::Less => (start..end).contains(&hour),
        std::cmp::Ordering::Equal => true,
        std::cmp::Ordering::Greater => hour >= start || hour < end,
    };
    let content = html! {
        div class="between" {
            span class="name" { (ctx.lang.heartbeat_hours()) }
            span {
                @if start == end { (ctx.lang.heartbeat_always()) } @else {
                    output for="heartbeat-start" { (names[start]) } " – " output for="heartbeat-end" { (names[end]) }
                }
            }
        }
        div class="pair" {
            div class="hours" aria-hidden="true" { @for hour in 0..24 { i class=[lit(hour).then_some("on")] {} } }
            label class="seen-not" for="heartbeat-start" { (ctx.lang.heartbeat_active_from()) }
            (range("heartbeat-start", "start", start, &names))
            label class="seen-not" for="heartbeat-end" { (ctx.lang.heartbeat_active_until()) }
            (range("heartbeat-end", "end", end, &names))
        }
        (told())
        (set_button(ctx.lang))
    };
    form(ctx, CARD, "/settings/agent/heartbeat/hours", "slider", &content)
}

async fn model(ctx: &PageContext<'_>) -> Result<Markup, Failure> {
    let mut options = vec![(String::new(), ctx.lang.heartbeat_any_model().to_owned())];
    options.extend(models::names(&ctx.web.app).await?.into_iter().map(|name| {
        let shown = model_name(&name, ctx.lang).to_owned();
        (name, shown)
    }));
    Ok(choice(ctx, &HEARTBEAT_MODEL, ctx.lang.heartbeat_model(), "heartbeat-model", options))
}

/// The switch that keeps heartbeats on this computer, where there is a choice.
async fn local_first(ctx: &PageContext<'_>) -> Result<Markup, Failure> {
    let rows = models::rows(&ctx.web.app, &ctx.web.app.env).await?;
    let is_ready = |local: bool| rows.iter().any(|row| row.ready && row.local == local);
    let has_choice = is_ready(true) && is_ready(false);
    let private = Switch {
        setting: &HEARTBEAT_LOCAL_FIRST,
        label: ctx.lang.heartbeat_local_first(),
        help: ctx.lang.heartbeat_local_first_help(),
        testid: "heartbeat-local-first",
    };
    let is_shown = has_choice || ctx.values.on(&HEARTBEAT_LOCAL_FIRST);
    Ok(html! { @if is_shown { (switch(ctx, CARD, &private)) } })
}

/// The limit on tokens per day.
fn budget(ctx: &PageContext<'_>) -> Markup {
    let limited =
        [100_000_u32, 500_000, 2_000_000].map(|tokens| (tokens.to_string(), ctx.lang.number(tokens)));
    let unlimited = ("0".to_owned(), ctx.lang.heartbeat_no_limit().to_owned());
    let options = limited.into_iter().chain([unlimited]).collect();
    choice(ctx, &HEARTBEAT_DAILY_TOKENS, ctx.lang.heartbeat_budget(), "heartbeat-budget", options)
}

/// A select box for a setting. If the stored value is not among the options, it is added to them.
fn choice(
    ctx: &PageContext<'_>,
    setting: &Setting,
    label: &str,
    testid: &str,
    mut options: Vec<(String, String)>,
) -> Markup {
    let chosen = ctx.values.of(setting);
    if options.iter().all(|(value, _)| *value != chosen) {
        options.push((chosen.clone(), chosen.clone()));
    }
    let content = html! {
        input type="hidden" name="key" value=(setting.key);
        div class="between" {
            label for=(testid) { (label) }
            select id=(testid) name="value" data-testid=(testid) autocomplete="off" {
                @for (value, name) in &options { option value=(value) selected[*value == chosen] { (name) } }
            }
        }
        (set_button(ctx.lang))
    };
    form(ctx, CARD, "/settings/set", "", &content)
}

fn run_now(ctx: &PageContext<'_>, running: bool) -> Markup {
    html! {
        @if running { (spinner(ctx.lang.heartbeat_running())) }
        @else {
            (button(ctx, CARD, "/settings/agent/heartbeat/run", &Button {
                label: ctx.lang.heartbeat_run(), testid: "heartbeat-run", class: "", fields: &[],
            }))
        }
    }
}

/// The exact prompt of the next heartbeat, with its size and its tools.
async fn dry_run(ctx: &PageContext<'_>) -> Result<Markup, Failure> {
    let dry = heartbeat::dry_run(&ctx.web.app, &ctx.web.app.env).await?;
    let tools: Vec<String> = dry.tools.iter().map(|tool| ctx.lang.tool_name(tool)).collect();
    Ok(html! {
        p class="quiet" data-testid="heartbeat-tokens" {
            (ctx.lang.heartbeat_next(dry.tokens, dry.tools.len(), tools.join(", ")))
        }
        pre data-testid="heartbeat-preview" dir="auto" { "\n" (dry.prompt) }
    })
}

fn history(ctx: &PageContext<'_>, log: &[LogRow]) -> Markup {
    let whole = ctx.place.shows("log");
    let shown = if whole { log.len() } else { FEW };
    html! {
        @if log.is_empty() { p class="quiet" { (ctx.lang.heartbeat_log_none()) } }
        ol class="items" data-testid="heartbeat-log" { @for row in log.iter().take(shown) { (logged(ctx, row)) } }
        @if whole { (link(&ctx.place.turned("log"), CARD, "heartbeat-log-less", ctx.lang.heartbeat_log_few())) }
        @else if log.len() > FEW {
            (link(&ctx.place.turned("log"), CARD, "heartbeat-log-more", &ctx.lang.heartbeat_log_all(log.len())))
        }
    }
}

fn logged(ctx: &PageContext<'_>, row: &LogRow) -> Markup {
    let came_to = match row.outcome {
        OutcomeKind::Report => ctx.lang.heartbeat_report(),
        OutcomeKind::Ok => ctx.lang.heartbeat_ok(),
        OutcomeKind::NothingNew => ctx.lang.heartbeat_nothing_new(),
        OutcomeKind::Failed => ctx.lang.heartbeat_failed(),
    };
    html! {
        li class="entry" data-outcome=(row.outcome.as_str()) {
            div class="between" {
                span { (came_to) }
                span class="quiet" {
                    (ctx.times.moment(row.at))
                    @if row.tokens > 0 { " · " (tokens(row, ctx.lang)) " · " (ctx.lang.heartbeat_seconds(ctx.lang.tenths(row.ms / 100))) }
                }
            }
            @if let Some(reason) = &row.reason { p class="trouble-text" dir="auto" { (reason.to(ctx.lang)) } }
        }
    }
}

fn tokens(row: &LogRow, lang: Lang) -> String {
    if row.tokens_estimated {
        lang.heartbeat_tokens_about(row.tokens)
    } else {
        lang.heartbeat_tokens(row.tokens)
    }
}

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/settings/agent/heartbeat/run", post(run))
        .route("/settings/agent/heartbeat/hours", post(set_hours))
}

async fn run(form: Form) -> Response {
    let app = Arc::clone(&form.web.app);
    let running = async move {
        let ran = heartbeat::run(&app, &app.env, Why::Asked).await?;
        match ran.outcome {
            // These two outcomes are not logged, so they are reported here.
            RunOutcome::NotDue => Err(Failure::failed(said::heartbeat_not_due())),
            RunOutcome::Busy => Err(Failure::failed(said::heartbeat_busy())),
            RunOutcome::Report | RunOutcome::Ok | RunOutcome::NothingNew | RunOutcome::Failed => Ok(()),
        }
    };
    let started = form.start(running).await;
    form.answer(started)
}

async fn set_hours(form: Form) -> Response {
    // Both sliders go from 0 to 24, but the start has to be below 24, so 24 means 0.
    let start = if form.field("start") == "24" { "0" } else { form.field("start") };
    let set = |setting: &kai_assistant::settings::Setting, value: &str| {
        form.call(Call::SettingsSet { key: setting.key.to_string(), value: value.to_owned() })
    };
    let done = match set(&HEARTBEAT_ACTIVE_START, start).await {
        Ok(()) => set(&HEARTBEAT_ACTIVE_END, form.field("end")).await,
        refused => refused,
    };
    form.answer(done)
}
