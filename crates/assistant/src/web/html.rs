//! Reads HTML as a row of tags and text, which is all that finding results and reading pages need.
//!
//! Nothing here fails: a page that was cut off or was never HTML gives what can be read of it. Every byte is
//! looked at a bounded number of times, so a hostile page costs no more than a long one.

use std::borrow::Cow;

/// One piece of a page, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Open(Tag<'a>),
    /// The name in lower case.
    Close(String),
    /// With its entities decoded.
    Text(String),
}

/// An opening tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tag<'a> {
    /// In lower case.
    pub(super) name: String,
    attributes: &'a str,
}

impl Tag<'_> {
    /// The value of an attribute, decoded.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        let mut rest = self.attributes;
        while let Some((key, value, after)) = attribute(rest) {
            if key.eq_ignore_ascii_case(name) {
                return Some(decode(value).into_owned());
            }
            rest = after;
        }
        None
    }

    pub(super) fn has_class(&self, class: &str) -> bool {
        self.attribute("class").is_some_and(|all| all.split_ascii_whitespace().any(|one| one == class))
    }

    /// It has no content and no closing tag.
    pub(super) fn is_void(&self) -> bool {
        const VOID: [&str; 13] = [
            "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
            "wbr",
        ];
        VOID.contains(&self.name.as_str())
    }
}

/// The pieces of a page.
pub(super) fn pieces(page: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut reader = Reader { rest: page, raw: None };
    std::iter::from_fn(move || reader.next())
}

struct Reader<'a> {
    rest: &'a str,
    /// Inside an element whose content is not markup, up to its closing tag.
    raw: Option<String>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<Piece<'a>> {
        if let Some(name) = self.raw.take() {
            return Some(Piece::Text(self.raw_text(&name)));
        }
        loop {
            if self.rest.is_empty() {
                return None;
            }
            if !self.rest.starts_with('<') {
                return Some(self.text(0));
            }
            let after = self.rest.as_bytes().get(1).copied().unwrap_or(b' ');
            match after {
                b'!' | b'?' => self.skip_remark(),
                b'/' if self.names(2) => return Some(self.close()),
                _ if self.names(1) => {
                    if let Some(tag) = self.open() {
                        return Some(Piece::Open(tag));
                    }
                }
                _ => return Some(self.text(1)),
            }
        }
    }

    /// Does a tag's name begin here?
    fn names(&self, at: usize) -> bool {
        self.rest.as_bytes().get(at).is_some_and(u8::is_ascii_alphabetic)
    }

    /// Text up to the next `<` after `from`.
    fn text(&mut self, from: usize) -> Piece<'a> {
        let end = self.rest[from..].find('<').map_or(self.rest.len(), |at| at + from);
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        Piece::Text(decode(text).into_owned())
    }

    /// A comment, a doctype or a processing instruction.
    fn skip_remark(&mut self) {
        let (start, end) = if self.rest.starts_with("<!--") { (4, "-->") } else { (2, ">") };
        self.rest = self.rest[start..].split_once(end).map_or("", |(_, rest)| rest);
    }

    fn close(&mut self) -> Piece<'a> {
        let (inside, rest) = self.rest[2..].split_once('>').unwrap_or((&self.rest[2..], ""));
        self.rest = rest;
        Piece::Close(name_of(inside))
    }

    /// `None` for a tag that the end of the page cut off.
    fn open(&mut self) -> Option<Tag<'a>> {
        let inside = &self.rest[1..];
        let length = inside.find(|c: char| c.is_ascii_whitespace() || c == '/' || c == '>');
        let Some((end, name)) = length.map(|at| (end_of_tag(inside, at), &inside[..at])) else {
            self.rest = "";
            return None;
        };
        let Some(end) = end else {
            self.rest = "";
            return None;
        };
        let tag = Tag { name: name.to_ascii_lowercase(), attributes: &inside[name.len()..end] };
        self.rest = &inside[end + 1..];
        if matches!(
            tag.name.as_str(),
            "script" | "style" | "title" | "textarea" | "xmp" | "iframe" | "noframes"
        ) {
            self.raw = Some(tag.name.clone());
        }
        Some(tag)
    }

    fn raw_text(&mut self, name: &str) -> String {
        let end = end_of_raw(self.rest, name);
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        if matches!(name, "title" | "textarea") { decode(text).into_owned() } else { text.to_owned() }
    }
}

fn name_of(inside: &str) -> String {
    let end = inside.find(|c: char| c.is_ascii_whitespace() || c == '/').unwrap_or(inside.len());
    inside[..end].to_ascii_lowercase()
}

/// Where the `>` of a tag is; one inside a quoted value does not count.
fn end_of_tag(inside: &str, from: usize) -> Option<usize> {
    let mut quote = None;
    let mut before = b' ';
    for (at, byte) in inside.bytes().enumerate().skip(from) {
        match (quote, byte) {
            (None, b'>') => return Some(at),
            // A quote opens a value only after `=`; elsewhere it is a stray character.
            (None, b'"' | b'\'') if before == b'=' => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
    }
    None
}

/// Where `</name` stands, in any case.
fn end_of_raw(text: &str, name: &str) -> usize {
    let closes = |at: usize| {
        let after = text.as_bytes().get(at + 2..at + 2 + name.len());
        after.is_some_and(|after| after.eq_ignore_ascii_case(name.as_bytes()))
    };
    text.match_indices("</").map(|(at, _)| at).find(|at| closes(*at)).unwrap_or(text.len())
}

/// The next attribute: name, raw value, and what follows.
fn attribute(text: &str) -> Option<(&str, &str, &str)> {
    let text = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
    if text.is_empty() {
        return None;
    }
    // The first character belongs to the name whatever it is, so that there is always progress.
    let first = text.chars().next().map_or(0, char::len_utf8);
    let end = text[first..].find(|c: char| c.is_ascii_whitespace() || c == '=' || c == '/');
    let (name, rest) = text.split_at(end.map_or(text.len(), |at| at + first));
    let Some(value) = rest.trim_start().strip_prefix('=') else { return Some((name, "", rest)) };
    let value = value.trim_start();
    for quote in ['"', '\''] {
        if let Some(inside) = value.strip_prefix(quote) {
            let (value, rest) = inside.split_once(quote).unwrap_or((inside, ""));
            return Some((name, value, rest));
        }
    }
    let end = value.find(|c: char| c.is_ascii_whitespace()).unwrap_or(value.len());
    Some((name, &value[..end], &value[end..]))
}

/// Text with its entities replaced; what is no entity stays as it is.
pub(super) fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match entity(rest) {
            Some((character, length)) => {
                decoded.push(character);
                rest = &rest[length..];
            }
            None => decoded.push('&'),
        }
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

/// The character that stands at the beginning as an entity, without its `&`, and how long it was written.
fn entity(text: &str) -> Option<(char, usize)> {
    let end = text.bytes().take(32).position(|byte| byte == b';')?;
    let name = &text[..end];
    let character = match name.strip_prefix('#') {
        Some(number) => numbered(number)?,
        None => named(name)?,
    };
    Some((character, end + 1))
}

fn numbered(number: &str) -> Option<char> {
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => number.parse().ok()?,
    };
    Some(match code {
        0 => char::REPLACEMENT_CHARACTER,
        // Written by people who thought in the encoding of Windows.
        0x80..=0x9f => super::encoding::windows_1252(u8::try_from(code).ok()?),
        _ => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
    })
}

fn named(name: &str) -> Option<char> {
    let at = NAMED.binary_search_by_key(&name, |(known, _)| known).ok()?;
    Some(NAMED[at].1)
}

/// The entities that pages really use, by name.
const NAMED: &[(&str, char)] = &[
    ("AElig", 'Æ'),
    ("Aacute", 'Á'),
    ("Aring", 'Å'),
    ("Auml", 'Ä'),
    ("Ccedil", 'Ç'),
    ("Eacute", 'É'),
    ("Ntilde", 'Ñ'),
    ("Oslash", 'Ø'),
    ("Ouml", 'Ö'),
    ("Uuml", 'Ü'),
    ("aacute", 'á'),
    ("acirc", 'â'),
    ("acute", '´'),
    ("aelig", 'æ'),
    ("agrave", 'à'),
    ("amp", '&'),
    ("apos", '\''),
    ("aring", 'å'),
    ("atilde", 'ã'),
    ("auml", 'ä'),
    ("bdquo", '„'),
    ("bull", '•'),
    ("ccedil", 'ç'),
    ("cent", '¢'),
    ("copy", '©'),
    ("deg", '°'),
    ("divide", '÷'),
    ("eacute", 'é'),
    ("ecirc", 'ê'),
    ("egrave", 'è'),
    ("emsp", '\u{2003}'),
    ("ensp", '\u{2002}'),
    ("euml", 'ë'),
    ("euro", '€'),
    ("frac12", '½'),
    ("gt", '>'),
    ("hellip", '…'),
    ("iacute", 'í'),
    ("icirc", 'î'),
    ("iexcl", '¡'),
    ("iquest", '¿'),
    ("iuml", 'ï'),
    ("laquo", '«'),
    ("larr", '←'),
    ("ldquo", '“'),
    ("lsquo", '‘'),
    ("lt", '<'),
    ("mdash", '—'),
    ("middot", '·'),
    ("minus", '−'),
    ("nbsp", '\u{a0}'),
    ("ndash", '–'),
    ("ntilde", 'ñ'),
    ("oacute", 'ó'),
    ("ocirc", 'ô'),
    ("oslash", 'ø'),
    ("otilde", 'õ'),
    ("ouml", 'ö'),
    ("para", '¶'),
    ("plusmn", '±'),
    ("pound", '£'),
    ("quot", '"'),
    ("raquo", '»'),
    ("rarr", '→'),
    ("rdquo", '”'),
    ("reg", '®'),
    ("rsquo", '’'),
    ("sbquo", '‚'),
    ("sect", '§'),
    ("shy", '\u{ad}'),
    ("szlig", 'ß'),
    ("thinsp", '\u{2009}'),
    ("times", '×'),
    ("trade", '™'),
    ("uacute", 'ú'),
    ("ucirc", 'û'),
    ("uuml", 'ü'),
    ("yen", '¥'),
    ("zwj", '\u{200d}'),
    ("zwnj", '\u{200c}'),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pieces as a test can write them down.
    fn read(page: &str) -> Vec<String> {
        let told = |piece| match piece {
            Piece::Open(tag) => format!("<{}>", tag.name),
            Piece::Close(name) => format!("</{name}>"),
            Piece::Text(text) => text,
        };
        pieces(page).map(told).collect()
    }

    #[test]
    fn tags_text_and_remarks() {
        for (page, expected) in [
            ("", vec![]),
            ("plain & simple", vec!["plain & simple"]),
            ("<P>a<br/>b</P >", vec!["<p>", "a", "<br>", "b", "</p>"]),
            ("<!DOCTYPE html><!-- <b> -->x<?php ?>", vec!["x"]),
            ("<!-- never closed <b>x", vec![]),
            ("1 < 2 <3 <", vec!["1 ", "< 2 ", "<3 ", "<"]),
            ("<script>if (a<b) '</p>'</SCRIPT>x", vec!["<script>", "if (a<b) '</p>'", "</script>", "x"]),
            ("<style>p{}", vec!["<style>", "p{}"]),
            ("<title>a &amp; <b></title>", vec!["<title>", "a & <b>", "</title>"]),
            ("<a title='x > y'>z", vec!["<a>", "z"]),
            ("a<b title=\"cut off", vec!["a"]),
            ("a<b", vec!["a"]),
            ("a</b", vec!["a", "</b>"]),
        ] {
            assert_eq!(read(page), expected, "{page}");
        }
    }

    #[test]
    fn attributes_in_all_their_spellings() {
        let page = r#"<a HREF = "/x?a=1&amp;b=2" class='one  two' data-x=y/z disabled title=>"#;
        let Some(Piece::Open(tag)) = pieces(page).next() else { panic!("no tag") };
        for (name, value) in [
            ("href", Some("/x?a=1&b=2")),
            ("class", Some("one  two")),
            ("data-x", Some("y/z")),
            ("disabled", Some("")),
            ("missing", None),
        ] {
            assert_eq!(tag.attribute(name).as_deref(), value, "{name}");
        }
        assert!(tag.has_class("one") && tag.has_class("two") && !tag.has_class("tw"));
    }

    #[test]
    fn entities() {
        assert!(NAMED.is_sorted_by_key(|(name, _)| *name), "they are searched by halves");
        for (text, expected) in [
            ("a &amp;amp; b", "a &amp; b"),
            ("&lt;&#60;&#x3C;&#X3c;", "<<<<"),
            ("&uuml;&szlig;&euro;&#128512;", "üß€😀"),
            ("&#147;x&#148;", "“x”"),
            ("&#0;&#xD800;&#99999999;", "\u{fffd}\u{fffd}\u{fffd}"),
            ("a & b &unknown; &; &#; &#x; &amp", "a & b &unknown; &; &#; &#x; &amp"),
            ("&&amp;&ä;", "&&&ä;"),
        ] {
            assert_eq!(decode(text), expected, "{text}");
        }
    }

    proptest! {
        /// Whatever comes, reading ends and does not fall over.
        #[test]
        fn anything_can_be_read(page in r#"([<>/!&;#="' a-dä\-]|<a |</|&amp;|<!--|-->|<script>|</script){0,60}"#) {
            for piece in pieces(&page) {
                if let Piece::Open(tag) = piece {
                    tag.attribute("class");
                }
            }
        }
    }
}
