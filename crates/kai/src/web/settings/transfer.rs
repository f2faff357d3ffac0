//! Export as a download, and import with a preview: the user uploads a file, the page shows section by section what
//! would change, and nothing is imported until the user confirms.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use futures_util::stream::{self, Stream};
use kai_assistant::legible::folded_line_in;
use kai_assistant::transfer::{Export, Mode, Outcome, Piece, Section};
use kai_words::{Lang, said};
use maud::{Markup, html};

use super::context::PageContext;
use super::ephemeral::{File, Upload};
use super::form::{Form, hidden};
use super::parts::{form, link, plain};
use crate::app::App;
use crate::call::{ExportCall, ImportCall};
use crate::commands::transfer;
use crate::failure::Failure;
use crate::web::state::Web;
use crate::web::{guard, page, reply, upload};

/// How long an uploaded file is kept while it waits to be confirmed.
const LIFE: Duration = Duration::from_mins(15);
const BACK: &str = "/settings/general";
/// The box that says that an export is to include keys.
const WITH_KEYS: &str = "with_keys";

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/settings/general/export", post(export))
        // The guard limits the size of the upload.
        .route(guard::IMPORT, post(receive).layer(DefaultBodyLimit::disable()))
        .route("/settings/general/import/take", post(take))
        .route("/settings/general/import/cancel", post(cancel))
}

fn title(section: &str, lang: Lang) -> &str {
    match section {
        "settings" => lang.transfer_settings(),
        "memory" => lang.transfer_memory(),
        "models" => lang.transfer_models(),
        "tasks" => lang.transfer_tasks(),
        "conversations" => lang.transfer_conversations(),
        other => other,
    }
}

fn section_boxes(lang: Lang, prefix: &str, sections: &[&str]) -> Markup {
    html! {
        fieldset class="boxes" {
            legend class="seen-not" { (lang.transfer_sections()) }
            @for section in sections {
                @let id = format!("{prefix}-{section}");
                span {
                    input type="checkbox" id=(id) data-testid=(id) name=(format!("section_{section}")) value="yes" checked;
                    label for=(id) { (title(section, lang)) }
                }
            }
        }
    }
}

/// The names of the sections whose boxes are checked.
fn chosen(form: &Form) -> Vec<String> {
    let named = Section::ALL.map(Section::name).into_iter();
    named.filter(|name| form.field(&format!("section_{name}")) == "yes").map(str::to_owned).collect()
}

pub(super) fn export_form(ctx: &PageContext<'_>) -> Markup {
    let secret = |id: &str, label: &str| {
        html! {
            label for=(id) { (label) }
            input type="password" id=(id) data-testid=(id) name=(id) autocomplete="new-password";
        }
    };
    let lang = ctx.lang;
    let with_keys = ctx.error.is_some_and(|told| told.typed("export", WITH_KEYS).is_some());
    html! {
        p { (lang.transfer_export_what()) }
        p class="remark" { (lang.transfer_export_plain()) }
        (plain(ctx, "export", "/settings/general/export", "", &html! {
            (section_boxes(lang, "export", &Section::ALL.map(Section::name)))
            // The style shows the fields once the box is ticked.
            div class="sealed" {
                div class="boxes" {
                    span {
                        input type="checkbox" id="with-keys" data-testid="with-keys" name=(WITH_KEYS) value="yes" checked[with_keys];
                        label for="with-keys" { (lang.transfer_export_with_keys()) }
                    }
                }
                div class="fields" { (secret("passphrase", lang.transfer_passphrase())) (secret("again", lang.transfer_again())) }
            }
            div class="choices" { button type="submit" class="primary" data-testid="export" { (lang.transfer_export_button()) } }
        }))
    }
}

async fn export(form: Form) -> Response {
    match exported(&form).await {
        Ok((name, body)) => {
            let kind = (header::CONTENT_TYPE, "application/json; charset=utf-8".to_owned());
            let kept = (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\""));
            ([kind, kept], body).into_response()
        }
        Err(failure) => form.refuse(failure),
    }
}

/// The name and content of the exported file; the content is the same as `kai export` writes. The first piece is read
/// before the answer begins, so that what is wrong can still be said.
async fn exported(form: &Form) -> Result<(String, Body), Failure> {
    let sections = chosen(form);
    if sections.is_empty() {
        return Err(Failure::usage(said::transfer_choose_section()));
    }
    let passphrase = sealing(form)?;
    let app = Arc::clone(&form.web.app);
    let call = ExportCall { sections, passphrase, from: None };
    let first = transfer::export(&app, call.clone()).await?;
    let today = app.clock.now().to_zoned(app.clock.zone()).strftime("%Y-%m-%d").to_string();
    Ok((format!("kai-{today}.json"), Body::from_stream(pieces(app, call, first))))
}

/// The passphrase for the keys, if they are to go along. Without the tick, what was typed before it was taken away does
/// not count.
fn sealing(form: &Form) -> Result<Option<String>, Failure> {
    if form.field(WITH_KEYS) != "yes" {
        return Ok(None);
    }
    let passphrase = form.field("passphrase");
    if passphrase != form.field("again") {
        return Err(Failure::usage(said::transfer_passphrases_differ()));
    }
    // Whoever asked for the keys would find out only when they need them that the file has none.
    if passphrase.is_empty() {
        return Err(Failure::usage(said::transfer_export_needs_passphrase()));
    }
    Ok(Some(passphrase.to_owned()))
}

/// All pieces of an export, from the first on. A piece that cannot be read breaks the download off, and the browser says so.
fn pieces(
    app: Arc<App>,
    call: ExportCall,
    first: Piece,
) -> impl Stream<Item = Result<String, std::io::Error>> + Send {
    stream::try_unfold(Some(first), move |piece| {
        let (app, call) = (Arc::clone(&app), call.clone());
        async move {
            let Some(Piece { text, next }) = piece else { return Ok(None) };
            let next = match next {
                Some(from) => Some(transfer::export(&app, ExportCall { from: Some(from), ..call }).await),
                None => None,
            };
            let next = next.transpose().map_err(|failure| std::io::Error::other(failure.to_string()))?;
            Ok(Some((text, next)))
        }
    })
}

pub(super) fn import_form(ctx: &PageContext<'_>) -> Markup {
    let asked = ctx.place.says("import").parse().ok();
    match asked.and_then(|number| ctx.web.ephemeral.upload(number)) {
        Some(Upload { number, file: File::Waiting { sealed, merged, replaced, .. } }) => {
            let replaces = ctx.place.says("how") == "replace";
            let outcomes = if replaces { replaced } else { merged };
            preview(ctx, number, &Preview { replaces, sealed, outcomes: &outcomes })
        }
        Some(Upload { file: File::Taken(outcomes), .. }) => html! {
            p data-testid="import-done" { (ctx.lang.transfer_done()) }
            (render_outcomes(ctx.lang, &outcomes, Tense::Done))
            a class="more" href=(BACK) { (ctx.lang.transfer_another()) }
        },
        None => choose(ctx, asked.is_some()),
    }
}

fn choose(ctx: &PageContext<'_>, gone: bool) -> Markup {
    html! {
        @if gone { p class="remark" { (ctx.lang.transfer_file_gone()) } }
        p { (ctx.lang.transfer_import_what()) }
        form method="post" action=(guard::IMPORT) enctype="multipart/form-data" class="field" {
            (hidden(ctx.csrf, ctx.place.page, "import"))
            label for="import-file" { (ctx.lang.transfer_file()) }
            div class="line" {
                input type="file" id="import-file" data-testid="import-file" name="file" accept="application/json,.json" required;
                button type="submit" data-testid="import-look" { (ctx.lang.transfer_preview()) }
            }
        }
    }
}

/// What the user sees before confirming an import.
struct Preview<'a> {
    /// Existing items are replaced instead of kept.
    replaces: bool,
    sealed: bool,
    outcomes: &'a [Outcome],
}

fn preview(ctx: &PageContext<'_>, number: u64, shown: &Preview<'_>) -> Markup {
    let Preview { replaces, sealed, outcomes } = *shown;
    let sections: Vec<&str> = outcomes.iter().map(|outcome| outcome.section.as_str()).collect();
    let mode = if replaces { "replace" } else { "merge" };
    let lang = ctx.lang;
    let (what, other) = if replaces {
        (lang.transfer_replace_what(), lang.transfer_merge())
    } else {
        (lang.transfer_merge_what(), lang.transfer_replace())
    };
    let number = number.to_string();
    let content = html! {
        input type="hidden" name="number" value=(number);
        input type="hidden" name="mode" value=(mode);
        @if sections.len() > 1 { (section_boxes(lang, "import", &sections)) }
        @else { @for section in &sections { input type="hidden" name=(format!("section_{section}")) value="yes"; } }
        @if sealed {
            label for="import-passphrase" { (lang.transfer_passphrase_of_file()) }
            input type="password" id="import-passphrase" data-testid="import-passphrase" name="passphrase" autocomplete="off";
            p class="quiet" { (lang.transfer_passphrase_help()) }
        }
        div class="choices" {
            @if !sections.is_empty() { button type="submit" class="primary" data-testid="import-take" { (lang.transfer_import_button()) } }
            button type="submit" formaction="/settings/general/import/cancel" data-testid="import-cancel" { (lang.transfer_cancel()) }
        }
    };
    html! {
        div data-testid="import-preview" {
            p { (what) }
            (render_outcomes(lang, outcomes, Tense::Would))
        }
        (link(&ctx.place.with("how", if replaces { "" } else { "replace" }), "import", "import-how", other))
        (form(ctx, "import", "/settings/general/import/take", "fields", &content))
    }
}

/// Whether an import is only previewed or was done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tense {
    Would,
    Done,
}

/// How many changes are listed by name in each section.
const NAMED: usize = 12;

fn render_outcomes(lang: Lang, outcomes: &[Outcome], tense: Tense) -> Markup {
    html! {
        @if outcomes.is_empty() { p { (lang.transfer_nothing()) } }
        ul class="outcomes" {
            @for outcome in outcomes {
                li data-testid="outcome" data-section=(outcome.section) {
                    strong { (title(&outcome.section, lang)) }
                    @match &outcome.problem {
                        Some(why) => p class="remark" { (lang.transfer_problem(folded_line_in(why, lang))) },
                        None => p { (counted(lang, outcome, tense)) },
                    }
                    (named(lang, &outcome.changes, "quiet", |change| change))
                    (named(lang, &outcome.skipped, "remark", |what| lang.transfer_skipped(what)))
                }
            }
        }
    }
}

/// The counts without the zeros: "2 to add · 1 unchanged".
fn counted(lang: Lang, outcome: &Outcome, tense: Tense) -> String {
    let Outcome { new, changed, removed, same, .. } = *outcome;
    let texts = match tense {
        Tense::Would => [
            lang.transfer_would_new(new),
            lang.transfer_would_change(changed),
            lang.transfer_would_remove(removed),
        ],
        Tense::Done => {
            [lang.transfer_new(new), lang.transfer_changed(changed), lang.transfer_removed(removed)]
        }
    };
    let all =
        [new, changed, removed, same].into_iter().zip(texts.into_iter().chain([lang.transfer_same(same)]));
    let some: Vec<String> = all.filter(|(count, _)| *count > 0).map(|(_, text)| text).collect();
    if some.is_empty() { lang.transfer_nothing_in().to_owned() } else { some.join(" · ") }
}

fn named(lang: Lang, things: &[String], class: &str, sentence: impl Fn(String) -> String) -> Markup {
    html! {
        @if !things.is_empty() {
            ul class=(class) {
                @for thing in things.iter().take(NAMED) { li dir="auto" { (sentence(folded_line_in(thing, lang))) } }
                @if things.len() > NAMED { li { (lang.transfer_more(things.len() - NAMED)) } }
            }
        }
    }
}

/// Receives the uploaded file and redirects to its preview.
async fn receive(State(web): State<Web>, headers: HeaderMap, body: Bytes) -> Response {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match looked_at(&web, upload::field(kind, &body, "file").unwrap_or_default()).await {
        Ok(file) => {
            let number = web.ephemeral.put_upload(file);
            let forgetting = web.clone();
            tokio::spawn(async move {
                tokio::time::sleep(LIFE).await;
                forgetting.ephemeral.take_upload(number);
            });
            Redirect::to(&format!("{BACK}?import={number}#import")).into_response()
        }
        Err(failure) => {
            page::notice_back(StatusCode::CONFLICT, said::frame_not_done(), failure.message, BACK)
        }
    }
}

/// Parses an uploaded file and works out what importing it would change.
async fn looked_at(web: &Web, bytes: &[u8]) -> Result<File, Failure> {
    if bytes.is_empty() {
        return Err(Failure::usage(said::transfer_choose_file()));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Failure::failed(said::transfer_not_text()))?;
    let sealed = Export::parse(text).map_err(|error| transfer::failure(&error))?.secrets.is_some();
    let merged = import(web, text, vec![], Mode::Merge, None, Doing::Preview).await?;
    let replaced = import(web, text, vec![], Mode::Replace, None, Doing::Preview).await?;
    Ok(File::Waiting { text: Arc::from(text), sealed, merged, replaced })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Preview,
    Import,
}

async fn import(
    web: &Web,
    text: &str,
    sections: Vec<String>,
    mode: Mode,
    passphrase: Option<String>,
    doing: Doing,
) -> Result<Vec<Outcome>, Failure> {
    let preview = doing == Doing::Preview;
    let lang = App::lang(&web.app.values().await?, &web.app.env);
    let call = ImportCall { text: text.to_owned(), sections, mode, passphrase, preview };
    transfer::import(&web.app, call, lang).await
}

async fn take(form: Form) -> Response {
    let done = take_in(&form).await;
    form.answer(done)
}

/// Imports the uploaded file after the user has confirmed.
async fn take_in(form: &Form) -> Result<(), Failure> {
    let number = number(form);
    let Some(Upload { file: File::Waiting { text, .. }, .. }) = form.web.ephemeral.upload(number) else {
        return Err(Failure::failed(said::transfer_file_gone()));
    };
    let sections = chosen(form);
    if sections.is_empty() {
        return Err(Failure::usage(said::transfer_choose_section()));
    }
    let mode = if form.field("mode") == "replace" { Mode::Replace } else { Mode::Merge };
    let passphrase = Some(form.field("passphrase").to_owned()).filter(|words| !words.is_empty());
    let outcomes = import(&form.web, &text, sections, mode, passphrase, Doing::Import).await?;
    form.web.ephemeral.taken_in(number, outcomes);
    form.web.turns.move_on();
    Ok(())
}

fn number(form: &Form) -> u64 {
    form.field("number").parse().unwrap_or_default()
}

async fn cancel(headers: HeaderMap, form: Form) -> Response {
    form.web.ephemeral.take_upload(number(&form));
    reply::done(&headers, "/settings/general#import")
}
