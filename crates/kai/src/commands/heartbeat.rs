//! Runs heartbeats, and reports their status and log.

use kai_assistant::agent::{Nobody, Ready};
use kai_assistant::db::DbError;
use kai_assistant::gate::{self, Level, RunKind};
use kai_assistant::heartbeat::due::{self, Due};
use kai_assistant::heartbeat::{Beat, BeatResult, Next, NextRequests, Outcome, Why, beat, store};
use kai_assistant::settings::{self, HEARTBEAT_LOCAL_FIRST, HEARTBEAT_MODEL, Values};
use kai_llm::{Message, Request, Scale, request_tokens};
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
    let values = app.db.read(settings::load).await?;
    let models = chosen_models(app, env, &values).await?;
    let driver = models
        .as_ref()
        .map(|models| app.driver(models, &Nobody, RunKind::Heartbeat, Level::People))
        .map_err(Clone::clone);
    let beaten = beat(app, env, &values).run(why, driver).await?;
    let was_answered = matches!(beaten, BeatResult::Ran(Outcome::Report(_) | Outcome::Ok));
    if was_answered && !values.on(&HEARTBEAT_LOCAL_FIRST) {
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

fn beat<'a>(app: &'a App, env: &CallerEnv, values: &Values) -> Beat<'a> {
    Beat { db: &app.db, clock: app.clock.as_ref(), lang: App::lang(values, env) }
}

/// The models that heartbeats use: those on this computer if nothing may leave it, else the one that is set, or all in
/// their order. Having none is an error of the run, which is logged, not of the command.
async fn chosen_models(
    app: &App,
    env: &CallerEnv,
    values: &Values,
) -> Result<Result<Vec<Ready>, Said>, DbError> {
    let wanted = values.of(&HEARTBEAT_MODEL);
    let chosen = Some(wanted.as_str()).filter(|wanted| !wanted.is_empty());
    let ready = models::connected(app, env, chosen).await.map_err(|unready| unready.said());
    if values.on(&HEARTBEAT_LOCAL_FIRST) {
        return Ok(only_local(ready.unwrap_or_default()));
    }
    let wanted = values.of(&HEARTBEAT_MODEL);
    if !wanted.is_empty()
        && let Some(lack) = lacks(values, &models::rows(app, env).await?)
    {
        return Ok(Err(lack.said()));
    }
    Ok(ready.map(|mut ready| {
        ready.retain(|model| wanted.is_empty() || model.label == wanted);
        ready
    }))
}

/// Those on this computer. Without any, nobody is asked.
fn only_local(mut ready: Vec<Ready>) -> Result<Vec<Ready>, Said> {
    ready.retain(|model| model.local);
    if ready.is_empty() { Err(Lack::NoLocal.said()) } else { Ok(ready) }
}

/// What is wrong with the model that heartbeats are set to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lack {
    /// Only models on this computer may be asked, and none can be used.
    NoLocal,
    /// There is no model of this name.
    Unknown { model: String },
    /// It cannot be used for this reason. `helps` is the command for that.
    Unusable { model: String, why: Said, helps: String },
}

impl Lack {
    /// What is wrong and what to do, in the user's language. It names no command, because the page shows it too.
    pub(crate) fn said(&self) -> Said {
        match self {
            Self::NoLocal => said::unready_heartbeat_no_local(),
            Self::Unknown { model } => said::unready_heartbeat_unknown(model),
            Self::Unusable { why, .. } => said::unready_heartbeat_unusable(why),
        }
    }
}

/// Checks that the model set for heartbeats exists and can be used. With none set, there is nothing to check.
pub(crate) fn lacks(values: &Values, rows: &[ModelRow]) -> Option<Lack> {
    if values.on(&HEARTBEAT_LOCAL_FIRST) {
        return (!rows.iter().any(|row| row.ready && row.local)).then_some(Lack::NoLocal);
    }
    let wanted = values.of(&HEARTBEAT_MODEL);
    if wanted.is_empty() {
        return None;
    }
    let model = wanted.clone();
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
    let values = app.db.read(settings::load).await?;
    // Without a usable model, the prompt is built for a model of unknown size.
    let models = chosen_models(app, env, &values).await?.unwrap_or_default();
    let driver = app.driver(&models, &Nobody, RunKind::Heartbeat, Level::People);
    let (beat, window) = (beat(app, env, &values), driver.window());
    if driver.scale() == Scale::Small {
        return Ok(every_request(&beat.dry_requests(window).await?));
    }
    let Next { text: prompt, is_new } = beat.dry_run(window).await?;
    app.toolbox.check(&app.db, &values).await?;
    let mut tools = app.toolbox.offered(&values);
    tools.retain(|tool| gate::offered(RunKind::Heartbeat, Level::People, &tool.name));
    let request = Request { system: String::new(), messages: vec![Message::user(prompt.clone())], tools };
    let tokens = request_tokens(&request);
    let tools = request.tools.into_iter().map(|tool| tool.name).collect();
    Ok(DryRun { prompt, is_new, tools, tokens })
}

/// All requests of a run with a small model as one text.
fn every_request(next: &NextRequests) -> DryRun {
    let of = next.requests.len();
    let written = |(at, request): (usize, &Request)| {
        let said = request.messages.iter().map(|message| match message {
            Message::User { text, .. } => text.as_str(),
            Message::Assistant { .. } | Message::Tool { .. } => "",
        });
        let parts: Vec<&str> = [request.system.as_str()].into_iter().chain(said).collect();
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        format!("=== Request {} of {of} ===\n{}", at + 1, parts.join("\n\n"))
    };
    let prompt = next.requests.iter().enumerate().map(written).collect::<Vec<_>>().join("\n\n");
    let tokens = next.requests.iter().map(request_tokens).sum();
    DryRun { prompt, is_new: next.is_new, tools: vec![], tokens }
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
