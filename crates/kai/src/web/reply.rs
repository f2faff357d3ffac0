//! Responses to a change: JSON for the script, which updates the page by itself; a redirect or a message page where
//! there is no script.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use kai_words::{Said, said};
use serde_json::{Value, json};

use super::notice::JsonMessage;
use super::page;
use super::remedy::Trouble;

/// Was the request sent by the page's script?
pub(super) fn by_script(headers: &HeaderMap) -> bool {
    headers.contains_key("x-live")
}

fn json_reply(status: StatusCode, what: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], what.to_string()).into_response()
}

/// The change was made; its result is on the page at `to`.
pub(super) fn done(headers: &HeaderMap, to: &str) -> Response {
    if by_script(headers) {
        json_reply(StatusCode::OK, &json!({"to": to}))
    } else {
        Redirect::to(to).into_response()
    }
}

/// The change was made; its result is on the page where the user is.
pub(super) fn done_here(headers: &HeaderMap) -> Response {
    if by_script(headers) {
        json_reply(StatusCode::OK, &json!({}))
    } else {
        Redirect::to(&from(headers)).into_response()
    }
}

/// The change was made; the script shows this sentence.
pub(super) fn done_saying(sentence: Said) -> Response {
    JsonMessage { status: StatusCode::OK, field: "said", told: sentence.into() }.into_response()
}

/// The change was not made; `trouble` says why.
pub(super) fn not_done(headers: &HeaderMap, trouble: impl Into<Trouble>) -> Response {
    let (status, told) = (StatusCode::CONFLICT, trouble.into());
    if by_script(headers) {
        return JsonMessage { status, field: "error", told }.into_response();
    }
    page::notice_back(status, said::frame_not_done(), told, &from(headers))
}

/// The form's fields could not be read.
pub(super) fn misfilled(headers: &HeaderMap) -> Response {
    let sentence = said::frame_misfilled();
    if by_script(headers) {
        let (status, told) = (StatusCode::BAD_REQUEST, sentence.into());
        return JsonMessage { status, field: "error", told }.into_response();
    }
    page::refused(sentence)
}

/// The path of the page that a form was on, or `/` if the browser does not say. Never leads to another site.
pub(super) fn from(headers: &HeaderMap) -> String {
    let named = headers.get("referer").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let path = named
        .split_once("://")
        .and_then(|(_, rest)| rest.split_once('/'))
        .map(|(_, path)| format!("/{path}"));
    let ours = |path: &String| {
        ["/c/", "/settings/", "/ledger", "/inbox", "/welcome"].iter().any(|ours| path.starts_with(ours))
    };
    path.filter(|path| ours(path) && !path.contains("//")).unwrap_or_else(|| "/".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_leads_back_to_a_page_of_ours_only() {
        for (referer, expected) in [
            ("http://127.0.0.1:8787/c/5?q=tea", "/c/5?q=tea"),
            ("http://127.0.0.1:8787/settings/agent?show=log", "/settings/agent?show=log"),
            ("http://127.0.0.1:8787/inbox/sms-42?show=unread", "/inbox/sms-42?show=unread"),
            ("http://127.0.0.1:8787/", "/"),
            ("http://evil.test//other.test", "/"),
            ("http://evil.test/c//other.test", "/"),
            ("", "/"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("referer", referer.parse().unwrap());
            assert_eq!(from(&headers), expected, "{referer}");
        }
    }
}
