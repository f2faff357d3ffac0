//! What a lying server can do: each lie ends in one sentence or in a bounded list, and nothing waits for it.

use std::process::{Command, Stdio};

use kai_assistant::mcp::port::{Connector, LinkError, LinkEvent};

use super::*;

#[tokio::test]
async fn lists_are_bounded() {
    for (way, most) in [("many", 512), ("pages", 64)] {
        assert_eq!(connected(lying(way)).await.tools.len(), most, "{way}");
    }
    let long = connected(lying("long")).await;
    assert_eq!(long.tools[0].description.len(), 1_000);
    assert_eq!(names(&connected(lying("names")).await), ["fine"]);
    let bomb = connected(lying("bomb")).await;
    assert_eq!(names(&bomb), ["bomb", "fine"]);
    assert!(bomb.tools[0].schema.to_string().len() < 512 * 1024);
}

#[tokio::test]
async fn what_is_too_large_ends_the_connection() {
    assert_eq!(refused(lying("longer")).await, LinkError::TooLarge);
    let server = connected(lying("large")).await;
    assert_eq!(text(&server, "do").await.len(), 256 * 1024, "a large result is cut");
    let server = connected(lying("larger")).await;
    assert_eq!(call(&server, "do").await, Err(LinkError::TooLarge));
    assert_eq!(server.link.event().await, LinkEvent::Ended(LinkError::TooLarge));
}

#[tokio::test]
async fn answers_that_nobody_asked_for_change_nothing() {
    assert_eq!(names(&connected(lying("ids")).await), ["right"]);
    let server = connected(lying("twice")).await;
    assert_eq!(names(&server), ["do"]);
    let pid = text(&server, "do").await;
    assert_eq!(text(&server, "do").await, pid);
    let why = untrusted("I don't want to");
    assert_eq!(call(&server, "fail").await, Err(LinkError::Failed { why }));
    assert_eq!(text(&server, "do").await, pid, "an error leaves the connection as it is");
}

#[tokio::test]
async fn what_it_asks_for_is_declined() {
    let server = connected(lying("asks")).await;
    let answers = text(&server, "do").await;
    let expected = [r#"e:{"action":"decline"}"#, r#"r:{"roots":[]}"#, "s:-32601", "x:-32601"];
    assert_eq!(answers, expected.join(" "));
}

#[tokio::test]
async fn a_change_after_the_approval_is_told() {
    let server = connected(lying("changes")).await;
    assert_eq!(text(&server, "change").await, "changed");
    assert_eq!(server.link.event().await, LinkEvent::ToolsChanged);
    let now = server.link.tools().await.unwrap();
    assert_eq!(now[0].description, "now something else");
    assert_ne!(now[0].digest(), server.tools[0].digest());
}

#[tokio::test]
async fn garbage_ends_in_a_sentence() {
    let error = refused(lying("garbage")).await;
    assert!(matches!(error, LinkError::Garbled { .. }), "{error}");
    let error = refused(lying("shapes")).await;
    assert!(matches!(error, LinkError::Garbled { .. }), "{error}");
}

/// The time passes as soon as the server has been asked; nothing here waits for it.
#[tokio::test]
async fn who_does_not_answer_is_not_waited_for() {
    for (way, expected) in [
        ("silent", LinkError::Silent),
        ("mute", LinkError::Silent),
        ("deep", LinkError::Silent),
        ("usage", LinkError::Garbled { why: untrusted("usage: liar [-x]") }),
    ] {
        let connector = McpConnector::new(environment(), Leash::none());
        let folder = tempfile::tempdir().unwrap();
        let heard = folder.path().join("heard");
        let mut launch = if way == "silent" { silent() } else { lying(way) };
        launch.secrets.push((liar::HEARD.to_owned(), Secret::new(heard.to_str().unwrap())));
        let time_passes = async {
            happens("it is asked", || heard.exists()).await;
            tokio::time::pause();
            std::future::pending::<()>().await;
        };
        let error = tokio::select! {
            connected = connector.connect(launch) => connected.err().unwrap(),
            () = time_passes => unreachable!(),
        };
        assert_eq!(error, expected, "{way}");
        tokio::time::resume();
    }
}

/// A server without a word. Unlike the liar, whose frame prints a line.
fn silent() -> Launch {
    let script = "read line; : > \"$LIAR_HEARD\"; exec sleep 600".to_owned();
    launch(Transport::Stdio { command: "sh".to_owned(), args: vec!["-c".to_owned(), script] }, &[])
}

#[tokio::test]
async fn complaints_without_end_are_bounded() {
    let server = connected(lying("complains")).await;
    assert_eq!(text(&server, "do").await, "done");
    happens("all of them are read", || {
        server.link.stderr().last().is_some_and(|line| line.as_written().starts_with("line 199999"))
    })
    .await;
    assert_eq!(server.link.stderr().len(), 100);
}

/// Reads what a hostile server writes, and prints how much memory that took.
#[test]
#[ignore = "another test starts it, to measure it"]
#[expect(clippy::disallowed_methods, reason = "it is a program of its own")]
fn play_reader() {
    let Ok(way) = std::env::var("READ") else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let before = peak();
    let error = runtime.block_on(async {
        match connector().connect(lying(&way)).await {
            Ok(server) => call(&server, "do").await.err(),
            Err(error) => Some(error),
        }
    });
    let grown = peak() - before;
    let said = format!("\nread {:?} {grown}\n", error.map(|error| error.to_string()));
    std::io::Write::write_all(&mut std::io::stdout(), said.as_bytes()).unwrap();
}

/// The most memory that this process has used, in KB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn memory_is_bounded() {
    let deaf = LinkError::Garbled { why: untrusted("it asks and does not take the answers") };
    for (way, sentence) in [
        ("line", LinkError::TooLarge),
        ("longer", LinkError::TooLarge),
        ("flood", deaf.clone()),
        ("ids_long", deaf),
    ] {
        let ran = Command::new(std::env::current_exe().unwrap())
            .args(part("hostile::play_reader"))
            .env("READ", way)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        let line =
            said.lines().find_map(|line| line.strip_prefix("read ")).unwrap_or_else(|| panic!("{said}"));
        let (error, grown) = line.rsplit_once(' ').unwrap();
        assert_eq!(error, format!("{:?}", Some(sentence.to_string())), "{way}");
        assert!(grown.parse::<u64>().unwrap() < 64 * 1024, "{way} took {grown} KB");
    }
}
