//! `kai drafts` on the terminal. Instead of tapping a button, the user types `y` below the whole draft.

use std::io::IsTerminal;
use std::process::ExitCode;

use kai_assistant::legible::{folded, spelled_out};
use kai_assistant::outbox::{DraftId, DraftOrigin, DraftState, ReplyTo, address};
use serde_json::json;

use super::asking::Cli;
use super::{show, yes};
use crate::call::Call;
use crate::call::drafts::{Button, DraftPhone, DraftRow, DraftsCall, EditCall, MailRow, TapCall};
use crate::cli::args::drafts::{DraftsCommand, NewHeaders};
use crate::failure::Failure;
use crate::terminal::input;
use crate::terminal::out::visible;

impl Cli {
    pub(super) fn drafts(&self, command: &DraftsCommand) -> Result<ExitCode, Failure> {
        match command {
            DraftsCommand::List { full } => self.show(Call::Drafts(DraftsCall::List), |rows: &Vec<_>| {
                drafts(rows, if *full { usize::MAX } else { LISTED })
            }),
            DraftsCommand::Show { id } => {
                self.show(Call::Drafts(DraftsCall::Show { id: DraftId(*id) }), draft)
            }
            DraftsCommand::Send { id } => self.tap(DraftId(*id), &[DraftState::Pending, DraftState::Unknown]),
            DraftsCommand::Compose { id } => self.compose(DraftId(*id)),
            DraftsCommand::Retry { id } => self.tap(DraftId(*id), &[DraftState::Failed, DraftState::Unknown]),
            DraftsCommand::Edit { id, text, to, headers } => {
                self.edit(DraftId(*id), text.clone(), to.clone(), headers.clone())
            }
            DraftsCommand::Discard { id: Some(id), .. } => self.discard(DraftId(*id)),
            DraftsCommand::Discard { id: None, .. } => self.discard_all(),
            DraftsCommand::Undo => self.undo_discard(),
            DraftsCommand::Dismiss { id } => self.dismiss(DraftId(*id)),
        }
    }

    /// Edits a draft, and shows it with its warnings as it waits now.
    fn edit(
        &self,
        id: DraftId,
        body: Option<String>,
        to: Option<String>,
        headers: NewHeaders,
    ) -> Result<ExitCode, Failure> {
        let row: DraftRow = self.caller.ask(Call::Drafts(DraftsCall::Show { id }))?;
        let NewHeaders { cc, bcc, subject, without_quote } = headers;
        let call = EditCall { id, seen: row.digest, to, body, cc, bcc, subject, without_quote };
        self.show(Call::Drafts(DraftsCall::Edit(call)), |row: &DraftRow| {
            format!("Saved. Nothing was sent.\n\n{}", draft(row))
        })
    }

    /// Sends a draft after showing it and asking. The call carries the digest of what the user saw, so a draft that has
    /// changed since is refused.
    fn tap(&self, id: DraftId, fitting: &[DraftState]) -> Result<ExitCode, Failure> {
        let row: DraftRow = self.caller.ask(Call::Drafts(DraftsCall::Show { id }))?;
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
        let row: DraftRow = self.caller.ask(Call::Drafts(DraftsCall::Show { id }))?;
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
        let row: DraftRow = self.caller.ask(Call::Drafts(DraftsCall::Tap(call)))?;
        self.print(&row, outcome);
        Ok(row)
    }

    fn discard(&self, id: DraftId) -> Result<ExitCode, Failure> {
        let row: DraftRow = self.caller.ask(Call::Drafts(DraftsCall::Show { id }))?;
        if !row.is_discardable() {
            return Err(wrong_state(&row));
        }
        self.tell(
            Call::Drafts(DraftsCall::Discard { id }),
            |_: &DraftRow| json!({"id": id, "discarded": true}),
            |_| format!("Discarded draft {}. {UNDO}\n", id.0),
        )
    }

    /// Discards the drafts that are there now. One that comes in between stays.
    fn discard_all(&self) -> Result<ExitCode, Failure> {
        let rows: Vec<DraftRow> = self.caller.ask(Call::Drafts(DraftsCall::List))?;
        let ids = rows.iter().filter(|row| row.is_discardable()).map(|row| row.id).collect();
        self.tell(
            Call::Drafts(DraftsCall::DiscardAll { ids }),
            |gone: &Vec<DraftId>| json!({"discarded": gone}),
            |gone| match gone.len() {
                0 => "There are no drafts to discard.\n".to_owned(),
                n => format!("Discarded {}. {UNDO}\n", show::count(n, "draft")),
            },
        )
    }

    fn undo_discard(&self) -> Result<ExitCode, Failure> {
        self.tell(
            Call::Drafts(DraftsCall::Undo),
            |back: &Vec<DraftId>| json!({"restored": back}),
            |back| match back.as_slice() {
                [one] => format!("Draft {} is back.\n", one.0),
                several => format!("{} are back.\n", show::count(several.len(), "draft")),
            },
        )
    }

    /// Removes a draft that was sent, or may have been.
    fn dismiss(&self, id: DraftId) -> Result<ExitCode, Failure> {
        let row: DraftRow = self.caller.ask(Call::Drafts(DraftsCall::Show { id }))?;
        if !matches!(row.status, DraftState::Sent | DraftState::Unknown) {
            return Err(wrong_state(&row));
        }
        self.tell(
            Call::Drafts(DraftsCall::Discard { id }),
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

/// A number with the names of those who have it before it.
pub(super) fn beside(name: Option<&str>, number: &str) -> String {
    match name {
        Some(name) => format!("{} · {}", visible(name), visible(number)),
        None => visible(number),
    }
}

/// How many characters of a draft, and of the message it answers, a list shows.
const LISTED: usize = 120;

/// All drafts, each with at most so many characters of its text.
fn drafts(rows: &[DraftRow], most: usize) -> String {
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
            format!("{:<8} to {}: {}{more}", row.status.as_str(), recipient(row), beginning(&row.body, most)),
        )
    };
    let answered = |row: &DraftRow| {
        row.quoted.as_ref().map(|quoted| (String::new(), format!("> {}", visible(&quoted.line(LISTED)))))
    };
    let warned = |row: &DraftRow| {
        let remark = row.remarks.iter().find(|_| row.unknown_recipient);
        remark.map(|remark| (String::new(), format!("! {remark}")))
    };
    let lines =
        rows.iter().flat_map(|draft| [row(draft)].into_iter().chain(warned(draft)).chain(answered(draft)));
    let is_cut = |row: &&DraftRow| visible(&row.body).chars().count() > most;
    let hint = rows.iter().find(is_cut).map(|row| {
        format!("To see a draft in full: kai drafts show {}. All of them: kai drafts list --full\n", row.id.0)
    });
    show::columns(&lines.collect::<Vec<_>>()) + &hint.unwrap_or_default()
}

/// The first characters of a text on one line, with an ellipsis if something is left out.
fn beginning(text: &str, most: usize) -> String {
    let text = visible(text);
    if text.chars().count() <= most {
        return text;
    }
    let cut: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end())
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
        Some(ReplyTo::Notification(_) | ReplyTo::Email(_)) if row.mail.is_some() => {
            ", reply to a mail".to_owned()
        }
        Some(ReplyTo::Notification(_) | ReplyTo::Email(_)) => ", reply to a notification".to_owned(),
        None => String::new(),
    };
    let mut text = format!(
        "Draft {} ({}{}) {}, {}{reply}\n{}",
        row.id.0,
        row.status.as_str(),
        row.reason.as_ref().map(|why| format!(": {}", visible(&why.to_string()))).unwrap_or_default(),
        origin(row),
        row.created_local,
        headers(row)
    );
    text.extend(row.phone.as_ref().map(|phone| format!("By: {}\n", by(phone))));
    text.extend(row.on_phone.opened_local.as_ref().map(|at| format!("Opened on your phone at {at}\n")));
    text.extend(row.remarks.iter().map(|remark| format!("! {}\n", visible(&remark.to_string()))));
    let answered = row.quoted.as_ref().filter(|_| row.mail.is_none());
    text.extend(answered.map(|quoted| quote(&shown(quoted.as_written()))));
    let size = match (row.segments, &row.mail) {
        (Some(count), _) => format!("{count} SMS"),
        (None, Some(_)) => "Mail".to_owned(),
        (None, None) => "Reply".to_owned(),
    };
    let quoted = row.mail.as_ref().and_then(|mail| mail.quote.as_deref());
    let quoted = quoted.map(|quote| format!("\n{}\n", show::paragraphs(&shown(quote)))).unwrap_or_default();
    text + &format!("{size}:\n\n{}\n{quoted}", show::paragraphs(body))
}

/// Whom it goes to; of a mail also whom it is from, every copy and the subject.
fn headers(row: &DraftRow) -> String {
    let Some(MailRow { from, cc, bcc, subject, .. }) = &row.mail else {
        return format!("To: {}\n", recipient(row));
    };
    let line = |name: &str, addresses: &str| match addresses {
        "" => String::new(),
        addresses => {
            let spelled: Vec<String> = addresses.split(", ").map(spelled_address).collect();
            format!("{name}: {}\n", spelled.join(", "))
        }
    };
    let subject = format!("Subject: {}\n", visible(subject));
    [
        line("From", from),
        line("To", &row.to),
        line("Cc", &cc.join(", ")),
        line("Bcc", &bcc.join(", ")),
        subject,
    ]
    .concat()
}

/// An address as it is written, and as servers spell it if that differs.
fn spelled_address(address: &str) -> String {
    let ascii = address::ascii(address);
    if ascii == address { visible(address) } else { format!("{} ({ascii})", visible(address)) }
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
        DraftState::Sent => {
            let whom = if row.mail.is_some() { "the mail server took it" } else { "handed to the phone" };
            format!("Sent to {to}: {whom}. {why}\n").replace(". \n", ".\n")
        }
        DraftState::Failed => format!("The message to {to} was not sent: {why}\n"),
        DraftState::Pending if row.on_phone.opened_at.is_some() => {
            format!("The message to {to} is open on your phone. Send it there.\n")
        }
        DraftState::Pending | DraftState::Sending | DraftState::Unknown => {
            format!("The message to {to} may have been sent: {why}\n")
        }
    }
}
