//! Formats MCP servers and their tools.

use kai_assistant::mcp::Standing;
use serde_json::Value;

use super::{columns, count};
use crate::call::mcp::{Imported, McpToolRow, ServerRow, ServerStatus, ServerTest};
use crate::terminal::out::visible;

/// Everything about each server, in a few lines.
pub(crate) fn list(rows: &[ServerRow]) -> String {
    if rows.is_empty() {
        return "No MCP server is added. To add one: kai mcp add time -- uvx mcp-server-time\n".to_owned();
    }
    columns(&rows.iter().flat_map(lines).collect::<Vec<_>>())
}

fn lines(row: &ServerRow) -> Vec<(String, String)> {
    let below = |text: String| (String::new(), text);
    let mut lines = vec![(row.name.clone(), state(row)), below(visible(&row.target))];
    if !row.secrets.is_empty() {
        lines.push(below(format!("with {}", visible(&row.secrets.join(", ")))));
    }
    lines.push(below(counted(row)));
    lines.extend(row.why.as_ref().map(|why| below(format!("! {}", visible(&why.to_string())))));
    lines.extend(next(row).map(|next| below(format!("→ {next}"))));
    lines
}

fn state(row: &ServerRow) -> String {
    let state = match row.status {
        ServerStatus::Connected => "connected",
        ServerStatus::Connecting => "connecting",
        ServerStatus::Error => "error",
        ServerStatus::SignIn => "waits for you to sign in",
        ServerStatus::Off => "off",
        ServerStatus::Idle => "not connected",
    };
    let itself = row.calls_itself.as_ref().map(|name| format!(", calls itself “{}”", visible(name)));
    let signed_in = if row.signed_in { ", signed in" } else { "" };
    format!("{state}{signed_in}{}", itself.unwrap_or_default())
}

fn counted(row: &ServerRow) -> String {
    let mut parts = vec![format!("{} can be used", count(row.usable, "tool"))];
    if row.new > 0 {
        parts.push(format!("{} new", row.new));
    }
    if row.changed > 0 {
        parts.push(format!("{} changed since you approved it", row.changed));
    }
    parts.join(", ")
}

fn next(row: &ServerRow) -> Option<String> {
    match row.status {
        ServerStatus::SignIn => Some(format!("kai mcp sign-in {}", row.name)),
        ServerStatus::Error => Some(format!("kai mcp test {}", row.name)),
        ServerStatus::Off => Some(format!("kai mcp enable {}", row.name)),
        ServerStatus::Connected | ServerStatus::Connecting | ServerStatus::Idle => {
            (row.new + row.changed > 0).then(|| format!("kai mcp approve {}", row.name))
        }
    }
}

/// The tools, each with what the server says of it.
pub(crate) fn tools(rows: &[McpToolRow]) -> String {
    if rows.is_empty() {
        return "There are no tools.\n".to_owned();
    }
    rows.iter().map(tool).collect()
}

fn tool(row: &McpToolRow) -> String {
    let standing = match row.standing {
        Standing::New => "new",
        Standing::Agreed if row.enabled => "approved",
        Standing::Agreed => "off",
        Standing::Changed => "changed since you approved it",
        Standing::Gone => "gone from the server",
    };
    let mut marks = vec![standing];
    if row.read_only {
        marks.push("says that it only reads");
    }
    if row.dont_ask {
        marks.push("runs without a click");
    }
    if row.in_tasks {
        marks.push("tasks may use it");
    }
    let mut text = format!("{} ({})\n", visible(&row.name), marks.join(", "));
    if let Some(before) = &row.before {
        text.push_str(&change("- ", &before.description, &before.schema));
        text.push_str(&change("+ ", &row.description, &row.schema));
    } else {
        text.push_str(&change("  ", &row.description, &row.schema));
    }
    text
}

/// A tool's description and parameters, each line with a sign before it.
fn change(sign: &str, description: &str, schema: &Value) -> String {
    let description = if description.is_empty() { "(no description)" } else { description };
    let mut text = format!("  {sign}{}\n", visible(description));
    let parameters = schema.get("properties").and_then(Value::as_object);
    for (name, about) in parameters.into_iter().flatten() {
        let kind = about.get("type").and_then(Value::as_str).unwrap_or("any");
        let about = about.get("description").and_then(Value::as_str).unwrap_or_default();
        let line = format!("{name} ({kind}) {about}");
        text.extend(["  ", sign, "  ", &visible(line.trim_end()), "\n"]);
    }
    text
}

/// What a server answered.
pub(crate) fn test(answered: &ServerTest) -> String {
    let mut shown = list(std::slice::from_ref(&answered.server));
    if !answered.stderr.is_empty() && !answered.works {
        shown.push_str("Its program wrote:\n");
        for line in &answered.stderr {
            shown.extend(["  ", &visible(line), "\n"]);
        }
    }
    if !answered.tools.is_empty() {
        shown.push('\n');
        shown.push_str(&tools(&answered.tools));
    }
    shown
}

/// What a file would add, or did.
pub(crate) fn imported(plan: &Imported) -> String {
    let head = if plan.preview { "would be added" } else { "added" };
    let secrets = |names: &[String]| {
        if names.is_empty() { String::new() } else { format!(" (with {})", visible(&names.join(", "))) }
    };
    let mut lines: Vec<(String, String)> = vec![];
    for server in &plan.added {
        let what = format!("{head}: {}{}", visible(&server.target), secrets(&server.secrets));
        lines.push((server.name.clone(), what));
    }
    for server in &plan.left_out {
        lines.push((server.name.clone(), format!("left out: {}", visible(&server.why.to_string()))));
    }
    columns(&lines)
}
