//! Finds the text in the beginning of a mail, of which more may have been cut off. Pure.

use super::headers::{Body, Headers};
use super::text::{Kind, is_stub, text};

/// How deep parts may lie in one another, and how many are looked at.
const DEEPEST: usize = 8;
const MOST_PARTS: usize = 50;

/// The first text that can be read, in a body with these headers.
pub(super) fn first_text(headers: &[u8], body: &[u8]) -> String {
    let mut found = Found { texts: vec![], looks: MOST_PARTS };
    found.look(headers, body, 0);
    let plain = found.texts.iter().find(|(kind, text)| *kind == Kind::Plain && !is_stub(text));
    let html = || found.texts.iter().find(|(kind, _)| *kind == Kind::Html);
    let any = || found.texts.iter().find(|(_, text)| !text.is_empty());
    plain.or_else(html).or_else(any).map(|(_, text)| text.clone()).unwrap_or_default()
}

struct Found {
    texts: Vec<(Kind, String)>,
    looks: usize,
}

impl Found {
    fn look(&mut self, headers: &[u8], body: &[u8], depth: usize) {
        if self.looks == 0 || depth > DEEPEST || self.is_enough() {
            return;
        }
        self.looks -= 1;
        match Headers::read(headers).body() {
            Body::Text(shape) => {
                let text = text(&shape, body);
                if !text.is_empty() {
                    self.texts.push((shape.kind, text));
                }
            }
            Body::Parts { boundary, is_alternative: _ } => {
                for part in parts(body, &boundary) {
                    let (headers, body) = split(part);
                    self.look(headers, body, depth + 1);
                }
            }
            Body::Other => {}
        }
    }

    fn is_enough(&self) -> bool {
        self.texts.iter().any(|(kind, text)| *kind == Kind::Plain && !is_stub(text))
    }
}

/// The parts between the lines of a boundary. The last may be cut off.
fn parts<'a>(body: &'a [u8], boundary: &str) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    let (mut begin, mut at) = (None, 0);
    if boundary.is_empty() {
        return parts;
    }
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        let after = line.strip_prefix(b"--").and_then(|rest| rest.strip_prefix(boundary.as_bytes()));
        let is_end = after.is_some_and(|after| after.starts_with(b"--"));
        if after.is_some_and(|after| is_end || after.trim_ascii().is_empty()) {
            if let Some(begin) = begin {
                parts.push(&body[begin..at]);
            }
            begin = (!is_end).then_some(at + line.len());
        }
        at += line.len();
        if is_end || parts.len() >= MOST_PARTS {
            return parts;
        }
    }
    parts.extend(begin.map(|begin| &body[begin..]));
    parts
}

/// The headers of a part and its body.
fn split(part: &[u8]) -> (&[u8], &[u8]) {
    let mut at = 0;
    for line in part.split_inclusive(|byte| *byte == b'\n') {
        at += line.len();
        if line.trim_ascii().is_empty() {
            return part.split_at(at);
        }
    }
    (part, b"")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALTERNATIVE: &str = "Content-Type: multipart/alternative; boundary=\"b\"\r\n\r\n";

    fn found(headers: &str, body: &str) -> String {
        first_text(headers.as_bytes(), body.as_bytes())
    }

    #[test]
    fn the_first_readable_text_is_found() {
        let plain = "--b\r\nContent-Type: text/plain\r\n\r\nHello\r\n";
        let html = "--b\r\nContent-Type: text/html\r\n\r\n<p>Hello, <b>world</b>\r\n";
        let base64 =
            "--b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n";
        let nested = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\nInside\r\n--c--\r\n";
        let file = "--b\r\nContent-Type: text/plain\r\nContent-Disposition: attachment\r\n\r\nfile\r\n";
        let mail = "--b\r\nContent-Type: message/rfc822\r\n\r\nSubject: x\r\n\r\nforwarded\r\n";
        for (name, headers, body, expected) in [
            ("no headers", "", "Hello\r\n".to_owned(), "Hello"),
            ("plain and html", ALTERNATIVE, format!("preamble\r\n{plain}{html}--b--\r\nx"), "Hello"),
            ("cut off", ALTERNATIVE, format!("{plain}--b\r\nContent-Ty"), "Hello"),
            ("cut off in the text", ALTERNATIVE, format!("{base64}R3LDvMOfZ"), "Grüß"),
            ("html only", ALTERNATIVE, html.to_owned(), "Hello, world"),
            ("a stub", ALTERNATIVE, format!("{}{html}", plain.replace("Hello", "No HTML?")), "Hello, world"),
            ("an attachment first", ALTERNATIVE, format!("{file}{plain}"), "Hello"),
            ("a mail first", ALTERNATIVE, format!("{mail}{plain}"), "Hello"),
            ("nested", ALTERNATIVE, nested.to_owned(), "Inside"),
            ("no boundary", "Content-Type: multipart/mixed\r\n\r\n", plain.to_owned(), ""),
            ("another boundary", ALTERNATIVE, plain.replace("--b", "--c"), ""),
            ("a picture", "Content-Type: image/png\r\n\r\n", "x".to_owned(), ""),
        ] {
            assert_eq!(found(headers, &body), expected, "{name}");
        }
    }

    #[test]
    fn many_parts_and_deep_ones_end() {
        let many = "--b\r\nContent-Type: image/png\r\n\r\nx\r\n".repeat(10_000);
        assert_eq!(found(ALTERNATIVE, &many), "");
        let deep = "--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n".repeat(10_000);
        assert_eq!(found(ALTERNATIVE, &deep), "");
    }
}
