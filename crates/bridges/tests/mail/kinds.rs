//! Mails of every kind, as a real server keeps them.

use std::fmt::Write;

use kai_assistant::email::account::{Account, Security};
use kai_assistant::email::port::{Letter, MailServers, Mailbox, Mark};
use kai_bridges::mail::Mail;
use kai_stand_ins::mail::PostOffice;

use crate::desk::{account, mail};
use crate::proxy::Proxy;

const HEAD: &str = "From: Bob <bob@post.test>\r\nTo: alice@post.test\r\nSubject: Hi\r\nMIME-Version: 1.0\r\n";

/// What is expected: subject, beginning in the list, text, names of the attachments.
struct Kind {
    name: &'static str,
    raw: Vec<u8>,
    subject: &'static str,
    text: &'static str,
    files: &'static [&'static str],
}

fn kind(name: &'static str, raw: impl Into<Vec<u8>>, text: &'static str) -> Kind {
    Kind { name, raw: raw.into(), subject: "Hi", text, files: &[] }
}

fn kinds() -> Vec<Kind> {
    let alternative = format!("{HEAD}Content-Type: multipart/alternative; boundary=b\r\n\r\n");
    let mixed = format!("{HEAD}Content-Type: multipart/mixed; boundary=b\r\n\r\n");
    let plain = "--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nHello\r\n";
    let html = "--b\r\nContent-Type: text/html\r\n\r\n<html><p>Hello <b>world</b></p></html>\r\n";
    let pdf = "--b\r\nContent-Type: application/pdf; name=\"=?utf-8?q?R=C3=A4tsel?=.pdf\"\r\n\
        Content-Disposition: attachment\r\nContent-Transfer-Encoding: base64\r\n\r\nAAAA\r\n";
    let nested = "--b\r\nContent-Type: message/rfc822\r\n\r\nSubject: Inside\r\n\r\nnot ours\r\n";
    let japanese = b"From: b@post.test\r\nSubject: =?Shift_JIS?B?grGC8YLJgr+CzQ==?=\r\n\
        Content-Type: text/plain; charset=Shift_JIS\r\n\r\n\x82\xb1\x82\xf1\x82\xc9\x82\xbf\x82\xcd\r\n";
    vec![
        kind("plain", format!("{HEAD}\r\nHello\r\n"), "Hello"),
        Kind {
            subject: "Grüße aus Köln",
            ..kind(
                "umlauts",
                format!(
                    "{}Content-Type: text/plain; charset=utf-8\r\n\r\nBöses Wetter\r\n",
                    HEAD.replace("Hi", "=?utf-8?q?Gr=C3=BC=C3=9Fe?= aus\r\n =?iso-8859-1?q?K=F6ln?=")
                ),
                "Böses Wetter",
            )
        },
        Kind { subject: "こんにちは", ..kind("Shift_JIS", japanese.to_vec(), "こんにちは") },
        kind("both", format!("{alternative}{plain}{html}--b--\r\n"), "Hello"),
        kind(
            "html only",
            format!("{HEAD}Content-Type: text/html\r\n\r\n<p>Hello <b>world</b></p>"),
            "Hello world",
        ),
        kind(
            "a stub",
            format!("{alternative}{}{html}--b--\r\n", plain.replace("Hello", "Please use HTML.")),
            "Hello world",
        ),
        Kind { files: &["Rätsel.pdf"], ..kind("a file", format!("{mixed}{plain}{pdf}--b--\r\n"), "Hello") },
        Kind {
            files: &["Inside"],
            ..kind("a mail inside", format!("{mixed}{plain}{nested}--b--\r\n"), "Hello")
        },
        Kind {
            subject: "",
            ..kind("no subject", "From: b@post.test\r\nContent-Type: text/html\r\n\r\n<p>Hello</p>", "Hello")
        },
        kind("no sender", "Subject: Hi\r\nContent-Type: text/html\r\n\r\n<p>Hello</p>", "Hello"),
        Kind { subject: "", ..kind("no headers", "\r\nJust text\r\n", "Just text") },
        Kind { subject: "", ..kind("nothing", "", "") },
        kind("no end", format!("{mixed}{plain}"), "Hello"),
        kind(
            "unknown charset",
            format!("{HEAD}Content-Type: text/plain; charset=klingon\r\n\r\nHello\r\n"),
            "Hello",
        ),
    ]
}

async fn read(mail: &Mail, alice: &Account, at: Mark) -> Letter {
    mail.read(alice, at).await.unwrap().unwrap()
}

#[tokio::test]
async fn mails_of_every_kind_are_listed_and_read() {
    let office = PostOffice::open(&["alice"]);
    let (mail, alice) = (mail(&office), account(&office, "alice", Security::Tls));
    let seed = mail.newer(&alice, None, 50).await.unwrap();
    let kinds = kinds();
    for kind in &kinds {
        office.deliver("alice", &kind.raw);
    }
    let look = mail.newer(&alice, Some(seed.mark), 50).await.unwrap();
    assert_eq!(look.mails.len(), kinds.len(), "{}", office.logs());
    for (kind, header) in kinds.iter().zip(&look.mails) {
        let name = kind.name;
        assert_eq!(header.subject.as_written(), kind.subject, "{name}");
        assert_eq!(header.beginning.as_written(), kind.text, "{name}");
        let letter = read(&mail, &alice, Mark { uid: header.uid, ..look.mark }).await;
        assert_eq!(letter.text.as_written(), kind.text, "{name}");
        let files: Vec<_> = letter.attachments.iter().map(|file| file.name.as_written()).collect();
        assert_eq!(files, kind.files, "{name}");
        assert!(!letter.is_beginning, "{name}");
    }
    assert!(office.mails("alice", "INBOX").iter().all(|(flags, _)| flags.is_empty()), "nothing is read");
}

#[tokio::test]
async fn recipients_are_known_without_a_date() {
    let office = PostOffice::open(&["alice"]);
    let (mail, alice) = (mail(&office), account(&office, "alice", Security::Tls));
    let seed = mail.newer(&alice, None, 50).await.unwrap();
    office.deliver("alice", b"To: alice@post.test\r\nCc: carol@post.test\r\n\r\nHello\r\n");
    let letter = read(&mail, &alice, Mark { uid: seed.mark.uid + 1, ..seed.mark }).await;
    let addresses =
        |boxes: &[Mailbox]| boxes.iter().map(|one| one.address.as_written().to_owned()).collect::<Vec<_>>();
    assert_eq!(
        (addresses(&letter.to), addresses(&letter.cc)),
        (vec!["alice@post.test".to_owned()], vec!["carol@post.test".to_owned()])
    );
}

/// Everything that a mail can be too large in.
fn giants() -> Vec<(&'static str, Vec<u8>)> {
    let mixed = format!("{HEAD}Content-Type: multipart/mixed; boundary=b\r\n\r\n");
    let text = "--b\r\nContent-Type: text/plain\r\n\r\nHello\r\n";
    let file = "--b\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n\r\n";
    let lines = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=\r\n".repeat(50 * 1024 * 1024 / 38);
    let mut many = format!("{mixed}{text}");
    for n in 0..10_000 {
        let _ = write!(many, "--b\r\nContent-Type: image/png; name={n}.png\r\n\r\nx\r\n");
    }
    let deep: String = (0..500).fold(HEAD.to_owned(), |head, n| {
        head + &format!("Content-Type: multipart/mixed; boundary=b{n}\r\n\r\n--b{n}\r\n")
    });
    let long = format!("{HEAD}\r\n{}", "Hello and goodbye. \r\n".repeat(100_000));
    let bomb =
        format!("X: y\r\nSubject: {}\r\nFrom: Bob <bob@post.test>\r\n\r\nHello", "x\r\n ".repeat(2_500_000));
    vec![
        ("50 MB file", format!("{mixed}{text}{file}{lines}--b--\r\n").into_bytes()),
        ("10,000 parts", format!("{many}--b--\r\n").into_bytes()),
        ("500 levels", deep.into_bytes()),
        ("2 MB of text", long.into_bytes()),
        ("10 MB of subject", bomb.into_bytes()),
    ]
}

#[tokio::test]
async fn giants_cost_little() {
    let office = PostOffice::open(&["alice"]);
    let mail = mail(&office);
    let mut alice = account(&office, "alice", Security::Plain);
    let proxy = Proxy::to(office.ports.imap).await;
    alice.imap.port = proxy.port;
    let mut mark = mail.newer(&alice, None, 50).await.unwrap().mark;
    for (name, raw) in giants() {
        office.deliver("alice", &raw);
        proxy.bytes();
        let look = mail.newer(&alice, Some(mark), 50).await.unwrap();
        let listed = proxy.bytes();
        assert!(listed < 64 * 1024, "{name}: {listed} bytes for a line in a list");
        mark = look.mark;
        let header = &look.mails[0];
        assert_eq!(header.from.address.as_written(), "bob@post.test", "{name}");
        let letter = mail.read(&alice, mark).await.unwrap().unwrap();
        let read = proxy.bytes();
        assert!(read < 3 * 1024 * 1024, "{name}: {read} bytes for a mail");
        assert!(letter.attachments.len() <= 200, "{name}");
        match name {
            "50 MB file" => {
                assert_eq!((letter.text.as_written(), letter.attachments.len()), ("Hello", 1));
                assert!(letter.attachments[0].size > 30_000_000 && !letter.is_beginning);
            }
            "10,000 parts" => assert!(letter.text.as_written() == "Hello" && letter.is_beginning),
            "2 MB of text" => assert!(letter.is_beginning && letter.text.as_written().len() > 150_000),
            "10 MB of subject" => assert_eq!(letter.text.as_written(), "Hello"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn nothing_new_costs_one_question() {
    let office = PostOffice::open(&["alice"]);
    let mail = mail(&office);
    let mut alice = account(&office, "alice", Security::Plain);
    let proxy = Proxy::to(office.ports.imap).await;
    alice.imap.port = proxy.port;
    for n in 0..300 {
        office.deliver("alice", format!("{HEAD}X-N: {n}\r\n\r\nHello").as_bytes());
    }
    let seed = mail.newer(&alice, None, 50).await.unwrap();
    proxy.commands();
    proxy.bytes();
    assert_eq!(mail.newer(&alice, Some(seed.mark), 50).await.unwrap(), seed);
    // Nobody waits for the end of a goodbye.
    let commands: Vec<_> = proxy.commands().into_iter().filter(|command| command != "LOGOUT").collect();
    assert_eq!(commands, ["AUTHENTICATE", "EXAMINE"]);
    assert!(proxy.bytes() < 4_096);
}
