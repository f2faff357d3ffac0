//! Decodes bytes to text, in every encoding that browsers support.

use encoding_rs::{Encoding, REPLACEMENT, UTF_8};

/// Decodes a page in the encoding `charset`, which the server or the page's own head names; UTF-8 without one. Returns
/// `None` for an encoding that browsers do not support.
pub(super) fn text(bytes: &[u8], charset: Option<&str>) -> Option<String> {
    let encoding = match charset.map(|name| name.trim_matches(['"', '\'', ' '])) {
        None | Some("") => UTF_8,
        Some(named) => Encoding::for_label(named.as_bytes()).filter(|found| *found != REPLACEMENT)?,
    };
    // A byte order mark overrides `charset`, as it does in browsers.
    let (text, _, _) = encoding.decode(bytes);
    // A text that was cut in the middle of a character loses only that character.
    Some(text.trim_end_matches('\u{fffd}').to_owned())
}

/// The `charset` parameter of a `Content-Type`.
pub(super) fn charset(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then_some(value.trim())
    })
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
            (b"\x93\xfa\x96{", "text/html; charset=Shift_JIS", Some("日本")),
            (b"\xcf\xf0\xe8\xe2\xe5\xf2", "text/html; charset=windows-1251", Some("Привет")),
            (b"\xf0\xd2\xc9", "text/html; charset=koi8-r", Some("При")),
            (b"\xc4\xe3", "text/html; charset=gb2312", Some("你")),
            (b"\xa7A", "text/html; charset=big5", Some("你")),
            (b"\xbe\xc8", "text/html; charset=euc-kr", Some("안")),
            (b"h\0i\0", "text/html; charset=utf-16", Some("hi")),
            (b"\xfe\xff\0h\0i", "text/html; charset=utf-8", Some("hi")),
            (b"x", "text/html; charset=iso-2022-kr", None),
            (b"x", "text/html; charset=utf-7", None),
        ] {
            assert_eq!(text(bytes, charset(content_type)).as_deref(), expected, "{content_type}");
        }
    }
}
