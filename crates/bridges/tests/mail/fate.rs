//! What becomes of a draft when the server or the connection fails at each step.

use std::time::Duration;

use kai_assistant::email::account::{Credentials, Security};
use kai_assistant::outbox::{DraftState, Status};
use kai_assistant::secret::Secret;
use kai_bridges::mail::Limits;

use crate::desk::{Desk, envelope, strangers};
use crate::liar::Act::{Flood, Hang, Hear, HearMail, Say};
use crate::liar::{Act, Liar};
use crate::trouble::at;

/// Up to where the server waits for a mail.
const UNTIL_DATA: [Act; 9] = [
    Say("220 hi\r\n"),
    Hear,
    Say("250-hi\r\n250-SIZE 100000\r\n250 AUTH PLAIN LOGIN\r\n"),
    Hear,
    Say("235 in\r\n"),
    Hear,
    Say("250 sender\r\n"),
    Hear,
    Say("250 recipient\r\n"),
];

fn limits() -> Limits {
    Limits { answer: Duration::from_secs(1), whole: Duration::from_secs(3), ..Limits::default() }
}

#[tokio::test]
async fn a_draft_is_sent_failed_or_unknown_as_the_step_says() {
    let up_to = |count: usize, rest: &[Act]| -> Vec<Act> {
        UNTIL_DATA[..count].iter().chain(rest).cloned().collect()
    };
    let data = |rest: &[Act]| -> Vec<Act> {
        up_to(9, &[&[Hear, Say("354 go on\r\n"), HearMail][..], rest].concat())
    };
    for (name, script, expected, words) in [
        ("all is well", data(&[Say("250 2.0.0 queued\r\n"), Hear]), DraftState::Sent, ""),
        ("no goodbye", data(&[Say("250 queued\r\n")]), DraftState::Sent, ""),
        ("killed before 250", data(&[]), DraftState::Unknown, "connection broke"),
        ("silent before 250", data(&[Hang]), DraftState::Unknown, "did not say"),
        ("half an answer", data(&[Say("250 2.0.")]), DraftState::Unknown, "connection broke"),
        ("garbage", data(&[Flood("what?\r\n")]), DraftState::Unknown, "did not say"),
        (
            "refused at the end",
            data(&[Say("554 5.7.1 spam\r\n"), Hear]),
            DraftState::Failed,
            "554 5.7.1 spam",
        ),
        ("refused for now", data(&[Say("451 later\r\n"), Hear]), DraftState::Failed, "451 later"),
        ("killed before the data", up_to(9, &[Hear]), DraftState::Failed, "broke"),
        ("silent before the data", up_to(9, &[Hear, Hang]), DraftState::Failed, "did not answer"),
        ("no data wanted", up_to(9, &[Hear, Say("554 no\r\n"), Hear]), DraftState::Failed, "554 no"),
        ("refused sender", up_to(6, &[Say("550 not you\r\n"), Hear]), DraftState::Failed, "550 not you"),
        ("killed after the sender", up_to(6, &[]), DraftState::Failed, "broke"),
        ("wrong password", up_to(4, &[Say("535 no\r\n"), Hear]), DraftState::Failed, "535 no"),
        ("gone", vec![], DraftState::Failed, "broke"),
    ] {
        let liar = Liar::playing(script).await;
        let desk = Desk::new(strangers(limits()), at(liar.port, Security::Plain));
        let status = desk.send("bob@post.test", envelope("alice@post.test", "Hi"), "Hi").await;
        assert_eq!(status.state(), expected, "{name}: {status:?} {:?}", liar.heard());
        let said = match status {
            Status::Failed(why) | Status::Unknown(why) => why.to_string(),
            _ => String::new(),
        };
        assert!(said.contains(words), "{name}: {said}");
    }
}

#[tokio::test]
async fn a_retry_carries_the_same_id() {
    let script =
        [&UNTIL_DATA[..], &[Hear, Say("354 go on\r\n"), HearMail, Say("451 later\r\n"), Hear]].concat();
    let liar = Liar::playing(script).await;
    let desk = Desk::new(strangers(limits()), at(liar.port, Security::Plain));
    let draft = desk.stage("bob@post.test", envelope("alice@post.test", "Hi"), "Hi").await;
    let failed = desk.tap(&draft).await;
    assert_eq!(desk.tap(&failed).await.status.state(), DraftState::Failed);
    let ids: Vec<String> = liar.heard().into_iter().filter(|line| line.starts_with("Message-ID")).collect();
    assert_eq!(ids, ["Message-ID: <kai.2@post.test>", "Message-ID: <kai.2@post.test>"]);
}

#[tokio::test]
async fn a_server_that_only_asks_for_name_and_password_gets_them() {
    let script = vec![
        Say("220 hi\r\n"),
        Hear,
        Say("250-hi\r\n250 AUTH LOGIN\r\n"),
        Hear,
        Say("334 VXNlcm5hbWU6\r\n"),
        Hear,
        Say("334 UGFzc3dvcmQ6\r\n"),
        Hear,
        Say("535 no\r\n"),
        Hear,
    ];
    let liar = Liar::playing(script).await;
    let mut account = at(liar.port, Security::Plain);
    account.credentials = Credentials::Password(Secret::new("pä"));
    let status = Desk::new(strangers(limits()), account)
        .send("bob@post.test", envelope("alice@post.test", "Hi"), "Hi")
        .await;
    assert_eq!(status.state(), DraftState::Failed);
    assert_eq!(liar.heard()[1..4], ["AUTH LOGIN", "YWxpY2U=", "cMOk"].map(str::to_owned));
}
