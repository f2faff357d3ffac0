//! Commands for IMAP servers. Pure. Whatever is put into one stays a string there.

use super::super::limits::Limits;

/// A command. It is written in pieces: after each but the last, the server has to agree to a literal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command {
    pieces: Vec<Vec<u8>>,
    pub(super) patience: Patience,
}

/// What a command takes the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    Answer,
    Search,
}

impl Patience {
    pub(super) fn of(self, limits: &Limits) -> std::time::Duration {
        match self {
            Self::Answer => limits.answer,
            Self::Search => limits.search,
        }
    }
}

impl Command {
    /// A command that begins like this. The text is ours: nobody else's may be in it.
    pub(super) fn new(text: &str) -> Self {
        Self { pieces: vec![text.as_bytes().to_vec()], patience: Patience::Answer }
    }

    pub(super) fn searches(self) -> Self {
        Self { patience: Patience::Search, ..self }
    }

    /// Adds text of ours.
    pub(super) fn text(mut self, text: &str) -> Self {
        self.last().extend_from_slice(text.as_bytes());
        self
    }

    /// Adds a string that may be anybody's. Bytes that cannot be quoted are announced and counted.
    pub(super) fn string(mut self, bytes: &[u8]) -> Self {
        let quotable = |byte: &u8| matches!(byte, b' '..=b'~');
        if !bytes.iter().all(quotable) {
            return self.literal(bytes);
        }
        let last = self.last();
        last.push(b'"');
        for byte in bytes {
            if matches!(byte, b'"' | b'\\') {
                last.push(b'\\');
            }
            last.push(*byte);
        }
        last.push(b'"');
        self
    }

    /// Adds bytes that are announced and counted.
    pub(super) fn literal(mut self, bytes: &[u8]) -> Self {
        self.last().extend_from_slice(format!("{{{}}}", bytes.len()).as_bytes());
        self.pieces.push(bytes.to_vec());
        self
    }

    fn last(&mut self) -> &mut Vec<u8> {
        if self.pieces.is_empty() {
            self.pieces.push(Vec::new());
        }
        let last = self.pieces.len() - 1;
        &mut self.pieces[last]
    }

    /// What is written, piece by piece.
    pub(super) fn pieces(self, tag: &str) -> Vec<Vec<u8>> {
        let mut pieces = self.pieces;
        if let Some(first) = pieces.first_mut() {
            first.splice(0..0, format!("{tag} ").into_bytes());
        }
        for piece in &mut pieces {
            piece.extend_from_slice(b"\r\n");
        }
        pieces
    }
}

/// A set of numbers, such as `3:5,9`.
pub(super) fn set(uids: &[u32]) -> String {
    let mut ranges = Vec::new();
    let mut rest = uids;
    while let [first, ..] = rest {
        let run = 1 + rest.windows(2).take_while(|pair| pair[0].checked_add(1) == Some(pair[1])).count();
        let last = rest[run - 1];
        ranges.push(if run == 1 { first.to_string() } else { format!("{first}:{last}") });
        rest = &rest[run..];
    }
    ranges.join(",")
}

/// A name of a mailbox as servers spell it: modified UTF-7.
pub(super) fn spelled(name: &str) -> Vec<u8> {
    let mut spelled = Vec::new();
    let mut odd: Vec<u16> = Vec::new();
    for c in name.chars() {
        if matches!(c, ' '..='~') {
            close(&mut odd, &mut spelled);
            spelled.push(c as u8);
            if c == '&' {
                spelled.push(b'-');
            }
        } else {
            odd.extend_from_slice(c.encode_utf16(&mut [0; 2]));
        }
    }
    close(&mut odd, &mut spelled);
    spelled
}

fn close(odd: &mut Vec<u16>, spelled: &mut Vec<u8>) {
    if odd.is_empty() {
        return;
    }
    let bytes: Vec<u8> = odd.drain(..).flat_map(u16::to_be_bytes).collect();
    let digits = kai_llm::Encoded::of(&bytes);
    spelled.push(b'&');
    spelled.extend(digits.as_str().trim_end_matches('=').replace('/', ",").bytes());
    spelled.push(b'-');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(command: Command) -> Vec<String> {
        command.pieces("k1").into_iter().map(|piece| String::from_utf8(piece).unwrap()).collect()
    }

    #[test]
    fn a_string_cannot_leave_its_quotes() {
        let login =
            |word: &str| written(Command::new("LOGIN ").string(b"u").text(" ").string(word.as_bytes()));
        assert_eq!(login("a b"), ["k1 LOGIN \"u\" \"a b\"\r\n"]);
        assert_eq!(login("a\"b\\"), ["k1 LOGIN \"u\" \"a\\\"b\\\\\"\r\n"]);
        assert_eq!(login(""), ["k1 LOGIN \"u\" \"\"\r\n"]);
        assert_eq!(login("ä"), ["k1 LOGIN \"u\" {2}\r\n", "ä\r\n"]);
        assert_eq!(login("a\r\nk2 LOGOUT"), ["k1 LOGIN \"u\" {12}\r\n", "a\r\nk2 LOGOUT\r\n"]);
    }

    #[test]
    fn numbers_in_a_row_are_a_range() {
        for (uids, expected) in [
            (&[][..], ""),
            (&[7], "7"),
            (&[3, 4, 5, 9, 11, 12], "3:5,9,11:12"),
            (&[u32::MAX - 1, u32::MAX], "4294967294:4294967295"),
        ] {
            assert_eq!(set(uids), expected);
        }
    }

    #[test]
    fn names_are_spelled_in_modified_utf_7() {
        for (name, expected) in [
            ("Sent", "Sent"),
            ("R&D", "R&-D"),
            ("Envoyés", "Envoy&AOk-s"),
            ("Éléments envoyés", "&AMk-l&AOk-ments envoy&AOk-s"),
            ("送信済み", "&kAFP4W4IMH8-"),
            ("Отправленные", "&BB4EQgQ,BEAEMAQyBDsENQQ9BD0ESwQ1-"),
        ] {
            assert_eq!(String::from_utf8(spelled(name)).unwrap(), expected);
        }
    }
}
