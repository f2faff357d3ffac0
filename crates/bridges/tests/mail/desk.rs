//! What the tests share: accounts at a post office, and a door that mails leave by.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use kai_assistant::MIGRATIONS;
use kai_assistant::clock::ManualClock;
use kai_assistant::db::Db;
use kai_assistant::email::FIRST_ACCOUNT;
use kai_assistant::email::account::{Account, Credentials, Security, Server};
use kai_assistant::email::port::MailServers;
use kai_assistant::gate::RunKind;
use kai_assistant::outbox::door::{Act, ApprovedMail, Door, Mailer, Sending, Tap};
use kai_assistant::outbox::mail::Envelope;
use kai_assistant::outbox::{Channel, Draft, NewDraft, Status, store};
use kai_assistant::secret::Secret;
use kai_assistant::source::SourceId;
use kai_bridges::Environment;
use kai_bridges::mail::{Limits, Mail};
use kai_stand_ins::mail::PostOffice;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// The bridge, which trusts the post office.
pub(crate) fn mail(office: &PostOffice) -> Mail {
    trusting(&office.authority(), Limits::default())
}

pub(crate) fn trusting(authority: &Path, limits: Limits) -> Mail {
    let mut roots = RootCertStore::empty();
    let file = BufReader::new(File::open(authority).unwrap());
    for certificate in CertificateDer::pem_reader_iter(file) {
        roots.add(certificate.unwrap()).unwrap();
    }
    with(roots, limits)
}

fn with(roots: RootCertStore, limits: Limits) -> Mail {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let tls = tls.with_root_certificates(roots).with_no_client_auth();
    let path = [("PATH".into(), "/usr/bin:/bin".into())];
    Mail::with(tls, Environment::of(path), limits)
}

/// The bridge for servers that show no certificate.
pub(crate) fn strangers(limits: Limits) -> Mail {
    with(RootCertStore::empty(), limits)
}

pub(crate) fn server(port: u16, security: Security) -> Server {
    Server { host: "localhost".to_owned(), port, security }
}

/// An account of the post office.
pub(crate) fn account(office: &PostOffice, name: &str, security: Security) -> Account {
    let ports = office.ports;
    let (imap, smtp) = match security {
        Security::Tls => (ports.imaps, ports.smtps),
        Security::StartTls | Security::Plain => (ports.imap, ports.smtp),
    };
    Account {
        source: SourceId(FIRST_ACCOUNT + 1),
        address: office.address(name),
        user: office.address(name),
        imap: server(imap, security),
        smtp: server(smtp, security),
        credentials: Credentials::Password(Secret::new(office.password(name))),
    }
}

/// Sends by one account.
struct Sends {
    mail: Mail,
    account: Account,
}

impl Mailer for Sends {
    fn send(&self, _: SourceId, approved: ApprovedMail) -> Sending<'_> {
        self.mail.send(&self.account, approved)
    }
}

/// A door that mails leave by.
pub(crate) struct Desk {
    pub(crate) door: Door,
    clock: Arc<ManualClock>,
}

/// When drafts are tapped.
pub(crate) const TAPPED: i64 = 1_800_000_000;

impl Desk {
    pub(crate) fn new(mail: Mail, account: Account) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_second(TAPPED).unwrap()));
        let door = Door {
            db: Db::in_memory(MIGRATIONS).unwrap(),
            clock: clock.clone(),
            senders: Arc::default(),
            mailer: Some(Arc::new(Sends { mail, account })),
            answerable: |_, _, _| Ok(None),
            under_way: Arc::default(),
        };
        Self { door, clock }
    }

    pub(crate) async fn stage(&self, to: &str, envelope: Envelope, body: &str) -> Draft {
        let new = NewDraft {
            channel: Channel::Email,
            phone: SourceId(FIRST_ACCOUNT + 1),
            to: to.to_owned(),
            app: None,
            body: body.to_owned(),
            mail: Some(envelope),
            in_reply_to: None,
            quoted: None,
            known_contact: false,
            origin: RunKind::Chat,
            guest: None,
            conversation: 0,
        };
        let now = kai_assistant::clock::Clock::now(self.clock.as_ref());
        self.door.db.write(move |tx| store::stage(tx, &new, now)).await.unwrap()
    }

    /// The user taps the button that fits.
    pub(crate) async fn tap(&self, draft: &Draft) -> Draft {
        let act = Act::fitting(&draft.status).unwrap();
        let tap = Tap { draft: draft.id, act, shown: draft.digest(), attempts: draft.attempts };
        self.door.tap(tap).await.unwrap()
    }

    /// Stages a mail, taps it, and says what became of it.
    pub(crate) async fn send(&self, to: &str, envelope: Envelope, body: &str) -> Status {
        let draft = self.stage(to, envelope, body).await;
        self.tap(&draft).await.status
    }
}

/// What a mail has besides, from an account of the post office.
pub(crate) fn envelope(from: &str, subject: &str) -> Envelope {
    Envelope {
        from: from.to_owned(),
        subject: subject.to_owned(),
        message_id: format!("kai.{}@post.test", subject.len()),
        ..Envelope::default()
    }
}
