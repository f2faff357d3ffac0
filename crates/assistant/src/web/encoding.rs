//! From bytes to text: UTF-8, and the one old encoding that is still common.

/// The text of a page whose server (or own head) names `charset`; `None` for an encoding we cannot read.
pub(super) fn text(bytes: &[u8], charset: Option<&str>) -> Option<String> {
    let charset = charset.map(|name| name.trim_matches(['"', '\'', ' ']).to_ascii_lowercase());
    match charset.as_deref() {
        None | Some("utf-8" | "utf8" | "us-ascii" | "ascii" | "") => Some(utf8(bytes)),
        Some("iso-8859-1" | "latin1" | "windows-1252" | "cp1252") => {
            Some(bytes.iter().map(|byte| windows_1252(*byte)).collect())
        }
        Some(_) => None,
    }
}

/// Text that was cut in the middle of a character loses that character, and nothing else.
fn utf8(bytes: &[u8]) -> String {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    String::from_utf8_lossy(bytes).trim_end_matches('\u{fffd}').to_owned()
}

/// The charset of a `Content-Type`.
pub(super) fn charset(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then_some(value.trim())
    })
}

/// One byte of the encoding of Windows, which pages mean when they say Latin-1.
pub(super) fn windows_1252(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
        '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => HIGH[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_text_in_the_encoding_they_name() {
        for (bytes, content_type, expected) in [
            ("grün".as_bytes(), "text/html; charset=UTF-8", Some("grün")),
            ("grün".as_bytes(), "text/html", Some("grün")),
            (b"\xef\xbb\xbfx", "text/plain;charset=\"utf-8\"", Some("x")),
            (b"gr\xfcn \x80", "text/html; q=1; Charset=ISO-8859-1", Some("grün €")),
            (b"cut \xc3", "text/html", Some("cut ")),
            (b"x", "text/html; charset=shift_jis", None),
        ] {
            assert_eq!(text(bytes, charset(content_type)).as_deref(), expected, "{content_type}");
        }
    }
}
