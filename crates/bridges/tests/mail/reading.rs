//! Reads mail that a real server keeps.

use kai_assistant::email::account::Security;
use kai_assistant::email::port::{Letter, Look, MailServers, Mark};
use kai_stand_ins::mail::PostOffice;

use crate::desk::{account, mail};

fn subjects(look: &Look) -> Vec<&str> {
    look.mails.iter().map(|mail| mail.subject.as_written()).collect()
}

fn simple(subject: &str, text: &str) -> Vec<u8> {
    format!(
        "From: Bob <bob@post.test>\r\nTo: alice@post.test\r\nSubject: {subject}\r\n\
         Date: Tue, 1 Jul 2025 10:00:00 +0200\r\nMessage-ID: <{}@x>\r\n\r\n{text}\r\n",
        subject.len()
    )
    .into_bytes()
}

#[tokio::test]
async fn signing_in_works_however_the_connection_is_encrypted() {
    let office = PostOffice::open(&["alice"]);
    for security in [Security::Tls, Security::StartTls, Security::Plain] {
        let checked = mail(&office).check(&account(&office, "alice", security)).await;
        assert_eq!(checked, Ok(()), "{security:?} {}", office.logs());
    }
}

#[tokio::test]
async fn new_mails_are_told_once_and_stay_unread() {
    let office = PostOffice::open(&["alice"]);
    let (mail, alice) = (mail(&office), account(&office, "alice", Security::Tls));
    office.deliver("alice", &simple("old", "Old news"));
    let seed = mail.newer(&alice, None, 50).await.unwrap();
    assert_eq!((seed.mails.len(), seed.more, seed.mark.uid), (0, false, 1));
    assert_eq!(mail.newer(&alice, Some(seed.mark), 50).await.unwrap(), seed);
    for n in 0..5 {
        office.deliver("alice", &simple(&format!("new {n}"), "Dinner at eight?"));
    }
    let first = mail.newer(&alice, Some(seed.mark), 3).await.unwrap();
    assert_eq!((subjects(&first), first.more), (vec!["new 0", "new 1", "new 2"], true));
    let rest = mail.newer(&alice, Some(first.mark), 3).await.unwrap();
    assert_eq!((subjects(&rest), rest.more), (vec!["new 3", "new 4"], false));
    let header = &rest.mails[0];
    assert_eq!(header.from.address.as_written(), "bob@post.test");
    assert_eq!(header.from.name.as_written(), "Bob");
    assert_eq!(header.beginning.as_written(), "Dinner at eight?");
    assert!(!header.seen && !header.bulk);
    let none = mail.newer(&alice, Some(rest.mark), 3).await.unwrap();
    assert_eq!((none.mails.len(), none.mark), (0, rest.mark));
    let letter = read(&mail, &alice, rest.mark).await;
    assert_eq!(letter.text.as_written(), "Dinner at eight?");
    assert!(office.mails("alice", "INBOX").iter().all(|(flags, _)| flags.is_empty()), "nothing is read");
    let validity = seed.mark.validity + 7;
    office.renumber("alice", validity);
    let anew = mail.newer(&alice, Some(rest.mark), 3).await.unwrap();
    assert_eq!((anew.mark, anew.mails.len()), (Mark { validity, uid: 6 }, 0));
    assert_eq!(mail.read(&alice, rest.mark).await, Ok(None));
}

async fn read(mail: &impl MailServers, alice: &kai_assistant::email::account::Account, at: Mark) -> Letter {
    mail.read(alice, at).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_search_finds_the_newest_with_all_words() {
    let office = PostOffice::open(&["alice"]);
    let (mail, alice) = (mail(&office), account(&office, "alice", Security::Tls));
    for (subject, text) in [
        ("one", "The rent in Berlin"),
        ("two", "The rent in \"Köln\""),
        ("three", "Nothing"),
        ("four", "Rent! Berlin!"),
        ("back\\slash", "a {5} (x) %"),
    ] {
        let header = "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\nSubject:";
        let raw = String::from_utf8(simple(subject, text)).unwrap().replace("Subject:", header);
        office.deliver("alice", raw.as_bytes());
    }
    for (words, expected) in [
        ("rent berlin", vec!["four", "one"]),
        ("Köln", vec!["two"]),
        ("\"köln\" rent", vec!["two"]),
        ("rent", vec!["four", "two", "one"]),
        ("back\\slash", vec!["back\\slash"]),
        ("{5}", vec!["back\\slash"]),
        ("x\" ALL \"", vec![]),
        ("nothing\r\nk9 DELETE INBOX", vec![]),
        ("", vec![]),
        ("\0", vec![]),
        ("日本", vec![]),
    ] {
        let found = mail.search(&alice, words, 20).await.unwrap();
        let subjects: Vec<_> = found.mails.iter().map(|mail| mail.subject.as_written()).collect();
        assert_eq!(subjects, expected, "{words:?} {}", office.logs());
    }
    assert_eq!(mail.search(&alice, "rent", 2).await.unwrap().mails.len(), 2);
    assert_eq!(office.mails("alice", "INBOX").len(), 5);
}

#[tokio::test]
async fn news_are_pushed() {
    let office = PostOffice::open(&["alice"]);
    let (mail, alice) = (mail(&office), account(&office, "alice", Security::Tls));
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let news = move || tell.send(()).unwrap();
    let pushed = async {
        told.recv().await.unwrap();
        for n in 0..2 {
            office.deliver("alice", &simple(&format!("{n}"), "Hi"));
            told.recv().await.unwrap();
        }
    };
    tokio::select! {
        ended = mail.watch(&alice, &news) => panic!("{ended:?}"),
        () = pushed => {}
        () = tokio::time::sleep(std::time::Duration::from_secs(30)) => panic!("no push {}", office.logs()),
    }
}
