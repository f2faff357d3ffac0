//! Makes drafts of mails: new ones, and answers.

use jiff::tz::TimeZone;
use rusqlite::Transaction;

use super::account::Account;
use super::port::Letter;
use super::reply::{self, Recipients, To};
use super::{EmailId, kept};
use crate::db::DbError;
use crate::hex;
use crate::outbox::body::{self, Unsendable};
use crate::outbox::mail::Envelope;
use crate::outbox::{Channel, NewDraft, ReplyTo, address};
use crate::tool::Run;

/// A mail that is answered.
pub(super) struct Answered<'a> {
    pub(super) id: EmailId,
    pub(super) letter: &'a Letter,
    /// The account that received it, which the answer leaves by.
    pub(super) account: &'a Account,
    /// The addresses of all accounts of the user.
    pub(super) own: &'a [String],
}

/// Why a mail cannot be answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    /// It names no address to answer to.
    #[error("The sender of this mail has no address to reply to.")]
    Nobody,
    #[error(transparent)]
    Text(#[from] Unsendable),
    #[error(transparent)]
    Store(#[from] DbError),
}

impl Answered<'_> {
    /// The answer with these words, in that run.
    pub(super) fn answer(
        &self,
        words: &str,
        whom: To,
        zone: &TimeZone,
        run: &Run,
    ) -> Result<NewDraft, NoAnswer> {
        let Self { id, letter, account, own } = self;
        let words = body::sendable_mail(words)?;
        let Recipients { to, cc } = reply::recipients(letter, whom, own).ok_or(NoAnswer::Nobody)?;
        let envelope = Envelope {
            from: account.address.clone(),
            cc,
            bcc: vec![],
            subject: body::subject(&reply::subject(&letter.header.subject))?,
            quote: reply::quotation(letter, zone),
            message_id: message_id(&account.address)?,
            in_reply_to: reply::answered_id(letter),
            references: reply::references(letter),
        };
        let answered = Some(ReplyTo::Email(id.to_string()));
        let draft = draft(account, &to, words, envelope, run);
        Ok(NewDraft { in_reply_to: answered, quoted: Some(letter.text.clone()), ..draft })
    }

    /// Whether everybody who receives the answer has written to the user: the sender of the answered mail has, but it may
    /// name somebody else to answer to.
    pub(super) fn is_known(&self, tx: &Transaction<'_>, draft: &NewDraft) -> Result<bool, DbError> {
        let sender = address::one(self.letter.header.from.address.as_written()).unwrap_or_default();
        all_known(tx, draft, |one| address::same(one, &sender))
    }
}

/// Whether everybody who receives the draft has written to the user, or is known otherwise.
pub(super) fn all_known(
    tx: &Transaction<'_>,
    draft: &NewDraft,
    otherwise: impl Fn(&str) -> bool,
) -> Result<bool, DbError> {
    let copies = draft.mail.iter().flat_map(|mail| mail.cc.iter().chain(&mail.bcc)).map(String::as_str);
    let everybody = draft.to.split(", ").filter(|one| !one.is_empty()).chain(copies);
    for one in everybody {
        if !otherwise(one) && !kept::wrote_before(tx, one)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A draft that leaves by this account. Nothing is known of its recipients yet.
pub(super) fn draft(
    account: &Account,
    to: &[String],
    body: String,
    envelope: Envelope,
    run: &Run,
) -> NewDraft {
    NewDraft {
        channel: Channel::Email,
        phone: account.source,
        to: to.join(", "),
        app: None,
        body,
        mail: Some(envelope),
        in_reply_to: None,
        quoted: None,
        known_contact: false,
        origin: run.kind,
        guest: run.guest,
        conversation: run.conversation,
    }
}

/// A Message-ID that nobody had before, in the domain of the account.
pub(super) fn message_id(address: &str) -> Result<String, DbError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|_| DbError::NoRandomness)?;
    let address = address::ascii(address);
    let domain = address.rsplit_once('@').map_or("localhost", |(_, domain)| domain);
    Ok(format!("{}@{domain}", hex::encode(&random)))
}
