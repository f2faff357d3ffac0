//! The card for scheduled tasks and their last runs.

use axum::Router;
use axum::response::Response;
use axum::routing::post;
use kai_assistant::gate::Level;
use kai_assistant::settings::SCHEDULING_ENABLED;
use kai_assistant::tasks::{Outcome, Status, TaskId};
use kai_words::said;
use maud::{Markup, html};

use crate::call::tasks::{RunRow, TaskRow, TaskWhole};
use crate::commands::tasks;
use crate::failure::Failure;
use crate::web::bin::Kept;
use crate::web::icons;
use crate::web::settings::context::PageContext;
use crate::web::settings::form::Form;
use crate::web::settings::parts::{Region, Switch, TIME, form, icon_button, link, switch, timed};
use crate::web::state::Web;

const CARD: &str = "tasks";

pub(super) async fn card(ctx: &PageContext<'_>) -> Result<Region, Failure> {
    let app = &ctx.web.app;
    let tasks = tasks::list(app, ctx.lang).await?;
    let opened = ctx.place.open("task").and_then(|id| id.parse().ok()).map(TaskId);
    // The task may have been deleted while its details are open.
    let opened = match opened {
        Some(id) => tasks::show(app, id).await.ok(),
        None => None,
    };
    let enabled = Switch {
        setting: &SCHEDULING_ENABLED,
        label: ctx.lang.tasks_enabled(),
        help: ctx.lang.tasks_enabled_help(),
        testid: "scheduling-toggle",
    };
    let content = html! {
        (switch(ctx, CARD, &enabled))
        @if tasks.is_empty() { p class="quiet" { (ctx.lang.tasks_none()) } }
        ul class="items" data-testid="tasks" {
            @for task in &tasks { (row(ctx, task, opened.as_ref().filter(|opened| opened.row.id == task.id))) }
        }
    };
    Ok(Region::card(CARD, ctx.lang.tasks_label(), content).testid("tasks-card"))
}

fn row(ctx: &PageContext<'_>, task: &TaskRow, opened: Option<&TaskWhole>) -> Markup {
    let id = task.id.0.to_string();
    let delete = html! {
        input type="hidden" name="id" value=(id);
        (icon_button("task-delete", &ctx.lang.tasks_delete(&task.description), &icons::bin()))
    };
    let (label, which) = match opened {
        Some(_) => (ctx.lang.tasks_hide_details(), None),
        None => (ctx.lang.tasks_details(), Some(id.as_str())),
    };
    html! {
        li class="entry" id=(format!("task-{id}")) data-testid="task" {
            div class="between" {
                span class="name" dir="auto" { (task.description) }
                (form(ctx, CARD, "/settings/agent/tasks/delete", "", &delete))
            }
            p data-testid="task-when" { (sentence(&task.readable)) }
            p class="quiet" { (standing(ctx, task)) }
            (link(&ctx.place.opening("task", which), CARD, "task-details", label))
            @if let Some(opened) = opened { (details(ctx, opened)) }
        }
    }
}

/// Capitalises a schedule such as "every Monday at 8:00", since it is a line of its own.
fn sentence(readable: &str) -> String {
    let mut letters = readable.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The task's status, its failures, and whether it was planned after reading other people's text.
fn standing(ctx: &PageContext<'_>, task: &TaskRow) -> Markup {
    html! {
        @match task.status {
            Status::Running => (ctx.lang.tasks_running()),
            Status::Completed => (ctx.lang.tasks_done()),
            Status::Skipped => (ctx.lang.tasks_missed()),
            Status::Pending => @if let Some(next) = task.next_at { (timed(ctx, &said::tasks_next(TIME), next)) } @else { (ctx.lang.tasks_waiting()) },
        }
        @if task.failures > 0 { " · " (ctx.lang.tasks_failures(task.failures)) }
        @match task.level {
            Level::Nothing => {},
            Level::Web => { " · " (ctx.lang.tasks_from_web()) },
            Level::People => { " · " (ctx.lang.tasks_from_people()) },
        }
    }
}

fn details(ctx: &PageContext<'_>, task: &TaskWhole) -> Markup {
    html! {
        div class="details" data-testid="task-runs" {
            p class="quiet" { (ctx.lang.tasks_prompt()) }
            p class="text" dir="auto" { (task.prompt) }
            p class="quiet" { @if task.runs.is_empty() { (ctx.lang.tasks_no_runs()) } @else { (ctx.lang.tasks_last_runs()) } }
            ol class="items" { @for run in &task.runs { (ran(ctx, run)) } }
        }
    }
}

fn ran(ctx: &PageContext<'_>, run: &RunRow) -> Markup {
    let outcome = match run.outcome {
        None => ctx.lang.tasks_running(),
        Some(Outcome::Ok) => ctx.lang.tasks_done(),
        Some(Outcome::Failed) => ctx.lang.tasks_failed(),
        Some(Outcome::Skipped) => ctx.lang.tasks_skipped(),
        Some(Outcome::Interrupted) => ctx.lang.tasks_interrupted(),
    };
    html! {
        li class="entry" {
            div class="between" {
                span { (outcome) }
                span class="quiet" {
                    (ctx.times.moment(run.started_at))
                    @if run.tokens > 0 { " · " (ctx.lang.heartbeat_tokens(run.tokens)) }
                }
            }
            @if !run.reason.is_empty() { p class="quiet text" dir="auto" { (run.reason.to(ctx.lang)) } }
        }
    }
}

pub(super) fn routes() -> Router<Web> {
    Router::new().route("/settings/agent/tasks/delete", post(delete))
}

async fn delete(form: Form) -> Response {
    let done = put_away(&form).await;
    form.answer(done)
}

/// Deletes a task with its runs and puts it into the undo bin.
async fn put_away(form: &Form) -> Result<(), Failure> {
    let id = form.field("id");
    let id = id.parse().map_err(|_| Failure::usage(said::tasks_unknown(id)))?;
    let (task, runs) = tasks::take_away(form.app(), TaskId(id)).await?;
    form.web.bin.put(Kept::Task(Box::new(task), runs), form.app().clock.now());
    Ok(())
}
