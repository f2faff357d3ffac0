//! Makes the answer to a mail: whom it goes to, its subject, what it refers to and what it quotes. Everything in the
//! answered mail was written by a stranger. Pure.

use jiff::tz::TimeZone;

use super::port::{Letter, Mailbox};
use super::queue::shown;
use crate::outbox::address;
use crate::untrusted::Untrusted;

/// Whom an answer goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// The sender only.
    Sender,
    /// Also those who received the answered mail.
    All,
}

/// Who receives an answer. Addresses are bare.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recipients {
    pub to: Vec<String>,
    pub cc: Vec<String>,
}

/// Who receives the answer to a mail: those whom it names for answers, otherwise its sender; with [`To::All`] also those
/// who received it, without the user's own addresses. `None` if nobody can be answered.
pub fn recipients(letter: &Letter, whom: To, own: &[String]) -> Option<Recipients> {
    let mut to = valid(&letter.reply_to);
    if to.is_empty() {
        to = valid(std::slice::from_ref(&letter.header.from));
    }
    let sender = to.clone();
    if whom == To::All {
        to.extend(valid(&letter.to));
    }
    let is_own = |one: &String| own.iter().any(|own| is_same_box(own, one));
    to.retain(|one| !is_own(one));
    let to = if to.is_empty() { sender } else { to };
    let to = each_once(to, &[]);
    let cc = if whom == To::All { valid(&letter.cc) } else { vec![] };
    let cc = each_once(cc.into_iter().filter(|one| !is_own(one)).collect(), &to);
    let room = address::MOST.saturating_sub(to.len());
    (!to.is_empty()).then(|| Recipients { cc: cc.into_iter().take(room).collect(), to })
}

/// The addresses that are addresses.
fn valid(boxes: &[Mailbox]) -> Vec<String> {
    boxes.iter().filter_map(|one| address::one(one.address.as_written()).ok()).collect()
}

fn each_once(addresses: Vec<String>, but: &[String]) -> Vec<String> {
    let mut kept: Vec<String> = vec![];
    for one in addresses {
        if kept.len() < address::MOST && !kept.iter().chain(but).any(|known| address::same(known, &one)) {
            kept.push(one);
        }
    }
    kept
}

/// Whether mail to both addresses reaches the mailbox of the first, as far as one can tell from how large services read
/// addresses.
fn is_same_box(own: &str, other: &str) -> bool {
    let plain = |written: &str| {
        let written = address::ascii(written).to_lowercase();
        let (local, domain) = written.rsplit_once('@').unwrap_or((&written, ""));
        let local = local.split('+').next().unwrap_or(local);
        match domain {
            "gmail.com" | "googlemail.com" => (local.replace('.', ""), "gmail.com".to_owned()),
            domain => (local.to_owned(), domain.to_owned()),
        }
    };
    plain(own) == plain(other)
}

/// How many characters of the answered subject are kept.
const SUBJECT: usize = 400;
/// What programs write before the subject of an answer, in some languages.
const ANSWERS: &[&str] = &["re", "aw", "antw", "sv", "vs", "odp", "rif"];

/// The subject of the answer: `Re: ` once, and the answered subject on one line.
pub fn subject(answered: &Untrusted) -> String {
    let line = answered.line(SUBJECT);
    let mut rest = line.as_str();
    while let Some(shorter) = without_prefix(rest) {
        rest = shorter;
    }
    format!("Re: {rest}").trim().to_owned()
}

/// The subject without one `Re:`, also as `RE[2]:`.
fn without_prefix(subject: &str) -> Option<&str> {
    let (prefix, rest) = subject.split_once(':')?;
    let word = prefix.trim().trim_end_matches(|c: char| c.is_ascii_digit() || "[]^()".contains(c));
    ANSWERS.contains(&word.to_lowercase().as_str()).then(|| rest.trim_start())
}

/// The most Message-IDs that an answer refers to.
const REFERENCES: usize = 20;
/// The most characters of a Message-ID.
const LONGEST_ID: usize = 250;

/// The Message-ID of the answered mail, if it is one.
pub fn answered_id(letter: &Letter) -> Option<String> {
    letter.message_id.as_ref().and_then(message_id)
}

/// The Message-IDs of the conversation with the answered mail: the first, and the last before the answer.
pub fn references(letter: &Letter) -> Vec<String> {
    let known = letter.references.iter().chain(&letter.message_id);
    let mut ids: Vec<String> = vec![];
    for id in known.filter_map(message_id) {
        if ids.last() != Some(&id) {
            ids.push(id);
        }
    }
    let surplus = ids.len().saturating_sub(REFERENCES);
    if surplus > 0 {
        ids.drain(1..=surplus);
    }
    ids
}

/// The id, if it can stand in a header as it is.
fn message_id(written: &Untrusted) -> Option<String> {
    let id = written.as_written().trim();
    let id = id.strip_prefix('<').and_then(|id| id.strip_suffix('>')).unwrap_or(id);
    let is_id = id.len() <= LONGEST_ID
        && id.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>,;\"\\".contains(&byte))
        && id.split_once('@').is_some_and(|(left, right)| !left.is_empty() && !right.is_empty());
    is_id.then(|| id.to_owned())
}

/// How many characters of the answered text are quoted.
pub const QUOTE: usize = 10_000;
/// How many characters the sender takes in the line above the quote.
const SENDER: usize = 150;

/// What the answer quotes: a line that says who wrote what follows and when, and the beginning of the text. `None` if
/// there is no text.
pub fn quotation(letter: &Letter, zone: &TimeZone) -> Option<String> {
    let quote = quote(&letter.text);
    let at = letter.header.received.to_zoned(zone.clone());
    let Mailbox { name, address } = &letter.header.from;
    // Without words of a language: nobody knows the recipient's.
    let head = format!("{}, {}:", at.strftime("%Y-%m-%d %H:%M"), shown(name, address, SENDER));
    (!quote.is_empty()).then(|| format!("{head}\n{quote}"))
}

/// The beginning of a text with `>` before every line.
fn quote(text: &Untrusted) -> String {
    let text = text.as_written().replace("\r\n", "\n");
    let text = text.trim();
    let beginning: String = text.chars().take(QUOTE).collect();
    let is_cut = beginning.len() < text.len();
    let breaks = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    let line = |line: &str| {
        let line: String = line.chars().filter(|c| !c.is_control() || *c == '\t').collect();
        if line.trim().is_empty() { ">".to_owned() } else { format!("> {}", line.trim_end()) }
    };
    let lines = beginning.split(breaks).map(line).chain(is_cut.then(|| "> […]".to_owned()));
    if text.is_empty() { String::new() } else { lines.collect::<Vec<_>>().join("\n") }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::email::port::Header;

    fn boxes(addresses: &[&str]) -> Vec<Mailbox> {
        let one = |address: &&str| Mailbox { name: Untrusted::new("N"), address: Untrusted::new(*address) };
        addresses.iter().map(one).collect()
    }

    fn letter(from: &str) -> Letter {
        Letter {
            header: Header {
                uid: 1,
                from: Mailbox { name: Untrusted::new("Alice"), address: Untrusted::new(from) },
                subject: Untrusted::new("Dinner"),
                received: Timestamp::UNIX_EPOCH,
                beginning: Untrusted::default(),
                bulk: false,
                seen: false,
            },
            written: None,
            to: vec![],
            cc: vec![],
            reply_to: vec![],
            message_id: None,
            references: vec![],
            text: Untrusted::default(),
            is_beginning: false,
            attachments: vec![],
        }
    }

    const OWN: &[&str] = &["me@home.test", "my.name@gmail.com"];

    #[test]
    fn an_answer_goes_to_whom_the_mail_names_and_to_all_only_when_asked() {
        let own: Vec<String> = OWN.iter().map(ToString::to_string).collect();
        let to = ["ME@home.TEST", "bob@x.test", "no address", "myname+a@googlemail.com"];
        let cc = ["carol@x.test", "Bob@X.test", "me+shop@home.test", "c\r\nBcc: evil@x.test"];
        for (name, from, reply_to, whom, expected_to, expected_cc) in [
            ("the sender", "alice@x.test", vec![], To::Sender, vec!["alice@x.test"], vec![]),
            ("Reply-To", "alice@x.test", vec!["list@x.test"], To::Sender, vec!["list@x.test"], vec![]),
            (
                "a list of them",
                "alice@x.test",
                vec!["a@x.test", "b@x.test", "A@x.test"],
                To::Sender,
                vec!["a@x.test", "b@x.test"],
                vec![],
            ),
            ("none is one", "alice@x.test", vec!["x\0@y", ""], To::Sender, vec!["alice@x.test"], vec![]),
            (
                "all",
                "alice@x.test",
                vec![],
                To::All,
                vec!["alice@x.test", "bob@x.test"],
                vec!["carol@x.test"],
            ),
            ("to oneself", "me@home.test", vec![], To::Sender, vec!["me@home.test"], vec![]),
            (
                "from oneself, to all",
                "me@home.test",
                vec![],
                To::All,
                vec!["bob@x.test"],
                vec!["carol@x.test"],
            ),
        ] {
            let letter =
                Letter { reply_to: boxes(&reply_to), to: boxes(&to), cc: boxes(&cc), ..letter(from) };
            let expected = Recipients {
                to: expected_to.iter().map(ToString::to_string).collect(),
                cc: expected_cc.iter().map(ToString::to_string).collect::<Vec<String>>(),
            };
            assert_eq!(recipients(&letter, whom, &own), Some(expected), "{name}");
        }
        for from in ["", "nobody", "a@b\r\nTo: c@d.test", "\"x y\"@z.test"] {
            assert_eq!(recipients(&letter(from), To::All, &own), None, "{from:?}");
        }
        let many: Vec<String> = (0..200).map(|n| format!("a{n}@x.test")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let crowd = Letter { to: boxes(&many), cc: boxes(&many), ..letter("alice@x.test") };
        let all = recipients(&crowd, To::All, &own).unwrap();
        assert_eq!((all.to.len(), all.cc.len()), (address::MOST, 0));
    }

    #[test]
    fn a_subject_says_re_once_on_one_line() {
        for (answered, expected) in [
            ("Dinner", "Re: Dinner"),
            ("Re: Dinner", "Re: Dinner"),
            ("RE: AW: re : Dinner", "Re: Dinner"),
            ("Re[2]: Dinner", "Re: Dinner"),
            ("Reply: Dinner", "Re: Reply: Dinner"),
            ("12: 30", "Re: 12: 30"),
            ("", "Re:"),
            ("a\r\nBcc: evil@x.test\0", "Re: a Bcc: evil@x.test"),
        ] {
            let made = subject(&Untrusted::new(answered));
            assert_eq!(made, expected);
            assert!(crate::outbox::body::subject(&made).is_ok());
        }
        let long = subject(&Untrusted::new("Re: ".repeat(100_000)));
        assert!(crate::outbox::body::subject(&long).is_ok());
    }

    #[test]
    fn only_ids_are_referred_to_and_not_too_many() {
        let ids = |ids: &[&str]| ids.iter().map(|id| Untrusted::new(*id)).collect::<Vec<_>>();
        let hostile =
            ["a@x", "b", "c@x\r\nBcc: d@x", "<e@x>", "f@x>", "g\0@x", "@x", "h@", "ä@x", "", "i j@x"];
        let mixed = Letter {
            references: ids(&hostile),
            message_id: Some(Untrusted::new("z@x")),
            ..letter("alice@x.test")
        };
        assert_eq!(references(&mixed), ["a@x", "e@x", "z@x"]);
        assert_eq!(answered_id(&mixed).as_deref(), Some("z@x"));
        let many: Vec<Untrusted> = (0..5_000).map(|n| Untrusted::new(format!("{n}@x"))).collect();
        let long = Letter { references: many, message_id: Some(Untrusted::new("z@x")), ..letter("a@x.test") };
        let kept = references(&long);
        assert_eq!(kept.len(), REFERENCES);
        assert_eq!((kept[0].as_str(), kept[1].as_str(), kept[19].as_str()), ("0@x", "4982@x", "z@x"));
        let forged = Letter { message_id: Some(Untrusted::new("a@x\nb")), ..letter("a@x.test") };
        assert_eq!((answered_id(&forged), references(&forged)), (None, vec![]));
        let twice = Letter {
            references: ids(&["a@x"]),
            message_id: Some(Untrusted::new("a@x")),
            ..letter("a@x.test")
        };
        assert_eq!(references(&twice), ["a@x"]);
    }

    #[test]
    fn every_quoted_line_is_marked_and_a_long_text_is_cut() {
        let with = |text: &str| Letter { text: Untrusted::new(text), ..letter("alice@x.test") };
        let made = |text: &str| quotation(&with(text), &TimeZone::UTC);
        assert_eq!(
            made("Dinner?\r\n\r\nAt 8\u{2028}> or 9\0").as_deref(),
            Some("1970-01-01 00:00, Alice <alice@x.test>:\n> Dinner?\n>\n> At 8\n> > or 9")
        );
        assert_eq!(made(" \n"), None);
        let long = made(&"x\n".repeat(100_000)).unwrap();
        assert!(long.ends_with("\n> […]"));
        assert!(long.chars().count() < 3 * QUOTE);
        assert!(long.lines().skip(1).all(|line| line.starts_with('>')));
    }
}
