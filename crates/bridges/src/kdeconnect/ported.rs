//! Packets in the words of the assistant's ports, and back. Pure.

use kai_assistant::phones::port::{self, Ask, MessageList, PhoneMessage, Unsent};
use kai_assistant::untrusted::Untrusted;

use super::notification::{Change, Shown};
use super::packet::Packet;
use super::sms::{Conversation, Folder, Message, Outgoing};

impl Message {
    /// The message as the assistant knows it. Drafts and whatever is on its way are not messages yet.
    pub(super) fn ported(&self) -> Result<PhoneMessage, Unsent> {
        let folder = match self.folder {
            Folder::Inbox => port::Folder::Inbox,
            Folder::Sent => port::Folder::Sent,
            Folder::Draft | Folder::Outbox | Folder::Failed | Folder::Queued | Folder::Other(_) => {
                return Err(Unsent { thread: self.thread, date: self.date });
            }
        };
        Ok(PhoneMessage {
            kind: self.kind,
            native_id: self.id,
            thread: self.thread,
            folder,
            read: self.read,
            date: self.date,
            address: self.addresses.first().cloned().unwrap_or_default(),
            body: self.body.clone(),
        })
    }
}

/// The messages of one packet as the assistant knows them.
pub(super) fn list(messages: &[Message]) -> MessageList {
    let mut list = MessageList::default();
    for message in messages {
        match message.ported() {
            Ok(message) => list.messages.push(message),
            Err(unsent) => list.unsent.push(unsent),
        }
    }
    list
}

/// The packet that asks a phone for something.
pub(super) fn request(ask: Ask) -> Packet {
    match ask {
        Ask::Threads => Packet::RequestConversations,
        Ask::Thread { thread, until, count } => {
            Packet::RequestConversation(Conversation { thread, until, count: Some(count) })
        }
        Ask::ContactList => Packet::RequestContacts,
        Ask::Contacts { uids } => Packet::RequestCards(uids),
    }
}

/// The packet that makes a phone send a text to one number. It sends by the SIM card that it prefers.
pub(super) fn text_to(number: &str, text: &str) -> Packet {
    Packet::SendSms(Outgoing { to: vec![number.to_owned()], text: text.to_owned(), sim: None })
}

/// The packet that makes a phone open its own app with a text to a number filled in.
pub(super) fn composer(number: &str, text: &str) -> Packet {
    let (plus, digits) = number.strip_prefix('+').map_or(("", number), |digits| ("+", digits));
    Packet::Open(format!("sms:{plus}{}?body={}", encoded(digits), encoded(text)))
}

/// The packet that shows a notification on the phone. One with the same key replaces it.
pub(super) fn notice(key: &str, title: &str, text: &str) -> Packet {
    let said = |text: &str| Some(Untrusted::new(text));
    Packet::Notification(Change::Posted(Box::new(Shown {
        key: key.to_owned(),
        app: said("Kai"),
        title: said(title),
        text: said(text),
        ticker: said(&format!("{title}: {text}")),
        dismissable: true,
        ..Shown::default()
    })))
}

/// A text as a part of an address: everything that could end it is spelled out by its bytes.
fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let spelled =
        |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(spelled).collect()
}

/// About how much memory something costs while it waits.
pub(super) fn weight(list: &MessageList) -> usize {
    let one = |message: &PhoneMessage| message.body.as_written().len() + message.address.as_written().len();
    let messages =
        list.messages.iter().map(|message| one(message) + size_of::<PhoneMessage>()).sum::<usize>();
    messages + size_of_val(list.unsent.as_slice()) + 1
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kai_assistant::phones::port::{MessageKind, ThreadId};

    use super::*;

    fn message(folder: Folder, addresses: &[&str]) -> Message {
        Message {
            kind: MessageKind::Sms,
            id: 42,
            thread: ThreadId(7),
            folder,
            read: true,
            date: Timestamp::UNIX_EPOCH,
            addresses: addresses.iter().map(|address| Untrusted::new(*address)).collect(),
            body: Untrusted::new("Hi"),
            attachments: vec![],
            sim: Some(1),
        }
    }

    #[test]
    fn only_what_was_received_or_sent_is_a_message() {
        let inbox = message(Folder::Inbox, &["+1555"]).ported().unwrap();
        assert_eq!((inbox.folder, inbox.kind, inbox.native_id), (port::Folder::Inbox, MessageKind::Sms, 42));
        assert_eq!((inbox.address.as_written(), inbox.read), ("+1555", true));
        assert_eq!(message(Folder::Sent, &[]).ported().unwrap().address, Untrusted::default());
        for folder in [Folder::Draft, Folder::Outbox, Folder::Failed, Folder::Queued, Folder::Other(9)] {
            let unsent = Unsent { thread: ThreadId(7), date: Timestamp::UNIX_EPOCH };
            assert_eq!(message(folder, &["+1555"]).ported(), Err(unsent), "{folder:?}");
        }
        let group = message(Folder::Inbox, &["+1555", "+1556"]).ported().unwrap();
        assert_eq!(group.address.as_written(), "+1555", "the sender comes first");
    }

    #[test]
    fn an_address_for_the_composer_cannot_be_broken_out_of() {
        for (number, text, expected) in [
            ("+15550100", "On my way", "sms:+15550100?body=On%20my%20way"),
            ("110", "a&b=c#d?e+f%20", "sms:110?body=a%26b%3Dc%23d%3Fe%2Bf%2520"),
            ("+1555?body=x", "ü\n", "sms:+1555%3Fbody%3Dx?body=%C3%BC%0A"),
        ] {
            assert_eq!(composer(number, text), Packet::Open(expected.to_owned()));
        }
    }

    #[test]
    fn everything_that_can_be_asked_has_a_packet() {
        let (thread, until) = (ThreadId(7), Some(Timestamp::UNIX_EPOCH));
        let asked = Conversation { thread, until, count: Some(25) };
        for (ask, expected) in [
            (Ask::Threads, Packet::RequestConversations),
            (Ask::Thread { thread, until, count: 25 }, Packet::RequestConversation(asked)),
            (Ask::ContactList, Packet::RequestContacts),
            (Ask::Contacts { uids: vec!["7".to_owned()] }, Packet::RequestCards(vec!["7".to_owned()])),
        ] {
            assert_eq!(request(ask), expected);
        }
    }
}
