//! Tests the parsing of what other devices send with mutated packets.

#![expect(clippy::unwrap_used, reason = "a check may fail loudly")]

use jiff::Timestamp;
use kai_assistant::untrusted::Untrusted;

use super::certificate::Peer;
use super::contacts::Card;
use super::identity::{self, DeviceId, DeviceName, Occasion};
use super::line::Lines;
use super::packet::Packet;

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
    if let Packet::Cards(cards) = packet {
        for card in cards {
            vcard(card.vcard.as_written());
        }
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
        fn whatever_is_shown_is_a_certificate_or_refused(der in kai_mutate::bytes(vec![made()])) {
            certificate(&der);
        }
    }

    fn made() -> Vec<u8> {
        let id = DeviceId::from_random([7; 16]);
        Credentials::make(&id, Timestamp::UNIX_EPOCH).unwrap().certificate().to_vec()
    }
}
