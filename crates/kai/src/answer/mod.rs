//! Answers a call on an opened app, both in the daemon and in a command that runs without one.

#[cfg_attr(not(feature = "foss"), path = "no_messages.rs")]
mod messages;

use kai_assistant::agent::{Face, soul};
use kai_assistant::db::DbError;
use kai_assistant::heartbeat::Why;
use kai_assistant::memory::promotion;
use kai_words::Lang;
use serde_json::Value;

use crate::app::{App, sessions};
use crate::call::local::LocalCall;
use crate::call::signin::Revoked;
use crate::call::{Call, json};
use crate::caller_env::CallerEnv;
use crate::commands::{
    alarms, chats, codes, doctor, drafts, email, guests, heartbeat, ledger, local, mcp, memory, model_files,
    models, settings, status, tasks, tools, transfer, visit,
};
use crate::failure::Failure;

/// Answers one call. `env` is the caller's environment, and `face` shows progress to the caller and asks for approval.
pub(crate) async fn answer(
    app: &App,
    call: Call,
    env: &CallerEnv,
    face: &dyn Face,
) -> Result<Value, Failure> {
    match call {
        Call::Status => json(status::of(app, env).await?),
        Call::Doctor => json(doctor::examine(app, env).await),
        Call::Stop => stop(app),
        Call::SettingsList => json(settings::list(app).await?),
        Call::SettingsGet { key } => json(settings::get(app, &key).await?),
        Call::SettingsSet { key, value } => json(settings::set(app, env, &key, &value).await?),
        Call::HeartbeatRun { force } => json(heartbeat::run(app, env, Why::by_hand(force)).await?),
        Call::HeartbeatDryRun => json(heartbeat::dry_run(app, env).await?),
        Call::HeartbeatLog => json(heartbeat::log(app).await?),
        Call::MemoryList => json(app.db.read(kai_assistant::memory::store::all).await?),
        Call::MemoryProposals => json(app.db.read(promotion::proposals).await?),
        Call::MemoryAccept { key } => json(memory::decide(app, &key, soul::accept).await?),
        Call::MemoryDecline { key } => json(memory::decide(app, &key, soul::decline).await?),
        Call::MemoryForget { key } => json(memory::forget(app, &key).await?),
        Call::MemoryConfirm { key, seen } => json(memory::confirm(app, &key, seen).await?),
        Call::TasksList => json(tasks::list(app, Lang::ENGLISH).await?),
        Call::TasksShow { id } => json(tasks::show(app, id).await?),
        Call::TasksCancel { id } => json(tasks::cancel(app, id).await?),
        Call::AlarmsList => json(alarms::list(app).await?),
        Call::AlarmsCancel { id } => json(alarms::cancel(app, id).await?),
        Call::ToolsList => json(tools::list(app, env).await?),
        Call::ToolsSwitch { tool, on } => json(tools::switch(app, env, &tool, on).await?),
        Call::ToolsTry { tool, arguments } => json(tools::call(app, tool, arguments, face).await?),
        Call::Link => json(sessions::fresh_link(app).await?),
        Call::Open { place } => json(visit::open(app, place, None).await?),
        Call::RevokeLinks => json(revoke(app).await?),
        Call::Ask { text, chat, files } => json(chats::ask_with(app, env, text, chat, files, face).await?),
        Call::ChatsList => json(chats::list(app).await?),
        Call::ChatsSearch { text } => json(chats::search(app, text).await?),
        Call::ChatsShow { id } => json(chats::show(app, id).await?),
        Call::ChatsRename { id, name } => json(chats::rename(app, id, &name).await?),
        Call::ChatsPin { id, pinned } => json(chats::pin(app, id, pinned).await?),
        Call::ChatsExport { id } => json(chats::export(app, id, Lang::ENGLISH).await?),
        Call::ChatsDelete { id } => json(chats::delete(app, id).await?),
        Call::ChatsUndo => json(chats::undelete(app).await?),
        Call::ModelsList => json(models::rows(app, env).await?),
        Call::ModelsAdd(new) => json(models::add(app, env, new).await?),
        Call::ModelsTest { name } => json(models::test(app, env, name.as_deref()).await?),
        Call::ModelsRemove { name } => json(models::remove(app, name).await?),
        Call::Export(call) => json(transfer::export(app, call).await?),
        Call::Import(call) => json(transfer::import(app, call, Lang::ENGLISH).await?),
        Call::ModelsFirst { name } => json(models::first(app, name).await?),
        Call::ModelsContext { name, context } => json(models::set_context(app, env, name, &context).await?),
        Call::ModelsPictures { name, pictures } => {
            json(models::set_pictures(app, env, name, &pictures).await?)
        }
        Call::Local(call) => local(app, call, env, face).await,
        Call::Drafts(call) => drafts::answer(app, call).await,
        Call::Email(call) => email::answer(app, call).await,
        Call::ChatsCodes { chat, show } => json(codes::show(app, chat, show).await?),
        Call::Ledger(call) => ledger::answer(app, call).await,
        Call::Mcp(call) => mcp::answer(app, call).await,
        Call::Guests(call) => guests::answer(app, call).await,
        Call::Guest(call) => json(guests::host(app, call).await?),
        Call::Messages(call) => messages::answer(app, call).await,
    }
}

fn stop(app: &App) -> Result<Value, Failure> {
    app.stop.cancel();
    json(())
}

async fn local(app: &App, call: LocalCall, env: &CallerEnv, face: &dyn Face) -> Result<Value, Failure> {
    match call {
        LocalCall::Catalogue => json(local::catalogue(app).await?),
        LocalCall::Get { name } => json(local::get(app, env, &name, face).await?),
        LocalCall::Add(new) => json(local::add(app, env, new).await?),
        LocalCall::DeleteFile { file } => json(model_files::delete(app, &file).await?),
    }
}

async fn revoke(app: &App) -> Result<Revoked, DbError> {
    let (sessions, links) = app.db.write(sessions::revoke_all).await?;
    Ok(Revoked { sessions, links })
}
