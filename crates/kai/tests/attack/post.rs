//! The user's mailbox, to which everybody can write: real servers on this machine (Dovecot and Exim), the real bridge to
//! them, and a count of what leaves by it.

use std::sync::{Arc, Mutex};

use kai_assistant::clock::Clock;
use kai_assistant::email::account::{Account, Credentials, Security, Server};
use kai_assistant::email::port::{Asking, Found, Letter, Look, MailServers, Mark};
use kai_assistant::email::store::{self, NewAccount};
use kai_assistant::email::{EmailId, Poller, sync};
use kai_assistant::outbox::door::{ApprovedMail, Sending};
use kai_assistant::outbox::mail::Mail as Outgoing;
use kai_assistant::secret::Secret;
use kai_bridges::mail::{Limits, Mail};
use kai_stand_ins::mail::PostOffice;
use rustls::{ClientConfig, RootCertStore};

use super::house::House;
use crate::caller_env;

/// Who receives the attackers' mails, and who writes them.
pub(super) const ALICE: &str = "alice";
const ATTACKERS: [&str; 3] = ["eve", "mallory", "trudy"];

pub(super) fn office() -> PostOffice {
    PostOffice::open(&[&[ALICE], &ATTACKERS[..]].concat())
}

/// The real bridge, which notes what it is told to send.
pub(super) struct Post {
    mail: Mail,
    sent: Mutex<Vec<String>>,
}

impl Default for Post {
    fn default() -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let tls = tls.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        let mail = Mail::with(tls, caller_env::for_programs(), Limits::default());
        Self { mail, sent: Mutex::default() }
    }
}

impl Post {
    /// Everything that was handed over to be sent, whatever became of it.
    pub(super) fn sent(&self) -> Vec<String> {
        self.sent.lock().unwrap().clone()
    }
}

impl MailServers for Post {
    fn check<'a>(&'a self, account: &'a Account) -> Asking<'a, ()> {
        self.mail.check(account)
    }

    fn newer<'a>(&'a self, account: &'a Account, mark: Option<Mark>, most: usize) -> Asking<'a, Look> {
        self.mail.newer(account, mark, most)
    }

    fn read<'a>(&'a self, account: &'a Account, at: Mark) -> Asking<'a, Option<Letter>> {
        self.mail.read(account, at)
    }

    fn search<'a>(&'a self, account: &'a Account, words: &'a str, most: usize) -> Asking<'a, Found> {
        self.mail.search(account, words, most)
    }

    fn watch<'a>(&'a self, account: &'a Account, news: &'a (dyn Fn() + Send + Sync)) -> Asking<'a, ()> {
        self.mail.watch(account, news)
    }

    fn send<'a>(&'a self, account: &'a Account, approved: ApprovedMail) -> Sending<'a> {
        self.sent.lock().unwrap().push(format!("{:?}", approved.mail()));
        self.mail.send(account, approved)
    }

    fn keep_copy<'a>(&'a self, account: &'a Account, mail: &'a Outgoing) -> Asking<'a, ()> {
        self.mail.keep_copy(account, mail)
    }
}

/// Adds the user's account. What is in its inbox counts as seen.
pub(super) async fn open(house: &House, office: &PostOffice) {
    let server = |port| Server { host: "127.0.0.1".to_owned(), port, security: Security::Plain };
    let new = NewAccount {
        address: office.address(ALICE),
        user: office.address(ALICE),
        imap: server(office.ports.imap),
        smtp: server(office.ports.smtp),
        credentials: Credentials::Password(Secret::new(office.password(ALICE))),
    };
    let now = house.clock.now();
    house.app.db.write_now(|tx| store::add(tx, &new, now)).unwrap();
    let polled = poller(house).poll_all().await.unwrap();
    assert!(polled[0].1.as_ref().unwrap().seeded);
}

fn poller(house: &House) -> &Poller {
    &house.app.mail.as_ref().unwrap().poller
}

/// Delivers mails, and waits until the house has them. Returns what it calls them.
pub(super) async fn deliver(house: &House, office: &PostOffice, mails: &[Vec<u8>]) -> Vec<EmailId> {
    let mark = |house: &House| {
        let account = house.app.db.read_now(store::all).unwrap()[0].source;
        (account, house.app.db.read_now(|tx| sync::sync(tx, account)).unwrap().mark.unwrap())
    };
    let (account, before) = mark(house);
    for mail in mails {
        office.deliver(ALICE, mail);
    }
    let last = before.uid + u32::try_from(mails.len()).unwrap();
    for _ in 0..100 {
        let polled = poller(house).poll_all().await.unwrap();
        assert!(polled.iter().all(|(_, polled)| polled.is_ok()), "{polled:?} {}", office.logs());
        let (_, Mark { validity, uid }) = mark(house);
        if uid >= last {
            return (before.uid + 1..=last).map(|uid| EmailId { account, validity, uid }).collect();
        }
    }
    panic!("the mails do not arrive: {}", office.logs());
}

/// What the attacks did at the servers: nothing was sent, nothing copied, nothing read there.
pub(super) fn untouched(office: &PostOffice) {
    for name in ATTACKERS {
        assert_eq!(office.mails(name, "INBOX"), [], "nothing arrived");
    }
    assert!(!office.has_mailbox(ALICE, "Sent"), "nothing was kept as sent");
    let flags = office.mails(ALICE, "INBOX").into_iter().map(|(flags, _)| flags);
    assert!(flags.into_iter().all(|flags| flags.is_empty()), "what was unread stays unread");
}
