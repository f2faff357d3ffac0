//! What can be typed about SMS, drafts, notifications, one-time codes and the demo.

use clap::Subcommand;
use kai_assistant::home::Home;

use super::number;
use crate::demo;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArg {
    /// The demo: a simulated phone and a scripted model, in a home of its own inside the home
    #[arg(long, global = true)]
    demo: bool,
}

impl DemoArg {
    /// The home that is meant. Only a command that starts the demo creates the demo's home.
    pub(crate) fn home(&self, home: Home, starts: bool) -> Result<Home, Failure> {
        if self.demo { demo::home_in(home, starts) } else { Ok(home) }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum MessagesCommand {
    /// Your phone's SMS: look for new ones, read, search
    #[command(
        subcommand,
        after_help = "Examples:\n  kai settings set sms_enabled true\n  kai sms poll\n  kai sms read 4711\n  kai sms search \"dinner\""
    )]
    Sms(SmsCommand),
    /// Messages that Kai drafted: see, send, discard
    #[command(
        subcommand,
        after_help = "Examples:\n  kai drafts list\n  kai drafts send 3      (shows it whole, then asks)\n  kai drafts discard 3"
    )]
    Drafts(DraftsCommand),
    /// Make something arrive in a running demo (kai serve --demo)
    #[command(subcommand, after_help = "Example:\n  kai demo sms --from +15550100 \"Are you coming?\"")]
    Demo(DemoCommand),
    /// See the notifications of other apps that Kai may read
    #[command(
        subcommand,
        after_help = "Examples:\n  kai settings set notifications_enabled true\n  kai notifications list\n  kai notifications search dinner\n  kai notifications refresh"
    )]
    Notifications(NotificationsCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum CodesCommand {
    /// Let the assistant see one-time codes in one conversation, or hide them again
    #[command(after_help = "Examples:\n  kai chats codes 7 show\n  kai chats codes 7 hide")]
    Codes {
        /// The number that `kai chats list` shows first
        #[arg(value_parser = number)]
        id: i64,
        /// What the assistant is to see
        #[arg(value_enum)]
        what: ShowOrHide,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ShowOrHide {
    Show,
    Hide,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SmsCommand {
    /// Look at the phone's inbox now
    #[command(after_help = "Example:\n  kai sms poll")]
    Poll,
    /// What arrived and waits for the next heartbeat
    #[command(after_help = "Examples:\n  kai sms list\n  kai sms list --json")]
    List,
    /// One message whole, for your own eyes
    #[command(after_help = "Example:\n  kai sms read 4711")]
    Read {
        /// The number that `kai sms list` shows first
        #[arg(value_parser = number)]
        id: i64,
    },
    /// Erase what Kai keeps of your messages, once reading is off
    #[command(
        after_help = "Asks on the terminal first. Your phone's messages, drafts, conversations and the ledger stay as they are.\n\nExample:\n  kai settings set sms_enabled false\n  kai sms forget"
    )]
    Forget,
    /// Search the inbox by sender and text
    #[command(after_help = "Example:\n  kai sms search dinner")]
    Search {
        /// What the sender or the text holds
        text: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum DraftsCommand {
    /// All drafts with what became of them
    #[command(after_help = "Examples:\n  kai drafts list\n  kai drafts list --json")]
    List,
    /// One draft whole
    #[command(after_help = "Example:\n  kai drafts show 3")]
    Show {
        /// The number that `kai drafts list` shows first
        #[arg(value_parser = number)]
        id: i64,
    },
    /// Show a draft whole, ask, and send it
    #[command(after_help = "Example:\n  kai drafts send 3")]
    Send {
        /// The number that `kai drafts list` shows first
        #[arg(value_parser = number)]
        id: i64,
    },
    /// Take a draft away without sending it
    #[command(after_help = "Example:\n  kai drafts discard 3")]
    Discard {
        /// The number that `kai drafts list` shows first
        #[arg(value_parser = number)]
        id: i64,
    },
    /// Try again to send a draft that failed
    #[command(after_help = "Example:\n  kai drafts retry 3")]
    Retry {
        /// The number that `kai drafts list` shows first
        #[arg(value_parser = number)]
        id: i64,
    },
    /// Take away a draft that was sent, or may have been
    #[command(after_help = "Example:\n  kai drafts dismiss 3")]
    Dismiss {
        /// The number that `kai drafts list` shows first
        #[arg(value_parser = number)]
        id: i64,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum DemoCommand {
    /// An SMS arrives on the simulated phone
    #[command(
        after_help = "Examples:\n  kai demo sms \"Are you coming?\"\n  kai demo sms --from +15550177 \"Are you there?\""
    )]
    Sms {
        /// The number it comes from
        #[arg(long, default_value = "+15550100")]
        from: String,
        /// What it says
        text: String,
    },
    /// An app of the simulated phone shows a notification
    #[command(after_help = "Example:\n  kai demo notify --app Signal --title Bob \"Lunch?\"")]
    Notify {
        /// The app that shows it
        #[arg(long, default_value = "WhatsApp")]
        app: String,
        /// Its first line, such as who wrote
        #[arg(long, default_value = "Alice")]
        title: String,
        /// What it says
        text: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum NotificationsCommand {
    /// Those that wait for the next heartbeat, oldest first
    #[command(after_help = "Examples:\n  kai notifications list\n  kai notifications list --all")]
    List {
        /// All that are kept, newest first: those of the last day
        #[arg(long)]
        all: bool,
    },
    /// One in full
    #[command(after_help = "Example:\n  kai notifications read '0|org.example.chat|7|null|10123'")]
    Read {
        /// The id that `kai notifications list` shows below it
        id: String,
    },
    /// Search those of the last day, newest first
    #[command(
        after_help = "Examples:\n  kai notifications search dinner\n  kai notifications search dinner --app com.whatsapp"
    )]
    Search {
        /// What the app, the title or the text holds
        text: String,
        /// Only those of this app
        #[arg(long, value_name = "PACKAGE")]
        app: Option<String>,
    },
    /// Empty the queue; what is kept can still be searched
    #[command(after_help = "Example:\n  kai notifications clear")]
    Clear,
    /// Erase all notifications that Kai keeps, once reading is off
    #[command(
        after_help = "Asks on the terminal first. Conversations and the ledger stay as they are.\n\nExample:\n  kai settings set notifications_enabled false\n  kai notifications forget"
    )]
    Forget,
    /// Look now, and say how it stands
    #[command(after_help = "Example:\n  kai notifications refresh")]
    Refresh,
}
