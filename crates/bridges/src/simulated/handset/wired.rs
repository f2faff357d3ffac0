//! A simulated handset that is linked without a network: what Kai sends goes into its memory, and what it answers comes
//! straight back.

use std::sync::{Arc, Mutex, Weak};

use jiff::{SignedDuration, Timestamp};
use kai_assistant::clock::Clock;
use kai_assistant::lock::lock;

use super::id_of;
use super::memory::{Memory, NewMessage, Post};
use crate::kdeconnect::{DeviceId, Folder, Handing, Outgoing, Overflow, Packet, PairedPhone, Wire};

/// A phone in memory that Kai uses as it uses every paired one. The demo's second phone is one.
pub struct WiredPhone {
    id: DeviceId,
    /// Kai, as the phone knows it.
    kai: DeviceId,
    clock: Arc<dyn Clock>,
    memory: Mutex<Memory>,
    /// Where its packets go.
    linked: Mutex<Weak<PairedPhone>>,
}

impl WiredPhone {
    /// An empty phone. Its id follows from its name.
    pub fn new(name: &str, clock: Arc<dyn Clock>) -> Self {
        let (id, kai) = (id_of(name), id_of("Kai"));
        Self { id, kai, clock, memory: Mutex::default(), linked: Mutex::default() }
    }

    /// A phone with the messages of the last days at work, all read, and the contacts of those who wrote them.
    pub fn at_work(name: &str, clock: Arc<dyn Clock>) -> Self {
        let phone = Self::new(name, clock);
        for (name, number) in CONTACTS {
            phone.save_contact(name, number);
        }
        let now = phone.clock.now();
        for (hours, from, text) in STORY {
            let date = now.checked_sub(SignedDuration::from_hours(hours)).unwrap_or(now);
            phone.receive(from, text, date);
        }
        lock(&phone.memory).read_all();
        phone
    }

    pub fn id(&self) -> &DeviceId {
        &self.id
    }

    /// Links it with what stands for it on Kai's side. A new link replaces the old one.
    pub fn link(self: &Arc<Self>, phone: &Arc<PairedPhone>) -> Result<(), Overflow> {
        *lock(&self.linked) = Arc::downgrade(phone);
        lock(&self.memory).connected(&self.kai);
        phone.connected_by(Arc::clone(self) as Arc<dyn Wire>)
    }

    /// A message arrives. Returns its id.
    pub fn receive(&self, from: &str, text: &str, date: Timestamp) -> i64 {
        let addresses = vec![from.to_owned()];
        let draft = NewMessage { folder: Folder::Inbox, addresses, text: text.to_owned() };
        let (id, posts) = lock(&self.memory).file(draft, date);
        self.deliver(posts);
        id
    }

    /// Adds a contact with one number.
    pub fn save_contact(&self, name: &str, number: &str) {
        let card = format!("BEGIN:VCARD\r\nVERSION:3.0\r\nFN:{name}\r\nTEL:{number}\r\nEND:VCARD\r\n");
        lock(&self.memory).save_contact(name, self.clock.now().as_millisecond(), &card);
    }

    /// Everything that it ever sent, oldest first.
    pub fn sent(&self) -> Vec<Outgoing> {
        lock(&self.memory).sent.clone()
    }

    fn deliver(&self, posts: Vec<Post>) {
        let Some(phone) = lock(&self.linked).upgrade() else { return };
        for post in posts {
            let (Post::To(_, packet) | Post::ToAll(packet)) = post;
            // It holds a handful of messages; if Kai had no room even for those, it would ask again.
            let _ = phone.packet(packet);
        }
    }
}

impl Wire for WiredPhone {
    fn send(&self, packet: Packet) -> Handing<'_> {
        Box::pin(async move {
            let posts = lock(&self.memory).answer(&self.kai, packet, self.clock.now());
            self.deliver(posts);
            Ok(())
        })
    }
}

const CONTACTS: [(&str, &str); 2] = [("Priya Nair", "+1 555 0166"), ("Tom Becker", "+1 555 0171")];

/// Hours ago, sender and text. The numbers 555-01xx are reserved for fiction.
const STORY: [(i64, &str, &str); 3] = [
    (50, "+15550171", "The printer on the 3rd floor works again. Don't ask how."),
    (26, "+15550166", "Slides are in the shared folder. Thanks for the figures!"),
    (22, "+15550171", "Train strike on Thursday, so I'll work from home."),
];

#[cfg(test)]
mod tests {
    use kai_assistant::clock::ManualClock;
    use kai_assistant::phones::Switches;
    use kai_assistant::phones::port::{Ask, FromPhone, PhoneLink};

    use super::*;
    use crate::kdeconnect::PhoneLimits;

    /// What is off is not told, and what is asked for is answered. What is sent needs a tap: the demo's own tests tap.
    #[tokio::test(start_paused = true)]
    async fn it_answers_as_a_paired_phone_does() {
        let clock = Arc::new(ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
        let work = Arc::new(WiredPhone::at_work("Work phone", clock.clone()));
        let (phone, mut told) = PairedPhone::new(work.id().clone(), clock.clone(), PhoneLimits::default());
        assert!(!phone.is_connected());
        work.link(&phone).unwrap();
        assert!(phone.is_connected() && told.try_recv().is_err(), "nothing is allowed yet");
        phone.allow(Switches { read_sms: true, send_sms: true, names: true, ..Switches::default() }).unwrap();
        assert_eq!(told.recv().await, Some(FromPhone::Connected));
        phone.ask(Ask::Threads).await.unwrap();
        let mut threads = vec![];
        while let Ok(FromPhone::Messages(list)) = told.try_recv() {
            threads.extend(list.messages.into_iter().map(|message| message.address.as_written().to_owned()));
        }
        assert_eq!(threads, ["+15550171", "+15550166"], "the newest of each conversation");
        phone.ask(Ask::ContactList).await.unwrap();
        let listed = std::iter::from_fn(|| told.try_recv().ok());
        assert!(listed.into_iter().any(|told| matches!(told, FromPhone::ContactList(all) if all.len() == 2)));
    }
}
