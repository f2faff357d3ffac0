//! Makes lists and texts fit into a tool result. The executor cuts a result that is too long, which breaks its JSON, so
//! a tool lists fewer items instead and says how many there are.

use serde::Serialize;

use crate::settings::{TOOL_RESULT_LIMIT, Values};
use crate::untrusted::{cost, escaped};

/// Characters reserved for the rest of a result, besides its items.
const FRAME: usize = 300;

/// How many characters of JSON the items or the text in a result may take.
pub fn room(values: &Values) -> usize {
    usize::try_from(values.number(&TOOL_RESULT_LIMIT)).unwrap_or(usize::MAX).saturating_sub(FRAME)
}

/// What the executor adds to a result: that the call succeeded.
const SUCCEEDED: usize = 24;

/// How many characters of JSON a text may take beside the rest of its result, which others may have written as well.
pub fn beside(rest: &impl Serialize, values: &Values) -> usize {
    let limit = usize::try_from(values.number(&TOOL_RESULT_LIMIT)).unwrap_or(usize::MAX);
    let taken = serde_json::to_string(rest).map_or(usize::MAX, |json| escaped(&json).chars().count());
    limit.saturating_sub(taken).saturating_sub(SUCCEEDED)
}

/// The first items that fit into `room` characters of JSON, and how many do not.
pub fn fitting<T: Serialize>(items: Vec<T>, room: usize) -> (Vec<T>, usize) {
    let size = |item: &T| {
        serde_json::to_string(item)
            .map_or(usize::MAX, |json| escaped(&json).chars().count().saturating_add(1))
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

/// The beginning of the text that fits into `room` characters of a JSON string, and whether the text was cut.
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

/// The end of the text that fits into `room` characters of a JSON string.
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

/// A page of queued items, which are given oldest first. If all fit into `room`, they stay oldest first; otherwise the
/// newest that fit are returned, newest first. With `before`, only items before that index are listed, newest first.
/// Also returns how many older items did not fit.
pub fn newest<T: Serialize>(mut items: Vec<T>, before: Option<usize>, room: usize) -> (Vec<T>, usize) {
    if let Some(end) = before {
        items.truncate(end);
    }
    items.reverse();
    let (mut shown, more) = fitting(items, room);
    if more == 0 && before.is_none() {
        shown.reverse();
    }
    (shown, more)
}

/// How many characters of JSON a string takes, without its quotes.
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
    fn characters_count_and_not_bytes() {
        for word in ["Hello", "Привет", "你好嗎", "שלום"] {
            let text: String = word.chars().cycle().take(200).collect();
            let (shown, more) = fitting(vec![text; 20], 20 * 203);
            assert_eq!((shown.len(), more), (20, 0), "{word}");
        }
    }

    #[test]
    fn the_newest_come_first_where_not_all_fit() {
        let items = vec!["aaaa", "bbbb", "cccc", "dddd"];
        for (name, before, room, shown, more) in [
            ("all fit", None, 28, vec!["aaaa", "bbbb", "cccc", "dddd"], 0),
            ("two fit", None, 15, vec!["dddd", "cccc"], 2),
            ("the next two", Some(2), 15, vec!["bbbb", "aaaa"], 0),
            ("nothing is older", Some(0), 15, vec![], 0),
        ] {
            assert_eq!(newest(items.clone(), before, room), (shown, more), "{name}");
        }
    }

    #[test]
    fn a_text_is_cut_where_its_json_would_be_too_long() {
        for (text, room, expected) in [
            ("abc", 3, ("abc", false)),
            ("abcd", 3, ("abc", true)),
            ("a\"b", 3, ("a\"", true)),
            ("\u{1}a", 6, ("\u{1}", true)),
            ("äöü", 2, ("äö", true)),
            ("漢字!", 2, ("漢字", true)),
            ("\u{2028}a", 6, ("\u{2028}", true)),
            ("", 0, ("", false)),
        ] {
            let cut = beginning(text, room);
            assert_eq!(cut, expected, "{text:?} in {room}");
            let json = serde_json::to_string(cut.0).unwrap();
            let length = escaped(&json).chars().count() - 2;
            assert!(length <= room, "{json}");
            assert_eq!(size(cut.0), length, "{json}");
        }
        for (text, room, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "bcd"),
            ("a\"b", 2, "b"),
            ("äöü", 2, "öü"),
            ("", 0, ""),
            ("a", 0, ""),
        ] {
            assert_eq!(ending(text, room), expected, "{text:?} in {room}");
        }
    }
}
