//! `kai mcp serve` and `kai mcp guests`.

use std::process::ExitCode;

use kai_assistant::guests::{Did, GuestState};
use kai_words::Lang;
use serde_json::{Map, Value, json};

use super::args::mcp::{GuestsCommand, ServeMcp};
use super::asking::Cli;
use super::show;
use crate::call::Call;
use crate::call::guests::{DeedRow, GuestRow, GuestToken, GuestsCall};
use crate::commands::guests::{Paste, pastes};
use crate::failure::Failure;
use crate::guests::{http, stdio};
use crate::terminal::out::{self, visible};

/// Serves other programs until they have enough.
pub(super) fn serve(ask: &Cli, options: ServeMcp) -> Result<ExitCode, Failure> {
    if options.print_config {
        print_config(ask);
    } else if options.http {
        http::serve(&ask.caller, options.port, |url| {
            ask.print(&json!({"url": url}), |_| {
                format!("Serving MCP at {url}\nEach program needs a token: kai mcp guests token NAME\n")
            });
        })?;
    } else {
        stdio::serve(&ask.caller);
    }
    Ok(ExitCode::SUCCESS)
}

fn print_config(ask: &Cli) {
    let pastes = pastes(&ask.caller.home, Lang::ENGLISH);
    let object = |paste: &Paste| (paste.program.to_owned(), paste.json.clone());
    let all = Value::Object(pastes.iter().map(object).collect::<Map<_, _>>());
    ask.print(&all, |_| pastes.iter().map(paste).collect::<Vec<_>>().join("\n"));
}

fn paste(paste: &Paste) -> String {
    let json = serde_json::to_string_pretty(&paste.json).unwrap_or_default();
    format!("{}\n\n{}\n", paste.place, out::escaped(&json))
}

pub(super) fn guests(ask: &Cli, command: GuestsCommand) -> Result<ExitCode, Failure> {
    match command {
        GuestsCommand::List => ask.show(Call::Guests(GuestsCall::List), |rows: &Vec<_>| list(rows)),
        GuestsCommand::Allow { name } => {
            ask.show(Call::Guests(GuestsCall::Allow { name }), |row: &GuestRow| {
                format!("{} may now read and draft with the tools that you enabled.\n", quoted(&row.name))
            })
        }
        GuestsCommand::Block { name } => ask
            .show(Call::Guests(GuestsCall::Block { name }), |row: &GuestRow| {
                format!("Blocked {}.\n", quoted(&row.name))
            }),
        GuestsCommand::Token { name } => ask.show(Call::Guests(GuestsCall::Token { name }), token),
        GuestsCommand::Forget { name } => ask.tell(
            Call::Guests(GuestsCall::Forget { name }),
            |name: &String| json!({"forgotten": name}),
            |name| format!("Forgot {}. Its drafts stay: kai drafts list\n", quoted(name)),
        ),
    }
}

/// Programs choose their names themselves, so they always stand in quotes.
fn quoted(name: &str) -> String {
    format!("\"{}\"", visible(name))
}

fn token(given: &GuestToken) -> String {
    let name = quoted(&given.name);
    let next = match given.state {
        GuestState::Allowed => String::new(),
        GuestState::Asked | GuestState::Blocked => {
            format!("\nIt gets nothing until you allow it: kai mcp guests allow {name}\n")
        }
    };
    format!("Token for {name}. Kai does not show it again:\n\n{}\n{next}", given.token)
}

fn list(rows: &[GuestRow]) -> String {
    if rows.is_empty() {
        return "No program has asked yet. To connect one: kai mcp serve --print-config\n".to_owned();
    }
    let lines = rows.iter().flat_map(|row| {
        [(quoted(&row.name), stands(row))].into_iter().chain(row.deeds.iter().take(DEEDS).map(deed))
    });
    show::columns(&lines.collect::<Vec<_>>())
}

/// How many of the things that a program did are listed as text.
const DEEDS: usize = 5;

fn stands(row: &GuestRow) -> String {
    let state = match row.state {
        GuestState::Asked => format!("waits for your answer: kai mcp guests allow {}", quoted(&row.name)),
        GuestState::Allowed => "allowed".to_owned(),
        GuestState::Blocked => "blocked".to_owned(),
    };
    let seen =
        row.last_seen_local.as_ref().map_or_else(|| "never here".to_owned(), |at| format!("last here {at}"));
    let token = if row.has_token { ", has a token" } else { "" };
    format!("{state}, {seen}{token}")
}

fn deed(deed: &DeedRow) -> (String, String) {
    let tool = visible(&deed.tool);
    let what = match deed.what {
        Did::Read(messages) => {
            format!("{tool}: read {}", show::count(usize::try_from(messages).unwrap_or(0), "message"))
        }
        Did::Drafted(draft) => format!("{tool}: draft {draft}"),
        Did::Failed => format!("{tool}: failed"),
    };
    (String::new(), format!("  {}  {what}", deed.at_local))
}
