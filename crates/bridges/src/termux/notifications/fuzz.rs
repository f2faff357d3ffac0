//! Tests the parsing of `termux-notification-list` with mutated output.

#![expect(clippy::unwrap_used, reason = "a check may fail loudly")]

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kai_assistant::access::Access;
use kai_assistant::notifications::record::{Record, TEXT_LIMIT};
use kai_assistant::source::SourceId;

use super::{difference, understood};

#[cfg(test)]
pub(super) const TWO: &str = r#"[
    {"id":7,"tag":"","key":"0|org.signal|7|null|10123","group":"","packageName":"org.signal","title":"Alice",
     "content":"Dinner?","when":"2026-11-15 00:30:00","lines":["a","b"]},
    {"id":8,"key":"k8","packageName":"org.x","when":"292269055-12-02 17:47:04"}]"#;

/// Checks that any output gives notifications of limited size or a reason of limited length, and that an unchanged
/// tray is not reported again.
pub(in crate::termux) fn check(said: &str) {
    match understood(said, &TimeZone::get("Europe/Berlin").unwrap()) {
        Ok(tray) => {
            assert!(difference(Some(&tray), &tray, true).is_empty());
            for (id, post) in &tray {
                check_record(id.as_str(), &Record::of(SourceId::HERE, post, Timestamp::UNIX_EPOCH));
            }
        }
        Err(Access::Denied(why) | Access::Silent(why)) => {
            assert!(why.to_string().chars().count() <= 600, "{why}");
        }
        Err(other) => panic!("{other:?}"),
    }
}

fn check_record(id: &str, record: &Record) {
    let line = |text: &str| text.chars().count() <= 300 && !text.chars().any(char::is_control);
    assert!(line(id) && line(&record.package_name), "{record:?}");
    assert!(line(record.title.as_written()) && line(record.app_label.as_written()), "{record:?}");
    let text = record.text.as_written();
    assert!(text.chars().count() <= TEXT_LIMIT);
    assert!(!text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')), "{text:?}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const REFUSED: &str = r#"{"error":"Please grant"}"#;

    proptest! {
        #[test]
        fn whatever_is_printed_is_a_tray_or_a_reason(said in kai_mutate::text([TWO, REFUSED, "[]"].map(str::to_owned).to_vec())) {
            check(&said);
        }
    }
}
