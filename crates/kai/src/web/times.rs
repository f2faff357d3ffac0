//! Times as the user reads them: in their time zone, written the way their language writes them.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use kai_words::Lang;
use maud::{Markup, html};

/// What is needed to write a time.
#[derive(Debug, Clone)]
pub(super) struct Times {
    pub(super) lang: Lang,
    pub(super) zone: TimeZone,
    pub(super) now: Timestamp,
}

impl Times {
    /// A time given in epoch milliseconds. The script shows how long ago it is and keeps this for the pointer.
    pub(super) fn moment(&self, at: i64) -> Markup {
        html! { time datetime=(kai_assistant::moment::stamp(&self.here(at))) { (self.text(at)) } }
    }

    /// The same as plain text, for the middle of a sentence.
    pub(super) fn text(&self, at: i64) -> String {
        self.written(&self.here(at))
    }

    fn here(&self, at: i64) -> Zoned {
        Timestamp::from_millisecond(at).unwrap_or_default().to_zoned(self.zone.clone())
    }

    /// A time given in epoch milliseconds that reads as a date in its sentence, such as "since Nov 3, 17:09".
    pub(super) fn date(&self, at: i64) -> Markup {
        let at = Timestamp::from_millisecond(at).unwrap_or_default().to_zoned(self.zone.clone());
        html! { time datetime=(kai_assistant::moment::stamp(&at)) data-fixed { (self.written(&at)) } }
    }

    /// The day and the time, with the year if it is not this one.
    pub(super) fn written(&self, at: &Zoned) -> String {
        let this_year = at.year() == self.now.to_zoned(self.zone.clone()).year();
        let pattern = if this_year { self.lang.time_moment() } else { self.lang.time_moment_of_year() };
        let month =
            self.lang.time_months().split(' ').nth(usize::try_from(at.month() - 1).unwrap_or_default());
        at.strftime(&pattern.replace("%b", month.unwrap_or_default())).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_the_language_does() {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
        let written = |locale: &str, at: &str| {
            let times = Times { lang: Lang::of(locale), zone: TimeZone::UTC, now };
            times.written(&at.parse::<Timestamp>().unwrap().to_zoned(TimeZone::UTC))
        };
        for (locale, at, expected) in [
            ("en", "2026-11-15T17:09:00Z", "Nov 15, 17:09"),
            ("de", "2026-11-15T17:09:00Z", "15.11., 17:09"),
            ("en", "2025-03-01T08:05:00Z", "Mar 1, 2025, 08:05"),
            ("de", "2025-03-01T08:05:00Z", "1.3.2025, 08:05"),
        ] {
            assert_eq!(written(locale, at), expected);
        }
    }
}
