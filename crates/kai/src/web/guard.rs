//! The checks that every request must pass before its handler runs.
//!
//! 1. Host: must be a loopback name, the address we are bound to, or listed in `allowed_hosts`. Stops DNS rebinding.
//! 2. Origin: if the browser sends one, it must be the page's own. Stops requests from other sites.
//! 3. Session: required for everything but sign-in and assets.
//! 4. CSRF token: any method but GET and HEAD needs the session's token. What is handed on to the demo needs the
//!    demo's, and its guard checks that.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use kai_assistant::attachments::LARGEST;
use kai_assistant::settings::ALLOWED_HOSTS;
use kai_words::{Lang, Said, said};

use super::notice::{JsonMessage, Message, Notice};
use super::state::Web;
use super::{attach, install, messages, page, reply, signin, upload};
use crate::app::App;
use crate::app::sessions::{self, Session};
use crate::places::ConnectionHandle;

/// Limit on the body of a form, larger than any that the page sends.
const BODY_LIMIT: usize = 1024 * 1024;
const BODY_TIME: Duration = Duration::from_secs(20);
/// The form that uploads an export.
pub(super) const IMPORT: &str = "/settings/general/import";
/// Limit on an uploaded export; years of conversations fit, with hundreds of pictures.
const FILE_LIMIT: usize = 256 * 1024 * 1024;
/// Timeout for the upload, which may come over a slow network.
const FILE_TIME: Duration = Duration::from_mins(5);
/// How many bytes beyond the limit are read and discarded: a browser reads no response before it has sent its whole
/// body, so the user would not see why the request was refused.
const PATIENCE: usize = 1024 * 1024 * 1024;

const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

pub(super) async fn guard(State(web): State<Web>, request: Request, next: Next) -> Response {
    let mut response = match admit(&web, request).await {
        // Runs in its own task, so that a panic in a handler becomes an error page, and a browser that disconnects
        // does not leave a change half done.
        Ok(request) => {
            let handled = tokio::spawn(next.run(request)).await;
            handled.unwrap_or_else(|_| page::trouble(said::frame_bug()))
        }
        Err(refusal) => refusal,
    };
    if let Some(message) = Message::of(&mut response) {
        response = message.render(language(&web).await);
    }
    protect(response.headers_mut());
    response
}

/// The user's language; the machine's if the settings cannot be read.
async fn language(web: &Web) -> Lang {
    App::lang(&web.app.values().await.unwrap_or_default(), &web.app.env)
}

/// Runs the checks; returns the request with its session and settings attached, or the refusal.
async fn admit(web: &Web, mut request: Request) -> Result<Request, Response> {
    let cookie = signin::cookie(&web.app.home_id, request.headers());
    let now = web.app.clock.now();
    let known = web.app.db.read(move |tx| sessions::recognise(tx, cookie, now)).await;
    let (values, session) = known.map_err(|e: kai_assistant::db::DbError| page::trouble(e.said()))?;

    if let Err((status, sentence)) = addressed(request.headers(), web.address, &values.of(&ALLOWED_HOSTS)) {
        return Err(refuse(status, request.headers(), sentence));
    }
    if let Some(badge) = request.extensions().get::<ConnectionHandle>() {
        badge.is_known(session.is_some());
    }
    let path = request.uri().path();
    let open = path == "/login" || path.starts_with("/assets/") || install::OPEN.contains(&path);
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    match &session {
        None if changes || !open => return Err(page::sign_in(request.headers(), &web.app.home)),
        Some(_) if messages::is_handed_on(path) => {}
        Some(session) if changes => request = confirmed(session, request).await?,
        _ => {}
    }
    request.extensions_mut().insert(session);
    request.extensions_mut().insert(values);
    Ok(request)
}

/// Checks that the request is for us and does not come from another site.
pub(crate) fn addressed(
    headers: &HeaderMap,
    bound: SocketAddr,
    allowed: &str,
) -> Result<(), (StatusCode, Said)> {
    let host = host_of(headers).ok_or_else(|| (StatusCode::BAD_REQUEST, said::guard_no_host()))?;
    if !host_allowed(&host, bound, allowed) {
        return Err((StatusCode::MISDIRECTED_REQUEST, said::guard_foreign_host(ALLOW_HOST)));
    }
    if !origin_fits(headers, &host) {
        return Err((StatusCode::FORBIDDEN, said::guard_foreign_origin()));
    }
    Ok(())
}

/// The command that lets Kai answer under another name.
const ALLOW_HOST: &str = "kai settings set allowed_hosts NAME";

/// Tells the script, or shows a page, why the request was refused.
fn refuse(status: StatusCode, headers: &HeaderMap, sentence: Said) -> Response {
    if reply::by_script(headers) {
        return JsonMessage { status, field: "error", told: sentence.into() }.into_response();
    }
    let title = match status {
        StatusCode::MISDIRECTED_REQUEST => said::guard_foreign_host_title(),
        _ => said::frame_refused(),
    };
    Notice::new(status, title).text(sentence).into_response()
}

/// The value of the `Host` header; `None` if it is missing, empty, or given twice.
fn host_of(headers: &HeaderMap) -> Option<String> {
    let mut named = headers.get_all(header::HOST).iter();
    let host = named.next()?.to_str().ok()?.to_ascii_lowercase();
    // With two Host headers, a proxy and we could disagree about which one counts.
    (named.next().is_none() && !host.is_empty()).then_some(host)
}

/// The host without its port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

fn host_allowed(host: &str, bound: SocketAddr, allowed: &str) -> bool {
    let name = name_of(host);
    let address: Option<IpAddr> = name.trim_start_matches('[').trim_end_matches(']').parse().ok();
    // Any port is fine: a tunnel to this machine may use a different one.
    let loopback = name == "localhost" || address.is_some_and(|ip| ip.is_loopback());
    let ours = address.is_some_and(|ip| ip == bound.ip() && !ip.is_unspecified());
    loopback || ours || allowed.split(',').any(|entry| !entry.is_empty() && (entry == host || entry == name))
}

/// Checks that the `Origin` header, if there is one, is exactly the page's own. Browsers send it with every change.
fn origin_fits(headers: &HeaderMap, host: &str) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    origins.all(|origin| {
        let named = origin.to_str().unwrap_or_default();
        let authority = named.strip_prefix("http://").or_else(|| named.strip_prefix("https://"));
        authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
    })
}

/// Reads the body and checks the CSRF token from the header or the form; returns the request with its body restored.
async fn confirmed(session: &Session, request: Request) -> Result<Request, Response> {
    let (parts, body) = request.into_parts();
    let (limit, time) = match parts.uri.path() {
        IMPORT => (FILE_LIMIT, FILE_TIME),
        attach::UPLOAD => (LARGEST, FILE_TIME),
        _ => (BODY_LIMIT, BODY_TIME),
    };
    let taken = tokio::time::timeout(time, taken_in(body, limit)).await;
    let refused = |status, sentence| refuse(status, &parts.headers, sentence);
    let taken = taken.map_err(|_late| refused(StatusCode::REQUEST_TIMEOUT, said::guard_too_slow()))?;
    let body = taken.ok_or_else(|| too_large(parts.uri.path(), &parts.headers))?;
    let given = token(&parts.headers, &body);
    if given.is_none_or(|given| !session.csrf_is(&given)) {
        return Err(refused(StatusCode::FORBIDDEN, said::guard_no_proof()));
    }
    Ok(Request::from_parts(parts, Body::from(body)))
}

/// Reads the whole body; `None` if it is longer than `limit` or breaks off.
async fn taken_in(body: Body, limit: usize) -> Option<Bytes> {
    let mut pieces = body.into_data_stream();
    let (mut kept, mut length) = (Vec::new(), 0);
    while let Some(piece) = pieces.next().await {
        let piece = piece.ok()?;
        length += piece.len();
        match length {
            _ if length <= limit => kept.extend_from_slice(&piece),
            _ if length <= limit + PATIENCE => kept = Vec::new(),
            _ => return None,
        }
    }
    (length <= limit).then(|| kept.into())
}

fn too_large(path: &str, headers: &HeaderMap) -> Response {
    let status = StatusCode::PAYLOAD_TOO_LARGE;
    match path {
        IMPORT => {
            let sentence = said::frame_file_limit(FILE_LIMIT >> 20);
            page::notice_back(status, said::frame_file_too_large(), sentence, "/settings/general")
        }
        attach::UPLOAD => refuse(status, headers, attach::too_large(headers)),
        _ => refuse(status, headers, said::guard_too_large()),
    }
}

/// The CSRF token that the request carries, if any.
fn token(headers: &HeaderMap, body: &Bytes) -> Option<String> {
    if let Some(header) = headers.get("x-csrf-token") {
        return header.to_str().ok().map(str::to_owned);
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if let Some(given) = upload::field(kind, body, "csrf") {
        return std::str::from_utf8(given).ok().map(str::to_owned);
    }
    // The token is hexadecimal, so no decoding of the form is needed to find it.
    let form = std::str::from_utf8(body).ok()?;
    form.split('&').find_map(|field| field.strip_prefix("csrf=")).map(str::to_owned)
}

/// Adds the security headers that every response carries.
fn protect(headers: &mut HeaderMap) {
    // An attached file has a stricter policy of its own.
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(CSP));
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        // Not `no-referrer`: with it, browsers send `Origin: null` even from our own forms.
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_answered() {
        let loopback: SocketAddr = "127.0.0.1:8787".parse().unwrap();
        let lan: SocketAddr = "192.168.1.20:8787".parse().unwrap();
        let all: SocketAddr = "0.0.0.0:8787".parse().unwrap();
        for (host, bound, allowed, expected) in [
            ("127.0.0.1:8787", loopback, "", true),
            ("localhost:8787", loopback, "", true),
            ("localhost", loopback, "", true),
            ("[::1]:8787", loopback, "", true),
            ("127.0.0.1:9000", loopback, "", true),
            ("evil.example", loopback, "", false),
            ("evil.example:8787", loopback, "", false),
            ("localhost.evil.example:8787", loopback, "", false),
            ("127.0.0.1.evil.example", loopback, "", false),
            ("192.168.1.20:8787", loopback, "", false),
            ("192.168.1.20:8787", lan, "", true),
            ("0.0.0.0:8787", all, "", false),
            ("kai.lan", loopback, "kai.lan", true),
            ("kai.lan:8787", loopback, "kai.lan", true),
            ("kai.lan:9999", loopback, "kai.lan:8787", false),
            ("other.lan", loopback, "kai.lan", false),
            ("", loopback, "", false),
        ] {
            assert_eq!(
                host_allowed(host, bound, allowed),
                expected,
                "{host} on {bound}, allowed {allowed:?}"
            );
        }
    }

    #[test]
    fn an_origin_must_be_the_page_itself() {
        for (origin, expected) in [
            (None, true),
            (Some("http://127.0.0.1:8787"), true),
            (Some("https://127.0.0.1:8787"), true),
            (Some("http://127.0.0.1:9999"), false),
            (Some("http://localhost:8787"), false),
            (Some("http://evil.example"), false),
            (Some("null"), false),
            (Some(""), false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            assert_eq!(origin_fits(&headers, "127.0.0.1:8787"), expected, "{origin:?}");
        }
    }
}
