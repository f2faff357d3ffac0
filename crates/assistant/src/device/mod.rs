//! Tools that act on the machine Kai runs on, and the ports through which they reach it.
//!
//! A tool checks its input (`when` and `ics` are pure) and then passes one plain value to a port: an [`Opener`], a
//! [`Notifier`] or a [`shell::Sandbox`]. Which ports exist is decided once, at startup; a tool whose port is missing
//! says what it lacks and is not offered to the model. Alarms are stored in the database, and the daemon rings them
//! ([`alarm::Ringer`]).

pub mod alarm;
mod calendar;
mod ics;
mod notify;
mod open;
pub mod shell;
mod time;
mod when;

use std::pin::Pin;

use crate::db::Migration;

pub use alarm::SetAlarm;
pub use calendar::CreateCalendarEvent;
pub use notify::{Notification, Notifier, Place, SendNotification, Tap, Urgency};
pub use open::{OpenUrl, Opener, Target};
pub use shell::ShellCommand;
pub use time::LocalTime;

pub(crate) const MIGRATION: Migration =
    Migration { name: "alarms/1", sql: include_str!("../../migrations/alarms.sql") };

/// The future that a port's method returns.
pub type PortFuture<'a> = Pin<Box<dyn Future<Output = Result<(), PortError>> + Send + 'a>>;

/// Why an action on the machine failed, as the second half of a sentence: "the desktop did not answer".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    #[error("{0}")]
    Failed(String),
    /// Nobody said in time how it went, so it may have been done.
    #[error("{0}")]
    Unsure(String),
}

/// Cleans up a text of one line: control characters become spaces. Returns an error message if it is longer than
/// `longest` characters.
fn line(what: &str, typed: &str, longest: usize) -> Result<String, String> {
    let text = typed.split(|c: char| c.is_control()).collect::<Vec<_>>().join(" ");
    let text = text.trim();
    if text.chars().count() > longest {
        return Err(format!("The {what} must be at most {longest} characters long."));
    }
    Ok(text.to_owned())
}

/// Cleans up a text of several lines: line breaks and tabs stay, other control characters are removed. Returns an error
/// message if it is longer than `longest` characters.
fn lines(what: &str, typed: &str, longest: usize) -> Result<String, String> {
    let text = typed.replace("\r\n", "\n");
    let text: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    let text = text.trim();
    if text.chars().count() > longest {
        return Err(format!("The {what} must be at most {longest} characters long."));
    }
    Ok(text.to_owned())
}
