//! A provider and a phone that behave badly.

use std::time::Instant;

use super::{asked_for, kilobytes};
use crate::ask::with_model;
use crate::kit::wait_for;
use crate::provider::{Act, Provider};

const MEGABYTE: u64 = 1 << 20;

#[test]
#[ignore = "a gigabyte, and a silence of minutes; scripts/soak runs it"]
fn whatever_a_provider_does_ends_in_a_sentence_and_little_memory() {
    let flood = asked_for("KAI_SOAK_FLOOD_MEGABYTES", 1024) * MEGABYTE;
    let words = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"blah blah blah \"}}]}\n\n";
    let cut = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n\
               data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\ndata: {\"cho";
    for (name, act) in [
        ("cuts in the middle", Act::Raw(cut.to_owned())),
        ("garbage", Act::Raw("\u{1}\u{2}\u{3} no HTTP at all\r\n\r\n".to_owned())),
        ("garbage in a stream", Act::status("200 OK", "text/event-stream", "data: {{{{\n\ndata: \u{0}\n\n")),
        ("a gigabyte of words", Act::Floods(words.to_owned(), flood)),
        ("a gigabyte on one line", Act::Floods("data: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".to_owned(), flood)),
        ("a gigabyte of nothing", Act::Floods("\n\n".to_owned(), flood)),
        ("stalls", Act::Hang),
    ] {
        let provider = Provider::start([act]);
        let home = with_model(&provider);
        let daemon = home.start();
        let before = kilobytes(daemon.pid(), "VmHWM:");
        let began = Instant::now();
        let done = home.run(&["ask", "hello"]);
        let grown = kilobytes(daemon.pid(), "VmHWM:").saturating_sub(before);
        let said = done.err.lines().last().unwrap_or_default().to_owned();
        println!(
            "provider {name}: exit {} after {} s, {} requests, {} MiB taken, {grown} KiB more at most: {said}",
            done.code,
            began.elapsed().as_secs(),
            provider.asked().len(),
            provider.flooded() / MEGABYTE,
        );
        assert_eq!(done.code, 1, "{name}: {done:?}");
        assert!(said.ends_with('.'), "{name}: {done:?}");
        assert!(grown < 64 * 1024, "{name}: {grown} KiB");
        assert_eq!(home.run(&["status"]).code, 0, "{name}: the daemon goes on");
    }
}

#[cfg(feature = "foss")]
#[test]
#[ignore = "waits for a phone that hangs; scripts/soak runs it"]
fn a_phone_that_hangs_is_given_up_and_leaves_no_process() {
    let phone = crate::sms::ready();
    phone.program("termux-sms-list", r#"case "$*" in *--help*) exit 1;; esac; sleep 86477 & wait"#);
    let daemon = phone.start();
    let cookie = daemon.sign_in();
    let polling = phone.command().args(["sms", "poll"]).spawn().unwrap();
    let began = Instant::now();
    wait_for("the phone to hang", || !running("86477").is_empty());
    assert_eq!(daemon.get("/", &cookie).status, 200, "the page answers while the phone hangs");
    let done = polling.wait_with_output().unwrap();
    println!(
        "phone hangs: poll given up after {} s, exit {:?}",
        began.elapsed().as_secs(),
        done.status.code()
    );
    assert_eq!(done.status.code(), Some(1));
    wait_for("the end of what the phone had started", || running("86477").is_empty());
}

#[cfg(feature = "foss")]
/// The command lines that hold a word.
fn running(word: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(word)).collect()
}
