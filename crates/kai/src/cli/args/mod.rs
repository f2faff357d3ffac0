//! What can be typed, with help and examples.

#[cfg_attr(not(feature = "foss"), path = "no_messages.rs")]
pub(super) mod messages;

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;
use kai_assistant::agent::conversation::{ConversationId, Which};
use kai_assistant::device::Place;
use kai_assistant::{models, settings};

use self::messages::{CodesCommand, DemoArg, MessagesCommand};
use crate::failure::Failure;
use crate::logs::Format;
use crate::terminal::{input, out};

/// A personal assistant on your own machine that never sends anything without your tap.
///
/// Without a command, kai runs the daemon and its page and prints a link to sign in with.
#[derive(Debug, Parser)]
#[command(
    name = "kai",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  kai                                run Kai; open the link it prints
  kai ask what day is it             one question, one answer
  kai status                         what is on, and where it lies
  kai doctor                         what is wrong, and the next step
  kai settings set theme dark        change a setting
  kai --home ~/try status            use another home

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the store cannot be opened."
)]
pub(super) struct Args {
    /// The folder that holds everything [default: `$KAI_HOME`, else the user's data folder]
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) home: Option<PathBuf>,
    /// Print JSON with stable field names
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Read the passphrase of a locked home from this open file descriptor
    #[arg(long, global = true, value_name = "N")]
    pub(super) passphrase_fd: Option<u32>,
    #[command(flatten)]
    pub(super) demo: DemoArg,
    #[command(flatten)]
    pub(super) serve: Serve,
    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(super) struct Serve {
    /// Port of the page; 0 takes any free one [default: 8787, or the next free one]
    #[arg(long)]
    pub(super) port: Option<u16>,
    /// Address of the page; anything but loopback is plain HTTP that others on the network can read
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub(super) bind: IpAddr,
    /// How log lines on stderr look; `KAI_LOG` says how many (error, warn, info, debug)
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) log_format: Format,
}

impl Serve {
    /// Was anything of it typed?
    pub(super) fn typed(&self) -> bool {
        *self != Self { port: None, bind: IpAddr::V4(Ipv4Addr::LOCALHOST), log_format: Format::Text }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the daemon and the page (the default)
    #[command(after_help = "Examples:\n  kai serve --port 9000\n  kai serve --log-format json 2> kai.log")]
    Serve(Serve),
    /// Stop the daemon, as Ctrl-C does
    #[command(after_help = "Examples:\n  kai stop\n  kai --home ~/try stop")]
    Stop,
    /// Show what is on and where it lies
    #[command(after_help = "Examples:\n  kai status\n  kai status --json")]
    Status,
    /// Look for what is wrong and name the next step
    #[command(
        after_help = "Examples:\n  kai doctor\n  kai doctor --json\n\nExit code 0 when all is well, 1 when something is broken, 3 when the store cannot be opened."
    )]
    Doctor,
    /// Ask something; one turn
    #[command(
        after_help = "Examples:\n  kai ask \"What day is it?\"\n  cat letter.txt | kai ask summarise this\n  kai ask --last \"and tomorrow?\"\n  kai ask --json \"hi\""
    )]
    Ask {
        /// What to ask; what is piped in is added below it
        words: Vec<String>,
        #[command(flatten)]
        chat: WhichChat,
    },
    /// Talk on the terminal
    #[command(after_help = "Examples:\n  kai chat\n  kai chat --last\n  kai chat --chat 7")]
    Chat {
        #[command(flatten)]
        chat: WhichChat,
    },
    /// See, search and delete conversations
    #[command(
        subcommand,
        after_help = "Examples:\n  kai chats list\n  kai chats search \"green tea\"\n  kai chats show 7"
    )]
    Chats(ChatsCommand),
    /// Set up language models
    #[command(
        subcommand,
        after_help = "Examples:\n  kai models add ollama --model qwen3\n  kai models add openai      (asks for the key)\n  kai models add gemini --key-stdin < key.txt\n  kai models add openai-compatible --base-url http://127.0.0.1:8080/v1 --model any\n  kai models test"
    )]
    Models(ModelsCommand),
    /// See and change settings
    #[command(
        subcommand,
        after_help = "Examples:\n  kai settings list\n  kai settings get theme\n  kai settings set memory_enabled false"
    )]
    Settings(SettingsCommand),
    /// The heartbeat: run one now, see what it would ask, what the last ones came to
    #[command(
        subcommand,
        after_help = "Examples:\n  kai heartbeat run\n  kai heartbeat dry-run\n  kai heartbeat log --json"
    )]
    Heartbeat(HeartbeatCommand),
    /// See and forget what Kai remembers
    #[command(
        subcommand,
        after_help = "Examples:\n  kai memory list --json\n  kai memory forget favourite_colour\n  kai memory proposals\n  kai memory accept tea"
    )]
    Memory(MemoryCommand),
    /// See and cancel what Kai is to do later
    #[command(
        subcommand,
        after_help = "Examples:\n  kai tasks list\n  kai tasks show 3\n  kai tasks cancel 3"
    )]
    Tasks(TasksCommand),
    /// See and cancel alarms that have not rung yet
    #[command(subcommand, after_help = "Examples:\n  kai alarms list\n  kai alarms cancel 3")]
    Alarms(AlarmsCommand),
    /// See the tools and try one as the model would
    #[command(
        subcommand,
        after_help = "Examples:\n  kai tools list\n  kai tools call get_local_time\n  kai tools call memory_store '{\"key\": \"tea\", \"content\": \"Likes green tea.\"}'"
    )]
    Tools(ToolsCommand),
    #[command(flatten)]
    Messages(MessagesCommand),
    /// What left this machine, what ran, what was clicked
    #[command(
        subcommand,
        after_help = "Examples:\n  kai ledger show\n  kai ledger verify\n  kai ledger who 4711      (which requests held this SMS)\n  kai ledger bytes 17      (exactly what was sent)"
    )]
    Ledger(LedgerCommand),
    /// Print a fresh one-time link that signs a browser in
    #[command(after_help = "Examples:\n  kai link\n  kai link --revoke-all")]
    Link {
        /// End all sessions and unused links instead
        #[arg(long)]
        revoke_all: bool,
    },
    /// Open Kai's page in your browser, signed in
    #[command(after_help = "Examples:\n  kai open\n  kai open heartbeat")]
    Open {
        /// What to open
        #[arg(value_enum, default_value_t = Page::Chat)]
        page: Page,
    },
    /// See where the store's key lies, or move it
    #[command(subcommand, after_help = "Examples:\n  kai key show\n  kai key move passphrase")]
    Key(KeyCommand),
    /// Write what you keep in Kai to a JSON file
    #[command(
        after_help = "The file is not encrypted.\n\nExamples:\n  kai export kai.json\n  kai export - | gpg -c > kai.json.gpg\n  kai export memory.json --section memory\n  kai export all.json --secrets   (asks for a passphrase that seals them)"
    )]
    Export {
        /// Where to write it, `-` for standard output; a file that is there already is left alone
        file: PathBuf,
        /// Only this section (settings, memory, models, tasks, conversations); may be given several times
        #[arg(long = "section", value_name = "NAME")]
        sections: Vec<String>,
        /// Take keys of models along, sealed with a passphrase
        #[arg(long)]
        secrets: bool,
    },
    /// Take in a file that export wrote
    #[command(
        after_help = "Examples:\n  kai import kai.json             (shows what would happen, then asks)\n  kai import kai.json --preview\n  kai import kai.json --replace --yes"
    )]
    Import {
        /// The file
        file: PathBuf,
        /// Only this section; may be given several times
        #[arg(long = "section", value_name = "NAME")]
        sections: Vec<String>,
        /// Each section of the file takes the place of what is there
        #[arg(long)]
        replace: bool,
        /// Only show what would happen
        #[arg(long)]
        preview: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        /// Leave the sealed secrets of the file out
        #[arg(long)]
        no_secrets: bool,
    },
    /// Delete everything in this home, for good
    #[command(
        after_help = "Example:\n  kai erase\n\nAsks for a typed confirmation on the terminal. The daemon must not run: kai stop"
    )]
    Erase,
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  kai completions bash > ~/.local/share/bash-completion/completions/kai"
    )]
    Completions {
        /// For which shell
        shell: Shell,
    },
    /// A part that Kai plays when it runs a command
    #[command(name = "__sandbox", hide = true)]
    Sandbox { part: String },
    #[cfg(debug_assertions)]
    #[command(name = "__panic", hide = true)]
    Panic,
}

/// In which conversation.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct WhichChat {
    /// Go on with the conversation last spoken in
    #[arg(long, conflicts_with = "chat")]
    last: bool,
    /// Go on with this conversation
    #[arg(long, value_name = "ID", value_parser = number)]
    chat: Option<i64>,
}

impl WhichChat {
    pub(super) fn meant(self) -> Which {
        match (self.chat, self.last) {
            (Some(id), _) => Which::Id(ConversationId(id)),
            (None, true) => Which::Newest,
            (None, false) => Which::New,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum ChatsCommand {
    /// All conversations, newest first
    #[command(after_help = "Examples:\n  kai chats list\n  kai chats list --json")]
    List,
    /// Conversations in which all these words were said
    #[command(after_help = "Example:\n  kai chats search \"green tea\"")]
    Search {
        /// The words
        text: String,
    },
    /// Everything said in one
    #[command(after_help = "Example:\n  kai chats show 7")]
    Show {
        /// The number that `kai chats list` shows first
        #[arg(value_parser = number)]
        id: i64,
    },
    /// Delete one with everything said in it
    #[command(after_help = "Example:\n  kai chats delete 7")]
    Delete {
        /// The number that `kai chats list` shows first
        #[arg(value_parser = number)]
        id: i64,
    },
    #[command(flatten)]
    Codes(CodesCommand),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Page {
    /// The current chat
    Chat,
    /// The heartbeat's conversation
    Heartbeat,
    /// The first draft that waits
    #[cfg_attr(not(feature = "foss"), value(skip), expect(dead_code, reason = "there are no drafts"))]
    Drafts,
}

impl Page {
    pub(super) fn meant(self) -> Place {
        match self {
            Self::Chat => Place::Chat,
            Self::Heartbeat => Place::Heartbeat,
            Self::Drafts => Place::Drafts,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum ModelsCommand {
    /// The models in the order in which they are asked
    #[command(after_help = "Examples:\n  kai models list\n  kai models list --json")]
    List,
    /// Add a model, or change the one of that name
    #[command(after_help = models_help())]
    Add {
        /// Which service or server; they are listed below
        preset: String,
        /// What to call it [default: the preset's name]
        #[arg(long)]
        name: Option<String>,
        /// Address of the server [default: the preset's]
        #[arg(long)]
        base_url: Option<String>,
        /// Which of its models [default: the preset's choice]
        #[arg(long)]
        model: Option<String>,
        /// Tokens of context it has, or auto [default: what its server says]
        #[arg(long, value_name = "TOKENS")]
        context: Option<String>,
        /// Read the key from standard input; on a terminal it is asked for anyway (it never stands in a command line)
        #[arg(long)]
        key_stdin: bool,
    },
    /// Set how many tokens of context a model has, or let Kai find out again
    #[command(after_help = "Examples:\n  kai models context ollama 32768\n  kai models context ollama auto")]
    Context {
        /// The name that `kai models list` shows first
        name: String,
        /// A number of tokens, or auto
        context: String,
    },
    /// Ask each model, or the named one, for a word and say what is wrong
    #[command(after_help = "Examples:\n  kai models test\n  kai models test ollama")]
    Test {
        /// The name that `kai models list` shows first [default: all of them]
        name: Option<String>,
    },
    /// Forget a model and its key
    #[command(after_help = "Example:\n  kai models remove openai")]
    Remove {
        /// The name that `kai models list` shows first
        name: String,
    },
    /// Ask this one first
    #[command(after_help = "Example:\n  kai models first ollama")]
    First {
        /// The name that `kai models list` shows first
        name: String,
    },
}

fn models_help() -> String {
    let line = |preset: &kai_llm::Preset| {
        let key = preset.key_env.first().map(|name| format!(", key also from ${name}")).unwrap_or_default();
        let model = match (&preset.base_url, &preset.model) {
            (None, _) => "needs --base-url and --model",
            (_, None) => "needs --model",
            (_, Some(model)) => model,
        };
        format!("  {:<18} {} ({model}{key})", preset.id, preset.name)
    };
    let presets = kai_llm::presets().iter().map(line).collect::<Vec<_>>().join("\n");
    format!("{ADD_EXAMPLES}\n\nPresets:\n{presets}")
}

const ADD_EXAMPLES: &str = "\
Examples:
  kai models add openai          (asks for the key)
  kai models add gemini --key-stdin < key.txt
  kai models add ollama --model qwen3
  kai models add openai-compatible --base-url http://127.0.0.1:8080/v1 --model any --context 32768";

/// The key of a model: asked for on a terminal, else from standard input if that was typed. `None` if there is none.
pub(super) fn model_key(
    preset: &str,
    base_url: Option<&str>,
    key_stdin: bool,
) -> Result<Option<String>, Failure> {
    if !input::has_person() {
        return if key_stdin { key_from_stdin().map(Some) } else { Ok(None) };
    }
    let Some(preset) = models::preset(preset) else { return Ok(None) };
    // A server of the person's own may want one, but not on this machine.
    let own = preset.base_url.is_none() && base_url.is_some_and(|url| !models::is_local(url));
    if !(key_stdin || preset.needs_key || own) {
        return Ok(None);
    }
    let name = if own { base_url.unwrap_or_default() } else { &preset.name };
    let typed = secret(&format!("Key for {}: ", out::visible(name)))?;
    Ok(Some(typed.trim().to_owned()).filter(|key| !key.is_empty()))
}

/// Asks on the terminal without showing what is typed.
fn secret(question: &str) -> Result<String, Failure> {
    rpassword::prompt_password(question)
        .map_err(|e| Failure::usage(format!("The key could not be read: {e}.")))
}

/// The key of a model from standard input: one line, nothing around it.
pub(super) fn key_from_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let read = input::piped().take(16 * 1024).read_to_string(&mut text);
    read.map_err(|e| Failure::usage(format!("The key could not be read from standard input: {e}.")))?;
    let key = text.trim();
    if key.is_empty() {
        return Err(Failure::usage("Standard input holds no key."));
    }
    Ok(key.to_owned())
}

#[derive(Debug, Subcommand)]
pub(super) enum SettingsCommand {
    /// All settings with their values
    #[command(after_help = "Examples:\n  kai settings list\n  kai settings list --json")]
    List,
    /// Print one value
    #[command(after_help = "Example:\n  kai settings get theme")]
    Get {
        /// The key that `kai settings list` shows first
        key: String,
    },
    /// Change one value
    #[command(
        after_help = "Examples:\n  kai settings set theme dark\n  kai settings set heartbeat_model \"\"\n  kai settings set web_search_brave_key      (asks for it)"
    )]
    Set {
        /// The key that `kai settings list` shows first
        key: String,
        /// Left out for a secret: then it is asked for, or read from stdin
        value: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum HeartbeatCommand {
    /// Run one now, whatever the hour; without anything new, no model is asked
    #[command(after_help = "Examples:\n  kai heartbeat run\n  kai heartbeat run --force")]
    Run {
        /// Ask a model in any case
        #[arg(long)]
        force: bool,
    },
    /// Show the exact prompt of the next run, and change nothing
    #[command(after_help = "Example:\n  kai heartbeat dry-run")]
    DryRun,
    /// What the last runs came to, newest first
    #[command(after_help = "Examples:\n  kai heartbeat log\n  kai heartbeat log --json")]
    Log,
}

#[derive(Debug, Subcommand)]
pub(super) enum LedgerCommand {
    /// The newest records, newest first
    #[command(after_help = "Examples:\n  kai ledger show\n  kai ledger show --limit 500 --json")]
    Show {
        /// How many
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Look for a record that was altered, dropped or exchanged
    #[command(after_help = "Example:\n  kai ledger verify")]
    Verify,
    /// Accept an older copy of the store that you restored on purpose; asks first
    #[command(after_help = "Example:\n  kai ledger accept")]
    Accept,
    /// Which requests held a message
    #[command(after_help = "Example:\n  kai ledger who 4711")]
    Who {
        /// The number of an SMS, or the id of a notification, as their lists show it
        id: String,
    },
    /// The exact bytes of a request
    #[command(after_help = "Example:\n  kai ledger bytes 17")]
    Bytes {
        /// The number that `kai ledger show` shows first
        #[arg(value_parser = number)]
        seq: i64,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum MemoryCommand {
    /// Everything Kai remembers, newest first
    #[command(after_help = "Examples:\n  kai memory list\n  kai memory list --json")]
    List,
    /// Delete one memory
    #[command(after_help = "Example:\n  kai memory forget favourite_colour")]
    Forget {
        /// The key that `kai memory list` shows first
        key: String,
    },
    /// Say that you know a memory's words and want Kai to use them
    #[command(after_help = "Examples:\n  kai memory list\n  kai memory confirm tea")]
    Confirm {
        /// The key that `kai memory list` shows first
        key: String,
    },
    /// What Kai proposes to make a part of itself
    #[command(after_help = "Example:\n  kai memory proposals")]
    Proposals,
    /// Add a proposal to the soul, the beginning of every prompt
    #[command(after_help = "Example:\n  kai memory accept tea")]
    Accept {
        /// The key that `kai memory proposals` shows first
        key: String,
    },
    /// Say no to a proposal
    #[command(after_help = "Example:\n  kai memory decline tea")]
    Decline {
        /// The key that `kai memory proposals` shows first
        key: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum AlarmsCommand {
    /// All alarms and timers, the next first
    #[command(after_help = "Examples:\n  kai alarms list\n  kai alarms list --json")]
    List,
    /// Take one away before it rings
    #[command(after_help = "Example:\n  kai alarms cancel 3")]
    Cancel {
        /// The number that `kai alarms list` shows first
        #[arg(value_parser = number)]
        id: i64,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum TasksCommand {
    /// All tasks, the next first
    #[command(after_help = "Examples:\n  kai tasks list\n  kai tasks list --json")]
    List,
    /// One task with its prompt and its last runs
    #[command(after_help = "Example:\n  kai tasks show 3")]
    Show {
        /// The number that `kai tasks list` shows first
        #[arg(value_parser = number)]
        id: i64,
    },
    /// Take one away
    #[command(after_help = "Example:\n  kai tasks cancel 3")]
    Cancel {
        /// The number that `kai tasks list` shows first
        #[arg(value_parser = number)]
        id: i64,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum ToolsCommand {
    /// All tools, and why one is not offered
    #[command(after_help = "Examples:\n  kai tools list\n  kai tools list --json")]
    List,
    /// Offer a tool to the model
    #[command(after_help = "Example:\n  kai tools enable shell_command")]
    Enable {
        /// The name that `kai tools list` shows first
        tool: String,
    },
    /// Do not offer a tool to the model
    #[command(after_help = "Example:\n  kai tools disable open_url")]
    Disable {
        /// The name that `kai tools list` shows first
        tool: String,
    },
    /// Run one tool and print the result a model would get
    #[command(
        after_help = "Examples:\n  kai tools call get_local_time\n  kai tools call memory_forget '{\"key\": \"tea\"}'\n  kai tools call memory_store - < tea.json"
    )]
    Call {
        /// The name that `kai tools list` shows first
        tool: String,
        /// A JSON object; `-` reads it from stdin
        #[arg(default_value = "{}")]
        arguments: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Say where the key lies (never the key)
    #[command(after_help = "Example:\n  kai key show")]
    Show,
    /// Move the key to the file, the desktop keyring, or lock it with a passphrase
    #[command(after_help = "Examples:\n  kai key move passphrase\n  kai key move keyring")]
    Move {
        /// Where it is to lie
        to: KeyDestination,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum KeyDestination {
    File,
    Keyring,
    Passphrase,
}

/// The value of a setting. A secret is not taken from the command line, where every process of this machine could
/// read it: it is asked for without being shown, or read from stdin. An empty one (`""`) is no secret, and removes it.
pub(super) fn setting_value(key: &str, value: Option<String>) -> Result<String, Failure> {
    match (value, settings::is_secret(key)) {
        (Some(value), true) if !value.is_empty() => Err(Failure::usage(format!(
            "{key} is a secret, and a command line can be read by others. Leave it out and type it when asked: \
             kai settings set {key}"
        ))),
        (Some(value), _) => Ok(value),
        (None, true) if input::has_person() => secret(&format!("{key}: ")),
        (None, true) => key_from_stdin(),
        (None, false) => Err(Failure::usage(format!("Say the value too: kai settings set {key} VALUE"))),
    }
}

/// The number of something, as its list shows it.
pub(super) fn number(typed: &str) -> Result<i64, &'static str> {
    typed.parse().map_err(|_| "it is a number, the one that the list shows first")
}

/// Arguments as typed, or from stdin.
pub(super) fn given(arguments: String) -> Result<String, Failure> {
    if arguments != "-" {
        return Ok(arguments);
    }
    let mut text = String::new();
    input::piped()
        .read_to_string(&mut text)
        .map_err(|e| Failure::usage(format!("Standard input could not be read: {e}.")))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command, CommandFactory};

    use super::*;

    /// All commands that people can see, with what is typed for them.
    fn walk(command: &Command, typed: &str, seen: &mut Vec<(String, Command)>) {
        seen.push((typed.to_owned(), command.clone()));
        for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            walk(one, &format!("{typed} {}", one.get_name()), seen);
        }
    }

    #[test]
    fn every_command_has_an_example_and_every_argument_a_word() {
        let mut seen = vec![];
        walk(&Args::command(), "kai", &mut seen);
        assert!(seen.len() > 40, "{}", seen.len());
        for (typed, command) in seen {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example") && help.contains(&format!("  {typed}")), "{typed}: {help:?}");
            assert!(command.get_about().is_some(), "{typed}");
            let silent = |arg: &&Arg| arg.get_help().is_none();
            let silent: Vec<_> = command.get_arguments().filter(silent).map(Arg::get_id).collect();
            assert!(silent.is_empty(), "{typed}: {silent:?}");
        }
    }

    #[test]
    fn a_preset_says_what_it_needs() {
        let help = models_help();
        assert!(help.contains("OpenAI-compatible server (needs --base-url and --model)"), "{help}");
        assert!(help.contains("LM Studio (needs --model)") && help.contains("OpenAI (gpt-"), "{help}");
    }
}
