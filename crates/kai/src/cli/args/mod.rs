//! What can be typed, with help and examples.

pub(super) mod drafts;
pub(super) mod email;
pub(super) mod mcp;
#[cfg_attr(not(feature = "foss"), path = "no_messages.rs")]
pub(super) mod messages;
mod servers;

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::{ArgValueCandidates, Shell};
use kai_assistant::agent::conversation::{ConversationId, Which};
use kai_assistant::device::Place;
use kai_assistant::{models, settings};

use self::drafts::{CodesCommand, DraftsCommand};
use self::email::EmailCommand;
use self::mcp::McpCommand;
use self::messages::{DemoArg, MessagesCommand};
pub(super) use self::servers::ServersCommand;
use crate::cli::completing;
use crate::failure::Failure;
use crate::logs::Format;
use crate::terminal::{input, out};

/// A personal assistant that runs on your own machine and never sends a message without your tap.
///
/// Without a command, kai starts the daemon and prints a link that opens its page.
#[derive(Debug, Parser)]
#[command(
    name = "kai",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  kai                                run Kai; open the link it prints
  kai ask what day is it             one question, one answer
  kai status                         what's enabled and where it's stored
  kai doctor                         what's wrong and how to fix it
  kai settings set theme dark        change a setting
  kai --home ~/try status            use another home

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the store cannot be opened."
)]
pub(super) struct Args {
    /// Folder where Kai keeps everything [default: `$KAI_HOME`, or `~/.local/share/kai`]
    #[arg(long, global = true, help_heading = "Global options", value_name = "DIR")]
    pub(super) home: Option<PathBuf>,
    /// Print JSON with stable field names
    #[arg(long, global = true, help_heading = "Global options")]
    pub(super) json: bool,
    /// Read the home's passphrase from this open file descriptor
    #[arg(long, global = true, help_heading = "Global options", value_name = "N")]
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
    /// Port of the page; 0 picks any free port [default: 8787, or the next free one]
    #[arg(long)]
    pub(super) port: Option<u16>,
    /// Address of the page; anything but loopback is plain HTTP, which others on the network can read
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub(super) bind: IpAddr,
    /// Show the log on stderr: error, warn, info, debug or trace; `KAI_LOG` does the same [default: error on a terminal, else info]
    #[arg(long, value_name = "LEVEL")]
    pub(super) log: Option<String>,
    /// Format of the log [default: text]
    #[arg(long, value_enum)]
    pub(super) log_format: Option<Format>,
}

impl Serve {
    /// Was anything of it typed?
    pub(super) fn typed(&self) -> bool {
        let bind = IpAddr::V4(Ipv4Addr::LOCALHOST);
        *self != Self { port: None, bind, log: None, log_format: None }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the daemon and the page (the default)
    #[command(
        after_help = "Examples:\n  kai serve --port 9000\n  kai serve --log info\n  kai serve --log-format json 2> kai.log"
    )]
    Serve(Serve),
    /// Stop the daemon, as Ctrl-C does
    #[command(after_help = "Examples:\n  kai stop\n  kai --home ~/try stop")]
    Stop,
    /// Show what's enabled and where it's stored
    #[command(after_help = "Examples:\n  kai status\n  kai status --json")]
    Status,
    /// Check for problems and say how to fix them
    #[command(
        after_help = "Examples:\n  kai doctor\n  kai doctor --json\n\nExit codes: 0 no problems, 1 something is broken, 3 the store cannot be opened."
    )]
    Doctor,
    /// Ask one question and print the answer
    #[command(
        after_help = "Examples:\n  kai ask \"What day is it?\"\n  cat letter.txt | kai ask summarise this\n  kai ask --attach photo.jpg \"What is this?\"\n  kai ask --last \"and tomorrow?\"\n  kai ask --json \"hi\""
    )]
    Ask {
        /// Your question; piped input is attached to it
        words: Vec<String>,
        /// Attach a picture (JPEG, PNG, WebP) or a text file; can be repeated
        #[arg(long = "attach", value_name = "FILE")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        chat: WhichChat,
    },
    /// Chat with Kai on the terminal
    #[command(after_help = "Examples:\n  kai chat\n  kai chat --last\n  kai chat --chat 7")]
    Chat {
        #[command(flatten)]
        chat: WhichChat,
    },
    /// See, search, name, export and delete chats
    #[command(
        subcommand,
        after_help = "Examples:\n  kai chats list\n  kai chats search \"green tea\"\n  kai chats show 7"
    )]
    Chats(ChatsCommand),
    /// Set up language models
    #[command(
        subcommand,
        after_help = "Examples:\n  kai models get qwen2.5-1.5b      (runs on this computer, no account)\n  kai models add ollama --model qwen3\n  kai models add openai      (asks for the API key)\n  kai models add gemini --key-stdin < key.txt\n  kai models add openai-compatible --base-url http://127.0.0.1:8080/v1 --model any\n  kai models test"
    )]
    Models(ModelsCommand),
    /// Use tools of MCP servers, and let other programs use Kai's
    #[command(
        subcommand,
        after_help = "Examples:\n  kai mcp add time -- uvx mcp-server-time\n  kai mcp list\n  kai mcp import ~/.config/Claude/claude_desktop_config.json\n  kai mcp serve --print-config"
    )]
    Mcp(McpCommand),
    /// See and change settings
    #[command(
        subcommand,
        after_help = "Examples:\n  kai settings list\n  kai settings get theme\n  kai settings set memory_enabled false"
    )]
    Settings(SettingsCommand),
    /// Run a heartbeat now, preview the next one, or see the last ones
    #[command(
        subcommand,
        after_help = "Examples:\n  kai heartbeat run\n  kai heartbeat dry-run\n  kai heartbeat log --json"
    )]
    Heartbeat(HeartbeatCommand),
    /// See, confirm and delete what Kai remembers
    #[command(
        subcommand,
        after_help = "Examples:\n  kai memory list --json\n  kai memory forget favourite_colour\n  kai memory proposals\n  kai memory accept tea"
    )]
    Memory(MemoryCommand),
    /// See and cancel scheduled tasks
    #[command(
        subcommand,
        after_help = "Examples:\n  kai tasks list\n  kai tasks show 3\n  kai tasks cancel 3"
    )]
    Tasks(TasksCommand),
    /// See and cancel alarms that have not rung yet
    #[command(subcommand, after_help = "Examples:\n  kai alarms list\n  kai alarms cancel 3")]
    Alarms(AlarmsCommand),
    /// See Kai's tools, enable or disable them, and try one
    #[command(
        subcommand,
        after_help = "Examples:\n  kai tools list\n  kai tools call get_local_time\n  kai tools call memory_store '{\"key\": \"tea\", \"content\": \"Likes green tea.\"}'"
    )]
    Tools(ToolsCommand),
    /// See, send and discard messages that Kai drafted
    #[command(
        subcommand,
        after_help = "Examples:\n  kai drafts list\n  kai drafts send 3      (shows the whole draft, then asks)\n  kai drafts discard 3"
    )]
    Drafts(DraftsCommand),
    /// Add mail accounts, look for new mail, read and search it
    #[command(
        subcommand,
        after_help = "Examples:\n  kai email add you@example.org\n  kai email list\n  kai email poll\n  kai email search invoice"
    )]
    Email(EmailCommand),
    #[command(flatten)]
    Messages(MessagesCommand),
    /// See everything that was sent, run, tapped or allowed
    #[command(
        subcommand,
        after_help = "Examples:\n  kai ledger show\n  kai ledger verify\n  kai ledger who 4711      (which requests contained this SMS)\n  kai ledger bytes 17      (exactly what was sent)"
    )]
    Ledger(LedgerCommand),
    /// Print a new sign-in link for a browser; it works once
    #[command(after_help = "Examples:\n  kai link\n  kai link --revoke-all")]
    Link {
        /// Sign out all browsers and revoke unused links instead
        #[arg(long)]
        revoke_all: bool,
    },
    /// Open Kai's page in your browser, signed in
    #[command(after_help = "Examples:\n  kai open\n  kai open heartbeat")]
    Open {
        /// Which page to open
        #[arg(value_enum, default_value_t = Page::Chat)]
        page: Page,
    },
    /// Start Kai automatically when you log in, or stop doing so
    #[command(
        subcommand,
        after_help = "On Linux, Kai becomes a service of your systemd; on Termux, the app Termux:Boot starts it.\n\nExamples:\n  kai service install\n  kai service remove"
    )]
    Service(ServiceCommand),
    /// See where the store's key is kept, or move it
    #[command(subcommand, after_help = "Examples:\n  kai key show\n  kai key move passphrase")]
    Key(KeyCommand),
    /// Export your data to a JSON file
    #[command(
        after_help = "The file is not encrypted.\n\nExamples:\n  kai export kai.json\n  kai export - | gpg -c > kai.json.gpg\n  kai export memory.json --section memory\n  kai export all.json --secrets   (asks for a passphrase to encrypt them)"
    )]
    Export {
        /// File to write, or `-` for standard output; an existing file is never overwritten
        file: PathBuf,
        /// Export only this section (settings, memory, models, tasks, conversations); can be repeated
        #[arg(long = "section", value_name = "NAME")]
        sections: Vec<String>,
        /// Include API keys, encrypted with a passphrase
        #[arg(long)]
        secrets: bool,
    },
    /// Import a file that `kai export` wrote
    #[command(
        after_help = "Examples:\n  kai import kai.json             (shows what would change, then asks)\n  kai import kai.json --preview\n  kai import kai.json --replace --yes"
    )]
    Import {
        /// File to import
        file: PathBuf,
        /// Import only this section; can be repeated
        #[arg(long = "section", value_name = "NAME")]
        sections: Vec<String>,
        /// Replace whole sections instead of adding to them
        #[arg(long)]
        replace: bool,
        /// Only show what would change
        #[arg(long)]
        preview: bool,
        /// Import without asking
        #[arg(long)]
        yes: bool,
        /// Do not import the encrypted keys in the file
        #[arg(long)]
        no_secrets: bool,
    },
    /// Permanently delete everything in this home
    #[command(
        after_help = "Example:\n  kai erase\n\nKai asks you to type a confirmation. Stop the daemon first: kai stop"
    )]
    Erase,
    /// Print a shell completion script
    #[command(
        after_help = "The script asks Kai itself what fits, so it also completes presets, settings and the numbers of chats, drafts and tasks.\n\nExamples:\n  kai completions bash > ~/.local/share/bash-completion/completions/kai\n  kai completions fish > ~/.config/fish/completions/kai.fish\n  source <(kai completions zsh)"
    )]
    Completions {
        /// Which shell to print it for
        shell: Shell,
    },
    /// For Kai's own use when it runs a command
    #[command(name = "__sandbox", hide = true)]
    Sandbox { part: String },
    /// For Kai's own use when it starts an MCP server
    #[command(name = "__leash", hide = true)]
    Leash,
    /// For Kai's own use when it runs a model
    #[command(name = "__model", hide = true)]
    Model,
    #[cfg(debug_assertions)]
    #[command(name = "__panic", hide = true)]
    Panic,
}

impl Command {
    /// Whether it shows something of a home and never has to create one.
    pub(super) fn only_looks(&self) -> bool {
        matches!(self, Self::Status | Self::Doctor | Self::Stop | Self::Service(_))
    }
}

/// Which chat to continue.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct WhichChat {
    /// Continue the most recent chat
    #[arg(long, conflicts_with = "chat")]
    last: bool,
    /// Continue this chat
    #[arg(long, value_name = "ID", value_parser = number, add = ArgValueCandidates::new(completing::chats))]
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

    /// The same for a single question, for which a new chat is listed apart.
    pub(super) fn meant_by_question(self) -> Which {
        match self.meant() {
            Which::New => Which::Question,
            other => other,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum ChatsCommand {
    /// List all chats, newest first
    #[command(after_help = "Examples:\n  kai chats list\n  kai chats list --json")]
    List,
    /// Find chats that contain all these words
    #[command(after_help = "Example:\n  kai chats search \"green tea\"")]
    Search {
        /// Words to search for
        text: String,
    },
    /// Show one chat in full
    #[command(after_help = "Example:\n  kai chats show 7")]
    Show {
        /// Number of the chat, from `kai chats list`
        #[arg(value_parser = number, add = ArgValueCandidates::new(completing::chats))]
        id: i64,
    },
    /// Give one chat a name
    #[command(after_help = "Examples:\n  kai chats rename 7 \"Green tea\"\n  kai chats rename 7 \"\"")]
    Rename {
        /// Number of the chat, from `kai chats list`
        #[arg(value_parser = number, add = ArgValueCandidates::new(completing::chats))]
        id: i64,
        /// The name; empty to call the chat by its first words again
        name: String,
    },
    /// Keep one chat at the top of the page's list
    #[command(after_help = "Example:\n  kai chats pin 7")]
    Pin {
        /// Number of the chat, from `kai chats list`
        #[arg(value_parser = number, add = ArgValueCandidates::new(completing::chats))]
        id: i64,
    },
    /// Unpin one chat
    #[command(after_help = "Example:\n  kai chats unpin 7")]
    Unpin {
        /// Number of the chat, from `kai chats list`
        #[arg(value_parser = number, add = ArgValueCandidates::new(completing::chats))]
        id: i64,
    },
    /// Export one chat as Markdown
    #[command(
        after_help = "One-time codes that Kai hides are not in the file.\n\nExamples:\n  kai chats export 7 tea.md\n  kai chats export 7 | less"
    )]
    Export {
        /// Number of the chat, from `kai chats list`
        #[arg(value_parser = number, add = ArgValueCandidates::new(completing::chats))]
        id: i64,
        /// The file to write; without it, the chat is printed
        file: Option<PathBuf>,
    },
    /// Delete one chat; Kai asks first
    #[command(
        after_help = "You can take this back for a minute: kai chats undo\n\nExamples:\n  kai chats delete 7\n  kai chats delete 7 --yes"
    )]
    Delete {
        /// Number of the chat, from `kai chats list`
        #[arg(value_parser = number, add = ArgValueCandidates::new(completing::chats))]
        id: i64,
        /// Delete without asking
        #[arg(long)]
        yes: bool,
    },
    /// Take back the last deletion, for a minute
    #[command(after_help = "Example:\n  kai chats undo")]
    Undo,
    #[command(flatten)]
    Codes(CodesCommand),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Page {
    /// The current chat
    Chat,
    /// The heartbeat's chat
    Heartbeat,
    /// The first waiting draft
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
    /// List the models in the order Kai asks them
    #[command(after_help = "Examples:\n  kai models list\n  kai models list --json")]
    List,
    /// List models that run on this computer, or download one and add it
    #[command(
        after_help = "Examples:\n  kai models get                  (lists them and says which one fits)\n  kai models get qwen2.5-1.5b\n\nCtrl-C stops the download; the same command continues it."
    )]
    Get {
        /// Name of the model, from the list [default: list them]
        #[arg(add = ArgValueCandidates::new(completing::local_models))]
        name: Option<String>,
    },
    /// Add a model, or change the one with the same name
    #[command(after_help = models_help())]
    Add {
        /// Service or server, from the list below
        #[arg(add = ArgValueCandidates::new(completing::presets))]
        preset: String,
        /// Name to show for it [default: the preset's name]
        #[arg(long)]
        name: Option<String>,
        /// Address of the server [default: the preset's]
        #[arg(long)]
        base_url: Option<String>,
        /// Which model to use there [default: the preset's]
        #[arg(long)]
        model: Option<String>,
        /// Context window in tokens, or auto [default: what the server reports]
        #[arg(long, value_name = "TOKENS")]
        context: Option<String>,
        /// Whether it can see pictures: yes, no or auto [default: what Kai knows of it]
        #[arg(long, value_name = "YES|NO|AUTO")]
        pictures: Option<String>,
        /// Read the API key from standard input; on a terminal, Kai asks for it instead
        #[arg(long)]
        key_stdin: bool,
        /// The GGUF file of a model that Kai runs itself (with the preset local)
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Set a model's context window, or let Kai detect it again
    #[command(after_help = "Examples:\n  kai models context ollama 32768\n  kai models context ollama auto")]
    Context {
        /// Name of the model, from `kai models list`
        #[arg(add = ArgValueCandidates::new(completing::models))]
        name: String,
        /// Number of tokens, or auto
        context: String,
    },
    /// Say whether a model can see pictures, or let Kai decide again
    #[command(
        after_help = "Examples:\n  kai models pictures llamacpp yes\n  kai models pictures llamacpp auto"
    )]
    Pictures {
        /// Name of the model, from `kai models list`
        #[arg(add = ArgValueCandidates::new(completing::models))]
        name: String,
        /// yes, no or auto
        pictures: String,
    },
    /// Check whether all models answer, or just one
    #[command(after_help = "Examples:\n  kai models test\n  kai models test ollama")]
    Test {
        /// Name of the model, from `kai models list` [default: all models]
        #[arg(add = ArgValueCandidates::new(completing::models))]
        name: Option<String>,
    },
    /// Remove a model and its API key
    #[command(
        after_help = "Examples:\n  kai models remove openai\n  kai models remove qwen2.5-1.5b --delete-file"
    )]
    Remove {
        /// Name of the model, from `kai models list`
        #[arg(add = ArgValueCandidates::new(completing::models))]
        name: String,
        /// Also delete the file that Kai downloaded for it; on a terminal, Kai asks
        #[arg(long, conflicts_with = "keep_file")]
        delete_file: bool,
        /// Keep that file without asking
        #[arg(long)]
        keep_file: bool,
    },
    /// Make Kai ask this model first
    #[command(after_help = "Example:\n  kai models first ollama")]
    First {
        /// Name of the model, from `kai models list`
        #[arg(add = ArgValueCandidates::new(completing::models))]
        name: String,
    },
}

fn models_help() -> String {
    let line = |preset: &kai_llm::Preset| {
        let key =
            preset.key_env.first().map(|name| format!(", API key also from ${name}")).unwrap_or_default();
        let model = match (&preset.base_url, &preset.model) {
            (None, _) => "needs --base-url and --model",
            (_, None) => "needs --model",
            (_, Some(model)) => model,
        };
        format!("  {:<18} {} ({model}{key})", preset.id, preset.name)
    };
    let presets = kai_llm::presets().iter().map(line).collect::<Vec<_>>().join("\n");
    let own = format!("  {:<18} a GGUF file that Kai runs itself (needs --file)", models::BUILT_IN);
    format!("{ADD_EXAMPLES}\n\nPresets:\n{presets}\n{own}")
}

const ADD_EXAMPLES: &str = "\
Examples:
  kai models add openai          (asks for the API key)
  kai models add gemini --key-stdin < key.txt
  kai models add ollama --model qwen3
  kai models add local --file ~/model.gguf
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
    let typed = secret(&format!("API key for {}: ", out::visible(name)))?;
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
        return Err(Failure::usage("Standard input contains no API key."));
    }
    Ok(key.to_owned())
}

#[derive(Debug, Subcommand)]
pub(super) enum SettingsCommand {
    /// List all settings and their values
    #[command(after_help = "Examples:\n  kai settings list\n  kai settings list --json")]
    List,
    /// Print the value of a setting
    #[command(after_help = "Example:\n  kai settings get theme")]
    Get {
        /// Name of the setting, from `kai settings list`
        #[arg(add = ArgValueCandidates::new(completing::settings))]
        key: String,
    },
    /// Change a setting
    #[command(
        after_help = "Examples:\n  kai settings set theme dark\n  kai settings set heartbeat_model \"\"\n  kai settings set web_search_brave_key      (asks for the value)"
    )]
    Set {
        /// Name of the setting, from `kai settings list`
        #[arg(add = ArgValueCandidates::new(completing::settings))]
        key: String,
        /// New value; for a secret, leave it out: Kai asks for it, or reads it from standard input
        #[arg(add = ArgValueCandidates::new(completing::setting_values))]
        value: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum HeartbeatCommand {
    /// Run a heartbeat now, at any hour; Kai asks a model only if something is new
    #[command(after_help = "Examples:\n  kai heartbeat run\n  kai heartbeat run --force")]
    Run {
        /// Ask a model even if nothing is new
        #[arg(long)]
        force: bool,
    },
    /// Show the exact prompt of the next heartbeat without running it
    #[command(after_help = "Example:\n  kai heartbeat dry-run")]
    DryRun,
    /// List the last heartbeats and their results, newest first
    #[command(after_help = "Examples:\n  kai heartbeat log\n  kai heartbeat log --json")]
    Log,
}

#[derive(Debug, Subcommand)]
pub(super) enum LedgerCommand {
    /// List the newest records
    #[command(after_help = "Examples:\n  kai ledger show\n  kai ledger show --limit 500 --json")]
    Show {
        /// How many records to list
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Verify that no record was altered, removed or replaced
    #[command(after_help = "Example:\n  kai ledger verify")]
    Verify,
    /// Accept an older copy of the store that you restored on purpose; Kai asks first
    #[command(after_help = "Example:\n  kai ledger accept")]
    Accept,
    /// Find the requests that contained a message
    #[command(after_help = "Example:\n  kai ledger who 4711")]
    Who {
        /// Number of an SMS or id of a notification, from its list
        id: String,
    },
    /// Print exactly what a request sent
    #[command(after_help = "Example:\n  kai ledger bytes 17")]
    Bytes {
        /// Number of the record, from `kai ledger show`
        #[arg(value_parser = number)]
        seq: i64,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum MemoryCommand {
    /// List everything Kai remembers, newest first
    #[command(after_help = "Examples:\n  kai memory list\n  kai memory list --json")]
    List,
    /// Delete one memory
    #[command(after_help = "Example:\n  kai memory forget favourite_colour")]
    Forget {
        /// Key of the memory, from `kai memory list`
        #[arg(add = ArgValueCandidates::new(completing::memories))]
        key: String,
    },
    /// Confirm a memory, so that Kai uses it
    #[command(after_help = "Examples:\n  kai memory list\n  kai memory confirm tea")]
    Confirm {
        /// Key of the memory, from `kai memory list`
        #[arg(add = ArgValueCandidates::new(completing::memories))]
        key: String,
    },
    /// List what Kai suggests adding to its personality
    #[command(after_help = "Example:\n  kai memory proposals")]
    Proposals,
    /// Accept a suggestion: Kai adds it to its personality, which starts every prompt
    #[command(after_help = "Example:\n  kai memory accept tea")]
    Accept {
        /// Key of the suggestion, from `kai memory proposals`
        key: String,
    },
    /// Decline a suggestion
    #[command(after_help = "Example:\n  kai memory decline tea")]
    Decline {
        /// Key of the suggestion, from `kai memory proposals`
        key: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum AlarmsCommand {
    /// List all alarms and timers, soonest first
    #[command(after_help = "Examples:\n  kai alarms list\n  kai alarms list --json")]
    List,
    /// Cancel an alarm before it rings
    #[command(after_help = "Example:\n  kai alarms cancel 3")]
    Cancel {
        /// Number of the alarm, from `kai alarms list`
        #[arg(value_parser = number, add = ArgValueCandidates::new(completing::alarms))]
        id: i64,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum TasksCommand {
    /// List all tasks, soonest first
    #[command(after_help = "Examples:\n  kai tasks list\n  kai tasks list --json")]
    List,
    /// Show one task with its prompt and its last runs
    #[command(after_help = "Example:\n  kai tasks show 3")]
    Show {
        /// Number of the task, from `kai tasks list`
        #[arg(value_parser = number, add = ArgValueCandidates::new(completing::tasks))]
        id: i64,
    },
    /// Cancel a task
    #[command(after_help = "Example:\n  kai tasks cancel 3")]
    Cancel {
        /// Number of the task, from `kai tasks list`
        #[arg(value_parser = number, add = ArgValueCandidates::new(completing::tasks))]
        id: i64,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum ToolsCommand {
    /// List all tools, and why some are not offered
    #[command(after_help = "Examples:\n  kai tools list\n  kai tools list --json")]
    List,
    /// Offer a tool to the model
    #[command(after_help = "Example:\n  kai tools enable shell_command")]
    Enable {
        /// Name of the tool, from `kai tools list`
        #[arg(add = ArgValueCandidates::new(completing::tools))]
        tool: String,
    },
    /// Stop offering a tool to the model
    #[command(after_help = "Example:\n  kai tools disable open_url")]
    Disable {
        /// Name of the tool, from `kai tools list`
        #[arg(add = ArgValueCandidates::new(completing::tools))]
        tool: String,
    },
    /// Run a tool and print the result that a model would get
    #[command(
        after_help = "Examples:\n  kai tools call get_local_time\n  kai tools call memory_forget '{\"key\": \"tea\"}'\n  kai tools call memory_store - < tea.json"
    )]
    Call {
        /// Name of the tool, from `kai tools list`
        #[arg(add = ArgValueCandidates::new(completing::tools))]
        tool: String,
        /// Arguments as a JSON object; `-` reads them from standard input
        #[arg(default_value = "{}")]
        arguments: String,
    },
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub(super) enum ServiceCommand {
    /// Set it up, and start Kai now
    #[command(after_help = "Examples:\n  kai service install\n  kai --home ~/try service install --json")]
    Install,
    /// Stop Kai and remove the service; your data stays
    #[command(after_help = "Example:\n  kai service remove")]
    Remove,
}

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Show where the key is kept (never the key itself)
    #[command(after_help = "Example:\n  kai key show")]
    Show,
    /// Move the key to a file or to the desktop keyring, or lock it with a passphrase
    #[command(after_help = "Examples:\n  kai key move passphrase\n  kai key move keyring")]
    Move {
        /// Where to keep the key
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
            "{key} is a secret, and other users of this machine can read command lines. Leave the value out, and Kai \
             asks for it: kai settings set {key}"
        ))),
        (Some(value), _) => Ok(value),
        (None, true) if input::has_person() => secret(&format!("{key}: ")),
        (None, true) => key_from_stdin(),
        (None, false) => {
            Err(Failure::usage(format!("The value is missing. Type: kai settings set {key} VALUE")))
        }
    }
}

/// The number of something, as its list shows it.
pub(super) fn number(typed: &str) -> Result<i64, &'static str> {
    typed.parse().map_err(|_| "use the number from the list")
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
