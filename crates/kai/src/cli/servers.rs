//! `kai mcp` for other people's servers: shows what a server says of its tools before they are approved.

use std::process::ExitCode;

use serde_json::json;

use super::args::ServersCommand;
use super::asking::Cli;
use super::{show, yes};
use crate::call::Call;
use crate::call::mcp::{
    AddServer, Imported, McpCall, McpToolRow, SeenTool, ServerRow, ServerStatus, ServerTest, SignInPage,
};
use crate::failure::{self, Failure};
use crate::terminal::out::{self, visible};
use kai_assistant::mcp::Standing;

pub(super) fn run(ask: &Cli, command: ServersCommand) -> Result<ExitCode, Failure> {
    match command {
        ServersCommand::List => ask.show(mcp(McpCall::List), |rows: &Vec<_>| show::servers::list(rows)),
        ServersCommand::Add { name, url, headers, env, yes, command } => {
            add(ask, AddServer { name, command, url, headers, env }, yes)
        }
        ServersCommand::Tools { name } => {
            ask.show(mcp(McpCall::Tools { server: name }), |rows: &Vec<_>| show::servers::tools(rows))
        }
        ServersCommand::Approve { name, tools, yes } => approve_some(ask, &name, &tools, yes),
        ServersCommand::Enable { name, tool } => switch(ask, name, tool, true),
        ServersCommand::Disable { name, tool } => switch(ask, name, tool, false),
        ServersCommand::DontAsk { name, tool, off } => {
            one_tool(ask, McpCall::DontAsk { server: name, tool, on: !off })
        }
        ServersCommand::InTasks { name, tool, off } => {
            one_tool(ask, McpCall::InTasks { server: name, tool, on: !off })
        }
        ServersCommand::Test { name } => {
            let test: ServerTest = ask.caller.ask(mcp(McpCall::Test { server: name }))?;
            ask.print(&test, show::servers::test);
            Ok(ExitCode::from(u8::from(!test.works)))
        }
        ServersCommand::Remove { name } => ask.tell(
            mcp(McpCall::Remove { server: name }),
            |name: &String| json!({"removed": name}),
            |name| format!("Removed {}.\n", visible(name)),
        ),
        ServersCommand::Import { file, preview, yes } => import(ask, &file, preview, yes),
        ServersCommand::SignIn { name } => sign_in(ask, &name),
        ServersCommand::SignOut { name } => ask.show(mcp(McpCall::SignOut { server: name }), one),
    }
}

fn mcp(call: McpCall) -> Call {
    Call::Mcp(call)
}

fn one(row: &ServerRow) -> String {
    show::servers::list(std::slice::from_ref(row))
}

fn switch(ask: &Cli, server: String, tool: Option<String>, on: bool) -> Result<ExitCode, Failure> {
    let is_server = tool.is_none();
    let call = McpCall::Switch { server, tool, on };
    if is_server { ask.show(mcp(call), one) } else { one_tool(ask, call) }
}

fn one_tool(ask: &Cli, call: McpCall) -> Result<ExitCode, Failure> {
    ask.show(mcp(call), |row: &McpToolRow| show::servers::tools(std::slice::from_ref(row)))
}

/// Adds a server, shows its tools and asks whether to approve them.
fn add(ask: &Cli, new: AddServer, yes: bool) -> Result<ExitCode, Failure> {
    let name = new.name.clone();
    if !ask.json {
        out::note(&format!("Connecting to {name} …"));
    }
    let test: ServerTest = ask.caller.ask(mcp(McpCall::Add(new)))?;
    if !test.works {
        ask.print(&test, show::servers::test);
        let next = match test.server.status {
            ServerStatus::SignIn => format!("kai mcp sign-in {name}"),
            _ => format!("kai mcp test {name}"),
        };
        out::note(&format!("{name} is added, but cannot be used yet. Try: {next}"));
        return Ok(ExitCode::FAILURE);
    }
    if !ask.json {
        out::text(&show::servers::test(&test));
    }
    let waiting: Vec<McpToolRow> = test.tools.into_iter().filter(waits).collect();
    let rows = approve(ask, &name, &waiting, yes)?;
    if ask.json {
        out::json(&rows);
    }
    Ok(ExitCode::SUCCESS)
}

fn waits(row: &McpToolRow) -> bool {
    matches!(row.standing, Standing::New | Standing::Changed)
}

fn approve_some(ask: &Cli, name: &str, only: &[String], yes: bool) -> Result<ExitCode, Failure> {
    let all: Vec<McpToolRow> = ask.caller.ask(mcp(McpCall::Tools { server: Some(name.to_owned()) }))?;
    if let Some(unknown) = only.iter().find(|wanted| !all.iter().any(|row| is_called(row, wanted))) {
        return Err(Failure::usage(format!("There is no tool called {unknown} at {name}."))
            .try_instead(format!("kai mcp tools {name}")));
    }
    let is_wanted = |row: &McpToolRow| only.is_empty() || only.iter().any(|wanted| is_called(row, wanted));
    let waiting: Vec<McpToolRow> = all.into_iter().filter(|row| waits(row) && is_wanted(row)).collect();
    if waiting.is_empty() && !ask.json {
        out::text("Nothing is new or changed.\n");
    }
    if !waiting.is_empty() && !ask.json {
        out::text(&show::servers::tools(&waiting));
    }
    let rows = approve(ask, name, &waiting, yes)?;
    if ask.json {
        out::json(&rows);
    }
    Ok(ExitCode::SUCCESS)
}

fn is_called(row: &McpToolRow, name: &str) -> bool {
    row.name == name || row.offered_as == name
}

/// Approves tools that the user has just seen, if the user says so. Returns all tools of the server.
fn approve(ask: &Cli, name: &str, waiting: &[McpToolRow], yes: bool) -> Result<Vec<McpToolRow>, Failure> {
    let question = match waiting {
        [] => return tools_of(ask, name),
        [_] => "Approve this tool? What the server does with what it gets is beyond Kai.".to_owned(),
        many => {
            format!(
                "Approve these {} tools? What the server does with what it gets is beyond Kai.",
                many.len()
            )
        }
    };
    if !(yes || yes::plain(&question)) {
        out::note(&format!(
            "Nothing was approved, so no model is offered them. Later: kai mcp approve {name}"
        ));
        return tools_of(ask, name);
    }
    let tools = waiting.iter().map(|row| SeenTool { name: row.name.clone(), seen: row.seen.clone() });
    let call = McpCall::Approve { server: name.to_owned(), tools: tools.collect() };
    let rows: Vec<McpToolRow> = ask.caller.ask(mcp(call))?;
    if !ask.json {
        out::note("They are approved. Models can use them from your next message on.");
    }
    Ok(rows)
}

fn tools_of(ask: &Cli, name: &str) -> Result<Vec<McpToolRow>, Failure> {
    ask.caller.ask(mcp(McpCall::Tools { server: Some(name.to_owned()) }))
}

fn import(ask: &Cli, file: &std::path::Path, preview: bool, yes: bool) -> Result<ExitCode, Failure> {
    let text = std::fs::read_to_string(file).map_err(|why| Failure::usage(failure::unread(file, &why)))?;
    let plan: Imported = ask.caller.ask(mcp(McpCall::Import { text: text.clone(), preview: true }))?;
    if preview || plan.added.is_empty() {
        ask.print(&plan, show::servers::imported);
        return Ok(ExitCode::SUCCESS);
    }
    if !yes {
        out::note(show::servers::imported(&plan).trim_end());
        if !yes::plain("Add them? Programs among them run on this computer.") {
            out::note("Nothing was added.");
            return Ok(ExitCode::FAILURE);
        }
    }
    let done: Imported = ask.caller.ask(mcp(McpCall::Import { text, preview: false }))?;
    ask.print(&done, show::servers::imported);
    if let Some(first) = done.added.first() {
        out::note(&format!(
            "Now look at their tools, one server after the other: kai mcp test {}",
            first.name
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn sign_in(ask: &Cli, name: &str) -> Result<ExitCode, Failure> {
    let page: SignInPage = ask.caller.ask(mcp(McpCall::SignIn { server: name.to_owned() }))?;
    let how =
        if page.opened { "Sign in on the page that Kai has opened" } else { "Open this page and sign in" };
    out::note(&format!("{how}: {}", visible(&page.url)));
    let row: ServerRow = ask.caller.ask(mcp(McpCall::SignedIn { server: name.to_owned() }))?;
    ask.print(&row, one);
    Ok(ExitCode::from(u8::from(row.status != ServerStatus::Connected)))
}
