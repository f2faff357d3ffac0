//! The demo behind this page: `/demo` starts it and signs the browser in there, and everything below `/demo/` is handed
//! on to its process. So one port is enough, also behind a tunnel.
//!
//! The demo has a guard of its own, which checks its own session and CSRF token. Ours has checked host, origin and our
//! session before anything is handed on. The two never see each other's cookies: what the browser keeps for the demo has
//! a name and a path of its own, and nothing else that it sends is handed on as a cookie.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{any, get};
use futures_util::StreamExt;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kai_words::said;
use tokio::net::TcpStream;

use super::state::Web;
use super::under::{HEADER, UNDER};
use super::{reply, signin};

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/demo", get(start).post(start))
        .route("/demo/back", get(async || Redirect::to("/")))
        .route("/demo/", any(hand_on))
        .route("/demo/{*rest}", any(hand_on))
}

/// Whether this path is the demo's, whose own guard wants a CSRF token of its own.
pub(super) fn is_handed_on(path: &str) -> bool {
    path.strip_prefix(UNDER).is_some_and(|rest| rest.starts_with('/'))
}

/// Starts the demo unless it runs, and signs the browser in there.
async fn start(State(web): State<Web>, headers: HeaderMap) -> Response {
    if signin::prefetch(&headers) {
        return StatusCode::NO_CONTENT.into_response();
    }
    let (demo, home) = (web.demo.clone(), web.app.home.clone());
    let token = tokio::task::spawn_blocking(move || demo.sign_in(&home)).await;
    match token.ok().flatten() {
        Some(token) => reply::done(&headers, &format!("{UNDER}/login?token={token}")),
        None => reply::not_done(&headers, said::demo_failed()),
    }
}

/// Hands a request on to the demo, and its answer back as it comes.
async fn hand_on(State(web): State<Web>, request: Request) -> Response {
    let is_visit = request.method() == Method::GET && !reply::by_script(request.headers());
    let wakes = is_visit
        && request.headers().get("accept").is_some_and(|kinds| kinds.as_bytes().starts_with(b"text/html"));
    let answer = match web.demo.address() {
        Some(address) => forward(&web, address, request).await.ok(),
        None => None,
    };
    match answer {
        // Who is not signed in there yet, or finds it asleep, gets in by the front door.
        Some(answer) if answer.status() == StatusCode::UNAUTHORIZED && wakes => {
            Redirect::to(UNDER).into_response()
        }
        None if wakes => Redirect::to(UNDER).into_response(),
        Some(answer) => answer,
        None => (StatusCode::BAD_GATEWAY, "").into_response(),
    }
}

async fn forward(web: &Web, address: SocketAddr, request: Request) -> Result<Response, Unreachable> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake::<_, Body>(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let cookie = cookie_name(web);
    let answer = sender.send_request(handed_on(request, address, &cookie)?).await?;
    Ok(handed_back(web, answer, &cookie))
}

/// The demo did not answer.
#[derive(Debug, thiserror::Error)]
enum Unreachable {
    #[error(transparent)]
    Connection(#[from] std::io::Error),
    #[error(transparent)]
    Exchange(#[from] hyper::Error),
    #[error(transparent)]
    Request(#[from] axum::http::Error),
}

/// Headers that concern one connection, and those that say who asks: neither is handed on.
const KEPT_BACK: [&str; 13] = [
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "proxy-authorization",
    "authorization",
    "cookie",
    "host",
    "origin",
    "referer",
    HEADER,
];

/// The request as the demo gets it. Our guard has found the origin to be this page's, so here it is the demo's own.
fn handed_on(request: Request, address: SocketAddr, cookie: &str) -> Result<Request, axum::http::Error> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let path = path.strip_prefix(UNDER).unwrap_or("/").to_owned();
    let text = |name: HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let session = session(&parts.headers, cookie);
    let has_origin = parts.headers.contains_key(header::ORIGIN);
    let referer = text(header::REFERER).and_then(|from| from.split_once(&format!("{UNDER}/")));
    let referer = referer.map(|(_, rest)| format!("http://{address}/{rest}"));
    for name in KEPT_BACK {
        parts.headers.remove(name);
    }
    let own = [
        (header::HOST, Some(address.to_string())),
        (header::ORIGIN, has_origin.then(|| format!("http://{address}"))),
        (header::REFERER, referer),
        (header::COOKIE, session),
        (HeaderName::from_static(HEADER), Some(UNDER.to_owned())),
    ];
    for (name, value) in own {
        if let Some(value) = value {
            parts.headers.insert(name, HeaderValue::from_str(&value)?);
        }
    }
    let mut request = Request::new(body);
    *request.method_mut() = parts.method;
    *request.uri_mut() = path.parse::<Uri>()?;
    *request.headers_mut() = parts.headers;
    Ok(request)
}

/// The answer as the browser gets it. It ends when this Kai stops, even if the demo goes on.
fn handed_back(web: &Web, answer: hyper::Response<Incoming>, cookie: &str) -> Response {
    let (mut parts, body) = answer.into_parts();
    let set: Vec<String> = parts
        .headers
        .get_all(header::SET_COOKIE)
        .iter()
        .filter_map(|set| kept_cookie(set.to_str().ok()?, cookie))
        .collect();
    for name in [header::SET_COOKIE, header::CONNECTION, header::TRANSFER_ENCODING] {
        parts.headers.remove(name);
    }
    for set in set.iter().filter_map(|set| HeaderValue::from_str(set).ok()) {
        parts.headers.append(header::SET_COOKIE, set);
    }
    let stop = web.stop.clone().cancelled_owned();
    let body = Body::new(body).into_data_stream().take_until(Box::pin(stop));
    Response::from_parts(parts, Body::from_stream(body))
}

/// The name of the cookie that holds the demo's session. It differs per home, as ours does.
fn cookie_name(web: &Web) -> String {
    format!("kai_demo_{}", web.app.home_id.as_str())
}

/// What the names of session cookies begin with.
const SESSION: &str = "kai_session_";

/// The demo's session cookie, from the one that the browser keeps for it: the demo's id, a dot, and the session.
fn session(headers: &HeaderMap, cookie: &str) -> Option<String> {
    let pairs = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = pairs.flat_map(|pairs| pairs.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(name, _)| *name == cookie)?;
    let (home, session) = value.split_once('.')?;
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hex(home) && is_hex(session)).then(|| format!("{SESSION}{home}={session}"))
}

/// The cookie that the browser keeps for one that the demo sets. Anything but a session is dropped.
fn kept_cookie(set: &str, cookie: &str) -> Option<String> {
    let (pair, rest) = set.split_once(';')?;
    let (home, session) = pair.strip_prefix(SESSION)?.split_once('=')?;
    let age = rest.split(';').map(str::trim).find(|part| part.starts_with("Max-Age="))?;
    Some(format!("{cookie}={home}.{session}; Path={UNDER}/; {age}; HttpOnly; SameSite=Strict"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COOKIE: &str = "kai_demo_ff";

    fn asked(headers: &[(&str, &str)]) -> HeaderMap {
        let mut request = Request::builder().uri("/demo/c/5?q=tea");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let address = "127.0.0.1:4711".parse().unwrap();
        let request = handed_on(request.body(Body::empty()).unwrap(), address, COOKIE).unwrap();
        assert_eq!(request.uri(), "/c/5?q=tea");
        request.headers().clone()
    }

    #[test]
    fn neither_kai_sees_the_others_cookies() {
        let headers =
            asked(&[("cookie", "kai_session_ff=aa; kai_demo_ff=d0.5e55; kai_session_d0=00; other=1")]);
        assert_eq!(headers["cookie"], "kai_session_d0=5e55");
        for cookie in
            ["kai_session_ff=aa", "kai_demo_ff=d0", "kai_demo_ff=d0.5e; x", "kai_demo_00=d0.5e55", ""]
        {
            let sent = asked(&[("cookie", cookie)]);
            let expected = cookie.contains("kai_demo_ff=d0.5e").then_some("kai_session_d0=5e");
            assert_eq!(sent.get("cookie").map(|value| value.to_str().unwrap()), expected, "{cookie}");
        }
        let odd = asked(&[("cookie", "kai_demo_ff=d0.5e%0b")]);
        assert!(!odd.contains_key("cookie"));
        let set = "kai_session_d0=5e55; Path=/; Max-Age=60; HttpOnly; SameSite=Strict";
        let kept = "kai_demo_ff=d0.5e55; Path=/demo/; Max-Age=60; HttpOnly; SameSite=Strict";
        assert_eq!(kept_cookie(set, COOKIE).as_deref(), Some(kept));
        for other in ["kai_session_ff", "theme=dark; Path=/; Max-Age=1", "kai_demo_ff=1.2; Path=/; Max-Age=9"]
        {
            assert_eq!(kept_cookie(other, COOKIE), None, "{other}");
        }
    }

    #[test]
    fn a_request_is_the_demos_own_and_tells_nothing_else() {
        let headers = asked(&[
            ("host", "kai.lan:8787"),
            ("origin", "https://kai.lan:8787"),
            ("referer", "https://kai.lan:8787/demo/settings/agent?show=log"),
            ("authorization", "Bearer secret"),
            ("x-kai-under", "/elsewhere"),
            ("x-csrf-token", "cafe"),
            ("connection", "upgrade"),
        ]);
        assert_eq!(headers["host"], "127.0.0.1:4711");
        assert_eq!(headers["origin"], "http://127.0.0.1:4711");
        assert_eq!(headers["referer"], "http://127.0.0.1:4711/settings/agent?show=log");
        assert_eq!(
            (&headers["x-kai-under"], &headers["x-csrf-token"]),
            (&"/demo".parse().unwrap(), &"cafe".parse().unwrap())
        );
        assert!(!headers.contains_key("authorization") && !headers.contains_key("connection"));
        assert!(!asked(&[]).contains_key("origin"));
    }

    #[test]
    fn only_what_is_below_the_demo_is_handed_on() {
        for (path, expected) in [
            ("/demo", false),
            ("/demo/", true),
            ("/demo/c/1/say", true),
            ("/demos/x", false),
            ("/say", false),
        ] {
            assert_eq!(is_handed_on(path), expected, "{path}");
        }
    }
}
