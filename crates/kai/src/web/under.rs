//! The demo's page below a path of another Kai's page. Every address that it sends then begins with that path, and the
//! page is marked, so that it has colours of its own and a way back.
//!
//! The rewriting is exact because it sees only what this page made: in its HTML a quotation mark stands at an attribute
//! and nowhere else, and in its JSON one that was typed has a backslash.

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::StreamExt;

use super::state::Web;

/// The path below which the demo is served by the other Kai.
pub(super) const UNDER: &str = "/demo";
/// The header by which the other Kai says so.
pub(super) const HEADER: &str = "x-kai-under";

/// Longer pages are not rewritten; none of the demo's is.
const LONGEST: usize = 16 << 20;

/// Marks the demo's pages, and moves their addresses if they are served below a path. Does nothing outside of the demo.
pub(super) async fn under(State(web): State<Web>, request: Request, next: Next) -> Response {
    if !web.app.home.is_demo() {
        return next.run(request).await;
    }
    let below = request.headers().get(HEADER).is_some_and(|under| under == UNDER).then_some(UNDER);
    let mut response = next.run(request).await;
    if let Some(under) = below {
        move_header(&mut response, under);
    }
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    match kind.unwrap_or_default().split(';').next().unwrap_or_default() {
        "text/html" => rewritten(response, move |text| html(text, below)).await,
        "application/json" | "application/manifest+json" => match below {
            Some(under) => rewritten(response, move |text| json(text, under)).await,
            None => response,
        },
        "text/event-stream" => match below {
            Some(under) => streamed(response, under),
            None => response,
        },
        _ => response,
    }
}

fn move_header(response: &mut Response, under: &str) {
    let to = response.headers().get(header::LOCATION).and_then(|to| to.to_str().ok());
    let to = to.filter(|to| to.starts_with('/')).map(|to| format!("{under}{to}"));
    if let Some(to) = to.and_then(|to| HeaderValue::from_str(&to).ok()) {
        response.headers_mut().insert(header::LOCATION, to);
    }
}

async fn rewritten(response: Response, rewrite: impl FnOnce(&str) -> String) -> Response {
    let (mut parts, body) = response.into_parts();
    // A page is in memory, so reading it cannot fail.
    let whole = to_bytes(body, LONGEST).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&whole);
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(rewrite(&text)))
}

/// Every event is sent as one piece, so no address is cut in two.
fn streamed(response: Response, under: &'static str) -> Response {
    let (parts, body) = response.into_parts();
    let pieces = body
        .into_data_stream()
        .map(move |piece| piece.map(|piece| Bytes::from(json(&String::from_utf8_lossy(&piece), under))));
    Response::from_parts(parts, Body::from_stream(pieces))
}

/// The attributes that hold addresses.
const ATTRIBUTES: [&str; 4] = ["href", "src", "action", "formaction"];
/// The fields of our JSON that hold addresses.
const FIELDS: [&str; 5] = ["to", "href", "src", "start_url", "id"];

fn html(text: &str, under: Option<&str>) -> String {
    let Some(under) = under else { return text.replacen("<html ", "<html data-demo ", 1) };
    let marked = text.replacen("<html ", &format!("<html data-demo data-under=\"{under}\" "), 1);
    ATTRIBUTES.iter().fold(marked, |text, attribute| moved(&text, &format!(" {attribute}=\""), under))
}

/// Moves the addresses in JSON, and in the HTML that is in it.
fn json(text: &str, under: &str) -> String {
    let text =
        FIELDS.iter().fold(text.to_owned(), |text, field| moved(&text, &format!("\"{field}\":\""), under));
    ATTRIBUTES.iter().fold(text, |text, attribute| moved(&text, &format!(" {attribute}=\\\""), under))
}

/// Puts `under` before each path that follows `before`. An address of another site is none.
fn moved(text: &str, before: &str, under: &str) -> String {
    let mut parts = text.split(before);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(before);
        if part.starts_with('/') && !part.starts_with("//") {
            out.push_str(under);
        }
        out.push_str(part);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_of_ours_is_moved_and_nothing_else() {
        let page = r##"<html lang="en"><a href="/c/5">/c/5</a><a href="#x"><a href="https://x/"><a href="//x">
            <form action="/say"><button formaction="/again"><img src="/a.png"><p>say href=&quot;/no&quot;</p>"##;
        let expected = r##"<html data-demo data-under="/demo" lang="en"><a href="/demo/c/5">/c/5</a><a href="#x"><a href="https://x/"><a href="//x">
            <form action="/demo/say"><button formaction="/demo/again"><img src="/demo/a.png"><p>say href=&quot;/no&quot;</p>"##;
        assert_eq!(html(page, Some(UNDER)), expected);
        assert_eq!(html("<html lang>", None), "<html data-demo lang>");
        let told = r#"{"to":"/c/5","html":"<a href=\"/c/5\">","said":"\"to\":\"/no\""}"#;
        let expected = r#"{"to":"/demo/c/5","html":"<a href=\"/demo/c/5\">","said":"\"to\":\"/no\""}"#;
        assert_eq!(json(told, UNDER), expected);
    }
}
