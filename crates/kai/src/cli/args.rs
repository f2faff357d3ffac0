//! What can be typed, with help and examples.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::logs::Format;

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
    pub(super) serve: Serve,
    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

#[derive(Debug, Clone, clap::Args)]
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

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the daemon and the page (the default)
    #[command(after_help = "Examples:\n  kai serve --port 9000\n  kai serve --log-format json 2> kai.log")]
    Serve(Serve),
    /// Show what is on and where it lies
    #[command(after_help = "Examples:\n  kai status\n  kai status --json")]
    Status,
    /// Look for what is wrong and name the next step
    #[command(
        after_help = "Exit code 0 when all is well, 1 when something is broken, 3 when the store cannot be opened."
    )]
    Doctor,
    /// See and change settings
    #[command(
        subcommand,
        after_help = "Examples:\n  kai settings list\n  kai settings get theme\n  kai settings set memory_enabled false"
    )]
    Settings(SettingsCommand),
    /// See and forget what Kai remembers
    #[command(
        subcommand,
        after_help = "Examples:\n  kai memory list --json\n  kai memory forget favourite_colour"
    )]
    Memory(MemoryCommand),
    /// See the tools and try one as the model would
    #[command(
        subcommand,
        after_help = "Examples:\n  kai tools list\n  kai tools call get_local_time\n  kai tools call memory_store '{\"key\": \"tea\", \"content\": \"Likes green tea.\"}'"
    )]
    Tools(ToolsCommand),
    /// Print a fresh one-time link that signs a browser in
    #[command(after_help = "Examples:\n  kai link\n  kai link --revoke-all")]
    Link {
        /// End all sessions and unused links instead
        #[arg(long)]
        revoke_all: bool,
    },
    /// See where the store's key lies, or move it
    #[command(subcommand, after_help = "Examples:\n  kai key show\n  kai key move passphrase")]
    Key(KeyCommand),
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  kai completions bash > ~/.local/share/bash-completion/completions/kai"
    )]
    Completions { shell: Shell },
    #[cfg(debug_assertions)]
    #[command(name = "__panic", hide = true)]
    Panic,
}

#[derive(Debug, Subcommand)]
pub(super) enum SettingsCommand {
    /// All settings with their values
    List,
    /// Print one value
    Get { key: String },
    /// Change one value
    Set { key: String, value: String },
}

#[derive(Debug, Subcommand)]
pub(super) enum MemoryCommand {
    /// Everything Kai remembers, newest first
    List,
    /// Delete one memory
    Forget { key: String },
}

#[derive(Debug, Subcommand)]
pub(super) enum ToolsCommand {
    /// All tools, and why one is not offered
    List,
    /// Run one tool and print the result a model would get
    Call {
        tool: String,
        /// A JSON object; `-` reads it from stdin
        #[arg(default_value = "{}")]
        arguments: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Say where the key lies (never the key)
    Show,
    /// Move the key to the file, the desktop keyring, or lock it with a passphrase
    Move { to: KeyDestination },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum KeyDestination {
    File,
    Keyring,
    Passphrase,
}

/// Arguments as typed, or from stdin.
pub(super) fn given(arguments: String) -> Result<String, Failure> {
    if arguments != "-" {
        return Ok(arguments);
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|e| Failure::usage(format!("Standard input could not be read: {e}.")))?;
    Ok(text)
}
