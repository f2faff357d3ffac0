//! The daemon's end of `kai.sock`. The caller sends its call as one JSON line, the daemon answers with JSON lines, and
//! meanwhile the caller may approve or cancel.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kai_assistant::agent::{self, ApprovalRequest, Face};
use kai_assistant::home::Home;
use kai_assistant::untrusted::Untrusted;
use kai_words::Lang;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixListener;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::answer::answer;
use crate::app::App;
use crate::call::hello::{Hello, VERSION};
use crate::call::{Call, Event, ToolState, Word};
use crate::failure::Failure;
use crate::places::{Peer, Place, Places, Room};

/// The longest call that is accepted. Only an import comes close to it.
const LINE_LIMIT: u64 = 256 * 1024 * 1024;
/// Longer calls than this are read one at a time.
const SHORT_LINE: u64 = 256 * 1024;
/// How long a caller may take to send its call.
const SILENCE: Duration = Duration::from_secs(10);
/// How long the rest of a long call may take, once it is its turn.
const LONG_LINE: Duration = Duration::from_secs(30);
/// How long a long call waits for its turn.
const TURN: Duration = Duration::from_mins(1);
/// The longest line that a caller may send after its call: an approval or a cancellation.
const WORD_LIMIT: u64 = 16 * 1024;
/// How long a caller may take to read an answer. Long, because a person may page through it.
const TAKING: Duration = Duration::from_mins(10);
/// Limits for callers that have not sent their call yet (strangers) and for calls in progress (known).
const ROOM: Room = Room { strangers: 64, known: 128 };
/// The most characters of a parse error that are repeated to the caller.
const LONGEST_WHY: usize = 200;
/// The longest path that fits into a socket address, a little below the kernel's `sun_path`.
const PATH_LIMIT: usize = 100;

/// Connects to the daemon of this home, if one is running.
pub(crate) fn connect(home: &Home) -> Option<UnixStream> {
    let folder = std::fs::File::open(&home.dir).ok()?;
    UnixStream::connect(short(&home.socket(), &folder)).ok()
}

/// Opens the socket. Deletes one that a killed daemon left behind, which is safe because we hold the daemon's lock.
pub(crate) fn listen(home: &Home) -> io::Result<UnixListener> {
    let path = home.socket();
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let folder = std::fs::File::open(&home.dir)?;
    let listener = UnixListener::bind(short(&path, &folder))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// A path to the socket that fits into a socket address. For a home with a long path it goes through the open folder in
/// `/proc/self/fd`.
fn short(socket: &Path, folder: &std::fs::File) -> PathBuf {
    use std::os::fd::AsRawFd;
    if socket.as_os_str().len() < PATH_LIMIT {
        return socket.to_owned();
    }
    let name = socket.file_name().unwrap_or_default();
    Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name)
}

/// Answers callers until told to stop. Calls in progress belong to the tracker, which waits for them.
pub(crate) async fn serve(
    app: Arc<App>,
    listener: UnixListener,
    stop: CancellationToken,
    calls: TaskTracker,
) {
    let (places, long) = (Places::new(ROOM), Arc::new(Semaphore::new(1)));
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                // Only our own user and root can connect, so an unknown uid does no harm.
                let peer = Peer::User(stream.peer_cred().map_or(0, |user| user.uid()));
                let desk = CallerSlot { place: places.enter(peer), long: Arc::clone(&long) };
                drop(calls.spawn(converse(Arc::clone(&app), stream, stop.clone(), desk)));
            }
            Err(error) => {
                tracing::warn!(%error, "a command could not connect");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

type Caller = BufReader<tokio::io::Take<OwnedReadHalf>>;

/// A caller's share of the daemon's limits.
struct CallerSlot {
    place: Place,
    /// The permit that is held while a long call is read and answered.
    long: Arc<Semaphore>,
}

/// The line that holds a caller's call.
struct CallLine {
    line: Vec<u8>,
    /// Held until the call is answered, because a long call stays in memory until then.
    turn: Option<OwnedSemaphorePermit>,
}

/// Reads the call. `None` if the caller sent nothing or was too slow.
async fn first_line(caller: &mut Caller, desk: &CallerSlot) -> Option<Result<CallLine, Failure>> {
    let mut line = Vec::new();
    let heard = tokio::time::timeout(SILENCE, caller.read_until(b'\n', &mut line)).await;
    heard.ok()?.ok().filter(|length| *length > 0)?;
    if line.ends_with(b"\n") || caller.get_ref().limit() > 0 {
        return Some(Ok(CallLine { line, turn: None }));
    }
    let turn = tokio::time::timeout(TURN, Arc::clone(&desk.long).acquire_owned()).await;
    let Ok(Ok(turn)) = turn else { return Some(Err(Failure::failed(ONE_AT_A_TIME))) };
    caller.get_mut().set_limit(LINE_LIMIT - SHORT_LINE);
    tokio::time::timeout(LONG_LINE, caller.read_until(b'\n', &mut line)).await.ok()?.ok()?;
    if !line.ends_with(b"\n") && caller.get_ref().limit() == 0 {
        return Some(Err(Failure::usage(TOO_LONG)));
    }
    Some(Ok(CallLine { line, turn: Some(turn) }))
}

const ONE_AT_A_TIME: &str = "Kai is still reading another large file. Try again when it is done.";
const TOO_LONG: &str =
    "This is larger than the 256 MB that Kai accepts at once. Import one section at a time.";
const BUSY: &str = "Kai is already working on as many commands as it can. Try again in a moment.";

async fn converse(app: Arc<App>, stream: tokio::net::UnixStream, stop: CancellationToken, desk: CallerSlot) {
    let (from, mut to) = stream.into_split();
    let mut caller = BufReader::new(from.take(SHORT_LINE));
    let said = tokio::select! {
        said = first_line(&mut caller, &desk) => said,
        () = desk.place.leave.cancelled() => None,
    };
    let Some(said) = said else { return };
    // A caller that has sent its call is not disconnected in favour of one that has not.
    let has_room = desk.place.badge.is_known(true);
    let said = said.and_then(|said| if has_room { Ok(said) } else { Err(Failure::failed(BUSY)) });
    let (events, mut coming) = mpsc::unbounded_channel();
    let speaking = async move {
        while let Some(event) = coming.recv().await {
            let Ok(mut text) = serde_json::to_vec(&event) else { continue };
            text.push(b'\n');
            // The caller may have disconnected. Whether its call continues is decided in `respond`.
            let taken = tokio::time::timeout(TAKING, to.write_all(&text)).await;
            if !matches!(taken, Ok(Ok(()))) {
                break;
            }
        }
        while coming.recv().await.is_some() {}
    };
    let answering = async move {
        let answered = match said {
            Ok(said) => respond(app, said, caller, &events, stop).await,
            Err(failure) => Err(failure),
        };
        let event = match answered {
            Ok(result) => Event::Done { result },
            Err(failure) => Event::Error { code: failure.code, message: failure.to_string() },
        };
        drop(events.send(event));
    };
    tokio::join!(speaking, answering);
}

async fn respond(
    app: Arc<App>,
    mut said: CallLine,
    caller: Caller,
    events: &mpsc::UnboundedSender<Event>,
    stop: CancellationToken,
) -> Result<serde_json::Value, Failure> {
    let Hello { tty, env, call, .. } = understand(&std::mem::take(&mut said.line))?;
    // A question with files may wait for a person's approval, and others need not wait for that.
    if let Call::Ask { .. } = call {
        said.turn = None;
    }
    let turn = call.watched();
    let (words, heard) = mpsc::unbounded_channel();
    let language = App::lang(&app.values().await?, &env);
    let face = SocketFace { events: events.clone(), tty, language, words: Mutex::new(heard) };
    // In its own task, so that a panic in one call becomes an ordinary failure.
    let answering = tokio::spawn(async move { answer(&app, call, &env, &face).await });
    let mut answering = AbortOnDropHandle::new(answering);
    let answered = tokio::select! {
        answered = &mut answering => answered,
        // A watched call ends when its caller disconnects or cancels; all others run to completion.
        () = listen_to(caller, words), if turn => return Err(Failure::failed("Cancelled.")),
        () = stop.cancelled(), if turn => return Err(Failure::failed("Kai is shutting down. Your message is saved.")),
    };
    answered.unwrap_or_else(|_| Err(Failure::failed("Kai ran into a bug and stopped working on this.")))
}

/// The protocol version, which is read before the rest of a call is parsed.
#[derive(Deserialize)]
struct Version {
    v: Option<u64>,
}

fn understand(line: &[u8]) -> Result<Hello, Failure> {
    let version = serde_json::from_slice::<Version>(line).ok().and_then(|said| said.v);
    match version {
        Some(v) if v == u64::from(VERSION) => {}
        Some(v) => {
            return Err(Failure::failed(format!(
                "This command uses version {v} of the protocol, the running daemon version {VERSION}. Restart the \
                 daemon: kai stop, then kai"
            )));
        }
        None => {
            return Err(Failure::usage(
                "This is not a valid call. Kai expects a JSON line with v, cmd, args and tty.",
            ));
        }
    }
    serde_json::from_slice(line).map_err(|error| {
        let why = Untrusted::new(error.to_string()).line(LONGEST_WHY);
        Failure::usage(format!(
            "The running daemon does not know this call ({why}). Restart it: kai stop, then kai"
        ))
    })
}

/// Forwards what the caller sends. Returns when it cancels or disconnects.
async fn listen_to(mut caller: Caller, words: mpsc::UnboundedSender<Word>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        caller.get_mut().set_limit(WORD_LIMIT);
        match caller.read_until(b'\n', &mut line).await {
            Ok(length) if length > 0 => {}
            _ => return,
        }
        match serde_json::from_slice(&line) {
            Ok(Word::Cancel) | Err(_) => return,
            Ok(word) => drop(words.send(word)),
        }
    }
}

/// The [`Face`] of a caller at the other end of the socket.
struct SocketFace {
    events: mpsc::UnboundedSender<Event>,
    tty: bool,
    language: Lang,
    words: Mutex<mpsc::UnboundedReceiver<Word>>,
}

impl Face for SocketFace {
    fn shows(&self, event: agent::Event) {
        drop(self.events.send(to_wire(event, self.language)));
    }

    fn allows<'a>(
        &'a self,
        asking: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Option<bool>> + Send + 'a>> {
        Box::pin(async move {
            if !self.tty {
                return None;
            }
            // One question at a time, so that no answer is taken for that of another question.
            let mut words = self.words.lock().await;
            let ApprovalRequest { call, about } = asking.clone();
            drop(self.events.send(Event::Confirm { tool: call.name, arguments: call.arguments, about }));
            match words.recv().await {
                Some(Word::Allow { yes }) => Some(yes),
                Some(Word::Cancel) | None => None,
            }
        })
    }
}

/// Converts an event of a turn into the socket's protocol.
pub(crate) fn to_wire(event: agent::Event, language: Lang) -> Event {
    let tool = |call, tool: String, state, why| {
        let title = language.tool_name(&tool);
        Event::Tool { call, title, tool, state, why }
    };
    match event {
        agent::Event::Began { conversation } => Event::Began { chat: conversation },
        agent::Event::Reading { percent } => Event::Reading { percent },
        agent::Event::Delta { text } => Event::Delta { text },
        agent::Event::Again { why, asking } => {
            Event::Again { why: why.to_string(), asking: asking.to_string() }
        }
        agent::Event::ToolStarted { call, tool: name } => tool(call, name, ToolState::Running, None),
        agent::Event::ToolProgress { call, tool: name, progress } => {
            tool(call, name, ToolState::Running, Some(progress))
        }
        agent::Event::ToolFinished { call, tool: name, failed } => {
            tool(call, name, if failed.is_none() { ToolState::Done } else { ToolState::Failed }, failed)
        }
    }
}

#[cfg(test)]
mod tests {
    use kai_llm::{CallId, ToolCall};

    use super::*;

    fn call() -> ToolCall {
        let (name, arguments) = ("memory_store".to_owned(), "{\"key\": 1}".to_owned());
        ToolCall { id: CallId("1".to_owned()), name, arguments, signature: None }
    }

    fn asking() -> ApprovalRequest {
        ApprovalRequest { call: call(), about: Some("Weather".to_owned()) }
    }

    /// A face over a socket, with the event receiver and the word sender of the other side.
    fn over(tty: bool) -> (SocketFace, mpsc::UnboundedReceiver<Event>, mpsc::UnboundedSender<Word>) {
        let (events, coming) = mpsc::unbounded_channel();
        let (words, heard) = mpsc::unbounded_channel();
        (SocketFace { events, tty, language: Lang::ENGLISH, words: Mutex::new(heard) }, coming, words)
    }

    #[tokio::test]
    async fn only_a_yes_to_exactly_this_call_allows_it() {
        for (said, expected) in [
            (Some(Word::Allow { yes: true }), Some(true)),
            (Some(Word::Allow { yes: false }), Some(false)),
            (Some(Word::Cancel), None),
            (None, None),
        ] {
            let (face, mut coming, words) = over(true);
            match said {
                Some(word) => words.send(word).unwrap(),
                None => drop(words),
            }
            assert_eq!(face.allows(&asking()).await, expected, "{said:?}");
            let Some(Event::Confirm { tool, arguments, about }) = coming.recv().await else {
                panic!("nobody was asked")
            };
            assert_eq!((tool, arguments), (call().name, call().arguments), "the person sees the exact call");
            assert_eq!(about.as_deref(), Some("Weather"));
        }
    }

    #[tokio::test]
    async fn where_nobody_sits_nobody_is_asked() {
        let (face, mut coming, words) = over(false);
        words.send(Word::Allow { yes: true }).unwrap();
        assert_eq!(face.allows(&asking()).await, None);
        assert!(coming.try_recv().is_err(), "no question is sent");
    }

    mod fuzz {
        use proptest::prelude::*;

        use super::*;

        const LINES: [&str; 6] = [
            r#"{"v":1,"tty":true,"around":{"locale":"de_DE.UTF-8","keys":[["OPENAI_API_KEY","sk-1"]]},"cmd":"ask","args":{"text":"hi","chat":"new"}}"#,
            r#"{"v":1,"tty":false,"cmd":"settings_set","args":{"key":"theme","value":"dark"}}"#,
            r#"{"v":1,"tty":false,"cmd":"tools_call","args":{"tool":"get_local_time","arguments":"{}"}}"#,
            r#"{"v":1,"tty":false,"cmd":"import","args":{"text":"{}","sections":[],"mode":"merge","passphrase":null,"preview":true}}"#,
            r#"{"v":1,"tty":true,"cmd":"status"}"#,
            r#"{"v":2,"cmd":"x"}"#,
        ];

        proptest! {
            /// A line is either refused with a short message, or it is a call that survives a round trip.
            #[test]
            fn a_line_is_a_call_or_refused(line in kai_mutate::bytes(LINES.map(|line| line.as_bytes().to_vec()).to_vec())) {
                match understand(&line) {
                    Ok(hello) => {
                        let again = understand(&serde_json::to_vec(&hello).unwrap()).unwrap();
                        prop_assert_eq!((again.call, again.tty, again.env), (hello.call, hello.tty, hello.env));
                    }
                    Err(failure) => prop_assert!(failure.message.to_string().chars().count() <= 400, "{}", failure.message),
                }
            }
        }
    }

    #[test]
    fn a_call_that_nobody_knows_is_not_said_back_whole() {
        let line = format!(r#"{{"v":1,"tty":true,"cmd":"{}"}}"#, "x".repeat(100_000));
        assert!(understand(line.as_bytes()).unwrap_err().message.to_string().len() < 400);
    }
}
