//! `kai status`: what is enabled and where it is stored.

use kai_assistant::db::DbError;
use kai_assistant::memory;
use kai_assistant::settings::{self, EMAIL_ENABLED, MEMORY_ENABLED};

use super::messages;
use crate::app::App;
use crate::call::heartbeat::HeartbeatStatus;
use crate::call::status::{DaemonStatus, EmailStatus, MemoryStatus, Status, ToolsStatus};
use crate::caller_env::CallerEnv;
use crate::commands::{email, heartbeat, models, shell, tasks};

pub(crate) async fn of(app: &App, env: &CallerEnv) -> Result<Status, DbError> {
    let (values, memories) =
        app.db.read(|tx| Ok::<_, DbError>((settings::load(tx)?, memory::store::count(tx)?))).await?;
    let shell = shell::status(app, &values).await;
    let models = models::rows(app, env).await?;
    let lacks = heartbeat::lacks(&values, &models).map(|lack| lack.said());
    Ok(Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        edition: app.manifest.edition.to_owned(),
        permissions: app.manifest.permissions.iter().map(|p| (*p).to_owned()).collect(),
        home: app.home.dir.display().to_string(),
        demo: app.home.is_demo(),
        key: app.home.key_file().exists().then_some(app.key_place),
        daemon: daemon(app),
        model: models.into_iter().next(),
        sms: messages::sms_part(app).await?,
        email: EmailStatus { enabled: values.on(&EMAIL_ENABLED), accounts: email::list(app).await? },
        heartbeat: HeartbeatStatus { lacks, ..heartbeat::status(app).await? },
        memory: MemoryStatus { enabled: values.on(&MEMORY_ENABLED), count: memories },
        tasks: tasks::status(app).await?,
        notifications: messages::notifications_part(app).await?,
        phones: messages::phones_part(app).await?,
        tools: ToolsStatus { offered: app.toolbox.offered(&values).len(), all: app.toolbox.entries().len() },
        shell,
    })
}

pub(crate) fn daemon(app: &App) -> DaemonStatus {
    let running = app.daemon.as_ref();
    DaemonStatus {
        running: running.is_some(),
        pid: running.map(|r| r.pid),
        address: running.map(|r| r.address.clone()),
        bound: running.map(|r| r.bound.to_string()),
        since: running.map(|r| r.since.as_millisecond()),
        since_local: running.map(|r| app.local(r.since)),
    }
}
