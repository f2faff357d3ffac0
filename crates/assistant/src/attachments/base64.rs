//! Bytes inside JSON, for export files and for the daemon's socket.

use kai_llm::Encoded;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    Encoded::of(bytes).serialize(to)
}

pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let encoded = Encoded::deserialize(from)?;
    encoded.bytes().ok_or_else(|| serde::de::Error::custom("this is no base64"))
}
