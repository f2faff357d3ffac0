//! What can be typed about SMS, notifications, paired phones and the demo.

use clap::Subcommand;
use kai_assistant::home::Home;
use kai_assistant::phones::Switch;

use super::number;
use crate::demo;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArg {
    /// Use the demo: simulated phones and mail and scripted models, in its own folder inside the home
    #[arg(long, global = true, help_heading = "Global options")]
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
    /// Check your phone for new SMS, read them and search them
    #[command(
        subcommand,
        after_help = "Examples:\n  kai settings set sms_enabled true\n  kai sms poll\n  kai sms read 4711\n  kai sms search \"dinner\""
    )]
    Sms(SmsCommand),
    /// Play with the running demo (kai serve --demo): make messages arrive
    #[command(
        subcommand,
        after_help = "Examples:\n  kai demo sms --from +15550100 \"Are you coming?\"\n  kai demo link"
    )]
    Demo(DemoCommand),
    /// See and search the notifications of other apps
    #[command(
        subcommand,
        after_help = "Examples:\n  kai settings set notifications_enabled true\n  kai notifications list\n  kai notifications search dinner\n  kai notifications refresh"
    )]
    Notifications(NotificationsCommand),
    /// Pair phones and choose what Kai can do with each
    #[command(
        subcommand,
        after_help = "A phone needs the KDE Connect app. PHONE is its name or its number from `kai phones list`.\n\nExamples:\n  kai phones pair\n  kai phones list\n  kai phones set \"Pixel 8\" read_sms on\n  kai phones remove \"Pixel 8\""
    )]
    Phones(PhonesCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum PhonesCommand {
    /// List paired phones, what is enabled for each, and how many messages Kai keeps
    #[command(after_help = "Examples:\n  kai phones list\n  kai phones list --json")]
    List,
    /// Search for phones on your network and pair one
    #[command(
        after_help = "Open the KDE Connect app on the phone first. Kai shows a key; pair only if the phone shows the same one. While Kai searches, a port is open to your local network. Press Ctrl-C to stop.\n\nExamples:\n  kai phones pair\n  kai phones pair 192.168.1.20"
    )]
    Pair {
        /// Address of the phone, if the search does not find it
        address: Option<String>,
    },
    /// Give a phone another name
    #[command(after_help = "Example:\n  kai phones rename \"Pixel 8\" Mine")]
    Rename {
        /// Name or number of the phone
        phone: String,
        /// The new name
        name: String,
    },
    /// Unpair a phone; asks whether to delete its messages from Kai as well
    #[command(
        after_help = "Nothing on the phone itself is deleted.\n\nExamples:\n  kai phones remove \"Pixel 8\"\n  kai phones remove 2 --keep-messages"
    )]
    Remove {
        /// Name or number of the phone
        phone: String,
        /// Keep the messages and notifications that Kai stored
        #[arg(long)]
        keep_messages: bool,
    },
    /// Send new messages from this phone unless another one is named
    #[command(
        after_help = "Replies always leave by the phone that received the message.\n\nExample:\n  kai phones default \"Pixel 8\""
    )]
    Default {
        /// Name or number of the phone; 1 is the phone that Kai runs on
        phone: String,
    },
    /// Turn one of a phone's switches on or off
    #[command(
        after_help = "Examples:\n  kai phones set \"Pixel 8\" read_sms on\n  kai phones set 2 notifications off"
    )]
    Set {
        /// Name or number of the phone
        phone: String,
        /// What to turn on or off
        #[arg(value_enum)]
        switch: PhoneSwitch,
        /// Whether to turn it on or off
        #[arg(value_enum)]
        to: OnOrOff,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum PhoneSwitch {
    /// Read its SMS
    ReadSms,
    /// Send SMS by it, each after your tap
    SendSms,
    /// Read its notifications
    Notifications,
    /// Show the names of its contacts beside numbers
    Names,
    /// Offer to open a draft in its own SMS app
    Composer,
    /// Show on it that a report or a draft is waiting
    Tell,
}

impl From<PhoneSwitch> for Switch {
    fn from(typed: PhoneSwitch) -> Self {
        match typed {
            PhoneSwitch::ReadSms => Self::ReadSms,
            PhoneSwitch::SendSms => Self::SendSms,
            PhoneSwitch::Notifications => Self::Notifications,
            PhoneSwitch::Names => Self::Names,
            PhoneSwitch::Composer => Self::Composer,
            PhoneSwitch::Tell => Self::Tell,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OnOrOff {
    On,
    Off,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SmsCommand {
    /// Check the phone for new messages now
    #[command(after_help = "Example:\n  kai sms poll")]
    Poll,
    /// List new messages that are waiting for the next heartbeat
    #[command(after_help = "Examples:\n  kai sms list\n  kai sms list --json")]
    List,
    /// Show one message in full, without sending it to a model
    #[command(after_help = "Example:\n  kai sms read 4711")]
    Read {
        /// Number of the message, from `kai sms list`
        #[arg(value_parser = number)]
        id: i64,
    },
    /// Erase the messages that Kai keeps; turn reading off first
    #[command(
        after_help = "Kai asks you to confirm. The messages on your phone, drafts, chats and the ledger stay as they are.\n\nExamples:\n  kai settings set sms_enabled false\n  kai sms forget"
    )]
    Forget,
    /// Search the phone's inbox by sender and text
    #[command(after_help = "Example:\n  kai sms search dinner")]
    Search {
        /// Text to search for
        text: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum DemoCommand {
    /// Print a sign-in link for the running demo's page
    #[command(after_help = "Example:\n  kai demo link")]
    Link,
    /// Make an SMS arrive on the simulated phone
    #[command(
        after_help = "Examples:\n  kai demo sms \"Are you coming?\"\n  kai demo sms --from +15550177 \"Are you there?\""
    )]
    Sms {
        /// The sender's number
        #[arg(long, default_value = "+15550100")]
        from: String,
        /// Text of the message
        text: String,
    },
    /// Make an app on the simulated phone show a notification
    #[command(after_help = "Example:\n  kai demo notify --app Signal --title Bob \"Lunch?\"")]
    Notify {
        /// Name of the app
        #[arg(long, default_value = "WhatsApp")]
        app: String,
        /// Title, for example the sender's name
        #[arg(long, default_value = "Alice")]
        title: String,
        /// Text of the notification
        text: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum NotificationsCommand {
    /// List notifications that are waiting for the next heartbeat, oldest first
    #[command(after_help = "Examples:\n  kai notifications list\n  kai notifications list --all")]
    List {
        /// List all notifications from the last day instead, newest first
        #[arg(long)]
        all: bool,
    },
    /// Show one notification in full
    #[command(after_help = "Example:\n  kai notifications read '0|org.example.chat|7|null|10123'")]
    Read {
        /// Id of the notification, from `kai notifications list`
        id: String,
    },
    /// Search the notifications from the last day, newest first
    #[command(
        after_help = "Examples:\n  kai notifications search dinner\n  kai notifications search dinner --app com.whatsapp"
    )]
    Search {
        /// Text to search for in the app's name, the title and the text
        text: String,
        /// Search only this app's notifications
        #[arg(long, value_name = "PACKAGE")]
        app: Option<String>,
    },
    /// Clear the queue; you can still search the notifications
    #[command(after_help = "Example:\n  kai notifications clear")]
    Clear,
    /// Erase all notifications that Kai keeps; turn reading off first
    #[command(
        after_help = "Kai asks you to confirm. Chats and the ledger stay as they are.\n\nExamples:\n  kai settings set notifications_enabled false\n  kai notifications forget"
    )]
    Forget,
    /// Check access to notifications now, and show the status
    #[command(after_help = "Example:\n  kai notifications refresh")]
    Refresh,
}
