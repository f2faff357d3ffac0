//! A mail account that exists only in memory: an inbox, a Sent folder, and nobody behind it.

use std::sync::{Mutex, MutexGuard};

use jiff::{SignedDuration, Timestamp};
use kai_assistant::email::account::{Account, Credentials, Security, Server};
use kai_assistant::email::port::{
    Asking, BEGINNING, Found, Header, Letter, Look, MailServers, Mailbox as Party, Mark, Trouble, Which, Why,
};
use kai_assistant::email::store::NewAccount;
use kai_assistant::lock::lock;
use kai_assistant::outbox::door::{ApprovedMail, SendError, Sending};
use kai_assistant::outbox::mail::Mail;
use kai_assistant::secret::Secret;
use kai_assistant::untrusted::Untrusted;
use tokio::sync::Notify;

/// A mailbox in memory. It stands for both servers of its own account, and knows no other.
pub struct Mailbox {
    address: String,
    state: Mutex<State>,
    /// Rings when a mail arrives.
    arrived: Notify,
}

#[derive(Default)]
struct State {
    /// Oldest first.
    inbox: Vec<Letter>,
    sent: Vec<Mail>,
}

/// A mail that arrives.
pub struct NewMail<'a> {
    /// The sender's name and address.
    pub from: (&'a str, &'a str),
    pub subject: &'a str,
    pub text: &'a str,
    /// It is a newsletter.
    pub bulk: bool,
}

/// The host of both servers, by which everybody sees that there are none.
const HOST: &str = "simulated";
/// The inbox is never numbered anew.
const VALIDITY: u32 = 1;

impl Mailbox {
    pub fn new(address: &str) -> Self {
        Self { address: address.to_owned(), state: Mutex::default(), arrived: Notify::new() }
    }

    /// A mailbox with a few mails of the last days, all read.
    pub fn with_inbox(address: &str, now: Timestamp) -> Self {
        let mailbox = Self::new(address);
        for (hours, mail) in STORY {
            let date = now.checked_sub(SignedDuration::from_hours(hours)).unwrap_or(now);
            mailbox.receive(&mail, date);
        }
        for letter in &mut mailbox.state().inbox {
            letter.header.seen = true;
        }
        mailbox
    }

    /// The account as it is added.
    pub fn account(&self) -> NewAccount {
        let server = |port| Server { host: HOST.to_owned(), port, security: Security::Tls };
        NewAccount {
            address: self.address.clone(),
            user: self.address.clone(),
            imap: server(993),
            smtp: server(465),
            credentials: Credentials::Password(Secret::new("simulated")),
        }
    }

    /// A mail arrives.
    pub fn receive(&self, mail: &NewMail<'_>, date: Timestamp) {
        let mut state = self.state();
        let uid = u32::try_from(state.inbox.len()).map_or(u32::MAX, |count| count.saturating_add(1));
        let letter = self.letter(uid, mail, date);
        state.inbox.push(letter);
        drop(state);
        self.arrived.notify_one();
    }

    /// What is in the Sent folder, oldest first.
    pub fn sent(&self) -> Vec<Mail> {
        self.state().sent.clone()
    }

    fn letter(&self, uid: u32, mail: &NewMail<'_>, date: Timestamp) -> Letter {
        let (name, address) = mail.from;
        let header = Header {
            uid,
            from: Party { name: Untrusted::new(name), address: Untrusted::new(address) },
            subject: Untrusted::new(mail.subject),
            received: date,
            beginning: Untrusted::new(mail.text.chars().take(BEGINNING).collect::<String>()),
            bulk: mail.bulk,
            seen: false,
        };
        let you = Party { name: Untrusted::default(), address: Untrusted::new(self.address.as_str()) };
        Letter {
            header,
            written: Some(date),
            to: vec![you],
            cc: vec![],
            reply_to: vec![],
            message_id: Some(Untrusted::new(format!("{uid}@{HOST}.invalid"))),
            references: vec![],
            text: Untrusted::new(mail.text),
            is_beginning: false,
            attachments: vec![],
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Does something in the mailbox, if the account is its own.
    fn asked<'a, T: Send + 'a>(
        &'a self,
        account: &'a Account,
        look: impl FnOnce(&mut State) -> T + Send + 'a,
    ) -> Asking<'a, T> {
        Box::pin(async move {
            self.knows(account)?;
            Ok(look(&mut self.state()))
        })
    }

    fn knows(&self, account: &Account) -> Result<(), Trouble> {
        if account.address == self.address && account.imap.host == HOST && account.smtp.host == HOST {
            return Ok(());
        }
        let why = Why::NotReached("everything here is simulated".to_owned());
        Err(Trouble { which: Which::Imap, host: account.imap.host.clone(), why })
    }
}

impl State {
    fn newer(&self, mark: Option<Mark>, most: usize) -> Look {
        let last = self.inbox.last().map_or(0, |letter| letter.header.uid);
        let end = Mark { validity: VALIDITY, uid: last };
        let Some(mark) = mark.filter(|mark| mark.validity == VALIDITY) else {
            return Look { mark: end, mails: vec![], more: false };
        };
        let headers = self.inbox.iter().map(|letter| letter.header.clone());
        let mut mails: Vec<Header> = headers.filter(|header| header.uid > mark.uid).collect();
        let more = mails.len() > most;
        mails.truncate(most);
        let uid = mails.last().map_or(last, |header| header.uid);
        Look { mark: Mark { validity: VALIDITY, uid }, mails, more }
    }

    fn search(&self, words: &str, most: usize) -> Found {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let has_all = |letter: &&Letter| {
            let Letter { header, text, .. } = letter;
            let parts = [&header.from.name, &header.from.address, &header.subject, text];
            let whole = parts.map(|part| part.as_written().to_lowercase()).join("\n");
            words.iter().all(|word| whole.contains(word.as_str()))
        };
        let found = self.inbox.iter().rev().filter(has_all).take(most);
        Found { validity: VALIDITY, mails: found.map(|letter| letter.header.clone()).collect() }
    }

    /// Keeps a sent mail, unless it is there already.
    fn keep(&mut self, mail: &Mail) {
        let is_same = |kept: &Mail| kept.envelope.message_id == mail.envelope.message_id;
        if !self.sent.iter().any(is_same) {
            self.sent.push(mail.clone());
        }
    }
}

impl MailServers for Mailbox {
    fn check<'a>(&'a self, account: &'a Account) -> Asking<'a, ()> {
        self.asked(account, |_| ())
    }

    fn newer<'a>(&'a self, account: &'a Account, mark: Option<Mark>, most: usize) -> Asking<'a, Look> {
        self.asked(account, move |state| state.newer(mark, most))
    }

    fn read<'a>(&'a self, account: &'a Account, at: Mark) -> Asking<'a, Option<Letter>> {
        self.asked(account, move |state| {
            let found = state.inbox.iter().find(|letter| letter.header.uid == at.uid);
            found.filter(|_| at.validity == VALIDITY).cloned()
        })
    }

    fn search<'a>(&'a self, account: &'a Account, words: &'a str, most: usize) -> Asking<'a, Found> {
        self.asked(account, move |state| state.search(words, most))
    }

    fn watch<'a>(&'a self, account: &'a Account, news: &'a (dyn Fn() + Send + Sync)) -> Asking<'a, ()> {
        Box::pin(async move {
            self.knows(account)?;
            loop {
                self.arrived.notified().await;
                news();
            }
        })
    }

    /// It is in the Sent folder, and went nowhere else.
    fn send<'a>(&'a self, account: &'a Account, approved: ApprovedMail) -> Sending<'a> {
        Box::pin(async move {
            self.knows(account).map_err(|trouble| SendError::NotSent(trouble.said()))?;
            self.state().keep(approved.mail());
            Ok(())
        })
    }

    fn keep_copy<'a>(&'a self, account: &'a Account, mail: &'a Mail) -> Asking<'a, ()> {
        self.asked(account, move |state| state.keep(mail))
    }
}

/// Hours ago, and what was read before the demo began.
const STORY: [(i64, NewMail<'static>); 2] = [
    (
        70,
        NewMail {
            from: ("Mia Lindqvist", "mia@example.com"),
            subject: "The exhibition is on!",
            text: "Hi!\n\nThe library says yes: we get the wall by the stairs for the whole of next month. \
                   Three photos each. I'll ask the print shop about sizes.\n\nMia\n",
            bulk: false,
        },
    ),
    (
        30,
        NewMail {
            from: ("Anselm Books", "orders@anselm.example"),
            subject: "Your order is on its way",
            text: "Hello,\n\nyour order (1 book) left us today. Enjoy reading!\n\nAnselm Books\n",
            bulk: false,
        },
    ),
];

#[cfg(test)]
mod tests {
    use kai_assistant::source::SourceId;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn mail(subject: &str) -> NewMail<'_> {
        NewMail { from: ("Mia", "mia@example.com"), subject, text: "Three photos?", bulk: false }
    }

    #[tokio::test]
    async fn it_tells_what_is_newer_and_finds_what_it_has() {
        let mailbox = Mailbox::with_inbox("you@example.org", at(1_800_000_000));
        let account = mailbox.account().untried();
        let seed = mailbox.newer(&account, None, 50).await.unwrap();
        assert!(seed.mails.is_empty(), "where the inbox is now");
        for subject in ["One", "Two"] {
            mailbox.receive(&mail(subject), at(1_800_000_001));
        }
        let first = mailbox.newer(&account, Some(seed.mark), 1).await.unwrap();
        let second = mailbox.newer(&account, Some(first.mark), 1).await.unwrap();
        let subjects = |look: &Look| -> Vec<String> {
            look.mails.iter().map(|mail| mail.subject.as_written().to_owned()).collect()
        };
        assert_eq!((subjects(&first), first.more), (vec!["One".to_owned()], true));
        assert_eq!((subjects(&second), second.more), (vec!["Two".to_owned()], false));
        let letter = mailbox.read(&account, second.mark).await.unwrap().unwrap();
        assert_eq!((letter.text.as_written(), letter.header.seen), ("Three photos?", false));
        let found = mailbox.search(&account, "MIA photos", 2).await.unwrap();
        assert_eq!(found.mails[0].subject.as_written(), "Two", "newest first");
        assert_eq!(mailbox.search(&account, "nowhere", 9).await.unwrap().mails, []);
    }

    #[tokio::test]
    async fn another_account_is_not_reached() {
        let mailbox = Mailbox::new("you@example.org");
        let other = |change: fn(&mut Account)| {
            let mut account = Account { source: SourceId(1_000_001), ..mailbox.account().untried() };
            change(&mut account);
            account
        };
        for account in [
            other(|account| "me@example.org".clone_into(&mut account.address)),
            other(|account| "imap.example.org".clone_into(&mut account.imap.host)),
            other(|account| "smtp.example.org".clone_into(&mut account.smtp.host)),
        ] {
            let why = mailbox.check(&account).await.unwrap_err().why;
            assert_eq!(why, Why::NotReached("everything here is simulated".to_owned()));
        }
        assert_eq!(mailbox.check(&other(|_| ())).await, Ok(()));
    }
}
