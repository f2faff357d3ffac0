//! The page between Kai and a link that seems to lead elsewhere than it does.

use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use kai_words::said;
use serde::Deserialize;
use url::Url;

use super::markdown::links;
use super::notice::Notice;
use super::page;

#[derive(Deserialize)]
pub(super) struct Leave {
    to: String,
}

/// Shows where the link leads. Nothing here goes there by itself.
pub(super) async fn leave(Query(Leave { to }): Query<Leave>) -> Response {
    let web = Url::parse(&to).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some((url, host)) = web.and_then(|url| links::shown_host(&url).map(|host| (url, host))) else {
        return page::refused(said::leave_no_address());
    };
    Notice::new(StatusCode::OK, said::leave_title())
        .text(said::leave_how(host))
        .value("leave-address", url.as_str())
        .link(url.as_str(), said::leave_go())
        .text(said::leave_or_close())
        .into_response()
}
