//! What a browser needs to install the page as an app, and what it shows while Kai is not running.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use kai_words::said;
use serde_json::json;

use super::assets::{self, AROUND, FAVICON, FINDER_STYLE, MANIFEST, STYLE};
use super::notice::Notice;

/// The addresses that a browser reads without a session: it fetches them without cookies, and they hold nothing
/// private.
pub(super) const OPEN: [&str; 3] = [MANIFEST, WORKER, OFFLINE];

pub(super) const WORKER: &str = "/sw.js";
pub(super) const OFFLINE: &str = "/offline";

pub(super) async fn manifest() -> Response {
    let icon = |src: &str, purpose: &str| json!({"src": src, "sizes": "any", "type": "image/svg+xml", "purpose": purpose});
    let manifest = json!({
        "name": "Kai",
        "id": "/",
        "start_url": "/",
        "display": "standalone",
        "background_color": AROUND[0].1,
        "theme_color": AROUND[0].1,
        "icons": [icon(&FAVICON, "any"), icon(&assets::MASKABLE, "maskable")],
    });
    ([(header::CONTENT_TYPE, "application/manifest+json")], manifest.to_string()).into_response()
}

/// The script that shows the page below when Kai cannot be reached. It keeps nothing else.
pub(super) async fn worker() -> Response {
    let keeps = json!([OFFLINE, *STYLE, *FINDER_STYLE]);
    let script = include_str!("assets/sw.js").replace("[/* KEEPS */]", &keeps.to_string());
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], script).into_response()
}

/// The page for a browser that cannot reach Kai.
pub(super) async fn offline() -> Response {
    Notice::new(StatusCode::OK, said::offline_title())
        .text(said::offline_how("kai"))
        .link("/", said::offline_again())
        .into_response()
}
