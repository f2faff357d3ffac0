//! Where the browser goes after a sign-in: a listener on this machine that exists only while the sign-in runs.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use kai_words::said;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use url::Url;

const PATH: &str = "/callback";
/// The most bytes of a request's first line. A browser sends more after it, which we do not need.
const LONGEST_LINE: usize = 16 * 1024;
/// How long a browser may take to say what it wants. It opens connections in advance that it never uses.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many connections are held at once.
const AT_ONCE: usize = 32;

/// Waits for the browser to come back from the server's sign-in page.
pub(super) struct Listener {
    listener: TcpListener,
    address: String,
}

/// What the server's sign-in page sent back.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Code {
        code: String,
        issuer: Option<String>,
    },
    /// The user or the server refused.
    Refused(String),
}

impl Listener {
    pub(super) async fn bind() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = format!("http://{}{PATH}", listener.local_addr()?);
        Ok(Self { listener, address })
    }

    /// Where the browser is sent.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Waits for the answer that carries our `state`. Whoever comes with another is sent away.
    pub(super) async fn answer(self, state: &str) -> Answer {
        let mut visits = JoinSet::new();
        loop {
            tokio::select! {
                Ok((stream, _)) = self.listener.accept(), if visits.len() < AT_ONCE => {
                    visits.spawn(visit(stream, state.to_owned()));
                }
                Some(visit) = visits.join_next() => {
                    if let Ok(Some(answer)) = visit {
                        return answer;
                    }
                }
            }
        }
    }
}

/// Reads one request and answers it.
async fn visit(mut stream: TcpStream, state: String) -> Option<Answer> {
    let line = tokio::time::timeout(PATIENCE, first_line(&mut stream)).await.ok()?.ok()?;
    let answer = answer(&line, &state);
    let page = if answer.is_some() { page() } else { NOT_FOUND.to_owned() };
    // What counts is the answer, even if the browser is gone.
    let _ = stream.write_all(page.as_bytes()).await;
    let _ = stream.shutdown().await;
    answer
}

async fn first_line(stream: &mut TcpStream) -> io::Result<String> {
    let mut line = Vec::new();
    let mut chunk = [0; 1024];
    while !line.contains(&b'\n') && line.len() < LONGEST_LINE {
        match stream.read(&mut chunk).await? {
            0 => break,
            read => line.extend_from_slice(&chunk[..read]),
        }
    }
    let text = String::from_utf8_lossy(&line);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

const NOT_FOUND: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

fn page() -> String {
    let text = said::mcp_close_window();
    let body = format!("<!doctype html><meta charset=utf-8><title>Kai</title><p>{text}</p>\n");
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nContent-Security-Policy: default-src 'none'\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

/// What a request's first line answers, if it is one of our sign-in.
fn answer(line: &str, state: &str) -> Option<Answer> {
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    let url = Url::parse("http://localhost").ok()?.join(target).ok()?;
    let get =
        |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    if url.path() != PATH || get("state").as_deref() != Some(state) {
        return None;
    }
    match (get("error"), get("code")) {
        (Some(error), _) => Some(Answer::Refused(get("error_description").unwrap_or(error))),
        (None, Some(code)) => Some(Answer::Code { code, issuer: get("iss") }),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_with_our_state_counts() {
        let code = |code: &str, issuer: Option<&str>| {
            Some(Answer::Code { code: code.to_owned(), issuer: issuer.map(str::to_owned) })
        };
        for (line, expected) in [
            ("GET /callback?code=a%20b&state=s HTTP/1.1", code("a b", None)),
            ("GET /callback?code=a&state=s&iss=https%3A%2F%2Fx HTTP/1.1", code("a", Some("https://x"))),
            (
                "GET /callback?error=access_denied&state=s HTTP/1.1",
                Some(Answer::Refused("access_denied".into())),
            ),
            (
                "GET /callback?error=x&error_description=No.&code=a&state=s HTTP/1.1",
                Some(Answer::Refused("No.".into())),
            ),
            ("GET /callback?code=a&state=other HTTP/1.1", None),
            ("GET /callback?code=a HTTP/1.1", None),
            ("GET /callback?state=s HTTP/1.1", None),
            ("GET /?code=a&state=s HTTP/1.1", None),
            ("GET /favicon.ico HTTP/1.1", None),
            ("POST /callback?code=a&state=s HTTP/1.1", None),
            ("", None),
        ] {
            assert_eq!(answer(line, "s"), expected, "{line}");
        }
    }
}
