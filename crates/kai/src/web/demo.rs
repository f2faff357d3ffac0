//! The button that starts the demo and takes the user to it.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use super::reply;
use super::state::Web;

pub(super) async fn start(State(web): State<Web>, headers: HeaderMap) -> Response {
    let (demo, home) = (web.demo.clone(), web.app.home.clone());
    let link = tokio::task::spawn_blocking(move || demo.link(&home)).await;
    match link.ok().flatten() {
        Some(link) => reply::done_elsewhere(&headers, &link),
        None => reply::not_done(&headers, "The demo could not be started. In a terminal: kai serve --demo"),
    }
}
