//! Formats the state of SMS, notifications and paired phones.

use super::{count, switch};
use crate::call::messages::{NotificationsPart, PhonesPart, SmsPart};
use crate::call::notifications::{GapRow, ListenerState, NotificationsStatus};
use crate::call::sms::SmsStatus;
use crate::terminal::out::visible;

/// The rows of `kai status`.
pub(super) fn status(
    of_sms: &SmsPart,
    of_notifications: &NotificationsPart,
    of_phones: &PhonesPart,
) -> Vec<(String, String)> {
    vec![
        ("SMS".to_owned(), sms(&of_sms.sms)),
        ("Notifications".to_owned(), notifications(&of_notifications.notifications)),
        ("Phones".to_owned(), visible(&of_phones.phones.says)),
    ]
}

fn sms(sms: &SmsStatus) -> String {
    let Some(bridge) = &sms.bridge else { return "no phone is connected".to_owned() };
    let dropped = match sms.dropped {
        0 => String::new(),
        n => format!(", {} dropped", count(n as usize, "older message")),
    };
    let reading = if sms.enabled {
        format!("enabled ({}), {} waiting{dropped}. {}", sms.access.as_str(), sms.queued, visible(&sms.says))
    } else {
        "disabled".to_owned()
    };
    format!("connected through {bridge}. Reading {reading}. Drafting {}", switch(sms.send_enabled))
}

/// The status of reading notifications and each gap, on one line.
pub(crate) fn notifications(status: &NotificationsStatus) -> String {
    let error = status.last_error.as_deref().or(status.hint.as_deref());
    let why = error.map(|why| format!(": {}", visible(why))).unwrap_or_default();
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
    [queued].into_iter().chain(status.gaps.iter().map(gap_line)).collect::<Vec<_>>().join("; ")
}

fn gap_line(row: &GapRow) -> String {
    let clock = |local: &str| local.get(11..16).unwrap_or_default().to_owned();
    let ended = row.ended_local.as_deref().map_or_else(|| "now".to_owned(), clock);
    format!("not listening {}–{ended} ({})", clock(&row.began_local), visible(&row.gap.why))
}
