//! The daemon's end of `kai.sock`: one JSON line in, JSON lines out.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kai_assistant::home::Home;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::answer::answer;
use crate::call::{Event, Hello, VERSION};
use crate::failure::Failure;
use crate::wire::App;

/// A call larger than this is not one of ours.
const LINE_LIMIT: u64 = 32 * 1024 * 1024;
/// A caller that says nothing is not waited for.
const SILENCE: Duration = Duration::from_secs(10);
/// What a socket's address can hold, by the kernel's `sun_path`.
const PATH_LIMIT: usize = 100;

/// The daemon of this home, if one answers.
pub(crate) fn connect(home: &Home) -> Option<UnixStream> {
    let folder = std::fs::File::open(&home.dir).ok()?;
    UnixStream::connect(short(&home.socket(), &folder)).ok()
}

/// Opens the socket; a leftover of a killed daemon makes way, since we hold the daemon's lock.
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

/// A home may lie deeper than a socket's address is long; through the open folder the way is short.
fn short(socket: &Path, folder: &std::fs::File) -> PathBuf {
    use std::os::fd::AsRawFd;
    if socket.as_os_str().len() < PATH_LIMIT {
        return socket.to_owned();
    }
    let name = socket.file_name().unwrap_or_default();
    Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name)
}

/// Answers until told to stop; calls under way are the tracker's to wait for.
pub(crate) async fn serve(
    app: Arc<App>,
    listener: UnixListener,
    stop: CancellationToken,
    calls: TaskTracker,
) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => drop(calls.spawn(converse(Arc::clone(&app), stream))),
            Err(error) => {
                tracing::warn!(%error, "a command could not connect");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn converse(app: Arc<App>, stream: tokio::net::UnixStream) {
    let (from, mut to) = stream.into_split();
    let mut line = Vec::new();
    let mut reader = BufReader::new(from.take(LINE_LIMIT));
    let heard = tokio::time::timeout(SILENCE, reader.read_until(b'\n', &mut line)).await;
    if !matches!(heard, Ok(Ok(length)) if length > 0) {
        return;
    }
    let event = match respond(app, &line).await {
        Ok(result) => Event::Done { result },
        Err(Failure { code, message }) => Event::Error { code, message },
    };
    if let Ok(mut text) = serde_json::to_vec(&event) {
        text.push(b'\n');
        // The caller may have gone; what it asked for is done all the same.
        drop(to.write_all(&text).await);
    }
}

async fn respond(app: Arc<App>, line: &[u8]) -> Result<serde_json::Value, Failure> {
    let version = serde_json::from_slice::<serde_json::Value>(line).ok().and_then(|v| v.get("v")?.as_u64());
    match version {
        Some(v) if v == u64::from(VERSION) => {}
        Some(v) => {
            return Err(Failure::failed(format!(
                "This command speaks version {v}, the running daemon {VERSION}. Restart the daemon."
            )));
        }
        None => {
            return Err(Failure::usage(
                "That is not a call of Kai: a JSON line with v, cmd, args, tty is expected.",
            ));
        }
    }
    let hello: Hello = serde_json::from_slice(line).map_err(|e| {
        Failure::usage(format!("The running daemon does not know this call ({e}). Restart it."))
    })?;
    // In a task of its own, so that a bug in one call is answered like any other failure.
    let answered = tokio::spawn(async move { answer(&app, hello.call).await }).await;
    answered.unwrap_or_else(|_| Err(Failure::failed("Kai hit a bug of its own and gave up on this.")))
}
