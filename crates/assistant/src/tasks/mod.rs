//! Scheduled tasks: what Kai does later, once, repeatedly, or with every heartbeat.
//!
//! A model calls `schedule_task` (`tools`), which validates everything and stores one row ([`store`]). On a tick
//! [`due`] decides which tasks run now; the store claims one, durably, before it starts, and the runner reports how it
//! ended. A run that died is found by its open claim and reported. [`cron`] computes when an expression fires next, and
//! [`describe`] puts it into words. Heartbeat tasks do not run by themselves: their prompts are part of the
//! heartbeat's.

pub mod cron;
pub mod describe;
pub mod due;
pub mod store;
mod tools;

use crate::moment::local;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use kai_words::{Lang, Said, said};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::db::Migration;
use crate::gate::Level;
use crate::moment::moment;
use crate::untrusted::Untrusted;
use cron::Cron;

pub use tools::{CancelTask, ListTasks, ScheduleTask};

pub(crate) const MIGRATION: Migration =
    Migration { name: "tasks/1", sql: include_str!("../../migrations/tasks.sql") };
pub(crate) const LEVELS: Migration =
    Migration { name: "tasks/levels", sql: include_str!("../../migrations/tasks_levels.sql") };

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TaskId(pub i64);

/// A scheduled task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub id: TaskId,
    /// Its name, as the user sees it.
    pub description: String,
    /// The instructions for the model when it runs.
    pub prompt: String,
    pub trigger: Trigger,
    pub missed: Missed,
    /// The level of the request that created it; every run starts at this level.
    pub level: Level,
    pub status: Status,
    pub next: Option<Next>,
    /// Failures since the last success.
    pub failures: u32,
    pub created_at: Timestamp,
}

/// When a task runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trigger {
    /// Once, at this time.
    Time(Timestamp),
    Cron(Cron),
    /// With every heartbeat.
    Heartbeat,
}

/// A [`Trigger`] without its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TriggerKind {
    Time,
    Cron,
    Heartbeat,
}

impl TriggerKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Time => "TIME",
            Self::Cron => "CRON",
            Self::Heartbeat => "HEARTBEAT",
        }
    }
}

/// When a task runs next, and when and in which time zone that was computed: clocks are adjusted, and people travel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    pub at: Timestamp,
    pub computed_at: Timestamp,
    pub zone: String,
}

/// What becomes of a time at which nobody could run it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Missed {
    /// It runs as soon as it can, once for all the times that passed.
    #[default]
    RunOnce,
    Skip,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// Waiting for its time, or for the next heartbeat.
    Pending,
    Running,
    /// A one-time task that ran successfully.
    Completed,
    /// A one-time task whose time was missed.
    Skipped,
}

/// A run of a task, or a time that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRun {
    pub due: Timestamp,
    pub started: Timestamp,
    /// `None` while it is running.
    pub outcome: Option<Outcome>,
    /// Why it failed or was skipped; empty if it was not.
    pub reason: Said,
    pub tokens: u64,
    pub ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Outcome {
    Ok,
    Failed,
    /// It was claimed but never ended, because Kai was stopped while it ran.
    Interrupted,
    /// Its time was missed.
    Skipped,
}

impl Trigger {
    pub fn kind(&self) -> TriggerKind {
        match self {
            Self::Time(_) => TriggerKind::Time,
            Self::Cron(_) => TriggerKind::Cron,
            Self::Heartbeat => TriggerKind::Heartbeat,
        }
    }

    /// The trigger in words, such as "every weekday at 7:30".
    pub fn readable(&self, zone: &TimeZone, lang: Lang) -> String {
        match self {
            Self::Time(at) => describe::once(&at.to_zoned(zone.clone()), lang),
            Self::Cron(cron) => describe::describe(cron, lang),
            Self::Heartbeat => lang.cron_heartbeat().to_owned(),
        }
    }
}

impl Missed {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RunOnce => "RUN_ONCE",
            Self::Skip => "SKIP",
        }
    }

    fn from_stored(text: &str) -> Self {
        if text == "SKIP" { Self::Skip } else { Self::RunOnce }
    }
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Running => "RUNNING",
            Self::Completed => "COMPLETED",
            Self::Skipped => "SKIPPED",
        }
    }

    fn from_stored(text: &str) -> Self {
        match text {
            "RUNNING" => Self::Running,
            "COMPLETED" => Self::Completed,
            "SKIPPED" => Self::Skipped,
            _ => Self::Pending,
        }
    }
}

impl Outcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Failed => "FAILED",
            Self::Interrupted => "INTERRUPTED",
            Self::Skipped => "SKIPPED",
        }
    }

    fn from_stored(text: &str) -> Option<Self> {
        [Self::Ok, Self::Failed, Self::Interrupted, Self::Skipped].into_iter().find(|it| it.as_str() == text)
    }
}

const DESCRIPTION_LIMIT: usize = 100;
const PROMPT_LIMIT: usize = 4_000;
/// How far in the past a time may be: it may have passed while the model was writing.
const JUST_NOW: SignedDuration = SignedDuration::from_secs(60);

/// A validated task that is not stored yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    description: String,
    prompt: String,
    trigger: Trigger,
    missed: Missed,
    level: Level,
}

/// When a task runs, as requested; exactly one of the three must be given.
#[derive(Debug, Clone, Copy, Default)]
pub struct TriggerSpec<'a> {
    pub execute_at: Option<&'a str>,
    pub cron: Option<&'a str>,
    pub on_heartbeat: bool,
}

impl TriggerSpec<'_> {
    /// Parses the trigger; the error is a sentence for the model.
    pub fn trigger(self, now: Timestamp, zone: &TimeZone) -> Result<Trigger, Said> {
        let given =
            |text: Option<&'_ str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        match (given(self.execute_at), given(self.cron), self.on_heartbeat) {
            (Some(time), None, false) => {
                let at = moment("execute_at", &time, zone)?;
                if now.duration_since(at) > JUST_NOW {
                    let now = local(now, zone);
                    return Err(said::task_wrong_past(time, now));
                }
                Ok(Trigger::Time(at))
            }
            (None, Some(cron), false) => cron.parse().map(Trigger::Cron),
            (None, None, true) => Ok(Trigger::Heartbeat),
            (None, None, false) => Err(said::task_wrong_no_trigger()),
            _ => Err(said::task_wrong_triggers()),
        }
    }
}

impl NewTask {
    pub fn new(
        description: &str,
        prompt: &str,
        trigger: Trigger,
        missed: Missed,
        level: Level,
    ) -> Result<Self, Said> {
        let line = Untrusted::new(description).line(usize::MAX);
        let description = bounded(said::task_wrong_description(), &line, DESCRIPTION_LIMIT)?;
        let prompt = bounded(said::task_wrong_prompt(), prompt.replace('\0', "").trim(), PROMPT_LIMIT)?;
        Ok(Self { description, prompt, trigger, missed, level })
    }

    pub fn description(&self) -> &str {
        &self.description
    }

    /// Whether `task` is the same as this one. Keeping both would do the work twice.
    pub fn is_like(&self, task: &Task) -> bool {
        (&self.description, &self.prompt, &self.trigger) == (&task.description, &task.prompt, &task.trigger)
    }
}

fn bounded(what: Said, text: &str, longest: usize) -> Result<String, Said> {
    match text.chars().count() {
        0 => Err(said::task_wrong_empty(what)),
        length if length > longest => Err(said::task_wrong_long(what, length, longest)),
        _ => Ok(text.to_owned()),
    }
}

/// The name under which a time zone is stored; empty if it has none.
fn zone_name(zone: &TimeZone) -> String {
    zone.iana_name().unwrap_or_default().to_owned()
}
