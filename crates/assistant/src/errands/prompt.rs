//! Renders what a model is told about a task, and what the user reads about it. Pure.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use kai_words::Lang;

use crate::tasks::{Task, Trigger};

const OPENING: &str = include_str!("../../prompts/task.md");

/// The message that a model gets when a task runs.
pub fn task(task: &Task, due: Timestamp, now: &Zoned) -> String {
    let zone = now.time_zone();
    format!(
        "{}\n\nIt is {}.\nTask: {}\nScheduled: {}\nDue: {}\n\n{}",
        OPENING.trim(),
        now.strftime("%A, %Y-%m-%d %H:%M%:z"),
        task.description,
        task.trigger.readable(zone, Lang::ENGLISH),
        local(due, zone),
        task.prompt,
    )
}

/// A task's answer, with its name as the heading.
pub fn report(task: &Task, said: &str) -> String {
    format!("**{}**\n\n{}", task.description, said.trim())
}

/// The report that a run of the task was cut off. What it did before that is not undone, and may be repeated.
pub fn cut_off(task: &Task, zone: &TimeZone) -> String {
    let next = task.next.as_ref().map(|next| local(next.at, zone));
    let onward = match (&task.trigger, next) {
        (Trigger::Time(_), Some(next)) => {
            format!(" Kai tries again at {next}, and may then repeat what it already did.")
        }
        (_, Some(next)) => format!(" It runs again at {next}."),
        (_, None) => String::new(),
    };
    format!(
        "**{}**\n\nKai was stopped while this task was running, so it did not finish.{onward}",
        task.description
    )
}

fn local(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M%:z").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Level;
    use crate::tasks::{Missed, Next, Status, TaskId};

    fn weather(trigger: Trigger) -> Task {
        let at: Timestamp = "2026-03-09T06:30Z".parse().unwrap();
        Task {
            id: TaskId(1),
            description: "Weather".to_owned(),
            prompt: "Tell the weather.\nBe short.".to_owned(),
            trigger,
            missed: Missed::RunOnce,
            level: Level::Nothing,
            status: Status::Pending,
            next: Some(Next { at, computed_at: at, zone: String::new() }),
            failures: 1,
            created_at: at,
        }
    }

    #[test]
    fn the_whole_message() {
        let now: Zoned = "2026-03-09T07:31:00+01:00[Europe/Berlin]".parse().unwrap();
        let cron = Trigger::Cron("30 7 * * 1-5".parse().unwrap());
        let told = task(&weather(cron), "2026-03-09T06:30Z".parse().unwrap(), &now);
        let expected = format!(
            "{}\n\nIt is Monday, 2026-03-09 07:31+01:00.\nTask: Weather\nScheduled: every weekday at 7:30\n\
             Due: 2026-03-09 07:30+01:00\n\nTell the weather.\nBe short.",
            OPENING.trim()
        );
        assert_eq!(told, expected);
    }

    #[test]
    fn what_the_person_reads() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let cron = weather(Trigger::Cron("30 7 * * 1-5".parse().unwrap()));
        let once = weather(Trigger::Time("2026-03-09T06:00Z".parse().unwrap()));
        assert_eq!(report(&cron, " Sunny.\n"), "**Weather**\n\nSunny.");
        let cut = "**Weather**\n\nKai was stopped while this task was running, so it did not finish.";
        let again = "Kai tries again at 2026-03-09 07:30+01:00, and may then repeat what it already did.";
        assert_eq!(cut_off(&once, &zone), format!("{cut} {again}"));
        assert_eq!(cut_off(&cron, &zone), format!("{cut} It runs again at 2026-03-09 07:30+01:00."));
    }
}
