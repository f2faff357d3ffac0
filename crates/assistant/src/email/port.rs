//! The port to mail servers: what Kai asks them, and what can go wrong. A bridge implements [`MailServers`].

use std::pin::Pin;

use jiff::Timestamp;
use kai_words::{Said, said};

use super::account::Account;
use crate::outbox::door::{ApprovedMail, Sending};
use crate::outbox::mail::Mail;
use crate::untrusted::Untrusted;

/// The future of an answer.
pub type Asking<'a, T> = Pin<Box<dyn Future<Output = Result<T, Trouble>> + Send + 'a>>;

/// The servers of accounts. Every call has its own time limit and reads a bounded number of bytes.
pub trait MailServers: Send + Sync {
    /// Signs in to both servers of an account and out again.
    fn check<'a>(&'a self, account: &'a Account) -> Asking<'a, ()>;

    /// What arrived in the inbox after the mark, the oldest `most` of it, or less if the rest cannot be had now.
    /// Without a mark, nothing but where the inbox is now. Changes nothing on the server: what was unread stays unread.
    fn newer<'a>(&'a self, account: &'a Account, mark: Option<Mark>, most: usize) -> Asking<'a, Look>;

    /// A mail of the inbox in full; `None` if it is gone, or numbered anew.
    fn read<'a>(&'a self, account: &'a Account, at: Mark) -> Asking<'a, Option<Letter>>;

    /// Searches the inbox on the server; newest first, at most `most`.
    fn search<'a>(&'a self, account: &'a Account, words: &'a str, most: usize) -> Asking<'a, Found>;

    /// Stays connected and calls `news` whenever the server says that something arrived. Ends only with a trouble;
    /// [`Why::NoPush`] if the server cannot do that.
    fn watch<'a>(&'a self, account: &'a Account, news: &'a (dyn Fn() + Send + Sync)) -> Asking<'a, ()>;

    /// Sends a mail. `Ok` means that the server took it over.
    fn send<'a>(&'a self, account: &'a Account, approved: ApprovedMail) -> Sending<'a>;

    /// Puts a copy of a sent mail into the Sent folder, unless it is there already.
    fn keep_copy<'a>(&'a self, account: &'a Account, mail: &'a Mail) -> Asking<'a, ()>;
}

/// A place in an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// The UIDVALIDITY of the inbox. When it changes, the server has numbered its mails anew.
    pub validity: u32,
    /// The highest number that was seen, or the number of one mail.
    pub uid: u32,
}

/// What a look into the inbox showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Where the inbox is after this look: with mails, the number of the last of them; with nothing new, the mark that
    /// was asked about; without a mark, the highest there is. If it is lower than the mark that was asked about, that
    /// mark lies beyond everything, as after a restored backup, and means nothing any more.
    pub mark: Mark,
    /// Oldest first. Empty if the mark that was asked about means nothing any more.
    pub mails: Vec<Header>,
    /// There are more after these.
    pub more: bool,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub validity: u32,
    /// Newest first.
    pub mails: Vec<Header>,
}

/// A mail as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub uid: u32,
    pub from: Mailbox,
    pub subject: Untrusted,
    /// When the server received it. The date that its sender wrote may be any.
    pub received: Timestamp,
    /// The beginning of its first readable text part, at most [`BEGINNING`] characters.
    pub beginning: Untrusted,
    /// A newsletter, or sent by a program (`List-Unsubscribe`, `Precedence: bulk`, `Auto-Submitted`).
    pub bulk: bool,
    /// The user has read it elsewhere.
    pub seen: bool,
}

/// How many characters of a mail are fetched for a list.
pub const BEGINNING: usize = 1_000;

/// A name with an address, as a header states them. Both may be empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mailbox {
    pub name: Untrusted,
    pub address: Untrusted,
}

/// A mail in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    pub header: Header,
    /// When its sender says that it was written.
    pub written: Option<Timestamp>,
    pub to: Vec<Mailbox>,
    pub cc: Vec<Mailbox>,
    pub reply_to: Vec<Mailbox>,
    /// Its Message-ID, without angle brackets.
    pub message_id: Option<Untrusted>,
    /// The Message-IDs of the conversation before it, oldest first, without angle brackets.
    pub references: Vec<Untrusted>,
    pub text: Untrusted,
    /// Only the beginning of the text was read.
    pub is_beginning: bool,
    pub attachments: Vec<Attachment>,
}

/// A file in a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    pub name: Untrusted,
    /// Such as `application/pdf`.
    pub kind: Untrusted,
    /// In bytes, as far as it is known.
    pub size: u64,
}

/// One of the two servers of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    Imap,
    Smtp,
}

/// Why a server could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.said())]
pub struct Trouble {
    pub which: Which,
    /// The host that was tried.
    pub host: String,
    pub why: Why,
}

impl Trouble {
    /// The trouble in the user's language, with what to do about it.
    pub fn said(&self) -> Said {
        let host = self.host.as_str();
        match &self.why {
            Why::NameNotFound => said::mail_name_not_found(host),
            Why::NotReached(why) => said::mail_not_reached(host, why),
            Why::Silent => said::mail_silent(host),
            Why::NoTls => said::mail_no_tls(host),
            Why::Certificate(why) => said::mail_certificate(host, why.clone()),
            Why::PlainElsewhere => said::mail_plain_elsewhere(host),
            Why::WrongPassword(words) => said::mail_wrong_password(host, words.line(WORDS)),
            Why::AppPassword(words) => said::mail_app_password(host, words.line(WORDS)),
            Why::ImapOff(words) => said::mail_imap_off(host, words.line(WORDS)),
            Why::TokenCommand(why) => said::mail_token_command(why),
            Why::NoPush => said::mail_no_push(host),
            Why::Refused(words) => said::mail_refused(host, words.line(WORDS)),
            Why::Nonsense => said::mail_nonsense(host),
            Why::Broken => said::mail_broken(host),
        }
    }
}

/// How many characters of what a server said are shown.
const WORDS: usize = 200;

/// The step that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// There is no such name.
    NameNotFound,
    /// Nothing answers there. The text is the system's reason.
    NotReached(String),
    /// It did not answer in time.
    Silent,
    /// It offers no encryption, or answers in plain text where encryption was expected.
    NoTls,
    /// Its certificate cannot be trusted. The text says why.
    Certificate(Said),
    /// It is to be reached without encryption and is not on this machine.
    PlainElsewhere,
    /// It refused the name or the password. The text is what it said.
    WrongPassword(Untrusted),
    /// It wants a password that is made for this program only.
    AppPassword(Untrusted),
    /// Reading mail over IMAP is turned off for this account.
    ImapOff(Untrusted),
    /// The command that prints the token failed. The text says how.
    TokenCommand(Said),
    /// It cannot push.
    NoPush,
    /// It refused something else. The text is what it said.
    Refused(Untrusted),
    /// What it sent makes no sense, or is too much.
    Nonsense,
    /// The connection broke.
    Broken,
}
