//! Turns notifications on and off. What the user wants and what the platform allows are kept apart.
//!
//! If access is missing when the user turns the feature on, it waits while they grant access in the system settings. It
//! turns on once access is granted, and off with a hint if the user comes back without it or not in time. If access is
//! revoked later, the setting stays on and Kai shows what is wrong.
//!
//! All of that is about this machine's own source. A paired phone has a switch of its own below the feature's; the phone
//! itself settles access, so nothing waits for it.

use jiff::{SignedDuration, Timestamp};
use kai_words::Said;
use rusqlite::Transaction;

use super::port::Source;
use super::sources::Sources;
use super::store::{self, Sync};
use crate::access::Access;
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::phones::{self, Switch};
use crate::settings::{self, NOTIFICATIONS_ENABLED};
use crate::source::SourceId;

/// The state of the feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Toggle {
    On,
    /// Waiting for access since `since` (epoch milliseconds). `todo` says what the user has to do.
    Waiting {
        since: i64,
        todo: Said,
    },
    Off {
        hint: Option<Said>,
    },
}

/// The event that may change the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToggleEvent {
    /// The user turned it on.
    TurnedOn,
    /// The user came back from the system settings.
    CameBack,
    /// The daemon checked by itself.
    Looked,
}

/// How long to wait for the user to grant access.
const PATIENCE: SignedDuration = SignedDuration::from_mins(5);

/// The state after an event. `since` is when the wait for access began, if there is one. Pure.
pub fn next(happened: ToggleEvent, since: Option<i64>, access: &Access, now: Timestamp) -> Toggle {
    let todo = match access {
        Access::Granted => return Toggle::On,
        Access::Denied(todo) | Access::Silent(todo) => todo.clone(),
    };
    let now = now.as_millisecond();
    let since = since.filter(|_| happened != ToggleEvent::TurnedOn).unwrap_or(now);
    let waited = now.saturating_sub(since);
    let over = waited < 0 || waited >= PATIENCE.as_secs() * 1_000;
    if happened == ToggleEvent::CameBack || (happened == ToggleEvent::Looked && over) {
        return Toggle::Off { hint: Some(todo) };
    }
    Toggle::Waiting { since, todo }
}

/// Turns the feature on, or begins to wait for access. It does not wait if a paired phone may be read, or if this
/// machine has no source of its own.
pub async fn turn_on(db: &Db, clock: &dyn Clock, sources: &Sources) -> Result<Toggle, DbError> {
    let entered = match sources.here() {
        Some(here) => step(db, clock, &here, ToggleEvent::TurnedOn).await?,
        None => db.write(|tx| enter(tx, &Toggle::On).map(|()| Some(Toggle::On))).await?,
    };
    sources.changed();
    Ok(entered.unwrap_or(Toggle::Off { hint: None }))
}

/// Turns a paired phone's own switch on or off. Turning it on turns the feature on. Returns whether there is such a
/// phone.
pub async fn turn_phone(
    db: &Db,
    clock: &dyn Clock,
    sources: &Sources,
    phone: SourceId,
    on: bool,
) -> Result<bool, DbError> {
    let now = clock.now();
    let is_there = db.write(move |tx| switch_phone(tx, phone, on, now)).await?;
    sources.changed();
    Ok(is_there)
}

/// [`turn_phone`] within a transaction. Tell the [`Sources`] afterwards that something changed.
pub fn switch_phone(
    tx: &Transaction<'_>,
    phone: SourceId,
    on: bool,
    now: Timestamp,
) -> Result<bool, DbError> {
    if !phones::store::set(tx, phone, Switch::Notifications, on)? {
        return Ok(false);
    }
    if on {
        enter(tx, &Toggle::On)?;
    } else {
        store::turned_off(tx, phone, now)?;
    }
    Ok(true)
}

/// Checks access again because the user came back from the system settings. Does nothing unless the feature waits.
pub async fn come_back(db: &Db, clock: &dyn Clock, source: &Source) -> Result<(), DbError> {
    if db.read(|tx| store::sync(tx, SourceId::HERE)).await?.waiting_since.is_some() {
        step(db, clock, source, ToggleEvent::CameBack).await?;
    }
    Ok(())
}

/// Checks access from the daemon while the feature waits for it.
pub async fn look_while_waiting(db: &Db, clock: &dyn Clock, source: &Source) -> Result<(), DbError> {
    if db.read(|tx| store::sync(tx, SourceId::HERE)).await?.waiting_since.is_some() {
        step(db, clock, source, ToggleEvent::Looked).await?;
    }
    Ok(())
}

/// Turns the feature off.
pub fn turn_off(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    store::all_turned_off(tx, now)?;
    enter(tx, &Toggle::Off { hint: None })
}

/// Checks access and stores the new state. Returns `None` if the feature no longer waits for access.
async fn step(
    db: &Db,
    clock: &dyn Clock,
    source: &Source,
    happened: ToggleEvent,
) -> Result<Option<Toggle>, DbError> {
    // Asking may open the system's settings page in front of the user, so a check by the daemon asks at most once a
    // minute.
    let access = match happened {
        ToggleEvent::Looked => source.access(clock.now()).await,
        ToggleEvent::TurnedOn | ToggleEvent::CameBack => source.ask(clock.now()).await,
    };
    let now = clock.now();
    let toggle = db
        .write(move |tx| {
            let since = store::sync(tx, SourceId::HERE)?.waiting_since;
            if happened != ToggleEvent::TurnedOn && since.is_none() {
                // While the platform was answering, the user turned the feature off, or another call settled it.
                return Ok(None);
            }
            let phones = !store::allowed_phones(tx)?.is_empty();
            let toggle = next(happened, since, if phones { &Access::Granted } else { &access }, now);
            enter(tx, &toggle)?;
            Ok::<_, DbError>(Some(toggle))
        })
        .await?;
    if happened != ToggleEvent::Looked {
        source.changed();
    }
    Ok(toggle)
}

fn enter(tx: &Transaction<'_>, toggle: &Toggle) -> Result<(), DbError> {
    let (on, waiting_since, hint) = match toggle {
        Toggle::On => ("true", None, None),
        Toggle::Waiting { since, todo } => ("false", Some(*since), Some(todo.clone())),
        Toggle::Off { hint } => ("false", None, hint.clone()),
    };
    settings::store(tx, &NOTIFICATIONS_ENABLED.key, on)?;
    let sync = store::sync(tx, SourceId::HERE)?;
    store::set_sync(tx, SourceId::HERE, &Sync { waiting_since, hint, ..sync })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_from_what() {
        use ToggleEvent::{CameBack, Looked, TurnedOn};
        let granted = Access::Granted;
        let denied = Access::Denied("Allow it.".into());
        let silent = Access::Silent("No answer.".into());
        let waiting = |since, todo: &str| Toggle::Waiting { since, todo: todo.into() };
        let off = |hint: &str| Toggle::Off { hint: Some(hint.into()) };
        for (name, happened, since, access, expected) in [
            ("turned on, allowed", TurnedOn, None, &granted, Toggle::On),
            ("turned on, not allowed", TurnedOn, None, &denied, waiting(600_000, "Allow it.")),
            ("turned on, no answer", TurnedOn, None, &silent, waiting(600_000, "No answer.")),
            ("turned on again", TurnedOn, Some(1), &denied, waiting(600_000, "Allow it.")),
            ("came back, allowed", CameBack, Some(590_000), &granted, Toggle::On),
            ("came back, not allowed", CameBack, Some(590_000), &denied, off("Allow it.")),
            ("looked, allowed", Looked, Some(590_000), &granted, Toggle::On),
            ("looked, still away", Looked, Some(590_000), &denied, waiting(590_000, "Allow it.")),
            ("looked, away for long", Looked, Some(300_000), &denied, off("Allow it.")),
            ("looked, the clock went back", Looked, Some(700_000), &denied, off("Allow it.")),
        ] {
            let now = Timestamp::from_millisecond(600_000).unwrap();
            assert_eq!(next(happened, since, access, now), expected, "{name}");
        }
    }
}
