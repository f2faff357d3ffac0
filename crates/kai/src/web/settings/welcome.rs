//! The welcome: three steps from an empty home to the first answer. Each can be skipped and says what leaves the machine.
//!
//! It is made of the cards of the other pages, so what is set up here is set up as it is there.

use axum::Router;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use kai_assistant::db::DbError;
use kai_assistant::legible::visible;
use kai_assistant::models::store;
use kai_assistant::{outbox, settings};
use kai_llm::Offered;
use kai_llm::local::Server;
use kai_words::Lang;
use maud::{Markup, html};
use rusqlite::Transaction;

use super::context::{Page, PageContext, Place};
use super::form::Form;
use super::model_form::{first_choice, ids, leaves, mark};
use super::parts::{Region, form, plain};
use super::{agent, local, models, phones};
use crate::app::{App, facts};
use crate::call::models::ModelRow;
use crate::commands;
use crate::failure::Failure;
use crate::web::messages;
use crate::web::state::Web;

/// The steps, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Model,
    Phone,
    Reading,
}

impl Step {
    const ALL: [Self; 3] = [Self::Model, Self::Phone, Self::Reading];

    fn of(place: &Place) -> Self {
        let named = Self::ALL.into_iter().find(|step| step.name() == place.says("step"));
        named.unwrap_or(Self::Model)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Phone => "phone",
            Self::Reading => "reading",
        }
    }

    fn title(self, lang: Lang) -> &'static str {
        match self {
            Self::Model => lang.welcome_step_model(),
            Self::Phone => lang.welcome_step_phone(),
            Self::Reading => lang.welcome_step_reading(),
        }
    }

    /// What it is for, and what leaves the machine.
    fn about(self, lang: Lang) -> &'static str {
        match self {
            Self::Model => lang.welcome_about_model(),
            Self::Phone => lang.welcome_about_phone(),
            Self::Reading => lang.welcome_about_reading(),
        }
    }

    fn next(self) -> Option<Self> {
        Self::ALL.into_iter().skip_while(|step| *step != self).nth(1)
    }

    fn address(self) -> String {
        format!("{}?step={}", Page::Welcome.path(), self.name())
    }
}

pub(super) fn routes() -> Router<Web> {
    Router::new().route("/welcome/done", post(done))
}

/// Whether the start page should be the welcome: nobody has skipped it, and nothing was set up or waits in any other way.
pub(in crate::web) async fn is_due(app: &App) -> Result<bool, DbError> {
    if app.home.is_demo() {
        return Ok(false);
    }
    let is_untouched = |tx: &Transaction<'_>| {
        Ok(facts::recall(tx, facts::WELCOMED)?.is_none()
            && settings::are_untouched(tx)?
            && store::all(tx)?.is_empty()
            && outbox::store::all(tx)?.is_empty())
    };
    app.db.read(is_untouched).await
}

pub(super) async fn regions(ctx: &PageContext<'_>) -> Result<Vec<Region>, Failure> {
    let step = Step::of(ctx.place);
    let about = html! { p class="lead" data-testid="welcome-about" { (step.about(ctx.lang)) } };
    let mut regions = vec![Region::bare("about-step", about)];
    let rows = commands::models::rows(&ctx.web.app, &ctx.web.app.env).await?;
    match step {
        Step::Model => {
            let servers = commands::models::servers(&ctx.web.app).await;
            regions.push(Region::card("models", ctx.lang.welcome_found(), found(ctx, &rows, &servers)));
            regions.extend(local::region(ctx).await?);
            regions.push(Region::card("add", ctx.lang.models_add(), models::adding(ctx)));
        }
        Step::Phone => regions.extend(phones::for_welcome(ctx).await?),
        Step::Reading => regions.extend(agent::reading(ctx).await?),
    }
    let is_ready = rows.iter().any(|row| row.ready);
    regions.push(Region::bare("go-on", go_on(ctx, step, is_ready)));
    Ok(regions)
}

/// The models that are set up or found, and the servers on this machine that have one.
fn found(ctx: &PageContext<'_>, rows: &[ModelRow], servers: &[Server]) -> Markup {
    let is_new = |server: &&Server| !rows.iter().any(|row| row.preset == server.preset.id);
    let servers: Vec<&Server> = servers.iter().filter(is_new).collect();
    html! {
        @if rows.is_empty() && servers.is_empty() { p data-testid="welcome-none" { (ctx.lang.welcome_found_none()) } }
        @if !rows.is_empty() { (models::list(ctx, rows)) }
        @for server in servers { (use_server(ctx, server)) }
    }
}

/// A server on this machine, with its models to choose from.
fn use_server(ctx: &PageContext<'_>, server: &Server) -> Markup {
    let (preset, lang) = (server.preset, ctx.lang);
    let at = preset.base_url.as_deref().unwrap_or_default();
    let id = format!("found-{}", preset.id);
    let content = html! {
        input type="hidden" name="preset" value=(preset.id);
        label for=(id) { (models::called(preset, lang)) }
        select id=(id) data-testid=(id) name="model" data-stays autocomplete="off" {
            (choices(&server.models, at, lang))
        }
        p class="quiet" { (leaves(at, &ids(&server.models)).to(lang)) }
        div class="choices" {
            button type="submit" class="primary" data-testid="welcome-use" { (lang.welcome_use(models::called(preset, lang))) }
        }
    };
    form(ctx, "models", "/settings/models/add", "fields", &content)
}

/// The models to choose from. One is chosen, and said to be: a page that is updated goes by that.
fn choices(models: &[Offered], base_url: &str, lang: Lang) -> Markup {
    let chosen = first_choice(models, base_url);
    html! {
        @for model in models {
            option value=(model.id) selected[Some(model) == chosen] { (visible(&model.id)) (mark(model, base_url, lang)) }
        }
    }
}

/// The ways on: to the next step, or to the chat.
fn go_on(ctx: &PageContext<'_>, step: Step, is_ready: bool) -> Markup {
    let lang = ctx.lang;
    let label = if is_ready { lang.welcome_start() } else { lang.welcome_skip() };
    let class = if is_ready { "primary" } else { "" };
    let chat = html! { button type="submit" class=(class) data-testid="welcome-done" { (label) } };
    html! {
        div class="choices" {
            (plain(ctx, "go-on", "/welcome/done", "", &chat))
            @if let Some(next) = step.next() {
                a class="button" href=(next.address()) data-testid="welcome-next" { (lang.welcome_next(next.title(lang))) }
            }
        }
        @if step == Step::Model && !is_ready { (messages::try_demo(ctx.csrf, lang)) }
    }
}

/// The steps, for the side of the page.
pub(super) fn steps(ctx: &PageContext<'_>) -> Markup {
    let here = Step::of(ctx.place);
    html! {
        nav class="pages" aria-label=(ctx.lang.welcome_steps()) {
            ul {
                @for (n, step) in (1..).zip(Step::ALL) {
                    li {
                        a href=(step.address()) aria-current=[(step == here).then_some("step")] data-testid=(format!("step-{}", step.name())) {
                            (n) ". " (step.title(ctx.lang))
                        }
                    }
                }
            }
        }
    }
}

/// Remembers that the welcome was seen or skipped, and leads to the chat.
async fn done(form: Form) -> Response {
    let seen = |tx: &Transaction<'_>| facts::remember(tx, facts::WELCOMED, "yes");
    match form.app().db.write(seen).await.map_err(|error: DbError| error) {
        Ok(()) => Redirect::to("/").into_response(),
        Err(error) => form.refuse(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use kai_words::said;

    use super::*;

    const OLLAMA: &str = "http://127.0.0.1:11434/v1";

    #[test]
    fn the_first_model_of_a_found_server_is_chosen() {
        let models = ["small", "large"].map(|id| Offered { id: id.to_owned(), name: None });
        assert_eq!(
            choices(&models, OLLAMA, Lang::ENGLISH).into_string(),
            r#"<option value="small" selected>small</option><option value="large">large</option>"#
        );
        assert_eq!(leaves(OLLAMA, &ids(&models)), said::models_leaves_nothing());
    }

    #[test]
    fn a_model_that_the_found_server_passes_on_is_marked_and_not_chosen() {
        let models = ["glm-4.6:cloud", "small"].map(|id| Offered { id: id.to_owned(), name: None });
        assert_eq!(
            choices(&models, OLLAMA, Lang::ENGLISH).into_string(),
            "<option value=\"glm-4.6:cloud\">glm-4.6:cloud · leaves this computer</option>\
             <option value=\"small\" selected>small</option>"
        );
        assert_eq!(leaves(OLLAMA, &ids(&models)), said::models_leaves_some());
        assert_eq!(leaves(OLLAMA, &ids(&models[..1])), said::models_leaves_through());
        assert_eq!(leaves("https://ollama.com/v1", &ids(&models)), said::models_leaves_to("ollama.com"));
    }
}
