//! Style sheet, scripts and icon, compiled into the binary. Their URLs contain a hash of their content, so browsers may
//! cache them forever.

use std::sync::LazyLock;

use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use kai_assistant::hex;
use sha2::{Digest, Sha256};

const CSS: &str = include_str!("assets/app.css");
const JS: &str = include_str!("assets/app.js");
const COMPOSER: &str = include_str!("assets/composer.js");
const FINDER_CSS: &str = include_str!("assets/finder.css");
const FINDER_JS: &str = include_str!("assets/finder.js");
const ICON: &str = include_str!("assets/icon.svg");
const ICON_MASKABLE: &str = include_str!("assets/icon-maskable.svg");

/// The URL path of the manifest, which a browser needs to install the page as an app.
pub(super) const MANIFEST: &str = "/manifest.webmanifest";
/// The colour around the page, in light and in dark.
pub(super) const AROUND: [(&str, &str); 2] = [("light", "#faf8f3"), ("dark", "#14181a")];

/// The URL path of the style sheet.
pub(super) static STYLE: LazyLock<String> = LazyLock::new(|| named("app", CSS, "css"));
pub(super) static SCRIPT: LazyLock<String> = LazyLock::new(|| named("app", JS, "js"));

/// The list of chats, the search and the sheet of shortcuts; after the style sheet and the script of all pages.
pub(super) static FINDER_STYLE: LazyLock<String> = LazyLock::new(|| named("finder", FINDER_CSS, "css"));
pub(super) static FINDER_SCRIPT: LazyLock<String> = LazyLock::new(|| named("finder", FINDER_JS, "js"));

/// The script of the composer; only pages of the chat load it.
pub(super) static COMPOSER_SCRIPT: LazyLock<String> = LazyLock::new(|| named("composer", COMPOSER, "js"));
pub(super) static FAVICON: LazyLock<String> = LazyLock::new(|| named("icon", ICON, "svg"));

/// The icon for launchers that cut icons into a shape of their own.
pub(super) static MASKABLE: LazyLock<String> = LazyLock::new(|| named("icon-maskable", ICON_MASKABLE, "svg"));

/// The URL path of an asset, with a hash of its content.
pub(super) fn named(stem: &str, content: &str, ending: &str) -> String {
    let hash = Sha256::digest(content.as_bytes());
    let short = hex::encode(&hash[..6]);
    format!("/assets/{stem}.{short}.{ending}")
}

pub(super) async fn serve(uri: Uri) -> Response {
    let asked = uri.path();
    let (content, kind) = match asked {
        _ if asked == *STYLE => (CSS, "text/css; charset=utf-8"),
        _ if asked == *SCRIPT => (JS, "text/javascript; charset=utf-8"),
        _ if asked == *COMPOSER_SCRIPT => (COMPOSER, "text/javascript; charset=utf-8"),
        _ if asked == *FINDER_STYLE => (FINDER_CSS, "text/css; charset=utf-8"),
        _ if asked == *FINDER_SCRIPT => (FINDER_JS, "text/javascript; charset=utf-8"),
        _ if asked == *FAVICON => (ICON, "image/svg+xml"),
        _ if asked == *MASKABLE => (ICON_MASKABLE, "image/svg+xml"),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    cached(content, kind)
}

/// The response that sends an asset, to be cached forever.
pub(super) fn cached(content: &'static str, kind: &'static str) -> Response {
    let forever = "public, max-age=31536000, immutable";
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, forever)], content).into_response()
}
