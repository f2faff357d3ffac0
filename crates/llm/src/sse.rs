//! Parser for server-sent events: handles any chunking and any line ending, and does not copy data that lies within
//! one chunk.
//!
//! Only the data of an event is passed on. All three formats repeat the event's name inside the data, and
//! reconnecting with an event id would make a service answer, and bill, twice.

use memchr::memchr2;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Turns bytes into the data of events.
#[derive(Default)]
pub struct Parser {
    /// A line whose end has not arrived yet.
    line: Vec<u8>,
    /// The joined data lines of an event whose end has not arrived yet.
    data: Vec<u8>,
    has_data: bool,
    after_return: bool,
    started: bool,
}

impl Parser {
    /// Calls `each` with the data of every event that ends in this chunk.
    pub fn feed<E>(&mut self, chunk: &[u8], each: &mut impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        let mut rest = chunk;
        let mut open = Open { held: None };
        if self.after_return && !rest.is_empty() {
            self.after_return = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            let (line, tail) = (&rest[..end], &rest[end + 1..]);
            rest = match (rest[end], tail.first()) {
                (b'\r', Some(b'\n')) => &tail[1..],
                (b'\r', None) => {
                    self.after_return = true;
                    tail
                }
                _ => tail,
            };
            if self.line.is_empty() {
                self.line(line, &mut open, each)?;
            } else {
                self.split_line(line, each)?;
            }
        }
        self.line.extend_from_slice(rest);
        self.keep(&mut open);
        Ok(())
    }

    /// Ends the stream. A last event that only lacks its blank line is still reported.
    pub fn finish<E>(mut self, each: &mut impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        if !self.line.is_empty() {
            self.split_line(b"", each)?;
        }
        self.line(b"", &mut Open { held: None }, each)
    }

    /// Handles a line that arrived in several chunks.
    fn split_line<E>(&mut self, end: &[u8], each: &mut impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        let mut line = std::mem::take(&mut self.line);
        line.extend_from_slice(end);
        let mut open = Open { held: None };
        self.line(&line, &mut open, each)?;
        self.keep(&mut open);
        line.clear();
        self.line = line;
        Ok(())
    }

    fn line<'a, E>(
        &mut self,
        line: &'a [u8],
        open: &mut Open<'a>,
        each: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let line = if self.started { line } else { line.strip_prefix(BOM).unwrap_or(line) };
        self.started = true;
        if line.is_empty() {
            return self.event(open, each);
        }
        if let Some(value) = data_of(line) {
            self.keep(open);
            if self.has_data {
                self.data.push(b'\n');
                self.data.extend_from_slice(value);
            } else {
                open.held = Some(value);
            }
        }
        Ok(())
    }

    fn event<E>(
        &mut self,
        open: &mut Open<'_>,
        each: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(data) = open.held.take() {
            return each(&String::from_utf8_lossy(data));
        }
        if !std::mem::take(&mut self.has_data) {
            return Ok(());
        }
        let handed = each(&String::from_utf8_lossy(&self.data));
        self.data.clear();
        handed
    }

    /// Copies the borrowed data, because its chunk ends or because more lines follow.
    fn keep(&mut self, open: &mut Open<'_>) {
        if let Some(data) = open.held.take() {
            self.data.extend_from_slice(data);
            self.has_data = true;
        }
    }
}

/// The data of an event that has one line so far, still borrowed from the chunk.
struct Open<'a> {
    held: Option<&'a [u8]>,
}

/// The value of a data line. Older llama.cpp servers report a failure in a field named `error`.
fn data_of(line: &[u8]) -> Option<&[u8]> {
    let (field, value) = match memchr::memchr(b':', line) {
        Some(colon) => (&line[..colon], &line[colon + 1..]),
        None => (line, &line[line.len()..]),
    };
    (field == b"data" || field == b"error").then(|| value.strip_prefix(b" ").unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    fn events<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut seen = Vec::new();
        let mut each = |data: &str| {
            seen.push(data.to_owned());
            Ok::<(), Infallible>(())
        };
        let mut parser = Parser::default();
        for chunk in chunks {
            let Ok(()) = parser.feed(chunk, &mut each);
        }
        let Ok(()) = parser.finish(&mut each);
        seen
    }

    const TABLE: &[(&str, &[u8], &[&str])] = &[
        ("one", b"data: a\n\n", &["a"]),
        ("no blank after the colon", b"data:a\n\ndata:  b\n\n", &["a", " b"]),
        ("all line ends", b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", &["a", "b", "c"]),
        ("many lines", b"data: a\ndata: b\ndata\ndata: c\n\n", &["a\nb\n\nc"]),
        ("comments and other fields", b": hi\nevent: x\nid: 1\nretry: 5\nodd\ndata: a\n: more\n\n", &["a"]),
        ("events without data", b"event: ping\n\n\n\n: x\n\ndata: a\n\n", &["a"]),
        ("empty data", b"data:\n\n", &[""]),
        ("byte order mark", b"\xEF\xBB\xBFdata: a\n\n", &["a"]),
        ("no final blank line", b"data: a\n\ndata: b\n", &["a", "b"]),
        ("no final line end", b"data: a\n\ndata: b", &["a", "b"]),
        ("beyond ASCII", "data: grüße 日本 👋\n\n".as_bytes(), &["grüße 日本 👋"]),
        ("broken UTF-8", b"data: a\xFFb\n\n", &["a\u{FFFD}b"]),
        ("an error field", b"error: {\"code\":500}\n\n", &["{\"code\":500}"]),
        ("nothing", b"", &[]),
    ];

    #[test]
    fn events_are_read_however_they_are_split() {
        for (name, bytes, expected) in TABLE {
            assert_eq!(events([*bytes]), *expected, "{name}, whole");
            assert_eq!(events(bytes.chunks(1)), *expected, "{name}, byte by byte");
            for cut in 0..bytes.len() {
                assert_eq!(events([&bytes[..cut], b"", &bytes[cut..]]), *expected, "{name}, cut at {cut}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_split_changes_what_is_read(
            text in "(data: ?|: |event: x|\r|\n|\r\n|é|👋|a){0,40}",
            cuts in proptest::collection::vec(0_usize..200, 0..8),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            prop_assert_eq!(events(chunks), events([bytes]));
        }
    }
}
