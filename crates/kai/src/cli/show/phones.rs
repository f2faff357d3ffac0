//! Formats the list of paired phones.

use kai_assistant::phones::Switch;

use super::{columns, count, spoken};
use crate::call::phones::{PhoneRow, SwitchesRow};
use crate::terminal::out::visible;

/// Everything about each phone, in a few lines.
pub(crate) fn list(rows: &[PhoneRow]) -> String {
    if rows.is_empty() {
        return "No phone is paired. To pair one: kai phones pair\n".to_owned();
    }
    columns(&rows.iter().flat_map(lines).collect::<Vec<_>>())
}

fn lines(row: &PhoneRow) -> Vec<(String, String)> {
    let below = |text: String| (String::new(), text);
    if !row.paired {
        let kept = count(usize::try_from(row.archive.messages).unwrap_or(usize::MAX), "message");
        let says = format!("{}: no longer paired, {kept} kept", visible(&row.name));
        let next = format!("to delete them: kai phones remove {}", row.id.0);
        return vec![(row.id.0.to_string(), says), below(next)];
    }
    let state = match (row.connected, &row.last_seen_local) {
        (true, _) => "connected".to_owned(),
        (false, Some(seen)) => format!("last seen {}", spoken(seen)),
        (false, None) => "not seen yet".to_owned(),
    };
    let default = if row.sends_by_default { ", sends by default" } else { "" };
    let mut lines = vec![
        (row.id.0.to_string(), format!("{}: {state}{default}", visible(&row.name))),
        below(format!("on: {}", switches_on(row.switches))),
    ];
    lines.extend(kept(row.archive.messages, row.archive.progress).map(below));
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

/// How many messages are kept, and how far that has come. `None` before the phone was asked.
pub(super) fn kept(messages: u64, progress: Option<u16>) -> Option<String> {
    let kept = count(usize::try_from(messages).unwrap_or(usize::MAX), "message");
    Some(match progress? {
        1000.. => format!("{kept} kept"),
        filling => format!("{kept} kept so far, {} % done", filling / 10),
    })
}

#[cfg(test)]
mod tests {
    use kai_assistant::phones::SourceId;

    use super::*;
    use crate::call::phones::{ArchiveRow, TroubleRow};

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
