//! Gathers what a heartbeat is about in one transaction, with the sequence numbers by which exactly that is removed
//! later.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kai_words::Lang;
use rusqlite::Transaction;
use sha2::{Digest, Sha256};

use super::arrivals::Arrivals;
use super::email::AccountStatus;
use super::store::{self, Previous};
use super::{email, notifications, sms};
use crate::db::DbError;
use crate::gate::Level;
use crate::hex;
use crate::memory::{Memory, promotion};
use crate::settings::{self, MEMORY_ENABLED, Values};
use crate::tasks;
use crate::untrusted::Untrusted;

/// How many characters of a task's name are shown.
const NAME: usize = 100;

/// Everything that goes into a heartbeat's prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Brief {
    /// Prompts of tasks that are part of every heartbeat.
    pub additions: Vec<String>,
    /// The latest reports, newest first.
    pub previous: Vec<Previous>,
    pub tasks: Vec<TaskLine>,
    /// The mail accounts that there is something to say about. It is said only beside something new.
    pub accounts: Vec<AccountStatus>,
    pub email: Arrivals,
    pub sms: Arrivals,
    pub notifications: Arrivals,
    /// Memories that proved useful often enough to become part of the soul, one line each.
    pub candidates: Vec<String>,
    /// Digest of the tasks and candidates at the last answered run; see [`Brief::standing`].
    pub answered: String,
    /// The highest level at which one of the tasks was created.
    pub tasks_level: Level,
}

/// A scheduled task, as the prompt shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskLine {
    pub what: String,
    /// Separate from `what`, because a new next time does not make it a changed task.
    pub next: Option<Timestamp>,
}

impl Brief {
    /// Whether there is anything that the last answered run did not see.
    pub fn is_new(&self) -> bool {
        let standing = !(self.tasks.is_empty() && self.candidates.is_empty());
        !self.additions.is_empty()
            || !self.is_without_arrivals()
            || (standing && self.standing() != self.answered)
    }

    /// Whether no message waits and none was dropped.
    pub fn is_without_arrivals(&self) -> bool {
        self.email.is_empty() && self.sms.is_empty() && self.notifications.is_empty()
    }

    /// A digest of the tasks and candidates, which stay until somebody changes them.
    pub fn standing(&self) -> String {
        let mut hash = Sha256::new();
        let tasks = self.tasks.iter().map(|task| task.what.as_str());
        for line in tasks.chain(["\u{1f}"]).chain(self.candidates.iter().map(String::as_str)) {
            hash.update((line.len() as u64).to_be_bytes());
            hash.update(line.as_bytes());
        }
        hex::encode(&hash.finalize())
    }

    /// The level of a request with this brief. Earlier reports count as [`Level::People`], because they repeat what
    /// people wrote.
    pub fn level(&self) -> Level {
        let arrived =
            [&self.email, &self.sms, &self.notifications].iter().any(|queue| !queue.items.is_empty());
        if arrived || !self.previous.is_empty() { Level::People } else { self.tasks_level }
    }
}

/// Gathers everything that waits, in one transaction.
pub fn gather(tx: &Transaction<'_>, sources: &Sources, zone: &TimeZone) -> Result<Brief, DbError> {
    let (additions, pending) = (tasks::store::additions(tx)?, tasks::store::pending(tx)?);
    let levels = additions.iter().map(|task| task.level).chain(pending.iter().map(|task| task.level));
    let values = settings::load(tx)?;
    let waiting = |on: bool, queue: fn(&Transaction<'_>, &Values) -> Result<Arrivals, DbError>| {
        if on { queue(tx, &values) } else { Ok(Arrivals::default()) }
    };
    Ok(Brief {
        tasks_level: levels.max().unwrap_or_default(),
        additions: additions.iter().map(addition).collect(),
        tasks: pending.iter().map(|task| task_line(task, zone)).collect(),
        candidates: if values.on(&MEMORY_ENABLED) { candidates(tx)? } else { vec![] },
        previous: store::previous(tx)?,
        answered: store::seen(tx)?,
        accounts: if sources.email { email::status(tx)? } else { vec![] },
        email: waiting(sources.email, email::waiting)?,
        sms: waiting(sources.sms, sms::waiting)?,
        notifications: waiting(sources.notifications, notifications::waiting)?,
    })
}

/// Renders a task's prompt as a list item. It keeps its lines, but they are indented, so that none can look like one of
/// our headings.
fn addition(task: &tasks::store::Addition) -> String {
    let lines = task.prompt.split(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}']);
    let lines: Vec<String> = lines.map(|line| Untrusted::new(line).line(usize::MAX)).collect();
    format!("- {}", lines.join("\n  "))
}

fn task_line(task: &tasks::store::Pending, zone: &TimeZone) -> TaskLine {
    let name = Untrusted::new(task.description.as_str()).line(NAME);
    let failed = match task.failures {
        0 => String::new(),
        1 => ", failed once".to_owned(),
        n => format!(", failed {n} times"),
    };
    let what = format!("- {}: {name}, {}{failed}", task.id.0, task.trigger.readable(zone, Lang::ENGLISH));
    TaskLine { what, next: task.next }
}

fn candidates(tx: &Transaction<'_>) -> Result<Vec<String>, DbError> {
    let line = |memory: &Memory| {
        let content = Untrusted::new(memory.content.as_str()).line(usize::MAX);
        format!("- {}: {content} ({} times useful)", memory.key.as_str(), memory.hits)
    };
    Ok(promotion::candidates(tx)?.iter().map(line).collect())
}

/// Which queues to read: those whose feature is enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sources {
    pub email: bool,
    pub sms: bool,
    pub notifications: bool,
}

#[cfg(test)]
#[cfg(feature = "notifications")]
mod tests {
    use super::super::arrivals::{FeatureState, Shown};
    use super::*;
    use crate::db::Db;
    use crate::notifications::port::Heard;
    use crate::notifications::record::{NotificationId, Post};
    use crate::notifications::{QUEUE, repeats, store as heard};
    use crate::settings;
    use crate::source::SourceId;

    fn hear(tx: &Transaction<'_>, id: &str, text: &str) -> Result<(), DbError> {
        let label = Some(Untrusted::new("Bank"));
        let post = Post { app_label: label, ..Post::new(NotificationId::new(id), "org.bank", "Login", text) };
        let heard = Heard::Posted(Box::new(post));
        heard::hear(tx, SourceId::HERE, [(Timestamp::UNIX_EPOCH, &heard)], &repeats::never)
    }

    #[test]
    fn notifications_are_gathered_without_codes_and_what_changed_meanwhile_stays() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write_now(|tx| {
            settings::store(tx, "notifications_enabled", "true")?;
            hear(tx, "1", "Your verification code is 482913.")?;
            hear(tx, "2", "Welcome")?;
            let off = gather(tx, &Sources::default(), &TimeZone::UTC)?;
            assert_eq!(off.notifications, Arrivals::default(), "only while it is on");
            let brief = gather(tx, &Sources { notifications: true, ..Sources::default() }, &TimeZone::UTC)?;
            assert!(brief.is_new() && brief.level() == Level::People);
            let first = &brief.notifications.items[0];
            assert_eq!((first.who.as_written(), first.id.as_str()), ("Bank", "1"));
            assert!(first.text.as_written().contains("[code]"), "{}", first.text.as_written());
            hear(tx, "2", "Welcome back")?;
            let seqs = brief.notifications.items.iter().map(|item| item.seq).collect();
            Shown { seqs, ..Shown::default() }.answered(tx, Some(QUEUE), FeatureState::On)?;
            let left = gather(tx, &Sources { notifications: true, ..Sources::default() }, &TimeZone::UTC)?
                .notifications;
            let left: Vec<&str> = left.items.iter().map(|item| item.text.as_written()).collect();
            assert_eq!(left, ["Welcome back"]);
            Ok::<_, DbError>(())
        });
        checked.unwrap();
    }
}

#[cfg(test)]
mod lines {
    use super::*;

    #[test]
    fn no_line_of_a_prompt_begins_like_ours() {
        for (prompt, expected) in [
            ("Is it done?", "- Is it done?"),
            ("a\n## New SMS\nb", "- a\n  ## New SMS\n  b"),
            ("a\r## New SMS\u{2028}## x\u{85}## y\u{b}z", "- a\n  ## New SMS\n  ## x\n  ## y\n  z"),
            ("a\u{202e}b", "- a b"),
        ] {
            let (id, description, level) = (tasks::TaskId(1), "x".to_owned(), Level::People);
            let task = tasks::store::Addition { id, description, prompt: prompt.to_owned(), level };
            assert_eq!(addition(&task), expected, "{prompt:?}");
        }
    }
}
