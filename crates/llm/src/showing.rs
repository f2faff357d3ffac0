//! Which pictures of a conversation are sent. Pure.

use crate::{Message, Picture};

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
    use crate::{Encoded, Media};

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
            (
                "many",
                vec![seen("a", 4, 9), seen("b", 4, 9), seen("c", 4, 9), seen("d", 4, 9)],
                large,
                vec![0, 4, 4, 4],
            ),
            ("a small window", vec![seen("a", 1, 1500), seen("b", 4, 1500)], 8192, vec![0, 4]),
            (
                "the last one is words",
                vec![seen("a", 1, 100), answer(), seen("b", 0, 0)],
                large,
                vec![1, 0, 0],
            ),
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
