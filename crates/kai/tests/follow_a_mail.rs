//! The story of a mail, from end to end: real wiring, real mail servers on this machine, a model that plays a script, a
//! clock that is moved by hand.
//!
//! It is a module of the binary (`main.rs` includes it), because a binary's rooms cannot be entered from outside.

use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::agent::Nobody;
use kai_assistant::clock::ManualClock;
use kai_assistant::outbox::DraftState;
use kai_bridges::mail::{Limits, Mail};
use kai_stand_ins::mail::PostOffice;
use kai_stand_ins::{Act, Provider};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::app::{App, Role};
use crate::call::drafts::{Button, TapCall};
use crate::call::email::AddAccount;
use crate::call::{Call, hello};
use crate::caller_env::{self, CallerEnv};
use crate::commands::{drafts, email, heartbeat};
use crate::machine::Machine;
use crate::{answer, daemon};

const OLD: &[u8] =
    b"From: Eve <eve@example.org>\r\nSubject: An old one\r\nMessage-ID: <0@example.org>\r\n\r\nOld.\r\n";
const LETTER: &[u8] = b"From: Bob <bob@post.test>\r\nTo: alice@post.test\r\nSubject: Dinner\r\n\
    Message-ID: <1@post.test>\r\nContent-Type: text/html; charset=utf-8\r\n\r\n\
    <p>Are you <b>free</b> for dinner?<script>alert(1)</script> Your verification code is 482913.</p>\r\n";

/// A bridge that trusts the certificate of this post office, as `SSL_CERT_FILE` would make it.
pub(crate) fn trusting(office: &PostOffice) -> Mail {
    let mut roots = RootCertStore::empty();
    let file = BufReader::new(File::open(office.authority()).unwrap());
    CertificateDer::pem_reader_iter(file).for_each(|certificate| roots.add(certificate.unwrap()).unwrap());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let tls = tls.with_root_certificates(roots).with_no_client_auth();
    Mail::with(tls, caller_env::for_programs(), Limits::default())
}

async fn add(app: &App, office: &PostOffice, name: &str) {
    let (imap, smtp) = (office.ports.imaps, office.ports.smtps);
    let new = AddAccount {
        address: office.address(name),
        imap: Some(format!("localhost:{imap}")),
        smtp: Some(format!("localhost:{smtp}")),
        password: Some(office.password(name)),
        ..AddAccount::default()
    };
    let row = email::add(app, new).await.unwrap();
    assert_eq!((row.imap, row.queued), (format!("localhost:{imap} (TLS)"), 0));
}

async fn with_model(app: &App, provider: &Provider) {
    let new =
        json!({"preset": "openai-compatible", "name": "script", "base_url": provider.base_url, "model": "m"});
    let call = hello::read("models_add".to_owned(), new).unwrap();
    answer::answer(app, call, &CallerEnv::default(), &Nobody).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_arrives_is_answered_and_leaves_by_a_tap() {
    let clock = Arc::new(ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
    let office = PostOffice::open(&["alice", "work", "bob"]);
    let machine = Machine { mail: Some(Arc::new(trusting(&office))), ..Machine::default() };
    let (app, _folder) = App::on(clock.clone(), machine, Role::Daemon);
    let app = Arc::new(app);

    // The person adds two accounts. What lay in the inbox counts as seen.
    office.deliver("alice", OLD);
    for name in ["alice", "work"] {
        add(&app, &office, name).await;
    }

    // A stranger writes. The daemon's tick looks when it is time, and not before.
    office.deliver("alice", LETTER);
    daemon::mail::look(&app).await;
    assert_eq!(email::list(&app).await.unwrap()[0].queued, 0, "fifteen minutes have not passed");
    clock.advance(SignedDuration::from_mins(15));
    daemon::mail::look(&app).await;
    let rows = email::list(&app).await.unwrap();
    assert_eq!((rows[0].queued, rows[1].queued), (1, 0), "{rows:?}");
    let found = email::search(&app, "dinner").await.unwrap().emails;
    let whole = email::read(&app, found[0].id).await.unwrap();
    assert!(whole.text.contains("Are you free for dinner?") && whole.text.contains("482913"), "{whole:?}");
    assert!(!whole.text.contains('<') && !whole.text.contains("alert"), "{whole:?}");

    // The heartbeat tells of it without its code, and the model drafts. Nothing has left.
    let reply = json!({"email_id": found[0].id, "body": "Yes, at 8."});
    let says = Act::says("Bob asks about dinner.");
    let provider = Provider::start([Act::calls("reply_email", &reply), says]);
    with_model(&app, &provider).await;
    heartbeat::tick(&app).await;
    let asked: String = provider.asked().into_iter().map(|asked| asked.raw).collect();
    assert!(
        asked.contains("## New Emails") && asked.contains("[code]") && !asked.contains("482913"),
        "{asked}"
    );
    let waiting = drafts::list(&app).await.unwrap();
    assert_eq!(
        (waiting.len(), waiting[0].status, waiting[0].to.as_str()),
        (1, DraftState::Pending, "bob@post.test")
    );
    for _ in 0..60 {
        clock.advance(SignedDuration::from_mins(1));
        daemon::look_around(Arc::clone(&app)).await;
    }
    assert!(office.mails("bob", "INBOX").is_empty(), "nothing leaves by itself, however long it waits");

    // The person taps, on what they saw. Exactly one mail leaves, and a second tap finds nothing to do.
    let shown = &waiting[0];
    let (digest, attempts) = (shown.digest.clone(), shown.attempts);
    let tap = TapCall { id: shown.id, button: Button::Send, shown: digest, attempts };
    assert_eq!(drafts::tap(&app, tap.clone()).await.unwrap().status, DraftState::Sent);
    assert!(drafts::tap(&app, tap).await.is_err());
    let arrived = office.wait_for_mails("bob", "INBOX", 1);
    let text = String::from_utf8_lossy(&arrived[0]);
    for part in [
        "From: alice@post.test",
        "Subject: Re: Dinner",
        "In-Reply-To: <1@post.test>",
        "Yes, at 8.",
        "> Are you",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }

    // A copy lies in the folder for sent mails, once, however often the daemon looks.
    daemon::mail::look(&app).await;
    daemon::mail::look(&app).await;
    assert_eq!((office.mails("alice", "Sent").len(), office.mails("bob", "INBOX").len()), (1, 1));
}

/// Waits until so many mails of the account wait for a heartbeat.
async fn until_queued(app: &App, count: u32) {
    let mut changes = app.db.changes();
    let queued = async {
        while email::list(app).await.unwrap()[0].queued != count {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_mins(1), queued).await.unwrap();
}

/// The clock stands still, so that no poll is ever due; what arrives is told by the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_mail_is_told_by_its_server_while_no_poll_is_due() {
    let clock = Arc::new(ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
    let office = PostOffice::open(&["alice"]);
    let machine = Machine { mail: Some(Arc::new(trusting(&office))), ..Machine::default() };
    let (app, _folder) = App::on(clock, machine, Role::Daemon);
    let app = Arc::new(app);
    let interval = Call::SettingsSet { key: "email_poll_interval".to_owned(), value: "60".to_owned() };
    answer::answer(&app, interval, &CallerEnv::default(), &Nobody).await.unwrap();
    let stop = CancellationToken::new();
    let listening = tokio::spawn(daemon::mail::listen(Arc::clone(&app), stop.clone()));
    add(&app, &office, "alice").await;
    // The first may have arrived before the connection stood. The others come while it does.
    for count in 1..=3 {
        office.deliver("alice", LETTER);
        daemon::mail::look(&app).await;
        until_queued(&app, count).await;
    }
    stop.cancel();
    listening.await.unwrap();
    // Nobody listens any more, and no poll is due: the next one is not seen.
    office.deliver("alice", LETTER);
    daemon::mail::look(&app).await;
    assert_eq!(email::list(&app).await.unwrap()[0].queued, 3);
}
