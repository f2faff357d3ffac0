//! The daemon: one per home, clean stops, hard kills, and a log without secrets.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::time::Duration;

use crate::kit::{CUT_OFF, Daemon, Done, Home, KAI, kai, wait_for};

/// One walk through the life of a daemon, in a home whose path is longer than the address of a socket may be.
#[test]
fn a_daemon_is_private_tells_no_secret_and_stops_cleanly() {
    let folder = Home::new();
    let home = folder.path().join("d".repeat(120)).join("e".repeat(60));
    let notify = UnixDatagram::bind(folder.path().join("notify")).unwrap();
    notify.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let heard = || {
        let mut bytes = [0; 200];
        let length = notify.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap().trim().to_owned()
    };
    let run = |args: &[&str]| Done::from(kai(&home).args(args).output().unwrap());
    // `serve` is what Kai does without a word.
    let daemon = Daemon::start(kai(&home).args(["--port", "0"]));
    only_the_owner_reaches(&home);
    let status = run(&["status", "--json"]).json();
    assert_eq!(status["daemon"]["running"], true, "its socket is found under a long path: {status}");
    run(&["tools", "call", "memory_store", r#"{"key": "pin", "content": "it flies"}"#]);
    its_threads_share_a_heap(&daemon);
    stopped(daemon, "-INT", &home);
    assert_eq!(run(&["memory", "list"]).out, "pin  it flies\n", "an interrupt loses nothing");

    // Where the person, or the system, allows core dumps of any size.
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "ulimit -c unlimited; exec \"$0\" --home \"$1\" serve --port 0 --log-format json"]);
    shell.args([KAI.as_ref(), home.as_path()]);
    shell.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    shell.env("KAI_LOG", "trace").env("NOTIFY_SOCKET", folder.path().join("notify"));
    let daemon = Daemon::start(&mut shell);
    assert_eq!(heard(), "READY=1", "systemd is told of the start");
    a_crash_leaves_no_core(&daemon);
    let second = run(&["serve", "--port", "0"]);
    second.refused(1, "already running");
    assert!(second.err.contains(&daemon.address), "a second start says where the first one is: {second:?}");
    let (token, cookie) = (daemon.token(), daemon.sign_in());
    daemon.get("/", &cookie);
    run(&["tools", "call", "memory_store", r#"{"key": "pin", "content": "the heron stands"}"#]);
    let log = stopped(daemon, "-TERM", &home);
    assert_eq!(heard(), "STOPPING=1", "systemd is told of the stop");
    for line in log.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    }
    assert!(log.contains("ready"), "the log tells of the start: {log}");
    for secret in [token.as_str(), cookie.split_once('=').unwrap().1, "the heron stands"] {
        assert!(!log.contains(secret), "the log tells {secret}");
    }
    assert_eq!(run(&["memory", "list"]).out, "pin  the heron stands\n", "a stop loses nothing");
}

/// Each further heap of glibc is 64 MiB of addresses from a multiple of that on, the first of which are in use.
fn its_threads_share_a_heap(daemon: &Daemon) {
    let told = |file| std::fs::read_to_string(format!("/proc/{}/{file}", daemon.pid())).unwrap();
    let number = |digits| u64::from_str_radix(digits, 16).unwrap();
    let maps = told("maps");
    let maps: Vec<(u64, u64, &str)> = maps
        .lines()
        .map(|line| {
            let (range, rest) = line.split_once(' ').unwrap();
            let (from, to) = range.split_once('-').unwrap();
            (number(from), number(to), &rest[..4])
        })
        .collect();
    let heaps = maps.windows(2).filter(|two| {
        let [(from, between, "rw-p"), (rest, to, "---p")] = *two else { return false };
        from.is_multiple_of(64 << 20) && between == rest && to - from == 64 << 20
    });
    assert_eq!(heaps.count(), 0, "{maps:x?}");
    assert_eq!(told("comm"), "kai\n", "it keeps its name");
}

/// Stops it by this signal; nothing may be cut off or left behind. Returns the log.
fn stopped(daemon: Daemon, signal: &str, home: &Path) -> String {
    let (code, log) = daemon.stop(signal);
    assert_eq!(code, Some(0), "{signal}: {log}");
    assert!(log.contains("stopped") && !log.contains(CUT_OFF), "{signal}: {log}");
    assert!(!home.join("kai.sock").exists(), "{signal}: the socket is put away");
    assert!(!home.join("kai.db-wal").exists(), "{signal}: the database's log is folded in");
    log
}

fn only_the_owner_reaches(home: &Path) {
    let mode = |name: &str| std::fs::metadata(home.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(""), 0o700, "the home");
    for private in ["kai.sock", "kai.key", "kai.db", "kai.lock"] {
        assert_eq!(mode(private), 0o600, "{private}");
    }
}

/// A core dump would hold the key.
fn a_crash_leaves_no_core(daemon: &Daemon) {
    if cfg!(target_os = "linux") {
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", daemon.pid())).unwrap();
        let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
        assert_eq!(core.split_whitespace().nth(4), Some("0"), "a crash leaves no core: {core}");
    }
    let unit = include_str!("../../../../packaging/kai.service");
    assert!(unit.lines().any(|line| line == "LimitCORE=0"), "nor under systemd");
}

#[test]
fn kai_stop_is_over_when_the_daemon_is_gone_and_nobody_holds_it_up() {
    let home = Home::new();
    let nobody = home.run(&["stop"]);
    assert_eq!((nobody.code, nobody.out.as_str()), (0, "Kai is not running.\n"), "{nobody:?}");
    let daemon = home.start();
    assert_eq!(home.run(&["stop", "--json"]).json(), serde_json::json!({"stopped": true}));
    let left = ["kai.sock", "kai.db-wal"].map(|name| home.path().join(name).exists());
    assert_eq!(left, [false, false], "the command ends after everything was put away");
    let (code, log) = daemon.ended();
    assert!(code == Some(0) && log.contains("stopped") && !log.contains(CUT_OFF), "{log}");

    // A browser and a command that hold the line.
    let daemon = home.start();
    let mut idle = std::net::TcpStream::connect(&daemon.address).unwrap();
    idle.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n").unwrap();
    let socket = UnixStream::connect(home.path().join("kai.sock")).unwrap();
    assert_eq!(home.run(&["stop"]).out, "Kai has stopped.\n", "the next one can start at once");
    let (code, log) = daemon.ended();
    assert_eq!(code, Some(0), "who holds the line does not hold up the stop: {log}");
    drop((idle, socket));
}

/// What the daemon wrote is there after each kill, and the note of the ledger's end is never ahead of the ledger.
#[test]
fn after_kill_9_the_next_start_works_and_has_everything() {
    let home = Home::new();
    let head = home.path().join("kai.head");
    assert_eq!(home.start().stop("-TERM").0, Some(0));
    assert!(!head.exists(), "an empty ledger has no end to note");
    assert_eq!(home.verify()["whole"], true, "an empty ledger is whole");
    home.remember("k0");
    assert_eq!(home.noted(), 2, "a command notes the end");
    let daemon = home.start();
    home.remember("k1");
    assert_eq!(daemon.stop("-TERM").0, Some(0));
    assert_eq!(home.noted(), 4, "a daemon notes the end when it stops");
    for round in 2..6 {
        let mut daemon = home.start();
        home.remember(&format!("k{round}"));
        daemon.kill();
        let kept = home.run(&["memory", "list", "--json"]).json();
        assert_eq!(kept.as_array().unwrap().len(), round + 1, "a command works on what the dead daemon left");
        assert_eq!(home.verify()["whole"], true, "the note may be behind, which is no damage");
    }
    let daemon = home.start();
    wait_for("the tick's note", || home.noted() == 12);
    drop(daemon);
    let mode = std::fs::metadata(head).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "the note is the owner's alone");
}

/// Who puts the page on a network is told what that means, and every look at Kai says so.
#[test]
fn the_page_is_where_it_was_asked_to_be_and_says_who_can_reach_it() {
    let (one, two) = (Home::new(), Home::new());
    let daemon = one.start();
    let port = daemon.address.rsplit_once(':').unwrap().1;
    two.run(&["serve", "--port", port]).refused(1, "Choose another port");
    // Whoever has 8787 now, us or somebody else: it is taken.
    let _taken = std::net::TcpListener::bind(("127.0.0.1", 8787));
    let moved = Daemon::start(kai(two.path()).arg("serve"));
    let port: u16 = moved.address.rsplit_once(':').unwrap().1.parse().unwrap();
    assert!((8788..8798).contains(&port), "the usual port is taken, so the next free one is used: {port}");

    assert!(
        !one.run(&["doctor"]).out.contains("on the network can reach"),
        "on loopback there is nothing to say"
    );
    assert!(!daemon.stop("-TERM").1.contains("is not encrypted"), "nor in the log");
    let daemon = Daemon::start(kai(one.path()).args(["serve", "--bind", "0.0.0.0", "--port", "0"]));
    let status = one.run(&["status", "--json"]).json();
    let (page, bound) = (&status["daemon"]["address"], &status["daemon"]["bound"]);
    assert!(page.as_str().unwrap().starts_with("http://127.0.0.1:"), "{status}");
    assert!(bound.as_str().unwrap().starts_with("0.0.0.0:"), "{status}");
    let checks = one.run(&["doctor"]).out;
    assert!(checks.contains("other machines on the network can reach its page"), "{checks}");
    let (_, log) = daemon.stop("-TERM");
    assert!(log.contains("The page at 0.0.0.0:") && log.contains("page=0.0.0.0:"), "{log}");
}
