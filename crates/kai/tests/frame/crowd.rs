//! Crowds at the page and at the socket: whatever strangers do with their connections, the person gets an answer.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::kit::{Daemon, Home, wait_for};
use crate::refusals::skipped;

/// More than the page has places, for strangers and for those it knows together.
const CROWD: usize = 560;

#[test]
fn whatever_strangers_do_the_page_and_the_socket_answer() {
    let home = Home::new();
    let daemon = home.start();
    #[cfg(target_os = "linux")]
    another_user_pushes_out_nobody_but_itself(&daemon);
    let cookie = daemon.sign_in();
    silent_connections_keep_nobody_waiting(&daemon, &cookie);
    connections_that_never_read_keep_nobody_out(&daemon, &cookie);
    half_open_callers_make_room_for_those_who_speak(&home);
    of_many_long_lines_one_is_taken_at_a_time(&home);
    a_line_that_is_too_long_is_refused_in_words(&home);
}

fn connect(daemon: &Daemon) -> TcpStream {
    let stream = TcpStream::connect(&daemon.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

/// Has the other side hung up? A stream with nothing to say is still open.
fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let open = matches!((&*stream).read(&mut [0; 1]), Err(error) if error.kind() == ErrorKind::WouldBlock);
    stream.set_nonblocking(false).unwrap();
    open
}

fn silent_connections_keep_nobody_waiting(daemon: &Daemon, cookie: &str) {
    let silent: Vec<TcpStream> = (0..CROWD).map(|_| connect(daemon)).collect();
    // Ten seconds at most, and a silent connection is waited for longer than that.
    assert_eq!(daemon.get("/new", cookie).status, 200);
    assert_eq!(daemon.get("/", "").status, 401, "who is not signed in gets an answer too");
    wait_for("the oldest making room", || !is_open(&silent[0]));
    drop(silent);
}

/// Asks for much and reads none of it.
fn pipeline(daemon: &Daemon, asset: &str) -> TcpStream {
    let mut stream = connect(daemon);
    let requests = format!("GET {asset} HTTP/1.1\r\nHost: {}\r\n\r\n", daemon.address).repeat(500);
    stream.set_write_timeout(Some(Duration::from_millis(20))).unwrap();
    // It stops taking them as soon as its answers are stuck.
    drop(stream.write_all(requests.as_bytes()));
    stream
}

fn connections_that_never_read_keep_nobody_out(daemon: &Daemon, cookie: &str) {
    let signed_out = daemon.get("/", "").text;
    let (_, asset) = signed_out.split_once("<script src=\"").unwrap();
    let asset = asset.split('"').next().unwrap().to_owned();
    assert_eq!(daemon.get(&asset, "").status, 200);
    let mut page = connect(daemon);
    let ask = format!("GET /settings HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\n\r\n", daemon.address);
    let known = |page: &mut TcpStream| {
        page.write_all(ask.as_bytes()).unwrap();
        let mut first = [0; 12];
        page.read_exact(&mut first).unwrap();
        String::from_utf8_lossy(&first).into_owned()
    };
    assert!(known(&mut page).starts_with("HTTP/1.1 "), "an open page");
    let stuck: Vec<TcpStream> = (0..CROWD).map(|_| pipeline(daemon, &asset)).collect();
    assert_eq!(daemon.get("/new", cookie).status, 200);
    assert!(is_open_or_talking(&page), "a signed-in connection makes room for nobody");
    drop(stuck);
}

/// It may have more to say, but it has not hung up.
fn is_open_or_talking(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let mut some = [0; 4096];
    let open = loop {
        match (&*stream).read(&mut some) {
            Ok(0) => break false,
            Ok(_) => {}
            Err(error) => break error.kind() == ErrorKind::WouldBlock,
        }
    };
    stream.set_nonblocking(false).unwrap();
    open
}

/// Another user of the machine with hundreds of connections loses its own, not ours.
#[cfg(target_os = "linux")]
fn another_user_pushes_out_nobody_but_itself(daemon: &Daemon) {
    if !rustix::process::geteuid().is_root() {
        return skipped("being another user needs root");
    }
    let ours: Vec<TcpStream> = (0..40).map(|_| connect(daemon)).collect();
    let script =
        "for i in $(seq 600); do exec {fd}<>/dev/tcp/127.0.0.1/$0 || exit 1; done; echo open; read -r _";
    let port = daemon.address.rsplit_once(':').unwrap().1;
    let mut other = Command::new("setpriv")
        .args(["--reuid=65531", "--regid=65531", "--clear-groups", "bash", "-c", script, port])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(other.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "open\n");
    // One of ours that came early is answered: the page has taken the newest by then, since it takes them in order.
    assert_eq!(daemon.get("/", "").status, 401);
    assert_eq!(ours.iter().filter(|stream| is_open(stream)).count(), 40);
    drop(other.stdin.take());
    other.wait().unwrap();
}

fn call(home: &Home) -> UnixStream {
    let socket = UnixStream::connect(home.path().join("kai.sock")).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket
}

fn hung_up(socket: &UnixStream) -> bool {
    socket.set_nonblocking(true).unwrap();
    let gone = matches!((&*socket).read(&mut [0; 1]), Ok(0));
    socket.set_nonblocking(false).unwrap();
    gone
}

const STATUS: &str = "{\"v\":1,\"tty\":false,\"cmd\":\"status\"}\n";

fn half_open_callers_make_room_for_those_who_speak(home: &Home) {
    let half: Vec<UnixStream> = (0..300)
        .map(|_| {
            let mut socket = call(home);
            // The daemon may have hung up already.
            drop(socket.write_all(&STATUS.as_bytes()[..10]));
            socket
        })
        .collect();
    assert_eq!(home.run(&["status"]).code, 0);
    let mut newest = half.last().unwrap();
    // Silence alone ends a caller after ten seconds; these leave at once, because others came.
    let asked = std::time::Instant::now();
    wait_for("the oldest making room", || half[..200].iter().all(hung_up));
    assert!(asked.elapsed() < Duration::from_secs(9), "the oldest stay");
    newest.write_all(&STATUS.as_bytes()[10..]).unwrap();
    let mut answer = String::new();
    BufReader::new(newest).read_line(&mut answer).unwrap();
    assert!(answer.contains("\"done\""), "the newest is still listened to: {answer}");
}

/// Long lines lie in memory whole, so there is one at a time: when all of the first has been taken, of the others only
/// as much has been as a short call is long.
fn of_many_long_lines_one_is_taken_at_a_time(home: &Home) {
    const MB: usize = 1024 * 1024;
    let sockets: Vec<UnixStream> = (0..8).map(|_| call(home)).collect();
    let (writes, wrote) = std::sync::mpsc::channel();
    std::thread::scope(|threads| {
        for (caller, mut socket) in sockets.iter().enumerate() {
            let writes = writes.clone();
            threads.spawn(move || {
                let piece = vec![b'x'; MB];
                (0..8)
                    .take_while(|_| socket.write_all(&piece).is_ok())
                    .for_each(|_| writes.send(caller).unwrap());
            });
        }
        let soon = Duration::from_secs(30);
        let first: Vec<usize> = (0..8).map_while(|_| wrote.recv_timeout(soon).ok()).collect();
        let meanwhile = home.run(&["status"]);
        for socket in &sockets {
            socket.shutdown(std::net::Shutdown::Both).unwrap();
        }
        assert_eq!(first, [first[0]; 8], "the megabytes of one caller, and of no other");
        assert_eq!(meanwhile.code, 0, "short calls are answered meanwhile: {meanwhile:?}");
    });
}

fn a_line_that_is_too_long_is_refused_in_words(home: &Home) {
    let mut socket = call(home);
    let mut hears = socket.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        let piece = vec![b' '; 1024 * 1024];
        (0..257).all(|_| socket.write_all(&piece).is_ok())
    });
    let mut answer = String::new();
    drop(hears.read_to_string(&mut answer));
    assert!(answer.contains("256 MB"), "{answer}");
    writing.join().unwrap();
}
