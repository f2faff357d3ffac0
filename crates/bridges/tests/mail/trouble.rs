//! What goes wrong with servers, and that it is told apart.

use std::time::Duration;

use kai_assistant::email::account::{Account, Credentials, Security};
use kai_assistant::email::port::{MailServers, Mark, Which, Why};
use kai_assistant::secret::Secret;
use kai_assistant::untrusted::Untrusted;
use kai_bridges::mail::{Limits, Mail};
use kai_stand_ins::mail::{PostOffice, Setup};

use crate::desk::{account, mail, server, strangers, trusting};
use crate::liar::Act::{Flood, Hang, Hear, Say};
use crate::liar::{Act, Liar};
use crate::proxy::Proxy;

/// Limits that a test can wait for.
pub(crate) fn short() -> Limits {
    let moment = Duration::from_millis(700);
    Limits {
        connect: moment,
        handshake: moment,
        greeting: moment,
        answer: moment,
        search: moment,
        bytes: 1024 * 1024,
        ..Limits::default()
    }
}

/// An account whose servers both are at this port.
pub(crate) fn at(port: u16, security: Security) -> Account {
    Account {
        source: kai_assistant::source::SourceId(1_000_001),
        address: "alice@post.test".to_owned(),
        user: "alice".to_owned(),
        imap: server(port, security),
        smtp: server(port, security),
        credentials: Credentials::Password(Secret::new("p\u{e4}ss \"word\\")),
    }
}

async fn newer(mail: &Mail, account: &Account) -> Why {
    let mark = Mark { validity: 1, uid: 1 };
    mail.newer(account, Some(mark), 5).await.unwrap_err().why
}

const HELLO: Act = Say("* OK [CAPABILITY IMAP4rev1] hi\r\n");
const OPENED: Act = Say("* 9 EXISTS\r\n* OK [UIDVALIDITY 1] x\r\n* OK [UIDNEXT 9] x\r\nk3 OK done\r\n");
const SIGNED_IN: [Act; 5] =
    [HELLO, Hear, Say("+ go on\r\n"), Hear, Say("k1 OK [CAPABILITY IMAP4rev1] in\r\n")];

/// Signed in, and this afterwards.
pub(crate) fn then(acts: &[Act]) -> Vec<Act> {
    SIGNED_IN.iter().chain(acts).cloned().collect()
}

fn said(words: &str) -> Untrusted {
    Untrusted::new(words)
}

const OPENED_NOW: Act = Say("* 9 EXISTS\r\n* OK [UIDVALIDITY 1] x\r\n* OK [UIDNEXT 9] x\r\nk2 OK done\r\n");

#[tokio::test]
async fn a_reading_server_that_misbehaves_is_told_apart() {
    let searched = || [Hear, OPENED_NOW, Hear, Say("* SEARCH 5 6\r\nk3 OK done\r\n"), Hear];
    let with = |act: Act| -> Vec<Act> { then(&searched()).into_iter().chain([act]).collect() };
    for (name, script, expected) in [
        ("no greeting", vec![Hang], Why::Silent),
        ("no end of the greeting", vec![Say("* OK"), Hang], Why::Silent),
        ("no answer to the name", vec![HELLO, Hear, Hang], Why::Silent),
        ("no answer to the password", vec![HELLO, Hear, Say("+ \r\n"), Hear, Hang], Why::Silent),
        ("inbox never opens", then(&[Hear, Hang]), Why::Silent),
        ("no end of a search", then(&[Hear, OPENED_NOW, Hear, Hang]), Why::Silent),
        ("no end of a mail", with(Hang), Why::Silent),
        ("half a mail", with(Say("* 1 FETCH (UID 5 BODY[TEXT]<0> {100}\r\nabc")), Why::Broken),
        ("gone at once", vec![], Why::Broken),
        (
            "gone with a reason",
            then(&[Hear, Say("* BYE Maintenance\r\n")]),
            Why::Refused(said("Maintenance")),
        ),
        ("sent away", vec![Say("* BYE Too many\r\n")], Why::Refused(said("Too many"))),
        ("another protocol", vec![Say("220 smtp.example.org ESMTP\r\n"), Hang], Why::Nonsense),
        ("a web server", vec![Say("HTTP/1.1 400 Bad Request\r\n\r\n"), Hang], Why::Nonsense),
        ("a gigabyte", with(Say("* 1 FETCH (UID 5 BODY[TEXT]<0> {1073741824}\r\n")), Why::Nonsense),
        ("an endless line", vec![Flood("x")], Why::Nonsense),
        ("an endless mail", with(Flood("* 1 FETCH (UID 5 BODY[TEXT]<0> {3}\r\nabc)\r\n")), Why::Nonsense),
        ("endless chatter", with(Flood("* 5 EXISTS\r\n")), Why::Nonsense),
        ("another's answer", then(&[Hear, Say("k77 OK done\r\n"), Hang]), Why::Nonsense),
        ("no inbox", then(&[Hear, Say("k2 NO [NONEXISTENT] None\r\n"), Hang]), Why::Refused(said("None"))),
    ] {
        let liar = Liar::playing(script).await;
        let why = newer(&strangers(short()), &at(liar.port, Security::Plain)).await;
        assert_eq!(why, expected, "{name}: {:?}", liar.heard());
        assert!(liar.said() < 16 * 1024 * 1024, "{name}: it could say {} bytes", liar.said());
    }
}

#[tokio::test]
async fn the_password_stays_a_string() {
    let liar = Liar::playing(then(&[Hear, Hang])).await;
    newer(&strangers(short()), &at(liar.port, Security::Plain)).await;
    assert_eq!(liar.heard()[..2], ["k1 LOGIN \"alice\" {12}", "p\u{e4}ss \"word\\"].map(str::to_owned));
    let disabled = Liar::playing(vec![Say("* OK [CAPABILITY IMAP4rev1 LOGINDISABLED] hi\r\n"), Hang]).await;
    let why = newer(&strangers(short()), &at(disabled.port, Security::Plain)).await;
    assert_eq!((why, disabled.heard()), (Why::NoTls, vec![]));
}

#[tokio::test]
async fn nothing_is_said_to_a_server_that_does_not_encrypt() {
    let offer = "* OK [CAPABILITY IMAP4rev1 STARTTLS AUTH=PLAIN] hi\r\n";
    for (name, script, expected) in [
        ("not offered", vec![HELLO, Hear, Say("* CAPABILITY IMAP4rev1\r\nk1 OK x\r\n"), Hang], Why::NoTls),
        ("refused", vec![Say(offer), Hear, Say("k1 NO no\r\n"), Hang], Why::NoTls),
        ("signed in already", vec![Say("* PREAUTH hello\r\n"), Hang], Why::NoTls),
        (
            "more than asked",
            vec![Say(offer), Hear, Say("k1 OK go\r\n* CAPABILITY X\r\n"), Hang],
            Why::Nonsense,
        ),
        ("no handshake", vec![Say(offer), Hear, Say("k1 OK go\r\n"), Hang], Why::Silent),
    ] {
        let liar = Liar::playing(script).await;
        let why = newer(&strangers(short()), &at(liar.port, Security::StartTls)).await;
        assert_eq!(why, expected, "{name}");
        let told = liar.heard().join("\n");
        assert!(!told.contains("LOGIN") && !told.contains("AUTHENTICATE"), "{name}: {told}");
    }
    for (name, script, expected) in [
        ("plain", vec![HELLO, Hang], Why::NoTls),
        ("silent", vec![Hang], Why::Silent),
        ("gone", vec![], Why::Broken),
    ] {
        let liar = Liar::playing(script).await;
        assert_eq!(newer(&strangers(short()), &at(liar.port, Security::Tls)).await, expected, "{name}");
    }
}

#[tokio::test]
async fn a_sending_server_that_misbehaves_is_told_apart() {
    let hello = [Say("220 hi\r\n"), Hear, Say("250-hi\r\n250-AUTH PLAIN\r\n250 STARTTLS\r\n"), Hear];
    let then = |acts: &[Act]| -> Vec<Act> { hello.iter().chain(acts).cloned().collect() };
    for (name, security, script, expected) in [
        ("no greeting", Security::Plain, vec![Hang], Why::Silent),
        ("no answer to the password", Security::Plain, then(&[Hang]), Why::Silent),
        ("another protocol", Security::Plain, vec![Say("* OK IMAP4\r\n"), Hang], Why::Nonsense),
        ("endless", Security::Plain, vec![Flood("220-hi\r\n")], Why::Nonsense),
        ("sent away", Security::Plain, vec![Say("554 no\r\n"), Hang], Why::Refused(said("554 no"))),
        (
            "refused",
            Security::Plain,
            then(&[Say("535 5.7.8 no\r\n")]),
            Why::WrongPassword(said("535 5.7.8 no")),
        ),
        (
            "not offered",
            Security::StartTls,
            vec![Say("220 hi\r\n"), Hear, Say("250 hi\r\n"), Hang],
            Why::NoTls,
        ),
        ("more than asked", Security::StartTls, then(&[Say("220 go\r\n250 evil\r\n"), Hang]), Why::Nonsense),
        ("refused encryption", Security::StartTls, then(&[Say("454 no\r\n"), Hang]), Why::NoTls),
    ] {
        let office = [Say("* PREAUTH [CAPABILITY IMAP4rev1] hi\r\n"), Hear];
        let (imap, smtp) = (Liar::playing(office.to_vec()).await, Liar::playing(script).await);
        let account = Account { smtp: server(smtp.port, security), ..at(imap.port, Security::Plain) };
        let trouble = strangers(short()).check(&account).await.unwrap_err();
        assert_eq!((trouble.which, trouble.why), (Which::Smtp, expected), "{name}: {:?}", smtp.heard());
        let told = smtp.heard().join("\n");
        assert!(security == Security::Plain || !told.contains("AUTH "), "{name}: {told}");
    }
}

#[tokio::test]
async fn what_cannot_be_reached_or_trusted_is_told_apart() {
    let office = PostOffice::open(&["alice"]);
    let other = PostOffice::open(&["alice"]);
    let alice = account(&office, "alice", Security::Tls);
    let stranger = trusting(&other.authority(), Limits::default());
    assert!(matches!(newer(&stranger, &alice).await, Why::Certificate(_)));
    let mail = mail(&office);
    let plain_port = Account { imap: server(office.ports.imap, Security::Tls), ..alice.clone() };
    assert_eq!(newer(&mail, &plain_port).await, Why::NoTls);
    let smtp = Account { smtp: server(office.ports.smtp, Security::Tls), ..alice.clone() };
    assert_eq!(mail.check(&smtp).await.unwrap_err().why, Why::NoTls);
    let mut elsewhere = account(&office, "alice", Security::Plain);
    "192.0.2.1".clone_into(&mut elsewhere.imap.host);
    assert_eq!(newer(&mail, &elsewhere).await, Why::PlainElsewhere);
    let closed = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    assert!(matches!(newer(&mail, &at(closed, Security::Tls)).await, Why::NotReached(_)));
    for host in ["no such host", "", "no-such-host.invalid"] {
        let mut nowhere = alice.clone();
        host.clone_into(&mut nowhere.imap.host);
        assert_eq!(newer(&mail, &nowhere).await, Why::NameNotFound, "{host}");
    }
    let wrong = Credentials::Password(Secret::new("wrong"));
    let refused = mail.check(&Account { credentials: wrong, ..alice.clone() }).await.unwrap_err();
    assert_eq!(refused.which, Which::Imap);
    assert!(matches!(refused.why, Why::WrongPassword(_)), "{refused:?}");
    let nobody = Account { user: "nobody@post.test".to_owned(), ..alice };
    assert!(matches!(newer(&mail, &nobody).await, Why::WrongPassword(_)));
}

/// A server that shows a certificate of an authority that we trust, but for another name, gets no password: not over IMAP,
/// not over SMTP, neither from the first byte on nor after STARTTLS.
#[tokio::test]
async fn a_certificate_for_another_name_ends_the_handshake_before_the_password() {
    let certified = Some(vec!["mail.example.org".to_owned()]);
    let office = PostOffice::with(Setup { certified, ..Setup::of(&["alice"]) });
    let mail = mail(&office);
    let refused = "Kai did not sign in to localhost: its certificate cannot be trusted, because it belongs to another name. \
        Use the name that your provider gives for this server.";
    for security in [Security::Tls, Security::StartTls] {
        let alice = account(&office, "alice", security);
        let (imap, smtp) = (Proxy::to(alice.imap.port).await, Proxy::to(alice.smtp.port).await);
        // Reading on this machine works without encryption, so that the test of the account comes to SMTP.
        let plain = account(&office, "alice", Security::Plain).imap;
        let by_imap = Account { imap: server(imap.port, security), ..alice.clone() };
        let by_smtp = Account { imap: plain, smtp: server(smtp.port, security), ..alice };
        let troubles = [
            (Which::Imap, mail.check(&by_imap).await.unwrap_err()),
            (Which::Imap, mail.newer(&by_imap, None, 5).await.unwrap_err()),
            (Which::Smtp, mail.check(&by_smtp).await.unwrap_err()),
        ];
        for (which, trouble) in troubles {
            assert_eq!((trouble.which, trouble.to_string().as_str()), (which, refused), "{security:?}");
        }
        // Nothing in plain text but the question for encryption, and then no more than a handshake that is broken off.
        for (proxy, asked) in [(imap, "STARTTLS"), (smtp, "EHLO")] {
            let heard = String::from_utf8_lossy(&proxy.asked()).into_owned();
            assert_eq!(heard.contains(asked), security == Security::StartTls, "{heard}");
            assert!(!heard.contains("AUTH") && !heard.contains("LOGIN"), "{heard}");
        }
    }
    let logs = office.logs();
    let logins = logs.lines().filter(|line| line.contains("Login: user=")).count();
    assert_eq!(logins, 2, "only those without encryption: {logs}");
}

#[tokio::test]
async fn a_server_that_cannot_push_or_is_gone_is_told_apart() {
    let limits = Limits { idle: Duration::from_millis(300), ..short() };
    let offer = Say("* OK [CAPABILITY IMAP4rev1 IDLE] hi\r\n");
    let idling = |rest: &[Act]| -> Vec<Act> {
        let begin = [offer.clone(), Hear, Say("+ \r\n"), Hear, Say("k1 OK in\r\n"), Hear];
        let known = Say("* CAPABILITY IDLE\r\nk2 OK x\r\n");
        begin.into_iter().chain([known, Hear, OPENED, Hear]).chain(rest.iter().cloned()).collect()
    };
    for (name, script, expected, news) in [
        ("no push", then(&[Hear, Hang]), Why::NoPush, 0),
        ("refuses", idling(&[Say("k4 NO no\r\n")]), Why::Refused(said("no")), 1),
        ("silent at the beginning", idling(&[Hang]), Why::Silent, 1),
        ("dead after a while", idling(&[Say("+ idling\r\n"), Hang]), Why::Silent, 1),
        ("gone", idling(&[Say("+ idling\r\n* 10 EXISTS\r\n* 9 EXISTS\r\n* 10 EXISTS\r\n")]), Why::Broken, 3),
        // Two are deleted elsewhere, which leaves seven, and one arrives.
        (
            "fewer before",
            idling(&[Say("+ idling\r\n* 3 EXPUNGE\r\n* 1 EXPUNGE\r\n* 8 EXISTS\r\n")]),
            Why::Broken,
            2,
        ),
        // One is deleted, and the server says what is left.
        ("only fewer", idling(&[Say("+ idling\r\n* 3 EXPUNGE\r\n* 8 EXISTS\r\n")]), Why::Broken, 1),
        (
            "refreshed",
            idling(&[Say("+ idling\r\n"), Hear, Say("k4 OK done\r\n"), Hear, Say("k5 BAD x\r\n")]),
            Why::Refused(said("x")),
            1,
        ),
    ] {
        let liar = Liar::playing(script).await;
        let told = std::sync::atomic::AtomicUsize::new(0);
        let count = || {
            told.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        };
        let mail = strangers(limits);
        let why = mail.watch(&at(liar.port, Security::Plain), &count).await.unwrap_err().why;
        assert_eq!((why, told.into_inner()), (expected, news), "{name}: {:?}", liar.heard());
    }
}
