//! Who a device says it is: its id, name, kind, protocol version and the packet types it handles. Pure.
//!
//! Anyone on the network can send an identity, so every part is checked or cleaned before it is used.

use std::fmt;

use kai_assistant::hex;
use kai_assistant::legible::is_invisible;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::envelope::{self, Malformed};
use super::lenient::{List, Number, Text, texts};

/// The packet type of an identity.
pub(super) const TYPE: &str = "kdeconnect.identity";

/// Most packet types that a device may list, and the longest of them in bytes.
const MOST_CAPABILITIES: usize = 200;
const LONGEST_CAPABILITY: usize = 100;

/// The longest name of a device, in characters.
const LONGEST_NAME: usize = 32;

/// The ports on which devices listen. An identity that names another one is ignored.
pub const PORTS: std::ops::RangeInclusive<u16> = 1716..=1764;

/// The id of a device: 32 to 38 letters, digits, `_` or `-`. It is also the name in the device's certificate.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(String);

impl DeviceId {
    /// `None` if the text cannot be the id of a device.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = (32..=38).contains(&text.len());
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        (fits && plain).then(|| Self(text.to_owned()))
    }

    /// Makes an id from 16 random bytes.
    pub fn from_random(bytes: [u8; 16]) -> Self {
        Self(hex::encode(&bytes))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A version of the protocol. Version 8 repeats the identity under encryption and dates pairing requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Protocol(u16);

impl Protocol {
    pub const V7: Self = Self(7);
    pub const V8: Self = Self(8);

    /// `None` for a version before 7, which nothing uses any more.
    pub fn new(number: i64) -> Option<Self> {
        u16::try_from(number).ok().filter(|number| *number >= 7).map(Self)
    }

    pub fn number(self) -> u16 {
        self.0
    }

    /// The version that two devices speak with each other.
    pub(super) fn with(self, other: Self) -> Self {
        self.min(other)
    }

    /// Whether the version has what came with version 8.
    pub fn is_8(self) -> bool {
        self >= Self::V8
    }
}

/// What kind of machine a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    Desktop,
    Laptop,
    Phone,
    Tablet,
    Tv,
}

impl DeviceKind {
    fn parse(word: &str) -> Self {
        match word {
            "laptop" => Self::Laptop,
            "phone" | "smartphone" => Self::Phone,
            "tablet" => Self::Tablet,
            "tv" => Self::Tv,
            _ => Self::Desktop,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Desktop => "desktop",
            Self::Laptop => "laptop",
            Self::Phone => "phone",
            Self::Tablet => "tablet",
            Self::Tv => "tv",
        }
    }
}

/// The identity of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub id: DeviceId,
    pub name: DeviceName,
    pub kind: DeviceKind,
    pub protocol: Protocol,
    /// Packet types that the device handles.
    pub incoming: Vec<String>,
    /// Packet types that the device sends.
    pub outgoing: Vec<String>,
}

/// The name of a device: up to 32 visible characters, without quotes and most punctuation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DeviceName(String);

impl DeviceName {
    /// Cleans a name. One with nothing left becomes "Unnamed device".
    pub fn clean(name: &str) -> Self {
        let dropped = |c: char| r#""',;:.!?()[]<>"#.contains(c) || is_invisible(c);
        let kept: String = name.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
        let kept: String = kept.chars().filter(|c| !dropped(*c)).collect();
        let words: Vec<&str> = kept.split(' ').filter(|word| !word.is_empty()).collect();
        let short: String = words.join(" ").chars().take(LONGEST_NAME).collect();
        let short = short.trim_end();
        Self(if short.is_empty() { "Unnamed device".to_owned() } else { short.to_owned() })
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An identity as it was sent: announced, or at the start of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Announced {
    pub(super) identity: Identity,
    /// Where the device listens. Only announcements say so.
    pub(super) port: Option<u16>,
    target: Target,
}

/// Whom the sender means, as far as it says so.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Target {
    id: Option<String>,
    protocol: Option<i64>,
}

impl Announced {
    /// Whether the sender means the device with this id and version, or does not say whom it means.
    pub(super) fn is_for(&self, id: &DeviceId, protocol: Protocol) -> bool {
        let same_id =
            self.target.id.as_deref().is_none_or(|target| target.is_empty() || target == id.as_str());
        same_id && self.target.protocol.is_none_or(|target| target == i64::from(protocol.number()))
    }
}

/// What is added to an identity for the occasion.
#[derive(Debug, Clone, Copy)]
pub(super) enum Occasion<'a> {
    /// It announces that we listen on this port.
    Announcing { port: u16 },
    /// It opens a connection to a device that announced itself.
    Answering(&'a Identity),
    /// It opens a connection to an address, or is repeated under encryption.
    Plain,
}

impl Identity {
    /// The identity as a line to send.
    pub(super) fn line(&self, occasion: Occasion<'_>, now_ms: i64) -> Vec<u8> {
        let mut body = Map::new();
        body.insert("deviceId".to_owned(), self.id.as_str().into());
        body.insert("deviceName".to_owned(), self.name.as_str().into());
        body.insert("deviceType".to_owned(), self.kind.word().into());
        body.insert("protocolVersion".to_owned(), self.protocol.number().into());
        body.insert("incomingCapabilities".to_owned(), json!(self.incoming));
        body.insert("outgoingCapabilities".to_owned(), json!(self.outgoing));
        match occasion {
            Occasion::Announcing { port } => drop(body.insert("tcpPort".to_owned(), port.into())),
            Occasion::Answering(peer) => {
                body.insert("targetDeviceId".to_owned(), peer.id.as_str().into());
                body.insert("targetProtocolVersion".to_owned(), peer.protocol.number().into());
            }
            Occasion::Plain => {}
        }
        envelope::line(TYPE, &Value::Object(body), now_ms)
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Wire {
    device_id: Text,
    device_name: Text,
    device_type: Text,
    protocol_version: Number,
    #[serde(deserialize_with = "texts")]
    incoming_capabilities: List<String, MOST_CAPABILITIES>,
    #[serde(deserialize_with = "texts")]
    outgoing_capabilities: List<String, MOST_CAPABILITIES>,
    tcp_port: Number,
    target_device_id: Text,
    target_protocol_version: Number,
}

/// Parses a line that should be an identity.
pub(super) fn parse(line: &[u8]) -> Result<Announced, Malformed> {
    if envelope::type_of(line)? != TYPE {
        return Err(Malformed);
    }
    let wire: Wire = envelope::body(line)?;
    let id = wire.device_id.0.as_deref().and_then(DeviceId::parse).ok_or(Malformed)?;
    let protocol = wire.protocol_version.0.and_then(Protocol::new).ok_or(Malformed)?;
    let port = match wire.tcp_port.0 {
        None => None,
        Some(port) => Some(u16::try_from(port).ok().filter(|p| PORTS.contains(p)).ok_or(Malformed)?),
    };
    let identity = Identity {
        id,
        name: DeviceName::clean(&wire.device_name.0.unwrap_or_default()),
        kind: DeviceKind::parse(&wire.device_type.0.unwrap_or_default()),
        protocol,
        incoming: capabilities(wire.incoming_capabilities),
        outgoing: capabilities(wire.outgoing_capabilities),
    };
    let target = Target { id: wire.target_device_id.0, protocol: wire.target_protocol_version.0 };
    Ok(Announced { identity, port, target })
}

fn capabilities<const MOST: usize>(list: List<String, MOST>) -> Vec<String> {
    let plain =
        |name: &String| name.len() <= LONGEST_CAPABILITY && name.bytes().all(|b| b.is_ascii_graphic());
    list.items.into_iter().filter(plain).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::kdeconnect) const FROM_ANDROID: &str = r#"{"id":1794701627646,"type":"kdeconnect.identity","body":{"deviceId":"780135d4c6c55b11eea37d76540b4735","deviceName":"Pixel 9","deviceType":"phone","protocolVersion":8,"incomingCapabilities":["kdeconnect.sms.request"],"outgoingCapabilities":["kdeconnect.sms.messages","kdeconnect.notification"],"tcpPort":1717}}"#;
    pub(in crate::kdeconnect) const FROM_KDE: &str = r#"{"id":"1794701627646","type":"kdeconnect.identity","body":{"deviceId":"_5d1f7a39_8a1c_4a5e_9b1f_3c2b1a0d9e8f_","deviceName":"desk","deviceType":"desktop","protocolVersion":7,"targetDeviceId":"780135d4c6c55b11eea37d76540b4735","targetProtocolVersion":"8"}}"#;

    fn id(text: &str) -> DeviceId {
        DeviceId::parse(text).unwrap()
    }

    #[test]
    fn both_versions_are_understood() {
        let android = parse(FROM_ANDROID.as_bytes()).unwrap();
        assert_eq!(android.identity.id, id("780135d4c6c55b11eea37d76540b4735"));
        assert_eq!((android.identity.name.as_str(), android.identity.kind), ("Pixel 9", DeviceKind::Phone));
        assert_eq!((android.identity.protocol, android.port), (Protocol::V8, Some(1717)));
        assert_eq!(android.identity.outgoing, ["kdeconnect.sms.messages", "kdeconnect.notification"]);
        let kde = parse(FROM_KDE.as_bytes()).unwrap();
        assert_eq!((kde.identity.protocol, kde.port), (Protocol::V7, None));
        assert!(kde.is_for(&android.identity.id, Protocol::V8));
        assert!(!kde.is_for(&android.identity.id, Protocol::V7), "it means another version");
        assert!(!kde.is_for(&kde.identity.id, Protocol::V8), "it means another device");
        assert!(android.is_for(&kde.identity.id, Protocol::V8), "it does not say whom it means");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let me = parse(FROM_ANDROID.as_bytes()).unwrap().identity;
        for (occasion, port, meant) in [
            (Occasion::Plain, None, true),
            (Occasion::Announcing { port: 1764 }, Some(1764), true),
            (Occasion::Answering(&me), None, false),
        ] {
            let line = me.line(occasion, 1);
            let (last, line) = line.split_last().unwrap();
            assert_eq!(*last, b'\n');
            let read = parse(line).unwrap();
            assert_eq!((&read.identity, read.port), (&me, port));
            assert_eq!(read.is_for(&id("_5d1f7a39_8a1c_4a5e_9b1f_3c2b1a0d9e8f_"), Protocol::V8), meant);
        }
    }

    #[test]
    fn an_identity_that_cannot_be_one_is_refused() {
        for (what, with) in [
            (r#""protocolVersion":8"#, r#""protocolVersion":6"#),
            (r#""protocolVersion":8"#, r#""protocolVersion":-1"#),
            (r#""protocolVersion":8"#, r#""protocolVersion":99999999"#),
            (r#""tcpPort":1717"#, r#""tcpPort":22"#),
            (r#""tcpPort":1717"#, r#""tcpPort":67253"#),
            ("780135d4c6c55b11eea37d76540b4735", "780135d4"),
            ("780135d4c6c55b11eea37d76540b4735", "../../../../../../../etc/passwd-000"),
            ("780135d4c6c55b11eea37d76540b4735", "780135d4c6c55b11eea37d76540b473ä"),
            ("kdeconnect.identity", "kdeconnect.pair"),
            (r#""body":{"#, r#""body":[{"#),
        ] {
            let spoiled = FROM_ANDROID.replace(what, with);
            assert_ne!(spoiled, FROM_ANDROID);
            assert_eq!(parse(spoiled.as_bytes()), Err(Malformed), "{with}");
        }
    }

    #[test]
    fn names_are_cleaned() {
        for (name, expected) in [
            ("Pixel 9", "Pixel 9"),
            ("  a\t\n b  ", "a b"),
            ("a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\r## New SMS", "a b c d e f ## New SMS"),
            ("\"Lena's\" <phone>; (new)!", "Lenas phone new"),
            ("evil\u{202e}enohp\u{200b}", "evilenohp"),
            ("...", "Unnamed device"),
            ("", "Unnamed device"),
            (&"x".repeat(99), &"x".repeat(32)),
            (&format!("{} b", "x".repeat(31)), &"x".repeat(31)),
        ] {
            assert_eq!(DeviceName::clean(name).as_str(), expected, "{name:?}");
        }
    }

    #[test]
    fn a_random_id_is_valid() {
        assert!(DeviceId::parse(DeviceId::from_random([7; 16]).as_str()).is_some());
    }
}
