//! The command line: turns arguments into a call, and the answer into text or JSON.

mod args;
mod asking;
mod attach;
mod chats;
mod codes;
mod completing;
mod drafts;
mod email;
#[cfg(feature = "foss")]
mod erasing;
mod getting;
mod guests;
mod key;
mod ledger;
mod man;
mod markdown;
#[cfg_attr(not(feature = "foss"), path = "no_messages.rs")]
mod messages;
#[cfg(feature = "foss")]
mod notifications;
mod opening;
#[cfg(feature = "foss")]
mod pairing;
#[cfg(feature = "foss")]
mod phones;
mod servers;
mod service;
mod show;
#[cfg(feature = "foss")]
mod sms;
mod stop;
mod talk;
mod transfer;
mod yes;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use kai_assistant::agent::conversation::ConversationId;
use kai_assistant::device::alarm::AlarmId;
use kai_assistant::memory::promotion::Proposal;
use kai_assistant::models;
use kai_assistant::tasks::TaskId;
use kai_words::Lang;
use serde_json::json;

use self::args::mcp::McpCommand;
use self::args::{
    AlarmsCommand, Args, ChatsCommand, Command, HeartbeatCommand, LedgerCommand, MemoryCommand,
    ModelsCommand, SettingsCommand, TasksCommand, ToolsCommand,
};
use crate::call::Call;
use crate::call::doctor::Check;
use crate::call::heartbeat::{DryRun, HeartbeatRan};
use crate::call::ledger::{LedgerCall, LedgerCheck};
use crate::call::models::{ModelRow, ModelTest, NewModel};
use crate::call::settings::{SettingRow, ToolAnswer};
use crate::call::signin::{Revoked, SignInLink};
use crate::caller::Caller;
use crate::cli::asking::Cli;
use crate::cli::getting::FileChoice;
use crate::commands::doctor;
use crate::daemon::{self, Listen};
use crate::failure::Failure;
use crate::home::{self, Keys};
use crate::logs;
use crate::terminal::{out, qr};

/// Parses the arguments, runs the command and returns its exit code.
pub(crate) fn run() -> ExitCode {
    if let Some(code) = completing::answer_shell(Args::command) {
        return code;
    }
    match command(Args::parse()) {
        Ok(code) => code,
        Err(failure) => {
            out::complain(&failure.to_string());
            ExitCode::from(failure.code)
        }
    }
}

fn command(args: Args) -> Result<ExitCode, Failure> {
    let command = meant(args.command, args.serve)?;
    if let Command::Completions { shell } = command {
        return completing::script(shell);
    }
    if let Command::Man { folder } = &command {
        return man::write(Args::command(), folder);
    }
    if let Command::Sandbox { part } = &command {
        return crate::commands::shell::play(part);
    }
    if let Command::Model = command {
        return Ok(crate::machine::engine::work());
    }
    if let Command::Leash = command {
        return Ok(kai_bridges::mcp::hold_leash());
    }
    if let Command::Serve(_) = command {
        crate::machine::heap::share_one()?;
    }
    crate::crash::leave_no_dump();
    crate::machine::android::settle_in();
    let keys = Keys { passphrase_fd: args.passphrase_fd };
    let not_yet = home::not_yet(args.home.as_deref()).filter(|_| command.only_looks());
    let caller = if let Some(home) = not_yet {
        Caller::looking(args.demo.home(home, false)?)
    } else {
        let home = home::find(args.home.as_deref())?;
        Caller::new(args.demo.home(home, matches!(command, Command::Serve(_)))?, keys)
    };
    carry_out(&Cli { caller, json: args.json }, command)
}

/// Without a command, `kai` is `kai serve`.
fn meant(command: Option<Command>, serve: args::Serve) -> Result<Command, Failure> {
    if command.is_some() && serve.typed() {
        return Err(Failure::usage(
            "--port, --bind, --log and --log-format only work with serve: kai serve --port N",
        ));
    }
    Ok(command.unwrap_or(Command::Serve(serve)))
}

/// Runs a command with these arguments; returns its exit code.
#[cfg(test)]
pub(crate) fn run_with(caller: Caller, words: &[&str]) -> u8 {
    let args = match Args::try_parse_from([&["kai"], words].concat()) {
        Ok(args) => args,
        Err(usage) if usage.use_stderr() => {
            out::note(&usage.render().to_string());
            return 2;
        }
        Err(help) => {
            out::text(&help.render().to_string());
            return 0;
        }
    };
    let ask = Cli { caller, json: args.json };
    match meant(args.command, args.serve).and_then(|command| carry_out(&ask, command)) {
        Ok(code) => (0..=u8::MAX).find(|known| ExitCode::from(*known) == code).unwrap(),
        Err(failure) => {
            out::complain(&failure.to_string());
            failure.code
        }
    }
}

fn carry_out(ask: &Cli, command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Serve(options) => serve(&ask.caller, &options),
        Command::Stop => stop::stop(ask),
        Command::Status => ask.show(Call::Status, show::status),
        Command::Doctor => Ok(ask.doctor()),
        Command::Ask { words, files, chat } => {
            talk::ask(&ask.caller, &words, &files, chat.meant_by_question(), ask.json)
        }
        Command::Chat { chat } => talk::chat(&ask.caller, chat.meant()),
        Command::Chats(command) => ask.chats(command),
        Command::Models(command) => ask.models(command),
        Command::Mcp(McpCommand::Servers(command)) => servers::run(ask, command),
        Command::Settings(command) => ask.settings(command),
        Command::Heartbeat(command) => ask.heartbeat(&command),
        Command::Memory(command) => ask.memory(command),
        Command::Tasks(command) => ask.tasks(&command),
        Command::Alarms(command) => ask.alarms(&command),
        Command::Tools(command) => ask.tools(command),
        Command::Mcp(McpCommand::Serve(options)) => guests::serve(ask, options),
        Command::Mcp(McpCommand::Guests(command)) => guests::guests(ask, command),
        Command::Drafts(command) => ask.drafts(&command),
        Command::Email(command) => email::run(ask, command),
        Command::Messages(command) => messages::run(ask, command),
        Command::Ledger(command) => ask.ledger(command),
        Command::Link { revoke_all } => ask.link(revoke_all),
        Command::Open { page, start } => opening::open(ask, page.meant(), start),
        Command::Export { file, sections, secrets } => transfer::export(ask, &file, sections, secrets),
        Command::Import { file, sections, replace, preview, yes, no_secrets } => {
            let how = transfer::How { replace, preview, yes, no_secrets };
            transfer::import(ask, &file, &sections, how)
        }
        Command::Erase => transfer::erase(&ask.caller.home),
        Command::Service(command) => service::run(ask, command),
        Command::Key(command) => key::run(&ask.caller.home, ask.caller.keys, &command, ask.json),
        Command::Completions { shell } => completing::script(shell),
        Command::Man { folder } => man::write(Args::command(), &folder),
        Command::Sandbox { part } => crate::commands::shell::play(&part),
        Command::Leash => Ok(kai_bridges::mcp::hold_leash()),
        Command::Model => Ok(crate::machine::engine::work()),
        #[cfg(debug_assertions)]
        Command::Panic => {
            ["what a bug looks like"].get(1).map_or_else(|| panic!("on purpose"), |_| Ok(ExitCode::SUCCESS))
        }
    }
}

fn serve(caller: &Caller, options: &args::Serve) -> Result<ExitCode, Failure> {
    logs::start(&logs::Wanted { level: options.log.clone(), format: options.log_format })?;
    let listen = Listen { bind: options.bind, port: options.port };
    daemon::run(&caller.home, caller.keys, listen).map(|()| ExitCode::SUCCESS)
}

const NOTHING_NEW: &str =
    "Nothing is new, so Kai would not ask a model. With kai heartbeat run --force, it would send this:";

impl Cli {
    /// Also answers when the store does not open, which is when it is needed most.
    fn doctor(&self) -> ExitCode {
        let (checks, code) = match self.caller.ask::<Vec<Check>>(Call::Doctor) {
            Ok(checks) => {
                let broken = doctor::broken(&checks);
                (checks, u8::from(broken))
            }
            Err(failure) => (doctor::closed(&failure), failure.code),
        };
        self.print(&checks, |checks| show::doctor(checks));
        ExitCode::from(code)
    }

    fn pin(&self, id: i64, pinned: bool) -> Result<ExitCode, Failure> {
        self.tell(
            Call::ChatsPin { id: ConversationId(id), pinned },
            |id: &ConversationId| json!({"id": id, "pinned": pinned}),
            |id| format!("{} chat {}.\n", if pinned { "Pinned" } else { "Unpinned" }, id.0),
        )
    }

    fn chats(&self, command: ChatsCommand) -> Result<ExitCode, Failure> {
        match command {
            ChatsCommand::List => self.show(Call::ChatsList, |rows: &Vec<_>| show::chats(rows)),
            ChatsCommand::Search { text } => {
                self.show(Call::ChatsSearch { text }, |rows: &Vec<_>| show::chats(rows))
            }
            ChatsCommand::Show { id } => self
                .show(Call::ChatsShow { id: ConversationId(id) }, |entries: &Vec<_>| show::entries(entries)),
            ChatsCommand::Rename { id, name } => self.tell(
                Call::ChatsRename { id: ConversationId(id), name },
                |id: &ConversationId| json!({"id": id, "renamed": true}),
                |id| format!("Renamed chat {}.\n", id.0),
            ),
            ChatsCommand::Pin { id } => self.pin(id, true),
            ChatsCommand::Unpin { id } => self.pin(id, false),
            ChatsCommand::Export { id, file } => {
                transfer::export_chat(self, ConversationId(id), file.as_deref())
            }
            ChatsCommand::Delete { id, yes } => chats::delete(self, ConversationId(id), yes),
            ChatsCommand::Undo => chats::undo(self),
            ChatsCommand::Codes(command) => codes::run(self, &command),
        }
    }

    fn models(&self, command: ModelsCommand) -> Result<ExitCode, Failure> {
        match command {
            ModelsCommand::List => self.show(Call::ModelsList, |rows: &Vec<_>| show::models(rows)),
            ModelsCommand::Get { name } => getting::get(self, name),
            ModelsCommand::Add { preset, file, name, context, .. } if preset == models::BUILT_IN => {
                getting::add(self, file.as_deref(), name, context)
            }
            ModelsCommand::Add { file: Some(_), .. } => Err(Failure::usage(
                "Only a model on this computer is a file: kai models add local --file FILE.gguf",
            )),
            ModelsCommand::Add {
                preset,
                name,
                base_url,
                model,
                context,
                pictures,
                key_stdin,
                file: None,
            } => {
                let key = args::model_key(&preset, base_url.as_deref(), key_stdin)?;
                self.add_model(NewModel { preset, name, base_url, model, key, context, pictures })
            }
            ModelsCommand::Context { name, context } => {
                let call = Call::ModelsContext { name, context };
                self.show(call, |row: &ModelRow| show::models(std::slice::from_ref(row)))
            }
            ModelsCommand::Pictures { name, pictures } => {
                let call = Call::ModelsPictures { name, pictures };
                self.show(call, |row: &ModelRow| show::models(std::slice::from_ref(row)))
            }
            ModelsCommand::Test { name } => {
                let tests: Vec<ModelTest> = self.caller.ask(Call::ModelsTest { name })?;
                self.print(&tests, |tests| show::model_tests(tests));
                Ok(ExitCode::from(u8::from(tests.iter().any(|test| !test.works))))
            }
            ModelsCommand::Remove { name, delete_file, keep_file } => {
                let choice = match (delete_file, keep_file) {
                    (true, _) => FileChoice::Delete,
                    (false, true) => FileChoice::Keep,
                    (false, false) => FileChoice::Ask,
                };
                getting::remove(self, name, choice)
            }
            ModelsCommand::First { name } => self.tell(
                Call::ModelsFirst { name },
                |name: &String| json!({"first": name}),
                |name| format!("Kai now asks {} first.\n", out::visible(name)),
            ),
        }
    }

    fn add_model(&self, new: NewModel) -> Result<ExitCode, Failure> {
        let row: ModelRow = self.caller.ask(Call::ModelsAdd(new))?;
        if models::is_unencrypted(&row.base_url) {
            let warning = if row.has_key {
                Lang::ENGLISH.models_unencrypted_key()
            } else {
                Lang::ENGLISH.models_unencrypted()
            };
            out::note(&format!("{} is not encrypted. {warning}", row.base_url));
        }
        if row.ready && !self.json {
            out::note("Added. To test it: kai models test");
        }
        self.print(&row, |row| show::models(std::slice::from_ref(row)));
        Ok(ExitCode::SUCCESS)
    }

    fn settings(&self, command: SettingsCommand) -> Result<ExitCode, Failure> {
        match command {
            SettingsCommand::List => {
                self.show(Call::SettingsList, |rows: &Vec<SettingRow>| show::settings(rows))
            }
            SettingsCommand::Get { key } => {
                self.show(Call::SettingsGet { key }, |row: &SettingRow| out::value(&row.value))
            }
            SettingsCommand::Set { key, value } => {
                let value = args::setting_value(&key, value)?;
                let row: SettingRow = self.caller.ask(Call::SettingsSet { key, value })?;
                self.print(&row, |row| format!("{} = {}\n", row.key, out::visible(&row.value)));
                messages::say_what_is_kept(self, &row.key)?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }

    fn heartbeat(&self, command: &HeartbeatCommand) -> Result<ExitCode, Failure> {
        match command {
            HeartbeatCommand::Run { force } => {
                let ran: HeartbeatRan = self.caller.ask(Call::HeartbeatRun { force: *force })?;
                if let Some(why) = show::did_not_run(&ran) {
                    if self.json {
                        out::json(&ran);
                    }
                    return Err(Failure::failed(why));
                }
                self.print(&ran, show::ran);
                Ok(ExitCode::SUCCESS)
            }
            HeartbeatCommand::DryRun => self.show(Call::HeartbeatDryRun, |dry: &DryRun| {
                if !dry.is_new {
                    out::note(NOTHING_NEW);
                }
                show::dry_run(dry)
            }),
            HeartbeatCommand::Log => self.show(Call::HeartbeatLog, |rows: &Vec<_>| show::heartbeat_log(rows)),
        }
    }

    fn ledger(&self, command: LedgerCommand) -> Result<ExitCode, Failure> {
        match command {
            LedgerCommand::Show { limit } => self
                .show(Call::Ledger(LedgerCall::Show { limit }), |rows: &Vec<_>| {
                    show::ledger(rows, "Nothing has been sent, run or allowed yet.")
                }),
            LedgerCommand::Verify => {
                let check: LedgerCheck = self.caller.ask(Call::Ledger(LedgerCall::Verify))?;
                self.print(&check, show::ledger_check);
                if let Some(why) = &check.note_unread {
                    out::note(&format!(
                        "{why} Without it, Kai cannot tell whether this is the newest copy of the store."
                    ));
                }
                Ok(ExitCode::from(u8::from(!check.whole)))
            }
            LedgerCommand::Accept => ledger::accept(self),
            LedgerCommand::Who { id } => self.show(Call::Ledger(LedgerCall::Who { id }), |rows: &Vec<_>| {
                show::ledger(rows, "No request contained it.")
            }),
            LedgerCommand::Bytes { seq } => {
                self.show(Call::Ledger(LedgerCall::Bytes { seq }), |bytes: &String| out::value(bytes))
            }
        }
    }

    fn memory(&self, command: MemoryCommand) -> Result<ExitCode, Failure> {
        match command {
            MemoryCommand::List => self.show(Call::MemoryList, |memories: &Vec<_>| show::memories(memories)),
            MemoryCommand::Forget { key } => self.tell(
                Call::MemoryForget { key },
                |key: &String| json!({"forgotten": key}),
                |key| format!("Forgot \"{}\".\n", out::visible(key)),
            ),
            MemoryCommand::Confirm { key } => {
                self.show(Call::MemoryConfirm { key, seen: None }, show::confirmed_memory)
            }
            MemoryCommand::Proposals => {
                self.show(Call::MemoryProposals, |rows: &Vec<_>| show::proposals(rows))
            }
            MemoryCommand::Accept { key } => self.show(Call::MemoryAccept { key }, |taken: &Proposal| {
                format!("Added to Kai's personality: {}\n", out::visible(&taken.text))
            }),
            MemoryCommand::Decline { key } => self.show(Call::MemoryDecline { key }, |left: &Proposal| {
                format!("Declined: {}\n", out::visible(&left.text))
            }),
        }
    }

    fn tasks(&self, command: &TasksCommand) -> Result<ExitCode, Failure> {
        match *command {
            TasksCommand::List => self.show(Call::TasksList, |rows: &Vec<_>| show::tasks(rows)),
            TasksCommand::Show { id } => self.show(Call::TasksShow { id: TaskId(id) }, show::task),
            TasksCommand::Cancel { id } => self.tell(
                Call::TasksCancel { id: TaskId(id) },
                |id: &TaskId| json!({"id": id, "cancelled": true}),
                |id| format!("Cancelled task {}.\n", id.0),
            ),
        }
    }

    fn alarms(&self, command: &AlarmsCommand) -> Result<ExitCode, Failure> {
        match *command {
            AlarmsCommand::List => self.show(Call::AlarmsList, |rows: &Vec<_>| show::alarms(rows)),
            AlarmsCommand::Cancel { id } => self.tell(
                Call::AlarmsCancel { id: AlarmId(id) },
                |id: &AlarmId| json!({"id": id, "cancelled": true}),
                |id| format!("Cancelled alarm {}.\n", id.0),
            ),
        }
    }

    fn tools(&self, command: ToolsCommand) -> Result<ExitCode, Failure> {
        match command {
            ToolsCommand::List => self.show(Call::ToolsList, |rows: &Vec<_>| show::tools(rows)),
            ToolsCommand::Enable { tool } => self.switch_tool(tool, true),
            ToolsCommand::Disable { tool } => self.switch_tool(tool, false),
            ToolsCommand::Call { tool, arguments } => {
                let arguments = args::given(arguments)?;
                let watcher = talk::Terminal::quiet().watching();
                let call = Call::ToolsTry { tool, arguments };
                let answer: ToolAnswer = self.caller.line()?.call(call, &watcher)?;
                out::line(&out::escaped(&answer.text));
                Ok(ExitCode::from(u8::from(!answer.success)))
            }
        }
    }

    fn switch_tool(&self, tool: String, on: bool) -> Result<ExitCode, Failure> {
        let state = if on { "enabled" } else { "disabled" };
        let said = format!("{} is now {state}.\n", out::visible(&tool));
        self.show(Call::ToolsSwitch { tool, on }, |_: &SettingRow| said)
    }

    fn link(&self, revoke_all: bool) -> Result<ExitCode, Failure> {
        if revoke_all {
            return self.show(Call::RevokeLinks, |ended: &Revoked| {
                format!(
                    "Ended {} and revoked {}.\n",
                    show::count(ended.sessions, "session"),
                    show::count(ended.links, "link")
                )
            });
        }
        let link: SignInLink = self.caller.ask(Call::Link)?;
        if !link.daemon_running {
            out::complain("Kai is not running. Start it with `kai`, then open this link.");
        }
        self.print(&link, |link| format!("{}\n", link.url));
        // For a phone's camera.
        let drawn = link.elsewhere.as_deref().filter(|_| !self.json && out::has_person()).and_then(qr::drawn);
        if let Some(drawn) = drawn {
            out::text(&drawn);
        }
        Ok(ExitCode::SUCCESS)
    }
}
