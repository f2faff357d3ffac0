//! What a mail consists of, as its server describes it: which parts are its text, and which are attachments. Pure.

use kai_assistant::email::port::Attachment;
use kai_assistant::untrusted::Untrusted;

use super::super::headers::file_name;
use super::super::text::{Encoding, Kind, Shape};
use super::value::Value;

/// What a mail consists of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::mail) struct Contents {
    /// The texts, one after the other.
    pub(in crate::mail) texts: Vec<Text>,
    pub(in crate::mail) attachments: Vec<Attachment>,
    /// There are more parts than these.
    pub(in crate::mail) more: bool,
}

/// A text, of which there may be several versions: the first is read, or the next if that says nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mail) struct Text {
    pub(in crate::mail) versions: Vec<Part>,
}

/// A text part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mail) struct Part {
    /// Its number, such as `1.2`.
    pub(in crate::mail) section: String,
    pub(in crate::mail) shape: Shape,
    /// In bytes, as it is written for the way.
    pub(in crate::mail) size: u64,
}

/// How many texts and attachments are looked at.
const MOST_TEXTS: usize = 20;
const MOST_ATTACHMENTS: usize = 200;
const LONGEST_KIND: usize = 100;

impl Contents {
    /// Reads a `BODYSTRUCTURE`.
    pub(in crate::mail) fn read(structure: &Value<'_>) -> Self {
        let mut contents = Self::default();
        if let Some(list) = structure.list() {
            contents.add(list, "");
        }
        contents
    }

    fn add(&mut self, part: &[Value<'_>], section: &str) {
        if part.first().is_some_and(|first| first.list().is_some()) {
            return self.add_all(part, section);
        }
        let section = if section.is_empty() { "1" } else { section };
        match text_part(part, section) {
            Some(_) if self.texts.len() >= MOST_TEXTS => self.more = true,
            Some(text) => self.texts.push(Text { versions: vec![text] }),
            None if self.attachments.len() >= MOST_ATTACHMENTS => self.more = true,
            None => self.attachments.push(attachment(part)),
        }
    }

    fn add_all(&mut self, parts: &[Value<'_>], section: &str) {
        let children = parts.iter().map_while(Value::list);
        let subtype = parts.iter().find_map(Value::text).unwrap_or_default();
        let is_alternative = subtype.eq_ignore_ascii_case("alternative");
        let before = self.texts.len();
        for (at, child) in children.enumerate() {
            if self.more {
                return;
            }
            let dot = if section.is_empty() { "" } else { "." };
            self.add(child, &format!("{section}{dot}{}", at + 1));
        }
        if is_alternative && self.texts.len() > before {
            let mut versions: Vec<Part> = self.texts.drain(before..).flat_map(|text| text.versions).collect();
            versions.sort_by_key(|part| part.shape.kind == Kind::Html);
            self.texts.push(Text { versions });
        }
    }
}

/// What is at these places: type, subtype, parameters, encoding, size.
const TYPE: usize = 0;
const SUBTYPE: usize = 1;
const PARAMETERS: usize = 2;
const ENCODING: usize = 5;
const SIZE: usize = 6;
/// In a message inside of a message.
const ENVELOPE: usize = 7;
const ENVELOPE_SUBJECT: usize = 1;

fn text_part(part: &[Value<'_>], section: &str) -> Option<Part> {
    let kind = match (word(part, TYPE).as_str(), word(part, SUBTYPE).as_str()) {
        ("text", "html") => Kind::Html,
        ("text", "plain") => Kind::Plain,
        _ => return None,
    };
    if disposition(part).is_some_and(|(name, _)| name.eq_ignore_ascii_case("attachment")) {
        return None;
    }
    let parameters = pairs(part.get(PARAMETERS));
    let charset = parameters.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("charset"));
    let shape = Shape {
        kind,
        charset: charset.map(|(_, value)| value).unwrap_or_default(),
        encoding: Encoding::named(&word(part, ENCODING)),
    };
    let size = part.get(SIZE).and_then(Value::number).unwrap_or(u64::MAX);
    Some(Part { section: section.to_owned(), shape, size })
}

fn word(part: &[Value<'_>], at: usize) -> String {
    part.get(at).and_then(Value::text).map(|text| text.to_ascii_lowercase()).unwrap_or_default()
}

/// How a part is to be shown, with its parameters. Its place differs from type to type: it is the only list that begins
/// with a string and continues with a list or `NIL` alone.
fn disposition(part: &[Value<'_>]) -> Option<(String, Vec<(String, String)>)> {
    part.iter().skip(SIZE + 1).filter_map(Value::list).find_map(|list| match list {
        [name, parameters] => {
            let name = name.text()?.into_owned();
            let known = ["attachment", "inline"].iter().any(|known| name.eq_ignore_ascii_case(known));
            (known || parameters.list().is_some()).then(|| (name, pairs(Some(parameters))))
        }
        _ => None,
    })
}

/// Names and values that follow one another.
fn pairs(list: Option<&Value<'_>>) -> Vec<(String, String)> {
    let list = list.and_then(Value::list).unwrap_or_default();
    let pair = |pair: &[Value<'_>]| match pair {
        [name, value] => Some((name.text()?.into_owned(), value.text()?.into_owned())),
        _ => None,
    };
    list.chunks(2).take(50).filter_map(pair).collect()
}

fn attachment(part: &[Value<'_>]) -> Attachment {
    let kind = format!("{}/{}", word(part, TYPE), word(part, SUBTYPE));
    let shown = disposition(part).map(|(_, parameters)| parameters).unwrap_or_default();
    let named = file_name(&shown).or_else(|| file_name(&pairs(part.get(PARAMETERS))));
    let name = named.or_else(|| subject(part)).unwrap_or_default();
    let size = part.get(SIZE).and_then(Value::number).unwrap_or_default();
    let is_base64 = Encoding::named(&word(part, ENCODING)) == Encoding::Base64;
    Attachment {
        name: Untrusted::new(name),
        kind: Untrusted::new(kind.chars().take(LONGEST_KIND).collect::<String>()),
        // Lines of 76 digits and two line ends hold 57 bytes.
        size: if is_base64 { size.saturating_mul(57) / 78 } else { size },
    }
}

/// The subject of a mail that is attached to a mail.
fn subject(part: &[Value<'_>]) -> Option<String> {
    let is_message = word(part, TYPE) == "message" && word(part, SUBTYPE) == "rfc822";
    let envelope = part.get(ENVELOPE).filter(|_| is_message)?.list()?;
    let subject = envelope.get(ENVELOPE_SUBJECT)?.text()?;
    Some(super::super::headers::decoded(&subject))
}

#[cfg(test)]
mod tests {
    use super::super::value::Reader;
    use super::*;

    fn contents(structure: &str) -> Contents {
        Contents::read(&Reader::new(structure.as_bytes()).value().unwrap())
    }

    /// Texts with their versions, and files: `1.1|1.2, name kind size`.
    fn shown(contents: &Contents) -> String {
        let sections =
            |text: &Text| -> Vec<String> { text.versions.iter().map(|part| part.section.clone()).collect() };
        let texts = contents.texts.iter().map(|text| sections(text).join("|"));
        let file = |file: &Attachment| {
            format!("{} {} {}", file.name.as_written(), file.kind.as_written(), file.size)
        };
        texts.chain(contents.attachments.iter().map(file)).collect::<Vec<_>>().join(", ")
    }

    const PLAIN: &str = "(\"text\" \"plain\" (\"charset\" \"utf-8\") NIL NIL \"7bit\" 12 1 NIL NIL NIL NIL)";
    const HTML: &str = "(\"TEXT\" \"HTML\" (\"charset\" \"iso-8859-1\") NIL NIL \"QUOTED-PRINTABLE\" 900 20)";
    const PDF: &str = "(\"application\" \"pdf\" (\"name\" \"old.pdf\") NIL NIL \"base64\" 7800 NIL \
        (\"attachment\" (\"filename*\" \"utf-8''R%C3%A4tsel.pdf\")) NIL NIL)";
    const NESTED: &str = "(\"message\" \"rfc822\" NIL NIL NIL \"7bit\" 500 (NIL \"=?utf-8?q?Gr=C3=BC=C3=9Fe?=\" \
        NIL NIL NIL NIL NIL NIL NIL NIL) (\"text\" \"plain\" NIL NIL NIL \"7bit\" 5 1) 12)";

    #[test]
    fn texts_and_attachments_are_told_apart() {
        let alternative = format!("({PLAIN}{HTML} \"alternative\" (\"boundary\" \"b\") NIL NIL)");
        let related =
            format!("({HTML}(\"image\" \"png\" NIL \"<i>\" NIL \"base64\" 78 NIL NIL) \"related\")");
        let rich = format!("({PLAIN}{related} \"alternative\")");
        let attached = PLAIN.replace("1 NIL NIL", "1 NIL (\"attachment\" (\"filename\" \"a.txt\"))");
        for (structure, expected) in [
            (PLAIN.to_owned(), "1"),
            (HTML.to_owned(), "1"),
            (alternative.clone(), "1|2"),
            (format!("({HTML}{PLAIN} \"alternative\")"), "2|1"),
            (format!("({alternative}{PDF} \"mixed\")"), "1.1|1.2, Rätsel.pdf application/pdf 5700"),
            (rich, "1|2.1,  image/png 57"),
            (format!("({PLAIN}{NESTED} \"mixed\")"), "1, Grüße message/rfc822 500"),
            (attached, "a.txt text/plain 12"),
            ("NIL".to_owned(), ""),
            ("()".to_owned(), " / 0"),
        ] {
            assert_eq!(shown(&contents(&structure)), expected, "{structure}");
        }
    }

    #[test]
    fn ten_thousand_parts_are_a_few() {
        let many = contents(&format!("({} \"mixed\")", PLAIN.repeat(10_000)));
        assert_eq!((many.texts.len(), many.more), (MOST_TEXTS, true));
        let files = contents(&format!("({}{} \"mixed\")", PLAIN, PDF.repeat(10_000)));
        assert_eq!((files.texts.len(), files.attachments.len(), files.more), (1, MOST_ATTACHMENTS, true));
    }

    #[test]
    fn the_shape_of_a_text_is_known() {
        let html = contents(HTML);
        let shape =
            Shape { kind: Kind::Html, charset: "iso-8859-1".to_owned(), encoding: Encoding::QuotedPrintable };
        assert_eq!(html.texts[0].versions, [Part { section: "1".to_owned(), shape, size: 900 }]);
    }
}
