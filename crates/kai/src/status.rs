//! `kai status`: what is on and where it lies.

use kai_assistant::db::DbError;
use kai_assistant::memory;
use kai_assistant::settings::{self, HEARTBEAT_MODEL, MEMORY_ENABLED};
use serde::{Deserialize, Serialize};

use crate::call::{Around, ModelRow};
use crate::heartbeat::{self, HeartbeatStatus};
use crate::models;
use crate::shell::{self, ShellStatus};
#[cfg(feature = "sms")]
use crate::sms::{self, SmsStatus};
use crate::tasks::{self, TasksStatus};
use crate::wire::App;

/// The one object that `kai status --json` prints.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) version: String,
    pub(crate) edition: String,
    pub(crate) permissions: Vec<String>,
    pub(crate) home: String,
    /// Nothing in it is real.
    pub(crate) demo: bool,
    pub(crate) key: String,
    pub(crate) daemon: DaemonStatus,
    /// The model that is asked first; `None` when none is set up.
    pub(crate) model: Option<ModelRow>,
    #[cfg(feature = "sms")]
    pub(crate) sms: SmsStatus,
    pub(crate) heartbeat: HeartbeatStatus,
    pub(crate) memory: MemoryStatus,
    pub(crate) tasks: TasksStatus,
    #[cfg(feature = "notifications")]
    pub(crate) notifications: crate::notifications::NotificationsStatus,
    pub(crate) tools: ToolsStatus,
    pub(crate) shell: ShellStatus,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DaemonStatus {
    pub(crate) running: bool,
    pub(crate) pid: Option<u32>,
    pub(crate) address: Option<String>,
    /// What it listens on.
    pub(crate) bound: Option<String>,
    /// Epoch milliseconds.
    pub(crate) since: Option<i64>,
    pub(crate) since_local: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MemoryStatus {
    pub(crate) enabled: bool,
    pub(crate) count: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ToolsStatus {
    pub(crate) offered: usize,
    pub(crate) all: usize,
}

pub(crate) async fn of(app: &App, around: &Around) -> Result<Status, DbError> {
    let (values, memories) =
        app.db.read(|tx| Ok::<_, DbError>((settings::load(tx)?, memory::store::count(tx)?))).await?;
    let shell = shell::status(app, &values).await;
    let models = models::rows(app, around).await?;
    let lacks = heartbeat::lacks(&values.of(&HEARTBEAT_MODEL), &models).map(|lack| lack.sentence());
    Ok(Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        edition: app.manifest.edition.to_owned(),
        permissions: app.manifest.permissions.iter().map(|p| (*p).to_owned()).collect(),
        home: app.home.dir.display().to_string(),
        demo: app.home.is_demo(),
        key: app.key_place.to_owned(),
        daemon: daemon(app),
        model: models.into_iter().next(),
        #[cfg(feature = "sms")]
        sms: sms::status(app).await?,
        heartbeat: HeartbeatStatus { lacks, ..heartbeat::status(app).await? },
        memory: MemoryStatus { enabled: values.on(&MEMORY_ENABLED), count: memories },
        tasks: tasks::status(app).await?,
        #[cfg(feature = "notifications")]
        notifications: crate::notifications::status(app).await?,
        tools: ToolsStatus { offered: app.toolbox.offered(&values).len(), all: app.toolbox.entries().len() },
        shell,
    })
}

pub(crate) fn daemon(app: &App) -> DaemonStatus {
    let running = app.daemon.as_ref();
    let local =
        |at: jiff::Timestamp| at.to_zoned(app.clock.zone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
    DaemonStatus {
        running: running.is_some(),
        pid: running.map(|r| r.pid),
        address: running.map(|r| r.address.clone()),
        bound: running.map(|r| r.bound.to_string()),
        since: running.map(|r| r.since.as_millisecond()),
        since_local: running.map(|r| local(r.since)),
    }
}
