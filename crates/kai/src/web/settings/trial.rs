//! Tries a model for the page.

use std::sync::Arc;

use super::ephemeral::Trial;
use crate::commands::models;
use crate::failure::Failure;
use crate::web::state::Web;

/// Asks a model for a word, unless that is being done already, and keeps what came of it for the page.
pub(super) async fn begin_test(web: Web, name: String) -> Result<(), Failure> {
    if !web.ephemeral.begin_trial(&name) {
        return Ok(());
    }
    web.turns.move_on();
    let app = Arc::clone(&web.app);
    let tested = models::test(&app, &app.env, Some(&name)).await;
    match tested.map(|tests| tests.into_iter().next()) {
        Ok(Some(test)) => web.ephemeral.end_trial(&name, Trial::Asked(test)),
        Ok(None) => web.ephemeral.forget_trial(&name),
        Err(failure) => web.ephemeral.end_trial(&name, Trial::Failed(failure.message)),
    }
    web.turns.move_on();
    Ok(())
}
