//! Alarms: `set_alarm` saves one in the `store`, and the daemon's [`Ringer`] sleeps until the first is due.

mod due;
mod ring;
mod store;

use std::sync::Arc;

use jiff::Timestamp;
use kai_words::said;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::line;
use crate::clock::Clock;
use crate::db::Db;
use crate::moment;
use crate::tool::{Lack, Run, Tool, ToolError, ToolOutput};

pub use ring::{Next, Ringer, Ringing, Waker, patience};
pub use store::{cancel, put_back, waiting};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AlarmId(pub i64);

/// An alarm that has not rung yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alarm {
    pub id: AlarmId,
    pub due: Timestamp,
    /// Empty if the user gave none.
    pub label: String,
}

/// Set an alarm for a time of day, or a timer that rings after some seconds. Give either hour and minutes, or
/// `duration_seconds`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct SetAlarmInput {
    /// Hour of the alarm in the user's local time, 0 to 23. It rings when it is next that time.
    pub hour: Option<i64>,
    /// Minutes past the hour, 0 to 59.
    pub minutes: Option<i64>,
    /// Length of the timer in seconds, 1 to 86400.
    pub duration_seconds: Option<i64>,
    /// What it is for; shown when it rings.
    pub label: Option<String>,
}

/// The result of `set_alarm`.
#[derive(Debug, Serialize)]
pub struct AlarmSet {
    alarm_id: AlarmId,
    rings_at: String,
    message: String,
}

pub struct SetAlarm {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
    /// Wakes the ringer after an alarm is set, or says why alarms cannot ring.
    pub ringing: Result<Arc<Waker>, AlarmsUnavailable>,
}

/// Why alarms cannot ring here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlarmsUnavailable {
    NoDaemon,
    NoNotifier,
}

impl AlarmsUnavailable {
    fn lack(self) -> Lack {
        match self {
            Self::NoDaemon => said::lacks_daemon().into(),
            Self::NoNotifier => Lack::Notifier,
        }
    }
}

const LABEL_LIMIT: usize = 100;
/// The most alarms that can be pending; more than anyone needs.
const MOST: u32 = 100;

impl Tool for SetAlarm {
    const NAME: &'static str = "set_alarm";
    type Input = SetAlarmInput;
    type Output = AlarmSet;

    fn lacks(&self) -> Option<Lack> {
        self.ringing.as_ref().err().map(|mute| mute.lack())
    }

    async fn run(&self, input: SetAlarmInput, _: &Run) -> Result<ToolOutput<AlarmSet>, ToolError> {
        let waker = self.ringing.as_ref().map_err(|mute| mute.lack())?;
        let now = self.clock.now().to_zoned(self.clock.zone());
        let due = due::spec(&input).and_then(|spec| due::at(spec, &now)).map_err(ToolError)?;
        let label = line("label", &input.label.unwrap_or_default(), LABEL_LIMIT).map_err(ToolError)?;
        let at = due.timestamp();
        let added = self.db.write(move |tx| store::add(tx, at, &label, MOST)).await?;
        let full = || ToolError(format!("There are {MOST} alarms already. Wait until some have rung."));
        let alarm_id = added.ok_or_else(full)?;
        waker.wake();
        let rings_at = moment::stamp(&due);
        let message = format!("It rings {}.", due.strftime("on %A, %B %-d at %H:%M:%S"));
        Ok(ToolOutput::own(AlarmSet { alarm_id, rings_at, message }))
    }
}
