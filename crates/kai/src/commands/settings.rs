//! Lists, reads and changes settings.

use kai_assistant::settings::{self, Setting, Values};

use super::messages;
use super::models;
use crate::app::App;
use crate::call::settings::SettingRow;
use crate::caller_env::CallerEnv;
use crate::failure::Failure;

pub(crate) async fn list(app: &App) -> Result<Vec<SettingRow>, Failure> {
    let values = app.values().await?;
    Ok(settings::catalogue(app.toolbox.settings()).iter().map(|s| row(s, &values)).collect())
}

/// One setting with its current value.
pub(crate) async fn get(app: &App, key: &str) -> Result<SettingRow, Failure> {
    Ok(row(&find(app, key)?, &app.values().await?))
}

fn row(setting: &Setting, values: &Values) -> SettingRow {
    SettingRow {
        key: setting.key.to_string(),
        value: values.of(setting),
        default: setting.shown(&setting.default),
        kind: setting.kind.name().to_owned(),
        allowed: setting.kind.allowed().to_string(),
        help: setting.help.to_string(),
    }
}

fn find(app: &App, key: &str) -> Result<Setting, Failure> {
    let all = settings::catalogue(app.toolbox.settings());
    if let Some(found) = all.iter().find(|s| s.key == key) {
        return Ok(found.clone());
    }
    let near = all.iter().map(|s| s.key.as_ref()).min_by_key(|k| strsim::levenshtein(k, key));
    let slip = (key.chars().count() / 3).min(4);
    let hint = near.filter(|k| strsim::levenshtein(k, key) <= slip).map(|k| format!(" Did you mean {k}?"));
    let hint = hint.unwrap_or_default();
    Err(Failure::usage(format!("There is no setting called {key}.{hint} To see all: kai settings list")))
}

pub(crate) async fn set(app: &App, env: &CallerEnv, key: &str, typed: &str) -> Result<SettingRow, Failure> {
    let setting = find(app, key)?;
    let value = setting.accept(typed).map_err(|refused| Failure::usage(refused.to_string()))?;
    if setting.key == settings::HEARTBEAT_MODEL.key {
        models::can_be_chosen(app, env, &value).await?;
    }
    if messages::set(app, &setting, &value).await? {
        return Ok(row(&setting, &app.values().await?));
    }
    let key = setting.key.to_string();
    let values = app
        .db
        .write(move |tx| {
            settings::store(tx, &key, &value)?;
            settings::load(tx)
        })
        .await?;
    if let Some(mail) = &app.mail {
        // It may be about mail: connections that are not wanted any more end at once.
        mail.push.poke();
    }
    Ok(row(&setting, &values))
}
