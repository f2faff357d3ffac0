use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use zbus::fdo::RequestNameFlags;

use super::*;

#[test]
fn markup_becomes_text() {
    for (text, expected) in [
        ("plain", "plain"),
        ("a < b & c > d", "a &lt; b &amp; c &gt; d"),
        ("<a href=\"x\">&lt;</a>", "&lt;a href=\"x\"&gt;&amp;lt;&lt;/a&gt;"),
    ] {
        assert_eq!(escaped(text), expected, "{text}");
    }
}

fn shown(server: &str, id: u32, key: Option<&str>, leads_to: Option<Place>) -> Shown {
    Shown { server: server.to_owned(), id, key: key.map(str::to_owned), leads_to, activation: None }
}

#[test]
fn the_last_one_with_a_key_is_replaced_while_it_is_there() {
    let mut board = Board::default();
    assert_eq!(board.replaces(":1.5", Some("report")), 0, "nothing is shown");
    board.posted(shown(":1.5", 7, Some("report"), None));
    board.posted(shown(":1.5", 8, None, None));
    assert_eq!(board.replaces(":1.5", Some("report")), 7);
    assert_eq!(board.replaces(":1.5", Some("alarm")), 0, "another key");
    assert_eq!(board.replaces(":1.5", None), 0, "no key");
    assert_eq!(board.replaces(":1.9", Some("report")), 0, "a desktop that started since counts anew");
    board.posted(shown(":1.5", 7, Some("report"), None));
    assert_eq!(board.shown.len(), 2, "replaced by the same number");
    board.heard(":1.9", Signal::Closed { id: 7 });
    assert_eq!(board.replaces(":1.5", Some("report")), 7, "somebody else's 7");
    board.heard(":1.5", Signal::Closed { id: 7 });
    assert_eq!(board.replaces(":1.5", Some("report")), 0, "closed, and its number may be another's soon");
    for id in 100..300 {
        board.posted(shown(":1.5", id, Some("x"), None));
    }
    assert_eq!(board.shown.len(), REMEMBERED);
}

#[test]
fn a_tap_is_one_on_our_own_notification() {
    let invoked = |id, action: &str| Signal::Invoked { id, action: action.to_owned() };
    let tap = |activation: Option<&str>| {
        Some(Tap { place: Place::Heartbeat, activation: activation.map(str::to_owned) })
    };
    let mut board = Board::default();
    board.posted(shown(":1.5", 7, Some("report"), Some(Place::Heartbeat)));
    board.posted(shown(":1.5", 8, None, None));
    assert_eq!(board.heard(":1.5", invoked(8, DEFAULT)), None, "it leads nowhere");
    assert_eq!(board.heard(":1.5", invoked(9, DEFAULT)), None, "another program's");
    assert_eq!(board.heard(":1.66", invoked(7, DEFAULT)), None, "not the desktop says so");
    assert_eq!(board.heard(":1.5", invoked(7, "reply")), None, "another action");
    assert_eq!(board.heard(":1.66", Signal::Activation { id: 7, token: "forged".to_owned() }), None);
    assert_eq!(board.heard(":1.5", invoked(7, DEFAULT)), tap(None));
    assert_eq!(board.heard(":1.5", Signal::Activation { id: 7, token: "t1".to_owned() }), None);
    assert_eq!(board.heard(":1.5", invoked(7, DEFAULT)), tap(Some("t1")));
    assert_eq!(board.heard(":1.5", invoked(7, DEFAULT)), tap(None), "a token is for one tap");
    board.heard(":1.5", Signal::Closed { id: 7 });
    assert_eq!(board.heard(":1.5", invoked(7, DEFAULT)), tap(None), "closed first, told of the tap after");
}

/// A session bus for one test.
pub(in crate::desktop) struct Bus {
    daemon: Child,
    pub(in crate::desktop) address: String,
}

impl Bus {
    pub(in crate::desktop) fn start() -> Self {
        let mut daemon = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--nopidfile", "--print-address=1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(daemon.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
        Self { daemon, address: address.trim().to_owned() }
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        drop(self.daemon.kill());
        drop(self.daemon.wait());
    }
}

/// A fake desktop with the newest part of the specification, which Debian's dunst does not support yet: it taps every
/// notification it is shown and sends a token with each tap. Takes its capabilities, and reports what it was shown.
async fn desktop(bus: &Bus, abilities: &'static [&'static str]) -> (JoinHandle<()>, mpsc::Receiver<Seen>) {
    let connection = zbus::connection::Builder::address(bus.address.as_str()).build().await.unwrap();
    let mut calls = MessageStream::from(&connection);
    let replacing = RequestNameFlags::ALLOW_REPLACEMENT | RequestNameFlags::REPLACE_EXISTING;
    connection.request_name_with_flags(NAME, replacing).await.unwrap();
    let (tell, told) = mpsc::channel(10);
    let played = tokio::spawn(async move {
        let mut number = 40_u32;
        while let Some(Ok(message)) = calls.next().await {
            let header = message.header();
            if header.message_type() != Type::MethodCall {
                continue;
            }
            if header.member().unwrap().as_str() == "GetCapabilities" {
                connection.reply(&header, &abilities.to_vec()).await.unwrap();
                continue;
            }
            number += 1;
            connection.reply(&header, &number).await.unwrap();
            let (_, replaces, _, title, _, actions, _, _): Arguments = message.body().deserialize().unwrap();
            tell.send((replaces, title, actions)).await.unwrap();
            // Sent only to the client that posted, as some desktops do.
            let (to, token) = (header.sender(), format!("token-{number}"));
            connection.emit_signal(to, PATH, NAME, "ActivationToken", &(number, token)).await.unwrap();
            connection.emit_signal(to, PATH, NAME, "ActionInvoked", &(number, DEFAULT)).await.unwrap();
        }
    });
    (played, told)
}

type Arguments = (String, u32, String, String, String, Vec<String>, HashMap<String, zbus::OwnedVariant>, i32);
type Seen = (u32, String, Vec<String>);

fn report(title: &str) -> Notification {
    Notification {
        title: title.to_owned(),
        message: "m".to_owned(),
        urgency: Urgency::Normal,
        key: Some("report".to_owned()),
        leads_to: Some(Place::Heartbeat),
    }
}

#[tokio::test]
async fn a_tap_brings_its_token_and_the_next_report_replaces_the_last() {
    let bus = Bus::start();
    let (_playing, mut told) = desktop(&bus, &["actions", "body"]).await;
    let kai = Desktop::on(bus.address.clone());
    let actions = vec![DEFAULT.to_owned(), OPEN.to_owned()];
    for (n, replaces) in [(41, 0), (42, 41), (43, 42)] {
        let title = format!("Report {n}");
        kai.notify(&report(&title)).await.unwrap();
        assert_eq!(told.recv().await.unwrap(), (replaces, title, actions.clone()));
        let activation = Some(format!("token-{n}"));
        assert_eq!(kai.tapped().await, Tap { place: Place::Heartbeat, activation });
    }
    // Another desktop takes over and numbers its notifications from the start.
    let (_playing, mut told) = desktop(&bus, &["actions"]).await;
    kai.notify(&report("Anew")).await.unwrap();
    assert_eq!(told.recv().await.unwrap().0, 0);
    assert_eq!(kai.tapped().await.activation.as_deref(), Some("token-41"));
}

#[tokio::test]
async fn a_desktop_without_actions_is_not_asked_for_any() {
    let bus = Bus::start();
    let (_playing, mut told) = desktop(&bus, &["body"]).await;
    let kai = Desktop::on(bus.address.clone());
    kai.notify(&report("Plain")).await.unwrap();
    assert_eq!(told.recv().await.unwrap(), (0, "Plain".to_owned(), vec![]));
    // This desktop reports a tap anyway. It leads nowhere, and the second notification is shown too.
    kai.notify(&report("Again")).await.unwrap();
    assert_eq!(told.recv().await.unwrap().1, "Again");
    assert_eq!(kai.line.lock().await.as_ref().unwrap().board.lock().await.shown[0].leads_to, None);
}

#[tokio::test]
async fn a_bus_that_came_back_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("unix:path={}", folder.path().join("bus").display());
    let start = || {
        let mut daemon = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--nopidfile", "--print-address=1", "--address", &address])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        BufReader::new(daemon.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
        Bus { daemon, address: address.clone() }
    };
    let bus = start();
    let kai = Desktop::on(address.clone());
    let (_first, mut told) = desktop(&bus, &["actions"]).await;
    kai.notify(&report("Before")).await.unwrap();
    assert_eq!(told.recv().await.unwrap().1, "Before");
    kai.tapped().await;
    drop(bus);
    drop(std::fs::remove_file(folder.path().join("bus")));
    assert!(
        kai.notify(&report("Nobody")).await.unwrap_err().to_string().contains("the desktop shows none now")
    );
    let bus = start();
    let (_second, mut told) = desktop(&bus, &["actions"]).await;
    kai.notify(&report("After")).await.unwrap();
    assert_eq!(
        told.recv().await.unwrap(),
        (0, "After".to_owned(), vec![DEFAULT.to_owned(), OPEN.to_owned()])
    );
    assert_eq!(kai.tapped().await.place, Place::Heartbeat);
}

/// Debian's dunst, on a virtual screen.
#[tokio::test]
async fn dunst_shows_one_report_at_a_time_and_tells_of_a_tap() {
    let bus = Bus::start();
    let mut screen = Command::new("Xvfb")
        .args(["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut display = String::new();
    BufReader::new(screen.stdout.as_mut().unwrap()).read_line(&mut display).unwrap();
    let mut dunst = Command::new("dunst")
        .args(["-conf", "/dev/null"])
        .env("DISPLAY", format!(":{}", display.trim()))
        .env("DBUS_SESSION_BUS_ADDRESS", &bus.address)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let dunstctl = |args: &'static [&'static str]| {
        let mut command = tokio::process::Command::new("dunstctl");
        command.args(args).env("DBUS_SESSION_BUS_ADDRESS", &bus.address);
        async move { String::from_utf8(command.output().await.unwrap().stdout).unwrap() }
    };
    while dunstctl(&["count", "displayed"]).await.trim() != "0" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let kai = Desktop::on(bus.address.clone());
    for title in ["First", "Second", "Third"] {
        kai.notify(&report(title)).await.unwrap();
    }
    let displayed = dunstctl(&["count", "displayed"]).await;
    assert_eq!(displayed.trim(), "1", "the third is in the place of the first");
    dunstctl(&["action"]).await;
    assert_eq!(kai.tapped().await, Tap { place: Place::Heartbeat, activation: None });
    for child in [&mut dunst, &mut screen] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
