//! Writes a mail as the bytes that servers get. Pure: the same mail gives the same bytes, however often it is sent.

use jiff::Timestamp;
use kai_assistant::outbox::address;
use kai_assistant::outbox::mail::Mail;
use kai_llm::Encoded;

/// A field has a line break or another control character. It could smuggle in a header or another recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadField;

/// A mail for servers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Composed {
    /// The sender as servers spell it.
    pub(super) from: String,
    /// Everyone who gets it, also those whom nobody else sees.
    pub(super) recipients: Vec<String>,
    /// Headers and text, in lines that end with CR LF.
    pub(super) bytes: Vec<u8>,
}

/// Who sees the hidden recipients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readers {
    /// The recipients, who do not.
    Recipients,
    /// The user, who reads their own copy.
    User,
}

/// The longest line of a header, and of an encoded text.
const WIDTH: usize = 76;
/// The most bytes of an address.
const LONGEST_ADDRESS: usize = 320;
/// How many ids of a conversation are named. Long conversations keep their first and their last ones.
const MOST_REFERENCES: usize = 30;

/// Writes a mail. Refuses one with a control character in a header field.
pub(super) fn compose(mail: &Mail, readers: Readers) -> Result<Composed, BadField> {
    let envelope = &mail.envelope;
    let addresses = |list: &[String]| list.iter().map(|one| spelled(one)).collect::<Result<Vec<_>, _>>();
    let (from, to) = (spelled(&envelope.from)?, addresses(&mail.to)?);
    let (cc, bcc) = (addresses(&envelope.cc)?, addresses(&envelope.bcc)?);
    let mut head = Head::default();
    head.line("From", from.split_whitespace());
    head.list("To", &to);
    head.list("Cc", &cc);
    if to.is_empty() && cc.is_empty() {
        head.line("To", ["undisclosed-recipients:;"]);
    }
    if readers == Readers::User {
        head.list("Bcc", &bcc);
    }
    head.line("Subject", encoded_words(clean(&envelope.subject)?).iter().map(String::as_str));
    head.line("Date", date(mail.date).split(' '));
    head.ids("Message-ID", std::slice::from_ref(&envelope.message_id))?;
    if let Some(answered) = &envelope.in_reply_to {
        head.ids("In-Reply-To", std::slice::from_ref(answered))?;
    }
    head.ids("References", &shortened(&envelope.references))?;
    head.line("MIME-Version", ["1.0"]);
    let bytes = with_text(head, &mail.text);
    let mut recipients: Vec<String> = Vec::new();
    for one in to.into_iter().chain(cc).chain(bcc) {
        if !recipients.iter().any(|known| address::same(known, &one)) {
            recipients.push(one);
        }
    }
    Ok(Composed { from, recipients, bytes })
}

/// The headers.
#[derive(Default)]
struct Head(String);

impl Head {
    /// Adds a header of these words. It is folded between them.
    fn line<'a>(&mut self, name: &str, words: impl IntoIterator<Item = &'a str>) {
        self.0 += name;
        self.0.push(':');
        let mut width = name.len() + 1;
        for (at, word) in words.into_iter().enumerate() {
            if at > 0 && width + 1 + word.len() > WIDTH {
                self.0 += "\r\n";
                width = 0;
            }
            self.0.push(' ');
            self.0 += word;
            width += 1 + word.len();
        }
        self.0 += "\r\n";
    }

    /// Adds a header of addresses, unless there are none.
    fn list(&mut self, name: &str, addresses: &[String]) {
        let Some((last, others)) = addresses.split_last() else { return };
        let others: Vec<String> = others.iter().map(|address| format!("{address},")).collect();
        self.line(name, others.iter().map(String::as_str).chain([last.as_str()]));
    }

    /// Adds a header of ids. One that would not be read as one is left out.
    fn ids(&mut self, name: &str, ids: &[String]) -> Result<(), BadField> {
        let mut listed = Vec::new();
        for id in ids {
            let is_id = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>');
            if !clean(id)?.is_empty() && id.len() <= 900 && id.bytes().all(is_id) {
                listed.push(format!("<{id}>"));
            }
        }
        if !listed.is_empty() {
            self.line(name, listed.iter().map(String::as_str));
        }
        Ok(())
    }
}

fn clean(field: &str) -> Result<&str, BadField> {
    if field.chars().any(char::is_control) { Err(BadField) } else { Ok(field) }
}

/// An address as servers spell it.
fn spelled(address: &str) -> Result<String, BadField> {
    let address = address::ascii(clean(address)?);
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b',' | b';' | b'"');
    let fits = (1..=LONGEST_ADDRESS).contains(&address.len());
    if fits && address.bytes().all(is_plain) { Ok(address) } else { Err(BadField) }
}

fn shortened(references: &[String]) -> Vec<String> {
    let first = references.iter().take(1);
    let last = references.iter().skip(1.max(references.len().saturating_sub(MOST_REFERENCES - 1)));
    first.chain(last).cloned().collect()
}

/// A date such as `Tue, 1 Jul 2025 08:00:00 +0000`.
fn date(millis: i64) -> String {
    let at = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::UNIX_EPOCH);
    at.strftime("%a, %-d %b %Y %H:%M:%S +0000").to_string()
}

/// The words of a text for a header. Those that are not ASCII, or would be taken for encoded ones, are encoded.
fn encoded_words(text: &str) -> Vec<String> {
    let is_plain = |c: char| matches!(c, ' '..='~');
    let words_fit = text.split(' ').all(|word| word.len() < WIDTH);
    if text.chars().all(is_plain) && words_fit && !text.contains("=?") && !text.contains("  ") {
        return text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    }
    // With the name of the header, a word of 39 bytes fits into a line. None has half a character.
    let mut words = Vec::new();
    let mut piece = String::new();
    for c in text.chars() {
        if piece.len() + c.len_utf8() > 39 {
            words.push(encoded_word(&std::mem::take(&mut piece)));
        }
        piece.push(c);
    }
    words.extend((!piece.is_empty()).then(|| encoded_word(&piece)));
    words
}

fn encoded_word(text: &str) -> String {
    format!("=?utf-8?B?{}?=", Encoded::of(text.as_bytes()).as_str())
}

fn with_text(mut head: Head, text: &str) -> Vec<u8> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n").replace('\0', "");
    let text = format!("{}\r\n", text.trim_end_matches('\n').replace('\n', "\r\n"));
    let foreign = text.bytes().filter(|byte| !byte.is_ascii()).count();
    let is_mostly_foreign = foreign > text.len() / 5;
    head.line("Content-Type", ["text/plain;", "charset=utf-8"]);
    let encoding = if is_mostly_foreign { "base64" } else { "quoted-printable" };
    head.line("Content-Transfer-Encoding", [encoding]);
    head.0 += "\r\n";
    head.0 += &if is_mostly_foreign { base64_lines(&text) } else { quoted_printable(&text) };
    head.0.into_bytes()
}

fn base64_lines(text: &str) -> String {
    let digits = Encoded::of(text.as_bytes());
    let mut lines = String::new();
    let mut rest = digits.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(WIDTH));
        lines += line;
        lines += "\r\n";
        rest = after;
    }
    lines
}

fn quoted_printable(text: &str) -> String {
    let mut lines = String::with_capacity(text.len() * 5 / 4);
    for line in text.split_terminator("\r\n") {
        quote_line(line.as_bytes(), &mut lines);
        lines += "\r\n";
    }
    lines
}

fn quote_line(line: &[u8], lines: &mut String) {
    let mut width = 0;
    for (at, byte) in line.iter().enumerate() {
        let is_last = at + 1 == line.len();
        let is_plain = match byte {
            b'=' => false,
            // Blanks at the end of a line get lost on the way.
            b' ' | b'\t' => !is_last,
            // Old programs take such a line for the beginning of the next mail.
            b'F' => !(at == 0 && line.starts_with(b"From ")),
            b'.' => !(at == 0 && is_last),
            byte => byte.is_ascii_graphic(),
        };
        let piece = if is_plain { char::from(*byte).to_string() } else { format!("={byte:02X}") };
        if width + piece.len() > WIDTH - usize::from(!is_last) {
            *lines += "=\r\n";
            width = 0;
        }
        *lines += &piece;
        width += piece.len();
    }
}

#[cfg(test)]
mod tests {
    use kai_assistant::outbox::mail::Envelope;
    use mail_parser::MessageParser;

    use super::*;

    fn mail() -> Mail {
        let envelope = Envelope {
            from: "me@example.org".to_owned(),
            cc: vec!["c@example.org".to_owned()],
            bcc: vec!["hidden@example.org".to_owned()],
            subject: "Grüße aus Köln".to_owned(),
            quote: None,
            message_id: "kai.1@example.org".to_owned(),
            in_reply_to: Some("a@x".to_owned()),
            references: vec!["0@x".to_owned(), "a@x".to_owned()],
        };
        let to = vec!["you@bücher.example".to_owned()];
        Mail { to, envelope, text: "Bis morgen!\n.\nFrom here ".to_owned(), date: 1_751_356_800_000 }
    }

    fn written(mail: &Mail, readers: Readers) -> String {
        String::from_utf8(compose(mail, readers).unwrap().bytes).unwrap()
    }

    #[test]
    fn a_mail_is_written_as_servers_expect() {
        let expected = "From: me@example.org\r\n\
            To: you@xn--bcher-kva.example\r\n\
            Cc: c@example.org\r\n\
            Subject: =?utf-8?B?R3LDvMOfZSBhdXMgS8O2bG4=?=\r\n\
            Date: Tue, 1 Jul 2025 08:00:00 +0000\r\n\
            Message-ID: <kai.1@example.org>\r\n\
            In-Reply-To: <a@x>\r\n\
            References: <0@x> <a@x>\r\n\
            MIME-Version: 1.0\r\n\
            Content-Type: text/plain; charset=utf-8\r\n\
            Content-Transfer-Encoding: quoted-printable\r\n\
            \r\n\
            Bis morgen!\r\n=2E\r\n=46rom here=20\r\n";
        assert_eq!(written(&mail(), Readers::Recipients), expected);
        let composed = compose(&mail(), Readers::Recipients).unwrap();
        let recipients = ["you@xn--bcher-kva.example", "c@example.org", "hidden@example.org"];
        assert_eq!(
            (composed.from.as_str(), composed.recipients),
            ("me@example.org", recipients.map(str::to_owned).into())
        );
        let copy = written(&mail(), Readers::User);
        assert!(copy.contains("\r\nBcc: hidden@example.org\r\n"));
        assert!(!expected.contains("hidden"));
    }

    #[test]
    fn no_field_can_smuggle_in_another() {
        for evil in ["a\r\nBcc: x@y.test", "a\nb", "a\rb", "a\0b", "a\u{85}b"] {
            let changes: [fn(&mut Mail, String); 8] = [
                |mail, evil| mail.to = vec![evil],
                |mail, evil| mail.envelope.from = evil,
                |mail, evil| mail.envelope.cc = vec![evil],
                |mail, evil| mail.envelope.bcc = vec![evil],
                |mail, evil| mail.envelope.subject = evil,
                |mail, evil| mail.envelope.message_id = evil,
                |mail, evil| mail.envelope.in_reply_to = Some(evil),
                |mail, evil| mail.envelope.references = vec![evil],
            ];
            for (at, change) in changes.iter().enumerate() {
                let mut mail = mail();
                change(&mut mail, evil.to_owned());
                assert_eq!(compose(&mail, Readers::User), Err(BadField), "{evil:?} in field {at}");
            }
        }
        for evil in ["a@x.test> SIZE=1", "a b@x.test", "a@x.test,b@x.test", "<a@x.test>", "", "ä@x.test"] {
            let mut mail = mail();
            mail.to = vec![evil.to_owned()];
            assert_eq!(compose(&mail, Readers::User), Err(BadField), "{evil:?}");
        }
    }

    #[test]
    fn whatever_is_written_is_read_again() {
        let long = "Ein sehr langer Betreff, ".repeat(20);
        let spaces = "two  spaces and =?utf-8?q?a_trick?=".to_owned();
        for subject in ["", "Hi", "✓", &long, &spaces, &"x".repeat(300)] {
            for text in [
                "",
                "Hi",
                "a = b\n\n.\n..\n\n-- \nme\n",
                "こんにちは\n世界",
                &"wörd ".repeat(500),
                &"x".repeat(5_000),
            ] {
                let mut mail = mail();
                mail.envelope.subject = subject.to_owned();
                mail.text = text.to_owned();
                let bytes = compose(&mail, Readers::Recipients).unwrap().bytes;
                let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
                assert!(lines.iter().all(|line| line.len() <= 78 && line.is_ascii()), "{subject} {text}");
                assert!(lines.iter().rev().skip(1).all(|line| line.ends_with(b"\r")));
                let read = MessageParser::default().parse(&bytes).unwrap();
                assert_eq!(read.subject().unwrap_or_default(), subject.trim());
                let body = read.body_text(0).unwrap_or_default().replace("\r\n", "\n");
                assert_eq!(body.trim_end_matches('\n'), text.trim_end_matches('\n'));
            }
        }
    }

    #[test]
    fn long_conversations_keep_their_ends() {
        let mut mail = mail();
        mail.envelope.references = (0..100).map(|n| format!("{n}@x")).collect();
        let bytes = written(&mail, Readers::Recipients);
        let listed = |n: u32| bytes.contains(&format!("<{n}@x>"));
        assert!(listed(0) && listed(99) && listed(71) && !listed(50));
        mail.envelope.references = vec!["no id".to_owned(), "<b@x>".to_owned(), "c@x".to_owned()];
        assert!(written(&mail, Readers::Recipients).contains("References: <c@x>\r\n"));
    }
}
