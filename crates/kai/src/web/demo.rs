//! The button that starts the demo and takes the user to it.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use kai_words::said;

use super::state::Web;
use super::{page, reply};

pub(super) async fn start(State(web): State<Web>, headers: HeaderMap) -> Response {
    let (demo, home) = (web.demo.clone(), web.app.home.clone());
    let link = tokio::task::spawn_blocking(move || demo.link(&home)).await;
    match link.ok().flatten() {
        Some(link) if reply::by_script(&headers) => reply::done(&headers, &link),
        // The content security policy does not let a form redirect to another origin.
        Some(link) => page::notice_back(StatusCode::OK, said::demo_ready(), said::demo_ready_how(), &link),
        None => reply::not_done(&headers, said::demo_failed()),
    }
}
