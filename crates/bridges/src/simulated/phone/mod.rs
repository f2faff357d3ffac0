//! The simulated phone. Nothing here blocks, unless a test tells it to hang.

mod story;
#[cfg(test)]
mod tests;

use kai_assistant::lock::lock;
use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};

use jiff::Timestamp;
use kai_assistant::access::Access;
use kai_assistant::clock::Clock;
use kai_assistant::outbox::door::{Approved, Looking, SendError, Sender, Sending, SentMessage};
use kai_assistant::phones::port::Contact;
use kai_assistant::sms::port::{From, ReadError, Reading, SmsReader};
use kai_assistant::sms::{Sms, SmsId};
use kai_assistant::untrusted::Untrusted;

/// A phone in memory, with an inbox and a sent box.
pub struct Phone {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

/// What happens to the next message to be sent. The strings are the reasons given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It is not sent, and the phone says so.
    Fails(String),
    /// It is sent, but the phone does not know.
    UnsureButSent(String),
    /// It is not sent, and the phone does not know.
    UnsureAndNotSent(String),
    /// It is sent, and no answer ever comes.
    SentThenHangs,
    /// It is not sent, and no answer ever comes.
    Hangs,
}

/// How the phone responds when asked for sent messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum SentBox {
    #[default]
    Open,
    Closed,
    Hangs,
}

#[derive(Default)]
struct State {
    inbox: BTreeMap<SmsId, Sms>,
    /// The inbox by date, then by id.
    by_date: VecDeque<(Timestamp, SmsId)>,
    sent_box: BTreeMap<SmsId, SentMessage>,
    /// All messages ever sent, whether or not they are still in a box.
    left: Vec<SentMessage>,
    looked_for: SentBox,
    may_not_read: bool,
    may_not_send: bool,
    reads: VecDeque<ReadFate>,
    contacts: Vec<Contact>,
    /// What becomes of every attempt to read contacts; `None` if it works.
    contacts_fate: Option<ReadFate>,
    sends: VecDeque<Fate>,
    hung: usize,
}

enum ReadFate {
    Fails(String),
    Hangs,
}

const ALLOW_READING: &str = "Allow the simulated phone to read SMS";
const ALLOW_SENDING: &str = "the simulated phone may not send SMS";

impl Phone {
    /// An empty phone with all permissions. The clock provides the dates of sent messages.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// A phone with realistic messages from the last few days, and the contacts of those who wrote them.
    pub fn with_inbox(clock: Arc<dyn Clock>) -> Self {
        let phone = Self::new(clock);
        for (name, number) in story::CONTACTS {
            phone.save_contact(name, number);
        }
        for message in story::messages(phone.clock.now()) {
            let id = phone.receive(message.from, message.text, message.date);
            if message.read {
                phone.mark_read(id);
            }
        }
        phone
    }

    /// Receives a message. As on Android, its id is one above the highest in use, so the id of a deleted message can
    /// be reused.
    pub fn receive(&self, from: &str, text: &str, date: Timestamp) -> SmsId {
        let mut state = self.state();
        let id = state.next_id();
        let (address, body) = (Untrusted::new(from), Untrusted::new(text));
        state.file(Sms { id, address, date, body, read: false });
        id
    }

    /// Deletes a received or sent message. Returns whether it existed.
    pub fn delete(&self, id: SmsId) -> bool {
        let mut state = self.state();
        let received = state.inbox.remove(&id);
        if let Some(sms) = &received
            && let Ok(place) = state.by_date.binary_search(&(sms.date, id))
        {
            state.by_date.remove(place);
        }
        received.is_some() || state.sent_box.remove(&id).is_some()
    }

    /// Deletes all messages. The record of what was sent is kept.
    pub fn wipe(&self) {
        let mut state = self.state();
        state.inbox.clear();
        state.by_date.clear();
        state.sent_box.clear();
    }

    /// Marks a received message as read. Returns whether it existed.
    pub fn mark_read(&self, id: SmsId) -> bool {
        self.state().inbox.get_mut(&id).map(|sms| sms.read = true).is_some()
    }

    pub fn grant_reading(&self) {
        self.state().may_not_read = false;
    }

    pub fn deny_reading(&self) {
        self.state().may_not_read = true;
    }

    pub fn grant_sending(&self) {
        self.state().may_not_send = false;
    }

    pub fn deny_sending(&self) {
        self.state().may_not_send = true;
    }

    /// Adds a contact with one number.
    pub fn save_contact(&self, name: &str, number: &str) {
        let mut state = self.state();
        let (uid, numbers) = (state.contacts.len().to_string(), vec![Untrusted::new(number)]);
        state.contacts.push(Contact { uid, name: Untrusted::new(name), numbers });
    }

    /// Makes contacts readable, as they are at first.
    pub fn open_contacts(&self) {
        self.state().contacts_fate = None;
    }

    /// From now on, reading contacts fails with this reason.
    pub fn fail_contacts(&self, why: &str) {
        self.state().contacts_fate = Some(ReadFate::Fails(why.to_owned()));
    }

    /// From now on, reading contacts hangs for ever.
    pub fn hang_contacts(&self) {
        self.state().contacts_fate = Some(ReadFate::Hangs);
    }

    /// Makes the sent box readable, as it is at first.
    pub fn open_sent_box(&self) {
        self.state().looked_for = SentBox::Open;
    }

    /// From now on sent messages are not stored, and the sent box cannot be read.
    pub fn close_sent_box(&self) {
        self.state().looked_for = SentBox::Closed;
    }

    /// From now on, reading the sent box hangs for ever.
    pub fn hang_sent_box(&self) {
        self.state().looked_for = SentBox::Hangs;
    }

    /// Makes the next permitted read fail with this reason. Calls add up: two of them fail the next two reads.
    pub fn fail_next_read(&self, why: &str) {
        self.state().reads.push_back(ReadFate::Fails(why.to_owned()));
    }

    /// Makes the next permitted read hang for ever.
    pub fn hang_next_read(&self) {
        self.state().reads.push_back(ReadFate::Hangs);
    }

    /// Sets what happens to the next permitted send. Calls add up: two of them apply to the next two sends.
    pub fn next_send(&self, fate: Fate) {
        self.state().sends.push_back(fate);
    }

    /// All messages this phone ever sent, oldest first.
    pub fn sent(&self) -> Vec<SentMessage> {
        self.state().left.clone()
    }

    pub fn sent_count(&self) -> usize {
        self.state().left.len()
    }

    /// How often it has hung. A test can wait for this instead of sleeping.
    pub fn hung_count(&self) -> usize {
        self.state().hung
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn read<'a, T: Send + 'a>(&'a self, look: impl FnOnce(&State) -> T + Send + 'a) -> Reading<'a, T> {
        Box::pin(async move {
            let answers = self.state().next_read()?;
            if !answers {
                self.hang::<()>().await;
            }
            Ok(look(&self.state()))
        })
    }

    async fn hand_over(&self, to: &str, text: &str) -> Result<(), SendError> {
        let at = self.clock.now();
        let message = SentMessage { to: to.to_owned(), body: text.to_owned(), at };
        let outcome = self.state().hand_over(message);
        match outcome {
            Some(outcome) => outcome,
            None => self.hang().await,
        }
    }

    async fn hang<T>(&self) -> T {
        self.state().hung += 1;
        pending().await
    }
}

impl State {
    /// The next free id. Received and sent messages share one table, as on Android.
    fn next_id(&self) -> SmsId {
        let highest = self.inbox.keys().next_back().max(self.sent_box.keys().next_back());
        SmsId(highest.map_or(1, |id| id.0 + 1))
    }

    fn file(&mut self, sms: Sms) {
        let key = (sms.date, sms.id);
        let place = self.by_date.partition_point(|other| *other < key);
        self.by_date.insert(place, key);
        self.inbox.insert(sms.id, sms);
    }

    /// Whether the next read answers; `false` if it hangs.
    fn next_read(&mut self) -> Result<bool, ReadError> {
        if self.may_not_read {
            return Err(ReadError::NotPermitted(ALLOW_READING.into()));
        }
        match self.reads.pop_front() {
            None => Ok(true),
            Some(ReadFate::Fails(why)) => Err(ReadError::Failed(why.into())),
            Some(ReadFate::Hangs) => Ok(false),
        }
    }

    /// Sends a message; `None` if no answer comes.
    fn hand_over(&mut self, message: SentMessage) -> Option<Result<(), SendError>> {
        if self.may_not_send {
            return Some(Err(SendError::NotPermitted(ALLOW_SENDING.into())));
        }
        let (leaves, outcome) = match self.sends.pop_front() {
            None => (true, Some(Ok(()))),
            Some(Fate::Fails(why)) => (false, Some(Err(SendError::NotSent(why.into())))),
            Some(Fate::UnsureButSent(why)) => (true, Some(Err(SendError::Unsure(why.into())))),
            Some(Fate::UnsureAndNotSent(why)) => (false, Some(Err(SendError::Unsure(why.into())))),
            Some(Fate::SentThenHangs) => (true, None),
            Some(Fate::Hangs) => (false, None),
        };
        if leaves {
            self.leave(message);
        }
        outcome
    }

    fn leave(&mut self, message: SentMessage) {
        if self.looked_for == SentBox::Open {
            self.sent_box.insert(self.next_id(), message.clone());
        }
        self.left.push(message);
    }

    fn listed<'a>(&'a self, keys: impl Iterator<Item = &'a (Timestamp, SmsId)>) -> Vec<Sms> {
        keys.filter_map(|(_, id)| self.inbox.get(id).cloned()).collect()
    }

    fn from(&self, from: From, limit: usize) -> Vec<Sms> {
        match from {
            From::Id(id) => self.inbox.range(id..).take(limit).map(|(_, sms)| sms.clone()).collect(),
            From::Date(date) => {
                let start = self.by_date.partition_point(|(other, _)| *other < date);
                self.listed(self.by_date.range(start..).take(limit))
            }
        }
    }

    /// Messages sent since then. Requires the permission to read messages.
    fn sent_since(&self, at: Timestamp) -> Option<Vec<SentMessage>> {
        let since = || self.sent_box.values().filter(|sent| sent.at >= at).cloned().collect();
        (self.looked_for == SentBox::Open && !self.may_not_read).then(since)
    }

    /// The contacts; `None` if no answer comes.
    fn contacts(&self) -> Option<Result<Vec<Contact>, ReadError>> {
        match &self.contacts_fate {
            None => Some(Ok(self.contacts.clone())),
            Some(ReadFate::Fails(why)) => Some(Err(ReadError::Failed(why.clone().into()))),
            Some(ReadFate::Hangs) => None,
        }
    }

    fn newest(&self, skip: usize, limit: usize) -> Vec<Sms> {
        let end = self.by_date.len().saturating_sub(skip);
        let start = end.saturating_sub(limit);
        self.listed(self.by_date.range(start..end).rev())
    }
}

impl SmsReader for Phone {
    fn access(&self) -> Pin<Box<dyn Future<Output = Access> + Send + '_>> {
        Box::pin(async move {
            let denied = self.state().may_not_read;
            if denied { Access::Denied(ALLOW_READING.into()) } else { Access::Granted }
        })
    }

    fn last(&self) -> Reading<'_, Option<Sms>> {
        self.read(|state| state.inbox.values().next_back().cloned())
    }

    fn from(&self, from: From, limit: usize) -> Reading<'_, Vec<Sms>> {
        self.read(move |state| state.from(from, limit))
    }

    fn newest(&self, skip: usize, limit: usize) -> Reading<'_, Vec<Sms>> {
        self.read(move |state| state.newest(skip, limit))
    }

    fn contacts(&self) -> Reading<'_, Vec<Contact>> {
        Box::pin(async move {
            let answer = self.state().contacts();
            match answer {
                Some(answer) => answer,
                None => self.hang().await,
            }
        })
    }
}

impl Sender for Phone {
    fn send(&self, approved: Approved) -> Sending<'_> {
        Box::pin(async move { self.hand_over(approved.to(), approved.body()).await })
    }

    fn sent_since(&self, at: Timestamp) -> Looking<'_> {
        Box::pin(async move {
            let hangs = self.state().looked_for == SentBox::Hangs;
            if hangs {
                self.hang::<()>().await;
            }
            self.state().sent_since(at)
        })
    }
}
