//! Brings the messages and contacts of one paired phone into the store, for as long as Kai runs.
//!
//! What to ask for is decided by [`fill`](super::fill) (pure). What arrives is archived in one transaction with what
//! that means for the next question; a store that fails costs asking again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_words::{Said, said};
use rusqlite::Transaction;
use tokio::sync::Notify;
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;

use super::archive::{self, News, Rules};
use super::fill::{Fill, Step, Trouble, Waits};
use super::{due, names};
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::phones;
use crate::phones::port::{Ask, Contact, ContactStamp, FromPhone, PhoneLink, PhoneMessage};
use crate::settings::{self, SMS_ENABLED, SMS_POLL_INTERVAL};
use crate::source::SourceId;

/// How long a phone may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a phone is quiet when its list of conversations is over.
const QUIET: Duration = Duration::from_secs(2);
/// A phone that has nothing older says so at once: only a push could come between.
const DOUBT: Duration = Duration::from_secs(5);
/// How often it is looked whether something is to be asked for again.
const LOOK: Duration = Duration::from_mins(1);

/// How many packets are archived in one transaction. Each transaction waits for the disk.
const AT_ONCE: usize = 64;
/// How many contacts are asked for at once.
const CONTACTS: usize = 50;

/// Somebody who is told what was queued of a phone, in the same transaction.
pub type NewsHook = fn(&Transaction<'_>, SourceId, &[News]) -> Result<(), DbError>;

/// One paired phone.
pub struct Gather {
    db: Db,
    clock: Arc<dyn Clock>,
    source: SourceId,
    link: Arc<dyn PhoneLink>,
    fill: Fill,
    /// The setting that `fill` goes by.
    days: u32,
    listed_at: Option<Timestamp>,
    contacts: Contacts,
    on_news: NewsHook,
    /// The user wants to know now what is new.
    asked: Arc<Notify>,
}

/// Whether to list the phone's conversations again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    IfDue,
    Now,
}

/// The contacts that are still to be asked for, and those that were.
#[derive(Default)]
struct Contacts {
    left: VecDeque<ContactStamp>,
    asked: Vec<ContactStamp>,
}

/// Messages, and what they mean.
type Packet = (Vec<PhoneMessage>, Step);

impl Gather {
    pub fn new(db: Db, clock: Arc<dyn Clock>, source: SourceId, link: Arc<dyn PhoneLink>) -> Self {
        let (fill, contacts) = (Fill::default(), Contacts::default());
        let (listed_at, asked) = (None, Arc::default());
        Self { db, clock, source, link, fill, days: 0, listed_at, contacts, on_news: |_, _, _| Ok(()), asked }
    }

    /// Tells somebody else what is queued, in the same transaction.
    #[must_use]
    pub fn telling(self, on_news: NewsHook) -> Self {
        Self { on_news, ..self }
    }

    /// Lists the phone's conversations again whenever it is notified.
    #[must_use]
    pub fn asked_by(self, asked: Arc<Notify>) -> Self {
        Self { asked, ..self }
    }

    /// Takes what the phone tells until nobody can tell any more. To let a changed switch count at once, tell
    /// [`FromPhone::Connected`] again.
    pub async fn run(mut self, mut told: Receiver<FromPhone>) {
        let mut batch = Vec::with_capacity(AT_ONCE);
        let mut waits = (self.fill.waits(), Instant::now());
        let asked = Arc::clone(&self.asked);
        loop {
            let (what, since) = waits;
            tokio::select! {
                count = told.recv_many(&mut batch, AT_ONCE) => {
                    if count == 0 {
                        return;
                    }
                    self.hear(std::mem::take(&mut batch)).await;
                }
                () = tokio::time::sleep_until(since + patience(what)) => self.wait_is_over(what).await,
                () = asked.notified() => self.look(Look::Now).await,
            }
            // An answer that is still waited for is not waited for longer because something else came.
            let now = self.fill.waits();
            let same_question = what == now && matches!(now, Waits::Answer(_) | Waits::Doubtful(_));
            waits = if same_question { waits } else { (now, Instant::now()) };
        }
    }

    async fn hear(&mut self, batch: Vec<FromPhone>) {
        let mut packets: Vec<Packet> = vec![];
        for told in batch {
            match told {
                FromPhone::Messages(list) if self.fill.is_away() => drop(list),
                FromPhone::Messages(list) => {
                    let step = self.fill.on_messages(&list, self.clock.now());
                    packets.push((list.messages, step));
                }
                other => {
                    self.archive(std::mem::take(&mut packets)).await;
                    self.hear_other(other).await;
                }
            }
        }
        self.archive(packets).await;
    }

    async fn hear_other(&mut self, told: FromPhone) {
        match told {
            FromPhone::Connected => self.begin().await,
            FromPhone::Lost => self.let_go(),
            FromPhone::ContactList(all) => self.compare(all).await,
            FromPhone::Contacts(answer) => self.keep_contacts(answer).await,
            FromPhone::Messages(_) => {}
        }
    }

    fn let_go(&mut self) {
        self.fill = Fill::default();
        self.contacts = Contacts::default();
    }

    async fn ask(&self, ask: Option<Ask>) {
        let Some(ask) = ask else { return };
        // What does not reach the phone is not answered, and then asked again.
        match tokio::time::timeout(PATIENCE, self.link.ask(ask)).await {
            Ok(Ok(())) => {}
            Ok(Err(reason)) => tracing::debug!(phone = self.source.0, ?reason, "the phone was not reached"),
            Err(_) => tracing::debug!(phone = self.source.0, "the phone takes nothing"),
        }
    }

    /// Begins anew with what the store says.
    async fn begin(&mut self) {
        self.let_go();
        let (source, now) = (self.source, self.clock.now());
        let begun = self.db.write(move |tx| begun(tx, source, now)).await;
        let Some(Begun { reading, names }) = self.or_log(begun) else { return };
        if let Some((rules, marks)) = reading {
            let (fill, ask) = Fill::begin(marks, rules.horizon);
            (self.fill, self.days, self.listed_at) = (fill, rules.days, Some(now));
            self.ask(Some(ask)).await;
        }
        if names {
            self.ask(Some(Ask::ContactList)).await;
        }
    }

    fn or_log<T>(&self, outcome: Result<T, DbError>) -> Option<T> {
        let log = |error: &DbError| tracing::warn!(phone = self.source.0, %error, "messages were not stored");
        outcome.inspect_err(log).ok()
    }

    /// Asks what follows from packets, and stores them in one transaction while the phone answers. Nothing is lost if
    /// storing fails: the answer is then dropped, and everything is asked for again.
    async fn archive(&mut self, packets: Vec<Packet>) {
        if packets.is_empty() {
            return;
        }
        let asks: Vec<Ask> = packets.iter().filter_map(|(_, step)| step.ask.clone()).collect();
        let (source, now, days) = (self.source, self.clock.now(), self.days);
        let on_news = self.on_news;
        let stored = self.db.write(move |tx| {
            let news = stored(tx, source, &packets, days, now)?;
            if let Some(news) = news.as_deref().filter(|news| !news.is_empty()) {
                on_news(tx, source, news)?;
            }
            Ok::<_, DbError>(news.is_some())
        });
        let asking = async {
            for ask in asks {
                self.ask(Some(ask)).await;
            }
        };
        let (stored, ()) = tokio::join!(stored, asking);
        match self.or_log(stored) {
            Some(true) => {}
            // Reading was turned off, or shall keep more or less than before.
            Some(false) => self.begin().await,
            None => self.let_go(),
        }
    }

    async fn wait_is_over(&mut self, what: Waits) {
        let step = match what {
            Waits::Idle => return self.look(Look::IfDue).await,
            Waits::Quiet => {
                self.note(None).await;
                self.fill.on_quiet()
            }
            Waits::Answer(_) | Waits::Doubtful(_) => self.fill.on_silence(self.clock.now()),
        };
        match step.trouble {
            Some(Trouble::Phone) => self.note(Some(said::access_paired_silent())).await,
            Some(Trouble::Thread) => self.note(Some(said::access_thread_silent())).await,
            None => {}
        }
        if step.marks.is_empty() {
            self.ask(step.ask).await;
        } else {
            self.archive(vec![(vec![], step)]).await;
        }
    }

    async fn note(&self, error: Option<Said>) {
        let source = self.source;
        let noted = self.db.write(move |tx| archive::note_error(tx, source, error.as_ref())).await;
        self.or_log(noted);
    }

    /// Looks whether reading was turned on meanwhile, whether it is time to make sure that no push was missed, and whether
    /// names are wanted that are not here yet. While the phone is being asked for something already, that goes on.
    async fn look(&mut self, look: Look) {
        if !self.link.is_connected() {
            return;
        }
        self.look_at_contacts().await;
        let (source, now) = (self.source, self.clock.now());
        let state = self.db.read(move |tx| {
            let minutes = settings::load(tx)?.number(&SMS_POLL_INTERVAL);
            Ok::<_, DbError>((is_read(tx, source)?, Rules::now(tx, source, now)?, minutes))
        });
        let state = state.await;
        match self.or_log(state) {
            Some((true, rules, _))
                if self.fill.is_away() || rules.as_ref().is_none_or(|r| r.days != self.days) =>
            {
                self.begin().await;
            }
            Some((true, Some(rules), minutes)) if look == Look::Now || self.is_due(minutes, now) => {
                if let Some(ask) = self.fill.list_again(rules.horizon) {
                    self.listed_at = Some(now);
                    self.ask(Some(ask)).await;
                }
            }
            Some((false, _, _)) => self.fill = Fill::default(),
            _ => {}
        }
    }

    fn is_due(&self, minutes: u32, now: Timestamp) -> bool {
        let interval = SignedDuration::from_mins(i64::from(minutes));
        // A time in the future counts as past: the clock was set back since.
        let passed = |at: Timestamp| at > now || now.duration_since(at) >= interval;
        minutes > 0 && self.listed_at.is_none_or(passed)
    }

    async fn look_at_contacts(&self) {
        let (source, now) = (self.source, self.clock.now());
        let is_time = move |last| due::contacts_are_due(last, now);
        // Most looks find nothing to do, and need not write.
        let due = self.db.read(move |tx| {
            let last = names::last_read(tx, source)?.map(|last| last.at);
            Ok::<_, DbError>(is_time(last) && names::is_on(tx, source)?)
        });
        let due = due.await;
        if self.or_log(due) != Some(true) {
            return;
        }
        let turn = self.db.write(move |tx| take_names_turn(tx, source, now, is_time)).await;
        if self.or_log(turn) == Some(true) {
            self.ask(Some(Ask::ContactList)).await;
        }
    }

    /// Compares the phone's contacts with those that are stored.
    async fn compare(&mut self, all: Vec<ContactStamp>) {
        let source = self.source;
        let outdated = self.db.write(move |tx| {
            if names::is_on(tx, source)? { names::outdated(tx, source, &all) } else { Ok(vec![]) }
        });
        let outdated = outdated.await;
        if let Some(outdated) = self.or_log(outdated) {
            self.contacts = Contacts { left: outdated.into(), asked: vec![] };
            self.ask_for_contacts().await;
        }
    }

    async fn ask_for_contacts(&mut self) {
        let count = self.contacts.left.len().min(CONTACTS);
        self.contacts.asked = self.contacts.left.drain(..count).collect();
        let uids: Vec<String> = self.contacts.asked.iter().map(|stamp| stamp.uid.clone()).collect();
        if !uids.is_empty() {
            self.ask(Some(Ask::Contacts { uids })).await;
        }
    }

    async fn keep_contacts(&mut self, answer: Vec<Contact>) {
        let (source, asked) = (self.source, std::mem::take(&mut self.contacts.asked));
        let kept = self.db.write(move |tx| {
            if names::is_on(tx, source)? { names::keep(tx, source, &asked, &answer) } else { Ok(()) }
        });
        let kept = kept.await;
        if self.or_log(kept).is_some() {
            self.ask_for_contacts().await;
        }
    }
}

fn patience(waits: Waits) -> Duration {
    match waits {
        Waits::Idle => LOOK,
        Waits::Quiet => QUIET,
        Waits::Answer(_) => PATIENCE,
        Waits::Doubtful(_) => DOUBT,
    }
}

/// What a new connection begins with.
struct Begun {
    reading: Option<(Rules, std::collections::BTreeMap<phones::port::ThreadId, super::fill::Kept>)>,
    names: bool,
}

fn begun(tx: &Transaction<'_>, source: SourceId, now: Timestamp) -> Result<Begun, DbError> {
    if is_read(tx, source)? {
        // Whoever turned reading on has noted when; if nobody did, it begins now.
        phones::store::begin_reading(tx, source, now)?;
    }
    let marks = archive::marks(tx, source)?;
    let reading = Rules::now(tx, source, now)?.map(|rules| (rules, marks));
    Ok(Begun { reading, names: take_names_turn(tx, source, now, |_| true)? })
}

/// Whether to ask for contacts now: names are on, and it is time to by when that was last done, which is then noted.
fn take_names_turn(
    tx: &Transaction<'_>,
    source: SourceId,
    now: Timestamp,
    is_time: impl Fn(Option<Timestamp>) -> bool,
) -> Result<bool, DbError> {
    let turn = names::is_on(tx, source)? && is_time(names::last_read(tx, source)?.map(|last| last.at));
    if turn {
        names::note_read(tx, source, now, None)?;
    }
    Ok(turn)
}

fn is_read(tx: &Transaction<'_>, source: SourceId) -> Result<bool, DbError> {
    let phone = phones::store::get(tx, source)?;
    Ok(phone.is_some_and(|phone| phone.switches.read_sms) && settings::load(tx)?.on(&SMS_ENABLED))
}

/// Archives the packets, if the phone is still to be read by the same rules; otherwise returns `None`. Returns the news.
fn stored(
    tx: &Transaction<'_>,
    source: SourceId,
    packets: &[Packet],
    days: u32,
    now: Timestamp,
) -> Result<Option<Vec<News>>, DbError> {
    let Some(rules) = Rules::now(tx, source, now)?.filter(|rules| rules.days == days) else {
        return Ok(None);
    };
    let mut news = vec![];
    for (list, step) in packets {
        news.extend(archive::take(tx, &rules, list, step, now)?);
    }
    Ok(Some(news))
}

#[cfg(test)]
mod tests;
