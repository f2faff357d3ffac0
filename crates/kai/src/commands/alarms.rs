//! Alarms that have not rung yet: lists, cancels and restores them.

use kai_assistant::db::DbError;
use kai_assistant::device::alarm::{self, Alarm, AlarmId};
use kai_words::said;

use crate::app::App;
use crate::call::alarms::AlarmRow;
use crate::failure::Failure;

/// All alarms, the next one first.
pub(crate) async fn list(app: &App) -> Result<Vec<AlarmRow>, DbError> {
    let alarms = app.db.read(alarm::waiting).await?;
    Ok(alarms.into_iter().map(|alarm| row(app, alarm)).collect())
}

pub(crate) async fn cancel(app: &App, id: AlarmId) -> Result<AlarmId, Failure> {
    take_away(app, id).await.map(|alarm| alarm.id)
}

/// Cancels an alarm and returns it, so that it can be restored.
pub(crate) async fn take_away(app: &App, id: AlarmId) -> Result<Alarm, Failure> {
    let taken = app.db.write(move |tx| alarm::cancel(tx, id)).await?;
    taken.ok_or_else(|| Failure::failed(said::alarms_unknown(id.0)).try_instead("kai alarms list"))
}

/// Restores a cancelled alarm.
pub(crate) async fn put_back(app: &App, alarm: Alarm) -> Result<(), DbError> {
    app.db.write(move |tx| alarm::put_back(tx, &alarm)).await?;
    if let Some(ringer) = &app.ringer {
        ringer.waker().wake();
    }
    Ok(())
}

fn row(app: &App, Alarm { id, due, label }: Alarm) -> AlarmRow {
    AlarmRow { id, label, due_at: due.as_millisecond(), due_local: app.local(due) }
}
