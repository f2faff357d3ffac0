//! The store edition holds no trace of what it may not do: not even the names.

use std::process::Command;

use crate::kit::KAI;

const NAMES: [&str; 29] = [
    "check_sms",
    "read_sms",
    "search_sms",
    "send_sms",
    "reply_sms",
    "READ_SMS",
    "SEND_SMS",
    "sms_enabled",
    "sms_send_enabled",
    "check_notifications",
    "read_notification",
    "search_notifications",
    "dismiss_notification",
    "reply_notification",
    "notifications_enabled",
    "notifications_ignored",
    "notifications_dismiss_enabled",
    "notifications_reply_enabled",
    "contact_names_enabled",
    "sms_archive_days",
    "sms_poll_interval",
    "BIND_NOTIFICATION_LISTENER_SERVICE",
    "kdeconnect",
    "KDE Connect",
    "phone_identity",
    "sends_by_default",
    "phones pair",
    "sms_threads",
    "contact_numbers",
];

fn names_in_binary() -> Vec<&'static str> {
    // Nothing of ours is optimized in a test, and the binary is large; grep takes a moment.
    let is_in_binary = |name: &&str| {
        let found = Command::new("grep").env("LC_ALL", "C").args(["-aqF", name, KAI]).status().unwrap();
        match found.code() {
            Some(0) => true,
            Some(1) => false,
            _ => panic!("grep could not look for {name}: {found}"),
        }
    };
    NAMES.into_iter().filter(is_in_binary).collect()
}

#[cfg(not(feature = "foss"))]
#[test]
fn the_store_edition_does_not_even_know_the_names() {
    assert_eq!(names_in_binary(), Vec::<&str>::new());
}

/// The other half of the proof: the same search does find the names where they belong.
#[cfg(feature = "foss")]
#[test]
fn the_foss_edition_knows_them_all() {
    assert_eq!(names_in_binary(), NAMES);
}
