//! The output of a program: all of it, or its beginning and its end.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::tool::room;

/// The part of a program's output that was kept. Its size is bounded, however much the program prints.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Printed {
    head: String,
    /// Empty unless some output was left out.
    tail: String,
    /// How many bytes between `head` and `tail` were left out.
    left_out: u64,
}

/// Collects the output of a running program.
#[derive(Debug, Default)]
pub struct Collector {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

/// How many bytes are kept of the beginning, and as many of the end.
const KEPT: usize = 64 * 1024;

impl Collector {
    pub fn add(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(KEPT - self.head.len()));
        self.head.extend(first);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(KEPT);
        self.tail.drain(..over);
        self.left_out += over as u64;
    }

    pub fn printed(self) -> Printed {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (mut head, tail) = (self.head, Vec::from(self.tail));
        if self.left_out > 0 {
            return Printed { head: text(&head), tail: text(&tail), left_out: self.left_out };
        }
        head.extend(tail);
        Printed { head: text(&head), ..Printed::default() }
    }
}

impl Printed {
    /// Everything that was kept.
    pub fn whole(&self) -> String {
        format!("{}{}", self.head, self.tail)
    }

    /// How many characters of JSON all of it would take.
    pub(super) fn size(&self) -> usize {
        room::size(&self.head).saturating_add(room::size(&self.tail))
    }

    /// The output cut to `room` characters of JSON: all of it, or its beginning and end with a line that says how many
    /// bytes are missing.
    pub(super) fn fitted(&self, room: usize) -> String {
        if self.left_out == 0 && self.size() <= room {
            return self.head.clone();
        }
        let half = room.saturating_sub(MARK) / 2;
        let (head, _) = room::beginning(&self.head, half);
        let rest = if self.left_out == 0 { &self.head[head.len()..] } else { self.tail.as_str() };
        let tail = room::ending(rest, half);
        let kept = self.head.len() + self.tail.len() - head.len() - tail.len();
        let missing = self.left_out + kept as u64;
        if missing == 0 {
            format!("{head}{tail}")
        } else {
            format!("{head}\n[… {missing} bytes left out …]\n{tail}")
        }
    }
}

/// Characters of JSON reserved for the line about missing output.
const MARK: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(chunks: &[&[u8]]) -> Printed {
        let mut collector = Collector::default();
        for chunk in chunks {
            collector.add(chunk);
        }
        collector.printed()
    }

    #[test]
    fn the_beginning_and_the_end_are_kept_and_no_more() {
        assert_eq!(printed(&[b"a", b"b"]).fitted(100), "ab");
        let whole = printed(&[&vec![b'a'; KEPT], &vec![b'b'; KEPT]]);
        assert_eq!((whole.head.len(), whole.left_out), (2 * KEPT, 0));
        let more = printed(&[&vec![b'a'; KEPT], &vec![b'b'; KEPT], b"c"]);
        assert_eq!((more.head.len(), more.tail.len(), more.left_out), (KEPT, KEPT, 1));
        let mut endless = Collector::default();
        for _ in 0..2_000 {
            endless.add(&[b'x'; 10_000]);
        }
        assert!(endless.head.len() == KEPT && endless.tail.len() == KEPT);
        assert!(endless.tail.capacity() <= 4 * KEPT);
        assert_eq!(endless.printed().left_out, 20_000_000 - 2 * KEPT as u64);
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        for (chunks, room, expected) in [
            (vec![&b"abc"[..]], 3, "abc".to_owned()),
            (vec![b""], 0, String::new()),
            (
                vec![&[b'a'; 50], &[b'b'; 50]],
                84,
                format!("{}\n[… 80 bytes left out …]\n{}", "a".repeat(10), "b".repeat(10)),
            ),
            (vec![b"a\xffb"], 10, "a\u{fffd}b".to_owned()),
            (
                vec![&[1; 20]],
                100,
                format!("{}\n[… 14 bytes left out …]\n{}", "\u{1}".repeat(3), "\u{1}".repeat(3)),
            ),
        ] {
            let text = printed(&chunks).fitted(room);
            assert_eq!(text, expected);
            assert!(room::size(&text) <= room, "{text:?} in {room}");
        }
        let cut = printed(&[&vec![b'a'; 3 * KEPT]]).fitted(1_000);
        assert!(cut.contains(&format!("[… {} bytes left out …]", 3 * KEPT - 2 * 468)), "{cut}");
    }
}
