//! The daemon's work with mail.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::app::App;

/// Keeps the connections open on which servers tell of new mail, until told to stop.
pub(crate) async fn listen(app: Arc<App>, stop: CancellationToken) {
    if let Some(mail) = &app.mail {
        mail.push.run(stop).await;
    }
}

/// Looks for new mail in the accounts that are due, and puts copies of sent mails into their Sent folders, unless the
/// last tick still does.
pub(crate) async fn look(app: &App) {
    let Some(mail) = &app.mail else { return };
    let Ok(_alone) = mail.looking.try_lock() else { return };
    let (polled, copied) = tokio::join!(mail.poller.tick(), mail.copies.tick());
    match polled {
        Ok(polled) => {
            for (account, outcome) in polled {
                match outcome {
                    Ok(brought) => {
                        tracing::info!(
                            account = account.0,
                            fresh = brought.fresh,
                            more = brought.more,
                            "looked for mail"
                        );
                    }
                    Err(error) => tracing::warn!(account = account.0, %error, "looking for mail failed"),
                }
            }
        }
        Err(error) => tracing::warn!(%error, "looking for mail failed"),
    }
    if let Err(error) = copied {
        tracing::warn!(%error, "copies of sent mails could not be kept");
    }
}
