//! The web page: served on loopback unless configured otherwise, to browsers that signed in with a one-time link.
//!
//! Every request passes [`guard`] first, which checks host, origin, session and CSRF token; handlers rely on that.
//!
//! [`chat`] renders whole pages that work without a script; [`live`] keeps open pages up to date: when the store or one
//! of the [`turns`] changes, it sends the regions of a [`view`] that changed.

mod assets;
mod attach;
mod attempts;
mod banners;
mod bin;
mod chat;
mod codes;
mod compress;
pub(crate) mod connections;
#[cfg(feature = "foss")]
mod demo;
#[cfg_attr(not(feature = "foss"), path = "no_demo_child.rs")]
mod demo_child;
mod dialogs;
mod drafts;
mod finder;
mod frame;
pub(crate) mod guard;
mod icons;
mod ideas;
mod inbox;
mod install;
mod leave;
mod list;
mod live;
mod markdown;
#[cfg_attr(not(feature = "foss"), path = "no_messages.rs")]
mod messages;
mod notice;
mod page;
#[cfg_attr(not(feature = "foss"), path = "no_pairing.rs")]
mod pairing;
mod peer;
mod picker;
mod queue;
mod reasons;
mod regions;
mod remedy;
mod reply;
mod rewrite;
mod rich;
mod settings;
mod side;
pub(crate) mod signin;
mod snippet;
mod state;
mod talk;
mod times;
mod trust;
mod turns;
mod under;
mod undo;
mod upload;
mod view;
mod write_timeout;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use demo_child::DemoChild;
use state::Web;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::app::App;

/// Serves the page until `stop` is cancelled, then lets requests in progress finish.
pub(crate) async fn serve(
    app: Arc<App>,
    listener: TcpListener,
    address: SocketAddr,
    stop: CancellationToken,
) {
    let (turns, bin, ephemeral) = (Arc::default(), Arc::default(), Arc::default());
    let attempts = Arc::default();
    let web =
        Web { app, address, turns, bin, attempts, ephemeral, stop: stop.clone(), demo: DemoChild::default() };
    let noticing = tokio::spawn(live::notice_others(web.clone()));
    let servers = tokio::spawn(live::notice_servers(web.clone()));
    let downloads = tokio::spawn(live::notice_downloads(web.clone()));
    messages::begin(&web);
    connections::serve(listener, router(web.clone()), stop).await;
    noticing.abort();
    servers.abort();
    downloads.abort();
    messages::end(&web);
}

fn router(web: Web) -> Router {
    messages::routes()
        .merge(drafts::routes())
        .merge(codes::routes())
        .merge(settings::routes(&web))
        .merge(inbox::routes())
        .merge(attach::routes())
        .merge(list::routes())
        .merge(finder::routes())
        .route("/", get(chat::current))
        .route("/new", get(chat::fresh))
        .route("/say", post(chat::say_first))
        .route("/c/{id}", get(chat::one))
        .route("/c/{id}/say", post(chat::say))
        .route("/c/{id}/stop", post(chat::stop))
        .route("/c/{id}/again", post(rewrite::again))
        .route("/c/{id}/continue", post(rewrite::continued))
        .route("/c/{id}/rewrite", post(rewrite::rewrite))
        .route("/c/{id}/without-pictures", post(rewrite::without_pictures))
        .route("/c/{id}/queued", post(queue::act))
        .route("/c/{id}/model", post(picker::choose))
        .route(assets::MANIFEST, get(install::manifest))
        .route(install::WORKER, get(install::worker))
        .route(install::OFFLINE, get(install::offline))
        .route("/leave", get(leave::leave))
        .route("/undo", post(undo::undo))
        .route("/click", post(chat::click))
        .route("/heartbeat/seen", post(chat::heartbeat_seen))
        .route("/events", get(live::events))
        .route("/login", get(signin::login))
        .route("/sign-out", post(signin::sign_out))
        .route("/assets/{file}", get(assets::serve))
        .fallback(page::not_found)
        .method_not_allowed_fallback(page::wrong_method)
        .layer(from_fn_with_state(web.clone(), guard::guard))
        .layer(from_fn_with_state(web.clone(), under::under))
        .layer(from_fn(compress::compress))
        .with_state(web)
}
