//! `kai sms` and `kai demo` on the terminal.

use std::process::ExitCode;

use kai_assistant::sms::SmsId;
use kai_words::said;
use serde_json::json;

use super::asking::Cli;
use super::drafts::beside;
use super::{erasing, show};
use crate::app::messages::PAIR;
use crate::call::Call;
use crate::call::demo::DemoCall;
use crate::call::sms::{SmsCall, SmsPolled, SmsRow, SmsStatus, SmsWhole};
use crate::caller::Caller;
use crate::cli::args::messages::{DemoCommand, SmsCommand};
use crate::demo;
use crate::failure::Failure;
use crate::terminal::out::visible;

impl Cli {
    /// Runs in the demo's own home, whichever home was named.
    pub(super) fn demo(&self, command: DemoCommand) -> Result<ExitCode, Failure> {
        let keys = self.caller.keys;
        let home = demo::home_in(self.caller.home.clone(), false)?;
        if !home.socket().exists() {
            return Err(demo::not_running());
        }
        let ask = Self { caller: Caller::new(home, keys), json: self.json };
        match command {
            DemoCommand::Link => ask.link(false),
            DemoCommand::Sms { from, text } => ask.tell(
                Call::from(DemoCall::Sms { from, text }),
                |id: &i64| json!({"id": id}),
                |id| {
                    format!(
                        "It arrived as SMS {id}. Kai has read it, and its report is on the demo's page.\n"
                    )
                },
            ),
            DemoCommand::Notify { app, title, text } => super::notifications::arrive(&ask, app, title, text),
        }
    }

    pub(super) fn sms(&self, command: SmsCommand) -> Result<ExitCode, Failure> {
        match command {
            SmsCommand::Poll => self.show(Call::from(SmsCall::Poll), polled),
            SmsCommand::List => self.queue(),
            SmsCommand::Forget => self.forget_sms(),
            SmsCommand::Read { id } => self.show(Call::from(SmsCall::Read { id: SmsId(id) }), message),
            SmsCommand::Search { text } => self
                .show(Call::from(SmsCall::Search { text }), |rows: &Vec<_>| {
                    messages(rows, "No messages found.")
                }),
        }
    }

    fn forget_sms(&self) -> Result<ExitCode, Failure> {
        let status: SmsStatus = self.caller.ask(Call::from(SmsCall::Known))?;
        if !status.enabled && !status.keeps() {
            self.print(&json!({"forgotten": 0}), |_| "Kai keeps none of your messages.\n".to_owned());
            return Ok(ExitCode::SUCCESS);
        }
        if !status.enabled {
            erasing::confirmed(&kept_sms(&status), "kai sms forget")?;
        }
        let copied = copied_sms(&status).map(|copied| format!(", {copied}")).unwrap_or_default();
        self.tell(
            Call::from(SmsCall::Forget),
            |gone: &usize| json!({"forgotten": gone}),
            |gone| {
                let queued = show::count(*gone, "queued message");
                format!("Erased {queued}{copied} and the note of the last message seen.\n")
            },
        )
    }

    /// Lists the queued messages, or says why there are none.
    fn queue(&self) -> Result<ExitCode, Failure> {
        let rows: Vec<SmsRow> = self.caller.ask(Call::from(SmsCall::List))?;
        let why = match rows.as_slice() {
            [] if !self.json => nothing_waits(&self.caller.ask(Call::from(SmsCall::Known))?),
            _ => String::new(),
        };
        self.print(&rows, |rows| messages(rows, &why));
        Ok(ExitCode::SUCCESS)
    }
}

/// What is stored of messages, as part of a sentence.
pub(super) fn kept_sms(sms: &SmsStatus) -> String {
    let queued = usize::try_from(sms.queued).unwrap_or(usize::MAX);
    let queued = (queued > 0).then(|| show::count(queued, "queued message"));
    let parts: Vec<String> = copied_sms(sms).into_iter().chain(queued).collect();
    let parts = if parts.is_empty() { String::new() } else { parts.join(", ") + " and " };
    format!("{parts}a note of the last message it saw")
}

/// The copied messages of paired phones, as part of a sentence.
fn copied_sms(sms: &SmsStatus) -> Option<String> {
    let copied = usize::try_from(sms.copied()).unwrap_or(usize::MAX);
    (copied > 0).then(|| format!("{} copied from paired phones", show::count(copied, "message")))
}

fn polled(polled: &SmsPolled) -> String {
    let first = if polled.seeded { "Messages that were already in the inbox count as seen. " } else { "" };
    let more = if polled.more { ", and more that the next poll fetches" } else { "" };
    let fresh = format!("{}{more}", show::count(polled.fresh, "new message"));
    let asked = format!(
        "Kai asked {}; new messages arrive in a moment",
        show::count(polled.phones_asked, "paired phone")
    );
    let done = match (polled.phones_asked, polled.fresh) {
        (0, _) => fresh,
        (_, 0) => asked,
        _ => format!("{fresh}. {asked}"),
    };
    format!("{first}{done}. {} waiting.\n", polled.queued)
}

fn nothing_waits(sms: &SmsStatus) -> String {
    if !sms.supported {
        return format!("{} Try: {PAIR}", said::lacks_reading());
    }
    if !sms.enabled {
        return "Kai does not read SMS. To enable this: kai settings set sms_enabled true".to_owned();
    }
    let told = || format!("{}. ", visible(&sms.says).trim_end_matches('.'));
    let trouble = sms.last_error.as_ref().map(|_| told()).unwrap_or_default();
    format!(
        "{trouble}No messages are waiting for the next heartbeat. To find older ones: kai sms search TEXT"
    )
}

fn messages(rows: &[SmsRow], none: &str) -> String {
    if rows.is_empty() {
        return format!("{none}\n");
    }
    let row = |row: &SmsRow| {
        let from = sender(&row.from, row.name.as_deref(), row.phone.as_deref());
        (row.id.0.to_string(), format!("{}  {from}  {}", row.date_local, visible(&row.preview)))
    };
    show::columns(&rows.iter().map(row).collect::<Vec<_>>())
}

fn message(sms: &SmsWhole) -> String {
    let read = if sms.is_read { "read" } else { "unread" };
    let from = sender(&sms.from, sms.name.as_deref(), sms.phone.as_deref());
    format!("From {from} at {} ({read})\n\n{}\n", sms.date_local, show::paragraphs(&sms.body))
}

/// Who sent a message, and to which phone if there are several: "Lena · +15550142 (on Pixel)".
fn sender(from: &str, name: Option<&str>, phone: Option<&str>) -> String {
    let from = if from.trim().is_empty() { "(unknown sender)".to_owned() } else { beside(name, from) };
    from + &phone.map(|phone| format!(" (on {})", visible(phone))).unwrap_or_default()
}
