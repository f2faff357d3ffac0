//! Describes a cron expression in words, such as "every weekday at 7:30". Pure.

use jiff::Zoned;
use kai_words::Lang;

use super::cron::Cron;

/// If there are more times of day than this, they are described by a rule rather than listed.
const TIMES_TOLD: usize = 6;

/// Describes the whole expression, without a capital letter or a full stop.
pub fn describe(cron: &Cron, lang: Lang) -> String {
    let words = Words(lang);
    match (words.times(cron), words.days(cron)) {
        (Times::At(list), days) => {
            lang.cron_at(days.unwrap_or_else(|| lang.cron_every_day().to_owned()), list)
        }
        (Times::Every(rule), None) => rule,
        (Times::Every(rule), Some(days)) => lang.cron_rule_days(rule, days),
    }
}

/// Describes a single moment: "once, on Monday, 16 November 2026 at 14:05".
pub fn once(at: &Zoned, lang: Lang) -> String {
    let name = |names: &str, place: i8| chosen(names, &[place]).concat();
    let weekday = name(lang.cron_days(), at.weekday().to_sunday_zero_offset());
    let month = name(lang.cron_months(), at.month() - 1);
    lang.cron_once(weekday, at.day(), month, at.year(), clock(at.hour(), at.minute()))
}

/// The times of day.
enum Times {
    /// "7:30 and 19:30"
    At(String),
    /// "every 15 minutes"
    Every(String),
}

/// The language of a description.
#[derive(Clone, Copy)]
struct Words(Lang);

impl Words {
    fn times(self, cron: &Cron) -> Times {
        let (hours, minutes): (Vec<i8>, Vec<i8>) =
            (cron.hours.numbers().collect(), cron.minutes.numbers().collect());
        if cron.every_hour() {
            return Times::Every(match minutes.as_slice() {
                [0] => self.0.cron_every_hour().to_owned(),
                _ => self
                    .minute_rule(&minutes)
                    .unwrap_or_else(|| self.0.cron_every_hour_at(self.numbers(&minutes), minutes.len())),
            });
        }
        if hours.len() * minutes.len() <= TIMES_TOLD {
            let times = hours.iter().flat_map(|hour| minutes.iter().map(move |minute| clock(*hour, *minute)));
            return Times::At(self.listed(&times.collect::<Vec<_>>()));
        }
        Times::Every(self.hour_rule(&hours, &minutes))
    }

    /// "every minute", "every 15 minutes"; `None` if the minutes are not evenly spaced.
    fn minute_rule(self, minutes: &[i8]) -> Option<String> {
        step(minutes, 60).map(|n| self.0.cron_every_minutes(n))
    }

    /// Describes several hours of the day, but not all.
    fn hour_rule(self, hours: &[i8], minutes: &[i8]) -> String {
        let ends = |numbers: &[i8]| numbers.first().copied().zip(numbers.last().copied()).unwrap_or_default();
        let ((from, to), (first, last)) = (ends(hours), ends(minutes));
        let span = |rule: &str| self.0.cron_rule_span(rule, clock(from, first), clock(to, last));
        match (step(hours, 24), minutes) {
            (Some(n), [0]) => self.0.cron_every_hours(n),
            (Some(n), [minute]) => self.0.cron_every_hours_at(minute, n),
            (_, [_]) if adjacent(hours) => span(self.0.cron_every_hour()),
            _ => match self.minute_rule(minutes) {
                Some(rule) if adjacent(hours) => span(&rule),
                Some(rule) => self.0.cron_rule_hours(rule, self.numbers(hours), hours.len()),
                None => {
                    let hours = self.0.cron_hours(self.numbers(hours), hours.len());
                    self.0.cron_minutes_of(self.numbers(minutes), hours, minutes.len())
                }
            },
        }
    }

    /// Describes the days; `None` if every day matches.
    fn days(self, cron: &Cron) -> Option<String> {
        let of_month: Vec<i8> = cron.days.numbers().collect();
        let of_week: Vec<i8> = cron.weekdays.numbers().collect();
        let months = self.months(cron);
        let (any_day, any_weekday) = (of_month.len() == 31, of_week.len() == 7);
        // If either field is enough and one of them matches every day, every day matches.
        if (any_day && any_weekday) || (cron.either_day() && (any_day || any_weekday)) {
            return months.map(|months| self.0.cron_every_day_in(months));
        }
        let dates = || self.dates(&of_month, months.as_deref());
        let weekdays = || match &months {
            Some(months) => self.0.cron_in_months(self.weekdays(&of_week), months),
            None => self.weekdays(&of_week),
        };
        Some(match (any_day, any_weekday) {
            (true, _) => weekdays(),
            (_, true) => dates(),
            _ if cron.either_day() => self.0.cron_either(dates(), weekdays()),
            _ => {
                let any = joined(&self.day_names(&of_week), |head, last| self.0.cron_list_or(head, last));
                self.0.cron_if(dates(), any)
            }
        })
    }

    fn months(self, cron: &Cron) -> Option<String> {
        let numbers: Vec<i8> = cron.months.numbers().map(|month| month - 1).collect();
        (numbers.len() < 12).then(|| self.listed(&chosen(self.0.cron_months(), &numbers)))
    }

    /// "on 24 December", "on day 1 of every month"
    fn dates(self, days: &[i8], months: Option<&str>) -> String {
        let list = || self.listed(&days.iter().map(|day| self.0.cron_day(day)).collect::<Vec<_>>());
        match (days, months) {
            ([day], Some(months)) => self.0.cron_date(day, months),
            (_, Some(months)) => self.0.cron_dates_in(list(), months),
            (_, None) => self.0.cron_dates(list(), days.len()),
        }
    }

    fn weekdays(self, days: &[i8]) -> String {
        match days {
            [1, 2, 3, 4, 5] => self.0.cron_weekdays().to_owned(),
            [from, .., to] if days.len() > 2 && adjacent(days) => {
                match self.day_names(&[*from, *to]).as_slice() {
                    [from, to] => self.0.cron_day_span(from, to),
                    _ => String::new(),
                }
            }
            [0, 6] => self.0.cron_weekend().to_owned(),
            _ => self.0.cron_every(self.listed(&self.day_names(days))),
        }
    }

    fn day_names(self, days: &[i8]) -> Vec<String> {
        chosen(self.0.cron_days(), days)
    }

    fn numbers(self, numbers: &[i8]) -> String {
        self.listed(&numbers.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    fn listed(self, things: &[String]) -> String {
        joined(things, |head, last| self.0.cron_list_and(head, last))
    }
}

fn joined(things: &[String], join: impl Fn(String, &str) -> String) -> String {
    match things {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => join(head.join(", "), last),
    }
}

/// The names at these places of a list of names that are separated by blanks.
fn chosen(names: &str, places: &[i8]) -> Vec<String> {
    let names: Vec<&str> = names.split(' ').collect();
    places.iter().filter_map(|at| names.get(usize::try_from(*at).ok()?)).map(ToString::to_string).collect()
}

/// The n of "every n" if the numbers are evenly spaced through all of `whole`.
fn step(numbers: &[i8], whole: usize) -> Option<usize> {
    let n = whole.checked_div(numbers.len()).filter(|n| n * numbers.len() == whole)?;
    let even = numbers.iter().enumerate().all(|(at, number)| usize::try_from(*number) == Ok(at * n));
    even.then_some(n)
}

fn adjacent(numbers: &[i8]) -> bool {
    numbers.windows(2).all(|pair| matches!(pair, [a, b] if *b == a + 1))
}

fn clock(hour: i8, minute: i8) -> String {
    format!("{hour}:{minute:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences() {
        for (written, expected) in [
            ("30 7 * * 1-5", "every weekday at 7:30"),
            ("0 9 * * *", "every day at 9:00"),
            ("5 0 * * *", "every day at 0:05"),
            ("0 9,18 * * *", "every day at 9:00 and 18:00"),
            ("0,30 9,18 * * *", "every day at 9:00, 9:30, 18:00 and 18:30"),
            ("* * * * *", "every minute"),
            ("*/15 * * * *", "every 15 minutes"),
            ("0,20,40 * * * *", "every 20 minutes"),
            ("*/7 * * * *", "every hour at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56"),
            ("0 * * * *", "every hour"),
            ("10 * * * *", "every hour at minute 10"),
            ("5,10 * * * *", "every hour at minutes 5 and 10"),
            ("0 */2 * * *", "every 2 hours"),
            ("30 */3 * * *", "every 3 hours at minute 30"),
            ("0 */5 * * *", "every day at 0:00, 5:00, 10:00, 15:00 and 20:00"),
            ("0 8-20 * * *", "every hour from 8:00 to 20:00"),
            ("30 8-20 * * *", "every hour from 8:30 to 20:30"),
            ("30 1,3,5,7,9,11,14 * * *", "at minute 30 of the hours 1, 3, 5, 7, 9, 11 and 14"),
            ("5,10,20 9-11 * * *", "at minutes 5, 10 and 20 of the hours 9, 10 and 11"),
            ("*/10 9-17 * * 1-5", "every 10 minutes from 9:00 to 17:50, every weekday"),
            ("*/5 3 * * *", "every 5 minutes from 3:00 to 3:55"),
            ("*/20 1,5,9 * * *", "every 20 minutes in the hours 1, 5 and 9"),
            ("0 9 * * 0", "every Sunday at 9:00"),
            ("0 9 * * 7", "every Sunday at 9:00"),
            ("0 9 * * 1,3", "every Monday and Wednesday at 9:00"),
            ("0 9 * * 6,0", "every Saturday and Sunday at 9:00"),
            ("0 9 * * 1-4", "every day from Monday to Thursday at 9:00"),
            ("0 9 1 * *", "on day 1 of every month at 9:00"),
            ("0 9 1,15 * *", "on days 1 and 15 of every month at 9:00"),
            ("0 18 24 12 *", "on 24 December at 18:00"),
            ("0 9 1 1,7 *", "on 1 January and July at 9:00"),
            ("0 9 * 8 *", "every day in August at 9:00"),
            ("0 9 * 6-8 1-5", "every weekday in June, July and August at 9:00"),
            ("0 9 13 * 5", "on day 13 of every month and every Friday at 9:00"),
            ("0 9 1-31 * 5", "every day at 9:00"),
            (
                "0 9 1-7 * */2",
                "on days 1, 2, 3, 4, 5, 6 and 7 of every month if it is a Sunday, Tuesday, Thursday or Saturday at 9:00",
            ),
            ("*/15 * * 12 *", "every 15 minutes, every day in December"),
        ] {
            assert_eq!(describe(&written.parse().unwrap(), Lang::ENGLISH), expected, "{written}");
        }
    }

    #[test]
    fn sentences_in_german() {
        for (written, expected) in [
            ("30 7 * * 1-5", "montags bis freitags um 7:30 Uhr"),
            ("0 9,18 * * *", "täglich um 9:00 und 18:00 Uhr"),
            ("* * * * *", "jede Minute"),
            ("*/15 * * * *", "alle 15 Minuten"),
            ("10 * * * *", "jede Stunde zur Minute 10"),
            ("5,10 * * * *", "jede Stunde zu den Minuten 5 und 10"),
            ("0 */2 * * *", "alle 2 Stunden"),
            ("30 */3 * * *", "alle 3 Stunden zur Minute 30"),
            ("0 8-20 * * *", "jede Stunde von 8:00 bis 20:00 Uhr"),
            ("5,10,20 9-11 * * *", "zu den Minuten 5, 10 und 20 der Stunden 9, 10 und 11"),
            ("*/10 9-17 * * 1-5", "alle 10 Minuten von 9:00 bis 17:50 Uhr, montags bis freitags"),
            ("0 9 * * 1,3", "jeden Montag und Mittwoch um 9:00 Uhr"),
            ("0 9 * * 1-4", "täglich von Montag bis Donnerstag um 9:00 Uhr"),
            ("0 9 1,15 * *", "am 1. und 15. jedes Monats um 9:00 Uhr"),
            ("0 18 24 12 *", "am 24. Dezember um 18:00 Uhr"),
            ("0 9 * 6-8 1-5", "montags bis freitags im Juni, Juli und August um 9:00 Uhr"),
            ("0 9 13 * 5", "am 13. jedes Monats und jeden Freitag um 9:00 Uhr"),
        ] {
            assert_eq!(describe(&written.parse().unwrap(), Lang::of("de")), expected, "{written}");
        }
    }
}
