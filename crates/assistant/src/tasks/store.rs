//! Stores tasks and their runs. A run is claimed in one transaction before it starts and ended in another; a claim that
//! was never ended is a run that died.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kai_words::{Said, said};
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::due::{self, AfterRun, Move};
use super::{Missed, NewTask, Next, Outcome, Status, Task, TaskId, TaskRun, Trigger, zone_name};
use crate::db::DbError;
use crate::gate::Level;
use crate::settings::{self, SCHEDULING_ENABLED};

/// The most tasks that may be waiting; more would suggest a runaway model.
pub const MOST: u32 = 100;
/// The most heartbeat tasks; each makes every heartbeat longer.
pub const MOST_ADDITIONS: u32 = 10;
/// How many runs of a task are kept.
pub const RUNS_KEPT: u32 = 10;
/// How many finished tasks are kept, so that the user can see what became of them.
const FINISHED_KEPT: u32 = 20;

/// Why a task was not added.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.said())]
pub enum AddError {
    /// As many tasks as possible are scheduled already.
    Full,
    /// As many tasks as possible run with every heartbeat already.
    HeartbeatFull,
    Store(#[from] DbError),
}

impl AddError {
    /// The error in the user's language; a model reads the English one.
    pub fn said(&self) -> Said {
        match self {
            Self::Full => said::task_wrong_full(MOST),
            Self::HeartbeatFull => said::task_wrong_heartbeat_full(MOST_ADDITIONS),
            Self::Store(error) => error.said(),
        }
    }
}

/// A run that this process has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    run: i64,
    pub task: Task,
    /// The time that the run is for; it also uses up any later times until now.
    pub due: Timestamp,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// `Err` holds the reason.
    pub outcome: Result<(), Said>,
    pub tokens: u64,
    pub ms: u64,
}

/// A heartbeat task, as the heartbeat's prompt shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addition {
    pub id: TaskId,
    pub description: String,
    pub prompt: String,
    pub level: Level,
}

/// A waiting task, as the heartbeat's prompt shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    pub id: TaskId,
    pub description: String,
    pub trigger: Trigger,
    pub next: Option<Timestamp>,
    pub failures: u32,
    pub level: Level,
}

/// Adds a new task.
pub fn add(tx: &Transaction<'_>, new: &NewTask, now: Timestamp, zone: &TimeZone) -> Result<Task, AddError> {
    let waiting = |condition: &str| -> Result<u32, DbError> {
        let sql = format!("SELECT count(*) FROM tasks WHERE status IN ('PENDING', 'RUNNING') {condition}");
        Ok(tx.query_row(&sql, [], |row| row.get(0))?)
    };
    if waiting("")? >= MOST {
        return Err(AddError::Full);
    }
    if new.trigger == Trigger::Heartbeat && waiting("AND kind = 'HEARTBEAT'")? >= MOST_ADDITIONS {
        return Err(AddError::HeartbeatFull);
    }
    let (execute_at, cron) = columns(&new.trigger);
    let kind = new.trigger.kind().as_str();
    tx.execute(
        "INSERT INTO tasks (description, prompt, kind, execute_at, cron, missed, level, status, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'PENDING', ?8)",
        params![
            new.description,
            new.prompt,
            kind,
            execute_at,
            cron,
            new.missed.as_str(),
            new.level.stored(),
            now.as_millisecond(),
        ],
    )
    .map_err(DbError::from)?;
    let id = TaskId(tx.last_insert_rowid());
    plan(tx, id, due::first(&new.trigger, now, zone), now, zone)?;
    Ok(get(tx, id)?.ok_or(DbError::Other(rusqlite::Error::QueryReturnedNoRows))?)
}

/// The columns that store a trigger: the time of a TIME, the expression of a CRON.
fn columns(trigger: &Trigger) -> (Option<i64>, Option<String>) {
    match trigger {
        Trigger::Time(at) => (Some(at.as_millisecond()), None),
        Trigger::Cron(cron) => (None, Some(cron.to_string())),
        Trigger::Heartbeat => (None, None),
    }
}

/// Stores when a task runs next, and when and in which time zone that was computed.
fn plan(
    tx: &Transaction<'_>,
    id: TaskId,
    next: Option<Timestamp>,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<(), DbError> {
    tx.prepare_cached("UPDATE tasks SET next_at = ?2, reckoned_at = ?3, zone = ?4 WHERE id = ?1")?
        .execute(params![id.0, next.map(Timestamp::as_millisecond), now.as_millisecond(), zone_name(zone)])?;
    Ok(())
}

/// Claims the next run that is due; the claim is durable once the transaction commits. On the way, it skips missed
/// times of tasks with that policy.
pub fn claim(tx: &Transaction<'_>, now: Timestamp, zone: &TimeZone) -> Result<Option<Claim>, DbError> {
    claim_since(tx, now, now, zone)
}

/// [`claim`] in a round that has run other tasks since `awake`: a time that came meanwhile was not missed.
pub fn claim_since(
    tx: &Transaction<'_>,
    awake: Timestamp,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<Option<Claim>, DbError> {
    for task in waiting(tx)? {
        let Some(due) = task.next.as_ref().map(|next| next.at) else { continue };
        match due::next_move_since(&task, awake, now, zone) {
            Move::Wait => {}
            Move::Recompute { next } => plan(tx, task.id, Some(next), now, zone)?,
            Move::SkipRun { next } => pass_over(tx, &task, due, next, now, zone)?,
            Move::Run => return begin(tx, task, due, now, zone).map(Some),
        }
    }
    Ok(None)
}

fn begin(
    tx: &Transaction<'_>,
    task: Task,
    due: Timestamp,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<Claim, DbError> {
    plan(tx, task.id, due::when_claimed(&task.trigger, now, zone), now, zone)?;
    set_status(tx, task.id, Status::Running)?;
    let run = insert_run(tx, task.id, due, now)?;
    Ok(Claim { run, task, due })
}

fn pass_over(
    tx: &Transaction<'_>,
    task: &Task,
    due: Timestamp,
    next: Option<Timestamp>,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<(), DbError> {
    let run = insert_run(tx, task.id, due, now)?;
    end_run(tx, run, Outcome::Skipped, &said::run_missed(), 0, 0)?;
    plan(tx, task.id, next, now, zone)?;
    if next.is_none() {
        finish_task(tx, task.id, Status::Skipped, now)?;
    }
    Ok(())
}

/// Whether the run has ended already, because another process took it for dead and recorded that.
fn is_ended(tx: &Transaction<'_>, run: i64) -> Result<bool, DbError> {
    let sql = "SELECT 1 FROM task_runs WHERE id = ?1 AND outcome IS NOT NULL";
    Ok(tx.prepare_cached(sql)?.exists([run])?)
}

/// Ends a run and updates its task. Returns false if the task was cancelled meanwhile or the run was recorded as dead.
pub fn end(
    tx: &Transaction<'_>,
    claim: &Claim,
    ending: &Ending,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<bool, DbError> {
    let Some(task) = get(tx, claim.task.id)? else { return Ok(false) };
    if is_ended(tx, claim.run)? {
        return Ok(false);
    }
    let (outcome, reason, onward) = match &ending.outcome {
        Ok(()) => (Outcome::Ok, Said::default(), due::after_success(&task.trigger)),
        Err(reason) => {
            (Outcome::Failed, reason.clone(), due::after_failure(&task.trigger, task.failures, now))
        }
    };
    end_run(tx, claim.run, outcome, &reason, ending.tokens, ending.ms)?;
    go_on(tx, &task, outcome, onward, now, zone)?;
    Ok(true)
}

/// Ends the runs that died, which were claimed but never ended, and returns them. The caller must make sure that no run
/// is under way.
pub fn lost(tx: &Transaction<'_>, now: Timestamp, zone: &TimeZone) -> Result<Vec<Claim>, DbError> {
    let mut rows =
        tx.prepare_cached("SELECT id, task, due_at FROM task_runs WHERE outcome IS NULL ORDER BY id")?;
    let open = rows.query_map([], |row| Ok((row.get(0)?, TaskId(row.get(1)?), moment(row.get(2)?))))?;
    let open: Vec<(i64, TaskId, Timestamp)> = open.collect::<rusqlite::Result<_>>()?;
    let mut dead = Vec::new();
    for (run, id, due) in open {
        let Some(task) = get(tx, id)? else { continue };
        end_run(tx, run, Outcome::Interrupted, &said::run_interrupted(), 0, 0)?;
        let onward = due::after_failure(&task.trigger, task.failures, now);
        go_on(tx, &task, Outcome::Interrupted, onward, now, zone)?;
        dead.push(Claim { run, due, task: get(tx, id)?.unwrap_or(task) });
    }
    Ok(dead)
}

fn go_on(
    tx: &Transaction<'_>,
    task: &Task,
    outcome: Outcome,
    onward: AfterRun,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<(), DbError> {
    let failures = if outcome == Outcome::Ok { 0 } else { task.failures.saturating_add(1) };
    if failures != task.failures {
        let sql = "UPDATE tasks SET failures = ?2 WHERE id = ?1";
        tx.prepare_cached(sql)?.execute(params![task.id.0, failures])?;
    }
    match onward {
        AfterRun::Completed => finish_task(tx, task.id, Status::Completed, now),
        AfterRun::AsPlanned => set_status(tx, task.id, Status::Pending),
        AfterRun::Again { at } => {
            plan(tx, task.id, Some(at), now, zone)?;
            set_status(tx, task.id, Status::Pending)
        }
    }
}

fn set_status(tx: &Transaction<'_>, id: TaskId, status: Status) -> Result<(), DbError> {
    tx.prepare_cached("UPDATE tasks SET status = ?2 WHERE id = ?1")?
        .execute(params![id.0, status.as_str()])?;
    Ok(())
}

/// Marks a task as finished, and deletes the oldest finished tasks beyond [`FINISHED_KEPT`].
fn finish_task(tx: &Transaction<'_>, id: TaskId, status: Status, now: Timestamp) -> Result<(), DbError> {
    let sql = "UPDATE tasks SET status = ?2, next_at = NULL, finished_at = ?3 WHERE id = ?1";
    tx.prepare_cached(sql)?.execute(params![id.0, status.as_str(), now.as_millisecond()])?;
    tx.prepare_cached(
        "DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE status IN ('COMPLETED', 'SKIPPED')
         ORDER BY finished_at DESC, id DESC LIMIT -1 OFFSET ?1)",
    )?
    .execute([FINISHED_KEPT])?;
    Ok(())
}

fn insert_run(tx: &Transaction<'_>, id: TaskId, due: Timestamp, now: Timestamp) -> Result<i64, DbError> {
    tx.prepare_cached("INSERT INTO task_runs (task, due_at, started_at) VALUES (?1, ?2, ?3)")?
        .execute(params![id.0, due.as_millisecond(), now.as_millisecond()])?;
    let run = tx.last_insert_rowid();
    tx.prepare_cached(
        "DELETE FROM task_runs WHERE id IN
         (SELECT id FROM task_runs WHERE task = ?1 ORDER BY id DESC LIMIT -1 OFFSET ?2)",
    )?
    .execute(params![id.0, RUNS_KEPT])?;
    Ok(run)
}

fn end_run(
    tx: &Transaction<'_>,
    run: i64,
    outcome: Outcome,
    reason: &Said,
    tokens: u64,
    ms: u64,
) -> Result<(), DbError> {
    let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let sql = "UPDATE task_runs SET outcome = ?2, reason = ?3, tokens = ?4, ms = ?5 WHERE id = ?1";
    tx.prepare_cached(sql)?.execute(params![
        run,
        outcome.as_str(),
        reason.stored(),
        whole(tokens),
        whole(ms)
    ])?;
    Ok(())
}

const COLUMNS: &str =
    "SELECT id, description, prompt, kind, execute_at, cron, missed, level, status, next_at,
                              reckoned_at, zone, failures, created_at FROM tasks";

/// All tasks by their next time; those without one come last.
pub fn all(tx: &Transaction<'_>) -> Result<Vec<Task>, DbError> {
    chosen(tx, "ORDER BY next_at IS NULL, next_at, id")
}

fn waiting(tx: &Transaction<'_>) -> Result<Vec<Task>, DbError> {
    chosen(tx, "WHERE status = 'PENDING' AND next_at IS NOT NULL ORDER BY next_at, id")
}

fn chosen(tx: &Transaction<'_>, which: &str) -> Result<Vec<Task>, DbError> {
    let mut rows = tx.prepare_cached(&format!("{COLUMNS} {which}"))?;
    Ok(rows.query_map([], task)?.collect::<rusqlite::Result<_>>()?)
}

pub fn get(tx: &Transaction<'_>, id: TaskId) -> Result<Option<Task>, DbError> {
    let mut row = tx.prepare_cached(&format!("{COLUMNS} WHERE id = ?1"))?;
    Ok(row.query_row([id.0], task).optional()?)
}

/// Deletes a task with its runs and returns it. A run that is under way is not stopped, but its outcome is not stored.
pub fn cancel(tx: &Transaction<'_>, id: TaskId) -> Result<Option<Task>, DbError> {
    let task = get(tx, id)?;
    tx.execute("DELETE FROM tasks WHERE id = ?1", [id.0])?;
    Ok(task)
}

/// Restores a deleted task under its id, with its finished runs. A task that was running is pending again; if its run
/// is still under way, that run can still end it.
pub fn restore(tx: &Transaction<'_>, task: &Task, runs: &[TaskRun]) -> Result<(), DbError> {
    let (execute_at, cron) = columns(&task.trigger);
    let status = if task.status == Status::Running { Status::Pending } else { task.status };
    // A one-time task has no next time while it runs, and the outcome of that run may be lost by now; so it is
    // scheduled again.
    let next = match (&task.trigger, task.status) {
        (Trigger::Time(at), Status::Running) => {
            Some(Next { at: *at, computed_at: task.created_at, zone: String::new() })
        }
        _ => task.next.clone(),
    };
    let finished = matches!(status, Status::Completed | Status::Skipped);
    tx.execute(
        "INSERT OR IGNORE INTO tasks (id, description, prompt, kind, execute_at, cron, missed, level, status, next_at,
                                      reckoned_at, zone, failures, created_at, finished_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        params![
            task.id.0,
            task.description,
            task.prompt,
            task.trigger.kind().as_str(),
            execute_at,
            cron,
            task.missed.as_str(),
            task.level.stored(),
            status.as_str(),
            next.as_ref().map(|next| next.at.as_millisecond()),
            next.as_ref().map(|next| next.computed_at.as_millisecond()),
            next.as_ref().map(|next| &next.zone),
            task.failures,
            task.created_at.as_millisecond(),
            finished.then(|| runs.first().map_or(task.created_at, |run| run.started).as_millisecond()),
        ],
    )?;
    // `runs` is sorted newest first, but runs are stored oldest first.
    for run in runs.iter().rev() {
        let Some(outcome) = run.outcome else { continue };
        let row = insert_run(tx, task.id, run.due, run.started)?;
        end_run(tx, row, outcome, &run.reason, run.tokens, run.ms)?;
    }
    Ok(())
}

/// The latest runs of a task, newest first.
pub fn runs(tx: &Transaction<'_>, id: TaskId) -> Result<Vec<TaskRun>, DbError> {
    let mut rows = tx.prepare_cached(
        "SELECT due_at, started_at, outcome, reason, tokens, ms FROM task_runs WHERE task = ?1 ORDER BY id DESC",
    )?;
    let whole =
        |row: &Row<'_>, column| row.get(column).map(|count: i64| u64::try_from(count).unwrap_or_default());
    let runs = rows.query_map([id.0], |row| {
        let outcome: Option<String> = row.get(2)?;
        Ok(TaskRun {
            due: moment(row.get(0)?),
            started: moment(row.get(1)?),
            outcome: outcome.as_deref().and_then(Outcome::from_stored),
            reason: Said::from_stored(&row.get::<_, String>(3)?),
            tokens: whole(row, 4)?,
            ms: whole(row, 5)?,
        })
    })?;
    Ok(runs.collect::<rusqlite::Result<_>>()?)
}

/// The heartbeat tasks, oldest first; none while scheduling is disabled.
pub fn additions(tx: &Transaction<'_>) -> Result<Vec<Addition>, DbError> {
    if !settings::load(tx)?.on(&SCHEDULING_ENABLED) {
        return Ok(vec![]);
    }
    let standing = chosen(tx, "WHERE status = 'PENDING' AND kind = 'HEARTBEAT' ORDER BY id")?;
    let addition =
        |Task { id, description, prompt, level, .. }: Task| Addition { id, description, prompt, level };
    Ok(standing.into_iter().map(addition).collect())
}

/// The tasks that wait for a time or are running, by their next time; none while scheduling is disabled.
pub fn pending(tx: &Transaction<'_>) -> Result<Vec<Pending>, DbError> {
    if !settings::load(tx)?.on(&SCHEDULING_ENABLED) {
        return Ok(vec![]);
    }
    let row = |Task { id, description, trigger, next, failures, level, .. }: Task| {
        let next = next.map(|next| next.at);
        Pending { id, description, trigger, next, failures, level }
    };
    let waiting =
        chosen(tx, "WHERE status IN ('PENDING', 'RUNNING') AND kind <> 'HEARTBEAT' ORDER BY next_at, id")?;
    Ok(waiting.into_iter().map(row).collect())
}

/// Whether any task needs attention now. Only reads, because usually none does.
pub fn has_work(tx: &Transaction<'_>, now: Timestamp, zone: &TimeZone) -> Result<bool, DbError> {
    let open = tx.prepare_cached("SELECT 1 FROM task_runs WHERE outcome IS NULL")?.exists([])?;
    Ok(open || waiting(tx)?.iter().any(|task| due::next_move(task, now, zone) != Move::Wait))
}

/// How many tasks are waiting or running, heartbeat tasks included, and the next time of any.
pub fn outlook(tx: &Transaction<'_>) -> Result<(u32, Option<Timestamp>), DbError> {
    let sql = "SELECT count(*), min(next_at) FROM tasks WHERE status IN ('PENDING', 'RUNNING')";
    let (count, next): (u32, Option<i64>) = tx.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok((count, next.map(moment)))
}

/// Converts stored milliseconds; a value out of range counts as long past.
fn moment(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MIN)
}

fn task(row: &Row<'_>) -> rusqlite::Result<Task> {
    let next = row.get::<_, Option<i64>>(9)?.zip(row.get::<_, Option<i64>>(10)?);
    let zone = row.get::<_, Option<String>>(11)?.unwrap_or_default();
    Ok(Task {
        id: TaskId(row.get(0)?),
        description: row.get(1)?,
        prompt: row.get(2)?,
        trigger: trigger(row)?,
        missed: Missed::from_stored(&row.get::<_, String>(6)?),
        level: Level::of_stored(row.get(7)?),
        status: Status::from_stored(&row.get::<_, String>(8)?),
        next: next.map(|(at, computed_at)| Next { at: moment(at), computed_at: moment(computed_at), zone }),
        failures: row.get(12)?,
        created_at: moment(row.get(13)?),
    })
}

fn trigger(row: &Row<'_>) -> rusqlite::Result<Trigger> {
    Ok(match row.get::<_, String>(3)?.as_str() {
        "TIME" => Trigger::Time(moment(row.get(4)?)),
        "CRON" => {
            let written: String = row.get(5)?;
            let unreadable = |why: Said| {
                rusqlite::Error::FromSqlConversionFailure(
                    5,
                    rusqlite::types::Type::Text,
                    why.to_string().into(),
                )
            };
            Trigger::Cron(written.parse().map_err(unreadable)?)
        }
        _ => Trigger::Heartbeat,
    })
}

#[cfg(test)]
mod tests;
