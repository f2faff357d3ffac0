//! The replies of SMTP servers. Pure.

/// A reply: a code and the words of all of its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mail) struct Reply {
    pub(super) code: u16,
    /// A line each.
    pub(super) lines: Vec<String>,
}

/// A line of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mail) struct ReplyLine {
    pub(in crate::mail) code: u16,
    pub(in crate::mail) is_last: bool,
    pub(in crate::mail) words: String,
}

impl ReplyLine {
    /// Reads a line such as `250-SIZE 1000`; `None` if it is none.
    pub(in crate::mail) fn read(line: &[u8]) -> Option<Self> {
        let (digits, rest) = line.trim_ascii_end().split_at_checked(3)?;
        let is_code = matches!(digits, [b'2'..=b'5', b'0'..=b'9', b'0'..=b'9']);
        let code = std::str::from_utf8(digits).ok().filter(|_| is_code)?.parse().ok()?;
        let is_last = match rest {
            [] | [b' ', ..] => true,
            [b'-', ..] => false,
            _ => return None,
        };
        let words = String::from_utf8_lossy(rest.get(1..).unwrap_or_default().trim_ascii()).into_owned();
        Some(Self { code, is_last, words })
    }
}

impl Reply {
    pub(super) fn is_fine(&self) -> bool {
        self.code / 100 == 2
    }

    /// What the server says, in one line.
    pub(super) fn words(&self) -> String {
        format!("{} {}", self.code, self.lines.join(" "))
    }

    /// What follows a word such as `SIZE`, if the server offers it.
    pub(super) fn offer(&self, name: &str) -> Option<Vec<&str>> {
        let mut lines = self.lines.iter().skip(1).map(|line| line.split([' ', '=']));
        lines.find_map(|mut words| {
            words.next().is_some_and(|word| word.eq_ignore_ascii_case(name)).then(|| words.collect())
        })
    }
}

/// The bytes of a mail as they are sent: a dot at the beginning of a line is doubled, and a line with a dot would end it.
pub(super) fn stuffed(bytes: &[u8]) -> Vec<u8> {
    let mut stuffed = Vec::with_capacity(bytes.len() + 16);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b".") {
            stuffed.push(b'.');
        }
        stuffed.extend_from_slice(line);
    }
    if !stuffed.ends_with(b"\r\n") {
        stuffed.extend_from_slice(b"\r\n");
    }
    stuffed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_has_a_code_and_words() {
        let line = |code, is_last, words: &str| Some(ReplyLine { code, is_last, words: words.to_owned() });
        for (written, expected) in [
            (&b"250 OK\r\n"[..], line(250, true, "OK")),
            (b"250-SIZE 1000\r\n", line(250, false, "SIZE 1000")),
            (b"354\r\n", line(354, true, "")),
            (b"250 \xff\r\n", line(250, true, "\u{fffd}")),
            (b"150 no\r\n", None),
            (b"25\r\n", None),
            (b"2500\r\n", None),
            (b"* OK IMAP4 ready\r\n", None),
            (b"", None),
        ] {
            assert_eq!(ReplyLine::read(written), expected, "{}", String::from_utf8_lossy(written));
        }
    }

    #[test]
    fn offers_are_found() {
        let lines = ["mail.example.org", "size 1000", "AUTH PLAIN LOGIN", "auth=X", "STARTTLS"];
        let reply = Reply { code: 250, lines: lines.map(str::to_owned).into() };
        assert_eq!(reply.offer("SIZE"), Some(vec!["1000"]));
        assert_eq!(reply.offer("AUTH"), Some(vec!["PLAIN", "LOGIN"]));
        assert_eq!(reply.offer("STARTTLS"), Some(vec![]));
        assert_eq!(reply.offer("mail.example.org"), None, "the first line is a greeting");
    }

    #[test]
    fn dots_are_doubled() {
        for (bytes, expected) in
            [(&b"a\r\n.\r\n..b\r\n"[..], &b"a\r\n..\r\n...b\r\n"[..]), (b".", b"..\r\n"), (b"", b"\r\n")]
        {
            assert_eq!(stuffed(bytes), expected);
        }
    }
}
