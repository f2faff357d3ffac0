//! The page between Kai and a link that seems to lead elsewhere than it does.

use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use kai_words::said;
use serde::Deserialize;
use url::Url;

use super::links;
use crate::web::notice::Notice;
use crate::web::page;

/// How the address of this page begins.
pub(super) const BEGIN: &str = "/leave?to=";

/// The address of this page for a link.
pub(super) fn path(href: &str) -> String {
    let encoded: String = form_urlencoded::byte_serialize(href.as_bytes()).collect();
    format!("{BEGIN}{encoded}")
}

#[derive(Deserialize)]
pub(in crate::web) struct Leave {
    to: String,
}

/// Shows where the link leads. Nothing here goes there by itself.
pub(in crate::web) async fn leave(Query(Leave { to }): Query<Leave>) -> Response {
    let web = Url::parse(&to).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some((url, host)) = web.and_then(|url| links::shown_host(&url).map(|host| (url, host))) else {
        return page::refused(said::leave_no_address());
    };
    Notice::new(StatusCode::OK, said::leave_title())
        .text(said::leave_how(host))
        .value("leave-address", url.as_str())
        .link(url.as_str(), said::leave_go())
        .into_response()
}
