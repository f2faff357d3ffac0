//! Tests the parsing of what other devices send with mutated packets.

#![expect(clippy::unwrap_used, reason = "a check may fail loudly")]

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
#[cfg(feature = "notifications")]
use kai_assistant::notifications::record::Post;
use kai_assistant::untrusted::Untrusted;

use super::certificate::Peer;
use super::contacts::Card;
use super::identity::{self, DeviceId, DeviceName, Occasion, Protocol};
use super::line::Lines;
#[cfg(feature = "notifications")]
use super::notification::{Change, OddKeys, Shown};
use super::packet::{Packet, Pair};
use super::pairing::{News, Pairing, Step, Tap};
use super::ported;
use super::sms::{Folder, Message};

/// Checks that any line is a packet or is refused, and that a packet says the same after it was written and read again.
pub fn packet(line: &[u8]) {
    let Ok(packet) = Packet::parse(line) else { return };
    let written = packet.line(Timestamp::UNIX_EPOCH);
    assert_eq!(
        written.iter().position(|byte| *byte == b'\n'),
        Some(written.len() - 1),
        "a packet is one line"
    );
    let again = Packet::parse(&written).unwrap();
    let counted = |packet: Packet| match packet {
        Packet::Messages(messages) => Packet::Messages(super::Messages { left_out: 0, ..messages }),
        other => other,
    };
    let (packet, again) = (counted(packet), counted(again));
    if !matches!(packet, Packet::Contacts(_) | Packet::Cards(_)) {
        assert_eq!(again, packet);
    }
    match packet {
        Packet::Cards(cards) => cards.iter().for_each(|card| vcard(card.vcard.as_written())),
        Packet::Messages(messages) => messages.list.iter().for_each(message),
        #[cfg(feature = "notifications")]
        Packet::Notification(Change::Posted(shown)) => notification(&shown),
        _ => {}
    }
}

/// Checks that what was read as a message is one for the assistant, or none, and that nothing else becomes one.
fn message(message: &Message) {
    let Ok(ported) = message.ported() else {
        assert!(!matches!(message.folder, Folder::Inbox | Folder::Sent));
        return;
    };
    assert_eq!((ported.native_id, ported.thread, ported.date), (message.id, message.thread, message.date));
    let weight = ported::weight(&ported::list(std::slice::from_ref(message)));
    assert!(weight > ported.body.as_written().len(), "whatever waits weighs something");
}

/// Checks that a notification keeps its id, so that what is dismissed and answered is the one that was shown.
#[cfg(feature = "notifications")]
fn notification(shown: &Shown) {
    let (post, mut odd) = (Post::from(shown), OddKeys::default());
    odd.remember(post.id.as_str(), &shown.key);
    assert_eq!((odd.key_of(post.id.as_str()), &post.reply_id), (shown.key.clone(), &shown.reply_id));
    assert!(post.messages.len() <= 100 && post.title.as_written().chars().count() <= 20_000);
}

/// Checks that nobody is paired without a tap: bytes are packets, taps and moments in any order.
pub fn pairing(bytes: &[u8]) {
    let [first, rest @ ..] = bytes else { return };
    let protocol = if first % 2 == 0 { Protocol::V8 } else { Protocol::V7 };
    let mut pairing = Pairing::new(protocol, Duration::from_secs(30), false);
    let (mut now, mut agreed) = (Timestamp::UNIX_EPOCH, false);
    for byte in rest {
        let argument = i64::from(byte / 8);
        let before = pairing.is_paired();
        let steps = match byte % 8 {
            0 => {
                pairing.on_packet(Pair { pair: true, timestamp: Some(now.as_second() + argument * 300) }, now)
            }
            1 => pairing.on_packet(Pair { pair: true, timestamp: None }, now),
            2 => pairing.on_packet(Pair { pair: true, timestamp: Some(i64::MIN + argument) }, now),
            3 => pairing.on_packet(Pair { pair: false, timestamp: None }, now),
            tap @ 4..=6 => {
                let tap = [Tap::Request, Tap::Accept, Tap::Reject][usize::from(tap - 4)];
                // A request of ours, or a yes to theirs, is what the person agreed to.
                agreed |= tap == Tap::Request || (tap == Tap::Accept && pairing.asked().is_some());
                pairing.on_tap(tap, now)
            }
            _ => {
                now = now.saturating_add(SignedDuration::from_secs(argument)).unwrap();
                pairing.on_time(now)
            }
        };
        let paired = steps.contains(&Step::Tell(News::Paired));
        assert_eq!(paired, !before && pairing.is_paired(), "whoever is paired is told, and nobody else");
        assert!(!paired || agreed, "nobody tapped");
        agreed &= pairing.is_paired() || pairing.deadline().is_some();
        assert!(
            pairing.deadline().is_none_or(|until| until > now || byte % 8 != 7),
            "no request waits for ever"
        );
    }
}

/// Checks that any line is a clean identity or is refused.
pub fn identity(line: &[u8]) {
    let Ok(announced) = identity::parse(line) else { return };
    let identity = announced.identity;
    assert_eq!(DeviceId::parse(identity.id.as_str()), Some(identity.id.clone()));
    assert!((1..=32).contains(&identity.name.as_str().chars().count()), "{}", identity.name);
    assert_eq!(DeviceName::clean(identity.name.as_str()), identity.name, "clean is clean");
    let written = identity.line(Occasion::Plain, 0);
    assert_eq!(identity::parse(&written).unwrap().identity, identity);
}

/// Checks that any text is a contact of limited size or none.
pub fn vcard(text: &str) {
    let card = Card { id: String::new(), vcard: Untrusted::new(text) };
    let Some(contact) = card.contact() else { return };
    assert!(!contact.name.is_blank() && contact.name.as_written().chars().count() <= 200);
    assert!((1..=30).contains(&contact.numbers.len()));
    assert!(contact.numbers.iter().all(|number| number.as_written().chars().count() <= 200));
}

/// Checks that lines come out the same however the bytes arrive.
pub fn lines(bytes: &[u8]) {
    let read = |piece: usize| {
        let mut lines = Lines::up_to(200);
        let fits = bytes.chunks(piece).all(|chunk| lines.push(chunk).is_ok());
        let all: Vec<_> = std::iter::from_fn(|| lines.pop()).collect();
        assert!(all.iter().all(|line| line.len() <= 200 && !line.contains(&b'\n')));
        (fits, all)
    };
    assert_eq!(read(1), read(7));
    assert_eq!(read(1), read(bytes.len().max(1)));
}

/// Checks that any bytes are a certificate or are refused.
pub fn certificate(der: &[u8]) {
    if let Some(peer) = Peer::read(der) {
        assert!(!peer.public_key.is_empty() && peer.public_key.len() <= der.len());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::certificate::Credentials;
    use super::super::identity::tests::{FROM_ANDROID, FROM_KDE};
    use super::*;

    const PACKETS: [&str; 12] = [
        r#"{"id":1,"type":"kdeconnect.pair","body":{"pair":true,"timestamp":"1794702151"}}"#,
        r#"{"id":"1","type":"kdeconnect.pair","body":{"pair":false}}"#,
        r#"{"id":1,"type":"kdeconnect.sms.messages","body":{"version":2,"messages":[{"_id":42,"thread_id":7,"type":1,"read":0,"date":1794701627646,"addresses":[{"address":"+15550100"}],"body":"Your code is 123456","event":1,"sub_id":1},{"_id":43,"thread_id":7,"type":2,"date":1,"addresses":[{"address":"a"},{"address":"b"}],"attachments":[{"part_id":190,"mime_type":"image/jpeg","unique_identifier":"P"}]}]}}"#,
        r#"{"id":1,"type":"kdeconnect.sms.request","body":{"version":2,"addresses":[{"address":"+15550100"}],"messageBody":"On my way","subID":1}}"#,
        r#"{"id":1,"type":"kdeconnect.sms.request_conversation","body":{"threadID":7,"rangeStartTimestamp":1794702254296,"numberToRequest":25}}"#,
        r#"{"id":1,"type":"kdeconnect.notification","body":{"id":"0|org.app|7|null|10123","appName":"Signal","title":"Alice","text":"Dinner?","ticker":"A","time":"1794702254000","isClearable":true,"silent":false,"requestReplyId":"5f","actions":["Mark"],"conversation":[{"sender":"Alice","content":"Dinner?"}],"groupName":"Family"}}"#,
        r#"{"id":1,"type":"kdeconnect.notification","body":{"id":"k","isCancel":true}}"#,
        r#"{"id":1,"type":"kdeconnect.notification.request","body":{"cancel":"k"}}"#,
        r#"{"id":1,"type":"kdeconnect.notification.reply","body":{"requestReplyId":"5f","message":"Yes"}}"#,
        r#"{"id":1,"type":"kdeconnect.contacts.response_vcards","body":{"uids":["1"],"1":"BEGIN:VCARD\nFN:A\nTEL:1\nEND:VCARD"}}"#,
        r#"{"id":1,"type":"kdeconnect.contacts.response_uids_timestamps","body":{"uids":["1"],"1":"973"}}"#,
        r#"{"id":1,"type":"kdeconnect.clipboard","body":{"content":"x"}}"#,
    ];
    const CARDS: [&str; 2] = [
        "BEGIN:VCARD\r\nVERSION:2.1\r\nFN:Lena Brandt\r\nTEL;CELL:+15550142\r\nEND:VCARD",
        "FN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:J=C3=B6rg =\r\nM=C3=BCller\r\nitem1.TEL:tel:1\r\n folded",
    ];

    fn bytes(examples: &[&str]) -> Vec<Vec<u8>> {
        examples.iter().map(|example| example.as_bytes().to_vec()).collect()
    }

    proptest! {
        #[test]
        fn whatever_is_sent_is_a_packet_or_refused(line in kai_mutate::bytes(bytes(&PACKETS))) {
            packet(&line);
        }

        #[test]
        fn whatever_is_announced_is_an_identity_or_refused(line in kai_mutate::bytes(bytes(&[FROM_ANDROID, FROM_KDE]))) {
            identity(&line);
        }

        #[test]
        fn whatever_is_in_a_card_is_a_contact_or_none(text in kai_mutate::text(CARDS.map(str::to_owned).to_vec())) {
            vcard(&text);
        }

        #[test]
        fn whatever_arrives_is_lines(read in kai_mutate::bytes(bytes(&["{}\n[]\n", FROM_KDE]))) {
            lines(&read);
        }

        #[test]
        fn whatever_happens_nobody_is_paired_without_a_tap(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            pairing(&bytes);
        }

        #[test]
        fn whatever_is_shown_is_a_certificate_or_refused(der in kai_mutate::bytes(vec![made()])) {
            certificate(&der);
        }
    }

    fn made() -> Vec<u8> {
        let id = DeviceId::from_random([7; 16]);
        Credentials::make(&id, Timestamp::UNIX_EPOCH).unwrap().certificate().to_vec()
    }
}
