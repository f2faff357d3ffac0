//! The Models page: the order in which models are asked, testing whether they work, and adding one.

use axum::Router;
use axum::response::Response;
use axum::routing::post;
use kai_assistant::legible::visible;
use kai_assistant::models::store::Move;
use kai_assistant::models::vision::Vision;
use kai_assistant::models::window::WindowSource;
use kai_assistant::models::{BUILT_IN, is_passed_on, is_unencrypted, preset};
use kai_llm::{Preset, presets};
use kai_words::{Lang, said};
use maud::{Markup, html};

use super::context::PageContext;
use super::ephemeral::Trial;
use super::form::Form;
use super::model_form::{Fields, fields};
use super::parts::{Button, Region, button, form, naming};
use super::trial::begin_test;
use super::{local, model_form};
use crate::call::models::{ModelOrigin, ModelRow};
use crate::commands::models;
use crate::failure::Failure;
use crate::web::bin::Kept;
use crate::web::remedy::Remedy;
use crate::web::rich::rich;
use crate::web::state::Web;
use crate::web::{icons, messages};

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/settings/models/add", post(model_form::add))
        .route("/settings/models/list", post(model_form::list))
        .route("/settings/models/test", post(test))
        .route("/settings/models/move", post(shift))
        .route("/settings/models/remove", post(remove))
}

pub(super) async fn regions(ctx: &PageContext<'_>) -> Result<Vec<Region>, Failure> {
    let rows = models::rows(&ctx.web.app, &ctx.web.app.env).await?;
    let mut regions = vec![Region::card("models", ctx.lang.models_list(), list(ctx, &rows))];
    regions.extend(local::region(ctx).await?);
    // The demo only uses its scripted models.
    let add = if ctx.web.app.home.is_demo() {
        html! { p { (ctx.lang.models_demo()) } }
    } else {
        adding(ctx)
    };
    regions.push(Region::card("add", ctx.lang.models_add(), add));
    Ok(regions)
}

/// The models in their order, each with what can be done with it.
pub(super) fn list(ctx: &PageContext<'_>, rows: &[ModelRow]) -> Markup {
    let added = rows.iter().filter(|row| row.origin == ModelOrigin::Added).count();
    html! {
        @if rows.is_empty() {
            p { (ctx.lang.models_none()) }
        } @else {
            p class="quiet" { (ctx.lang.models_list_help()) }
            ol class="models" {
                @for (at, row) in rows.iter().enumerate() { (model(ctx, row, Stands { at, of: added })) }
            }
        }
    }
}

/// The position of a model in the list, and how many of the models were added by the user.
#[derive(Clone, Copy)]
struct Stands {
    at: usize,
    of: usize,
}

fn model(ctx: &PageContext<'_>, row: &ModelRow, stands: Stands) -> Markup {
    let name = visible(messages::model_name(&row.name, ctx.lang));
    let trial = ctx.web.ephemeral.trial(&row.name);
    html! {
        li class="model" data-testid="model" data-model=(name) {
            div class="model-head" {
                strong dir="auto" { (name) }
                @if stands.at == 0 && row.ready { span class="tag" { (ctx.lang.models_first()) } }
                @for tag in tags(row, ctx.lang) { span class="tag" { (tag) } }
            }
            // The demo's model has neither an address nor a context window.
            @if row.origin != ModelOrigin::Demo {
                p class="quiet" { (visible(&row.model)) " · " (visible(&row.base_url)) }
                p class="quiet" data-testid="model-context" { (window(row, ctx.lang)) }
            }
            @if is_unencrypted(&row.base_url) {
                p class="remark" data-testid="model-unencrypted" {
                    (if row.has_key { ctx.lang.models_unencrypted_key() } else { ctx.lang.models_unencrypted() })
                }
            }
            @if let Some(why) = &row.why_not { p class="remark" data-testid="model-why-not" { (naming(ctx, why)) } }
            @if let Some(trial) = &trial { (render_trial(trial, ctx.lang)) }
            div class="choices" { (acts(ctx, row, stands, trial.as_ref())) }
            @if ctx.place.open("model") == Some(&row.name) { (changing(ctx, row)) }
        }
    }
}

/// The size of the model's context window, and where that number comes from.
fn window(row: &ModelRow, lang: Lang) -> String {
    match row.context_from {
        WindowSource::Set => lang.models_window_set(row.context),
        WindowSource::Server => lang.models_window_server(row.context),
        WindowSource::Learned => lang.models_window_learned(row.context),
        WindowSource::Preset => lang.models_window_assumed(row.context),
    }
}

fn tags(row: &ModelRow, lang: Lang) -> Vec<&'static str> {
    let from = match row.origin {
        ModelOrigin::Environment => Some(lang.models_from_environment()),
        ModelOrigin::Found => Some(lang.models_from_found()),
        ModelOrigin::Demo => Some(lang.models_from_demo()),
        ModelOrigin::Added => None,
    };
    let local = match (row.local, is_unencrypted(&row.base_url)) {
        (true, _) if row.preset == BUILT_IN => lang.local_here(),
        (true, _) => lang.models_stays(),
        (false, _) if is_passed_on(&row.base_url, &row.model) => lang.models_passes_on(),
        (false, false) => lang.models_sends(),
        (false, true) => lang.models_sends_open(),
    };
    let key = row.has_key.then(|| lang.models_with_key());
    let sees = match row.pictures {
        Vision::Yes => Some(lang.models_sees_yes()),
        Vision::No => Some(lang.models_sees_no()),
        Vision::Unknown => None,
    };
    from.into_iter().chain([local]).chain(key).chain(sees).collect()
}

/// The result of a model's test.
pub(super) fn render_trial(trial: &Trial, lang: Lang) -> Markup {
    html! {
        p class="trial" data-testid="model-trial" {
            @match trial {
                Trial::Asking => { span class="pulse" {} (lang.models_testing()) }
                Trial::Asked(test) if test.works => {
                    (rich(&said::models_works(&test.says, test.ms), lang, |value| html! { bdi { (value) } }))
                }
                Trial::Asked(test) => {
                    span class="error" { (visible(&lang.models_failed(&test.says))) }
                    @if let Some(fault) = test.fault { " " (Remedy::model(&test.name, fault).link(lang)) }
                }
                Trial::Failed(why) => span class="error" { (visible(&why.to(lang))) },
            }
        }
    }
}

/// The buttons of a model: test, change, remove, move.
fn acts(ctx: &PageContext<'_>, row: &ModelRow, stands: Stands, trial: Option<&Trial>) -> Markup {
    let (lang, asking) = (ctx.lang, matches!(trial, Some(Trial::Asking)));
    let opened = ctx.place.open("model") == Some(&row.name);
    let change = ctx.place.opening("model", (!opened).then_some(&row.name));
    let round = |way: &str, label: &str, icon: Markup, possible: bool| {
        let content = html! {
            input type="hidden" name="name" value=(row.name);
            button class="round" type="submit" name="way" value=(way) disabled[!possible] title=(label)
                data-testid=(format!("model-{way}")) aria-label=(ctx.lang.models_move_named(label, visible(&row.name))) { (icon) }
        };
        form(ctx, "models", "/settings/models/move", "", &content)
    };
    let act = |action: &str, label: &str, testid: &str| {
        let it = Button { label, testid, class: "", fields: &[("name", &row.name)] };
        button(ctx, "models", action, &it)
    };
    html! {
        @if !asking && row.origin != ModelOrigin::Demo { (act("/settings/models/test", lang.models_test(), "model-test")) }
        // The file of a model that runs inside Kai is all there is to it. One that was found becomes the user's own.
        @if row.preset != BUILT_IN && row.origin != ModelOrigin::Demo {
            a class="button" href=(format!("{change}#models")) data-show data-testid="model-change" { (if opened { lang.models_cancel() } else { lang.models_change() }) }
        }
        @if row.origin == ModelOrigin::Added {
            (act("/settings/models/remove", lang.models_remove(), "model-remove"))
            @if stands.of > 1 {
                (round("up", lang.models_up(), icons::send(), stands.at > 0))
                (round("down", lang.models_down(), icons::down(), stands.at + 1 < stands.of))
            }
        }
    }
}

fn changing(ctx: &PageContext<'_>, row: &ModelRow) -> Markup {
    let Some(preset) = preset(&row.preset) else { return html! {} };
    let key = if row.has_key { ctx.lang.models_key_kept() } else { ctx.lang.models_key_none() };
    let context = if row.context_from == WindowSource::Set { row.context.to_string() } else { String::new() };
    let shown = Fields {
        card: "models",
        preset,
        name: Some(&row.name),
        base_url: &row.base_url,
        model: &row.model,
        key,
        context: &context,
        pictures: row.pictures_set,
    };
    fields(ctx, &shown)
}

/// The services and servers to choose from, and the form for the chosen one.
pub(super) fn adding(ctx: &PageContext<'_>) -> Markup {
    let chosen = ctx.place.open("preset").and_then(preset);
    let near = |preset: &&Preset| preset.local || preset.base_url.is_none();
    html! {
        (choices(ctx, ctx.lang.models_local(), presets().iter().filter(near), chosen))
        (choices(ctx, ctx.lang.models_internet(), presets().iter().filter(|preset| !near(preset)), chosen))
        @if let Some(preset) = chosen {
            @let key = if preset.needs_key { ctx.lang.models_key_wanted() } else { ctx.lang.models_key_optional() };
            (fields(ctx, &Fields { card: "add", preset, name: None, base_url: "", model: "", key, context: "", pictures: None }))
        }
    }
}

fn choices<'p>(
    ctx: &PageContext<'_>,
    title: &str,
    presets: impl Iterator<Item = &'p Preset>,
    chosen: Option<&Preset>,
) -> Markup {
    html! {
        p class="label" { (title) }
        ul class="presets" aria-label=(title) {
            @for preset in presets {
                @let here = chosen.is_some_and(|chosen| chosen.id == preset.id);
                @let to = ctx.place.opening("preset", (!here).then_some(&preset.id));
                li {
                    a class="button" href=(format!("{to}#add")) data-show data-testid="preset" data-preset=(preset.id)
                        aria-current=[here.then_some("true")] { (called(preset, ctx.lang)) }
                }
            }
        }
    }
}

/// The name of a preset: a product's own, or a description of what the server speaks.
pub(super) fn called(preset: &Preset, lang: Lang) -> &str {
    if preset.id == "openai-compatible" { lang.models_compatible() } else { &preset.name }
}

/// Tests a model by asking it for a word. The page shows the result when it arrives, so nobody has to wait.
async fn test(form: Form) -> Response {
    let begun = form.start(begin_test(form.web.clone(), form.field("name").to_owned())).await;
    form.answer(begun)
}

async fn shift(form: Form) -> Response {
    let way = if form.field("way") == "up" { Move::Up } else { Move::Down };
    let done = models::shift(form.app(), form.field("name").to_owned(), way).await;
    form.answer(done)
}

async fn remove(form: Form) -> Response {
    let done = put_away(&form.web, form.field("name").to_owned()).await;
    form.answer(done)
}

/// Removes a model and puts it into the undo bin.
async fn put_away(web: &Web, name: String) -> Result<(), Failure> {
    let removed = models::remove_undoable(&web.app, name.clone()).await?;
    web.bin.put(Kept::Model(Box::new(removed)), web.app.clock.now());
    web.ephemeral.forget_trial(&name);
    web.turns.move_on();
    Ok(())
}
