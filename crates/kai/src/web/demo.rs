//! The button that starts the demo and takes the user to it.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::state::Web;
use super::{page, reply};

pub(super) async fn start(State(web): State<Web>, headers: HeaderMap) -> Response {
    let (demo, home) = (web.demo.clone(), web.app.home.clone());
    let link = tokio::task::spawn_blocking(move || demo.link(&home)).await;
    match link.ok().flatten() {
        Some(link) if reply::by_script(&headers) => reply::done(&headers, &link),
        // The content security policy does not let a form redirect to another origin.
        Some(link) => page::notice_back(StatusCode::OK, "It is ready", "Open it with the link below.", &link),
        None => reply::not_done(&headers, "The demo could not be started. In a terminal: kai serve --demo"),
    }
}
