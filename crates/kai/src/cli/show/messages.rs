//! Formats the state of SMS, notifications and paired phones.

use super::{count, switch};
use crate::call::messages::{NotificationsPart, PhonesPart, SmsPart};
use crate::call::notifications::{GapRow, ListenerState, NotificationsStatus, SourceStatus};
use crate::call::sms::{SmsSource, SmsStatus};
use crate::terminal::out::visible;

/// The rows of `kai status`.
pub(super) fn status(
    of_sms: &SmsPart,
    of_notifications: &NotificationsPart,
    of_phones: &PhonesPart,
) -> Vec<(String, String)> {
    let mut rows = vec![("SMS".to_owned(), sms(&of_sms.sms))];
    rows.extend(of_sms.sms.phones().map(|(name, phone)| (String::new(), sms_line(name, phone))));
    rows.push(("Notifications".to_owned(), notifications(&of_notifications.notifications)));
    rows.push(("Phones".to_owned(), visible(&of_phones.phones.says)));
    rows
}

fn sms(sms: &SmsStatus) -> String {
    let Some(bridge) = &sms.bridge else { return "no phone is connected".to_owned() };
    let through = if sms.has_own() { format!("connected through {bridge}. ") } else { String::new() };
    let dropped = match sms.dropped {
        0 => String::new(),
        n => format!(", {} dropped", count(n as usize, "older message")),
    };
    let reading = if sms.enabled {
        format!("enabled ({}), {} waiting{dropped}. {}", sms.access.as_str(), sms.queued, visible(&sms.says))
    } else {
        "disabled".to_owned()
    };
    format!("{through}Reading {reading}. Drafting {}", switch(sms.send_enabled))
}

/// How it stands with the messages of a paired phone.
fn sms_line(name: &str, phone: &SmsSource) -> String {
    let state = match (phone.enabled, phone.connected) {
        (false, _) => "not read",
        (true, true) => "connected",
        (true, false) => "not connected",
    };
    let kept = super::phones::kept(phone.messages, phone.progress).map(|kept| format!(", {kept}"));
    let why = phone.last_error.as_ref().filter(|_| phone.enabled);
    let why = why.map(|why| format!(". {}", visible(&why.to_string())));
    format!("{}: {state}{}{}", visible(name), kept.unwrap_or_default(), why.unwrap_or_default())
}

/// The status of reading notifications, each paired phone and each gap, on one line.
pub(crate) fn notifications(status: &NotificationsStatus) -> String {
    let error = status.last_error.as_ref().or(status.hint.as_ref());
    let why = error.map(|why| format!(": {}", visible(&why.to_string()))).unwrap_or_default();
    let bridge = status.bridge.as_deref().unwrap_or("none");
    let said = match status.state {
        _ if !status.supported => "cannot be read on this machine".to_owned(),
        ListenerState::Listening => format!("Listener active (bridge: {bridge})"),
        ListenerState::Inactive if why.is_empty() => {
            "enabled, but Kai reads them only while it is running; start it: kai".to_owned()
        }
        ListenerState::Inactive => format!("Listener inactive — check notification access{why}"),
        ListenerState::Waiting => format!("waiting for access{why}"),
        ListenerState::Off => format!("disabled{why}"),
    };
    let dropped = if status.dropped > 0 { format!(", {} dropped", status.dropped) } else { String::new() };
    let queued = format!("{said}, {} queued{dropped}", status.queued);
    let phones = status.phones().map(|(name, phone)| phone_line(name, phone));
    let gaps = status.gaps.iter().map(gap_line);
    [queued].into_iter().chain(phones).chain(gaps).collect::<Vec<_>>().join("; ")
}

fn phone_line(name: &str, phone: &SourceStatus) -> String {
    let why =
        phone.last_error.as_ref().map(|why| format!(" ({})", visible(&why.to_string()))).unwrap_or_default();
    let said = match phone.state {
        ListenerState::Listening => "listening".to_owned(),
        ListenerState::Inactive | ListenerState::Waiting => format!("not listening{why}"),
        ListenerState::Off => "disabled".to_owned(),
    };
    format!("{}: {said}", visible(name))
}

fn gap_line(row: &GapRow) -> String {
    let clock = |local: &str| local.get(11..16).unwrap_or_default().to_owned();
    let ended = row.ended_local.as_deref().map_or_else(|| "now".to_owned(), clock);
    format!("not listening {}–{ended} ({})", clock(&row.began_local), visible(&row.gap.why.to_string()))
}

#[cfg(test)]
mod tests {
    use kai_assistant::access::AccessState;
    use kai_assistant::source::SourceId;

    use super::*;

    #[test]
    fn each_phone_has_a_line_about_its_messages() {
        let phone = SmsSource {
            source: SourceId(2),
            name: Some("Pixel\u{1b}".to_owned()),
            bridge: Some("phone".to_owned()),
            enabled: true,
            connected: true,
            access: AccessState::Granted,
            queued: 0,
            dropped: 0,
            messages: 1204,
            progress: Some(1000),
            last_sync: None,
            last_error: None,
        };
        let (away, off) =
            (SmsSource { connected: false, ..phone.clone() }, SmsSource { enabled: false, ..phone.clone() });
        let fresh = SmsSource { progress: None, messages: 0, ..phone.clone() };
        let silent =
            SmsSource { last_error: Some("It is silent.".into()), progress: Some(437), ..phone.clone() };
        for (phone, expected) in [
            (phone, ": connected, 1,204 messages kept"),
            (away, ": not connected, 1,204 messages kept"),
            (off, ": not read, 1,204 messages kept"),
            (fresh, ": connected"),
            (silent, ": connected, 1,204 messages kept so far, 43 % done. It is silent."),
        ] {
            let line = sms_line(phone.name.as_deref().unwrap_or_default(), &phone);
            assert!(
                line.starts_with("Pixel") && line.ends_with(expected) && !line.contains('\u{1b}'),
                "{line}"
            );
        }
    }

    #[test]
    fn each_phone_is_told_by_name() {
        let phone = |state, last_error: Option<&str>| SourceStatus {
            source: SourceId(2),
            name: Some("Pixel\u{1b}".to_owned()),
            bridge: None,
            enabled: true,
            state,
            access: AccessState::Unknown,
            queued: 0,
            dropped: 0,
            kept: 0,
            last_seen_id: None,
            last_sync: None,
            last_attempt: None,
            last_error: last_error.map(Into::into),
            gaps: vec![],
        };
        for (phone, expected) in [
            (phone(ListenerState::Listening, None), ": listening"),
            (phone(ListenerState::Inactive, None), ": not listening"),
            (phone(ListenerState::Inactive, Some("It is away.")), ": not listening (It is away.)"),
            (phone(ListenerState::Off, Some("It is away.")), ": disabled"),
        ] {
            let line = phone_line(phone.name.as_deref().unwrap_or_default(), &phone);
            assert!(
                line.starts_with("Pixel") && line.ends_with(expected) && !line.contains('\u{1b}'),
                "{line}"
            );
        }
    }
}
