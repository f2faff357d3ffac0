//! Signing in: a one-time link becomes a session. The store knows only hashes of both.

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, http::HeaderValue};
use jiff::{SignedDuration, Timestamp};
use kai_assistant::db::DbError;
use kai_assistant::hex;
use kai_assistant::home::HomeId;
use kai_assistant::settings::{self, Values};
use rusqlite::{OptionalExtension, Transaction, params};
use sha2::{Digest, Sha256};

use super::peer::{self, Ends};
use super::{Web, page};
use crate::call::SignInLink;
use crate::daemon;
use crate::failure::Failure;
use crate::wire::App;

/// A link is for now, not for the bookmark list.
const LINK_LIFE: SignedDuration = SignedDuration::from_hours(1);
/// A link that a tap makes is opened by a program at once.
const TAP_LIFE: SignedDuration = SignedDuration::from_mins(1);
const SESSION_LIFE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// 32 random bytes in hexadecimal: a link's token or a session's cookie.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

impl Token {
    fn random() -> Result<Self, Failure> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .map_err(|e| Failure::failed(format!("This machine gave no random numbers: {e}.")))?;
        Ok(Self(hex::encode(&bytes)))
    }

    fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }
}

/// A browser that has signed in.
#[derive(Clone)]
pub(crate) struct Session {
    token: Token,
}

impl Session {
    pub(super) fn token(&self) -> Token {
        self.token.clone()
    }

    /// Known only to pages served to this session.
    pub(crate) fn csrf(&self) -> String {
        hex::encode(&Sha256::digest(format!("csrf {}", self.token.0)))
    }

    /// Compared by hash, so that timing tells nothing.
    pub(super) fn csrf_is(&self, given: &str) -> bool {
        Sha256::digest(given) == Sha256::digest(self.csrf())
    }
}

/// A link that signs one browser in, once.
pub(crate) async fn fresh_link(app: &App) -> Result<SignInLink, Failure> {
    made(app, Terms { life: LINK_LIFE, own_user: false, leads_to: "/".to_owned() }).await
}

/// A link for a program of this machine to open right now, and the path it leads to. The program's arguments can be read
/// by every user of the machine, so it works for our own user alone.
pub(crate) async fn own_link(app: &App, leads_to: String) -> Result<SignInLink, Failure> {
    made(app, Terms { life: TAP_LIFE, own_user: true, leads_to }).await
}

/// How long a link works, for whom, and which page it opens.
struct Terms {
    life: SignedDuration,
    own_user: bool,
    leads_to: String,
}

async fn made(app: &App, terms: Terms) -> Result<SignInLink, Failure> {
    let Terms { life, own_user, leads_to } = terms;
    let token = Token::random()?;
    let expires = app.clock.now().saturating_add(life).map_err(|e| Failure::failed(e.to_string()))?;
    let hash = token.hash();
    let page = app
        .db
        .write(move |tx| {
            let sql =
                "INSERT INTO signin_links (hash, expires_at, own_user, leads_to) VALUES (?1, ?2, ?3, ?4)";
            tx.execute(sql, params![hash, expires.as_millisecond(), own_user, leads_to])?;
            daemon::last_page(tx)
        })
        .await?;
    Ok(SignInLink {
        url: format!("{page}/login?token={}", token.0),
        expires_at: expires.as_millisecond(),
        daemon_running: app.daemon.is_some(),
    })
}

/// Is this a path of our own page? Anything else would let a link lead to another site.
fn in_site(path: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_#".contains(c);
    path.starts_with('/') && !path.starts_with("//") && path.chars().all(plain)
}

/// Is it a living link that only our own user may use?
fn is_for_own_user(tx: &Transaction<'_>, link: &Token, now: Timestamp) -> Result<bool, DbError> {
    let sql = "SELECT 1 FROM signin_links WHERE hash = ?1 AND expires_at > ?2 AND own_user = 1";
    Ok(tx.prepare_cached(sql)?.exists(params![link.hash(), now.as_millisecond()])?)
}

/// Takes the link and makes the session in one step: of two that come with it, one gets in. A browser that is signed in
/// already needs no session. Returns where the link leads.
fn redeem(
    tx: &Transaction<'_>,
    link: &Token,
    session: Option<&Token>,
    now: Timestamp,
) -> Result<Option<String>, DbError> {
    let sql = "DELETE FROM signin_links WHERE hash = ?1 AND expires_at > ?2 RETURNING leads_to";
    let taken = tx.query_row(sql, params![link.hash(), now.as_millisecond()], |row| row.get(0)).optional()?;
    let Some(leads_to) = taken else { return Ok(None) };
    if let Some(session) = session {
        let expires = now.saturating_add(SESSION_LIFE).unwrap_or(now).as_millisecond();
        let sql = "INSERT INTO sessions (hash, expires_at) VALUES (?1, ?2)";
        tx.execute(sql, params![session.hash(), expires])?;
    }
    Ok(Some(leads_to))
}

/// The settings, and the session behind a cookie if it is a living one.
pub(super) fn recognise(
    tx: &Transaction<'_>,
    cookie: Option<Token>,
    now: Timestamp,
) -> Result<(Values, Option<Session>), DbError> {
    let mut living = tx.prepare_cached("SELECT 1 FROM sessions WHERE hash = ?1 AND expires_at > ?2")?;
    let session = match cookie {
        Some(token) if living.exists(params![token.hash(), now.as_millisecond()])? => Some(Session { token }),
        _ => None,
    };
    Ok((settings::load(tx)?, session))
}

/// Ends every session and every link; returns how many of each.
pub(crate) fn revoke_all(tx: &Transaction<'_>) -> Result<(usize, usize), DbError> {
    Ok((tx.execute("DELETE FROM sessions", [])?, tx.execute("DELETE FROM signin_links", [])?))
}

/// How many browsers are signed in, and how many links wait to be used.
pub(super) fn living(tx: &Transaction<'_>, now: Timestamp) -> Result<(i64, i64), DbError> {
    let sql = "SELECT (SELECT count(*) FROM sessions WHERE expires_at > ?1),
                      (SELECT count(*) FROM signin_links WHERE expires_at > ?1)";
    Ok(tx.query_row(sql, [now.as_millisecond()], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

/// Forgets what has ended.
pub(crate) fn sweep(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    let now = now.as_millisecond();
    tx.execute("DELETE FROM sessions WHERE expires_at <= ?1", [now])?;
    tx.execute("DELETE FROM signin_links WHERE expires_at <= ?1", [now])?;
    Ok(())
}

/// Cookies know no ports, so each home has a name of its own: two Kais do not sign each other out.
fn cookie_name(home: &HomeId) -> String {
    format!("kai_session_{}", home.as_str())
}

pub(super) fn cookie(home: &HomeId, headers: &HeaderMap) -> Option<Token> {
    let name = cookie_name(home);
    let pairs = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = pairs.flat_map(|pairs| pairs.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| Token(value.to_owned()))
}

/// The one GET that changes something: it exchanges an unused token for a session.
pub(super) async fn login(
    State(web): State<Web>,
    Extension(session): Extension<Option<Session>>,
    Extension(ends): Extension<Option<Ends>>,
    method: Method,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    if method == Method::HEAD || prefetch(&headers) {
        // Somebody looks ahead; the link stays good for the person.
        return StatusCode::NO_CONTENT.into_response();
    }
    // The token is hexadecimal, so nothing needs decoding.
    let query = query.unwrap_or_default();
    let token = query.split('&').find_map(|field| field.strip_prefix("token=")).unwrap_or_default();
    let entered = enter(&web, Token(token.to_owned()), session.is_some(), ends).await;
    match entered {
        Ok(Entered::At { path, cookie: Some(cookie) }) => {
            ([(header::SET_COOKIE, cookie)], Redirect::to(&path)).into_response()
        }
        Ok(Entered::At { path, cookie: None }) => Redirect::to(&path).into_response(),
        // Whoever is signed in needs no link, and knows the way from there.
        Ok(_) if session.is_some() => Redirect::to("/").into_response(),
        Ok(Entered::Stranger) => page::strangers_link(&web.app.home),
        Ok(Entered::Not) => page::used_link(&web.app.home),
        Err(failure) => page::trouble(&failure.message),
    }
}

/// What a link led to.
enum Entered {
    /// The cookie is for a browser that was not signed in.
    At {
        path: String,
        cookie: Option<HeaderValue>,
    },
    /// It works, but not for this user. It stays good for ours.
    Stranger,
    Not,
}

async fn enter(web: &Web, link: Token, known: bool, ends: Option<Ends>) -> Result<Entered, Failure> {
    let (session, now, asked) = (Token::random()?, web.app.clock.now(), link.clone());
    let own = web.app.db.read(move |tx| is_for_own_user(tx, &asked, now)).await?;
    if own && !tokio::task::spawn_blocking(move || is_own_user(ends)).await.unwrap_or(false) {
        return Ok(Entered::Stranger);
    }
    let fresh = session.clone();
    let wanted = move |tx: &Transaction<'_>| redeem(tx, &link, (!known).then_some(&fresh), now);
    let Some(path) = web.app.db.write(wanted).await? else { return Ok(Entered::Not) };
    let path = if in_site(&path) { path } else { "/".to_owned() };
    let cookie = if known { None } else { set_cookie(web, &session.0, SESSION_LIFE.as_secs()) };
    Ok(Entered::At { path, cookie })
}

/// Does our own user hold the other end of the connection?
///
/// Where the system does not tell, the answer is no: the page then says to type `kai link`. Android does not tell apps
/// about sockets, and a browser there is another app and so another user by design. But neither does it show one app the
/// arguments of another's programs, which is what this check is for, so there the link alone is enough.
fn is_own_user(ends: Option<Ends>) -> bool {
    if cfg!(target_os = "android") {
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

fn prefetch(headers: &HeaderMap) -> bool {
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
        Err(error) => page::trouble(&error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kai_assistant::clock::ManualClock;

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

    #[tokio::test]
    async fn a_link_for_a_tap_lives_a_minute_and_works_once() {
        let clock = Arc::new(ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
        let (app, _folder) = App::for_tests(clock.clone());
        let token = |link: SignInLink| Token(link.url.split_once("token=").unwrap().1.to_owned());
        let redeemed = |link: &Token| {
            let (link, now, db) = (link.clone(), app.clock.now(), app.db.clone());
            async move {
                let own = {
                    let link = link.clone();
                    db.read(move |tx| is_for_own_user(tx, &link, now)).await.unwrap()
                };
                let path = db
                    .write(move |tx| redeem(tx, &link, Some(&Token::random().unwrap()), now))
                    .await
                    .unwrap();
                (own, path)
            }
        };
        let link = token(own_link(&app, "/c/7".to_owned()).await.unwrap());
        clock.advance(SignedDuration::from_secs(59));
        assert_eq!(redeemed(&link).await, (true, Some("/c/7".to_owned())));
        assert_eq!(redeemed(&link).await, (false, None), "once");
        let link = token(own_link(&app, "/c/7".to_owned()).await.unwrap());
        clock.advance(SignedDuration::from_secs(60));
        assert_eq!(redeemed(&link).await, (false, None), "a minute has passed");
        let link = token(fresh_link(&app).await.unwrap());
        clock.advance(SignedDuration::from_mins(59));
        assert_eq!(
            redeemed(&link).await,
            (false, Some("/".to_owned())),
            "one that a person types lives longer"
        );
    }
}
