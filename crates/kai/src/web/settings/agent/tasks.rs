//! The card for scheduled tasks and their last runs.

use axum::Router;
use axum::response::Response;
use axum::routing::post;
use kai_assistant::gate::Level;
use kai_assistant::settings::SCHEDULING_ENABLED;
use kai_assistant::tasks::{Outcome, Status, TaskId};
use maud::{Markup, html};

use crate::call::tasks::{RunRow, TaskRow, TaskWhole};
use crate::commands::tasks;
use crate::failure::Failure;
use crate::web::bin::Kept;
use crate::web::icons;
use crate::web::settings::form::Form;
use crate::web::settings::look::Look;
use crate::web::settings::parts::{Region, Switch, form, icon_button, link, switch, things};
use crate::web::state::Web;

const CARD: &str = "tasks";

pub(super) async fn card(look: &Look<'_>) -> Result<Region, Failure> {
    let app = &look.web.app;
    let tasks = tasks::list(app).await?;
    let opened = look.place.open("task").and_then(|id| id.parse().ok()).map(TaskId);
    // The task may have been deleted while its details are open.
    let opened = match opened {
        Some(id) => tasks::show(app, id).await.ok(),
        None => None,
    };
    let enabled = Switch {
        setting: &SCHEDULING_ENABLED,
        label: "Plan and run tasks",
        help: "Once, again and again, or with every heartbeat. Off, those that wait stay, and none runs.",
        testid: "scheduling-toggle",
    };
    let content = html! {
        (switch(look, CARD, &enabled))
        @if tasks.is_empty() { p class="quiet" { "No tasks. Ask Kai to remind you of something, or to do it every Monday." } }
        ul class="items" data-testid="tasks" {
            @for task in &tasks { (row(look, task, opened.as_ref().filter(|opened| opened.row.id == task.id))) }
        }
    };
    Ok(Region::card(CARD, "Tasks", content).testid("tasks-card"))
}

fn row(look: &Look<'_>, task: &TaskRow, opened: Option<&TaskWhole>) -> Markup {
    let id = task.id.0.to_string();
    let delete = html! {
        input type="hidden" name="id" value=(id);
        (icon_button("task-delete", &format!("Delete {}", task.description), &icons::bin()))
    };
    let (label, which) =
        if opened.is_some() { ("Hide details", None) } else { ("Details", Some(id.as_str())) };
    html! {
        li class="entry" id=(format!("task-{id}")) data-testid="task" {
            div class="between" {
                span class="name" { (task.description) }
                (form(look, CARD, "/settings/agent/tasks/delete", "", &delete))
            }
            p data-testid="task-when" { (sentence(&task.readable)) }
            p class="quiet" { (standing(look, task)) }
            (link(&look.place.opening("task", which), CARD, "task-details", label))
            @if let Some(opened) = opened { (details(look, opened)) }
        }
    }
}

/// Capitalises a schedule such as "every Monday at 8:00", since it is a line of its own.
fn sentence(readable: &str) -> String {
    let mut letters = readable.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The task's status, its failures, and whether it was planned after reading other people's text.
fn standing(look: &Look<'_>, task: &TaskRow) -> Markup {
    html! {
        @match task.status {
            Status::Running => "Runs now",
            Status::Completed => "Done",
            Status::Skipped => "Its time passed unused",
            Status::Pending => @if let Some(next) = task.next_at { "Next: " (look.times.moment(next)) } @else { "Waits" },
        }
        @if task.failures > 0 { " · failed " (things(task.failures as usize, "time", "times")) }
        @match task.level {
            Level::Nothing => {},
            Level::Web => " · planned after reading web pages",
            Level::People => " · planned after reading messages from other people",
        }
    }
}

fn details(look: &Look<'_>, task: &TaskWhole) -> Markup {
    html! {
        div class="details" data-testid="task-runs" {
            p class="quiet" { "What Kai is told" }
            p class="text" { (task.prompt) }
            p class="quiet" { @if task.runs.is_empty() { "It has not run yet." } @else { "Last runs" } }
            ol class="items" { @for run in &task.runs { (ran(look, run)) } }
        }
    }
}

fn ran(look: &Look<'_>, run: &RunRow) -> Markup {
    let outcome = match run.outcome {
        None => "Runs now",
        Some(Outcome::Ok) => "Done",
        Some(Outcome::Failed) => "Failed",
        Some(Outcome::Skipped) => "Passed over",
        Some(Outcome::Interrupted) => "Cut off",
    };
    html! {
        li class="entry" {
            div class="between" {
                span { (outcome) }
                span class="quiet" {
                    (look.times.moment(run.started_at))
                    @if run.tokens > 0 { " · " (run.tokens) " tokens" }
                }
            }
            @if !run.reason.is_empty() { p class="quiet text" { (run.reason) } }
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
    let id = form.field("id").parse().map_err(|_| Failure::usage("A task has a number."))?;
    let (task, runs) = tasks::take_away(form.app(), TaskId(id)).await?;
    form.web.bin.put(Kept::Task(Box::new(task), runs), form.app().clock.now());
    Ok(())
}
