//! What can be typed about mail accounts.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum EmailCommand {
    /// List your accounts, how they are doing, and how much new mail is waiting
    #[command(after_help = "Examples:\n  kai email list\n  kai email list --json")]
    List,
    /// Add an account; Kai asks for the password without showing it
    #[command(
        after_help = "Kai knows the servers of the large providers and guesses those of others. Many providers want an app password: one that you make on their pages, for Kai alone.\n\nExamples:\n  kai email add you@example.org\n  kai email add you@example.org --imap mail.example.org --smtp mail.example.org:587\n  pass show mail | kai email add you@example.org --password-stdin\n  kai email add you@example.org --token-command \"oama access you@example.org\""
    )]
    Add {
        /// Your address
        address: String,
        /// Server that Kai reads mail from [default: the provider's]
        #[arg(long, value_name = "HOST[:PORT]")]
        imap: Option<String>,
        /// Server that Kai sends mail by [default: the provider's]
        #[arg(long, value_name = "HOST[:PORT]")]
        smtp: Option<String>,
        /// Name to sign in with [default: the address]
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
        /// Read the password from standard input
        #[arg(long, conflicts_with = "token_command")]
        password_stdin: bool,
        /// Command that prints an access token, for providers that want OAuth
        #[arg(long, value_name = "COMMAND")]
        token_command: Option<String>,
    },
    /// Sign in to both servers of an account, and say what works
    #[command(after_help = "Example:\n  kai email test you@example.org")]
    Test {
        /// Address of the account, from `kai email list`
        account: String,
    },
    /// Remove an account and everything that Kai keeps of it; your mail stays on the server
    #[command(after_help = "Example:\n  kai email remove you@example.org")]
    Remove {
        /// Address of the account, from `kai email list`
        account: String,
    },
    /// Look for new mail now
    #[command(after_help = "Examples:\n  kai email poll\n  kai email poll you@example.org")]
    Poll {
        /// Address of the account [default: all accounts]
        account: Option<String>,
    },
    /// Show one mail in full, without sending it to a model
    #[command(after_help = "Example:\n  kai email read 1.1700000000.42")]
    Read {
        /// Id of the mail, from `kai email search`
        id: String,
    },
    /// Search the mail of all accounts on their servers
    #[command(after_help = "Example:\n  kai email search invoice")]
    Search {
        /// Text to search for
        text: String,
    },
}
