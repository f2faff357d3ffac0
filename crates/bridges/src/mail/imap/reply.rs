//! The replies of IMAP servers. Pure.

use std::borrow::Cow;

use super::value::{Reader, Value};

/// A reply of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mail) enum Reply<'a> {
    /// It waits for the rest of a command.
    Continue(&'a [u8]),
    /// The end of the command with this tag.
    Done {
        tag: &'a [u8],
        state: State<'a>,
    },
    /// It tells something about itself.
    Told(State<'a>),
    Capabilities(Vec<Cow<'a, str>>),
    /// How many mails the mailbox has now.
    Exists(u32),
    /// A mail of the mailbox is gone, so it has one less now.
    Expunged,
    Fetched(Fetched<'a>),
    /// The numbers that a search found.
    Found(Vec<u32>),
    Mailbox(Mailbox<'a>),
    /// The prefix of the user's own mailboxes.
    Namespace(Vec<u8>),
    /// Anything else, which nobody asked for.
    Other,
}

/// How something ended, with what the server says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mail) struct State<'a> {
    pub(super) status: Status,
    /// What stands in square brackets before the words, such as `UIDNEXT 4`.
    pub(super) code: Cow<'a, str>,
    pub(super) words: Cow<'a, str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mail) enum Status {
    Ok,
    No,
    Bad,
    /// It ends the connection.
    Bye,
    /// The connection is signed in from its beginning.
    Preauth,
}

/// What is known about a mail.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::mail) struct Fetched<'a> {
    pub(in crate::mail) uid: Option<u32>,
    pub(in crate::mail) seen: bool,
    pub(in crate::mail) received: Option<Cow<'a, str>>,
    pub(in crate::mail) structure: Option<Value<'a>>,
    /// Pieces of it by their names, such as `HEADER.FIELDS (FROM)`.
    pub(in crate::mail) sections: Vec<(String, Cow<'a, [u8]>)>,
}

impl Fetched<'_> {
    pub(in crate::mail) fn section(&self, name: &str) -> Option<&[u8]> {
        let found = self.sections.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, bytes)| bytes.as_ref())
    }
}

/// A mailbox in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mail) struct Mailbox<'a> {
    pub(super) attributes: Vec<Cow<'a, str>>,
    pub(super) delimiter: Option<u8>,
    /// As the server spells it, in modified UTF-7.
    pub(super) name: Vec<u8>,
}

impl<'a> Reply<'a> {
    /// Reads a reply, with its literals. What was cut off or makes no sense is left out.
    pub(in crate::mail) fn read(bytes: &'a [u8]) -> Self {
        let mut reader = Reader::new(bytes);
        match reader.word() {
            Some(b"*") => told(&mut reader).unwrap_or(Reply::Other),
            Some([b'+', ..]) => Reply::Continue(reader.rest()),
            Some(tag) => {
                let state = reader.word().and_then(status).map(|status| State::read(status, reader.rest()));
                state.map_or(Reply::Other, |state| Reply::Done { tag, state })
            }
            None => Reply::Other,
        }
    }
}

fn told<'a>(reader: &mut Reader<'a>) -> Option<Reply<'a>> {
    let word = reader.word()?;
    if let Some(status) = status(word) {
        return Some(Reply::Told(State::read(status, reader.rest())));
    }
    if word.iter().all(u8::is_ascii_digit) {
        return counted(word, reader);
    }
    match word.to_ascii_uppercase().as_slice() {
        b"CAPABILITY" => Some(Reply::Capabilities(words(reader.rest()))),
        b"SEARCH" => Some(Reply::Found(numbers(reader.rest()))),
        b"LIST" => mailbox(reader).map(Reply::Mailbox),
        b"NAMESPACE" => namespace(&reader.value()?).map(Reply::Namespace),
        _ => None,
    }
}

/// A reply that begins with a number.
fn counted<'a>(number: &[u8], reader: &mut Reader<'a>) -> Option<Reply<'a>> {
    let number = std::str::from_utf8(number).ok()?.parse().ok()?;
    match reader.word()?.to_ascii_uppercase().as_slice() {
        b"EXISTS" => Some(Reply::Exists(number)),
        b"EXPUNGE" => Some(Reply::Expunged),
        b"FETCH" => Some(Reply::Fetched(fetched(reader))),
        _ => None,
    }
}

fn status(word: &[u8]) -> Option<Status> {
    let known: [(&[u8], Status); 5] = [
        (b"OK", Status::Ok),
        (b"NO", Status::No),
        (b"BAD", Status::Bad),
        (b"BYE", Status::Bye),
        (b"PREAUTH", Status::Preauth),
    ];
    known.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, status)| *status)
}

impl<'a> State<'a> {
    fn read(status: Status, rest: &'a [u8]) -> Self {
        let coded = rest.strip_prefix(b"[").and_then(|rest| {
            let end = rest.iter().position(|byte| *byte == b']')?;
            Some((&rest[..end], rest[end + 1..].trim_ascii()))
        });
        let (code, words) = coded.unwrap_or((b"", rest));
        Self { status, code: String::from_utf8_lossy(code), words: String::from_utf8_lossy(words) }
    }

    /// The number in a code such as `UIDNEXT 4`.
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        let (word, number) = self.code.split_once(' ')?;
        word.eq_ignore_ascii_case(name).then(|| number.trim().parse().ok())?
    }
}

fn words(rest: &[u8]) -> Vec<Cow<'_, str>> {
    rest.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).map(String::from_utf8_lossy).collect()
}

fn numbers(rest: &[u8]) -> Vec<u32> {
    let number = |word: &[u8]| std::str::from_utf8(word).ok()?.parse().ok();
    rest.split(|byte| *byte == b' ').filter_map(number).collect()
}

fn fetched<'a>(reader: &mut Reader<'a>) -> Fetched<'a> {
    let mut fetched = Fetched::default();
    if !reader.enter() {
        return fetched;
    }
    while let Some(name) = reader.word() {
        let Some(value) = reader.value() else { break };
        let name = String::from_utf8_lossy(name);
        match name.to_ascii_uppercase().as_str() {
            "UID" => fetched.uid = value.number().and_then(|uid| u32::try_from(uid).ok()),
            "INTERNALDATE" => fetched.received = owned(&value),
            "FLAGS" => fetched.seen = has_seen(&value),
            "BODYSTRUCTURE" => fetched.structure = Some(value),
            _ => {
                if let (Some(section), Value::Text(bytes)) = (section(&name), value) {
                    fetched.sections.push((section, bytes));
                }
            }
        }
    }
    fetched
}

fn owned<'a>(value: &Value<'_>) -> Option<Cow<'a, str>> {
    value.text().map(|text| Cow::Owned(text.into_owned()))
}

fn has_seen(flags: &Value<'_>) -> bool {
    let flags = flags.list().unwrap_or_default();
    flags.iter().any(|flag| flag.bytes().is_some_and(|flag| flag.eq_ignore_ascii_case(b"\\Seen")))
}

/// The piece that `BODY[HEADER.FIELDS ("From")]<0>` names, spelled as we ask for it.
fn section(name: &str) -> Option<String> {
    let rest = name.get(4..).filter(|_| name.as_bytes()[..4].eq_ignore_ascii_case(b"BODY"))?;
    let (section, _) = rest.strip_prefix('[')?.rsplit_once(']')?;
    Some(section.replace('"', ""))
}

fn mailbox<'a>(reader: &mut Reader<'a>) -> Option<Mailbox<'a>> {
    let attributes = reader.value()?;
    let attributes = attributes.list()?.iter().filter_map(owned).collect();
    let delimiter = reader.value()?.bytes().and_then(|bytes| bytes.first().copied());
    let name = match reader.value()? {
        Value::Text(name) => name.into_owned(),
        Value::Atom(name) => name.to_vec(),
        Value::List(_) => return None,
    };
    Some(Mailbox { attributes, delimiter, name })
}

fn namespace(personal: &Value<'_>) -> Option<Vec<u8>> {
    let first = personal.list()?.first()?.list()?.first()?;
    first.bytes().map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(status: Status, code: &'static str, words: &'static str) -> State<'static> {
        State { status, code: code.into(), words: words.into() }
    }

    #[test]
    fn replies_are_read_as_servers_write_them() {
        let told = |status, code, words| Reply::Told(state(status, code, words));
        for (line, expected) in [
            ("* OK [CAPABILITY IMAP4rev1] Ready.\r\n", told(Status::Ok, "CAPABILITY IMAP4rev1", "Ready.")),
            ("* bye Go away\r\n", told(Status::Bye, "", "Go away")),
            ("* OK [UIDNEXT 4]\r\n", told(Status::Ok, "UIDNEXT 4", "")),
            ("* 23 EXISTS\r\n", Reply::Exists(23)),
            ("* 99999999999 EXISTS\r\n", Reply::Other),
            ("* 23 RECENT\r\n", Reply::Other),
            ("* 23 EXPUNGE\r\n", Reply::Expunged),
            ("* 3 expunge\r\n", Reply::Expunged),
            ("* x EXPUNGE\r\n", Reply::Other),
            ("* SEARCH\r\n", Reply::Found(vec![])),
            ("* SEARCH 2 84 x 882\r\n", Reply::Found(vec![2, 84, 882])),
            ("+ go on\r\n", Reply::Continue(b"go on")),
            ("+\r\n", Reply::Continue(b"")),
            ("k1 NO [ALERT] No\r\n", { Reply::Done { tag: b"k1", state: state(Status::No, "ALERT", "No") } }),
            ("k1 MAYBE\r\n", Reply::Other),
            ("HTTP/1.1 400 Bad Request\r\n", Reply::Other),
            ("\r\n", Reply::Other),
            ("* LIST (\\Sent \\HasNoChildren) \"/\" \"Gesendet\"\r\n", {
                let attributes = vec!["\\Sent".into(), "\\HasNoChildren".into()];
                Reply::Mailbox(Mailbox { attributes, delimiter: Some(b'/'), name: b"Gesendet".to_vec() })
            }),
            ("* LIST () NIL {5}\r\nA \"(b\r\n", {
                Reply::Mailbox(Mailbox { attributes: vec![], delimiter: None, name: b"A \"(b".to_vec() })
            }),
            ("* NAMESPACE ((\"INBOX.\" \".\")) NIL NIL\r\n", Reply::Namespace(b"INBOX.".to_vec())),
        ] {
            assert_eq!(Reply::read(line.as_bytes()), expected, "{line}");
        }
        assert_eq!(state(Status::Ok, "uidnext 4", "").number("UIDNEXT"), Some(4));
        assert_eq!(state(Status::Ok, "UIDNEXT x", "").number("UIDNEXT"), None);
    }

    #[test]
    fn what_is_known_about_a_mail_is_kept_up_to_where_it_makes_sense() {
        let line = b"* 12 FETCH (FLAGS (\\Seen) UID 7 RFC822.SIZE 44827 INTERNALDATE \"17-Jul-1996 02:44:25 -0700\" \
            BODY[HEADER.FIELDS (\"FROM\")]<0> {9}\r\nFrom: a\r\n BODY[TEXT]<0> NIL)\r\n";
        let Reply::Fetched(fetched) = Reply::read(line) else { panic!() };
        assert_eq!((fetched.uid, fetched.seen), (Some(7), true));
        assert_eq!(fetched.received.as_deref(), Some("17-Jul-1996 02:44:25 -0700"));
        assert_eq!(fetched.section("header.fields (from)"), Some(&b"From: a\r\n"[..]));
        assert_eq!(fetched.section("TEXT"), None);
        let Reply::Fetched(cut) = Reply::read(&line[..80]) else { panic!() };
        assert_eq!((cut.uid, cut.seen, cut.received), (Some(7), true, None));
    }
}
