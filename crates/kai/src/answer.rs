//! Answers a call on an opened app. The daemon and a command without one both come through here.

use kai_assistant::agent::soul;
use kai_assistant::agent::{Face, Hands, conversation};
use kai_assistant::db::DbError;
use kai_assistant::gate::{self, Level, RunKind};
use kai_assistant::heartbeat::Why;
use kai_assistant::ledger;
use kai_assistant::memory::promotion;
use kai_assistant::settings::{self, Setting, Values};
use kai_assistant::tool::Run;
use kai_assistant::toolbox::Entry;
use kai_llm::{CallId, ToolCall};
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::call::{Around, Call, ModelRemoved, Revoked, SettingRow, ToolAnswer, ToolRow};
use crate::failure::Failure;
#[cfg(feature = "sms")]
use crate::sms;
use crate::web::signin;
use crate::wire::App;
use crate::{alarms, chats, doctor, heartbeat, memory, models, status, tasks, transfer, visit};

/// `around` and `face` are the caller's: its environment, and whoever watches there.
pub(crate) async fn answer(
    app: &App,
    call: Call,
    around: &Around,
    face: &dyn Face,
) -> Result<Value, Failure> {
    match call {
        Call::Status => json(status::of(app, around).await?),
        Call::Doctor => json(doctor::examine(app, around).await),
        Call::Stop => {
            app.stop.cancel();
            json(())
        }
        Call::SettingsList => json(settings_list(app).await?),
        Call::SettingsGet { key } => json(row(&find(app, &key)?, &values(app).await?)),
        Call::SettingsSet { key, value } => json(set(app, around, &key, &value).await?),
        Call::HeartbeatRun { force: true } => json(heartbeat::run(app, around, Why::Forced).await?),
        Call::HeartbeatRun { force: false } => json(heartbeat::run(app, around, Why::Asked).await?),
        Call::HeartbeatDryRun => json(heartbeat::dry_run(app, around).await?),
        Call::HeartbeatLog => json(heartbeat::log(app).await?),
        Call::MemoryList => json(app.db.read(kai_assistant::memory::store::all).await?),
        Call::MemoryProposals => json(app.db.read(promotion::proposals).await?),
        Call::MemoryAccept { key } => json(memory::decide(app, &key, soul::accept).await?),
        Call::MemoryDecline { key } => json(memory::decide(app, &key, soul::decline).await?),
        Call::MemoryForget { key } => json(memory::forget(app, &key).await?),
        Call::MemoryConfirm { key, seen } => json(memory::confirm(app, &key, seen).await?),
        Call::TasksList => json(tasks::list(app).await?),
        Call::TasksShow { id } => json(tasks::show(app, id).await?),
        Call::TasksCancel { id } => json(tasks::cancel(app, id).await?),
        Call::AlarmsList => json(alarms::list(app).await?),
        Call::AlarmsCancel { id } => json(alarms::cancel(app, id).await?),
        Call::ToolsList => json(tools(app, around).await?),
        Call::ToolsSwitch { tool, on } => json(switch_tool(app, around, &tool, on).await?),
        Call::ToolsTry { tool, arguments } => json(call_tool(app, tool, arguments, face).await?),
        Call::Link => json(signin::fresh_link(app).await?),
        Call::Open { place } => json(visit::open(app, place, None).await?),
        Call::RevokeLinks => json(revoke(app).await?),
        Call::Ask { text, chat } => json(chats::ask(app, around, text, chat, face).await?),
        Call::ChatsList => json(chats::rows(app, app.db.read(conversation::list).await?)),
        Call::ChatsSearch { text } => {
            json(chats::rows(app, app.db.read(move |tx| conversation::search(tx, &text)).await?))
        }
        Call::ChatsShow { id } => json(chats::show(app, id).await?),
        Call::ChatsDelete { id } => json(chats::delete(app, id).await?),
        #[cfg(any(feature = "sms", feature = "notifications"))]
        Call::ChatsCodes { chat, show } => json(chats::codes(app, chat, show).await?),
        Call::ModelsList => json(models::rows(app, around).await?),
        Call::ModelsAdd(new) => json(models::add(app, around, new).await?),
        Call::ModelsTest { name } => json(models::test(app, around, name.as_deref()).await?),
        Call::ModelsRemove { name } => json(ModelRemoved::of(models::remove(app, name).await?)),
        Call::Export { sections, passphrase } => json(transfer::export(app, &sections, passphrase).await?),
        Call::Import(call) => json(transfer::import(app, call).await?),
        Call::ModelsFirst { name } => json(models::first(app, name).await?),
        Call::ModelsContext { name, context } => {
            json(models::set_context(app, around, name, &context).await?)
        }
        Call::Ledger(call) => crate::ledger::answer(app, call).await,
        #[cfg(feature = "sms")]
        Call::Sms(call) => sms::answer(app, call).await,
        #[cfg(feature = "notifications")]
        Call::Notifications(asked) => crate::notifications::answer(app, asked).await,
    }
}

pub(crate) fn json(answer: impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(answer)
        .map_err(|e| Failure::failed(format!("The answer could not be written: {e}.")))
}

pub(crate) async fn values(app: &App) -> Result<Values, DbError> {
    app.db.read(settings::load).await
}

async fn settings_list(app: &App) -> Result<Vec<SettingRow>, Failure> {
    let values = values(app).await?;
    Ok(settings::catalogue(app.toolbox.settings()).iter().map(|s| row(s, &values)).collect())
}

fn row(setting: &Setting, values: &Values) -> SettingRow {
    SettingRow {
        key: setting.key.to_string(),
        value: values.of(setting),
        default: setting.shown(&setting.default),
        kind: setting.kind.name().to_owned(),
        allowed: setting.kind.allowed(),
        help: setting.help.to_string(),
    }
}

fn find(app: &App, key: &str) -> Result<Setting, Failure> {
    let all = settings::catalogue(app.toolbox.settings());
    if let Some(found) = all.iter().find(|s| s.key == key) {
        return Ok(found.clone());
    }
    let near = all.iter().map(|s| s.key.as_ref()).min_by_key(|k| strsim::levenshtein(k, key));
    let slip = (key.chars().count() / 3).min(4);
    let hint = near.filter(|k| strsim::levenshtein(k, key) <= slip).map(|k| format!(" Did you mean {k}?"));
    let hint = hint.unwrap_or_default();
    Err(Failure::usage(format!("There is no setting called {key}.{hint} All of them: kai settings list")))
}

async fn set(app: &App, around: &Around, key: &str, typed: &str) -> Result<SettingRow, Failure> {
    let setting = find(app, key)?;
    let value = setting.accept(typed).map_err(|refused| Failure::usage(refused.to_string()))?;
    if setting.key == settings::HEARTBEAT_MODEL.key {
        models::can_be_chosen(app, around, &value).await?;
    }
    #[cfg(feature = "notifications")]
    if setting.key == settings::NOTIFICATIONS_ENABLED.key {
        crate::notifications::switch(app, value == "true").await?;
        return Ok(row(&setting, &values(app).await?));
    }
    #[cfg(feature = "sms")]
    allow(app, &setting, &value).await?;
    let key = setting.key.to_string();
    let values = app
        .db
        .write(move |tx| {
            settings::store(tx, &key, &value)?;
            settings::load(tx)
        })
        .await?;
    Ok(row(&setting, &values))
}

/// Some switches are more than a value: the platform must let them be turned on.
#[cfg(feature = "sms")]
async fn allow(app: &App, setting: &Setting, value: &str) -> Result<(), Failure> {
    if value != "true" || values(app).await?.on(setting) {
        return Ok(());
    }
    match setting.key.as_ref() {
        key if key == settings::SMS_ENABLED.key => sms::turn_reading_on(app).await,
        key if key == settings::SMS_SEND_ENABLED.key => sms::can_turn_sending_on(app),
        _ => Ok(()),
    }
}

async fn revoke(app: &App) -> Result<Revoked, DbError> {
    let (sessions, links) = app.db.write(signin::revoke_all).await?;
    Ok(Revoked { sessions, links })
}

async fn tools(app: &App, around: &Around) -> Result<Vec<ToolRow>, DbError> {
    let values = &values(app).await?;
    app.toolbox.probe_access(values).await;
    let words = App::words(values, around);
    let row = |entry: &Entry| {
        let name = entry.tool.name();
        let why_not = app.toolbox.why_not(entry, values);
        ToolRow {
            title: words.tool_name(name),
            description: words.tool_about(name),
            name: name.to_owned(),
            enabled: entry.enabled(values),
            available: why_not.is_none(),
            note: entry.tool.note(),
            why_not,
        }
    };
    Ok(app.toolbox.entries().iter().map(row).collect())
}

/// Turns a tool's own switch; a tool that its feature governs has none.
async fn switch_tool(app: &App, around: &Around, name: &str, on: bool) -> Result<SettingRow, Failure> {
    let key = format!("tool_enabled_{name}");
    if settings::catalogue(app.toolbox.settings()).iter().any(|setting| setting.key == key) {
        return set(app, around, &key, if on { "true" } else { "false" }).await;
    }
    let entry = app.toolbox.entries().iter().find(|entry| entry.tool.name() == name);
    let entry = entry.ok_or_else(|| no_tool(name))?;
    let command = entry.turned_on_by(&values(app).await?).replace(" true", " true|false");
    Err(Failure::usage(format!(
        "{name} has no switch of its own; its feature turns it on and off: {command}"
    )))
}

/// One call as a model would make it: same gate, same cut, in a fresh run that has read nothing. What cannot be a
/// call is wrong usage; a failure of the store is a result too, so that there is JSON either way.
async fn call_tool(
    app: &App,
    tool: String,
    arguments: String,
    face: &dyn Face,
) -> Result<ToolAnswer, Failure> {
    let is_called =
        |entry: &Entry| entry.tool.name() == tool || entry.tool.aliases().contains(&tool.as_str());
    if !app.toolbox.entries().iter().any(is_called) {
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

fn no_tool(name: &str) -> Failure {
    Failure::usage(format!("There is no tool called {name}. See: kai tools list"))
}

async fn run_recorded(app: &App, call: &ToolCall, face: &dyn Face) -> Result<ToolAnswer, DbError> {
    let (db, clock) = (&app.db, app.clock.as_ref());
    let hands = Hands { db, clock, toolbox: &app.toolbox, face, run: Run::BY_HAND };
    let verdict = gate::verdict(RunKind::Chat, Level::Nothing, &call.name);
    let (announced, now) = (hands.announced(call), clock.now());
    db.write(move |tx| ledger::append(tx, &announced, now)).await?;
    let values = values(app).await?;
    app.toolbox.probe_access(&values).await;
    let (result, record) = hands.run(call, &values, verdict).await?;
    db.write(move |tx| ledger::append(tx, &record, now)).await?;
    Ok(ToolAnswer { text: result.text, success: result.success })
}
