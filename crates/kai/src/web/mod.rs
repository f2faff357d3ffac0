//! The page: loopback unless told otherwise, signed in by a one-time link, and nothing but the user's.
//!
//! Every request passes [`guard`] first: host, origin, session, CSRF. A handler that runs can rely on them.

mod assets;
#[cfg(feature = "sms")]
mod drafts;
mod guard;
mod page;
pub(crate) mod signin;
mod status_page;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use kai_assistant::db::Migration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::wire::App;

pub(crate) const MIGRATION: Migration =
    Migration { name: "signin/1", sql: include_str!("../../migrations/signin.sql") };

/// What handlers work on.
#[derive(Clone)]
pub(crate) struct Web {
    app: Arc<App>,
    address: SocketAddr,
}

/// Serves until told to stop, then lets requests under way finish.
pub(crate) async fn serve(
    app: Arc<App>,
    listener: TcpListener,
    address: SocketAddr,
    stop: CancellationToken,
) {
    let server = axum::serve(listener, router(Web { app, address }));
    if let Err(error) = server.with_graceful_shutdown(stop.cancelled_owned()).await {
        tracing::error!(%error, "the page stopped");
    }
}

fn router(web: Web) -> Router {
    features()
        .route("/", get(status_page::show))
        .route("/login", get(signin::login))
        .route("/sign-out", post(signin::sign_out))
        .route("/settings/theme", post(status_page::set_theme))
        .route("/assets/{file}", get(assets::serve))
        .fallback(page::not_found)
        .method_not_allowed_fallback(page::wrong_method)
        .layer(from_fn_with_state(web.clone(), guard::guard))
        .with_state(web)
}

/// What only the foss edition has.
#[cfg(feature = "sms")]
fn features() -> Router<Web> {
    Router::new()
        .route("/drafts/{id}/tap", post(drafts::tap))
        .route("/drafts/{id}/discard", post(drafts::discard))
}

#[cfg(not(feature = "sms"))]
fn features() -> Router<Web> {
    Router::new()
}
