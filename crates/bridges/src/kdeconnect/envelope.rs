//! The envelope of a packet: one JSON object per line, with a type and a body. Pure.
//!
//! A packet is read in two steps: first its type, then the body as that type wants it. A body that nobody wants is
//! skipped and never built in memory.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::lenient::Object;

/// A line is not a packet, or its body lacks what the type needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// The longest packet type that is read, in bytes.
const LONGEST_TYPE: usize = 100;

/// A packet as a line with its line feed.
pub(super) fn line(name: &str, body: &Value, now_ms: i64) -> Vec<u8> {
    let packet = json!({ "id": now_ms, "type": name, "body": body });
    let mut line = packet.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// The type of a packet.
pub(super) fn type_of(line: &[u8]) -> Result<String, Malformed> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "type")]
        name: String,
    }
    let head: Head = serde_json::from_slice(line).map_err(|_| Malformed)?;
    let plain = !head.name.is_empty()
        && head.name.len() <= LONGEST_TYPE
        && head.name.bytes().all(|byte| byte.is_ascii_graphic());
    plain.then_some(head.name).ok_or(Malformed)
}

/// The body of a packet. A missing body is an empty one.
pub(super) fn body<T: DeserializeOwned + Default>(line: &[u8]) -> Result<T, Malformed> {
    #[derive(Deserialize)]
    struct Envelope<T> {
        #[serde(default = "nothing")]
        body: Option<Object<T>>,
    }
    fn nothing<T>() -> Option<Object<T>> {
        None
    }
    let envelope: Envelope<T> = serde_json::from_slice(line).map_err(|_| Malformed)?;
    match envelope.body {
        None => Ok(T::default()),
        Some(Object(body)) => body.ok_or(Malformed),
    }
}
