//! The card *On this computer*: models that Kai runs itself, downloading one, and deleting its file.

use axum::Router;
use axum::response::Response;
use axum::routing::post;
use kai_words::said;
use maud::{Markup, html};

use super::context::PageContext;
use super::form::Form;
use super::parts::{Button, Region, button, link, naming, spinner};
use crate::call::local::{Catalogue, CatalogueRow, Download, MachineRow, Phase, Progress};
use crate::commands::sizes::{self, size};
use crate::commands::{local, model_files};
use crate::failure::Failure;
use crate::web::state::Web;

/// The id of the card.
const CARD: &str = "here";

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/settings/local/get", post(get))
        .route("/settings/local/stop", post(stop))
        .route("/settings/local/delete", post(delete))
}

/// The card, if Kai can run models itself. The demo only uses its scripted models.
pub(super) async fn region(ctx: &PageContext<'_>) -> Result<Option<Region>, Failure> {
    if !local::HAS_ENGINE || ctx.web.app.home.is_demo() {
        return Ok(None);
    }
    let all = local::catalogue(&ctx.web.app).await?;
    Ok(Some(Region::card(CARD, ctx.lang.local_here(), card(ctx, &all))))
}

fn card(ctx: &PageContext<'_>, all: &Catalogue) -> Markup {
    let newest = ctx.web.app.downloads.newest();
    let is_near = |row: &&CatalogueRow| row.recommended || row.downloaded || row.received > 0;
    let (near, far): (Vec<_>, Vec<_>) = all.models.iter().partition(is_near);
    let unfolded = ctx.place.shows("others");
    html! {
        p class="quiet" { (ctx.lang.local_help()) }
        p class="quiet" data-testid="local-machine" { (machine(&all.machine, ctx)) }
        @if let Some(why) = &all.why_none { p class="remark" { (why.to(ctx.lang)) } }
        @if let Some(download) = &newest { (progress(ctx, download)) }
        (list(ctx, &near, newest.as_ref()))
        @if !far.is_empty() {
            (link(&ctx.place.turned("others"), CARD, "local-others", ctx.lang.local_others()))
            @if unfolded { (list(ctx, &far, newest.as_ref())) }
        }
    }
}

fn machine(machine: &MachineRow, ctx: &PageContext<'_>) -> String {
    let of = |bytes| size(bytes, ctx.lang);
    ctx.lang.local_machine(of(machine.memory), machine.cores, of(machine.disk_free.unwrap_or_default()))
}

/// How far the download is, or how it ended.
fn progress(ctx: &PageContext<'_>, download: &Download) -> Markup {
    html! {
        @match &download.phase {
            Phase::Running(progress) => (running(ctx, &download.name, progress)),
            Phase::Stopped => p class="remark" data-testid="download-ended" { (naming(ctx, &said::local_failed_named(&download.name, said::local_stopped()))) },
            Phase::Failed(why) => p class="error" data-testid="download-ended" { (naming(ctx, &said::local_failed_named(&download.name, why.clone()))) },
            // The model is in the list of models now.
            Phase::Done => {},
        }
    }
}

fn running(ctx: &PageContext<'_>, name: &str, progress: &Progress) -> Markup {
    let getting = ctx.lang.local_getting(name);
    let stop = Button { label: ctx.lang.local_stop(), testid: "download-stop", class: "", fields: &[] };
    html! {
        div data-testid="download" {
            p { (spinner(&getting)) }
            progress max=(progress.total) value=(progress.received) aria-label=(getting) {}
            p class="quiet" data-testid="download-progress" { (sizes::progress(progress, ctx.lang)) }
            div class="choices" { (button(ctx, CARD, "/settings/local/stop", &stop)) }
        }
    }
}

fn list(ctx: &PageContext<'_>, rows: &[&CatalogueRow], newest: Option<&Download>) -> Markup {
    let is_running = newest.is_some_and(|download| matches!(download.phase, Phase::Running(_)));
    html! {
        @if !rows.is_empty() {
            ul class="models" {
                @for row in rows { (model(ctx, row, is_running)) }
            }
        }
    }
}

fn model(ctx: &PageContext<'_>, row: &CatalogueRow, is_running: bool) -> Markup {
    let lang = ctx.lang;
    let about = [
        size(row.bytes, lang),
        lang.local_memory(size(row.memory, lang)),
        row.good_for.to(lang),
        lang.local_licence(&row.licence),
    ];
    html! {
        li class="model" data-testid="local-model" data-local=(row.name) {
            div class="model-head" {
                strong { (row.name) }
                @for tag in tags(ctx, row) { span class="tag" { (tag) } }
            }
            p class="quiet" { (about.join(" · ")) }
            @if !row.downloaded && row.received > 0 {
                p class="quiet" { (lang.local_received(size(row.received, lang), size(row.bytes, lang))) }
            }
            @if let Some(why) = row.why_not.as_ref().filter(|_| !row.recommended) { p class="remark" { (why.to(lang)) } }
            @if !is_running { div class="choices" { (acts(ctx, row)) } }
        }
    }
}

fn tags(ctx: &PageContext<'_>, row: &CatalogueRow) -> Vec<&'static str> {
    let lang = ctx.lang;
    let here = match (row.downloaded, row.used_by.is_empty()) {
        (true, true) => Some(lang.local_installed()),
        (true, false) => Some(lang.local_used()),
        (false, _) => None,
    };
    let recommended = row.recommended.then(|| lang.local_recommended());
    let untried = (!row.tried).then(|| lang.local_not_tried());
    recommended.into_iter().chain(here).chain(untried).collect()
}

/// The buttons of a model: download, use, delete.
fn acts(ctx: &PageContext<'_>, row: &CatalogueRow) -> Markup {
    let lang = ctx.lang;
    let act = |action: &str, label: &str, testid: &str, class: &str| {
        let fields = [("name", row.name.as_str()), ("file", row.file.as_str())];
        button(ctx, CARD, action, &Button { label, testid, class, fields: &fields })
    };
    let class = if row.recommended { "primary" } else { "" };
    let delete = || act("/settings/local/delete", &lang.local_delete_named(&row.name), "local-delete", "");
    html! {
        @if row.downloaded && row.used_by.is_empty() {
            (act("/settings/local/get", &lang.local_use(&row.name), "local-use", class))
            (delete())
        } @else if !row.downloaded && row.received > 0 {
            (act("/settings/local/get", lang.local_resume(), "local-get", class))
            (delete())
        } @else if !row.downloaded && row.why_not.is_none() {
            @let label = lang.local_download_named(&row.name, size(row.bytes, lang));
            (act("/settings/local/get", &label, "local-get", class))
        }
    }
}

/// Begins a download, which the daemon goes on with after the page is closed.
async fn get(form: Form) -> Response {
    let done = local::begin(form.app(), &form.app().env, form.field("name")).await;
    form.answer(done)
}

async fn stop(form: Form) -> Response {
    form.app().downloads.stop();
    form.answer(Ok(()))
}

async fn delete(form: Form) -> Response {
    let done = model_files::delete(form.app(), form.field("file")).await;
    form.answer(done)
}
