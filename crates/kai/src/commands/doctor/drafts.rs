//! Checks the drafts: whether one needs the user.

use kai_assistant::db::DbError;
use kai_assistant::outbox::DraftState;

use super::Check;
use crate::app::App;
use crate::commands::drafts;

pub(super) async fn check(app: &App) -> Option<Check> {
    examined(app).await.unwrap_or_else(|error| Some(Check::broken("drafts", error.to_string(), None)))
}

async fn examined(app: &App) -> Result<Option<Check>, DbError> {
    let all = drafts::list(app).await?;
    let of = |status: DraftState| all.iter().filter(|draft| draft.status == status).collect::<Vec<_>>();
    if let Some(first) = of(DraftState::Unknown).first() {
        let next = format!("Check whether it arrived, then: kai drafts show {}", first.id.0);
        return Ok(Some(Check::note("drafts", "one may have been sent: Kai stopped while sending it", next)));
    }
    if let Some(first) = of(DraftState::Failed).first() {
        let next = format!("To see why: kai drafts show {}", first.id.0);
        return Ok(Some(Check::note("drafts", "one could not be sent", next)));
    }
    let waiting = of(DraftState::Pending).len();
    Ok((waiting > 0)
        .then(|| Check::fine("drafts", format!("{waiting} waiting for your tap (kai drafts list)"))))
}
