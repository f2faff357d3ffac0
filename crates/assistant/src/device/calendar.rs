//! `create_calendar_event`: writes an `.ics` file to the folder for the user's files, and opens it with their calendar.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ics::{self, Event};
use super::open::{Opener, Target};
use super::when::{self, When};
use super::{line, lines};
use crate::clock::Clock;
use crate::moment;
use crate::tool::{Run, Tool, ToolError, ToolOutput};

/// Create an event in the user's calendar.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct CreateCalendarEventInput {
    /// What the event is called.
    pub title: String,
    /// When it begins, for example 2026-03-09T15:00 in the user's local time, or with an offset
    /// (2026-03-09T15:00:00+01:00). For an all-day event a date is enough.
    pub start_time: String,
    /// When it ends; an hour after the start if left out. For an all-day event the day after its last day.
    pub end_time: Option<String>,
    /// More about it.
    pub description: Option<String>,
    /// Where it takes place.
    pub location: Option<String>,
    /// Whether it takes whole days; false if left out.
    pub all_day: Option<bool>,
    /// Minutes before the start at which the user is reminded, 1 to 40320; no reminder if 0 or left out.
    pub reminder_minutes: Option<i64>,
}

/// The result of `create_calendar_event`.
#[derive(Debug, Serialize)]
pub struct EventCreated {
    file: String,
    start: String,
    end: String,
    opened: bool,
    message: String,
}

pub struct CreateCalendarEvent {
    pub clock: Arc<dyn Clock>,
    /// If there is none, the file is written but not opened.
    pub opener: Option<Arc<dyn Opener>>,
    pub files: PathBuf,
}

const TITLE_LIMIT: usize = 200;
const LOCATION_LIMIT: usize = 500;
const DESCRIPTION_LIMIT: usize = 4_000;
/// Four weeks in minutes, the limit in common calendars.
const REMINDER_LIMIT: u32 = 40_320;

impl Tool for CreateCalendarEvent {
    const NAME: &'static str = "create_calendar_event";
    type Input = CreateCalendarEventInput;
    type Output = EventCreated;

    async fn run(
        &self,
        input: CreateCalendarEventInput,
        _: &Run,
    ) -> Result<ToolOutput<EventCreated>, ToolError> {
        let (now, zone) = (self.clock.now(), self.clock.zone());
        let mut random = [0; 16];
        getrandom::fill(&mut random)
            .map_err(|e| ToolError(format!("This machine could not provide random numbers: {e}.")))?;
        let uid = format!("{}@kai", crate::hex::encode(&random));
        let event = check(input, uid, now, &zone).map_err(ToolError)?;
        let path = self.files.join(file_name(&event));
        let (folder, text) = (self.files.clone(), ics::render(&event));
        let target = path.clone();
        let written = tokio::task::spawn_blocking(move || write(&folder, &target, &text)).await;
        let failed = |e: io::Error| ToolError(format!("The event could not be written: {e}."));
        written.map_err(|e| failed(e.into()))?.map_err(failed)?;
        Ok(ToolOutput::own(self.show(&event, path, &zone).await))
    }
}

impl CreateCalendarEvent {
    /// Opens the file that was written. If that fails, the result says so, but the event still counts as created.
    async fn show(&self, event: &Event, path: PathBuf, zone: &TimeZone) -> EventCreated {
        let file = path.display().to_string();
        let (start, end) = local_times(event.when, zone);
        let outcome = match &self.opener {
            Some(opener) => opener.open(&Target::File(path)).await.map_err(|e| e.to_string()),
            None => Err("there is no program that opens files".to_owned()),
        };
        let (opened, message) = match outcome {
            Ok(()) => {
                (true, "The event was opened in the user's calendar, where they can save it.".to_owned())
            }
            Err(why) => (
                false,
                format!("The event is in {file}, but it could not be opened: {why}. The user can open it."),
            ),
        };
        EventCreated { file, start, end, opened, message }
    }
}

/// Checks the input against the limits and builds the event, or returns an error message. Pure.
fn check(
    input: CreateCalendarEventInput,
    uid: String,
    stamp: jiff::Timestamp,
    zone: &TimeZone,
) -> Result<Event, String> {
    let title = line("title", &input.title, TITLE_LIMIT)?;
    if title.is_empty() {
        return Err("The title must not be empty.".to_owned());
    }
    let end = input.end_time.as_deref().filter(|end| !end.trim().is_empty());
    let when = if input.all_day == Some(true) {
        when::days(&input.start_time, end)
    } else {
        when::timed(&input.start_time, end, zone)
    };
    let when = when.map_err(|why| why.to_string())?;
    let reminder = |minutes: i64| {
        let fitting = u32::try_from(minutes).ok().filter(|minutes| *minutes <= REMINDER_LIMIT);
        fitting.ok_or_else(|| format!("The reminder_minutes must be from 0 to {REMINDER_LIMIT}."))
    };
    Ok(Event {
        uid,
        stamp,
        title,
        when,
        description: lines("description", &input.description.unwrap_or_default(), DESCRIPTION_LIMIT)?,
        location: line("location", &input.location.unwrap_or_default(), LOCATION_LIMIT)?,
        // Many models write 0 when they mean no reminder.
        reminder_minutes: input.reminder_minutes.filter(|minutes| *minutes != 0).map(reminder).transpose()?,
    })
}

/// The name of the file: the day and a random part. It contains nothing of the title, which could be any text.
fn file_name(event: &Event) -> String {
    let day = match event.when {
        When::Timed { start, .. } => start.to_zoned(TimeZone::UTC).date(),
        When::Days { start, .. } => start,
    };
    let chance: String = event.uid.chars().take(8).collect();
    format!("event-{day}-{chance}.ics")
}

fn local_times(when: When, zone: &TimeZone) -> (String, String) {
    match when {
        When::Timed { start, end } => (moment::local(start, zone), moment::local(end, zone)),
        When::Days { start, end } => (start.to_string(), end.to_string()),
    }
}

fn write(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(title: &str, start: &str) -> CreateCalendarEventInput {
        CreateCalendarEventInput {
            title: title.to_owned(),
            start_time: start.to_owned(),
            ..Default::default()
        }
    }

    fn checked(input: CreateCalendarEventInput) -> Result<Event, String> {
        check(input, "1@kai".to_owned(), "2026-03-01T00:00:00Z".parse().unwrap(), &TimeZone::UTC)
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_in_words() {
        let good = || input("Tea", "2026-03-09T15:00");
        assert!(checked(good()).is_ok());
        for (input, word) in [
            (input(" \n", "2026-03-09T15:00"), "title must not be empty"),
            (input(&"x".repeat(201), "2026-03-09T15:00"), "title must be at most 200"),
            (input("Tea", "2026-03-09"), "needs a time of day"),
            (CreateCalendarEventInput { reminder_minutes: Some(-1), ..good() }, "from 0 to 40320"),
            (CreateCalendarEventInput { reminder_minutes: Some(40_321), ..good() }, "from 0 to 40320"),
            (CreateCalendarEventInput { location: Some("x".repeat(501)), ..good() }, "location must be"),
            (CreateCalendarEventInput { description: Some("x".repeat(4_001)), ..good() }, "description must"),
            (
                CreateCalendarEventInput { end_time: Some("2026-03-09T15:00".to_owned()), ..good() },
                "after the",
            ),
        ] {
            let said = checked(input).unwrap_err();
            assert!(said.contains(word), "{word}: {said}");
        }
    }

    #[test]
    fn a_hostile_text_stays_text() {
        let event = checked(CreateCalendarEventInput {
            location: Some("Here\nATTENDEE:mailto:eve@example.org".to_owned()),
            ..input("Tea\r\nATTENDEE:mailto:eve@example.org", "2026-03-09T15:00")
        })
        .unwrap();
        assert_eq!(event.title, "Tea  ATTENDEE:mailto:eve@example.org");
        assert!(!ics::render(&event).contains("\nATTENDEE"));
        assert_eq!(file_name(&event), "event-2026-03-09-1@kai.ics");
    }

    #[test]
    fn the_reminder_and_all_day_are_taken_over() {
        let all_day = CreateCalendarEventInput {
            all_day: Some(true),
            reminder_minutes: Some(0),
            end_time: Some(" ".to_owned()),
            ..input("Fair", "2026-03-09")
        };
        let event = checked(all_day).unwrap();
        assert_eq!(event.reminder_minutes, None, "0 means none");
        assert!(!ics::render(&event).contains("VALARM"));
        let soon = CreateCalendarEventInput { reminder_minutes: Some(1), ..input("Tea", "2026-03-09T15:00") };
        assert!(ics::render(&checked(soon).unwrap()).contains("VALARM"));
        assert_eq!(
            local_times(event.when, &TimeZone::UTC),
            ("2026-03-09".to_owned(), "2026-03-10".to_owned())
        );
    }
}
