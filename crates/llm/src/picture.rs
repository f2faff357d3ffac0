//! Pictures in a conversation: their bytes in the form in which every provider takes them, and which of them are sent.
//! Pure.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Message;

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
            let values = group.iter().map(|digit| DIGITS.iter().position(|known| known == digit));
            let values: Vec<usize> = values.collect::<Option<_>>()?;
            let bits = values.iter().fold(0, |bits, value| bits << 6 | value) << (6 * (4 - values.len()));
            let all = [16, 8, 0].map(|shift| u8::try_from(bits >> shift & 255).unwrap_or_default());
            bytes.extend_from_slice(&all[..values.len() - 1]);
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

/// What a message says in place of a picture that is not sent any more.
pub const NOT_AGAIN: &str = "[A picture that the user attached here is not sent again.]";
/// What it says to a model that cannot see.
const UNSEEN: &str = "[The user attached a picture here, which you cannot see.]";

/// The most pictures of earlier messages that are sent along.
const MOST: usize = 8;
/// They take at most one part in this many of the window.
const SHARE: usize = 4;

/// Returns the conversation with only its newest pictures: those of the user's last message, and earlier ones as far as
/// they are few and leave enough of the window to the words.
pub fn newest_pictures(messages: &[Message], window: usize) -> Vec<Message> {
    let last = messages.iter().rposition(|message| matches!(message, Message::User { .. }));
    let (mut count, mut tokens) = (0, 0);
    let mut kept: Vec<Message> = messages
        .iter()
        .enumerate()
        .rev()
        .map(|(at, message)| match message {
            Message::User { pictures, .. } if Some(at) != last && !pictures.is_empty() => {
                count += pictures.len();
                tokens += pictures.iter().map(Picture::tokens).sum::<usize>();
                let fits = count <= MOST && tokens <= window / SHARE;
                if fits { message.clone() } else { noted(message, NOT_AGAIN) }
            }
            other => other.clone(),
        })
        .collect();
    kept.reverse();
    kept
}

/// Returns the conversation for a model that cannot see pictures.
pub fn without_pictures(messages: &[Message]) -> Vec<Message> {
    messages.iter().map(|message| noted(message, UNSEEN)).collect()
}

/// The message with a note in place of each of its pictures.
fn noted(message: &Message, note: &str) -> Message {
    match message {
        Message::User { text, pictures } if !pictures.is_empty() => {
            let notes = vec![note; pictures.len()].join("\n");
            Message::user(if text.trim().is_empty() { notes } else { format!("{text}\n\n{notes}") })
        }
        other => other.clone(),
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

    fn seen(text: &str, count: usize, side: u32) -> Message {
        let picture = Picture { media: Media::Png, width: side, height: side, data: Encoded::of(b"x") };
        Message::User { text: text.to_owned(), pictures: vec![picture; count] }
    }

    fn counts(messages: &[Message]) -> Vec<usize> {
        let count = |message: &Message| match message {
            Message::User { pictures, .. } => pictures.len(),
            Message::Assistant { .. } | Message::Tool { .. } => 0,
        };
        messages.iter().map(count).collect()
    }

    #[test]
    fn the_last_pictures_stay_and_older_ones_as_far_as_there_is_room() {
        let answer = || Message::Assistant { text: "I see.".into(), calls: vec![], signature: None };
        let large = 128_000;
        for (name, messages, window, expected) in [
            ("few", vec![seen("a", 2, 100), answer(), seen("b", 1, 100)], large, vec![2, 0, 1]),
            ("many", vec![seen("a", 4, 9), seen("b", 4, 9), seen("c", 4, 9), seen("d", 4, 9)], large, vec![0, 4, 4, 4]),
            ("a small window", vec![seen("a", 1, 1500), seen("b", 4, 1500)], 8192, vec![0, 4]),
            ("the last one is words", vec![seen("a", 1, 100), answer(), seen("b", 0, 0)], large, vec![1, 0, 0]),
            ("nothing", vec![], large, vec![]),
        ] {
            let kept = newest_pictures(&messages, window);
            assert_eq!(counts(&kept), expected, "{name}");
            for (was, now) in messages.iter().zip(&kept).filter(|(was, now)| was != now) {
                let Message::User { text, .. } = now else { panic!("{was:?}") };
                assert!(text.contains(NOT_AGAIN), "{name}: {text}");
            }
        }
    }

    #[test]
    fn who_cannot_see_is_told_so_and_gets_the_words() {
        let blind = without_pictures(&[seen("What is this?", 2, 9), seen("", 1, 9), seen("hm", 0, 0)]);
        let texts = [format!("What is this?\n\n{UNSEEN}\n{UNSEEN}"), UNSEEN.to_owned(), "hm".to_owned()];
        assert_eq!(blind, texts.map(Message::user));
    }
}
