//! Downloads from a server on this machine that cuts, lies, ignores and dawdles.

use std::collections::VecDeque;
use std::fmt::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::sync::{Arc, Mutex};

use rustix::fs::{CWD, Mode, OFlags, mkfifoat};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::part::Abandoned;

/// What the server does with one request.
#[derive(Debug, Clone)]
enum Does {
    /// Answers as it should, with the rest if that was asked for.
    Serve,
    /// The same, but closes the connection after so many bytes of the body.
    Cut(usize),
    /// Sends everything, whatever was asked for.
    IgnoreRange,
    /// Answers a range with one that begins elsewhere.
    OtherRange,
    /// Says so, with this status and no body.
    Status(u16),
    /// Sends these bytes instead.
    Other(Vec<u8>),
    /// Sends these bytes without saying how many.
    Chunked(Vec<u8>),
    Redirect(String),
    /// Sends the headers and then nothing.
    Stall,
    /// Closes the connection without an answer.
    Hang,
}

struct Server {
    port: u16,
    /// The head of every request, in order.
    heard: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Serves `body`, doing one thing after the other and then what it should.
    async fn of(body: &[u8], script: Vec<Does>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(vec![]));
        let (body, log) = (body.to_vec(), Arc::clone(&heard));
        tokio::spawn(async move {
            let mut script = VecDeque::from(script);
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let does = script.pop_front().unwrap_or(Does::Serve);
                let (body, log) = (body.clone(), Arc::clone(&log));
                tokio::spawn(async move { drop(answer(stream, &body, does, &log).await) });
            }
        });
        Self { port, heard }
    }

    fn hub(&self) -> Hub {
        Hub::on_loopback(self.port)
    }

    fn ranges(&self) -> Vec<Option<String>> {
        let heard = self.heard.lock().unwrap();
        let range = |head: &String| {
            let line =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("range: ")?.to_owned().into());
            line.map(|range: String| range.trim().to_owned())
        };
        heard.iter().map(range).collect()
    }
}

async fn answer(stream: TcpStream, body: &[u8], does: Does, log: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let from = head
        .to_lowercase()
        .split("range: bytes=")
        .nth(1)
        .and_then(|rest| rest.split('-').next().and_then(|from| from.parse::<usize>().ok()));
    log.lock().unwrap().push(head);
    let whole = body.len();
    let ok =
        |length: usize| format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    let rest = |from: usize| {
        let length = whole - from;
        format!(
            "HTTP/1.1 206 Partial Content\r\ncontent-range: bytes {from}-{}/{whole}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n",
            whole - 1
        )
    };
    let (head, body) = match (does, from) {
        (Does::Serve | Does::Cut(_), Some(from)) if from >= whole => {
            ("HTTP/1.1 416 Range Not Satisfiable\r\ncontent-length: 0\r\n\r\n".to_owned(), vec![])
        }
        (Does::Serve, Some(from)) => (rest(from), body[from..].to_vec()),
        (Does::Serve | Does::IgnoreRange, _) => (ok(whole), body.to_vec()),
        (Does::Cut(after), from) => {
            let from = from.unwrap_or_default();
            (if from > 0 { rest(from) } else { ok(whole) }, body[from..from + after].to_vec())
        }
        (Does::OtherRange, _) => (rest(1), body[1..].to_vec()),
        (Does::Status(status), _) => (format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n"), vec![]),
        (Does::Other(bytes), _) => (ok(bytes.len()), bytes),
        (Does::Chunked(bytes), _) => ("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_owned(), bytes),
        (Does::Redirect(to), _) => {
            (format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n"), vec![])
        }
        (Does::Stall, _) => (ok(whole), vec![]),
        (Does::Hang, _) => return Ok(()),
    };
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&body).await?;
    stream.flush().await?;
    if body.is_empty() && head.contains("200 OK") {
        std::future::pending::<()>().await;
    }
    Ok(())
}

/// A body of several pieces.
fn body() -> Vec<u8> {
    (0..700_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

fn wanted(body: &[u8], folder: &TempDir) -> Wanted {
    let hash = Sha256::digest(body);
    let sha256 = hash.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    });
    let to = folder.path().join("models").join("m.gguf");
    Wanted { path: "a/b/resolve/main/m.gguf".to_owned(), bytes: body.len() as u64, sha256, to }
}

async fn get(wanted: &Wanted, hub: &Hub) -> Result<(), FetchError> {
    fetch(wanted, hub, &Proxies::default(), &|_, _| ()).await
}

/// The names in the folder of the models.
fn names(wanted: &Wanted) -> Vec<String> {
    let entries = std::fs::read_dir(wanted.to.parent().unwrap()).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_whole_file_lies_in_its_place_for_its_owner_alone() {
    let (body, folder) = (body(), tempfile::tempdir().unwrap());
    let (server, wanted) = (Server::of(&body, vec![]).await, wanted(&body, &folder));
    let told = Mutex::new(vec![]);
    let progress = |bytes, whole| told.lock().unwrap().push((bytes, whole));
    fetch(&wanted, &server.hub(), &Proxies::default(), &progress).await.unwrap();
    assert_eq!(std::fs::read(&wanted.to).unwrap(), body);
    assert_eq!(names(&wanted), ["m.gguf"], "no part is left");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&wanted.to), mode(wanted.to.parent().unwrap())), (0o600, 0o700));
    let (told, whole) = (told.into_inner().unwrap(), body.len() as u64);
    assert_eq!((told.first(), told.last()), (Some(&(0, whole)), Some(&(whole, whole))));
    assert!(told.is_sorted());
    get(&wanted, &server.hub()).await.unwrap();
    assert_eq!(server.ranges(), [None], "a file that is there is not fetched again");
    assert!(server.heard.lock().unwrap()[0].starts_with("GET /a/b/resolve/main/m.gguf HTTP/1.1\r\n"));
}

/// Each script is played until it is over; the file is whole in the end, and requests asked for what was missing.
#[tokio::test]
async fn what_was_received_is_not_asked_for_again() {
    let body = body();
    let range = |from: usize| Some(format!("bytes={from}-"));
    let redirect = || Does::Redirect("/elsewhere".to_owned());
    for (name, script, tries, ranges) in [
        ("cut twice", vec![Does::Cut(1000), Does::Cut(500_000)], 3, vec![None, range(1000), range(501_000)]),
        ("cut at once", vec![Does::Hang], 2, vec![None, None]),
        ("ignores ranges", vec![Does::Cut(1000), Does::IgnoreRange], 2, vec![None, range(1000)]),
        ("another range", vec![Does::Cut(1000), Does::OtherRange], 2, vec![None, range(1000), None]),
        ("416", vec![Does::Cut(1000), Does::Status(416)], 2, vec![None, range(1000), None]),
        ("503 between", vec![Does::Cut(1000), Does::Status(503)], 3, vec![None, range(1000), range(1000)]),
        (
            "redirects",
            vec![Does::Cut(9), redirect(), redirect()],
            2,
            vec![None, range(9), range(9), range(9)],
        ),
        ("chunked and short", vec![Does::Chunked(body[..77].to_vec())], 2, vec![None, range(77)]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (server, wanted) = (Server::of(&body, script).await, wanted(&body, &folder));
        for attempt in 1..tries {
            get(&wanted, &server.hub()).await.expect_err(&format!("{name}: {attempt}"));
            assert!(!wanted.to.exists(), "{name}: nothing half is in place");
        }
        get(&wanted, &server.hub()).await.expect(name);
        assert_eq!(std::fs::read(&wanted.to).unwrap(), body, "{name}");
        assert_eq!(server.ranges(), ranges, "{name}");
        assert_eq!(names(&wanted), ["m.gguf"], "{name}");
    }
}

#[tokio::test]
async fn what_goes_wrong_is_a_sentence_and_nothing_is_in_place() {
    let body = body();
    let mut forged = body.clone();
    forged[500] ^= 1;
    let longer = [&body[..], b"more"].concat();
    let elsewhere = |to: &str| vec![Does::Redirect(to.to_owned())];
    let round = vec![Does::Redirect("/again".to_owned()); 6];
    for (name, script, said, left) in [
        ("forged", vec![Does::Other(forged)], "checksum is wrong", None),
        ("longer", vec![Does::Other(longer.clone())], "another length", None),
        ("longer, unannounced", vec![Does::Chunked(longer)], "another length", None),
        ("shorter", vec![Does::Other(b"tiny".to_vec())], "another length", None),
        ("cut", vec![Does::Cut(4242)], "connection was lost", Some(4242)),
        ("gone", vec![Does::Status(404)], "no longer on the server", Some(0)),
        ("refused", vec![Does::Status(403)], "HTTP 403", Some(0)),
        ("no answer", vec![Does::Hang], "cannot be reached", Some(0)),
        ("in a circle", round, "does not follow", Some(0)),
        ("to plain http", elsewhere("http://example.org/m.gguf"), "does not follow", Some(0)),
        ("to a file", elsewhere("file:///etc/passwd"), "does not follow", Some(0)),
        ("to nowhere", elsewhere("http://"), "does not follow", Some(0)),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (server, wanted) = (Server::of(&body, script).await, wanted(&body, &folder));
        let error = get(&wanted, &server.hub()).await.unwrap_err().to_string();
        assert!(error.contains(said), "{name}: {error}");
        assert_eq!(received(&wanted.to), left, "{name}");
        assert!(!wanted.to.exists(), "{name}");
    }
}

/// A forged rest is found, though the beginning was right, and the next try begins anew.
#[tokio::test]
async fn a_part_is_hashed_before_it_goes_on() {
    let (body, folder) = (body(), tempfile::tempdir().unwrap());
    let (server, wanted) = (Server::of(&body, vec![]).await, wanted(&body, &folder));
    std::fs::create_dir(wanted.to.parent().unwrap()).unwrap();
    std::fs::write(part::beside(&wanted.to), b"not the beginning").unwrap();
    assert!(matches!(get(&wanted, &server.hub()).await, Err(FetchError::WrongHash)));
    assert_eq!(names(&wanted), Vec::<String>::new());
    std::fs::write(part::beside(&wanted.to), &body).unwrap();
    let asked = server.ranges().len();
    get(&wanted, &server.hub()).await.unwrap();
    assert_eq!(server.ranges().len(), asked, "a part that is whole needs no server");
    std::fs::write(part::beside(&wanted.to), [&body[..], b"x"].concat()).unwrap();
    std::fs::write(&wanted.to, b"damaged").unwrap();
    get(&wanted, &server.hub()).await.unwrap();
    assert_eq!(std::fs::read(&wanted.to).unwrap(), body, "a damaged file is replaced");
}

#[tokio::test]
async fn a_server_that_falls_silent_is_left_and_the_part_stays() {
    let (body, folder) = (body(), tempfile::tempdir().unwrap());
    let server = Server::of(&body, vec![Does::Cut(1000), Does::Stall]).await;
    let wanted = wanted(&body, &folder);
    let hub = Hub { patience: Duration::from_millis(300), ..server.hub() };
    assert!(matches!(get(&wanted, &hub).await, Err(FetchError::Cut)));
    // The server ignores the range here and begins anew, so what there was is gone by its own doing.
    assert!(matches!(get(&wanted, &hub).await, Err(FetchError::Stalled { .. })));
    get(&wanted, &hub).await.unwrap();
}

#[tokio::test]
async fn a_dropped_download_keeps_its_part_and_two_do_not_mix() {
    let (body, folder) = (body(), tempfile::tempdir().unwrap());
    let server = Server::of(&body, vec![Does::Cut(300_000), Does::Stall]).await;
    let wanted = wanted(&body, &folder);
    get(&wanted, &server.hub()).await.unwrap_err();
    let held = Part::open(&wanted.to, &Abandoned::default()).unwrap();
    assert!(matches!(get(&wanted, &server.hub()).await, Err(FetchError::Busy)));
    drop(held);
    let dropped = tokio::time::timeout(Duration::from_millis(300), get(&wanted, &server.hub())).await;
    assert!(dropped.is_err(), "it was still waiting");
    get(&wanted, &server.hub()).await.unwrap();
    delete(&wanted.to).unwrap();
    delete(&wanted.to).unwrap();
    assert_eq!(names(&wanted), Vec::<String>::new());
}

#[tokio::test]
async fn a_disk_that_is_too_small_is_said_before_anything_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::of(b"", vec![]).await;
    let wanted = Wanted { bytes: 1 << 60, ..wanted(b"", &folder) };
    assert!(matches!(get(&wanted, &server.hub()).await, Err(FetchError::NoSpace { .. })));
    assert_eq!(server.ranges(), []);
}

#[tokio::test]
async fn a_proxy_is_used_unless_it_is_not_for_this_host() {
    let (body, folder) = (body(), tempfile::tempdir().unwrap());
    let (proxy, server) = (Server::of(&body, vec![]).await, Server::of(&body, vec![]).await);
    let wanted = wanted(&body, &folder);
    let https = Some(format!("http://127.0.0.1:{}", proxy.port));
    let by = |none_for: Option<&str>| Proxies { https: https.clone(), none_for: none_for.map(str::to_owned) };
    fetch(&wanted, &server.hub(), &by(None), &|_, _| ()).await.unwrap();
    assert_eq!((proxy.ranges().len(), server.ranges().len()), (1, 0));
    delete(&wanted.to).unwrap();
    fetch(&wanted, &server.hub(), &by(Some("127.0.0.1")), &|_, _| ()).await.unwrap();
    assert_eq!((proxy.ranges().len(), server.ranges().len()), (1, 1));
    delete(&wanted.to).unwrap();
    let bad = Proxies { https: Some("http://".to_owned()), none_for: None };
    assert!(matches!(fetch(&wanted, &server.hub(), &bad, &|_, _| ()).await, Err(FetchError::BadProxy(_))));
}

#[test]
fn only_https_and_tests_are_reached() {
    let (public, test) = (Hub::public(), Hub::on_loopback(1));
    for (url, by_public, by_test) in [
        ("https://huggingface.co/a", true, true),
        ("https://cdn.example/a", true, true),
        ("http://huggingface.co/a", false, false),
        ("http://127.0.0.1:1/a", false, true),
        ("http://localhost/a", false, false),
        ("ftp://127.0.0.1/a", false, false),
        ("file:///etc/passwd", false, false),
    ] {
        let url = Url::parse(url).unwrap();
        assert_eq!((public.allows(&url), test.allows(&url)), (by_public, by_test), "{url}");
    }
}

#[test]
fn a_rest_begins_where_the_part_ends() {
    for (range, fits) in [
        ("bytes 100-999/1000", true),
        ("bytes 0-999/1000", false),
        ("bytes 100-999/1001", false),
        ("bytes 100-999/*", false),
        ("bytes */1000", false),
        ("items 100-999/1000", false),
        ("", false),
    ] {
        assert_eq!(is_rest(range, 100, 1000), fits, "{range}");
    }
}

#[tokio::test]
async fn a_download_waits_for_the_end_of_one_that_was_just_stopped() {
    let (body, folder) = (body(), tempfile::tempdir().unwrap());
    let server = Server::of(&body, vec![]).await;
    let wanted = wanted(&body, &folder);
    let held = Part::open(&wanted.to, &Abandoned::default()).unwrap();
    let lets_go = async {
        sleep(ENDED * 3).await;
        drop(held);
    };
    let hub = server.hub();
    let (got, ()) = tokio::join!(get(&wanted, &hub), lets_go);
    got.unwrap();
    assert_eq!(std::fs::read(&wanted.to).unwrap(), body);
}

/// Opens a pipe for writing as soon as somebody waits to read from it.
async fn pipe_that_is_read(pipe: &Path) -> std::fs::File {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    for _ in 0..3_000 {
        if let Ok(opened) = options.open(pipe) {
            return opened;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("nobody looked at the file");
}

/// The user stopped a download at 100 %. It puts the file into its place after the next download has looked there, and
/// before that one gets at the part.
#[tokio::test]
async fn a_file_that_was_finished_meanwhile_is_not_fetched_again() {
    let body = body();
    for (name, syncs_folder) in [("it has ended", false), ("it still syncs the folder", true)] {
        let folder = tempfile::tempdir().unwrap();
        let (server, wanted) = (Server::of(&body, vec![]).await, wanted(&body, &folder));
        let mut stopped = Part::open(&wanted.to, &Abandoned::default()).unwrap();
        stopped.append(&body).unwrap();
        // Whoever looks for the file waits at this pipe. So we are told, and the look finds no file.
        mkfifoat(CWD, wanted.to.as_path(), Mode::RUSR | Mode::WUSR).unwrap();
        let finishes = async {
            let looked_at = pipe_that_is_read(&wanted.to).await;
            std::fs::rename(part::beside(&wanted.to), &wanted.to).unwrap();
            drop(looked_at);
            syncs_folder.then_some(stopped)
        };
        let hub = server.hub();
        let (got, _still_locked) = tokio::join!(get(&wanted, &hub), finishes);
        got.expect(name);
        assert_eq!(server.ranges(), [], "{name}: it was not fetched again");
        assert_eq!(names(&wanted), ["m.gguf"], "{name}: no part is left");
        assert_eq!(std::fs::read(&wanted.to).unwrap(), body, "{name}");
    }
}

#[test]
fn a_part_that_ends_while_it_is_opened_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("m.gguf");
    let at = part::beside(&to);
    for is_finished in [true, false] {
        std::fs::write(&at, b"whole").unwrap();
        let ends = |_: &std::fs::File| {
            if is_finished { std::fs::rename(&at, &to) } else { std::fs::remove_file(&at) }
        };
        let opened = Part::open_with(&to, &Abandoned::default(), ends).map(|part| part.length());
        let error = opened.expect_err("this file is no part any more");
        assert!(matches!(FetchError::from(error), FetchError::Busy), "so it is tried again");
        let new = Part::open(&to, &Abandoned::default()).unwrap();
        assert_eq!(new.length(), 0);
        new.remove().unwrap();
    }
    assert_eq!(std::fs::read(&to).unwrap(), b"whole", "the finished file was not touched");
}

#[test]
fn a_part_is_let_go_as_soon_as_nobody_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("m.gguf");
    std::fs::write(part::beside(&to), body()).unwrap();
    let waiting = Waiting::default();
    let abandoned = waiting.told();
    let whole = Part::open(&to, &abandoned).unwrap();
    assert_eq!(whole.length(), body().len() as u64);
    drop(whole);
    drop(waiting);
    assert!(Part::open(&to, &abandoned).is_err(), "it was not hashed");
    Part::open(&to, &Abandoned::default()).unwrap();
}
