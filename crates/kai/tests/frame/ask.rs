//! `kai ask`, `kai chat`, `kai models`: turns with a scripted server, as a person would have them.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::kit::{Done, Home, kai, wait_for};
use crate::provider::{Act, Asked, Provider};

/// A home whose only model is this server.
pub(crate) fn with_model(provider: &Provider) -> Home {
    let home = Home::new();
    let added = home.run(&[
        "models",
        "add",
        "openai-compatible",
        "--name",
        "mine",
        "--base-url",
        &provider.base_url,
        "--model",
        "m",
    ]);
    assert_eq!(added.code, 0, "{added:?}");
    // A daemon's own heartbeat would take its part of the script, depending on the hour.
    home.run(&["settings", "set", "heartbeat_enabled", "false"]);
    home
}

pub(crate) fn piped(home: &Home, args: &[&str], input: &str) -> Done {
    let mut command = kai(home.path());
    let mut child = command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Kai may have heard enough before the end.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    child.wait_with_output().unwrap().into()
}

/// Signals, kills and two processes at one conversation.
#[test]
fn turns_are_stopped_and_never_doubled_across_processes() {
    ctrl_c_cancels_closes_the_connection_and_keeps_the_words();
    a_daemon_that_stops_ends_the_turn_with_a_sentence();
    a_second_turn_in_a_busy_conversation_is_refused();
}

/// What is read from a pipe and from a keyboard, and what a terminal shows meanwhile.
#[test]
fn a_chat_is_had_on_a_pipe_and_on_a_terminal() {
    a_chat_is_several_turns_and_fails_softly();
    a_chat_that_fails_before_it_begins_does_not_slip_into_another();
    what_is_typed_while_an_answer_runs_is_said_next();
    waiting_is_seen_on_a_terminal_only();
    on_a_terminal_the_key_is_asked_for_and_not_shown();
}

fn ctrl_c_cancels_closes_the_connection_and_keeps_the_words() {
    for served in [false, true] {
        let provider = Provider::start([Act::Hang, Act::says("Now.")]);
        let home = with_model(&provider);
        let daemon = served.then(|| home.start());
        let mut command = kai(home.path());
        let asking = command
            .args(["ask", "wait for it"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        provider.wait_for_requests(1);
        Command::new("kill").args(["-INT", &asking.id().to_string()]).status().unwrap();
        let done = Done::from(asking.wait_with_output().unwrap());
        done.refused(1, "Cancelled");
        provider.wait_for_hang_ups(1);
        let next = home.run(&["ask", "--last", "go on"]);
        assert_eq!((next.code, next.out.as_str()), (0, "Now.\n"), "{next:?}");
        let said = provider.asked()[1].body["messages"].to_string();
        assert!(said.contains("wait for it") && said.contains("go on"), "{said}");
        drop(daemon);
    }
}

fn a_daemon_that_stops_ends_the_turn_with_a_sentence() {
    let provider = Provider::start([Act::Hang]);
    let home = with_model(&provider);
    let daemon = home.start();
    let mut command = kai(home.path());
    let asking = command
        .args(["ask", "hm"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    provider.wait_for_requests(1);
    assert_eq!(daemon.stop("-TERM").0, Some(0));
    Done::from(asking.wait_with_output().unwrap()).refused(1, "shutting down");
}

fn a_second_turn_in_a_busy_conversation_is_refused() {
    for served in [false, true] {
        second_turn(served);
    }
}

fn second_turn(served: bool) {
    let provider = Provider::start([Act::says("One."), Act::Hang]);
    let home = with_model(&provider);
    let daemon = served.then(|| home.start());
    home.run(&["ask", "first"]);
    let mut command = kai(home.path());
    let mut asking = command
        .args(["ask", "--chat", "1", "long"])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    provider.wait_for_requests(2);
    home.run(&["ask", "--chat", "1", "me too"]).refused(1, "already answering in this chat");
    home.run(&["chats", "delete", "1", "--yes"]).refused(1, "already answering in this chat");
    asking.kill().unwrap();
    asking.wait().unwrap();
    home.run(&["ask", "--chat", "99", "x"]).refused(1, "no chat number 99");
    wait_for("a killed turn to hold nothing", || home.run(&["chats", "delete", "1", "--yes"]).code == 0);
    drop(daemon);
}

fn a_chat_is_several_turns_and_fails_softly() {
    let html = Act::status("401 Unauthorized", "application/json", r#"{"error":{"message":"no"}}"#);
    let provider = Provider::start([Act::says("Hello."), html, Act::says("Again."), Act::says("Other.")]);
    let home = with_model(&provider);
    let done = piped(&home, &["chat"], "hi\nfail\nonce more\n/new\nelse\n");
    assert_eq!((done.code, done.out.as_str()), (0, "Hello.\nAgain.\nOther.\n"), "{done:?}");
    assert!(done.err.contains("doesn’t accept the API key of"), "{done:?}");
    let listed = home.run(&["chats", "list", "--json"]).json();
    let titles: Vec<&str> = listed.as_array().unwrap().iter().map(|c| c["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["else", "hi"]);
    let found = home.run(&["chats", "search", "FAIL"]).out;
    assert!(found.starts_with("1  ") && found.ends_with("  hi\n") && found.lines().count() == 1, "{found}");
    assert_eq!(home.run(&["chats", "delete", "1", "--yes"]).code, 0);
    home.run(&["chats", "delete", "1", "--yes"]).refused(1, "no chat");
}

fn what_is_typed_while_an_answer_runs_is_said_next() {
    let first = Act::says_in_steps(&["One", "."]);
    let provider = Provider::start([first, Act::says("Two."), Act::says("Three.")]);
    let home = with_model(&provider);
    let mut chat = home.terminal("chat");
    let mut keyboard = chat.stdin.take().unwrap();
    keyboard.write_all(b"first\n").unwrap();
    provider.wait_for_requests(1);
    keyboard.write_all(b"second\nthird\n").unwrap();
    provider.go_on(2);
    provider.wait_for_requests(3);
    let last = |asked: &Asked| asked.body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let said: Vec<_> = provider.asked().iter().map(last).collect();
    assert_eq!(said, ["first", "second", "third"]);
    wait_for("the end of the chat", || {
        drop(keyboard.write_all(b"\x04"));
        chat.try_wait().unwrap().is_some()
    });
}

/// On a terminal a line says that Kai is at it, and goes when the answer comes. Into a pipe it says nothing.
fn waiting_is_seen_on_a_terminal_only() {
    let provider = Provider::start([Act::says_in_steps(&["", "Done."])]);
    let home = with_model(&provider);
    // This one waits even longer.
    let mut piped = kai(home.path());
    piped.args(["ask", "again"]).stdin(Stdio::null());
    let piped = piped.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    provider.wait_for_requests(1);
    let mut asking = home.terminal("ask hello");
    let (keyboard, mut screen) = (asking.stdin.take(), asking.stdout.take().unwrap());
    let mut seen = vec![];
    let shows = |seen: &[u8], words: &str| String::from_utf8_lossy(seen).contains(words);
    while !shows(&seen, "Waiting for an answer (Ctrl-C to stop) … 2 s") {
        let mut piece = [0; 4096];
        let length = screen.read(&mut piece).unwrap();
        assert_ne!(length, 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&piece[..length]);
    }
    provider.go_on(4);
    screen.read_to_end(&mut seen).unwrap();
    drop(keyboard);
    let cleared = shows(&seen, "\r\u{1b}[KDone.");
    assert!(asking.wait().unwrap().success() && cleared, "{:?}", String::from_utf8_lossy(&seen));
    let piped = Done::from(piped.wait_with_output().unwrap());
    assert_eq!((piped.out.as_str(), piped.err.as_str()), ("Done.\n", ""));
}

fn on_a_terminal_the_key_is_asked_for_and_not_shown() {
    for (arguments, question, typed, ready) in [
        ("models add openai", "API key for OpenAI: ", "sk-typed-key\n", true),
        ("models add gemini --key-stdin", "API key for Google Gemini: ", "sk-typed-key\n", true),
        ("models add openai", "API key for OpenAI: ", "\n", false),
        (
            "models add openai-compatible --base-url https://models.example/v1 --model m",
            "API key for https://models.example/v1: ",
            "\n",
            true,
        ),
        ("models add openai-compatible --base-url http://127.0.0.1:9/v1 --model m", "", "", true),
        ("models add ollama --model m", "", "", true),
    ] {
        let home = Home::new();
        let added = home.type_at(arguments, typed);
        assert_eq!(added.code, 0, "{arguments}: {added:?}");
        assert!(added.out.contains(question) && !added.out.contains("sk-typed"), "{arguments}: {added:?}");
        assert_eq!(added.out.contains("API key for "), !question.is_empty(), "{arguments}: {added:?}");
        assert_eq!(
            added.out.contains("Try: kai models add openai, or set OPENAI_API_KEY"),
            !ready,
            "{added:?}"
        );
        let row = home.run(&["models", "list", "--json"]).json()[0].clone();
        let keyed = typed.contains("sk-typed-key");
        assert_eq!((&row["ready"], &row["has_key"]), (&json!(ready), &json!(keyed)), "{arguments}");
    }
}

fn a_chat_that_fails_before_it_begins_does_not_slip_into_another() {
    let provider = Provider::start([Act::says("One."), Act::says("Two.")]);
    let home = with_model(&provider);
    home.run(&["ask", "private old words"]);
    home.run(&["models", "remove", "mine"]);
    let mut command = kai(home.path());
    let mut child = command
        .arg("chat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"nobody is there\n").unwrap();
    let mut complaints = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(complaints.any(|line| line.contains("No model is set up")));
    let added =
        home.run(&["models", "add", "openai-compatible", "--base-url", &provider.base_url, "--model", "m"]);
    assert_eq!(added.code, 0, "{added:?}");
    input.write_all(b"hello\n").unwrap();
    drop(input);
    let done = Done::from(child.wait_with_output().unwrap());
    assert_eq!(done.out, "Two.\n", "{done:?}");
    let said = provider.asked().pop().unwrap().body["messages"].to_string();
    assert!(said.contains("hello") && !said.contains("private old words"), "{said}");
}
