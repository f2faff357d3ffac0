//! Sign-in links and sessions. The store only holds their hashes and when they expire.

use jiff::{SignedDuration, Timestamp};
use kai_assistant::db::{DbError, Migration};
use kai_assistant::hex;
use kai_assistant::settings::{self, ALLOWED_HOSTS, Values};
use rusqlite::{OptionalExtension, Transaction, params};
use sha2::{Digest, Sha256};

use super::{App, Running, facts};
use crate::call::signin::SignInLink;
use crate::failure::Failure;

pub(crate) const MIGRATIONS: [Migration; 2] = [
    Migration { name: "signin/1", sql: include_str!("../../migrations/signin.sql") },
    Migration { name: "signin/2", sql: include_str!("../../migrations/signin2.sql") },
];

/// Short, because a link is meant to be opened now, not bookmarked.
const LINK_LIFE: SignedDuration = SignedDuration::from_hours(1);

/// Shorter still: after a tap, a program opens the link at once.
const TAP_LIFE: SignedDuration = SignedDuration::from_mins(1);

pub(crate) const SESSION_LIFE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The symbols of a link's token: digits and capitals without those that look like another (I, L, O) or make words (U).
const SYMBOLS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// How many symbols a link's token has, in groups of four.
const LINK_SYMBOLS: usize = 12;

/// The token of a link, or the cookie of a session.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(pub(crate) String);

impl Token {
    /// The cookie of a session: 32 random bytes in hexadecimal, because it is valid for a month.
    pub(crate) fn random() -> Result<Self, Failure> {
        Ok(Self(hex::encode(&random::<32>()?)))
    }

    /// The token of a link, short enough to be read aloud and typed: `7K3M-9QXD-2VFT`.
    ///
    /// Twelve symbols of five bits are 60 bits. A link works once and for an hour ([`LINK_LIFE`]), and a peer can try 20
    /// wrong ones in a minute (`web/attempts.rs`). So somebody who guesses for the whole hour has 1,200 attempts at 10^18
    /// tokens. Even with 65,536 peers (an IPv6 /48), it is 79 million attempts: for each link that is valid meanwhile, they
    /// succeed with a probability below 10^-10. Guessing without asking would need the hash, which is in the encrypted
    /// store; whoever can read that needs no link.
    fn short() -> Result<Self, Failure> {
        let bytes = random::<LINK_SYMBOLS>()?;
        // 32 symbols divide 256 evenly, so each is equally likely.
        Ok(Self::grouped(bytes.iter().map(|byte| char::from(SYMBOLS[usize::from(byte % 32)]))))
    }

    /// The token of a link as somebody typed it: in any case, with or without hyphens, with letters for the digits that
    /// they look like. Tokens of older versions are longer, and valid as they are.
    pub(crate) fn of_link(typed: &str) -> Self {
        let meant = |c: char| match c.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            other => other,
        };
        let symbols: Vec<char> = typed.chars().filter(|c| *c != '-').map(meant).collect();
        if symbols.len() == LINK_SYMBOLS { Self::grouped(symbols) } else { Self(typed.to_owned()) }
    }

    fn grouped(symbols: impl IntoIterator<Item = char>) -> Self {
        let mut text = String::new();
        for (at, symbol) in symbols.into_iter().enumerate() {
            if at > 0 && at % 4 == 0 {
                text.push('-');
            }
            text.push(symbol);
        }
        Self(text)
    }

    pub(crate) fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }
}

fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|e| Failure::failed(format!("This machine could not provide random numbers: {e}.")))?;
    Ok(bytes)
}

/// A browser that has signed in.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) token: Token,
}

impl Session {
    pub(crate) fn token(&self) -> Token {
        self.token.clone()
    }

    /// The CSRF token, which only pages served to this session contain.
    pub(crate) fn csrf(&self) -> String {
        hex::encode(&Sha256::digest(format!("csrf {}", self.token.0)))
    }

    /// Compares hashes, so that timing reveals nothing.
    pub(crate) fn csrf_is(&self, given: &str) -> bool {
        Sha256::digest(given) == Sha256::digest(self.csrf())
    }
}

/// Creates a link that signs in one browser, once.
pub(crate) async fn fresh_link(app: &App) -> Result<SignInLink, Failure> {
    made(app, Terms { life: LINK_LIFE, own_user: false, leads_to: "/".to_owned() }).await
}

/// Creates a link for a program on this machine to open at once, leading to this path. Every user of the machine can
/// read the program's arguments, so the link only works for our own user.
pub(crate) async fn own_link(app: &App, leads_to: String) -> Result<SignInLink, Failure> {
    made(app, Terms { life: TAP_LIFE, own_user: true, leads_to }).await
}

/// How long a link works, for whom, and which page it opens.
struct Terms {
    life: SignedDuration,
    own_user: bool,
    leads_to: String,
}

/// Creates and stores a link.
async fn made(app: &App, terms: Terms) -> Result<SignInLink, Failure> {
    let Terms { life, own_user, leads_to } = terms;
    let token = Token::short()?;
    let expires = app.clock.now().saturating_add(life).map_err(|e| Failure::failed(e.to_string()))?;
    let hash = token.hash();
    let (page, allowed) = app
        .db
        .write(move |tx| {
            let sql =
                "INSERT INTO signin_links (hash, expires_at, own_user, leads_to) VALUES (?1, ?2, ?3, ?4)";
            tx.execute(sql, params![hash, expires.as_millisecond(), own_user, leads_to])?;
            Ok::<_, DbError>((facts::last_page(tx)?, settings::load(tx)?.of(&ALLOWED_HOSTS)))
        })
        .await?;
    let to = |page: String| format!("{page}/login?token={}", token.0);
    let elsewhere = app.daemon.as_ref().and_then(|running| from_elsewhere(running, &allowed));
    Ok(SignInLink {
        elsewhere: elsewhere.filter(|_| !own_user).map(&to),
        url: to(page),
        expires_at: expires.as_millisecond(),
        daemon_running: app.daemon.is_some(),
    })
}

/// The page's address for other devices: the one it is bound to, or the first name that it is allowed to have. `None` if
/// other devices cannot reach it, or Kai would not answer them under any name.
fn from_elsewhere(running: &Running, allowed: &str) -> Option<String> {
    if !running.is_open() {
        return None;
    }
    if !running.bound.ip().is_unspecified() {
        return Some(running.address.clone());
    }
    let host = allowed.split(',').find(|host| !host.is_empty())?;
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Some(if has_port { format!("http://{host}") } else { format!("http://{host}:{}", running.bound.port()) })
}

/// Whether the link is valid and restricted to our own user.
pub(crate) fn is_for_own_user(tx: &Transaction<'_>, link: &Token, now: Timestamp) -> Result<bool, DbError> {
    let sql = "SELECT 1 FROM signin_links WHERE hash = ?1 AND expires_at > ?2 AND own_user = 1";
    Ok(tx.prepare_cached(sql)?.exists(params![link.hash(), now.as_millisecond()])?)
}

/// Deletes the link and creates the session in one transaction, so that only one of two browsers with the same link
/// gets in. A browser that is already signed in needs no session. Returns the path that the link leads to, or `None` if
/// it is not valid.
pub(crate) fn redeem(
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

/// The settings, and the session that belongs to a cookie if it has not expired.
pub(crate) fn recognise(
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

/// Deletes all sessions and links, and returns how many of each.
pub(crate) fn revoke_all(tx: &Transaction<'_>) -> Result<(usize, usize), DbError> {
    Ok((tx.execute("DELETE FROM sessions", [])?, tx.execute("DELETE FROM signin_links", [])?))
}

/// How many browsers are signed in, and how many links are still unused.
pub(crate) fn living(tx: &Transaction<'_>, now: Timestamp) -> Result<(i64, i64), DbError> {
    let sql = "SELECT (SELECT count(*) FROM sessions WHERE expires_at > ?1),
                      (SELECT count(*) FROM signin_links WHERE expires_at > ?1)";
    Ok(tx.query_row(sql, [now.as_millisecond()], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

/// Deletes expired sessions and links.
pub(crate) fn sweep(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    let now = now.as_millisecond();
    tx.execute("DELETE FROM sessions WHERE expires_at <= ?1", [now])?;
    tx.execute("DELETE FROM signin_links WHERE expires_at <= ?1", [now])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kai_assistant::clock::ManualClock;

    use super::*;

    #[test]
    fn a_token_is_short_and_read_however_it_is_typed() {
        let made: Vec<String> = (0..100).map(|_| Token::short().unwrap().0).collect();
        for token in &made {
            let groups: Vec<&str> = token.split('-').collect();
            assert_eq!(groups.iter().map(|group| group.len()).collect::<Vec<_>>(), [4, 4, 4], "{token}");
            assert!(groups.concat().bytes().all(|symbol| SYMBOLS.contains(&symbol)), "{token}");
            assert!(made.iter().filter(|other| *other == token).count() == 1, "{token}");
            assert_eq!(&Token::of_link(token).0, token);
        }
        let link = format!("http://127.0.0.1:8787/login?token={}", made[0]);
        assert!(link.len() < 52, "{link}");
        let older = "0f".repeat(32);
        for (typed, expected) in [
            ("7k3m-9qxd-2vft", "7K3M-9QXD-2VFT"),
            ("7K3M9QXD2VFT", "7K3M-9QXD-2VFT"),
            ("oIl0-9qxd-2vft", "0110-9QXD-2VFT"),
            (&older, &older),
            ("", ""),
            ("7K3M-9QXD", "7K3M-9QXD"),
        ] {
            assert_eq!(Token::of_link(typed).0, expected, "{typed}");
        }
    }

    #[test]
    fn another_device_gets_an_address_that_it_can_reach() {
        for (bound, allowed, expected) in [
            ("127.0.0.1:8787", "kai.lan", None),
            ("192.168.1.20:8787", "", Some("http://192.168.1.20:8787")),
            ("0.0.0.0:8787", "", None),
            ("0.0.0.0:8787", "kai.lan,other.lan", Some("http://kai.lan:8787")),
            ("[::]:8787", "kai.lan:80", Some("http://kai.lan:80")),
        ] {
            let bound = bound.parse().unwrap();
            let running =
                Running { pid: 1, address: format!("http://{bound}"), bound, since: Timestamp::UNIX_EPOCH };
            assert_eq!(from_elsewhere(&running, allowed).as_deref(), expected, "{bound}, {allowed:?}");
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
