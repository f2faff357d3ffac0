//! Finding the servers of an account that is added.

use std::collections::BTreeMap;
use std::sync::Mutex;

use kai_assistant::email::account::{Account, Credentials};
use kai_assistant::email::adding::{NotFound, Wish, find};
use kai_assistant::email::port::{Asking, Found, Letter, Look, MailServers, Mark, Trouble, Which, Why};
use kai_assistant::email::presets::server;
use kai_assistant::outbox::door::{ApprovedMail, Sending};
use kai_assistant::outbox::mail::Mail;
use kai_assistant::secret::Secret;
use kai_assistant::untrusted::Untrusted;

/// Servers of which some take an account and others do not.
#[derive(Default)]
struct Internet {
    /// By `host:port`; what is not here has no name.
    servers: BTreeMap<&'static str, Option<Why>>,
    checks: Mutex<usize>,
}

impl MailServers for Internet {
    fn check<'a>(&'a self, account: &'a Account) -> Asking<'a, ()> {
        Box::pin(async move {
            *self.checks.lock().unwrap() += 1;
            for (which, server) in [(Which::Imap, &account.imap), (Which::Smtp, &account.smtp)] {
                let known = self.servers.get(format!("{}:{}", server.host, server.port).as_str());
                if let Some(why) = known.cloned().unwrap_or(Some(Why::NameNotFound)) {
                    return Err(Trouble { which, host: server.host.clone(), why });
                }
            }
            Ok(())
        })
    }

    fn newer<'a>(&'a self, _: &'a Account, _: Option<Mark>, _: usize) -> Asking<'a, Look> {
        unreachable!()
    }

    fn read<'a>(&'a self, _: &'a Account, _: Mark) -> Asking<'a, Option<Letter>> {
        unreachable!()
    }

    fn search<'a>(&'a self, _: &'a Account, _: &'a str, _: usize) -> Asking<'a, Found> {
        unreachable!()
    }

    fn watch<'a>(&'a self, _: &'a Account, _: &'a (dyn Fn() + Send + Sync)) -> Asking<'a, ()> {
        unreachable!()
    }

    fn send<'a>(&'a self, _: &'a Account, _: ApprovedMail) -> Sending<'a> {
        unreachable!()
    }

    fn keep_copy<'a>(&'a self, _: &'a Account, _: &'a Mail) -> Asking<'a, ()> {
        unreachable!()
    }
}

fn wish(address: &str) -> Wish {
    let credentials = Credentials::Password(Secret::new("hunter2"));
    Wish { address: address.to_owned(), user: None, imap: None, smtp: None, credentials }
}

#[tokio::test]
async fn the_servers_are_found_by_trying_and_each_attempt_is_told() {
    let internet = Internet {
        servers: BTreeMap::from([
            ("imap.example.org:993", Some(Why::NotReached("refused".to_owned()))),
            ("mail.example.org:993", None),
            ("mail.example.org:587", None),
        ]),
        ..Internet::default()
    };
    let steps = Mutex::new(vec![]);
    let told = |step: kai_words::Said| steps.lock().unwrap().push(step.to_string());
    let found = find(&internet, &wish(" Me@Example.org "), &told).await.unwrap();
    assert_eq!((found.address.as_str(), found.user.as_str()), ("Me@example.org", "Me@example.org"));
    assert_eq!((found.imap.host.as_str(), found.imap.port), ("mail.example.org", 993));
    assert_eq!((found.smtp.host.as_str(), found.smtp.port), ("mail.example.org", 587));
    let steps = steps.into_inner().unwrap();
    assert_eq!((steps.len(), *internet.checks.lock().unwrap()), (5, 5));
    assert_eq!(steps[0], "Trying imap.example.org …");
    assert_eq!(steps[4], "Trying mail.example.org …");
}

#[tokio::test]
async fn the_most_telling_trouble_is_told() {
    let words = || Untrusted::new("no");
    let unknown = |why: Why| BTreeMap::from([("mail.example.org:143", Some(why))]);
    for (name, servers, address, expected, checks) in [
        ("nothing there", BTreeMap::new(), "me@example.org", Why::NameNotFound, 4),
        ("no encryption", unknown(Why::NoTls), "me@example.org", Why::NoTls, 4),
        (
            "a wrong password ends it",
            BTreeMap::from([
                ("imap.example.org:993", Some(Why::Silent)),
                ("mail.example.org:993", Some(Why::WrongPassword(words()))),
                ("imap.example.org:143", None),
            ]),
            "me@example.org",
            Why::WrongPassword(words()),
            2,
        ),
        (
            "a password for the program",
            BTreeMap::from([("imap.gmail.com:993", Some(Why::WrongPassword(words())))]),
            "me@gmail.com",
            Why::AppPassword(words()),
            1,
        ),
    ] {
        let internet = Internet { servers, ..Internet::default() };
        let trouble = find(&internet, &wish(address), &|_| {}).await.unwrap_err();
        assert!(
            matches!(&trouble, NotFound::Server(trouble) if trouble.why == expected),
            "{name}: {trouble:?}"
        );
        assert_eq!(*internet.checks.lock().unwrap(), checks, "{name}");
    }
    let nobody = find(&Internet::default(), &wish("me\r\n@x"), &|_| {}).await;
    assert!(matches!(nobody, Err(NotFound::Address(_))));
}

#[tokio::test]
async fn what_the_user_names_is_all_that_is_tried() {
    let internet = Internet {
        servers: BTreeMap::from([("localhost:1143", None), ("smtp.example.org:465", None)]),
        ..Internet::default()
    };
    let named = Wish {
        user: Some("me".to_owned()),
        imap: server("localhost:1143", Which::Imap).ok(),
        ..wish("me@example.org")
    };
    let found = find(&internet, &named, &|_| {}).await.unwrap();
    assert_eq!((found.user.as_str(), found.imap.port, found.smtp.port), ("me", 1143, 465));
    let wrong = Wish { imap: server("nowhere.test", Which::Imap).ok(), ..wish("me@example.org") };
    let trouble = find(&internet, &wrong, &|_| {}).await;
    assert!(matches!(trouble, Err(NotFound::Server(trouble)) if trouble.host == "nowhere.test"));
}
