//! Reads text files. Pure.

use super::LONGEST_TEXT;

/// Why a file is not taken as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    TooLong,
    /// There is nothing in it but space.
    Blank,
    NoText,
}

/// The text of a file, without the mark that some editors put before UTF-8.
pub(super) fn read(bytes: &[u8]) -> Result<&str, Flaw> {
    let text = std::str::from_utf8(bytes).map_err(|_| Flaw::NoText)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.chars().any(is_binary) {
        return Err(Flaw::NoText);
    }
    if text.trim().is_empty() {
        return Err(Flaw::Blank);
    }
    if text.len() > LONGEST_TEXT { Err(Flaw::TooLong) } else { Ok(text) }
}

/// A control character that no text has. The escape character is in logs with colours.
fn is_binary(c: char) -> bool {
    c.is_control() && !c.is_whitespace() && c != '\u{1b}' && c != '\u{8}' && c != '\u{85}'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf8_is_text_and_nothing_else_is() {
        let long = "a".repeat(LONGEST_TEXT);
        let longer = "a".repeat(LONGEST_TEXT + 1);
        for (bytes, expected) in [
            ("Grüße\r\n\tdu".as_bytes(), Ok("Grüße\r\n\tdu")),
            (b"\xef\xbb\xbfhello", Ok("hello")),
            (b"\x1b[31mred\x1b[0m", Ok("\u{1b}[31mred\u{1b}[0m")),
            (b"\xef\xbb\xbf \n", Err(Flaw::Blank)),
            (b"\xff\xfeh\0i\0", Err(Flaw::NoText)),
            (b"caf\xe9", Err(Flaw::NoText)),
            (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3", Err(Flaw::NoText)),
            (b"MZ\0\0", Err(Flaw::NoText)),
            (long.as_bytes(), Ok(long.as_str())),
            (longer.as_bytes(), Err(Flaw::TooLong)),
        ] {
            assert_eq!(read(bytes), expected);
        }
    }
}
