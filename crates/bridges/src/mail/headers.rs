//! Reads the headers of mails. Pure. What strangers wrote there is decoded and cut to a length.

use jiff::Timestamp;
use kai_assistant::email::port::Mailbox;
use kai_assistant::untrusted::Untrusted;
use mail_parser::{Address, HeaderName, HeaderValue, Message, MessageParser, MimeHeaders};

use super::text::{Encoding, Kind, Shape};

/// The headers of a mail or of one of its parts.
pub(super) struct Headers<'a>(Option<Message<'a>>);

/// How many characters of a header, a name and an address are kept.
const LONGEST: usize = 1_000;
const LONGEST_NAME: usize = 200;
const LONGEST_ADDRESS: usize = 320;
/// How many addresses of a header are kept, and how many ids.
const MOST_ADDRESSES: usize = 100;
const MOST_IDS: usize = 100;

impl<'a> Headers<'a> {
    /// Reads headers; what follows them does not matter.
    pub(super) fn read(bytes: &'a [u8]) -> Self {
        Self(MessageParser::default().parse_headers(bytes))
    }

    fn value(&self, name: HeaderName<'static>) -> Option<&HeaderValue<'a>> {
        self.0.as_ref()?.header(name)
    }

    /// The first text of a header.
    fn text(&self, name: HeaderName<'static>) -> Option<&str> {
        match self.value(name)? {
            HeaderValue::Text(text) => Some(text),
            HeaderValue::TextList(list) => list.first().map(AsRef::as_ref),
            _ => None,
        }
    }

    pub(super) fn subject(&self) -> Untrusted {
        Untrusted::new(cut(self.text(HeaderName::Subject).unwrap_or_default(), LONGEST))
    }

    pub(super) fn from(&self) -> Mailbox {
        self.mailboxes(HeaderName::From).into_iter().next().unwrap_or_default()
    }

    pub(super) fn to(&self) -> Vec<Mailbox> {
        self.mailboxes(HeaderName::To)
    }

    pub(super) fn cc(&self) -> Vec<Mailbox> {
        self.mailboxes(HeaderName::Cc)
    }

    pub(super) fn reply_to(&self) -> Vec<Mailbox> {
        self.mailboxes(HeaderName::ReplyTo)
    }

    fn mailboxes(&self, name: HeaderName<'static>) -> Vec<Mailbox> {
        let Some(HeaderValue::Address(addresses)) = self.value(name) else { return vec![] };
        let listed: Box<dyn Iterator<Item = &mail_parser::Addr<'_>>> = match addresses {
            Address::List(list) => Box::new(list.iter()),
            Address::Group(groups) => Box::new(groups.iter().flat_map(|group| group.addresses.iter())),
        };
        let mailbox = |one: &mail_parser::Addr<'_>| Mailbox {
            name: Untrusted::new(cut(one.name().unwrap_or_default(), LONGEST_NAME)),
            address: Untrusted::new(cut(one.address().unwrap_or_default(), LONGEST_ADDRESS)),
        };
        listed.take(MOST_ADDRESSES).map(mailbox).collect()
    }

    /// When its sender says that it was written.
    pub(super) fn written(&self) -> Option<Timestamp> {
        let Some(HeaderValue::DateTime(date)) = self.value(HeaderName::Date) else { return None };
        date.is_valid().then(|| Timestamp::from_second(date.to_timestamp()).ok())?
    }

    pub(super) fn message_id(&self) -> Option<Untrusted> {
        self.ids(HeaderName::MessageId).into_iter().next()
    }

    /// The conversation before it: `References`, or else the mail that it answers.
    pub(super) fn references(&self) -> Vec<Untrusted> {
        let references = self.ids(HeaderName::References);
        if references.is_empty() { self.ids(HeaderName::InReplyTo) } else { references }
    }

    fn ids(&self, name: HeaderName<'static>) -> Vec<Untrusted> {
        let texts: Vec<&str> = match self.value(name) {
            Some(HeaderValue::Text(text)) => vec![text],
            Some(HeaderValue::TextList(list)) => list.iter().map(AsRef::as_ref).collect(),
            _ => vec![],
        };
        let ids = texts.into_iter().map(|id| cut(id, LONGEST)).filter(|id| !id.is_empty());
        ids.take(MOST_IDS).map(Untrusted::new).collect()
    }

    /// A newsletter, or sent by a program.
    pub(super) fn is_bulk(&self) -> bool {
        let raw = |name: &'static str| self.0.as_ref().and_then(|headers| headers.header_raw(name));
        let is = |name, words: &[&str]| {
            raw(name).is_some_and(|value| words.iter().any(|word| value.trim().eq_ignore_ascii_case(word)))
        };
        raw("List-Unsubscribe").is_some()
            || raw("List-Id").is_some()
            || is("Precedence", &["bulk", "list", "junk"])
            || (raw("Auto-Submitted").is_some() && !is("Auto-Submitted", &["no"]))
    }

    /// What the body is: a text, several parts with this boundary, or something else.
    pub(super) fn body(&self) -> Body {
        let Some(message) = &self.0 else { return Body::Text(Shape::default()) };
        let root = message.parts.first();
        let disposition = root.and_then(|part| part.content_disposition());
        let Some(content) = root.and_then(|part| part.content_type()) else {
            return Body::Text(Shape { encoding: self.encoding(), ..Shape::default() });
        };
        let subtype = content.subtype().unwrap_or_default().to_ascii_lowercase();
        if content.ctype().eq_ignore_ascii_case("multipart") {
            let boundary = content.attribute("boundary").unwrap_or_default();
            return Body::Parts { boundary: boundary.to_owned(), is_alternative: subtype == "alternative" };
        }
        let is_text = content.ctype().eq_ignore_ascii_case("text");
        let is_attached = disposition.is_some_and(|disposition| disposition.ctype() == "attachment");
        let kind = match subtype.as_str() {
            "html" if is_text => Kind::Html,
            "plain" | "" if is_text => Kind::Plain,
            _ => return Body::Other,
        };
        let charset = content.attribute("charset").unwrap_or_default().to_owned();
        if is_attached { Body::Other } else { Body::Text(Shape { kind, charset, encoding: self.encoding() }) }
    }

    fn encoding(&self) -> Encoding {
        Encoding::named(self.text(HeaderName::ContentTransferEncoding).unwrap_or_default())
    }
}

/// What a body is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Body {
    Text(Shape),
    Parts {
        boundary: String,
        /// Each part says the same.
        is_alternative: bool,
    },
    Other,
}

/// A text without line breaks, cut to a length.
fn cut(text: &str, longest: usize) -> String {
    one_line(text.trim()).take(longest).collect()
}

fn one_line(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().map(|c| if c.is_control() { ' ' } else { c })
}

/// The subject of an attached mail, whose words may be encoded. It stands for a name.
pub(super) fn decoded(text: &str) -> String {
    let header = format!("Subject: {}\r\n\r\n", cut(text, LONGEST));
    cut(Headers::read(header.as_bytes()).subject().as_written(), LONGEST_NAME)
}

/// The name of a file in the parameters of a part, in any of the ways in which programs write it.
pub(super) fn file_name(parameters: &[(String, String)]) -> Option<String> {
    let mut header = "Content-Disposition: attachment".to_owned();
    for (name, value) in parameters {
        let name = name.to_ascii_lowercase();
        let bare = name.split('*').next().unwrap_or_default();
        if !matches!(bare, "filename" | "name") {
            continue;
        }
        let name = cut(&name.replacen("filename", "name", 1).replacen("name", "filename", 1), 20);
        let value: String = one_line(value).take(LONGEST).collect();
        let value = if name.ends_with('*') {
            value.replace([';', '"'], "")
        } else {
            format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
        };
        header.extend(["; ", &name, "=", &value]);
    }
    header += "\r\n\r\n";
    let message = MessageParser::default().parse_headers(header.as_bytes())?;
    let name = cut(message.parts.first()?.attachment_name()?, LONGEST_NAME);
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxes(list: &[Mailbox]) -> Vec<(&str, &str)> {
        list.iter().map(|one| (one.name.as_written(), one.address.as_written())).collect()
    }

    #[test]
    fn headers_are_read_however_they_are_written() {
        let bytes = "From: =?utf-8?q?J=C3=B6rg_M=C3=BCller?= <joerg@example.org>\r\n\
            To: \"Liddell, Alice\" <alice@example.org>,\r\n bob@example.org\r\n\
            Cc: Team: c@example.org, d@example.org;\r\n\
            Subject: =?ISO-2022-JP?B?GyRCJDMkcyRLJEEkTxsoQg==?=\r\n =?utf-8?b?4pyT?=\r\n\
            Date: Tue, 1 Jul 2025 10:00:00 +0200\r\n\
            Message-ID: <id@example.org>\r\n\
            References: <a@x>\r\n <b@y>\r\n\r\nbody"
            .as_bytes();
        let headers = Headers::read(bytes);
        assert_eq!(boxes(&[headers.from()]), [("Jörg Müller", "joerg@example.org")]);
        assert_eq!(boxes(&headers.to()), [("Liddell, Alice", "alice@example.org"), ("", "bob@example.org")]);
        assert_eq!(boxes(&headers.cc()), [("", "c@example.org"), ("", "d@example.org")]);
        assert_eq!(headers.subject().as_written(), "こんにちは✓");
        assert_eq!(headers.written(), Some("2025-07-01T08:00:00Z".parse().unwrap()));
        assert_eq!(headers.message_id(), Some(Untrusted::new("id@example.org")));
        assert_eq!(headers.references(), [Untrusted::new("a@x"), Untrusted::new("b@y")]);
        assert!(!headers.is_bulk());
    }

    #[test]
    fn headers_may_be_missing_or_absurd() {
        for bytes in
            [&b""[..], b"\r\n", b"no headers at all", b"\xff\xfe\0\0", b"From:\r\nDate: yesterday\r\n"]
        {
            let headers = Headers::read(bytes);
            assert_eq!((headers.from(), headers.written()), (Mailbox::default(), None));
            assert_eq!((headers.subject(), headers.message_id()), (Untrusted::default(), None));
        }
        let bomb = format!("Subject: {}\r\n", "x\r\n ".repeat(1_000_000));
        assert!(Headers::read(bomb.as_bytes()).subject().as_written().len() <= LONGEST);
        for (date, expected) in [
            ("Thu, 1 Jan 1970 00:00:00 +0000", Some(0)),
            ("Fri, 1 Jan 2100 00:00:00 +0000", Some(4_102_444_800)),
            ("Fri, 99 Jan 2100 99:00:00 +0000", None),
        ] {
            let line = format!("Date: {date}\r\n\r\n");
            assert_eq!(
                Headers::read(line.as_bytes()).written().map(Timestamp::as_second),
                expected,
                "{date}"
            );
        }
    }

    #[test]
    fn newsletters_are_known_by_their_headers() {
        for (line, expected) in [
            ("List-Unsubscribe: <mailto:x@y>", true),
            ("List-ID: x", true),
            ("precedence: Bulk", true),
            ("Precedence: first-class", false),
            ("Auto-Submitted: auto-generated", true),
            ("Auto-Submitted: no", false),
            ("X: y", false),
        ] {
            assert_eq!(Headers::read(format!("{line}\r\n\r\n").as_bytes()).is_bulk(), expected, "{line}");
        }
    }

    #[test]
    fn names_of_files_are_found_in_every_spelling() {
        let named = |pairs: &[(&str, &str)]| {
            let pairs: Vec<_> = pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            file_name(&pairs)
        };
        for (pairs, expected) in [
            (&[("filename", "a b.pdf")][..], Some("a b.pdf")),
            (&[("name", "a.pdf")], Some("a.pdf")),
            (&[("FILENAME*", "utf-8''R%C3%A4tsel.pdf")], Some("Rätsel.pdf")),
            (&[("filename*0", "long"), ("filename*1", " name.txt")], Some("long name.txt")),
            (&[("filename", "=?utf-8?q?R=C3=A4tsel.pdf?=")], Some("Rätsel.pdf")),
            (&[("filename", "a\"; x=\"b\\")], Some("a\"; x=\"b\\")),
            (&[("filename", "a\r\nSubject: x")], Some("a  Subject: x")),
            (&[("charset", "utf-8")], None),
            (&[], None),
        ] {
            assert_eq!(named(pairs).as_deref(), expected, "{pairs:?}");
        }
    }
}
