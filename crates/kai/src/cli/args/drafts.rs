//! What can be typed about drafts and one-time codes.

use clap::{ArgGroup, Subcommand};
use clap_complete::ArgValueCandidates;

use super::number;
use crate::cli::completing;

#[derive(Debug, Subcommand)]
pub(crate) enum DraftsCommand {
    /// List all drafts and their status
    #[command(
        after_help = "Examples:\n  kai drafts list\n  kai drafts list --full\n  kai drafts list --json"
    )]
    List {
        /// Show the texts in full instead of their first words
        #[arg(long)]
        full: bool,
    },
    /// Show one draft in full
    #[command(after_help = "Example:\n  kai drafts show 3")]
    Show {
        /// Number of the draft, from `kai drafts list`
        #[arg(value_parser = number, add = ArgValueCandidates::new(completing::drafts))]
        id: i64,
    },
    /// Show a draft in full, ask you, then send it
    #[command(after_help = "Example:\n  kai drafts send 3")]
    Send {
        /// Number of the draft, from `kai drafts list`
        #[arg(value_parser = number, add = ArgValueCandidates::new(completing::drafts))]
        id: i64,
    },
    /// Show a draft in full, ask you, then open it in your phone's own SMS app, where you send it
    #[command(after_help = "Example:\n  kai drafts compose 3")]
    Compose {
        /// Number of the draft, from `kai drafts list`
        #[arg(value_parser = number, add = ArgValueCandidates::new(completing::drafts))]
        id: i64,
    },
    /// Change the text or the recipient of a draft that was not sent
    #[command(
        group = ArgGroup::new("change").args(["text", "to", "cc", "bcc", "subject", "without_quote"]).required(true).multiple(true),
        after_help = "Nothing is sent. The recipient of a reply to a notification cannot be changed.\n\nExamples:\n  kai drafts edit 3 --text \"See you at 8\"\n  kai drafts edit 3 --to +15550142\n  kai drafts edit 4 --subject Lunch --cc bob@example.org"
    )]
    Edit {
        /// Number of the draft, from `kai drafts list`
        #[arg(value_parser = number, add = ArgValueCandidates::new(completing::drafts))]
        id: i64,
        /// The new text
        #[arg(long)]
        text: Option<String>,
        /// The new phone number, or the new addresses of a mail
        #[arg(long)]
        to: Option<String>,
        #[command(flatten)]
        headers: NewHeaders,
    },
    /// Discard a draft, or all of them, without sending
    #[command(
        group = ArgGroup::new("which").args(["id", "all"]).required(true),
        after_help = "You can take this back for 10 seconds: kai drafts undo\n\nExamples:\n  kai drafts discard 3\n  kai drafts discard --all"
    )]
    Discard {
        /// Number of the draft, from `kai drafts list`
        #[arg(value_parser = number, add = ArgValueCandidates::new(completing::drafts))]
        id: Option<i64>,
        /// Discard all drafts that were not sent
        #[arg(long)]
        all: bool,
    },
    /// Take back what you discarded in the last 10 seconds
    #[command(after_help = "Example:\n  kai drafts undo")]
    Undo,
    /// Try again to send a draft that could not be sent
    #[command(after_help = "Example:\n  kai drafts retry 3")]
    Retry {
        /// Number of the draft, from `kai drafts list`
        #[arg(value_parser = number, add = ArgValueCandidates::new(completing::drafts))]
        id: i64,
    },
    /// Remove a draft that was sent, or may have been, from the list
    #[command(after_help = "Example:\n  kai drafts dismiss 3")]
    Dismiss {
        /// Number of the draft, from `kai drafts list`
        #[arg(value_parser = number, add = ArgValueCandidates::new(completing::drafts))]
        id: i64,
    },
}

/// The headers of a mail that can be changed.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct NewHeaders {
    /// The addresses that get a copy of the mail; "" for none
    #[arg(long)]
    pub(crate) cc: Option<String>,
    /// The addresses that get a copy without the others seeing it; "" for none
    #[arg(long)]
    pub(crate) bcc: Option<String>,
    /// The new subject of the mail
    #[arg(long)]
    pub(crate) subject: Option<String>,
    /// Leave out the quoted mail
    #[arg(long)]
    pub(crate) without_quote: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CodesCommand {
    /// Let Kai see one-time codes in one chat, or hide them again
    #[command(after_help = "Examples:\n  kai chats codes 7 show\n  kai chats codes 7 hide")]
    Codes {
        /// Number of the chat, from `kai chats list`
        #[arg(value_parser = number, add = ArgValueCandidates::new(completing::chats))]
        id: i64,
        /// Whether to show or hide the codes
        #[arg(value_enum)]
        what: ShowOrHide,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ShowOrHide {
    Show,
    Hide,
}
