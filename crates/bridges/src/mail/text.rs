//! Turns the bytes of a part of a mail into text: transfer encoding, characters, HTML. Pure.

use kai_assistant::web::html_text;
use kai_llm::Encoded;
use mail_parser::decoders::charsets::map::charset_decoder;

/// A text part of a mail.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Shape {
    pub(super) kind: Kind,
    /// As its sender names it, such as `iso-8859-1`.
    pub(super) charset: String,
    pub(super) encoding: Encoding,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kind {
    #[default]
    Plain,
    Html,
}

/// How bytes are written for the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Encoding {
    /// As they are.
    #[default]
    Plain,
    Base64,
    QuotedPrintable,
}

impl Encoding {
    pub(super) fn named(name: &str) -> Self {
        let name = name.trim();
        if name.eq_ignore_ascii_case("base64") {
            Self::Base64
        } else if name.eq_ignore_ascii_case("quoted-printable") {
            Self::QuotedPrintable
        } else {
            Self::Plain
        }
    }
}

/// The text of a part, of which there may be only the beginning.
pub(super) fn text(shape: &Shape, bytes: &[u8]) -> String {
    let decoded = match shape.encoding {
        Encoding::Plain => bytes.to_vec(),
        Encoding::Base64 => base64(bytes),
        Encoding::QuotedPrintable => quoted_printable(bytes),
    };
    let text = characters(&shape.charset, &decoded);
    let text = match shape.kind {
        Kind::Plain => text,
        Kind::Html => html_text(&text),
    };
    text.replace("\r\n", "\n").replace(['\r', '\0'], " ").trim().to_owned()
}

/// Whether a plain text says nothing, or only that one should read the HTML.
pub(super) fn is_stub(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || (text.chars().count() < 300 && text.to_lowercase().contains("html"))
}

fn base64(bytes: &[u8]) -> Vec<u8> {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut digits: String =
        bytes.iter().filter(|byte| is_digit(byte)).map(|byte| char::from(*byte)).collect();
    // One digit is six bits, which is no byte.
    if digits.len() % 4 == 1 {
        digits.pop();
    }
    while !digits.len().is_multiple_of(4) {
        digits.push('=');
    }
    Encoded::from(digits).bytes().unwrap_or_default()
}

fn quoted_printable(bytes: &[u8]) -> Vec<u8> {
    let hex = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (mut decoded, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
    loop {
        rest = match rest {
            [b'=', b'\r', b'\n', rest @ ..] | [b'=', b'\n', rest @ ..] => rest,
            [b'=', high, low, after @ ..] => {
                if let (Some(high), Some(low)) = (hex(*high), hex(*low)) {
                    decoded.push(high * 16 + low);
                    after
                } else {
                    decoded.push(b'=');
                    &rest[1..]
                }
            }
            // The rest of an escape was cut off.
            [b'='] | [b'=', _] | [] => return decoded,
            [byte, rest @ ..] => {
                decoded.push(*byte);
                rest
            }
        }
    }
}

fn characters(charset: &str, bytes: &[u8]) -> String {
    let unknown = || match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        // The last character may have been cut off.
        Err(error) if error.error_len().is_none() => String::from_utf8_lossy(bytes).into_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    };
    let charset = charset.trim().to_ascii_lowercase();
    if charset.is_empty() || charset == "us-ascii" || charset == "utf-8" {
        return unknown();
    }
    charset_decoder(charset.as_bytes()).map_or_else(unknown, |decode| decode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(charset: &str, encoding: Encoding) -> Shape {
        Shape { kind: Kind::Plain, charset: charset.to_owned(), encoding }
    }

    #[test]
    fn text_is_read_whatever_it_was_written_in() {
        for (charset, encoding, bytes, expected) in [
            ("utf-8", Encoding::Plain, "Grüße\r\nBob".as_bytes(), "Grüße\nBob"),
            ("", Encoding::Plain, "Grüße".as_bytes(), "Grüße"),
            ("", Encoding::Plain, b"Gr\xfc\xdfe", "Grüße"),
            ("no-such", Encoding::Plain, b"Gr\xfc\xdfe", "Grüße"),
            ("iso-8859-1", Encoding::QuotedPrintable, b"Gr=FC=DFe =\r\naus", "Grüße aus"),
            ("ISO-8859-15", Encoding::QuotedPrintable, b"5 =A4", "5 €"),
            ("windows-1251", Encoding::Base64, b"z/Do4uXy", "Привет"),
            ("shift_jis", Encoding::Base64, b"grGC8YLJgr+CzQ==", "こんにちは"),
            ("utf-8", Encoding::Base64, b"R3LDvMOf\r\nZQ", "Grüße"),
            ("utf-8", Encoding::Base64, b"R3LDvMOfZ", "Grüß"),
            ("utf-8", Encoding::Base64, b"!!R3 L=D=vM*Of", "Grüß"),
            ("utf-8", Encoding::QuotedPrintable, b"a=3Db =zz c=C3=A4=3", "a=b =zz cä"),
            ("utf-8", Encoding::QuotedPrintable, b"a=", "a"),
            ("utf-8", Encoding::Plain, b"a\0b\r\n\r\n", "a b"),
            ("utf-8", Encoding::Plain, b"", ""),
        ] {
            assert_eq!(text(&shape(charset, encoding), bytes), expected, "{charset} {encoding:?}");
        }
    }

    #[test]
    fn html_becomes_text() {
        let shape = Shape { kind: Kind::Html, ..shape("utf-8", Encoding::QuotedPrintable) };
        let page = b"<style>p{}</style><p>Dear <b>J=C3=B6rg</b>,<br>see you";
        let text = text(&shape, page);
        assert!(text.contains("Dear") && text.contains("Jörg") && !text.contains("p{}"), "{text}");
    }

    #[test]
    fn a_stub_is_no_text() {
        for (text, expected) in [
            ("", true),
            (" \n", true),
            ("Your mail program cannot show HTML. Open this in a browser.", true),
            ("Dinner at eight?", false),
        ] {
            assert_eq!(is_stub(text), expected, "{text}");
        }
        assert!(!is_stub(&"We talked about HTML. ".repeat(20)));
    }
}
