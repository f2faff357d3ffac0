//! `kai sms` and `kai drafts` on the terminal. Instead of tapping a button, the user types `y` below the whole draft.

use std::io::IsTerminal;
use std::process::ExitCode;

use kai_assistant::legible::{folded, spelled_out};
use kai_assistant::outbox::{DraftId, DraftOrigin, DraftState, ReplyTo};
use kai_assistant::sms::SmsId;
use kai_words::said;
use serde_json::json;

use super::asking::Cli;
use super::{erasing, show, yes};
use crate::app::messages::PAIR;
use crate::call::Call;
use crate::call::demo::DemoCall;
use crate::call::drafts::{DraftsCall, EditCall};
use crate::call::sms::{
    Button, DraftPhone, DraftRow, SmsCall, SmsPolled, SmsRow, SmsStatus, SmsWhole, TapCall,
};
use crate::caller::Caller;
use crate::cli::args::messages::{DemoCommand, DraftsCommand, SmsCommand};
use crate::demo;
use crate::failure::Failure;
use crate::terminal::input;
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

    pub(super) fn drafts(&self, command: &DraftsCommand) -> Result<ExitCode, Failure> {
        match command {
            DraftsCommand::List => self.show(Call::from(SmsCall::Drafts), |rows: &Vec<_>| drafts(rows)),
            DraftsCommand::Show { id } => self.show(Call::from(SmsCall::Draft { id: DraftId(*id) }), draft),
            DraftsCommand::Send { id } => self.tap(DraftId(*id), &[DraftState::Pending, DraftState::Unknown]),
            DraftsCommand::Compose { id } => self.compose(DraftId(*id)),
            DraftsCommand::Retry { id } => self.tap(DraftId(*id), &[DraftState::Failed, DraftState::Unknown]),
            DraftsCommand::Edit { id, text, to } => self.edit(DraftId(*id), text.clone(), to.clone()),
            DraftsCommand::Discard { id: Some(id), .. } => self.discard(DraftId(*id)),
            DraftsCommand::Discard { id: None, .. } => self.discard_all(),
            DraftsCommand::Undo => self.undo_discard(),
            DraftsCommand::Dismiss { id } => self.dismiss(DraftId(*id)),
        }
    }

    /// Edits a draft, and shows it with its warnings as it waits now.
    fn edit(&self, id: DraftId, body: Option<String>, to: Option<String>) -> Result<ExitCode, Failure> {
        let row: DraftRow = self.caller.ask(Call::from(SmsCall::Draft { id }))?;
        let call = EditCall { id, seen: row.digest, to, body };
        self.show(Call::from(DraftsCall::Edit(call)), |row: &DraftRow| {
            format!("Saved. Nothing was sent.\n\n{}", draft(row))
        })
    }

    /// Sends a draft after showing it and asking. The call carries the digest of what the user saw, so a draft that has
    /// changed since is refused.
    fn tap(&self, id: DraftId, fitting: &[DraftState]) -> Result<ExitCode, Failure> {
        let row: DraftRow = self.caller.ask(Call::from(SmsCall::Draft { id }))?;
        let button = match row.status {
            status if !fitting.contains(&status) => return Err(wrong_state(&row)),
            DraftState::Pending => Button::Send,
            DraftState::Failed => Button::Retry,
            DraftState::Unknown | DraftState::Sending | DraftState::Sent => Button::SendAgain,
        };
        let question = match (row.status, &row.on_phone.opened_local) {
            (DraftState::Unknown, _) => "It may have been sent already. Send it again?".to_owned(),
            (_, Some(opened)) => {
                format!("It was opened on your phone at {opened}. Send it from here instead?")
            }
            (_, None) => "Send it?".to_owned(),
        };
        let row = self.approved(row, button, &question)?;
        Ok(ExitCode::from(u8::from(row.status != DraftState::Sent)))
    }

    /// Opens a draft in the phone's own SMS app after showing it and asking.
    fn compose(&self, id: DraftId) -> Result<ExitCode, Failure> {
        let row: DraftRow = self.caller.ask(Call::from(SmsCall::Draft { id }))?;
        if !matches!(row.status, DraftState::Pending | DraftState::Failed) {
            return Err(wrong_state(&row));
        }
        if !row.on_phone.can_open {
            return Err(Failure::failed(
                "Nothing was opened. Only an SMS of a paired phone can be, and only if you allowed its composer.",
            ));
        }
        self.approved(row, Button::OnPhone, "Open it in your phone's SMS app?")?;
        Ok(ExitCode::SUCCESS)
    }

    /// Shows the draft, asks, and taps the button.
    fn approved(&self, row: DraftRow, button: Button, question: &str) -> Result<DraftRow, Failure> {
        // Someone who cannot see the draft cannot approve it.
        if !(input::has_person() && std::io::stderr().is_terminal()) {
            return Err(Failure::failed(
                "Nothing was sent, because Kai has to show you the draft first. Run this on a terminal, or tap \
                 Send on the page.",
            ));
        }
        if !asked(&row, question) {
            return Err(Failure::failed("Nothing was sent."));
        }
        let call = TapCall { id: row.id, button, shown: row.digest, attempts: row.attempts };
        let row: DraftRow = self.caller.ask(Call::from(SmsCall::Tap(call)))?;
        self.print(&row, outcome);
        Ok(row)
    }

    fn discard(&self, id: DraftId) -> Result<ExitCode, Failure> {
        let row: DraftRow = self.caller.ask(Call::from(SmsCall::Draft { id }))?;
        if !row.is_discardable() {
            return Err(wrong_state(&row));
        }
        self.tell(
            Call::from(SmsCall::Discard { id }),
            |_: &DraftRow| json!({"id": id, "discarded": true}),
            |_| format!("Discarded draft {}. {UNDO}\n", id.0),
        )
    }

    /// Discards the drafts that are there now. One that comes in between stays.
    fn discard_all(&self) -> Result<ExitCode, Failure> {
        let rows: Vec<DraftRow> = self.caller.ask(Call::from(SmsCall::Drafts))?;
        let ids = rows.iter().filter(|row| row.is_discardable()).map(|row| row.id).collect();
        self.tell(
            Call::from(DraftsCall::DiscardAll { ids }),
            |gone: &Vec<DraftId>| json!({"discarded": gone}),
            |gone| match gone.len() {
                0 => "There are no drafts to discard.\n".to_owned(),
                n => format!("Discarded {}. {UNDO}\n", show::count(n, "draft")),
            },
        )
    }

    fn undo_discard(&self) -> Result<ExitCode, Failure> {
        self.tell(
            Call::from(DraftsCall::Undo),
            |back: &Vec<DraftId>| json!({"restored": back}),
            |back| match back.as_slice() {
                [one] => format!("Draft {} is back.\n", one.0),
                several => format!("{} are back.\n", show::count(several.len(), "draft")),
            },
        )
    }

    /// Removes a draft that was sent, or may have been.
    fn dismiss(&self, id: DraftId) -> Result<ExitCode, Failure> {
        let row: DraftRow = self.caller.ask(Call::from(SmsCall::Draft { id }))?;
        if !matches!(row.status, DraftState::Sent | DraftState::Unknown) {
            return Err(wrong_state(&row));
        }
        self.tell(
            Call::from(SmsCall::Discard { id }),
            |_: &DraftRow| json!({"id": id, "dismissed": true}),
            |_| format!("Dismissed draft {}.\n", id.0),
        )
    }
}

const UNDO: &str = "To take this back within 10 seconds: kai drafts undo";

fn wrong_state(row: &DraftRow) -> Failure {
    let id = row.id.0;
    Failure::failed(match row.status {
        DraftState::Sending => format!("Draft {id} is being sent right now and cannot be stopped."),
        DraftState::Sent => {
            format!("Draft {id} was already sent. To remove it from the list: kai drafts dismiss {id}")
        }
        DraftState::Failed => format!("Draft {id} could not be sent. To try again: kai drafts retry {id}"),
        DraftState::Pending => format!(
            "Draft {id} is waiting. To send it: kai drafts send {id}. To discard it: kai drafts discard {id}"
        ),
        DraftState::Unknown => format!(
            "Draft {id} may have been sent. To send it again: kai drafts send {id}. \
             To remove it: kai drafts dismiss {id}"
        ),
    })
}

/// Shows the draft and asks the question about it.
fn asked(row: &DraftRow, question: &str) -> bool {
    let asked = describe_draft(row, &folded(&row.body), folded);
    let padded = if folded(&row.body) == row.body_shown {
        String::new()
    } else {
        "\n(Long repetitions are shortened. Type d to see exactly what will be sent.)".to_owned()
    };
    yes::given(&format!("{}{padded}\n{question}", asked.trim_end()), &show::paragraphs(&row.body_shown))
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

/// A number with the names of those who have it before it.
fn beside(name: Option<&str>, number: &str) -> String {
    match name {
        Some(name) => format!("{} · {}", visible(name), visible(number)),
        None => visible(number),
    }
}

/// How many characters of the answered message a list shows.
const LISTED: usize = 120;

fn drafts(rows: &[DraftRow]) -> String {
    if rows.is_empty() {
        return "No drafts.\n".to_owned();
    }
    let row = |row: &DraftRow| {
        let reason = row.reason.as_ref().map(|why| format!(" ({})", visible(&why.to_string())));
        let opened = row.on_phone.opened_local.as_ref().map(|at| format!(" (opened on your phone at {at})"));
        let guest = row.guest.as_ref().map(|name| format!(" (from the program \"{}\")", visible(name)));
        let more = reason.or(opened).or(guest).unwrap_or_default();
        (
            row.id.0.to_string(),
            format!("{:<8} to {}: {}{more}", row.status.as_str(), recipient(row), visible(&row.body)),
        )
    };
    let answered = |row: &DraftRow| {
        row.quoted.as_ref().map(|quoted| (String::new(), format!("> {}", visible(&quoted.line(LISTED)))))
    };
    let warned = |row: &DraftRow| {
        row.unknown_recipient.then(|| (String::new(), format!("! {}", said::drafts_remark_first_contact())))
    };
    let lines =
        rows.iter().flat_map(|draft| [row(draft)].into_iter().chain(warned(draft)).chain(answered(draft)));
    show::columns(&lines.collect::<Vec<_>>())
}

/// A draft in full: nothing that would be sent is left out.
fn draft(row: &DraftRow) -> String {
    describe_draft(row, &row.body_shown, spelled_out)
}

/// Who staged a draft, as its first line says.
fn origin(row: &DraftRow) -> String {
    let edited = if row.edited { ", edited by you" } else { "" };
    match row.origin {
        DraftOrigin::User => "written by you".to_owned(),
        DraftOrigin::Command | DraftOrigin::Chat | DraftOrigin::Heartbeat | DraftOrigin::Task => {
            format!("from a {}{edited}", row.origin.as_str())
        }
        DraftOrigin::Guest => {
            format!("from the program \"{}\"{edited}", visible(row.guest.as_deref().unwrap_or_default()))
        }
    }
}

/// A draft with the given body. `shown` formats the message that it answers.
fn describe_draft(row: &DraftRow, body: &str, shown: fn(&str) -> String) -> String {
    let reply = match &row.in_reply_to {
        Some(ReplyTo::Sms(id)) => format!(", reply to SMS {id}"),
        Some(ReplyTo::Notification(_)) => ", reply to a notification".to_owned(),
        None => String::new(),
    };
    let mut text = format!(
        "Draft {} ({}{}) {}, {}{reply}\nTo: {}\n",
        row.id.0,
        row.status.as_str(),
        row.reason.as_ref().map(|why| format!(": {}", visible(&why.to_string()))).unwrap_or_default(),
        origin(row),
        row.created_local,
        recipient(row)
    );
    text.extend(row.phone.as_ref().map(|phone| format!("By: {}\n", by(phone))));
    text.extend(row.on_phone.opened_local.as_ref().map(|at| format!("Opened on your phone at {at}\n")));
    text.extend(row.remarks.iter().map(|remark| format!("! {}\n", visible(&remark.to_string()))));
    text.extend(row.quoted.as_ref().map(|quoted| quote(&shown(quoted.as_written()))));
    let size = row.segments.map_or_else(|| "Reply".to_owned(), |count| format!("{count} SMS"));
    text + &format!("{size}:\n\n{}\n", show::paragraphs(body))
}

/// The recipient, with the names of those who have the number, or the app whose notification is answered.
fn recipient(row: &DraftRow) -> String {
    let app = row.app.as_ref().filter(|app| **app != row.to).map(|app| format!(" ({})", visible(app)));
    beside(row.name.as_deref(), &row.to) + &app.unwrap_or_default()
}

/// The phone that a draft leaves by.
fn by(phone: &DraftPhone) -> String {
    match &phone.name {
        Some(name) => visible(name),
        None if phone.source.is_here() => "this phone".to_owned(),
        None => "a phone that is no longer paired".to_owned(),
    }
}

/// The answered message, with each line marked so that it cannot be mistaken for the draft below it.
fn quote(shown: &str) -> String {
    let lines = shown.lines().map(|line| format!("> {}\n", visible(line)));
    ["They wrote:\n".to_owned()].into_iter().chain(lines).collect()
}

fn outcome(row: &DraftRow) -> String {
    let to = recipient(row);
    let why = row.reason.as_ref().map(|why| visible(&why.to_string())).unwrap_or_default();
    match row.status {
        DraftState::Sent => format!("Sent to {to}: handed to the phone. {why}\n").replace(". \n", ".\n"),
        DraftState::Failed => format!("The message to {to} was not sent: {why}\n"),
        DraftState::Pending if row.on_phone.opened_at.is_some() => {
            format!("The message to {to} is open on your phone. Send it there.\n")
        }
        DraftState::Pending | DraftState::Sending | DraftState::Unknown => {
            format!("The message to {to} may have been sent: {why}\n")
        }
    }
}
