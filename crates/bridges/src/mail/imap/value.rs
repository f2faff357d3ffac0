//! The values that replies of IMAP servers are made of: atoms, strings and lists. Pure.
//!
//! The reader is lenient: a value that ends too early ends the reading, and what came before it counts.

use std::borrow::Cow;

/// A value in a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mail) enum Value<'a> {
    /// A word, a number or `NIL`.
    Atom(&'a [u8]),
    /// A string, quoted or counted.
    Text(Cow<'a, [u8]>),
    List(Vec<Value<'a>>),
}

/// How deep lists may lie in one another.
const DEEPEST: usize = 64;

impl<'a> Value<'a> {
    /// The text of a string or an atom; `None` for a list and for `NIL`.
    pub(super) fn text(&self) -> Option<Cow<'_, str>> {
        self.bytes().map(String::from_utf8_lossy)
    }

    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Atom(atom) if atom.eq_ignore_ascii_case(b"NIL") => None,
            Self::Atom(atom) => Some(atom),
            Self::Text(text) => Some(text),
            Self::List(_) => None,
        }
    }

    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Self::Atom(atom) => number(atom),
            Self::Text(_) | Self::List(_) => None,
        }
    }

    pub(super) fn list(&self) -> Option<&[Value<'a>]> {
        match self {
            Self::List(list) => Some(list),
            Self::Atom(_) | Self::Text(_) => None,
        }
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

/// Reads values one after the other.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The rest of the line, which is not made of values.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest.trim_ascii()
    }

    fn skip_blanks(&mut self) {
        while let [b' ' | b'\r' | b'\n', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// The next word, such as `FETCH`. What stands in square brackets belongs to it, such as `BODY[HEADER.FIELDS (TO)]<0>`.
    pub(super) fn word(&mut self) -> Option<&'a [u8]> {
        self.skip_blanks();
        let mut depth = 0_usize;
        let ends = |byte: u8, depth: &mut usize| match byte {
            b'[' => {
                *depth += 1;
                false
            }
            b']' => {
                *depth = depth.saturating_sub(1);
                false
            }
            b'\r' | b'\n' => true,
            b' ' | b'(' | b')' | b'"' => *depth == 0,
            _ => false,
        };
        let end = self.rest.iter().position(|byte| ends(*byte, &mut depth)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    /// Whether a list begins here; if so, it is entered.
    pub(super) fn enter(&mut self) -> bool {
        self.skip_blanks();
        match self.rest {
            [b'(', rest @ ..] => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    pub(super) fn value(&mut self) -> Option<Value<'a>> {
        self.value_at(0)
    }

    fn value_at(&mut self, depth: usize) -> Option<Value<'a>> {
        self.skip_blanks();
        match self.rest {
            [b'(', rest @ ..] => {
                self.rest = rest;
                self.list(depth + 1).map(Value::List)
            }
            [b'"', rest @ ..] => {
                self.rest = rest;
                self.quoted().map(Value::Text)
            }
            [b'{', ..] | [b'~', b'{', ..] => self.counted().map(|bytes| Value::Text(Cow::Borrowed(bytes))),
            [b')', ..] | [] => None,
            _ => self.word().map(Value::Atom),
        }
    }

    fn list(&mut self, depth: usize) -> Option<Vec<Value<'a>>> {
        if depth > DEEPEST {
            return None;
        }
        let mut list = Vec::new();
        loop {
            self.skip_blanks();
            match self.rest {
                [b')', rest @ ..] => {
                    self.rest = rest;
                    return Some(list);
                }
                [] => return None,
                _ => list.push(self.value_at(depth)?),
            }
        }
    }

    fn quoted(&mut self) -> Option<Cow<'a, [u8]>> {
        let mut at = 0;
        let mut escaped = false;
        loop {
            match self.rest.get(at)? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    at += 2;
                }
                b'\r' | b'\n' => return None,
                _ => at += 1,
            }
        }
        let text = &self.rest[..at];
        self.rest = &self.rest[at + 1..];
        Some(if escaped { Cow::Owned(unescaped(text)) } else { Cow::Borrowed(text) })
    }

    /// A literal: `{3}`, a line break, and three bytes.
    fn counted(&mut self) -> Option<&'a [u8]> {
        let line = self.rest.iter().position(|byte| *byte == b'\n')?;
        let count =
            self.rest[..line].trim_ascii().strip_prefix(b"~").unwrap_or(self.rest[..line].trim_ascii());
        let count = count.strip_prefix(b"{")?.strip_suffix(b"}")?;
        let count = usize::try_from(number(count.strip_suffix(b"+").unwrap_or(count))?).ok()?;
        let (text, rest) = self.rest[line + 1..].split_at_checked(count)?;
        self.rest = rest;
        Some(text)
    }
}

fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        let byte = if *byte == b'\\' { bytes.next().unwrap_or(byte) } else { byte };
        plain.push(*byte);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value<'_> {
        Value::Text(Cow::Borrowed(text.as_bytes()))
    }

    #[test]
    fn values_are_read_as_servers_write_them() {
        for (written, expected) in [
            ("NIL", Some(Value::Atom(b"NIL"))),
            ("42)", Some(Value::Atom(b"42"))),
            ("\"a \\\"b\\\\\"", Some(text("a \"b\\"))),
            ("{3}\r\na)\"", Some(text("a)\""))),
            ("~{1}\r\nx", Some(text("x"))),
            ("()", Some(Value::List(vec![]))),
            ("(a (\"b\") NIL)", {
                let inner = Value::List(vec![text("b")]);
                Some(Value::List(vec![Value::Atom(b"a"), inner, Value::Atom(b"NIL")]))
            }),
            ("(\"a\"\"b\")", Some(Value::List(vec![text("a"), text("b")]))),
            ("{4}\r\nabc", None),
            ("{x}\r\nabc", None),
            ("\"abc", None),
            ("\"abc\\", None),
            ("(a", None),
            (")", None),
            ("", None),
        ] {
            assert_eq!(Reader::new(written.as_bytes()).value(), expected, "{written}");
        }
    }

    #[test]
    fn lists_are_not_entered_for_ever() {
        let deep = "(".repeat(1_000_000);
        assert_eq!(Reader::new(deep.as_bytes()).value(), None);
        let fine = format!("{}{}", "(".repeat(DEEPEST), ")".repeat(DEEPEST));
        assert!(Reader::new(fine.as_bytes()).value().is_some());
    }

    #[test]
    fn brackets_belong_to_a_word() {
        let mut reader = Reader::new(b"BODY[HEADER.FIELDS (FROM \"TO\")]<0> {1}\r\nx UID 3");
        assert_eq!(reader.word(), Some(&b"BODY[HEADER.FIELDS (FROM \"TO\")]<0>"[..]));
        assert_eq!(reader.value(), Some(text("x")));
        assert_eq!((reader.word(), reader.word()), (Some(&b"UID"[..]), Some(&b"3"[..])));
        assert_eq!(reader.word(), None);
    }
}
