//! The arguments of `kai mcp` that are about other people's servers.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ServersCommand {
    /// List the MCP servers, how they are doing, and how many of their tools can be used
    #[command(after_help = "Examples:\n  kai mcp list\n  kai mcp list --json")]
    List,
    /// Add a server, look at its tools, and approve them
    #[command(
        after_help = "Examples:\n  kai mcp add time -- uvx mcp-server-time\n  kai mcp add files -- npx -y @modelcontextprotocol/server-filesystem ~/Documents\n  kai mcp add notes --url https://notes.example/mcp --header \"Authorization: Bearer TOKEN\"\n  kai mcp add work --env TOKEN=secret -- work-mcp"
    )]
    Add {
        /// Short name: lower-case letters, digits and hyphens
        name: String,
        /// Address of a server that is reached over HTTP
        #[arg(long, conflicts_with = "command")]
        url: Option<String>,
        /// Header to send, as "Name: value"; can be repeated. Kai stores the value encrypted
        #[arg(long = "header", value_name = "NAME: VALUE", requires = "url")]
        headers: Vec<String>,
        /// Environment variable for the program, as NAME=value; can be repeated. Kai stores the value encrypted
        #[arg(long = "env", value_name = "NAME=VALUE", conflicts_with = "url")]
        env: Vec<String>,
        /// Approve all of its tools without asking
        #[arg(long)]
        yes: bool,
        /// The program to start, and its arguments
        #[arg(last = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Show the tools of a server, or of all
    #[command(after_help = "Examples:\n  kai mcp tools\n  kai mcp tools time --json")]
    Tools {
        /// Name of the server, from `kai mcp list` [default: all servers]
        name: Option<String>,
    },
    /// Look at the new and changed tools of a server, and approve them
    #[command(
        after_help = "Examples:\n  kai mcp approve time\n  kai mcp approve time get_current_time --yes"
    )]
    Approve {
        /// Name of the server, from `kai mcp list`
        name: String,
        /// Names of tools [default: all that are new or changed]
        tools: Vec<String>,
        /// Approve them without asking
        #[arg(long)]
        yes: bool,
    },
    /// Turn a server or one of its tools on
    #[command(after_help = "Examples:\n  kai mcp enable time\n  kai mcp enable time convert_time")]
    Enable {
        /// Name of the server, from `kai mcp list`
        name: String,
        /// Name of the tool [default: the whole server]
        tool: Option<String>,
    },
    /// Turn a server or one of its tools off
    #[command(after_help = "Examples:\n  kai mcp disable time\n  kai mcp disable time convert_time")]
    Disable {
        /// Name of the server, from `kai mcp list`
        name: String,
        /// Name of the tool [default: the whole server]
        tool: Option<String>,
    },
    /// Let a tool run without a click in a chat that has read nothing
    #[command(
        after_help = "Examples:\n  kai mcp dont-ask notes search\n  kai mcp dont-ask notes search --off"
    )]
    DontAsk {
        /// Name of the server, from `kai mcp list`
        name: String,
        /// Name of the tool
        tool: String,
        /// Ask again
        #[arg(long)]
        off: bool,
    },
    /// Let tasks use a tool that only reads
    #[command(
        after_help = "Examples:\n  kai mcp in-tasks time get_current_time\n  kai mcp in-tasks time get_current_time --off"
    )]
    InTasks {
        /// Name of the server, from `kai mcp list`
        name: String,
        /// Name of the tool
        tool: String,
        /// Not any more
        #[arg(long)]
        off: bool,
    },
    /// Connect anew, and show what the server answers
    #[command(after_help = "Example:\n  kai mcp test time")]
    Test {
        /// Name of the server, from `kai mcp list`
        name: String,
    },
    /// Remove a server with its secrets and approvals
    #[command(after_help = "Example:\n  kai mcp remove time")]
    Remove {
        /// Name of the server, from `kai mcp list`
        name: String,
    },
    /// Add the servers of Claude Desktop, VS Code, Cursor or Zed
    #[command(
        after_help = "Shows what would be added and asks first.\n\nExamples:\n  kai mcp import ~/.config/Claude/claude_desktop_config.json\n  kai mcp import .vscode/mcp.json --preview"
    )]
    Import {
        /// Their file
        file: PathBuf,
        /// Only show what would be added
        #[arg(long)]
        preview: bool,
        /// Add them without asking
        #[arg(long)]
        yes: bool,
    },
    /// Sign in to a server that asks for it
    #[command(after_help = "Example:\n  kai mcp sign-in notes")]
    SignIn {
        /// Name of the server, from `kai mcp list`
        name: String,
    },
    /// Forget the sign-in to a server
    #[command(after_help = "Example:\n  kai mcp sign-out notes")]
    SignOut {
        /// Name of the server, from `kai mcp list`
        name: String,
    },
}
