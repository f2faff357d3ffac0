//! Signing in: a one-time link is exchanged for a session. The store holds only the hashes of both.

use std::net::{IpAddr, Ipv4Addr};

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use kai_assistant::db::DbError;
use kai_assistant::home::HomeId;
use rusqlite::{Transaction, params};

use super::page;
use super::peer::{self, Ends};
use super::state::Web;
use crate::app::sessions::{SESSION_LIFE, Session, Token, is_for_own_user, redeem};
use crate::failure::Failure;
use crate::machine;
use crate::places::Peer;

/// Is this a path on our own page? Anything else could turn a sign-in link into a redirect to another site.
fn in_site(path: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_#".contains(c);
    path.starts_with('/') && !path.starts_with("//") && path.chars().all(plain)
}

/// The name of the session cookie. It differs per home: cookies are shared between ports, so two Kais on one machine
/// would otherwise sign each other out.
fn cookie_name(home: &HomeId) -> String {
    format!("kai_session_{}", home.as_str())
}

/// The session token from the request's cookies, if there is one.
pub(super) fn cookie(home: &HomeId, headers: &HeaderMap) -> Option<Token> {
    let name = cookie_name(home);
    let pairs = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = pairs.flat_map(|pairs| pairs.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| Token(value.to_owned()))
}

/// Exchanges an unused link for a session. This is the only GET that changes something.
pub(super) async fn login(
    State(web): State<Web>,
    Extension(session): Extension<Option<Session>>,
    Extension(ends): Extension<Option<Ends>>,
    method: Method,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    if method == Method::HEAD || prefetch(&headers) {
        // A program is only looking ahead; the link must stay valid for the user.
        return StatusCode::NO_CONTENT.into_response();
    }
    // The token consists of letters, digits and hyphens, so the query needs no decoding.
    let query = query.unwrap_or_default();
    let token = query.split('&').find_map(|field| field.strip_prefix("token=")).unwrap_or_default();
    let who = tokio::task::spawn_blocking(move || who(ends)).await.unwrap_or(UNKNOWN);
    if !web.attempts.begin(who, web.app.clock.now()) {
        return page::too_many_links();
    }
    let entered = enter(&web, Token::of_link(token), session.is_some(), ends).await;
    if matches!(entered, Ok(SignIn::At { .. })) {
        web.attempts.succeeded(who);
    }
    match entered {
        Ok(SignIn::At { path, cookie: Some(cookie) }) => {
            ([(header::SET_COOKIE, cookie)], Redirect::to(&path)).into_response()
        }
        Ok(SignIn::At { path, cookie: None }) => Redirect::to(&path).into_response(),
        // A browser that is signed in already needs no link.
        Ok(_) if session.is_some() => Redirect::to("/").into_response(),
        Ok(SignIn::Stranger) => page::strangers_link(&web.app.home),
        Ok(SignIn::Not) => page::used_link(&web.app.home),
        Err(failure) => page::trouble(failure.message),
    }
}

/// The result of using a link.
enum SignIn {
    /// Signed in. The cookie is only set for a browser that was not signed in already.
    At { path: String, cookie: Option<HeaderValue> },
    /// The link is valid, but not for this user of the machine. It stays valid for our own user.
    Stranger,
    /// The link is unknown, used or expired.
    Not,
}

async fn enter(web: &Web, link: Token, known: bool, ends: Option<Ends>) -> Result<SignIn, Failure> {
    let (session, now, asked) = (Token::random()?, web.app.clock.now(), link.clone());
    let own = web.app.db.read(move |tx| is_for_own_user(tx, &asked, now)).await?;
    if own && !tokio::task::spawn_blocking(move || is_own_user(ends)).await.unwrap_or(false) {
        return Ok(SignIn::Stranger);
    }
    let fresh = session.clone();
    let wanted = move |tx: &Transaction<'_>| redeem(tx, &link, (!known).then_some(&fresh), now);
    let Some(path) = web.app.db.write(wanted).await? else { return Ok(SignIn::Not) };
    let path = if in_site(&path) { path } else { "/".to_owned() };
    let cookie = if known { None } else { set_cookie(web, &session.0, SESSION_LIFE.as_secs()) };
    Ok(SignIn::At { path, cookie })
}

/// A peer of which not even the address is known.
const UNKNOWN: Peer = Peer::At(IpAddr::V4(Ipv4Addr::UNSPECIFIED));

/// Who tries a link: a user of this machine if the system says so, else an address.
fn who(ends: Option<Ends>) -> Peer {
    let Some(ends) = ends else { return UNKNOWN };
    let uid = ends.theirs.ip().to_canonical().is_loopback().then(|| peer::uid(ends).ok().flatten()).flatten();
    uid.map_or_else(|| Peer::at(ends.theirs.ip()), Peer::User)
}

/// Does the other end of the connection belong to the user who runs Kai?
///
/// If the system does not say, the answer is no, and the page tells the user to type `kai link`. Android does not let
/// apps read the socket tables, and a browser there is another app and so another user by design. But Android also
/// hides the arguments of one app's programs from other apps, and those arguments are why this check exists; so on
/// Android the link alone is enough.
fn is_own_user(ends: Option<Ends>) -> bool {
    if machine::android::is_here() {
        return true;
    }
    match ends.map(peer::uid).transpose() {
        Ok(uid) => uid.flatten() == Some(rustix::process::geteuid().as_raw()),
        Err(error) => {
            tracing::warn!(%error, "the user behind a connection cannot be told");
            false
        }
    }
}

fn set_cookie(web: &Web, value: &str, seconds: i64) -> Option<HeaderValue> {
    let name = cookie_name(&web.app.home_id);
    let cookie = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict");
    HeaderValue::from_str(&cookie).ok()
}

/// Does the browser only prefetch or preview the link?
pub(super) fn prefetch(headers: &HeaderMap) -> bool {
    ["sec-purpose", "purpose", "x-purpose", "x-moz"].iter().any(|name| {
        let value = headers.get(*name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        ["prefetch", "prerender", "preview"].iter().any(|ahead| value.contains(ahead))
    })
}

pub(super) async fn sign_out(
    State(web): State<Web>,
    Extension(session): Extension<Option<Session>>,
) -> Response {
    let Some(session) = session else { return Redirect::to("/").into_response() };
    let hash = session.token.hash();
    let ended = web.app.db.write(move |tx| {
        tx.execute("DELETE FROM sessions WHERE hash = ?1", params![hash])?;
        Ok::<_, DbError>(())
    });
    match ended.await {
        Ok(()) => {
            let cookie = set_cookie(&web, "", 0).unwrap_or(HeaderValue::from_static(""));
            ([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response()
        }
        Err(error) => page::trouble(error.said()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_our_own_page_only() {
        for (path, expected) in [
            ("/", true),
            ("/c/7", true),
            ("/#draft-7", true),
            ("//evil.example", false),
            ("/\\evil.example", false),
            ("https://evil.example/", false),
            ("evil.example", false),
            ("/c/7\r\nSet-Cookie: a=b", false),
            ("/c/%2f%2fevil.example", false),
            ("/login?token=1", false),
            ("", false),
        ] {
            assert_eq!(in_site(path), expected, "{path:?}");
        }
    }
}
