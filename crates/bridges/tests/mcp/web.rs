//! A server of our own that speaks MCP over HTTP, with the authorisation server that it trusts beside it.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::{Body, Bytes};
use axum::extract::{Query, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Form, Router};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::{Notify, broadcast};

/// How the server treats strangers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    Open,
    /// It wants this as a bearer token.
    Token(&'static str),
    /// It wants a token from the authorisation server.
    OAuth,
    Forbidden,
}

/// A running server.
#[derive(Clone)]
pub(crate) struct Web {
    pub(crate) base: String,
    door: Door,
    notices: broadcast::Sender<Value>,
    /// Lets the tool "step" answer.
    pub(crate) go_on: Arc<Notify>,
    seen: Arc<Mutex<Seen>>,
}

/// What the server has seen and given out.
#[derive(Default)]
pub(crate) struct Seen {
    /// Method and path of each request.
    pub(crate) requests: Vec<String>,
    /// The methods of MCP.
    pub(crate) methods: Vec<String>,
    /// The challenge of the sign-in under way, and where its answer goes.
    challenge: String,
    /// Tokens that count.
    access: Option<String>,
    refresh: Option<String>,
    given: u32,
}

impl Web {
    pub(crate) async fn open(door: Door) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let web = Self {
            base,
            door,
            notices: broadcast::Sender::new(8),
            go_on: Arc::default(),
            seen: Arc::default(),
        };
        let mut router = Router::new()
            .route("/mcp", post(speak).get(listen).delete(|| async { StatusCode::OK }))
            .route("/moved", post(|| async { moved("/mcp") }))
            .route("/round", post(|| async { moved("/round") }))
            .route("/away", post(|| async { moved("http://localhost:9/mcp") }))
            .route("/html", post(|| async { ([(CONTENT_TYPE, "text/html")], "<p>Hello") }))
            .route("/text", post(|| async { ([(CONTENT_TYPE, "application/json")], "hello") }))
            .route("/broken", post(|| async { StatusCode::INTERNAL_SERVER_ERROR }))
            .route("/without-end", post(without_end));
        if door == Door::OAuth {
            router = router
                .route("/.well-known/oauth-protected-resource/mcp", get(resource))
                .route("/.well-known/oauth-authorization-server", get(authorities))
                .route("/register", post(register))
                .route("/authorize", get(authorize))
                .route("/token", post(token));
        }
        let noting = axum::middleware::from_fn_with_state(web.clone(), note);
        let router = router.layer(noting).with_state(web.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        web
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    /// The token that clients hold does not count any more.
    pub(crate) fn forget_access(&self) {
        self.seen().access = None;
    }

    pub(crate) fn forget_refresh(&self) {
        self.seen().refresh = None;
    }

    /// What a client that may not enter is told.
    fn turned_away(&self, headers: &HeaderMap) -> Option<Response> {
        let bearer =
            headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let expected = match self.door {
            Door::Open => return None,
            Door::Forbidden => return Some(StatusCode::FORBIDDEN.into_response()),
            Door::Token(token) => Some(token.to_owned()),
            Door::OAuth => self.seen().access.clone(),
        };
        if bearer.is_some() && bearer == expected.as_deref() {
            return None;
        }
        let mut response = StatusCode::UNAUTHORIZED.into_response();
        if self.door == Door::OAuth {
            let place = self.url("/.well-known/oauth-protected-resource/mcp");
            let challenge = format!("Bearer error=\"invalid_token\", resource_metadata=\"{place}\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge.parse().unwrap());
        }
        Some(response)
    }
}

async fn note(State(web): State<Web>, request: Request, next: axum::middleware::Next) -> Response {
    web.seen().requests.push(format!("{} {}", request.method(), request.uri().path()));
    next.run(request).await
}

fn moved(to: &'static str) -> impl IntoResponse {
    (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, to)])
}

/// Begins an answer and never ends it.
async fn without_end() -> impl IntoResponse {
    let chunks = stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 64 * 1024])));
    ([(CONTENT_TYPE, "application/json")], Body::from_stream(chunks))
}

async fn speak(State(web): State<Web>, headers: HeaderMap, body: Bytes) -> Response {
    if let Some(response) = web.turned_away(&headers) {
        return response;
    }
    let message: Value = serde_json::from_slice(&body).unwrap();
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    web.seen().methods.push(method.clone());
    let schema = json!({"type": "object"});
    let result = match method.as_str() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "Web", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "do", "inputSchema": schema}]}),
        "tools/call" => return called(&web, &message),
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    ([("content-type", "application/json"), ("mcp-session-id", "s1")], answer).into_response()
}

/// Answers a call: as JSON or as a stream, of the size and after the notices that its name asks for.
fn called(web: &Web, message: &Value) -> Response {
    let params = &message["params"];
    let text = match params["name"].as_str().unwrap_or_default() {
        "large" | "large_stream" => "x".repeat(9_000_000),
        other => other.to_owned(),
    };
    let result = json!({"content": [{"type": "text", "text": text}]});
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    match params["name"].as_str().unwrap_or_default() {
        "change" => {
            let method = "notifications/tools/list_changed";
            web.notices.send(json!({"jsonrpc": "2.0", "method": method})).unwrap();
        }
        "step" => {
            let (notice, go_on) = (progress(params), Arc::clone(&web.go_on));
            let first = async move { Ok::<_, std::io::Error>(format!("data: {notice}\n\n")) };
            let second = async move {
                go_on.notified().await;
                Ok(format!("data: {answer}\n\n"))
            };
            let steps = stream::once(first).chain(stream::once(second));
            return ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(steps)).into_response();
        }
        "stream" | "large_stream" => {
            let notice = progress(params);
            let events = format!("data: {notice}\r\n\r\nevent: message\r\ndata: {answer}\r\n\r\n");
            return ([(CONTENT_TYPE, "text/event-stream")], events).into_response();
        }
        "wait" => {
            let nothing = stream::pending::<Result<Bytes, std::io::Error>>();
            return ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(nothing)).into_response();
        }
        "cut" => return ([(CONTENT_TYPE, "text/event-stream")], "data: {\"js").into_response(),
        _ => {}
    }
    ([(CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}

fn progress(params: &Value) -> Value {
    let progress = json!({"progressToken": params["_meta"]["progressToken"], "progress": 1});
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
}

/// The stream on which the server tells by itself.
async fn listen(State(web): State<Web>, headers: HeaderMap) -> Response {
    if let Some(response) = web.turned_away(&headers) {
        return response;
    }
    let events = stream::unfold(web.notices.subscribe(), |mut notices| async {
        let notice = notices.recv().await.ok()?;
        Some((Ok::<_, std::io::Error>(Bytes::from(format!("data: {notice}\n\n"))), notices))
    });
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(events.boxed())).into_response()
}

async fn resource(State(web): State<Web>) -> String {
    json!({"resource": web.url("/mcp"), "authorization_servers": [web.base], "scopes_supported": ["tools"]})
        .to_string()
}

async fn authorities(State(web): State<Web>) -> String {
    json!({
        "issuer": web.base,
        "authorization_endpoint": web.url("/authorize"),
        "token_endpoint": web.url("/token"),
        "registration_endpoint": web.url("/register"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["client_secret_post"],
    })
    .to_string()
}

/// Registers a client, and gives it a secret although it did not ask for one, as some servers do.
async fn register(body: Bytes) -> Response {
    let asked: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(asked["client_name"], "Kai");
    assert_eq!(asked["token_endpoint_auth_method"], "none");
    let given = json!({
        "client_id": "client-1", "client_secret": "client-secret", "redirect_uris": asked["redirect_uris"]
    });
    (StatusCode::CREATED, given.to_string()).into_response()
}

/// The page on which a user signs in; this one always agrees.
async fn authorize(State(web): State<Web>, Query(asked): Query<HashMap<String, String>>) -> Response {
    assert_eq!(asked["response_type"], "code");
    assert_eq!(asked["client_id"], "client-1");
    assert_eq!(asked["code_challenge_method"], "S256");
    assert_eq!(asked["resource"], web.url("/mcp"));
    assert_eq!(asked["scope"], "tools");
    web.seen().challenge.clone_from(&asked["code_challenge"]);
    let back = format!("{}?code=code-1&state={}", asked["redirect_uri"], asked["state"]);
    (StatusCode::FOUND, [(LOCATION, back)]).into_response()
}

async fn token(State(web): State<Web>, Form(asked): Form<HashMap<String, String>>) -> Response {
    assert_eq!(asked["resource"], web.url("/mcp"));
    assert_eq!(asked["client_secret"], "client-secret");
    let mut seen = web.seen();
    let granted = match asked["grant_type"].as_str() {
        "authorization_code" => {
            asked["code"] == "code-1" && hashed(&asked["code_verifier"]) == seen.challenge
        }
        "refresh_token" => seen.refresh.as_ref() == Some(&asked["refresh_token"]),
        _ => false,
    };
    if !granted {
        return (StatusCode::BAD_REQUEST, json!({"error": "invalid_grant"}).to_string()).into_response();
    }
    seen.given += 1;
    let (access, refresh) = (format!("access-{}", seen.given), format!("refresh-{}", seen.given));
    (seen.access, seen.refresh) = (Some(access.clone()), Some(refresh.clone()));
    let tokens = json!({
        "access_token": access, "token_type": "Bearer", "expires_in": 3_600, "refresh_token": refresh
    });
    ([(CONTENT_TYPE, "application/json")], tokens.to_string()).into_response()
}

/// The challenge that belongs to a verifier: its hash in the alphabet of addresses.
fn hashed(verifier: &str) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits = Sha256::digest(verifier.as_bytes()).iter().fold(String::new(), |mut bits, byte| {
        write!(bits, "{byte:08b}").unwrap();
        bits
    });
    let bits: Vec<char> = bits.chars().collect();
    let letter = |six: &[char]| {
        let six: String = six.iter().chain(std::iter::repeat(&'0')).take(6).collect();
        char::from(ALPHABET[usize::from_str_radix(&six, 2).unwrap()])
    };
    bits.chunks(6).map(letter).collect()
}
