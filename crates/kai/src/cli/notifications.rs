//! `kai notifications`: the person's own view.

use std::process::ExitCode;

use clap::Subcommand;
use kai_assistant::notifications::view::{Item, Whole};
use serde_json::json;

use super::out::visible;
use super::{Asking, show, yes};
use crate::call::Call;
use crate::failure::Failure;
use crate::notifications::{Asked, Forgotten, GapRow, NotificationsStatus, UNSUPPORTED};

#[derive(Debug, Subcommand)]
pub(super) enum NotificationsCommand {
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

pub(super) fn run(ask: &Asking, command: NotificationsCommand) -> Result<ExitCode, Failure> {
    let call = |asked| Call::Notifications(asked);
    match command {
        NotificationsCommand::List { all } => listed(ask, all),
        NotificationsCommand::Read { id } => ask.show(call(Asked::Read { id }), one),
        NotificationsCommand::Search { text, app } => {
            let asked = Asked::Search { text, package_name: app };
            ask.show(call(asked), |items: &Vec<Item>| list(items, "Nothing found.\n"))
        }
        NotificationsCommand::Clear => ask.tell(
            call(Asked::Clear),
            |gone: &usize| json!({"cleared": gone}),
            |gone| format!("Removed {} from the queue.\n", show::count(*gone, "notification")),
        ),
        NotificationsCommand::Forget => forget(ask),
        NotificationsCommand::Refresh => ask.show(call(Asked::Refresh), |status| sentence(status) + "\n"),
    }
}

fn forget(ask: &Asking) -> Result<ExitCode, Failure> {
    let status: NotificationsStatus = ask.caller.ask(Call::Notifications(Asked::Known))?;
    if !status.enabled && !status.keeps() {
        ask.print(&Forgotten { records: 0, queued: 0 }, |_| "Kai keeps no notifications.\n".to_owned());
        return Ok(ExitCode::SUCCESS);
    }
    if !status.enabled {
        yes::to_erase(&status.kept(), "kai notifications forget")?;
    }
    ask.show(Call::Notifications(Asked::Forget), |gone: &Forgotten| {
        format!("Erased {}.\n", show::count(gone.records.max(gone.queued), "notification"))
    })
}

/// An empty list says why it is empty.
fn listed(ask: &Asking, all: bool) -> Result<ExitCode, Failure> {
    let items: Vec<Item> = ask.caller.ask(Call::Notifications(Asked::List { all }))?;
    let why = match items.as_slice() {
        [] if !ask.json => nothing_there(&ask.caller.ask(Call::Notifications(Asked::Known))?, all),
        _ => String::new(),
    };
    ask.print(&items, |items| list(items, &why));
    Ok(ExitCode::SUCCESS)
}

fn nothing_there(status: &NotificationsStatus, all: bool) -> String {
    let none = if all { "No notifications of the last day are kept" } else { "No notifications wait" };
    let why = match status.state.as_str() {
        _ if !status.supported => UNSUPPORTED.to_owned(),
        "off" => "Reading notifications is off, so none arrive. Turn it on: \
                  kai settings set notifications_enabled true"
            .to_owned(),
        "listening" if all => format!("{none}."),
        "listening" => format!("{none}. Those of the last day: kai notifications list --all"),
        _ => format!("{none}. Notifications: {}", sentence(status)),
    };
    why + "\n"
}

/// Something comes in, in the demo.
pub(super) fn arrive(ask: &Asking, app: String, title: String, text: String) -> Result<ExitCode, Failure> {
    ask.tell(
        Call::Notifications(Asked::Arrive { app, title, text }),
        |id: &String| json!({"id": id}),
        |id| {
            format!(
                "It arrived as {}. The next heartbeat sees it; \"Run now\" on the demo's page does not wait.\n",
                visible(id)
            )
        },
    )
}

fn list(items: &[Item], none: &str) -> String {
    if items.is_empty() {
        return none.to_owned();
    }
    let line = |item: &Item| {
        let part = |before: &str, text: &str| {
            if text.is_empty() { String::new() } else { format!("{before}{}", visible(text)) }
        };
        let (title, preview) = (item.title.as_written(), item.preview.as_written());
        let sensitive = if item.sensitive { " [sensitive]" } else { "" };
        format!(
            "{}  {}{}{sensitive}{}\n    {}\n",
            item.posted_at_local,
            visible(item.app_label.as_written()),
            part(" — ", title),
            part(": ", preview),
            visible(item.id.as_str()),
        )
    };
    items.iter().map(line).collect()
}

fn one(whole: &Whole) -> String {
    let sensitive = if whole.sensitive { ", sensitive" } else { "" };
    let mut lines = vec![
        format!("{} ({})", visible(whole.app_label.as_written()), visible(&whole.package_name)),
        format!("{}{sensitive}", whole.posted_at_local),
        visible(whole.title.as_written()),
    ];
    lines.extend(whole.subtext.iter().map(|subtext| visible(subtext.as_written())));
    lines.push(String::new());
    lines.extend(whole.text.as_written().lines().map(visible));
    let said = |sender: &str, text: &str| format!("  {}: {}", visible(sender), visible(text));
    lines.extend(whole.messages.iter().map(|m| said(m.sender.as_written(), m.text.as_written())));
    lines.join("\n") + "\n"
}

/// How it stands, in one line and one for each gap.
pub(super) fn sentence(status: &NotificationsStatus) -> String {
    let error = status.last_error.as_deref().or(status.hint.as_deref());
    let why = error.map(|why| format!(": {}", visible(why))).unwrap_or_default();
    let bridge = status.bridge.as_deref().unwrap_or("none");
    let said = match status.state.as_str() {
        _ if !status.supported => "cannot be read on this machine".to_owned(),
        "listening" => format!("Listener active (bridge: {bridge})"),
        "inactive" if why.is_empty() => {
            "on, but nothing is heard while Kai does not run; start it: kai".to_owned()
        }
        "inactive" => format!("Listener inactive — check notification access{why}"),
        "waiting" => format!("waiting for access{why}"),
        _ => format!("off{why}"),
    };
    let dropped = if status.dropped > 0 { format!(", {} dropped", status.dropped) } else { String::new() };
    let queued = format!("{said}, {} queued{dropped}", status.queued);
    [queued].into_iter().chain(status.gaps.iter().map(gap_line)).collect::<Vec<_>>().join("; ")
}

fn gap_line(row: &GapRow) -> String {
    let clock = |local: &str| local.get(11..16).unwrap_or_default().to_owned();
    let ended = row.ended_local.as_deref().map_or_else(|| "now".to_owned(), clock);
    format!("nothing heard {}–{ended} ({})", clock(&row.began_local), visible(&row.gap.why))
}
