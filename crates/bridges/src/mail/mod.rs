//! The user's mail accounts, behind the assistant's port: IMAP to read, SMTP to send.
//!
//! The walk of a call: [`Mail`] gets what proves who the user is (`token`) → `dial` connects and encrypts, within
//! `limits`, and hands over a `line` → `imap` or `smtp` signs in (`sign_in`) and asks → `headers`, `mime` and `text`
//! read what strangers wrote; `compose` writes what the user approved.
//!
//! Each call has a connection of its own and nothing is kept. Every reply is bounded in time and bytes, so that a server
//! that stalls or floods costs a call and nothing else.

mod compose;
mod dial;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod headers;
mod imap;
mod limits;
mod line;
mod mime;
mod sign_in;
mod smtp;
mod text;
mod token;

use jiff::Timestamp;
use kai_assistant::email::account::{Account, Server};
use kai_assistant::email::port::{Asking, Found, Letter, Look, MailServers, Mark, Trouble, Which, Why};
use kai_assistant::outbox::door::{ApprovedMail, SendError, Sending};
use kai_assistant::outbox::mail::Mail as Outgoing;
use kai_words::said;
use rustls::ClientConfig;
use tokio::time::{Instant, timeout};

use self::compose::{Composed, Readers, compose};
use self::dial::Dial;
use self::imap::{Copy, Session};
use self::sign_in::Proof;
use self::smtp::Smtp;
use crate::environment::Environment;

pub use self::limits::Limits;

/// The servers of mail accounts.
pub struct Mail {
    dial: Dial,
    /// For commands that print tokens.
    environment: Environment,
}

impl Mail {
    /// Servers that show a certificate which this machine trusts.
    pub fn new(environment: Environment) -> Result<Self, rustls::Error> {
        Ok(Self::with(kai_llm::tls_config()?, environment, Limits::default()))
    }

    /// Servers that are reached with other TLS settings and limits, for tests.
    pub fn with(tls: ClientConfig, environment: Environment, limits: Limits) -> Self {
        Self { dial: Dial::new(tls, limits), environment }
    }

    async fn proof(&self, account: &Account) -> Result<Proof, Why> {
        token::proof(&account.credentials, &self.environment, self.dial.limits()).await
    }

    async fn session(&self, account: &Account) -> Result<Session, Why> {
        let proof = self.proof(account).await?;
        Session::open(&self.dial, &account.imap, &account.user, &proof).await
    }

    /// Limits the time of a whole call, and says where its trouble was.
    async fn within<T>(
        &self,
        (which, server): (Which, &Server),
        call: impl Future<Output = Result<T, Why>>,
    ) -> Result<T, Trouble> {
        let ended = timeout(self.dial.limits().whole, call).await.unwrap_or(Err(Why::Silent));
        ended.map_err(|why| Trouble { which, host: server.host.clone(), why })
    }

    async fn sent(&self, account: &Account, mail: &Composed) -> Result<(), SendError> {
        let trouble = |why| Trouble { which: Which::Smtp, host: account.smtp.host.clone(), why };
        let proof = self.proof(account).await.map_err(|why| SendError::NotSent(trouble(why).said()))?;
        smtp::send(&self.dial, &account.smtp, &account.user, &proof, mail).await
    }
}

impl MailServers for Mail {
    fn check<'a>(&'a self, account: &'a Account) -> Asking<'a, ()> {
        Box::pin(async move {
            let proof = self.within((Which::Imap, &account.imap), self.proof(account)).await?;
            let read = async {
                let session = Session::open(&self.dial, &account.imap, &account.user, &proof).await?;
                session.close().await;
                Ok(())
            };
            self.within((Which::Imap, &account.imap), read).await?;
            let send = async {
                Smtp::open(&self.dial, &account.smtp, &account.user, &proof).await?.close().await;
                Ok(())
            };
            self.within((Which::Smtp, &account.smtp), send).await
        })
    }

    fn newer<'a>(&'a self, account: &'a Account, mark: Option<Mark>, most: usize) -> Asking<'a, Look> {
        let look = async move {
            let until = Instant::now() + self.dial.limits().look;
            let mut session = self.session(account).await?;
            let look = session.newer(mark, most, until).await?;
            session.close().await;
            Ok(look)
        };
        Box::pin(self.within((Which::Imap, &account.imap), look))
    }

    fn read<'a>(&'a self, account: &'a Account, at: Mark) -> Asking<'a, Option<Letter>> {
        let read = async move {
            let mut session = self.session(account).await?;
            let letter = session.letter(at).await?;
            session.close().await;
            Ok(letter)
        };
        Box::pin(self.within((Which::Imap, &account.imap), read))
    }

    fn search<'a>(&'a self, account: &'a Account, words: &'a str, most: usize) -> Asking<'a, Found> {
        let search = async move {
            let mut session = self.session(account).await?;
            let found = session.search(words, most).await?;
            session.close().await;
            Ok(found)
        };
        Box::pin(self.within((Which::Imap, &account.imap), search))
    }

    fn watch<'a>(&'a self, account: &'a Account, news: &'a (dyn Fn() + Send + Sync)) -> Asking<'a, ()> {
        let watch = async move { self.session(account).await?.watch(news).await };
        let trouble = |why| Trouble { which: Which::Imap, host: account.imap.host.clone(), why };
        Box::pin(async move { watch.await.map_err(trouble) })
    }

    fn send<'a>(&'a self, account: &'a Account, approved: ApprovedMail) -> Sending<'a> {
        Box::pin(async move {
            let composed = compose(approved.mail(), Readers::Recipients);
            let composed = composed.map_err(|_| SendError::NotSent(said::mail_bad_field()))?;
            self.sent(account, &composed).await
        })
    }

    fn keep_copy<'a>(&'a self, account: &'a Account, mail: &'a Outgoing) -> Asking<'a, ()> {
        let keep = async move {
            // What the door would not let out was not sent, so nothing is to be kept.
            let Ok(composed) = compose(mail, Readers::User) else { return Ok(()) };
            let sent_at = Timestamp::from_millisecond(mail.date).unwrap_or(Timestamp::UNIX_EPOCH);
            let message_id = mail.envelope.message_id.as_str();
            let mut session = self.session(account).await?;
            session.keep(&Copy { message_id, sent_at, bytes: &composed.bytes }).await?;
            session.close().await;
            Ok(())
        };
        Box::pin(self.within((Which::Imap, &account.imap), keep))
    }
}
