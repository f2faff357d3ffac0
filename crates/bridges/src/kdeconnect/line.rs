//! Splits the bytes of a connection into lines, one packet each. Pure.

use std::collections::VecDeque;

/// Collects bytes until a line is complete, and gives up on a line that gets too long.
#[derive(Debug)]
pub(crate) struct Lines {
    longest: usize,
    /// The line that is not complete yet.
    begun: Vec<u8>,
    complete: VecDeque<Vec<u8>>,
}

/// A line was longer than allowed. The connection is of no use after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Lines {
    /// Accepts lines of up to `longest` bytes, without their line feed.
    pub(crate) fn up_to(longest: usize) -> Self {
        Self { longest, begun: Vec::new(), complete: VecDeque::new() }
    }

    /// Changes the limit. A device may send more once it is paired.
    pub(crate) fn allow(&mut self, longest: usize) {
        self.longest = longest;
    }

    /// Takes bytes as they arrived. Complete lines before the one that is too long are kept.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Result<(), TooLong> {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.extend(&bytes[..end])?;
            self.complete.push_back(std::mem::take(&mut self.begun));
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes)
    }

    /// The next complete line, without its line feed.
    pub(crate) fn pop(&mut self) -> Option<Vec<u8>> {
        self.complete.pop_front()
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.begun.len() + bytes.len() > self.longest {
            return Err(TooLong);
        }
        self.begun.extend_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines that come out, and whether the input was accepted.
    fn lines(longest: usize, pieces: &[&[u8]]) -> (Vec<String>, bool) {
        let mut lines = Lines::up_to(longest);
        let fits = pieces.iter().all(|piece| lines.push(piece).is_ok());
        let all = std::iter::from_fn(|| lines.pop()).map(|line| String::from_utf8(line).unwrap()).collect();
        (all, fits)
    }

    #[test]
    fn lines_come_out_whole_however_they_arrive() {
        for (name, pieces, expected, fits) in [
            ("one line", vec!["{}\n"], vec!["{}"], true),
            ("in pieces", vec!["{", "", "}", "\n"], vec!["{}"], true),
            ("two at once", vec!["{}\n[]\n"], vec!["{}", "[]"], true),
            ("blank lines", vec!["\n{}\r\n\n"], vec!["", "{}\r", ""], true),
            ("not complete", vec!["{}"], vec![], true),
            ("as long as allowed", vec!["12345678\n"], vec!["12345678"], true),
            ("one byte more", vec!["123456789\n"], vec![], false),
            ("too long before its end", vec!["1234", "56789"], vec![], false),
            ("a good one first", vec!["{}\n123456789"], vec!["{}"], false),
        ] {
            let pieces: Vec<&[u8]> = pieces.iter().map(|piece| piece.as_bytes()).collect();
            assert_eq!(
                lines(8, &pieces),
                (expected.iter().map(|l| (*l).to_owned()).collect(), fits),
                "{name}"
            );
        }
    }

    #[test]
    fn a_paired_device_may_send_longer_lines() {
        let mut lines = Lines::up_to(4);
        lines.push(b"1234").unwrap();
        lines.allow(8);
        lines.push(b"5678\n").unwrap();
        assert_eq!(lines.pop().unwrap(), b"12345678");
    }
}
