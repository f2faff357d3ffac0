//! The daemon: one per home, clean stops, hard kills, and a log without secrets.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::time::Duration;

use crate::kit::{CUT_OFF, Daemon, Home, kai};

#[test]
fn stops_cleanly_and_quickly_with_nothing_lost() {
    for signal in ["-INT", "-TERM"] {
        let home = Home::new();
        let daemon = home.start();
        home.run(&["tools", "call", "memory_store", r#"{"key": "a", "content": "b"}"#]);
        let (code, log) = daemon.stop(signal);
        assert_eq!(code, Some(0), "{signal}: {log}");
        assert!(log.contains("stopped") && !log.contains(CUT_OFF), "{log}");
        assert!(!home.path().join("kai.sock").exists(), "the socket is put away");
        assert!(!home.path().join("kai.db-wal").exists(), "the log is folded in");
        assert_eq!(home.run(&["memory", "list"]).out, "a  b\n");
    }
}

#[test]
fn kai_stop_is_over_when_the_daemon_is_gone() {
    let home = Home::new();
    let nobody = home.run(&["stop"]);
    assert_eq!((nobody.code, nobody.out.as_str()), (0, "Kai does not run.\n"), "{nobody:?}");
    let daemon = home.start();
    assert_eq!(home.run(&["stop", "--json"]).json(), serde_json::json!({"stopped": true}));
    assert!(!home.path().join("kai.sock").exists() && !home.path().join("kai.db-wal").exists());
    let (code, log) = daemon.ended();
    assert!(code == Some(0) && log.contains("stopped") && !log.contains(CUT_OFF), "{log}");
    let again = home.start();
    assert_eq!(home.run(&["stop"]).out, "Kai has stopped.\n", "the next one can start at once");
    assert_eq!(again.ended().0, Some(0));
}

#[cfg(feature = "foss")]
#[test]
fn the_demo_is_stopped_by_its_own_name() {
    let home = Home::new();
    home.run(&["stop", "--demo"]).refused(1, "The demo does not run");
    let real = home.start();
    let demo = Daemon::start(kai(home.path()).args(["serve", "--demo", "--port", "0"]));
    assert_eq!(home.run(&["stop"]).out, "Kai has stopped.\n");
    assert_eq!(real.ended().0, Some(0));
    let which = home.run(&["stop"]).out;
    assert_eq!(which, "Kai does not run. The demo does; stop it with: kai stop --demo\n");
    assert_eq!(home.run(&["stop", "--demo"]).out, "Kai has stopped.\n");
    assert_eq!(demo.ended().0, Some(0));
}

#[test]
fn a_browser_that_holds_the_line_does_not_hold_up_the_stop() {
    let home = Home::new();
    let daemon = home.start();
    let mut idle = std::net::TcpStream::connect(&daemon.address).unwrap();
    idle.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n").unwrap();
    let socket = UnixStream::connect(home.path().join("kai.sock")).unwrap();
    let (code, log) = daemon.stop("-TERM");
    assert_eq!(code, Some(0), "{log}");
    drop((idle, socket));
}

#[test]
fn a_second_start_says_who_is_there() {
    let home = Home::new();
    let daemon = home.start();
    let second = home.run(&["serve", "--port", "0"]);
    second.refused(1, "already runs");
    assert!(second.err.contains(&daemon.address), "{second:?}");
}

#[test]
fn after_kill_9_the_next_start_works_and_has_everything() {
    let home = Home::new();
    for round in 0..5 {
        let mut daemon = home.start();
        let argument = format!(r#"{{"key": "k{round}", "content": "kept"}}"#);
        assert_eq!(home.run(&["tools", "call", "memory_store", &argument]).code, 0);
        daemon.kill();
        let kept = home.run(&["memory", "list", "--json"]).json();
        assert_eq!(kept.as_array().unwrap().len(), round + 1, "a command works on what the dead daemon left");
    }
}

#[test]
fn systemd_is_told() {
    let home = Home::new();
    let path = home.path().join("notify");
    let notify = UnixDatagram::bind(&path).unwrap();
    notify.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let daemon = Daemon::start(kai(home.path()).env("NOTIFY_SOCKET", &path).args(["--port", "0"]));
    let heard = || {
        let mut bytes = [0; 200];
        let length = notify.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    };
    assert_eq!(heard().trim(), "READY=1");
    daemon.stop("-TERM");
    assert_eq!(heard().trim(), "STOPPING=1");
}

#[test]
fn the_log_is_structured_and_tells_no_secret() {
    let home = Home::new();
    let command = &mut kai(home.path());
    let daemon =
        Daemon::start(command.env("KAI_LOG", "trace").args(["serve", "--port", "0", "--log-format", "json"]));
    let (token, cookie) = (daemon.token(), daemon.sign_in());
    daemon.get("/", &cookie);
    home.run(&["tools", "call", "memory_store", r#"{"key": "pin", "content": "the heron stands"}"#]);
    let (_, log) = daemon.stop("-TERM");
    for line in log.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    }
    assert!(log.contains("ready"));
    for secret in [token.as_str(), cookie.split_once('=').unwrap().1, "the heron stands"] {
        assert!(!log.contains(secret), "the log tells {secret}");
    }
}

#[test]
fn only_the_owner_reaches_home_and_socket() {
    let home = Home::new();
    let deeper = home.path().join("new home");
    let _daemon = Daemon::start(kai(&deeper).args(["--port", "0"]));
    let mode = |name: &str| std::fs::metadata(deeper.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(""), 0o700);
    for private in ["kai.sock", "kai.key", "kai.db", "kai.lock"] {
        assert_eq!(mode(private), 0o600, "{private}");
    }
}

#[test]
fn a_home_deeper_than_a_socket_address_is_long_works() {
    let home = Home::new();
    let deep = home.path().join("d".repeat(120)).join("e".repeat(60));
    let _daemon = Daemon::start(kai(&deep).args(["--port", "0"]));
    let status = kai(&deep).args(["status", "--json"]).output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["daemon"]["running"], true);
}

/// A core dump would hold the key. Checked where the person, or the system, allows dumps of any size.
#[cfg(target_os = "linux")]
#[test]
fn a_crash_leaves_no_core() {
    let home = Home::new();
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "ulimit -c unlimited; exec \"$0\" --home \"$1\" serve --port 0"]);
    let daemon = Daemon::start(shell.args([crate::kit::KAI.as_ref(), home.path()]));
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", daemon.pid())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
    let unit = include_str!("../../../../packaging/kai.service");
    assert!(unit.lines().any(|line| line == "LimitCORE=0"));
}

#[test]
fn a_port_that_is_taken_is_said_and_the_usual_one_moves_up() {
    let (one, two) = (Home::new(), Home::new());
    let daemon = one.start();
    let port = daemon.address.rsplit_once(':').unwrap().1;
    let refused = two.run(&["serve", "--port", port]);
    refused.refused(1, "Name another port");
    // Whoever has 8787 now, us or somebody else: it is taken.
    let _taken = std::net::TcpListener::bind(("127.0.0.1", 8787));
    let moved = Daemon::start(kai(two.path()).arg("serve"));
    let port: u16 = moved.address.rsplit_once(':').unwrap().1.parse().unwrap();
    assert!((8788..8798).contains(&port), "{port}");
}

/// Who puts the page on a network is told what that means, and every look at Kai says so.
#[test]
fn a_page_on_the_network_is_said_to_be_one() {
    let home = Home::new();
    let daemon = Daemon::start(kai(home.path()).args(["serve", "--bind", "0.0.0.0", "--port", "0"]));
    let status = home.run(&["status", "--json"]).json();
    let (page, bound) = (&status["daemon"]["address"], &status["daemon"]["bound"]);
    assert!(page.as_str().unwrap().starts_with("http://127.0.0.1:"), "{status}");
    assert!(bound.as_str().unwrap().starts_with("0.0.0.0:"), "{status}");
    let checks = home.run(&["doctor"]).out;
    assert!(checks.contains("can be reached from the network"), "{checks}");
    let (_, log) = daemon.stop("-TERM");
    assert!(log.contains("The page listens on 0.0.0.0:") && log.contains("page=0.0.0.0:"), "{log}");
    let daemon = home.start();
    assert!(!home.run(&["doctor"]).out.contains("from the network"));
    assert!(!daemon.stop("-TERM").1.contains("The page listens on"));
}
