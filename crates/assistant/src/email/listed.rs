//! Mails in the inbox page: their headers from what is kept, their texts from the server while somebody reads them.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kai_words::{Said, said};
use rusqlite::Transaction;
use serde_json::json;

use super::account::Account;
use super::answer::{Answered, NoAnswer};
use super::kept::{self, Among, Kept};
use super::mailboxes::{Mailboxes, address_of};
use super::port::{Attachment, Letter};
use super::queue::{PREVIEW, QUEUE, Queued, shown};
use super::reply::To;
use super::search::Wanted as Search;
use super::seen::{beginning, seen};
use super::shelf::{Known, Shelf};
use super::store;
use super::{EmailId, FIRST_ACCOUNT};
use crate::clock::Clock;
use crate::db::DbError;
use crate::inbox::{
    Fetched, Fetching, Item, Key, Mark, Message, MessageSource, Need, NoReply, Phones, Quote, Show, Wanted,
};
use crate::moment::local;
use crate::outbox::NewDraft;
use crate::outbox::address::spelling;
use crate::pending;
use crate::settings::{self, EMAIL_ENABLED};
use crate::tool::{Eyes, Run, room};
use crate::untrusted::{Untrusted, escaped};

/// The kind of mails in the inbox.
const KIND: &str = "email";

/// Mails as a source of the inbox.
pub struct EmailSource {
    clock: Arc<dyn Clock>,
    shelf: Shelf,
}

/// What of the store is needed to list mails.
struct Around {
    accounts: Vec<Account>,
    waiting: BTreeSet<EmailId>,
}

impl Around {
    fn of(tx: &Transaction<'_>) -> Result<Self, DbError> {
        let waiting = pending::waiting::<Queued>(tx, QUEUE)?;
        let waiting = waiting.into_iter().map(|one| one.entry.id).collect();
        Ok(Self { accounts: store::all(tx)?, waiting })
    }

    fn item(&self, kept: &Kept) -> Item {
        let several = self.accounts.len() > 1;
        Item {
            key: key(kept.id),
            phone: kept.id.account,
            phone_name: several.then(|| address_of(&self.accounts, kept.id.account)),
            group: spelling(kept.from.address.as_written()),
            from: kept.from.address.clone(),
            name: Some(kept.from.name.clone()).filter(|name| !name.is_blank()),
            title: Some(kept.subject.clone()).filter(|subject| !subject.is_blank()),
            preview: Untrusted::new(kept.beginning.line(PREVIEW)),
            date: kept.received.as_millisecond(),
            unread: kept.is_unread(),
            waiting: self.waiting.contains(&kept.id),
            away: kept.away,
        }
    }

    fn is_shown(&self, kept: &Kept, show: Show) -> bool {
        match show {
            Show::All => !kept.away,
            Show::Unread => kept.is_unread(),
            Show::Waiting => !kept.away && self.waiting.contains(&kept.id),
            Show::Away => kept.away,
        }
    }
}

fn key(id: EmailId) -> Key {
    Key::new(KIND, id)
}

fn is_found(kept: &Kept, search: Option<&Search>) -> bool {
    let Kept { from, subject, beginning, .. } = kept;
    search.is_none_or(|search| search.is_in(&[&from.name, &from.address, subject, beginning]))
}

/// The names of the files, in one line.
fn files(attachments: &[Attachment]) -> Option<Untrusted> {
    let names: Vec<String> = attachments.iter().take(FILES).map(|file| file.name.line(FILE)).collect();
    (!names.is_empty()).then(|| Untrusted::new(names.join(", ")))
}

/// How many files are named, and with how many characters.
const FILES: usize = 20;
const FILE: usize = 100;
/// How many characters of a sender a quote for a model holds, and of a subject.
const SENDER: usize = 200;
const SUBJECT: usize = 300;

impl EmailSource {
    pub fn new(mailboxes: Mailboxes, clock: Arc<dyn Clock>) -> Self {
        Self { shelf: Shelf::new(mailboxes, Arc::clone(&clock)), clock }
    }

    fn found(tx: &Transaction<'_>, id: &str) -> Result<Option<Kept>, DbError> {
        id.parse().map_or(Ok(None), |id| kept::get(tx, id))
    }

    fn letter(&self, id: EmailId) -> Option<Arc<Letter>> {
        match self.shelf.known(id) {
            Known::Read(letter) => Some(letter),
            Known::Nothing | Known::Reading | Known::Failed(_) => None,
        }
    }
}

impl MessageSource for EmailSource {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn title(&self) -> Said {
        said::inbox_kind_email()
    }

    fn phones(&self, tx: &Transaction<'_>) -> Result<Phones, DbError> {
        let accounts = store::all(tx)?.into_iter();
        Ok(accounts.map(|account| (account.source, Some(account.address))).collect())
    }

    fn page(&self, tx: &Transaction<'_>, wanted: &Wanted, most: usize) -> Result<Vec<Item>, DbError> {
        if wanted.phone.is_some_and(|only| only.0 <= FIRST_ACCOUNT) {
            return Ok(vec![]);
        }
        let (around, search) = (Around::of(tx)?, Search::new(&wanted.words));
        let among = Among { account: wanted.phone, until: Some(wanted.latest()), search: search.as_ref() };
        let listed = kept::newest(tx, among, most, |kept| {
            wanted.admits(kept.received.as_millisecond(), &key(kept.id))
                && around.is_shown(kept, wanted.show)
                && is_found(kept, search.as_ref())
        })?;
        Ok(listed.iter().map(|kept| around.item(kept)).collect())
    }

    fn unread(&self, tx: &Transaction<'_>, _: Timestamp, most: usize) -> Result<usize, DbError> {
        kept::unread(tx, most)
    }

    fn message(&self, tx: &Transaction<'_>, id: &str, _: Timestamp) -> Result<Option<Message>, DbError> {
        let Some(kept) = Self::found(tx, id)? else { return Ok(None) };
        let item = Around::of(tx)?.item(&kept);
        let letter = self.letter(kept.id);
        let (text, is_beginning, below) = match &letter {
            Some(letter) => (letter.text.clone(), letter.is_beginning, files(&letter.attachments)),
            None => (kept.beginning, true, None),
        };
        Ok(Some(Message { item, text, is_beginning, said: vec![], below, hidden: false }))
    }

    fn quote(
        &self,
        tx: &Transaction<'_>,
        id: &str,
        _: Timestamp,
        zone: &TimeZone,
    ) -> Result<Option<Quote>, DbError> {
        let Some(kept) = Self::found(tx, id)? else { return Ok(None) };
        let (values, accounts) = (settings::load(tx)?, store::all(tx)?);
        let longest = room::room(&values);
        let text = self.letter(kept.id).map_or(kept.beginning, |letter| letter.text.clone());
        // Somewhat more than is quoted, so that no half of a code stands at its end.
        let text = beginning(&text, longest + PREVIEW);
        let [name, subject, text] = seen(Eyes::of_model(&values), [&kept.from.name, &kept.subject, &text]);
        let (text, _) = room::beginning(text.as_written(), longest);
        let object = json!({
            "message": KIND, "id": kept.id, "account": address_of(&accounts, kept.id.account),
            "from": shown(&name, &kept.from.address, SENDER), "subject": subject.line(SUBJECT),
            "date": kept.received.as_millisecond(), "date_local": local(kept.received, zone),
            "text": text, "untrusted": true,
        });
        Ok(Some(Quote { json: escaped(&object.to_string()), identity: kept.id.identity() }))
    }

    fn mark(&self, tx: &Transaction<'_>, id: &str, mark: Mark) -> Result<(), DbError> {
        let Ok(id) = id.parse::<EmailId>() else { return Ok(()) };
        match mark {
            Mark::Opened => kept::open(tx, id),
            Mark::Back => kept::put_away(tx, id, false),
            Mark::Away => {
                if let Some(waiting) = pending::find::<Queued>(tx, QUEUE, &id.identity())? {
                    pending::forget(tx, QUEUE, &[waiting.seq])?;
                }
                kept::put_away(tx, id, true)
            }
        }
    }

    fn reply(&self, tx: &Transaction<'_>, id: &str, body: String, _: Timestamp) -> Result<NewDraft, NoReply> {
        let id = Self::found(tx, id)?.ok_or(NoReply::Gone)?.id;
        let account = store::get(tx, id.account)?.ok_or(NoReply::Gone)?;
        // Without the mail nobody knows whom it wants to be answered to.
        let letter = self.letter(id).ok_or_else(|| NoReply::Impossible(said::inbox_no_reply_loading()))?;
        let own: Vec<String> = store::all(tx)?.into_iter().map(|account| account.address).collect();
        let answered = Answered { id, letter: &letter, account: &account, own: &own };
        let draft = answered.answer(&body, To::Sender, &self.clock.zone(), &Run::BY_HAND);
        let draft = draft.map_err(|why| match why {
            NoAnswer::Nobody => NoReply::Impossible(said::inbox_no_reply_address()),
            NoAnswer::Text(_) => NoReply::Impossible(said::inbox_no_reply_text()),
            NoAnswer::Store(error) => NoReply::Store(error),
        })?;
        let known_contact = answered.is_known(tx, &draft)?;
        Ok(NewDraft { known_contact, ..draft })
    }

    fn fetch(&self, tx: &Transaction<'_>, need: &Need) -> Result<Option<Fetching>, DbError> {
        let Some(id) = needed(need) else { return Ok(None) };
        if !settings::load(tx)?.on(&EMAIL_ENABLED) || kept::get(tx, id)?.is_none() {
            return Ok(None);
        }
        Ok(self.shelf.ask(id))
    }

    fn fetched(&self, need: &Need) -> Fetched {
        match needed(need).map(|id| self.shelf.known(id)) {
            None | Some(Known::Nothing | Known::Read(_)) => Fetched::All,
            Some(Known::Reading) => Fetched::Loading,
            Some(Known::Failed(why)) => Fetched::Failed(why),
        }
    }
}

/// The mail whose text is on a server. Lists show what is kept.
fn needed(need: &Need) -> Option<EmailId> {
    match need {
        Need::Page(_) => None,
        Need::Message(key) => key.id.parse().ok().filter(|_| key.kind == KIND),
    }
}
