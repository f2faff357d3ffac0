//! What was deleted a moment ago: gone from the store, kept in memory for those who want it back.

use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::Form;
use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::http::HeaderMap;
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use kai_assistant::agent::conversation::{self, Whole};
use kai_assistant::device::alarm::Alarm;
use kai_assistant::memory::store::{self as memory, Removed};
use kai_assistant::tasks::store as tasks;
use kai_assistant::tasks::{Task, TaskRun};
use serde::Deserialize;

use super::{Web, reply};
use crate::alarms;
use crate::failure::Failure;
use crate::models;

/// So long a deletion can be taken back.
const LIFE: SignedDuration = SignedDuration::from_secs(60);
const MOST: usize = 5;

/// Something that can be put back as it was.
pub(super) enum Kept {
    Chat(Box<Whole>),
    Memory(Removed),
    Task(Box<Task>, Vec<TaskRun>),
    Alarm(Alarm),
    Model(Box<models::Removed>),
}

/// Where a deletion is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    InChats,
    InSettings,
}

impl Kept {
    /// What people call it.
    fn title(&self) -> &str {
        match self {
            Self::Chat(whole) => &whole.title,
            Self::Memory(removed) => removed.memory.key.as_str(),
            Self::Task(task, _) => &task.description,
            Self::Alarm(alarm) if alarm.label.is_empty() => "Alarm",
            Self::Alarm(alarm) => &alarm.label,
            Self::Model(removed) => &removed.model.name,
        }
    }

    fn told(&self) -> Told {
        match self {
            Self::Chat(_) => Told::InChats,
            Self::Memory(_) | Self::Task(..) | Self::Alarm(_) | Self::Model(_) => Told::InSettings,
        }
    }

    /// Puts it back; returns where it is to be seen, if not where the person is.
    async fn restore(self, web: &Web) -> Result<Option<String>, Failure> {
        match self {
            Self::Chat(whole) => {
                let id = web.app.db.write(move |tx| conversation::restore(tx, &whole)).await?;
                return Ok(Some(format!("/c/{}", id.0)));
            }
            Self::Memory(removed) => web.app.db.write(move |tx| memory::put_back(tx, &removed)).await?,
            Self::Task(task, runs) => web.app.db.write(move |tx| tasks::restore(tx, &task, &runs)).await?,
            Self::Alarm(alarm) => alarms::put_back(&web.app, alarm).await?,
            Self::Model(removed) => {
                if !models::put_back(&web.app, *removed).await? {
                    return Err(Failure::failed("Another model has its name by now."));
                }
            }
        }
        Ok(None)
    }
}

/// What was deleted within the last minute, newest last.
#[derive(Default)]
pub(super) struct Bin(Mutex<Heap>);

#[derive(Default)]
struct Heap {
    /// Numbers ever given: an undo that comes late must not bring back something else.
    given: u64,
    kept: Vec<(u64, Timestamp, Kept)>,
}

/// What the page says about the newest deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Deleted {
    pub(super) number: u64,
    pub(super) title: String,
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

    pub(super) fn newest(&self, told: Told, now: Timestamp) -> Option<Deleted> {
        let mut heap = self.heap();
        heap.kept.retain(|(_, at, _)| now.duration_since(*at) < LIFE);
        let newest = heap.kept.iter().rfind(|(.., kept)| kept.told() == told);
        newest.map(|(number, _, kept)| Deleted { number: *number, title: kept.title().to_owned() })
    }

    fn take(&self, number: u64, now: Timestamp) -> Option<Kept> {
        let mut heap = self.heap();
        heap.kept.retain(|(_, at, _)| now.duration_since(*at) < LIFE);
        let at = heap.kept.iter().position(|(n, ..)| *n == number)?;
        Some(heap.kept.remove(at).2)
    }

    fn heap(&self) -> MutexGuard<'_, Heap> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Deserialize)]
pub(super) struct UndoForm {
    number: u64,
    act: UndoAct,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum UndoAct {
    Restore,
    Forget,
}

pub(super) async fn undo(
    State(web): State<Web>,
    headers: HeaderMap,
    form: Result<Form<UndoForm>, FormRejection>,
) -> Response {
    let Ok(Form(UndoForm { number, act })) = form else { return reply::misfilled(&headers) };
    let restored = match (web.bin.take(number, web.app.clock.now()), act) {
        (_, UndoAct::Forget) => Ok(None),
        (Some(kept), UndoAct::Restore) => kept.restore(&web).await,
        (None, UndoAct::Restore) => Err(Failure::failed("It is too late: that is gone.")),
    };
    // The bin is no part of the store, so pages would not hear of it.
    web.turns.move_on();
    match restored {
        Ok(Some(to)) => reply::done(&headers, &to),
        Ok(None) => reply::done_here(&headers),
        Err(failure) => reply::not_done(&headers, &failure.message),
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
        let newest = |now| bin.newest(Told::InSettings, now).map(|deleted| deleted.title);
        assert_eq!(newest(at(59)).as_deref(), Some("second"));
        assert_eq!(bin.newest(Told::InChats, at(59)), None);
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
