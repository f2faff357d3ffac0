//! `kai phones` on the terminal: lists paired phones and changes what each may do.

use std::process::ExitCode;

use kai_assistant::phones::Switch;
use serde_json::json;

use super::args::messages::{OnOrOff, PhonesCommand};
use super::asking::Cli;
use super::{erasing, pairing, show};
use crate::call::Call;
use crate::call::phones::{ArchiveRow, PhoneRow, PhonesCall, SwitchesRow};
use crate::failure::Failure;
use crate::terminal::input;
use crate::terminal::out::visible;

pub(super) fn run(ask: &Cli, command: PhonesCommand) -> Result<ExitCode, Failure> {
    match command {
        PhonesCommand::List => ask.show(Call::from(PhonesCall::List), |rows: &Vec<_>| list(rows)),
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

/// Everything about each phone, in a few lines.
pub(super) fn list(rows: &[PhoneRow]) -> String {
    if rows.is_empty() {
        return "No phone is paired. To pair one: kai phones pair\n".to_owned();
    }
    show::columns(&rows.iter().flat_map(lines).collect::<Vec<_>>())
}

fn lines(row: &PhoneRow) -> Vec<(String, String)> {
    let below = |text: String| (String::new(), text);
    if !row.paired {
        let kept = show::count(usize::try_from(row.archive.messages).unwrap_or(usize::MAX), "message");
        let says = format!("{}: no longer paired, {kept} kept", visible(&row.name));
        let next = format!("to delete them: kai phones remove {}", row.id.0);
        return vec![(row.id.0.to_string(), says), below(next)];
    }
    let state = match (row.connected, &row.last_seen_local) {
        (true, _) => "connected".to_owned(),
        (false, Some(seen)) => format!("last seen {}", show::spoken(seen)),
        (false, None) => "not seen yet".to_owned(),
    };
    let default = if row.sends_by_default { ", sends by default" } else { "" };
    let mut lines = vec![
        (row.id.0.to_string(), format!("{}: {state}{default}", visible(&row.name))),
        below(format!("on: {}", switches_on(row.switches))),
    ];
    lines.extend(archive(row.archive).map(below));
    for trouble in &row.troubles {
        lines.push(below(format!("! {}", visible(&trouble.says))));
        lines.push(below(format!("→ {}", visible(&trouble.next))));
    }
    lines
}

fn switches_on(row: SwitchesRow) -> String {
    let is_on = |switch: Switch| match switch {
        Switch::ReadSms => row.read_sms,
        Switch::SendSms => row.send_sms,
        Switch::Notifications => row.notifications,
        Switch::Names => row.names,
        Switch::Composer => row.composer,
        Switch::Tell => row.tell,
    };
    let on: Vec<&str> = Switch::ALL.into_iter().filter(|switch| is_on(*switch)).map(Switch::as_str).collect();
    if on.is_empty() { "nothing (to enable something: kai phones set)".to_owned() } else { on.join(", ") }
}

/// How many messages are kept, and how far that has come.
fn archive(archive: ArchiveRow) -> Option<String> {
    let progress = archive.progress?;
    let kept = show::count(usize::try_from(archive.messages).unwrap_or(usize::MAX), "message");
    Some(match progress {
        1000.. => format!("{kept} kept"),
        filling => format!("{kept} kept so far, {} % done", filling / 10),
    })
}

#[cfg(test)]
mod tests {
    use kai_assistant::phones::SourceId;

    use super::*;
    use crate::call::phones::TroubleRow;

    #[test]
    fn a_phone_is_listed_with_all_that_matters() {
        let off = SwitchesRow {
            read_sms: false,
            send_sms: false,
            notifications: false,
            names: false,
            composer: false,
            tell: false,
        };
        let row = PhoneRow {
            id: SourceId(2),
            device: "d".to_owned(),
            name: "Pixel\u{202e}".to_owned(),
            paired: true,
            connected: false,
            last_seen: Some(1),
            last_seen_local: Some("2027-01-15T12:00:00+01:00".to_owned()),
            paired_at: 1,
            paired_local: "2027-01-15T12:00:00+01:00".to_owned(),
            address: None,
            sends_by_default: true,
            switches: SwitchesRow { read_sms: true, names: true, ..off },
            archive: ArchiveRow { messages: 1204, progress: Some(437), last_sync: None },
            troubles: vec![TroubleRow {
                what: "silent".to_owned(),
                says: "The phone has not been seen.".to_owned(),
                next: "Open the app.".to_owned(),
            }],
        };
        let shown = list(std::slice::from_ref(&row));
        for part in [
            "last seen 2027-01-15 12:00",
            "sends by default",
            "on: read_sms, names",
            "1,204 messages kept so far, 43 % done",
            "! The phone has not been seen.",
            "→ Open the app.",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        assert!(!shown.contains('\u{202e}'));
        let done = ArchiveRow { messages: 1, progress: Some(1000), last_sync: None };
        let fresh = PhoneRow { connected: true, switches: off, archive: done, troubles: vec![], ..row };
        let former = PhoneRow { paired: false, ..fresh.clone() };
        let shown = list(&[former]);
        assert!(shown.contains("no longer paired, 1 message kept\n"), "{shown}");
        assert!(shown.contains("kai phones remove 2") && !shown.contains("connected"), "{shown}");
        let shown = list(&[fresh]);
        assert!(shown.contains("connected") && shown.contains("on: nothing"), "{shown}");
        assert!(shown.contains("1 message kept\n"), "{shown}");
    }
}
