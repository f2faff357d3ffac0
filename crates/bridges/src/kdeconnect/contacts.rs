//! Contacts of a phone: their ids, and vCards of which only names and numbers are read. Pure.

use std::fmt;

use kai_assistant::phones::port::{Contact, ContactStamp};
use kai_assistant::untrusted::Untrusted;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value, json};

use super::lenient::Text;
use super::sms::cut;

/// Most contacts that are read, the longest id and the longest vCard in bytes. Longer ones hold a picture.
const MOST_CONTACTS: usize = 20_000;
const LONGEST_ID: usize = 300;
const LONGEST_CARD: usize = 64 * 1024;

/// Most numbers of one contact, and the longest name or number in characters.
const MOST_NUMBERS: usize = 30;
const LONGEST_TEXT: usize = 200;

/// The key that holds the list of ids. The contacts stand beside it under theirs.
const IDS: &str = "uids";

/// A contact as the phone sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    pub id: String,
    pub vcard: Untrusted,
}

impl Card {
    /// The contact, if the card has a name and a number.
    pub fn contact(&self) -> Option<Contact> {
        let (name, numbers) = name_and_numbers(self.vcard.as_written())?;
        Some(Contact { uid: self.id.clone(), name, numbers })
    }
}

/// Reads a vCard of version 2.1, 3 or 4. `None` if it has no name or no number.
fn name_and_numbers(vcard: &str) -> Option<(Untrusted, Vec<Untrusted>)> {
    let mut name = None;
    let mut numbers = Vec::new();
    for line in unfolded(vcard) {
        let Some(property) = Property::parse(&line) else { continue };
        match property.name.as_str() {
            "FN" => name = name.or(property.text()),
            "TEL" if numbers.len() < MOST_NUMBERS => numbers.extend(property.number()),
            _ => {}
        }
    }
    let name = name.filter(|name| !Untrusted::new(name.as_str()).is_blank())?;
    let numbers: Vec<Untrusted> = numbers.into_iter().map(Untrusted::new).collect();
    (!numbers.is_empty()).then(|| (Untrusted::new(name), numbers))
}

/// One line of a vCard: `TEL;TYPE=CELL:+15550100`.
struct Property {
    name: String,
    quoted_printable: bool,
    value: String,
}

impl Property {
    fn parse(line: &str) -> Option<Self> {
        let (head, value) = line.split_once(':')?;
        let mut parts = head.split(';');
        // A name can have a group before it: `item1.TEL`.
        let name = parts.next()?.rsplit('.').next()?.to_ascii_uppercase();
        let quoted_printable = parts.any(|part| part.to_ascii_uppercase().contains("QUOTED-PRINTABLE"));
        Some(Self { name, quoted_printable, value: value.to_owned() })
    }

    fn text(&self) -> Option<String> {
        let value = if self.quoted_printable { decoded(&self.value)? } else { self.value.clone() };
        Some(cut(unescaped(&value), LONGEST_TEXT))
    }

    /// A number, which is an address such as `tel:+15550100` in version 4.
    fn number(&self) -> Option<String> {
        let text = self.text()?;
        let number = text.strip_prefix("tel:").unwrap_or(&text).trim().to_owned();
        (!number.is_empty()).then_some(number)
    }
}

/// The lines of a vCard, with those put together that were split: by a blank at the start of the next line, or in
/// quoted-printable by a `=` at the end.
fn unfolded(vcard: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in vcard.lines() {
        match lines.last_mut() {
            Some(last) if line.starts_with([' ', '\t']) => last.push_str(&line[1..]),
            Some(last) if last.ends_with('=') && last.to_ascii_uppercase().contains("QUOTED-PRINTABLE") => {
                last.pop();
                last.push_str(line);
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines
}

/// Decodes quoted-printable text. `None` if the bytes are not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match (first, code.and_then(|two| u8::from_str_radix(two, 16).ok())) {
            (b'=', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (other, _) => {
                bytes.push(*other);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// What a character after a backslash stands for.
fn escape(c: char) -> char {
    if matches!(c, 'n' | 'N') { '\n' } else { c }
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => plain.extend(chars.next().map(escape)),
            other => plain.push(other),
        }
    }
    plain
}

/// The body of an answer about contacts: a text for each id.
#[derive(Default)]
pub(super) struct Wire(Vec<(String, String)>);

impl Wire {
    pub(super) fn into_stamps(self) -> Vec<ContactStamp> {
        let stamp = |(uid, changed): (String, String)| {
            Some(ContactStamp { uid, changed: changed.trim().parse().ok()? })
        };
        self.0.into_iter().filter_map(stamp).collect()
    }

    pub(super) fn into_cards(self) -> Vec<Card> {
        let small = |(_, card): &(String, String)| card.len() <= LONGEST_CARD;
        let cards = self.0.into_iter().filter(small);
        cards.map(|(id, vcard)| Card { id, vcard: Untrusted::new(vcard) }).collect()
    }
}

impl<'de> Deserialize<'de> for Wire {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Wire;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Wire, A::Error> {
                let mut entries = Vec::new();
                while let Some(id) = map.next_key::<String>()? {
                    if id == IDS || id.len() > LONGEST_ID || entries.len() == MOST_CONTACTS {
                        map.next_value::<IgnoredAny>()?;
                    } else if let Text(Some(text)) = map.next_value()? {
                        entries.push((id, text));
                    }
                }
                Ok(Wire(entries))
            }
        }
        value.deserialize_map(Entries)
    }
}

pub(super) fn stamps_body(stamps: &[ContactStamp]) -> Value {
    body(&mut stamps.iter().map(|stamp| (stamp.uid.as_str(), stamp.changed.to_string())))
}

pub(super) fn cards_body(cards: &[Card]) -> Value {
    body(&mut cards.iter().map(|card| (card.id.as_str(), card.vcard.as_written().to_owned())))
}

fn body(entries: &mut dyn Iterator<Item = (&str, String)>) -> Value {
    let mut body: Map<String, Value> = entries.map(|(id, text)| (id.to_owned(), text.into())).collect();
    let ids: Vec<String> = body.keys().cloned().collect();
    body.insert(IDS.to_owned(), json!(ids));
    Value::Object(body)
}

#[cfg(test)]
mod tests {
    use super::super::packet::Packet;
    use super::*;

    fn parsed(vcard: &str) -> Option<(String, Vec<String>)> {
        let card = Card { id: "7".to_owned(), vcard: Untrusted::new(vcard) };
        let contact = card.contact()?;
        assert_eq!(contact.uid, "7");
        let numbers = contact.numbers.iter().map(|number| number.as_written().to_owned());
        Some((contact.name.as_written().to_owned(), numbers.collect()))
    }

    #[test]
    fn names_and_numbers_are_read_and_nothing_else() {
        for (name, vcard, expected) in [
            (
                "version 2.1, as Android writes it",
                "BEGIN:VCARD\r\nVERSION:2.1\r\nN:Brandt;Lena;;;\r\nFN:Lena Brandt\r\nTEL;CELL:+15550142\r\nTEL;HOME:030 123\r\nEND:VCARD",
                Some(("Lena Brandt", vec!["+15550142", "030 123"])),
            ),
            (
                "quoted-printable, split",
                "FN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:J=C3=B6rg =\r\nM=C3=BCller\r\nTEL:1",
                Some(("Jörg Müller", vec!["1"])),
            ),
            ("version 4", "fn:A\\, B\nitem1.TEL;VALUE=uri:tel:+1555\n", Some(("A, B", vec!["+1555"]))),
            ("folded", "FN:Le\n na\nTEL:1", Some(("Lena", vec!["1"]))),
            ("no number", "FN:Lena", None),
            ("no name", "TEL:1", None),
            ("blank name", "FN: \nTEL:1", None),
            ("not UTF-8", "FN;ENCODING=QUOTED-PRINTABLE:=FF\nTEL:1", None),
            ("two names: the first", "FN:A\nFN:B\nTEL:1", Some(("A", vec!["1"]))),
            ("nothing", "", None),
        ] {
            let expected = expected.map(|(name, numbers)| {
                (name.to_owned(), numbers.into_iter().map(str::to_owned).collect::<Vec<_>>())
            });
            assert_eq!(parsed(vcard), expected, "{name}");
        }
    }

    #[test]
    fn answers_are_understood() {
        let line = br#"{"type":"kdeconnect.contacts.response_uids_timestamps","body":{"uids":["1","3"],"1":"973486597","3":"x","4":5}}"#;
        let stamp = |id: &str, changed| ContactStamp { uid: id.to_owned(), changed };
        assert_eq!(Packet::parse(line), Ok(Packet::Contacts(vec![stamp("1", 973_486_597), stamp("4", 5)])));
        let big = "x".repeat(LONGEST_CARD + 1);
        let line = format!(
            r#"{{"type":"kdeconnect.contacts.response_vcards","body":{{"uids":["1"],"1":"FN:A","2":"{big}","3":[]}}}}"#
        );
        let card = Card { id: "1".to_owned(), vcard: Untrusted::new("FN:A") };
        assert_eq!(Packet::parse(line.as_bytes()), Ok(Packet::Cards(vec![card])));
    }
}
