//! What fits into a result. A result that is too long is cut by the executor, and is no JSON any more; so a tool that
//! lists things lists fewer, and says how many there are.

use serde::Serialize;

use crate::settings::{TOOL_RESULT_LIMIT, Values};
use crate::untrusted::{cost, escaped};

/// Bytes of a result besides what it lists.
const FRAME: usize = 300;

/// Bytes of JSON that a result has for what it tells.
pub fn room(values: &Values) -> usize {
    usize::try_from(values.number(&TOOL_RESULT_LIMIT)).unwrap_or(usize::MAX).saturating_sub(FRAME)
}

/// The first that fit into `room` bytes of JSON, and how many do not.
pub fn fitting<T: Serialize>(items: Vec<T>, room: usize) -> (Vec<T>, usize) {
    let size = |item: &T| {
        serde_json::to_string(item).map_or(usize::MAX, |json| escaped(&json).len().saturating_add(1))
    };
    let (mut left, all) = (room, items.len());
    let mut shown = vec![];
    for item in items {
        let Some(rest) = left.checked_sub(size(&item)) else { break };
        left = rest;
        shown.push(item);
    }
    let more = all - shown.len();
    (shown, more)
}

/// The beginning that fits into `room` bytes of a JSON string, and whether that is less than all.
pub fn beginning(text: &str, room: usize) -> (&str, bool) {
    let mut left = room;
    for (at, c) in text.char_indices() {
        match left.checked_sub(cost(c)) {
            Some(rest) => left = rest,
            None => return (&text[..at], true),
        }
    }
    (text, false)
}

/// The end that fits into `room` bytes of a JSON string.
pub fn ending(text: &str, room: usize) -> &str {
    let mut left = room;
    for (at, c) in text.char_indices().rev() {
        match left.checked_sub(cost(c)) {
            Some(rest) => left = rest,
            None => return &text[at + c.len_utf8()..],
        }
    }
    text
}

/// Bytes of JSON that a string takes, without its quotes.
pub fn size(text: &str) -> usize {
    text.chars().map(cost).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_fit_and_the_rest_is_counted() {
        let items = vec!["aaaa", "bbbb", "c"];
        for (room, shown, more) in [(100, 3, 0), (14, 2, 1), (13, 1, 2), (0, 0, 3)] {
            let (fit, left) = fitting(items.clone(), room);
            assert_eq!((fit.len(), left), (shown, more), "in {room}");
        }
    }

    #[test]
    fn a_text_is_cut_where_its_json_would_be_too_long() {
        for (text, room, expected) in [
            ("abc", 3, ("abc", false)),
            ("abcd", 3, ("abc", true)),
            ("a\"b", 3, ("a\"", true)),
            ("\u{1}a", 6, ("\u{1}", true)),
            ("äö", 3, ("ä", true)),
            ("", 0, ("", false)),
        ] {
            let cut = beginning(text, room);
            assert_eq!(cut, expected, "{text:?} in {room}");
            let json = serde_json::to_string(cut.0).unwrap();
            assert!(json.len() - 2 <= room, "{json}");
            assert!(size(cut.0) >= json.len() - 2, "{json}");
        }
        for (text, room, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "bcd"),
            ("a\"b", 2, "b"),
            ("äö", 3, "ö"),
            ("", 0, ""),
            ("a", 0, ""),
        ] {
            assert_eq!(ending(text, room), expected, "{text:?} in {room}");
        }
    }
}
