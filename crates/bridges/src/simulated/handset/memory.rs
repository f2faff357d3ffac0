//! What the simulated handset holds, and how it answers packets, as the Android app does. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use jiff::Timestamp;
use kai_assistant::phones::port::{ContactStamp, MessageKind, ThreadId};
use kai_assistant::untrusted::Untrusted;

use crate::kdeconnect::{
    Card, Change, Conversation, DeviceId, Folder, Message, Messages, Outgoing, Packet, Shown, Use,
};

/// What happens to the next message that the handset is told to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendFate {
    /// It is sent, but never appears in the phone's list.
    SentUnlisted,
    /// It is not sent, and nobody is told. So it is when the permission is missing.
    Lost,
    /// It is not sent, and appears among the failed messages.
    Failed,
}

/// A button of a notification that was pressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Press {
    pub key: String,
    pub action: String,
}

/// An answer to a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub key: String,
    pub text: String,
}

/// Orders messages by their age.
type Age = (Timestamp, i64);

/// Everything on the handset.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Oldest first; a handset may hold a hundred thousand.
    messages: BTreeMap<Age, Message>,
    ids: BTreeMap<i64, Timestamp>,
    by_thread: BTreeMap<ThreadId, BTreeSet<Age>>,
    threads: BTreeMap<BTreeSet<String>, ThreadId>,
    tray: BTreeMap<String, Shown>,
    contacts: BTreeMap<String, (i64, String)>,
    /// Which notification each reply id belongs to. They work once.
    reply_ids: HashMap<String, String>,
    reply_ids_made: u64,
    keys_made: u64,
    /// Who is told about new messages: those that asked for messages since they connected.
    listeners: BTreeSet<DeviceId>,
    pub(super) fates: VecDeque<SendFate>,
    pub(super) off: BTreeSet<Use>,
    pub(super) sent: Vec<Outgoing>,
    pub(super) replies: Vec<Reply>,
    pub(super) presses: Vec<Press>,
    pub(super) dismissed: Vec<String>,
    pub(super) opened: Vec<String>,
    pub(super) told: Vec<Shown>,
    pub(super) pings: usize,
}

/// A packet for one device, or for all that are paired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Post {
    To(DeviceId, Packet),
    ToAll(Packet),
}

impl Memory {
    /// The app forgets who listens when a device connects anew.
    pub(super) fn connected(&mut self, device: &DeviceId) {
        self.listeners.remove(device);
    }

    /// Files a message, and says whom to tell. Android dates messages in whole milliseconds.
    pub(super) fn file(&mut self, draft: NewMessage, date: Timestamp) -> (i64, Vec<Post>) {
        let date = Timestamp::from_millisecond(date.as_millisecond()).unwrap_or(date);
        let before = self.messages.last_key_value().map(|((date, _), _)| *date);
        let id = self.ids.last_key_value().map_or(0, |(id, _)| *id) + 1;
        let NewMessage { folder, addresses, text } = draft;
        let thread = self.thread(&addresses);
        self.ids.insert(id, date);
        self.by_thread.entry(thread).or_default().insert((date, id));
        let message = Message {
            kind: if addresses.len() > 1 { MessageKind::Mms } else { MessageKind::Sms },
            id,
            thread,
            folder,
            read: folder != Folder::Inbox,
            date,
            addresses: addresses.into_iter().map(Untrusted::new).collect(),
            body: Untrusted::new(text),
            attachments: Vec::new(),
            sim: None,
        };
        self.messages.insert((date, id), message);
        (id, self.news_since(before))
    }

    /// As the app does, everything from the newest known date on, so that the last known message is repeated.
    fn news_since(&self, before: Option<Timestamp>) -> Vec<Post> {
        if self.listeners.is_empty() {
            return vec![];
        }
        let first = (before.unwrap_or(Timestamp::MIN), i64::MIN);
        let list: Vec<Message> = self.messages.range(first..).rev().map(|(_, new)| new.clone()).collect();
        let packet = Packet::Messages(Messages { list, left_out: 0 });
        self.listeners.iter().map(|device| Post::To(device.clone(), packet.clone())).collect()
    }

    /// The owner has read everything.
    pub(super) fn read_all(&mut self) {
        self.messages.values_mut().for_each(|message| message.read = true);
    }

    pub(super) fn delete(&mut self, id: i64) -> bool {
        let Some(date) = self.ids.remove(&id) else { return false };
        if let Some(deleted) = self.messages.remove(&(date, id))
            && let Some(thread) = self.by_thread.get_mut(&deleted.thread)
        {
            thread.remove(&(date, id));
        }
        true
    }

    pub(super) fn messages(&self) -> Vec<Message> {
        self.messages.values().rev().cloned().collect()
    }

    /// A key as Android makes it.
    pub(super) fn new_key(&mut self, package: &str) -> String {
        self.keys_made += 1;
        format!("0|{package}|{}|null|10100", self.keys_made)
    }

    /// Shows a notification, or updates the one with the same key.
    pub(super) fn show(&mut self, shown: &Shown) -> Post {
        self.tray.insert(shown.key.clone(), shown.clone());
        Post::ToAll(self.posted(shown, false))
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<Post> {
        self.tray.remove(key)?;
        self.reply_ids.retain(|_, of| of != key);
        Some(Post::ToAll(Packet::Notification(Change::Removed(key.to_owned()))))
    }

    pub(super) fn save_contact(&mut self, id: &str, changed: i64, vcard: &str) {
        self.contacts.insert(id.to_owned(), (changed, vcard.to_owned()));
    }

    /// Answers a packet from a paired device.
    pub(super) fn answer(&mut self, from: &DeviceId, packet: Packet, now: Timestamp) -> Vec<Post> {
        match packet {
            Packet::RequestConversations if self.has(Use::Sms) => self.conversations(from),
            Packet::RequestConversation(asked) if self.has(Use::Sms) => vec![self.conversation(from, &asked)],
            Packet::SendSms(outgoing) if self.has(Use::Sms) => self.send(outgoing, now),
            Packet::RequestNotifications if self.has(Use::Notifications) => self.notifications(from),
            Packet::DismissNotification(key) if self.has(Use::Notifications) => self.dismiss(key),
            Packet::ReplyNotification { reply_id, text } if self.has(Use::Notifications) => {
                self.reply(&reply_id, text)
            }
            Packet::PressNotification { key, action } if self.has(Use::Notifications) => {
                self.presses.push(Press { key, action });
                vec![]
            }
            Packet::RequestContacts if self.has(Use::Contacts) => vec![Post::To(from.clone(), self.stamps())],
            Packet::RequestCards(ids) if self.has(Use::Contacts) => {
                vec![Post::To(from.clone(), self.cards(&ids))]
            }
            Packet::Open(url) if self.has(Use::Composer) => {
                self.opened.push(url);
                vec![]
            }
            Packet::Notification(Change::Posted(shown)) if self.has(Use::Tell) => {
                self.told.push(*shown);
                vec![]
            }
            Packet::Ping => {
                self.pings += 1;
                vec![]
            }
            _ => vec![],
        }
    }

    fn has(&self, feature: Use) -> bool {
        !self.off.contains(&feature)
    }

    /// One packet for each conversation, with its newest message.
    fn conversations(&mut self, from: &DeviceId) -> Vec<Post> {
        self.listeners.insert(from.clone());
        let mut newest: Vec<Age> =
            self.by_thread.values().filter_map(|thread| thread.last().copied()).collect();
        newest.sort_by_key(|age| std::cmp::Reverse(*age));
        let messages = newest.iter().filter_map(|age| self.messages.get(age).cloned());
        let packets = messages.map(|message| Packet::Messages(Messages { list: vec![message], left_out: 0 }));
        packets.map(|packet| Post::To(from.clone(), packet)).collect()
    }

    fn conversation(&mut self, from: &DeviceId, asked: &Conversation) -> Post {
        self.listeners.insert(from.clone());
        let until = (asked.until.unwrap_or(Timestamp::MAX), i64::MAX);
        let count = asked.count.map_or(usize::MAX, |count| count as usize);
        let ages =
            self.by_thread.get(&asked.thread).into_iter().flat_map(|thread| thread.range(..=until).rev());
        let list = ages.take(count).filter_map(|age| self.messages.get(age).cloned()).collect();
        Post::To(from.clone(), Packet::Messages(Messages { list, left_out: 0 }))
    }

    fn send(&mut self, outgoing: Outgoing, now: Timestamp) -> Vec<Post> {
        let folder = match self.fates.pop_front() {
            None => Folder::Sent,
            Some(SendFate::Failed) => Folder::Failed,
            Some(SendFate::Lost) => return vec![],
            Some(SendFate::SentUnlisted) => {
                self.sent.push(outgoing);
                return vec![];
            }
        };
        let draft = NewMessage { folder, addresses: outgoing.to.clone(), text: outgoing.text.clone() };
        if folder == Folder::Sent {
            self.sent.push(outgoing);
        }
        self.file(draft, now).1
    }

    fn notifications(&mut self, from: &DeviceId) -> Vec<Post> {
        let tray: Vec<Shown> = self.tray.values().cloned().collect();
        tray.iter().map(|shown| Post::To(from.clone(), self.posted(shown, true))).collect()
    }

    /// A notification as it is sent: with a reply id of its own, if it can be answered.
    fn posted(&mut self, shown: &Shown, silent: bool) -> Packet {
        let reply_id = shown.reply_id.as_ref().map(|base| {
            self.reply_ids_made += 1;
            let id = format!("{base}-{}", self.reply_ids_made);
            self.reply_ids.insert(id.clone(), shown.key.clone());
            id
        });
        Packet::Notification(Change::Posted(Box::new(Shown { silent, reply_id, ..shown.clone() })))
    }

    fn dismiss(&mut self, key: String) -> Vec<Post> {
        let removed = self.remove(&key);
        if removed.is_some() {
            self.dismissed.push(key);
        }
        removed.into_iter().collect()
    }

    fn reply(&mut self, reply_id: &str, text: String) -> Vec<Post> {
        if let Some(key) = self.reply_ids.remove(reply_id) {
            self.reply_ids.retain(|_, of| *of != key);
            self.replies.push(Reply { key, text });
        }
        vec![]
    }

    fn stamps(&self) -> Packet {
        let stamp = |(id, (changed, _)): (&String, &(i64, String))| ContactStamp {
            uid: id.clone(),
            changed: *changed,
        };
        Packet::Contacts(self.contacts.iter().map(stamp).collect())
    }

    fn cards(&self, ids: &[String]) -> Packet {
        let card = |id: &String| {
            let (_, vcard) = self.contacts.get(id)?;
            Some(Card { id: id.clone(), vcard: Untrusted::new(vcard.as_str()) })
        };
        Packet::Cards(ids.iter().filter_map(card).collect())
    }

    fn thread(&mut self, addresses: &[String]) -> ThreadId {
        let next = i64::try_from(self.threads.len()).map_or(ThreadId(0), |count| ThreadId(count + 1));
        *self.threads.entry(addresses.iter().cloned().collect()).or_insert(next)
    }
}

/// A message that has no id yet.
pub(super) struct NewMessage {
    pub(super) folder: Folder,
    pub(super) addresses: Vec<String>,
    pub(super) text: String,
}
