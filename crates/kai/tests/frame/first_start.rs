//! What a person sees who starts Kai on a terminal for the first time.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::kit::{Done, Home, KAI, kai, wait_for};

/// Kai on a terminal of a desktop, whose programs are in this folder.
fn on_terminal(home: &Home, programs: &Path, arguments: &str, surroundings: &[(&str, &str)]) -> Child {
    let mut script = Command::new("script");
    script.args(["-qec", &format!("{KAI} {arguments}"), "/dev/null"]).env_clear();
    let path = std::env::var("PATH").unwrap();
    script.env("PATH", format!("{}:{path}", programs.display())).env("KAI_HOME", home.path());
    script.env("SHELL", "/bin/sh").env("DISPLAY", ":9").envs(surroundings.iter().copied());
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Everything that the terminal shows until Kai has stopped.
fn shown(home: &Home, child: Child, until: impl FnOnce()) -> String {
    wait_for("the daemon to answer", || home.run(&["status", "--json"]).json()["daemon"]["running"] == true);
    until();
    assert_eq!(home.run(&["stop"]).code, 0);
    let output = child.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().replace('\r', "")
}

#[test]
fn the_terminal_shows_a_short_link_what_is_missing_and_no_log() {
    let (home, programs) = (Home::new(), Home::new());
    let xdg_open = programs.path().join("xdg-open");
    std::fs::write(&xdg_open, "#!/bin/sh\necho \"$1\" >> \"${0%/*}/opened\"\n").unwrap();
    std::fs::set_permissions(&xdg_open, PermissionsExt::from_mode(0o755)).unwrap();
    let opened = || std::fs::read_to_string(programs.path().join("opened")).unwrap_or_default();

    let child = on_terminal(&home, programs.path(), "--port 0", &[]);
    let screen = shown(&home, child, || wait_for("the browser to open", || !opened().is_empty()));
    let first = screen.lines().next().unwrap();
    let token = first.split_once("/login?token=").unwrap().1;
    assert!(first.starts_with("Open http://127.0.0.1:") && token.len() == 14, "{first}");
    assert!(screen.contains("Not connected yet: a model (kai models get"), "{screen}");
    assert!(
        !screen.contains("INFO") && !screen.contains("▀"),
        "no log, and no QR code on loopback: {screen}"
    );
    assert!(
        opened().contains("/login?token=") && !opened().contains(token),
        "a link of its own: {}",
        opened()
    );

    std::fs::remove_file(programs.path().join("opened")).unwrap();
    let ssh = [("SSH_CONNECTION", "192.0.2.1 1 192.0.2.2 22")];
    let child = on_terminal(&home, programs.path(), "serve --port 0 --log info --bind 127.0.0.1", &ssh);
    let screen = shown(&home, child, || {});
    assert!(screen.contains("INFO"), "asked for: {screen}");
    assert_eq!(home.run(&["settings", "set", "open_browser", "false"]).code, 0);
    let child = on_terminal(&home, programs.path(), "serve --port 0 --bind 0.0.0.0", &[]);
    let screen = shown(&home, child, || {});
    assert!(!screen.contains('▀'), "no name that another device could use: {screen}");
    assert_eq!(home.run(&["settings", "set", "allowed_hosts", "kai.lan"]).code, 0);
    let child = on_terminal(&home, programs.path(), "serve --port 0 --bind 0.0.0.0", &[]);
    let screen = shown(&home, child, || {});
    assert!(screen.contains('▀'), "{screen}");
    assert_eq!(opened(), "", "neither over SSH nor when it is off");
}

#[test]
fn open_can_start_kai() {
    let (home, programs) = (Home::new(), Home::new());
    let xdg_open = programs.path().join("xdg-open");
    std::fs::write(&xdg_open, "#!/bin/sh\necho \"$1\" >> \"${0%/*}/opened\"\n").unwrap();
    std::fs::set_permissions(&xdg_open, PermissionsExt::from_mode(0o755)).unwrap();
    let opened = || std::fs::read_to_string(programs.path().join("opened")).unwrap_or_default();
    let open = |words: &[&str]| -> Done {
        let mut command = kai(home.path());
        let path = format!("{}:{}", programs.path().display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("DISPLAY", ":9").arg("open").args(words).output().unwrap().into()
    };
    open(&[]).refused(1, "Kai is not running");
    for times in 1..=2 {
        let done = open(&["--start"]);
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
        wait_for("the browser to open", || opened().lines().count() == times);
    }
    assert!(opened().lines().all(|link| link.contains("/login?token=")), "{}", opened());
    let log = home.path().join("logs/daemon.log");
    assert_eq!(std::fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("ready") && !text.contains("token="), "{text}");
    assert_eq!(home.run(&["stop"]).out, "Kai has stopped.\n");

    // What the daemon says when it cannot start is what the person reads.
    std::fs::write(home.path().join("kai.db"), "no store").unwrap();
    open(&["--start"]).refused(1, "Kai could not start. ");
}

#[test]
fn looking_at_an_empty_place_creates_nothing() {
    let folder = Home::new();
    let nowhere = folder.path().join("none/kai");
    let run = |place: &Path, words: &[&str]| Done::from(kai(place).args(words).output().unwrap());
    for place in [nowhere.as_path(), folder.path()] {
        let status = run(place, &["status", "--json"]);
        assert_eq!((status.code, status.err.as_str()), (0, ""), "{status:?}");
        assert_eq!(status.json()["home"], place.display().to_string());
        assert!(status.json()["key"].is_null() && status.json()["daemon"]["running"] == false);
        assert!(run(place, &["status"]).out.contains("does not exist yet"));
        assert_eq!(run(place, &["stop"]).out, "Kai is not running.\n");
        let doctor = run(place, &["doctor", "--json"]);
        assert_eq!((doctor.code, doctor.err.as_str()), (0, ""), "{doctor:?}");
        let checks = doctor.json();
        let check =
            |name: &str| checks.as_array().unwrap().iter().find(|check| check["name"] == name).cloned();
        assert_eq!(check("home").unwrap()["verdict"], "note");
        assert_eq!(check("disk").unwrap()["verdict"], "fine", "{doctor:?}");
        assert!(["key", "store", "ledger"].into_iter().all(|name| check(name).is_none()), "{doctor:?}");
        assert!(run(place, &["doctor"]).out.contains("does not exist yet"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{}", place.display());
    }
    assert_eq!(run(&nowhere, &["memory", "list"]).code, 0);
    assert_eq!(run(&nowhere, &["status", "--json"]).json()["key"], "file", "now it exists");
}

/// What a shell gets that asks what fits at the end of these words.
fn completed(home: &Home, words: &[&str]) -> Vec<String> {
    let mut command = kai(home.path());
    command.env("KAI_COMPLETE", "bash").env("_CLAP_IFS", "\n");
    command.env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    let done = Done::from(command.args(["--", "kai"]).args(words).output().unwrap());
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    done.out.lines().map(str::to_owned).collect()
}

#[test]
fn completions_know_what_is_there() {
    let home = Home::new();
    assert!(completed(&home, &["models", "add", "open"]).contains(&"openai".to_owned()));
    assert!(completed(&home, &["settings", "set", "open_b"]).contains(&"open_browser".to_owned()));
    assert_eq!(completed(&home, &["settings", "set", "theme", "d"]), ["dark"]);
    assert!(!completed(&home, &["tasks", "show", ""]).contains(&"1".to_owned()));
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "pressing Tab creates nothing");

    let daily = r#"{"description": "Persists", "prompt": "Water them.", "cron": "0 8 * * *"}"#;
    assert_eq!(home.run(&["tools", "call", "schedule_task", daily]).code, 0);
    home.remember("tea");
    let offered = || {
        assert!(completed(&home, &["tasks", "show", ""]).contains(&"1".to_owned()));
        assert!(completed(&home, &["memory", "forget", "t"]).contains(&"tea".to_owned()));
    };
    offered();
    let daemon = home.start();
    offered();
    drop(daemon);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.run(&["completions", shell]);
        assert!(script.code == 0 && script.out.contains("KAI_COMPLETE"), "{script:?}");
    }
    let mut bash = Command::new("bash").args(["--norc", "-n"]).stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(
        &mut bash.stdin.take().unwrap(),
        home.run(&["completions", "bash"]).out.as_bytes(),
    )
    .unwrap();
    assert!(bash.wait().unwrap().success());
}

#[test]
fn deleting_a_chat_asks_on_a_terminal() {
    let provider = crate::provider::Provider::start([crate::provider::Act::says("Hello.")]);
    let home = Home::new();
    let address = ["--base-url", &provider.base_url, "--model", "m"];
    home.run(&[&["models", "add", "openai-compatible", "--name", "mine"], &address[..]].concat());
    assert_eq!(home.run(&["ask", "hi"]).code, 0);
    let no = home.type_at("chats delete 1", "n\n");
    assert!(no.code == 1 && no.out.contains("Delete chat 1 (hi)?"), "{no:?}");
    assert_eq!(home.run(&["chats", "list", "--json"]).json().as_array().unwrap().len(), 1);
    let yes = home.type_at("chats delete 1", "y\n");
    assert!(yes.code == 0 && yes.out.contains("Deleted chat 1."), "{yes:?}");
    assert_eq!(home.run(&["chats", "undo"]).code, 0);
    assert_eq!(home.run(&["chats", "list", "--json"]).json().as_array().unwrap().len(), 1);
}
