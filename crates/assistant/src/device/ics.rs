//! Renders an event as an iCalendar file (RFC 5545). Pure.
//!
//! Times are written in UTC, so the file needs no time zone definitions.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::when::When;

/// A calendar event, already checked.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) uid: String,
    /// When the file was created.
    pub(super) stamp: Timestamp,
    pub(super) title: String,
    pub(super) when: When,
    pub(super) description: String,
    pub(super) location: String,
    pub(super) reminder_minutes: Option<u32>,
}

/// The longest line in octets; longer lines are folded.
const WIDTH: usize = 75;

pub(super) fn render(event: &Event) -> String {
    let (start, end) = match event.when {
        When::Timed { start, end } => (format!("DTSTART:{}", utc(start)), format!("DTEND:{}", utc(end))),
        When::Days { start, end } => (
            format!("DTSTART;VALUE=DATE:{}", start.strftime("%Y%m%d")),
            format!("DTEND;VALUE=DATE:{}", end.strftime("%Y%m%d")),
        ),
    };
    let mut file = vec![
        "BEGIN:VCALENDAR".to_owned(),
        "VERSION:2.0".to_owned(),
        "PRODID:-//Kai//Kai//EN".to_owned(),
        "BEGIN:VEVENT".to_owned(),
        format!("UID:{}", event.uid),
        format!("DTSTAMP:{}", utc(event.stamp)),
        start,
        end,
        format!("SUMMARY:{}", escaped(&event.title)),
    ];
    let optional = [("DESCRIPTION", &event.description), ("LOCATION", &event.location)];
    let given = optional.into_iter().filter(|(_, text)| !text.is_empty());
    file.extend(given.map(|(name, text)| format!("{name}:{}", escaped(text))));
    file.extend(event.reminder_minutes.into_iter().flat_map(|minutes| reminder(minutes, &event.title)));
    file.extend(["END:VEVENT".to_owned(), "END:VCALENDAR".to_owned()]);
    file.iter().map(|line| folded(line)).collect()
}

fn reminder(minutes: u32, title: &str) -> [String; 5] {
    [
        "BEGIN:VALARM".to_owned(),
        "ACTION:DISPLAY".to_owned(),
        format!("DESCRIPTION:{}", escaped(title)),
        format!("TRIGGER:-PT{minutes}M"),
        "END:VALARM".to_owned(),
    ]
}

fn utc(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// Escapes a text so that it cannot end its property or its line.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.replace("\r\n", "\n").chars() {
        match c {
            '\\' | ';' | ',' => safe.extend(['\\', c]),
            // Some calendars treat these as line breaks too.
            '\n' | '\r' | '\u{0b}' | '\u{0c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => safe.push_str("\\n"),
            '\t' => safe.push('\t'),
            c if c.is_control() => {}
            c => safe.push(c),
        }
    }
    safe
}

/// Folds a line into pieces of at most [`WIDTH`] octets, cut between characters; each piece after the first starts with
/// a space.
fn folded(line: &str) -> String {
    let (mut out, mut used) = (String::with_capacity(line.len() + 8), 0);
    for c in line.chars() {
        if used + c.len_utf8() > WIDTH {
            out.push_str("\r\n ");
            used = 1;
        }
        out.push(c);
        used += c.len_utf8();
    }
    out.push_str("\r\n");
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::when;
    use super::*;

    fn event(title: &str, description: &str) -> Event {
        let when = when::timed("2026-03-09T15:00+01:00", None, &TimeZone::UTC).unwrap();
        Event {
            uid: "1@kai".to_owned(),
            stamp: "2026-03-01T00:00:00Z".parse().unwrap(),
            title: title.to_owned(),
            when,
            description: description.to_owned(),
            location: String::new(),
            reminder_minutes: None,
        }
    }

    /// Undoes folding, as a calendar does.
    fn unfolded(text: &str) -> Vec<String> {
        text.replace("\r\n ", "").split_terminator("\r\n").map(str::to_owned).collect()
    }

    #[test]
    fn a_whole_event() {
        let mut event = event("Tea; with Ann, \\o/", "Line 1\nLine 2");
        event.location = "Café Größe".to_owned();
        event.reminder_minutes = Some(15);
        let expected = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Kai//Kai//EN\r\nBEGIN:VEVENT\r\nUID:1@kai\r\n\
             DTSTAMP:20260301T000000Z\r\nDTSTART:20260309T140000Z\r\nDTEND:20260309T150000Z\r\n\
             SUMMARY:Tea\\; with Ann\\, \\\\o/\r\nDESCRIPTION:Line 1\\nLine 2\r\nLOCATION:Café Größe\r\n\
             BEGIN:VALARM\r\nACTION:DISPLAY\r\nDESCRIPTION:Tea\\; with Ann\\, \\\\o/\r\nTRIGGER:-PT15M\r\n\
             END:VALARM\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
        assert_eq!(render(&event), expected);
    }

    #[test]
    fn whole_days_are_dates() {
        let mut event = event("Fair", "");
        event.when = when::days("2026-12-31", None).unwrap();
        let lines = unfolded(&render(&event));
        assert!(lines.contains(&"DTSTART;VALUE=DATE:20261231".to_owned()), "{lines:?}");
        assert!(lines.contains(&"DTEND;VALUE=DATE:20270101".to_owned()), "{lines:?}");
    }

    #[test]
    fn no_text_can_add_a_line_of_its_own() {
        for hostile in [
            "x\nATTENDEE:mailto:eve@example.org",
            "x\r\nATTENDEE:mailto:eve@example.org",
            "x\rATTENDEE:mailto:eve@example.org",
            "x\u{2028}ATTENDEE:mailto:eve@example.org",
            "x\u{85}END:VEVENT",
            "x\u{0b}END:VEVENT",
            "x\0\u{7f}",
            "x\\",
        ] {
            let text = render(&event(hostile, hostile));
            assert_eq!(unfolded(&text).len(), 12, "{hostile:?}: {text}");
            assert!(!text.contains(['\0', '\u{7f}', '\u{85}', '\u{2028}', '\u{0b}']), "{hostile:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_again(title in "\\PC{0,200}", description in "[\\PC\n;,\\\\]{1,300}") {
            let text = render(&event(&title, &description));
            for line in text.split_terminator("\r\n") {
                prop_assert!(line.len() <= WIDTH, "{} octets", line.len());
                prop_assert!(!line.contains(['\r', '\n']));
            }
            let lines = unfolded(&text);
            prop_assert_eq!(lines.len(), 12);
            let read = lines[9].strip_prefix("DESCRIPTION:").unwrap();
            prop_assert_eq!(unescaped(read), description.replace(['\u{2028}', '\u{2029}'], "\n"));
        }
    }

    fn unescaped(text: &str) -> String {
        let (mut out, mut chars) = (String::new(), text.chars());
        while let Some(c) = chars.next() {
            match (c, if c == '\\' { chars.next() } else { None }) {
                ('\\', Some('n')) => out.push('\n'),
                ('\\', Some(next)) => out.push(next),
                (c, _) => out.push(c),
            }
        }
        out
    }
}
