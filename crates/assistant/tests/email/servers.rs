//! Mail servers in memory, which do what a test tells them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use jiff::Timestamp;
use kai_assistant::email::account::Account;
use kai_assistant::email::port::{
    Asking, Found, Header, Letter, Look, MailServers, Mailbox, Mark, Trouble, Which, Why,
};
use kai_assistant::outbox::door::{ApprovedMail, SendError, Sending};
use kai_assistant::outbox::mail::Mail;
use kai_assistant::untrusted::Untrusted;
use tokio::sync::Notify;

/// What becomes of a mail that is handed over.
pub(crate) enum Fate {
    Taken,
    Refused,
    /// The connection broke after the data.
    Unsure,
    /// It is taken when the test says so.
    Waits(Arc<Notify>),
}

/// What a server does when it is asked about an inbox.
#[derive(Clone, Default)]
pub(crate) enum Mood {
    #[default]
    Fine,
    Hangs,
    Fails(Why),
}

#[derive(Default)]
pub(crate) struct Inbox {
    pub(crate) validity: u32,
    pub(crate) letters: BTreeMap<u32, Letter>,
    /// The number that the next mail gets, if the server says so.
    pub(crate) next: Option<u32>,
    pub(crate) mood: Mood,
    /// The marks that it was asked with.
    pub(crate) asked: Vec<Option<Mark>>,
    /// How often somebody began to watch it.
    pub(crate) watched: usize,
    pub(crate) news: Arc<Notify>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) inboxes: BTreeMap<String, Inbox>,
    pub(crate) fates: VecDeque<Fate>,
    pub(crate) sent: Vec<(String, Mail)>,
    pub(crate) copies: Vec<(String, Mail)>,
    /// So many copies are refused.
    pub(crate) copy_failures: usize,
}

#[derive(Default)]
pub(crate) struct Servers {
    state: Mutex<State>,
    /// Whenever somebody began to wait.
    pub(crate) waits: Notify,
}

impl Servers {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn inbox<T>(&self, address: &str, with: impl FnOnce(&mut Inbox) -> T) -> T {
        let mut state = self.state();
        with(
            state
                .inboxes
                .entry(address.to_owned())
                .or_insert_with(|| Inbox { validity: 7, ..Inbox::default() }),
        )
    }

    /// Delivers a mail. Returns its number.
    pub(crate) fn deliver(&self, address: &str, letter: Letter) -> u32 {
        let uid = self.inbox(address, |inbox| {
            let uid = inbox.letters.keys().last().map_or(1, |last| last + 1);
            let header = Header { uid, ..letter.header.clone() };
            inbox.letters.insert(uid, Letter { header, ..letter });
            inbox.next = inbox.next.map(|_| uid + 1);
            uid
        });
        let news = self.inbox(address, |inbox| Arc::clone(&inbox.news));
        news.notify_one();
        uid
    }

    pub(crate) fn sent(&self) -> Vec<(String, Mail)> {
        self.state().sent.clone()
    }

    /// What the server of the account does now.
    async fn mood(&self, account: &Account) -> Result<(), Trouble> {
        let mood = self.inbox(&account.address, |inbox| inbox.mood.clone());
        match mood {
            Mood::Fine => Ok(()),
            Mood::Hangs => {
                self.waits.notify_one();
                std::future::pending().await
            }
            Mood::Fails(why) => Err(trouble(account, why)),
        }
    }
}

pub(crate) fn trouble(account: &Account, why: Why) -> Trouble {
    Trouble { which: Which::Imap, host: account.imap.host.clone(), why }
}

/// A mail from Alice.
pub(crate) fn letter(subject: &str, text: &str) -> Letter {
    letter_from("Alice Liddell", "alice@example.org", subject, text)
}

pub(crate) fn letter_from(name: &str, address: &str, subject: &str, text: &str) -> Letter {
    Letter {
        header: Header {
            uid: 0,
            from: Mailbox { name: Untrusted::new(name), address: Untrusted::new(address) },
            subject: Untrusted::new(subject),
            received: Timestamp::from_second(1_773_000_000).unwrap(),
            beginning: Untrusted::new(text.chars().take(1_000).collect::<String>()),
            bulk: false,
            seen: false,
        },
        written: None,
        to: vec![],
        cc: vec![],
        reply_to: vec![],
        message_id: Some(Untrusted::new("1@example.org")),
        references: vec![],
        text: Untrusted::new(text),
        is_beginning: false,
        attachments: vec![],
    }
}

pub(crate) fn bulk(mut letter: Letter) -> Letter {
    letter.header.bulk = true;
    letter
}

impl MailServers for Servers {
    fn check<'a>(&'a self, account: &'a Account) -> Asking<'a, ()> {
        Box::pin(self.mood(account))
    }

    fn newer<'a>(&'a self, account: &'a Account, mark: Option<Mark>, most: usize) -> Asking<'a, Look> {
        Box::pin(async move {
            self.inbox(&account.address, |inbox| inbox.asked.push(mark));
            self.mood(account).await?;
            Ok(self.inbox(&account.address, |inbox| {
                let validity = inbox.validity;
                let last = inbox.letters.keys().last().copied().unwrap_or_default();
                let is_beyond = |mark: &Mark| inbox.next.is_some_and(|next| next <= mark.uid);
                let Some(mark) = mark.filter(|mark| mark.validity == validity && !is_beyond(mark)) else {
                    return Look { mark: Mark { validity, uid: last }, mails: vec![], more: false };
                };
                let newer: Vec<Header> =
                    inbox.letters.range(mark.uid + 1..).map(|(_, letter)| letter.header.clone()).collect();
                let mails: Vec<Header> = newer.iter().take(most).cloned().collect();
                let uid = mails.last().map_or(mark.uid, |mail| mail.uid);
                Look { mark: Mark { validity, uid }, more: newer.len() > mails.len(), mails }
            }))
        })
    }

    fn read<'a>(&'a self, account: &'a Account, at: Mark) -> Asking<'a, Option<Letter>> {
        Box::pin(async move {
            self.mood(account).await?;
            Ok(self.inbox(&account.address, |inbox| {
                inbox.letters.get(&at.uid).filter(|_| inbox.validity == at.validity).cloned()
            }))
        })
    }

    fn search<'a>(&'a self, account: &'a Account, words: &'a str, most: usize) -> Asking<'a, Found> {
        Box::pin(async move {
            self.mood(account).await?;
            Ok(self.inbox(&account.address, |inbox| {
                let is_in = |letter: &&Letter| {
                    let Header { from, subject, .. } = &letter.header;
                    let parts = [&from.name, &from.address, subject, &letter.text];
                    let whole = parts.map(Untrusted::as_written).join("\n").to_lowercase();
                    words.to_lowercase().split(' ').all(|word| whole.contains(word))
                };
                let found = inbox.letters.values().rev().filter(is_in).take(most);
                Found { validity: inbox.validity, mails: found.map(|letter| letter.header.clone()).collect() }
            }))
        })
    }

    fn watch<'a>(&'a self, account: &'a Account, news: &'a (dyn Fn() + Send + Sync)) -> Asking<'a, ()> {
        Box::pin(async move {
            let arrived = self.inbox(&account.address, |inbox| {
                inbox.watched += 1;
                Arc::clone(&inbox.news)
            });
            loop {
                if let Mood::Fails(why) = self.inbox(&account.address, |inbox| inbox.mood.clone()) {
                    return Err(trouble(account, why));
                }
                arrived.notified().await;
                news();
            }
        })
    }

    fn send<'a>(&'a self, account: &'a Account, approved: ApprovedMail) -> Sending<'a> {
        let mail = approved.mail().clone();
        Box::pin(async move {
            let fate = self.state().fates.pop_front().unwrap_or(Fate::Taken);
            if matches!(fate, Fate::Refused) {
                return Err(SendError::NotSent("No such recipient.".into()));
            }
            self.state().sent.push((account.address.clone(), mail));
            match fate {
                Fate::Waits(go_on) => {
                    self.waits.notify_one();
                    go_on.notified().await;
                    Ok(())
                }
                Fate::Unsure => Err(SendError::Unsure("The connection broke.".into())),
                Fate::Taken | Fate::Refused => Ok(()),
            }
        })
    }

    fn keep_copy<'a>(&'a self, account: &'a Account, mail: &'a Mail) -> Asking<'a, ()> {
        Box::pin(async move {
            self.mood(account).await?;
            let mut state = self.state();
            if state.copy_failures > 0 {
                state.copy_failures -= 1;
                return Err(trouble(account, Why::Broken));
            }
            state.copies.push((account.address.clone(), mail.clone()));
            Ok(())
        })
    }
}
