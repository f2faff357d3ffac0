//! What can be typed about MCP.

use clap::Subcommand;

use super::servers::ServersCommand;

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    #[command(flatten)]
    Servers(ServersCommand),
    /// Let another program use Kai's tools, to read and to draft; it starts this itself
    #[command(
        after_help = "Speaks MCP on standard input and output, or over HTTP on this machine only. Nothing is sent until you tap Send.\n\nExamples:\n  kai mcp serve --print-config     (what to paste into the other program)\n  kai mcp serve --http --port 8766"
    )]
    Serve(ServeMcp),
    /// Decide which programs may ask Kai
    #[command(
        subcommand,
        after_help = "NAME is what the program calls itself, from `kai mcp guests list`.\n\nExamples:\n  kai settings set mcp_server_enabled true\n  kai mcp guests list\n  kai mcp guests allow claude-ai"
    )]
    Guests(GuestsCommand),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
pub(crate) struct ServeMcp {
    /// Serve over HTTP on 127.0.0.1 instead; each program needs a token
    #[arg(long)]
    pub(crate) http: bool,
    /// Port of --http; 0 picks any free port
    #[arg(long, requires = "http", default_value_t = 8766)]
    pub(crate) port: u16,
    /// Print what to paste into Claude Desktop, Zed and VS Code
    #[arg(long, conflicts_with = "http")]
    pub(crate) print_config: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GuestsCommand {
    /// List the programs that asked, and what they did last
    #[command(after_help = "Examples:\n  kai mcp guests list\n  kai mcp guests list --json")]
    List,
    /// Allow a program to use the tools that you enabled
    #[command(after_help = "Example:\n  kai mcp guests allow claude-ai")]
    Allow {
        /// What the program calls itself
        name: String,
    },
    /// Block a program
    #[command(after_help = "Example:\n  kai mcp guests block claude-ai")]
    Block {
        /// What the program calls itself
        name: String,
    },
    /// Make a token with which a program comes over HTTP; it is shown once and replaces the old one
    #[command(after_help = "Example:\n  kai mcp guests token my-agent")]
    Token {
        /// The name by which you know the program
        name: String,
    },
    /// Forget a program, its token and what it did; its drafts stay
    #[command(after_help = "Example:\n  kai mcp guests forget claude-ai")]
    Forget {
        /// What the program calls itself
        name: String,
    },
}
