//! The undo bin: recently deleted items. They are gone from the store, but kept in memory for a minute so that the user
//! can restore them.

use std::sync::{Mutex, MutexGuard};

use jiff::{SignedDuration, Timestamp};
use kai_assistant::agent::conversation::Kind;
use kai_assistant::device::alarm::Alarm;
use kai_assistant::lock::lock;
use kai_assistant::mcp::store::{self as servers, RemovedServer};
use kai_assistant::memory::store::{self as memory, Removed};
use kai_assistant::tasks::{Task, TaskRun, store as tasks};
use kai_words::{Said, said};

use crate::app::App;
use crate::commands::chats::{self, TakenAway};
use crate::commands::{alarms, models};
use crate::failure::Failure;

/// How long a deletion can be undone.
const LIFE: SignedDuration = SignedDuration::from_secs(60);
/// How many deleted items are kept; the oldest is dropped first.
const MOST: usize = 5;

/// A deleted item, with everything needed to restore it.
pub(super) enum Kept {
    Chat(Box<TakenAway>),
    Memory(Removed),
    Task(Box<Task>, Vec<TaskRun>),
    Alarm(Alarm),
    Model(Box<models::Removed>),
    Server(Box<RemovedServer>),
}

/// Which pages offer to undo a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UndoPlace {
    InChats,
    InSettings,
}

impl Kept {
    /// The name by which the page refers to the item.
    fn title(&self) -> Said {
        match self {
            Self::Chat(chat) if chat.whole.kind == Kind::Heartbeat && chat.whole.name.is_none() => {
                said::list_heartbeat()
            }
            Self::Chat(chat) => chat.whole.called().into(),
            Self::Memory(removed) => removed.memory.key.as_str().into(),
            Self::Task(task, _) => task.description.as_str().into(),
            Self::Alarm(alarm) if alarm.label.is_empty() => said::alarm_title(),
            Self::Alarm(alarm) => alarm.label.as_str().into(),
            Self::Model(removed) => removed.model.name.as_str().into(),
            Self::Server(removed) => removed.name.as_str().into(),
        }
    }

    fn undo_place(&self) -> UndoPlace {
        match self {
            Self::Chat(_) => UndoPlace::InChats,
            Self::Memory(_) | Self::Task(..) | Self::Alarm(_) | Self::Model(_) | Self::Server(_) => {
                UndoPlace::InSettings
            }
        }
    }

    /// Restores the item. Returns the path to go to, if the item is not on the page where the user is.
    pub(super) async fn restore(self, app: &App) -> Result<Option<String>, Failure> {
        match self {
            Self::Chat(chat) => {
                let id = chats::put_back(app, *chat).await?;
                return Ok(Some(format!("/c/{}", id.0)));
            }
            Self::Memory(removed) => app.db.write(move |tx| memory::put_back(tx, &removed)).await?,
            Self::Task(task, runs) => app.db.write(move |tx| tasks::restore(tx, &task, &runs)).await?,
            Self::Alarm(alarm) => alarms::put_back(app, alarm).await?,
            Self::Model(removed) => {
                if !models::put_back(app, *removed).await? {
                    return Err(Failure::failed(said::bin_name_taken()));
                }
            }
            Self::Server(removed) => {
                if !app.db.write(move |tx| servers::put_back(tx, &removed)).await? {
                    return Err(Failure::failed(said::bin_name_taken()));
                }
            }
        }
        Ok(None)
    }
}

/// The items deleted within the last minute, newest last.
#[derive(Default)]
pub(super) struct Bin(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// The last number assigned. Numbers are never reused, so a late undo cannot restore a different item.
    given: u64,
    kept: Vec<(u64, Timestamp, Kept)>,
}

/// The newest deletion, as the page shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Deleted {
    pub(super) number: u64,
    pub(super) title: Said,
}

impl Bin {
    pub(super) fn put(&self, kept: Kept, now: Timestamp) {
        let mut heap = self.heap();
        heap.given += 1;
        let number = heap.given;
        heap.kept.push((number, now, kept));
        let surplus = heap.kept.len().saturating_sub(MOST);
        heap.kept.drain(..surplus);
    }

    /// The newest item that these pages can undo; drops expired items.
    pub(super) fn newest(&self, undo_place: UndoPlace, now: Timestamp) -> Option<Deleted> {
        let mut heap = self.heap();
        heap.kept.retain(|(_, at, _)| now.duration_since(*at) < LIFE);
        let newest = heap.kept.iter().rfind(|(.., kept)| kept.undo_place() == undo_place);
        newest.map(|(number, _, kept)| Deleted { number: *number, title: kept.title() })
    }

    /// Removes an item from the bin; `None` if it expired or was taken already.
    pub(super) fn take(&self, number: u64, now: Timestamp) -> Option<Kept> {
        let mut heap = self.heap();
        heap.kept.retain(|(_, at, _)| now.duration_since(*at) < LIFE);
        let at = heap.kept.iter().position(|(n, ..)| *n == number)?;
        Some(heap.kept.remove(at).2)
    }

    fn heap(&self) -> MutexGuard<'_, Inner> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use kai_assistant::gate::Level;
    use kai_assistant::tasks::{Missed, Status, TaskId, Trigger};

    use super::*;

    fn kept(name: &str) -> Kept {
        let task = Task {
            id: TaskId(1),
            description: name.to_owned(),
            prompt: String::new(),
            trigger: Trigger::Heartbeat,
            missed: Missed::RunOnce,
            level: Level::Nothing,
            status: Status::Pending,
            next: None,
            failures: 0,
            created_at: Timestamp::UNIX_EPOCH,
        };
        Kept::Task(Box::new(task), vec![])
    }

    #[test]
    fn a_deletion_can_be_taken_back_once_and_for_a_minute() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let bin = Bin::default();
        bin.put(kept("first"), at(0));
        bin.put(kept("second"), at(30));
        let newest = |now| bin.newest(UndoPlace::InSettings, now).map(|deleted| deleted.title.to_string());
        assert_eq!(newest(at(59)).as_deref(), Some("second"));
        assert_eq!(bin.newest(UndoPlace::InChats, at(59)), None);
        assert!(bin.take(1, at(60)).is_none(), "too late");
        assert!(bin.take(2, at(89)).is_some());
        assert!(bin.take(2, at(89)).is_none(), "once");
        assert_eq!(newest(at(89)), None);
        bin.put(kept("third"), at(99));
        assert!(bin.take(1, at(99)).is_none(), "a number means one thing for ever");
        for n in 0..10 {
            bin.put(kept(&n.to_string()), at(100));
        }
        assert_eq!(bin.heap().kept.len(), MOST);
    }
}
