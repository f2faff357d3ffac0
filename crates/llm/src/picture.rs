//! A picture that is attached to a message, in the form in which every provider takes it. Pure.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A picture that the user attached to a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    pub media: Media,
    /// In pixels.
    pub width: u32,
    pub height: u32,
    pub data: Encoded,
}

/// The formats that every provider accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Media {
    #[serde(rename = "image/jpeg")]
    Jpeg,
    #[serde(rename = "image/png")]
    Png,
}

impl Media {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
        }
    }
}

/// Bytes as base64, shared: a history is copied for each request, but a picture in it is not.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Encoded(Arc<str>);

impl Encoded {
    pub fn of(bytes: &[u8]) -> Self {
        Self(base64(bytes).into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bytes; `None` if this is no base64.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let digits = self.0.as_bytes();
        if !digits.len().is_multiple_of(4) {
            return None;
        }
        let given = digits.len() - digits.iter().rev().take(2).take_while(|digit| **digit == b'=').count();
        let mut bytes = Vec::with_capacity(digits.len() / 4 * 3);
        for group in digits[..given].chunks(4) {
            let mut bits = 0;
            for digit in group {
                bits = bits << 6 | value(*digit)?;
            }
            let [_, all @ ..] = (bits << (6 * (4 - group.len()))).to_be_bytes();
            bytes.extend_from_slice(&all[..group.len() - 1]);
        }
        Some(bytes)
    }
}

impl From<String> for Encoded {
    fn from(encoded: String) -> Self {
        Self(encoded.into())
    }
}

impl From<Encoded> for String {
    fn from(encoded: Encoded) -> Self {
        encoded.0.as_ref().to_owned()
    }
}

/// Shows only the length: pictures are private, and long.
impl fmt::Debug for Encoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Encoded({} characters)", self.0.len())
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// What a digit stands for.
fn value(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}

/// The standard alphabet, with padding.
fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit)) & 63;
            text.push(if digit <= group.len() { char::from(DIGITS[value as usize]) } else { '=' });
        }
    }
    text
}

/// Pixels per token, as Anthropic counts; the other services count fewer tokens.
const PIXELS_PER_TOKEN: usize = 750;

impl Picture {
    /// Estimates how many tokens it takes, on the high side.
    pub(crate) fn tokens(&self) -> usize {
        let pixels = (self.width as usize).saturating_mul(self.height as usize);
        85 + pixels / PIXELS_PER_TOKEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_as_everybody_reads_them() {
        for (bytes, expected) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foobar", "Zm9vYmFy"),
            (&[0xff, 0xfb, 0xf0, 0x00], "//vwAA=="),
        ] {
            let encoded = Encoded::of(bytes);
            assert_eq!((encoded.as_str(), encoded.bytes().as_deref()), (expected, Some(bytes)));
        }
        for wrong in ["A", "AA", "AAA", "====", "A===", "AA=A", "AAA\n", "AAAä", "-_AA"] {
            assert_eq!(Encoded::from(wrong.to_owned()).bytes(), None, "{wrong}");
        }
        assert_eq!(format!("{:?}", Encoded::of(b"foo")), "Encoded(4 characters)");
    }
}
