//! Runs due tasks, and lists, shows and cancels tasks.

use jiff::Timestamp;
use kai_assistant::agent::Nobody;
use kai_assistant::db::DbError;
use kai_assistant::errands::{Errands, Round};
use kai_assistant::gate::{Level, RunKind};
use kai_assistant::settings::{self, SCHEDULING_ENABLED};
use kai_assistant::tasks::{Task, TaskId, TaskRun, Trigger, store};
use kai_words::{Lang, said};

use crate::app::App;
use crate::call::tasks::{RunRow, TaskRow, TaskWhole, TasksStatus};
use crate::commands::models;
use crate::failure::Failure;

pub(crate) async fn status(app: &App) -> Result<TasksStatus, DbError> {
    let read = app.db.read(|tx| Ok::<_, DbError>((settings::load(tx)?, store::outlook(tx)?)));
    let (values, (count, next)) = read.await?;
    Ok(TasksStatus {
        enabled: values.on(&SCHEDULING_ENABLED),
        count,
        next_at: next.map(Timestamp::as_millisecond),
        next_local: next.map(|at| app.local(at)),
    })
}

/// All tasks, with their schedules described in this language.
pub(crate) async fn list(app: &App, lang: Lang) -> Result<Vec<TaskRow>, DbError> {
    let tasks = app.db.read(store::all).await?;
    Ok(tasks.iter().map(|task| row(app, task, lang)).collect())
}

pub(crate) async fn show(app: &App, id: TaskId) -> Result<TaskWhole, Failure> {
    let read = app.db.read(move |tx| Ok::<_, DbError>((store::get(tx, id)?, store::runs(tx, id)?)));
    let (task, runs) = read.await?;
    let task = task.ok_or_else(|| unknown(id))?;
    Ok(TaskWhole {
        row: row(app, &task, Lang::ENGLISH),
        prompt: task.prompt,
        created_at: task.created_at.as_millisecond(),
        runs: runs.into_iter().map(|run| run_row(app, run)).collect(),
    })
}

pub(crate) async fn cancel(app: &App, id: TaskId) -> Result<TaskId, Failure> {
    take_away(app, id).await.map(|(task, _)| task.id)
}

/// Cancels a task and returns it with its runs, so that it can be restored.
pub(crate) async fn take_away(app: &App, id: TaskId) -> Result<(Task, Vec<TaskRun>), Failure> {
    let taken = app.db.write(move |tx| {
        let runs = store::runs(tx, id)?;
        Ok::<_, DbError>(store::cancel(tx, id)?.map(|task| (task, runs)))
    });
    taken.await?.ok_or_else(|| unknown(id))
}

fn unknown(id: TaskId) -> Failure {
    Failure::failed(said::tasks_unknown(id.0)).try_instead("kai tasks list")
}

fn row(app: &App, task: &Task, lang: Lang) -> TaskRow {
    let next = task.next.as_ref().map(|next| next.at);
    TaskRow {
        id: task.id,
        description: task.description.clone(),
        trigger: task.trigger.kind(),
        readable: task.trigger.readable(&app.clock.zone(), lang),
        next_at: next.map(Timestamp::as_millisecond),
        next_local: next.map(|at| app.local(at)),
        cron: if let Trigger::Cron(cron) = &task.trigger { Some(cron.to_string()) } else { None },
        status: task.status,
        failures: task.failures,
        missed: task.missed,
        level: task.level,
    }
}

fn run_row(app: &App, run: TaskRun) -> RunRow {
    RunRow {
        due_at: run.due.as_millisecond(),
        started_at: run.started.as_millisecond(),
        started_local: app.local(run.started),
        outcome: run.outcome,
        reason: run.reason,
        tokens: run.tokens,
        ms: run.ms,
    }
}

fn errands(app: &App) -> Errands<'_> {
    Errands { db: &app.db, clock: app.clock.as_ref() }
}

/// The scheduler's step: runs the due tasks, one after the other.
pub(crate) async fn tick(app: &App) {
    if let Err(error) = run_due(app).await {
        tracing::warn!(%error, "tasks could not be run");
    }
}

async fn run_due(app: &App) -> Result<(), DbError> {
    let Some(round) = errands(app).begin().await? else { return Ok(()) };
    for claim in &round.lost {
        tracing::warn!(task = claim.task.id.0, "a task was cut off when Kai was last stopped");
    }
    let ran = run_all(app, &round).await;
    round.end().await?;
    ran
}

async fn run_all(app: &App, round: &Round<'_>) -> Result<(), DbError> {
    while let Some(claim) = round.claim().await? {
        let id = claim.task.id.0;
        // Only look for models once there is a task to run. Having none is an error of the run.
        let models = models::ready(app, &app.env).await.map_err(|unready| unready.said());
        let driver = models
            .as_ref()
            .map(|models| app.driver(models, &Nobody, RunKind::Task, Level::People))
            .map_err(Clone::clone);
        if let Some(reason) = round.run(claim, driver).await? {
            tracing::warn!(task = id, %reason, "a task failed");
        } else {
            tracing::info!(task = id, "a task ran");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kai_assistant::clock::ManualClock;
    use kai_assistant::models::{self as known, ConfiguredModel};
    use kai_assistant::tasks::NewTask;

    use kai_assistant::tasks::Missed;

    use super::*;

    #[tokio::test]
    async fn a_task_fails_with_what_is_wrong_with_the_model() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let (app, _folder) = App::for_tests(Arc::new(ManualClock::at(now)));
        let model = ConfiguredModel {
            name: "openai".to_owned(),
            preset: "openai".to_owned(),
            base_url: "http://127.0.0.1:1/v1".to_owned(),
            model: "m".to_owned(),
            key: None,
            context: None,
            sees: None,
        };
        let trigger = Trigger::Time(now);
        let new = NewTask::new("weather", "Tell it.", trigger, Missed::RunOnce, Level::Nothing).unwrap();
        let zone = app.clock.zone();
        let id = app.db.write_now(|tx| {
            known::store::keep(tx, &model)?;
            Ok::<_, DbError>(store::add(tx, &new, now, &zone).unwrap().id)
        });
        let id = id.unwrap();
        tick(&app).await;
        let reason = show(&app, id).await.unwrap().runs.remove(0).reason.to_string();
        assert!(reason.contains("openai has no API key."), "{reason}");
    }
}
