//! The tools with which a model schedules, lists and cancels tasks. Invalid input is rejected here rather than when the
//! task runs.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kai_words::Lang;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::store::{self, AddError};
use super::{Missed, NewTask, Status, Task, TaskId, TriggerSpec};
use crate::clock::Clock;
use crate::db::Db;
use crate::gate::Level;
use crate::moment;
use crate::tool::{Run, Tool, ToolError, ToolOutput};

/// Schedule something for later: once, at a time; repeatedly, by a cron expression; or as a part of every heartbeat.
/// Give exactly one of `execute_at`, `cron` and `on_heartbeat`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct ScheduleTaskInput {
    /// Short name of the task that the user sees, for example "Morning weather".
    pub description: String,
    /// What you have to do when it runs, with everything you need to know: you will not see this conversation then,
    /// and nobody will be there to answer questions.
    pub prompt: String,
    /// Once: date and time in ISO 8601, such as 2026-03-09T15:00 (the user's local time) or
    /// 2026-03-09T15:00:00+01:00.
    pub execute_at: Option<String>,
    /// Repeatedly: minute, hour, day of the month, month, day of the week (0 is Sunday) in the user's local time. Such
    /// as "30 7 * * 1-5" for every weekday at 7:30.
    pub cron: Option<String>,
    /// True: the prompt becomes a part of every heartbeat, until it is cancelled.
    pub on_heartbeat: Option<bool>,
    /// What to do if it could not run at its time, because the machine was off: `RUN_ONCE` as soon as possible
    /// (default), or SKIP it.
    pub missed: Option<Missed>,
}

#[derive(Debug, Serialize)]
pub struct TaskScheduled {
    task_id: TaskId,
    schedule: String,
    /// Local time with offset; `None` for a heartbeat task.
    next_at: Option<String>,
    message: String,
}

pub struct ScheduleTask {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
}

impl Tool for ScheduleTask {
    const NAME: &'static str = "schedule_task";
    type Input = ScheduleTaskInput;
    type Output = TaskScheduled;

    async fn run(&self, input: ScheduleTaskInput, run: &Run) -> Result<ToolOutput<TaskScheduled>, ToolError> {
        let (now, zone) = (self.clock.now(), self.clock.zone());
        let spec = TriggerSpec {
            execute_at: input.execute_at.as_deref(),
            cron: input.cron.as_deref(),
            on_heartbeat: input.on_heartbeat == Some(true),
        };
        let trigger = spec.trigger(now, &zone).map_err(ToolError::from)?;
        let missed = input.missed.unwrap_or_default();
        let new = NewTask::new(&input.description, &input.prompt, trigger, missed, run.level)
            .map_err(ToolError::from)?;
        let here = zone.clone();
        let added = self.db.write(move |tx| store::add(tx, &new, now, &here)).await;
        let task = added.map_err(|error: AddError| ToolError(error.to_string()))?;
        let schedule = task.trigger.readable(&zone, Lang::ENGLISH);
        let message = format!("Scheduled \"{}\" {schedule}.", task.description);
        let next_at = local(task.next.map(|next| next.at), &zone);
        Ok(ToolOutput::own(TaskScheduled { task_id: task.id, next_at, schedule, message }))
    }
}

/// List the scheduled tasks.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ListTasksInput {}

#[derive(Debug, Serialize)]
pub struct TasksListed {
    tasks: Vec<TaskItem>,
    /// At least one task was created after reading text that others wrote.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    untrusted: bool,
    /// The highest level of the tasks.
    #[serde(skip_serializing_if = "Level::is_nothing")]
    level: Level,
}

#[derive(Debug, Serialize)]
struct TaskItem {
    task_id: TaskId,
    description: String,
    schedule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at: Option<String>,
    status: Status,
    #[serde(skip_serializing_if = "is_zero")]
    failures: u32,
}

pub struct ListTasks {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
}

impl Tool for ListTasks {
    const NAME: &'static str = "list_tasks";
    type Input = ListTasksInput;
    type Output = TasksListed;

    async fn run(&self, _: ListTasksInput, _: &Run) -> Result<ToolOutput<TasksListed>, ToolError> {
        let tasks = self.db.read(store::all).await?;
        let zone = self.clock.zone();
        let level = tasks.iter().map(|task| task.level).max().unwrap_or_default();
        let tasks = tasks.into_iter().map(|task| item(task, &zone)).collect();
        // A name that was written after reading untrusted text counts as untrusted text. A list without such a task
        // raises no level; otherwise, whoever listed tasks would have to approve every web search from then on.
        Ok(ToolOutput::kept_at(TasksListed { tasks, untrusted: level > Level::Nothing, level }, level))
    }
}

/// Cancel a scheduled task.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct CancelTaskInput {
    /// Number of the task, as `list_tasks` shows it.
    pub task_id: TaskId,
}

#[derive(Debug, Serialize)]
pub struct TaskCancelled {
    task_id: TaskId,
    message: String,
}

pub struct CancelTask {
    pub db: Db,
}

impl Tool for CancelTask {
    const NAME: &'static str = "cancel_task";
    type Input = CancelTaskInput;
    type Output = TaskCancelled;

    async fn run(&self, input: CancelTaskInput, _: &Run) -> Result<ToolOutput<TaskCancelled>, ToolError> {
        let task_id = input.task_id;
        let cancelled = self.db.write(move |tx| store::cancel(tx, task_id)).await?;
        let unknown =
            || ToolError(format!("There is no task number {}. Use list_tasks to see them.", task_id.0));
        let task = cancelled.ok_or_else(unknown)?;
        // Without the task's name, which may be untrusted text that this result would not declare.
        let message = format!("Cancelled task {}.", task.id.0);
        Ok(ToolOutput::own(TaskCancelled { task_id: task.id, message }))
    }
}

fn item(task: Task, zone: &TimeZone) -> TaskItem {
    TaskItem {
        schedule: task.trigger.readable(zone, Lang::ENGLISH),
        task_id: task.id,
        description: task.description,
        next_at: local(task.next.map(|next| next.at), zone),
        status: task.status,
        failures: task.failures,
    }
}

fn local(at: Option<Timestamp>, zone: &TimeZone) -> Option<String> {
    at.map(|at| moment::local(at, zone))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests;
