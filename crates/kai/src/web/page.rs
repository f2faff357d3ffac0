//! The pages that show only a message.

use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use kai_assistant::home::Home;
use kai_words::{Said, said};

use super::notice::Notice;
use super::remedy::Trouble;
use crate::app::facts;

/// The page for browsers without a session: how to get a sign-in link.
pub(super) fn sign_in(headers: &HeaderMap, home: &Home) -> Response {
    let asked = |name: &str| headers.get(name).and_then(|v| v.to_str().ok());
    // Our cookie is SameSite=Strict, so following a link from another site arrives without it. The refresh comes from
    // our own page and sends it.
    let arrived =
        asked("sec-fetch-site") == Some("cross-site") && asked("sec-fetch-mode") == Some("navigate");
    Notice::new(StatusCode::UNAUTHORIZED, said::signin_title())
        .text(said::signin_how(facts::link_command(home)))
        .refresh(arrived)
        .into_response()
}

/// The page for a sign-in link that was used or has expired.
pub(super) fn used_link(home: &Home) -> Response {
    Notice::new(StatusCode::FORBIDDEN, said::signin_used())
        .text(said::signin_used_how(facts::link_command(home)))
        .into_response()
}

/// The page for somebody who tries one link after the other.
pub(super) fn too_many_links() -> Response {
    Notice::new(StatusCode::TOO_MANY_REQUESTS, said::signin_too_many())
        .text(said::signin_too_many_how())
        .into_response()
}

/// The page for a link that only the user who runs Kai may use, opened by someone else.
pub(super) fn strangers_link(home: &Home) -> Response {
    Notice::new(StatusCode::FORBIDDEN, said::signin_stranger())
        .text(said::signin_stranger_how(facts::link_command(home)))
        .into_response()
}

/// The page for an internal error.
pub(super) fn trouble(sentence: impl Into<Said>) -> Response {
    let sentence = sentence.into();
    tracing::warn!(%sentence, "a page could not be shown");
    Notice::new(StatusCode::INTERNAL_SERVER_ERROR, said::frame_trouble()).text(sentence).into_response()
}

/// The page for a request that made no sense and changed nothing.
pub(super) fn refused(sentence: Said) -> Response {
    Notice::new(StatusCode::BAD_REQUEST, said::frame_refused()).text(sentence).into_response()
}

/// A message with a link to `back`.
pub(super) fn notice_back(
    status: StatusCode,
    title: Said,
    trouble: impl Into<Trouble>,
    back: &str,
) -> Response {
    let Trouble { why, remedy } = trouble.into();
    let mut notice = Notice::new(status, title).text(why);
    if let Some(remedy) = remedy {
        notice = notice.link(&remedy.href, remedy.label);
    }
    notice.link(back, said::frame_back()).into_response()
}

/// Shows a new sign-in link, once, to the user who created it.
pub(super) fn fresh_link(link: &str) -> Response {
    Notice::new(StatusCode::OK, said::signin_fresh())
        .text(said::signin_fresh_how())
        .value("fresh-link", link)
        .link("/settings/general", said::frame_back())
        .into_response()
}

/// The last page, shown when the user erases everything.
pub(super) fn erased(home: &str) -> Response {
    Notice::new(StatusCode::OK, said::frame_erased()).text(said::frame_erased_what(home)).into_response()
}

/// The page for a conversation that does not exist.
pub(super) fn no_chat() -> Response {
    Notice::new(StatusCode::NOT_FOUND, said::frame_no_chat())
        .text(said::frame_no_chat_why())
        .link("/", said::frame_to_chat())
        .into_response()
}

pub(super) async fn not_found(uri: Uri) -> Response {
    Notice::new(StatusCode::NOT_FOUND, said::frame_not_found())
        .text(said::frame_nothing_at(uri.path()))
        .link("/", said::frame_to_start())
        .into_response()
}

pub(super) async fn wrong_method(method: Method) -> Response {
    Notice::new(StatusCode::METHOD_NOT_ALLOWED, said::frame_refused())
        .text(said::frame_wrong_method(method))
        .into_response()
}
