//! Questions to a name server and its answers, byte by byte (RFC 1035). Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How many aliases (CNAME) are followed.
const MOST_ALIASES: usize = 16;
/// How many addresses of a name are kept.
const MOST_ADDRESSES: usize = 32;

const HEADER: usize = 12;
const CLASS_INTERNET: u16 = 1;
const TYPE_ALIAS: u16 = 5;
/// Flags of a header.
const IS_ANSWER: u16 = 0x8000;
const OPCODE: u16 = 0x7800;
const FROM_AUTHORITY: u16 = 0x0400;
const TRUNCATED: u16 = 0x0200;
const RECURSION_WANTED: u16 = 0x0100;
const RECURSION_AVAILABLE: u16 = 0x0080;
const CODE: u16 = 0x000f;
const NO_SUCH_NAME: u16 = 3;

/// A valid host name as it is sent: each label after its length, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name(Vec<u8>);

impl Name {
    /// `None` if no host can have this name. Names in other alphabets were encoded by whoever parsed the address.
    pub(super) fn parse(host: &str) -> Option<Self> {
        let host = host.strip_suffix('.').unwrap_or(host);
        let mut wire = Vec::with_capacity(host.len() + 2);
        for label in host.split('.') {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            let length = u8::try_from(label.len()).ok().filter(|length| (1..=63).contains(length))?;
            if !label.bytes().all(plain) {
                return None;
            }
            wire.push(length);
            wire.extend(label.bytes().map(|byte| byte.to_ascii_lowercase()));
        }
        wire.push(0);
        // A name that ends in a number is an address in one of its odd spellings, such as 127.1 or 0x7f000001.
        let last = host.rsplit('.').next()?;
        let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
        (host.len() <= 253 && !is_number).then_some(Self(wire))
    }
}

/// Which addresses a question asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    fn code(self) -> u16 {
        match self {
            Self::V4 => 1,
            Self::V6 => 28,
        }
    }

    fn address(self, data: &[u8]) -> Option<IpAddr> {
        match self {
            Self::V4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(data).ok()?).into()),
            Self::V6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(data).ok()?).into()),
        }
    }
}

/// One question. Its number is random, so that nobody who cannot read it can answer it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) number: u16,
    pub(super) name: &'a Name,
    pub(super) family: Family,
}

impl Question<'_> {
    /// The question as it is sent.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + self.name.0.len() + 4);
        for field in [self.number, RECURSION_WANTED, 1, 0, 0, 0] {
            bytes.extend(field.to_be_bytes());
        }
        bytes.extend(&self.name.0);
        bytes.extend(self.family.code().to_be_bytes());
        bytes.extend(CLASS_INTERNET.to_be_bytes());
        bytes
    }
}

/// What a server answers to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The addresses. None if there is no such name, or if it has none of this family.
    Addresses(Vec<IpAddr>),
    /// The answer does not fit into a datagram, so the question has to be asked over TCP.
    Truncated,
    /// The server cannot or will not answer. Another one may.
    Failed,
}

/// Reads an answer. `None` if this is no answer to this question, or cannot be read.
pub(super) fn read(question: &Question<'_>, bytes: &[u8]) -> Option<Answer> {
    let mut reader = Reader { bytes, at: 0 };
    let (number, flags) = (reader.number()?, reader.number()?);
    let (questions, answers) = (reader.number()?, reader.number()?);
    reader.at = HEADER;
    let is_ours = number == question.number && flags & (IS_ANSWER | OPCODE) == IS_ANSWER && questions == 1;
    let asked = (reader.name()?, reader.number()?, reader.number()?);
    if !is_ours || asked != (question.name.0.clone(), question.family.code(), CLASS_INTERNET) {
        return None;
    }
    if flags & TRUNCATED != 0 {
        return Some(Answer::Truncated);
    }
    match flags & CODE {
        0 => {}
        NO_SUCH_NAME => return Some(Answer::Addresses(vec![])),
        _ => return Some(Answer::Failed),
    }
    let mut records = Vec::new();
    for _ in 0..answers {
        records.push(reader.record(question.family)?);
    }
    let found = addresses(&records, &question.name.0);
    // Without recursion and authority, an empty answer means "ask somebody else".
    let knows = flags & (RECURSION_AVAILABLE | FROM_AUTHORITY) != 0;
    Some(if found.is_empty() && !knows { Answer::Failed } else { Answer::Addresses(found) })
}

/// The addresses of the name, or of the name that it is an alias of.
fn addresses(records: &[Record], name: &[u8]) -> Vec<IpAddr> {
    let mut name = name;
    for _ in 0..=MOST_ALIASES {
        let own = || records.iter().filter(|record| record.owner == name);
        let found = own().filter_map(|record| match record.data {
            Data::Address(address) => Some(address),
            Data::Alias(_) | Data::Other => None,
        });
        let found: Vec<IpAddr> = found.take(MOST_ADDRESSES).collect();
        let alias = own().find_map(|record| match &record.data {
            Data::Alias(other) => Some(other),
            Data::Address(_) | Data::Other => None,
        });
        match alias {
            Some(other) if found.is_empty() => name = other,
            _ => return found,
        }
    }
    vec![]
}

struct Record {
    owner: Vec<u8>,
    data: Data,
}

enum Data {
    Address(IpAddr),
    Alias(Vec<u8>),
    Other,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    /// A name in lower case. Its end may be a pointer to a place further ahead in the message. Each pointer has to lead
    /// to a place before everything that was read of this name, so there is no way in a circle.
    fn name(&mut self) -> Option<Vec<u8>> {
        let mut name = Vec::new();
        let mut here = Reader { bytes: self.bytes, at: self.at };
        let (mut begin, mut end) = (self.at, None);
        loop {
            let length = here.take(1)?[0];
            match length {
                0 => break,
                1..=63 => {
                    name.push(length);
                    name.extend(here.take(length.into())?.iter().map(u8::to_ascii_lowercase));
                }
                0xc0.. => {
                    let low = here.take(1)?[0];
                    end.get_or_insert(here.at);
                    let target = usize::from(u16::from_be_bytes([length & 0x3f, low]));
                    if target >= begin {
                        return None;
                    }
                    (begin, here.at) = (target, target);
                }
                64..0xc0 => return None,
            }
            if name.len() > 254 {
                return None;
            }
        }
        name.push(0);
        self.at = end.unwrap_or(here.at);
        Some(name)
    }

    fn record(&mut self, family: Family) -> Option<Record> {
        let owner = self.name()?;
        let (kind, class) = (self.number()?, self.number()?);
        // How long it may be kept, which does not matter: nothing is kept.
        self.take(4)?;
        let length = usize::from(self.number()?);
        let mut inside = Reader { bytes: self.bytes, at: self.at };
        let data = self.take(length)?;
        let data = match kind {
            _ if class != CLASS_INTERNET => Data::Other,
            TYPE_ALIAS => {
                let alias = inside.name()?;
                (inside.at == self.at).then_some(Data::Alias(alias))?
            }
            _ if kind == family.code() => Data::Address(family.address(data)?),
            _ => Data::Other,
        };
        Some(Record { owner, data })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An answer to a question, as a server builds it: flags, and records as owner, kind and data.
    pub(in crate::names) fn built(question: &[u8], flags: u16, records: &[(&[u8], u16, &[u8])]) -> Vec<u8> {
        let mut bytes = question.to_vec();
        bytes[2..4].copy_from_slice(&(IS_ANSWER | flags).to_be_bytes());
        bytes[6..8].copy_from_slice(&u16::try_from(records.len()).unwrap().to_be_bytes());
        for (owner, kind, data) in records {
            bytes.extend(*owner);
            bytes.extend(kind.to_be_bytes());
            bytes.extend(CLASS_INTERNET.to_be_bytes());
            bytes.extend(60_u32.to_be_bytes());
            bytes.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
            bytes.extend(*data);
        }
        bytes
    }

    /// A pointer to the name in the question.
    pub(in crate::names) const ASKED: &[u8] = &[0xc0, 12];
    pub(in crate::names) const GOOD: u16 = RECURSION_WANTED | RECURSION_AVAILABLE;
    pub(in crate::names) const CUT: u16 = GOOD | TRUNCATED;
    pub(in crate::names) const UNKNOWN: u16 = GOOD | NO_SUCH_NAME;
    pub(in crate::names) const BROKEN: u16 = GOOD | 2;

    fn name() -> Name {
        Name::parse("api.example.org").unwrap()
    }

    fn asked(name: &Name, family: Family) -> Question<'_> {
        Question { number: 0x1234, name, family }
    }

    fn v4(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    #[test]
    fn only_names_that_a_host_can_have_are_asked_for() {
        let long = "a".repeat(63);
        let full = [long.as_str(); 4].join(".")[..253].to_owned();
        for good in
            ["example.org", "EXAMPLE.org.", "_dmarc.a-b.example", "nas", "1.example", "xn--bcher-kva.example"]
        {
            assert!(Name::parse(good).is_some(), "{good}");
        }
        assert!(Name::parse(&format!("{long}.org")).is_some() && Name::parse(&full).is_some());
        for bad in [
            "",
            ".",
            "a..b",
            ".a",
            "a b",
            "bücher.example",
            "a/b",
            "127.1",
            "1",
            "0x7f000001",
            "a.0x1",
            "a:b",
        ] {
            assert!(Name::parse(bad).is_none(), "{bad}");
        }
        assert!(Name::parse(&format!("{long}a.org")).is_none() && Name::parse(&format!("{full}a")).is_none());
        assert_eq!(Name::parse("A.org").unwrap().0, b"\x01a\x03org\0");
    }

    #[test]
    fn a_question_is_what_the_standard_says() {
        let expected = b"\x12\x34\x01\x00\x00\x01\0\0\0\0\0\0\x03api\x07example\x03org\0\x00\x1c\x00\x01";
        assert_eq!(asked(&name(), Family::V6).bytes(), expected);
    }

    #[test]
    fn an_answer_gives_its_addresses() {
        let name = name();
        let four = asked(&name, Family::V4);
        let bytes = four.bytes();
        let (one, two) = (&[192, 0, 2, 1][..], &[192, 0, 2, 2][..]);
        // "edge" before the end of the name that was asked for, which begins four bytes into it.
        let edge = &[4, b'e', b'd', b'g', b'e', 0xc0, 16][..];
        let found = |list: &[IpAddr]| Some(Answer::Addresses(list.to_vec()));
        for (what, flags, records, expected) in [
            ("two addresses", GOOD, vec![(ASKED, 1, one), (ASKED, 1, two)], found(&[v4(1), v4(2)])),
            ("an alias", GOOD, vec![(ASKED, 5, edge), (edge, 1, two)], found(&[v4(2)])),
            ("an alias after its address", GOOD, vec![(edge, 1, two), (ASKED, 5, edge)], found(&[v4(2)])),
            ("of somebody else", GOOD, vec![(edge, 1, two)], found(&[])),
            ("an alias of itself", GOOD, vec![(ASKED, 5, ASKED)], found(&[])),
            ("another family", GOOD, vec![(ASKED, 28, &[0; 16][..]), (ASKED, 1, one)], found(&[v4(1)])),
            ("none", GOOD, vec![], found(&[])),
            ("no such name", UNKNOWN, vec![], found(&[])),
            ("truncated", CUT, vec![(ASKED, 1, one)], Some(Answer::Truncated)),
            ("broken", BROKEN, vec![], Some(Answer::Failed)),
            ("go and ask others", 0, vec![], Some(Answer::Failed)),
            ("the authority says none", FROM_AUTHORITY, vec![], found(&[])),
            ("an address of three bytes", GOOD, vec![(ASKED, 1, &one[..3])], None),
            ("an alias with more behind it", GOOD, vec![(ASKED, 5, &[0, 0][..])], None),
            ("a pointer ahead", GOOD, vec![(&[0xc0, 200][..], 1, one)], None),
            ("a pointer to itself", GOOD, vec![(&[0xc0, 33][..], 1, one)], None),
        ] {
            assert_eq!(read(&four, &built(&bytes, flags, &records)), expected, "{what}");
        }
        let six = asked(&name, Family::V6);
        let data = Ipv6Addr::LOCALHOST.octets();
        let answer = built(&six.bytes(), GOOD, &[(ASKED, 28, &data)]);
        assert_eq!(read(&six, &answer), found(&[Ipv6Addr::LOCALHOST.into()]));
    }

    #[test]
    fn an_answer_to_something_else_is_none() {
        let name = name();
        let question = asked(&name, Family::V4);
        let good = built(&question.bytes(), GOOD, &[(ASKED, 1, &[192, 0, 2, 1])]);
        assert!(read(&question, &good).is_some());
        let other = Name::parse("api.example.com").unwrap();
        for (what, elsewhere) in [
            ("number", Question { number: 0x1235, ..question }),
            ("name", Question { name: &other, ..question }),
            ("family", Question { family: Family::V6, ..question }),
        ] {
            assert_eq!(read(&elsewhere, &good), None, "{what}");
        }
        assert_eq!(read(&question, &question.bytes()), None, "our own question");
        let shouted = Name::parse("API.Example.ORG").unwrap();
        assert!(read(&Question { name: &shouted, ..question }, &good).is_some(), "spelled in capitals");
        for length in 0..good.len() {
            assert_eq!(read(&question, &good[..length]), None, "the first {length} bytes");
        }
    }
}
