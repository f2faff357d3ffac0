//! A model server on loopback that plays a script and records its requests.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};

/// How the server responds to one request.
#[derive(Clone)]
pub enum Act {
    /// Sends these bytes and closes the connection.
    Raw(String),
    /// Sends headers, then nothing until the client disconnects.
    Hang,
    /// Streams pieces; each but the first waits for [`Provider::go_on`].
    Steps(Vec<String>),
    /// Calls this function to choose the response to the request.
    Answers(fn(&Asked) -> Act),
    /// Streams the same piece until the client disconnects or this many bytes were sent.
    Floods(String, u64),
}

impl Act {
    /// A response with this status, content type and body.
    pub fn status(status: &str, kind: &str, body: &str) -> Self {
        let length = body.len();
        Self::Raw(format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ))
    }

    fn stream(events: &[Value]) -> Self {
        let lines: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        Self::status("200 OK", "text/event-stream", &format!("{}data: [DONE]\n\n", lines.concat()))
    }

    /// A streamed answer in `OpenAI`'s format, in two pieces.
    pub fn says(text: &str) -> Self {
        let (a, b) = text.split_at(text.len() / 2);
        let piece = |text: &str| json!({"choices": [{"index": 0, "delta": {"content": text}}]});
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
        let usage = json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}});
        Self::stream(&[piece(a), piece(b), end, usage])
    }

    /// An answer whose pieces wait for [`Provider::go_on`]. Its end counts as one more piece.
    pub fn says_in_steps(pieces: &[&str]) -> Self {
        let piece = |text: &&str| {
            let event = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
            format!("data: {event}\n\n")
        };
        let mut pieces: Vec<String> = pieces.iter().map(piece).collect();
        pieces.push("data: [DONE]\n\n".to_owned());
        Self::Steps(pieces)
    }

    /// A tool call in `OpenAI`'s format.
    pub fn calls(tool: &str, arguments: &Value) -> Self {
        let function = json!({"name": tool, "arguments": arguments.to_string()});
        let call = json!({"index": 0, "id": "call_1", "type": "function", "function": function});
        let piece = json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]});
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
        Self::stream(&[piece, end])
    }

    /// A streamed answer in Anthropic's format.
    pub fn says_as_anthropic(text: &str) -> Self {
        let event = |name: &str, data: Value| format!("event: {name}\ndata: {data}\n\n");
        let usage = json!({"input_tokens": 3, "output_tokens": 1});
        let message =
            json!({"id": "m", "type": "message", "role": "assistant", "content": [], "usage": usage});
        let body = [
            event("message_start", json!({"type": "message_start", "message": message})),
            event(
                "content_block_start",
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            ),
            event(
                "content_block_delta",
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
            ),
            event("content_block_stop", json!({"type": "content_block_stop", "index": 0})),
            event(
                "message_delta",
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}}),
            ),
            event("message_stop", json!({"type": "message_stop"})),
        ];
        Self::status("200 OK", "text/event-stream", &body.concat())
    }
}

const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

/// One recorded request.
#[derive(Clone)]
pub struct Asked {
    pub head: String,
    pub body: Value,
    /// The body as text.
    pub raw: String,
}

/// How long the server, or a test waiting for it, waits for an event.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Default)]
struct State {
    script: Vec<Act>,
    asked: Vec<Asked>,
    hung_up: usize,
    flooded: u64,
    /// Pieces that may still be sent.
    steps: usize,
    /// The path that reports the context window, and the body it returns. All other such paths return 404.
    tells: Option<(&'static str, String)>,
    /// Request lines of the queries for the window.
    told: Vec<String>,
}

/// A handle to the server. Clones share its state.
#[derive(Clone)]
pub struct Provider {
    pub base_url: String,
    state: Arc<Mutex<State>>,
    /// Notified whenever the state changes.
    news: Arc<Condvar>,
}

impl Provider {
    /// Starts a server that plays `script` in order and repeats the last act.
    pub fn start(script: impl IntoIterator<Item = Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State { script: script.into_iter().collect(), ..State::default() }));
        let provider = Self { base_url, state, news: Arc::default() };
        let serving = provider.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let serving = serving.clone();
                std::thread::spawn(move || serving.serve(stream));
            }
        });
        provider
    }

    fn serve(&self, mut stream: TcpStream) {
        let Some(asked) = read_request(&mut stream) else { return };
        let act = {
            let mut state = self.state.lock().unwrap();
            if asks_for_window(&asked.head) {
                let line = asked.head.lines().next().unwrap_or_default().to_owned();
                let here = state.tells.clone().filter(|(path, _)| line.contains(path));
                state.told.push(line);
                drop(state);
                let (status, body) =
                    here.map_or(("404 Not Found", "{}".to_owned()), |(_, body)| ("200 OK", body));
                return self.play(&mut stream, Act::status(status, "application/json", &body));
            }
            state.asked.push(asked.clone());
            self.news.notify_all();
            if state.script.len() > 1 { state.script.remove(0) } else { state.script[0].clone() }
        };
        let act = if let Act::Answers(of) = act { of(&asked) } else { act };
        self.play(&mut stream, act);
    }

    fn play(&self, stream: &mut TcpStream, act: Act) {
        match act {
            Act::Answers(_) => panic!("what answers makes an act that does something"),
            Act::Floods(piece, bytes) => {
                drop(stream.write_all(STREAM.as_bytes()));
                let many = piece.repeat((1 << 20) / piece.len() + 1);
                let mut left = bytes;
                while left > 0 && stream.write_all(many.as_bytes()).is_ok() {
                    left = left.saturating_sub(many.len() as u64);
                }
                self.change(|state| state.flooded += bytes - left);
            }
            Act::Raw(bytes) => drop(stream.write_all(bytes.as_bytes())),
            Act::Steps(pieces) => {
                drop(stream.write_all(STREAM.as_bytes()));
                for (n, piece) in pieces.iter().enumerate() {
                    if n > 0 && !self.may_go_on() {
                        return;
                    }
                    drop(stream.write_all(piece.as_bytes()));
                }
            }
            Act::Hang => {
                drop(stream.write_all(STREAM.as_bytes()));
                // Waits until the client closes the connection.
                drop(stream.read(&mut [0; 16]));
                self.change(|state| state.hung_up += 1);
            }
        }
    }

    /// Lets this many more pieces of [`Act::says_in_steps`] be sent.
    pub fn go_on(&self, pieces: usize) {
        self.change(|state| state.steps += pieces);
    }

    fn change(&self, what: impl FnOnce(&mut State)) {
        what(&mut self.state.lock().unwrap());
        self.news.notify_all();
    }

    /// Waits until the next piece may be sent; false if that times out.
    fn may_go_on(&self) -> bool {
        let Some(mut state) = self.wait(|state| state.steps > 0) else { return false };
        state.steps -= 1;
        true
    }

    /// Bytes of floods that were sent.
    pub fn flooded(&self) -> u64 {
        self.state.lock().unwrap().flooded
    }

    /// From now on, reports this as the context window at this path.
    pub fn tells(&self, path: &'static str, body: &str) {
        self.state.lock().unwrap().tells = Some((path, body.to_owned()));
    }

    /// How often any path for the context window was requested.
    pub fn asked_for_window(&self) -> usize {
        self.state.lock().unwrap().told.len()
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.state.lock().unwrap().asked.clone()
    }

    /// Waits until this many clients have disconnected during [`Act::Hang`].
    pub fn wait_for_hang_ups(&self, count: usize) {
        assert!(self.wait(|state| state.hung_up >= count).is_some(), "nobody hung up");
    }

    pub fn wait_for_requests(&self, count: usize) {
        assert!(self.wait(|state| state.asked.len() >= count).is_some(), "nobody asked");
    }

    /// Waits for a condition; `None` if it times out.
    fn wait(&self, done: impl Fn(&State) -> bool) -> Option<MutexGuard<'_, State>> {
        let state = self.state.lock().unwrap();
        let (state, waited) = self.news.wait_timeout_while(state, PATIENCE, |state| !done(state)).unwrap();
        (!waited.timed_out()).then_some(state)
    }
}

/// Whether a request asks for the context window. All others play the script.
fn asks_for_window(head: &str) -> bool {
    let path = head.split([' ', '?']).nth(1).unwrap_or_default();
    ["/props", "/api/ps", "/api/show", "/api/v0/models", "/models"].iter().any(|known| path.ends_with(known))
}

fn read_request(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 65536];
    loop {
        let length = stream.read(&mut buffer).ok().filter(|length| *length > 0)?;
        bytes.extend_from_slice(&buffer[..length]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_string();
        let wanted: Option<usize> =
            head.lines().find_map(|l| l.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let wanted = wanted.unwrap_or(0);
        if bytes.len() >= end + 4 + wanted {
            let body = serde_json::from_slice(&bytes[end + 4..]).unwrap_or(Value::Null);
            let raw = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
            return Some(Asked { head, body, raw });
        }
    }
}
