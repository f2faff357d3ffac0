//! `kai phones` on the terminal: lists paired phones and changes what each may do.

use std::process::ExitCode;

use kai_assistant::phones::Switch;
use serde_json::json;

use super::args::messages::{OnOrOff, PhonesCommand};
use super::asking::Cli;
use super::{erasing, pairing, show};
use crate::call::Call;
use crate::call::phones::{PhoneRow, PhonesCall};
use crate::failure::Failure;
use crate::terminal::input;
use crate::terminal::out::visible;

pub(super) fn run(ask: &Cli, command: PhonesCommand) -> Result<ExitCode, Failure> {
    match command {
        PhonesCommand::List => {
            ask.show(Call::from(PhonesCall::List), |rows: &Vec<_>| show::phones::list(rows))
        }
        PhonesCommand::Pair { address } => pairing::pair(ask, address),
        PhonesCommand::Rename { phone, name } => ask
            .show(Call::from(PhonesCall::Rename { phone, name }), |row: &PhoneRow| {
                format!("Phone {} is now called {}.\n", row.id.0, visible(&row.name))
            }),
        PhonesCommand::Remove { phone, keep_messages } => remove(ask, phone, keep_messages),
        PhonesCommand::Default { phone } => {
            ask.show(Call::from(PhonesCall::Default { phone }), |rows: &Vec<_>| sends(rows))
        }
        PhonesCommand::Set { phone, switch, to } => {
            let (switch, on) = (Switch::from(switch), to == OnOrOff::On);
            let call = PhonesCall::Set { phone, switch, on };
            ask.show(Call::from(call), |row: &PhoneRow| {
                let state = if on { "on" } else { "off" };
                format!("{}: {} = {state}\n", visible(&row.name), switch.as_str())
            })
        }
    }
}

/// Unpairs a phone, after asking whether its messages go too.
fn remove(ask: &Cli, phone: String, keep_messages: bool) -> Result<ExitCode, Failure> {
    let keep_messages = keep_messages || !also_messages(ask, &phone)?;
    let call = PhonesCall::Remove { phone, keep_messages };
    ask.tell(
        Call::from(call),
        |row: &PhoneRow| json!({"id": row.id, "removed": true, "kept_messages": keep_messages}),
        |row| {
            let kept =
                if keep_messages { "Kai keeps its messages" } else { "Its messages are deleted from Kai" };
            format!("Unpaired {}. {kept}.\n", visible(&row.name))
        },
    )
}

/// Asks whether what is stored of the phone goes too.
fn also_messages(ask: &Cli, typed: &str) -> Result<bool, Failure> {
    let rows: Vec<PhoneRow> = ask.caller.ask(Call::from(PhonesCall::List))?;
    // A phone that does not exist is refused without a question.
    if !rows.iter().any(|row| is_meant(row, typed)) {
        return Ok(true);
    }
    if !input::has_person() {
        return Err(Failure::failed(
            "Nothing was changed, because kai phones remove has to ask you what happens to the phone's messages. \
             Run it on a terminal, or add --keep-messages.",
        ));
    }
    let kept: u64 = rows.iter().filter(|row| is_meant(row, typed)).map(|row| row.archive.messages).sum();
    let kept = show::count(usize::try_from(kept).unwrap_or(usize::MAX), "stored message");
    let question = format!("Also delete its {kept} and notifications from Kai?");
    erasing::unless_no(&question).ok_or_else(|| Failure::failed("Nothing was changed."))
}

fn is_meant(row: &PhoneRow, typed: &str) -> bool {
    row.name.to_lowercase() == typed.trim().to_lowercase() || row.id.0.to_string() == typed.trim()
}

fn sends(rows: &[PhoneRow]) -> String {
    match rows.iter().find(|row| row.sends_by_default) {
        Some(row) => format!("New messages are sent from {}.\n", visible(&row.name)),
        None => "New messages are sent from the phone that Kai runs on.\n".to_owned(),
    }
}
