//! Runs heartbeats, and reports their status and log.

use kai_assistant::agent::{Nobody, Ready};
use kai_assistant::db::DbError;
use kai_assistant::gate::{self, Level, RunKind};
use kai_assistant::heartbeat::due::{self, Due};
use kai_assistant::heartbeat::{Beat, BeatResult, Next, Outcome, Why, beat, store};
use kai_assistant::settings::{self, HEARTBEAT_MODEL};
use kai_words::{Said, said};

use crate::app::App;
use crate::call::heartbeat::{DryRun, HeartbeatRan, HeartbeatStatus, LogRow, RunOutcome};
use crate::call::models::ModelRow;
use crate::caller_env::CallerEnv;
use crate::commands::{announce, models};
use crate::failure::Failure;

/// Why it did not run, as commands say it. The page has words of its own.
fn why_not(due: Due) -> &'static str {
    match due {
        Due::Now => "It is due.",
        Due::Off => "Heartbeats are disabled. To enable them: kai settings set heartbeat_enabled true",
        Due::Asleep => "It is outside the active hours (heartbeat_active_start, heartbeat_active_end).",
        Due::NotYet => "The interval has not passed yet.",
        Due::OverBudget => "Today's token limit is reached (heartbeat_daily_tokens).",
    }
}

pub(crate) async fn status(app: &App) -> Result<HeartbeatStatus, DbError> {
    let now = app.clock.now().to_zoned(app.clock.zone());
    let today = now.date();
    let read = app.db.read(move |tx| {
        let standing = store::standing(tx, today)?;
        Ok::<_, DbError>((settings::load(tx)?, standing, store::log(tx)?, store::banner(tx)?))
    });
    let (values, standing, log, banner) = read.await?;
    let rules = beat::rules(&values);
    Ok(HeartbeatStatus {
        enabled: rules.enabled,
        interval: rules.interval,
        active_start: rules.active_start,
        active_end: rules.active_end,
        due: due::due(&rules, &standing, &now),
        last: log.into_iter().next().map(|logged| log_row(app, logged)),
        report: banner.map(|id| id.0),
        tokens_today: standing.spent,
        lacks: None,
    })
}

fn log_row(app: &App, logged: store::Logged) -> LogRow {
    LogRow {
        at: logged.at.as_millisecond(),
        at_local: app.local(logged.at),
        outcome: logged.outcome,
        reason: Some(logged.reason).filter(|reason| !reason.is_empty()),
        tokens: logged.tokens,
        tokens_estimated: logged.estimated,
        ms: logged.ms,
    }
}

pub(crate) async fn log(app: &App) -> Result<Vec<LogRow>, DbError> {
    let log = app.db.read(store::log).await?;
    Ok(log.into_iter().map(|logged| log_row(app, logged)).collect())
}

/// Runs one heartbeat if `why` permits it now.
pub(crate) async fn run(app: &App, env: &CallerEnv, why: Why) -> Result<HeartbeatRan, Failure> {
    let models = chosen_models(app, env).await?;
    let driver = models
        .as_ref()
        .map(|models| app.driver(models, &Nobody, RunKind::Heartbeat, Level::People))
        .map_err(Clone::clone);
    let beaten = Beat { db: &app.db, clock: app.clock.as_ref() }.run(why, driver).await?;
    if matches!(beaten, BeatResult::Ran(Outcome::Report(_) | Outcome::Ok)) {
        // The run is finished; the context windows that servers report are for the next one.
        if let Err(error) = models::ask_for_windows(app, env).await {
            tracing::warn!(%error, "servers could not be asked for their windows");
        }
    }
    let (outcome, reason, report) = match beaten {
        BeatResult::Ran(Outcome::Report(said)) => (RunOutcome::Report, None, Some(said)),
        BeatResult::Ran(Outcome::Failed(why)) => (RunOutcome::Failed, Some(why), None),
        BeatResult::Ran(other) => (other.kind().into(), None, None),
        BeatResult::NotDue(due) => (RunOutcome::NotDue, Some(why_not(due).into()), None),
        BeatResult::Busy => (
            RunOutcome::Busy,
            Some("Kai is already working on another run. Try again in a moment.".into()),
            None,
        ),
    };
    Ok(HeartbeatRan { outcome, reason, report })
}

/// The models that heartbeats use: the one that is set, or all in their order. Having none is an error of the run,
/// which is logged, not of the command.
async fn chosen_models(app: &App, env: &CallerEnv) -> Result<Result<Vec<Ready>, Said>, DbError> {
    let wanted = app.db.read(settings::load).await?.of(&HEARTBEAT_MODEL);
    if !wanted.is_empty()
        && let Some(lack) = lacks(&wanted, &models::rows(app, env).await?)
    {
        return Ok(Err(lack.said()));
    }
    let ready = models::connected(app, env).await.map_err(|unready| unready.said());
    Ok(ready.map(|mut ready| {
        ready.retain(|model| wanted.is_empty() || model.label == wanted);
        ready
    }))
}

/// What is wrong with the model that heartbeats are set to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lack {
    /// There is no model of this name.
    Unknown { model: String },
    /// It cannot be used for this reason. `helps` is the command for that.
    Unusable { model: String, why: Said, helps: String },
}

impl Lack {
    /// What is wrong and what to do, in the user's language. It names no command, because the page shows it too.
    pub(crate) fn said(&self) -> Said {
        match self {
            Self::Unknown { model } => said::unready_heartbeat_unknown(model),
            Self::Unusable { why, .. } => said::unready_heartbeat_unusable(why),
        }
    }
}

/// Checks that the model set for heartbeats exists and can be used. With none set, there is nothing to check.
pub(crate) fn lacks(wanted: &str, rows: &[ModelRow]) -> Option<Lack> {
    if wanted.is_empty() {
        return None;
    }
    let model = wanted.to_owned();
    match rows.iter().find(|row| row.name == wanted) {
        None => Some(Lack::Unknown { model }),
        Some(row) => row.why_not.clone().map(|why| {
            let helps = models::repair(&row.name, &row.preset);
            Lack::Unusable { model, why, helps }
        }),
    }
}

/// What the next run would send. Changes nothing.
pub(crate) async fn dry_run(app: &App, env: &CallerEnv) -> Result<DryRun, DbError> {
    // Without a usable model, the prompt is built for a model of unknown size.
    let models = chosen_models(app, env).await?.unwrap_or_default();
    let beat = Beat { db: &app.db, clock: app.clock.as_ref() };
    let Next { text: prompt, is_new } =
        beat.dry_run(app.driver(&models, &Nobody, RunKind::Heartbeat, Level::People).window()).await?;
    let values = app.db.read(settings::load).await?;
    app.toolbox.probe_access(&values).await;
    let mut tools = app.toolbox.offered(&values);
    tools.retain(|tool| gate::offered(RunKind::Heartbeat, Level::People, &tool.name));
    let request = kai_llm::Request {
        system: String::new(),
        messages: vec![kai_llm::Message::user(prompt.clone())],
        tools,
    };
    let tokens = kai_llm::request_tokens(&request);
    let tools = request.tools.into_iter().map(|tool| tool.name).collect();
    Ok(DryRun { prompt, is_new, tools, tokens })
}

/// The scheduler's step: runs a heartbeat if one is due, then announces anything new.
pub(crate) async fn tick(app: &App) {
    match run(app, &app.env, Why::Tick).await {
        Ok(ran) if ran.outcome == RunOutcome::Failed => {
            tracing::warn!(reason = %ran.reason.unwrap_or_default(), "a heartbeat failed");
        }
        Ok(ran) if ran.outcome != RunOutcome::NotDue => {
            tracing::info!(outcome = ?ran.outcome, "heartbeat");
        }
        Ok(_) => {}
        Err(failure) => tracing::warn!(failure = %failure.message, "a heartbeat failed"),
    }
    if let Err(error) = announce::news(app).await {
        tracing::warn!(%error, "the person could not be told");
    }
}
