//! What Kai is to do later: once, again and again, or with every heartbeat.
//!
//! A model calls `schedule_task` (`tools`), which checks everything there is to check and keeps one row ([`store`]).
//! On a tick [`due`] says which tasks are to run now, the store claims one, durably, before it starts, and whoever
//! runs it tells the store how it ended. What died between claim and end is found by the open claim, and said.
//! [`cron`] knows when an expression comes next and [`describe`] how people say it. The tasks of the heartbeat do not
//! run by themselves: their prompts are part of its own.

pub mod cron;
pub mod describe;
pub mod due;
pub mod store;
mod tools;

use crate::moment::local;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
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

/// One thing to do later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub id: TaskId,
    /// Its name, for people.
    pub description: String,
    /// What a model is told when it runs.
    pub prompt: String,
    pub trigger: Trigger,
    pub missed: Missed,
    /// What the request held in which it was made; every run of it holds that from the start.
    pub level: Level,
    pub status: Status,
    pub next: Option<Next>,
    /// Since it last worked.
    pub failures: u32,
    pub created_at: Timestamp,
}

/// What makes it run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trigger {
    /// Once.
    Time(Timestamp),
    Cron(Cron),
    /// It is part of every heartbeat.
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

/// When it comes next, and when and where that was found out: clocks are set, and people travel.
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
    /// Waits for its time, or for the next heartbeat.
    Pending,
    Running,
    /// Did what it had to do once.
    Completed,
    /// Had one time, which passed unused.
    Skipped,
}

/// A run, or a time that was passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRun {
    pub due: Timestamp,
    pub started: Timestamp,
    /// `None` while it is under way.
    pub outcome: Option<Outcome>,
    pub reason: String,
    pub tokens: u64,
    pub ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Outcome {
    Ok,
    Failed,
    /// It was claimed and never ended: Kai was stopped in the middle of it.
    Interrupted,
    /// Its time passed while nobody could run it.
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

    /// As people say it.
    pub fn readable(&self, zone: &TimeZone) -> String {
        match self {
            Self::Time(at) => {
                let local = at.to_zoned(zone.clone());
                format!("once, on {}", local.strftime("%A, %-d %B %Y at %-H:%M"))
            }
            Self::Cron(cron) => describe::describe(cron),
            Self::Heartbeat => "with every heartbeat".to_owned(),
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
/// A time that was just now when the model began to write it.
const JUST_NOW: SignedDuration = SignedDuration::from_secs(60);

/// A task as it was asked for, with everything checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    description: String,
    prompt: String,
    trigger: Trigger,
    missed: Missed,
    level: Level,
}

/// When a task is to run, as it was written in one of three ways; exactly one must be given.
#[derive(Debug, Clone, Copy, Default)]
pub struct TriggerSpec<'a> {
    pub execute_at: Option<&'a str>,
    pub cron: Option<&'a str>,
    pub on_heartbeat: bool,
}

impl TriggerSpec<'_> {
    /// What is meant, or a sentence.
    pub fn trigger(self, now: Timestamp, zone: &TimeZone) -> Result<Trigger, String> {
        let given =
            |text: Option<&'_ str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        match (given(self.execute_at), given(self.cron), self.on_heartbeat) {
            (Some(time), None, false) => {
                let at = moment("execute_at", &time, zone)?;
                if now.duration_since(at) > JUST_NOW {
                    let now = local(now, zone);
                    return Err(format!("The execute_at {time} is in the past: it is {now}."));
                }
                Ok(Trigger::Time(at))
            }
            (None, Some(cron), false) => cron.parse().map(Trigger::Cron),
            (None, None, true) => Ok(Trigger::Heartbeat),
            (None, None, false) => Err("Say when: give one of execute_at, cron and on_heartbeat.".to_owned()),
            _ => Err("Give only one of execute_at, cron and on_heartbeat.".to_owned()),
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
    ) -> Result<Self, String> {
        let line = Untrusted::new(description).line(usize::MAX);
        let description = bounded("description", &line, DESCRIPTION_LIMIT)?;
        let prompt = bounded("prompt", prompt.replace('\0', "").trim(), PROMPT_LIMIT)?;
        Ok(Self { description, prompt, trigger, missed, level })
    }

    pub fn description(&self) -> &str {
        &self.description
    }

    /// Is that task this one? Whoever asks for both would have it done twice.
    pub fn is_like(&self, task: &Task) -> bool {
        (&self.description, &self.prompt, &self.trigger) == (&task.description, &task.prompt, &task.trigger)
    }
}

fn bounded(what: &str, text: &str, longest: usize) -> Result<String, String> {
    match text.chars().count() {
        0 => Err(format!("The {what} of a task must not be empty.")),
        length if length > longest => Err(format!(
            "The {what} is {length} characters long; a task takes at most {longest}. Shorten it."
        )),
        _ => Ok(text.to_owned()),
    }
}

/// The zone as it is remembered.
fn zone_name(zone: &TimeZone) -> String {
    zone.iana_name().unwrap_or_default().to_owned()
}
