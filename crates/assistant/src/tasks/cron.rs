//! Parses cron expressions of five fields and computes when they fire next. Pure.
//!
//! The fields are minute, hour, day of the month, month and day of the week; each is `*`, `*/n`, `a`, `a-b`, `a-b/n`,
//! or several of these separated by commas. Sunday is 0 (and 7). Months and days of the week may be named (`JAN`,
//! `MON-FRI`), and `@daily` and the like stand for a whole expression. If both the day of the month and the day of the
//! week are restricted, a day that matches either one counts, as in crontab(5); a field that begins with `*` is not a
//! restriction.
//!
//! Times are local wall-clock times. A time that a clock change skips is moved forward by the length of the change. A
//! time that occurs twice fires only the first time, unless the expression fires every hour: then it fires both times.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan};
use kai_words::{Said, said};

/// A parsed cron expression. It is known to fire, if only once in decades.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    written: String,
    pub(super) minutes: Field,
    pub(super) hours: Field,
    pub(super) days: Field,
    pub(super) months: Field,
    pub(super) weekdays: Field,
}

/// The numbers that one field matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    /// One bit per number.
    set: u64,
    /// The field begins with `*`.
    pub(super) starred: bool,
}

/// The values that a field may have.
struct Range {
    name: fn() -> Said,
    from: u8,
    to: u8,
    /// Names of its values, starting with `from`; empty if they have none.
    called: &'static [&'static str],
}

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
/// Words that stand for a whole expression.
const NAMED: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

const MINUTE: Range = Range { name: said::cron_wrong_minute, from: 0, to: 59, called: &[] };
const HOUR: Range = Range { name: said::cron_wrong_hour, from: 0, to: 23, called: &[] };
const DAY: Range = Range { name: said::cron_wrong_day, from: 1, to: 31, called: &[] };
const MONTH: Range = Range { name: said::cron_wrong_month, from: 1, to: 12, called: &MONTHS };
const WEEKDAY: Range = Range { name: said::cron_wrong_weekday, from: 0, to: 7, called: &WEEKDAYS };

/// How far to search for the next time. The rarest expression, 29 February on a given day of the week, may take 40
/// years.
const LOOK_AHEAD_DAYS: usize = 41 * 366;
/// The longest clock change that is taken into account, in hours.
const LONGEST_CHANGE_HOURS: i8 = 3;

impl FromStr for Cron {
    type Err = Said;

    fn from_str(typed: &str) -> Result<Self, Said> {
        let fields: Vec<&str> = meant(typed)?.split_whitespace().collect();
        let &[minutes, hours, days, months, weekdays] = fields.as_slice() else {
            return Err(said::cron_wrong_fields(fields.len()));
        };
        let cron = Self {
            written: fields.join(" "),
            minutes: Field::parse(minutes, &MINUTE)?,
            hours: Field::parse(hours, &HOUR)?,
            days: Field::parse(days, &DAY)?,
            months: Field::parse(months, &MONTH)?,
            weekdays: Field::parse(weekdays, &WEEKDAY)?.with_one_sunday(),
        };
        // The start date does not matter, because the search covers the longest possible gap.
        let fires = days_from(jiff::civil::date(2000, 1, 1)).any(|day| cron.fits(day));
        if fires { Ok(cron) } else { Err(said::cron_wrong_never(cron.written)) }
    }
}

/// The expression that was typed, or the one that an `@` word stands for.
fn meant(typed: &str) -> Result<&str, Said> {
    let word = typed.trim();
    if !word.starts_with('@') {
        return Ok(typed);
    }
    let named = NAMED.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    named.map(|(_, stands_for)| *stands_for).ok_or_else(|| {
        let all: Vec<&str> = NAMED.iter().map(|(word, _)| *word).collect();
        let shown: String = word.chars().take(40).collect();
        said::cron_wrong_word(shown, all.join(", "))
    })
}

/// Shows the expression as it was written, with one space between the fields.
impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl Cron {
    /// The first time later than `moment`; `None` only at the end of the calendar.
    pub fn after(&self, moment: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let local = moment.to_zoned(zone.clone());
        let today = local.date();
        let from = local.hour().saturating_sub(LONGEST_CHANGE_HOURS);
        days_from(today).filter(|day| self.fits(*day)).find_map(|day| {
            let from = if day == today { from } else { 0 };
            // The minimum rather than the first, because a time that a clock change moved forward may come after a
            // later one.
            self.moments(day, from, zone).filter(|at| *at > moment).min()
        })
    }

    fn fits(&self, day: Date) -> bool {
        let by_day = self.days.has(day.day());
        let by_weekday = self.weekdays.has(day.weekday().to_sunday_zero_offset());
        let by_either = if self.either_day() { by_day || by_weekday } else { by_day && by_weekday };
        self.months.has(day.month()) && by_either
    }

    /// Whether both day fields are restricted, so that matching one of them is enough.
    pub(super) fn either_day(&self) -> bool {
        !self.days.starred && !self.weekdays.starred
    }

    /// The times of a day at which the expression fires, from that hour on.
    fn moments(&self, day: Date, from: i8, zone: &TimeZone) -> impl Iterator<Item = Timestamp> {
        let hours = self.hours.numbers().filter(move |hour| *hour >= from);
        let times = hours.flat_map(|hour| self.minutes.numbers().map(move |minute| (hour, minute)));
        let always = self.every_hour();
        times.flat_map(move |(hour, minute)| {
            let ambiguous = zone.to_ambiguous_timestamp(day.at(hour, minute, 0, 0));
            let twice = always && matches!(ambiguous.offset(), AmbiguousOffset::Fold { .. });
            let second = if twice { ambiguous.later().ok() } else { None };
            ambiguous.compatible().ok().into_iter().chain(second)
        })
    }

    pub(super) fn every_hour(&self) -> bool {
        self.hours.numbers().count() == 24
    }
}

fn days_from(first: Date) -> impl Iterator<Item = Date> {
    std::iter::successors(Some(first), |day| day.checked_add(1.day()).ok()).take(LOOK_AHEAD_DAYS)
}

impl Field {
    fn parse(typed: &str, range: &Range) -> Result<Self, Said> {
        let parts: Result<Vec<u64>, Said> = typed.split(',').map(|part| range.part(part)).collect();
        let set = parts?.into_iter().fold(0, |all, part| all | part);
        Ok(Self { set, starred: typed.starts_with('*') })
    }

    /// Maps 7 to 0, so that Sunday has one number.
    fn with_one_sunday(self) -> Self {
        let sunday = (self.set >> 7) & 1;
        Self { set: (self.set & 0x7f) | sunday, ..self }
    }

    fn has(self, number: i8) -> bool {
        (self.set >> number) & 1 == 1
    }

    /// All matching numbers, in ascending order.
    pub(super) fn numbers(self) -> impl Iterator<Item = i8> {
        (0..60).filter(move |number| self.has(*number))
    }
}

impl Range {
    /// Parses `*`, `a` or `a-b`; the first and the last may have a `/n`.
    fn part(&self, part: &str) -> Result<u64, Said> {
        let (span, step) = match part.split_once('/') {
            Some((span, step)) => (span, Some(self.digits(step, part)?)),
            None => (part, None),
        };
        let (from, to) = match (span, span.split_once('-')) {
            ("*", _) => (self.from, self.to),
            (_, Some((from, to))) => self.span(self.number(from, part)?, self.number(to, part)?, to),
            (_, None) if step.is_none() => (self.number(span, part)?, self.number(span, part)?),
            (_, None) => return Err(self.refused(part)),
        };
        if from < self.from || to > self.to || from > to || step == Some(0) {
            return Err(self.refused(part));
        }
        let numbers = (from..=to).step_by(usize::from(step.unwrap_or(1)));
        Ok(numbers.fold(0, |set, number| set | 1 << number))
    }

    /// The ends of a range. If a range of weekdays ends with `SUN`, Sunday counts as 7, so that `MON-SUN` works.
    fn span(&self, from: u8, to: u8, named: &str) -> (u8, u8) {
        let sunday = named.eq_ignore_ascii_case(WEEKDAYS[0]) && self.to == WEEKDAY.to;
        (from, if sunday && from > 0 { self.to } else { to })
    }

    /// Parses a number or a name.
    fn number(&self, written: &str, part: &str) -> Result<u8, Said> {
        let named = self.called.iter().zip(self.from..).find(|(name, _)| name.eq_ignore_ascii_case(written));
        named.map_or_else(|| self.digits(written, part), |(_, number)| Ok(number))
    }

    fn digits(&self, digits: &str, part: &str) -> Result<u8, Said> {
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| digits.parse().ok()).flatten().ok_or_else(|| self.refused(part))
    }

    fn refused(&self, part: &str) -> Said {
        let Self { name, from, to, called } = self;
        match (called.first(), called.last()) {
            (Some(first), Some(last)) => said::cron_wrong_named(part, name(), *from, *to, *first, *last),
            _ => said::cron_wrong_part(part, name(), *from, *to),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
