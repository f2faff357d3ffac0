//! Sends mail by a real server into the inbox of another account.

use kai_assistant::email::account::Security;
use kai_assistant::email::port::MailServers;
use kai_assistant::outbox::Status;
use kai_assistant::outbox::mail::{Envelope, Mail};
use kai_stand_ins::mail::{PostOffice, Setup};

use crate::desk::{Desk, TAPPED, account, envelope, mail};

fn text(raw: &[u8]) -> String {
    String::from_utf8(raw.to_vec()).unwrap()
}

#[tokio::test]
async fn a_mail_arrives() {
    let office = PostOffice::open(&["alice", "bob"]);
    for (at, security) in [Security::Tls, Security::StartTls, Security::Plain].into_iter().enumerate() {
        let desk = Desk::new(mail(&office), account(&office, "alice", security));
        let body = "Grüße!\n.\n..two dots\nFrom here on";
        let status = desk.send("bob@post.test", envelope("alice@post.test", "Köln"), body).await;
        assert!(matches!(status, Status::Sent(_)), "{status:?} {}", office.logs());
        let arrived = office.wait_for_mails("bob", "INBOX", at + 1);
        let read = text(&arrived[at]);
        assert!(read.contains("Subject: =?utf-8?B?S8O2bG4=?="), "{read}");
        assert!(read.contains("Date: Fri, 15 Jan 2027 08:00:00 +0000"), "{read}");
        assert!(read.contains("Gr=C3=BC=C3=9Fe!\n=2E\n..two dots\n=46rom here on"), "{read}");
    }
}

#[tokio::test]
async fn a_copy_lands_in_the_folder_for_sent_mails() {
    let names = ["alice"].as_slice();
    let marked = |name: &str| Setup { sent: Some(name.to_owned()), ..Setup::of(names) };
    let below = Setup { below_inbox: true, ..Setup::of(names) };
    for (setup, existing, expected) in [
        (marked("Gesendet"), Some("Sent"), "Gesendet"),
        (Setup::of(names), Some("Gesendete Objekte"), "Gesendete Objekte"),
        (Setup::of(names), None, "Sent"),
        (below.clone(), None, "INBOX.Sent"),
        (below, Some("INBOX.Sent Items"), "INBOX.Sent Items"),
    ] {
        let office = PostOffice::with(setup);
        if let Some(existing) = existing {
            office.make_mailbox("alice", existing);
        }
        let (mail, alice) = (mail(&office), account(&office, "alice", Security::Tls));
        let envelope =
            Envelope { bcc: vec!["eve@post.test".to_owned()], ..envelope("alice@post.test", "Hi") };
        let sent = Mail {
            to: vec!["bob@post.test".to_owned()],
            envelope,
            text: "Hi".to_owned(),
            date: TAPPED * 1_000,
        };
        for _ in 0..2 {
            assert_eq!(mail.keep_copy(&alice, &sent).await, Ok(()), "{expected} {}", office.logs());
        }
        let kept = office.mails("alice", expected);
        assert_eq!(kept.len(), 1, "once in {expected}");
        assert_eq!(kept[0].0, "S", "seen");
        assert!(text(&kept[0].1).contains("Bcc: eve@post.test"));
        let other = Mail { date: TAPPED * 1_000 + 60_000, ..sent };
        let other = Mail {
            envelope: Envelope { message_id: "other@post.test".to_owned(), ..other.envelope },
            ..other
        };
        assert_eq!(mail.keep_copy(&alice, &other).await, Ok(()));
        assert_eq!(office.mails("alice", expected).len(), 2);
    }
}

#[tokio::test]
async fn hidden_recipients_get_it_and_nobody_sees_them() {
    let office = PostOffice::open(&["alice", "bob", "carol", "eve"]);
    let desk = Desk::new(mail(&office), account(&office, "alice", Security::Tls));
    let envelope = Envelope {
        cc: vec!["carol@post.test".to_owned()],
        bcc: vec!["eve@post.test".to_owned()],
        ..envelope("alice@post.test", "Hi")
    };
    let status = desk.send("bob@post.test", envelope, "Hello").await;
    assert!(matches!(status, Status::Sent(_)), "{status:?}");
    for name in ["bob", "carol", "eve"] {
        let arrived = text(&office.wait_for_mails(name, "INBOX", 1)[0]);
        assert!(arrived.contains("To: bob@post.test") && arrived.contains("Cc: carol@post.test"));
        assert!(arrived.contains("Message-ID: <kai.2@post.test>"));
        let ours = arrived.split("From: alice").nth(1).unwrap();
        assert!(!ours.contains("eve@"), "{arrived}");
    }
}

#[tokio::test]
async fn if_one_cannot_get_it_nobody_does() {
    let office = PostOffice::open(&["alice", "bob"]);
    let desk = Desk::new(mail(&office), account(&office, "alice", Security::Tls));
    let first = desk.send("bob@post.test, nobody@post.test", envelope("alice@post.test", "One"), "1").await;
    let Status::Failed(why) = first else { panic!("{first:?}") };
    assert!(
        why.to_string().contains("nobody@post.test") && why.to_string().contains("no such mailbox"),
        "{why}"
    );
    let second = desk.send("bob@post.test", envelope("alice@post.test", "Second"), "2").await;
    assert!(matches!(second, Status::Sent(_)), "{second:?}");
    let arrived = office.wait_for_mails("bob", "INBOX", 1);
    assert!(text(&arrived[0]).contains("Subject: Second"));
    assert_eq!(office.mails("bob", "INBOX").len(), 1, "the first was not delivered before the second");
}

#[tokio::test]
async fn what_the_server_finds_too_large_is_not_sent() {
    let office = PostOffice::with(Setup { largest: Some(20_000), ..Setup::of(&["alice"]) });
    let desk = Desk::new(mail(&office), account(&office, "alice", Security::Tls));
    let body = "A long story. ".repeat(3_000);
    let status = desk.send("alice@post.test", envelope("alice@post.test", "Hi"), &body).await;
    let Status::Failed(why) = status else { panic!("{status:?}") };
    assert!(why.to_string().contains("of this size"), "{why}");
}

#[tokio::test]
async fn passwords_may_have_any_characters() {
    let password = "p\u{e4}ss \"w\u{f6}rd\" \\ {5} %u $x €";
    let accounts = vec![("alice".to_owned(), password.to_owned())];
    let office = PostOffice::with(Setup { accounts, ..Setup::default() });
    for security in [Security::Tls, Security::Plain] {
        let checked = mail(&office).check(&account(&office, "alice", security)).await;
        assert_eq!(checked, Ok(()), "{security:?} {}", office.logs());
    }
}
