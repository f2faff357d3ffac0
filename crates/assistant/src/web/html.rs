//! Splits HTML into a flat list of tags and text, which is all that `results` and `readable` need.
//!
//! html5ever tokenizes the page as browsers do: every entity and every way to write a comment, a script or an
//! attribute. Nothing here fails: for a page that was cut off or is not HTML, it returns whatever can be read.

use std::cell::{Cell, RefCell};

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind::{Rawtext, Rcdata, ScriptData};
use html5ever::tokenizer::{
    self, BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

/// One tag or text of a page, in document order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Open(Tag),
    /// The element's name in lower case.
    Close(String),
    /// The text with entities decoded. Two texts never follow each other.
    Text(String),
}

/// An opening tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tag {
    /// The element's name in lower case.
    pub(super) name: String,
    /// Attribute names in lower case, with decoded values.
    attributes: Vec<(String, String)>,
}

impl Tag {
    /// The decoded value of an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn has_class(&self, class: &str) -> bool {
        self.attribute("class").is_some_and(|all| all.split_ascii_whitespace().any(|one| one == class))
    }

    /// Whether the element is void: it has no content and no closing tag.
    pub(super) fn is_void(&self) -> bool {
        const VOID: [&str; 13] = [
            "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
            "wbr",
        ];
        VOID.contains(&self.name.as_str())
    }
}

/// Splits a page into pieces. It stops early on a hostile page that would take too long to tokenize; see [`Effort`].
pub(super) fn pieces(page: &str) -> Vec<Piece> {
    let tokenizer = Tokenizer::new(Pieces::default(), TokenizerOpts::default());
    let (queue, mut effort) = (BufferQueue::default(), Effort::default());
    let mut rest = page;
    while !rest.is_empty() && !effort.exceeds_limit() {
        let (bite, after) = rest.split_at(rest.floor_char_boundary(BITE));
        rest = after;
        queue.push_back(StrTendril::from_slice(bite));
        // The tokenizer pauses where a script would run or an encoding is named. We run no scripts and the text is
        // already decoded, so we simply continue.
        while !queue.is_empty() {
            let _ = tokenizer.feed(&queue);
        }
        effort.add(bite, tokenizer.sink.progressed.take());
    }
    tokenizer.end();
    tokenizer.sink.pieces.into_inner()
}

/// How many bytes are fed to the tokenizer at once.
const BITE: usize = 4_096;

/// An estimate of what tokenizing has cost so far. The tokenizer compares each attribute of a tag with all earlier
/// ones, so a single tag of a megabyte would take minutes.
#[derive(Default)]
struct Effort {
    /// The most attributes that the tag being read can have so far.
    attributes: usize,
    comparisons: usize,
}

impl Effort {
    /// The most comparisons before reading stops. They take a fraction of a second, and no ordinary page comes near
    /// this.
    const MOST: usize = 100_000_000;

    fn add(&mut self, bite: &str, progressed: bool) {
        if progressed {
            self.attributes = 0;
            return;
        }
        let more = bite.bytes().filter(|byte| byte.is_ascii_whitespace() || b"/\"'".contains(byte)).count();
        self.attributes += more;
        self.comparisons = self.comparisons.saturating_add(self.attributes.saturating_mul(more));
    }

    fn exceeds_limit(&self) -> bool {
        self.comparisons > Self::MOST
    }
}

/// The tokenizer's sink, which collects the pieces.
#[derive(Default)]
struct Pieces {
    pieces: RefCell<Vec<Piece>>,
    /// Whether a tag, comment or text was completed since this was last read.
    progressed: Cell<bool>,
}

impl Pieces {
    fn text(&self, text: &str) {
        let mut pieces = self.pieces.borrow_mut();
        match pieces.last_mut() {
            Some(Piece::Text(before)) => before.push_str(text),
            _ => pieces.push(Piece::Text(text.to_owned())),
        }
    }

    fn tag(&self, tag: &tokenizer::Tag) -> TokenSinkResult<()> {
        let name = tag.name.to_string();
        if tag.kind == TagKind::EndTag {
            self.pieces.borrow_mut().push(Piece::Close(name));
            return TokenSinkResult::Continue;
        }
        let content = content_of(&name);
        let attributes = tag.attrs.iter().map(|a| (a.name.local.to_string(), a.value.to_string())).collect();
        self.pieces.borrow_mut().push(Piece::Open(Tag { name, attributes }));
        content
    }
}

impl TokenSink for Pieces {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        // Parse errors are also reported in the middle of a tag, so they do not count as progress.
        self.progressed.set(self.progressed.get() || !matches!(token, Token::ParseError(_)));
        match token {
            Token::TagToken(tag) => return self.tag(&tag),
            Token::CharacterTokens(text) => self.text(&text),
            Token::DoctypeToken(_)
            | Token::CommentToken(_)
            | Token::NullCharacterToken
            | Token::EOFToken
            | Token::ParseError(_) => {}
        }
        TokenSinkResult::Continue
    }
}

/// How the tokenizer must read the content of an element: as markup, or as text up to its closing tag, with or without
/// entities.
fn content_of(element: &str) -> TokenSinkResult<()> {
    match element {
        "script" => TokenSinkResult::RawData(ScriptData),
        "style" | "xmp" | "iframe" | "noframes" | "noembed" => TokenSinkResult::RawData(Rawtext),
        "title" | "textarea" => TokenSinkResult::RawData(Rcdata),
        "plaintext" => TokenSinkResult::Plaintext,
        _ => TokenSinkResult::Continue,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The pieces of a page, written as strings.
    fn read(page: &str) -> Vec<String> {
        let written = |piece| match piece {
            Piece::Open(tag) => format!("<{}>", tag.name),
            Piece::Close(name) => format!("</{name}>"),
            Piece::Text(text) => text,
        };
        pieces(page).into_iter().map(written).collect()
    }

    #[test]
    fn tags_text_and_remarks() {
        for (page, expected) in [
            ("", vec![]),
            ("plain & simple", vec!["plain & simple"]),
            ("<P>a<br/>b</P >", vec!["<p>", "a", "<br>", "b", "</p>"]),
            ("<!DOCTYPE html><!-- <b> -->x<?php ?>", vec!["x"]),
            ("<!-- never closed <b>x", vec![]),
            ("<!--> browsers close it here", vec![" browsers close it here"]),
            ("1 < 2 <3 <", vec!["1 < 2 <3 <"]),
            ("<script>if (a<b) '</p>'</SCRIPT>x", vec!["<script>", "if (a<b) '</p>'", "</script>", "x"]),
            (
                "<script><!-- <script></script> --></script>x",
                vec!["<script>", "<!-- <script></script> -->", "</script>", "x"],
            ),
            ("<style>p{}", vec!["<style>", "p{}"]),
            ("<title>a &amp; <b></title>", vec!["<title>", "a & <b>", "</title>"]),
            ("<a title='x > y'>z", vec!["<a>", "z"]),
            ("a<b title=\"cut off", vec!["a"]),
            ("a<b", vec!["a"]),
            ("a\0b\r\nc", vec!["ab\nc"]),
        ] {
            assert_eq!(read(page), expected, "{page}");
        }
    }

    #[test]
    fn attributes_in_all_their_spellings() {
        let page = r#"<a HREF = "/x?a=1&amp;b=2" class='one  two' data-x=y/z disabled title= class="three">"#;
        let all = pieces(page);
        let Some(Piece::Open(tag)) = all.first() else { panic!("no tag") };
        for (name, value) in [
            ("href", Some("/x?a=1&b=2")),
            ("class", Some("one  two")),
            ("data-x", Some("y/z")),
            ("disabled", Some("")),
            ("missing", None),
        ] {
            assert_eq!(tag.attribute(name), value, "{name}");
        }
        assert!(tag.has_class("one") && tag.has_class("two") && !tag.has_class("tw"));
    }

    #[test]
    fn entities() {
        for (text, expected) in [
            ("a &amp;amp; b", "a &amp; b"),
            ("&lt;&#60;&#x3C;&#X3c;", "<<<<"),
            ("&uuml;&szlig;&euro;&#128512;", "üß€😀"),
            ("&Zcaron;&rarrhk;&nGt;&iinfin;", "Ž↪≫\u{20d2}⧜"),
            ("&#147;x&#148;", "“x”"),
            ("&#0;&#xD800;&#99999999;", "\u{fffd}\u{fffd}\u{fffd}"),
            ("a & b &unknown; &; &#; &#x; &amp", "a & b &unknown; &; &#; &#x; &"),
            ("&&amp;&ä;", "&&&ä;"),
        ] {
            assert_eq!(read(text).concat(), expected, "{text}");
        }
    }

    /// Checks the limit by how far the page was read, not by time.
    #[test]
    fn a_tag_without_end_ends_the_reading_and_long_values_and_remarks_do_not() {
        let words = |n: usize| (0..n).map(|at| format!("w{at}")).collect::<Vec<_>>().join(" ");
        let last = |page: String| pieces(&page).pop();
        let end = Some(Piece::Text("end".to_owned()));
        assert_eq!(last(format!("start<a {}>end", words(40_000))), Some(Piece::Text("start".to_owned())));
        assert_eq!(last(format!("<a title=\"{}\">end", "x".repeat(1_900_000))), end);
        assert_eq!(last(format!("<!-- {} -->end", words(8_000))), end);
        assert_eq!(
            last(format!("{}end", "<p class=x>a b c d".repeat(100_000)))
                .map(|piece| matches!(piece, Piece::Text(text) if text.ends_with("end"))),
            Some(true)
        );
    }

    proptest! {
        /// Reading any input ends without a panic.
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
