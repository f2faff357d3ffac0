//! Tests the parsing of `termux-sms-list` with mutated output.

#![expect(clippy::unwrap_used, reason = "a check may fail loudly")]

use jiff::tz::TimeZone;
use kai_assistant::sms::port::ReadError;

use super::{Folder, read, whole_second};

/// Checks that any output gives messages with valid dates, or a one-line error that quotes no message.
pub(in crate::termux) fn check(printed: &str) {
    match read(printed, Folder::Inbox, &TimeZone::get("Europe/Berlin").unwrap()) {
        Ok(answer) => {
            assert!(answer.rows.len() <= answer.printed && answer.printed <= printed.len());
            assert!(answer.printed > 0 || printed.trim().starts_with('['), "an empty list must be one");
            for row in answer.rows {
                assert!(row.at.first <= row.at.last);
                assert_eq!(whole_second(row.at.first), row.at.first);
                let sms = row.into_sms();
                assert!(sms.body.as_written().len() + sms.address.as_written().len() <= printed.len());
            }
        }
        Err(ReadError::Failed(said) | ReadError::NotPermitted(said)) => {
            assert!(
                said.to_string().chars().count() <= 420 && !said.to_string().chars().any(char::is_control),
                "{said:?}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PRINTED: [&str; 4] = [
        r#"[{"threadid":7,"type":"inbox","read":true,"sender":"Alice","address":"+15550100","number":"+15550100","received":"2026-11-15 00:30:00","body":"hi","_id":42}]"#,
        r#"[{"_id":1,"type":"sent","received":"2026-10-25 02:30:00","body":"a"},{"_id":2,"type":"inbox","number":"30303","received":"٢٠٢٦-٠٧-٠١ ١٢:٠٠:٠٠","body":null}]"#,
        r#"{"error":"Please grant the following permission: android.permission.READ_SMS"}"#,
        "[]",
    ];

    proptest! {
        #[test]
        fn whatever_is_printed_is_a_list_or_an_error(printed in kai_mutate::text(PRINTED.map(str::to_owned).to_vec())) {
            check(&printed);
        }
    }
}
