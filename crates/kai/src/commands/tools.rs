//! Lists, switches and calls tools.

use kai_assistant::agent::{CallRunner, Face};
use kai_assistant::db::DbError;
use kai_assistant::tool::Run;
use kai_assistant::toolbox::Entry;
use kai_assistant::{ledger, mcp, settings};
use kai_llm::{CallId, ToolCall};
use serde::de::IgnoredAny;

use super::settings::set;
use crate::app::App;
use crate::call::settings::{SettingRow, ToolAnswer, ToolRow};
use crate::caller_env::CallerEnv;
use crate::failure::Failure;

pub(crate) async fn list(app: &App, env: &CallerEnv) -> Result<Vec<ToolRow>, DbError> {
    let values = &app.values().await?;
    app.toolbox.check(&app.db, values).await?;
    let lang = App::lang(values, env);
    let row = |entry: &Entry| {
        let name = entry.tool.name();
        let why_not = app.toolbox.why_not(entry, values);
        ToolRow {
            title: lang.tool_name(name),
            description: lang.tool_about(name).to_owned(),
            name: name.to_owned(),
            enabled: entry.enabled(values),
            available: why_not.is_none(),
            note: entry.tool.note(),
            why_not: why_not.map(|why| why.to_string()),
        }
    };
    Ok(app.toolbox.entries().iter().map(row).collect())
}

/// Turns a tool on or off with its own switch. A tool that is governed by a feature has none.
pub(crate) async fn switch(app: &App, env: &CallerEnv, name: &str, on: bool) -> Result<SettingRow, Failure> {
    let key = format!("tool_enabled_{name}");
    if settings::catalogue(app.toolbox.settings()).iter().any(|setting| setting.key == key) {
        return set(app, env, &key, if on { "true" } else { "false" }).await;
    }
    let entry = app.toolbox.entries().iter().find(|entry| entry.tool.name() == name);
    let entry = entry.ok_or_else(|| no_tool(name))?;
    let command = entry.turned_on_by(&app.values().await?).replace(" true", " true|false");
    Err(Failure::usage(format!(
        "{name} cannot be enabled or disabled on its own. It belongs to a feature: {command}"
    )))
}

/// Calls a tool as a model would: with the same gate and the same limits, in a fresh run that has read nothing. An
/// invalid call is a usage error; a failure of the store is returned as a result, so that the output is JSON either
/// way.
pub(crate) async fn call(
    app: &App,
    tool: String,
    arguments: String,
    face: &dyn Face,
) -> Result<ToolAnswer, Failure> {
    let is_called =
        |entry: &Entry| entry.tool.name() == tool || entry.tool.aliases().contains(&tool.as_str());
    if !app.toolbox.entries().iter().any(is_called) && !is_foreign(app, &tool).await? {
        return Err(no_tool(&tool));
    }
    if !arguments.trim().is_empty()
        && let Err(error) = serde_json::from_str::<IgnoredAny>(&arguments)
    {
        return Err(Failure::usage(format!("The arguments are not valid JSON: {error}.")));
    }
    let call = ToolCall { id: CallId("cli".to_owned()), name: tool, arguments, signature: None };
    Ok(run_recorded(app, &call, face).await.unwrap_or_else(|error| {
        let text = serde_json::json!({"success": false, "error": error.to_string()}).to_string();
        ToolAnswer { text, success: false }
    }))
}

/// Whether an MCP server has a tool that is offered under this name.
async fn is_foreign(app: &App, tool: &str) -> Result<bool, DbError> {
    let name = tool.to_owned();
    Ok(app.db.read(move |tx| mcp::store::offered_as(tx, &name)).await?.is_some())
}

fn no_tool(name: &str) -> Failure {
    Failure::usage(format!("There is no tool called {name}. See: kai tools list"))
}

async fn run_recorded(app: &App, call: &ToolCall, face: &dyn Face) -> Result<ToolAnswer, DbError> {
    let (db, clock) = (&app.db, app.clock.as_ref());
    let foreign = db.read(mcp::store::usable).await?;
    let hands = CallRunner { db, clock, toolbox: &app.toolbox, foreign: &foreign, face, run: Run::BY_HAND };
    let verdict = hands.verdict(&[], call);
    let (announced, now) = (hands.announced(call), clock.now());
    db.write(move |tx| ledger::append(tx, &announced, now)).await?;
    let values = app.values().await?;
    app.toolbox.check(&app.db, &values).await?;
    let (result, record) = hands.run(call, &values, verdict).await?;
    db.write(move |tx| ledger::append(tx, &record, now)).await?;
    Ok(ToolAnswer { text: result.text, success: result.success })
}
