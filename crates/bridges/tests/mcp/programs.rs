//! Servers that are programs: how they are started, called and ended.

use std::process::{Command, Stdio};
use std::sync::Mutex;

use kai_assistant::mcp::port::{Connector, LinkError, LinkEvent, Transport};
use kai_bridges::mcp::{Leash, McpConnector};
use serde_json::json;
use tokio::sync::Notify;

use super::*;

#[tokio::test]
async fn tools_are_listed_over_pages_and_called() {
    let server = connected(lying("honest")).await;
    assert_eq!(server.calls_itself.as_written(), "Liar of 1");
    assert_eq!(names(&server), ["echo", "wait", "env"]);
    let reads: Vec<bool> = server.tools.iter().map(|tool| tool.read_only).collect();
    assert_eq!(reads, [true, false, false]);
    let (seen, heard) = (Mutex::new(Vec::new()), Notify::new());
    let progress = |words: Untrusted| {
        seen.lock().unwrap().push(words.as_written().to_owned());
        heard.notify_one();
    };
    let arguments = json!({"text": "Grüße"}).as_object().unwrap().clone();
    let (answer, listed) = tokio::join!(server.link.call("echo", arguments, &progress), async {
        heard.notified().await;
        server.link.tools().await
    });
    assert_eq!(answer.unwrap().text.as_written(), "Grüße");
    assert_eq!(*seen.lock().unwrap(), ["1/2 half way"]);
    assert_eq!(listed.unwrap(), server.tools);
}

#[tokio::test]
async fn a_program_sees_only_what_it_is_given() {
    let server = connected(lying("honest")).await;
    let seen = text(&server, "env").await;
    let seen: Vec<&str> = seen.lines().collect();
    assert_eq!(seen, ["LIAR=honest", "PATH=/usr/bin:/bin"]);
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled() {
    let server = connected(lying("honest")).await;
    let complaints =
        || -> Vec<String> { server.link.stderr().iter().map(|line| line.as_written().to_owned()).collect() };
    let begun = happens("the call begins", || complaints().contains(&"I wait".to_owned()));
    tokio::select! {
        answer = call(&server, "wait") => panic!("it answered: {answer:?}"),
        () = begun => {}
    }
    happens("the server is told", || complaints().iter().any(|line| line.starts_with("cancelled "))).await;
    assert!(text(&server, "env").await.contains("LIAR"), "the next call works");
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named() {
    for (command, why) in [
        ("no-such-program", "it is not installed, or not in PATH"),
        ("/nowhere/program", "there is no such file"),
        ("/etc/passwd", "it is not a program"),
    ] {
        let transport = Transport::Stdio { command: command.to_owned(), args: vec![] };
        let expected = LinkError::NotStarted { command: command.to_owned(), why: why.to_owned() };
        assert_eq!(refused(launch(transport, &[])).await, expected);
    }
    let gone = McpConnector::new(environment(), Leash::of("/nowhere/kai", []));
    let error = gone.connect(lying("honest")).await.err().unwrap();
    assert!(matches!(error, LinkError::NotStarted { .. }), "{error}");
}

#[tokio::test]
async fn a_program_that_ends_leaves_its_last_words() {
    let ended = LinkError::Ended { last_words: untrusted("no such database") };
    assert_eq!(refused(lying("exit")).await, ended);
    let transport = Transport::Stdio { command: "true".to_owned(), args: vec![] };
    assert_eq!(refused(launch(transport, &[])).await, LinkError::Ended { last_words: untrusted("") });
    let server = connected(lying("dies")).await;
    let ended = LinkError::Ended { last_words: untrusted("I die") };
    assert_eq!(call(&server, "do").await, Err(ended.clone()));
    assert_eq!(server.link.event().await, LinkEvent::Ended(ended.clone()));
    assert_eq!(call(&server, "do").await, Err(ended.clone()), "nothing more is asked of it");
    assert_eq!(server.link.tools().await, Err(ended));
}

/// Also one that ignores its closed input, with and without a leash.
#[tokio::test]
async fn a_program_ends_with_its_connection() {
    let unheld = McpConnector::new(environment(), Leash::none());
    for (way, connector) in [("plain", connector()), ("deaf", connector()), ("deaf", unheld)] {
        let server = connector.connect(lying(way)).await.unwrap_or_else(|error| panic!("{error}"));
        let pid = text(&server, "do").await;
        assert!(runs(&pid));
        drop(server);
        happens("the program ends", || !runs(&pid)).await;
    }
}

/// What a program started itself is in its process group and ends with it.
#[tokio::test]
async fn children_of_a_program_end_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("pids");
    let script = format!("sleep 600 & echo $! > {0}; echo $$ >> {0}; exec cat", log.display());
    let transport = Transport::Stdio { command: "sh".to_owned(), args: vec!["-c".to_owned(), script] };
    let read = || std::fs::read_to_string(&log).unwrap_or_default();
    let connector = connector();
    tokio::select! {
        answer = connector.connect(launch(transport, &[])) => panic!("{:?}", answer.err()),
        () = happens("it starts", || read().lines().count() == 2) => {}
    }
    for pid in read().lines() {
        happens("it ends", || !runs(pid)).await;
    }
}

/// Plays a Kai that is killed: connects to a server that ignores its closed input, says its number, and waits.
#[test]
#[ignore = "another test starts it, as a Kai that is killed"]
fn play_kai() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let server = connected(lying("deaf")).await;
        let pid = text(&server, "do").await;
        // More than the pipes hold, so that the leash cannot pass it on: it has to notice our end nevertheless.
        let arguments = json!({"text": "x".repeat(1024 * 1024)}).as_object().unwrap().clone();
        std::process::Command::new("kill").args(["-STOP", &pid]).status().unwrap();
        let call = server.link.call("do", arguments, &|_| {});
        let say = async {
            std::io::Write::write_all(&mut std::io::stdout(), format!("\npid {pid}\n").as_bytes()).unwrap();
            std::future::pending::<()>().await;
        };
        tokio::select! { _ = call => {}, () = say => {} }
    });
}

#[tokio::test]
async fn a_program_ends_when_kai_is_killed() {
    let mut kai = Command::new(std::env::current_exe().unwrap())
        .args(part("programs::play_kai"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = std::io::BufReader::new(kai.stdout.take().unwrap());
    let mut said = std::io::BufRead::lines(out).map_while(Result::ok);
    let pid = said.find_map(|line| line.strip_prefix("pid ").map(str::to_owned)).unwrap();
    assert!(runs(&pid));
    kai.kill().unwrap();
    kai.wait().unwrap();
    happens("the program ends", || !runs(&pid)).await;
}
