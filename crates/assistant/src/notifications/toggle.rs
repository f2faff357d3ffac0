//! Turning it on: what the person wants and what the platform allows are two things.
//!
//! Without access it is not on but waits, while the person is in the system's settings. Coming back with access turns
//! it on; coming back without, or not at all, leaves it off with a hint. Access that is taken away later changes nothing
//! of what the person wants: it stays on, and what is wrong is shown.

use jiff::{SignedDuration, Timestamp};
use rusqlite::Transaction;

use super::port::Source;
use super::store::{self, Sync};
use crate::access::Access;
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::settings::{self, NOTIFICATIONS_ENABLED};

/// Where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Toggle {
    On,
    /// Since then, for what the person has to do.
    Waiting {
        since: i64,
        todo: String,
    },
    Off {
        hint: Option<String>,
    },
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// The person turned it on.
    TurnedOn,
    /// The person came back from the system's settings.
    CameBack,
    /// Nobody said anything; it was just looked at.
    Looked,
}

/// Who does not come back in this time does not come back.
const PATIENCE: SignedDuration = SignedDuration::from_mins(5);

/// Where it stands after that happened, if it waits since `since`. Pure.
pub fn next(happened: Happened, since: Option<i64>, access: &Access, now: Timestamp) -> Toggle {
    let todo = match access {
        Access::Granted => return Toggle::On,
        Access::Denied(todo) | Access::Silent(todo) => todo.clone(),
    };
    let now = now.as_millisecond();
    let since = since.filter(|_| happened != Happened::TurnedOn).unwrap_or(now);
    let waited = now.saturating_sub(since);
    let over = waited < 0 || waited >= PATIENCE.as_secs() * 1_000;
    if happened == Happened::CameBack || (happened == Happened::Looked && over) {
        return Toggle::Off { hint: Some(todo) };
    }
    Toggle::Waiting { since, todo }
}

/// The person turned it on.
pub async fn turn_on(db: &Db, clock: &dyn Clock, source: &Source) -> Result<Toggle, DbError> {
    let entered = step(db, clock, source, Happened::TurnedOn).await?;
    Ok(entered.unwrap_or(Toggle::Off { hint: None }))
}

/// The person wants to know whether it works now. Without effect unless it waits.
pub async fn come_back(db: &Db, clock: &dyn Clock, source: &Source) -> Result<(), DbError> {
    if db.read(store::sync).await?.waiting_since.is_some() {
        step(db, clock, source, Happened::CameBack).await?;
    }
    Ok(())
}

/// The daemon looks while the person is away.
pub async fn look_while_waiting(db: &Db, clock: &dyn Clock, source: &Source) -> Result<(), DbError> {
    if db.read(store::sync).await?.waiting_since.is_some() {
        step(db, clock, source, Happened::Looked).await?;
    }
    Ok(())
}

/// The person turned it off.
pub fn turn_off(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    store::turned_off(tx, now)?;
    enter(tx, &Toggle::Off { hint: None })
}

/// Where it stands now; `None` if nobody waits for an answer any more.
async fn step(
    db: &Db,
    clock: &dyn Clock,
    source: &Source,
    happened: Happened,
) -> Result<Option<Toggle>, DbError> {
    // ApprovalRequest may open the system's page under the person's fingers, so a mere look asks no more than once a minute.
    let access = match happened {
        Happened::Looked => source.access(clock.now()).await,
        Happened::TurnedOn | Happened::CameBack => source.ask(clock.now()).await,
    };
    let now = clock.now();
    let toggle = db
        .write(move |tx| {
            let since = store::sync(tx)?.waiting_since;
            if happened != Happened::TurnedOn && since.is_none() {
                // While the system was asked, the person turned it off, or it was settled otherwise.
                return Ok(None);
            }
            let toggle = next(happened, since, &access, now);
            enter(tx, &toggle)?;
            Ok::<_, DbError>(Some(toggle))
        })
        .await?;
    if happened != Happened::Looked {
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
    let sync = store::sync(tx)?;
    store::set_sync(tx, &Sync { waiting_since, hint, ..sync })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_from_what() {
        use Happened::{CameBack, Looked, TurnedOn};
        let granted = Access::Granted;
        let denied = Access::Denied("Allow it.".to_owned());
        let silent = Access::Silent("No answer.".to_owned());
        let waiting = |since, todo: &str| Toggle::Waiting { since, todo: todo.to_owned() };
        let off = |hint: &str| Toggle::Off { hint: Some(hint.to_owned()) };
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
