//! Formats answers as text for people.

pub(super) mod local;
#[cfg_attr(not(feature = "foss"), path = "no_messages.rs")]
pub(super) mod messages;
#[cfg(feature = "foss")]
pub(super) mod phones;
pub(super) mod servers;

use kai_assistant::agent::conversation::Entry;
use kai_assistant::gate::Level;
use kai_assistant::heartbeat::OutcomeKind;
use kai_assistant::heartbeat::due::Due;
use kai_assistant::ledger::{GuestEvent, PhoneEvent, Record, SentFile};
use kai_assistant::legible::{folded_line, thousands};
use kai_assistant::memory::Memory;
use kai_assistant::memory::promotion::Proposal;
use kai_assistant::models::vision::Vision;
use kai_assistant::models::{BUILT_IN, is_passed_on, is_unencrypted};
use kai_assistant::tasks::{Missed, Status};
use kai_llm::Message;
use kai_words::Said;

use crate::call::alarms::AlarmRow;
use crate::call::chats::ChatRow;
use crate::call::doctor::{Check, Verdict};
use crate::call::heartbeat::{DryRun, HeartbeatRan, HeartbeatStatus, LogRow, RunOutcome};
use crate::call::ledger::{LedgerCheck, LedgerRow};
use crate::call::models::{ModelOrigin, ModelRow, ModelTest};
use crate::call::settings::{SettingRow, ToolRow};
use crate::call::status::{EmailStatus, ShellStatus};
use crate::call::tasks::{RunRow, TaskRow, TaskWhole, TasksStatus};
use crate::commands::models::repair;
use crate::terminal::out::{self, visible};

pub(super) fn status(status: &crate::call::status::Status) -> String {
    let daemon = match (&status.daemon.address, &status.daemon.since_local) {
        (Some(address), Some(since)) => format!("running since {}, page at {address}", spoken(since)),
        _ => "not running; start it: kai".to_owned(),
    };
    let model = match &status.model {
        Some(row) if row.ready => format!("{} ({})", visible(&row.name), visible(&row.model)),
        Some(row) => {
            let why = row.why_not.clone().unwrap_or_default();
            visible(&format!("{why} Try: {}", repair(&row.name, &row.preset)))
        }
        None => "none set up; add one: kai models add --help".to_owned(),
    };
    let memory = switch(status.memory.enabled);
    let memories = match status.memory.count {
        1 => "1 memory".to_owned(),
        n => format!("{} memories", thousands(n as usize)),
    };
    let mut rows = vec![
        ("Kai".to_owned(), format!("{} ({} edition)", status.version, status.edition)),
        ("Home".to_owned(), home(status)),
        ("Daemon".to_owned(), daemon),
        ("Model".to_owned(), model),
        ("Email".to_owned(), email(&status.email)),
        ("Heartbeat".to_owned(), heartbeat(&status.heartbeat)),
        ("Memory".to_owned(), format!("{memory}, {memories}")),
        ("Tasks".to_owned(), task_outlook(&status.tasks)),
        (
            "Tools".to_owned(),
            format!("{} of {} offered to the model", status.tools.offered, status.tools.all),
        ),
        ("Shell".to_owned(), shell(&status.shell)),
    ];
    rows.extend(messages::status(&status.sms, &status.notifications, &status.phones));
    columns(&rows)
}

fn home(status: &crate::call::status::Status) -> String {
    let about = match status.key {
        Some(key) => format!("encrypted, key: {}", key.as_str()),
        None => "does not exist yet; Kai creates it when it starts".to_owned(),
    };
    format!("{} ({about})", visible(&status.home))
}

/// The accounts, and how much mail waits.
fn email(email: &EmailStatus) -> String {
    let accounts = match email.accounts.as_slice() {
        [] => return "no account; add one: kai email add you@example.org".to_owned(),
        all => all,
    };
    let broken = accounts.iter().filter(|account| account.last_error.is_some()).count();
    let waiting: u32 = accounts.iter().map(|account| account.queued).sum();
    let broken = match broken {
        0 => String::new(),
        n => format!(", {n} cannot be read (kai email list)"),
    };
    format!("{}, {}{broken}, {waiting} waiting", switch(email.enabled), count(accounts.len(), "account"))
}

fn shell(shell: &ShellStatus) -> String {
    match (shell.enabled, &shell.sandbox, &shell.why_not) {
        (false, ..) => switch(false).to_owned(),
        (true, Some(sandbox), _) => format!("enabled, sandbox: {sandbox}"),
        (true, None, why) => {
            format!("enabled, but cannot be used. {}", visible(why.as_deref().unwrap_or_default()))
        }
    }
}

pub(super) fn doctor(checks: &[Check]) -> String {
    let line = |check: &Check| {
        let sign = match check.verdict {
            Verdict::Fine => "ok  ",
            Verdict::Note => "note",
            Verdict::Broken => "BAD ",
        };
        let next = check.next.iter().map(|next| format!("                     → {}", visible(next)));
        [format!("{sign}  {:<13}  {}", check.name, visible(&check.says))]
            .into_iter()
            .chain(next)
            .collect::<Vec<_>>()
    };
    lines(checks.iter().flat_map(line))
}

/// All settings except unchanged tool time limits: there is one per tool, and they would bury the rest.
pub(super) fn settings(rows: &[SettingRow]) -> String {
    let is_plain_limit = |row: &&SettingRow| row.key.starts_with("tool_timeout_") && row.value == row.default;
    let (limits, shown): (Vec<&SettingRow>, Vec<&SettingRow>) = rows.iter().partition(is_plain_limit);
    let entry = |row: &SettingRow| {
        let value = if row.value.is_empty() { "\"\"".to_owned() } else { visible(&row.value) };
        let changed = if row.value == row.default { "" } else { "  (changed)" };
        [format!("{} = {value}{changed}", row.key), format!("    {} Allowed: {}.", row.help, row.allowed)]
    };
    let rest = match limits.len() {
        0 => None,
        count => Some(format!(
            "{count} unchanged time limits of tools (tool_timeout_NAME) are not listed. To see them: \
             kai settings list --json"
        )),
    };
    lines(shown.into_iter().flat_map(entry).chain(rest))
}

fn heartbeat(beat: &HeartbeatStatus) -> String {
    if !beat.enabled {
        return switch(false).to_owned();
    }
    let last = match &beat.last {
        Some(row) => format!(", last run {} ({})", row.at_local, outcome_words(row.outcome)),
        None => ", no run yet".to_owned(),
    };
    let over = if beat.due == Due::OverBudget { "; today's token limit is reached" } else { "" };
    let lacks = |lacks: &Said| format!("; {} To find out more: kai doctor", visible(&lacks.to_string()));
    let lacks = beat.lacks.as_ref().map(lacks).unwrap_or_default();
    let report = beat.report.map(|id| format!("; new report: kai chats show {id}")).unwrap_or_default();
    let (every, start, end) = (beat.interval, beat.active_start, beat.active_end);
    format!("every {every} min from {start}:00 to {end}:00{last}{over}{report}{lacks}")
}

fn outcome_words(outcome: OutcomeKind) -> &'static str {
    match outcome {
        OutcomeKind::Report => "report",
        OutcomeKind::Ok => "ok",
        OutcomeKind::NothingNew => "nothing new",
        OutcomeKind::Failed => "failed",
    }
}

pub(super) fn ran(ran: &HeartbeatRan) -> String {
    match ran.outcome {
        RunOutcome::Report => format!("{}\n", paragraphs(ran.report.as_deref().unwrap_or_default())),
        RunOutcome::NothingNew => {
            "Nothing is new, so Kai did not ask a model. To ask anyway: kai heartbeat run --force\n"
                .to_owned()
        }
        RunOutcome::Ok | RunOutcome::Failed | RunOutcome::NotDue | RunOutcome::Busy => {
            "Nothing needs your attention.\n".to_owned()
        }
    }
}

/// Why there was no run, or why the run got no answer. `None` if it succeeded.
pub(super) fn did_not_run(ran: &HeartbeatRan) -> Option<String> {
    let reason = ran.reason.clone().unwrap_or_default();
    match ran.outcome {
        RunOutcome::Failed => Some(format!("The heartbeat failed: {reason} To find out more: kai doctor")),
        RunOutcome::NotDue | RunOutcome::Busy => Some(reason.to_string()),
        RunOutcome::Report | RunOutcome::Ok | RunOutcome::NothingNew => None,
    }
}

pub(super) fn dry_run(dry: &DryRun) -> String {
    let tools = if dry.tools.is_empty() { "none".to_owned() } else { dry.tools.join(", ") };
    format!("{}\n\n(about {} tokens; tools: {tools})\n", paragraphs(&dry.prompt), thousands(dry.tokens))
}

pub(super) fn heartbeat_log(rows: &[LogRow]) -> String {
    if rows.is_empty() {
        return "No heartbeat has run yet.\n".to_owned();
    }
    let row = |row: &LogRow| {
        let reason =
            row.reason.as_ref().map(|why| format!(": {}", visible(&why.to_string()))).unwrap_or_default();
        let tokens = if row.tokens_estimated {
            format!("about {} tokens, estimated", grouped(row.tokens))
        } else {
            format!("{} tokens", grouped(row.tokens))
        };
        let cost =
            if row.tokens > 0 { format!(" ({tokens}, {} ms)", grouped(row.ms)) } else { String::new() };
        (row.at_local.clone(), format!("{}{reason}{cost}", outcome_words(row.outcome)))
    };
    columns(&rows.iter().map(row).collect::<Vec<_>>())
}

pub(super) fn ledger(rows: &[LedgerRow], none: &str) -> String {
    if rows.is_empty() {
        return format!("{none}\n");
    }
    let row = |row: &LedgerRow| (row.seq.to_string(), format!("{}  {}", row.at_local, happened(&row.record)));
    columns(&rows.iter().map(row).collect::<Vec<_>>())
}

fn happened(record: &Record) -> String {
    let within = |conversation: i64| match conversation {
        0 => String::new(),
        id => format!(" (chat {id})"),
    };
    match record {
        Record::Request { conversation, model, bytes, seen, files, here, .. } => {
            let files: String = files.iter().map(with_file).collect();
            let (sent, model, held) = (count(*bytes, "byte"), visible(model), including(seen));
            let stayed = if *here { ", which stayed here" } else { "" };
            format!("Sent {sent} to {model}{held}{files}{stayed}{}", within(*conversation))
        }
        Record::ToolCall { conversation, tool, arguments, by_hand } => {
            let (who, tool) = (caller(*by_hand), visible(tool));
            format!("{who} called {tool} {}{}", visible(arguments), within(*conversation))
        }
        Record::ToolResult { tool, success, result_chars, .. } => {
            let how = if *success { "returned" } else { "failed and returned" };
            format!("{} {how} {}", visible(tool), count(*result_chars, "character"))
        }
        Record::McpCall { conversation, server, tool, bytes, by_hand, .. } => {
            let (who, tool, server) = (caller(*by_hand), visible(tool), visible(server));
            let sent = count(*bytes, "byte");
            format!("{who} called {tool} of the MCP server {server} with {sent}{}", within(*conversation))
        }
        Record::McpResult { server, tool, success, bytes, .. } => {
            let how = if *success { "returned" } else { "failed and returned" };
            format!("{} of the MCP server {} {how} {}", visible(tool), visible(server), count(*bytes, "byte"))
        }
        Record::Click { tool, arguments, allowed, unanswered, .. } => {
            clicked(&format!("{} {}", visible(tool), visible(arguments)), *allowed, *unanswered)
        }
        Record::Draft { draft, to, app, guest, .. } => {
            let app = app.as_ref().map(|app| format!(" ({})", visible(app))).unwrap_or_default();
            format!("{} created draft {draft} to {}{app}", creator(guest.as_ref()), visible(to))
        }
        Record::Tap { draft, on_phone: false, .. } => format!("You tapped Send on draft {draft}"),
        Record::Tap { draft, .. } => format!("You had draft {draft} opened on the phone"),
        Record::Sent { draft, outcome } => format!("Draft {draft} {}", became(outcome)),
        Record::Codes { conversation, shown } => {
            let what = if *shown { "let the model see one-time codes" } else { "hid one-time codes again" };
            format!("You {what}{}", within(*conversation))
        }
        Record::Edited { draft, to, .. } => {
            format!("You edited draft {draft}, which now goes to {}", visible(to))
        }
        Record::Undiscarded { draft } => format!("You took discarded draft {draft} back"),
        Record::Discarded { draft, status } => format!("You discarded draft {draft} ({})", visible(status)),
        Record::Restored { last, noted } => {
            format!("You accepted a restored copy that ended at record {last} (Kai had noted record {noted})")
        }
        Record::Phone { name, event, .. } => with_phone(&visible(name), *event),
        Record::GuestCall { guest, tool, success, result_chars, seen, .. } => {
            let how = if *success { "got" } else { "failed and got" };
            let (guest, tool, got) = (visible(guest), visible(tool), count(*result_chars, "character"));
            format!("The program \"{guest}\" called {tool} and {how} {got}{}", including(seen))
        }
        Record::Guest { guest, event } => about_guest(&visible(guest), *event),
    }
}

fn with_file(file: &SentFile) -> String {
    let short = file.hash.get(..12).unwrap_or_default();
    format!(", with a file of {} ({})", count(file.bytes, "byte"), visible(short))
}

fn caller(by_hand: bool) -> &'static str {
    if by_hand { "You" } else { "The model" }
}

/// What the user answered when Kai asked about a call.
fn clicked(call: &str, allowed: bool, unanswered: bool) -> String {
    match (allowed, unanswered) {
        (true, _) => format!("You allowed {call}"),
        (false, true) => format!("Nobody answered, so Kai did not run {call}"),
        (false, false) => format!("You denied {call}"),
    }
}

/// How many messages were in what left.
fn including(seen: &[String]) -> String {
    if seen.is_empty() { String::new() } else { format!(", including {}", count(seen.len(), "message")) }
}

/// Who created a draft.
fn creator(guest: Option<&String>) -> String {
    guest.map_or_else(|| "Kai".to_owned(), |guest| format!("\"{}\"", visible(guest)))
}

/// What the user decided about a program that asks Kai.
fn about_guest(name: &str, event: GuestEvent) -> String {
    match event {
        GuestEvent::Allowed => format!("You allowed the program \"{name}\" to ask Kai"),
        GuestEvent::Blocked => format!("You blocked the program \"{name}\""),
        GuestEvent::Forgotten => format!("You had Kai forget the program \"{name}\""),
        GuestEvent::Token => format!("You made a token for the program \"{name}\""),
    }
}

/// What happened with a paired phone.
fn with_phone(name: &str, event: PhoneEvent) -> String {
    match event {
        PhoneEvent::Paired => format!("You paired the phone \"{name}\""),
        PhoneEvent::Unpaired => format!("You unpaired the phone \"{name}\""),
        PhoneEvent::UnpairedByPhone => format!("The phone \"{name}\" ended its pairing"),
        PhoneEvent::WrongCertificate => {
            format!("Kai refused a device that claimed to be \"{name}\" but had another certificate")
        }
        PhoneEvent::OlderProtocol => {
            format!("Kai refused \"{name}\" because it used an older version of the protocol than before")
        }
    }
}

/// What became of a draft after a tap.
fn became(outcome: &str) -> &'static str {
    match outcome {
        "SENT" => "was sent",
        "FAILED" => "could not be sent",
        _ => "may or may not have been sent",
    }
}

pub(super) fn ledger_check(check: &LedgerCheck) -> String {
    match (check.broken_at, &check.what) {
        (_, Some(what)) if check.rolled_back => {
            format!(
                "The ledger is incomplete: {}.\n{}\n",
                visible(&what.to_string()),
                crate::commands::noted::NEXT
            )
        }
        (Some(seq), Some(what)) => {
            format!("The ledger was altered. At record {seq}: {}.\n", visible(&what.to_string()))
        }
        _ => {
            let verified = match check.records {
                0 => "The ledger has no records yet.".to_owned(),
                1 => "1 record verified; it was not altered.".to_owned(),
                n => format!("All {} verified; none were altered.", count(n, "record")),
            };
            let older = match usize::try_from(check.let_go) {
                Ok(0) | Err(_) => String::new(),
                Ok(n) => format!(" Kai deleted {} past the retention period.", count(n, "older record")),
            };
            format!("{verified}{older}\n")
        }
    }
}

pub(super) fn memories(memories: &[Memory]) -> String {
    if memories.is_empty() {
        return "No memories yet.\n".to_owned();
    }
    let row = |memory: &Memory| {
        let waits = if memory.confirmed { "" } else { "  (not used until you confirm it)" };
        (visible(memory.key.as_str()), format!("{}{waits}", folded_line(&memory.content)))
    };
    let list = columns(&memories.iter().map(row).collect::<Vec<_>>());
    let hint = |memory: &Memory| {
        let key = out::word(memory.key.as_str());
        format!(
            "Kai saved the unconfirmed ones after reading messages from other people. To use one: kai memory \
             confirm {key}. To delete it: kai memory forget {key}\n"
        )
    };
    let next = memories.iter().find(|memory| !memory.confirmed).map(hint).unwrap_or_default();
    format!("{list}{next}")
}

pub(super) fn confirmed_memory(memory: &Memory) -> String {
    format!(
        "Kai uses this memory from now on.\n{}: {}\n",
        visible(memory.key.as_str()),
        visible(&memory.content)
    )
}

pub(super) fn proposals(rows: &[Proposal]) -> String {
    if rows.is_empty() {
        return "No suggestions yet.\n".to_owned();
    }
    let row = |row: &Proposal| {
        (visible(row.key.as_str()), format!("{} (useful {} times)", visible(&row.text), row.hits))
    };
    let list = columns(&rows.iter().map(row).collect::<Vec<_>>());
    let key = out::word(rows.first().map(|row| row.key.as_str()).unwrap_or_default());
    format!("{list}To accept one: kai memory accept {key}. To decline it: kai memory decline {key}\n")
}

fn task_outlook(tasks: &TasksStatus) -> String {
    let switch = if tasks.enabled { "enabled" } else { "disabled, so none run" };
    let next =
        tasks.next_local.as_ref().map(|next| format!(", next run {}", spoken(next))).unwrap_or_default();
    format!("{switch}, {}{next}", count(tasks.count as usize, "task"))
}

pub(super) fn tasks(rows: &[TaskRow]) -> String {
    if rows.is_empty() {
        return "No tasks. Ask Kai to do something later, for example every weekday at 7:30.\n".to_owned();
    }
    columns(&rows.iter().map(|row| (row.id.0.to_string(), task_line(row))).collect::<Vec<_>>())
}

pub(super) fn alarms(rows: &[AlarmRow]) -> String {
    if rows.is_empty() {
        return "No alarms set. Ask Kai to wake you at seven, for example.\n".to_owned();
    }
    let line = |row: &AlarmRow| {
        let label = if row.label.is_empty() { "Alarm".to_owned() } else { visible(&row.label) };
        (row.id.0.to_string(), format!("{label}: rings at {}", spoken(&row.due_local)))
    };
    columns(&rows.iter().map(line).collect::<Vec<_>>())
}

/// One task on one line: name, schedule, and its state if worth mentioning.
fn task_line(row: &TaskRow) -> String {
    let state = match (row.status, &row.next_local) {
        (Status::Pending, Some(next)) => format!(", next run {}", spoken(next)),
        (Status::Pending, None) => String::new(),
        (Status::Running, _) => ", running now".to_owned(),
        (Status::Completed, _) => ", done".to_owned(),
        (Status::Skipped, _) => ", missed".to_owned(),
    };
    let failures = match row.failures {
        0 => String::new(),
        n => format!(", failed {}", count(n as usize, "time")),
    };
    format!("{}: {}{state}{failures}", visible(&row.description), row.readable)
}

pub(super) fn task(whole: &TaskWhole) -> String {
    let row = &whole.row;
    let missed = match row.missed {
        Missed::RunOnce => "run once, as soon as possible",
        Missed::Skip => "skip it",
    };
    let origin = match row.level {
        Level::Nothing => "scheduled without text from other people or from the web",
        Level::Web => "scheduled after reading web pages or attachments",
        Level::People => "scheduled after reading messages from other people, so it cannot use the web",
    };
    let head = columns(&[
        (format!("Task {}", row.id.0), task_line(row)),
        ("If missed".to_owned(), missed.to_owned()),
        ("Origin".to_owned(), origin.to_owned()),
    ]);
    let run = |run: &RunRow| {
        let reason = if run.reason.is_empty() {
            String::new()
        } else {
            format!(": {}", visible(&run.reason.to_string()))
        };
        let outcome =
            run.outcome.map_or_else(|| "running".to_owned(), |outcome| outcome.as_str().to_lowercase());
        format!(
            "  {}  {outcome}{reason} ({} tokens, {} ms)",
            spoken(&run.started_local),
            grouped(run.tokens),
            grouped(run.ms)
        )
    };
    let runs = if whole.runs.is_empty() { "It has not run yet.\n" } else { "Last runs:\n" };
    format!("{head}\n{}\n\n{runs}{}", paragraphs(&whole.prompt), lines(whole.runs.iter().map(run)))
}

pub(super) fn tools(rows: &[ToolRow]) -> String {
    let says = |row: &ToolRow| match (&row.why_not, &row.note) {
        (Some(why_not), _) => format!("– not offered: {}", to_you(why_not)),
        (None, Some(note)) => format!("{} ({note})", row.description),
        (None, None) => row.description.clone(),
    };
    columns(&rows.iter().map(|row| (row.name.clone(), says(row))).collect::<Vec<_>>())
}

/// Rewrites a sentence that was meant for the model so that it addresses the user.
fn to_you(said: &str) -> String {
    let mut parts = said.split("The user can ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |said, part| {
        let mut letters = part.chars();
        let capital = letters.next().map(char::to_uppercase).into_iter().flatten();
        said + &capital.chain(letters).collect::<String>()
    })
}

pub(super) fn chats(rows: &[ChatRow]) -> String {
    if rows.is_empty() {
        return "No chats found.\n".to_owned();
    }
    let row = |row: &ChatRow| {
        // To the minute, which is enough to tell them apart.
        let minute = row.updated_local.get(..16).map(spoken).unwrap_or_default();
        let pinned = if row.conversation.pinned { " (pinned)" } else { "" };
        let called = visible(row.conversation.called());
        (row.conversation.id.0.to_string(), format!("{minute}  {called}{pinned}"))
    };
    columns(&rows.iter().map(row).collect::<Vec<_>>())
}

pub(super) fn entries(entries: &[Entry]) -> String {
    let block = |entry: &Entry| match &entry.message {
        Message::User { text, .. } => {
            let files = entry.files.iter().map(|file| format!("\n  [attached: {}]", visible(&file.name)));
            format!("You: {}{}", paragraphs(text), files.collect::<String>())
        }
        Message::Assistant { text, calls, .. } => {
            let who =
                entry.answered_by.as_deref().map(|who| format!(" ({})", visible(who))).unwrap_or_default();
            let called = calls
                .iter()
                .map(|call| format!("\n  [⚙ {} {}]", visible(&call.name), visible(&call.arguments)));
            let end = if entry.stopped { "\n  [stopped here]" } else { "" };
            format!("Kai{who}: {}{end}{}", paragraphs(text), called.collect::<String>())
        }
        Message::Tool { tool, result, .. } => format!("  [{}] {}", visible(tool), visible(result)),
    };
    lines(entries.iter().map(block))
}

/// Several lines, each made safe to print.
pub(super) fn paragraphs(text: &str) -> String {
    text.lines().map(visible).collect::<Vec<_>>().join("\n")
}

pub(super) fn models(rows: &[ModelRow]) -> String {
    if rows.is_empty() {
        return "No model is set up. Add one: kai models add --help\n".to_owned();
    }
    let row = |row: &ModelRow| {
        let from = match row.origin {
            ModelOrigin::Environment => ", API key from the environment",
            ModelOrigin::Found => ", found automatically",
            ModelOrigin::Added | ModelOrigin::Demo => "",
        };
        let leaves = match (row.local, is_unencrypted(&row.base_url)) {
            (true, _) => "stays on this machine",
            (false, _) if is_passed_on(&row.base_url, &row.model) => {
                "leaves this machine: its server passes your chats on"
            }
            (false, false) => "sends your chats to this server",
            (false, true) => "sends your chats unencrypted",
        };
        let context = match row.origin {
            ModelOrigin::Demo => String::new(),
            ModelOrigin::Added | ModelOrigin::Environment | ModelOrigin::Found => {
                format!(
                    "; context window: {} tokens, {}",
                    thousands(row.context),
                    row.context_from.in_words()
                )
            }
        };
        let sees = match row.pictures {
            Vision::Yes => "; can see pictures",
            Vision::No => "; cannot see pictures",
            Vision::Unknown => "",
        };
        let at = place(row);
        let about = format!("{} {at}{from} ({leaves}{context}{sees})", visible(&row.model));
        let state = row
            .why_not
            .as_ref()
            .map(|why| visible(&format!(" (cannot be used: {why} Try: {})", repair(&row.name, &row.preset))))
            .unwrap_or_default();
        (visible(&row.name), about + &state)
    };
    columns(&rows.iter().map(row).collect::<Vec<_>>())
}

/// Where a model is.
fn place(row: &ModelRow) -> String {
    if row.preset == BUILT_IN {
        return format!("on this computer, {}", visible(&row.base_url));
    }
    format!("at {}", visible(&row.base_url))
}

pub(super) fn model_tests(tests: &[ModelTest]) -> String {
    let row = |test: &ModelTest| {
        let said = visible(&test.says.to_string());
        let says = if test.works {
            format!("works; it answered \"{said}\" in {} ms", grouped(test.ms))
        } else {
            format!("does not work: {said}")
        };
        (visible(&test.name), says)
    };
    columns(&tests.iter().map(row).collect::<Vec<_>>())
}

/// A local time as people write it, without the `T`.
fn spoken(local: &str) -> String {
    local.replacen('T', " ", 1)
}

pub(super) fn count(n: usize, thing: &str) -> String {
    if n == 1 { format!("1 {thing}") } else { format!("{} {thing}s", thousands(n)) }
}

fn grouped(n: u64) -> String {
    thousands(usize::try_from(n).unwrap_or(usize::MAX))
}

fn switch(enabled: bool) -> &'static str {
    if enabled { "enabled" } else { "disabled" }
}

pub(super) fn columns(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|(left, _)| left.chars().count()).max().unwrap_or_default();
    lines(rows.iter().map(|(left, right)| format!("{left:<width$}  {right}")))
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_model_is_told_is_said_to_the_person() {
        for (said, expected) in [
            ("It is disabled. The user can enable it: kai x", "It is disabled. Enable it: kai x"),
            ("There is no desktop here.", "There is no desktop here."),
        ] {
            assert_eq!(to_you(said), expected);
        }
    }
}
