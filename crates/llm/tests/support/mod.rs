//! A server of a few lines on loopback that sends exactly the bytes it is told, in the pieces it is told.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kai_llm::{Config, Format, Http, Key, Limits, Message, Model, ModelError, Reply, Request, connect};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;

/// What the server does for one request.
#[derive(Clone)]
pub(crate) enum Do {
    Send(Vec<u8>),
    Pause(Duration),
    /// Closes the connection.
    Close,
    /// Waits until the other side closes, and notes it.
    AwaitEnd,
}

/// One request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) connection: usize,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

#[derive(Clone, Default)]
pub(crate) struct Log {
    pub(crate) seen: Arc<Mutex<Vec<Seen>>>,
    pub(crate) ended: Arc<tokio::sync::Notify>,
}

impl Log {
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

/// Answers the n-th request with the n-th script, and the last for ever. Its address and what it saw.
pub(crate) async fn serve(scripts: Vec<Vec<Do>>) -> (String, Log) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let log = Log::default();
    let kept = log.clone();
    tokio::spawn(async move {
        for connection in 0.. {
            let Ok((stream, _)) = listener.accept().await else { return };
            tokio::spawn(talk(stream, connection, scripts.clone(), kept.clone()));
        }
    });
    (address, log)
}

pub(crate) async fn talk<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    connection: usize,
    scripts: Vec<Vec<Do>>,
    log: Log,
) {
    while let Some((head, body)) = request(&mut stream).await {
        let number = {
            let mut seen = log.seen.lock().unwrap();
            seen.push(Seen { connection, head, body });
            seen.len() - 1
        };
        for step in &scripts[number.min(scripts.len() - 1)] {
            match step {
                Do::Send(bytes) => {
                    if stream.write_all(bytes).await.is_err() || stream.flush().await.is_err() {
                        return;
                    }
                }
                Do::Pause(duration) => tokio::time::sleep(*duration).await,
                Do::Close => return,
                Do::AwaitEnd => {
                    let mut byte = [0];
                    if !matches!(stream.read(&mut byte).await, Ok(1)) {
                        log.ended.notify_one();
                    }
                    return;
                }
            }
        }
    }
}

async fn request<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
        if !head.starts_with(b"P") && !head.starts_with(b"G") {
            // A handshake, perhaps; a plain server would answer that this is no HTTP.
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await.ok()?;
            return None;
        }
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
    let length = length.parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((head, body))
}

/// A whole HTTP answer.
pub(crate) fn answer(status: &str, content_type: &str, body: &str) -> Vec<Do> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    vec![Do::Send(head.into_bytes())]
}

/// A stream of events, each piece in a chunk of its own.
pub(crate) fn stream(pieces: &[&str]) -> Vec<Do> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = |piece: &&str| Do::Send(format!("{:x}\r\n{piece}\r\n", piece.len()).into_bytes());
    [Do::Send(head.as_bytes().to_vec())].into_iter().chain(pieces.iter().map(chunk)).collect()
}

pub(crate) fn end_of_stream() -> Do {
    Do::Send(b"0\r\n\r\n".to_vec())
}

pub(crate) const HELLO: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n\
                         data: {\"choices\":[{\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\n\
                         data: [DONE]\n\n";

/// A stream that says hello and ends as it should.
pub(crate) fn hello() -> Vec<Do> {
    [stream(&[HELLO]), vec![end_of_stream()]].concat()
}

pub(crate) const KEY: &str = "sk-very-secret";

/// Short limits, so that no test waits long.
pub(crate) const LIMITS: Limits = Limits {
    connect: Duration::from_secs(2),
    first_byte: Duration::from_millis(400),
    idle: Duration::from_millis(200),
    total: Duration::from_secs(3),
    max_bytes: 100_000,
};

pub(crate) fn config(base_url: &str) -> Config {
    Config {
        format: Format::OpenAi,
        base_url: base_url.to_owned(),
        model: "some-model".to_owned(),
        key: Some(Key::new(KEY)),
        window: 8192,
        stream: true,
    }
}

pub(crate) fn question() -> Request {
    let messages = vec![Message::user("Hello?".to_owned())];
    Request { system: "Be brief.".to_owned(), messages, tools: Vec::new() }
}

pub(crate) fn model(config: &Config) -> Box<dyn Model> {
    connect(config, &Http::new(LIMITS)).unwrap()
}

pub(crate) async fn ask(config: &Config) -> Result<Reply, ModelError> {
    model(config).reply(&question(), &|_| {}).await
}
