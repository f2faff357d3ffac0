//! Describes a cron expression in words, such as "every weekday at 7:30". Pure.

use super::cron::Cron;

/// If there are more times of day than this, they are described by a rule rather than listed.
const TIMES_TOLD: usize = 6;
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Describes the whole expression, without a capital letter or a full stop.
pub fn describe(cron: &Cron) -> String {
    let days = days(cron);
    match times(cron) {
        Times::At(list) => {
            let days = if days.is_empty() { "every day".to_owned() } else { days };
            format!("{days} at {list}")
        }
        Times::Every(rule) if days.is_empty() => rule,
        Times::Every(rule) => format!("{rule}, {days}"),
    }
}

/// The times of day.
enum Times {
    /// "7:30 and 19:30"
    At(String),
    /// "every 15 minutes"
    Every(String),
}

fn times(cron: &Cron) -> Times {
    let (hours, minutes): (Vec<i8>, Vec<i8>) =
        (cron.hours.numbers().collect(), cron.minutes.numbers().collect());
    if cron.every_hour() {
        return Times::Every(match minutes.as_slice() {
            [0] => "every hour".to_owned(),
            _ => minute_rule(&minutes)
                .unwrap_or_else(|| format!("every hour at {}", counted("minute", &minutes))),
        });
    }
    if hours.len() * minutes.len() <= TIMES_TOLD {
        let times = hours.iter().flat_map(|hour| minutes.iter().map(move |minute| clock(*hour, *minute)));
        return Times::At(listed(&times.collect::<Vec<_>>()));
    }
    Times::Every(hour_rule(&hours, &minutes))
}

/// "every minute", "every 15 minutes"; `None` if the minutes are not evenly spaced.
fn minute_rule(minutes: &[i8]) -> Option<String> {
    match step(minutes, 60)? {
        1 => Some("every minute".to_owned()),
        n => Some(format!("every {n} minutes")),
    }
}

/// Describes several hours of the day, but not all.
fn hour_rule(hours: &[i8], minutes: &[i8]) -> String {
    let ends = |numbers: &[i8]| numbers.first().copied().zip(numbers.last().copied()).unwrap_or_default();
    let ((from, to), (first, last)) = (ends(hours), ends(minutes));
    let span = || format!("from {} to {}", clock(from, first), clock(to, last));
    match (step(hours, 24), minutes) {
        (Some(n), [0]) => format!("every {n} hours"),
        (Some(n), [_]) => format!("every {n} hours at {}", counted("minute", minutes)),
        (_, [_]) if adjacent(hours) => format!("every hour {}", span()),
        _ => match minute_rule(minutes) {
            Some(rule) if adjacent(hours) => format!("{rule} {}", span()),
            Some(rule) => format!("{rule} in the {}", counted("hour", hours)),
            None => format!("at {} of the {}", counted("minute", minutes), counted("hour", hours)),
        },
    }
}

/// Describes the days; empty if every day matches.
fn days(cron: &Cron) -> String {
    let of_month: Vec<i8> = cron.days.numbers().collect();
    let of_week: Vec<i8> = cron.weekdays.numbers().collect();
    let months = months(cron);
    let (any_day, any_weekday) = (of_month.len() == 31, of_week.len() == 7);
    let dates = || dates(&of_month, months.as_deref());
    let in_months = || months.as_ref().map(|months| format!(" in {months}")).unwrap_or_default();
    // If either field is enough and one of them matches every day, every day matches.
    if (any_day && any_weekday) || (cron.either_day() && (any_day || any_weekday)) {
        return months.as_ref().map(|months| format!("every day in {months}")).unwrap_or_default();
    }
    match (any_day, any_weekday) {
        (true, _) => format!("{}{}", weekdays(&of_week), in_months()),
        (_, true) => dates(),
        _ if cron.either_day() => format!("{} and {}{}", dates(), weekdays(&of_week), in_months()),
        _ => format!("{} if it is a {}", dates(), joined(&names(&of_week), "or")),
    }
}

fn months(cron: &Cron) -> Option<String> {
    let numbers: Vec<i8> = cron.months.numbers().collect();
    let names: Vec<String> =
        numbers.iter().filter_map(|n| named(&MONTHS, usize::try_from(*n).ok()?.checked_sub(1)?)).collect();
    (names.len() < 12).then(|| listed(&names))
}

/// "on 24 December", "on day 1 of every month"
fn dates(days: &[i8], months: Option<&str>) -> String {
    match (days, months) {
        ([day], Some(months)) => format!("on {day} {months}"),
        _ => format!("on {} of {}", counted("day", days), months.unwrap_or("every month")),
    }
}

fn weekdays(days: &[i8]) -> String {
    match days {
        [1, 2, 3, 4, 5] => "every weekday".to_owned(),
        [from, .., to] if days.len() > 2 && adjacent(days) => {
            let ends = names(&[*from, *to]);
            format!("every day from {}", ends.join(" to "))
        }
        [0, 6] => "every Saturday and Sunday".to_owned(),
        _ => format!("every {}", listed(&names(days))),
    }
}

fn names(days: &[i8]) -> Vec<String> {
    days.iter().filter_map(|day| named(&DAYS, usize::try_from(*day).ok()?)).collect()
}

fn named(names: &[&str], at: usize) -> Option<String> {
    names.get(at).map(|name| (*name).to_owned())
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

/// "minute 5", "minutes 5 and 10"
fn counted(thing: &str, numbers: &[i8]) -> String {
    let plural = if numbers.len() == 1 { "" } else { "s" };
    format!("{thing}{plural} {}", listed(&numbers.iter().map(ToString::to_string).collect::<Vec<_>>()))
}

fn listed(things: &[String]) -> String {
    joined(things, "and")
}

fn joined(things: &[String], word: &str) -> String {
    match things {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} {word} {last}", head.join(", ")),
    }
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
            assert_eq!(describe(&written.parse().unwrap()), expected, "{written}");
        }
    }
}
