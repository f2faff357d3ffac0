//! Checks what Kai does automatically and what that needs: heartbeats, tasks, the ledger, web search, the
//! clock.

use std::io;
use std::time::Duration;

use jiff::Timestamp;
use kai_assistant::db::DbError;
use kai_assistant::heartbeat::OutcomeKind;
use kai_assistant::legible::thousands;
use kai_assistant::models::is_unencrypted;
use kai_assistant::settings::{
    self, HEARTBEAT_DAILY_TOKENS, Values, WEB_SEARCH_BACKEND, WEB_SEARCH_BRAVE_KEY, WEB_SEARCH_SEARXNG_URL,
    WEB_SEARCH_TAVILY_KEY,
};
use kai_words::Lang;
use tokio::net::TcpStream;

use super::Check;
use crate::app::App;
use crate::call::models::ModelRow;
use crate::caller_env::CallerEnv;
use crate::commands::heartbeat::{self, Lack};
use crate::commands::{ledger, models, noted, tasks};

pub(super) async fn examine(app: &App, env: &CallerEnv) -> Vec<Check> {
    let trouble = |name: &str, error: &DbError| Some(Check::broken(name, error.to_string(), None));
    let rows = models::rows(app, env).await.unwrap_or_default();
    let values = app.db.read(settings::load).await.unwrap_or_default();
    let checks = [
        clock(app.clock.now()),
        server(&rows).await,
        unencrypted(&rows),
        heart(app, &values, &rows).await.unwrap_or_else(|error| trouble("heartbeat", &error)),
        errands(app).await.unwrap_or_else(|error| trouble("tasks", &error)),
        whole_ledger(app).await.unwrap_or_else(|error| trouble("ledger", &error)),
        search(&values),
        crashed(app),
    ];
    checks.into_iter().flatten().collect()
}

/// A date before Kai existed: a clock that is earlier makes every time wrong.
const FIRST_DAY: i64 = 1_767_225_600;

fn clock(now: Timestamp) -> Option<Check> {
    let says = format!("set to {}, which cannot be right", now.strftime("%Y-%m-%d"));
    let next = "Set the machine's clock. Tasks, heartbeats and polls depend on it.";
    (now.as_second() < FIRST_DAY).then(|| Check::note("clock", says, next))
}

/// The connection timeout, long enough for this machine or the local network.
const PATIENCE: Duration = Duration::from_millis(800);

/// Checks that a local model's server accepts connections, since it may simply not be running. Sends nothing, and does
/// not contact remote servers.
async fn server(rows: &[ModelRow]) -> Option<Check> {
    let row = rows.iter().find(|row| row.ready).filter(|row| row.local)?;
    let url: axum::http::Uri = row.base_url.parse().ok()?;
    let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("https") { 443 } else { 80 });
    let host = url.host()?.trim_matches(['[', ']']).to_owned();
    if matches!(tokio::time::timeout(PATIENCE, connected(&host, port)).await, Ok(Ok(_))) {
        return None;
    }
    let says = format!("nothing answers at {host}:{port}, the address of {}", row.name);
    let next = format!("Start the server, or change its address: kai models add {} --help", row.preset);
    Some(Check::broken("model server", says, Some(next)))
}

async fn connected(host: &str, port: u16) -> io::Result<TcpStream> {
    TcpStream::connect(kai_llm::names::lookup(host, port).await?.as_slice()).await
}

/// Warns if requests to a remote model are not encrypted, so that others on the network could read them.
fn unencrypted(rows: &[ModelRow]) -> Option<Check> {
    let row = rows.iter().find(|row| row.ready && is_unencrypted(&row.base_url))?;
    let says = format!("requests to {} are not encrypted: {}", row.name, row.base_url);
    let next = format!(
        "If the server has an https address, use that: kai models add {} --name {} --model {} --base-url https://…",
        row.preset, row.name, row.model
    );
    Some(Check::note("encryption", says, next))
}

async fn heart(app: &App, values: &Values, rows: &[ModelRow]) -> Result<Option<Check>, DbError> {
    let status = heartbeat::status(app).await?;
    let budget = u64::from(values.number(&HEARTBEAT_DAILY_TOKENS));
    let failed = status.last.as_ref().filter(|last| last.outcome == OutcomeKind::Failed);
    Ok(Some(if !status.enabled {
        Check::fine("heartbeat", "disabled (to enable: kai settings set heartbeat_enabled true)")
    } else if let Some(lack) = heartbeat::lacks(values, rows) {
        lacking(&lack)
    } else if !rows.iter().any(|row| row.ready) {
        let next = "Set up a model, or disable heartbeats: kai settings set heartbeat_enabled false";
        Check::note("heartbeat", "has no model to ask", next)
    } else if budget > 0 && status.tokens_today >= budget {
        let says = format!(
            "has used its {} tokens for today",
            thousands(usize::try_from(budget).unwrap_or(usize::MAX))
        );
        Check::note(
            "heartbeat",
            says,
            "It continues tomorrow. To remove the limit: kai settings set heartbeat_daily_tokens 0",
        )
    } else if let Some(last) = failed {
        let why = last.reason.as_ref().map_or("no reason is known".into(), ToString::to_string);
        Check::note("heartbeat", format!("the last run failed: {why}"), "To try again: kai heartbeat run")
    } else {
        Check::fine("heartbeat", format!("every {} minutes", status.interval))
    }))
}

/// What is wrong with the model that heartbeats are set to use.
fn lacking(lack: &Lack) -> Check {
    let (says, next) = match lack {
        Lack::NoLocal => {
            let next = "Set up a model on this computer, or let heartbeats ask others: kai settings set heartbeat_local_first false";
            ("may ask only models on this computer, and none can be used".to_owned(), next.to_owned())
        }
        Lack::Unknown { model } => {
            let other = "Choose one from kai models list, or reset it: kai settings set heartbeat_model \"\"";
            (format!("is set to ask {model}, but there is no such model"), other.to_owned())
        }
        Lack::Unusable { model, why, helps } => {
            let next =
                format!("{why} Try: {helps}. Or use another model: kai settings set heartbeat_model NAME");
            (format!("is set to ask {model}, which cannot be used"), next)
        }
    };
    Check::broken("heartbeat", says, Some(next))
}

async fn errands(app: &App) -> Result<Option<Check>, DbError> {
    let failing: Vec<_> =
        tasks::list(app, Lang::ENGLISH).await?.into_iter().filter(|task| task.failures > 0).collect();
    let Some(first) = failing.first() else { return Ok(None) };
    let name = &first.description;
    let says = match failing.len() {
        1 => format!("the last run of \u{201c}{name}\u{201d} failed"),
        n => format!("{n} failed in their last run, including \u{201c}{name}\u{201d}"),
    };
    Ok(Some(Check::note("tasks", says, format!("To see why: kai tasks show {}", first.id.0))))
}

async fn whole_ledger(app: &App) -> Result<Option<Check>, DbError> {
    if !super::exists(app) {
        return Ok(None);
    }
    let found = ledger::check(app).await?;
    if let Some(why) = found.note_unread {
        let next = "Unlock the desktop keyring, then: kai ledger verify";
        return Ok(Some(Check::note("ledger", format!("{}. {why}", verified(found.records)), next)));
    }
    let (Some(seq), Some(what)) = (found.broken_at, found.what) else {
        return Ok(Some(Check::fine("ledger", verified(found.records))));
    };
    if found.rolled_back {
        return Ok(Some(Check::broken("ledger", what.to_string(), Some(noted::NEXT.to_owned()))));
    }
    let next = "Someone or a faulty disk changed it. Keep a copy of the home, then see: kai ledger verify";
    Ok(Some(Check::broken("ledger", format!("altered at record {seq}: {what}"), Some(next.to_owned()))))
}

fn verified(records: usize) -> String {
    match records {
        0 => "no records yet".to_owned(),
        1 => "1 record verified".to_owned(),
        n => format!("{} records verified", thousands(n)),
    }
}

fn search(values: &Values) -> Option<Check> {
    let backend = values.of(&WEB_SEARCH_BACKEND);
    let (setting, what) = match backend.as_str() {
        "searxng" => (&WEB_SEARCH_SEARXNG_URL, "its address"),
        "brave" => (&WEB_SEARCH_BRAVE_KEY, "its key"),
        "tavily" => (&WEB_SEARCH_TAVILY_KEY, "its key"),
        _ => return None,
    };
    let says = format!("set to use {backend}, but {what} is missing");
    let next = format!("kai settings set {} …", setting.key);
    values.secret(setting).is_none().then(|| Check::note("web search", says, next))
}

/// Reports the newest crash report, if there is one.
fn crashed(app: &App) -> Option<Check> {
    let files = std::fs::read_dir(app.home.logs()).ok()?.flatten();
    let reports = files.filter(|file| file.file_name().to_string_lossy().starts_with("crash-"));
    let newest = reports.map(|report| report.path()).max()?;
    let next = format!("Please report the contents of {}, then delete it.", newest.display());
    Some(Check::note("crash", "Kai ran into a bug", next))
}
