//! Under which heading of the list a chat stands: pure.

use jiff::{Timestamp, ToSpan, Zoned};
use kai_words::Lang;

/// How far back a chat was last continued, as the user counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    Today,
    Yesterday,
    /// Within the last seven days.
    Week,
    Month {
        year: i16,
        month: i8,
    },
}

impl Age {
    /// The age of a time in epoch milliseconds. What comes from the future, because the clock was set back, is new.
    pub(super) fn of(at: i64, now: &Zoned) -> Self {
        let at = Timestamp::from_millisecond(at).unwrap_or_default().to_zoned(now.time_zone().clone()).date();
        let today = now.date();
        let back = |days: i32| today.checked_sub(days.days()).unwrap_or(today);
        match at {
            _ if at >= today => Self::Today,
            _ if at >= back(1) => Self::Yesterday,
            _ if at >= back(7) => Self::Week,
            _ => Self::Month { year: at.year(), month: at.month() },
        }
    }

    /// The heading, with the year if it is not this one.
    pub(super) fn heading(self, lang: Lang, now: &Zoned) -> String {
        match self {
            Self::Today => lang.list_today().to_owned(),
            Self::Yesterday => lang.list_yesterday().to_owned(),
            Self::Week => lang.list_week().to_owned(),
            Self::Month { year, month } => {
                let nth = usize::try_from(month - 1).unwrap_or_default();
                let name = lang.time_month_names().split(' ').nth(nth).unwrap_or_default();
                if year == now.year() { name.to_owned() } else { format!("{name} {year}") }
            }
        }
    }

    /// Names the group among those of the page.
    pub(super) fn id(self) -> String {
        match self {
            Self::Today => "list-today".to_owned(),
            Self::Yesterday => "list-yesterday".to_owned(),
            Self::Week => "list-week".to_owned(),
            Self::Month { year, month } => format!("list-{year}-{month}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    #[test]
    fn a_chat_stands_under_the_day_or_month_that_the_user_counts() {
        let berlin = TimeZone::fixed(jiff::tz::offset(1));
        let now = "2026-03-10T00:30:00Z".parse::<Timestamp>().unwrap().to_zoned(berlin);
        for (at, english, german) in [
            ("2026-03-11T12:00:00Z", "Today", "Heute"),
            ("2026-03-09T23:00:00Z", "Today", "Heute"),
            ("2026-03-09T22:59:59Z", "Yesterday", "Gestern"),
            ("2026-03-08T12:00:00Z", "Last 7 days", "Letzte 7 Tage"),
            ("2026-03-03T12:00:00Z", "Last 7 days", "Letzte 7 Tage"),
            ("2026-03-02T12:00:00Z", "March", "März"),
            ("2026-01-31T23:30:00Z", "February", "Februar"),
            ("2025-12-31T12:00:00Z", "December 2025", "Dezember 2025"),
        ] {
            let age = Age::of(at.parse::<Timestamp>().unwrap().as_millisecond(), &now);
            let headings = (age.heading(Lang::ENGLISH, &now), age.heading(Lang::of("de"), &now));
            assert_eq!(headings, (english.to_owned(), german.to_owned()), "{at}");
        }
    }
}
