//! `kai notifications` on the terminal.

use std::process::ExitCode;

use kai_assistant::notifications::view::{Item, Whole};
use kai_assistant::untrusted::Untrusted;
use serde_json::json;

use super::asking::Cli;
use super::{erasing, show};
use crate::call::Call;
use crate::call::demo::DemoCall;
use crate::call::notifications::{Forgotten, ListenerState, NotificationsCall, NotificationsStatus};
use crate::cli::args::messages::NotificationsCommand;
use crate::failure::Failure;
use crate::terminal::out::visible;

pub(super) fn run(ask: &Cli, command: NotificationsCommand) -> Result<ExitCode, Failure> {
    let call = |asked| Call::from(asked);
    match command {
        NotificationsCommand::List { all } => listed(ask, all),
        NotificationsCommand::Read { id } => ask.show(call(NotificationsCall::Read { id }), one),
        NotificationsCommand::Search { text, app } => {
            let asked = NotificationsCall::Search { text, package_name: app };
            ask.show(call(asked), |items: &Vec<Item>| list(items, "No notifications found.\n"))
        }
        NotificationsCommand::Clear => ask.tell(
            call(NotificationsCall::Clear),
            |gone: &usize| json!({"cleared": gone}),
            |gone| format!("Removed {} from the queue.\n", show::count(*gone, "notification")),
        ),
        NotificationsCommand::Forget => forget(ask),
        NotificationsCommand::Refresh => {
            ask.show(call(NotificationsCall::Refresh), |status| show::messages::notifications(status) + "\n")
        }
    }
}

fn forget(ask: &Cli) -> Result<ExitCode, Failure> {
    let status: NotificationsStatus = ask.caller.ask(Call::from(NotificationsCall::Known))?;
    if !status.enabled && !status.keeps() {
        ask.print(&Forgotten { records: 0, queued: 0 }, |_| "Kai keeps no notifications.\n".to_owned());
        return Ok(ExitCode::SUCCESS);
    }
    if !status.enabled {
        erasing::confirmed(&status.kept(), "kai notifications forget")?;
    }
    ask.show(Call::from(NotificationsCall::Forget), |gone: &Forgotten| {
        format!("Erased {}.\n", show::count(gone.records.max(gone.queued), "notification"))
    })
}

/// Lists notifications, or says why there are none.
fn listed(ask: &Cli, all: bool) -> Result<ExitCode, Failure> {
    let items: Vec<Item> = ask.caller.ask(Call::from(NotificationsCall::List { all }))?;
    let why = match items.as_slice() {
        [] if !ask.json => nothing_there(&ask.caller.ask(Call::from(NotificationsCall::Known))?, all),
        _ => String::new(),
    };
    ask.print(&items, |items| list(items, &why));
    Ok(ExitCode::SUCCESS)
}

fn nothing_there(status: &NotificationsStatus, all: bool) -> String {
    let none =
        if all { "Kai has no notifications from the last day" } else { "No notifications are waiting" };
    let why = match status.state {
        _ if !status.supported => kai_words::said::notifications_unsupported().to_string(),
        ListenerState::Off => "Kai does not read notifications. To enable this: \
                  kai settings set notifications_enabled true"
            .to_owned(),
        ListenerState::Listening if all => format!("{none}."),
        ListenerState::Listening => {
            format!("{none}. To see those from the last day: kai notifications list --all")
        }
        ListenerState::Waiting | ListenerState::Inactive => {
            format!("{none}. Notifications: {}", show::messages::notifications(status))
        }
    };
    why + "\n"
}

/// Posts a notification in the demo.
pub(super) fn arrive(ask: &Cli, app: String, title: String, text: String) -> Result<ExitCode, Failure> {
    ask.tell(
        Call::from(DemoCall::Notification { app, title, text }),
        |id: &String| json!({"id": id}),
        |id| {
            format!(
                "It arrived as {}. Kai reads it at the next heartbeat; \"Run now\" on the demo's page starts one.\n",
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
            "{}  {}{}{}{sensitive}{}\n    {}\n",
            item.posted_at_local,
            visible(item.app_label.as_written()),
            on_phone(item.phone.as_ref()),
            part(" — ", title),
            part(": ", preview),
            visible(item.id.as_str()),
        )
    };
    items.iter().map(line).collect()
}

/// Which phone shows it, if there is more than one source.
fn on_phone(phone: Option<&Untrusted>) -> String {
    phone.map(|name| format!(" on {}", visible(name.as_written()))).unwrap_or_default()
}

fn one(whole: &Whole) -> String {
    let sensitive = if whole.sensitive { ", sensitive" } else { "" };
    let mut lines = vec![
        format!(
            "{} ({}){}",
            visible(whole.app_label.as_written()),
            visible(&whole.package_name),
            on_phone(whole.phone.as_ref()),
        ),
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
