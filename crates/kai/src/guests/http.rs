//! MCP over HTTP, on loopback only: each guest has a token, every message is a POST with one answer.
//!
//! Checked in this order: host and origin (a web page must not reach us), the token, the kind and the length of the
//! body. The thread that was there first makes the calls, one after the other; another one serves.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use kai_assistant::hex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{LONGEST, protocol, session};
use crate::call::Call;
use crate::call::guests::{GuestCall, GuestReply, Wants, Who};
use crate::caller::Caller;
use crate::failure::Failure;
use crate::places::ConnectionHandle;
use crate::web::connections;
use crate::web::guard::addressed;

/// How long the body of a message may take.
const BODY_TIME: Duration = Duration::from_secs(20);
/// How many messages may wait for their turn.
const WAITING: usize = 32;

/// One message of a guest that waits for its turn.
struct Turn {
    who: Who,
    message: Vec<u8>,
    answer: oneshot::Sender<Answer>,
}

/// What becomes of a message.
enum Answer {
    /// The token is not one of ours.
    Stranger,
    /// There is nothing to say to it.
    Nothing,
    Message(Value),
}

/// Serves until it is interrupted. `ready` is told the address.
pub(crate) fn serve(caller: &Caller, port: u16, ready: impl FnOnce(&str)) -> Result<(), Failure> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok((listener.local_addr()?, listener))
    });
    let (address, listener) = listener.map_err(|e| {
        Failure::failed(format!("Port {port} cannot be used: {e}. Choose another one with --port."))
    })?;
    let (turns, waiting) = sync_channel(WAITING);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|e| Failure::failed(format!("Kai could not start: {e}.")))?;
    let stop = CancellationToken::new();
    runtime.spawn(interrupted(stop.clone()));
    runtime.spawn(listen(listener, address, turns, stop));
    ready(&format!("http://{address}/mcp"));
    work(caller, &waiting);
    Ok(())
}

async fn interrupted(stop: CancellationToken) {
    if tokio::signal::ctrl_c().await.is_ok() {
        stop.cancel();
    }
}

async fn listen(
    listener: std::net::TcpListener,
    address: SocketAddr,
    turns: SyncSender<Turn>,
    stop: CancellationToken,
) {
    match TcpListener::from_std(listener) {
        Ok(listener) => connections::serve(listener, router(address, turns), stop).await,
        Err(error) => tracing::error!(%error, "the port cannot be used"),
    }
}

/// Makes the calls until nobody serves any more.
fn work(caller: &Caller, waiting: &Receiver<Turn>) {
    let ask = |call: GuestCall| caller.ask::<Option<GuestReply>>(Call::Guest(call));
    while let Ok(Turn { who, message, answer }) = waiting.recv() {
        // Whoever has gone away hears nothing, and needs nothing.
        drop(answer.send(answered(&who, &message, &ask)));
    }
}

fn answered(who: &Who, message: &[u8], ask: session::Ask<'_>) -> Answer {
    match ask(GuestCall { who: who.clone(), wants: Wants::Nothing }) {
        Ok(None) => Answer::Stranger,
        Ok(Some(_)) => session::answer_holder(message, who, ask).map_or(Answer::Nothing, Answer::Message),
        Err(failure) => Answer::Message(protocol::failed(&Value::Null, &failure.to_string())),
    }
}

/// What a request is judged by, and where messages wait.
#[derive(Clone)]
struct Desk {
    bound: SocketAddr,
    turns: SyncSender<Turn>,
}

fn router(bound: SocketAddr, turns: SyncSender<Turn>) -> Router {
    // Other methods get 405: there is no stream to open, and no session to end.
    Router::new().route("/mcp", post(take)).with_state(Desk { bound, turns })
}

async fn take(State(desk): State<Desk>, request: Request) -> Response {
    judged(desk, request).await.unwrap_or_else(|refusal| refusal)
}

async fn judged(desk: Desk, request: Request) -> Result<Response, Response> {
    let headers = request.headers();
    addressed(headers, desk.bound, "").map_err(|(status, _)| refuse(status, ELSEWHERE))?;
    let who = holder(headers).ok_or_else(unknown)?;
    fits(headers).map_err(|(status, why)| refuse(status, why))?;
    let badge = request.extensions().get::<ConnectionHandle>().cloned();
    let message = body(request.into_body()).await?;
    let (answer, answered) = oneshot::channel();
    desk.turns.try_send(Turn { who, message, answer }).map_err(|error| match error {
        TrySendError::Full(_) => {
            refuse(StatusCode::SERVICE_UNAVAILABLE, "Kai is busy. Try again in a moment.")
        }
        TrySendError::Disconnected(_) => refuse(StatusCode::SERVICE_UNAVAILABLE, "Kai is shutting down."),
    })?;
    let answer =
        answered.await.map_err(|_| refuse(StatusCode::SERVICE_UNAVAILABLE, "Kai is shutting down."))?;
    if let (Some(badge), Answer::Nothing | Answer::Message(_)) = (badge, &answer) {
        badge.is_known(true);
    }
    match answer {
        Answer::Stranger => Err(unknown()),
        Answer::Nothing => Ok(StatusCode::ACCEPTED.into_response()),
        Answer::Message(message) => Ok(as_json(StatusCode::OK, &message)),
    }
}

const ELSEWHERE: &str = "Kai answers programs on this machine only, and no web pages.";

/// Whoever holds the token that a request carries. Only its hash goes further.
fn holder(headers: &HeaderMap) -> Option<Who> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (scheme, token) = given.next()?.to_str().ok()?.split_once(' ')?;
    let is_only = given.next().is_none() && scheme.eq_ignore_ascii_case("bearer");
    is_only.then(|| Who::Holder(hex::encode(&Sha256::digest(token.trim()))))
}

fn unknown() -> Response {
    let why = "A token is missing or not known. Kai's user makes one with: kai mcp guests token NAME";
    let mut response = refuse(StatusCode::UNAUTHORIZED, why);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    response
}

/// Checks the kind of the body, which also keeps forms of web pages out, and the version, if one is named.
fn fits(headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
    let said = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default().to_owned());
    let kind = said("content-type").unwrap_or_default();
    if kind.split(';').next().map(str::trim) != Some("application/json") {
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "A message must be application/json."));
    }
    match said("mcp-protocol-version") {
        Some(version) if !protocol::is_spoken(&version) => {
            Err((StatusCode::BAD_REQUEST, "Kai does not speak this version of MCP."))
        }
        _ => Ok(()),
    }
}

async fn body(body: Body) -> Result<Vec<u8>, Response> {
    let late = |_| refuse(StatusCode::REQUEST_TIMEOUT, "The message took too long.");
    let read = tokio::time::timeout(BODY_TIME, to_bytes(body, LONGEST)).await.map_err(late)?;
    let too_long = |_| as_json(StatusCode::PAYLOAD_TOO_LARGE, &protocol::too_long());
    read.map(|bytes| bytes.to_vec()).map_err(too_long)
}

fn refuse(status: StatusCode, why: &str) -> Response {
    as_json(status, &json!({"error": why}))
}

fn as_json(status: StatusCode, value: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_one_bearer_token_counts() {
        let named = |pairs| holder(&headers(pairs));
        let hash = |token: &str| Some(Who::Holder(hex::encode(&Sha256::digest(token))));
        assert_eq!(named(&[("authorization", "Bearer abc")]), hash("abc"));
        assert_eq!(named(&[("authorization", "bearer abc")]), hash("abc"));
        for pairs in [
            &[][..],
            &[("authorization", "Basic abc")],
            &[("authorization", "abc")],
            &[("authorization", "")],
        ] {
            assert_eq!(named(pairs), None, "{pairs:?}");
        }
        let mut two = headers(&[("authorization", "Bearer a")]);
        two.append("authorization", "Bearer b".parse().unwrap());
        assert_eq!(holder(&two), None);
    }

    #[test]
    fn a_body_of_another_kind_or_version_is_refused() {
        let json = ("content-type", "application/json; charset=utf-8");
        for (pairs, expected) in [
            (vec![json], None),
            (vec![json, ("mcp-protocol-version", "2025-06-18")], None),
            (vec![json, ("mcp-protocol-version", "2026-07-28")], Some(StatusCode::BAD_REQUEST)),
            (vec![], Some(StatusCode::UNSUPPORTED_MEDIA_TYPE)),
            (vec![("content-type", "text/plain")], Some(StatusCode::UNSUPPORTED_MEDIA_TYPE)),
            (
                vec![("content-type", "application/x-www-form-urlencoded")],
                Some(StatusCode::UNSUPPORTED_MEDIA_TYPE),
            ),
        ] {
            assert_eq!(fits(&headers(&pairs)).err().map(|(status, _)| status), expected, "{pairs:?}");
        }
    }
}
