//! Exports and imports the tasks that are still to run, with the same fields as the tool that schedules them.

use kai_words::Said;
use rusqlite::Transaction;
use serde::{Deserialize, Serialize};

use super::{Import, Mode, Outcome};
use crate::db::DbError;
use crate::gate::Level;
use crate::tasks::store::{self, AddError};
use crate::tasks::{Missed, NewTask, Status, Task, Trigger, TriggerSpec};

/// A task as it is exported, without its runs so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlainTask {
    description: String,
    prompt: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    execute_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    on_heartbeat: bool,
    #[serde(default)]
    missed: Missed,
    /// Older files call it `tainted`.
    #[serde(default, alias = "tainted", skip_serializing_if = "Level::is_nothing")]
    level: Level,
}

/// The pending and running tasks. Finished tasks are not exported, because they would not run again.
pub(super) fn read(tx: &Transaction<'_>) -> Result<Vec<PlainTask>, DbError> {
    Ok(coming(tx)?.iter().map(plain).collect())
}

fn coming(tx: &Transaction<'_>) -> Result<Vec<Task>, DbError> {
    let comes = |task: &Task| matches!(task.status, Status::Pending | Status::Running);
    Ok(store::all(tx)?.into_iter().filter(comes).collect())
}

fn plain(task: &Task) -> PlainTask {
    let (execute_at, cron) = match &task.trigger {
        Trigger::Time(at) => (Some(at.to_string()), None),
        Trigger::Cron(cron) => (None, Some(cron.to_string())),
        Trigger::Heartbeat => (None, None),
    };
    PlainTask {
        description: task.description.clone(),
        prompt: task.prompt.clone(),
        execute_at,
        cron,
        on_heartbeat: task.trigger == Trigger::Heartbeat,
        missed: task.missed,
        level: task.level,
    }
}

/// Imports tasks. A task that exists already stays as it is, with its runs. A task whose time has passed is skipped,
/// because it may have run where the file was exported.
pub(super) fn write(
    tx: &Transaction<'_>,
    outcome: &mut Outcome,
    items: &[PlainTask],
    import: &Import<'_>,
) -> Result<(), DbError> {
    let mut wanted = vec![];
    for item in items {
        match checked(item, import) {
            Ok(new) => wanted.push(new),
            Err(why) => outcome.skipped.push(import.lang.transfer_detail(&item.description, why)),
        }
    }
    if import.mode == Mode::Replace {
        for task in coming(tx)?.iter().filter(|task| !wanted.iter().any(|new| new.is_like(task))) {
            store::cancel(tx, task.id)?;
            outcome.removed += 1;
        }
    }
    for new in &wanted {
        if coming(tx)?.iter().any(|task| new.is_like(task)) {
            outcome.same += 1;
            continue;
        }
        match store::add(tx, new, import.now, import.zone) {
            Ok(task) => outcome.count(None, &task, || summary(&task, import)),
            Err(AddError::Store(error)) => return Err(error),
            Err(full) => outcome.skipped.push(import.lang.transfer_detail(new.description(), full.said())),
        }
    }
    Ok(())
}

/// Checks a task with the same rules as the tool that schedules tasks.
fn checked(item: &PlainTask, import: &Import<'_>) -> Result<NewTask, Said> {
    let spec = TriggerSpec {
        execute_at: item.execute_at.as_deref(),
        cron: item.cron.as_deref(),
        on_heartbeat: item.on_heartbeat,
    };
    let trigger = spec.trigger(import.now, import.zone)?;
    NewTask::new(&item.description, &item.prompt, trigger, item.missed, item.level)
}

fn summary(task: &Task, import: &Import<'_>) -> String {
    format!("{}: {}", task.description, task.trigger.readable(import.zone, import.lang))
}
