//! Answers as text for people.

use kai_assistant::memory::Memory;

use super::out::visible;
use crate::call::{SettingRow, ToolRow};
use crate::doctor::{Check, Verdict};
use crate::status::Status;

pub(super) fn status(status: &Status) -> String {
    let daemon = match (&status.daemon.address, &status.daemon.since_local) {
        (Some(address), Some(since)) => format!("runs since {since}, page at {address}"),
        _ => "does not run; start it: kai".to_owned(),
    };
    let permissions = match status.permissions.as_slice() {
        [] => String::new(),
        declared => format!(", declares {}", declared.join(", ")),
    };
    let memory = if status.memory.enabled { "on" } else { "off" };
    columns(&[
        ("Kai".to_owned(), format!("{} ({} edition{permissions})", status.version, status.edition)),
        ("Home".to_owned(), format!("{} (encrypted, key: {})", visible(&status.home), status.key)),
        ("Daemon".to_owned(), daemon),
        ("Memory".to_owned(), format!("{memory}, {} remembered", status.memory.count)),
        (
            "Tools".to_owned(),
            format!("{} of {} offered to the model", status.tools.offered, status.tools.all),
        ),
    ])
}

pub(super) fn doctor(checks: &[Check]) -> String {
    let line = |check: &Check| {
        let sign = match check.verdict {
            Verdict::Fine => "ok  ",
            Verdict::Note => "note",
            Verdict::Broken => "BAD ",
        };
        let next = check.next.iter().map(|next| format!("                 → {}", visible(next)));
        [format!("{sign}  {:<9}  {}", check.name, visible(&check.says))]
            .into_iter()
            .chain(next)
            .collect::<Vec<_>>()
    };
    lines(checks.iter().flat_map(line))
}

pub(super) fn settings(rows: &[SettingRow]) -> String {
    let entry = |row: &SettingRow| {
        let value = if row.value.is_empty() { "\"\"".to_owned() } else { visible(&row.value) };
        let changed = if row.value == row.default { "" } else { "  (changed)" };
        [format!("{} = {value}{changed}", row.key), format!("    {} Takes {}.", row.help, row.allowed)]
    };
    lines(rows.iter().flat_map(entry))
}

pub(super) fn memories(memories: &[Memory]) -> String {
    if memories.is_empty() {
        return "Kai remembers nothing yet.\n".to_owned();
    }
    columns(&memories.iter().map(|m| (visible(m.key.as_str()), visible(&m.content))).collect::<Vec<_>>())
}

pub(super) fn tools(rows: &[ToolRow]) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| (row.name.clone(), row.why_not.clone().unwrap_or_else(|| row.description.clone())))
        .collect();
    columns(&rows)
}

pub(super) fn count(n: usize, thing: &str) -> String {
    if n == 1 { format!("1 {thing}") } else { format!("{n} {thing}s") }
}

fn columns(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|(left, _)| left.chars().count()).max().unwrap_or_default();
    lines(rows.iter().map(|(left, right)| format!("{left:<width$}  {right}")))
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| line + "\n").collect()
}
