//! Checks the mail accounts: whether Kai can read them.

use kai_assistant::settings::EMAIL_ENABLED;

use super::Check;
use crate::app::App;
use crate::commands::email;

/// One check for each account; none if there is no account.
pub(super) async fn checks(app: &App) -> Vec<Check> {
    match examined(app).await {
        Ok(checks) => checks,
        Err(error) => vec![Check::broken("email", error.to_string(), None)],
    }
}

async fn examined(app: &App) -> Result<Vec<Check>, kai_assistant::db::DbError> {
    let (rows, is_on) = (email::list(app).await?, app.values().await?.on(&EMAIL_ENABLED));
    let check = |row: &crate::call::email::AccountRow| {
        let next = format!("kai email test {}", row.address);
        match (&row.last_error, row.last_sync) {
            _ if !is_on => Check::fine(
                "email",
                format!("{}: disabled (to enable: kai settings set email_enabled true)", row.address),
            ),
            (Some(why), _) => Check::note("email", format!("{}: {why}", row.address), next),
            (None, Some(_)) => Check::fine("email", format!("{} can be read", row.address)),
            (None, None) => Check::note("email", format!("{} was not read yet", row.address), next),
        }
    };
    Ok(rows.iter().map(check).collect())
}
